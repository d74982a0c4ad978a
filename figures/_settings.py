"""What a user asked for, and the problem (7.1) that follows from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

from rich.console import Console

from dualopt.app.cli.output import make_console
from dualopt.engine.checkpoint import Checkpoint
from dualopt.objectives import LinearModel
from dualopt.problem.build import build_problem
from dualopt.problem.options import ProblemOptions
from dualopt.problem.problem import Problem
from dualopt.runs._data_hash import data_hash
from dualopt.runs.trace import Trace
from dualopt.solvers.stopping import GradientReduction, Stop
from figures._sizes import MOST_GRADIENTS, PART
from figures._store import digest, key, stored_number, stored_trace

__all__ = ["Settings"]

MU = 1e-2
SEED = 0
# Their rows come in random order, so that clients of consecutive rows have about equal shares of every class.
SHUFFLED = ("cifar10", "fashion-mnist", "mnist")
# Table 2 of the DualFL paper; the value for MNIST serves everywhere else.
TUNED_RHO = {"cifar10": 0.0}


@dataclass(frozen=True, kw_only=True)
class Settings:
    r"""Data, length and accuracy of the runs of every figure.

    The problem is multinomial logistic regression (7.1) with :math:`\mu = 10^{-2}` on all weights, the mean over all
    rows; two classes give logistic, real labels linear regression. Its energy does not depend on the partition.

    Parameters
    ----------
    data : str
        Name of a data set or path of a file, as ``dualopt.problem.data.load`` takes it.
    data_home : Path, optional
        The user's folder of data sets.
    out : Path
        Where figures go.
    traces : Path, optional
        Where traces are stored; ``out/cache`` when not given.
    rounds : int
        Communication rounds of every curve.
    quick : bool
        Whether figures leave curves out.
    stored_only : bool
        Whether to refuse to compute what is not stored.
    stop : Stop
        When a client stops its local solver.
    jobs : int
        Number of processes of a search for parameters.
    rows : int, optional
        Use so many rows, drawn at random; all when not given.
    part : int
        Largest number of rows that a search looks at.
    most_gradients : int
        Local gradients that tuned parameters may prescribe to a client, in all rounds together.
    keep_stale : bool
        Whether to take stored results of other code, and say so.
    plug_in : str, optional
        Hash of the file of a figure that is not of this package, and of what it imports from its own folder.
    page : Path, optional
        A page of Markdown into which a figure writes its tables, if it has any.
    only : str, optional
        Pattern of the cells ``problem: method`` that a figure with cells measures; its page or its store keeps the
        others.
    width : {"column", "page"}
        Of pictures: 3.5 or 7.2 inches.
    console : Console
        Where progress is shown.

    Examples
    --------
    >>> settings = Settings(rounds=5)
    >>> settings.partition, settings.tuned_rho
    ('iid', 0.003)
    """

    data: str = "digits"
    data_home: Path | None = None
    out: Path = Path("figures-out")
    traces: Path | None = None
    rounds: int = 100
    quick: bool = False
    stored_only: bool = False
    stop: Stop = field(default_factory=GradientReduction)
    jobs: int = 1
    rows: int | None = None
    part: int = PART
    most_gradients: int = MOST_GRADIENTS
    keep_stale: bool = False
    plug_in: str | None = None
    page: Path | None = None
    only: str | None = None
    width: str = "page"
    console: Console = field(default_factory=make_console)

    @property
    def cache(self) -> Path:
        """Where results are stored."""
        return self.out / "cache" if self.traces is None else self.traces

    def stored(self, what: str, description: Mapping[str, Any], compute: Callable[[], Trace]) -> Trace:
        """Return the trace that is stored for a description, else compute and store it.

        Parameters
        ----------
        what : str
            What the trace is, for messages.
        description : dict
            Everything that defines the result, in terms of JSON.
        compute : callable
            What to do when nothing is stored, or something damaged.

        Raises
        ------
        NotStoredError
            If nothing is stored and ``stored_only`` is set.

        Examples
        --------
        >>> Settings(stored_only=True, out=Path("no")).stored("curve 'a'", {"rho": 0.1}, lambda: 1 / 0)
        Traceback (most recent call last):
        figures._store.NotStoredError: redraw: curve 'a' is not stored in 'no/cache'; leave --redraw out to compute it.
        """
        allowed = None if self.stored_only else compute
        return stored_trace(self.cache, what, self._own(description), allowed, self.stale)

    def stored_run(self, what: str, description: Mapping[str, Any], compute: Callable[[Checkpoint], Trace]) -> Trace:
        """Return a trace as in :meth:`stored`, of a run that is kept in a checkpoint until its trace is stored."""
        path = self.cache / f"run-{digest(key(self._own(description)))}.journal"

        def go_on() -> Trace:
            path.parent.mkdir(parents=True, exist_ok=True)
            return compute(Checkpoint(path, resume=True, keep_stale=self.keep_stale))

        trace = self.stored(what, description, go_on)
        if not self.stored_only:
            path.unlink(missing_ok=True)
        return trace

    def stored_columns(
        self, what: str, description: Mapping[str, Any], columns: Callable[[], Mapping[str, Any]]
    ) -> Trace:
        """Return a trace of columns that are computed, not recorded along a run, as in :meth:`stored`."""
        return self.stored(what, description, lambda: Trace(columns=columns(), status="converged", theta=None))

    def stored_number(self, what: str, description: Mapping[str, Any], compute: Callable[[], float]) -> float:
        """Return the number that is stored for a description, else compute and store it, as in :meth:`stored`."""
        allowed = None if self.stored_only else compute
        return stored_number(self.cache, what, self._own(description), allowed, self.stale)

    def _own(self, description: Mapping[str, Any]) -> Mapping[str, Any]:
        """Add the hash of the file of a figure from outside: a changed file does not find what the old one stored."""
        return description if self.plug_in is None else {**description, "plug_in": self.plug_in}

    def wants(self, cell: str) -> bool:
        """Tell whether a cell ``problem: method`` is to be measured: all are without ``only``.

        Examples
        --------
        >>> digits = Settings(only="digits*")
        >>> digits.wants("digits, by label: giant"), digits.wants("a9a, by label: giant"), Settings().wants("anything")
        (True, False, True)
        """
        return self.only is None or fnmatchcase(cell, self.only)

    @property
    def stale(self) -> Callable[[str], None] | None:
        """What reports that a stored result of other code is taken; None where none is."""
        return self._report_stale if self.keep_stale else None

    def _report_stale(self, what: str) -> None:
        self.console.print(f"{what} was computed by other code (--keep-stale)", highlight=False, markup=False)

    @property
    def mu(self) -> float:
        """Weight of the ridge."""
        return MU

    @property
    def tuned_rho(self) -> float:
        """The momentum parameter of Table 2."""
        return TUNED_RHO.get(self.data, 3e-3)

    @property
    def partition(self) -> str:
        """How rows are dealt out "evenly": at random, or as they come where the data set is shuffled already."""
        return "consecutive" if self.data in SHUFFLED else "iid"

    def options(self, clients: int) -> ProblemOptions:
        """Return the options of ``dualopt run`` that define the problem."""
        return ProblemOptions(
            data=self.data,
            data_home=self.data_home,
            rows=self.rows,
            clients=clients,
            partition=self.partition,
            client_weights="rows",
            mu=self.mu,
            seed=SEED,
        )

    def problem(self, clients: int) -> LinearModel:
        """Return the objective of so many clients."""
        return build_problem(self.options(clients)).objective

    @cached_property
    def whole(self) -> Problem:
        """The problem with all rows at one client."""
        return build_problem(self.options(1))

    @cached_property
    def fingerprint(self) -> str:
        """A hash of all rows and labels: files may change under the same name."""
        return data_hash(self.whole)

    def described(self, clients: int) -> dict[str, Any]:
        """Return everything that defines the problem, as it is stored with a result.

        Figures are in double precision, but for networks, which say theirs: the option is newer than runs of hours.
        """
        options = asdict(self.options(clients))
        del options["precision"]
        return options | {
            "data": self.whole.name,
            "data_home": None,  # the same rows from another folder are the same problem
            "rows": self.fingerprint,
            "loss": self.whole.loss,
        }

    @property
    def title(self) -> str:
        """Name the problem in the title of a figure."""
        return f"{Path(self.whole.name).name}: {self.whole.loss} loss, $\\mu$ = {self.mu:g}, {self.partition} rows"
