r"""The worst problem: how much the theorem promises, how bad it can be at all, and how bad you can make it.

Theorems: ``theorem_3_2`` (DualFL without smoothness, :math:`|\theta^n - \theta^*|^2 \le 4|\xi^*|^2/(N\nu^2(n+1)^2)`),
and the exact worst case of n rounds over all convex losses, a semidefinite program (``theory/worst_case``). Two clients
:math:`s_j|x - m_j| + x^2/2` attain it in the first round; later the worst losses have more than one kink.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np

from dualopt.algorithms import DualFL
from dualopt.claims import Inequality, check, claim
from dualopt.losses import AbsoluteDeviation
from dualopt.objectives import LinearModel, linear_model
from dualopt.solvers import DualCoordinate
from dualopt.stopping import Gap
from figures.lessons import Answer, Chart, Curve, Handle, Judged, Lines, Plane, Row, Scene, Slider, Table
from figures.lessons._runs import accuracy
from theory._cases import Case
from theory.dualfl.exact_solutions import theorem_3_2

TITLE = "The worst problem"
QUESTION = (
    "Two clients sⱼ|x − mⱼ| + x²/2 are yours: drag their kinks mⱼ and slopes sⱼ. Can you touch the exact worst case,"
    " to 1%? In which round?"
)
PLACES = tuple(round(0.25 * k, 2) for k in range(-8, 13))
FIRST = tuple(m for m in PLACES if m)  # with both kinks at 0, where the method starts, there is nothing to do
SLOPES = (0.05, 0.1, 0.2, 0.4, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0)
STEEP = (0.2, 0.7, 3.0)
SOLVER = {"solver": DualCoordinate(max_iter=20_000), "stop": Gap(schedule=lambda _: 1e-13), "corrected": True}
SLIDERS = (
    Slider(name="n", label="rounds n", values=(1, 2, 3, 4, 5, 6, 8), start=2, exported=(1, 2)),
    Slider(name="m1", label="kink m₁ of client 1", values=FIRST, start=2.0, exported=(-1.0, 0.5, 2.0)),
    Slider(name="s1", label="slope s₁", values=SLOPES, start=0.7, exported=STEEP),
    Slider(name="m2", label="kink m₂ of client 2", values=PLACES, start=-0.5, exported=(-0.5, 0.0, 1.5)),
    Slider(name="s2", label="slope s₂", values=SLOPES, start=3.0, exported=STEEP),
)
ROUNDS = 8
CERTIFIED = 1e-5  # of the value: how far primal and dual value of the program may differ


@cache
def largest(n: int) -> float:
    r"""Return the worst :math:`|\theta^n - \theta^*|^2` where :math:`\sum_j|\xi_j^*|^2 = 1`."""
    from theory.worst_case.dualfl import worst_case  # CVXPY takes a second to be imported, and other lessons need none

    return worst_case(n).value


def promised(n: int) -> float:
    """Return the bound of Theorem 3.2 in the same unit, for two clients and nu = 1."""
    return 2.0 / (n + 1) ** 2


@claim(
    source="Taylor, Hendrickx and Glineur 2017, on DualFL",
    statement=r"$|\theta^n - \theta^*|^2/|\xi^*|^2$ is at most the value of the semidefinite program, and that at most"
    r" the bound of Theorem 3.2.",
    rtol=CERTIFIED,
)
def exact_worst_case(errors: dict[int, float]) -> Iterator[Inequality]:
    """Compare errors, in the unit of the theorem, with the worst ones, and those with the theorem."""
    for n, error in errors.items():
        yield Inequality(n, error, largest(n), "error")
        yield Inequality(n, largest(n), promised(n), "worst case")


@claim(source="a question, not a theorem", statement=r"The error is at least 99% of the exact worst case.")
def touched(errors: dict[int, float]) -> Iterator[Inequality]:
    """Compare the last of the errors."""
    n, error = list(errors.items())[-1]
    yield Inequality(n, 0.99 * largest(n), error, "99% of the worst case")


def clients(m1: float, s1: float, m2: float, s2: float) -> LinearModel:
    """Return the two clients, one row each: the loss of a row is s |x - m|."""
    slopes, labels = np.array([[s1], [s2]]), np.array([s1 * m1, s2 * m2])
    return linear_model(slopes, labels, loss=AbsoluteDeviation(), mu=1.0, clients=2, intercept=False)


def scene(*, n: int, m1: float, s1: float, m2: float, s2: float) -> Scene:
    """Run DualFL with rho = 0 on the two clients."""
    f = clients(m1, s1, m2, s2)
    case = Case.of(DualFL(rho=0.0, nu=1.0, **SOLVER), f, rounds=ROUNDS, name="two clients")
    unit = float(np.sum((case.subgradients - case.theta) ** 2))  # |xi*|^2 for nu = 1
    models = [float(s.server.theta[0]) for s in case.snapshots()]
    errors = {k: case.distance(s.server.theta) / unit for k, s in enumerate(case.snapshots(), start=1)}
    seen = {k: errors[k] for k in range(1, n + 1)}
    worst, bound = [largest(k) for k in seen], promised(n)
    energy, gap = accuracy(case)
    share = errors[n] / worst[-1]
    curves = [
        Curve(x=list(errors), y=[promised(k) for k in errors], label="Theorem 3.2", colour=1, role="theorem"),
        Curve(x=list(seen), y=worst, label="exact worst case", colour=1, role="points"),
        Curve(x=list(errors), y=list(errors.values()), label="your clients", colour=0),
    ]
    race = Chart(curves=curves, x_label="round", y_label="|θⁿ − θ*|² / |ξ*|²", log_y=True, y_range=(1e-4, 0.6))
    cells = [errors[n], worst[-1], bound, share, energy[n - 1], gap[n - 1]]
    columns = [
        "|θⁿ − θ*|² / |ξ*|²",
        "exact worst case",
        "Theorem 3.2",
        "share of the worst case",
        "E − E*",
        "certificate",
    ]
    return Scene(
        planes=[plane(m1, s1, m2, s2)],
        charts=[race, landscape(case, n, models)],
        table=Table(first="clients", columns=columns, rows=[Row(label=f"yours, n = {n}", cells=cells, colour=0)]),
        verdicts=[
            Judged.of(theorem_3_2, check(theorem_3_2, case), "Theorem 3.2 of DualFL"),
            Judged.of(exact_worst_case, check(exact_worst_case, seen), "no clients are worse than the worst case"),
        ],
        answer=Answer.of(
            check(touched, seen),
            right=lambda v: v.verdict == "holds",
            yes=f"Touched: for n = {n} no convex clients are worse than yours. The theorem promises only"
            f" {bound:.3g}, {bound / worst[-1]:.2g} times as much.",
            no=f"For n = {n} your clients reach {share:.0%} of the exact worst case.",
        ),
    )


def plane(m1: float, s1: float, m2: float, s2: float) -> Plane:
    """Return the clients as points: their kinks, and their slopes."""
    marks = [
        Lines(lines=[[(0.0, 0.01), (0.0, 20.0)]], label="where the method starts", faint=False),
        Handle(at=(m1, s1), x="m1", y="s1", label="client 1: drag it", colour=3),
        Handle(at=(m2, s2), x="m2", y="s2", label="client 2: drag it", colour=4),
    ]
    return Plane(
        marks=marks, x=(-2.4, 3.4), y=(0.035, 11.0), x_label="kink m", y_label="slope s", equal=False, log_y=True
    )


def landscape(case: Case, n: int, models: list[float]) -> Chart:
    """Return the functions of the clients and their mean, with the model after n rounds."""
    x = np.linspace(-2.4, 3.4, 117)
    values = np.stack([case.objective.value(np.array([at])) for at in x], axis=1)
    curves = [Curve(x=x, y=values[j], label=f"client {j + 1}", colour=3 + j, role="limit") for j in range(2)]
    curves.append(Curve(x=x, y=np.mean(values, axis=0), label="E"))
    best, model = float(case.theta[0]), models[n - 1]
    marks = (
        [(best, "θ*"), (model, "θⁿ")]
        if abs(best - model) > 0.8
        else [(max(best, model), "θ*, θⁿ"), (min(best, model), "")]
    )
    return Chart(curves=curves, x_label="x", y_label="energy", marks=marks, y_range=(0.0, 8.0))


def expected(*, n: int, m1: float, s1: float, m2: float, s2: float) -> dict[str, str]:
    """Return the verdicts: both bounds hold for all convex clients."""
    return {"Theorem 3.2 of DualFL": "holds", "no clients are worse than the worst case": "holds"}
