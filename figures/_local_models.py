"""The latest local models of all clients, inactive ones included."""

from __future__ import annotations

from typing import Any

import numpy as np

from dualopt.arrays.xp import to_numpy
from dualopt.engine.rounds import Snapshot
from dualopt.objectives import Objective

__all__ = ["LocalModels"]


class LocalModels:
    r"""The latest local model :math:`\theta_j` of every client of one run; before its first, where the run starts.

    Parameters
    ----------
    objective : Objective
        The clients.
    start : array, shape ``shape`` or ``(N, *shape)``, optional
        Where the run starts, or the latest models of a run that goes on; zero when not given.

    Examples
    --------
    >>> from dualopt.methods import FedAvg
    >>> from dualopt.engine.rounds import iterate
    >>> from dualopt.objectives import Quadratic
    >>> from dualopt.methods.participation import Schedule
    >>> from dualopt.solvers.stopping import Steps
    >>> f = Quadratic(A=np.ones((2, 1, 1)), b=np.array([[1.0], [3.0]]))
    >>> run = iterate(FedAvg(stop=Steps(steps=1)), f, participation=Schedule(clients=((1,),)))
    >>> LocalModels(f).after(next(run)).tolist()
    [[0.0], [3.0]]
    """

    def __init__(self, objective: Objective, start: Any = None) -> None:
        first = np.asarray(objective.zeros() if start is None else start)
        self._theta = np.broadcast_to(first, (objective.n_clients, *objective.shape)).copy()

    def after(self, snapshot: Snapshot) -> np.ndarray:
        """Return them after a round, shape ``(N, *shape)``; every round must be shown, in order."""
        if snapshot.local_models is not None:
            self._theta[list(snapshot.round.clients)] = to_numpy(snapshot.local_models)
        return self._theta
