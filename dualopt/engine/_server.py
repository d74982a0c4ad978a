"""The server's side of a run on hosts: its rounds, whose answers count in them, and what is asked of clients beside."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dualopt.arrays._checks import require
from dualopt.arrays.tree import take_clients, take_rows
from dualopt.arrays.xp import Array, array_namespace
from dualopt.engine import _protocol as protocol
from dualopt.engine._errors import ContradictionError, LostError
from dualopt.engine._host import HostState
from dualopt.engine._rows import added
from dualopt.engine._session import Session
from dualopt.engine._states import LazyStates, joined_solutions, solutions_of
from dualopt.engine._steps import weighed, weights_in
from dualopt.engine._uploads import Explosions, UploadChecks, from_rows, from_sums, joined
from dualopt.engine.traffic import WORD
from dualopt.methods import Algorithm
from dualopt.methods.compressors import Compressor, kept_part
from dualopt.methods.participation import Round
from dualopt.objectives._information import ClientInformation
from dualopt.objectives._weights import of_clients, unequal
from dualopt.objectives.scales import scales_of
from dualopt.runs.certificates import DualPoint, Sums, sums_of_rows
from dualopt.solvers import LocalSolution
from dualopt.spec import Spec, types_in

if TYPE_CHECKING:
    from dualopt.engine._contradictions import Contradictions

__all__ = ["HostRecord", "RemoteState", "RoundResult", "Server"]


class HostRecord(NamedTuple):
    """What the server knows of a host."""

    rounds: int  # that the host is known to have committed
    pending: tuple[protocol.Commit, ...]  # ends of rounds that it does not know yet


class RemoteState(NamedTuple):
    """What a checkpoint holds in place of the states of clients that hosts keep themselves."""

    run: str
    made: int  # messages so far
    hosts: tuple[HostRecord, ...]
    lost: tuple[str, ...]


class RoundResult(NamedTuple):
    """What came back in a round."""

    round: Round  # with the clients that count
    upload: Any  # rows in the order of these clients, or their sums; None if there is nothing to average
    mean: Any
    solution: LocalSolution | None  # of these clients; what hosts elsewhere tell of it is its ``gradients``
    vectors: int = 0  # how many vectors of a client's upload were compressed


class Server(Session):
    """The session of a run with hosts.

    Parameters
    ----------
    engine : Engine
        How requests reach the hosts.
    clients : sequence of tuple of int
        The numbers of the clients of each host, in the order of ``engine.hosts``.
    shape : tuple of int
        Shape of the model.
    name : str
        A name for its run, from which hosts tell it from others.
    project : str
        What all must agree on.
    max_rows : int, optional
        Number of rows of the largest client of the federation.
    weights : tuple of float, optional
        Those of all clients, with which certificates are made; 1 each when not given.
    """

    def __init__(
        self,
        engine: protocol.Engine,
        clients: Sequence[tuple[int, ...]],
        shape: tuple[int, ...] = (),
        *,
        name: str = "run",
        project: str = "",
        max_rows: int | None = None,
        weights: tuple[float, ...] | None = None,
    ) -> None:
        super().__init__(engine, clients, shape)
        self.name, self.project, self.max_rows, self.own_weights = name, project, max_rows, weights
        self.weights = unequal(weights)  # those with which the method averages; None where they are equal
        self.kept = 1.0  # which part of a compressed step both ends take
        self.scales: tuple[float, ...] | None = None  # of the clients that the method sees
        self.run, self.made = "", 0
        self.algorithm: Algorithm | None = None
        self.compressor: Compressor | None = None
        self.lost: list[str] = []  # sentences, one for each answer that did not count or did not come
        self.asked: dict[int, tuple[int, ...]] = {}  # who worked in this round, by host
        self._checks = UploadChecks(engine, shape)
        self.explosions = Explosions()
        self._adds = engine.partial_sums  # whether hosts add what certificates are made from
        self._contradictions: list[Contradictions] = []  # one for each host, where its own answers can be compared

    def anew(self) -> Server:
        """Return a session with the same hosts for another run."""
        named = {"name": self.name, "project": self.project, "max_rows": self.max_rows}
        found = Server(self.engine, self.clients, self.shape, **named, weights=self.own_weights)
        found._contradictions = self._contradictions  # the functions are the same
        return found

    def hold_to(self, mu: Array, L: Array) -> None:
        """Compare from now on all values, gradients and conjugates that a host states of its clients with each other.

        Parameters
        ----------
        mu, L : array, shape (N,)
            Proven strong convexity constants and smoothness constants. Sums over the clients of a host are not
            compared.
        """
        from dualopt.engine._contradictions import Contradictions  # hosts elsewhere may contradict themselves

        if not self.engine.partial_sums:
            self._contradictions = [Contradictions(*take_rows((mu, L), own)) for own in self.clients]

    def reweight(self, clients: Any) -> None:
        """Show the clients to the method as this objective has them, which may be reweighted."""
        self.scales, self.weights = tuple(scales_of(clients)) or None, clients.unequal_weights

    # --- a run --------------------------------------------------------------------------------------------------

    def begin(
        self,
        algorithm: Algorithm,
        theta0: Array | None,
        state: Any = None,
        rounds: int = 0,
        solutions: Any = None,
        compressor: Compressor | None = None,
    ) -> None:
        """Have all hosts take up a run.

        Parameters
        ----------
        algorithm : Algorithm
            The method, with no parameter open.
        theta0 : array, shape ``shape``, optional
            Where a new run begins.
        state : State, optional
            That after ``rounds`` rounds, from which the run goes on.
        solutions : tree, optional
            The latest local solutions then.
        compressor : Compressor, optional
            What uploads go through.

        Raises
        ------
        LostError
            If a host does not answer, or has not kept what it had.
        """
        if learn := getattr(self.engine, "learn", None):
            learn(types_in((algorithm, compressor)))
        known = state.clients if state is not None and isinstance(state.clients, RemoteState) else None
        given = state is not None and known is None
        if known is not None and len(known.hosts) != len(self.hosts):
            raise LostError(f"checkpoint is of {len(known.hosts)} hosts, and here are {len(self.hosts)}.")
        self.algorithm, self.compressor, self.rounds, self.made = algorithm, compressor, rounds, rounds
        self.kept = kept_part(compressor, self.shape, self.n_clients)
        if self.is_secure:
            masked = f"a masked number has {WORD} bits, whatever it stands for"
            require(compressor is None, f"compressor must not be given with secure sums: {masked}")
            self.engine.tolerant = self.tolerant  # pyright: ignore[reportAttributeAccessIssue]
        self.run = f"{self.name} {secrets.token_hex(8)}" if known is None else known.run
        if known is not None:
            self.made, self.lost = known.made, list(known.lost)
            self._committed = [record.rounds for record in known.hosts]
            self._pending = [list(record.pending) for record in known.hosts]
        method, packs = self._sendable(algorithm), None if compressor is None else self._sendable(compressor)
        session = "" if self.engine.in_process else secrets.token_hex(8)
        common = method, None if given else theta0, self.max_rows, self.project, session
        done = 0 if known is None else rounds
        self._require_same_rounds(
            self.ask_all(
                [
                    protocol.Start(self.run, done, self.n_clients, own, *common, of_clients(self.scales, own), packs)
                    for own in self.clients
                ]
            )
        )
        if given:
            self.ask_all([self._restored(own, state, rounds, solutions) for own in self.clients])

    def _sendable(self, x: Any) -> Any:
        """Return an object as hosts are told of it."""
        return json.dumps(Spec.of(x, full=True).to_json())

    def _restored(self, own: tuple[int, ...], state: Any, rounds: int, solutions: Any) -> protocol.Restore:
        """Give a host that lives and dies with the server the states that its checkpoint holds."""
        clients, solver, memory = (take_clients(tree, own) for tree in (state.clients, state.solver, state.memory))
        return protocol.Restore(self.run, rounds - 1, clients, solver, solutions_of(solutions, own), memory)

    def _require_same_rounds(self, started: Sequence[protocol.Started]) -> None:
        """Refuse hosts whose states are older than what they have told this run before."""
        for h, answer in enumerate(started):
            if answer.rounds < self._committed[h]:
                raise LostError(
                    f"{self._name(h)} has the states of its clients after round {answer.rounds} and had reached round "
                    f"{self._committed[h]}: its file is an old one, and the run cannot go on from it."
                )

    @property
    def remote_state(self) -> RemoteState:
        """What the later rounds need to know of the hosts."""
        hosts = tuple(HostRecord(n, tuple(own)) for n, own in zip(self._committed, self._pending, strict=True))
        return RemoteState(self.run, self.made, hosts, tuple(self.lost))

    @property
    def tolerant(self) -> bool:
        """Whether the method can do without some clients in a round."""
        return self.algorithm is not None and "partial" in self.algorithm.supports

    @property
    def described(self) -> dict[str, Any]:
        """What the parameters of a trace say of the hosts, in terms of JSON."""
        lost = {"lost": list(self.lost)} if self.lost else {}
        compared = "no: a sum does not tell what each client says" if self.engine.partial_sums else "yes"
        reduce = "secure sums" if self.is_secure else "fast" if self.engine.partial_sums else "client order"
        return {"hosts": len(self.hosts), "reduce": reduce, "contradictions_looked_for": compared, **lost}

    # --- the two phases of a round ------------------------------------------------------------------------------

    def propose(self, round: Round, message: Any) -> RoundResult:
        """Have the active clients work, and return what they upload.

        Raises
        ------
        LostError
            If an answer does not count, and the method needs every client.
        """
        self.rounds, self.asked = round.n, self._shares(round.clients)
        if not round.clients:
            return RoundResult(round, None, None, None)
        weights = self._weights_in(round)
        requests = {h: [self._request(h, own, round, message, weights)] for h, own in self.asked.items()}
        answers, faults = self.exchange(requests, round.n)
        uploads = {h: found[0] for h, found in answers.items()}
        kept = self._checks.sound(uploads, self.asked, round, faults)
        round = self._without_lost(faults, kept, round)
        self.explosions.note(round.n, {self._name(h): uploads[h] for h, own in kept.items() if own})
        if not round.clients:
            return RoundResult(round, None, None, None)
        parts = [uploads[h] for h, own in kept.items() if own]
        order = self._order(round, [own for own in kept.values() if own])
        solution = self._solution(parts, order)
        if not round.communicate:
            return RoundResult(round, None, None, solution)
        assert self.algorithm is not None
        if self.engine.partial_sums:
            found = from_sums(self.algorithm, parts, round, weights)
        else:
            found = from_rows(self.algorithm, parts, order, round, self.weights)
        vectors = max(x.vectors for x in parts)
        return RoundResult(weighed(round, self.weights, self.kept), *found, solution, vectors)

    def commit(self, round: Round, message: Any) -> None:
        """End the round: ``round.clients`` are those that were counted, ``message`` is the one that it ended with."""
        assert self.algorithm is not None
        communicated = round.communicate and bool(round.clients)
        receivers = self.algorithm.receivers if communicated else frozenset()
        self.made += communicated
        self.rounds = round.n + 1
        count = self._shares(round.clients)
        for h, ids in enumerate(self.clients):
            worked, own = self.asked.get(h), count.get(h, ())
            if worked is None and "inactive" not in receivers:
                continue
            gets_it = ("active" in receivers and bool(own)) or ("inactive" in receivers and len(own) < len(ids))
            whom = None if worked is not None and len(own) == len(worked) else own
            tree = message if gets_it else None
            self._pending[h].append(protocol.Commit(self.run, round.n, communicated, whom, self.made, tree))
        if self.engine.in_process:
            self._flush()

    def _flush(self) -> None:
        """Tell the hosts now how the latest rounds ended."""
        waiting: dict[int, list[Any]] = {}
        for h, pending in enumerate(self._pending):
            if pending:
                waiting[h] = []
        if waiting:
            _, faults = self.exchange(waiting, self.rounds)
            for h, reason in faults.items():
                self.lost.append(f"round {self.rounds - 1}: {self._name(h)} was not told how it ended: {reason}")

    # --- what the clients hold and know -------------------------------------------------------------------------

    def states(self, round: Round) -> HostState | LazyStates:
        """Return the states after a round, or what asks for them when somebody looks."""
        kept = None if self.engine.in_process else self.remote_state
        return LazyStates(round, self.clients, self.asked, self._states_after, kept)

    def _states_after(self, n: int) -> list[protocol.StatesFound]:
        """Return what the hosts hold after ``n`` rounds."""
        if self.rounds != n:
            raise ValueError(f"states after round {n} are gone: clients elsewhere have only the latest ones.")
        return self.ask_all(protocol.States(self.run, n))

    @property
    def solutions(self) -> Any:
        """The latest local solutions, as a checkpoint has them; None where hosts have files of their own."""
        if not self.engine.in_process:
            return None
        found = [x.latest for x in self.ask_all(protocol.States(self.run, self.rounds))]
        return joined_solutions(found, self.clients)

    def value(self, theta: Array) -> Array:
        """Return ``f_j(theta)``, shape ``(N,)``."""
        return self.rows([x.value for x in self.ask_all(protocol.Value(self.run, self.rounds, theta))])

    def mean_value(self, theta: Array) -> float:
        """Return the mean of ``f_j(theta)`` where values of single clients are not known."""
        xp = array_namespace(theta)
        found = self._evaluated(xp.astype(theta, xp.float64), dual=False, partial_sums=True)
        weights = unequal(self.own_weights)
        return sum(float(x.columns[0]) for x in found) / (self.n_clients if weights is None else sum(weights))

    def value_and_gradient(self, theta: Array) -> tuple[Array, Array]:
        """Return values, and gradients of shape ``(N, *shape)``."""
        found = self._evaluated(theta, dual=False, partial_sums=False)
        return self.rows([x.value for x in found]), self.rows([x.gradient for x in found])

    def information(self, theta: Array) -> ClientInformation:
        """Return what standard errors at a model are made from, in one round of all clients.

        Raises
        ------
        ValueError
            If numbers of single hosts are for sums alone, or hosts have ridges that differ.
        """
        require(not self.is_secure, "inference must not be asked for with secure sums: it needs single Hessians")
        found = self.ask_all(protocol.Information(self.run, self.rounds, theta))
        penalty, hessian = found[0].penalty, found[0].hessian
        for h, other in enumerate(found[1:], 1):
            same = bool(array_namespace(penalty).all(other.penalty == penalty))
            require(same, f"the ridge of {self._name(h)} must be that of {self._name(0)}")
            hessian = hessian + other.hessian
        rows = self.rows([x.gradient for x in found]), self.rows([x.sums for x in found])
        return ClientInformation(rows[0], hessian, penalty, rows[1])

    def certificate_sums(self, theta: Array) -> Sums:
        """Return what a certificate takes from the clients, with the dual points of their latest local solutions.

        All of it is means over the clients; rows are gathered so that these are rounded as in one process.
        """
        weights = unequal(self.own_weights)
        if self._adds:
            parts = [tuple(x) for x in self._evaluated(theta, dual=True, partial_sums=True)]
            if any(dual is None for *_, dual in parts):
                parts = [(columns[:5], gradient, None) for columns, gradient, _ in parts]
            columns, gradient, dual = added(parts)
            return Sums(columns, gradient, dual, self.n_clients if weights is None else sum(weights))
        found = self._evaluated(theta, dual=True, partial_sums=False)
        columns = list(zip(*found, strict=True))
        rows = [None if any(x is None for x in column) else self.rows(list(column)) for column in columns]
        value, gradient, value_error, gradient_error, dual, conjugate, error = rows
        point = None if dual is None or conjugate is None else DualPoint(dual, conjugate, error)
        return sums_of_rows(value, gradient, value_error, gradient_error, point, unequal(weights))

    def _evaluated(self, theta: Array, *, dual: bool, partial_sums: bool) -> list[Any]:
        dual = dual and bool(self.run)  # before a run hosts may hold solutions of an earlier one
        weighted = unequal(self.own_weights) is not None
        request = protocol.Evaluate(self.run, self.rounds, theta, dual, partial_sums, weighted, self.max_rows)
        answers = self.ask_all(request)
        self._require_one_function(theta, answers)
        return answers

    def _require_one_function(self, theta: Array, answers: Sequence[Any]) -> None:
        """Refuse what cannot be true beside what the same host has said before."""
        for h, (seen, answer) in enumerate(zip(self._contradictions, answers, strict=False)):
            if (found := seen.by(self.rounds, theta, answer)) is not None:
                of = f" on client {self.clients[h][found[0]]}" if len(self.clients[h]) > 1 else ""
                raise ContradictionError(f"{self._name(h)} contradicts itself{of}: {found[1]}.")

    # --- what they are made of ----------------------------------------------------------------------------------

    def _weights_in(self, round: Round) -> tuple[dict[int, float], ...]:
        """Return the weights of the active clients in each mean, where hosts add with them; nothing for plain sums."""
        assert self.algorithm is not None
        if not self.engine.partial_sums:
            return ()
        found = weights_in(self.algorithm, round, self.weights)
        if all(own is None for own in found):
            return ()
        ones = (1.0,) * round.n_active
        return tuple(dict(zip(round.clients, own or ones, strict=True)) for own in found)

    def _request(
        self, h: int, own: tuple[int, ...], round: Round, message: Any, weights: tuple[dict[int, float], ...]
    ) -> protocol.Propose:
        will_hold = self._held[h]
        for end in self._pending[h]:
            will_hold = will_hold if end.message is None else end.made
        tree = None if will_hold == self.made else message
        whom = None if len(own) == len(self.clients[h]) else own
        n, N, sums = round.n, round.n_clients, self.engine.partial_sums
        named = tuple(tuple(each[j] for j in own) for each in weights) if weights else ()
        return protocol.Propose(self.run, n, N, round.seed, round.communicate, whom, self.made, tree, sums, named)

    def _solution(self, parts: Sequence[protocol.Uploaded], order: np.ndarray | None) -> LocalSolution | None:
        if parts[0].gradients is None:
            return None
        return LocalSolution(None, None, None, None, (), joined([x.gradients for x in parts], order), ())

    def _without_lost(self, faults: Mapping[int, str], kept: Mapping[int, tuple[int, ...]], round: Round) -> Round:
        """Return the round without the answers that do not count, or end a run that cannot do without them."""
        if not faults:
            return round
        for h, reason in faults.items():
            left_out = [j for j in self.asked[h] if j not in set(kept.get(h, ()))]
            if not self.tolerant:
                raise LostError(
                    f"{type(self.algorithm).__name__} needs every client, and {self._name(h)} did not count in round "
                    f"{round.n}: {reason}."
                )
            named = f" (clients {', '.join(map(str, left_out))})" if left_out else ""
            self.lost.append(f"round {round.n}: {self._name(h)}{named} did not count: {reason}")
        left = {j for ids in kept.values() for j in ids}
        return replace(round, clients=tuple(j for j in round.clients if j in left))

    def _order(self, round: Round, parts: Sequence[tuple[int, ...]]) -> np.ndarray | None:
        """Return where the clients of the round are among the rows of all parts; None where they are in order."""
        ids = parts[0] if len(parts) == 1 else tuple(j for part in parts for j in part)
        if ids == round.clients:
            return None
        place = {j: k for k, j in enumerate(ids)}
        return np.array([place[j] for j in round.clients], dtype=np.int64)
