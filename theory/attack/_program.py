"""The program ``python -m theory.attack``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console
from typer import Argument, Exit, Option, Typer

from dualopt.app.cli import output, program
from dualopt.app.cli.progress import make_progress
from dualopt.app.cli.usage import OneSentence
from dualopt.lab.attack import Attack, attack
from dualopt.spec.discover import unknown_name
from dualopt.spec.plugins import is_spelled
from theory.attack._targets import Target, own_target, targets
from theory.attack._witness import witness

__all__ = ["main"]

ANSWERS = {"violated": True, "none": False}

app = Typer(add_completion=False, pretty_exceptions_enable=False)


def main(arguments: Sequence[str] | None = None, name: str = "python -m theory.attack") -> None:
    """Run the program; it ends by ``SystemExit``.

    The exit code is 0 when the searches end, whatever they find; with ``--expect``, 1 if one of them finds otherwise.
    It is 2, with one sentence on the standard error, for a mistake of the user's.

    Parameters
    ----------
    arguments : sequence of str, optional
        What follows the name of the program; ``sys.argv[1:]`` when not given.
    name : str
        What a user types to run it.
    """
    program(app, name, arguments)


@app.command(cls=OneSentence)
def search(
    names: Annotated[
        list[str] | None,
        Argument(metavar="[CLAIM]...", help="What to attack, one after the other; FILE.py:NAME is a claim of yours."),
    ] = None,
    budget: Annotated[float, Option(help="Seconds for each claim.")] = 300.0,
    evaluations: Annotated[
        int | None, Option(min=1, help="Largest number of cases to look at: with one job, the same ones every time.")
    ] = None,
    seed: Annotated[int, Option(min=0, help="Seed of the random starts.")] = 0,
    jobs: Annotated[int, Option(min=1, help="Processes.")] = 1,
    expect: Annotated[
        str | None, Option(metavar="violated|none", help="End with exit code 1 if something else is found.")
    ] = None,
    json: Annotated[Path | None, Option(metavar="FILE", help="Write what was found as JSON.")] = None,
    show_list: Annotated[bool, Option("--list", help="List what can be attacked and stop.")] = False,
) -> None:
    """Look for small problems on which a claim fails, by maximising measured over bound from random starts.

    A search ends with the first violation, with its budget, or with Ctrl-C, and tells the worst case in any event.
    """
    found = targets()
    console = output.make_console()
    if show_list or not names:
        output.show_pairs(console, "claims", {name: target.claim.source for name, target in found.items()})
        return
    for name in names:
        if is_spelled(name):
            found[name] = own_target(name)
        elif name not in found:
            raise unknown_name("claim", name, found)
    if expect is not None and expect not in ANSWERS:
        raise unknown_name("expect", expect, ANSWERS)
    if json is not None and not json.absolute().parent.is_dir():
        raise ValueError(f"json {str(json)!r} is not in a folder that exists.")
    attacks: dict[str, Attack] = {}
    for name in names:
        options = {"evaluations": evaluations, "seconds": budget, "seed": seed, "jobs": jobs}
        attacks[name] = _attack(console, name, found[name], options)
        output.say(console, _summary(name, found[name], attacks[name]))
        if attacks[name].interrupted:
            break
    if json is not None:
        output.write_json(json, {"seed": seed, "jobs": jobs, "attacks": [_record(n, a) for n, a in attacks.items()]})
    if expect is not None and any(a.violated != ANSWERS[expect] for a in attacks.values()):
        raise Exit(1)


def _attack(console: Console, name: str, target: Target, options: Mapping[str, Any]) -> Attack:
    """Search, and show the best ratio so far."""
    with make_progress(console) as progress:
        task = progress.add_task(f"{name}: first local search", total=None)

        def report(a: Attack) -> None:
            words = f"{name}: largest ratio {a.ratio:.6g} after {a.evaluations} evaluations"
            progress.update(task, description=words)

        return attack(target.claim, target.generators, report=report, **options)


def _summary(name: str, target: Target, a: Attack) -> str:
    lines = [f"{name}: {a}", f"evaluations: {a.evaluations}, local searches: {a.starts}, seconds: {a.seconds:.1f}"]
    if a.rejected:
        lines[-1] += f", cases that did not count: {a.rejected}"
    if a.interrupted:
        lines[-1] += ", interrupted"
    if a.point:
        lines += ["The worst case:", witness(name, target, a)]
    return "\n".join(lines)


def _record(name: str, a: Attack) -> dict[str, Any]:
    record = asdict(a) | {"claim": name, "point": list(a.point)}
    witness = None if a.verdict is None or a.verdict.witness is None else a.verdict.witness._asdict()
    return record | {"verdict": None if a.verdict is None else a.verdict.verdict, "witness": witness}
