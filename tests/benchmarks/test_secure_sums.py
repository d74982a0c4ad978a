"""What secure sums cost: digits at eight sites, each a client, whose requests and answers are bytes.

Run with ``pytest tests/benchmarks/test_secure_sums.py --benchmark-only -s``; CPU times of one thread that does the work
of the server and of all sites, medians of contestants that take turns. Keys are not signed here.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

from dualopt.engine import Host, RemoteClients, SecureHost, SecureSums, wire
from dualopt.federation.engine import SitesEngine
from dualopt.federation.seal import Seal
from dualopt.losses import Multinomial
from dualopt.methods import DualFL
from dualopt.objectives import linear_model
from dualopt.runs.recording import run

from .race import in_turns, report

pytest.importorskip("cryptography")

SITES, ROUNDS = 8, 20


def digits() -> Any:
    X, y = load_digits(return_X_y=True)
    return linear_model(X / 16.0, y, loss=Multinomial(classes=10), mu=1e-2, clients=SITES)


def over_bytes(f: Any, every: int, *, secure: bool) -> tuple[Any, float, float]:
    """Run over sites whose messages are bytes; return the trace, and bytes up and down a round."""
    names = [f"site-{j}" for j in range(SITES)]
    hosts: dict[str, Any] = {name: Host(f.select([j]), j) for j, name in enumerate(names)}
    if secure:
        hosts = {name: SecureHost(host, name, names) for name, host in hosts.items()}
    seal = Seal(b"key")

    def answer(site: str, sealed: bytes, seconds: float) -> bytes:
        requests = wire.decode_requests(seal.opened_request(sealed) or b"")
        return seal.answer(sealed, wire.encode(hosts[site].answer(requests)))

    engine = SitesEngine(names, answer, keys=dict.fromkeys(names, b"key"), deadline=60.0)
    clients = RemoteClients(SecureSums(engine) if secure else engine)
    trace = run(DualFL(), clients, rounds=ROUNDS, certify_every=every)
    engine.close()
    return trace, engine.bytes_up / ROUNDS, engine.bytes_down / ROUNDS


def test_secure_sums(benchmark):
    """The digits of plain means to 1e-9; a masked number is as wide as a plain one."""
    f = digits()
    for every in (1000, 1):
        contestants: dict[str, Any] = {
            name: partial(over_bytes, f, every, secure=name == "secure sums") for name in ("plain", "secure sums")
        }
        seconds, found = in_turns(contestants, 3)
        table = []
        for name, (trace, up, down) in found.items():
            moved = float(np.abs(trace.theta - found["plain"][0].theta).max())
            ms = 1e3 * seconds[name] / ROUNDS
            table.append([name, f"{ms:.1f}", f"{up:,.0f}", f"{down:,.0f}", f"{moved:.1e}"])
            assert moved < 1e-9
        often = "at the ends" if every > ROUNDS else "in every round"
        head = ["digits, 8 sites", "ms a round", "bytes up", "bytes down", "from plain"]
        report(f"Secure sums, certified {often}", head, table)
    benchmark.pedantic(partial(over_bytes, f, 1000, secure=True), rounds=1)
