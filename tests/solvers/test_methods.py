"""What makes each method the method that it is: conjugate gradients, momentum, adaptive steps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from solver_instances import OBJECTIVES, first, linear, local_problem, starts
from test_line_search import Curves

from dualopt.losses import Huber, Logistic, SmoothedHinge
from dualopt.objectives import LocalProblem, ObjectiveWrapper, Quadratic, linear_model
from dualopt.solvers import AOGM, LBFGS, Gradient, Nesterov, NewtonCG
from dualopt.solvers.lbfgs import _Memory
from dualopt.solvers.newton import conjugate_gradients
from dualopt.solvers.stopping import GradientNorm, Steps


def dot(x, y):
    return np.sum((x * y).reshape(len(x), -1), axis=-1)


# Conjugate gradients.


def systems(seed=0, d=12):
    rng = np.random.default_rng(seed)
    bases = np.linalg.qr(rng.normal(size=(4, d, d)))[0]
    spectra = np.stack(
        [np.ones(d), np.geomspace(1, 10, d), np.geomspace(1, 1e3, d), np.repeat([1.0, 5.0, 9.0], d // 3)]
    )
    return bases @ (spectra[:, :, None] * bases.swapaxes(1, 2)), rng.normal(size=(4, d))


def multiply(H):
    return lambda v: (H @ v[..., None])[..., 0]


@pytest.mark.parametrize("tol", [1e-2, 1e-8])
@pytest.mark.parametrize("preconditioned", [False, True])
def test_conjugate_gradients_solve_to_the_tolerance(tol, preconditioned):
    H, b = systems()
    diagonal = np.einsum("nii->ni", H)
    x, products = conjugate_gradients(
        multiply(H),
        b,
        tol=np.full(4, tol),
        max_iter=100,
        precondition=(lambda v: v / diagonal) if preconditioned else None,
    )
    residual = np.linalg.norm(b - multiply(H)(x), axis=-1)
    assert np.all(residual <= tol * (1 + 1e-6))
    error = np.linalg.norm(x - np.linalg.solve(H, b[..., None])[..., 0], axis=-1)
    assert np.all(error <= tol * 1.001)  # the smallest eigenvalue is 1
    if not preconditioned:
        assert products[0] == 1  # a multiple of the identity
        assert products[3] <= 3  # three distinct eigenvalues
        assert products[2] > 8 or tol > 1e-8


def test_conjugate_gradients_freeze_finished_clients():
    H, b = systems()
    tol = np.asarray([1e-6, 1e-2, 1e-9, 1e-12])
    x, products = conjugate_gradients(multiply(H), b, tol=tol, max_iter=100)
    assert len(set(products.tolist())) > 2
    for j in range(4):
        row = slice(j, j + 1)
        alone, count = conjugate_gradients(multiply(H[row]), b[row], tol=tol[row], max_iter=100)
        assert alone.tobytes() == x[row].tobytes()
        assert count[0] == products[j]


def test_conjugate_gradients_limits_and_negative_curvature():
    H, b = systems()
    x, products = conjugate_gradients(multiply(H), b, tol=np.full(4, 1e-12), max_iter=2)
    assert products.tolist() == [1.0, 2.0, 2.0, 2.0]
    assert np.all(dot(x, b) > 0)  # a descent direction all the same
    zero, none = conjugate_gradients(multiply(H), 0 * b, tol=np.zeros(4), max_iter=10)
    assert np.all(zero == 0)
    assert none.tolist() == [0.0] * 4
    for concave in (-1e-6 * H, 0.0 * H):
        stopped, one = conjugate_gradients(multiply(concave), b, tol=np.full(4, 1e-12), max_iter=10)
        assert np.all(stopped == b)  # steepest descent
        assert one.tolist() == [1.0] * 4
        scaled, _ = conjugate_gradients(
            multiply(concave), b, tol=np.full(4, 1e-12), max_iter=10, precondition=lambda v: 3.0 * v
        )
        assert np.all(scaled == 3.0 * b)


@pytest.mark.parametrize(("h", "most"), [(2.0**-27, 2), (2.0**-29, 1), (2.0**-1000, 1), (0.0, 1)])
def test_conjugate_gradients_end_before_a_direction_that_is_next_to_flat(h, most):
    """The second step lowers the quadratic function (1 - h)^2/(4h) times as much as the first; 2^26 times is too much.

    With h = 0 there is no solution, and b is not in the range. The other client is solved in two steps.
    """
    H, b = np.array([np.diag([1.0, h]), np.diag([4.0, 1.0])]), np.array([[1.0, 1.0], [3.0, -2.0]])
    x, products = conjugate_gradients(multiply(H), b, tol=np.full(2, 1e-7), max_iter=9)
    first = 2.0 / (1.0 + h)
    np.testing.assert_allclose(x[0], [1.0, 1.0 / h] if most == 2 else [first, first], rtol=1e-6)
    np.testing.assert_allclose(x[1], [0.75, -2.0], rtol=1e-14)
    assert products.tolist() == [2.0, 2.0]


@pytest.mark.parametrize("loss", [Huber(delta=0.01), SmoothedHinge(gamma=0.1)], ids=["huber", "smoothed-hinge"])
def test_newton_leaves_the_linear_pieces_of_a_loss(loss):
    """Where no row curves the loss there is no Newton step; L-BFGS finds the same minimum from there."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 3)), rng.standard_normal(40) + 0.7
    y = np.where(y > 0, 1.0, -1.0) if loss.labels == "binary" else 3.0 * y
    f = linear_model(X, y, loss=loss, mu=0.02, clients=[range(9), range(9, 40)], intercept="free")
    problem, start, stop = LocalProblem(objective=f), np.zeros((2, 4)), GradientNorm(tol=1e-9)
    assert not np.any(f.hessian_operator(start)(np.array([0.0, 0.0, 0.0, 1.0])))
    found, other = (solver(problem, start, stop) for solver in (NewtonCG(), LBFGS(max_iter=10_000)))
    assert set(found.status) == {"converged"}
    np.testing.assert_allclose(found.evaluation.f, other.evaluation.f, rtol=1e-12)


def test_conjugate_gradients_end_where_the_tolerance_is_met_exactly():
    H, b = np.array([np.eye(4), np.diag([1.0, 3.0, 1.0, 3.0])]), np.ones((2, 4))
    x, products = conjugate_gradients(multiply(H), b, tol=np.array([2.0, 1.0]), max_iter=9)  # |b| = 2
    assert x.tolist() == [4 * [0.0], 4 * [0.5]]  # the second residual is (1, -1, 1, -1)/2
    assert products.tolist() == [0.0, 1.0]


# Rates. The bounds hold at every step without fitting, and gradient descent breaks them on the same instance.


def tridiagonal(d, weight):
    """Return the matrix of Nesterov's chain, whose eigenvalues lie between ``weight`` and ``1 + weight``."""
    return 0.25 * (2 * np.eye(d) - np.eye(d, k=1) - np.eye(d, k=-1)) + weight * np.eye(d)


def chain(d=200, weight=0.0):
    """Return Nesterov's tridiagonal quadratic, hard for every first-order method, with its minimiser."""
    A, b = tridiagonal(d, weight), np.zeros(d)
    b[0] = 0.25
    f = Quadratic(A=A[None], b=b[None])
    return LocalProblem(objective=f), np.linalg.solve(A, b)


def gradient_step_points(solver, problem, ks):
    """Yield ``F`` after the k-th gradient step: a gradient step from where ``k - 1`` steps of the solver end."""
    zero = np.zeros((1, *problem.objective.shape))
    for k in ks:
        solution = solver(problem, zero, Steps(steps=k - 1), (), first(1))
        yield k, problem.value(solution.theta - solution.evaluation.gradient / problem.L)[0]


def convex_bound(k, L, squared_distance, q):
    return 2 * L * squared_distance / (k + 1) ** 2


def linear_bound(k, L, squared_distance, q):
    return (1 + np.sqrt(q)) * (1 - np.sqrt(q)) ** k * 0.5 * L * squared_distance


@pytest.mark.parametrize(
    ("weight", "bound", "ks"),
    [(0.0, convex_bound, range(2, 180, 7)), (1e-3, linear_bound, range(2, 700, 58))],
    ids=["convex", "strongly convex"],
)
def test_nesterov_has_its_rate_and_gradient_descent_has_not(weight, bound, ks):
    problem, best = chain(weight=weight)
    lowest = problem.value(best[None])[0]
    L, q = problem.L[0], problem.mu[0] / problem.L[0]
    ratios = {}
    for solver in (Nesterov(), Gradient()):
        ratios[type(solver)] = [
            (value - lowest) / bound(k, L, float(best @ best), q)
            for k, value in gradient_step_points(solver, problem, ks)
        ]
    assert max(ratios[Nesterov]) <= 1.0
    assert max(ratios[Gradient]) > 1.5


def ill_conditioned(kappa=1e4, size=1.0):
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(40, 40)))[0]
    A = basis @ (np.geomspace(1 / kappa, 1, 40)[:, None] * basis.T)
    return LocalProblem(objective=Quadratic(A=0.5 * size * (A + A.T)[None], b=size * A[None] @ rng.normal(size=40)))


@pytest.mark.parametrize("unit", [None, np.array([1.0, 2.0, 0.5, 4.0, 3.0])])
@pytest.mark.parametrize("step", [None, 0.3])
def test_gradient_descent_is_its_recursion_and_says_how_far_it_went(step, unit):
    problem = replace(local_problem(OBJECTIVES["logistic"](), "all"), unit=unit)
    units = np.ones(5) if unit is None else unit
    lengths = units / problem.L if step is None else np.full(5, step)  # of a step, in the units of the method
    theta = starts(problem)
    for k in range(1, 4):
        theta = theta - (lengths / units)[:, None] * problem.gradient(theta)
        found = Gradient(step=step)(problem, starts(problem), Steps(steps=k))
        np.testing.assert_allclose(found.theta, theta, rtol=1e-12)
        np.testing.assert_allclose(found.length, k * lengths, rtol=1e-14)
        assert (found.gradients, found.charged) == ((float(k),) * 5, False)
    found = Gradient(step=step)(problem, starts(problem), GradientNorm(tol=0.1))
    np.testing.assert_allclose(found.length, (np.array(found.gradients) - 1.0) * lengths, rtol=1e-14)
    assert found.charged


def test_aogm_is_accelerated():
    problem = ill_conditioned()
    counts = {}
    for solver in (AOGM(), Gradient(max_iter=100_000)):
        solver_state = solver.initial_state(problem.objective)
        solution = solver(problem, np.zeros((1, 40)), GradientNorm(tol=1e-5), solver_state, first(1))
        assert solution.status == ("converged",)
        counts[type(solver)] = solution.gradients[0]
    assert 10 * counts[AOGM] < counts[Gradient]


@pytest.mark.parametrize("factor", [1e-4, 1e4])
def test_aogm_adapts_its_step_in_both_directions(factor):
    problem = ill_conditioned(kappa=100.0)
    solver = AOGM()
    solution = solver(problem, np.ones((1, 40)), Steps(steps=120), (factor * problem.L,), first(1))
    (estimate,) = solution.solver_state
    # backtracking leaves it below increase times the true constant, decrease keeps it from staying high
    assert 0.1 * problem.L[0] <= estimate[0] <= solver.increase * problem.L[0]
    assert problem.value(solution.theta)[0] < problem.value(np.ones((1, 40)))[0]
    assert np.linalg.norm(problem.gradient(solution.theta)) < 1e-3


def test_aogm_is_its_recursion():
    problem = ill_conditioned(kappa=100.0, size=4.0)
    x = y = np.linspace(-1.0, 2.0, 40)[None]
    t, L, restarts, searches = 1.0, 0.25 * problem.L[0], 0, 0
    for k in range(1, 60):
        value, g = problem.value(x)[0], problem.gradient(x)
        before, L = L, L / 1.1
        while problem.value(x - g / L)[0] > value - np.sum(g * g) / (2 * L):
            L, searches = 2 * L, searches + 1
        new = x - g / L
        if np.sum(g * (new - y)) > 0:
            x, t, restarts = new, 1.0, restarts + 1
        else:
            t_new = 0.5 * (1 + np.sqrt(1 + 4 * (L / before) * t**2))
            x, t = new + (t - 1) / t_new * (new - y) + t / t_new * (new - x), t_new
        y = new
        found = AOGM()(problem, np.linspace(-1.0, 2.0, 40)[None], Steps(steps=k))
        assert np.max(np.abs(found.theta - x)) <= 1e-11
        assert found.solver_state[0].tolist() == [L]
    assert restarts >= 2
    assert searches >= 4


def test_aogm_starts_a_call_from_its_last_step_size():
    problem = ill_conditioned(kappa=100.0)
    solver = AOGM()
    cold = solver(problem, np.ones((1, 40)), Steps(steps=1), (1e-6 * problem.L,), first(1))
    warm = solver(problem, np.ones((1, 40)), Steps(steps=1), cold.solver_state, first(1))
    assert warm.gradients[0] < cold.gradients[0]


class Bare(ObjectiveWrapper):
    """An objective that offers Hessian products alone, and may say that nothing is known of its constants."""

    forwarded = frozenset({"hessian"})

    def __init__(self, objective, known=True):
        self.objective, self.known = objective, known

    @property
    def mu(self):
        return self.objective.mu if self.known else np.full(self.n_clients, -np.inf)

    @property
    def L(self):
        return self.objective.L if self.known else np.full(self.n_clients, np.inf)

    def select(self, ids):
        return Bare(self.objective.select(ids), self.known)


def conjugate_gradient_loop(H, P, b, tol):
    """Return the solution and the number of products for one client, by the textbook."""
    x, r, products = np.zeros_like(b), b, 0
    p = z = P @ r
    while np.linalg.norm(r) > tol:
        Hp, rz, products = H @ p, r @ z, products + 1
        x, r = x + rz / (p @ Hp) * p, r - rz / (p @ Hp) * Hp
        z = P @ r
        p = z + (r @ z) / rz * p
    return x, products


@pytest.mark.parametrize("preconditioned", [True, False])
def test_newton_is_its_recursion(preconditioned):
    """Systems are solved to min(0.1, |g|^(1/2)) |g|, not further and not less, and every product is counted."""
    f = linear(Logistic(), sizes=(60, 9, 40, 30, 16), d=30)
    problem = local_problem(f if preconditioned else Bare(f), "all")
    start, units = 0.1 * starts(problem), np.eye(f.shape[0])
    theta, counts, norms = start, np.ones(5), []

    def matrices(apply):
        return np.stack([apply(np.broadcast_to(unit, theta.shape)) for unit in units], axis=-1)

    P = matrices(problem.preconditioner) if preconditioned else np.broadcast_to(units, (5, *2 * f.shape))
    for k in range(1, 6):
        H, g = matrices(problem.hessian_operator(theta)), problem.gradient(theta)
        norms.append(np.linalg.norm(g, axis=-1))
        tolerances = np.minimum(0.1, norms[-1] ** 0.5) * norms[-1]
        found = [conjugate_gradient_loop(*one) for one in zip(H, P, -g, tolerances, strict=True)]
        theta = theta + np.stack([direction for direction, _ in found])  # whole steps decrease F here
        counts = counts + [1.0 + products for _, products in found]
        solution = NewtonCG()(problem, start, Steps(steps=k))
        assert solution.gradients == tuple(counts)
        np.testing.assert_allclose(solution.theta, theta, rtol=0, atol=1e-10)
    assert np.max(norms[0]) > 1.0  # both tolerances occur
    assert np.min(norms[-2]) < 2e-3


@pytest.mark.parametrize("solver", [NewtonCG(), LBFGS(), LBFGS(precondition=False)], ids=["newton", "lbfgs", "lbfgs-I"])
def test_no_constant_is_needed(solver):
    problem = LocalProblem(objective=Bare(OBJECTIVES["quadratic"](), known=False))
    found = solver(problem, starts(problem), GradientNorm(tol=1e-9))
    assert found.status == ("converged",) * 5
    assert np.all(np.isinf(found.gap))
    for other, name in ((Nesterov(), "nesterov"), (Gradient(), "gradient"), (AOGM(), "aogm")):
        with pytest.raises(ValueError, match=f"^solver '{name}' needs a smoothness constant, which .* 'sgd' with a"):
            other(problem, starts(problem), GradientNorm(tol=1e-9))


class Straight(Curves):
    """Curves whose Hessians are said to be the identity."""

    offers = property(lambda self: frozenset({"hessian"}))

    def hessian_operator(self, theta):
        return lambda v: v


def test_newton_ends_where_its_search_fails_and_needs_hessians():
    curve = lambda x: 1.0 if x == 0 else np.inf, lambda x: -1.0  # there is a value where it begins, and nowhere else
    found = NewtonCG()(LocalProblem(objective=Straight(curve, mu=-np.inf)), np.zeros((1, 1)), GradientNorm(tol=0.5))
    assert (found.status, found.gradients, found.theta[0, 0]) == (("stalled",), (32.0,), 0.0)
    with pytest.raises(ValueError, match=r"^solver 'newton' needs an objective with hessian_operator\.$"):
        NewtonCG()(LocalProblem(objective=Curves(curve, mu=-np.inf)), np.zeros((1, 1)), GradientNorm(tol=0.5))


def test_newton_converges_superlinearly():
    problem = local_problem(OBJECTIVES["logistic"](), "linear")
    norms = {}
    for solver in (NewtonCG(), NewtonCG(max_cg=1)):
        solution = solver(problem, starts(problem), Steps(steps=8), (), first(5))
        norms[solver.max_cg] = np.sqrt(dot(solution.evaluation.gradient, solution.evaluation.gradient))
    assert np.all(norms[200] <= 1e-12)
    assert np.any(norms[1] > 1e-9)  # one step of conjugate gradients is a kind of gradient descent


@pytest.mark.parametrize("precondition", [False, True])
def test_lbfgs_two_loops_are_the_bfgs_formula(precondition):
    problem = local_problem(OBJECTIVES["logistic"](), "all")
    solver = LBFGS(history=4, precondition=precondition)
    start, first_state = starts(problem), solver.initial_state(problem.objective)
    solutions = [solver(problem, start, Steps(steps=k), first_state, first(5)) for k in (1, 2, 3)]
    points = [start, *(solution.theta for solution in solutions)]
    slopes = [problem.gradient(start), *(solution.evaluation.gradient for solution in solutions)]
    steps, changes = np.diff(np.stack(points, axis=1), axis=1), np.diff(np.stack(slopes, axis=1), axis=1)
    pairs = solutions[-1].solver_state.pairs

    def apply(v):
        return -solver._direction(problem, _Memory(pairs), np.arange(5), v)

    units = np.eye(4)
    product = np.stack([apply(np.broadcast_to(unit, (5, 4))) for unit in units], axis=-1)
    for rows in (pairs.s, pairs.y):
        assert np.all(np.any(rows != 0, axis=-1) == [True, True, True, False])
    assert np.all(pairs.place == 3)
    initial = problem.objective.preconditioner(problem.weight)  # pyright: ignore[reportAttributeAccessIssue]
    for j in range(5):
        s, y = steps[j], changes[j]
        if precondition:
            H = np.stack([initial(np.broadcast_to(unit, (5, 4)))[j] for unit in units], axis=-1)
        else:
            H = (s[-1] @ y[-1]) / (y[-1] @ y[-1]) * np.eye(4)
        for i in range(3):
            V = np.eye(4) - np.outer(y[i], s[i]) / (s[i] @ y[i])
            H = V.T @ H @ V + np.outer(s[i], s[i]) / (s[i] @ y[i])
        assert np.max(np.abs(product[j] - H)) <= 1e-12 * np.max(np.abs(H)) * np.linalg.cond(H)
    assert np.max(np.abs(apply(changes[:, -1]) - steps[:, -1])) <= 1e-12  # the secant equation


@pytest.mark.parametrize("history", [1, 2, 3])
def test_lbfgs_forgets_the_oldest_pair(history):
    """After four steps, the direction is that of the BFGS formula with the latest pairs alone."""
    problem = local_problem(OBJECTIVES["logistic"](), "all")
    solver = LBFGS(history=history, precondition=False)
    start, first_state = starts(problem), solver.initial_state(problem.objective)
    solutions = [solver(problem, start, Steps(steps=k), first_state, first(5)) for k in range(1, 5)]
    points = np.stack([start, *(x.theta for x in solutions)], axis=1)
    slopes = np.stack([problem.gradient(start), *(x.evaluation.gradient for x in solutions)], axis=1)
    steps, changes = (np.diff(x, axis=1)[:, -history:] for x in (points, slopes))
    # differences of neighbours are right to this; the solver has the steps themselves
    rounding = [
        np.max(2.0**-52 * np.linalg.norm(x, axis=-1)[:, -history:] / np.linalg.norm(d, axis=-1), axis=-1)
        for x, d in ((points, steps), (slopes, changes))
    ]
    gradient = slopes[:, -1]
    found = -solver._direction(problem, _Memory(solutions[-1].solver_state.pairs), np.arange(5), gradient)
    for j in range(5):
        s, y = steps[j], changes[j]
        scale = (s[-1] @ y[-1]) / (y[-1] @ y[-1])
        H = scale * np.eye(4)
        for i in range(history):
            V = np.eye(4) - np.outer(y[i], s[i]) / (s[i] @ y[i])
            H = V.T @ H @ V + np.outer(s[i], s[i]) / (s[i] @ y[i])
        right = 32 * history * (rounding[0][j] + rounding[1][j]) * np.linalg.cond(H) ** 2
        assert right < 1e-3  # the check can fail
        assert np.max(np.abs(found[j] - H @ gradient[j])) <= right * np.max(np.abs(found[j]))


@pytest.mark.parametrize(
    "A",
    [tridiagonal(30, 1e-2), np.diag(np.linspace(-0.5, 1.0, 30)), 3.0 * np.eye(30)],
    ids=["convex", "nonconvex", "round"],
)
def test_nesterov_is_its_recursion(A):
    """Where the curvature is negative, as if it were zero; where it is one number, one step solves the problem."""
    problem = LocalProblem(objective=Quadratic(A=A[None], b=np.eye(30)[:1]))
    L, q = problem.L[0], np.clip(problem.mu[0] / problem.L[0], 0.0, 1.0 - 1e-12)
    y = x = np.ones((1, 30))
    t = 1.0
    for k in range(1, 25):
        x_new = y - problem.gradient(y) / L
        t_new = 0.5 * (1 - q * t**2 + np.sqrt((1 - q * t**2) ** 2 + 4 * t**2))
        y = x_new + (t - 1) / t_new * (1 - t_new * q) / (1 - q) * (x_new - x)
        x, t = x_new, t_new
        found = Nesterov()(problem, np.ones((1, 30)), Steps(steps=k), (), first(1))
        assert np.max(np.abs(found.theta - y)) <= 1e-14 * np.max(np.abs(y))
        assert found.gradients == (k + 1.0,)


class Understated(ObjectiveWrapper):
    """An objective that says a much too small smoothness constant."""

    def __init__(self, objective):
        self.objective = objective

    @property
    def L(self):
        return 1e-160 * self.objective.L


@pytest.mark.parametrize(
    "solver", [Nesterov(), Gradient(), Gradient(step=1e160)], ids=["nesterov", "gradient", "gradient-step"]
)
def test_values_that_overflow_end_a_call(solver):
    """At the first one, of a call that would go on."""
    problem = LocalProblem(objective=Understated(Quadratic(A=2.0 * np.eye(3)[None], b=np.ones((1, 3)))))
    with np.errstate(over="ignore"):
        found = solver(problem, np.zeros((1, 3)), GradientNorm(tol=1e-3), (), first(1))
    assert (found.status, found.gradients) == (("stalled",), (2.0,))
