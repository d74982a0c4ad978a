"""Pictures as wide as a column or a page of a journal, in its sizes of letters; files that journals take."""

from __future__ import annotations

import io
import logging
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import numpy as np
from matplotlib import rc_context, rcParams, rcParamsDefault
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dualopt.runs.plotting.labels import name_curves
from dualopt.runs.plotting.widths import WIDTHS, check_width
from dualopt.runs.trace import write_atomically

__all__ = [
    "Picture",
    "panels",
    "quiet",
    "save",
    "save_for_print",
    "styled",
    "titled",
    "wrapped",
]

LETTERS_PER_INCH = 17  # of a title, on average

# Every letter has at least 7 points. Fonts are TrueType: many journals refuse Matplotlib's usual Type 3.
SETTINGS: dict[str, Any] = {
    "font.size": 8.0,
    "axes.titlesize": 8.0,
    "axes.labelsize": 8.0,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "legend.fontsize": 7.0,
    "legend.title_fontsize": 7.0,
    "figure.titlesize": 8.0,
    "figure.labelsize": 8.0,
    "lines.linewidth": 1.2,
    "lines.markersize": 4.0,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.minor.width": 0.4,
    "ytick.minor.width": 0.4,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "0.88",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.handlelength": 3.2,
    "savefig.dpi": 150.0,
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
}


class Picture(Figure):
    """A figure of Matplotlib that belongs to no window, and that a notebook shows.

    Examples
    --------
    >>> Picture(figsize=(2, 1))._repr_png_()[1:4]
    b'PNG'
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.unnamed: list[Sequence[Axes]] = []  # panels whose curves get names when the picture is first drawn

    def draw(self, renderer: Any) -> None:
        """Draw the picture; names of curves are placed before, once."""
        waiting, self.unnamed = self.unnamed, []
        for group in waiting:
            name_curves(group)
        super().draw(renderer)

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        with quiet():
            self.savefig(file, format="png", dpi=100)
        return file.getvalue()


@contextmanager
def styled() -> Iterator[None]:
    """Draw in the sizes of a journal; what the user has set otherwise than Matplotlib, in ``rcParams``, stays.

    Examples
    --------
    >>> from matplotlib import rcParams
    >>> with rc_context({"lines.linewidth": 3.0}), styled():
    ...     rcParams["lines.linewidth"], rcParams["font.size"], rcParams["pdf.fonttype"]
    (3.0, 8.0, 42)
    """
    now, before = cast(dict[str, Any], rcParams), cast(dict[str, Any], rcParamsDefault)
    own: dict[Any, Any] = {name: value for name, value in SETTINGS.items() if now[name] == before[name]}
    with rc_context(own):
        yield


def panels(
    rows: int = 1,
    columns: int = 1,
    *,
    height: float,
    width: str = "page",
    least: float = 2.2,
    sharex: bool = False,
    sharey: bool = False,
    figsize: tuple[float, float] | None = None,
) -> tuple[Picture, np.ndarray]:
    """Return a picture of a width, and its panels; where too narrow for a row of them, they go on below.

    Parameters
    ----------
    rows, columns : int
        Shape of the array of panels.
    height : float
        Inches for each row of panels.
    width : {"column", "page"}
        3.5 or 7.2 inches.
    least : float, default 2.2
        Inches that a panel takes at least.
    sharex, sharey : bool
        Whether all panels of a column, or of a row, share that axis.
    figsize : (float, float), optional
        Width and height in inches instead of those above; that of ``rcParams``, if the user has set one.

    Raises
    ------
    ValueError
        If the width is none of these.

    Examples
    --------
    >>> figure, grid = panels(1, 3, height=2.0, width="column")
    >>> grid.shape, figure.get_size_inches().tolist()
    ((1, 3), [3.5, 6.0])
    """
    check_width(width)
    if figsize is None and rcParams["figure.figsize"] != rcParamsDefault["figure.figsize"]:
        figsize = tuple(rcParams["figure.figsize"])
    inches = WIDTHS[width] if figsize is None else figsize[0]
    across = max(1, min(columns, int(inches / least)))
    down = rows * -(-columns // across)
    figure = Picture(figsize=figsize or (inches, height * down), layout="constrained")
    grid = np.empty((rows, columns), dtype=object)
    spec = figure.add_gridspec(down, across)
    for (i, j), _ in np.ndenumerate(grid):
        below, beside = divmod(j, across)
        shared = {"sharex": grid[0, j] if sharex else None, "sharey": grid[i, 0] if sharey else None}
        place = spec[i * -(-columns // across) + below, beside]
        grid[i, j] = axes = figure.add_subplot(place, **shared)
        if sharey and beside:
            axes.tick_params(labelleft=False, which="both")
    if sharex and across == columns:
        for axes in grid[:-1].flat:
            axes.tick_params(labelbottom=False, which="both")
    return figure, grid


def titled(figure: Figure, title: str | None) -> None:
    """Put a title above a picture, in lines as long as it is wide."""
    if title:
        figure.suptitle(wrapped(title, figure.get_figwidth()))


def wrapped(text: str, inches: float) -> str:
    r"""Break lines at spaces outside formulas so that they are not longer than so many inches.

    Examples
    --------
    >>> wrapped(r"digits, $\mu$ = 0.01, and so on", 1.0)
    'digits, $\\mu$ = 0.01,\nand so on'
    """
    lines = []
    for line in text.splitlines():
        words = re.findall(r"(?:\\\$|\$(?:\\.|[^$\\])*\$|[^\s$])+|\$", line)
        start = 0
        for end in range(1, len(words) + 1):
            if end == len(words) or _length(" ".join(words[start : end + 1])) > LETTERS_PER_INCH * inches:
                lines.append(" ".join(words[start:end]))
                start = end
    return "\n".join(lines)


def _length(text: str) -> int:
    """Count letters, of formulas those that are seen."""
    return len(re.sub(r"\\[a-zA-Z]+", "x", text.replace(r"\$", "x")).translate(dict.fromkeys(map(ord, "$^_{}"))))


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
    undated: dict[str, Any] = (
        {"metadata": {"CreationDate": None}} if kind == "pdf" else {}
    )  # the same picture gives the same file
    with quiet(), styled():
        write_atomically(path, lambda file: figure.savefig(file, format=kind, **undated), "wb")


def save_for_print(figure: Figure, path: str | Path) -> list[str]:
    """Write ``path.png`` for the screen and ``path.pdf`` for print, alike; return the names of the files.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_for_print(Figure(), Path(folder) / "empty")
    ['empty.png', 'empty.pdf']
    """
    paths = [Path(f"{path}.{kind}") for kind in ("png", "pdf")]
    for file in paths:
        save(figure, file)
        figure.set_layout_engine("none")  # both have the same layout, and it is computed once
    return [file.name for file in paths]


@contextmanager
def quiet() -> Iterator[None]:
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
