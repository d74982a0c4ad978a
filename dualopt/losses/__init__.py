"""Losses of a linear predictor, one file each, all with the same interface: `Loss`.

It imports ``arrays``. A loss is one new file, and a line of the stub where it is to be a public name.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
