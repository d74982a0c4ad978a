"""The figures of the papers: ``python -m figures``.

Every module here whose name has no leading underscore is one figure: the first line of its docstring is the title,
``compute(settings)`` returns the traces of its curves, and ``draw(traces, settings)`` the picture. A new file is
found without an entry in any list.
"""
