"""Section 4: a problem without strong convexity, run with a ridge (4.1) of weight alpha = nu."""

from __future__ import annotations

from dualopt.claims import Case
from theory._problems import Instance, regularised, solved
from theory.dualfl._methods import exact

__all__ = ["plain_case", "with_ridge"]


def plain_case(instance: Instance, alpha: float, rounds: int, *, accelerated: bool) -> Case:
    """Return the case of a plain problem, with DualFL set up for its regularisation.

    ``rho`` is ``alpha/(L + alpha)`` as in Theorem 4.2 or, not accelerated, 0 as in Theorem 4.1.
    """
    ridge = solved("", regularised(instance.objective, alpha))
    method = exact(ridge, nu=alpha, rho=alpha / (instance.L + alpha) if accelerated else 0.0)
    return instance.case(method, rounds, f"alpha = {alpha:.3g}")


def with_ridge(case: Case) -> Case:
    r"""Return the case of the regularised problem: ``theta`` is :math:`\theta^\alpha` there."""
    alpha = case.algorithm.nu
    found = solved(case.name, regularised(case.objective, alpha))
    return found.case(case.algorithm, case.rounds)
