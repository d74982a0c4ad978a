"""Every claim on the methods that the papers compare, on problems that Hypothesis draws."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dualopt.lab.claims import check
from dualopt.lab.testing import linear_models, quadratics
from dualopt.losses import Logistic
from dualopt.methods import DistributedLBFGS, DistributedNewtonCG
from theory._cases import Case
from theory._claims import discover
from theory._problems import solved
from theory.baselines.bias import fedavg_case, fedprox_case
from theory.baselines.contraction import feddr_case, fedsplit_case, fivegcs_case, scaffnew_case, scaffold_case
from theory.baselines.servers import central_case, descent_case

# Orders, whose constants are hidden, have tests of their own (test_table_1.py).
CHAPTERS = {
    name: chapter
    for name, chapter in discover().items()
    if chapter.selection == "baselines" and chapter.claim.constant == "explicit"
}
EXAMPLES = max(10, settings.default.max_examples // 10) if settings.default else 10
many = settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])

SHAPES = {"n_clients": st.integers(2, 4), "dimension": st.integers(2, 3), "heterogeneity": st.floats(0.1, 10.0)}
QUADRATICS = quadratics(L=st.floats(1.5, 30.0), **SHAPES)
ROWS = linear_models(
    loss=Logistic(), n_clients=st.integers(2, 4), rows=st.integers(10, 20), features=st.just(2), mu=0.1
)
SMOOTH = st.one_of(QUADRATICS, ROWS)


# A problem, the number of active clients, and two numbers between 0 and 1.
def scaffnew(f: Case, active: int, a: float, b: float) -> Case:
    return scaffnew_case(f, 0.1 + 1.8 * a, 0.05 + 0.95 * b, attained=hasattr(f.objective, "A"))


def fedsplit(f: Case, active: int, a: float, b: float) -> Case:
    return fedsplit_case(f, attained=hasattr(f.objective, "A"))


def feddr(f: Case, active: int, a: float, b: float) -> Case:
    return feddr_case(f, a=0.05 + 1.95 * a, step=0.1 * 10.0 ** (3.0 * b), active=active)


def fivegcs(f: Case, active: int, a: float, b: float) -> Case:
    return fivegcs_case(f, active, gamma=10.0 ** (4.0 * a - 2.0) / f.L, product=0.01 + 0.99 * b)


def scaffold(f: Case, active: int, a: float, b: float) -> Case:
    steps, option = 1 + round(9 * a), 1 + round(b)
    return scaffold_case(f, active, K=steps, option=option, times=(0.1 + 0.9 * a) / 3.0, server_step=0.3 + 0.7 * b)


def fedavg(f: Case, active: int, a: float, b: float) -> Case:
    return fedavg_case(f, 0.3 + 1.6 * a, 1 + round(9 * b), active)


def fedprox(f: Case, active: int, a: float, b: float) -> Case:
    return fedprox_case(f, 0.01 + 5.0 * a, active)


def gradient_descent(f: Case, active: int, a: float, b: float) -> Case:
    return descent_case(f, 0.05 + 1.9 * a)


def lbfgs(f: Case, active: int, a: float, b: float) -> Case:
    return central_case(f, DistributedLBFGS(history=1 + round(9 * a)), "drawn")


def newton_cg(f: Case, active: int, a: float, b: float) -> Case:
    return central_case(f, DistributedNewtonCG(max_cg=1 + round(9 * a)), "drawn")


Build = Callable[[Case, int, float, float], Case]
DRAWN: dict[str, tuple[st.SearchStrategy, Build]] = {
    "fedavg_bias": (QUADRATICS, fedavg),
    "fedprox_bias": (QUADRATICS, fedprox),
    "fedsplit_contraction": (SMOOTH, fedsplit),
    "feddr_contraction": (SMOOTH, feddr),
    "fivegcs_one_step": (SMOOTH, fivegcs),
    "scaffnew_one_step": (SMOOTH, scaffnew),
    "scaffold_fixed_point": (SMOOTH, scaffold),
    "gradient_descent_contraction": (SMOOTH, gradient_descent),
    "lbfgs_is_central": (SMOOTH, lbfgs),
    "newton_cg_is_central": (SMOOTH, newton_cg),
}


def test_every_claim_is_drawn() -> None:
    assert set(DRAWN) == set(CHAPTERS)


@pytest.mark.parametrize("name", DRAWN)
def test_claim_on_drawn_problems(name: str) -> None:
    problems, build = DRAWN[name]

    @many
    @given(objective=problems, fraction=st.floats(0.0, 1.0), a=st.floats(0.0, 1.0), b=st.floats(0.0, 1.0))
    def holds(objective, fraction: float, a: float, b: float) -> None:
        active = 1 + round(fraction * (objective.n_clients - 1))
        verdict = check(CHAPTERS[name].claim, build(solved("drawn", objective), active, a, b))
        assert verdict.verdict == "holds", verdict.witness or verdict.failed

    holds()
