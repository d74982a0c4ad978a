r"""The states that a method can reach, in formal coordinates: the most general one, and what every round keeps of it.

A state less the fixed point is a row of vectors: those of the server, and one for each client of every kind. What
exchanges of clients leave of it are **blocks**: the means (of the server, and of each kind over each class), and for
each class the deviations of its clients from the mean.

*Invariants* are linear relations such as :math:`\sum_j\zeta_j = 0` which hold after the first round and are implied by
themselves in every round that may follow. *Observable* are those combinations on which questions to clients, now or
later, or the model depend; a Lyapunov function is a quadratic form in these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from dualopt.arrays.tree import leaves, tree_map
from dualopt.engine._steps import solver_states
from dualopt.engine.rounds import State, advance, initial_state
from dualopt.lab.proofs._compressors import Plain
from dualopt.lab.proofs._formal import Answer, World, is_vector, vectors
from dualopt.lab.proofs._linear import TOLERANCE, echelon, left_null_space, null_space, solve_in
from dualopt.lab.proofs._setting import Setting
from dualopt.methods import Algorithm
from dualopt.methods._base import UNKNOWN
from dualopt.methods.participation import Round, first_round

__all__ = [
    "Block",
    "FormalState",
    "Outcome",
    "Points",
    "begun",
    "first_state",
    "fixed_point",
    "general_state",
    "observable",
]

LATER = (1, 1000)
"""Rounds in which a method must do what it does in the first one."""
Members = list[dict[int, int]]
"""For each class clients of it, and how many each of them stands for."""


class Block(NamedTuple):
    """Vectors of some kinds, each of them for some clients."""

    rows: np.ndarray  # (kinds, members, dimension)
    counts: tuple[int, ...]  # how many clients each member stands for

    @property
    def flat(self) -> np.ndarray:
        """All vectors of a kind in one row."""
        return self.rows.reshape(len(self.rows), int(np.prod(self.rows.shape[1:])))

    def of(self, weights: np.ndarray, basis: np.ndarray) -> np.ndarray:
        """Return combinations of the free vectors of which the kinds are made, for each member."""
        flat = self.flat
        used = np.flatnonzero((flat != 0).any(axis=0))  # most coordinates are zero
        found = np.zeros((len(weights), flat.shape[1]), dtype=flat.dtype)
        found[:, used] = weights @ solve_in(basis, flat[:, used])
        return found.reshape(len(weights), *self.rows.shape[1:])


class Points(NamedTuple):
    """Where each client was asked last, and its gradients there."""

    x: np.ndarray
    gradient: np.ndarray


class Outcome(NamedTuple):
    """What a round makes of a state."""

    blocks: list[Block]
    asked: dict[int, Answer]  # the latest answers of those who were asked
    state: State


@dataclass(frozen=True)
class FormalState:
    """A state in formal coordinates, the fixed point from which it is measured, and, where needed, the latest points.

    Each block is made of free vectors: those with the coordinates ``free``, which ``bases`` map to its kinds.
    """

    setting: Setting
    f: World
    theta: np.ndarray  # the minimiser
    gradients: np.ndarray  # there
    fixed: State
    state: State
    latest: Points | None
    free: Sequence[np.ndarray] = ()
    bases: Sequence[np.ndarray] = ()

    def blocks(self, members: Members) -> list[Block]:
        """Return the state less the fixed point."""
        return self._blocks(self.state, self.latest, members)

    def after(self, round: Round, members: Members | None = None) -> Outcome:
        """Do a round; clients that are alike in it are represented by one unless others are asked for."""
        seen = self.f.ledger.latest
        seen.clear()
        state = advance(self.setting.on(self.f), self.f, self.state, round, self.setting.packs(self.f))[0]
        latest = self.latest
        if latest is not None:
            latest = Points(latest.x.copy(), latest.gradient.copy())
            for j in seen.keys() & set(self.f.ids):  # not the regulariser
                answer = seen[j]
                latest.x[j], latest.gradient[j] = answer.x, answer.gradient
        return Outcome(self._blocks(state, latest, members or self.setting.alike(round.clients)), dict(seen), state)

    def _blocks(self, state: State, latest: Points | None, members: Members) -> list[Block]:
        pairs = zip(leaves(state), leaves(self.fixed), strict=True)
        moved = [x - y for x, y in pairs if is_vector(x, self.f)]
        means, many = ([x for x in moved if x.ndim == d] for d in (1, 2))
        if latest is not None:
            many += [latest.x - self.theta, latest.gradient - self.gradients]
        blocks = []
        for own, chosen in zip(self.setting.classes, members, strict=True):
            of_class = [x[list(own.clients)].sum(axis=0) / len(own) for x in many]
            means += of_class
            away = [x[list(chosen)] - mean for x, mean in zip(many, of_class, strict=True)]
            rows = np.stack(away) if away else self.f.ledger.zeros(0, len(chosen))
            blocks.append(Block(rows, tuple(chosen.values())))
        return [Block(np.stack(means)[:, None], (1,)), *blocks]


def fixed_point(method: Algorithm, f: Any, theta: np.ndarray, *, compressed: bool = False) -> State:
    """Return the state at the minimiser, with what clients remember of uploads that are compressed.

    Raises
    ------
    ValueError
        If the method has no fixed point there, or does not say which.
    """
    parts: Any = method.fixed_point(f, theta)
    if parts is None or parts is UNKNOWN:
        raise ValueError("algorithm must have the minimiser as a fixed point, and say so by fixed_point.")
    server, message, clients = parts
    clients = tree_map(lambda x: np.broadcast_to(x, (f.n_clients, *f.shape)) if np.shape(x) == f.shape else x, clients)
    state = State(server, message, clients, solver_states(method, f))
    if not compressed:
        return state
    plain: Any = Plain()
    return state._replace(memory=advance(method, f, state, first_round(f.n_clients), plain)[0].memory)


def begun(method: Algorithm, f: Any, theta0: np.ndarray, fixed: State) -> State:
    """Return the state before the first round, with memories that hold nothing."""
    return initial_state(method, f, theta0)._replace(memory=tree_map(lambda x: 0 * x, fixed.memory))


def first_state(setting: Setting, dimension: int, *, memory: bool) -> FormalState:
    """Return the state before the first round, with any minimiser, and any points where clients were asked last."""
    f = setting.world(dimension)
    star = f.ledger.vector()
    gradients = f.set_minimiser(star)
    latest = None
    if memory:
        latest = Points(f.ledger.family(), f.ledger.family())
        f.note(*latest)
    method = setting.on(f)
    fixed = fixed_point(method, f, star, compressed=setting.compressor is not None)
    return FormalState(setting, f, star, gradients, fixed, begun(method, f, f.zeros(), fixed), latest)


def _with(setting: Setting, invariants: list[np.ndarray], dimension: int, *, memory: bool) -> FormalState:
    """Return the most general state with these invariants."""
    f = setting.world(dimension)
    zero, ledger = f.zeros(), f.ledger
    gradients = f.set_minimiser(zero)
    fixed = fixed_point(setting.on(f), f, zero, compressed=setting.compressor is not None)
    bases = [null_space(relations) for relations in invariants]
    known = len(ledger.shared)
    own = [ledger.vector() for _ in range(bases[0].shape[1])]
    means = bases[0] @ (np.stack(own) if own else ledger.zeros(0))
    free, kinds = [np.array(ledger.shared[known:], dtype=int)], len(bases[1])
    n_single = len(means) - kinds * len(setting.classes)
    rows: list[Any] = [*means[:n_single], *(ledger.zeros(f.n_clients) for _ in range(kinds))]
    for c, (of_class, basis) in enumerate(zip(setting.classes, bases[1:], strict=True)):
        ids = list(of_class.clients)
        families = [ledger.family()[ids] for _ in range(basis.shape[1])]
        free.append(np.array([own[ids] for own in ledger.families[-len(families) :] if families], dtype=int))
        free[-1] = free[-1].reshape(len(families), len(ids))
        away = [x - x.sum(axis=0) / len(ids) for x in families]
        for k in range(kinds):
            start = ledger.zeros(len(ids)) + means[n_single + c * kinds + k]
            rows[n_single + k][ids] = sum((a * x for a, x in zip(basis[k], away, strict=True)), start=start)
    single, many, numbers = iter(rows[:n_single]), iter(rows[n_single:]), iter(setting.limits.numbers)

    def leaf(x: Any) -> Any:
        return x + next(single if x.ndim == 1 else many) if is_vector(x, f) else next(numbers)

    state = tree_map(leaf, fixed)
    latest = None
    if memory:
        latest = Points(zero + rows[-2], gradients + rows[-1])
        f.note(*latest)
    return FormalState(setting, f, zero, gradients, fixed, state, latest, free, bases)


def general_state(setting: Setting, dimension: int, *, memory: bool) -> tuple[FormalState, list[Outcome]]:
    """Return the most general state that the method can reach after its first round, and what rounds make of it.

    Raises
    ------
    ValueError
        If a later round makes something else of it, or a round moves the fixed point.
    """
    rounds = [round for _, round in setting.orbits]
    begun = [first_state(setting, dimension, memory=memory).after(round) for round in rounds]
    still = _with(setting, [np.eye(len(A), dtype=A.dtype) for A in _together(begun)], dimension, memory=memory)
    if any((abs(A) > TOLERANCE).any() for A in _together([still.after(round) for round in rounds])):
        raise ValueError("algorithm must keep its fixed point in everything that may happen in a round.")
    invariants = [left_null_space(A) for A in _together(begun)]
    while True:
        state = _with(setting, invariants, dimension, memory=memory)
        outcomes = [state.after(round) for round in rounds]
        pairs = zip(invariants, _together(outcomes), strict=True)
        kept = [left_null_space(R @ A) @ R if len(R) else R for R, A in pairs]
        if [*map(len, kept)] == [*map(len, invariants)]:
            break
        invariants = kept
    for n in LATER:
        later = [state.after(replace(round, n=n)) for round in rounds]
        if not all(map(np.array_equal, _together(later), _together(outcomes))):
            raise ValueError("algorithm must do the same in every round; worst_case takes it round by round.")
    return state, outcomes


def _together(outcomes: Sequence[Outcome]) -> list[np.ndarray]:
    """Return for each block a matrix with a row for each kind: its vectors after all that may happen."""
    return [np.concatenate([b.flat for b in own], axis=1) for own in zip(*(o.blocks for o in outcomes), strict=True)]


def observable(general: FormalState, outcomes: Sequence[Outcome]) -> list[np.ndarray]:
    """Return those combinations of free vectors, for each block, on which questions, now or later, or the model depend.

    With latest points these too: a Lyapunov function with values of functions weighs them.
    """
    f, bases = general.f, general.bases

    def coefficients(b: int, V: np.ndarray) -> np.ndarray:
        """Return the coefficients of vectors on the free ones of a block; on deviations, a row for each client."""
        X = V[:, general.free[b]]
        if b == 0:
            return X
        X = X - X.sum(axis=2, keepdims=True) / X.shape[2]
        return np.moveaxis(X, 1, 2).reshape(X.shape[0] * X.shape[2], X.shape[1])

    def wider(known: list[np.ndarray], V: np.ndarray) -> list[np.ndarray]:
        return [echelon(np.concatenate([Y, coefficients(b, V)]))[0] for b, Y in enumerate(known)]

    singles = [x for x in vectors(general.state, f) if x.ndim == 1]
    theta = [k for k, x in enumerate(singles) if x is general.state.server.theta]
    models = [o.blocks[0].rows[k, 0] for o in outcomes for k in theta]
    asked = [x for a in f.ledger.answers for x in (a.x, a.gradient)]
    asked += [x for a in f.ledger.accuracies for x in (a.residual, a.first)]
    asked += [e.sent for e in f.ledger.errors]
    V = np.stack([*asked, *models])
    known = wider([bases[0][theta], *(basis[:0] for basis in bases[1:])], V)
    while True:
        blocks = [own for o in outcomes for own in zip(o.blocks, known, bases, strict=True)]
        later = np.concatenate([block.of(Y, basis).reshape(-1, f.ledger.dimension) for block, Y, basis in blocks])
        found = wider(known, later)
        if [*map(len, found)] == [*map(len, known)]:
            return found
        known = found
