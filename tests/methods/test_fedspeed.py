"""FedSpeed's server step: the mean of the active augmented models, a part of the way to it, or beyond."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest

from dualopt.engine.rounds import iterate
from dualopt.methods import FedSpeed
from dualopt.methods.participation import UniformSubset
from dualopt.solvers import Exact
from tests.problems import lopsided


@pytest.mark.parametrize("options", [{}, {"server_step": 0.5}, {"server_step": 1.5}], ids=str)
def test_the_server_moves_by_its_step(options: dict[str, Any]) -> None:
    f, rho, chance = lopsided(), 30.0, UniformSubset(size=2)
    method = FedSpeed(rho=rho, radius=0.0, solver=Exact(), **options)
    step = options.get("server_step", 1.0)
    theta, dual = np.array([1.0, -2.0, 3.0, 0.5]), np.zeros((4, 4))
    for s in islice(iterate(method, f, theta0=theta, participation=chance), 12):
        sent = []
        for j in s.round.clients:
            x = np.linalg.solve(f.A[j] + rho * np.eye(4), f.b[j] - dual[j] + rho * theta)
            dual[j] += rho * (x - theta)
            sent.append(x + dual[j] / rho)
        theta = theta + step * (np.mean(sent, axis=0) - theta)
        np.testing.assert_allclose(s.server.theta, theta, rtol=1e-11, atol=1e-12)
