"""The problem and the methods of Figure 2 of the FedPD paper, with their constants."""

from __future__ import annotations

from typing import Any

from dualopt.losses import Logistic
from dualopt.methods import Algorithm, FedAvg, FedPD, FedProx, OldDualFedPD
from dualopt.methods.participation import CommunicateWithProbability, Full, Participation
from dualopt.objectives import NonconvexPenalty, linear_model
from dualopt.problem.data import load
from dualopt.solvers import Gradient, LocalSolver, Sarah
from dualopt.solvers.stopping import Steps
from figures._falling_sgd import FallingSGD

__all__ = ["methods", "problem"]

CLIENTS = 100
SEED = 0
ETA = 0.08
GRADIENT_STEPS, SGD_STEPS = 8, 600


def problem(data: str, **options: Any) -> NonconvexPenalty:
    r"""Return logistic losses of 100 clients with the penalty :math:`\sum_k 0.1 x_k^2 / (1 + x_k^2)`, no ridge.

    Parameters
    ----------
    data : str
        "synthetic-fedpd-weak" or "synthetic-fedpd-strong".
    **options
        Options of the data set.
    """
    rows = load(data, seed=SEED, clients=CLIENTS, **options)
    labels = rows.y.astype(rows.X.dtype)
    losses = linear_model(rows.X, labels, loss=Logistic(), mu=0.0, clients=CLIENTS, intercept=False)
    return NonconvexPenalty(objective=losses, lam=0.1, alpha=1.0)


def methods(quick: bool) -> dict[str, tuple[Algorithm, Participation]]:
    r"""Return the method of every curve and when it communicates, without those with SGD when ``quick``.

    Local steps, batches of one row and the refreshing of FedPD-VR every 20 rounds come from the paper (its published
    code has 2 steps and 100 rounds for FedPD-VR). Step sizes, which the paper does not state, come from the code:
    :math:`\eta = 0.08`, also for the steps on the augmented Lagrangian, so that FedPD-GD does
    :math:`x \leftarrow x_0 - \eta(\nabla f_j(x) + \lambda_j)` and FedPD-VR the same with its estimate
    (:math:`\gamma = \infty`); 0.005 for FedAvg-GD; falling ones from 0.04 for FedAvg-SGD and from 0.08 for FedPD-SGD;
    for FedProx 0.04 on :math:`f_j + \tfrac{2.5}2 |\cdot - \theta|^2`, with the full gradient in every round. All of
    FedPD uploads :math:`\theta_j + \eta\lambda_j` with the dual of before the round, as the code does, but for one
    curve that follows Algorithm 2 of the paper.
    """
    steps, many = Steps(steps=GRADIENT_STEPS), Steps(steps=SGD_STEPS)
    always, half = Full(), CommunicateWithProbability(probability=0.5)
    descent = Gradient(step=ETA)
    found = {
        "FedPD-GD, p = 0": (_fedpd(descent, steps), always),
        "FedPD-GD, p = 0, Algorithm 2": (FedPD(eta=ETA, solver=descent, stop=steps), always),
        "FedPD-GD, p = 0.5": (_fedpd(descent, steps), half),
        "FedPD-VR": (_fedpd(_sarah(ETA, weight=1.0 / ETA, refresh=20), steps), always),
        "FedPD-SGD": (_fedpd(FallingSGD(step=ETA), many), always),
        "FedAvg-GD": (FedAvg(solver=Gradient(step=0.005), stop=steps), always),
        "FedAvg-SGD": (FedAvg(solver=FallingSGD(step=0.04, fall="harmonic"), stop=many), always),
        "FedProx-VR": (FedProx(mu_prox=2.5, solver=_sarah(0.04, weight=2.5, refresh=1), stop=steps), always),
    }
    return {label: method for label, method in found.items() if not (quick and label.endswith("SGD"))}


def _fedpd(solver: LocalSolver, stop: Steps) -> FedPD:
    return OldDualFedPD(eta=ETA, solver=solver, stop=stop)


def _sarah(step: float, *, weight: float, refresh: int) -> Sarah:
    """Return the solver that moves by ``step`` times the estimated gradient of the local problem.

    It moves by ``gamma / (1 + gamma weight)``, so that ``step = 1 / weight`` needs an infinite ``gamma``: to rounding,
    1e12 is one.
    """
    left = 1.0 - step * weight
    return Sarah(gamma=step / left if left > 1e-12 else 1e12, batch=1, refresh=refresh)
