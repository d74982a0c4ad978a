r"""Rounds: the path of a case with everything that may happen in each of them, and rounds as matrices.

On quadratic clients with exact local solutions, or a fixed number of gradient steps, a round with given participants is
an affine map of the state. Its matrix is found by asking the method itself what it makes of a basis; products of such
matrices are runs, and :math:`\mathbb E\,zz^\top` follows from :math:`\mathbb E[M\,zz^\top M^\top]`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from dualopt.arrays.tree import leaves, tree_map
from dualopt.arrays.xp import Array
from dualopt.engine.rounds import State, advance
from dualopt.methods.participation import Round
from theory._cases import Case, everybody
from theory._chance import Outcome

__all__ = [
    "Branch",
    "Step",
    "affine",
    "all_solutions",
    "branches",
    "flatten",
    "histories",
    "mean_square_radius",
    "path",
    "round_matrix",
    "unflatten",
]


class Branch(NamedTuple):
    """One way in which a round may go."""

    probability: float
    round: Round
    state: State  # after the round
    upload: Any  # of the active clients; None if nothing is sent
    solution: Any  # the local solutions of the active clients


class Step(NamedTuple):
    """One round of a path: where it began and every way in which it may go."""

    n: int
    before: State
    branches: tuple[Branch, ...]
    choice: int  # which of them the path takes

    @property
    def taken(self) -> Branch:
        """How the path goes on."""
        return self.branches[self.choice]

    def mean(self, quantity: Callable[[Branch], Any]) -> Any:
        """Return the conditional expectation of a quantity after the round, exactly."""
        found = [branch.probability * quantity(branch) for branch in self.branches]
        return sum(found[1:], start=found[0])


def branches(algorithm: Any, objective: Any, state: State, outcomes: Iterable[Outcome]) -> tuple[Branch, ...]:
    """Do a round from ``state`` in every way in which it may go."""
    return tuple(Branch(p, round, *advance(algorithm, objective, state, round)) for p, round in outcomes)


def path(case: Case, taken: Iterable[Round] | None = None) -> Iterator[Step]:
    """Follow a case along the rounds ``taken``, by default those that its participation samples.

    Examples
    --------
    >>> from dualopt.methods import FedAvg
    >>> from dualopt.methods.participation import UniformSubset
    >>> from theory._problems import quadratic
    >>> case = quadratic().case(FedAvg().suggested(quadratic().objective), 2, participation=UniformSubset(size=1))
    >>> [(step.n, len(step.branches), step.taken.round.clients) for step in path(case)]
    [(0, 3, (2,)), (1, 3, (2,))]
    """
    state = case.first()
    for round in case.schedule() if taken is None else taken:
        found = branches(case.algorithm, case.objective, state, case.outcomes(round.n))
        kinds = [(branch.round.clients, branch.round.communicate) for branch in found]
        step = Step(round.n, state, found, kinds.index((round.clients, round.communicate)))
        yield step
        state = step.taken.state


def histories(case: Case) -> Iterator[list[Branch]]:
    """Yield the states after 1, 2, ... rounds by all histories of chance, each with its probability."""
    level = [(1.0, case.first())]
    for n in range(case.rounds):
        found = [
            branch._replace(probability=probability * branch.probability)
            for probability, state in level
            for branch in branches(case.algorithm, case.objective, state, case.outcomes(n))
        ]
        yield found
        level = [(branch.probability, branch.state) for branch in found]


def all_solutions(algorithm: Any, objective: Any, state: State) -> Any:
    """Return the local solutions that all clients would find in the next round, active or not."""
    return advance(algorithm, objective, state, everybody(objective.n_clients))[2]


def flatten(state: Any) -> Array:
    """Return all entries of the arrays of a state in a row, those of the server first.

    Examples
    --------
    >>> flatten((np.ones(2), (np.zeros((1, 1)), 3)))
    array([1., 1., 0.])
    """
    return np.concatenate([np.ravel(leaf) for leaf in leaves(state) if isinstance(leaf, np.ndarray)])


def unflatten(z: Array, like: Any) -> Any:
    """Return a state like ``like`` with the entries ``z`` in its arrays.

    Examples
    --------
    >>> unflatten(np.array([1.0, 2.0, 4.0]), (np.ones(2), (np.zeros((1, 1)), 3)))
    (array([1., 2.]), (array([[4.]]), 3))
    """
    entries = iter(z)

    def filled(leaf: Any) -> Any:
        if not isinstance(leaf, np.ndarray):
            return leaf
        return np.fromiter(islice(entries, leaf.size), float).reshape(leaf.shape)

    return tree_map(filled, like)


def affine(image: Callable[[Array], Array], n: int) -> Array:
    """Return ``(A, c)`` of an affine map ``A z + c`` of ``n`` numbers, shape (m, n + 1), by its images of a basis.

    Examples
    --------
    >>> affine(lambda z: 2.0 * z + 1.0, 2)
    array([[2., 0., 1.],
           [0., 2., 1.]])
    """
    constant = image(np.zeros(n))
    return np.stack([*(image(unit) - constant for unit in np.eye(n)), constant], axis=1)


def round_matrix(
    algorithm: Any,
    objective: Any,
    round: Round,
    like: Any,
    *,
    flat: Callable[[Any], Array] = flatten,
    filled: Callable[[Array, Any], Any] = unflatten,
) -> Array:
    """Return the matrix of a round, ``(z+, 1) = M (z, 1)``.

    Parameters
    ----------
    algorithm, objective
        A method and quadratic clients, on which a round is affine.
    round : Round
        Who takes part, and whether it communicates.
    like : State
        Any state: its shapes, and what is no array in it.
    flat, filled : callable
        ``z = flat(state)`` and ``state = filled(z, like)``, where some entries of a state follow from others; by
        default all of its arrays.
    """
    n = flat(like).size
    top = affine(lambda z: flat(advance(algorithm, objective, filled(z, like), round)[0]), n)
    return np.vstack([top, np.append(np.zeros(n), 1.0)])


def mean_square_radius(matrices: Sequence[Array], probabilities: Sequence[float] | None = None) -> float:
    r"""Return the factor by which :math:`\mathbb E|z - z^*|^2` changes per round in the end, from a general start.

    Parameters
    ----------
    matrices : sequence of array, shape (n + 1, n + 1)
        What may happen, as :func:`round_matrix` returns it.
    probabilities : sequence of float, optional
        Equal when not given.

    Examples
    --------
    >>> mean_square_radius([np.diag([0.5, 1.0])]), mean_square_radius([np.diag([0.5, 1.0]), np.diag([1.5, 1.0])])
    (0.25, 1.25)
    """
    linear = [M[:-1, :-1] for M in matrices]
    if len(linear) == 1:
        return float(np.max(np.abs(np.linalg.eigvals(linear[0])))) ** 2
    operator = np.average([np.kron(A, A) for A in linear], axis=0, weights=probabilities)
    return float(np.max(np.abs(np.linalg.eigvals(operator))))
