"""The phases of a round on the side of the clients as programs, for arrays of a library that compiles (JAX).

What the active clients do in a round, local solver included, is one program, what they make of a new message another
one, and what certificates need a third. The server's part stays what it is: a few operations, and decisions. A method
or an objective that decides by numbers on the host is not compiled, and runs as it does elsewhere; so do rounds of some
of the clients, and uploads that go through a compressor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from dualopt.arrays.client_states import ClientStates
from dualopt.arrays.compiled import Compiled, Programs
from dualopt.arrays.tree import is_everybody
from dualopt.arrays.xp import Array, array_namespace, asarray_like, is_traced, to_numpy
from dualopt.engine import _host_data, _steps
from dualopt.engine import _protocol as protocol
from dualopt.engine._steps import Proposed
from dualopt.methods import Algorithm
from dualopt.methods.compressors import Compressor
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import Round
from dualopt.objectives import Objective, Reweighted
from dualopt.objectives.local_problem import Evaluation
from dualopt.objectives.scales import own_clients, scales_of
from dualopt.solvers import LocalSolution
from dualopt.solvers._loop import STATUS

__all__ = ["commit", "evaluated", "propose"]


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
) -> Proposed:
    """Do what `dualopt.engine._steps.propose` does, in one program."""
    n = objective.n_clients
    if compressor is not None or not is_everybody(ids, n) or own_clients(objective).computed_once is None:
        return _steps.propose(algorithm, objective, clients, solver, message, round, ids, compressor, memory)
    f, scales, fixed = own_clients(objective), tuple(scales_of(objective)), replace(round, n=0)

    def local(before: Any, states: Any, message: Any, number: Any) -> tuple[Proposed, tuple[Array, ...]]:
        g = Reweighted(objective=f, scales=scales) if scales else f
        own, now = (
            (ClientStates(before, n), ClientStates(states, n)),
            replace(fixed, n=number if is_traced(number) else int(number)),
        )
        found = _steps.propose(algorithm, g, *own, message, now, range(n), oracle=_ChargedOracle)
        solution = found.solution
        if solution is None or solution.evaluation is None:
            return found
        at = solution.evaluation
        at = Evaluation(at.f, at.grad_f, at.value, at.gradient)  # some compute it when asked
        return found._replace(solution=solution._replace(evaluation=at, solver_state=()))

    program = _program(f, ("local", algorithm, scales, fixed), local)
    found = program(clients.tree, solver.tree, message, np.int64(round.n))
    return found._replace(ids=ids, solution=_on_host(found.solution, found.solver))


def commit(objective: Any, algorithm: Algorithm, *states: Any, communicate: bool) -> tuple[ClientStates, ClientStates]:
    """Do what `dualopt.engine._steps.commit` does, with programs for what clients make of a message."""
    if objective.computed_once is None:
        return _steps.commit(algorithm, *states, communicate=communicate)
    heard = _Hearing(
        algorithm.receivers,
        _program(objective, ("receive", algorithm), algorithm.receive),
        _program(objective, ("receive_inactive", algorithm), algorithm.receive_inactive),
    )
    return _steps.commit(heard, *states, communicate=communicate)  # pyright: ignore


def evaluated(
    f: Any, theta: Array, solution: LocalSolution | None, weights: tuple[float, ...] | None, *, partial_sums: bool
) -> protocol.Evaluated | protocol.PartialSums:
    """Do what `dualopt.engine._host_data.evaluated` does, in one program."""
    if f.computed_once is None:
        return _host_data.evaluated(f, theta, solution, weights, partial_sums=partial_sums)

    def found(theta: Array, solution: LocalSolution | None) -> Any:
        return _host_data.evaluated(f, theta, solution, weights, partial_sums=partial_sums)

    if solution is not None and solution.evaluation is not None:
        at = Evaluation(*(getattr(solution.evaluation, name) for name in ("f", "grad_f", "f", "grad_f")))
        solution = LocalSolution(solution.theta, at, None, None, (), (), (), solution.excess)
    made = _program(f, ("evaluated", weights, partial_sums), found)(theta, solution)
    return made._replace(columns=to_numpy(made.columns)) if partial_sums else made


class _Hearing(NamedTuple):
    """The part of a method that `commit` asks for."""

    receivers: frozenset[str]
    receive: Callable[[Any, Any], Any]
    receive_inactive: Callable[[Any, Any], Any]


class _ChargedOracle(Oracle):
    """An oracle that counts in arrays, while they have no numbers."""

    @property
    def gradients(self) -> Any:
        """Local gradients charged to each client so far, ``(P,)``."""
        like = self.objective.mu
        counts = [asarray_like(own, like) if isinstance(own, tuple) else own for own in self._charges]
        return sum(counts, array_namespace(like).zeros_like(like))

    @property
    def solution(self) -> LocalSolution | None:
        """The latest solution or evaluation, with all charges."""
        return None if self._last is None else self._last._replace(gradients=self.gradients)


def _on_host(solution: LocalSolution | None, solver_state: Any) -> LocalSolution | None:
    """Return a solution with counts and status as they are elsewhere."""
    if solution is None:
        return None
    gradients, status = solution.gradients, solution.status
    if not isinstance(gradients, tuple):
        gradients = tuple(map(float, to_numpy(gradients).tolist()))
    if not isinstance(status, tuple):
        status = tuple(STATUS[place] for place in to_numpy(status).tolist())
    return solution._replace(gradients=gradients, status=status, solver_state=solver_state)


def _program(objective: Any, key: Any, function: Callable[..., Any]) -> Compiled:
    """Return the program that is kept with an objective under this key, or a new one."""
    programs = vars(objective).setdefault("_programs", Programs())
    if key not in programs:
        for name in objective.computed_once:
            attrgetter(name)(objective)
        programs[key] = Compiled(function)
    return programs[key]
