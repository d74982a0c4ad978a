"""A method against its claimed rate: runs on every instance, estimates with intervals, and a verdict."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from dualopt.arrays._checks import require, require_at_least
from dualopt.engine.rounds import iterate
from dualopt.lab.rates import (
    Factor,
    Order,
    assert_linear_rate,
    assert_sublinear_rate,
    estimate_factor,
    estimate_order,
    student_quantile,
)
from dualopt.lab.verification.claimed_rate import ClaimedRate, Speed
from dualopt.lab.verification.floor import Floor, floor
from dualopt.lab.verification.instances import Instance, linear_instances, sublinear_instances
from dualopt.lab.verification.own import as_instance
from dualopt.methods import Algorithm
from dualopt.methods.participation import Full, Participation
from dualopt.objectives import Objective
from dualopt.runs.divergence import diverges

__all__ = ["CONTRADICTED", "HOLDS", "UNDECIDED", "Finding", "Report", "examine", "verify"]

HOLDS = "holds"
CONTRADICTED = "contradicted"
UNDECIDED = "undecided"

ROUNDING = 1e-12  # errors at most this share of the first one are rounding, as in dualopt.lab.rates
FALL = 1e-8  # a linear rate is followed until it has fallen so far,
LEAST_FALL = 1e-3  # and decides nothing before it has fallen so far: a constant in front could hide less
SUBLINEAR_ROUNDS = 300
LEAST_ROUNDS = 60  # of a run
SLOWEST = {"linear": 1.0 - 1e-12, "sublinear": 1e-12}
RELATIVE = {"distance": "relative squared distance", "energy": "relative E - E*"}

Build = Callable[[Objective, Participation], Algorithm]


@dataclass(frozen=True, kw_only=True, eq=False)
class Finding:
    """What one instance says of a claim.

    Attributes
    ----------
    instance : Instance
        The problem.
    verdict : str
        ``holds`` (not contradicted), ``contradicted`` or ``undecided``.
    reason : str
        Why, in words; empty where it holds.
    claimed : Speed or None
        The claimed rate there, with numbers for its constants.
    estimate : Factor, Order or None
        What was measured, with its interval; None where errors are down to rounding too soon, or there are none.
    errors : array
        Mean over the seeds by round, the start first.
    logs : array
        Logarithms of the claimed rate by round, NaN at the start.
    floor : Floor or None
        Where the errors stay, if they do, such as those of a biased method.
    """

    instance: Instance
    verdict: str
    reason: str = ""
    claimed: Speed | None = None
    estimate: Factor | Order | None = None
    errors: Sequence[float] = ()
    logs: Sequence[float] = ()
    floor: Floor | None = None


@dataclass(frozen=True, kw_only=True)
class Report:
    """What all instances say of a claim."""

    rate: ClaimedRate
    findings: tuple[Finding, ...]

    @property
    def verdict(self) -> str:
        """``contradicted`` if one instance contradicts, else ``holds`` if one holds, else ``undecided``."""
        verdicts = [finding.verdict for finding in self.findings]
        return next((v for v in (CONTRADICTED, HOLDS) if v in verdicts), UNDECIDED)

    @property
    def exponent(self) -> tuple[float, float, float] | None:
        r"""How the rounds per digit grow with ``kappa`` on the chains: ``a`` of :math:`\kappa^a`, with an interval.

        Its ends follow from those of the intervals on the chains of the least and the greatest ``kappa``.
        """
        known = [
            (math.log(f.instance.values()["kappa"]), f.estimate)
            for f in self.findings
            if f.instance.is_chain and isinstance(f.estimate, Factor) and f.estimate.low > 0 and f.estimate.high < 1
        ]
        if len(known) < 2:
            return None
        (x, first), (y, last) = known[0], known[-1]

        def slope(of_first: float, of_last: float) -> float:
            return math.log(math.log(of_first) / math.log(of_last)) / (y - x)

        return slope(first.value, last.value), slope(first.high, last.low), slope(first.low, last.high)


def verify(
    build: Algorithm | Build,
    rate: ClaimedRate,
    *,
    participation: Participation | None = None,
    seeds: int = 1,
    rounds: int = 5000,
    confidence: float = 0.95,
    reference: str = "newton",
    instances: Iterable[Instance] | None = None,
    own: Iterable[Instance | Objective] = (),
    progress: Callable[[str], Any] | None = None,
) -> Report:
    r"""Put a claimed rate to the test.

    The claim is :math:`e_n \le C\,r(n)` for some ``C``. It is contradicted on an instance if the errors fall more
    slowly than ``r`` with confidence, as :mod:`dualopt.lab.rates` judges, if they stall above rounding, as
    :mod:`dualopt.lab.verification.floor` judges, or if they grow without bound, as :mod:`dualopt.runs.divergence` does.
    Where they rise at first and fall then, ``C`` covers the rise, and rates are estimated from the largest error on.
    That it holds means that it is not contradicted on these instances in these rounds; it is no proof.

    Parameters
    ----------
    build : Algorithm or callable
        The method; parameters left open are suggested for every instance. A callable makes it from the objective and
        the participation.
    rate : ClaimedRate
        The claim.
    participation : Participation, optional
        Who takes part; everybody when not given.
    seeds : int, default 1
        Errors are the mean over so many runs.
    rounds : int, default 5000
        Largest number of rounds.
    confidence : float, default 0.95
        Of the one-sided bound that must be on the wrong side of the claim.
    reference : str, default "newton"
        What solves logistic regression, ``newton`` or ``cvxpy``.
    instances : iterable of Instance, optional
        Those for linear, or for sublinear, rates when not given.
    own : iterable of Instance or Objective
        Problems of one's own, besides; the minimiser of an objective is found first (:func:`as_instance`).
    progress : callable, optional
        Called with the name of each instance before it is run.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> from dualopt import GradientDescent
    >>> from dualopt.lab.verification.claimed_rate import parse_rate
    >>> few = list(linear_instances())[:1]
    >>> verify(GradientDescent(), parse_rate("(1-1/kappa)^n"), instances=few).verdict
    'holds'
    >>> verify(GradientDescent(), parse_rate("(1-1/sqrt(kappa))^n"), instances=few).verdict
    'contradicted'
    """
    require_at_least(1, seeds=seeds)
    require(rounds >= LEAST_ROUNDS, f"rounds must be at least {LEAST_ROUNDS}", rounds)
    require(0.5 < confidence < 1, "confidence must lie in (0.5, 1)", confidence)
    if instances is None:
        instances = linear_instances(reference) if rate.is_linear() else sublinear_instances()
    participation = participation or Full()
    findings = []
    for instance in [*instances, *map(as_instance, own)]:
        if progress is not None:
            progress(instance.name)
        findings.append(examine(build, rate, instance, participation, range(seeds), rounds, confidence))
    return Report(rate=rate, findings=tuple(findings))


def examine(
    build: Algorithm | Build,
    rate: ClaimedRate,
    instance: Instance,
    participation: Participation,
    seeds: Iterable[int],
    rounds: int,
    confidence: float,
) -> Finding:
    """Return what one instance says of a claim, by runs with these seeds; the arguments are those of :func:`verify`."""
    values = instance.values(participation.law(instance.objective.n_clients).fraction)
    try:
        claimed = rate.speed(values)
        algorithm = build(instance.objective, participation) if callable(build) else build
        n = _length(claimed, rounds)
        runs = np.stack([_errors(algorithm, instance, participation, seed, n) for seed in seeds])
    except ValueError as error:
        return Finding(instance=instance, verdict=UNDECIDED, reason=f"not run: {error}")
    errors, rounding = runs.mean(axis=0), _rounding(instance, runs)
    logs = [math.nan, *(rate.log(k, values) for k in range(1, len(errors)))]
    found = {"instance": instance, "claimed": claimed, "errors": errors, "logs": logs}
    if not np.isfinite(errors).all() or diverges(list(errors / errors[0]), LEAST_ROUNDS):
        return Finding(verdict=CONTRADICTED, reason="the errors grow without bound", **found)
    linear, start = claimed.law == "linear", _fall(errors, rounding)
    try:
        found["estimate"] = _estimate(runs, claimed.law, confidence, start, rounding)
        # 2c - 1 between two sides leaves 1 - c on each, as dualopt.lab.rates has it
        bound = _estimate(runs, claimed.law, 2.0 * confidence - 1.0, start, rounding)
    except ValueError:  # few rounds above rounding
        bound = None
    if bound is not None and (bound.low > claimed.value if linear else bound.high < claimed.value):
        return _contradicted("slower than claimed", runs, rounding, found)
    test = assert_linear_rate if linear else assert_sublinear_rate
    # What is left to test is whether errors fall at all, or where there is no estimate whether they are down in time.
    weakest = claimed.value if bound is None else SLOWEST[claimed.law]
    try:
        test(errors, weakest, confidence=confidence, start=start, rounding=rounding)
    except AssertionError as error:
        return _contradicted(str(error), runs, rounding, found)
    except ValueError as error:
        return Finding(verdict=UNDECIDED, reason=str(error), **found)
    return Finding(verdict=HOLDS, **found)


def _rounding(instance: Instance, runs: np.ndarray) -> float:
    """Return the share of the first error below which errors are rounding, or the minimiser is not known."""
    return max(ROUNDING, instance.resolution / runs[0, 0])


def _contradicted(reason: str, runs: np.ndarray, rounding: float, found: dict[str, Any]) -> Finding:
    """Return a contradiction; it says so where errors stay above rounding: in the mean, and without any one run."""
    S, errors = len(runs), found["errors"]
    stays = floor(errors)
    if stays is not None and S > 1 and not all(floor((runs.sum(axis=0) - run) / (S - 1)) for run in runs):
        stays = None
    if stays is not None and stays.level > rounding * errors[0]:
        share, words = stays.level / errors[0], RELATIVE[found["instance"].measure]
        reason = f"stalls at a floor of {share:.2g} ({words}) from round {stays.start} on"
        return Finding(verdict=CONTRADICTED, reason=reason, floor=stays, **found)
    return Finding(verdict=CONTRADICTED, reason=reason, **found)


def _fall(errors: np.ndarray, rounding: float) -> int | None:
    """Return from which round on errors fall, where they rise so long that estimates would begin before."""
    small = np.flatnonzero(errors <= rounding * errors[0])
    end = int(small[0]) if small.size else errors.size
    largest = int(np.argmax(errors))
    return largest if end // 10 < largest < end // 2 else None


def _estimate(
    runs: np.ndarray, law: str, confidence: float, start: int | None = None, rounding: float = ROUNDING
) -> Factor | Order:
    """Estimate the factor or the order of the mean over the runs.

    The fluctuations of a random run last for many rounds, which the interval of a single sequence does not see. It is
    widened by how much the estimate depends on single runs: the jackknife leaves out one after the other.
    """
    estimate = estimate_factor if law == "linear" else estimate_order
    whole = estimate(runs.mean(axis=0), confidence=confidence, start=start, rounding=rounding)
    S = len(runs)
    if S == 1:
        return whole
    means = (runs.sum(axis=0) - runs) / (S - 1)
    values = [estimate(mean, confidence=confidence, start=start, rounding=rounding).value for mean in means]
    x = np.log(values) if law == "linear" else np.asarray(values)
    half = math.sqrt((S - 1) ** 2 / S * np.var(x, ddof=1)) * student_quantile((1.0 + confidence) / 2.0, S - 1)
    if law == "linear":
        return whole._replace(low=whole.low * math.exp(-half), high=whole.high * math.exp(half))
    return whole._replace(low=whole.low - half, high=whole.high + half)


def _length(claimed: Speed, rounds: int) -> int:
    """Return for how many rounds a run goes."""
    if claimed.law == "sublinear":
        return min(rounds, SUBLINEAR_ROUNDS)
    needed = math.ceil(math.log(LEAST_FALL) / math.log(claimed.value))
    if rounds < needed:
        raise ValueError(f"a rate of {claimed.value:.6g} per round takes at least {needed} rounds to be told.")
    return min(rounds, max(LEAST_ROUNDS, math.ceil(math.log(FALL) / math.log(claimed.value))))


def _errors(algorithm: Algorithm, instance: Instance, participation: Participation, seed: int, rounds: int) -> Any:
    """Return the errors of the start and every round; NaN from where they overflow, rounding where they end in it."""
    f = instance.objective
    found = [instance.error(f.zeros())]
    with np.errstate(all="ignore"):
        for snapshot in islice(iterate(algorithm, f, participation=participation, seed=seed), rounds):
            error = instance.error(snapshot.server.theta)
            if not math.isfinite(error):
                return np.append(found, np.full(rounds + 1 - len(found), math.nan))
            found.append(error)
            if max(found[-5:]) <= 0.1 * ROUNDING * found[0]:
                break
    return np.append(found, np.full(rounds + 1 - len(found), found[-1]))
