"""Exact worst cases: known values, two formulations, proofs rebuilt from the multipliers, and real runs below them."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

pytest.importorskip("PEPit")
pytest.importorskip("clarabel")


from dualopt.engine.rounds import iterate
from dualopt.methods import DualFL
from dualopt.methods.optimized_dualfl import OptimizedDualFL, growth
from dualopt.solvers import Exact
from tests.problems import quadratic
from tests.programs import ended
from theory.worst_case import _reduced
from theory.worst_case.__main__ import Row, main, rows
from theory.worst_case._semidefinite import Program, WorstCase, accept
from theory.worst_case.dualfl import pairs, worst_case

METHODS = {"paper": DualFL, "optimized": OptimizedDualFL}


@pytest.mark.parametrize("row", list(rows(every=False)), ids=lambda row: f"{row.title}, n = {row.arguments['n']}")
def test_known_values(row: Row) -> None:
    assert row.agrees(row.solve())


def test_a_row_can_disagree() -> None:
    row = Row(title="", arguments={"n": 2}, expected=0.06257)
    assert not row.agrees(row.solve())


@pytest.mark.parametrize(
    "arguments",
    [
        {"n": 3},
        {"n": 3, "n_clients": 3},
        {"n": 3, "kappa": 10.0, "start": "zeta", "momentum": "late"},
        {"n": 4, "kappa": 10.0, "measure": "dual"},
        {"n": 4, "kappa": 10.0, "measure": "dual", "momentum": "optimized"},
        {"n": 3, "coefficients": [(0.2, 0.7), (-0.1, 0.5)]},
    ],
    ids=str,
)
def test_two_blocks_are_as_good_as_n_functions(arguments: dict) -> None:
    reduced, literal = worst_case(**arguments), worst_case(**arguments, literal=True)
    assert reduced.value == pytest.approx(literal.value, rel=5e-5)
    assert reduced.multipliers[0] == pytest.approx(reduced.value)
    assert literal.multipliers[0] == pytest.approx(literal.value, rel=1e-4)


@pytest.mark.parametrize("momentum", ["paper", "optimized"])
@pytest.mark.parametrize("kappa", [None, 10.0])
def test_multipliers_are_a_proof(momentum: str, kappa: float | None) -> None:
    """error - value * (size - 1) - sum of multipliers * constraints is minus a sum of squares."""
    n, rho = 4, 0.0 if kappa is None else 1 / kappa
    program = Program(
        coefficients=pairs(n, rho=rho, momentum=momentum),
        n_clients=2, kappa=kappa, rho=rho, measure="distance", start="zeta",
    )  # fmt: skip
    error, size, constraints = _reduced._forms(program)
    first, *others = _reduced.solve(program).multipliers
    assert min(others) >= 0.0
    left = error - first * size
    for multiplier, constraint in zip(others, constraints, strict=True):
        left = left - multiplier * constraint
    assert np.abs(left.values[1:]).max() <= 1e-5 * first  # the value at theta* is 0
    for block in (left.mean, left.deviation):
        assert np.linalg.eigvalsh(block).max() <= 1e-5 * first


@pytest.mark.parametrize("momentum", METHODS)
@pytest.mark.parametrize("rho", [0.0, 0.05])
def test_no_run_is_worse(momentum: str, rho: float) -> None:
    """Quadratics with nu = 1, L = 20: the ratio to |zeta*|^2 stays below the exact worst case of the same method."""
    kappa = 20.0 if rho else None
    limit = [worst_case(n, n_clients=3, rho=rho, kappa=kappa, momentum=momentum, start="zeta").value for n in (1, 2, 3)]
    ratios = []
    for seed in range(20):
        f = quadratic(n=3, mu=1.0, L=20.0, seed=seed)
        theta = f.minimiser()
        squared = (f.gradient(theta) ** 2).sum()
        method = METHODS[momentum](rho=rho, nu=1.0, solver=Exact())
        errors = [((s.server.theta - theta) ** 2).sum() for s in islice(iterate(method, f), 3)]
        ratios.append(np.array(errors) / squared / limit)
    assert np.max(ratios) <= 1.0
    assert np.max(ratios, axis=0).min() > 0.02  # in sight of the limit


@pytest.mark.parametrize("momentum", METHODS)
@pytest.mark.parametrize("measure", ["distance", "dual"])
def test_heterogeneity_alone_counts(momentum: str, measure: str) -> None:
    """|xi*|^2 <= 1 and |zeta*|^2 <= 1 have the same worst case: a translation moves theta* to 0."""
    one, other = (worst_case(4, momentum=momentum, measure=measure, start=start).value for start in ("xi", "zeta"))
    assert one == pytest.approx(other, rel=1e-5)


def test_optimized_bound_is_attained_and_the_paper_is_not_as_good() -> None:
    for n in (2, 4):
        best = worst_case(n, momentum="optimized", measure="dual")
        assert best.bound is not None
        assert best.value == pytest.approx(best.bound, rel=1e-4)
        assert worst_case(n, measure="dual", start="zeta").value > 1.3 * best.bound


def test_dualfl_breaks_the_optimized_bound() -> None:
    """kappa = 10: the exponent of DualFL is half of the optimized one, on functions that are not quadratic."""
    best = worst_case(6, kappa=10.0, momentum="optimized")
    assert best.bound is not None
    assert best.value < 0.6 * best.bound
    assert worst_case(6, kappa=10.0, start="zeta").value > 1.5 * best.bound


@pytest.mark.parametrize("change", [-0.02, 0.02])
def test_optimized_coefficients_cannot_be_improved_one_at_a_time(change: float) -> None:
    """Nonsmooth dual error: any change of one coefficient makes the worst case larger."""
    n = 3
    best = worst_case(n, momentum="optimized", measure="dual").value
    for round in range(n - 1):
        for which in range(2):
            changed = [list(pair) for pair in pairs(n, rho=0.0, momentum="optimized")]
            changed[round][which] += change
            if round == which == 0:
                continue  # b_1 multiplies v - 0 as c_1 does: together they are one coefficient
            assert worst_case(n, coefficients=[(b, c) for b, c in changed], measure="dual").value > best * (1 + 1e-4)


def test_rho_beyond_its_range_breaks_theorem_3_3() -> None:
    inside, outside = (worst_case(6, kappa=10.0, rho=rho, measure="dual") for rho in (0.1, 0.3))
    assert inside.bound is not None
    assert outside.bound is not None
    assert inside.value < 0.2 * inside.bound
    assert outside.value > 2.0 * outside.bound


def test_program_reports_a_mismatch(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    table = [Row(title="right", arguments={"n": 2}, expected=0.0625)]
    monkeypatch.setattr("theory.worst_case.__main__.rows", lambda *, every: table)
    assert ended(main) == 0
    assert "0.0625" in capsys.readouterr().out
    table.append(Row(title="wrong", arguments={"n": 1}, expected=0.2))
    assert ended(main, "--all") == 1
    assert "NO" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (WorstCase(value=1.0, example=1.0, multipliers=(), status="optimal_inaccurate"), "status optimal_inaccurate"),
        (WorstCase(value=1.0, example=1.0001, multipliers=(), status="optimal"), "do not agree"),
        (WorstCase(value=float("nan"), example=1.0, multipliers=(), status="optimal"), "do not agree"),
    ],
)
def test_refuses_uncertified_answers(answer: WorstCase, said: str) -> None:
    with pytest.raises(RuntimeError, match=said):
        accept(answer)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"n": 0}, "n must be at least 1, not 0"),
        ({"n": 1, "n_clients": 1}, "n_clients must be at least 2, not 1"),
        ({"n": 1, "kappa": 1.0}, "kappa must be .* not 1"),
        ({"n": 1, "rho": 1.0}, "rho must lie in"),
        ({"n": 1, "measure": "energy"}, "measure must be one of distance, dual; not 'energy'"),
        ({"n": 1, "start": "theta"}, "start must be one of"),
        ({"n": 1, "momentum": "none at all"}, "momentum must be one of"),
        ({"n": 3, "coefficients": [(0.0, 0.0)]}, "coefficients must hold 2 pairs for n = 3, not 1"),
    ],
)
def test_refuses_bad_arguments(arguments: dict, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        worst_case(**arguments)


def test_growth_agrees_with_the_bound() -> None:
    worst = worst_case(2, n_clients=4, kappa=10.0, momentum="optimized")
    assert worst.bound == pytest.approx(2 / 4 / growth(growth(0.0, 0.1), 0.1))
