"""docs/standard_errors.md: its code runs, and the numbers of its table are those of the package and of statsmodels."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import statsmodels.api as sm

PAGE = Path(__file__).parents[2].joinpath("docs", "standard_errors.md").read_text()


def row(title: str) -> list[str]:
    (line,) = re.findall(rf"^\| {re.escape(title)} \|(.*)\|$", PAGE, flags=re.MULTILINE)
    return [cell.strip() for cell in line.split("|") if cell.strip()]


def test_the_table_has_the_numbers_of_both(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    names: dict = {}
    exec(code, names)
    said, found = capsys.readouterr().out, names["found"]
    assert said.startswith("covariance: by the likelihood, (H + P)^-1 H (H + P)^-1, H the observed information")
    assert said.endswith("[0.2747 0.2008 0.7524 0.7077]\n")
    Z, y = sm.add_constant(names["X"], prepend=False), names["data"].target
    pooled = sm.Logit(y, Z).fit(disp=0, tol=1e-12)
    groups = {"groups": np.unique(names["hospital"], return_inverse=True)[1]}
    robust = sm.Logit(y, Z).fit(disp=0, tol=1e-12, cov_type="cluster", cov_kwds=groups, use_t=True)
    clients = found.by("clients")
    for title, numbers in {
        "estimate, here": found.estimate,
        "estimate, statsmodels": pooled.params,
        "standard error by the likelihood, here": found.standard_errors,
        "standard error, statsmodels": pooled.bse,
        "standard error by the clients, here": clients.standard_errors,
        "standard error by the clients, statsmodels": robust.bse,
    }.items():
        cells = row(title)
        assert cells[:4] == [f"{x:.5f}" for x in np.asarray(numbers)], title
    assert row("estimate, here")[4] == f"{found.aic:.4f}"
    assert row("estimate, statsmodels")[4] == f"{pooled.aic:.4f}"
    step = np.abs(found.ridge_shift / found.standard_errors).max()
    assert 6.5e-5 < step < 7.5e-5
    assert f"{found.estimate_bounds.max():.1e}".replace("e-0", "e-") in PAGE
    assert f"{found.distance:.1e}".replace("e-0", "e-") in PAGE
    assert 0.9e-6 < (found.error_bounds[1] / found.standard_errors).max() - 1 < 1.05e-6
