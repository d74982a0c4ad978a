r"""Exact second moments of A-FedPD on quadratics: expectations over all choices of clients in any number of rounds.

On quadratics with exact local solutions a round is an affine map of :math:`z = (\theta, \lambda_1, \dots, \lambda_N)`,
one map for each choice of clients. With M the matrix of the map on :math:`(z, 1)`, :math:`S = E[(z,1)(z,1)^T]` becomes
:math:`E_M[M S M^T]`. The matrices are found by running the method from unit vectors.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from dualopt.engine import State, advance
from dualopt.xp import Array
from theory._chance import subsets
from theory.afedpd._cases import Federation

__all__ = ["fixed_point", "maps", "mean_square_radius", "squared_gradients"]


@lru_cache(maxsize=64)
def maps(case: Federation) -> tuple[Array, ...]:
    """Return the matrices on ``(z, 1)``, equally likely.

    Examples
    --------
    >>> from theory.afedpd._cases import federation
    >>> from theory.afedpd._instances import two_signs
    >>> [M.shape for M in maps(federation(two_signs(), rho=1.2, active=1, rounds=1))]
    [(4, 4), (4, 4)]
    """
    n = _flat(case.start()).size
    found = []
    for outcome in subsets(case.n_clients, case.active):
        images = [
            _flat(advance(case.algorithm, case.objective, _state(case, z), outcome.round)[0])
            for z in (*np.eye(n), np.zeros(n))
        ]
        constant = images.pop()
        top = np.column_stack([*(image - constant for image in images), constant])
        found.append(np.vstack([top, np.append(np.zeros(n), 1.0)]))
    return tuple(found)


def mean_square_radius(case: Federation) -> float:
    r"""Return the factor by which :math:`E|z - z^*|^2` changes per round in the end, from a general start."""
    linear = [M[:-1, :-1] for M in maps(case)]
    if len(linear) == 1:
        return float(np.max(np.abs(np.linalg.eigvals(linear[0])))) ** 2
    operator = np.mean([np.kron(M, M) for M in linear], axis=0)
    return float(np.max(np.abs(np.linalg.eigvals(operator))))


def fixed_point(case: Federation) -> Array:
    """Return ``(z*, 1)``: the minimiser with the duals ``-grad f_j``."""
    return np.append(np.concatenate([case.theta[None], -case.objective.gradient(case.theta)]).ravel(), 1.0)


def squared_gradients(case: Federation) -> Iterator[float]:
    r"""Yield :math:`E|\nabla E(\bar\theta^t)|^2` for t = 1, 2, ..., exactly."""
    f, d, N = case.objective, case.theta.size, case.n_clients
    pick = np.hstack([np.eye(d), np.tile(-np.eye(d) / (case.rho * N), N), np.zeros((d, 1))])  # bar from (z, 1)
    A, b = np.mean(f.A, axis=0), np.mean(f.b, axis=0)
    gradient = A @ pick - np.outer(b, np.append(np.zeros(d * (N + 1)), 1.0))
    z = np.append(_flat(case.start()), 1.0)
    S = np.outer(z, z)
    for _ in range(case.rounds):
        S = np.mean([M @ S @ M.T for M in maps(case)], axis=0)
        yield float(np.trace(gradient @ S @ gradient.T))


def _flat(state: State) -> Array:
    return np.concatenate([state.server.theta[None], state.clients.dual]).ravel()


def _state(case: Federation, z: Array) -> State:
    theta, duals = np.split(z.reshape(case.n_clients + 1, -1), [1])
    server, message, clients = case.start()[:3]
    server = server._replace(theta=theta[0], dual=np.mean(duals, axis=0))
    return State(server, message._replace(theta=theta[0]), clients._replace(dual=duals))
