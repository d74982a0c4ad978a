"""FedPD and FedAvg against literal loops of the update of the authors' code, on the data of its recipe.

The problem is that of Figure 2 (b): 100 clients with 400 rows and 20 features, logistic losses with the nonconvex
penalty, eta = 0.08, Q = 8 steps of the length eta on the augmented Lagrangian, zero start; the generator is
``numpy.random.default_rng(0)`` and the measure ``|grad E|^2`` at the mean of the ``x_{0,j}`` before the round.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest

from dualopt.engine.rounds import iterate
from dualopt.losses import Logistic
from dualopt.methods import FedAvg, FedPD, OldDualFedPD
from dualopt.objectives import NonconvexPenalty, linear_model
from dualopt.problem.data import fedpd_synthetic
from dualopt.solvers import Gradient
from dualopt.solvers.stopping import Steps

CLIENTS, ROWS, D = 100, 400, 20
ETA, STEPS = 0.08, 8


class Literal:
    """Gradients by one formula, and the loops."""

    def __init__(self, X: np.ndarray, y: np.ndarray) -> None:
        self.signed = y[..., None] * X  # (N, m, d)

    def gradient(self, x: np.ndarray) -> np.ndarray:
        slope = -1.0 / (1.0 + np.exp((self.signed @ x[..., None])[..., 0]))
        return (slope[:, None, :] @ self.signed)[:, 0, :] / ROWS + 0.2 * x / (1.0 + x * x) ** 2

    def gap(self, x0: np.ndarray) -> float:
        return float(np.sum(self.gradient(np.tile(x0.mean(axis=0), (CLIENTS, 1))).mean(axis=0) ** 2))

    def fedpd(self, rounds: int, *, old: bool) -> list[float]:
        x0, gaps = np.zeros((CLIENTS, D)), []
        x, dual = x0, x0
        for _ in range(rounds):
            gaps.append(self.gap(x0))
            for _ in range(STEPS):
                x = x0 - ETA * (self.gradient(x) + dual)
            new = dual + (x - x0) / ETA
            upload = x + ETA * (dual if old else new)
            dual, x0 = new, np.tile(upload.mean(axis=0), (CLIENTS, 1))
        return gaps

    def fedavg(self, rounds: int, step: float) -> list[float]:
        x, gaps = np.zeros((CLIENTS, D)), []
        for _ in range(rounds):
            gaps.append(self.gap(x))
            for _ in range(STEPS):
                x = x - step * self.gradient(x)
            x = np.tile(x.mean(axis=0), (CLIENTS, 1))
        return gaps


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray]:
    X, y = fedpd_synthetic.draw(fedpd_synthetic._RECIPES["code"], np.random.default_rng(0), CLIENTS, ROWS, D)
    return X, y.astype(float)


@pytest.fixture(scope="module")
def literal(rows: tuple[np.ndarray, np.ndarray]) -> Literal:
    return Literal(*rows)


@pytest.fixture(scope="module")
def objective(rows: tuple[np.ndarray, np.ndarray]) -> NonconvexPenalty:
    X, y = rows
    f = linear_model(X.reshape(-1, D), y.reshape(-1), loss=Logistic(), mu=0.0, clients=CLIENTS, intercept=False)
    return NonconvexPenalty(objective=f, lam=0.1, alpha=1.0)


def measured(method: Any, objective: NonconvexPenalty, rounds: int) -> list[float]:
    """Return the gap before each round; FedPD's clients all have the server's model when every round communicates."""
    models = [objective.zeros(), *(s.server.theta for s in islice(iterate(method, objective), rounds - 1))]
    return [float(np.sum(objective.gradient(theta).mean(axis=0) ** 2)) for theta in models]


def fedpd_method(*, old: bool) -> FedPD:
    return (OldDualFedPD if old else FedPD)(eta=ETA, solver=Gradient(step=ETA), stop=Steps(steps=STEPS))


def test_the_authors_variant_has_the_digits_of_the_yardstick(objective: NonconvexPenalty, literal: Literal) -> None:
    """Before the rounds 0, 9 and 50: 1.7864608839031598e-03, 9.281422688037859e-04 and 4.684753031596945e-05."""
    found = measured(fedpd_method(old=True), objective, 51)
    np.testing.assert_allclose(found[:10], literal.fedpd(10, old=True), rtol=1e-8)
    digits = [1.7864608839031598e-03, 9.281422688037859e-04, 4.684753031596945e-05]
    np.testing.assert_allclose([found[n] for n in (0, 9, 50)], digits, rtol=1e-8)


def test_algorithm_2_uploads_the_new_dual(objective: NonconvexPenalty, literal: Literal) -> None:
    """8.813712067603695e-04 before round 9 (and 4.959512033894012e-05 before round 50)."""
    found = measured(fedpd_method(old=False), objective, 10)
    np.testing.assert_allclose(found, literal.fedpd(10, old=False), rtol=1e-8)
    np.testing.assert_allclose(found[9], 8.813712067603695e-04, rtol=1e-8)


@pytest.mark.parametrize(
    ("step", "ninth"), [(0.005, 1.2935970066539622e-03), (0.04, 1.334773790635042e-04)], ids=["short", "long"]
)
def test_local_gradient_descent(objective: NonconvexPenalty, literal: Literal, step: float, ninth: float) -> None:
    """Before round 50 it is at 2.9787071468355376e-04 (step 0.005) and 1.3035415101474093e-08 (step 0.04)."""
    found = measured(FedAvg(solver=Gradient(step=step), stop=Steps(steps=STEPS)), objective, 10)
    np.testing.assert_allclose(found, literal.fedavg(10, step), rtol=1e-8)
    np.testing.assert_allclose(found[9], ninth, rtol=1e-8)
