r"""Duals that drift: FedADMM with a server step of its own choice on two clients that take turns, beside A-FedPD.

Theorems: ``fedadmm_two_clients`` (where FedADMM ends, or that it diverges, in closed form), ``fedadmm_dual_drift``
(why: the model moves by a multiple of what the duals and local models do) and ``afedpd_in_turn`` (A-FedPD stays).
"""

from __future__ import annotations

import numpy as np

from dualopt.methods import AFedPD
from dualopt.solvers import Exact
from figures.lessons._charts import Chart, Curve
from figures.lessons._planes import Dots, Lines, Plane, way
from figures.lessons._runs import accuracy, error_curves
from figures.lessons._scene import Scene, Slider
from figures.lessons._words import Answer, Table, judge
from theory._cases import Case
from theory._problems import solved
from theory.afedpd._turns import afedpd_in_turn
from theory.afedpd.drift import drift_case, fedadmm_dual_drift
from theory.counterexamples.primal_dual import fedadmm_two_clients, in_turn

TITLE = "Duals that drift"
QUESTION = "Two clients take turns. Which server step makes FedADMM end at the solution for every ρ, and not beside it?"
SERVER_STEPS = (0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.75, 1.0)
WEIGHTS = (0.25, 0.5, 0.8, 1.2, 1.5, 1.9, 2.2, 4.0, 7.0, 12.0, 20.0)  # with 1 the clients forget, and all ends at once
SLIDERS = (
    Slider(name="server", label="server step ηₛ of FedADMM", values=SERVER_STEPS, start=1.0),
    Slider(name="rho", label="weight ρ of the proximal terms", values=WEIGHTS, start=1.5),
)
ROUNDS = 24
ENDS = (1, ROUNDS)


def scene(*, server: float, rho: float) -> Scene:
    """Run both methods on x²/2 and (x - 2)²/2, which are active in turn, from the model 0."""
    run = in_turn(rho, server).but(rounds=ROUNDS, remember=True)
    f, common = run.objective, {"rounds": ROUNDS, "participation": run.participation, "theta0": run.theta0}
    methods = {"FedADMM": run.algorithm, "A-FedPD": AFedPD(rho=rho, solver=Exact())}
    cases = {name: Case.of(method, f, **common) for name, method in methods.items()}
    two = {"server_step": server, "active": 1, "rounds": ROUNDS, "arrives": False, "theta0": run.theta0}
    drifting = drift_case(solved("two clients", f), rho=rho, **two)
    found = {name: accuracy(case) for name, case in cases.items()}
    models = {name: case.models()[:, 0] for name, case in cases.items()}
    duals = {name: np.stack([s.clients.dual[:, 0] for s in case.snapshots()]) for name, case in cases.items()}
    end = f"ends at {run.limit:.3g}, the solution is {run.solution:g}" if run.converges else "diverges"
    curves = [Curve(y=models[name], label=name, colour=k) for k, name in enumerate(cases)]
    curves.append(Curve.level(1.0, ENDS, "solution", role="theorem"))
    if run.converges:
        curves.append(Curve.level(run.limit, ENDS, "limit of FedADMM", colour=0))
    errors = [curve for k, name in enumerate(cases) for curve in error_curves(name, k, found[name])]
    rows = {
        name: {
            "model θ": models[name],
            "mean of the duals": np.mean(duals[name], axis=1),
            "E − E*": e,
            "certificate": gap,
        }
        for name, (e, gap) in found.items()
    }
    # Duals of one client against those of the other one.
    marks = [
        Lines(lines=[[(-9.0, 9.0), (9.0, -9.0)]], label="their mean is 0"),
        *(mark for k, name in enumerate(duals) for mark in way(duals[name], colour=k, label=f"duals of {name}")),
        Dots(points=[-cases["A-FedPD"].subgradients[:, 0]], shape="cross", label="duals at the solution"),
    ]
    return Scene(
        planes=[
            Plane(marks=marks, x=(-3.0, 3.0), y=(-1.5, 2.5), x_label="dual λ₁ of client 1", y_label="λ₂ of client 2")
        ],
        charts=[
            Chart.over_rounds("model θ", curves, log_y=False, y_range=(-3.0, 5.0)),
            Chart.over_rounds("E − E*", errors),
        ],
        table=Table.of("method", rows),
        verdicts=[
            judge(fedadmm_two_clients, run, f"FedADMM {end}"),
            judge(fedadmm_dual_drift, drifting, "where the model of FedADMM must be"),
            judge(afedpd_in_turn, cases["A-FedPD"], "A-FedPD stays, in a cycle of two models"),
        ],
        answer=Answer.of(  # the claim, told that the solution is where the method ends
            (judge(fedadmm_two_clients, run.but(converges=True, limit=run.solution)), "holds"),
            yes=f"With ηₛ = {server:g} = P/N FedADMM ends at the solution. Move ρ: it still does.",
            no=f"With ηₛ = {server:g} and ρ = {rho:g} FedADMM {end}: its duals do not sum to zero.",
        ),
        rounds=ROUNDS,
        shown=6,
        note="While clients take turns A-FedPD does not rest: it ends in two models, whose middle is the solution.",
    )
