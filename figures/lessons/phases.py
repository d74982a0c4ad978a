r"""Where it converges: a map of steps and clients for FedPD, and what it does in one cell of it.

Claim: ``afedpd_small_rho``: on two clients of opposite curvature FedPD, which is A-FedPD where all take part,
converges up to a step in closed form. The map is computed from the rounds (``theory/phase_maps.py``), by eigenvalues
instead of long runs.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache

import numpy as np

from dualopt.lab.chance import coin
from dualopt.methods import AFedPD, Algorithm
from dualopt.objectives import Quadratic
from dualopt.solvers import Exact
from figures.lessons._parts import (
    AskNumber,
    Chapter,
    If,
    Line,
    Map,
    Plane,
    Said,
    Slider,
    Spot,
    Theorem,
    Trail,
)
from figures.lessons._quantities import constant, linear
from figures.lessons._world import INKS, OPEN, dragged, minimisers
from theory._cases import Case
from theory.counterexamples._recursion import on_quadratics
from theory.counterexamples.primal_dual import afedpd_small_rho
from theory.limits import afedpd_least_rho
from theory.phase_maps import CONVERGES, Clients, phase_map

STEPS = tuple(float(f"{step:.3g}") for step in np.geomspace(0.5, 6.0, 24))
APART = (0.5, 0.7, 0.9, 1.1, 1.3, 1.5, 1.8, 2.2, 2.6, 3.0, 3.5, 4.2, 5.0, 6.0)
KINDS = ("converges", "ends elsewhere", "diverges", "no local solution")
ROUNDS = 12


def curvatures(s: float) -> np.ndarray:
    """Return 1 + s and 1 - s in units of L = 1 + s."""
    return np.array([1.0 + s, 1.0 - s]) / (1.0 + s)


def algorithm(step: float) -> Algorithm:
    """Return FedPD; with all clients it is A-FedPD with rho = 1/eta (``identity_full_participation``)."""
    return AFedPD(rho=1.0 / step, solver=Exact())


@cache
def cells() -> tuple[np.ndarray, np.ndarray]:
    """Return the factor per round of every cell, and the position in ``KINDS``, shapes (len(APART), len(STEPS))."""

    def pair(s: float) -> Clients:
        return Clients(curvatures(s), curvatures(s) - np.array([-1.0, 1.0]) / (1.0 + s))

    axes = {"steps": STEPS, "heterogeneity": APART, "proximal": True}
    radius, error = phase_map(algorithm, pair, coin(2, 1.0), **axes)
    return radius, np.select([np.isnan(radius), radius >= 1.0, error > CONVERGES], [3, 2, 1], 0)


def solvable(step: float, s: float) -> bool:
    """Tell whether the local problems of both clients have solutions."""
    return 1.0 / step + float(np.min(curvatures(s))) > 0


def longest(s: float) -> float:
    """Return the step up to which FedPD converges; for convex clients every one is short enough."""
    return 1.0 / afedpd_least_rho(1.0, (1.0 - s) / (1.0 + s)) if s > 1 else math.inf


@lru_cache(maxsize=1024)
def _run(u: tuple[float, ...], step: float, s: float) -> Case:
    along, across = curvatures(s), np.full(2, 1.0 / (1.0 + s))
    A = np.stack([np.diag(pair) for pair in zip(along, across, strict=True)])
    f = Quadratic(A=A, b=np.einsum("jkl,jl->jk", A, minimisers(np.array(u))))
    return Case.of(algorithm(step), f, rounds=ROUNDS, theta0=np.zeros(2))


def orbit(u: np.ndarray, *, step: float, s: float) -> dict:
    """Measure the models of the clients and the server, which stay at the origin where there is nothing to solve."""
    if not solvable(step, s):
        nothing = np.zeros((ROUNDS, 2))
        return {"model": linear(nothing, rounds=True), "local": linear(np.zeros((ROUNDS, 2, 2)), rounds=True)}
    case = _run(tuple(u), step, s)
    return {"model": linear(case.models(), rounds=True), "local": linear(case.local_models(), rounds=True)}


def solution(u: np.ndarray, *, s: float) -> dict:
    """Measure the solution."""
    return {"solution": linear(_run(tuple(u), STEPS[0], s).theta)}


def cell(u: np.ndarray, *, step: float, s: float) -> dict:
    """Measure the factor of a round and the kind of a cell."""
    radius, kind = (found[APART.index(s)][STEPS.index(step)] for found in cells())
    return {"factor": constant(np.nan_to_num(radius)), "kind": constant(float(kind))}


def border(u: np.ndarray, *, s: float) -> dict:
    """Measure up to which step FedPD converges, 0 where every step is short enough."""
    return {"longest": constant(longest(s) if s > 1 else 0.0)}


def along(u: np.ndarray, *, step: float, s: float) -> Case:
    """Return FedPD for the first coordinate alone, from the origin."""
    a, own = curvatures(s), minimisers(u)[:, :1]
    f = Quadratic(A=a[:, None, None], b=a[:, None] * own)
    return on_quadratics(f"s = {s:g}", algorithm(step), f, converges=step < longest(s), theta0=0.0)


def factor_of_a_round(u: np.ndarray, *, step: float, s: float) -> dict:
    """Measure what the claim compares first: the factor of a round, and 1; nothing where it does not speak."""
    case = along(u, step=step, s=s)
    if afedpd_small_rho.assumptions(case):
        return {"n": constant([0]), "lhs": constant([0.0]), "rhs": constant([0.0])}
    first = next(iter(afedpd_small_rho(case)))
    return {"n": constant([0]), "lhs": constant([first.lhs]), "rhs": constant([first.rhs])}


FAR = np.geomspace(1.05, APART[-1], 40)

CHAPTER = Chapter(
    title="Where it converges",
    minutes=8,
    needs=("names",),
    drags=dragged(),
    sliders=(
        Slider(name="step", label="step ηL", values=STEPS, start=STEPS[3], after=True),
        Slider(name="s", label="heterogeneity s", values=APART, start=2.2),
    ),
    rounds=ROUNDS,
    shown=6,
    measures=(orbit, solution, cell, border),
    plane=Plane(
        title="The models of both clients, and of the server, from round to round",
        marks=(
            Trail(of="model", label="model", ink="model"),
            Spot(of="local", label=("θ₁", "θ₂"), ink=INKS[:2], shape=OPEN),
            Spot(of="solution", label="solution θ*", shape="cross"),
        ),
        x=(-2.5, 6.5),
        y=(-1.9, 4.0),
    ),
    chart=Map(
        title="FedPD on clients with the curvatures 1 + s and 1 − s, in units of L = 1 + s: choose a cell",
        x="step",
        y="s",
        classes=cells()[1],
        names=KINDS,
        inks=("good", "third", "bound", "bad"),
        x_label="step ηL",
        y_label="heterogeneity s",
        border=np.stack([[longest(a) for a in FAR], FAR], axis=1),
        border_label="theorem",
    ),
    ask=AskNumber(answer="longest", label="longest step ηL:", low=0, high=20, step=0.01, start=1.0),
    box=(
        Line(
            who="client j",
            does="θⱼ ← lowest point of fⱼ + ⟨λⱼ, ·⟩ + |· − θ|² / (2η)",
            now="θ₁ = {local.0}, θ₂ = {local.1}",
        ),
        Line(who="client j", does="λⱼ ← λⱼ + (θⱼ − θ) / η"),
        Line(who="server", does="θ ← mean of the θⱼ + η λⱼ", now="θ = {model}"),
    ),
    said=(
        Said(
            "With s = {s} and ηL = {step} the model is at {model} after round {n}; the solution is {solution}.",
            after=False,
        ),
        Said(
            "With ηL = {step} and s = {s} FedPD converges: a round multiplies its distance by {factor}.",
            (If("kind", "=", 0.0),),
            after=True,
        ),
        Said(
            "With ηL = {step} and s = {s} FedPD diverges: a round multiplies its distance by {factor}.",
            (If("kind", "=", 2.0),),
            after=True,
        ),
        Said(
            "With ηL = {step} and s = {s} a client has no local solution: its function and the proximal term"
            " together still fall"
            " for ever.",
            (If("kind", "=", 3.0),),
            after=True,
        ),
        Said(
            "After round {n} the model is at {model}; the solution is {solution}.", (If("kind", "<", 3.0),), after=True
        ),
        Said("For s = {s} every step below {longest} converges.", (If("s", ">", 1.0),), after=True),
        Said("For s = {s} both clients are convex, and every step converges.", (If("s", "<", 1.0),), after=True),
    ),
    theorems=(
        Theorem(
            label="FedPD converges up to a step in closed form",
            claim=afedpd_small_rho,
            case=along,
            sides=factor_of_a_round,
            quantity="what the theorem says is smaller, of 1 and the factor of a round,",
        ),
    ),
)
