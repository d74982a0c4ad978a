"""Proofs in rational numbers of what theorems say of one class of problems, or of methods that have no theorem.

Each is a file that :func:`dualopt.lab.proofs.check_proof` checks, and runs the code that it is about, in every run of
the tests. ``python -m theory.proofs`` writes them anew. What is new goes into ``SETTINGS``. With ``--table`` it writes
the table of the rates of all methods (``_table.py``, ``_page.py``).
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from dualopt.lab.proofs import check_proof, checker

__all__ = ["FOLDER", "SETTINGS", "Proved", "checked", "proved_exactly"]

FOLDER = Path(__file__).parent


class Proved(NamedTuple):
    """What a proof is about: a method on clients with mu = 1."""

    method: str
    L: float
    clients: int
    participation: str = "full"
    memory: bool = False
    claim: str = ""  # of the theorem that says it too, with a factor that is no smaller


SETTINGS = {
    "a_fedpd_2_of_4": Proved("a-fedpd: rho=3", 10, 4, "subset=2"),
    "dual_ascent": Proved("dual-ascent: nu=1", 10, 4, claim="dual_ascent_linear"),
    "dualfl_late": Proved("dualfl: rho=0.01, nu=1", 100, 2, memory=True),
    "fedadmm_2_of_4": Proved("fedadmm: rho=3", 10, 4, "subset=2", memory=True, claim="averaged_reflections"),
    "feddyn": Proved("feddyn: alpha=3", 9, 4, claim="averaged_reflections"),
    "feddyn_1_of_4": Proved("feddyn: alpha=9.75", 10, 4, "subset=1", claim="sampled_feddyn"),
    "feddyn_2_of_3": Proved("feddyn: alpha=4.5", 10, 3, "subset=2", claim="sampled_feddyn"),
    "fedsplit": Proved("fedsplit: step=0.3333333333333333", 9, 4, claim="fedsplit_contraction"),
    "fivegcs_2_of_4": Proved(
        "fivegcs: gamma=0.18, tau=1.3888888888888888, mu=1", 10, 4, "subset=2", claim="cohorts_of_fivegcs"
    ),
    "fivegcs_1_of_4": Proved("fivegcs: gamma=0.1, tau=2.5, mu=1", 10, 4, "subset=1", claim="sampled_fivegcs"),
    "gradient_descent": Proved("gradient-descent: step=0.1", 10, 3),
    "sampled_dualfl_2_of_4_late": Proved("sampled-dualfl: rho=0.2, nu=1", 5, 4, "subset=2", claim="sampled_dualfl"),
    "scaffnew": Proved(
        "scaffnew: probability=0.3, solver=(gradient: step=0.1)", 10, 4, "communicate=0.3", claim="scaffnew_one_step"
    ),
    "scaffnew_best": Proved(
        "scaffnew: probability=0.6, solver=(gradient: step=0.2)", 9, 4, "communicate=0.6", claim="scaffnew_one_step"
    ),
    "fivegcs": Proved("fivegcs: gamma=0.5, tau=0.5, mu=1", 5, 4, claim="full_fivegcs"),
}


@cache
def checked(name: str) -> Fraction:
    """Return the factor that a proof proves; refuse one that is none."""
    proof: Any = checker.read(str(FOLDER / f"{name}.json"))
    return check_proof(proof)


def proved_exactly(claim: str) -> dict[str, Fraction]:
    """Return the proofs for classes of problems of which a claim speaks, and their factors."""
    return {name: checked(name) for name, what in SETTINGS.items() if what.claim == claim}
