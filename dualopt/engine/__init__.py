"""The rounds of a federation, wherever its clients are: in this process, in blocks, on MPI ranks, at sites.

It imports ``arrays``, ``spec``, ``regularisers``, ``objectives``, ``solvers``, ``methods``, and of ``runs``
certificates, traces and hashes of code. What few runs need (MPI, a wire) is loaded when it is asked for.
Another place for clients is a class beside ``Blocks``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
