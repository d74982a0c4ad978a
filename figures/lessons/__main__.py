"""``python -m figures.lessons`` opens the lessons in a browser."""

from figures.lessons._program import main

if __name__ == "__main__":
    main()
