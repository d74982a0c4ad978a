"""Theorem F: its first bound in rationals, the fraction it is about, and the momentum method it is not."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import islice

import numpy as np
import pytest

from dualopt.engine.rounds import iterate
from dualopt.methods import DualFL
from dualopt.objectives import Quadratic
from dualopt.solvers import Exact
from theory._problems import quadratic, solved
from theory.dualfl._runs import dual_optimum
from theory.frontier import sampled_dualfl as theorem_f


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
