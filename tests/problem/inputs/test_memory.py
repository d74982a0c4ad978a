"""How much memory an objective takes: rows of a mapped file stay in it, others are there once more."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dualopt import linear_model

M, D = 20_000, 256
BYTES = 8 * M * D


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("mapped") / "X.npy"
    np.save(path, np.random.default_rng(0).standard_normal((M, D)))
    built(np.load(path))  # what is imported for the first objective, Numba among it, is no memory of rows
    return path


def built(X: Any, **options: Any) -> Any:
    return linear_model(X, np.arange(M) % 7.0, loss="squared", mu=0.1, **{"intercept": False, **options})


def peak(call: Callable[[], Any]) -> tuple[Any, float]:
    """What a call returns, and the most memory that it took, in units of the features."""
    tracemalloc.start()
    try:
        found = call()
        return found, tracemalloc.get_traced_memory()[1] / BYTES
    finally:
        tracemalloc.stop()


def shares(f: Any, X: Any) -> bool:
    return all(np.shares_memory(group.X, X) for group in f.rows.groups)


@pytest.mark.parametrize("clients", [1, 3, 8, [range(5, 1000), range(1000, 9000), range(12_001, M)]], ids=str)
def test_a_mapped_file_is_not_copied(path: Path, clients: Any) -> None:
    X = np.load(path, mmap_mode="r")
    f, most = peak(lambda: built(X, clients=clients))
    assert shares(f, X)
    assert most < 0.5
    theta = np.linspace(-1.0, 1.0, D)
    expected = built(np.load(path), clients=clients)
    gradient, more = peak(lambda: f.gradient(theta))
    np.testing.assert_array_equal(gradient, expected.gradient(theta))
    assert more < 0.5


def test_what_cannot_stay_in_the_file_is_copied_once(path: Path) -> None:
    X, odd, apart = np.load(path, mmap_mode="r"), [range(0, M, 2), range(1, M, 2)], [range(10), range(12, 22)]
    cases: list[Any] = [(X, {"intercept": True}), (X, {"clients": odd}), (X, {"clients": apart}), (np.load(path), {})]
    for given, options in cases:
        f, most = peak(lambda given=given, options=options: built(given, **options))
        assert not shares(f, given)
        assert most < 1.6
    writable = np.load(path, mmap_mode="r+")
    f = built(writable)
    before = f.rows.groups[0].X[0, 0, 0].item()
    writable[0, 0] = before + 1.0
    assert f.rows.groups[0].X[0, 0, 0] == before  # what a program writes into its own data changes no objective
