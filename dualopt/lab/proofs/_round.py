r"""One round of a method near its fixed point, as matrices: what a Lyapunov function needs to know of it.

The state less the fixed point is a row of vectors: those of the server, and one for each client of every kind. What
exchanges of clients leave of it are **means** (of the server, and of each kind over each class) and **deviations** of a
client from the mean of its class.

*Relations* between them, such as :math:`\sum_j\zeta_j = 0`, are kept where they hold after the first round and are
implied by themselves in every round that may follow. *Live* are those combinations on which questions to clients, now
or later, or the model depend; a Lyapunov function is a quadratic form in these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np

from dualopt.arrays.tree import leaves, tree_map
from dualopt.engine._steps import solver_states
from dualopt.engine.rounds import State, advance, initial_state
from dualopt.lab.proofs._formal import Answer, World, is_vector, with_room
from dualopt.lab.proofs._forms import Class, Form, Space, points_of
from dualopt.lab.proofs._linear import TOLERANCE, echelon, left_null_space, null_space, solve_in
from dualopt.lab.proofs._setting import Setting, exact_chances
from dualopt.methods._base import UNKNOWN
from dualopt.methods.participation import Round
from dualopt.objectives import Quadratic

__all__ = ["OneRound", "near", "one_round", "settled"]

SETTLING = 400
"""Rounds after which numbers in states must be at their limits."""


class Parts(NamedTuple):
    """Rows of vectors: the means of everything, and for each class the deviations of its clients."""

    means: np.ndarray  # (n, dimension)
    deviations: list[np.ndarray]  # of class c: (kinds, clients, dimension)


class Old(NamedTuple):
    """Where each client was asked last, and its gradients there."""

    x: np.ndarray
    gradient: np.ndarray


@dataclass
class Near:
    """A formal state, the fixed point from which it is measured, and, where it matters, the latest answers."""

    setting: Setting
    f: World
    theta: np.ndarray  # the minimiser
    gradients: np.ndarray  # there
    fixed: list[Any]  # the leaves of the fixed point
    state: State
    old: Old | None
    asked: list[dict[int, Answer]] = field(default_factory=list)  # the latest answers of those who were, by round

    def rows(self, state: State, old: Old | None) -> list[np.ndarray]:
        """Return the vectors of a state less those of the fixed point, single ones before those of the clients."""
        found = [x - y for x, y in zip(leaves(state), self.fixed, strict=True) if is_vector(x, self.f)]
        found = [x for x in found if x.ndim == 1] + [x for x in found if x.ndim == 2]
        return found if old is None else [*found, old.x - self.theta, old.gradient - self.gradients]

    def after(self, round: Round) -> Parts:
        """Return the means and deviations after a round."""
        old, latest = self.old, self.f.ledger.latest
        latest.clear()
        state = advance(self.setting.algorithm, self.f, self.state, round)[0]
        self.asked.append(dict(latest))
        if old is not None:
            old = Old(old.x.copy(), old.gradient.copy())
            for j, a in latest.items():
                old.x[j], old.gradient[j] = a.x, a.gradient
        return parts_of([self.reduced(x) for x in self.rows(state, old)], self.setting.classes)

    def reduced(self, x: np.ndarray) -> np.ndarray:
        """Return vectors without the gradient of the last client at the minimiser: those of all add up to zero."""
        ids, weights = self.f.ledger.families[0], self.f.weights or (1,) * self.f.n_clients
        x = x.copy()
        last = x[..., ids[-1:]] / weights[-1]
        for k, w in zip(ids, weights, strict=True):
            x[..., k] = x[..., k] - w * last[..., 0]
        return x


def parts_of(rows: Sequence[np.ndarray], classes: Sequence[Class]) -> Parts:
    """Return means and deviations of the vectors of a state: single ones, and those with one for each client."""
    means, deviations = [x for x in rows if x.ndim == 1], []
    many = [x for x in rows if x.ndim == 2]
    for c in classes:
        own = [x[list(c.clients)] for x in many]
        of_class = [x.sum(axis=0) / len(c) for x in own]
        means += of_class
        away = [x - m for x, m in zip(own, of_class, strict=True)]
        deviations.append(np.stack(away) if away else np.zeros((0, len(c), rows[0].shape[-1]), dtype=rows[0].dtype))
    return Parts(np.stack(means), deviations)


def settled(setting: Setting) -> tuple[list[Any], bool]:
    """Return the numbers in the states of a method after many rounds, and whether they are others at the start.

    Raises
    ------
    ValueError
        If they have no limits.
    """
    N = setting.n_clients
    f = Quadratic(A=np.stack([m * np.eye(N + 1) for m in map(_positive, setting.mu)]), b=np.zeros((N, N + 1)))
    state = initial_state(setting.algorithm, f, np.ones(N + 1))

    def told(state: State) -> list[Any]:
        return [x for x in leaves(state) if np.shape(x) not in ((N + 1,), (N, N + 1))]

    first, before = told(state), told(state)
    for n in range(SETTLING if first else 0):
        before = told(state)
        everybody = Round(n=n, n_clients=N, clients=tuple(range(N)), communicate=True, seed=0)
        state = advance(setting.algorithm, f, state, everybody)[0]
    last = told(state)
    if not all(np.allclose(a, b, rtol=1e-9, atol=0) for a, b in zip(before, last, strict=True)):
        raise ValueError("algorithm must have numbers in its states that settle; worst_case takes it round by round.")
    return last, any(not np.allclose(a, b, rtol=1e-9, atol=0) for a, b in zip(first, last, strict=True))


def _positive(mu: float) -> float:
    return mu if mu > 0 else 1.0


def fixed_point(setting: Setting, f: Any, theta: np.ndarray) -> State:
    """Return the state at the minimiser.

    Raises
    ------
    ValueError
        If the method has no fixed point there, or does not say which.
    """
    parts: Any = setting.algorithm.fixed_point(f, theta)
    if parts is None or parts is UNKNOWN:
        raise ValueError("algorithm must have the minimiser as a fixed point, and say so by fixed_point.")
    server, message, clients = parts
    clients = tree_map(lambda x: np.broadcast_to(x, (f.n_clients, *f.shape)) if np.shape(x) == f.shape else x, clients)
    return State(server, message, clients, solver_states(setting.algorithm, f))


def _at_minimiser(setting: Setting, f: World, theta: np.ndarray) -> tuple[np.ndarray, list[Any], State]:
    """Let the clients know their gradients at the minimiser; return these, and the fixed point."""
    gradients = f.ledger.family()
    for j in range(f.n_clients):
        f.ledger.set_gradient(j, theta, gradients[j])
    fixed = fixed_point(setting, f, theta)
    return gradients, leaves(fixed), fixed


def _any_old(f: World) -> Old:
    """Return a point and a gradient there of each client: where it was asked last, before the first round."""
    old = Old(f.ledger.family(), f.ledger.family())
    _note(f, old)
    return old


def _note(f: World, old: Old) -> None:
    for j in range(f.n_clients):
        f.ledger.note(j, old.x[j], old.gradient[j])


def _literal(f: World) -> Space:
    """Return the space in which no two clients are exchanged."""
    weights = f.weights or (1,) * f.n_clients
    return Space(f.ledger, [Class((j,), 1, 1, w) for j, w in enumerate(weights)], zero_sum=(0,))


def _side_by_side(space: Space, parts: Sequence[Parts]) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return matrices with a row for each mean, and each deviation of a class: their coordinates in all parts."""
    means = [np.stack([space.split(v)[0] for v in p.means]) for p in parts]
    deviations = []
    for own in zip(*(p.deviations for p in parts), strict=True):
        rows = [np.concatenate([space.split(v)[0] for D in own for v in D[k]]) for k in range(len(own[0]))]
        deviations.append(np.stack(rows) if rows else np.zeros((0, 1), dtype=means[0].dtype))
    return np.concatenate(means, axis=1), deviations


def _begun(setting: Setting, dimension: int, *, exact: bool, memory: bool) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return relations that hold after the first round, whoever is in it, as rows for means and for deviations."""
    found = []
    for _, round in setting.orbits:
        f = setting.world(dimension, exact=exact)
        star = f.ledger.vector()
        gradients, fixed, _ = _at_minimiser(setting, f, star)
        old = _any_old(f) if memory else None
        state = initial_state(setting.algorithm, f, f.zeros())
        near = Near(setting, f, star, gradients, fixed, state, old)
        after = near.after(round)
        found.append(_side_by_side(_literal(f), [after]))
    means = np.concatenate([m for m, _ in found], axis=1)
    deviations = [np.concatenate(own, axis=1) for own in zip(*(d for _, d in found), strict=True)]
    return left_null_space(means), [left_null_space(D) for D in deviations]


def near(
    setting: Setting,
    relations: tuple[np.ndarray, list[np.ndarray]],
    numbers: Sequence[Any],
    dimension: int,
    *,
    exact: bool,
    memory: bool,
) -> tuple[Near, np.ndarray, list[np.ndarray]]:
    """Return the most general state that fulfils relations, and the free vectors that it is made of."""
    f = setting.world(dimension, exact=exact)
    zero, ledger = f.zeros(), f.ledger
    gradients, fixed, star = _at_minimiser(setting, f, zero)
    B, bases = null_space(relations[0]), [null_space(R) for R in relations[1]]
    u = np.stack([ledger.vector() for _ in range(B.shape[1])]) if B.shape[1] else ledger.zeros(0)
    means, n_kinds = B @ u, max((len(b) for b in bases), default=0)
    n_shared = len(B) - n_kinds * len(setting.classes)
    rows: list[Any] = [*means[:n_shared], *(ledger.zeros(f.n_clients) for _ in range(n_kinds))]
    free = []
    for c, (own, base) in enumerate(zip(setting.classes, bases, strict=True)):
        ids, of_class = list(own.clients), means[n_shared + c * n_kinds : n_shared + (c + 1) * n_kinds]
        d = ledger.zeros(base.shape[1], len(own))
        for i in range(base.shape[1] if len(own) > 1 else 0):
            family = ledger.family()[ids]
            d[i] = family - family.sum(axis=0) / len(own)
        free.append(d)
        for k in range(n_kinds):
            rows[n_shared + k][ids] = of_class[k] + np.tensordot(base[k], d, 1)
    places = [k for k, x in enumerate(fixed) if is_vector(x, f)]
    places.sort(key=lambda k: np.ndim(fixed[k]))
    known = {k: fixed[k] + row for k, row in zip(places, rows, strict=False)}
    counter, told = iter(range(len(fixed))), iter(numbers)

    def leaf(x: Any) -> Any:
        k = next(counter)
        return known[k] if k in known else next(told)

    old = None
    if memory:
        old = Old(zero + rows[-2], gradients + rows[-1])
        _note(f, old)
    return Near(setting, f, zero, gradients, fixed, tree_map(leaf, star), old), u, free


def _kept(setting: Setting, dimension: int, numbers: Sequence[Any], *, exact: bool, memory: bool) -> Any:
    """Return those relations that hold after the first round and that every later round keeps."""
    relations = _begun(setting, dimension, exact=exact, memory=memory)
    while True:
        n, _, _ = near(setting, relations, numbers, dimension, exact=exact, memory=memory)
        ends = [n.after(round) for _, round in setting.orbits]
        M, D = _side_by_side(_literal(n.f), ends)
        after = _implied(relations[0], M), [_implied(R, own) for R, own in zip(relations[1], D, strict=True)]
        if len(after[0]) == len(relations[0]) and all(
            len(a) == len(b) for a, b in zip(after[1], relations[1], strict=True)
        ):
            return relations
        relations = after


def _implied(relations: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Return those combinations of relations that hold for what is after a round."""
    return left_null_space(relations @ after) @ relations if len(relations) else relations


@dataclass
class OneRound:
    """What one round does, as matrices.

    ``before`` and ``after`` map the weights of V, one matrix for means and one for the deviations of each class, to the
    blocks of V and of the mean of V after the round: ``before[k][b]`` has a column for each entry of weight k.
    """

    setting: Setting
    asymptotic: bool  # whether numbers in states are at their limits, where they are not at the start
    before: list[list[np.ndarray]]
    after: list[list[np.ndarray]]
    inequalities: list[Form]
    bregman: list[tuple[Form, Form]]  # of the latest points of each class: before, and the mean after
    old: list[Form]  # inequalities between these points and the minimiser
    sizes: tuple[int, ...]  # of the blocks
    weights: tuple[int, ...]  # sizes of the matrices of V
    names: tuple[tuple[str, ...], ...]  # what these weigh, in words: the means, and the deviations of each class


def one_round(setting: Setting, *, memory: bool = False, exact: bool = False) -> OneRound:
    """Run one round of the method's code from a formal state near the fixed point, and read off its matrices."""
    return with_room(lambda dimension: _one_round(setting, dimension, memory=memory, exact=exact))


def _one_round(setting: Setting, dimension: int, *, memory: bool, exact: bool) -> OneRound:
    numbers, asymptotic = settled(setting)
    options: Any = {"exact": exact, "memory": memory}
    relations = _kept(setting, dimension, numbers, **options)
    n, u, free = near(setting, relations, numbers, dimension, **options)
    ledger = n.f.ledger
    before = parts_of([n.reduced(x) for x in n.rows(n.state, n.old)], setting.classes)
    ends = [n.after(round) for _, round in setting.orbits]
    B, bases = null_space(relations[0]), [null_space(R) for R in relations[1]]
    live = _live(n, B, bases, u, free, ends)
    zero_sum = [0]
    deviations = [k for k, ids in enumerate(ledger.families) if _is_deviation(k, n, free)]
    space = Space(ledger, setting.classes, zero_sum=zero_sum, deviations=deviations)
    chances = exact_chances(setting.orbits) if exact else [p for p, _ in setting.orbits]

    def maps(parts: Parts) -> list[list[np.ndarray]]:
        found = [_maps(space, [list(_free(B, parts.means, live[0]))])]
        for c, own in enumerate(setting.classes):
            away = _free(bases[c], parts.deviations[c].reshape(len(bases[c]), len(own) * dimension), live[1][c])
            away = away.reshape(len(live[1][c]), len(own), dimension)
            each = [[away[k][j] for k in range(len(away))] for j in range(len(own))]
            found.append([m / len(own) for m in _maps(space, each)])
        return found

    own = [maps(parts) for parts in ends]

    def expected(k: int, b: int) -> np.ndarray:
        return reduce(add, (p * m[k][b] for p, m in zip(chances, own, strict=True)))

    after = [[expected(k, b) for b in range(len(space.sizes))] for k in range(1 + len(setting.classes))]
    points = points_of(ledger, setting.classes, n.theta, n.gradients)
    bregman, old = [], []
    if n.old is not None:
        bregman, old = _bregman(n, space, points, chances)
    return OneRound(
        setting=setting,
        asymptotic=asymptotic,
        before=maps(before),
        after=after,
        inequalities=space.inequalities(points),
        bregman=bregman,
        old=old,
        sizes=space.sizes,
        weights=(len(live[0]), *(len(x) for x in live[1])),
        names=_names(n, (B, bases), live),
    )


def _names(n: Near, bases: Any, live: Any) -> tuple[tuple[str, ...], ...]:
    """Return what V weighs in words, such as ``server.theta`` or ``mean client.gradient``."""
    parts = zip(("server", "message", "client"), (n.state.server, n.state.message, n.state.clients), strict=True)
    found = [(name, x) for part, tree in parts for name, x in _leaves(part, tree) if is_vector(x, n.f)]
    single, many = ([name for name, x in found if np.ndim(x) == d] for d in (1, 2))
    many += ["latest x", "latest gradient"] if n.old is not None else []
    of_class = [(f"class {c + 1}, " if len(n.setting.classes) > 1 else "") for c in range(len(n.setting.classes))]
    means = [*single, *(f"{own}mean {name}" for own in of_class for name in many)]
    deviations = [[f"{own}{name} - mean" for name in many] for own in of_class]
    free = [
        [names[np.flatnonzero(column)[-1]] for column in B.T]
        for names, B in zip([means, *deviations], [bases[0], *bases[1]], strict=True)
    ]
    rows = zip(free, [live[0], *live[1]], strict=True)
    return tuple(tuple(_combination(row, names) for row in Y) for names, Y in rows)


def _leaves(name: str, tree: Any) -> list[tuple[str, Any]]:
    """Return the leaves of a state by the names of their fields."""
    if not isinstance(tree, tuple):
        return [] if tree is None else [(name, tree)]
    fields = getattr(tree, "_fields", range(len(tree)))
    return [leaf for key, own in zip(fields, tree, strict=True) for leaf in _leaves(f"{name}.{key}", own)]


def _combination(row: np.ndarray, names: Sequence[str]) -> str:
    """Return a sum in words.

    >>> _combination(np.array([1.0, 0.0, -0.5]), ["a", "b", "c"])
    'a - 0.5 c'
    """
    terms = [(float(x), name) for x, name in zip(row, names, strict=True) if abs(x) > TOLERANCE]
    words = [f"{'-' if x < 0 else '+'} {'' if abs(x) == 1 else f'{abs(x):.4g} '}{name}" for x, name in terms]
    return " ".join(words).removeprefix("+ ")


def _is_deviation(k: int, n: Near, free: Sequence[np.ndarray]) -> bool:
    """Tell whether a family is one from which deviations were made: it follows the gradients, before all answers."""
    return 1 <= k <= sum(len(d) for d in free if d.shape[1] > 1)


def _bregman(n: Near, space: Space, points: Any, chances: Sequence[Any]) -> tuple[list[tuple[Form, Form]], list[Form]]:
    """Return f(x) - f* - <grad f*, x - theta*> at the latest points of a class, and the mean of it after a round."""
    before, old = [], []
    for c, (own, met) in enumerate(zip(n.setting.classes, points, strict=True)):
        first = next(a for a in met if a.number == 1)

        def height(a: Any, c: int = c, own: Any = own) -> Form:
            product = space.product(n.gradients[a.client], a.x - n.theta)
            return Form(tuple(-b for b in product.blocks), space.value(c, a.number))

        after = space.zero
        for p, asked in zip(chances, n.asked, strict=True):
            active = [asked[k] for k in own.clients if k in asked]
            rest = p * len(own.clients[len(active) :]) / len(own)
            after = after + rest * height(first)
            if active:  # they are asked the same, up to an exchange
                after = after + (p * len(active) / len(own)) * height(active[0])
        before.append((height(first), after))
        old += space.inequalities([[] for _ in range(c)] + [[met[0], first]])
    return before, old


def _free(B: np.ndarray, rows: np.ndarray, live: np.ndarray) -> np.ndarray:
    """Return the live combinations of the free vectors of which ``rows`` are made."""
    return live @ solve_in(B, rows) if B.shape[1] else rows[:0]


def _live(
    n: Near, B: np.ndarray, bases: list[np.ndarray], u: np.ndarray, free: list[np.ndarray], ends: list[Parts]
) -> Any:
    """Return those combinations of the free vectors on which questions now or later, or the model, depend."""
    ledger = n.f.ledger
    ids = np.argmax(u != 0, axis=1) if len(u) else np.zeros(0, dtype=int)
    families = [f for f in ledger.families[1 : 1 + sum(len(d) for d in free if d.shape[1] > 1)]]
    own = iter(families)
    columns = [
        [next(own)[list(c.clients)] for _ in range(len(d))] if d.shape[1] > 1 else []
        for c, d in zip(n.setting.classes, free, strict=True)
    ]

    def on_u(v: np.ndarray) -> np.ndarray:
        return v[..., ids]

    def on_d(c: int, v: np.ndarray) -> np.ndarray:
        """Return rows of the coefficients of the deviations, one for each client of the class."""
        if not columns[c]:
            return np.zeros((0, len(columns[c])), dtype=v.dtype)
        by = np.stack([v[..., k] for k in columns[c]], axis=-1)  # (..., clients, kinds)
        by = by - by.sum(axis=-2, keepdims=True) / by.shape[-2]
        return by.reshape(-1, by.shape[-1])

    asked = [x for a in ledger.answers if a.number > (n.old is not None) for x in (a.x, a.gradient)]
    theta = [
        k
        for k, x in enumerate(x for x in leaves(n.state) if is_vector(x, n.f) and np.ndim(x) == 1)
        if x is n.state.server.theta
    ]
    if n.old is not None:  # a Lyapunov function with values of functions weighs their points too
        asked += [*n.old.x, *(n.reduced(n.old.gradient - n.gradients))]
    first = [*asked, *(parts.means[k] for parts in ends for k in theta)]
    Y = echelon(np.stack([*(on_u(v) for v in first), *B[theta]]))[0]
    Z = [echelon(np.concatenate([on_d(c, v) for v in first]))[0] for c in range(len(bases))]
    while True:
        rows, more = [Y], [[z] for z in Z]
        for parts in ends:
            vs = list(Y @ solve_in(B, parts.means)) if len(Y) else []
            for c, base in enumerate(bases):
                if len(Z[c]):
                    away = Z[c] @ solve_in(
                        base, parts.deviations[c].reshape(len(base), base.shape[0] and parts.deviations[c][0].size)
                    )
                    vs += list(away.reshape(len(Z[c]) * len(n.setting.classes[c]), ledger.dimension))
            for v in vs:
                rows.append(on_u(v)[None])
                for c in range(len(bases)):
                    more[c].append(on_d(c, v))
        wider = echelon(np.concatenate(rows))[0]
        others = [echelon(np.concatenate(own))[0] for own in more]
        if len(wider) == len(Y) and all(len(a) == len(b) for a, b in zip(others, Z, strict=True)):
            return wider, others
        Y, Z = wider, others


def _maps(space: Space, groups: Sequence[Sequence[np.ndarray]]) -> list[np.ndarray]:
    """Return the matrices that map the entries of P to the blocks of the sum over groups of sum_ab P_ab <v_a, v_b>."""
    split = [[space.split(v) for v in group] for group in groups]
    found = []
    for b, size in enumerate(space.sizes):
        n = len(groups[0]) if groups else 0
        total = np.zeros((size * size, n * n), dtype=object if space.ledger.exact else float)
        for group in split:
            for a, p in enumerate(group):
                for k, q in enumerate(group):
                    M = np.outer(p[0], q[0]) if b == 0 else p[b] @ q[b].T
                    total[:, a * n + k] = total[:, a * n + k] + M.ravel()
        found.append(total)
    return found
