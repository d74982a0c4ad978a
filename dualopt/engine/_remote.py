"""Clients that are elsewhere, as an objective: what a server knows of them, and asks them."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn, Self

from dualopt.arrays.tree import take_rows, tree_map
from dualopt.arrays.xp import Array
from dualopt.engine import _protocol as ask
from dualopt.engine._answers import require_sound
from dualopt.engine._calls import Calls, Elsewhere
from dualopt.engine._errors import LostError
from dualopt.engine._fetched import RemoteLatest
from dualopt.engine._methods import spelled, types_in
from dualopt.engine._rows import under_each_other
from dualopt.methods import Algorithm
from dualopt.objectives import Objective, Reweighted
from dualopt.objectives._weights import of_clients, positive
from dualopt.runs.certificates import DualPoint, Sums, sums_of_rows

__all__ = ["RemoteClients"]


class KnownRows(NamedTuple):
    """What suggestions of solvers read of the rows."""

    max_rows: int
    n_features: int
    is_sparse: bool


class RemoteClients(Objective):
    """The clients of the hosts of an engine.

    The server takes their census when this is made. It passes for an objective wherever a method, a participation or a
    record of a run asks for constants, values, gradients or certificates; data there are none, so that ``select`` is
    refused. Whatever the clients compute they send in the order of their numbers, so that means are those of one
    process, bit for bit.

    Parameters
    ----------
    engine : Engine
        How requests reach the hosts.
    run : str, default "run"
        A name for the run, from which hosts tell it from others.
    project : str, optional
        What all must agree on; hosts with another one are refused.

    Raises
    ------
    ValueError
        If the hosts do not agree on shape, type or labels, their clients are not numbered from 0 to N - 1, or a census
        is one that no clients can have.
    LostError
        If a host does not answer.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt import DualFL, Quadratic, run
    >>> from dualopt.engine import Host, Inline
    >>> f = Quadratic(A=np.stack([np.eye(2), 2 * np.eye(2)]), b=np.ones((2, 2)))
    >>> hosts = [Host(f.select([j]), j) for j in (0, 1)]
    >>> clients = RemoteClients(Inline(hosts, together=False))
    >>> clients.n_clients, clients.mu.tolist(), clients.value(np.zeros(2)).tolist()
    (2, [1.0, 2.0], [0.0, 0.0])
    >>> run(DualFL(), clients, rounds=30, tol=1e-9).theta.round(6).tolist()
    [0.666667, 0.666667]
    """

    def __init__(self, engine: ask.Engine, *, run: str = "run", project: str = "") -> None:
        self.engine, self.name, self.project = engine, run, project
        H = len(engine.hosts)
        found: list[ask.Census] = Calls(engine, [(h,) for h in range(H)]).ask_all(ask.Describe())
        self._found = found
        self._require_agreement()
        for host, census in zip(engine.hosts, found, strict=True):
            require_sound(census, host)
        numbered = _numbered(found, engine.hosts)
        self.calls = Calls(engine, numbered, self.shape)
        ids = [j for own in numbered for j in own]
        order = sorted(range(len(ids)), key=ids.__getitem__)
        self._order = None if order == list(range(len(ids))) else order
        self.latest = RemoteLatest(self.calls)
        self._mu, self._rounding = self._joined([x.mu for x in found]), self._joined([x.mu_rounding for x in found])
        self._L = self._joined([x.L for x in found])
        self.weights = self._weights()
        first = found[0]
        self.usual_weight = first.usual_weight
        if first.max_rows is not None and first.n_features is not None:
            widest = max(x.max_rows or 0 for x in found)
            self.rows = KnownRows(widest, first.n_features, first.is_sparse)
            if any(x.max_rows != widest for x in found):
                self.calls.ask_all(ask.Agree(widest))
        if first.linear_ridge is not None:
            self.ridge = first.linear_ridge
        if first.classes:
            self.classes = json.loads(first.classes)

    def _require_agreement(self) -> None:
        first = self._found[0]
        for h, other in enumerate(self._found):  # first of all: other differences come from this one
            if other.project != self.project:
                raise ValueError(
                    f"project must be the same everywhere, but it is {self.project!r} here and {other.project!r} "
                    f"on host {self.engine.hosts[h]}."
                )
        for h, other in enumerate(self._found):
            there, here = _common(other), _common(first)
            for name, value in there.items():
                if value != here[name]:
                    hosts = f"host {self.engine.hosts[0]} and {value} on host {self.engine.hosts[h]}"
                    raise ValueError(f"clients must agree on {name}, but it is {here[name]} on {hosts}.")

    @property
    def census(self) -> list[ask.Census]:
        """What each host has said of its clients, in the order of the hosts."""
        return list(self._found)

    # --- constants ----------------------------------------------------------------------------------------------

    @property
    def n_clients(self) -> int:
        """Number ``N`` of clients."""
        return self._mu.shape[0]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the model ``theta``."""
        return tuple(self._found[0].zero.shape)

    @property
    def mu(self) -> Array:
        """Strong convexity constants of ``f_j``, shape ``(N,)``."""
        return self._mu

    @property
    def mu_rounding(self) -> Array:
        """What is to be taken off ``mu`` for a proven constant, shape ``(N,)``."""
        return self._rounding

    @property
    def L(self) -> Array:
        """Smoothness constants of ``f_j``, shape ``(N,)``."""
        return self._L

    def _weights(self) -> tuple[float, ...] | None:
        """Return the weights of all clients, 1 where a host names none; None where all are 1."""
        found = self._found
        if all(x.weights is None for x in found):
            return None
        told = [w for x in found for w in (x.weights or (1.0,) * x.n_clients)]
        return positive("weights", told if self._order is None else [told[k] for k in self._order], self.n_clients)

    @property
    def offers(self) -> frozenset[str]:
        """What the clients offer; only they can be asked for it."""
        return frozenset(self._found[0].offers)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of rows of each client, where there are rows."""
        sizes = [n for x in self._found for n in (x.sizes or ())]
        return tuple(sizes if self._order is None else [sizes[k] for k in self._order])

    @property
    def gradient_cost(self) -> float:
        """Gradients of the clients that one evaluation of ``gradient`` takes."""
        return self._found[0].gradient_cost

    @property
    def is_linear(self) -> bool:
        """Whether the clients have linear models."""
        return self._found[0].linear_ridge is not None

    @property
    def described(self) -> dict[str, Any]:
        """What the parameters of a trace say of the hosts, in terms of JSON."""
        lost = {"lost": list(self.calls.lost)} if self.calls.lost else {}
        return {"hosts": len(self.calls.hosts), "reduce": "fast" if self.engine.summed else "client order", **lost}

    def zeros(self) -> Array:
        """Return the zero model, shape ``shape``."""
        return self._found[0].zero

    def initial(self, seed: int = 0) -> Array:
        """Return the model from which runs start, as the first host says."""
        calls = self.calls
        answers, faults = calls.exchange({0: [ask.Initial(seed)]}, calls.rounds)
        for reason in faults.values():
            raise LostError(f"host {self.engine.hosts[0]} did not say where runs start: {reason}.")
        return answers[0][0].theta

    def select(self, ids: Sequence[int]) -> Self:
        """Return this, for everybody; nobody else can be had here."""
        if len(ids) != self.n_clients:
            _refuse()
        return self

    # --- what they are asked ------------------------------------------------------------------------------------

    @property
    def _widest(self) -> int | None:
        return self.rows.max_rows if hasattr(self, "rows") else None

    def value(self, theta: Array) -> Array:
        """Return ``f_j(theta)`` at one model for all, shape ``(N,)``."""
        self._require_model(theta)
        calls = self.calls
        return self._joined([x.value for x in calls.ask_all(ask.Value(calls.run, calls.rounds, theta))])

    def gradient(self, theta: Array) -> Array:
        """Return the gradients of ``f_j`` at one model for all, shape ``(N, *shape)``."""
        return self.value_and_gradient(theta)[1]

    def value_and_gradient(self, theta: Array) -> tuple[Array, Array]:
        """Return both at one model for all."""
        found = self._evaluated(theta, dual=False, summed=False)
        return self._joined([x.value for x in found]), self._joined([x.gradient for x in found])

    def certificate_sums(self, theta: Array) -> Sums:
        """Return what a certificate takes from the clients, with the dual points of their latest local solutions.

        All of it is means over the clients; rows are gathered so that these are rounded as in one process.
        """
        if self.engine.summed:
            parts = [tuple(x) for x in self._evaluated(theta, dual=True, summed=True)]
            if any(dual is None for *_, dual in parts):
                parts = [(columns[:5], gradient, None) for columns, gradient, _ in parts]
            columns, gradient, dual = tree_map(lambda *sums: sum(sums[1:], start=sums[0]), *parts)
            return Sums(columns, gradient, dual, self.n_clients if self.weights is None else sum(self.weights))
        found = self._evaluated(theta, dual=True, summed=False)
        columns = list(zip(*found, strict=True))
        rows = [None if any(x is None for x in column) else self._joined(list(column)) for column in columns]
        value, gradient, value_error, gradient_error, dual, conjugate, error = rows
        point = None if dual is None or conjugate is None else DualPoint(dual, conjugate, error)
        return sums_of_rows(value, gradient, value_error, gradient_error, point, self.unequal_weights)

    def _evaluated(self, theta: Array, *, dual: bool, summed: bool) -> list[Any]:
        self._require_model(theta)
        calls = self.calls
        dual = dual and bool(calls.run)  # before a run hosts may hold solutions of an earlier one
        return calls.ask_all(ask.Evaluate(calls.run, calls.rounds, theta, dual, summed, self._widest))

    def _require_model(self, theta: Array) -> None:
        if tuple(theta.shape) != self.shape:
            _refuse()

    def _joined(self, parts: list[Array]) -> Array:
        """Return rows of all clients, in their order."""
        rows = under_each_other(parts)
        return rows if self._order is None else take_rows(rows, self._order)

    # --- a run --------------------------------------------------------------------------------------------------

    def leave(self) -> None:
        """Leave the run that was last; hosts keep their states."""
        self.calls = Calls(self.engine, self.calls.clients, self.shape)
        self.latest = RemoteLatest(self.calls)

    def begin(
        self, algorithm: Algorithm, theta0: Array, state: Any, rounds: int, reweighted: Reweighted | None = None
    ) -> Calls:
        """Have all hosts take up a run: a new one, or one that has a state after some rounds."""
        if learn := getattr(self.engine, "learn", None):
            learn(types_in(algorithm))
        known = state.clients if state is not None and isinstance(state.clients, Elsewhere) else None
        calls, method = self.calls, spelled(algorithm)
        run = f"{self.name} {secrets.token_hex(8)}" if known is None else known.run
        if known is not None and len(known.hosts) != len(calls.hosts):
            raise LostError(f"checkpoint is of {len(known.hosts)} hosts, and here are {len(calls.hosts)}.")
        scales = None if reweighted is None else reweighted.scales
        calls.begin(algorithm, run, known, rounds, (reweighted or self).unequal_weights)
        done = 0 if known is None else rounds
        session = "" if self.engine.together else secrets.token_hex(8)
        told = self.n_clients, method, theta0, self._widest, self.project, session
        starts = [ask.Start(run, done, told[0], own, *told[1:], of_clients(scales, own)) for own in calls.clients]
        calls.require_same_rounds(calls.ask_all(starts))
        if known is None and rounds:
            self._restore(state, rounds)
        return calls

    def _restore(self, state: Any, rounds: int) -> None:
        """Give hosts that live and die with the server the states that its checkpoint holds."""
        calls, requests = self.calls, []
        for own in calls.clients:
            clients, solver = take_rows((state.clients, state.solver), own)
            latest = self.latest.rows_of(own)
            requests.append(ask.Restore(calls.run, rounds - 1, clients, solver, latest))
        calls.ask_all(requests)


def _refuse() -> NoReturn:
    raise ValueError("objective must be in this process: clients elsewhere are asked for one model, all together.")


def _common(census: ask.Census) -> dict[str, Any]:
    """Return what must be the same on all hosts."""
    names = ("offers", "usual_weight", "gradient_cost", "n_features", "is_sparse", "linear_ridge", "classes")
    told = {name: getattr(census, name) for name in names}
    return {"shape": tuple(census.zero.shape), "dtype": str(census.zero.dtype).rpartition(".")[2]} | told


def _numbered(found: list[ask.Census], hosts: Sequence[Any]) -> list[tuple[int, ...]]:
    """Return the numbers of the clients of each host: those that hosts know, or in the order of the hosts."""
    if all(x.clients is None for x in found):
        first, numbered = 0, []
        for x in found:
            numbered.append(tuple(range(first, first + x.n_clients)))
            first += x.n_clients
        return numbered
    for h, x in enumerate(found):
        if x.clients is None:
            raise ValueError(f"clients of host {hosts[h]} have no numbers, and those of others have.")
        if len(x.clients) != x.n_clients:
            raise ValueError(f"clients of host {hosts[h]} must be {x.n_clients} numbers.")
    numbered = [x.clients or () for x in found]
    ids = sorted(j for own in numbered for j in own)
    if ids != list(range(len(ids))):
        raise ValueError(f"clients of all hosts together must have the numbers 0 to {len(ids) - 1}, each once.")
    return numbered
