"""The theorems of the papers, executable.

A claim is checked on a case: a method on clients. ``Case.of`` makes one of any method, and :func:`valleys` clients in
the plane that are hard enough to be seen.

Examples
--------
>>> from dualopt.methods import DualFL
>>> from dualopt.lab.claims import check
>>> from theory.dualfl.exact_solutions import theorem_3_3
>>> case = Case.of(DualFL(), valleys(3, kappa=16.0), rounds=20)
>>> check(theorem_3_3, case).verdict, case.models().shape
('holds', (20, 2))
"""

from theory._cases import Case
from theory._valleys import valleys

__all__ = ["Case", "valleys"]
