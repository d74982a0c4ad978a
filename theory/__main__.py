"""``python -m theory`` checks the theorems."""

from dualopt.app.cli.reporting import exit_on_user_error

with exit_on_user_error("theory"):  # an extra may be missing
    from theory._program import main

if __name__ == "__main__":
    main()
