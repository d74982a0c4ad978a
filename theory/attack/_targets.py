"""Finding what can be attacked.

A module of ``theory.attack`` whose name has no leading underscore is named like the folder of a paper, and defines
``FAMILIES``: for claims of that folder, families that make cases of numbers. A claim in two forms, as errata have, may
have an entry for each: ``name`` and ``name:corrected``. Identities, which hold up to a tolerance for rounding, are left
out: a search would find where rounding is largest.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import theory.attack
from dualopt.attack import Family
from dualopt.claims import Claim

__all__ = ["Target", "targets"]


class Target(NamedTuple):
    """A claim and the families on which it is attacked."""

    claim: Claim
    families: Sequence[Family]


def targets() -> dict[str, Target]:
    """Return everything that can be attacked, by name.

    Examples
    --------
    >>> targets()["theorem_3_2"].claim.source
    'Park and Xu, Theorem 3.2'
    """
    found = {}
    for entry in pkgutil.iter_modules(theory.attack.__path__):
        if not entry.name.startswith("_"):
            for name, families in importlib.import_module(f"theory.attack.{entry.name}").FAMILIES.items():
                claim = _by_name(f"theory.{entry.name}.{name.partition(':')[0]}")
                found[name] = Target(claim, families)
    return found


@dataclass(frozen=True)
class _Part:
    """A callable of a claim by its name, which can be sent to a process where the callable itself cannot."""

    module: str
    part: str

    def __call__(self, case: Any) -> Any:
        return getattr(importlib.import_module(self.module).CLAIM, self.part)(case)


def _by_name(module: str) -> Claim:
    parts: dict[str, Any] = {part: _Part(module, part) for part in ("compare", "assumptions", "trivial")}
    return replace(importlib.import_module(module).CLAIM, **parts)
