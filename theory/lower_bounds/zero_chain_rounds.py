r"""The lower bound on communication, with constants.

Let :math:`f_j = \lambda g_j(\cdot/\sigma)`, where the :math:`g_j` are ``C``-smooth (:math:`C = 24\pi` for thirds,
:math:`16\pi` for halves), and let :math:`\gamma = 4(1 - \frac1e)`. After ``n <= T`` communications the last of the ``T
+ 1`` entries is zero (``zero_chain_support``), so that :math:`|\nabla E| \ge \gamma\lambda/\sigma`
(``zero_chain_gradient``). With

.. math:: \sigma = \frac{C\sqrt\epsilon}{L\gamma}, \qquad \lambda = \frac{C\epsilon}{L\gamma^2}

the clients are ``L``-smooth, as :math:`C\lambda/\sigma^2 = L`, and :math:`|\nabla E|^2 \ge \epsilon` for all these
rounds. By ``zero_chain_infimum`` :math:`\Delta = 4\pi\lambda(T + \frac12(1 - \frac1e))`, and therefore to get below
:math:`\epsilon` takes

.. math:: T + 1 > \frac{L\Delta\gamma^2}{4\pi C\epsilon}
          = \frac{L\Delta}{15.02\,\pi^2\epsilon} \text{ (thirds)}, \quad
          \frac{L\Delta}{10.02\,\pi^2\epsilon} \text{ (halves)}

communications. For any given :math:`L, \Delta, \epsilon` take the largest ``T`` whose fall is at most :math:`\Delta`;
the bound is then less by at most :math:`\frac12(1 - \frac1e)`. The paper's bounds :math:`C = 81\pi`, :math:`|\nabla g|
> 1`, :math:`\Delta \le 5.3\pi\lambda T` and its :math:`2\epsilon` for :math:`\epsilon` give 859 for 15.02. The bound is
attained: FedAvg with long local steps is below :math:`\epsilon` after ``T + 1`` communications.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

import numpy as np

from dualopt.claims import Inequality, claim
from dualopt.objectives import ZeroChain
from dualopt.objectives.zero_chain import FLOOR
from dualopt.xp import Array
from theory._claims import ExpectedVerdict
from theory.lower_bounds._race import Race, races
from theory.lower_bounds._zero_chain import zero_chain

ATTAINS = "FedAvg, long steps"


def zero_chain_rounds_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield methods on both splits, and other constants."""
    for split in ("thirds",) if quick else ("thirds", "halves"):
        for race in races(6, 8 if quick else 20, split=split):
            yield ExpectedVerdict(race.but(name=f"{race.name}, {split}"))
    for L, eps in ((1e-3, 1.0), (40.0, 1e-4)):
        f = zero_chain(6, 8, L=L, eps=eps)
        fedavg = next(races(6, 8))
        method = fedavg.algorithm
        length = method.solver.step / L
        yield ExpectedVerdict(
            fedavg.but(
                name=f"FedAvg, L = {L:g}, eps = {eps:g}",
                algorithm=type(method)(solver=type(method.solver)(step=length), stop=method.stop),
                objective=f,
                eps=eps,
            )
        )


@claim(
    source="FedPD arXiv v1, Theorem 2 (50), with the constants corrected and the best of this proof",
    statement=r"For all $L, \epsilon$ and $T$ there are $L$-smooth clients with $\Delta = E(0) - \inf E$ such that"
    r" every linear-span method has $|\nabla E|^2 \ge \epsilon$ up to communication $T$, where $T + 1 >"
    r" \frac{L\Delta\gamma^2}{4\pi C\epsilon} = \frac{L\Delta}{15.02\pi^2\epsilon}$ for $C = 24\pi$ (thirds) and"
    r" $\frac{L\Delta}{10.02\pi^2\epsilon}$ for $C = 16\pi$ (halves), $\gamma = 4(1 - \frac1e)$.",
    rtol=1e-12,
    cases=zero_chain_rounds_cases,
)
def zero_chain_rounds(race: Race) -> Iterator[Inequality]:
    """Compare eps with the squared gradient up to T communications, and the bound with T + 1."""
    f, T = race.objective, race.d - 1
    yield Inequality(0, race.eps, squared_gradient(f, f.zeros()), "eps and the squared gradient")
    for n, shot in takewhile(lambda sent: sent[0] <= T, race.communications()):
        squared = squared_gradient(f, shot.server.theta)
        yield Inequality(n, race.eps, squared, "eps and the squared gradient")
    yield Inequality(T, rounds_needed(f, race.eps), T + 1, "the bound and T + 1")
    if race.name.startswith(ATTAINS):
        taken = next(n for n, shot in race.communications() if squared_gradient(f, shot.server.theta) < race.eps)
        yield Inequality(T, taken, T + 1, "the communications that attain it")


def squared_gradient(f: ZeroChain, theta: Array) -> float:
    """Return ``|grad E|^2``."""
    return float(np.sum(np.mean(f.gradient(theta), axis=0) ** 2))


def rounds_needed(f: ZeroChain, eps: float) -> float:
    r"""Return :math:`L\Delta\gamma^2/(4\pi C\epsilon)` for a chain, from the constants that it declares.

    Examples
    --------
    >>> f = zero_chain(6, 11, L=2.0, eps=1e-3)  # T = 10
    >>> round(rounds_needed(f, 1e-3), 3)
    10.316
    """
    L, fall = float(np.max(f.L)), float(np.mean(f.value(f.zeros()) - f.infimum))
    C = L * f.width**2 / f.height
    return L * fall * FLOOR**2 / (4.0 * np.pi * C * eps)
