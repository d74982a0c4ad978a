"""A deep check: options of a run, drawn together from all that there are.

Every case is drawn from its seed: data, loss, penalties and intercept, weights, partition, method with solver,
participation, compression in both directions, engine, preparation, scales, and from which sizes on data count as large.
A combination may be refused, in one sentence. One that is not must have a reference solution, if it is convex, and must
run without a warning of NumPy, with certificates that are never below the error, and to the same numbers, bit for bit,
when it is interrupted and goes on, and when its clients are at sites that talk by messages; sites may refuse what one
process admits.

Run it with::

    python -m tests.fuzz_runs --cases 2000 --seed 0

It prints the cases that fail, each with the command that repeats it, and ends with exit code 1 if there are any.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

import dualopt.losses
import dualopt.methods
import dualopt.methods.compressors
import dualopt.methods.preparation
import dualopt.solvers
from dualopt.engine.checkpoint import Checkpoint
from dualopt.problem.build import build_problem
from dualopt.problem.options import ProblemOptions
from dualopt.runs.recording import run
from dualopt.runs.reference import NotOptimalError, Reference, solve
from dualopt.spec import Spec
from dualopt.spec.discover import discover
from tests.engine.wired import elsewhere
from tests.programs import check_cases

__all__ = ["Case", "check", "draw", "failures", "main"]

CLIENTS, ROWS, COLUMNS = 5, 60, 4
SITES = ((0, 2), (1,), (3, 4))
ROUNDS, INTERRUPTED, MEASURED = 20, 7, 5
LONGEST = 400  # characters of a sentence that refuses something
LABELS = {"binary": (-1.0, 1.0), "class": (0.0, 1.0, 2.0), "real": (), "positive": (0.5, 1.0, 2.0, 4.0)}
STEPS = {"sgd": "sgd: step=0.05, batch=4, epochs=1", "sarah": "sarah: gamma=1", "gradient": "gradient: step=0.1"}
PARTICIPATIONS = ("subset=2", "importance=3", "bernoulli=0.5", "bernoulli: probability=0.3, nonempty=true")
ENGINES = ("blocks=2", "blocks=5", "secure-blocks=3")
WEIGHTS = ("rows", "3,1,2,1,5")
SITES_ALONE = ("seconds", "bits_measuring_up", "bits_measuring_down")  # columns that are not those of one process
THRESHOLDS = {  # sizes that decide how something is computed, so small that a few rows are large
    "solvers.lbfgs.SMALL": 0,
    "solvers.lbfgs.LARGE": 0,
    "solvers.row_lbfgs.CACHED": 20,
    "solvers.interior_point.LARGEST": 3,
    "solvers._default.LARGEST_GRAM": 3,
    "objectives._dense.LARGE": 0,
    "objectives._dense.LARGEST_PART": 200,
    "objectives._dense.SMALL_GRAM": 1,
    "objectives._sparse.LARGEST_GRAM": 3,
    "objectives._sparse.PART_COLUMNS": 6,
    "objectives.rows.LEAST_ROWS": 5,
    "objectives.rows.BLOCK_NUMBERS": 25,
    "objectives.remainder.KEPT": 1,
    "objectives.linear.TYPICAL_ROWS": 3,
    "objectives.linear.LARGEST_SIDE": 3,
    "objectives.finite_sum.LARGE": -(10**6),
    "objectives._row_inputs.PIECE": 12,
    "objectives._information.PIECE": 12,
    "objectives._rounding.FEW": 0,
    "arrays.client_states.LAZY": 0,
}


class Case(NamedTuple):
    """One case: what is run."""

    seed: int
    problem: dict[str, Any]
    algorithm: str
    options: dict[str, Any]
    large: tuple[str, ...] = ()  # the names of THRESHOLDS that are small

    def __str__(self) -> str:
        shown = {name: value for name, value in self.problem.items() if name != "data"}
        large = f", large by {', '.join(self.large)}" if self.large else ""
        return f"seed {self.seed}: {self.algorithm}, {shown | self.options}{large}"


class Outcome(NamedTuple):
    """How a case ends, and what is wrong with that; empty if nothing is."""

    status: str
    complaint: str = ""


# ---- what is drawn ----


def named(room: Any) -> list[str]:
    """The plug-ins of a room, with the parameters of their examples."""
    return [str(Spec(name, getattr(kind, "example", {}))) for name, kind in discover(room).items()]


@cache
def folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()


@cache
def data(labels: str) -> str:
    """The path of rows with labels of a kind."""
    rng, path = np.random.default_rng(0), Path(folder().name, f"{labels}.npz")
    X = rng.standard_normal((ROWS, COLUMNS)) * np.array([1.0, 3.0, 0.3, 1.0])
    score = X @ np.array([1.0, -0.3, 2.0, 0.0]) + rng.standard_normal(ROWS) + 0.7
    cuts = np.quantile(score, np.linspace(0.0, 1.0, len(LABELS[labels]) + 1)[1:-1])
    y = np.array(LABELS[labels])[np.digitize(score, cuts)] if LABELS[labels] else score
    np.savez(path, X=X, y=y)
    return str(path)


def kind_of_labels(loss: str) -> str:
    kind = discover(dualopt.losses)[loss]
    return "positive" if hasattr(kind, "label_domain") else kind(**kind.example).labels


def draw(seed: int) -> Case:
    """The case of a seed: most options are left alone, so that many combinations are admitted."""
    rng = np.random.default_rng(seed)

    def one(entries: Sequence[Any]) -> Any:
        return entries[int(rng.integers(len(entries)))]

    def sometimes(share: float, **given: Sequence[Any]) -> dict[str, Any]:
        return {name: one(entries) for name, entries in given.items() if rng.random() < share}

    loss = one(list(discover(dualopt.losses)))
    problem = {"data": data(kind_of_labels(loss)), "loss": loss, "clients": CLIENTS, "mu": one([0.0, 1e-3, 0.03, 1.0])}
    problem["partition"] = one(["iid", "consecutive", "lognormal", "dirichlet", "by-label"])
    problem |= sometimes(0.15, intercept=["free", "none"], storage=["sparse"], client_weights=WEIGHTS)
    problem |= sometimes(0.1, regulariser=["l1=0.01", "l2=0.1"], dtype=["float32"], precision=["mixed"])
    problem |= sometimes(0.1, scale=["standard", "unit-rows", "robust"], class_weight=["balanced"])
    problem |= sometimes(0.05, penalty=[0.05])
    algorithm = one([*discover(dualopt.methods), "auto"])
    if rng.random() < 0.1:
        solver = one(list(discover(dualopt.solvers)))
        algorithm += f": solver=({STEPS.get(solver, solver)})"
    options: dict[str, Any] = {"seed": int(rng.integers(3))}
    options |= sometimes(0.25, participation=PARTICIPATIONS, compressor=named(dualopt.methods.compressors))
    options |= sometimes(0.1, downlink=["rounding=8", "natural"], engine=ENGINES, scales=["suggested"])
    options |= sometimes(0.05, prepare=named(dualopt.methods.preparation))
    large = [name for name in THRESHOLDS if rng.random() < 0.5] if rng.random() < 0.5 else []
    return Case(seed, problem, algorithm, options, tuple(large))


# ---- the check ----


def check(case: Case) -> Outcome:
    """Run one case, and again with an interruption."""
    with warnings.catch_warnings(), ExitStack() as stack:
        for name in case.large:
            stack.enter_context(patch(f"dualopt.{name}", THRESHOLDS[name]))
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)
        # kernels of BLAS compute on padding, and leave the flag behind (pyproject.toml)
        warnings.filterwarnings("ignore", "invalid value encountered in matmul", RuntimeWarning)
        try:
            return _run(case)
        except ValueError as error:
            said = str(error)
            fits = "\n" not in said and len(said) <= LONGEST
            return Outcome("refused", "" if fits else f"is refused in more than a sentence: {said}")
        except (Exception, RuntimeWarning) as error:  # whatever it is, it is a failure
            return Outcome("raised", f"{type(error).__name__}: {error}")


def _run(case: Case) -> Outcome:
    objective = build_problem(ProblemOptions(**case.problem)).objective

    def once(**more: Any) -> Any:
        return run(case.algorithm, objective, rounds=ROUNDS, tol=1e-6, **case.options, **more)

    trace = once()
    convex = float(np.min(objective.mu)) >= 0.0
    found = _reference(objective) if convex else None
    if isinstance(found, str):
        return Outcome(trace.status, found)
    if found is not None:
        # no lower bound of E* is above the energy of a model, but for the rounding of that
        above = float(np.max(trace["energy"] - trace["certificate"])) - found.energy
        if above > 1e-13 * abs(found.energy):
            return Outcome(trace.status, f"a certificate is {above:.3g} below the error")
    if trace.status == "contradicted":
        return Outcome(trace.status, "contradicts itself")
    path = Path(folder().name, f"{case.seed}.journal")
    once(checkpoint=Checkpoint(path, seconds=0.0), callback=lambda snapshot, row: row["round"] == INTERRUPTED)
    again = once(checkpoint=Checkpoint(path, resume=True))
    path.unlink(missing_ok=True)
    if again.status != trace.status or again.theta.tobytes() != trace.theta.tobytes():
        return Outcome(trace.status, "has other numbers after an interruption")
    if "engine" in case.options:
        return Outcome(trace.status)
    seldom = {"rounds": ROUNDS, "certify_every": MEASURED, "measure_every": MEASURED, **case.options}
    try:
        remote = run(case.algorithm, elsewhere(objective, SITES), **seldom)
    except ValueError:
        return Outcome(f"{trace.status}, refused at sites")
    local = run(case.algorithm, objective, **seldom)
    other = [name for name in local.columns if name not in SITES_ALONE and not _equal(local[name], remote[name])]
    return Outcome(trace.status, f"has other numbers at sites: {', '.join(other)}" if other else "")


def _equal(a: Any, b: Any) -> bool:
    return bool(np.array_equal(a, b, equal_nan=True))


def _reference(objective: Any) -> Reference | str | None:
    """The solution, why there is none though there should be one, or nothing where nothing bounds the minimiser."""
    try:
        return solve(objective)
    except NotOptimalError as error:
        return f"has no reference: {error}" if float(np.min(objective.mu)) > 0.0 else None


def failures(seeds: Iterable[int]) -> Iterator[tuple[Case, str]]:
    """Yield the cases of these seeds that fail."""
    for seed in seeds:
        case = draw(seed)
        if complaint := check(case).complaint:
            yield case, complaint


def main(arguments: list[str] | None = None) -> int:
    """Check many cases; return the exit code."""

    def one(seed: int) -> tuple[str, str]:
        status, complaint = check(case := draw(seed))
        return status, f"{case}\n  {complaint}" if complaint else ""

    return check_cases("tests.fuzz_runs", __doc__, one, arguments, cases=2000)


if __name__ == "__main__":
    sys.exit(main())
