"""Sites whose numbers meet in sums alone, in one process: the digits, what is seen, who falls, who forges."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dualopt.engine import _protocol as protocol
from dualopt.engine import wire
from dualopt.engine.secure_sums import _messages as sums
from dualopt.federation import Project
from dualopt.federation.identity import KitIdentity
from dualopt.federation.seal import MARK, Seal
from tests.federation.problems import SITES, in_one_process, project_of, write_certificates
from tests.federation.test_in_memory import KEYS, Memory, answered, memory

pytest.importorskip("cryptography")

METHODS: dict[str, dict[str, Any]] = {"dualfl": {}, "feddyn": {"participation": "full"}, "scaffnew": {}}


def secure(algorithm: str = "dualfl", **changes: Any) -> Project:
    return project_of(algorithm, **({"secure": "sum", "rounds": 10} | METHODS[algorithm] | changes))


@contextmanager
def federation(folder: Path, project: Project) -> Iterator[Memory]:
    with memory(folder, project) as m:
        write_certificates(folder)
        yield m


@pytest.mark.parametrize("algorithm", METHODS)
def test_the_digits_are_those_of_plain_sums(tmp_path: Path, algorithm: str) -> None:
    project = secure(algorithm, certify_every=5)
    plain = in_one_process(project)
    with federation(tmp_path, project) as m:
        outcome = m.serve()
        assert outcome["refused"] is None
        assert outcome["lost"] == []
        trace = m.trace
    assert trace.parameters["reduce"] == "secure sums"
    assert np.abs(trace.theta - plain.theta).max() < 1e-10
    np.testing.assert_allclose(trace["energy"], plain["energy"], rtol=1e-10)
    np.testing.assert_allclose(trace["certificate"], plain["certificate"], rtol=1e-6, atol=1e-10)
    for name in ("gradients", "floats_up"):
        np.testing.assert_allclose(trace[name], plain[name], rtol=1e-12)


def test_a_server_sees_no_number_of_a_site(tmp_path: Path) -> None:
    """What is no key, box, share or masked number are constants of the start; masked numbers are new in each sum."""
    with federation(tmp_path, project := secure(rounds=6)) as m:
        seen: list[Any] = []
        ask_site = m.ask

        def listening(site: str, data: bytes, seconds: float) -> bytes:
            answer = ask_site(site, data, seconds)
            seen.extend(wire.decode_answers(answer[MARK:], wire.decode_requests(data[MARK:])))
            return answer

        m.ask = listening  # pyright: ignore[reportAttributeAccessIssue]
        assert m.serve()["refused"] is None
    kinds = {type(x) for x in seen}
    assert {
        protocol.Uploaded,
        protocol.Evaluated,
        protocol.PartialSums,
        protocol.Valued,
        protocol.StatesFound,
    } & kinds == set()
    added = [x for x in seen if isinstance(x, sums.Added)]
    assert len(added) == 3 * (project.rounds + project.rounds + 1)  # an upload and a certificate each, and at the start
    words = np.concatenate([x.flags for x in added])
    assert len(np.unique(words)) == words.size


def fall(m: Memory, falls: dict[tuple[str, int], Any]) -> None:
    """Have sites fall where they are asked to add for the n-th time."""
    ask_site, adds = m.ask, dict.fromkeys(SITES, 0)

    def asked(site: str, data: bytes, seconds: float) -> bytes:
        adds[site] += any(isinstance(x, sums.Add) for x in wire.decode_requests(data[MARK:]))
        if (how := falls.pop((site, adds[site]), None)) is not None:
            how(site, data)
        return ask_site(site, data, seconds)

    m.ask = asked  # pyright: ignore[reportAttributeAccessIssue]


def killed(m: Memory, *, late: bool = False) -> Any:
    """The process dies before it has worked, or after that; its next one is asked the same."""

    def how(site: str, data: bytes) -> None:
        if late:
            m.sites[site](data)
        m.restart(site)

    return how


def test_a_site_killed_in_the_middle_is_left_out_and_comes_back(tmp_path: Path) -> None:
    """The sum is that of the two others. Its new process has none of the keys, and deals anew for the next round."""
    project = secure("feddyn", rounds=30, certify_every=1000)
    with federation(tmp_path, project) as m:
        fall(m, {("basel", 8): killed(m), ("lyon", 12): killed(m, late=True)})
        outcome = m.serve()
        assert outcome["refused"] is None
        assert [x.partition(" (")[0] for x in outcome["lost"]] == ["round 6: host basel", "round 10: host lyon"]
        exact = in_one_process(replace(project, secure="none", rounds=400)).theta
        assert np.abs(m.trace.theta - exact).max() < 1e-6


def test_dualfl_goes_on_after_a_kill_with_the_digits_of_an_unbroken_run(tmp_path: Path) -> None:
    """It needs all sites: the run stops, and the same command goes on from the checkpoint."""
    project, ends = secure(certify_every=5), []
    for name, falls in (("whole", {}), ("fallen", {("bern", 4): killed})):
        (tmp_path / name).mkdir()
        with federation(tmp_path / name, project) as m:
            fall(m, {key: how(m) for key, how in falls.items()})
            if falls:
                assert "DualFL needs every client, and host" in m.serve()["refused"]
                for site in SITES:
                    m.restart(site)
            assert m.serve()["refused"] is None
            ends.append(m.trace.theta)
    whole, fallen = ends
    assert np.array_equal(whole, fallen)


def test_keys_that_a_server_puts_in_their_place_are_refused(tmp_path: Path) -> None:
    """Its own, signed with a certificate of another root, or with that of another site."""
    with federation(tmp_path, secure()) as m:
        write_certificates(tmp_path / "other")
        eve = KitIdentity(tmp_path / "other" / "basel")
        lyon, basel = KitIdentity(tmp_path / "lyon"), KitIdentity(tmp_path / "basel")
        data = b"keys"
        assert lyon.holds("basel", data, basel.sign(data))
        for host, signature, said in (
            ("basel", eve.sign(data), data),
            ("bern", basel.sign(data), data),
            ("basel", basel.sign(data), b"other"),
            ("basel", b"", data),
            ("basel", bytes(300), data),
        ):
            assert not lyon.holds(host, said, signature)

        def forged(site: str, sealed: bytes) -> bytes:
            requests = wire.decode_requests(sealed[MARK:])
            for k, x in enumerate(requests):
                if isinstance(x, sums.Deal):
                    its = x.keys[SITES.index("basel")]
                    other = its._replace(masks=its.masks ^ np.uint8(1))
                    requests[k] = x._replace(keys=tuple(other if key is its else key for key in x.keys))
            resealed = Seal(KEYS[site]).request(wire.encode(requests))
            answer = m.sites[site](resealed)
            return Seal(KEYS[site]).answer(sealed, answer[MARK:])

        m.faults = {("lyon", n): forged for n in range(1, 9)}
        assert "keys or shares that are said to be of another site are not (keys)" in m.serve()["refused"]


def test_single_numbers_are_refused_and_too_large_ones_too(tmp_path: Path) -> None:
    with federation(tmp_path, project := secure()) as m:
        for request in (
            protocol.Value("x", 0, np.zeros(21)),
            protocol.Evaluate("x", 0, np.zeros(21), False, True),
            protocol.Propose("x", 0, 3, project.seed, True, None, 0, None, True),
        ):
            assert answered(m.sites["lyon"], wire.encode([request])) == protocol.Failed("sum", True)
        asked = sums.Add("s", (), protocol.Evaluate("x", 500, np.zeros(21), False, True))
        assert answered(m.sites["lyon"], wire.encode([asked])) == protocol.Failed("asked", True)
    (tmp_path / "small").mkdir()
    with federation(tmp_path / "small", secure(secure_range=0.5)) as m:
        assert "a number of it is beyond the range that its project has" in m.serve()["refused"]
    (tmp_path / "none").mkdir()
    with memory(tmp_path / "none", project_of()) as m:
        request = wire.encode([sums.Advertise("s")])
        assert answered(m.sites["lyon"], request) == protocol.Failed("asked", True)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"secure": "sums"}, "secure must be none or sum"),
        ({"secure_range": 0.0}, "secure_range must be a positive number, at most 2\\^40"),
        ({"compressor": "natural"}, "compressor must be identity with secure sums: a masked number has 64 bits"),
        ({"participation": "subset=2"}, "participation must be of at least 3 sites with secure sums"),
        ({"sites": ("lyon", "basel")}, "sites must be at least 3 for secure sums"),
    ],
)
def test_a_project_that_cannot_be_says_why(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        replace(secure("feddyn"), **changes)
