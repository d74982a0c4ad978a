"""L-BFGS on the dual: DualFL's first rounds, its inner products, its gradient, and plain steps when it is refused."""

from __future__ import annotations

from itertools import islice, pairwise

import numpy as np
import pytest

from dualopt.engine.rounds import iterate
from dualopt.methods import DualAscent, DualLBFGS
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


@pytest.mark.parametrize("history", [1, 3, 20])
def test_the_server_has_the_inner_products_of_what_the_clients_keep(history: int) -> None:
    f = logistic()
    method = DualLBFGS(history=history, solver=LBFGS(), stop=GradientNorm(tol=1e-12))
    snapshots = seen(method, f, 9)
    for before, s in pairwise(snapshots):
        assert not s.server.plain
        vectors, _ = kept(s)  # what they kept before the message of this round
        flat = vectors.reshape(len(vectors), -1)
        expected = flat @ flat.T / f.n_clients
        scale = np.sqrt(np.maximum(np.diag(expected), 1e-300))
        assert (
            np.abs(before.server.gram - expected)[np.ix_(scale > 1e-100, scale > 1e-100)].max()
            < 1e-9 * scale.max() ** 2
        )


def test_values_that_rise_are_refused_and_a_plain_step_follows() -> None:
    f = lopsided()

    class Far(DualLBFGS):
        """A hundred times the step, once."""

        def _direction(self, gram, rounding):
            step = super()._direction(gram, rounding)
            return 100.0 * step if gram[0, 0] == 0 and gram[self.history - 1, self.history - 1] > 0 else step

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
