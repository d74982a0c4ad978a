"""The proved best parameters: those of theorems where these are attained, and better ones where they are not."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

pytest.importorskip("cvxpy")

from dualopt.engine.rounds import resolve
from dualopt.lab.proofs import _best, class_of, prove, proved_best, with_numbers
from dualopt.lab.proofs._best import _first_best, _Search, fastest
from dualopt.methods import FedDyn, FedSplit, GradientDescent
from dualopt.methods.participation import UniformSubset
from dualopt.objectives import Quadratic
from dualopt.objectives.composite import Composite
from dualopt.regularisers import L1
from dualopt.solvers import Gradient

TWO = UniformSubset(size=2)
NINE = {"mu": 1.0, "L": 9.0, "clients": 3}

CLOSED = [  # the parameters, factor and theorem where one is attained, for kappa = 9
    ("fedsplit", {"step": 1 / 3}, 0.25, "Theorem B"),
    ("feddyn", {"alpha": 3.0}, 0.5625, "Theorem B"),
    ("fedpd", {"eta": 1 / 3}, 0.5625, "Theorem B"),
    ("a-fedpd", {"rho": 3.0}, 0.5625, "Theorem B"),
    ("feddr", {"eta": 1 / 3, "relaxation": 2.0}, 0.25, "Theorem B"),
    ("fivegcs", {"gamma": 8**-0.5, "tau": 8**0.5 / 3, "mu": 1.0}, (8**0.5 / (1 + 8**0.5)) ** 2, "Theorem H"),
    ("scaffnew", {"solver.step": 0.2}, 0.64, "the method's theorem"),
]


@pytest.mark.parametrize(("name", "numbers", "factor", "source"), CLOSED, ids=[name for name, *_ in CLOSED])
def test_theorems_that_are_attained_have_the_word(name: str, numbers: dict, factor: float, source: str) -> None:
    found = proved_best(name, **NINE)
    assert found.parameters == pytest.approx(numbers, rel=1e-12)
    assert found.factor == pytest.approx(factor, rel=1e-12)
    assert found.source == source
    assert found.suggested == (None if name == "feddr" else found.factor) or name == "feddr"
    assert "proved for this class alone" not in str(found)


def test_a_better_weight_than_that_of_theorem_a_is_found() -> None:
    what = {"mu": 1.0, "L": 10.0, "clients": 4, "participation": TWO}
    found, suggested = proved_best("feddyn", **what), prove("feddyn", **what)
    assert found.source == ""
    assert found.suggested == pytest.approx(suggested.factor, abs=2e-5)
    assert 1.0 - found.factor > 1.002 * (1.0 - suggested.factor)
    alpha = found.parameters["alpha"]
    assert prove(found.algorithm, **what).factor == pytest.approx(found.factor, abs=2e-5)
    for times in (0.9, 1.1):
        assert prove(FedDyn(alpha=times * alpha), **what).factor > found.factor + 1e-3
    assert f"alpha = {alpha:.6g}" in str(found)
    assert "subset: size=2" in str(found)
    assert found.to_json()["parameters"] == {"alpha": alpha}


def test_a_longer_step_than_that_suggested_is_found() -> None:
    """Gradient descent suggests 1/L, and 2/(mu + L) is the best step, up to where the search ends."""
    found = proved_best("gradient-descent", **NINE)
    assert found.parameters["step"] == pytest.approx(0.2, rel=2e-3)
    assert found.factor == pytest.approx(0.64, abs=1e-3)
    assert found.suggested == pytest.approx((8 / 9) ** 2)


def test_numbers_that_are_given_stay() -> None:
    found = proved_best("fivegcs: mu=0.5", mu=1.0, L=9.0, clients=2)
    assert set(found.parameters) == {"gamma", "tau"}
    complete: Any = resolve(found.algorithm, Quadratic(A=np.array([[[1.0]], [[9.0]]]), b=np.zeros((2, 1))))
    assert complete.mu == 0.5


@pytest.mark.parametrize(
    ("name", "others", "words"),
    [
        ("feddyn: alpha=3", {}, "FedDyn has no number open"),
        ("feddyn", {"mu": 0.0}, "mu and L must be positive and finite"),
        ("feddyn", {"L": math.inf}, "mu and L must be positive and finite"),
        ("fedprox", {}, "must have the minimiser as a fixed point"),
        ("fedsam", {}, "must be linear algebra"),
        ("growing-feddyn", {}, "must do the same in every round"),
    ],
)
def test_refusals(name: str, others: dict, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        proved_best(name, **{**NINE, **others})


def test_what_is_not_proved_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither by a theorem, nor by a program of any member."""

    def fails(*args: Any, **options: Any) -> Any:
        raise RuntimeError("the solver is too inexact.")

    monkeypatch.setattr(_best, "prove", fails)
    monkeypatch.setattr(_best, "promised", lambda *args: [])
    sentence = r"^algorithm FedDyn has no proved best parameters here: no factor below 1 was proved\.$"
    with pytest.raises(ValueError, match=sentence):
        proved_best("feddyn", **NINE)


@dataclass(frozen=True, kw_only=True)
class WithOther(FedSplit):
    """FedSplit with a theorem that is about another form of it."""

    theorems: ClassVar[Any] = (
        *FedSplit.theorems,
        replace(
            next(t for t in FedSplit.theorems if t.best is not None and not t.compressed),
            about=lambda method, known: False,
            best=lambda known: {"step": 1e-3},
        ),
    )


def test_parameters_of_theorems_about_something_else_are_not_tried() -> None:
    for method in (FedSplit(), WithOther()):
        search = _Search(method, dict(NINE), inexact=False)
        found: list[Any] = [resolve(candidate, search.clients) for candidate in search.candidates()]
        assert [candidate.step for candidate in found] == pytest.approx([1 / 3])


def test_the_class_of_an_objective_has_all_its_clients() -> None:
    f = Quadratic(A=np.array([np.diag([1.0, 2.0]), np.diag([3.0, 8.0])]), b=np.zeros((2, 2)), weights=(1.0, 3.0))
    assert class_of(f) == {"mu": 1.0, "L": 8.0, "clients": 2, "weights": (1.0, 3.0), "regulariser": None}
    assert class_of(Composite(objective=f, regulariser=L1(weight=0.1)))["regulariser"] == 0.0


def test_numbers_are_put_where_they_belong() -> None:
    method = with_numbers(GradientDescent(), {"step": 0.25})
    assert method == GradientDescent(step=0.25)
    assert with_numbers(FedDyn(solver=Gradient(max_iter=3)), {"solver.step": 0.5}).solver == Gradient(
        step=0.5, max_iter=3
    )


def test_a_later_factor_is_better_only_if_it_gains() -> None:
    assert _first_best([(0.9, ""), (0.8999, ""), (0.85, ""), (0.84995, ""), (0.86, "")]) == 2
    assert _first_best([(math.inf, ""), (0.99, "")]) == 1


def test_the_search_goes_on_where_there_is_no_member() -> None:
    """From a start without a rate, and past numbers that are out of range."""
    found = fastest(lambda x: math.inf if x[0] > 1.2 else 1.5 - x[0] if x[0] < 0.6 else 0.5 + (x[0] - 1) ** 2, [0.1])
    assert found[0] == pytest.approx(1.0, abs=5e-3)
