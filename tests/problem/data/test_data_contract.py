"""The contract of data sets, ``dualopt/lab/contracts/test_data.py``, on those that need no files."""

from __future__ import annotations

import pytest

from dualopt.lab.contracts.options import open_argument
from dualopt.lab.contracts.test_data import *  # noqa: F403
from dualopt.problem.data import available

FILES = {"cifar10", "fashion-mnist", "mnist"}  # in tests/problem/data/test_real_data.py
FILES |= {"cifar100", "emnist", "emnist-l", "femnist", "shakespeare"}  # in tests/problem/data/test_deep_data.py


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if open_argument(metafunc, "name"):
        metafunc.parametrize("name", sorted(set(available()) - FILES))
