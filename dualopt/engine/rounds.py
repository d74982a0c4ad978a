"""The engine: one round of a federated method, and the endless iterator over rounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from dualopt.arrays._checks import require
from dualopt.arrays.xp import Array, array_namespace, broadcast
from dualopt.engine._host import Host, phases_of
from dualopt.engine._inline import Clustered
from dualopt.engine._local_server import LocalServer
from dualopt.engine._remote import RemoteClients
from dualopt.engine._server import RoundResult, Server
from dualopt.engine.traffic import Meter, Traffic, of_delivered, of_message
from dualopt.methods import Algorithm
from dualopt.methods._base import require_complete, with_participation
from dualopt.methods.compressors import Compressor, Identity, kept_part
from dualopt.methods.participation import Full, Participation, Round, WeightedSubset, as_participation
from dualopt.methods.preparation import Preparation, Prepared, prepared_by
from dualopt.objectives import Objective
from dualopt.objectives.composite import without_regulariser
from dualopt.objectives.scales import own_clients, reweighted, scales_of
from dualopt.regularisers import Zero
from dualopt.solvers import LocalSolution
from dualopt.solvers.stopping import Gap
from dualopt.spec import built, resolved

__all__ = [
    "ResumePoint",
    "Snapshot",
    "State",
    "advance",
    "as_compressor",
    "as_downlink",
    "check_engine",
    "in_user_coordinates",
    "initial_state",
    "iterate",
    "on_engine",
    "resolve",
    "rounds_of",
    "scaled",
    "unscaled",
    "with_objects",
]


class State(NamedTuple):
    """All that a federation carries from one round to the next.

    Where hosts keep the states of the clients themselves, what the server knows of these hosts stands in their place.
    """

    server: Any  # state of the server; server.theta is the model
    message: Any  # what the clients know of it
    clients: Any  # states of all clients, client axis first
    solver: Any = ()  # states of their local solvers, client axis first; () before the first call
    memory: Any = ()  # what they remember of compressed uploads, client axis first: an array for each vector
    delivered: Any = ()  # what arrived of compressed messages, the last of each kind


class ResumePoint(NamedTuple):
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
    """

    round: Round
    server: Any
    message: Any
    _states: Any  # HostState, or LazyStates of hosts elsewhere
    solution: LocalSolution | None
    _up: Traffic
    _down: Traffic
    _holding: Any  # the clients that hold the message
    _delivered: Any  # what arrived of compressed messages
    _own: Any = None  # server, where that above shows its model in other coordinates

    def __repr__(self) -> str:
        r, shape = self.round, tuple(self.server.theta.shape)
        silent = "" if r.communicate else ", nothing sent"
        return (
            f"<Snapshot after round {r.n + 1}: {r.n_active} of {r.n_clients} clients{silent}; model of shape {shape}>"
        )

    @property
    def floats_up(self) -> int:
        """Numbers uploaded by all clients together in this round, whatever their width."""
        return self._up.numbers

    @property
    def floats_down(self) -> int:
        """Numbers sent to all clients together in this round, whatever their width."""
        return self._down.numbers

    @property
    def bits_up(self) -> int:
        """The bits of what was uploaded: the width of every number, or what a compressor makes of it."""
        return self._up.bits

    @property
    def bits_down(self) -> int:
        """The bits of what was sent to clients, counted in the same way."""
        return self._down.bits

    @property
    def clients(self) -> Any:
        """States of all clients, client axis first; where some were active, put together when first asked for."""
        return self._states.clients.tree

    @property
    def solver(self) -> Any:
        """States of the local solvers of all clients, client axis first."""
        return self._states.solver.tree

    @property
    def memory(self) -> Any:
        """What all clients remember of compressed uploads, client axis first: an array for each vector of an upload."""
        return self._states.memory.tree

    @property
    def state(self) -> State:
        """What the next round starts from."""
        server = self.server if self._own is None else self._own
        clients, solver, memory = self._states.resumed_from
        return State(server, self.message, clients, solver, memory, self._delivered)

    @property
    def resume_point(self) -> ResumePoint:
        """What all later rounds start from."""
        return ResumePoint(self.round.n + 1, self.state, self._holding)

    @property
    def local_models(self) -> Array | None:
        """Where the active clients ended, shape ``(P, *shape)``; None when there were none."""
        if self.solution is None:
            return None
        return self._states.local_models if self.solution.theta is None else self.solution.theta

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
    prepare: Preparation | str | Sequence[Preparation | str] | None = None,
    compressor: Compressor | str | None = None,
    downlink: Compressor | str | None = None,
    scales: Sequence[float] | Array | str | None = None,
    engine: Clustered | str | None = None,
) -> Iterator[Snapshot]:
    """Yield the federation after each round, without end (use ``zip``, ``itertools.islice`` or ``takewhile``).

    Parameters
    ----------
    algorithm : Algorithm or str
        The method, or its text (:mod:`dualopt.spec`), such as "dualfl" or "fedpd: eta=0.1"; parameters left open are
        filled in by ``suggested``.
    objective : Objective
        The clients.
    theta0 : array, shape ``shape``, optional
        Where to start; when not given, what the objective's ``initial(seed)`` returns (networks have one), else zero.
    participation : Participation or str, optional
        Who takes part, also as text, such as "subset=10"; everybody when not given.
    seed : int, default 0
        Seed of every random stream.
    prepare : Preparation, str or sequence of these, optional
        What happens before the first round (:mod:`dualopt.methods.preparation`). Models and local solutions are in the
        coordinates of ``objective`` whatever those of the method are; the other states are in those of the method.
        No snapshot counts what it takes: :func:`dualopt.run` does, in row 0, and ``prepared_by`` tells.
    compressor : Compressor or str, optional
        What the vectors that clients upload go through (:mod:`dualopt.methods.compressors`), such as "natural".
    downlink : Compressor or str, optional
        What the vectors that the server sends go through, for methods that say what they make of that.
    scales : sequence of float, "suggested" or "none", optional
        One scale for each client: the method runs on :func:`dualopt.objectives.reweighted` clients, by numbers or by
        those that suit the method. Models, local solutions and their gradients remain those of ``objective``; the other
        states are those of the method.
    engine : Blocks or str, optional
        Where the clients are, if not all on one host of this process (:mod:`dualopt.engine`), such as "blocks=3".
        Snapshots of hosts elsewhere ask for their states when somebody looks at them, before the next round begins.

    Raises
    ------
    ValueError
        If the method does not support the participation, or the regulariser of the objective, the compressor does not
        fit, or the objective is not one for the preparation.

    Examples
    --------
    >>> from itertools import islice
    >>> import numpy as np
    >>> from dualopt.methods import DualFL
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
    cohorts = as_participation(participation)
    algorithm = with_objects(algorithm, objective)
    objective, scales = unscaled(objective, scales)
    engine = check_engine(objective, engine, prepare)
    theta0 = objective.initial(seed) if theta0 is None else theta0
    prepared = prepared_by(prepare, objective, theta0)
    clients = scaled(algorithm, prepared.objective, scales, cohorts)
    operator = as_compressor(compressor, clients)
    algorithm = resolve(algorithm, clients, cohorts, operator)
    down = as_downlink(downlink, algorithm, clients, cohorts)
    _, server = on_engine(objective, engine, prepared, clients, certified=False)
    rounds = rounds_of(algorithm, server, prepared.theta0, cohorts, seed, compressor=operator, downlink=down)
    return in_user_coordinates(rounds, prepared)


def check_engine(objective: Objective, engine: Clustered | str | None, prepare: Any = None) -> Clustered | None:
    """Return the engine; refuse what is none, and what cannot be done where the clients are.

    Raises
    ------
    ValueError
        If the engine is none, the clients are elsewhere already, or a preparation needs their data.
    """
    found: Any = built(engine, "engine")
    taken = isinstance(without_regulariser(objective), RemoteClients)
    if found is not None:
        require(hasattr(found, "clients"), "engine must be one of dualopt.engine, such as Blocks(number=2)", engine)
        require(not taken, "engine must not be given for clients that are elsewhere already")
        alone = prepare is None or not getattr(found, "secure", False)
        require(alone, "prepare must not be given with secure sums: it needs the data of single clients")
    if taken:
        require(prepare is None, "prepare must not be given where clients are elsewhere: it needs their data")
    return found


def on_engine(
    objective: Objective,
    engine: Clustered | None = None,
    prepared: Prepared | None = None,
    clients: Objective | None = None,
    *,
    certified: bool = True,
) -> tuple[Objective, Server]:
    """Return the objective with its clients where an engine has them, and a session with their hosts.

    Without an engine it is one host in this process.

    Parameters
    ----------
    objective : Objective
        The clients.
    engine : Clustered, optional
        The engine.
    prepared : Prepared, optional
        What a preparation has made of them.
    clients : Objective, optional
        The clients as the method sees them, which may be reweighted; as they are when not given.
    certified : bool, default True
        Whether certificates will be asked for: the host of this process keeps local solutions for them.
    """
    changed = None if prepared is None or prepared.objective is objective else prepared
    if engine is not None:
        objective = engine.clients(objective) if changed is None else engine.clients(objective, changed)
    own = without_regulariser(objective)
    if isinstance(own, RemoteClients):
        server = own.new_session()
    else:
        host = Host(own, 0, prepared=changed, certified=certified)
        server = LocalServer(host)
    if clients is not None:
        server.reweight(clients)
    return objective, server


def in_user_coordinates(snapshots: Iterator[Snapshot], prepared: Prepared) -> Iterator[Snapshot]:
    """Return the rounds with their models in the coordinates of the user; hosts say what else is in these."""
    if prepared.model is None:
        return snapshots

    def one(s: Snapshot) -> Snapshot:
        theta = prepared.in_user_coordinates(s.server.theta)
        return replace(s, server=s.server._replace(theta=theta), _own=s.server)

    return map(one, snapshots)


def with_objects(algorithm: Any, objective: Any) -> Algorithm:
    """Return the method with what was given in text: itself, its local solver, its stopping rule.

    Raises
    ------
    ValueError
        If a text is wrong, a class is passed in place of an instance, or one of the two is something else.

    Examples
    --------
    >>> from dualopt import Quadratic
    >>> with_objects("fedavg: stop=steps=3", Quadratic(A=np.ones((1, 1, 1)), b=np.zeros((1, 1))))
    FedAvg(solver=None, stop=Steps(steps=3))
    """
    algorithm = built(algorithm, "algorithm")
    if not isinstance(algorithm, Algorithm):
        raise ValueError(f"algorithm must be an Algorithm or its name, such as 'dualfl', not {_what(algorithm)}.")
    if isinstance(objective, type) or not hasattr(objective, "n_clients"):  # what has the members need be no subclass
        raise ValueError(f"objective must be an Objective, such as linear_model returns, not {_what(objective)}.")
    return resolved(algorithm)


def _what(x: Any) -> str:
    if x is None:
        return "None"
    return f"the class {x.__name__}" if isinstance(x, type) else f"a {type(x).__name__}"


def unscaled(objective: Objective, scales: Sequence[float] | Array | str | None) -> tuple[Objective, Any]:
    """Return the clients of the user, of which snapshots and records tell, and the scales that a method sees them with.

    Raises
    ------
    ValueError
        If there are scales twice.
    """
    given = scales_of(objective)
    require(not given or scales in (None, "none"), "scales must not be given for clients that are reweighted already")
    return own_clients(objective), given or scales


def scaled(
    algorithm: Algorithm | str,
    objective: Objective,
    scales: Sequence[float] | Array | str | None,
    participation: Participation | None = None,
) -> Objective:
    """Return the objective with its clients reweighted as ``iterate`` is asked for.

    Raises
    ------
    ValueError
        If there is not one positive number for each client, or none can be suggested.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt import DualFL, FedSplit, Quadratic
    >>> f = Quadratic(A=np.stack([np.diag([1.0, 4.0]), np.diag([3.0, 12.0])]), b=np.zeros((2, 2)))
    >>> scaled(FedSplit(), f, "suggested").scales, scaled(DualFL(), f, [1, 4]).weights
    ((0.5, 1.5), (0.4, 1.6))
    >>> scaled(DualFL(), f, "none") is f
    True
    """
    if scales is None or (isinstance(scales, str) and scales == "none"):
        return objective
    if isinstance(scales, str):
        require(scales == "suggested", "scales must be none, suggested or a number for each client", scales)
        method = with_participation(with_objects(algorithm, objective), objective, participation)
        scales = method.suggested_scales(objective)
    return reweighted(objective, scales)


def resolve(
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
        participation or the regulariser of the objective, or leaves a parameter open.
    """
    method = with_objects(algorithm, objective)
    operator = as_compressor(compressor, objective)
    needs = frozenset() if participation is None else participation.needs(objective.n_clients)
    for need in sorted(needs - method.supports):
        raise ValueError(f"algorithm {type(method).__name__} does not support {need} participation.")
    if objective.regulariser != Zero() and "regulariser" not in method.supports:
        raise ValueError(f"algorithm {type(method).__name__} does not support an objective with a regulariser.")
    method = with_participation(method, objective, participation, operator).suggested(objective)
    require_complete(method)
    if isinstance(method.stop, Gap):
        least = float(array_namespace(objective.mu).min(objective.mu))
        constants = {"nu": getattr(method, "nu", least), "rho": getattr(method, "rho", 0.0)}
        method = replace(method, stop=method.stop.scheduled(**constants))
    method.check_participation(objective, participation)
    return method


def as_compressor(compressor: Compressor | str | None, objective: Objective) -> Compressor | None:
    """Return the compressor, or what its text stands for; None where everything is sent as it is.

    Raises
    ------
    ValueError
        If the text is wrong, or the compressor does not fit the model or the number of clients.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt import Quadratic
    >>> f = Quadratic(A=np.ones((2, 1, 1)), b=np.zeros((2, 1)))
    >>> as_compressor("rand-k=1", f), as_compressor("identity", f)
    (RandK(size=1), None)
    >>> as_compressor("rand-k=2", f)
    Traceback (most recent call last):
    ValueError: size of the compressor must be at most the number of coordinates, 1, not 2.
    """
    found = built(compressor, "compressor")
    kept_part(found, objective.shape, objective.n_clients)
    return None if isinstance(found, Identity) else found


def as_downlink(
    compressor: Compressor | str | None,
    algorithm: Algorithm,
    objective: Objective,
    participation: Participation | None = None,
) -> Compressor | None:
    """Return what messages go through, or what its text stands for; None where they are sent as they are.

    Raises
    ------
    ValueError
        If the text is wrong, the compressor does not fit the model, the method does not admit it, or some clients stay
        away.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt import DualFL, Quadratic
    >>> as_downlink("rounding=8", DualFL(), Quadratic(A=np.ones((2, 1, 1)), b=np.zeros((2, 1))))
    Traceback (most recent call last):
    ValueError: downlink must not be given: the states of DualFL are right only where messages arrive as they are.
    """
    found = built(compressor, "compressor")
    if found is None or isinstance(found, Identity):
        return None
    kept_part(found, objective.shape, 1)
    admits = type(algorithm).delivered is not Algorithm.delivered
    name = type(algorithm).__name__
    only = f"the states of {name} are right only where messages arrive as they are"
    require(admits, f"downlink must not be given: {only}")
    needs = frozenset() if participation is None else participation.needs(objective.n_clients)
    require(not needs, "downlink must not be given where clients miss messages: they would miss differences")
    return found


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
    f = without_regulariser(objective)  # which is all that clients have
    remote = isinstance(f, RemoteClients)  # hosts make the states of their solvers
    return State(*algorithm.init(theta0, copies), () if remote else phases_of(f).solver_states(algorithm, f))


def rounds_of(
    algorithm: Algorithm,
    hosts: Server,
    theta0: Array,
    participation: Participation | None,
    seed: int,
    since: ResumePoint | None = None,
    solutions: Any = None,
    compressor: Compressor | None = None,
    downlink: Compressor | None = None,
) -> Iterator[Snapshot]:
    """Yield the rounds of a method with no parameter open; all, or those after a snapshot's ``resume_point``.

    The participation draws the earlier rounds again: its stream is the same whatever its generator keeps.
    ``solutions`` are the latest local solutions that a checkpoint holds, ``compressor`` is what uploads go through,
    ``downlink`` what messages do.
    """
    n_clients = hosts.n_clients
    if isinstance(participation, WeightedSubset) and participation.weights is None:
        participation = replace(participation, weights=hosts.weights)
    done, state, holding = since or (0, None, np.zeros(n_clients, dtype=bool))
    server, message, *_ = state or algorithm.init(theta0, broadcast(theta0, (1, *hosts.shape)))
    hosts.begin(algorithm, theta0, state, done, solutions, compressor)
    way_down = None if downlink is None else _way_down(downlink, hosts.shape, state, message)
    size = of_message(message)
    if way_down is not None and state is not None:
        last = Round(n=done - 1, n_clients=n_clients, clients=tuple(range(n_clients)), communicate=True, seed=seed)
        size = of_delivered(message, way_down, last)
    meter = Meter(holding, size, algorithm.receivers, compressor, way_down, masked=hosts.is_secure)
    for round in islice((participation or Full()).rounds(n_clients, seed), done, None):
        server, message, found = _one_round(algorithm, hosts, server, message, round, way_down)
        round = found.round  # without those whose answers do not count
        up, down = meter.count(round, found.upload, message, server.theta, found.vectors)
        delivered = () if way_down is None else way_down.earlier
        yield Snapshot(round, server, message, hosts.states(round), found.solution, up, down, meter.holding, delivered)


def _way_down(downlink: Compressor, shape: tuple[int, ...], state: Any, message: Any) -> Any:
    """Return the way down of a run that begins with this message, or goes on from a state."""
    from dualopt.methods.compressors._downlink import Downlink  # few runs have one

    found = Downlink(downlink, shape, () if state is None else state.delivered)
    if state is None:
        found.begin(message)
    return found


def _one_round(
    algorithm: Algorithm, hosts: Server, server: Any, message: Any, round: Round, way_down: Any = None
) -> tuple[Any, Any, RoundResult]:
    """Return the state of the server and the message after a round, and what came back in it."""
    found = hosts.propose(round, message)
    if found.upload is not None:
        server, message = algorithm.server(server, found.mean, found.round)
        if way_down is not None:
            message = way_down.delivered(message, found.round)
            server = algorithm.delivered(server, message)
    hosts.commit(found.round, message)
    return server, message, found


def advance(
    algorithm: Algorithm, objective: Objective, state: State, round: Round, compressor: Compressor | None = None
) -> tuple[State, Any, LocalSolution | None]:
    """Do one round: the same state and round give the same result, so that one state can meet several rounds.

    Parameters
    ----------
    algorithm : Algorithm
        The method, with no parameter left open.
    objective : Objective
        All clients; hosts elsewhere leave the run that they are in.
    state : State
        The federation before the round; it is not changed. Without a solver state, solvers make their first call.
    round : Round
        Who is active and whether the round communicates.
    compressor : Compressor, optional
        What uploads go through.

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
    _, hosts = on_engine(own_clients(objective), clients=objective, certified=False)
    hosts.begin(algorithm, None, state, round.n, compressor=compressor)
    server, message, found = _one_round(algorithm, hosts, state.server, state.message, round)
    after = hosts.states(found.round)
    trees = (states.tree for states in (after.clients, after.solver, after.memory))
    return State(server, message, *trees), found.upload, found.solution
