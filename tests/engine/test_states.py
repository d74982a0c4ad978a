"""Local solutions that several hosts hold are put together as one process has them, and given back."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest

from dualopt.arrays.tree import leaves
from dualopt.engine import Blocks
from dualopt.engine._states import joined_solutions, solutions_of
from dualopt.engine.rounds import iterate
from dualopt.methods import FedDyn
from dualopt.methods.participation import UniformSubset
from tests.engine.problems import problems

HOSTS = [(1, 3), (0, 2, 4)]
N = np.arange(5.0)
THETA, F, GRADIENT = np.stack([N, 10.0 + N], axis=1), 20.0 + N, np.stack([30.0 + N, 40.0 + N], axis=1)


def of(clients: list[int], excess: Any, exact: bool) -> Any:
    """What is kept of some clients; ``excess`` is that of all."""
    rows = THETA[clients], F[clients], GRADIENT[clients], None if excess is None else excess[clients]
    return rows, None if len(clients) == 5 else np.array(clients), exact


def same(found: Any, kept: Any) -> bool:
    equal = [np.array_equal(x, y) for x, y in zip(leaves(found), leaves(kept), strict=True)]
    return found[2] == kept[2] and (found[1] is None) == (kept[1] is None) and all(equal)


@pytest.mark.parametrize(
    "kept",
    [
        of([0, 1, 2, 3, 4], None, True),
        of([0, 1, 2, 3, 4], N, False),
        of([0, 3], 0.0 * N, True),
        of([1, 3], N, False),
        of([2], 0.0 * N, True),
    ],
    ids=["all, exact", "all", "some of both, exact", "all of one", "one"],
)
def test_solutions_of_hosts_are_those_of_all(kept: Any) -> None:
    assert same(joined_solutions([solutions_of(kept, own) for own in HOSTS], HOSTS), kept)


def test_solutions_of_hosts_that_know_different_things() -> None:
    """A host whose clients are all solved exactly says nothing of an excess, which is zero then."""
    exact = (THETA[[1, 3]], F[[1, 3]], GRADIENT[[1, 3]], None), None, True
    others = (THETA[[0, 4]], F[[0, 4]], GRADIENT[[0, 4]], N[[0, 4]]), np.array([0, 2]), False
    excess = np.array([0.0, 0.0, np.nan, 0.0, 4.0])
    assert same(joined_solutions([exact, others], HOSTS), of([0, 1, 3, 4], excess, False))
    assert same(joined_solutions([exact, None], HOSTS), of([1, 3], excess, True))
    assert joined_solutions([None, None], HOSTS) is None
    whole = (*(x[[0, 2, 4]] for x in (THETA, F, GRADIENT)), N[[0, 2, 4]]), None, False
    assert same(
        joined_solutions([exact, whole], HOSTS), of([0, 1, 2, 3, 4], np.array([0.0, 0.0, 2.0, 0.0, 4.0]), False)
    )


def test_local_models_are_those_of_the_clients_that_were_active() -> None:
    f, few = problems()["quadratic"], UniformSubset(size=4)
    alone, blocks = (islice(iterate(FedDyn(), g, participation=few), 3) for g in (f, Blocks(number=3).clients(f)))
    for one, other in zip(alone, blocks, strict=True):
        np.testing.assert_array_equal(other.local_models, one.local_models)
