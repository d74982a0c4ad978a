"""``python -m figures`` draws the figures."""

from figures._program import main

if __name__ == "__main__":
    main()
