"""The claims of theory/frontier on weights, Anderson, DANE, metrics and restarts can fail: what is wrong is caught."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from dualopt.lab.claims import check
from dualopt.methods._feddyn_theorems import best_weights
from dualopt.methods.preparation import OneShotAverage
from tests.theory.mutation_table import TABLES, columns, is_violated, shrunk, telling, verdicts
from tests.theory.test_properties import UNEQUAL
from theory._cases import Case
from theory._claims import discover
from theory._problems import solved
from theory.frontier import (
    accelerated_dane,
    adaptive_dane,
    anderson,
    dane,
    dual_lbfgs,
    giant,
    metric,
    restarts,
    sampled_feddr,
    weighted_dualfl,
    weighted_feddyn,
    weights,
)
from theory.frontier.anderson import Wild
from theory.frontier.restarts import restart_energy, restart_epochs, restart_gap
from theory.mutations.scales import CLAIM_OF, MUTATIONS

CHAPTERS = discover()


def test_every_claim_is_caught_by_some_mutation() -> None:
    """By a row of a table, or here."""
    rows = {name for row in MUTATIONS.values() for name in row.caught}
    assert {*CLAIM_OF.values()} <= rows
    tables = ("Anderson acceleration", "AndersonDANE", "Clients that are alike", "Coordinates of a metric", "Restarts")
    rows.update(*(columns(TABLES[table]) for table in tables))
    here = {"weighted_feddyn_weights", "best_scales", "dane_spectrum", "one_shot_average"}
    modules = (sampled_feddr, weighted_dualfl, weighted_feddyn, weights, anderson, dane, metric, restarts, giant)
    names = {module.__name__ for module in (*modules, accelerated_dane, adaptive_dane, dual_lbfgs)}
    assert rows | here == {name for name, chapter in CHAPTERS.items() if chapter.module in names}


@pytest.mark.parametrize("power", [(0.4, 0.4), (0.6, 0.3), (0.0, 0.0)])
def test_other_scales_are_not_the_best(power: tuple[float, float], monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = lambda f: f.L ** power[0] * f.mu ** power[1]  # noqa: E731
    monkeypatch.setattr(weights, "common_scales", wrong)
    assert is_violated(CHAPTERS["best_scales"].claim, telling("best_scales"))


def test_scales_that_are_not_normalised_have_another_energy(monkeypatch: pytest.MonkeyPatch) -> None:
    right = weights.reweighted
    monkeypatch.setattr(weights, "reweighted", lambda f, s: replace(right(f, s), scales=tuple(np.asarray(s).tolist())))
    assert is_violated(CHAPTERS["best_scales"].claim, telling("best_scales"))


@pytest.mark.parametrize("name", ["uniform_cohorts", "uniform_sampled_dualfl"])
def test_cohorts_that_are_drawn_with_the_weights_do_not_diverge(name: str) -> None:
    free = replace(CHAPTERS[name].claim, assumptions=lambda case: [])
    drawn = [case.but(participation=weights.drawn(case, 1)) for case in telling(name)]
    assert all(is_violated(free, iter([case])) for case in drawn)


@pytest.mark.parametrize("name", ["weighted_feddyn", "sampled_feddr"])
def test_attained_factors_cannot_be_less(name: str) -> None:
    less = shrunk(CHAPTERS[name].claim, 1.0 - 1e-6)
    attained = [case for case in telling(name) if case.attained]
    assert all(is_violated(less, iter([case])) for case in attained)
    assert len(attained) >= 5


@pytest.mark.parametrize("name", sorted(CLAIM_OF.values()))
def test_what_the_assumptions_exclude_goes_wrong(name: str) -> None:
    """But for clients that no theorem of this kind is about, and a client that is never active."""
    excluded = [case for case, verdict in CHAPTERS[name].cases(True) if verdict == "outside assumptions"]
    plain = [case for case in excluded if case.mu > 0 and "never" not in case.name]
    assert len(plain) >= (0 if name == "sampled_feddr" else 3)
    assert all(is_violated(CHAPTERS[name].claim, iter([case])) for case in plain)


@pytest.mark.parametrize("wrong", [0.5, 2.0])
def test_the_weights_of_the_memories_are_needed(wrong: float, monkeypatch: pytest.MonkeyPatch) -> None:
    right: Any = weighted_feddyn.Weights.dual
    monkeypatch.setattr(weighted_feddyn.Weights, "dual", property(lambda self: wrong * right.fget(self)))
    assert is_violated(CHAPTERS["weighted_feddyn"].claim, telling("weighted_feddyn"))


@pytest.mark.parametrize("name", ["weights", "first_bound"])
def test_theorem_f_needs_its_constants(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = getattr(weighted_dualfl.Follower, name)
    monkeypatch.setattr(weighted_dualfl.Follower, name, lambda *arguments: 0.5 * right(*arguments))
    assert is_violated(CHAPTERS["weighted_dualfl"].claim, telling("weighted_dualfl"))


@pytest.mark.parametrize("power", [0.9, 1.1])
def test_other_weights_are_not_the_best(power: float, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(bounds, size, weights=None):
        ratios = [a**power for a in best_weights(bounds, size, weights)]
        return weighted_feddyn.admitted_multiple(bounds, size, weights, ratios)

    monkeypatch.setattr(weighted_feddyn, "best_weights", wrong)
    assert is_violated(CHAPTERS["weighted_feddyn_weights"].claim, telling("weighted_feddyn_weights"))


@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(objective=UNEQUAL, share=st.floats(0.0, 0.99), times=st.floats(1.0, 10.0), proportional=st.booleans())
def test_theorem_a_on_drawn_problems(objective, share: float, times: float, proportional: bool) -> None:
    f = solved("drawn", objective)
    assume(np.linalg.norm(f.theta) < 100)
    size = 1 + int(share * objective.n_clients)
    case = weighted_feddyn.weighted_case(f, size, times=times, proportional=proportional)
    verdict = check(CHAPTERS["weighted_feddyn"].claim, case)
    assert verdict.verdict == "holds", verdict.witness or verdict.failed


# The claims on AndersonFedSplit can fail: wrong weights, wrong Gram matrices and a missing safeguard are caught.


QUADRATIC, SAFE = "anderson_quadratics", "anderson_safeguard"


def test_attained_factors_cannot_be_less_anderson() -> None:
    less = shrunk(CHAPTERS[QUADRATIC].claim, 1.0 - 1e-6)
    assert {check(less, case).verdict for case in telling(QUADRATIC) if case.attained} == {"violated"}


def test_wild_points_are_refused() -> None:
    """A refusal, its plain step, the step from a history of one point, the next wild point: every fourth or fifth."""
    for case in telling(SAFE):
        if type(case.algorithm) is Wild:
            known = [s.server.history.known for s in case.snapshots()]
            assert known.count(0) >= case.rounds // 5


# The claims on AndersonDANE can fail: another inner product, one client's gradient, and wrong constants are caught.


@pytest.mark.parametrize(
    "wrong",
    [
        lambda mu, L, w=0.0: (mu / (mu + w), 0.999 * dane_spectrum(mu, L, w)[1]),
        lambda mu, L, w=0.0: (1.001 * mu / (mu + w), dane_spectrum(mu, L, w)[1]),
        lambda mu, L, w=0.0: (1.0, dane_spectrum(mu, L, w)[1]),
        lambda mu, L, w=0.0: (mu / (mu + w), 1.0),
    ],
    ids=["smaller", "larger", "weight forgotten", "as if alike"],
)
def test_wrong_bounds_of_the_spectrum_are_caught(wrong, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dane, "spectrum", wrong)
    assert is_violated(CHAPTERS["dane_spectrum"].claim, telling("dane_spectrum"))


dane_spectrum = dane.spectrum


def test_clients_that_are_less_alike_are_caught() -> None:
    cases = [case for case in telling("dane_spectrum") if case.epsilon is not None]
    halved = (replace(case, epsilon=0.5 * case.epsilon) for case in cases)
    assert {v.verdict for v in verdicts(CHAPTERS["dane_spectrum"].claim, halved)} == {"violated"}


def test_too_long_steps_expand_at_first() -> None:
    """Outside of what is assumed a plain step makes the residual many times larger, as the eigenvalue says."""
    too_long = dane.dane_case(dane.opposite(100.0), eta=1.0)
    snapshots = list(too_long.snapshots())
    sizes = [np.linalg.norm(s.server.residuals[-1]) for s in snapshots[2:5:2]]
    assert sizes[1] == pytest.approx(dane.factor_of(too_long) * sizes[0], rel=1e-9)
    assert dane.factor_of(too_long) == pytest.approx(101.0**2 / 400.0 - 1.0, rel=1e-9)


# The claims on what happens before the rounds can fail: wrong metrics, wrong averages and constants are caught.


def test_the_contraction_is_attained() -> None:
    """A factor that is smaller by a thousandth is violated, and that of the usual norm is too."""
    cases = [case for case in telling("fedsplit_in_the_metric") if case.attained]

    better = (case.but(constants=(1.005 * case.constants[0], case.constants[1])) for case in cases)
    assert {v.verdict for v in verdicts(CHAPTERS["fedsplit_in_the_metric"].claim, better)} == {"violated"}


@dataclass(frozen=True, kw_only=True)
class Wrong(OneShotAverage):
    """Another mean of the clients' minimisers."""

    weights: Callable[[int], Any]

    def prepare(self, objective, theta0):
        own = np.linalg.solve(objective.A, objective.b[..., None])[..., 0]  # pyright: ignore
        return super().prepare(objective, theta0).__class__(objective=objective, theta0=self.weights(len(own)) @ own)


@pytest.mark.parametrize(
    "weights",
    [
        lambda N: np.eye(N)[0],
        lambda N: np.full(N, 1.05 / N),
        lambda N: np.arange(1.0, N + 1) / np.sum(np.arange(1.0, N + 1)),
        lambda N: 0.0 * np.ones(N),
    ],
    ids=["the first client's", "sum 1.05", "unequal weights", "zero"],
)
def test_other_averages_are_caught(weights) -> None:
    cases = (replace(case, start=Wrong(weights=weights)) for case in telling("one_shot_average"))
    assert is_violated(CHAPTERS["one_shot_average"].claim, cases)


def test_clients_that_are_less_alike_are_caught_metric() -> None:
    cases = [case for case in telling("one_shot_average") if case.epsilon is not None]
    halved = (replace(case, epsilon=0.5 * case.epsilon) for case in cases)
    assert {v.verdict for v in verdicts(CHAPTERS["one_shot_average"].claim, halved)} == {"violated"}


# The claims on restarts can fail: wrong methods, means, weights and constants are caught.


def backwards(models: list, weights: list) -> Any:
    return np.einsum("i,i...->...", np.array(weights[::-1]), np.stack(models)) / sum(weights)


def latest(models: list, weights: list) -> Any:
    return models[-1]


def first(models: list, weights: list) -> Any:
    return models[0]


@pytest.mark.parametrize("mean", [backwards, latest, first])
def test_the_weights_of_the_mean_are_needed(mean: Callable[[list, list], Any]) -> None:
    """Equal weights are not told apart: on these clients their mean is as good, though nothing says so."""
    wrong = replace(restart_gap, compare=lambda case: restart_gap(case, mean=mean))
    assert is_violated(wrong, telling("restart_gap"))


@pytest.mark.parametrize("factor", [0.5, 0.85])
def test_a_smaller_bound_of_the_gap_is_caught(factor: float) -> None:
    def compare(case: Case) -> Iterator[Any]:
        return (q._replace(rhs=factor * q.rhs) if q.what == "G_n" else q for q in restart_gap(case))

    assert is_violated(replace(restart_gap, compare=compare), telling("restart_gap"))


@pytest.mark.parametrize(
    "root",
    [lambda kappa: 0.33 * math.sqrt(kappa - 1.0), lambda kappa: kappa**0.25],
    ids=["a third", "kappa^1/4"],
)
def test_shorter_epochs_are_caught(root: Callable[[float], float]) -> None:
    wrong = replace(restart_epochs, compare=lambda case: restart_epochs(case, root=root))
    assert is_violated(wrong, telling("restart_epochs"))


def test_a_faster_fall_of_the_energy_is_caught() -> None:
    wrong = replace(restart_energy, compare=lambda case: restart_energy(case, times=20.0))
    assert is_violated(wrong, telling("restart_energy"))


@pytest.mark.parametrize("rule", ["gradient", "gap"])
def test_most_cases_have_several_epochs(rule: str) -> None:
    cases = [case for case in telling("restart_energy") if type(case.algorithm) is restarts.RULES[rule]]
    ends = [sum(step.ends for step in restarts.path(case)) for case in cases]
    assert sum(n >= 5 for n in ends) >= 5


# The claims on GIANT, Acc-S-DANE and L-BFGS on the dual can fail: wrong methods and wrong constants are caught.


def is_caught(name: str) -> bool:
    return is_violated(CHAPTERS[name].claim, telling(name))


def test_a_smaller_rate_of_giant_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    wider = giant.eigenvalues

    def narrower(f, weight):
        found = wider(f, weight)
        found[-1] = found[0] + 0.99 * (found[-1] - found[0])
        return found

    monkeypatch.setattr(giant, "eigenvalues", narrower)
    assert is_caught("giant_quadratics")


def test_weights_below_the_differences_are_caught() -> None:
    """The theorem asks for w >= delta: a tenth of it is too little for clients that are opposite."""
    case = accelerated_dane.acc_case(accelerated_dane.opposite(100.0), 0.1)
    assert check(CHAPTERS["acc_s_dane"].claim, case, check_assumptions=False).verdict == "violated"


@pytest.mark.parametrize("part", ["growth", "limit_factor"])
def test_faster_rates_of_acc_s_dane_are_caught(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With four times as large an alpha, or its limit."""
    growth, limit_factor = accelerated_dane.growth, accelerated_dane.limit_factor
    wrong = {
        "growth": lambda b, w, mu: (min(1.0, 4.0 * growth(b, w, mu)[0]), growth(b, w, mu)[1]),
        "limit_factor": lambda w, mu: max(0.0, 1.0 - 4.0 * (1.0 - limit_factor(w, mu))),
    }
    monkeypatch.setattr(accelerated_dane, part, wrong[part])
    assert is_caught("acc_s_dane")


def test_another_rule_is_another_method(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop in one place that refuses nearly every step has other points."""
    monkeypatch.setattr(dual_lbfgs, "FALL", 5.0)
    assert is_caught("dual_lbfgs_is_central")
