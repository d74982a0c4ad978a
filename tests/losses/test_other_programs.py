"""Models with the losses of other programs are theirs: scikit-learn's, statsmodels' and CVXPY's, on lopsided data.

Clients have 5 to 150 rows, rows and clients weights of their own. A model with ``E - E* <= g`` is at most
``sqrt(2 g / mu)`` away from the minimiser: the tolerance is the sum of the distances that certificates give both.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf
from sklearn.linear_model import GammaRegressor, PoissonRegressor, QuantileRegressor
from sklearn.svm import LinearSVC

from dualopt import Gamma, Poisson, Quantile, SquaredHinge, linear_model, run
from dualopt.methods import AndersonDANE, DistributedLBFGS, DistributedNewtonCG, DualFL, OptimizedDualFL
from dualopt.runs.certificates import certificate
from dualopt.runs.reference import minimiser

MU, TOL, SIZES = 0.05, 1e-9, (5, 150, 12, 83)


class Data:
    """Rows of a model with a constant column, the weights of rows and clients, and each row's part in ``E``."""

    def __init__(self, loss: Any, seed: int = 0, mu: float = MU) -> None:
        rng, m, cuts = np.random.default_rng(seed), sum(SIZES), np.cumsum((0, *SIZES))
        self.X = np.hstack([rng.normal(size=(m, 4)) * [0.1, 1.0, 0.5, 2.0], np.ones((m, 1))])
        self.z = self.X @ [2.0, -0.5, 0.7, 0.3, 0.4] * 0.7
        for j, (a, b) in enumerate(pairwise(cuts)):
            self.X[a:b, 1] += j
        self.y = self.labels(loss, rng)
        self.rows, clients = rng.uniform(0.2, 2.0, m) / np.repeat(SIZES, SIZES), np.array([3.0, 1.0, 0.4, 7.0])
        self.parts = self.rows * np.repeat(clients / clients.sum(), SIZES)
        self.f = linear_model(
            self.X,
            self.y,
            loss=loss,
            mu=mu,
            clients=[range(a, b) for a, b in pairwise(cuts.tolist())],
            weights=self.rows,
            client_weights=clients,
            intercept=False,
        )

    def labels(self, loss: Any, rng: Any) -> np.ndarray:
        if isinstance(loss, Poisson):
            return rng.poisson(np.exp(self.z)).astype(float)
        if isinstance(loss, Gamma):
            return rng.gamma(2.0, np.exp(self.z) / 2.0)
        noisy = self.z + rng.standard_t(3, size=self.z.size)
        return np.sign(noisy - 0.3) if isinstance(loss, SquaredHinge) else noisy


PRIMAL: Any = {"dual": False}
SMOOTH = {
    "poisson": (Poisson(), lambda mu: PoissonRegressor(alpha=mu, fit_intercept=False, tol=1e-13, max_iter=10_000)),
    "gamma": (Gamma(), lambda mu: GammaRegressor(alpha=mu, fit_intercept=False, tol=1e-13, max_iter=10_000)),
    "squared hinge": (
        SquaredHinge(),
        lambda mu: LinearSVC(
            loss="squared_hinge", C=1.0 / mu, fit_intercept=False, tol=1e-14, max_iter=100_000, **PRIMAL
        ),
    ),
}


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("method", [DistributedLBFGS, DistributedNewtonCG, AndersonDANE], ids=lambda m: m.__name__)
def test_coefficients_are_those_of_scikit_learn(name, method):
    """Their objectives are means with weights that sum to 1, and sums for ``LinearSVC``."""
    loss, estimator = SMOOTH[name]
    data = Data(loss)
    # scikit-learn divides by the sum of the weights, which are no part of ours
    whole = 1.0 if isinstance(loss, SquaredHinge) else data.parts.sum()
    theirs = estimator(MU / whole).fit(data.X, data.y, sample_weight=data.parts).coef_.ravel()
    trace = run(method(), data.f, rounds=500, tol=TOL)
    assert trace.status == "converged"
    gaps = certificate(data.f, theirs).gap, trace["certificate"][-1]
    allowed = sum(math.sqrt(2.0 * gap / MU) for gap in gaps)
    assert allowed <= 1e-3 * np.linalg.norm(theirs)
    assert np.linalg.norm(trace.theta - theirs) <= allowed


@pytest.mark.parametrize("name", SMOOTH)
def test_errors_are_below_their_certificates(name):
    """The exact energy in 60 digits, of the model on the way and of one whose gradient vanishes to 1e-40."""
    mp.dps = 60
    data = Data(SMOOTH[name][0])
    X, y, parts = ([mpf(float(x)) for x in column.ravel()] for column in (data.X, data.y, data.parts))
    p = data.X.shape[1]
    X = [X[i * p : (i + 1) * p] for i in range(len(y))]

    def terms(z, label):
        if name == "squared hinge":
            short = max(1 - label * z, mpf(0))
            return short**2, -2 * label * short, 2 if short else mpf(0)
        if name == "gamma":
            ratio = label * mp.exp(-z)
            return ratio - 1 - mp.log(ratio), 1 - ratio, ratio
        mean = mp.exp(z)
        return mean - label * z + (label * mp.log(label) - label if label else 0), mean - label, mean

    def energy(theta, order=0) -> Any:
        found = [terms(mp.fdot(x, theta), label) for x, label in zip(X, y, strict=True)]
        value = mp.fsum(w * t[0] for w, t in zip(parts, found, strict=True)) + MU_ * mp.fdot(theta, theta) / 2
        if not order:
            return value
        g = mp.matrix([mp.fsum(w * t[1] * x[a] for w, t, x in zip(parts, found, X, strict=True)) for a in range(p)])
        H = mp.matrix(p, p)
        for a in range(p):
            g[a] += MU_ * theta[a]
            for b in range(p):
                H[a, b] = mp.fsum(w * t[2] * x[a] * x[b] for w, t, x in zip(parts, found, X, strict=True))
            H[a, a] += MU_
        return g, H

    MU_ = mpf(MU)
    best = [mpf(float(t)) for t in minimiser(data.f)[0]]
    for _ in range(8):
        g, H = energy(best, 1)
        best = [t - s for t, s in zip(best, mp.lu_solve(H, g), strict=True)]
    assert mp.norm(energy(best, 1)[0]) < mpf(10) ** -40
    least = energy(best)
    for rounds in (1, 5, 40):
        trace = run(DualFL(), data.f, rounds=rounds)
        error = energy([mpf(float(t)) for t in trace.theta]) - least
        assert 0 < error <= trace["certificate"][-1]
    trace = run(DistributedNewtonCG(), data.f, rounds=100, tol=TOL)
    error = energy([mpf(float(t)) for t in trace.theta]) - least
    assert error <= trace["certificate"][-1] <= 1.1 * TOL * (least + trace["certificate"][-1])


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_quantiles_are_those_of_scikit_learn(level):
    """Without a ridge: their loss is at most ours, which exceeds it by the ridge of their model and the gap at most."""
    mu = 1e-5
    data = Data(Quantile(level=level), mu=mu)
    f = linear_model(data.X, data.y, loss=Quantile(level=level), mu=mu, weights=data.parts, intercept=False)
    model = QuantileRegressor(quantile=level, alpha=0.0, fit_intercept=False)
    theirs = model.fit(data.X, data.y, sample_weight=data.parts).coef_
    trace = run(OptimizedDualFL(), f, rounds=20, tol=1e-6)
    assert trace.status == "converged"

    def loss(theta):
        return float(data.parts @ Quantile(level=level).value(data.X @ theta, data.y))

    room = 1e-9 * loss(theirs)  # of the linear program
    assert loss(theirs) <= loss(trace.theta) + room
    assert loss(trace.theta) <= loss(theirs) + mu / 2 * (theirs @ theirs - trace.theta @ trace.theta) + room + float(
        trace["certificate"][-1]
    )


@pytest.mark.parametrize("loss", [Poisson(), Gamma(), SquaredHinge(), Quantile(level=0.8)], ids=repr)
def test_models_are_those_of_an_interior_point_method(loss):
    cp = pytest.importorskip("cvxpy")
    data = Data(loss)
    theta = cp.Variable(data.X.shape[1])
    energy = data.parts @ loss.cvxpy(data.X @ theta, data.y) + MU / 2 * cp.sum_squares(theta)
    cp.Problem(cp.Minimize(energy)).solve(solver="CLARABEL")
    method = OptimizedDualFL() if isinstance(loss, Quantile) else DistributedLBFGS()
    trace = run(method, data.f, rounds=3000, tol=1e-6 if isinstance(loss, Quantile) else 1e-9)
    assert trace.status == "converged"
    gap = float(trace["certificate"][-1])
    least = float(trace["energy"][-1]) - gap
    above = max(float(data.f.mean(data.f.value(theta.value))) - least, 0.0)
    allowed = math.sqrt(2.0 * gap / MU) + math.sqrt(2.0 * above / MU)
    assert allowed <= 1e-2 * np.linalg.norm(theta.value)
    assert np.linalg.norm(trace.theta - theta.value) <= allowed


@pytest.mark.parametrize("loss", [Poisson(), Gamma()], ids=repr)
def test_models_without_a_ridge_are_those_of_statsmodels(loss):
    """A ridge ``mu`` moves the minimiser by at most ``mu |theta| / (least eigenvalue of the Hessian)``, nearly."""
    sm = pytest.importorskip("statsmodels.api")
    data = Data(loss, mu=1e-8)
    link = sm.families.links.Log()
    family = sm.families.Poisson(link) if isinstance(loss, Poisson) else sm.families.Gamma(link)
    fitted = sm.GLM(data.y, data.X, family=family, var_weights=data.parts).fit(tol=1e-14, maxiter=500)
    trace = run(DistributedNewtonCG(), data.f, rounds=500, tol=1e-12)
    H = np.stack([data.f.mean(data.f.hessian_operator(trace.theta)(np.tile(e, (4, 1)))) for e in np.eye(5)])
    least = float(np.linalg.eigvalsh(H)[0])
    allowed = 2.0 * (1e-8 * np.linalg.norm(trace.theta) / least + math.sqrt(2.0 * trace["certificate"][-1] / least))
    assert np.linalg.norm(trace.theta - fitted.params) <= allowed <= 1e-4


OUTSIDE = [("poisson", -1.25, "nonnegative"), ("gamma", 0.0, "positive"), ("gamma", -3.5, "positive")]


@pytest.mark.parametrize(("loss", "label", "words"), OUTSIDE)
def test_labels_outside_the_domain_are_refused_without_their_value(loss, label, words):
    y = np.array([1.0, 2.0, label])
    with pytest.raises(ValueError, match=rf"^y must hold only {words} numbers for the loss \w+\(\)\.$") as error:
        linear_model(np.eye(3), y, loss=loss, mu=0.1)
    assert str(label) not in str(error.value)
    linear_model(np.eye(3), np.array([1.0, 2.0, 0.0 if loss == "poisson" else 1e-300]), loss=loss, mu=0.1)
