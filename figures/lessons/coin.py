r"""A coin to save messages: what FedPD pays for rounds without communication, and Scaffnew does not.

Theorems: ``fedpd_theorem_3``, a bound with a term that does not vanish, and ``scaffnew_one_step``, a contraction.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from dualopt.algorithms import Scaffnew
from dualopt.claims import Inequality, Verdict, check
from dualopt.objectives import Quadratic
from dualopt.participation import CommunicateWithProbability
from dualopt.solvers import Gradient
from figures.lessons import Answer, Chart, Curve, Judged, Row, Scene, Slider, Table
from figures.lessons._expected import expected_squares
from theory._cases import Case
from theory.baselines.contraction import scaffnew_one_step
from theory.fedpd._runs import FedPDCase, fedpd_case
from theory.fedpd.skipping import bounds, drift, theorem_3

TITLE = "A coin to save messages"
QUESTION = (
    "Clients skip a communication with probability p. What is the largest p for which Theorem 3 of FedPD still says"
    " more than what is known without it? Make the clients more alike, and look again."
)
SKIPS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
SLIDERS = (
    Slider(name="p", label="probability p of skipping", values=SKIPS, start=0.7),
    Slider(name="apart", label="G, how different the gradients are", values=(0.003, 0.01, 0.03, 0.1), start=0.03),
)
ROUNDS, STEP = 100, 0.1  # the latter is L eta of FedPD


@cache
def fedpd(p: float, apart: float) -> FedPDCase:
    """Return FedPD on two clients with one Hessian, whose gradients differ by ``apart`` everywhere."""
    b = np.array([0.5, 0.2]) + apart * np.array([[0.3, 0.4], [-0.3, -0.4]])
    f = Quadratic(A=np.tile(np.diag([0.25, 1.0]), (2, 1, 1)), b=b)
    return fedpd_case("FedPD", f, skip=p, a=STEP, rounds=ROUNDS)


@cache
def compared(p: float, apart: float) -> tuple[Inequality, ...]:
    """Return what Theorem 3 compares, once for the picture and the verdict."""
    return tuple(theorem_3.compare(fedpd(p, apart)))


def judged(p: float, apart: float) -> Verdict:
    """Judge Theorem 3: vacuous means that its bound is not below the squared gradient at the start."""
    return check(replace(theorem_3, compare=lambda _: compared(p, apart)), fedpd(p, apart))


def scaffnew(p: float, apart: float) -> Case:
    """Return Scaffnew on the same clients with the same coin."""
    case, often = fedpd(p, apart), CommunicateWithProbability(probability=1.0 - p)
    method = Scaffnew(probability=1.0 - p, solver=Gradient(step=1.0 / case.L))
    return Case.of(method, case.objective, rounds=ROUNDS, participation=often, theta0=case.theta0)


def scene(*, p: float, apart: float) -> Scene:
    """Follow exact expectations over the coins: the mean gradient of FedPD, and how far the models are apart."""
    case, other, n = fedpd(p, apart), scaffnew(p, apart), np.arange(1, ROUNDS + 1)
    means, bound = np.array([(q.lhs, q.rhs) for q in compared(p, apart)]).T
    chain = drift(p, a=case.a, h=case.eta * case.dissimilarity)
    next(chain)  # before the first round
    most = [moments.copies for _, moments in zip(n, chain, strict=False)]
    skipped = expected_squares(case, lambda s: s.clients.x0[0] - s.clients.x0[1])
    controlled = expected_squares(other, lambda s: s.clients.theta[0] - s.clients.theta[1])
    start = case.squared_gradient(case.theta0)
    descent = Chart(
        curves=[
            Curve(x=n, y=means, label="FedPD, mean of |∇E|² up to here", colour=0),
            Curve(x=n, y=bound, label="Theorem 3", colour=0, role="theorem"),
            Curve(x=n[[0, -1]], y=[start, start], label="|∇E|² at the start", role="limit"),
        ],
        x_label="round",
        y_label="squared gradient, expected",
        log_y=True,
        rounds=True,
    )
    apart_chart = Chart(
        curves=[
            Curve(x=n, y=skipped, label="FedPD", colour=0),
            Curve(x=n, y=most, label="FedPD, proof of Theorem 3", colour=0, role="theorem"),
            Curve(x=n, y=controlled, label="Scaffnew", colour=1),
        ],
        x_label="round",
        y_label="E |x₁ − x₂|²",
        log_y=True,
        rounds=True,
        y_range=(1e-10, 2.0 * max(*most, *controlled)),
    )
    sent = (1.0 - p) * n
    rows = [
        Row(label="FedPD", cells=[sent, skipped, means, bound], colour=0),
        Row(label="Scaffnew", cells=[sent, controlled, "", ""], colour=1),
    ]
    here = judged(p, apart)
    more = judged(SKIPS[min(SKIPS.index(p) + 1, len(SKIPS) - 1)], apart) if here.verdict == "holds" else here
    no = (
        "Theorem 3 is true and empty here: |∇E|² at the start is a better bound. Skip less."
        if here.verdict == "vacuous"
        else "Theorem 3 says something here, and it still does if you skip more."
    )
    return Scene(
        charts=[apart_chart, descent],
        table=Table(
            first="method", columns=["messages, expected", "E |x₁ − x₂|²", "mean of |∇E|²", "Theorem 3"], rows=rows
        ),
        verdicts=[
            Judged.of(theorem_3, here, "FedPD: bound of the gradient"),
            Judged.of(scaffnew_one_step, check(scaffnew_one_step, other.but(rounds=30)), "Scaffnew: contraction"),
        ],
        answer=Answer.of(
            more,
            right=lambda v: here.verdict == "holds" and v.verdict == "vacuous",
            yes=f"With p = {p} a share of {p:.0%} of the messages is saved, and the theorem still promises something.",
            no=no,
        ),
        rounds=ROUNDS,
        shown=20,
    )


def expected(*, p: float, apart: float) -> dict[str, str]:
    """Return the verdicts: Theorem 3 is empty where its bound exceeds the gradient at the start."""
    case = fedpd(p, apart)
    *_, last = (b for _, b in zip(range(ROUNDS), bounds(case, 0.0), strict=False))
    says = last < case.squared_gradient(case.theta0)
    return {"FedPD: bound of the gradient": "holds" if says else "vacuous", "Scaffnew: contraction": "holds"}
