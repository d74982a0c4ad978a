r"""One round, one link: on a chain no method is faster than its lower bound, and one attains it.

Claims: ``convex_span`` (n rounds reach n coordinates), ``convex_strong_bound`` (so no method is nearer to the solution
than the bound) and ``convex_strong_attained`` (FedSplit is as near as that).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from dualopt.methods import Algorithm, ConsensusFedSplit, DualFL, FedAvg, FedPD, OptimizedDualFL
from dualopt.solvers import Gradient
from figures.lessons._parts import AskChoice, Bars, Chapter, Chart, Curve, Line, Said, Slider, Theorem
from figures.lessons._quantities import constant
from theory._cases import Case
from theory.lower_bounds._convex_chain import geometric, tails
from theory.lower_bounds._convex_methods import ConjugateGradients, chain_case
from theory.lower_bounds.convex import convex_span, convex_strong_attained, convex_strong_bound

METHODS = {  # with the parameters that they suggest; FedAvg takes one gradient step of length 1/L
    "DualFL": lambda L: DualFL(),
    "OptimizedDualFL": lambda L: OptimizedDualFL(),
    "conjugate gradients": lambda L: ConjugateGradients(),
    "FedAvg": lambda L: FedAvg(solver=Gradient(step=1.0 / L)),
    "FedPD": lambda L: FedPD(),
    "FedSplit": lambda L: ConsensusFedSplit(),
}
LINKS = 24  # coordinates
ROUNDS = LINKS - 1
KAPPAS = (4, 10, 30, 100, 300, 1000)


@lru_cache(maxsize=64)
def _race(method: str, kappa: float) -> Case:
    instance = geometric(kappa, LINKS)
    case = chain_case(instance, METHODS[method](instance.L), ROUNDS, remember=True)
    return case.but(lowest=case.value(case.theta))


def race(u: np.ndarray, *, method: str, kappa: float) -> Case:
    """Return a method on the chain whose links belong to two clients in turn."""
    return _race(method, kappa)


def models(u: np.ndarray, *, method: str, kappa: float) -> dict:
    """Measure the model, how many of its coordinates are not 0, and how far it is from the solution."""
    case = _race(method, kappa)
    found = case.models()
    return {
        "model": constant(found, rounds=True),
        "reached": constant([np.flatnonzero(x)[-1] + 1 if x.any() else 0 for x in found], rounds=True),
        "distance": constant(np.sum((found - case.theta) ** 2, axis=1), rounds=True),
    }


def least(u: np.ndarray, *, kappa: float) -> dict:
    """Measure the solution, and how near a method can be to it after every round."""
    theta = geometric(kappa, LINKS).theta
    return {"solution": constant(theta), "least": constant(tails(theta)[:ROUNDS], rounds=True)}


def span(u: np.ndarray, *, method: str, kappa: float) -> dict:
    """Measure both sides of the claim that a round reaches one coordinate."""
    compared = list(convex_span(_race(method, kappa)))
    return {"lhs": constant([q.lhs for q in compared]), "rhs": constant([float(q.rhs) for q in compared])}


def bound(u: np.ndarray, *, method: str, kappa: float) -> dict:
    """Measure the least possible squared distance, and that of the method."""
    compared = [q for q in convex_strong_bound(_race(method, kappa)) if q.what == "squared distance"]
    return {"lhs": constant([q.lhs for q in compared]), "rhs": constant([q.rhs for q in compared])}


def attained(u: np.ndarray, *, method: str, kappa: float) -> dict:
    """Measure how far the model is from the nearest point that can be reached, relative, and what is rounding."""
    compared = list(convex_strong_attained(_race(method, kappa)))
    return {"lhs": constant([q.lhs for q in compared]), "rhs": constant([q.rhs for q in compared])}


def on_the_chain(method: Algorithm, u: np.ndarray, *, kappa: float) -> Case:
    """Run a method of the reader's there."""
    return chain_case(geometric(kappa, LINKS), method, ROUNDS, remember=True)


CHAPTER = Chapter(
    title="One round, one link",
    minutes=8,
    needs=("momentum", "names"),
    drags=(),
    sliders=(
        Slider(name="method", label="method", values=tuple(METHODS), start="DualFL", after=True),
        Slider(name="kappa", label="condition number κ", values=KAPPAS, start=30),
    ),
    rounds=ROUNDS,
    shown=6,
    measures=(models, least),
    plane=Chart(
        title="The chain: a bar for each coordinate, a line for each link, with its client",
        curves=(
            Bars(of="solution", label="solution", ink="third", faint=True),
            Bars(of="model", label="model", ink="model", links=("one", "two"), after=True),
        ),
        x_label="coordinate",
        y_label="value",
    ),
    chart=Chart(
        title="Squared distance from the solution; no method can be below the dashed line",
        curves=(
            Curve(of="least", label="least possible", ink="bound", dash="dashed"),
            Curve(of="distance", label="{method}", ink="model", after=True),
        ),
        x_label="round",
        y_label="|θⁿ − θ*|²",
        log_y=True,
    ),
    ask=AskChoice(options=tuple(METHODS), answer=list(METHODS).index("FedSplit")),
    box=(
        Line(who="client 1", does="owns the links 1–2, 3–4, 5–6, … of the chain"),
        Line(who="client 2", does="owns the start and the links 2–3, 4–5, 6–7, …"),
        Line(who="both", does="compute what they like with their own links", now="{reached} coordinates are not 0"),
        Line(who="server", does="one exchange of messages"),
    ),
    said=(
        Said(
            "The solution falls from coordinate to coordinate; after {n} rounds no method is nearer than {least},"
            " squared.",
            after=False,
        ),
        Said(
            "After round {n} {method} has reached {reached} coordinates, and its squared distance from the solution"
            " is {distance};"
            " {least} is possible.",
            after=True,
        ),
    ),
    theorems=(
        Theorem(
            label="one coordinate a round",
            claim=convex_span,
            case=race,
            sides=span,
            quantity="the last coordinate reached",
        ),
        Theorem(
            label="no method is nearer",
            claim=convex_strong_bound,
            case=race,
            sides=bound,
            quantity="the least possible squared distance",
        ),
        Theorem(
            label="this method is as near as that",
            claim=convex_strong_attained,
            case=race,
            sides=attained,
            quantity="the distance from the nearest point in reach, relative,",
        ),
    ),
    beside=on_the_chain,
)
