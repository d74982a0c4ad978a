"""Fresh environments, and what is run in each: a job of :mod:`tests.release.jobs`, or a script of this folder."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tests.release.built import Built, uv
from tests.release.jobs import JOBS, Job

HERE = Path(__file__).parent
SECONDS = 1800  # that a job may take
SCRIPTS = (Job("core.py", "certified"), Job("refusals.py", " refused"))


class Environment(NamedTuple):
    """What is installed, and the jobs beside those of every environment."""

    extras: tuple[str, ...] = ()
    jobs: tuple[Job, ...] = ()
    more: tuple[str, ...] = ()  # packages that no extra brings
    sources: bool = False  # from the source distribution
    lowest: bool = False


ALONE = [
    "app",
    "theory",
    "frames",
    "sparse",
    "gpu",
    "browser",
    "fast",
    "torch",
    "federation",
    "mpi",
    "docs",
    "testing",
    "dev",
]
ENVIRONMENTS: Mapping[str, Environment] = {
    "core": Environment(jobs=JOBS["core"]),
    "sources": Environment(jobs=JOBS["core"], sources=True),
    **{extra: Environment((extra,), JOBS.get(extra, ())) for extra in ALONE},
    "everything": Environment(("app", "theory", "frames"), JOBS["everything"]),
    "processes": Environment(("app", "mpi"), JOBS["processes"], more=("mpich",)),
    "lowest-core": Environment(jobs=JOBS["core"], lowest=True),
    "lowest": Environment(("app", "theory", "frames"), JOBS["lowest"], lowest=True),
}


def complaints(what: Environment, folder: Path, built: Built, python: str) -> Iterator[str]:
    """Make an environment in a folder, run its jobs, and yield what is wrong."""
    shutil.rmtree(folder, ignore_errors=True)
    uv("venv", "--quiet", "--python", python, folder)
    install = ["pip", "install", "--quiet", "--python", folder / "bin" / "python"]
    file = built.sources if what.sources else built.wheel
    if what.lowest:
        wanted = [word for extra in what.extras for word in ("--extra", extra)]
        uv(*install, "--resolution", "lowest-direct", "-r", "pyproject.toml", *wanted, cwd=built.tree)
        uv(*install, "--no-deps", file)
    else:
        uv(*install, f"{file}[{','.join(what.extras)}]" if what.extras else file, *what.more)
    place = folder / "work"
    place.mkdir()
    for job in (*SCRIPTS, *what.jobs):
        if (wrong := _complaint(job, folder, place, built.tree)) is not None:
            yield wrong


def _complaint(job: Job, folder: Path, place: Path, tree: Path) -> str | None:
    """Run a job; return what is wrong with how it ends, or None."""
    bin = folder / "bin"
    hidden = ("PYTHONPATH", "VIRTUAL_ENV", "DUALOPT_DATA_HOME", "DUALOPT_FAST")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    environment |= {"PATH": f"{bin}{os.pathsep}{os.environ['PATH']}", "MPLBACKEND": "Agg", "COLUMNS": "120"}
    command = job.command.replace("README", str(tree / "README.md"))
    command = re.sub(r"\b(\w+\.py)\b", lambda script: f"python {HERE / script[1]}", command)
    done = subprocess.run(
        ["bash", "-c", command], cwd=place, env=environment, capture_output=True, text=True, timeout=SECONDS
    )
    said = done.stdout + done.stderr
    if done.returncode != job.status or job.says not in re.sub(r"\s+", " ", said):
        last = said.strip().splitlines()[-1:] or ["nothing"]
        return f"{job.command!r} ends with {done.returncode}, and says {last[0]!r}"
    if job.status and len(done.stderr.splitlines()) != 1:
        return f"{job.command!r} refuses in {len(done.stderr.splitlines())} lines"
    lacking = [name for name in job.files if not (place / name).is_file()]
    return f"{job.command!r} has not written {', '.join(lacking)}" if lacking else None
