"""The least factor per round that a quadratic Lyapunov function proves, in the mean over all that may happen."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from dualopt.arrays._checks import require
from dualopt.lab.proofs._exact import as_proof
from dualopt.lab.proofs._formal import with_room
from dualopt.lab.proofs._lyapunov import Lyapunov, LyapunovProgram
from dualopt.lab.proofs._promised import claimed_factor
from dualopt.lab.proofs._quadratics import lower_bound
from dualopt.lab.proofs._round import OneRound, one_round
from dualopt.lab.proofs._setting import Setting
from dualopt.methods import Algorithm
from dualopt.solvers.stopping import GradientReduction
from dualopt.spec import Spec

__all__ = ["Rate", "prove"]

NEAR_ONE = 1.0 - 1e-6
NEARLY = 1e-3
"""How near to 1 a factor is as good as none, where curvatures are not bounded: rounding may carry it over 1."""
ROOM = 1e-6
"""By how much, relatively, a proof may be below what happens: rounding."""


@dataclass(frozen=True)
class Rate:
    """A factor per round of the mean of a Lyapunov function, with what proves it.

    Attributes
    ----------
    factor : float
        The least one that was found; infinite where no factor below 1 is provable with such a function.
    lower_bound : float or None
        Some quadratic clients are as slow as that: none is below; None where there are too many clients for the search.
    slowest : tuple of float
        The curvatures of these clients, and of the regulariser; of a class of compressors, some are as bad for them.
    claimed : float or None
        The least factor that a theorem of the method promises for a potential of its own, made of squares of distances.
    asymptotic : bool
        Whether it is about late rounds: numbers in the states, such as momentum, are taken at their limits.
    lyapunov : tuple of (tuple of str, array)
        V, a quadratic form in the means of states and messages, and for each class of clients one in the deviations
        from them: vectors less their values at the fixed point, and their weights.
    heights : tuple of float
        With ``memory``, the weights in V of f_j(x) - f_j* - <grad f_j*, x - theta*> at the latest points, by class.
    multipliers : array
        Those of the inequalities between points, in their order.
    setting : Setting
        What it is about.
    """

    factor: float
    lower_bound: float | None
    slowest: tuple[float, ...]
    claimed: float | None
    asymptotic: bool
    lyapunov: tuple[tuple[tuple[str, ...], np.ndarray], ...]
    heights: tuple[float, ...]
    multipliers: np.ndarray
    setting: Setting

    @property
    def proved(self) -> bool:
        """Whether a factor below 1 was found."""
        return math.isfinite(self.factor)

    def __str__(self) -> str:
        """Return the sentence."""
        late = ", in late rounds" if self.asymptotic else ""
        if self.proved:
            return f"proved: the mean of V falls by a factor of {self.factor:.6f} per round{late}"
        clients = ", ".join(f"{h:g}" for h in self.slowest[: self.setting.n_clients])
        clients += "".join(f" and a regulariser of {h:g}" for h in self.slowest[self.setting.n_clients :])
        if self.lower_bound is not None and not self.setting.bounded and abs(self.lower_bound - 1.0) < NEARLY:
            least = math.floor(1e4 * min(self.lower_bound, 1.0 - 1e-5)) / 1e4
            least = f"no factor below {least} is provable: such are quadratic clients of curvatures {clients}"
            return f"{least}, and curvatures are not bounded here"
        if self.lower_bound is not None and self.lower_bound >= 1.0:
            word = "diverges on" if self.lower_bound > 1.0 + 1e-9 else "does not converge on"
            return f"{word} quadratic clients of curvatures {clients}"
        return "not provable with a quadratic Lyapunov function of this kind"

    def proof(self, *, slack: float = 1e-5) -> dict[str, Any]:
        """Return a proof in rational numbers, as an object of JSON that :func:`check_proof` believes without solving.

        Parameters
        ----------
        slack : float, default 1e-5
            By how much the factor of the proof may exceed ``factor``: room for rounding.

        Raises
        ------
        ValueError
            If no factor was found, or the method does not compute in rational numbers.
        RuntimeError
            If the solution is too close to the boundary of what is a proof.

        Examples
        --------
        >>> prove("gradient-descent: step=0.5", mu=1, L=2).proof()["factor"]
        '12501/50000'
        """
        require(self.proved, "proof must be of a rate that was found", self.factor)
        require(0 < slack < 1, "slack must lie between 0 and 1", slack)
        require(self.setting.regulariser is None, "proof must be without a regulariser: the checker knows of none")
        system = one_round(self.setting.in_rationals(), memory=bool(self.heights))
        factor = Fraction(math.ceil(round((self.factor + slack) * 1e5, 6)), 10**5)
        found = LyapunovProgram(system).at(float(factor))
        found = None if found is None else LyapunovProgram(system, found.least / 2).at(float(factor))
        if found is None:
            raise RuntimeError("the solver leaves no room for rounding; try a larger slack.")
        return as_proof(self.setting, system, factor, found)

    def proof_text(self, *, slack: float = 1e-5) -> str:
        """Return the proof as text of JSON, a line for each of its parts."""
        lines = (f"{json.dumps(key)}: {json.dumps(part)}" for key, part in self.proof(slack=slack).items())
        return "{\n" + ",\n".join(lines) + "\n}\n"

    def to_json(self) -> dict[str, Any]:
        """Return all of it in terms of JSON."""
        s = self.setting
        return {
            "method": Spec.of(s.algorithm, full=True).to_json(),
            "mu": list(s.mu),
            "L": [x if math.isfinite(x) else "inf" for x in s.L],
            "weights": s.weights and list(s.weights),
            "regulariser": s.regulariser,
            "inexact": s.inexact,
            **({"compressor": {type(s.compressor).__name__.lower(): asdict(s.compressor)}} if s.compressor else {}),
            "participation": None if s.participation is None else Spec.of(s.participation).to_json(),
            "sentence": str(self),
            "factor": self.factor if self.proved else None,
            "lower_bound": self.lower_bound,
            "slowest": list(self.slowest),
            "claimed": self.claimed,
            "asymptotic": self.asymptotic,
            "lyapunov": [{"vectors": list(names), "weights": P.tolist()} for names, P in self.lyapunov],
            "heights": list(self.heights),
            "multipliers": self.multipliers.tolist(),
        }


def prove(
    algorithm: Algorithm | str,
    *,
    mu: float | Sequence[float],
    L: float | Sequence[float],
    clients: int | None = None,
    participation: Any = None,
    weights: Sequence[float] | None = None,
    memory: bool | None = None,
    tolerance: float = 1e-5,
    regulariser: float | None = None,
    inexact: bool = False,
    compressor: Any = None,
    dimension: int | None = None,
    literal: bool = False,
) -> Rate:
    r"""Return the least factor per round that is provable of a method, from its own code.

    One round runs in formal coordinates from the most general state near the fixed point that the method can reach. A
    **Lyapunov function** V is sought, a quadratic form in the state, and multipliers :math:`\lambda \ge 0`, with

    .. math::
        \rho V - \mathbb E\,V^+ - \sum_i\lambda_i\,(\text{inequality}_i) \text{ a sum of squares}, \qquad V \ge c|y|^2,

    y everything in the state on which the model or later questions to the clients depend: a semidefinite program for
    each :math:`\rho`, the least of which is found by bisection. It proves :math:`\mathbb E|\theta^n - \theta^*|^2 \le
    C\rho^n` for all federations of the class, from the first round on, to the tolerance of the solver.

    Parameters
    ----------
    algorithm, mu, L, clients, participation, weights, regulariser, inexact, compressor, dimension, literal
        As in :func:`worst_case`.
    memory : bool, optional
        Whether V has the points too where the clients were asked last, and the values of the functions there:
        accelerated methods need them. When not given, it has them where there is a better factor with them.
    tolerance : float, default 1e-5
        Of the bisection.

    Returns
    -------
    Rate

    Raises
    ------
    ValueError
        If an argument is out of range; if the method is not linear algebra on vectors, has numbers in its states that
        do not settle, or does not have the minimiser as a fixed point.
    RuntimeError
        If the solver of the semidefinite programs is too inexact.
    ImportError
        Without CVXPY.

    Examples
    --------
    FedDyn with two of four clients; Theorem A promises a factor of 0.739 for a potential of its own:

    >>> from dualopt import UniformSubset
    >>> found = prove("feddyn", mu=1, L=10, clients=4, participation=UniformSubset(size=2), tolerance=1e-4)
    >>> round(found.lower_bound, 3) <= round(found.factor, 3) <= round(found.claimed, 3)
    True
    """
    require(0 < tolerance < 1, "tolerance must lie between 0 and 1", tolerance)
    setting = Setting.of(
        *(algorithm, mu, L, clients, participation, weights, regulariser),
        **{"inexact": inexact, "compressor": compressor, "dimension": dimension, "literal": literal},
    )
    stop: Any = setting.algorithm.stop
    alike = not inexact or isinstance(stop, GradientReduction)
    require(alike, "stop must be the rule 'reduction', relative to where solvers start, for a factor per round", stop)
    with_room(lambda dimension: setting.require_linear(dimension=dimension))
    (bound, slowest), wrong = lower_bound(setting), math.inf
    if inexact:  # whose own first round has another accuracy
        one_round(replace(setting, inexact=False))
    best: tuple[float, Lyapunov | None, OneRound] | None = None
    for own in (False, True) if memory is None else (memory,):
        system = one_round(setting, memory=own)
        found, factor = _least(system, tolerance, bound)
        if bound is not None and factor < bound * (1.0 - ROOM):
            wrong = factor
        elif best is None or factor < best[0] - 2 * tolerance:
            best = factor, found, system
            if bound is not None and factor <= bound + tolerance:
                break  # some clients are as slow
    if best is None:
        raise RuntimeError(
            f"the solver is too inexact here: it found {wrong:.6g}, and a run is as slow as {bound:.6g}."
        )
    factor, found, system = best
    return Rate(
        factor=factor,
        lower_bound=bound,
        slowest=slowest,
        claimed=None if inexact else claimed_factor(setting),
        asymptotic=setting.limits.late,
        lyapunov=() if found is None else tuple(zip(system.names, found.weights, strict=True)),
        heights=() if found is None else tuple(found.heights.tolist()),
        multipliers=np.zeros(0) if found is None else found.multipliers,
        setting=setting,
    )


def _least(system: OneRound, tolerance: float, bound: float | None) -> tuple[Lyapunov | None, float]:
    """Return the least factor with a Lyapunov function, and that function; infinity where there is none below 1.

    Where some clients are as slow as ``bound`` it is looked for above: that nothing is found below is verified.
    """
    lyapunov = LyapunovProgram(system)
    low, high, best = 0.0, NEAR_ONE, None
    if bound is not None and bound + tolerance < NEAR_ONE:
        low, high = bound, bound + tolerance
        best = lyapunov.at(high)
        below = bound * (1.0 - ROOM) - tolerance
        if best is not None and below > 0.0 and lyapunov.at(below) is not None:
            return best, below
    if best is None:
        high = NEAR_ONE
        best = lyapunov.at(high)
    if best is None:
        return None, math.inf
    while high - low > (1.0 + ROOM) * tolerance:
        middle = (low + high) / 2
        found = lyapunov.at(middle)
        low, high, best = (low, middle, found) if found is not None else (middle, high, best)
    return best, high
