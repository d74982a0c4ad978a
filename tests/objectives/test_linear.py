"""Contract of linear models, for every loss in dualopt.losses: a new file there is tested without being named here."""

from __future__ import annotations

import math
import pickle
from typing import Any

import array_api_strict as strict
import numpy as np
import pandas as pd
import pytest
from model_instances import LOSSES, Rows, assert_close, literal, lognormal_sizes, model, on, points, rows

from dualopt.arrays.xp import to_numpy
from dualopt.losses import Hinge, Logistic, Multinomial, Squared
from dualopt.objectives import LocalProblem, Objective, linear_model
from dualopt.objectives import rows as rows_module
from tests.engine.thread_communicator import on_each

every_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)
CALLS = {
    "value": lambda f, theta, v: f.value(theta),
    "gradient": lambda f, theta, v: f.gradient(theta),
    "value_and_gradient[0]": lambda f, theta, v: f.value_and_gradient(theta)[0],
    "value_and_gradient[1]": lambda f, theta, v: f.value_and_gradient(theta)[1],
    "hessian_operator": lambda f, theta, v: f.hessian_operator(theta)(v),
    "hessian_product": lambda f, theta, v: f.hessian_product(theta, v),
    "preconditioner": lambda f, theta, v: f.preconditioner()(v),
    "preconditioner, a weight": lambda f, theta, v: f.preconditioner(0.7)(v),
    "preconditioner, a weight per client": lambda f, theta, v: f.preconditioner(0.5 + f.mu)(v),
    "mu": lambda f, theta, v: f.mu,
    "L": lambda f, theta, v: f.L,
}


def close(actual, expected, **tolerance):
    """Compare as ``assert_close`` does, infinite constants included."""
    if not np.all(np.isfinite(expected)):
        assert np.array_equal(actual, expected)
    else:
        assert_close(actual, expected, **tolerance)


@every_loss
def test_values_and_gradients_are_the_double_loop(loss, backend):
    data = rows(loss)
    f = model(loss, on(backend, data))
    theta = points(f)
    value, gradient = literal(loss, data, theta)
    assert isinstance(f, Objective)
    assert_close(to_numpy(f.value(backend(theta))), value)
    assert_close(to_numpy(f.gradient(backend(theta))), gradient)
    together = f.value_and_gradient(backend(theta))
    assert_close(to_numpy(together[0]), value)
    assert_close(to_numpy(together[1]), gradient)


@pytest.mark.parametrize("sizes", [(9, 9, 12), (2, 3, 2)], ids=["tall", "wide"])
def test_L_and_mu_are_attained_by_the_squared_loss(sizes):
    data = rows(Squared(), sizes)
    f = model(Squared(), data)
    for j, part in enumerate(data.clients):
        X = np.column_stack([data.X[part], np.ones(len(part))])
        spectrum, vectors = np.linalg.eigh(X.T @ X / len(part))
        a = np.zeros((f.n_clients, *f.shape))
        a[j] = vectors[:, -1]
        assert np.linalg.norm((f.gradient(a) - f.gradient(0 * a))[j]) == pytest.approx(f.L[j], rel=1e-13)
        assert f.L[j] == pytest.approx(spectrum[-1] + 0.3, rel=1e-13)
        if len(part) < f.n_features:  # a direction that no row sees
            a[j] = vectors[:, 0]
            assert np.linalg.norm((f.gradient(a) - f.gradient(0 * a))[j]) == pytest.approx(f.mu[j], rel=1e-12)


@pytest.mark.parametrize("ids", [(0,), (2, 5), (6, 1, 3)], ids=repr)
def test_select_copies_no_data(ids):
    f = model(Logistic())
    part = f.select(ids)
    part.value(part.zeros())
    for j, mine, theirs in zip(ids, part.client_rows(), (list(f.client_rows())[j] for j in ids), strict=True):
        for a, b in zip(mine, theirs, strict=True):
            assert np.shares_memory(a, b), j
    stored = [array for group in f.rows.groups for array in (group.X, group.y, group.w)]
    for _, *arrays in part.rows.blocks:
        for used in arrays:
            assert any(np.shares_memory(used, array) for array in stored)
    assert f.select(range(f.n_clients)) is f


@pytest.mark.parametrize("sizes", [(1,), (5, 5, 5), lognormal_sizes(12)], ids=["one", "equal", "lognormal"])
@every_loss
def test_clients_of_any_sizes_are_separate_problems(loss, sizes):
    data = rows(loss, sizes)
    f = model(loss, data)
    theta, v = points(f), points(f, seed=2)
    assert f.sizes == sizes
    assert len(f.rows.groups) == len(set(sizes))
    assert sum(group.X.shape[0] * group.X.shape[1] for group in f.rows.groups) == sum(sizes)  # nothing is padded
    for j, part in enumerate(data.clients):
        alone = linear_model(data.X[part], data.y[part], loss=loss, mu=0.3)
        for name, call in CALLS.items():
            assert call(alone, theta[j : j + 1], v[j : j + 1]).tobytes() == call(f, theta, v)[j : j + 1].tobytes(), name


@every_loss
def test_whole_groups_give_the_same_numbers_as_a_loop_over_clients(loss, monkeypatch):
    loop = model(loss)
    theta, v = points(loop), points(loop, seed=2)
    expected = {name: call(loop, theta, v) for name, call in CALLS.items()}
    monkeypatch.setattr(rows_module, "is_host", lambda x: False)
    batched = model(loss)
    assert [len(clients) for clients, *_ in batched.rows.blocks] == [3, 2, 1, 1]
    for name, call in CALLS.items():
        close(call(batched, theta, v), expected[name])
    for ids in [(0, 2, 6), (0, 1, 2, 5, 6), (4, 3, 1), (6, 2, 0)]:  # whole groups, some of each, and out of order
        part, index = batched.select(ids), list(ids)
        for name, call in CALLS.items():
            close(call(part, theta[index], v[index]), expected[name][index])
        for _, X, *_ in part.rows.blocks:
            assert any(np.shares_memory(X, group.X) for group in batched.rows.groups)


@every_loss
def test_blocks_of_rows_add_up(loss, monkeypatch):
    data = rows(loss)
    whole = model(loss, data)
    theta, v = points(whole), points(whole, seed=2)
    expected = {name: call(whole, theta, v) for name, call in CALLS.items()}
    monkeypatch.setattr(rows_module, "block_rows", lambda columns: 5)
    blocks = model(loss, data)
    assert len(blocks.rows.blocks) == 11  # sizes 3 7 3 1 12 7 3
    for name, call in CALLS.items():
        close(call(blocks, theta, v), expected[name])
    part = blocks.select((4, 1))
    assert part.gradient(theta[[4, 1]]).tobytes() == blocks.gradient(theta)[[4, 1]].tobytes()


@every_loss
def test_weights(loss):
    data = rows(loss)
    m = len(data.y)
    own = np.random.default_rng(4).uniform(size=m)
    own[::5] = 0.0
    f = model(loss, data, weights=own)
    theta = points(f)
    assert_close(f.value(theta), literal(loss, data, theta, weights=own)[0])
    assert_close(f.gradient(theta), literal(loss, data, theta, weights=own)[1])


@every_loss
def test_weights_of_clients_are_those_of_the_mean_alone(loss):
    data = rows(loss)
    plain, by_rows = model(loss, data), model(loss, data, client_weights="rows")
    theta = points(plain)
    assert plain.weights is None
    weights = tuple(map(float, by_rows.sizes))
    assert by_rows.weights == weights
    assert by_rows.select([3, 1]).weights == (weights[3], weights[1])
    np.testing.assert_array_equal(by_rows.gradient(theta), plain.gradient(theta))
    np.testing.assert_array_equal(by_rows.L, plain.L)
    given = np.linspace(0.5, 3.0, plain.n_clients)
    f, values = model(loss, data, client_weights=given), plain.value(theta)
    assert float(f.mean(values)) == pytest.approx(np.average(values, weights=given), rel=1e-14)
    # with "rows", E is the mean over the pool and the ridge
    pooled = linear_model(data.X, data.y, loss=loss, mu=0.3)
    by_rows = model(loss, data, client_weights="rows")
    assert float(by_rows.mean(by_rows.value(theta[0]))) == pytest.approx(pooled.value(theta[0])[0], rel=1e-14)
    assert_close(by_rows.mean(by_rows.gradient(theta[0])), pooled.gradient(theta[0])[0])


def test_weights_of_named_clients():
    X, y = np.eye(3), np.array([1.0, 2.0, 3.0])
    common = {"loss": Squared(), "mu": 0.1, "clients": ["b", "a", "b"]}
    assert linear_model(X, y, client_weights={"b": 2, "a": 5}, **common).weights == (5.0, 2.0)
    with pytest.raises(ValueError, match=r"^client_weights must have the names of all clients, and of no others\.$"):
        linear_model(X, y, client_weights={"b": 2}, **common)


@every_loss
def test_intercept_is_a_regularised_column_of_ones(loss):
    data = rows(loss)
    with_column = Rows(np.column_stack([data.X, np.ones(len(data.y))]), data.y, data.clients)
    f, g = model(loss, data), model(loss, with_column, intercept=False)
    theta, v = points(f), points(f, seed=2)
    assert f.n_features == data.X.shape[1] + 1
    for name, call in CALLS.items():
        assert call(f, theta, v).tobytes() == call(g, theta, v).tobytes(), name
    bias = np.zeros(f.shape)
    bias[..., -1] = 2.0
    free = model(loss, data, mu=0.0)
    assert_close(f.gradient(bias) - free.gradient(bias), np.broadcast_to(0.3 * bias, (f.n_clients, *f.shape)))
    bare = model(loss, data, intercept=False)
    theta = points(bare)
    assert_close(bare.gradient(theta), literal(loss, data, theta, intercept=False)[1])


def test_data_travel_with_their_clients_and_what_was_kept_does_not():
    f = model(LOSSES[0])
    whole = len(pickle.dumps(f))
    for call in CALLS.values():
        call(f, points(f), points(f, seed=2))
    assert len(pickle.dumps(f)) == whole
    assert sum(len(pickle.dumps(f.select((j,)))) for j in range(f.n_clients)) < whole + 1000 * f.n_clients
    assert f.select((6,)).rows.max_rows == f.rows.max_rows == max(f.sizes)


@pytest.mark.parametrize("weight", [0.0, 0.7, "each"])
@pytest.mark.parametrize("sizes", [(9, 9, 6), (2, 3, 2), (5, 4, 1)], ids=["tall", "wide", "both"])
@every_loss
def test_preconditioner_is_the_inverse_that_it_names(loss, sizes, weight):
    data = rows(loss, sizes)
    f = model(loss, data)
    p, k = f.n_features, loss.outputs
    numbers = np.asarray([0.1, 0.9, 3.0]) if weight == "each" else np.full(3, weight)
    apply = f.preconditioner(numbers if weight == "each" else weight)
    columns = []
    for i in range(k * p):
        unit = np.zeros(k * p)
        unit[i] = 1.0
        columns.append(apply(np.broadcast_to(unit.reshape(f.shape), (3, *f.shape))).reshape(3, k * p))
    matrices = np.stack(columns, axis=-1)
    curvature = loss.curvature if math.isfinite(loss.curvature) else 1.0
    for j, part in enumerate(data.clients):
        X = np.column_stack([data.X[part], np.ones(len(part))])
        dense = 0.2 * curvature * X.T @ X / len(part) + (0.3 + numbers[j]) * np.eye(p)
        condition = float(np.linalg.cond(dense))
        assert_close(matrices[j], np.kron(np.eye(k), np.linalg.inv(dense)), units=16 * condition)
        assert_close(matrices[j].T, matrices[j], units=16 * condition)
        assert np.min(np.linalg.eigvalsh(matrices[j])) > 0


def test_preconditioner_without_strong_convexity_is_finite_and_positive():
    data = rows(Logistic(), (9, 2))
    data.X[:, 1] = 0.0  # a feature that no row has
    f = model(Logistic(), data, mu=0.0)
    v = points(f)
    result = f.preconditioner()(v)
    assert np.all(np.isfinite(result))
    assert np.all(np.sum(result * v, axis=-1) > 0)


def test_integer_number_of_clients_cuts_consecutive_rows():
    data = rows(Squared())
    cut = [part.tolist() for part in np.array_split(np.arange(36), 5)]
    f = linear_model(data.X, data.y, loss=Squared(), mu=0.1, clients=5)
    g = linear_model(data.X, data.y, loss=Squared(), mu=0.1, clients=cut)
    assert f.sizes == (8, 7, 7, 7, 7)
    assert f.value(f.zeros()).tobytes() == g.value(g.zeros()).tobytes()


# Bad input: one sentence that names the argument.

GOOD = {"loss": Logistic(), "mu": 0.1}
X = np.asarray([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
Y = np.asarray([1.0, -1.0, 1.0])


def changed(array, value):
    array = array.copy()
    array[0] = value
    return array


BAD = {
    "X has NaN": ({"X": changed(X, np.nan)}, "X must not contain NaN"),
    "X has inf": ({"X": changed(X, np.inf)}, "X must not contain NaN or infinite"),
    "X is a vector": ({"X": X[:, 0]}, r"X must be a matrix .*\(3,\)"),
    "X has no rows": ({"X": X[:0], "y": Y[:0]}, r"X must be a matrix .*\(0, 2\)"),
    "X has no columns": ({"X": X[:, :0]}, r"X must be a matrix .*\(3, 0\)"),
    "X holds complex numbers": ({"X": X.astype(complex)}, "X must hold floating-point numbers, not complex128"),
    "y is short": ({"y": Y[:2]}, r"y must have one label .* 3 rows .*\(2,\)"),
    "y is a column": ({"y": Y[:, None]}, r"y must have one label .*\(3, 1\)"),
    "y is 0, 1 and 2": ({"y": np.asarray([0.0, 1.0, 2.0])}, r"y must hold only -1 and \+1"),
    "y has NaN": ({"y": changed(Y, np.nan)}, "y must hold finite numbers"),
    "y real has inf": ({"y": changed(Y, np.inf), "loss": Squared()}, "y must hold finite numbers"),
    "y binary is 0": ({"y": np.zeros(3, dtype=np.int64)}, r"y must hold only -1 and \+1"),
    "y of another type": ({"y": np.asarray(["1", "2", "3"]), "loss": Squared()}, "y must hold numbers, not words"),
    "y class is float": ({"loss": Multinomial(classes=3)}, "y must hold integers 0 to 2"),
    "y class too large": ({"y": np.asarray([0, 1, 3]), "loss": Multinomial(classes=3)}, "y must hold integers 0 to 2"),
    "y class negative": ({"y": np.asarray([0, 1, -1]), "loss": Multinomial(classes=3)}, "y must hold integers 0 to 2"),
    "mu negative": ({"mu": -0.5}, "mu must be .* not -0.5"),
    "mu NaN": ({"mu": math.nan}, "mu must be .* not nan"),
    "mu infinite": ({"mu": math.inf}, "mu must be .* not inf"),
    "a client without rows": ({"clients": [[0, 1], [], [2]]}, "clients: client 1 has no rows"),
    "no clients": ({"clients": []}, "clients must name at least one"),
    "index too large": ({"clients": [[0], [1, 3]]}, "clients: client 1 .* outside 0 to 2"),
    "index negative": ({"clients": [[0, -1]]}, "clients: client 0 .* outside 0 to 2"),
    "more clients than rows": ({"clients": 4}, "clients must be between 1 and .* 3, not 4"),
    "zero clients": ({"clients": 0}, "clients must be between 1 and .* not 0"),
    "weights unknown": ({"weights": "uniform"}, "weights must be .*, not a str"),
    "client weights unknown": ({"client_weights": "uniform"}, "client_weights must be .* not .*uniform"),
    "client weights short": ({"client_weights": [1, 2], "clients": 3}, "client_weights must be 3 numbers, .* not 2"),
    "client weights zero": ({"client_weights": [1, 0], "clients": 2}, "client_weights must be positive finite"),
    "client weights infinite": (
        {"client_weights": [1, np.inf], "clients": 2},
        "client_weights must be positive finite",
    ),
    "client weights named": ({"client_weights": {0: 1, 1: 2}, "clients": 2}, "client_weights must have the names of"),
    "client weights words": ({"client_weights": ["a"]}, "client_weights must be positive finite .* not \\['a'\\]"),
    "weights short": ({"weights": np.ones(2)}, "weights must be 3 finite nonnegative"),
    "weights negative": ({"weights": np.asarray([1.0, -1.0, 1.0])}, "weights must be 3 finite nonnegative"),
    "weights NaN": ({"weights": np.asarray([1.0, math.nan, 1.0])}, "weights must be 3 finite nonnegative"),
    "weights of another type": ({"weights": np.asarray(["1", "1", "1"])}, "weights must hold numbers, not words"),
    "intercept a number": ({"intercept": 2}, "intercept must be True, False, 'penalised', 'free' or 'none', not 2"),
    "intercept NaN": ({"intercept": math.nan}, "intercept must be True, False, 'penalised', 'free' or 'none', not nan"),
    "weights are integers below 0": ({"weights": -np.ones(3, dtype=np.int64)}, "weights must be 3 finite nonnegative"),
}


def test_the_text_of_a_model_is_short_whatever_its_names():
    names = [f"feature {i}" for i in range(1000)]
    f = linear_model(
        pd.DataFrame(np.ones((4, 1000)), columns=names), ["a", "b"] * 2, loss="logistic", mu=0.1, clients=2
    )
    assert repr(f) == (
        "LinearModel(loss=Logistic(), ridge=0.1, rows=<2 clients, 4 rows of 1001 features>, classes=('a', 'b'), "
        "feature_names=('feature 0', 'feature 1', 'feature 2', ... 1000 in all))"
    )


@pytest.mark.parametrize(("arguments", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_named_in_one_sentence(arguments, message):
    whole = {"X": X, "y": Y, **GOOD, **arguments}
    with pytest.raises(ValueError, match="^" + message) as info:
        linear_model(whole.pop("X"), whole.pop("y"), **whole)
    text = str(info.value)
    assert text.endswith(".")
    assert "\n" not in text


def test_bad_input_is_refused_on_a_strict_library_too():
    with pytest.raises(ValueError, match="X must not contain NaN"):
        linear_model(strict.asarray(changed(X, np.nan)), strict.asarray(Y), loss=Hinge(), mu=0.1)


def test_a_model_of_squares_in_matrices() -> None:
    """Clients of unequal sizes, weights of rows, and local problems with all of their terms."""
    rng = np.random.default_rng(5)
    X, y, w = rng.standard_normal((5, 2)), rng.standard_normal(5), np.arange(1.0, 6.0)
    f = linear_model(X, y, loss=Squared(), mu=0.3, clients={"b": [0, 1, 2], "a": [3, 4]}, weights=w, intercept=False)
    linear, center, weight = rng.standard_normal((2, 2)), rng.standard_normal((2, 2)), np.array([0.5, 3.0])
    problem = LocalProblem(objective=f, linear=linear, center=center, weight=weight)
    for j, own in enumerate(([0, 1, 2], [3, 4])):
        H = X[own].T * w[own] @ X[own]
        right = X[own].T @ (w[own] * y[own]) - linear[j] + weight[j] * center[j]
        exact = np.linalg.solve(H + (0.3 + weight[j]) * np.eye(2), right)
        np.testing.assert_allclose(f.exact_minimiser(problem)[j], exact, rtol=1e-12)
        assert f.moment_traces[j] == pytest.approx(np.trace(H), rel=1e-14)
        assert f.select([j]).client_names == (("b", "a")[j],)


def test_exact_minimisers_are_of_squares_that_are_strongly_convex() -> None:
    for loss, offered in ((Squared(), True), (Logistic(), False)):
        f = linear_model(np.eye(2), np.array([1.0, -1.0]), loss=loss, mu=0.0)
        assert ("exact" in f.offers) == offered
        sentence = r"needs mu \+ weight > 0" if offered else "needs quadratic local problems"
        with pytest.raises(ValueError, match=sentence):
            f.exact_minimiser(LocalProblem(objective=f))


@pytest.mark.parametrize(
    ("loss", "more"),
    [("squared", {"hessian", "exact"}), ("logistic", {"hessian"}), ("poisson", {"hessian"}), ("hinge", set())],
)
def test_hessians_are_of_losses_without_kinks(loss: str, more: set[str]) -> None:
    """Those of Poisson have no bound, and are there all the same."""
    f = linear_model(np.ones((2, 1)), [1, 1], loss=loss, mu=0.1)
    assert f.offers == {"samples", "preconditioner"} | more


def test_no_loss_is_no_loss() -> None:
    with pytest.raises(ValueError, match=r"^loss must be a Loss or its name, such as 'logistic', not a float"):
        linear_model(np.eye(2), np.ones(2), loss=3.0, mu=1.0)  # pyright: ignore[reportArgumentType]


def test_what_rows_count_is_shared_out_within_their_client() -> None:
    """Weights below one, of rows that lie apart; sums are weights of clients, of whom there is one by default."""
    X, y, counts = np.arange(5.0)[:, None], np.arange(5.0), [0.1, 0.2, 0.0, 0.25, 0.05]
    given: dict[str, Any] = {"loss": Squared(), "mu": 0.0, "intercept": False, "sample_weight": counts}
    f = linear_model(X, y, clients=[[3, 0], [4, 1, 2]], client_weights="rows", **given)
    assert f.weights == pytest.approx((0.35, 0.25), rel=1e-14)
    np.testing.assert_allclose(f.value(np.zeros(1)), [0.5 * 2.25 / 0.35, 0.5 * 1.0 / 0.25], rtol=1e-14)
    one = linear_model(X, y, **given)
    np.testing.assert_allclose(one.value(np.zeros(1)), [0.5 * 3.25 / 0.6], rtol=1e-14)
    with pytest.raises(ValueError, match=r"^sample_weight must not be 0 for all rows of client 1\.$"):
        linear_model(X, y, clients=[[0, 1, 3, 4], [2]], **given)
    with pytest.raises(ValueError, match=r"^weights must not be given beside sample_weight"):
        linear_model(X, y, weights=counts, **given)


def test_processes_may_have_other_rows_and_must_have_the_same_columns() -> None:
    X, y = np.arange(20.0).reshape(5, 4), np.arange(5.0)

    def part(p: Any, rows: int, columns: int) -> Any:
        return linear_model(X[:rows, :columns], y[:rows], loss=Squared(), mu=0.1, peers=p)

    assert [f.shape for f in on_each(2, lambda p: part(p, 3 + 2 * p.rank, 4))] == [(5,), (5,)]
    with pytest.raises(ValueError, match="number of columns of X is 3 in process 0 and 4 in process 1"):
        on_each(2, lambda p: part(p, 4, 3 + p.rank))


def test_where_offsets_came_from_is_kept() -> None:
    X, y = np.ones((3, 1)), np.array([1.0, 2.0, 0.0])
    given: list[dict[str, Any]] = [{kind: [1.0, 2.0, 3.0]} for kind in ("offset", "exposure")]
    origins = [linear_model(X, y, loss="poisson", mu=0.1, **options).offset for options in given]
    assert [origin.kind for origin in origins if origin is not None] == ["offset", "exposure"]


@pytest.mark.parametrize("sizes", [(9, 9, 6), (2, 3, 2)], ids=["tall", "wide"])
def test_preconditioner_with_curvatures_is_the_inverse_that_it_names(sizes):
    loss = Multinomial(classes=3)
    data = rows(loss, sizes)
    f = model(loss, data)
    p, v, theta, weight = f.n_features, points(f), 2.0 * points(f, seed=2), np.asarray([0.1, 0.9, 3.0])
    found, alike = f.preconditioner(weight, f.curvatures(theta))(v), f.preconditioner(weight, f.curvatures())(v)
    assert_close(alike, f.preconditioner(weight)(v), units=512.0)
    for j, part in enumerate(data.clients):
        X = np.column_stack([data.X[part], np.ones(len(part))])
        z = theta[j] @ X.T
        s = np.exp(z) / np.sum(np.exp(z), axis=0)
        H = np.mean([np.diag(q) - np.outer(q, q) for q in s.T], axis=0)
        values, vectors = np.linalg.eigh(H)
        C = vectors @ np.diag(np.sqrt(0.1 * np.maximum(values, 1e-4))) @ vectors.T
        matrix = np.kron(C, X.T @ X / len(part)) + (0.3 + weight[j]) * np.eye(3 * p)
        np.testing.assert_allclose(found[j].ravel(), np.linalg.solve(matrix, v[j].ravel()), rtol=1e-9, atol=1e-12)
        alone = f.select([j])
        one = alone.preconditioner(weight[[j]], alone.curvatures(theta[[j]]))(v[[j]])
        assert one.tobytes() == found[[j]].tobytes()
