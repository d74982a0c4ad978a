"""The engine: one round of a federated method, and the endless iterator over rounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from dualopt._objects import as_compressor, with_objects
from dualopt.algorithms import Algorithm
from dualopt.algorithms._base import parameters, require_complete
from dualopt.amounts import NOTHING, of_message, of_upload
from dualopt.client_states import ClientStates
from dualopt.compressors import Compressor, Identity
from dualopt.objectives import Objective
from dualopt.objectives.composite import without_regulariser
from dualopt.oracle import Oracle
from dualopt.participation import Full, Participation, Round, WeightedSubset, as_participation
from dualopt.preparation import Preparation, Prepared, prepared_by
from dualopt.regularisers import Zero
from dualopt.solvers import LocalSolution
from dualopt.tree import tree_map
from dualopt.xp import Array, array_namespace, broadcast

__all__ = [
    "Carried",
    "Snapshot",
    "State",
    "advance",
    "complete",
    "compressing",
    "informed",
    "initial_state",
    "iterate",
    "rounds_of",
    "shown",
]


class State(NamedTuple):
    """All that a federation carries from one round to the next."""

    server: Any  # state of the server; server.theta is the model
    message: Any  # what the clients know of it
    clients: Any  # states of all clients, client axis first
    solver: Any = ()  # states of their local solvers, client axis first; () before the first call


class Carried(NamedTuple):
    """All that the rounds to come depend on, besides method, objective, participation and seed."""

    rounds: int  # that were done
    state: State
    holding: Array  # (N,)  who holds the present message


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Snapshot:
    """The federation after a round.

    Attributes
    ----------
    round : Round
        Who was active, and whether the round communicated.
    server : NamedTuple
        State of the server; ``server.theta`` is the model.
    message : tree of arrays
        What the clients know of it.
    solution : LocalSolution or None
        Of the active clients; None when there were none.
    floats_up, floats_down : int
        Numbers uploaded by and sent to all clients together in this round, whatever their width.
    bits_up, bits_down : int
        The bits of all that: the width of every number, or what a compressor makes of it.
    """

    round: Round
    server: Any
    message: Any
    _clients: ClientStates
    _solver: ClientStates
    solution: LocalSolution | None
    floats_up: int
    floats_down: int
    bits_up: int
    bits_down: int
    _own: Any = None  # server, where that above shows its model in other coordinates
    _holding: Any = None  # the clients that hold the message

    def __repr__(self) -> str:
        r, shape = self.round, tuple(self.server.theta.shape)
        silent = "" if r.communicate else ", nothing sent"
        return (
            f"<Snapshot after round {r.n + 1}: {r.n_active} of {r.n_clients} clients{silent}; model of shape {shape}>"
        )

    @property
    def clients(self) -> Any:
        """States of all clients, client axis first; where some were active, put together when first asked for."""
        return self._clients.tree

    @property
    def solver(self) -> Any:
        """States of the local solvers of all clients, client axis first."""
        return self._solver.tree

    @property
    def state(self) -> State:
        """What the next round starts from."""
        server = self.server if self._own is None else self._own
        return State(server, self.message, self.clients, self.solver)

    @property
    def carried(self) -> Carried:
        """What all later rounds start from."""
        return Carried(self.round.n + 1, self.state, self._holding)

    @property
    def local_models(self) -> Array | None:
        """Where the active clients ended, shape ``(P, *shape)``; None when there were none."""
        return None if self.solution is None else self.solution.theta

    @property
    def local_gradients(self) -> Array | None:
        """The gradients of their ``f_j`` there, shape ``(P, *shape)``; None where nobody computed them."""
        if self.solution is None or self.solution.evaluation is None:
            return None
        return self.solution.evaluation.grad_f


def iterate(
    algorithm: Algorithm | str,
    objective: Objective,
    *,
    theta0: Array | None = None,
    participation: Participation | str | None = None,
    seed: int = 0,
    prepare: Preparation | Sequence[Preparation] | None = None,
    compressor: Compressor | str | None = None,
) -> Iterator[Snapshot]:
    """Yield the federation after each round, without end (use ``zip``, ``itertools.islice`` or ``takewhile``).

    Parameters
    ----------
    algorithm : Algorithm or str
        The method, or its name, such as "dualfl"; parameters left open are filled in by ``suggested``.
    objective : Objective
        The clients.
    theta0 : array, shape ``shape``, optional
        Where to start; when not given, what the objective's ``initial(seed)`` returns (networks have one), else zero.
    participation : Participation or str, optional
        Who takes part, also as text, such as "subset=10"; everybody when not given.
    seed : int, default 0
        Seed of every random stream.
    prepare : Preparation or sequence of Preparation, optional
        What happens before the first round (:mod:`dualopt.preparation`). Models and local solutions are in the
        coordinates of ``objective`` whatever those of the method are; the other states are in those of the method.
        No snapshot counts what it takes: :func:`dualopt.run` does, in row 0, and ``prepared_by`` tells.
    compressor : Compressor, optional
        What uploads go through, in place of the method's own field ``compressor``.

    Raises
    ------
    ValueError
        If the method does not support the participation, a compressor, or the regulariser of the objective, or the
        objective is not one for the preparation.

    Examples
    --------
    >>> from itertools import islice
    >>> import numpy as np
    >>> from dualopt.algorithms import DualFL
    >>> from dualopt.objectives import Quadratic
    >>> from dualopt.solvers import Exact
    >>> f = Quadratic(A=np.stack([np.eye(2), 2 * np.eye(2)]), b=np.array([[1.0, 0.0], [0.0, 3.0]]))
    >>> for snapshot in islice(iterate(DualFL(solver=Exact()), f), 30):
    ...     pass
    >>> snapshot.server.theta.round(6).tolist(), f.minimiser().round(6).tolist()
    ([0.333333, 1.0], [0.333333, 1.0])
    >>> snapshot
    <Snapshot after round 30: 2 of 2 clients; model of shape (2,)>
    """
    who = as_participation(participation)
    algorithm = with_objects(algorithm, objective)
    theta0 = objective.initial(seed) if theta0 is None else theta0
    prepared = prepared_by(prepare, objective, theta0)
    algorithm = complete(algorithm, prepared.objective, who, compressor)
    return shown(rounds_of(algorithm, prepared.objective, prepared.theta0, who, seed), prepared, objective)


def shown(snapshots: Iterator[Snapshot], prepared: Prepared, objective: Objective) -> Iterator[Snapshot]:
    """Return the rounds with models and local solutions in the coordinates of ``objective``."""
    if prepared.model is None:
        return snapshots
    f = without_regulariser(objective)

    def one(s: Snapshot) -> Snapshot:
        server = s.server._replace(theta=prepared.shown(s.server.theta))
        solution = prepared.shown_solution(s.solution, f.select(s.round.clients))
        return replace(s, server=server, solution=solution, _own=s.server)

    return map(one, snapshots)


def complete(
    algorithm: Algorithm | str,
    objective: Objective,
    participation: Participation | None = None,
    compressor: Compressor | str | None = None,
) -> Algorithm:
    """Return the method with no parameter open and no name left to look up; refuse what it does not support.

    Raises
    ------
    ValueError
        If a name is unknown, a class is passed in place of an instance, or the method does not support the
        participation, a compressor, or the regulariser of the objective, or leaves a parameter open.
    """
    method = with_objects(algorithm, objective)
    if compressor is not None:
        method = compressing(method, compressor)
    needs = frozenset() if participation is None else participation.needs(objective.n_clients)
    for need in sorted(needs - method.supports):
        raise ValueError(f"algorithm {type(method).__name__} does not support {need} participation.")
    if objective.regulariser != Zero() and "regulariser" not in method.supports:
        raise ValueError(f"algorithm {type(method).__name__} does not support an objective with a regulariser.")
    method = informed(method, objective, participation).suggested(objective)
    require_complete(method)
    return method


def compressing(algorithm: Algorithm, compressor: Compressor | str) -> Algorithm:
    """Return the method with this compressor for its uploads.

    Raises
    ------
    ValueError
        If the method supports none.

    Examples
    --------
    >>> from dualopt import DualFL, FedSplit
    >>> from dualopt.compressors import RandK
    >>> compressing(FedSplit(), RandK(size=3)).compressor
    RandK(size=3)
    >>> compressing(DualFL(), RandK(size=3))
    Traceback (most recent call last):
    ValueError: algorithm DualFL does not support compression.
    """
    if "compression" not in algorithm.supports:
        raise ValueError(f"algorithm {type(algorithm).__name__} does not support compression.")
    changes: dict[str, Any] = {"compressor": as_compressor(compressor)}
    return replace(algorithm, **changes)


def informed(algorithm: Algorithm, objective: Objective, participation: Participation | None) -> Algorithm:
    """Return the method with its parameters ``fraction`` and ``inclusion``, where open, as the participation has them.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt import FedDyn, Quadratic
    >>> from dualopt.participation import UniformSubset
    >>> f = Quadratic(A=np.ones((4, 1, 1)), b=np.zeros((4, 1)))
    >>> informed(FedDyn(), f, UniformSubset(size=1))  # doctest: +ELLIPSIS
    FedDyn(..., fraction=0.25, ...)
    """
    open_ = {name for name in parameters(type(algorithm)) if getattr(algorithm, name, None) is None}
    known: dict[str, Any] = {}
    if participation is not None and "fraction" in open_:
        known["fraction"] = participation.fraction(objective.n_clients) or None  # nobody, ever: nothing depends on it
    if isinstance(participation, WeightedSubset) and participation.weights is not None and "inclusion" in open_:
        known["inclusion"] = participation.inclusion(objective.n_clients)
    return replace(algorithm, **known) if known else algorithm


def initial_state(algorithm: Algorithm, objective: Objective, theta0: Array | None = None) -> State:
    """Return the state before the first round, from ``theta0`` or where a run starts.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt import FedAvg, Quadratic
    >>> f = Quadratic(A=np.ones((2, 1, 1)), b=np.zeros((2, 1)))
    >>> initial_state(FedAvg().suggested(f), f, np.ones(1)).server
    Server(theta=array([1.]))
    """
    theta0 = objective.initial() if theta0 is None else theta0
    copies = broadcast(theta0, (objective.n_clients, *objective.shape))
    return State(*algorithm.init(theta0, copies), _solver_state(algorithm, objective))


def rounds_of(
    algorithm: Algorithm,
    objective: Objective,
    theta0: Array,
    participation: Participation | None,
    seed: int,
    since: Carried | None = None,
) -> Iterator[Snapshot]:
    """Yield the rounds of a method with no parameter open; all, or those after a snapshot whose ``carried`` is given.

    The participation draws the earlier rounds again: its stream is the same whatever its generator keeps.
    """
    objective = without_regulariser(objective)  # the regulariser is the method's from here on
    n_clients = objective.n_clients
    compressor = getattr(algorithm, "compressor", Identity())
    if isinstance(participation, WeightedSubset) and participation.weights is None:
        participation = replace(participation, weights=algorithm.sampling_weights())
    if since is None:
        since = Carried(0, initial_state(algorithm, objective, theta0), np.zeros(n_clients, dtype=bool))
    state, holding = _held(algorithm, objective, since.state), since.holding.copy()
    size = of_message(state.message)
    for round in islice((participation or Full()).rounds(n_clients, seed), since.rounds, None):
        state, upload, solution = _advance(algorithm, objective, state, round)
        active = slice(None) if round.n_active == n_clients else np.asarray(round.clients, dtype=np.int64)
        up, down = NOTHING, size.times(round.n_active - int(np.count_nonzero(holding[active])))
        holding[active] = True
        if upload is not None:
            up, size = of_upload(upload, compressor, round), of_message(state.message)
            holding[:] = "inactive" in algorithm.listens
            holding[active] = "active" in algorithm.listens
            down = down.plus(size.times(int(np.count_nonzero(holding))))
        sent = up.numbers, down.numbers, up.bits, down.bits
        yield Snapshot(round, *state, solution, *sent, _holding=holding.copy())


def advance(
    algorithm: Algorithm, objective: Objective, state: State, round: Round
) -> tuple[State, Any, LocalSolution | None]:
    """Do one round: the same state and round give the same result, so that one state can meet several rounds.

    Parameters
    ----------
    algorithm : Algorithm
        The method, with no parameter left open.
    objective : Objective
        All clients.
    state : State
        The federation before the round; it is not changed. Without a solver state, solvers make their first call.
    round : Round
        Who is active and whether the round communicates.

    Returns
    -------
    State
        The federation after the round.
    tree of arrays or None
        What the active clients uploaded; None when the round did not communicate.
    LocalSolution or None
        Their local solutions; None when nobody was active.

    Raises
    ------
    ValueError
        If a parameter is open.
    """
    require_complete(algorithm)
    if not round.clients:
        return state, None, None
    state, upload, solution = _advance(algorithm, objective, _held(algorithm, objective, state), round)
    return state._replace(clients=state.clients.tree, solver=state.solver.tree), upload, solution


def _held(algorithm: Algorithm, objective: Objective, state: State) -> State:
    """Return the state with those of the clients and of their solvers as `ClientStates`."""
    solver = state.solver or _solver_state(algorithm, objective)
    N = objective.n_clients
    return state._replace(clients=ClientStates(state.clients, N), solver=ClientStates(solver, N))


def _advance(
    algorithm: Algorithm, objective: Objective, state: State, round: Round
) -> tuple[State, Any, LocalSolution | None]:
    """Do one round; the states of the clients and of their solvers are `ClientStates`."""
    server, message, clients, solver_state = state
    ids = round.clients
    if not ids:
        return state, None, None
    active_objective = objective.select(ids)
    local_objective = algorithm.local_objective(active_objective)
    oracle = Oracle(local_objective, algorithm.solver, algorithm.stop, solver_state.take(ids), round)
    before = clients.take(ids)
    active, upload = algorithm.local(before, message, oracle, round)
    active, solution = _stacked(before, active, len(ids)), oracle.solution
    if solution is not None and local_objective is not active_objective:
        solution = solution._replace(evaluation=None)  # of another function: no certificate of f_j
    solver_state = solver_state.put(ids, oracle.solver_state)
    if not round.communicate:
        return State(server, message, clients.put(ids, active), solver_state), None, solution
    mean = tree_map(lambda x: _mean(x, len(ids)), upload)
    server, message = algorithm.server(server, mean, round)
    if "active" in algorithm.listens:
        active = _stacked(active, algorithm.receive(active, message), len(ids))
    clients = clients.put(ids, active)
    if "inactive" in algorithm.listens and len(ids) < objective.n_clients:
        others = np.delete(np.arange(objective.n_clients), ids)
        resting = clients.take(others)
        clients = clients.put(others, _stacked(resting, algorithm.receive_inactive(resting, message), len(others)))
    return State(server, message, clients, solver_state), upload, solution


def _mean(upload: Array, n_active: int) -> Array:
    """Return the mean over the active clients; without their axis an average would be one of the entries."""
    if tuple(upload.shape[:1]) != (n_active,):
        raise ValueError(f"upload must have shape ({n_active}, ...), one row per active client, not {upload.shape}.")
    return array_namespace(upload).sum(upload, axis=0) / n_active


def _solver_state(algorithm: Algorithm, objective: Objective) -> Any:
    """Return the state of the local solvers before their first call; methods that never solve have no solver."""
    return () if algorithm.solver is None else algorithm.solver.initial_state(objective)


def _stacked(before: Any, after: Any, n: int) -> Any:
    """Return the states ``after``, whose leaves may lack the client axis, with it; ``before`` has it."""
    return after if after is before else tree_map(lambda old, new: broadcast(new, (n, *old.shape[1:])), before, after)
