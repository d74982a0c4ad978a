"""Pictures of traces: logarithmic, readable without colour, and the same style for a name in every figure."""

from __future__ import annotations

import io
import logging
import warnings
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

try:
    from matplotlib import rc_context
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import EngFormatter, MaxNLocator
except ModuleNotFoundError as error:
    raise ModuleNotFoundError('dualopt.runs.plotting needs matplotlib: pip install "dualopt[app]".') from error

import dualopt.methods
from dualopt.runs.trace import Trace, write_atomically
from dualopt.spec.discover import discover

__all__ = ["Picture", "convergence", "dashes", "save", "single_run", "style", "style_axes", "styles"]

# Okabe and Ito (2008), made to be told apart by the colour-blind, without their yellow, too pale on white.
COLOURS = ("#56B4E9", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#0072B2", "#000000")
MARKERS = ("P", "s", "^", "D", "v", "o", "X")
LAST_MARKER = "p"  # of the last seven styles
# Every seven styles have all colours and their own dashes, so that names that share a colour differ in two ways.
DASHES = (
    "-",
    (0, (6, 2)),
    (0, (1, 1.2)),
    (0, (6, 1.5, 1, 1.5)),
    (0, (3, 1.2)),
    (0, (6, 1.2, 1, 1.2, 1, 1.2)),
    (0, (10, 3)),
    (0, (2, 3)),
)
STYLES = len(COLOURS) * len(DASHES)
MARKS_PER_LINE = 12

# The numbers of the styles (colour and marker) of methods; those drawn together in the documentation differ in colour.
# No method needs to be added: it gets a free style of its own.
FIXED = {
    "a-fedpd": 0,
    "optimized-dualfl": 1,
    "feddyn": 2,
    "fedadmm": 3,
    "fedprox": 4,
    "dualfl": 5,
    "fedavg": 6,
    "scaffnew": 7,
    "fedpd": 8,
    "fedsplit": 9,
    "scaffold": 10,
    "feddr": 11,
    "lazy-a-fedpd": 12,
    "feddualavg": 13,
    "a-fedpdsam": 14,
    "fedspeed": 15,
    "acc-s-dane": 16,
    "apda-inexact": 17,
    "fedsam": 18,
    "fedcm": 19,
    "fivegcs": 20,
    "anderson-fedsplit": 21,
    "anderson-dane": 25,
    "distributed-lbfgs": 22,
    "distributed-newton-cg": 23,
    "gradient-descent": 24,
    "sampled-dualfl": 26,
    "giant": 27,
    "adaptive-acc-s-dane": 28,
    "dual-lbfgs": 29,
    "dual-ascent": 30,
    "restarted-dualfl": 31,
    "gap-restarted-dualfl": 32,
    "corrected-dualfl": 33,
    "restarted-optimized-dualfl": 34,
    "corrected-optimized-dualfl": 35,
    "growing-feddyn": 36,
    "scaffold-i": 37,
    "old-dual-fedpd": 38,
    "consensus-fedsplit": 39,
}

DRAWN = (1e-200, 1e200)  # beyond, the ticks of Matplotlib overflow

SHARES = ("test_accuracy",)  # of what is right: the rest is drawn, which tells good models apart

LABELS = {
    "round": "rounds",
    "communications": "communication rounds",
    "gradients": "local gradients per client",
    "floats_up": "numbers uploaded by all clients",
    "floats_down": "numbers sent to all clients",
    "bits_up": "bits uploaded by all clients",
    "bits_down": "bits sent to all clients",
    "seconds": "seconds of computing",
    "energy": r"energy $E$",
    "error": r"relative error $(E - E^*)/|E^*|$",
    "certificate": r"certified bound of $E - E^*$",
    "certified_error": r"certified bound of $(E - E^*)/E^*$",
    "gradient_norm": r"gradient norm $|\nabla E|$",
    "test_accuracy": "share of the test data that is mistaken",
}


class Picture(Figure):
    """A figure of Matplotlib that belongs to no window, and that a notebook shows.

    Examples
    --------
    >>> Picture(figsize=(2, 1))._repr_png_()[1:4]
    b'PNG'
    """

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        with _quiet():
            self.savefig(file, format="png", dpi=100)
        return file.getvalue()


def style(name: str) -> tuple[str, str]:
    """Return the colour and the marker of a name, which depend on nothing but the name.

    The methods of the package have one style each, whatever parameters follow after a colon; all other names share the
    seven first styles.

    Examples
    --------
    >>> style("feddyn") == style("feddyn:alpha=0.1")
    True
    >>> style("feddyn") == style("fedadmm")
    False
    """
    return _numbered_style(_first(name))


def styles(names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return the styles of names that share a figure: their own as long as it is free, else the next free one.

    Up to seven names differ in colour, and all are distinct up to 49. Methods of the package come first, in an order of
    their own, and of more than seven names they all keep their style; of other names those that come first keep it, so
    list them in the same order in figures that are compared.

    Examples
    --------
    >>> found = styles(f"method {i}" for i in range(49))
    >>> len(set(found.values())), found["method 0"] == style("method 0")
    (49, True)
    >>> found = styles(["fivegcs", "fedavg"])
    >>> style("fivegcs")[0] == style("fedavg")[0], found["fivegcs"][0] == found["fedavg"][0]
    (True, False)
    """
    chosen: dict[str, tuple[str, str]] = {}
    methods, names, number = _style_numbers(), list(names), len(COLOURS)
    for name in sorted(names, key=lambda name: methods.get(name, STYLES)):
        first = _first(name)
        # Colours before markers: a free colour is looked for first, with the dashes of the name, then a free style.
        places = [(first + i) % number + first // number * number for i in range(number)]
        places += [(first + i) % number + i // number * number for i in range(STYLES)]
        used = {colour for colour, _ in chosen.values()} if len(names) <= number else set()
        pairs = [_numbered_style(place) for place in places]
        free = (pair for pair in pairs if pair not in chosen.values() and pair[0] not in used)
        chosen[name] = next(free, pairs[0])
    return {name: chosen[name] for name in names}


def dashes(colour: str, marker: str) -> Any:
    """Return the dashes of a line in this style, for Matplotlib: names with one colour differ in marker and dashes.

    Examples
    --------
    >>> dashes(*style("dualfl")), dashes(*style("fivegcs"))
    ('-', (0, (1, 1.2)))
    """
    if marker == LAST_MARKER:
        return DASHES[-1]
    first = COLOURS.index(colour)
    return DASHES[(MARKERS.index(marker) - first) % len(MARKERS)]


def convergence(
    traces: Mapping[str, Trace],
    *,
    x: str | Sequence[str] = "round",
    y: str = "certified_error",
    title: str | None = None,
) -> Picture:
    """Draw one curve per trace, logarithmic in ``y``; of an accuracy, what is missing to 1.

    Parameters
    ----------
    traces : dict of str to Trace
        The label of each curve and what it shows.
    x : str or sequence of str, default "round"
        Columns for the horizontal axis; several give panels side by side.
    y : str, default "certified_error"
        Column for the vertical axis. Numbers that have no logarithm (infinite, zero, negative by rounding), or are
        beyond 1e200 or below 1e-200, are left out.
    title : str, optional
        Title of the figure.

    Returns
    -------
    Picture
        A figure of Matplotlib. It belongs to no window: a notebook shows it, and :func:`save` writes it.

    Raises
    ------
    ValueError
        If there is no trace, or a trace has no such column.

    Examples
    --------
    >>> trace = Trace(columns={"round": [0, 1], "energy": [1.0, 0.5]}, status="max_rounds", theta=None)
    >>> figure = convergence({"dualfl": trace}, y="energy")
    >>> figure.axes[0].get_yscale()
    'log'
    """
    if not traces:
        raise ValueError("traces must hold at least one trace.")
    columns = [x] if isinstance(x, str) else list(x)
    for label, trace in traces.items():
        for name in (*columns, y):
            if name not in trace.columns:
                raise ValueError(f"column {name!r} is not in trace {label!r}, which has {', '.join(trace.columns)}.")
    figure, panels = _panels(len(columns), title)
    look = styles(traces)
    for axes, column in zip(panels, columns, strict=True):
        for position, (label, trace) in enumerate(traces.items()):
            colour, marker = look[label]
            _curve(axes, trace[column], _heights(trace, y), label=label, colour=colour, marker=marker, offset=position)
        _name_x(axes, column)
    panels[0].set_ylabel(LABELS.get(y, y))
    panels[0].legend(frameon=False)
    return figure


def single_run(trace: Trace, *, x: str = "round", title: str | None = None) -> Picture:
    """Draw one run: the certified bound and, when the trace knows ``E*``, the error below it.

    Where no relative error is certified, because ``E*`` may be 0, it is the certified gap. Where nothing is, because
    ``E`` is not strongly convex, it is what is missing to the accuracy on test data
    if that was measured, else the norm of the gradient if it was, else the energy.

    Parameters
    ----------
    trace : Trace
        With the column ``certified_error``, and perhaps the others.
    x : str, default "round"
        Column for the horizontal axis.
    title : str, optional
        Title of the figure.

    Examples
    --------
    >>> columns = {"round": [0, 1], "certified_error": [0.3, 0.1], "error": [0.2, 0.05]}
    >>> figure = single_run(Trace(columns=columns, status="max_rounds", theta=None))
    >>> [line.get_label() for line in figure.axes[0].lines]
    ['certified', 'error']
    """
    figure, (axes,) = _panels(1, title)
    column = _telling(trace)
    curves = {"certified": column, "error": "error"} if column == "certified_error" else {LABELS[column]: column}
    for i, (label, name) in enumerate(curves.items()):
        if name in trace.columns:
            _curve(
                axes,
                trace[x],
                _heights(trace, name),
                label=label,
                colour=COLOURS[5 - i],
                marker=MARKERS[5 - i],
                offset=i,
            )
    _name_x(axes, x)
    axes.set_ylabel(r"relative error of $E$" if column == "certified_error" else LABELS[column])
    if column == "certified_error":
        axes.legend(frameon=False)
    return figure


def style_axes(axes: Axes) -> None:
    """Put a pale grid behind the curves and take the frame away above and to the right.

    Examples
    --------
    >>> axes = Figure().subplots()
    >>> style_axes(axes)
    >>> axes.get_axisbelow(), axes.spines["top"].get_visible()
    (True, False)
    """
    axes.grid(True, which="major", color="0.88", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _heights(trace: Trace, name: str) -> np.ndarray:
    return 1.0 - trace[name] if name in SHARES else trace[name]


def _telling(trace: Trace) -> str:
    """Name the column that says most about one run: the first of these that is a curve, not a single number."""
    candidates = ("certified_error", "certificate", "test_accuracy", "gradient_norm", "energy")
    curves = (name for name in candidates if name in trace.columns and np.isfinite(trace[name]).sum() > 1)
    return next(curves, "energy")


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure under a temporary name and rename it; the suffix of ``path`` names the format.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(Figure(), Path(folder) / "empty.png")
    ...     print([file.name for file in Path(folder).iterdir()])
    ['empty.png']
    """
    path = Path(path)
    kind = path.suffix.lstrip(".") or "png"
    with _quiet(), rc_context({"pdf.fonttype": 42}):  # TrueType: many journals refuse Matplotlib's usual Type 3
        _write(figure, path, kind)


def _write(figure: Figure, path: Path, kind: str) -> None:
    write_atomically(path, lambda file: figure.savefig(file, format=kind, dpi=150), "wb")


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep Matplotlib from telling that a font lacks a letter, for which a box stands, or that a formula is none."""
    log = logging.getLogger("matplotlib")
    level = log.level
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*does not have a glyph|Glyph .* missing")
        log.setLevel(logging.ERROR)  # of formulas
        try:
            yield
        finally:
            log.setLevel(level)


def _first(name: str) -> int:
    """Return the number of the style of a name: that of its method, or one of the first seven by a hash."""
    return _style_numbers().get(name.partition(":")[0], zlib.crc32(name.encode()) % len(COLOURS))


@cache
def _style_numbers() -> dict[str, int]:
    """Return the numbers of the styles of all methods: the fixed one, or the first free one from a hash on."""
    numbers = dict(FIXED)
    for name in discover(dualopt.methods):
        if name not in numbers:
            start, taken = zlib.crc32(name.encode()), set(numbers.values())
            numbers[name] = next(
                (k % STYLES for k in range(start, start + STYLES) if k % STYLES not in taken), start % STYLES
            )
    return numbers


def _numbered_style(index: int) -> tuple[str, str]:
    """Return style ``index`` of 56: seven colours with their own markers, these shifted, and the last one for all."""
    turn, colour = divmod(index, len(COLOURS))
    return COLOURS[colour], LAST_MARKER if turn == len(MARKERS) else MARKERS[(colour + turn) % len(MARKERS)]


def _panels(count: int, title: str | None) -> tuple[Picture, list[Axes]]:
    figure = Picture(figsize=(6.4 if count == 1 else 4.6 * count, 4.4), layout="constrained")
    panels = list(np.atleast_1d(figure.subplots(1, count, sharey=True)))
    for axes in panels:
        axes.set_yscale("log")
        style_axes(axes)
    if title is not None:
        figure.suptitle(title, fontsize="medium")
    return figure, panels


def _name_x(axes: Axes, column: str) -> None:
    axes.set_xlabel(LABELS.get(column, column))
    if column in ("round", "communications"):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    elif column.startswith("floats"):
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))  # 300k instead of 300000


def _curve(axes: Axes, x: np.ndarray, y: np.ndarray, *, label: str, colour: str, marker: str, offset: int) -> None:
    drawable = (y > DRAWN[0]) & (
        y < DRAWN[1]
    )  # a certificate of every tenth round has NaN in between: join what there is
    x, y = x[drawable], y[drawable]
    every = max(1, len(y) // MARKS_PER_LINE)
    axes.plot(
        x,
        y,
        label=f" {label}" if label.startswith("_") else label,  # a legend leaves out what begins with an underscore
        color=colour,
        marker=marker,
        markersize=5,
        markevery=(offset % every, every),  # curves that coincide still show all their markers
        linestyle=dashes(colour, marker),
        linewidth=1.6,
    )
