r"""A coin to save messages: what FedPD pays for rounds without communication, and Scaffnew does not.

Theorems: ``fedpd_theorem_3``, a bound with a term that does not vanish, and ``scaffnew_one_step``, a contraction.
"""

from __future__ import annotations

from functools import cache
from itertools import islice

import numpy as np

from dualopt.methods import Scaffnew
from dualopt.methods.participation import CommunicateWithProbability
from dualopt.objectives import Quadratic
from dualopt.solvers import Gradient
from figures.lessons._charts import Chart, Curve
from figures.lessons._scene import Scene, Slider
from figures.lessons._words import Answer, Table, compared, judge
from theory._cases import Case
from theory._rounds import expected_squares
from theory.baselines.contraction import scaffnew_one_step
from theory.fedpd._runs import fedpd_case
from theory.fedpd.skipping import bounds, drift, theorem_3

TITLE = "A coin to save messages"
QUESTION = (
    "Clients skip a communication with probability p. What is the largest p on the slider for which Theorem 3 of FedPD"
    " still says more than what is known without it? Make the clients more alike, and look again."
)
SKIPS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
SLIDERS = (
    Slider(name="p", label="probability p of skipping", values=SKIPS, start=0.7),
    Slider(name="apart", label="G, how different the gradients are", values=(0.003, 0.01, 0.03, 0.1), start=0.03),
)
ROUNDS, STEP = 100, 0.1  # the latter is L eta of FedPD
APART = "E |x₁ − x₂|²"


@cache
def fedpd(p: float, apart: float) -> Case:
    """Return FedPD on two clients with one Hessian, whose gradients differ by ``apart`` everywhere."""
    b = np.array([0.5, 0.2]) + apart * np.array([[0.3, 0.4], [-0.3, -0.4]])
    f = Quadratic(A=np.tile(np.diag([0.25, 1.0]), (2, 1, 1)), b=b)
    return fedpd_case("FedPD", f, skip=p, a=STEP, rounds=ROUNDS)


def scaffnew(p: float, apart: float) -> Case:
    """Return Scaffnew on the same clients with the same coin."""
    case, often = fedpd(p, apart), CommunicateWithProbability(probability=1.0 - p)
    method = Scaffnew(probability=1.0 - p, solver=Gradient(step=1.0 / case.L))
    return Case.of(method, case.objective, rounds=ROUNDS, participation=often, theta0=case.theta0)


def scene(*, p: float, apart: float) -> Scene:
    """Follow exact expectations over the coins: the mean gradient of FedPD, and how far the models are apart."""
    case, other = fedpd(p, apart), scaffnew(p, apart)
    means, bound = np.array([(q.lhs, q.rhs) for q in compared(theorem_3, case)]).T
    start = case.squared_gradient(case.theta0)
    moments = islice(drift(p, a=case.a, h=case.eta * case.dissimilarity), 1, ROUNDS + 1)
    most = [moment.copies for moment in moments]
    skipped = expected_squares(case, lambda s: s.clients.x0[0] - s.clients.x0[1])
    controlled = expected_squares(other, lambda s: s.clients.theta[0] - s.clients.theta[1])
    distances = [
        Curve(y=skipped, label="FedPD", colour=0),
        Curve(y=most, label="FedPD, proof of Theorem 3", colour=0, role="theorem"),
        Curve(y=controlled, label="Scaffnew", colour=1),
    ]
    descent = [
        Curve(y=means, label="FedPD, mean of |∇E|² up to here", colour=0),
        Curve(y=bound, label="Theorem 3", colour=0, role="theorem"),
        Curve.level(start, (1, ROUNDS), "|∇E|² at the start"),
    ]
    sent, columns = (1.0 - p) * np.arange(1, ROUNDS + 1), ("messages, expected", APART, "mean of |∇E|²", "Theorem 3")
    cells = {"FedPD": (sent, skipped, means, bound), "Scaffnew": (sent, controlled, "", "")}
    here = judge(theorem_3, case, "FedPD: bound of the gradient", says(case))
    more = judge(theorem_3, fedpd(SKIPS[min(SKIPS.index(p) + 1, len(SKIPS) - 1)], apart))
    empty = "Theorem 3 is true and empty here: |∇E|² at the start is a better bound. Skip less."
    return Scene(
        charts=[
            Chart.over_rounds(APART, distances, y_range=(1e-10, 2.0 * max(*most, *controlled))),
            Chart.over_rounds("squared gradient, expected", descent),
        ],
        table=Table.of("method", {name: dict(zip(columns, row, strict=True)) for name, row in cells.items()}),
        verdicts=[here, judge(scaffnew_one_step, other.but(rounds=30), "Scaffnew: contraction")],
        answer=Answer.of(
            (here, "holds"),
            (more, "vacuous"),
            yes=f"With p = {p} a share of {p:.0%} of the messages is saved, and the theorem still promises something.",
            no=empty
            if here.verdict == "vacuous"
            else "Theorem 3 says something here, and it still does if you skip more.",
        ),
        rounds=ROUNDS,
        shown=20,
    )


def says(case: Case) -> str:
    """Return what the verdict must be: Theorem 3 is empty where its bound exceeds the gradient at the start."""
    *_, last = islice(bounds(case, 0.0), ROUNDS)
    return "holds" if last < case.squared_gradient(case.theta0) else "vacuous"
