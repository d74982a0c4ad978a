"""The command that searches for parameters: tune."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from typer import Exit, Option

from dualopt import _cli_output as output
from dualopt import tuning
from dualopt._cli_commands import app, check_support, reference_energy
from dualopt._cli_grid import parse_grid
from dualopt._cli_options import INTERRUPTED, MethodOptions, ProblemOptions, pairs, takes_options
from dualopt._cli_problem import Problem, Variant, build_problem, parse_variant
from dualopt._cli_record import Point, Record, load
from dualopt.certificate import certificate
from dualopt.federation import versions
from dualopt.participation import parse_participation
from dualopt.tuning import Candidate, Outcome, winner

__all__ = ["app", "search_progress"]


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """What is sought, how far to go for it, and where to write it."""

    metric: Annotated[
        str, Option(help="What a run costs: rounds, communications, floats (sent, up and down) or gradients.")
    ] = "rounds"
    target: Annotated[float, Option(help="Relative error to reach: the certified one, or the true one.")] = 1e-6
    reference: Annotated[bool, Option("--reference", help="Solve to high accuracy first; aim at the true error.")] = (
        False
    )
    rounds: Annotated[int, Option(help="Largest number of communication rounds of each run.")] = 100
    participation: Annotated[
        str, Option(help="Who takes part: full, subset=10, bernoulli=0.3, communicate=0.5; can be in the grid.")
    ] = "full"
    check_assumptions: Annotated[bool, Option(help="Refuse parameters that the theory does not cover.")] = True
    jobs: Annotated[int, Option(help="Number of processes, each with one thread of linear algebra.")] = 1
    out: Annotated[Path, Option(help="Folder for the results.")] = Path("out")
    fresh: Annotated[bool, Option("--fresh", help="Start over instead of resuming the search in the folder.")] = False


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A point of the grid with what it stands for."""

    variant: Variant
    participation: str

    def candidate(self, objective: Any) -> Candidate:
        """Return what is run."""
        participation = parse_participation(self.participation)
        return Candidate(algorithm=self.variant.build(objective), participation=participation)


@app.command()
@takes_options
def tune(
    *,
    algorithm: Annotated[str, Option(help="A method (see: dualopt list algorithms).")] = "dualfl",
    grid: Annotated[
        list[str] | None,
        Option(
            help="NAME=VALUE,VALUE for a parameter, solver, solver.NAME, stop or participation; or paper, the grid of "
            "Table 2 of the DualFL paper; repeatable, and all combinations are tried."
        ),
    ] = None,
    units: Annotated[
        str, Option(help="mean: the values of the paper are taken as they are; sum: converted from sums over rows.")
    ] = "mean",
    param: Annotated[
        list[str] | None, Option("--param", "-p", help="Parameter that all points share, such as rho=1e-3; repeatable.")
    ] = None,
    problem: ProblemOptions,
    method: MethodOptions,
    loop: SearchOptions,
) -> None:
    """Search for the parameters that reach a target at the least cost; write tune.csv, and tune.json to resume from."""
    shared = pairs(param or [], "param")

    def settings(rows_per_client: float) -> dict[int, tuple[Point, Setting]]:
        points = parse_grid(grid or [], algorithm, units=units, rows_per_client=rows_per_client)
        return {n: (point, _setting(algorithm, shared, point, method, loop)) for n, point in enumerate(points)}

    for _, setting in settings(1.0).values():  # refuses what is wrong before the data are loaded
        setting.variant.build()
        check_support(
            setting.variant,
            parse_participation(setting.participation).needs,
            f"participation {setting.participation}",
        )
        if problem.regulariser is not None:
            check_support(setting.variant, {"regulariser"}, "a regulariser")
    tuning.check(metric=loop.metric, target=loop.target, rounds=loop.rounds, jobs=loop.jobs)
    built = build_problem(problem)
    _check_target(built, loop)
    objective, sizes = built.objective, built.model.rows.sizes
    chosen = settings(sum(sizes) / len(sizes))
    candidates = [setting.candidate(objective) for _, setting in chosen.values()]
    for candidate in candidates:
        next(candidate.participation.rounds(objective.n_clients, problem.seed))  # refuses more clients than there are
        if loop.check_assumptions:
            getattr(candidate.algorithm, "check", lambda _: None)(objective)
    common = _common(built, problem, method, loop) | {"algorithm": algorithm, "param": shared}
    record = load(loop.out, common, [point for point, _ in chosen.values()], fresh=loop.fresh)
    output.prepare_folder(loop.out)  # last, so that a mistake leaves no empty folder behind
    console = output.make_console()
    todo = len([n for n in range(len(candidates)) if n not in record.known])
    reference = reference_energy(built) if loop.reference and todo else None
    with output.interruptible() as interrupt, search_progress(console, algorithm, todo, record) as advance:
        outcomes = tuning.tune(
            candidates,
            objective,
            metric=loop.metric,
            target=loop.target,
            rounds=loop.rounds,
            seed=problem.seed,
            reference=reference,
            check_assumptions=loop.check_assumptions,
            jobs=loop.jobs,
            known=record.known,
            report=advance,
            interrupted=interrupt.is_set,
        )
    record.save(outcomes)
    _show(console, f"dualopt tune: {algorithm}", record, outcomes)
    best = winner(outcomes)
    if best is None:
        told = f"no winner: no point has reached the relative error {loop.target:g}."
    else:
        setting = _setting(algorithm, shared, record.points[best], method, loop)
        words = _command(setting, problem, loop, rounds=len(outcomes[best].costs))
        told = f"winner, {outcomes[best].cost:.12g} {loop.metric}:\n{shlex.join(words)}"
    console.print(told, soft_wrap=True, highlight=False, markup=False)
    if interrupt.is_set():
        raise Exit(INTERRUPTED)


def _setting(
    algorithm: str, shared: Mapping[str, str], point: Point, method: MethodOptions, loop: SearchOptions
) -> Setting:
    for name in sorted(set(shared) & set(point)):
        raise ValueError(f"param {name} is in the grid already.")
    given = {**shared, **point}
    participation = given.pop("participation", loop.participation)
    listed = ",".join(f"{name}={value}" for name, value in given.items())
    return Setting(variant=parse_variant(f"{algorithm}:{listed}".rstrip(":"), method), participation=participation)


def _check_target(problem: Problem, loop: SearchOptions) -> None:
    if loop.reference and not problem.is_convex:
        raise ValueError("reference must not be asked for when E is not convex: its minimum cannot be certified.")
    if not loop.reference and problem.quality != "certified_error":
        raise ValueError("target needs --reference when E is not strongly convex: no error is certified then.")


def _common(problem: Problem, options: ProblemOptions, method: MethodOptions, loop: SearchOptions) -> dict[str, Any]:
    """Return all that outcomes depend on besides the point; the gradient tells whether the data are the same."""
    objective = problem.objective
    start = certificate(objective, objective.zeros())
    return {
        **asdict(options),
        **asdict(method),
        **{name: getattr(loop, name) for name in ("metric", "target", "reference", "rounds", "participation")},
        "dualopt": versions().get("dualopt"),
        "gradient at zero": f"{start.gradient_norm:.8g}",
    }


@contextmanager
def search_progress(
    console: Console, label: str, points: int, record: Record
) -> Iterator[Callable[[Mapping[int, Outcome]], None]]:
    """Show on terminals how many points are done; yields the callback that saves them and moves the bar."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(f"best {{task.fields[best]}} {record.search['metric']}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(label, total=points, best="none")

        def advance(outcomes: Mapping[int, Outcome]) -> None:
            record.save(outcomes)
            best = winner(outcomes)
            told = "none" if best is None else f"{outcomes[best].cost:.12g}"
            progress.update(task, advance=1, best=told)

        yield advance


def _show(console: Console, title: str, record: Record, outcomes: Mapping[int, Outcome]) -> None:
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


def _command(setting: Setting, problem: ProblemOptions, loop: SearchOptions, *, rounds: int) -> Sequence[str]:
    """Return the words of the command that runs a point by itself."""
    variant = setting.variant
    words = ["dualopt", "run", "--algorithm", variant.algorithm]
    for name, value in variant.parameters.items():
        words += ["--param", f"{name}={value}"]
    method = MethodOptions(
        solver=variant.solver,
        solver_param=[f"{name}={value}" for name, value in variant.solver_parameters.items()],
        stop=variant.stop,
    )
    words += [*_words(method), *_words(problem)]
    if setting.participation != "full":
        words += ["--participation", setting.participation]
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
        if value == (f.default if f.default_factory is MISSING else f.default_factory()):
            continue
        if isinstance(value, bool):
            words.append(f"--{name}" if value else f"--no-{name}")
        else:
            for item in value if isinstance(value, list) else [value]:
                words += [f"--{name}", str(item)]
    return words
