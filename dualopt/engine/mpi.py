"""Clients on the processes of an MPI program (``pip install "dualopt[mpi]"``).

``mpiexec -n 4 dualopt run --engine mpi ...`` runs a method whose clients are dealt out to four processes. Each process
reads the rows of its own clients, holds their states, and does their work; process 0 is the server as well. Uploads
are gathered in the order of the clients, so that a run has the digits of one process, whatever the number of processes;
``--reduce fast`` has MPI add them up instead, which saves time and costs the last digits.

Before they run, the processes compare the versions of their code, methods, options and, of data sets that each of them
reads, the contents: where one has others, all end with one sentence that says what differs, and in which process.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from threading import current_thread, main_thread
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn
from zlib import crc32

import numpy as np

from dualopt.arrays._checks import require
from dualopt.arrays.codec import Known, Packed, class_name, class_named, pack, unpack
from dualopt.arrays.tree import tree_map
from dualopt.engine._host import Host
from dualopt.engine._inline import elsewhere
from dualopt.engine._mpi_communicator import MpiCommunicator, sentence
from dualopt.engine._mpi_wire import Wire
from dualopt.engine._mpi_words import (
    all_upload,
    answers_of,
    told_apart,
    trace_of,
    tree_of,
    undisturbed,
    without_sums,
)
from dualopt.engine._remote import RemoteClients
from dualopt.objectives import Objective
from dualopt.runs.trace import Trace

__all__ = ["MPI", "REDUCE"]

REDUCE = ("gather", "fast")
_NONE: Mapping[str, Any] = MappingProxyType({})
FAILED = 1  # exit code of a program that ends because of an error in one process


class Asked(NamedTuple):
    """What process 0 tells all others: the requests to each of them, None for nobody."""

    requests: tuple[Any, ...]
    types: tuple[str, ...]  # classes of a method that hosts need not know yet


class Called(NamedTuple):
    """What process 0 tells the others to call, as it does itself."""

    name: str
    argument: Any  # a tree


class Ended(NamedTuple):
    """The last that process 0 tells the others: that it needs them no more."""

    sentence: str  # what went wrong, "" for nothing
    result: Any  # a tree


class MPI:
    """The clients are on the processes of an MPI program.

    All processes make this object, build the objective of their own clients, and call the same functions in the same
    order. The clients are numbered in the order of the processes.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm, optional
        The processes; all of the program when not given.
    reduce : str, default "gather"
        "gather": process 0 receives the upload of every client, and averages them in the order of the clients: a run
        has the digits of one process. "fast": every process adds up its own, and MPI adds these sums; the digits then
        depend on the number of processes. The same holds of certificates.

    Attributes
    ----------
    peers : dualopt.arrays.communicator.Communicator
        The processes, for :func:`dualopt.linear_model`, which agrees with them on what concerns all rows.
    bytes_up, bytes_down : int
        What process 0 has received from the others, and sent to them.

    Raises
    ------
    ModuleNotFoundError
        If mpi4py is missing.
    ValueError
        If ``reduce`` is another word.

    Examples
    --------
    In a file ``spmd.py``, run by ``mpiexec -n 2 python -m mpi4py spmd.py`` (``-m mpi4py`` ends all processes when one
    raises an exception)::

        import numpy as np
        from dualopt import linear_model, run
        from dualopt.engine import MPI
        from dualopt.losses import Multinomial

        mpi = MPI()
        rng = np.random.default_rng(mpi.peers.rank)  # each process has rows of its own
        X, y = rng.standard_normal((400, 20)), rng.integers(0, 3, 400)
        common = {"loss": Multinomial(classes=3), "mu": 0.01, "clients": 4, "client_weights": "rows"}
        block = linear_model(X, y, **common, peers=mpi.peers)
        trace = run("dualfl", block, rounds=200, tol=1e-6, engine=mpi)  # the same trace in all processes
        if mpi.peers.rank == 0:
            print(trace.status, trace.last["certified_error"])
    """

    in_process = True  # the processes live and die together

    def __init__(self, comm: Any = None, *, reduce: str = "gather") -> None:
        require(reduce in REDUCE, f"reduce must be one of {', '.join(REDUCE)}", reduce)
        self.peers = MpiCommunicator(comm)
        self.reduce, self.partial_sums = reduce, reduce == "fast"
        self.hosts: Sequence[int] = tuple(range(self.peers.size))
        self.signal = 0  # the signal that another process has received
        self._wire = Wire(self.peers.mpi, self.peers.comm)
        self._known = Known()
        self._host: Any = None
        self._functions: Mapping[str, Callable[[Any], Any]] = _NONE
        self._types: tuple[str, ...] = ()
        self._busy = False

    @property
    def bytes_up(self) -> int:
        """What process 0 has received from the others."""
        return self._wire.bytes_up

    @property
    def bytes_down(self) -> int:
        """What process 0 has sent to the others."""
        return self._wire.bytes_down

    def restart_counters(self) -> None:
        """Count bytes from zero."""
        self._wire.bytes_up = self._wire.bytes_down = 0

    # --- what all processes call --------------------------------------------------------------------------------

    def run_everywhere(
        self, function: Callable[[Objective], Trace], block: Objective, facts: Mapping[str, Any] = _NONE
    ) -> Trace:
        """Call ``function(clients)`` in process 0, with the clients of all processes, and return its trace in all.

        :func:`dualopt.run` calls this, in all processes, with the block of each.

        Parameters
        ----------
        function : callable
            What runs a method.
        block : Objective
            The clients of this process.
        facts : dict, optional
            What must be the same in all processes: method and options, by name.

        Raises
        ------
        ValueError
            If a process fails, or they do not agree; in the others with the same sentence.
        """
        self.peers.agree(facts)
        if self.peers.rank:
            return trace_of(self.serve(block))
        with self.sharing(block) as clients:
            trace = function(clients)
            self.end(tree_of(trace))
        return trace

    def clients(self, objective: Objective, prepared: Any = None) -> NoReturn:
        """Refuse: there is no one process that could go through the rounds of all.

        Raises
        ------
        ValueError
            Always.
        """
        raise ValueError(
            "engine MPI() is for dualopt.run, which all processes call; use MPI.sharing for anything else."
        )

    @contextmanager
    def sharing(self, block: Objective, functions: Mapping[str, Callable[[Any], Any]] = _NONE) -> Iterator[Any]:
        """Yield the clients of all processes in process 0, and None in the others when process 0 is through.

        Parameters
        ----------
        block : Objective
            The clients of this process.
        functions : dict of str to callable, optional
            What process 0 may `ask` for by name: functions that all processes call together.
        """
        if self.peers.rank:
            self.serve(block, functions)
            yield None
            return
        self.peers.agree({"reduce": self.reduce})
        self._host, self._functions = Host(block), functions
        try:
            yield elsewhere(block, RemoteClients(self))
        except BaseException as error:
            self.fail(sentence(error, 0) if isinstance(error, Exception) else "process 0 was interrupted.")
            raise
        finally:
            self.end()

    def serve(self, block: Objective, functions: Mapping[str, Callable[[Any], Any]] = _NONE) -> Any:
        """Do what process 0 asks of the clients of this process, until it ends; return what it says then.

        Raises
        ------
        ValueError
            If process 0 has ended with an error.
        """
        self.peers.agree({"reduce": self.reduce})
        host, like = Host(block), block.zeros()
        with self._deaf():
            while True:
                (message,) = unpack(self._wire.receive(), self._known, like, exact=True)
                if isinstance(message, Ended):
                    break
                if isinstance(message, Called):
                    with suppress(ValueError, RuntimeError):  # process 0 has the same error, and says so
                        functions[message.name](message.argument)
                    continue
                host.types = (*host.types, *map(class_named, message.types))
                self._exchange(message.requests, host)
        if message.sentence:
            raise ValueError(message.sentence)
        return message.result

    # --- what process 0 calls -----------------------------------------------------------------------------------

    def learn(self, types: Iterable[type]) -> None:
        """Tell the hosts the classes of a method; all processes have imported them."""
        types = tuple(types)
        self._types = tuple(map(class_name, types))
        self._host.types = (*self._host.types, *types)

    def call(self, requests: Mapping[int, Sequence[Any]]) -> dict[int, Any]:
        """Ask hosts, and return their answers."""
        everything = tuple(None if h not in requests else tuple(requests[h]) for h in self.hosts)
        types, self._types = self._types, ()
        with undisturbed():
            self._busy = True
            self._wire.tell(pack([Asked(everything, types)], exact=True))
            packed = self._exchange(everything, self._host)
            self._busy = False
        assert packed is not None
        like = self._host.objective.zeros()
        found = (unpack(x, self._known, like, exact=True)[0] for x in packed)
        answers = {h: told_apart(own, answer) for h, own, answer in zip(self.hosts, everything, found, strict=True)}
        return {h: answers[h] for h in requests}

    def ask(self, name: str, argument: Any = None) -> Any:
        """Return what a function of `sharing` returns that all processes call together."""
        with undisturbed():
            self._busy = True
            self._wire.tell(pack([Called(name, argument)], exact=True))
            try:
                return self._functions[name](argument)
            finally:
                self._busy = False

    def end(self, result: Any = None) -> None:
        """Let the other processes go."""
        if self._host is not None:
            self._host = None
            self._wire.tell(pack([Ended("", result)], exact=True))

    def fail(self, words: str) -> None:
        """Let the other processes go with an error."""
        if self._busy:  # in the middle of a call, in which they wait for something else
            self.abort(words)
        self._host = None
        self._wire.tell(pack([Ended(words, None)], exact=True))

    def abort(self, words: str, code: int = FAILED) -> NoReturn:
        """End all processes at once, from any of them."""
        os.write(2, f"dualopt: {words}\n".encode())  # also where this process prints nothing else
        self.peers.comm.Abort(code)
        raise SystemExit(code)

    # --- a call -------------------------------------------------------------------------------------------------

    def _exchange(self, everything: tuple[Any, ...], host: Host) -> list[Packed] | None:
        """Answer what this process is asked, and bring all answers to process 0."""
        own = everything[self.peers.rank]
        try:
            answers = () if own is None else answers_of(host, own, self.peers.rank)
            adds = self.partial_sums and all_upload(everything)
            brief, sums = without_sums(answers) if adds else (answers, None)
            packed = pack([brief], exact=True)
        except Exception as error:  # memory that is full; others wait, and could not be told
            self.abort(sentence(error, self.peers.rank))
        if adds:
            return self._added(packed, answers, sums)
        found, mark = self._wire.gather(packed, self.signal)
        self._notice(mark)
        return found

    def _added(self, packed: Packed, answers: Any, sums: list[np.ndarray] | None) -> list[Packed] | None:
        """Return the answers of all, with the sum of all uploads in that of process 0."""
        signature = 0 if sums is None else 1 + crc32(pack(sums).header)
        same = self._wire.marks(signature)[:, 0]
        if not (same[0] and (same == same[0]).all()):  # one has failed: nothing can be added
            found, mark = self._wire.gather(pack([answers], exact=True), self.signal)
            self._notice(mark)
            return found
        totals = self._wire.added(sums or [])
        found, mark = self._wire.gather(packed, self.signal)
        self._notice(mark)
        if found is not None and totals is not None:
            waiting = iter(totals)
            upload = tree_map(lambda _: next(waiting), answers[-1].upload)
            found[0] = pack([(*answers[:-1], answers[-1]._replace(upload=upload))], exact=True)
        return found

    def _notice(self, mark: int) -> None:
        self.signal = max(self.signal, mark)

    @contextmanager
    def _deaf(self) -> Iterator[None]:
        """Leave signals to process 0, which ends the run in good order; it is told of them."""
        if current_thread() is not main_thread():
            yield
            return

        def note(number: int, _: object) -> None:
            self.signal = number

        before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
