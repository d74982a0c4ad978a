r"""Theorem F with one duality parameter for each client, and cohorts that hold the stiff ones more often.

Let every :math:`f_j` be :math:`\mu_j`-strongly convex, :math:`0 < \nu_j \le \mu_j`, :math:`g_j = f_j -
\frac{\nu_j}2|\cdot|^2` and :math:`\bar N = \sum_j\nu_j`. As in :mod:`theory.frontier.scaled_dualfl` the dual energy is

.. math:: E_d(\xi) = h(\xi) + \sum_jg_j^*(\xi_j), \quad h(\xi) = \tfrac1{2\bar N}\Bigl|\sum_j\xi_j\Bigr|^2, \qquad
          \theta(\xi) = -\tfrac1{\bar N}\sum_j\xi_j, \quad \xi_j^* = \nabla f_j(\theta^*) - \nu_j\theta^*.

With :math:`q = \rho/(1 - \rho)` and :math:`\rho \le \min_j\nu_j/L_j` the :math:`g_j^*` are
:math:`\frac q{\nu_j}`-strongly convex. Does the proof of :mod:`theory.frontier.sampled_dualfl` carry over? With uniform
cohorts it does not: (a) there rests on :math:`|\sum_Se_j|^2 \le P\sum_S|e_j|^2`, and a cohort of stiff clients has more
than its share of :math:`\bar N`. With cohorts of P clients that hold client j with probability :math:`\pi_j = \min(1,
K\nu_j)` it does, with :math:`p = \min_j\pi_j`, :math:`\omega_j = \nu_j/\bar N` and

.. math:: z_j^+ = \arg\min_\zeta \langle\nabla_jh(y), \zeta\rangle + g_j^*(\zeta) + \tfrac t{2\nu_j}|\zeta - z_j|^2,
          \quad j \in S, \qquad x_j^+ = y_j + \tfrac t{\pi_j}(z_j^+ - z_j). \tag{1}

With :math:`\theta_j = w - \frac t{\nu_j}(z_j^+ - z_j)` these are the box of the method: :math:`\theta(x^+) =
\sum_S\frac{\omega_j}{\pi_j}\theta_j`, a convex combination in every cohort (:mod:`theory.frontier.weighted_feddyn`).

**Three facts.** (a) With :math:`e_j = \frac t{\pi_j}\Delta_j`: by Cauchy and Schwarz and :math:`\sum_S\nu_j/\pi_j =
\bar N` for every cohort, :math:`|\sum_Se_j|^2 \le \bar N\sum_S\frac{\pi_j}{\nu_j}|e_j|^2`, so that

.. math:: \mathbb E\,h(y + e_S) \le h(y) + t\langle\nabla h(y), \Delta\rangle
          + \tfrac{t^2}2\sum_j\tfrac1{\nu_j}|\Delta_j|^2.

(b) :math:`\hat\psi^+ = (1 - t)\hat\psi + t\sum_jg_j^*(z_j) + \sum_S\frac t{\pi_j}(g_j^*(z_j^+) - g_j^*(z_j))` is the
combination of values that x is of points, and its weights are not negative if :math:`t_k \le t_{k-1}` and
:math:`t_k \le \pi_j` for all j. (c) :math:`\mathbb E\,\hat\psi^+ = (1 - t)\hat\psi + t\sum_jg_j^*(\tilde z_j)`.

**One step.** As there, with :math:`\pi_j|\tilde z_j - \xi_j^*|^2 = \mathbb E|z_j^+ - \xi_j^*|^2 - (1 - \pi_j)|z_j -
\xi_j^*|^2` for each client and :math:`K_j(t) = \frac{t(t + q)}{2\pi_j\nu_j}`,

.. math:: \mathbb E\Bigl[\hat F^+ - E_d^* + \sum_jK_j(t)|z_j^+ - \xi_j^*|^2\Bigr]
          \le (1 - t)(\hat F - E_d^*) + \sum_j\bigl(K_j(t) - \tfrac{qt}{2\nu_j}\bigr)|z_j - \xi_j^*|^2. \tag{2}

**The steps** are those for p: :math:`K_j(t_k) - \frac{qt_k}{2\nu_j} \le (1 - t_k)K_j(t_{k-1})` says :math:`t_k^2 +
q(1 - \pi_j)t_k \le (1 - t_k)(t_{k-1}^2 + qt_{k-1})`, where :math:`\pi_j = p` gives equality and larger ones hold.

**Theorem.** From :math:`t_0 = p`, with :math:`\Delta = NE^* - \sum_j\inf g_j`,

.. math:: \tfrac{\bar N}{2(1 - \rho)}\mathbb E|\theta^n - \theta^*|^2 \le \mathbb E[E_d(x^n) - E_d^*] \le
          \prod_{k=1}^{n-1}(1 - t_k)\Bigl[(1 - p)\Delta
          + \sum_j\tfrac{p(p + q(1 - \pi_j))}{2\pi_j\nu_j}|\xi_j^*|^2\Bigr]. \qquad ∎ \tag{3}

*What it is worth.* A factor e takes about :math:`\sqrt{(1/\rho - 1)/p} + 1/p` rounds. For :math:`\nu_j = \mu_j`,
:math:`\kappa_j = \kappa` and no :math:`\pi_j = 1`, that is :math:`\sqrt{\kappa\frac NP\frac{\bar\mu}{\mu_{\min}}}`,
with one parameter :math:`\sqrt{\kappa\frac NP\frac{\mu_{\max}}{\mu_{\min}}}`: the mean of the :math:`\mu_j` in the
place of the largest. No more than that is gained: the clients with small :math:`\nu_j` are active seldom. For FedSplit
and FedDyn the gain is larger (:mod:`theory.frontier.weighted_feddyn`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.engine.rounds import State
from dualopt.lab.chance import Branch
from dualopt.lab.claims import Inequality, claim
from dualopt.methods import SampledDualFL
from dualopt.methods import sampled_dualfl as box
from dualopt.methods._pivotal import inclusion_probabilities
from dualopt.methods.participation import UniformSubset, WeightedSubset
from dualopt.objectives import LocalProblem
from dualopt.objectives.local_problem import client_dot, per_client
from dualopt.objectives.scales import in_own_units
from theory._cases import Case
from theory._claims import ROUNDING, UP_TO_ROUNDING, ExpectedVerdict, deviation
from theory._problems import WEIGHTS, logistic, lopsided, two, weighed
from theory._rounds import by_chance, histories, path
from theory.dualfl import _runs
from theory.frontier.growing_feddyn import deviations
from theory.frontier.sampled_dualfl import Point
from theory.frontier.sampled_fedsplit import unequal
from theory.frontier.scaled_dualfl import parameters
from theory.frontier.weighted_feddyn import marginals


def weighted(
    f: Case, size: int, rounds: int, *, rho: float = 1.0, nu: float = 0.5, ratios: tuple[float, ...] | None = None
) -> Case:
    """Return SampledDualFL with ``rho`` in units of the largest one and ``nu_j`` of ``nu mu_j``, or in given ratios."""
    N, mu = f.objective.n_clients, np.array(f.objective.mu)
    scales = mu / f.mu if ratios is None else np.array(ratios)
    exactly = _runs.exact(f, nu=nu * f.mu, rho=0.0)
    g = f.reweighted(scales)
    common = nu * f.mu * float(f.objective.mean(scales))  # nu_j of nu mu_j, or nu mu times ratios, for the clients of f
    largest = common / g.L
    method = SampledDualFL(rho=rho * largest, nu=common, fraction=size / N, solver=exactly.solver, stop=exactly.stop)
    note = f"{size} of {N}, rho = {rho:g} nu/L, nu_j = {nu:g} " + ("mu_j" if ratios is None else "mu times scales")
    chance = WeightedSubset(size=size, weights=g.objective.weights)
    return g.case(method.suggested(g.objective), rounds, note, participation=chance)


def chances(case: Case) -> Array:
    """Return the pi_j of the theorem, shape (N,)."""
    return np.array(inclusion_probabilities(parameters(case).tolist(), round(case.fraction * case.n_clients)))


def admitted(case: Case) -> list[str]:
    """Return what fails: nu_j in (0, mu_j), rho in [0, min nu_j/L_j], cohorts drawn with the weights nu_j."""
    nu, method = parameters(case), case.algorithm
    below = [] if np.all(nu < case.plain.mu * (1.0 - ROUNDING)) and np.min(nu) > 0 else ["0 < nu_j < mu_j"]
    rho = [] if method.rho <= float(np.min(nu / case.plain.L)) * UP_TO_ROUNDING else ["rho <= nu_j/L_j"]
    drawn = np.allclose(marginals(case), chances(case), rtol=0.0, atol=ROUNDING)
    return below + rho + ([] if drawn else ["pi_j = min(1, K nu_j)"])


class Follower:
    """The points of the proof along a run of a case; all arrays of numbers of clients have shape (N,)."""

    def __init__(self, case: Case) -> None:
        self.case, self.nu, self.pi = case, parameters(case), chances(case)
        self.total, self.p = float(np.sum(self.nu)), float(np.min(self.pi))
        self.q = case.algorithm.rho / (1.0 - case.algorithm.rho)
        self.column = per_client(case.masses, case.subgradients)
        self.optimum = case.plain_subgradients - per_client(self.nu, case.subgradients) * case.theta
        self.infima = self._infima()

    def _infima(self) -> Array:
        """Return the infima of the g_j."""
        case, zeros = self.case, np.zeros_like(self.case.subgradients)
        problem = in_own_units(LocalProblem(objective=case.plain, weight=-self.nu, center=zeros))
        at = case.algorithm.solver(problem, zeros, case.algorithm.stop).theta
        return self.g(at, range(case.n_clients))

    def g(self, at: Array, active: range | list[int]) -> Array:
        """Return the g_j of the active clients."""
        values = self.case.plain.select(tuple(active)).value(at)
        return values - 0.5 * self.nu[list(active)] * client_dot(at, at)

    def z(self, state: State) -> Array:
        """Return the dual variables of the plain clients."""
        return self.column * state.clients.z

    def start(self) -> Point:
        """Return the point before the first round."""
        state = self.case.first()
        return Point(state, self.z(state), -self.infima, -float(np.sum(self.infima)))

    def after(self, before: Point, branch: Branch) -> Point:
        """Return the point after a round."""
        active, z, t = list(branch.round.clients), self.z(before.state), before.state.message.t
        state, new, models = branch.state, self.z(branch.state), branch.solution.theta
        values = before.values.copy()
        values[active] = client_dot(new[active], models) - self.g(models, active)
        step = t / self.pi
        moved = float(np.sum(step * (values - before.values)))
        hat = (1.0 - t) * before.hat + t * float(np.sum(before.values)) + moved
        return Point(state, (1.0 - t) * before.x + t * z + per_client(step, z) * (new - z), values, hat)

    def excess(self, point: Point) -> float:
        r"""Return :math:`\hat F - E_d^*`."""
        h = float(np.sum(np.sum(point.x, axis=0) ** 2)) / (2.0 * self.total)
        return h + point.hat + self.case.n_clients * self.case.value(self.case.theta)

    def squares(self, point: Point) -> Array:
        r"""Return the :math:`|z_j - \xi_j^*|^2`."""
        z = self.z(point.state) - self.optimum
        return client_dot(z, z)

    def potential(self, t: float) -> Callable[[Point], float]:
        r"""Return :math:`\hat F - E_d^* + \sum_jK_j(t)|z_j - \xi_j^*|^2`, of a point."""
        return lambda point: self.excess(point) + float(np.sum(self.weights(t) * self.squares(point)))

    def weights(self, t: float) -> Array:
        """Return the K_j(t)."""
        return t * (t + self.q) / (2.0 * self.pi * self.nu)

    def first_bound(self) -> float:
        """Return the bracket of (3)."""
        delta = self.case.n_clients * self.case.value(self.case.theta) - float(np.sum(self.infima))
        kept = self.weights(self.p) - 0.5 * self.q * self.p / self.nu
        return (1.0 - self.p) * delta + float(np.sum(kept * client_dot(self.optimum, self.optimum)))


def weighted_dualfl_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Cohorts of all sizes, clients of scales from 1 to 100, smooth and nonsmooth losses; what is excluded."""
    for size in (1, 2, 3, 4):
        for rho in (0.0, 1.0):
            yield ExpectedVerdict(weighted(unequal(), size, 25, rho=rho))
    yield ExpectedVerdict(weighted(unequal(), 2, 25, nu=0.95))
    yield ExpectedVerdict(weighted(lopsided(), 2, 25, rho=0.3))
    yield ExpectedVerdict(weighted(logistic(), 2, 8 if quick else 25, ratios=(1.0, 0.2, 0.5, 1.0)))
    yield ExpectedVerdict(weighted(two(), 1, 25))
    for size in (1, 2, 4):
        yield ExpectedVerdict(weighted(weighed(unequal(), *WEIGHTS), size, 25))
    yield ExpectedVerdict(weighted(weighed(lopsided(), *WEIGHTS), 2, 25, ratios=(1.0, 1.0, 1.0, 1.0)))
    for size in (1, 2):
        yield ExpectedVerdict(weighted(deviations(), size, 25, rho=0.0, ratios=(1.0, 0.1, 0.3, 0.9)))
    uniform = weighted(unequal(), 2, 25).but(participation=UniformSubset(size=2))
    yield ExpectedVerdict(uniform, "outside assumptions")
    yield ExpectedVerdict(weighted(unequal(), 2, 5, nu=2.0), "outside assumptions")
    yield ExpectedVerdict(weighted(lopsided(), 3, 20, rho=30.0), "outside assumptions")


@claim(
    source="Theorem F, one parameter for each client",
    statement=r"For $\nu_j \in (0, \mu_j)$, $\rho \in [0, \min_j\nu_j/L_j]$, $q = \frac\rho{1 - \rho}$, exact local"
    r" solutions and cohorts of P clients that hold client j with probability $\pi_j = \min(1, K\nu_j)$, $K_j(t) ="
    r" \frac{t(t + q)}{2\pi_j\nu_j}$ and the steps t of Theorem F for $p = \min_j\pi_j$: $\mathbb E[\hat F^+ - E_d^* +"
    r" \sum_jK_j(t)|z_j^+ - \xi_j^*|^2] \le (1 - t)(\hat F - E_d^*) + \sum_j(K_j(t) - \frac{qt}{2\nu_j})|z_j -"
    r" \xi_j^*|^2$ in every round, and this is at most $1 - t$ times the left-hand side of the round before;"
    r" $\theta = -\sum_jx_j/\sum_j\nu_j$, $v = -\sum_jz_j/\sum_j\nu_j$ (to 1e-10);"
    r" $\frac{\sum_j\nu_j}{2(1 - \rho)}|\theta - \theta^*|^2 \le \hat F - E_d^*$. Hence"
    r" $\frac{\sum_j\nu_j}{2(1 - \rho)}\mathbb E|\theta^n - \theta^*|^2 \le \prod_{k=1}^{n-1}(1 - t_k)\bigl["
    r"(1 - p)\Delta + \sum_j\frac{p(p + q(1 - \pi_j))}{2\pi_j\nu_j}|\xi_j^*|^2\bigr]$.",
    assumptions=admitted,
    rtol=1e-9,
    cases=weighted_dualfl_cases,
)
def weighted_dualfl(case: Case) -> Iterator[Inequality]:
    """SampledDualFL with one parameter for each client: what one round makes of the dual energy.

    Compare with the exact expectation over all cohorts along a random path, the server's points with the dual ones, the
    weights of one round with those of the next; and the distance with the bound, over all histories of three rounds.
    """
    proof, chosen = Follower(case), by_chance(np.random.default_rng(0))
    unit = 0.5 * proof.total / (1.0 - case.algorithm.rho)
    rounding = 1e-12 * case.n_clients * (abs(case.value(case.theta)) + abs(case.value(case.objective.zeros())))
    for turn in path(case, chosen, start=proof.start(), point=proof.after):
        n, t = turn.n, turn.before.state.message.t
        left = proof.weights(t) - 0.5 * proof.q * t / proof.nu
        bound = (1.0 - t) * proof.excess(turn.before) + float(np.sum(left * proof.squares(turn.before)))
        yield Inequality(n, turn.E[proof.potential(t)], bound, "mean after a round", rounding)
        point = turn.taken
        server, later = point.state.server, point.state.message.t
        kept = proof.weights(later) - 0.5 * proof.q * later / proof.nu
        yield Inequality(n, float(np.max(kept / ((1.0 - later) * proof.weights(t)))), 1.0, "weights of the next round")
        theta, v = (-np.sum(at, axis=0) / proof.total for at in (point.x, proof.z(point.state)))
        yield Inequality(n, deviation(server.theta, theta), ROUNDING, "theta and x")
        yield Inequality(n, deviation(server.v, v), ROUNDING, "v and z")
        yield Inequality(n, unit * case.distance(server.theta), proof.excess(point), "squared distance", rounding)
    bound, t = proof.first_bound(), proof.p
    for n, E in enumerate(histories(case.but(rounds=3), start=proof.start(), point=proof.after), start=1):
        distance = E[lambda point: case.distance(point.state.server.theta)]
        yield Inequality(n, unit * distance, bound, "squared distance over all histories")
        yield Inequality(n, E[proof.excess], bound, "energy over all histories")
        t = box.next_step(t, case.algorithm.rho, proof.p)
        bound *= 1.0 - t
