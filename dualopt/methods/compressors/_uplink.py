"""The way up: what the clients of a round send through a compressor, and what both ends make of it."""

from __future__ import annotations

from typing import Any

from dualopt.arrays.tree import leaves, tree_map
from dualopt.arrays.xp import Array, array_namespace, zeros_like
from dualopt.methods.compressors._protocol import Compressor
from dualopt.methods.compressors.identity import Identity
from dualopt.methods.participation import Round

__all__ = ["REFERENCES", "Uplink", "kept_part", "or_none"]

REFERENCES = frozenset({"nothing", "message", "memory", "errors"})
"""What ``Algorithm.upload_reference`` may be."""


def kept_part(compressor: Compressor | None, shape: tuple[int, ...], n_clients: int) -> float:
    r"""Return :math:`1/(1 + \omega)`: which part of a compressed step both ends take; 1 without a compressor.

    Examples
    --------
    >>> from dualopt.methods.compressors import RandK
    >>> kept_part(RandK(size=1), (4,), 3), kept_part(None, (4,), 3)
    (0.25, 1.0)
    """
    return 1.0 if compressor is None else 1.0 / (1.0 + compressor.omega(shape, n_clients))


def or_none(compressor: Compressor | None) -> Compressor | None:
    """Return the compressor, and None for one that sends everything as it is."""
    return None if isinstance(compressor, Identity) else compressor


class Uplink:
    r"""The way up of the active clients in one round.

    Of a vector x that is measured from r, which both ends know, arrives :math:`r + C(x - r)/(1 + \omega)`: whatever C
    is, unbiased and with :math:`\mathbb E|C(v)|^2 \le (1 + \omega)|v|^2`, the square of the error is at most the part
    :math:`\omega/(1 + \omega)` of :math:`|x - r|^2` in the mean. So a memory r of what arrived last tends to an x that
    comes to rest.

    Parameters
    ----------
    compressor : Compressor
        What vectors go through: arrays of the shape of the model, a row for each client. Other numbers are sent as
        they are.
    reference : "nothing", "message", "memory" or "errors"
        From where they are measured: as ``Algorithm.upload_reference`` says.
    message : tree of arrays
        The message of the round; its first array stands for it.
    shape : tuple of int
        Shape of the model.
    round : Round
        The round. In one without communication nothing is sent, and nothing compressed.
    memory : tuple of arrays
        What these clients remember of earlier rounds, one array for each vector of an upload: what arrived, or what did
        not.

    Attributes
    ----------
    memory : tuple of arrays
        The same after this round.
    vectors : int
        How many vectors a client has sent through the compressor.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.methods.compressors import TopK
    >>> from dualopt.methods.participation import first_round
    >>> x = np.array([[4.0, 8.0]])
    >>> up = Uplink(TopK(size=1), "memory", None, (2,), first_round(1), (np.array([[1.0, 9.0]]),))
    >>> up.sent(x).tolist(), up.memory[0].tolist()
    ([[4.0, 9.0]], [[4.0, 9.0]])
    >>> up = Uplink(TopK(size=1), "errors", None, (2,), first_round(1))
    >>> up.sent(x).tolist(), up.memory[0].tolist()
    ([[0.0, 8.0]], [[4.0, 0.0]])
    """

    def __init__(
        self,
        compressor: Compressor,
        reference: str,
        message: Any,
        shape: tuple[int, ...],
        round: Round,
        memory: tuple[Array, ...] = (),
    ) -> None:
        self.memory, self.vectors = memory, 0
        self._compressor, self._reference, self._shape, self._round = compressor, reference, shape, round
        self._message = next(iter(leaves(message)), None)
        self._kept = kept_part(compressor, shape, round.n_clients)
        self._done = not round.communicate

    def sent(self, x: Any, since: Array | float | None = None, *, unbiased: bool = False) -> Any:
        """Return what arrives of the vectors in a tree, and the rest of it as it is: see ``Oracle.sent``."""
        self._done = True
        if not self._round.communicate:
            return x
        return tree_map(lambda leaf: self._arrived(leaf, since, unbiased) if self._is_vector(leaf) else leaf, x)

    def in_single(self, x: Array) -> Array:
        """Return numbers in single precision, and leave the rest of the upload as it is: see ``Oracle.in_single``."""
        self._done = True
        xp = array_namespace(x)
        return xp.astype(x, xp.float32) if self._round.communicate else x

    def rest(self, upload: Any) -> Any:
        """Return what arrives of an upload, of which nothing is compressed again if something was already."""
        return upload if self._done else self.sent(upload)

    def _is_vector(self, x: Any) -> bool:
        shape = tuple(getattr(x, "shape", ()))
        return len(shape) > 1 and shape[1:] == self._shape

    def _arrived(self, x: Array, since: Array | float | None, unbiased: bool) -> Array:
        k, kind = self.vectors, self._reference if since is None else "since"
        self.vectors += 1
        remembers = kind in ("memory", "errors")
        if remembers and len(self.memory) == k:
            self.memory = (*self.memory, zeros_like(x))
        reference = {"since": since, "message": self._message, "nothing": None, "errors": None}.get(kind)
        if kind == "memory":
            reference = self.memory[k]
        elif kind == "errors":
            x = x + self.memory[k]
        step = self._compressor.compress(x if reference is None else x - reference, self._round)
        short = self._kept * step
        arrived = _from(reference, step if unbiased else short)
        if remembers:
            new = _from(reference, short) if kind == "memory" else x - arrived
            self.memory = (*self.memory[:k], new, *self.memory[k + 1 :])
        return arrived


def _from(reference: Array | float | None, step: Array) -> Array:
    return step if reference is None else reference + step
