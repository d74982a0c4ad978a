"""Claims: theorems as statements that run, and the verdicts on them.

A claim measures something along a run (or on any case at all) and says how large it may be. ``check`` compares and
answers with one of five verdicts:

``holds``
    every measured number is within its bound, and the bound says something;
``violated``
    some number exceeds its bound: the first such one is the witness;
``vacuous``
    every number is within its bound, but the last bound says nothing: it is no smaller than what is known without
    the claim (``trivial``), or not finite;
``outside assumptions``
    the claim does not speak about this case;
``inconclusive``
    there was nothing to compare, or only rounding was left from the start.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal, NamedTuple

from dualopt.federation import Snapshot, iterate
from dualopt.objectives import Objective
from dualopt.xp import Array

__all__ = ["VERDICTS", "Case", "Claim", "Comparison", "Verdict", "Witness", "check"]

VERDICTS = ("holds", "violated", "vacuous", "outside assumptions", "inconclusive")


class Comparison(NamedTuple):
    """One number with the bound that a claim sets it."""

    n: int  # the round, or whatever counts
    measured: float
    bound: float
    what: str = ""  # which quantity, for a claim about several


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """A method on a problem whose solution is known: what most claims are checked on.

    Attributes
    ----------
    name : str
        For tables.
    algorithm : Algorithm
        The method, or a mutation of it.
    objective : Objective
        The clients.
    theta : array, shape ``shape``
        A minimiser of ``E``, from an independent reference.
    subgradients : array, shape (N, *shape)
        Subgradients of the ``f_j`` at ``theta`` that sum to zero: they carry the solution of any dual problem.
    rounds : int
        How many rounds to look at.
    """

    name: str
    algorithm: Any
    objective: Objective
    theta: Array
    subgradients: Array
    rounds: int

    def snapshots(self) -> Iterator[Snapshot]:
        """Yield the rounds of the run."""
        return islice(iterate(self.algorithm, self.objective), self.rounds)


# Functions of the module, which pickle, so that a claim can be attacked by several processes.
def _none_fails(case: Any) -> list[str]:
    return []


def _nothing_known(case: Any) -> float:
    return math.inf


@dataclass(frozen=True, kw_only=True)
class Claim:
    r"""A statement with everything needed to test it.

    Attributes
    ----------
    name : str
        Short and unique.
    source : str
        Paper, theorem, equation.
    statement : str
        LaTeX, with every constant.
    compare : callable
        ``compare(case)`` yields a :class:`Comparison` for every number that the claim bounds.
    assumptions : callable
        ``assumptions(case)`` returns the assumptions that the case fails, in words.
    trivial : callable
        ``trivial(case)`` is a bound of the measured quantity that needs no theorem; infinite when there is none.
    constant : "explicit" or "hidden"
        Explicit constants must hold at every ``n`` without fitting. Hidden ones: ``compare`` estimates an order.
    rounding : float, default 1e-11
        Measured numbers below this share of the largest finite bound are rounding, and not compared.

    Examples
    --------
    The error of gradient descent on a quadratic, claimed to halve in each round:

    >>> halves = Claim(
    ...     name="halves",
    ...     source="an example",
    ...     statement=r"x_n \le 2^{-n}",
    ...     compare=lambda case: (Comparison(n, 0.4**n, 0.5**n) for n in range(5)),
    ... )
    >>> check(halves, None).verdict, check(halves, None).worst_ratio
    ('holds', 1.0)
    """

    name: str
    source: str
    statement: str
    compare: Callable[[Any], Iterable[Comparison]]
    assumptions: Callable[[Any], list[str]] = field(default=_none_fails)
    trivial: Callable[[Any], float] = field(default=_nothing_known)
    constant: Literal["explicit", "hidden"] = "explicit"
    rounding: float = 1e-11


class Witness(NamedTuple):
    """The first number beyond its bound."""

    case: str
    n: int
    measured: float
    bound: float
    what: str = ""

    def __str__(self) -> str:
        what = f"{self.what} = " if self.what else ""
        return f"{self.case}: at n = {self.n}, {what}{self.measured:.6g} > {self.bound:.6g}"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The answer to a claim on one case."""

    claim: str
    case: str
    verdict: str
    worst_ratio: float  # measured/bound; NaN when nothing was compared
    compared: int  # numbers that were compared
    witness: Witness | None = None
    failed: tuple[str, ...] = ()  # assumptions that do not hold


def check(claim: Claim, case: Any, *, check_assumptions: bool = True) -> Verdict:
    """Check a claim on a case.

    Parameters
    ----------
    claim : Claim
        What is claimed.
    case : Case, or whatever the claim takes
        Where; its ``name`` is reported.
    check_assumptions : bool, default True
        With False the comparison is made even where the claim does not speak: to see what goes wrong there.

    Returns
    -------
    Verdict
        With the worst ratio, and a witness when violated.
    """
    name = getattr(case, "name", str(case))
    failed = tuple(claim.assumptions(case)) if check_assumptions else ()
    told = {"claim": claim.name, "case": name, "failed": failed}
    if failed:
        return Verdict(verdict="outside assumptions", worst_ratio=math.nan, compared=0, **told)
    comparisons = list(claim.compare(case))
    floor = claim.rounding * max((c.bound for c in comparisons if math.isfinite(c.bound)), default=0.0)
    # Written so that NaN is never taken for rounding; nor is a number whose bound is zero.
    telling = [c for c in comparisons if not c.measured < floor or c.bound == 0]
    told |= {"worst_ratio": max((_ratio(c) for c in telling), default=math.nan), "compared": len(telling)}
    beyond = next((c for c in telling if _ratio(c) > 1), None)
    if beyond is not None:
        witness = Witness(name, beyond.n, beyond.measured, beyond.bound, beyond.what)
        return Verdict(verdict="violated", witness=witness, **told)
    if not telling:
        return Verdict(verdict="inconclusive", **told)
    says_something = comparisons[-1].bound < claim.trivial(case)
    return Verdict(verdict="holds" if says_something else "vacuous", **told)


def _ratio(c: Comparison) -> float:
    """Return measured/bound; a number that is not finite, or has a bound that is not a number, is beyond it."""
    if c.measured == 0 and c.bound >= 0:
        return 0.0
    if not math.isfinite(c.measured) or not c.bound > 0:
        return math.inf
    return c.measured / c.bound
