"""Every explicit claim on problems that Hypothesis draws: 12 each, 200 with ``--hypothesis-profile=deep``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from dualopt.lab.claims import check
from dualopt.lab.testing import linear_models, quadratics
from dualopt.losses import AbsoluteDeviation, Hinge, Logistic
from dualopt.objectives import Quadratic
from dualopt.solvers import Gradient
from dualopt.solvers.stopping import Gap, LinearSchedule, Steps, SublinearSchedule
from theory._cases import Case
from theory._claims import discover
from theory._problems import solved
from theory.dualfl._fista import Fista
from theory.dualfl._runs import exact, inexact
from theory.dualfl.duality import random_composition
from theory.dualfl.exact_solutions import Recursion
from theory.dualfl.inexact_solutions import Geometric, Power
from theory.dualfl.local_steps import with_constant_momentum
from theory.dualfl.regularised import inexact_case, plain_case
from theory.mutations.dualfl import MUTATIONS

CHAPTERS = discover()
EXAMPLES = max(12, settings.default.max_examples // 5) if settings.default else 12
many = settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])


def unequal_quadratics(seed: int, n: int, heterogeneity: float) -> Quadratic:
    """Clients with ``mu_j`` in [0.1, 10] and ``L_j`` in [mu_j, 30 mu_j]."""
    rng = np.random.default_rng(seed)
    matrices = []
    for _ in range(n):
        q, _ = np.linalg.qr(rng.standard_normal((3, 3)))
        matrix = q @ np.diag(10.0 ** rng.uniform(-1.0, 1.0) * rng.uniform(1.0, 30.0, 3)) @ q.T
        matrices.append(0.5 * (matrix + matrix.T))
    b = heterogeneity * rng.standard_normal((n, 3))
    return Quadratic(A=np.stack(matrices), b=b, c=rng.uniform(1.0, 2.0, n))


UNEQUAL = st.builds(
    unequal_quadratics, seed=st.integers(0, 2**32 - 1), n=st.integers(2, 5), heterogeneity=st.floats(0.1, 10.0)
)
QUADRATIC = st.one_of(quadratics(L=st.floats(2.0, 300.0), heterogeneity=st.floats(0.1, 10.0)), UNEQUAL)
SMOOTH = st.one_of(
    QUADRATIC,
    linear_models(loss=Logistic(), n_clients=st.integers(2, 4), rows=st.integers(10, 30), mu=st.floats(0.02, 1.0)),
)
NONSMOOTH = linear_models(
    loss=st.sampled_from([Hinge(), AbsoluteDeviation()]),
    n_clients=st.integers(2, 3),
    rows=st.integers(6, 12),
    features=st.just(2),
    mu=st.floats(0.2, 1.0),
)
# Without a ridge: many rows in few dimensions, so that no hyperplane separates them and the minimum is attained.
PLAIN = linear_models(loss=Logistic(), n_clients=st.just(2), rows=st.integers(40, 60), features=st.just(1), mu=0.0)
FRACTIONS = st.floats(0.05, 0.95)

# claim -> problems to draw, and the case made of a solved problem and a number in (0, 1)
Build = Callable[[Case, float], Any]
DRAWN: dict[str, tuple[st.SearchStrategy, Build]] = {
    "dual_certificate": (SMOOTH, lambda f, s: f.case(inexact(f, Steps(steps=2), rho=0.0, solver=Gradient()), 10)),
    "gradient_certificate": (SMOOTH, lambda f, s: f.case(exact(f), 10)),
    "gap_3_6": (
        SMOOTH,
        lambda f, s: f.case(inexact(f, Steps(steps=5), rho=0.0, nu=s * f.mu, solver=Gradient()), 5),
    ),
    "lemma_6_4": (QUADRATIC, lambda f, s: f.case(exact(f, nu=s * f.mu), 5)),
    "lemma_6_5": (QUADRATIC, lambda f, s: f.case(exact(f, nu=s * f.mu, rho=s**2 * f.mu / f.L), 20)),
    "proposition_3_1": (QUADRATIC, lambda f, s: f.case(exact(f, nu=s * f.mu), 8)),
    "proposition_6_2": (
        QUADRATIC,
        lambda f, s: f.case(Fista(rho=0.0, nu=s * f.mu, errors=Power(scale=1e-3, exponent=4.1)), 50),
    ),
    "proposition_6_3": (
        QUADRATIC,
        lambda f, s: f.case(
            Fista(
                rho=s * f.mu / f.L,
                nu=s * f.mu,
                errors=Geometric(scale=1e-3, ratio=(1.0 - (s * f.mu / f.L) ** 0.5) / 1.1),
            ),
            50,
        ),
    ),
    "relation_6_5": (QUADRATIC, lambda f, s: f.case(exact(f, nu=s * f.mu, rho=0.0), 8)),
    "sum_zeta": (SMOOTH, lambda f, s: f.case(inexact(f, Steps(steps=1), rho=0.01, solver=Gradient()), 40)),
    "theorem_3_2": (
        st.one_of(SMOOTH, NONSMOOTH),
        lambda f, s: f.case(exact(f, rho=0.0, nu=(0.5 + 0.5 * s) * f.mu), 12),
    ),
    "theorem_3_2_inexact": (
        SMOOTH,
        lambda f, s: f.case(inexact(f, Gap(schedule=SublinearSchedule(nu=f.mu, scale=1e-3)), rho=0.0), 20),
    ),
    "theorem_3_3": (SMOOTH, lambda f, s: f.case(exact(f, rho=s * f.mu / f.L), 40)),
    "theorem_3_3_inexact": (
        SMOOTH,
        lambda f, s: f.case(
            inexact(f, Gap(schedule=LinearSchedule(rho=s * f.mu / f.L, scale=1e-3)), rho=s * f.mu / f.L), 30
        ),
    ),
    "theorem_3_4": (NONSMOOTH, lambda f, s: f.case(exact(f, rho=0.0), 1)),
    "theorem_3_5": (QUADRATIC, lambda f, s: f.case(exact(f), 10)),
    "conjugates_of_dual_points": (QUADRATIC, lambda f, s: f.case(exact(f, nu=s * f.mu), 5)),
    "proposition_6_1": (QUADRATIC, lambda f, s: random_composition(2, 1 + int(4 * s), seed=int(1e6 * s))),
    "theorem_3_5_target": (
        SMOOTH,
        lambda f, s: f.case(with_constant_momentum(f, share=0.2 + 0.8 * s, scale=1e-3), 30),
    ),
    "relations_6_13_and_6_14": (SMOOTH, lambda f, s: f.case(exact(f, nu=(0.5 + 0.5 * s) * f.mu), 10)),
    "theorem_4_1_inexact": (PLAIN, lambda f, s: inexact_case(f, 0.02 + 0.05 * s, 60, accelerated=False, scale=1e-7)),
    "theorem_4_2_inexact": (PLAIN, lambda f, s: inexact_case(f, 0.05 + s, 30, accelerated=True, scale=1e-3)),
    "theorem_4_1": (PLAIN, lambda f, s: plain_case(f, 0.02 + 0.05 * s, 60, accelerated=False)),
    "theorem_4_2": (PLAIN, lambda f, s: plain_case(f, 0.05 + s, 12, accelerated=True)),
    "theorem_4_2_rounds": (PLAIN, lambda f, s: plain_case(f, 0.05 + s, 1, accelerated=True)),
}


def test_every_explicit_claim_is_drawn() -> None:
    explicit = {n for n, c in CHAPTERS.items() if c.claim.constant == "explicit" and c.selection == "dualfl"}
    assert explicit == set(DRAWN) | {"momentum_3_4"}


@pytest.mark.parametrize("name", DRAWN)
def test_claim_on_drawn_problems(name: str) -> None:
    problems, build = DRAWN[name]
    seen: dict[str, int] = {}

    @many
    @given(objective=problems, fraction=FRACTIONS)
    def holds(objective, fraction: float) -> None:
        problem = solved("drawn", objective)
        assume(np.linalg.norm(problem.theta) < 10)  # without a ridge, nearly separated rows
        verdict = check(CHAPTERS[name].claim, build(problem, fraction))
        assert verdict.verdict in ("holds", "vacuous", "inconclusive"), verdict.witness or verdict.failed
        seen[verdict.verdict] = seen.get(verdict.verdict, 0) + 1

    holds()
    assert seen.get("holds", 0) >= 0.5 * sum(seen.values())  # mostly the claim says something


@many
@given(rho=st.floats(0.0, 0.999))
def test_momentum_on_drawn_parameters(rho: float) -> None:
    assert check(CHAPTERS["momentum_3_4"].claim, Recursion("drawn", rho, 200)).verdict == "holds"


@pytest.mark.parametrize("mutation", ["wrong sign in (3.3)", "one client for the average"])
def test_drawn_problems_show_wrong_methods(mutation: str) -> None:
    """The same cases with a wrong method: the theorem is broken on most of them, so the tests above can fail."""
    caught = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        A = np.stack([np.diag(rng.uniform(1.0, 50.0, 3)) for _ in range(3)])
        f = solved("drawn", Quadratic(A=A, b=rng.standard_normal((3, 3)), c=np.zeros(3)))
        case = MUTATIONS[mutation](f.case(exact(f, rho=0.0), 40))
        with np.errstate(all="ignore"):
            caught += check(CHAPTERS["theorem_3_2"].claim, case, check_assumptions=False).verdict == "violated"
    assert caught >= 10
