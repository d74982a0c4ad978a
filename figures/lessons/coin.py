r"""A coin to save messages: what the theorem of FedPD pays for rounds without communication.

Claim: ``fedpd_theorem_3``, a bound with a term that does not vanish.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from dualopt.objectives import Quadratic
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
)
from figures.lessons._quantities import constant, form, linear, squares
from figures.lessons._world import dragged, minimisers
from theory._cases import Case
from theory._rounds import expected_squares
from theory.fedpd._runs import fedpd_case
from theory.fedpd.skipping import bounds, expected_gradients, theorem_3

SKIPS = tuple(round(0.01 * k, 2) for k in range(1, 71))
ROUNDS, STEP, NEARER = 200, 0.1, 20.0  # STEP is L eta of FedPD; the clients are that many times nearer than drawn
SEEN = np.array([1, 2, 5, 10, 20, 40, 70, 100, 150, 200])  # rounds of the theorem that a page looks at
CURVATURE = np.array([0.25, 1.0])


def real(u: np.ndarray) -> np.ndarray:
    """Return where the clients have their minima: with the middle that is drawn, and nearer to each other."""
    own = minimisers(u)
    middle = np.mean(own, axis=0)
    return middle + (own - middle) / NEARER


@lru_cache(maxsize=512)
def _case(u: tuple[float, ...], p: float) -> Case:
    own = real(np.array(u))
    f = Quadratic(A=np.tile(np.diag(CURVATURE), (2, 1, 1)), b=CURVATURE * own)
    return fedpd_case("FedPD", f, skip=p, a=STEP, rounds=ROUNDS, theta0=np.zeros(2)).but(remember=True)


def fedpd(u: np.ndarray, *, p: float) -> Case:
    """Return FedPD on two clients with one Hessian, which skips a communication with probability p."""
    return _case(tuple(u), p)


@lru_cache(maxsize=64)
def _means(u: tuple[float, ...]) -> np.ndarray:
    """Return the mean squared gradient up to every round, in which the coin does not occur (one Hessian)."""
    return np.array([mean.squared_gradient for mean in expected_gradients(_case(u, SKIPS[0]))])


def both_sides(u: np.ndarray, *, p: float) -> dict:
    """Measure the mean squared gradient, its bound, and what is known without the theorem."""
    case = fedpd(u, p=p)
    bound = np.array([b for b, _ in zip(bounds(case, 0.0), range(ROUNDS), strict=False)])
    return {
        "n": constant(SEEN),
        "lhs": form(_means(tuple(u))[SEEN - 1], rounds=True),
        "rhs": form(bound[SEEN - 1], rounds=True),
        "trivial": form(case.squared_gradient(case.theta0)),
    }


@lru_cache(maxsize=256)
def _spread(p: float) -> np.ndarray:
    """Return the root of the exact E |x_1 - x_2|^2 at the end, for gradients that differ by 1 along each axis."""
    found = []
    for axis in range(2):
        own = np.zeros((2, 2))
        own[0, axis] = NEARER / CURVATURE[axis]
        case = fedpd(own.ravel(), p=p)
        found.append(np.sqrt(expected_squares(case, lambda s: s.clients.x0[0] - s.clients.x0[1])[-1]))
    return np.array(found)


def copies(u: np.ndarray, *, p: float) -> dict:
    """Measure the exact expectation of the squared distance of the clients' copies of the model after all rounds."""
    own = real(u)
    return {"square": squares(_spread(p) * CURVATURE * (own[0] - own[1]))}


def places(u: np.ndarray) -> dict:
    """Measure where the clients really are, the solution, and how different the gradients are."""
    own = real(u)
    return {
        "real": linear(own),
        "solution": linear(np.mean(own, axis=0)),
        "dissimilar": squares(CURVATURE * (own[0] - own[1])),
    }


CHAPTER = Chapter(
    title="A coin to save messages",
    minutes=9,
    needs=("names",),
    drags=dragged(),
    sliders=(Slider(name="p", label="probability p of skipping", values=SKIPS, start=0.2, after=True),),
    measures=(places, copies),
    derived={
        "bound": Derived(does="last", of=("rhs0",)),
        "mean": Derived(does="last", of=("lhs0",)),
        "G": Derived(does="root", of=("dissimilar",)),
        "apart": Derived(does="root", of=("square",)),
        "bottom": Derived(does="mix", of=("trivial0",), weights=(0.01,)),
        "top": Derived(does="mix", of=("trivial0",), weights=(100.0,)),
        "largest": Derived(does="final", of=("bound", "trivial0"), over="p", sign=-1),
    },
    plane=Plane(
        title="Two clients, drawn 20 times as far apart as they are",
        marks=(Spot(of="real", label=("both, really", ""), ink=("one", "two"), shape=("square", "diamond")),),
    ),
    chart=Chart(
        title="What Theorem 3 promises for 200 rounds, over the probability of skipping",
        curves=(
            Curve(of="bound", over="p", label="Theorem 3", ink="bound", dash="dashed", after=True),
            Level(of="trivial0", label="known without it"),
            Level(of="mean", label="in fact", ink="model", dash="dotted", after=True),
        ),
        x_label="probability p of skipping",
        y_label="mean of |∇E|²",
        log_y=True,
        y=("bottom", "top"),
    ),
    ask=AskNumber(answer="largest", label="largest p:", low=0, high=1, step=0.01, start=0.5),
    box=(
        Line(who="client j", does="θⱼ ← lowest point of fⱼ + ⟨λⱼ, ·⟩ + |· − xⱼ|² / (2η), and λⱼ as before"),
        Line(who="client j", does="xⱼ ← θⱼ + η λⱼ, its own copy of the model", now="copies about {apart} apart"),
        Line(who="the coin", does="with probability 1 − p all copies are replaced by their mean"),
    ),
    said=(
        Said(
            "The gradients of the clients differ by G = {G}. Without a theorem the mean of |∇E|² is known to be at"
            " most {trivial0}.",
            after=False,
        ),
        Said(
            "With p = {p} a share p of the messages is saved. Theorem 3 promises a mean of |∇E|² of at most {bound};"
            " it is"
            " {mean}, and {trivial0} is known without the theorem. The gradients differ by G = {G}; after 200 rounds"
            " the clients'"
            " copies of the model are about {apart} apart.",
            after=True,
        ),
        Said(
            "In hundredths, {largest} is the largest p for which the theorem says something.",
            (If("largest", ">", 0),),
            after=True,
        ),
        Said(
            "For no p does the theorem say anything here: the clients differ too much.",
            (If("largest", "none"),),
            after=True,
        ),
    ),
    theorems=(
        Theorem(
            label="Theorem 3 of FedPD",
            claim=theorem_3,
            case=fedpd,
            sides=both_sides,
            quantity="the mean of |∇E|²",
        ),
    ),
)
