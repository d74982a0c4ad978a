"""Dual ascent: DualFL without momentum, its claims, and wrong variants that these notice."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dualopt import DualAscent, DualFL, Round, iterate
from dualopt.arrays.xp import Array
from dualopt.lab.claims import check
from dualopt.methods import dual_ascent, dualfl
from dualopt.solvers import Exact
from theory._cases import Case
from theory._problems import lopsided, quadratic
from theory.frontier.dual_ascent import dual_ascent_linear

ROUNDS = 40


class NoMomentum(DualFL):
    """DualFL with beta = 0."""

    def server(self, server: Any, mean: Array, round: Round) -> tuple[Any, Any]:
        return dualfl.Server(mean, 1.0), dualfl.Message(mean, 0.0)


def test_it_is_dualfl_without_momentum() -> None:
    f = quadratic().objective
    runs = (iterate(kind(nu=0.7, solver=Exact()), f) for kind in (DualAscent, _no_momentum))
    for _, one, other in zip(range(ROUNDS), *runs, strict=False):
        np.testing.assert_allclose(one.server.theta, other.server.theta, rtol=1e-13, atol=1e-15)
        np.testing.assert_allclose(one.clients.zeta, other.clients.zeta, rtol=1e-11, atol=1e-13)


def _no_momentum(**options: Any) -> NoMomentum:
    return NoMomentum(rho=0.0, **options)


def test_a_case_of_a_method_remembers_its_run() -> None:
    """A claim and a picture that look at one case cost one run."""
    calls = []

    @dataclass(frozen=True, kw_only=True)
    class Counted(DualAscent):
        def server(self, server: dual_ascent.Server, mean: Array, round: Round) -> tuple[dual_ascent.Server, Array]:
            calls.append(round.n)
            return super().server(server, mean, round)

    case = Case.of(Counted(solver=Exact()), lopsided().objective, rounds=5)
    check(dual_ascent_linear, case)
    models = [s.server.theta for s in case.snapshots()]
    assert calls == list(range(5))
    assert len(models) == 5
    np.testing.assert_array_equal(case.theta, lopsided().theta)
    forgetful = replace(case, remember=False)
    assert len(list(forgetful.snapshots())) == len(list(forgetful.snapshots())) == 5
    assert len(calls) == 15
