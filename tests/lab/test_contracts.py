"""The contracts on classes in files: a right one keeps all promises, each wrong one is caught at the one it breaks."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
METHODS = '''
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from dualopt import AUTO, Algorithm, GradientDescent
from dualopt.arrays.xp import array_namespace, broadcast, zeros_like


class Server(NamedTuple):
    theta: object


class Client(NamedTuple):
    theta: object
    zeta: object


@dataclass(frozen=True, kw_only=True)
class Right(Algorithm):
    """Gradient ascent on the dual problem."""

    receivers: ClassVar[frozenset[str]] = frozenset({"active"})
    nu: float = AUTO

    def suggested(self, objective):
        nu = min(map(float, objective.mu)) if self.nu is None else self.nu
        return replace(super().suggested(objective), nu=nu)

    def init(self, theta0, copies):
        return Server(theta0), theta0, Client(copies, zeros_like(copies))

    def local(self, c, message, oracle, round):
        theta = oracle.solve(start=c.theta, linear=-self.nu * c.zeta).theta
        return c._replace(theta=theta), theta

    def server(self, server, mean, round):
        return Server(mean), mean

    def receive(self, c, message):
        return c._replace(zeta=c.zeta + message - c.theta)

    def fixed_point(self, objective, theta):
        zeta = objective.gradient(theta) / self.nu
        return Server(theta), theta, Client(broadcast(theta, zeta.shape), zeta)


class Writes(Right):
    """It adds to the state that it is handed."""

    def receive(self, c, message):
        zeta = c.zeta
        zeta += message - c.theta
        return c._replace(zeta=zeta)


class Alone(GradientDescent):
    """It says that it works with a part of the clients, and does not."""

    supports: ClassVar[frozenset[str]] = frozenset({"partial"})


class Misspelt(Right):
    """It supports what does not exist."""

    supports: ClassVar[frozenset[str]] = frozenset({"partail"})


class Averages(Right):
    """It uploads one model, not one for each client."""

    def local(self, c, message, oracle, round):
        c, upload = super().local(c, message, oracle, round)
        return c, array_namespace(upload).mean(upload, axis=0)


class Chance(Right):
    """It draws from a generator of its own."""

    def local(self, c, message, oracle, round):
        c, upload = super().local(c, message, oracle, round)
        return c, upload * (1.0 + 1e-9 * np.random.default_rng().random())


class Elsewhere(Right):
    """It says that it rests where it does not."""

    def fixed_point(self, objective, theta):
        server, message, clients = super().fixed_point(objective, theta)
        return server, message, clients._replace(zeta=-clients.zeta)


class Modest(GradientDescent):
    """It says that it is biased, and is not."""

    def fixed_point(self, objective, theta):
        return None


class Partial(Right):
    """It prefers its first client."""

    def local(self, c, message, oracle, round):
        c, upload = super().local(c, message, oracle, round)
        xp = array_namespace(upload)
        rest = upload[1:, ...]
        return c, xp.concat([upload[:1, ...] * (1.0 + 1e-6), rest]) if 0 in round.clients else upload


class Rounded(Right):
    """It computes in single precision, and in NumPy."""

    def server(self, server, mean, round):
        mean = np.asarray(mean, dtype=np.float32).astype(np.float64)
        return Server(mean), mean
'''
BROKEN = {
    "Writes": "not written to. (receive writes to what it is handed.)",
    "Alone": 'If it supports "partial" participation, it converges',
    "Misspelt": "(supports must be among ['partial', 'regulariser', 'skip', 'unequal'], not",
    "Averages": "The upload and the states of clients have the client axis first",
    "Chance": "(local is not deterministic.)",
    "Elsewhere": "Started in its ``fixed_point`` at the minimiser it stays there",
    "Modest": "If it says that the minimiser is no fixed point, by ``fixed_point = None``, it leaves the minimiser.",
    "Partial": "Clients in another order give the same model",
    "Rounded": "Every array library of the standard gives the same numbers",
}
LOSSES = '''
from dataclasses import dataclass
from typing import Any, ClassVar

from dualopt.losses import SmoothedHinge
from dualopt.arrays.xp import array_namespace


@dataclass(frozen=True, kw_only=True)
class Right(SmoothedHinge):
    """The smoothed hinge."""

    gamma: float = 0.5


@dataclass(frozen=True, kw_only=True)
class Slope(Right):
    """A gradient that is too long."""

    def gradient(self, z, y):
        return 1.001 * super().gradient(z, y)


@dataclass(frozen=True, kw_only=True)
class Flat(Right):
    """A curvature that is too small."""

    @property
    def curvature(self):
        return 0.9 / self.gamma


@dataclass(frozen=True, kw_only=True)
class Step(Right):
    """A proximal point that ignores the step."""

    def prox(self, z, y, step):
        return super().prox(z, y, 0.0 * step + 1.0)


@dataclass(frozen=True, kw_only=True)
class Everywhere(Right):
    """A conjugate that is finite everywhere."""

    def conjugate(self, u, y):
        return y * u + 0.5 * self.gamma * u * u


@dataclass(frozen=True, kw_only=True)
class Conjugate(Right):
    """A conjugate with another constant."""

    def conjugate(self, u, y):
        return super().conjugate(u, y) + 0.01 * u * u


@dataclass(frozen=True, kw_only=True)
class Writer(Right):
    """It writes to its argument."""

    def value(self, z, y):
        z += 0.0
        return super().value(z, y)
'''
SOLVERS = '''
from dataclasses import dataclass

from dualopt.solvers import LBFGS, Nesterov
from dualopt.solvers.stopping import Steps
from dualopt.arrays.xp import array_namespace


@dataclass(frozen=True, kw_only=True)
class Right(LBFGS):
    """L-BFGS with a short history."""

    history: int = 5


@dataclass(frozen=True, kw_only=True)
class Early(Right):
    """It says that it has converged, and has not."""

    def __call__(self, problem, start, stop, solver_state=(), round=None):
        solution = super().__call__(problem, start, Steps(steps=1), solver_state, round)
        return solution._replace(status=("converged",) * problem.n_clients)


@dataclass(frozen=True, kw_only=True)
class Broken(Right):
    """It raises whatever it is given."""

    def __call__(self, problem, start, stop, solver_state=(), round=None):
        raise ValueError("operands could not be broadcast together")


@dataclass(frozen=True, kw_only=True)
class Looks(Right):
    """It starts at the mean of the clients of the call."""

    def __call__(self, problem, start, stop, solver_state=(), round=None):
        xp = array_namespace(start)
        start = xp.zeros_like(start) + xp.mean(start, axis=0)
        return super().__call__(problem, start, stop, solver_state, round)


@dataclass(frozen=True, kw_only=True)
class Writer(Right):
    """It writes to where it starts."""

    def __call__(self, problem, start, stop, solver_state=(), round=None):
        start *= 1.0
        return super().__call__(problem, start, stop, solver_state, round)
'''
WRONG_SOLVERS = {
    "Early": "It reaches the minimiser that other routes find",
    "Broken": "(ValueError: operands could not be broadcast together)",
    "Looks": "What a client gets does not depend on who else is in the call",
    "Writer": "It writes to nothing that it is handed",
}
WRONG_LOSSES = {
    "Slope": "The gradient agrees with central differences of the value.",
    "Flat": "The gradient is Lipschitz with the declared constant.",
    "Step": "The proximal point satisfies the optimality condition",
    "Everywhere": "in some direction, the conjugate is infinite.",
    "Conjugate": "The inequality holds at any dual point, with equality at the gradient.",
    "Writer": "Nothing is written to or shared with the arguments",
}
# The files of docs/plug_ins.md, each changed at one place: the kind, the thing, the change, and the promise.
EDITS = {
    "no_step": (
        "regulariser",
        "ElasticNet",
        "shrink(theta, step * self.weight)",
        "shrink(theta, self.weight)",
        "no point near",
    ),
    "zero_slope": (
        "regulariser",
        "ElasticNet",
        "return self.mu * theta + xp",
        "return 0.0 * xp",
        "minus its squared norm",
    ),
    "two_ridges": (
        "regulariser",
        "ElasticNet",
        "lambda self: self.weight * self.ridge)",
        "lambda self: 2 * self.weight)",
        "minus its squared norm",
    ),
    "loses": (
        "partition",
        "halving",
        "return [*parts, rows]",
        "return [*parts, rows[1:] if len(rows) > 1 else rows]",
        "Every row is dealt",
    ),
    "twice": (
        "partition",
        "halving",
        "return [*parts, rows]",
        "return [*parts, rows, rows]",
        "as many clients as asked",
    ),
    "moody": ("partition", "halving", "default_rng(seed)", "default_rng()", "The same arguments give the same parts"),
    "biased": ("compressor", "Coins", "x / self.p", "x", "If it says that it is unbiased"),
    "loud": ("compressor", "Coins", "1.0 / self.p - 1.0", "0.5 / self.p", "The second moment of what arrives"),
    "free": ("compressor", "Coins", "width * self", "0 * self", "their bits tell apart"),
    "common": (
        "compressor",
        "Coins",
        "in round.compression_rngs()",
        "in [round.compression_rng()] * len(round.clients)",
        "who else",
    ),
    "tilted": (
        "objective",
        "Anchored",
        "weight * (theta - self.anchor)\n",
        "weight * (theta - 0.99 * self.anchor)\n",
        "central differences",
    ),
    "rounder": (
        "objective",
        "Anchored",
        "objective.mu + self.weight",
        "objective.mu + 2.0 * self.weight",
        "as monotone as ``mu`` says",
    ),
    "flatter": (
        "objective",
        "Anchored",
        "self.objective.L + self.weight",
        "self.objective.L",
        "as Lipschitz as ``L`` says",
    ),
    "safe": (
        "claim",
        "descent",
        "yield steps_of(0.2)",
        "# yield steps_of(0.2)",
        "a claim that nothing violates tests nothing",
    ),
    "loose": ("claim", "descent", "0.75**n * first)", "9.0 * 0.75**n * first)", "half of the bound is violated"),
    "false": ("claim", "descent", "0.75**n * first)", "0.7**n * first)", "Every case has the verdict that is expected"),
}
environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}


def contracts(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dualopt.lab.contracts", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def broken(folder: Path, kind: str, source: str, names: Sequence[str]) -> dict[str, list[str]]:
    """Run the contract on classes of a file; return the broken promises by class."""
    (folder / "m.py").write_text(source)
    done = contracts(folder, *(f"--{kind}=m.py:{name}" for name in names))
    assert done.returncode == 1, done.stdout[-3000:] + done.stderr
    said = re.split(r"=+ broken promises =+\n", done.stdout)[1].partition("\n===")[0]
    found: dict[str, list[str]] = {name: [] for name in names}
    for line in said.splitlines():
        found[next(name for name in names if re.match(rf".*\b{name}\b", line.partition(": ")[0]))].append(line)
    return found


def test_without_pytest_the_sentence_says_so(tmp_path: Path) -> None:
    code = "import runpy, sys; sys.modules['pytest'] = None; runpy.run_module(sys.argv.pop(1), run_name='__main__')"
    command = [sys.executable, "-c", code, "dualopt.lab.contracts", "--loss", "hinge"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, "contracts: package pytest is missing: pip install pytest.\n")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    return broken(tmp_path_factory.mktemp("contracts"), "algorithm", METHODS, ["Right", *BROKEN])


def test_losses_are_held_to_theirs(tmp_path: Path) -> None:
    found = broken(tmp_path, "loss", LOSSES, ["Right", *WRONG_LOSSES])
    assert found["Right"] == []
    for name, promise in WRONG_LOSSES.items():
        assert any(promise in line for line in found[name]), (name, found[name])


@pytest.fixture(scope="module")
def edited(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return what is said of the edited files."""
    page = (ROOT / "docs" / "plug_ins.md").read_text()
    folder, words = tmp_path_factory.mktemp("edited"), []
    for name, (kind, thing, old, new, _) in EDITS.items():
        (source,) = [text for text in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if f" {thing}" in text]
        assert source.count(old) == 1, name
        (folder / f"{name}.py").write_text(source.replace(old, new))
        words.append(f"--{kind}={name}.py:{thing}")
    return re.split(r"=+ broken promises =+\n", contracts(folder, *words).stdout)[1].partition("\n===")[0]


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_is_caught(edited: str, name: str) -> None:
    assert any(f"{name}.py:" in line and EDITS[name][-1] in line for line in edited.splitlines()), edited


def test_a_right_one_keeps_all(report) -> None:
    assert report["Right"] == []


@pytest.mark.parametrize("name", BROKEN)
def test_a_wrong_one_is_caught_by_name(report, name: str) -> None:
    assert any(BROKEN[name] in line for line in report[name]), report[name]


def test_solvers_are_held_to_theirs(tmp_path: Path) -> None:
    found = broken(tmp_path, "solver", SOLVERS, ["Right", *WRONG_SOLVERS])
    assert found["Right"] == []
    for name, promise in WRONG_SOLVERS.items():
        assert any(promise in line for line in found[name]), (name, found[name])


def test_names_that_lead_to_nothing_are_one_sentence(tmp_path: Path) -> None:
    done = contracts(tmp_path, "--algorithm", "m.py:X")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "contracts: algorithm 'm.py:X': there is no file 'm.py'.\n"
    done = contracts(tmp_path)
    assert done.stderr.startswith("contracts: --algorithm, --loss, --regulariser, --solver,")


def test_a_built_in_one_has_a_name(tmp_path: Path) -> None:
    done = contracts(tmp_path, "--algorithm", "gradient-descent", "-k", "pickling or optimum")
    assert done.returncode == 0
    assert "2 passed" in done.stdout
