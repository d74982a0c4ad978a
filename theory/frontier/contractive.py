r"""Deterministic compressors: gradient descent with a memory at both ends, and FedSplit.

A compressor *contracts by q* if :math:`|C(v) - v| \le q|v|` and :math:`q < 1`: rounding to b bits with :math:`q^2 =
\frac c{1 + c}`, :math:`c = \frac{d - 1}{4m^2}`, :math:`m = 2^{b-1} - 1`, and the k largest of d numbers with
:math:`q^2 = 1 - \frac kd`. It may be biased, and nothing need be random.

**Gradient descent with memory.** Client j and the server keep :math:`h_j`; in a round

.. math:: h_j \mathrel{+}= C\bigl(\nabla f_j(\theta) - h_j\bigr), \qquad \theta^+ = \theta - \frac sN\sum_jh_j.

Let E be L-smooth and :math:`\mu`-strongly convex, :math:`f_j` be :math:`L_j`-smooth, :math:`M^2 = \frac1N\sum_jL_j^2`,
:math:`e_j = \nabla f_j(\theta) - h_j` what has not arrived, and G the mean of :math:`|e_j|^2`. If

.. math:: sL + \frac{q^2 s^2M^2}{(1 - q)(1 - q - s\mu)} \le 1, \qquad s\mu < 1 - q, \tag{1}

then :math:`\Psi = E(\theta) - E^* + \frac s{2(1 - q - s\mu)}G` falls by the factor :math:`1 - s\mu` in every round:
what gradient descent itself guarantees for this step.

*Proof.* For :math:`d = \theta^+ - \theta = -s\bar h` and L-smooth E, with :math:`2\langle\nabla E, \bar h\rangle =
|\nabla E|^2 + |\bar h|^2 - |\nabla E - \bar h|^2` and :math:`|\nabla E - \bar h|^2 = |\bar e|^2 \le G`,

.. math:: E(\theta^+) \le E(\theta) - \frac s2|\nabla E|^2 - \Bigl(\frac1{2s} - \frac L2\Bigr)|d|^2 + \frac s2G,

and :math:`|\nabla E|^2 \ge 2\mu(E - E^*)`. The memory is compared with the gradient at the next point:
:math:`|e_j^+| \le q|\nabla f_j(\theta^+) - h_j| \le q(|e_j| + L_j|d|)`, so that by :math:`(a + b)^2 \le \frac{a^2}q +
\frac{b^2}{1 - q}`

.. math:: G^+ \le qG + \frac{q^2}{1 - q}M^2|d|^2.

With the weight :math:`A = \frac s{2(1 - q - s\mu)}` of G in :math:`\Psi`, :math:`\frac s2 + qA = (1 - s\mu)A`, and what
is left, :math:`\bigl(\frac{q^2M^2}{1 - q}A + \frac L2 - \frac1{2s}\bigr)|d|^2`, is not positive by (1). ∎

So **every** q < 1, that is every b from 2 on, has a step; for a given one (1) says how few bits are enough. The step is
nearly the largest: with one client, curvature L and :math:`C(v) = (1 + q)v`, the errors diverge from
:math:`s = \frac{2(1 - q)}{L(1 + q)}` on, and (1) admits 0.99 of that at q = 0.82, 0.86 at 0.38. The scheme for biased
compressors is called EF21 (Richtarik, Sokolov, Fatkhullin 2021; the paper was not at hand, the proof is this file's).

**FedSplit.** :math:`z_j \mathrel{+}= C(r_j)`, :math:`r = Tz - z`, for the operator T of a full round, which contracts
by :math:`\delta`. Then :math:`|z^+ - z^*| \le k\,|z - z^*|` with :math:`k = \delta + q(1 + \delta)`, for
:math:`z^+ - z^* = Tz - z^* + C(r) - r` and :math:`|r| \le (1 + \delta)|z - z^*|`. It is attained, where
:math:`Tz - z^* = -\delta(z - z^*)` and :math:`C(v) = (1 + q)v`, and less than 1 only for
:math:`q < \frac{1 - \delta}{1 + \delta}`, :math:`\frac1{\sqrt\kappa}` for the best step: unlike memory, it needs many
bits. Where client j is active with probability :math:`p_j`, under any law, idle ones keep :math:`z_j`, and
:math:`\mathbb E\sum_j|z_j^+ - z_j^*|^2/p_j \le (1 - \min_jp_j(1 - k^2))\sum_j|z_j - z_j^*|^2/p_j`, as in Theorem B.

Nothing of the kind is proved here of DualFL: errors of its uploads enter the duals, whose sum must vanish, and its
momentum adds them up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.engine.rounds import State, advance
from dualopt.lab.claims import Inequality, claim
from dualopt.methods import FedSplit, GradientDescent
from dualopt.methods._gradient_theorems import largest_step_with_memory
from dualopt.methods.compressors import Rounding, TopK
from dualopt.methods.participation import Round
from dualopt.objectives import Quadratic
from theory._cases import Case, accurately, everybody
from theory._claims import ROUNDING, ExpectedVerdict
from theory._problems import logistic, lopsided, quadratic, solved
from theory.baselines._runs import baseline_case, reflection, smooth_and_strongly_convex
from theory.baselines.contraction import fedsplit_errors, three_directions

ROUNDS = 60
NEARLY = 0.02  # how far the worst case is from what is claimed, of the step and of the factor


@dataclass(frozen=True, kw_only=True)
class Overshoot:
    """The worst compressor that contracts by ``q``: (1 + q) times everything arrives."""

    q: float
    unbiased: ClassVar[bool] = False
    example: ClassVar[dict[str, Any]] = {"q": 0.5}

    def omega(self, shape: tuple[int, ...], n_clients: int) -> float:
        """Return 0."""
        return 0.0

    def delta(self, shape: tuple[int, ...], n_clients: int) -> float:
        """Return ``1 - q^2``."""
        return 1.0 - self.q**2

    def compress(self, x: Array, round: Round) -> Array:
        """Return too much."""
        return (1.0 + self.q) * x

    def numbers(self, shape: tuple[int, ...], round: Round) -> int:
        """Return all of them."""
        return round.n_active * math.prod(shape)

    def bits(self, shape: tuple[int, ...], width: int, round: Round) -> int:
        """Return theirs."""
        return width * self.numbers(shape, round)


def factor_of(compressor: Any, case: Case) -> float:
    """Return q."""
    return math.sqrt(1.0 - compressor.delta(case.objective.shape, case.n_clients))


class Bounds:
    """What the theorem knows of the clients."""

    def __init__(self, case: Case) -> None:
        L = np.asarray(case.objective.L)
        self.mu, self.L = float(np.mean(case.objective.mu)), float(np.mean(L))
        self.M, self.q = math.sqrt(float(np.mean(L**2))), factor_of(case.compressor, case)

    def admits(self, s: float) -> bool:
        """Tell whether (1) holds, up to rounding."""
        room = 1.0 - self.q - s * self.mu
        return room > 0 and s * self.L + (self.q * s * self.M) ** 2 / ((1.0 - self.q) * room) <= 1.0 + 1e-9


def admitted(case: Case) -> list[str]:
    """Return what fails of the assumptions, for gradient descent."""
    fails = smooth_and_strongly_convex(case)
    return fails or ([] if Bounds(case).admits(case.algorithm.step) else ["a step that (1) admits"])


def memory_case(f: Case, compressor: Any, *, times: float = 1.0, attained: bool = False) -> Case:
    """Return gradient descent with ``times`` the largest step that (1) admits."""
    step = times * largest_step_with_memory(f.objective, compressor)
    note = f"{compressor}, {times:g} times the step"
    return baseline_case(f, GradientDescent(step=step), ROUNDS, note, attained=attained).but(compressor=compressor)


def steep(kappa: float) -> Case:
    """Return one client with curvature 1 and 1/kappa, which starts at its solution in the flat direction."""
    f = Quadratic(A=np.diag([1.0, 1.0 / kappa])[None], b=np.array([[1.0, 0.0]]))
    return solved(f"one steep direction (kappa={kappa:g})", f)


def memory_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Round to a few bits, send the largest numbers; the worst compressor, for which step and factor are attained."""
    for f in (quadratic(), lopsided(), *(() if quick else (logistic(),))):
        for b in (2, 4, 6):
            yield ExpectedVerdict(memory_case(f, Rounding(digits=b)))
        yield ExpectedVerdict(memory_case(f, TopK(size=1)))
        yield ExpectedVerdict(memory_case(f, Rounding(digits=4), times=0.5))
    for q in (0.38, 0.82):
        yield ExpectedVerdict(memory_case(steep(1000.0), Overshoot(q=q), attained=q > 0.8))
    yield ExpectedVerdict(memory_case(steep(1000.0), Overshoot(q=0.82), times=1.02), "outside assumptions")


@claim(
    source="EF21 (recalled); the proof is new",
    statement=r"Gradient descent whose clients upload $C(\nabla f_j(\theta) - h_j)$, where $|C(v) - v| \le q|v|$ and"
    r" $sL + \frac{q^2s^2M^2}{(1 - q)(1 - q - s\mu)} \le 1$:"
    r" $E - E^* + \frac s{2(1 - q - s\mu)}\frac1N\sum_j|\nabla f_j - h_j|^2$ falls by the factor $1 - s\mu$ per"
    r" round. Every $q < 1$ has such a step, which is within 2 percent of the largest with which it converges at"
    r" $q = 0.82$.",
    assumptions=admitted,
    rtol=ROUNDING,
    cases=memory_cases,
)
def gradient_descent_with_memory(case: Case) -> Iterator[Inequality]:
    """Gradient descent with compressed differences of gradients: it contracts, to the solution itself.

    Compare the potential before and after every round; where the case is attained also the factor with the largest
    fall in the last rounds, and the errors of a longer step, which must not fall.
    """
    known, s = Bounds(case), case.algorithm.step
    factor = 1.0 - s * known.mu
    before, sizes = math.nan, []
    sums = np.abs(case.objective.value(case.theta))  # E - E* of two rounds is known to units in the last place of these
    error = 16.0 * np.finfo(np.float64).eps * float(np.mean(sums))
    for n, (energy, missing) in enumerate(_path(case)):
        size = energy + s / (2.0 * (factor - known.q)) * missing
        if n:
            yield Inequality(n, size, factor * before, "potential after a round", error)
        before = size
        sizes.append(size)
    if case.attained:
        yield Inequality(case.rounds, (1.0 - NEARLY) * factor * sizes[-2], sizes[-1], "factor in the last round")
        longer = GradientDescent(step=(1.0 + NEARLY) * s)
        errors = [energy for energy, _ in _path(case.but(algorithm=longer, rounds=10 * case.rounds))]
        yield Inequality(case.rounds, errors[-10 * case.rounds // 2], errors[-1], "error of a longer step")


def _path(case: Case) -> Iterator[tuple[float, float]]:
    """Yield ``E - E*`` and the mean of ``|e_j|^2`` at the models of a run, after the uploads about them."""
    f, state = case.objective, case.first()
    lowest = float(np.mean(f.value(case.theta)))
    for _ in range(case.rounds):
        theta = state.server.theta
        state, _, _ = advance(case.algorithm, f, state, everybody(f.n_clients), case.compressor)
        memory = state.memory[0] if state.memory else np.zeros((f.n_clients, *f.shape))
        missing = np.sum((f.gradient(theta) - memory) ** 2) / f.n_clients
        yield max(float(np.mean(f.value(theta))) - lowest, 0.0), float(missing)


# FedSplit.


def split_case(f: Case, compressor: Any, *, attained: bool = False) -> Case:
    """Return FedSplit with the best step and a compressor."""
    method = FedSplit(step=1.0 / math.sqrt(f.L * f.mu), **accurately(f.objective))
    return baseline_case(f, method, 8, f"{compressor}", attained=attained).but(compressor=compressor)


def fedsplit_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Take the worst compressor, for which the factor is attained, below 1 and above; round to many bits and to few."""
    for q in (0.05, 0.5):
        yield ExpectedVerdict(split_case(three_directions(), Overshoot(q=q), attained=True))
    for f in (quadratic(), lopsided(), *(() if quick else (logistic(),))):
        for b in (4, 12):
            yield ExpectedVerdict(split_case(f, Rounding(digits=b)))


@claim(
    source="Theorem D, deterministic compressors",
    statement=r"For $\mu$-strongly convex, $L$-smooth clients, all of them active with exact proximal steps, and"
    r" uploads through C with $|C(v) - v| \le q|v|$: $|z^+ - z^*| \le (\delta + q(1 + \delta))|z - z^*|$, attained;"
    r" less than 1 for $q < 1/\sqrt\kappa$ with the best step.",
    assumptions=smooth_and_strongly_convex,
    rtol=ROUNDING,
    cases=fedsplit_cases,
)
def contractive_fedsplit(case: Case) -> Iterator[Inequality]:
    """FedSplit that uploads rounded numbers, without chance: its factor, and that it is the best possible one.

    Compare the distances before and after a round at the states of a path, and at the worst state where attained.
    """
    f, method, errors = case.objective, case.algorithm, fedsplit_errors(case)
    delta, q = reflection(method.step, case.mu, case.L), factor_of(case.compressor, case)
    factor = delta + q * (1.0 + delta)

    def after(e: Array) -> Array:
        state: State = errors.state(e)
        return errors.of(advance(method, f, state, everybody(f.n_clients), case.compressor)[0])

    e = np.random.default_rng(0).standard_normal(errors.size)
    for n in range(1, case.rounds + 1):
        size, e = float(np.linalg.norm(e)), after(e)
        yield Inequality(n, float(np.linalg.norm(e)), factor * size, "distance after a round")
    if case.attained:
        matrix = np.stack([after(column) for column in np.eye(errors.size)], axis=1)
        growth = float(np.linalg.norm(matrix, 2))
        yield Inequality(0, growth, factor, "worst growth")
        yield Inequality(0, factor, growth, "factor and the worst growth")
