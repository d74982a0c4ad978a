"""The measurements behind `recommend`: what to expect of methods, and how far its choice is from the best."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import geometric_mean

from dualopt.runs.costs import EXPECTED, FAR, MINIMISED, SENT, Expected, Link, Prices
from dualopt.runs.rules import BASE, Facts, choose
from figures._contestants import TARGETS as OF_TABLES
from figures._which_rows import Row, named, to_facts

__all__ = [
    "AIMS",
    "TARGETS",
    "Aim",
    "Problem",
    "aim_rows",
    "best_alone",
    "expected",
    "factors",
    "judged_counts",
    "near",
    "of_tables",
    "problem_rows",
    "problems",
]

TARGETS = (1e-4, 1e-6)
GROUPS = ("choice", "judged")
LOST = 100.0  # times L-BFGS at the server: as what does not arrive counts


@dataclass(frozen=True)
class Aim:
    """What is to be kept small, with the link where that is time."""

    minimise: str
    link: Link | None = None

    def __str__(self) -> str:
        """Return it as the page names it."""
        return self.minimise if self.link is None else f"seconds, {self.link}"


AIMS = (
    Aim("vectors"),
    Aim("gradients"),
    Aim("bits"),
    *(Aim("seconds", Link.parse(text)) for text in ("1Gbit,0.1ms", "100Mbit,10ms", "10Mbit,50ms", "1Mbit,100ms")),
)


@dataclass(frozen=True)
class Problem:
    """What is known of a problem, and the rows of the methods that were measured on it."""

    name: str
    facts: Facts
    group: str
    rows: Mapping[str, Row]
    targets: tuple[float, ...]

    @property
    def data(self) -> str:
        """The data set that it is made of."""
        return self.name.partition(",")[0]

    def costs(self, prices: Prices, target: float) -> dict[str, float]:
        """Return what the methods cost to a target, those that arrive."""
        found = {}
        for method, row in self.rows.items():
            if row[f"rounds to {named(target)}"]:
                columns = ("rounds", "gradients", "numbers_up", "numbers_down")
                rounds, gradients, up, down = (float(row[f"{column} to {named(target)}"]) for column in columns)
                sent = (prices.up * up + prices.down * down) / self.facts.n_clients
                found[method] = 2.0 * prices.message * rounds + sent + prices.gradient * gradients
        return found

    def wanted(self, aim: Aim) -> Facts:
        """Return what is known of the problem, with what is to be kept small."""
        return replace(self.facts, minimise=aim.minimise, link=aim.link)


def problems(cells: Sequence[Row], facts: Sequence[Row], targets: tuple[float, ...] = TARGETS) -> list[Problem]:
    """Return the measured problems."""
    found = []
    for known in facts:
        rows = {row["method"]: row for row in cells if row["problem"] == known["problem"] and row["method"] in SENT}
        found.append(Problem(known["problem"], to_facts(known), known["group"], rows, targets))
    return found


def of_tables(cells: Sequence[Row], facts: Sequence[Row]) -> list[Problem]:
    """Return the problems of `which_method` for which costs are expected: they are for choosing."""
    found = [replace(problem, group="choice") for problem in problems(cells, facts, OF_TABLES)]
    return [p for p in found if p.facts.similarity_matters]


def expected(measured: Sequence[Problem]) -> dict[str, dict[str, Expected]]:
    """Return the geometric means over the problems of choice, by class of problem and method, to two digits.

    What did not arrive counts as ``LOST`` times L-BFGS, and no more does what took longer.
    """
    chosen = [problem for problem in measured if problem.group == "choice"]
    return {
        kind: {method: _means([p for p in chosen if p.facts.kind == kind], method) for method in methods}
        for kind, methods in EXPECTED.items()
    }


def _means(inside: Sequence[Problem], method: str) -> Expected:
    columns: dict[str, list[float]] = {"rounds": [], "gradients": []}
    for problem in inside:
        base, row = (problem.rows[name] for name in (BASE, method))
        for name, ratios in columns.items():
            keys = [f"{name} to {named(target)}" for target in problem.targets]
            ratios += [min(float(row[key] or math.inf) / float(base[key]), LOST) for key in keys if base[key]]
    rounds, gradients = (float(f"{geometric_mean(ratios):.2g}") for ratios in columns.values())
    return Expected(rounds=rounds, gradients=gradients)


def factors(
    measured: Sequence[Problem],
    aim: Aim,
    method: str | None = None,
    expected: Mapping[str, Mapping[str, Expected]] = EXPECTED,
) -> list[float]:
    """Return what the recommended method costs over the least cost, or what one and the same method does.

    One for each problem and target that any method reaches; infinite where this method does not. There are no seconds
    of problems whose local gradients were not timed.
    """
    found = []
    for problem in measured:
        facts = problem.wanted(aim)
        if aim.link is not None and facts.gradient_seconds is None:
            continue
        chosen = choose(facts, expected).method if method is None else method
        for target in problem.targets:
            if costs := problem.costs(facts.prices, target):
                found.append(costs.get(chosen, math.inf) / min(costs.values()))
    return found


def left_out(measured: Sequence[Problem], aim: Aim) -> list[float]:
    """Return the factors on the problems of choice, each data set judged by what is expected from the others."""
    chosen = [problem for problem in measured if problem.group == "choice"]
    found = []
    for name in dict.fromkeys(problem.data for problem in chosen):
        others = expected([problem for problem in chosen if problem.data != name])
        found += factors([problem for problem in chosen if problem.data == name], aim, expected=others)
    return found


def near(found: Sequence[float]) -> int:
    """Return how many are near the best."""
    return sum(factor <= FAR for factor in found)


def best_alone(measured: Sequence[Problem], aim: Aim) -> str:
    """Return the one method that is near the best most often on the problems of choice, the nearest where two are."""
    chosen = [problem for problem in measured if problem.group == "choice"]

    def merit(method: str) -> tuple[int, float]:
        found = factors(chosen, aim, method)
        return near(found), -sum(min(factor, LOST) for factor in found)

    return max(SENT, key=merit)


def judged_counts(measured: Sequence[Problem]) -> dict[str, tuple[int, int]]:
    """Return in how many cases, of how many, the choice is near the best on judging data, seconds over all links."""
    judged = [problem for problem in measured if problem.group == "judged"]
    found: dict[str, tuple[int, int]] = {name: (0, 0) for name in MINIMISED}
    for aim in AIMS:
        known, of_aim = found[aim.minimise], factors(judged, aim)
        found[aim.minimise] = (known[0] + near(of_aim), known[1] + len(of_aim))
    return found


def aim_rows(measured: Sequence[Problem]) -> list[dict[str, str]]:
    """Return for everything that may be kept small how often the recommended method is near the best, and one alone."""
    rows = []
    for aim in AIMS:
        alone = best_alone(measured, aim)
        row = {"minimise": str(aim), "one method": f"`{alone}`"}
        for group in GROUPS:
            inside = [problem for problem in measured if problem.group == group]
            found, one = factors(inside, aim), factors(inside, aim, alone)
            row[f"{group}: recommended"] = f"{near(found)} of {len(found)}"
            row[f"{group}: one method"] = f"{near(one)} of {len(one)}"
        of_others = left_out(measured, aim)
        row["choice: data set left out"] = f"{near(of_others)} of {len(of_others)}"
        row["judged: largest factor"] = _factor(max(found, default=math.nan))
        rows.append(row)
    return rows


def problem_rows(measured: Sequence[Problem], aim: Aim) -> list[dict[str, str]]:
    """Return for every judged problem what is recommended, what is best, and the factors between them."""
    rows = []
    for problem in measured:
        if problem.group == "judged":
            facts = problem.wanted(aim)
            method = choose(facts).method
            row = {"problem": problem.name, "kappa": f"{facts.kappa:,.0f}", "similarity": f"{facts.similarity:.2g}"}
            row |= {"step of DANE": f"{facts.dane_step:.2g}", "recommended": f"`{method}`"}
            for target in problem.targets:
                costs = problem.costs(facts.prices, target)
                row[f"best to {named(target)}"] = f"`{min(costs, key=costs.__getitem__)}`" if costs else "none"
                chosen = costs.get(method, math.inf) / min(costs.values()) if costs else math.nan
                row[f"factor to {named(target)}"] = _factor(chosen)
            rows.append(row)
    return rows


def _factor(number: float) -> str:
    return f"{number:.2f}" if math.isfinite(number) else "-" if math.isnan(number) else "not reached"
