r"""Six names, one method: FedPD, FedDyn, A-FedPD, FedADMM, FedDR and FedSpeed, until some clients are missing.

Claims: ``identity_full_participation`` (with all clients the six have the same models) and ``identity_fedadmm_feddr``
(two of them have the same models whoever takes part). FedPD has no rule for clients that are missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from dualopt.methods.participation import UniformSubset
from figures.lessons._parts import (
    AskChoice,
    Chapter,
    Chart,
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
from figures.lessons._quantities import constant, linear, squares
from figures.lessons._world import clients, dragged, on_clients, valleys_of
from theory._cases import Case
from theory._problems import solved
from theory.identities._runs import EXACT, SharedRuns
from theory.identities.methods import (
    fedadmm_and_feddr,
    identity_fedadmm_feddr,
    identity_full_participation,
    with_weight,
)

METHODS = ("FedDyn", "A-FedPD", "FedADMM", "FedDR", "FedSpeed")
ROUNDS, CLIENTS, KAPPA, WEIGHT = 24, 4, 16.0, 8.0
ALLOWED = 1e-16  # of the squared size of models: what rounding may make of equal ones


@lru_cache(maxsize=64)
def _runs(u: tuple[float, ...], active: int) -> Mapping[str, Case]:
    problem = solved("valleys", clients(np.array(u), CLIENTS, KAPPA))
    turns = UniformSubset(size=active)
    family = {**with_weight(problem, WEIGHT, EXACT).methods}
    family |= fedadmm_and_feddr(problem, WEIGHT, turns, EXACT).methods  # with the server step P/N
    common: dict[str, Any] = {"rounds": ROUNDS, "participation": turns, "theta0": np.zeros(2)}
    return {name: Case.of(family[name], problem.objective, name=name, **common) for name in METHODS}


def runs(u: np.ndarray, *, active: int) -> SharedRuns:
    """Return the runs of the methods that can do without some clients."""
    return SharedRuns.of(dict(_runs(tuple(u), active)))


def two_runs(u: np.ndarray, *, active: int) -> SharedRuns:
    """Return those of FedADMM and FedDR."""
    return SharedRuns.of({name: _runs(tuple(u), active)[name] for name in ("FedADMM", "FedDR")})


def models(u: np.ndarray, *, active: int) -> dict:
    """Measure the models of all methods, and how far they are from that of FedADMM."""
    found = {name: case.models() for name, case in _runs(tuple(u), active).items()}
    apart = {f"{name}_apart": squares(m - found["FedADMM"], rounds=True) for name, m in found.items()}
    return {name: linear(m, rounds=True) for name, m in found.items()} | apart


def solution(u: np.ndarray) -> dict:
    """Measure the solution."""
    return {"solution": linear(clients(u, CLIENTS, KAPPA).minimiser())}


def _differences(shared: SharedRuns) -> dict:
    first, *others = (np.stack([s.server.theta for s in shared.snapshots(name)]) for name in shared.methods)
    return {
        "n": constant(np.tile(np.arange(1, ROUNDS + 1), len(others))),
        "lhs": squares(np.concatenate([first - other for other in others])),
        "rhs": squares(np.sqrt(ALLOWED) * np.concatenate([first] * len(others))),
    }


def all_differences(u: np.ndarray, *, active: int) -> dict:
    """Measure how far the methods are from the first one."""
    return _differences(runs(u, active=active))


def two_differences(u: np.ndarray, *, active: int) -> dict:
    """Measure how far FedDR is from FedADMM."""
    return _differences(two_runs(u, active=active))


DASHES: dict[str, Dash] = {
    "FedDyn": "solid",
    "A-FedPD": "dashed",
    "FedADMM": "fine",
    "FedDR": "dotted",
    "FedSpeed": "dash-dot",
}
INKS = {"FedDyn": "model", "A-FedPD": "other", "FedADMM": "ink", "FedDR": "guess", "FedSpeed": "third"}

CHAPTER = Chapter(
    title="Six names, one method",
    minutes=8,
    needs=("momentum",),
    drags=dragged(CLIENTS),
    sliders=(Slider(name="active", label="clients that take part, of 4", values=(1, 2, 3, 4), start=2, after=True),),
    rounds=ROUNDS,
    shown=8,
    measures=(models, solution),
    derived={f"{name}_far": Derived(does="root", of=(f"{name}_apart",)) for name in METHODS},
    plane=Plane(
        title="Four clients, and the ways of the models",
        y=(-1.2, 3.2),
        marks=(
            *valleys_of(CLIENTS, KAPPA),
            *(Trail(of=name, label=name, ink=INKS[name], dash=DASHES[name], after=True) for name in METHODS),
            Spot(of="solution", label="solution θ*", shape="cross"),
        ),
    ),
    chart=Chart(
        title="How far each model is from that of FedADMM",
        curves=tuple(
            Curve(of=f"{name}_far", label=name, ink=INKS[name], dash=DASHES[name])
            for name in METHODS
            if name != "FedADMM"
        ),
        x_label="round",
        y_label="distance",
        least=0.1,
        after=True,
    ),
    ask=AskChoice(
        options=(
            "FedDyn and A-FedPD",
            "FedADMM and FedDR",
            "A-FedPD and FedADMM",
            "FedDyn and FedSpeed",
            "no two of them",
        ),
        answer=1,
    ),
    box=(
        Line(who="client j", does="θⱼ ← lowest point of fⱼ + ⟨λⱼ, ·⟩ + ½ w |· − θ|²"),
        Line(who="client j", does="λⱼ ← λⱼ + w (θⱼ − θ)"),
        Line(who="server", does="θ ← mean of the θⱼ + λⱼ / w, with all clients", now="θ = {FedADMM}"),
        Line(who="who rests", does="keeps λⱼ; each paper has its own rule for what its θⱼ counts"),
    ),
    said=(
        Said(
            "Four clients; the solution is {solution}. With all four, all six methods have the same models.",
            after=False,
        ),
        Said(
            "With {active} of 4 clients, in round {n}: FedADMM is at {FedADMM}, FedDR at {FedDR}, FedDyn at"
            " {FedDyn}, A-FedPD at"
            " {A-FedPD}, FedSpeed at {FedSpeed}.",
            after=True,
        ),
        Said("FedPD has no rule for clients that are missing, and is not drawn.", (If("active", "<", 4),), after=True),
    ),
    theorems=(
        Theorem(
            label="all five are one method, with the clients that take part",
            claim=identity_full_participation,
            case=runs,
            sides=all_differences,
            quantity="the squared difference from FedDyn",
        ),
        Theorem(
            label="FedADMM is FedDR",
            claim=identity_fedadmm_feddr,
            case=two_runs,
            sides=two_differences,
            quantity="the squared difference of the models",
        ),
    ),
    beside=on_clients(CLIENTS, KAPPA, rounds=ROUNDS),
)
