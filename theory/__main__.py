"""``python -m theory`` checks the theorems."""

from theory._program import main

if __name__ == "__main__":
    main()
