"""``python -m theory.attack`` looks for violations of claims."""

from theory.attack._program import main

if __name__ == "__main__":
    main()
