"""Clients that are elsewhere, as an objective: what a server knows of them, and asks them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple, NoReturn, Self

import numpy as np

from dualopt.arrays.tree import is_everybody
from dualopt.arrays.xp import Array, array_namespace
from dualopt.engine import _protocol as protocol
from dualopt.engine._answers import require_sound
from dualopt.engine._errors import LostError
from dualopt.engine._server import Server
from dualopt.engine._session import Session
from dualopt.objectives import Objective
from dualopt.objectives._information import ClientInformation
from dualopt.objectives._weights import positive
from dualopt.runs.certificates import Sums

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
    ContradictionError
        Later, if values, gradients and conjugates that a host states cannot be those of one function.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt import DualFL, Quadratic, run
    >>> from dualopt.engine import Host, Inline
    >>> f = Quadratic(A=np.stack([np.eye(2), 2 * np.eye(2)]), b=np.ones((2, 2)))
    >>> hosts = [Host(f.select([j]), j) for j in (0, 1)]
    >>> clients = RemoteClients(Inline(hosts, in_process=False))
    >>> clients.n_clients, clients.mu.tolist(), clients.value(np.zeros(2)).tolist()
    (2, [1.0, 2.0], [0.0, 0.0])
    >>> run(DualFL(), clients, rounds=30, tol=1e-9).theta.round(6).tolist()
    [0.666667, 0.666667]
    """

    def __init__(self, engine: protocol.Engine, *, run: str = "run", project: str = "") -> None:
        from dualopt.engine._agreement import numbered, require_agreement  # runs in this process need none

        self.engine = engine
        H = len(engine.hosts)
        found: list[protocol.ClientInfo] = Session(engine, [(h,) for h in range(H)]).ask_all(protocol.Describe())
        self._found = found
        require_agreement(found, engine.hosts, project)
        for host, info in zip(engine.hosts, found, strict=True):
            require_sound(info, host)
        places = numbered(found, engine.hosts)
        self.weights = _weights(found, places)
        self._server = Server(engine, places, self.shape, name=run, project=project, weights=self.weights)
        rows = self._server.rows
        self.free_intercept, self.shift_invariant = found[0].free_intercept, found[0].shift_invariant
        self.nonnegative, self.kink_at_label = found[0].nonnegative, found[0].kink_at_label
        self._mu, self._rounding = rows([x.mu for x in found]), rows([x.mu_rounding for x in found])
        self._L = rows([x.L for x in found])
        self._server.hold_to(self.mu if self.free_intercept else self.proven_mu, self._L)
        first = found[0]
        self.usual_weight = first.usual_weight
        if first.max_rows is not None and first.n_features is not None:
            widest = max(x.max_rows or 0 for x in found)
            self.rows = KnownRows(widest, first.n_features, first.is_sparse)
            self._server.max_rows = widest
            if any(x.max_rows != widest for x in found):
                self._server.ask_all(protocol.Align(widest))
        if first.linear_ridge is not None:
            self.ridge = first.linear_ridge
        if first.classes:
            self.classes = json.loads(first.classes)

    @property
    def client_info(self) -> list[protocol.ClientInfo]:
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
        if not self.free_intercept:
            return self._mu
        return array_namespace(self._mu).minimum(self._mu, array_namespace(self._mu).zeros_like(self._mu))

    @property
    def partial_mu(self) -> Array:
        """Those in all but a free intercept, shape ``(N,)``."""
        return self._mu

    @property
    def mu_rounding(self) -> Array:
        """What is to be taken off ``mu`` for a proven constant, shape ``(N,)``."""
        return self._rounding

    @property
    def L(self) -> Array:
        """Smoothness constants of ``f_j``, shape ``(N,)``."""
        return self._L

    @property
    def offers(self) -> frozenset[str]:
        """What the clients offer; only they can be asked for it."""
        return frozenset(self._found[0].offers)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of rows of each client, where there are rows."""
        sizes = [n for x in self._found for n in (x.sizes or ())]
        return tuple(self._server.rows([np.array(sizes)]).tolist()) if sizes else ()

    @property
    def gradient_cost(self) -> float:
        """Gradients of the clients that one evaluation of ``gradient`` takes."""
        return self._found[0].gradient_cost

    @property
    def is_linear(self) -> bool:
        """Whether the clients have linear models."""
        return self._found[0].linear_ridge is not None

    def zeros(self) -> Array:
        """Return the zero model, shape ``shape``."""
        return self._found[0].zero

    def initial(self, seed: int = 0) -> Array:
        """Return the model from which runs start, as the first host says."""
        server = self._server
        answers, faults = server.exchange({0: [protocol.Initial(seed)]}, server.rounds)
        for reason in faults.values():
            raise LostError(f"host {self.engine.hosts[0]} did not say where runs start: {reason}.")
        return answers[0][0].theta

    def select(self, ids: Sequence[int]) -> Self:
        """Return this, for everybody; nobody else can be had here."""
        if not is_everybody(ids, self.n_clients):
            _refuse()
        return self

    # --- what they are asked ------------------------------------------------------------------------------------

    @property
    def server(self) -> Server:
        """The session with the hosts; that of the run that was last."""
        return self._server

    def new_session(self) -> Server:
        """Leave the run that was last, whose states hosts keep, and return a session for another one."""
        self._server = self._server.anew()
        return self._server

    def value(self, theta: Array) -> Array:
        """Return ``f_j(theta)`` at one model for all, shape ``(N,)``."""
        self._require_model(theta)
        return self._server.value(theta)

    def gradient(self, theta: Array) -> Array:
        """Return the gradients of ``f_j`` at one model for all, shape ``(N, *shape)``."""
        return self.value_and_gradient(theta)[1]

    def value_and_gradient(self, theta: Array) -> tuple[Array, Array]:
        """Return both at one model for all."""
        self._require_model(theta)
        return self._server.value_and_gradient(theta)

    def certificate_sums(self, theta: Array) -> Sums:
        """Return what a certificate takes from the clients, with the dual points of their latest local solutions."""
        self._require_model(theta)
        return self._server.certificate_sums(theta)

    def information(self, theta: Array) -> ClientInformation:
        """Return what standard errors at a model are made from, in one round of all clients."""
        self._require_model(theta)
        return self._server.information(theta)

    def _require_model(self, theta: Array) -> None:
        if tuple(theta.shape) != self.shape:
            _refuse()


def _weights(found: Sequence[protocol.ClientInfo], places: Sequence[tuple[int, ...]]) -> tuple[float, ...] | None:
    """Return the weights of all clients, 1 where a host names none; None where no host names any."""
    if all(x.weights is None for x in found):
        return None
    told = [w for x in found for w in (x.weights or (1.0,) * x.n_clients)]
    ids = [j for own in places for j in own]
    return positive("weights", [w for _, w in sorted(zip(ids, told, strict=True))], len(ids))


def _refuse() -> NoReturn:
    raise ValueError("objective must be in this process: clients elsewhere are asked for one model, all together.")
