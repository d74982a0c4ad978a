"""Runs from the first round to the last: recording, traces, certificates, references, tuning, which method to use.

It imports ``arrays``, ``spec``, ``losses``, ``regularisers``, ``objectives``, ``solvers``, ``methods`` and ``engine``,
which itself imports certificates, traces and hashes of code from here. What a run measures is added in ``recording``, a
column at a time.
"""
