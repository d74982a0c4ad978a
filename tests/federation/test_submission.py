"""The loop that submits again, with stand-ins for the connection to the server."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from dualopt.federation.submission import DisconnectedError, JobResult, UnfinishedError, submit_until_whole


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
            raise DisconnectedError("no connection")
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
        if isinstance(self.now, DisconnectedError):
            raise self.now
        return "RUNNING" if isinstance(self.now, int | type(None)) else self.now

    def progress(self, job: str) -> dict[str, Any]:
        if self.now is None:
            raise DisconnectedError("not running")
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


def pursue(script: Script, **options: Any) -> tuple[JobResult, list[float], list[str]]:
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


FAILED, AGAIN = "FINISHED:EXECUTION_EXCEPTION", "submitting the run again, which goes on where it was"
CASES: dict[str, tuple[Any, ...]] = {
    # what each job answers, how many are submitted, the rounds that are shown, what is said, and what else there is
    "a job that ends": ([["SUBMITTED", "APPROVED", 1, 2, DONE]], 1, [1, 2], [], {}),
    **{
        f"a job that is {end}": ([[1, 2, f"FINISHED:{end}"], [3, DONE]], 2, [1, 2, 3], [AGAIN], {})
        for end in ("EXECUTION_EXCEPTION", "ABORTED", "FAILED_TO_RUN")
    },
    "a server that forgot its job": ([[1, *[None] * 10], [2, DONE]], 2, [1, 2], ["does not answer any more"], {}),
    "slow to answer": ([[1, *[None] * 9, 2, *[None] * 9, DONE]], 1, [1, 2], [], {}),
    "sites slow to start": ([[*[None] * 40, 1, DONE]], 1, [1], [], {}),
    "it never answers": ([[None] * 40, [1, DONE]], 2, [1], ["has not answered in 20 s"], {"patience": 20.0}),
    "a lost connection": (
        *([[1, DisconnectedError("broken"), 2, DONE]], 1, [1, 2]),
        *(["the connection to the server is lost (broken); trying again"], {}),
    ),
    "rounds earn new attempts": ([*([n, FAILED] for n in range(12)), [DONE]], 13, [*range(12)], [AGAIN] * 12, {}),
    "no result": ([[DONE], [DONE]], 2, [], ["left no result"], {"results": {1: {}}}),
    "a job that runs already": ([[5, DONE]], 2, [3, 5], [AGAIN], {"left": [3, "FINISHED:ABORTED"]}),
    "a site that is not there": ([[*["SUBMITTED"] * 30, 1, DONE]], 1, [1], ["waiting for basel, not connected"], {}),
}


@pytest.mark.parametrize(("jobs", "count", "rounds", "sentences", "more"), CASES.values(), ids=CASES)
def test_a_run_is_pursued(
    tmp_path: Path, jobs: list[list[Any]], count: int, rounds: list[float], sentences: list[str], more: dict[str, Any]
) -> None:
    script = Script(tmp_path, *jobs, results=more.get("results"))
    script.left = more.get("left")
    outcome, shown, said = pursue(script, **{key: more[key] for key in ("patience",) if key in more})
    lost = "connection" in " ".join(sentences)
    assert (outcome.jobs, shown) == (count, rounds)
    assert (script.submitted, script.opened, script.closed) == (len(jobs), 1 + lost, 1 + lost)
    assert len(said) == len(sentences)
    assert all(expected in sentence for expected, sentence in zip(sentences, said, strict=True))
    assert bool(script.aborted) == (AGAIN in " ".join(said))  # what is submitted again must not go on beside it


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


def test_a_refusal_is_not_submitted_again(tmp_path: Path) -> None:
    script = Script(tmp_path, [DONE], results={1: {"refused": "site bern has another project file."}})
    with pytest.raises(UnfinishedError, match=r"^site bern has another project file\.$"):
        pursue(script)


@pytest.mark.parametrize("signal", [KeyboardInterrupt, SystemExit])
def test_whoever_stops_the_program_ends_the_job(tmp_path: Path, signal: type[BaseException]) -> None:
    script = Script(tmp_path, [1])

    def stop(_: float) -> None:
        raise signal

    with pytest.raises(signal):
        submit_until_whole(script.connect, Path("job"), tmp_path, show=lambda _: None, say=lambda _: None, sleep=stop)
    assert script.aborted == ["job-1"]
    assert script.closed == 1
