r"""Convex clients: after :math:`n` rounds no method is nearer to the solution of a chain than its bound.

A round gains one coordinate (``_convex_chain`` has the proof), so that the least error on the first n coordinates is a
lower bound for every method. Its values follow on three chains: smooth and strongly convex, smooth, and nonsmooth.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from dualopt.lab.claims import Inequality, claim
from dualopt.methods import ConsensusFedSplit, DualFL, FedSplit, OptimizedDualFL
from theory._cases import Case
from theory._claims import ROUNDING, ExpectedVerdict, deviation
from theory.dualfl._runs import sublinear_regime
from theory.lower_bounds._convex_chain import geometric, level, power, squares, tails
from theory.lower_bounds._convex_methods import chain_case, distances, runs, theorem


def convex_span_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Every method, on squares with and without strong convexity and on absolute values; many clients."""
    instances = [geometric(100.0, 40, pairs=1 if quick else 4), level(20)]
    if not quick:
        instances.append(squares(30))
    for instance in instances:
        for case in runs(instance, 15 if quick else 25):
            yield ExpectedVerdict(case)


@claim(
    source="Arjevani and Shamir 2015 (recalled), derived in theory/lower_bounds/_convex_chain.py",
    statement=r"A method that starts at zero and whose clients compute linear combinations, (sub)gradients and"
    r" minimisers of $f_j + \langle a, \cdot\rangle + \frac\rho2|\cdot - b|^2$ as often as they like has"
    r" $\theta^n_k = 0$ for $k > n$ after n communications, on a chain whose links alternate between"
    r" two groups of clients.",
    cases=convex_span_cases,
)
def convex_span(case: Case) -> Iterator[Inequality]:
    """On a chain a round of communication gains one coordinate, whatever the clients compute in between.

    Compare the last coordinate of the server's model that is not zero with the number of communications.
    """
    for n, s in enumerate(case.snapshots(), start=1):
        reached = np.flatnonzero(s.server.theta)
        yield Inequality(n, float(reached[-1] + 1) if reached.size else 0.0, n, "last coordinate that is not zero")


def convex_strong_bound_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Every method, for three condition numbers."""
    shapes = [(10.0, 16, 1)] if quick else [(10.0, 16, 1), (100.0, 60, 2), (1000.0, 150, 4)]
    for kappa, d, pairs in shapes:
        for case in runs(geometric(kappa, d, pairs=pairs), d // 2):
            yield ExpectedVerdict(case)


@claim(
    source="Nesterov 2004, Theorem 2.1.13, and Arjevani and Shamir 2015 (recalled), derived for this chain",
    statement=r"On the geometric chain, $q = \frac{\sqrt\kappa - 1}{\sqrt\kappa + 1}$ with the condition number of"
    r" every client: $|\theta^n - \theta^*|^2 \ge \frac{q^{2n} - q^{2d}}{1 - q^{2d}} |\theta^*|^2$ and"
    r" $E(\theta^n) - E^* \ge \frac{L - \mu}{8} q^{2n+1} \frac{1 - q^2}{1 - q^{2n+2}}$ for $n < d$.",
    rtol=1e-12,
    cases=convex_strong_bound_cases,
)
def convex_strong_bound(case: Case) -> Iterator[Inequality]:
    r"""Smooth and strongly convex clients: no method is faster than :math:`q^{2n}`.

    On the geometric chain the tail of :math:`\theta^*` beyond n is the fraction :math:`(q^{2n} - q^{2d})/(1 - q^{2d})`
    of :math:`|\theta^*|^2`. The least of E on the first :math:`n < d` coordinates is at :math:`x_k = (q^k -
    q^{2(n+1)-k})/(1 - q^{2(n+1)})`, which solves the same recursion with :math:`x_{n+1} = 0`; as :math:`E(x) - E(0) =
    -\frac w4 x_1` where the gradient vanishes on these coordinates, it is :math:`\frac w4(q - x_1) = \frac w4
    q^{2n+1}\frac{1-q^2}{1-q^{2n+2}}` above :math:`E^*`, in any number of dimensions.

    For :math:`d \to \infty` and :math:`\kappa = L/\mu` the distance is at least :math:`q^{2n}|\theta^*|^2`, so that
    :math:`\epsilon |\theta^*|^2` takes :math:`\frac{\log(1/\epsilon)}{2\log(1/q)} \ge \frac{\sqrt\kappa - 1}4
    \log\frac1\epsilon` rounds. No larger rate can be proved for this class: FedSplit contracts by q in every round,
    whatever the clients.

    Compare the least possible distance and energy with those of the method.
    """
    f, d = case.objective, case.objective.shape[0]
    kappa = case.L / case.mu
    q = (math.sqrt(kappa) - 1.0) / (math.sqrt(kappa) + 1.0)
    square = float(np.sum(case.theta**2))
    quadratic = replace(f, ratios=np.append(0.0, f.ratios[1:]))  # tied to 0, not to 1: E - E* without cancellation
    for n, s in enumerate(case.snapshots(), start=1):
        theta = s.server.theta
        least = (q ** (2 * n) - q ** (2 * d)) / (1.0 - q ** (2 * d)) * square
        yield Inequality(n, least, case.distance(theta), "squared distance")
        energy = float(np.mean(quadratic.value(theta - case.theta)))
        least = 0.25 * f.weight * q ** (2 * n + 1) * (1.0 - q * q) / (1.0 - q ** (2 * n + 2))
        yield Inequality(n, least, energy, "energy error")


def convex_strong_attained_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Two condition numbers, two clients and six; another step, and the mean of the local solutions."""
    for kappa, d, pairs in [(10.0, 16, 1), (1000.0, 60, 3)]:
        chain = geometric(kappa, d, pairs=pairs)
        yield ExpectedVerdict(chain_case(chain, ConsensusFedSplit(), d))
    for other in (ConsensusFedSplit(step=1.0 / chain.L), FedSplit()):
        yield ExpectedVerdict(chain_case(chain, other, 3), "violated")


@claim(
    source="derived here; the contraction is that of Pathak and Wainwright 2020",
    statement=r"On the geometric chain FedSplit with $s = 1/\sqrt{L\mu}$ that reports the mean of the $z_j$ has"
    r" $\theta^n = (q, q^2, \dots, q^n, 0, \dots, 0)$ for $n \le d$: $|\theta^n - \theta^*|^2$ is the least that any"
    r" method can have.",
    cases=convex_strong_attained_cases,
)
def convex_strong_attained(case: Case) -> Iterator[Inequality]:
    r"""FedSplit attains the bound of the strongly convex chain in every round.

    With two groups and the step :math:`s = 1/\sqrt{L\mu}` FedSplit is :math:`z_A^+ = R_A z_B`, :math:`z_B^+ = R_B z_A`
    with the reflections :math:`R_j z = 2\,\mathrm{prox}_{s f_j}(z) - z`. On a pair with a link the curvature is
    :math:`\mu` along (1, 1) and L along (1, -1), where a reflection multiplies by :math:`\frac{1-s\mu}{1+s\mu} = q` and
    :math:`\frac{1-sL}{1+sL} = -q`: it swaps the two coordinates and shrinks them by q. Link 0 makes :math:`2q - q^2
    z_1` of the first one. From zero, 2q enters there, and every round passes it on: :math:`z_A = (2q, 0, 2q^3, 0,
    \ldots)` and :math:`z_B = (0, 2q^2, 0, 2q^4, \ldots)` up to the coordinate n, and half their sum is the model.

    Compare the model with the point of the first n coordinates that is nearest to the solution.
    """
    index = np.arange(1, case.objective.shape[0] + 1)
    for n, s in enumerate(case.snapshots(), start=1):
        nearest = np.where(index <= n, case.theta, 0.0)
        yield Inequality(n, deviation(s.server.theta, nearest), ROUNDING, "difference of the models")


def convex_smooth_bound_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Every method, with a ridge where it needs one."""
    d = 20 if quick else 60
    for instance in (squares(d), squares(d, ridge=0.1 / d, pairs=2)):
        for case in runs(instance, d - 1):
            yield ExpectedVerdict(case)


@claim(
    source="Nesterov 2004, Theorem 2.1.7, and Arjevani and Shamir 2015 (recalled), derived for a free end",
    statement=r"On the free chain $E(\theta^n) - E^* \ge \frac{L}{8(n+1)}$ for $n < d$, L being the smoothness of every"
    r" client; with $d = n + 1$ this is $\frac{L|\theta^*|^2}{8(n+1)^2}$. Methods may add a ridge.",
    rtol=1e-12,
    cases=convex_smooth_bound_cases,
)
def convex_smooth_bound(case: Case) -> Iterator[Inequality]:
    r"""Smooth convex clients without strong convexity: no method is faster than :math:`1/n^2`.

    On the free chain E is :math:`\frac w4` times the sum of the squared gaps. After :math:`n < d` rounds the n + 1 gaps
    between :math:`x_0 = 1` and :math:`x_{n+1} = 0` sum to one: at best they are equal, and :math:`E = \frac{w}{4(n+1)}`
    with :math:`L = 2w`. For the chain of :math:`d = n + 1` coordinates :math:`|\theta^*|^2 = n + 1`. Conjugate
    gradients come to the least E a round later, so that no better constant is to be had from this chain.

    Compare the least possible energy without ridge with that of the method.
    """
    f = replace(case.objective, ridge=0.0)
    L = float(np.max(f.L))
    for n, s in enumerate(case.snapshots(), start=1):
        energy = float(np.mean(f.value(s.server.theta)))
        yield Inequality(n, L / (8.0 * (n + 1)), energy, "energy error")


NEARLY_BEST = 0.55  # the step of FedSplit, times mu n: its distance is 1.001 times the least, found by search


def convex_nonsmooth_bound_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Every method, for several numbers of rounds; FedSplit with a step for this number."""
    for n, pairs in [(10, 1)] if quick else [(10, 1), (60, 2)]:
        chain = level(n, pairs=pairs)
        for case in runs(chain, n):
            yield ExpectedVerdict(case)
        yield ExpectedVerdict(chain_case(chain, ConsensusFedSplit(step=NEARLY_BEST / n), n))


@claim(
    source="Arjevani and Shamir 2015 (recalled), with an instance and a constant of our own",
    statement=r"For even n, on the level chain of $\frac32 n$ coordinates,"
    r" $|\theta^m - \theta^*|^2 \ge \frac{1}{9n^2 + 2} \cdot \frac{1}{N\mu^2} \sum_j |\xi_j^*|^2$ for all $m \le n$.",
    rtol=1e-12,
    cases=convex_nonsmooth_bound_cases,
)
def convex_nonsmooth_bound(case: Case) -> Iterator[Inequality]:
    r"""Nonsmooth, strongly convex clients: no method is faster than :math:`1/n^2`.

    On the level chain every :math:`\theta^*_k` is 1 and the forces are :math:`p_k = 2\mu(d - k)`. With
    :math:`\xi_j^*` the subgradients of :math:`f_j - \frac\mu2|\cdot|^2` at :math:`\theta^*`,

    .. math:: \frac1N \sum_j |\xi_j^*|^2 = \tfrac12 \bigl( p_0^2 + 2p_1^2 + \cdots + 2p_{d-1}^2 \bigr)
              = \tfrac23 \mu^2 d (2d^2 + 1),

    while n rounds leave at least :math:`d - n` of :math:`|\theta - \theta^*|^2`. The quotient is largest for
    :math:`d = \frac32 n`, and is :math:`1/(9n^2 + 2)` there. Theorem 3.2 has :math:`4/(n+1)^2` instead: six
    times the rounds.

    Compare the least possible distance after all n rounds with those of the method until then.
    """
    spread = float(np.sum((case.subgradients - case.mu * case.theta) ** 2)) / case.n_clients
    least = spread / (case.mu**2 * (9.0 * case.rounds**2 + 2.0))
    for n, distance in enumerate(distances(case), start=1):
        yield Inequality(n, least, distance, "squared distance")


DECADE = 10
CONSTANT = 3.0  # how much n^2 times the error may vary over a decade


def convex_nonsmooth_order_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Take an early decade and, on a longer chain, a later one."""
    for d, rounds in [(1000, 100)] if quick else [(1000, 100), (3000, 300)]:
        for method in (DualFL(rho=0.0), OptimizedDualFL(rho=0.0)):
            yield ExpectedVerdict(chain_case(power(d), method, rounds))


@claim(
    source="Park and Xu, Theorem 3.2, on an instance of our own",
    statement=r"On the power chain DualFL with $\rho = 0$ has $\sum_{k>n} (\theta^*_k)^2 \le |\theta^n - \theta^*|^2"
    r" \le \frac{4|\xi^*|^2}{N\nu^2(n+1)^2}$, and over a decade of n the largest"
    r" $n^2|\theta^n - \theta^*|^2$ is at most 3 times the least.",
    assumptions=sublinear_regime,
    rtol=1e-12,
    cases=convex_nonsmooth_order_cases,
)
def convex_nonsmooth_order(case: Case) -> Iterator[Inequality]:
    r"""One nonsmooth chain on which the error of DualFL is of order :math:`1/n^2`, no more and no less.

    A level chain is hard at one number of rounds. On the power chain :math:`\theta^*_k = k^{-3/2}`, so that the tail
    :math:`\sum_{k>n} k^{-3} \ge \frac12 (n+1)^{-2} - \frac12 (d+1)^{-2}` keeps every method at the order of
    :math:`1/n^2` at all n at once. The forces are :math:`p_{k-1} = 2\mu k^{3/2} \sum_{i \ge k} i^{-3} \approx
    \mu k^{-1/2}`: the sum of their squares, and with it the bound of Theorem 3.2, grows with d, but like its logarithm.

    Compare the error with the tail and the theorem, and over the last decade n^2 times the error with its least value.
    """
    errors = list(distances(case))
    for n, (least, error, most) in enumerate(zip(tails(case.theta), errors, theorem(case), strict=False), start=1):
        yield Inequality(n, float(least), error, "squared distance from below")
        yield Inequality(n, error, most, "squared distance")
    scaled = {n: n**2 * error for n, error in enumerate(errors, start=1) if n >= case.rounds // DECADE}
    for n, error in scaled.items():
        yield Inequality(n, error, CONSTANT * min(scaled.values()), "n^2 times the squared distance")
