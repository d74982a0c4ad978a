"""The measured problems of `which_method`, and what every method may spend on one of them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

from dualopt.methods.participation import Participation, as_participation
from dualopt.objectives import Objective
from dualopt.problem.build import build_problem
from dualopt.problem.data._files import home
from dualopt.problem.options import ProblemOptions
from dualopt.regularisers import Zero
from dualopt.runs.certificates import certificate
from dualopt.runs.reference import NotOptimalError, newton, solve
from dualopt.solvers._loop import is_smooth
from figures._settings import Settings

__all__ = ["GROUPS", "Case", "Limits", "Reference", "built", "cases"]

GROUPS = {
    "everybody": "Everybody takes part, smooth losses",
    "condition": "The same digits, well and badly conditioned",
    "few": "A few clients take part",
    "kinks": "Losses with kinks",
    "regularised": "An l1 regulariser",
}


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a method may spend on a problem, a client on average, before its cell is cut off.

    Parameters
    ----------
    vectors : float
        What a client sends, in units of the model.
    gradients : float
        Local gradients of a client.
    seconds : float
        CPU time of the method and of its measurements.
    """

    vectors: float = 200.0
    gradients: float = 1000.0
    seconds: float = 40.0


@dataclass(frozen=True, kw_only=True)
class Case:
    """A measured problem.

    Parameters
    ----------
    name : str
        Its name in the tables.
    group : str
        The table it is in, a key of ``GROUPS``.
    options : ProblemOptions
        What ``dualopt run`` builds it from.
    participation : str
        Who takes part, as ``dualopt run`` takes it.
    limits : Limits
        What a method may spend.
    accuracy : float
        The relative error at which a run ends.
    """

    name: str
    group: str
    options: ProblemOptions
    participation: str = "full"
    limits: Limits = field(default_factory=Limits)
    accuracy: float = 1e-10

    @property
    def parsed(self) -> Participation:
        """Who takes part."""
        return as_participation(self.participation)

    def described(self) -> dict[str, Any]:
        """Return everything that defines the measurements, as it is stored with them."""
        options = {key: str(value) for key, value in asdict(self.options).items() if key != "data_home"}
        limits = asdict(self.limits) | {"accuracy": self.accuracy}
        return {"options": options, "participation": self.participation, "limits": limits}


def cases(settings: Settings) -> list[Case]:
    """Return the problems in the order in which they are measured, the expensive ones last.

    a9a, MNIST (6,000 rows) and news20 are in the user's folder of data sets and left out without one. Whoever names
    another data set than digits gets that one alone, in one problem for each group.
    """
    if settings.data != "digits":
        return list(_of_one(settings))
    found = list(_embedded())
    if not settings.quick and home(settings.data_home) is not None:
        found += _in_folder()
    shared: dict[str, Any] = {"data_home": settings.data_home, "client_weights": "rows", "seed": 0}
    return [replace(case, options=replace(case.options, **shared)) for case in found]


def _both(name: str, group: str, limits: Limits | None = None, **options: Any) -> Iterable[Case]:
    """Return a problem with rows sorted by label, and with rows dealt out at random."""
    for words, partition in (("by label", "by-label"), ("at random", "iid")):
        chosen = ProblemOptions(**options, partition=partition)
        yield Case(name=name.format(words), group=group, options=chosen, limits=limits or Limits())


def _embedded() -> Iterable[Case]:
    """Yield the problems whose data come with scikit-learn or are drawn at random."""
    yield from _both("digits, {}", "everybody", data="digits")
    yield from _both("breast cancer, {}", "everybody", data="breast_cancer")
    small: dict[str, Any] = {"data": "synthetic-logistic", "data_param": ["m=800", "d=5"]}
    yield from _both("five features, {}", "everybody", **small)
    hard = Limits(vectors=400.0, gradients=5000.0)
    for mu, limits in ((1e-1, Limits()), (1e-3, hard), (1e-4, hard)):
        name = f"digits, {{}}, mu = {mu:.0e}".replace("e-0", "e-")
        yield from _both(name, "condition", limits, data="digits", mu=mu)
    flat: dict[str, Any] = {"data": "breast_cancer", "loss": "squared", "mu": 0.0}
    yield from _both("breast cancer, {}, squares, mu = 0", "condition", **flat)
    uneven: dict[str, Any] = {"data": "digits", "partition": "dirichlet", "alpha": 0.3}
    for clients, active in ((20, 2), (20, 10), (50, 5)):
        name = f"digits, Dirichlet 0.3, {active} of {clients}"
        options = ProblemOptions(**uneven, clients=clients)
        yield Case(name=name, group="few", options=options, participation=f"subset={active}")
    for case in _both("digits, {}, 5 of 50", "few", data="digits", clients=50):
        yield replace(case, participation="subset=5")
    unequal: dict[str, Any] = {"data": "digits", "partition": "lognormal", "sigma": 1.5, "clients": 20}
    name = "digits, log-normal sizes"
    yield Case(name=name, group="everybody", options=ProblemOptions(**unequal))
    yield Case(name=f"{name}, 2 of 20", group="few", options=ProblemOptions(**unequal), participation="subset=2")
    yield from _both("digits, {}, l1 = 1e-3", "regularised", data="digits", regulariser="l1=1e-3")
    for case in _both("breast cancer, {}, l1 = 1e-2, 2 of 20", "regularised", **_SPARSE):
        yield replace(case, participation="subset=2")
    long = Limits(vectors=1000.0, gradients=10_000.0, seconds=10.0)
    yield from _both("breast cancer, {}, hinge", "kinks", long, **_HINGE)
    numbers = ProblemOptions(**_NUMBERS, partition="by-label")
    yield Case(name="digits, by label, absolute deviation", group="kinks", options=numbers, limits=long)
    few = ProblemOptions(**_HINGE, clients=20, partition="by-label")
    name = "breast cancer, by label, hinge, 2 of 20"
    yield Case(name=name, group="kinks", options=few, participation="subset=2", limits=long)


_HINGE: dict[str, Any] = {"data": "breast_cancer", "loss": "hinge"}
_NUMBERS: dict[str, Any] = {"data": "digits", "loss": "absolute-deviation", "rows": 400}
_SPARSE: dict[str, Any] = {"data": "breast_cancer", "regulariser": "l1=1e-2", "clients": 20}


def _in_folder() -> Iterable[Case]:
    """Yield the problems whose data the user has, the expensive ones last."""
    a9a: dict[str, Any] = {"data": "a9a", "mu": 1e-3, "storage": "dense"}
    yield from _both("a9a, {}", "everybody", **a9a, clients=10)
    for case in _both("a9a, {}, 5 of 50", "few", **a9a, clients=50):
        yield replace(case, participation="subset=5")
    yield from _both("MNIST, {}", "everybody", Limits(seconds=40.0), data="mnist", rows=6000)
    words: dict[str, Any] = {"data": "news20", "scale": "unit-rows", "intercept": False, "clients": 10}
    yield from _both("news20, {}", "everybody", **words, mu=1e-3)


def _of_one(settings: Settings) -> Iterable[Case]:
    shared: dict[str, Any] = {"data": settings.data, "data_home": settings.data_home, "rows": settings.rows}
    shared |= {"client_weights": "rows", "seed": 0}
    name = settings.whole.name
    yield from _both(f"{name}, {{}}", "everybody", **shared, clients=4)
    few = ProblemOptions(**shared, clients=8, partition="by-label")
    yield Case(name=f"{name}, by label, 2 of 8", group="few", options=few, participation="subset=2")
    sparse = ProblemOptions(**shared, clients=4, regulariser="l1=1e-2")
    yield Case(name=f"{name}, l1 = 1e-2", group="regularised", options=sparse)


class Reference(NamedTuple):
    """The least energy, with the bound of its relative error; 0 where there is none, as the gradient alone is checked.

    That is where ``mu = 0``. The bound is that of exact arithmetic: what rounding may do to sums of a million terms is
    proven to 5e-10 only (news20), and is about 1e-15.
    """

    energy: float
    error: float


def built(case: Case) -> tuple[Objective, Reference | None]:
    """Return the objective of a problem and its least energy; those of the last problem are kept."""
    if _LATEST.get("case") != repr(case):
        objective = build_problem(case.options).objective
        _LATEST.update(case=repr(case), built=(objective, reference(objective)))
    return _LATEST["built"]


_LATEST: dict[str, Any] = {}


def reference(objective: Objective) -> Reference | None:
    """Return the minimum of ``E + g``, None where no certified one is found."""
    smooth = is_smooth(objective) and objective.regulariser == Zero()
    try:
        found = newton(objective, tol=1e-13) if smooth else solve(objective)
    except (NotOptimalError, ModuleNotFoundError):
        return None
    if not found.is_positive:
        return None
    gap = found.gap - (certificate(objective, found.theta).rounding if smooth else 0.0)
    return Reference(found.energy, gap / found.energy if math.isfinite(gap) else 0.0)
