r"""Break a theorem: a wrong line in DualFL, and the claim that notices it.

Claims: Theorem 3.3 (the rate), and the relations from which it is proved: (6.5), (6.10), Lemmas 6.4 and 6.5. Each
runs on the wrong variant here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from dualopt.algorithms import DualFL
from dualopt.claims import Claim, Verdict, check
from dualopt.solvers import Exact
from figures.lessons import Answer, Chart, Curve, Dots, Judged, Lines, Path, Plane, Row, Scene, Slider, Table
from figures.lessons._runs import accuracy
from theory._cases import Case
from theory._valleys import ellipse, own_minimisers, valleys
from theory.dualfl._runs import initial_bound
from theory.dualfl._wrong import METHODS
from theory.dualfl.exact_solutions import lemma_6_4, lemma_6_5, relation_6_5, sum_zeta, theorem_3_3

TITLE = "Break a theorem"
QUESTION = (
    "Choose a wrong line in DualFL and guess a claim that notices it. One wrong line keeps the rate of Theorem 3.3, so"
    " that no plot of errors betrays it: which line is it, and which claim notices?"
)
# What is written in its place, the variant, and the claims that must notice it: momentum alone enters Lemma 6.5 and the
# rate; the average enters all; a sign in (3.3) cancels in the sum (6.10); a momentum parameter enters the rate alone.
LINES: dict[str, tuple[str, str, set[str]]] = {
    "none: DualFL as printed": ("", "", set()),
    "no momentum": ("βₙ = 0 in (3.4)", "momentum dropped", {"lemma_6_5", "theorem_3_3"}),
    "momentum one round early": ("βₙ₊₁ in place of βₙ in (3.3)", "beta early", {"lemma_6_5"}),
    "no average": (
        "θ = θ₁ in place of the mean of all θⱼ in (3.2)",
        "one client for the average",
        {"sum_zeta", "relation_6_5", "lemma_6_4", "lemma_6_5", "theorem_3_3"},
    ),
    "a sign in (3.3)": (
        "ζⱼ = (1 + β) vⱼ + β vⱼ of before, in place of −",
        "wrong sign in (3.3)",
        {"relation_6_5", "lemma_6_5", "theorem_3_3"},
    ),
    "ρ from the wrong client": ("ρ = ν / min Lⱼ in place of ν / max Lⱼ", "rho = nu/min L_j", {"theorem_3_3"}),
    "ν too large": ("ν = 2 min μⱼ", "nu beyond mu", {"relation_6_5", "lemma_6_4", "theorem_3_3"}),
}
CLAIMS: dict[str, Claim] = {
    "(6.10): the duals ζⱼ add up to zero": sum_zeta,
    "(6.5): the model is the mean of the duals ξⱼ": relation_6_5,
    "Lemma 6.4: a round is a proximal step": lemma_6_4,
    "Lemma 6.5: DualFL is FISTA on the dual": lemma_6_5,
    "Theorem 3.3: the rate": theorem_3_3,
}
RATE = list(CLAIMS)[-1]
SLIDERS = (
    Slider(name="line", label="wrong line", values=tuple(LINES), start="no average"),
    Slider(name="guess", label="the claim that notices", values=tuple(CLAIMS), start=RATE),
)
ROUNDS, KAPPA, NU, LARGEST = 50, 32.0, 0.9, 1e4


@cache
def run(line: str) -> Case:
    """Return DualFL with a wrong line on four nearly parallel valleys."""
    method = DualFL(rho=NU / KAPPA, nu=NU, solver=Exact(), corrected=True)
    right = Case.of(method, valleys(4, kappa=KAPPA), rounds=ROUNDS, name="DualFL")
    variant: Callable[[Case], Case] = METHODS[LINES[line][1]] if LINES[line][1] else lambda case: case
    return variant(right)


@cache
def judged(line: str, guess: str) -> Verdict:
    """Run a claim on it, whether or not it is within the assumptions."""
    with np.errstate(all="ignore"):  # a wrong method may diverge
        return check(CLAIMS[guess], run(line), check_assumptions=False)


def scene(*, line: str, guess: str) -> Scene:
    """Run DualFL, with and without the wrong line, and the claim that is guessed on the latter."""
    right = run(next(iter(LINES)))
    runs = {"as printed": right} | ({"wrong line": run(line)} if LINES[line][1] else {})
    found = {name: accuracy(case) for name, case in runs.items()}
    n = np.arange(1, ROUNDS + 1)
    L, nu = right.L, right.algorithm.nu
    bound = L / (right.n_clients * nu) * initial_bound(right) * (1.0 - np.sqrt(right.algorithm.rho)) ** (n - 1)
    curves, rows, end = [], [], ROUNDS
    for k, (name, (error, gap)) in enumerate(found.items()):
        end = next((i for i, e in enumerate(error) if e > LARGEST), ROUNDS)
        curves.append(Curve(x=n[:end], y=error[:end], label=name, colour=k))
        rows.append(Row(label=name, cells=[error, gap, bound], colour=k))
    curves.append(Curve(x=n, y=bound, label="Theorem 3.3", role="theorem"))
    verdict, rate = judged(line, guess), judged(line, RATE)
    verdicts = [Judged.of(CLAIMS[guess], verdict, guess)]
    answer = Answer.of(
        verdict,
        right=lambda v: v.verdict == "violated" and rate.verdict == "holds",
        yes=f"{guess.split(':')[0]} notices {verdict.witness}: the rate is kept, but the method is another one.",
        no=reply(line, guess, verdict),
    )
    note = f"The wrong line: {LINES[line][0]}." if LINES[line][0] else ""
    if end < ROUNDS:
        note += f" Its error leaves the picture after round {end}."
    return Scene(
        planes=[plane(runs)],
        charts=[Chart(curves=curves, x_label="round", y_label="E − E*", log_y=True, rounds=True)],
        table=Table(first="DualFL", columns=["E − E*", "certificate", "Theorem 3.3"], rows=rows),
        verdicts=verdicts,
        answer=answer,
        rounds=ROUNDS,
        shown=12,
        note=note,
    )


def reply(line: str, guess: str, verdict: Verdict) -> str:
    """Return what is said of a guess that is not the answer."""
    claim = guess.split(":")[0]
    if not LINES[line][1]:
        return f"Nothing is wrong here, and {claim} holds. Choose a wrong line."
    if verdict.verdict == "violated":
        return f"Well guessed: {claim} notices this line. But the rate is lost too: look for the line that keeps it."
    return f"{claim} does not notice this line: it holds all the same."


def plane(runs: dict[str, Case]) -> Plane:
    """Return the clients and the models of both."""
    f = runs["as printed"].objective
    own = own_minimisers(f.n_clients)
    models = {name: np.stack([s.server.theta for s in case.snapshots()]) for name, case in runs.items()}
    near = {name: theta[np.cumprod(np.max(np.abs(theta), axis=1) < 8.0) > 0] for name, theta in models.items()}
    return Plane.around(
        np.concatenate([own, *(theta[:20] for theta in near.values())]),
        marks=[
            *(Lines(lines=[ellipse(A, c, 0.2)], colour=3 + j) for j, (A, c) in enumerate(zip(f.A, own, strict=True))),
            *(Path(points=theta, colour=k, label=name) for k, (name, theta) in enumerate(models.items())),
            *(Dots(points=theta[:, None], colours=k) for k, theta in enumerate(models.values())),
            Dots(points=[runs["as printed"].theta], shape="cross", label="solution"),
        ],
    )


def expected(*, line: str, guess: str) -> dict[str, str]:
    """Return the verdict: which claims look at which line."""
    return {guess: "violated" if CLAIMS[guess].name in LINES[line][2] else "holds"}
