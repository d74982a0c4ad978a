"""What every claim promises: that it holds where it speaks, and that it could have failed.

``cases(quick)`` of a claim yields cases with the verdict that is expected: where it ``holds``, and wrong variants of
the method for which it is ``violated``.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from dualopt.lab.claims import VERDICTS, Verdict, check
from dualopt.lab.contracts.options import classes, open_argument


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test the claims."""
    if open_argument(metafunc, "claim"):
        found = classes(metafunc.config, "claim")
        metafunc.parametrize("claim", found.values(), ids=list(found))


@cache
def verdicts(claim: Any) -> list[tuple[Verdict, str]]:
    """Return the verdict on every case beside the expected one."""
    assert claim.cases is not None, "cases must yield pairs of a case and the verdict that is expected there."
    return [(check(claim, case), expected) for case, expected in claim.cases(False)]


def test_it_says_what_it_claims_and_where_that_is_proved(claim: Any) -> None:
    """It has a name, a source and a statement."""
    for part in ("name", "source", "statement"):
        assert getattr(claim, part).strip(), f"{part} must not be empty."


def test_every_case_has_the_verdict_that_is_expected(claim: Any) -> None:
    """Every case has the verdict that is expected."""
    for found, expected in verdicts(claim):
        assert expected in VERDICTS, f"a verdict must be one of {', '.join(VERDICTS)}, not {expected}."
        assert found.verdict == expected, f"on {found.case} it is {found.verdict}, not {expected}: {found.witness}."


def test_it_holds_somewhere(claim: Any) -> None:
    """There is a case on which it holds."""
    assert any(found.verdict == "holds" for found, _ in verdicts(claim)), "no case is one on which it holds."


def test_a_wrong_variant_violates_it(claim: Any) -> None:
    """There is a wrong variant of the method that violates it: a claim that nothing violates tests nothing."""
    assert any(found.verdict == "violated" for found, _ in verdicts(claim)), "no case violates it."


def test_a_smaller_constant_would_be_noticed(claim: Any) -> None:
    """If its constants are explicit, half of the bound is violated by a case on which it holds."""
    if claim.constant == "explicit":
        worst = max((found.worst_ratio for found, _ in verdicts(claim) if found.verdict == "holds"), default=0.0)
        assert worst > 0.5, f"no case comes nearer to the bound than {worst:.2g} of it."


def test_it_can_be_checked_again(claim: Any) -> None:
    """The same case has the same verdict again."""
    for case, _ in claim.cases(True):
        assert check(claim, case) == check(claim, case)
