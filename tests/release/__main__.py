"""The program ``python -m tests.release``."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.release.built import Built, build
from tests.release.environments import ENVIRONMENTS, complaints


def main(arguments: list[str] | None = None) -> int:
    """Run the program; return 1 if anything is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.release", description="Check what is released.")
    parser.add_argument("--folder", type=Path, help="where everything is made and stays; a temporary one by default")
    parser.add_argument("--only", nargs="+", choices=ENVIRONMENTS, metavar="NAME", help=f"of {', '.join(ENVIRONMENTS)}")
    parser.add_argument("--python", default=sys.executable, help="version or path, such as 3.13, for the environments")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.folder or Path(temporary)).resolve()
        built = build(folder)
        wrong = list(built.complaints)
        for name in options.only or ENVIRONMENTS:
            wrong += _checked(name, folder, built, options.python)
    print(f"release: {len(wrong)} complaints", *wrong, sep="\n  ")
    return bool(wrong)


def _checked(name: str, folder: Path, built: Built, python: str) -> Iterator[str]:
    start = time.monotonic()
    found = list(complaints(ENVIRONMENTS[name], folder / "environments" / name, built, python))
    print(f"{name}: {'; '.join(found) or 'as it must be'} ({time.monotonic() - start:.0f} s)", flush=True)
    return (f"{name}: {complaint}" for complaint in found)


if __name__ == "__main__":
    sys.exit(main())
