r"""Duals that drift: FedADMM with a server step of its own choice on two clients that take turns, beside A-FedPD.

Theorems: ``fedadmm_two_clients`` (where FedADMM ends, or that it diverges, in closed form), ``fedadmm_dual_drift``
(why: the model moves by a multiple of what the duals and local models do) and ``afedpd_in_turn`` of this file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from dualopt.algorithms import AFedPD
from dualopt.claims import Inequality, check, claim
from dualopt.solvers import Exact
from figures.lessons import Answer, Chart, Curve, Dots, Judged, Lines, Path, Plane, Row, Scene, Slider, Table
from figures.lessons._runs import accuracy
from theory._cases import Case
from theory._claims import ROUNDING, deviation
from theory._problems import solved
from theory.afedpd.drift import drift_case, fedadmm_dual_drift
from theory.counterexamples.primal_dual import drift, fedadmm_two_clients, in_turn

TITLE = "Duals that drift"
QUESTION = "Two clients take turns. Which server step makes FedADMM end at the solution for every ρ, and not beside it?"
SERVER_STEPS = (0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.75, 1.0)
WEIGHTS = (0.25, 0.5, 0.8, 1.2, 1.5, 1.9, 2.2, 4.0, 7.0, 12.0, 20.0)  # with 1 the clients forget, and all ends at once
SLIDERS = (
    Slider(name="server", label="server step ηₛ of FedADMM", values=SERVER_STEPS, start=1.0),
    Slider(name="rho", label="weight ρ of the proximal terms", values=WEIGHTS, start=1.5),
)
ROUNDS = 24
NAMES = ("FedADMM", "A-FedPD")


@claim(
    source="Sun, Shen and Tao, Algorithm 1 on two clients, derived",
    statement=r"A-FedPD on $\frac a2(x - m_1)^2$ and $\frac a2(x - m_2)^2$, which are active in turn:"
    r" $\theta^{n+3} - \theta^{n+1} = \frac\rho{a + \rho}(\theta^{n+2} - \theta^n)$ for $n \ge 1$, so that"
    r" the models of every second round converge.",
)
def afedpd_in_turn(case: Case) -> Iterator[Inequality]:
    r"""A-FedPD on two clients that take turns: it does not drift, and ends in a cycle of two models.

    Both clients have one dual :math:`\lambda`. With :math:`\alpha = \frac\rho{a + \rho}` the active client ends at
    :math:`\theta_j = \alpha e + (1 - \alpha)m_j`, :math:`e = \theta - \lambda/\rho`; then
    :math:`\theta^+ = 2\theta_j - e` and :math:`\lambda^+/\rho = \theta_j - e`, so that :math:`e^+ = \theta_j`. Two
    rounds later the same client is active, and differences shrink by :math:`\alpha`. In the cycle the two e have the
    mean of :math:`m_1` and :math:`m_2`, the solution, and so have the two models.

    Compare the differences of every second model.
    """
    rho, a = case.algorithm.rho, case.L
    theta = np.array([float(s.server.theta[0]) for s in case.snapshots()])
    moved, size = theta[2:] - theta[:-2], float(np.max(np.abs(theta)))
    for n, (before, after) in enumerate(pairwise(moved), start=1):
        yield Inequality(n, deviation(after, rho / (a + rho) * before, scale=size), ROUNDING, "every second model")


def scene(*, server: float, rho: float) -> Scene:
    """Run both methods on x²/2 and (x - 2)²/2, which are active in turn, from the model 0."""
    run = in_turn(rho, server).but(rounds=ROUNDS, remember=True)
    f, turns, start = run.objective, run.participation, run.theta0
    common: dict[str, Any] = {"rounds": ROUNDS, "participation": turns, "theta0": start}
    cases = {
        "FedADMM": Case.of(run.algorithm, f, **common),
        "A-FedPD": Case.of(AFedPD(rho=rho, solver=Exact()), f, **common),
    }
    drifting = drift_case(
        solved("two clients", f), rho=rho, server_step=server, active=1, rounds=ROUNDS, arrives=False, theta0=start
    )
    # The same claim, told that the solution is where the method ends.
    right = check(fedadmm_two_clients, run.but(converges=True, limit=run.solution))
    end = f"ends at {run.limit:.3g}, the solution is {run.solution:g}" if run.converges else "diverges"
    answer = Answer.of(
        right,
        right=lambda v: v.verdict == "holds",
        yes=f"With ηₛ = {server:g} = P/N FedADMM ends at the solution. Move ρ: it still does.",
        no=f"With ηₛ = {server:g} and ρ = {rho:g} FedADMM {end}: its duals do not sum to zero.",
    )
    return Scene(
        planes=[plane(cases)],
        charts=charts(cases, run.limit if run.converges else None),
        table=table(cases),
        verdicts=[
            Judged.of(fedadmm_two_clients, check(fedadmm_two_clients, run), f"FedADMM {end}"),
            Judged.of(fedadmm_dual_drift, check(fedadmm_dual_drift, drifting), "where the model of FedADMM must be"),
            Judged.of(
                afedpd_in_turn, check(afedpd_in_turn, cases["A-FedPD"]), "A-FedPD stays, in a cycle of two models"
            ),
        ],
        answer=answer,
        rounds=ROUNDS,
        shown=6,
        note="While clients take turns A-FedPD does not rest: it ends in two models, whose middle is the solution.",
    )


def plane(cases: Mapping[str, Case]) -> Plane:
    """Return the duals of the first client against those of the second one; where they agree they sum to zero."""
    marks: list[Any] = [
        Lines(lines=[[(-9.0, 9.0), (9.0, -9.0)]], label="their mean is 0"),
    ]
    for colour, (name, case) in enumerate(cases.items()):
        duals = np.stack([s.clients.dual[:, 0] for s in case.snapshots()])
        marks += [
            Path(points=duals, colour=colour, label=f"duals of {name}"),
            Dots(points=duals[:, None], colours=colour),
        ]
    best = -np.asarray(cases["A-FedPD"].subgradients)[:, 0]
    marks.append(Dots(points=[best], shape="cross", label="duals at the solution"))
    return Plane(marks=marks, x=(-3.0, 3.0), y=(-1.5, 2.5), x_label="dual λ₁ of client 1", y_label="λ₂ of client 2")


def charts(cases: Mapping[str, Case], limit: float | None) -> list[Chart]:
    """Return the models, and their errors with certificates."""
    rounds = np.arange(1, ROUNDS + 1)
    models, errors = [], []
    for colour, (name, case) in enumerate(cases.items()):
        theta = [float(s.server.theta[0]) for s in case.snapshots()]
        models.append(Curve(x=rounds, y=theta, label=name, colour=colour))
        for role, y in zip(("error", "certificate"), accuracy(case), strict=True):
            errors.append(Curve(x=rounds, y=y, label=name, colour=colour, role=role))
    models.append(Curve(x=[1, ROUNDS], y=[1.0, 1.0], label="solution", role="theorem"))
    if limit is not None:
        models.append(Curve(x=[1, ROUNDS], y=[limit, limit], label="limit of FedADMM", colour=0, role="limit"))
    return [
        Chart(curves=models, x_label="round", y_label="model θ", rounds=True, y_range=(-3.0, 5.0)),
        Chart(curves=errors, x_label="round", y_label="E − E*", log_y=True, rounds=True),
    ]


def table(cases: Mapping[str, Case]) -> Table:
    """Return models, mean duals, errors and certificates."""
    rows = []
    for colour, (name, case) in enumerate(cases.items()):
        seen = list(case.snapshots())
        means = [float(np.mean(s.clients.dual)) for s in seen]
        cells = [[float(s.server.theta[0]) for s in seen], means, *accuracy(case)]
        rows.append(Row(label=name, cells=cells, colour=colour))
    return Table(first="method", columns=["model θ", "mean of the duals", "E − E*", "certificate"], rows=rows)


def expected(*, server: float, rho: float) -> dict[str, str]:
    """Return the verdicts: closed form and identities hold for all parameters, whether or not the method converges."""
    c = drift(rho, server)
    end = f"ends at {1.0 / (1.0 - c):.3g}, the solution is 1" if c < 1.0 else "diverges"
    return {
        f"FedADMM {end}": "holds",
        "where the model of FedADMM must be": "holds",
        "A-FedPD stays, in a cycle of two models": "holds",
    }
