"""Every claim beyond the papers can fail: wrong methods, weights and constants are caught."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import islice

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from dualopt.engine.rounds import iterate
from dualopt.lab.chance import coins
from dualopt.lab.claims import check
from dualopt.lab.testing import quadratics
from dualopt.methods import DualFL, OptimizedDualFL
from dualopt.methods._feddyn_theorems import best_weight
from dualopt.methods.sampled_dualfl import next_step
from dualopt.objectives import Quadratic
from dualopt.solvers import Exact
from tests.theory.mutation_table import TABLES, columns, is_violated, shrunk, telling
from tests.theory.test_properties import UNEQUAL
from theory._cases import Case
from theory._claims import discover
from theory._problems import hard_quadratic, lopsided, quadratic, solved
from theory.dualfl._runs import dual_optimum
from theory.frontier import averaged_reflections, compressed, rounded, sampled_fivegcs
from theory.frontier import growing_feddyn as theorem_c
from theory.frontier import sampled_dualfl as theorem_f
from theory.frontier import sampled_feddyn as theorem_a
from theory.frontier import sampled_fedsplit as theorem_b
from theory.frontier import scaled_dualfl as scales

BELOW = "g_j bounded below"
SAMPLED = (theorem_a, theorem_b, averaged_reflections, theorem_c, theorem_f, sampled_fivegcs)
MODULES = {module.__name__ for module in (*SAMPLED, scales, compressed, rounded)}
CHAPTERS = {name: chapter for name, chapter in discover().items() if chapter.module in MODULES}


@pytest.mark.parametrize(
    "name",
    [
        "sampled_feddyn",
        "sampled_fedsplit",
        "averaged_reflections",
        "sampled_fivegcs",
        "growing_feddyn",
        "compressed_fedsplit",
        "rounded_fedsplit",
        "compressor_moments",
    ],
)
def test_attained_factors_cannot_be_less(name: str) -> None:
    less = shrunk(CHAPTERS[name].claim, 1.0 - 1e-6)
    assert is_violated(less, (case for case in telling(name) if case.attained))


@pytest.mark.parametrize("wrong", [0.0, 0.5, 2.0])
def test_the_weight_of_the_memories_is_needed(wrong: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """1/p forgotten (0), half of C, twice C."""
    right = theorem_a.dual_weight

    def weight(case: Case) -> float:
        return (wrong or case.fraction) * right(case)

    monkeypatch.setattr(theorem_a, "dual_weight", weight)
    assert is_violated(CHAPTERS["sampled_feddyn"].claim, telling("sampled_feddyn"))


def test_the_marginals_are_needed() -> None:
    """The plain sum of squares does not contract by the least of unequal probabilities in every round."""
    claim = CHAPTERS["sampled_fedsplit"].claim

    plainly = (case.but(marginals=np.full(case.n_clients, 0.5)) for case in telling("sampled_fedsplit"))
    assert is_violated(claim, plainly)


@pytest.mark.parametrize("name", ["sampled_feddyn", "growing_feddyn", "sampled_dualfl_potential", "scaled_dualfl"])
def test_what_the_assumptions_exclude_goes_wrong(name: str) -> None:
    """But for the dual energies that are infinite, which no inequality contradicts, and clients without a theorem."""
    excluded = [case for case, verdict in CHAPTERS[name].cases(True) if verdict == "outside assumptions"]
    plain = [case for case in excluded if case.mu > 0 and CHAPTERS[name].claim.assumptions(case) != [BELOW]]
    assert len(plain) >= 1
    assert all(is_violated(CHAPTERS[name].claim, iter([case])) for case in plain)


@pytest.mark.parametrize("parameters", [{"rho": 30.0}, {"rho": 30.0, "nu": 1.0}])
def test_a_momentum_that_is_too_small_breaks_theorem_f(parameters: dict[str, float]) -> None:
    """rho beyond nu/L: t settles at a step that is too long."""
    case = theorem_f.sampled(lopsided(), 4, 40, **parameters)  # pyright: ignore[reportArgumentType]
    assert check(CHAPTERS["sampled_dualfl"].claim, case).verdict == "outside assumptions"
    assert is_violated(CHAPTERS["sampled_dualfl"].claim, iter([case]))


@pytest.mark.parametrize("wrong", [{"weight": 0.5}, {"first_bound": 0.5}])
def test_theorem_f_needs_its_constants(wrong: dict[str, float], monkeypatch: pytest.MonkeyPatch) -> None:
    (name, factor), right = next(iter(wrong.items())), getattr(theorem_f, next(iter(wrong)))
    monkeypatch.setattr(theorem_f, name, lambda *arguments: factor * right(*arguments))
    claim = "sampled_dualfl_potential" if name == "weight" else "sampled_dualfl"
    assert is_violated(CHAPTERS[claim].claim, telling(claim))


@pytest.mark.parametrize("rho", [0.0, 0.8])
def test_the_first_bound_of_theorem_f_in_rationals(rho: float) -> None:
    """Two clients of one variable, one of them active: every part of the bracket counts."""
    a, b = (1.0, 4.0), (3.0, -2.0)
    case = theorem_f.sampled(
        solved("two", Quadratic(A=np.reshape(a, (2, 1, 1)), b=np.reshape(b, (2, 1)))), 1, 5, rho=rho
    )
    nu, r, p = Fraction(case.algorithm.nu), Fraction(case.algorithm.rho), Fraction(1, 2)
    a, b = tuple(map(Fraction, a)), tuple(map(Fraction, b))
    theta = sum(b) / sum(a)
    duals = [(curvature - nu) * theta - linear for curvature, linear in zip(a, b, strict=True)]
    infima = [-(linear**2) / (2 * (curvature - nu)) for curvature, linear in zip(a, b, strict=True)]
    delta = -(sum(b) ** 2) / (2 * sum(a)) - sum(infima)
    squares = (p + r / (1 - r) * (1 - p)) / (2 * nu) * sum(dual**2 for dual in duals)
    assert theorem_f.first_bound(case) == pytest.approx(float((1 - p) * delta + squares), rel=1e-12)


def test_theorem_f_is_about_the_fraction_that_is_active() -> None:
    """The steps of 2 of 3 clients while one is active: not the theorem, and the claim says so."""
    case = theorem_f.sampled(quadratic(), 1, 5)
    other = case.but(algorithm=replace(case.algorithm, least=2 / 3))
    assert theorem_f.admitted(case) == []
    assert theorem_f.admitted(other) == ["the fraction of active clients"]


def test_the_reduction_to_a_momentum_method_is_not_dualfl() -> None:
    """All clients active and rho = 0: the bound of Theorem 3.2, by other points."""
    f = quadratic()
    case = theorem_f.sampled(f, 3, 30, rho=0.0, nu=1.0)
    initial = float(np.sum(dual_optimum(case) ** 2)) / (2.0 * case.algorithm.nu)
    assert theorem_f.first_bound(case) == pytest.approx(initial, rel=1e-12)
    dualfl = DualFL(rho=0.0, nu=case.algorithm.nu, solver=Exact())
    one, other = ([s.server.theta for s in islice(iterate(m, f.objective), 5)] for m in (case.algorithm, dualfl))
    np.testing.assert_allclose(one[0], other[0], rtol=1e-12)
    assert np.max(np.abs(one[4] - other[4])) > 1e-3 * np.max(np.abs(one[0]))


def test_twice_the_largest_step_does_not_contract_so_fast() -> None:
    """With gamma = 2 gamma* the worst growth is 1.05 to 1.06 times the factor of that gamma."""
    claim = CHAPTERS["sampled_feddyn"].claim
    case = theorem_a.sampled_case(hard_quadratic(), 1, times=0.5)
    (worst,) = (c for c in claim.compare(case) if c.what == "worst growth")
    assert 1.04 < worst.lhs / worst.rhs < 1.07


def test_every_claim_is_caught_by_some_mutation() -> None:
    others = {"sampled_feddyn_rounds", "sampled_dualfl_step", "sampled_dualfl"}  # below, and constants above
    assert set(columns(TABLES["Beyond the papers"])) | others == set(CHAPTERS)


@pytest.mark.parametrize("factor", [0.99, 1.01])
def test_another_weight_does_not_solve_the_equation(factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(theorem_a, "best_weight", lambda *constants: factor * best_weight(*constants))
    assert is_violated(CHAPTERS["sampled_feddyn_rounds"].claim, telling("sampled_feddyn_rounds"))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda t, rho, p: next_step(t, 0.9 * rho, p),
        lambda t, rho, p: next_step(t, 0.0, p),
        lambda t, rho, p: next_step(t, rho, 1.0),
        lambda t, rho, p: 0.999 * next_step(t, rho, p),
    ],
    ids=["smaller rho", "rho = 0", "p = 1", "smaller"],
)
def test_wrong_steps_are_caught(wrong) -> None:
    changed = (case._replace(next_step=wrong) for case in telling("sampled_dualfl_step"))
    assert is_violated(CHAPTERS["sampled_dualfl_step"].claim, changed)


# ---- problems that are drawn ----

many = settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
QUADRATICS = st.one_of(
    quadratics(L=st.floats(1.5, 300.0), n_clients=st.integers(2, 4), heterogeneity=st.floats(0.1, 10.0)), UNEQUAL
)


def some(objective: Quadratic, share: float) -> int:
    """A number of active clients."""
    return 1 + int(share * objective.n_clients)


@many
@given(objective=QUADRATICS, share=st.floats(0.0, 0.99), times=st.floats(1.0, 10.0))
def test_theorem_a_on_drawn_problems(objective, share: float, times: float) -> None:
    f = solved("drawn", objective)
    assume(np.linalg.norm(f.theta) < 100)
    verdict = check(CHAPTERS["sampled_feddyn"].claim, theorem_a.sampled_case(f, some(objective, share), times=times))
    assert verdict.verdict == "holds", verdict.witness or verdict.failed


@many
@given(
    objective=QUADRATICS,
    chances=st.lists(st.floats(0.05, 1.0), min_size=5, max_size=5),
    times=st.floats(0.1, 10.0),
    scaled=st.booleans(),
)
def test_theorem_b_on_drawn_problems(objective, chances: list[float], times: float, scaled: bool) -> None:
    f = solved("drawn", objective)
    assume(np.linalg.norm(f.theta) < 100)
    law = coins(*chances[: objective.n_clients])
    case = theorem_b.sampled_case(f, law, "drawn", times=times, scaled=scaled)
    verdict = check(CHAPTERS["sampled_fedsplit"].claim, case)
    assert verdict.verdict == "holds", verdict.witness or verdict.failed


@many
@given(objective=QUADRATICS, share=st.floats(0.0, 0.99), alpha=st.floats(0.01, 30.0), times=st.floats(0.0, 1.0))
def test_theorem_c_on_drawn_problems(objective, share: float, alpha: float, times: float) -> None:
    f = solved("drawn", objective)
    assume(np.linalg.norm(f.theta) < 100)
    case = theorem_c.growing_case(f, some(objective, share), 2, alpha=alpha, times=times)
    verdict = check(CHAPTERS["growing_feddyn"].claim, case)
    assert verdict.verdict == "holds", verdict.witness or verdict.failed


@many
@given(objective=QUADRATICS, kind=st.sampled_from([DualFL, OptimizedDualFL]), part=st.floats(0.3, 0.99))
def test_one_parameter_for_each_client_on_drawn_problems(objective, kind: type, part: float) -> None:
    f = solved("drawn", objective)
    assume(np.linalg.norm(f.theta) < 10)
    case = scales.scaled_case(f, kind, 30, rho=0.0 if kind is DualFL else None, times=part)
    verdict = check(CHAPTERS["scaled_dualfl"].claim, case)
    assert verdict.verdict in ("holds", "vacuous"), verdict.witness or verdict.failed


@many
@given(objective=QUADRATICS, share=st.floats(0.0, 0.99), rho=st.floats(0.0, 1.0), nu=st.floats(0.1, 0.99))
def test_theorem_f_on_drawn_problems(objective, share: float, rho: float, nu: float) -> None:
    f = solved("drawn", objective)
    assume(np.linalg.norm(f.theta) < 100)
    for claim, rounds in (("sampled_dualfl_potential", 12), ("sampled_dualfl", 2)):
        verdict = check(CHAPTERS[claim].claim, theorem_f.sampled(f, some(objective, share), rounds, rho=rho, nu=nu))
        assert verdict.verdict == "holds", verdict.witness or verdict.failed
