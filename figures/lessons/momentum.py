r"""Momentum on the dual: climbing from bound to bound, with a momentum parameter that may leave its theorem.

Claims: ``theorem_3_3`` of the DualFL paper, for ``rho <= nu/L``, in the dual error that it compares.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from dualopt.methods import DualAscent, DualFL
from dualopt.solvers import Exact
from figures.lessons._charts import dual_errors
from figures.lessons._parts import (
    Arrow,
    AskCurve,
    Chapter,
    Derived,
    If,
    Line,
    Plane,
    Said,
    Slider,
    Spot,
    Theorem,
    Trail,
)
from figures.lessons._quantities import form, linear, squares
from figures.lessons._world import DASHES, INKS, clients, dragged, energy_lengths, on_clients, valleys_of
from theory._cases import Case
from theory.dualfl._runs import path
from theory.dualfl.exact_solutions import theorem_3_3

CLIENTS, NU, ROUNDS = (2, 64.0, 0.1), 0.9, 40  # the former: how many, condition, angle between the valleys
TIMES = (0.1, 0.16, 0.25, 0.4, 0.63, 0.8, 1.0, 1.25, 1.6, 2.0, 2.5, 3.0, 4.0, 5.0, 6.3, 8.0)


@lru_cache(maxsize=256)
def _run(u: tuple[float, ...], method: Any) -> Case:
    return Case.of(method, clients(np.array(u), *CLIENTS), rounds=ROUNDS)


def dualfl(u: np.ndarray, *, rho: float) -> Case:
    """Return DualFL with the momentum parameter in units of nu/L."""
    return _run(tuple(u), DualFL(nu=NU, rho=rho * NU / CLIENTS[1], solver=Exact()))


def ascent(u: np.ndarray) -> Case:
    """Return dual ascent, which has no momentum."""
    return _run(tuple(u), DualAscent(nu=NU, solver=Exact()))


def with_momentum(u: np.ndarray, *, rho: float) -> dict:
    """Measure DualFL."""
    case = dualfl(u, rho=rho)
    models = case.models()
    return {
        "model": linear(models, rounds=True),
        "local": linear(case.local_models(), rounds=True),
        "dual": linear([s.clients.zeta for s in case.snapshots()], rounds=True),
        "error": squares(energy_lengths(case, models), rounds=True),
    }


def without(u: np.ndarray) -> dict:
    """Measure dual ascent, and the solution."""
    case = ascent(u)
    return {
        "slow": linear(case.models(), rounds=True),
        "slow_dual_error": form([step.dual_error for step in path(case)], rounds=True),
        "solution": linear(case.theta),
    }


CHAPTER = Chapter(
    title="Momentum on the dual",
    minutes=12,
    needs=("bound",),
    drags=dragged(),
    sliders=(Slider(name="rho", label="momentum ρ, in units of ν/L", values=TIMES, start=1.0, after=True),),
    rounds=ROUNDS,
    shown=6,
    measures=(with_momentum, without),
    derived={
        "share": Derived(does="ratio", of=("lhs0", "rhs0")),
        "worst": Derived(does="largest", of=("share",)),
        "broken": Derived(does="first", of=("worst", 1.0), over="rho"),
    },
    plane=Plane(
        title="Two clients with nearly parallel valleys; the arrows are the clients' duals",
        marks=(
            *valleys_of(*CLIENTS),
            Trail(of="slow", label="dual ascent", ink="third", dash="dotted", shape="square"),
            Trail(of="model", label="DualFL", ink="model", after=True),
            Arrow(
                at="local",
                of="dual",
                ink=INKS[:2],
                dash=DASHES[:2],
                length=0.4,
                label=("dual ζ₁", "dual ζ₂"),
                after=True,
            ),
            Spot(of="solution", label="solution θ*", shape="cross"),
        ),
    ),
    chart=dual_errors(
        "Dual error: how far the lower bound is from the best one",
        known="slow_dual_error",
        label="dual ascent",
        own="DualFL",
        decades=8,
    ),
    ask=AskCurve(answer="lhs0", knots=(1, 10, 20, 30, 40), start=(5.0, 5.0, 5.0, 5.0, 5.0)),
    box=(
        Line(who="client j", does="θⱼ ← lowest point of fⱼ − ν ⟨ζⱼ, ·⟩", now="θ₁ = {local.0}, θ₂ = {local.1}"),
        Line(who="server", does="θ ← mean of the θⱼ", now="θ = {model}"),
        Line(who="client j", does="vⱼ ← ζⱼ + θ − θⱼ, and without momentum ζⱼ ← vⱼ"),
        Line(who="client j", does="with momentum ζⱼ ← (1 + β) vⱼ − β vⱼ of before", now="ζ₁ = {dual.0}, ζ₂ = {dual.1}"),
    ),
    said=(
        Said(
            "Dual ascent is at {slow} after round {n}; the solution is {solution}. Its dual error is"
            " {slow_dual_error}.",
            after=False,
        ),
        Said(
            "After round {n} the dual error of DualFL is {lhs0}, that of dual ascent {slow_dual_error}; E(θ) − E* of"
            " DualFL is"
            " {error}. DualFL is at {model}, the solution is {solution}.",
            after=True,
        ),
        Said("With ρ up to 1 the theorem promises {rhs0} in this round.", (If("rho", "<=", 1.0),), after=True),
        Said(
            "Beyond ρ = 1 the theorem is silent; what it would promise for this round is {rhs0}.",
            (If("rho", ">", 1.0),),
            after=True,
        ),
        Said(
            "Of the values of the slider, {broken} is the first one for which the promise is broken.",
            (If("broken", ">", 0),),
            after=True,
        ),
    ),
    theorems=(
        Theorem(
            label="the promise of Theorem 3.3",
            claim=theorem_3_3,
            case=dualfl,
            what="dual error",
            quantity="the dual error",
            force=True,
        ),
    ),
    beside=on_clients(*CLIENTS, rounds=ROUNDS),
)
