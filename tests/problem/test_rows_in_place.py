"""Large data that are put into the order of their clients where they are, against copies of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dualopt.objectives import linear_model
from dualopt.problem.build import build_problem
from dualopt.problem.data import _blocks
from dualopt.problem.options import ProblemOptions

OPTIONS: dict[str, dict[str, Any]] = {
    "by label": {"data": "digits", "clients": 7, "partition": "by-label"},
    "of many sizes": {"data": "digits", "clients": 9, "partition": "dirichlet", "alpha": 0.3, "dtype": "float32"},
    "free intercept": {"data": "breast_cancer", "clients": 3, "intercept": "free", "class_weight": "balanced"},
    "rows at several clients": {"data": "digits", "clients": 5, "partition": "dirichlet-replacement", "alpha": 0.5},
    "scaled rows": {"data": "digits", "clients": 4, "scale": "unit-rows"},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_the_objective_is_the_same(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """To the last bit, whatever the sizes of the clients; names, intercept and the text of the data too."""
    options = ProblemOptions(**OPTIONS[name])
    copied = build_problem(options)
    monkeypatch.setattr(_blocks, "LARGE", 1)
    moved = build_problem(options)
    f, g = copied.objective, moved.objective
    assert (g.shape, g.intercept, g.free_intercept, g.classes) == (f.shape, f.intercept, f.free_intercept, f.classes)
    assert (moved.data, moved.sizes, moved.schema.n_features) == (copied.data, copied.sizes, copied.schema.n_features)
    for own, other in zip(f.client_rows(), g.client_rows(), strict=True):
        assert all(x.tobytes() == y.tobytes() for x, y in zip(own, other, strict=True))
    theta = np.random.default_rng(0).standard_normal(f.shape).astype(f.zeros().dtype)
    assert g.gradient(theta).tobytes() == f.gradient(theta).tobytes()


def test_memory_holds_them_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The features of all clients are one array, which they fill."""
    monkeypatch.setattr(_blocks, "LARGE", 1)
    rows = build_problem(ProblemOptions(data="digits", clients=7, partition="by-label")).rows.rows
    first, *others = [group.X for group in rows.groups]
    assert others
    whole = first.base if first.base.base is None else first.base.base
    assert all(np.shares_memory(whole, x) for x in others)
    assert whole.size == sum(x.size for x in (first, *others))


def test_rows_stay_where_they_are_if_asked() -> None:
    """Without an intercept, and where the rows of a size lie one after the other; else they are copied."""
    X, y = np.random.default_rng(0).standard_normal((6, 2)), np.ones(6)
    options: dict[str, Any] = {"loss": "squared", "mu": 0.1, "copy": False}
    copied: dict[str, Any] = options | {"copy": True}
    kept = linear_model(X, y, clients=[[0, 1], [2, 3], [4, 5]], intercept=False, **options)
    assert np.shares_memory(kept.rows.groups[0].X, X)
    for apart in (
        linear_model(X, y, clients=[[2, 3], [0, 1], [4, 5]], intercept=False, **options),
        linear_model(X, y, clients=3, **options),
        linear_model(X, y, clients=3, intercept=False, **copied),
    ):
        assert not np.shares_memory(apart.rows.groups[0].X, X)
