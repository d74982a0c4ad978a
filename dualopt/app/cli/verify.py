"""The command that puts a claimed rate of convergence, or a claim with its cases, to the test."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console
from typer import Exit, Option

from dualopt.app.cli import output
from dualopt.app.cli.options import MethodOptions, option_groups
from dualopt.app.cli.plug_ins import plug_ins
from dualopt.app.cli.usage import WidthOption
from dualopt.arrays._checks import require_at_least
from dualopt.engine.rounds import resolve
from dualopt.lab.claims import Inequality, check
from dualopt.lab.rates import Factor, Order
from dualopt.lab.verification.claimed_rate import Speed, parse_rate
from dualopt.lab.verification.own import load_instance
from dualopt.lab.verification.verdict import CONTRADICTED, HOLDS, UNDECIDED, Finding, Report
from dualopt.lab.verification.verdict import verify as examine
from dualopt.methods import Algorithm
from dualopt.methods._support import supported
from dualopt.methods.participation import Participation, as_participation
from dualopt.objectives import Objective
from dualopt.problem.options import ProblemOptions
from dualopt.runs import plotting
from dualopt.runs.trace import versions
from dualopt.spec import Spec, pairs, plugins

__all__ = ["ClaimOptions", "verify"]

EXIT_CODES = {HOLDS: 0, CONTRADICTED: 1, UNDECIDED: 3}


@dataclass(frozen=True, kw_only=True)
class ClaimOptions:
    """How the claim is tested, and where to write it.

    Parameters
    ----------
    participation : str
        Who takes part: full, subset=2, bernoulli=0.3; or communicate=0.5. The instances have four clients.
    seeds : int
        Errors are the mean over so many runs; 1 and 20 with random participation when not given.
    rounds : int
        Largest number of rounds.
    confidence : float
        Of the bound that must be on the wrong side of the claim to contradict it.
    reference : str
        What solves logistic regression: newton or cvxpy.
    attack : int
        Search for a problem that contradicts the rate besides, among so many small ones; it is kept as a file.
    out : Path
        Folder for the results.
    """

    participation: str = "full"
    seeds: int | None = None
    rounds: int = 5000
    confidence: float = 0.95
    reference: str = "newton"
    attack: int = 0
    out: Path = Path("out")


COUNTEREXAMPLE = "counterexample.py"
SEEDS = {True: 1, False: 20}  # with everybody, and with chance


@option_groups
def verify(
    *,
    algorithm: Annotated[str | None, Option(help="A method, or FILE.py:NAME for one of yours.")] = None,
    rate: Annotated[
        str | None,
        Option(
            help="What is claimed, up to a constant: 1/n^2 or (1-1/sqrt(kappa))^n; of n, kappa = L/mu, mu, L, N, P."
        ),
    ] = None,
    claim: Annotated[
        str | None, Option(help="In place of both, a claim of yours, FILE.py:NAME, which is checked on its own cases.")
    ] = None,
    param: Annotated[
        list[str] | None, Option("--param", "-p", help="Parameter of the algorithm, such as rho=0; repeatable.")
    ] = None,
    instance: Annotated[
        list[str] | None,
        Option(help="A problem of yours besides, FILE.py:NAME: a function that returns an objective; repeatable."),
    ] = None,
    method: MethodOptions,
    test: ClaimOptions,
    width: WidthOption = "page",
) -> None:
    """Test a claimed rate on hard instances, or a claim on its own cases; write verify.png, .pdf and .json.

    Exit code 0: not contradicted; 1: contradicted; 3: no instance could tell. The rate is that of |theta - theta*|^2,
    and of E - E* where E is not strongly convex. With --claim: 0 where every verdict is the expected one, else 1.
    """
    if claim is not None:
        if test.attack:
            raise ValueError(f"attack must be given with a rate: dualopt attack {claim} attacks a claim.")
        if algorithm is not None or rate is not None or instance:
            raise ValueError("claim must be given without algorithm, rate and instance.")
        _check(claim, test.out)
        return
    if algorithm is None or rate is None:
        raise ValueError(f"{'algorithm' if algorithm is None else 'rate'} must be given, or claim.")
    claimed = parse_rate(rate)
    spec = method.given_to(Spec.parse(algorithm, "algorithm").given(pairs(param or [], "param"), "param"))
    template = supported(spec, participation=test.participation)
    participation = as_participation(test.participation)
    own = {name: load_instance(name) for name in instance or []}
    require_at_least(0, attack=test.attack)
    output.prepare_folder(test.out)
    console = output.make_console()
    settings = {
        "participation": participation,
        "seeds": SEEDS[test.participation == "full"] if test.seeds is None else test.seeds,
        "rounds": test.rounds,
        "confidence": test.confidence,
    }
    files, attacked, told = ["verify.png", "verify.pdf", "verify.json"], {}, []
    with console.status("") as status:

        def build(objective: Objective, who: Participation) -> Algorithm:
            return resolve(template, objective, who)

        report = examine(build, claimed, reference=test.reference, own=own.values(), progress=status.update, **settings)
        if test.attack:
            from dualopt.lab.verification.search import in_words, program, search  # SciPy takes long to import

            status.update(f"search among {test.attack} problems")
            searched, worst = search(build, claimed, evaluations=test.attack, **settings)
            attacked = {"attack": {"evaluations": searched.evaluations, "point": searched.point}}
            told.append(in_words(searched))
            if worst is not None:
                report = replace(report, findings=(*report.findings, worst))
                if worst.verdict == CONTRADICTED:
                    files.append(COUNTEREXAMPLE)
                    about = f"{algorithm} is contradicted in its rate {rate}"
                    (test.out / COUNTEREXAMPLE).write_text(program(searched, claimed, about))
    title = f"{algorithm}, claimed rate {rate}: {report.verdict}"
    from dualopt.lab.verification.pictures import picture  # Matplotlib takes longer to import than all else

    plotting.save_for_print(picture(report, title=title, width=width), test.out / "verify")
    record = {
        "command": "verify",
        "options": output.options_record(method, test)
        | {"algorithm": algorithm, "rate": rate, "param": param or [], "instance": list(own), "width": width},
        "versions": dict(versions()),
        "plug_ins": plug_ins(ProblemOptions(), [spec], participation=[test.participation])
        | plugins.record({"instances": own}, {"instances": ()}),
        "verdict": report.verdict,
        "exponent": report.exponent,
        "instances": [_recorded(finding) for finding in report.findings],
        **attacked,
    }
    output.write_json(test.out / "verify.json", record)
    _show(console, report, f"dualopt verify: {algorithm}, claimed rate {rate}", told)
    output.say(console, f"{test.out}: {', '.join(files)}")
    if EXIT_CODES[report.verdict]:
        raise Exit(EXIT_CODES[report.verdict])


def _check(name: str, out: Path) -> None:
    """Check a claim on its cases, show and write the verdicts, and end with 1 if one is not the expected one."""
    claim = plugins.load("claims", name, "claim")
    if claim.cases is None:
        raise ValueError(f"claim {name!r} has no cases, which yield pairs of a case and the verdict expected there.")
    output.prepare_folder(out)
    console = output.make_console()
    with console.status(claim.name):
        found = [(check(claim, case), expected) for case, expected in claim.cases(False)]
    rows = [
        {
            "case": verdict.case,
            "expected": expected,
            "verdict": verdict.verdict,
            "largest lhs/rhs": f"{verdict.worst_ratio:.6g}",
            "why": str(Inequality(*verdict.witness[1:])) if verdict.witness else "; ".join(verdict.failed),
        }
        for verdict, expected in found
    ]
    record = {
        "command": "verify",
        "options": {"claim": name},
        "versions": dict(versions()),
        "plug_ins": {name: plugins.origin(claim)},
        "claim": {part: getattr(claim, part) for part in ("name", "source", "statement")},
        "cases": rows,
    }
    output.write_json(out / "verify.json", record)
    output.show_table(console, f"dualopt verify: {claim.name} ({claim.source})", rows)
    wrong = sum(verdict.verdict != expected for verdict, expected in found)
    ending = f"{wrong} of {len(found)} verdicts are not as expected." if wrong else "Every verdict is as expected."
    output.say(console, f"{ending}\n{out}: verify.json")
    if wrong:
        raise Exit(1)


def _show(console: Console, report: Report, title: str, told: list[str]) -> None:
    rows = [
        {
            "instance": finding.instance.name,
            "claimed": _law(finding.claimed),
            "measured": _measured(finding.estimate),
            "verdict": finding.verdict,
            "why": _why(finding),
        }
        for finding in report.findings
    ]
    output.show_table(console, title, rows)
    lines = []
    if report.exponent is not None:
        value, low, high = report.exponent
        lines.append(f"On the chains the rounds per digit grow like kappa^{value:.2f} [{low:.2f}, {high:.2f}].")
    against = [finding.instance.name for finding in report.findings if finding.verdict == CONTRADICTED]
    lines.append(f"{report.verdict}{' by ' + '; '.join(against) + '.' if against else ': ' + _meaning(report)}")
    for line in (*lines, *told):
        output.say(console, line)


def _meaning(report: Report) -> str:
    """Say on how many instances a verdict rests that is no contradiction."""
    told, asked = sum(finding.verdict == HOLDS for finding in report.findings), len(report.findings)
    if report.verdict == UNDECIDED:
        return "no instance could tell; the table says why."
    where = "these instances" if told == asked else f"{told} of {asked} instances, while the others could not tell"
    return f"not contradicted on {where}, in these rounds; this is no proof."


def _law(speed: Speed | None) -> str:
    if speed is None:
        return "none"
    return f"{speed.value:.4g}^n" if speed.law == "linear" else f"n^-{speed.value:.3g}"


def _measured(estimate: Factor | Order | None) -> str:
    if estimate is None:
        return "none"
    linear = isinstance(estimate, Factor)
    low, value, high = (f"{x:.3g}" for x in (estimate.low, estimate.value, estimate.high))
    return f"{value}^n [{low}, {high}]" if linear else f"n^-{value} [{low}, {high}]"


def _why(finding: Finding) -> str:
    if finding.verdict == HOLDS and finding.estimate is None:
        return "down to rounding in less than 10 rounds"
    return finding.reason


def _recorded(finding: Finding) -> dict[str, Any]:
    speed, estimate = finding.claimed, finding.estimate
    return {
        "instance": finding.instance.name,
        "measure": finding.instance.measure,
        "verdict": finding.verdict,
        "reason": finding.reason,
        "claimed": None if speed is None else {speed.law: speed.value},
        "measured": None if estimate is None else estimate._asdict(),
        "floor": None if finding.floor is None else finding.floor._asdict(),
        "errors": [float(error) for error in finding.errors],
    }
