"""Whether a run diverges, from its energies alone.

Methods whose clients begin without duals, or that mix points and look at no values, rise at first, and then converge:
Anderson's mixtures of DANE's steps to 1e18 on small quadratics with kappa = 1e4. Height tells nothing, then; what tells
is that a long run stays above its start, does not come down, and does not come to rest. The rule looks at the last
third of the rounds, and at the third before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["RESTS", "above", "at_rest", "diverges"]

FAR = 10.0  # above the start, in units of its energy
SETTLED = 0.4  # of the range of a third is less than this in the next one where a run comes to rest, as 1/n or faster
RESTS = 1e-3  # of the largest energy of a third: its range, where a run is at rest


def above(start: float, far: float) -> float:
    """Return the energy that is so far above that of the start.

    >>> above(0.0, FAR), above(1.0, FAR)
    (10.0, 21.0)
    """
    return start + far * (1.0 + abs(start))


def at_rest(values: Sequence[float]) -> bool:
    """Tell whether values, such as those of the last third of a run, hardly move.

    >>> at_rest([1.0, 1.0005, 1.0]), at_rest([1.0, 0.99, 0.98])
    (True, False)
    """
    return max(values) - min(values) <= RESTS * max(map(abs, values))


def diverges(energies: Sequence[float], shortest: float) -> bool:
    r"""Tell whether a run diverges, which none does of less than ``shortest`` rounds.

    It does if in the last third of its rounds every energy was above :math:`E_0 + 10\,(1 + |E_0|)` and the least one
    not below that of the third before, and if the energies range over more than 0.4 times what they did in that one:
    they have not come to rest, at the wrong point of a biased method.

    Parameters
    ----------
    energies : sequence of float
        One for each round, NaN where it was not measured; the first is that of the start.
    shortest : float
        The least number of rounds of which the rule says anything: more than those in which a method rises.

    Examples
    --------
    >>> grows, rises = [2.0**n for n in range(31)], [2.0**n for n in range(20)] + [0.5] * 11
    >>> settles = [100.0 - 100.0 * 0.9**n for n in range(31)]
    >>> [diverges(energies, 30) for energies in (grows, rises, settles, [0.0] + [99.0] * 30, grows[:30])]
    [True, False, False, False, False]
    """
    n = len(energies) - 1
    if n < shortest or not energies[-1] > above(energies[0], FAR):
        return False
    thirds = energies[n // 3 + 1 : 2 * n // 3 + 1], energies[2 * n // 3 + 1 :]
    before, last = ([energy for energy in third if not math.isnan(energy)] for third in thirds)
    if not before or min(last) <= above(energies[0], FAR) or min(last) < min(before):
        return False
    return not at_rest(last) and max(last) - min(last) > SETTLED * (max(before) - min(before))
