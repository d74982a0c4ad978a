"""The exact worst case of a method that is linear algebra on vectors, after some rounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product
from operator import add
from typing import Any

import numpy as np

from dualopt.arrays._checks import require, require_at_least
from dualopt.arrays.tree import tree_map
from dualopt.arrays.xp import Array
from dualopt.engine.rounds import State, initial_state
from dualopt.lab.proofs._compressors import Unbiased
from dualopt.lab.proofs._formal import World, is_vector, require_vectors, with_room
from dualopt.lab.proofs._forms import Form, Space, points_of
from dualopt.lab.proofs._program import columns, program, solved, values
from dualopt.lab.proofs._promised import claimed_bound
from dualopt.lab.proofs._scaling import LEAST, Heights, coordinates, in_coordinates, in_units, sizes_of
from dualopt.lab.proofs._setting import Setting
from dualopt.methods import Algorithm

__all__ = ["WorstCase", "worst_case"]

GAP = 1e-4
"""Largest difference of primal and dual value that is accepted, relative to the value."""
LARGEST = 800
"""Most inequalities of a program."""
TOLERANCES = ((1e-9, 1e-8), (1e-7, 1e-6))
"""Of the solver: in all coordinates the tight ones come first."""
NEAR = 1e2
"""How far the value may be from the size of the error in the solver's coordinates."""
MEASURES = ("distance", "value", "dual")
INSIDE = 1e-9
"""How far a point may be from a convex hull that it lies in: coefficients are rounded."""
Point = Callable[[Sequence[State]], Array]


@dataclass(frozen=True)
class WorstCase:
    """The largest mean error after some rounds over a class of problems.

    Attributes
    ----------
    value : float
        No problem does worse: the value of the dual program, to the tolerance of its solver.
    example : float or None
        Some problem does as badly: the value of the program itself. None where clients are asked about what has arrived
        through a compressor of which means are known: of these answers too the program knows means alone.
    multipliers : array
        Those of the inequalities between the points that were met, and of what is known of local solutions and of
        compressed uploads; weighted with them they add up to a proof.
    inequalities : int
        How many there are.
    sizes : tuple of int
        Sizes of the blocks of the Gram matrix.
    claimed : float or None
        The least bound that a theorem of the method states for the distance of its model and such starts.
    """

    value: float
    example: float | None
    multipliers: np.ndarray
    inequalities: int
    sizes: tuple[int, ...]
    claimed: float | None = None


def worst_case(
    algorithm: Algorithm | str,
    *,
    mu: float | Sequence[float],
    L: float | Sequence[float],
    clients: int | None = None,
    rounds: int = 1,
    participation: Any = None,
    measure: str = "distance",
    start: tuple[float, float] = (1.0, 0.0),
    weights: Sequence[float] | None = None,
    point: Point | None = None,
    regulariser: float | None = None,
    inexact: bool = False,
    compressor: Any = None,
    dimension: int | None = None,
    literal: bool = False,
) -> WorstCase:
    r"""Return the largest mean error over all federations of such clients, in any dimension.

    The code of the method runs in formal coordinates: a model is a row of coefficients, an answer of a client a new
    vector. The class of functions is described exactly by inequalities between its points, gradients and values
    (Taylor, Hendrickx and Glineur 2017), so that the worst case is a semidefinite program in the Gram matrix. Clients
    with equal constants can be exchanged, which leaves blocks that do not grow with their number.

    Parameters
    ----------
    algorithm : Algorithm or str
        The method; parameters that are left open are suggested for the class of problems. Local problems are solved
        exactly unless it has a solver of its own, such as ``Gradient`` with a number of steps.
    mu, L : float or sequence of float
        Constants of the clients: one number for all, or one for each. ``L`` may be infinite.
    clients : int, optional
        Number N; the length of a sequence, or 2, when not given.
    rounds : int, default 1
        Number n.
    participation : Participation or str, optional
        Who takes part; the error is the mean over everything that may happen, all of which is played.
    measure : {"distance", "value", "dual"}
        :math:`|\theta^n - \theta^*|^2`; :math:`E(\theta^n) - E^*`; or how far the dual energy is from its optimum,
        :math:`E_d(\xi) - E_d^*`, :math:`E_d(\xi) = \sum_j\omega_jg_j^*(\xi_j) + |\sum_j\omega_j\xi_j|^2/(2\bar\mu)`,
        with :math:`g_j = f_j - \frac{\mu_j}2|\cdot|^2`, shares :math:`\omega_j` of the weights,
        :math:`\bar\mu = \sum_j\omega_j\mu_j > 0`, at the :math:`\xi_j = \nabla g_j(\theta_j)` of the last answers
        :math:`\theta_j` of all clients. The sum of the last two is a duality gap. The energy
        is infinite where a client with infinite ``L`` may be asked its value outside of the convex hull of the
        minimiser and of the points that it has been asked at: nothing bounds how steep it is there.
    start : pair of float
        (a, b) in :math:`a|\theta^0 - \theta^*|^2 + b\sum_j|\nabla f_j(\theta^*)|^2 \le 1`.
    weights : sequence of float, optional
        Weights of the clients in the mean.
    point : callable, optional
        Where the error is measured: a linear function of the states before the first round and after each one, such as
        the mean of their models; the last model when not given.
    regulariser : float, optional
        The strong convexity, 0 or more, of a convex function g at the server, which may be any; :math:`\theta^*` is
        the minimiser of E + g, and "value" includes g. There is none when not given.
    inexact : bool, default False
        Local problems are solved just as well as the stopping rule of the method demands: answers are any points whose
        gradients are small enough, beside those at the start (:class:`GradientReduction`) or in the units of the
        problem, for starts of size one (:class:`GradientNorm`, :class:`Gap`).
    compressor : str or Compressor, optional
        What uploads go through, of which what it says of itself is used and nothing else; or all with the same
        :math:`\omega` or :math:`\delta`: "unbiased=1", :math:`\mathbb E\,C(v) = v` and
        :math:`\mathbb E|C(v) - v|^2 \le \omega|v|^2`, draws of clients being independent, and "contractive=0.9",
        :math:`|C(v) - v|^2 \le (1 - \delta)|v|^2`. The error is the mean.
    dimension : int, optional
        Number of coordinates of the model, where what is known of the compressor depends on it.
    literal : bool, default False
        Write down all clients, in place of classes of those that can be exchanged.

    Returns
    -------
    WorstCase

    Raises
    ------
    ValueError
        If an argument is out of range, or the method is not linear algebra on vectors: it uses norms, inner products or
        values of functions.
    RuntimeError
        If the solver of the semidefinite program certifies no value.
    ImportError
        Without CVXPY.

    Examples
    --------
    Gradient descent with step 2/(mu + L) contracts by (L - mu)/(L + mu), and no better:

    >>> found = worst_case("gradient-descent: step=0.5", mu=1, L=3, clients=4, rounds=2)
    >>> round(found.value, 5), round(found.example, 5)
    (0.0625, 0.0625)

    The proximal point method, which one client with FedProx is, with weight w on any convex function:
    :math:`E(\theta^n) - E^* \le w|\theta^0 - \theta^*|^2/(4n)`, and no better:

    >>> any_convex = {"mu": 0, "L": float("inf"), "clients": 1, "measure": "value"}
    >>> round(worst_case("fedprox: mu_prox=2.0", rounds=5, **any_convex).value, 5)
    0.1
    """
    require_at_least(1, rounds=rounds)
    require(measure in MEASURES, f"measure must be one of {', '.join(MEASURES)}", measure)
    require(min(start) >= 0 and max(start) > 0, "start must be two numbers of at least 0, not both 0", start)
    setting = Setting.of(
        *(algorithm, mu, L, clients, participation, weights, regulariser),
        **{"inexact": inexact, "compressor": compressor, "dimension": dimension, "literal": literal},
    )
    if setting.branched and rounds > 1 and not literal:  # a client's questions depend on the rounds that it was in
        setting = replace(setting, literal=True)
    if measure == "dual":
        require(not setting.branched, "measure must be distance or value where chance has a part", measure)
        require(max(setting.mu) > 0, "mu must be positive for a client, for the dual energy", mu)
        plain = not inexact and regulariser is None and setting.compressor is None
        require(
            plain, "measure must be distance or value with a regulariser or inexact solutions or a compressor", measure
        )
    n_ends = len(setting.events()) ** rounds if setting.branched else 1
    require(n_ends <= 4096, "rounds must be fewer: all that may happen in them is played, at most 4096 ways", n_ends)
    where = _last_model if point is None else point
    found = with_room(lambda dimension: _solved(setting, rounds, measure, start, where, dimension))
    of_model = measure == "distance" and point is None and not inexact
    return replace(found, claimed=claimed_bound(setting, rounds, start) if of_model else None)


def _last_model(states: Sequence[State]) -> Array:
    return states[-1].server.theta


def _require_point(setting: Setting, where: Point, rounds: int, dimension: int) -> None:
    """Refuse a point that is no vector, or no linear function of the states."""
    f = setting.world(dimension, tracked=True)
    any_vector = f.ledger.vector()
    begin = initial_state(setting.on(f), f, f.zeros())
    begin = tree_map(lambda x: x + any_vector if is_vector(x, f) else x, begin)
    x = where([begin] * (rounds + 1))
    require(np.shape(x) == f.shape, "point must be one vector, of the shape of the model", np.shape(x))
    require_vectors([x])


def _solved(
    setting: Setting, rounds: int, measure: str, start: tuple[float, float], where: Point, dimension: int
) -> WorstCase:
    """Return the worst case, with room for so many formal vectors."""
    setting.require_linear(rounds, dimension=dimension)
    _require_point(setting, where, rounds, dimension)
    (a, b), f = start, setting.world(dimension)
    star = f.ledger.vector()
    gradients = f.set_minimiser(star)
    ends = [(p, where(states)) for p, states in setting.play(f, rounds)]
    if measure == "value":
        if not all(_bounded(f, x, setting) for _, x in ends):
            return WorstCase(math.inf, math.inf, np.zeros(0), 0, ())
        for _, theta in ends:
            f.gradient(theta)
            for own in setting.others:
                f.ledger.gradient(own.clients[0], theta)
    space = Space(f.ledger, setting.classes, setting.others)
    begin = reduce(add, (b * space.square(g) for g in gradients), a * space.square(star))
    if measure == "distance":
        error = reduce(add, (p * space.square(theta - star) for p, theta in ends))
    elif measure == "dual":
        error = _dual_energy(setting, space, f)
    else:
        error = reduce(add, (p * _energy(setting, space, f, theta) for p, theta in ends))
    points = points_of(f.ledger, space.functions, star)
    count = sum(len(own) * (len(own) - 1) for own in points)
    require(count <= LARGEST, f"rounds must be fewer, or local steps: at most {LARGEST} inequalities are solved", count)
    heights, zeros, means = Heights(space, points), list[Form](), False
    if isinstance(setting.compressor, Unbiased):
        zeros = [heights.of(form) for form in space.uncorrelated(independent=setting.compressor.independent)]
        means = bool(f.ledger.on_which(*(x for a in f.ledger.answers for x in (a.x, a.gradient))))
    forms = [heights.of(form) for form in (error, begin, *space.inequalities(points))]
    said, unbounded = "", False
    for tolerances, parts in product(TOLERANCES, (*LEAST, None)):
        maps = [np.eye(n) for n in space.sizes] if parts is None else coordinates(setting, f, space, start, parts)
        units = heights.units(maps, len(error.values))
        own, own_zeros = ([in_units(in_coordinates(form, maps), units) for form in given] for given in (forms, zeros))
        try:
            found = _certified(tolerances, *own, zeros=own_zeros)
        except RuntimeError as uncertain:
            said = str(uncertain)
            continue
        if unbounded or math.isfinite(found.value):
            return replace(found, example=None) if means else found
        unbounded, said = True, "the solver certifies no worst case: it calls one infinite in some coordinates alone."
    raise RuntimeError(said)


def _certified(
    tolerances: Sequence[float], error: Form, begin: Form, *slacks: Form, zeros: Sequence[Form] = ()
) -> WorstCase:
    """Solve the program, anew if the units of the error were not those of the value."""
    typical = max(float(np.abs(B).max(initial=0.0)) for B in error.blocks)
    rest: Any = (tolerances, zeros) if zeros else (tolerances,)
    found: Any = _largest(error, begin, slacks, typical or 1.0, *rest)
    if not 0 < found.value < math.inf:
        return found
    if not typical / NEAR < found.value < NEAR * typical:
        found = _largest(error, begin, slacks, found.value, *rest)
    if abs(found.value - found.example) > GAP * abs(found.value):
        low, high = sorted((found.value, found.example))
        raise RuntimeError(f"the solver certifies no worst case: it lies between {low:.6g} and {high:.6g}.")
    return found


def _bounded(f: World, x: Array, setting: Setting) -> bool:
    r"""Tell whether the points at which clients were asked bound their values at ``x``.

    With infinite L they do on the convex hull alone: elsewhere :math:`M\,\mathrm{dist}^2` to it, with any M, may be
    added to :math:`f_j`, which changes no answer. Vectors of a ledger are independent in some federation, so that what
    is no convex combination in coordinates is none there.
    """
    from scipy.optimize import nnls  # CVXPY needs SciPy too

    for j in (j for own in (*setting.classes, *setting.others) if math.isinf(own.L) for j in own.clients):
        hull = np.stack([a.x for a in f.ledger.known(j)], axis=1)
        A = np.concatenate([hull, np.ones((1, hull.shape[1]))])
        if nnls(A, np.append(x, 1.0))[1] > INSIDE:
            return False
    return True


def _energy(setting: Setting, space: Space, f: Any, theta: np.ndarray) -> Form:
    """Return ``E(theta) - E*``, with the regulariser."""
    total = sum(f.weights) if f.weights else f.n_clients
    found = space.no_values
    for c, own in enumerate(space.functions):
        share = len(own) * own.weight / total
        found = found + share * space.value(c, f.ledger.at(own.clients[0], theta).number)
    return Form(space.zero.blocks, found)


def _dual_energy(setting: Setting, space: Space, f: Any) -> Form:
    """Return ``E_d(xi) - E_d*`` at the last answers, with conjugates by Fenchel's equality."""
    total = sum(f.weights) if f.weights else f.n_clients
    found, mean, convexity = space.zero, f.zeros(), 0.0
    for c, own in enumerate(setting.classes):
        for j in own.clients:
            share, answer = own.weight / total, f.ledger.latest[j]
            x, xi = answer.x, answer.gradient - own.mu * answer.x
            value = Form(space.zero.blocks, space.value(c, answer.number))  # above that at the minimiser
            found = found + share * (space.product(xi, x) - value + (own.mu / 2) * space.square(x))
            mean, convexity = mean + share * xi, convexity + share * own.mu
    return found + (1 / (2 * convexity)) * space.square(mean)


def _largest(
    error: Form,
    begin: Form,
    slacks: Sequence[Form],
    unit: float,
    tolerances: Sequence[float],
    zeros: Sequence[Form] = (),
) -> WorstCase:
    """Solve the program, with an error in such units that the solver's tolerances make sense."""
    cvxpy = program()
    grams = [cvxpy.Variable((n, n), PSD=True) if n else None for n in map(len, error.blocks)]
    heights = cvxpy.Variable(len(error.values))
    sizes, most = sizes_of(slacks), np.array([float(form.constant) for form in slacks])

    def of(forms: Sequence[Form]) -> Any:
        total = values(forms) @ heights
        for k, G in enumerate(grams):
            if G is not None:
                total = total + columns(forms, k) @ cvxpy.vec(G, order="C")
        return total

    scaled = of([(1.0 / size) * form for size, form in zip(sizes, slacks, strict=True)])
    met = scaled + most / sizes
    demands = [of([begin]) <= 1.0, met >= 0.0]
    if zeros:
        equal = of([(1.0 / size) * form for size, form in zip(sizes_of(zeros), zeros, strict=True)])
        demands.append(equal == 0.0)
    problem = cvxpy.Problem(cvxpy.Maximize(of([(1.0 / unit) * error])[0]), demands)
    status = solved(problem, tolerances)
    if status in ("unbounded", "unbounded_inaccurate"):
        return WorstCase(math.inf, math.inf, np.zeros(0), len(slacks), tuple(map(len, error.blocks)))
    if status != "optimal":
        raise RuntimeError(f"the solver of the semidefinite program certifies no worst case: {status}.")
    size, primal = unit * float(demands[0].dual_value[0]), unit * float(problem.value)
    multipliers = unit * np.asarray(demands[1].dual_value) / sizes
    free = -unit * np.asarray(demands[2].dual_value) / sizes_of(zeros) if zeros else np.zeros(0)
    dual = size + float(multipliers @ most)
    broken = float(multipliers @ (sizes * np.maximum(-np.asarray(met.value), 0.0)))
    if zeros:
        broken += float(np.abs(free) @ (sizes_of(zeros) * np.abs(np.asarray(equal.value))))
    given = [*slacks, *zeros], size, np.append(multipliers, free)
    missing = _missing(error, begin, *given, grams, np.asarray(heights.value))
    if missing + broken > GAP * abs(dual):
        raise RuntimeError("the solver of the semidefinite program certifies no worst case: it is too inexact.")
    return WorstCase(dual, primal, multipliers, len(slacks), tuple(map(len, error.blocks)))


def _missing(
    error: Form,
    begin: Form,
    slacks: Sequence[Form],
    dual: float,
    multipliers: np.ndarray,
    grams: Sequence[Any],
    heights: np.ndarray,
) -> float:
    """Return by how much the multipliers fail to be a proof, at the Gram matrices and values that were found."""
    total = float(np.abs(error.values + multipliers @ values(slacks)) @ np.abs(heights))
    for k, G in enumerate(grams):
        if G is not None:
            n = len(error.blocks[k])
            proof = dual * begin.blocks[k] - error.blocks[k] - (multipliers @ columns(slacks, k)).reshape(n, n)
            total += max(0.0, -float(np.linalg.eigvalsh(proof)[0])) * float(np.trace(G.value))
    return total
