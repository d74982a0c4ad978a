"""Claimed rates of convergence put to the test: ``dualopt verify``.

``claimed_rate.py`` reads the claim, ``chains.py`` and ``instances.py`` hold the problems, ``own.py`` takes those of
others, ``verdict.py`` runs the method on them and compares, ``floor.py`` tells where errors stay, ``pictures.py``
draws.
"""
