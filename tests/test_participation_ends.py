"""Ends of the ranges of the rules of participation, what they need, and the streams of a round."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from dualopt.methods.participation import Bernoulli, CommunicateWithProbability, Round, Schedule, UniformSubset


def test_all_clients_are_a_subset() -> None:
    assert next(UniformSubset(size=3).rounds(3, seed=0)).clients == (0, 1, 2)
    with pytest.raises(ValueError, match="size must not exceed"):
        next(UniformSubset(size=4).rounds(3, seed=0))


def test_probability_one_is_certainty() -> None:
    assert all(r.clients == (0, 1, 2) for r in islice(Bernoulli(probability=1.0).rounds(3, seed=0), 20))
    assert all(r.communicate for r in islice(CommunicateWithProbability(probability=1.0).rounds(3, seed=0), 20))


def test_a_client_twice_in_one_round_of_several_is_refused() -> None:
    with pytest.raises(ValueError, match="clients"):
        Schedule(clients=((0, 1), (1, 1)))


@pytest.mark.parametrize(
    ("communicate", "skips"), [(None, False), ((True, True), False), ((True, False), True), ((False, False), True)]
)
def test_a_schedule_skips_where_some_round_does(communicate: tuple[bool, ...] | None, skips: bool) -> None:
    assert ("skip" in Schedule(clients=((0, 1), (0, 1)), communicate=communicate).needs()) == skips


def test_streams_of_a_round_have_keys_of_their_own() -> None:
    """Keys (1, n, j) for client j and (2, n) for what is common: runs elsewhere draw the same numbers."""
    round = Round(n=3, n_clients=4, clients=(0, 2), communicate=True, seed=7)
    keys = [(1, 3, 0), (1, 3, 2), (2, 3)]
    streams = [np.random.default_rng(np.random.SeedSequence(7, spawn_key=key)) for key in keys]
    assert [r.random() for r in (*round.rngs(), round.rng())] == [r.random() for r in streams]
