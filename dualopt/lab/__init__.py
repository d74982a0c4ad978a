"""Statements put to the test: claims and their verdicts, rates, attacks, claimed rates, contracts of classes.

It imports everything but ``app`` and ``federation``. Claims themselves stand in ``theory/``; here is what they are made
of.
"""
