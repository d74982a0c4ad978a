"""Objectives: the local cost functions of all clients at once, and the local problem built on them.

It imports ``arrays``, ``spec``, ``losses``, ``regularisers``, and ``problem.inputs``, which reads what people have. An
objective is one new file.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
