"""What is written of trees comes back as it was: with ``exact`` to the strides, in and out of files."""

from __future__ import annotations

import io
import json
import re
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualopt.arrays import codec
from dualopt.arrays.codec import CodecError, Known, chunks, pack, read, unpack

WHOLE = np.arange(60.0).reshape(3, 4, 5)
VIEWS = {
    "rows": WHOLE,
    "columns": np.asfortranarray(WHOLE),
    "turned": WHOLE.transpose(1, 2, 0),
    "a column": WHOLE[:, 1, 2],
    "every other": WHOLE[:, ::2, 1:4:2],
    "backwards": WHOLE[::-1, :, ::-1],
    "repeated": np.broadcast_to(WHOLE[0], (6, 4, 5)),
    "repeated within": np.broadcast_to(WHOLE[:, :1, ::2], (3, 7, 3)),
    "one number": np.broadcast_to(np.float64(2.5), (2, 3)),
    "nothing": np.zeros((0, 3)),
    "a number": np.array(3.5),
    "an axis of one": WHOLE[:, :1],
}


class Plain(tuple):
    """A tuple without names, which would come back as another type."""


class Pair(NamedTuple):
    """A tree of this module."""

    one: Any
    other: Any


def through(tree: Any, *, exact: bool, known: Known | None = None) -> Any:
    """Return a tree that was written and read."""
    data = b"".join(chunks(pack([tree], exact=exact)))
    return unpack(read(io.BytesIO(data), len(data), exact=exact), known or Known(), exact=exact)[0]


@pytest.mark.parametrize("x", VIEWS.values(), ids=list(VIEWS))
def test_exact_arrays_have_their_strides(x: np.ndarray) -> None:
    """Those of axes of length one are of no effect."""
    found = through(x, exact=True)
    assert found.tolist() == x.tolist()
    assert found.dtype == x.dtype
    if x.size:
        assert [s for n, s in zip(x.shape, found.strides, strict=True) if n > 1] == [
            s for n, s in zip(x.shape, x.strides, strict=True) if n > 1
        ]
    assert found.flags.writeable == (
        not x.size or 0 not in [s for n, s in zip(x.shape, x.strides, strict=True) if n > 1]
    )


@pytest.mark.parametrize("x", VIEWS.values(), ids=list(VIEWS))
def test_other_arrays_are_dense_with_their_order_of_axes(x: np.ndarray) -> None:
    found = through(x, exact=False)
    assert found.tolist() == x.tolist()
    assert np.copy(x, order="K").strides == found.strides or x.size < 2
    assert found.flags.writeable


def test_what_lies_between_is_not_written() -> None:
    x = np.array([1.0, 12345.678, 2.0])[::2]
    for exact in (False, True):
        packed = pack([x], exact=exact)
        assert [y.tolist() for y in packed.arrays] == [[1.0, 2.0]]


def test_an_array_that_spans_too_much_memory_is_written_dense() -> None:
    x = np.lib.stride_tricks.as_strided(np.zeros(1), (2,), (8 * 2**20,))[:1]
    wide = np.zeros((2, 3 * codec.GAPS))[:, 0]
    assert through(wide, exact=True).strides == (8,)
    assert through(x, exact=True).tolist() == [0.0]


@pytest.mark.parametrize(
    ("stored", "axes", "shape", "strides"),
    [
        ([2], [0], [2], [3 * codec.GAPS]),
        ([2], [0], [2], [-3 * codec.GAPS]),
        ([2], [0], [2], [2**40]),
        ([2], [0], [3], [2]),
        ([2], [0], [2], [0]),
        ([2, 1], [0, 1], [2, 3], [4, 1]),
        ([1, 2], [1, 0], [1, 2], [4, 4]),
        ([2], [0], [2, 1], [4, 4]),
        ([2], [0], [2], [1.0]),
        ([0], [0], [0], [4]),
    ],
)
def test_strides_that_do_not_fit_are_refused(stored: Any, axes: Any, shape: Any, strides: Any) -> None:
    header = json.dumps([[{"a": 0}], [["<f8", stored, axes, shape, strides]]]).encode()
    data = b"".join(chunks(codec.Packed(header, [np.zeros(int(np.prod(stored)))])))
    with pytest.raises(CodecError, match="other strides"):
        read(io.BytesIO(data), len(data), exact=True)


def test_an_array_in_several_places_is_one_again() -> None:
    x = np.ones(3)
    found = through(Pair(x, (x, x.copy())), exact=True)
    assert found.one is found.other[0]
    assert found.one is not found.other[1]


def test_fields_are_told_by_name() -> None:
    """Other code may have them in another order."""
    text = pack([Pair(1, 2)]).header.replace(b'"one":1,"other":2', b'"other":2,"one":1')
    with pytest.raises(CodecError, match="a Pair with other fields"):
        unpack(codec.Packed(text, []), Known())


def test_structures_are_those_that_are_known() -> None:
    class Local(NamedTuple):
        x: int

    assert through(Local(1), exact=False, known=Known((), Local(0))) == Local(1)
    for known in (Known(()), Known({"os"})):
        with pytest.raises(CodecError, match="a structure that is not known"):
            through(Pair(1, 2), exact=False, known=known)
    with pytest.raises(CodecError, match="a structure that is not known"):
        through(Local(1), exact=False)


def test_what_cannot_be_written_is_refused() -> None:
    for x in (
        [1],
        {},
        {1},
        1j,
        b"x",
        np.array(["x"]),
        np.array([1j]),
        2**128,
        np.array([{}]),
        np.datetime64("2020"),
        Plain(),
    ):
        with pytest.raises(TypeError, match=r"cannot be written.*\.$"):
            pack([x])
    with pytest.raises(TypeError, match=r"^what is no array takes .* bytes, and .* can be written\.$"):
        pack(["x" * codec.LONGEST_HEADER])


@given(place=st.integers(0, 2**31), bit=st.integers(0, 7), exact=st.booleans())
def test_flipped_bits_give_a_tree_or_one_sentence(place: int, bit: int, exact: bool) -> None:
    data = bytearray(b"".join(chunks(pack([Pair(WHOLE[:, 1], (1.5, "text", tuple(range(40)), None))], exact=True))))
    data[place % len(data)] ^= 1 << bit
    complaint = "message fits."
    try:
        unpack(read(io.BytesIO(bytes(data)), len(data), exact=exact), Known(), exact=exact)
    except CodecError as error:
        complaint = str(error)
    assert re.fullmatch(r"message [^\n]*\.", complaint)
