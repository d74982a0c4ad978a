"""A host: a block of clients, with their data, all their states, and the few requests that they answer."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from dualopt.arrays._checks import require
from dualopt.arrays.client_states import ClientStates
from dualopt.arrays.tree import take_rows, tree_map
from dualopt.arrays.xp import array_namespace, asarray_like, broadcast, is_numpy
from dualopt.engine import _protocol as ask
from dualopt.engine._errors import RefusedError
from dualopt.engine._host_file import HostFile, Kept
from dualopt.engine._methods import read_method
from dualopt.engine._steps import Pending, counted, settled, solver_states, summed, worked
from dualopt.methods import Algorithm
from dualopt.methods.participation import Round
from dualopt.objectives import LinearModel, Objective, ObjectiveWrapper, Reweighted
from dualopt.objectives._weights import positive
from dualopt.objectives.composite import without_regulariser
from dualopt.objectives.local_problem import Evaluation
from dualopt.objectives.wrapper import class_labels
from dualopt.runs.certificates import LatestSolutions, certificate_sums, dual_point
from dualopt.solvers import LocalSolution

__all__ = ["Host", "answered"]


class Standing(NamedTuple):
    """The clients between two rounds."""

    clients: ClientStates
    solver: ClientStates
    latest: LatestSolutions
    message: Any  # what they know of the model
    made: int  # which message that is; -1 for none


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

    Raises
    ------
    ValueError
        If the file is damaged, or of other clients.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt import FedAvg, Quadratic
    >>> from dualopt.engine import _protocol as ask
    >>> from dualopt.engine._methods import spelled
    >>> f = Quadratic(A=np.ones((2, 1, 1)), b=np.array([[1.0], [3.0]]))
    >>> host = Host(f)
    >>> (census,) = host.answer([ask.Describe()])
    >>> census.n_clients, census.mu.tolist()
    (2, [1.0, 1.0])
    >>> begin = ask.Start("a run", 0, 2, (0, 1), spelled(FedAvg().suggested(f)), np.zeros(1), None, "", "")
    >>> work = ask.Work("a run", 0, 2, 0, True, None, 0, np.zeros(1))
    >>> _, found = host.answer([begin, work])
    >>> found.upload.shape
    (2, 1)
    """

    def __init__(
        self,
        objective: Objective,
        clients: int | Sequence[int] | None = None,
        *,
        file: str | Path | None = None,
        project: str = "",
        types: Iterable[type] = (),
    ) -> None:
        self.objective: Any = without_regulariser(objective)
        require(not isinstance(self.objective, Reweighted), "objective must not be reweighted on a host: give scales")
        self.project, self.types = project, tuple(types)
        n = self.objective.n_clients
        self.clients = tuple(range(clients, clients + n)) if isinstance(clients, int) else _tuple(clients)
        if self.clients is not None and len(self.clients) != n:
            raise ValueError(f"clients must be {n} numbers, one for each client of the objective.")
        self.run, self.n_clients, self._session = "", n, ""
        self.algorithm: Algorithm | None = None
        self._scales: tuple[float, ...] | None = None
        self._everybody = tuple(range(n))
        self._places: dict[int, int] = {}
        self._now: Any = None  # Standing
        self._before: Standing | None = None  # what the round that was settled last began with
        self._rounds = 0  # that were settled, or passed without these clients
        self._asked: ask.Work | None = None  # the work of the latest round
        self._over: ask.Settle | None = None  # its end
        self._pending: Pending | None = None
        self._saved = True
        self._foreign = not is_numpy(self.objective.zeros())
        self._file = None if file is None else HostFile(file)
        if self._file is not None and (found := self._file.read(self.objective.zeros(), self.types)) is not None:
            self._go_on(*found)

    @property
    def solution(self) -> LocalSolution | None:
        """The local solutions of the clients that were active in the latest round."""
        return None if self._pending is None else self._pending.solution

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

    def _describe(self, request: ask.Describe) -> ask.Census:
        f, rows, linear = self.objective, getattr(self.objective, "rows", None), self.objective
        classes = class_labels(f)
        return ask.Census(
            clients=self.clients,
            n_clients=f.n_clients,
            mu=f.mu,
            mu_rounding=f.mu_rounding,
            L=f.L,
            weights=f.weights,
            zero=f.zeros(),
            offers=tuple(sorted(f.offers)),
            gradient_cost=f.gradient_cost,
            usual_weight=f.usual_weight,
            sizes=tuple(f.sizes) if "samples" in f.offers else None,
            max_rows=None if rows is None else rows.max_rows,
            n_features=None if rows is None else rows.n_features,
            is_sparse=rows is not None and rows.is_sparse,
            linear_ridge=float(linear.ridge) if isinstance(linear, LinearModel) else None,
            classes="" if classes is None else json.dumps(classes),
            project=self.project,
        )

    def _agree(self, request: ask.Agree) -> ask.Agreed:
        self.objective = with_max_rows(self.objective, request.max_rows)
        return ask.Agreed(request.max_rows)

    def _initial(self, request: ask.Initial) -> ask.Model:
        return ask.Model(self.objective.initial(request.seed))

    def _start(self, request: ask.Start) -> ask.Started:
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
        elif request.session != self._session and self._over is not None and self._over.n == request.rounds:
            self._undo()
        self._session = request.session
        return ask.Started(self.run, self._rounds)

    def _restore(self, request: ask.Restore) -> ask.Settled:
        self._require(request)
        n, latest = self.objective.n_clients, LatestSolutions(self.objective)
        latest.restore(request.latest)
        self._now = Standing(ClientStates(request.clients, n), ClientStates(request.solver, n), latest, None, -1)
        self._before, self._asked, self._over, self._pending = None, None, None, None
        self._rounds, self._saved = request.n + 1, False
        return ask.Settled(self.run, request.n)

    def _work(self, request: ask.Work) -> ask.Worked:
        self._require(request)
        if self._asked is None or self._asked.n != request.n:
            self._advance_to(request.n)
            self._hear(request)
            self._asked, self._pending, self._saved = request._replace(message=None), None, False
            self._save()  # before the work: a host that is killed meanwhile need not settle once more
        return self._worked(self._asked)

    def _settle(self, request: ask.Settle) -> ask.Settled:
        self._require(request)
        if request.n < self._rounds:
            return ask.Settled(self.run, request.n)  # done
        if self._asked is None or self._asked.n != request.n:
            self._advance_to(request.n)
            self._asked = self._pending = None
        self._end(request)
        self._over, self._rounds, self._saved = request, request.n + 1, False
        return ask.Settled(self.run, request.n)

    def _value(self, request: ask.Value) -> ask.Valued:
        return ask.Valued(self.objective.value(self._own(request.theta)))

    def _evaluate(self, request: ask.Evaluate) -> ask.Evaluated | ask.Summed:
        f, theta = with_max_rows(self.objective, request.max_rows), self._own(request.theta)
        solution = self._now.latest.solution if request.dual and request.run == self.run else None
        if request.summed:
            return ask.Summed(*certificate_sums(f, theta, solution, f.weights)[:3])
        values, gradients = f.value_and_gradient(theta)
        rounding = f.rounding(theta, values, gradients)
        point = None if solution is None else dual_point(f, solution)
        of_dual = (None, None, None) if point is None else point
        return ask.Evaluated(values, gradients, rounding.value, rounding.gradient, *of_dual)

    def _states(self, request: ask.States) -> ask.StatesFound:
        self._require(request)
        models = None if self.solution is None else self.solution.theta
        now = self._now
        return ask.StatesFound(now.clients.tree, now.solver.tree, models, now.latest.kept)

    # --- what they are made of ----------------------------------------------------------------------------------

    @property
    def _latest_round(self) -> int:
        """The latest round that the host knows of, from which it can go back."""
        known = [x.n for x in (self._asked, self._over) if x is not None]
        return max(known, default=self._rounds if self._before is None else self._rounds - 1)

    def _require(self, request: Any) -> None:
        if request.run != self.run or self.algorithm is None:
            reason = "it has no states of this run: their file is lost, or the host was started without it"
            raise RefusedError(reason, code="states")

    def _enter(self, request: ask.Start, algorithm: Algorithm) -> None:
        self.run, self.algorithm, clients = request.run, algorithm, request.clients
        self.n_clients, self.clients, self._scales = request.n_clients, clients, request.scales
        here = clients == self._everybody
        self._places = {} if here else {j: place for place, j in enumerate(clients)}
        self._before = self._asked = self._over = self._pending = None

    def _restart(self, request: ask.Start) -> None:
        if len(request.clients) != self.objective.n_clients:
            reason = f"it has {self.objective.n_clients} clients, not {len(request.clients)}"
            raise RefusedError(reason, code="clients")
        try:
            algorithm = read_method(request.method, self.types)
        except ValueError as error:
            reason = f"the method cannot be read: {str(error).rstrip('.')}"
            raise RefusedError(reason, code="method") from None
        try:
            positive("scales", request.scales, len(request.clients))
        except ValueError as error:
            raise RefusedError(str(error).rstrip("."), code="asked") from None
        self.objective = with_max_rows(self.objective, request.max_rows)
        n, theta0 = self.objective.n_clients, self._own(request.theta0)
        _, _, clients = algorithm.init(theta0, broadcast(theta0, (n, *self.objective.shape)))
        solver = solver_states(algorithm, self.objective)
        self._enter(request, algorithm)
        latest = LatestSolutions(self.objective)
        self._now = Standing(ClientStates(clients, n), ClientStates(solver, n), latest, None, -1)
        self._rounds, self._saved = 0, False
        if self._file is not None:
            self._file.describe(request)

    def _go_on(self, request: ask.Start, algorithm: Algorithm, kept: Kept) -> None:
        """Take the states from the file, and do the latest round once more."""
        if self.clients is not None and self.clients != request.clients:
            raise ValueError(f"file {str(self._file)!r} is of other clients.")
        self.objective = with_max_rows(self.objective, request.max_rows)
        n = self.objective.n_clients
        self._enter(request, algorithm)
        latest = LatestSolutions(self.objective)
        latest.restore(kept.latest)
        self._now = Standing(
            ClientStates(kept.clients, n), ClientStates(kept.solver, n), latest, kept.message, kept.made
        )
        self._rounds, self._asked = kept.rounds, kept.asked
        if kept.over is not None:
            self._end(kept.over)
            self._over, self._rounds = kept.over, kept.over.n + 1

    def _advance_to(self, n: int) -> None:
        """Leave the latest round for good: the server has kept it."""
        if n < self._rounds:
            reason = f"its clients have finished round {self._rounds - 1}, and are asked for round {n}"
            raise RefusedError(reason, code="order")
        if self._asked is not None and self._over is None:
            raise RefusedError(f"it was not told how round {self._asked.n} ended before round {n}", code="order")
        self._before = self._over = None

    def _undo(self) -> None:
        """Go back to where the latest round began."""
        assert self._before is not None
        assert self._over is not None
        self._now, self._before = self._before, None
        self._rounds, self._over, self._saved = self._over.n, None, False

    def _hear(self, request: Any) -> None:
        """Take the message that comes with a request, or see that the one at hand is meant."""
        if request.message is not None:
            self._now = self._now._replace(message=tree_map(self._own, request.message), made=request.made)
        elif self._now.made != request.made:
            raise RefusedError(f"it does not hold message {request.made}", code="message", final=False)

    def _worked(self, request: ask.Work) -> ask.Worked:
        if self._pending is None:
            ids = self._positions(request.clients)
            clients = request.clients if request.clients is not None else self.clients
            assert clients is not None
            assert self.algorithm is not None
            round = Round(
                n=request.n,
                n_clients=request.n_clients,
                clients=clients,
                communicate=request.communicate,
                seed=request.seed,
            )
            now = self._now
            f = self.objective if self._scales is None else Reweighted(objective=self.objective, scales=self._scales)
            self._pending = worked(self.algorithm, f, now.clients, now.solver, now.message, round, ids)
        upload, solution = self._pending.upload if request.communicate else None, self._pending.solution
        if request.summed and upload is not None:
            upload = summed(upload, request.weights)
        return ask.Worked(self.run, request.n, upload, None if solution is None else solution.gradients)

    def _end(self, request: ask.Settle) -> None:
        """Settle a round."""
        assert self.algorithm is not None
        if self._asked is not None and self._pending is None:
            self._worked(self._asked)  # by a process that was killed
        pending, before = self._pending, self._now
        if pending is not None and request.clients is not None:
            ids = set(self._positions(request.clients))
            pending = counted(pending, [k for k, place in enumerate(pending.ids) if place in ids])
        elif pending is None and request.clients != ():
            raise RefusedError(f"it has not worked in round {request.n}", code="order")
        if self._keeps_back:
            self._before = before
        message = before.message if request.message is None else tree_map(self._own, request.message)
        latest = copy.copy(before.latest)
        if pending is not None and self._pending is not None:
            latest.update(pending.ids, _of_counted(self._pending, pending))
        states = before.clients, before.solver, pending, self.objective.n_clients, message
        clients, solver = settled(self.algorithm, *states, communicate=request.communicate)
        made = before.made if request.message is None else request.made
        self._now = Standing(clients, solver, latest, message, made)

    @property
    def _keeps_back(self) -> bool:
        """Whether a server may have to ask for a round again."""
        return self._file is not None or bool(self._session)

    def _positions(self, clients: tuple[int, ...] | None) -> Sequence[int]:
        if clients is None:
            return self._everybody
        return clients if not self._places else tuple(self._places[j] for j in clients)

    def _own(self, x: Any) -> Any:
        """Return an array that came from elsewhere as one of the library of the data."""
        if not (self._foreign and is_numpy(x)):
            return x
        zero = self.objective.zeros()
        return asarray_like(x, zero, dtype=getattr(array_namespace(zero), str(x.dtype)))

    def _save(self) -> None:
        if self._saved:
            return
        if self._file is not None:
            start = self._now if self._over is None or self._before is None else self._before
            rounds = self._rounds if self._over is None else self._over.n
            kept = Kept(
                rounds=rounds,
                message=start.message,
                made=start.made,
                clients=start.clients.tree,
                solver=start.solver.tree,
                latest=start.latest.kept,
                asked=self._asked,
                over=self._over,
            )
            self._file.write(kept)
        self._saved = True


_STEPS = {kind: f"_{kind.__name__.lower()}" for kind in ask.ANSWERS}


def answered(host: Host, requests: Iterable[Any]) -> list[Any] | ask.Failed:
    """Return the answers of a host, or why there are none, in one sentence without a full stop.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt import Quadratic
    >>> from dualopt.engine import _protocol as ask
    >>> host = Host(Quadratic(A=np.ones((1, 1, 1)), b=np.zeros((1, 1))))
    >>> answered(host, [ask.States("a run", 3)]).final
    True
    """
    try:
        return host.answer(requests)
    except RefusedError as error:
        return ask.Failed(str(error), error.final)
    except OSError as error:
        return ask.Failed(f"its file cannot be written: {error.strerror or error}")
    except (ValueError, TypeError) as error:
        return ask.Failed(str(error).rstrip("."), True)


def with_max_rows(objective: Any, max_rows: int | None) -> Any:
    """Return the objective with this number of rows of the largest client of the federation, by which solvers choose.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt import linear_model
    >>> from dualopt.losses import Squared
    >>> f = linear_model(np.eye(4), np.ones(4), loss=Squared(), mu=0.1, clients=2)
    >>> with_max_rows(f, 5).rows.max_rows, with_max_rows(f, None) is f
    (5, True)
    """
    rows = getattr(objective, "rows", None)
    if max_rows is None or rows is None or rows.max_rows == max_rows:
        return objective
    if isinstance(objective, ObjectiveWrapper):
        return replace(objective, objective=with_max_rows(objective.objective, max_rows))  # pyright: ignore
    return replace(objective, rows=replace(rows, max_rows=max_rows))


def _of_counted(whole: Pending, part: Pending) -> LocalSolution | None:
    """Return the local solutions of the clients that were counted, as far as certificates need them."""
    found = whole.solution
    if part is whole or found is None or found.evaluation is None:
        return found
    rows = [whole.ids.index(place) for place in part.ids]
    theta, f, grad_f, excess = take_rows((found.theta, found.evaluation.f, found.evaluation.grad_f, found.excess), rows)
    return found._replace(theta=theta, evaluation=Evaluation(f, grad_f, f, grad_f), excess=excess)


def _tuple(clients: Sequence[int] | None) -> tuple[int, ...] | None:
    return None if clients is None else tuple(int(j) for j in clients)
