"""A host: a block of clients, with their data, all their states, and the few requests that they answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dualopt.arrays._checks import require
from dualopt.arrays.client_states import ClientStates
from dualopt.arrays.tree import everybody, take_rows, tree_map
from dualopt.arrays.xp import array_namespace, asarray_like, broadcast, compiles, indices, is_numpy, shares_memory
from dualopt.engine import _protocol as protocol
from dualopt.engine._errors import RefusedError
from dualopt.engine._host_data import client_info, evaluated, with_max_rows
from dualopt.engine._steps import Phases, Proposed, commit, counted, partial_sums, propose, remembered, solver_states
from dualopt.methods import Algorithm
from dualopt.methods.compressors import Compressor, kept_part
from dualopt.methods.participation import Round
from dualopt.objectives import LinearModel, Reweighted
from dualopt.objectives._information import client_information
from dualopt.objectives._weights import positive
from dualopt.objectives.composite import without_regulariser
from dualopt.objectives.local_problem import Evaluation
from dualopt.runs.certificates import LatestSolutions
from dualopt.solvers import LocalSolution
from dualopt.spec import Spec

if TYPE_CHECKING:
    from dualopt.engine._host_file import HostFile, Stored
    from dualopt.methods.preparation import Prepared

__all__ = ["Host", "HostState", "answered", "phases_of"]


def phases_of(objective: Any) -> Phases:
    """Return what a host does in a round with arrays of the library of an objective."""
    zero = objective.zeros()
    if compiles(zero):
        from dualopt.engine._compiled import phases
    elif shares_memory(zero):
        from dualopt.engine._in_numpy import phases
    else:
        return Phases(propose, commit, evaluated, solver_states)
    return phases(objective)


class HostState(NamedTuple):
    """The clients between two rounds; it never changes, so that whoever has it may look at it later."""

    clients: ClientStates
    solver: ClientStates
    latest: LatestSolutions | None  # None where no certificates are asked for
    message: Any  # what they know of the model
    made: int  # which message that is; -1 for none
    memory: ClientStates  # what the clients remember of compressed uploads

    @property
    def resumed_from(self) -> tuple[Any, Any, Any]:
        """The states of clients and solvers, and the memories, from which later rounds start."""
        return self.clients.tree, self.solver.tree, self.memory.tree


class Host:
    """A block of clients of a federation. All that leaves it is what `answer` returns.

    Parameters
    ----------
    objective : Objective
        The ``f_j`` of these clients; a regulariser belongs to the server.
    clients : int or sequence of int, optional
        Their numbers in the federation, or that of the first of them. When not given, the server says so.
    file : str or Path, optional
        Where the host keeps the states of its clients (format: ``dualopt.engine._host_file``). With it a host that was
        killed goes on; without it a host lives and dies with the server.
    project : str, optional
        What all must agree on, such as a fingerprint of loss, scaling and weights. A server with another one is
        refused.
    types : iterable of type, optional
        Classes of methods, solvers and so on that are not of this package.
    prepared : Prepared, optional
        What a preparation has made of these clients: rounds work on its objective, and all else, such as values and
        local solutions, is in the coordinates of ``objective``.
    certified : bool, default True
        Whether to keep the latest local solution of every client, from which certificates are made.

    Raises
    ------
    ValueError
        If the file is damaged, or of other clients.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt import FedAvg, Quadratic
    >>> from dualopt.engine import _protocol as protocol
    >>> f = Quadratic(A=np.ones((2, 1, 1)), b=np.array([[1.0], [3.0]]))
    >>> host = Host(f)
    >>> (info,) = host.answer([protocol.Describe()])
    >>> info.n_clients, info.mu.tolist()
    (2, [1.0, 1.0])
    >>> method = '{"fedavg": {"solver": {"exact": {}}}}'
    >>> begin = protocol.Start("a run", 0, 2, (0, 1), method, np.zeros(1), None, "", "")
    >>> work = protocol.Propose("a run", 0, 2, 0, True, None, 0, np.zeros(1))
    >>> _, found = host.answer([begin, work])
    >>> found.upload.shape
    (2, 1)
    """

    def __init__(
        self,
        objective: Any,
        clients: int | Sequence[int] | None = None,
        *,
        file: str | Path | None = None,
        project: str = "",
        types: Iterable[type] = (),
        prepared: Prepared | None = None,
        certified: bool = True,
    ) -> None:
        self.objective: Any = without_regulariser(objective)
        require(not isinstance(self.objective, Reweighted), "objective must not be reweighted on a host: give scales")
        self._prepared, self._certified = prepared, certified
        self._worked_on = self.objective if prepared is None else without_regulariser(prepared.objective)
        self.project, self.types = project, tuple(types)
        n = self.objective.n_clients
        self.clients = tuple(range(clients, clients + n)) if isinstance(clients, int) else _tuple(clients)
        if self.clients is not None and len(self.clients) != n:
            raise ValueError(f"clients must be {n} numbers, one for each client of the objective.")
        self.run, self.n_clients = "", n
        self.algorithm: Any = None
        self._scales: tuple[float, ...] | None = None
        self._compressor: Compressor | None = None
        self._everybody = everybody(n)
        self._places: dict[int, int] = {}
        self.state: Any = None  # HostState
        self._begun: Any = None  # protocol.Start, with which the run began, of the latest server
        self._before: HostState | None = None  # what the round that was committed last began with
        self._rounds = 0  # that were committed, or passed without these clients
        self._asked: protocol.Propose | None = None  # the work of the latest round
        self._over: protocol.Commit | None = None  # its end
        self._proposed: Proposed | None = None
        self._saved = True
        self._foreign = not is_numpy(self.objective.zeros())
        self._phases = phases_of(self.objective)
        self._file: HostFile | None = None
        if file is not None:
            from dualopt.engine._host_file import HostFile  # hosts of this process have none

            self._file = HostFile(file)
            if (found := self._file.kept(self.objective.zeros(), self.types)) is not None:
                self._go_on(*found)

    @property
    def solution(self) -> LocalSolution | None:
        """The local solutions of the clients that were active in the latest round, in the user's coordinates."""
        return None if self._proposed is None else self._proposed.solution

    def answer(self, requests: Iterable[Any]) -> list[Any]:
        """Do what is asked, in this order, and return the answers; what must outlive this process is in the file then.

        Raises
        ------
        RefusedError
            If a request does not fit the state of the host.
        OSError
            If the file cannot be written; the requests may be sent again.
        """
        answers = [getattr(self, _STEPS[type(request)])(request) for request in requests]
        self._save()
        return answers

    # --- requests, one method each ------------------------------------------------------------------------------

    def _prepare(self, request: protocol.Prepare) -> protocol.Summary:
        raise RefusedError("it has clients, whose rows are prepared", code="asked")

    def _describe(self, request: protocol.Describe) -> protocol.ClientInfo:
        return client_info(self.objective, self.clients, self.project)

    def _align(self, request: protocol.Align) -> protocol.Aligned:
        self._set_max_rows(request.max_rows)
        return protocol.Aligned(request.max_rows)

    def _initial(self, request: protocol.Initial) -> protocol.Model:
        return protocol.Model(self.objective.initial(request.seed))

    def _start(self, request: protocol.Start) -> protocol.Started:
        if request.project != self.project:
            reason = f"its project is {self.project!r}, and that of the server {request.project!r}"
            raise RefusedError(reason, code="project")
        if request.run != self.run:
            if request.rounds:
                raise RefusedError(
                    f"it has no states of this run, which is at round {request.rounds}: "
                    "their file is lost or of another run",
                    code="states",
                )
            self._restart(request)
        elif self._latest_round > request.rounds:
            raise RefusedError(
                f"its clients are at round {self._latest_round}, and the server at {request.rounds}: "
                "the server's checkpoint is older than their states",
                code="checkpoint",
            )
        elif request.session != self._begun.session and self._over is not None and self._over.n == request.rounds:
            self._undo()
        self._begun = self._begun._replace(session=request.session)
        return protocol.Started(self.run, self._rounds)

    def _restore(self, request: protocol.Restore) -> protocol.Committed:
        self._require(request)
        solver = request.solver or self._phases.solver_states(self.algorithm, self._worked_on)
        self._set_states(request.clients, solver, request.latest, memory=request.memory)
        self._before, self._asked, self._over, self._proposed = None, None, None, None
        self._rounds, self._saved = request.n + 1, False
        return protocol.Committed(self.run, request.n)

    def _propose(self, request: protocol.Propose) -> protocol.Uploaded:
        self._require(request)
        self._require_own(request.clients)
        if self._asked is None or self._asked.n != request.n:
            self._require_next(request.n)
            self._take_message(request)
            self._before = self._over = None  # the server has kept the round before
            self._asked = request if self._file is None else request._replace(message=None)  # the state has it
            self._proposed, self._saved = None, False
            self._save()  # before the work: a host that is killed meanwhile need not commit once more
        return self._uploaded(self._asked)

    def _commit(self, request: protocol.Commit) -> protocol.Committed:
        self._require(request)
        self._require_own(request.clients)
        if request.n < self._rounds:
            return protocol.Committed(self.run, request.n)  # done
        if self._asked is None or self._asked.n != request.n:
            self._require_next(request.n)
            if request.clients != ():
                raise RefusedError(f"it has not worked in round {request.n}", code="order")
            self._before = self._over = self._asked = self._proposed = None
        self._end(request)
        self._over, self._rounds, self._saved = request, request.n + 1, False
        return protocol.Committed(self.run, request.n)

    def _value(self, request: protocol.Value) -> protocol.Valued:
        return protocol.Valued(self.objective.value(self._own(request.theta)))

    def _evaluate(self, request: protocol.Evaluate) -> protocol.Evaluated | protocol.PartialSums:
        f, theta = with_max_rows(self.objective, request.max_rows), self._own(request.theta)
        solution = self.state.latest.solution if request.dual and request.run == self.run else None
        weights = f.weights if request.weighted else None
        return self._phases.evaluated(f, theta, solution, weights, partial_sums=request.partial_sums)

    def _information(self, request: protocol.Information) -> protocol.InformationFound:
        if not isinstance(self.objective, LinearModel):
            raise RefusedError("standard errors need clients with linear models", code="asked")
        return protocol.InformationFound(*client_information(self.objective, self._own(request.theta)))

    def _states(self, request: protocol.States) -> protocol.StatesFound:
        self._require(request)
        models = None if self.solution is None else self.solution.theta
        now = self.state
        latest = now.latest and now.latest.kept
        return protocol.StatesFound(now.clients.tree, now.solver.tree, models, latest, now.memory.tree)

    # --- what they are made of ----------------------------------------------------------------------------------

    @property
    def _latest_round(self) -> int:
        """The latest round that the host knows of, from which it can go back."""
        known = [x.n for x in (self._asked, self._over) if x is not None]
        return max(known, default=self._rounds)

    def _require(self, request: Any) -> None:
        if request.run != self.run or self.algorithm is None:
            reason = "it has no states of this run: their file is lost, or the host was started without it"
            raise RefusedError(reason, code="states")

    def _require_own(self, clients: tuple[int, ...] | None) -> None:
        own = self._places or range(self.objective.n_clients)
        if clients is not None and not (len(set(clients)) == len(clients) and all(j in own for j in clients)):
            raise RefusedError("it is asked for clients that are not its own, or for one twice", code="clients")

    def _set_max_rows(self, max_rows: int | None) -> None:
        same = self._worked_on is self.objective
        self.objective = with_max_rows(self.objective, max_rows)
        self._worked_on = self.objective if same else with_max_rows(self._worked_on, max_rows)

    def _set_states(
        self, clients: Any, solver: Any, latest: Any, message: Any = None, made: int = -1, memory: Any = ()
    ) -> None:
        n, solutions = self.objective.n_clients, LatestSolutions(self.objective) if self._certified else None
        if solutions is not None:
            solutions.restore(latest)
        clients, solver, memory = (ClientStates(tree, n) for tree in (clients, solver, memory))
        self.state = HostState(clients, solver, solutions, message, made, memory)

    def _enter(self, request: protocol.Start, algorithm: Algorithm, compressor: Compressor | None) -> None:
        self.run, self.algorithm, clients = request.run, algorithm, request.clients
        self.n_clients, self.clients, self._scales = request.n_clients, clients, request.scales
        self._compressor = compressor
        here = clients == self._everybody
        self._places = {} if here else {j: place for place, j in enumerate(clients)}
        self._before = self._asked = self._over = self._proposed = None

    def _restart(self, request: protocol.Start) -> None:
        if len(request.clients) != self.objective.n_clients:
            reason = f"it has {self.objective.n_clients} clients, not {len(request.clients)}"
            raise RefusedError(reason, code="clients")
        try:
            algorithm: Any = request.method
            if isinstance(algorithm, str):
                algorithm = Spec.from_json(algorithm, "method").build("algorithm", self.types)
            compressor = self._compressor_in(request)
        except ValueError as error:
            reason = f"the method cannot be read: {str(error).rstrip('.')}"
            raise RefusedError(reason, code="method") from None
        try:
            positive("scales", request.scales, len(request.clients))
        except ValueError as error:
            raise RefusedError(str(error).rstrip("."), code="asked") from None
        self._set_max_rows(request.max_rows)
        if request.theta0 is not None:
            theta0, shape = self._own(request.theta0), (self.objective.n_clients, *self.objective.shape)
            _, _, clients = algorithm.init(theta0, broadcast(theta0, shape))
            self._set_states(clients, self._phases.solver_states(algorithm, self._worked_on), None)
        self._enter(request, algorithm, compressor)
        self._rounds, self._saved = 0, request.theta0 is None
        self._begun = request

    def _compressor_in(self, request: protocol.Start) -> Any:
        """Return what uploads go through, and refuse what does not fit the model."""
        found: Any = request.compressor
        if isinstance(found, str):
            found = Spec.from_json(found, "compressor").build("compressor", self.types)
        kept_part(found, self.objective.shape, request.n_clients)
        return found

    def _go_on(self, request: protocol.Start, algorithm: Algorithm, found: Stored) -> None:
        """Take the states from the file, and do the latest round once more."""
        if self.clients is not None and self.clients != request.clients:
            raise ValueError(f"{self._file} is of other clients.")
        self._begun = request
        self._set_max_rows(request.max_rows)
        self._enter(request, algorithm, self._compressor_in(request))
        self._set_states(found.clients, found.solver, found.latest, found.message, found.made, found.memory)
        self._rounds, self._asked = found.rounds, found.asked
        if found.over is not None:
            self._end(found.over)
            self._over, self._rounds = found.over, found.over.n + 1

    def _require_next(self, n: int) -> None:
        """Refuse a round that does not come after the latest one, or before that is over."""
        if n < self._rounds:
            reason = f"its clients have finished round {self._rounds - 1}, and are asked for round {n}"
            raise RefusedError(reason, code="order")
        if self._asked is not None and self._over is None:
            raise RefusedError(f"it was not told how round {self._asked.n} ended before round {n}", code="order")

    def _undo(self) -> None:
        """Go back to where the latest round began."""
        assert self._before is not None
        assert self._over is not None
        self.state, self._before = self._before, None
        self._rounds, self._over, self._saved = self._over.n, None, False

    def _take_message(self, request: protocol.Propose) -> None:
        """Take the message that comes with a request, or see that the one at hand is meant."""
        if request.message is not None:
            self.state = self.state._replace(message=self._own(request.message), made=request.made)
        elif self.state.made != request.made:
            raise RefusedError(f"it does not hold message {request.made}", code="message", final=False)

    def _uploaded(self, request: protocol.Propose) -> protocol.Uploaded:
        found = self._worked(request)
        upload, solution = found.upload if request.communicate else None, found.solution
        if request.partial_sums and upload is not None:
            upload = partial_sums(upload, request.weights)
        gradients = None if solution is None else solution.gradients
        return protocol.Uploaded(self.run, request.n, upload, gradients, found.vectors)

    def _worked(self, request: protocol.Propose) -> Proposed:
        """Return what was computed for a request; a process that was killed before computes it again."""
        if self._proposed is not None:
            return self._proposed
        clients = request.clients if request.clients is not None else self.clients
        assert clients is not None
        round = Round(
            n=request.n,
            n_clients=request.n_clients,
            clients=clients,
            communicate=request.communicate,
            seed=request.seed,
            kept=kept_part(self._compressor, self.objective.shape, request.n_clients),
        )
        self._proposed = self.work(round, self.state.message, request.clients)
        return self._proposed

    def work(self, round: Round, message: Any, clients: tuple[int, ...] | None) -> Proposed:
        """Return what these clients, or all, compute from a message in a round; no state changes."""
        now, ids = self.state, self._positions(clients)
        f = self._worked_on if self._scales is None else Reweighted(objective=self._worked_on, scales=self._scales)
        own = f, now.clients, now.solver, message, round, ids, self._compressor, now.memory
        found = self._phases.propose(self.algorithm, *own)
        if self._prepared is None or self._prepared.model is None:
            return found
        solution = self._prepared.solution_in_user_coordinates(found.solution, self.objective.select(ids))
        return found._replace(solution=solution)

    def _end(self, request: protocol.Commit) -> None:
        """Commit a round."""
        whole = None if self._asked is None else self._worked(self._asked)
        before = self.state
        if self._keeps_back:
            self._before = before
        message, made = before.message, before.made
        if request.message is not None:
            message, made = self._own(request.message), request.made
        self.end(whole, request.clients, message, made, communicate=request.communicate)

    def end(
        self, whole: Proposed | None, clients: tuple[int, ...] | None, message: Any, made: int, *, communicate: bool
    ) -> None:
        """Make what was proposed of these clients, or of all that worked, their states, with the message they know."""
        proposed, n, before = whole, self.objective.n_clients, self.state
        if whole is not None and clients is not None:
            ids = set(self._positions(clients))
            proposed = counted(whole, [k for k, place in enumerate(whole.ids) if place in ids])
        latest = before.latest
        if whole is not None and proposed is not None and latest is not None:
            latest = latest.after(proposed.ids, _of_counted(whole, proposed))
        states = before.clients, before.solver, proposed, n, message
        own, solver = self._phases.commit(self.algorithm, *states, communicate=communicate)
        memory = remembered(before.memory, proposed, n)
        self.state = HostState(own, solver, latest, message, made, memory)

    @property
    def _keeps_back(self) -> bool:
        """Whether a server may have to ask for a round again."""
        return self._file is not None or bool(self._begun.session)

    def _positions(self, clients: tuple[int, ...] | None) -> Any:
        if clients is None:
            return self._everybody
        return indices(clients if not self._places else [self._places[j] for j in clients])

    def _own(self, tree: Any) -> Any:
        """Return what came from elsewhere with arrays of the library of the data."""
        if not self._foreign:
            return tree
        zero = self.objective.zeros()
        xp = array_namespace(zero)
        return tree_map(lambda x: asarray_like(x, zero, dtype=getattr(xp, str(x.dtype))) if is_numpy(x) else x, tree)

    def _save(self) -> None:
        if self._saved:
            return
        if self._file is not None:
            from dualopt.engine._host_file import Stored

            start = self.state if self._before is None else self._before
            rounds = self._rounds if self._over is None else self._over.n
            found = Stored(
                rounds=rounds,
                message=start.message,
                made=start.made,
                clients=start.clients.tree,
                solver=start.solver.tree,
                latest=start.latest and start.latest.kept,
                asked=self._asked,
                over=self._over,
                memory=start.memory.tree,
            )
            self._file.keep(self._begun, found)
        self._saved = True


_STEPS = {kind: f"_{kind.__name__.lower()}" for kind in protocol.ANSWERS}


def answered(host: Host, requests: Iterable[Any]) -> list[Any] | protocol.Failed:
    """Return the answers of a host, or why there are none, in one sentence without a full stop.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt import Quadratic
    >>> from dualopt.engine import _protocol as protocol
    >>> host = Host(Quadratic(A=np.ones((1, 1, 1)), b=np.zeros((1, 1))))
    >>> answered(host, [protocol.States("a run", 3)]).final
    True
    """
    try:
        return host.answer(requests)
    except RefusedError as error:
        return protocol.Failed(str(error), error.final)
    except OSError as error:
        where = f" {error.filename!r}" if error.filename else ""
        return protocol.Failed(f"its file{where} cannot be written: {error.strerror or error}")
    except (ValueError, TypeError) as error:
        return protocol.Failed(str(error).rstrip("."), True)


def _of_counted(whole: Proposed, part: Proposed) -> LocalSolution | None:
    """Return the local solutions of the clients that were counted, as far as certificates need them."""
    found = whole.solution
    if part is whole or found is None or found.evaluation is None:
        return found
    row = {place: k for k, place in enumerate(whole.ids)}
    rows = [row[place] for place in part.ids]
    theta, f, grad_f, excess = take_rows((found.theta, found.evaluation.f, found.evaluation.grad_f, found.excess), rows)
    return found._replace(theta=theta, evaluation=Evaluation(f, grad_f, f, grad_f), excess=excess)


def _tuple(clients: Sequence[int] | None) -> tuple[int, ...] | None:
    return None if clients is None else tuple(int(j) for j in clients)
