"""How programs read what is typed: a mistake gives one sentence that names the option, and nothing is taken twice."""

from __future__ import annotations

from typing import Annotated, Any

from typer import BadParameter, Context, Exit, Option
from typer.core import TyperCommand

from dualopt.app.cli.parsed import kind_of, long_name

__all__ = [
    "GroupedHelp",
    "HelpAll",
    "OneSentence",
    "Version",
    "WidthOption",
    "about",
    "sentence",
    "show_version",
]

NUMBERS = {"int": "a whole number", "float": "a number"}


def show_version(wanted: bool) -> None:
    """Print the version and stop, if that is wanted.

    >>> show_version(False)
    """
    if wanted:
        from importlib.metadata import PackageNotFoundError, version  # few ask for it

        try:
            print(f"dualopt {version('dualopt')}")
        except PackageNotFoundError:  # a copy of the sources
            print("dualopt, not installed")
        raise Exit(0)


Version = Annotated[bool, Option("--version", callback=show_version, is_eager=True, help="Show the version and stop.")]


def _known_width(width: str) -> str:
    from dualopt.runs.plotting import check_width

    check_width(width)
    return width


WidthOption = Annotated[
    str, Option(callback=_known_width, help="Of pictures: column, 3.5 inches, or page, 7.2, as journals have them.")
]


def about(version: Version = False) -> None:
    """Duality-based federated convex optimization: run a method, compare methods, see what there is."""


class OneSentence(TyperCommand):
    """A command that refuses options given twice, of which all but the last would be lost, and empty values."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words, and say in one sentence what is wrong with them."""
        given, _, order = self.make_parser(ctx).parse_args(args=list(args))
        for option in order:
            if option.param_type_name != "option" or option.multiple:
                continue
            if sum(other is option for other in order) > 1:
                raise BadParameter(f"--{long_name(option)} is given twice", ctx)
            if given.get(option.name) == "":
                raise BadParameter(f"--{long_name(option)} must not be empty", ctx)
        try:
            return super().parse_args(ctx, list(args))
        except BadParameter as error:
            text = None if error.param is None else given.get(str(error.param.name))
            if not isinstance(text, str) or (words := self._number(error.param)) is None:
                raise
            raise BadParameter(f"--{long_name(error.param)} must be {words}, not {text!r}", ctx) from None

    def invoke(self, ctx: Any) -> Any:
        """Run the command; NumPy does not warn of overflow, which the status of a run reports."""
        from dualopt.arrays.xp import silent  # needs NumPy, and help does not

        with silent():
            return super().invoke(ctx)

    def _number(self, option: Any) -> str | None:
        """Return what a number must be; None for anything else."""
        words = NUMBERS.get(kind_of(self, option))
        least = getattr(option, "min", None)
        return words if words is None or least is None else f"{words}, at least {least}"


def sentence(message: str) -> str:
    """Return what the parser of options has to say as a sentence.

    >>> sentence("No such option: --bogus")
    'No such option: --bogus.'
    """
    return message.removeprefix("Invalid value: ").strip().rstrip(".") + "."


def _show_all(context: Context, wanted: bool) -> None:
    if wanted:
        from dualopt.app.cli.help import show_help  # few ask for it

        show_help(context, everything=True)
        raise Exit(0)


HelpAll = Annotated[bool, Option("--help-all", callback=_show_all, is_eager=True, help="Show all options and stop.")]


class GroupedHelp(OneSentence):
    """A command whose help is in groups."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Show the help that most people need."""
        from dualopt.app.cli.help import show_help

        show_help(ctx, everything=False)
