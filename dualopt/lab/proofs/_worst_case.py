"""The exact worst case of a method that is linear algebra on vectors, after some rounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from dualopt.arrays._checks import require, require_at_least
from dualopt.lab.proofs._formal import with_room
from dualopt.lab.proofs._forms import Form, Space, points_of
from dualopt.lab.proofs._program import columns, program, solved, values
from dualopt.lab.proofs._setting import Setting
from dualopt.methods import Algorithm

__all__ = ["WorstCase", "worst_case"]

GAP = 1e-4
"""Largest difference of primal and dual value that is accepted, relative to the value."""
LARGEST = 800
"""Most inequalities of a program."""
MEASURES = ("distance", "value", "dual")


@dataclass(frozen=True)
class WorstCase:
    """The largest mean error after some rounds over a class of problems.

    Attributes
    ----------
    value : float
        No problem does worse: the value of the dual program, to the tolerance of its solver.
    example : float
        Some problem does as badly: the value of the program itself.
    multipliers : array
        Those of the inequalities between the points that were met; weighted with them they add up to a proof.
    inequalities : int
        How many there are.
    sizes : tuple of int
        Sizes of the blocks of the Gram matrix.
    """

    value: float
    example: float
    multipliers: np.ndarray
    inequalities: int
    sizes: tuple[int, ...]


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
        :math:`\theta_j` of all clients. The sum of the last two is a duality gap.
    start : pair of float
        (a, b) in :math:`a|\theta^0 - \theta^*|^2 + b\sum_j|\nabla f_j(\theta^*)|^2 \le 1`.
    weights : sequence of float, optional
        Weights of the clients in the mean.
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
    """
    require_at_least(1, rounds=rounds)
    require(measure in MEASURES, f"measure must be one of {', '.join(MEASURES)}", measure)
    require(min(start) >= 0 and max(start) > 0, "start must be two numbers of at least 0, not both 0", start)
    setting = Setting.of(algorithm, mu, L, clients, participation, weights, literal=literal)
    if setting.branched and rounds > 1 and not literal:  # a client's questions depend on the rounds that it was in
        setting = Setting(setting.algorithm, setting.mu, setting.L, setting.weights, setting.participation, True)
    if measure == "dual":
        require(not setting.branched, "measure must be distance or value where chance has a part", measure)
        require(max(setting.mu) > 0, "mu must be positive for a client, for the dual energy", mu)
    n_ends = len(setting.events()) ** rounds if setting.branched else 1
    require(n_ends <= 4096, "rounds must be fewer: all that may happen in them is played, at most 4096 ways", n_ends)
    return with_room(lambda dimension: _solved(setting, rounds, measure, start, dimension))


def _solved(setting: Setting, rounds: int, measure: str, start: tuple[float, float], dimension: int) -> WorstCase:
    """Return the worst case, with room for so many formal vectors."""
    setting.require_linear(rounds, dimension=dimension)
    (a, b), f = start, setting.world(dimension)
    star = f.ledger.vector()
    gradients = f.set_minimiser(star)
    ends = [(p, state.server.theta) for p, state in setting.play(f, rounds)]
    if measure == "value":
        for _, theta in ends:
            f.gradient(theta)
    space = Space(f.ledger, setting.classes)
    begin = reduce(add, (b * space.square(g) for g in gradients), a * space.square(star))
    if measure == "distance":
        error = reduce(add, (p * space.square(theta - star) for p, theta in ends))
    elif measure == "dual":
        error = _dual_energy(setting, space, f)
    else:
        error = reduce(add, (p * _energy(setting, space, f, theta) for p, theta in ends))
    points = points_of(f.ledger, setting.classes, star, gradients)
    count = sum(len(own) * (len(own) - 1) for own in points)
    require(count <= LARGEST, f"rounds must be fewer, or local steps: at most {LARGEST} inequalities are solved", count)
    slacks = space.inequalities(points)
    rough = _largest(error, begin, slacks, 1.0)
    if not 0 < rough.value < math.inf:
        return rough
    try:
        return _certified(_largest(error, begin, slacks, rough.value))
    except RuntimeError:  # in the unit of the first answer the tolerances say more, but the solver may fail
        return _certified(rough)


def _certified(found: WorstCase) -> WorstCase:
    """Return an answer whose primal and dual value agree."""
    if not abs(found.value - found.example) <= GAP * abs(found.value):
        raise RuntimeError(
            f"the solver certifies no worst case: it lies between {found.example:.6g} and {found.value:.6g}."
        )
    return found


def _energy(setting: Setting, space: Space, f: Any, theta: np.ndarray) -> Form:
    """Return ``E(theta) - E*``."""
    total = sum(f.weights) if f.weights else f.n_clients
    found = space.no_values
    for c, own in enumerate(setting.classes):
        share = len(own) * own.weight / total
        found = found + share * space.value(c, f.ledger.number(own.clients[0], theta))
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


def _largest(error: Form, begin: Form, slacks: Sequence[Form], unit: float) -> WorstCase:
    """Solve the program, with an error in such units that the solver's tolerances make sense."""
    cvxpy = program()
    grams = [cvxpy.Variable((n, n), PSD=True) if n else None for n in map(len, error.blocks)]
    heights = cvxpy.Variable(len(error.values))

    def of(forms: Sequence[Form]) -> Any:
        total = values(forms) @ heights
        for k, G in enumerate(grams):
            if G is not None:
                total = total + columns(forms, k) @ cvxpy.vec(G, order="C")
        return total

    demands = [of([begin]) <= 1.0, of(slacks) >= 0.0]
    problem = cvxpy.Problem(cvxpy.Maximize(of([error])[0] / unit), demands)
    status = solved(problem)
    if status in ("unbounded", "unbounded_inaccurate"):
        return WorstCase(math.inf, math.inf, np.zeros(0), len(slacks), tuple(map(len, error.blocks)))
    if status != "optimal":
        raise RuntimeError(f"the solver of the semidefinite program certifies no worst case: {status}.")
    dual, primal = unit * float(demands[0].dual_value[0]), unit * float(problem.value)
    multipliers = unit * np.asarray(demands[1].dual_value)
    return WorstCase(dual, primal, multipliers, len(slacks), tuple(map(len, error.blocks)))
