"""Attacks on statements that are wrong as printed, and on what they are corrected to."""

from __future__ import annotations

from functools import partial

from theory.attack import afedpd
from theory.attack._forms import form

BELOW_2L = [partial(afedpd.any_rho, N=N, d=d) for N, d in afedpd.SIZES]
ABOVE_2L = [partial(afedpd.large_rho, N=N, d=d) for N, d in afedpd.SIZES]

GENERATORS = {
    "a1_range_of_rho": [partial(form, generator=generator, printed=True) for generator in BELOW_2L],
    "a1_range_of_rho:corrected": [partial(form, generator=generator, printed=False) for generator in ABOVE_2L],
}
