"""Parts of the clients: small clients in batches, large ones alone; what is copied, what is kept, and what it costs."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from model_instances import LOSSES, Rows, assert_close, model, points, rows

from dualopt.arrays.xp import to_numpy
from dualopt.losses import Logistic, Multinomial, Squared
from dualopt.objectives import LocalProblem, _dense, _row_inputs, linear_model
from dualopt.objectives import rows as rows_module
from dualopt.objectives._client_cache import ClientCache
from dualopt.objectives._index import Index
from tests.benchmarks.count import counted, counting

every_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)
SIZES = (3,) * 40 + (1,) * 9 + (8,) * 5 + (3,) * 20  # with 16 rows in a part: 5 of three, 16 of one, 2 of eight
CALLS = {
    "value": lambda f, theta, v: f.value(theta),
    "value_and_gradient[0]": lambda f, theta, v: f.value_and_gradient(theta)[0],
    "value_and_gradient[1]": lambda f, theta, v: f.value_and_gradient(theta)[1],
    "hessian_operator": lambda f, theta, v: f.hessian_operator(theta)(v),
    "preconditioner": lambda f, theta, v: f.preconditioner()(v),
    "preconditioner, a weight per client": lambda f, theta, v: f.preconditioner(0.5 + f.value(theta) ** 2)(v),
    "L": lambda f, theta, v: f.L,
    "rounding": lambda f, theta, v: f.rounding(theta, f.value(theta), v)[0],
}


@pytest.fixture
def short_parts(monkeypatch):
    """Parts of at most 16 rows."""
    monkeypatch.setattr(rows_module, "block_rows", lambda columns: 16)


def shuffled(data: Rows, seed: int = 0) -> Rows:
    order = np.random.default_rng(seed).permutation(len(data.clients))
    return data._replace(clients=[data.clients[j] for j in order])


@pytest.mark.parametrize("mixed", [False, True], ids=["in turn", "mixed"])
@every_loss
def test_a_client_has_the_same_bits_whoever_is_in_the_call(loss, mixed, short_parts):
    data = rows(loss, SIZES)
    data = shuffled(data) if mixed else data
    f, rng = model(loss, data), np.random.default_rng(3)
    n = f.n_clients
    theta, v = points(f), points(f, seed=2)
    whole = {name: call(f, theta, v) for name, call in CALLS.items()}
    assert max(len(clients) for clients, *_ in f.rows.blocks) > 1
    alone = {
        name: np.concatenate([call(f.select((j,)), theta[j : j + 1], v[j : j + 1]) for j in range(n)])
        for name, call in CALLS.items()
    }
    for name in CALLS:
        assert alone[name].tobytes() == whole[name].tobytes(), name
    g = model(loss, data)  # nothing is kept of it yet
    for count in (2, 7, 30, n):
        ids = rng.permutation(n)[:count]
        part, inner = g.select(tuple(ids)), rng.permutation(count)[: (count + 1) // 2]
        for name, call in CALLS.items():
            assert call(part, theta[ids], v[ids]).tobytes() == whole[name][ids].tobytes(), name
            nested = call(part.select(tuple(inner)), theta[ids[inner]], v[ids[inner]])
            assert nested.tobytes() == whole[name][ids[inner]].tobytes(), name


def test_a_client_may_be_selected_twice(short_parts):
    f = model(Logistic(), rows(Logistic(), (3, 3, 3, 7)))
    ids = [1, 3, 1, 3, 3]
    theta, v = points(f)[ids], points(f, seed=2)[ids]
    for name, call in CALLS.items():
        found = call(f.select(ids), theta, v)
        for i, j in enumerate(ids):
            assert found[i].tobytes() == call(f.select([j]), theta[i : i + 1], v[i : i + 1])[0].tobytes(), name


def test_small_clients_are_copied_once_and_large_ones_never(short_parts, monkeypatch):
    f = model(Logistic(), rows(Logistic(), (3,) * 12 + (9,) * 4))
    stored = [group.X for group in f.rows.groups]

    def views(part):
        return [any(np.shares_memory(block.X, X) for X in stored) for block in part.rows.blocks]

    assert views(f) == [True] * 7  # 5, 5 and 2 clients of three rows, 4 of nine
    assert [len(block.clients) for block in f.rows.blocks] == [5, 5, 2, 1, 1, 1, 1]
    assert views(f.select((3, 4, 5))) == [True]  # neighbours
    assert views(f.select((5, 3, 4))) == [True]  # in another order
    apart = f.select((0, 2, 4, 12, 15))
    assert views(apart) == [False, True, True]
    assert apart.rows.blocks[0].X is apart.rows.blocks[0].X
    monkeypatch.setattr(_dense, "LARGE", 14)  # numbers of a client of three rows: 15
    assert views(f.select((0, 2, 4))) == [True] * 3
    monkeypatch.setattr(_dense, "LARGEST_PART", 71)  # 35 for a client, with its point
    assert [len(block.clients) for block in model(Logistic(), rows(Logistic(), (3,) * 5)).rows.blocks] == [2, 2, 1]


def test_on_a_device_some_clients_of_a_group_are_one_block(monkeypatch):
    reference = model(Multinomial(classes=3), rows(Multinomial(classes=3), (3,) * 6 + (2,) * 2))
    theta, v = points(reference), points(reference, seed=2)
    monkeypatch.setattr(rows_module, "is_host", lambda x: False)
    f = model(Multinomial(classes=3), rows(Multinomial(classes=3), (3,) * 6 + (2,) * 2))
    ids = [5, 7, 0, 3]
    part = f.select(ids)
    assert [len(block.clients) for block in part.rows.blocks] == [3, 1]
    for call in CALLS.values():
        assert_close(call(part, theta[ids], v[ids]), call(reference, theta, v)[ids], units=256.0)


@every_loss
def test_preconditioners_do_not_change_each_other(loss, short_parts):
    """Those of three weights at once, with what is kept of the latest two: none is overwritten."""
    f, weights = model(loss, rows(loss, SIZES)), (0.0, 0.7, 2.0)
    v = points(f)
    first = [f.preconditioner(weight) for weight in weights]
    expected = [apply(v) for apply in first]
    fresh = [model(loss, rows(loss, SIZES)).preconditioner(weight)(v) for weight in weights]
    ids = list(range(0, f.n_clients, 3))
    for _ in range(2):
        for weight, one, other in zip(weights, expected, fresh, strict=True):
            assert one.tobytes() == other.tobytes() == f.preconditioner(weight)(v).tobytes()
            assert f.select(ids).preconditioner(weight)(v[ids]).tobytes() == one[ids].tobytes()
            mixed = f.preconditioner(np.where(np.arange(f.n_clients) % 2 == 0, weight, 0.1))(v)
            assert mixed[::2].tobytes() == one[::2].tobytes()
    assert [apply(v).tobytes() for apply in first] == [x.tobytes() for x in expected]


@pytest.mark.parametrize("sizes", [(9, 9, 9), (2, 2, 2)], ids=["tall", "wide"])
def test_ridges_are_raised_client_by_client(sizes):
    """Without strong convexity; one client has a zero feature matrix, whose ridge becomes 1, and one large features."""
    data = rows(Squared(), sizes)
    X = data.X.copy()
    X[data.clients[1]] = 0.0
    X[data.clients[2]] *= 1e3
    f = linear_model(X, data.y, loss=Squared(), mu=0.0, clients=data.clients, intercept=False)
    v = points(f)
    for weight in (0.0, 1.0):
        found = f.preconditioner(weight)(v)
        for j, part in enumerate(data.clients):
            gram = X[part].T @ X[part] / len(part)
            largest = np.linalg.eigvalsh(gram)[-1]
            ridge = max(weight / 0.2, 1e-6 * largest or 1.0)
            expected = np.linalg.solve(gram + ridge * np.eye(len(gram)), v[j]) / 0.2
            np.testing.assert_allclose(found[j], expected, rtol=1e-8)  # condition 1e6


@pytest.mark.parametrize("shape", [(70, 66), (66, 66), (66, 70)])
def test_large_gram_matrices_are_kept_by_client(shape):
    """They are not computed again from rows that are zeros by then."""
    rng = np.random.default_rng(0)
    X, w, v = rng.standard_normal((3, *shape)), rng.uniform(0.5, 2.0, (3, shape[0])), rng.standard_normal((1, shape[1]))
    group = _dense.Group(X=X, y=w, w=w)
    every, last = (group.parts(np.arange(len(own)), np.array(own), None)[0] for own in ([0, 1, 2], [2]))
    A = X * np.sqrt(w)[:, :, None]
    np.testing.assert_allclose(group.largest_eigenvalues(every), np.linalg.norm(A, 2, axis=(1, 2)) ** 2, rtol=1e-12)
    if shape[0] >= shape[1]:  # else products need the rows
        last = last._replace(block=last.block._replace(X=0.0 * last.block.X))
    found = group.ridge_inverse_product(last, np.array([0.3]))(v[None])[0]
    np.testing.assert_allclose(found @ (A[2].T @ A[2] + 0.3 * np.eye(shape[1])), v, rtol=0, atol=1e-9)


@pytest.mark.parametrize("share", [0.9, 0.999, 1.005, 1.1])
def test_ridges_beside_the_least_one(share):
    """One feature, so that the trace is the eigenvalue: which ridges are raised is exact."""
    f = linear_model(np.array([[3.0], [1.0]]), np.ones(2), loss=Squared(), mu=0.0, intercept=False)
    weight = 0.2 * share * 1e-6 * 5.0  # the Gram matrix is 5
    expected = 1.0 / (0.2 * (5.0 + max(share, 1.0) * 5e-6))
    assert f.preconditioner(weight)(np.ones((1, 1)))[0, 0] == pytest.approx(expected, rel=1e-14)
    raised = 1.0 / (0.2 * (5.0 + 5e-6))
    assert (f.preconditioner(weight)(np.ones((1, 1)))[0, 0] == pytest.approx(raised, rel=1e-10)) == (share <= 1.0001)


def test_exact_solutions_of_many_clients(short_parts):
    f = model(Squared(), rows(Squared(), SIZES))
    linear, center = points(f, seed=4), points(f, seed=5)
    weight = np.linspace(0.1, 2.0, f.n_clients)
    problem = LocalProblem(objective=f, linear=linear, weight=weight, center=center)
    found = f.exact_minimiser(problem)
    assert np.max(np.abs(problem.gradient(found))) <= 1e-12
    ids = list(range(1, f.n_clients, 4))
    part = problem.select(ids)
    assert f.select(ids).exact_minimiser(part).tobytes() == found[ids].tobytes()


@pytest.mark.parametrize("kind", ["one point", "a point for each"])
def test_a_gradient_makes_no_second_array_of_its_size(kind):
    """Of 2000 clients with 50 numbers each; parts are far smaller."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(4000, 99)), rng.integers(0, 10, 4000)
    f = linear_model(X, y, loss=Multinomial(classes=10), mu=0.1, clients=2000)
    theta = np.zeros(f.shape) if kind == "one point" else np.zeros((2000, *f.shape))
    f.value_and_gradient(theta)  # blocks are made at first use
    tracemalloc.start()
    gradient = f.value_and_gradient(theta)[1]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert gradient.nbytes == 16e6
    assert peak <= 1.4 * gradient.nbytes


def test_a_selection_takes_memory_for_its_own_clients_alone():
    """One percent: their rows are copied, and inverses, norms and eigenvalues are theirs."""
    rng = np.random.default_rng(0)
    f = linear_model(
        rng.normal(size=(100_000, 9)), rng.choice([-1.0, 1.0], 100_000), loss=Logistic(), mu=0.1, clients=5000
    )
    data = f.rows.groups[0].X.nbytes
    tracemalloc.start()
    part = f.select(tuple(range(0, 5000, 100)))
    theta = np.zeros((50, *f.shape))
    part.value_and_gradient(theta)
    part.preconditioner()(theta)
    part.hessian_operator(theta)(theta)
    part.rounding(theta, part.value(theta), theta)
    assert part.L.shape == part.mu.shape == (50,)
    assert part.sizes == (20,) * 50
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 0.1 * data


def test_what_is_kept_is_bounded():
    kept = ClientCache(10, limit=12)
    asked = []

    def get(ids, key=0.0):
        def compute():
            asked.append(list(ids))
            return np.array([[j + key] * 3 for j in ids]), np.array(ids) * 1.0

        matrices, numbers = kept.get(Index(ids), compute, key)
        assert matrices.tolist() == [[j + key] * 3 for j in ids]
        assert numbers.tolist() == list(ids)

    get([2, 3])  # 8 numbers
    get([3])
    get([3, 2])
    assert asked == [[2, 3]]
    get([7])  # 12
    get([3, 7, 2])
    assert asked == [[2, 3], [7]]
    get([8])  # 16: those of 2 and 3 are forgotten
    get([8, 7])
    assert asked == [[2, 3], [7], [8]]
    get([2])
    assert asked == [[2, 3], [7], [8], [2]]
    assert kept.fits(Index([2, 5]), 0.0)
    assert not kept.fits(Index([2, 5]), 1.0)
    assert kept.fits(Index([5]), 1.0)
    get([0, 1, 4, 5, 6])  # more than the limit: kept all the same
    get([5, 1])
    assert asked[-1] == [0, 1, 4, 5, 6]
    get([5], 2.0)
    assert asked[-1] == [5]
    get([5], 2.0)
    assert len(asked) == 6


def test_a_stack_without_clients_is_forgotten():
    kept = ClientCache(4, limit=5)
    for ids in ([0], [1], [0, 1, 2], [3]):  # the third takes the place of the first two, which count no longer
        kept.get(Index(ids), lambda ids=ids: (np.array(ids) * 1.0,))
    kept.get(Index([2, 0]), lambda: pytest.fail("three numbers and one are kept"))


def test_what_is_kept_of_some_clients_of_a_stack_goes_alone():
    kept, asked = ClientCache(6), []

    def get(ids: list[int], key: Any = 0.0) -> list[float]:
        return kept.get(Index(ids), lambda: asked.append(ids) or (np.array(ids) * 1.0,), key)[0].tolist()

    get([2, 3, 4])
    get([3, 5], 1.0)  # takes the place of the second of three
    assert get([4, 2]) == [4.0, 2.0]
    assert get([5, 3], 1.0) == [5.0, 3.0]
    assert get([2, 5, 4, 3], np.array([0.0, 1.0, 0.0, 1.0])) == [2.0, 5.0, 4.0, 3.0]
    assert asked == [[2, 3, 4], [3, 5]]
    get([2, 4], np.array([0.0, 1.0]))  # one of two is known for this key
    assert asked[2:] == [[2, 4]]


def test_the_latest_stack_alone_may_exceed_the_limit():
    kept = ClientCache(3, limit=1)
    kept.get(Index([0]), lambda: (np.zeros((1, 2)),))
    kept.get(Index([1]), lambda: (np.zeros((1, 2)),))
    kept.get(Index([1]), lambda: pytest.fail("the latest is kept"))
    asked = []
    kept.get(Index([0]), lambda: asked.append(0) or (np.zeros((1, 2)),))
    assert asked == [0]


@pytest.mark.parametrize("n", [64, 65])
@pytest.mark.parametrize("length", [1, 8, 9])
def test_many_stacks_of_short_rows_become_one(length, n):
    kept = ClientCache(1000)
    for j in range(n):  # from the last client on, with a key of its own each
        ids = [999 - 2 * j, 999 - 2 * j - 1]
        kept.get(Index(ids), lambda ids=ids: (np.outer(ids, np.ones(length)),), np.array(ids) * 0.5)
    ids = np.random.default_rng(0).permutation(np.arange(1000 - 2 * n, 1000))
    (found,) = kept.get(Index(ids), lambda: pytest.fail("all are kept"), ids * 0.5)
    assert np.array_equal(found, np.outer(ids, np.ones(length)))
    assert len(kept._stacks) == (1 if length <= 8 and n == 65 else n)


def test_positions(backend):
    x = np.arange(12.0).reshape(6, 2)
    like = backend(x)
    for ids in ([2], [1, 2, 3], [3, 1], [0, 1, 2, 3, 4, 5], [2, 2], [1, 3, 2, 4], [4, 3, 2, 1]):
        positions = Index(ids)
        assert list(positions) == ids
        assert [positions[i] for i in range(len(positions))] == ids
        assert (positions.run is not None) == (ids == list(range(ids[0], ids[0] + len(ids))))
        assert positions.are_all(6) == (len(ids) == 6)
        taken = positions.take(like)
        assert type(taken) is type(like)
        assert to_numpy(taken).tolist() == x[ids].tolist()
        assert list(positions[1:]) == ids[1:] if len(ids) > 1 else True
        made = like + 0.0
        positions.put(made, backend(-x[: len(ids)]))
        expected = x.copy()
        expected[ids] = -x[: len(ids)]
        assert to_numpy(made).tolist() == expected.tolist()
    assert Index(range(6)).take(like) is like


def test_federations_are_built_as_the_rows_are_named(monkeypatch):
    """Groups in the order of their first clients, the constant column in pieces, indices of several kinds."""
    rng = np.random.default_rng(0)
    X, y, w = rng.normal(size=(11, 2)), rng.normal(size=11), rng.uniform(size=11)
    clients = [[4, 2], [7], [0, 1, 9], [3, 3], [10]]
    monkeypatch.setattr(_row_inputs, "PIECE", 2)
    kinds = {
        "lists": clients,
        "tuples": tuple(map(tuple, clients)),
        "arrays": [np.array(c, dtype=np.int32) for c in clients],
    }
    for named in kinds.values():
        f = linear_model(X, y, loss=Squared(), mu=0.1, clients=named, weights=w)
        assert [group.n_rows for group in f.rows.groups] == [2, 1, 3]
        assert f.sizes == (2, 1, 3, 2, 1)
        for part, (features, labels, weights) in zip(clients, f.client_rows(), strict=True):
            assert np.array_equal(features, np.column_stack([X[part], np.ones(len(part))]))
            assert np.array_equal(labels, y[part])
            assert np.array_equal(weights, w[part])
    f = linear_model(X, y, loss=Squared(), mu=0.1, clients=clients)
    assert [float(weights[0]) for _, _, weights in f.client_rows()] == [0.5, 1.0, 1 / 3, 0.5, 1.0]
    cut = linear_model(X, y, loss=Squared(), mu=0.1, clients=4)
    assert cut.sizes == (3, 3, 3, 2)
    assert np.array_equal(np.concatenate([labels for _, labels, _ in cut.client_rows()]), y)


def test_positions_on_a_device_are_moved_there_once():
    positions, x = Index([3, 1]), counted(np.arange(4.0))
    with counting() as counts:
        assert [to_numpy(positions.take(x)).tolist() for _ in range(3)] == [[3.0, 1.0]] * 3
    assert counts().uploads == 1
    with counting() as counts:
        Index([1, 2]).take(x)
    assert counts().uploads == counts().launches == 0


@pytest.mark.parametrize("sizes", [(5,) * 6, (5, 3, 5, 3, 5)], ids=["equal", "unequal"])
def test_gradients_and_preconditioners_on_a_device_transfer_nothing_twice(sizes):
    """A gradient of equal clients takes 22 kernels: 2 products, 13 of the loss, 2 of the weights, 5 of the ridge."""
    loss = Multinomial(classes=3)
    data = rows(loss, sizes)
    f = model(loss, Rows(counted(data.X), counted(data.y), data.clients))
    reference = model(loss, data)
    theta, v = points(reference), points(reference, seed=2)
    at, direction = counted(theta), counted(v)
    for calls in ("first", "second"):
        with counting() as counts:
            gradient = f.value_and_gradient(at)[1]
        if calls == "second":
            assert (counts().synchronisations, counts().uploads) == (0, 0)
            assert counts().launches == 22 or len(set(sizes)) > 1
        with counting() as counts:
            product = f.preconditioner(0.5)(direction)
        if calls == "second":
            assert (counts().synchronisations, counts().uploads) == (0, 0)
        assert_close(to_numpy(gradient), reference.gradient(theta))
        assert_close(to_numpy(product), reference.preconditioner(0.5)(v))
