"""Finding what can be attacked.

A module of ``theory.attack`` whose name has no leading underscore defines ``GENERATORS``: for claims by their names,
generators that make cases of parameters. A claim in two forms, as errata have, may
have an entry for each: ``name`` and ``name:corrected``. Identities, which hold up to a tolerance for rounding, are left
out: a search would find where rounding is largest.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence
from typing import NamedTuple

import theory.attack
from dualopt.arrays._checks import require
from dualopt.lab.attack import Generator
from dualopt.lab.claims import Claim
from dualopt.spec import plugins
from theory._claims import discover

__all__ = ["Target", "own_target", "targets"]


class Target(NamedTuple):
    """A claim and the generators on which it is attacked."""

    claim: Claim
    generators: Sequence[Generator]


def own_target(name: str) -> Target:
    """Return a claim of the user's with the generators that it names.

    Parameters
    ----------
    name : str
        ``FILE.py:NAME`` or ``package.module:NAME``.

    Raises
    ------
    ValueError
        If there is no such claim, or it has no generators.
    """
    claim = plugins.load("claims", name, "claim")
    sentence = f"claim {name!r} must have generators, functions that make a case of dualopt.lab.attack.Parameters"
    require(claim.generators, sentence)
    return Target(claim, claim.generators)


def targets() -> dict[str, Target]:
    """Return everything that can be attacked, by name.

    Examples
    --------
    >>> targets()["theorem_3_2"].claim.source
    'Park and Xu, Theorem 3.2'
    """
    found, chapters = {}, discover()
    for entry in pkgutil.iter_modules(theory.attack.__path__):
        if not entry.name.startswith("_"):
            for name, generators in importlib.import_module(f"theory.attack.{entry.name}").GENERATORS.items():
                found[name] = Target(chapters[name.partition(":")[0]].claim, generators)
    return found
