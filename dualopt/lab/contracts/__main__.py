"""Run the contract tests on the classes that are named."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from dualopt.app.cli import exit_on_user_error
from dualopt.lab.contracts import options

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the exit code of pytest: 0 if every promise is kept, 1 if one is broken; 2 for a mistake of the user's.

    With ``--tier numpy`` those about arrays of other libraries are not asked for.

    Parameters
    ----------
    arguments : sequence of str, optional
        What follows the name of the program; ``sys.argv[1:]`` when not given.
    """
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    with exit_on_user_error("contracts"):
        if find_spec("pytest") is None:
            raise ModuleNotFoundError("package pytest is missing: pip install pytest.")
        options.refuse_wrong(arguments)
    import pytest

    folder = str(Path(__file__).parent)
    # no settings of the folder in which the user happens to be
    alone = ["-c", os.devnull, "--rootdir", folder, "-p", "no:cacheprovider", "-q"]
    return int(pytest.main([*alone, folder, "--tb=no", "-rN", *arguments], plugins=[options]))


if __name__ == "__main__":
    sys.exit(main())
