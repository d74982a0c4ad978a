"""Attacks on contractions of other methods: their constants are the best ones, so that the search must come close."""

from __future__ import annotations

from functools import partial

from dualopt.lab.attack import Parameters
from theory._cases import Case
from theory.attack._quadratics import convex
from theory.baselines.contraction import fedsplit_case, fivegcs_case, scaffnew_case

SIZES = ((2, 1), (2, 2), (3, 2))  # clients, dimensions


def fedsplit(parameters: Parameters, N: int, d: int) -> Case:
    """Return FedSplit with its best step."""
    return _one_round(fedsplit_case(_clients(parameters, N, d)))


def scaffnew(parameters: Parameters, N: int, d: int) -> Case:
    """Return Scaffnew with any step below 2/L and any probability."""
    f = _clients(parameters, N, d)
    return _one_round(scaffnew_case(f, parameters.magnitude(0.1, 1.99), parameters.magnitude(0.03, 1.0)))


def fivegcs(parameters: Parameters, N: int, d: int, *, active: int) -> Case:
    """Return 5GCS with any steps that it admits."""
    f = _clients(parameters, N, d)
    gamma = parameters.magnitude(1e-3, 1e1)
    return _one_round(fivegcs_case(f, active, gamma=gamma, product=parameters.magnitude(1e-2, 1.0)))


def _clients(parameters: Parameters, N: int, d: int) -> Case:
    """Return clients of any condition number from 2 on: at 1 methods solve the problem in a round."""
    return convex(parameters, N, d, kappa=parameters.magnitude(2.0, 1e3), attained=True)


def _one_round(case: Case) -> Case:
    return case.but(rounds=1)  # all that follows is in the worst growth


GENERATORS = {
    "fedsplit_contraction": [partial(fedsplit, N=N, d=d) for N, d in SIZES],
    "scaffnew_one_step": [partial(scaffnew, N=N, d=d) for N, d in SIZES],
    "fivegcs_one_step": [partial(fivegcs, N=2, d=1, active=1), partial(fivegcs, N=3, d=2, active=2)],
}
