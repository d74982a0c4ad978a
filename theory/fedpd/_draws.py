r"""Oracle I with samples (Algorithm 3, Option II), with every draw enumerated.

A client is the mean of a few rows, :math:`F(x; \xi) = \frac12\langle x, A_\xi x\rangle - \langle b_\xi, x\rangle`. A
round is one of all the sequences of rows that the clients may draw and of both sides of the coin, each with its
probability, so that expectations given the past are finite sums. Rounds are affine maps of the state: expectations of
squares along whole runs follow from :math:`\mathbb E\,zz^\top \leftarrow \sum_k p_k M_k\,\mathbb E[zz^\top]\,M_k^\top`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice, product
from typing import Any, NamedTuple

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.lab.chance import Event, coin
from dualopt.methods import FedPD
from dualopt.methods.participation import CommunicateWithProbability, Round
from dualopt.objectives import LocalProblem, Quadratic
from dualopt.solvers import LocalSolution
from dualopt.solvers._loop import solution
from dualopt.solvers.stopping import Steps, Stop
from theory._cases import Case
from theory._rounds import Turn, affine, by_chance, flatten, path, round_matrices, second_moments, unflatten
from theory.fedpd._runs import known_of

__all__ = [
    "Drawn",
    "Rows",
    "Samples",
    "Sampling",
    "drawn_path",
    "rows",
    "sampled",
    "similar_rows",
    "squares",
]


@dataclass(frozen=True, kw_only=True)
class Drawn(Round):
    """A round whose rows are prescribed.

    Attributes
    ----------
    rows : tuple of tuple of int
        The rows of every client, step by step.
    """

    rows: tuple[tuple[int, ...], ...]

    def given(self, algorithm: Any) -> Any:
        """Return the method whose local solver takes these rows."""
        return replace(algorithm, solver=replace(algorithm.solver, rows=self.rows))


class Rows(NamedTuple):
    """The rows of all clients, which have the same number of them."""

    A: Array  # (N, m, d, d)
    b: Array  # (N, m, d)

    @property
    def objective(self) -> Quadratic:
        """The clients, means of their rows."""
        return Quadratic(A=np.mean(self.A, axis=1), b=np.mean(self.b, axis=1))


@dataclass(frozen=True, kw_only=True, eq=False)
class Samples:
    """Algorithm 3, Option II: gradient steps of one length, on one row each, which are given.

    It evaluates the local problem where it ends, for the accuracy that (9) is about; the steps do not use that.

    Attributes
    ----------
    data : Rows
        The rows.
    length : float
        The paper's ``eta_1``.
    rows : tuple of tuple of int
        Which rows every client takes, step by step.
    """

    data: Rows
    length: float
    rows: tuple[tuple[int, ...], ...] = ()

    def initial_state(self, objective: Any) -> Any:
        """Return ``()``."""
        return ()

    def __call__(
        self, problem: LocalProblem, start: Array, stop: Stop, solver_state: Any = (), round: Round | None = None
    ) -> LocalSolution:
        """Take the steps from ``start``."""
        assert self.rows  # a round gives them
        theta, clients = start, np.arange(problem.n_clients)
        for row in zip(*self.rows, strict=True):
            A, b = self.data.A[clients, row], self.data.b[clients, row]
            theta = theta - self.length * ((A @ theta[..., None])[..., 0] - b + problem.added_gradient(theta))
        counts = np.full(len(clients), float(len(self.rows[0])))
        status = ("converged",) * len(clients)
        return solution(problem, theta, problem.evaluate(theta), gradients=counts, status=status)


@dataclass(frozen=True, kw_only=True)
class Sampling(CommunicateWithProbability):
    """Every client draws rows with replacement, and all have one coin.

    Attributes
    ----------
    size : int
        Rows of a client.
    draws : int
        How many of them it draws: the paper's ``Q``.
    """

    size: int
    draws: int

    def events(self, n_clients: int, *, n: int, seed: int) -> list[Event]:
        """Return every sequence of rows of every client, with both sides of the coin."""
        own = list(product(range(self.size), repeat=self.draws))
        drawn = list(product(own, repeat=n_clients))
        return [
            Event(chance / len(drawn), Drawn(**{**vars(round), "rows": rows}))
            for chance, round in coin(n_clients, self.probability, n=n, seed=seed)
            for rows in drawn
        ]


def sampled(
    name: str,
    data: Rows,
    *,
    a: float,
    length: float | None = None,
    local_steps: int = 1,
    rounds: int = 12,
    skip: float = 0.0,
    theta0: Array | None = None,
) -> Case:
    r"""Start FedPD with samples.

    Parameters
    ----------
    name : str
        For tables; the parameters are added.
    data : Rows
        The clients.
    a : float
        ``L eta``.
    length : float, optional
        The paper's :math:`\eta_1`; :math:`1/(L + 1/\eta)` when not given.
    local_steps : int, default 1
        The paper's Q.
    rounds, skip, theta0
        As in :func:`theory.fedpd._runs.fedpd_case`; the start is a point of norm 2 when not given.

    Examples
    --------
    >>> case = sampled("rows", rows(), a=0.2, local_steps=2, skip=0.5)
    >>> case.name, len(case.events())
    ('rows, L eta = 0.2, Q = 2, p = 0.5', 32)
    """
    f = data.objective
    L = float(np.max(f.L))
    eta, d = a / L, f.shape[0]
    notes = [f"Q = {local_steps}"] + [f"p = {skip:g}"] * (skip > 0)
    solver = Samples(data=data, length=1.0 / (L + 1.0 / eta) if length is None else length)
    return Case(
        name=", ".join([name, f"L eta = {a:.3g}", *notes]),
        algorithm=FedPD(eta=eta, solver=solver, stop=Steps(steps=local_steps)),
        objective=f,
        theta0=np.full(d, 2.0 / np.sqrt(d)) if theta0 is None else theta0,
        rounds=rounds,
        participation=Sampling(probability=1.0 - skip, size=data.A.shape[1], draws=local_steps),
        lowest=float(np.mean(f.value(f.minimiser()))),
        known=known_of(f, skip),
    )


@cache
def rows(*, noise: float = 0.02, n: int = 2) -> Rows:
    r"""Return clients of two rows each, in two variables; rows and clients have Hessians of their own.

    They have :math:`\mu_j` and :math:`L_j` that differ, the first one curvature of both signs, and a convex mean.

    Parameters
    ----------
    noise : float, default 0.02
        Distance of the rows from their client, in linear terms and in half of the difference of the Hessians.
    n : int, default 2
        Number of clients, at most three.

    Examples
    --------
    >>> f = rows(n=3).objective
    >>> f.mu.round(3).tolist(), f.L.round(3).tolist(), bool(np.linalg.eigvalsh(np.mean(f.A, axis=0))[0] > 0.2)
    ([-0.3, 0.6, 0.0], [0.8, 1.0, 0.4], True)
    """
    spectra = [(-0.3, 0.8), (1.0, 0.6), (0.4, 0.0)]
    off = noise * np.array([[0.0, 1.0], [1.0, 0.0]])
    A = np.stack([[np.diag(spectrum) + off, np.diag(spectrum) - off] for spectrum in spectra[:n]])
    return Rows(A, _around(n, 1.0, noise))


@cache
def similar_rows(*, apart: float = 1.0, noise: float = 0.02, n: int = 2) -> Rows:
    """Return clients of two rows each with the Hessian diag(1, 1/4), so that A4 holds.

    Parameters
    ----------
    apart : float, default 1
        Scale of the clients' linear terms.
    noise : float, default 0.02
        Distance of the rows from their client, in linear terms.
    n : int, default 2
        Number of clients.

    Examples
    --------
    >>> from theory.fedpd._runs import dissimilarity
    >>> round(dissimilarity(similar_rows(apart=0.1).objective), 3)
    0.201
    """
    return Rows(np.tile(np.diag([1.0, 0.25]), (n, 2, 1, 1)), _around(n, apart, noise))


def _around(n: int, apart: float, noise: float) -> Array:
    """Return linear terms of two rows on opposite sides of their client."""
    rng = np.random.default_rng(2)
    centres, directions = apart * rng.standard_normal((n, 1, 2)), rng.standard_normal((n, 1, 2))
    directions = noise * directions / np.linalg.norm(directions, axis=-1, keepdims=True)
    return centres + np.array([1.0, -1.0])[None, :, None] * directions


def drawn_path(case: Case) -> Iterator[Turn]:
    """Follow the case along one sample of the draws and the coins.

    Examples
    --------
    >>> [len(turn.after) for turn in drawn_path(sampled("rows", rows(), a=0.2, rounds=2))]
    [4, 4]
    """
    return path(case, by_chance(np.random.default_rng(case.seed)))


class Squares(NamedTuple):
    """Expectations in a round."""

    squared_gradient: float  # of |grad E|^2 at the mean copy, before it
    errors: Array  # of the squared gradients that its local solutions leave, shape (N,)


def squares(case: Case) -> Iterator[Squares]:
    """Yield the expectations for all rounds from the start, exactly.

    Examples
    --------
    >>> first, second = squares(sampled("rows", rows(), a=0.2, rounds=2))
    >>> bool(second.squared_gradient < first.squared_gradient)
    True
    """
    f, eta, start = case.objective, case.eta, case.first()
    maps = round_matrices(case)
    z = np.append(flatten(start), 1.0)

    def linear(image: Callable[[Any], Array]) -> Array:
        """Return the matrix of an affine function of the state, for (z, 1)."""
        return affine(lambda entries: image(unflatten(entries, start)), len(z) - 1)

    gradient = linear(lambda s: np.mean(f.gradient(np.mean(s.clients.x0, axis=0)), axis=0))
    # e_j has a part that depends on the new model, and one on the dual and the copy of before the round
    new = linear(lambda s: (f.gradient(s.clients.theta) + s.clients.theta / eta).ravel())
    old = linear(lambda s: (s.clients.dual - s.clients.x0 / eta).ravel())
    left = [(chance, np.reshape(new @ M + old, (f.n_clients, -1, len(z)))) for chance, M in maps]
    errors = [sum(chance * e[j].T @ e[j] for chance, e in left) for j in range(f.n_clients)]
    for moments in islice(second_moments(maps, z), case.rounds):
        squared_gradient = float(np.sum((gradient.T @ gradient) * moments))
        yield Squares(squared_gradient, np.array([np.sum(e * moments) for e in errors]))
