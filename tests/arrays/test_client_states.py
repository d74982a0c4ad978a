"""States of clients that are written a few rows at a time: equal to copies of everything, and never changed."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, rule

from dualopt import DualFL, FedDyn, UniformSubset, iterate
from dualopt.arrays import client_states
from dualopt.arrays.client_states import ClientStates
from dualopt.arrays.tree import leaves, merge_clients, take_clients
from dualopt.arrays.xp import is_host, is_writable, to_numpy
from tests.problems import lopsided

N = 7
STATM = Path("/proc/self/statm")


def tree(values: np.ndarray):
    return values, (np.stack([values, -values], axis=1), None, ())


class AnyOrder(RuleBasedStateMachine):
    """Versions in any order, branching from old ones: each is the tree of its own history, made by copies."""

    versions = Bundle("versions")

    @initialize(target=versions)
    def start(self):
        values = np.arange(1.0, N + 1)
        return ClientStates(tree(values), N), tree(values.copy())

    @rule(
        target=versions, version=versions, ids=st.permutations(range(N)), n=st.integers(0, N), seed=st.integers(0, 99)
    )
    def put(self, version, ids, n, seed):
        states, copied = version
        new = tree(np.random.default_rng(seed).normal(size=n))
        return states.put(ids[:n], new), merge_clients(copied, new, ids[:n])

    @rule(version=versions, ids=st.lists(st.integers(0, N - 1), max_size=2 * N))
    def take(self, version, ids):
        states, copied = version
        self.same(states.take(ids), take_clients(copied, ids))

    @rule(version=versions)
    def whole(self, version):
        states, copied = version
        self.same(states.tree, copied)

    @staticmethod
    def same(mine, theirs):
        for a, b in zip(leaves(mine), leaves(theirs), strict=True):
            np.testing.assert_array_equal(a, b)


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(max_examples=60, stateful_step_count=25)


def test_what_was_handed_out_is_never_written_to():
    first = ClientStates(np.zeros(3), 3)
    second = first.put([0], np.array([1.0]))
    whole, taken = second.tree, second.take([0, 1])
    for value in (2.0, 3.0):  # twice: the arrays that are written to exist after the first time
        second = second.put([0, 1], np.array([value, value]))
    assert whole.tolist() == [1.0, 0.0, 0.0]
    assert taken.tolist() == [1.0, 0.0]
    assert first.tree.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("lazy", [True, False])
def test_only_clients_that_were_put_take_memory(monkeypatch, lazy):
    """Many clients that differ from the start in ten rows: the start may be one row that is seen many times."""
    monkeypatch.setattr(client_states, "LAZY", 2**30 if lazy else 2**20)
    start = np.broadcast_to(np.zeros(100), (10**5, 100))
    states = ClientStates(start, 10**5)
    before = memory()
    for n in range(10):
        states = states.put([n * 1000], np.full((1, 100), float(n)))
    assert memory() - before < 2**24  # 80 MB for everybody
    assert states._rows is not None
    assert states._rows._arrays.shape[0] == (10**5 if lazy else 16)
    assert states.take([9000, 1]).sum(axis=1).tolist() == [900.0, 0.0]


@pytest.mark.parametrize(
    ("shapes", "n_clients", "places"),
    [
        ([(1024,)], 2**20, 2**20),  # 8 GiB of float64
        ([(1024,)], 2**20 + 1, 2),
        ([(32, 32)], 2**20 + 1, 2),
        ([(1024,), (1025,)], 2**20, 2),  # a tree of which one array is larger
    ],
)
def test_up_to_8_gib_an_array_has_its_places_at_once(monkeypatch, shapes, n_clients, places):
    asked, resized = [], client_states._resized
    monkeypatch.setattr(client_states, "_resized", lambda x, n: asked.append(n) or resized(x, min(n, 2)))
    ClientStates(None, n_clients).put([3, 1], tuple(np.ones((2, *shape)) for shape in shapes))
    assert asked == [places] * len(shapes)


def test_where_memory_is_not_the_hosts_places_are_made_as_they_are_needed(backend):
    x = backend(np.zeros((7, 2)))
    states = ClientStates(x, 7).put([3], x[:1, ...] + 1.0)
    assert to_numpy(states.take([2, 3])).tolist() == [[0.0, 0.0], [1.0, 1.0]]
    if not is_writable(x):  # new arrays of everybody are made, as one program
        assert states._rows is None
        return
    assert states._rows is not None
    assert states._rows._arrays.shape == (7 if is_host(x) else 1, 2)


def memory() -> int:
    """Bytes of this process that are in memory."""
    if not STATM.exists():
        pytest.skip("the size of a process is read from /proc")
    return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_arrays_of_everybody_in_order_are_kept_as_they_are():
    start, ones = np.zeros(3), np.ones(3)
    states = ClientStates(start, 3)
    after = states.put((0, 1, 2), ones)
    assert states.is_complete
    assert after.is_complete
    assert states.take((0, 1, 2)) is start
    assert after.tree is after.take(range(3)) is ones
    assert after.put((2, 1, 0), np.arange(3.0)).tree.tolist() == [2.0, 1.0, 0.0]


def test_what_is_read_again_is_not_copied_again():
    states = ClientStates(np.zeros(4), 4).put([1, 3], np.array([5.0, 7.0]))
    ids = np.array([3, 0])
    assert states.take(ids) is states.take(ids)
    assert states.take(range(4)) is states.take(np.arange(4)) is states.tree
    assert states.take(ids).tolist() == [7.0, 0.0]


def test_states_without_a_start_are_complete_when_everybody_was_put():
    states = ClientStates(None, 3).put([2, 0], np.array([5.0, 6.0]))
    assert not states.is_complete
    states = states.put([1, 2], np.array([7.0, 8.0]))
    assert states.is_complete
    assert states.tree.tolist() == [6.0, 7.0, 8.0]


def test_who_has_a_state_is_known():
    states = ClientStates(None, 4)
    assert states.known.tolist() == []
    assert states.put([2, 0], np.array([5.0, 6.0])).known.tolist() == [0, 2]
    assert states.put([0, 1, 2, 3], np.zeros(4)).known.tolist() == [0, 1, 2, 3]
    complete = ClientStates(np.zeros(4), 4)
    assert complete.known.tolist() == complete.put([2], np.ones(1)).known.tolist() == [0, 1, 2, 3]


def test_no_more_places_than_clients(monkeypatch):
    monkeypatch.setattr(client_states, "LAZY", 0)
    states = ClientStates(np.zeros(7), 7)
    for n, places in ((1, 1), (2, 2), (3, 4), (4, 4), (5, 7)):
        states = states.put([n], np.ones(1))
        assert states._rows is not None
        assert states._rows._arrays.shape == (places,)


def test_numbers_of_another_type_are_refused():
    with pytest.raises(TypeError, match="float64 cannot be written into an array of float32"):
        ClientStates(np.zeros(2, dtype=np.float32), 2).put([1], np.zeros(1))


def test_every_library(backend):
    states = ClientStates(backend(np.zeros(3)), 3).put([2, 0], backend(np.array([1.0, 2.0])))
    assert to_numpy(states.put([0], backend(np.array([3.0]))).tree).tolist() == [3.0, 0.0, 1.0]
    assert to_numpy(states.tree).tolist() == [2.0, 0.0, 1.0]


def test_snapshots_that_are_kept_are_those_of_their_round():
    """All rounds first, then their states in any order, against states that were read at once."""
    f, method, few = lopsided(), FedDyn(), UniformSubset(size=2)
    at_once = []
    for _, s in zip(range(12), iterate(method, f, participation=few), strict=False):
        at_once.append([x.copy() for x in leaves((s.clients, s.solver))])
    kept = [s for _, s in zip(range(12), iterate(method, f, participation=few), strict=False)]
    for n in np.random.default_rng(0).permutation(12):
        for now, then in zip(leaves((kept[n].clients, kept[n].solver)), at_once[n], strict=True):
            np.testing.assert_array_equal(now, then)


def test_arrays_of_everybody_are_not_copied():
    f = lopsided()
    first, second = (s for _, s in zip(range(2), iterate(DualFL(), f), strict=False))
    assert second.clients is second.state.clients
    assert first.clients.zeta is not second.clients.zeta
