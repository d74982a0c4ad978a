"""``python -m dualopt`` is the program ``dualopt``."""

from dualopt.app.cli import main

if __name__ == "__main__":
    main()
