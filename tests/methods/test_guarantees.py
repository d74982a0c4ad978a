"""What the methods say of themselves, on both sides of every condition, and what they suggest.

The expected numbers are those of the papers' formulas by hand, for mu = 1/2 and L = 10 of two clients of which neither
has both.
"""

from __future__ import annotations

import math
import re
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dualopt.methods
from dualopt.losses import Logistic
from dualopt.methods._parameters import (
    reflection_factor,
    require_convex_local_problem,
    smooth_and_strongly_convex,
    step_of,
)
from dualopt.methods.compressors import Identity, NaturalCompression, RandK, Rounding, TopK
from dualopt.methods.participation import Bernoulli, CommunicateWithProbability, UniformSubset, WeightedSubset
from dualopt.objectives import ObjectiveWrapper, Quadratic, linear_model
from dualopt.solvers import LBFGS, SGD, Exact, Gradient
from dualopt.solvers.stopping import Steps
from dualopt.spec.discover import discover
from tests.problems import hinge, logistic

ALGORITHMS = discover(dualopt.methods)
LIMIT = (math.sqrt(5.0) - 1.0) / 40.0  # of FedPD's eta


def diagonal(least: tuple[float, float] = (0.5, 1.0), greatest: tuple[float, float] = (4.0, 10.0)) -> Quadratic:
    A = np.stack([np.diag([low, high]) for low, high in zip(least, greatest, strict=True)])
    return Quadratic(A=A, b=np.ones((2, 2)))


STRONG, FLAT, CONCAVE = diagonal(), diagonal((0.0, 1.0)), diagonal((-1.0, 1.0))
ROUNDED_UP = Quadratic(A=np.full((1, 1, 1), np.nextafter(10.0, 11.0)), b=np.ones((1, 1)))  # as eigenvalues may come
NONE = "none"
KANTOROVICH = ((10.5**2 / 20.0 - 1.0) / (10.5**2 / 20.0 + 1.0)) ** 2
EIGHT = Quadratic(A=np.stack([10.0 * np.eye(2)] * 8), b=np.ones((8, 2)))  # mu = L
FIVE = Quadratic(A=np.stack([np.diag([1.0, 10.0])] * 5), b=np.ones((5, 2)))
ONE, TWO = UniformSubset(size=1), UniformSubset(size=2)
COIN = CommunicateWithProbability(probability=0.2)
OF_DUALFL = "Theorem 3.3: E - E* = O((1 - sqrt(rho))^n), a factor of"
OF_OPTIMIZED = "2 |zeta*|^2/(N A_n): |theta - theta*|^2 ="
OF_SAMPLED = "Theorem F: E |theta - theta*|^2 = O((1 - t)^n), a factor of"
OF_FEDDYN = (
    "none: Theorem 3 needs alpha >= max(30 L, 5 mu N/P) = 300; Theorem 2 needs alpha >= 25 L = 250; Theorem 4 needs"
)
OF_FEDDR = "Theorem B: once all have been active, E of the squared distances falls by a factor of"
OF_ANY = "E of the squared distances falls by a factor of"
OF_FEDSPLIT = f"Theorem B: {OF_ANY}"
OF_AVERAGED = "Theorem B: the sum of the squared distances falls by a factor of"
FALLS = "E Psi falls by a factor of {} per round"
ROOT = math.sqrt(5.0)  # sqrt(L mu)
m = 5.0 / 10.5  # L mu/(L + mu)
LIGHT = m + math.sqrt(m * m + 10.0)  # alpha* for p = 1/2: alpha^2 - 2 m alpha = 2 L mu


def up(x: float) -> str:
    """A number in six digits, not below it."""
    return f"{math.ceil(x * 1e6 - 1e-6) / 1e6:.6f}"


SAID = [
    ("dualfl", STRONG, {"rho": 0.0, "nu": 0.5}, "Theorem 3.2: |theta - theta*|^2 = O(1/n^2)"),
    ("dualfl", STRONG, {"rho": 1e-3}, f"{OF_DUALFL} {up(1.0 - math.sqrt(1e-3))} per round"),
    ("dualfl", STRONG, {}, f"{OF_DUALFL} {up(1.0 - math.sqrt(0.05))} per round"),
    ("dualfl", STRONG, {"rho": 0.05 * (1.0 + 1e-7)}, "none: Theorem 3.3 needs rho <= nu/L = 0.05"),
    ("dualfl", STRONG, {"rho": 0.05, "nu": 0.25}, "none: Theorem 3.3 needs rho <= nu/L = 0.025"),
    ("dualfl", STRONG, {"rho": 0.0, "nu": 0.5 * (1.0 + 1e-7)}, "none: Theorem 3.2 needs nu <= mu"),
    ("optimized-dualfl", STRONG, {"rho": 0.0}, f"{OF_OPTIMIZED} O(1/n^2)"),
    (
        "optimized-dualfl",
        STRONG,
        {},
        f"{OF_OPTIMIZED} O((1 - sqrt(rho))^(2n)), a factor of {up((1 - math.sqrt(0.05)) ** 2)}",
    ),
    ("optimized-dualfl", STRONG, {"rho": 0.06}, "none: 2 |zeta*|^2/(N A_n) needs rho <= nu/L = 0.05"),
    ("gap-restarted-dualfl", STRONG, {}, "Theorem E: the certified gap falls by 100 in at most 95 rounds"),
    (
        "gap-restarted-dualfl",
        diagonal((4.0, 5.0), (5.0, 5.0)),
        {},
        "Theorem E: the certified gap falls by 100 in at most 11 rounds",
    ),
    ("gap-restarted-dualfl", EIGHT, {}, "Theorem E: the certified gap falls by 100 in at most 1 rounds"),
    ("gap-restarted-dualfl", EIGHT, {"nu": 10.0 * (1.0 + 1e-13)}, "Theorem E"),
    ("gap-restarted-dualfl", hinge(mu=0.5), {}, "Theorem E: O(1/n^2) at the mean models"),
    ("gap-restarted-dualfl", STRONG, {"nu": 0.6}, "none: Theorem E needs nu <= mu = 0.5"),
    (
        "adaptive-dualfl",
        STRONG,
        {},
        "adaptive_rounds: the certified gap falls by a factor of e in at most 6.3 rounds each, after 113 at most",
    ),
    ("adaptive-dualfl", hinge(mu=0.5), {}, "none: adaptive_rounds needs smooth clients"),
    (
        "restarted-dualfl",
        STRONG,
        {},
        "linear for smooth clients (theory/frontier/restarts.py), without a useful factor",
    ),
    ("restarted-dualfl", hinge(mu=0.5), {}, "none: its theorem needs smooth clients"),
    ("restarted-dualfl", STRONG, {"nu": 0.6}, "none: its theorem needs nu <= mu = 0.5"),
    ("restarted-optimized-dualfl", STRONG, {}, "none: no theorem of this package covers it"),
    ("fedpd", STRONG, {"eta": LIMIT * (1.0 - 1e-12)}, "Theorem 1: the mean of |grad E|^2 = O(1/T)"),
    ("fedpd", STRONG, {"eta": LIMIT}, f"{OF_AVERAGED} {up((1.0 / (1.0 + 0.5 * LIMIT)) ** 2)} per round"),
    ("fedpd", STRONG, {}, f"{OF_AVERAGED} {up((1.0 / (1.0 + math.sqrt(0.05))) ** 2)} per round"),
    ("fedpd", CONCAVE, {"eta": LIMIT}, "none: Theorem 1 needs eta < (sqrt(5) - 1)/(4L) = 0.0309"),
    ("old-dual-fedpd", STRONG, {"eta": 0.03}, "none: Theorem 1 needs the new dual in what is uploaded"),
    ("fedpd", CONCAVE, {}, "Theorem 1"),
    ("fedpd", CONCAVE, {"who": COIN}, "Theorem 3: a bound that does not vanish"),
    (
        "feddyn",
        STRONG,
        {"alpha": 300.0},
        f"Theorem 3: O((1 + mu/alpha)^-T), a factor of {up(300.0 / 300.5)} per round; ",
    ),
    ("feddyn", STRONG, {"alpha": 299.0}, "Theorem 2: E of the mean of the models = O(1/T); Theorem 4"),
    ("feddyn", STRONG, {"alpha": 250.0}, "Theorem 2"),
    ("feddyn", STRONG, {"alpha": 249.0}, "Theorem 4: the mean of |grad E|^2 = O(1/T); Theorem A"),
    ("feddyn", STRONG, {"alpha": 200.0}, "Theorem 4"),
    ("feddyn", STRONG, {"alpha": 199.0}, f"Theorem A: {FALLS.format(up(1 / (1 + 10 / 10.5 / 199)))}"),
    ("feddyn", STRONG, {}, f"Theorem A: {FALLS.format(up(1 / (1 + 10 / 10.5 / math.sqrt(5))))}"),
    (
        "feddyn",
        STRONG,
        {"alpha": 0.999 * ROOT, "who": ONE},
        f"{OF_FEDDYN} alpha >= 20 L N/P = 400; Theorem A needs alpha >= alpha* =",
    ),
    ("feddyn", STRONG, {"alpha": 0.999 * ROOT}, f"{OF_AVERAGED} {up((10.0 / (10.0 + 0.999 * ROOT)) ** 2)} per round"),
    (
        "feddyn",
        STRONG,
        {"alpha": ROOT, "who": ONE},
        f"{OF_FEDDYN} alpha >= 20 L N/P = 400; Theorem A needs alpha >= alpha*",
    ),
    ("feddyn", STRONG, {"alpha": 0.999 * LIGHT, "who": ONE}, NONE),
    ("feddyn", STRONG, {"alpha": LIGHT, "who": ONE}, f"Theorem A: {FALLS.format(up(1 / (1 + 10 / 10.5 / LIGHT)))}"),
    ("feddyn", STRONG, {"who": ONE}, f"Theorem A: {FALLS.format(up(1 / (1 + 10 / 10.5 / LIGHT)))}"),
    ("feddyn", STRONG, {"alpha": 300.0, "who": ONE}, "Theorem 3"),
    ("feddyn", EIGHT, {"alpha": 399.0, "who": ONE}, "Theorem 2"),  # below 5 mu N/P = 400
    ("feddyn", EIGHT, {"alpha": 400.0, "who": ONE}, "Theorem 3"),
    (
        "feddyn",
        STRONG,
        {"alpha": 300.0, "who": Bernoulli(probability=0.5)},
        "none: Theorem 3 and Theorem 2 and Theorem 4",
    ),
    ("feddyn", STRONG, {"fraction": 0.5, "who": Bernoulli(probability=0.5)}, NONE),
    ("feddyn", STRONG, {"who": WeightedSubset(size=1)}, "Theorem A"),
    ("feddyn", STRONG, {"who": WeightedSubset(size=1, weights=(1.0, 2.0))}, NONE),
    (
        "feddyn",
        FLAT,
        {"alpha": 199.0},
        "none: Theorem 3 needs strongly convex clients; Theorem 2 needs alpha >= 25 L = 250; Theorem 4",
    ),
    ("feddyn", CONCAVE, {"alpha": 300.0, "who": ONE}, NONE),
    ("feddyn", hinge(mu=0.5), {"alpha": 0.5, "who": ONE}, NONE),
    ("feddyn", ROUNDED_UP, {"alpha": 250.0}, "Theorem 2"),
    ("feddyn", hinge(mu=0.5), {}, NONE),
    ("feddyn", hinge(mu=0.5), {"who": ONE}, NONE),
    ("growing-feddyn", hinge(mu=0.5), {"who": ONE}, "Theorem C"),
    (
        "growing-feddyn",
        hinge(mu=0.5),
        {"alpha": 0.5, "growth": 0.36},
        "Theorem C: E |x - theta*|^2 = O(1/n^2), any loss",
    ),
    (
        "growing-feddyn",
        hinge(mu=0.5),
        {"alpha": 0.5, "growth": 0.37},
        "none: Theorem C needs growth <= sqrt(alpha^2 + 2 alpha mu)",
    ),
    ("growing-feddyn", hinge(mu=0.5), {"alpha": 0.5, "growth": 0.36, "who": Bernoulli(probability=0.5)}, NONE),
    ("growing-feddyn", FLAT, {"alpha": 300.0, "growth": 0.1}, "none: Theorem C needs strongly convex clients"),
    ("sampled-dualfl", STRONG, {"rho": 0.0}, "Theorem F: E |theta - theta*|^2 = O(1/n^2)"),
    ("sampled-dualfl", STRONG, {}, f"{OF_SAMPLED} {up(1 - 2 / (1 + math.sqrt(1 + 4 * 19)))} per round"),
    (
        "sampled-dualfl",
        STRONG,
        {"who": ONE},
        "Theorem F: where all f_j - nu/2 |.|^2 are bounded below, E |theta",
    ),
    *(  # where nu is as good as mu the bound is infinite
        ("sampled-dualfl", STRONG, {"nu": 0.5 * (1.0 - less), "rho": 0.0, "who": ONE}, f"Theorem F: {said}")
        for less, said in ((1e-8, "E |theta"), (1e-10, "where all f_j - nu/2 |.|^2 are bounded below, E |theta"))
    ),
    (
        "sampled-dualfl",
        STRONG,
        {"nu": 0.4, "who": ONE},
        f"{OF_SAMPLED} {up(1 - 1 / (1 + math.sqrt(1 + 2 * 24)))} per round",
    ),
    (
        "sampled-dualfl",
        STRONG,
        {"fraction": 0.5},
        "none: Theorem F needs cohorts in which a client is active with a probability of at least p = 0.5",
    ),
    (
        "sampled-dualfl",
        STRONG,
        {"who": Bernoulli(probability=0.5)},
        "none: Theorem F needs cohorts of one size, not indep",
    ),
    ("sampled-dualfl", STRONG, {"rho": 0.06}, "none: Theorem F needs rho <= nu/L = 0.05"),
    ("sampled-dualfl", STRONG, {"rho": 0.0, "nu": 0.51}, "none: Theorem F needs nu <= mu"),
    ("feddyn", FLAT, {"alpha": 300.0}, "Theorem 2"),
    ("feddyn", CONCAVE, {"alpha": 300.0}, "Theorem 4"),
    ("a-fedpd", CONCAVE, {"rho": 20.0}, "none: Theorem 1, corrected needs rho > 2 L = 20"),
    ("a-fedpd", STRONG, {"rho": 20.0}, f"{OF_AVERAGED} {up((20.0 / 20.5) ** 2)} per round"),
    ("a-fedpd", STRONG, {"rho": 20.0 * (1.0 + 1e-12)}, "Theorem 1, corrected"),
    (
        "a-fedpd",
        STRONG,
        {"rho": 21.0, "who": ONE},
        "none: Theorem 1, corrected and Theorem B need everybody in every round, not uniform",
    ),
    ("a-fedpd", FLAT, {"rho": 20.0}, "none: Theorem 1, corrected needs rho > 2 L = 20"),
    ("a-fedpd", STRONG, {"rho": 2.0}, f"{OF_AVERAGED} {up((10.0 / 12.0) ** 2)} per round"),
    ("fedadmm", STRONG, {"rho": 2.0}, f"{OF_FEDDR} {up((10.0 / 12.0) ** 2)} per round"),
    ("fedadmm", STRONG, {"rho": 2.0, "who": ONE}, f"{OF_FEDDR} {up(1.0 - 0.5 * (1.0 - (10.0 / 12.0) ** 2))} per"),
    ("fedadmm", STRONG, {"rho": 2.0, "server_step": 0.5}, "none: Theorem B needs server_step = P/N, as by default"),
    ("a-fedpd", CONCAVE, {"rho": 21.0}, "Theorem 1, corrected"),
    ("feddr", STRONG, {"eta": 0.1}, f"{OF_FEDDR} {up((0.95 / 1.05) ** 2)} per round"),
    ("feddr", STRONG, {"eta": 1.0, "relaxation": 1.0}, f"{OF_FEDDR} {up((10.0 / 11.0) ** 2)} per round"),
    ("feddr", STRONG, {"eta": 1.0, "who": ONE}, f"{OF_FEDDR} {up(1.0 - 0.5 * (1.0 - (9.0 / 11.0) ** 2))} per round"),
    (
        "feddr",
        STRONG,
        {"eta": 1.0, "relaxation": 1.5},
        f"{OF_FEDDR} {up((1.0 - 0.75 * (1.0 - 9.0 / 11.0)) ** 2)} per round",
    ),
    ("feddr", FLAT, {"eta": 1.0}, NONE),
    ("feddr", hinge(), {"eta": 1.0}, NONE),
    ("fedsplit", STRONG, {"step": 0.1}, f"{OF_FEDSPLIT} {up((0.95 / 1.05) ** 2)} per round"),
    ("fedsplit", STRONG, {"step": 1.0}, f"{OF_FEDSPLIT} {up((9.0 / 11.0) ** 2)} per round"),
    ("fedsplit", STRONG, {"step": 1.0, "who": ONE}, f"{OF_FEDSPLIT} {up(1.0 - 0.5 * (1.0 - (9.0 / 11.0) ** 2))} per"),
    (
        "fedsplit",
        STRONG,
        {"step": 1.0, "who": WeightedSubset(size=1, weights=(1.0, 3.0))},
        f"{OF_FEDSPLIT} {up(1.0 - 0.25 * (1.0 - (9.0 / 11.0) ** 2))} per round",
    ),
    ("fedsplit", FLAT, {"step": 1.0}, NONE),
    ("fedsplit", CONCAVE, {"step": 0.1}, NONE),
    ("fedsplit", hinge(), {"step": 0.1}, NONE),
    (
        "anderson-fedsplit",
        STRONG,
        {"step": 0.1},
        f"the residual falls by a factor of {up(0.95 / 1.05 * (1 + 2e-11))} per round on quadratics; by"
        f" {up(0.95 / 1.05)} between plain steps, one in 11 rounds, for any loss",
    ),
    (
        "anderson-fedsplit",
        STRONG,
        {"memory": 4, "step": 1.0},
        f"the residual falls by a factor of {up(9.0 / 11.0)} per",
    ),
    ("anderson-fedsplit", FLAT, {}, "none: its theorem needs smooth and strongly convex clients"),
    ("anderson-dane", STRONG, {"eta": 0.2}, "the residual falls by a factor of 0.800001 with every accepted point on"),
    (
        "anderson-dane",
        STRONG,
        {"eta": 0.35},
        f"the residual falls by a factor of {up((0.35 * 10.5**2 / 20.0 - 1.0) * (1 + 2e-11))} with",
    ),
    ("anderson-dane", STRONG, {"eta": 0.1}, "the residual falls by a factor of 0.900001 with every accepted point on"),
    ("anderson-dane", STRONG, {"eta": 40.0 / 10.5**2}, "none: its theorem needs eta < 2/k = 0.363"),
    *(  # with the weight 2 eigenvalues are between 1/5 and k = 14.5^2/(4 12 2.5) 10/12
        ("anderson-dane", STRONG, {"eta": eta, "weight": 2.0}, f"the residual falls by a factor of {factor} with")
        for eta, factor in ((1.25, up(1.25 * 14.5**2 / 144.0 - 1.0)), (1.0, "0.800001"))
    ),
    ("anderson-dane", STRONG, {"eta": 1.37, "weight": 2.0}, "none: its theorem needs eta < 2/k = 1.37"),
    ("anderson-dane", FLAT, {"weight": 1.0}, NONE),
    (
        "giant",
        STRONG,
        {"relaxation": 0.0},
        f"E falls in every iteration, by a factor; E - E* falls by a factor of {up(KANTOROVICH)} per iteration",
    ),
    (
        "giant",
        STRONG,
        {},
        f"E falls in every iteration, by a factor; E - E* falls by a factor of {up(0.04 + 0.96 * KANTOROVICH)} per",
    ),
    ("giant", STRONG, {"weight": 1.0}, "E falls in every iteration, by a factor"),
    ("giant", FLAT, {"weight": 1.0}, NONE),
    (
        "acc-s-dane",
        STRONG,
        {"weight": 9.5},
        f"E - E* = O(q^n), a factor of {up(1.0 - 2.0 / (1.0 + math.sqrt(77.0)))} per two",
    ),
    (
        "adaptive-acc-s-dane",
        STRONG,
        {},
        "E - E* = O(q^n), q = 1 - 2/(1 + sqrt(1 + 4 w/0.5)), after n accepted iterations of three rounds, w = max(0.95,"
        " 2 delta), where no Hessian is below their mean by more than delta",
    ),
    (
        "adaptive-acc-s-dane",
        FLAT,
        {"first": 3.0},
        "E - E* <= 2 w |theta0 - theta*|^2/(n + 1)^2 after n accepted iterations of three",
    ),
    (
        "acc-s-dane",
        STRONG,
        {"weight": 1.0},
        "where no Hessian is below their mean by more than the weight, E - E*",
    ),
    (
        "acc-s-dane",
        STRONG,
        {"weight": 9.5, "mu": 0.0},
        "E - E* <= 2 weight |theta0 - theta*|^2/(n + 1)^2 after n iterations of two rounds",
    ),
    ("acc-s-dane", STRONG, {"mu": 0.6}, "none: its theorem needs mu <= min mu_j = 0.5"),
    ("acc-s-dane", FLAT, {"weight": 10.0}, "E - E* <= 2 weight"),
    ("acc-s-dane", CONCAVE, {"mu": 0.0}, "none: its theorem needs convex clients"),
    (
        "dual-ascent",
        STRONG,
        {},
        "|theta - theta*|^2 = O((1 - nu/L)^(2n)), a factor of 0.902500 per round; |theta - theta*|^2",
    ),
    ("dual-ascent", STRONG, {"nu": 0.6}, "none: its theorem needs nu <= mu = 0.5"),
    ("dual-ascent", hinge(mu=0.25), {}, "|theta - theta*|^2 <= |zeta*|^2/(N (2n - 1))"),
    (
        "dual-lbfgs",
        STRONG,
        {},
        "the dual error falls by a factor of 0.990000 in any two rounds, at least; the dual function",
    ),
    ("dual-lbfgs", STRONG, {"nu": 0.25}, "the dual error falls by a factor of 0.995000 in any two rounds"),
    ("dual-lbfgs", STRONG, {"nu": 0.6}, "none: its theorem needs nu <= mu"),
    ("dual-lbfgs", hinge(mu=0.25), {}, "the dual function falls with every accepted point"),
    ("gradient-descent", STRONG, {}, f"|theta - theta*| falls by a factor of {up(1.0 - 0.75 / 7.0)} per round"),
    (
        "gradient-descent",
        STRONG,
        {"step": 0.28},
        f"|theta - theta*| falls by a factor of {up(0.28 * 7.0 - 1.0)} per round",
    ),
    ("gradient-descent", STRONG, {"step": 2.0 / 7.0}, "none: its theorem needs a step < 2/L = 0.286"),
    ("gradient-descent", FLAT, {"step": 0.1}, "|theta - theta*| falls by a factor of 0.950000 per round"),
    ("gradient-descent", CONCAVE, {}, "none: its theorem needs a strongly convex mean"),
    ("distributed-lbfgs", STRONG, {}, "none: no rate proven here"),
    ("distributed-newton-cg", STRONG, {}, "none: no rate proven here"),
    ("scaffnew", STRONG, {}, FALLS.format(up((9.5 / 10.5) ** 2))),
    ("scaffnew", STRONG, {"who": CommunicateWithProbability(probability=0.42)}, FALLS.format(up(1.0 - 0.42**2))),
    ("scaffnew", STRONG, {"who": CommunicateWithProbability(probability=0.43)}, FALLS.format(up((9.5 / 10.5) ** 2))),
    ("scaffnew", STRONG, {"probability": 1.0, "solver": Gradient(step=0.1)}, FALLS.format(up(0.95**2))),
    ("scaffnew", STRONG, {"probability": 0.2, "who": COIN}, FALLS.format(up(0.96))),
    ("scaffnew", STRONG, {"probability": 0.2 * (1.0 + 1e-7), "who": COIN}, NONE),
    (
        "scaffnew",
        STRONG,
        {"solver": Gradient(step=0.1), "who": CommunicateWithProbability(probability=0.32)},
        FALLS.format(up(0.95**2)),
    ),
    (
        "scaffnew",
        STRONG,
        {"probability": 0.3, "who": COIN},
        "none: its theorem needs rounds that communicate with probability p = 0.3",
    ),
    (
        "scaffnew",
        STRONG,
        {"probability": 0.2},
        "none: its theorem needs rounds that communicate with probability p = 0.2",
    ),
    ("scaffnew", STRONG, {"probability": 1.0, "solver": Gradient(step=0.199)}, FALLS.format(up(0.99**2))),
    (
        "scaffnew",
        STRONG,
        {"probability": 1.0, "solver": Gradient(step=0.2)},
        "none: its theorem needs a step < 2/L = 0.2",
    ),
    (
        "scaffnew",
        STRONG,
        {"probability": 1.0, "solver": SGD(step=0.1, batch=1)},
        "none: its theorem needs full gradients",
    ),
    ("scaffnew", FLAT, {"probability": 1.0}, "none: its theorem needs smooth and strongly convex clients"),
    ("fivegcs", STRONG, {"gamma": 1.0, "tau": 0.1}, FALLS.format(up(1.0 - 0.1 / (9.5 / 2.0 + 0.1)))),
    (
        "fivegcs",
        STRONG,
        {"gamma": 0.01, "tau": 50.0},
        f"Theorem G: {FALLS.format(up(1.0 / 1.01))}; Theorem H: V falls by a factor of {up(1.0 / 1.005**2)} per round; "
        f"{FALLS.format(up(1.0 / 1.005))}",
    ),
    (
        "fivegcs",
        STRONG,
        {"gamma": 0.01, "tau": 50.1},
        "none: Theorem G and Theorem H need gamma tau N = 1; its theorem needs tau <= 1/(gamma N) = 50",
    ),
    *(  # steps that the duals' factor limits: rise = gamma 9.5
        ("fivegcs", STRONG, {"gamma": gamma, "tau": 0.5 / gamma}, f"Theorem H: V falls by a factor of {up(r * r)} per")
        for gamma, r in ((1.0, 9.5 / 10.5), (0.5, 4.75 / 5.75))
    ),
    *(  # on both sides of the longest step that Theorem I admits for these cohorts, by the formulas of theory/frontier
        ("fivegcs", FIVE, {"gamma": gamma, "tau": 0.2 / gamma, "who": TWO}, said)
        for gamma, said in (
            (0.298, "Theorem I: E V falls by a factor of 0.815770 per round; E Psi falls"),
            (0.299, "E Psi falls"),
        )
    ),
    ("fivegcs", STRONG, {"gamma": 1.0, "tau": 0.5, "who": ONE}, FALLS.format(up(1.0 - 0.25 / (9.5 / 2.0 + 0.5)))),
    (
        "fivegcs",
        STRONG,
        {"who": Bernoulli(probability=0.5)},
        "none: Theorem G and Theorem I and its theorem need uniform cohorts of one size",
    ),
]


@pytest.mark.parametrize(("name", "f", "options", "said"), SAID, ids=[f"{s[0]}-{i}" for i, s in enumerate(SAID)])
def test_guarantees_change_where_the_theorems_do(name: str, f: Quadratic, options: dict, said: str) -> None:
    given = {key: value for key, value in options.items() if key != "who"}
    found = ALGORITHMS[name](**given).guarantee(f, options.get("who"))
    assert found.startswith(said), found


# Three clients of unequal weights, that are active with 1/3, 2/3 and 1 where two are drawn in proportion to them: the
# first one needs the largest alpha.
WEIGHTED = Quadratic(
    A=np.stack([np.diag(x) for x in ((0.5, 10.0), (1.0, 4.0), (0.7, 5.0))]), b=np.ones((3, 2)), weights=(1.0, 2.0, 5.0)
)
OF_FIRST = 3.0 * (2.0 / 3.0 * m + math.sqrt((2.0 / 3.0 * m) ** 2 + 5.0 / 3.0))
BY_WEIGHT = WeightedSubset(size=2)
A_AND_B = f"Theorem A: {FALLS}; {OF_AVERAGED} {{}} per round"
EQUAL_ONLY = "Theorem 3 and Theorem 2 and Theorem 4 need clients of equal weight"
UNIFORM_ONLY = "Theorem 3 and Theorem 2 and Theorem 4 need uniform cohorts of one size, not cohorts of one size"
ALL = "Theorem B needs everybody in every round, not"
WHOLE = [
    (3.0, None, A_AND_B.format(up(1.0 / (1.0 + 2.0 * m / 3.0)), up((6.0 / 7.0) ** 2))),  # delta = 2.5/3.5
    (0.1, None, f"{OF_AVERAGED} {up(((1.0 + 9.9 / 10.1) / 2.0) ** 2)} per round"),
    (3.0, TWO, f"none: {EQUAL_ONLY}; Theorem A' needs clients to be active in proportion to their weights; {ALL}"),
    (3.0, BY_WEIGHT, f"none: {UNIFORM_ONLY}; Theorem A' needs alpha >= max_j alpha*_j = {OF_FIRST:.3g}; {ALL}"),
    (40.0, BY_WEIGHT, f"Theorem A': {FALLS.format(up(1.0 / (1.0 + m / 20.0)))}"),
]


@pytest.mark.parametrize(("alpha", "who", "said"), WHOLE, ids=[f"feddyn-{i}" for i in range(len(WHOLE))])
def test_all_that_is_said_of_feddyn_with_weights(alpha: float, who: Any, said: str) -> None:
    found = ALGORITHMS["feddyn"](alpha=alpha).guarantee(WEIGHTED, who)
    cohorts = " uniform cohorts of one size" if who is TWO else " cohorts of one size"
    assert found == said + (cohorts if said.endswith(ALL) else "")


# FedSplit with the step 1/10: delta is .95/1.05. Natural compression has omega = 1/8, one of two coordinates omega = 1,
# and rounding to m = 2^(b-1) - 1 levels q^2 = c/(1 + c), c = 1/(4 m^2): 1/901 with b = 5 and 1/197 with b = 4, where
# (1 - delta)/(1 + delta) is 1/20.
DELTA, OFF = 0.95 / 1.05, 1.0 / math.sqrt(901.0)
KEPT = 1.0 - DELTA**2
LOST = 1.0 - (DELTA + OFF * (1.0 + DELTA)) ** 2
TOO_ROUGH = (
    "none: Theorem D needs an unbiased compressor; its theorem needs |C(v) - v| <= q |v|, "
    "q < (1 - delta)/(1 + delta) = 0.05"
)
COMPRESSED = [
    (Rounding(digits=5), f"{OF_ANY} {{}} per round", LOST),
    (Rounding(digits=4), TOO_ROUGH, 0.0),
    (TopK(size=1), TOO_ROUGH, 0.0),
    (NaturalCompression(), f"Theorem D: {OF_ANY} {{}} per round", 8.0 / 9.0 * KEPT),
    (RandK(size=1), f"Theorem D: {OF_ANY} {{}} per round", 0.5 * KEPT),
    (Identity(), f"{OF_FEDSPLIT} {{}} per round", KEPT),
]


@pytest.mark.parametrize(("p", "who"), [(1.0, None), (0.5, ONE)], ids=["all", "half"])
@pytest.mark.parametrize(("compressor", "said", "gain"), COMPRESSED, ids=[f"fedsplit-{c[0]}" for c in COMPRESSED])
def test_what_is_said_of_compressed_uploads(compressor: Any, said: str, gain: float, p: float, who: Any) -> None:
    found = ALGORITHMS["fedsplit"](step=0.1).guarantee(STRONG, who, compressor)
    assert found == said.format(up(1.0 - p * gain))


# name, objective, given, suggested
NONCONVEX = 80.0 / (math.sqrt(5.0) - 1.0)
SUGGESTED = [
    ("dualfl", STRONG, {}, {"nu": 0.5, "rho": 0.05}),
    ("dualfl", STRONG, {"nu": 0.25}, {"nu": 0.25, "rho": 0.025}),
    ("dualfl", STRONG, {"rho": 0.0}, {"nu": 0.5, "rho": 0.0}),
    ("dualfl", diagonal((2.0, 2.0), (2.0, 2.0)), {}, {"nu": 2.0, "rho": 1.0 - 1e-9}),
    ("dualfl", hinge(mu=0.5), {}, {"nu": 0.5, "rho": 0.0}),
    ("optimized-dualfl", STRONG, {}, {"nu": 0.5, "rho": 0.05}),
    ("sampled-dualfl", STRONG, {}, {"nu": 0.5, "rho": 0.05}),
    ("sampled-dualfl", STRONG, {"rho": 0.0, "fraction": 0.5}, {"nu": 0.5, "rho": 0.0}),
    *(
        (name, f, {}, {p: w})
        for name, p in (
            ("a-fedpd", "rho"),
            ("a-fedpdsam", "rho"),
            ("fedadmm", "rho"),
            ("feddyn", "alpha"),
            ("feddynsam", "alpha"),
            ("fedprox", "mu_prox"),
            ("fedspeed", "rho"),
        )
        for f, w in ((STRONG, ROOT), (FLAT, NONCONVEX), (CONCAVE, NONCONVEX))
    ),
    *(
        (name, f, {}, {p: 1.0 / w})
        for name, p in (("fedpd", "eta"), ("fedsplit", "step"))
        for f, w in ((STRONG, ROOT), (FLAT, NONCONVEX), (CONCAVE, NONCONVEX))
    ),
    *(("feddr", f, {}, {"eta": 1.0 / w}) for f, w in ((STRONG, ROOT), (FLAT, 10.0 / 16.0), (CONCAVE, NONCONVEX))),
    *(
        ("anderson-fedsplit", f, {}, {"step": 1.0 / (0.3 * w)})
        for f, w in ((STRONG, ROOT), (FLAT, NONCONVEX), (CONCAVE, NONCONVEX))
    ),
    ("adaptive-acc-s-dane", STRONG, {}, {"mu": 0.5, "first": 0.95}),
    ("acc-s-dane", STRONG, {}, {"weight": 9.5, "mu": 0.5}),
    ("acc-s-dane", STRONG, {"weight": 1.0, "mu": 0.1}, {"weight": 1.0, "mu": 0.1}),
    ("acc-s-dane", FLAT, {}, {"mu": 0.0}),
    ("dual-ascent", STRONG, {}, {"nu": 0.5}),
    ("dual-ascent", STRONG, {"nu": 0.1}, {"nu": 0.1}),
    ("dual-lbfgs", STRONG, {}, {"nu": 0.5}),
    ("dual-lbfgs", STRONG, {"nu": 0.1}, {"nu": 0.1}),
    ("gradient-descent", STRONG, {}, {"step": 1.0 / 7.0}),
    ("gradient-descent", STRONG, {"step": 0.1}, {"step": 0.1}),
    ("feddyn", WEIGHTED, {"fraction": 2.0 / 3.0}, {"alpha": OF_FIRST}),
    ("feddyn", WEIGHTED, {}, {"alpha": ROOT}),
    ("fedprox", hinge(mu=0.25), {}, {"mu_prox": 0.25}),
    ("fedspeed", STRONG, {}, {"server_step": 1.0}),
    ("fedspeed", STRONG, {"server_step": 0.5}, {"server_step": 0.5}),
    ("fedpd", hinge(mu=0.25), {}, {"eta": 4.0}),
    ("scaffnew", STRONG, {}, {"probability": math.sqrt(20.0) / 10.5}),
    ("scaffnew", STRONG, {"solver": Gradient(step=0.19)}, {"probability": math.sqrt(1.0 - 0.905**2)}),
    ("scaffnew", FLAT, {"probability": 0.5}, {"probability": 0.5}),
    ("fivegcs", STRONG, {}, {"gamma": 1.0 / math.sqrt(0.5 * 9.5), "tau": 0.5 * math.sqrt(0.5 * 9.5), "mu": 0.5}),
    ("fivegcs", STRONG, {"gamma": 0.1, "mu": 0.25}, {"gamma": 0.1, "tau": 5.0, "mu": 0.25}),
    ("fivegcs", STRONG, {"fraction": 0.25}, {"gamma": (math.sqrt(5.3125) - 0.75) / 9.5}),
    ("fivegcs", diagonal((1.0, 1.0), (1.5, 1.25)), {}, {"gamma": 1.0}),  # the root is sqrt(2)
    ("fivegcs", diagonal((0.5, 0.5), (0.75, 0.625)), {}, {"gamma": 2.0}),
    ("apda-inexact", STRONG, {}, {"eta_x": 0.25 / ROOT, "eta_y": ROOT / 8.0, "beta_y": 0.1}),
    ("apda-inexact", STRONG, {}, {"theta": 2.0 / (2.0 + 0.125 / ROOT)}),
    ("apda-inexact", STRONG, {"eta_x": 4.0}, {"eta_y": 1.0 / 128.0, "theta": 1.0 - 0.1 / 128.0}),
]


@pytest.mark.parametrize(
    ("name", "f", "given", "suggested"), SUGGESTED, ids=[f"{s[0]}-{i}" for i, s in enumerate(SUGGESTED)]
)
def test_suggestions_are_the_formulas_of_the_docstrings(name: str, f, given: dict, suggested: dict) -> None:
    method = ALGORITHMS[name](**given).suggested(f)
    for parameter, value in suggested.items():
        found = getattr(method, parameter)
        assert found == (value if isinstance(value, Steps) else pytest.approx(value, rel=1e-14)), parameter


# the step that is suggested for plain gradients
PLAIN = [
    ("a-fedpdsam", {"rho": 5.0}, 1.0 / 15.0),
    ("fedcm", {"alpha": 0.5, "stop": Steps(steps=4)}, 0.1 / (0.5 * 4.0)),
    ("feddualavg", {}, 0.1),
    ("feddynsam", {"alpha": 5.0}, 1.0 / 15.0),
    ("fedsam", {}, 0.1),
    ("fedspeed", {"rho": 5.0}, 1.0 / 15.0),
    ("scaffnew", {}, 2.0 / 10.5),
    ("scaffold", {"stop": Steps(steps=4)}, 0.1 / 12.0),
]


@pytest.mark.parametrize(("name", "given", "step"), PLAIN, ids=[p[0] for p in PLAIN])
def test_suggested_steps_are_those_of_the_docstrings(name: str, given: dict, step: float) -> None:
    method = ALGORITHMS[name](**given).suggested(STRONG)
    assert isinstance(method.solver, Gradient)
    assert method.solver.step == pytest.approx(step, rel=1e-14)
    own = Gradient(step=0.01)
    assert ALGORITHMS[name](solver=own, **given).suggested(STRONG).solver == own


@pytest.mark.parametrize("name", ["fedcm", "feddualavg", "scaffnew"])
def test_a_solver_without_a_step_gets_one(name: str) -> None:
    method = ALGORITHMS[name](solver=Gradient(max_iter=7)).suggested(STRONG)
    assert method.solver == Gradient(step=method.solver.step, max_iter=7)
    assert method.solver.step > 0


def test_a_free_intercept_leaves_the_suggestion_of_the_other_weights() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 3)), np.sign(rng.normal(size=20))
    f = linear_model(X, y, loss=Logistic(), mu=0.04, clients=2, intercept="free")
    assert float(np.min(f.mu)) == 0.0
    weight = math.sqrt(0.04 * float(np.max(f.L)))
    assert vars(ALGORITHMS["a-fedpd"]().suggested(f))["rho"] == pytest.approx(weight, rel=1e-9)
    assert vars(ALGORITHMS["fedpd"]().suggested(f))["eta"] == pytest.approx(1.0 / weight, rel=1e-9)


@pytest.mark.parametrize(
    ("mu", "L", "both"),
    [
        ((0.5, 1.0), (4.0, 10.0), True),
        ((0.0, 1.0), (4.0, 10.0), False),
        ((-1.0, 1.0), (4.0, 10.0), False),
        ((0.5, 1.0), (4.0, math.inf), False),
    ],
)
def test_smooth_and_strongly_convex_are_all_clients_or_none(mu: tuple, L: tuple, both: bool) -> None:
    f: Any = SimpleNamespace(mu=np.array(mu), L=np.array(L))
    assert smooth_and_strongly_convex(f) is both
    factor = reflection_factor(f, 0.5)
    assert factor is None if not both else factor == pytest.approx(max(0.75 / 1.25, 4.0 / 6.0), rel=1e-14)


@pytest.mark.parametrize(
    ("mu", "weight", "why"),
    [
        (0.5, 0.0, ""),
        (0.0, 0.1, ""),
        (0.0, 0.0, "rho must be positive where clients are not strongly convex"),
        (-1.0, 1.1, ""),
        (-1.0, 1.0, "rho gives the proximal weight 1, which must exceed 1, the concavity"),
        (-math.inf, 0.0, ""),  # not known
    ],
)
def test_local_problems_have_one_solution(mu: float, weight: float, why: str) -> None:
    f: Any = SimpleNamespace(mu=np.array([2.0, mu]))
    with pytest.raises(ValueError, match=rf"^{why}") if why else nullcontext():
        require_convex_local_problem(f, weight, "rho")


def test_a_step_that_is_still_open_is_asked_for() -> None:
    assert step_of(Gradient(step=0.1)) == 0.1
    with pytest.raises(ValueError, match=r"^solver must have a step"):
        step_of(Gradient())


USUAL = ["a-fedpd", "dualfl", "fedadmm", "feddr", "feddyn", "fedpd", "fedprox", "fedsplit"]
ACCELERATED = ["acc-s-dane", "adaptive-acc-s-dane", "anderson-dane", "anderson-fedsplit", "dual-lbfgs"]


@pytest.mark.parametrize("name", [*USUAL, *ACCELERATED, "optimized-dualfl", "fedspeed"])
def test_the_usual_solver_is_suggested_unless_there_is_one(name: str) -> None:
    options = {"radius": 0.0} if name == "fedspeed" else {}
    kind = ALGORITHMS[name]
    assert kind(**options).suggested(STRONG).solver == Exact()
    assert kind(solver=LBFGS(), **options).suggested(STRONG).solver == LBFGS()
    assert kind(**options).suggested(logistic()).solver == LBFGS(history=10, precondition=False)  # few short rows


@pytest.mark.parametrize("name", ["apda-inexact", "fedavg"])
def test_gradient_steps_are_suggested_unless_there_is_a_solver(name: str) -> None:
    assert ALGORITHMS[name]().suggested(STRONG).solver == Gradient()
    assert ALGORITHMS[name](solver=LBFGS()).suggested(STRONG).solver == LBFGS()


class Unknown(ObjectiveWrapper):
    """An objective of which neither mu nor L is known."""

    def __init__(self, objective) -> None:
        self.objective = objective

    @property
    def mu(self):
        return np.full(2, -math.inf)

    @property
    def L(self):
        return np.full(2, math.inf)


NEEDED = [
    *(
        (name, Unknown(STRONG), p)
        for name, p in (
            ("a-fedpd", "rho"),
            ("fedadmm", "rho"),
            ("feddr", "eta"),
            ("feddyn", "alpha"),
            ("fedpd", "eta"),
            ("fedprox", "mu_prox"),
            ("fedspeed", "rho"),
            ("fedsplit", "step"),
            ("anderson-fedsplit", "step"),
            ("acc-s-dane", "weight"),
            ("adaptive-acc-s-dane", "first"),
            ("gradient-descent", "step"),
        )
    ),
    *((name, f, "nu") for name in ("dualfl", "optimized-dualfl", "dual-ascent", "dual-lbfgs") for f in (FLAT, CONCAVE)),
    *((name, f, "objective") for name in ("fivegcs", "apda-inexact") for f in (FLAT, CONCAVE, hinge())),
    *((name, f, "probability") for name in ("scaffnew",) for f in (FLAT, CONCAVE)),
    *((name, hinge(), "objective") for name in ("gradient-descent", "distributed-lbfgs", "distributed-newton-cg")),
    *((name, hinge(), "objective") for name in ("anderson-dane", "giant", "acc-s-dane")),
    *((name, hinge(), "solver") for name in ("fedsam", "fedcm", "feddualavg", "scaffold", "scaffnew")),
]


@pytest.mark.parametrize(("name", "f", "parameter"), NEEDED, ids=[f"{s[0]}-{i}" for i, s in enumerate(NEEDED)])
def test_what_cannot_be_suggested_is_asked_for(name: str, f, parameter: str) -> None:
    with pytest.raises(ValueError, match=rf"^{re.escape(parameter)} (must be|cannot be suggested)"):
        ALGORITHMS[name]().suggested(f)


# name, what is admitted, what is not, and what the sentence says
CHECKED = [
    ("dualfl", {"nu": 0.5}, {"nu": 0.5 * (1.0 + 1e-7)}, "nu = 0.5 must not exceed mu = 0.5"),
    ("optimized-dualfl", {"nu": 0.5}, {"nu": 1.0}, "nu = 1 must not exceed mu = 0.5"),
    ("dual-lbfgs", {"nu": 0.5}, {"nu": 1.0}, "nu = 1 must not exceed mu = 0.5"),
    ("fivegcs", {"mu": 0.5}, {"mu": 0.5 * (1.0 + 1e-7)}, "mu = 0.5 must not exceed 0.5"),
    (
        "fivegcs",
        {"gamma": 0.5, "tau": 1.0},
        {"gamma": 0.5, "tau": 1.01},
        "tau must be at most 1/(gamma N), but tau gamma N = 1.01",
    ),
]


@pytest.mark.parametrize(("name", "good", "bad", "why"), CHECKED, ids=[f"{s[0]}-{i}" for i, s in enumerate(CHECKED)])
def test_parameters_outside_a_theory_are_refused(name: str, good: dict, bad: dict, why: str) -> None:
    ALGORITHMS[name](**good).suggested(STRONG).check(STRONG)
    with pytest.raises(ValueError, match=re.escape(why)):
        ALGORITHMS[name](**bad).suggested(STRONG).check(STRONG)
