"""``python -m dualopt`` is the program ``dualopt``."""

from dualopt.cli import main

if __name__ == "__main__":
    main()
