"""Federated algorithms, one paper box per file, and what they share: oracle, participation, compressors, preparation.

Boxes import ``arrays``, objectives and solvers, and are loaded when somebody asks for them. A method is one new file.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

SHARED = ("compressors", "oracle", "participation", "preparation")
"""The modules here that hold no method."""
