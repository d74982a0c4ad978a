"""The parameters of a method with the least factor that is proved: those of a theorem, or found by a search."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dualopt.arrays._checks import require
from dualopt.arrays.xp import to_numpy
from dualopt.engine.rounds import resolve, with_objects
from dualopt.lab.proofs._formal import with_room
from dualopt.lab.proofs._program import program
from dualopt.lab.proofs._promised import promised
from dualopt.lab.proofs._quadratics import lower_bound
from dualopt.lab.proofs._rates import Rate, prove
from dualopt.lab.proofs._round import one_round
from dualopt.lab.proofs._setting import Setting
from dualopt.methods import Algorithm, Known, parameters
from dualopt.methods._base import with_participation
from dualopt.objectives import Objective
from dualopt.regularisers import Zero
from dualopt.solvers import Gradient
from dualopt.spec import Spec

__all__ = ["ProvedBest", "class_of", "fastest", "proved_best", "with_numbers"]

EDGE = 0.25
"""Of the first simplex of a search, in logarithms."""
EVALUATIONS = 60
"""Most of a search, for each parameter."""
CLOSE = (1e-3, 2e-4)
"""Where a search ends: the distance of the numbers, and that of log(1 - factor)."""
NEVER = 40.0
"""More than -log(1 - factor) of any factor below 1."""
DIGITS = 6
"""Of a number that a search finds."""
GAIN = 2e-3
"""By how much, relatively, 1 - factor must be larger for one set of parameters to be better than another."""
STEP = "solver.step"


@dataclass(frozen=True)
class ProvedBest:
    """Parameters of a method, and the factor per round that is proved of them.

    Attributes
    ----------
    algorithm : Algorithm
        The method with these parameters, and the others as they were given.
    parameters : dict
        The numbers that were open, by name; ``solver.step`` is that of the gradient steps.
    factor : float
        Of the mean of a Lyapunov function, per round.
    source : str
        The theorem that says it; empty where it is proved by :func:`prove` for this class of problems alone.
    suggested : float or None
        The factor with the parameters that the method suggests; None where none is proved.
    setting : Setting
        What it is about.
    """

    algorithm: Algorithm
    parameters: dict[str, float]
    factor: float
    source: str
    suggested: float | None
    setting: Setting

    def __str__(self) -> str:
        """Return one line: the parameters, the factor, its conditions."""
        s = self.setting
        numbers = ", ".join(f"{name} = {x:.6g}" for name, x in self.parameters.items())
        late = ", in late rounds" if self.setting.limits.late else ""
        source = self.source or "proved for this class alone"
        before = "none is proved" if self.suggested is None else f"it is {self.suggested:.6f}"
        before = "as suggested" if self.suggested == self.factor else f"{before} as suggested"
        who = "full" if s.participation is None else str(Spec.of(s.participation))
        weights = "" if s.weights is None else " with their weights"
        g = "" if s.regulariser is None else ", any convex regulariser"
        local = "local solutions as the rule demands" if s.inexact else "local problems solved exactly"
        return (
            f"{numbers}: the mean of V falls by a factor of {self.factor:.6f} per round{late} ({source}; {before}), "
            f"for {s.n_clients} clients{weights} of any curvatures from {min(s.mu):.6g} to {max(s.L):.6g}{g}, {who}, "
            f"{local}"
        )

    def to_json(self) -> dict[str, Any]:
        """Return it in terms of JSON."""
        names = ("parameters", "factor", "source", "suggested")
        return {name: getattr(self, name) for name in names} | {"sentence": str(self)}


def class_of(objective: Objective) -> dict[str, Any]:
    """Return the class of an objective as :func:`prove` takes it: all clients with the least mu and the greatest L.

    Examples
    --------
    >>> from dualopt import Quadratic
    >>> f = Quadratic(A=np.array([[[1.0]], [[4.0]]]), b=np.zeros((2, 1)))
    >>> class_of(f)
    {'mu': 1.0, 'L': 4.0, 'clients': 2, 'weights': None, 'regulariser': None}
    """
    return {
        "mu": float(to_numpy(objective.mu).min()),
        "L": float(to_numpy(objective.L).max()),
        "clients": objective.n_clients,
        "weights": None if objective.shares is None else tuple(objective.weights or ()),
        "regulariser": None if objective.regulariser == Zero() else 0.0,
    }


def proved_best(
    algorithm: Algorithm | str,
    *,
    mu: float | Sequence[float],
    L: float | Sequence[float],
    clients: int | None = None,
    participation: Any = None,
    weights: Sequence[float] | None = None,
    regulariser: float | None = None,
    inexact: bool = False,
) -> ProvedBest:
    """Return the method with the best parameters that are proved of it on a class of problems.

    All numbers that are left open are chosen, beside ``suggested``, which asks no more than closed forms: first those
    are sought for which the slowest quadratic clients are fastest, by Nelder and Mead's method from what is suggested.
    Where a theorem's parameters reach them, it is these, with the factor of the theorem. Otherwise :func:`prove` tells
    what is proved, and the search goes on for its factor. Parameters that gain less than two thousandths of the
    rounds count for no better, so that those suggested stay. The search is local, and others may be better.

    Parameters
    ----------
    algorithm, mu, L, clients, participation, weights, regulariser, inexact
        As in :func:`prove`; of an objective, ``**class_of(objective)``.

    Returns
    -------
    ProvedBest

    Raises
    ------
    ValueError
        If the method has no number open, or nothing is proved of it, and wherever :func:`prove` refuses.
    RuntimeError
        If the solver of the semidefinite programs is too inexact.
    ImportError
        Without CVXPY.

    Examples
    --------
    For everybody Theorem B has the best weight of FedADMM; for half of four clients a heavier one has a factor that is
    below that of the theorem, 0.789:

    >>> proved_best("fedadmm", mu=1, L=9, clients=4).parameters
    {'rho': 3.0}
    >>> from dualopt import UniformSubset
    >>> found = proved_best("fedadmm", mu=1, L=10, clients=4, participation=UniformSubset(size=2))
    >>> found.parameters["rho"] > 10**0.5, bool(found.factor < 0.783), found.source
    (True, True, '')
    """
    program()
    given = {"mu": mu, "L": L, "clients": clients, "participation": participation, "weights": weights}
    return _Search(algorithm, given | {"regulariser": regulariser}, inexact=inexact).found()


def fastest(value: Callable[[np.ndarray], float], origin: Sequence[float], evaluations: int = EVALUATIONS) -> Any:
    """Return where a factor per round is least near ``origin``, by Nelder and Mead's method."""
    from scipy.optimize import minimize  # CVXPY needs SciPy too

    x = np.asarray(origin, dtype=float)
    simplex = np.concatenate([x[None, :], x + EDGE * np.eye(x.size)])
    options = {"maxfev": evaluations, "xatol": CLOSE[0], "fatol": CLOSE[1], "initial_simplex": simplex}
    with np.errstate(invalid="ignore"):  # inf - inf, of members that there are not
        return minimize(lambda y: _rounds(value(y)), x, method="Nelder-Mead", options=options).x


def _rounds(factor: float) -> float:
    """Return the logarithm of the rounds that a factor near 1 takes, up to a constant; more where there is no end.

    >>> round(_rounds(0.99) - _rounds(0.9), 6), _rounds(2.0)
    (2.302585, 42.0)
    """
    return -math.log(1.0 - factor) if factor < 1.0 else NEVER + factor


class _Search:
    """The members of a method: all numbers that its open parameters can have."""

    def __init__(self, algorithm: Algorithm | str, given: dict[str, Any], *, inexact: bool) -> None:
        self.given, self.inexact = given, inexact
        begin = self.setting(algorithm)
        require(begin.bounded, "mu and L must be positive and finite where parameters shall be proved best")
        self.who, self.clients = begin.participation, begin.world(1)
        with_room(lambda dimension: begin.require_linear(dimension=dimension))
        self.template = with_objects(algorithm, self.clients)
        self.names = self._open(begin.algorithm)
        kind = type(self.template).__name__
        require(self.names, f"algorithm {kind} has no number open that could be chosen as proved best")
        self.begin = begin
        one_round(begin)  # refuses what is not provable of any member

    def setting(self, algorithm: Algorithm | str) -> Setting:
        """Return a member on the class of problems."""
        return Setting.of(algorithm, **self.given, inexact=self.inexact)

    def _open(self, complete: Algorithm) -> list[str]:
        """Return the parameters that suggestions fill in with numbers, other than those of the participation."""
        known = with_participation(self.template, self.clients, self.who)
        found = [n for n in parameters(type(known)) if getattr(known, n) is None and _is_float(getattr(complete, n))]
        steps = complete.solver
        if isinstance(steps, Gradient) and _is_float(steps.step) and getattr(known.solver, "step", None) is None:
            found.append(STEP)
        return found

    def member(self, x: np.ndarray) -> Algorithm:
        """Return the method with e^x times what is suggested for each number, given those before it."""
        found = self.template
        for name, u in zip(self.names, x, strict=False):
            value = _number(resolve(found, self.clients, self.who), name)
            found = with_numbers(found, {name: float(f"{value * math.exp(u):.{DIGITS}g}") if u else value})
        return found

    def bound(self, method: Algorithm) -> float:
        """Return the factor of the slowest quadratic clients; infinite where a parameter is out of range."""
        setting = self.setting(method)
        try:
            setting.algorithm.check(self.clients)
            found, _ = lower_bound(setting)
        except ValueError:
            return math.inf
        return -math.inf if found is None else found

    def rate(self, method: Algorithm, memory: bool | None = None) -> Rate | None:
        """Return what is proved of a member, if something is, with points and values in V or without them."""
        try:
            self.setting(method).algorithm.check(self.clients)
            bound = max(0.0, self.bound(method))
            tolerance = min(1e-5, GAIN / 5 * (1.0 - bound)) if bound < 1.0 else 1e-5
            found = prove(method, **self.given, memory=memory, inexact=self.inexact, tolerance=tolerance)
        except (ValueError, RuntimeError):
            return None
        return found if found.proved else None

    def promise(self, method: Algorithm) -> tuple[float, str]:
        """Return the least factor that a theorem promises for a potential of its own, and the theorem's name."""
        if self.inexact:
            return math.inf, ""
        setting = self.setting(method)
        found = promised(setting.algorithm, Known.of(self.clients, self.who))
        own = [(factor, t.source or "the method's theorem") for t, factor in found if t.potential is not None]
        return min(own, default=(math.inf, ""))

    def judged(self, method: Algorithm) -> tuple[float, str]:
        """Return the least factor that is proved of a member, and by what; the theorem where it is as good."""
        promise, source = self.promise(method)
        if not _gains(self.bound(method), promise):
            return promise, source  # some clients attain it
        rate = self.rate(method)
        factor = math.inf if rate is None else rate.factor
        return (factor, "") if _gains(factor, promise) else (promise, source)

    def candidates(self) -> list[Algorithm]:
        """Return the member that is suggested, and those that theorems for such clients and cohorts have as best."""
        known, found = Known.of(self.clients, self.who), {self._numbers(self.template): self.template}
        for theorem in self.template.theorems:
            about = theorem.concerns(self.begin.algorithm, known) and known.law.name in theorem.laws.names
            if about and theorem.best is not None:
                best = {name: x for name, x in theorem.best(known).items() if name in self.names}
                member = with_numbers(self.template, best)
                found.setdefault(self._numbers(member), member)
        return list(found.values())

    def _numbers(self, method: Algorithm) -> tuple[float, ...]:
        """Return the numbers of a member in their order."""
        complete = self.setting(method).algorithm
        return tuple(_number(complete, name) for name in self.names)

    def best_of(self, value: Callable[[Algorithm], float], x: np.ndarray) -> np.ndarray:
        """Return where a value is least near x: first the first number alone, on which the others depend."""
        for size in sorted({1, len(self.names)}):
            y = fastest(lambda y: self._at(y, value), x[:size].tolist(), EVALUATIONS * size)
            x = np.concatenate([y, x[size:]])
        return x

    def _at(self, x: np.ndarray, value: Callable[[Algorithm], float]) -> float:
        """Return the value of a member; infinity where a parameter would be out of range."""
        try:
            return value(self.member(x))
        except (ValueError, OverflowError):
            return math.inf

    def found(self) -> ProvedBest:
        """Return the best member."""
        some, x = self.candidates(), np.zeros(len(self.names))
        least = -math.inf
        if math.isfinite(self.bound(self.template)):
            x = self.best_of(self.bound, x)
            some.append(self.member(x))
            least = min(map(self.bound, some))
        judged = [self.judged(method) for method in some]
        k = _first_best(judged)
        if _gains(least, judged[k][0]):  # perhaps others are better, on which all clients are as fast
            rate = self.rate(some[k])
            memory = rate is not None and bool(rate.heights)  # twice as fast as both ways
            x = self.best_of(lambda m: self._factor(m, memory=memory), x if k == len(some) - 1 else np.zeros_like(x))
            some.append(self.member(x))
            judged.append(self.judged(some[-1]))
            k = _first_best(judged)
        (factor, source), suggested = judged[k], judged[0][0]
        kind = type(self.template).__name__
        require(factor < 1.0, f"algorithm {kind} has no proved best parameters here: no factor below 1 was proved")
        chosen = dict(zip(self.names, self._numbers(some[k]), strict=True))
        algorithm = with_numbers(self.template, chosen)
        before = suggested if suggested < 1.0 else None
        return ProvedBest(algorithm, chosen, factor, source, before, self.setting(algorithm))

    def _factor(self, method: Algorithm, *, memory: bool) -> float:
        rate = self.rate(method, memory)
        return math.inf if rate is None else rate.factor


def _gains(factor: float, other: float) -> bool:
    """Tell whether a factor takes fewer rounds than another one, by more than two thousandths.

    >>> _gains(0.9, 0.91), _gains(0.90001, 0.90002), _gains(0.5, math.inf)
    (True, False, True)
    """
    return 1.0 - factor > (1.0 + GAIN) * (1.0 - other)


def _first_best(judged: Sequence[tuple[float, str]]) -> int:
    """Return the place of the best factor: a later one is better only if it gains."""
    best = 0
    for k, (factor, _) in enumerate(judged):
        if _gains(factor, judged[best][0]):
            best = k
    return best


def _is_float(x: Any) -> bool:
    return isinstance(x, float)


def _number(method: Any, name: str) -> float:
    """Return a parameter of a complete method."""
    return float(method.solver.step if name == STEP else getattr(method, name))


def with_numbers(method: Any, numbers: Mapping[str, float]) -> Algorithm:
    """Return the method with the parameters of a :class:`ProvedBest`.

    >>> from dualopt import Scaffnew
    >>> with_numbers(Scaffnew(), {"probability": 0.5, "solver.step": 0.1}).solver
    Gradient(step=0.1, max_iter=10000)
    """
    for name, x in numbers.items():
        steps = {"solver": replace(method.solver or Gradient(), step=x)} if name == STEP else {}
        method = replace(method, **(steps or {name: x}))
    return method
