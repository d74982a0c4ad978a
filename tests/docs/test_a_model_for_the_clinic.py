"""docs/site/guide/a_model_for_the_clinic.md, in an empty folder: its cells in turn, and what they show."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.docs.cells import cells, ran


def test_the_cells_run_and_agree_with_statsmodels(tmp_path, monkeypatch, undrawn) -> None:
    pytest.importorskip("statsmodels")
    monkeypatch.chdir(tmp_path)
    known: dict[str, Any] = {}
    for cell in cells("a_model_for_the_clinic.md"):
        ran(cell, known)
    assert known["accuracy"]["balanced"] > known["accuracy"][None] + 0.05
    assert known["fitted"].client_names_ == ("Basel", "Bern", "Lyon", "Nice")
    assert known["search"].best_params_["federatedclassifier__class_weight"] == "balanced"
    assert known["both"]["difference"].abs().max() < 1e-6
    np.testing.assert_allclose(known["summary"].standard_errors, known["pooled"].bse, rtol=1e-6)
    assert list(pd.read_csv("predictions.csv")) == ["prediction", "probability no", "probability yes"]
    rates = known["rates"]
    np.testing.assert_allclose(rates["rate_ratio"], rates["statsmodels"], rtol=1e-6)
    whole, day = (pd.read_csv(f"{name}.csv").prediction for name in ("planned_visits", "visits_a_day"))
    np.testing.assert_allclose(whole / day, [30.0, 365.0], rtol=1e-12)
