"""What travels: what is written comes back, and bytes that nobody wrote give one sentence."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualopt.arrays import codec
from dualopt.arrays.codec import CodecError
from dualopt.engine import _protocol as protocol
from dualopt.engine import wire
from dualopt.methods.dualfl import Message

WORK = protocol.Propose("run", 3, 4, 0, True, (1, 2), 3, Message(np.arange(6.0).reshape(2, 3), 0.25))
REQUESTS = [protocol.Describe(), WORK, protocol.Commit("run", 3, True, None, 4, np.ones(5, np.float32))]
SENT = wire.encode(REQUESTS)
VALUE = ".engine._protocol:Value"
HOSTILE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from([*"adntf", ".engine._protocol:Commit"]), inner, max_size=3)
    ),
    max_leaves=12,
)


def same(x: Any, y: Any) -> bool:
    """Tell whether two trees are equal, arrays to the last bit and with the same order of axes in memory."""
    if isinstance(x, np.ndarray | np.generic):
        alike = type(x) is type(y) and x.dtype == y.dtype and x.shape == y.shape
        return alike and x.tobytes() == y.tobytes() and lying(x) == lying(y)
    if isinstance(x, tuple | list):
        return type(x) is type(y) and len(x) == len(y) and all(map(same, x, y))
    return type(x) is type(y) and (x == y or x != x)


def lying(x: Any) -> list[int]:
    """The axes as they lie in memory."""
    return sorted(range(x.ndim), key=lambda k: (-x.strides[k] if x.shape[k] > 1 else 0, k))


def message(header: Any, body: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return codec.MAGIC + len(text).to_bytes(4, "little") + text + body


@pytest.mark.parametrize(
    "tree",
    [
        None,
        (),
        (1, (2.5, None), "text", True, -(2**62)),
        (float("inf"), float("-inf"), 0.1 + 0.2),
        np.float64(0.1),
        np.zeros((0, 3)),
        np.asfortranarray(np.arange(12.0).reshape(3, 4)),
        np.arange(24.0).reshape(2, 3, 4).transpose(1, 2, 0),
        np.array([True, False]),
        np.arange(3, dtype=np.int32),
        Message(np.ones(2), 0.5),
        (0.5, -1.25),
        tuple(range(100)),
        (2**100, *range(100)),
        np.float32(0.5),
    ],
    ids=repr,
)
def test_what_is_written_comes_back(tree: Any) -> None:
    (found,) = wire.decode_requests(wire.encode([protocol.Commit("run", 0, True, None, 1, tree)]))
    assert same(found.message, tree)


def test_arrays_with_gaps_or_repetitions_travel_as_dense_ones() -> None:
    """What lies between the numbers stays here."""
    whole = np.arange(12.0).reshape(3, 4)
    for x in (whole[:, 1], whole[:, :2], whole[::-1], np.broadcast_to(whole[0], (3, 4)), whole.T[1:3]):
        (found,) = wire.decode_requests(data := wire.encode([protocol.Value("run", 0, x)]))
        assert found.theta.tolist() == x.tolist()
        assert wire.payload(data) == 8 * x.size


def test_nan_comes_back() -> None:
    (found,) = wire.decode_requests(wire.encode([protocol.Commit("run", 0, True, None, 1, float("nan"))]))
    assert np.isnan(found.message)


def test_arrays_are_aligned_and_of_their_own() -> None:
    found = wire.decode_requests(SENT)[1].message.theta
    assert found.flags.aligned
    assert found.flags.writeable
    assert found.flags.owndata or found.base.flags.owndata


def test_big_endian_arrays_travel_as_little_endian() -> None:
    (found,) = wire.decode_requests(wire.encode([protocol.Value("run", 0, np.arange(3.0).astype(">f8"))]))
    assert found.theta.tolist() == [0.0, 1.0, 2.0]
    assert found.theta.dtype.str == "<f8"


def test_the_overhead_is_what_it_is_said_to_be() -> None:
    assert wire.payload(SENT) == 8 * 6 + 4 * 5
    assert len(SENT) - wire.payload(SENT) <= len(REQUESTS) * wire.OVERHEAD


def test_a_class_from_elsewhere_is_not_sent() -> None:
    from collections import namedtuple

    other = namedtuple("Server", "theta")
    with pytest.raises(TypeError, match="cannot be sent: it is not of this package"):
        wire.encode([protocol.Commit("run", 0, True, None, 1, other(np.ones(2)))])
    with pytest.raises(TypeError, match="a list cannot be written"):
        wire.encode([protocol.Commit("run", 0, True, None, 1, [1.0])])
    with pytest.raises(TypeError, match="type complex128 cannot be written"):
        wire.encode([protocol.Value("run", 0, np.ones(2, complex))])
    with pytest.raises(TypeError, match="type object cannot be written"):
        wire.encode([protocol.Value("run", 0, np.array([{}]))])


@given(cut=st.integers(0, len(SENT) - 1))
def test_truncated_bytes_give_one_sentence(cut: int) -> None:
    with pytest.raises(CodecError, match=r"^message [^\n]*\.$"):
        wire.decode_requests(SENT[:cut])


@given(place=st.integers(0, len(SENT) - wire.payload(SENT) - 1), value=st.integers(0, 255))
def test_flipped_bytes_of_the_header_give_requests_or_one_sentence(place: int, value: int) -> None:
    flipped, complaint = SENT[:place] + bytes([value]) + SENT[place + 1 :], "message fits."
    try:
        found = wire.decode_requests(flipped)
    except CodecError as error:
        found, complaint = [], str(error)
    assert all(type(part) in protocol.ANSWERS for part in found)
    assert re.fullmatch(r"message [^\n]*\.", complaint)


@given(data=st.binary(max_size=200))
def test_any_bytes_give_one_sentence(data: bytes) -> None:
    with pytest.raises(CodecError, match=r"^message [^\n]*\.$"):
        wire.decode_requests(codec.MAGIC + data if len(data) % 2 else data)


@given(
    tree=st.lists(HOSTILE, min_size=1, max_size=3), layout=st.lists(HOSTILE, max_size=3), body=st.binary(max_size=40)
)
def test_any_header_gives_one_sentence(tree: Any, layout: Any, body: bytes) -> None:
    with pytest.raises(CodecError, match=r"^message [^\n]*\.$"):
        wire.decode_requests(message([tree, layout], body))


@pytest.mark.parametrize(
    ("tree", "layout", "body", "complaint"),
    [
        ([], [["<f8", [2**40]]], b"", "has no shape"),
        ([], [["<f8", [2**30, 2**30]]], b"", f"its arrays take {2**63} bytes, but 0 are there"),
        ([], [["<f8", [-1]]], b"", "has no shape"),
        ([], [["<f8", [1] * 17]], b"12345678", "has no shape"),
        ([], [["<f8", [True]]], b"12345678", "has no shape"),
        ([], [["O", [1]]], b"12345678", "type that is not accepted"),
        ([], [["<c16", [1]]], b"", "type that is not accepted"),
        ([], [["<f8", [2, 1], [0, 0]]], bytes(16), "another number of axes"),
        ([], [["<f8", [2, 1], [1]]], bytes(16), "another number of axes"),
        ([], [["<f8", [2, 1], [0, 1.0]]], bytes(16), "another number of axes"),
        ([], [["<f8", [1], [0], [9], [0]]], bytes(8), "no type and shape"),  # the same number many times
        ([], [["<f8", [1]]], bytes(8), "arrays that stand nowhere"),
        ([{"a": True}], [["<f8", [1]]], bytes(8), "its tree has another form"),
        ([{"a": 0, "n": 0}], [["<f8", [1]]], bytes(8), "its tree has another form"),
        ([{"a": -1}], [["<f8", [1]]], bytes(8), "an array that is not there"),
        ([{"n": 0}], [["<f8", [1]]], bytes(8), "no number where one must be"),
        ([{"t": 0}], [["<f8", [1, 1]]], bytes(8), "no tuple where one must be"),
        ([{"t": 0}], [["|i1", [8]]], bytes(8), "no tuple where one must be"),
        ([{"t": 0}, {"t": 0}], [["<f8", [1]]], bytes(8), "no tuple where one must be"),  # takes memory each time
        ([{"a": 0}], [["|b1", [1]]], b"\x07", "neither 0 nor 1"),
        ([{"os:system": {"command": "ls"}}], [], b"", "structure that is not known"),
        ([{".engine._protocol:Any": {}}], [], b"", "structure that is not known"),
        ([{".engine._protocol:Value.__new__": {}}], [], b"", "structure that is not known"),
        ([{".engine._host_file:Stored": {}}], [], b"", "structure that is not known"),
        ([{"dualopt.engine._protocol:Value": {}}], [], b"", "structure that is not known"),
        ([{VALUE: {"run": "run", "n": 0}}], [], b"", "a Value with other fields"),
        ([{VALUE: {"n": 0, "run": "run", "theta": None}}], [], b"", "a Value with other fields"),
        ([{VALUE: {"run": "run", "n": 0, "theta": 1.0}}], [], b"", "a Value whose theta is of another type"),
        ([{VALUE: {"run": "run", "n": True, "theta": None}}], [], b"", "a Value whose n is of another type"),
        ([{VALUE: {"run": "run", "n": 2**63, "theta": None}}], [], b"", "a Value whose n is of another type"),
        ([{VALUE: {"run": 7, "n": 0, "theta": None}}], [], b"", "a Value whose run is of another type"),
        ([{".engine._protocol:Committed": {"run": "run", "n": 0}}], [], b"", "holds Committed, which is no request"),
        ([{"f": "1e400"}], [], b"", "no number where one must be"),
        ([2**128], [], b"", "an integer that is too large"),
        ([7], [], b"", "holds something, which is no request"),
        (json.loads("[" * 40 + "]" * 40), [], b"", "more than 32 deep"),
    ],
)
def test_hostile_headers_are_refused_for_what_they_are(tree: Any, layout: Any, body: bytes, complaint: str) -> None:
    with pytest.raises(CodecError, match=complaint):
        wire.decode_requests(message([tree, layout], body))


@pytest.mark.parametrize("text", [b"[" * 100_000, b"[[NaN],[]]", b"\xff\xfe", b"[" + b"9" * 5000 + b"]"])
def test_what_json_cannot_read_is_refused(text: bytes) -> None:
    with pytest.raises(CodecError, match="its header is no JSON"):
        wire.decode_requests(message(text))


def test_too_long_messages_are_refused_before_they_are_read() -> None:
    with pytest.raises(CodecError, match="longer than the 100 bytes"):
        wire.decode_requests(SENT, limit=100)


def test_no_memory_is_taken_for_shapes_that_are_not_there() -> None:
    import tracemalloc

    data = message([[], [["<f8", [2**27]]]], bytes(8))
    tracemalloc.start()
    with pytest.raises(CodecError, match="its arrays take 1073741824 bytes, but 8 are there"):
        wire.decode_requests(data)
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()


def test_answers_must_fit_their_requests() -> None:
    asked = [protocol.Value("run", 0, np.ones(1)), protocol.Value("run", 0, np.ones(1))]
    one = protocol.Valued(np.ones(2))
    assert len(wire.decode_answers(wire.encode([one, one]), asked)) == 2
    with pytest.raises(CodecError, match="1 answers to 2 requests"):
        wire.decode_answers(wire.encode([one]), asked)
    with pytest.raises(CodecError, match="Committed, which does not answer Value"):
        wire.decode_answers(wire.encode([one, protocol.Committed("run", 0)]), asked)
    failed = protocol.Failed("its disk is full")
    assert wire.decode_answers(wire.encode([failed]), asked) == [failed]


def test_all_protocol_tuples_can_be_sent() -> None:
    known = {*protocol.ANSWERS, *(kind for kinds in protocol.ANSWERS.values() for kind in kinds), protocol.Failed}
    assert all(kind in wire._known() for kind in known)
