"""The loop that submits again, with stand-ins for the connection to the server."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from dualopt.federation.submission import LostError, Outcome, UnfinishedError, submit_until_whole


class Script:
    """A server that answers as written: per poll of a job its status, and the round it is at or an error."""

    def __init__(self, folder: Path, *jobs: list[Any], results: Mapping[int, Mapping[str, Any]] | None = None) -> None:
        self.folder, self.jobs, self.results = folder, [iter(job) for job in jobs], results or {}
        self.submitted = self.closed = self.opened = 0
        self.aborted: list[str] = []
        self.now: Any = None
        self.reachable = True
        self.left: list[Any] | None = None  # of a job that an earlier program has submitted

    def connect(self) -> Script:
        if not self.reachable:
            raise LostError("no connection")
        self.opened += 1
        return self

    def find(self, name: str) -> str | None:
        if self.left is not None:
            self.steps = iter(self.left)
            return "job-0"
        return None

    def connected(self) -> list[str]:
        return ["lyon"]

    def submit(self, job: Path) -> str:
        self.steps: Iterator[Any] = self.jobs[self.submitted]
        self.submitted += 1
        return f"job-{self.submitted}"

    def status(self, job: str) -> str:
        self.now = next(self.steps)
        if isinstance(self.now, LostError):
            raise self.now
        return "RUNNING" if isinstance(self.now, int | type(None)) else self.now

    def progress(self, job: str) -> dict[str, Any]:
        if self.now is None:
            raise LostError("not running")
        return {"round": float(self.now)}

    def result(self, job: str, folder: Path) -> Path:
        where = self.folder / job
        where.mkdir()
        said = self.results.get(self.submitted, {"refused": None})
        if said:
            (where / "outcome.json").write_text(json.dumps(said))
        return where

    def abort(self, job: str) -> None:
        self.aborted.append(job)

    def close(self) -> None:
        self.closed += 1


def pursue(script: Script, **options: Any) -> tuple[Outcome, list[float], list[str]]:
    shown: list[float] = []
    said: list[str] = []
    seconds = iter(range(10**6))
    outcome = submit_until_whole(
        script.connect,
        Path("job"),
        script.folder,
        sites=("lyon", "basel"),
        show=lambda progress: shown.append(progress["round"]),
        say=said.append,
        sleep=lambda _: None,
        clock=lambda: float(next(seconds)),
        **options,
    )
    return outcome, shown, said


DONE = "FINISHED:COMPLETED"


def test_a_job_that_ends_is_submitted_once(tmp_path: Path) -> None:
    script = Script(tmp_path, ["SUBMITTED", "APPROVED", 1, 2, DONE])
    outcome, shown, said = pursue(script)
    assert (outcome.jobs, shown, said, script.opened, script.closed) == (1, [1, 2], [], 1, 1)


@pytest.mark.parametrize("status", ["FINISHED:EXECUTION_EXCEPTION", "FINISHED:ABORTED", "FINISHED:FAILED_TO_RUN"])
def test_a_job_that_fails_is_submitted_again(tmp_path: Path, status: str) -> None:
    script = Script(tmp_path, [1, 2, status], [3, DONE])
    outcome, shown, said = pursue(script)
    assert outcome.jobs == 2
    assert shown == [1, 2, 3]
    assert len(said) == 1
    assert "submitting the run again, which goes on where it was" in said[0]


def test_a_server_that_forgot_its_job_is_noticed(tmp_path: Path) -> None:
    script = Script(tmp_path, [1, *[None] * 10], [2, DONE])
    outcome, _, said = pursue(script)
    assert outcome.jobs == 2
    assert script.aborted == ["job-1"]
    assert "does not answer any more" in said[0]


def test_a_job_that_is_slow_to_answer_is_not_submitted_twice(tmp_path: Path) -> None:
    script = Script(tmp_path, [1, *[None] * 9, 2, *[None] * 9, DONE])
    outcome, shown, _ = pursue(script)
    assert (outcome.jobs, shown) == (1, [1, 2])


def test_a_job_whose_sites_are_slow_to_start_is_waited_for(tmp_path: Path) -> None:
    script = Script(tmp_path, [*[None] * 40, 1, DONE])
    outcome, shown, said = pursue(script)
    assert (outcome.jobs, shown, said) == (1, [1], [])


def test_a_job_that_never_answers_is_submitted_again(tmp_path: Path) -> None:
    script = Script(tmp_path, [None] * 40, [1, DONE])
    outcome, _, said = pursue(script, patience=20.0)
    assert outcome.jobs == 2
    assert "has not answered in 20 s" in said[0]


def test_a_lost_connection_is_made_again_and_the_job_kept(tmp_path: Path) -> None:
    script = Script(tmp_path, [1, LostError("broken"), 2, DONE])
    outcome, _, said = pursue(script)
    assert (outcome.jobs, script.opened, script.closed) == (1, 2, 2)
    assert said == ["the connection to the server is lost (broken); trying again"]


def test_patience_ends(tmp_path: Path) -> None:
    script = Script(tmp_path)
    script.reachable = False
    with pytest.raises(UnfinishedError, match=r"server cannot be reached for 20 s .* what is done is kept"):
        pursue(script, patience=20.0)


def test_jobs_that_fail_in_a_row_without_a_round_end_it(tmp_path: Path) -> None:
    failing = ["SUBMITTED", "FINISHED:EXECUTION_EXCEPTION"]
    script = Script(tmp_path, *[failing] * 5)
    with pytest.raises(UnfinishedError, match="5 jobs in a row failed without a round"):
        pursue(script)
    assert script.closed == 1


def test_rounds_that_are_done_earn_new_attempts(tmp_path: Path) -> None:
    status = "FINISHED:EXECUTION_EXCEPTION"
    script = Script(tmp_path, *[[n, status] for n in range(12)], [DONE])
    assert pursue(script)[0].jobs == 13


def test_a_refusal_is_not_submitted_again(tmp_path: Path) -> None:
    script = Script(tmp_path, [DONE], results={1: {"refused": "site bern has another project file."}})
    with pytest.raises(UnfinishedError, match=r"^site bern has another project file\.$"):
        pursue(script)


def test_a_job_without_a_result_is_submitted_again(tmp_path: Path) -> None:
    script = Script(tmp_path, [DONE], [DONE], results={1: {}})
    outcome, _, said = pursue(script)
    assert outcome.jobs == 2
    assert "left no result" in said[0]


def test_a_job_that_runs_already_is_taken_up(tmp_path: Path) -> None:
    script = Script(tmp_path, [5, DONE])
    script.left = [3, "FINISHED:ABORTED"]
    outcome, shown, _ = pursue(script)
    assert (outcome.jobs, script.submitted, shown) == (2, 1, [3, 5])


def test_a_site_that_is_not_there_is_named_once(tmp_path: Path) -> None:
    script = Script(tmp_path, [*["SUBMITTED"] * 30, 1, DONE])
    assert pursue(script)[2] == ["waiting for basel, not connected"]


@pytest.mark.parametrize("signal", [KeyboardInterrupt, SystemExit])
def test_whoever_stops_the_program_ends_the_job(tmp_path: Path, signal: type[BaseException]) -> None:
    script = Script(tmp_path, [1])

    def stop(_: float) -> None:
        raise signal

    with pytest.raises(signal):
        submit_until_whole(script.connect, Path("job"), tmp_path, show=lambda _: None, say=lambda _: None, sleep=stop)
    assert script.aborted == ["job-1"]
    assert script.closed == 1
