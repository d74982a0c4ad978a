"""Where the clients of a command are: in this process, or on the processes of ``mpiexec -n 4 dualopt ...``.

All processes run the same command. They check the same options and build the problem together, each the clients of its
block; then process 0 goes on alone, and the others do what it asks of their clients until it ends. They print nothing
and write nothing.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn

from threadpoolctl import threadpool_limits

from dualopt.app.cli.options import PreparationOptions
from dualopt.app.cli.output import options_record
from dualopt.app.cli.reporting import TERMINATED, USER_ERROR
from dualopt.arrays._checks import require
from dualopt.arrays.communicator import ALONE, Communicator
from dualopt.arrays.xp import asarray_like
from dualopt.problem.build import build_problem
from dualopt.problem.options import PLACES, ProblemOptions
from dualopt.problem.problem import Problem
from dualopt.runs._data_hash import data_hash

if TYPE_CHECKING:
    from dualopt.engine import MPI

__all__ = ["EngineOptions", "Place", "follow", "lead", "placed"]

ENGINES = ("inline", "mpi")
OPTIONS_OF_ONE_PROCESS = (*PLACES, "out", "fresh", "keep_stale")
"""Where a process finds its data, and where the first one writes: they may differ."""

_connected: list[Place] = []  # filled once the processes share a communicator
_started: list[str] = []  # by whom this process was started beside others


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """Where the clients are.

    Parameters
    ----------
    engine : str
        inline: in this process; mpi: on the processes of mpiexec -n 4 dualopt ..., which read their own rows alone.
    reduce : str
        With mpi: gather averages in the order of the clients, with the digits of one process; fast lets MPI add up.
    """

    engine: str = "inline"
    reduce: str = "gather"

    def check(self) -> None:
        """Refuse what is unknown, or does not fit together."""
        require(self.engine in ENGINES, f"engine must be one of {', '.join(ENGINES)}", self.engine)
        require(self.engine == "mpi" or self.reduce == "gather", "reduce is for --engine mpi")
        alone = self.engine != "mpi" and bool(_started)  # others do the same, or wait for this one to share
        require(not alone, "engine must be mpi under mpiexec: otherwise each process would do all of the work")

    def record(self) -> dict[str, str]:
        """Return the options that results depend on: where clients are makes no difference to a digit."""
        return {} if self.reduce == "gather" else {"reduce": self.reduce}


class Place:
    """The processes of a command.

    Parameters
    ----------
    mpi : MPI, optional
        Their engine; None for one process.
    """

    def __init__(self, mpi: MPI | None) -> None:
        self.mpi = mpi
        self.peers: Communicator = ALONE if mpi is None else mpi.peers

    @property
    def is_first(self) -> bool:
        """Whether this process prints and writes."""
        return self.peers.rank == 0

    @property
    def signal(self) -> int:
        """The signal that another process has received; 0 for none."""
        return 0 if self.mpi is None else self.mpi.signal

    @property
    def described(self) -> dict[str, str]:
        """Say where the clients are, if not in this process."""
        if self.mpi is None:
            return {}
        sums = ", sums added by MPI" if self.mpi.partial_sums else ""
        return {"engine": f"MPI, {self.peers.size} {'process' if self.peers.size == 1 else 'processes'}{sums}"}

    def first(self, function: Callable[[], bool]) -> bool:
        """Return what a function returns in the first process, which alone calls it, or raise what it raises."""
        with self.peers.together():
            found = self.is_first and function()
        return bool(self.peers.total(int(found)))

    def check(self, preparation: PreparationOptions) -> None:
        """Refuse options that need all rows in one process."""
        if self.mpi is not None and preparation.steps():
            raise ValueError(
                "start and coordinates must be zero and plain with --engine mpi: others need all rows here."
            )

    def check_jobs(self, jobs: int) -> None:
        """Refuse further processes: those of MPI have the clients."""
        require(self.mpi is None or jobs == 1, "jobs must be 1 with --engine mpi", jobs)

    def built(self, options: ProblemOptions, *, test: bool = False) -> Problem:
        """Build the problem, each process with the clients of its block."""
        require(self.mpi is None or options.device == "cpu", "device must be cpu with --engine mpi", options.device)
        return build_problem(options, test=test, peers=self.peers)

    @contextmanager
    def shared(self, problem: Problem, threads: int | None = None) -> Iterator[Any]:
        """Yield the problem with the clients of all processes in the first one; None in the others, when it is over.

        Parameters
        ----------
        problem : Problem
            With the clients of this process.
        threads : int, optional
            Threads of the linear algebra in the other processes.
        """
        if self.mpi is None:
            yield problem
            return
        objective, peers = problem.objective, self.peers
        digest = data_hash(problem, peers)

        def right(theta: Any) -> Any:
            return peers.total(problem.count_right_here(asarray_like(theta, objective.zeros())))

        functions = {"right": right, "minimiser": lambda _: problem.minimiser(peers)}
        limits = threadpool_limits(limits=threads) if threads and not self.is_first else nullcontext()
        with limits, self.mpi.sharing(objective, functions) as clients:
            if clients is None:
                yield None
                return
            yield replace(problem, objective=clients, sha256=digest, ask=self.mpi.ask)


@contextmanager
def placed(engine: EngineOptions, *groups: Any, **options: Any) -> Iterator[Place]:
    """Yield the processes of a command; what fails in one of them ends all, with one sentence of the first.

    Parameters
    ----------
    engine : EngineOptions
        Where the clients are.
    *groups, **options
        All other options on which results depend, in dataclasses and by name: all processes must have the same.

    Raises
    ------
    ModuleNotFoundError
        If MPI is asked for, and mpi4py is missing.
    ValueError
        If a process has refused its options, or options or versions differ.
    """
    engine.check()
    if engine.engine == "inline":
        yield Place(None)
        return
    from dualopt.engine import MPI

    place = Place(MPI(reduce=engine.reduce))
    with place.peers.together():  # another process, in `follow`, says here what is wrong with its options
        _connected.append(place)
    shared = options_record(engine, *groups) | options
    place.peers.agree({name: value for name, value in shared.items() if name not in OPTIONS_OF_ONE_PROCESS})
    yield place


def follow(program: Callable[[], None]) -> NoReturn:
    """Run a program without output, beside process 0, which prints and writes, and whose exit code counts.

    A mistake of the user's is known to the first process, too. ``mpiexec`` would end that one before it has said so if
    this one ended with an exit code. A mistake in the options of this process alone goes to the first one, which waits
    for all of them in `placed`.
    """
    from dualopt.engine import MPI
    from dualopt.engine._mpi_communicator import sentence

    _started.append("mpiexec")
    code, said = 0, io.StringIO()
    with open(os.devnull, "w") as nothing, redirect_stdout(nothing), redirect_stderr(said):
        try:
            program()
        except SystemExit as end:
            code = end.code if end.code == TERMINATED else 0
            if end.code == USER_ERROR and not _connected:
                _refuse(said.getvalue())
        except BaseException as error:
            MPI().abort(sentence(error, MPI().peers.rank))
    raise SystemExit(code)


def lead(program: Callable[[], None]) -> None:
    """Run a program in the first process; a mistake in its options reaches the others, which need not wait."""
    _started.append("mpiexec")
    try:
        program()
    except SystemExit as end:
        if end.code == USER_ERROR and not _connected:
            _refuse("")
        raise


def _refuse(said: str) -> None:
    """Let the other processes, which are in `placed` or here, end with the sentence of this one."""
    from dualopt.engine._mpi_communicator import MpiCommunicator

    with suppress(ModuleNotFoundError, ValueError):
        peers = MpiCommunicator()
        with peers.together():
            raise ValueError(f"process {peers.rank} refuses its options: {said.strip().partition(': ')[2]}")
