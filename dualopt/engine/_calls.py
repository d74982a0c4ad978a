"""The server's side of a conversation with hosts: who is asked what, who was told what, and whose answers count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from dualopt.arrays.tree import leaves, take_rows, tree_map
from dualopt.engine import _protocol as ask
from dualopt.engine._answers import unsound, usable_rows
from dualopt.engine._errors import LostError
from dualopt.engine._rows import under_each_other
from dualopt.engine._steps import averaged, means_of, weighed, weights_in
from dualopt.methods import Algorithm
from dualopt.methods.participation import Round

__all__ = ["Calls", "Elsewhere", "Found", "Told"]


Signature = tuple[str, tuple[tuple[tuple[Any, ...], str], ...]]
"""The structure of an upload, and the shape of a row and the type of each of its parts."""


class Told(NamedTuple):
    """What the server knows of a host."""

    rounds: int  # that the host is known to have settled
    owed: tuple[ask.Settle, ...]  # ends of rounds that it has not heard


class Elsewhere(NamedTuple):
    """What a checkpoint holds in place of the states of clients that hosts keep themselves."""

    run: str
    made: int  # messages so far
    hosts: tuple[Told, ...]
    lost: tuple[str, ...]


class Found(NamedTuple):
    """What came back in a round."""

    round: Round  # with the clients that count
    upload: Any  # rows in the order of these clients, or their sums; None if there is nothing to average
    mean: Any
    gradients: tuple[float, ...] | None  # of these clients


class Calls:
    """One conversation.

    Parameters
    ----------
    engine : Engine
        How requests reach the hosts.
    clients : sequence of tuple of int
        The numbers of the clients of each host, in the order of ``engine.hosts``.
    shape : tuple of int
        Shape of the model.
    """

    def __init__(self, engine: ask.Engine, clients: Sequence[tuple[int, ...]], shape: tuple[int, ...] = ()) -> None:
        self.shape = shape
        self.engine, self.hosts, self.clients = engine, list(engine.hosts), list(clients)
        self.run, self.made, self.rounds = "", 0, 0
        self.algorithm: Algorithm | None = None
        self.lost: list[str] = []  # sentences, one for each answer that did not count
        self._n_clients = sum(map(len, self.clients))
        self._owner = np.zeros(self._n_clients, dtype=np.int64)
        for h, ids in enumerate(self.clients):
            self._owner[list(ids)] = h
        self._owed: list[list[ask.Settle]] = [[] for _ in self.hosts]
        self._told = [0] * len(self.hosts)
        self._held = [-1] * len(self.hosts)  # which message each host holds
        self.asked: dict[int, tuple[int, ...]] = {}  # who worked in this round, by host
        self.weights: tuple[float, ...] | None = None  # of all clients, for the method; None where they are equal
        self._seen: set[Signature] = set()  # what uploads have looked like

    # --- a run --------------------------------------------------------------------------------------------------

    def begin(
        self,
        algorithm: Algorithm,
        run: str,
        since: Elsewhere | None,
        rounds: int,
        weights: tuple[float, ...] | None = None,
    ) -> None:
        """Take up a run, new or after some rounds."""
        self.algorithm, self.run, self.rounds, self.weights = algorithm, run, rounds, weights
        H = len(self.hosts)
        self.made, self.lost, self._seen = rounds, [], set()
        self._held, self._told, self._owed = [-1] * H, [0] * H, [[] for _ in self.hosts]
        if since is not None:
            self.made, self.lost = since.made, list(since.lost)
            self._told = [told.rounds for told in since.hosts]
            self._owed = [list(told.owed) for told in since.hosts]

    @property
    def elsewhere(self) -> Elsewhere:
        """What the later rounds need to know of the hosts."""
        hosts = tuple(Told(n, tuple(owed)) for n, owed in zip(self._told, self._owed, strict=True))
        return Elsewhere(self.run, self.made, hosts, tuple(self.lost))

    @property
    def tolerant(self) -> bool:
        """Whether the method can do without some clients in a round."""
        return self.algorithm is not None and "partial" in self.algorithm.supports

    def require_same_rounds(self, started: Sequence[ask.Started]) -> None:
        """Refuse hosts whose states are older than what they have told this run before."""
        for h, answer in enumerate(started):
            if answer.rounds < self._told[h]:
                raise LostError(
                    f"{self._name(h)} has the states of its clients after round {answer.rounds} and had reached round "
                    f"{self._told[h]}: its file is an old one, and the run cannot go on from it."
                )

    # --- the two phases -----------------------------------------------------------------------------------------

    def work(self, round: Round, message: Any) -> Found:
        """Have the active clients work, and return what they upload.

        Raises
        ------
        LostError
            If an answer does not count, and the method needs every client.
        """
        self.rounds, self.asked = round.n, self._shares(round.clients)
        if not round.clients:
            return Found(round, None, None, None)
        weights = self._weights_in(round)
        requests = {h: [self._work(h, own, round, message, weights)] for h, own in self.asked.items()}
        answers, faults = self.exchange(requests, round.n)
        uploads = {h: found[0] for h, found in answers.items()}
        kept = self._sound(uploads, round, faults)
        self._forgive(faults, kept, round)
        if faults:
            left = {j for ids in kept.values() for j in ids}
            round = replace(round, clients=tuple(j for j in round.clients if j in left))
        if not round.clients:
            return Found(round, None, None, None)
        parts = [uploads[h] for h in kept if kept[h]]
        order = self._order(round, [kept[h] for h in kept if kept[h]])
        gradients = None if parts[0].gradients is None else _joined([x.gradients for x in parts], order)
        if not round.communicate:
            return Found(round, None, None, gradients)
        upload, average = self._averaged([x.upload for x in parts], order, round)
        return Found(weighed(round, self.weights), upload, average, gradients)

    def settle(self, round: Round, message: Any) -> None:
        """End the round: ``round.clients`` are those that were counted, ``message`` is the one that it ended with."""
        assert self.algorithm is not None
        communicated = round.communicate and bool(round.clients)
        listens = self.algorithm.listens if communicated else frozenset()
        self.made += communicated
        self.rounds = round.n + 1
        count = self._shares(round.clients)
        for h, ids in enumerate(self.clients):
            worked, own = self.asked.get(h), count.get(h, ())
            if worked is None and "inactive" not in listens:
                continue
            hears = ("active" in listens and bool(own)) or ("inactive" in listens and len(own) < len(ids))
            whom = None if worked is not None and len(own) == len(worked) else own
            tree = message if hears else None
            self._owed[h].append(ask.Settle(self.run, round.n, communicated, whom, self.made, tree))
        if self.engine.together:
            self.flush()

    def flush(self) -> None:
        """Tell the hosts now how the latest rounds ended."""
        owing = {h: [] for h, owed in enumerate(self._owed) if owed}
        if owing:
            _, faults = self.exchange(owing, self.rounds)
            for h, reason in faults.items():
                self._complain(h, self.rounds, reason)

    # --- anything else ------------------------------------------------------------------------------------------

    def ask_all(self, request: Any) -> list[Any]:
        """Return the answers of all hosts to one request, or to one for each of them.

        Raises
        ------
        LostError
            If a host does not answer.
        """
        each = request if isinstance(request, list) else [request] * len(self.hosts)
        answers, faults = self.exchange({h: [x] for h, x in enumerate(each)}, self.rounds)
        for h, reason in faults.items():
            raise LostError(f"{self._name(h)} did not answer in round {self.rounds}: {reason}.")
        return [answers[h][0] for h in range(len(self.hosts))]

    def exchange(self, requests: Mapping[int, list[Any]], n: int) -> tuple[dict[int, list[Any]], dict[int, str]]:
        """Ask hosts, each first for what it is owed; return the answers, and why there are none, by host.

        Raises
        ------
        LostError
            If a host refuses for good.
        """
        batches = {h: [*self._owed[h], *own] for h, own in requests.items()}
        found = self.engine.call({self.hosts[h]: batch for h, batch in batches.items()})
        answers, faults = {}, {}
        for h, batch in batches.items():
            answer = found.get(self.hosts[h])
            if (reason := _fault(batch, answer, len(self.clients[h]), self.shape)) is not None:
                if isinstance(answer, ask.Failed) and answer.final:
                    raise LostError(f"{self._name(h)} refuses round {n}: {reason}.")
                faults[h], self._held[h] = reason, -1
                continue
            for sent in batch:
                if getattr(sent, "message", None) is not None:
                    self._held[h] = sent.made
            if self._owed[h]:
                self._told[h], self._owed[h] = self._owed[h][-1].n + 1, []
            answers[h] = found[self.hosts[h]][len(batch) - len(requests[h]) :]
        return answers, faults

    # --- what they are made of ----------------------------------------------------------------------------------

    def _name(self, h: int) -> str:
        return f"host {self.hosts[h]}"

    def _shares(self, clients: tuple[int, ...]) -> dict[int, tuple[int, ...]]:
        """Return which of these clients each host has; hosts without any are left out."""
        if len(self.hosts) == 1:
            return {0: clients} if clients else {}
        if len(clients) == self._n_clients:
            return dict(enumerate(self.clients))
        ids = np.asarray(clients, dtype=np.int64)
        owners = self._owner[ids]
        found = {h: tuple(ids[owners == h].tolist()) for h in np.unique(owners).tolist()}
        return {h: self.clients[h] if len(own) == len(self.clients[h]) else own for h, own in found.items()}

    def _weights_in(self, round: Round) -> tuple[dict[int, float], ...]:
        """Return the weights of the active clients in each mean, where hosts add with them; nothing for plain sums."""
        assert self.algorithm is not None
        found = weights_in(self.algorithm, round, self.weights) if self.engine.summed else ()
        if all(own is None for own in found):
            return ()
        ones = (1.0,) * round.n_active
        return tuple(dict(zip(round.clients, own or ones, strict=True)) for own in found)

    def _work(
        self, h: int, own: tuple[int, ...], round: Round, message: Any, weights: tuple[dict[int, float], ...]
    ) -> ask.Work:
        will_hold = next((s.made for s in reversed(self._owed[h]) if s.message is not None), self._held[h])
        tree = None if will_hold == self.made else message
        whom = None if len(own) == len(self.clients[h]) else own
        n, N, summed = round.n, round.n_clients, self.engine.summed
        named = tuple(tuple(each[j] for j in own) for each in weights)
        return ask.Work(self.run, n, N, round.seed, round.communicate, whom, self.made, tree, summed, named)

    def _sound(
        self, uploads: dict[int, ask.Worked], round: Round, faults: dict[int, str]
    ) -> dict[int, tuple[int, ...]]:
        """Return the clients whose uploads can be averaged, by host, and note what is wrong with the others."""
        kept: dict[int, tuple[int, ...]] = {}
        signatures: dict[int, Signature] = {}
        for h, found in uploads.items():
            own = self.asked[h]
            if found.gradients is not None and len(found.gradients) != len(own):
                faults[h] = f"it counts the gradients of {len(found.gradients)} clients, not of {len(own)}"
            elif (found.upload is not None) != round.communicate and not self.engine.summed:
                faults[h] = "it uploads nothing" if round.communicate else "it uploads in a round without communication"
            else:
                kept[h] = own
                if found.upload is not None:
                    signatures[h] = _signature(found.upload, None if self.engine.summed else len(own))
        right = self._right(signatures)
        for h in list(signatures):
            found = uploads[h].upload
            if signatures[h] not in right:
                faults[h] = f"its upload has the wrong shapes or types, {_words(signatures[h])}"
                del kept[h]
            elif self.engine.summed:
                if not usable_rows(tree_map(lambda x: x[None, ...], found), 1, self.shape).all():
                    faults[h] = "its upload is not finite"
                    del kept[h]
            elif not (sound := usable_rows(found, len(kept[h]), self.shape)).all():
                rows = np.flatnonzero(sound).tolist()
                wrong = ", ".join(str(kept[h][k]) for k in np.flatnonzero(~sound).tolist())
                faults[h] = f"the upload of client {wrong} is not finite"
                kept[h] = tuple(kept[h][k] for k in rows)
                gradients = uploads[h].gradients
                part = None if gradients is None else [gradients[k] for k in rows]
                uploads[h] = uploads[h]._replace(upload=take_rows(found, rows), gradients=part)  # pyright: ignore
        return kept

    def _right(self, signatures: Mapping[int, Signature]) -> set[Signature]:
        """Return what the uploads of a round should look like: as most do, then as earlier ones did, or as models do.

        A method may upload different things in different rounds, so that an upload that has none beside it, over a
        wire, is right if all its parts have been seen, or have the shape of the model, or are numbers.
        """
        count = Counter(signatures.values())

        def rank(signature: Signature) -> tuple[int, bool, bool]:
            return count[signature], signature in self._seen, any(part[0] == self.shape for part in signature[1])

        best = max(count, key=rank, default=None)
        if best is None:
            return set()
        known = {part for _, parts in self._seen for part in parts}
        plausible = all(part in known or part[0] in (self.shape, ()) for part in best[1])
        if len(count) == len(signatures) == 1 and not self.engine.together and not plausible:
            return set()
        self._seen.add(best)
        return {best}

    def _forgive(self, faults: Mapping[int, str], kept: Mapping[int, tuple[int, ...]], round: Round) -> None:
        """Note answers that do not count, or end a run that cannot do without them."""
        for h, reason in faults.items():
            left_out = [j for j in self.asked[h] if j not in set(kept.get(h, ()))]
            if not self.tolerant:
                raise LostError(
                    f"{type(self.algorithm).__name__} needs every client, and {self._name(h)} did not count in round "
                    f"{round.n}: {reason}."
                )
            self._complain(h, round.n, reason, left_out)

    def _complain(self, h: int, n: int, reason: str, clients: Sequence[int] = ()) -> None:
        named = f" (clients {', '.join(map(str, clients))})" if clients else ""
        self.lost.append(f"round {n}: {self._name(h)}{named} did not count: {reason}")

    def _order(self, round: Round, parts: Iterable[tuple[int, ...]]) -> np.ndarray | None:
        """Return where the clients of the round are among the rows of all parts; None where they are in order."""
        ids = tuple(j for part in parts for j in part)
        if ids == round.clients:
            return None
        place = {j: k for k, j in enumerate(ids)}
        return np.array([place[j] for j in round.clients], dtype=np.int64)

    def _averaged(self, uploads: list[Any], order: np.ndarray | None, round: Round) -> tuple[Any, Any]:
        """Return the uploads of all together, and their means."""
        assert self.algorithm is not None
        if self.engine.summed:
            uploads = [x for x in uploads if x is not None]
            total = tree_map(lambda *sums: sum(sums[1:], start=sums[0]), *uploads)
            sizes = [sum(each.values()) for each in self._weights_in(round)]
            if not sizes:
                average = tree_map(lambda x: x / round.n_active, total)
                return tree_map(lambda x: x[None, ...], total), means_of(self.algorithm, (average,))
            averages = [tree_map(lambda x, size=size: x / size, each) for each, size in zip(total, sizes, strict=True)]
            return tree_map(lambda x: x[None, ...], averages[0]), means_of(self.algorithm, averages)
        rows = uploads[0] if len(uploads) == 1 else tree_map(_concatenated, *uploads)
        rows = rows if order is None else take_rows(rows, order)
        return rows, averaged(self.algorithm, rows, round, self.weights)


def _fault(batch: Sequence[Any], answers: Any, n: int, shape: tuple[int, ...]) -> str | None:
    """Say why these are not the answers of ``n`` clients to a batch of requests."""
    if answers is None:
        return "no answer in time"
    if isinstance(answers, ask.Failed):
        return answers.reason
    if isinstance(answers, Exception):
        return str(answers).rstrip(".") or type(answers).__name__
    if not isinstance(answers, Sequence) or len(answers) != len(batch):
        return "its answers are not those to the requests"
    for request, answer in zip(batch, answers, strict=True):
        if not isinstance(answer, ask.ANSWERS[type(request)]):
            return f"it answers {type(request).__name__.lower()} by something else"
        if getattr(answer, "run", None) not in (None, getattr(request, "run", None)):
            return "its answer is of another run"
        if hasattr(answer, "n") and answer.n != request.n:
            return f"its answer is of round {answer.n}"
        if (reason := unsound(request, answer, n, shape)) is not None:
            return reason
    return None


def _signature(upload: Any, rows: int | None) -> Signature:
    """Return structure, shapes of a row and types of an upload; other shapes for a wrong number of rows."""
    parts = []
    for x in leaves(upload):
        shape = tuple(getattr(x, "shape", ("none",)))
        if rows is not None:
            shape = shape[1:] if shape[:1] == (rows,) else ("rows", *shape)
        parts.append((shape, str(getattr(x, "dtype", type(x).__name__))))
    return type(upload).__name__, tuple(parts)


def _words(signature: Signature) -> str:
    return ", ".join(f"{kind} {shape}" for shape, kind in signature[1])


def _joined(parts: list[Any], order: np.ndarray | None) -> tuple[float, ...]:
    """Return numbers of all clients in order."""
    numbers = np.concatenate([np.asarray(part, dtype=float) for part in parts])
    return tuple((numbers if order is None else numbers[order]).tolist())


def _concatenated(*rows: Any) -> Any:
    return under_each_other(rows)
