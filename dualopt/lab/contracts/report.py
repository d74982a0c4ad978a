"""What is said at the end of the contracts: of each plug-in what it keeps, and one line for each reason of failure.

A check fails because something is raised, or because a promise is broken. Checks in which the same is raised fail for
one reason, wherever that happens, and so do those of one promise whatever their parameters. Numbers in a message, such
as shapes, make no other reason of it.

Checks are of two tiers: ``NumPy``, with its arrays, and ``array API``, with those of other libraries of the standard,
among which CuPy is for GPUs. A plug-in that keeps the first alone is usable, on NumPy's arrays.
"""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from dualopt.lab.contracts import TIERS
from dualopt.spec import plugins

__all__ = ["Reason", "Report"]

NUMPY, ARRAY_API = TIERS.values()
NUMBER = re.compile(r"\d[\d.,e+-]*")
METHOD = re.compile(r"'Array' object has no attribute '(\w+)'")  # of array-api-strict


@dataclass
class Reason:
    """Why checks fail, how many, and where."""

    words: str
    first: str
    lines: set[int] = field(default_factory=set)
    tiers: Counter[str] = field(default_factory=Counter)


class Report:
    """The plug-in of pytest that collects what became of each check, also where other processes ran it.

    Parameters
    ----------
    named : dict
        What is tested, by the name under which it was given.
    tier : str
        One of ``TIERS``: whose arrays it must work with.
    """

    def __init__(self, named: Mapping[str, Any], tier: str) -> None:
        origins = {name: plugins.origin(thing) for name, thing in named.items()}
        self.files = {name: found["file"] for name, found in origins.items() if found is not None}
        self.names, self.tier = list(named), tier
        self.passed: Counter[tuple[str, str]] = Counter()
        self.failed: Counter[tuple[str, str]] = Counter()
        self.reasons: dict[tuple[str, str], Reason] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Any:
        """Note of a check which plug-in it is about, its tier, and why it fails."""
        report = yield
        if report.failed or (report.passed and report.when == "call"):
            name, tier = self._subject(item), ARRAY_API if item.get_closest_marker("array_api") else NUMPY
            why = self._why(name, item, call.excinfo) if report.failed else None
            report.user_properties.append(("contract", (name, tier, why)))
        return report

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Count it."""
        for name, tier, why in [noted for key, noted in report.user_properties if key == "contract"]:
            if why is None:
                self.passed[name, tier] += 1
                continue
            words, line, first = why
            self.failed[name, tier] += 1
            reason = self.reasons.setdefault((name, NUMBER.sub("#", words)), Reason(words, first))
            reason.tiers[tier] += 1
            reason.lines |= {line} - {0}

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Write what is kept, and the reasons."""
        for name in self.names:
            if any(self.passed[name, tier] + self.failed[name, tier] for tier in TIERS.values()):
                terminalreporter.write_line(f"\n{name} {self._verdict(name)}")
                for line in self._lines(name):
                    terminalreporter.write_line(f"  {line}")
        if any(self.failed.values()):
            terminalreporter.write_line("\nWith --tb=short each failing check shows where it fails.")

    def _verdict(self, name: str) -> str:
        """Say which tiers a plug-in keeps."""
        passed, failed = ({tier: count[name, tier] for tier in TIERS.values()} for count in (self.passed, self.failed))
        tried = {tier: passed[tier] + failed[tier] for tier in TIERS.values()}
        counts = {tier: f"{failed[tier]} of {tried[tier]} checks" for tier in tried}
        if failed[NUMPY]:
            others = f", and {counts[ARRAY_API]} with those of other libraries" if tried[ARRAY_API] else ""
            return f"breaks its contract: {counts[NUMPY]} fail with NumPy's arrays{others}."
        if failed[ARRAY_API]:
            kept = f"keeps its contract with NumPy's arrays alone (tier NumPy, {tried[NUMPY]} checks)"
            return f"{kept}: {counts[ARRAY_API]} with those of other libraries (tier array API) fail."
        if tried[ARRAY_API]:
            return f"keeps its contract: {tried[NUMPY]} checks with NumPy's arrays, {tried[ARRAY_API]} with others'."
        if self.tier == "numpy":
            return f"keeps its contract with NumPy's arrays (tier NumPy): {tried[NUMPY]} checks."
        more = "" if find_spec("array_api_strict") else " Other arrays are tried after: pip install array-api-strict."
        return f"keeps its contract: {tried[NUMPY]} checks.{more}"

    def _lines(self, name: str) -> Iterator[str]:
        """Yield a line for each reason, those of most checks first."""
        own = [reason for (of, _), reason in self.reasons.items() if of == name]
        for reason in sorted(own, key=lambda reason: -reason.tiers.total()):
            count, tiers = reason.tiers.total(), " and ".join(t for t in TIERS.values() if t in reason.tiers)
            lines = sorted(reason.lines)
            place = f"{Path(self.files[name]).name}, line{'s' * (len(lines) > 1)} {', '.join(map(str, lines))}"
            where = f" ({place})" if lines else ""
            said = f"{reason.words.rstrip('.')}{where}.{_hint(reason.words)}"
            yield f"{count} check{'s' * (count > 1)} [{tiers}]: {said}{reason.first}"

    def _subject(self, item: Any) -> str:
        """Return the name of the plug-in that a check is about; the identifier of its parameters holds it."""
        own = item.callspec.id if hasattr(item, "callspec") else ""
        return max((name for name in self.names if name in own), key=len, default=self.names[0])

    def _why(self, name: str, item: Any, error: Any) -> tuple[str, int, str]:
        """Return the reason in words, the line of the plug-in's file where it was raised, and the first example."""
        promise = " ".join((inspect.getdoc(item.function) or item.name).partition("\n\n")[0].split())
        own = item.callspec.id if hasattr(item, "callspec") else ""
        rest = "-".join(part for part in own.replace(name, "").split("-") if part)
        case = f" [{rest}]" if rest else ""
        steps = [step for step in error.traceback if str(step.path) == self.files.get(name)]
        if not steps and error.typename in ("AssertionError", "Failed"):
            return f"{promise.rstrip('.')}{_sentence(error.value)}", 0, f" First:{case}." if case else ""
        said = " ".join(str(error.value).split())
        line = steps[-1].lineno + 1 if steps else 0
        return f"{error.typename}: {said}", line, f" First: {promise.rstrip('.')}{case}."


def _sentence(error: BaseException) -> str:
    """Return in brackets what an assertion says of itself: a sentence, or the largest difference."""
    lines = [line.strip() for line in str(error).splitlines()]
    found = [line.rstrip(".") for line in lines if re.fullmatch(r"(?!assert)[A-Za-z].*[^.]\.", line)]
    found += [f"off by {line.rpartition(': ')[2]}" for line in lines if line.startswith("Max absolute difference")]
    return f" ({found[0]})" if found else ""


def _hint(words: str) -> str:
    """Return what helps against a reason that many authors meet."""
    found = METHOD.search(words)
    if found is None:
        return ""
    return f" The standard has functions in place of methods: xp.{found[1]}(x) with xp = array_namespace(x)."
