"""Every explicit claim about FedPD on problems that Hypothesis draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dualopt.lab.claims import check
from dualopt.lab.testing import linear_models, quadratics
from dualopt.losses import Logistic
from dualopt.objectives import Quadratic
from theory._claims import discover
from theory.fedpd._draws import Rows as Sampled
from theory.fedpd._draws import sampled
from theory.fedpd._runs import fedpd_case
from theory.fedpd.fedavg import LocalSteps, Vanishing, bounded_gradient
from theory.fedpd.oracles import Local, Target, counted
from theory.fedpd.oracles import Sampled as LocalRows
from theory.fedpd.similarity import Balance, Rays
from theory.fedpd.skipping import TABLE_A, Table
from theory.mutations.fedpd import MUTATIONS

CHAPTERS = {name: chapter for name, chapter in discover().items() if chapter.selection == "fedpd"}
EXAMPLES = max(20, settings.default.max_examples // 5) if settings.default else 20
many = settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])

CLIENTS, SEEDS = st.integers(2, 4), st.integers(0, 2**32 - 1)
CONVEX = quadratics(L=st.floats(1.5, 100.0), n_clients=CLIENTS, dimension=st.integers(2, 3))
UNEQUAL = {"L": st.floats(2.0, 50.0), "n_clients": CLIENTS, "dimension": st.integers(2, 3), "unequal": True}
FLAT, CONCAVE = quadratics(mu=0.0, **UNEQUAL), quadratics(mu=-0.4, **UNEQUAL)  # one client
ROWS = linear_models(loss=Logistic(), n_clients=CLIENTS, rows=st.integers(10, 20), features=st.just(2), mu=0.1)
PLAIN = linear_models(loss=Logistic(), n_clients=CLIENTS, rows=st.integers(10, 20), features=st.just(2), mu=0.0)


@st.composite
def indefinite(draw: st.DrawFn) -> Quadratic:
    """Clients with curvature of both signs, E with curvature between 0.1 and 2."""
    rng = np.random.default_rng(draw(SEEDS))
    N, d = draw(CLIENTS), draw(st.integers(1, 3))
    parts = rng.standard_normal((N, d, d))
    parts = parts + np.swapaxes(parts, 1, 2)
    A = draw(st.floats(0.5, 5.0)) * (parts - parts.mean(axis=0)) + np.diag(rng.uniform(0.1, 2.0, d))
    return Quadratic(A=A, b=rng.standard_normal((N, d)))


@st.composite
def alike(draw: st.DrawFn) -> Quadratic:
    """One Hessian for all clients, so that A4 holds with a known G."""
    rng = np.random.default_rng(draw(SEEDS))
    N, d = draw(CLIENTS), draw(st.integers(1, 3))
    A = np.diag(rng.uniform(0.05, 1.0, d)) * draw(st.floats(0.01, 100.0))
    return Quadratic(A=np.tile(A, (N, 1, 1)), b=rng.standard_normal((N, d)) * draw(st.floats(0.01, 10.0)))


@st.composite
def data(draw: st.DrawFn, similar: bool = False, noise_only: bool = False) -> Sampled:
    """Two clients of two or three rows: any symmetric Hessians, one for all of them, or one for each client."""
    rng = np.random.default_rng(draw(SEEDS))
    m, d = draw(st.integers(2, 3)), draw(st.integers(1, 2))
    A = rng.standard_normal((1 if similar else 2, 1 if similar or noise_only else m, d, d))
    A = draw(st.floats(0.1, 10.0)) * np.broadcast_to(A + np.swapaxes(A, -1, -2), (2, m, d, d))
    return Sampled(A, draw(st.floats(0.01, 10.0)) * rng.standard_normal((2, m, d)))


def convex_mean(rows: Sampled) -> Sampled:
    """Add a multiple of the identity, with which E has a minimum."""
    return rows._replace(A=rows.A + (0.1 - min(np.linalg.eigvalsh(rows.A[0, 0])[0], 0.0)) * np.eye(rows.A.shape[-1]))


@st.composite
def budgets(draw: st.DrawFn) -> tuple[int, int, int]:
    """The root of the number of rows, Q and N such that B is an integer."""
    steps, N, batch = draw(st.integers(1, 3)), draw(st.integers(2, 3)), draw(st.integers(1, 3))
    return steps * N * batch, steps, N


SMOOTH_QUADRATICS = st.one_of(CONVEX, indefinite(), FLAT, CONCAVE)
SMOOTH = st.one_of(SMOOTH_QUADRATICS, ROWS)
SIMILAR = st.one_of(alike(), ROWS)
# Minima near zero, so that the start is far from them and few rounds are enough.
CLOSE = quadratics(L=st.floats(1.5, 3.0), n_clients=CLIENTS, dimension=st.just(2)).map(
    lambda f: Quadratic(A=f.A, b=0.1 * f.b)
)

# claim -> problems to draw, and the case made of a problem and two numbers in (0, 1)
Build = Callable[[Any, float, float], Any]
DRAWN: dict[str, tuple[st.SearchStrategy, Build]] = {
    "fedpd_equation_28": (SMOOTH, lambda f, s, p: fedpd_case("drawn", f, a=0.9 * s, skip=p, rounds=10)),
    "fedpd_equation_26": (SMOOTH, lambda f, s, p: fedpd_case("drawn", f, a=0.9 * s, skip=p, rounds=10)),
    "fedpd_equation_8": (SMOOTH_QUADRATICS, lambda f, s, p: Local("drawn", f, 0.1 + 0.6 * p, 4, s)),
    "fedpd_equation_9": (data(noise_only=True), lambda f, s, p: LocalRows("drawn", f, 0.9 * s, 4)),
    "fedpd_remark_3": (CLOSE, lambda f, s, p: Target("drawn", fedpd_case("drawn", f, a=0.05 + 0.1 * s), 0.5 + 0.5 * p)),
    "fedpd_remark_4": (budgets(), lambda sizes, s, p: counted(*sizes)),
    "fedpd_assumption_4": (SMOOTH, lambda f, s, p: Rays("drawn", f, 10)),
    "fedpd_quadratic_dissimilarity": (st.one_of(alike(), CONVEX, CONCAVE), lambda f, s, p: Rays("drawn", f, 10)),
    "fedpd_lemma_6": (data(), lambda f, s, p: sampled("drawn", f, a=0.9 * s, skip=p, rounds=4)),
    "fedpd_lemma_7": (data(similar=True), lambda f, s, p: sampled("drawn", f, a=0.9 * s, skip=p, rounds=4)),
    "fedpd_lemma_8": (data(), lambda f, s, p: sampled("drawn", f, a=0.9 * s, skip=p, rounds=4)),
    "fedpd_lemma_9": (data(), lambda f, s, p: sampled("drawn", f, a=0.49 * s, skip=p, rounds=4)),
    "fedpd_first_version_theorem_1": (
        data(similar=True).map(convex_mean),
        lambda f, s, p: sampled("drawn", f, a=0.309 * s, skip=p if p > 0.3 else 0.0, rounds=10),
    ),
    "fedpd_lemma_1": (SMOOTH, lambda f, s, p: fedpd_case("drawn", f, a=0.9 * s, skip=p, rounds=10)),
    "fedpd_lemma_2": (SIMILAR, lambda f, s, p: fedpd_case("drawn", f, a=0.9 * s, skip=p, rounds=6)),
    "fedpd_lemma_3": (SMOOTH, lambda f, s, p: fedpd_case("drawn", f, a=0.9 * s, skip=p, rounds=10)),
    "fedpd_lemma_4": (SMOOTH, lambda f, s, p: fedpd_case("drawn", f, a=0.49 * s, skip=p, rounds=10)),
    "fedpd_theorem_1": (SMOOTH, lambda f, s, p: fedpd_case("drawn", f, a=0.309 * s, rounds=20)),
    "fedpd_theorem_3": (SIMILAR, lambda f, s, p: fedpd_case("drawn", f, a=0.309 * s, skip=p, rounds=4)),
    "fedpd_lemma_5": (PLAIN, lambda f, s, p: local_steps(f, s, power=0.0, steps=1 + int(5 * p))),
    "fedpd_claim_d_1": (PLAIN, lambda f, s, p: local_steps(f, s, power=p, steps=3)),
    "fedpd_assumption_3": (CONVEX, lambda f, s, p: Balance("drawn", f, 0.05 + 10.0 * p)),
    "fedpd_logistic_dissimilarity": (ROWS, lambda f, s, p: Rays("drawn", f, 10)),
    "fedpd_table_iii": (st.just(None), lambda f, s, p: Table("drawn", 100.0 * s, 0.01 * p, 0.01 + 0.49 * p)),
}


def local_steps(objective, size: float, *, power: float, steps: int) -> LocalSteps:
    return LocalSteps(
        name="drawn",
        objective=objective,
        schedule=Vanishing(size / float(np.max(objective.L)), power),
        steps=steps,
        rounds=8,
        G=bounded_gradient(objective),
    )


def test_every_explicit_claim_is_drawn() -> None:
    assert set(DRAWN) == {name for name, chapter in CHAPTERS.items() if chapter.claim.constant == "explicit"}
    assert pytest.approx(0.1545, abs=1e-4) == TABLE_A


SHORT = {"fedpd_theorem_1", "fedpd_theorem_3", "fedpd_first_version_theorem_1", "fedpd_claim_d_1"}


@pytest.mark.parametrize("name", DRAWN)
def test_claim_on_drawn_problems(name: str) -> None:
    problems, build = DRAWN[name]
    seen: dict[str, int] = {}

    @many
    @given(objective=problems, size=st.floats(0.05, 1.0), chance=st.floats(0.01, 0.9))
    def holds(objective: object, size: float, chance: float) -> None:
        verdict = check(CHAPTERS[name].claim, build(objective, size, chance))
        assert verdict.verdict in ("holds", "vacuous"), verdict.witness or verdict.failed or verdict
        seen[verdict.verdict] = seen.get(verdict.verdict, 0) + verdict.compared

    holds()
    assert sum(seen.values()) > 0
    # after so few rounds the theorems bound the mean gradient by more than it was at the start
    assert "holds" in seen or name in SHORT


@pytest.mark.parametrize(
    ("mutation", "name"),
    [("sign of the dual", "fedpd_lemma_4"), ("old for new dual", "fedpd_lemma_3"), ("G understated", "fedpd_lemma_2")],
)
def test_drawn_problems_show_wrong_methods(mutation: str, name: str) -> None:
    """The same claims on wrong methods fail on most such problems, so the tests above can fail."""
    caught = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        b = rng.standard_normal((2, 2))
        f = Quadratic(A=np.tile(np.diag(rng.uniform(0.1, 1.0, 2)), (2, 1, 1)), b=b)
        case = MUTATIONS[mutation](fedpd_case("drawn", f, a=0.2, skip=0.3, rounds=20))
        with np.errstate(all="ignore"):
            caught += check(CHAPTERS[name].claim, case).verdict == "violated"
    assert caught >= 15
