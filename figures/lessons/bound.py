r"""A bound without the answer: dual points certify a model although nobody knows the solution.

Theorem: ``dual_certificate``, weak duality. The gradients of the clients at any point p are dual points: they make a
quadratic that lies below E everywhere, and E at the model less its least value bounds the error of the model.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from dualopt.algorithms import GradientDescent
from dualopt.certificates import dual_point
from dualopt.claims import Inequality, check, claim
from dualopt.engine import initial_state
from dualopt.objectives import Quadratic
from dualopt.xp import Array
from figures.lessons import Answer, Chart, Curve, Dots, Handle, Judged, Lines, Plane, Row, Scene, Slider, Table
from theory._cases import Case
from theory._valleys import ellipse, own_minimisers, valleys
from theory.dualfl.certificates import dual_certificate

TITLE = "A bound without the answer"
QUESTION = (
    "Nobody tells you the solution. Drag the model θ, and the point p whose gradients make the lower bound, until the"
    " certificate says that θ is right to 0.1. What must θ and p be?"
)
PLACES = tuple(round(0.25 * k, 2) for k in range(-2, 19))
OFFERED = (0.5, 1.25, 1.75, 2.5, 3.5)
SLIDERS = (
    Slider(name="x", label="θ, first coordinate", values=PLACES, start=0.5, exported=OFFERED),
    Slider(name="y", label="θ, second coordinate", values=PLACES, start=2.5, exported=OFFERED),
    Slider(name="p", label="p, first coordinate", values=PLACES, start=3.5, exported=OFFERED),
    Slider(name="q", label="p, second coordinate", values=PLACES, start=0.5, exported=OFFERED),
)
ENOUGH = 0.1
# A single model is no run, whose first model would be a bound that needs no theorem.
WEAK_DUALITY = replace(dual_certificate, trivial=lambda case: math.inf)


@claim(source="a question, not a theorem", statement=r"The certified bound is at most 0.1.")
def certified(gap: float) -> Iterator[Inequality]:
    """Compare a certificate with 0.1."""
    yield Inequality(0, gap, ENOUGH, "certificate")


def scene(*, x: float, y: float, p: float, q: float) -> Scene:
    """Certify the model (x, y) by the gradients of two clients at (p, q)."""
    f, theta, point = valleys(2, kappa=8.0), np.array([x, y]), np.array([p, q])
    case = guess(f, theta, point)
    shot = next(case.snapshots())
    assert shot.solution is not None  # everybody evaluates a gradient
    dual = dual_point(f, shot.solution)
    assert dual is not None
    slope, m, rest = np.mean(dual.dual, axis=0), f.mean_mu, float(np.mean(dual.conjugate))
    least = -slope / m  # of the quadratic <slope, x> + m/2 |x|^2 - rest, which lies below E
    energy, lowest = case.value(theta), -0.5 * float(slope @ slope) / m - rest
    gap = energy - lowest

    line = np.linspace(-0.5, 1.5, 33)
    along = theta + line[:, None] * (least - theta)
    values = [case.value(at) for at in along]
    below = along @ slope + 0.5 * m * np.sum(along**2, axis=1) - rest
    section = Chart(
        curves=[
            Curve(x=line, y=values, label="E", colour=0),
            Curve(x=line, y=below, label="what the gradients at p prove", colour=1, role="theorem"),
            Curve(x=[-0.5, 1.5], y=[energy] * 2, label="E(θ)", colour=0, role="limit"),
            Curve(x=[-0.5, 1.5], y=[lowest] * 2, label="E* cannot be lower", colour=1, role="limit"),
        ],
        x_label="from θ to the least point",
        y_label="energy",
        marks=[(0.0, "θ"), (1.0, "least point")],
        y_range=(lowest - 0.2 * gap, energy + 0.5 * gap),
    )
    asked = check(certified, gap)
    solved = asked.verdict == "holds"
    own = own_minimisers(2)
    marks: list[Any] = [
        Lines(lines=[ellipse(f.A[j], own[j], level) for level in (0.2, 0.8)], colour=3 + j) for j in range(2)
    ]
    marks += [
        Dots(points=own, colours=[3, 4], label="minimiser of a client"),
        Dots(points=[least], shape="ring", colours=1, label="least point of the lower bound, if near"),
    ]
    marks += [Dots(points=[case.theta], shape="cross", label="solution")] if solved else []
    marks += [
        Handle(at=(p, q), x="p", y="q", label="p: drag it", colour=1),
        Handle(at=(x, y), x="x", y="y", label="θ: drag it", colour=0),
    ]
    cells = [energy, lowest, gap, case.error(theta) if solved else "hidden"]
    return Scene(
        planes=[Plane(marks=marks, x=(-0.6, 4.6), y=(-0.6, 4.6))],
        charts=[section],
        table=Table(
            first="model",
            columns=["E(θ)", "E* is at least", "certificate", "E − E*"],
            rows=[Row(label="θ", cells=cells, colour=0)],
        ),
        verdicts=[Judged.of(dual_certificate, check(WEAK_DUALITY, case), "E − E* ≤ certificate")],
        answer=Answer.of(
            asked,
            right=lambda v: v.verdict == "holds",
            yes=f"Certified to {gap:.2g}: θ and p are both next to the solution, which you may see now.",
            no=f"The certificate is {gap:.2g}: bring the two dotted lines together. θ moves one of them, p the other.",
        ),
    )


def guess(f: Quadratic, theta: Array, point: Array) -> Case:
    """Return a case whose first model is ``theta`` and whose clients evaluate their gradients at ``point``."""
    method = GradientDescent().suggested(f)
    return Case.of(method, f, rounds=1, theta0=point, state=initial_state(method, f, theta))


def expected(*, x: float, y: float, p: float, q: float) -> dict[str, str]:
    """Return the verdict: weak duality holds for every model and all dual points."""
    return {"E − E* ≤ certificate": "holds"}
