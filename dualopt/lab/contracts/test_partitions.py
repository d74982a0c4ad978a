"""What every partition promises.

A partition is a function that takes, by name, what it needs of ``y``, ``m``, ``n_clients``, ``alpha``, ``sigma``,
``seed`` and ``clients``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dualopt.lab.contracts.options import classes, open_argument
from dualopt.problem.data import check_partition

LABELS = {
    "numbers": np.random.default_rng(0).choice(3, size=61, p=[0.7, 0.2, 0.1]),
    "words": np.random.default_rng(1).choice(["ill", "well"], size=40, p=[0.15, 0.85]),
    "fractions": np.random.default_rng(2).standard_normal(23),
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test the partitions, and labels with numbers of clients up to that of the rows."""
    if open_argument(metafunc, "rule"):
        found = classes(metafunc.config, "partition")
        metafunc.parametrize("rule", found.values(), ids=list(found))
    if open_argument(metafunc, "labels"):
        cases = [(y, n) for y in LABELS.values() for n in (1, 2, 7, len(y))]
        metafunc.parametrize(("labels", "n_clients"), cases, ids=[f"{len(y)} rows, {n} clients" for y, n in cases])


def dealt(rule: Callable[..., Any], y: np.ndarray, n_clients: int, seed: int = 0) -> list[np.ndarray]:
    """Call a rule with what it takes."""
    owners = np.random.default_rng(3).permutation(np.arange(len(y)) % n_clients)
    given = {"y": y, "m": len(y), "n_clients": n_clients, "alpha": 0.3, "seed": seed, "clients": owners}
    accepted = inspect.signature(rule).parameters
    return rule(**{name: value for name, value in given.items() if name in accepted})


def test_every_row_has_one_client_and_every_client_rows(rule: Any, labels: np.ndarray, n_clients: int) -> None:
    """Every row is dealt to one client, every client has rows, and there are as many clients as asked for.

    A rule with ``replacement = True`` may deal a row to several, and as many rows in all as there are.
    """
    replacement = getattr(rule, "replacement", False)
    for seed in range(5):
        parts = dealt(rule, labels, n_clients, seed)
        check_partition(parts, len(labels), replacement=replacement)
        assert sum(map(len, parts)) == len(labels)
        assert len(parts) == n_clients, f"{len(parts)} clients instead of {n_clients}."


def test_chance_is_that_of_the_seed(rule: Any) -> None:
    """The same arguments give the same parts, whatever other generators do, and a rule with a seed uses it."""
    y = LABELS["numbers"]

    def parts(seed: int) -> list[list[int]]:
        return [sorted(map(int, rows)) for rows in dealt(rule, y, 5, seed)]

    np.random.seed(1)  # noqa: NPY002
    first = parts(0)
    np.random.seed(2)  # noqa: NPY002
    assert parts(0) == first
    if "seed" in inspect.signature(rule).parameters:
        assert any(parts(seed) != first for seed in range(1, 6))


def test_labels_are_not_written_to(rule: Any) -> None:
    """It writes to nothing that it is handed."""
    y = LABELS["numbers"].copy()
    y.flags.writeable = False
    parts = dealt(rule, y, 5)  # an error, if it wrote
    assert [list(rows) for rows in parts] == [list(rows) for rows in dealt(rule, LABELS["numbers"], 5)]
