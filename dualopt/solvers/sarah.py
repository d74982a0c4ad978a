"""Variance-reduced proximal gradient steps: Oracle II of FedPD."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from dualopt.arrays._checks import Typed
from dualopt.arrays.streams import Round, first_round
from dualopt.arrays.tree import merge_clients, take_clients
from dualopt.arrays.xp import Array, host_places
from dualopt.objectives.local_problem import LocalProblem, per_client
from dualopt.solvers._loop import LocalSolution, equal_rows, nowhere, require_sampling, sampled_solution
from dualopt.solvers.stopping import Steps, Stop

__all__ = ["Sarah"]


class SolverState(NamedTuple):
    """What is kept between rounds."""

    theta: Array  # (N, *shape)  where the last call ended; NaN before the first one
    estimate: Array  # (N, *shape)  g_j, the estimate of grad f_j there


@dataclass(frozen=True, kw_only=True)
class Sarah(Typed):
    r"""Linearised proximal steps with a recursive gradient estimator (FedPD, Algorithm 4).

    For :math:`F_j = f_j + \langle b, \cdot\rangle + \tfrac{w}{2} |\cdot - c|^2`, with one
    sample at both points (SARAH; Nguyen, Liu, Scheinberg and Takac 2017),

    .. math::
        \theta^+ &= \arg\min_x \langle g + b, x\rangle + \tfrac{w}{2} |x - c|^2
                    + \tfrac{1}{2\gamma} |x - \theta|^2
                  = \frac{\theta - \gamma (g + b - w c)}{1 + \gamma w} \\
        g^+ &= g + \frac1B \sum_{b=1}^B \bigl(\nabla f_{i_b}(\theta^+) - \nabla f_{i_b}(\theta)\bigr).

    With :math:`w = 1/\eta` the first line is the convex combination in the paper. The estimate is kept from round to
    round and replaced by the full gradient in rounds ``0, refresh, 2 refresh, ...``. It belongs to the point where the
    client's last call ended: a client that has made no call, or starts elsewhere, computes the full gradient as well.
    Under partial participation a client that is inactive in the rounds of a refresh keeps its old estimate until it is
    active in one; the paper has full participation.

    Like ``SGD`` it knows nothing about its accuracy: there is no ``evaluation``, and ``gap`` is infinite. A full
    gradient counts 1 and a step ``2 B / m_j``.

    Parameters
    ----------
    gamma : float
        Length of a step; the paper's :math:`\gamma`.
    batch : int or None, default 1
        Number ``B`` of rows of a step, drawn uniformly with replacement; ``None`` takes every row once, which keeps
        ``g`` equal to the full gradient.
    refresh : int, default 20
        The paper's ``I``.

    Raises
    ------
    ValueError
        If a parameter is out of range; if the rule is not ``Steps``; if the objective has no ``draw`` and
        ``sample_gradient``.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.losses import Squared
    >>> from dualopt.objectives import LocalProblem, linear_model
    >>> f = linear_model(np.ones((4, 1)), np.ones(4), loss=Squared(), mu=0.0, intercept=False)
    >>> problem = LocalProblem(objective=f, weight=1.0, center=np.zeros(1))
    >>> sol = Sarah(gamma=1.0)(problem, np.zeros((1, 1)), Steps(steps=2))
    >>> sol.theta.tolist(), sol.gradients
    ([[0.5]], (2.0,))
    """

    gamma: float
    batch: int | None = 1
    refresh: int = 20

    def __post_init__(self) -> None:
        if not self.gamma > 0:
            raise ValueError(f"gamma must be positive, not {self.gamma}.")
        if self.batch is not None and self.batch < 1:
            raise ValueError(f"batch must be at least 1, or None for every row, not {self.batch}.")
        if self.refresh < 1:
            raise ValueError(f"refresh must be at least 1, not {self.refresh}.")

    def initial_state(self, objective: Any) -> SolverState:
        """Return no estimate for every client; refuse an objective without samples."""
        require_sampling("sarah", objective)
        return SolverState(nowhere(objective), nowhere(objective))

    def __call__(
        self, problem: LocalProblem, start: Array, stop: Stop, solver_state: Any = (), round: Round | None = None
    ) -> LocalSolution:
        """Take the steps from ``start``."""
        f: Any = problem.objective
        if not isinstance(stop, Steps):
            raise ValueError(f"solver 'sarah' computes nothing that {stop} could be tested on: use Steps.")
        round = round or first_round(problem.n_clients)
        estimate, rows = self._start(f, start, solver_state or self.initial_state(f), round)
        rngs = round.rngs()
        theta, linear = start, problem.linear_term()
        gamma = self.gamma if problem.unit is None else self.gamma / problem.unit
        shrink, gamma = per_client(1.0 + gamma * problem.weight, start), per_client(gamma, start)
        for _ in range(stop.steps):
            last, theta = theta, (theta - gamma * (estimate + linear)) / shrink
            sample = f.draw(rngs, self.batch)
            estimate = estimate + (f.sample_gradient(theta, sample) - f.sample_gradient(last, sample))
            rows = [used + 2 * len(drawn) for used, drawn in zip(rows, sample, strict=True)]
        return sampled_solution(problem, theta, rows=rows, solver_state=SolverState(theta, estimate))

    def _start(self, objective: Any, start: Array, last: SolverState, round: Round) -> tuple[Array, list[int]]:
        """Return the estimates at ``start`` and the rows that were used for them."""
        everyone = list(range(objective.n_clients))
        new = everyone if round.n % self.refresh == 0 else host_places(~equal_rows(last.theta, start))
        if not new:
            return last.estimate, [0] * len(everyone)
        full = objective.select(new).gradient(take_clients(start, new))
        return merge_clients(last.estimate, full, new), [m if j in new else 0 for j, m in enumerate(objective.sizes)]
