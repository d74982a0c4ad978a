"""The lowest versions that ``pyproject.toml`` allows, in an environment of their own: ``python -m tests.lowest``.

It makes the environment in a temporary folder (or in ``--folder``), installs what the package and some of its extras
ask for, each in its lowest version and what those ask for in the newest, and runs a part of the tests there: the
command line, the estimators, data and inputs, runs, pictures, local solvers and losses. Warnings are no errors there:
old versions beside new ones give many. It needs ``uv``
(``pip install uv``) and an index of packages, takes half an hour, and ends with the exit code of the tests.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXTRAS = ("dev", "fast", "frames", "sparse")
TESTS = ("app", "arrays", "lab/test_rates.py", "losses", "objectives", "problem", "runs", "solvers", "spec")


def installed(folder: Path, extras: list[str]) -> Path:
    """Make the environment and return its Python."""
    uv, python = shutil.which("uv"), folder / "bin" / "python"
    if uv is None:
        raise SystemExit("lowest: uv is missing: pip install uv.")
    subprocess.run([uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(folder)], check=True)
    wanted = [word for extra in extras for word in ("--extra", extra)]
    command = [uv, "pip", "install", "--quiet", "--python", str(python), "--resolution", "lowest-direct"]
    subprocess.run([*command, "-r", "pyproject.toml", *wanted], cwd=ROOT, check=True)
    return python


def main(arguments: list[str] | None = None) -> int:
    """Run the program; return the exit code of the tests."""
    parser = argparse.ArgumentParser(prog="python -m tests.lowest", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--folder", type=Path, help="where the environment is made and stays")
    parser.add_argument(
        "--extra", action="append", help=f"extra to install; repeatable, by default {', '.join(EXTRAS)}"
    )
    parser.add_argument("tests", nargs="*", help="what pytest is given, in place of the usual part of the tests")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        python = installed(options.folder or Path(temporary), options.extra or list(EXTRAS))
        tests = options.tests or [f"tests/{name}" for name in TESTS]
        command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "default", *tests]
        # without it the checks of scikit-learn 1.7 cannot be imported where array-api-compat is installed
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "SCIPY_ARRAY_API": "1"}
        return subprocess.run(command, cwd=ROOT, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
