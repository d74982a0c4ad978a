"""Claimed rates of convergence put to the test: ``dualopt verify``.

``claimed_rate.py`` reads the claim, ``chains.py`` and ``instances.py`` hold the problems, ``verdict.py`` runs the
method on them and compares, ``pictures.py`` draws.
"""
