r"""Cohorts of fixed size with unequal inclusion probabilities: the sequential pivotal design (Deville and Tillé 1998).

Let :math:`0 < \pi_j \le 1` be probabilities whose sum is a whole number P. A client waits with its probability a; the
next one comes with b. If :math:`a + b < 1`, one of the two is dropped and the other waits with a + b; otherwise one of
the two is chosen and the other waits with a + b - 1. The chances of this duel leave both expectations as they are:

.. math:: \text{the waiting one stays with chance } \frac a{a + b}, \qquad
          \text{or is chosen with chance } \frac{1 - b}{2 - a - b}.

So client j is in the cohort with probability :math:`\pi_j` exactly, and every cohort has P clients. Clients that follow
each other are together less often than independent draws would have them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

__all__ = ["cohorts", "drawn", "inclusion_probabilities"]

Cohort = tuple[int, ...]


def inclusion_probabilities(weights: Sequence[float], size: int) -> tuple[float, ...]:
    r"""Return :math:`\pi_j = \min(1, Ka_j)` for weights :math:`a_j`, with K such that :math:`\sum_j\pi_j = P`.

    Examples
    --------
    >>> inclusion_probabilities([1.0, 1.0, 2.0], 2)
    (0.5, 0.5, 1.0)
    >>> inclusion_probabilities([1.0, 2.0, 9.0], 2)  # 9 K would exceed 1
    (0.3333333333333333, 0.6666666666666666, 1.0)
    """
    order = sorted(range(len(weights)), key=lambda j: -weights[j])
    left, total = size, sum(weights)
    found = [1.0] * len(weights)
    for i, j in enumerate(order):
        if left * weights[j] < total:
            for rest in order[i:]:
                found[rest] = left * weights[rest] / total
            break
        left, total = left - 1, sum(weights[rest] for rest in order[i + 1 :])
    return tuple(found)


def drawn(probabilities: Sequence[float], uniform: Callable[[], float]) -> Cohort:
    """Return a cohort of the design; ``uniform`` draws from [0, 1).

    Examples
    --------
    >>> drawn([0.5, 0.5, 1.0], lambda: 0.7)
    (1, 2)
    """
    chosen = [j for j, p in enumerate(probabilities) if p == 1]
    waiting, a = -1, 0.0
    for j, b in enumerate(probabilities):
        if b < 1:
            first, (one, other) = _duel(a, b), (waiting, j)
            if uniform() >= first:
                one, other = other, one
            if a + b < 1:
                waiting, a = one, a + b
            else:
                chosen.append(one)
                waiting, a = other, a + b - 1.0
    return tuple(sorted([*chosen, waiting] if a > 0.5 else chosen))  # a is 0 or 1, up to rounding


def cohorts(probabilities: Sequence[float]) -> dict[Cohort, float]:
    """Return every cohort of the design with its probability; there may be as many as subsets of the size.

    Examples
    --------
    >>> cohorts([0.5, 0.5, 0.25, 0.75])
    {(0, 2): 0.125, (0, 3): 0.375, (1, 2): 0.125, (1, 3): 0.375}
    """
    certain = tuple(j for j, p in enumerate(probabilities) if p == 1)
    states: dict[tuple[Cohort, int], float] = {(certain, -1): 1.0}
    a = 0.0
    for j, b in enumerate(probabilities):
        if b == 1:
            continue
        first, after = _duel(a, b), {}
        for (chosen, waiting), chance in states.items():
            for one, other, part in ((waiting, j, first), (j, waiting, 1.0 - first)):
                state = (chosen, one) if a + b < 1 else ((*chosen, one), other)
                after[state] = after.get(state, 0.0) + chance * part
        states, a = {state: chance for state, chance in after.items() if chance > 0}, (a + b) % 1.0
    found: dict[Cohort, float] = {}
    for (chosen, waiting), chance in states.items():
        cohort = tuple(sorted((*chosen, waiting) if a > 0.5 else chosen))
        found[cohort] = found.get(cohort, 0.0) + chance
    return dict(sorted(found.items()))


def _duel(a: float, b: float) -> float:
    """Return the chance of the waiting client to stay, or to be chosen."""
    return a / (a + b) if a + b < 1 else (1.0 - b) / (2.0 - a - b)
