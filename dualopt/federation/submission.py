"""Submitting a job until the run is whole: where a site or the server falls, the job falls, and the run does not.

The states of the run are in files of the sites and of the server, under the name of the run. A job that is submitted
again under this name goes on from there.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

__all__ = ["DisconnectedError", "JobResult", "Session", "UnfinishedError", "submit_until_whole"]

POLL = 1.0  # seconds
ATTEMPTS = 5  # jobs in a row that may fail without a round
WAITING = 10  # polls in which a job has not begun before it is said why
SILENCE = 10  # polls in which a job that has answered before does not: the server has forgotten it
OUTCOME = "outcome.json"
SUMMARY = "summary.json"
PREPARED = "prepared.json"


class DisconnectedError(Exception):
    """The server cannot be reached, or did not do what it was asked."""


class UnfinishedError(ValueError):
    """The run did not become whole; the sentence says why and how to go on."""


class Session(Protocol):
    """A connection to the server, as `dualopt.federation.flare.session.FlareSession` is one."""

    def find(self, name: str) -> str | None:
        """Return the number of a job of this name that has not ended."""
        ...

    def submit(self, job: Path) -> str:
        """Submit a job; return its number."""
        ...

    def connected(self) -> list[str]:
        """Return the sites that are connected."""
        ...

    def status(self, job: str) -> str:
        """Return the status of a job, in FLARE's words."""
        ...

    def progress(self, job: str) -> dict[str, Any]:
        """Return what a running job says of itself."""
        ...

    def result(self, job: str, folder: Path) -> Path:
        """Fetch what a job has left; return the folder."""
        ...

    def abort(self, job: str) -> None:
        """End a job."""
        ...

    def close(self) -> None:
        """End the session."""
        ...


@dataclass(frozen=True, kw_only=True)
class JobResult:
    """How a run ended, and what it left.

    Attributes
    ----------
    folder : Path
        What the last job left: ``trace.npz`` and ``outcome.json``.
    jobs : int
        How many jobs were submitted.
    said : dict
        The content of ``outcome.json``.
    """

    folder: Path
    jobs: int
    said: Mapping[str, Any]


def submit_until_whole(
    connect: Callable[[], Session],
    job: Path,
    folder: Path,
    *,
    sites: Sequence[str] = (),
    show: Callable[[Mapping[str, Any]], None],
    say: Callable[[str], None],
    patience: float = 600.0,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> JobResult:
    """Submit a job, again where it fails, until the run has ended.

    Parameters
    ----------
    connect : callable
        Returns a `Session`, or raises `DisconnectedError`.
    job : Path
        What is submitted; a job of this name that runs already, for an administrator whose program has fallen, is
        taken up instead.
    folder : Path
        Where results are fetched to.
    sites : sequence of str
        Those that must be connected.
    show : callable
        Called with what the running job says of itself.
    say : callable
        Called with a sentence where something fell.
    patience : float, default 600
        Seconds without the server after which to give up, and in which a job that is said to run must have answered
        for the first time: its sites may be slow to start.
    sleep, clock : callable
        For tests.

    Raises
    ------
    UnfinishedError
        If the server cannot be reached for so long, jobs fail one after the other without a round, or the run itself
        refuses to go on, such as where a site has another project file.
    """
    pursuit = _Pursuit(connect, job, folder, sites, show, say, patience, clock)
    seen = clock()
    try:
        while True:
            try:
                outcome = pursuit.step()
                seen = clock()
                if outcome is not None:
                    return outcome
            except DisconnectedError as error:
                pursuit.lose(error)
                if clock() - seen > patience:
                    raise UnfinishedError(
                        f"server cannot be reached for {patience:g} s ({error}): run the same command again later; "
                        "what is done is kept."
                    ) from None
            sleep(POLL)
    except (KeyboardInterrupt, SystemExit):
        pursuit.abort()
        raise
    finally:
        pursuit.close()


class _Pursuit:
    """The present session and job, and what was seen of them."""

    def __init__(
        self,
        connect: Callable[[], Session],
        job: Path,
        folder: Path,
        sites: Sequence[str],
        show: Callable[[Mapping[str, Any]], None],
        say: Callable[[str], None],
        patience: float,
        clock: Callable[[], float],
    ) -> None:
        self.connect, self.job, self.folder, self.sites, self.show, self.say = connect, job, folder, sites, show, say
        self.patience, self.clock = patience, clock
        self.session: Session | None = None
        self.number: str | None = None
        self.jobs = self.failed = self.silent = self.waited = 0
        self.rounds = -1.0
        self.running = 0.0  # since when the job is said to run
        self.answered = False  # the job, at least once

    def step(self) -> JobResult | None:
        """Do the next thing; return the outcome where the run has ended."""
        if self.session is None:
            self.session = self.connect()
        if self.number is None:
            self.number = (self.session.find(self.job.name) if not self.jobs else None) or self.session.submit(self.job)
            self.jobs, self.silent, self.waited, self.answered = self.jobs + 1, 0, 0, False
            return None
        status = self.session.status(self.number)
        if status == "FINISHED:COMPLETED":
            return self._fetched()
        if status.startswith(("FINISHED", "FAILED", "ABANDONED")):
            self._again(f"job {self.number} ended with {status}")
        elif status == "RUNNING":
            self._look()
        else:
            self._wait()
        return None

    def abort(self) -> None:
        """End the job, if there is one; what is done is kept by sites and server."""
        if self.session is not None and self.number is not None:
            with suppress(DisconnectedError):
                self.session.abort(self.number)

    def lose(self, error: DisconnectedError) -> None:
        """Forget the session."""
        if self.session is not None:
            self.say(f"the connection to the server is lost ({error}); trying again")
        self.close()

    def close(self) -> None:
        """End the session."""
        if self.session is not None:
            self.session.close()
        self.session = None

    def _wait(self) -> None:
        """Say for whom the job waits, once."""
        assert self.session is not None
        self.waited += 1
        if self.waited == WAITING:
            there = self.session.connected()
            missing = [site for site in self.sites if site not in there]
            self.say(f"waiting for {', '.join(missing)}, not connected" if missing else "waiting for the server")

    def _look(self) -> None:
        """Show how far the job is; a server that was restarted may call a job running that it has forgotten."""
        assert self.session is not None
        assert self.number is not None
        try:
            progress = self.session.progress(self.number)
        except DisconnectedError as error:
            if not self.answered and self.silent == 0:
                self.running = self.clock()
            self.silent += 1
            if self.answered and self.silent >= SILENCE:
                self._again(f"job {self.number} does not answer any more ({error})")
            elif not self.answered and self.clock() - self.running > self.patience:
                self._again(f"job {self.number} has not answered in {self.patience:g} s ({error})")
            return
        self.silent, self.answered = 0, True
        if (rounds := progress.get("round", math.nan)) > self.rounds:
            self.rounds, self.failed = rounds, 0
        self.show(progress)

    def _again(self, why: str) -> None:
        assert self.session is not None
        assert self.number is not None
        self.failed += 1
        if self.failed >= ATTEMPTS:
            raise UnfinishedError(
                f"{self.failed} jobs in a row failed without a round ({why}): see log.txt of server and sites; what is "
                "done is kept."
            )
        self.say(f"{why}; submitting the run again, which goes on where it was")
        self.abort()  # what a fallen server has left of it
        self.number = None

    def _fetched(self) -> JobResult | None:
        """Return the outcome of a job that has ended by itself."""
        assert self.session is not None
        assert self.number is not None
        folder = self.session.result(self.number, self.folder)
        try:
            said = json.loads((folder / OUTCOME).read_text())
        except (OSError, ValueError):
            self._again(f"job {self.number} left no result")
            return None
        if said.get("refused"):
            raise UnfinishedError(f"{str(said['refused']).rstrip('.')}.")
        return JobResult(folder=folder, jobs=self.jobs, said=said)
