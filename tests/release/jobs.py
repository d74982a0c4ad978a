"""What must run in an environment, by its name, and what must be refused there."""

from __future__ import annotations

from typing import NamedTuple


class Job(NamedTuple):
    """A command of a shell, and how it must end."""

    command: str
    says: str
    status: int = 0
    files: tuple[str, ...] = ()


def refused(command: str, package: str, extra: str) -> Job:
    """Return a command of the program without a package that it needs."""
    return Job(command, f'{package}: pip install "dualopt[{extra}]".', status=2)


def no_program(package: str) -> tuple[Job, ...]:
    """Return the commands without the extra ``app``."""
    commands = ("run", "predict", "list", "prove", "theory", "attack", "figures", "lessons", "federation")
    return tuple(Job(f"dualopt {c}", f'package {package} is missing: pip install "dualopt[app]".', 2) for c in commands)


RUN = Job(
    "scripts.py readme_job README",
    "converged",
    files=tuple(f"out/{n}" for n in ("model.json", "trace.csv", "convergence.png")),
)
PREDICT = Job("dualopt predict --model out --data digits --out predictions.csv", "accuracy", files=("predictions.csv",))
LESSONS = (
    Job("dualopt lessons --list", "your_own"),
    Job("dualopt lessons bound chain --export pages", "chain.html", files=("pages/bound.html", "pages/index.html")),
    Job("scripts.py opened", "opened True True"),
)
FIGURE = Job("dualopt figures fig1b_clients --quick --rounds 5 --out figs", "fig1b", files=("figs/fig1b_clients.pdf",))
TABLES = (
    Job("scripts.py tables", "written", files=("patients.csv", "new.csv")),
    Job("dualopt run --data patients.csv --label sick --client hospital --scale standard --out model", "converged"),
    Job("dualopt predict --model model --data new.csv --out new_predictions.csv", "20", files=("new_predictions.csv",)),
)
PROVE = Job("dualopt prove --algorithm fedsplit --out proof", "proved", files=("proof/prove.json",))

JOBS: dict[str, tuple[Job, ...]] = {
    "core": no_program("typer"),
    "app": (
        RUN,
        Job("scripts.py readme_example README", "converged"),
        PREDICT,
        *LESSONS,
        FIGURE,
        Job("dualopt theory --quick fedsplit_contraction", "holds"),
        Job("dualopt attack --list", "claims"),
        TABLES[0],
        refused("dualopt run --data patients.csv --label sick --out table", "pyarrow", "frames"),
        refused("dualopt prove --algorithm fedsplit --out proof", "CVXPY", "theory"),
        refused("dualopt run --engine mpi --out mpi", "mpi4py", "mpi"),
        refused("dualopt run --device cuda --out gpu", "a CUDA GPU", "gpu"),
        refused("dualopt run --data digits --model cnn --algorithm fedavg --out cnn", "torch", "torch"),
    ),
    "everything": (RUN, *TABLES, PROVE, *LESSONS, Job("dualopt theory --quick", "statements")),
    "lowest": (RUN, PREDICT, *TABLES, PROVE, *LESSONS, FIGURE, Job("dualopt theory --quick dualfl", "statements")),
    "theory": (Job("scripts.py proved", "proved"),),
    "frames": (Job("scripts.py frames", "read (300, 2) (2,)"),),
    "sparse": (Job("scripts.py sparse", "converged"),),
    "testing": (Job("scripts.py drawn", "drawn"),),
    "fast": (Job("DUALOPT_FAST=1 scripts.py fast", "converged Numba 0."),),
    "torch": (Job("scripts.py networks", "trained"),),
    "federation": (
        Job(
            "dualopt federation new study --site lyon --site basel --features 30 --classes 0,1 --mu 0.01",
            "fingerprint",
            files=("study/project.toml",),
        ),
        Job("nvflare provision -p study/provision.yml -w study/kits", ""),
        Job("scripts.py secure", "converged"),
    ),
    "processes": (
        Job("mpiexec -n 2 dualopt run --engine mpi --data digits --clients 4 --rounds 20 --out m", "certified"),
    ),
}
