"""Weights of clients in the means of a round, and memories of uploads, in numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pytest

from dualopt.arrays.client_states import ClientStates
from dualopt.engine._steps import (
    Proposed,
    _with_rows,
    averaged,
    commit,
    counted,
    remembered,
    stacked,
    weighed,
    weights_in,
)
from dualopt.methods import FedAvg, FedDyn
from dualopt.methods.participation import first_round
from theory.identities._virtual_updates import VirtualUpdates

ROUND = replace(first_round(4), clients=(1, 3), inclusion=(0.1, 0.5, 0.9, 0.25))
WEIGHTS = (1.0, 2.0, 3.0, 4.0)


def test_a_mean_has_the_weights_of_the_clients_and_the_other_one_those_over_their_chances() -> None:
    assert weights_in(FedDyn(), ROUND, WEIGHTS) == ((2.0, 4.0), (4.0, 16.0))
    assert weights_in(FedDyn(), ROUND, None) == (None, (2.0, 4.0))
    assert weights_in(FedAvg(), ROUND, WEIGHTS) == ((2.0, 4.0),)
    assert weights_in(FedDyn(), replace(ROUND, inclusion=None), WEIGHTS) == ((2.0, 4.0),)
    means = averaged(FedDyn(), np.array([[3.0], [9.0]]), ROUND, WEIGHTS)
    assert [mean.tolist() for mean in means] == [pytest.approx([7.0]), pytest.approx([7.8])]


def test_the_weight_of_a_round_is_the_part_of_its_clients() -> None:
    assert weighed(ROUND, WEIGHTS).weight == pytest.approx(0.6)
    assert weighed(ROUND, None) is ROUND
    assert weighed(ROUND, None, 0.5).kept == weighed(ROUND, WEIGHTS, 0.5).kept == 0.5


def test_of_those_who_computed_some_count() -> None:
    """Their states, those of their solvers, and what they remember, by the rows in which they stand."""
    state, solver, memory = np.arange(3.0), np.arange(6.0).reshape(3, 2), np.arange(10.0, 13.0)
    proposed = Proposed((1, 4, 6), (state,), (solver,), state, None, (memory,), 5)
    assert counted(proposed, [0, 1, 2]) is proposed
    assert counted(proposed, []) is None
    some = counted(proposed, [0, 2])
    assert some is not None
    assert (some.ids, some.vectors) == ((1, 6), 5)
    found = [some.active[0].tolist(), some.solver[0].tolist(), some.memory[0].tolist()]
    assert found == [[0.0, 2.0], [[0.0, 1.0], [4.0, 5.0]], [10.0, 12.0]]


def test_memories_are_zero_at_first() -> None:
    rows = np.arange(1.0, 13.0).reshape(2, 2, 3)
    proposed = Proposed((0, 2), (), (), (), None, (rows,))
    found = remembered(ClientStates((), 3), proposed, 3)
    np.testing.assert_array_equal(found.tree[0], [rows[0], np.zeros((2, 3)), rows[1]])
    more = remembered(found, proposed._replace(ids=(1,), memory=(rows[1:], rows[:1])), 3)
    np.testing.assert_array_equal(more.tree[0], [rows[0], rows[1], rows[1]])
    np.testing.assert_array_equal(more.tree[1], [np.zeros((2, 3)), rows[0], np.zeros((2, 3))])
    assert remembered(found, None, 3) is found


class Own(NamedTuple):
    dual: Any  # (N, 2)
    kept: Any  # (N,)


@dataclass(frozen=True, kw_only=True)
class Listening(VirtualUpdates):
    """Inactive clients change one part of their states, and keep or are sent the other."""

    sent: bool = False

    def receive_inactive(self, c: Any, message: Any) -> Any:
        return Own(c.dual + message[0], message[1] if self.sent else c.kept)


def test_states_that_methods_return_get_the_axis_of_the_clients_and_their_names() -> None:
    before = Own(np.zeros((3, 2)), np.zeros(3))
    whole = Own(np.ones((3, 2)), np.ones(3))
    assert stacked(before, before) is before
    assert stacked(before, whole) is whole
    for after in (Own(np.ones(2), np.ones(())), (np.ones((3, 2)), np.ones(3)), (np.ones(2), np.ones(3))):
        found = stacked(before, after)
        assert type(found) is Own
        assert [x.tolist() for x in found] == [x.tolist() for x in whole]
    for wrong in ((np.ones((3, 2)),), (*whole, np.ones(3))):
        for states in (before, tuple(before)):
            with pytest.raises(ValueError, match="argument 2 is"):
                stacked(states, wrong)


def test_states_that_are_those_of_before_are_not_written_to() -> None:
    """Also where they are all that there is."""
    x, rows = np.zeros((3, 2)), np.ones((1, 2))
    found = _with_rows(x, (1,), rows, [x])
    assert found.tolist() == [[0.0, 0.0], [1.0, 1.0], [0.0, 0.0]]
    assert not x.any()
    assert _with_rows(x, (1,), rows, []) is x  # made for this
    twice = _with_rows((y := np.zeros((3, 2)), y), (1,), (rows, 2.0 * rows), [])
    assert [part[1].tolist() for part in twice] == [[1.0, 1.0], [2.0, 2.0]]


@pytest.mark.parametrize("sent", [False, True])
@pytest.mark.parametrize("active", [(), (1,), (5, 0), (4, 1, 0), (0, 1, 2, 3, 5), range(6)])
def test_inactive_clients_hear_the_message(active: Any, sent: bool) -> None:
    """Few or many of them, and nothing of the states before, nor of the message, is written to."""
    rng = np.random.default_rng(len(active))
    before = Own(rng.standard_normal((6, 2)), np.arange(6.0))
    message = rng.standard_normal(2), np.full(6, -7.0)
    copies = [x.copy() for x in (*before, *message)]
    ids = np.asarray(active, dtype=int)
    new = Own(rng.standard_normal((len(ids), 2)), 10.0 + ids)
    proposed = Proposed(active, new, (), None, None) if len(ids) else None
    expected = Own(before.dual + message[0], (message[1] if sent else before.kept).copy())
    for x, rows in zip(expected, new, strict=True):
        x[ids] = rows
    states = ClientStates(before, 6)
    sized = (message[0], message[1][0]) if len(ids) * 2 >= 6 else message
    after, _ = commit(Listening(sent=sent), states, ClientStates((), 6), proposed, 6, sized, communicate=True)
    assert [x.tolist() for x in after.tree] == [x.tolist() for x in expected]
    assert [x.tolist() for x in states.tree] == [x.tolist() for x in copies[:2]]
    assert [x.tolist() for x in message] == [x.tolist() for x in copies[2:]]
