r"""A bound without the answer: dual points certify a model although nobody knows the solution.

Theorem: ``dual_certificate``, weak duality. The gradients of the clients at any point p are dual points: they make a
quadratic that lies below E everywhere, and E at the model less its least value bounds the error of the model.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from dualopt.engine.rounds import initial_state
from dualopt.methods import GradientDescent
from dualopt.runs.certificates import dual_point
from figures.lessons._charts import Chart, Curve
from figures.lessons._planes import Dots, Handle, Plane, contours, minimisers
from figures.lessons._scene import Scene, Slider
from figures.lessons._words import Answer, Table, asked, judge
from theory._cases import Case
from theory._valleys import valleys
from theory.dualfl.certificates import dual_certificate

TITLE = "A bound without the answer"
QUESTION = (
    "Nobody tells you the solution. Drag the model θ, and the point p whose gradients make the lower bound, until the"
    " certificate says that θ is right to 0.1. What must θ and p be?"
)
PLACES = {"values": tuple(round(0.25 * k, 2) for k in range(-2, 19)), "exported": (0.5, 1.25, 1.75, 2.5, 3.5)}
SLIDERS = (
    Slider(name="x", label="θ, first coordinate", start=0.5, **PLACES),
    Slider(name="y", label="θ, second coordinate", start=2.5, **PLACES),
    Slider(name="p", label="p, first coordinate", start=3.5, **PLACES),
    Slider(name="q", label="p, second coordinate", start=0.5, **PLACES),
)
# A single model is no run, whose first model would be a bound that needs no theorem.
WEAK_DUALITY = replace(dual_certificate, trivial=lambda case: math.inf)


def scene(*, x: float, y: float, p: float, q: float) -> Scene:
    """Certify the model (x, y) by the gradients of two clients at (p, q)."""
    f, theta, method = valleys(2, kappa=8.0), np.array([x, y]), GradientDescent()
    start = initial_state(method.suggested(f), f, theta)  # the first model is theta, and gradients are taken at (p, q)
    case = Case.of(method, f, rounds=1, theta0=np.array([p, q]), state=start)
    solution = next(case.snapshots()).solution
    assert solution is not None  # everybody evaluates a gradient
    dual = dual_point(f, solution)
    assert dual is not None
    slope, m, rest = np.mean(dual.dual, axis=0), f.mean_mu, float(np.mean(dual.conjugate))
    least = -slope / m  # of the quadratic <slope, x> + m/2 |x|^2 - rest, which lies below E
    energy, lowest = case.value(theta), -0.5 * float(slope @ slope) / m - rest
    gap = energy - lowest

    ends = (-0.5, 1.5)
    line = np.linspace(*ends, 33)
    along = theta + line[:, None] * (least - theta)
    below = along @ slope + 0.5 * m * np.sum(along**2, axis=1) - rest
    section = Chart(
        curves=[
            Curve(x=line, y=[case.value(at) for at in along], label="E", colour=0),
            Curve(x=line, y=below, label="what the gradients at p prove", colour=1, role="theorem"),
            Curve.level(energy, ends, "E(θ)", colour=0),
            Curve.level(lowest, ends, "E* cannot be lower", colour=1),
        ],
        x_label="from θ to the least point",
        y_label="energy",
        marks=[(0.0, "θ"), (1.0, "least point")],
        y_range=(lowest - 0.2 * gap, energy + 0.5 * gap),
    )
    answer = Answer.of(
        (asked((gap, 0.1)), "holds"),
        yes=f"Certified to {gap:.2g}: θ and p are both next to the solution, which you may see now.",
        no=f"The certificate is {gap:.2g}: bring the two dotted lines together. θ moves one of them, p the other.",
    )
    marks = [
        *contours(f, (3, 4), levels=(0.2, 0.8)),
        Dots(points=minimisers(f), colours=[3, 4], label="minimiser of a client"),
        Dots(points=[least], shape="ring", colours=1, label="least point of the lower bound, if near"),
        *([Dots(points=[case.theta], shape="cross", label="solution")] if answer.right else []),
        Handle(at=(p, q), x="p", y="q", label="p: drag it", colour=1),
        Handle(at=(x, y), x="x", y="y", label="θ: drag it", colour=0),
    ]
    error = case.error(theta) if answer.right else "hidden"
    cells = {"E(θ)": energy, "E* is at least": lowest, "certificate": gap, "E − E*": error}
    return Scene(
        planes=[Plane(marks=marks, x=(-0.6, 4.6), y=(-0.6, 4.6))],
        charts=[section],
        table=Table.of("model", {"θ": cells}),
        verdicts=[judge(WEAK_DUALITY, case, "E − E* ≤ certificate")],
        answer=answer,
    )
