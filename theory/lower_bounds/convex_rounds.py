r"""Rounds to an accuracy: the least number for any method, that of DualFL, and that of DualFL's theorem.

On the chains of ``convex`` the three numbers differ by a constant factor, but for a logarithm.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from dualopt.lab.claims import Inequality, claim
from dualopt.methods import DualFL, OptimizedDualFL
from theory._cases import Case
from theory._claims import ExpectedVerdict
from theory.dualfl._runs import linear_regime, sublinear_regime
from theory.lower_bounds._convex_chain import geometric, level, squares, tails
from theory.lower_bounds._convex_methods import chain_case, distances, theorem

ACCURACY = 1e-8  # of the squared distance, relative to |theta*|^2


def needed(numbers: Iterable[float], level: float) -> float:
    """Return how many numbers it takes to get to the level; infinite if they end before.

    Examples
    --------
    >>> needed([3.0, 2.0, 1.0], 2.0), needed([3.0], 2.0)
    (2, inf)
    """
    return next((n for n, number in enumerate(numbers, start=1) if number <= level), math.inf)


def between(case: Case, level: float, factor: float) -> Iterator[Inequality]:
    """Compare the three numbers of rounds to a squared distance, and the last with ``factor`` times the first."""
    least, taken, admitted = (needed(x, level) for x in (tails(case.theta), distances(case), theorem(case)))
    n = int(admitted)
    yield Inequality(n, least, taken, "rounds of the method from below")
    yield Inequality(n, taken, admitted, "rounds of the method")
    yield Inequality(n, admitted, factor * least, "rounds of the theorem")


def convex_strong_rounds_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Condition numbers over three decades."""
    for kappa in (10.0, 100.0, 1000.0) if quick else (10.0, 100.0, 1000.0, 10_000.0):
        for method in (DualFL(), OptimizedDualFL()):
            yield ExpectedVerdict(chain(kappa, method))


@claim(
    source="Park and Xu, Theorem 3.3, and convex_strong_bound",
    statement=r"On geometric chains with $10 \le \kappa \le 10^4$ let $n_-$ be the rounds to"
    r" $|\theta^n - \theta^*|^2 \le 10^{-8}|\theta^*|^2$ that no method can do without, $n_+$ those within which the"
    r" theorem promises it. Then $n_- \le n \le n_+ \le 10\,n_-$ for the measured n; of OptimizedDualFL as well.",
    assumptions=linear_regime,
    cases=convex_strong_rounds_cases,
)
def convex_strong_rounds(case: Case) -> Iterator[Inequality]:
    r"""DualFL on the strongly convex chain: between the lower bound of all methods and its own upper bound.

    To :math:`|\theta - \theta^*|^2 \le \epsilon|\theta^*|^2` every method needs about :math:`\frac{\sqrt\kappa}4
    \log\frac1\epsilon` rounds (convex_strong_bound). For :math:`d \to \infty` the chain has :math:`|\xi^*|^2/(N\mu^2) =
    (\kappa + 1)|\theta^*|^2`, so that Theorem 3.3 admits about :math:`\sqrt\kappa(\log\frac1\epsilon + \log\kappa)`,
    and the bound of OptimizedDualFL half of that: four times and twice the least, but for the logarithm.

    Compare the rounds to the accuracy.
    """
    return between(case, ACCURACY * float(case.theta @ case.theta), 10.0)


def chain(kappa: float, method: Any) -> Case:
    """Put a method on a chain so long that its end is below the square of the accuracy."""
    q = (math.sqrt(kappa) - 1.0) / (math.sqrt(kappa) + 1.0)
    d = math.ceil(math.log(ACCURACY) / math.log(q))
    return chain_case(geometric(kappa, d), method, 10 * d)


def convex_smooth_rounds_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Accuracies over more than two decades."""
    for d in (5, 10, 20) if quick else (5, 10, 20, 50, 100):
        for method in (DualFL(), OptimizedDualFL()):
            yield ExpectedVerdict(ridged(d, method))


@claim(
    source="Park and Xu, Section 4 and Theorem 3.3, and convex_smooth_bound",
    statement=r"On free chains let $\epsilon = \frac{L|\theta^*|^2}{8d^2}$: no method has"
    r" $E(\theta^n) - E^* < \epsilon$ before the round d. DualFL with a ridge of weight $\epsilon/|\theta^*|^2$ has"
    r" it by the round that Theorem 3.3 gives, and within 10 times the least number of rounds.",
    assumptions=linear_regime,
    cases=convex_smooth_rounds_cases,
)
def convex_smooth_rounds(case: Case) -> Iterator[Inequality]:
    r"""DualFL with the ridge of Section 4 on the free chain, in rounds to an energy error.

    With :math:`\alpha = \epsilon/|\theta^*|^2` the ridge costs at most half of :math:`\epsilon`, since :math:`E(\theta)
    - E^* \le E_\alpha(\theta) - E_\alpha^* + \frac\alpha2|\theta^*|^2`; Theorem 3.3 gives the other half from
    :math:`E_\alpha(\theta) - E_\alpha^* \le \frac{L+\alpha}2|\theta - \theta^\alpha|^2`. For :math:`\epsilon =
    \frac{L|\theta^*|^2}{8d^2}` the least number of rounds is :math:`d - 1`, and the theorem admits a logarithm more.

    Compare the rounds to the accuracy that belongs to the ridge.
    """
    f, d, alpha = replace(case.objective, ridge=0.0), case.objective.shape[0], case.objective.ridge
    epsilon = alpha * d  # |theta*|^2 = d
    energies = (float(np.mean(f.value(s.server.theta))) for s in case.snapshots())
    half = (0.5 * case.L * distance for distance in theorem(case))
    least, taken, admitted = d - 1.0, needed(energies, epsilon), needed(half, 0.5 * epsilon)
    yield Inequality(d, least, taken, "rounds of the method from below")
    yield Inequality(d, taken, admitted, "rounds of the method")
    yield Inequality(d, taken, 10.0 * least, "rounds of the method and ten times the least")


def ridged(d: int, method: Any) -> Case:
    """Put a method on the free chain with the ridge of its accuracy."""
    return chain_case(squares(d, ridge=0.125 / d**2), method, 20 * d)


def convex_nonsmooth_rounds_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Take a decade of n, and twice as much."""
    for n in (10, 30) if quick else (10, 30, 100, 200):
        for method in (DualFL(rho=0.0), OptimizedDualFL(rho=0.0)):
            yield ExpectedVerdict(chain_case(level(n), method, 6 * n))


@claim(
    source="Park and Xu, Theorem 3.2, and convex_nonsmooth_bound",
    statement=r"On the level chain for n, which no method brings to $|\theta^m - \theta^*|^2 \le \frac n2$ in fewer"
    r" than n rounds, DualFL with $\rho = 0$ takes $m \ge n$ of them, and no more than the theorem, which needs"
    r" $m_+ \le 6n$.",
    assumptions=sublinear_regime,
    cases=convex_nonsmooth_rounds_cases,
)
def convex_nonsmooth_rounds(case: Case) -> Iterator[Inequality]:
    r"""DualFL on level chains: between the lower bound of all methods and Theorem 3.2.

    The level is the least squared distance after n rounds (convex_nonsmooth_bound). Theorem 3.2 comes to it when
    :math:`(m + 1)^2 \ge 4(9n^2 + 2)`, that is for :math:`m = 6n`.

    Compare the rounds to the least distance after two thirds of d rounds.
    """
    return between(case, case.objective.shape[0] / 3.0, 6.0)
