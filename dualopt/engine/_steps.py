"""The two phases of a round on the side of the clients, and the mean of what they upload: pure functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dualopt.arrays.client_states import ClientStates
from dualopt.arrays.tree import leaves, merge_clients, take_rows, tree_map
from dualopt.arrays.xp import Array, broadcast, set_rows, zeros_like
from dualopt.methods import Algorithm
from dualopt.methods._base import Means
from dualopt.methods.compressors import Compressor, Uplink
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import Round
from dualopt.objectives import Objective
from dualopt.objectives._weights import mean, of_clients, shares, total
from dualopt.objectives.scales import own_clients
from dualopt.solvers import LocalSolution
from dualopt.solvers._loop import works_in_single

__all__ = [
    "Phases",
    "Proposed",
    "averaged",
    "commit",
    "counted",
    "means_of",
    "partial_sums",
    "propose",
    "remembered",
    "solver_states",
    "stacked",
    "weighed",
    "weights_in",
]

Weights = tuple[float, ...] | None


class Proposed(NamedTuple):
    """What the active clients computed in a round, and none of it their state yet."""

    ids: Sequence[int]  # who: positions among the clients at hand
    active: Any  # their states
    solver: Any  # those of their solvers
    upload: Any
    solution: LocalSolution | None
    memory: tuple[Array, ...] = ()  # what they remember of compressed uploads
    vectors: int = 0  # how many vectors of the upload were compressed


class Phases(NamedTuple):
    """What a host does in a round: functions of these names, or others for arrays of some libraries."""

    propose: Callable[..., Proposed]
    commit: Callable[..., tuple[ClientStates, ClientStates]]
    evaluated: Callable[..., Any]  # what it says of a model
    solver_states: Callable[[Algorithm, Objective], Any]


def solver_states(algorithm: Algorithm, objective: Objective) -> Any:
    """Return the states of the local solvers before their first call; methods that never solve have no solver."""
    solver, own = algorithm.solver, own_clients(objective)
    if solver is None:
        return ()
    if not works_in_single(solver, own):
        return solver.initial_state(own)
    from dualopt.solvers._mixed import first_state  # few runs do

    return first_state(solver, own)


def propose(
    algorithm: Algorithm,
    objective: Objective,
    clients: ClientStates,
    solver: ClientStates,
    message: Any,
    round: Round,
    ids: Sequence[int],
    compressor: Compressor | None = None,
    memory: ClientStates | None = None,
    oracle: type[Oracle] = Oracle,
) -> Proposed:
    """Do the local part of a round; ``ids`` are the positions of the clients of ``round`` in ``objective``.

    With a compressor, what is uploaded is what arrives; ``memory`` is what clients remember of earlier uploads.
    """
    active_objective = objective.select(ids)
    local_objective = algorithm.local_objective(active_objective)
    up = None
    if compressor is not None:
        known = () if memory is None else memory.take(ids)
        up = Uplink(compressor, algorithm.upload_reference, message, objective.shape, round, known)
    asked = oracle(local_objective, algorithm.solver, algorithm.stop, solver.take(ids), round, up)
    before = clients.take(ids)
    active, upload = algorithm.local(before, message, asked, round)
    solution = asked.solution
    if solution is not None and local_objective is not active_objective:
        solution = solution._replace(evaluation=None)  # of another function: no certificate of f_j
    found = Proposed(ids, stacked(before, active), asked.solver_state, upload, solution)
    return found if up is None else found._replace(upload=up.rest(upload), memory=up.memory, vectors=up.vectors)


def remembered(memory: ClientStates, proposed: Proposed | None, n_clients: int) -> ClientStates:
    """Return what clients remember of compressed uploads after a round; at first all of it is zero."""
    if proposed is None or not proposed.memory:
        return memory
    known, rows = memory.take(proposed.ids), proposed.memory
    if len(known) < len(rows):
        new = (zeros_like(broadcast(x[:1, ...], (n_clients, *x.shape[1:]))) for x in rows[len(known) :])
        memory = ClientStates((*memory.tree, *new), n_clients)
    return memory.put(proposed.ids, rows)


def commit(
    algorithm: Algorithm,
    clients: ClientStates,
    solver: ClientStates,
    proposed: Proposed | None,
    n_clients: int,
    message: Any,
    *,
    communicate: bool,
) -> tuple[ClientStates, ClientStates]:
    """Return the states after a round: the proposed ones of those who were counted, and all have the message."""
    ids: Sequence[int] = ()
    active = None
    if proposed is not None:
        ids, active = proposed.ids, proposed.active
        solver = solver.put(ids, proposed.solver)
        if communicate and "active" in algorithm.receivers:
            active = stacked(active, algorithm.receive(active, message))
    if not communicate or "inactive" not in algorithm.receivers or len(ids) == n_clients:
        return clients.put(ids, active), solver
    if 2 * len(ids) < n_clients:  # to gather the others and to put them back takes longer than to change all of them
        before = clients.tree
        heard = stacked(before, algorithm.receive_inactive(before, message))
        return clients.put(range(n_clients), _with_rows(heard, ids, active, leaves((before, message)))), solver
    others = np.delete(np.arange(n_clients), np.asarray(ids, dtype=np.int64))
    resting = clients.take(others)
    heard = stacked(resting, algorithm.receive_inactive(resting, message))
    return clients.put(ids, active).put(others, heard), solver


def _with_rows(tree: Any, ids: Sequence[int], rows: Any, given: Sequence[Array]) -> Any:
    """Return ``tree`` with these rows of clients; arrays that are not ``given``, nor views, were made for it."""
    if not len(ids):
        return tree
    places, known = np.asarray(ids, dtype=np.int64), [*given]

    def put(x: Array, own: Array) -> Array:
        made = type(x) is np.ndarray and x.base is None and all(x is not other for other in known)
        known.append(x)  # it may be there twice
        return set_rows(x, places, own) if made else merge_clients(x, own, places)

    return tree_map(put, tree, rows)


def counted(proposed: Proposed, rows: Sequence[int]) -> Proposed | None:
    """Return what some of the clients computed, by their rows; None for nobody."""
    if len(rows) == len(proposed.ids):
        return proposed
    if not len(rows):
        return None
    ids = tuple(proposed.ids[k] for k in rows)
    active, solver, memory = take_rows((proposed.active, proposed.solver, proposed.memory), rows)
    return proposed._replace(ids=ids, active=active, solver=solver, memory=memory)


def weights_in(algorithm: Algorithm, round: Round, weights: Weights) -> tuple[Weights, ...]:
    """Return the weights of the active clients in each mean that the server asks for, from the weights of all."""
    own = of_clients(weights, round.clients)
    if not algorithm.draws or round.inclusion is None:
        return (own,)
    chances = [round.inclusion[j] for j in round.clients]
    return own, tuple(w / pi for w, pi in zip(own or (1.0,) * len(chances), chances, strict=True))


def means_of(algorithm: Algorithm, means: Sequence[Any]) -> Any:
    """Return what the server is given: the mean, or both where the method asks for them; one may stand for both."""
    return Means(means[0], means[-1]) if algorithm.draws else means[0]


def averaged(algorithm: Algorithm, upload: Any, round: Round, weights: Weights) -> Any:
    """Return the means of the rows of an upload over the active clients, whose weights are among those of all."""
    n = len(round.clients)

    def means(own: Weights) -> Any:
        parts = shares(own)
        return tree_map(lambda rows: _mean(rows, n, parts), upload)

    return means_of(algorithm, tuple(map(means, weights_in(algorithm, round, weights))))


def partial_sums(upload: Any, weights: Sequence[Weights] = ()) -> Any:
    """Return sums of rows, plain or with weights, of several kinds of weights a tuple."""
    if not weights:
        return tree_map(total, upload)
    return tuple(tree_map(partial(total, weights=own), upload) for own in weights)


def weighed(round: Round, weights: Weights, kept: float = 1.0) -> Round:
    """Return the round with the weight of its clients, and what is kept of their steps, as the server needs them."""
    if weights is None:
        return round if kept == round.kept else replace(round, kept=kept)
    return replace(round, weight=sum(weights[j] for j in round.clients) / sum(weights), kept=kept)


def _mean(upload: Array, n: int, parts: Weights) -> Array:
    """Return the mean over the active clients; without their axis an average would be one of the entries."""
    if upload.shape[:1] != (n,):
        raise ValueError(f"upload must have shape ({n}, ...), one row per active client, not {upload.shape}.")
    return mean(upload, parts)


def stacked(before: Any, after: Any) -> Any:
    """Return the states ``after``, whose leaves may lack the client axis, with it; ``before`` has it."""
    return after if _alike(before, after) else tree_map(lambda old, new: broadcast(new, old.shape), before, after)


def _alike(before: Any, after: Any) -> bool:
    """Tell whether two trees are of one structure, with arrays of the same shapes."""
    if after is before:
        return True
    if isinstance(before, tuple):
        return type(after) is type(before) and len(after) == len(before) and all(map(_alike, before, after))
    return before is not None and after.shape == before.shape
