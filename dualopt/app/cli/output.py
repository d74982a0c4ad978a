"""What programs show and write: progress bars, tables and JSON files."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from threading import Event
from typing import IO, Any

from rich.console import Console
from rich.markup import escape

from dualopt.app.cli.tables import make_console, say, show_pairs, show_table
from dualopt.arrays._files import SUFFIX, remove_leftovers
from dualopt.methods import parameters
from dualopt.runs.trace import Trace, write_atomically
from dualopt.spec import described

__all__ = [
    "Interrupt",
    "alarm",
    "check_file",
    "contradiction",
    "file_names",
    "interruptible",
    "make_console",
    "options_record",
    "outcome",
    "parameters_in_words",
    "prepare_folder",
    "remove_empty_folders",
    "say",
    "shortened",
    "show_pairs",
    "show_table",
    "table_row",
    "write_json",
]

REASONS = {
    "converged": "the certified relative error is at most tol, or the certified gap at most atol",
    "max_rounds": "all rounds were run",
    "diverged": "the energy is not finite, or stays far above that of the start without coming down",
    "stalled": "the model no longer moves at machine precision",
    "stopped": "interrupted by {signal}",
    "contradicted": "the certificate is below the error that the reference shows, so that one of both is wrong",
}
COMPARE = ("compare.json", "compare.csv", "compare.dat", "compare.png", "compare.pdf")
RESULTS = ("convergence.png", "run.json", "trace.csv", "trace.npz", *COMPARE)
SUMMARY = ("summary.json", "summary.csv")
RESULTS += ("model.json", "model.npz", "tune.csv", "tune.json", *SUMMARY)
LONGEST_TITLE = 60
LONGEST_NAME = 200  # bytes; file systems take 255, of which a suffix and a temporary name need some


_made: list[Path] = []  # folders for results that did not exist before


def prepare_folder(folder: Path, option: str = "out") -> None:
    """Create the folder for the results and try to write in it, before anything is computed.

    What killed processes have left there half written is removed.

    Parameters
    ----------
    folder : Path
        Where results go.
    option : str, default "out"
        How the user named it.

    Raises
    ------
    ValueError
        If the folder cannot be created or written, or a folder has the name of a result; then nothing is left behind.
    """
    new = [path for path in (folder, *folder.parents) if not os.path.lexists(path)]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder, prefix=".", suffix=SUFFIX):
            pass
    except (OSError, ValueError) as error:
        for path in new:
            with suppress(OSError, ValueError):
                path.rmdir()
        new.clear()
        reason = getattr(error, "strerror", None) or error
        raise ValueError(f"{option} {str(folder)!r} is not a folder that can be written: {reason}.") from None
    remove_leftovers(folder)
    for name in RESULTS:
        if (folder / name).is_dir():
            raise ValueError(f"{option} {str(folder)!r} cannot take the file {name!r}: a folder has this name.")
    _made.extend(new)


def remove_empty_folders() -> None:
    """Remove the folders that `prepare_folder` made, as far as nothing has been written into them."""
    while _made:
        with suppress(OSError):
            _made.pop(0).rmdir()  # the innermost first


def check_file(file: Path, option: str) -> None:
    """Refuse, before anything is computed, a file that cannot be written.

    Raises
    ------
    ValueError
        If it is a folder, or not in one that can be written.
    """
    folder = file.absolute().parent
    if not folder.is_dir():
        raise ValueError(f"{option} {str(file)!r} is not in a folder that exists.")
    if file.is_dir():
        raise ValueError(f"{option} {str(file)!r} is a folder, not a file.")
    if not os.access(folder, os.W_OK):
        raise ValueError(f"{option} {str(file)!r} is in a folder that cannot be written.")


class Interrupt(Event):
    """Set by the first signal that asks the program to end."""

    number = signal.SIGINT

    @property
    def exit_code(self) -> int:
        """What shells report for a program that the signal ended: 130 for Ctrl-C, 143 for SIGTERM."""
        return 128 + self.number


@contextmanager
def interruptible() -> Iterator[Interrupt]:
    """Turn the first Ctrl-C or SIGTERM into an event, so that the round can be finished; the second ends at once."""
    interrupt = Interrupt()

    def ask(number: int, _: object) -> None:
        interrupt.number = signal.Signals(number)
        interrupt.set()
        restore()
        print("dualopt: stopping after this round (Ctrl-C again stops at once).", file=sys.stderr)

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        for number in before:
            signal.signal(number, ask)
        yield interrupt
    finally:
        restore()


def outcome(trace: Trace, accuracy: float | None, *, signal: str = "Ctrl-C") -> dict[str, str]:
    """Say in words and numbers how a run ended, if need be by which signal."""
    last = trace.last
    lines = {
        "status": f"{trace.status}: {REASONS[trace.status].format(signal=signal)}{_worse(trace)}",
        "rounds": _rounds(trace),
        "energy E": f"{last['energy']:.10g}",
        "certified gap": _bound(last["certificate"]),
        "certified relative error": _relative(last),
    }
    if trace.parameters.get("reduce") == "secure sums":
        lines["checks of single hosts"] = "none: what they send is known in secure sums alone"
    if "error" in last:
        absolute = trace.parameters.get("reference") == 0
        lines["error E - E*, E* = 0" if absolute else "relative error"] = f"{last['error']:.2e}"
    lines |= {
        "gradient norm |grad E|": f"{last['gradient_norm']:.2e}",
        "numbers sent": f"{last['floats_up']:,.0f} up, {last['floats_down']:,.0f} down",
        "bits sent": f"{last['bits_up']:,.0f} up, {last['bits_down']:,.0f} down",
        "bits to measure and certify": f"{last['bits_measuring_up']:,.0f} up, {last['bits_measuring_down']:,.0f} down",
        "local gradients per client": f"{last['gradients']:.1f}",
        "seconds of computing": f"{last['seconds']:.3g}",
    }
    if accuracy is not None:
        lines["training accuracy"] = f"{accuracy:.2%}"
    if "test_accuracy" in last:
        lines["test accuracy"] = f"{last['test_accuracy']:.2%}"
    return lines


def table_row(label: str, trace: Trace, accuracy: float | None) -> dict[str, str]:
    """Return one row of the table that compares runs."""
    last = trace.last
    row = {
        "run": label,
        "status": trace.status,
        "rounds": _rounds(trace),
        "energy E": f"{last['energy']:.8g}",
        "certified": _bound(last["certified_error"]),
    }
    if "error" in last:
        row["error"] = f"{last['error']:.1e}"
    row |= {
        "gradients": f"{last['gradients']:.1f}",
        "bits up": in_thousands(last["bits_up"]),
        "bits down": in_thousands(last["bits_down"]),
        "to certify": in_thousands(last["bits_measuring_up"] + last["bits_measuring_down"]),
        "seconds": f"{last['seconds']:.3g}",
    }
    if accuracy is not None:
        row["accuracy"] = f"{accuracy:.2%}"
    if "test_accuracy" in last:
        row["test accuracy"] = f"{last['test_accuracy']:.2%}"
    return row


def in_thousands(number: float) -> str:
    """Return a count in few characters.

    Examples
    --------
    >>> [in_thousands(n) for n in (0, 999, 12_345, 33_280_000, 2e12)]
    ['0', '999', '12.3k', '33.3M', '2T']
    """
    power = 0 if number < 1000 else min(4, int(math.log10(number) // 3))
    return f"{number / 1000**power:.3g}{('', 'k', 'M', 'G', 'T')[power]}"


def parameters_in_words(algorithm: Any) -> dict[str, str]:
    """Return the hyperparameters that were used: numbers in one line, local solver and rule in their own."""
    numbers, parts = [], {}
    for name in parameters(type(algorithm)):
        value = getattr(algorithm, name)
        if isinstance(value, bool | int | float | str | type(None)):
            numbers.append(f"{name} = {value:.6g}" if isinstance(value, float) else f"{name} = {value}")
        else:
            parts[name] = repr(value)
    return {"parameters": ", ".join(numbers) or "none", **parts}


def alarm(sentence: str) -> None:
    """Print a sentence on the standard error, in red on terminals."""
    Console(stderr=True, soft_wrap=True, emoji=False).print(
        f"dualopt: {escape(sentence)}", style="bold red", highlight=False
    )


def contradiction(label: str, trace: Trace) -> str:
    """Say by how much the last certificate of a run is below the error that its reference shows."""
    error, bound = trace.last["energy"] - trace.parameters["reference"], trace.last["certificate"]
    return (
        f"{label}: E - E* = {error:.2e} by the reference, where at most {bound:.2e} is certified: one of both is wrong."
    )


def shortened(text: str) -> str:
    """Return a text for a legend or a title, where a long one would leave no room for the picture.

    >>> len(shortened("a" * 500))
    60
    """
    return text if len(text) <= LONGEST_TITLE else f"{text[: LONGEST_TITLE - 3]}..."


def file_names(labels: Sequence[str], taken: Collection[str] = ()) -> list[str]:
    """Return a file name for every label, with nothing in it that a file system or a shell takes amiss.

    Raises
    ------
    ValueError
        If two labels would share a name, or one has a name that is taken.

    Examples
    --------
    >>> file_names(["dualfl:rho=0", "fedpd"])
    ['dualfl-rho=0', 'fedpd']
    """
    found: dict[str, str] = {}  # file systems may ignore case
    for label in labels:
        name = re.sub(r"[^\w.=+-]+", "-", label).lstrip(".-") or "run"
        if len(os.fsencode(name)) > LONGEST_NAME:
            raise ValueError(
                f"algorithm {label!r} is too long for the name of a file: write a shorter LABEL@ before it."
            )
        if name.casefold() in found or name.casefold() in taken:
            raise ValueError(f"algorithm {label!r} has no name of its own for its file: write LABEL@ before it.")
        found[name.casefold()] = name
    return list(found.values())


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a record as strict JSON: numbers that JSON does not know (infinite, NaN) become null."""

    def write(file: IO[Any]) -> None:
        json.dump(_jsonable(content), file, indent=2, allow_nan=False)
        file.write("\n")

    write_atomically(path, write)


def _jsonable(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return os.fspath(value) if isinstance(value, Path) else described(value)


def _worse(trace: Trace) -> str:
    """Say that the last model is worse than the start, if it is, and which one is kept of a run that diverged."""
    energies = trace["energy"].tolist()
    if trace.status == "diverged":
        n = min(range(len(energies)), key=lambda n: energies[n] if math.isfinite(energies[n]) else math.inf)
        exploded = "".join(f"; {sentence}" for sentence in trace.parameters.get("explosions", ()))
        return f"{exploded}; the model of round {n}, E = {energies[n]:.6g}, is kept"
    return f"; E = {energies[0]:.6g} at the start was less" if energies[-1] > energies[0] else ""


def _rounds(trace: Trace) -> str:
    """Return the number of rounds, and of those that communicated if there are fewer."""
    rounds, sent = trace.last["round"], trace.last["communications"]
    return f"{rounds:.0f}" if sent == rounds else f"{rounds:.0f} ({sent:.0f} sent)"


def _relative(row: Mapping[str, float]) -> str:
    """Return the certified relative error, or why there is none although the energy has a bound."""
    if math.isfinite(row["certificate"]) and math.isinf(row["certified_error"]):
        return "undefined: nothing shows that E* > 0; the certified gap is absolute, and --atol stops by it"
    return _bound(row["certified_error"])


def _bound(value: float) -> str:
    return f"<= {value:.2e}" if math.isfinite(value) else "none"


def options_record(*groups: Any) -> dict[str, Any]:
    """Return all options of some groups under their names."""
    return {name: value for group in groups for name, value in asdict(group).items()}
