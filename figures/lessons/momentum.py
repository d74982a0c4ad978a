r"""Momentum on the dual: three methods, one dual problem, and a momentum parameter that may leave its theorem.

Theorems: ``dual_ascent_linear`` (dual ascent), Theorem 3.3 of the DualFL paper (DualFL, ``rho <= nu/L``) and
``optimized_theorem`` (OptimizedDualFL, the same range).
"""

from __future__ import annotations

import numpy as np

from dualopt.methods import DualAscent, DualFL, OptimizedDualFL
from dualopt.solvers import Exact
from figures.lessons._charts import Chart, Curve
from figures.lessons._planes import Arrows, Dots, Path, Plane, contours, minimisers
from figures.lessons._runs import accuracy, error_curves
from figures.lessons._scene import Scene, Slider
from figures.lessons._words import Answer, Table, judge, measured, promised
from theory._cases import Case
from theory._valleys import valleys
from theory.dualfl.exact_solutions import theorem_3_3
from theory.frontier.dual_ascent import dual_ascent_linear
from theory.optimized_dualfl.rate import optimized_theorem

TITLE = "Momentum on the dual"
QUESTION = (
    "Up to which ρ does the theorem of DualFL speak? Move ρ beyond it: where does the promise (1 − √ρ)ⁿ become false?"
)
KAPPA, RHO = (10, 16, 32, 64, 128, 256), (0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.2, 1.5, 2, 3, 4, 6, 8)
SOME = (0.1, 0.4, 0.8, 1, 1.5, 2, 4, 8)
SLIDERS = (
    Slider(name="clients", label="clients", values=(2, 3, 4, 6, 8), start=4, exported=(2, 4)),
    Slider(name="kappa", label="condition number κ", values=KAPPA, start=32, exported=(16, 32, 128)),
    Slider(name="rho", label="momentum ρ, in units of ν/L", values=RHO, start=1, exported=SOME),
)
ROUNDS = 50
COLOURS = {"dual ascent": 2, "DualFL": 0, "OptimizedDualFL": 1}
OPTIMIZED = "nu N/(2(1 - rho)) |theta - theta*|^2"  # what its claim compares
SPEAK = {"dual ascent": dual_ascent_linear, "DualFL": theorem_3_3, "OptimizedDualFL": optimized_theorem}


def scene(*, clients: int, kappa: float, rho: float) -> Scene:
    """Run the three methods on nearly parallel valleys; DualFL's clients are drawn with their duals."""
    f = valleys(clients, kappa=kappa)
    L, r = float(np.max(f.L)), rho / float(np.max(f.L))
    exact = {"nu": 1.0, "solver": Exact()}
    methods = (DualAscent(**exact), DualFL(rho=r, **exact), OptimizedDualFL(rho=r, **exact))
    cases = {name: Case.of(method, f, rounds=ROUNDS, name=name) for name, method in zip(SPEAK, methods, strict=True)}
    # What the theorems say of E - E*, whether or not they speak here: at most L/2 times the squared distance.
    bounds = {
        "dual ascent": promised(dual_ascent_linear, cases["dual ascent"], "|theta - theta*|^2", 0.5 * L),
        "DualFL": promised(theorem_3_3, cases["DualFL"], "N nu/L (E - E*)", L / clients),
        "OptimizedDualFL": promised(optimized_theorem, cases["OptimizedDualFL"], OPTIMIZED, L * (1.0 - r) / clients),
    }
    found = {name: accuracy(case) for name, case in cases.items()}
    curves = [c for name in SPEAK for c in error_curves(name, COLOURS[name], found[name], bounds[name])]
    dual = [  # which may break its bound while that of E - E* holds
        Curve(y=measured(theorem_3_3, cases["DualFL"], "dual error"), label="DualFL", colour=0),
        Curve(y=promised(theorem_3_3, cases["DualFL"], "dual error"), label="Theorem 3.3", colour=0, role="theorem"),
    ]
    rows = {name: {"E − E*": e, "certificate": gap, "theorem": bounds[name]} for name, (e, gap) in found.items()}
    kept = "of DualFL holds here" if rho <= 1 else "is silent, and its promise still kept"
    speaks = dict.fromkeys(SPEAK, "holds" if rho <= 1 else "outside assumptions") | {"dual ascent": "holds"}
    tested = judge(theorem_3_3, cases["DualFL"], check_assumptions=False)
    local, duals = cases["DualFL"].local_models(), np.stack([s.clients.zeta for s in cases["DualFL"].snapshots()])
    ink = [3 + j % 5 for j in range(f.n_clients)]
    marks = [
        *contours(f, ink),
        *(Path(points=cases[m].models(), label=f"model of {m}", colour=COLOURS[m]) for m in cases),
        Arrows(tails=local, vectors=duals, colours=ink, label="dual ζⱼ of DualFL"),
        Dots(points=local, colours=ink, label="local model of DualFL"),
        Dots(points=[cases["DualFL"].theta], shape="cross", label="solution"),
    ]
    around = np.concatenate([minimisers(f), local[:8].reshape(-1, 2)])
    return Scene(
        planes=[Plane.around(around, marks=marks)],
        charts=[Chart.over_rounds("E − E*", curves), Chart.over_rounds("dual error of DualFL", dual)],
        table=Table.of("method", rows, colours=list(COLOURS.values())),
        verdicts=[judge(claim, cases[name], name, speaks[name]) for name, claim in SPEAK.items()],
        answer=Answer.of(
            (tested, "violated"),
            yes=f"The theorem is silent here, and its promise is broken: {tested.detail}.",
            no=f"The theorem {kept}: increase ρ.",
        ),
        rounds=ROUNDS,
        shown=6,
    )
