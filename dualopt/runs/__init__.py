"""Runs from the first round to the last: recording, traces, certificates, references, tuning, which method to use.

It imports the rooms below it: ``arrays``, losses, objectives, solvers, methods, ``engine``. What a run measures is
added in ``recording``, a column at a time.
"""
