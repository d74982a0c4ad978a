r"""Six names, one method: FedPD, FedDyn, A-FedPD, FedADMM, FedDR and FedSpeed, until some clients are missing.

Theorems: ``identity_full_participation`` (with all clients the six have the same models) and ``identity_fedadmm_feddr``
(two of them have the same models whoever takes part). FedPD has no rule for clients that are missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dualopt.claims import Inequality, check, claim
from dualopt.engine import Snapshot
from dualopt.participation import UniformSubset
from figures.lessons import Answer, Chart, Curve, Dots, Judged, Lines, Path, Plane, Row, Scene, Slider, Table
from figures.lessons._runs import Accuracy, accuracy
from theory._cases import Case
from theory._problems import solved
from theory._valleys import ellipse, own_minimisers, valleys
from theory.identities._runs import EXACT, Runs, agree
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
ROUNDS, CLIENTS, KAPPA = 24, 4, 16.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Remembered(Runs):
    """Runs whose snapshots are computed once."""

    cases: Mapping[str, Case]

    def snapshots(self, name: str) -> Iterator[Snapshot]:
        """Yield the rounds of one of the methods."""
        return self.cases[name].snapshots()


@claim(
    source="a question, not a theorem",
    statement=r"Two different methods have the same $\theta^n$.",
    assumptions=lambda runs: [] if len(runs.methods) == 2 else ["two different methods"],
)
def two_are_one(runs: Remembered) -> Iterator[Inequality]:
    """Compare the models of two methods."""
    return agree(runs)


def scene(*, active: int, first: str, second: str, weight: float) -> Scene:
    """Run the methods with the same clients in every round."""
    problem, turns = solved("valleys", valleys(CLIENTS, kappa=KAPPA)), UniformSubset(size=active)
    family: dict[str, Any] = {**with_weight(problem, weight, EXACT).methods}
    family |= fedadmm_and_feddr(problem, weight, turns, EXACT).methods  # with the server step P/N
    common: dict[str, Any] = {"rounds": ROUNDS, "participation": turns, "theta0": START}
    here = METHODS if active == CLIENTS else METHODS[:-1]
    cases = {name: Case.of(family[name], problem.objective, name=name, **common) for name in here}
    ends = {name: accuracy(case) for name, case in cases.items()}

    def runs(*names: str) -> Remembered:
        methods = {name: family[name] for name in names}
        return Remembered(name=str(turns), objective=problem.objective, methods=methods, cases=cases, **common)

    asked, apart = check(two_are_one, runs(*{first: 0, second: 0})), distance(cases[first], cases[second])
    if first == second:
        no = "Choose two different methods."
    elif active == CLIENTS:
        no = "With all clients all six are one method, so far as rounding lets one see. Let fewer take part."
    else:
        no = f"With {active} of {CLIENTS} clients {first} and {second} part: up to {max(apart):.2g} from each other."
    return Scene(
        planes=[plane(cases, first, second)],
        charts=charts(cases, ends, first, second),
        table=Table(
            first="method",
            columns=[f"distance from {first}", "E − E*", "certificate"],
            rows=[
                Row(label=name, cells=[distance(cases[first], case), *ends[name]], colour=METHODS.index(name))
                for name, case in cases.items()
            ],
        ),
        verdicts=[
            Judged.of(
                identity_full_participation, check(identity_full_participation, runs(*here)), "all are one method"
            ),
            Judged.of(
                identity_fedadmm_feddr, check(identity_fedadmm_feddr, runs("FedADMM", "FedDR")), "FedADMM is FedDR"
            ),
        ],
        answer=Answer.of(
            asked,
            right=lambda v: active < CLIENTS and v.verdict == "holds",
            yes=f"With {active} of {CLIENTS} clients {first} and {second} have the same models in every round.",
            no=no,
        ),
        rounds=ROUNDS,
        shown=6,
        note="" if active == CLIENTS else "FedPD has no rule for clients that are missing: it is not drawn.",
    )


START = own_minimisers(CLIENTS)[1] + np.array([-3.0, 1.0])


def models(case: Case) -> np.ndarray:
    """Return the model after every round, shape (rounds, 2)."""
    return np.stack([s.server.theta for s in case.snapshots()])


def distance(one: Case, other: Case) -> list[float]:
    """Return how far the models of two methods are apart in every round."""
    return np.linalg.norm(models(one) - models(other), axis=1).tolist()


def plane(cases: Mapping[str, Case], first: str, second: str) -> Plane:
    """Return the clients and the ways of all models, the two that are chosen on top."""
    f, own = cases[first].objective, own_minimisers(CLIENTS)
    marks: list[Any] = [Lines(lines=[ellipse(f.A[j], own[j], 0.2) for j in range(CLIENTS)], label="clients")]
    for name in sorted(cases, key=lambda name: name in (first, second)):
        ink = METHODS.index(name)
        marks += [Path(points=models(cases[name]), colour=ink, label=name, dashed=name == second)]
        marks += [
            Dots(points=models(cases[name])[:, None], colours=ink, shape="ring" if name == second != first else "disc")
        ]
    marks.append(Dots(points=[cases[first].theta], shape="cross", label="solution"))
    return Plane.around(np.concatenate([own, models(cases[first])[:20]]), marks=marks)


def charts(cases: Mapping[str, Case], ends: Mapping[str, Accuracy], first: str, second: str) -> list[Chart]:
    """Return how far the two are apart, and the errors of all with their certificates."""
    rounds = np.arange(1, ROUNDS + 1)
    curves = []
    for name, end in ends.items():
        for role, y in zip(("error", "certificate"), end, strict=True):
            if role == "error" or name in (first, second):
                curves.append(Curve(x=rounds, y=y, label=name, colour=METHODS.index(name), role=role))
    apart = [
        Curve(x=rounds, y=distance(cases[first], case), label=name, colour=METHODS.index(name))
        for name, case in cases.items()
        if name != first
    ]
    return [
        Chart(curves=apart, x_label="round", y_label=f"distance from {first}", rounds=True),
        Chart(curves=curves, x_label="round", y_label="E − E*", log_y=True, rounds=True),
    ]


def expected(*, active: int, first: str, second: str, weight: float) -> dict[str, str]:
    """Return the verdicts: six are one if nobody is missing, and two of them always."""
    return {"all are one method": "holds" if active == CLIENTS else "violated", "FedADMM is FedDR": "holds"}
