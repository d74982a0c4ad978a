"""docs/how_a_proof_is_found.md: formulas are read from the page and are identities, its code prints what it says."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from contextlib import redirect_stdout
from fractions import Fraction
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy as sp
from sympy.parsing.sympy_parser import implicit_multiplication, parse_expr, standard_transformations

from dualopt import iterate
from dualopt.methods import ConsensusFedSplit
from dualopt.solvers import Exact
from theory._problems import quadratic

PAGE = (Path(__file__).parents[2] / "docs" / "how_a_proof_is_found.md").read_text(encoding="utf-8")
FORMULAS = {tag: body for body, tag in re.findall(r"\$\$([^$]*?)[,.]?\\tag\{(\w+)\}\$\$", PAGE, re.DOTALL)}
IDENTITIES = [tag for tag in FORMULAS if tag.isdigit()]

# Identities between squared norms and inner products hold for vectors exactly if they hold for numbers: both sides are
# polynomials of the second degree in the vectors, and equal coefficients are all that either needs.

GREEK = ("mu", "kappa", "delta", "lambda", "rho", "sigma")
SYMBOLS: dict[str, Any] = {
    name: sp.Symbol(name, positive=True) for name in ("mu", "r", "s", "t", "rho", "lamda", "delta", "sigma", "p", "h")
}
KAPPA: Any = SYMBOLS["r"] ** 2
GIVEN: dict[str, Any] = {"kappa": KAPPA, "L": KAPPA * SYMBOLS["mu"]}
USES = {"4": "abc", "7": "def", "9": "gh", "13": "i", "14": "j"}
NUMBERS: dict[str, tuple[str, dict[str, Any]]] = {
    "5": ("4", {"mu": 1, "r": 3}),
    "8": ("7", {"mu": 1, "r": 3, "s": sp.Rational(1, 6)}),
}


def read(latex: str) -> Any:
    """Read a formula: what LaTeX is used on the page, with products written by juxtaposition."""
    text = re.sub(r"_j|\\quad|\\text\{[^}]*\}", " ", latex)
    text = re.sub(r"\\t?frac(\w)", r"\\frac{\1}", text)
    text = re.sub(r"\\frac\{(\w+)\}(\w|\\[a-z]+)", r"\\frac{\1}{\2}", text)
    text = re.sub(r"\\sqrt(?!\{)(\\[a-z]+)", r"\\sqrt{\1}", text)
    text = re.sub(r"\\sqrt\{([^{}]*)\}", r" sqrt(\1) ", text)
    while "\\frac" in text:
        text, count = re.subn(r"\\frac\{([^{}]*)\}\{([^{}]*)\}", r" ((\1)/(\2)) ", text)
        assert count, text
    text = text.replace(r"\langle", "((").replace(r"\rangle", "))").replace(r"\cdot", "*")
    text = re.sub(r"\|([^|]*)\|", r" (\1) ", text)
    text = re.sub(r"(?<=\(\()([^(),]*),", r"\1)*(", text)  # the comma of an inner product
    for name in GREEK:
        text = text.replace(f"\\{name}", f" {name.replace('lambda', 'lamda')} ")
    words = "|".join(("sqrt", *(name.replace("lambda", "lamda") for name in GREEK)))
    text = re.sub(rf"({words})|([A-Za-z])", r" \1\2 ", text).replace("^", "**").replace("sqrt  (", "sqrt(")
    known = {**SYMBOLS, **GIVEN, "sqrt": sp.sqrt, **{v: sp.Symbol(v) for v in "degemwxyVAB"}}
    return parse_expr(text, local_dict=known, transformations=(*standard_transformations, implicit_multiplication))


def sides(tag: str, latex: str = "") -> tuple[Any, Any]:
    """Return both sides of a formula, with what is defined on the page put in."""
    latex = latex or FORMULAS[tag]
    if r"\text{where}" in latex:  # lhs = rhs where name = value
        latex, _, where = latex.partition(r"\quad\text{where}\quad")
        name, value = map(read, where.split("="))
        left, right = (read(part).subs(name, value) for part in latex.split("="))
    else:
        left, right = map(read, latex.split("="))
    given = dict(definition(key) for key in USES.get(tag, ""))
    for _ in given:  # a definition may use another
        left, right = left.subs(given), right.subs(given)
    return left, right


def definition(tag: str) -> tuple[Any, Any]:
    """Return what is defined, and what it is."""
    name, value = map(read, FORMULAS[tag].split("="))
    assert name.is_Symbol
    return name, value


def holds(tag: str, latex: str = "") -> bool:
    left, right = sides(tag, latex)
    return sp.simplify(left - right) == 0


def flipped(latex: str) -> list[str]:
    """Return the formula with each of its signs turned round."""
    other = {"+": "-", "-": "+"}
    return [latex[: m.start()] + other[m[0]] + latex[m.end() :] for m in re.finditer(r"[+-]", latex)]


def test_the_page_has_these_formulas() -> None:
    assert [str(n) for n in range(1, 15)] == IDENTITIES
    assert sorted(set(FORMULAS) - set(IDENTITIES)) == sorted({key for keys in USES.values() for key in keys})


@pytest.mark.parametrize("tag", IDENTITIES)
def test_a_formula_is_an_identity_and_none_with_another_sign(tag: str) -> None:
    assert holds(tag)
    signs = flipped(FORMULAS[tag])
    assert len(signs) >= 2
    assert [latex for latex in signs if holds(tag, latex)] == []


@pytest.mark.parametrize("key", "abcdefghij")
def test_a_definition_with_another_sign_breaks_its_formula(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (tag,) = (tag for tag, keys in USES.items() if key in keys)
    signs = flipped(FORMULAS[key]) or [FORMULAS[key].replace("=", "= -")]
    for latex in signs:
        with monkeypatch.context() as changed:
            changed.setitem(FORMULAS, key, latex)
            assert not holds(tag), latex


@pytest.mark.parametrize("tag", NUMBERS)
def test_numbers_are_those_of_the_formula(tag: str) -> None:
    """Term by term: the factor, the multiplier and the square, not their sum alone."""
    general, values = NUMBERS[tag]
    numbers = {SYMBOLS[name]: value for name, value in values.items()}
    for part, formula in zip(terms(tag), terms(general), strict=True):
        assert sp.expand(part - formula.subs(numbers)) == 0


def terms(tag: str) -> list[Any]:
    """Return the terms of a formula, before they are added up."""
    latex, given = FORMULAS[tag], dict(definition(key) for key in USES.get(tag, ""))
    places = [m.start() for m in re.finditer(r"[+-]", latex) if outside(latex[: m.start()])]
    left, _, right = latex.partition("=")
    parts = [left[a:b] for a, b in pairwise([0, *(k for k in places if k < len(left)), len(left)])]
    return [read(part).subs(given).subs(given) for part in (*parts, right)]


def outside(latex: str) -> bool:
    """Tell whether what follows stands in no bracket, norm or fraction."""
    pairs = (("{", "}"), ("(", ")"), (r"\langle", r"\rangle"))
    return latex.count("|") % 2 == 0 and all(latex.count(a) == latex.count(b) for a, b in pairs)


# What the text says of the formulas.

mu, r, s, t, delta, rho, lam = (SYMBOLS[name] for name in ("mu", "r", "s", "t", "delta", "rho", "lamda"))
NINE: dict[Any, Any] = {mu: 1, r: 3}


def says(*parts: str) -> None:
    text = " ".join(PAGE.split())
    for part in parts:
        assert part in text, part


def given(key: str) -> Any:
    """Return what is defined under a letter."""
    return sp.simplify(definition(key)[1])


def test_multipliers_and_factors_for_kappa_9() -> None:
    width = (GIVEN["L"] - mu).subs(NINE)
    assert given("a").subs(NINE) == sp.Rational(1, 3)
    assert given("b").subs(NINE) ** 2 == sp.Rational(1, 4)
    assert given("c").subs(NINE) == sp.Rational(1, 12)
    assert given("c").subs(NINE) * width == sp.Rational(2, 3)
    says("we took $\\lambda(L - \\mu)$, which is $\\frac23$", "for $\\kappa = 9$ it is a quarter")
    sixth: dict[Any, Any] = {**NINE, s: sp.Rational(1, 6)}
    assert given("d").subs(sixth) ** 2 == sp.Rational(25, 49)
    assert given("e").subs(sixth) * width == sp.Rational(10, 21)
    says("it finds $\\frac{25}{49}$, and $8\\lambda = \\frac{10}{21}$")
    half: dict[Any, Any] = {t: sp.Rational(1, 2), delta: sp.Rational(1, 2)}
    k = given("i").subs(half)
    assert k**2 == sp.Rational(9, 16)
    assert (k * t / delta).subs(half) * sp.Rational(2, 3) == sp.Rational(1, 2)
    square = sides("13")[1].subs(half)
    e, w = sp.symbols("e w")
    assert sp.expand(square - (e - 2 * w) ** 2 / 8) == 0
    says("$k^2 = \\frac9{16}$", "\\cdot\\frac23 = \\frac12$", "square $\\frac18|e - 2w|^2$")


def test_the_two_steps_agree_where_they_meet() -> None:
    """At the longest step of (d) and (e) they are (b) and (c), and the square is gone; beyond, it is negative."""
    at: dict[Any, Any] = {s: given("a")}
    assert sp.simplify(given("d").subs(at) - given("b")) == 0
    assert sp.simplify(given("e").subs(at) - given("c")) == 0
    factor = given("f")
    assert sp.simplify(factor.subs(at)) == 0
    assert factor.subs({**NINE, s: sp.Rational(1, 6)}) == sp.Rational(9, 196)
    assert factor.subs({**NINE, s: sp.Rational(1, 2)}) < 0
    twice = 2 * given("a")
    steepest = (twice * GIVEN["L"] - 1) / (twice * GIVEN["L"] + 1)
    assert (steepest - given("d").subs(s, twice)).subs(NINE) > 0  # the client with h = L is slower than (d)


def test_the_program_is_solved_by_two_lines() -> None:
    a, b = given("g"), given("h")
    d, g = sp.symbols("d g")
    form = sides("9")[0]
    matrix = sp.Matrix(2, 2, [a, b, b, a])
    v = sp.Matrix([d, g / 3])
    assert sp.expand((v.T * matrix * v)[0] - form) == 0
    assert set(matrix.eigenvals()) == {sp.expand(a + b), sp.expand(a - b)}
    assert sp.solve(a + b, rho) == [3 * lam]
    assert sp.solve(a - b, lam) == [sp.Rational(1, 12)]
    says("\\rho \\ge 3\\lambda, \\qquad \\lambda \\ge \\tfrac1{12}")
    assert (a + b).subs({rho: 1, lam: 0}) > 0  # the sides on which it is semidefinite
    assert (a - b).subs({lam: 1}) > 0


def test_the_end_of_relaxation_and_the_factor_of_cohorts() -> None:
    assert sp.simplify(given("j").subs(t, 2 / (1 + delta))) == 1
    says("$t < 2/(1 + \\delta)$")
    factor = sides("10")[1].subs({SYMBOLS["p"]: sp.Rational(1, 2), delta: sp.Rational(1, 2), sp.Symbol("V"): 1})
    assert factor == sp.Rational(5, 8)
    assert sp.expand(sides("10")[1].subs({delta: sp.Rational(1, 2), sp.Symbol("V"): 1})) == 1 - 3 * SYMBOLS["p"] / 4
    says("the factor is $\\frac58$", "its mean by $1 - \\frac34p$")


def test_kappa_10_has_no_fraction() -> None:
    squared = given("b").subs(r, sp.sqrt(10)) ** 2
    assert sp.simplify(squared - (11 - 2 * sp.sqrt(10)) / (11 + 2 * sp.sqrt(10))) == 0
    assert sp.radsimp(squared).is_rational is False
    says("$\\delta^2 = \\frac{11 - 2\\sqrt{10}}{11 + 2\\sqrt{10}}$")


@pytest.mark.parametrize("h", [1, 9])
def test_quadratic_clients_attain_the_factor(h: int) -> None:
    turned = sides("12")[1].subs({SYMBOLS["h"]: h, s: sp.Rational(1, 3), sp.Symbol("y"): 1})
    assert turned == {1: sp.Rational(1, 2), 9: -sp.Rational(1, 2)}[h]


def test_values_obey_the_inequality_and_the_triangle_attains_it() -> None:
    """One dimension: the slope of f - mu/2 x^2 is level, then rises at the rate L - mu."""
    m, L = 1.0, 9.0

    def f(x: float) -> float:
        return m / 2 * x**2 + (L - m) / 2 * max(x, 0.0) ** 2

    def g(x: float, steep: float = L) -> float:
        return m * x + (steep - m) * max(x, 0.0)

    def slack(x: float, y: float, g: Callable[[float], float] = g) -> float:
        bent = g(x) - g(y) - m * (x - y)
        return f(x) - f(y) - g(y) * (x - y) - m / 2 * (x - y) ** 2 - bent**2 / (2 * (L - m))

    points = np.linspace(-2.0, 2.0, 17).tolist()
    assert min(slack(x, y) for x in points for y in points) >= -1e-12
    assert abs(slack(1.0, -1.0)) < 1e-12
    assert slack(1.0, -1.0, partial(g, steep=9.1)) < -1e-3  # gradients that no function of the class has


def test_a_round_of_the_code_is_the_round_of_the_page() -> None:
    """From d_j + s g_j = 2m - e_j to e_j+ = d_j - s g_j, in several dimensions, and the mean of the limits."""
    case, step = quadratic(), 0.1
    f, best = case.objective, case.theta
    limits = best - step * f.gradient(best)
    np.testing.assert_allclose(f.mean(limits), best, atol=1e-12)
    run = iterate(ConsensusFedSplit(step=step, solver=Exact()), f, theta0=best + 1.0)
    first, second = (next(run).clients for _ in range(2))
    e = first.z - limits
    d = second.x - best
    g = f.gradient(second.x) - f.gradient(best)
    np.testing.assert_allclose(d + step * g, 2 * f.mean(e) - e, atol=1e-12)
    np.testing.assert_allclose(second.z - limits, d - step * g, atol=1e-12)
    assert np.abs(second.z - limits - (d + step * g)).max() > 1e-3


def blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)


def test_the_code_prints_what_the_page_says() -> None:
    names: dict[str, Any] = {}
    assert len(blocks()) == 6
    for block in blocks():
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(block, names)
        said = [line.rpartition("# ")[2] for line in block.splitlines() if "# " in line]
        assert printed.getvalue().splitlines() == said
    assert Fraction(names["proof"]["factor"]) > Fraction(1, 4)
