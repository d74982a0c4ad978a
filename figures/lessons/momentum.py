r"""Momentum on the dual: three methods, one dual problem, and a momentum parameter that may leave its theorem.

Theorems: ``dual_ascent_linear`` (dual ascent), Theorem 3.3 of the DualFL paper (DualFL, ``rho <= nu/L``) and
``optimized_theorem`` (OptimizedDualFL, the same range).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dualopt.algorithms import Algorithm, DualAscent, DualFL, OptimizedDualFL
from dualopt.claims import Claim, check
from dualopt.objectives import Quadratic
from dualopt.solvers import Exact
from figures.lessons import Answer, Arrows, Chart, Curve, Dots, Judged, Lines, Path, Plane, Row, Scene, Slider, Table
from figures.lessons._runs import accuracy
from theory._cases import Case
from theory._valleys import ellipse, own_minimisers, valleys
from theory.dualfl._runs import initial_bound
from theory.dualfl.exact_solutions import theorem_3_3
from theory.frontier.dual_ascent import distance_at_zero, dual_ascent_linear
from theory.optimized_dualfl._runs import dual_optimum, growths
from theory.optimized_dualfl.rate import optimized_theorem

TITLE = "Momentum on the dual"
QUESTION = (
    "Up to which ρ does the theorem of DualFL speak? Move ρ beyond it: where does the promise (1 − √ρ)ⁿ become false?"
)
SLIDERS = (
    Slider(name="clients", label="clients", values=(2, 3, 4, 6, 8), start=4, exported=(2, 4)),
    Slider(
        name="kappa", label="condition number κ", values=(10, 16, 32, 64, 128, 256), start=32, exported=(16, 32, 128)
    ),
    Slider(
        name="rho",
        label="momentum ρ, in units of ν/L",
        values=(0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.2, 1.5, 2, 3, 4, 6, 8),
        start=1,
        exported=(0.1, 0.4, 0.8, 1, 1.5, 2, 4, 8),
    ),
)
ROUNDS = 50
COLOURS = {"dual ascent": 2, "DualFL": 0, "OptimizedDualFL": 1}
CLAIMS: dict[str, Claim] = {
    "dual ascent": dual_ascent_linear,
    "DualFL": theorem_3_3,
    "OptimizedDualFL": optimized_theorem,
}


def scene(*, clients: int, kappa: float, rho: float) -> Scene:
    """Run the three methods on nearly parallel valleys; DualFL's clients are drawn with their duals."""
    f = valleys(clients, kappa=kappa)
    L, exact = float(np.max(f.L)), Exact()
    methods: dict[str, Algorithm] = {
        "dual ascent": DualAscent(solver=exact),
        "DualFL": DualFL(rho=rho / L, nu=1.0, solver=exact),
        "OptimizedDualFL": OptimizedDualFL(rho=rho / L, nu=1.0, solver=exact),
    }
    cases = {name: Case.of(method, f, rounds=ROUNDS, name=name) for name, method in methods.items()}
    curves, rows, verdicts = [], [], []
    rounds = np.arange(1, ROUNDS + 1)
    for name, case in cases.items():
        error, gap = accuracy(case)
        bound, colour = promise(name, case), COLOURS[name]
        for role, y in (("error", error), ("certificate", gap), ("theorem", bound)):
            curves.append(Curve(x=rounds, y=y, label=name, colour=colour, role=role))
        rows.append(Row(label=name, cells=[error, gap, bound], colour=colour))
        verdicts.append(Judged.of(CLAIMS[name], check(CLAIMS[name], case), name))
    tested = check(theorem_3_3, cases["DualFL"], check_assumptions=False)
    speaks = verdicts[1].verdict == "holds"
    silent = "silent, and its promise still kept" if tested.verdict != "violated" else "silent, and its promise broken"
    broken = Judged.of(theorem_3_3, tested, "").detail
    answer = Answer.of(
        tested,
        right=lambda v: v.verdict == "violated",
        yes=f"The theorem is silent here, and its promise is broken: {broken}.",
        no="The theorem of DualFL holds here: increase ρ." if speaks else f"The theorem is {silent}: increase ρ.",
    )
    table = Table(first="method", columns=["E − E*", "certificate", "theorem"], rows=rows)
    chart = Chart(curves=curves, x_label="round", y_label="E − E*", log_y=True, rounds=True)
    return Scene(
        planes=[plane(f, cases)], charts=[chart], table=table, verdicts=verdicts, answer=answer, rounds=ROUNDS, shown=6
    )


def promise(name: str, case: Case) -> list[float]:
    """Return what each theorem says of E - E* in every round, whether or not it speaks about these parameters."""
    n, N, L, nu = np.arange(1, case.rounds + 1), case.n_clients, case.L, case.algorithm.nu
    if name == "dual ascent":
        bound = 0.5 * L * distance_at_zero(case) * (1.0 - nu / L) ** (2 * (n - 1))
    elif name == "DualFL":
        bound = L / (N * nu) * initial_bound(case) * (1.0 - np.sqrt(case.algorithm.rho)) ** (n - 1)
    else:
        A = np.array([a for a, _ in zip(growths(case.algorithm.rho), n, strict=False)])
        bound = L * np.sum(dual_optimum(case) ** 2) / (N * A)
    return bound.tolist()


def plane(f: Quadratic, cases: dict[str, Case]) -> Plane:
    """Return the clients of DualFL with their duals, and the models of all three methods."""
    own, seen = own_minimisers(f.n_clients), list(cases["DualFL"].snapshots())
    local = np.stack([np.asarray(s.local_models) for s in seen])
    duals = np.stack([s.clients.zeta for s in seen])
    ink = [3 + j % 5 for j in range(f.n_clients)]
    marks: list[Any] = [Lines(lines=[ellipse(f.A[j], own[j], 0.2)], colour=ink[j]) for j in range(f.n_clients)]
    for name, case in cases.items():
        models = np.stack([s.server.theta for s in case.snapshots()])
        marks.append(Path(points=models, label=f"model of {name}", colour=COLOURS[name]))
    marks += [
        Arrows(tails=local, vectors=duals, colours=ink, label="dual ζⱼ of DualFL"),
        Dots(points=local, colours=ink, label="local model of DualFL"),
        Dots(points=[cases["DualFL"].theta], shape="cross", label="solution"),
    ]
    return Plane.around(np.concatenate([own, local[:8].reshape(-1, 2)]), marks=marks)


def expected(*, clients: int, kappa: float, rho: float) -> dict[str, str]:
    """Return the verdicts: the theorems with momentum speak up to rho = nu/L, that of dual ascent everywhere."""
    speaks = "holds" if rho <= 1 else "outside assumptions"
    return {"dual ascent": "holds", "DualFL": speaks, "OptimizedDualFL": speaks}
