"""Rates that users type: what they mean, and what is refused."""

from __future__ import annotations

import math

import pytest

from dualopt.lab.verification.claimed_rate import parse_rate

VALUES = {"kappa": 100.0, "mu": 0.5, "L": 50.0, "N": 8.0, "P": 2.0}


@pytest.mark.parametrize(
    ("text", "law", "value"),
    [
        ("1/n^2", "sublinear", 2.0),
        ("1/n**0.5", "sublinear", 0.5),
        ("4*L/(mu*(n+1)^2)", "sublinear", 2.0),
        ("1e300*C/n", "sublinear", 1.0),
        ("sqrt(1/n)", "sublinear", 0.5),
        ("1/n + 1/n^2", "sublinear", 1.0),
        ("min(1/n, 1/n^2)", "sublinear", 2.0),
        ("max(1/n, 0.5^n)", "sublinear", 1.0),
        ("(1-1/sqrt(kappa))^n", "linear", 0.9),
        ("7*(1-1/kappa)^(2*n)", "linear", 0.99**2),
        ("exp(-n/sqrt(kappa))", "linear", math.exp(-0.1)),
        ("(1 - P/(N*sqrt(kappa)))^n", "linear", 0.975),
        ("(1+sqrt(mu/L))^-n", "linear", 1 / 1.1),
        ("n^3*0.5^n", "linear", 0.5),
        ("min(1/n^2, 0.75^n)", "linear", 0.75),
    ],
)
def test_the_law_of_a_rate(text, law, value):
    speed = parse_rate(text).speed(VALUES)
    assert speed.law == law
    assert speed.value == pytest.approx(value, rel=1e-4)


def test_rates_far_out_do_not_underflow():
    assert parse_rate("2*0.9^n").log(10**6, {}) == pytest.approx(math.log(2) + 10**6 * math.log(0.9))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3/(n+1)^2", lambda n: 3 / (n + 1) ** 2),
        ("2*L/(mu*n) + 1/n^2", lambda n: 200 / n + 1 / n**2),
        ("1/n^2 + 5/n", lambda n: 1 / n**2 + 5 / n),
        ("min(7/n, 1/sqrt(n))", lambda n: min(7 / n, n**-0.5)),
        ("max(7/n, 1/sqrt(n))", lambda n: max(7 / n, n**-0.5)),
        ("exp(-n/kappa)*sqrt(n)", lambda n: math.exp(-n / 100) * math.sqrt(n)),
        ("(1 - P/(N*sqrt(kappa)))^(2*n)", lambda n: 0.975 ** (2 * n)),
        ("log(n + 2)/n", lambda n: math.log(n + 2) / n),
        ("1/(n - min(mu, max(1/4, 1/8)))", lambda n: 1 / (n - 0.25)),
        ("C/(n*-(0-2))", lambda n: 1 / (2 * n)),
    ],
)
def test_the_value_of_a_rate(text, value):
    for n in (1, 2, 10, 100):
        found = parse_rate(text).log(n, VALUES)
        assert found == pytest.approx(math.log(value(n)), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "rate must have 1 to 200 characters"),
        ("1/n^^2", "rate must be a formula such as"),
        ("1/n^2)", "rate must be a formula such as"),
        ("1/k^2", 'rate may use .*, not "k"'),
        ("1/n.real", "rate may use"),
        ("sqrt(1/k)", 'rate may use .*, not "k"'),
        ("min(1/n, exp(__import__('os')))", "rate may use"),
        ("1/-(-k)", 'rate may use .*, not "k"'),
        ("__import__('os').system('true')", "rate may use"),
        ("[1/n for n in (1,)][0]", "rate may use"),
        ("(lambda: 1/n)()", "rate may use"),
        ("True/n", "rate may use"),
        ("'a'", "rate may use"),
        ("1/n if n > 1 else 2", "rate may use"),
        ("sqrt(1/n, 2)", "rate gives sqrt a wrong number of arguments"),
        ("sqrt()/n", "rate gives sqrt a wrong number of arguments"),
        ("sqrt(x=1/n)", "rate may use"),
        ("5", "must fall with n"),
        ("n^2", "must fall with n"),
        ("1 + 1/n^2", "must fall with n"),
        ("1-1/sqrt(kappa)^n", "must fall with n|no positive number"),
        ("exp(-sqrt(n))", r"must be like q\^n or n\^-p"),
        ("exp(-n^2)", r"must be like q\^n or n\^-p"),
        ("exp(-n^17*n^17*n^17)", r"must be like q\^n or n\^-p"),  # 0 in round 2^21
        ("-1/n", "no positive number"),
        ("log(1/n)", "no positive number"),
        ("1/(n-n)", "no positive number"),
        ("9^9^9^9^9/n", "no positive number|must fall"),
        ("(0-2)^0.5/n", "no positive number"),
        ("-" * 150 + "1/k", "rate may use"),
        ("(" * 150 + "1/n", "rate must be a formula"),
        ("1/n" + "+1/n" * 50, "rate must have 1 to 200 characters"),
    ],
)
def test_what_is_no_rate_is_refused(text, sentence):
    with pytest.raises(ValueError, match=sentence):
        parse_rate(text)
