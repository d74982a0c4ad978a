"""Objects by their names: modules of this package, files of the user's own, entry points of installed packages.

It imports ``arrays``, and the packages in which it looks names up. A new kind of object is added in ``plugins``.
"""
