"""GIANT: its iteration in matrices, its line search, and what keeps it from diverging."""

from __future__ import annotations

import math
from itertools import islice, pairwise

import numpy as np
import pytest

from dualopt.engine.rounds import iterate
from dualopt.methods import GIANT, DistributedLBFGS, DistributedNewtonCG
from dualopt.methods._line_search import Upload
from dualopt.methods.compressors import RandK
from dualopt.methods.giant import DIRECTION, POINT, SLOPES, Server, best_step
from dualopt.objectives import Quadratic
from dualopt.solvers.stopping import Steps
from tests.problems import WithoutPreconditioner, hinge, lopsided, one_flat_client, quadratic

START = np.array([1.0, -2.0, 0.5, 3.0])
OPPOSITE = Quadratic(A=np.stack([np.diag([1.0, 400.0]), np.diag([400.0, 1.0])]), b=np.array([[1.0, 2.0], [3.0, 4.0]]))


def seen(method: GIANT, f, rounds: int, start=START):
    return list(islice(iterate(method, f, theta0=start), rounds))


def work(snapshot) -> tuple[float, ...]:
    """Local gradients of every client."""
    return snapshot.solution.gradients


@pytest.mark.parametrize(("weight", "relaxation"), [(0.0, 0.0), (3.0, 0.0), (0.0, 0.4), (3.0, 0.4)])
def test_the_iteration_with_its_matrices(weight: float, relaxation: float) -> None:
    """A gradient, directions (H_j + w)^-1 g, slopes; then the step of the least energy, and less of it if relaxed."""
    f = quadratic(n=3, L=8.0)
    H, K = f.A.mean(axis=0), np.linalg.inv(f.A + weight * np.eye(4)).mean(axis=0)
    method = GIANT(weight=weight, relaxation=relaxation, reduction=1e-13, steps=(1.0, 4.0))
    point, direction, slopes, new = seen(method, f, 4)
    g = H @ START - f.b.mean(axis=0)
    p = K @ g
    np.testing.assert_allclose(point.message.vector, g, rtol=1e-12)
    np.testing.assert_allclose(direction.message.vector, p, rtol=1e-10)
    t = (g @ p) / (p @ H @ p)
    assert (t > 1) == (weight > 0)  # relaxation is for overshooting directions, and leaves longer steps alone
    t *= 1.0 - relaxation * max(0.0, 1.0 - t)
    np.testing.assert_allclose(slopes.message.vector, START - t * p, rtol=1e-10)
    np.testing.assert_allclose(new.server.theta, START - t * p, rtol=1e-10)
    for snapshot in (point, direction, slopes):
        assert np.array_equal(snapshot.server.theta, START)


def test_what_is_sent_and_what_it_costs() -> None:
    f = lopsided()
    method = GIANT(steps=(1.0, 0.5))
    d, N = f.shape[0], f.n_clients
    point, direction, slopes = seen(method, f, 3)
    assert [s.floats_up for s in (point, direction, slopes)] == [N * (d + 1), N * d, N * 2]
    assert work(point) == (1.0,) * N
    assert work(slopes) == (2.0,) * N
    assert all(1 <= products <= d for products in work(direction))


def test_a_client_stops_its_products_on_its_own() -> None:
    """The second client's Hessian is a multiple of the identity: one product, whatever the first one needs."""
    f = Quadratic(A=np.stack([np.diag([1.0, 7.0, 30.0]), 5.0 * np.eye(3)]), b=np.ones((2, 3)))
    f = WithoutPreconditioner(f)
    direction = seen(GIANT(reduction=1e-12), f, 2, np.zeros(3))[1]
    assert work(direction) == (3.0, 1.0)
    few = seen(GIANT(reduction=1e-12, max_cg=2), f, 2, np.zeros(3))[1]
    assert work(few) == (2.0, 1.0)


def test_unit_steps_would_diverge_where_this_falls() -> None:
    """KH has the eigenvalue 100.5."""
    models = [s.server.theta for s in seen(GIANT(), OPPOSITE, 60, np.array([1.0, 5.0]))]
    energies = [float(np.mean(OPPOSITE.value(model))) for model in models]
    rounding = 1e-12 * max(map(abs, energies))
    assert all(after <= before + rounding for before, after in pairwise(energies))
    assert energies[-1] == pytest.approx(float(np.mean(OPPOSITE.value(OPPOSITE.minimiser()))), abs=1e-12)


def test_a_refused_point_is_tried_again_nearer() -> None:
    """Where the least of the steps is still far too long, the fallback finds a shorter one, and the model waits."""

    class Blind(GIANT):
        def local(self, clients, message, oracle, round):
            new, upload = super().local(clients, message, oracle, round)
            return new, -np.ones_like(upload) if message.asks == SLOPES else upload  # all of them say: go on

    start = np.array([1.0, 5.0])
    seen_ = seen(Blind(), OPPOSITE, 12, start)
    tried = [s.message.vector for s in seen_[2:] if s.message.asks == 0]
    lengths = [np.linalg.norm(x - start) for x in tried]
    moved = next(n for n, s in enumerate(seen_) if not np.array_equal(s.server.theta, start))
    assert moved > 3  # refused at least once
    for before, after in pairwise(lengths[: moved - 2]):
        assert 0.1 * before * (1 - 1e-12) <= after <= 0.5 * before
    last = seen(Blind(), OPPOSITE, 300, start)[-1].server.theta
    np.testing.assert_allclose(last, OPPOSITE.minimiser(), atol=1e-6)


def test_interpolation_of_slopes() -> None:
    assert best_step((0.0, 1.0), (-1.0, 3.0)) == 0.25
    assert best_step((0.0, 0.5, 1.0), (-4.0, -1.0, 3.0)) == 0.5 + 0.5 * 0.25
    assert best_step((0.0, 0.5, 2.0), (-4.0, -2.0, -1.0)) == 2.0
    assert best_step((0.0, 0.5, 1.0), (-4.0, 0.0, 1.0)) == 0.5
    assert best_step((0.0, 0.5, 1.0), (-4.0, -1.0, math.nan)) == 0.75
    assert best_step((0.0, 1.0), (-4.0, math.inf)) == 0.5
    assert best_step((0.0, 1.0), (0.0, 1.0)) == 0.0
    assert best_step((0.0, 0.5, 1.0), (-4.0, 0.0, 0.0)) == 1.0
    assert best_step((0.0, 1.0), (0.5, 3.0)) == 0.5  # where rounding makes the first slope positive


@pytest.mark.parametrize(("slope", "accepted"), [(-1.1e-4, True), (-0.9e-4, False), (1.1e-4, False)])
def test_a_point_is_judged_by_its_slope_along_the_step(slope: float, accepted: bool) -> None:
    """Where values are close: at a step of 2 the slope must be at most -1e-4 times the one before, here -2."""
    before = Server(np.zeros(1), np.asarray(1.0), np.array([-1.0]), np.array([2.0]), POINT)
    after, message = GIANT()._judged(before, Upload(np.asarray(1.0 + 1e-8), np.array([slope])))
    assert message.asks == (DIRECTION if accepted else POINT)
    assert after.theta.tolist() == ([2.0] if accepted else [0.0])


def test_directions_are_compressed_as_they_are() -> None:
    """Coordinates that a client does not send are zero."""
    f = quadratic(n=1, L=8.0)
    _, direction = islice(iterate(GIANT(), f, theta0=START, compressor=RandK(size=1)), 2)
    assert np.count_nonzero(direction.message.vector) == 1


@pytest.mark.parametrize("method", [GIANT, DistributedLBFGS, DistributedNewtonCG])
@pytest.mark.parametrize("option", [{"solver": None}, {"stop": Steps(steps=1)}], ids=["solver", "stop"])
def test_no_local_solve_is_no_choice_of_one(method, option) -> None:
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{next(iter(option))}'"):
        method(**option)


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^objective must be smooth for GIANT"):
        GIANT().suggested(hinge())
    with pytest.raises(ValueError, match=r"^weight must be positive where clients are not strongly convex"):
        GIANT().check(one_flat_client())
    GIANT(weight=0.1).check(one_flat_client())
