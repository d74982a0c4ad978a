r"""Your own method: a relaxation of FedSplit, what a theorem claims of it, what is proved from its code, what happens.

The method is a plug-in of twelve lines. Its theorem on paper is Giselsson and Boyd's (2017; ``sampled_feddr`` has it
for FedDR): :math:`\mathbb E\sum_j|z_j^+ - z_j^*|^2 \le (1 - p(1 - k^2))\sum_j|z_j - z_j^*|^2` with
:math:`k = |1 - \frac a2| + \frac a2\delta`, where :math:`a < 4/(1 + \delta)`. The machine is
:func:`dualopt.lab.proofs.prove`. What it found is stored in ``your_own.json``, so that a page waits for no semidefinite
program; ``python -m figures.lessons.your_own`` solves them all again and writes it, which needs CVXPY and Clarabel.
"""

from __future__ import annotations

import json
import math
import pathlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.engine.rounds import State
from dualopt.lab.claims import Inequality, claim
from dualopt.lab.proofs import prove
from dualopt.methods import Algorithm
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import Round, UniformSubset
from dualopt.objectives import Objective, Quadratic
from dualopt.solvers import Exact
from figures.lessons._parts import (
    AskNumber,
    Chapter,
    Chart,
    Curve,
    Derived,
    If,
    Level,
    Line,
    Plane,
    Said,
    Slider,
    Spot,
    Theorem,
    Trail,
)
from figures.lessons._quantities import constant, linear
from figures.lessons._world import dragged, minimisers
from theory._cases import Case
from theory._claims import ROUNDING
from theory.baselines.contraction import Errors, one_step

RELAXATIONS = (0.4, 0.8, 1.2, 1.6, 2.0, 2.2, 2.4, 2.6, 2.8, 3.0, 3.2, 3.6)
SIGNS = {"zⱼ + a (xⱼ − m)": 1.0, "zⱼ − a (xⱼ − m), a slip": -1.0}
CLIENTS, MU, L = 4, 1.0, 9.0
STEP, DELTA = 1.0 / 3.0, 0.5  # 1/sqrt(mu L), and by how much a reflection contracts
STORED = pathlib.Path(__file__).with_suffix(".json")
ROUNDS = 16
TOLERANCE = 1e-4  # of the bisection
TURN, ACROSS = 0.4, 3.0  # of the axes that all clients have, and their curvature along the second one


class Server(NamedTuple):
    """State of the server."""

    theta: Array  # the model m, the mean of the z_j of all clients


class Client(NamedTuple):
    """State of the clients."""

    z: Array


@dataclass(frozen=True, kw_only=True)
class YourOwn(Algorithm):
    """FedSplit with another step: a client goes from z_j to z_j + a (x_j - m).

    Parameters
    ----------
    a : float
        The step; that of FedSplit is 2, a negative one is a slip.
    step : float
        Of the proximal maps.
    """

    supports: ClassVar[frozenset[str]] = frozenset({"partial"})

    a: float
    step: float = STEP

    def init(self, theta0: Array, copies: Array) -> tuple[Server, Array, Client]:
        """Every client at ``theta0``."""
        return Server(theta0), theta0, Client(copies)

    def local(self, c: Client, message: Array, oracle: Oracle, round: Round) -> tuple[Client, Array]:
        """Take a proximal step at the reflected point, and go a part of the way."""
        x = oracle.solve(start=message, weight=1.0 / self.step, center=2.0 * message - c.z).theta
        change = self.a * (x - message)
        return Client(c.z + change), change

    def server(self, server: Server, mean: Array, round: Round) -> tuple[Server, Array]:
        """Keep the mean of the z_j of all clients."""
        theta = server.theta + round.fraction * mean
        return Server(theta), theta

    def fixed_point(self, objective: Objective, theta: Array) -> tuple[Server, Array, Client]:
        """At the minimiser z_j = theta* - s grad f_j(theta*)."""
        return self.start_with(theta, z=theta - self.step * objective.gradient(theta))


def cohorts(active: int) -> UniformSubset | None:
    """Return who takes part."""
    return None if active == CLIENTS else UniformSubset(size=active)


class Found(NamedTuple):
    """What the machine says of a step."""

    factor: float | None  # None where none is proved
    needed: float  # by the slowest quadratic clients that it finds
    slowest: tuple[float, ...]  # their curvatures
    sentence: str


def asked(a: float, active: int) -> Found:
    """Ask the machine, which solves semidefinite programs.

    V remembers the latest points where that can help: if all are active, or the step is a slip, clients need as much as
    is claimed without, or more.

    Raises
    ------
    ImportError
        Without CVXPY.
    """
    rate = prove(
        YourOwn(a=a),
        mu=MU,
        L=L,
        clients=CLIENTS,
        participation=cohorts(active),
        memory=None if a > 0 and active < CLIENTS else False,
        tolerance=TOLERANCE,
    )
    assert rate.lower_bound is not None
    return Found(rate.factor if rate.proved else None, rate.lower_bound, rate.slowest, str(rate))


def questions() -> list[tuple[float, int]]:
    """Return all steps and numbers of active clients."""
    return [(sign * a, active) for active in (2, CLIENTS) for sign in SIGNS.values() for a in RELAXATIONS]


def write() -> None:
    """Ask the machine everything, and store what it says."""
    lines = (json.dumps([a, active, *asked(a, active)], ensure_ascii=False) for a, active in questions())
    STORED.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


@cache
def machine() -> dict[tuple[float, int], Found]:
    """Return what is stored, by step and number of active clients."""
    rows = json.loads(STORED.read_text(encoding="utf-8"))
    return {(a, active): Found(factor, needed, tuple(h), said) for a, active, factor, needed, h, said in rows}


def claimed(a: float, active: int) -> float:
    """Return the factor of the theorem on paper for a step of this size.

    Examples
    --------
    >>> claimed(2.0, 4), claimed(2.0, 2)
    (0.25, 0.625)
    """
    k = abs(1.0 - a / 2.0) + a / 2.0 * DELTA
    return 1.0 - active / CLIENTS * (1.0 - k * k)


def errors(case: Case) -> Errors:
    """Return the z_j - z_j*."""
    limits = case.theta - case.algorithm.step * case.subgradients

    def state(e: Array) -> State:
        z = limits + e.reshape(limits.shape)
        theta = case.objective.mean(z)
        return State(Server(theta), theta, Client(z))

    return Errors(limits.size, lambda state: np.ravel(state.clients.z - limits), state)


def admitted(case: Case) -> list[str]:
    """Return what fails of the assumptions."""
    return [] if abs(case.algorithm.a) * (1.0 + DELTA) < 4.0 else ["a < 4/(1 + delta) = 8/3"]


@claim(
    source="Giselsson and Boyd 2017, for your method",
    statement=r"For $\mu$-strongly convex, $L$-smooth clients, $s = 1/\sqrt{\mu L}$, $\delta = \frac{\sqrt\kappa -"
    r" 1}{\sqrt\kappa + 1}$, $a < \frac4{1 + \delta}$ and $k = |1 - \frac a2| + \frac a2\delta$:"
    r" $\mathbb E\sum_j|z_j^+ - z_j^*|^2 \le (1 - p(1 - k^2))\sum_j|z_j - z_j^*|^2$ where every client is active with"
    r" probability p.",
    assumptions=admitted,
    rtol=ROUNDING,
)
def your_theorem(case: Case) -> Iterator[Inequality]:
    """Compare the exact mean over all cohorts, along a path and at the worst of all states of these clients."""
    return one_step(case, errors(case), claimed(abs(case.algorithm.a), case.events()[0].round.n_active))


@lru_cache(maxsize=512)
def _run(u: tuple[float, ...], a: float, active: int) -> Case:
    axes = np.array([[np.cos(TURN), np.sin(TURN)], [-np.sin(TURN), np.cos(TURN)]])
    A = np.stack([axes.T @ np.diag([h, ACROSS]) @ axes for h in machine()[a, active].slowest])
    f = Quadratic(A=A, b=np.einsum("jkl,jl->jk", A, minimisers(np.array(u), CLIENTS)))
    who: dict[str, Any] = {} if active == CLIENTS else {"participation": cohorts(active)}
    return Case.of(YourOwn(a=a, solver=Exact()), f, rounds=ROUNDS, **who)


def slowest(u: np.ndarray, *, a: float, active: int, line: str) -> Case:
    """Return a run on clients that are, along one axis, the slowest that the machine found."""
    return _run(tuple(u), SIGNS[line] * a, active)


def models(u: np.ndarray, *, a: float, active: int, line: str) -> dict:
    """Measure where the method is, and the solution."""
    case = slowest(u, a=a, active=active, line=line)
    return {"model": linear(case.models(), rounds=True), "solution": linear(case.theta)}


def factors(u: np.ndarray, *, a: float, active: int, line: str) -> dict:
    """Measure what is claimed, what is proved and what these clients need."""
    found = machine()[SIGNS[line] * a, active]
    return {
        "needed": constant(found.needed),
        "claimed": constant(claimed(a, active)),
        "proved": constant(math.nan if found.factor is None else found.factor),
        "can": constant(float(found.factor is not None)),
    }


def resting(u: np.ndarray, *, a: float) -> dict:
    """Measure whether a step is proved with two of four clients."""
    return {"with_two": constant(float(machine()[a, 2].factor is not None))}


def both_sides(u: np.ndarray, *, a: float, active: int, line: str) -> dict:
    """Measure the factor that some clients need, and the one that is claimed."""
    needed = machine()[SIGNS[line] * a, active].needed
    return {"n": constant([1]), "lhs": constant([needed]), "rhs": constant([claimed(a, active)])}


def on_the_slowest(method: Algorithm, u: np.ndarray, *, a: float, active: int, line: str) -> Case:
    """Run a method of the reader's on the same clients; all take part where the method has no rule for others."""
    case = slowest(u, a=a, active=active, line=line)
    who: dict[str, Any] = {"participation": case.participation} if "partial" in method.supports else {}
    return Case.of(method, case.objective, rounds=ROUNDS, **who)


CHAPTER = Chapter(
    title="Your own method",
    minutes=12,
    needs=("chain", "wrong"),
    drags=dragged(CLIENTS),
    sliders=(
        Slider(name="a", label="step a", values=RELAXATIONS, start=2.0),
        Slider(name="active", label="active clients, of 4", values=(2, 4), start=4),
        Slider(name="line", label="the line of your clients", values=tuple(SIGNS), start=next(iter(SIGNS)), after=True),
    ),
    rounds=ROUNDS,
    shown=8,
    measures=(models, factors, resting),
    derived={"farthest": Derived(does="final", of=("with_two", 1.0), over="a")},
    plane=Plane(
        title="Four clients, as slow as the machine found them, and the way of your method",
        marks=(
            Trail(of="model", label="your model", ink="model"),
            Spot(of="solution", label="solution θ*", shape="cross"),
        ),
        y=(-1.2, 3.2),
    ),
    chart=Chart(
        title="Factor of the mean square in a round, over the step a",
        curves=(
            Curve(of="needed", over="a", label="needed by some", ink="third", after=True),
            Curve(of="claimed", over="a", label="claimed", ink="bound", dash="dashed"),
            Curve(of="proved", over="a", label="proved", ink="model", points=True, after=True),
            Level(of=1.0, label="no progress"),
        ),
        x_label="step a",
        y_label="factor",
        y=(0.0, 1.6),
    ),
    ask=AskNumber(answer="farthest", label="largest a:", low=0.4, high=3.6, step=0.2, start=2.6),
    box=(
        Line(who="client j", does="xⱼ ← lowest point of fⱼ + |· − (2m − zⱼ)|² / (2s)"),
        Line(who="client j", does="zⱼ ← {line}", now="a = {a}"),
        Line(who="server", does="m ← mean of the zⱼ of all four clients", now="m = {model}"),
    ),
    said=(
        Said(
            "With a = {a} and {active} of 4 clients the factor {claimed} is claimed on paper, as long as a < 8/3.",
            after=False,
        ),
        Said(
            "With a = {a} and {active} of 4 clients a factor of {proved} is proved; some clients need {needed}, and"
            " {claimed} is"
            " claimed.",
            (If("can", "=", 1.0),),
            after=True,
        ),
        Said(
            "With a = {a} and {active} of 4 clients nothing is proved; some clients need {needed}, where {claimed}"
            " is claimed.",
            (If("can", "=", 0.0),),
            after=True,
        ),
        Said("With two of four, {farthest} is the largest step of the slider with a proof.", after=True),
        Said("After round {n} of one run your model is at {model}; the solution is {solution}.", after=True),
    ),
    theorems=(
        Theorem(
            label="your theorem: these clients need no more than is claimed",
            claim=your_theorem,
            case=slowest,
            sides=both_sides,
            quantity="the factor",
            tolerance=1e-6,
        ),
    ),
    beside=on_the_slowest,
)


if __name__ == "__main__":
    write()
