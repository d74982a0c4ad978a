"""The phases of a round on the side of the clients as programs, for arrays of a library that compiles (JAX).

What the clients do in a round, local solver included, is one program, what they make of a new message another one, and
what certificates need a third. The server's part stays what it is: a few operations, and decisions. What looks at
numbers on the host, or draws some, is not compiled and runs as it does elsewhere, and so do uploads that go through a
compressor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from dualopt.arrays.client_states import ClientStates
from dualopt.arrays.compiled import MOST, Compiled, Programs
from dualopt.arrays.tree import is_everybody, tree_map
from dualopt.arrays.xp import Array, array_namespace, asarray_like, take, to_numpy
from dualopt.engine import _host_data, _steps
from dualopt.engine import _protocol as protocol
from dualopt.engine._steps import Phases, Proposed
from dualopt.methods import Algorithm
from dualopt.methods.compressors import Compressor
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import Round
from dualopt.objectives import Objective, Reweighted
from dualopt.objectives.local_problem import Evaluation
from dualopt.objectives.scales import own_clients, scales_of
from dualopt.solvers import LocalSolution
from dualopt.solvers._loop import STATUS

__all__ = ["phases"]

NO_SEED = -1  # which no generator takes: random numbers are drawn on the host


def phases(objective: Any) -> Phases:
    """Return those of the clients of an objective, with which their programs are kept."""
    return Phases(propose, partial(commit, objective), evaluated, _steps.solver_states)


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
    """Do what `dualopt.engine._steps.propose` does, in one program.

    It is that of all clients, whoever takes part in the round: a client's result does not depend on who else is in a
    call. What the others would have done is dropped.
    """
    f, n, found = own_clients(objective), objective.n_clients, None
    if compressor is None and f.computed_once is not None:
        scales = tuple(scales_of(objective))
        fixed = replace(round, n=0, clients=tuple(range(n)), seed=NO_SEED, inclusion=None)

        def local(before: Any, states: Any, message: Any, number: Array) -> Proposed:
            g = Reweighted(objective=f, scales=scales) if scales else f
            own, now = (ClientStates(before, n), ClientStates(states, n)), replace(fixed, n=number)
            found = _steps.propose(algorithm, g, *own, message, now, range(n), oracle=_CompiledOracle)
            return found._replace(ids=(), solution=_in_arrays(found.solution))

        program = _program(f, ("local", algorithm, scales, fixed), local)
        found = program.attempt(clients.tree, solver.tree, message, np.int64(round.n))
    if found is None:
        return _steps.propose(algorithm, objective, clients, solver, message, round, ids, compressor, memory)
    if not is_everybody(ids, n):
        found = _program(f, "rows", _rows)(found, np.asarray(ids, dtype=np.int64), n)
    return found._replace(ids=ids, solution=_on_host(found.solution, found.solver))


def commit(objective: Any, algorithm: Algorithm, *states: Any, communicate: bool) -> tuple[ClientStates, ClientStates]:
    """Do what `dualopt.engine._steps.commit` does, with programs for what clients make of a message."""
    hearing: Any = algorithm
    if objective.computed_once is not None:
        programs = (
            _program(objective, (name, algorithm), getattr(algorithm, name)) for name in ("receive", "receive_inactive")
        )
        hearing = _Hearing(algorithm.receivers, *programs)
    return _steps.commit(hearing, *states, communicate=communicate)


def evaluated(
    f: Any, theta: Array, solution: LocalSolution | None, weights: tuple[float, ...] | None, *, partial_sums: bool
) -> protocol.Evaluated | protocol.PartialSums:
    """Do what `dualopt.engine._host_data.evaluated` does, in one program."""

    def found(theta: Array, solution: LocalSolution | None) -> Any:
        return _host_data.evaluated(f, theta, solution, weights, partial_sums=partial_sums)

    if f.computed_once is None:
        return found(theta, solution)
    if solution is not None and solution.evaluation is not None:
        at = solution.evaluation
        at = Evaluation(at.f, at.grad_f, at.f, at.grad_f)  # all that is asked for
        solution = LocalSolution(solution.theta, at, None, None, (), (), (), solution.excess)
    made = _program(f, ("evaluated", weights, partial_sums), found)(theta, solution)
    return made._replace(columns=to_numpy(made.columns)) if partial_sums else made


class _Hearing(NamedTuple):
    """The part of a method that `commit` asks for."""

    receivers: frozenset[str]
    receive: Callable[[Any, Any], Any]
    receive_inactive: Callable[[Any, Any], Any]


class _CompiledOracle(Oracle):
    """An oracle that counts in arrays: what is traced has no numbers yet."""

    @property
    def gradients(self) -> Any:
        """Local gradients charged to each client so far, ``(P,)``."""
        like = self.objective.mu
        none = array_namespace(like).zeros_like(like)
        return sum((asarray_like(own, like) if isinstance(own, tuple) else own for own in self._charges), start=none)

    @property
    def solution(self) -> LocalSolution | None:
        """The latest solution or evaluation, with all charges."""
        return None if self._last is None else self._last._replace(gradients=self.gradients)


def _in_arrays(solution: LocalSolution | None) -> LocalSolution | None:
    """Return a solution as programs do: evaluated, its status in numbers, without the states that are there already."""
    if solution is None:
        return None
    at, status = solution.evaluation, solution.status
    if at is not None:
        at = Evaluation(at.f, at.grad_f, at.value, at.gradient)
    if isinstance(status, tuple):
        places, xp = [STATUS.index(own) for own in status], array_namespace(solution.theta)
        status = asarray_like(places, solution.theta, dtype=xp.int64)
    return solution._replace(evaluation=at, status=status, solver_state=())  # pyright: ignore[reportArgumentType]


def _on_host(solution: LocalSolution | None, solver_state: Any) -> LocalSolution | None:
    """Return a solution as solvers do."""
    if solution is None:
        return None
    gradients, status = (to_numpy(x).tolist() for x in (solution.gradients, solution.status))
    named = tuple(STATUS[place] for place in status)
    return solution._replace(gradients=tuple(map(float, gradients)), status=named, solver_state=solver_state)


def _rows(tree: Any, ids: Array, n: int) -> Any:
    """Return these rows of all arrays of ``n`` clients."""
    return tree_map(lambda x: take(x, ids) if getattr(x, "shape", ())[:1] == (n,) else x, tree)


def _program(objective: Any, key: Any, function: Callable[..., Any]) -> Compiled:
    """Return the program that is kept with an objective under this key, or a new one."""
    programs = vars(objective).setdefault("_programs", Programs())
    if key not in programs:
        for name in objective.computed_once:
            attrgetter(name)(objective)
        while len(programs) >= MOST:
            del programs[next(iter(programs))]
        programs[key] = Compiled(function)
    return programs[key]
