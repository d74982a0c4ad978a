"""The program ``dualopt``.

``run.py``, ``predict.py``, ``tune.py``, ``verify.py``, ``prove.py`` and ``recommend.py`` hold the commands, which
:func:`app` puts together; ``options.py`` turns dataclasses into options, ``output.py`` shows and writes results,
``models.py`` writes trained models, ``record.py`` keeps the files of a search, ``reporting.py`` tells what a user did
wrong, ``programs.py`` starts the programs of ``theory/`` and ``figures/``.
"""

from __future__ import annotations

import ast
import gc
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

from dualopt.app.cli.reporting import exit_on_user_error, program, terminable
from dualopt.spec.discover import syntax

if TYPE_CHECKING:
    from typer import Typer

__all__ = ["app", "exit_on_user_error", "main", "program", "terminable", "tree"]

PROGRAMS = ("theory", "attack", "figures", "lessons")
COMMANDS = {  # where each is: a module of this package, and the function
    "run": ("run", "run"),
    "compare": ("run", "compare"),
    "predict": ("predict", "predict"),
    "list": ("listing", "list_names"),
    "tune": ("tune", "tune"),
    "verify": ("verify", "verify"),
    "prove": ("prove", "prove"),
    "recommend": ("recommend", "recommend"),
    **{name: ("programs", name) for name in PROGRAMS},
    "federation": ("federation", "federation"),
}
SHARED = (["run"], ["compare"], ["tune"])  # commands whose clients may be on the processes of mpiexec
RANKS = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK")  # what mpiexec tells its processes
SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
COLLECTED = (200_000, 20, 100)  # Python's 700, 10, 10 take 7 percent of the time of a run on digits, 50,000 still 2


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program; it ends by ``SystemExit``.

    A mistake of the user's (a wrong name or value, a missing or damaged file, a full disk) gives one sentence on the
    standard error and exit code 2. Any other exception is a bug and keeps its traceback.

    Parameters
    ----------
    arguments : sequence of str, optional
        What follows the name of the program; ``sys.argv[1:]`` when not given.

    Examples
    --------
    >>> try:
    ...     main(["list", "stopping"])
    ... except SystemExit as end:
    ...     print("exit code", end.code)  # doctest: +ELLIPSIS
    stopping
    ...
    exit code 0
    """
    if arguments is None:  # a process of its own, whose modules and data live to its end: looked through less often
        gc.set_threshold(*COLLECTED)
    words = sys.argv[1:] if arguments is None else list(arguments)
    if (rank := _rank(words)) is None:
        program(app, "dualopt", arguments)
    else:
        from dualopt.app.cli.engine import follow, lead  # of the extra "app"

        (follow if rank else lead)(lambda: program(app, "dualopt", arguments))


def _rank(words: Sequence[str], environment: Mapping[str, str] = os.environ) -> int | None:
    """Return the number of this process among those of mpiexec, the first of which speaks for all; None if alone.

    >>> _rank(["run", "--engine", "mpi"], {"PMI_RANK": "1"}), _rank(["run"], {"PMI_RANK": "1"})
    (1, None)
    >>> _rank(["run"], {"PMI_RANK": "1", "PMI_SIZE": "2"}), _rank(["list"], {"PMI_RANK": "1", "PMI_SIZE": "2"})
    (1, None)
    """
    asked = "--engine=mpi" in words or ("--engine", "mpi") in pairwise(words)
    asked |= words[:1] in SHARED and any(int(environment.get(name, 1)) > 1 for name in SIZES)
    return next((int(environment[name]) for name in RANKS if asked and name in environment), None)


def app(*, args: list[str], prog_name: str, standalone_mode: bool = True) -> Any:
    """Run one of the commands of ``dualopt``, and return the exit code."""
    if args and args[0] in COMMANDS:
        commands = tree([args[0]])
    elif "--" in args:  # behind which a command may follow
        commands = tree()
    else:
        commands = _overview()
    return commands(args=args, prog_name=prog_name, standalone_mode=standalone_mode)


def tree(names: Iterable[str] = tuple(COMMANDS)) -> Typer:
    """Return the program with some of its commands; what only the others need is not imported."""
    from dualopt.app.cli.usage import GroupedHelp

    commands = _program()
    for name in names:
        module = import_module(f"{__name__}.{COMMANDS[name][0]}")
        if name == "federation":
            commands.add_typer(module.commands(), name=name)
        else:
            kind = module.PassedOn if name in PROGRAMS else GroupedHelp
            commands.command(name=name, cls=kind)(getattr(module, COMMANDS[name][1]))
    return commands


def _overview() -> Typer:
    """Return the program with what its commands say of themselves, none of which is imported."""
    commands = _program()
    for name, (module, function) in COMMANDS.items():
        told = next(x for x in syntax(f"{__name__}.{module}").body if getattr(x, "name", "") == function)
        commands.command(name=name, help=ast.get_docstring(cast(ast.FunctionDef, told)))(lambda: None)
    return commands


def _program() -> Typer:
    """Return the program without commands."""
    from typer import Typer  # of the extra "app", like what the commands import

    from dualopt.app.cli.usage import about

    commands = Typer(
        help="Duality-based federated convex optimization: run a method, compare methods, see what there is.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,  # a traceback stays Python's own
    )
    commands.callback()(about)
    return commands
