"""One round of a method near its fixed point, as matrices: what a Lyapunov function needs to know of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from dualopt.arrays._checks import require
from dualopt.lab.proofs._compressors import Unbiased
from dualopt.lab.proofs._formal import Ledger, is_vector, with_room
from dualopt.lab.proofs._forms import Form, Space, points_of
from dualopt.lab.proofs._linear import TOLERANCE
from dualopt.lab.proofs._setting import Setting
from dualopt.lab.proofs._states import Block, FormalState, Outcome, general_state, observable

__all__ = ["OneRound", "one_round"]


@dataclass(frozen=True)
class OneRound:
    """What one round does, as matrices.

    ``before`` and ``after`` map the weights of V, one matrix for means and one for the deviations of each class, to the
    blocks of V and of the mean of V after the round: ``before[k][b]`` has a column for each entry of weight k.
    """

    before: list[list[np.ndarray]]
    after: list[list[np.ndarray]]
    inequalities: list[Form]  # between points, and the bounds of vectors after these
    heights: list[tuple[Form, Form]]  # of the latest points of each class: before, and the mean after
    of_latest: list[Form]  # inequalities between these points and the minimiser
    sizes: tuple[int, ...]  # of the blocks
    weights: tuple[int, ...]  # sizes of the matrices of V
    names: tuple[tuple[str, ...], ...]  # what these weigh, in words: the means, and the deviations of each class
    n_bounds: tuple[int, ...] = ()  # how many of the inequalities are bounds, of each class


def one_round(setting: Setting, *, memory: bool = False) -> OneRound:
    """Run one round of the method's code from a formal state near the fixed point, and read off its matrices."""
    return with_room(lambda dimension: _one_round(setting, dimension, memory=memory))


def _one_round(setting: Setting, dimension: int, *, memory: bool) -> OneRound:
    general, outcomes = general_state(setting, dimension, memory=memory)
    weighed, bases, ledger = observable(general, outcomes), general.bases, general.f.ledger
    deviations = range(1, 1 + sum(basis.shape[1] for basis in bases[1:]))  # families from which deviations were made
    space = Space(ledger, setting.classes, setting.others, deviations=deviations, **_apart(setting, ledger))
    chances = [p for p, _ in setting.orbits]

    def maps(blocks: Sequence[Block]) -> list[list[np.ndarray]]:
        own = zip(blocks, bases, weighed, strict=True)
        return [_maps(space, block.of(Y, basis), block.counts) for block, basis, Y in own]

    ends = [maps(outcome.blocks) for outcome in outcomes]

    def expected(k: int, b: int) -> np.ndarray:
        return reduce(add, (p * end[k][b] for p, end in zip(chances, ends, strict=True)))

    points = points_of(ledger, space.functions, general.theta)
    heights, of_latest = ([], []) if general.latest is None else _heights(general, space, points, chances, outcomes)
    return OneRound(
        before=maps(general.blocks(setting.alike())),
        after=[[expected(k, b) for b in range(len(space.sizes))] for k in range(len(bases))],
        inequalities=space.inequalities(points),
        heights=heights,
        of_latest=of_latest,
        sizes=space.sizes,
        weights=tuple(map(len, weighed)),
        names=_names(general, weighed),
        n_bounds=tuple(len(ledger.bounds(own[0].client)) for own in points),
    )


def _apart(setting: Setting, ledger: Ledger) -> dict[str, Any]:
    """Return which families are errors whose mean is zero whatever else there is.

    Raises
    ------
    ValueError
        If something in the round depends on them.
    """
    if not isinstance(setting.compressor, Unbiased):
        return {}
    asked = [x for a in ledger.answers for x in (a.x, a.gradient)]
    asked += [x for a in ledger.accuracies for x in (a.residual, a.first)]
    alone = not ledger.on_which(*asked, *(e.sent for e in ledger.errors))
    require(alone, "compressor must be contractive where somebody is asked in the same round about what has arrived")
    return {"apart": ledger.error_families, "independent": setting.compressor.independent}


def _maps(space: Space, rows: np.ndarray, counts: Sequence[int]) -> list[np.ndarray]:
    """Return the matrices that map the entries of P to the blocks of the mean over members of sum_ab P_ab <v_a, v_b>.

    ``rows`` has shape (kinds, members, dimension), and a member stands for so many clients.
    """
    n, whole = len(rows), sum(counts)
    found = [np.zeros((size * size, n * n), dtype=object if space.ledger.exact else float) for size in space.sizes]
    for j, count in enumerate(counts):
        split = [space.split(v) for v in rows[:, j]]
        for b, total in enumerate(found):
            for a, p in enumerate(split):
                for k, q in enumerate(split):
                    M = np.outer(p[0], q[0]) if b == 0 else p[b] @ q[b].T
                    total[:, a * n + k] = total[:, a * n + k] + count * M.ravel() / whole
    return found


def _heights(
    general: FormalState, space: Space, points: Any, chances: Sequence[Any], outcomes: Sequence[Outcome]
) -> tuple[list[tuple[Form, Form]], list[Form]]:
    """Return f(x) - f* - <grad f*, x - theta*> at the latest points of a class, and the mean of it after a round."""
    found, of_latest = [], []
    for c, (own, met) in enumerate(zip(general.setting.classes, points, strict=False)):
        first = next(a for a in met if a.number == 1)

        def height(a: Any, c: int = c) -> Form:
            product = space.product(general.gradients[a.client], a.x - general.theta)
            return Form(tuple(-b for b in product.blocks), space.value(c, a.number))

        after = space.zero
        for p, outcome in zip(chances, outcomes, strict=True):
            active = [outcome.asked[k] for k in own.clients if k in outcome.asked]
            after = after + (p * (len(own) - len(active)) / len(own)) * height(first)
            if active:  # they are asked the same, up to an exchange
                after = after + (p * len(active) / len(own)) * height(active[0])
        found.append((height(first), after))
        of_latest += space.inequalities_of(c, [met[0], first])
    return found, of_latest


def _names(general: FormalState, weighed: Sequence[np.ndarray]) -> tuple[tuple[str, ...], ...]:
    """Return what V weighs in words, such as ``server.theta`` or ``mean client.gradient``."""
    state, classes = general.state, general.setting.classes
    named = {"server": state.server, "message": state.message, "client": state.clients, "memory": state.memory}
    parts = named.items()
    found = [(name, x) for part, tree in parts for name, x in _leaves(part, tree) if is_vector(x, general.f)]
    single, many = ([name for name, x in found if np.ndim(x) == d] for d in (1, 2))
    many += ["latest x", "latest gradient"] if general.latest is not None else []
    of_class = [(f"class {c + 1}, " if len(classes) > 1 else "") for c in range(len(classes))]
    means = [*single, *(f"{own}mean {name}" for own in of_class for name in many)]
    deviations = [[f"{own}{name} - mean" for name in many] for own in of_class]
    free = [
        [names[np.flatnonzero(column)[-1]] for column in basis.T]
        for names, basis in zip([means, *deviations], general.bases, strict=True)
    ]
    return tuple(tuple(_combination(row, names) for row in Y) for names, Y in zip(free, weighed, strict=True))


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
