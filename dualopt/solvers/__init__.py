"""Local solvers: one file each, pure functions of problem, start and solver state.

It imports ``arrays``, ``losses`` and ``objectives``. A solver is one new file, and a stopping rule a line of
``stopping.RULES``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

SHARED = ("stopping",)
"""The modules here that hold no solver."""
