"""Appendix A of the first version: A4 holds for logistic losses, with G from the data."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

import numpy as np

from dualopt.claims import Inequality, claim
from dualopt.data import load
from dualopt.losses import Logistic
from dualopt.objectives import LinearModel, linear_model
from theory._claims import ExpectedVerdict
from theory.fedpd._dissimilarity import logistic_bound, logistic_bound_v1
from theory.fedpd._instances import logistic


class Rows(NamedTuple):
    """Logistic losses and how many directions to look in."""

    name: str
    objective: LinearModel
    directions: int


def logistic_dissimilarity_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Synthetic and real rows; and rows for which the bound is attained at infinity."""
    directions = 100 if quick else 2000
    yield ExpectedVerdict(Rows("logistic", logistic(), directions))
    opposed = linear_model(
        np.array([[1.0], [1.0], [3.0]]),
        np.array([1.0, 1.0, -1.0]),
        loss=Logistic(),
        mu=0.0,
        clients=[[0, 1], [2]],
        intercept=False,
    )
    yield ExpectedVerdict(Rows("opposed labels", opposed, 4))
    data = load("breast_cancer")
    y = np.where(data.y == np.max(data.y), 1.0, -1.0)
    order = np.argsort(y, kind="stable")
    yield ExpectedVerdict(
        Rows(
            "breast_cancer by label",
            linear_model(data.X[order], y[order], loss=Logistic(), mu=0.01, clients=4),
            directions,
        )
    )


@claim(
    name="fedpd_logistic_dissimilarity",
    source="Zhang et al., first version, Appendix A",
    statement=r"For logistic losses $\sum_i w_i\log(1+e^{-y_i\langle x_i,\theta\rangle})$, clients $X_j$, $W_j$, and"
    r" all $\theta$: $|\nabla f_i - \nabla f_j| \le G = \max_{i,j}|\nabla f_i(0) - \nabla f_j(0)| + r_i + r_j \le"
    r" \max_{i \ne j} 2r_i + 2r_j$, $r_j = \frac12\|X_j^\top W_j^{1/2}\|\,|W_j^{1/2}1|$.",
    rounding=0.0,
    cases=logistic_dissimilarity_cases,
)
def logistic_dissimilarity(rows: Rows) -> Iterator[Inequality]:
    """Compare the largest difference of two gradients, along rays from near zero to almost infinity."""
    f = rows.objective
    bound, plain = logistic_bound(f), logistic_bound_v1(f)
    rng = np.random.default_rng(0)
    for k in range(rows.directions):
        direction = rng.standard_normal(f.shape)
        direction = direction / np.linalg.norm(direction)
        for length in (0.0, 0.3, 3.0, 1e4):
            gradients = f.gradient(length * direction)
            measured = max(float(np.linalg.norm(a - b)) for a, b in combinations(gradients, 2))
            yield Inequality(k, measured, bound, f"difference of gradients at a distance of {length:g}")
    yield Inequality(rows.directions, bound, plain, "G and the sum of two norms")
