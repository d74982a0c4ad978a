r"""When may a client stop? Its gap (3.6) says how far it is from its local solution, and a schedule what is admitted.

Claim: ``gap_3_6``, that what a client knows of its gap bounds it.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from dualopt.methods import CorrectedDualFL
from dualopt.solvers import Gradient
from dualopt.solvers.stopping import LinearSchedule, Steps
from figures.lessons._charts import of_theorem
from figures.lessons._parts import (
    AskNumber,
    Chapter,
    Curve,
    Dash,
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
from figures.lessons._quantities import constant, form, linear, squares
from figures.lessons._world import INKS, OPEN, SHAPES, clients, dragged, energy_lengths, on_clients, valleys_of
from theory._cases import Case
from theory.dualfl._gaps import watched
from theory.dualfl.inexact_solutions import gap_3_6

KAPPA, NU, ROUNDS = 8.0, 0.5, 12  # NU is half of mu, for which the bound of a gap is |r|^2/(2 nu)
STEPS = tuple(range(1, 25))


@lru_cache(maxsize=256)
def _run(u: tuple[float, ...], K: int) -> Case:
    method = CorrectedDualFL(nu=NU, rho=NU / KAPPA, solver=Gradient(), stop=Steps(steps=K))
    return Case.of(method, clients(np.array(u), 2, KAPPA), rounds=ROUNDS, name="DualFL")


def few_steps(u: np.ndarray, *, K: int) -> Case:
    """Return DualFL whose clients take K local gradient steps."""
    return _run(tuple(u), K)


def places(u: np.ndarray, *, K: int) -> dict:
    """Measure where clients and server are."""
    case = few_steps(u, K=K)
    models = case.models()
    return {
        "model": linear(models, rounds=True),
        "local": linear(case.local_models(), rounds=True),
        "error": squares(energy_lengths(case, models), rounds=True),
    }


def admitted(u: np.ndarray) -> dict:
    """Measure what the schedule (3.8) admits, and the solution."""
    case = few_steps(u, K=1)
    schedule = LinearSchedule(rho=NU / KAPPA)
    return {
        "admitted": constant([[schedule(s.round)] * 2 for s in case.snapshots()], rounds=True),
        "solution": linear(case.theta),
    }


def both_sides(u: np.ndarray, *, K: int) -> dict:
    """Measure the gaps of the clients when they stop, and what the clients know of them."""
    seen = watched(few_steps(u, K=K), K)
    return {
        "n": constant(np.repeat(np.arange(1, ROUNDS + 1), 2)),
        "lhs": form(seen.gap[:, :, K], rounds=True),
        "rhs": form(seen.bound[:, :, K], rounds=True),
    }


def _gap(j: int) -> Curve:
    dashes: tuple[Dash, ...] = ("solid", "dotted")
    return Curve(of="lhs0", entry=j, label=f"gap of client {j + 1}", ink=INKS[j], dash=dashes[j], after=True)


def _known(j: int) -> Curve:
    return Curve(
        of="rhs0", entry=j, label=f"client {j + 1} knows", ink=INKS[j], points=True, shape=SHAPES[j], after=True
    )


CHAPTER = Chapter(
    title="When may a client stop?",
    minutes=10,
    needs=("momentum",),
    drags=dragged(),
    sliders=(Slider(name="K", label="local steps K", values=STEPS, start=4),),
    rounds=ROUNDS,
    shown=ROUNDS,
    measures=(places, admitted),
    derived={
        "part": Derived(does="ratio", of=("rhs0", "admitted")),
        "late": Derived(does="largest", of=("part",)),
        "enough": Derived(does="first", of=("late", 1.0), over="K", sign=-1),
    },
    plane=Plane(
        title="The clients, their models when they stop, and the model",
        marks=(
            *valleys_of(2, KAPPA),
            Spot(of="local", label=("θ₁", "θ₂"), ink=INKS[:2], shape=OPEN, after=True),
            Trail(of="model", label="model", ink="model", after=True),
            Spot(of="solution", label="solution θ*", shape="cross", after=True),
        ),
    ),
    chart=of_theorem(
        "The gap of each client when it stops, and what is admitted in that round",
        "gap",
        (
            Curve(of="admitted", label="admitted", ink="ink", dash="dashed"),
            *(_gap(j) for j in range(2)),
            *(_known(j) for j in range(2)),
        ),
    ),
    ask=AskNumber(answer="enough", label="smallest K:", low=1, high=24, step=1, start=4),
    box=(
        Line(who="client j", does="K times: a step downhill on fⱼ − ν ⟨ζⱼ, ·⟩", now="θ₁ = {local.0}, θ₂ = {local.1}"),
        Line(
            who="client j",
            does="its residual rⱼ, the slope that is left; its gap is at most |rⱼ|² / (2ν)",
            now="{rhs0.0} and {rhs0.1}",
        ),
        Line(who="client j", does="may stop when this is at most what round n admits", now="{admitted}"),
        Line(who="all", does="as in DualFL, with θⱼ − rⱼ / ν in place of θⱼ", now="θ = {model}"),
    ),
    said=(
        Said(
            "In round {n} a gap of {admitted} is admitted, in those before it more. Client 1 is best at {m1},"
            " client 2 at {m2}.",
            after=False,
        ),
        Said(
            "With K = {K} the clients know in round {n} that their gaps are at most {rhs0.0} and {rhs0.1};"
            " {admitted} is admitted."
            " E(θ) − E* is {error}.",
            after=True,
        ),
        Said("Somebody stops too early.", (If("late", ">", 1.0),), after=True),
        Said("Nobody stops too early in any of the 12 rounds.", (If("late", "<=", 1.0),), after=True),
        Said(
            "Of all numbers of steps from 1 to 24, {enough} is the smallest one with which nobody ever stops too"
            " early.",
            (If("enough", ">", 0),),
            after=True,
        ),
        Said("With these clients 24 steps are not enough.", (If("enough", "none"),), after=True),
    ),
    theorems=(
        Theorem(
            label="a gap is at most what its client knows",
            claim=gap_3_6,
            case=few_steps,
            what="Gamma",
            sides=both_sides,
            quantity="the gap",
        ),
    ),
    beside=on_clients(2, KAPPA, rounds=ROUNDS),
)
