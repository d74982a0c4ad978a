"""Where runs start, and what the engine refuses."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from dualopt.engine._steps import averaged
from dualopt.engine.rounds import iterate, on_engine, resolve, rounds_of
from dualopt.methods import AUTO, FedAvg, FedDualAvg
from dualopt.methods.participation import first_round
from dualopt.objectives import Composite, Quadratic
from dualopt.regularisers import L1, Zero
from tests.problems import quadratic


def test_a_run_starts_where_the_objective_says_for_its_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Quadratic, "initial", lambda self, seed=0: np.full(4, 1.0 + seed))
    f = quadratic()
    cases: list[tuple[dict[str, Any], float]] = [({}, 1.0), ({"seed": 2}, 3.0), ({"theta0": np.zeros(4)}, 0.0)]
    for options, start in cases:
        expected = next(rounds_of(resolve(FedAvg(), f), on_engine(f)[1], np.full(4, start), None, 0)).server.theta
        found = next(iterate(FedAvg(), f, **options)).server.theta
        np.testing.assert_array_equal(found, expected)


def test_methods_without_regularisers_refuse_an_objective_that_has_one() -> None:
    f = Composite(objective=quadratic(), regulariser=L1(weight=0.1))
    with pytest.raises(ValueError, match=r"^algorithm FedAvg does not support an objective with a regulariser\.$"):
        resolve(FedAvg(), f)
    assert isinstance(resolve(FedDualAvg(), f), FedDualAvg)
    assert isinstance(resolve(FedAvg(), quadratic()), FedAvg)


def test_a_parameter_that_stays_open_is_refused_before_the_first_round() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Forgetful(FedAvg):
        rate: float = AUTO

    with pytest.raises(ValueError, match=r"^rate must be given, or filled in by suggested\(objective\): it is open\.$"):
        resolve(Forgetful(), quadratic())
    assert resolve(Forgetful(rate=1.0), quadratic()).solver is not None


def test_clients_work_on_the_losses_without_the_regulariser() -> None:
    seen = []

    class Watched(FedDualAvg):
        def local(self, c: Any, message: Any, oracle: Any, round: Any) -> Any:
            seen.append(oracle.objective.regulariser)
            return super().local(c, message, oracle, round)

    next(iterate(Watched(), Composite(objective=quadratic(), regulariser=L1(weight=0.1))))
    assert seen == [Zero()]


def test_without_active_clients_there_are_no_gradients() -> None:
    assert replace(next(iterate(FedAvg(), quadratic())), solution=None).local_gradients is None


@pytest.mark.parametrize("shape", [(), (3,), (1, 2)])
def test_uploads_have_a_row_for_each_active_client(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"^upload must have shape \(2, \.\.\.\), one row per active client, not "):
        averaged(FedAvg(), np.zeros(shape), first_round(2), None)
