"""Pictures for print: every picture of the package goes through here.

Methods have one name and one style everywhere (`palette`), pictures are as wide as a column or a page of a journal
(`widths`), in its sizes of letters (`page`), names stand at the ends of curves (`labels`), and `curves` draws traces.
Matplotlib is imported with the first of these names that needs it.
"""

from importlib.util import find_spec

import lazy_loader

if find_spec("matplotlib") is None:  # said before anything is computed that could not be drawn
    raise ModuleNotFoundError('dualopt.runs.plotting needs matplotlib: pip install "dualopt[app]".')

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
