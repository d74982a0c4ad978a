"""The figures of the papers: ``python -m figures``.

Every module here whose name has no leading underscore is one figure: the first line of its docstring is the title,
``compute(settings)`` returns the traces of its curves, and ``draw(traces, settings)`` the picture. If there is
``caption(traces, settings)``, it says what is drawn and what the curves show, in sentences computed from them; its
``tabulate(traces)`` gives the table. ``TIME`` says how long it takes on two cores with the default options. A new file
is found without an entry in any list.
"""
