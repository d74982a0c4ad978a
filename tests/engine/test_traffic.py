"""What a run counts as sent, beside a count client by client."""

from __future__ import annotations

import numpy as np
import pytest

from dualopt.engine.traffic import NOTHING, Meter, Traffic
from dualopt.methods.participation import Round, first_round

N = 5
RECEIVERS = [frozenset(), frozenset({"active"}), frozenset({"inactive"}), frozenset({"active", "inactive"})]


@pytest.mark.parametrize("everybody", [False, True], ids=["nobody holds it", "everybody holds it"])
@pytest.mark.parametrize("receivers", RECEIVERS, ids=lambda found: "+".join(sorted(found)) or "nobody")
def test_who_works_is_sent_what_he_lacks_and_who_receives_what_is_new(receivers: frozenset, everybody: bool) -> None:
    rng, clients = np.random.default_rng(len(receivers)), set(range(N))
    meter = Meter(np.full(N, everybody), Traffic(3, 192), receivers)
    holders, size = clients if everybody else set(), 3
    for n in range(60):
        active = clients if n % 5 == 0 else set(rng.choice(N, rng.integers(N), replace=False).tolist())
        sends = bool(active) and bool(rng.integers(2))
        round = Round(n=n, n_clients=N, clients=tuple(sorted(active)), communicate=sends, seed=0)
        earlier, copy = meter.holding, meter.holding.copy()
        up, down, holders = 0, size * len(active - holders), holders | active
        upload, message = np.zeros((len(active), 2)), np.zeros(int(rng.integers(1, 9)))
        if sends:
            told = {"active": active, "inactive": clients - active}
            holders = set().union(*(told[who] for who in receivers))
            up, size = 2 * len(active), message.size
            down += size * len(holders)
        found = meter.count(round, upload if sends else None, message, np.zeros(2))
        assert found == (Traffic(up, 64 * up), Traffic(down, 64 * down))
        assert set(np.flatnonzero(meter.holding).tolist()) == holders
        np.testing.assert_array_equal(earlier, copy)  # snapshots have it


def test_masked_numbers_have_one_width() -> None:
    upload, message = np.zeros((N, 2), dtype=np.float32), np.zeros(2, dtype=np.float32)
    for masked, width in ((False, 32), (True, 64)):
        meter = Meter(np.ones(N, dtype=bool), NOTHING, frozenset({"active"}), masked=masked)
        up, down = meter.count(first_round(N), upload, message, message)
        assert (up, down) == (Traffic(10, 10 * width), Traffic(10, 320))
