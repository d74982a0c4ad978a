"""The command that searches for parameters, and the grids that it takes."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import product
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console
from typer import Exit, Option

from dualopt.app.cli import output
from dualopt.app.cli.engine import EngineOptions, Place, placed
from dualopt.app.cli.options import MethodOptions, PreparationOptions, default_of, option_groups
from dualopt.app.cli.plug_ins import plug_ins
from dualopt.app.cli.record import Record, load, search_progress
from dualopt.app.cli.reporting import CONTRADICTED
from dualopt.engine.rounds import resolve, scaled
from dualopt.methods._support import supported
from dualopt.methods.participation import as_participation
from dualopt.objectives._weights import parse_numbers
from dualopt.problem.options import ProblemOptions
from dualopt.problem.problem import Problem
from dualopt.runs import tuning
from dualopt.runs._data_hash import data_hash
from dualopt.runs._sources import sources
from dualopt.runs.trace import versions
from dualopt.runs.tuning import Candidate, Trial, winner
from dualopt.spec import Spec, built, pairs

__all__ = ["SearchOptions", "parse_grid", "tune"]

OUTER = ("participation", "scales", "compressor")  # parameters of a point that are no parameters of the method


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """What is sought, how far to go for it, and where to write it.

    Parameters
    ----------
    metric : str
        What a run costs: rounds, communications, floats or bits (sent, up and down), or gradients.
    target : float
        Relative error to reach: the certified one, or the true one.
    reference : bool
        Solve to high accuracy first; aim at the true error.
    rounds : int
        Largest number of communication rounds of each run.
    participation : str
        Who takes part: full, subset=10, importance=10, bernoulli=0.3, communicate=0.5; can be in the grid.
    scales : str
        One scale for each client: none, suggested (as suits the method), or numbers; can be in the grid.
    compressor : str
        What uploads go through: identity, natural, rounding=8, rand-k=10; can be in the grid.
    check_assumptions : bool
        Refuse parameters that break an assumption of the method; the line "theory" tells which theorem covers a run.
    jobs : int
        Number of processes, each with one thread of linear algebra.
    out : Path
        Folder for the results.
    fresh : bool
        Start over instead of resuming the search in the folder.
    keep_stale : bool
        Keep what other code has computed, and say so.
    """

    metric: str = "rounds"
    target: float = 1e-6
    reference: bool = False
    rounds: int = 100
    participation: str = "full"
    scales: str = "none"
    compressor: str = "identity"
    check_assumptions: bool = True
    jobs: int = 1
    out: Path = Path("out")
    fresh: bool = False
    keep_stale: bool = False


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A point of the grid with what it stands for."""

    point: Mapping[str, str]
    spec: Spec
    participation: str
    scales: str
    compressor: str

    def clients(self, objective: Any) -> Any:
        """Return the clients that are in the coordinates of the methods, with the scales of this point."""
        method, participation = self.spec.build("algorithm"), as_participation(self.participation)
        return scaled(method, objective, parse_numbers(self.scales), participation)

    def candidate(self, objective: Any) -> Candidate:
        """Return what is run on clients in the coordinates of the methods."""
        participation = as_participation(self.participation)
        compressor = built(self.compressor, "compressor")
        algorithm = resolve(self.spec.build("algorithm"), self.clients(objective), participation, compressor)
        run = {"participation": participation, "scales": parse_numbers(self.scales), "compressor": compressor}
        return Candidate(algorithm=algorithm, **run)


@option_groups
def tune(
    *,
    algorithm: Annotated[
        str, Option(help="A method (see: dualopt list algorithms), or FILE.py:NAME for one of yours.")
    ] = "dualfl",
    grid: Annotated[
        list[str] | None,
        Option(
            help="NAME=VALUE,VALUE for a parameter, solver, solver.NAME, stop, participation, scales or compressor; "
            "repeatable, and all combinations are tried."
        ),
    ] = None,
    param: Annotated[
        list[str] | None, Option("--param", "-p", help="Parameter that all points share, such as rho=1e-3; repeatable.")
    ] = None,
    problem: ProblemOptions,
    method: MethodOptions,
    preparation: PreparationOptions,
    loop: SearchOptions,
    engine: EngineOptions,
) -> None:
    """Search for the parameters that reach a target at the least cost; write tune.csv, and tune.json to resume from."""
    shared = pairs(param or [], "param")

    def setting(point: Mapping[str, str]) -> Setting:
        for name in sorted(set(shared) & set(point)):
            raise ValueError(f"param {name} is in the grid already.")
        given = {**shared, **point}
        outer = {name: given.pop(name, getattr(loop, name)) for name in OUTER}
        spec = method.given_to(Spec.parse(algorithm, "algorithm").given(given, "param"))
        return Setting(point=point, spec=spec, **outer)

    chosen = [setting(point) for point in parse_grid(grid or [])]
    steps = preparation.steps(problem.seed)
    regulariser = problem.regulariser is not None and preparation.metric() is None  # a metric takes it in, or refuses
    for s in chosen:  # refuses what is wrong before the data are loaded
        supported(s.spec, participation=s.participation, regulariser=regulariser, compressor=s.compressor)
    tuning.check(metric=loop.metric, target=loop.target, rounds=loop.rounds, jobs=loop.jobs)

    def search(built: Problem, place: Place) -> int:
        """Search, write and show the outcomes, and return the exit code."""
        _check_target(built, loop)
        objective = built.objective
        changed = preparation.changed(objective, problem.seed)
        candidates = [s.candidate(changed) for s in chosen]
        for s, candidate in zip(chosen, candidates, strict=True):
            next(
                candidate.participation.rounds(objective.n_clients, problem.seed)
            )  # refuses more clients than there are
            if loop.check_assumptions:
                candidate.algorithm.check(s.clients(changed))
        prepared = asdict(preparation) if steps else {}
        common = (
            _common(built, problem, method, loop)
            | prepared
            | {"algorithm": algorithm, "param": shared}
            | engine.record()
        )
        if own := plug_ins(
            problem,
            [s.spec for s in chosen],
            preparation=preparation.named().values(),
            **{kind: [getattr(s, kind) for s in chosen] for kind in ("participation", "compressor")},
        ):
            common |= {"plug_ins": own}  # a file that has changed is another search
        common["sources"] = sources([objective, *(c.algorithm for c in candidates), *steps])
        record = load(loop.out, common, [s.point for s in chosen], fresh=loop.fresh, keep_stale=loop.keep_stale)
        output.prepare_folder(loop.out)  # last, so that a mistake leaves no empty folder behind
        record = record.begin(fresh=loop.fresh)
        console = output.make_console()
        todo = len([n for n in range(len(candidates)) if n not in record.known])
        reference, gap = built.minimum() if loop.reference and todo else (None, 0.0)
        with output.interruptible() as interrupt, search_progress(console, algorithm, todo, record) as advance:
            outcomes = tuning.tune(
                candidates,
                objective,
                metric=loop.metric,
                target=loop.target,
                rounds=loop.rounds,
                seed=problem.seed,
                reference=reference,
                reference_gap=gap,
                check_assumptions=loop.check_assumptions,
                prepare=steps or None,
                jobs=loop.jobs,
                known=record.known,
                report=advance,
                interrupted=lambda: interrupt.is_set() or bool(place.signal),
            )
        record, outcomes = record.save(outcomes)
        _show(console, f"dualopt tune: {algorithm}", record, outcomes)
        best = winner(outcomes)
        if best is None:
            ending = f"no winner: no point has reached the relative error {loop.target:g}."
        else:
            words = _command(setting(record.points[best]), problem, preparation, loop, rounds=len(outcomes[best].costs))
            ending = f"winner, {outcomes[best].cost:.12g} {loop.metric}:\n{shlex.join(words)}"
        console.print(ending, soft_wrap=True, highlight=False, markup=False)
        if record.stale:
            console.print("Part of this was computed by other code (--keep-stale).", highlight=False)
        false = [n for n, outcome in outcomes.items() if outcome.status == "contradicted"]
        for n in false:
            point = ", ".join(f"{name}={value}" for name, value in record.points[n].items())
            output.alarm(f"{algorithm}: {point}: {output.REASONS['contradicted']}.")
        return interrupt.exit_code if interrupt.is_set() else CONTRADICTED * bool(false)

    with placed(engine, problem, method, preparation, loop, algorithm=algorithm, param=shared, grid=grid) as place:
        place.check(preparation)
        place.check_jobs(loop.jobs)
        with place.shared(place.built(problem), threads=1) as built:
            exit_code = 0 if built is None else search(built, place)
    if exit_code:
        raise Exit(exit_code)


def parse_grid(texts: Sequence[str]) -> list[dict[str, str]]:
    """Return the points of the Cartesian product of all grids, the last one varying fastest.

    Raises
    ------
    ValueError
        If a text is not of the form ``NAME=VALUE,VALUE``, a name or value is given twice, or there is none.

    Examples
    --------
    >>> parse_grid(["eta=1,0.1", "solver.history=5"])
    [{'eta': '1', 'solver.history': '5'}, {'eta': '0.1', 'solver.history': '5'}]
    """
    if not texts:
        raise ValueError("grid must be given, as NAME=VALUE,VALUE.")
    axes = {name: _values(name, text) for name, text in pairs(texts, "grid").items()}
    return [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]


def _values(name: str, text: str) -> list[str]:
    values = text.split(",")
    if "" in values:
        raise ValueError(f"grid {name} must be of the form VALUE,VALUE without gaps, not {text!r}.")
    for value in values:
        if values.count(value) > 1:
            raise ValueError(f"grid {name} has the value {value} twice.")
    return values


def _check_target(problem: Problem, loop: SearchOptions) -> None:
    if loop.reference and not problem.is_convex:
        raise ValueError("reference must not be asked for when E is not convex: its minimum cannot be certified.")
    if not loop.reference and problem.quality != "certified_error":
        raise ValueError("target needs --reference when E is not strongly convex: no error is certified then.")


def _common(problem: Problem, options: ProblemOptions, method: MethodOptions, loop: SearchOptions) -> dict[str, Any]:
    """Return all that outcomes depend on besides the point and the code."""
    return {
        **asdict(options),
        **asdict(method),
        **{name: getattr(loop, name) for name in ("metric", "target", "reference", "rounds")},
        **{name: getattr(loop, name) for name in OUTER},
        "dualopt": versions().get("dualopt"),
        "data hash": data_hash(problem),
    }


def _show(console: Console, title: str, record: Record, outcomes: Mapping[int, Trial]) -> None:
    """Print the table, the best first: those that reached the target by cost, the others by error."""

    def merit(n: int) -> tuple[bool, float, int]:
        outcome = outcomes[n]
        reached = outcome.status == "converged"
        value = outcome.cost if reached else outcome.error
        return not reached, math.inf if math.isnan(value) else value, n

    rows = []
    for n in sorted(outcomes, key=merit):
        outcome = outcomes[n]
        rows.append(
            {name: record.points[n].get(name, "") for name in record.names()}
            | {
                "status": outcome.status,
                record.search["metric"]: f"{outcome.cost:,.12g}",
                "error": "none" if math.isnan(outcome.error) else f"{outcome.error:.1e}",
                "seconds": f"{outcome.seconds:.3g}",
            }
        )
    if rows:
        output.show_table(console, title, rows)


def _command(
    setting: Setting, problem: ProblemOptions, preparation: PreparationOptions, loop: SearchOptions, *, rounds: int
) -> Sequence[str]:
    """Return the words of the command that runs a point by itself."""
    words = ["dualopt", "run", "--algorithm", str(setting.spec), *_words(problem), *_words(preparation)]
    if setting.participation != "full":
        words += ["--participation", setting.participation]
    if setting.scales != "none":
        words += ["--scales", setting.scales]
    if setting.compressor != "identity":
        words += ["--compressor", setting.compressor]
    if not loop.check_assumptions:
        words += ["--no-check-assumptions"]
    if loop.reference:  # a run cannot stop at a true error
        return [*words, "--reference", "--tol", "0", "--rounds", str(rounds)]
    return [*words, "--tol", repr(loop.target), "--rounds", str(loop.rounds)]


def _words(options: Any) -> list[str]:
    """Write the options that are not at their default as they are typed."""
    words: list[str] = []
    for f in fields(options):
        value = getattr(options, f.name)
        name = f.name.replace("_", "-")
        if value == default_of(f):
            continue
        if isinstance(value, bool):
            words.append(f"--{name}" if value else f"--no-{name}")
        else:
            for item in value if isinstance(value, list) else [value]:
                words += [f"--{name}", str(item)]
    return words
