"""The instruments: every verdict, and that none is given for the wrong reason."""

from __future__ import annotations

import math
import pickle
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from dualopt.lab import claims
from dualopt.lab.claims import VERDICTS, Case, Claim, Inequality, check
from dualopt.methods import DualFL
from dualopt.objectives import Quadratic
from dualopt.solvers import Exact


def claim(*rows: tuple, **options) -> Claim:
    return Claim(
        name="claim",
        source="here",
        statement="x <= b",
        compare=lambda case: [Inequality(n, *row) for n, row in enumerate(rows)],
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
        ([(0.5, 1.0), (2e-12, 1e-12)], {}, "violated", 2.0, 2),  # a small bound binds as a large one does
        ([(0.5, 1.0), (2e-12, 1e-12, "", 2e-12)], {}, "holds", 0.5, 1),  # nothing beyond rounding
        ([(0.5, 1.0), (4e-12, 1e-12, "", 1e-12)], {}, "violated", 3.0, 2),  # what exceeds rounding
        ([(math.nan, 1.0, "", 2.0)], {}, "violated", math.inf, 1),
        ([(0.0, 1.0)], {}, "holds", 0.0, 1),
        ([(1e-12, 1.0, "", 1e-11)], {}, "inconclusive", math.nan, 0),
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
    assert str(found.witness) == "here: at n = 1, error: lhs = 1.5 > rhs = 1"
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
        return (Inequality(n, abs(s.server.theta - case.theta).max(), 1.0) for n, s in enumerate(case.snapshots()))

    near = Claim(name="near", source="here", statement="", compare=distances)
    assert check(near, case).verdict == "holds"
    assert check(near, case).case == "two clients"


@claims.claim(source="here", statement=r"$x \le 1$", rtol=1e-3, assumptions=lambda x: [] if x > 0 else ["x > 0"])
def at_most_one(x: float, *, bound: float = 1.0) -> Iterator[Inequality]:
    """Compare x with a bound."""
    yield Inequality(0, x, bound)


def test_a_decorated_function_is_a_claim() -> None:
    assert isinstance(at_most_one, Claim)
    assert (at_most_one.name, at_most_one.source, at_most_one.corrects) == ("at_most_one", "here", None)
    assert at_most_one.__doc__ == "Compare x with a bound."
    assert list(at_most_one(3.0, bound=2.0)) == [Inequality(0, 3.0, 2.0)]
    assert check(at_most_one, -1.0).verdict == "outside assumptions"
    named = claims.claim(name="another", source="here", statement="")(lambda case: [])
    assert named.name == "another"


def test_relative_rounding_is_allowed_between_the_sides() -> None:
    """The ratio counts it in, so that it is at most one where the claim holds."""
    assert check(at_most_one, 1.0009).verdict == "holds"
    assert check(at_most_one, 1.0009).worst_ratio == pytest.approx(1.0009 / 1.001, rel=1e-15)
    assert check(at_most_one, 1.001).worst_ratio == 1.0
    beyond = check(at_most_one, 1.0011)
    assert beyond.verdict == "violated"
    assert beyond.witness is not None
    assert beyond.witness[1:] == (0, 1.0011, 1.0, "")


def test_an_erratum_knows_the_claim_that_it_corrects() -> None:
    @at_most_one.as_printed(source="there", statement=r"$x \le 1/2$", cases=lambda quick: [(0.7, "violated")])
    def half(x: float) -> list[Inequality]:
        return [Inequality(0, x, 0.5)]

    assert (half.name, half.corrects, half.rtol) == ("half", "at_most_one", 0.0)
    assert half.cases is not None
    assert [check(half, x).verdict == verdict for x, verdict in half.cases(True)] == [True]


def test_a_claim_of_a_module_pickles_by_its_name() -> None:
    assert pickle.loads(pickle.dumps(at_most_one)) is at_most_one
    changed = replace(at_most_one, rtol=0.0)
    with pytest.raises((pickle.PicklingError, AttributeError)):  # its functions are no functions of a module
        pickle.dumps(changed)
    plain = Claim(name="plain", source="here", statement="", compare=nothing)
    assert pickle.loads(pickle.dumps(plain)) == plain


def nothing(case: object) -> list[Inequality]:
    return []


def test_a_verdict_says_what_was_compared_and_what_was_rounding() -> None:
    found = [Inequality(0, 0.5, 1.0, "value"), Inequality(0, 1e-12, 1.0, "distance", 2e-12)]
    answer = check(Claim(name="two", source="a test", statement="", compare=lambda case: found), None)
    assert (answer.verdict, answer.tested, answer.untested) == ("holds", ("value",), ("distance",))
