"""Pictures for print: every picture of the package goes through here.

Methods have one name and one style everywhere (`palette`), pictures are as wide as a column or a page of a journal, in
its sizes of letters (`page`), names stand at the ends of curves (`labels`), and `curves` draws traces.
"""

try:
    import matplotlib as _  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError('dualopt.runs.plotting needs matplotlib: pip install "dualopt[app]".') from error

from dualopt.runs.plotting.curves import LABELS, convergence, curve, single_run
from dualopt.runs.plotting.labels import name_curves
from dualopt.runs.plotting.page import (
    WIDTHS,
    Picture,
    check_width,
    panels,
    save,
    save_for_print,
    styled,
    titled,
    wrapped,
)
from dualopt.runs.plotting.palette import COLOURS, STYLES, Style, proper_name, style, styles

__all__ = [
    "COLOURS",
    "LABELS",
    "STYLES",
    "WIDTHS",
    "Picture",
    "Style",
    "check_width",
    "convergence",
    "curve",
    "name_curves",
    "panels",
    "proper_name",
    "save",
    "save_for_print",
    "single_run",
    "style",
    "styled",
    "styles",
    "titled",
    "wrapped",
]
