"""Verdicts on claimed rates: right ones hold, wrong ones are contradicted, and what cannot be told is said."""

from __future__ import annotations

import inspect
import math
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dualopt.lab import rates
from dualopt.lab.verification import verdict as module
from dualopt.lab.verification.claimed_rate import Speed, parse_rate
from dualopt.lab.verification.instances import linear_instances, sublinear_instances
from dualopt.lab.verification.verdict import Finding, Report, verify
from dualopt.methods import (
    DistributedLBFGS,
    DualFL,
    FedAvg,
    FedDyn,
    FedPD,
    FedSplit,
    FiveGCS,
    GradientDescent,
    OptimizedDualFL,
    SampledDualFL,
)
from dualopt.methods.participation import UniformSubset

SQRT, PLAIN, FAST = "(1-1/sqrt(kappa))^n", "(1-1/kappa)^n", "(1-1/sqrt(kappa))^(6*n)"
LINEAR, SUBLINEAR = list(linear_instances()), list(sublinear_instances())


@dataclass(frozen=True, kw_only=True)
class DualAscent(DualFL):
    """DualFL without momentum."""

    rho: float = 0.0

    def server(self, server, mean, round):
        server, message = super().server(server, mean, round)
        return server, message._replace(beta=0.0)


@dataclass(frozen=True, kw_only=True)
class Restless(GradientDescent):
    """Gradient descent with a step that is too long by half."""

    def suggested(self, objective):
        return self if self.step is not None else replace(self, step=3.0 * super().suggested(objective).step)


def judged(method, text, **options):
    rate = parse_rate(text)
    options.setdefault("instances", LINEAR if rate.is_linear() else SUBLINEAR)
    return verify(method, rate, **options)


@pytest.mark.parametrize(
    ("method", "rate", "expected"),
    [
        (DualFL(), SQRT, "holds"),
        (DualFL(), FAST, "contradicted"),
        (OptimizedDualFL(), SQRT, "holds"),
        (OptimizedDualFL(), FAST, "contradicted"),
        (FedSplit(), SQRT, "holds"),
        (FedSplit(), FAST, "contradicted"),
        (FedPD(), SQRT, "holds"),
        (FedPD(), FAST, "contradicted"),
        (DistributedLBFGS(), SQRT, "holds"),
        (DualAscent(), SQRT, "contradicted"),
        (DualAscent(), PLAIN, "holds"),
        (GradientDescent(), SQRT, "contradicted"),
        (GradientDescent(), PLAIN, "holds"),
        (GradientDescent(), "(1-4/kappa)^(3*n)", "contradicted"),
        (Restless(), PLAIN, "contradicted"),
        (DualFL(rho=0.0), "1/n^2", "holds"),
        (DualFL(rho=0.0), "1/n^2.2", "contradicted"),
        (OptimizedDualFL(rho=0.0), "1/n^2", "holds"),
        (DistributedLBFGS(), "1/n^2", "holds"),
        (DualAscent(), "1/n^2", "contradicted"),
        (DualAscent(), "1/n", "holds"),
        (GradientDescent(), "1/n^2", "contradicted"),
        (GradientDescent(), "1/n", "holds"),
        (FedPD(), "1/n^2", "contradicted"),
        (FedPD(), "1/n", "holds"),
        (FedSplit(), "1/n^2", "contradicted"),
        (FedSplit(), "1/n^1.5", "contradicted"),
        (FiveGCS(), "1/n", "undecided"),
    ],
    ids=lambda x: x if isinstance(x, str) else type(x).__name__,
)
def test_verdicts(method, rate, expected):
    assert judged(method, rate).verdict == expected


def test_a_method_that_stops_elsewhere_is_contradicted():
    assert judged(FedAvg(), PLAIN, instances=LINEAR[:2]).verdict == "contradicted"


def test_the_chains_tell_the_power_of_kappa():
    """The rounds of accelerated methods grow like its root, those of the others like kappa itself."""
    for method, expected in ((DualFL(), 0.5), (FedSplit(), 0.5), (GradientDescent(), 1.0), (DualAscent(), 1.0)):
        found = judged(method, PLAIN, instances=LINEAR[:3]).exponent
        assert found is not None
        value, low, high = found
        assert low <= value <= high
        assert abs(value - expected) < 0.2


def test_constants_in_front_change_nothing():
    for rate in ("1e-9*L/n^2", "1e9*C/n^2"):
        report = judged(DualFL(rho=0.0), rate, instances=SUBLINEAR[:1])
        assert report.verdict == "undecided" if "L" in rate else "holds"  # L is infinite on the kinked chain
    assert judged(GradientDescent(), "1e6*(1-1/kappa)^n/mu", instances=LINEAR[3:5]).verdict == "holds"


@pytest.mark.parametrize(
    ("method", "rate", "expected"),
    [
        (SampledDualFL(), "1/n^2", "holds"),
        (FedDyn(), "1/n^2", "contradicted"),
        (FedDyn(), "1/n", "holds"),
        (FedSplit(), "(1-P/(N*sqrt(kappa)))^n", "holds"),
        (FedSplit(), "(1-P/(N*sqrt(kappa)))^(20*n)", "contradicted"),
    ],
    ids=lambda x: x if isinstance(x, str) else type(x).__name__,
)
def test_verdicts_on_the_mean_where_two_of_four_clients_take_part(method, rate, expected):
    instances = LINEAR[:4] if "kappa" in rate else SUBLINEAR[:2]
    found = judged(method, rate, participation=UniformSubset(size=2), seeds=5, instances=instances)
    assert found.verdict == expected


def test_the_interval_of_a_mean_covers_what_runs_differ_by():
    """Runs whose orders differ by chance, with the mean n^-2: each is smooth, and no sequence alone tells that."""
    rng = np.random.default_rng(0)
    n, spread = np.arange(1, 301), 0.2
    missed = {"without": 0, "with": 0}
    for _ in range(100):
        deviations = spread * rng.standard_normal((20, 1)) * np.log(n / 100.0)
        mean = np.exp(0.5 * (spread * np.log(n / 100.0)) ** 2)
        runs = np.concatenate([np.full((20, 1), 2.0), n**-2.0 * np.exp(deviations) / mean], axis=1)
        for name, found in (
            ("with", module._estimate(runs, "sublinear", 0.9)),
            ("without", module._estimate(runs.mean(axis=0)[None], "sublinear", 0.9)),
        ):
            missed[name] += not found.low <= 2.0 <= found.high
    nominal = 10 + 3 * 3  # of a hundred, at confidence 0.9, and three standard deviations
    assert missed["with"] <= nominal < missed["without"]


def test_too_few_rounds_are_said():
    report = judged(GradientDescent(), PLAIN, rounds=100, instances=LINEAR[2:3])
    (finding,) = report.findings
    assert finding.verdict == "undecided"
    assert finding.reason.endswith("takes at least 1765 rounds to be told.")


@pytest.mark.parametrize("wrong", [{"seeds": 0}, {"rounds": 10}, {"confidence": 0.4}])
def test_arguments_are_checked(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        judged(GradientDescent(), PLAIN, **wrong)


def rising(peak, q=0.9, n=400):
    """Errors that grow tenfold a round at first, and then fall by a factor."""
    k = np.arange(n)
    return np.maximum(10.0 ** np.minimum(k, peak) * q ** np.maximum(k - peak, 0), 1e-30)


@pytest.mark.parametrize(
    ("errors", "rate", "verdict", "reason"),
    [
        (rising(12), "0.9^n", "holds", ""),  # beyond 1e8 of the start: the constant in front
        (rising(30), "0.9^n", "holds", ""),  # later than a tenth of the rounds
        (rising(30), "0.8^n", "contradicted", "slower than claimed"),
        (1.2 ** np.arange(400.0), "0.9^n", "contradicted", "the errors grow without bound"),
        (
            0.04 + 0.9 ** np.arange(400.0),
            "0.9^n",
            "contradicted",
            "stalls at a floor of 0.038 (relative squared distance) from round ",
        ),
        (0.97 ** np.arange(400.0), "0.9^n", "contradicted", "slower than claimed"),
        (
            np.exp(8.0 * np.sin(np.arange(400.0) / 28.0) - 0.12 * np.arange(400.0)),
            "0.9^n",
            "contradicted",
            "rounds 104 to 175 do not show convergence with confidence 0.95.",
        ),
    ],
    ids=["rises", "rises for long", "rises and is slow", "grows", "stalls", "slow", "waves"],
)
def test_what_is_found_is_said(monkeypatch, errors, rate, verdict, reason):
    monkeypatch.setattr(module, "_errors", lambda *given: errors[: given[-1] + 1])
    (finding,) = judged(GradientDescent(), rate, instances=LINEAR[:1], rounds=5000).findings
    assert (finding.verdict, finding.reason[: len(reason)]) == (verdict, reason)
    assert finding.reason == reason or reason.endswith("from round ")


@pytest.mark.parametrize("law", ["linear", "sublinear"])
def test_the_interval_is_that_of_the_jackknife(law: str) -> None:
    """The estimates without one run after the other, S = 4: their squared deviations times (S - 1)/S."""
    n, S = np.arange(1, 201.0), 4
    speeds = (0.80, 0.82, 0.83, 0.9) if law == "linear" else (1.0, 1.3, 1.4, 2.0)
    runs = np.stack([np.append(2.0, s**n if law == "linear" else n**-s) for s in speeds])
    estimate: Any = rates.estimate_factor if law == "linear" else rates.estimate_order
    found, whole = module._estimate(runs, law, 0.9), estimate(runs.mean(axis=0), confidence=0.9)
    without = [estimate(np.delete(runs, j, axis=0).mean(axis=0), confidence=0.9).value for j in range(S)]
    x = np.log(without) if law == "linear" else np.array(without)
    half = math.sqrt((S - 1) / S * np.sum((x - x.mean()) ** 2)) * 2.3534  # of Student with 3 degrees, 0.95
    ends = (np.log(whole.low), np.log(whole.high)) if law == "linear" else (whole.low, whole.high)
    got = (np.log(found.low), np.log(found.high)) if law == "linear" else (found.low, found.high)
    assert found.value == pytest.approx(whole.value, rel=1e-12)
    np.testing.assert_allclose(got, (ends[0] - half, ends[1] + half), rtol=1e-3)


def test_what_is_rounding() -> None:
    """A share of the first error: at least the 1e-12 of the estimates, more where the minimiser is not known."""
    assert inspect.signature(rates.estimate_factor).parameters["rounding"].default == module.ROUNDING
    for resolution, expected in ((4.0, 2.0), (1e-20, 1e-12)):
        instance: Any = SimpleNamespace(resolution=resolution)
        assert module._rounding(instance, np.array([[2.0, 1.0], [7.0, 1.0]])) == expected


@pytest.mark.parametrize(("largest", "expected"), [(4, None), (5, 5), (19, 19), (20, None), (25, None)])
def test_a_rise_is_left_out_if_it_takes_a_tenth_of_the_fall_and_not_half(largest: int, expected: int | None) -> None:
    """The fall ends in round 40, with a hundredth of the first error."""
    errors = np.full(100, 50.0)
    errors[0], errors[largest], errors[40:] = 40.0, 60.0, 0.4
    assert module._fall(errors, 0.01) == expected


def test_how_long_a_run_is() -> None:
    """Until the claimed rate has fallen to 1e-8, and no shorter than until 1e-3."""
    assert math.log(1e-8) / math.log(0.9) == pytest.approx(174.8, abs=0.1)
    assert module._length(Speed("linear", 0.9), 5000) == 175
    assert module._length(Speed("linear", 0.9), 66) == 66
    with pytest.raises(ValueError, match="takes at least 66 rounds"):
        module._length(Speed("linear", 0.9), 65)
    assert [module._length(Speed("sublinear", 2.0), rounds) for rounds in (200, 400)] == [200, 300]


def test_a_run_ends_after_five_errors_that_are_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    errors = [1.0, 1e-3, *(1e-14 * k for k in range(1, 30))]
    snapshots = [SimpleNamespace(server=SimpleNamespace(theta=k)) for k in range(1, len(errors))]
    monkeypatch.setattr(module, "iterate", lambda *given, **options: iter(snapshots))
    instance: Any = SimpleNamespace(objective=SimpleNamespace(zeros=lambda: 0), error=errors.__getitem__)
    found = module._errors(GradientDescent(), instance, module.Full(), 0, 12)
    assert found.tolist() == [*errors[:7], *[errors[6]] * 6]


def test_the_claimed_rate_is_written_out_for_every_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_errors", lambda *given: 0.5 ** np.arange(given[-1] + 1))
    (finding,) = judged(GradientDescent(), "0.5^n", instances=LINEAR[:1]).findings
    assert math.isnan(finding.logs[0])
    np.testing.assert_allclose(finding.logs[1:], np.arange(1, len(finding.errors)) * math.log(0.5))


def test_errors_that_are_down_too_soon_for_an_estimate_decide_if_they_are_down_in_time(monkeypatch) -> None:
    """A hundredth of the last error in every round is rounding after six: in time for 0.02^n."""
    for rate, expected in (("0.011^n", "undecided"), ("0.02^n", "holds")):
        errors = 0.01 ** np.arange(400.0)
        monkeypatch.setattr(module, "_errors", lambda *given, errors=errors: np.maximum(errors[: given[-1] + 1], 1e-16))
        (finding,) = judged(GradientDescent(), rate, instances=LINEAR[:1]).findings
        assert (finding.verdict, finding.estimate) == (expected, None)


def test_the_power_of_kappa_of_two_chains() -> None:
    """Rounds per digit grow fourfold from kappa 10 to 1000: a power of log 4/log 100, with that of both intervals."""
    findings = []
    for kappa, factor in ((10.0, 0.5), (1000.0, 0.5**0.25)):
        instance: Any = SimpleNamespace(values=lambda kappa=kappa: {"kappa": kappa}, is_chain=True)
        estimate = rates.Factor(factor, factor**1.1, factor**0.9, 0.9)
        findings.append(Finding(instance=instance, verdict="holds", estimate=estimate))
    found = Report(rate=parse_rate("0.5^n"), findings=tuple(findings)).exponent
    power = math.log(4.0) / math.log(100.0)
    room = math.log(1.1 / 0.9) / math.log(100.0)
    assert found == pytest.approx((power, power - room, power + room))
    assert Report(rate=parse_rate("0.5^n"), findings=tuple(findings[:1])).exponent is None


def test_instances_are_those_of_the_rate_in_as_many_rounds_as_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(module, "linear_instances", lambda reference: [SimpleNamespace(name=f"linear, {reference}")])
    monkeypatch.setattr(module, "sublinear_instances", lambda: [SimpleNamespace(name="sublinear")])
    monkeypatch.setattr(module, "examine", lambda *given: seen.append((given[2].name, *map(repr, given[4:]))))
    verify(GradientDescent(), parse_rate("0.5^n"), reference="cvxpy")
    verify(GradientDescent(), parse_rate("1/n"))
    assert seen == [("linear, cvxpy", "range(0, 1)", "5000", "0.95"), ("sublinear", "range(0, 1)", "5000", "0.95")]
