"""Attacks on contractions of other methods: their constants are the best ones, so that the search must come close."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from dualopt.attack import Parameters
from theory._problems import Instance
from theory.attack._quadratics import convex
from theory.compared._cases import Federation
from theory.compared.fedsplit_contraction import split
from theory.compared.fivegcs_one_step import sampled
from theory.compared.scaffnew_one_step import tossed

SIZES = ((2, 1), (2, 2), (3, 2))  # clients, dimensions


def splitting(parameters: Parameters, N: int, d: int) -> Federation:
    """Return FedSplit with its best step."""
    return _one_round(split(_clients(parameters, N, d)))


def tossing(parameters: Parameters, N: int, d: int) -> Federation:
    """Return Scaffnew with any step below 2/L and any probability."""
    f = _clients(parameters, N, d)
    return _one_round(tossed(f, parameters.magnitude(0.1, 1.99), parameters.magnitude(0.03, 1.0)))


def sampling(parameters: Parameters, N: int, d: int, *, active: int) -> Federation:
    """Return 5GCS with any steps that it admits."""
    f = _clients(parameters, N, d)
    gamma = parameters.magnitude(1e-3, 1e1)
    return _one_round(sampled(f, active, gamma=gamma, product=parameters.magnitude(1e-2, 1.0)))


def _clients(parameters: Parameters, N: int, d: int) -> Instance:
    """Return clients of any condition number from 2 on: at 1 methods solve the problem in a round."""
    return convex(parameters, N, d, kappa=parameters.magnitude(2.0, 1e3), attained=True)


def _one_round(case: Federation) -> Federation:
    return replace(case, rounds=1)  # all that follows is in the worst growth


GENERATORS = {
    "fedsplit_contraction": [partial(splitting, N=N, d=d) for N, d in SIZES],
    "scaffnew_one_step": [partial(tossing, N=N, d=d) for N, d in SIZES],
    "fivegcs_one_step": [partial(sampling, N=2, d=1, active=1), partial(sampling, N=3, d=2, active=2)],
}
