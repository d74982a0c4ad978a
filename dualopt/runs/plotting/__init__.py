"""Pictures for print: every picture of the package goes through here.

Methods have one name and one style everywhere (`palette`), pictures are as wide as a column or a page of a journal
(`widths`), in its sizes of letters (`page`), names stand at the ends of curves (`labels`), and `curves` draws traces.
Matplotlib is imported with the first of these names that needs it.
"""

import lazy_loader

from dualopt.arrays._extras import require_installed

require_installed("matplotlib", "dualopt.runs.plotting")
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
