"""Every claim about FedDyn on problems that Hypothesis draws, with every number of active clients."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import islice

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dualopt.lab.claims import check
from dualopt.lab.testing import linear_models, quadratics
from dualopt.losses import Logistic
from dualopt.objectives import Quadratic
from theory._cases import Case
from theory._claims import discover
from theory._problems import solved
from theory.feddyn._runs import by_enumeration, by_moments, feddyn_case
from theory.feddyn.rates import Kind, rate_case
from theory.mutations.feddyn import MUTATIONS

CHAPTERS = {name: chapter for name, chapter in discover().items() if chapter.selection == "feddyn"}
EXAMPLES = max(10, settings.default.max_examples // 10) if settings.default else 10
ROUNDS = 15  # a wrong h has grown by then; after five rounds Lemma 1 does not see it
many = settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])

CLIENTS = st.integers(2, 4)
SHAPES = {"n_clients": CLIENTS, "dimension": st.integers(2, 3), "heterogeneity": st.floats(0.1, 10.0)}
STRONG = quadratics(L=st.floats(1.5, 100.0), **SHAPES)
FLAT = quadratics(mu=0.0, L=st.floats(1.0, 100.0), **SHAPES)
CONCAVE = quadratics(mu=-0.4, L=st.floats(2.0, 50.0), unequal=True, **SHAPES)  # one client
ROWS = linear_models(loss=Logistic(), n_clients=CLIENTS, rows=st.integers(10, 20), features=st.just(2), mu=0.1)


@st.composite
def indefinite(draw: st.DrawFn) -> Quadratic:
    """Clients with curvature of both signs, E with curvature between 0.1 and 2."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    N, d = draw(CLIENTS), draw(st.integers(1, 3))
    parts = rng.standard_normal((N, d, d))
    parts = parts + np.swapaxes(parts, 1, 2)
    A = draw(st.floats(0.5, 5.0)) * (parts - parts.mean(axis=0)) + np.diag(rng.uniform(0.1, 2.0, d))
    return Quadratic(A=A, b=rng.standard_normal((N, d)))


CONVEX = st.one_of(STRONG, FLAT, ROWS)
SMOOTH = st.one_of(STRONG, indefinite(), CONCAVE)


# A problem, the number of active clients, a factor from 1 to 3, and whether the memories start as gradients.
def anywhere(f: Case, P: int, factor: float, warm: bool) -> Case:
    return feddyn_case(f, alpha=3.0 * factor, active=P, rounds=ROUNDS, warm=warm)


def in_convex_range(f: Case, P: int, factor: float, warm: bool, rounds: int = ROUNDS) -> Case:
    return feddyn_case(f, alpha=25.0 * factor, active=P, rounds=rounds, warm=warm)


def in_strongly_convex_range(f: Case, P: int, factor: float, warm: bool, rounds: int = ROUNDS) -> Case:
    least = max(5.0 * f.objective.n_clients / P * f.mu / f.L, 30.0)
    return feddyn_case(f, alpha=least * factor, active=P, rounds=rounds, warm=warm)


def in_nonconvex_range(f: Case, P: int, factor: float, warm: bool, rounds: int = ROUNDS) -> Case:
    return feddyn_case(f, alpha=20.0 * f.objective.n_clients / P * factor, active=P, rounds=rounds, warm=warm)


def with_named_alpha(f: Case, P: int, factor: float, warm: bool) -> Case:
    kinds: tuple[Kind, ...] = ("nonconvex", "convex", "strongly convex")
    mu = f.mu if f.mu > 1e-12 * f.L else 0.0 if f.mu > -1e-12 * f.L else -1.0
    suited = kinds[: 3 if mu > 0 else 2 if mu == 0 else 1]
    kind = suited[round(10.0 * factor) % len(suited)]
    return rate_case(f, kind, active=P, rounds=200, warm=warm or mu == 0)  # flat clients may have no stationary point


def problem(f: Case, P: int, factor: float, warm: bool) -> Case:
    return f


Build = Callable[[Case, int, float, bool], Case | Case]
DRAWN: dict[str, tuple[st.SearchStrategy, Build]] = {
    "feddyn_equation_9": (CONVEX, anywhere),
    "feddyn_smoothness": (CONVEX, problem),
    "feddyn_lemma_6": (SMOOTH, problem),
    "feddyn_lemma_1": (CONVEX, in_convex_range),
    "feddyn_lemma_2": (CONVEX, anywhere),
    "feddyn_lemma_3": (SMOOTH, anywhere),
    "feddyn_lemma_4": (CONVEX, anywhere),
    "feddyn_lemma_5": (CONVEX, anywhere),
    "feddyn_lemma_7": (CONVEX, anywhere),
    "feddyn_lemma_8": (st.one_of(STRONG, ROWS), in_strongly_convex_range),
    "feddyn_lemma_9": (SMOOTH, anywhere),
    "feddyn_lemma_10": (SMOOTH, in_nonconvex_range),
    "feddyn_lemma_11": (SMOOTH, anywhere),
    "feddyn_lemma_12": (SMOOTH, anywhere),
    "feddyn_theorem_1": (st.one_of(STRONG, FLAT, CONCAVE), with_named_alpha),
    "feddyn_theorem_2": (st.one_of(STRONG, FLAT), partial(in_convex_range, rounds=200)),
    "feddyn_theorem_3": (STRONG, partial(in_strongly_convex_range, rounds=200)),
    "feddyn_theorem_4": (SMOOTH, partial(in_nonconvex_range, rounds=200)),
}


def test_every_claim_is_drawn() -> None:
    assert set(DRAWN) == set(CHAPTERS) - {"feddyn_scaffold"}  # about another method


@pytest.mark.parametrize("name", DRAWN)
def test_claim_on_drawn_problems(name: str) -> None:
    problems, build = DRAWN[name]

    @many
    @given(objective=problems, share=st.floats(0.0, 1.0), factor=st.floats(1.0, 3.0), warm=st.booleans())
    def holds(objective, share: float, factor: float, warm: bool) -> None:
        active = 1 + round(share * (objective.n_clients - 1))
        verdict = check(CHAPTERS[name].claim, build(solved("drawn", objective), active, factor, warm))
        allowed = ("holds", "vacuous") if "theorem" in name else ("holds",)  # 200 rounds may be too few
        assert verdict.verdict in allowed, verdict.witness or verdict.failed

    holds()


@many
@given(objective=STRONG, r=st.floats(1.0, 1.5), warm=st.booleans())
def test_moments_are_what_enumeration_finds(objective, r: float, warm: bool) -> None:
    case = feddyn_case(solved("drawn", objective), alpha=1.0, active=1, rounds=4, warm=warm)
    for counted, moved in islice(zip(by_enumeration(case, r), by_moments(case, r), strict=False), 4):
        np.testing.assert_allclose(moved, counted, rtol=1e-9)


@pytest.mark.parametrize("mutation", ["parenthesis of h dropped", "wrong sign of the memory"])
def test_drawn_problems_show_wrong_methods(mutation: str) -> None:
    """The same cases with a wrong method: the lemma is broken on all of them, so the tests above can fail."""
    caught = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        A = np.stack([np.diag(rng.uniform(1.0, 50.0, 3)) for _ in range(3)])
        f = solved("drawn", Quadratic(A=A, b=rng.standard_normal((3, 3)), c=np.zeros(3)))
        wrong = MUTATIONS[mutation](in_convex_range(f, 2, 1.0, False))
        caught += check(CHAPTERS["feddyn_lemma_1"].claim, wrong).verdict == "violated"
    assert caught == 20
