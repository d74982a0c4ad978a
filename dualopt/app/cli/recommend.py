"""The command that recommends a method for a problem."""

from __future__ import annotations

import math
import shlex
from dataclasses import fields
from typing import Annotated, Any

from typer import Option

from dualopt.app.cli import output
from dualopt.app.cli.options import default_of, option_groups
from dualopt.methods.participation import as_participation
from dualopt.problem.build import build_problem
from dualopt.problem.options import ProblemOptions
from dualopt.problem.problem import Problem
from dualopt.runs.costs import MINIMISED
from dualopt.runs.recommendation import Recommendation
from dualopt.runs.recommendation import recommend as recommended
from dualopt.runs.rules import Facts

__all__ = ["command", "recommend"]


@option_groups
def recommend(
    *,
    participation: Annotated[
        str, Option(help="Who takes part: full, subset=10, bernoulli=0.3; or communicate=0.5.")
    ] = "full",
    minimise: Annotated[
        str, Option(help=f"What to keep small: {', '.join(MINIMISED[:-1])}, or {MINIMISED[-1]} with --link.")
    ] = MINIMISED[0],
    link: Annotated[
        str | None, Option(help="Bandwidth and latency of a client's connection, such as 10Mbit,50ms.")
    ] = None,
    problem: ProblemOptions,
) -> None:
    """Say which method to use on this problem, and why; nothing is written."""
    who = as_participation(participation)
    built = build_problem(problem)
    next(who.rounds(built.objective.n_clients, problem.seed))  # refuses more clients than there are
    found = recommended(built.objective, who, minimise=minimise, link=link)
    console = output.make_console()
    output.show_pairs(console, "dualopt recommend", _described(built, found, participation))
    lines = {"use": found.method, "why": found.reasons, "theory": found.algorithm.guarantee(built.objective, who)}
    if found.rule.runner_up is not None:
        lines["runner-up"] = found.rule.runner_up
    output.show_pairs(console, "", lines)
    console.print(command(found, problem, participation), highlight=False, markup=False, soft_wrap=True)


def command(found: Recommendation, problem: ProblemOptions, participation: str = "full") -> str:
    """Return the command that runs the recommended method on the problem.

    Examples
    --------
    >>> from dualopt.runs.recommendation import recommend
    >>> options = ProblemOptions(data="synthetic-regression", data_param=["m=60", "d=4"], clients=3)
    >>> command(recommend(build_problem(options).objective), options)  # doctest: +ELLIPSIS
    'dualopt run --algorithm ... --data synthetic-regression --data-param m=60 ... --clients 3 --rounds 1000'
    """
    words = ["dualopt", "run", "--algorithm", found.method]
    if found.scales != "none":
        words += ["--scales", found.scales]
    for f in fields(problem):
        words += _option(f.name, getattr(problem, f.name), default_of(f))
    if participation != "full":
        words += ["--participation", participation]
    return shlex.join([*words, "--rounds", "1000"])


def _option(name: str, value: Any, default: Any) -> list[str]:
    """Return an option as it is typed, nothing for one that is as by default."""
    flag = name.replace("_", "-")
    if value == default or value is None:
        return []
    if isinstance(value, bool):
        return [f"--{flag}" if value else f"--no-{flag}"]
    values = value if isinstance(value, list) else [value]
    return [word for one in values for word in (f"--{flag}", str(one))]


def _described(problem: Problem, found: Recommendation, participation: str) -> dict[str, str]:
    """Say what is known of the problem, and what it cost to know."""
    facts, L = found.facts, problem.objective.L
    mean = float(problem.objective.mean(L))
    lines = {
        "data": problem.data,
        "clients": problem.partition,
        "loss": problem.loss + ("" if facts.smooth else ", with kinks"),
        "mu": f"{facts.mu:.4g}",
        "L_j": f"{facts.least_L:.4g} to {facts.L:.4g}, mean {mean:.4g}" if facts.smooth else "infinite",
        "kappa": f"{facts.kappa:.4g}" if math.isfinite(facts.kappa) else "infinite",
        "participation": f"{participation}, {facts.fraction:.3g} of the clients",
        **problem.added,
    }
    lines |= {"similarity": _similarity(found, facts)}
    if facts.link is not None and facts.gradient_seconds is not None:
        lines["link"] = f"{facts.link}; a local gradient takes {facts.gradient_seconds * 1e3:.3g} ms here"
    return lines


def _similarity(found: Recommendation, facts: Facts) -> str:
    if found.measured is None:
        return "not measured: no rule asks for it here"
    words = "alike" if facts.alike else "not alike"
    spent = f"{found.measured.vectors} vectors and {found.measured.gradients:.0f} local gradients of each client"
    step = found.measured.dane_step
    both = f"{found.measured.factor:.3g}, " + (f"step of DANE {step:.3g}" if math.isfinite(step) else "E rises")
    return f"{both} ({words}; measured with {spent})"
