"""The server's end of sums: an engine around another one, whose hosts are secure ones."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dualopt.arrays._checks import Typed, require, require_positive
from dualopt.arrays.tree import leaves
from dualopt.arrays.xp import Array
from dualopt.engine import _protocol as protocol
from dualopt.engine._inline import Blocks, Inline, elsewhere
from dualopt.engine._remote import RemoteClients
from dualopt.engine.secure_sums import _ciphers as ciphers
from dualopt.engine.secure_sums import _messages as messages
from dualopt.engine.secure_sums._masked import Words, answers_of_sum
from dualopt.engine.secure_sums._messages import as_bytes
from dualopt.engine.secure_sums._ring import LARGEST, fraction_bits
from dualopt.engine.secure_sums._shares import SharesError, combined
from dualopt.engine.secure_sums._site import FEWEST, SecureHost, threshold_of
from dualopt.objectives import Objective

if TYPE_CHECKING:
    from dualopt.methods.preparation import Prepared

__all__ = ["SecureBlocks", "SecureSums"]

SINGLE = "values of single hosts are not known where their numbers are for sums alone."


class _Dealt:
    """A sum for which a cohort has dealt shares."""

    def __init__(self, name: str, keys: dict[Any, messages.PublicKeys], dealt: dict[Any, messages.Dealt]) -> None:
        self.name, self.keys, self.dealt = name, keys, dealt

    @property
    def cohort(self) -> list[Any]:
        """The hosts."""
        return list(self.dealt)

    def boxes_for(self, host: Any) -> tuple[Any, ...]:
        """Return what each of the cohort has dealt to a host."""
        place = self.cohort.index(host)
        return tuple(self.dealt[h].boxes[place] for h in self.dealt)


class _NoSumError(Exception):
    """Numbers cannot be added; what is said of each host."""

    def __init__(self, reasons: Mapping[Any, Any], otherwise: str) -> None:
        super().__init__(otherwise)
        self.reasons, self.otherwise = reasons, otherwise


class SecureSums:
    """An engine that asks `SecureHost` hosts over another engine for sums, and learns nothing else of their numbers.

    Rounds and certificates take two calls each, four where the cohort has changed.

    Parameters
    ----------
    engine : Engine
        How requests reach the hosts.
    largest : float, default 2^20
        Bound of all numbers, as the hosts have it.

    Attributes
    ----------
    tolerant : bool
        Whether a round may go on without some hosts; the session with the hosts sets it.

    Raises
    ------
    ModuleNotFoundError
        If the package ``cryptography`` is missing.
    ValueError
        If there are fewer than 3 hosts, or they are processes of one MPI program.
    """

    partial_sums = True
    secure = True

    def __init__(self, engine: Any, *, largest: float = LARGEST) -> None:
        ciphers.require_package()
        program = hasattr(engine, "run_everywhere")
        require(not program, "engine must not be MPI() for secure sums: processes of one program hide nothing")
        n = len(engine.hosts)
        require(n >= FEWEST, f"engine must have at least {FEWEST} hosts for secure sums", n)
        self.engine, self.hosts, self.in_process = engine, engine.hosts, engine.in_process
        self.tolerant = False
        self._bits = fraction_bits(largest, n)
        self._names = (f"{secrets.token_hex(8)} {k}" for k in count())
        self._ready: _Dealt | None = None  # for the next sum
        self._sizes: dict[Any, int] = {}
        self._like: Array | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def call(self, requests: Mapping[Any, Sequence[Any]]) -> dict[Any, Any]:
        """Ask hosts, and return their answers: sums stand in the answer of the first host, and in no other."""
        last = [batch[-1] for batch in requests.values() if batch]
        if any(
            isinstance(x, protocol.Value | protocol.Information) or getattr(x, "partial_sums", True) is False
            for x in last
        ):
            raise ValueError(SINGLE)
        if last and all(isinstance(x, protocol.Propose | protocol.Evaluate) for x in last):
            return self._summed(requests)
        found = dict(self.engine.call(requests))
        for h, answers in found.items():
            for info in answers if isinstance(answers, list) else ():
                if isinstance(info, protocol.ClientInfo):
                    self._sizes[h], self._like = info.n_clients, info.zero
        return found

    # --- a sum ------------------------------------------------------------------------------------------------

    def _summed(self, requests: Mapping[Any, Sequence[Any]]) -> dict[Any, Any]:
        evaluates = any(isinstance(batch[-1], protocol.Evaluate) for batch in requests.values())
        whole = evaluates or not self.tolerant
        try:
            if len(requests) < FEWEST:
                raise _NoSumError({}, f"sums are of at least {FEWEST} hosts, and {len(requests)} would be added")
            failed: dict[Any, Any] = {}
            return self._added(requests, self._opened(list(requests), whole, failed), whole, failed)
        except _NoSumError as error:
            self._ready = None
            return {h: error.reasons.get(h, protocol.Failed(error.otherwise)) for h in requests}

    def _opened(self, hosts: list[Any], whole: bool, failed: dict[Any, Any]) -> _Dealt:
        """Return a sum for which these hosts have dealt shares, or those of them that are there."""
        if self._ready is not None and self._ready.cohort == hosts:
            found, self._ready = self._ready, None
            return found
        name = next(self._names)
        keys = self._answers({h: [messages.Advertise(name)] for h in hosts}, failed)
        self._require(keys, hosts, failed, whole)
        dealt = self._answers({h: [_deal(name, keys)] for h in keys}, failed)
        if set(dealt) != set(keys):  # once more, without those that fell in between
            self._require(dealt, hosts, failed, whole)
            return self._opened(list(dealt), whole, failed)
        return _Dealt(name, keys, dealt)

    def _answers(self, requests: Mapping[Any, list[Any]], failed: dict[Any, Any]) -> dict[Any, Any]:
        """Return the only answer of each host, without those that have none."""
        answers, kept = self.engine.call(requests), {}
        for h, batch in requests.items():
            own = _sound(batch, answers.get(h))
            if own is None:
                failed[h] = answers.get(h, protocol.Failed("no answer in time"))
                if isinstance(failed[h], list):
                    failed[h] = protocol.Failed("its answers are not those to the requests")
            else:
                kept[h] = own if len(own) > 1 else own[0]
        return kept

    def _require(self, there: Mapping[Any, Any], asked: Sequence[Any], failed: Mapping[Any, Any], whole: bool) -> None:
        """Refuse to go on with fewer hosts than a sum needs."""
        if whole and len(there) < len(asked):
            first = next(h for h in asked if h not in there)
            raise _NoSumError(failed, f"the sum could not be made without {_named([first], failed)}")
        if len(there) < FEWEST:
            raise _NoSumError(failed, f"sums are of at least {FEWEST} hosts, and {len(there)} are there")

    def _added(
        self, requests: Mapping[Any, Sequence[Any]], opened: _Dealt, whole: bool, failed: dict[Any, Any]
    ) -> dict[Any, Any]:
        """Return the answers with the sum of a cohort; those that fell before are among the ``failed``."""
        cohort, following = opened.cohort, next(self._names)
        batches = {
            h: [
                *requests[h][:-1],
                messages.Add(opened.name, opened.boxes_for(h), requests[h][-1]),
                messages.Advertise(following),
            ]
            for h in cohort
        }
        answers = self._answers(batches, failed)
        added = {h: own[-2] for h, own in answers.items()}
        needed = len(requests) if whole else threshold_of(len(cohort))
        if len(added) < needed:
            gone = _named([h for h in requests if h not in added], failed)
            raise _NoSumError(failed, f"the sum needs {needed} hosts, and could not be made without {gone}")
        forms = {h: _words(x).form for h, x in added.items()}
        if len(set(forms.values())) > 1:
            raise _NoSumError(failed, "the numbers that hosts add have different shapes or types")
        survivors = tuple(str(h) for h in added)
        keys = {h: own[-1] for h, own in answers.items()}
        again = len(added) == len(cohort)
        reveal = {
            h: [messages.Reveal(opened.name, survivors), *([_deal(following, keys)] if again else [])] for h in added
        }
        found = self._answers(reveal, {})
        if again and len(found) == len(cohort):
            self._ready = _Dealt(following, keys, {h: own[1] for h, own in found.items()})
        shares = {h: own[0] if again else own for h, own in found.items()}
        if len(shares) < threshold_of(len(cohort)):
            raise _NoSumError(failed, f"only {len(shares)} hosts gave shares, and {threshold_of(len(cohort))} must")
        total = self._unmasked(opened, added, shares, failed)
        asked = {h: requests[h][-1] for h in added}
        sizes = [self._size(h, request) for h, request in asked.items()]
        sums = answers_of_sum(list(asked.values()), total, self._bits, sizes, self._like)
        return failed | {h: [*answers[h][:-2], one] for h, one in zip(added, sums, strict=True)}

    def _size(self, host: Any, request: Any) -> int:
        clients = getattr(request, "clients", None)
        return self._sizes[host] if clients is None else len(clients)

    def _unmasked(
        self,
        opened: _Dealt,
        added: Mapping[Any, messages.Added],
        revealed: Mapping[Any, messages.Revealed],
        failed: Mapping[Any, Any],
    ) -> Words:
        """Return the sum without its masks."""
        cohort, name = opened.cohort, opened.name
        threshold = threshold_of(len(cohort))
        words = {h: _words(x) for h, x in added.items()}
        first = next(iter(words.values()))
        flat = np.zeros(first.flat.size, dtype=np.uint64)
        for one in words.values():
            flat = flat + one.flat
        for place, h in enumerate(cohort):
            try:
                shares = {cohort.index(v): as_bytes(x.shares[place]) for v, x in revealed.items()}
                secret = combined(shares, threshold)
                if h in added:
                    right = ciphers.commitment(secret, name) == as_bytes(opened.dealt[h].commitment)
                else:
                    right = ciphers.public_key(secret) == as_bytes(opened.keys[h].masks)
                if not right:
                    raise SharesError("they give another secret")
            except (SharesError, ValueError, IndexError, TypeError) as error:
                reason = f"masks cannot be taken off, as shares of host {h} are wrong: {error}".rstrip(".")
                raise _NoSumError(failed, reason) from None
            if h in added:
                flat = flat - ciphers.stream(secret, flat.size)
                continue
            for v in added:
                common = ciphers.common_secret(secret, as_bytes(opened.keys[v].masks))
                part = ciphers.stream(ciphers.derived(common, name, "mask", *sorted((str(h), str(v)))), flat.size)
                flat = flat - part if place > cohort.index(v) else flat + part
        return first.filled(flat)


@dataclass(frozen=True, kw_only=True)
class SecureBlocks(Typed):
    """Blocks of clients in this process whose uploads and certificates meet in secure sums alone.

    A run has the digits of ``Blocks(partial_sums=True)`` but for the rounding of sums to multiples of a power of two,
    with which its certificates are charged. Nothing is asked of single blocks: ``snapshot.clients`` and values of
    single clients cannot be had, and a checkpoint cannot be taken up.

    Parameters
    ----------
    number : int
        How many blocks, at least 3.
    largest : float, default 2^20
        Bound of all numbers of a block: uploads, values, gradients, conjugates, times weights.

    Raises
    ------
    ModuleNotFoundError
        From ``clients`` if the package ``cryptography`` is missing.
    ValueError
        If there are fewer than 3 blocks, or the bound is not positive; from ``clients`` if there are fewer clients.

    Examples
    --------
    >>> SecureBlocks(number=2)
    Traceback (most recent call last):
    ValueError: number must be at least 3, the fewest hosts of a secure sum, not 2.
    """

    secure: ClassVar[bool] = True

    number: int
    largest: float = LARGEST

    def __post_init__(self) -> None:
        require(
            self.number >= FEWEST, f"number must be at least {FEWEST}, the fewest hosts of a secure sum", self.number
        )
        require_positive(largest=self.largest)

    def clients(self, objective: Objective, prepared: Prepared | None = None) -> Objective:
        """Return the objective with its clients in these blocks."""
        names = [str(k) for k in range(self.number)]
        hosts: list[Any] = [
            SecureHost(host, name, names, largest=self.largest)
            for name, host in zip(names, Blocks(number=self.number).hosts(objective), strict=True)
        ]
        return elsewhere(objective, RemoteClients(SecureSums(Inline(hosts, in_process=False), largest=self.largest)))


def _deal(name: str, keys: Mapping[Any, messages.PublicKeys]) -> messages.Deal:
    return messages.Deal(name, tuple(map(str, keys)), tuple(keys.values()))


def _named(hosts: Sequence[Any], failed: Mapping[Any, Any]) -> str:
    """Name hosts, and say of each why it did not count."""
    return ", ".join(f"host {h} ({getattr(failed[h], 'reason', failed[h])})".replace(".)", ")") for h in hosts)


def _words(added: messages.Added) -> Words:
    return Words(added.words, added.flags, added.types, added.vectors)


def _sound(batch: Sequence[Any], answers: Any) -> list[Any] | None:
    """Return the answers of a host, if they are those to a batch of requests."""
    if not isinstance(answers, Sequence) or len(answers) != len(batch):
        return None
    for request, answer in zip(batch, answers, strict=True):
        known = messages.ANSWERS.get(type(request))
        if known is not None and (not isinstance(answer, known) or answer.name != request.name):
            return None
        if isinstance(answer, messages.Added) and not _is_of_words(answer):
            return None
    return list(answers)


def _is_of_words(added: messages.Added) -> bool:
    """Tell whether all that is added are integers of the ring, and no more than their flags say of them."""
    parts = [added.flags, *leaves(added.words)]
    return all(isinstance(x, np.ndarray) and x.dtype == np.uint64 for x in parts) and added.flags.ndim == 1
