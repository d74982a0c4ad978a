r"""The worst problem: how much the theorem promises, how bad it can be at all, and how bad you can make it.

Claims: ``theorem_3_3``, and the exact worst case of n rounds over all clients with mu = 1 and L = 16, a semidefinite
program made from the code of DualFL. What it found is stored in ``worst.json``, so that a page waits for no program;
``python -m figures.lessons.worst`` solves them again and writes it, which needs CVXPY and Clarabel.
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache

import numpy as np

from dualopt.lab.claims import Inequality, claim
from dualopt.methods import DualFL
from dualopt.objectives import Quadratic
from dualopt.solvers import Exact
from figures.lessons._parts import (
    AskChoice,
    Chapter,
    Chart,
    Curve,
    Derived,
    Drag,
    If,
    Line,
    Plane,
    Said,
    Slider,
    Spot,
    Theorem,
)
from figures.lessons._quantities import constant, linear, squares
from figures.lessons._world import INKS, SHAPES, minimisers
from theory._cases import Case

ROUNDS, L, NU = 8, 16.0, 1.0
RHO = NU / L
CURVATURES = (1.0, 1.6, 2.5, 4.0, 6.3, 10.0, 16.0)
STORED = pathlib.Path(__file__).with_suffix(".json")
CERTIFIED = 1e-5  # of the value: how far primal and dual value of the program may differ


def solve(n: int) -> float:
    r"""Return the worst :math:`|\theta^n - \theta^*|^2` where :math:`\sum_j|\xi_j^*|^2 = 1` and N = 2.

    Raises
    ------
    ImportError
        Without CVXPY.
    """
    from dualopt.lab.proofs import worst_case

    return worst_case(DualFL(rho=RHO, nu=NU), mu=NU, L=L, clients=2, rounds=n, start=(2.0, 1.0)).value


@cache
def largest(n: int) -> float:
    """Return what is stored of that.

    Examples
    --------
    >>> round(largest(1), 6)
    0.109863
    """
    return json.loads(STORED.read_text(encoding="utf-8"))[n - 1]


def promised(n: int) -> float:
    """Return the bound of Theorem 3.3 in the same unit.

    Examples
    --------
    >>> promised(1), promised(3)
    (0.5, 0.28125)
    """
    return 0.5 * (1.0 - RHO**0.5) ** (n - 1)


@claim(
    source="Taylor, Hendrickx and Glineur 2017, on DualFL",
    statement=r"$|\theta^n - \theta^*|^2/|\xi^*|^2$ is at most the value of the semidefinite program, and that at most"
    r" the bound of Theorem 3.3.",
    rtol=CERTIFIED,
)
def exact_worst_case(errors: Sequence[float]) -> Iterator[Inequality]:
    """Compare errors of rounds 1, 2, ..., in the unit of the theorem, with the worst ones, and those with it."""
    for n, error in enumerate(errors, start=1):
        yield Inequality(n, error, largest(n), "error")
        yield Inequality(n, largest(n), promised(n), "worst case")


@lru_cache(maxsize=512)
def _run(u: tuple[float, ...], h1: float, h2: float) -> Case:
    own = minimisers(np.array(u))
    A = np.stack([h * np.eye(2) for h in (h1, h2)])
    f = Quadratic(A=A, b=np.einsum("jkl,jl->jk", A, own), c=0.5 * np.einsum("j,jl->j", np.array([h1, h2]), own**2))
    return Case.of(DualFL(rho=RHO, nu=NU, solver=Exact()), f, rounds=ROUNDS)


def _dual_points(case: Case) -> np.ndarray:
    return case.subgradients - NU * case.theta


def errors(u: np.ndarray, *, h1: float, h2: float) -> tuple[float, ...]:
    """Return the errors of all rounds in the unit of the theorem."""
    case = _run(tuple(u), h1, h2)
    unit = float(np.sum(_dual_points(case) ** 2))
    return tuple(case.distance(theta) / unit for theta in case.models())


def both_sides(u: np.ndarray, *, h1: float, h2: float) -> dict:
    """Measure the squared distance, and the worst one, both times the unit."""
    case = _run(tuple(u), h1, h2)
    xi = _dual_points(case).ravel()
    worst = np.sqrt([largest(n) for n in range(1, ROUNDS + 1)])
    return {
        "lhs": squares(case.models() - case.theta, rounds=True),
        "rhs": squares(worst[:, None] * xi, rounds=True),
    }


def run(u: np.ndarray, *, h1: float, h2: float) -> dict:
    """Measure the model, the solution and the unit."""
    case = _run(tuple(u), h1, h2)
    return {
        "model": linear(case.models(), rounds=True),
        "solution": linear(case.theta),
        "unit": squares(_dual_points(case).ravel()),
        "origin": linear(np.zeros(2)),
    }


def known(u: np.ndarray) -> dict:
    """Measure what holds for all clients."""
    rounds = range(1, ROUNDS + 1)
    return {
        "worst": constant([largest(n) for n in rounds], rounds=True),
        "promise": constant([promised(n) for n in rounds], rounds=True),
    }


def _client(j: int, start: tuple[float, float]) -> Drag:
    label, spoken = f"client {j + 1}", f"where client {j + 1} is best"
    return Drag(name=f"m{j + 1}", label=label, spoken=spoken, start=start, ink=INKS[j], shape=SHAPES[j])


CHAPTER = Chapter(
    title="The worst problem",
    minutes=10,
    needs=("momentum", "chain"),
    drags=(_client(0, (1.5, 0.6)), _client(1, (0.9, -0.8))),
    sliders=(
        Slider(name="h1", label="curvature of client 1", values=CURVATURES, start=2.5),
        Slider(name="h2", label="curvature of client 2", values=CURVATURES, start=6.3),
    ),
    rounds=ROUNDS,
    shown=1,
    measures=(run, known),
    derived={
        "yours": Derived(does="ratio", of=("lhs0", "unit")),
        "share": Derived(does="ratio", of=("yours", "worst")),
    },
    plane=Plane(
        title="Two round clients; the method begins at the origin",
        marks=(
            Spot(of="model", label="model", ink="model", after=True),
            Spot(of="solution", label="solution θ*", shape="cross"),
            Spot(of="origin", label="start", shape="open disc"),
        ),
        x=(-2.6, 2.6),
        y=(-1.7, 1.7),
    ),
    chart=Chart(
        title=(
            "Squared distance from the solution, over that of the dual points: yours, the worst, and what is promised"
        ),
        curves=(
            Curve(of="promise", label="Theorem 3.3", ink="bound", dash="dashed"),
            Curve(of="worst", label="exact worst case", ink="ink", points=True),
            Curve(of="yours", label="your clients", ink="model"),
        ),
        x_label="round",
        y_label="|θⁿ − θ*|² / |ξ*|²",
        log_y=True,
        y=(1e-5, 1.0),
    ),
    ask=AskChoice(
        options=("in no round", "in the first round only", "in the first two rounds", "in every round"), answer=1
    ),
    box=(
        Line(who="client j", does="θⱼ ← lowest point of fⱼ − ν ⟨ζⱼ, ·⟩, with ν = 1"),
        Line(who="server", does="θ ← mean of the θⱼ", now="θ = {model}"),
        Line(who="you", does="place mⱼ, choose curvatures between μ = 1 and L = 16", now="{share} of the worst case"),
    ),
    said=(
        Said(
            "In round {n} your clients reach {yours}; the worst case of all clients is {worst}, and {promise} is"
            " promised. That is a"
            " share {share} of the worst case.",
        ),
        Said("Touched: in this round no clients are worse than yours.", (If("share", ">=", 0.99),)),
    ),
    theorems=(
        Theorem(
            label="no clients are worse than the worst case",
            claim=exact_worst_case,
            case=errors,
            what="error",
            sides=both_sides,
            quantity="the squared distance",
            tolerance=CERTIFIED,
        ),
    ),
)


def write() -> None:
    """Solve the programs, and store their values."""
    STORED.write_text(json.dumps([solve(n) for n in range(1, ROUNDS + 1)]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
