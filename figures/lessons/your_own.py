r"""Your own method: a relaxation of FedSplit, what a theorem claims of it, what is proved from its code, what happens.

The method is a plug-in of twelve lines. Its theorem on paper is Giselsson and Boyd's (2017; ``sampled_feddr`` has it
for FedDR): :math:`\mathbb E\sum_j|z_j^+ - z_j^*|^2 \le (1 - p(1 - k^2))\sum_j|z_j - z_j^*|^2` with
:math:`k = |1 - \frac a2| + \frac a2\delta`, where :math:`a < 4/(1 + \delta)`. The machine is
:func:`dualopt.lab.proofs.prove`. What it found is stored in ``your_own.json``, so that a page waits for no semidefinite
program; ``python -m figures.lessons.your_own`` solves them all again and writes it, which needs CVXPY and Clarabel.
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Iterator, Sequence
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
from figures.lessons._charts import Chart, Curve
from figures.lessons._planes import Dots, Path, Plane, contours, minimisers
from figures.lessons._scene import Scene, Slider
from figures.lessons._words import Answer, Table, judge
from theory._cases import Case
from theory._claims import ROUNDING
from theory._rounds import expected_squares
from theory.baselines.contraction import Errors, one_step

TITLE = "Your own method"
QUESTION = (
    "FedSplit takes the step a = 2. Suppose that you want to go farther: your theorem ends at a = 8/3."
    " Which step beyond it is proved all the same, and how many clients must rest for that?"
)
RELAXATIONS = (0.4, 0.8, 1.2, 1.6, 2.0, 2.2, 2.4, 2.6, 2.8, 3.0, 3.2, 3.6)
SIGNS = {"zⱼ + a (xⱼ − m)": 1.0, "zⱼ − a (xⱼ − m), a slip": -1.0}
SLIDERS = (
    Slider(name="relaxation", label="step a", values=RELAXATIONS, start=2.0),
    Slider(name="active", label="active clients, of 4", values=(2, 4), start=4),
    Slider(name="line", label="the line of your clients", values=tuple(SIGNS), start=next(iter(SIGNS))),
)
CLIENTS, MU, L = 4, 1.0, 9.0
STEP, DELTA = 1.0 / 3.0, 0.5  # 1/sqrt(mu L), and by how much a reflection contracts
STORED = pathlib.Path(__file__).with_suffix(".json")
ROUNDS, SEEN = 24, (1e-10, 1e4)
TOLERANCE = 1e-4  # of the bisection
TURN, ACROSS = 0.4, 3.0  # of the axes that all clients have, and their curvature along the second one
CENTRES = np.array([[2.0, 0.0], [3.2, 1.2], [1.6, 2.2], [0.4, 1.0]])


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


@claim(
    source="the semidefinite program of your method",
    statement=r"The factor that some quadratic clients need is at most the proved one; less the tolerance of its search"
    r" that is at most the factor of the theorem.",
    rtol=ROUNDING,
)
def your_proof(case: Sequence[float]) -> Iterator[Inequality]:
    """Compare what clients need, what is proved and what is claimed, in this order; nothing where nothing is proved."""
    if case:
        needed, proved, promise = case
        yield Inequality(1, needed, proved, "the slowest clients")
        yield Inequality(1, proved - TOLERANCE, promise, "proved and claimed")


@lru_cache(maxsize=64)
def run(a: float, active: int) -> Case:
    """Return a run on clients of the plane that are, along one axis, the slowest that the search found."""
    axes = np.array([[np.cos(TURN), np.sin(TURN)], [-np.sin(TURN), np.cos(TURN)]])
    A = np.stack([axes.T @ np.diag([h, ACROSS]) @ axes for h in machine()[a, active].slowest])
    f = Quadratic(A=A, b=np.einsum("jkl,jl->jk", A, CENTRES))
    who: dict[str, Any] = {} if active == CLIENTS else {"participation": cohorts(active)}
    return Case.of(YourOwn(a=a, solver=Exact()), f, rounds=ROUNDS, **who)


def scene(*, relaxation: float, active: int, line: str) -> Scene:
    """Ask the machine for all steps, and run the chosen one on the slowest clients."""
    sign = SIGNS[line]
    a = sign * relaxation
    found, case = machine()[a, active], run(a, active)
    three = () if found.factor is None else (found.needed, found.factor, claimed(relaxation, active))
    proof = judge(your_proof, three, "the proof", "holds" if three else "inconclusive")
    speaks = relaxation * (1.0 + DELTA) < 4.0
    theorem = judge(
        your_theorem, case, "your theorem", "outside assumptions" if not speaks else "holds" if sign > 0 else "violated"
    )
    beyond = "The theorem is silent here, and"
    if sign < 0:
        no = f"One sign of your code is another. The machine: {found.sentence}."
    else:
        no = "Your theorem ends at a = 8/3 = 2.67." if speaks else f"{beyond} nothing is proved."
    return Scene(
        planes=[plane(case)],
        charts=[factors(sign, active, relaxation), race(case, relaxation, active, found.factor)],
        table=Table.of("per round", {"factor of the mean square": cells(found, claimed(relaxation, active))}),
        verdicts=[theorem, proof],
        answer=Answer.of(
            (theorem, "outside assumptions"),
            (proof, "holds"),
            yes=f"{beyond} the machine has a proof, with {active} of {CLIENTS} clients active: {found.sentence}.",
            no=no,
        ),
        rounds=ROUNDS,
        shown=8,
        note="Clients with μ = 1 and L = 9, s = 1/3. An active client takes xⱼ = prox of s fⱼ at 2m − zⱼ, and replaces"
        f" zⱼ by {line.partition(',')[0]}; m is the mean of the zⱼ of all four. The machine: {found.sentence}."
        " What it says is stored; to ask it again needs CVXPY and Clarabel (dualopt[theory]).",
    )


def cells(found: Found, promise: float) -> dict[str, float | str]:
    """Return the three factors, and on whom the method is so slow."""
    return {
        "claimed": promise,
        "proved": "not" if found.factor is None else found.factor,
        "needed": found.needed,
        "by clients of curvatures": ", ".join(f"{h:g}" for h in sorted(found.slowest)),
    }


def factors(sign: float, active: int, chosen: float) -> Chart:
    """Return the claimed, the proved and the needed factor over the step."""
    fine = np.linspace(RELAXATIONS[0], RELAXATIONS[-1], 81)
    found = {a: machine()[sign * a, active] for a in RELAXATIONS}
    proved = {a: each.factor for a, each in found.items() if each.factor is not None}
    curves = [
        Curve(x=RELAXATIONS, y=[each.needed for each in found.values()], label="needed by some clients", colour=2),
        Curve(x=fine, y=[claimed(a, active) for a in fine], label="claimed by your theorem", colour=1, role="theorem"),
        Curve(x=list(proved), y=list(proved.values()), label="proved", colour=0, role="points"),
        Curve.level(1.0, (RELAXATIONS[0], RELAXATIONS[-1]), "no progress"),
    ]
    range_ = (0.15, 1.55) if sign > 0 else (0.0, 14.0)
    return Chart(curves=curves, x_label="step a", y_label="factor per round", marks=[(chosen, "yours")], y_range=range_)


@lru_cache(maxsize=64)
def mean_squares(case: Case) -> np.ndarray:
    """Return the exact mean of the square after every round, over that at the start."""
    limits = errors(case)
    return np.array(expected_squares(case, limits.of)) / limits.squared(case.first())


def race(case: Case, relaxation: float, active: int, factor: float | None) -> Chart:
    """Return the mean square of the run, exactly, with the promises."""
    mean = mean_squares(case)
    rounds = np.arange(1, ROUNDS + 1)

    def curve(y: np.ndarray, label: str, **style: Any) -> Curve:
        seen = (SEEN[0] <= y) & (y <= SEEN[1])
        return Curve(x=rounds[seen], y=y[seen], label=label, **style)

    curves = [Curve.level(1.0, (1, ROUNDS), "no progress"), curve(mean, "mean over all cohorts, exactly", colour=2)]
    if claimed(relaxation, active) < 1.0:
        promise = claimed(relaxation, active) ** rounds
        curves.append(curve(promise, "claimed by your theorem", colour=1, role="theorem"))
    if factor is not None:
        curves.append(curve(factor**rounds, "slope of the proof", colour=0, role="limit"))
    return Chart.over_rounds("Σ |zⱼ − zⱼ*|², at first 1", curves, y_range=SEEN)


def plane(case: Case) -> Plane:
    """Return the clients and the way of the model."""
    ink = [3 + j for j in range(CLIENTS)]
    models = np.clip(case.models(), -1e3, 1e3)  # what diverges leaves the picture
    marks = [
        *contours(case.objective, ink),
        Path(points=models, label="model of one run", colour=2),
        Dots(points=models[:, None], colours=2),
        Dots(points=[case.theta], shape="cross", label="solution"),
    ]
    return Plane.around([*minimisers(case.objective), np.zeros(2)], margin=0.3, marks=marks)


if __name__ == "__main__":
    write()
