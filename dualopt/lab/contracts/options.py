"""The plug-in of pytest that takes what is to be tested.

With it the tests can be run by pytest itself::

    python -m pytest -p dualopt.lab.contracts.options --pyargs dualopt.lab.contracts --algorithm my_method.py:Damped
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dualopt import spec
from dualopt.lab.contracts import TIERS
from dualopt.problem.data import available, partition_rules
from dualopt.spec import plugins

__all__ = ["KINDS", "classes", "made", "open_argument", "refuse_wrong"]

KINDS = {"algorithm": "algorithms", "loss": "losses", "regulariser": "regularisers", "partition": "partitions"}
KINDS |= {"compressor": "compressors", "preparation": "preparations", "objective": "objectives", "data": "data"}
KINDS |= {"solver": "solvers", "claim": "claims"}
"""The options, and the files of tests: ``test_algorithms.py`` and so on."""
GIVEN = f"--{', --'.join(KINDS)}".replace(", --claim", " or --claim")


def classes(config: Any, kind: str) -> dict[str, Any]:
    """Return what is to be tested, by name: what was named; all of this package if pytest has no option."""
    named = config.getoption(kind, default=None)
    return _known(kind) if named is None else {name: _target(kind, name) for name in named}


def made(kind: Any, **given: Any) -> Any:
    """Return an instance of a class, with its ``example`` for arguments.

    Raises
    ------
    ValueError
        If the example leaves out a parameter without a default, or does not fit.

    Examples
    --------
    >>> from dualopt.regularisers import L1
    >>> made(L1)
    L1(weight=0.7)
    """
    arguments = dict(getattr(kind, "example", {})) | given
    if missing := [name for name in spec.required(kind) if name not in arguments]:
        raise ValueError(f"{kind.__name__} must have an example, a dictionary of arguments, with {', '.join(missing)}.")
    try:
        return kind(**arguments)
    except Exception as error:
        raise ValueError(f"{kind.__name__} must be built with its example {arguments}: {error}") from error


def open_argument(metafunc: Any, name: str) -> bool:
    """Tell whether a test takes an argument, and does not say itself which values it has."""
    marks = metafunc.definition.iter_markers("parametrize")
    return name in metafunc.fixturenames and not any(name in mark.args[0] for mark in marks)


def _known(kind: str) -> dict[str, Any]:
    """Return what this package has of a kind: claims stand in ``theory/``."""
    if kind in spec.KINDS:
        found = spec.names(kind)
        return {name: found[name] for name in found if isinstance(found[name], type)}  # others are short for one
    return {"partition": partition_rules, "data": available}.get(kind, dict)()


def _target(kind: str, name: str) -> Any:
    known = _known(kind)
    group = spec.KINDS[kind].plug_ins if kind in spec.KINDS else KINDS[kind]
    return known[name] if name in known else plugins.find(group, name, kind, known)


def refuse_wrong(arguments: Sequence[str]) -> None:
    """Refuse names that lead to nothing, and examples that build nothing, in a sentence, before pytest starts.

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
            target = _target(kind, name)
            if kind in ("loss", "regulariser", "compressor", "preparation"):
                try:
                    made(target)
                except ValueError as error:
                    raise ValueError(f"{kind} {name!r}: {error}") from None
    if not found:
        raise ValueError(f"{GIVEN} must be given, such as --algorithm my_method.py:Damped.")


def pytest_addoption(parser: Any) -> None:
    """Take the plug-ins, and the tier."""
    group = parser.getgroup("dualopt")
    for kind in KINDS:
        group.addoption(f"--{kind}", action="append", default=[], metavar="FILE.py:NAME", help=f"Test this {kind}.")
    group.addoption("--tier", choices=list(TIERS), default="array-api", help="Whose arrays it must work with.")


def pytest_configure(config: Any) -> None:
    """Say at the end what is broken, grouped by reasons."""
    from dualopt.lab.contracts.report import Report  # needs pytest

    config.addinivalue_line("markers", "array_api: a check with arrays of other libraries than NumPy")
    named = {name: _target(kind, name) for kind in KINDS for name in config.getoption(kind)}
    config.pluginmanager.register(Report(named, config.getoption("tier")))


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Leave out what is beyond the tier."""
    if config.getoption("tier") == "numpy":
        beyond = [item for item in items if item.get_closest_marker("array_api")]
        items[:] = [item for item in items if item not in beyond]
        config.hook.pytest_deselected(items=beyond)
