r"""Break a theorem: a wrong line in DualFL, and the claim that notices it.

Claims: Theorem 3.3 (the rate), and the relations from which it is proved: (6.5), (6.10), Lemmas 6.4 and 6.5. Each
runs on the wrong variant here, one of those with which the tests try the claims (``theory.mutations.dualfl``).
"""

from __future__ import annotations

from functools import cache

import numpy as np

from dualopt.methods import (
    CorrectedDualFL,
)
from dualopt.solvers import Exact
from figures.lessons._charts import Chart, Curve
from figures.lessons._planes import Dots, Plane, contours, minimisers, way
from figures.lessons._runs import accuracy
from figures.lessons._scene import Scene, Slider
from figures.lessons._words import Answer, Judged, Table, judge, measured, promised
from theory._cases import Case
from theory._valleys import valleys
from theory.dualfl.exact_solutions import lemma_6_4, lemma_6_5, relation_6_5, sum_zeta, theorem_3_3
from theory.mutations.dualfl import MUTATIONS

TITLE = "Break a theorem"
QUESTION = (
    "Choose a wrong line in DualFL and guess a claim that notices it. One wrong line keeps the rate of Theorem 3.3, so"
    " that no plot of errors betrays it: which line is it, and which claim notices?"
)
CLAIMS = {
    "(6.10): the duals ζⱼ add up to zero": sum_zeta,
    "(6.5): the model is the mean of the duals ξⱼ": relation_6_5,
    "Lemma 6.4: a round is a proximal step": lemma_6_4,
    "Lemma 6.5: DualFL is FISTA on the dual": lemma_6_5,
    "Theorem 3.3: the rate": theorem_3_3,
}
SUM, RELATION, STEP, FISTA, RATE = CLAIMS
RIGHT = "none: DualFL as printed"
# What is written in its place, the variant, and the claims that must notice it: momentum alone enters Lemma 6.5 and the
# rate; the average enters all; a sign in (3.3) cancels in the sum (6.10); a momentum parameter enters the rate alone.
LINES = {
    RIGHT: ("", "", ()),
    "no momentum": ("βₙ = 0 in (3.4)", "momentum dropped", (FISTA, RATE)),
    "momentum one round early": ("βₙ₊₁ in place of βₙ in (3.3)", "beta early", (FISTA,)),
    "no average": (
        "θ = θ₁ in place of the mean of all θⱼ in (3.2)",
        "one client for the average",
        (SUM, RELATION, STEP, FISTA, RATE),
    ),
    "a sign in (3.3)": (
        "ζⱼ = (1 + β) vⱼ + β vⱼ of before, in place of −",
        "wrong sign in (3.3)",
        (RELATION, FISTA, RATE),
    ),
    "ρ from the wrong client": ("ρ = ν / min Lⱼ in place of ν / max Lⱼ", "rho = nu/min L_j", (RATE,)),
    "ν too large": ("ν = 2 min μⱼ", "nu beyond mu", (RELATION, STEP, RATE)),
}
SLIDERS = (
    Slider(name="line", label="wrong line", values=tuple(LINES), start="no average"),
    Slider(name="guess", label="the claim that notices", values=tuple(CLAIMS), start=RATE),
)
ROUNDS, KAPPA, NU, LARGEST = 50, 32.0, 0.9, 1e4


@cache
def run(line: str) -> Case:
    """Return DualFL with a wrong line on four nearly parallel valleys."""
    method = CorrectedDualFL(rho=NU / KAPPA, nu=NU, solver=Exact())
    right = Case.of(method, valleys(4, kappa=KAPPA), rounds=ROUNDS, name="DualFL")
    return MUTATIONS[LINES[line][1]](right) if line != RIGHT else right


def judged(line: str, guess: str) -> Judged:
    """Run a claim on it, whether or not it is within the assumptions."""
    expected = "violated" if guess in LINES[line][2] else "holds"
    with np.errstate(all="ignore"):  # a wrong method may diverge
        return judge(CLAIMS[guess], run(line), guess, expected, check_assumptions=False)


def scene(*, line: str, guess: str) -> Scene:
    """Run DualFL, with and without the wrong line, and the claim that is guessed on the latter."""
    right, change = run(RIGHT), LINES[line][0]
    runs = {"as printed": right} | ({"wrong line": run(line)} if change else {})
    found = {name: accuracy(case) for name, case in runs.items()}
    bound = promised(theorem_3_3, right, "N nu/L (E - E*)", right.L / (right.n_clients * NU))
    ends = [next((n for n, e in enumerate(error) if e > LARGEST), ROUNDS) for error, _ in found.values()]
    curves = [
        Curve(y=found[name].error[:end], label=name, colour=k)
        for k, (name, end) in enumerate(zip(runs, ends, strict=True))
    ]
    curves.append(Curve(y=bound, label="Theorem 3.3", role="theorem"))
    duals = []
    for k, ((name, case), end) in enumerate(zip(runs.items(), ends, strict=True)):
        y = np.array(measured(theorem_3_3, case, "dual error")[:end])
        duals.append(Curve(x=np.flatnonzero(y < np.inf) + 1, y=y[y < np.inf], label=name, colour=k))
    with_its_rho = promised(theorem_3_3, run(line), "dual error")  # what the claim compares
    duals.append(Curve(y=with_its_rho, label="Theorem 3.3", role="theorem"))
    rows = {name: {"E − E*": e, "certificate": gap, "Theorem 3.3": bound} for name, (e, gap) in found.items()}
    verdict, claim = judged(line, guess), guess.split(":")[0]
    if not change:
        no = f"Nothing is wrong here, and {claim} holds. Choose a wrong line."
    elif verdict.verdict == "violated":
        no = f"Well guessed: {claim} notices this line. But the rate is lost too: look for the line that keeps it."
    else:
        no = f"{claim} does not notice this line: it holds all the same."
    note = f"The wrong line: {change}." if change else ""
    return Scene(
        planes=[plane(runs)],
        charts=[Chart.over_rounds("E − E*", curves), Chart.over_rounds("dual error", duals)],
        table=Table.of("DualFL", rows),
        verdicts=[verdict],
        answer=Answer.of(
            (verdict, "violated"),
            (judged(line, RATE), "holds"),
            yes=f"{claim} notices ({verdict.detail}): the rate is kept, but the method is another one.",
            no=no,
        ),
        rounds=ROUNDS,
        shown=12,
        note=note + (f" Its error leaves the picture after round {ends[-1]}." if ends[-1] < ROUNDS else ""),
    )


def plane(runs: dict[str, Case]) -> Plane:
    """Return the clients and the models of both."""
    f, models = runs["as printed"].objective, {name: case.models() for name, case in runs.items()}
    near = [theta[np.cumprod(np.max(np.abs(theta), axis=1) < 8.0) > 0][:20] for theta in models.values()]
    ways = [mark for k, name in enumerate(models) for mark in way(models[name], colour=k, label=name)]
    best = Dots(points=[runs["as printed"].theta], shape="cross", label="solution")
    return Plane.around(np.concatenate([minimisers(f), *near]), marks=[*contours(f, range(3, 7)), *ways, best])
