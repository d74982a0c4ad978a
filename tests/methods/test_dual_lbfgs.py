"""L-BFGS on the dual: DualFL's first rounds, its inner products, its gradient, and plain steps when it is refused."""

from __future__ import annotations

from itertools import islice, pairwise

import numpy as np
import pytest

from dualopt.engine.rounds import iterate
from dualopt.methods import DualAscent, DualLBFGS
from dualopt.methods.distributed_lbfgs import inverse_hessian_product
from dualopt.methods.dual_lbfgs import Server, Upload, next_gram
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import Round
from dualopt.solvers import LBFGS, Exact
from dualopt.solvers.stopping import GradientNorm
from tests.problems import logistic, lopsided, quadratic
from tests.promises import quadratics


class Plain(DualLBFGS):
    """No pairs are used."""

    def _direction(self, gram, rounding):
        weights = np.zeros(len(gram))
        weights[-1] = -1.0
        return weights


def seen(method, f, rounds: int):
    return list(islice(iterate(method, f), rounds))


def kept(snapshot):
    """What the clients keep, and the gradient of the latest point, which they do not know yet."""
    c = snapshot.clients
    return np.stack([*c.s, *c.y, c.q]), c.theta - snapshot.message.theta


@pytest.mark.parametrize("build", [lopsided, lambda: quadratic(n=3, L=8.0)])
def test_plain_steps_are_dualfl_without_momentum(build) -> None:
    f = build()
    ours = [s.server.theta for s in seen(Plain(solver=Exact()), f, 9)]
    theirs = [s.server.theta for s in seen(DualAscent(solver=Exact()), f, 9)]
    np.testing.assert_allclose(ours, theirs, rtol=1e-10)
    others = [s.server.theta for s in seen(DualLBFGS(solver=Exact()), f, 9)]
    np.testing.assert_allclose(others[:2], theirs[:2], rtol=1e-10)  # there is no pair yet
    assert np.linalg.norm(others[3] - theirs[3]) > 1e-3


def test_a_run_that_goes_on_after_convergence_stays_there() -> None:
    """Pairs of rounding alone once gave steps of any length: models were off by 1e-5 to 1 after 80 rounds."""
    for seed in range(12):
        f = quadratics(3, 1, 50.0, seed)
        run = seen(DualLBFGS(solver=Exact()), f, 80)
        off = [np.abs(s.server.theta - f.minimiser()).max() for s in run[25:]]
        assert max(off) <= 1e-13 * np.abs(f.minimiser()).max()
        assert len({tuple(s.server.weights) for s in run[5:20]}) > 1  # before, pairs are used
        np.testing.assert_array_less(np.linalg.norm(run[-1].clients.zeta) * 3**-0.5, run[-1].server.path * (1 + 1e-12))


def test_the_gradient_is_what_dualfl_subtracts_and_that_of_the_dual_function() -> None:
    """D = mean of f_j*(nu zeta_j)/nu, by the matrices of quadratics and by differences; zeta sums to zero."""
    f = quadratic(n=3, L=8.0)
    method = DualLBFGS(solver=Exact()).suggested(f)
    nu = method.nu

    def dual(zeta):
        right = f.b + nu * zeta
        conjugates = 0.5 * np.sum(right * np.linalg.solve(f.A, right[..., None])[..., 0], axis=1)
        return np.mean(conjugates - f.c) / nu

    for s in seen(method, f, 6)[1:]:
        zeta = s.clients.zeta + s.clients.step
        assert np.abs(zeta.sum(axis=0)).max() < 1e-12
        assert not s.server.plain
        assert float(s.server.value) == pytest.approx(dual(zeta), rel=1e-10)
        q = s.clients.theta - s.message.theta
        along = np.random.default_rng(0).standard_normal(zeta.shape)
        along -= along.mean(axis=0)
        slope = (dual(zeta + 1e-4 * along) - dual(zeta - 1e-4 * along)) / 2e-4
        assert slope == pytest.approx(np.sum(q * along) / 3, rel=1e-6, abs=1e-8)


class Far(DualLBFGS):
    """A hundred times the step, once there are two pairs."""

    def _direction(self, gram, rounding):
        step = super()._direction(gram, rounding)
        return 100.0 * step if gram[0, 0] == 0 and gram[self.history - 1, self.history - 1] > 0 else step


@pytest.mark.parametrize(("kind", "history"), [(DualLBFGS, 1), (DualLBFGS, 3), (DualLBFGS, 20), (Far, 2), (Far, 20)])
def test_the_server_has_the_inner_products_of_what_the_clients_keep(kind: type, history: int) -> None:
    """And the length of the way to the latest accepted point; refused points change neither."""
    f = logistic()
    method = kind(history=history, solver=LBFGS(), stop=GradientNorm(tol=1e-12))
    path, refused = 0.0, 0
    for before, s in pairwise(seen(method, f, 9)):
        flat = kept(s)[0].reshape(2 * history + 1, -1)  # what they kept before the message of this round
        expected = flat @ flat.T / f.n_clients
        np.testing.assert_allclose(before.server.gram, expected, rtol=0, atol=1e-9 * np.max(np.abs(expected)))
        path += 0.0 if before.server.plain else np.linalg.norm(before.clients.step) / f.n_clients**0.5
        assert float(before.server.path) == pytest.approx(path, rel=1e-7)
        assert np.array_equal(before.server.latest, before.message.theta)
        refused += s.server.plain
    assert (refused > 0) == (kind is Far)


def test_values_that_rise_are_refused_and_a_plain_step_follows() -> None:
    f = lopsided()

    history = 2
    snapshots = seen(Far(history=history, solver=Exact()), f, 8)
    refused = [n for n, s in enumerate(snapshots) if s.server.plain]
    assert refused
    for n in refused:
        before, s, after = snapshots[n - 1 : n + 2]
        assert np.array_equal(s.server.theta, before.server.theta)
        assert not after.server.plain
        np.testing.assert_allclose(after.clients.step, -after.clients.q, rtol=1e-12)
        assert float(after.server.value) < float(before.server.value)


GRAM = np.array([[4.0, 1.0, -3.0], [1.0, 9.0, 2.0], [-3.0, 2.0, 10.0]])  # of s, y and q


def answered(server: Server, value: float, products: tuple[float, ...], size: float = 16.0):
    """What becomes of a state with one pair when the mean model has moved from (3, 3) to (3, 4)."""
    mean = Upload(np.array([3.0, 4.0]), np.asarray(value), np.array([*products, size + 1.0]))
    round = Round(n=5, n_clients=3, clients=(0, 1, 2), communicate=True, seed=0)
    return DualLBFGS(nu=2.0, history=1).server(server, mean, round)


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize(
    ("value", "rise", "new_slope", "falls"),
    [
        (5.0, -1.001, 9.0, True),  # by a tenth of |q|^2 = 10, whatever the slope is
        (5.0, -0.999, 9.0, False),
        (5.0, 2.0**-27, -1.001, True),  # where values are close, by the slope at the new end
        (5.0, 2.0**-27, -0.999, False),
        (5.0, 0.0, 0.998, True),  # where they are the same, by the mean with the first slope, -3
        (5.0, 0.0, 1.002, False),
    ],
)
def test_which_points_are_accepted(plain: bool, value: float, rise: float, new_slope: float, falls: bool) -> None:
    """Those along which D falls by a tenth of the square of the gradient, and plain steps; others leave the model."""
    weights = (0.5, 0.25, -0.2)  # of q with s, y and itself -3, 2 and 10: a slope of -3
    before = Server(
        np.array([1.0, 2.0]), np.array([3.0, 3.0]), np.asarray(value), GRAM, weights, plain, np.asarray(7.0)
    )
    products = (2.0 * new_slope + 2.0, -4.0, 0.0)  # of the new gradient
    server, message = answered(before, value + rise, products)
    if not (plain or falls):
        assert (server.weights, server.plain, float(server.value), float(server.path)) == ((0, 0, -1), True, value, 7.0)
        assert (server.theta.tolist(), server.latest.tolist()) == ([1.0, 2.0], [3.0, 4.0])
        assert server.gram is GRAM
        assert (message.theta.tolist(), message.accepted, message.weights) == ([3.0, 4.0], False, (0, 0, -1))
        return
    assert (server.plain, float(server.value)) == (False, value + rise)
    assert server.theta.tolist() == server.latest.tolist() == message.theta.tolist() == [3.0, 4.0]
    assert message.accepted
    assert float(server.path) == pytest.approx(7.0 + np.sqrt(np.array(weights) @ GRAM @ weights), rel=1e-14)
    np.testing.assert_allclose(server.gram, next_gram(GRAM, np.array(weights), np.array(products), np.asarray(16.0)))
    assert server.weights == message.weights
    expected = DualLBFGS(nu=2.0, history=1)._direction(server.gram, np.asarray(0.0))
    np.testing.assert_allclose(server.weights, expected, rtol=1e-12)


@pytest.mark.parametrize("pairs", [1, 3])
def test_the_direction_is_that_of_the_vectors(pairs: int) -> None:
    """The two loops in coordinates make the same step as with the vectors that the weights are of."""
    rng = np.random.default_rng(0)
    s, (q,) = rng.standard_normal((pairs, 4)), rng.standard_normal((1, 4))
    y = s * np.array([1.0, 3.0, 10.0, 40.0])
    kept = np.stack([*s, *y, q])
    found = DualLBFGS(history=pairs)._direction(kept @ kept.T, np.asarray(0.0))
    np.testing.assert_allclose(found @ kept, -inverse_hessian_product(tuple(s), tuple(y), q), rtol=1e-10)


def test_sizes_that_are_rounding_are_not_negative() -> None:
    before = Server(np.zeros(2), np.array([3.0, 3.0]), np.asarray(1.0), GRAM, (0.0, 0.0, -1.0), True, np.asarray(7.0))
    server, _ = answered(before, 0.0, (0.0, 0.0, 0.0), size=-1e-3)
    assert server.gram[-1, -1] == 0.0


def test_squares_that_rounding_makes_negative_are_zero() -> None:
    """Of y here, 12 - 2 * 13 + 10, which no vectors have; everything else is as it is."""
    weights, products, size = np.array([0.5, 0.25, -0.2]), np.array([1.0, 2.0, 13.0]), np.asarray(12.0)
    s, along = weights @ GRAM @ weights, weights @ products
    expected = [[s, along + 3.0, along], [along + 3.0, 0.0, -1.0], [along, -1.0, 12.0]]
    np.testing.assert_allclose(next_gram(GRAM, weights, products, size), expected, rtol=1e-14)


def test_the_fixed_point_knows_the_least_value() -> None:
    """-E*/nu, by Fenchel's duality."""
    f = lopsided()
    method = DualLBFGS(solver=Exact()).suggested(f)
    server, _, _ = method.fixed_point(f, f.minimiser())
    least = -float(np.mean(f.value(f.minimiser()))) / method.nu
    assert float(server.value) == pytest.approx(least, rel=1e-13)


def test_uploads_are_measured_from_the_last_local_solution(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which both ends know, and which is as near as anything is."""
    f, told = lopsided(), []

    def sent(self: Oracle, x, since=None):
        told.append((x, since))
        return x

    monkeypatch.setattr(Oracle, "sent", sent)
    shots = seen(DualLBFGS(solver=Exact()), f, 6)
    assert len(told) == 6
    for before, s, (x, since) in zip(shots, shots[1:], told[1:], strict=False):
        assert np.array_equal(x, s.clients.theta)
        assert np.array_equal(since, before.clients.theta)


def test_pairs_of_rounding_are_left_out() -> None:
    """Those with a |y| of no more than 32 units in the last place of the way to the point and of the model."""
    eps, told = np.finfo(float).eps, []

    class Told(DualLBFGS):
        def _direction(self, gram, rounding):
            told.append(float(rounding))
            return super()._direction(gram, rounding)

    shots = seen(Told(solver=Exact()), lopsided(), 8)
    norms = [float(s.server.path + np.linalg.norm(s.server.theta)) for s in shots]
    np.testing.assert_allclose(told, [32.0 * eps * norm for norm in norms], rtol=1e-14)
    for y, counts in ((1.001e-3, True), (0.999e-3, False)):
        gram = np.array([[1.0, 0.5 * y, 0.25], [0.5 * y, y * y, y], [0.25, y, 2.0]])  # of s, y and q
        found = DualLBFGS(history=1)._direction(gram, np.asarray(1e-3))
        assert (found.tolist() == [0.0, 0.0, -1.0]) == (not counts)
