"""The programs of ``theory/`` and ``figures/``, which are not part of this package but come with it.

A wheel has both in a folder of their own beside this package: ``theory`` and ``figures`` are names that others use,
and are modules only in a process that runs one of these programs. In a checkout they lie beside this package.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from typer import Context
from typer.core import TyperCommand

__all__ = ["PassedOn", "attack", "figures", "folder", "lessons", "theory"]

FOLDER = "dualopt_programs"  # of a wheel


class PassedOn(TyperCommand):
    """A command whose words another program reads, its ``--help`` too."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Keep all words as they are."""
        ctx.args = list(args)
        return ctx.args


def theory(ctx: Context) -> None:
    """Check the theorems of the papers, constants and all."""
    _run("theory", ctx)


def attack(ctx: Context) -> None:
    """Look for small problems on which a theorem fails."""
    _run("theory.attack", ctx)


def figures(ctx: Context) -> None:
    """Compute and draw the figures of the papers, and ours."""
    _run("figures", ctx)


def lessons(ctx: Context) -> None:
    """Open the course in a browser, or write it with --export."""
    _run("figures.lessons", ctx)


def folder() -> Path:
    """Return where ``theory`` and ``figures`` lie.

    >>> (folder() / "theory" / "__main__.py").is_file()
    True
    """
    beside = Path(__file__).resolve().parents[3]
    return beside / FOLDER if (beside / FOLDER).is_dir() else beside


def _run(package: str, ctx: Context) -> None:
    """Run the program of a package; it ends by ``SystemExit``."""
    if (place := str(folder())) not in sys.path:
        sys.path.insert(0, place)
    import_module(f"{package}._program").main(ctx.args, f"dualopt {ctx.info_name}")
