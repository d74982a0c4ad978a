"""FedPD: skipped communication."""

from __future__ import annotations

from itertools import islice

import numpy as np

from dualopt.engine.rounds import State, advance, iterate
from dualopt.methods import FedPD
from dualopt.methods.participation import CommunicateWithProbability, Schedule
from tests.problems import quadratic


def test_skipping_leaves_the_optimum() -> None:
    """Without communication ``x_{0,j} = theta* + eta lambda_j``: Theorem 3 keeps a term with G for this reason."""
    f = quadratic()
    algorithm = FedPD(eta=0.1).suggested(f)
    theta = f.minimiser()
    state = State(*algorithm.fixed_point(f, theta))
    skipped = next(Schedule(clients=((0, 1, 2, 3, 4),), communicate=(False,)).rounds(5, seed=0))
    after, _, _ = advance(algorithm, f, state, skipped)
    np.testing.assert_allclose(after.clients.x0, theta - 0.1 * f.gradient(theta), atol=1e-14)
    np.testing.assert_allclose(after.clients.dual, state.clients.dual, atol=1e-14)


def test_skipped_rounds_send_nothing() -> None:
    f = quadratic()
    always = FedPD(eta=0.01)
    snapshots = list(islice(iterate(always, f, participation=CommunicateWithProbability(probability=0.5)), 40))
    sent = {s.round.communicate: (s.floats_up, s.floats_down) for s in snapshots[1:]}
    assert sent == {True: (20, 20), False: (0, 0)}
