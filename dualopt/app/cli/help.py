"""Help in groups: what most people need with ``--help``, every option with ``--help-all``."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from dualopt.app.cli.groups import GROUPS, OTHERS, Group, group_of
from dualopt.app.cli.parsed import kind_of, long_name
from dualopt.app.cli.tables import make_console, wrapped

__all__ = ["show_help"]

WORDS = {"int": "N", "float": "NUMBER", "Path": "PATH"}
NAMES = 28  # characters beside which what is told of an option stands
LEAST = 24  # characters that it needs there, else it stands below


def show_help(context: Any, *, everything: bool) -> None:
    """Print the help of a command: its options in groups, each with its default and the page that explains it."""
    console, command, path = make_console(), context.command, context.command_path
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and p.name != "help_all"]
    usage = ["Usage:", path, "[OPTIONS]", *(_metavar(p) for p in arguments)]
    _print(console, " ".join(usage))
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        _print(console, "")
        _print(console, " ".join(paragraph.split()))
    if arguments:
        _title(console, "Arguments")
        _rows(console, [(_metavar(p), p.help or "") for p in arguments], max(cell_len(_metavar(p)) for p in arguments))
    groups = dict(_in_groups(options, path.partition(" ")[2]))
    shown = {group: [p for p in of if everything or p.name in group.main] for group, of in groups.items()}
    left = max((cell_len(_spelling(p, command)) for of in shown.values() for p in of), default=0)
    for group, of in shown.items():
        if of:
            _title(console, group.title, group.page)
            _rows(console, [(_spelling(p, command), _told(p, everything)) for p in of], left)
    more = len(options) - sum(map(len, shown.values()))
    if more:
        _print(console, "")
        _print(console, f"{path} --help-all shows {more} more options, and all defaults.")


def _in_groups(options: Iterable[Any], command: str) -> Iterator[tuple[Group, list[Any]]]:
    """Yield the groups of a command with its options, those that most people need first."""
    of: dict[Group, list[Any]] = {}
    for option in options:
        of.setdefault(group_of(option.name, command), []).append(option)
    for group in (*GROUPS, OTHERS):
        if group in of:
            order = [*group.main, *group.more]
            yield group, sorted(of[group], key=lambda p: order.index(p.name) if p.name in order else len(order))


def _metavar(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    return name if argument.required or name.startswith("[") else f"[{name}]"


def _spelling(option: Any, command: Any) -> str:
    """Return how an option is typed, such as ``-p, --param TEXT``."""
    short = [f"{word}, " for word in option.opts if not word.startswith("--")]
    if option.is_flag:
        no = "[no-]" if option.secondary_opts else ""
        return "".join([*short, f"--{no}{long_name(option)}"])
    return "".join([*short, f"--{long_name(option)} {option.metavar or WORDS.get(kind_of(command, option), 'TEXT')}"])


def _told(option: Any, everything: bool) -> str:
    """Return what is told of an option, and its default: that it is nothing, or off, only with everything."""
    text = option.help or ""
    if option.required:
        return f"{text} [required]"
    if option.multiple or "default" in text:
        return text
    value = option.default
    if not everything and (value is None or value is False):
        return text
    words = ("on" if value else "off") if option.is_flag else "none" if value is None else f"{value}"
    return f"{text} [default: {words}]"


def _rows(console: Console, rows: Sequence[tuple[str, str]], left: int) -> None:
    """Print names, and beside them what is told, or below where there is no room."""
    width, left = console.width - 2, min(left, NAMES)
    beside = width - left - 2 >= LEAST
    for name, text in rows:
        lines = wrapped(text, width - left - 2 if beside else width - 4)
        if beside and cell_len(name) <= left:
            first, *lines = lines
            _print(console, f"  {name}{' ' * (left - cell_len(name))}  {first}")
        else:
            _print(console, f"  {name}", wrap=False)
        for line in lines:
            _print(console, f"{' ' * (left + 4 if beside else 6)}{line}", wrap=False)


def _title(console: Console, title: str, page: str = "") -> None:
    _print(console, "")
    console.print(Text.assemble((title, "bold"), f" ({page})" if page else ""), soft_wrap=True, highlight=False)


def _print(console: Console, text: str, *, wrap: bool = True) -> None:
    lines = wrapped(text, console.width) if wrap and not text.startswith(" ") else [text]
    console.print("\n".join(lines), soft_wrap=True, highlight=False, markup=False)
