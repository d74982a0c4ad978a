r"""Rounds: the path of a case with everything that may happen in each of them, and rounds as matrices.

On quadratic clients with exact local solutions, or a fixed number of gradient steps, a round with given participants is
an affine map of the state. Its matrix is found by asking the method itself what it makes of a basis; products of such
matrices are runs, and :math:`\mathbb E\,zz^\top` follows from :math:`\mathbb E[M\,zz^\top M^\top]`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from dualopt.arrays.tree import leaves, tree_map
from dualopt.arrays.xp import Array
from dualopt.engine.rounds import State, advance
from dualopt.lab.chance import Branch, Expect, branches, do_round
from dualopt.methods.participation import Round
from theory._cases import Case, everybody

__all__ = [
    "Choose",
    "Turn",
    "affine",
    "all_solutions",
    "by_chance",
    "equally",
    "expected_squares",
    "flatten",
    "histories",
    "mean_square_radius",
    "moments_after",
    "path",
    "round_matrices",
    "round_matrix",
    "second_moments",
    "unflatten",
]

Choose = Callable[[Sequence[float]], int]
"""Which of several things happens on a path, from their probabilities."""


class Turn(NamedTuple):
    """One round of a path: where it began and everything that may come of it."""

    n: int
    before: Any  # the state, or the point that the proof follows
    after: tuple[Any, ...]  # every branch, or the point that the proof makes of it
    chances: tuple[float, ...]
    choice: int  # which of them the path takes

    @property
    def taken(self) -> Any:
        """How the path goes on."""
        return self.after[self.choice]

    @property
    def E(self) -> Expect:
        """The conditional expectation after the round, exactly."""
        return Expect(self.after, self.chances)


def path(
    case: Case,
    choose: Choose | None = None,
    *,
    start: Any = None,
    point: Callable[[Any, Branch], Any] | None = None,
    first: int = 0,
) -> Iterator[Turn]:
    """Follow a case along the rounds that its participation samples, or that are chosen.

    Parameters
    ----------
    case : Case
        What is followed.
    choose : callable, optional
        Chooses what happens in each round; the schedule of the case does when not given.
    start : object, optional
        A point that a proof follows, with a ``state``; the state of the case alone when not given.
    point : callable, optional
        ``point(before, branch)`` returns the point after a round.
    first : int, default 0
        Number of the first round, where the rounds are chosen.

    Examples
    --------
    >>> from dualopt.methods import FedAvg
    >>> from dualopt.methods.participation import UniformSubset
    >>> from theory._problems import quadratic
    >>> case = quadratic().case(FedAvg().suggested(quadratic().objective), 2, participation=UniformSubset(size=1))
    >>> [(turn.n, len(turn.after), turn.taken.round.clients) for turn in path(case)]
    [(0, 3, (2,)), (1, 3, (2,))]
    """
    before: Any = case.first() if start is None else start
    schedule = [None] * case.rounds if choose is not None else case.schedule()
    for n, round in enumerate(schedule, start=first):
        state = before if start is None else before.state
        found = branches(case.algorithm, case.objective, state, case.events(n if round is None else round.n))
        chances = tuple(branch.probability for branch in found)
        if round is None:
            assert choose is not None
            choice = choose(chances)
        else:
            kinds = [(branch.round.clients, branch.round.communicate) for branch in found]
            choice = kinds.index((round.clients, round.communicate))
        after = found if point is None else tuple(point(before, branch) for branch in found)
        turn = Turn(n if round is None else round.n, before, after, chances, choice)
        yield turn
        before = turn.taken.state if start is None else turn.taken


def by_chance(rng: np.random.Generator) -> Choose:
    """Return a choice with the given probabilities."""
    return lambda chances: int(rng.choice(len(chances), p=chances))


def equally(rng: np.random.Generator) -> Choose:
    """Return a choice of things that are equally likely."""
    return lambda chances: int(rng.integers(len(chances)))


def histories(
    case: Case, *, start: Any = None, point: Callable[[Any, Branch], Any] | None = None, first: int = 0
) -> Iterator[Expect]:
    """Yield the expectation after 1, 2, ... rounds over all histories of chance: of branches, or what a proof follows.

    Parameters are those of :func:`path`.
    """
    level: list[tuple[float, State, Any]] = [(1.0, case.first() if start is None else start.state, start)]
    for n in range(first, first + case.rounds):
        longer = []
        for chance, state, before in level:
            for branch in branches(case.algorithm, case.objective, state, case.events(n)):
                found = branch if point is None else point(before, branch)
                longer.append((chance * branch.probability, branch.state, found))
        level = longer
        yield Expect([found for _, _, found in level], [chance for chance, _, _ in level])


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
    top = affine(lambda z: flat(do_round(algorithm, objective, filled(z, like), round)[0]), n)
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


def round_matrices(case: Case, **known: Any) -> list[tuple[float, Array]]:
    """Return the matrices of everything that may happen in a round, with their probabilities.

    ``known`` are the options of :func:`round_matrix`.
    """
    like = case.first()
    return [(p, round_matrix(case.algorithm, case.objective, round, like, **known)) for p, round in case.events()]


def second_moments(matrices: Sequence[tuple[float, Array]], z: Array) -> Iterator[Array]:
    r"""Yield :math:`\mathbb E\,zz^\top` before the first round and after every one.

    A round is affine whatever happens, :math:`z^+ = M_kz` with the probability :math:`p_k`, so that the second moments
    become :math:`\sum_k p_k M_k\,\mathbb E[zz^\top]\,M_k^\top`.

    Examples
    --------
    >>> moments = second_moments([(0.5, np.array([[0.0]])), (0.5, np.array([[2.0]]))], np.array([1.0]))
    >>> [float(next(moments)[0, 0]) for _ in range(3)]
    [1.0, 2.0, 4.0]
    """
    after, moments = moments_after(matrices), np.outer(z, z)
    while True:
        yield moments
        moments = after(moments)


def moments_after(matrices: Sequence[tuple[float, Array]]) -> Callable[[Array], Array]:
    r"""Return the function that maps :math:`\mathbb E\,zz^\top` to what it is after a round."""
    chances, M = np.array([p for p, _ in matrices]), np.stack([M for _, M in matrices])
    if 2 * len(M) >= M.shape[1]:  # vec(M S M^T) = (M kron M) vec(S) takes less time than all the products
        all_of_them = sum(chance * np.kron(A, A) for chance, A in matrices)
        return lambda moments: np.reshape(all_of_them @ moments.ravel(), moments.shape)
    return lambda moments: np.tensordot(chances, M @ moments @ np.swapaxes(M, 1, 2), axes=1)


def expected_squares(case: Case, quantity: Callable[[State], Array]) -> list[float]:
    r"""Return the expected squared norm of a linear function of the state after every round.

    States are counted from the fixed point of rounds that communicate, which keeps small numbers accurate.

    Parameters
    ----------
    case : Case
        A method on quadratic clients.
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
    first, f = case.first(), case.objective
    server, message, clients = case.algorithm.fixed_point(f, f.minimiser())
    rest = flatten(first._replace(server=server, message=message, clients=clients))
    there, back = np.eye(len(rest) + 1), np.eye(len(rest) + 1)
    there[:-1, -1], back[:-1, -1] = rest, -rest
    rounds = [(p, back @ M @ there) for p, M in round_matrices(case)]
    D = affine(lambda z: quantity(unflatten(z, first)), len(rest)) @ there
    after = islice(second_moments(rounds, np.append(flatten(first) - rest, 1.0)), 1, case.rounds + 1)
    return [float(np.trace(D @ moments @ D.T)) for moments in after]
