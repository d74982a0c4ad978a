"""Which uploads count, by what others and earlier ones look like, and what is made of those that do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

from dualopt.engine import Host, Inline, RemoteClients
from dualopt.engine import _protocol as protocol
from dualopt.engine._rows import added
from dualopt.engine._uploads import Explosions, UploadChecks, from_rows, from_sums, joined
from dualopt.engine.rounds import resolve
from dualopt.methods import FedAvg, FedDyn
from dualopt.methods.participation import Full, first_round
from dualopt.runs.recording import run
from dualopt.solvers import Exact
from tests.engine.problems import problems
from tests.engine.test_two_phases import WHEN, without

EXPLODES = 1e8  # times as large as all before, as docs/security.md has it
CLIENTS = {0: (0, 1), 1: (2, 3), 2: (4,)}
SHAPE = (3,)


def ones(*shape: int, kind: Any = np.float64) -> np.ndarray:
    return np.ones(shape, dtype=kind)


class One(NamedTuple):
    """An upload of one part, which is no plain tuple."""

    part: Any


class Checked:
    """What is made of uploads round after round."""

    def __init__(self, *, sums: bool = False, in_process: bool = False, secure: bool = False) -> None:
        engine: Any = SimpleNamespace(partial_sums=sums, in_process=in_process, secure=secure)
        self.checks = UploadChecks(engine, SHAPE)

    def __call__(self, *uploads: Any, communicate: bool = True, **named: Any) -> tuple[dict[int, Any], dict[int, str]]:
        """Who counts and who does not of the first hosts, which upload this."""
        faults: dict[int, str] = {}
        rest: dict[str, Any] = {"gradients": None, **named}
        self.uploads = {h: protocol.Uploaded("run", 0, x, **rest) for h, x in enumerate(uploads)}
        round = replace(first_round(5), communicate=communicate)
        return self.checks.sound(self.uploads, CLIENTS, round, faults), faults


def those(*hosts: int) -> dict[int, tuple[int, ...]]:
    return {h: CLIENTS[h] for h in hosts}


WRONG = "its upload has the wrong shapes or types, "
ALONE: dict[
    str, tuple[list[Any], Any, dict[str, bool], str]
] = {  # before, what one host uploads, its engine, the fault
    "a model": ([], ones(2, 3), {}, ""),
    "numbers": ([], ones(2), {}, ""),
    "both": ([], (ones(2), ones(2, 3)), {}, ""),
    "another shape": ([], ones(2, 7), {}, f"{WRONG}float64 (7,)"),
    "a model and another shape": ([], (ones(2, 3), ones(2, 7)), {}, f"{WRONG}float64 (3,), float64 (7,)"),
    "too many rows": ([], ones(3, 3), {}, f"{WRONG}float64 ('rows', 3, 3)"),
    "no array": ([], 1.0, {}, f"{WRONG}float ('rows', 'none')"),
    "what there has been": ([ones(2, 7)], ones(2, 7), {}, ""),
    "parts of what there has been": ([(ones(2, 7), ones(2, 8))], (ones(2, 8), ones(2)), {}, ""),
    "one part that has not been": ([ones(2, 7)], (ones(2, 7), ones(2, 8)), {}, f"{WRONG}float64 (7,), float64 (8,)"),
    "of the host of this process": ([], ones(2, 7), {"in_process": True}, ""),
    "of a secure sum": ([], ones(7), {"secure": True, "sums": True}, ""),
}


@pytest.mark.parametrize("case", ALONE)
def test_an_upload_without_another_beside_it(case: str) -> None:
    """It looks like models, or like what several hosts have uploaded before."""
    before, upload, engine, fault = ALONE[case]
    checked = Checked(**engine)
    for x in before:
        assert checked(x, x) == (those(0, 1), {})
    for _ in range(2):  # what was refused is not known from then on
        assert checked(upload) == (({}, {0: fault}) if fault else (those(0), {}))


BESIDE: dict[
    str, tuple[list[Any], list[Any], dict[int, str]]
] = {  # before, what hosts upload, who does not count and why
    "most are right": ([], [ones(2, 7), ones(2, 7), ones(1, 3)], {2: f"{WRONG}float64 (3,)"}),
    "a number of its own": ([], [ones(2, 3), ones(2, 3, kind=np.float32), ones(1, 3)], {1: f"{WRONG}float32 (3,)"}),
    "models are right": ([], [ones(2, 7), ones(2, 3)], {0: f"{WRONG}float64 (7,)"}),
    "a part is a model": ([], [ones(2, 7), (ones(2, 7), ones(2, 3))], {0: f"{WRONG}float64 (7,)"}),
    "as before": ([ones(2, 7)], [ones(2, 3), ones(2, 7)], {0: f"{WRONG}float64 (3,)"}),
    "most, whatever was before": ([ones(2, 7)], [ones(2, 7), ones(2, 3), ones(1, 3)], {0: f"{WRONG}float64 (7,)"}),
    "others together": ([], [ones(2, 7), ones(2, 7)], {}),
    "nothing": ([], [ones(2, 3), None, ones(1, 3)], {1: "it uploads nothing"}),
    "structure": ([], [One(ones(2, 3)), (ones(2, 3),), (ones(1, 3),)], {0: f"{WRONG}float64 (3,)"}),
}


@pytest.mark.parametrize("case", BESIDE)
def test_uploads_look_alike(case: str) -> None:
    before, uploads, faults = BESIDE[case]
    checked = Checked()
    for x in before:
        checked(x, x)
    assert checked(*uploads) == (those(*(h for h in range(len(uploads)) if h not in faults)), faults)


def test_silent_rounds_have_no_uploads_and_sums_stand_with_the_first_host() -> None:
    silent = {h: "it uploads in a round without communication" for h in (0, 1)}
    assert Checked()(None, None, communicate=False) == (those(0, 1), {})
    assert Checked()(ones(2, 3), ones(2, 3), communicate=False) == ({}, silent)
    assert Checked(sums=True)(ones(3), None, None) == (those(0, 1, 2), {})


def test_all_gradients_are_counted() -> None:
    assert Checked()(ones(2, 3), gradients=(1.0, 2.0)) == (those(0), {})
    assert Checked()(ones(2, 3), gradients=(1.0,)) == ({}, {0: "it counts the gradients of 1 clients, not of 2"})


@pytest.mark.parametrize("gradients", [None, (1.0, 2.0)])
def test_clients_whose_part_is_not_finite_are_left_out(gradients: Any) -> None:
    wrong, checked = np.array([[1.0, math.nan, 1.0], [1.0, 2.0, 3.0]]), Checked()
    assert checked(wrong, ones(2, 3), gradients=gradients) == (
        {0: (1,), 1: (2, 3)},
        {0: "the upload of client 0 is not finite"},
    )
    np.testing.assert_array_equal(checked.uploads[0].upload, wrong[1:])
    assert checked.uploads[0].gradients == (gradients and [2.0])
    assert checked(math.inf * ones(2, 3)) == (
        {0: ()},
        {0: "the upload of client 0, 1 is not finite"},
    )


def test_a_sum_that_is_not_finite_counts_for_nobody_who_is_in_it() -> None:
    said, infinite = "a sum with its upload is not finite", np.array([1.0, math.inf, 1.0])
    assert Checked(sums=True)(infinite, ones(3), ones(3)) == (those(1, 2), {0: said})
    assert Checked(sums=True)(infinite, None, None) == ({}, {0: said, 1: said, 2: said})


class Adding(Inline):
    """Hosts whose uploads are added on the way, as over MPI; in one round the sum is not finite."""

    def call(self, requests: Any) -> dict[int, Any]:
        found = super().call(requests)
        if all(answers and isinstance(answers[-1], protocol.Uploaded) for answers in found.values()):
            total = added([answers[-1].upload for answers in found.values()])
            total = total if found[0][-1].n != WHEN else np.full_like(total, math.inf)
            for h, (*others, last) in found.items():
                found[h] = [*others, last._replace(upload=None if h else total)]
        return found


def test_a_run_goes_on_after_a_sum_that_is_not_finite() -> None:
    f = problems()["quadratic"]
    method = resolve(FedDyn(solver=Exact()), f, Full())
    hosts = [Host(f.select(list(ids)), ids) for ids in ((0, 1, 2), (3, 4, 5))]
    found = run(method, RemoteClients(Adding(hosts, partial_sums=True)), rounds=8)
    absent = run(method, f, rounds=8, participation=without(set(range(6)), 8))
    np.testing.assert_allclose(found["energy"], absent["energy"], rtol=1e-12)
    assert [lost.partition(" did")[0] for lost in found.parameters["lost"]] == [
        f"round {WHEN}: host 0 (clients 0, 1, 2)",
        f"round {WHEN}: host 1 (clients 3, 4, 5)",
    ]


# --- sizes ----------------------------------------------------------------------------------------------------------


def explosions(*rounds: Sequence[Any]) -> list[str]:
    """Who has exploded, by rounds of uploads of hosts named a, b, ..."""
    seen = Explosions()
    for n, uploads in enumerate(rounds):
        seen.note(n, {"abc"[h]: protocol.Uploaded("run", n, x, None) for h, x in enumerate(uploads)})
    return [sentence.split(" uploaded")[0].removeprefix("in round ") for sentence in seen.sentences]


@pytest.mark.parametrize(
    ("rounds", "named"),
    [
        ([[1.0, 2.0], [1.0, EXPLODES * 3.0]], []),  # 1 more than the largest before, times as much
        ([[1.0, 2.0], [1.0, EXPLODES * 3.01]], ["1 b"]),
        ([[1.0, -2.0], [1.0, -EXPLODES * 3.01]], ["1 b"]),
        ([[0.0], [EXPLODES * 0.99]], []),
        ([[0.0], [EXPLODES * 1.01]], ["1 a"]),
        ([[1.0, EXPLODES * 2.01]], ["0 b"]),  # in the first round more than the least
        ([[2.0, EXPLODES * 2.01]], []),
        ([[EXPLODES], [1.0], [EXPLODES**2]], []),  # the largest of all rounds before
        ([[1.0], [None], [EXPLODES * 2.01]], ["2 a"]),
        ([[None], [5.0], [EXPLODES * 2.01]], []),
        ([[1.0], [math.inf], [math.nan], [EXPLODES * 2.01]], ["3 a"]),
    ],
)
def test_who_is_far_above_all_before_is_named(rounds: Any, named: list[str]) -> None:
    """The largest number of an upload that is finite, wherever it stands."""

    def uploads(x: Any) -> Any:
        return None if x is None else (np.zeros((2, 1)), np.array([[0.0, x], [0.0, 0.0]]))

    assert explosions(*([uploads(x) for x in of] for of in rounds)) == named


# --- means ----------------------------------------------------------------------------------------------------------

ROUND = replace(first_round(5), clients=(0, 1, 3), inclusion=(0.5, 0.25, 1.0, 0.5, 1.0))
ROWS = np.array([[3.0, 0.0], [6.0, 3.0], [9.0, 9.0]])


@pytest.mark.parametrize(
    ("hosts", "order"),
    [([[0, 1, 2]], None), ([[0, 1], [2]], None), ([[1], [2, 0]], [2, 0, 1]), ([[2, 0, 1]], [1, 2, 0])],
)
def test_rows_of_hosts_are_put_in_the_order_of_the_clients(hosts: Any, order: Any) -> None:
    parts = [protocol.Uploaded("run", 0, ROWS[own], tuple(ROWS[own][:, 0])) for own in hosts]
    order = None if order is None else np.array(order)
    rows, mean = from_rows(FedAvg(), parts, order, ROUND, None)
    np.testing.assert_array_equal(rows, ROWS)
    np.testing.assert_allclose(mean, [6.0, 4.0], rtol=1e-15)
    assert joined([part.gradients for part in parts], order) == (3.0, 6.0, 9.0)


def test_sums_of_hosts_are_divided_by_the_clients_or_their_weights() -> None:
    parts = [protocol.Uploaded("run", 0, x, None) for x in (ROWS[0], None, ROWS[1] + ROWS[2])]
    rows, mean = from_sums(FedAvg(), parts, ROUND, ())
    np.testing.assert_allclose(mean, [6.0, 4.0], rtol=1e-15)
    np.testing.assert_array_equal(rows, [[18.0, 12.0]])
    weights = [{0: 1.0, 1: 2.0, 2: 9.0, 3: 5.0}, {0: 2.0, 1: 8.0, 2: 9.0, 3: 10.0}]
    w = np.array([[1.0, 2.0, 5.0], [2.0, 8.0, 10.0]])
    parts = [protocol.Uploaded("run", 0, tuple(w[:, own] @ ROWS[own]), None) for own in ([0, 1], [2])]
    rows, means = from_sums(FedDyn(), parts, ROUND, weights)
    np.testing.assert_allclose(means, (w @ ROWS) / w.sum(axis=1, keepdims=True), rtol=1e-15)
    np.testing.assert_array_equal(rows, [[mean] for mean in means])
