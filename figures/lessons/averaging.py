r"""Averaging is biased: FedAvg ends where its local steps lead, which is not at the solution.

Theorem: ``fedavg_bias``, the limit in closed form. It is the solution for one local step, or clients that agree.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dualopt.algorithms import FedAvg
from dualopt.claims import Inequality, check, claim
from dualopt.solvers import Gradient
from dualopt.stopping import Steps
from figures.lessons import Answer, Chart, Curve, Dots, Judged, Lines, Path, Plane, Row, Scene, Slider, Table
from figures.lessons._runs import accuracy
from theory._cases import Case
from theory._valleys import ellipse, own_minimisers, valleys
from theory.baselines.bias import enough, factor, fedavg_bias, fedavg_limit

TITLE = "Averaging is biased"
QUESTION = (
    "Which is the first number K of local steps for which FedAvg ends at a distance of 1 or more from the solution?"
)
STEPS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
SLIDERS = (
    Slider(name="steps", label="local steps K", values=STEPS, start=1),
    Slider(
        name="apart",
        label="how different the clients are",
        values=tuple(round(0.1 * k, 1) for k in range(16)),
        start=1.2,
        exported=(0, 0.4, 0.8, 1.2, 1.5),
    ),
)
KAPPA, ANGLE = 16.0, 1.0
MOST_SHOWN = 60  # rounds; the claim looks at all until the limit


@claim(
    source="a question, not a theorem",
    statement=r"$|\theta_\infty(K') - \theta^*| \le 1 \le |\theta_\infty(K) - \theta^*|$ for consecutive $K' < K$.",
)
def first_wrong_by_one(distances: tuple[float, float]) -> Iterator[Inequality]:
    """Compare the distances of two limits, with fewer and with more steps, with 1."""
    fewer, more = distances
    yield Inequality(0, fewer, 1.0, "fewer steps")
    yield Inequality(1, 1.0, more, "this number of steps")


def scene(*, steps: int, apart: float) -> Scene:
    """Run FedAvg on two clients until it rests; its limit has a closed form."""
    f = valleys(2, kappa=KAPPA, apart=apart, angle=ANGLE)
    step = 1.0 / float(np.max(f.L))
    rounds = enough(factor(step * float(np.min(f.mu)), 1.0, steps))
    case = Case.of(FedAvg(solver=Gradient(step=step), stop=Steps(steps=steps)), f, rounds=rounds, name="FedAvg")
    limits = np.stack([fedavg_limit(f, step=step, K=K) for K in STEPS])
    distances = np.linalg.norm(limits - case.theta, axis=1)
    k = STEPS.index(steps)
    models = np.stack([s.server.theta for s in case.snapshots()])
    measured = np.linalg.norm(models - case.theta, axis=1)

    n = min(rounds, MOST_SHOWN)
    error, gap = accuracy(case, n)
    floor = case.error(limits[k])
    energies = Chart(
        curves=[
            Curve(x=np.arange(1, n + 1), y=error, label="FedAvg", colour=0),
            Curve(x=np.arange(1, n + 1), y=gap, label="FedAvg", colour=0, role="certificate"),
            Curve(x=[1, max(n, 2)], y=[floor, floor], label="its limit", colour=1, role="limit"),
        ],
        x_label="round",
        y_label="E − E*",
        log_y=True,
        rounds=True,
    )
    against = Chart(
        curves=[
            Curve(x=STEPS, y=distances, label="limit, in closed form", colour=1, role="limit"),
            Curve(x=[steps], y=measured[-1:], label=f"FedAvg after {rounds} rounds", colour=0, role="points"),
            Curve(x=[1, 64], y=[1.0, 1.0], label="a distance of 1", role="theorem"),
        ],
        x_label="local steps K",
        y_label="distance from the solution",
        log_x=True,
    )
    cells = [measured[:n], float(distances[k]), error, gap]
    table = Table(
        first="method",
        columns=["distance from θ*", "that of its limit", "E − E*", "certificate"],
        rows=[Row(label=f"FedAvg, K = {steps}", cells=cells, colour=0)],
    )
    asked = check(first_wrong_by_one, (float(distances[max(k - 1, 0)]), float(distances[k])))
    answer = Answer.of(
        asked,
        right=lambda v: v.verdict == "holds",
        yes=f"With K = {steps} FedAvg ends {distances[k]:.3f} from the solution, and with fewer nearer than 1.",
        no=f"With K = {steps} FedAvg ends {distances[k]:.3f} from the solution: "
        + ("fewer are enough." if distances[k] > 1 else "more are needed, or clients that differ more."),
    )
    return Scene(
        planes=[plane(case, models[:n], limits, k)],
        charts=[against, energies],
        table=table,
        verdicts=[Judged.of(fedavg_bias, check(fedavg_bias, case), "closed form of the limit")],
        answer=answer,
        rounds=n,
        shown=n,
    )


def plane(case: Case, models: np.ndarray, limits: np.ndarray, k: int) -> Plane:
    """Return the clients, the way of the model and the limits for all K."""
    f, own = case.objective, own_minimisers(2, apart=1.5)
    mine = np.linalg.solve(f.A, f.b[..., None])[..., 0]
    marks = [Lines(lines=[ellipse(f.A[j], mine[j], level) for level in (0.2, 0.8)], colour=3 + j) for j in range(2)]
    return Plane.around(
        np.concatenate([own, limits]),
        margin=0.3,
        marks=[
            *marks,
            Dots(points=mine, colours=[3, 4], label="minimiser of a client"),
            Lines(lines=[limits], colour=1, label="limits for K = 1 to 64", faint=False),
            Path(points=models, colour=0, label="model of FedAvg"),
            Dots(points=models[:, None], colours=0),
            Dots(points=[limits[k]], shape="star", colours=1, label="its limit"),
            Dots(points=[case.theta], shape="cross", label="solution θ*"),
        ],
    )


def expected(*, steps: int, apart: float) -> dict[str, str]:
    """Return the verdict: the closed form holds for every number of steps and all clients."""
    return {"closed form of the limit": "holds"}
