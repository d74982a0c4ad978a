"""Claims: theorems as statements that run, and the verdicts on them.

A claim says that inequalities hold along a run, or on any case at all: a decorated function yields them under their
statement. ``check`` tests them all and answers with one of five verdicts:

``holds``
    every left-hand side is at most its right-hand side, and the last right-hand side says something;
``violated``
    some left-hand side is larger: the first such inequality is the witness;
``vacuous``
    every inequality holds, but the last right-hand side says nothing: it is no smaller than what is known without the
    claim (``trivial``), or not finite;
``outside assumptions``
    the claim does not speak about this case;
``inconclusive``
    there was nothing to compare, or only rounding was left from the start.
"""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal, NamedTuple

from dualopt.arrays.xp import Array
from dualopt.engine.rounds import Snapshot, iterate
from dualopt.objectives import Objective

__all__ = ["VERDICTS", "Case", "Claim", "Inequality", "Verdict", "Witness", "check", "claim"]

VERDICTS = ("holds", "violated", "vacuous", "outside assumptions", "inconclusive")


class Inequality(NamedTuple):
    """The claim that ``lhs <= rhs``: a measured number and its bound, or the least possible number and a measured one.

    The left-hand side is a computed number. Where rounding decides, ``rounding`` says how far it may lie above the true
    one, and only what exceeds that is compared: a fraction of the largest bound of a run would hide all the rounds in
    which a fast one has fallen below that.

    Examples
    --------
    >>> print(Inequality(3, 2.0, 1.0, "error"))
    at n = 3, error: lhs = 2 > rhs = 1
    """

    n: int  # the round, or whatever counts
    lhs: float
    rhs: float
    what: str = ""  # what is compared, for a claim of several inequalities
    rounding: float = 0.0  # lhs as computed exceeds the true left-hand side by no more than this

    def __str__(self) -> str:
        what = f", {self.what}" if self.what else ""
        sign = "<=" if self.lhs <= self.rhs else ">"
        return f"at n = {self.n}{what}: lhs = {self.lhs:.6g} {sign} rhs = {self.rhs:.6g}"


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
    r"""A statement with everything needed to test it; made by the decorator :func:`claim`.

    It is called like the function under the decorator. A claim that stands in a module under its own name pickles by
    that name, so that it can be sent to other processes.

    Attributes
    ----------
    name : str
        Short and unique.
    source : str
        Paper, theorem, equation.
    statement : str
        LaTeX, with every constant.
    compare : callable
        ``compare(case)`` yields every :class:`Inequality` that is claimed.
    assumptions : callable
        ``assumptions(case)`` returns the assumptions that the case fails, in words.
    trivial : callable
        ``trivial(case)`` is a bound of the last left-hand side that needs no theorem; infinite when there is none.
    constant : "explicit" or "hidden"
        Explicit constants must hold at every ``n`` without fitting. Hidden ones: ``compare`` estimates an order.
    rtol : float, default 0
        Relative rounding that is allowed between the two sides, for inequalities that are attained: ``lhs <= (1 +
        rtol) rhs`` is tested.
    cases : callable, optional
        ``cases(quick)`` yields pairs of a case and the verdict that is expected there, fewer and smaller ones if
        ``quick``.
    generators : sequence of callable
        Each makes a case of numbers, on which the claim can be attacked (:mod:`dualopt.lab.attack`).
    corrects : str, optional
        For an erratum: the name of the claim that it corrects, or the place in the paper.

    Examples
    --------
    The error of gradient descent on a quadratic, claimed to halve in each round:

    >>> halves = Claim(
    ...     name="halves",
    ...     source="an example",
    ...     statement=r"x_n \le 2^{-n}",
    ...     compare=lambda case: (Inequality(n, 0.4**n, 0.5**n) for n in range(5)),
    ... )
    >>> check(halves, None).verdict, check(halves, None).worst_ratio
    ('holds', 1.0)
    """

    name: str
    source: str
    statement: str
    compare: Callable[..., Iterable[Inequality]]
    assumptions: Callable[[Any], list[str]] = field(default=_none_fails)
    trivial: Callable[[Any], float] = field(default=_nothing_known)
    constant: Literal["explicit", "hidden"] = "explicit"
    rtol: float = 0.0
    cases: Callable[[bool], Iterable[tuple[Any, str]]] | None = None
    generators: Sequence[Callable[..., Any]] = ()
    corrects: str | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Iterable[Inequality]:
        """Return the inequalities on a case, like the function under the decorator."""
        return self.compare(*args, **kwargs)

    def as_printed(self, **options: Any) -> Callable[[Callable[..., Iterable[Inequality]]], Claim]:
        r"""Return the decorator of an erratum: a statement of this claim as printed, which fails, and as corrected.

        The cases of the erratum say which of the two is meant.

        Parameters
        ----------
        **options
            What :func:`claim` takes, but ``corrects``.

        Examples
        --------
        >>> @claim(source="an example", statement=r"$x/2 \le x$ for $x \ge 0$")
        ... def half(x):
        ...     yield Inequality(0, x / 2, x)
        >>> @half.as_printed(source="an example", statement=r"Printed: $2x \le x$. Corrected: $x/2 \le x$.")
        ... def factor_of_half(case):
        ...     x, printed = case
        ...     yield from [Inequality(0, 2 * x, x)] if printed else half(x)
        >>> factor_of_half.corrects, [check(factor_of_half, (1.0, printed)).verdict for printed in (True, False)]
        ('half', ['violated', 'holds'])
        """
        return claim(corrects=self.name, **options)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle by name where the module of the decorated function holds this claim."""
        module, name = getattr(self.compare, "__module__", None), getattr(self.compare, "__qualname__", "")
        if getattr(sys.modules.get(module or ""), name, None) is self:
            return _named, (module, name)
        return super().__reduce_ex__(protocol)


def _named(module: str, name: str) -> Claim:
    return getattr(importlib.import_module(module), name)


def claim(
    *, name: str | None = None, source: str, statement: str, **options: Any
) -> Callable[[Callable[..., Iterable[Inequality]]], Claim]:
    r"""Return a decorator that makes a :class:`Claim` of a function that yields inequalities.

    Parameters
    ----------
    name : str, optional
        Short and unique; the name of the function when not given.
    source : str
        Paper, theorem, equation.
    statement : str
        LaTeX, with every constant.
    **options
        The other attributes of :class:`Claim`: ``assumptions``, ``trivial``, ``constant``, ``rtol``, ``cases``,
        ``generators`` and ``corrects``.

    Examples
    --------
    >>> @claim(source="an example", statement=r"$x_n \le 2^{-n}$", cases=lambda quick: [(0.4, "holds")])
    ... def halves(factor):
    ...     for n in range(5):
    ...         yield Inequality(n, factor**n, 0.5**n)
    >>> halves.name, check(halves, 0.4).verdict, str(check(halves, 0.75).witness)
    ('halves', 'holds', '0.75: at n = 1: lhs = 0.75 > rhs = 0.5')
    """

    def decorate(compare: Callable[..., Iterable[Inequality]]) -> Claim:
        title = getattr(compare, "__name__", "") if name is None else name
        made = Claim(name=title, source=source, statement=statement, compare=compare, **options)
        object.__setattr__(made, "__doc__", compare.__doc__)
        return made

    return decorate


class Witness(NamedTuple):
    """The first inequality that fails."""

    case: str
    n: int
    lhs: float
    rhs: float
    what: str = ""

    def __str__(self) -> str:
        return f"{self.case}: {Inequality(*self[1:])}"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The answer to a claim on one case.

    ``worst_ratio`` is the largest ``lhs / ((1 + rtol) rhs)``: at most 1 where the claim holds, NaN when nothing was
    compared.
    """

    claim: str
    case: str
    verdict: str
    worst_ratio: float
    compared: int  # inequalities that were tested
    witness: Witness | None = None
    failed: tuple[str, ...] = ()  # assumptions that do not hold
    tested: tuple[str, ...] = ()  # what was compared, by the labels of inequalities
    untested: tuple[str, ...] = ()  # labels of which there was nothing but rounding to compare


def check(claim: Claim, case: Any, *, check_assumptions: bool = True) -> Verdict:
    """Check a claim on a case.

    Parameters
    ----------
    claim : Claim
        What is claimed.
    case : Case, or whatever the claim takes
        Where; its ``name`` is reported.
    check_assumptions : bool, default True
        With False the inequalities are tested even where the claim does not speak: to see what goes wrong there.

    Returns
    -------
    Verdict
        With the worst ratio, and a witness when violated.
    """
    name = getattr(case, "name", str(case))
    failed = tuple(claim.assumptions(case)) if check_assumptions else ()
    common = {"claim": claim.name, "case": name, "failed": failed}
    if failed:
        return Verdict(verdict="outside assumptions", worst_ratio=math.nan, compared=0, **common)
    inequalities = list(claim.compare(case))
    # Written so that NaN is never taken for rounding.
    tested = [q for q in inequalities if not 0 < q.lhs <= q.rounding]
    ratios = [_ratio(q, claim.rtol) for q in tested]
    common |= {"worst_ratio": max(ratios, default=math.nan), "compared": len(tested)}
    labels = dict.fromkeys(q.what for q in tested)
    rounded = dict.fromkeys(q.what for q in inequalities if q.what not in labels)
    common |= {"tested": tuple(labels), "untested": tuple(rounded)}
    fails = next((q for q, ratio in zip(tested, ratios, strict=True) if ratio > 1), None)
    if fails is not None:
        return Verdict(verdict="violated", witness=Witness(name, *fails[:4]), **common)
    if not tested:
        return Verdict(verdict="inconclusive", **common)
    says_something = inequalities[-1].rhs < claim.trivial(case)
    return Verdict(verdict="holds" if says_something else "vacuous", **common)


def _ratio(q: Inequality, rtol: float) -> float:
    """Return lhs/((1 + rtol) rhs); infinite if lhs is not finite, or rhs is not a number or not positive."""
    if q.lhs == 0 and q.rhs >= 0:
        return 0.0
    if not math.isfinite(q.lhs) or not q.rhs > 0:
        return math.inf
    return (q.lhs - q.rounding) / ((1.0 + rtol) * q.rhs)
