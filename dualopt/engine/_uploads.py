"""What the server makes of the uploads of a round: which of them count, and their mean."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dualopt.arrays.tree import leaves, take_rows, tree_map
from dualopt.arrays.xp import array_namespace
from dualopt.engine import _protocol as protocol
from dualopt.engine._answers import usable_rows
from dualopt.engine._rows import added, under_each_other
from dualopt.engine._steps import averaged, means_of
from dualopt.methods import Algorithm
from dualopt.methods.participation import Round

__all__ = ["Explosions", "UploadChecks", "from_rows", "from_sums", "joined"]

Signature = tuple[str, tuple[tuple[tuple[Any, ...], str], ...]]
"""The structure of an upload, and the shape of a row and the type of each of its parts."""


EXPLODES = 1e8  # times as large as what there was before, beside 1


class Explosions:
    """Notes whose uploads are suddenly far larger than all others: whom to ask where the run has diverged.

    Such an upload counts. A client whose own steps are too long for its data uploads the same numbers as one that lies,
    and without it the method would be another one than in one process.

    Examples
    --------
    >>> seen = Explosions()
    >>> for n, numbers in enumerate([(3.0, 2.0), (4.0, 1e150), (1e151, 1e150)]):
    ...     seen.note(n, {f"host {h}": protocol.Uploaded("run", n, np.array([x]), None) for h, x in enumerate(numbers)})
    >>> seen.sentences
    ['in round 1 host 1 uploaded 1e+150, where nothing had been above 3']
    """

    def __init__(self) -> None:
        self.sentences: list[str] = []
        self._largest: float | None = None

    def note(self, n: int, uploads: Mapping[str, protocol.Uploaded]) -> None:
        """Compare the uploads of a round with those before, in the first one with the least."""
        sizes = {host: _size(found.upload) for host, found in uploads.items() if found.upload is not None}
        if not sizes:
            return
        usual = min(sizes.values()) if self._largest is None else self._largest
        for host, size in sizes.items():
            if size > EXPLODES * (1.0 + usual):
                sentence = f"in round {n} {host} uploaded {size:.3g}, where nothing had been above {usual:.3g}"
                self.sentences.append(sentence)
        self._largest = max(usual, *sizes.values())


def _size(upload: Any) -> float:
    """Return the size of the largest finite number of an upload."""
    largest = 0.0
    for x in leaves(upload):
        xp = array_namespace(x)
        sizes = xp.abs(x)
        largest = max(largest, float(xp.max(xp.where(xp.isfinite(sizes), sizes, xp.zeros_like(sizes)))))
    return largest


class UploadChecks:
    """Tells which uploads of hosts can be averaged, by what those of other hosts and rounds have looked like.

    Parameters
    ----------
    engine : Engine
        How the hosts are reached.
    shape : tuple of int
        Shape of the model.
    """

    def __init__(self, engine: protocol.Engine, shape: tuple[int, ...]) -> None:
        self._sums, self._shape = engine.partial_sums, shape
        self._in_process = engine.in_process or getattr(engine, "secure", False)  # several hosts have made a secure sum
        self._seen: set[Signature] = set()

    def sound(
        self,
        uploads: dict[int, protocol.Uploaded],
        asked: Mapping[int, tuple[int, ...]],
        round: Round,
        faults: dict[int, str],
    ) -> dict[int, tuple[int, ...]]:
        """Return the clients whose uploads can be averaged, by host, and note what is wrong with the others."""
        kept: dict[int, tuple[int, ...]] = {}
        signatures: dict[int, Signature] = {}
        for h, found in uploads.items():
            own = asked[h]
            if found.gradients is not None and len(found.gradients) != len(own):
                faults[h] = f"it counts the gradients of {len(found.gradients)} clients, not of {len(own)}"
            elif (found.upload is not None) != round.communicate and not self._sums:
                faults[h] = "it uploads nothing" if round.communicate else "it uploads in a round without communication"
            else:
                kept[h] = own
                if found.upload is not None:
                    signatures[h] = _signature(found, None if self._sums else len(own))
        right = self._right(signatures)
        for h in list(signatures):
            found = uploads[h].upload
            if signatures[h] not in right:
                faults[h] = f"its upload has the wrong shapes or types, {_words(signatures[h])}"
                del kept[h]
            elif self._sums:
                if not usable_rows(tree_map(lambda x: x[None, ...], found), 1, self._shape).all():
                    for other in [h, *(g for g in kept if uploads[g].upload is None)]:  # who has added to this sum
                        faults[other] = "a sum with its upload is not finite"
                        del kept[other]
            elif not (sound := usable_rows(found, len(kept[h]), self._shape)).all():
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
            return count[signature], signature in self._seen, any(part[0] == self._shape for part in signature[1])

        best = max(count, key=rank, default=None)
        if best is None:
            return set()
        known = {part for _, parts in self._seen for part in parts}
        plausible = all(part in known or part[0] in (self._shape, ()) for part in best[1])
        if len(count) == len(signatures) == 1 and not self._in_process and not plausible:
            return set()
        self._seen.add(best)
        return {best}


def from_rows(
    algorithm: Algorithm, parts: Sequence[protocol.Uploaded], order: np.ndarray | None, round: Round, weights: Any
) -> tuple[Any, Any]:
    """Return the uploads of all together, a row each, and what the server is given of their means."""
    rows = tree_map(lambda *x: under_each_other(x), *(part.upload for part in parts))
    rows = rows if order is None else take_rows(rows, order)
    return rows, averaged(algorithm, rows, round, weights)


def from_sums(
    algorithm: Algorithm, parts: Sequence[protocol.Uploaded], round: Round, weights: Sequence[Mapping[int, float]]
) -> tuple[Any, Any]:
    """Return the same of sums that hosts have made with these weights, or plain ones; in one row.

    With several weights every client is in as many sums, and the row has them all.
    """
    total = added([x.upload for x in parts if x.upload is not None])
    if not weights:
        average = tree_map(lambda x: x / round.n_active, total)
        return tree_map(lambda x: x[None, ...], total), means_of(algorithm, (average,))
    sizes = [sum(each[j] for j in round.clients) for each in weights]
    averages = [tree_map(lambda x, size=size: x / size, each) for each, size in zip(total, sizes, strict=True)]
    return tree_map(lambda x: x[None, ...], tuple(averages)), means_of(algorithm, averages)


def joined(parts: list[Any], order: np.ndarray | None) -> tuple[float, ...]:
    """Return numbers of all clients in order."""
    numbers = np.concatenate([np.asarray(part, dtype=float) for part in parts])
    return tuple((numbers if order is None else numbers[order]).tolist())


def _signature(found: protocol.Uploaded, rows: int | None) -> Signature:
    """Return structure, shapes of a row and types of an upload; other shapes for a wrong number of rows."""
    parts = []
    for x in leaves(found.upload):
        shape = tuple(getattr(x, "shape", ("none",)))
        if rows is not None:
            shape = shape[1:] if shape[:1] == (rows,) else ("rows", *shape)
        parts.append((shape, str(getattr(x, "dtype", type(x).__name__))))
    return f"{type(found.upload).__name__}, {found.vectors} compressed", tuple(parts)


def _words(signature: Signature) -> str:
    return ", ".join(f"{kind} {shape}" for shape, kind in signature[1])
