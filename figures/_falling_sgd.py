"""Local SGD on single rows with steps that fall from step to step, as in the published code of FedPD."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.losses import Loss
from dualopt.methods.participation import Round, first_round
from dualopt.objectives import LinearModel, LocalProblem, NonconvexPenalty
from dualopt.regularisers import Zero
from dualopt.solvers import LocalSolution
from dualopt.solvers._loop import sampled_solution
from dualopt.solvers.stopping import Steps, Stop

__all__ = ["FallingSGD"]

FALLS = ("root", "harmonic")


@dataclass(frozen=True, kw_only=True)
class FallingSGD:
    r"""Stochastic gradient steps on one row each, whose length falls within a round and from round to round.

    Step ``q = 1..Q`` of round ``n = 0, 1, ...`` has the length ``step`` times

    .. math:: (Q n / 5 + q)^{-1/2} \quad\text{("root")}, \qquad
              (Q n + q)^{-1} \text{ for } q > 1 \text{ and } (Q n / 5 + 1)^{-1/2} \text{ for } q = 1
              \quad\text{("harmonic")}.

    FedPD-SGD has the first, FedAvg-SGD the second in the authors' code; the paper states neither. The rows of a round
    are drawn at once, uniformly with replacement. It serves penalised linear models whose rows of a client count alike.

    Parameters
    ----------
    step : float
        Length of the very first step.
    fall : str, default "root"
        "root" or "harmonic".

    Raises
    ------
    ValueError
        If a parameter is out of range, the objective is not a penalised linear model, or the rule is not ``Steps``.

    Examples
    --------
    >>> solver = FallingSGD(step=1.0)
    >>> [round(solver.length(n, q, 100), 3) for n, q in ((0, 1), (0, 100), (1, 1))]
    [1.0, 0.1, 0.218]
    """

    step: float
    fall: str = "root"

    def __post_init__(self) -> None:
        if not self.step > 0:
            raise ValueError(f"step must be positive, not {self.step}.")
        if self.fall not in FALLS:
            raise ValueError(f"fall must be one of {', '.join(FALLS)}, not {self.fall!r}.")

    def initial_state(self, objective: Any) -> Any:
        """Return ``()``; refuse an objective of another kind."""
        if not (isinstance(objective, NonconvexPenalty) and isinstance(objective.objective, LinearModel)):
            raise ValueError("solver 'FallingSGD' needs a penalised linear model.")
        return ()

    def length(self, n: int, q: int, steps: int) -> float:
        """Return the length of step ``q`` (from 1) of ``steps`` in round ``n`` (from 0)."""
        if self.fall == "harmonic" and q > 1:
            return self.step / (steps * n + q)
        return self.step / math.sqrt(steps * n / 5 + q)

    def __call__(
        self, problem: LocalProblem, start: Array, stop: Stop, solver_state: Any = (), round: Round | None = None
    ) -> LocalSolution:
        """Take the steps from ``start``."""
        if not isinstance(stop, Steps):
            raise ValueError(f"solver 'FallingSGD' computes nothing that {stop} could be tested on: use Steps.")
        penalised: Any = problem.objective
        round = round or first_round(problem.n_clients)
        X, y = _gather(penalised.objective, penalised.draw(round.rngs(), stop.steps))
        theta = start
        for q in range(stop.steps):
            row = replace(penalised, objective=_Row(penalised.objective.loss, X[q], y[q]))
            length = self.length(round.n, q + 1, stop.steps)
            theta = theta - length * (row.gradient(theta) + problem.added_gradient(theta))
        return sampled_solution(problem, theta, rows=[stop.steps] * problem.n_clients)


@dataclass(frozen=True)
class _Row:
    """The losses of one row of every client: features ``(N, p)``, labels ``(N,)``."""

    regulariser: ClassVar[Zero] = Zero()

    loss: Loss
    X: Array
    y: Array

    def gradient(self, theta: Array) -> Array:
        return self.loss.gradient(np.sum(self.X * theta, axis=-1), self.y)[:, None] * self.X


def _gather(model: LinearModel, sample: Any) -> tuple[Array, Array]:
    """Copy the rows of a sample, step by step: ``(Q, N, p)`` and ``(Q, N)``.

    At a row per client, looking rows up anew in every step takes longer than the step.
    """
    pairs = [(X[rows], y[rows]) for (X, y, _), rows in zip(model.client_rows(), sample, strict=True)]
    return np.stack([X for X, _ in pairs], axis=1), np.stack([y for _, y in pairs], axis=1)
