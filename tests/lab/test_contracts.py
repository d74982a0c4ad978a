"""The contracts on classes in files: a right one keeps all promises, each wrong one is caught at the one it breaks."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from dualopt.lab.contracts.options import KINDS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "plug_ins.md").read_text()
ASCENT = '''
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from dualopt import AUTO, Algorithm
from dualopt.arrays.xp import array_namespace, broadcast, zeros_like


class Server(NamedTuple):
    theta: object


class Client(NamedTuple):
    theta: object
    zeta: object


@dataclass(frozen=True, kw_only=True)
class Ascent(Algorithm):
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
'''
DESCENT = '''
from dualopt import GradientDescent


class Descent(GradientDescent):
    """Gradient descent again."""
'''
SHORT = '''
from dataclasses import dataclass

from dualopt.arrays.xp import array_namespace, zeros_like
from dualopt.solvers import LBFGS
from dualopt.solvers.stopping import Steps


@dataclass(frozen=True, kw_only=True)
class Short(LBFGS):
    """L-BFGS with a short history."""

    history: int = 5

    def __call__(self, problem, start, stop, solver_state=(), round=None):
        return super().__call__(problem, start, stop, solver_state, round)
'''
FILES = [ASCENT, DESCENT, SHORT, *re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)]
UPLOAD = "return c._replace(theta=theta), theta"
LAST = '"""Gradient descent again."""'
CALL = "return super().__call__(problem, start, stop, solver_state, round)"
# Each of these files changed at one place: its kind and name, the text, what it becomes, and the test that notices.
EDITS = {
    "writes": ("algorithm", "Ascent", "return c._replace(zeta=c.zeta + message - c.theta)",
               "zeta = c.zeta\n        zeta += message - c.theta\n        return c._replace(zeta=zeta)",
               "test_writes_to_nothing_that_it_is_handed"),
    "alone": ("algorithm", "Descent", LAST, 'supports = frozenset({"partial"})',
              "test_partial_participation_reaches_the_minimiser"),
    "modest": ("algorithm", "Descent", LAST, "def fixed_point(self, objective, theta):\n        return None",
               "test_methods_that_say_they_are_biased_are"),
    "misspelt": ("algorithm", "Descent", LAST, 'supports = frozenset({"partail"})',
                 "test_it_needs_no_arguments_and_supports_what_there_is"),
    "averages": ("algorithm", "Ascent", UPLOAD,
                 "return c._replace(theta=theta), array_namespace(theta).mean(theta, axis=0)",
                 "test_uploads_have_one_row_per_client"),
    "chance": ("algorithm", "Ascent", UPLOAD,
               "return c._replace(theta=theta), theta * (1.0 + 1e-9 * np.random.default_rng().random())",
               "test_is_deterministic"),
    "elsewhere": ("algorithm", "Ascent", "zeta.shape), zeta)", "zeta.shape), -zeta)", "test_stays_at_the_optimum"),
    "partial": ("algorithm", "Ascent", UPLOAD,
                "first = theta[:1, ...] * (1.0 + 1e-6 * (0 in round.clients))\n        return c._replace(theta=theta), "
                "array_namespace(theta).concat([first, theta[1:, ...]])",
                "test_permuting_clients_permutes_states"),
    "rounded": ("algorithm", "Ascent", "return Server(mean), mean",
                "mean = np.asarray(mean, dtype=np.float32).astype(np.float64)\n        return Server(mean), mean",
                "test_array_libraries_agree"),
    "slope": ("loss", "SquaredTube", "return self.beyond", "return 1.001 * self.beyond",
              "test_gradient_is_the_derivative"),
    "flat": ("loss", "SquaredTube", "curvature = property(lambda self: 1.0)", "curvature = property(lambda self: 0.9)",
             "test_curvature_bounds_the_gradient"),
    "fixed_step": ("loss", "SquaredTube", "(step / (1.0 + step))", "0.5", "test_prox"),
    "nowhere": ("loss", "SquaredTube", "0.5 * u**2",
                "0.5 * u**2 * array_namespace(u).where(u**2 < 4e4, 1.0, float('inf'))",
                "test_conjugate_outside_its_domain"),
    "conjugate": ("loss", "SquaredTube", "0.5 * u**2", "0.51 * u**2", "test_fenchel_young"),
    "writer": ("loss", "SquaredTube", "slope = self", "z += 0.0\n        slope = self", "test_read_only_numpy"),
    "early": ("solver", "Short", CALL,
              "found = super().__call__(problem, start, Steps(steps=1), solver_state, round)\n"
              '        return found._replace(status=("converged",) * problem.n_clients)',
              "test_reaches_the_minimiser_with_an_honest_gap"),
    "broken": ("solver", "Short", CALL, 'raise ValueError("operands could not be broadcast together")',
               "test_reaches_the_minimiser_with_an_honest_gap"),
    "looks": ("solver", "Short", CALL,
              "start = zeros_like(start) + array_namespace(start).mean(start, axis=0)\n        " + CALL,
              "test_a_client_alone_gets_the_bits_of_its_row"),
    "scribbles": ("solver", "Short", CALL, "start *= 1.0\n        " + CALL,
                  "test_nothing_is_changed_and_a_call_can_be_repeated"),
    "no_step": ("regulariser", "ElasticNet", "shrink(theta, step * self.weight)", "shrink(theta, self.weight)",
                "test_no_point_is_better_than_the_prox"),
    "zero_slope": ("regulariser", "ElasticNet", "return self.mu * theta + xp", "return 0.0 * xp",
                   "test_minimal_subgradient_is_the_least_element"),
    "two_ridges": ("regulariser", "ElasticNet", "lambda self: self.weight * self.ridge)",
                   "lambda self: 2 * self.weight)", "test_minimal_subgradient_is_the_least_element"),
    "loses": ("partition", "halving", "return [*parts, rows]", "return [*parts, rows[1:] if len(rows) > 1 else rows]",
              "test_every_row_has_one_client_and_every_client_rows"),
    "twice": ("partition", "halving", "return [*parts, rows]", "return [*parts, rows, rows]",
              "test_every_row_has_one_client_and_every_client_rows"),
    "moody": ("partition", "halving", "default_rng(seed)", "default_rng()", "test_chance_is_that_of_the_seed"),
    "biased": ("compressor", "Coins", "x / self.p", "x", "test_what_arrives_has_the_mean_that_it_says"),
    "loud": ("compressor", "Coins", "1.0 / self.p - 1.0", "0.5 / self.p", "test_omega_bounds_what_arrives"),
    "free": ("compressor", "Coins", "width * self", "0 * self", "test_as_much_is_counted_as_arrives"),
    "common": ("compressor", "Coins", "in round.compression_rngs()",
               "in [round.compression_rng()] * len(round.clients)",
               "test_what_a_client_sends_does_not_depend_on_who_else_does"),
    "tilted": ("objective", "Anchored", "weight * (theta - self.anchor)\n", "weight * (theta - 0.99 * self.anchor)\n",
               "test_gradient_is_the_derivative"),
    "rounder": ("objective", "Anchored", "objective.mu + self.weight", "objective.mu + 2.0 * self.weight",
                "test_mu_and_L_are_constants_of_convexity_and_smoothness"),
    "flatter": ("objective", "Anchored", "self.objective.L + self.weight", "self.objective.L",
                "test_mu_and_L_are_constants_of_convexity_and_smoothness"),
    "safe": ("claim", "descent", "yield steps_of(0.2)", "# yield steps_of(0.2)", "test_a_wrong_variant_violates_it"),
    "loose": ("claim", "descent", "0.75**n * first)", "9.0 * 0.75**n * first)",
              "test_a_smaller_constant_would_be_noticed"),
    "false": ("claim", "descent", "0.75**n * first)", "0.7**n * first)",
              "test_every_case_has_the_verdict_that_is_expected"),
}  # fmt: skip
REASONS = {  # where a sentence says more than the promise
    "writes": "(receive writes to what it is handed)",
    "misspelt": "(supports must be among ['partial', 'regulariser', 'skip', 'unequal'], not",
    "chance": "(local is not deterministic)",
    "broken": "ValueError: operands could not be broadcast together (broken.py, line ",
}
environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}


def contracts(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dualopt.lab.contracts", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def source(thing: str) -> str:
    """Return the file that defines a class or a function."""
    (found,) = [text for text in FILES if re.search(rf"^(class|def) {thing}\b", text, re.MULTILINE)]
    return found


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Return the lines about each of the edited files: its verdict, and a reason a line."""
    folder, words, tests = tmp_path_factory.mktemp("edited"), [], []
    for name, (kind, thing, old, new, test) in EDITS.items():
        assert source(thing).count(old) == 1, name
        (folder / f"{name}.py").write_text(re.sub(rf"\b{thing}\b", f"{name}_{thing}", source(thing).replace(old, new)))
        words.append(f"--{kind}={name}.py:{name}_{thing}")
        tests.append(f"({name}_{thing} and {test})")
    done = contracts(folder, *words, "-k", " or ".join(tests))
    assert done.returncode == 1, done.stdout[-3000:] + done.stderr
    parts = re.split(r"\n\n(?=\S+\.py:\w+ )", done.stdout.partition("\n\nWith --tb")[0])[1:]
    return {part.partition(" ")[0]: part.splitlines() for part in parts}


@pytest.mark.parametrize("name", EDITS)
def test_a_wrong_one_is_caught_at_its_promise(report: dict[str, list[str]], name: str) -> None:
    kind, thing, *_, test = EDITS[name]
    contract = import_module(f"dualopt.lab.contracts.test_{KINDS[kind]}")
    promise = " ".join((inspect.getdoc(getattr(contract, test)) or "").partition("\n\n")[0].split())
    verdict, *reasons = report[f"{name}.py:{name}_{thing}"]
    assert "its contract" in verdict
    assert any(promise.rstrip(".") in line and REASONS.get(name, "") in line for line in reasons), reasons


def test_a_right_one_keeps_all(tmp_path: Path) -> None:
    """So does a built-in one, by its name; those of the page do in ``tests/docs/test_pages.py``."""
    (tmp_path / "right.py").write_text(ASCENT + SHORT)
    done = contracts(tmp_path, "--algorithm=right.py:Ascent", "--solver=right.py:Short", "--partition=iid")
    assert done.returncode == 0, done.stdout[-3000:]


def test_without_pytest_the_sentence_says_so(tmp_path: Path) -> None:
    code = "import runpy, sys; sys.modules['pytest'] = None; runpy.run_module(sys.argv.pop(1), run_name='__main__')"
    command = [sys.executable, "-c", code, "dualopt.lab.contracts", "--loss", "hinge"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, "contracts: package pytest is missing: pip install pytest.\n")


def test_names_that_lead_to_nothing_are_one_sentence(tmp_path: Path) -> None:
    done = contracts(tmp_path, "--algorithm", "m.py:X")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "contracts: algorithm 'm.py:X': there is no file 'm.py'.\n"
    done = contracts(tmp_path)
    assert done.stderr.startswith("contracts: --algorithm, --loss, --regulariser, --partition,")


def test_one_reason_is_one_line_and_the_tiers_are_named(tmp_path: Path) -> None:
    """A method of NumPy's arrays fails two dozen checks, all of the array API, for one reason."""
    text, clipped = source("SquaredTube"), "array_namespace(r).clip(r, -self.width, self.width)"
    assert text.count(clipped) == 1
    (tmp_path / "plain.py").write_text(text.replace(clipped, "r.clip(-self.width, self.width)"))
    done = contracts(tmp_path, "--loss=plain.py:SquaredTube")
    verdict, reason, *_ = done.stdout[done.stdout.index("plain.py:SquaredTube") :].splitlines()
    assert done.returncode == 1
    assert "keeps its contract with NumPy's arrays alone (tier NumPy, " in verdict
    said = r"  24 checks \[array API\]: AttributeError: 'Array' object has no attribute 'clip' "
    assert re.match(said + r"\(plain\.py, line \d+\)\. ", reason)
    assert "xp.clip(x) with xp = array_namespace(x)" in reason
    assert "24 failed" in done.stdout
    assert done.stdout.count("AttributeError") == 1
    done = contracts(tmp_path, "--loss=plain.py:SquaredTube", "--tier=numpy")
    assert done.returncode == 0
    assert "keeps its contract with NumPy's arrays (tier NumPy): " in done.stdout


def test_an_example_that_builds_nothing_is_one_sentence(tmp_path: Path) -> None:
    text = source("ElasticNet")
    (tmp_path / "bare.py").write_text(re.sub(r"(example: .*) = .*", r"\1 = {}", text))
    done = contracts(tmp_path, "--regulariser=bare.py:ElasticNet")
    said = "ElasticNet must have an example, a dictionary of arguments, with weight."
    assert (done.returncode, done.stderr) == (2, f"contracts: regulariser 'bare.py:ElasticNet': {said}\n")
