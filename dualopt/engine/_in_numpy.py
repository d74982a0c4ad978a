"""The phases of a round on the side of the clients by NumPy, for tensors of PyTorch in host memory, which they share.

Small products and sums of PyTorch take twice as long as NumPy's, and nothing is copied here: objectives, states and
messages are seen as arrays of NumPy, and what is made of them as tensors. Objectives that cannot be seen so, such as
modules of PyTorch, work as they do elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any
from weakref import WeakKeyDictionary

from dualopt.arrays.client_states import ClientStates
from dualopt.arrays.tree import tree_map
from dualopt.arrays.xp import Array, array_namespace, to_numpy
from dualopt.engine import _host_data, _steps
from dualopt.engine import _protocol as protocol
from dualopt.engine._steps import Phases, Proposed
from dualopt.methods import Algorithm
from dualopt.methods.compressors import Compressor
from dualopt.methods.participation import Round
from dualopt.objectives import LinearModel, Objective, Quadratic, Reweighted
from dualopt.objectives.local_problem import Evaluation
from dualopt.objectives.rows import ClientRows, Group
from dualopt.solvers import LocalSolution

__all__ = ["phases"]


def phases(objective: Any) -> Phases:
    """Return what a host does in a round, of any objective."""
    return Phases(propose, _steps.commit, evaluated, solver_states)


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
    """Do what `dualopt.engine._steps.propose` does."""
    f = _seen(objective)
    if f is objective:
        return _steps.propose(algorithm, objective, clients, solver, message, round, ids, compressor, memory)
    both = _Both(objective.zeros())
    states = (None if own is None else _Taken(own, both) for own in (clients, solver))
    known = None if memory is None else _Taken(memory, both)
    found = _steps.propose(algorithm, f, *states, both.seen(message), round, ids, compressor, known)  # pyright: ignore
    return both.back(found)


def evaluated(
    f: Any, theta: Array, solution: LocalSolution | None, weights: tuple[float, ...] | None, *, partial_sums: bool
) -> protocol.Evaluated | protocol.PartialSums:
    """Do what `dualopt.engine._host_data.evaluated` does."""
    both, seen = _Both(theta), _seen(f)
    if seen is f:
        return _host_data.evaluated(f, theta, solution, weights, partial_sums=partial_sums)
    found = _host_data.evaluated(seen, both.seen(theta), both.seen(solution), weights, partial_sums=partial_sums)
    made = both.back(found)
    return made._replace(columns=found.columns) if isinstance(found, protocol.PartialSums) else made


def solver_states(algorithm: Algorithm, objective: Objective) -> Any:
    """Do what `dualopt.engine._steps.solver_states` does."""
    return _Both(objective.zeros()).back(_steps.solver_states(algorithm, _seen(objective)))


class _Both:
    """Arrays and tensors that share their memory; what is there twice in a tree is one array in the other one."""

    def __init__(self, like: Array) -> None:
        self._like, self._known = like, {}

    def seen(self, tree: Any) -> Any:
        """Return a tree with arrays of NumPy."""
        return tree_map(lambda x: x.seen if isinstance(x, _OnDemand) else self._other(x, to_numpy), tree)

    def back(self, tree: Any) -> Any:
        """Return a tree with tensors."""

        def tensor(x: Array) -> Array:
            x = x if x.flags.writeable else x.copy()  # PyTorch warns of others
            return array_namespace(self._like).asarray(x)

        return tree_map(lambda x: _OnDemand(x, self) if hasattr(x, "grad_f") else self._other(x, tensor), tree)

    def _other(self, x: Any, convert: Callable[[Array], Array]) -> Any:
        if not hasattr(x, "dtype"):
            return x
        if id(x) not in self._known:
            found = convert(x)
            self._known[id(x)], self._known[id(found)] = (x, found), (found, x)
        return self._known[id(x)][1]


class _OnDemand:
    """An evaluation that is computed when somebody asks, in tensors."""

    def __init__(self, seen: Any, both: _Both) -> None:
        self.seen, self._both = seen, both

    def __getattr__(self, name: str) -> Array:
        if name not in Evaluation._fields:
            raise AttributeError(name)
        return self._both.back(getattr(self.seen, name))

    def __reduce__(self) -> tuple[Any, ...]:
        return Evaluation, tuple(getattr(self, name) for name in Evaluation._fields)


class _Taken:
    """States of clients, seen by NumPy when they are taken."""

    def __init__(self, states: ClientStates, both: _Both) -> None:
        self._states, self._both = states, both

    def take(self, ids: Any) -> Any:
        """Return those of the clients ``ids``."""
        return self._both.seen(self._states.take(ids))


_KNOWN: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def _seen(objective: Any) -> Any:
    """Return the objective as NumPy sees it; itself where it has more than arrays."""
    if isinstance(objective, Reweighted):
        inner = _seen(objective.objective)
        return objective if inner is objective.objective else replace(objective, objective=inner)
    if type(objective) not in (LinearModel, Quadratic):
        return objective
    if objective not in _KNOWN:
        _KNOWN[objective] = _with_arrays(objective)
    return _KNOWN[objective]


def _with_arrays(x: Any) -> Any:
    """Return data with arrays of NumPy in the place of tensors."""
    if isinstance(x, tuple):
        return tuple(map(_with_arrays, x))
    if isinstance(x, LinearModel | Quadratic | ClientRows | Group):
        return replace(x, **{field.name: _with_arrays(getattr(x, field.name)) for field in fields(x)})
    return {} if isinstance(x, dict) else to_numpy(x) if hasattr(x, "dtype") else x
