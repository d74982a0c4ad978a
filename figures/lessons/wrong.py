r"""Break a theorem: a wrong line in DualFL, and the claims that notice it.

Claims: ``theorem_3_3`` (the rate), ``sum_zeta`` (6.10) and ``lemma_6_5``, from which it is proved. Each runs on the
wrong variant here, one of those with which the tests try the claims (``theory.mutations.dualfl``).
"""

from __future__ import annotations

from functools import lru_cache
from itertools import islice

import numpy as np

from dualopt.methods import CorrectedDualFL
from dualopt.solvers import Exact
from figures.lessons._charts import dual_errors
from figures.lessons._parts import (
    AskChoice,
    Chapter,
    If,
    Line,
    Plane,
    Said,
    Slider,
    Spot,
    Theorem,
    Trail,
)
from figures.lessons._quantities import constant, form, linear, squares
from figures.lessons._world import clients, dragged, on_clients, valleys_of
from theory._cases import Case
from theory.dualfl._fista import Fista
from theory.dualfl._runs import path, uploaded
from theory.dualfl.exact_solutions import auxiliary_sequences, lemma_6_5, sum_zeta, theorem_3_3
from theory.mutations.dualfl import MUTATIONS

RIGHT = "none"
LINES = {  # the variant, and what is written in place of what
    RIGHT: ("", "as printed"),
    "momentum early": ("beta early", "βₙ₊₁ in place of βₙ"),
    "no average": ("one client for the average", "θ = θ₁ in place of the mean of all θⱼ"),
    "a sign": ("wrong sign in (3.3)", "+ β vⱼ of before in place of −"),
    "ρ of the flattest": ("rho = nu/min L_j", "ρ = ν/min Lⱼ in place of ν/max Lⱼ"),
}
CLIENTS, NU, ROUNDS = (2, 64.0, 0.1), 0.9, 30
ROUNDING = 1e-9  # relative: what counts as equal


@lru_cache(maxsize=256)
def _run(u: tuple[float, ...], line: str) -> Case:
    method = CorrectedDualFL(rho=NU / CLIENTS[1], nu=NU, solver=Exact())
    right = Case.of(method, clients(np.array(u), *CLIENTS), rounds=ROUNDS, name="DualFL")
    return right if line == RIGHT else MUTATIONS[LINES[line][0]](right)


def dualfl(u: np.ndarray, *, line: str) -> Case:
    """Return DualFL with a wrong line."""
    return _run(tuple(u), line)


def as_printed(u: np.ndarray) -> dict:
    """Measure DualFL without one."""
    case = _run(tuple(u), RIGHT)
    return {
        "right": linear(case.models(), rounds=True),
        "right_error": form([step.dual_error for step in path(case)], rounds=True),
        "solution": linear(case.theta),
    }


def changed(u: np.ndarray, *, line: str) -> dict:
    """Measure it with the wrong line."""
    case = dualfl(u, line=line)
    duals = np.stack([s.clients.zeta for s in case.snapshots()])
    return {
        "model": linear(case.models(), rounds=True),
        "dual": linear(duals, rounds=True),
        "sum": squares(np.sum(duals, axis=1), rounds=True),
        "wrong": constant(float(line != RIGHT)),
    }


def sums(u: np.ndarray, *, line: str) -> dict:
    """Measure the sum of the duals, and the sizes of what is added."""
    totals, sizes = [], []
    for s in dualfl(u, line=line).snapshots():
        totals.append(np.sum(s.clients.zeta, axis=0))
        sizes.append(ROUNDING * np.concatenate([s.clients.zeta.ravel(), uploaded(s).ravel()]))
    return {"lhs": squares(totals, rounds=True), "rhs": squares(sizes, rounds=True)}


def fista(u: np.ndarray, *, line: str) -> dict:
    """Measure how far both sequences of DualFL are from those of FISTA on the dual problem."""
    case = dualfl(u, line=line)
    sequence = Fista(rho=case.algorithm.rho, nu=case.algorithm.nu).sequence(case.objective)
    apart, sizes = [], []
    for (_, xi, eta), iterate in zip(auxiliary_sequences(case), islice(sequence, case.rounds), strict=True):
        apart += [(xi - iterate.xi).ravel(), (eta - iterate.eta).ravel()]
        sizes += [ROUNDING * xi.ravel(), ROUNDING * eta.ravel()]
    return {
        "n": constant(np.repeat(np.arange(1, ROUNDS + 1), 2)),
        "lhs": squares(apart),
        "rhs": squares(sizes),
    }


CHAPTER = Chapter(
    title="Break a theorem",
    minutes=10,
    needs=("momentum",),
    drags=dragged(),
    sliders=(Slider(name="line", label="wrong line", values=tuple(LINES), start="momentum early", after=True),),
    rounds=ROUNDS,
    shown=8,
    measures=(as_printed, changed),
    plane=Plane(
        title="DualFL as printed, and with a wrong line",
        marks=(
            *valleys_of(*CLIENTS),
            Trail(of="right", label="as printed", ink="third", dash="dotted", shape="square"),
            Trail(of="model", label="wrong line", ink="model", after=True),
            Spot(of="solution", label="solution θ*", shape="cross"),
        ),
    ),
    chart=dual_errors(
        "Dual error, and what Theorem 3.3 promises of it",
        known="right_error",
        label="as printed",
        own="wrong line",
        y=(1e-5, 1e4),
    ),
    ask=AskChoice(options=tuple(f"{name}: {text}" for name, (_, text) in LINES.items() if name != RIGHT), answer=0),
    box=(
        Line(who="client j", does="θⱼ ← lowest point of fⱼ − ν ⟨ζⱼ, ·⟩"),
        Line(who="server", does="θ ← mean of the θⱼ, and βₙ from ρ = ν / max Lⱼ", now="θ = {model}"),
        Line(
            who="client j",
            does="vⱼ ← ζⱼ + θ − θⱼ,  ζⱼ ← (1 + βₙ) vⱼ − βₙ vⱼ of before",
            now="ζ₁ = {dual.0}, ζ₂ = {dual.1}",
        ),
        Line(who="check", does="square of the sum of the duals", now="{sum}"),
    ),
    said=(
        Said("As printed the dual error is {right_error} after round {n}, and the model is at {right}.", after=False),
        Said("The wrong line: {line}.", (If("wrong", "=", 1.0),), after=True),
        Said("Nothing is wrong here.", (If("wrong", "=", 0.0),), after=True),
        Said(
            "After round {n} the dual error is {lhs0}, as printed {right_error}, and {rhs0} is promised. The model"
            " is at {model}, the"
            " solution is {solution}.",
            after=True,
        ),
    ),
    theorems=(
        Theorem(
            label="Theorem 3.3: the rate",
            claim=theorem_3_3,
            case=dualfl,
            what="dual error",
            quantity="the dual error",
            force=True,
        ),
        Theorem(
            label="(6.10): the duals add up to zero",
            claim=sum_zeta,
            case=dualfl,
            what="sum zeta",
            sides=sums,
            quantity="the square of their sum",
            force=True,
        ),
        Theorem(
            label="Lemma 6.5: DualFL is FISTA on the dual",
            claim=lemma_6_5,
            case=dualfl,
            what="eta",
            sides=fista,
            quantity="the squared difference",
            force=True,
        ),
    ),
    beside=on_clients(*CLIENTS, rounds=ROUNDS),
)
