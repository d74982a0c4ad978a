"""Hosts that contradict themselves are named, and honest ones never are."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

import dualopt.losses
import dualopt.methods
from dualopt.engine import Blocks, ContradictionError, RemoteClients
from dualopt.engine import _protocol as protocol
from dualopt.engine._contradictions import Contradictions
from dualopt.engine._host_data import evaluated
from dualopt.methods import DualFL, FedDyn
from dualopt.objectives import NonconvexPenalty, Quadratic, linear_model
from dualopt.objectives.local_problem import Evaluation
from dualopt.regularisers import Zero
from dualopt.runs.recording import run
from dualopt.solvers import LocalSolution
from dualopt.spec.discover import discover
from tests.engine.problems import CHANCE, lopsided_quadratic, problems
from tests.engine.test_lies import told
from tests.engine.test_two_phases import BLOCKS
from tests.engine.wired import elsewhere
from tests.problems import digits
from tests.runs.test_certificates import converted_rows

LOSSES = discover(dualopt.losses)


def said(f: Any, theta: Any, points: Any = None) -> Any:
    """What a host of these clients states at a model, with the dual points of local models."""
    solution = None
    if points is not None:
        value, gradient = f.value_and_gradient(points)
        solution = LocalSolution(points, Evaluation(value, gradient, value, gradient), None, None, (), (), ())
    return evaluated(f, np.asarray(theta, dtype=float), solution, None, partial_sums=False)


# --- who is honest --------------------------------------------------------------------------------------------------


@st.composite
def objectives(draw: Any) -> Any:
    """Linear models of all losses on data of all kinds, quadratics, and some that are not convex."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind, d, sizes = draw(st.sampled_from([*sorted(LOSSES), "quadratic"])), draw(st.integers(1, 6)), (1, 7, 30)
    if kind == "quadratic":
        factors = rng.standard_normal((3, d, d)) * 10.0 ** rng.uniform(-5, 2, (3, 1, d))
        A = factors @ factors.swapaxes(1, 2) if draw(st.booleans()) else factors @ factors.swapaxes(1, 2) + factors
        return Quadratic(
            A=0.5 * (A + A.swapaxes(1, 2)),
            b=10.0 ** draw(st.integers(-3, 6)) * rng.standard_normal((3, d)),
            c=rng.normal(size=3),
        )
    X = rng.standard_normal((sum(sizes), d)) * 10.0 ** rng.uniform(-4, 4, d)
    X += draw(st.sampled_from([0.0, 1e3, 1e9]))
    if draw(st.booleans()):
        X *= rng.random(X.shape) < 0.4  # with rows and columns of zeros among them
    loss = LOSSES[kind]
    real = loss.labels == "real"
    y = 10.0 ** draw(st.integers(-2, 8)) * rng.standard_normal(len(X)) if real else np.arange(len(X)) % 2
    y = np.abs(y) + 1e-3 if hasattr(loss, "label_domain") else y
    X, mu = X.astype(draw(st.sampled_from([np.float64, np.float32]))), draw(st.sampled_from([0.0, 1e-9, 1e-2, 1e3]))
    if draw(st.booleans()):
        X = csr_matrix(X)
    clients = [part.tolist() for part in np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])]
    f = linear_model(X, y, loss=kind, mu=mu, clients=clients, intercept=draw(st.booleans()))
    return NonconvexPenalty(objective=f, lam=0.3) if draw(st.integers(0, 7)) == 0 else f


@given(objectives(), st.integers(0, 2**32 - 1), st.lists(st.integers(-9, 9), min_size=2, max_size=6))
@settings(max_examples=150)
def test_who_is_honest_never_contradicts_itself(f: Any, seed: int, sizes: list[int]) -> None:
    """At models and local models of sizes from 1e-9 to 1e9, and near one another."""
    rng = np.random.default_rng(seed)
    seen = Contradictions(f.proven_mu, f.L)
    theta = np.zeros(f.shape)
    for n, size in enumerate(sizes):
        theta = 10.0**size * rng.standard_normal(f.shape) + (theta if rng.random() < 0.5 else 0.0)
        points = theta + 10.0 ** rng.integers(-9, 9) * rng.standard_normal((f.n_clients, *f.shape))
        points = points.astype(f.zeros().dtype) if n % 2 else np.broadcast_to(theta, points.shape)
        assert seen.by(n, theta, said(f, theta, points if n % 3 else None)) is None


METHODS = [
    (kind, problem, chance)
    for kind in discover(dualopt.methods).values()
    for problem, f in problems().items()
    if f.regulariser == Zero() or "regulariser" in kind.supports
    for chance, who in CHANCE.items()
    if who.needs() <= kind.supports
]


@given(st.sampled_from(METHODS), st.integers(2, 4))
@settings(max_examples=25)
def test_no_honest_run_is_ended(case: Any, number: int) -> None:
    kind, problem, chance = case
    f = problems()[problem]
    found: Any = None
    try:
        run(kind(), f, rounds=15, certify_every=1, participation=CHANCE[chance], engine=Blocks(number=number))
    except ValueError as error:  # what the method refuses
        found = error
    assert not isinstance(found, ContradictionError), found


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_no_honest_run_on_real_data_is_ended(dtype: str) -> None:
    f = converted_rows(digits(rows=600), getattr(np, dtype))
    trace = run(DualFL(), f, rounds=12, certify_every=1, engine=Blocks(number=3))
    assert len(trace) == 13
    assert trace.parameters["contradictions_looked_for"] == "yes"


# --- who is not -----------------------------------------------------------------------------------------------------


def halfway(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """From the sixth answer on."""
    answered = count()
    return lambda answer: answer if next(answered) < 5 else change(answer)


def of_another(answer: protocol.Evaluated) -> protocol.Evaluated:
    return answer._replace(value=0.8 * answer.value, gradient=0.8 * answer.gradient)


def less(x: protocol.Evaluated, amount: Callable[[Any], Any]) -> protocol.Evaluated:
    return x if x.conjugate is None else x._replace(conjugate=x.conjugate - amount(np.abs(x.conjugate)))


LIES: dict[str, tuple[type, Callable[[], Callable[[Any], Any]], str]] = {
    "mu": (protocol.ClientInfo, lambda: lambda x: x._replace(mu=1.5 * x.mu + 1.0, L=2.0 * x.L + 1.0), ".*"),
    "conjugate shifted": (protocol.Evaluated, lambda: lambda x: less(x, np.ones_like), "conjugate"),
    "conjugate scaled": (protocol.Evaluated, lambda: lambda x: less(x, lambda size: size), "conjugate"),
    "sign": (protocol.Evaluated, lambda: lambda x: x._replace(gradient=-x.gradient), "values"),
    "another function": (protocol.Evaluated, lambda: halfway(of_another), ".*"),
    "another value": (protocol.Evaluated, lambda: halfway(lambda x: x._replace(value=x.value + 0.1)), "values"),
}


@pytest.mark.parametrize("problem", ["smooth", "nonsmooth", "quadratic"])
@pytest.mark.parametrize("lie", LIES)
def test_who_contradicts_himself_is_named(lie: str, problem: str) -> None:
    kind, change, reason = LIES[lie]
    f, blocks = problems()[problem], BLOCKS if problem == "quadratic" else [(0,), (1, 2, 3), (4,)]
    options: dict[str, Any] = {"rounds": 20, "certify_every": 1, "check_assumptions": False}
    run(DualFL(), elsewhere(f, blocks), **options)
    with pytest.raises(ContradictionError, match=f"^host 1 contradicts itself on client [1234]: its ({reason})"):
        run(DualFL(), elsewhere(f, blocks, told(kind, change())), **options)


def test_a_method_that_does_without_clients_does_not_do_without_the_truth() -> None:
    f, lie = problems()["quadratic"], told(protocol.Evaluated, lambda x: x._replace(gradient=-x.gradient), 0)
    with pytest.raises(ContradictionError, match=r"^host 0 contradicts itself on client .: its values"):
        run(FedDyn(alpha=1.0), elsewhere(f, BLOCKS, lie), rounds=9, certify_every=2)


def test_sums_tell_nothing_of_single_clients() -> None:
    f, lie = problems()["quadratic"], told(protocol.PartialSums, lambda x: x._replace(gradient=-x.gradient), 0)
    trace = run(FedDyn(alpha=1.0), elsewhere(f, BLOCKS, lie, partial_sums=True), rounds=9, certify_every=2)
    assert trace.parameters["contradictions_looked_for"] == "no: a sum does not tell what each client says"


def test_rows_are_not_answered_by_sums() -> None:
    f, theta = problems()["quadratic"], np.zeros(4)
    sums = evaluated(f, theta, None, None, partial_sums=True)
    clients = elsewhere(f, BLOCKS, told(protocol.Evaluated, lambda x: sums))
    with pytest.raises(ValueError, match="host 1 did not answer in round 0: it returns sums in place of rows"):
        clients.gradient(theta)


# --- how little it takes --------------------------------------------------------------------------------------------


def pair(f: Any, at: Any, change: Callable[[Any], Any], mu: Any = None, L: Any = None, points: Any = None) -> Any:
    """What is found of two evaluations, the second of them changed."""
    seen = Contradictions(f.proven_mu if mu is None else mu, f.L if L is None else L)
    assert seen.by(0, at[0], said(f, at[0])) is None
    return seen.by(1, at[1], change(said(f, at[1], points)))


def same(x: Any) -> Any:
    return x


def test_constants_are_told_from_slightly_better_ones() -> None:
    """Along an eigenvector of the least or the greatest eigenvalue the inequalities of the class are equalities."""
    f = lopsided_quadratic()
    eigenvalues, vectors = np.linalg.eigh(f.A)
    least, greatest = eigenvalues[2, 0], eigenvalues[2, -1]
    for number, name, factor, j in ((0, "mu", 1 + 1e-9, 2), (-1, "L", 1 - 2e-3, 2)):
        at = np.zeros(4), vectors[2, :, number]
        constants = {"mu": f.proven_mu.copy(), "L": f.L.copy()}
        constants[name][2] = factor * (least if name == "mu" else greatest)
        assert pair(f, at, same) is None
        assert pair(f, at, same, **constants)[0] == j
        constants[name][2] = (2 - factor) * (least if name == "mu" else greatest)
        assert pair(f, at, same, **constants) is None


@pytest.mark.parametrize("problem", ["smooth", "nonsmooth", "quadratic"])
def test_small_lies_are_found_where_the_inequalities_are_equalities(problem: str) -> None:
    """Fenchel and Young at the point of the gradient; two evaluations at one point."""
    f = problems()[problem]
    rng, j = np.random.default_rng(1), 1
    at = rng.standard_normal((2, *f.shape))
    unit, points = np.eye(f.n_clients)[j], np.broadcast_to(at[1], (f.n_clients, *f.shape))

    def lower(x: Any) -> Any:
        return x._replace(conjugate=x.conjugate - 1e-9 * np.abs(x.conjugate) * unit)

    def turned(x: Any) -> Any:
        return x._replace(dual=x.dual + 1e-3 * unit[:, None] * x.dual)

    for change, expected in ((same, None), (lower, j), (turned, j)):
        found = pair(f, at, change, points=points)
        assert (found and found[0]) == expected
    old = pair(f, at, lower, points=np.broadcast_to(at[0], points.shape))
    assert (old and old[0]) == j
    for sign in (1.0, -1.0):
        other = pair(f, (at[0], at[0]), lambda x, e=sign * 1e-9: x._replace(value=x.value + e * unit))
        assert (other and other[0]) == j


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("name", ["value", "gradient"])
def test_errors_that_are_stated_are_granted_and_no_others(name: str, which: int) -> None:
    """Of half a square, whose ``mu`` and ``L`` are 1, two evaluations leave no room."""
    f, at = Quadratic(A=np.ones((1, 1, 1)), b=np.zeros((1, 1))), [np.zeros(1), np.ones(1)]
    for error in (1e-3, -1e-3):

        def found(share: float, error: float = error) -> Any:
            answers, seen = [said(f, x) for x in at], Contradictions(f.proven_mu, f.L)
            changed, stated = getattr(answers[which], name) + error, np.array([share * abs(error)])
            answers[which] = answers[which]._replace(**{name: changed, f"{name}_error": stated})
            assert seen.by(0, at[0], answers[0]) is None
            return seen.by(1, at[1], answers[1])

        assert found(1.0 + 1e-6) is None
        assert found(0.4) is not None


def test_bounds_of_rounding_make_up_for_what_they_hide() -> None:
    """A certificate is at least as much larger as the lie is."""
    f = problems()["smooth"]

    def hidden(x: Any) -> Any:
        return x._replace(value=x.value - 0.1, value_error=x.value_error + 0.1)

    options: dict[str, Any] = {"rounds": 9, "certify_every": 9}
    true = run(DualFL(), elsewhere(f, [(0, 1), (2, 3), (4,)]), **options)
    false = run(DualFL(), elsewhere(f, [(0, 1), (2, 3), (4,)], told(protocol.Evaluated, hidden)), **options)
    assert false.last["energy"] < true.last["energy"] - 0.01
    assert false.last["energy"] + false.last["certificate"] > true.last["energy"]


def test_a_conjugate_is_held_to_later_values() -> None:
    """A bound that is too high near the local models of its round, and right at the model."""
    f = lopsided_quadratic()
    far = np.full(4, 5.0)
    first, found = said(f, np.zeros(4), np.stack([far] * 6)), Contradictions(f.proven_mu, f.L)
    less = first._replace(conjugate=first.conjugate - 0.01 * (first.value + first.conjugate))
    assert found.by(1, np.zeros(4), less) is None
    allowed = "its conjugate after round 1 is less than its value after round 2 allows"
    assert found.by(2, far, said(f, far)) == (0, allowed)


def test_what_is_not_known_is_not_compared() -> None:
    f, at = problems()["quadratic"], np.ones((2, 4))
    unknown = np.full(6, -math.inf)
    assert pair(f, at, of_another) is not None
    assert pair(f, at, of_another, mu=unknown) is None


def test_constants_and_few_evaluations_are_all_that_is_kept() -> None:
    f, clients = problems()["quadratic"], elsewhere(problems()["quadratic"], BLOCKS)
    for n in range(9):
        clients.gradient(np.full(4, float(n)))
        seen = clients.server._contradictions[0]
        assert [x.at[0, 0] for x in seen._evaluations] == sorted({0.0, max(n - 1.0, 0.0), float(n)})
    session = clients.new_session()
    assert session._contradictions[0] is seen
    assert isinstance(clients, RemoteClients)
    assert f.n_clients == 6
