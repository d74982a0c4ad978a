"""Acc-S-DANE: the box with three vectors, of which two suffice, its numbers, and what the weight has to do with it."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import islice

import numpy as np
import pytest

from dualopt.engine.rounds import iterate
from dualopt.methods import AccSDANE, AdaptiveAccSDANE
from dualopt.methods._estimate import Bound, advanced, growth
from dualopt.methods._gradient_theorems import limit_factor
from dualopt.methods.acc_s_dane import POINT
from dualopt.methods.adaptive_acc_s_dane import Judgement
from dualopt.methods.participation import first_round
from dualopt.objectives import Quadratic
from dualopt.solvers import Exact
from tests.engine.problems import problems
from tests.problems import hinge, lopsided, quadratic

START = np.array([1.0, -2.0, 0.5, 3.0])


def models(method: AccSDANE, f, iterations: int, start=START):
    return [s.server.theta for s in islice(iterate(method, f, theta0=start), 1, 2 * iterations, 2)]


def as_published(f: Quadratic, lam: float, mu: float, iterations: int, start=START):
    """The authors' recursion, with a, A and B, and with the gradients at the local solutions sent as well."""
    A, B, x, v, found = 0.0, 1.0, start, start, []
    eye = np.eye(f.shape[0])
    for _ in range(iterations):
        a = (B + math.sqrt(B * B + 4.0 * lam * A * B)) / (2.0 * lam)  # lam a^2 = (A + a) B
        y = (A * x + a * v) / (A + a)
        g = np.einsum("jab,b->ja", f.A, y) - f.b
        right = lam * y - (g.mean(axis=0) - g) + f.b
        local = np.linalg.solve(f.A + lam * eye, right[..., None])[..., 0]
        gradients = np.einsum("jab,jb->ja", f.A, local) - f.b
        x = local.mean(axis=0)
        v = (B * v + a * (mu * x - gradients.mean(axis=0))) / (B + mu * a)
        A, B = A + a, B + mu * a
        found.append(x)
    return found


@pytest.mark.parametrize("mu", [0.0, 0.5])
def test_two_vectors_make_the_models_of_three(mu: float) -> None:
    f = quadratic(n=3, L=8.0)
    ours = models(AccSDANE(weight=2.0, mu=mu, solver=Exact()), f, 12)
    np.testing.assert_allclose(ours, as_published(f, 2.0, mu, 12), rtol=1e-10, atol=1e-12)


def test_another_mu_makes_other_models() -> None:
    f = quadratic(n=3, L=8.0)
    ours = models(AccSDANE(weight=2.0, mu=0.5, solver=Exact()), f, 4)
    assert np.linalg.norm(ours[-1] - as_published(f, 2.0, 0.4, 4)[-1]) > 1e-4


def test_one_vector_each_way_in_every_round() -> None:
    f = lopsided()
    for s in islice(iterate(AccSDANE(weight=2.0), f, theta0=START[: f.shape[0]]), 6):
        assert s.floats_up == f.n_clients * f.shape[0]


def test_identical_clients_without_a_weight_are_solved_at_once() -> None:
    one = quadratic(n=1)
    f = Quadratic(A=np.repeat(one.A, 3, 0), b=np.repeat(one.b, 3, 0))
    np.testing.assert_allclose(models(AccSDANE(weight=0.0), f, 1)[0], f.minimiser(), rtol=1e-10)


def test_the_numbers() -> None:
    """lam a^2 = (A + a) B in the normalised form: w alpha^2 = b (1 - alpha), and b+ = b (1 - alpha) + mu alpha."""
    for b, w, mu in ((3.0, 2.0, 0.5), (0.1, 7.0, 0.0), (1e-6, 1.0, 1e-6)):
        alpha, after = growth(b, w, mu)
        assert w * alpha**2 == pytest.approx(b * (1.0 - alpha), rel=1e-12)
        assert after == pytest.approx(b * (1.0 - alpha) + mu * alpha, rel=1e-12)
    alpha = 1.0 - limit_factor(6.0, 0.5)
    assert 6.0 * alpha**2 + 0.5 * alpha == pytest.approx(0.5, rel=1e-14)


def test_a_weight_far_below_the_differences_diverges() -> None:
    f = Quadratic(A=np.stack([np.diag([1.0, 100.0]), np.diag([100.0, 1.0])]), b=np.array([[1.0, 2.0], [3.0, 4.0]]))
    start = np.array([1.0, 5.0])

    def distance(weight: float) -> float:
        return float(np.linalg.norm(models(AccSDANE(weight=weight), f, 30, start)[-1] - f.minimiser()))

    assert distance(49.5) < 1e-3 < 1e3 < distance(0.1)


def judgements(method: AdaptiveAccSDANE, f, iterations: int, start=START):
    """The server after every judgement."""
    return [s.server for s in islice(iterate(method, f, theta0=start), 2, 3 * iterations, 3)]


def test_two_vectors_and_three_numbers_in_three_rounds() -> None:
    f = lopsided()
    size = f.shape[0]
    sent = [s.floats_up for s in islice(iterate(AdaptiveAccSDANE(), f, theta0=START[:size]), 9)]
    assert sent == [f.n_clients * n for n in (size, size, 3)] * 3


def adaptive_box(f: Quadratic, first: float, mu: float, iterations: int, start=START):
    """The box, with the estimate as a function: three coefficients, and the share by bisection."""

    def energy(u):
        return float(np.mean(0.5 * np.einsum("a,jab,b->j", u, f.A, u) - f.b @ u))

    def least(parts):
        curvature, linear, constant = parts
        return constant - 0.5 * linear @ linear / curvature

    eye, x, v, b, weight, falling, found = np.eye(f.shape[0]), start, start, math.inf, first, True, []
    for _ in range(iterations):
        alpha = 2.0 / (1.0 + math.sqrt(1.0 + 4.0 * weight / b))
        y = (1.0 - alpha) * x + alpha * v
        g = np.einsum("jab,b->ja", f.A, y) - f.b
        right = weight * y - (g.mean(axis=0) - g) + f.b
        local = np.linalg.solve(f.A + weight * eye, right[..., None])[..., 0]
        slopes = np.einsum("jab,jb->ja", f.A, local) - f.b
        values = 0.5 * np.einsum("ja,jab,jb->j", local, f.A, local) - np.sum(f.b * local, axis=1)
        touching = values - np.sum(slopes * local, axis=1) + 0.5 * mu * np.sum(local**2, axis=1)
        bound = (mu, (slopes - mu * local).mean(axis=0), float(np.mean(touching)))
        new = local.mean(axis=0)

        def mixed(share, phi, bound=bound):
            return tuple((1.0 - share) * p + share * q for p, q in zip(phi, bound, strict=True))

        if b == math.inf:
            phi = (mu + weight, bound[1] - weight * start, bound[2] + 0.5 * weight * start @ start)
            accepted = least(phi) >= energy(new)
            x, b, v = (new, phi[0], -phi[1] / phi[0]) if accepted else (x, b, v)
        else:
            phi = (b, -b * v, energy(x) + 0.5 * b * v @ v)  # pyright: ignore
            accepted = least(mixed(alpha, phi)) >= energy(new)
            best = energy(new) if accepted else min(energy(x), energy(new))
            low, high = (alpha, alpha) if accepted else (0.0, alpha)
            for _ in range(200):
                middle = 0.5 * (low + high)
                low, high = (middle, high) if least(mixed(middle, phi)) >= best else (low, middle)
            x = new if accepted or energy(new) <= energy(x) else x
            b, linear, _ = mixed(low, phi)
            v = -linear / b
        falling = falling and accepted
        weight *= (0.1 if falling else 0.9) if accepted else 2.0
        found.append((x, v, weight))
    return found


@pytest.mark.parametrize("first", [10.0, 0.01])
@pytest.mark.parametrize("mu", [0.0, 0.5])
def test_the_adaptive_box_written_out(mu: float, first: float) -> None:
    """As long as rounding does not decide; accepted and refused weights occur."""
    f = quadratic(n=3, L=8.0)
    ours = judgements(AdaptiveAccSDANE(first=first, mu=mu, solver=Exact()), f, 9)
    box = adaptive_box(f, first, mu, 9)
    for server, (x, v, weight) in zip(ours, box, strict=True):
        np.testing.assert_allclose(server.theta, x, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(server.v, v, rtol=1e-4, atol=1e-4)
        assert server.search.weight == pytest.approx(weight, rel=1e-12)
    assert {server.search.accepted for server in ours} == {True, False}


def test_the_share_is_the_largest_one() -> None:
    """The least value of the mixture is at the better energy, up to rounding; a share more is below it."""
    rng = np.random.default_rng(0)
    kinds = set()
    for _ in range(400):
        b, square, weight, mu = rng.uniform(0.01, 2.0, 4)
        height, fall = rng.uniform(-1.0, 1.0, 2)
        step = advanced(b, Bound(height, square, fall, 0.0), weight, mu)

        def least(share, b=b, square=square, mu=mu, height=height, fall=fall):
            curvature = (1.0 - share) * b + share * mu
            return (1.0 - share) * fall + share * height - 0.5 * share**2 * square / curvature

        alpha, _ = growth(b, weight, mu)
        assert step.accepted == (least(alpha) >= 0)
        assert step.taken == (step.accepted or fall >= 0)
        assert step.b == pytest.approx((1.0 - step.share) * b + step.share * mu)
        if step.accepted:
            assert step.share == alpha
        else:
            best = min(0.0, fall)
            assert 0 <= step.share <= alpha
            assert least(step.share) >= best - 1e-12
            assert step.share == alpha or least(step.share + 1e-6) < best
        kinds.add((step.accepted, step.taken, step.share == alpha, step.share == 0))
    assert kinds >= {(True, True, True, False), (False, True, False, False), (False, False, False, True)}


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_the_rounding_of_a_judgement_is_that_of_all_its_numbers(share: float) -> None:
    """D_j is a difference of three numbers. Constants move f_j(xbar) to 0; the rounding of the others remains."""
    f, method = quadratic(n=3, L=8.0), AdaptiveAccSDANE(first=10.0, mu=0.5, solver=Exact())
    mean = judgements(method, f, 1)[0].search.mean
    moved = Quadratic(A=f.A, b=f.b, c=-share * Quadratic(A=f.A, b=f.b).value(mean))
    solved, judged = islice(iterate(method, moved, theta0=START), 1, 3)
    own, step = solved.clients.solution, mean - solved.clients.solution.point
    assert np.array_equal(judged.server.search.mean, mean)
    rise = np.sum(own.gradient * step, axis=1)
    sizes = np.abs(moved.value(mean)) + np.abs(own.value) + np.abs(rise)
    assert judged.server.search.rounding == pytest.approx(10 * 2.0**-52 * np.mean(sizes), rel=1e-12, abs=0.0)
    told = np.mean(moved.value(mean) - own.value - rise - 0.25 * np.sum(step**2, axis=1))
    exact = sum(  # half of step' (A_j - mu) step, in rationals
        (Fraction(a) - Fraction(0.5) * (i == k)) * Fraction(s[i]) * Fraction(s[k])
        for A, s in zip(f.A.tolist(), step.tolist(), strict=True)
        for i, row in enumerate(A)
        for k, a in enumerate(row)
    )
    assert 0 < abs(float(Fraction(float(told)) - exact / 6)) <= judged.server.search.rounding


@pytest.mark.parametrize(
    ("said", "weights"),
    [
        (["accepted", "accepted"], [0.1, 0.01]),
        (["hidden", "accepted", "accepted"], [1.0, 0.1, 0.01]),
        (["accepted", "hidden", "accepted"], [0.1, 0.1, 0.01]),
        (["refused", "accepted"], [2.0, 1.8]),
        (["refused", "hidden", "accepted"], [2.0, 2.0, 1.8]),
        (["hidden", "refused", "accepted"], [1.0, 2.0, 1.8]),
    ],
)
def test_a_weight_falls_to_a_tenth_until_one_is_refused(said: list[str], weights: list[float]) -> None:
    """What rounding hides refuses nothing."""
    method, found = AdaptiveAccSDANE(first=1.0, mu=0.5), []
    server, _, _ = method.init(np.array([1.0]), np.ones((1, 1)))
    for n, word in enumerate(said):
        assert server.search is not None
        mean = np.array([1.0 - 0.5 * (n + 1)])
        server = server._replace(search=server.search._replace(mean=mean))
        excess, size = {"accepted": (0.0, 1.0), "refused": (1e3, 1.0), "hidden": (0.0, 1e18)}[word]
        judgement = Judgement(np.asarray(-10.0 * n), np.asarray(excess), np.asarray(size))
        server, _ = method.server(server, judgement, first_round(1))
        assert server.search is not None
        assert server.search.accepted is {"accepted": True, "refused": False, "hidden": None}[word]
        found.append(server.search.weight)
    assert found == pytest.approx(weights, rel=1e-12)


@pytest.mark.parametrize("bound", [Bound(-1e-17, 1e-30, 1e-17, 1e-15), Bound(0.0, 0.0, 0.0, 0.0)])
def test_what_rounding_hides_is_made_as_planned(bound: Bound) -> None:
    """And so is a step after which nothing is left to do: no weight is refused there."""
    alpha, b = growth(1.0, 1.0, 0.1)
    assert advanced(1.0, bound, 1.0, 0.1) == (alpha, b, None, True)


@pytest.mark.parametrize("b", [1.0, math.inf])
@pytest.mark.parametrize("height", [math.nan, -math.inf])
def test_a_solution_that_is_not_finite_is_refused_and_changes_nothing(b: float, height: float) -> None:
    assert advanced(b, Bound(height, math.inf, -math.inf, math.inf), 1.0, 0.1) == (0.0, b, False, False)


@pytest.mark.parametrize("first", [None, 1e-6, 1e3])
def test_the_adaptive_weight_goes_on_down_to_rounding(first: float | None) -> None:
    """Energies say nothing of the last half of the digits: weights stay as they are there."""
    f = Quadratic(A=np.stack([np.diag([1.0, 100.0]), np.diag([100.0, 1.0])]), b=np.array([[1.0, 2.0], [3.0, 4.0]]))
    found = judgements(AdaptiveAccSDANE(first=first), f, 150, np.array([1.0, 5.0]))[-1]  # pyright: ignore
    assert np.linalg.norm(found.theta - f.minimiser()) < 1e-14
    assert found.search.weight <= max(first or 0.0, 2.0 * 49.5)


@pytest.mark.parametrize("kind", [AccSDANE, AdaptiveAccSDANE])
def test_first_gradients_are_measured_from_zero(kind: type) -> None:
    """Which both ends know."""
    _, _, clients = kind(mu=0.5).init(START, np.ones((3, 4)))
    assert not clients.gradient.any()


def test_what_is_refused() -> None:
    f = quadratic()
    AccSDANE(mu=0.25, weight=0.25).suggested(f).check(f)
    AdaptiveAccSDANE(first=0.25).suggested(f).check(f)
    with pytest.raises(ValueError, match=r"^weight must be positive where mu is zero"):
        AccSDANE(mu=0.0, weight=0.0).suggested(f).check(f)
    with pytest.raises(ValueError, match=r"^first must be positive"):
        AdaptiveAccSDANE(first=0.0).suggested(f).check(f)
    for kind in (AccSDANE, AdaptiveAccSDANE):
        with pytest.raises(ValueError, match=r"^mu must not exceed that of any client"):
            kind(mu=2.0).suggested(f).check(f)
        with pytest.raises(ValueError, match=rf"^objective must be smooth for {kind.__name__}"):
            kind().suggested(hinge())


def test_a_bound_that_is_as_high_as_the_model_everywhere_has_the_whole_share() -> None:
    """Where the new point is worse than the old one: the estimate is the energy of the old one for every share."""
    alpha, _ = growth(1.0, 0.5, 0.0)
    found = advanced(1.0, Bound(height=-1.0, square=0.0, fall=-1.0, rounding=0.0), 0.5, 0.0)
    assert found == (alpha, 1.0 - alpha, False, False)


@pytest.mark.parametrize("downlink", [None, "rounding=4"])
def test_the_server_works_on_the_point_that_arrived(downlink: str | None) -> None:
    """Gradients that arrive otherwise than they were sent are no points."""
    before = None
    for s in islice(iterate(AccSDANE(), problems()["smooth"], downlink=downlink), 9):
        if s.message.asks == POINT:
            np.testing.assert_array_equal(s.server.point, s.message.vector)
        elif before is not None:
            np.testing.assert_array_equal(s.server.point, before)
        before = s.server.point


def test_the_first_weight_of_clients_without_a_range_is_mu() -> None:
    f = Quadratic(A=np.stack([2.0 * np.eye(2)] * 3), b=np.arange(6.0).reshape(3, 2))
    assert AdaptiveAccSDANE().suggested(f).first == 2.0
