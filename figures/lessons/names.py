r"""Six names, one method: FedPD, FedDyn, A-FedPD, FedADMM, FedDR and FedSpeed, until some clients are missing.

Theorems: ``identity_full_participation`` (with all clients the six have the same models) and ``identity_fedadmm_feddr``
(two of them have the same models whoever takes part). FedPD has no rule for clients that are missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from dualopt.methods.participation import UniformSubset
from figures.lessons._charts import Chart, Curve
from figures.lessons._planes import Dots, Lines, Mark, Plane, contours, way
from figures.lessons._runs import Accuracy, accuracy, error_curves
from figures.lessons._scene import Scene, Slider
from figures.lessons._words import Answer, Table, asked, judge
from theory._cases import Case
from theory._problems import solved
from theory._valleys import own_minimisers, valleys
from theory.identities._runs import EXACT, SharedRuns, agree
from theory.identities.methods import (
    fedadmm_and_feddr,
    identity_fedadmm_feddr,
    identity_full_participation,
    with_weight,
)

TITLE = "Six names, one method"
QUESTION = "All four clients take part, and six methods are one. Let fewer take part: which two of them are still one?"
METHODS = ("FedDyn", "A-FedPD", "FedADMM", "FedDR", "FedSpeed", "FedPD")
SLIDERS = (
    Slider(name="active", label="active clients of 4", values=(1, 2, 3, 4), start=4),
    Slider(name="first", label="one method", values=METHODS[:-1], start="FedDyn"),
    Slider(name="second", label="another one", values=METHODS[:-1], start="A-FedPD"),
    Slider(name="weight", label="proximal weight", values=(2, 4, 6, 8, 12, 16, 24), start=8, exported=(8,)),
)
ROUNDS, CLIENTS = 24, 4
START = own_minimisers(CLIENTS)[1] + np.array([-3.0, 1.0])


def scene(*, active: int, first: str, second: str, weight: float) -> Scene:
    """Run the methods with the same clients in every round."""
    cases, found = run(active, weight)
    here, models = tuple(cases), {name: case.models() for name, case in cases.items()}
    apart = {name: np.linalg.norm(models[first] - models[name], axis=1) for name in here}
    column, ink = f"distance from {first}", METHODS.index

    def runs(*chosen: str) -> SharedRuns:
        return SharedRuns.of({name: cases[name] for name in chosen})

    all_one = judge(
        identity_full_participation, runs(*here), "all are one method", "holds" if active == CLIENTS else "violated"
    )
    two_are_one = asked(*((q.lhs, q.rhs) for q in agree(runs(first, second))))  # empty if they are the same one
    if first == second:
        no = "Choose two different methods."
    elif active == CLIENTS:
        no = "With all clients all six are one method, so far as rounding lets one see. Let fewer take part."
    else:
        far = max(apart[second])
        no = f"With {active} of {CLIENTS} clients {first} and {second} part: up to {far:.2g} from each other."
    distances = [Curve(y=apart[name], label=name, colour=ink(name)) for name in here if name != first]
    errors = []  # with certificates for the two that are chosen
    for name in here:
        errors += error_curves(name, ink(name), found[name])[: 1 + (name in (first, second))]
    rows = {name: {column: apart[name], "E − E*": e, "certificate": gap} for name, (e, gap) in found.items()}
    return Scene(
        planes=[plane(models, cases[first], first, second)],
        charts=[
            Chart.over_rounds(column, distances, log_y=False),
            Chart.over_rounds("E − E*", errors),
        ],
        table=Table.of("method", rows, colours=[ink(name) for name in here]),
        verdicts=[all_one, judge(identity_fedadmm_feddr, runs("FedADMM", "FedDR"), "FedADMM is FedDR")],
        answer=Answer.of(
            (all_one, "violated"),
            (two_are_one, "holds"),
            yes=f"With {active} of {CLIENTS} clients {first} and {second} have the same models in every round.",
            no=no,
        ),
        rounds=ROUNDS,
        shown=6,
        note="" if active == CLIENTS else "FedPD has no rule for clients that are missing: it is not drawn.",
    )


@lru_cache(maxsize=8)
def run(active: int, weight: float) -> tuple[Mapping[str, Case], Mapping[str, Accuracy]]:
    """Return the methods' runs, which are the same whichever two are compared, with their errors and certificates."""
    problem, turns = solved("valleys", valleys(CLIENTS, kappa=16.0)), UniformSubset(size=active)
    family = {**with_weight(problem, weight, EXACT).methods}
    family |= fedadmm_and_feddr(problem, weight, turns, EXACT).methods  # with the server step P/N
    here, common = METHODS[: 6 - (active < CLIENTS)], {"rounds": ROUNDS, "participation": turns, "theta0": START}
    cases = {name: Case.of(family[name], problem.objective, name=name, **common) for name in here}
    return cases, {name: accuracy(case) for name, case in cases.items()}


def plane(models: Mapping[str, np.ndarray], case: Case, first: str, second: str) -> Plane:
    """Return the clients and the ways of all models, the two that are chosen on top."""
    f = case.objective
    marks: list[Mark] = [
        Lines(lines=[line for one in contours(f, range(CLIENTS)) for line in one.lines], label="clients")
    ]
    for name in sorted(models, key=lambda name: name in (first, second)):
        shape = "ring" if name == second != first else "disc"
        marks += way(models[name], colour=METHODS.index(name), label=name, dashed=name == second, shape=shape)
    marks.append(Dots(points=[case.theta], shape="cross", label="solution"))
    return Plane.around(np.concatenate([own_minimisers(CLIENTS), models[first][:20]]), marks=marks)
