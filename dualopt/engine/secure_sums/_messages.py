"""What the server asks of the hosts of a sum, and what they answer; keys, boxes and shares are arrays of bytes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dualopt.arrays.xp import Array

__all__ = [
    "ANSWERS",
    "Add",
    "Added",
    "Advertise",
    "Deal",
    "Dealt",
    "PublicKeys",
    "Reveal",
    "Revealed",
    "as_array",
    "as_bytes",
]


class Advertise(NamedTuple):
    """Ask for public keys for a sum; answered by `PublicKeys`."""

    name: str  # of the sum


class PublicKeys(NamedTuple):
    """Two public keys."""

    name: str
    boxes: Array  # (32,)  of what other hosts send
    masks: Array  # (32,)
    signature: Array  # of the name and both keys, with a certificate; (0,) where hosts have none


class Deal(NamedTuple):
    """Tell a host the cohort, and ask for shares; answered by `Dealt`."""

    name: str
    cohort: tuple[str, ...]  # names of hosts
    keys: Any  # tuple of PublicKeys, in this order


class Dealt(NamedTuple):
    """Shares of the host's secrets."""

    name: str
    commitment: Array  # (32,)  to the seed of its own mask
    boxes: Any  # tuple of arrays, one for each of the cohort; () shares of the host's own


class Add(NamedTuple):
    """Ask for the masked numbers of an answer; answered by `Added`."""

    name: str
    boxes: Any  # tuple of arrays: what each of the cohort has dealt to this host
    request: Any  # Propose, or Evaluate


class Added(NamedTuple):
    """Masked numbers."""

    name: str
    words: Any  # a tree of arrays of 64-bit integers, as the answer has them
    flags: Array  # further ones: numbers of gradients, and where numbers were infinite
    types: tuple[str, ...]  # of the arrays of the answer
    vectors: int  # how many vectors of a client's upload were compressed


class Reveal(NamedTuple):
    """Tell a host who has added, and ask for a share of one secret of each of the cohort; answered by `Revealed`."""

    name: str
    added: tuple[str, ...]


class Revealed(NamedTuple):
    """Shares."""

    name: str
    shares: Any  # tuple of arrays (66,), in the order of the cohort: of the own mask of those who have added


ANSWERS = {Advertise: (PublicKeys,), Deal: (Dealt,), Add: (Added,), Reveal: (Revealed,)}
"""The answers that a request may have."""


def as_array(data: bytes) -> np.ndarray:
    """Return bytes as they travel."""
    return np.frombuffer(data, dtype=np.uint8)


def as_bytes(x: Any, length: int | None = None) -> bytes:
    """Return bytes that have travelled.

    Raises
    ------
    ValueError
        If it is something else, or of another length.

    Examples
    --------
    >>> as_bytes(as_array(b"key"), 3)
    b'key'
    """
    right = isinstance(x, np.ndarray) and x.dtype == np.uint8 and x.ndim == 1 and length in (None, x.size)
    if not right:
        raise ValueError("bytes of a key, a box or a share have another form.")
    return x.tobytes()
