"""The checker by itself: what it computes, what it takes for numbers and lists, and what it says of files."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dualopt.lab.proofs import checker
from dualopt.lab.proofs.checker import RefusedError
from theory.proofs import FOLDER

SOME = ("gradient_descent", "dualfl_late", "feddyn_1_of_4", "sampled_dualfl_2_of_4_late")


def proof(name: str) -> Any:
    return json.loads((FOLDER / f"{name}.json").read_text())


@pytest.mark.parametrize("name", SOME)
def test_proofs_of_theory_prove_their_factor_and_none_that_is_much_less(name: str) -> None:
    given = proof(name)
    rho = Fraction(given["factor"])
    assert checker.check(given) == rho
    with pytest.raises(
        RefusedError, match=r"^V is not shown to fall by the factor: what remains is no sum of squares\.$"
    ):
        checker.check(given | {"factor": str(rho * Fraction(999, 1000))})
    with pytest.raises(RefusedError, match=r"^V is not shown to be at least \|theta - theta\*\|\^2\.$"):
        checker.check(given | {"model": [str(1000 * Fraction(x)) for x in given["model"]]})


class Lopsided:
    """Something of the form of a proof, of no two equal parts, and what the checker must make of it."""

    D = 7
    mu, L = ("0", "1/2", "2"), (None, "3", "5/2")
    latest, latest_after = [1, 0, 3], [[2, 1, 1], [0, 1, 2]]
    n_points = (3, 2, 4)
    chances = ("1/3", "2/3")
    rho = "4/5"

    def __init__(self) -> None:
        rng = np.random.default_rng(0)

        def some(*shape: int) -> Any:
            if not shape:
                return str(Fraction(int(rng.integers(-9, 10)), int(rng.integers(1, 8))))
            return [some(*shape[1:]) for _ in range(shape[0])]

        def symmetric(n: int) -> list[list[str]]:
            W = some(n, n)
            return [[W[max(a, b)][min(a, b)] for b in range(n)] for a in range(n)]

        def rows(j: int, count: int) -> list[list[Any]]:
            n = self.n_points[j]
            return [[int(rng.integers(n)), int(rng.integers(n)), some().lstrip("-")] for _ in range(count)]

        sizes, groups, D = (1, 3), (1, 2), self.D

        def state() -> list[Any]:
            return [some(k, n, D) for n, k in zip(sizes, groups, strict=True)]

        points = [some(n, 2, D) for n in self.n_points]
        for own in points:
            own[0][0] = ["0"] * D
        self.data: dict[str, Any] = {
            "statement": {"clients": [{"mu": m, "L": M, "weight": "1"} for m, M in zip(self.mu, self.L, strict=True)]},
            "dimension": D,
            "model": some(D),
            "before": state(),
            "latest": self.latest,
            "after": [
                {"probability": p, "state": state(), "latest": latest}
                for p, latest in zip(self.chances, self.latest_after, strict=True)
            ],
            "points": points,
            "weights": [symmetric(n) for n in sizes],
            "heights": some(3),
            "multipliers": [rows(0, 2), rows(1, 1), rows(2, 3)],
            "positive": [rows(0, 0), rows(1, 2), rows(2, 1)],
            "factor": self.rho,
        }

    def expected(self) -> list[tuple[np.ndarray, dict[tuple[int, int], float]]]:
        """Return the two forms, as matrices and coefficients of the values of functions, in dense arithmetic."""
        data, D = self.data, self.D
        number = np.vectorize(lambda x: float(Fraction(x)), otypes=[float])
        points = [number(own) for own in data["points"]]

        def V(state: Any, latest: list[int]) -> tuple[np.ndarray, dict[tuple[int, int], float]]:
            M, values = np.zeros((D, D)), {}
            for W, groups in zip(data["weights"], state, strict=True):
                for group in groups:
                    for a, u in enumerate(number(group)):
                        for b, v in enumerate(number(group)):
                            M += float(Fraction(W[a][b])) * np.outer(u, v)
            for j, p in enumerate(latest):
                h = float(Fraction(data["heights"][j]))
                values[j, p] = h
                M -= h * np.outer(points[j][0, 1], points[j][p, 0])
            return M, values

        def weighed(*parts: tuple[float, tuple[np.ndarray, dict]]) -> tuple[np.ndarray, dict[tuple[int, int], float]]:
            total, values = np.zeros((D, D)), {}
            for c, (M, own) in parts:
                total = total + c * M
                for key, h in own.items():
                    values[key] = values.get(key, 0.0) + c * h
            return (total + total.T) / 2, {key: h for key, h in values.items() if key[1]}

        def inequality(j: int, a: int, b: int) -> tuple[np.ndarray, dict[tuple[int, int], float]]:
            (x, g), (y, h), mu, L = points[j][a], points[j][b], float(Fraction(self.mu[j])), self.L[j]
            M = -np.outer(h, x - y) - mu / 2 * np.outer(x - y, x - y)
            if L is not None:
                bent = g - h - mu * (x - y)
                M -= np.outer(bent, bent) / (2 * (float(Fraction(L)) - mu))
            return M, {} if a == b else {(j, a): 1.0, (j, b): -1.0}

        def all_of(given: Any) -> list[tuple[float, Any]]:
            return [(-float(Fraction(m)), inequality(j, a, b)) for j, own in enumerate(given) for a, b, m in own]

        before, model = V(data["before"], data["latest"]), number(data["model"])
        ends = [(-float(Fraction(end["probability"])), V(end["state"], end["latest"])) for end in data["after"]]
        falls = weighed((float(Fraction(self.rho)), before), *ends, *all_of(data["multipliers"]))
        square = np.outer(model, model), {}
        return [falls, weighed((1.0, before), (-1.0, square), *all_of(data["positive"]))]


def test_forms_are_those_of_the_docstring(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is written: rho V - E V_after - sum m I_ab, and V - |theta - theta*|^2 - sum m' I_ab."""
    given, found = Lopsided(), []
    monkeypatch.setattr(checker.Form, "is_sum_of_squares", lambda form: found.append(form) or True)
    assert checker.check(given.data) == Fraction(4, 5)
    for form, (M, values) in zip(found, given.expected(), strict=True):
        np.testing.assert_allclose(np.array(form.matrix, dtype=float), M, atol=1e-9)
        assert {key: float(x) for key, x in form.values.items() if x} == pytest.approx(
            {key: x for key, x in values.items() if x}
        )
    given.data["heights"] = None
    found.clear()
    checker.check(given.data)
    assert set(found[1].values) == {
        (j, k) for j, own in enumerate(given.data["positive"]) for row in own for k in row[:2] if k
    }


@pytest.mark.parametrize(
    ("path", "x", "sentence"),
    [
        (("statement", "clients", 0, "L"), "0", "L must be greater than mu, for every client."),
        (("statement", "clients", 2, "mu"), "5/2", "L must be greater than mu, for every client."),
        (("statement", "clients", 0, "mu"), "-1/9", "mu must be at least 0."),
        (("statement", "clients", 1), {"mu": "1"}, "a client must be an object that has 'L'."),
        (("statement", "clients"), {}, "clients must be a list."),
        (("statement", "clients"), [], "clients must not be empty."),
        (("statement",), [], "statement must be an object that has 'clients'."),
        (("dimension",), 121, "dimension must be a whole number of at least 0 and below 121."),
        (("dimension",), -1, "dimension must be a whole number of at least 0 and below 121."),
        (("dimension",), True, "dimension must be a whole number of at least 0 and below 121."),
        (("dimension",), "7", "dimension must be a whole number of at least 0 and below 121."),
        (("model",), ["0"] * 6, "model must have 7 entries."),
        (("model", 3), "1.5", "model must be a fraction in text, such as '3/4'."),
        (("model", 3), 1, "model must be a fraction in text, such as '3/4'."),
        (("model", 3), "1/0", "model must be a fraction with a positive denominator."),
        (("model", 3), "+1", "model must be a fraction in text, such as '3/4'."),
        (("model", 3), "1/-2", "model must be a fraction in text, such as '3/4'."),
        (("model", 3), "1\n", "model must be a fraction in text, such as '3/4'."),
        (("model", 3), "9" * 61, "model must be a fraction in text, such as '3/4'."),
        (("weights", 1, 0, 2), "77", "weights must be symmetric."),
        (("weights", 1, 1), ["0", "0"], "weights must have 3 entries."),
        (("multipliers", 2), [[0, 0, "0"]] * 2001, "multipliers must be a list."),
        (("points", 2, 0, 0, 6), "1/5", "points must begin with the minimiser, whose place is zero."),
        (("points", 1), [], "points must begin with the minimiser, whose place is zero."),
        (("points", 1, 1), [["0"] * 7], "points must have 2 entries."),
        (("points", 1, 1, 1), ["0"] * 8, "points must have 7 entries."),
        (("points",), [], "points must have 3 entries."),
        (("heights",), ["1", "2"], "heights must have 3 entries."),
        (("heights", 1), 2, "heights must be a fraction in text, such as '3/4'."),
        (("latest",), [0, 0], "latest must have 3 entries."),
        (("latest", 1), 2, "latest must be a whole number of at least 0 and below 2."),
        (("latest", 1), -1, "latest must be a whole number of at least 0 and below 2."),
        (("after", 1, "latest", 0), 3, "latest must be a whole number of at least 0 and below 3."),
        (("after", 1, "probability"), "1", "probabilities must add up to 1."),
        (("after", 1, "state"), [], "state must have 2 entries."),
        (("before", 1, 1), [], "before must have 3 entries."),
        (("before", 1, 1, 2), ["0"], "before must have 7 entries."),
        (("multipliers",), [[], []], "multipliers must have 3 entries."),
        (("multipliers", 2, 1, 0), 4, "point must be a whole number of at least 0 and below 4."),
        (("multipliers", 2, 1, 1), -1, "point must be a whole number of at least 0 and below 4."),
        (("multipliers", 2, 1, 2), "-1/99", "multipliers must be at least 0."),
        (("positive", 1, 0, 2), "-1/99", "multipliers must be at least 0."),
        (("positive", 1, 0), [0, 1], "multipliers must have 3 entries."),
        (("factor",), "1", "factor must be at least 0 and less than 1."),
        (("factor",), "-1/99", "factor must be at least 0 and less than 1."),
        (("factor",), None, "factor must be a fraction in text, such as '3/4'."),
    ],
)
def test_parts_of_another_form_are_refused(path: tuple[Any, ...], x: Any, sentence: str) -> None:
    data = deepcopy(Lopsided().data)
    part = data
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = x
    with pytest.raises(RefusedError) as error:
        checker.check(data)
    assert str(error.value) == sentence


@pytest.mark.parametrize("probabilities", [("4/3", "-1/3"), ("-1/3", "4/3")])
def test_negative_probabilities_are_refused(probabilities: tuple[str, str]) -> None:
    data = Lopsided().data
    for end, p in zip(data["after"], probabilities, strict=True):
        end["probability"] = p
    with pytest.raises(RefusedError, match=r"^probabilities must be at least 0\.$"):
        checker.check(data)


def test_the_borders_of_what_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checker.Form, "is_sum_of_squares", lambda form: True)
    borders: list[tuple[tuple[Any, ...], Any]] = [
        (("factor",), "0"),
        (("factor",), "999/1000"),
        (("model", 3), "9" * 60 + "/" + "9" * 60),
        (("model", 3), "-0/7"),
        (("model", 3), "3/1"),
        (("multipliers", 2, 1, 2), "0"),
        (("multipliers", 2, 1, 0), 3),
        (("statement", "clients", 1, "mu"), "299/100"),
        (("heights",), []),
        (("multipliers", 2), [[0, 0, "0"]] * 2000),
    ]
    for path, x in borders:
        data = deepcopy(Lopsided().data)
        part: Any = data
        for key in path[:-1]:
            part = part[key]
        part[path[-1]] = x
        assert checker.check(data) == Fraction(data["factor"])
    one_end = Lopsided().data
    one_end["after"] = [one_end["after"][0] | {"probability": "1"}, one_end["after"][1] | {"probability": "0"}]
    assert checker.check(one_end) == Fraction(one_end["factor"])
    empty: Any = {"statement": {"clients": [{"mu": "0", "L": None}]}, "dimension": 0, "model": [], "before": []}
    empty |= {"after": [{"probability": "1", "state": []}], "points": [[[[], []]]], "weights": [], "heights": None}
    assert checker.check(empty | {"multipliers": [[]], "positive": [[]], "factor": "0"}) == 0


def test_numbers_of_a_large_common_denominator_are_refused() -> None:
    """Denominators of 57 digits with no large common factor: four of them are few enough, twelve are not."""
    odd = [10**19 + 51 + 2 * k for k in range(12)]
    data = Lopsided().data
    data["statement"]["of no interest"] = [f"1/{p**3}" for p in odd[:4]]
    with pytest.raises(RefusedError, match="V is not shown"):
        checker.check(data)
    data["statement"]["of no interest"] = {"deep": [*([f"1/{p**3}"] for p in odd), "1/0"]}
    with pytest.raises(RefusedError, match=r"^numbers must have a smaller common denominator\.$"):
        checker.check(data)


def test_files_are_proofs_or_refused_in_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    right = FOLDER / "gradient_descent.json"
    rho = Fraction(proof("gradient_descent")["factor"])
    said = f"{right}: proved: the mean of V falls by {rho} = {float(rho):.6f} per round\n"
    assert checker.main([str(right), str(right)]) == 0
    assert capsys.readouterr().out == 2 * said
    wrong = tmp_path / "wrong.json"
    wrong.write_text(json.dumps(proof("gradient_descent") | {"factor": "1/99"}))
    assert checker.main([str(wrong), str(right), str(tmp_path / "none.json")]) == 1
    first, second, third = capsys.readouterr().out.splitlines()
    assert re.fullmatch(re.escape(str(wrong)) + r": refused: V is not shown to fall by the factor.*\.", first)
    assert second + "\n" == said
    assert third.endswith("none.json: refused: proof cannot be read: No such file or directory.")
    text = json.dumps(proof("gradient_descent"))
    wrong.write_text(text + " " * (checker.MOST_BYTES - len(text)))
    assert checker.check(checker.read(str(wrong))) == rho
    wrong.write_text(text + " " * (checker.MOST_BYTES + 1 - len(text)))
    with pytest.raises(RefusedError, match=f"^proof must be a file of at most {checker.MOST_BYTES} bytes"):
        checker.read(str(wrong))
