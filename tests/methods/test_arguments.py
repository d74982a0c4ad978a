"""Arguments of the methods: what is refused, by name, and what is admitted up to the end of a range."""

from __future__ import annotations

import math
import re
from ast import literal_eval
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

import dualopt.losses
import dualopt.methods
import dualopt.solvers
from dualopt.methods.preparation import SketchedMetric
from dualopt.objectives import NonconvexPenalty, Quadratic, SharpnessAware
from dualopt.solvers import LBFGS, SGD, Exact, Gradient, Sarah
from dualopt.solvers.stopping import Gap, GradientNorm, GradientReduction, Steps
from dualopt.spec.discover import discover
from tests.problems import one_concave_client

ALGORITHMS = discover(dualopt.methods)
LOCAL_RULES = {kind.__name__: kind for kind in (GradientReduction, Gap)}
PARTS: dict[str, Any] = {**ALGORITHMS, **discover(dualopt.solvers), **discover(dualopt.losses), **LOCAL_RULES}
PARTS |= {kind.__name__: kind for kind in (NonconvexPenalty, SharpnessAware, SketchedMetric)}

DUAL = [
    *("corrected-dualfl", "corrected-optimized-dualfl", "gap-restarted-dualfl"),
    *("restarted-dualfl", "restarted-optimized-dualfl"),
]
POSITIVE = {
    "a-fedpd": ("rho",),
    "a-fedpdsam": ("rho", "radius", "epsilon"),
    "apda-inexact": ("eta_x", "eta_y", "beta_y", "theta"),
    "adaptive-dualfl": ("nu", "first"),
    "dualfl": ("nu",),
    "fedadmm": ("rho", "server_step"),
    "fedcm": ("server_step",),
    "feddr": ("eta",),
    "feddualavg": ("server_step",),
    "feddyn": ("alpha",),
    "feddynsam": ("alpha", "radius", "epsilon"),
    "growing-feddyn": ("alpha",),
    "old-dual-fedpd": ("eta",),
    "scaffold-i": ("server_step",),
    **{name: ("nu",) for name in DUAL},
    "fedpd": ("eta",),
    "fedprox": ("mu_prox",),
    "fedsam": ("radius", "epsilon"),
    "fedspeed": ("rho", "server_step", "epsilon"),
    "anderson-dane": ("eta",),
    "dual-ascent": ("nu",),
    "dual-lbfgs": ("nu",),
    "anderson-fedsplit": ("step",),
    "fedsplit": ("step",),
    "consensus-fedsplit": ("step",),
    "gradient-descent": ("step",),
    "fivegcs": ("gamma", "tau", "mu"),
    "optimized-dualfl": ("nu",),
    "sampled-dualfl": ("nu",),
    "scaffold": ("server_step",),
}


@pytest.mark.parametrize(("name", "parameter"), [(name, p) for name, of in POSITIVE.items() for p in of])
def test_numbers_that_are_not_positive_and_finite_are_refused(name: str, parameter: str) -> None:
    for bad in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match=f"^{parameter} must be a positive finite number, not {bad}"):
            ALGORITHMS[name](**{parameter: bad})
    assert getattr(ALGORITHMS[name](**{parameter: 1e-3}), parameter) == 1e-3


# name, parameter, what is admitted, what is not
RANGES = [
    ("dualfl", "rho", (0.0, 1e-3, 0.999), (-0.1, 1.0, 1.5, math.nan)),
    ("sampled-dualfl", "rho", (0.0, 1e-3, 0.999), (-0.1, 1.0, 1.5, math.nan)),
    ("sampled-dualfl", "fraction", (1e-3, 1.0), (0.0, -0.5, 1.1, math.nan)),
    ("optimized-dualfl", "rho", (0.0, 1e-3, 0.999), (-0.1, 1.0, 1.5, math.nan)),
    ("feddr", "relaxation", (1e-3, 1.0, 2.0), (0.0, -0.5, 2.1, math.nan)),
    ("feddyn", "fraction", (1e-3, 1.0), (0.0, -0.5, 1.1, math.nan)),
    ("growing-feddyn", "growth", (0.0, 1e-3, 10.0), (-0.1, math.inf, math.nan)),
    ("fivegcs", "fraction", (1e-3, 1.0), (0.0, -0.5, 1.1, math.nan)),
    ("scaffnew", "probability", (1e-3, 1.0), (0.0, -0.5, 1.1, math.nan)),
    ("fedcm", "alpha", (1e-3, 1.0), (0.0, -0.5, 1.1, math.nan)),
    ("fedspeed", "radius", (0.0, 1e-3), (-0.1, math.nan)),
    ("anderson-dane", "memory", (1, 2, 1000), (0, -1, 1001, 10**30)),
    ("anderson-dane", "weight", (0.0, 1.0), (-0.1, math.nan)),
    ("anderson-fedsplit", "memory", (1, 2, 1000), (0, -1, 1001, 10**30)),
    ("giant", "weight", (0.0, 1.0), (-0.1, math.nan)),
    ("giant", "reduction", (1e-12, 0.999), (0.0, 1.0, -0.1, math.nan)),
    ("giant", "relaxation", (0.0, 0.999), (-0.1, 1.0, math.nan)),
    ("giant", "max_cg", (1, 2), (0, -1)),
    ("giant", "steps", ((1.0,), (1e-3, 4.0)), ((), (0.0,), (1.0, -1.0), (math.inf,), (math.nan,))),
    ("acc-s-dane", "weight", (0.0, 1.0), (-0.1, math.nan)),
    ("acc-s-dane", "mu", (0.0, 1.0), (-0.1, math.nan)),
    ("adaptive-acc-s-dane", "first", (0.0, 1.0), (-0.1, math.nan)),
    ("adaptive-acc-s-dane", "mu", (0.0, 1.0), (-0.1, math.nan)),
    ("dual-lbfgs", "history", (1, 2, 1000), (0, -1, 1001, 10**30)),
    ("distributed-lbfgs", "history", (1, 2, 1000), (0, -1, 1001, 10**30)),
    ("distributed-newton-cg", "max_cg", (1, 2), (0, -1)),
]


@pytest.mark.parametrize(("name", "parameter", "good", "bad"), RANGES, ids=[f"{r[0]}-{r[1]}" for r in RANGES])
def test_ranges_are_refused_beyond_their_ends(name: str, parameter: str, good: tuple, bad: tuple) -> None:
    for value in good:
        assert getattr(ALGORITHMS[name](**{parameter: value}), parameter) == value
    for value in bad:
        with pytest.raises(ValueError, match=f"^{parameter} must "):
            ALGORITHMS[name](**{parameter: value})


PLAIN = "solver must be Gradient or SGD"
LOCAL = "solver must compute local gradients"
ONE_LENGTH = "solver must take one step of one length in every round"
COUNT = "stop must be a number of steps"
STEP, SAMPLES, EPOCHS = Gradient(step=0.1), SGD(step=0.1, batch=1), SGD(step=0.1, batch=1, epochs=1)
# name, what is admitted, what is not, and why
SOLVERS = [
    ("dual-lbfgs", {"solver": Exact()}, {"solver": SAMPLES}, LOCAL),
    ("corrected-dualfl", {"solver": Exact()}, {"solver": SAMPLES}, LOCAL),
    ("corrected-dualfl", {"solver": Exact()}, {"solver": Sarah(gamma=0.1)}, LOCAL),
    ("corrected-optimized-dualfl", {"solver": Exact()}, {"solver": SAMPLES}, LOCAL),
    ("gap-restarted-dualfl", {"solver": Exact()}, {"solver": SAMPLES}, LOCAL),
    ("adaptive-dualfl", {"solver": Exact()}, {"solver": SAMPLES}, LOCAL),
    ("apda-inexact", {"solver": Exact()}, {"solver": SAMPLES}, LOCAL),
    ("a-fedpdsam", {"solver": SAMPLES}, {"solver": LBFGS()}, PLAIN),
    ("feddynsam", {"solver": SAMPLES}, {"solver": LBFGS()}, PLAIN),
    ("fedsam", {"solver": STEP}, {"solver": LBFGS()}, PLAIN),
    ("fedcm", {"solver": STEP}, {"solver": LBFGS()}, PLAIN),
    ("fedcm", {"solver": SAMPLES}, {"solver": EPOCHS}, "server_step must be given when the solver counts epochs"),
    ("fedcm", {"solver": EPOCHS, "server_step": 0.1}, {"solver": EPOCHS}, "server_step must be given"),
    ("scaffold", {"solver": SAMPLES}, {"solver": LBFGS()}, PLAIN),
    ("scaffnew", {"solver": SAMPLES}, {"solver": LBFGS()}, PLAIN),
    ("scaffnew", {"solver": SAMPLES}, {"solver": EPOCHS}, ONE_LENGTH),
    ("scaffnew", {"solver": SAMPLES}, {"solver": SGD(step=0.1, decay=0.9)}, ONE_LENGTH),
    ("fedspeed", {"solver": LBFGS(), "radius": 0.0}, {"solver": LBFGS(), "radius": 1e-3}, PLAIN),
    ("feddualavg", {"solver": STEP}, {"solver": SAMPLES}, "solver must be Gradient, not SGD"),
    ("fedcm", {"stop": Steps(steps=3)}, {"stop": GradientNorm(tol=0.1)}, COUNT),
    ("scaffold", {"stop": Steps(steps=3)}, {"stop": GradientNorm(tol=0.1)}, COUNT),
    ("feddualavg", {"stop": Steps(steps=3)}, {"stop": GradientNorm(tol=0.1)}, COUNT),
]


@pytest.mark.parametrize(("name", "good", "bad", "why"), SOLVERS, ids=[f"{s[0]}-{i}" for i, s in enumerate(SOLVERS)])
def test_solvers_and_rules_of_another_kind_are_refused(name: str, good: dict, bad: dict, why: str) -> None:
    ALGORITHMS[name](**good)
    with pytest.raises(ValueError, match=f"^{re.escape(why)}"):
        ALGORITHMS[name](**bad)


# the parameter that sets the weight of the proximal term, and its value for a weight
WEIGHTS = {
    "a-fedpd": ("rho", lambda weight: weight),
    "a-fedpdsam": ("rho", lambda weight: weight),
    "fedadmm": ("rho", lambda weight: weight),
    "feddr": ("eta", lambda weight: 1.0 / weight),
    "feddyn": ("alpha", lambda weight: weight),
    "feddynsam": ("alpha", lambda weight: weight),
    "fedpd": ("eta", lambda weight: 1.0 / weight),
    "fedprox": ("mu_prox", lambda weight: weight),
    "fedspeed": ("rho", lambda weight: weight),
    "anderson-fedsplit": ("step", lambda weight: 1.0 / weight),
    "fedsplit": ("step", lambda weight: 1.0 / weight),
}


@pytest.mark.parametrize("name", WEIGHTS)
def test_a_weight_must_exceed_the_concavity(name: str) -> None:
    """With mu_1 = -1 the local problem of the first client is strongly convex for weights above 1, and for no other."""
    parameter, value = WEIGHTS[name]
    f = one_concave_client()
    for weight in (0.25, 0.5, 1.0):
        with pytest.raises(
            ValueError, match=f"^{parameter} gives the proximal weight {weight:g}, which must exceed 1,"
        ):
            ALGORITHMS[name](**{parameter: value(weight)}).suggested(f).check(f)
    for weight in (1.125, 2.0, 4.0):
        ALGORITHMS[name](**{parameter: value(weight)}).suggested(f).check(f)


@pytest.mark.parametrize("name", WEIGHTS)
def test_any_weight_does_where_mu_is_not_known(name: str) -> None:
    class Unknown(Quadratic):
        @property
        def mu(self):
            return np.full(4, -math.inf)

    f = one_concave_client()
    assert f.c is not None
    parameter, value = WEIGHTS[name]
    unknown = Unknown(A=f.A, b=f.b, c=f.c)
    ALGORITHMS[name](**{parameter: value(0.5)}).suggested(unknown).check(unknown)


# what the docstrings say of a parameter that is not given
DEFAULTS = [
    ("anderson-fedsplit", {"stop": GradientReduction(factor=0.03)}),
    *((name, {"stop": GradientReduction(factor=0.01)}) for name in ALGORITHMS if "dane" in name),
    ("a-fedpdsam", {"radius": 0.1, "epsilon": 1e-2, "stop": Steps(steps=10)}),
    ("apda-inexact", {"stop": Steps(steps=10)}),
    ("fedadmm", {"server_step": None}),
    ("fedavg", {"stop": Steps(steps=10)}),
    ("fedcm", {"alpha": 0.1, "server_step": None, "stop": Steps(steps=10)}),
    ("feddualavg", {"server_step": 1.0, "stop": Steps(steps=10)}),
    ("fedsam", {"radius": 0.05, "epsilon": 1e-2, "stop": Steps(steps=10)}),
    ("fedspeed", {"radius": 0.1, "epsilon": 1e-2, "stop": Steps(steps=10)}),
    ("feddyn", {"fraction": None}),
    ("feddynsam", {"radius": 0.1, "epsilon": 1e-2, "stop": Steps(steps=10)}),
    ("fivegcs", {"fraction": None}),
    ("sampled-dualfl", {"fraction": None}),
    ("scaffnew", {"stop": Steps(steps=1)}),
    ("scaffold", {"server_step": 1.0, "stop": Steps(steps=10)}),
]


@pytest.mark.parametrize(("name", "defaults"), DEFAULTS, ids=[d[0] for d in DEFAULTS])
def test_defaults_are_those_of_the_docstrings(name: str, defaults: dict) -> None:
    method = ALGORITHMS[name]()
    assert {parameter: getattr(method, parameter) for parameter in defaults} == defaults


@pytest.mark.parametrize("name", PARTS)
def test_defaults_that_a_docstring_names_are_those_of_the_class(name: str) -> None:
    defaults = {field.name: field.default for field in fields(PARTS[name])}
    named = re.findall(r"^ +(\w+) : .*, default (.+)$", PARTS[name].__doc__ or "", re.MULTILINE)
    assert {parameter: literal_eval(value) for parameter, value in named}.items() <= defaults.items()
    numbers = {parameter for parameter, value in defaults.items() if type(value) in (int, float)}
    assert name in ALGORITHMS or numbers <= dict(named).keys()


@pytest.mark.parametrize("name", ["scaffnew"])
def test_one_local_step_is_not_an_option(name: str) -> None:
    with pytest.raises(TypeError, match="stop"):
        ALGORITHMS[name](stop=Steps(steps=2))
