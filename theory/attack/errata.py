"""Attacks on statements that are wrong as printed, and on what they are corrected to."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from dualopt.attack import Numbers
from theory.attack import afedpd, fedpd
from theory.errata._form import Form


def form(numbers: Numbers, family: Callable[[Numbers], Any], *, printed: bool) -> Form:
    """Return either form on a case of a family."""
    return Form(family(numbers), printed)


BELOW_2L = [partial(afedpd.any_rho, N=N, d=d) for N, d in afedpd.SIZES]
ABOVE_2L = [partial(afedpd.large_rho, N=N, d=d) for N, d in afedpd.SIZES]
ALIKE = [partial(fedpd.alike, d=d) for d in (1, 2)]
DIFFERENT = [partial(fedpd.different, N=N, d=d, least=1.0) for N, d in fedpd.SIZES]  # L >= 1 leaves P1 out

FAMILIES = {
    "a1_range_of_rho": [partial(form, family=family, printed=True) for family in BELOW_2L],
    "a1_range_of_rho:corrected": [partial(form, family=family, printed=False) for family in ABOVE_2L],
    "p1_scale_of_constants": [partial(form, family=family, printed=True) for family in ALIKE],
    "p1_scale_of_constants:corrected": [partial(form, family=family, printed=False) for family in ALIKE],
    "p8_initial_duals": [partial(form, family=family, printed=True) for family in DIFFERENT],
    "p8_initial_duals:corrected": [partial(form, family=family, printed=False) for family in DIFFERENT],
}
