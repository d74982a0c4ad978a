"""Objectives of ours keep the contract of objectives, ``dualopt/lab/contracts/test_objectives.py``."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dualopt.lab.contracts.test_objectives import (
    test_clients_are_selected,
    test_gradient_is_the_derivative,
    test_mu_and_L_are_constants_of_convexity_and_smoothness,
    test_one_point_for_all_is_that_point_for_each,
    test_value_and_gradient_are_the_two,
    test_what_is_offered_is_there,
    test_what_it_is_handed_stays_as_it_was,
)
from dualopt.losses import Logistic, Multinomial
from dualopt.objectives import Composite, NonconvexPenalty, linear_model, reweighted
from dualopt.regularisers import L1
from tests.problems import logistic, quadratic

__all__ = [
    "test_clients_are_selected",
    "test_gradient_is_the_derivative",
    "test_mu_and_L_are_constants_of_convexity_and_smoothness",
    "test_one_point_for_all_is_that_point_for_each",
    "test_value_and_gradient_are_the_two",
    "test_what_is_offered_is_there",
    "test_what_it_is_handed_stays_as_it_was",
]

RNG = np.random.default_rng(0)
ROWS, LABELS = RNG.standard_normal((60, 3)), RNG.integers(0, 3, 60)
UNEQUAL = [range(5), range(5, 20), range(20, 60)]
WEIGHTED = linear_model(
    ROWS, np.sign(ROWS[:, 0]), loss=Logistic(), mu=0.1, clients=UNEQUAL, client_weights=[1.0, 5.0, 2.0]
)
OBJECTIVES = {
    "quadratic": quadratic(),
    "quadratic with weights": replace(quadratic(), weights=(1.0, 2.0, 0.5, 3.0, 1.0)),
    "logistic": WEIGHTED,
    "multinomial": linear_model(ROWS, LABELS, loss=Multinomial(classes=3), mu=0.1, clients=UNEQUAL),
    "penalised": NonconvexPenalty(objective=WEIGHTED, lam=0.3),
    "composite": Composite(objective=logistic(rows=62), regulariser=L1(weight=0.1)),
    "reweighted": reweighted(WEIGHTED, (0.5, 2.0, 1.0)),
}
pytestmark = pytest.mark.parametrize("objective", OBJECTIVES.values(), ids=list(OBJECTIVES))
