"""An excerpt of ``python -m tests.fuzz_guarantees``, and what it would have found."""

from __future__ import annotations

import pytest

from dualopt.arrays.xp import silent
from tests.fuzz_guarantees import OLD, draw, failures, main, put_back
from tests.promises import PROVED


@pytest.mark.parametrize("name", PROVED)
def test_promises_of_a_method_are_kept(name: str) -> None:
    with silent():
        assert not list(failures(range(2), [name]))


@pytest.mark.parametrize("seed", [91013, 91015])
def test_a_first_point_that_is_refused_has_no_residual(seed: int) -> None:
    with silent():
        assert not list(failures([seed], ["anderson-dane"]))


@pytest.mark.parametrize("old", OLD)
def test_old_promises_are_found(old: str) -> None:
    with silent(), put_back(OLD[old]):
        assert next(failures(range(12), [OLD[old].name], given=OLD[old].given), None) is not None


def test_problems_are_lopsided() -> None:
    found = [draw(seed).f for seed in range(20)]
    assert 5 <= sum(f.weights is not None for f in found) <= 15
    assert all(max(f.L) > 1.1 * min(f.mu) for f in found)


def test_the_program_ends_with_what_it_has_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--problems", "1", "--method", "dual-ascent"]) == 0
    assert "0 broken" in capsys.readouterr().out
    assert main(["--problems", "4", "--old", "fedsplit"]) == 1
    assert "--old fedsplit" in capsys.readouterr().out
