"""What lessons 9 to 12 compute themselves: expectations over coins, local gaps, wrong lines, samples of couplings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from figures.lessons import coin, oracle, stopping, wrong
from theory._rounds import expected_squares, histories
from theory.dualfl._gaps import watched
from theory.dualfl._runs import local_energies, path
from theory.lower_bounds._couplings import Couplings
from theory.lower_bounds._races import zero_chain


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
