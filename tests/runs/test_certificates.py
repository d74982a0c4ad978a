"""Certificates are upper bounds, and tight enough to be useful."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import cycle, islice, pairwise
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf

import dualopt.losses
from dualopt.engine.rounds import State, advance, iterate
from dualopt.losses import Hinge
from dualopt.methods import DualFL, FedADMM, FedDyn, FedPD
from dualopt.methods.participation import UniformSubset, first_round
from dualopt.objectives import LinearModel, LocalProblem, Quadratic, linear_model
from dualopt.runs.certificates import LatestSolutions, certificate, dual_point
from dualopt.runs.recording import run
from dualopt.runs.reference import newton
from dualopt.solvers import LBFGS, DualCoordinate, Exact, Gradient
from dualopt.solvers.stopping import GradientNorm, Steps
from dualopt.spec.discover import discover
from tests.fuzz_certificates import failures, loss_term
from tests.problems import hinge, least_squares, logistic, quadratic

LOSSES = list(discover(dualopt.losses).values())
PRECISIONS = cycle([np.float32, np.float64])
SINGLE_OR_DOUBLE = [(kind(**kind.example), dtype) for kind, dtype in zip(LOSSES, PRECISIONS, strict=False)]


def test_nonsmooth_certificates_converge_only_in_the_dual_form() -> None:
    f = hinge(n=3, rows=30, mu=0.3)
    algorithm = DualFL(solver=DualCoordinate())
    snapshot = next(islice(iterate(algorithm, f), 12, None))
    dual = certificate(f, snapshot.server.theta, snapshot.solution)
    assert dual.kind == "dual"
    assert dual.relative < 1e-3
    assert certificate(f, snapshot.server.theta).gap > 10 * dual.gap


def true_conjugates(f, dual: np.ndarray, start: np.ndarray) -> np.ndarray:
    """``g_j*(xi) = max <xi, x> - g_j(x)`` of logistic clients, by Newton's method in extended precision."""
    found = []
    for (X, y, w), xi, x in zip(f.client_rows(), dual, start, strict=True):
        X, y, w, xi, x = (np.asarray(a, dtype=np.longdouble) for a in (X, y, w, xi, x))
        for _ in range(30):
            p = 1.0 / (1.0 + np.exp(y * (X @ x)))
            slope = xi + X.T @ (w * p * y)
            hessian = X.T @ ((w * p * (1.0 - p))[:, None] * X)
            x = x + np.linalg.solve(hessian.astype(float), slope.astype(float))
        assert np.linalg.norm(slope.astype(float)) < 1e-17
        found.append(xi @ x - w @ np.log1p(np.exp(-y * (X @ x))))
    return np.asarray(found)


@pytest.mark.parametrize("weight", [1.0, 1e3, 1e6])
def test_a_large_proximal_term_costs_no_accuracy(weight: float) -> None:
    """f_j of about 2 beside a proximal term of 1e6: the conjugate was 2.6 too large when f_j was got by subtraction."""
    f = logistic()
    ones = np.ones((f.n_clients, *f.shape))
    problem = LocalProblem(objective=f, linear=ones, weight=weight, center=3.0 * ones)
    found = LBFGS()(problem, 0.0 * ones, GradientNorm(tol=1e-8))
    point = dual_point(f, found)
    assert point is not None
    assert found.evaluation is not None
    assert np.all((found.evaluation.f > 1.0) & (found.evaluation.f < 3.0))
    excess = point.conjugate - true_conjugates(f, point.dual, found.theta)
    assert np.all(excess >= 0)
    assert np.all(excess < 1e-9)


def test_small_steps_do_not_end_the_certified_progress() -> None:
    """With 1/eta = 1e3 the dual form ended at 2.6e-6; from the optimal duals it is zero but for rounding."""
    f = logistic()
    theta = newton(f).theta
    method = FedPD(eta=1e-3, solver=LBFGS(), stop=GradientNorm(tol=1e-12)).suggested(f)
    _, _, solution = advance(method, f, State(*method.fixed_point(f, theta)), first_round(f.n_clients))
    assert solution is not None
    point = dual_point(f, solution)
    assert point is not None
    xi = point.dual.mean(axis=0)
    dual = float(f.value(theta).mean()) + float(point.conjugate.mean()) + float(xi @ xi) / (2 * 0.05)
    assert -1e-15 <= dual < 1e-11


# ---- the numbers as computed ----


def test_terms_of_size_one_that_cancel_in_single_precision() -> None:
    """One row of the hinge loss: x theta is 1 when computed, and 1 - 2.3e-8 in truth; the energy is 4e-4."""
    x = np.float32(1.046875)
    f = linear_model(np.array([[x]]), np.ones(1, np.float32), loss=Hinge(), mu=2.0**-10, intercept=False)
    theta = np.array([1.0 / x], dtype=np.float32)
    found = DualCoordinate()(LocalProblem(objective=f), np.zeros((1, 1), np.float32), Steps(steps=2))
    exact, best = Fraction(float(theta[0])), 1 / Fraction(float(x))  # mu < x^2: the minimiser is at the kink
    error = max(0, 1 - Fraction(float(x)) * exact) + Fraction(1, 2**11) * (exact**2 - best**2)
    assert f.value(theta)[0] < 4.5e-4
    assert 2.3e-8 < error < 2.4e-8
    assert certificate(f, theta, found).gap >= error


def plane(kappa: float, seed: int) -> tuple[Quadratic, Fraction]:
    """A quadratic of two variables, its minimiser along the flattest direction, and the exact error at zero."""
    q, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((2, 2)))
    A = q @ np.diag([1.0, 1.0 / kappa]) @ q.T
    f = Quadratic(A=0.5 * (A + A.T)[None], b=q[:, 1:].T)
    (a, h), (_, c) = [[Fraction(float(x)) for x in row] for row in f.A[0]]
    r, s = (Fraction(float(x)) for x in f.b[0])
    assert a * c > h * h
    return f, (c * r * r - 2 * h * r * s + a * s * s) / (2 * (a * c - h * h))


@pytest.mark.parametrize("kappa", [1e8, 1e13])
def test_eigenvalues_that_are_rounded_up(kappa: float) -> None:
    """The error at zero is ``1/(2 mu)``: a mu too large by ``eps L`` certifies too little, by ``eps kappa``."""
    short = 0
    for seed in range(40):
        f, error = plane(kappa, seed)
        assert certificate(f, np.zeros(2)).gap >= error
        assert f.mu[0] - f.mu_rounding[0] > 0
        short += 0.5 / float(f.mu[0]) < error  # what the eigenvalue as computed would certify
    assert short > 10


def test_a_matrix_without_strong_convexity_certifies_nothing() -> None:
    """Its smallest eigenvalue is computed as 1e-16 or so; E has no minimum."""
    u = np.array([1.0, 2.0, 2.0]) / 3.0
    f = Quadratic(A=np.outer(u, u)[None], b=np.array([[1.0, 0.0, 0.0]]))
    assert np.linalg.eigvalsh(f.A).min() != 0  # or the next lines show nothing
    assert f.mu.tolist() == [0.0]
    assert certificate(f, np.zeros(3)).gap == np.inf
    with pytest.raises(ValueError, match="nu cannot be suggested because mu is 0"):
        DualFL().suggested(f)


def test_diagonal_matrices_have_exact_constants() -> None:
    f = Quadratic(A=np.diag([1.0, 1e-20])[None], b=np.zeros((1, 2)))
    assert (f.mu.tolist(), f.mu_rounding.tolist()) == ([1e-20], [0.0])


def test_constants_that_cancel_between_clients() -> None:
    """The energy is wrong in the fifth digit: that is what the certified error must say."""
    c = np.array([1e13, -1e13 / 3, -2e13 / 3])
    f = Quadratic(A=np.ones((3, 1, 1)), b=np.array([[1.0], [2.0], [4.0]]), c=c)
    theta = np.array([7.0 / 3.0])
    exact = Fraction(float(theta[0]))
    A, b = Fraction(1, 2), Fraction(7, 3)
    constant = sum(Fraction(float(x)) for x in c) / 3
    lowest, energy = constant - b * b / 2, A * exact**2 - b * exact + constant
    bound = certificate(f, theta)
    assert abs(Fraction(bound.energy) - energy) > Fraction(1, 10**5)  # what is lost
    assert bound.gap >= Fraction(bound.energy) - lowest
    assert bound.gap >= energy - lowest


@pytest.mark.parametrize("scale", [1e-170, 1e-150, 1e150, 1e170])
def test_squares_that_under_and_overflow(scale: float) -> None:
    """A gap of zero was certified where squares underflow; an infinite one is honest, NaN is not."""
    f = Quadratic(A=np.ones((2, 1, 1)), b=np.full((2, 1), scale))
    bound = certificate(f, np.zeros(1))
    assert bound.gap >= Fraction(scale) ** 2 / 2
    assert not math.isnan(bound.relative)


RELATIVE = [loss for loss in (kind(**kind.example) for kind in LOSSES) if not hasattr(loss, "rounding")]


@pytest.mark.parametrize("loss", RELATIVE, ids=repr)  # tests/losses/test_losses.py has the others
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_losses_are_as_accurate_as_certificates_assume(loss: Any, dtype: Any) -> None:
    """``Loss``: within 16 eps of values and slopes, (16 + k) eps (1 + size) for class labels, at given predictors."""
    rng, eps, k = np.random.default_rng(3), float(np.finfo(dtype).eps), loss.outputs
    mp.dps, steepest = 50, mpf(0)
    for scale in (1e-3, 1.0, 30.0, 300.0):
        z = (scale * rng.standard_normal((k, 40))).astype(dtype)
        z = np.concatenate([z, np.ones_like(z[:, :4]) + np.arange(-2, 2) * eps], axis=1).astype(dtype)
        m = z.shape[1]
        y = rng.integers(0, k, m) if loss.labels == "class" else np.sign(rng.standard_normal(m)).astype(dtype)
        value, slope = loss.value_and_gradient(z if k > 1 else z[0], y)
        for i in range(m):
            term, exact = loss_term(loss, float(y[i])), [mpf(float(t)) for t in z[:, i]]
            phi, (slopes, _) = term.value(exact), term.slopes(exact, 1e-30)
            off = mp.norm([mpf(float(a)) - b for a, b in zip(np.reshape(slope, (-1, m))[:, i], slopes, strict=True)])
            size, unit = mp.norm(slopes), (16 + k) * eps if loss.labels == "class" else 16 * eps
            one = 1 if loss.labels == "class" else 0
            assert abs(mpf(float(value[i])) - phi) <= unit * (phi + one) + np.finfo(dtype).tiny
            kink = loss.curvature == math.inf and abs(1 - abs(exact[0])) < eps  # any subgradient
            assert kink or off <= unit * (size + one) + np.finfo(dtype).tiny
            assert size <= loss.lipschitz * (1 + eps)
            steepest = max(steepest, size)
    assert steepest >= 0.99 * loss.lipschitz or loss.lipschitz == math.inf


@pytest.mark.parametrize(("loss", "dtype"), SINGLE_OR_DOUBLE)
def test_partial_participation_on_every_array_library(backend, loss: Any, dtype: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12, 3)).astype(dtype)
    y = rng.integers(0, loss.outputs, 12) if loss.labels == "class" else np.sign(rng.standard_normal(12)).astype(dtype)
    y = np.abs(y) if hasattr(loss, "label_domain") else y
    # of fixed steps: a line search compares rounded numbers, and may go another way with another library
    solver: Any = DualCoordinate() if hasattr(loss, "kink_at_label") else Gradient(step=0.2)
    method, some = FedDyn(solver=solver, stop=Steps(steps=3)), UniformSubset(size=2)
    last, f = [], linear_model(X, y, loss=loss, mu=0.1, clients=3)
    for array in (np.asarray, backend):
        f = linear_model(array(X), array(y), loss=loss, mu=0.1, clients=3)
        trace = run(method, f, participation=some, rounds=8)
        last.append((trace["energy"][-1], trace["certificate"][-1]))
    (energy, gap), (other_energy, other_gap) = last
    assert max(energy - gap, other_energy - other_gap) <= min(energy, other_energy)  # both bound one minimum
    assert gap == pytest.approx(other_gap, rel=1e-3 if dtype == np.float32 else 1e-9)


def converted_rows(f: LinearModel, dtype: Any) -> LinearModel:
    """The same rows, one client after the other, in another type."""
    parts = list(f.client_rows())
    X, y = (np.concatenate([part[i] for part in parts]).astype(dtype) for i in range(2))
    starts = np.cumsum([0, *f.sizes])
    clients = [list(range(a, b)) for a, b in pairwise(starts.tolist())]
    return linear_model(X, y, loss=f.loss, mu=f.ridge, clients=clients, intercept=False)


def test_single_precision_is_certified_as_well_as_double() -> None:
    """Sums in single precision are known to 1e-6 or so; certificates compute them in double."""
    f, g = logistic(), converted_rows(logistic(), np.float32)
    theta = newton(f).theta.astype(np.float32)
    assert certificate(g, theta).gap <= 2.0 * certificate(f, theta.astype(float)).gap + 1e-13


# ---- everything at once, by the fuzz ----


def test_a_share_of_the_fuzz() -> None:
    assert not list(map(str, failures(range(90))))


# ---- partial participation ----


@pytest.mark.parametrize("method", [FedDyn(solver=Exact()), FedADMM(solver=Exact())], ids=lambda x: type(x).__name__)
def test_partial_participation_is_certified_from_the_latest_solutions(method) -> None:
    """Two of eight clients on least squares: the gradient form alone was hundreds of times too large."""
    f = least_squares()
    best, last = newton(f).energy, LatestSolutions(f)
    for s in islice(iterate(method, f, participation=UniformSubset(size=2)), 50):
        last.update(s.round.clients, s.solution)
    true = float(f.value(s.server.theta).mean()) - best
    bound = certificate(f, s.server.theta, last.solution)
    assert bound.kind == "dual"
    assert true <= bound.gap <= 4.0 * true
    assert certificate(f, s.server.theta).gap > 100.0 * true  # what there was without them
    trace = run(method, f, participation=UniformSubset(size=2), rounds=50)
    assert trace["certificate"][-1] == pytest.approx(bound.gap, rel=1e-12)


def test_solutions_wait_for_every_client() -> None:
    f = quadratic()
    last, seen = LatestSolutions(f), set()
    for s in islice(iterate(FedDyn(solver=Exact()), f, participation=UniformSubset(size=1), seed=1), 40):
        last.update(s.round.clients, s.solution)
        seen |= set(s.round.clients)
        assert (last.solution is None) == (len(seen) < f.n_clients)
        if last.solution is not None:
            (client,) = s.round.clients
            assert s.solution is not None
            np.testing.assert_array_equal(last.solution.theta[client], s.solution.theta[0])
            np.testing.assert_array_equal(last.solution.evaluation.grad_f[client], s.solution.evaluation.grad_f[0])
    assert last.solution is not None
