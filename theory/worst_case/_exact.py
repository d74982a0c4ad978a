"""The exact worst case of DualFL without smoothness, as a claim on any run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from dualopt.lab.claims import Inequality, claim

__all__ = ["exact_worst_case", "largest", "promised"]

CERTIFIED = 1e-5  # of the value: how far primal and dual value of the program may differ


@cache
def largest(n: int) -> float:
    r"""Return the worst :math:`|\theta^n - \theta^*|^2` where :math:`\sum_j|\xi_j^*|^2 = 1` and N = 2, nu = 1.

    Examples
    --------
    >>> round(largest(1), 6)
    0.125
    """
    from theory.worst_case.dualfl import worst_case  # CVXPY takes a second to be imported

    return worst_case(n).value


def promised(n: int) -> float:
    """Return the bound of Theorem 3.2 in the same unit."""
    return 2.0 / (n + 1) ** 2


@claim(
    source="Taylor, Hendrickx and Glineur 2017, on DualFL",
    statement=r"$|\theta^n - \theta^*|^2/|\xi^*|^2$ is at most the value of the semidefinite program, and that at most"
    r" the bound of Theorem 3.2.",
    rtol=CERTIFIED,
)
def exact_worst_case(errors: Sequence[float]) -> Iterator[Inequality]:
    """Compare errors of rounds 1, 2, ..., in the unit of the theorem, with the worst ones, and those with it."""
    for n, error in enumerate(errors, start=1):
        yield Inequality(n, error, largest(n), "error")
        yield Inequality(n, largest(n), promised(n), "worst case")
