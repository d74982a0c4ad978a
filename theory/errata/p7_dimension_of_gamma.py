"""P7: the condition on gamma in Theorem 2 of the FedPD paper."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from dualopt.algorithms import FedPD
from dualopt.claims import Inequality
from dualopt.losses import Logistic
from dualopt.objectives import LinearModel, linear_model
from theory._claims import ExpectedVerdict, Form
from theory.fedpd._run import Run
from theory.fedpd.fedpd_theorem_2 import length_limit, oracle_2, theorem_2

FACTOR = 1024.0  # a power of two: multiplication by it does not round


class Pair(NamedTuple):
    """The same run of Oracle II on ``f`` and, with steps divided by ``FACTOR``, on ``FACTOR f``."""

    name: str
    plain: Run
    scaled: Run


def p7_dimension_of_gamma_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Logistic losses, and 1024 times them."""
    plain = oracle_2("logistic", _rows(1.0), np.ones(2), steps=2, rounds=10)
    method = plain.algorithm
    for printed in (True, False):
        scaled = plain.but(objective=_rows(FACTOR), algorithm=_divided(method))
        yield ExpectedVerdict(Form(Pair("f and 1024 f", plain, scaled), printed), "violated" if printed else "holds")


@theorem_2.as_printed(
    source="FedPD Theorem 2",
    statement=r"FedPD with Oracle II makes the same models from $cf_j$ with $\eta/c$, $\gamma/c$ as from $f_j$ with"
    r" $\eta$, $\gamma$, so that a condition must admit both or neither. Printed: $\gamma > \frac{5\eta}{B\sqrt L}$."
    r" Corrected: a multiple of $\eta$ by a function of $L\eta$, B, Q and I, such as"
    r" $\gamma > \frac{5\eta}{B\sqrt{L\eta}}$.",
    rounding=0.0,
    cases=p7_dimension_of_gamma_cases,
)
def p7_dimension_of_gamma(form: Form) -> Iterator[Inequality]:
    """Compare the models of both runs, and how far the condition leaves gamma from its limit."""
    pair = form.case
    for a, b in zip(pair.plain.steps(), pair.scaled.steps(), strict=True):
        x, y = a.after.server.theta, b.after.server.theta
        yield Inequality(
            a.n, float(np.max(np.abs(x - y))), 1e-12 * float(np.max(np.abs(x))), "difference of the models"
        )
    one, other = (limit(run, form.printed) / run.algorithm.solver.gamma for run in (pair.plain, pair.scaled))
    yield Inequality(pair.plain.rounds, abs(one - other), 1e-12 * one, "difference of limit/gamma")


def limit(run: Run, printed: bool) -> float:
    """Return what gamma must exceed."""
    batch = min(run.objective.sizes)
    if printed:
        return length_limit(L=run.L, eta=run.eta, batch=batch)
    return length_limit(L=run.a, eta=run.eta, batch=batch)


def _divided(method: Any) -> FedPD:
    solver = replace(method.solver, gamma=method.solver.gamma / FACTOR)
    return replace(method, eta=method.eta / FACTOR, solver=solver)


def _rows(factor: float) -> LinearModel:
    rng = np.random.default_rng(4)
    X, y = rng.standard_normal((12, 2)), np.sign(rng.standard_normal(12))
    weights = np.full(12, factor / 4.0)
    return linear_model(X, y, loss=Logistic(), mu=0.0, clients=3, weights=weights, intercept=False)
