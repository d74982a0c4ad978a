r"""Theorem D (i) with compressors that round: natural compression and random quantisation.

Their coordinates are independent coins, so that every expectation of a sum over coordinates is exact: the two values
that a number may take, each with the length of the interval of draws that give it (:mod:`theory.frontier._draws`),
through the code of the package.

**Natural compression.** For :math:`x = 2^e(1 + p)`, :math:`0 \le p < 1`, :math:`\mathbb E\,C(x) = 2^e\bigl((1 - p) + 2p
\bigr) = x` and :math:`\mathbb E\,C(x)^2 = 4^e\bigl((1 - p) + 4p\bigr) = \frac{1 + 3p}{(1 + p)^2}x^2 \le \frac98x^2`,
with equality at :math:`p = \frac13`. So FedSplit attains the factor of Theorem D where every coordinate of
:math:`Tz - z` is 4/3 times a power of two, on clients that attain :math:`\delta`.

**Random quantisation.** The variance of a coin is at most 1/4 and at most its probability: :math:`\mathbb E|C(x) - x|^2
\le \frac{|x|^2}{s^2}\sum_i\min(\frac14, a_i)` with :math:`a_i = s|x_i|/|x|` and :math:`\sum a_i \le s\sqrt d`.
The first part is attained where every :math:`a_i` is a whole number and a half.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.engine.rounds import State, advance
from dualopt.lab.chance import do_round
from dualopt.lab.claims import Inequality, claim
from dualopt.methods import FedSplit
from dualopt.methods.compressors import Compressor, NaturalCompression, RandomQuantisation, kept_part
from dualopt.methods.participation import Round
from theory._cases import Case, accurately, everybody
from theory._claims import ROUNDING, ExpectedVerdict
from theory._problems import logistic, lopsided, quadratic
from theory._rounds import affine
from theory.baselines._runs import baseline_case, reflection, smooth_and_strongly_convex
from theory.baselines.contraction import fedsplit_errors
from theory.frontier._draws import expectation_of_coins
from theory.frontier.compressed import directions

ROUNDS = 8


@dataclass(frozen=True, kw_only=True)
class Moments:
    """A compressor and the numbers that each of some clients sends, shape (N, d)."""

    name: str
    compressor: Compressor
    numbers: tuple[tuple[float, ...], ...]
    attained: bool = False


def moments_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Numbers of all sizes, powers of two, zeros; those for which the bounds are attained."""
    rng = np.random.default_rng(0)
    wild = rng.standard_normal((3, 4)) * 10.0 ** rng.uniform(-12, 6, (3, 4))
    rows = {
        "wild numbers": (wild, False),
        "powers of two and zero": (np.array([[0.0, 1.0, -0.25, 2.0**-126], [2.0**127, -(2.0**-60), 3.0, 0.1]]), False),
        "4/3": (np.array([[4.0, -8.0]]) / 3.0, True),
    }
    for name, (numbers, attained) in rows.items():
        yield _moments(NaturalCompression(), numbers, name, attained=attained)
    for s in (1, 7):
        yield _moments(RandomQuantisation(levels=s), rng.uniform(-1.0, 1.0, (3, 4)), "uniform numbers")
    yield _moments(RandomQuantisation(levels=1), np.full((1, 4), 0.5), "halves", attained=True)


def _moments(compressor: Compressor, x: Array, name: str, *, attained: bool = False) -> ExpectedVerdict:
    numbers = tuple(map(tuple, x.tolist()))
    case = Moments(name=f"{compressor}, {name}", compressor=compressor, numbers=numbers, attained=attained)
    return ExpectedVerdict(case)


@claim(
    source="Theorem D, compressors",
    statement=r"$\mathbb E\,C(x) = x$ and $\mathbb E|C(x)|^2 \le (1 + \omega)|x|^2$: natural compression with $\omega ="
    r" \frac18$, random quantisation with s levels with $\omega = \min(\frac d{4s^2}, \frac{\sqrt d}s)$.",
    rtol=ROUNDING,
    cases=moments_cases,
)
def compressor_moments(case: Moments) -> Iterator[Inequality]:
    """Compare the first two moments of compressors that round with what they must be.

    The expectations are exact; the first is compared coordinate by coordinate, from above and from below.
    """
    x = np.array(case.numbers)

    def outcome(round: Round) -> Array:
        return case.compressor.compress(x, round)

    mean = expectation_of_coins(outcome, lambda y: y, x.shape) * np.sign(x)
    square = expectation_of_coins(outcome, np.square, x.shape)
    for n, (found, size) in enumerate(zip(mean.flat, np.abs(x).flat, strict=True)):
        yield Inequality(n, float(found), float(size), "mean, from above")
        yield Inequality(n, float(size), float(found), "mean, from below")
    factor = 1.0 / kept_part(case.compressor, x.shape[1:], len(x))
    for n, (found, size) in enumerate(zip(square.sum(axis=1), np.square(x).sum(axis=1), strict=True)):
        yield Inequality(n, float(found), float(factor * size), "second moment")
        if case.attained:
            yield Inequality(n, float(factor * size), float(found), "the bound of the second moment")


def rounded_case(f: Case, compressor: Compressor, *, attained: bool = False) -> Case:
    """Return FedSplit with the best step and a compressor."""
    method = FedSplit(step=1.0 / math.sqrt(f.L * f.mu), **accurately(f.objective))
    return baseline_case(f, method, ROUNDS, f"{compressor}", attained=attained).but(compressor=compressor)


def rounded_fedsplit_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Clients that attain the contraction, others, and those of unequal constants; both compressors."""
    yield ExpectedVerdict(rounded_case(directions(), NaturalCompression(), attained=True))
    for f in (quadratic(), lopsided(), *(() if quick else (logistic(),))):
        yield ExpectedVerdict(rounded_case(f, NaturalCompression()))
    for s in (1, 7):
        yield ExpectedVerdict(rounded_case(quadratic(), RandomQuantisation(levels=s)))


def assumptions(case: Case) -> list[str]:
    """Return what fails: smooth and strongly convex clients, an unbiased compressor."""
    return smooth_and_strongly_convex(case) + ([] if case.compressor.unbiased else ["unbiased uploads"])


@claim(
    source="Theorem D (i)",
    statement=r"For $\mu$-strongly convex, $L$-smooth clients, all of them active with exact proximal steps, and an"
    r" unbiased compressor: $\mathbb E\sum_j|z_j^+ - z_j^*|^2 \le \bigl(1 - \frac{1 - \delta^2}{1 + \omega}\bigr)"
    r"\sum_j|z_j - z_j^*|^2$; attained by natural compression, $\omega = \frac18$.",
    assumptions=assumptions,
    rtol=ROUNDING,
    cases=rounded_fedsplit_cases,
)
def rounded_fedsplit(case: Case) -> Iterator[Inequality]:
    """FedSplit that uploads rounded numbers: it contracts, to the solution itself.

    Compare the exact expectation over all coins, at the states of a path, the first of which is the worst where the
    case is attained.
    """
    f, method, errors = case.objective, case.algorithm, fedsplit_errors(case)
    delta = reflection(method.step, case.mu, case.L)
    compressor = case.compressor
    factor = 1.0 - kept_part(compressor, f.shape, f.n_clients) * (1.0 - delta**2)
    shape = (f.n_clients, *f.shape)
    start = worst_error(case) if case.attained else np.random.default_rng(0).standard_normal(errors.size)
    state = errors.state(start)
    for n in range(1, case.rounds + 1):

        def outcome(round: Round, state: State = state) -> Array:
            return errors.of(do_round(method, f, state, round)[0]).reshape(shape)

        mean, before = float(np.sum(expectation_of_coins(outcome, np.square, shape, compressor))), errors.squared(state)
        yield Inequality(n, mean, factor * before, "mean after a round")
        if case.attained and n == 1:
            yield Inequality(n, factor * before, mean, "factor and the mean after a round")
        state, _, _ = advance(method, f, state, replace(everybody(f.n_clients), n=n), compressor)


def worst_error(case: Case) -> Array:
    """Return the error of quadratic clients for which every coordinate of ``Tz - z`` is 4/3."""
    plain, errors = case.algorithm, fedsplit_errors(case)

    def change(e: Array) -> Any:
        return errors.of(advance(plain, case.objective, errors.state(e), everybody(case.n_clients))[0]) - e

    return np.linalg.solve(affine(change, errors.size)[:, :-1], np.full(errors.size, 4.0 / 3.0))
