r"""The worst problem: how much the theorem promises, how bad it can be at all, and how bad you can make it.

Theorems: ``theorem_3_2`` (DualFL without smoothness, :math:`|\theta^n - \theta^*|^2 \le 4|\xi^*|^2/(N\nu^2(n+1)^2)`),
and the exact worst case of n rounds over all convex losses, a semidefinite program made from the code of DualFL. Two
clients :math:`s_j|x - m_j| + x^2/2` attain it in the first round; later the worst losses have more than one kink.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np

from dualopt.lab.claims import Inequality, claim
from dualopt.losses import AbsoluteDeviation
from dualopt.methods import CorrectedDualFL, DualFL
from dualopt.objectives import LinearModel, linear_model
from dualopt.solvers import DualCoordinate
from dualopt.solvers.stopping import Gap
from figures.lessons._charts import Chart, Curve
from figures.lessons._planes import Handle, Lines, Plane
from figures.lessons._runs import accuracy
from figures.lessons._scene import Scene, Slider
from figures.lessons._words import Answer, Table, asked, judge
from theory._cases import Case
from theory.dualfl.exact_solutions import theorem_3_2

TITLE = "The worst problem"
QUESTION = (
    "Two clients sⱼ|x − mⱼ| + x²/2 are yours: drag their kinks mⱼ and slopes sⱼ. Can you touch the exact worst case,"
    " to 1%? In which round?"
)
PLACES = tuple(round(0.25 * k, 2) for k in range(-8, 13))
FIRST = tuple(m for m in PLACES if m)  # with both kinks at 0, where the method starts, there is nothing to do
SLOPES = {"values": (0.05, 0.1, 0.2, 0.4, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0), "exported": (0.2, 0.7, 3.0)}
SLIDERS = (
    Slider(name="n", label="rounds n", values=(1, 2, 3, 4, 5, 6, 8), start=2, exported=(1, 2)),
    Slider(name="m1", label="kink m₁ of client 1", values=FIRST, start=2.0, exported=(-1.0, 0.5, 2.0)),
    Slider(name="s1", label="slope s₁", start=0.7, **SLOPES),
    Slider(name="m2", label="kink m₂ of client 2", values=PLACES, start=-0.5, exported=(-0.5, 0.0, 1.5)),
    Slider(name="s2", label="slope s₂", start=3.0, **SLOPES),
)
ROUNDS = 8
EXACTLY = {"solver": DualCoordinate(max_iter=20_000), "stop": Gap(schedule=lambda _: 1e-13)}
CERTIFIED = 1e-5  # of the value: how far primal and dual value of the program may differ
ERROR = "|θⁿ − θ*|² / |ξ*|²"


@cache
def largest(n: int) -> float:
    r"""Return the worst :math:`|\theta^n - \theta^*|^2` where :math:`\sum_j|\xi_j^*|^2 = 1` and N = 2, nu = 1.

    Examples
    --------
    >>> round(largest(1), 6)
    0.125
    """
    from dualopt.lab.proofs import worst_case  # its solver takes a second to be imported

    method = DualFL(rho=0.0, nu=1.0)
    return worst_case(method, mu=1.0, L=math.inf, clients=2, rounds=n, start=(2.0, 1.0)).value


def promised(n: int) -> float:
    """Return the bound of Theorem 3.2 in the same unit."""
    return 2.0 / (n + 1) ** 2


@claim(
    source="Taylor, Hendrickx and Glineur 2017, on DualFL",
    statement=r"$|\theta^n - \theta^*|^2/|\xi^*|^2$ is at most the value of the semidefinite program, and that at most"
    r" the bound of Theorem 3.2.",
    rtol=CERTIFIED,
)
def exact_worst_case(errors: Sequence[float]) -> Iterator[Inequality]:
    """Compare errors of rounds 1, 2, ..., in the unit of the theorem, with the worst ones, and those with it."""
    for n, error in enumerate(errors, start=1):
        yield Inequality(n, error, largest(n), "error")
        yield Inequality(n, largest(n), promised(n), "worst case")


def clients(m1: float, s1: float, m2: float, s2: float) -> LinearModel:
    """Return the two clients, one row each: the loss of a row is s |x - m|."""
    slopes, labels = np.array([[s1], [s2]]), np.array([s1 * m1, s2 * m2])
    return linear_model(slopes, labels, loss=AbsoluteDeviation(), mu=1.0, clients=2, intercept=False)


def scene(*, n: int, m1: float, s1: float, m2: float, s2: float) -> Scene:
    """Run DualFL with rho = 0 on the two clients."""
    case = Case.of(
        CorrectedDualFL(rho=0.0, nu=1.0, **EXACTLY), clients(m1, s1, m2, s2), rounds=ROUNDS, name="two clients"
    )
    unit = float(np.sum((case.subgradients - case.theta) ** 2))  # |xi*|^2 for nu = 1
    models = case.models()
    errors = [case.distance(theta) / unit for theta in models]
    error, worst, bound = errors[n - 1], [largest(k) for k in range(1, n + 1)], promised(n)
    energy, gap = accuracy(case)
    race = [
        Curve(y=[promised(k) for k in range(1, ROUNDS + 1)], label="Theorem 3.2", colour=1, role="theorem"),
        Curve(y=worst, label="exact worst case", colour=1, role="points"),
        Curve(y=errors, label="your clients", colour=0),
    ]
    cells = {ERROR: error, "exact worst case": worst[-1], "Theorem 3.2": bound}
    cells |= {"share of the worst case": error / worst[-1], "E − E*": energy[n - 1], "certificate": gap[n - 1]}
    return Scene(
        planes=[plane(m1, s1, m2, s2)],
        charts=[
            Chart(curves=race, x_label="round", y_label=ERROR, log_y=True, y_range=(1e-4, 0.6)),
            landscape(case, float(models[n - 1][0])),
        ],
        table=Table.of("clients", {f"yours, n = {n}": cells}),
        verdicts=[
            judge(theorem_3_2, case, "Theorem 3.2 of DualFL"),
            judge(exact_worst_case, tuple(errors[:n]), "no clients are worse than the worst case"),
        ],
        answer=Answer.of(
            (asked((0.99 * worst[-1], error)), "holds"),
            yes=f"Touched: for n = {n} no convex clients are worse than yours. The theorem promises only"
            f" {bound:.3g}, {bound / worst[-1]:.2g} times as much.",
            no=f"For n = {n} your clients reach {error / worst[-1]:.0%} of the exact worst case.",
        ),
    )


def plane(m1: float, s1: float, m2: float, s2: float) -> Plane:
    """Return the clients as points: their kinks, and their slopes."""
    marks = [
        Lines(lines=[[(0.0, 0.01), (0.0, 20.0)]], label="where the method starts", faint=False),
        Handle(at=(m1, s1), x="m1", y="s1", label="client 1: drag it", colour=3),
        Handle(at=(m2, s2), x="m2", y="s2", label="client 2: drag it", colour=4),
    ]
    axes = {"x_label": "kink m", "y_label": "slope s", "equal": False, "log_y": True}
    return Plane(marks=marks, x=(-2.4, 3.4), y=(0.035, 11.0), **axes)


def landscape(case: Case, model: float) -> Chart:
    """Return the functions of the clients and their mean, with the model after n rounds."""
    x, best = np.linspace(-2.4, 3.4, 117), float(case.theta[0])
    values = np.stack([case.objective.value(np.array([at])) for at in x], axis=1)
    curves = [Curve(x=x, y=values[j], label=f"client {j + 1}", colour=3 + j, role="limit") for j in range(2)]
    curves.append(Curve(x=x, y=np.mean(values, axis=0), label="E"))
    marks = [(best, "θ*"), (model, "θⁿ")]
    if abs(best - model) <= 0.8:  # too near for two words
        marks = [(max(best, model), "θ*, θⁿ"), (min(best, model), "")]
    return Chart(curves=curves, x_label="x", y_label="energy", marks=marks, y_range=(0.0, 8.0))
