"""Whole runs to a certified accuracy against what a user would pick instead: scikit-learn's central solve, and CVXPY.

Run with ``pytest tests/benchmarks/test_runs.py --benchmark-only -s``; CPU times of one thread, medians of contestants
that take turns. A federated method does not see the rows together, so a central solve is the faster one: the ratio is
the price of keeping them apart.
"""

from __future__ import annotations

import warnings
from itertools import islice

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from dualopt.engine.rounds import iterate
from dualopt.losses import Multinomial
from dualopt.methods import DualFL
from dualopt.objectives import LocalProblem, linear_model
from dualopt.problem.data import encode_labels, iid, load
from dualopt.runs.certificates import certificate
from dualopt.runs.recording import run
from dualopt.runs.reference import solve
from dualopt.solvers import LBFGS
from dualopt.solvers.stopping import GradientNorm

from .conftest import CLASSES
from .race import in_turns, report

TOL = 1e-6
TOLERANCES = (1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 3e-6, 1e-6, 3e-7, 1e-7)


@pytest.mark.parametrize(("name", "mu", "clients"), [("digits", 1e-2, 8), ("mnist", 1e-2, 8)])
def test_a_central_solve(benchmark, name, mu, clients):
    """DualFL to a certified error of 1e-6, and scikit-learn by the first tolerance that reaches it."""
    try:
        data = load(name)
    except ValueError as error:
        pytest.skip(str(error))
    X = np.column_stack([data.X, np.ones(len(data.X))])  # its weight is regularised too
    y = encode_labels(data.y, "class")
    options = {"loss": Multinomial(classes=CLASSES), "mu": mu, "intercept": False}
    federation = linear_model(X, y, clients=[part.tolist() for part in iid(len(y), clients, 0)], **options)
    central = linear_model(X, y, **options)

    def fit(tol: float) -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = LogisticRegression(C=1 / (mu * len(y)), tol=tol, fit_intercept=False, max_iter=2000)
            return model.fit(X, y).coef_

    tol = next(t for t in TOLERANCES if certificate(central, fit(t)).relative <= TOL)
    methods = {
        "scikit-learn, central": lambda: fit(tol),
        "DualFL": lambda: run(DualFL(), federation, rounds=500, tol=TOL, certify_every=5, threads=1),
    }
    seconds, results = in_turns(methods, 1 if name == "mnist" else 5)
    benchmark.pedantic(methods["DualFL"], rounds=1)
    trace = results["DualFL"]
    assert trace.status == "converged"
    assert certificate(federation, trace.theta).relative <= 10 * TOL  # by the gradient at the model alone
    report(
        f"{name}, {clients} clients, certified error {TOL:g}: {len(trace) - 1} rounds, "
        f"{trace.last['gradients']:.0f} gradients per client",
        ["contestant", "s of CPU time", "time / scikit-learn"],
        [[n, f"{s:.2f}", f"{s / seconds['scikit-learn, central']:.1f}"] for n, s in seconds.items()],
    )


def test_gradients_of_a_central_solve(benchmark, images):
    """DualFL to 1e-10 on MNIST: at most 4.5 times the gradients per client of SciPy's L-BFGS on all rows, 20 pairs."""
    X, y, source = images
    if source != "MNIST":
        pytest.skip("needs MNIST: the number of gradients depends on the data")
    options = {"loss": Multinomial(classes=CLASSES), "mu": 1e-2}
    central, federation = (linear_model(X, y, clients=n, **options) for n in (1, 8))
    problem, start = LocalProblem(objective=central), central.zeros()[None]
    lowest = LBFGS()(problem, start, GradientNorm(tol=1e-9)).evaluation.f[0]
    levels, values = (1e-6, 1e-8, 1e-10), []

    def value_and_gradient(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = central.value_and_gradient(np.reshape(x, central.shape))
        values.append(float(value[0]))
        return values[-1], np.ravel(gradient[0])

    options = {"maxcor": 20, "ftol": 0.0, "gtol": 1e-9}
    minimize(value_and_gradient, np.ravel(central.zeros()), jac=True, method="L-BFGS-B", options=options)
    reached = [next(float(n) for n, value in enumerate(values, 1) if value <= (1 + level) * lowest) for level in levels]
    counts: dict[str, list[float]] = {"L-BFGS of SciPy on all rows": reached, "DualFL": [], "rounds of DualFL": []}

    def federated() -> None:
        counts["DualFL"], counts["rounds of DualFL"], total = [], [], 0.0
        for n, s in enumerate(islice(iterate(DualFL(rho=3e-3, nu=1e-2), federation), 300)):
            assert s.solution is not None
            total += float(np.mean(np.asarray(s.solution.gradients)))
            error = federation.value(s.server.theta).mean() / lowest - 1.0
            while (level := len(counts["DualFL"])) < len(levels) and error <= levels[level]:
                counts["DualFL"].append(total)
                counts["rounds of DualFL"].append(n + 1)
            if len(counts["DualFL"]) == len(levels):
                return

    benchmark.pedantic(federated, rounds=1)
    report(
        f"Gradients per client, {source}, 8 clients, mu = 0.01, rho = 0.003",
        ["count", *(f"to {level:g}" for level in levels)],
        [[name, *(f"{number:.0f}" for number in numbers)] for name, numbers in counts.items()]
        + [["ratio", *(f"{a / b:.2f}" for a, b in zip(counts["DualFL"], reached, strict=True))]],
    )
    assert counts["DualFL"][-1] <= 4.5 * reached[-1]


def test_cvxpy(benchmark):
    """The certified optimum of the digits against an interior-point method of CVXPY."""
    cvxpy = pytest.importorskip("cvxpy")
    data = load("digits")
    y = encode_labels(data.y, "class")
    f = linear_model(data.X, y, loss=Multinomial(classes=CLASSES), mu=1e-2, clients=8)

    def by_cvxpy() -> float:
        theta = cvxpy.Variable(f.shape)
        total = 0.5 * f.ridge * cvxpy.sum_squares(theta)
        for X, labels, w in f.client_rows():
            total += w @ f.loss.cvxpy(theta @ X.T, labels) / f.n_clients
        problem = cvxpy.Problem(cvxpy.Minimize(total))
        problem.solve(solver=cvxpy.CLARABEL)
        return float(problem.value)

    contestants = {
        "Newton's method of dualopt": lambda: solve(f).energy,
        "DualFL, certified 1e-10": lambda: run(DualFL(), f, rounds=1000, tol=1e-10, certify_every=5).last["energy"],
        "CVXPY, Clarabel": by_cvxpy,
    }
    seconds, results = in_turns(contestants, 1)
    benchmark.pedantic(contestants["Newton's method of dualopt"], rounds=1)
    for energy in results.values():
        assert energy == pytest.approx(results["CVXPY, Clarabel"], rel=1e-6)
    report(
        "digits, 1797 x 65, 10 classes, 8 clients: the minimum",
        ["contestant", "s of CPU time", "energy"],
        [[name, f"{s:.2f}", f"{results[name]:.12g}"] for name, s in seconds.items()],
    )
