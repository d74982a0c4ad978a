"""The conditions of theorems as methods know them and as the claims state them: the same, just inside and just outside.

Claims write bounds and assumptions anew, so that a wrong one is not shared. Here both are asked on both sides of the
border of every parameter, which is found by bisection of what the claim says, and under other laws of the cohorts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dualopt.lab.chance import events_of
from dualopt.methods import (
    GIANT,
    AccSDANE,
    AFedPD,
    Algorithm,
    DualAscent,
    DualFL,
    DualLBFGS,
    FedADMM,
    FedDR,
    FedDyn,
    FedPD,
    FedSplit,
    FiveGCS,
    GradientDescent,
    GrowingFedDyn,
    OptimizedDualFL,
    SampledDualFL,
    Scaffnew,
    parameters,
)
from dualopt.methods._base import with_participation
from dualopt.methods._primal_dual_theorems import best_step
from dualopt.methods.participation import CommunicateWithProbability, Full, Participation, UniformSubset, WeightedSubset
from dualopt.objectives import Quadratic
from dualopt.solvers import Exact, Gradient
from theory._problems import solved
from theory.afedpd.optimization import full_participation
from theory.baselines import contraction, servers
from theory.dualfl import _runs
from theory.feddyn import convex, nonconvex
from theory.fedpd import _runs as fedpd
from theory.frontier import (
    accelerated_dane,
    averaged_reflections,
    cohorts_of_fivegcs,
    dual_ascent,
    dual_lbfgs,
    giant,
    growing_feddyn,
    sampled_dualfl,
    sampled_feddr,
    sampled_feddyn,
    sampled_fedsplit,
    sampled_fivegcs,
    weighted_feddyn,
)
from theory.optimized_dualfl import _runs as optimized

LOPSIDED = Quadratic(
    A=np.stack([np.diag([0.5, 4.0]), np.diag([1.0, 10.0]), np.diag([2.0, 3.0]), np.diag([5.0, 6.0])]),
    b=np.array([[1.0, 2.0], [-1.0, 0.5], [3.0, 0.0], [0.0, -2.0]]),
)
FLAT = replace(LOPSIDED, A=np.concatenate([np.diag([0.0, 4.0])[None], LOPSIDED.A[1:]]))
CONCAVE = replace(LOPSIDED, A=np.concatenate([np.diag([-0.3, 4.0])[None], LOPSIDED.A[1:]]))
HEAVY = replace(LOPSIDED, weights=(1.0, 3.0, 2.0, 4.0))
NEAR = 1e-7  # of the border
TWO, ONE = UniformSubset(size=2), UniformSubset(size=1)
Assumptions = Callable[[Any], list[str]]


def claimed(assumptions: Assumptions, method: Algorithm, f: Quadratic, who: Participation) -> bool:
    """Whether the claim assumes no more than that: it knows the parameters by their names in the papers."""
    complete: Any = with_participation(method, f, who).suggested(f)
    if isinstance(who, WeightedSubset) and who.weights is None:
        who = replace(who, weights=f.weights)
    known = {name: getattr(complete, name, None) for name in ("alpha", "rho", "eta")}
    law = events_of(who, f.n_clients)
    known["marginals"] = np.array([sum(p for p, round in law if j in round.clients) for j in range(f.n_clients)])
    known["a"] = known["eta"] and known["eta"] * float(f.L.max())
    known["points"] = np.zeros(1)  # the memories are gradients
    case = solved("", f).case(complete, 1, "", participation=who, known=known)
    return not assumptions(case)


def promised(source: str, method: Algorithm, f: Quadratic, who: Participation) -> bool:
    """Whether the theorem of this source, or any if it has none, is in the guarantee."""
    said = method.guarantee(f, who)
    sources = [part.partition(":")[0] for part in said.split("; ")]
    return not said.startswith("none") and (not source or source in sources)


# claim, source, the parameter's name with what is inside and what outside, other parameters, clients, who takes part
BORDERS: list[tuple[Assumptions, str, type[Algorithm], str, float, float, dict[str, Any], Quadratic, Participation]] = [
    (convex.convex_regime, "Theorem 2", FedDyn, "alpha", 1e3, 10.0, {}, LOPSIDED, TWO),
    (convex.convex_regime, "Theorem 2", FedDyn, "alpha", 1e3, 10.0, {}, FLAT, ONE),
    (convex.strongly_convex_regime, "Theorem 3", FedDyn, "alpha", 1e3, 10.0, {}, LOPSIDED, ONE),
    (nonconvex.nonconvex_regime, "Theorem 4", FedDyn, "alpha", 1e4, 10.0, {}, LOPSIDED, ONE),
    (nonconvex.nonconvex_regime, "Theorem 4", FedDyn, "alpha", 1e4, 10.0, {}, CONCAVE, TWO),
    (sampled_feddyn.admitted, "Theorem A", FedDyn, "alpha", 1e2, 0.1, {}, LOPSIDED, Full()),
    (sampled_feddyn.admitted, "Theorem A", FedDyn, "alpha", 1e2, 0.1, {}, LOPSIDED, TWO),
    (sampled_feddyn.admitted, "Theorem A", FedDyn, "alpha", 1e2, 0.1, {}, LOPSIDED, ONE),
    (growing_feddyn.admitted, "Theorem C", GrowingFedDyn, "growth", 1e-3, 5.0, {"alpha": 2.0}, LOPSIDED, TWO),
    (weighted_feddyn.admitted, "Theorem A'", FedDyn, "alpha", 1e2, 0.1, {}, HEAVY, WeightedSubset(size=2)),
    (_runs.sublinear_regime, "Theorem 3.2", DualFL, "nu", 0.1, 1.0, {"rho": 0.0}, LOPSIDED, Full()),
    (_runs.linear_regime, "Theorem 3.3", DualFL, "rho", 1e-3, 0.5, {"nu": 0.4}, LOPSIDED, Full()),
    (_runs.linear_regime, "Theorem 3.3", DualFL, "nu", 0.3, 1.0, {"rho": 1e-3}, LOPSIDED, Full()),
    (optimized.admitted, "", OptimizedDualFL, "rho", 1e-3, 0.5, {"nu": 0.4}, LOPSIDED, Full()),
    (sampled_dualfl.admitted, "Theorem F", SampledDualFL, "rho", 1e-3, 0.5, {"nu": 0.4}, LOPSIDED, TWO),
    (dual_ascent.smooth_strongly_convex, "", DualAscent, "nu", 0.1, 1.0, {}, LOPSIDED, Full()),
    (dual_lbfgs.strongly_convex, "", DualLBFGS, "nu", 0.1, 1.0, {}, LOPSIDED, Full()),
    (fedpd.admitted, "Theorem 1", FedPD, "eta", 1e-3, 1.0, {}, CONCAVE, Full()),
    (full_participation, "Theorem 1, corrected", AFedPD, "rho", 1e2, 1.0, {}, LOPSIDED, Full()),
    (cohorts_of_fivegcs.admitted, "Theorem I", FiveGCS, "gamma", 0.05, 1.1, {"mu": 0.5}, LOPSIDED, TWO),
    (cohorts_of_fivegcs.admitted, "Theorem I", FiveGCS, "gamma", 0.05, 0.45, {"mu": 0.5}, LOPSIDED, ONE),
    (contraction.steps_admitted, "", FiveGCS, "tau", 1e-3, 10.0, {"gamma": 0.1, "mu": 0.5}, LOPSIDED, TWO),
    (contraction.steps_admitted, "", FiveGCS, "mu", 1e-2, 1.0, {"gamma": 0.1, "tau": 0.1}, LOPSIDED, TWO),
    (servers.descends, "", GradientDescent, "step", 1e-3, 1.0, {}, LOPSIDED, Full()),
    (accelerated_dane.similar, "", AccSDANE, "mu", 0.1, 1.0, {"weight": 20.0}, LOPSIDED, Full()),
]


@pytest.mark.parametrize(
    ("assumptions", "source", "kind", "name", "inside", "outside", "others", "f", "who"),
    BORDERS,
    ids=[f"{b[2].__name__}, {b[1]}, {b[3]}-{i}" for i, b in enumerate(BORDERS)],
)
def test_both_change_at_the_same_number(
    assumptions: Assumptions,
    source: str,
    kind: type[Algorithm],
    name: str,
    inside: float,
    outside: float,
    others: dict[str, Any],
    f: Quadratic,
    who: Participation,
) -> None:
    def at(x: float) -> Algorithm:
        given: dict[str, Any] = {**others, name: x}
        return kind(**given, solver=Exact()) if "solver" in parameters(kind) else kind(**given)

    def claim(x: float) -> bool:
        return claimed(assumptions, at(x), f, who)

    assert claim(inside)
    assert not claim(outside)
    for _ in range(60):
        middle = math.sqrt(inside * outside)
        inside, outside = (middle, outside) if claim(middle) else (inside, middle)
    assert inside == pytest.approx(outside, rel=1e-12)
    away = 1.0 - NEAR if inside < outside else 1.0 + NEAR
    assert promised(source, at(inside * away), f, who)
    assert not promised(source, at(outside / away), f, who)


def test_scaffnew_and_its_step() -> None:
    coin = CommunicateWithProbability(probability=0.3)
    for times, fits in ((1.0 - NEAR, True), (1.0 + NEAR, False)):
        method = Scaffnew(probability=0.3, solver=Gradient(step=times * 2.0 / 10.0))
        assert claimed(contraction.steps_contract, method, LOPSIDED, coin) == fits
        assert promised("", method, LOPSIDED, coin) == fits


SIDES: list[tuple[Assumptions, str, Algorithm, Quadratic, Participation]] = [
    (sampled_fedsplit.admitted, "Theorem B", FedSplit(step=0.3), LOPSIDED, ONE),
    (sampled_fedsplit.admitted, "Theorem B", FedSplit(step=0.3), FLAT, ONE),
    (
        sampled_fedsplit.admitted,
        "Theorem B",
        FedSplit(step=0.3),
        LOPSIDED,
        WeightedSubset(size=1, weights=(1, 2, 3, 4)),
    ),
    (sampled_feddr.admitted, "Theorem B", FedDR(eta=0.3), LOPSIDED, TWO),
    (sampled_feddr.admitted, "Theorem B", FedDR(eta=0.3), FLAT, TWO),
    *(
        (averaged_reflections.admitted, "Theorem B", method, f, who)
        for method in (FedPD(eta=0.3), FedDyn(alpha=3.0), AFedPD(rho=3.0), FedADMM(rho=3.0))
        for f, who in ((LOPSIDED, Full()), (LOPSIDED, TWO), (FLAT, Full()))
    ),
    *(
        (sampled_fivegcs.admitted, "Theorem G", method, LOPSIDED, TWO)
        for longest in (best_step(0.4, 10.0, 0.5),)
        for method in (
            FiveGCS(gamma=longest * (1.0 - NEAR), mu=0.4),
            FiveGCS(gamma=longest * (1.0 + NEAR), mu=0.4),
            FiveGCS(gamma=0.1, mu=0.5 * (1.0 + NEAR)),
            FiveGCS(gamma=0.1, tau=2.5 * (1.0 - NEAR)),
        )
    ),
    *(
        (sampled_fivegcs.everybody, "Theorem H", method, LOPSIDED, who)
        for method, who in (
            (FiveGCS(gamma=2.0 * (1.0 - NEAR), mu=0.5), Full()),
            (FiveGCS(gamma=2.0 * (1.0 + NEAR), mu=0.5), Full()),
            (FiveGCS(gamma=0.1, tau=2.5 * (1.0 - NEAR)), Full()),
            (FiveGCS(gamma=0.1, mu=0.5 * (1.0 + NEAR)), Full()),
            (FiveGCS(gamma=0.1), TWO),
        )
    ),
    *(
        (cohorts_of_fivegcs.admitted, "Theorem I", method, f, who)
        for method, f, who in (
            (FiveGCS(gamma=0.3, mu=0.4), LOPSIDED, TWO),
            (FiveGCS(gamma=1.0 - NEAR, mu=0.5), LOPSIDED, TWO),
            (FiveGCS(gamma=1.0 + NEAR, mu=0.5), LOPSIDED, TWO),
            (FiveGCS(gamma=0.1, tau=2.5 * (1.0 - NEAR)), LOPSIDED, TWO),
            (FiveGCS(gamma=0.1, mu=0.5 * (1.0 + NEAR)), LOPSIDED, TWO),
            (FiveGCS(gamma=0.1, mu=0.5), FLAT, TWO),
        )
    ),
    (weighted_feddyn.admitted, "Theorem A'", FedDyn(), HEAVY, WeightedSubset(size=2)),
    (weighted_feddyn.admitted, "Theorem A'", FedDyn(), HEAVY, TWO),
    (sampled_dualfl.admitted, "Theorem F", SampledDualFL(nu=0.4), LOPSIDED, TWO),
    (sampled_dualfl.admitted, "Theorem F", SampledDualFL(nu=0.4, fraction=0.25), LOPSIDED, TWO),
    (full_participation, "Theorem 1, corrected", AFedPD(rho=30.0), LOPSIDED, Full()),
    (full_participation, "Theorem 1, corrected", AFedPD(rho=30.0), LOPSIDED, TWO),
    (sampled_feddyn.admitted, "Theorem A", FedDyn(alpha=9.0), FLAT, TWO),
    (growing_feddyn.admitted, "Theorem C", GrowingFedDyn(alpha=9.0, growth=0.1), FLAT, TWO),
]


@pytest.mark.parametrize(
    ("assumptions", "source", "method", "f", "who"), SIDES, ids=[str(i) for i in range(len(SIDES))]
)
def test_both_agree_on_forms_clients_and_laws(
    assumptions: Assumptions, source: str, method: Algorithm, f: Quadratic, who: Participation
) -> None:
    assert claimed(assumptions, method, f, who) == promised(source, method, f, who)


def test_giant_asks_for_a_step_of_one() -> None:
    for steps, fits in (((1.0, 0.25), True), ((0.9999999,), False), ((3.0,), True)):
        method = GIANT(steps=steps)
        assert claimed(giant.quadratic_clients, method, LOPSIDED, Full()) == fits
        assert ("quadratics" in method.guarantee(LOPSIDED)) == fits


def test_weights_that_are_suggested_are_admitted() -> None:
    """Whatever their rounding: limits are met up to 1e-12 of them."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        A = np.exp(rng.uniform(-3.0, 3.0, (3, 1, 1)))
        f = Quadratic(A=A, b=np.ones((3, 1)))
        largest = float(f.L.max())
        said = FedDyn(alpha=30.0 * largest * (1.0 - 1e-15)).guarantee(f)
        assert said.startswith("Theorem 3")
        for method in (FedDyn(), DualFL(), DualAscent(), SampledDualFL(), FedSplit(), FedDR()):
            for who in (Full(), ONE) if "partial" in method.supports else (Full(),):
                assert not method.guarantee(f, who).startswith("none")
