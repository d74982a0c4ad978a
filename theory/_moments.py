"""Exact expectations over the coins of a run."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.engine.rounds import State
from theory._cases import Case
from theory._rounds import affine, flatten, round_matrix, unflatten

__all__ = ["expected_squares"]


def expected_squares(case: Case, quantity: Callable[[State], Array]) -> list[float]:
    r"""Return the expected squared norm of a linear function of the state after every round.

    A round is affine with either side of the coin, :math:`z^+ = Mz`, so that :math:`\mathbb E zz^\top` becomes
    :math:`\sum_c p_c M_c\,\mathbb E zz^\top M_c^\top`. States are counted from the fixed point of rounds that
    communicate, which keeps small numbers accurate.

    Parameters
    ----------
    case : Case
        A method on quadratic clients, with a coin.
    quantity : callable
        An affine function of the state, of shape (m,).

    Examples
    --------
    >>> from dualopt.methods import Scaffnew
    >>> from dualopt.methods.participation import CommunicateWithProbability
    >>> from theory._valleys import valleys
    >>> half = CommunicateWithProbability(probability=0.5)
    >>> case = Case.of(Scaffnew(probability=0.5), valleys(2), rounds=90, participation=half)
    >>> found = expected_squares(case, lambda state: state.clients.theta[0] - state.clients.theta[1])
    >>> found[-1] < 1e-2 * found[9]
    True
    """
    first, method, f = case.first(), case.algorithm, case.objective
    server, message, clients = method.fixed_point(f, f.minimiser())
    rest = flatten(first._replace(server=server, message=message, clients=clients))
    there, back = np.eye(len(rest) + 1), np.eye(len(rest) + 1)
    there[:-1, -1], back[:-1, -1] = rest, -rest
    rounds = [(o.probability, back @ round_matrix(method, f, o.round, first) @ there) for o in case.outcomes()]
    D = affine(lambda z: quantity(unflatten(z, first)), len(rest)) @ there
    z = np.append(flatten(first) - rest, 1.0)
    moment, found = np.outer(z, z), []
    for _ in range(case.rounds):
        moment = sum(chance * M @ moment @ M.T for chance, M in rounds)
        found.append(float(np.trace(D @ moment @ D.T)))
    return found
