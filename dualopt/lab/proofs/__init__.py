"""Worst cases and rates of a method, proved from its own code by semidefinite programming, and in rational numbers.

May import all of ``dualopt`` but ``app`` and ``federation``; CVXPY on demand. What a newcomer adds: a measure of the
error in ``_worst_case``, a term of the Lyapunov function in ``_lyapunov`` and ``checker``, which imports nothing.
"""

from dualopt.lab.proofs._exact import check_proof
from dualopt.lab.proofs._rates import Rate, prove
from dualopt.lab.proofs._worst_case import WorstCase, worst_case

__all__ = ["Rate", "WorstCase", "check_proof", "prove", "worst_case"]
