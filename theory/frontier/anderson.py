r"""AndersonFedSplit: on quadratics it never contracts less than FedSplit, and always it converges by its safeguard.

Points are tuples :math:`z = (z_1, \dots, z_N)` with the norm :math:`|z|^2 = \sum_j |z_j|^2`. FedSplit repeats
:math:`T = R_F R_G` with the reflection :math:`R_G z = 2\bar z - z`, an isometry, and the reflections :math:`R_F` in the
clients' proximal maps, which contract by :math:`q = \max(\frac{1 - s\mu}{1 + s\mu}, \frac{sL - 1}{sL + 1})`. With
:math:`r(z) = Tz - z` and the fixed point :math:`z^*`,

.. math:: |r(Tz)| \le q\,|r(z)|, \qquad (1 - q)|z - z^*| \le |r(z)|. \tag{1}

**Quadratics.** There T is affine, so that for weights with :math:`\sum a_i = 1` the mixed point is
:math:`\sum a_i T z^i = Ty` with :math:`y = \sum a_i z^i`, and :math:`r(y) = \sum a_i r^i`. By (1),

.. math:: |r^{n+1}| \le q\,\bigl|\textstyle\sum a_i r^i\bigr| \le q\sqrt{1 + \lambda}\,|r^n|, \tag{2}

since :math:`|\sum a_i r^i|^2 \le |\sum a_i r^i|^2 + \lambda\sum a_i^2|r^i|^2`, of which ``a`` is the minimiser, and
:math:`a = (0, \dots, 0, 1)` gives :math:`(1 + \lambda)|r^n|^2` (Toth and Kelley 2015 have :math:`\lambda = 0`). Where
all curvatures are :math:`\mu` or L and :math:`s = 1/\sqrt{L\mu}`, :math:`R_F` is q times an orthogonal map, and the
first inequality of (2) is an equation in every round; the second one is as long as there is no history.

**Always.** Whatever the weights are, a plain step comes after at most ``m`` mixed ones, and after a refused one. It
starts from the point of least residual since the last plain step, so by (1) the residuals :math:`\rho_k` after plain
steps satisfy :math:`\rho_{k+1} \le q\rho_k`. Between them the points that are not refused have :math:`|r| \le 2\rho_k`.
Two plain steps are at most :math:`m + 1` rounds apart; a refused point is followed by one that is not. Hence the point
of the model after round n, that of round n or of the one before, has :math:`|r| \le 2q^{\lfloor (n-2)/(m+1)\rfloor}
|r^1|`, and as proximal maps contract by :math:`1/(1 + s\mu)`, by (1)

.. math:: \sqrt N\,|\theta^n - \theta^*| \le |x - x^*| \le \frac{|z - z^*|}{1 + s\mu}
          \le \frac{2q^{\lfloor (n-2)/(m+1)\rfloor}}{(1 - q)(1 + s\mu)}\,|r^1|. \tag{3}

The rate in (3) is :math:`m + 1` times slower than that of FedSplit. It says that nothing goes wrong, and not how fast
the method is: with smooth losses (2) holds in the limit, where T is nearly affine (Toth and Kelley 2015).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.lab.claims import Inequality, claim
from dualopt.methods import AndersonFedSplit
from dualopt.methods._anderson import regularisation
from dualopt.objectives import Quadratic
from theory._cases import EPSILON, Case, accurately
from theory._claims import ExpectedVerdict
from theory._problems import (
    digits,
    flat_quadratic,
    hard_quadratic,
    logistic,
    lopsided,
    one_flat_client,
    quadratic,
    solved,
)
from theory.baselines._runs import baseline_case, reflection, smooth_and_strongly_convex

__all__ = ["Wild", "anderson_quadratics", "anderson_safeguard"]

ROUNDS = 40
VISIBLE = 1e-7  # of the first residual: below, rounding is a part of every residual
ACCURATE = 1e-12  # gradients where local problems are solved


def anderson_case(
    f: Case, *, memory: int = 10, times: float = 0.3, rounds: int = ROUNDS, attained: bool = False, kind: Any = None
) -> Case:
    """Return the method with ``times`` the weight sqrt(L mu), started away from the minimiser."""
    convex = f.mu > 1e-12 * f.L
    step = 1.0 / (times * math.sqrt(f.L * f.mu)) if convex else 1.0 / f.L
    method = (kind or AndersonFedSplit)(step=step, memory=memory, **accurately(f.objective, tol=ACCURATE))
    start = f.theta + np.random.default_rng(3).standard_normal(f.theta.shape)
    note = f"m = {memory}, {times:g} sqrt(L mu)" + (f", {kind.__name__.lower()} weights" if kind else "")
    return baseline_case(f, method, rounds, note, theta0=start, attained=attained)


def extremes(n: int = 3, *, L: float = 100.0) -> Case:
    """Return random quadratics in four dimensions whose only eigenvalues are 1 and L."""
    rng = np.random.default_rng(4)
    bases = [np.linalg.qr(rng.standard_normal((4, 4)))[0] for _ in range(n)]
    A = np.stack([q @ np.diag([1.0, 1.0, L, L]) @ q.T for q in bases])
    f = Quadratic(A=0.5 * (A + np.swapaxes(A, 1, 2)), b=rng.standard_normal((n, 4)))
    return solved(f"curvatures 1 and {L:g} (N={n})", f)


def factor_of(case: Case) -> float:
    """Return ``q``."""
    return reflection(case.algorithm.step, case.mu, case.L)


def norm(r: Array) -> float:
    """Return the norm of all clients' parts together."""
    return float(np.linalg.norm(r))


def rounding(case: Case, snapshot: Any, weights: tuple[float, ...]) -> float:
    r"""Return how far a computed residual may lie from that of the point in exact arithmetic.

    Local solutions of systems of condition at most :math:`\kappa` are known to :math:`8\epsilon\kappa` of their size,
    or to the gradient that is left over the curvature; the point itself is a mixture of images that are known so.
    """
    size = norm(snapshot.clients.x) + max(norm(image) for image in snapshot.clients.images)
    mixed = 1.0 + sum(map(abs, weights))
    left = ACCURATE * math.sqrt(case.n_clients) / (case.mu + 1.0 / case.algorithm.step)
    return 2.0 * mixed * (8.0 * EPSILON * case.L / case.mu * size + left)


# Quadratics.


def quadratic_clients(case: Case) -> list[str]:
    """Return what fails: quadratic, strongly convex clients."""
    affine = [] if isinstance(case.objective, Quadratic) else ["quadratic clients"]
    return smooth_and_strongly_convex(case) + affine


def anderson_quadratics_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Memories and weights; curvatures of the two extreme kinds only, where the factor is attained."""
    for memory in (1, 3, 10):
        yield ExpectedVerdict(anderson_case(hard_quadratic(), memory=memory))
        yield ExpectedVerdict(anderson_case(extremes(), memory=memory, times=1.0, attained=True))
    for times in (0.3, 1.0, 3.0):
        yield ExpectedVerdict(anderson_case(quadratic(), times=times))
    yield ExpectedVerdict(anderson_case(lopsided()))
    for f in (flat_quadratic(), one_flat_client(), logistic()):
        yield ExpectedVerdict(anderson_case(f), "outside assumptions")


@claim(
    source="Toth and Kelley 2015 (recalled) for FedSplit, derived here with the regularisation",
    statement=r"For $\mu$-strongly convex, $L$-smooth quadratic clients and exact proximal steps, any $s > 0$ and any"
    r" memory: $|r^{n+1}| \le q\,|\sum_i a_i r^i| \le \sqrt{1 + \lambda}\,q\,|r^n|$,"
    r" $q = \max(\frac{1 - s\mu}{1 + s\mu}, \frac{sL - 1}{sL + 1})$, which is $1 - \frac2{\sqrt\kappa + 1}$ for"
    r" $s = 1/\sqrt{L\mu}$. Clients whose curvatures are $\mu$ and $L$ attain the first inequality, and both in the"
    r" first round.",
    assumptions=quadratic_clients,
    cases=anderson_quadratics_cases,
)
def anderson_quadratics(case: Case) -> Iterator[Inequality]:
    """AndersonFedSplit on quadratics: never slower than FedSplit.

    Compare successive residuals, and both with the mixture of the earlier ones, up to rounding of the residuals.
    """
    q, extra = factor_of(case), math.sqrt(1.0 + regularisation(float(np.finfo(float).eps)))
    first = last = mixture = math.nan
    weights: tuple[float, ...] = ()
    for n, s in enumerate(case.snapshots(), start=1):
        size, error = norm(s.clients.residuals[-1]), rounding(case, s, weights)
        first = size if n == 1 else first
        if size < VISIBLE * first:
            break
        if n > 1:
            yield Inequality(n, size, q * mixture, "residual and the mixture", error)
            yield Inequality(n, size, extra * q * last, "successive residuals", error)
        if n > 1 and case.attained:
            yield Inequality(n, q * mixture, size, "the mixture and the residual", error)
        if n == 2 and case.attained:
            yield Inequality(n, q * last, size, "successive residuals, attained", error)
        weights, last = s.message.weights, size
        mixture = norm(sum(a * r for a, r in zip(weights, s.clients.residuals, strict=True)))
        if n < case.rounds:
            yield Inequality(n, mixture, extra * size, "mixture and the newest", rounding(case, s, weights))


# The safeguard.


class Wild(AndersonFedSplit):
    """Random weights of the mixture, the same for the same number of points: what the safeguard is for."""

    def _mixed(self, gram: Array, known: int, rounding: float) -> tuple[float, ...]:
        drawn = 100.0 * np.random.default_rng(known).standard_normal(known)
        drawn[-1] += 1.0 - np.sum(drawn)
        return (0.0,) * (self.memory + 1 - known) + tuple(map(float, drawn))


def anderson_safeguard_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Several losses; wild weights, whose points are mostly refused; what is excluded."""
    for f in (quadratic(), lopsided(), logistic()):
        yield ExpectedVerdict(anderson_case(f))
        for memory in (1, 3, 10):
            yield ExpectedVerdict(anderson_case(f, memory=memory, times=1.0, kind=Wild))
    yield ExpectedVerdict(anderson_case(extremes(), memory=3, times=1.0, kind=Wild))
    if not quick:
        yield ExpectedVerdict(anderson_case(digits(), rounds=25))
    for f in (flat_quadratic(), one_flat_client()):
        yield ExpectedVerdict(anderson_case(f), "outside assumptions")


@claim(
    source="derived here",
    statement=r"For $\mu$-strongly convex, $L$-smooth clients and exact proximal steps, whatever the weights of the"
    r" mixtures are: a plain step comes after at most $m$ other ones, the residual after it is at most"
    r" $q = \max(\frac{1 - s\mu}{1 + s\mu}, \frac{sL - 1}{sL + 1})$ times the least one since the last such step, and"
    r" $\sqrt N|\theta^n - \theta^*| \le \frac{2}{(1 - q)(1 + s\mu)}\,q^{\lfloor (n-2)/(m+1)\rfloor}\,|r^1|$.",
    assumptions=smooth_and_strongly_convex,
    cases=anderson_safeguard_cases,
)
def anderson_safeguard(case: Case) -> Iterator[Inequality]:
    """AndersonFedSplit on any smooth strongly convex problem: it converges linearly, by its safeguard.

    Compare residuals after plain steps with the least ones before, and the model with the solution.
    """
    q, s_mu, m = factor_of(case), case.algorithm.step * case.mu, case.algorithm.memory
    least = first = math.inf
    since, weights = 0, ()
    for n, s in enumerate(case.snapshots(), start=1):
        size, error = norm(s.clients.residuals[-1]), rounding(case, s, weights)
        if n == 1:
            first = least = size
        elif sorted(weights)[-2:] == [0.0, 1.0]:  # a plain step
            yield Inequality(n, size, q * least, "after a plain step", error)
            least, since = size, 0
        else:
            least, since = min(least, size), since + 1
        yield Inequality(n, since, m, "rounds without a plain step")
        if n > 1:
            bound = 2.0 * q ** ((n - 2) // (m + 1)) * first / ((1.0 - q) * (1.0 + s_mu))
            away = math.sqrt(case.n_clients * case.distance(s.server.theta))
            yield Inequality(n, away, bound, "distance of the model", error / (1.0 - q))
        weights = s.message.weights
        if least < VISIBLE * first:
            break
