"""Formal coordinates: clients of a class of functions, which answer with new vectors instead of numbers.

A method runs unchanged. Its model is the row of coefficients of a vector in a formal basis; what a client answers to a
question, a local solution or a gradient, is a new vector of the basis, and what the method makes of it is linear
algebra on rows. Questions and answers are kept in a ledger, from which semidefinite programs are made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from dualopt.arrays._checks import require
from dualopt.arrays.tree import leaves
from dualopt.engine.rounds import State
from dualopt.lab.proofs._rational import Rational, Rationals
from dualopt.lab.proofs._tracked import SENTENCE, Measured, Vectors
from dualopt.objectives import LocalProblem, Objective
from dualopt.objectives.local_problem import per_client
from dualopt.regularisers import Zero
from dualopt.solvers._loop import LocalSolution, evaluated
from dualopt.solvers.stopping import Gap, GradientNorm, GradientReduction, RelativeEnergy, Steps

__all__ = [
    "Answer",
    "AnyConvex",
    "AnySolver",
    "Ledger",
    "World",
    "demanded",
    "is_vector",
    "require_vectors",
    "vectors",
    "with_room",
]

ROOM = (24, 64, 256, 1024, 4096)
DIGITS = 12  # to which coefficients of equal questions agree, where they are rounded


class FullError(ValueError):
    """There are more vectors than a ledger has room for."""


def with_room(work: Callable[[int], Any], most: int = ROOM[-1]) -> Any:
    """Return ``work(dimension)`` for a number of formal vectors that suffices.

    Raises
    ------
    FullError
        If ``most`` of them, thousands when not given, do not.
    """
    for dimension in ROOM:
        try:
            return work(dimension)
        except FullError:
            if dimension >= most:
                raise
    raise AssertionError


class Answer(NamedTuple):
    """A point of the graph of a client's gradient."""

    client: int
    number: int  # which question of the client; 0 is that at the minimiser
    x: np.ndarray
    gradient: np.ndarray


class Bound(NamedTuple):
    """What is known of a vector: ``|vector|^2 <= part |of|^2 + most``."""

    vector: np.ndarray
    of: np.ndarray
    part: Any
    most: Any


class Accuracy(NamedTuple):
    """How a client solved a local problem: ``|residual|^2 <= factor^2 |first|^2 + most``.

    Residuals are those of its answer and of its start.
    """

    client: int
    residual: np.ndarray
    first: np.ndarray
    factor: Any
    most: Any = 0.0

    @property
    def bound(self) -> Bound:
        """The inequality."""
        return Bound(self.residual, self.first, self.factor * self.factor, self.most)


class Error(NamedTuple):
    """What arrives, beside a vector that a client sent through a compressor: ``|vector|^2 <= part |sent|^2``."""

    client: int
    time: int  # when it was sent
    place: int  # the coordinate of the formal vector that the error is
    vector: np.ndarray
    sent: np.ndarray
    part: Any

    @property
    def bound(self) -> Bound:
        """The inequality."""
        return Bound(self.vector, self.sent, self.part, 0.0)


class Ledger:
    """The formal basis, and all questions and answers.

    Where there is a regulariser, it is asked like one more client, with the number N.

    Parameters
    ----------
    n_clients : int
        Number N of clients.
    dimension : int
        How many vectors the basis has room for.
    exact : bool, default False
        Whether coefficients are rational numbers instead of floating-point ones.
    tracked : bool, default False
        Whether vectors refuse what is not linear algebra.
    """

    def __init__(self, n_clients: int, dimension: int, *, exact: bool = False, tracked: bool = False) -> None:
        self.n_clients, self.dimension, self.exact, self.tracked = n_clients, dimension, exact, tracked
        self.shared: list[int] = []  # coordinates of single vectors
        self.families: list[np.ndarray] = []  # coordinates of families of vectors, one for each client
        self.answers: list[Answer] = []  # new ones
        self.accuracies: list[Accuracy] = []  # of answers that solve no problem exactly
        self.errors: list[Error] = []  # of compressed uploads
        self.error_families: list[int] = []  # the places of their families
        self.latest: dict[int, Answer] = {}  # to the latest question of each client, new or not
        self._known: dict[Any, Answer] = {}
        self._numbers = [0] * (n_clients + 1)
        self._kinds: dict[Any, np.ndarray] = {}  # the families of answers
        self._compressed: dict[Any, np.ndarray] = {}  # what arrives beside a vector that was compressed
        self._after: dict[int, frozenset[int]] = {}  # places of the errors on which an answer, by its place, depends
        self.used = 0

    def zeros(self, *shape: int) -> np.ndarray:
        """Return zero vectors."""
        if self.tracked:
            return np.zeros((*shape, self.dimension)).view(Vectors)
        if not self.exact:
            return np.zeros((*shape, self.dimension))
        return np.full((*shape, self.dimension), Rational(0), dtype=object).view(Rationals)

    def _rows(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Take ``n`` new vectors of the basis, and return their coordinates and themselves."""
        ids = np.arange(self.used, self.used + n)
        self.used += n
        if self.used > self.dimension:
            raise FullError(f"rounds must be fewer, or clients: their answers are more than {self.dimension} vectors.")
        rows = self.zeros(n)
        rows[np.arange(n), ids] = Rational(1) if self.exact else 1.0
        return ids, rows

    def vector(self) -> np.ndarray:
        """Return a new vector."""
        ids, rows = self._rows(1)
        self.shared.append(int(ids[0]))
        return rows[0]

    def family(self) -> np.ndarray:
        """Return a new vector for each client."""
        ids, rows = self._rows(self.n_clients)
        self.families.append(ids)
        return rows

    def key(self, x: np.ndarray) -> tuple[Any, ...]:
        """Return what equal vectors have in common."""
        return tuple((x if self.exact else np.round(np.asarray(x), DIGITS) + 0.0).tolist())

    def set_gradient(self, client: int, x: np.ndarray, gradient: np.ndarray, number: int = 0) -> Answer:
        """Note a gradient of a client."""
        answer = Answer(client, number, x, gradient)
        self._known[client, self.key(x)] = answer
        if number:
            self.answers.append(answer)
        return answer

    def gradient(self, client: int, x: np.ndarray) -> np.ndarray:
        """Return the gradient of a client at ``x``, a new vector if it was not asked there before."""
        found = self._known.get((client, self.key(x)))
        if found is None:
            number, new = self._new(client, x)
            found = self.set_gradient(client, x, new, number)
        self.latest[client] = found
        return found.gradient

    def minimiser(self, client: int, linear: np.ndarray, weight: Any) -> np.ndarray:
        r"""Return where the gradient of a client is :math:`-b - wx`, b being ``linear``: a new vector.

        The same question has the same answer, and a point that is known to have this gradient is the only one, because
        a local problem is strongly convex.
        """
        question = client, self.key(linear), weight
        if question not in self._known:
            residual = (
                a for a in self.known(client) if self.key(a.gradient + linear + weight * a.x) == self.key(self.zeros())
            )
            found = next(residual, None)
            if found is None:
                number, x = self._new(client, linear)
                found = self.set_gradient(client, x, -linear - weight * x, number)
            self._known[question] = found
        self.latest[client] = self._known[question]
        return self._known[question].x

    def nearly(
        self, client: int, linear: np.ndarray, weight: Any, start: np.ndarray, factor: Any, most: Any = 0.0
    ) -> np.ndarray:
        r"""Return any point where :math:`|\nabla f + b + wx|^2` is small enough.

        It is at most ``factor`` squared times what it is at ``start``, and ``most`` in addition. Point and gradient are
        two new vectors, but where it must be zero because it is at ``start``, that is the answer. The same question has
        the same answer.
        """
        question = client, self.key(linear), weight, self.key(start), factor, most
        if question not in self._known:
            first = self.gradient(client, start) + linear + weight * start
            if most == 0 and self.key(first) == self.key(self.zeros()):
                self._known[question] = self.at(client, start)
            else:
                number, x = self._new(client, linear, start)
                gradient = self._family((number, "gradient"))[client]
                self._depend(gradient, linear, start)
                self._known[question] = self.set_gradient(client, x, gradient, number)
                self.accuracies.append(Accuracy(client, gradient + linear + weight * x, first, factor, most))
        self.latest[client] = self._known[question]
        return self._known[question].x

    def error(self, client: int, x: np.ndarray, part: Any, time: int) -> np.ndarray:
        """Return what a compressor adds to ``x``: a new vector, whose square is at most ``part`` that of ``x``.

        Zero arrives as zero, and at one time the same vector has the same error.

        Raises
        ------
        ValueError
            If ``x`` depends on an error of the client at the same time, which has the same draws of chance.
        """
        if self.key(x) == self.key(self.zeros()):
            return self.zeros()
        question = client, time, self.key(x)
        if question not in self._compressed:
            now = {e.place for e in self.errors if (e.client, e.time) == (client, time)}
            if now & self.on_which(x):
                raise ValueError("algorithm must not compress what depends on what else arrived in the same round.")
            number = sum(e.client == client for e in self.errors)
            new = self._family(("error", number))[client]
            (place,) = np.flatnonzero(new).tolist()
            self.errors.append(Error(client, time, place, new, x, part))
            self._after[place] = frozenset({place})
            self._compressed[question] = new
        return self._compressed[question]

    def bounds(self, client: int) -> list[Bound]:
        """Return what is known of vectors of a client, beside what its functions are."""
        return [own.bound for own in (*self.accuracies, *self.errors) if own.client == client]

    def on_which(self, *vectors: np.ndarray) -> frozenset[int]:
        """Return the places of the errors on which vectors depend."""
        if not self.errors:
            return frozenset()
        places = (i for v in vectors for i in np.flatnonzero(v).tolist())
        return frozenset().union(*(self._after.get(i, frozenset()) for i in places))

    def _depend(self, new: np.ndarray, *question: np.ndarray) -> None:
        """Note on which errors an answer depends."""
        found = self.on_which(*question)
        if found:
            self._after[int(np.flatnonzero(new)[0])] = found

    def note(self, client: int, x: np.ndarray, gradient: np.ndarray) -> None:
        """Note a gradient of a client that was asked before anything else, as its next answer."""
        self._numbers[client] += 1
        self.set_gradient(client, x, gradient, self._numbers[client])

    def known(self, client: int) -> list[Answer]:
        """Return all that is known of the gradients of a client, that at the minimiser included."""
        return [a for a in self._known.values() if a.client == client]

    def at(self, client: int, x: np.ndarray) -> Answer:
        """Return the answer of a client at ``x``."""
        return self._known[client, self.key(x)]

    def _new(self, client: int, *question: np.ndarray) -> tuple[int, np.ndarray]:
        """Return the number of a new question, and the vector of its answer."""
        number = self._numbers[client] = self._numbers[client] + 1
        new = self.vector() if client == self.n_clients else self._family(number)[client]
        self._depend(new, *question)
        return number, new

    def _family(self, kind: Any) -> np.ndarray:
        """Return the family of answers, or of errors, of a kind."""
        if kind not in self._kinds:
            self._kinds[kind] = self.family()
            if isinstance(kind, tuple) and kind[0] == "error":
                self.error_families.append(len(self.families) - 1)
        return self._kinds[kind]

    @property
    def n_kinds(self) -> int:
        """The largest number of questions to one client."""
        return max(self._numbers)


@dataclass(frozen=True)
class AnyConvex:
    """All convex functions with this strong convexity, which answer with new vectors."""

    mu: Any
    ledger: Ledger | None = field(default=None, compare=False, repr=False)

    def prox(self, theta: np.ndarray, step: Any) -> np.ndarray:
        """Return the proximal point: where the subgradient is (theta - x)/step."""
        assert self.ledger is not None
        if step == 0:
            return theta
        return self.ledger.minimiser(self.ledger.n_clients, -theta / step, 1 / step)

    def value(self, theta: np.ndarray) -> Any:
        """Return a number that means nothing; where vectors are tracked, whoever uses it is found out."""
        assert self.ledger is not None
        return np.zeros(()).view(Measured if self.ledger.tracked else np.ndarray)


class World(Objective):
    r"""All functions :math:`f_j` that are ``mu_j``-strongly convex and ``L_j``-smooth, in formal coordinates.

    Parameters
    ----------
    ledger : Ledger
        Where questions and answers are kept.
    mu, L : sequence of float
        The constants of all clients; L may be infinite.
    weights : sequence of float, optional
        Their weights in the mean.
    ids : sequence of int, optional
        Which clients these are; all when not given.
    convexity : float, optional
        Strong convexity of a regulariser, which may be any such function; there is none when not given.
    """

    def __init__(
        self,
        ledger: Ledger,
        mu: Sequence[float],
        L: Sequence[float],
        weights: Sequence[float] | None = None,
        ids: Iterable[int] | None = None,
        convexity: float | None = None,
    ) -> None:
        self.ledger, self.constants, self._weights = ledger, (tuple(mu), tuple(L)), weights
        self.ids = tuple(range(ledger.n_clients) if ids is None else ids)
        self.weights = None if weights is None else tuple(weights[j] for j in self.ids)
        self.convexity = convexity
        self.regulariser: Any = Zero() if convexity is None else AnyConvex(convexity, ledger)

    @property
    def n_clients(self) -> int:
        """Number of clients."""
        return len(self.ids)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of a vector: its coefficients."""
        return (self.ledger.dimension,)

    @cached_property
    def mu(self) -> np.ndarray:
        """Strong convexity constants."""
        return np.array([float(self.constants[0][j]) for j in self.ids])

    @cached_property
    def L(self) -> np.ndarray:
        """Smoothness constants."""
        return np.array([float(self.constants[1][j]) for j in self.ids])

    @property
    def offers(self) -> frozenset[str]:
        """Local problems are solved exactly."""
        return frozenset({"exact"})

    def zeros(self) -> np.ndarray:
        """Return the zero vector."""
        return self.ledger.zeros()

    def value(self, theta: np.ndarray) -> np.ndarray:
        """Return numbers that mean nothing; where vectors are tracked, whoever uses them is found out."""
        if self.ledger.exact:
            return np.full(self.n_clients, Rational(0), dtype=object).view(Rationals)
        return np.zeros(self.n_clients).view(Measured if self.ledger.tracked else np.ndarray)

    def gradient(self, theta: np.ndarray) -> np.ndarray:
        """Return the gradients at ``theta``."""
        points = np.broadcast_to(theta, (self.n_clients, *self.shape))
        return np.stack([self.ledger.gradient(j, x) for j, x in zip(self.ids, points, strict=True)])

    def exact_minimiser(self, problem: LocalProblem) -> np.ndarray:
        """Return the solutions of local problems."""
        asked = zip(self.ids, *self._terms(problem), strict=True)
        return np.stack([self.ledger.minimiser(j, b, w) for j, b, w in asked])

    def near_minimiser(
        self, problem: LocalProblem, start: np.ndarray, factor: Any, most: Sequence[Any] | None = None
    ) -> np.ndarray:
        """Return points where the squared gradients of local problems are as small as :meth:`Ledger.nearly` has it."""
        asked = zip(self.ids, *self._terms(problem), start, most or [0.0] * len(self.ids), strict=True)
        return np.stack([self.ledger.nearly(j, b, w, x, factor, m) for j, b, w, x, m in asked])

    def _terms(self, problem: LocalProblem) -> tuple[np.ndarray, list[Any]]:
        """Return the linear terms of local problems, and their weights."""
        linear = self.ledger.zeros(self.n_clients) if problem.linear is None else problem.linear
        weight = np.broadcast_to(np.asarray(problem.weight), (self.n_clients,))
        if problem.center is not None:
            linear = linear - per_client(weight, linear) * problem.center
        return np.broadcast_to(linear, (self.n_clients, *self.shape)), weight.tolist()

    def set_minimiser(self, theta: np.ndarray) -> np.ndarray:
        """Let the clients know the minimiser of their mean and the regulariser, and return their gradients there.

        With their weights, and the subgradient of the regulariser, these add up to zero: that of the last client is
        made of the others.
        """
        gradients = self.ledger.family()
        *others, last = self._weights or (1,) * self.n_clients
        rest = [w / last * g if w != last else g for w, g in zip(others, gradients, strict=False)]
        if self.convexity is not None:
            subgradient = self.ledger.vector()
            self.ledger.set_gradient(self.ledger.n_clients, theta, subgradient)
            rest.append((sum(others) + last) / last * subgradient)
        gradients[-1] = -sum(rest, self.zeros())
        for j, gradient in enumerate(gradients):
            self.ledger.set_gradient(j, theta, gradient)
        return gradients

    def note(self, x: np.ndarray, gradients: np.ndarray) -> None:
        """Note where the clients were asked before anything else, as their next answers."""
        for j in self.ids:
            self.ledger.note(j, x[j], gradients[j])

    def select(self, ids: Any) -> Self:
        """Return some of the clients."""
        return type(self)(self.ledger, *self.constants, self._weights, [self.ids[i] for i in ids], self.convexity)


@dataclass(frozen=True)
class AnySolver:
    """A local solver that returns any point at which a rule lets it stop: see :func:`demanded`."""

    def initial_state(self, objective: Any) -> Any:
        """Return ``()``."""
        return ()

    def __call__(
        self, problem: LocalProblem, start: np.ndarray, stop: Any, solver_state: Any = (), round: Any = None
    ) -> LocalSolution:
        """Return such points."""
        world: Any = problem.objective
        factor, most = demanded(stop, round, problem.mu.tolist())
        return evaluated(problem, world.near_minimiser(problem, start, factor, most))


def demanded(stop: Any, round: Any, mu: Sequence[float]) -> tuple[Any, list[Any]]:
    """Return what a rule demands of the squared gradients of local problems with convexity ``mu``.

    The factor beside the gradient at the start, and for each client what is allowed in addition to its square.

    Raises
    ------
    ValueError
        If that is nothing.

    Examples
    --------
    >>> from dualopt.methods.participation import first_round
    >>> demanded(Gap(schedule=lambda round: 0.5), first_round(2), [1.0, 3.0])
    (0.0, [1.0, 3.0])
    """
    if isinstance(stop, GradientReduction):
        return (stop.first if round.n == 0 else stop.factor), [0.0 for _ in mu]
    if isinstance(stop, GradientNorm):
        return 0.0, [stop.tol**2 for _ in mu]
    if isinstance(stop, Gap) and stop.schedule is not None:
        require(min(mu) > 0, "stop must be another rule than 'gap' where local problems are not strongly convex")
        return 0.0, [2.0 * m * stop.schedule(round) for m in mu]
    reason = UNSTATED.get(type(stop), "is not known to bound the gradient at an answer")
    raise ValueError(f"stop must be the rule 'reduction', 'gradient' or 'gap' for inexact solutions: {stop} {reason}.")


UNSTATED: dict[type, str] = {
    Steps: "says how long a solver works, not how well; give the solver itself",
    RelativeEnergy: "compares two steps of a solver, and allows any answer after short ones",
}
"""Why rules are no inequality between squared norms of vectors."""


def is_vector(x: Any, f: World) -> bool:
    """Tell whether a leaf of a state holds vectors: one, or one for each client."""
    return np.shape(x) in (f.shape, (f.ledger.n_clients, *f.shape))


def vectors(state: State, f: World) -> list[np.ndarray]:
    """Return the leaves of a state that hold vectors."""
    return [x for x in leaves(state) if is_vector(x, f)]


def require_vectors(found: Iterable[Any]) -> None:
    """Refuse tracked vectors that have become something else: the method is not linear algebra on vectors.

    Inner products, norms, values of functions and proximal maps of regularisers would give formal coordinates without a
    meaning.

    Raises
    ------
    ValueError
        If they have.
    """
    if not all(isinstance(x, Vectors) or not np.any(x) for x in found):
        raise ValueError(SENTENCE)
