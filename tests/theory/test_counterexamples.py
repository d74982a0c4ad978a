"""Every counterexample shows both sides, and wrong closed forms and wrong methods are caught on it."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dualopt import run
from dualopt.lab.claims import check
from dualopt.methods import AFedPD, DualFL, FedADMM, FedAvg, Scaffnew
from dualopt.methods._parameters import fedpd_step_limit
from dualopt.methods.participation import UniformSubset
from dualopt.solvers import Exact
from dualopt.solvers.stopping import Steps
from tests.theory.mutation_table import is_violated as violated
from tests.theory.mutation_table import telling
from theory._claims import discover
from theory._problems import solved
from theory.counterexamples import averaging, dualfl, primal_dual
from theory.counterexamples._recursion import scalars
from theory.dualfl import exact_solutions
from theory.dualfl._runs import exact
from theory.mutations import baselines, fedpd
from theory.mutations import dualfl as wrong_dualfl
from theory.mutations._edits import edited

CHAPTERS = {name: chapter for name, chapter in discover().items() if chapter.selection == "counterexamples"}
EXAMPLES = max(10, settings.default.max_examples // 4) if settings.default else 10
many = settings(max_examples=EXAMPLES)
ONE_SIDED = {"fedavg_biased_point", "fedavg_vanishing_step", "fedprox_biased_point", "dualfl_large_rho"}


def is_violated(name: str, cases: Iterator[Any]) -> bool:
    return violated(CHAPTERS[name].claim, cases)


@pytest.mark.parametrize("name", sorted(set(CHAPTERS) - ONE_SIDED))
def test_runs_converge_and_diverge(name: str) -> None:
    assert {case.converges for case in telling(name)} == {True, False}


def times(multiple: float) -> Callable[[Callable], Callable]:
    """A multiple of the right result."""
    return lambda right: lambda *known: multiple * right(*known)


# Claim, its closed form, and what is wrong with it; the cases lie 3 % beside the borders.
WRONG_FORMS: dict[str, tuple[str, str, Callable[[Callable], Callable]]] = {
    "FedAvg: factors 1 -+ s as printed": (
        "fedavg_constant_step",
        "factor",
        lambda right: lambda s, Q, a, b: right(0.5 * s, Q, a, b),
    ),
    "FedAvg: longest step up": ("fedavg_constant_step", "longest_step", times(1.04)),
    "FedAvg: longest step down": ("fedavg_constant_step", "longest_step", times(0.96)),
    "FedAvg: longest step of gradient descent": (
        "fedavg_constant_step",
        "longest_step",
        lambda _: lambda a, b: 2.0 / a if a else 0.0,
    ),
    "FedAvg: half of the squares": ("fedavg_vanishing_step", "excess", times(0.5)),
    "FedAvg: twice the squares": ("fedavg_vanishing_step", "excess", times(2.0)),
    "FedAvg: wrong product": (
        "fedavg_vanishing_step",
        "product",
        lambda right: lambda steps, n: tuple(1.02 * bound for bound in right(steps, n)),
    ),
    "FedAvg: wrong sign of the bias": ("fedavg_biased_point", "bias_of_fedavg", times(-1.0)),
    "FedAvg: bias of one step": ("fedavg_biased_point", "bias_of_fedavg", lambda _: lambda *known: 0.0),
    "FedAvg: weights of a step more": (
        "fedavg_biased_point",
        "weights_of_fedavg",
        lambda right: lambda a, s, K: right(a, s, K + 1),
    ),
    "FedProx: wrong sign of the bias": ("fedprox_biased_point", "bias_of_fedprox", times(-1.0)),
    "FedProx: half of the weight": (
        "fedprox_biased_point",
        "weights_of_fedprox",
        lambda right: lambda a, w: right(a, w / 2),
    ),
    "FedADMM: drift up": ("fedadmm_two_clients", "drift", times(1.04)),
    "FedADMM: no drift": ("fedadmm_two_clients", "drift", times(0.0)),
    "FedADMM: N/P for P/N": (
        "fedadmm_two_clients",
        "drift",
        lambda _: lambda rho, server_step: rho * (1.0 - 2.0 / server_step),
    ),
    "A-FedPD: least rho up": ("afedpd_small_rho", "least_rho", times(1.04)),
    "A-FedPD: least rho down": ("afedpd_small_rho", "least_rho", times(0.96)),
    "A-FedPD: convex local problems": ("afedpd_small_rho", "least_rho", lambda _: lambda a1, a2: -1.05 * a2),
    "FedPD: largest eta up": ("fedpd_large_eta", "largest_eta", times(1.04)),
    "FedPD: limit of Theorem 1": ("fedpd_large_eta", "largest_eta", lambda _: lambda N: fedpd_step_limit(1.0)),
    "FedPD: convex local problems": ("fedpd_large_eta", "largest_eta", lambda _: lambda N: 1.0),
    "FedPD: fractions exchanged": (
        "fedpd_large_eta",
        "polynomial",
        lambda right: lambda rho, a, fraction: right(rho, a, 1.0 - fraction),
    ),
    "DualFL: largest nu up": ("dualfl_large_nu", "largest_nu", times(1.04)),
    "DualFL: largest nu down": ("dualfl_large_nu", "largest_nu", times(0.96)),
    "DualFL: nu up to mu": ("dualfl_large_nu", "largest_nu", lambda _: lambda rho, a1, a2: min(a1, a2)),
    "DualFL: arithmetic mean": (
        "dualfl_large_nu",
        "largest_nu",
        lambda _: lambda rho, a1, a2: 4.0 / (3.0 - math.sqrt(rho)) * 0.5 * (a1 + a2),
    ),
    "DualFL: rate promised everywhere": (
        "dualfl_large_rho",
        "factor",
        lambda _: lambda rho, q: math.sqrt(1.0 - math.sqrt(rho)),
    ),
    "DualFL: the promise fails at q": ("dualfl_large_rho", "least_step", lambda _: lambda rho: rho),
    "DualFL: three quarters exactly": ("dualfl_large_rho", "least_step", lambda _: lambda rho: 0.75 * rho),
    "DualFL: the promise fails earlier": ("dualfl_large_rho", "least_step", times(1.03)),
    "DualFL: largest kappa up": ("dualfl_corrected_start", "largest_kappa", times(1.04)),
    "DualFL: largest kappa down": ("dualfl_corrected_start", "largest_kappa", times(0.96)),
    "DualFL: kappa/(e(K + 1))": (
        "dualfl_corrected_start",
        "worst_factor",
        lambda _: lambda kappa, K: kappa / (math.e * (K + 1)),
    ),
    "Scaffnew: longest step up": ("scaffnew_long_step", "longest_step", times(1.04)),
    "Scaffnew: longest step down": ("scaffnew_long_step", "longest_step", times(0.96)),
    "Scaffnew: 1 + sL": ("scaffnew_long_step", "factor", lambda right: lambda s, L: right(-s, L)),
}


@pytest.mark.parametrize("wrong", WRONG_FORMS)
def test_wrong_closed_forms_are_caught(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, form, change = WRONG_FORMS[wrong]
    module = importlib.import_module(CHAPTERS[name].module)
    monkeypatch.setattr(module, form, change(getattr(module, form)))
    assert is_violated(name, telling(name))


class OwnModels(FedADMM):
    """Changes of the models alone, without the duals, are uploaded."""

    def local(self, clients, message, oracle, round):
        new, _ = super().local(clients, message, oracle, round)
        return new, new.theta - clients.theta


class NoCorrection(AFedPD):
    """The mean of the active models without the mean dual."""

    def server(self, server, mean, round):
        new, message = super().server(server, mean, round)
        return new._replace(theta=mean), message._replace(theta=mean)


class AsItIs(dualfl.FromCorrected):
    """DualFL from the plain points."""

    def local(self, clients, message, oracle, round):
        return DualFL.local(self, clients, message, oracle, round)


class ColdStart(DualFL):
    """Local solvers start from the same point in every round."""

    def local(self, clients, message, oracle, round):
        new, sent = super().local(clients, message, oracle, round)
        return new._replace(theta=clients.theta), sent


class FirstClient(Scaffnew):
    """One client's model for the average."""

    def local(self, clients, message, oracle, round):
        new, upload = super().local(clients, message, oracle, round)
        return new, np.broadcast_to(upload[:1], upload.shape)


class OneStep(FedAvg):
    def local(self, clients, message, oracle, round):
        return clients, oracle.solve(start=message, stop=Steps(steps=1)).theta


ROWS = [
    ("fedavg_constant_step", baselines, "FedAvg: a step more"),
    ("fedavg_biased_point", baselines, "FedAvg: a step more"),
    ("fedprox_biased_point", baselines, "FedProx: half the weight"),
    ("fedprox_biased_point", baselines, "FedProx: proximal term at zero"),
    ("fedpd_large_eta", fedpd, "sign of the dual"),
    ("fedpd_large_eta", fedpd, "dual step dropped"),
    ("fedpd_large_eta", fedpd, "proximal term mis-scaled"),
    ("dualfl_large_nu", wrong_dualfl, "momentum dropped"),
    ("dualfl_large_rho", wrong_dualfl, "momentum dropped"),
    ("dualfl_large_rho", wrong_dualfl, "beta early"),
]
WRONG_METHODS = [
    *((name, table.MUTATIONS[row].wrong()) for name, table, row in ROWS),
    ("dualfl_large_nu", edited(DualFL, "receive", "zeta = v - c.v", "zeta = v + c.v")),  # the sign of (3.3)
    ("fedavg_constant_step", OneStep),
    ("fedavg_biased_point", OneStep),
    ("fedadmm_two_clients", OwnModels),
    ("afedpd_small_rho", NoCorrection),
    ("dualfl_corrected_start", AsItIs),
    ("dualfl_corrected_start", ColdStart),
    ("scaffnew_long_step", FirstClient),
]


@pytest.mark.parametrize(("name", "wrong"), WRONG_METHODS)
def test_wrong_methods_are_caught(name: str, wrong: Any) -> None:
    def becomes(case: Any) -> Any:
        return replace(
            case, algorithm=wrong(**{f.name: getattr(case.algorithm, f.name) for f in fields(wrong) if f.init})
        )

    cases = [case for case in telling(name) if isinstance(case.algorithm, wrong.__bases__)]
    assert is_violated(name, map(becomes, cases))


def test_longer_steps_than_stated_are_caught() -> None:
    assert is_violated("fedavg_vanishing_step", map(fedpd.LOCAL["long local steps"], telling("fedavg_vanishing_step")))


def test_every_claim_is_caught() -> None:
    assert {name for name, _, _ in WRONG_FORMS.values()} == set(CHAPTERS)
    assert {name for name, _ in WRONG_METHODS} | {"fedavg_vanishing_step"} == set(CHAPTERS)


# Parameters that Hypothesis draws: u is a place between 0 and 1, a and b are curvatures, and the parameter may lie
# beyond the border. The border itself is avoided, for runs beside it are long.
def beside(border: float, u: float, beyond: bool) -> float:
    return border * (1.1 + 2.0 * u if beyond else 0.9 * u)


def drawn_afedpd(u: float, a: float, b: float, beyond: bool) -> Any:
    concave = -0.9 * a * b / (1.0 + b)
    border = primal_dual.least_rho(a, concave)
    rho = border * (1.1 + 3.0 * u) if beyond else -concave + (border + concave) * (0.1 + 0.8 * u)
    return primal_dual.opposed(rho, (a, concave))


def drawn_fedpd(u: float, a: float, b: float, beyond: bool) -> Any:
    N = 3 + round(3.0 * a)
    border = primal_dual.largest_eta(N)
    eta = 1.1 * border + (0.99 - 1.1 * border) * u if beyond else beside(border, 0.2 + 0.8 * u, False)
    return primal_dual.one_concave(eta, N)


def drawn_large_nu(u: float, a: float, b: float, beyond: bool) -> Any:
    assume(abs(a - b) > 0.1)
    return dualfl.with_nu(beside(dualfl.largest_nu(0.3, a, b), 0.2 + 0.8 * u, beyond), 0.3, (a, b))


def drawn_large_rho(u: float, a: float, b: float, beyond: bool) -> Any:
    q = 0.05 + 0.2 * a
    return dualfl.with_rho(q + (0.99 - q) * u if beyond else q * (0.2 + 0.8 * u), q)


def drawn_fedadmm(u: float, a: float, b: float, beyond: bool) -> Any:
    server_step = 0.6 + 0.4 * min(b / 4.0, 1.0)
    return primal_dual.in_turn(beside(1.0 / (1.0 - 0.5 / server_step), 0.05 + 0.95 * u, beyond), server_step)


def drawn_start(u: float, a: float, b: float, beyond: bool) -> Any:
    kappa = beside(dualfl.largest_kappa(K := 1 + round(a)), 0.5 + 0.5 * u, beyond)
    return dualfl.local_steps(dualfl.FromCorrected, kappa, K, half=True)


DRAWN: dict[str, Callable[[float, float, float, bool], Any]] = {
    "afedpd_small_rho": drawn_afedpd,
    "dualfl_corrected_start": drawn_start,
    "dualfl_large_nu": drawn_large_nu,
    "dualfl_large_rho": drawn_large_rho,
    "fedadmm_two_clients": drawn_fedadmm,
    "fedavg_biased_point": lambda u, a, b, more: averaging.local_steps((0.2 + 1.7 * u) / max(a, b), 1 + more, (a, b)),
    "fedavg_constant_step": lambda u, a, b, beyond: averaging.constant_step(
        a, b, beside(averaging.longest_step(a, b), 0.1 + 0.9 * u, beyond)
    ),
    "fedavg_vanishing_step": lambda u, a, b, half: averaging.vanishing_step(0.05 + 0.2 * u, 1.0 - 0.5 * half, 2, 30),
    "fedpd_large_eta": drawn_fedpd,
    "fedprox_biased_point": lambda u, a, b, _: averaging.proximal(10.0 ** (3.0 * u - 2.0), (a, b)),
    "scaffnew_long_step": lambda u, a, b, beyond: primal_dual.steps_of(
        beside(2.0, 0.1 + 0.9 * u, beyond), 0.05 + 0.9 * u, L=b
    ),
}


def test_every_claim_is_drawn() -> None:
    assert set(DRAWN) == set(CHAPTERS)


@pytest.mark.parametrize("name", DRAWN)
def test_claim_on_drawn_parameters(name: str) -> None:
    @many
    @given(u=st.floats(0.0, 1.0), a=st.floats(0.5, 4.0), b=st.floats(0.5, 4.0), beyond=st.booleans())
    def holds(u: float, a: float, b: float, beyond: bool) -> None:
        verdict = check(CHAPTERS[name].claim, DRAWN[name](u, a, b, beyond))
        assert verdict.verdict == "holds", verdict.witness or verdict.failed

    holds()


def test_fedavg_diverges_on_strongly_convex_problems_too() -> None:
    """Claim II.2 with an E that is x^2/2: for every step there are clients, here for 1e-3."""
    s = 1e-3
    b = 1.1 * math.sqrt(2.0 / s)
    assert averaging.factor(s, 2, 1.0, b) > 1.0 > averaging.factor(s, 2, 1.0, b / 1.2)


def test_fedadmm_ends_at_the_same_wrong_point_in_any_order() -> None:
    """rho = 1.2: the model drifts from 0 to 2.5, past the solution 1."""
    f = scalars([1.0, 1.0], [0.0, 2.0])
    method = FedADMM(rho=1.2, server_step=1.0, solver=Exact())
    ends = [run(method, f, rounds=400, participation=UniformSubset(size=1), seed=seed).theta for seed in range(3)]
    assert np.array(ends).ravel() == pytest.approx(2.5, rel=1e-6)


@pytest.mark.parametrize("N", [3, 4, 6, 11, 40])
def test_fedpd_converges_for_every_smaller_eta(N: int) -> None:
    end = primal_dual.largest_eta(N)
    for eta in end * np.linspace(1e-3, 0.999, 300):
        roots = np.roots(primal_dual.polynomial(1.0 / eta, (2.0 / (N - 1), -1.0), 1.0 - 1.0 / N))
        assert np.max(np.abs(roots)) < 1.0


def test_limits_of_fedpd() -> None:
    ends = [primal_dual.largest_eta(N) for N in (3, 4, 5, 10, 100, 10_000)]
    assert ends[0] == pytest.approx((math.sqrt(17.0) - 1.0) / 4.0)
    assert np.all(np.diff(ends) < 0)
    assert ends[-1] == pytest.approx(0.5, rel=1e-3)
    assert ends[-1] > 0.5 > fedpd_step_limit(1.0)
    for N in (3, 100):
        case = primal_dual.one_concave(0.99, N)
        case.algorithm.check(case.objective)  # raises if a local problem is not strongly convex


def test_least_rho_of_afedpd() -> None:
    """The errata's instance: 1.3 is just too small."""
    assert primal_dual.least_rho(3.0, -1.0) == pytest.approx((math.sqrt(13.0) - 1.0) / 2.0)
    assert 1.3 < primal_dual.least_rho(3.0, -1.0) < 1.4


@pytest.mark.parametrize(("multiple", "verdict"), [(1.3, "holds"), (10.0, "violated")])
def test_theorem_3_3_beyond_its_range(multiple: float, verdict: str) -> None:
    """rho may exceed q by nearly a third, and not by a factor of ten."""
    f = solved("two clients", scalars([1.0, 3.0], [-1.0, 1.0]))
    q = 0.03
    nu = q / float(np.mean(1.0 / f.objective.A))
    case = f.case(exact(f, nu=nu, rho=multiple * q), 60)
    assert check(exact_solutions.theorem_3_3, case).verdict == "outside assumptions"
    assert check(exact_solutions.theorem_3_3, case, check_assumptions=False).verdict == verdict


def test_twenty_steps_are_too_few_for_kappa_100() -> None:
    assert dualfl.worst_factor(100.0, 20) == pytest.approx(1.453, abs=1e-3)
    found = dualfl.worst_curvature(100.0, 20)

    def factor(a: float) -> float:
        return (a - 1.0) * (1.0 - a / 100.0) ** 20

    assert factor(found) > max(factor(0.99 * found), factor(1.01 * found))
