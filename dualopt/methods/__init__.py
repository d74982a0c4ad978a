"""Federated algorithms, one paper box per file, and what they share: oracle, participation, compressors, preparation.

It imports ``arrays``, ``spec``, ``regularisers``, ``objectives`` and ``solvers``. A method is one new file, loaded when
somebody asks for it.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

SHARED = ("compressors", "oracle", "participation", "preparation")
"""The modules here that hold no method."""
