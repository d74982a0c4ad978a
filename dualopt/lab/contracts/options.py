"""The plug-in of pytest that takes the classes to be tested, and says which promises are broken.

With it the tests can be run by pytest itself::

    python -m pytest -p dualopt.lab.contracts.options --pyargs dualopt.lab.contracts --algorithm my_method.py:Damped
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from dualopt import spec
from dualopt.problem.data import partition_rules
from dualopt.spec import plugins

__all__ = ["KINDS", "classes", "open_argument", "refuse_wrong"]

KINDS = {"algorithm": "algorithms", "loss": "losses", "regulariser": "regularisers", "solver": "solvers"}
KINDS |= {"compressor": "compressors", "objective": "objectives", "partition": "partitions", "claim": "claims"}
GIVEN = f"--{', --'.join(KINDS)}".replace(", --claim", " or --claim")
BROKEN = "broken promises"


def classes(config: Any, kind: str) -> dict[str, Any]:
    """Return what is to be tested, by name: what was named; all of this package if pytest has no option."""
    named = config.getoption(kind, default=None)
    return _known(kind) if named is None else {name: _target(kind, name) for name in named}


def open_argument(metafunc: Any, name: str) -> bool:
    """Tell whether a test takes an argument, and does not say itself which values it has."""
    marks = metafunc.definition.iter_markers("parametrize")
    return name in metafunc.fixturenames and not any(name in mark.args[0] for mark in marks)


def _known(kind: str) -> dict[str, Any]:
    """Return what this package has of a kind: claims stand in ``theory/``."""
    if kind in spec.KINDS:
        return dict(spec.names(kind))
    return dict(partition_rules()) if kind == "partition" else {}


def _target(kind: str, name: str) -> Any:
    known = _known(kind)
    group = "methods" if kind == "algorithm" else KINDS[kind]
    return known[name] if name in known else plugins.find(group, name, kind, known)


def refuse_wrong(arguments: Sequence[str]) -> None:
    """Refuse names that lead to no class, in a sentence, before pytest starts.

    Raises
    ------
    ValueError
        If one does, or none is given.

    Examples
    --------
    >>> refuse_wrong(["--algorithm", "dualfl", "-x"])
    >>> refuse_wrong(["-x"])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: --algorithm, --loss, ... or --claim must be given, such as --algorithm my_method.py:Damped.
    """
    found = False
    for position, argument in enumerate(arguments):
        option, equals, value = argument.partition("=")
        kind = option.removeprefix("--")
        if option.startswith("--") and kind in KINDS:
            found = True
            name = value if equals else "".join(arguments[position + 1 : position + 2])
            _target(kind, name)
    if not found:
        raise ValueError(f"{GIVEN} must be given, such as --algorithm my_method.py:Damped.")


def pytest_addoption(parser: Any) -> None:
    """Take the classes."""
    group = parser.getgroup("dualopt")
    for kind in KINDS:
        group.addoption(f"--{kind}", action="append", default=[], metavar="FILE.py:NAME", help=f"Test this {kind}.")


def pytest_runtest_makereport(item: Any, call: Any) -> None:
    """Keep the promise that a failing test is about: the first paragraph of its docstring."""
    if call.excinfo is not None and call.excinfo.typename != "Skipped":
        promise = " ".join((inspect.getdoc(item.function) or item.name).partition("\n\n")[0].split())
        subject = item.callspec.id if hasattr(item, "callspec") else ""
        raised = call.excinfo.value
        said = f" ({call.excinfo.typename}: {' '.join(str(raised).split())})"
        why = _first_line(raised) if isinstance(raised, AssertionError) else said
        item.config.stash.setdefault(BROKEN, []).append(f"{subject}: {promise}{why}")


def pytest_terminal_summary(terminalreporter: Any, config: Any) -> None:
    """Say which promises are broken."""
    broken = config.stash.get(BROKEN, [])
    if broken:
        terminalreporter.section(BROKEN)
        for line in dict.fromkeys(broken):
            terminalreporter.write_line(line)


def _first_line(error: AssertionError) -> str:
    """Return in brackets what an assertion says of itself, where that is a sentence."""
    lines = [line for line in str(error).splitlines() if line.strip().endswith(".")]
    return f" ({lines[0].strip()})" if lines and not lines[0].startswith("assert") else ""
