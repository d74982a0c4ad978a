r"""FedDyn for clients of unequal size: the weights inside the losses, or :math:`\alpha/w_j` as in the authors' code."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np

from dualopt.algorithms import FedDyn
from dualopt.claims import Inequality, claim
from dualopt.engine import iterate
from dualopt.losses import Squared
from dualopt.objectives import linear_model
from dualopt.participation import UniformSubset
from dualopt.solvers import Exact
from dualopt.xp import Array
from theory._claims import ExpectedVerdict, deviation
from theory.identities._runs import EXACT

SIZES = (3, 5, 12)


class Unequal(NamedTuple):
    """Least squares on clients of unequal size."""

    name: str
    alpha: float
    participation: UniformSubset
    rounds: int

    def rows(self) -> tuple[Array, Array, list[list[int]]]:
        """Return features, labels and the rows of each client."""
        rng = np.random.default_rng(2)
        X, y = rng.standard_normal((sum(SIZES), 3)), rng.standard_normal(sum(SIZES))
        return X, y, [part.tolist() for part in np.split(np.arange(sum(SIZES)), np.cumsum(SIZES)[:-1])]


def authors(case: Unequal) -> Iterator[Array]:
    r"""Yield the cloud models of the authors' update.

    The local loss is :math:`\frac1{n_j}\sum_i \phi_i(\theta) + \alpha_j\bigl(\frac12|\theta|^2 +
    \langle\theta, p_j - \text{cloud}\rangle\bigr)` with :math:`\alpha_j = \alpha/w_j`, :math:`w_j = Nn_j/\sum n`; then
    :math:`p_j \mathrel{+}= \theta_j - \text{cloud}`, cloud = mean of the active :math:`\theta_j` + mean of all p.
    """
    X, y, parts = case.rows()
    local = np.zeros((len(parts), X.shape[1]))
    cloud = np.zeros(X.shape[1])
    for round in islice(case.participation.rounds(len(parts), seed=0), case.rounds):
        models = []
        for j in round.clients:
            rows, n = parts[j], len(parts[j])
            alpha = case.alpha / (len(parts) * n / len(y))
            matrix = X[rows].T @ X[rows] / n + alpha * np.eye(X.shape[1])
            model = np.linalg.solve(matrix, X[rows].T @ y[rows] / n - alpha * (local[j] - cloud))
            local[j] += model - cloud
            models.append(model)
        cloud = np.mean(models, axis=0) + np.mean(local, axis=0)
        yield cloud


def identity_feddyn_rows_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """One client active, two, and all three."""
    for size in (1, 2, 3):
        yield ExpectedVerdict(Unequal(f"{size} of 3 clients active", 4.0, UniformSubset(size=size), 20))


@claim(
    source="FedDyn, the authors' published code for unbalanced data",
    statement=r"With $w_j = Nn_j/\sum_i n_i$: FedDyn on $w_j f_j$ (rows weigh alike) has the cloud models of the"
    r" authors' update with $\alpha_j = \alpha/w_j$ on the clients' own means.",
    rounding=0.0,
    cases=identity_feddyn_rows_cases,
)
def identity_feddyn_rows(case: Unequal) -> Iterator[Inequality]:
    """Compare with FedDyn on losses that carry their weights."""
    X, y, parts = case.rows()
    f = linear_model(X, y, loss=Squared(), mu=0.0, clients=parts, intercept=False, weights="rows")
    run = iterate(FedDyn(alpha=case.alpha, solver=Exact()), f, participation=case.participation)
    for n, (cloud, s) in enumerate(zip(authors(case), run, strict=False), start=1):
        yield Inequality(n, deviation(cloud, s.server.theta), EXACT, "models")
