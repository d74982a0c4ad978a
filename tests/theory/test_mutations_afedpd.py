"""Every claim on A-FedPD and every identity can fail: wrong methods, data and constants are caught."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.optimize import brentq

from dualopt.lab.chance import Branch
from dualopt.lab.claims import Claim
from dualopt.objectives import linear_model
from tests.theory.mutation_table import TABLES, columns, shrunk, telling, verdicts
from theory._cases import Case
from theory._claims import discover
from theory._rounds import histories, mean_square_radius
from theory.afedpd import composite, inexact, optimization
from theory.afedpd._runs import (
    afedpd_case,
    fixed_point,
    matrices,
    one_concave,
    path,
    pulled_apart,
    squared_gradients,
    start_vector,
    two_signs,
)
from theory.afedpd.partial import all_gradients
from theory.identities import splitting, states
from theory.mutations import feddyn

CHAPTERS = discover()


# Names in a claim's module, and what wrongly stands for them.
FORMULAS = {
    "identity_feddyn_rows": (
        states,
        "linear_model",
        lambda *rows, client_weights, **others: linear_model(*rows, **others),
    ),
    "identity_point_saga": (splitting, "FedDyn", feddyn.MUTATIONS["no h"].wrong()),  # pyright: ignore[reportOptionalCall]
    "identity_douglas_rachford": (splitting, "FedDyn", feddyn.MUTATIONS["half the memory"].wrong()),  # pyright: ignore[reportOptionalCall]
    "afedpd_theorem_1": (optimization, "gradient_constant", lambda rho, L: 0.1 * rho),
    "afedpd_descent": (optimization, "descent_constant", lambda rho, L: 0.5 * (rho - L)),
    "afedpd_equation_6": (composite, "models", lambda case, right=composite.models, **_: right(case, as_printed=True)),
    "afedpd_remark_1_2": (inexact, "decreasing_step", lambda k, m, M: 0.5 / M),
}
# Bounds that are attained: half of them is too little.
TIGHT = {
    "afedpd_descent",
    "afedpd_descent_inexact",
    "afedpd_lemma_1",
    "afedpd_lemma_2",
    "afedpd_lemma_3",
    "afedpd_lemma_4",
    "afedpd_recursion",
    "afedpd_theorem_1_partial",
}


def is_caught(claim: Claim) -> bool:
    return any(v.verdict != "holds" for v in verdicts(claim, telling(claim.name)))


@pytest.mark.parametrize("name", FORMULAS)
def test_wrong_formulas_are_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*FORMULAS[name])
    assert is_caught(CHAPTERS[name].claim)


@pytest.mark.parametrize("name", sorted(TIGHT))
def test_attained_bounds_cannot_be_halved(name: str) -> None:
    assert is_caught(shrunk(CHAPTERS[name].claim, 0.5))


def test_every_claim_is_caught_by_some_mutation() -> None:
    covered = set(columns(TABLES["A-FedPD, FedADMM, identities"])) | set(FORMULAS) | TIGHT
    assert covered == {name for name, chapter in CHAPTERS.items() if chapter.selection in ("afedpd", "identities")}


def test_errata_have_both_forms() -> None:
    """The printed form fails, the corrected one holds: ``test_verdicts`` judges whether they do."""
    found = {name: chapter for name, chapter in CHAPTERS.items() if re.match(r"a\d", name)}
    assert {name.partition("_")[0] for name in found} == {f"a{number}" for number in range(1, 12)}
    for chapter in found.values():
        expected = {(form.name.startswith("as printed"), verdict) for form, verdict in chapter.cases(True)}
        assert expected == {(True, "violated"), (False, "holds")}


@pytest.mark.parametrize("seed", range(3))
def test_all_gradients_are_the_sum_over_the_rounds(seed: int) -> None:
    """The equation for Y, beside the moments of 3000 rounds."""
    start = np.random.default_rng(seed).standard_normal(1)
    case = afedpd_case(pulled_apart(4), rho=3.0, active=2, rounds=3000, theta0=start)
    w = (start_vector(case) - fixed_point(case))[:-1]
    assert w @ all_gradients(case) @ w == pytest.approx(sum(squared_gradients(case)), rel=1e-9)


def test_the_error_term_cannot_vanish_with_rho() -> None:
    """A9: a constant residual leaves |grad E|^2 = epsilon, whatever rho is."""
    for case, _ in CHAPTERS["a9_error_term"].cases(True):
        last = path(case.case)[-1].taken.bar
        assert case.case.squared_gradient(last) == pytest.approx(0.09, rel=1e-6)


def radius(case: Case) -> float:
    return mean_square_radius(matrices(case))


@pytest.mark.parametrize("n", [3, 5, 10, 50])
def test_the_end_of_the_range_is_where_the_derivation_says(n: int) -> None:
    """A factor -1 per round for one concave client of n, at the root of the equation in afedpd_range_of_rho."""
    excess = 0.1

    def equation(u: float) -> float:
        v = (1.0 + excess) * u / (n - 1)
        return (1.0 + u) / (2.0 * u - 1.0) - n - (n - 1) * (1.0 - v) / (1.0 + 2.0 * v)

    rho = 1.0 / float(brentq(equation, 0.5 + 1e-9, 1.2))  # pyright: ignore[reportArgumentType]
    f = one_concave(n, excess=excess)
    factors = [radius(afedpd_case(f, rho=c * rho, active=n, rounds=1)) for c in (0.999, 1.0, 1.001)]
    assert factors[0] > 1.0
    assert factors[1] == pytest.approx(1.0, abs=1e-9)
    assert factors[2] < 1.0


def test_two_clients_of_opposite_curvature() -> None:
    """Where A-FedPD begins to converge on 3x^2/2 and -x^2/2, far below the range that can be proved."""
    rhos = (1.2, 1.3, 1.4)
    radii = [radius(afedpd_case(two_signs(), rho=rho, active=2, rounds=1)) ** 0.5 for rho in rhos]
    assert radii == pytest.approx([1.195, 1.004, 0.892], abs=1e-3)


def test_exact_moments_are_those_of_all_paths() -> None:
    """Three rounds with two of three clients, enumerated."""
    case = afedpd_case(pulled_apart(3), rho=2.0, active=2, rounds=3)
    expected = list(histories(case))

    def square(b: Branch) -> float:
        return case.squared_gradient(b.state.server.theta - b.state.clients.dual.mean(axis=0) / case.rho)

    means = [E[square] for E in expected]
    assert [len(E.found) for E in expected] == [3, 9, 27]
    assert list(squared_gradients(case)) == pytest.approx(means, rel=1e-12)


def test_duals_stay_equal_with_one_active_client() -> None:
    duals = path(afedpd_case(pulled_apart(3), rho=4.0, active=1, rounds=20))[-1].taken.duals
    np.testing.assert_allclose(duals, np.broadcast_to(duals[0], duals.shape), rtol=0, atol=1e-14)
