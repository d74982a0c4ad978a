"""On a chain a round of communication gains one coordinate, whatever the clients compute in between."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dualopt.claims import Case, Inequality, claim
from theory._claims import ExpectedVerdict
from theory.lower_bounds._convex_chain import geometric, level, squares
from theory.lower_bounds._convex_methods import runs


def convex_span_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Every method, on squares with and without strong convexity and on absolute values; many clients."""
    instances = [geometric(100.0, 40, pairs=1 if quick else 4), level(20)]
    if not quick:
        instances.append(squares(30))
    for instance in instances:
        for case in runs(instance, 15 if quick else 25):
            yield ExpectedVerdict(case)


@claim(
    source="Arjevani and Shamir 2015 (recalled), derived in theory/lower_bounds/_convex_chain.py",
    statement=r"A method that starts at zero and whose clients compute linear combinations, (sub)gradients and"
    r" minimisers of $f_j + \langle a, \cdot\rangle + \frac\rho2|\cdot - b|^2$ as often as they like has"
    r" $\theta^n_k = 0$ for $k > n$ after n communications, on a chain whose links alternate between"
    r" two groups of clients.",
    rounding=0.0,
    cases=convex_span_cases,
)
def convex_span(case: Case) -> Iterator[Inequality]:
    """Compare the last coordinate of the server's model that is not zero with the number of communications."""
    for n, s in enumerate(case.snapshots(), start=1):
        reached = np.flatnonzero(s.server.theta)
        yield Inequality(n, float(reached[-1] + 1) if reached.size else 0.0, n, "last coordinate that is not zero")
