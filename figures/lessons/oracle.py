r"""An oracle is not a free lunch: on a zero chain a communication opens one coordinate, whatever the clients compute.

Theorems: ``zero_chain_support`` (one coordinate a communication) and ``zero_chain_rounds`` (so the gradient stays
large until all are open).
"""

from __future__ import annotations

from functools import cache

import numpy as np

from dualopt.algorithms import FedPD
from dualopt.claims import Verdict, check
from dualopt.solvers import LBFGS, Gradient, Sarah
from dualopt.stopping import Steps
from figures.lessons import Answer, Chart, Curve, Judged, Row, Scene, Slider, Table
from theory.lower_bounds._couplings import Couplings
from theory.lower_bounds._races import WEAK, CentralisedFedAvg, Race, on_chain, reach, zero_chain
from theory.lower_bounds.zero_chain import zero_chain_rounds, zero_chain_support

TITLE = "An oracle is not a free lunch"
QUESTION = (
    "No oracle opens two coordinates in one communication. For each oracle: what is the smallest number of local steps"
    " with which every communication opens one?"
)
CHEAT = "read the gradients of others (not allowed)"
ORACLES = ("Oracle I: gradient steps", "Oracle I: L-BFGS", "Oracle II: SARAH, half of the data", CHEAT)
STEPS = (1, 2, 3, 5, 8, 10, 12, 16, 20, 30)
SLIDERS = (
    Slider(name="oracle", label="oracle of the clients", values=ORACLES, start=ORACLES[0]),
    Slider(name="steps", label="local steps in a round", values=STEPS, start=5),
)
COORDINATES = 12


@cache
def race(oracle: str, steps: int) -> Race:
    """Return FedPD with an oracle on the chain whose links belong to two clients in turn, L = eps = 1."""
    f, stop = zero_chain(2, COORDINATES, split="halves"), Steps(steps=steps)
    if oracle == CHEAT:
        return on_chain(oracle, CentralisedFedAvg(solver=Gradient(step=1.0), stop=stop), f, remember=True)
    solvers = (Gradient(), LBFGS(), Sarah(gamma=1.0, batch=COORDINATES // 4, refresh=1))
    method = FedPD(eta=1.0 / WEAK, solver=solvers[ORACLES.index(oracle)], stop=stop)
    return on_chain(oracle, method, Couplings.of(f), remember=True)


@cache
def every_time(oracle: str, steps: int) -> Verdict:
    """Judge that every communication opens exactly one coordinate."""
    return check(zero_chain_support, race(oracle, steps))


def scene(*, oracle: str, steps: int) -> Scene:
    """Run it for as many communications as the chain has coordinates."""
    case = race(oracle, steps)
    models = np.stack([s.server.theta for s in case.snapshots()])
    opened = np.array([reach(theta) for theta in models])
    square = np.array([case.squared_gradient(theta) for theta in models])
    n, ends = np.arange(1, COORDINATES + 1), [1, COORDINATES]
    coordinates = Chart(
        curves=[Curve(x=n, y=models, label="model of the server", colour=0, role="bars", moving=True)],
        x_label="coordinate of the model",
        y_label="value",
    )
    opening = Chart(
        curves=[
            Curve(x=n, y=opened, label="coordinates opened", colour=0),
            Curve(x=n, y=n, label="one a communication", colour=1, role="theorem"),
        ],
        x_label="communication",
        y_label="coordinates that are not 0",
        rounds=True,
    )
    size = Chart(
        curves=[
            Curve(x=n, y=square, label="|∇E|²", colour=0),
            Curve(x=ends, y=[1.0, 1.0], label="ε: not below it until all are open", colour=1, role="theorem"),
        ],
        x_label="communication",
        y_label="|∇E|²",
        log_y=True,
        rounds=True,
    )
    columns = ["gradient steps so far", "coordinates opened", "at most", "|∇E|²", "ε"]
    row = Row(label=oracle, cells=[steps * n, opened, n, square, 1.0], colour=0)
    support = check(zero_chain_support, case.but(opens_one=False), check_assumptions=False)
    verdicts = [Judged.of(zero_chain_support, support, "one coordinate a communication")]
    if oracle != CHEAT:
        verdicts.append(Judged.of(zero_chain_rounds, check(zero_chain_rounds, case), "large gradient until the end"))
    return Scene(
        charts=[coordinates, opening, size],
        table=Table(first="oracle", columns=columns, rows=[row]),
        verdicts=verdicts,
        answer=answer(oracle, steps, support, int(opened[-1])),
        rounds=COORDINATES,
        shown=6,
    )


def answer(oracle: str, steps: int, support: Verdict, opened: int) -> Answer:
    """Judge these local steps, and the next smaller number of them."""
    full, fewer = every_time(oracle, steps), every_time(oracle, STEPS[max(STEPS.index(steps) - 1, 0)])
    if oracle == CHEAT:
        no = "These clients do not communicate less: they read gradients of others in every local step."
        no += " The theorem does not allow it" + (", and is broken." if support.verdict == "violated" else ".")
    elif full.verdict == "holds":
        no = f"Every communication opens a coordinate, but {steps} steps are more than are needed: the rest is wasted."
    else:
        no = f"{COORDINATES} communications opened {opened} coordinates: compute more between two of them."
    return Answer.of(
        fewer,
        right=lambda v: full.verdict == "holds" and v.verdict == "violated",
        yes=f"With {steps} local steps every communication opens a coordinate. More steps open no second one.",
        no=no,
    )


def expected(*, oracle: str, steps: int) -> dict[str, str]:
    """Return the verdicts: both hold for all oracles; k gradient steps on E itself open k coordinates at once."""
    if oracle == CHEAT:
        return {"one coordinate a communication": "violated" if steps > 1 else "holds"}
    return {"one coordinate a communication": "holds", "large gradient until the end": "holds"}
