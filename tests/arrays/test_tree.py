"""Trees of arrays: map, leaves, taking clients out and putting them back."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualopt.arrays.tree import join_clients, leaves, merge_clients, take_clients, take_rows, tree_map
from dualopt.arrays.xp import device, to_numpy


class Node(NamedTuple):
    a: Any
    b: Any


def tree(backend=np.asarray, n=5, offset=0.0):
    x = offset + np.arange(6.0 * n).reshape(n, 2, 3)
    return Node(backend(x), (backend(x[:, 0, 0]), None, (), Node(backend(x[:, 0, :] > 2), None)))


def test_tree_map_keeps_the_structure():
    result = tree_map(lambda x, y: x - y, Node(1, (2, None, ())), Node(10, (20, None, ())))
    assert result == Node(-9, (-18, None, ()))
    assert isinstance(result, Node)
    assert type(result.b) is tuple
    assert tree_map(lambda x: [x], [1, 2]) == [[1, 2]]  # a list is a leaf
    assert tree_map(lambda x: x, None) is None


def test_tree_map_refuses_trees_of_other_structure():
    with pytest.raises(ValueError, match="zip"):
        tree_map(lambda x, y: x, (1, 2), (1, 2, 3))


def test_leaves_in_order():
    assert leaves(Node(1, (2, None, Node(3, (4,))))) == [1, 2, 3, 4]
    assert leaves(()) == leaves(None) == []


@pytest.mark.parametrize("ids", [(0,), (4, 1), (3, 3), (0, 1, 2, 3, 4), (4, 3, 2, 1, 0), ()], ids=repr)
def test_take_clients(ids, backend):
    taken = take_clients(tree(backend), ids)
    assert isinstance(taken, Node)
    for mine, whole, like in zip(leaves(taken), leaves(tree()), leaves(tree(backend)), strict=True):
        assert np.array_equal(to_numpy(mine), whole[list(ids)])
        assert type(mine) is type(like)
        assert mine.dtype == like.dtype
        assert device(mine) == device(like)


def test_taking_everyone_copies_nothing():
    whole = tree()
    for mine, its in zip(leaves(take_clients(whole, range(5))), leaves(whole), strict=True):
        assert mine is its


@given(data=st.data(), n=st.integers(1, 6))
def test_merge_replaces_exactly_the_named_rows(data, n):
    ids = data.draw(st.lists(st.integers(0, n - 1), unique=True))
    old, new = tree(n=n), take_clients(tree(n=n, offset=100.0), ids)
    kept = [x.copy() for x in leaves(old)]
    merged = merge_clients(old, new, ids)
    for before, after, result in zip(leaves(old), leaves(new), leaves(merged), strict=True):
        expected = before.copy()
        expected[ids] = after
        assert np.array_equal(result, expected)
        assert result.dtype == before.dtype
    for now, before in zip(leaves(old), kept, strict=True):
        assert np.array_equal(now, before)
    # taking back what was merged
    for a, b in zip(leaves(take_clients(merged, ids)), leaves(new), strict=True):
        assert np.array_equal(a, b)


def test_merge_on_every_library(backend):
    new = take_clients(tree(backend, offset=100.0), (2, 0))
    merged = merge_clients(tree(backend), new, (2, 0))
    expected = merge_clients(tree(), take_clients(tree(offset=100.0), (2, 0)), (2, 0))
    for mine, other, like in zip(leaves(merged), leaves(expected), leaves(tree(backend)), strict=True):
        assert np.array_equal(to_numpy(mine), other)
        assert device(mine) == device(like)


def test_merging_everyone_in_order_is_the_new_tree_and_in_another_order_is_not():
    old, new = tree(), tree(offset=100.0)
    assert merge_clients(old, new, range(5)).a is new.a
    assert np.array_equal(merge_clients(old, new, (4, 3, 2, 1, 0)).a, new.a[::-1])


def test_rows_of_one_that_stands_for_all_are_copies():
    one = np.broadcast_to(np.arange(3.0), (100, 3))
    found = take_rows(one, [7, 2])
    assert found.tolist() == [[0.0, 1.0, 2.0]] * 2
    assert found.flags.writeable
    assert found.flags.c_contiguous


@pytest.mark.parametrize("groups", [([3, 0], [4, 1, 2]), ([2], [4, 3], [0, 1])])
def test_groups_of_clients_are_joined_in_their_order(backend, groups):
    whole = tree(backend)
    joined = join_clients(groups, [take_rows(whole, group) for group in groups])
    for x, y in zip(leaves(joined), leaves(whole), strict=True):
        assert device(x) == device(y)
        assert to_numpy(x).tolist() == to_numpy(y).tolist()
