"""Adversarial search: generators of small problems on which the claims are attacked.

``python -m theory.attack CLAIM`` looks for a violation; ``python -m theory.attack --list`` names what can be attacked.
"""

from theory.attack._targets import Target, targets

__all__ = ["Target", "targets"]
