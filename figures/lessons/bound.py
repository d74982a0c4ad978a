r"""A bound without the answer: dual points certify a model although nobody knows the solution.

Claim: ``dual_certificate``, weak duality. The slopes of the clients at any point p are dual points: they make a
quadratic that lies below E everywhere, and E at the model less its least value bounds the error of the model.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache

import numpy as np

from dualopt.engine.rounds import initial_state
from dualopt.methods import GradientDescent
from dualopt.runs.certificates import dual_point
from figures.lessons._parts import (
    AskNumber,
    Chapter,
    Chart,
    Curve,
    Derived,
    Drag,
    If,
    Level,
    Line,
    Plane,
    Said,
    Spot,
    Theorem,
)
from figures.lessons._quantities import form, linear, squares
from figures.lessons._world import clients, dragged, energy_lengths, valleys_of
from theory._cases import Case
from theory.dualfl.certificates import dual_certificate

LINE = np.linspace(-0.5, 1.5, 65)  # from the model to the least point of the lower bound
# A single model is no run, whose first model would be a bound that needs no theorem.
WEAK_DUALITY = replace(dual_certificate, trivial=lambda case: math.inf)


@lru_cache(maxsize=256)
def _one_round(u: tuple[float, ...]) -> Case:
    f, method = clients(np.array(u)), GradientDescent()
    start = initial_state(method.suggested(f), f, np.array(u[4:6]))  # the first model, gradients are taken at p
    return Case.of(method, f, rounds=1, theta0=np.array(u[6:8]), state=start)


def one_round(u: np.ndarray) -> Case:
    """Return a round of gradient descent in which the clients evaluate their gradients at p."""
    return _one_round(tuple(u))


def certified(u: np.ndarray) -> dict:
    """Measure E at the model, what the slopes at p prove of E*, and how both go on along the line between."""
    case, theta = one_round(u), u[4:6]
    f, solution = case.objective, next(case.snapshots()).solution
    assert solution is not None
    dual = dual_point(f, solution)
    assert dual is not None
    slope, m, rest = np.mean(dual.dual, axis=0), f.mean_mu, float(np.mean(dual.conjugate))
    least = -slope / m  # of the quadratic <slope, x> + m/2 |x|^2 - rest, which lies below E
    energy, proven = case.value(theta), -0.5 * float(slope @ slope) / m - rest
    along = theta + LINE[:, None] * (least - theta)
    return {
        "energy": form(energy),
        "proven": form(proven),
        "certificate": form(energy - proven),
        "error": squares(energy_lengths(case, theta)),
        "lowest": form(case.lowest),
        "least": linear(least),
        "solution": linear(case.theta),
        "above": form([case.value(x) for x in along]),
        "below": form(along @ slope + 0.5 * m * np.sum(along**2, axis=1) - rest),
    }


CHAPTER = Chapter(
    title="A bound without the answer",
    minutes=9,
    needs=("averaging",),
    drags=(
        *dragged(),
        Drag(name="theta", label="model θ", spoken="the model θ", start=(2.6, 2.2), ink="model"),
        Drag(
            name="p",
            label="p",
            spoken="the point p where slopes are taken",
            start=(1.7, 1.7),
            ink="bound",
            shape="triangle",
        ),
    ),
    measures=(certified,),
    derived={
        "loose": Derived(does="less", of=("certificate", "error")),
        "bottom": Derived(does="mix", of=("proven", "energy"), weights=(1.2, -0.2)),
        "top": Derived(does="mix", of=("energy", "proven"), weights=(1.5, -0.5)),
    },
    plane=Plane(
        title="Two clients, a model θ, and a point p where the clients take their slopes",
        marks=(
            *valleys_of(),
            Spot(of="least", label="lowest point of the parabola", ink="bound", shape="open disc"),
            Spot(of="solution", label="solution θ*", shape="cross", after=True),
        ),
    ),
    chart=Chart(
        title="Along the line from θ (0) to the lowest point of the parabola (1)",
        curves=(
            Curve(of="below", x=LINE.tolist(), label="parabola", ink="bound", dash="dashed"),
            Level(of="energy", label="E at your θ", ink="model", dash="dotted"),
            Level(of="proven", label="E* is not lower", ink="bound", dash="dash-dot"),
            Level(of="lowest", label="E*", ink="ink", dash="fine", after=True),
            Curve(of="above", x=LINE.tolist(), label="E", ink="model", after=True),
        ),
        x_label="part of the way",
        y_label="height",
        y=("bottom", "top"),
    ),
    ask=AskNumber(answer="error", label="E(θ) − E* is", low=0.0, high=200.0, step=0.1, start=10.0),
    box=(
        Line(who="server", does="send p to all clients"),
        Line(who="client j", does="ξⱼ ← ∇fⱼ(p) − μⱼ p, its dual point, and send it with its height"),
        Line(who="server", does="lowest point of the parabola: −ξ̄ / μ, with the mean ξ̄ of the ξⱼ", now="{least}"),
        Line(
            who="server", does="certificate ← E(θ) − height of this point", now="{energy} − ({proven}) = {certificate}"
        ),
    ),
    said=(
        Said(
            "E at your model is {energy}. The slopes at p prove that E is nowhere lower than {proven}, so that your"
            " model is at"
            " most {certificate} above the lowest possible height. How much is it really?",
            after=False,
        ),
        Said(
            "The error E(θ) − E* is {error}; the certificate says that it is at most {certificate}. The solution is"
            " {solution}, where E is {lowest}.",
            after=True,
        ),
        Said(
            "Your certificate is within 0.1 of the truth: p is next to the solution.",
            (If("loose", "<=", 0.1),),
            after=True,
        ),
    ),
    theorems=(
        Theorem(
            label="error at most the certificate",
            claim=WEAK_DUALITY,
            case=one_round,
            what="E - E* of the first model",
            quantity="E(θ) − E*",
        ),
    ),
)
