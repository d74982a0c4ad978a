"""L-BFGS with a preconditioner, its curvature pairs kept between rounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

from dualopt.arrays._checks import Typed, require_kept
from dualopt.arrays.streams import Round
from dualopt.arrays.tree import merge_clients, take_clients, take_rows
from dualopt.arrays.xp import (
    Array,
    array_namespace,
    asarray_like,
    device,
    either,
    host_places,
    host_zeros,
    indices,
    is_numpy,
    is_traced,
    reshape,
    surely,
    transposed,
)
from dualopt.objectives.local_problem import Evaluation, LocalProblem, client_dot, per_client
from dualopt.solvers._line_search import LineSearch, backtrack
from dualopt.solvers._loop import LocalSolution, drive, equal_rows, masked, norm, nowhere, require_smooth, solution
from dualopt.solvers.stopping import Stop

__all__ = ["LBFGS"]

SMALL = 2**10
"""Numbers of a client's data of which a gradient takes less time than a preconditioner."""

LARGE = 2**15
"""Those from which on a gradient takes so long that nobody's is computed in vain."""

SELDOM = 0.1
"""The fraction of the clients of a round below which what a client keeps is mostly out of the cache, and old."""


class Pairs(NamedTuple):
    """The pairs of each client; zeros where there is none.

    With NumPy their places are taken in turns, and ``factors`` are U: the rows of US are the s times ``I - y s'`` of
    all later pairs. Elsewhere, where to write costs more than to make new arrays, ``s`` are these products themselves,
    the newest pair is the last one, and ``factors`` are empty.
    """

    s: Array  # (N, history, *shape)  steps, with <s, y> = 1
    y: Array  # (N, history, *shape)  changes of the gradient
    factors: Array  # (N, history, history)
    scale: Array  # (N,)  1 / <y, y> of the newest pair, 0 without one
    place: Array  # (N,)  of the next pair, where the oldest one is


class SolverState(NamedTuple):
    """What is kept between rounds: the pairs, and the losses where the last call ended."""

    pairs: Pairs
    theta: Array  # (N, *shape)  NaN before the first call
    f: Array  # (N,)
    grad_f: Array  # (N, *shape)
    curvatures: Any  # what the preconditioner is told, a tree of arrays (N, ...); () of objectives without


class State(NamedTuple):
    """Iterates of the clients that run; what follows the evaluation is in host memory after the first step."""

    theta: Array
    evaluation: Evaluation
    client: Array  # its place among all clients of the call, in host memory
    value: Array  # F_j
    norm: Array  # |grad F_j|
    gradients: Array
    stalled: Array


class _WithPairs(NamedTuple):
    """The same with the pairs, in a function that is compiled: nothing is written to there."""

    theta: Array
    evaluation: Evaluation
    client: Array
    value: Array
    norm: Array
    gradients: Array
    stalled: Array
    pairs: Pairs


@dataclass(frozen=True, kw_only=True)
class LBFGS(Typed):
    r"""Limited-memory BFGS (Liu and Nocedal 1989) with backtracking.

    A pair of a step and the change of the gradient, scaled to :math:`\langle s, y\rangle = 1`, changes the
    approximation of the inverse Hessian to :math:`(I - s y^\top) H (I - y s^\top) + s s^\top`. From an initial matrix
    :math:`H_0` and all pairs in turn this is

    .. math:: H = (I - S^\top U^\top Y) H_0 (I - Y^\top U S) + S^\top U^\top U S,

    where the rows of ``S`` and ``Y`` are the ``s`` and the ``y``, and those of ``US`` the ``s`` times
    :math:`I - y s^\top` of all later pairs. ``U`` is a small triangular matrix: a new pair adds the column
    :math:`-U S y` to it, and no other vector changes. It is the two-loop recursion, in products instead of a loop
    (compare Byrd, Nocedal and Schnabel 1994, whose middle matrix has the inverse of ``U``). :math:`H_0` is the
    objective's ``preconditioner`` when it has one, and :math:`\langle s, y\rangle / \langle y, y\rangle` times the
    identity otherwise; before the first pair of a tiny client with a proximal term it is :math:`2/(L_j + \mu_j)` of
    the local problem. Local problems are strongly convex, so every accepted step gives a pair with
    :math:`\langle s, y\rangle > 0`. From round to round only the linear term of a local problem changes, not its
    Hessian: the pairs of earlier rounds stay true and are kept, and so is the gradient of ``f_j`` where the last call
    ended. Where the objective offers ``curvatures``, the preconditioner is told those at the start of the rounds 1, 2,
    4, 8, ...: any :math:`H_0` goes with the pairs.

    Parameters
    ----------
    history : int, optional
        Number of pairs that are kept; chosen by :func:`usual_history` when not given.
    precondition : bool, optional
        Whether to use the objective's preconditioner, if it has one; when not given, it is used unless all clients have
        less than ``SMALL`` numbers.
    max_iter : int, default 1000
        Largest number of steps.

    Raises
    ------
    ValueError
        If the loss is nonsmooth or ``history`` is not between 1 and 1000.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.objectives import LocalProblem, Quadratic
    >>> from dualopt.solvers.stopping import GradientNorm
    >>> f = Quadratic(A=np.array([[[2.0, 0.0], [0.0, 0.1]]]), b=np.array([[2.0, 1.0]]))
    >>> solver = LBFGS(precondition=False)
    >>> sol = solver(LocalProblem(objective=f), np.zeros((1, 2)), GradientNorm(tol=1e-10))
    >>> np.round(sol.theta, 8).tolist(), sol.status
    ([[1.0, 10.0]], ('converged',))
    """

    single: ClassVar[bool] = True

    history: int | None = None
    precondition: bool | None = None
    max_iter: int = 1000

    def __post_init__(self) -> None:
        require_kept(history=self.history)

    def initial_state(self, objective: Any) -> SolverState:
        """Return no pairs and no evaluated point for every client."""
        like, point = objective.mu, nowhere(objective)
        xp, m = array_namespace(like), self.history or usual_history(objective)

        def zeros(*shape: int) -> Array:
            return xp.zeros((objective.n_clients, *shape), dtype=like.dtype, device=device(like))

        rows, none, k = zeros(m, *objective.shape), zeros(), m if is_numpy(like) else 0
        curvatures = objective.curvatures() if self._preconditions(objective, "curvatures") else ()
        return SolverState(Pairs(rows, rows, zeros(k, k), none, none), point, none, point, curvatures)

    def __call__(
        self, problem: LocalProblem, start: Array, stop: Stop, solver_state: Any = (), round: Round | None = None
    ) -> LocalSolution:
        """Run L-BFGS from ``start`` with the pairs of earlier calls."""
        require_smooth("lbfgs", problem, constant=False)
        last = solver_state or self.initial_state(problem.objective)
        if is_traced(start):
            return self._traced(problem, start, stop, last, round)
        evaluation, cost = evaluate_start(problem, start, last)
        curvatures = last.curvatures
        if curvatures and round is not None and round.n.bit_count() == 1:
            curvatures = problem.objective.curvatures(start)  # pyright: ignore[reportAttributeAccessIssue]
            cost = cost + asarray_like(problem.objective.curvature_costs, cost)  # pyright: ignore[reportAttributeAccessIssue]
        memory, everybody = _Memory(last.pairs, curvatures), indices(range(problem.n_clients))
        state = State(start, evaluation, everybody, evaluation.value, norm(evaluation.gradient), cost, cost < 0)
        state, status = drive(
            partial(self._step, memory),
            problem,
            state,
            stop,
            round,
            max_iter=self.max_iter,
            measure=lambda _, s: (s.value, s.norm),
            together=_numbers(problem.objective) < LARGE,
        )
        return solution(
            problem,
            state.theta,
            state.evaluation,
            solver_state=SolverState(
                memory.kept(), state.theta, state.evaluation.f, state.evaluation.grad_f, curvatures
            ),
            gradients=state.gradients,
            status=status,
        )

    def _traced(
        self, problem: LocalProblem, start: Array, stop: Stop, last: SolverState, round: Round | None
    ) -> LocalSolution:
        """Do the same while a function is compiled."""
        evaluation, cost = _traced_start(problem, start, last)
        curvatures, xp = last.curvatures, array_namespace(start)
        if curvatures and round is not None:
            due, f = (round.n > 0) & ((round.n & (round.n - 1)) == 0), problem.objective
            curvatures = either(due, lambda: f.curvatures(start), lambda: curvatures)  # pyright: ignore[reportAttributeAccessIssue]
            cost = cost + xp.where(due, asarray_like(f.curvature_costs, cost), 0.0)  # pyright: ignore[reportAttributeAccessIssue]
        memory, everybody = _Memory(last.pairs, curvatures), xp.arange(problem.n_clients)
        if self._preconditions(problem.objective, "preconditioner"):
            memory.preconditioner(problem, everybody)  # is made for all steps
        state = State(start, evaluation, everybody, evaluation.value, norm(evaluation.gradient), cost, cost < 0)

        def step(problem: LocalProblem, state: _WithPairs) -> _WithPairs:
            memory.become(state.pairs)
            return _WithPairs(*self._step(memory, problem, State(*state[:-1])), memory.kept())

        state, status = drive(
            step,
            problem,
            _WithPairs(*state, last.pairs),
            stop,
            round,
            max_iter=self.max_iter,
            measure=lambda _, s: (s.value, s.norm),
        )
        kept = SolverState(state.pairs, state.theta, state.evaluation.f, state.evaluation.grad_f, curvatures)
        return solution(
            problem, state.theta, state.evaluation, solver_state=kept, gradients=state.gradients, status=status
        )

    def _step(self, memory: _Memory, problem: LocalProblem, state: State) -> State:
        direction = self._direction(problem, memory, state.client, state.evaluation.gradient)
        found = backtrack(problem, state.theta, state.evaluation, direction, state.stalled)
        memory.append(state.client, found, state.stalled)
        count = state.gradients + found.trials
        return State(found.theta, found.evaluation, state.client, found.value, found.norm, count, found.failed)

    def _preconditions(self, objective: Any, offer: str) -> bool:
        wanted = not is_tiny(objective) if self.precondition is None else self.precondition
        return wanted and offer in objective.offers

    def _direction(self, problem: LocalProblem, memory: _Memory, clients: Any, gradient: Array) -> Array:
        """Return ``-H`` times the gradient."""
        s, y, factors, scale, chosen = memory.of(clients)
        a = _products(s, gradient, chosen)
        if is_numpy(s):
            a = factors @ a
        r = gradient - _combination(a, y, chosen)
        if self._preconditions(problem.objective, "preconditioner"):
            r = memory.preconditioner(problem, clients)(r)
        else:
            if scale is None:
                scale = _scale(y[:, -1, ...], _first_curvature(problem))
            elif not scale.all():
                scale = array_namespace(scale).where(scale > 0, scale, 1.0 / _first_curvature(problem))
            r = per_client(scale, r) * r
        b = _products(y, r, chosen) - a
        return _combination(transposed(factors) @ b if is_numpy(s) else b, s, chosen) - r


def usual_options(objective: Any, fraction: float = 1.0) -> dict[str, Any]:
    """Return the parameters that are chosen for an objective, of whose clients this fraction takes part in a round."""
    return {"history": usual_history(objective, fraction), "precondition": not is_tiny(objective)}


def is_tiny(objective: Any) -> bool:
    """Tell whether the largest client of the federation has less than ``SMALL`` numbers."""
    return _numbers(objective) < SMALL


def usual_history(objective: Any, fraction: float = 1.0) -> int:
    """Return 40, 20 or 10 pairs, by the sizes of the pairs and of the data of a client; 20 where there are no rows.

    Tiny clients of which less than ``SELDOM`` take part in a round keep 5: they come back with few, and to bring all
    that is kept from memory and back takes longer than their steps.

    More pairs save gradients. Their numbers must be at most twice those of the data, of tiny ones at most as many (or
    500), because they are kept for every client, and at most an eighth of the data (or 16,000, which stay in the cache
    of a CPU), because each step reads all of them; and pairs must be at most two for each number of the model, beyond
    which they tell little that is new. The data are those of the largest client of the federation: a client alone
    chooses the same.
    """
    size, data = math.prod(objective.shape), _numbers(objective)
    if data == math.inf:
        return 20
    kept = data if is_tiny(objective) else 2 * data
    if is_tiny(objective) and fraction < SELDOM:
        return 5
    most = min(min(max(kept, 2**9), max(data // 8, 2**14)) // (2 * size), 2 * size)
    return next((history for history in (40, 20) if history <= most), 10)


def _numbers(objective: Any) -> float:
    """Return how many numbers the features of the largest client of the federation are; infinite without rows."""
    rows = getattr(objective, "rows", None)  # objectives that forward members to another one have its rows
    return math.inf if rows is None else rows.max_rows * rows.n_features


def evaluate_start(problem: LocalProblem, start: Array, last: SolverState) -> tuple[Evaluation, Array]:
    """Return the evaluation at ``start`` and the gradients that it took, client by client.

    A client that starts where it ended last time pays nothing: only the linear and proximal terms are new.
    """
    if start is last.theta:
        return problem.extend(start, last.f, last.grad_f), host_zeros(problem.n_clients)
    moved = ~equal_rows(last.theta, start)
    f, grad_f = last.f, last.grad_f
    if moved.any():
        new = host_places(moved)
        found = problem.objective.select(new).value_and_gradient(take_clients(start, new))
        f, grad_f = merge_clients((f, grad_f), found, new)
    return problem.extend(start, f, grad_f), host_zeros(problem.n_clients) + moved


def _traced_start(problem: LocalProblem, start: Array, last: SolverState) -> tuple[Evaluation, Array]:
    """Return the same while a function is compiled: nothing is computed if no client has moved."""
    moved, old = ~equal_rows(last.theta, start), (last.f, last.grad_f)
    xp = array_namespace(start)
    found = either(xp.any(moved), lambda: masked(moved, problem.objective.value_and_gradient(start), old), lambda: old)
    return problem.extend(start, *found), xp.astype(moved, last.f.dtype)


class _Memory:
    """The pairs of all clients of a call.

    They are most of what a client has. With NumPy the steps of a call write into arrays that belong to it: nothing is
    gathered for those that go on when others are finished.
    """

    def __init__(self, given: Pairs, curvatures: Any = ()) -> None:
        self._pairs, self._given, self._curvatures = given, given, curvatures
        self._inverse: tuple[Any, Any] = None, None  # the latest local problems and their preconditioner

    def preconditioner(self, problem: LocalProblem, clients: Any) -> Callable[[Array], Array]:
        """Return that of the local problems of these clients, with their curvatures where these are known."""
        if not self._curvatures:
            return problem.preconditioner
        if self._inverse[0] is not problem:
            own = self._curvatures
            own = own if len(clients) == self._pairs.s.shape[0] else take_rows(own, clients)
            made = problem.objective.preconditioner(problem.weight, own)  # pyright: ignore[reportAttributeAccessIssue]
            self._inverse = problem, made
        return self._inverse[1]

    def of(self, clients: Any) -> tuple[Array, Array, Any, Any, Any]:
        """Return the vectors of all clients, factors and scale of some, and these unless they are all.

        Without NumPy the vectors are those of these clients, and there are no factors.
        """
        s, y, factors, scale, _ = self._pairs
        everybody = len(clients) == s.shape[0]
        if not is_numpy(s):
            return *((s, y) if everybody else take_rows((s, y), clients)), None, None, None
        if everybody:
            return s, y, factors, scale, None
        return s, y, *take_rows((factors, scale), clients), clients

    def append(self, clients: Any, found: LineSearch, resting: Any) -> None:
        """Add a pair of each client that does not rest, zeros where its step has no positive curvature."""
        xp, curvature = array_namespace(found.step), found.curvature
        if not surely(found.curved):
            curvature = xp.where(asarray_like(found.curved, curvature, dtype=xp.bool), curvature, math.inf)
        root = per_client(curvature**-0.5, found.step)
        s, y = root * found.step, root * found.change
        old_s, old_y, factors, _, chosen = self.of(clients)
        if is_numpy(s):
            column = -(factors @ _products(old_s, y, chosen))[..., 0]
            self._write(clients, resting, s, y, column)
            return
        new = _shifted(old_s, old_y, s, y)
        if not surely(~resting):
            new = masked(~resting, new, (old_s, old_y))
        if len(clients) < self._pairs.s.shape[0]:
            new = merge_clients((self._pairs.s, self._pairs.y), new, clients)
        self._pairs = self._pairs._replace(s=new[0], y=new[1])

    def _write(self, clients: Any, resting: Any, s: Array, y: Array, column: Array) -> None:
        if self._pairs is self._given:
            self._pairs = Pairs(*(x.copy() for x in self._given))
        pairs = self._pairs
        if resting.any():
            go = host_places(~resting)
            s, y, column, clients = take_rows((s, y, column, clients), go)
        places: Any = pairs.place[clients].astype(int)
        pairs.place[clients] = (places + 1) % column.shape[1]
        who: Any = clients
        if len(clients) == pairs.s.shape[0] and (places == places[0]).all():  # slices are faster
            who, places = slice(None), int(places[0])
        column[range(len(clients)), places] = 1.0
        pairs.s[who, places], pairs.y[who, places], pairs.scale[who] = s, y, _scale(y)
        pairs.factors[who, places] = 0.0
        pairs.factors[who, :, places] = column

    def become(self, pairs: Pairs) -> None:
        """Go on with these pairs."""
        self._pairs = pairs

    def kept(self) -> Pairs:
        """Return the pairs for the next call."""
        return self._pairs


def _scale(y: Array, curvature: Array | float = math.inf) -> Array:
    """Return ``<s, y>/<y, y>`` of pairs with ``<s, y> = 1``, and 1/curvature where there is none, shape ``(N,)``."""
    square = client_dot(y, y)
    return 1.0 / array_namespace(y).where(square > 0, square, curvature)


def _first_curvature(problem: LocalProblem) -> Array | float:
    """Return ``(L + mu)/2``, whose inverse is the best fixed step, for tiny clients with a proximal term.

    With ``L < 9999 mu`` it is refused by no line search, where 1 often is: the weights that methods choose for clients
    that come seldom are above ``L``. Others take 1: to know ``L`` takes the time of many steps.
    """
    if problem.center is None or not is_tiny(problem.objective):
        return 1.0
    xp = array_namespace(problem.L)
    total = problem.L + xp.where(problem.mu > 0, problem.mu, 0.0)
    known = xp.isfinite(total) & (total > 0)
    if is_traced(problem.weight):  # it may be 0
        known = known & (problem.weight > 0)
    return xp.where(known, 0.5 * total, 1.0)


def _shifted(old_s: Array, old_y: Array, s: Array, y: Array) -> tuple[Array, Array]:
    """Return new arrays with a pair instead of the oldest one, ``S <- S (I - y s')`` and ``s`` below."""
    xp, kept = array_namespace(s), old_s[:, 1:, ...]
    new = -_products(kept, y, None)[(...,) + (None,) * (s.ndim - 2)] * s[:, None, ...]
    new += kept
    both = xp.concat([new, s[:, None, ...], old_y[:, 1:, ...], y[:, None, ...]], axis=1)  # one kernel
    return both[:, : old_s.shape[1], ...], both[:, old_s.shape[1] :, ...]


def _products(rows: Array, v: Array, clients: Any) -> Array:
    """Return the inner products of the vectors ``(N, m, *shape)`` of these clients with ``v_j``, ``(n, m, 1)``."""
    flat = reshape(rows, (*rows.shape[:2], -1))
    v = reshape(v, (v.shape[0], -1, 1))
    return flat @ v if clients is None else _of_some(flat, v, clients, lambda rows, v: rows @ v)


def _combination(factors: Array, rows: Array, clients: Any) -> Array:
    """Return the sums of the vectors ``(N, m, *shape)`` of these clients times their factors ``(n, m, 1)``."""
    flat = reshape(rows, (*rows.shape[:2], -1))
    v = reshape(factors, (factors.shape[0], 1, -1))
    found = v @ flat if clients is None else _of_some(flat, v, clients, lambda rows, v: v @ rows)
    return reshape(found, (found.shape[0], *rows.shape[2:]))


def _of_some(rows: Array, v: Array, clients: Any, product: Callable[[Array, Array], Array]) -> Array:
    """Return products with the rows of some clients: large ones are not copied, and bits are those of all together."""
    if math.prod(rows.shape[1:]) < LARGE:
        return product(take_rows(rows, clients), v)
    parts = [product(rows[j : j + 1, ...], v[i : i + 1, ...]) for i, j in enumerate(clients.tolist())]
    return array_namespace(v).concat(parts, axis=0)
