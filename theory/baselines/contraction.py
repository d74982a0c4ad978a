r"""What one round makes of a Lyapunov function: FedSplit, FedDR, Scaffnew, 5GCS and SCAFFOLD with their best factors.

The error of a state is a vector, zero at the solution, and its squared norm is the Lyapunov function. On quadratic
clients a round is an affine map of the error for every outcome of chance, so that the largest ratio of the mean after a
round and the value before it is an eigenvalue: the factor is compared with that of all states, not only with a run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.engine.rounds import State, advance, initial_state
from dualopt.lab.chance import worst_growth
from dualopt.lab.claims import Inequality, claim
from dualopt.methods import (
    FedDR,
    FedSplit,
    FiveGCS,
    Scaffnew,
    Scaffold,
    ScaffoldI,
)
from dualopt.methods.participation import CommunicateWithProbability
from dualopt.objectives import LocalProblem, Quadratic
from dualopt.objectives.scales import own_clients
from dualopt.solvers import Gradient
from dualopt.solvers.stopping import Steps
from theory._cases import Case, accurately
from theory._claims import ROUNDING, UP_TO_ROUNDING, ExpectedVerdict, deviation
from theory._problems import (
    flat_quadratic,
    hard_quadratic,
    logistic,
    lopsided,
    one_flat_client,
    quadratic,
    solved,
)
from theory._rounds import Turn, by_chance, mean_square_radius, path, round_matrices
from theory.baselines._runs import baseline_case, reflection, smooth_and_strongly_convex

ROUNDS = 15
VISIBLE = 1e-6  # a thousandth of the distance at the start: rounding is ten digits smaller

# What the claims compare.


class Errors(NamedTuple):
    """States of a case as vectors that are zero at the solution; their squared norm is the Lyapunov function."""

    size: int
    of: Callable[[State], Array]
    state: Callable[[Array], State]  # the state that has this error

    def squared(self, state: State) -> float:
        """Return the Lyapunov function."""
        return float(np.sum(self.of(state) ** 2))


def one_step(case: Case, errors: Errors, factor: float, turns: Iterator[Turn] | None = None) -> Iterator[Inequality]:
    """Compare the mean of the Lyapunov function after a round with ``factor`` times its value before.

    At every state of a path, by default a sampled one from a random error; and, where the clients are quadratic, at the
    worst of all states (``n = 0``), which is as bad as the factor says where the case calls it attained.
    """
    for n, turn in enumerate(turns or path_of(case, errors), start=1):
        yield Inequality(n, mean_after(turn, errors), factor * errors.squared(turn.before), "mean after a round")
    if isinstance(own_clients(case.objective), Quadratic):
        method, f = case.algorithm, case.objective
        growth = worst_growth(method, f, case.events(), errors.state, errors.of, errors.size)
        yield Inequality(0, growth, factor, "worst growth")
        if case.attained:
            yield Inequality(0, factor, growth, "factor and the worst growth")


def path_of(case: Case, errors: Errors) -> Iterator[Turn]:
    """Follow the case from a random error of norm one, as long as the function is larger than rounding."""
    rng = np.random.default_rng(0)
    start = rng.standard_normal(errors.size)
    started = case.but(state=errors.state(start / np.linalg.norm(start)))
    for turn in path(started, by_chance(rng)):
        if errors.squared(turn.before) < VISIBLE:
            break
        yield turn


def mean_after(turn: Turn, errors: Errors) -> float:
    """Return the conditional expectation of the Lyapunov function after a round."""
    return turn.E[lambda branch: errors.squared(branch.state)]


# FedSplit: Peaceman-Rachford splitting.


def fedsplit_case(f: Case, *, times: float = 1.0, active: int | None = None, attained: bool = False) -> Case:
    """Return FedSplit with ``times`` the best step."""
    method = FedSplit(step=times / math.sqrt(f.L * f.mu), **accurately(f.objective))
    note = "" if times == 1 else f"{times:g} times the step"
    return baseline_case(f, method, ROUNDS, note, active=active, attained=attained)


def fedsplit_errors(case: Case) -> Errors:
    """Return the distances from the limits, theta* - s grad f_j(theta*)."""
    f = case.objective
    limits = case.theta - case.subgradients / math.sqrt(case.L * case.mu)
    start = initial_state(case.algorithm, f, case.theta)

    def state(e: Array) -> State:
        z = limits + e.reshape(limits.shape)
        theta = np.mean(z, axis=0)
        return State(start.server._replace(theta=theta, consensus=theta), theta, start.clients._replace(z=z))

    return Errors(limits.size, lambda state: np.ravel(state.clients.z - limits), state)


def best_step(case: Case) -> list[str]:
    """Return what fails: everybody is active, and the step is the best one."""
    right = abs(case.algorithm.step * math.sqrt(case.L * case.mu) - 1.0) <= ROUNDING if case.mu > 0 else True
    full = [] if case.fraction == 1 else ["all clients active"]
    return smooth_and_strongly_convex(case) + full + ([] if right else ["s = 1/sqrt(L mu)"])


def fedsplit_contraction_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Quadratics of several condition numbers, and a loss of another kind; what the theorem excludes."""
    for f in (quadratic(), quadratic(5, L=4.0), hard_quadratic()):
        yield ExpectedVerdict(fedsplit_case(f, attained=True))
    yield ExpectedVerdict(fedsplit_case(lopsided()))
    yield ExpectedVerdict(fedsplit_case(logistic()))
    yield ExpectedVerdict(fedsplit_case(quadratic(), times=2.0), "outside assumptions")
    yield ExpectedVerdict(fedsplit_case(quadratic(), active=2), "outside assumptions")


@claim(
    source="Pathak and Wainwright 2020 (recalled)",
    statement=r"For $\mu$-strongly convex, $L$-smooth clients, all of them active, exact proximal steps and"
    r" $s = 1/\sqrt{L\mu}$: $\sum_j |z_j^+ - z_j^*|^2 \le \bigl(1 - \frac2{\sqrt\kappa + 1}\bigr)^2"
    r" \sum_j |z_j - z_j^*|^2$ always, with $z_j^* = \theta^* - s\nabla f_j(\theta^*)$. Quadratics that have one"
    r" of the curvatures $\mu$ and $L$ attain it.",
    assumptions=best_step,
    rtol=ROUNDING,
    cases=fedsplit_contraction_cases,
)
def fedsplit_contraction(case: Case) -> Iterator[Inequality]:
    """FedSplit: the linear rate of Peaceman-Rachford splitting.

    Compare squared distances of the z_j from their limits.
    """
    return one_step(case, fedsplit_errors(case), (1.0 - 2.0 / (math.sqrt(case.L / case.mu) + 1.0)) ** 2)


# FedDR: Douglas-Rachford splitting.


def feddr_case(
    f: Case, *, a: float = 1.0, step: float | None = None, active: int | None = None, attained: bool = False
) -> Case:
    """Return FedDR with relaxation ``a``, and ``step`` in units of 1/L for ``eta``; the best one if it is not given."""
    eta = 1.0 / math.sqrt(f.L * f.mu) if step is None else step / f.L
    method = FedDR(eta=eta, relaxation=a, **accurately(f.objective))
    note = f"a = {a:g}, eta = {eta * f.L:.3g}/L"
    return baseline_case(f, method, ROUNDS, note, active=active, attained=attained)


def feddr_errors(case: Case) -> Errors:
    """Return the distances from the limits, theta* + eta grad f_j(theta*)."""
    f, method = case.objective, case.algorithm
    limits = case.theta + method.eta * case.subgradients
    start = initial_state(method, f, case.theta)

    def state(e: Array) -> State:
        y = limits + e.reshape(limits.shape)
        problem = LocalProblem(objective=f, weight=1.0 / method.eta, center=y)
        x = method.solver(problem, start.clients.x, method.stop).theta
        clients = start.clients._replace(y=y, x=x, reflected=2.0 * x - y)
        theta = np.mean(clients.reflected, axis=0)
        return State(start.server._replace(theta=theta, mean=theta), theta, clients)

    return Errors(limits.size, lambda state: np.ravel(state.clients.y - limits), state)


def feddr_contraction_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Relaxations, steps and cohorts; convex clients, which have no factor, are excluded."""
    for a in (0.5, 1.0, 2.0):
        yield ExpectedVerdict(feddr_case(quadratic(), a=a))
        yield ExpectedVerdict(feddr_case(hard_quadratic(), a=a, attained=True))
    for step, active in ((None, 1), (5.0, 2), (200.0, 2)):
        yield ExpectedVerdict(feddr_case(hard_quadratic(), step=step, active=active, attained=True))
    for active in (None, 2):
        yield ExpectedVerdict(feddr_case(logistic(), active=active).but(rounds=8 if quick else ROUNDS))
    yield ExpectedVerdict(feddr_case(lopsided(), active=2))
    yield ExpectedVerdict(feddr_case(flat_quadratic(), step=1.0), "outside assumptions")
    yield ExpectedVerdict(feddr_case(one_flat_client(), step=1.0), "outside assumptions")


@claim(
    source="Giselsson and Boyd 2017, for FedDR (recalled)",
    statement=r"For $\mu$-strongly convex, $L$-smooth clients, exact proximal steps, $\eta > 0$, $a \in (0, 2]$ and"
    r" $P$ of $N$ active clients: $\mathbb E \sum_j |y_j^+ - y_j^*|^2 \le \bigl(1 - \frac PN(1 - q^2)\bigr)"
    r" \sum_j |y_j - y_j^*|^2$, where $q = 1 - \frac a2(1 - \delta)$, $\delta = \max(\frac{1 - \eta\mu}{1 + \eta\mu},"
    r" \frac{\eta L - 1}{\eta L + 1})$, and $y_j^* = \theta^* + \eta\nabla f_j(\theta^*)$. Quadratics"
    r" with equal Hessians attain it.",
    assumptions=smooth_and_strongly_convex,
    rtol=ROUNDING,
    cases=feddr_contraction_cases,
)
def feddr_contraction(case: Case) -> Iterator[Inequality]:
    r"""FedDR: the linear rate of Douglas-Rachford splitting, and with it that of FedPD, FedDyn and A-FedPD.

    A full round takes the points :math:`y_j` to :math:`(1 - \frac a2) y + \frac a2 R_G R_F y` with the reflections
    :math:`R_F` of the clients' proximal maps, which contracts by :math:`\delta = \max(\frac{1 - \eta\mu}{1 + \eta\mu},
    \frac{\eta L - 1}{\eta L + 1})`, and :math:`R_G` of the mean, an isometry. An inactive client keeps its point, hence
    the fraction of the others in the expectation.

    With :math:`\eta = 1/\sqrt{L\mu}`, :math:`1 - \delta = 2/(\sqrt\kappa + 1)`: communication rounds of order
    :math:`\sqrt\kappa`. By ``identity_full_participation`` that is also the rate of FedPD, FedDyn, A-FedPD and FedADMM
    with the weight :math:`\sqrt{L\mu}` and all clients, although the DualFL paper does not count them as accelerated.

    Compare squared distances of the y_j from their limits.
    """
    delta = reflection(case.algorithm.eta, case.mu, case.L)
    kept = 1.0 - 0.5 * case.algorithm.relaxation * (1.0 - delta)
    return one_step(case, feddr_errors(case), 1.0 - case.fraction * (1.0 - kept**2))


# Scaffnew: communication by a coin.


def scaffnew_case(f: Case, times: float, p: float, attained: bool = False) -> Case:
    """Return Scaffnew with a step of ``times/L`` and its coin."""
    method = Scaffnew(probability=p, solver=Gradient(step=times / f.L))
    coin = CommunicateWithProbability(probability=p)
    return baseline_case(f, method, ROUNDS, f"s = {times:g}/L, p = {p:g}", participation=coin, attained=attained)


def best_scaffnew_case(f: Case, attained: bool = False) -> Case:
    """Return Scaffnew with the best step and the least probability at which the controls are no slower."""
    kappa = f.L / f.mu
    return scaffnew_case(f, 2.0 * kappa / (kappa + 1.0), 2.0 * math.sqrt(kappa) / (kappa + 1.0), attained)


def scaffnew_errors(case: Case) -> Errors:
    """Return the errors of the models and, s/p times, of the controls, which have sum zero."""
    f, method = case.objective, case.algorithm
    N, d = f.n_clients, math.prod(f.shape)
    weight = method.solver.step / method.probability
    centred = np.linalg.svd(np.eye(N) - 1.0 / N)[0][:, :-1]  # a basis of what has sum zero
    start = initial_state(method, f, case.theta)

    def of(state: State) -> Array:
        control = weight * (state.clients.control - case.subgradients).reshape(N, d)
        return np.concatenate([np.ravel(state.clients.theta - case.theta), np.ravel(centred.T @ control)])

    def state(e: Array) -> State:
        theta = case.theta + e[: N * d].reshape(N, *f.shape)
        control = case.subgradients + (centred @ e[N * d :].reshape(N - 1, d)).reshape(N, *f.shape) / weight
        return start._replace(clients=start.clients._replace(theta=theta, control=control))

    return Errors((2 * N - 1) * d, of, state)


def steps_contract(case: Case) -> list[str]:
    """Return what fails: steps from 2/L on do not contract."""
    fine = case.algorithm.solver.step * case.L < 2.0
    return smooth_and_strongly_convex(case) + ([] if fine else ["step < 2/L"])


def scaffnew_one_step_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Rare and certain communication, short steps and long ones; a step that is too long."""
    for times, p in ((1.0, 0.05), (1.0, 0.2), (1.9, 0.7), (0.3, 1.0)):
        yield ExpectedVerdict(scaffnew_case(quadratic(), times, p, attained=True))
    yield ExpectedVerdict(best_scaffnew_case(quadratic(), attained=True))
    yield ExpectedVerdict(best_scaffnew_case(lopsided()))
    yield ExpectedVerdict(scaffnew_case(lopsided(), 1.0, 0.3))
    yield ExpectedVerdict(scaffnew_case(logistic(), 1.0, 0.3))
    if not quick:
        yield ExpectedVerdict(scaffnew_case(hard_quadratic(), 1.0, 0.03, attained=True))
    yield ExpectedVerdict(scaffnew_case(quadratic(), 2.1, 0.5), "outside assumptions")


@claim(
    source="Mishchenko et al. 2022 (recalled), with the factor derived anew",
    statement=r"For $\mu$-strongly convex, $L$-smooth clients, steps $s < 2/L$ and $p \in (0, 1]$,"
    r" $\mathbb E\,\Psi^+ = \sum_j |x_j - s\nabla f_j(x_j) - \theta^* + s\nabla f_j(\theta^*)|^2"
    r" + (1 - p^2)\frac{s^2}{p^2}\sum_j |h_j - \nabla f_j(\theta^*)|^2"
    r" \le \max((1 - s\mu)^2, (1 - sL)^2, 1 - p^2)\,\Psi$ with"
    r" $\Psi = \sum_j |x_j - \theta^*|^2 + \frac{s^2}{p^2}\sum_j |h_j - \nabla f_j(\theta^*)|^2$. Quadratics that have"
    r" the curvatures $\mu$ and $L$ attain it. For $s \le 1/L$ it is at most the paper's $1 - \min(s\mu, p^2)$."
    r" It is least, $((\kappa - 1)/(\kappa + 1))^2$, for $s = 2/(L + \mu)$, from $p = 2\sqrt\kappa/(\kappa + 1)$ on.",
    assumptions=steps_contract,
    rtol=ROUNDING,
    cases=scaffnew_one_step_cases,
)
def scaffnew_one_step(case: Case) -> Iterator[Inequality]:
    """Scaffnew: the contraction of its Lyapunov function, with both sides of the coin.

    Compare with the factor, and with what the mean is exactly.
    """
    s, p, errors = case.algorithm.solver.step, case.algorithm.probability, scaffnew_errors(case)
    yield from one_step(case, errors, max((1.0 - s * case.mu) ** 2, (1.0 - s * case.L) ** 2, 1.0 - p * p))
    for n, step in enumerate(path_of(case, errors), start=1):
        theta, control = step.before.clients.theta, step.before.clients.control
        moved = theta - case.theta - s * (case.objective.gradient(theta) - case.subgradients)
        error = (1.0 - p * p) * (s / p) ** 2 * np.sum((control - case.subgradients) ** 2)
        exact = np.sum(moved**2) + error
        yield Inequality(n, deviation(mean_after(step, errors), exact), ROUNDING, "the mean itself")


# 5GCS: cohorts in a primal-dual method.


def fivegcs_case(
    f: Case, active: int, *, gamma: float | None = None, product: float = 0.5, attained: bool = False
) -> Case:
    """Return 5GCS with the given product of gamma, tau and N; with the suggested gamma when there is none."""
    N, exactly = f.objective.n_clients, accurately(f.objective)
    method = FiveGCS(fraction=active / N, **exactly)
    gamma = method.suggested(f.objective).gamma if gamma is None else gamma
    method = FiveGCS(gamma=gamma, tau=product / (gamma * N), fraction=active / N, **exactly)
    note = f"gamma = {gamma:.3g}, gamma tau N = {product:g}"
    return baseline_case(f, method, ROUNDS, note, active=active, attained=attained)


def constants(case: Case) -> tuple[float, float]:
    """Return the smoothness of the F_m and the weight of the squared errors of the duals."""
    L_F = (case.L - case.algorithm.mu) / case.objective.n_clients
    return L_F, (1.0 / case.algorithm.tau + 1.0 / L_F) / case.fraction


def fivegcs_errors(case: Case) -> Errors:
    """Return the weighted errors of the model and of the duals."""
    f, method = case.objective, case.algorithm
    d, gamma, mu = math.prod(f.shape), method.gamma, method.mu
    limits = (case.subgradients - mu * case.theta) / f.n_clients
    primal, dual = 1.0 / math.sqrt(gamma), math.sqrt(constants(case)[1])
    start = initial_state(method, f, case.theta)

    def of(state: State) -> Array:
        x, u = state.server.theta - case.theta, state.clients.dual - limits
        return np.concatenate([primal * np.ravel(x), dual * np.ravel(u)])

    def state(e: Array) -> State:
        x, u = case.theta + e[:d].reshape(f.shape) / primal, limits + e[d:].reshape(limits.shape) / dual
        v = np.sum(u, axis=0)
        xhat = (x - gamma * v) / (1.0 + gamma * mu)
        return State(start.server._replace(theta=x, dual=v, xhat=xhat), xhat, start.clients._replace(dual=u))

    return Errors(d + limits.size, of, state)


def steps_admitted(case: Case) -> list[str]:
    """Return what fails of the parameters."""
    method, N = case.algorithm, case.objective.n_clients
    curvature = [] if 0 < method.mu <= case.mu * UP_TO_ROUNDING and method.mu < case.L else ["0 < mu < L"]
    small = method.gamma * method.tau * N <= UP_TO_ROUNDING
    return smooth_and_strongly_convex(case) + curvature + ([] if small else ["gamma tau N <= 1"])


def fivegcs_one_step_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Cohorts of all sizes with the suggested parameters, others, and a product of the steps beyond one."""
    for active in (1, 2, 3):
        yield ExpectedVerdict(fivegcs_case(quadratic(), active))
    yield ExpectedVerdict(fivegcs_case(hard_quadratic(L=20.0), 1, gamma=1.0, product=1.0, attained=True))
    yield ExpectedVerdict(fivegcs_case(quadratic(L=5.0), 2, gamma=0.1, product=1.0))
    yield ExpectedVerdict(fivegcs_case(lopsided(), 2))
    yield ExpectedVerdict(fivegcs_case(logistic(), 2).but(rounds=8 if quick else ROUNDS))
    yield ExpectedVerdict(fivegcs_case(quadratic(L=20.0), 1, gamma=0.2, product=5.0), "outside assumptions")


@claim(
    source="Grudzien, Malinovsky and Richtarik 2023 (recalled)",
    statement=r"For $\mu$-strongly convex, $L$-smooth clients, a uniform cohort of $C$ of them, exact proximal maps and"
    r" $\gamma\tau N \le 1$: $\mathbb E\,\Psi^+ \le \max\bigl(\frac1{1 + \gamma\mu}, 1 - \frac CN\frac\tau{L_F + \tau}"
    r"\bigr)\Psi$ with $L_F = (L - \mu)/N$, $\Psi = \frac1\gamma|x - x^*|^2 + \frac NC(\frac1\tau + \frac1{L_F})"
    r"\sum_m|u_m - u_m^*|^2$, $u_m^* = (\nabla f_m(x^*) - \mu x^*)/N$. Equal"
    r" Hessians and $C = 1$ attain the second number.",
    assumptions=steps_admitted,
    rtol=ROUNDING,
    cases=fivegcs_one_step_cases,
)
def fivegcs_one_step(case: Case) -> Iterator[Inequality]:
    """5GCS: the contraction of its Lyapunov function, with the exact expectation over the cohorts.

    Compare with the larger of the primal and the dual factor.
    """
    method, (L_F, _) = case.algorithm, constants(case)
    primal = 1.0 / (1.0 + method.gamma * method.mu)
    dual = 1.0 - case.fraction * method.tau / (L_F + method.tau)
    return one_step(case, fivegcs_errors(case), max(primal, dual))


# SCAFFOLD: control variates. Its fixed point is the solution, and it is reached whoever takes part.


@cache
def three_directions(*, L: float = 40.0) -> Case:
    """Three clients in the plane, each with curvature L along one of three directions at 120 degrees and 1 across."""
    angles = 2.0 * np.pi * np.arange(3) / 3
    u = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    A = np.eye(2) + (L - 1.0) * u[:, :, None] * u[:, None, :]
    return solved(f"three directions (kappa={L:g})", Quadratic(A=A, b=u))


def scaffold_case(
    f: Case, active: int, *, K: int = 5, option: int = 2, times: float = 1.0 / 3.0, server_step: float = 1.0
) -> Case:
    """Return SCAFFOLD with K steps of ``times/(K L)``."""
    solver = Gradient(step=times / (K * f.L))
    kind = ScaffoldI if option == 1 else Scaffold
    method = kind(solver=solver, stop=Steps(steps=K), server_step=server_step)
    return baseline_case(f, method, 1, f"K = {K}, option {option}, s = {times:.3g}/(K L)", active=active)


def flat(state: State) -> Array:
    """Return the model and the controls in a row."""
    return np.ravel(np.concatenate([state.server.theta[None], state.clients.control]))


def filled(z: Array, like: State) -> State:
    """Return the state with this model and these controls; the server knows the mean of the controls."""
    model, controls = np.split(z, [like.server.theta.size])
    control = controls.reshape(like.clients.control.shape)
    server = like.server._replace(theta=model.reshape(like.server.theta.shape), control=np.mean(control, axis=0))
    return State(server, server, like.clients._replace(control=control))


def mean_square_factor(case: Case) -> float:
    r"""Return the factor of :math:`\mathbb E|z - z^*|^2` in the end, z being the model and the controls."""
    matrices = round_matrices(case, flat=flat, filled=filled)
    return mean_square_radius([M for _, M in matrices], [p for p, _ in matrices])


def steps_as_in_saga(case: Case) -> list[str]:
    """Return what fails: all steps of a round together are at most 1/(3 L), as in SAGA, which is K = P = 1."""
    method = case.algorithm
    short = 3.0 * method.stop.steps * method.solver.step * case.L <= UP_TO_ROUNDING
    fine = short and method.server_step <= 1
    return smooth_and_strongly_convex(case) + ([] if fine else ["K s <= 1/(3 L) and s_g <= 1"])


def scaffold_fixed_point_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Both options, cohorts of several sizes; a loss of another kind; steps with which SAGA diverges."""
    for option in (1, 2):
        for active in (1, 2):
            yield ExpectedVerdict(scaffold_case(quadratic(), active, option=option))
        yield ExpectedVerdict(scaffold_case(lopsided(), 2, option=option))
        yield ExpectedVerdict(scaffold_case(logistic(), 2, option=option))
    yield ExpectedVerdict(scaffold_case(three_directions(), 1, K=1))
    if not quick:
        yield ExpectedVerdict(scaffold_case(hard_quadratic(L=10.0), 2, K=10, server_step=0.5))
    yield ExpectedVerdict(scaffold_case(three_directions(), 1, K=1, times=1.0), "outside assumptions")


@claim(
    source="Karimireddy et al. 2020 (recalled), convergence on quadratics by computation",
    statement=r"$\theta^*$ with $c_j = \nabla f_j(\theta^*)$ and $c = \frac1N\sum_j c_j = 0$ stays whoever takes part,"
    r" with both options, and $c$ is always the mean of the $c_j$. On the quadratics looked at, with"
    r" $Ks \le 1/(3L)$ and $s_g \le 1$, a round with a uniform cohort makes of $\mathbb E\,zz^\top$,"
    r" $z = (\theta - \theta^*, c_1 - \nabla f_1(\theta^*), \dots)$, an image of spectral radius below one: every"
    r" start converges to the solution in mean square.",
    assumptions=steps_as_in_saga,
    cases=scaffold_fixed_point_cases,
)
def scaffold_fixed_point(case: Case) -> Iterator[Inequality]:
    """SCAFFOLD: its fixed point is the solution, and it is reached whoever takes part.

    Compare the solution before and after a round with each cohort; then how fast second moments shrink.
    """
    solution = np.ravel(np.concatenate([case.theta[None], case.subgradients]))
    elsewhere = solution + np.random.default_rng(0).standard_normal(solution.size)
    like = case.first()
    for n, (_, round) in enumerate(case.events()):
        after, _, _ = advance(case.algorithm, case.objective, filled(solution, like), round)
        yield Inequality(n, deviation(flat(after), solution), ROUNDING, "movement of the solution")
        after, _, _ = advance(case.algorithm, case.objective, filled(elsewhere, like), round)
        controls, scale = after.clients.control, float(np.max(np.abs(after.clients.control)))
        known = deviation(after.server.control, np.mean(controls, axis=0), scale=scale)
        yield Inequality(n, known, ROUNDING, "c and the mean of the c_j")
    if isinstance(case.objective, Quadratic):
        yield Inequality(case.rounds, mean_square_factor(case), 1.0 - ROUNDING, "factor of E|z - z*|^2")
