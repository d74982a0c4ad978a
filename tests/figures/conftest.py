"""Small data for figures, and nobody's own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from figures._settings import Settings


@pytest.fixture(autouse=True)
def no_data_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep a folder that the user may have set out of these tests."""
    monkeypatch.delenv("DUALOPT_DATA_HOME", raising=False)


@pytest.fixture
def small(tmp_path: Path, request: pytest.FixtureRequest) -> Settings:
    """Sixty rows of three numbers, or as many as a test says, in two classes that overlap."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, getattr(request, "param", 3)))
    np.savez(tmp_path / "small.npz", X=X, y=(X[:, 0] + 0.5 * rng.standard_normal(60) > 0).astype(int))
    return Settings(data=str(tmp_path / "small.npz"), out=tmp_path, quick=True, rounds=10)


@pytest.fixture(scope="session")
def three_classes(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the name of a file with 160 rows of four numbers in three classes."""
    rng = np.random.default_rng(0)
    X, W = rng.standard_normal((160, 4)), rng.standard_normal((4, 3))
    path = tmp_path_factory.mktemp("data") / "small.npz"
    np.savez(path, X=X, y=(X @ W + rng.gumbel(size=(160, 3))).argmax(1))
    return str(path)
