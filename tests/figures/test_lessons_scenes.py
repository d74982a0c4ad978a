"""Lessons: what their own claims and pictures rest on, wrong variants, and the answers of the teachers' pages."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest

from dualopt.lab.claims import check
from dualopt.methods import AFedPD, DualFL, FedADMM
from dualopt.methods._theorem import Known
from dualopt.objectives import Quadratic
from dualopt.solvers import Exact
from figures.lessons import averaging, chain, coin, drift, load, momentum, names, oracle, phases, stopping, worst, wrong
from figures.lessons.phases import KINDS
from theory._cases import Case
from theory._rounds import expected_squares, histories
from theory.afedpd._turns import afedpd_in_turn
from theory.counterexamples.primal_dual import in_turn
from theory.dualfl._gaps import watched
from theory.dualfl._runs import local_energies, path
from theory.limits import fedavg_limit
from theory.lower_bounds._couplings import Couplings
from theory.lower_bounds._races import zero_chain

# The worst problem.


@pytest.mark.parametrize("n", [1, 2, 5])
def test_the_dashed_line_is_the_bound_of_the_method(n: int) -> None:
    f = Quadratic(A=np.array([[[1.0]], [[3.0]]]), b=np.array([[1.0], [-2.0]]))
    theta, method = f.minimiser(), DualFL(rho=0.0, nu=1.0)
    bound = method.theorems[0].bound
    assert bound is not None
    unit = float(np.sum((f.gradient(theta) - theta) ** 2))
    assert worst.promised(n) == pytest.approx(bound(method, Known.of(f), theta, n) / unit, rel=1e-12)


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
    assert check(worst.exact_worst_case, (0.125,)).verdict == "holds"
    assert check(worst.exact_worst_case, (1.01 * 0.125,)).verdict == "violated"


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


# Expectations over coins, local gaps, wrong lines, samples of couplings.


@pytest.mark.parametrize("method", ["FedPD", "Scaffnew"])
def test_expected_distances_are_sums_over_all_histories_of_the_coin(method: str) -> None:
    case = coin.fedpd(0.4, 0.03) if method == "FedPD" else coin.scaffnew(0.4, 0.03)

    def difference(state):
        points = state.clients.x0 if method == "FedPD" else state.clients.theta
        return points[0] - points[1]

    expected = [E[lambda b: np.sum(difference(b.state) ** 2)] for E in histories(case.but(rounds=5))]
    np.testing.assert_allclose(expected_squares(case, difference)[:5], expected, rtol=1e-6)
    assert not np.allclose(expected_squares(coin.fedpd(0.5, 0.03), lambda s: s.clients.x0[0])[:5], expected, rtol=1e-6)


@pytest.mark.parametrize("schedule", stopping.SCHEDULES)
def test_gaps_are_those_of_the_energies_where_the_clients_stop(schedule: str) -> None:
    case = stopping.run(3, 8, schedule)
    seen = watched(case, 5)
    for step, gap, bound in zip(path(case), seen.gap[:, :, 3], seen.bound[:, :, 3], strict=True):
        primal, dual = local_energies(case, step.zeta, step.snapshot.clients.theta)
        terms = np.abs(primal) + np.abs(dual) + np.abs(case.objective.value(step.snapshot.clients.theta))
        assert np.all(np.abs(primal + dual - gap) <= 1e-12 * np.max(terms))
        assert step.snapshot.solution is not None
        residual = step.snapshot.solution.evaluation.gradient
        np.testing.assert_allclose(bound, np.sum(residual**2, axis=1) / (2.0 * stopping.NU), rtol=1e-6, atol=1e-20)
    assert np.all(np.diff(seen.gap, axis=-1) <= 0)  # gradient steps of length 1/L close it


def test_every_wrong_line_is_noticed_and_exactly_one_keeps_the_rate() -> None:
    found = {
        line: {c.name for g, c in wrong.CLAIMS.items() if wrong.judged(line, g).verdict == "violated"}
        for line in wrong.LINES
    }
    right, *lines = found.values()
    assert right == set()
    assert all(lines)
    assert [line for line, names in found.items() if names and "theorem_3_3" not in names] == [
        "momentum one round early"
    ]


def test_more_steps_open_no_second_coordinate_and_reading_gradients_does() -> None:
    def opened(which: str, steps: int) -> list[int]:
        table = oracle.scene(oracle=which, steps=steps).table
        assert table is not None
        return table.rows[0].cells[1].tolist()

    assert opened(oracle.ORACLES[0], 30) == list(range(1, oracle.COORDINATES + 1))
    assert opened(oracle.CHEAT, 2)[0] == 2


def test_samples_of_couplings_have_the_gradient_as_their_mean() -> None:
    f = Couplings.of(zero_chain(2, 6, split="halves"))
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 6))
    assert f.sizes == [3, 3]
    singles = [f.sample_gradient(x, (np.array([k]), np.array([k]))) for k in range(3)]
    np.testing.assert_allclose(np.mean(singles, axis=0), f.gradient(x), rtol=1e-12)
    assert not np.allclose(singles[0], f.gradient(x))
    drawn = f.draw([np.random.default_rng(j) for j in range(2)], 5)
    assert [len(k) for k in drawn] == [5, 5]
    part: Any = f.select([1])
    np.testing.assert_allclose(part.sample_gradient(x[1:], drawn[1:]), f.sample_gradient(x, drawn)[1:], rtol=1e-12)


# The answers of the teachers' pages: every number is computed here and looked up there.


DOCS = Path(__file__).resolve().parents[2] / "docs" / "lessons"


def assert_says(name: str, *parts: str) -> None:
    """Look for words in the answer of a teacher's page."""
    text = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    answer = text.partition("## The question, and its answer")[2].partition("## The theorem")[0]
    for part in parts:
        assert part in answer.replace("\n", " "), part


def right(name: str, **values: Any) -> bool:
    return load(name).scene(**values).answer.right


def test_averaging() -> None:
    def first(apart: float) -> list[int]:
        return [K for K in averaging.STEPS if right("averaging", steps=K, apart=apart)]

    (K,) = first(1.2)
    assert_says("averaging", f"difference 1.2 of the start it is $K = {K}$", "with 0.8 no number of steps does")
    assert first(0.8) == []
    (fewer,) = first(1.5)
    assert fewer < K
    f = averaging.valleys(2, kappa=16.0, apart=1.2, angle=1.0)
    away = {n: fedavg_limit(f, step=1.0 / max(f.L), K=n) - f.minimiser() for n in range(1, K + 1)}
    assert_says("averaging", f"and {min(n for n, x in away.items() if np.linalg.norm(x) >= 1.0)} of all numbers")


def test_bound() -> None:
    scene = load("bound").scene(x=1.25, y=1.25, p=1.25, q=1.25)
    *_, gap, error = scene.table.rows[0].cells
    assert_says("bound", "$\\theta = p = (1.25, 1.25)$ certifies less than 0.1")
    assert scene.answer.right
    assert error < gap < 0.1
    assert not right("bound", x=1.25, y=1.25, p=2.5, q=1.25)


def test_chain() -> None:
    for kappa in chain.SLIDERS[1].values:
        assert [m for m in chain.METHODS if right("chain", method=m, kappa=kappa)] == ["FedSplit, mean of the zⱼ"]
    assert_says("chain", "FedSplit whose model is the mean of its $z_j$")


def test_coin() -> None:
    def largest(apart: float) -> float:
        (p,) = [p for p in coin.SKIPS if right("coin", p=p, apart=apart)]
        return p

    less, least = largest(0.01), largest(0.003)
    assert_says("coin", f"$G = 0.03$ it is $p = {largest(0.03)}$", f"$G = 0.1$ it is {largest(0.1)}")
    assert_says("coin", f"$G = 0.01$ or less it is {less}")
    assert less == least
    for p, apart in ((0.44, 0.03), (0.16, 0.1), (0.54, 0.01), (0.58, 0.003)):
        assert_says("coin", f"{p}")
        assert [coin.says(coin.fedpd(q, apart)) for q in (p, p + 0.01)] == ["holds", "vacuous"]


def test_drift() -> None:
    scene = load("drift").scene(server=1.0, rho=1.5)
    assert "ends at 4, the solution is 1" in scene.answer.text
    assert_says("drift", "$\\eta_s = 1$ and $\\rho = 1.5$ the method ends at 4, where the solution is 1")
    assert "diverges" in load("drift").scene(server=1.0, rho=2.2).answer.text
    assert_says("drift", "with $\\rho = 2.2$ it diverges")


def test_momentum() -> None:
    broken = [rho for rho in momentum.RHO if right("momentum", clients=4, kappa=32, rho=rho)]
    assert broken == [rho for rho in momentum.RHO if rho >= broken[0]]
    assert_says("momentum", f"from {broken[0]} on for 4 clients and $\\kappa = 32$", "which is 1 on the slider")
    verdicts = {
        rho: load("momentum").scene(clients=4, kappa=32, rho=rho).verdicts[1].verdict for rho in momentum.RHO[5:7]
    }
    assert verdicts == {1: "holds", 1.2: "outside assumptions"}
    assert crosses(load("momentum").scene(clients=4, kappa=32, rho=broken[0]).charts[-1])
    assert not crosses(load("momentum").scene(clients=4, kappa=32, rho=1).charts[-1])


def crosses(chart: Any) -> bool:
    """Tell whether the last curve is drawn above the theorem."""
    *_, drawn, bound = chart.curves
    at = range(1, len(drawn.y) + 1) if drawn.x is None else drawn.x
    return any(y > 1.000001 * bound.y[n - 1] for n, y in zip(at, drawn.y, strict=True))


def test_names() -> None:
    assert right("names", active=2, first="FedADMM", second="FedDR", weight=8)
    assert_says("names", "FedADMM and FedDR")


def test_oracle() -> None:
    least = {
        name: [steps for steps in oracle.STEPS if right("oracle", oracle=name, steps=steps)] for name in oracle.ORACLES
    }
    (gradient,), (lbfgs,), (sarah,), cheat = least.values()
    assert_says("oracle", f"{gradient} gradient steps, {lbfgs} of L-BFGS, {sarah} of SARAH")
    assert cheat == []
    assert exactly_opened(2) == list(range(1, oracle.COORDINATES + 1))
    assert exactly_opened(1) != exactly_opened(2)
    assert_says("oracle", "in exact arithmetic 2 gradient steps are enough")


def exactly_opened(steps: int) -> list[int]:
    """Return how many coordinates FedPD's gradient steps have opened after each communication, without underflow."""
    mp = mpmath.mp.clone()
    f, eta = oracle.zero_chain(2, oracle.COORDINATES, split="halves"), 1 / mp.mpf(oracle.WEAK)
    d, unit, scale = oracle.COORDINATES, mp.mpf(f.width), mp.mpf(f.height) / mp.mpf(f.width)

    def gradient(j: int, theta: list) -> list:
        x, found = [1, *(t / unit for t in theta)], [mp.mpf(0)] * (d + 1)
        for k in np.flatnonzero(f.split[j]).tolist():  # Theta_k, while no coordinate is negative
            found[k] -= 2 * x[k] * mp.exp(-(x[k] ** 2)) * (4 * mp.atan(x[k + 1]) + 2 * mp.pi)
            found[k + 1] += mp.expm1(-(x[k] ** 2)) * 4 / (1 + x[k + 1] ** 2)
        return [float(max(f.split[j])) * scale * g for g in found[1:]]

    mean, opened = [mp.mpf(0)] * d, []
    theta, dual = [[mean] * 2 for _ in range(2)]
    for _ in range(d):
        for j in range(2):
            x = theta[j]
            for _ in range(steps):
                slopes = (g + a + (y - c) / eta for g, a, y, c in zip(gradient(j, x), dual[j], x, mean, strict=True))
                x = [y - s / (mp.mpf(f.L[j]) + 1 / eta) for y, s in zip(x, slopes, strict=True)]
            theta[j], dual[j] = x, [a + (y - c) / eta for a, y, c in zip(dual[j], x, mean, strict=True)]
        mean = [sum(t[k] + eta * a[k] for t, a in zip(theta, dual, strict=True)) / 2 for k in range(d)]
        assert min(mean) >= 0
        opened.append(max(k + 1 for k in range(d) if mean[k]))
    return opened


def test_phases() -> None:
    cells = {(step, s): right("phases", method="FedPD", step=step, s=s) for step in phases.STEPS for s in (0.9, 2.2)}
    found = [step for (step, s), answer in cells.items() if answer]
    assert all(s > 1 for (_, s), answer in cells.items() if answer)
    assert_says(
        "phases", "Only beyond $s = 1$", f"such as $\\eta L = {min(found, key=lambda step: abs(step - 2.4)):.1f}$"
    )


@pytest.mark.parametrize("kappa", [4, 8, 12])
def test_stopping(kappa: int) -> None:
    def least(schedule: str) -> int:
        (steps,) = [K for K in stopping.STEPS if right("stopping", steps=K, kappa=kappa, schedule=schedule)]
        return steps

    def smallest(schedule: str) -> int:
        return next(K for K in range(1, 31) if stopping.soon_enough(K, kappa, schedule).verdict == "holds")

    cells = (f"{least(schedule)} ({smallest(schedule)})" for schedule in stopping.SCHEDULES)
    assert_says("stopping", "| ".join(f"{cell} " for cell in ("", kappa, *cells, "")).strip())


def test_worst() -> None:
    assert right("worst", n=1, m1=2.0, s1=0.7, m2=0.0, s2=3.0)
    assert_says("worst", "In the first round: put one kink at 0, where the method starts, with the larger slope")


def test_wrong() -> None:
    short = {guess: guess.split(":")[0] for guess in wrong.CLAIMS}
    for line in list(wrong.LINES)[1:]:
        noticed = [short[guess] for guess in wrong.CLAIMS if wrong.judged(line, guess).verdict == "violated"]
        cells = "all five" if len(noticed) == len(short) else ", ".join(noticed)
        written = line.replace("ρ", "$\\rho$").replace("ν", "$\\nu$")
        assert_says("wrong", f"| {written} | {cells} |")
        drawn = load("wrong").scene(line=line, guess=wrong.RATE)
        assert any(map(crosses, drawn.charts)) == (wrong.judged(line, wrong.RATE).verdict == "violated")
