"""The experiment of the FedDyn paper with a network on MNIST: rows, splits, and the parameters of its Appendix A.2."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dualopt.methods import Algorithm, FedAvg, FedDyn, FedProx, Scaffold
from dualopt.methods.participation import Bernoulli, Full, Participation
from dualopt.objectives import MLP, mlp
from dualopt.problem.data import encode_labels, load, partition, subsample
from dualopt.solvers import SGD
from figures._settings import SEED, SHUFFLED

__all__ = [
    "CLIENTS",
    "LAYERS",
    "LEGEND",
    "SPLITS",
    "WEIGHT_DECAY",
    "Images",
    "Row",
    "active",
    "epochs_of",
    "images",
    "method",
    "pooled",
]

LEGEND = {"feddyn": "FedDyn", "scaffold": "SCAFFOLD", "fedavg": "FedAvg", "fedprox": "FedProx"}
CLIENTS = 100
LAYERS = (200, 200)  # as the authors' code has them: "200 and 100" of Appendix A.2 are those of MNIST and of EMNIST
SPLITS = {"iid": None, "Dirichlet 0.6": 0.6, "Dirichlet 0.3": 0.3}
RATE = 0.1
BATCH = 50
WEIGHT_DECAY = 1e-4
MAX_NORM = 10.0  # of a step's gradient, from the authors' code
DECAY = 0.998  # of the rate, from round to round, unless everybody takes part
# Passes over the own rows; SCAFFOLD's K = 600 are 50 of them. Those of FedProx are not stated: as FedAvg.
EPOCHS = {"feddyn": 50, "scaffold": 50, "fedavg": 10, "fedprox": 10}
EPOCHS_OF_ALL = EPOCHS | {"fedavg": 20, "fedprox": 20}
POOLED_EPOCHS = 10  # before the rate is halved, as it is twice; the paper takes 50, which needs minutes more
HELD_OUT = 5  # of data without a test part, one row in so many


class Row(NamedTuple):
    """An accuracy of the paper's tables, and the models sent until it over those of a round of FedAvg."""

    accuracy: float  # percent
    feddyn: int
    scaffold: int  # two models a round
    fedavg: int
    fedprox: int


def active(percent: int) -> Participation:
    """Return who takes part, as the authors' code draws: each client with this probability, again if that is nobody.

    Examples
    --------
    >>> active(10).probability, active(100)
    (0.1, Full())
    """
    return Full() if percent == 100 else Bernoulli(probability=percent / 100.0, nonempty=True)


@dataclass(frozen=True, kw_only=True, eq=False)
class Images:
    """Rows for training and for testing, in float32.

    Parameters
    ----------
    X, y : array
        Features ``(m, d)``, shifted and scaled to mean 0 and deviation 1 over all training features together, and
        classes ``(m,)``.
    X_test, y_test : array
        Rows that no client has.
    classes : int
        Number of classes.
    center, unit : float or array, shape (channels, 1)
        Features are ``(pixels - center)/unit``.
    """

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    classes: int
    center: Any = 0.0
    unit: Any = 1.0

    def clients(self, split: str) -> list[np.ndarray]:
        """Return the rows of each of 100 clients in one of ``SPLITS``."""
        alpha = SPLITS[split]
        rule, options = ("iid", {}) if alpha is None else ("dirichlet-clients", {"alpha": alpha})
        return partition(rule, self.y, CLIENTS, seed=SEED, **options)

    def network(self, split: str) -> MLP:
        """Return the network of the clients of a split."""
        return self._network(self.clients(split))

    def together(self) -> MLP:
        """Return the network with all rows at one client."""
        return self._network([np.arange(len(self.y))])

    def _network(self, clients: list[np.ndarray]) -> MLP:
        rows = [part.tolist() for part in clients]
        return mlp(self.X, self.y, layers=LAYERS, classes=self.classes, clients=rows, ridge=WEIGHT_DECAY)


@lru_cache(maxsize=1)
def images(data: str, data_home: Path | None, rows: int | None) -> Images:
    """Return the rows of a data set, with all of its test part, or else a fifth of the rows, for testing.

    Parameters
    ----------
    data : str
        Name of the data set.
    data_home : Path, optional
        The user's folder of data sets.
    rows : int, optional
        Use so many training rows, drawn at random.

    Examples
    --------
    >>> found = images("digits", None, 500)
    >>> found.X.shape, found.X_test.shape, found.X.dtype.name, found.classes
    ((500, 64), (359, 64), 'float32', 10)
    """
    whole = load(data, data_home=data_home, dtype="float32")
    X, y = whole.X, encode_labels(whole.y, "class")
    if data in SHUFFLED:
        test = load(data, data_home=data_home, dtype="float32", split="test")
        X_test, y_test = test.X, encode_labels(test.y, "class", classes=whole.y)
    else:
        order = np.random.default_rng(SEED).permutation(len(y))
        held, kept = np.split(order, [len(y) // HELD_OUT])
        X, y, X_test, y_test = X[kept], y[kept], X[held], y[held]
    center, spread = X.mean(dtype=np.float64), X.std(dtype=np.float64)
    if rows is not None:
        chosen = subsample(y, rows, SEED)
        X, y = X[chosen], y[chosen]
    scaled, scaled_test = (((part - center) / spread).astype(np.float32) for part in (X, X_test))
    classes = int(y.max()) + 1
    return Images(X=scaled, y=y, X_test=scaled_test, y_test=y_test, classes=classes, center=center, unit=spread)


def method(name: str, percent: int, split: str) -> Algorithm:
    """Return a method with the parameters that the appendix states for a percentage of active clients and a split.

    Examples
    --------
    >>> [method("feddyn", *cell).alpha for cell in ((10, "iid"), (1, "iid"), (10, "Dirichlet 0.3"))]
    [0.03, 0.01, 0.01]
    """
    everybody = percent == 100
    solver = SGD(
        step=RATE,
        batch=BATCH,
        epochs=epochs_of(name, percent),
        decay=1.0 if everybody else DECAY,
        max_norm=MAX_NORM,
    )
    if name == "feddyn":
        return FedDyn(alpha=0.03 if (percent, split) == (10, "iid") else 0.01, solver=solver)
    if name == "scaffold":
        return Scaffold(solver=solver)
    if name == "fedprox":
        return FedProx(mu_prox=1e-4, solver=solver)
    return FedAvg(solver=solver)


def epochs_of(name: str, percent: int) -> int:
    """Return the passes over its rows that an active client makes in a round.

    Examples
    --------
    >>> epochs_of("feddyn", 10), epochs_of("fedavg", 10), epochs_of("fedavg", 100)
    (50, 10, 20)
    """
    return (EPOCHS_OF_ALL if percent == 100 else EPOCHS)[name]


def pooled() -> FedAvg:
    """Return the training of a pooled model: three rounds of a client that has all rows, the rate halved after each."""
    return FedAvg(solver=SGD(step=RATE, batch=BATCH, epochs=POOLED_EPOCHS, decay=0.5, max_norm=MAX_NORM))
