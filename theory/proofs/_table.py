"""Every method under every law of participation: what is proved, what theorems promise, and what some clients need.

``python -m theory.proofs --table`` computes the rows that ``docs/proved_rates.csv`` lacks, writes each as soon as it is
there, and then the page ``docs/proved_rates.md``. Methods are discovered; what is new goes into ``LAWS``.
"""

from __future__ import annotations

import csv
import signal
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple, Self

import numpy as np

import dualopt.methods
from dualopt.engine.rounds import resolve
from dualopt.lab.proofs import Rate, checker, prove
from dualopt.lab.proofs._promised import promised
from dualopt.lab.proofs._quadratics import lower_bound
from dualopt.lab.proofs._setting import Setting
from dualopt.lab.proofs._tracked import SENTENCE
from dualopt.methods import Known
from dualopt.methods.participation import as_participation
from dualopt.objectives import Quadratic
from dualopt.spec.discover import discover

__all__ = ["CLIENTS", "DATA", "KAPPAS", "LAWS", "LIMIT", "TOLERANCE", "Row", "complete", "computed", "keys", "stored"]

DATA = Path(__file__).parents[2] / "docs" / "proved_rates.csv"
KAPPAS = (10, 100, 1000)
CLIENTS = (4, 20)
LIMIT = 120
"""Seconds of a processor that a row may take."""
TOLERANCE = 2e-5
"""Of a proved factor: 0.00001 of the bisection, and as much of the solver."""
DIGITS = 7
"""After the point, of the factors in the file."""


class Law(NamedTuple):
    """Who takes part: in words, what a method must support, and the text for a method, N clients and kappa."""

    title: str
    need: str
    of: Callable[[str, int, float], str]


def _clients(N: int, kappa: float) -> Quadratic:
    """Return clients with mu = 1 and L = kappa, of which theorems are asked."""
    return Quadratic(A=np.array([np.diag([1.0, kappa])] * N), b=np.zeros((N, 2)))


def _own_coin(method: str, N: int, kappa: float) -> str:
    """Return the coin that a method suggests if it has one, and a half otherwise."""
    suggested = discover(dualopt.methods)[method]().suggested(_clients(N, kappa))
    return f"communicate={getattr(suggested, 'probability', 0.5)!r}"


LAWS = {
    "all": Law("All clients in every round", "", lambda method, N, kappa: "full"),
    "quarter": Law(
        "A quarter of the clients, every subset equally likely", "partial", lambda method, N, kappa: f"subset={N // 4}"
    ),
    "coins": Law("Each client by a coin of its own", "partial", lambda method, N, kappa: "bernoulli=0.5"),
    "communication": Law("Communication by one coin for all", "skip", _own_coin),
}


class Key(NamedTuple):
    """What a row is about."""

    method: str
    law: str
    clients: int
    kappa: float

    @property
    def participation(self) -> str:
        """Who takes part."""
        return LAWS[self.law].of(self.method, self.clients, self.kappa)


class Row(NamedTuple):
    """What is known of a method under a law: factors per round of squares of distances, None where there is none."""

    key: Key
    proved: float | None = None
    late: bool = False  # whether the proof is about late rounds
    claimed: float | None = None  # the least factor of a theorem
    source: str = ""  # its name
    bound: bool = False  # whether it is about a bound with a constant before it, in place of a potential
    happens: float | None = None  # on the slowest clients that were found
    seconds: float = 0.0  # of a processor
    why: str = ""  # it is not proved

    @classmethod
    def read(cls, given: dict[str, str]) -> Self:
        """Return a row from what is in the file.

        Examples
        --------
        >>> row = Row(Key("feddyn", "all", 4, 10), 0.5, claimed=0.75, source="Theorem B", seconds=1.5)
        >>> Row.read({name: str(value) for name, value in row.written().items()}) == row
        True
        """
        key = Key(given["method"], given["law"], int(given["clients"]), float(given["kappa"]))
        numbers = {name: float(given[name]) if given[name] else None for name in ("proved", "claimed", "happens")}
        flags = {name: given[name] == "yes" for name in ("late", "bound")}
        return cls(key, **numbers, **flags, source=given["source"], seconds=float(given["seconds"]), why=given["why"])

    def written(self) -> dict[str, Any]:
        """Return what goes into the file."""
        found = self.key._asdict() | {"kappa": f"{self.key.kappa:g}"} | self._asdict()
        del found["key"]

        def text(x: Any) -> Any:
            return {True: "yes", False: "", None: ""}[x] if x is None or isinstance(x, bool) else x

        return {name: text(x) for name, x in found.items()}


def keys() -> list[Key]:
    """Return what the table has rows about: methods and the laws that they admit.

    Examples
    --------
    >>> sorted({key.law for key in keys() if key.method == "dualfl"})
    ['all']
    """
    return [
        Key(name, law, N, kappa)
        for law, own in LAWS.items()
        for name, kind in discover(dualopt.methods).items()
        if {own.need} - {""} <= kind.supports
        for N in CLIENTS
        for kappa in KAPPAS
    ]


def stored(path: Path = DATA) -> dict[Key, Row]:
    """Return the rows in the file, if there is one."""
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        return {row.key: row for row in map(Row.read, csv.DictReader(file))}


def complete(path: Path = DATA) -> Iterator[Row]:
    """Compute the rows that the file lacks, and yield each once it is written; then drop those of what is no more."""
    known = stored(path)
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(Row(Key("", "all", 1, 1)).written()), lineterminator="\n")
        if not known:
            writer.writeheader()
        for key in keys():
            if key not in known:
                known[key] = computed(key)
                writer.writerow(known[key].written())
                file.flush()
            yield known[key]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, writer.fieldnames, lineterminator="\n")
        writer.writeheader()
        writer.writerows(known[key].written() for key in keys())


def computed(key: Key) -> Row:
    """Return a row: a proof, and where there is none the reason."""
    given: dict[str, Any] = {"mu": 1.0, "L": float(key.kappa), "clients": key.clients}
    row, begin = Row(key)._replace(**_claimed(key)), process_time()
    try:
        with _limited(LIMIT):
            rate = prove(key.method, **given, participation=key.participation)
        row = row._replace(happens=rate.lower_bound)
        row = row._replace(proved=rate.factor, late=rate.asymptotic) if rate.proved else row._replace(why=_fails(rate))
    except (ValueError, RuntimeError, TimeoutError) as error:
        row = row._replace(why=_reason(error))
        if not isinstance(error, ValueError):  # the search is about the same rounds, and quick
            setting = Setting.of(key.method, 1.0, given["L"], key.clients, as_participation(key.participation))
            row = row._replace(happens=lower_bound(setting)[0])
    factors = {name: getattr(row, name) for name in ("proved", "claimed", "happens")}
    rounded = {name: None if x is None else round(x, DIGITS) for name, x in factors.items()}
    return row._replace(**rounded, seconds=round(process_time() - begin, 2))


def _claimed(key: Key) -> dict[str, Any]:
    """Return the least factor of a theorem that applies, and whose it is."""
    f, who = _clients(key.clients, float(key.kappa)), as_participation(key.participation)
    found = promised(resolve(key.method, f, who), Known.of(f, who))
    if not found:
        return {}
    theorem, factor = min(found, key=lambda pair: pair[1])
    return {"claimed": factor, "source": theorem.source, "bound": theorem.potential is None}


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Raise TimeoutError after some seconds of a processor, where the system has a clock for it."""
    if not hasattr(signal, "ITIMER_PROF"):
        yield
        return

    def interrupt(*_: Any) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGPROF, interrupt)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def _fails(rate: Rate) -> str:
    """Return why no factor below 1 was found."""
    if rate.lower_bound is None or rate.lower_bound < 1.0:
        return "no quadratic Lyapunov function of this kind was found"
    curvatures = " and ".join(f"{n} of curvature {h:g}" for h, n in Counter(rate.slowest).items())
    return f"{'diverges' if rate.lower_bound > 1.0 + 1e-9 else 'does not converge'} on quadratic clients, {curvatures}"


REASONS = {
    "algorithm must have numbers in its states that settle": "the numbers in its states do not settle, or rounds of "
    "several kinds take turns",
    "algorithm must do the same in every round": "a round depends on its number",
    "algorithm must keep its fixed point": "rounds without communication move the minimiser",
    "algorithm must have the minimiser as a fixed point": "its rounds move the minimiser: it is no fixed point, or "
    "under conditions only",
}
"""What refusals say that the prover has for methods, in a few words."""


def _reason(error: Exception) -> str:
    """Return why the prover refuses, and the line of code that is no linear algebra."""
    said = str(error)
    if isinstance(error, TimeoutError):
        return f"no proof within {LIMIT} seconds of a processor"
    if isinstance(error, RuntimeError):
        return f"the solver is too inexact: {said.partition(': ')[2].rstrip('.')}"
    if said != SENTENCE:
        return next((words for begin, words in REASONS.items() if said.startswith(begin)), said.rstrip("."))
    prover = Path(checker.__file__).parent
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).parent != prover]
    return f"no linear algebra: `{frames[-1].line}` in {Path(frames[-1].filename).name}"
