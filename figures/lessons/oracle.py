r"""An oracle is not a free lunch: on a zero chain a communication opens one coordinate, whatever the clients compute.

Theorems: ``zero_chain_support`` (one coordinate a communication) and ``zero_chain_rounds`` (so the gradient stays
large until all are open).
"""

from __future__ import annotations

from functools import cache

import numpy as np

from dualopt.methods import FedPD
from dualopt.solvers import LBFGS, Gradient, Sarah
from dualopt.solvers.stopping import Steps
from figures.lessons._charts import Chart, Curve
from figures.lessons._scene import Scene, Slider
from figures.lessons._words import Answer, Table, judge
from theory._cases import Case
from theory.lower_bounds._couplings import Couplings
from theory.lower_bounds._races import WEAK, CentralisedFedAvg, on_chain, reach, zero_chain
from theory.lower_bounds.zero_chain import zero_chain_rounds, zero_chain_support

TITLE = "An oracle is not a free lunch"
QUESTION = (
    "No oracle opens two coordinates in one communication. For each oracle: what is the smallest number of local steps"
    " with which every communication opens one, in double precision?"
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
def race(oracle: str, steps: int) -> Case:
    """Return FedPD with an oracle on the chain whose links belong to two clients in turn, L = eps = 1."""
    f, stop = zero_chain(2, COORDINATES, split="halves"), Steps(steps=steps)
    if oracle == CHEAT:
        return on_chain(oracle, CentralisedFedAvg(solver=Gradient(step=1.0), stop=stop), f, remember=True)
    solvers = (Gradient(), LBFGS(), Sarah(gamma=1.0, batch=COORDINATES // 4, refresh=1))
    method = FedPD(eta=1.0 / WEAK, solver=solvers[ORACLES.index(oracle)], stop=stop)
    return on_chain(oracle, method, Couplings.of(f), remember=True)


def scene(*, oracle: str, steps: int) -> Scene:
    """Run it for as many communications as the chain has coordinates."""
    case, n, ends = race(oracle, steps), np.arange(1, COORDINATES + 1), (1, COORDINATES)
    models, cheats = case.models(), oracle == CHEAT
    opened = np.array([reach(theta) for theta in models])
    square = np.array([case.squared_gradient(theta) for theta in models])
    coordinates = [Curve(y=models, label="model of the server", colour=0, role="bars", moving=True)]
    opening = [
        Curve(y=opened, label="coordinates opened", colour=0),
        Curve(y=n, label="one a communication", colour=1, role="theorem"),
    ]
    size = [
        Curve(y=square, label="|∇E|²", colour=0),
        Curve.level(1.0, ends, "ε: not below it until all are open", colour=1, role="theorem"),
    ]
    # Every communication opens at most one coordinate; exactly one; and so it is with the next smaller number of steps.
    most = case.but(opens_one=False)
    support = judge(
        zero_chain_support,
        most,
        "one coordinate a communication",
        "violated" if cheats and steps > 1 else "holds",
        check_assumptions=False,
    )
    gradient = [] if cheats else [judge(zero_chain_rounds, case, "large gradient until the end")]
    full, fewer = (judge(zero_chain_support, race(oracle, k)) for k in (steps, STEPS[max(STEPS.index(steps) - 1, 0)]))
    if cheats:
        no = "These clients do not communicate less: they read gradients of others in every local step."
        no += " The theorem does not allow it" + (", and is broken." if support.verdict == "violated" else ".")
    elif full.verdict == "holds":
        no = f"Every communication opens a coordinate, but {steps} steps are more than are needed: the rest is wasted."
    else:
        no = f"{COORDINATES} communications opened {opened[-1]} coordinates: compute more between two of them."
    cells = {"gradient steps so far": steps * n, "coordinates opened": opened, "at most": n, "|∇E|²": square, "ε": 1.0}
    counted = {"x_label": "communication", "rounds": True}
    return Scene(
        charts=[
            Chart(curves=coordinates, x_label="coordinate of the model", y_label="value"),
            Chart(curves=opening, y_label="coordinates that are not 0", **counted),
            Chart(curves=size, y_label="|∇E|²", log_y=True, **counted),
        ],
        table=Table.of("oracle", {oracle: cells}),
        verdicts=[support, *gradient],
        answer=Answer.of(
            (full, "holds"),
            (fewer, "violated"),
            yes=f"With {steps} local steps every communication opens a coordinate. More steps open no second one.",
            no=no,
        ),
        rounds=COORDINATES,
        shown=6,
    )
