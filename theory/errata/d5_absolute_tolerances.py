"""D5: the tolerances (3.7) and (3.8) of the DualFL paper are absolute."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from dualopt.claims import Case, Inequality
from dualopt.objectives import Quadratic
from dualopt.solvers import Gradient
from dualopt.stopping import Gap, LinearSchedule, SublinearSchedule
from theory._claims import ROUNDING, ExpectedVerdict, Form, deviation
from theory._problems import Instance, quadratic
from theory.dualfl._methods import inexact
from theory.dualfl.theorem_3_2_inexact import theorem_3_2_inexact

FACTOR = 1024.0  # a power of two: multiplication by it does not round


class Pair(NamedTuple):
    """The same run on ``f`` and on ``FACTOR f``."""

    name: str
    plain: Case
    scaled: Case


def d5_absolute_tolerances_cases(quick: bool) -> Iterator[ExpectedVerdict]:
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
            yield ExpectedVerdict(Form(Pair(name, *runs), printed), "violated" if printed else "holds")


@theorem_3_2_inexact.as_printed(
    source="DualFL (3.7), (3.8)",
    statement=r"DualFL on $cf_j$ with $c\mu$, $c\nu$ makes the same models as on $f_j$. Printed: with"
    r" $\Gamma \le \frac{1}{N\nu(n+1)^{4+\gamma}}$ or $\Gamma \le \frac1N(\frac{1-\sqrt\rho}{1+\gamma})^n$."
    r" Corrected: with a factor that scales like $c^2$ in the first, like $c$ in the second.",
    rounding=0.0,
    cases=d5_absolute_tolerances_cases,
)
def d5_absolute_tolerances(form: Form) -> Iterator[Inequality]:
    """Compare the models of both runs."""
    pair = form.case
    for n, (a, b) in enumerate(zip(pair.plain.snapshots(), pair.scaled.snapshots(), strict=True), start=1):
        yield Inequality(n, deviation(a.server.theta, b.server.theta), ROUNDING, "difference of the models")


def _times(instance: Instance, factor: float) -> Instance:
    f = instance.objective
    objective = Quadratic(A=factor * f.A, b=factor * f.b, c=factor * f.c)
    return replace(instance, objective=objective, subgradients=factor * instance.subgradients)
