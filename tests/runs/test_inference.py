"""Standard errors equal those of statsmodels on the pooled rows, and the formulas written out where there is a ridge.

Clients are lopsided: five rows to ninety, columns of other sizes, and a shift of the features with the client, so that
sums, means over clients and means over rows all differ.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import mpmath
import numpy as np
import pytest
import statsmodels.api as sm
from scipy import optimize, special, stats

import dualopt
from dualopt import (
    L1,
    L2,
    Composite,
    Huber,
    Quadratic,
    certificate,
    linear_model,
    mlp,
    newton,
    reweighted,
)
from dualopt.arrays.xp import to_numpy
from dualopt.engine import Blocks
from dualopt.losses import Gamma, Poisson, Squared
from dualopt.objectives import _information
from dualopt.objectives._information import SUMS, client_information
from dualopt.runs._inference import table_of
from dualopt.runs.inference import _largest_log_likelihood

inference: Any = dualopt.inference
SIZES = (5, 11, 40, 7, 90, 23)
GROUPS = np.repeat(np.arange(len(SIZES)), SIZES)
CLIENTS = [np.flatnonzero(j == GROUPS) for j in range(len(SIZES))]
m = len(GROUPS)
RNG = np.random.default_rng(5)
X = RNG.standard_normal((m, 3)) * [1.0, 5.0, 0.2] + [0.0, 1.0, 2.0] + 0.2 * GROUPS[:, None]
Z = np.column_stack([X, np.ones(m)])
MEAN = X @ [0.5, -0.2, 1.0] - 1.5 + 0.4 * RNG.standard_normal(len(SIZES))[GROUPS]
BINARY = (RNG.random(m) < 1 / (1 + np.exp(-MEAN))).astype(float)
REAL = MEAN + RNG.standard_normal(m)
CLASSES = np.where(X[:, 0] > 1.2, 2, RNG.integers(0, 3, m))
COUNTS = RNG.integers(1, 5, m).astype(float)

# Both minimise to a gradient that is rounding; the condition number of the information, 1e4, amplifies it.
CLOSE: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-12}


def model(loss: Any = "logistic", mu: float = 0.0, y: Any = None, **options: Any) -> Any:
    y = {"logistic": BINARY, "multinomial": CLASSES}.get(loss, REAL) if y is None else y
    options = {"clients": CLIENTS, "client_weights": "rows", **options}
    return linear_model(X, y, loss=loss, mu=mu, **options)


def at_minimum(f: Any, **options: Any) -> Any:
    return inference(f, newton(f).theta, **options)


def assert_columns_equal(found: Any, witness: Any) -> None:
    intervals = np.asarray(witness.conf_int())
    for name, expected in {
        "estimate": witness.params,
        "standard_errors": witness.bse,
        "statistics": witness.tvalues,
        "p_values": witness.pvalues,
        "lower": intervals[:, 0],
        "upper": intervals[:, 1],
    }.items():
        np.testing.assert_allclose(getattr(found, name), expected, err_msg=name, **CLOSE)


def logit(**options: Any) -> Any:
    return sm.Logit(BINARY, Z).fit(disp=0, tol=1e-14, **options)


def by_groups(correction: bool) -> dict[str, Any]:
    """Return what makes statsmodels cluster, with Student's t where it has the factors for few clusters."""
    kwds = {"groups": GROUPS, "use_correction": correction}
    return {"cov_type": "cluster", "cov_kwds": kwds, "use_t": correction}


def test_logistic_equals_logit_and_binomial_glm() -> None:
    found = at_minimum(model())
    for witness in (logit(), sm.GLM(BINARY, Z, sm.families.Binomial()).fit(tol=1e-14, tol_criterion="params")):
        assert_columns_equal(found, witness)
        np.testing.assert_allclose((found.log_likelihood, found.aic), (witness.llf, witness.aic), **CLOSE)
    np.testing.assert_allclose(found.deviance, witness.deviance, **CLOSE)
    np.testing.assert_allclose(found.covariance, logit().cov_params(), rtol=1e-8)
    assert (found.degrees, found.dispersion, found.rows, found.clients) == (math.inf, 1.0, m, len(SIZES))
    assert found.parameters == pytest.approx(4, rel=1e-12)
    ratios = found.ratios
    np.testing.assert_allclose(ratios[0], np.exp(logit().params), **CLOSE)
    np.testing.assert_allclose(np.stack(ratios[1:], axis=1), np.exp(logit().conf_int()), **CLOSE)


def test_squared_equals_ordinary_least_squares_and_gaussian_glm() -> None:
    found, ols, glm = at_minimum(model("squared")), sm.OLS(REAL, Z).fit(), sm.GLM(REAL, Z).fit()
    assert_columns_equal(found, ols)
    np.testing.assert_allclose(found.standard_errors, glm.bse, **CLOSE)
    expected = glm.deviance, glm.scale, ols.llf, ols.aic, ols.df_resid
    got = found.deviance, found.dispersion, found.log_likelihood, found.aic, found.degrees
    np.testing.assert_allclose(got, expected, **CLOSE)
    assert found.ratios is None


def test_counts_and_costs_equal_generalised_linear_models() -> None:
    """Rate ratios of Poisson, ratios of means of gamma, whose dispersion is that of Pearson's residuals."""
    counts = np.random.default_rng(2).poisson(np.exp(0.3 * MEAN)).astype(float)
    found = at_minimum(model("poisson", y=counts, intercept="free"))
    witness = sm.GLM(counts, Z, sm.families.Poisson()).fit(tol=1e-14, tol_criterion="params")
    assert_columns_equal(found, witness)
    got, expected = (found.deviance, found.log_likelihood, found.aic), (witness.deviance, witness.llf, witness.aic)
    np.testing.assert_allclose(got, expected, **CLOSE)
    np.testing.assert_allclose(found.ratios[0], np.exp(witness.params), **CLOSE)
    costs = np.random.default_rng(3).gamma(2.0, np.exp(0.3 * MEAN) / 2.0)
    found = at_minimum(model("gamma", y=costs))
    link = sm.families.links.Log()
    witness = sm.GLM(costs, Z, sm.families.Gamma(link)).fit(tol=1e-14, tol_criterion="params")
    observed = -witness.model.hessian(witness.params, scale=witness.scale, observed=True)  # bse is by the expected one
    np.testing.assert_allclose(found.standard_errors, np.sqrt(np.diag(np.linalg.inv(observed))), **CLOSE)
    np.testing.assert_allclose((found.deviance, found.dispersion), (witness.deviance, witness.scale), **CLOSE)


def test_the_log_likelihood_of_costs_is_the_largest_over_the_shape() -> None:
    costs = np.random.default_rng(3).gamma(2.0, np.exp(0.3 * MEAN) / 2.0)
    found = at_minimum(model("gamma", y=costs))
    mean = np.exp(Z @ found.estimate)

    def at(log_shape: float) -> float:
        shape = math.exp(log_shape)
        return -stats.gamma.logpdf(costs, shape, scale=mean / shape).sum()

    best = -optimize.minimize_scalar(at, bounds=(-3.0, 3.0), method="bounded", options={"xatol": 1e-8}).fun
    assert found.log_likelihood == pytest.approx(best, rel=1e-12)
    assert found.aic == pytest.approx(2 * 4 - 2 * best, rel=1e-12)


@pytest.mark.parametrize("level", [0.5, 0.99])
def test_levels(level: float) -> None:
    for loss, witness in (("logistic", logit()), ("squared", sm.OLS(REAL, Z).fit())):
        found = at_minimum(model(loss), level=level)
        ends = np.stack([found.lower, found.upper], axis=1)
        np.testing.assert_allclose(ends, witness.conf_int(1 - level), **CLOSE)
        assert f"{100 * level:g}% from" in found.table()[0]


def test_offsets_are_those_of_generalised_linear_models() -> None:
    """Counts and costs with exposures that differ, and odds with an offset: everything that has one without them."""
    days = np.random.default_rng(4).uniform(0.1, 5.0, m)
    counts = np.random.default_rng(2).poisson(days * np.exp(0.3 * MEAN)).astype(float)
    found = at_minimum(model("poisson", y=counts, exposure=days))
    assert found.kind == "likelihood"
    witness = sm.GLM(counts, Z, sm.families.Poisson(), exposure=days).fit(tol=1e-14, tol_criterion="params")
    assert_columns_equal(found, witness)
    got, expected = (found.deviance, found.log_likelihood, found.aic), (witness.deviance, witness.llf, witness.aic)
    np.testing.assert_allclose(got, expected, **CLOSE)
    costs = days * np.random.default_rng(3).gamma(2.0, np.exp(0.3 * MEAN) / 2.0)
    found = at_minimum(model("gamma", y=costs, offset=np.log(days)))
    gamma = sm.families.Gamma(sm.families.links.Log())
    witness = sm.GLM(costs, Z, gamma, offset=np.log(days)).fit(tol=1e-14, tol_criterion="params")
    observed = -witness.model.hessian(witness.params, scale=witness.scale, observed=True)  # bse is by the expected one
    np.testing.assert_allclose(found.standard_errors, np.sqrt(np.diag(np.linalg.inv(observed))), **CLOSE)
    np.testing.assert_allclose((found.deviance, found.dispersion), (witness.deviance, witness.scale), **CLOSE)
    found = at_minimum(model("logistic", offset=MEAN))
    witness = sm.GLM(BINARY, Z, sm.families.Binomial(), offset=MEAN).fit(tol=1e-14, tol_criterion="params")
    assert_columns_equal(found, witness)
    np.testing.assert_allclose((found.deviance, found.log_likelihood), (witness.deviance, witness.llf), **CLOSE)
    found = at_minimum(model("poisson", y=counts, exposure=days), kind="clients")
    witness = sm.GLM(counts, Z, sm.families.Poisson(), exposure=days).fit(tol=1e-14, **by_groups(True))
    np.testing.assert_allclose(found.standard_errors, witness.bse, rtol=1e-6)


@pytest.mark.parametrize("small_sample", [True, False])
def test_the_covariance_by_the_clients_is_clustered(small_sample: bool) -> None:
    for loss, fit in (("logistic", logit), ("squared", sm.OLS(REAL, Z).fit)):
        found = at_minimum(model(loss), kind="clients", small_sample=small_sample)
        assert_columns_equal(found, fit(**by_groups(small_sample)))
        assert found.degrees == (len(SIZES) - 1 if small_sample else math.inf)


def mnlogit(**options: Any) -> Any:
    return sm.MNLogit(CLASSES, Z).fit(disp=0, tol=1e-14, method="newton", **options)


def test_multinomial_contrasts_equal_mnlogit() -> None:
    """Without a ridge a model is known up to a shift of all classes, on which their differences do not depend."""
    f, witness = model("multinomial"), mnlogit()
    theta = newton(f).theta
    found = inference(f, theta)
    against = found.against(0)
    for name, expected in (
        ("estimate", witness.params),
        ("standard_errors", witness.bse),
        ("p_values", witness.pvalues),
    ):
        np.testing.assert_allclose(np.reshape(getattr(against, name), (2, 4)), np.asarray(expected).T, rtol=1e-8)
    np.testing.assert_allclose((found.log_likelihood, found.aic), (witness.llf, witness.aic), rtol=1e-9)
    assert found.parameters == pytest.approx(8, rel=1e-9)
    other = found.against(1)  # the first four are class 0 against 1: the same numbers, with another sign
    np.testing.assert_allclose(other.estimate[:4], -against.estimate[:4], rtol=1e-9)
    np.testing.assert_allclose(other.standard_errors[:4], against.standard_errors[:4], rtol=1e-9)
    assert (other.names[0], against.names[0]) == ("0: x1", "1: x1")
    own = inference(f, theta, small_sample=False).against(0).by("clients")
    np.testing.assert_allclose(
        np.reshape(own.standard_errors, (2, 4)), np.asarray(mnlogit(**by_groups(False)).bse).T, rtol=1e-8
    )


def test_a_model_known_up_to_a_shift_is_the_one_whose_classes_sum_to_zero() -> None:
    """It is what a small ridge picks, with its covariance, and nothing else depends on which model was given."""
    f = model("multinomial")
    theta = newton(f).theta
    found, shifted = inference(f, theta), inference(f, theta + np.array([1.0, -2.0, 3.0, 4.0]))
    np.testing.assert_allclose(found.estimate.sum(axis=0), 0.0, atol=1e-12)
    small = at_minimum(model("multinomial", mu=1e-9))
    for name in ("estimate", "standard_errors", "lower"):
        np.testing.assert_allclose(getattr(shifted, name), getattr(found, name), rtol=1e-8)
        np.testing.assert_allclose(getattr(small, name), getattr(found, name), rtol=1e-5)  # the ridge
    for kind in ("likelihood", "clients"):
        ours, limit = found.by(kind).covariance, small.by(kind).covariance
        np.testing.assert_allclose(limit, ours, rtol=1e-5, atol=1e-5 * abs(ours).max())
    assert found.estimate_bounds is not None
    assert found.estimate_bounds.max() < 1e-9
    assert found.error_bounds is not None


# --- weights ----------------------------------------------------------------------------------------------------------


def weighted(loss: str, counts: Any = COUNTS, mu: float = 0.0) -> Any:
    """Return the model whose rows count so much: inside clients with the sum 1, as those of `linear_model` do."""
    sums = [float(counts[rows].sum()) for rows in CLIENTS]
    return model(loss, mu=mu, weights=counts / np.array(sums)[GROUPS], client_weights=sums)


def test_counts_are_rows_that_were_seen_more_than_once() -> None:
    repeated = np.repeat(np.arange(m), COUNTS.astype(int))
    found = at_minimum(weighted("logistic"), frequency=True)
    assert_columns_equal(found, sm.Logit(BINARY[repeated], Z[repeated]).fit(disp=0, tol=1e-14))
    found = at_minimum(weighted("squared"), frequency=True)
    witness = sm.OLS(REAL[repeated], Z[repeated]).fit()
    assert_columns_equal(found, witness)
    np.testing.assert_allclose((found.rows, found.aic), (witness.nobs, witness.aic), **CLOSE)


@pytest.mark.parametrize("small_sample", [True, False])
def test_counts_are_rows_of_their_clients(small_sample: bool) -> None:
    repeated = np.repeat(np.arange(m), COUNTS.astype(int))
    options = by_groups(small_sample)
    options["cov_kwds"]["groups"] = GROUPS[repeated]
    found = at_minimum(weighted("squared"), frequency=True, kind="clients", small_sample=small_sample)
    assert_columns_equal(found, sm.OLS(REAL[repeated], Z[repeated]).fit(**options))


@pytest.mark.parametrize(("spread", "kind"), [(4e-14, "likelihood"), (1e-13, "clients")])
def test_weights_that_differ_by_rounding_are_equal(spread: float, kind: str) -> None:
    """256 units in the last place are 6e-14; quotients of sizes differ by a few of them."""
    counts = np.where(np.arange(m) == 3, 1.0 + spread, 1.0)
    assert at_minimum(weighted("squared", counts)).kind == kind


@pytest.mark.parametrize("small_sample", [True, False])
def test_importance_weights_have_the_covariance_by_the_clients_alone(small_sample: bool) -> None:
    each: tuple[Any, ...] = COUNTS, 1.0 / np.array(SIZES)[GROUPS]
    for counts in each:
        found = at_minimum(weighted("squared", counts), small_sample=small_sample)
        assert_columns_equal(found, sm.WLS(REAL, Z, counts).fit(**by_groups(small_sample)))
        assert (found.kind, found.family, found.aic, found.deviance) == ("clients", None, None, None)
    equal = at_minimum(model("squared", client_weights="equal"), small_sample=small_sample)
    np.testing.assert_allclose(equal.standard_errors, found.standard_errors, **CLOSE)


def test_clients_of_one_size_and_equal_weights_are_a_likelihood() -> None:
    parts = np.split(np.arange(m), 8)
    assert_columns_equal(at_minimum(model(clients=parts, client_weights="equal")), logit())


def test_a_row_of_weight_zero_is_none() -> None:
    counts = np.where(np.arange(m) % 7 == 3, 0.0, 1.0)
    kept = counts > 0
    assert_columns_equal(
        at_minimum(weighted("logistic", counts)), sm.Logit(BINARY[kept], Z[kept]).fit(disp=0, tol=1e-14)
    )


# --- the ridge --------------------------------------------------------------------------------------------------------


def written_out(found: Any, loss: str, mu: float) -> tuple[np.ndarray, np.ndarray]:
    """Return both covariances from the pooled rows, without the factors for few clients."""
    theta = found.estimate
    z = Z @ theta
    p = 1 / (1 + np.exp(-z))
    curvature, slope = (p * (1 - p), p - BINARY) if loss == "logistic" else (np.ones(m), z - REAL)
    H = (Z * curvature[:, None]).T @ Z
    inverse = np.linalg.inv(H + m * mu * np.eye(4))
    psi = np.stack([Z[rows].T @ slope[rows] + len(rows) * mu * theta for rows in CLIENTS])
    return inverse @ H @ inverse, inverse @ psi.T @ psi @ inverse


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("mu", [1e-3, 0.3])
def test_a_ridge_is_counted_once_in_both_covariances(loss: str, mu: float) -> None:
    found = at_minimum(model(loss, mu=mu), small_sample=False)
    by_likelihood, by_clients = written_out(found, loss, mu)
    np.testing.assert_allclose(found.covariance, found.dispersion * by_likelihood, rtol=1e-8)
    np.testing.assert_allclose(found.by("clients").covariance, by_clients, rtol=1e-8)


@pytest.mark.parametrize("mu", [1e-3, 0.3])
def test_least_squares_with_a_ridge_is_exact(mu: float) -> None:
    """The minimiser is linear in the labels, y -> K y: its covariance is s K K' and its bias (K Z - I) theta."""
    few = np.arange(0, m, 8)
    n = len(few)

    def fitted(y: np.ndarray) -> Any:
        clients = GROUPS[few]
        return linear_model(X[few], y, loss="squared", mu=mu, clients=clients, client_weights="rows")

    found = at_minimum(fitted(REAL[few]))
    K = np.stack([newton(fitted(y)).theta for y in np.eye(n)], axis=1)
    S = Z[few] @ K
    np.testing.assert_allclose(found.covariance / found.dispersion, K @ K.T, rtol=1e-6)
    np.testing.assert_allclose(found.ridge_shift, (K @ Z[few] - np.eye(4)) @ found.estimate, rtol=1e-6)
    assert found.parameters == pytest.approx(np.trace(S), rel=1e-7)
    assert found.degrees == pytest.approx(n - np.trace(2 * S - S @ S.T), rel=1e-7)
    residual = REAL[few] - S @ REAL[few]
    assert found.dispersion == pytest.approx(residual @ residual / found.degrees, rel=1e-7)
    assert found.aic == pytest.approx(-2 * found.log_likelihood + 2 * np.trace(S), rel=1e-9)


@pytest.mark.parametrize(("loss", "mu"), [("logistic", 0.05), ("squared", 0.05), (Huber(delta=0.8), 0.01)])
def test_scores_of_clients_are_derivatives_by_their_weights(loss: Any, mu: float) -> None:
    """The covariance by the clients is the sum of squares of what a client's weight does to the minimiser."""
    f = model(loss, mu=mu)
    h, changes = 1e-4, []
    for j in range(len(SIZES)):
        ends = []
        for sign in (1, -1):
            weights = [w * (1 + sign * h * (i == j)) for i, w in enumerate(f.weights)]
            ends.append(newton(replace(f, weights=tuple(weights)), tol=1e-13).theta)
        changes.append((ends[0] - ends[1]) / (2 * h))
    C = np.stack(changes, axis=1)
    found = at_minimum(f, kind="clients", small_sample=False)
    np.testing.assert_allclose(
        found.covariance, C @ C.T, rtol=2e-4, atol=1e-6 * abs(found.covariance).max()
    )  # h^2, Newton


def test_a_ridge_of_the_server_is_one_of_the_clients() -> None:
    whole, part = model(mu=0.02), Composite(objective=model(mu=0.005), regulariser=L2(weight=0.015))
    theta = newton(whole).theta
    for kind in ("likelihood", "clients"):
        a, b = (inference(f, theta, kind=kind) for f in (whole, part))
        np.testing.assert_allclose(a.covariance, b.covariance, rtol=1e-12)
        np.testing.assert_allclose(a.ridge_shift, b.ridge_shift, rtol=1e-12)


def test_the_ridge_of_the_server_counts_in_the_distance() -> None:
    f = Composite(objective=model(mu=0.005), regulariser=L2(weight=0.015))
    assert inference(f, f.zeros(), gap=0.5).distance == pytest.approx(math.sqrt(2 * 0.5 / 0.02), rel=1e-12)
    alone = Composite(objective=model(), regulariser=L2(weight=0.02))
    assert inference(alone, f.zeros(), gap=0.5).distance == pytest.approx(math.sqrt(2 * 0.5 / 0.02), rel=1e-12)
    assert inference(f, f.zeros(), gap=math.inf).distance is None


# --- invariance -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["logistic", "multinomial"])
def test_nothing_depends_on_units_of_columns(loss: str) -> None:
    units = np.array([1e-6, 1.0, 1e8])
    y = BINARY if loss == "logistic" else CLASSES
    scaled = linear_model(X * units, y, loss=loss, mu=0.0, clients=CLIENTS, client_weights="rows")
    plain = at_minimum(model(loss))
    theta = plain.estimate / np.append(units, 1.0)
    found = inference(scaled, theta)
    np.testing.assert_allclose(found.standard_errors * np.append(units, 1.0), plain.standard_errors, rtol=1e-9)
    np.testing.assert_allclose(found.statistics, plain.statistics, rtol=1e-9)
    np.testing.assert_allclose(found.by("clients").statistics, plain.by("clients").statistics, rtol=1e-9)


def test_clients_elsewhere_reweighted_and_sparse_give_the_same() -> None:
    from scipy.sparse import csr_matrix

    f = model("multinomial", mu=0.02)
    theta = newton(f).theta
    expected = inference(f, theta)
    sparse = linear_model(
        csr_matrix(X), CLASSES, loss="multinomial", mu=0.02, clients=CLIENTS, client_weights="rows", storage="sparse"
    )
    away = Blocks(number=4).clients(f)
    for other in (away, reweighted(f, [1, 2, 3, 4, 5, 6]), sparse, Blocks(number=2, partial_sums=True).clients(f)):
        found = inference(other, theta, like=f)
        for kind in ("likelihood", "clients"):
            np.testing.assert_allclose(found.by(kind).covariance, expected.by(kind).covariance, rtol=1e-10)
        assert (found.log_likelihood, found.rows) == (pytest.approx(expected.log_likelihood, rel=1e-12), m)


def test_array_libraries(backend: Any) -> None:
    options: dict[str, Any] = {"loss": "multinomial", "mu": 0.01, "clients": CLIENTS, "client_weights": "rows"}
    f, own = linear_model(backend(X), backend(CLASSES), **options), linear_model(X, CLASSES, **options)
    theta = newton(own).theta
    found, expected = inference(f, backend(theta)), inference(own, theta)
    assert str(found).splitlines()[:4] == str(expected).splitlines()[:4]
    for name in ("standard_errors", "p_values", "lower", "estimate_bounds"):
        x = getattr(found, name)
        assert type(x) is type(backend(theta))
        np.testing.assert_allclose(to_numpy(x), getattr(expected, name), rtol=1e-9, atol=1e-12)


def test_float32_rows_are_added_in_float32() -> None:
    f = linear_model(X.astype(np.float32), BINARY, loss="logistic", mu=0.0, clients=CLIENTS, client_weights="rows")
    found = inference(f, at_minimum(model()).estimate.astype(np.float32))
    np.testing.assert_allclose(found.standard_errors, logit().bse, rtol=1e-4)  # sums of 90 rows, condition 1e4
    assert found.standard_errors.dtype == np.float64


# --- bounds -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["logistic", "multinomial"])
@pytest.mark.parametrize("mu", [1e-3, 0.1])
@pytest.mark.parametrize("far", [1e-5, 1e-3, 3e-2])
def test_bounds_hold_away_from_the_minimiser(loss: str, mu: float, far: float) -> None:
    f = model(loss, mu=mu)
    best = at_minimum(f)
    rng = np.random.default_rng(1)
    for _ in range(20):
        theta = best.estimate + far * rng.standard_normal(f.shape)
        gap = certificate(f, theta).gap
        found = inference(f, theta, gap=gap)
        assert np.linalg.norm(theta - best.estimate) <= found.distance
        assert found.distance == pytest.approx(math.sqrt(2 * gap / f.mean_mu))
        if found.estimate_bounds is None:
            assert far > 1e-5
            continue
        room = 1e-8 * np.abs(best.estimate)  # of the minimiser itself
        assert (np.abs(theta - best.estimate) <= found.estimate_bounds + room).all()
        least, largest = found.error_bounds
        assert (least <= best.standard_errors * (1 + 1e-9)).all()
        assert (largest >= best.standard_errors * (1 - 1e-9)).all()


@pytest.mark.parametrize("loss", ["logistic", "multinomial"])
def test_bounds_shrink_with_the_distance(loss: str) -> None:
    """Those of the standard errors like the distance, those of the estimates to the distance, up to its square."""
    f = model(loss, mu=0.1)
    best, away = at_minimum(f).estimate, np.random.default_rng(1).standard_normal(f.shape)
    widths = []
    for far in (1e-4, 1e-6):
        found = inference(f, best + far * away)
        least, largest = found.error_bounds
        widths.append((largest - least) / found.standard_errors)
        extra = found.estimate_bounds / far - np.abs(away)
        assert (extra <= 1e5 * far).all()  # R sqrt((A^-1)_rr) |d|_A^2 over far is 1e3 to 1e5 here
    np.testing.assert_allclose(widths[0] / widths[1], 100.0, rtol=0.1)


def test_bounds_are_attained() -> None:
    """One column of ones, one positive label: far below 0 the second derivative is e^z, the worst of the class."""
    y = np.zeros(4000)
    y[0] = 1.0
    f = linear_model(np.ones((4000, 1)), y, loss="logistic", mu=0.0, clients=2, intercept=False, client_weights="rows")
    best = math.log(1 / 3999)
    theta = np.array([best + 0.5])
    found = inference(f, theta)
    assert found.estimate_bounds[0] == pytest.approx(0.5, rel=1e-3)
    assert found.estimate_bounds[0] >= 0.5
    exact = inference(f, np.array([best])).standard_errors[0]
    assert found.error_bounds[1][0] == pytest.approx(exact, rel=1e-3)
    assert exact <= found.error_bounds[1][0] * (1 + 1e-12)


def pooled(loss: str, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the gradient ``(D,)`` and the Hessian of the losses, summed over all rows."""
    z = Z @ np.atleast_2d(theta).T
    if loss == "logistic":
        p = 1 / (1 + np.exp(-z))
        errors, curvature = p - BINARY[:, None], (p * (1 - p))[:, :, None]
    else:
        p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
        errors, curvature = p - np.eye(3)[CLASSES], p[:, :, None] * np.eye(3) - p[:, :, None] * p[:, None, :]
    H = np.einsum("iab,ic,id->acbd", curvature, Z, Z)
    return (errors.T @ Z).ravel(), H.reshape(theta.size, theta.size)


@pytest.mark.parametrize("q", [1e-3, 0.3, 0.7, 1.5])  # e^s is below 2, above it, and infinite
@pytest.mark.parametrize(("loss", "mu"), [("logistic", 0.02), ("logistic", 0.0), ("multinomial", 0.0)])
def test_bounds_are_those_of_the_formulas(loss: str, mu: float, q: float) -> None:
    """From the gradient and the Hessian alone, and with gaps that say more, or less."""
    f = model(loss, mu=mu)
    best, away = newton(f).theta, np.random.default_rng(2).standard_normal(f.shape)
    M, R, null = math.sqrt(f.loss.outputs - 1) or 1.0, np.linalg.norm(Z, axis=1).max(), 0 if loss == "logistic" else 4

    def at(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, float, float]:
        g, H = pooled(loss, theta)
        g, A = g + m * mu * theta.ravel(), H + m * mu * np.eye(theta.size)
        inverse = np.linalg.pinv(A, rcond=1e-12, hermitian=True)
        decrement = math.sqrt(g @ inverse @ g)
        return inverse @ g, inverse, H, decrement, M * R * decrement / math.sqrt(np.linalg.eigvalsh(A)[null])

    theta = best + q / at(best + 1e-6 * away)[-1] * 1e-6 * away
    step, inverse, H, decrement, own = at(theta)
    radii, errors = np.sqrt(np.diag(inverse)), np.sqrt(np.diag(inverse @ H @ inverse))
    from_hessian = -math.log(1 - own) if own < 1 else math.inf
    for s in (from_hessian, *((0.0, 0.1, 29.9, 30.1) if mu else ())):
        gap = None if s == from_hessian else 0.5 * mu * (s / (M * R)) ** 2
        found, s = inference(f, theta, gap=gap), min(s, from_hessian)
        if s > 30:
            assert (found.estimate_bounds, found.error_bounds) == (None, None)
            continue
        distance = decrement * (s / (1 - math.exp(-s)) if s else 1.0)
        moved = np.minimum(radii * distance, abs(step) + radii * ((math.exp(s) - 1) / s - 1 if s else 0.0) * distance)
        np.testing.assert_allclose(found.estimate_bounds.ravel(), moved, rtol=1e-6)
        largest = math.exp(s / 2) * radii
        if math.exp(s) < 2:
            largest = np.minimum(largest, math.exp(s / 2) / (2 - math.exp(s)) * errors)
        np.testing.assert_allclose(found.error_bounds[0].ravel(), math.exp(-1.5 * s) * errors, rtol=1e-6)
        np.testing.assert_allclose(found.error_bounds[1].ravel(), largest, rtol=1e-6)


@pytest.mark.parametrize("unit", [1e-14, 1e-12, 1e-10])
def test_bounds_are_not_of_rounding(unit: float) -> None:
    """Of the smallest number of the information no digit is left: s is of the order of 1e-9 / unit, too much."""
    columns = X * [1.0, 1.0, unit]
    f = linear_model(columns, BINARY, loss="logistic", mu=0.0, clients=CLIENTS, client_weights="rows")
    theta = at_minimum(model()).estimate / [1.0, 1.0, unit, 1.0]
    assert inference(f, theta + 1e-10 * np.eye(4)[0]).estimate_bounds is None


def test_a_quadratic_is_known_exactly() -> None:
    f = model("squared", mu=0.1)
    best = at_minimum(f)
    theta = best.estimate + np.array([1.0, -2.0, 0.5, 3.0])
    found = inference(f, theta)
    np.testing.assert_allclose(found.newton_step, [1.0, -2.0, 0.5, 3.0], rtol=1e-9)
    np.testing.assert_allclose(found.estimate_bounds, [1.0, 2.0, 0.5, 3.0], rtol=1e-9)
    assert found.error_bounds is None  # the dispersion of the minimiser is not known
    assert "run to a smaller tol" in str(found)
    assert "run to a smaller tol" not in str(best)


def test_without_a_constant_nothing_is_promised() -> None:
    f = model(Huber(delta=0.8), mu=0.01)
    found = inference(f, newton(f).theta, gap=1e-9)
    assert found.distance == pytest.approx(math.sqrt(2e-9 / f.mean_mu))
    assert found.estimate_bounds is None
    assert found.error_bounds is None
    assert at_minimum(model(mu=0.0), gap=1e-9).distance is None


# --- what clients tell ------------------------------------------------------------------------------------------------


def test_sums_of_clients() -> None:
    f = weighted("squared", mu=0.5)
    theta = np.array([0.1, 0.2, -0.3, 0.4])
    found = client_information(f, theta)
    for j, rows in enumerate(CLIENTS):
        w = COUNTS[rows] / COUNTS[rows].sum()
        residual = Z[rows] @ theta - REAL[rows]
        expected = [len(rows), 1.0, w.min(), w.max(), w @ residual**2, w @ residual**2, 0.0]
        np.testing.assert_allclose(found.sums[j], [*expected, np.linalg.norm(Z[rows], axis=1).max()], rtol=1e-12)
        np.testing.assert_allclose(found.gradient[j], Z[rows].T @ (w * residual) + 0.5 * theta, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.hessian, (Z * COUNTS[:, None]).T @ Z, rtol=1e-12)
    assert found.penalty.tolist() == [0.5] * 4
    assert len(SUMS) == found.sums.shape[1]


def test_sums_of_pieces_of_rows_are_those_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces of three rows, the last one shorter."""
    f, theta = weighted("squared", mu=0.5), np.array([0.1, 0.2, -0.3, 0.4])
    whole = client_information(f, theta)
    monkeypatch.setattr(_information, "PIECE", 12)
    np.testing.assert_allclose(client_information(f, theta).hessian, whole.hessian, rtol=1e-12)


def test_weights_of_clients_count_in_the_hessian_alone() -> None:
    """Those of ``rows`` are the numbers of rows; a loss that is no likelihood has no deviance."""
    theta = np.array([0.1, 0.2, -0.3, 0.4])
    equal, by_rows = (
        client_information(model(Huber(delta=1e6), client_weights=weights), theta) for weights in ("equal", "rows")
    )
    own = [Z[rows].T @ Z[rows] / len(rows) for rows in CLIENTS]
    np.testing.assert_allclose(equal.hessian, sum(own), rtol=1e-12)
    np.testing.assert_allclose(by_rows.hessian, Z.T @ Z, rtol=1e-12)
    np.testing.assert_array_equal(equal.sums, by_rows.sums)
    assert not equal.sums[:, SUMS.index("deviance") : SUMS.index("log_base") + 1].any()


class Raised(Squared):
    """A loss whose least value is not zero."""

    def value(self, z: Any, y: Any) -> Any:
        return super().value(z, y) + 3.0

    def conjugate(self, u: Any, y: Any) -> Any:
        return super().conjugate(u, y) - 3.0


def test_deviances_are_measured_from_the_least_loss() -> None:
    theta = np.array([0.1, 0.2, -0.3, 0.4])
    found, expected = (client_information(model(loss), theta).sums for loss in (Raised(), Squared()))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_the_hessian_of_classes_is_that_of_the_objective() -> None:
    f = model("multinomial", mu=0.2)
    theta = np.random.default_rng(0).standard_normal(f.shape)
    operator = f.hessian_operator(theta)
    units = np.eye(12).reshape(12, 3, 4)
    each = np.stack([operator(np.broadcast_to(e, (f.n_clients, 3, 4))) for e in units])  # (12, N, 3, 4)
    expected = np.tensordot(each, f.weights, axes=(1, 0)).reshape(12, 12) - 0.2 * sum(f.weights) * np.eye(12)
    np.testing.assert_allclose(client_information(f, theta).hessian, expected, rtol=1e-9, atol=1e-9)


def test_counts_and_costs_have_densities() -> None:
    z, counts, costs = np.linspace(-2, 2, 6), np.array([0.0, 1, 2, 5, 11, 3]), np.array([0.1, 1, 2, 0.5, 7, 3])
    found = Poisson().log_base(counts) - Poisson().value(z, counts)
    np.testing.assert_allclose(found, stats.poisson.logpmf(counts, np.exp(z)), rtol=1e-12)
    own = Gamma()
    for s in (0.3, 2.0):
        found = own.log_base(costs) + own.normaliser(s) - own.value(z, costs) / s
        np.testing.assert_allclose(found, stats.gamma.logpdf(costs, 1 / s, scale=s * np.exp(z)), rtol=1e-12)


@pytest.mark.parametrize("s", [3.0, 0.4, 0.0526, 0.05, 0.0499, 1e-3, 1e-6, 1e-12, 1e-150])
def test_densities_of_small_dispersions_lose_no_digits(s: float) -> None:
    """The parts of the normaliser cancel, to 5e-10 of it at 1e-6 and to nothing at 1e-12."""
    with mpmath.workdps(400):
        a = 1 / mpmath.mpf(s)
        exact = float(a * mpmath.log(a) - a - mpmath.loggamma(a))
    np.testing.assert_allclose(Gamma().normaliser(s), exact, rtol=1e-13)


def test_pearson_is_the_squared_residual_over_the_variance_function() -> None:
    z, y = np.linspace(-2, 2, 6), np.array([0.1, 1, 2, 0.5, 7, 3])
    for loss, mean, variance in ((Gamma(), np.exp(z), np.exp(2 * z)), (Squared(), z, 1.0)):
        np.testing.assert_allclose(loss.pearson(z, y), (y - mean) ** 2 / variance, rtol=1e-12)


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_a_likelihood_is_a_density(loss: str) -> None:
    """Its parts add up to the logarithm of the density that SciPy has."""
    from dualopt.losses import Logistic, Squared

    z = np.linspace(-3, 3, 7)
    own, y = (Logistic(), np.array([1.0, -1, 1, 1, -1, -1, 1])) if loss == "logistic" else (Squared(), z[::-1] ** 2)
    for s in (1.0,) if loss == "logistic" else (0.3, 2.0):
        constant = own.normaliser(s) if isinstance(own, Squared) else 0.0
        found = own.log_base(y) + constant - (own.value(z, y) + own.conjugate(0 * z, y)) / s
        if isinstance(own, Squared):
            expected = stats.norm.logpdf(y, z, math.sqrt(s))
        else:
            expected = stats.bernoulli.logpmf((y + 1) / 2, 1 / (1 + np.exp(-z)))
        np.testing.assert_allclose(found, expected, rtol=1e-12)


# --- words ------------------------------------------------------------------------------------------------------------


def test_a_page_and_its_json() -> None:
    found = at_minimum(model(mu=0.01), names=["a", "b", "c"], gap=1e-10)
    record = json.loads(found.to_text())
    assert [row["name"] for row in record["coefficients"]] == ["a", "b", "c", "intercept"]
    assert record["degrees"] is None
    assert table_of(record) == found.table()
    assert found.numbers_sent == 4 * 4 + 2 * 4 + 8 == record["numbers_sent"]
    text = str(found)
    for words in ("by the likelihood, (H + P)^-1 H (H + P)^-1", "32 numbers, once", "odds ratio", "(certified)"):
        assert words in text
    assert f"by up to {max(abs(found.ridge_shift) / found.standard_errors):.2g} of its standard error" in text
    assert found.estimate_bounds is not None
    assert f"no parameter is farther than {max(found.estimate_bounds):.1e} from it" in text
    assert len(found.to_csv().splitlines()) == 5
    assert len(found.table(rows=2)) == 2
    assert repr(found) == "<Inference on 4 parameters from 176 rows of 6 clients, covariance by the likelihood>"
    clients = str(found.by("clients"))
    assert "B the outer products of the clients' gradients" in clients
    assert "rank below" not in clients
    assert "of rank below 6" in str(at_minimum(model("multinomial", mu=0.01)).by("clients"))


@pytest.mark.parametrize(
    ("make", "options", "words"),
    [
        (lambda: model("hinge", mu=0.1, y=BINARY), {}, "Hinge has kinks"),
        (lambda: model("absolute-deviation", mu=0.1), {}, "AbsoluteDeviation has kinks"),
        (lambda: model("huber", mu=0.1), {"kind": "likelihood"}, "the loss Huber is no likelihood"),
        (lambda: model(mu=0.1), {"kind": "both"}, "kind must be likelihood, clients or auto"),
        (lambda: model(mu=0.1), {"level": 1.0}, "level must be between 0 and 1"),
        (lambda: model(mu=0.1), {"gap": -1.0}, "gap must be at least 0"),
        (lambda: model(mu=0.1), {"names": ["a"]}, "names must be those of the 4 columns"),
        (lambda: Composite(objective=model(mu=0.1), regulariser=L1(weight=0.1)), {}, "regulariser must be L2 or none"),
        (lambda: model(mu=0.1, client_weights="equal"), {"kind": "likelihood"}, "client_weights='rows'"),
        (lambda: model(mu=0.1, clients=1), {"kind": "clients"}, r"the covariance by the clients\.$"),
        (lambda: model(mu=0.1, clients=1, weights=COUNTS), {}, "clients, and rows of unequal weights have"),
        (lambda: Blocks(number=2).clients(model(mu=0.1)), {}, "like must be given"),
        (lambda: Blocks(number=2).clients(model(mu=0.1)), {"like": model(mu=0.2)}, "like must have the ridge"),
        (lambda: linear_model(X[:, [0, 1, 0]], REAL, loss="squared", mu=0.0), {}, "information that is not singular"),
        (lambda: linear_model(0 * X, REAL, loss="squared", mu=0.0), {}, "information that is not singular"),
        (lambda: Quadratic(A=np.stack([np.eye(4)]), b=np.zeros((1, 4))), {}, "objective must be a linear model"),
        (lambda: mlp(X, CLASSES, layers=(2,), classes=3, ridge=0.1), {}, "objective must be a linear model"),
    ],
)  # fmt: skip
def test_what_has_no_standard_errors_is_refused(make: Any, options: Any, words: str) -> None:
    f = make()
    with pytest.raises(ValueError, match=words) as error:
        inference(f, f.zeros(), **options)
    assert str(error.value).count(". ") == 0


def test_models_of_another_shape_and_models_that_are_not_finite() -> None:
    f = model(mu=0.1)
    with pytest.raises(ValueError, match=r"theta must have the shape \(4,\)"):
        inference(f, np.zeros(3))
    with pytest.raises(ValueError, match="theta must be a model at which"):
        inference(f, np.full(4, np.nan))
    found = at_minimum(f)
    with pytest.raises(ValueError, match="kind must be likelihood or clients here"):
        found.by("auto")
    with pytest.raises(ValueError, match="matrix must have 4 columns"):
        found.contrasts(np.eye(3), ["a", "b", "c"])
    with pytest.raises(ValueError, match="matrix must have 4 columns"):
        found.contrasts(np.ones(4), ["a"])
    with pytest.raises(ValueError, match="against is for a model with an output for each class"):
        found.against()
    with pytest.raises(ValueError, match="reference must be the number of one of the 3 classes"):
        at_minimum(model("multinomial", mu=0.1)).against(3)


@pytest.mark.parametrize("seed", range(20))
def test_as_many_parameters_as_rows_leave_no_degrees_of_freedom(seed: int) -> None:
    """Computed ones are rounding, of either sign; a ridge that counts leaves some."""
    rng = np.random.default_rng(seed)
    given: dict[str, Any] = {"loss": "squared", "clients": 2, "client_weights": "rows", "intercept": False}
    features, y = rng.standard_normal((4, 4)) * 10.0 ** rng.uniform(-2, 2, 4), rng.standard_normal(4)
    with pytest.raises(ValueError, match="objective has 4 rows, too few for a dispersion beside 4 parameters"):
        inference(linear_model(features, y, mu=0.0, **given), np.zeros(4))
    gram = features.T @ features
    left = np.trace(np.linalg.matrix_power(np.eye(4) - np.linalg.solve(gram + 4 * 1e-3 * np.eye(4), gram), 2))
    assert inference(linear_model(features, y, mu=1e-3, **given), np.zeros(4)).degrees == pytest.approx(left, rel=1e-6)


@pytest.mark.parametrize("loss", ["logistic", "multinomial", "squared", "poisson", "gamma"])
def test_third_derivatives_are_bounded_by_second_ones(loss: str) -> None:
    """By M, and by nothing that is smaller: towards certain predictions the bound is attained."""
    own = model(loss, y=COUNTS).loss if loss in ("poisson", "gamma") else model(loss).loss
    k, rng, worst = own.outputs, np.random.default_rng(3), 0.0
    y: Any = np.zeros(1, dtype=int) if k > 1 else np.ones(1)
    for size in (0.1, 1.0, 4.0):
        for _ in range(200):
            z, v, h = rng.standard_normal((3, k, 1)) * [[[size]], [[1.0]], [[1.0]]]
            if k > 1 and size > 1.0:  # two classes alone, and a direction between them
                z[2], v, h = -30.0, np.array([[1.0], [-1.0], [0.0]]), np.array([[1.0], [-1.0], [0.0]])
            step = 1e-4 * v / np.linalg.norm(v)

            def second(x: np.ndarray, h: np.ndarray = h) -> float:
                x, w = (x, h) if k > 1 else (x[0], h[0])
                return float((w * own.hessian_product(x, y, w)).sum())

            ratio = abs(second(z + step) - second(z - step)) / 2e-4 / second(z)
            worst = max(worst, ratio)
    assert worst <= own.self_concordance + 1e-5  # differences of numbers from 1e-6 on, over 2e-4
    assert worst >= own.self_concordance * (1 - 1e-3)


def test_a_free_intercept_has_no_ridge_and_counts_are_sample_weights() -> None:
    """P is 0 for the intercept, and a row of sample weight 2 is the row twice."""
    mu = 0.05
    given: dict[str, Any] = {"loss": "squared", "clients": GROUPS, "client_weights": "rows"}
    found = at_minimum(linear_model(X, REAL, mu=mu, intercept="free", **given), gap=1e-9)
    assert found.ridge == pytest.approx(m * mu, rel=1e-12)
    inverse = np.linalg.inv(Z.T @ Z + m * mu * np.diag([1.0, 1.0, 1.0, 0.0]))
    np.testing.assert_allclose(found.covariance, found.dispersion * inverse @ Z.T @ Z @ inverse, rtol=1e-8)
    assert found.estimate_bounds is not None
    weighted_rows = linear_model(X, REAL, mu=0.0, sample_weight=COUNTS, **given)
    again = np.repeat(np.arange(m), COUNTS.astype(int))
    assert_columns_equal(at_minimum(weighted_rows, frequency=True), sm.OLS(REAL[again], Z[again]).fit())
    assert at_minimum(weighted_rows).kind == "clients"


def test_a_free_intercept_has_no_certified_distance() -> None:
    """The gap bounds that of the other weights alone; bounds from gradient and Hessian are of all."""
    f = model(mu=0.1, intercept="free")
    theta = newton(f).theta
    found, penalised = inference(f, theta, gap=1e-9), inference(model(mu=0.1), theta, gap=1e-9)
    assert (found.distance, penalised.distance) == (None, pytest.approx(math.sqrt(2e-8)))
    assert "of the model (certified)" not in str(found)
    assert "of the model (certified)" in str(penalised)


@pytest.mark.parametrize("factor", [1e-30, 1.0, 1e30])
def test_the_largest_likelihood_of_normal_errors(factor: float) -> None:
    """It is -n/2 (1 + log(2 pi D/n)), whatever the unit of the labels is."""
    n, deviance = 50.0, 7.0 * factor
    expected = -0.5 * n * (1.0 + np.log(2.0 * np.pi * deviance / n))
    assert _largest_log_likelihood(Squared(), n, deviance) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("mean_deviance", [1e-3, 0.5, 300.0])
def test_the_largest_likelihood_of_gamma_errors(mean_deviance: float) -> None:
    """At the shape a with log a - digamma(a) = D / 2n, where the derivative is zero."""
    n = 50.0

    def slope(log_a: float) -> float:
        return log_a - special.digamma(math.exp(log_a)) - 0.5 * mean_deviance

    log_a: Any = optimize.brentq(slope, -10.0, 10.0, xtol=1e-14)
    a = math.exp(log_a)
    expected = n * (a * log_a - a - special.gammaln(a)) - 0.5 * n * mean_deviance * a
    assert _largest_log_likelihood(Gamma(), n, n * mean_deviance) == pytest.approx(expected, rel=1e-12)
    assert _largest_log_likelihood(Gamma(), n, 0.0) == math.inf


def test_numbers_are_named_by_their_classes() -> None:
    f = linear_model(X, np.array(["a", "c", "b"])[CLASSES], loss="multinomial", mu=0.1, clients=CLIENTS)
    names = inference(f, f.zeros(), kind="clients").names
    assert names[:4] == ("a: x1", "a: x2", "a: x3", "a: x4")
    assert [name[0] for name in names] == ["a"] * 4 + ["b"] * 4 + ["c"] * 4
