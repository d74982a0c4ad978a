"""The base class of objectives: defaults, what is offered is there, wrappers offer what survives."""

from __future__ import annotations

import copy
import pickle
from fractions import Fraction

import numpy as np
import pytest
from model_instances import model, rows
from scipy.sparse import csr_array

from dualopt.losses import Logistic, Squared
from dualopt.objectives import (
    ClientRows,
    Composite,
    NonconvexPenalty,
    Objective,
    Quadratic,
    SharpnessAware,
    ZeroChain,
    _products,
    _row_inputs,
    mlp,
)
from dualopt.objectives._rounding import gamma
from dualopt.objectives.objective import OPTIONAL_MEMBERS
from dualopt.regularisers import L1, Zero

OBJECTIVES = {
    "squared": model(Squared()),
    "logistic": model(Logistic()),
    "network": mlp(np.eye(4), np.array([0, 1, 0, 1]), layers=(3,), clients=2),
    "quadratic": Quadratic(A=np.stack([np.eye(2), 3 * np.eye(2)]), b=np.ones((2, 2))),
    "chain": ZeroChain(split=np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])),
}
OFFERED = {
    "squared": {"samples", "hessian", "preconditioner", "exact"},
    "logistic": {"samples", "hessian", "preconditioner"},
    "network": {"samples"},
    "quadratic": {"hessian", "preconditioner", "exact"},
    "chain": {"hessian"},
}
every = pytest.mark.parametrize("name", OBJECTIVES)


def members(offers) -> set[str]:
    return {member for offer in offers for member in OPTIONAL_MEMBERS[offer]}


@every
def test_what_is_offered_is_there_also_through_wrappers(name):
    f = OBJECTIVES[name]
    wrapped = {
        f: OFFERED[name],
        Composite(objective=f, regulariser=L1(weight=0.1)): OFFERED[name],
        NonconvexPenalty(objective=f): OFFERED[name] & {"hessian", "samples"},
        SharpnessAware(objective=f): OFFERED[name] & {"samples"},
        SharpnessAware(objective=NonconvexPenalty(objective=f)): OFFERED[name] & {"samples"},
    }
    for g, offered in wrapped.items():
        for own in (g, g.select([0]), copy.deepcopy(g), pickle.loads(pickle.dumps(g))):
            assert isinstance(own, Objective)
            assert own.offers == offered
            assert all(hasattr(own, member) for member in members(offered))
    lacking = members(OPTIONAL_MEMBERS) - members(OFFERED[name]) - {"exact_minimiser", "hessian_operator"}
    for g in list(wrapped)[2:]:
        assert not hasattr(g, "preconditioner")
        assert not hasattr(g, "exact_minimiser")
        assert not any(hasattr(g, member) for member in lacking - {"sample_gradient"})


@every
def test_defaults_are_those_of_an_objective_without_extras(name):
    f = OBJECTIVES[name]
    assert f.regulariser == Zero()
    assert f.gradient_cost == 1.0
    assert SharpnessAware(objective=f).gradient_cost == 2.0
    assert SharpnessAware(objective=SharpnessAware(objective=f)).gradient_cost == 4.0
    assert Composite(objective=SharpnessAware(objective=f), regulariser=L1(weight=1.0)).gradient_cost == 2.0
    start = NonconvexPenalty(objective=f).initial(seed=3)
    np.testing.assert_array_equal(start, f.initial(seed=3))
    assert bool(np.any(start)) == (name == "network")


def test_a_regulariser_must_be_given():
    with pytest.raises(TypeError, match="regulariser"):
        Composite(objective=OBJECTIVES["quadratic"])  # pyright: ignore[reportCallIssue]
    once = Composite(objective=OBJECTIVES["quadratic"], regulariser="l1=0.1")
    assert once.regulariser == L1(weight=0.1)
    with pytest.raises(ValueError, match=r"^objective has a regulariser already\.$"):
        Composite(objective=once, regulariser="l1=0.1")


def test_an_incomplete_objective_is_refused_with_what_it_lacks():
    class Incomplete(Objective):
        def value(self, theta):
            return theta

    with pytest.raises(TypeError, match=r"abstract.*gradient.*zeros"):
        Incomplete()  # pyright: ignore[reportAbstractUsage]


def test_rows_travel_alone_and_are_shared_by_parts():
    data = rows(Logistic())
    whole = ClientRows.build(data.X, data.y, loss=Logistic(), clients=data.clients)
    part = whole.select([5, 2])
    assert (part.sizes, part.max_rows) == ((whole.sizes[5], whole.sizes[2]), max(whole.sizes))
    assert all(mine is theirs for mine, theirs in zip(part.groups, whole.groups, strict=True))
    alone = pickle.loads(pickle.dumps(part))
    assert sum(group.n_clients for group in alone.groups) == 2
    assert alone.max_rows == whole.max_rows
    for mine, theirs in zip(alone.by_client(), part.by_client(), strict=True):
        for a, b in zip(mine, theirs, strict=True):
            np.testing.assert_array_equal(a, b)
    assert whole.select(range(7)) is whole


@pytest.mark.parametrize("spoiled", [0, 4])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_features_whose_squares_cannot_be_summed_are_refused(dtype, spoiled, monkeypatch):
    """In whatever piece they are: here of two rows."""
    monkeypatch.setattr(_row_inputs, "PIECE", 6)
    largest = np.sqrt(float(np.finfo(dtype).max) / 3)
    for factor in (1.0 - 1e-6, 1.0 + 1e-6):
        X = np.ones((5, 3), dtype)
        X[spoiled, 1] = -largest * factor
        if factor < 1.0:
            assert np.isfinite(np.sum(np.full(3, X[spoiled, 1]) ** 2))
            assert ClientRows.build(X, np.ones(5, dtype), loss=Squared(), clients=2).n_clients == 2
            continue
        sentence = rf"^X must have entries up to {largest:.2g}, whose squares can be summed, not [^ ]*: scale X\.$"
        with pytest.raises(ValueError, match=sentence.replace("+", r"\+")):
            ClientRows.build(X, np.ones(5, dtype), loss=Squared(), clients=2)


@pytest.mark.parametrize("intercept", [False, True])
def test_rows_are_copies_but_those_of_a_mapped_file(intercept, tmp_path):
    X = np.arange(12.0).reshape(6, 2)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    for given in (X, mapped):
        built = ClientRows.build(given, np.ones(6), loss=Squared(), clients=2, intercept=intercept)
        shared = [np.shares_memory(group.X, given) for group in built.groups]
        assert shared == [given is mapped and not intercept]
        np.testing.assert_array_equal(built.groups[0].X[..., :2], X.reshape(2, 3, 2))
    turned = ClientRows.build(mapped, np.ones(6), loss=Squared(), clients=[[3, 4, 5], [0, 1, 2]])
    np.testing.assert_array_equal(turned.groups[0].X, X[[3, 4, 5, 0, 1, 2]].reshape(2, 3, 2))


def test_products_with_dense_and_sparse_rows():
    X, rng = np.diag([1.0, 2.0, 3.0])[:, :2] + [[0.0, 5.0]], np.random.default_rng(0)
    for given in (X, csr_array(X)):
        for lead in ((), (4,)):
            theta, u = rng.standard_normal((*lead, 2)), rng.standard_normal((*lead, 3))
            np.testing.assert_allclose(_products.predictors(given, theta), theta @ X.T, rtol=1e-14)
            np.testing.assert_allclose(_products.pulled_back(u, given), u @ X, rtol=1e-14)


def test_rows_add_what_a_function_finds_in_blocks():
    data = rows(Squared())
    whole = ClientRows.build(data.X, data.y, loss=Squared(), clients=data.clients)
    count, total = whole.sum(
        lambda block, points: (np.sum(np.ones_like(block.y), axis=1), points[:, 0] * np.sum(block.w * block.y, axis=1)),
        np.arange(7.0)[:, None],
    )
    assert count.tolist() == list(whole.sizes)
    np.testing.assert_allclose(total, [j * np.mean(data.y[part]) for j, part in enumerate(data.clients)], atol=1e-15)


EPS, LEAST = 2.0**-52, 2.0**-1022


class Told(Objective):
    """Numbers that are given: constants, and what they are wrong by where that is not the default."""

    mu, L = property(lambda self: self.told), property(lambda self: np.abs(self.told))
    n_clients, shape = property(lambda self: len(self.told)), property(lambda self: (3, 2))

    def __init__(self, mu, wrong_by=None, weights=None):
        self.told, self.wrong_by, self.weights = np.array(mu), wrong_by, weights

    @property
    def mu_rounding(self):
        return super().mu_rounding if self.wrong_by is None else np.array(self.wrong_by)

    def zeros(self):
        return np.zeros(self.shape)

    def value(self, theta):
        return self.told

    def gradient(self, theta):
        return theta

    def select(self, ids):
        return self


def test_constants_are_right_to_four_units_in_the_last_place():
    assert Told([1.0, -2.0, 0.0]).mu_rounding.tolist() == [4 * EPS, 8 * EPS, 0.0]


def test_proven_constants_are_rounded_down():
    assert Told([3.0, -3.0, 0.0, 1.3], [1.0, 1.0, 1.0, 0.0]).proven_mu.tolist() == [
        2.0 - 2.0 * EPS,
        -4.0 - 4.0 * EPS,
        -1.0 - EPS,
        1.3,
    ]
    rng = np.random.default_rng(0)
    mu = rng.standard_normal(1000)
    for size in (EPS, 0.1, 10.0):
        wrong_by = size * rng.uniform(0.5, 3.0, 1000)
        for a, b, found in zip(mu.tolist(), wrong_by.tolist(), Told(mu, wrong_by).proven_mu.tolist(), strict=True):
            exact = Fraction(a) - Fraction(b)
            assert 0 < exact - Fraction(found) <= Fraction(2 * EPS) * abs(exact)


@pytest.mark.parametrize(
    ("mu", "weights", "room"),
    [
        ([2.0, -1.0, 0.0], (1.0, 2.0, 5.0), gamma(10, np.zeros(1)) * 0.5 + 3 * LEAST),
        ([0.0, 0.0, 0.0], (1.0, 2.0, 5.0), 3 * LEAST),
        ([2.0, -1.0, -1.0], None, gamma(3, np.zeros(1)) * 4.0 / 3.0),
        ([3.0, -3.0], None, gamma(2, np.zeros(1)) * 3.0),
        ([0.0, 0.0, 0.0], None, 0.0),
    ],
)
def test_the_mean_of_the_constants_is_a_lower_bound(mu, weights, room):
    """The means are 0: what is left is the room for rounding of the sum, and of products with weights."""
    f = Told(mu, np.zeros(len(mu)), weights)
    assert f.mean_mu == pytest.approx(-room, rel=1e-12, abs=0.0)
    assert Told([0.3], np.zeros(1), weights and weights[:1]).mean_mu == 0.3


def test_what_is_computed_is_right_to_sixteen_units_in_the_last_place():
    f, unit = Told([1.0, 1.0]), gamma(16, np.zeros(1))
    gradient = np.array([[[0.0, 3.0], [0.0, 0.0], [-4.0, 0.0]], [[0.0] * 2] * 3])
    found = f.rounding(f.zeros(), np.array([-2.0, 0.0]), gradient)
    np.testing.assert_allclose(found.value, [2.0 * unit + LEAST, LEAST], rtol=1e-14)
    np.testing.assert_allclose(found.gradient, [5.0 * unit, 6 * LEAST], rtol=1e-14)
