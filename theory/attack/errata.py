"""Attacks on statements that are wrong as printed, and on what they are corrected to."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from dualopt.attack import Parameters
from theory._claims import Form
from theory.attack import afedpd, fedpd


def form(parameters: Parameters, generator: Callable[[Parameters], Any], *, printed: bool) -> Form:
    """Return either form on a case of a generator."""
    return Form(generator(parameters), printed)


BELOW_2L = [partial(afedpd.any_rho, N=N, d=d) for N, d in afedpd.SIZES]
ABOVE_2L = [partial(afedpd.large_rho, N=N, d=d) for N, d in afedpd.SIZES]
ALIKE = [partial(fedpd.alike, d=d) for d in (1, 2)]
DIFFERENT = [partial(fedpd.different, N=N, d=d, least=1.0) for N, d in fedpd.SIZES]  # L >= 1 leaves P1 out

GENERATORS = {
    "a1_range_of_rho": [partial(form, generator=generator, printed=True) for generator in BELOW_2L],
    "a1_range_of_rho:corrected": [partial(form, generator=generator, printed=False) for generator in ABOVE_2L],
    "p1_scale_of_constants": [partial(form, generator=generator, printed=True) for generator in ALIKE],
    "p1_scale_of_constants:corrected": [partial(form, generator=generator, printed=False) for generator in ALIKE],
    "p8_initial_duals": [partial(form, generator=generator, printed=True) for generator in DIFFERENT],
    "p8_initial_duals:corrected": [partial(form, generator=generator, printed=False) for generator in DIFFERENT],
}
