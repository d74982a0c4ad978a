r"""A search for a problem that contradicts a claimed rate: an attack on the claim that the measured rate is as fast.

A rate is claimed up to a constant, so that what can be compared on one problem is the rate that
:mod:`dualopt.lab.verification.verdict` measures there. It makes a :class:`Claim` of it: the claimed decrease of an
error, :math:`-\log q` of :math:`q^n` or :math:`p` of :math:`n^{-p}`, is at most the measured one, a tenth allowed,
since a search finds the worst of many estimates. :func:`dualopt.lab.attack.attack` searches for a case that violates
it, and what it finds is judged like any other instance, with seeds that the search has not seen.

For a linear rate the cases are quadratics of four clients of two kinds, with curvatures between 1 and 30. For a
sublinear one they are flat quadratics whose mean is that of :func:`sublinear_instances`: with another spectrum the
constant in front could hide the rate for more rounds than a run has. Clients differ in curvatures and in pulls.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from dualopt.lab.attack import Attack, Parameters, attack
from dualopt.lab.claims import Claim, Inequality
from dualopt.lab.rates import Factor, Order
from dualopt.lab.verification.claimed_rate import ClaimedRate, Speed
from dualopt.lab.verification.instances import CLIENTS, Instance, flat
from dualopt.lab.verification.verdict import CONTRADICTED, UNDECIDED, Build, Finding, examine
from dualopt.methods import Algorithm
from dualopt.methods.participation import Full, Participation
from dualopt.objectives import Quadratic

__all__ = ["ALLOWED", "flat_quadratics", "in_words", "program", "search", "two_kinds"]

ALLOWED = 1.1
KAPPA = 30.0


def two_kinds(parameters: Parameters) -> Instance | None:
    """Make quadratics of two variables and four clients, two and two alike; None where the solution is the start.

    Examples
    --------
    >>> found = two_kinds(Parameters(np.zeros(10) + 1.0))
    >>> found.objective.n_clients, found.objective.shape, found.values()["kappa"] <= KAPPA
    (4, (2,), True)
    """
    A, b = [], []
    for _ in range(2):
        A.append(parameters.symmetric([parameters.magnitude(1.0, KAPPA) for _ in range(2)]))
        b.append(parameters.reals(2))
    pairs = [0, 0, 1, 1]
    f = Quadratic(A=np.stack(A)[pairs], b=np.stack(b)[pairs])
    return _instance(f, "distance", f.minimiser())


def flat_quadratics(parameters: Parameters) -> Instance | None:
    """Make flat quadratics that clients share unevenly, in four numbers.

    Examples
    --------
    >>> flat_quadratics(Parameters(np.zeros(4))).measure
    'energy'
    """
    spread, pull = parameters.between(0.0, 0.95), parameters.magnitude(0.01, 100.0)
    f = flat(spread, pull=pull, angles=(parameters.between(0.0, math.pi), parameters.between(0.0, math.pi)))
    return _instance(f, "energy", np.append(np.ones(f.shape[0] - 1), 0.0))


def search(
    build: Algorithm | Build,
    rate: ClaimedRate,
    *,
    evaluations: int,
    participation: Participation | None = None,
    seeds: int = 1,
    rounds: int = 5000,
    confidence: float = 0.95,
) -> tuple[Attack, Finding | None]:
    """Search for a problem on which a rate is contradicted.

    Parameters
    ----------
    build, rate, participation, seeds, rounds, confidence
        As :func:`dualopt.lab.verification.verdict.verify` takes them.
    evaluations : int
        How many problems to look at.

    Returns
    -------
    Attack
        What the search has found: ``point`` makes the worst problem with the generator of the rate.
    Finding or None
        The judgement of a violation with seeds that the search has not seen; None where nothing violates the claim.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> from dualopt import GradientDescent
    >>> from dualopt.lab.verification.claimed_rate import parse_rate
    >>> attack, finding = search(GradientDescent(), parse_rate("(1-1/kappa^0.2)^n"), evaluations=2)
    >>> attack.violated, finding.verdict
    (True, 'contradicted')
    """
    generator, participation = _generator_of(rate), participation or Full()

    def examined(instance: Instance, first: int) -> Finding:
        return examine(build, rate, instance, participation, range(first, first + seeds), rounds, confidence)

    def compare(instance: Instance) -> Iterator[Inequality]:
        finding = examined(instance, 0)
        if finding.verdict != UNDECIDED and finding.claimed is not None:
            yield Inequality(len(finding.errors) - 1, _decrease(finding.claimed), ALLOWED * _measured(finding))

    claim = Claim(name="rate", source="the user", statement=rate.text, compare=compare)
    found = attack(claim, generator, evaluations=evaluations)
    if not found.violated:
        return found, None
    worst = generator(Parameters(found.point))
    assert worst is not None
    return found, examined(worst, seeds)


def program(found: Attack, rate: ClaimedRate, about: str) -> str:
    """Return a file with the worst problem, which is an instance of one's own; ``about`` says what it contradicts.

    Examples
    --------
    >>> from dualopt.lab.verification.claimed_rate import parse_rate
    >>> print(program(Attack(claim="rate", point=(1.5, 0.0)), parse_rate("1/n"), "gradient descent is not in 1/n"))
    # A problem on which gradient descent is not in 1/n.
    from dualopt.lab.attack import Parameters
    from dualopt.lab.verification.search import flat_quadratics
    <BLANKLINE>
    <BLANKLINE>
    def counterexample():
        return flat_quadratics(Parameters([1.5, 0.0]))
    <BLANKLINE>
    """
    name = _generator_of(rate).__name__
    return f"""# A problem on which {about}.
from dualopt.lab.attack import Parameters
from dualopt.lab.verification.search import {name}


def counterexample():
    return {name}(Parameters({list(found.point)}))
"""


def in_words(found: Attack) -> str:
    """Say what a search has found, or how near it came.

    Examples
    --------
    >>> in_words(Attack(claim="rate", evaluations=7))
    'None of 7 problems that the search has looked at could tell.'
    """
    among = f"{found.evaluations} problems that the search has looked at"
    if found.violated:
        return f"The worst of {among} is the last row."
    if not found.ratio:
        return f"None of {among} could tell."
    share = found.ratio * ALLOWED
    return f"None of {among} contradicts the rate: the claimed decrease is at most {share:.2g} of the measured one."


def _generator_of(rate: ClaimedRate) -> Any:
    """Return what makes the problems of a search."""
    return two_kinds if rate.is_linear() else flat_quadratics


def _instance(f: Quadratic, measure: str, theta: Any) -> Instance | None:
    found = Instance(name=f"found by the search, {CLIENTS} clients", objective=f, theta=theta, measure=measure)
    return found if found.error(f.zeros()) > 0 else None


def _decrease(speed: Speed) -> float:
    return -math.log(speed.value) if speed.law == "linear" else speed.value


def _measured(finding: Finding) -> float:
    """Return the largest decrease that the interval of the estimate admits; 0 where errors stay or grow."""
    estimate = finding.estimate
    if finding.verdict == CONTRADICTED and (estimate is None or finding.floor is not None):
        return 0.0
    if isinstance(estimate, Factor):
        return -math.log(estimate.low) if estimate.low > 0 else math.inf
    return estimate.high if isinstance(estimate, Order) else math.inf
