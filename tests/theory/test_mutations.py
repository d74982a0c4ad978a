"""Every claim can fail: wrong variants of a method, the problem or a formula are caught.

Half of a bound that is attained up to a half is caught too, as the table of worst ratios says (``test_verdicts``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from dualopt.lab.claims import check
from dualopt.methods import DualFL, FedPD, Scaffold, _dual_parameters
from dualopt.methods._feddyn_theorems import best_weights
from dualopt.methods._parameters import largest
from dualopt.methods.preparation import OneShotAverage
from dualopt.methods.sampled_dualfl import next_step
from dualopt.solvers import Sarah
from dualopt.solvers.stopping import Steps
from tests.theory.mutation_table import (
    TABLES,
    Table,
    answers,
    columns,
    is_violated,
    lines,
    shrunk,
    telling,
    verdict,
    verdicts,
)
from tests.theory.mutation_table import chapters as claims_by_name
from tests.theory.worst_ratios import TOLERANCE
from theory._claims import judge
from theory._problems import hard_quadratic, indefinite, lopsided
from theory._witnesses import HALVED, load, nearest
from theory.afedpd import composite, inexact
from theory.baselines.contraction import mean_square_factor, scaffold_case, three_directions
from theory.dualfl import certificates, local_steps
from theory.feddyn._runs import feddyn_case
from theory.fedpd import skipping
from theory.fedpd.skipping import drift
from theory.frontier import (
    accelerated_dane,
    adaptive_dualfl,
    cohorts_of_fivegcs,
    dane,
    dual_lbfgs,
    giant,
    restarts,
    weighted_dualfl,
    weighted_feddyn,
    weights,
)
from theory.frontier import sampled_dualfl as theorem_f
from theory.frontier import sampled_feddyn as theorem_a
from theory.frontier.anderson import Wild
from theory.identities import splitting, states
from theory.mutations import feddyn
from theory.mutations._edits import edit, edited
from theory.mutations.dualfl import MUTATIONS, certificate_with_greatest_mu, dual_point_with_greatest_mu
from theory.mutations.scales import CLAIM_OF

CHAPTERS = claims_by_name()


HERE = {  # claims that nothing but a test of this file shows to fail
    *("afedpd_equation_6", "afedpd_remark_1_2", "conjugates_of_dual_points", "feddyn_scaffold", "theorem_3_4"),
    *("identity_douglas_rachford", "identity_feddyn_rows", "identity_point_saga", "theorem_3_5"),
    *("theorem_4_1_inexact", "theorem_4_2_inexact"),
}
ELSEWHERE = {"dual_ascent_any_loss", "convex_strong_attained"}  # derived with SymPy; an equality in both directions


def test_every_claim_is_caught() -> None:
    """By a row of a table, half of a bound, or here; the erratum of a claim is violated as it is printed."""
    rows = set().union(*map(columns, TABLES.values()))
    table = load()

    def loses_half(name: str) -> bool:
        ratios = (nearest(rows)[1] for rows in table[name].values() if rows.kind == "ratio")
        return any(ratio > TOLERANCE * HALVED for ratio in ratios)

    left = {name for name, chapter in CHAPTERS.items() if chapter.selection != "errata" and not loses_half(name)}
    assert left - rows == HERE | ELSEWHERE
    assert {*CLAIM_OF.values()} <= rows


ROWS = [
    pytest.param(table, variant, name, id=f"{table.title}: {variant}-{name}")
    for table in TABLES.values()
    for variant, row in table.variants.items()
    for name in sorted(row.caught | row.emptied)
]
EDITS = [
    pytest.param(row.wrong, id=f"{table.title}: {variant}")
    for table in TABLES.values()
    for variant, row in table.variants.items()
    if getattr(row, "wrong", None) is not None
]


@pytest.mark.parametrize("wrong", EDITS)
def test_every_row_fits_the_method_as_it_is(wrong) -> None:
    assert issubclass(wrong(), object)


@pytest.mark.parametrize(("table", "variant", "name"), ROWS)
def test_wrong_variants_are_caught(table: Table, variant: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_steps, "LIMIT", 1000)  # wrong variants go on for ever
    wanted = "violated" if name in table.variants[variant].caught else "vacuous"
    assert any(answer == wanted for answer in answers(table, variant, name))


def test_a_row_that_does_not_fit_is_an_error() -> None:
    with pytest.raises(LookupError, match=r"'Server\(mode\)' must occur once in FedPD.server, not 0 times"):
        edited(FedPD, "server", "Server(mode)", "Server(mean)")
    with pytest.raises(LookupError, match=r"'dual' must occur once in FedPD.local, not 6 times"):
        edited(FedPD, "local", "dual", "theta")


def test_a_row_tells_what_catches_a_variant() -> None:
    table = TABLES["DualFL"]
    assert verdict(table, "momentum dropped", "theorem_3_3") == "violated"
    head, rule, *_ = lines(table._replace(variants={}))
    assert (head, rule) == ("| DualFL |", "| --- |")


def test_an_edit_that_changes_nothing_is_not_caught() -> None:
    """What catches a variant is the text that it changes, not the way in which it is put into the case."""
    table = TABLES["DualFL"]
    same = edit(DualFL, "server", "Message(mean, beta", "Message(mean, beta", caught="")
    assert verdict(table._replace(variants={"same": same}), "same", "theorem_3_3") == "holds"


# Wrong formulas: a claim, the place of a name that it uses, and what stands wrongly there, made of the right one.

Wrong = Callable[[Any], Any]


def times(factor: float) -> Wrong:
    return lambda right: lambda *arguments, **known: factor * right(*arguments, **known)


def narrower(right: Any) -> Any:
    def eigenvalues(f, weight):
        found = right(f, weight)
        found[-1] = found[0] + 0.99 * (found[-1] - found[0])
        return found

    return eigenvalues


def in_other_units(right: Any) -> Any:
    return lambda f, s: replace(right(f, s), scales=tuple(np.asarray(s).tolist()))


def other_weights(power: float) -> Wrong:
    def wrong(bounds, size, weights=None):
        ratios = [a**power for a in best_weights(bounds, size, weights)]
        return weighted_feddyn.admitted_multiple(bounds, size, weights, ratios)

    return lambda right: wrong


def powers(of_L: float, of_mu: float) -> Wrong:
    return lambda right: lambda f: f.L**of_L * f.mu**of_mu


def other_number(name: str, factor: float) -> Wrong:
    def wrong(right: Any) -> Any:
        def found(*of: float) -> Any:
            numbers = right(*of)
            return numbers._replace(**{name: factor * getattr(numbers, name)})

        return found

    return wrong


FORMULAS: list[tuple[str, Any, str, Wrong]] = [
    (
        *("identity_feddyn_rows", states, "linear_model"),
        lambda right: lambda *rows, client_weights, **others: right(*rows, **others),
    ),
    ("identity_point_saga", splitting, "FedDyn", lambda _: feddyn.MUTATIONS["no h"].wrong()),  # pyright: ignore[reportOptionalCall]
    ("identity_douglas_rachford", splitting, "FedDyn", lambda _: feddyn.MUTATIONS["half the memory"].wrong()),  # pyright: ignore[reportOptionalCall]
    ("afedpd_equation_6", composite, "models", lambda right: lambda case, **_: right(case, as_printed=True)),
    ("afedpd_remark_1_2", inexact, "decreasing_step", lambda _: lambda k, m, M: 0.5 / M),
    ("theorem_3_4", local_steps, "decreasing_step", lambda _: lambda mu, k: 1.0 / mu),
    ("theorem_3_5", local_steps, "constant_momentum", times(0.0)),
    ("dual_certificate", certificates, "certificate", lambda _: certificate_with_greatest_mu),
    ("gradient_certificate", certificates, "certificate", lambda _: certificate_with_greatest_mu),
    ("conjugates_of_dual_points", certificates, "dual_point", lambda _: dual_point_with_greatest_mu),
    ("fedpd_lemma_2", skipping, "offset", times(0.0)),
    ("best_scales", weights, "common_scales", powers(0.4, 0.4)),
    ("best_scales", weights, "common_scales", powers(0.6, 0.3)),
    ("best_scales", weights, "common_scales", powers(0.0, 0.0)),
    ("best_scales", weights, "reweighted", in_other_units),
    ("weighted_feddyn", weighted_feddyn.Weights, "dual", lambda right: property(lambda self: 0.5 * right.fget(self))),
    ("weighted_feddyn", weighted_feddyn.Weights, "dual", lambda right: property(lambda self: 2.0 * right.fget(self))),
    ("weighted_dualfl", weighted_dualfl.Follower, "weights", times(0.5)),
    ("weighted_dualfl", weighted_dualfl.Follower, "first_bound", times(0.5)),
    ("weighted_feddyn_weights", weighted_feddyn, "best_weights", other_weights(0.9)),
    ("weighted_feddyn_weights", weighted_feddyn, "best_weights", other_weights(1.1)),
    ("dane_spectrum", dane, "spectrum", lambda right: lambda *of: (right(*of)[0], 0.999 * right(*of)[1])),
    ("dane_spectrum", dane, "spectrum", lambda right: lambda *of: (1.001 * right(*of)[0], right(*of)[1])),
    ("dane_spectrum", dane, "spectrum", lambda right: lambda *of: (1.0, right(*of)[1])),
    ("dane_spectrum", dane, "spectrum", lambda right: lambda *of: (right(*of)[0], 1.0)),
    ("giant_quadratics", giant, "eigenvalues", narrower),
    (
        *("acc_s_dane", accelerated_dane, "growth"),
        lambda right: lambda *of: (min(1.0, 4.0 * right(*of)[0]), right(*of)[1]),
    ),
    ("acc_s_dane", accelerated_dane, "limit_factor", lambda right: lambda *of: max(0.0, 4.0 * right(*of) - 3.0)),
    ("dual_lbfgs_is_central", dual_lbfgs, "FALL", lambda _: 5.0),
    ("sampled_feddyn", theorem_a, "dual_weight", lambda right: lambda case: case.fraction * right(case)),
    ("sampled_feddyn", theorem_a, "dual_weight", times(0.5)),
    ("sampled_feddyn", theorem_a, "dual_weight", times(2.0)),
    ("sampled_dualfl_potential", theorem_f, "weight", times(0.5)),
    ("sampled_dualfl", theorem_f, "first_bound", times(0.5)),
    *(
        ("cohorts_of_fivegcs", cohorts_of_fivegcs, "numbers", other_number(name, factor))
        for name, factor in (("moved", 0.5), ("moved", 2.0), ("weight", 0.5), ("weight", 2.0), ("square", 0.999))
    ),
    ("sampled_feddyn_rounds", theorem_a, "best_weight", times(0.99)),
    ("sampled_feddyn_rounds", theorem_a, "best_weight", times(1.01)),
]


@pytest.mark.parametrize(("name", "place", "form", "wrong"), FORMULAS)
def test_wrong_formulas_are_caught(
    name: str, place: Any, form: str, wrong: Wrong, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, form, wrong(getattr(place, form)))
    monkeypatch.setattr(local_steps, "LIMIT", 1000)
    assert any(v.verdict not in ("holds", "outside assumptions") for v in verdicts(CHAPTERS[name].claim, telling(name)))


# Wrong cases.


ATTAINED = (
    *("fedsplit_contraction", "feddr_contraction", "fivegcs_one_step", "scaffnew_one_step"),
    *("sampled_feddyn", "sampled_fedsplit", "growing_feddyn", "weighted_feddyn", "sampled_feddr"),
    *("averaged_reflections", "sampled_fivegcs", "full_fivegcs", "cohorts_of_fivegcs"),
    *("compressed_fedsplit", "rounded_fedsplit", "compressor_moments", "anderson_quadratics", "contractive_fedsplit"),
)


@pytest.mark.parametrize("name", ATTAINED)
def test_attained_factors_cannot_be_less(name: str) -> None:
    less = shrunk(CHAPTERS[name].claim, 1.0 - 1e-6)
    attained = [case for case in telling(name) if case.attained]
    caught = [is_violated(less, iter([case])) for case in attained]
    assert any(caught)
    assert all(caught) or name not in ("weighted_feddyn", "sampled_feddr", "anderson_quadratics")


BELOW = "g_j bounded below"  # of dual energies that are infinite, which no inequality contradicts
EXCLUDED = {  # how many cases there are at least
    **dict.fromkeys(("fedsplit_contraction", "fivegcs_one_step", "scaffold_fixed_point", "sampled_feddyn"), 1),
    **dict.fromkeys(("growing_feddyn", "sampled_dualfl_potential", "scaled_dualfl"), 1),
    **dict.fromkeys(CLAIM_OF.values(), 3),
    "sampled_feddr": 0,
}


@pytest.mark.parametrize("name", EXCLUDED)
def test_what_the_assumptions_exclude_goes_wrong(name: str) -> None:
    """But for clients that no theorem of this kind is about, and a client that is never active."""
    claim = CHAPTERS[name].claim
    excluded = [case for case, verdict in CHAPTERS[name].cases(True) if verdict == "outside assumptions"]
    told = name in ("fedsplit_contraction", "fivegcs_one_step", "scaffold_fixed_point")
    plain = [
        case
        for case in excluded
        if told or (case.mu > 0 and "never" not in case.name and claim.assumptions(case) != [BELOW])
    ]
    assert len(plain) >= EXCLUDED[name]
    assert all(is_violated(claim, iter([case])) for case in plain)


def test_a_suggestion_with_the_greatest_mu_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is outside the assumptions of the theorem, and breaks its bound."""
    monkeypatch.setattr(_dual_parameters, "smallest", largest)
    with np.errstate(all="ignore"):
        wrong = [result for result in judge(CHAPTERS["theorem_3_3"], quick=True) if not result.as_expected]
    assert [result.verdict.verdict for result in wrong] == ["outside assumptions"]
    suggested = [case for case, _ in CHAPTERS["theorem_3_3"].cases(True) if case.name == wrong[0].verdict.case]
    assert [v.verdict for v in verdicts(CHAPTERS["theorem_3_3"].claim, iter(suggested))] == ["violated"]


# Theorems with inexact rounds on regularised clients, and the wrong variant that breaks them.
REGULARISED = {name: "wrong sign in (3.3)" for name in ("theorem_4_1_inexact", "theorem_4_2_inexact")}


@pytest.mark.parametrize("name", REGULARISED)
def test_wrong_variants_break_the_theorems_on_regularised_clients(name: str) -> None:
    mutated = map(MUTATIONS[REGULARISED[name]], telling(name))
    assert any(v.verdict == "violated" for v in verdicts(CHAPTERS[name].claim, mutated))


class WithoutReduction(Sarah):
    """Every sample is an estimate of its own."""

    def __call__(self, problem: Any, start: Any, stop: Any, solver_state: Any = (), round: Any = None) -> Any:
        f, fresh = problem.objective, self.initial_state(problem.objective)
        theta = start
        for _ in range(stop.steps):
            sample = f.draw(round.rngs(), self.batch)
            state = fresh._replace(theta=theta, estimate=f.sample_gradient(theta, sample))
            last = super().__call__(problem, theta, Steps(steps=1), state, replace(round, n=1))
            theta = last.theta
        return last


def test_theorem_2_needs_the_reduction_of_variance() -> None:
    (case,) = [case for case in telling("fedpd_theorem_2") if case.algorithm.solver.batch == 1]
    solver = WithoutReduction(**vars(case.algorithm.solver))
    without = case.but(algorithm=replace(case.algorithm, solver=solver))
    claim = CHAPTERS["fedpd_theorem_2"].claim
    assert [check(claim, one).verdict for one in (case, without)] == ["holds", "violated"]


@pytest.mark.parametrize(
    "wrong",
    [lambda p, **known: drift(p * p, **known), lambda p, *, a, h: drift(p, a=a, h=0.5 * h)],
    ids=["p squared", "half of G"],
)
def test_wrong_second_moments_are_caught(wrong: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skipping, "drift", wrong)
    chapter = CHAPTERS["p5_expectations_in_theorem_3"]
    forms = [form for form, verdict in chapter.cases(True) if verdict == "holds"]
    assert forms
    assert all(check(chapter.claim, form).verdict == "violated" for form in forms)


def test_theorem_4_needs_its_range() -> None:
    """Below it the method may diverge, and the printed bound is broken; the constants of the proof mean nothing there.

    There is no such test for convex clients: no alpha was found with which the method diverges.
    """
    claim = CHAPTERS["feddyn_theorem_4"].claim
    printed = replace(claim, compare=lambda case: (c for c in claim.compare(case) if c.what == "printed"))
    small = [feddyn_case(indefinite(), alpha=alpha, active=1, rounds=400) for alpha in (60.0, 20.0, 1.5)]
    assert [is_violated(printed, iter([case])) for case in small] == [False, False, True]
    assert [check(claim, case).failed for case in small] == [(), *2 * [("alpha >= 20 L N/P",)]]


class WithoutItsControl(Scaffold):
    """The server keeps its control, which the clients' have left."""

    def server(self, server, mean, round):
        """Move the model alone."""
        moved, _ = super().server(server, mean, round)
        return moved._replace(control=server.control), moved._replace(control=server.control)


def test_scaffold_needs_its_control() -> None:
    case = next(telling("feddyn_scaffold"))
    method = WithoutItsControl(**vars(case.algorithm))
    assert is_violated(CHAPTERS["feddyn_scaffold"].claim, iter([case.but(algorithm=method)]))


def test_scaffold_with_one_client_needs_shorter_steps_than_gradient_descent() -> None:
    """With K = P = 1 it is SAGA: a step of 1/L diverges in mean square on three clients, 1/(3L) converges."""
    saga = {"f": three_directions(), "active": 1, "K": 1}
    assert mean_square_factor(scaffold_case(**saga, times=1.0)) == pytest.approx(1.0619, abs=1e-4)
    assert mean_square_factor(scaffold_case(**saga)) < 0.8


def test_the_biases_are_not_small() -> None:
    """The limits are away from the solution by more than the tolerance, except where clients agree."""
    for name, agreeing in (("fedavg_bias", 3), ("fedprox_bias", 2)):
        compared = [{c.what for c in CHAPTERS[name].claim.compare(case)} for case in telling(name)]
        biased = ["nearer to the limit" in whats for whats in compared]
        assert (biased.count(False), biased.count(True) >= 3) == (agreeing, True)


@pytest.mark.parametrize("name", ["uniform_cohorts", "uniform_sampled_dualfl"])
def test_cohorts_that_are_drawn_with_the_weights_do_not_diverge(name: str) -> None:
    free = replace(CHAPTERS[name].claim, assumptions=lambda case: [])
    drawn = [case.but(participation=weights.drawn(case, 1)) for case in telling(name)]
    assert all(is_violated(free, iter([case])) for case in drawn)


def test_wild_points_are_refused() -> None:
    """A refusal, its plain step, the step from a history of one point, the next wild point: every fourth or fifth."""
    for case in telling("anderson_safeguard"):
        if type(case.algorithm) is Wild:
            known = [s.server.history.known for s in case.snapshots()]
            assert known.count(0) >= case.rounds // 5


def test_too_long_steps_are_refused() -> None:
    """Outside of what is assumed a plain step would make the residual many times larger: its value refuses it."""
    too_long = dane.dane_case(dane.opposite(100.0), eta=1.0)
    assert dane.factor_of(too_long) == pytest.approx(101.0**2 / 400.0 - 1.0, rel=1e-9)
    asked, plain, refused = list(too_long.snapshots())[2:5]
    f, step = too_long.objective, asked.server.point - asked.server.theta
    np.testing.assert_allclose(step, asked.server.residuals[-1], rtol=1e-12)
    assert f.mean(f.value(asked.server.point)) > f.mean(f.value(asked.server.theta))
    assert np.array_equal(plain.server.point, asked.server.point)  # of one point the mixture is the plain step, too
    assert (asked.server.eta, plain.server.eta, refused.server.eta) == (1.0, 1.0, 0.25)
    assert np.array_equal(refused.server.theta, asked.server.theta)
    np.testing.assert_allclose(refused.server.point, asked.server.theta + 0.25 * step, rtol=1e-12)


@dataclass(frozen=True, kw_only=True)
class Averaged(OneShotAverage):
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
    cases = (replace(case, start=Averaged(weights=weights)) for case in telling("one_shot_average"))
    assert is_violated(CHAPTERS["one_shot_average"].claim, cases)


def test_weights_below_the_differences_are_caught() -> None:
    """The theorem asks for w >= delta: a tenth of it is too little for clients that are opposite."""
    case = accelerated_dane.acc_case(accelerated_dane.opposite(100.0), 0.1)
    assert check(CHAPTERS["acc_s_dane"].claim, case, check_assumptions=False).verdict == "violated"


@pytest.mark.parametrize("rule", ["gradient", "gap"])
def test_most_cases_have_several_epochs(rule: str) -> None:
    cases = [case for case in telling("restart_energy") if type(case.algorithm) is restarts.RULES[rule]]
    ends = [sum(step.ends for step in restarts.path(case)) for case in cases]
    assert sum(n >= 5 for n in ends) >= 5


def test_estimates_are_refuted() -> None:
    assert sum(any(step.refuted for step in adaptive_dualfl.path(case)) for case in telling("adaptive_rounds")) == 1


def test_the_marginals_are_needed() -> None:
    """The plain sum of squares does not contract by the least of unequal probabilities in every round."""
    claim = CHAPTERS["sampled_fedsplit"].claim

    plainly = (case.but(marginals=np.full(case.n_clients, 0.5)) for case in telling("sampled_fedsplit"))
    assert is_violated(claim, plainly)


@pytest.mark.parametrize("parameters", [{"rho": 30.0}, {"rho": 30.0, "nu": 1.0}])
def test_a_momentum_that_is_too_small_breaks_theorem_f(parameters: dict[str, float]) -> None:
    """rho beyond nu/L: t settles at a step that is too long."""
    case = theorem_f.sampled(lopsided(), 4, 40, **parameters)  # pyright: ignore[reportArgumentType]
    assert check(CHAPTERS["sampled_dualfl"].claim, case).verdict == "outside assumptions"
    assert is_violated(CHAPTERS["sampled_dualfl"].claim, iter([case]))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda t, rho, p: next_step(t, 0.9 * rho, p),
        lambda t, rho, p: next_step(t, 0.0, p),
        lambda t, rho, p: next_step(t, rho, 1.0),
        lambda t, rho, p: 0.999 * next_step(t, rho, p),
    ],
    ids=["smaller rho", "rho = 0", "p = 1", "smaller"],
)
def test_wrong_steps_are_caught(wrong) -> None:
    changed = (case._replace(next_step=wrong) for case in telling("sampled_dualfl_step"))
    assert is_violated(CHAPTERS["sampled_dualfl_step"].claim, changed)


def test_twice_the_largest_step_does_not_contract_so_fast() -> None:
    """With gamma = 2 gamma* the worst growth is 1.05 to 1.06 times the factor of that gamma."""
    claim = CHAPTERS["sampled_feddyn"].claim
    case = theorem_a.sampled_case(hard_quadratic(), 1, times=0.5)
    (worst,) = (c for c in claim.compare(case) if c.what == "worst growth")
    assert 1.04 < worst.lhs / worst.rhs < 1.07


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("dane_spectrum", lambda case: replace(case, epsilon=0.5 * case.epsilon)),
        ("one_shot_average", lambda case: replace(case, epsilon=0.5 * case.epsilon)),
        ("fedsplit_in_the_metric", lambda case: case.but(constants=(1.005 * case.constants[0], case.constants[1]))),
    ],
)
def test_clients_that_are_less_alike_or_better_conditioned_are_caught(name: str, change: Callable[[Any], Any]) -> None:
    told = "attained" if name == "fedsplit_in_the_metric" else "epsilon"
    cases = [case for case in telling(name) if getattr(case, told) not in (None, False)]
    assert {v.verdict for v in verdicts(CHAPTERS[name].claim, map(change, cases))} == {"violated"}


# Restarts with other means, epochs and rates: what a claim compares takes them as arguments.


def mean_of(weights: Callable[[Any], Any]) -> Callable[[list, list], Any]:
    return lambda models, given: np.einsum("i,i...->...", weights(given), np.stack(models)) / sum(weights(given))


RESTARTS: list[tuple[str, dict[str, Any]]] = [
    ("restart_gap", {"mean": mean_of(lambda given: np.array(given[::-1]))}),
    ("restart_gap", {"mean": lambda models, given: models[-1]}),
    ("restart_gap", {"mean": lambda models, given: models[0]}),
    ("restart_epochs", {"root": lambda kappa: 0.33 * math.sqrt(kappa - 1.0)}),
    ("restart_epochs", {"root": lambda kappa: kappa**0.25}),
    ("restart_energy", {"times": 20.0}),
    ("adaptive_gap", {"half": 0.0}),
    ("adaptive_rounds", {"times": 0.5}),
]


@pytest.mark.parametrize(("name", "wrong"), RESTARTS)
def test_wrong_restarts_are_caught(name: str, wrong: dict[str, Any]) -> None:
    """Equal weights of the mean are not told apart: on these clients they are as good, though nothing says so."""
    claim = CHAPTERS[name].claim
    assert is_violated(replace(claim, compare=lambda case: claim.compare(case, **wrong)), telling(name))
