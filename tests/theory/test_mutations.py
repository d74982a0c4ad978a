"""Every claim can fail: wrong variants of the method, the problem or a formula are caught."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from dualopt.lab.claims import Claim
from dualopt.methods import _dual_parameters
from dualopt.methods._parameters import largest
from dualopt.methods.dualfl import momentum
from tests.theory.mutation_table import TABLES, columns, shrunk, telling, verdicts
from theory._claims import discover, judge
from theory.dualfl import certificates, inexact_solutions, local_steps
from theory.dualfl.duality import Composition
from theory.dualfl.inexact_solutions import envelope
from theory.mutations.dualfl import MUTATIONS, certificate_with_greatest_mu, dual_point_with_greatest_mu

CHAPTERS = discover()

# Formulas of a claim's own, with the wrong value that they get.
FORMULAS = {
    "theorem_3_4": (local_steps, "decreasing_step", lambda mu, k: 1.0 / mu),
    "theorem_3_5": (local_steps, "constant_momentum", lambda q: 0.0 * q),
    "theorem_3_5_target": (local_steps, "constant_momentum", lambda q: 0.0 * q),
    "proposition_6_1": (
        Composition,
        "smooth_conjugate",
        lambda self, p: float(0.5 * (self.c - p) @ np.linalg.solve(self.Q, self.c - p)),
    ),
}
# Functions that the claims on certificates call, with the greatest mu_j in them, and the claims that see it.
CERTIFICATES = {
    "certificate": (certificate_with_greatest_mu, {"dual_certificate", "gradient_certificate"}),
    "dual_point": (dual_point_with_greatest_mu, {"conjugates_of_dual_points"}),
}
# Bounds that are attained: half of them is too little.
TIGHT = {
    "dual_certificate",
    "gap_3_6",
    "gradient_certificate",
    "momentum_3_4",
    "relations_6_13_and_6_14",
    "theorem_3_2",
    "theorem_3_3",
}
# Theorems with inexact rounds on regularised clients, and the wrong variant that breaks them.
REGULARISED = {name: "wrong sign in (3.3)" for name in ("theorem_4_1_inexact", "theorem_4_2_inexact")}


def is_caught(claim: Claim, cases: Iterator[Any]) -> bool:
    return any(v.verdict != "holds" for v in verdicts(claim, cases))


@pytest.mark.parametrize("name", FORMULAS)
def test_wrong_formulas_are_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*FORMULAS[name])
    monkeypatch.setattr(local_steps, "LIMIT", 1000)
    assert is_caught(CHAPTERS[name].claim, telling(name))


@pytest.mark.parametrize(
    ("function", "name"), [(f, name) for f, (_, names) in CERTIFICATES.items() for name in sorted(names)]
)
def test_the_greatest_mu_in_certificates_is_caught(function: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificates, function, CERTIFICATES[function][0])
    assert any(v.verdict == "violated" for v in verdicts(CHAPTERS[name].claim, telling(name)))


def test_a_suggestion_with_the_greatest_mu_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is outside the assumptions of the theorem, and breaks its bound."""
    monkeypatch.setattr(_dual_parameters, "smallest", largest)
    with np.errstate(all="ignore"):
        wrong = [result for result in judge(CHAPTERS["theorem_3_3"], quick=True) if not result.as_expected]
    assert [result.verdict.verdict for result in wrong] == ["outside assumptions"]
    suggested = [case for case, _ in CHAPTERS["theorem_3_3"].cases(True) if case.name == wrong[0].verdict.case]
    assert [v.verdict for v in verdicts(CHAPTERS["theorem_3_3"].claim, iter(suggested))] == ["violated"]


@pytest.mark.parametrize("name", ["proposition_6_2", "proposition_6_3", "theorem_3_3_inexact"])
def test_the_bound_needs_the_errors(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        inexact_solutions, "envelope", lambda errors, **known: envelope((0.0 * e for e in errors), **known)
    )
    assert any(v.verdict == "violated" for v in verdicts(CHAPTERS[name].claim, telling(name)))


@pytest.mark.parametrize("name", sorted(TIGHT))
def test_attained_bounds_cannot_be_halved(name: str) -> None:
    assert any(v.verdict == "violated" for v in verdicts(shrunk(CHAPTERS[name].claim, 0.5), telling(name)))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda t, rho: momentum(t, 0.9 * rho),
        lambda t, rho: (momentum(t, rho)[0], 0.0),
        lambda t, rho: (momentum(t, rho)[0], momentum(momentum(t, rho)[0], rho)[1]),
        lambda t, rho: (0.5 * (1.0 + (1.0 + 4.0 * t * t) ** 0.5), momentum(t, rho)[1]),
    ],
    ids=["smaller rho", "beta = 0", "beta early", "t without rho"],
)
def test_wrong_momentum_is_caught(wrong) -> None:
    claim = CHAPTERS["momentum_3_4"].claim
    assert is_caught(claim, (case._replace(momentum=wrong) for case in telling("momentum_3_4")))


@pytest.mark.parametrize("name", ["theorem_3_2_inexact", "theorem_3_3_inexact"])
def test_loose_local_solutions_make_the_inexact_theorems_vacuous(name: str) -> None:
    """The bound is made of the errors that were made: it stays true and becomes empty."""
    mutated = map(MUTATIONS["loose local solutions"], (case for case in telling(name) if math.isfinite(case.L)))
    found = [v.verdict for v in verdicts(CHAPTERS[name].claim, mutated)]
    assert "vacuous" in found
    assert "violated" not in found


@pytest.mark.parametrize("name", REGULARISED)
def test_wrong_variants_break_the_theorems_on_regularised_clients(name: str) -> None:
    mutated = map(MUTATIONS[REGULARISED[name]], telling(name))
    assert any(v.verdict == "violated" for v in verdicts(CHAPTERS[name].claim, mutated))


def test_every_claim_is_caught_by_some_mutation() -> None:
    covered = set(columns(TABLES["DualFL"])).union(*(names for _, names in CERTIFICATES.values()))
    covered |= set(FORMULAS) | TIGHT | set(REGULARISED)
    assert covered == {name for name, chapter in CHAPTERS.items() if chapter.selection == "dualfl"}
