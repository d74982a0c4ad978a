"""The instruments: every verdict, and that none is given for the wrong reason."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dualopt.algorithms import DualFL
from dualopt.claims import VERDICTS, Case, Claim, Comparison, check
from dualopt.objectives import Quadratic
from dualopt.solvers import Exact


def claim(*rows: tuple, **options) -> Claim:
    return Claim(
        name="claim",
        source="here",
        statement="x <= b",
        compare=lambda case: [Comparison(n, *row) for n, row in enumerate(rows)],
        **options,
    )


@pytest.mark.parametrize(
    ("rows", "options", "verdict", "ratio", "compared"),
    [
        ([(0.5, 1.0), (0.2, 0.25)], {}, "holds", 0.8, 2),
        ([(1.0, 1.0)], {}, "holds", 1.0, 1),
        ([(0.5, 1.0), (0.3, 0.25)], {}, "violated", 1.2, 2),
        ([(math.nextafter(1.0, 2.0), 1.0)], {}, "violated", 1.0 + 2**-52, 1),
        ([(0.5, 1.0), (math.nan, 0.5)], {}, "violated", math.inf, 2),
        ([(math.inf, 1.0)], {}, "violated", math.inf, 1),
        ([(0.5, math.nan)], {}, "violated", math.inf, 1),
        ([(0.5, -1.0)], {}, "violated", math.inf, 1),
        ([(0.0, 0.0)], {}, "holds", 0.0, 1),
        ([(1e-300, 0.0), (0.5, 1.0)], {}, "violated", math.inf, 2),  # a bound of zero admits no rounding
        ([(0.5, 1.0), (2e-12, 1e-12)], {}, "holds", 0.5, 1),  # rounding beside the first bound
        ([(0.5, 1.0), (2e-12, 1e-12)], {"rounding": 0.0}, "violated", 2.0, 2),
        ([(0.0, 1.0)], {"rounding": 0.0}, "holds", 0.0, 1),
        ([(1e-12, 1.0)], {}, "inconclusive", math.nan, 0),
        ([], {}, "inconclusive", math.nan, 0),
        ([(0.5, math.inf)], {}, "vacuous", 0.0, 1),
        ([(0.5, 1.0)], {"trivial": lambda case: 1.0}, "vacuous", 0.5, 1),
        ([(0.5, 1.0), (0.5, 0.9)], {"trivial": lambda case: 1.0}, "holds", 0.5 / 0.9, 2),
        ([(0.5, 0.9), (0.5, 1.0)], {"trivial": lambda case: 1.0}, "vacuous", 0.5 / 0.9, 2),  # the last one counts
        ([(2.0, 1.0)], {"trivial": lambda case: 1.0}, "violated", 2.0, 1),
    ],
)
def test_verdicts(rows: list[tuple], options: dict, verdict: str, ratio: float, compared: int) -> None:
    found = check(claim(*rows, **options), "case")
    assert found.verdict == verdict
    assert found.verdict in VERDICTS
    assert found.worst_ratio == pytest.approx(ratio, rel=1e-15, nan_ok=True)
    assert found.compared == compared
    assert (found.witness is not None) == (verdict == "violated")


def test_the_witness_is_the_first_number_beyond_its_bound() -> None:
    found = check(claim((0.5, 1.0), (1.5, 1.0, "error"), (9.0, 1.0)), "here")
    assert found.witness is not None
    assert found.witness[1:] == (1, 1.5, 1.0, "error")
    assert str(found.witness) == "here: at n = 1, error = 1.5 > 1"
    assert found.worst_ratio == 9.0


def test_outside_assumptions_nothing_is_computed_unless_asked() -> None:
    def refuse(case):
        raise AssertionError

    outside = Claim(name="c", source="s", statement="", compare=refuse, assumptions=lambda case: ["mu > 0"])
    found = check(outside, "case")
    assert (found.verdict, found.failed) == ("outside assumptions", ("mu > 0",))
    wrong = claim((2.0, 1.0), assumptions=lambda case: ["mu > 0"])
    assert check(wrong, "case", check_assumptions=False).verdict == "violated"


def test_a_case_runs_its_algorithm() -> None:
    f = Quadratic(A=np.stack([np.eye(2), 2 * np.eye(2)]), b=np.array([[1.0, 0.0], [0.0, 3.0]]))
    theta = f.minimiser()
    case = Case(
        name="two clients",
        algorithm=DualFL(rho=0.4, nu=0.9, solver=Exact()),
        objective=f,
        theta=theta,
        subgradients=f.gradient(theta),
        rounds=60,
    )
    models = [s.server.theta for s in case.snapshots()]
    assert len(models) == 60
    np.testing.assert_allclose(models[-1], theta, atol=1e-6)

    def distances(case: Case):
        return (Comparison(n, abs(s.server.theta - case.theta).max(), 1.0) for n, s in enumerate(case.snapshots()))

    near = Claim(name="near", source="here", statement="", compare=distances)
    assert check(near, case).verdict == "holds"
    assert check(near, case).case == "two clients"
