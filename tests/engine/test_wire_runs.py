"""Whole runs whose requests and answers are bytes: every method equals one process bit for bit, at the stated cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dualopt.methods
from dualopt import run
from dualopt.engine import Host, RemoteClients, wire
from dualopt.engine import _protocol as protocol
from dualopt.federation.engine import SitesEngine
from dualopt.federation.seal import Seal
from dualopt.methods.participation import CommunicateWithProbability, Full, UniformSubset, WeightedSubset
from dualopt.spec.discover import discover
from tests.engine.problems import problems

ROUNDS = 5
METHODS: dict[str, Any] = dict(discover(dualopt.methods))


@pytest.mark.parametrize("name", METHODS)
def test_every_method_over_bytes_is_one_process(name: str) -> None:
    kind = METHODS[name]
    who = UniformSubset(size=2) if "partial" in kind.supports else Full()
    if "unequal" in kind.supports:  # the weights of the clients are their numbers of rows
        who = WeightedSubset(size=2)
    if "skip" in kind.supports:
        who = CommunicateWithProbability(probability=0.6)
    f = problems()["quadratic" if name == "optimized-dualfl" else "smooth"]
    options: dict[str, Any] = {"rounds": ROUNDS, "participation": who, "certify_every": 2, "check_assumptions": False}
    options |= {"measure_every": 2}
    expected = run(kind(), f, **options)
    hosts = {f"site-{j}": Host(f.select([j]), j) for j in range(f.n_clients)}
    longest = [0, 0]

    seal = Seal(b"key")

    def answer(site: str, sealed: bytes, seconds: float) -> bytes:
        requests = wire.decode_requests(data := seal.opened_request(sealed) or b"")
        answers = wire.encode(hosts[site].answer(requests))
        started = any(type(part) is protocol.Start for part in requests)  # holds the parameters of the method, once
        for way, message in enumerate((data, answers)):
            own = (len(message) - wire.payload(message)) / len(requests)
            longest[way] = max(longest[way], 0 if started else int(own))
        return seal.answer(sealed, answers)

    engine = SitesEngine(list(hosts), answer, keys=dict.fromkeys(hosts, b"key"), deadline=60.0)
    found = run(kind(), RemoteClients(engine), **options)
    engine.close()
    assert np.array_equal(found.theta, expected.theta)
    for column in expected.columns:
        if column != "seconds":
            assert np.array_equal(found[column], expected[column], equal_nan=True), column
    assert max(longest) <= wire.OVERHEAD
