"""Compiled products against those of BLAS: gradients, and five rounds of DualFL.

Run with ``pytest tests/benchmarks/test_fast.py --benchmark-only -s``, where Numba is installed (extra ``fast``); times
are CPU times of one thread. Without ``DUALOPT_DATA_HOME`` random pixels take the place of MNIST.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest

from dualopt.engine.rounds import iterate
from dualopt.losses import Logistic, Multinomial
from dualopt.methods import DualFL
from dualopt.objectives import _kernels, linear_model
from dualopt.solvers.stopping import GradientReduction

from .conftest import CLASSES
from .race import in_turns, report
from .test_sparse import rows_of

pytestmark = pytest.mark.skipif(not _kernels.fits(CLASSES, 785, 8), reason="needs Numba, and a processor with AVX2")
PRODUCTS = {"BLAS": "0", "compiled": "1"}


def both(monkeypatch: pytest.MonkeyPatch, *args: Any, **options: Any) -> dict[str, Any]:
    """Return the model with products of either kind."""
    models = {}
    for name, setting in PRODUCTS.items():
        monkeypatch.setenv("DUALOPT_FAST", setting)
        models[name] = linear_model(*args, **options)
    return models


def gradients(monkeypatch: pytest.MonkeyPatch, *args: Any, turns: int = 15, **options: Any) -> dict[str, float]:
    """Return the CPU seconds of a gradient, after a check that the numbers are the same."""
    models = both(monkeypatch, *args, **options)
    f = models["BLAS"]
    theta = 0.05 * np.random.default_rng(1).standard_normal((f.n_clients, *f.shape))
    theta = theta.astype(f.rows.like.dtype)
    seconds, results = in_turns({name: lambda f=f: f.value_and_gradient(theta) for name, f in models.items()}, turns)
    error = 1e-12 if theta.dtype == np.float64 else 1e-4
    for own, other in zip(results["compiled"], results["BLAS"], strict=True):
        assert np.abs(own - other).max() <= error * np.abs(other).max()
    return {**seconds, "compiled at all": float(models["compiled"].rows.is_compiled)}


def test_gradients(benchmark, monkeypatch, images):
    """At most 0.75 of the time in float64 and 0.5 in float32 at MNIST size, where registers have 64 bytes."""
    X, y, source = images
    loss = Multinomial(classes=CLASSES)
    rng = np.random.default_rng(0)
    found = {}
    for dtype in (np.float64, np.float32):
        pixels = X.astype(dtype)
        for n in (8, 512, 4096):
            case = f"{source}, {pixels.dtype}, N = {n}"
            found[case] = gradients(monkeypatch, pixels, y, loss=loss, mu=0.0, clients=n)
        small = rng.normal(size=(2_000_000, 20)).astype(dtype)
        labels = rng.integers(0, CLASSES, small.shape[0])
        case = f"100,000 clients of 20 x 21, {pixels.dtype}"
        found[case] = gradients(monkeypatch, small, labels, loss=loss, mu=0.0, clients=100_000, turns=5)
    A, b, name = rows_of("a9a", 32561, 123, 14, 2)
    labels = (b == b.max()).astype(np.int64)
    for dense, k in ((A.toarray(), 1), (A.toarray(), 2)):
        y_of_k = 2.0 * labels - 1.0 if k == 1 else labels
        own: Any = Logistic() if k == 1 else Multinomial(classes=2)
        found[f"{name}, dense, k = {k}, N = 10"] = gradients(monkeypatch, dense, y_of_k, loss=own, mu=0.0, clients=10)

    model = both(monkeypatch, X, y, loss=loss, mu=0.0, clients=8)["compiled"]
    theta = model.zeros()
    benchmark.pedantic(lambda: model.value_and_gradient(theta), rounds=5)
    ratios = {case: seconds["compiled"] / seconds["BLAS"] for case, seconds in found.items()}
    report(
        f"A gradient with registers of {_kernels.REGISTER} bytes, k = {CLASSES} where nothing else is said, medians",
        ["rows", "BLAS, ms", "compiled, ms", "ratio"],
        [
            [
                case,
                f"{1e3 * seconds['BLAS']:.1f}",
                f"{1e3 * seconds['compiled']:.1f}" if seconds["compiled at all"] else "not chosen",
                f"{ratios[case]:.2f}" if seconds["compiled at all"] else "",
            ]
            for case, seconds in found.items()
        ],
    )
    assert ratios[f"{source}, float64, N = 8"] <= 0.75
    if _kernels.WIDE:
        assert ratios[f"{source}, float32, N = 8"] <= 0.5


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_dualfl(benchmark, monkeypatch, images, dtype):
    """Five rounds at MNIST size, with everything else that a round computes."""
    X, y, source = images
    models = both(monkeypatch, X.astype(dtype), y, loss=Multinomial(classes=CLASSES), mu=1e-2, clients=8)
    method = DualFL(rho=3e-3, nu=1e-2, stop=GradientReduction(factor=0.01))

    def five(f: Any) -> tuple[float, float]:
        snapshots = list(islice(iterate(method, f), 5))
        return f.value(snapshots[-1].server.theta).mean(), sum(
            sum(s.solution.gradients) for s in snapshots if s.solution
        ) / 8

    for f in models.values():
        five(f)  # preconditioners are computed once
    seconds, results = in_turns({name: lambda f=f: five(f) for name, f in models.items()}, 5)
    benchmark.pedantic(lambda: five(models["compiled"]), rounds=1)
    ratio = seconds["compiled"] / seconds["BLAS"]
    report(
        f"5 rounds of DualFL, {source}, {np.dtype(dtype)}, N = 8, medians of 5",
        ["products", "s of CPU time", "gradients / client", "energy"],
        [[name, f"{s:.2f}", f"{results[name][1]:.1f}", f"{results[name][0]:.10g}"] for name, s in seconds.items()],
    )
    assert ratio < 1.0
