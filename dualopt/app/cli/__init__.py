"""The program ``dualopt``.

``run.py``, ``predict.py``, ``tune.py``, ``verify.py``, ``prove.py`` and ``recommend.py`` hold the commands, which
:func:`app` puts together; ``options.py`` turns dataclasses into options, ``output.py`` shows and writes results,
``models.py`` writes trained models, ``record.py`` keeps the files of a search, ``reporting.py`` tells what a user did
wrong.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from dualopt.app.cli.reporting import exit_on_user_error, program, terminable

__all__ = ["app", "exit_on_user_error", "main", "program", "terminable"]

COMMANDS = ("run", "compare", "predict", "list", "tune", "verify", "prove", "recommend", "federation")
SHARED = (["run"], ["compare"], ["tune"])  # commands whose clients may be on the processes of mpiexec
RANKS = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK")  # what mpiexec tells its processes
SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE")


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
    words = sys.argv[1:] if arguments is None else list(arguments)
    if (rank := _rank(words)) is None:
        program(app, "dualopt", words)
    else:
        from dualopt.app.cli.engine import follow, lead  # of the extra "app"

        (follow if rank else lead)(lambda: program(app, "dualopt", words))


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
    from typer import Typer  # of the extra "app", like what the commands import

    from dualopt.app.cli.usage import GroupedHelp, about

    commands = Typer(
        help="Duality-based federated convex optimization: run a method, compare methods, see what there is.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,  # a traceback stays Python's own
    )
    commands.callback()(about)
    for name in [args[0]] if args and args[0] in COMMANDS else COMMANDS:
        if name == "federation":
            from dualopt.app.cli import federation

            commands.add_typer(federation.commands(), name=name)
        else:
            commands.command(name=name, cls=GroupedHelp)(_command(name))
    return commands(args=args, prog_name=prog_name, standalone_mode=standalone_mode)


def _command(name: str) -> Callable[..., None]:
    """Import a command: what the others need is not loaded for it."""
    if name == "tune":
        from dualopt.app.cli.tune import tune as command
    elif name == "verify":
        from dualopt.app.cli.verify import verify as command
    elif name == "prove":
        from dualopt.app.cli.prove import prove as command
    elif name == "predict":
        from dualopt.app.cli.predict import predict as command
    elif name == "recommend":
        from dualopt.app.cli.recommend import recommend as command
    elif name == "list":
        from dualopt.app.cli.listing import list_names as command
    elif name == "compare":
        from dualopt.app.cli.run import compare as command
    else:
        from dualopt.app.cli.run import run as command
    return command
