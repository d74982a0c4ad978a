"""The gaps of local problems while they are solved by gradient steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from dualopt.objectives import LocalProblem
from dualopt.objectives.local_problem import per_client
from theory._cases import Case
from theory.dualfl.local_steps import local_problems

__all__ = ["Watched", "watched"]


class Watched(NamedTuple):
    """The local problems of a run, each solved for longer than the run does."""

    gap: np.ndarray  # (rounds, clients, steps + 1)  (3.6)
    bound: np.ndarray  # of the same shape: |r|^2/(2(mu - nu))


def watched(case: Case, most: int) -> Watched:
    r"""Repeat the local gradient steps of a run, ``most`` of them in every round.

    For quadratics (3.6) is :math:`\frac12\langle r_j, (A_j - \nu I)^{-1}r_j\rangle`, a sum over eigenvectors of
    positive terms.
    """
    gaps, bounds, nu = [], [], case.algorithm.nu
    eigenvalues, vectors = np.linalg.eigh(case.objective.A - nu * np.eye(2))
    curvature = eigenvalues[:, None]  # (clients, 1, 2), the least first
    for _, problem, start in local_problems(case):
        residuals = np.stack(list(descent(problem, start, most)), axis=1)  # (clients, steps + 1, 2)
        squares = 0.5 * (residuals @ vectors) ** 2
        gaps.append(np.sum(squares / curvature, axis=-1))
        bounds.append(np.sum(squares / curvature[..., :1], axis=-1))
    return Watched(np.stack(gaps), np.stack(bounds))


def descent(problem: LocalProblem, theta: np.ndarray, steps: int) -> Iterator[np.ndarray]:
    """Yield the residuals of all clients at the start and after every gradient step of length 1/L."""
    for _ in range(steps + 1):
        residual = problem.gradient(theta)
        yield residual
        theta = theta - per_client(1.0 / problem.L, theta) * residual
