"""Lessons 5 to 8: what their own claims and pictures rest on, and wrong variants that are noticed."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from dualopt.lab.claims import check
from dualopt.methods import AFedPD, FedADMM
from dualopt.solvers import Exact
from figures.lessons import drift, names, phases, worst
from figures.lessons.phases import KINDS
from theory._cases import Case
from theory.afedpd._turns import afedpd_in_turn
from theory.counterexamples.primal_dual import in_turn
from theory.limits import fedavg_limit
from theory.worst_case._exact import exact_worst_case, promised
from theory.worst_case.dualfl import worst_case

# The worst problem.


@pytest.mark.parametrize("n", [1, 2, 5])
def test_the_dashed_line_is_the_theorem_of_the_program(n: int) -> None:
    assert promised(n) == pytest.approx(worst_case(n).bound, rel=1e-14)


def test_clients_touch_the_worst_case_in_the_first_round_alone() -> None:
    """One local model stays at 0, and the other moves by its slope: 1/8 in the unit of the theorem."""
    first = worst.scene(n=1, m1=2.0, s1=0.7, m2=0.0, s2=3.0)
    assert first.answer is not None
    assert first.answer.right
    assert first.table is not None
    assert first.table.rows[0].cells[0] == pytest.approx(0.125, rel=1e-9)
    second = worst.scene(n=2, m1=2.0, s1=0.7, m2=0.0, s2=3.0)
    assert second.answer is not None
    assert not second.answer.right


def test_an_error_above_the_worst_case_is_noticed() -> None:
    """One percent more than 1/8, or the worst case without the factor of the theorem."""
    assert check(exact_worst_case, (0.125,)).verdict == "holds"
    assert check(exact_worst_case, (1.01 * 0.125,)).verdict == "violated"


# Duals that drift.


def test_only_the_fraction_of_active_clients_is_right() -> None:
    for server, rho in product(drift.SERVER_STEPS, (0.25, 2.2, 20.0)):
        answer = drift.scene(server=server, rho=rho).answer
        assert answer is not None
        assert answer.right == (server == 0.5)


def test_a_method_that_is_not_a_fedpd_does_not_obey_its_recursion() -> None:
    """FedADMM, and A-FedPD whose claimed factor is that of another weight."""
    run = in_turn(1.5, 1.0)
    common = {"rounds": 12, "participation": run.participation, "theta0": run.theta0}
    right = Case.of(AFedPD(rho=1.5, solver=Exact()), run.objective, **common)
    wrong = Case.of(FedADMM(rho=1.5, server_step=1.0, solver=Exact()), run.objective, **common)
    assert check(afedpd_in_turn, right).verdict == "holds"
    assert check(afedpd_in_turn, wrong).verdict == "violated"
    other = replace(right, algorithm=AFedPD(rho=1.6, solver=Exact()))
    object.__setattr__(other, "_remembered", list(right.snapshots()))
    assert check(afedpd_in_turn, other).verdict == "violated"


def test_the_middle_of_the_cycle_is_the_solution() -> None:
    run = in_turn(0.8, 1.0)
    common = {"rounds": 80, "participation": run.participation, "theta0": run.theta0}
    *_, before, last = Case.of(AFedPD(rho=0.8, solver=Exact()), run.objective, **common).snapshots()
    assert 0.5 * float(before.server.theta[0] + last.server.theta[0]) == pytest.approx(1.0, abs=1e-12)


# Where it converges.


def test_the_map_of_fedpd_is_the_theorem() -> None:
    """In every cell, from the polynomial of the claim and the condition for local solutions."""
    for row, s in zip(phases.cells("FedPD")[1], phases.APART, strict=True):
        a1, a2 = 1.0, (1.0 - s) / (1.0 + s)
        for found, step in zip(row, phases.STEPS, strict=True):
            rho = 1.0 / step
            solvable, converges = rho + a2 > 0, rho**2 + 0.5 * (a1 + a2) * rho + a1 * a2 > 0
            wanted = "converges" if solvable and converges else "diverges" if solvable else KINDS[3]
            assert KINDS[found] == wanted, (step, s)


def test_the_map_of_fedavg_is_the_closed_form_of_its_limit() -> None:
    method = phases.METHODS[1]
    for (i, s), (k, step) in product(enumerate(phases.APART), enumerate(phases.STEPS)):
        f = phases.clients(s).repeated(1)
        factor = float(np.mean((1.0 - step * f.A[:, 0, 0]) ** phases.LOCAL))
        wanted = 2
        if abs(factor) < 1:
            wanted = int(abs(float(fedavg_limit(f, step=step, K=phases.LOCAL)[0]) - 1.0) > 1e-6)
        assert phases.cells(method)[1][i][k] == wanted, (step, s)


def test_a_cell_that_converges_is_no_answer() -> None:
    for step, s, right in ((2.4, 2.2, True), (1.52, 2.2, False), (8.0, 0.7, False), (8.0, 6.0, False)):
        at = phases.SLIDERS[1].values[phases.SLIDERS[1].nearest(step)]
        answer = phases.scene(method="FedPD", step=at, s=s).answer
        assert answer is not None
        assert answer.right == right, (step, s)


# Six names, one method.


@pytest.mark.parametrize("active", [1, 2, 3, 4])
def test_only_fedadmm_and_feddr_are_one_where_clients_are_missing(active: int) -> None:
    for first, second in product(names.METHODS[:-1], repeat=2):
        answer = names.scene(active=active, first=first, second=second, weight=8).answer
        assert answer is not None
        assert answer.right == (active < 4 and {first, second} == {"FedADMM", "FedDR"}), (first, second)
