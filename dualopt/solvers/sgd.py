"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dualopt.arrays._checks import Typed
from dualopt.arrays.streams import Round, first_round
from dualopt.arrays.tree import take_clients
from dualopt.arrays.xp import Array, array_namespace, asarray_like
from dualopt.objectives.local_problem import LocalProblem, client_dot, per_client
from dualopt.solvers._loop import LocalSolution, assemble, require_sampling, sampled_solution
from dualopt.solvers.stopping import Steps, Stop

__all__ = ["SGD"]


@dataclass(frozen=True, kw_only=True)
class SGD(Typed):
    r"""Stochastic gradient descent, :math:`\theta_j \leftarrow \theta_j - \text{step}\,\text{decay}^n\, G_j(\theta_j)`.

    :math:`G_j` estimates :math:`\nabla F_j` from ``batch`` rows of client ``j``, and ``n`` is the round, so that the
    step is the same throughout a round. With ``Steps(k)`` there are ``k`` steps, each on fresh rows drawn uniformly
    with replacement. With ``epochs`` given, there are that many passes over the client's own rows, shuffled anew in
    each pass and cut into batches, the last one smaller when they do not divide; the stopping rule is then not looked
    at, and clients of different sizes take different numbers of steps.

    No full gradient and no value is ever computed, so the solution carries no information for certificates: there is
    no ``evaluation``, and ``gap`` is infinite. One gradient is counted for every ``m_j`` rows used.

    Parameters
    ----------
    step : float
        Step size in round 0.
    batch : int, default 50
        Rows of a step.
    epochs : int, optional
        Passes over the rows; when not given, the number of steps is that of the stopping rule.
    decay : float, default 1
        Factor of the step from round to round, in (0, 1].
    max_norm : float, optional
        A longer ``G_j`` is scaled to this norm, the linear and the proximal term included. The training code of FedDyn
        clips at 10, there before the terms in ``theta_j`` itself (weight decay and ``alpha theta_j``) are added.

    Raises
    ------
    ValueError
        If a parameter is out of range; if ``epochs`` is not given and the rule is not ``Steps``; if the objective has
        no ``draw`` and ``sample_gradient``.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.losses import Squared
    >>> from dualopt.objectives import LocalProblem, linear_model
    >>> f = linear_model(np.ones((4, 1)), np.ones(4), loss=Squared(), mu=0.0, intercept=False)
    >>> sol = SGD(step=0.5, batch=3)(LocalProblem(objective=f), np.zeros((1, 1)), Steps(steps=2))
    >>> sol.theta.tolist(), sol.gradients
    ([[0.75]], (1.5,))
    """

    step: float
    batch: int = 50
    epochs: int | None = None
    decay: float = 1.0
    max_norm: float | None = None

    def __post_init__(self) -> None:
        if not self.step > 0:
            raise ValueError(f"step must be positive, not {self.step}.")
        if self.batch < 1:
            raise ValueError(f"batch must be at least 1, not {self.batch}.")
        if self.epochs is not None and self.epochs < 1:
            raise ValueError(f"epochs must be at least 1, not {self.epochs}.")
        if not 0 < self.decay <= 1:
            raise ValueError(f"decay must lie in (0, 1], not {self.decay}.")
        if self.max_norm is not None and not self.max_norm > 0:
            raise ValueError(f"max_norm must be positive, not {self.max_norm}.")

    def initial_state(self, objective: Any) -> Any:
        """Return ``()``; refuse an objective without samples here, before the first round."""
        require_sampling("sgd", objective)
        return ()

    def __call__(
        self, problem: LocalProblem, start: Array, stop: Stop, solver_state: Any = (), round: Round | None = None
    ) -> LocalSolution:
        """Run stochastic gradient descent from ``start``."""
        require_sampling("sgd", problem.objective)
        round = round or first_round(problem.n_clients)
        length = self.step * self.decay**round.n
        whole, theta, running = problem, start, list(range(problem.n_clients))
        finished: list[tuple[list[int], Array]] = []
        rows = [0] * problem.n_clients
        for clients, sample in self._samples(problem.objective, stop, round):
            if clients != running:  # those without further batches are put aside
                leave = [position for position, j in enumerate(running) if j not in clients]
                keep = [position for position, j in enumerate(running) if j in clients]
                finished.append(([running[position] for position in leave], take_clients(theta, leave)))
                theta, problem, running = take_clients(theta, keep), problem.select(keep), clients
            for j, drawn in zip(clients, sample, strict=True):
                rows[j] += len(drawn)
            change = -length * self._clip(problem.asked(problem.sample_gradient(theta, sample)))
            change += theta
            theta = change
        theta = assemble([*finished, (running, theta)])
        return sampled_solution(whole, theta, rows=rows, length=self._length(whole.objective, stop, round))

    def _length(self, objective: Any, stop: Stop, round: Round) -> float | Array:
        """Return the sum of the step sizes of a call, one number for all clients or ``(N,)``."""
        step = self.step * self.decay**round.n
        if self.epochs is None:
            assert isinstance(stop, Steps)  # _samples has refused other rules
            return step * stop.steps
        return asarray_like([step * self.epochs * -(-m // self.batch) for m in objective.sizes], objective.zeros())

    def _samples(self, objective: Any, stop: Stop, round: Round) -> Iterator[tuple[list[int], Any]]:
        """Yield, step by step, the clients that go on and the rows that they use."""
        rngs = round.rngs()
        everyone = list(range(objective.n_clients))
        if self.epochs is None:
            if not isinstance(stop, Steps):
                raise ValueError(f"solver 'sgd' computes nothing that {stop} could be tested on: use Steps, or epochs.")
            for _ in range(stop.steps):
                yield everyone, objective.draw(rngs, self.batch)
            return
        plans = [self._shuffled(rng, m, self.epochs) for rng, m in zip(rngs, objective.sizes, strict=True)]
        for i in range(max(len(plan) for plan in plans)):
            clients = [j for j in everyone if i < len(plans[j])]
            yield clients, tuple(plans[j][i] for j in clients)

    def _shuffled(self, rng: Any, m: int, epochs: int) -> list[Any]:
        """Return the batches of all passes of one client."""
        passes = [rng.permutation(m) for _ in range(epochs)]
        return [order[i : i + self.batch] for order in passes for i in range(0, m, self.batch)]

    def _clip(self, gradient: Array) -> Array:
        if self.max_norm is None:
            return gradient
        xp = array_namespace(gradient)
        norm = xp.sqrt(client_dot(gradient, gradient))
        long = norm > self.max_norm
        one = xp.ones_like(norm)
        return per_client(xp.where(long, self.max_norm / xp.where(long, norm, one), one), gradient) * gradient
