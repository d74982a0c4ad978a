"""What may fall in a federation, one after the other, with real processes and certificates: the long tests.

``python -m tests.federation`` runs all of them (25 minutes on a busy machine), ``python -m tests.federation NAME ...``
some, ``python -m tests.federation --measure`` times rounds. After each, no file of another party may hold a row
of a site. Every process is ended, and the folder removed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dualopt import Trace
from dualopt.app.cli import terminable
from dualopt.federation import Project, SiteSettings
from dualopt.methods.participation import Schedule
from tests.federation.loopback import HANGS, ROOT, Loopback, processes_of
from tests.federation.problems import METHODS, differing, elsewhere, in_one_process, plant, project_of
from tests.federation.test_flare import greeted, strangers_certificate

ROUNDS = 200
Scenario = Callable[[Path], str]
SCENARIOS: dict[str, Scenario] = {}


def scenario(function: Scenario) -> Scenario:
    """Register a test; it returns what is to be said of it, or raises."""
    SCENARIOS[function.__name__.replace("_", "-")] = function
    return function


def require(condition: object, said: str) -> None:
    if not condition:
        raise AssertionError(said)


def whole(loopback: Loopback, project: Project) -> str:
    """Require the results to be those of one process; return what was counted."""
    found = differing(Trace.from_npz(loopback.out / "trace.npz"), in_one_process(project))
    record = json.loads((loopback.out / "run.json").read_text())
    require(not found, f"differs from one process in {found}; lost: {record['outcome']['lost']}")
    return f"equal to one process bit for bit, {project.rounds} rounds, {record['jobs']} jobs"


def disturbed(
    folder: Path, algorithm: str, disturb: Callable[[Loopback], None], rounds: tuple[int, ...], **changes: Any
) -> str:
    """Run a method, and do something to its processes at some rounds."""
    project = project_of(algorithm, rounds=ROUNDS, **changes)
    with Loopback(folder, project) as loopback:
        code, said = loopback.run_with(disturb, *rounds)
        require(code == 0, said)
        return whole(loopback, project)


@scenario
def job_of_a_site_killed_three_times(folder: Path) -> str:
    return disturbed(folder, "dualfl", lambda loopback: loopback.kill_job("basel"), (20, 80, 140))


@scenario
def job_of_a_site_killed_with_feddyn(folder: Path) -> str:
    return disturbed(folder, "feddyn", lambda loopback: loopback.kill_job("bern"), (50,))


@scenario
def job_of_a_site_killed_with_scaffnew(folder: Path) -> str:
    return disturbed(folder, "scaffnew", lambda loopback: loopback.kill_job("lyon"), (50,))


@scenario
def job_of_a_site_killed_while_it_is_asked(folder: Path) -> str:
    """A call that nobody will answer is under way when FLARE ends the job: the site is not late, and not left out.

    Without certificates, before which a job that has ended would be noticed: the round would be in the checkpoint.
    """

    def fall(loopback: Loopback) -> None:
        for pid in loopback.jobs("bern"):
            os.kill(pid, signal.SIGSTOP)
        time.sleep(2)
        loopback.kill_job("bern")

    return disturbed(folder, "feddyn", fall, (50,), certify_every=1000)


def again(name: str) -> Callable[[Loopback], None]:
    def fall(loopback: Loopback) -> None:
        loopback.kill(name)
        loopback.start(name)

    return fall


@scenario
def site_killed_and_started(folder: Path) -> str:
    return disturbed(folder, "dualfl", again("basel"), (60,))


@scenario
def server_killed_and_started(folder: Path) -> str:
    return disturbed(folder, "dualfl", again("server"), (60,))


@scenario
def server_killed_with_feddyn(folder: Path) -> str:
    return disturbed(folder, "feddyn", again("server"), (60,))


@scenario
def job_of_the_server_killed(folder: Path) -> str:
    return disturbed(folder, "scaffnew", lambda loopback: loopback.kill_job("server"), (60,))


@scenario
def program_of_the_administrator_killed(folder: Path) -> str:
    """The job goes on without it; the same command takes it up."""
    project = project_of(rounds=ROUNDS)
    with Loopback(folder, project) as loopback:
        first = loopback.run()
        loopback.wait_for_round(20, first)
        first.kill()
        first.communicate()
        code, said = loopback.run_with()
        require(code == 0, said)
        return whole(loopback, project)


def stop(loopback: Loopback, seconds: float) -> None:
    """Stop the processes of one site's job for a while."""
    jobs = loopback.jobs("bern")
    for number in (signal.SIGSTOP, signal.SIGCONT):
        for pid in jobs:
            os.kill(pid, number)
        time.sleep(seconds * (number == signal.SIGSTOP))


def frozen(folder: Path, algorithm: str, environment: dict[str, str] | None = None) -> tuple[str, float, int]:
    """Stop the processes of one site's job for longer than its deadline, three times; its replies come too late."""
    # slow, so that replies matter while models move; without certificates, so that it is uploads that are late
    project = project_of(algorithm, rounds=500, deadline=2.0, mu=0.003, certify_every=1000)
    with Loopback(folder, project, environment=environment) as loopback:
        code, said = loopback.run_with(lambda it: stop(it, 3.5), *((20,) if algorithm == "dualfl" else (20, 60, 100)))
        if algorithm == "dualfl":
            require(code == 2, said)
            require("nothing came within 2 s" in said, said)
            code, said = loopback.run_with()
            require(code == 0, said)
            return whole(loopback, project), 0.0, 0
        require(code == 0, said)
        exact = in_one_process(replace(project, rounds=1500)).theta
        error = float(np.abs(Trace.from_npz(loopback.out / "trace.npz").theta - exact).max())
        lost = len(json.loads((loopback.out / "run.json").read_text())["outcome"]["lost"])
        return f"{lost} replies lost, {error:.1e} from the solution", error, lost


@scenario
def straggler_stops_dualfl_which_goes_on_later(folder: Path) -> str:
    return frozen(folder, "dualfl")[0]


@scenario
def straggler_does_not_stop_feddyn(folder: Path) -> str:
    said, error, lost = frozen(folder, "feddyn")
    require(lost > 0, said)
    require(error < 1e-8, said)
    return said


@scenario
def one_phase_misses_the_solution(folder: Path) -> str:
    """The wrong variant: were it right too, two phases would not be needed."""
    path = os.pathsep.join([str(ROOT / "tests" / "federation" / "one_phase"), str(ROOT)])
    said, error, lost = frozen(folder, "feddyn", {"PYTHONPATH": path})
    require(lost > 0, said)
    require(error > 1e-4, said)
    return f"as it must: {said}"


@scenario
def disk_full_at_a_site(folder: Path) -> str:
    """No file of the site's job can grow beyond some bytes, from some round on; then the disk has room again."""

    def fill(loopback: Loopback) -> None:
        for pid in loopback.jobs("lyon"):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))

    project = project_of(rounds=ROUNDS)
    with Loopback(folder, project) as loopback:
        code, said = loopback.run_with(fill, 40)
        require(code == 2, said)
        require("its disk is full, or a file would be too large" in " ".join(said.split()), said)
        code, said = loopback.run_with()
        require(code == 0, said)
        return f"told in one sentence; then {whole(loopback, project)}"


@scenario
def wrong_project_file_at_a_site(folder: Path) -> str:
    project = project_of(rounds=ROUNDS)
    with Loopback(folder, project) as loopback:
        loopback.agree(project, but={"basel": replace(project, mu=0.2)})
        code, said = loopback.run_with()
        require(code == 2, said)
        require("project must be the same everywhere" in said and "basel" in said, said)
        return " ".join(said.split())[:120]


@scenario
def lost_state_at_a_site(folder: Path) -> str:
    project = project_of(rounds=ROUNDS)

    def lose(loopback: Loopback) -> None:
        loopback.kill("lyon")
        (loopback.kits / "lyon" / "state" / f"{project.run_name}.journal").unlink()
        loopback.start("lyon")

    with Loopback(folder, project) as loopback:
        code, said = loopback.run_with(lose, 20)
        require(code == 2, said)
        require("their file is lost" in " ".join(said.split()), said)
        return "refused in one sentence"


@scenario
def strangers(folder: Path) -> str:
    """No certificate, one that we have not signed, and a site of another federation that knows the address."""
    project = project_of()
    with Loopback(folder, project) as loopback:
        loopback.wait_for_server()
        ours = loopback.kits / "lyon" / "startup"
        require(greeted(loopback.port, ours / "client.crt", ours / "client.key"), "our own certificate is refused")
        require(not greeted(loopback.port), "no certificate is needed")
        require(not greeted(loopback.port, *strangers_certificate(folder)), "any certificate will do")
        (folder / "other").mkdir()
        other = Loopback(folder / "other", project)
        config = other.kits / "lyon" / "startup" / "fed_client.json"
        config.write_text(config.read_text().replace(f":{other.port}", f":{loopback.port}"))
        try:
            other.start("lyon")
            log, deadline = "", time.monotonic() + 90
            while "certificate" not in log.lower() and time.monotonic() < deadline:
                time.sleep(2)
                log = (folder / "other" / "lyon.out").read_text()
            require("Successfully registered" not in log, log)
            require("certificate" in log.lower(), log)
        finally:
            other.end()
        return "all three refused"


def nearly(loopback: Loopback, project: Project, seen: str) -> str:
    """Require the results of secure sums to be those of one process but for rounding, and the certificates to hold."""
    trace, plain = Trace.from_npz(loopback.out / "trace.npz"), in_one_process(replace(project, secure="none"))
    moved = float(np.abs(trace.theta - plain.theta).max())
    require(moved < 1e-9, f"{moved:.1e} from one process")
    least = in_one_process(replace(project, secure="none", rounds=2000, tol=1e-13)).last
    below = (trace["energy"] - trace["certificate"] > least["energy"]).sum()
    require(not below, f"{below} certificates are below the truth")
    outcome = json.loads((loopback.out / "run.json").read_text())["outcome"]
    ms, up, down = (outcome[name] for name in ("ms_per_round", "bytes_up", "bytes_down"))
    rate = (
        f"{ms:.0f} ms, {up / outcome['rounds_here']:,.0f} bytes up, {down / outcome['rounds_here']:,.0f} down a round"
    )
    certified = f"certified {trace.last['certificate']:.2e}, in one process {plain.last['certificate']:.2e}"
    return f"{moved:.1e} from one process, {certified}; {seen}; {rate}"


@scenario
def secure_sums(folder: Path) -> str:
    """The server knows sums alone; a site is killed in the middle, and the run has the digits of plain sums."""
    project = project_of("dualfl", rounds=60, secure="sum")
    with Loopback(folder, project) as loopback:
        code, said = loopback.run_with(lambda it: it.kill_job("basel"), 20)
        require(code == 0, said)
        require("known in secure sums alone" in " ".join(said.split()), said)
        jobs = json.loads((loopback.out / "run.json").read_text())["jobs"]
        require(jobs > 1, "nothing fell")
        logs = "".join(path.read_text() for path in loopback.kits.rglob("log.txt"))
        return nearly(loopback, project, f"{jobs} jobs, {logs.count('refused (')} refusals")


@scenario
def secure_sums_without_a_late_site(folder: Path) -> str:
    """FedDyn goes on with the sum of the two others, whose masks with the third are taken off."""
    project = project_of("feddyn", participation="full", rounds=60, deadline=6.0, certify_every=1000, secure="sum")
    with Loopback(folder, project) as loopback:
        # longer than shares and the keys for the next round take
        code, said = loopback.run_with(lambda it: stop(it, 2.0 * project.deadline + 3.0), 5)
        require(code == 0, said)
        lost = json.loads((loopback.out / "run.json").read_text())["outcome"]["lost"]
        require(any("host bern" in sentence for sentence in lost), str(lost))
        exact = in_one_process(replace(project, rounds=400, secure="none")).theta
        error = float(np.abs(Trace.from_npz(loopback.out / "trace.npz").theta - exact).max())
        require(error < 1e-6, f"{error:.1e} from the solution; {lost}")
        return f"{error:.1e} from the solution, {len(lost)} replies lost, first {lost[0]}"


@scenario
def hostile_site(folder: Path) -> str:
    """A site that questions its neighbour and forges orders of the server to it gets nothing and destroys nothing."""
    project = project_of(rounds=60)
    path = os.pathsep.join([str(ROOT / "tests" / "federation" / "hostile_site"), str(ROOT)])
    said = folder / "hostile.txt"
    hostile = {"PYTHONPATH": path, "DUALOPT_HOSTILE": str(said)}
    with Loopback(folder, project, of_sites={"lyon": hostile}) as loopback:
        code, told = loopback.run_with()
        found = said.read_text() if said.exists() else "it did not try"
        logs = "".join(path.read_text() for path in (loopback.kits / "basel").rglob("log.txt"))
        require(code == 0, f"{told}\n{found}")
        require(found.count("Failed(reason='caller'") == 4, found)
        require("sent Start as server_job" in found, found)
        require(logs.count("refused (caller)") == 5, logs[-3000:])
        return f"five orders refused; {whole(loopback, project)}"


@scenario
def damaged_row(folder: Path) -> str:
    """A row that cannot be read is in the log of its site, and in no file and no word of the server."""
    secret = "Alice-Miller-4711"
    project = project_of(features=3)
    with Loopback(folder, project) as loopback:
        data = folder / "lyon.svm"
        data.write_text(f"1 1:0.5 2:1\n0 1:72.5 2:HIV+ 3:{secret}\n")
        settings = SiteSettings.read(loopback.kits / "lyon")
        replace(settings, data=str(data)).write(loopback.kits / "lyon")
        code, said = loopback.run_with()
        require(code == 2, said)
        require("host lyon refuses round 0: its data cannot be read" in " ".join(said.split()), said)
        kept = [path for path in loopback.kits.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]
        require(kept, "the log of the site does not say why")
        away = [path for path in kept if (loopback.kits / "lyon") not in path.parents]
        require(not away, f"the row is in {away}")
        require(secret not in said + (folder / "server.out").read_text(), "the row is in the server's words")
        return f"in {', '.join(sorted({path.name for path in kept}))} of its site alone"


def lying(folder: Path, project: Project, lie: str) -> tuple[int, str, Path]:
    """Run with a site that lies; return the exit code, what was said, and where results are."""
    path = os.pathsep.join([str(ROOT / "tests" / "federation" / "lying_site"), str(ROOT)])
    with Loopback(folder, project, of_sites={"basel": {"PYTHONPATH": path, "DUALOPT_LIE": lie}}) as loopback:
        code, told = loopback.run_with()
        return code, " ".join(told.split()), loopback.out


@scenario
def consistent_contradiction(folder: Path) -> str:
    """A site whose code states conjugates that its values do not allow is named, and the run ends."""
    code, said, _ = lying(folder, project_of(rounds=ROUNDS), "conjugate")
    require(code == 2, said)
    require("host basel contradicts itself: its conjugate after round 5 is less than its value" in said, said)
    return said.partition("host basel")[2][:90]


@scenario
def false_convexity(folder: Path) -> str:
    """A site that claims more convexity than the project gives is named before the first round."""
    code, said, out = lying(folder, project_of(rounds=ROUNDS), "convexity")
    require(code == 2, said)
    require("mu of site basel must be " in said, said)
    require(not (out / "trace.npz").exists(), "there is a trace")
    return said[said.index("mu of site") :][:90]


@scenario
def infinite_upload(folder: Path) -> str:
    """A site that uploads infinity in a round is named and counts as absent in it; the run goes on with the others."""
    project = project_of("feddyn", participation="full", rounds=60)
    code, said, out = lying(folder, project, "infinity")
    require(code == 0, said)
    lost = "; ".join(json.loads((out / "run.json").read_text())["outcome"]["lost"])
    named = lost.count("round") == 1 and "round 5: host basel" in lost and "is not finite" in lost
    require(named, lost or "none is lost")
    absent = Schedule(clients=tuple((0, 2) if n == 5 else (0, 1, 2) for n in range(project.rounds)))
    found = differing(Trace.from_npz(out / "trace.npz"), in_one_process(project, absent))
    require(not found, f"differs from one process without basel in round 5 in {found}")
    return f"{lost}; equal to one process without it bit for bit"


@scenario
def slow_site(folder: Path) -> str:
    """The process of a site begins 15 seconds late: the job waits for it, and is not submitted again."""
    project = project_of()
    path = os.pathsep.join([str(ROOT / "tests" / "federation" / "slow_site"), str(ROOT)])
    with Loopback(folder, project, of_sites={"bern": {"PYTHONPATH": path}}) as loopback:
        code, said = loopback.run_with()
        require(code == 0, said)
        require(json.loads((loopback.out / "run.json").read_text())["jobs"] == 1, said)
        return whole(loopback, project)


@scenario
def marker(folder: Path) -> str:
    """Numbers planted in the data of a site are in no file of another party, whatever a whole run leaves there."""
    project = project_of(rounds=40)
    with Loopback(folder, project) as loopback:
        planted = plant(loopback.data["lyon"])
        code, said = loopback.run_with()
        require(code == 0, said)
    server = [path for path in folder.rglob("*") if path.is_file() and loopback.kits / "server" in path.parents]
    require(server, "the server has left no files")
    found = elsewhere(folder, lyon=planted)
    require(not found, f"what was planted is in {found}")
    return f"not in {len(server)} files of the server, nor in those of others"


@scenario
def code_in_a_job(folder: Path) -> str:
    """A job that brings code, or names a class that is not on the list, is refused by server and sites."""
    from dualopt.federation.flare.session import FlareSession
    from dualopt.federation.job import write_job
    from dualopt.federation.submission import DisconnectedError

    project = project_of()
    with Loopback(folder, project) as loopback:
        time.sleep(8)
        own, named = write_job(project, folder / "own"), write_job(project, folder / "named")
        (own / "sites" / "custom").mkdir()
        (own / "sites" / "custom" / "mine.py").write_text("print('mine')\n")
        config = named / "sites" / "config" / "config_fed_client.json"
        config.write_text(config.read_text().replace("dualopt.federation.flare.site.Site", "subprocess.Popen"))
        session, ends = FlareSession(loopback.admin), []
        try:
            for job in (own, named):
                try:
                    number = session.submit(job)
                    end = time.monotonic() + 90
                    while not (status := session.status(number)).startswith("FINISHED") and time.monotonic() < end:
                        time.sleep(1)
                except DisconnectedError as error:
                    status = str(error)
                ends.append(status)
        finally:
            session.close()
        require(all("COMPLETED" not in status and status != "RUNNING" for status in ends), str(ends))
        logs = "".join(path.read_text() for path in loopback.kits.rglob("log.txt"))
        require("BYOC not permitted" in logs, "the job with code ended for another reason")
        require("not in allow_list" in logs, "the job with another class ended for another reason")
        return f"refused: {ends}"


@scenario
def page(folder: Path) -> str:
    """All commands of docs/federation.md but for the installation, as they are written."""
    text = (ROOT / "docs" / "federation.md").read_text()
    blocks = re.findall(r"^```\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    commands = [block for block in blocks if not block.startswith(("python -m pip", "│"))]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
    try:
        with (folder / "said").open("w") as out:
            for command in commands:
                subprocess.run(
                    ["bash", "-e", "-c", command],
                    cwd=folder,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    timeout=HANGS,
                    check=True,
                )
        end = time.monotonic() + 40
        while processes_of(folder) and time.monotonic() < end:
            time.sleep(1)
        require(not processes_of(folder), "stop_fl.sh does not stop everything")
    except subprocess.SubprocessError as error:
        raise AssertionError(f"{error}\n{(folder / 'said').read_text()}") from None
    finally:
        for pid in processes_of(folder):
            os.kill(pid, signal.SIGKILL)
    said = (folder / "said").read_text()
    shown = blocks[[block.startswith("│") for block in blocks].index(True)].splitlines()
    for line in shown:
        table = (row for row in said.splitlines() if row.startswith("│"))
        require(" ".join(line.split()) in " ".join(said.split()), "\n".join(["the page promises", line, "of", *table]))
    trace = Trace.from_npz(folder / "results" / "trace.npz")
    require(trace.status == "converged", trace.status)
    return f"{len(commands)} blocks of commands; {trace.last['round']:.0f} rounds, {trace.last['certified_error']:.2e}"


def measured(folder: Path) -> None:
    """Print times and bytes per round."""
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; medians over {ROUNDS} rounds, three sites")
    print("method, d, certified every, ms per round, ms of one process, bytes up, down, of them arrays up, down")
    for algorithm, features, every in (
        *((name, 649, 1000) for name in METHODS),
        ("dualfl", 649, 1),
        ("dualfl", 7849, 1000),
        ("dualfl", 99_999, 1000),
    ):
        project = project_of(algorithm, features=features, rounds=ROUNDS, certify_every=every)
        (place := folder / f"{algorithm}-{features}-{every}").mkdir()
        with Loopback(place, project) as loopback:
            code, said = loopback.run_with()
            require(code == 0, said)
            outcome = json.loads((loopback.out / "run.json").read_text())["outcome"]
            own = np.diff(in_one_process(project)["seconds"])
            found = [outcome[name] / ROUNDS for name in ("bytes_up", "bytes_down", "numbers_up", "numbers_down")]
            ms = f"{outcome['ms_per_round']:.1f}, {1e3 * statistics.median(own):.1f}"
            print(f"{algorithm}, {features + 1}, {every}, {ms}, {', '.join(f'{x:,.0f}' for x in found)}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.federation", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(SCENARIOS)}; default: all")
    parser.add_argument("--measure", action="store_true", help="time rounds instead")
    given = parser.parse_args()
    if unknown := set(given.names) - set(SCENARIOS):
        parser.error(f"there is no {', '.join(sorted(unknown))}")
    failed = 0
    folder = Path(tempfile.mkdtemp(prefix="dualopt-federation-"))
    try:
        if given.measure:
            measured(folder)
            return 0
        for name in given.names or SCENARIOS:
            began = time.monotonic()
            (place := folder / name).mkdir()
            try:
                said = f"ok: {SCENARIOS[name](place)}"
                found = elsewhere(place)
                require(not found, f"a row of a site is in {found}")
            except Exception as error:
                failed += 1
                said = f"FAILED: {error}"
                if not isinstance(error, AssertionError):
                    traceback.print_exc()
            require(not processes_of(folder), "processes are left")
            print(f"{name} ({time.monotonic() - began:.0f} s) {said}", flush=True)
    finally:
        shutil.rmtree(folder)
    return bool(failed)


if __name__ == "__main__":
    with terminable():
        sys.exit(main())
