"""What the figures of the FedDyn paper share: its synthetic problem, and the parameters that it searches."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from dualopt.losses import Multinomial
from dualopt.methods import Algorithm, FedAvg, FedDyn, FedProx, Scaffold
from dualopt.methods.participation import UniformSubset
from dualopt.objectives import LinearModel, linear_model
from dualopt.problem.data import encode_labels, load, natural
from dualopt.solvers import SGD
from dualopt.solvers.stopping import Steps

__all__ = ["PARTICIPATION", "SETTINGS", "TITLES", "grid", "local_solver", "problem"]

TITLES = {
    "homogeneous": "homogeneous",
    "models": "type 1: models differ",
    "features": "type 2: features differ",
    "sizes": "type 3: sizes differ",
}
SETTINGS = tuple(TITLES)
CLASSES = 5
WEIGHT_DECAY = 1e-5
BATCH = 10
MAX_NORM = 10.0  # of a step's gradient, from the authors' code
PARTICIPATION = UniformSubset(size=2)  # 10% of 20 devices
SEED = 0

RATES = (1.0, 0.1)
EPOCHS = {False: (1, 10, 50), True: (10,)}
ALPHAS = {False: (0.1, 0.01, 0.001), True: (0.01, 0.001)}
PROXIMAL = {False: (1e-2, 1e-4), True: (1e-4,)}
STEPS = {False: (20, 200, 1000), True: (200,)}


@lru_cache(maxsize=1)  # neighbouring runs share their problem
def problem(setting: str) -> LinearModel:
    """Return multinomial regression on the synthetic data, ``E`` being the mean over all rows.

    A client's share of the rows is a factor inside its loss, so that the steps of large clients are longer by it; the
    authors' code averages models by these weights instead, for the methods without duals.
    """
    data = load("synthetic-feddyn", setting=setting, seed=SEED)
    clients = [rows.tolist() for rows in natural(data.clients)]
    loss = Multinomial(classes=CLASSES)
    y = encode_labels(data.y, loss.labels)
    weights = np.full(len(y), len(clients) / len(y))
    return linear_model(data.X, y, loss=loss, mu=WEIGHT_DECAY, clients=clients, weights=weights)


def local_solver(rate: float, epochs: int | None) -> SGD:
    """Return the stochastic gradient steps of all methods."""
    return SGD(step=rate, batch=BATCH, epochs=epochs, max_norm=MAX_NORM)


def grid(method: str, quick: bool) -> dict[str, Algorithm]:
    """Return the candidates of Appendix A.1.1 for one of FedDyn, SCAFFOLD, FedAvg and FedProx; fewer in quick mode.

    Examples
    --------
    >>> [len(grid(method, False)) for method in ("feddyn", "scaffold", "fedavg", "fedprox")]
    [18, 6, 6, 12]
    """
    epochs = EPOCHS[quick]
    if method == "fedavg":
        return {_label(rate, e): FedAvg(solver=local_solver(rate, e)) for rate in RATES for e in epochs}
    if method == "fedprox":
        return {
            f"{_label(rate, e)}, mu={weight:g}": FedProx(mu_prox=weight, solver=local_solver(rate, e))
            for rate in RATES
            for e in epochs
            for weight in PROXIMAL[quick]
        }
    if method == "feddyn":
        return {
            f"{_label(rate, e)}, alpha={alpha:g}": FedDyn(alpha=alpha, solver=local_solver(rate, e))
            for rate in RATES
            for e in epochs
            for alpha in ALPHAS[quick]
        }
    return {
        f"rate={rate:g}, K={k}": Scaffold(solver=local_solver(rate, None), stop=Steps(steps=k))
        for rate in RATES
        for k in STEPS[quick]
    }


def _label(rate: float, epochs: int) -> str:
    return f"rate={rate:g}, epochs={epochs}"
