"""A host whose numbers leave it in sums alone."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from dualopt.arrays._checks import require
from dualopt.arrays._files import write_atomically
from dualopt.engine import _protocol as protocol
from dualopt.engine._errors import RefusedError
from dualopt.engine._host import Host
from dualopt.engine.secure_sums import _ciphers as ciphers
from dualopt.engine.secure_sums import _messages as messages
from dualopt.engine.secure_sums._masked import words_of
from dualopt.engine.secure_sums._messages import as_array, as_bytes
from dualopt.engine.secure_sums._ring import LARGEST, OutOfRangeError, fraction_bits
from dualopt.engine.secure_sums._shares import SHARE, split

__all__ = ["FEWEST", "Identity", "SecureHost", "said_of", "threshold_of"]

FEWEST = 3  # hosts of a sum
OPEN = 4  # sums at the same time; the oldest is forgotten
ALONE = (protocol.Propose, protocol.Evaluate, protocol.Value, protocol.Information, protocol.States, protocol.Restore)


class Identity(Protocol):
    """How a host shows others that its public keys are its own."""

    def sign(self, data: bytes) -> bytes:
        """Return a signature."""
        ...

    def holds(self, host: str, data: bytes, signature: bytes) -> bool:
        """Tell whether another host has signed this."""
        ...


def threshold_of(n: int) -> int:
    """Return how many of the hosts of a sum must answer: two thirds.

    Examples
    --------
    >>> [threshold_of(n) for n in (3, 4, 5, 6, 8, 9)]
    [2, 3, 4, 4, 6, 6]
    """
    return -(-2 * n // 3)


def said_of(host: str, keys: messages.PublicKeys) -> bytes:
    """Return what a host signs."""
    return json.dumps(["dualopt keys", host, keys.name]).encode() + as_bytes(keys.boxes) + as_bytes(keys.masks)


class _Sum:
    """What a host knows of a sum."""

    def __init__(self, keys: messages.PublicKeys, boxes: ciphers.KeyPair, masks: ciphers.KeyPair) -> None:
        self.keys, self.boxes, self.masks = keys, boxes, masks
        self.cohort: tuple[str, ...] = ()
        self.others: tuple[messages.PublicKeys, ...] = ()
        self.seed = b""
        self.secrets: dict[str, bytes] = {}  # for boxes, in common with each of the others
        self.dealt: messages.Dealt | None = None
        self.added: messages.Added | None = None
        self.asked: Any = None  # of what that is: the kind of request, run and round
        self.shares: list[bytes] = []  # of each of the cohort: of its seed, and of its private key, after each other
        self.survivors: tuple[str, ...] = ()
        self.revealed: messages.Revealed | None = None


class SecureHost:
    """A host that answers as another one does, but for numbers of its clients, which it adds to sums.

    Parameters
    ----------
    host : Host
        It.
    name : str
        What the server and the other hosts call it.
    names : sequence of str
        Those of all hosts.
    largest : float, default 2^20
        Bound of all numbers, the same at all hosts.
    identity : Identity, optional
        Signs public keys and checks those of others; without it they are believed.
    file : str or Path, optional
        Where the host keeps whose uploads were added in which round, for all runs of one project; a line each. Without
        it, it remembers that of each run while it lives.

    Raises
    ------
    ModuleNotFoundError
        If the package ``cryptography`` is missing.
    ValueError
        If there are fewer than 3 hosts, or the file is damaged.
    """

    def __init__(
        self,
        host: Host,
        name: str,
        names: Sequence[str],
        *,
        largest: float = LARGEST,
        identity: Identity | None = None,
        file: str | Path | None = None,
    ) -> None:
        ciphers.require_package()
        require(len(set(names)) == len(names) >= FEWEST, f"names must be those of at least {FEWEST} hosts", len(names))
        require(name in names, "name must be one of the names of all hosts", name)
        self.host, self.name, self.names, self.largest = host, name, tuple(names), largest
        self.bits = fraction_bits(largest, len(names))
        self._identity, self._file = identity, None if file is None else Path(file)
        self._sums: dict[str, _Sum] = {}
        self._used: set[str] = set()
        self._of_rounds: dict[tuple[str, int], tuple[str, ...]] = self._read()

    @property
    def types(self) -> tuple[type, ...]:
        """Classes of methods, solvers and so on that are not of this package."""
        return self.host.types

    @types.setter
    def types(self, types: tuple[type, ...]) -> None:
        self.host.types = types

    def answer(self, requests: Iterable[Any]) -> list[Any]:
        """Do what is asked, in this order, and return the answers.

        Raises
        ------
        RefusedError
            If a request does not fit the state of the host, or would show numbers of its clients.
        """
        answers: list[Any] = []
        waiting: list[Any] = []  # for the host, which saves its state once for all of them
        for request in requests:
            if isinstance(request, ALONE):
                raise RefusedError("its numbers are for sums alone", code="sum")
            step = _STEPS.get(type(request))
            if step is None:
                waiting.append(request)
            elif step == "_add":
                answers += self._add(request, waiting)
                waiting = []
            else:
                answers += self.host.answer(waiting) if waiting else []
                answers.append(getattr(self, step)(request))
                waiting = []
        return answers + (self.host.answer(waiting) if waiting else [])

    # --- a sum ------------------------------------------------------------------------------------------------

    def _advertise(self, request: messages.Advertise) -> messages.PublicKeys:
        name = request.name
        if name in self._sums and not self._sums[name].cohort:
            return self._sums[name].keys
        self._demand(name not in self._used, "its keys for this sum are used")
        boxes, masks = ciphers.key_pair(), ciphers.key_pair()
        keys = messages.PublicKeys(name, as_array(boxes.public), as_array(masks.public), as_array(b""))
        if self._identity is not None:
            keys = keys._replace(signature=as_array(self._identity.sign(said_of(self.name, keys))))
        self._used.add(name)
        self._sums[name] = _Sum(keys, boxes, masks)
        for old in list(self._sums)[:-OPEN]:
            del self._sums[old]
        return keys

    def _deal(self, request: messages.Deal) -> messages.Dealt:
        own, cohort = self._sum(request.name), request.cohort
        if own.dealt is not None:
            self._demand(own.cohort == cohort, "the cohort of a sum was changed")
            return own.dealt
        self._demand(len(cohort) >= FEWEST, f"a sum would be one of fewer than {FEWEST} hosts")
        known = len(set(cohort)) == len(cohort) and set(cohort) <= set(self.names) and self.name in cohort
        self._demand(known, "the cohort of a sum is not one of the hosts of the run")
        self._demand(isinstance(request.keys, tuple) and len(request.keys) == len(cohort), "keys are missing")
        for host, keys in zip(cohort, request.keys, strict=True):
            self._check_keys(host, keys, own)
        threshold = threshold_of(len(cohort))
        seed = secrets.token_bytes(ciphers.KEY)
        seeds, privates = (split(x, len(cohort), threshold) for x in (seed, own.masks.private))
        boxes = []
        for k, (host, keys) in enumerate(zip(cohort, request.keys, strict=True)):
            if host == self.name:
                own.shares = [seeds[k] + privates[k]]
                boxes.append(as_array(b""))
                continue
            own.secrets[host] = self._common(own.boxes.private, keys.boxes)
            key = ciphers.derived(own.secrets[host], request.name, "box", self.name, host, list(cohort))
            boxes.append(as_array(ciphers.sealed(key, seeds[k] + privates[k])))
        own.cohort, own.others, own.seed = cohort, request.keys, seed
        own.dealt = messages.Dealt(request.name, as_array(ciphers.commitment(seed, request.name)), tuple(boxes))
        return own.dealt

    def _check_keys(self, host: str, keys: Any, own: _Sum) -> None:
        self._demand(isinstance(keys, messages.PublicKeys) and keys.name == own.keys.name, "keys are of another sum")
        try:
            public = [as_bytes(x, ciphers.KEY) for x in (keys.boxes, keys.masks)]
            signature = as_bytes(keys.signature)
        except ValueError:
            raise RefusedError("keys of another host are damaged", code="keys") from None
        if host == self.name:
            mine = [as_bytes(own.keys.boxes), as_bytes(own.keys.masks)]
            self._demand(public == mine, "its own keys were changed")
        elif self._identity is not None and not self._identity.holds(host, said_of(host, keys), signature):
            raise RefusedError(f"keys that are said to be those of {host} do not carry its signature", code="keys")

    def _add(self, request: messages.Add, waiting: list[Any]) -> list[Any]:
        own, asked = self._sum(request.name), request.request
        evaluates = isinstance(asked, protocol.Evaluate)
        self._demand(evaluates or isinstance(asked, protocol.Propose), "it adds uploads and certificates alone")
        self._demand(asked.partial_sums, "its numbers are for sums alone")
        what = type(asked).__name__, asked.run, asked.n
        if own.added is not None:
            self._demand(own.asked == what, "the masks of a sum are used")
            return [*(self.host.answer(waiting) if waiting else []), own.added]
        self._demand(own.dealt is not None, "it has not dealt shares for this sum")
        if evaluates:
            self._demand(set(own.cohort) == set(self.names), "a sum for a certificate is not one of all hosts")
        else:
            before = self._of_rounds.get(self._round(asked.run, asked.n), own.cohort)
            self._demand(set(own.cohort) == set(before), "its upload of this round is in a sum of other hosts")
        self._open_boxes(own, request)
        *plain, answer = self.host.answer([*waiting, asked])
        try:
            words = words_of(asked, answer, self.bits, self.largest)
        except OutOfRangeError as error:
            raise RefusedError(f"its numbers are not sent: {error}", code="range") from None
        flat = words.flat
        found = words.filled(flat + self._mask(own, flat.size))
        own.asked, own.seed, own.masks = what, b"", own.masks._replace(private=b"")
        own.added = messages.Added(request.name, found.words, found.flags, words.types, words.vectors)
        return [*plain, own.added]

    def _open_boxes(self, own: _Sum, request: messages.Add) -> None:
        boxes, name = request.boxes, request.name
        self._demand(isinstance(boxes, tuple) and len(boxes) == len(own.cohort), "shares are missing")
        (mine,), found = own.shares[:1], []
        for host, box in zip(own.cohort, boxes, strict=True):
            if host == self.name:
                found.append(mine)
                continue
            key = ciphers.derived(own.secrets[host], name, "box", host, self.name, list(own.cohort))
            try:
                shares = ciphers.opened(key, as_bytes(box))
            except ValueError:
                shares = None
            if shares is None or len(shares) != 2 * SHARE:
                raise RefusedError(f"shares of {host} are damaged", code="keys")
            found.append(shares)
        own.shares = found

    def _mask(self, own: _Sum, n: int) -> np.ndarray:
        place = own.cohort.index(self.name)
        mask = ciphers.stream(own.seed, n)
        for k, (host, keys) in enumerate(zip(own.cohort, own.others, strict=True)):
            if host != self.name:
                pair = sorted((self.name, host))
                key = ciphers.derived(self._common(own.masks.private, keys.masks), own.keys.name, "mask", *pair)
                part = ciphers.stream(key, n)
                mask = mask + part if k > place else mask - part
        return mask

    def _reveal(self, request: messages.Reveal) -> messages.Revealed:
        own, added = self._sum(request.name), request.added
        self._demand(own.added is not None, "it has not added to this sum")
        if own.revealed is not None:
            self._demand(own.survivors == added, "it has revealed shares for another set of hosts")
            return own.revealed
        right = len(set(added)) == len(added) and set(added) <= set(own.cohort) and self.name in added
        self._demand(right, "those who have added are not of the cohort, or it is not among them")
        self._demand(len(added) >= threshold_of(len(own.cohort)), "fewer hosts have added than the threshold")
        kind, run, n = own.asked
        if kind == protocol.Evaluate.__name__:
            self._demand(set(added) == set(own.cohort), "a sum for a certificate is not one of all hosts")
        else:
            before = self._of_rounds.get(self._round(run, n))
            self._demand(before is None or set(before) == set(added), "its upload is in a sum of other hosts")
            if before is None:
                self._note(n, added)
                self._of_rounds[self._round(run, n)] = added
        shares = (x[:SHARE] if host in added else x[SHARE:] for host, x in zip(own.cohort, own.shares, strict=True))
        own.survivors, own.revealed = added, messages.Revealed(request.name, tuple(map(as_array, shares)))
        own.shares = []
        return own.revealed

    # --- what it knows ----------------------------------------------------------------------------------------

    def _sum(self, name: str) -> _Sum:
        self._demand(name in self._sums, "it has no keys for this sum")
        return self._sums[name]

    def _round(self, run: str, n: int) -> tuple[str, int]:
        """Return by what a round is known: where there is a file, a run that is begun anew is none of its own."""
        return ("" if self._file is not None else run), n

    def _common(self, private: bytes, public: Any) -> bytes:
        try:
            return ciphers.common_secret(private, as_bytes(public, ciphers.KEY))
        except ValueError:
            raise RefusedError("keys of another host are damaged", code="keys") from None

    def _demand(self, condition: object, reason: str) -> None:
        if not condition:
            raise RefusedError(reason, code="sum", final=False)

    def _read(self) -> dict[tuple[str, int], tuple[str, ...]]:
        found: dict[tuple[str, int], tuple[str, ...]] = {}
        if self._file is None or not self._file.exists():
            return found
        whole, end, cut = self._file.read_text().rpartition("\n")
        if cut:  # a line that a process did not write to its end, and did not act on
            write_atomically(self._file, lambda file: file.write(whole + end))
        for line in whole.splitlines():
            n, *added = line.split()
            require(n.isdecimal() and set(added) <= set(self.names), f"file {str(self._file)!r} of sums is damaged")
            found["", int(n)] = tuple(added)
        return found

    def _note(self, n: int, added: tuple[str, ...]) -> None:
        """Keep who is in the sum of a round, before any share of it leaves the host."""
        if self._file is None:
            return
        with self._file.open("a") as file:
            file.write(" ".join([str(n), *added]) + "\n")
            file.flush()
            os.fsync(file.fileno())


_STEPS = {kind: f"_{kind.__name__.lower()}" for kind in messages.ANSWERS}
