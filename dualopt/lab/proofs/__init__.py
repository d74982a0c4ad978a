"""Worst cases and rates of a method, proved from its own code by semidefinite programming, and in rational numbers.

May import all of ``dualopt`` but ``app`` and ``federation``; CVXPY on demand. What a newcomer adds: a measure of the
error in ``_worst_case``, a term of the Lyapunov function in ``_lyapunov`` and ``checker``, which imports nothing.
"""

from dualopt.lab.proofs._best import ProvedBest, class_of, proved_best, with_numbers
from dualopt.lab.proofs._exact import check_proof
from dualopt.lab.proofs._rates import Rate, prove
from dualopt.lab.proofs._worst_case import WorstCase, worst_case

__all__ = [
    "ProvedBest",
    "Rate",
    "WorstCase",
    "check_proof",
    "class_of",
    "prove",
    "proved_best",
    "with_numbers",
    "worst_case",
]
