"""``python -m figures`` draws the figures."""

from dualopt.app.cli.reporting import exit_on_user_error

with exit_on_user_error("figures"):  # an extra may be missing
    from figures._program import main

if __name__ == "__main__":
    main()
