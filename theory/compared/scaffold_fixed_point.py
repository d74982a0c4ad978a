"""SCAFFOLD: its fixed point is the solution, and it is reached whoever takes part."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dualopt.algorithms import Scaffold
from dualopt.claims import Inequality, claim
from dualopt.engine import State, advance, initial_state
from dualopt.objectives import Quadratic
from dualopt.participation import Round
from dualopt.solvers import Gradient
from dualopt.stopping import Steps
from dualopt.xp import Array
from theory._claims import ROUNDING, UP_TO_ROUNDING, ExpectedVerdict, deviation
from theory._problems import Instance, hard_quadratic, logistic, quadratic
from theory.compared._cases import Federation, federation
from theory.compared._instances import three_directions
from theory.compared._one_step import smooth_and_strongly_convex


def short_steps(case: Federation) -> list[str]:
    """Return what fails: all steps of a round together are at most 1/(3 L), as in SAGA, which is K = P = 1."""
    method = case.algorithm
    short = 3.0 * method.stop.steps * method.solver.step * case.L <= UP_TO_ROUNDING
    fine = short and method.server_step <= 1
    return smooth_and_strongly_convex(case) + ([] if fine else ["K s <= 1/(3 L) and s_g <= 1"])


def scaffold_fixed_point_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Both options, cohorts of several sizes; a loss of another kind; steps with which SAGA diverges."""
    for option in (1, 2):
        for active in (1, 2):
            yield ExpectedVerdict(controlled(quadratic(), active, option=option))
        yield ExpectedVerdict(controlled(logistic(), 2, option=option))
    yield ExpectedVerdict(controlled(three_directions(), 1, K=1))
    if not quick:
        yield ExpectedVerdict(controlled(hard_quadratic(L=10.0), 2, K=10, server_step=0.5))
    yield ExpectedVerdict(controlled(three_directions(), 1, K=1, times=1.0), "outside assumptions")


@claim(
    source="Karimireddy et al. 2020 (recalled), convergence on quadratics by computation",
    statement=r"$\theta^*$ with $c_j = \nabla f_j(\theta^*)$ and $c = \frac1N\sum_j c_j = 0$ stays whoever takes part,"
    r" with both options, and $c$ is always the mean of the $c_j$. On the quadratics looked at, with"
    r" $Ks \le 1/(3L)$ and $s_g \le 1$, a round with a uniform cohort makes of $\mathbb E\,zz^\top$,"
    r" $z = (\theta - \theta^*, c_1 - \nabla f_1(\theta^*), \dots)$, an image of spectral radius below one: every"
    r" start converges to the solution in mean square.",
    assumptions=short_steps,
    rounding=0.0,
    cases=scaffold_fixed_point_cases,
)
def scaffold_fixed_point(case: Federation) -> Iterator[Inequality]:
    """Compare the solution before and after a round with each cohort; then how fast second moments shrink."""
    solution = np.concatenate([case.theta[None], case.subgradients])
    elsewhere = solution + np.random.default_rng(0).standard_normal(solution.shape)
    for n, (_, round) in enumerate(case.outcomes):
        after, _, _ = advance(case.algorithm, case.objective, joined(case, solution), round)
        yield Inequality(n, deviation(flat(after), solution), ROUNDING, "movement of the solution")
        after, _, _ = advance(case.algorithm, case.objective, joined(case, elsewhere), round)
        controls, scale = after.clients.control, float(np.max(np.abs(after.clients.control)))
        known = deviation(after.server.control, np.mean(controls, axis=0), scale=scale)
        yield Inequality(n, known, ROUNDING, "c and the mean of the c_j")
    if isinstance(case.objective, Quadratic):
        yield Inequality(case.rounds, mean_square_radius(case), 1.0 - ROUNDING, "factor of E|z - z*|^2")


def joined(case: Federation, z: Array) -> State:
    """Return the federation with the model and the controls of the rows of z; the server knows their mean."""
    start = initial_state(case.algorithm, case.objective, case.theta)
    server = start.server._replace(theta=z[0], control=np.mean(z[1:], axis=0))
    return State(server, server, start.clients._replace(control=z[1:]))


def flat(state: State) -> Array:
    """Return the model and the controls as rows."""
    return np.concatenate([state.server.theta[None], state.clients.control])


def matrices(case: Federation) -> list[Array]:
    """Return the linear part of a round with each cohort, for quadratic clients."""
    shape = (case.objective.n_clients + 1, *case.objective.shape)

    def image(z: Array, round: Round) -> Array:
        after, _, _ = advance(case.algorithm, case.objective, joined(case, z.reshape(shape)), round)
        return np.ravel(flat(after))

    basis = np.eye(int(np.prod(shape)))
    origin = [image(0.0 * basis[0], outcome.round) for outcome in case.outcomes]
    return [
        np.stack([image(unit, outcome.round) - constant for unit in basis], axis=1)
        for outcome, constant in zip(case.outcomes, origin, strict=True)
    ]


def mean_square_radius(case: Federation) -> float:
    r"""Return the factor of :math:`\mathbb E|z - z^*|^2` in the end, z being the model and the controls."""
    operator = np.mean([np.kron(M, M) for M in matrices(case)], axis=0)
    return float(np.max(np.abs(np.linalg.eigvals(operator))))


def controlled(
    f: Instance, active: int, *, K: int = 5, option: int = 2, times: float = 1.0 / 3.0, server_step: float = 1.0
) -> Federation:
    """Return SCAFFOLD with K steps of ``times/(K L)``."""
    solver = Gradient(step=times / (K * f.L))
    method = Scaffold(solver=solver, stop=Steps(steps=K), option=option, server_step=server_step)
    return federation(f, method, active=active, rounds=1, note=f"K = {K}, option {option}, s = {times:.3g}/(K L)")
