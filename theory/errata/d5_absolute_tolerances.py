"""D5: the tolerances (3.7) and (3.8) of the DualFL paper are absolute."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from dualopt.claims import Case, Claim, Comparison
from dualopt.objectives import Quadratic
from dualopt.solvers import Gradient
from dualopt.stopping import Gap, LinearSchedule, SublinearSchedule
from theory._claims import Expectation
from theory._instances import Instance, quadratic
from theory.dualfl._identity import ROUNDING, deviation
from theory.dualfl._methods import inexact
from theory.errata._form import Form

FACTOR = 1024.0  # a power of two: multiplication by it does not round


class Pair(NamedTuple):
    """The same run on ``f`` and on ``FACTOR f``."""

    name: str
    plain: Case
    scaled: Case


def compare(form: Form) -> Iterator[Comparison]:
    """Compare the models of both runs."""
    pair = form.case
    for n, (a, b) in enumerate(zip(pair.plain.snapshots(), pair.scaled.snapshots(), strict=True), start=1):
        yield Comparison(n, deviation(a.server.theta, b.server.theta), ROUNDING, "difference of the models")


CLAIM = Claim(
    name="d5_absolute_tolerances",
    source="DualFL (3.7), (3.8)",
    statement=r"DualFL on $cf_j$ with $c\mu$, $c\nu$ makes the same models as on $f_j$. Printed: with"
    r" $\Gamma \le \frac{1}{N\nu(n+1)^{4+\gamma}}$ or $\Gamma \le \frac1N(\frac{1-\sqrt\rho}{1+\gamma})^n$."
    r" Corrected: with a factor that scales like $c^2$ in the first, like $c$ in the second.",
    compare=compare,
    rounding=0.0,
)


def cases(quick: bool) -> Iterator[Expectation]:
    """Either schedule, on quadratics and 1024 times them."""
    f, big = quadratic(), _times(quadratic(), FACTOR)
    rho = f.mu / f.L
    for name, power in (("(3.7)", 2), ("(3.8)", 1)):
        for printed in (True, False):
            scales = (1.0, 1.0 if printed else FACTOR**power)
            runs = []
            for instance, scale in zip((f, big), scales, strict=True):
                sublinear = SublinearSchedule(nu=instance.mu, scale=scale)
                schedule = sublinear if name == "(3.7)" else LinearSchedule(rho=rho, scale=scale)
                method = inexact(instance, Gap(schedule=schedule), rho=rho, solver=Gradient())
                runs.append(instance.case(method, 20))
            yield Expectation(Form(Pair(name, *runs), printed), "violated" if printed else "holds")


def _times(instance: Instance, factor: float) -> Instance:
    f = instance.objective
    objective = Quadratic(A=factor * f.A, b=factor * f.b, c=factor * f.c)
    return replace(instance, objective=objective, subgradients=factor * instance.subgradients)
