"""A whole federation on this machine: certificates, a server, sites, all in a folder, and every process ended by id."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from dualopt.arrays import codec
from dualopt.engine import journal
from dualopt.federation.project import Project
from dualopt.federation.provision import ADMIN, SERVER, write_provision
from dualopt.federation.settings import SiteSettings
from tests.federation.problems import write_shards

__all__ = ["Loopback", "free_port", "processes_of"]

ROOT = Path(__file__).parents[2]
HANGS = 600  # seconds after which a program hangs: on a free machine each takes less than one minute


class Loopback:
    """Server and sites in ``folder``, each started as its ``start.sh`` would, but in the foreground.

    Use it as a context: all processes are gone at its end, also those that FLARE has started for jobs.
    """

    def __init__(
        self,
        folder: Path,
        project: Project,
        *,
        environment: Mapping[str, str] | None = None,
        of_sites: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        self.folder, self.port, self.of_sites = folder, free_port(), of_sites or {}
        self.environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1", **(environment or {})}
        write_provision(project, folder / "flare.yml", "localhost", self.port)
        program = Path(sys.executable).with_name("nvflare")
        _succeed([program, "provision", "-p", "flare.yml", "-w", "kits"], folder, self.environment)
        self.kits = folder / "kits" / project.name / "prod_00"
        self.admin = self.kits / ADMIN
        self.data = write_shards(folder, project.features)
        self.started: dict[str, subprocess.Popen] = {}
        self.agree(project)

    def agree(self, project: Project, *, but: Mapping[str, Project] | None = None) -> None:
        """Give every site the project file, and some of them another one."""
        self.project, self.project_file = project, self.folder / f"{project.run_name}.toml"
        project.write(self.project_file)
        for site in project.sites:
            own = (but or {}).get(site, project)
            own.write(file := self.folder / f"{own.run_name}.toml")
            state = self.kits / site / "state"
            SiteSettings(project=str(file), data=str(self.data[site]), state=str(state)).write(self.kits / site)

    def __enter__(self) -> Loopback:
        try:
            self.start(SERVER, *self.project.sites)
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *_: Any) -> None:
        self.end()

    def start(self, *names: str) -> None:
        """Start server or sites; a process that falls is not started again here."""
        for name in names:
            kind = "server" if name == SERVER else "client"
            uid = [] if name == SERVER else [f"uid={name}"]
            command = [sys.executable, "-u", "-m", f"nvflare.private.fed.app.{kind}.{kind}_train", "-m"]
            command += [str(self.kits / name), "-s", f"fed_{kind}.json", "--set", "secure_train=true", *uid]
            command += [f"org={name}", "config_folder=config"]
            with (self.folder / f"{name}.out").open("ab") as out:
                self.started[name] = subprocess.Popen(
                    command,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    stdin=subprocess.DEVNULL,
                    cwd=self.folder,
                    env={**self.environment, **self.of_sites.get(name, {})},
                )

    def run(self) -> subprocess.Popen:
        """Start ``dualopt federation run``."""
        command = [sys.executable, "-m", "dualopt", "federation", "run", str(self.project_file)]
        command += ["--admin", str(self.admin), "--out", str(self.out.relative_to(self.folder))]
        return subprocess.Popen(
            command, cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def run_with(self, fall: Callable[[Loopback], None] = lambda _: None, *rounds: int) -> tuple[int, str]:
        """Run, let something fall at some rounds, and return the exit code and what was said."""
        running = self.run()
        try:
            for n in rounds:
                self.wait_for_round(n, running)
                fall(self)
        finally:
            try:
                said = running.communicate(timeout=HANGS)[0]
            finally:
                running.kill()
        return running.wait(), said

    @property
    def out(self) -> Path:
        """Where results go."""
        return self.folder / "results" / self.project.run_name

    @property
    def rounds(self) -> int:
        """How many rounds the server's checkpoint holds; 0 where there is none."""
        path = self.kits / SERVER / "state" / f"{self.project.run_name}.journal"
        try:
            with path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                file.seek(journal.PREFIX)
                tree, _ = json.loads(codec.read(file, size - journal.PREFIX, exact=True).header)
        except OSError:
            return 0
        progress = tree[-1][".engine.checkpoint:RunProgress"]
        return progress["resume_point"][".engine.rounds:ResumePoint"]["rounds"]

    def wait_for_server(self) -> None:
        """Wait until the server listens."""
        end = time.monotonic() + HANGS
        while time.monotonic() < end:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=5):
                return
            time.sleep(0.5)
        raise RuntimeError("the server does not listen")

    def wait_for_round(self, n: int, running: subprocess.Popen) -> None:
        """Wait until the server's checkpoint holds so many rounds."""
        end = time.monotonic() + HANGS
        while self.rounds < n:
            if running.poll() is not None:
                raise RuntimeError(f"the run ended before round {n}: {running.communicate()[0]}")
            if time.monotonic() > end:
                raise RuntimeError(f"round {n} was not reached")
            time.sleep(0.02)

    def kill(self, name: str) -> None:
        """Kill server or site at once, with its jobs."""
        for pid in [self.started[name].pid, *self.jobs(name)]:
            _kill(pid)
        self.started.pop(name).wait()

    def kill_job(self, name: str) -> None:
        """Kill the process of the job at server or site."""
        for pid in self.jobs(name):
            _kill(pid)

    def jobs(self, name: str) -> list[int]:
        """Return the processes that FLARE has started for jobs of server or site."""
        return [pid for pid in processes_of(self.kits / name) if pid != self.started[name].pid]

    def end(self) -> None:
        """End all processes, by id, and wait for those that are ours."""
        for _ in range(50):
            for pid in (left := processes_of(self.kits)):
                _kill(pid)
            for process in self.started.values():
                process.wait()
            if not left:
                return
            time.sleep(0.1)
        raise RuntimeError(f"processes {left} do not end")


def processes_of(folder: Path) -> list[int]:
    """Return the processes whose command names something in a folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if any(word.startswith(os.fsencode(f"{folder}")) for word in words):
                found.append(int(entry.name))
    return found


def _succeed(command: list[Any], folder: Path, environment: Mapping[str, str]) -> None:
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)


def free_port() -> int:
    """Return a port that nobody listens to."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
