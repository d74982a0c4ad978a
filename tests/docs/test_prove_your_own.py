"""docs/site/notebooks/prove_your_own.md: its cells run in turn, and print what the text says of them."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stdout
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).parents[2] / "docs" / "site" / "notebooks" / "prove_your_own.md"


@pytest.fixture(scope="module")
def printed() -> list[list[str]]:
    """Return the lines that each cell prints."""
    names: dict[str, Any] = {"__name__": "__main__"}
    found = []
    for cell in re.findall(r"```\{code-cell\} python\n(.*?)```", NOTEBOOK.read_text(encoding="utf-8"), re.DOTALL):
        out = io.StringIO()
        with redirect_stdout(out):
            exec(cell, names)
        found.append(out.getvalue().splitlines())
    return found


def test_the_cells_print_what_the_text_says(printed: list[list[str]]) -> None:
    _, runs, worst, proof, exact, _, slip, growth = printed
    assert all("converged" in line for line in runs)
    values = [float(line.rpartition(" ")[2]) for line in worst]
    assert values == pytest.approx([0.25 ** (n + 1) for n in range(1, 6)], rel=1e-2)
    assert "by a factor of 0.2500" in proof[0]  # to the tolerance of the search, 0.00001
    assert proof[-1] == "multipliers of the inequalities: [0.667 0.667]"
    assert exact == ["at most 12501/50000 per round; checked: 12501/50000"]
    assert slip[0].startswith("diverges on quadratic clients of curvatures")
    sums = [float(line.rpartition(" ")[2]) for line in growth]
    assert len(sums) == 6
    assert all(after > 2 * before for before, after in pairwise(sums))


def test_the_table_has_the_four_regions_of_the_text(printed: list[list[str]]) -> None:
    rows = {float(a): (float(c), p, float(n)) for a, c, p, n in (line.split() for line in printed[5][1:])}
    assert sorted(rows) == [1.0, 1.6, 2.0, 2.2, 2.6, 2.8, 3.0, 3.2]
    for a in (1.0, 1.6, 2.0):
        assert float(rows[a][1]) == pytest.approx(rows[a][0], abs=2e-4)
    for a in (2.2, 2.6, 2.8):
        claimed, proved, needed = rows[a]
        assert needed < float(proved) < min(claimed, 1.0) - 1e-2
    assert rows[2.8][0] > 1
    assert rows[3.0][1] == rows[3.2][1] == "not"
    assert rows[3.0][2] < 1 < rows[3.2][2]
