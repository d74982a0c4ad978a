"""The parts of what proves rates, each by itself: numbers, arrays that know what they are, the ledger, and forms."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest

from dualopt.lab.proofs import _program
from dualopt.lab.proofs._formal import AnyConvex, FullError, World, require_vectors, with_room
from dualopt.lab.proofs._forms import Class, Form, Space, classes_of, points_of
from dualopt.lab.proofs._linear import echelon, null_space, solve_in
from dualopt.lab.proofs._promised import claimed_bound, claimed_factor
from dualopt.lab.proofs._rational import Rational, Rationals, rational, simplest
from dualopt.lab.proofs._setting import Setting
from dualopt.lab.proofs._tracked import SENTENCE, Measured, Vectors
from dualopt.methods import GradientDescent
from dualopt.methods._theorem import Need, Theorem

# Rational numbers


def test_the_simplest_fraction_that_rounds_to_a_number() -> None:
    assert simplest(0.3) == Fraction(3, 10)
    assert simplest(2.0**46 + 0.2) == 2**46 + Fraction(1, 5)  # 13/64 is what it is, with more digits
    assert simplest(3e-16) == Fraction(3, 10**16)
    assert simplest(2.0**-60) == Fraction(1, 2**60)
    assert simplest(3e-17) == Fraction(3e-17)  # no more than 16 digits are tried
    assert simplest(math.pi) == Fraction(math.pi).limit_denominator(10**8)


def test_rational_parameters_are_those_of_another_object() -> None:
    given = GradientDescent(step=0.1)
    found: Any = rational(given)
    assert (type(found), found.step, type(found.step)) == (GradientDescent, Fraction(1, 10), Rational)
    assert type(given.step) is float
    assert rational(GradientDescent) is GradientDescent
    assert [type(x) for x in (rational(3), rational("a"), *rational((0.5, (math.inf, 0.25)))[1])] == [
        int,
        str,
        float,
        Rational,
    ]


def test_arrays_of_rational_numbers() -> None:
    x = np.array([Rational(1, 3), Rational(2)], dtype=object).view(Rationals)
    y = x.copy()
    y += x
    assert (type(y), y.tolist()) == (Rationals, [Fraction(2, 3), 4])
    assert type(0.5 * x - y) is Rationals
    assert (0.5 * x - y).tolist() == [Fraction(-1, 2), -3]
    assert type(x < y) is np.ndarray
    assert np.add.reduce(x) == Fraction(7, 3)
    assert np.isfinite(x).tolist() == [True, True]
    assert np.isnan(x).tolist() == np.isinf(x).tolist() == [False, False]
    assert [bool(Rational(0)), bool(Rational(-1, 3))] == [False, True]
    assert (Rational(4, 9).sqrt(), type(Rational(4, 9).sqrt())) == (Fraction(2, 3), Rational)
    assert [type(f) for f in (abs(Rational(-1)), +Rational(1))] == [Rational] * 2
    assert (Rational(6, 5) % 1.0, 1.0 % Rational(2, 5)) == (Fraction(1, 5), Fraction(1, 5))


# Linear algebra


@pytest.mark.parametrize(
    ("A", "rank"),
    [
        ([[1.0, 1.0], [1.0, 1.0 + 1e-8]], 2),
        ([[1.0, 1.0], [1.0, 1.0 + 1e-10]], 1),
        ([[1e3, 1e3], [1e3, 1e3 + 1e-7]], 1),  # beside the largest entry
        ([[0.1, 0.1], [0.1, 0.1 + 2e-9]], 2),
        ([[-1e3, -1e3], [-1e3, -1e3 - 1e-7]], 1),
        ([[5e-10, 0.0]], 0),  # or beside 1
        ([[0.0, 0.0, 2.0], [0.0, 0.0, 4.0]], 1),
    ],
)
def test_what_is_tiny_is_taken_for_zero(A: list[list[float]], rank: int) -> None:
    given = np.array(A)
    R, pivots = echelon(given)
    assert (len(R), len(pivots)) == (rank, rank)
    assert (given == A).all()
    exact = np.array([[Rational(Fraction(x)) for x in row] for row in A], dtype=object)
    assert len(echelon(exact)[0]) == {0: 1, 2: 2}.get(rank, 1 if A[0][0] == 0.0 else 2)


def test_echelon_form_and_what_solves() -> None:
    """The largest entry of a column is divided by: a small one above it would spoil the digits."""
    A = np.array([[1e-8, 1.0, 2.0], [1.0, 1.0, 3.0], [0.5, 2.0, 1.0]])
    R, pivots = echelon(A)
    assert pivots == [0, 1, 2]
    np.testing.assert_allclose(R, np.eye(3), atol=1e-14)
    B = np.array([[0.0, 3.0, 1.0], [0.0, 6.0, 5.0], [0.0, 3.0, 4.0]])
    R, pivots = echelon(B)
    assert pivots == [1, 2]
    np.testing.assert_allclose(R, [[0, 1, 0], [0, 0, 1]], atol=1e-14)
    np.testing.assert_allclose(null_space(B), [[1], [0], [0]], atol=1e-14)
    X = np.array([[2.0, -1.0, 4.0], [0.5, 3.0, -7.0]])
    np.testing.assert_allclose(solve_in(A[:, :2], A[:, :2] @ X), X, atol=1e-12)
    with pytest.raises(ValueError, match="not in the span"):
        solve_in(A[:, :2], A[:, 2:])


# Arrays that know what they are


def test_what_operations_make_of_vectors() -> None:
    v = np.arange(1.0, 13.0).reshape(3, 4).view(Vectors)
    mask = np.array([[True], [False], [True]])
    vectors = {
        "sum": v + v,
        "difference": v - 2.0 * v,
        "negative": -v,
        "multiple": np.array([[1.0], [2.0], [3.0]]) * v,
        "quotient": v / 2.0,
        "nothing added": v + np.zeros(4),
        "row": v[1],
        "rows": v[[0, 2]],
        "over clients": v.sum(axis=0),
        "over clients, counted from the end": np.add.reduce(v, axis=-2),
        "mean": v.mean(axis=0),
        "together": np.concatenate([v, v]),
        "stacked": np.stack([v[0], v[1]]),
        "chosen": np.where(mask, v, -v),
        "spread": np.broadcast_to(v[0], (2, 4)),
    }
    assert {name: type(x) for name, x in vectors.items()} == dict.fromkeys(vectors, Vectors)
    measured = {
        "products": v * v,
        "reciprocals": 1.0 / v,
        "quotients": v / v,
        "pushed": v + 1.0,
        "pushed in one coordinate": v - np.array([0.0, 0.0, 1.0, 0.0]),
        "roots": np.sqrt(v),
        "coordinate": v[0, :1],
        "coordinates": v[:, 0],
        "part": v[..., :2],
        "over coordinates": v.sum(axis=1),
        "all": np.add.reduce(v, axis=(0, 1)),
        "largest": np.maximum.reduce(v, axis=0),
        "inner products": v.dot(v[0]),
        "norm": np.linalg.norm(v),
        "with another": np.add.outer(v[0], v[1]),
        "stacked numbers": np.stack([v.sum(axis=1), v.sum(axis=1)]),
        "sum of numbers": v.sum(axis=1) + v.sum(axis=1),
        "number": v.sum()[()],
    }
    assert {name: type(x) for name, x in measured.items()} == dict.fromkeys(measured, Measured)
    w = v.copy()
    w += v
    assert type(w) is Vectors
    assert (np.asarray(w) == 2.0 * np.asarray(v)).all()
    both = np.broadcast_arrays(v[0], v[1])
    assert [type(x) for x in both] == [Vectors, Vectors]
    assert type(np.zeros_like(v)) is np.ndarray
    assert np.isfinite(v).all()
    assert not np.isnan(v).any()
    assert np.isfinite(v).shape == (3, 4)
    assert np.asarray(v.dot(v[1])).tolist() == [70.0, 174.0, 278.0]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda v, m: m[:, None] * v,
        lambda v, m: v + m[0],
        lambda v, m: v > 0.0,
        lambda v, m: m > 0.0,
        lambda v, m: np.maximum(v, 0.0),
        lambda v, m: float(m[0]),
        lambda v, m: bool(m[0]),
        lambda v, m: m.tolist(),
        lambda v, m: m[0].item(),
        lambda v, m: range(3)[m[0]],
    ],
)
def test_what_decides_by_what_was_measured_is_refused(wrong) -> None:
    v = np.arange(1.0, 13.0).reshape(3, 4).view(Vectors)
    with pytest.raises(ValueError, match="algorithm must be linear algebra") as error:
        wrong(v, v.sum(axis=1))
    assert str(error.value) == SENTENCE


def test_vectors_that_have_become_something_else_are_refused() -> None:
    v = np.ones(4).view(Vectors)
    require_vectors([v, np.zeros(4), np.asarray(0.0 * v)])
    for wrong in (np.ones(4), v.view(Measured), np.array([0.0, 1.0])):
        with pytest.raises(ValueError, match="algorithm must be linear algebra"):
            require_vectors([v, wrong])


# What theorems promise


def promising(*theorems: Theorem) -> Any:
    """Return a method of which this is promised."""
    return type("Promising", (GradientDescent,), {"theorems": theorems})(step=0.1)


def stating(bound) -> Theorem:
    """Return a theorem with a bound in the minimiser, the gradients there, and the number of rounds."""

    def of_both(method, known, theta, n) -> float:
        g = known.objective.gradient(theta)
        assert np.abs(np.array(known.weights) @ g).max() < 1e-12
        return bound(float(theta @ theta), np.sum(g * g, axis=1), n)

    return Theorem(source="", rate="", bound=of_both)


def test_the_least_bound_that_applies_is_claimed() -> None:
    five, six = stating(lambda x, g, n: (5 * x + 7 * g.sum()) / n), stating(lambda x, g, n: 6 * x + 3 * g.sum())
    never = Need("a step of 1", lambda method, known: method.step == 1.0)
    left_out = [
        stating(lambda x, g, n: 0.1 * (x + g[0])),
        stating(lambda x, g, n: 0.1 * (x + g @ (1.0, 1.0, 1.1))),
        stating(lambda x, g, n: 0.1 * (math.sqrt(x) + math.sqrt(g.sum())) ** 2),
        stating(lambda x, g, n: 0.1 * max(x, g.sum())),
        replace(stating(lambda x, g, n: 0.1 * x), needs=(never,)),
        replace(stating(lambda x, g, n: 0.1 * x), about=lambda method, known: False),
        Theorem(source="", rate="", factor=lambda method, known: 0.1),
    ]
    what: Any = {"mu": (1, 2, 3), "L": 10, "clients": 3, "weights": (1, 2, 5)}

    def claimed(*theorems: Theorem, n: int = 4, start: tuple[float, float]) -> float | None:
        return claimed_bound(Setting.of(promising(*theorems), **what), n, start)

    for start in ((2.0, 0.5), (0.5, 2.0)):
        bounds = [max(5 / 4 / start[0], 7 / 4 / start[1]), max(6 / start[0], 3 / start[1])]
        assert claimed(five, start=start) == pytest.approx(bounds[0], rel=1e-9)
        assert claimed(six, start=start) == pytest.approx(bounds[1], rel=1e-9)
        assert claimed(*left_out, six, five, start=start) == pytest.approx(min(bounds), rel=1e-9)
        assert claimed(*left_out, start=start) is None
    assert claimed(five, start=(0.0, 1.0)) == claimed(five, start=(1.0, 0.0)) == math.inf
    assert claimed(stating(lambda x, g, n: 7 * g.sum()), start=(0.0, 0.5)) == pytest.approx(14.0)
    assert claimed(stating(lambda x, g, n: 3 * x), start=(0.5, 0.0)) == pytest.approx(6.0)
    what = {"mu": 1, "L": 10, "clients": 1}  # whose gradient at its minimiser is zero
    assert claimed(six, start=(0.5, 1.0)) == pytest.approx(12.0)


def test_the_least_factor_of_a_potential_is_claimed() -> None:
    """A norm that falls by 0.9 in three rounds: its square falls by 0.9^(2/3) in each."""

    def potential(*_: Any) -> float:
        return 1.0

    slow = Theorem(source="", rate="", factor=lambda m, k: 0.9, power=1, rounds=3, potential=potential)
    fast = Theorem(source="", rate="", factor=lambda m, k: 0.8, potential=potential)
    bound = Theorem(source="", rate="", factor=lambda m, k: 0.1)
    for theorems, factor in (
        ((slow,), 0.9 ** (2 / 3)),
        ((bound, slow, fast), 0.8),
        ((fast, slow), 0.8),
        ((bound,), None),
        ((), None),
    ):
        found = claimed_factor(Setting.of(promising(*theorems), 1, 10, 2))
        assert found == (None if factor is None else pytest.approx(factor, rel=1e-15))


# Programs


class Problem:
    """A program that a solver solves to some accuracies alone."""

    def __init__(self, *answers: str) -> None:
        self.answers, self.asked, self.status = list(answers), [], ""

    def solve(self, *, solver: str, tol_gap_abs: float, tol_gap_rel: float, tol_feas: float) -> None:
        assert tol_gap_abs == tol_gap_rel == tol_feas
        assert solver == "CLARABEL"
        self.asked.append(tol_feas)
        self.status = self.answers.pop(0)
        if self.status == "error":
            raise _program.program().SolverError


@pytest.mark.parametrize(
    ("answers", "status", "asked"),
    [
        (["optimal"], "optimal", [1e-9]),
        (["infeasible"], "infeasible", [1e-9]),
        (["error", "optimal_inaccurate", "optimal"], "optimal", [1e-9, 1e-8, 1e-7]),
        (["optimal_inaccurate", "error", "error", "error"], "optimal_inaccurate", [1e-9, 1e-8, 1e-7, 1e-6]),
        (["error"] * 4, "failed", [1e-9, 1e-8, 1e-7, 1e-6]),
    ],
)
def test_the_tightest_tolerance_that_is_met_counts(answers: list[str], status: str, asked: list[float]) -> None:
    pytest.importorskip("cvxpy")
    problem: Any = Problem(*answers)
    assert _program.solved(problem) == status
    assert problem.asked == asked
    assert not problem.answers


# The ledger


def world(dimension: int = 24, **given: Any) -> World:
    return Setting.of("gradient-descent: step=0.1", (1.0, 2.0, 2.0), 10.0, 3, **given).world(dimension)


def test_the_same_question_has_the_same_answer() -> None:
    f = world()
    x, y = f.ledger.vector(), f.ledger.vector()
    first = f.gradient(x)
    again = f.gradient(x + 1e-14 * y)
    other = f.gradient(x + 1e-6 * y)
    assert (first == again).all()
    assert not (first == other).all(axis=1).any()
    assert [(a.client, a.number) for a in f.ledger.answers] == [(j, k) for k in (1, 2) for j in range(3)]
    assert f.ledger.n_kinds == 2
    assert f.ledger.used == 2 + 6
    assert np.linalg.matrix_rank(np.stack([x, y, *first, *other])) == 8
    assert all(f.ledger.latest[j].number == 2 for j in range(3))
    f.gradient(x)
    assert all(f.ledger.latest[j].number == 1 for j in range(3))


def test_local_solutions_satisfy_their_equations() -> None:
    """Where a point is known to have the gradient that is asked for, it is the answer."""
    f = world()
    ledger, b = f.ledger, f.ledger.vector()
    x = ledger.minimiser(1, b, 0.5)
    assert (ledger.at(1, x).gradient == -b - 0.5 * x).all()
    assert ledger.minimiser(1, b, 0.5) is x
    assert not (ledger.minimiser(1, b, 0.25) == x).all()
    assert not (ledger.minimiser(2, b, 0.5) == x).all()
    y = ledger.vector()
    g = ledger.gradient(1, y)
    assert (ledger.minimiser(1, -g - 3.0 * y, 3.0) == y).all()
    assert ledger.latest[1].x is y
    assert {a.number for a in ledger.known(1)} == {1, 2, 3}
    assert {a.number for a in ledger.known(2)} == {1}


def test_inexact_solutions_say_how_inexact_they_are() -> None:
    f = world(inexact=False)
    ledger = f.ledger
    b, start = ledger.vector(), ledger.vector()
    x = ledger.nearly(1, b, 0.5, start, 0.1)
    (accuracy,) = ledger.accuracies
    g, h = ledger.at(1, x).gradient, ledger.at(1, start).gradient
    assert (accuracy.client, accuracy.factor) == (1, 0.1)
    assert (accuracy.residual == g + b + 0.5 * x).all()
    assert (accuracy.first == h + b + 0.5 * start).all()
    assert np.linalg.matrix_rank(np.stack([b, start, x, g, h])) == 5
    assert ledger.nearly(1, b, 0.5, start, 0.1) is x
    assert ledger.latest[1].x is x
    assert not (ledger.nearly(1, b, 0.5, start, 0.2) == x).all()
    assert (ledger.nearly(1, -h - 2.0 * start, 2.0, start, 0.1) == start).all()  # solved already
    assert len(ledger.accuracies) == 2


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("weights", [None, (1.0, 2.0, 5.0)])
@pytest.mark.parametrize("regulariser", [None, 0.5])
def test_gradients_at_the_minimiser_cancel(exact: bool, weights: Any, regulariser: float | None) -> None:
    method = "feddr: eta=0.3"
    setting = Setting.of(method, 1.0, 10.0, 3, None, weights, regulariser)
    f = (setting.in_rationals() if exact else setting).world(24)
    star = f.ledger.vector()
    gradients = f.set_minimiser(star)
    total = sum((w * g for w, g in zip(weights or (1.0,) * 3, gradients, strict=True)), f.zeros())
    if regulariser is not None:
        total = total + sum(weights or (1.0,) * 3) * f.ledger.at(3, star).gradient
    assert np.abs(total.astype(float)).max() < 1e-15
    assert all((f.ledger.gradient(j, star) == gradients[j]).all() for j in range(3))
    assert not f.ledger.answers
    rank = np.linalg.matrix_rank(np.stack([star, *gradients]).astype(float))
    assert rank == (3 if regulariser is None else 4)
    assert all(isinstance(x, Rational) for x in gradients.ravel().tolist()) == exact


def test_points_before_the_first_round_are_the_first_answers() -> None:
    f = world()
    x, g = f.ledger.family(), f.ledger.family()
    f.note(x, g)
    assert [(a.client, a.number) for a in f.ledger.answers] == [(0, 1), (1, 1), (2, 1)]
    assert (f.gradient(x) == g).all()
    assert f.ledger.latest[1].number == 1
    f.gradient(f.ledger.vector())
    assert [a.number for a in f.ledger.answers] == [1] * 3 + [2] * 3
    some = f.select([2, 0])
    assert (some.ids, some.n_clients, some.mu.tolist()) == ((2, 0), 2, [2.0, 1.0])
    assert (some.gradient(f.zeros() + x[2])[0] == g[2]).all()


def test_a_regulariser_is_asked_as_one_more_client() -> None:
    f = Setting.of("feddr: eta=0.3", 1.0, 10.0, 3, regulariser=0.5).world(24)
    theta = f.ledger.vector()
    x = f.regulariser.prox(theta, 0.25)
    np.testing.assert_allclose(f.ledger.at(3, x).gradient, (theta - x) / 0.25)
    assert (f.regulariser.prox(theta, 0.25) == x).all()
    assert f.regulariser.prox(theta, 0) is theta
    assert f.regulariser == AnyConvex(0.5)
    assert [(a.client, a.number) for a in f.ledger.answers] == [(3, 1)]


def test_as_many_vectors_as_are_needed_have_room() -> None:
    tried = []

    def work(dimension: int) -> int:
        tried.append(dimension)
        f = world(dimension)
        for _ in range(100):
            f.ledger.vector()
        return dimension

    assert with_room(work) == 256
    assert tried == [24, 64, 256]
    with pytest.raises(FullError, match="their answers are more than 64 vectors"):
        with_room(work, 64)
    f = world(5)
    f.ledger.family()
    f.ledger.vector()
    f.ledger.vector()
    with pytest.raises(FullError):
        f.ledger.vector()


# Forms


WEIGHTS = (2.0, 3.0, 3.0, 3.0, 5.0)
CLASSES: dict[str, Any] = {"mu": (0.5, 1.0, 1.0, 1.0, 2.0), "L": (math.inf, 10.0, 10.0, 10.0, 20.0)}


def federation(*, literal: bool = False, regulariser: float | None = None) -> tuple[World, Space, np.ndarray]:
    """Return clients of three classes that were asked twice, a space, and values of all vectors in some federation.

    The functions have the curvatures mu, 2 mu, ..., the same for all clients of a class.
    """
    setting = Setting.of("feddr: eta=0.3", **CLASSES, clients=5, weights=WEIGHTS, regulariser=regulariser)
    f = setting.world(64)
    star, ledger = f.ledger.vector(), f.ledger
    f.set_minimiser(star)
    u = ledger.vector()
    f.gradient(star + u)
    f.gradient(f.ledger.family()[0] - 2.0 * u)
    f.ledger.minimiser(4, u, 0.25)
    if regulariser is not None:
        f.regulariser.prox(u, 0.5)
    classes = classes_of(f, literal=literal)
    others = setting.others
    rng = np.random.default_rng(1)
    values = rng.normal(size=(ledger.used, 2))
    last = ledger.families[0][-1]  # that the others make
    values[last] = 0.0
    return f, Space(ledger, classes, others), np.concatenate([values, np.zeros((ledger.dimension - len(values), 2))])


def test_classes_have_equal_constants_and_weights() -> None:
    f = federation()[0]
    assert [own.clients for own in classes_of(f)] == [(0,), (1, 2, 3), (4,)]
    assert [own.clients for own in classes_of(f, literal=True)] == [(0,), (1,), (2,), (3,), (4,)]
    assert classes_of(f)[1] == Class((1, 2, 3), 1.0, 10.0, 3.0)
    assert [len(own) for own in classes_of(f)] == [1, 3, 1]
    unlike = World(f.ledger, (1.0,) * 5, (10.0,) * 5, (1.0, 1.0, 2.0, 1.0, 1.0))
    assert [own.clients for own in classes_of(unlike)] == [(0, 1, 3, 4), (2,)]


@pytest.mark.parametrize("regulariser", [None, 0.5])
@pytest.mark.parametrize("literal", [False, True])
def test_products_are_means_over_exchanges(literal: bool, regulariser: float | None) -> None:
    """Of vectors in the plane whose sum of gradients at the minimiser is zero, all clients of a class exchanged."""
    f, space, values = federation(literal=literal, regulariser=regulariser)
    ledger = f.ledger
    ids = ledger.families[0]
    values[ids[-1]] = -np.array(WEIGHTS[:-1]) @ values[ids[:-1]] / WEIGHTS[-1]
    if regulariser is not None:
        i = next(int(np.flatnonzero(a.gradient)[0]) for a in ledger.known(5) if a.number == 0)
        values[ids[-1]] -= sum(WEIGHTS) / WEIGHTS[-1] * values[i]
    grams = [
        sum(np.outer(row, row) for X in of for row in X) for of in zip(*map(space.values_of, values.T), strict=True)
    ]
    rng = np.random.default_rng(2)
    a, b = (np.where(values.any(axis=1), rng.normal(size=ledger.dimension), 0.0) for _ in range(2))
    means = []
    for p in permutations((1, 2, 3)) if not literal else [(1, 2, 3)]:
        moved = values.copy()
        for own in ledger.families:
            moved[own[[1, 2, 3]]] = values[own[list(p)]]
        means.append((a @ moved) @ (b @ moved))
    form = space.product(a, b)
    scales = [1.0, *(1.0 / max(1, len(c) - 1) for c in space.classes)]  # squares of n deviations have n - 1 means
    found = sum(s * np.sum(G * B) for s, G, B in zip(scales, grams, form.blocks, strict=True) if B.size)
    assert found == pytest.approx(np.mean(means), rel=1e-10)
    assert not form.values.any()
    assert all((B == B.T).all() for B in form.blocks)
    assert (space.square(a).blocks[0] == space.product(a, a).blocks[0]).all()


def test_inequalities_are_those_of_the_class() -> None:
    """Written out: of quadratic functions of these curvatures they are what they are."""
    f, space, _ = federation()
    ledger, star = f.ledger, np.eye(64)[f.ledger.shared[0]]
    points = points_of(ledger, space.functions, star)
    assert [[a.number for a in own] for own in points] == [[0, 1, 2], [0, 1, 2], [0, 1, 2, 3]]
    forms = space.inequalities(points)
    assert len(forms) == 6 + 6 + 12
    expected = []
    for c, own in enumerate(points):
        mu, L = space.functions[c].mu, space.functions[c].L
        for p, q in permutations(own, 2):
            step, bent = p.x - q.x, p.gradient - q.gradient - mu * (p.x - q.x)
            form = Form(space.zero.blocks, space.value(c, p.number) - space.value(c, q.number))
            form = form - space.product(q.gradient, step) - (mu / 2) * space.square(step)
            expected.append(form - (0.0 if math.isinf(L) else 1 / (2 * (L - mu))) * space.square(bent))
    for one, other in zip(forms, expected, strict=True):
        np.testing.assert_allclose(one.values, other.values)
        for B, C in zip(one.blocks, other.blocks, strict=True):
            np.testing.assert_allclose(B, C, atol=1e-14)
    kinds = {(c, k): space.value(c, k) for c, k in product(range(3), range(4))}
    assert all(kinds[c, 0].sum() == 0 for c in range(3))
    assert np.stack([v for (_, k), v in kinds.items() if k]).sum(axis=0).max() == 1
    assert np.linalg.matrix_rank(np.stack(list(kinds.values()))) == 9


def test_accuracies_of_one_client_of_each_class_are_inequalities() -> None:
    f, _, _ = federation()
    ledger, b = f.ledger, f.ledger.vector()
    start = ledger.vector()
    for j in (1, 2, 3):
        ledger.nearly(j, b, 0.5, start, 0.1)
    space = Space(ledger, classes_of(f))
    points = points_of(ledger, space.functions, np.eye(64)[ledger.shared[0]])
    count = sum(len(own) * (len(own) - 1) for own in points)
    *_, last = forms = space.inequalities(points)
    assert len(forms) == count + 1
    a = ledger.accuracies[0]
    right = (0.1**2) * space.square(a.first) - space.square(a.residual)
    for B, C in zip(last.blocks, right.blocks, strict=True):
        np.testing.assert_allclose(B, C, atol=1e-14)
    assert not last.values.any()
