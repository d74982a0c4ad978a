r"""Theorem F: DualFL with sampled clients, for any loss, and with a linear rate for smooth ones.

Let every :math:`f_j` be :math:`\mu`-strongly convex, :math:`0 < \nu \le \mu` and :math:`g_j = f_j -
\frac\nu2|\cdot|^2`. The dual problem of DualFL is

.. math:: \min_\xi E_d(\xi), \quad E_d(\xi) = h(\xi) + \sum_jg_j^*(\xi_j), \quad h(\xi) = \tfrac1{2N\nu}
          \Bigl|\sum_j\xi_j\Bigr|^2, \qquad \theta(\xi) = -\tfrac1{N\nu}\sum_j\xi_j,

with :math:`\min E_d = -N\min E` at :math:`\xi_j^* = \nabla f_j(\theta^*) - \nu\theta^*`, where :math:`\theta(\xi^*) =
\theta^*`. The :math:`g_j^*` are :math:`\sigma`-strongly convex for :math:`\sigma = q/\nu`, :math:`q = \rho/(1 - \rho)`
and :math:`\rho \le \nu/L`; any loss admits :math:`\rho = 0`.

**The method.** Three points x, y, z with :math:`y = (1 - t)x + tz`; all start at zero. For a uniform cohort S of P = pN

.. math:: z_j^+ = \arg\min_\zeta \langle\nabla_jh(y), \zeta\rangle + g_j^*(\zeta) + \tfrac t{2\nu}|\zeta - z_j|^2,
          \quad j \in S, \qquad x^+ = y + \tfrac tp(z^+ - z). \tag{1}

Here :math:`\nabla_jh(y) = -w` with :math:`w = \theta(y)`, so that with :math:`\theta_j := w - \frac t\nu(z_j^+ - z_j)
\in \partial g_j^*(z_j^+)` the first step is :math:`z_j^+ \in \partial g_j(\theta_j)`, the local problem of the box,
and :math:`\theta(x^+) = w - \frac1P\sum_S(w - \theta_j)`, the mean of the active models.

**Three facts.** (a) :math:`\mathbb E\,h(y + e_S) \le h(y) + p\bigl(\langle\nabla h(y), e\rangle +
\frac p{2\nu}|e|^2\bigr)`, where :math:`e_S` keeps the blocks of S: :math:`|\sum_Se_j|^2 \le P\sum_S|e_j|^2`.
(b) Let :math:`\hat\psi^0 = \sum_jg_j^*(z_j^0)` and

.. math:: \hat\psi^+ = (1 - t)\hat\psi + t\textstyle\sum_jg_j^*(z_j)
          + \tfrac tp\sum_{j\in S}\bigl(g_j^*(z_j^+) - g_j^*(z_j)\bigr).

This is the same combination of values that :math:`x_j` is of the points :math:`z_j^0, z_j^1, \dots`. Let
:math:`t_k(1 - p) \le (1 - t_k)t_{k-1}`, which :math:`t_k \le t_{k-1}` and :math:`t_k \le p` imply. Then no weight is
negative, because after round k the current :math:`z_j` has a weight :math:`c_j \ge t_k/p`: at first :math:`c_j = 1 =
t_0/p`. In round k an idle client has :math:`c_j^+ = (1 - t_k)c_j + t_k \ge \frac1p(1 - t_k)t_{k-1} + t_k \ge t_k/p`;
an active one leaves :math:`(1 - t_k)c_j - \frac{t_k}p(1 - p) \ge 0` to its old point and gives :math:`t_k/p` to the new
one. The convexity of the :math:`g_j^*` then says :math:`\hat F := h(x) + \hat\psi \ge E_d(x)`. (c) Its mean is
:math:`\mathbb E\,\hat\psi^+ = (1 - t)\hat\psi + t\sum_jg_j^*(\tilde z_j)`, where :math:`\tilde z` is (1) for all
clients.

**One step.** By (a) with :math:`e = \frac tp(\tilde z - z)`, because :math:`t(\tilde z - z) = t(\tilde z - y) +
(1 - t)(x - y)`, by the convexity of h and by (c),

.. math:: \mathbb E\,\hat F^+ \le (1 - t)\hat F + t\Bigl[h(y) + \langle\nabla h(y), \tilde z - y\rangle
          + \sum_jg_j^*(\tilde z_j) + \tfrac t{2\nu}|\tilde z - z|^2\Bigr].

The minimum (1) is that of a :math:`(\frac t\nu + \sigma)`-strongly convex function, so that the bracket is at most
:math:`E_d^* + \frac t{2\nu}|z - \xi^*|^2 - \frac12(\frac t\nu + \sigma)|\tilde z - \xi^*|^2`. Finally
:math:`p|\tilde z - \xi^*|^2 = \mathbb E|z^+ - \xi^*|^2 - (1 - p)|z - \xi^*|^2`. Together, with
:math:`K(t) = \frac{t(t + q)}{2p\nu}`,

.. math:: \mathbb E\bigl[\hat F^+ - E_d^* + K(t)|z^+ - \xi^*|^2\bigr]
          \le (1 - t)(\hat F - E_d^*) + \bigl(K(t) - \tfrac{qt}{2\nu}\bigr)|z - \xi^*|^2. \tag{2}

**The steps.** The right-hand side is :math:`(1 - t_k)` times the left-hand side of the round before if :math:`K(t_k) -
\frac{qt_k}{2\nu} = (1 - t_k)K(t_{k-1})`, that is

.. math:: t_k^2 + q(1 - p)t_k = (1 - t_k)(t_{k-1}^2 + qt_{k-1}), \qquad t_0 = p. \tag{3}

These t fall to the root :math:`t_\infty` of :math:`t^2 + qt = pq`: the left-hand side of (3) grows with :math:`t_k`,
the other one falls, and at :math:`t_k = t_{k-1}` they differ by :math:`t_{k-1}(t_{k-1}^2 + qt_{k-1} - pq) \ge 0`,
while at :math:`t_k = t_\infty` the left one is the smaller. So :math:`t_\infty \le t_k \le t_{k-1} \le p`, as (b) asks.

**Theorem F.** With :math:`\Delta = E_d(0) - E_d^* = NE^* - \sum_j\inf g_j` (for p = 1 it need not be finite)

.. math:: \tfrac{N\nu}{2(1 - \rho)}\mathbb E|\theta^n - \theta^*|^2 \le \mathbb E[E_d(x^n) - E_d^*] \le
          \prod_{k=1}^{n-1}(1 - t_k)\Bigl[(1 - p)\Delta + \tfrac{p + q(1 - p)}{2\nu}\sum_j|\xi_j^*|^2\Bigr]. \tag{4}

The second inequality is (2), round after round. The first one: h is :math:`\frac{N\nu}2|\theta(\cdot)|^2`, and the
:math:`g_j^*` add :math:`\frac\sigma2|x - \xi^*|^2 \ge \frac{q\nu N}2|\theta(x) - \theta^*|^2`. For :math:`\rho = 0`,
:math:`1 - t_k = t_k^2/t_{k-1}^2`, and :math:`1/t_k - 1/t_{k-1} \ge \frac12` makes the product :math:`t_{n-1}^2/p^2
\le 4/((n-1)p + 2)^2`: with p = 1 the bound of DualFL's Theorem 3.2. For :math:`\rho = \nu/L` a factor e takes at most

.. math:: \frac1{t_\infty} = \frac{1 + \sqrt{1 + 4p(L/\nu - 1)}}{2p} \le \sqrt{\frac NP\Bigl(\frac L\nu - 1\Bigr)}
          + \frac NP \tag{5}

rounds. For :math:`\rho = 0` (1) is APPROX (Fercoq and Richtárik 2015), whose proof this is. ∎

*What it does not say.* Cohorts of random size need a longer step in (a): :math:`|\sum_Se_j|^2` is then larger in the
mean. Local solutions are exact. Where some :math:`g_j` is not bounded below and P < N, the bound is infinite: the dual
energy is, until all clients have been active.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import NamedTuple

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.engine.rounds import State, advance
from dualopt.lab.chance import Branch
from dualopt.lab.claims import Inequality, claim
from dualopt.methods import SampledDualFL
from dualopt.methods import sampled_dualfl as box
from dualopt.methods.participation import Round, UniformSubset
from dualopt.objectives import LocalProblem, Quadratic
from dualopt.objectives.local_problem import client_dot
from theory._cases import Case
from theory._claims import ROUNDING, ExpectedVerdict, deviation
from theory._problems import hard_quadratic, logistic, lopsided, quadratic
from theory._rounds import equally, histories, moments_after, path
from theory.dualfl import _runs
from theory.dualfl._runs import dual_optimum
from theory.frontier.growing_feddyn import deviations

# The steps.


WEIGHTS = 300  # rounds in which those of (b) are followed


class Steps(NamedTuple):
    """The steps t for one rho and one fraction of active clients."""

    name: str
    rho: float
    fraction: float
    rounds: int
    next_step: Callable[[float, float, float], float] = box.next_step


def sampled_dualfl_step_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """From rho = 0 to almost 1, from one client in a hundred to all."""
    for rho in (0.0, 1e-4, 1e-2, 0.3, 0.9):
        for fraction in (0.01, 0.2, 1.0):
            yield ExpectedVerdict(Steps(f"rho = {rho:g}, p = {fraction:g}", rho, fraction, 2000))


@claim(
    source="Theorem F, the steps",
    statement=r"$t_0 = p$, $t_k^2 + q(1 - p)t_k = (1 - t_k)(t_{k-1}^2 + qt_{k-1})$, $q = \frac\rho{1 - \rho}$ (to"
    r" 1e-10): $t_\infty \le t_k \le t_{k-1}$, with the limit $t_\infty = \frac{2p}{1 + \sqrt{1 + 4p(1/\rho - 1)}}$;"
    r" for $\rho = 0$, $\prod_{k=1}^{n-1}(1 - t_k) \le \frac4{((n-1)p + 2)^2}$. Whoever is active, the current $z_j$"
    r" has a weight $c_j \ge t_k/p$ in $x_j$ after round k, and $\frac{t_k}p(1 - p) \le (1 - t_k)c_j$ before it.",
    rtol=ROUNDING,
    cases=sampled_dualfl_step_cases,
)
def sampled_dualfl_step(case: Steps) -> Iterator[Inequality]:
    """SampledDualFL: how its steps fall.

    Compare the recursion, both ends, the product, and the limit from the round on where it is reached; the weights of
    (b) for clients that are always, at times or never active.
    """
    rho, p = case.rho, case.fraction
    q, t, product, weights = rho / (1.0 - rho), p, 1.0, [1.0, 1.0, 1.0]
    limit = 2.0 * p / (1.0 + math.sqrt(1.0 + 4.0 * p * (1.0 / rho - 1.0))) if rho else 0.0
    for n in range(1, case.rounds + 1):
        yield Inequality(n, product, 4.0 / ((n - 1) * p + 2.0) ** 2, "product")
        after = case.next_step(t, rho, p)
        left, right = after**2 + q * (1.0 - p) * after, (1.0 - after) * (t**2 + q * t)
        yield Inequality(n, deviation(left, right), ROUNDING, "recursion")
        yield Inequality(n, after, t, "t falls")
        yield Inequality(n, limit, after, "the limit")
        if n <= WEIGHTS:
            for client, c in enumerate(weights):
                active = client == 0 or (client == 1 and n % 3 == 0)
                if p < 1:
                    yield Inequality(n, after / p * (1.0 - p), (1.0 - after) * c, "what the old point loses")
                weights[client] = after / p if active else (1.0 - after) * c + after
                yield Inequality(n, after / p, weights[client], "weight of the current point")
        t, product = after, product * (1.0 - after)
    if (1.0 - limit) ** case.rounds < 1e-9:  # the deviation from the limit falls by 1 - t in each round
        yield Inequality(case.rounds, t, (1.0 + 1e-6) * limit, "the limit is reached")


# The method.


def sampled(f: Case, active: int, rounds: int, *, rho: float = 1.0, nu: float = 0.5) -> Case:
    """Return SampledDualFL with ``rho`` in units of nu/L and ``nu`` in units of mu, and exact local solutions."""
    N, nu_ = f.objective.n_clients, nu * f.mu
    exactly = _runs.exact(f, nu=nu_, rho=0.0)
    p, solver, stop = active / N, exactly.solver, exactly.stop
    method = SampledDualFL(rho=rho * nu_ / f.L, nu=nu_, fraction=p, least=p, solver=solver, stop=stop)
    note = f"{active} of {N}, rho = {rho:g} nu/L, nu = {nu:g} mu"
    return f.case(method, rounds, note, participation=UniformSubset(size=active))


def admitted(case: Case) -> list[str]:
    """Return what fails: nu in (0, mu], rho in [0, nu/L], the right fraction; g_j bounded below unless p = 1."""
    method = case.algorithm
    rho = _runs.sublinear_regime(case) if method.rho == 0 else _runs.linear_regime(case)
    told = [] if abs(method.least - case.fraction) <= ROUNDING else ["the fraction of active clients"]
    below = case.fraction == 1 or not isinstance(case.objective, Quadratic) or method.nu < case.mu * (1.0 - ROUNDING)
    return rho + told + ([] if below else ["g_j bounded below"])


class Point(NamedTuple):
    """A state with what the proof follows."""

    state: State
    x: Array  # of the dual, (N, *shape)
    values: Array  # g_j^*(z_j), (N,)
    hat: float  # psi hat


def start(case: Case) -> Point:
    """Return the point before the first round."""
    state = case.first()
    z = state.clients.z
    return Point(state, z, values := -infima(case), float(np.sum(values)))


def infima(case: Case) -> Array:
    """Return the infima of the g_j, shape (N,); zeros where all clients are active, since they do not count."""
    f, method = case.objective, case.algorithm
    if case.fraction == 1:
        return np.zeros(f.n_clients)
    zeros = np.zeros((f.n_clients, *f.shape))
    at = method.solver(LocalProblem(objective=f, weight=-method.nu, center=zeros), zeros, method.stop).theta
    return f.value(at) - 0.5 * method.nu * client_dot(at, at)


def followed(case: Case, before: Point, branch: Branch) -> Point:
    r"""Follow x and :math:`g_j^*(z_j^+) = \langle z_j^+, \theta_j\rangle - g_j(\theta_j)` through a round."""
    method, active, models = case.algorithm, list(branch.round.clients), branch.upload
    t, p, z = before.state.message.t, case.fraction, before.state.clients.z
    new = branch.state.clients.z
    g = case.objective.select(tuple(active)).value(models) - 0.5 * method.nu * client_dot(models, models)
    values = before.values.copy()
    values[active] = client_dot(new[active], models) - g
    moved = float(np.sum(values - before.values))
    hat = (1.0 - t) * before.hat + t * float(np.sum(before.values)) + t / p * moved
    return Point(branch.state, (1.0 - t) * before.x + t * z + t / p * (new - z), values, hat)


def excess(case: Case, point: Point) -> float:
    r"""Return :math:`\hat F - E_d^*`."""
    h = float(np.sum(np.sum(point.x, axis=0) ** 2)) / (2.0 * case.n_clients * case.algorithm.nu)
    return h + point.hat + case.n_clients * case.value(case.theta)


def away(case: Case, point: Point) -> float:
    r"""Return :math:`|z - \xi^*|^2`."""
    return float(np.sum((point.state.clients.z - dual_optimum(case)) ** 2))


def weight(case: Case, t: float) -> float:
    """Return K(t)."""
    method = case.algorithm
    return t * (t + method.rho / (1.0 - method.rho)) / (2.0 * case.fraction * method.nu)


def first_bound(case: Case) -> float:
    """Return the bracket of (4)."""
    method, p = case.algorithm, case.fraction
    q = method.rho / (1.0 - method.rho)
    squares = float(np.sum(dual_optimum(case) ** 2))
    delta = case.n_clients * case.value(case.theta) - float(np.sum(infima(case))) if p < 1 else 0.0
    return (1.0 - p) * delta + (p + q * (1.0 - p)) / (2.0 * method.nu) * squares


def sampled_dualfl_potential_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Cohorts of all sizes, smooth and nonsmooth losses, several rho and nu; what is excluded."""
    for active in (1, 2, 3):
        for rho in (0.0, 1.0):
            yield ExpectedVerdict(sampled(quadratic(), active, 25, rho=rho))
    yield ExpectedVerdict(sampled(hard_quadratic(), 1, 25, nu=0.9))
    yield ExpectedVerdict(sampled(lopsided(), 2, 25, rho=0.3))
    yield ExpectedVerdict(sampled(logistic(), 2, 8 if quick else 25))
    for active in (1, 2, 4):
        yield ExpectedVerdict(sampled(deviations(), active, 25, rho=0.0))
    yield ExpectedVerdict(sampled(quadratic(), 3, 25, nu=1.0))
    yield ExpectedVerdict(sampled(quadratic(), 2, 5, nu=1.0), "outside assumptions")
    yield ExpectedVerdict(sampled(quadratic(), 2, 5, nu=2.0), "outside assumptions")
    yield ExpectedVerdict(sampled(lopsided(), 3, 20, rho=30.0), "outside assumptions")


@claim(
    source="Theorem F, one round",
    statement=r"For $\nu \in (0, \mu]$, $\rho \in [0, \nu/L]$, exact local solutions and uniform cohorts of $P = pN$,"
    r" $K(t) = \frac{t(t + q)}{2p\nu}$, $q = \frac\rho{1 - \rho}$: $\mathbb E[\hat F^+ - E_d^* + K(t)|z^+ - \xi^*|^2]"
    r" \le (1 - t)(\hat F - E_d^*) + (K(t) - \frac{qt}{2\nu})|z - \xi^*|^2$ in every round, $\hat F \ge E_d(x)$ as in"
    r" (b); $\theta = -\frac1{N\nu}\sum_jx_j$ and $v = -\frac1{N\nu}\sum_jz_j$ (to 1e-10);"
    r" $\frac{N\nu}{2(1 - \rho)}|\theta - \theta^*|^2 \le \hat F - E_d^*$.",
    assumptions=admitted,
    rtol=1e-9,
    cases=sampled_dualfl_potential_cases,
)
def sampled_dualfl_potential(case: Case) -> Iterator[Inequality]:
    """SampledDualFL: what one round makes of the dual energy.

    Compare with the exact expectation over all cohorts along a random path, and the server's points with the dual ones.
    """
    method = case.algorithm
    scale = case.n_clients * method.nu
    unit = 0.5 * scale / (1.0 - method.rho)
    rounding = 1e-12 * case.n_clients * (abs(case.value(case.theta)) + abs(case.value(case.objective.zeros())))
    chosen = equally(np.random.default_rng(0))
    for turn in path(case, chosen, start=start(case), point=partial(followed, case)):
        n, t, q = turn.n, turn.before.state.message.t, method.rho / (1.0 - method.rho)

        def potential(point: Point, K: float = weight(case, t)) -> float:
            return excess(case, point) + K * away(case, point)

        kept = (1.0 - t) * excess(case, turn.before)
        kept += (weight(case, t) - 0.5 * q * t / method.nu) * away(case, turn.before)
        yield Inequality(n, turn.E[potential], kept, "mean after a round", rounding)
        point = turn.taken
        server, summed = point.state.server, -np.sum(point.x, axis=0) / scale
        yield Inequality(n, deviation(server.theta, summed), ROUNDING, "theta and x")
        yield Inequality(n, deviation(server.v, -np.sum(point.state.clients.z, axis=0) / scale), ROUNDING, "v and z")
        yield Inequality(n, unit * case.distance(server.theta), excess(case, point), "squared distance", rounding)


# The theorem.


def by_histories(case: Case) -> Iterator[tuple[float, float]]:
    r"""Yield the expectations of :math:`\hat F - E_d^*` and of the squared distance over all histories."""
    for E in histories(case, start=start(case), point=partial(followed, case)):
        yield E[lambda point: excess(case, point)], E[lambda point: case.distance(point.state.server.theta)]


def by_moments(case: Case) -> Iterator[float]:
    r"""Yield the expectations of the squared distance on quadratics, where a round maps errors linearly.

    With the errors e of :math:`(\theta, v, w, z)` and the matrices :math:`M_S` of a round, :math:`\mathbb E\,ee^\top
    \leftarrow \frac1{|\mathcal S|}\sum_SM_S\,\mathbb E[ee^\top]M_S^\top`.
    """
    method, f = case.algorithm, case.objective
    d = case.theta.size
    fixed, first = State(*method.fixed_point(f, case.theta)), case.first()

    def flat(state: State) -> Array:
        return np.concatenate([*(np.ravel(part) for part in (*state.server[:3], state.clients.z))])

    origin, t = flat(fixed), first.server.t

    def image(e: Array, round: Round) -> Array:
        theta, v, w, z = np.split(origin + e, [d, 2 * d, 3 * d])
        server = fixed.server._replace(theta=theta, v=v, w=w, t=t)
        clients = fixed.clients._replace(z=z.reshape(fixed.clients.z.shape))
        state = State(server, fixed.message._replace(w=w, t=t), clients)
        return flat(advance(method, f, state, round)[0]) - origin

    e = flat(first) - origin
    moments = np.outer(e, e)
    while True:
        maps = [(p, np.stack([image(unit, round) for unit in np.eye(len(e))], axis=1)) for p, round in case.events()]
        moments = moments_after(maps)(moments)
        t = box.next_step(t, method.rho, method.least)
        yield float(np.trace(moments[:d, :d]))


def sampled_dualfl_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """All histories of few rounds, and moments of many; smooth and nonsmooth losses; what is excluded."""
    for active, rounds in ((1, 5), (2, 5), (3, 40)):
        for rho in (0.0, 1.0):
            yield ExpectedVerdict(sampled(quadratic(), active, rounds, rho=rho))
    yield ExpectedVerdict(sampled(hard_quadratic(), 1, 5))
    yield ExpectedVerdict(sampled(lopsided(), 2, 3 if quick else 4))
    for active, rounds in ((1, 4), (2, 3), (4, 40)):
        yield ExpectedVerdict(sampled(deviations(), active, rounds, rho=0.0))
    for rho in (0.0, 1.0):
        yield ExpectedVerdict(sampled(quadratic(), 1, 60 if quick else 400, rho=rho))
    yield ExpectedVerdict(sampled(quadratic(), 2, 5, nu=1.0), "outside assumptions")
    yield ExpectedVerdict(sampled(quadratic(), 3, 5, nu=2.0), "outside assumptions")
    yield ExpectedVerdict(sampled(lopsided(), 4, 5, rho=6.0), "outside assumptions")


@claim(
    source="Theorem F",
    statement=r"For $\nu \in (0, \mu]$, $\rho \in [0, \nu/L]$, exact local solutions and uniform cohorts of $P = pN$:"
    r" $\frac{N\nu}{2(1 - \rho)}\mathbb E|\theta^n - \theta^*|^2 \le \mathbb E[E_d(x^n) - E_d^*] \le \prod_{k=1}^{n-1}"
    r"(1 - t_k)\bigl[(1 - p)\Delta + \frac{p + q(1 - p)}{2\nu}\sum_j|\xi_j^*|^2\bigr]$, $\Delta = NE^* - \sum_j\inf"
    r" g_j$; for $\rho = 0$ the product is at most $\frac4{((n-1)p + 2)^2}$.",
    assumptions=admitted,
    rtol=1e-9,
    cases=sampled_dualfl_cases,
)
def sampled_dualfl(case: Case) -> Iterator[Inequality]:
    """SampledDualFL: the distance from the solution and the dual energy, in expectation over all cohorts.

    Compare the expectations over all histories with the bound; on quadratics with more rounds than histories allow,
    the distance alone, by its second moments.
    """
    method, bound = case.algorithm, first_bound(case)
    unit = 0.5 * case.n_clients * method.nu / (1.0 - method.rho)
    t = case.fraction
    many = case.rounds > 5 and case.fraction < 1
    expected = ((math.nan, distance) for distance in by_moments(case)) if many else by_histories(case)
    for n, (energy, distance) in enumerate(islice(expected, case.rounds), start=1):
        if not many:
            yield Inequality(n, energy, bound, "dual energy")
        yield Inequality(n, unit * distance, bound, "squared distance")
        t = box.next_step(t, method.rho, case.fraction)
        bound *= 1.0 - t
