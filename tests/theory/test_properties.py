"""Every explicit claim on problems that Hypothesis draws: 8 each, 200 with ``--hypothesis-profile=deep``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from dualopt.lab.chance import coins
from dualopt.lab.claims import check
from dualopt.lab.testing import linear_models, quadratics
from dualopt.losses import AbsoluteDeviation, Hinge, Huber, Logistic, Squared
from dualopt.methods import DistributedLBFGS, DistributedNewtonCG, DualFL, OptimizedDualFL
from dualopt.methods.participation import Full, UniformSubset
from dualopt.objectives import LocalProblem, Quadratic, linear_model
from dualopt.solvers import Gradient
from dualopt.solvers.stopping import Gap, LinearSchedule, Steps, SublinearSchedule
from theory._cases import Case
from theory._claims import discover
from theory._problems import solved
from theory.afedpd._pairs import neighbours
from theory.afedpd._runs import afedpd_case
from theory.afedpd.drift import drift_case
from theory.afedpd.inexact import RowsCase, inexact_case
from theory.afedpd.stability import one_round
from theory.baselines.bias import fedavg_case, fedprox_case
from theory.baselines.contraction import feddr_case, fedsplit_case, fivegcs_case, scaffnew_case, scaffold_case
from theory.baselines.servers import central_case, descent_case
from theory.dualfl import regularised
from theory.dualfl._fista import Fista
from theory.dualfl._runs import exact, inexact
from theory.dualfl.duality import random_composition
from theory.dualfl.exact_solutions import Recursion
from theory.dualfl.inexact_solutions import Geometric, Power
from theory.dualfl.local_steps import with_constant_momentum
from theory.feddyn._runs import by_enumeration, by_moments, feddyn_case
from theory.feddyn.rates import Kind, rate_case
from theory.fedpd._draws import Rows as Sampled
from theory.fedpd._draws import sampled
from theory.fedpd._runs import fedpd_case
from theory.fedpd.fedavg import LocalSteps, Vanishing, bounded_gradient
from theory.fedpd.oracles import Local, Target, counted
from theory.fedpd.oracles import Sampled as LocalRows
from theory.fedpd.similarity import Balance, Rays
from theory.fedpd.skipping import TABLE_A, Table
from theory.frontier import growing_feddyn, sampled_dualfl, sampled_feddyn, sampled_fedsplit, scaled_dualfl
from theory.frontier.weighted_feddyn import weighted_case
from theory.identities import methods, splitting, states
from theory.identities._runs import EXACT
from theory.identities.states import Unequal
from theory.mutations import dualfl as wrong_dualfl
from theory.mutations import feddyn as wrong_feddyn
from theory.mutations import fedpd as wrong_fedpd
from theory.optimized_dualfl import rate
from theory.optimized_dualfl._runs import optimized

CHAPTERS = discover()
EXAMPLES = settings.default.max_examples // 5 if settings.default else 8
many = settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])

SEEDS, UNIT, FRACTIONS = st.integers(0, 2**32 - 1), st.floats(0.0, 1.0), st.floats(0.05, 0.95)
CLIENTS, DIFFERENCES = st.integers(2, 4), st.floats(0.1, 10.0)


@st.composite
def unequal_quadratics(draw: st.DrawFn) -> Quadratic:
    """Clients with ``mu_j`` in [0.1, 10] and ``L_j`` in [mu_j, 30 mu_j]."""
    rng, n = np.random.default_rng(draw(SEEDS)), draw(st.integers(2, 5))
    matrices = []
    for _ in range(n):
        q, _ = np.linalg.qr(rng.standard_normal((3, 3)))
        matrix = q @ np.diag(10.0 ** rng.uniform(-1.0, 1.0) * rng.uniform(1.0, 30.0, 3)) @ q.T
        matrices.append(0.5 * (matrix + matrix.T))
    b = draw(DIFFERENCES) * rng.standard_normal((n, 3))
    return Quadratic(A=np.stack(matrices), b=b, c=rng.uniform(1.0, 2.0, n))


def indefinite_quadratics(seed: int, n: int, d: int, spread: float, least: float) -> Quadratic:
    """Clients with curvature of both signs, E with curvature between ``least`` and 2."""
    rng = np.random.default_rng(seed)
    parts = rng.standard_normal((n, d, d))
    parts = parts + np.swapaxes(parts, 1, 2)
    A = spread * (parts - parts.mean(axis=0)) + np.diag(rng.uniform(least, 2.0, d))
    return Quadratic(A=A, b=rng.standard_normal((n, d)))


UNEQUAL = unequal_quadratics()
INDEFINITE = st.builds(
    indefinite_quadratics, seed=SEEDS, n=CLIENTS, d=st.integers(1, 3), spread=st.floats(0.5, 5.0), least=st.just(0.1)
)
QUADRATIC = st.one_of(quadratics(L=st.floats(2.0, 300.0), heterogeneity=DIFFERENCES), UNEQUAL)
ROWS = linear_models(loss=Logistic(), n_clients=CLIENTS, rows=st.integers(10, 20), features=st.just(2), mu=0.1)
REGULARISED_ROWS = linear_models(loss=Logistic(), n_clients=CLIENTS, rows=st.integers(10, 30), mu=st.floats(0.02, 1.0))
NO_RIDGE = linear_models(loss=Logistic(), n_clients=CLIENTS, rows=st.integers(10, 20), features=st.just(2), mu=0.0)
SMOOTH = st.one_of(QUADRATIC, REGULARISED_ROWS)
NONSMOOTH = linear_models(
    loss=st.sampled_from([Hinge(), AbsoluteDeviation()]),
    n_clients=st.integers(2, 3),
    rows=st.integers(6, 12),
    features=st.just(2),
    mu=st.floats(0.2, 1.0),
)
# Many rows in few dimensions, so that no hyperplane separates them and the minimum is attained.
PLAIN = linear_models(loss=Logistic(), n_clients=st.just(2), rows=st.integers(40, 60), features=st.just(1), mu=0.0)
SHAPES: dict[str, Any] = {"n_clients": CLIENTS, "dimension": st.integers(2, 3)}
STRONG = quadratics(L=st.floats(1.5, 100.0), heterogeneity=DIFFERENCES, **SHAPES)
FLAT = quadratics(mu=0.0, L=st.floats(1.0, 100.0), heterogeneity=DIFFERENCES, **SHAPES)
CONCAVE = quadratics(mu=-0.4, L=st.floats(2.0, 50.0), unequal=True, heterogeneity=DIFFERENCES, **SHAPES)  # one client
WELL = quadratics(n_clients=st.integers(2, 5), L=st.floats(2.0, 50.0), heterogeneity=st.floats(0.1, 5.0))
ANY_SIGN = st.one_of(STRONG, INDEFINITE, CONCAVE)
MIXED = st.one_of(INDEFINITE, WELL, REGULARISED_ROWS)


def on(problems: Any, build: Callable[..., Any], *more: Any, most: float = np.inf) -> st.SearchStrategy[Any]:
    """Cases made of a solved problem, whose solution is at most so long, and of what else is drawn."""

    def made(drawn: tuple[Any, ...]) -> Any:
        objective, *others = drawn
        f = solved("drawn", objective)
        assume(np.linalg.norm(f.theta) < most)  # without a ridge, nearly separated rows
        return build(f, *others)

    return st.tuples(problems, *more).map(made)


def some(f: Case, share: float) -> int:
    """A number of active clients, at least one."""
    return min(f.objective.n_clients, 1 + int(share * f.objective.n_clients))


# ---- DualFL and OptimizedDualFL ----


def dualfl(problems: Any, build: Callable[[Case, float], Any]) -> st.SearchStrategy[Any]:
    return on(problems, build, FRACTIONS, most=10)


def fista(f: Case, s: float) -> Case:
    errors = Geometric(scale=1e-3, ratio=(1.0 - (s * f.mu / f.L) ** 0.5) / 1.1)
    return f.case(Fista(rho=s * f.mu / f.L, nu=s * f.mu, errors=errors), 50)


def to_gap(f: Case, s: float) -> Case:
    stop = Gap(schedule=LinearSchedule(rho=s * f.mu / f.L, scale=1e-3))
    return f.case(inexact(f, stop, rho=s * f.mu / f.L), 30)


def optimised(f: Case, share: float, part: float) -> Case:
    return f.case(optimized(f, nu=part * f.mu, rho=share * part * f.mu / f.L), 20)


def ridge(steps: int, *, accelerated: bool) -> Callable[[Case, float], Any]:
    low, high = (0.05, 1.0) if accelerated else (0.02, 0.05)
    return lambda f, s: regularised.plain_case(f, low + high * s, steps, accelerated=accelerated)


def rough_ridge(steps: int, scale: float, *, accelerated: bool) -> Callable[[Case, float], Any]:
    low, high = (0.05, 1.0) if accelerated else (0.02, 0.05)
    return lambda f, s: regularised.inexact_case(f, low + high * s, steps, accelerated=accelerated, scale=scale)


DUALFL: dict[str, st.SearchStrategy[Any]] = {
    "momentum_3_4": st.floats(0.0, 0.999).map(lambda rho: Recursion("drawn", rho, 200)),
    "dual_certificate": dualfl(SMOOTH, lambda f, s: f.case(inexact(f, Steps(steps=2), rho=0.0, solver=Gradient()), 10)),
    "gradient_certificate": dualfl(SMOOTH, lambda f, s: f.case(exact(f), 10)),
    "gap_3_6": dualfl(
        SMOOTH, lambda f, s: f.case(inexact(f, Steps(steps=5), rho=0.0, nu=s * f.mu, solver=Gradient()), 5)
    ),
    "lemma_6_4": dualfl(QUADRATIC, lambda f, s: f.case(exact(f, nu=s * f.mu), 5)),
    "lemma_6_5": dualfl(QUADRATIC, lambda f, s: f.case(exact(f, nu=s * f.mu, rho=s**2 * f.mu / f.L), 20)),
    "proposition_3_1": dualfl(QUADRATIC, lambda f, s: f.case(exact(f, nu=s * f.mu), 8)),
    "proposition_6_2": dualfl(
        QUADRATIC, lambda f, s: f.case(Fista(rho=0.0, nu=s * f.mu, errors=Power(scale=1e-3, exponent=4.1)), 50)
    ),
    "proposition_6_3": dualfl(QUADRATIC, fista),
    "relation_6_5": dualfl(QUADRATIC, lambda f, s: f.case(exact(f, nu=s * f.mu, rho=0.0), 8)),
    "sum_zeta": dualfl(SMOOTH, lambda f, s: f.case(inexact(f, Steps(steps=1), rho=0.01, solver=Gradient()), 40)),
    "theorem_3_2": dualfl(
        st.one_of(SMOOTH, NONSMOOTH), lambda f, s: f.case(exact(f, rho=0.0, nu=(0.5 + 0.5 * s) * f.mu), 12)
    ),
    "theorem_3_2_inexact": dualfl(
        SMOOTH, lambda f, s: f.case(inexact(f, Gap(schedule=SublinearSchedule(nu=f.mu, scale=1e-3)), rho=0.0), 20)
    ),
    "theorem_3_3": dualfl(SMOOTH, lambda f, s: f.case(exact(f, rho=s * f.mu / f.L), 40)),
    "theorem_3_3_inexact": dualfl(SMOOTH, to_gap),
    "theorem_3_4": dualfl(NONSMOOTH, lambda f, s: f.case(exact(f, rho=0.0), 1)),
    "theorem_3_5": dualfl(QUADRATIC, lambda f, s: f.case(exact(f), 10)),
    "conjugates_of_dual_points": dualfl(QUADRATIC, lambda f, s: f.case(exact(f, nu=s * f.mu), 5)),
    "proposition_6_1": FRACTIONS.map(lambda s: random_composition(2, 1 + int(4 * s), seed=int(1e6 * s))),
    "theorem_3_5_target": dualfl(
        SMOOTH, lambda f, s: f.case(with_constant_momentum(f, share=0.2 + 0.8 * s, scale=1e-3), 30)
    ),
    "relations_6_13_and_6_14": dualfl(SMOOTH, lambda f, s: f.case(exact(f, nu=(0.5 + 0.5 * s) * f.mu), 10)),
    "theorem_4_1_inexact": dualfl(PLAIN, rough_ridge(60, 1e-7, accelerated=False)),
    "theorem_4_2_inexact": dualfl(PLAIN, rough_ridge(30, 1e-3, accelerated=True)),
    "theorem_4_1": dualfl(PLAIN, ridge(60, accelerated=False)),
    "theorem_4_2": dualfl(PLAIN, ridge(12, accelerated=True)),
    "theorem_4_2_rounds": dualfl(PLAIN, ridge(1, accelerated=True)),
    "optimized_growth": st.floats(0.0, 0.999).map(lambda rho: rate.Growth("drawn", rho, 200)),
    "optimized_is_item": on(QUADRATIC, optimised, UNIT, st.floats(0.3, 1.0), most=10),
    "optimized_potential": on(SMOOTH, optimised, UNIT, st.floats(0.3, 1.0), most=10),
    "optimized_theorem": on(SMOOTH, optimised, UNIT, st.floats(0.3, 1.0), most=10),
}


# ---- FedPD: problems that need not have a solution ----


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


def local_steps(objective: Any, size: float, *, power: float, steps: int) -> LocalSteps:
    schedule = Vanishing(size / float(np.max(objective.L)), power)
    G = bounded_gradient(objective)
    return LocalSteps(name="drawn", objective=objective, schedule=schedule, steps=steps, rounds=8, G=G)


def fedpd(problems: Any, build: Callable[[Any, float, float], Any]) -> st.SearchStrategy[Any]:
    """Cases made of a problem, a step and a probability."""
    drawn = st.tuples(problems, st.floats(0.05, 1.0), st.floats(0.01, 0.9))
    return drawn.map(lambda given: build(*given))


def skips(rounds: int, a: float = 0.9) -> Callable[[Any, float, float], Any]:
    return lambda f, s, p: fedpd_case("drawn", f, a=a * s, skip=p, rounds=rounds)


def draws(a: float) -> Callable[[Any, float, float], Any]:
    return lambda f, s, p: sampled("drawn", f, a=a * s, skip=p, rounds=4)


PD_QUADRATICS = st.one_of(STRONG, INDEFINITE, FLAT, CONCAVE)
PD_SMOOTH, SIMILAR = st.one_of(PD_QUADRATICS, ROWS), st.one_of(alike(), ROWS)
# Minima near zero, so that the start is far from them and few rounds are enough.
CLOSE = quadratics(L=st.floats(1.5, 3.0), n_clients=CLIENTS, dimension=st.just(2)).map(
    lambda f: Quadratic(A=f.A, b=0.1 * f.b)
)
FEDPD: dict[str, st.SearchStrategy[Any]] = {
    "fedpd_equation_28": fedpd(PD_SMOOTH, skips(10)),
    "fedpd_equation_26": fedpd(PD_SMOOTH, skips(10)),
    "fedpd_equation_8": fedpd(PD_QUADRATICS, lambda f, s, p: Local("drawn", f, 0.1 + 0.6 * p, 4, s)),
    "fedpd_equation_9": fedpd(data(noise_only=True), lambda f, s, p: LocalRows("drawn", f, 0.9 * s, 4)),
    "fedpd_remark_3": fedpd(
        CLOSE, lambda f, s, p: Target("drawn", fedpd_case("drawn", f, a=0.05 + 0.1 * s), 0.5 + 0.5 * p)
    ),
    # the root of the number of rows, Q and N such that B is an integer
    "fedpd_remark_4": st.tuples(st.integers(1, 3), st.integers(2, 3), st.integers(1, 3)).map(
        lambda of: counted(of[0] * of[1] * of[2], of[0], of[1])
    ),
    "fedpd_assumption_4": fedpd(PD_SMOOTH, lambda f, s, p: Rays("drawn", f, 10)),
    "fedpd_quadratic_dissimilarity": fedpd(st.one_of(alike(), STRONG, CONCAVE), lambda f, s, p: Rays("drawn", f, 10)),
    "fedpd_lemma_6": fedpd(data(), draws(0.9)),
    "fedpd_lemma_7": fedpd(data(similar=True), draws(0.9)),
    "fedpd_lemma_8": fedpd(data(), draws(0.9)),
    "fedpd_lemma_9": fedpd(data(), draws(0.49)),
    "fedpd_first_version_theorem_1": fedpd(
        data(similar=True).map(convex_mean),
        lambda f, s, p: sampled("drawn", f, a=0.309 * s, skip=p if p > 0.3 else 0.0, rounds=10),
    ),
    "fedpd_lemma_1": fedpd(PD_SMOOTH, skips(10)),
    "fedpd_lemma_2": fedpd(SIMILAR, skips(6)),
    "fedpd_lemma_3": fedpd(PD_SMOOTH, skips(10)),
    "fedpd_lemma_4": fedpd(PD_SMOOTH, skips(10, 0.49)),
    "fedpd_theorem_1": fedpd(PD_SMOOTH, lambda f, s, p: fedpd_case("drawn", f, a=0.309 * s, rounds=20)),
    "fedpd_theorem_3": fedpd(SIMILAR, skips(4, 0.309)),
    "fedpd_lemma_5": fedpd(NO_RIDGE, lambda f, s, p: local_steps(f, s, power=0.0, steps=1 + int(5 * p))),
    "fedpd_claim_d_1": fedpd(NO_RIDGE, lambda f, s, p: local_steps(f, s, power=p, steps=3)),
    "fedpd_assumption_3": fedpd(STRONG, lambda f, s, p: Balance("drawn", f, 0.05 + 10.0 * p)),
    "fedpd_logistic_dissimilarity": fedpd(ROWS, lambda f, s, p: Rays("drawn", f, 10)),
    "fedpd_table_iii": fedpd(st.none(), lambda f, s, p: Table("drawn", 100.0 * s, 0.01 * p, 0.01 + 0.49 * p)),
}
# After so few rounds the theorems may bound the mean gradient by more than it was at the start.
SHORT = {"fedpd_theorem_1", "fedpd_theorem_3", "fedpd_first_version_theorem_1", "fedpd_claim_d_1"}


# ---- FedDyn, with every number of active clients; the memories may start as gradients ----

ROUNDS = 15  # a wrong h has grown by then; after five rounds Lemma 1 does not see it


def anywhere(f: Case, P: int, factor: float, warm: bool, rounds: int = ROUNDS, least: float = 3.0) -> Case:
    return feddyn_case(f, alpha=least * factor, active=P, rounds=rounds, warm=warm)


in_convex_range = partial(anywhere, least=25.0)


def in_strongly_convex_range(f: Case, P: int, factor: float, warm: bool, rounds: int = ROUNDS) -> Case:
    least = max(5.0 * f.objective.n_clients / P * f.mu / f.L, 30.0)
    return anywhere(f, P, factor, warm, rounds, least)


def in_nonconvex_range(f: Case, P: int, factor: float, warm: bool, rounds: int = ROUNDS) -> Case:
    return anywhere(f, P, factor, warm, rounds, 20.0 * f.objective.n_clients / P)


def with_named_alpha(f: Case, P: int, factor: float, warm: bool) -> Case:
    kinds: tuple[Kind, ...] = ("nonconvex", "convex", "strongly convex")
    mu = f.mu if f.mu > 1e-12 * f.L else 0.0 if f.mu > -1e-12 * f.L else -1.0
    suited = kinds[: 3 if mu > 0 else 2 if mu == 0 else 1]
    kind = suited[round(10.0 * factor) % len(suited)]
    return rate_case(f, kind, active=P, rounds=200, warm=warm or mu == 0)  # flat clients may have no stationary point


def partly(problems: Any, build: Callable[..., Any], *more: Any) -> st.SearchStrategy[Any]:
    """Cases made of a problem, a number of active clients, and of what else is drawn."""

    def made(f: Case, share: float, *others: Any) -> Any:
        return build(f, 1 + round(share * (f.objective.n_clients - 1)), *others)

    return on(problems, made, UNIT, *more)


def dyn(problems: Any, build: Callable[..., Any]) -> st.SearchStrategy[Any]:
    return partly(problems, build, st.floats(1.0, 3.0), st.booleans())


DYN_CONVEX = st.one_of(STRONG, FLAT, ROWS)
FEDDYN: dict[str, st.SearchStrategy[Any]] = {
    "feddyn_smoothness": on(DYN_CONVEX, lambda f: f),
    "feddyn_lemma_6": on(ANY_SIGN, lambda f: f),
    "feddyn_lemma_1": dyn(DYN_CONVEX, in_convex_range),
    "feddyn_lemma_8": dyn(st.one_of(STRONG, ROWS), in_strongly_convex_range),
    "feddyn_lemma_10": dyn(ANY_SIGN, in_nonconvex_range),
    **{
        f"feddyn_{name}": dyn(DYN_CONVEX, anywhere)
        for name in ("equation_9", "lemma_2", "lemma_4", "lemma_5", "lemma_7")
    },
    **{f"feddyn_{name}": dyn(ANY_SIGN, anywhere) for name in ("lemma_3", "lemma_9", "lemma_11", "lemma_12")},
    "feddyn_theorem_1": dyn(st.one_of(STRONG, FLAT, CONCAVE), with_named_alpha),
    "feddyn_theorem_2": dyn(st.one_of(STRONG, FLAT), partial(in_convex_range, rounds=200)),
    "feddyn_theorem_3": dyn(STRONG, partial(in_strongly_convex_range, rounds=200)),
    "feddyn_theorem_4": dyn(ANY_SIGN, partial(in_nonconvex_range, rounds=200)),
}


# ---- A-FedPD, and the identities ----


def afedpd(problems: Any, build: Callable[[Case, float], Any]) -> st.SearchStrategy[Any]:
    return on(problems, build, FRACTIONS, most=100)


def run(rounds: int, *, least: int = 1, everyone: bool = False) -> Callable[[Case, float], Case]:
    def build(f: Case, s: float) -> Case:
        active = f.objective.n_clients if everyone else max(least, some(f, s))
        return afedpd_case(f, rho=(2.05 + 5.0 * s) * f.L, active=active, rounds=rounds)

    return build


def roughly(rounds: int, share: Callable[[float], float]) -> Callable[[Case, float], Case]:
    return lambda f, s: inexact_case(f, factor=2.05 + 5.0 * s, share=share(s), rounds=rounds)


def local_rows(seed: int, s: float) -> RowsCase:
    """A local problem of a few rows."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((5, 2)), rng.standard_normal(5)
    objective = linear_model(X, y, loss=Squared(), mu=0.0, clients=1, intercept=False)
    center, dual, start = rng.standard_normal((3, 1, 2))
    weight = (1.2 + 3.0 * s) * float(np.max(np.sum(X**2, axis=1)))
    problem = LocalProblem(objective=objective, linear=dual, weight=weight, center=center)
    return RowsCase(name="drawn", problem=problem, start=start, steps=100)


def pairs(decayed: Callable[[float], bool], fraction: Any = FRACTIONS) -> st.SearchStrategy[Any]:
    """Two data sets that differ in one row."""

    def build(seed: int, s: float) -> Any:
        loss = Logistic() if s < 0.5 else Huber(delta=0.5 * s)
        local_steps, size = (1, 3) if int(100 * s) % 2 else (2, 2)
        sizes = {"size": size, "local_steps": local_steps, "rounds": 2}
        return neighbours(loss, step=0.8 * s, rho=1.0 + 0.2 * s, decayed=decayed(s), seed=seed, **sizes)

    return st.builds(build, SEEDS, fraction)


def drifting(f: Case, s: float) -> Case:
    """FedADMM on the drawn problem; the relation along the run, and the fixed point where it is one."""
    parameters = {"rho": (0.2 + s) * f.L, "server_step": 0.3 + s, "theta0": f.theta + 1.0}
    return drift_case(f, active=some(f, s), rounds=15, arrives=False, **parameters)


def subset(f: Case, s: float) -> UniformSubset:
    return UniformSubset(size=some(f, s))


CONTRACTING = quadratics(n_clients=CLIENTS, L=st.floats(2.0, 10.0), heterogeneity=st.floats(0.1, 5.0))
AFEDPD: dict[str, st.SearchStrategy[Any]] = {
    **{f"afedpd_{name}": afedpd(MIXED, run(5)) for name in ("lemma_1", "lemma_2", "lemma_3")},
    "afedpd_descent": afedpd(MIXED, run(15, everyone=True)),
    "afedpd_theorem_1": afedpd(MIXED, run(60, everyone=True)),
    "afedpd_descent_inexact": afedpd(MIXED, roughly(6, lambda s: 0.5 * s)),
    "afedpd_theorem_1_inexact": afedpd(MIXED, roughly(80, lambda s: 0.001)),
    "afedpd_theorem_1_partial": afedpd(CONTRACTING, run(80, least=2)),  # one active client is never enough (A3)
    "afedpd_remark_1_1": afedpd(MIXED, run(40, everyone=True)),
    "afedpd_remark_1_2": st.builds(local_rows, SEEDS, FRACTIONS),
    "afedpd_remark_2_1": FRACTIONS.map(lambda s: one_round(1 + int(4 * s), step=0.2 * s, rho=1.1 + 3.0 * s)),
    "afedpd_range_of_rho": afedpd(INDEFINITE, run(1, everyone=True)),
    "afedpd_lemma_4": pairs(lambda s: False),
    "afedpd_lemma_5": pairs(lambda s: True),
    "afedpd_lemma_6": pairs(lambda s: True),
    "afedpd_recursion": pairs(lambda s: s < 0.3),
    "afedpd_theorem_2": pairs(lambda s: True, st.floats(0.505, 0.595)),
    "fedadmm_dual_drift": afedpd(WELL, drifting),
    "identity_full_participation": afedpd(WELL, lambda f, s: methods.with_weight(f, (0.2 + s) * f.L, EXACT)),
    "identity_fedsplit_feddr": afedpd(
        WELL, lambda f, s: methods.fedsplit_and_feddr(f, (0.1 + s) / f.L, subset(f, s), EXACT)
    ),
    "identity_fedadmm_feddr": afedpd(
        WELL, lambda f, s: methods.fedadmm_and_feddr(f, (0.2 + s) * f.L, subset(f, s), EXACT)
    ),
    "identity_virtual_updates": afedpd(WELL, lambda f, s: states.virtually(f, (2.0 + s) * f.L, subset(f, s), EXACT)),
    "identity_mean_dual": afedpd(WELL, lambda f, s: states.a_fedpd(f, (2.0 + s) * f.L, some(f, s))),
    "identity_point_saga": afedpd(WELL, lambda f, s: splitting.splitting(f, (0.2 + s) / f.L, UniformSubset(size=1))),
    "identity_douglas_rachford": afedpd(WELL, lambda f, s: splitting.splitting(f, (0.2 + s) / f.L, Full())),
    "identity_feddyn_rows": FRACTIONS.map(
        lambda s: Unequal("drawn", 0.5 + 10 * s, UniformSubset(size=1 + int(3 * s)), 15)
    ),
}


# ---- methods that the papers compare ----


def baseline(problems: Any, build: Callable[[Case, int, float, float], Any]) -> st.SearchStrategy[Any]:
    return partly(problems, build, UNIT, UNIT)


def scaffold(f: Case, active: int, a: float, b: float) -> Case:
    steps, option = 1 + round(9 * a), 1 + round(b)
    return scaffold_case(f, active, K=steps, option=option, times=(0.1 + 0.9 * a) / 3.0, server_step=0.3 + 0.7 * b)


MODERATE = quadratics(L=st.floats(1.5, 30.0), heterogeneity=DIFFERENCES, **SHAPES)
EASY = st.one_of(MODERATE, ROWS)
BASELINES: dict[str, st.SearchStrategy[Any]] = {
    "fedavg_bias": baseline(MODERATE, lambda f, P, a, b: fedavg_case(f, 0.3 + 1.6 * a, 1 + round(9 * b), P)),
    "fedprox_bias": baseline(MODERATE, lambda f, P, a, b: fedprox_case(f, 0.01 + 5.0 * a, P)),
    "fedsplit_contraction": on(EASY, lambda f: fedsplit_case(f, attained=hasattr(f.objective, "A"))),
    "feddr_contraction": baseline(
        EASY, lambda f, P, a, b: feddr_case(f, a=0.05 + 1.95 * a, step=0.1 * 10.0 ** (3.0 * b), active=P)
    ),
    "fivegcs_one_step": baseline(
        EASY, lambda f, P, a, b: fivegcs_case(f, P, gamma=10.0 ** (4.0 * a - 2.0) / f.L, product=0.01 + 0.99 * b)
    ),
    "scaffnew_one_step": baseline(
        EASY, lambda f, P, a, b: scaffnew_case(f, 0.1 + 1.8 * a, 0.05 + 0.95 * b, attained=hasattr(f.objective, "A"))
    ),
    "scaffold_fixed_point": baseline(EASY, scaffold),
    "gradient_descent_contraction": on(EASY, lambda f, a: descent_case(f, 0.05 + 1.9 * a), UNIT),
    "lbfgs_is_central": on(
        EASY, lambda f, a: central_case(f, DistributedLBFGS(history=1 + round(9 * a)), "drawn"), UNIT
    ),
    "newton_cg_is_central": on(
        EASY, lambda f, a: central_case(f, DistributedNewtonCG(max_cg=1 + round(9 * a)), "drawn"), UNIT
    ),
}


# ---- beyond the papers ----

SHARE = st.floats(0.0, 0.99)
FAR = st.one_of(quadratics(L=st.floats(1.5, 300.0), n_clients=CLIENTS, heterogeneity=DIFFERENCES), UNEQUAL)


def by_coins(f: Case, chances: list[float], times: float, scaled: bool) -> Case:
    law = coins(*chances[: f.objective.n_clients])
    return sampled_fedsplit.sampled_case(f, law, "drawn", times=times, scaled=scaled)


def with_scales(f: Case, kind: type, part: float) -> Case:
    return scaled_dualfl.scaled_case(f, kind, 30, rho=0.0 if kind is DualFL else None, times=part)


def theorem_f(rounds: int) -> st.SearchStrategy[Any]:
    return on(
        FAR,
        lambda f, share, rho, nu: sampled_dualfl.sampled(f, some(f, share), rounds, rho=rho, nu=nu),
        *(SHARE, UNIT, st.floats(0.1, 0.99)),
        most=100,
    )


FRONTIER: dict[str, st.SearchStrategy[Any]] = {
    "sampled_feddyn": on(
        FAR,
        lambda f, share, times: sampled_feddyn.sampled_case(f, some(f, share), times=times),
        *(SHARE, st.floats(1.0, 10.0)),
        most=100,
    ),
    "weighted_feddyn": on(
        UNEQUAL,
        lambda f, share, times, even: weighted_case(f, some(f, share), times=times, proportional=even),
        *(SHARE, st.floats(1.0, 10.0), st.booleans()),
        most=100,
    ),
    "sampled_fedsplit": on(
        FAR,
        by_coins,
        *(st.lists(st.floats(0.05, 1.0), min_size=5, max_size=5), st.floats(0.1, 10.0), st.booleans()),
        most=100,
    ),
    "growing_feddyn": on(
        FAR,
        lambda f, share, alpha, times: growing_feddyn.growing_case(f, some(f, share), 2, alpha=alpha, times=times),
        *(SHARE, st.floats(0.01, 30.0), UNIT),
        most=100,
    ),
    "scaled_dualfl": on(FAR, with_scales, st.sampled_from([DualFL, OptimizedDualFL]), st.floats(0.3, 0.99), most=10),
    "sampled_dualfl_potential": theorem_f(12),
    "sampled_dualfl": theorem_f(2),
}
DRAWN = DUALFL | FEDPD | FEDDYN | AFEDPD | BASELINES | FRONTIER
# Others may be vacuous in the rounds that are run, or inconclusive, on at most half of the problems.
STRICT = {*FEDDYN, *BASELINES, *FRONTIER} - {"scaled_dualfl", *(f"feddyn_theorem_{k}" for k in range(1, 5))}


def test_every_explicit_claim_is_drawn() -> None:
    """But a limit, to be waited for, and SCAFFOLD in another paper's notation; of the frontier some are."""
    papers = ("afedpd", "identities", "dualfl", "fedpd", "feddyn", "baselines", "optimized_dualfl")
    explicit = {n for n, c in CHAPTERS.items() if c.claim.constant == "explicit" and c.selection in papers}
    assert explicit - {"afedpd_equation_6", "feddyn_scaffold"} <= set(DRAWN) <= set(CHAPTERS)
    assert pytest.approx(0.1545, abs=1e-4) == TABLE_A


@pytest.mark.parametrize("name", DRAWN)
def test_claim_on_drawn_problems(name: str) -> None:
    seen: Counter[str] = Counter()
    admitted = ("holds",) if name in STRICT else ("holds", "vacuous", "inconclusive")

    @many
    @given(case=DRAWN[name])
    def holds(case: Any) -> None:
        verdict = check(CHAPTERS[name].claim, case)
        assert verdict.verdict in admitted, verdict.witness or verdict.failed or verdict
        seen[verdict.verdict] += 1

    holds()
    assert seen["holds"] >= 0.5 * seen.total() or name in SHORT or name.startswith("feddyn_theorem")


@many
@given(objective=STRONG, r=st.floats(1.0, 1.5), warm=st.booleans())
def test_moments_are_what_enumeration_finds(objective, r: float, warm: bool) -> None:
    case = feddyn_case(solved("drawn", objective), alpha=1.0, active=1, rounds=4, warm=warm)
    for found, moved in islice(zip(by_enumeration(case, r), by_moments(case, r), strict=False), 4):
        np.testing.assert_allclose(moved, found, rtol=1e-9)


def similar_case(seed: int) -> Case:
    rng = np.random.default_rng(seed)
    b = rng.standard_normal((2, 2))
    f = Quadratic(A=np.tile(np.diag(rng.uniform(0.1, 1.0, 2)), (2, 1, 1)), b=b)
    return fedpd_case("drawn", f, a=0.2, skip=0.3, rounds=20)


def diagonal(seed: int) -> Case:
    rng = np.random.default_rng(seed)
    A = np.stack([np.diag(rng.uniform(1.0, 50.0, 3)) for _ in range(3)])
    return solved("drawn", Quadratic(A=A, b=rng.standard_normal((3, 3)), c=np.zeros(3)))


def too_wide(seed: int) -> Case:
    """With rho below 2 L, though local problems are convex."""
    f = solved("drawn", indefinite_quadratics(seed, 3, 2, 1.5, 0.05))
    rho = 1.1 * float(np.max(-f.objective.mu)) + 0.05 * f.L
    return afedpd_case(f, rho=rho, active=3, rounds=1)


def sublinear(seed: int) -> Case:
    return (f := diagonal(seed)).case(exact(f, rho=0.0), 40)


def lyapunov(seed: int) -> Case:
    return in_convex_range(diagonal(seed), 2, 1.0, False)


WRONG: list[tuple[str, Callable[[int], Case], Callable[[Case], Case], int]] = [
    ("theorem_3_2", sublinear, wrong_dualfl.MUTATIONS["wrong sign in (3.3)"], 10),
    ("theorem_3_2", sublinear, wrong_dualfl.MUTATIONS["one client for the average"], 10),
    ("feddyn_lemma_1", lyapunov, wrong_feddyn.MUTATIONS["parenthesis of h dropped"], 20),
    ("feddyn_lemma_1", lyapunov, wrong_feddyn.MUTATIONS["wrong sign of the memory"], 20),
    ("fedpd_lemma_4", similar_case, wrong_fedpd.MUTATIONS["sign of the dual"], 15),
    ("fedpd_lemma_3", similar_case, wrong_fedpd.MUTATIONS["old for new dual"], 15),
    ("fedpd_lemma_2", similar_case, wrong_fedpd.MUTATIONS["G understated"], 15),
    ("afedpd_range_of_rho", too_wide, lambda case: case, 10),
]


@pytest.mark.parametrize(("name", "draw", "wrong", "least"), WRONG)
def test_drawn_problems_show_wrong_methods(name: str, draw: Any, wrong: Any, least: int) -> None:
    """The claims are broken on most such problems, so the tests above can fail."""
    with np.errstate(all="ignore"):
        found = [check(CHAPTERS[name].claim, wrong(draw(seed)), check_assumptions=False) for seed in range(20)]
    assert sum(v.verdict == "violated" for v in found) >= least
