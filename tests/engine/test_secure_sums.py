"""Secure sums: exact in the ring, hidden but for the sum, whole in spite of hosts that fall, and never misused."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dualopt.methods
from dualopt import Quadratic, certificate, run
from dualopt.arrays.tree import leaves
from dualopt.engine import Blocks, Inline, RefusedError, RemoteClients
from dualopt.engine import _protocol as protocol
from dualopt.engine.checkpoint import Checkpoint
from dualopt.engine.secure_sums import SecureBlocks, SecureHost, SecureSums, _masked, _messages, _ring, _shares
from dualopt.engine.secure_sums import _ciphers as ciphers
from dualopt.losses import Logistic
from dualopt.methods.participation import UniformSubset, WeightedSubset
from dualopt.spec.discover import discover
from tests.engine.problems import lopsided_quadratic, lopsided_rows, problems
from tests.engine.wired import elsewhere, sent

pytest.importorskip("cryptography")

NAMES = ("a", "b", "c", "d")
LARGEST = 1000.0
BITS = _ring.fraction_bits(LARGEST, len(NAMES))


# --- numbers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "largest"), [(3, 2.0**20), (4, 2.0), (8, 1e-7), (9, 3.0)])
def test_sums_are_exact_and_never_wrap(n: int, largest: float) -> None:
    """The decoded sum is that of the rounded numbers, also where all are as large as can be; larger are refused."""
    bits, rng = _ring.fraction_bits(largest, n), np.random.default_rng(n)
    rows = rng.uniform(-largest, largest, (n, 50)) * rng.choice([1.0, 1e-6, 1e-12], (n, 50))
    rows[:, 0], rows[:, 1] = largest, -largest
    total = sum((_ring.encoded(x, bits, largest) for x in rows), start=np.zeros(50, np.uint64))
    unit = Fraction(1, 2**bits)
    for words, column in zip(total.view(np.int64).tolist(), rows.T.tolist(), strict=True):
        rounded = [round(Fraction(x) / unit) for x in column]
        assert words == sum(rounded)
        assert abs(words * unit - sum(map(Fraction, column))) <= n * unit / 2
    up = sum((_ring.encoded(x, bits, largest, up=True) for x in rows), start=np.zeros(50, np.uint64))
    found = _ring.decoded(up, bits, up=True).tolist()
    assert all(Fraction(x) >= sum(map(Fraction, column)) for x, column in zip(found, rows.T.tolist(), strict=True))
    for wrong in (np.nextafter(largest, math.inf), -2 * largest, math.inf, math.nan):
        with pytest.raises(_ring.OutOfRangeError, match="range that was agreed"):
            _ring.encoded(np.array([0.0, wrong]), bits, largest)


def test_bounds_that_leave_no_bits_are_refused() -> None:
    assert (_ring.fraction_bits(2.0**60, 3), _ring.fraction_bits(2.0**62, 1), _ring.units_of(0)) == (0, 0, 1)
    with pytest.raises(ValueError, match=r"largest must be at most 2\^60 for 3 hosts"):
        _ring.fraction_bits(2.0**61, 3)
    for largest in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(ValueError, match="largest must be a positive finite number"):
            _ring.fraction_bits(largest, 3)


def test_shares_that_are_none_of_a_secret_are_refused() -> None:
    shares = _shares.split(bytes(32), 3, 2)
    assert len(shares) == 3
    beyond = [_shares._value([2**256, 7], x).to_bytes(_shares.SHARE, "little") for x in (1, 2)]
    above = _shares.PRIME.to_bytes(_shares.SHARE, "little")
    for first, second, words in (
        (*beyond, "not those of one secret"),
        (shares[0], above, "a share is damaged"),
        (shares[0], shares[1][:-1], "a share is damaged"),
    ):
        with pytest.raises(_shares.SharesError, match=words):
            _shares.combined({0: first, 1: second}, 2)
    for secret, threshold, words in (
        (bytes(31), 2, "secret must have 32 bytes"),
        (bytes(32), 0, "threshold must be between 1 and the 3 shares"),
        (bytes(32), 4, "threshold must be between 1 and the 3 shares"),
    ):
        with pytest.raises(ValueError, match=words):
            _shares.split(secret, 3, threshold)


@pytest.mark.parametrize("x", [b"key", np.array([1, 2, 3]), np.ones((1, 3), np.uint8), np.ones(4, np.uint8)], ids=repr)
def test_what_is_no_array_of_so_many_bytes_is_refused(x: Any) -> None:
    with pytest.raises(ValueError, match="have another form"):
        _messages.as_bytes(x, 3)


def test_shares_give_the_secret_from_the_threshold_on_and_nothing_below() -> None:
    secret, n, t = bytes(range(1, 33)), 5, 4
    shares = dict(enumerate(_shares.split(secret, n, t)))
    for some in combinations(shares, t):
        assert _shares.combined({k: shares[k] for k in some}, t) == secret
    few = {k: shares[k] for k in (0, 2, 4)}
    with pytest.raises(_shares.SharesError, match="there are 3 shares, and 4 are needed"):
        _shares.combined(few, t)
    # any other secret has as many polynomials through these: its share for one further host completes them
    points = [(k + 1, int.from_bytes(x, "little")) for k, x in few.items()]
    other = bytes(32 * [7])
    value = _shares._through([*points, (0, int.from_bytes(other, "little"))], 2)
    assert _shares.combined({**few, 1: value.to_bytes(_shares.SHARE, "little")}, t) == other
    damaged = shares | {1: bytes([shares[1][0] ^ 1]) + shares[1][1:]}
    with pytest.raises(_shares.SharesError, match="not those of one secret"):
        _shares.combined(damaged, t)


def test_numbers_of_python_and_of_libraries_are_added_alike(backend: Any) -> None:
    x = np.array([[0.5, -2.25], [3.0, 1e-9]])
    found, expected = (
        _masked.words_of(work(), protocol.Uploaded("run", 0, upload, (1.5,)), BITS, LARGEST)
        for upload in ((backend(x), 0.5, 3.0), (x, np.asarray(0.5), np.asarray(3.0)))
    )
    np.testing.assert_array_equal(found.flat, expected.flat)
    assert found.types == expected.types


# --- hosts of given numbers ---------------------------------------------------------------------------------------


class Given:
    """A host that uploads what it was given."""

    types: tuple[type, ...] = ()

    def __init__(self, upload: Any) -> None:
        self.upload = upload

    def answer(self, requests: Sequence[Any]) -> list[Any]:
        return [protocol.Uploaded(x.run, x.n, self.upload, (1.5,)) for x in requests]


def work(n: int = 0) -> protocol.Propose:
    return protocol.Propose("run", n, len(NAMES), 0, True, (0,), 0, None, True)


def uploads() -> dict[str, Any]:
    rng = np.random.default_rng(1)
    return {
        name: (rng.uniform(-LARGEST, LARGEST, (3, 2)), np.asarray(math.inf if name == "b" else rng.uniform()))
        for name in NAMES
    }


class Calls:
    """An engine whose hosts may be gone from some call on, or answer something else."""

    in_process = False

    def __init__(self, hosts: Mapping[str, Any], change: Callable[[int, str, list[Any]], Any] | None = None) -> None:
        self.objects, self.hosts = dict(hosts), list(hosts)
        self.change, self.calls, self.log = change, 0, []

    def call(self, requests: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
        self.calls += 1
        found = {}
        for h, batch in requests.items():
            try:
                answers = self.objects[h].answer(sent(tuple(batch)))
            except RefusedError as error:
                answers = protocol.Failed(str(error), error.final)
            answers = sent(tuple(answers)) if not isinstance(answers, protocol.Failed) else answers
            own: Any = list(answers) if not isinstance(answers, protocol.Failed) else answers
            self.log.append((h, batch, own))
            found[h] = own if self.change is None else self.change(self.calls, h, own)
        return {h: x for h, x in found.items() if x is not None}


def hosts_of(given: Mapping[str, Any], **options: Any) -> dict[str, SecureHost]:
    return {name: SecureHost(Given(x), name, NAMES, largest=LARGEST, **options) for name, x in given.items()}  # pyright: ignore


def engine_of(given: Mapping[str, Any], change: Any = None, **options: Any) -> SecureSums:
    engine = SecureSums(Calls(hosts_of(given, **options), change), largest=LARGEST)
    engine.tolerant = True
    return engine


def exact(given: Mapping[str, Any], names: Sequence[str]) -> np.ndarray:
    rounded = (np.rint(np.ldexp(given[name][0], BITS)).astype(np.int64) for name in names)
    return np.ldexp(sum(rounded, start=np.zeros((3, 2), np.int64)).astype(float), -BITS)


@pytest.mark.parametrize("call", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("fallen", [(), ("b",), ("d",), ("a", "c")])
def test_a_sum_is_that_of_those_who_added(call: int, fallen: tuple[str, ...]) -> None:
    """Calls: keys, shares, numbers, shares of secrets; then numbers of the next sum, for which shares were dealt."""
    given = uploads()
    engine = engine_of(given, lambda n, h, answers: None if n >= call and h in fallen else answers)
    for n in (0, 1):
        found = engine.call({name: [work(n)] for name in NAMES})
        first_sum = {1: call <= 3, 2: call <= 3, 3: call <= 3, 4: False, 5: False}[call]
        gone = set(fallen) if n == 1 or first_sum else set()
        if n == 1 and call == 5:
            gone = set(fallen)
        there = [name for name in NAMES if name not in gone]
        few = len(there) < 3 or (n == 0 and call == 4 and len(fallen) > 1)
        if few:
            assert all(isinstance(x, protocol.Failed) for x in found.values())
            continue
        assert [h for h, x in found.items() if isinstance(x, protocol.Failed)] == [x for x in NAMES if x in gone]
        (first,), *others = [found[name] for name in there]
        total, number = first.upload
        np.testing.assert_array_equal(total, exact(given, there))
        assert number == (math.inf if "b" in there else pytest.approx(sum(given[h][1] for h in there), abs=1e-9))
        assert first.gradients == (1.5,)
        assert all(x.upload is None for (x,) in others)


def test_a_sum_of_all_is_refused_as_soon_as_a_host_falls() -> None:
    """Here before it deals shares: nothing is added then."""
    engine = engine_of(uploads(), lambda n, h, answers: None if n == 2 and h == "d" else answers)
    engine.tolerant = False
    found = engine.call({name: [work()] for name in NAMES})
    sentence = "the sum could not be made without host d (no answer in time)"
    assert [x.reason for x in found.values()] == [*3 * [sentence], "no answer in time"]
    assert engine.calls == 2


def test_hosts_are_called_twice_for_a_sum_and_four_times_where_they_have_changed() -> None:
    engine, calls = engine_of(uploads(), lambda n, h, answers: None if n == 6 and h == "b" else answers), []
    for n in range(4):
        engine.call({name: [work(n)] for name in NAMES})
        calls.append(engine.calls)
    assert calls == [4, 6, 10, 12]  # in the sixth call b gave no shares for the third sum


def test_every_number_is_under_a_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a one-time pad in place of the stream, other numbers under a suitable pad give the same view."""
    given, pads = uploads(), {}
    other = {name: (np.zeros((3, 2)), np.asarray(0.25)) for name in NAMES}
    rng = np.random.default_rng(3)

    def pad(key: bytes, n: int) -> np.ndarray:
        return pads.setdefault(key, rng.integers(0, 2**64, n, dtype=np.uint64))

    monkeypatch.setattr(ciphers, "stream", pad)
    engine = engine_of(given)
    engine.call({name: [work()] for name in NAMES})
    ends = [(h, answers[-2]) for h, _, answers in engine.log if isinstance(answers[-2:][0], _messages.Added)]
    assert [h for h, _ in ends] == list(NAMES)
    for h, added in ends:
        seen = np.concatenate([added.flags, *(x.reshape(-1) for x in leaves(added.words))])
        words, instead = (
            _masked.words_of(work(), protocol.Uploaded("run", 0, x[h], (1.5,)), BITS, LARGEST).flat
            for x in (given, other)
        )
        mask = seen - words
        assert any((mask == sum(some, start=np.zeros_like(mask))).all() for some in _signed(pads.values(), mask))
        suitable = mask + words - instead  # as likely as the other one
        assert (instead + suitable == seen).all()
        assert len(np.unique(mask)) == mask.size
        assert added.types == ("float64", "float64")


def _signed(pads: Any, mask: np.ndarray) -> Any:
    """All sums of one pad for the host and one for each of three others, with their signs."""
    pads = list(pads)
    for own in range(len(pads)):
        rest = [x for k, x in enumerate(pads) if k != own]
        for some in combinations(rest, 3):
            for signs in np.ndindex(2, 2, 2):
                yield [pads[own], *(x if s else np.uint64(0) - x for x, s in zip(some, signs, strict=True))]


def refused(host: SecureHost, request: Any, words: str, code: str = "sum") -> None:
    with pytest.raises(RefusedError, match=words) as error:
        host.answer([request])
    assert error.value.code == code


def opened(names: Sequence[str] = NAMES, **options: Any) -> tuple[dict[str, SecureHost], Any, Any]:
    """Hosts that have dealt for the sum "s", their `Deal`, and the boxes for each."""
    hosts = hosts_of(uploads(), **options)
    keys = {name: hosts[name].answer([_messages.Advertise("s")])[0] for name in names}
    deal = _messages.Deal("s", tuple(names), tuple(keys.values()))
    dealt = {name: hosts[name].answer([deal])[0] for name in names}
    boxes = {name: tuple(dealt[v].boxes[k] for v in names) for k, name in enumerate(names)}
    return hosts, deal, boxes


def test_what_would_show_single_numbers_is_refused() -> None:
    hosts, deal, boxes = opened()
    a = hosts["a"]
    for alone in (
        work(),
        protocol.Value("run", 0, np.zeros(2)),
        protocol.Evaluate("run", 0, np.zeros(2), True, True),
        protocol.States("run", 0),
    ):
        refused(a, alone, "for sums alone")
    refused(a, _messages.Add("s", boxes["a"], work()._replace(partial_sums=False)), "for sums alone")
    refused(a, _messages.Add("s", boxes["a"], protocol.Value("run", 0, np.zeros(2))), "uploads and certificates alone")
    refused(a, _messages.Reveal("s", NAMES), "has not added")
    refused(a, _messages.Add("t", boxes["a"], work()), "no keys for this sum")
    refused(a, deal._replace(cohort=NAMES[:3], keys=deal.keys[:3]), "cohort of a sum was changed")
    a.answer([_messages.Advertise("t")])
    mine = deal._replace(name="t", keys=tuple(k._replace(name="t") for k in deal.keys))
    refused(a, mine._replace(cohort=("a", "b"), keys=mine.keys[:2]), "fewer than 3 hosts")
    refused(a, mine._replace(cohort=("a", "b", "b", "c")), "not one of the hosts")
    refused(a, mine._replace(cohort=("a", "b", "c", "eve")), "not one of the hosts")
    refused(a, mine._replace(cohort=("b", "c", "d"), keys=mine.keys[1:]), "not one of the hosts")
    refused(a, mine, "its own keys were changed")
    refused(a, deal._replace(name="t"), "keys are of another sum")
    damaged = list(boxes["a"])
    damaged[2] = damaged[2] ^ np.uint8(1)
    refused(a, _messages.Add("s", tuple(damaged), work()), "shares of c are damaged", "keys")
    refused(a, _messages.Add("s", (boxes["a"][0], boxes["a"][2], *boxes["a"][2:]), work()), "shares of b", "keys")
    for wrong in (boxes["a"][:-1], list(boxes["a"]), None):
        refused(a, _messages.Add("s", wrong, work()), "shares are missing")

    (added,) = a.answer([_messages.Add("s", boxes["a"], work())])
    assert a.answer([_messages.Add("s", boxes["a"], work())]) == [added]  # sent again: the same masked numbers
    refused(a, _messages.Add("s", boxes["a"], work(1)), "masks of a sum are used")
    refused(a, _messages.Advertise("s"), "keys for this sum are used")
    refused(a, _messages.Reveal("s", ("a", "b")), "than the threshold")
    refused(a, _messages.Reveal("s", ("b", "c", "d")), "not among them")
    (first,) = a.answer([_messages.Reveal("s", ("a", "b", "c"))])
    assert a.answer([_messages.Reveal("s", ("a", "b", "c"))]) == [first]
    refused(a, _messages.Reveal("s", NAMES), "another set of hosts")


class Certified(Given):
    """A host that answers sums for a certificate."""

    def answer(self, requests: Sequence[Any]) -> list[Any]:
        return [protocol.PartialSums(np.ones(5), np.ones(2), None) for _ in requests]


def test_sums_for_certificates_are_of_all_hosts_or_of_none() -> None:
    evaluate = protocol.Evaluate("run", 0, np.zeros(2), False, True)
    hosts, _, boxes = opened(NAMES[:3])
    refused(hosts["a"], _messages.Add("s", boxes["a"], evaluate), "not one of all hosts")
    hosts, _, boxes = opened()
    hosts["a"].host = Certified(None)  # pyright: ignore[reportAttributeAccessIssue]
    hosts["a"].answer([_messages.Add("s", boxes["a"], evaluate)])
    refused(hosts["a"], _messages.Reveal("s", NAMES[:3]), "not one of all hosts")
    (answer,) = hosts["a"].answer([_messages.Reveal("s", NAMES)])
    assert type(answer) is _messages.Revealed


def test_a_number_beyond_the_range_is_refused_in_words_that_hide_it() -> None:
    given = uploads() | {"c": (np.full((3, 2), 4711.0), np.asarray(0.0))}
    engine = engine_of(given)
    found = engine.call({name: [work()] for name in NAMES})
    assert found["c"].final
    assert "beyond the range" in found["c"].reason
    assert "4711" not in found["c"].reason
    np.testing.assert_array_equal(found["a"][0].upload[0], exact(given, ("a", "b", "d")))


def test_a_late_upload_stays_hidden() -> None:
    """The private key for masks of a host that was thought gone is known then; its own mask is not, and stays on."""
    given, late = uploads(), {}

    def change(n: int, h: str, answers: list[Any]) -> Any:
        if n == 3 and h == "d":
            late["d"] = answers[-2]
            return None
        return answers

    engine = engine_of(given, change)
    found = engine.call({name: [work()] for name in NAMES})
    np.testing.assert_array_equal(found["a"][0].upload[0], exact(given, NAMES[:3]))
    deal = next(batch[0] for _, batch, _ in engine.log if isinstance(batch[0], _messages.Deal))
    shares = {
        NAMES.index(h): x[0].shares[3].tobytes() for h, _, x in engine.log if isinstance(x[0], _messages.Revealed)
    }
    private = _shares.combined(shares, 3)
    assert ciphers.public_key(private) == deal.keys[3].masks.tobytes()  # these are shares of the key, not of the seed
    seen = np.concatenate([late["d"].flags, *(x.reshape(-1) for x in leaves(late["d"].words))])
    for keys, name in zip(deal.keys[:3], NAMES[:3], strict=True):
        common = ciphers.common_secret(private, keys.masks.tobytes())
        seen = seen + ciphers.stream(ciphers.derived(common, deal.name, "mask", name, "d"), seen.size)
    answer = protocol.Uploaded("run", 0, given["d"], (1.5,))
    rest = seen - _masked.words_of(work(), answer, BITS, LARGEST).flat
    assert np.count_nonzero(rest) == rest.size
    for name in NAMES[:3]:  # nobody gives a share of its seed any more
        refused(engine.objects[name], _messages.Reveal(deal.name, NAMES), "another set of hosts")


@pytest.mark.parametrize("part", ["share", "commitment", "key", "words"])
def test_what_was_tampered_with_is_no_sum(part: str) -> None:
    def change(n: int, h: str, answers: list[Any]) -> Any:
        one = answers[0]
        if h != "b":
            return answers
        if part == "share" and isinstance(one, _messages.Revealed):
            return [one._replace(shares=(one.shares[0] ^ np.uint8(1), *one.shares[1:])), *answers[1:]]
        if part == "commitment" and isinstance(one, _messages.Dealt):
            return [one._replace(commitment=one.commitment ^ np.uint8(1))]
        if part == "key" and isinstance(one, _messages.PublicKeys):
            return [one._replace(masks=one.masks ^ np.uint8(4))]
        if part == "words" and isinstance(one, _messages.Added):
            return [one._replace(words=(one.words[0][:2], one.words[1])), *answers[1:]]
        return answers

    found = engine_of(uploads(), change).call({name: [work()] for name in NAMES})
    if part == "key":  # the host whose keys were changed does not deal
        assert "keys were changed" in found["b"].reason
        np.testing.assert_array_equal(found["a"][0].upload[0], exact(uploads(), ("a", "c", "d")))
        return
    assert all(isinstance(x, protocol.Failed) for x in found.values())
    words = "different shapes" if part == "words" else "shares of host [ab] are wrong"
    assert re.search(words, found["a"].reason)


def test_signed_keys_of_another_are_refused() -> None:
    class Signs:
        def __init__(self, name: str) -> None:
            self.name = name

        def sign(self, data: bytes) -> bytes:
            return self.name.encode() + data[:9]

        def holds(self, host: str, data: bytes, signature: bytes) -> bool:
            return signature == host.encode() + data[:9]

    hosts = {
        name: SecureHost(Given(x), name, NAMES, largest=LARGEST, identity=Signs(name))  # pyright: ignore
        for name, x in uploads().items()
    }
    keys = [hosts[name].answer([_messages.Advertise("s")])[0] for name in NAMES]
    keys[2] = keys[3]
    with pytest.raises(RefusedError, match="do not carry its signature"):
        hosts["a"].answer([_messages.Deal("s", NAMES, tuple(keys))])


def test_a_round_is_in_sums_of_the_same_hosts_alone(tmp_path: Path) -> None:
    """Also after its process has ended: else the difference of two sums would be the upload of one host."""

    def once(names: Sequence[str], added: Sequence[str], file: Path | None, run: str = "run") -> None:
        hosts = hosts_of(uploads())
        a = hosts["a"] = SecureHost(Given(uploads()["a"]), "a", NAMES, largest=LARGEST, file=file)  # pyright: ignore
        keys = {name: hosts[name].answer([_messages.Advertise("t")])[0] for name in names}
        deal = _messages.Deal("t", tuple(names), tuple(keys.values()))
        boxes = tuple(hosts[name].answer([deal])[0].boxes[0] for name in names)
        a.answer([_messages.Add("t", boxes, work(5)._replace(run=run))])
        a.answer([_messages.Reveal("t", tuple(added))])

    file = tmp_path / "sums.json"
    once(NAMES, NAMES[:3], file)
    for names, added in ((NAMES, NAMES), (("a", "b", "d"), ("a", "b", "d")), (NAMES[:3], ("a", "b"))):
        with pytest.raises(RefusedError, match="in a sum of other hosts"):
            once(names, added, file, "another")
    with file.open("a") as cut:
        cut.write("6 a b")  # by a process that was killed
    once(NAMES[:3], NAMES[:3], file)
    assert file.read_text() == "5 a b c\n"
    once(NAMES, NAMES, None)  # who has forgotten it would have added


# --- runs ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", discover(dualopt.methods))
def test_every_method_runs_over_secure_sums(name: str) -> None:
    """Models and certificates are those of plain sums, but for the rounding; what travels is counted as 64 bits."""
    f, method = problems()["quadratic"], discover(dualopt.methods)[name]()
    if "regulariser" in method.supports and "unequal" in method.supports:
        f = replace(f, weights=(1.0, 5.0, 0.3, 2.0, 1.2, 0.7))
    options: dict[str, Any] = {"rounds": 2, "certify_every": 2, "check_assumptions": False}
    plain = run(method, f, engine=Blocks(number=3, partial_sums=True), **options)
    found = run(method, f, engine=SecureBlocks(number=3), **options)
    np.testing.assert_allclose(found.theta, plain.theta, rtol=1e-8, atol=1e-8)
    assert found.last["energy"] == pytest.approx(plain.last["energy"], rel=1e-9)
    assert found.last["certificate"] == pytest.approx(plain.last["certificate"], rel=1e-4, abs=1e-9)
    for column in ("gradients", "floats_up", "floats_down"):
        assert found[column].tolist() == plain[column].tolist()
    assert found["bits_up"].tolist() == [64 * n for n in found["floats_up"].tolist()]


@pytest.mark.parametrize("n", [1, 4, 30])
def test_rounding_is_in_the_bounds_that_certificates_take(n: int) -> None:
    """In exact arithmetic, where all numbers of all hosts are rounded by nearly half a unit, and to the same side."""
    hosts, bits, largest = 5, 10, 2.0**40
    unit, rng = 2.0**-bits, np.random.default_rng(n)
    for side in (-0.4999, 0.4999):
        rows = [
            protocol.PartialSums(
                np.array([rng.integers(-9, 9) + side * unit, *rng.uniform(0.0, 9.0, 8)]),
                *(rng.integers(-9, 9, n) + side * unit for _ in range(2)),
            )
            for _ in range(hosts)
        ]
        asked = protocol.Evaluate("run", 0, np.zeros(n), True, True)
        words = [_masked.words_of(asked, row, bits, largest) for row in rows]
        total = words[0].filled(sum((x.flat for x in words[1:]), start=words[0].flat))
        found, *others = _masked.answers_of_sum([asked] * hosts, total, bits, [1] * hosts, None)
        assert not any(leaf.any() for x in others for leaf in leaves(x))
        exact = [sum(Fraction(float(row.columns[k])) for row in rows) for k in range(9)]
        columns = [Fraction(x) for x in found.columns.tolist()]
        assert all(a >= b for a, b in zip(columns[1:], exact[1:], strict=True))
        moved = [abs(columns[0] - exact[0])]
        for name in ("gradient", "dual"):
            numbers = zip(getattr(found, name).tolist(), *(getattr(row, name).tolist() for row in rows), strict=True)
            moved.append(sum(((Fraction(x) - sum(map(Fraction, own))) ** 2 for x, *own in numbers), start=Fraction(0)))
        value, slope, dual = (columns[k] - exact[k] for k in (2, 3, 8))
        assert value < 2 * hosts * unit  # one for the value, and what the error itself is rounded up by
        assert max(slope, dual) < (_ring.units_of(n) + 1) * hosts * unit
        assert moved[0] <= value
        assert moved[1] <= slope**2
        assert moved[2] <= dual**2


def test_a_certificate_from_coarse_sums_is_never_below_the_truth() -> None:
    """Sums are multiples of 2^-9, and the models are as near to the solution."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        A, weights = np.stack([np.diag(rng.uniform(0.5, 40.0, 4)) for _ in range(6)]), tuple(rng.uniform(0.2, 3, 6))
        f = Quadratic(A=A, b=rng.standard_normal((6, 4)), c=rng.uniform(2, 3, 6), weights=weights)
        best = f.minimiser()
        least = float(f.mean(f.value(best)))
        clients: Any = SecureBlocks(number=3, largest=2.0**51).clients(f)
        trace = run("fedsplit", clients, rounds=int(rng.integers(1, 12)), certify_every=1000)
        near = best + 1e-4 * rng.standard_normal(4)
        ends = [
            (near, certificate(clients, near)[:2]),
            (trace.theta, (trace.last["energy"], trace.last["certificate"])),
        ]
        for theta, (energy, gap) in ends:
            assert gap >= float(f.mean(f.value(theta))) - least
            assert energy - gap <= least


def test_infinite_conjugates_count_and_energies_beyond_the_range_are_refused() -> None:
    f = problems()["smooth"]
    clients: Any = SecureBlocks(number=5).clients(f)
    assert certificate(clients, np.zeros(f.shape)).kind == "gradient"  # no host has dual points
    trace = run("dualfl", clients, rounds=3)
    plain = run("dualfl", f, rounds=3, engine=Blocks(number=5))
    assert trace.last["certificate"] == pytest.approx(plain.last["certificate"], rel=1e-6)
    with pytest.raises(ValueError, match="beyond the range that was agreed for sums"):
        certificate(clients, np.full(f.shape, 1e9))
    with pytest.raises(ValueError, match="values of single hosts are not known"):
        clients.value(np.zeros(f.shape))


class Falling(SecureSums):
    """Hosts in this process, one of which is silent in some calls."""

    def __init__(self, f: Any, silent: Callable[[int, int], bool]) -> None:
        names = [str(k) for k in range(f.n_clients)]
        hosts: Any = [SecureHost(h, n, names) for h, n in zip(Blocks(number=f.n_clients).hosts(f), names, strict=True)]
        inner, self.number = Inline(hosts, in_process=False), 0
        super().__init__(inner)
        ask = inner.call

        def call(requests: Mapping[Any, Sequence[Any]]) -> dict[Any, Any]:
            self.number += any(isinstance(x, _messages.Add) for batch in requests.values() for x in batch)
            adds = any(isinstance(x, _messages.Add) for batch in requests.values() for x in batch)
            return {h: x for h, x in ask(requests).items() if not (adds and silent(self.number, h))}

        inner.call = call  # pyright: ignore


def test_a_host_that_falls_after_it_has_dealt_is_left_out_and_comes_back() -> None:
    """FedDyn goes on as if it had been absent; DualFL, which needs all, says who fell."""
    f = lopsided_quadratic()
    options: dict[str, Any] = {"rounds": 9, "certify_every": 1000}
    fallen = Falling(f, lambda n, h: h == 2 and n in (4, 5, 9))
    trace = run("feddyn", RemoteClients(fallen), **options)
    lost = [f"round {n}: host 2 (clients 2)" for n in (2, 3, 7)]
    assert [x.partition(" did")[0] for x in trace.parameters["lost"]] == lost

    def trouble(call: int, h: int, batch: Any, answers: Any) -> Any:
        return None if h == 2 and getattr(batch[-1], "n", 0) in (2, 3, 7) and "Propose" in str(batch[-1]) else answers

    plain = run("feddyn", elsewhere(f, [[j] for j in range(6)], trouble, partial_sums=True), **options)
    assert [x.partition(" did")[0] for x in plain.parameters["lost"]] == lost
    np.testing.assert_allclose(trace.theta, plain.theta, rtol=1e-9, atol=1e-9)
    whole = run("feddyn", f, **options)
    assert np.abs(whole.theta - plain.theta).max() > 1e-4
    with pytest.raises(ValueError, match=r"DualFL needs every client, and host . did not count in round 2"):
        run("dualfl", RemoteClients(Falling(f, lambda n, h: h == 2 and n == 4)), **options)


def test_with_too_few_hosts_a_round_is_one_without_anybody() -> None:
    f = lopsided_quadratic()
    trace = run("feddyn", RemoteClients(Falling(f, lambda n, h: h > 2 and n == 4)), rounds=5, certify_every=1000)
    assert len(trace.parameters["lost"]) == 6
    sentence = "the sum needs 4 hosts, and could not be made without host 3 (no answer in time), host 4 (no answer"
    assert sentence in trace.parameters["lost"][0]
    who = UniformSubset(size=2)
    pair = run("feddyn", f, rounds=2, participation=who, engine=SecureBlocks(number=6), certify_every=1000)
    assert "sums are of at least 3 hosts, and 2 would be added" in pair.parameters["lost"][0]
    assert pair.theta.tolist() == np.zeros(4).tolist()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"number": 2}, "number must be at least 3, the fewest hosts of a secure sum, not 2"),
        ({"number": 3.5}, "number must be a whole number, not 3.5"),
        ({"number": 3, "largest": 0.0}, "largest must be"),
    ],
)
def test_blocks_that_cannot_be_are_refused(wrong: dict, said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=f"^{said}"):
        SecureBlocks(**wrong)


def test_masked_numbers_are_of_64_bits_whatever_those_of_the_clients_are() -> None:
    f = lopsided_rows(Logistic(), 0.03, np.float32)
    masked, plain = (run("feddyn", f, rounds=2, engine=engine) for engine in ("secure-blocks=3", "blocks=3"))
    assert masked["floats_up"].tolist() == plain["floats_up"].tolist()
    assert masked["bits_up"].tolist() == (64 * masked["floats_up"]).tolist()
    assert plain["bits_up"].tolist() == (32 * plain["floats_up"]).tolist()


def test_options_that_sums_cannot_have_say_why() -> None:
    f = problems()["quadratic"]
    with pytest.raises(ValueError, match="compressor must not be given with secure sums: a masked number has 64 bits"):
        run("fedsplit", f, rounds=2, engine=SecureBlocks(number=3), compressor="natural")
    with pytest.raises(ValueError, match="prepare must not be given"):
        run("fedsplit", f, rounds=2, engine=SecureBlocks(number=3), prepare="one-shot")
    with pytest.raises(ValueError, match="checkpoint must not be given with secure-blocks, whose states are not kept"):
        run("fedsplit", f, rounds=2, engine="secure-blocks=3", checkpoint=Checkpoint("run.journal"))
    with pytest.raises(ValueError, match=r"engine must not be MPI\(\) for secure sums: processes of one program hide"):
        SecureSums(SimpleNamespace(hosts=(0, 1, 2), run_everywhere=None))
    trace = run("feddyn", f, rounds=3, engine="secure-blocks=3", participation=WeightedSubset(size=5))
    assert trace.parameters["reduce"] == "secure sums"
