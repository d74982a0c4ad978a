"""The constants of the FedPD papers, derived again from the inequalities of the proofs.

``a = L eta``; of a round, ``u`` is the mean squared step of the clients' models, ``s2`` that of the mean copy,
``eps`` the largest squared residual of a local solution; ``e`` in a proof is a residual.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import islice, product
from typing import Any

import numpy as np
import pytest
import sympy as sp

from dualopt.lab.chance import Expect
from dualopt.methods import FedPD
from dualopt.objectives import Quadratic
from tests.theory._symbolic import agree, assert_same, compared, expects, positive, squares, stand_in
from theory._claims import Form
from theory.fedpd import _runs, descent, fedavg, first_version, oracles, skipping

L, eta, T = positive("L eta T")
u, s2, eps, H, fall, S, h, z, y = positive("u s2 eps H fall S h z y")
a = L * eta
POINTS = [(1, Fraction(1, 10)), (4, Fraction(1, 20)), (Fraction(1, 100), 15)]


def at(expression: Any, L_: Any, eta_: Any) -> Any:
    """Put numbers for L and eta."""
    return expression.subs({L: sp.Rational(L_), eta: sp.Rational(eta_)})


# Lemmas on one client. Young: -e d <= L/2 d^2 + e^2/(2L).

YOUNG = eps / (2 * L)
MODEL = (1 / eta - L) / 2 - L / 2  # the local problem is (1/eta - L)-strongly convex; L/2 pays for the residual
ONE, NONE = np.ones((1, 1)), np.zeros((1, 1))
AT_POINT = {"L": 2.0, "eta": 0.1, "a": 0.2}


def number(expression: Any) -> Any:
    """Put the numbers of :data:`AT_POINT`, and 1 for the rest."""
    return sp.sympify(expression).subs({L: 2, eta: sp.Rational(1, 10)}).subs({eps: 1, u: 1, s2: 1})


def clients(**moved: Any) -> Any:
    """Return the states of one client, at zero but for what is named."""
    return stand_in(**{"theta": NONE, "x0": NONE, "dual": NONE, **moved})


@pytest.fixture
def flat(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Lagrangians vanish, so that the claims show their other terms."""
    monkeypatch.setattr(descent, "lagrangians", lambda case, theta, x0, dual: np.zeros(1))


@pytest.mark.parametrize(
    ("moved", "copies", "errors", "left", "right"),
    [
        ({"theta": ONE}, NONE, 0.0, MODEL, 0),
        ({}, ONE, 0.0, 1 / (2 * eta), 0),
        ({"dual": ONE}, NONE, 0.0, 0, eta),
        ({}, NONE, 1.0, 0, YOUNG),
    ],
    ids=["model", "copy", "dual", "residual"],
)
def test_lemma_1(flat: None, monkeypatch: Any, moved: Any, copies: Any, errors: float, left: Any, right: Any) -> None:
    before, after = (stand_in(clients=of) for of in (clients(), clients(**moved)))
    step = stand_in(n=0, before=before, after=after, copies=copies, errors=np.array([errors]))
    monkeypatch.setattr(descent, "path", lambda case: [step])
    (q,) = compared(descent.lemma_1, **AT_POINT)
    for found, derived in ((q.lhs, left), (q.rhs, right)):
        if derived == 0:
            assert found == 0
        else:
            assert_same(found, number(derived))


def test_lemma_4(flat: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """f(x0) <= f(x) + grad f(x)(x0 - x) + L/2 |x0 - x|^2 with dual e - grad f(x), and Young's inequality for e."""
    distance = 1 / (2 * eta) - L / 2 - L / 2
    step = stand_in(n=0, after=stand_in(clients=clients(theta=ONE)), errors=np.array([1.0]))
    monkeypatch.setattr(descent, "path", lambda case: [step])
    (q,) = compared(descent.lemma_4, **AT_POINT, objective=stand_in(value=lambda x0: np.zeros(1)))
    assert_same(q.lhs, number(distance))
    assert_same(q.rhs, number(YOUNG))
    (printed,) = descent.lemma_4(
        stand_in(**AT_POINT, objective=stand_in(value=lambda x0: np.zeros(1))), as_printed=True
    )
    assert not agree(printed.lhs, number(distance))


def test_pairs(flat: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lemma 3: the mean squared distance from the mean is that of all pairs over 2 N^2, N (N - 1) of them not zero."""
    N = 5
    step = stand_in(n=0, after=stand_in(clients=clients()), copies=np.arange(N)[:, None] / (N - 1))
    monkeypatch.setattr(descent, "path", lambda case: [step])
    (q,) = compared(descent.lemma_3, **AT_POINT, n_clients=N)
    assert_same(q.rhs, number(sp.Rational(N * (N - 1), 2 * N**2) / (2 * eta)) * 2)  # the paper has twice of that
    assert agree(q.rhs, number(sp.Rational(N - 1, 2 * N) / eta))


@pytest.mark.parametrize("relation", [1, 2])
def test_relations_of_35(monkeypatch: pytest.MonkeyPatch, relation: int) -> None:
    """(x + y)^2 <= 2 x^2 + 2 y^2, and twice the mean squared distance from the mean is that of all pairs over N^2."""
    N = 4
    old, own, new = np.zeros((N, 1)), np.ones((N, 1)), np.full((N, 1), 3.0)
    before, after = (stand_in(clients=clients(x0=x0)) for x0 in (old, new))
    monkeypatch.setattr(descent, "path", lambda case: [stand_in(n=0, before=before, after=after, copies=own)])
    monkeypatch.setattr(descent, "spread", lambda points: 5.0)
    part = descent.Averaging("", stand_in(eta=0.1, n_clients=N), relation)  # pyright: ignore
    (q,) = compared(descent.p3_factor_of_lemma_4, stand_in(case=part, printed=False))
    pairs = 2 * 2 * sp.Rational(N * (N - 1), 2 * N**2) * 5**2  # the paper has twice of that
    assert_same(q.rhs, squares(1, sp.Integer(2) ** 2) if relation == 1 else pairs)


# Theorem 1: descent, gradient and the first round.

DUAL = squares(L**2 * u, 4 * eps)  # |change of dual|^2: of gradients, and of residuals of two rounds
DESCENT = sp.expand(MODEL * u + s2 / (2 * eta) - eta * DUAL - YOUNG)  # at most the fall of the Lagrangian
C = positive("C")


def gradient(dual: Any) -> Any:
    """Bound |grad E|^2 at the mean copy: x_j is off by eta times the change of the dual, and by its step."""
    own = squares(eps, (1 / eta + L) ** 2 * u)  # |grad of the local Lagrangian at the old model|^2
    return squares(L**2 * squares(eta**2 * dual, s2), own)


def derived() -> dict[str, Any]:
    """Return the constants of Theorem 1."""
    total = sp.expand(gradient(DUAL))
    (factor,) = sp.solve(total.coeff(u) - C * DESCENT.coeff(u), C)
    first = {
        "fall": eta * u / eta**2 - eta * DUAL.subs(eps, 0),
        "gradient": gradient(u / eta**2) - gradient(DUAL.subs(eps, 0)),
    }
    start = (factor * first["fall"] + first["gradient"]).subs(u, eta**2 * H / (1 - a) ** 2)
    accuracy = total.coeff(eps) - factor * DESCENT.coeff(eps) + factor * YOUNG.coeff(eps) / T
    return {"c": DESCENT.coeff(u), "C": factor, "start": start / H, "accuracy": accuracy, "step": total.coeff(s2)}


@pytest.mark.parametrize("point", POINTS, ids=str)
def test_constants_of_theorem_1(point: Any) -> None:
    known, of = {"L": float(point[0]), "eta": float(point[1])}, derived()
    assert_same(descent.decrease_factor(**known), at(of["C"], *point))
    assert_same(descent.start_factor(**known), at(of["start"], *point))
    assert_same(descent.accuracy_factor(**known, rounds=7), at(of["accuracy"], *point).subs(T, 7))
    assert at(of["step"] - of["C"] / (2 * eta), *point) <= 0  # the fall pays for the steps of the mean as well


def test_start_of_theorem_1() -> None:
    """H_0 is the mean of (|grad f_j| + sqrt(eps))^2, for the local problems are (1 - a)/eta-strongly convex."""
    f = stand_in(gradient=lambda theta: np.array([[3.0, 4.0], [1.0, 0.0]]))
    assert_same(descent.H_0(stand_in(objective=f, theta0=None, n_clients=2), 0.25), sp.Rational(121 + 9, 8))


def test_range_of_eta() -> None:
    x = positive("x")
    (root,) = sp.solve(derived()["c"].subs(L, x / eta), x)
    assert_same(_runs.LIMIT, root)


def test_theorem_1_is_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(descent, "mean_gradients", lambda case: [descent.Mean(7, S, eps)])
    monkeypatch.setattr(descent, "H_0", lambda case, accuracy: H)
    (q,) = compared(descent.theorem_1, L=2.0, eta=0.1, error=lambda _: fall, theta0=None)
    of = {name: at(x, 2, Fraction(1, 10)).subs(T, 7) for name, x in derived().items()}
    for symbol, expected in ((fall, of["C"] / 7), (H, of["start"] / 7), (eps, of["accuracy"])):
        assert_same(sp.expand(q.rhs).coeff(symbol), expected)


# Lemma 2 and Theorem 3: the drift. With |grad f_i - grad f_j| <= G, h = eta (G + 2 sqrt(eps)) and S = a y + z.

p, b, N = positive("p a N")


def drifts() -> tuple[Any, Any]:
    """Return y' and z+ by S: x' = x0 + eta (e' - e + grad f(x) - grad f(x')), x0+ = x' + eta (e' - grad f(x'))."""
    new = positive("new")
    (models,) = sp.solve(new - (S + 2 * h + b * new), new)
    return models, (1 + b) * models + h


def test_matrix_of_lemma_2() -> None:
    models, copies = (x.subs(S, b * y + z) * (1 - b) for x in drifts())
    A, B = skipping.matrix(p, b), skipping.offset(p, b)
    for row, expected in enumerate((p * copies, models)):
        for column, symbol in enumerate((z, y)):
            assert_same(A[row, column], sp.expand(sp.simplify(expected)).coeff(symbol))
        assert_same(B[row], sp.expand(sp.simplify(expected)).coeff(h))
    assert not agree(skipping.matrix(p, b, as_printed=True)[0, 1], A[0, 1])
    (largest,) = [v for v in sp.Matrix(A.tolist()).applyfunc(lambda x: sp.nsimplify(x)).eigenvals() if v != 0]
    assert_same(skipping.growth(p, a=b), largest / (1 - b))


@pytest.mark.parametrize("apart", [(0, 0), (10, 0), (0, 10)])
def test_lemma_2_is_put_together(monkeypatch: pytest.MonkeyPatch, apart: tuple[int, int]) -> None:
    branch = stand_in(probability=1.0, state=None)
    step = stand_in(n=0, before=None, accuracy=0.01, E=Expect([branch]))
    monkeypatch.setattr(skipping, "path", lambda case: [step])
    monkeypatch.setattr(skipping, "distances", lambda state: np.array(apart))
    found = compared(skipping.lemma_2, a=0.2, skip=0.5, dissimilarity=1.0, eta=0.1)
    values = {b: sp.Rational(1, 5), h: sp.Rational(1, 10) * (1 + 2 * sp.Rational(1, 10))}
    models, copies = (x.subs(S, b * apart[1] + apart[0]).subs(values) for x in drifts())
    for q, expected in zip(found, (copies / 2, models), strict=True):
        assert_same(q.rhs, expected)


def test_moments_of_theorem_3() -> None:
    """All histories of the coin, of the chain that attains the drift."""
    at_point = {b: sp.Rational(1, 10), p: sp.Rational(2, 5), h: sp.Rational(3, 10)}
    models, copies = (x.subs(at_point) for x in drifts())
    chance: Any = at_point[p]
    zero: Any = sp.Integer(0)
    one: Any = sp.Integer(1)
    for n, found in enumerate(islice(skipping.drift(0.4, a=0.1, h=0.3), 4)):
        second = crossed = zero
        for coins in product((0, 1), repeat=n):
            before, apart, weight = zero, zero, one
            for skipped in coins:
                apart = copies.subs(S, before) if skipped else zero
                before = at_point[b] * models.subs(S, before) + apart
                weight *= chance if skipped else 1 - chance
            second += weight * apart**2
            crossed += weight * apart * copies.subs(S, before)
        if n:
            assert_same(found.copies, second)
            assert_same(found.crossed, crossed)


def test_theorem_3_is_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Averaging costs 2 <d, d+>/(2 eta) with probability 1 - p; the last copies, and 4 L^2 times their distance."""
    N, Z, X = 4, positive("Z1:4"), positive("X1:4")
    moments = [skipping.Drift(*pair) for pair in zip(Z, X, strict=True)]
    asked: dict[str, float] = {}

    def drift(p: float, **known: float) -> Any:
        asked.update(known, p=p)
        return iter(moments)

    monkeypatch.setattr(skipping, "drift", drift)
    monkeypatch.setattr(skipping, "H_0", lambda case, accuracy: H)
    of = {name: at(x, 2, Fraction(1, 10)).subs(T, 2) for name, x in derived().items()}
    case = stand_in(L=2.0, eta=0.1, a=0.2, skip=0.25, n_clients=N, dissimilarity=1.0, error=lambda _: fall, theta0=None)
    total = sp.expand(list(skipping.bounds(case, 0.01))[1] * 2)
    pairs, e = sp.Rational(N - 1, 2 * N), sp.Rational(1, 10)
    assert_same(asked["h"], e * (1 + 2 * sp.Rational(1, 10)))
    assert (asked["a"], asked["p"]) == (0.2, 0.25)
    assert_same(total.coeff(fall), of["C"])
    assert_same(total.coeff(H), of["start"])
    for k in (0, 1):
        assert_same(total.coeff(X[k]), of["C"] * sp.Rational(3, 4) * pairs / e)
        assert_same(total.coeff(Z[k]), 4 * 2**2 * pairs)
    assert_same(total.coeff(Z[2]), of["C"] * pairs / (2 * e))
    assert_same(total.subs({x: 0 for x in (fall, H, *Z, *X)}), of["accuracy"] * 2 * sp.Rational(1, 100))


# The first version: errors that are bounded on average.

# E max (|e_i| + |e_j|) <= (E max 2 (|e_i|^2 + |e_j|^2))^(1/2), at most with the sum over all clients
OF_A_PAIR = sp.sqrt(2 * N * eps)


@pytest.mark.parametrize("apart", [(0, 0), (10, 0), (0, 10)])
def test_lemma_7(monkeypatch: pytest.MonkeyPatch, apart: tuple[int, int]) -> None:
    step = stand_in(n=0, before=None, E=expects(lambda quantity: quantity(stand_in(state=None))))
    monkeypatch.setattr(first_version, "drawn_path", lambda case: [step])
    monkeypatch.setattr(first_version, "distances", lambda state: np.array(apart))
    monkeypatch.setattr(first_version, "residuals", lambda branch: np.full(3, 0.01))
    monkeypatch.setattr(first_version, "old_errors", lambda case, state: np.zeros(3))
    found = compared(first_version.lemma_7, a=0.2, skip=0.5, n_clients=3, dissimilarity=1.0, eta=0.1)
    largest = OF_A_PAIR.subs({N: 3, eps: sp.Rational(1, 100)})
    values = {S: b * apart[1] + apart[0], h: sp.Rational(1, 10) * (1 + largest)}
    models, copies = (x.subs(values).subs(b, sp.Rational(1, 5)) for x in drifts())
    for q, expected in zip(found, (copies / 2, models), strict=True):
        assert_same(q.rhs, expected)


def test_p12() -> None:
    """Sixteen equal clients at one point, a = eta = 1/5, G = 0 and errors of mean square one."""
    (q,) = compared(first_version.p12_errors_of_samples, Form(first_version.many_clients(), printed=False))
    models, _ = drifts()
    assert_same(q.rhs, models.subs({S: 0, h: OF_A_PAIR.subs({N: 16, eps: 1}) / 5}).subs(b, sp.Rational(1, 5)))


def test_lemma_9(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lemma 4 in the mean over the draws."""
    branch = stand_in(state=stand_in(clients=clients(theta=ONE)))
    step = stand_in(n=0, E=expects(lambda quantity: quantity(branch)))
    monkeypatch.setattr(first_version, "lagrangians", lambda case, theta, x0, dual: np.full(1, 2.0))
    monkeypatch.setattr(first_version, "residuals", lambda branch: np.array([1.0]))
    monkeypatch.setattr(first_version, "drawn_path", lambda case: [step])
    (q,) = compared(first_version.lemma_9, **AT_POINT, objective=stand_in(value=lambda x0: np.full(1, 0.5)))
    assert_same(q.lhs, number(1 / (2 * eta) - L / 2 - L / 2))
    assert_same(q.rhs, 2 - sp.Rational(1, 2) + number(YOUNG))


@pytest.mark.parametrize("chance", [0.4, 1.0])
def test_drift_of_means(chance: float) -> None:
    """Norms of second moments: the coin of a round is independent of its errors, not of those of the next round."""
    at_point = {b: sp.Rational(1, 10), h: sp.Rational(3, 10)}
    models, copies = (x.subs(at_point) for x in drifts())
    probability, norm = sp.nsimplify(chance), sp.Integer(0)
    moments = crossed = sp.Integer(0)
    for found in islice(first_version.drift_of_means(chance, a=0.1, h=0.3), 4):
        if norm == 0:
            assert (found.copies, found.crossed) == (0, 0)
        else:
            assert_same(found.copies, moments)
            assert_same(found.crossed, crossed)
        communicates = (b * models).subs(at_point).subs(S, norm)
        skips = communicates + copies.subs(S, norm)
        moments = probability * copies.subs(S, norm) ** 2
        crossed = sp.sqrt(moments) * copies.subs(S, sp.sqrt(probability) * skips)
        norm = sp.sqrt((1 - probability) * communicates**2 + probability * skips**2)


def test_first_version_theorem_1_is_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Case I is Theorem 1, and case II Theorem 3 with these moments."""
    monkeypatch.setattr(first_version, "expected_means", lambda case: [descent.Mean(7, S, eps)])
    monkeypatch.setattr(descent, "H_0", lambda case, accuracy: H)
    known = {"L": 2.0, "eta": 0.1, "a": 0.2, "theta0": None, "error": lambda _: fall}
    (q,) = compared(first_version.first_version_theorem_1, **known, skip=0)
    of = {name: at(x, 2, Fraction(1, 10)).subs(T, 7) for name, x in derived().items()}
    for symbol, expected in ((fall, of["C"] / 7), (H, of["start"] / 7), (eps, of["accuracy"])):
        assert_same(sp.expand(q.rhs).coeff(symbol), expected)
    asked: dict[str, float] = {}
    monkeypatch.setattr(first_version, "drift_of_means", lambda p, **known: asked.update(known, p=p))
    monkeypatch.setattr(first_version, "bounds", lambda case, accuracy, moments: [accuracy + 1])
    monkeypatch.setattr(first_version, "expected_means", lambda case: [descent.Mean(1, S, 0.01)])
    (q,) = compared(first_version.first_version_theorem_1, **known, skip=0.25, n_clients=4, dissimilarity=1.0)
    assert (q.rhs, asked["a"], asked["p"]) == (1.01, 0.2, 0.25)
    assert_same(asked["h"], sp.Rational(1, 10) * (1 + OF_A_PAIR.subs({N: 4, eps: sp.Rational(1, 100)})))


# The local oracles: curvatures lie between m and M, in units of 1/eta.

LEAST, GREATEST = 1 / eta - L, 1 / eta + L


@pytest.mark.parametrize("share", [Fraction(1, 2), Fraction(1)])
def test_equation_8(share: Fraction) -> None:
    """|1 - step k| is largest at an end of the curvatures k; a concave client attains it."""
    ends = [at(1 - sp.Rational(share) * eta * k, 1, Fraction(3, 10)) for k in (LEAST, GREATEST)]
    factor = max(sp.Abs(end) for end in ends)
    f = Quadratic(A=-np.ones((1, 1, 1)), b=np.zeros((1, 1)))
    found = compared(oracles.equation_8, oracles.Local("concave", f, 0.3, 3, float(share)))
    (accuracy,) = [q for q in found if q.what.startswith("accuracy")]
    squared = [q for q in found if q.what.startswith("squared")]
    first = squared[0].rhs / factor**2
    for q in squared:
        assert_same(q.lhs, factor ** (2 * q.n) * first)
        assert_same(q.rhs, factor ** (2 * q.n) * first)
    assert_same(accuracy.rhs, first / 1000)
    assert factor ** (2 * accuracy.n) <= sp.Rational(1, 1000) < factor ** (2 * (accuracy.n - 1))


def test_vanishing_steps_of_p13() -> None:
    """Times (q + k)^2 the recursion telescopes; M^2 E|x - x*|^2 is at most K/q for q + k - 1 >= q."""
    q, k = positive("q k")
    length = 1 / (LEAST * (q + k))
    factor = (1 - length * LEAST) ** 2 * (q + k) ** 2
    assert sp.simplify(factor - (q + k - 1) ** 2) == 0
    added = sp.simplify((length * (q + k)) ** 2)
    distance = ((k - 1) ** 2 * u + q * added) / (q + k - 1) ** 2  # u = |x^0 - x*|^2 and noise of variance one
    bound = sp.simplify((GREATEST**2 * distance * (q + k - 1) ** 2).subs(k, 1 / (1 - a)))
    K: Any = sp.expand(bound).coeff(q, 0) + sp.expand(bound).coeff(q, 1)
    case = oracles.Noise("", a=0.05, distance=3.0)
    values = {L: 1, eta: sp.Rational(1, 20), u: 9}
    assert_same(case.K, K.subs(values))
    for steps_ in (1, 10):
        exact = LEAST**2 * distance.subs(k, 1 / (1 - a)).subs(q, steps_)
        assert_same(case.vanishing(steps_), exact.subs(values))
    for inequality in compared(oracles.p13_constant_steps, Form(case, printed=False)):
        assert_same(inequality.rhs, K.subs(values) / inequality.n)


def test_remark_3(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of the two terms of Theorem 1 is half of what is asked for."""
    seen: dict[str, Any] = {}
    monkeypatch.setattr(oracles, "H_0", lambda case, accuracy: 7.0)
    monkeypatch.setattr(oracles, "mean_gradients", lambda case: [descent.Mean(9, S, eps)])
    run: Any = stand_in(L=2.0, eta=0.1, theta0=None, error=lambda _: 3.0, squared_gradient=lambda _: 5.0)
    run.algorithm = FedPD(eta=0.1)
    run.but = lambda **new: seen.update(new)
    gradient, local = compared(oracles.remark_3, oracles.Target("", run, 0.5))
    asked = sp.Rational(5, 2)
    of = {name: at(x, 2, Fraction(1, 10)).subs(T, 1) for name, x in derived().items()}
    assert_same(gradient.rhs, asked)
    assert_same(local.rhs, asked / 2 / of["accuracy"])
    assert_same(seen["algorithm"].stop.tol ** 2, local.rhs)
    assert seen["algorithm"].solver.step == 0.1
    assert seen["rounds"] == math.ceil((of["C"] * 3 + of["start"] * 7) / (asked / 2))


# FedAvg of the first version: in step q the clients are q steps of squared length (eta G)^2 from their mean.

G, steps = positive("G eta_r")


@pytest.mark.parametrize("Q", [2, 5])
def test_lemma_5_and_claim_d_1(Q: int) -> None:
    drift = sum(L**2 / 2 * steps * (q * steps * G) ** 2 for q in range(Q))
    f = stand_in(value=lambda x: x, zeros=lambda: 1.0)
    run = [(0, steps, [0.0] * (Q + 1))]
    known = {"objective": f, "run": lambda: run, "L": L, "G": G, "steps": Q, "squared_gradient": lambda _: S}
    (q,) = compared(fedavg.lemma_5, **known)
    assert_same(q.lhs, steps / 2 * Q * S)
    assert_same(q.rhs, drift)
    (q,) = compared(fedavg.claim_d_1, **known, lowest=0.0)
    assert_same(q.lhs, S)
    assert_same(q.rhs, (1 + drift) / (steps / 2 * Q))  # the energy falls by 1
