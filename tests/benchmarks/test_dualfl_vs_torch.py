"""Five rounds of DualFL at MNIST size against a loop over clients with torch.optim.LBFGS.

Run with ``pytest tests/benchmarks/test_dualfl_vs_torch.py --benchmark-only -s`` (some minutes). Two forms of
the loop are timed:

* fixed tolerance: torch's own rule, the largest entry of the gradient against one ``tolerance_grad`` for all
  rounds, the loosest of a list whose energy after the rounds is that of exact local solutions to 1e-6. Its
  other rule, ``tolerance_change``, keeps its default of 1e-9 and may end a call earlier, in torch's favour;
* our rule: the 2-norm of the gradient against a fraction of its value at the start of the call. torch has no
  such rule, so the closure checks it and ends the step by an exception at the first point that satisfies it,
  be it in the middle of a line search: the rule never costs torch a gradient.

A new optimizer is made for each local problem: torch's curvature pairs would mix two objectives.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from itertools import islice

import pytest

from dualopt.engine.rounds import iterate
from dualopt.losses import Multinomial
from dualopt.methods import DualFL
from dualopt.objectives import linear_model
from dualopt.solvers.stopping import GradientNorm, GradientReduction

from .conftest import CLASSES
from .race import race, report

N_CLIENTS, ROUNDS = 8, 5
MU = NU = 1e-2
RHO = 3e-3
HISTORY = 20
ACCURACY = 1e-6
FACTORS = (0.1, 0.03, 0.01, 0.003, 0.001)
TOLERANCES = (1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 3e-6, 1e-6, 1e-7, 1e-8)
REPETITIONS = 3


class SmallEnoughError(Exception):
    """Raised by a closure to end the optimizer's step."""


def torch_local_solution(torch, X, y, start, zeta, *, tolerance, factor):
    """Minimise ``f_j - nu <zeta_j, .>`` and count the gradients."""
    theta = start.clone().requires_grad_()
    optimizer = torch.optim.LBFGS(
        [theta],
        line_search_fn="strong_wolfe",
        history_size=HISTORY,
        max_iter=1000,
        tolerance_grad=tolerance,
        tolerance_change=1e-9 if tolerance else 0.0,  # torch's default; no second rule beside ours
    )
    norms = []

    def closure():
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(X @ theta.T, y)
        loss = loss + 0.5 * MU * (theta * theta).sum() - NU * (zeta * theta).sum()
        loss.backward()
        norms.append(float(theta.grad.norm()))
        if norms[-1] <= factor * norms[0]:
            raise SmallEnoughError
        return loss

    with suppress(SmallEnoughError):
        optimizer.step(closure)
    return theta.detach(), len(norms)


def torch_dualfl(torch, clients, *, tolerance=0.0, first=0.0, factor=0.0):
    """Run the rounds from zero; return the model and the gradients of all clients together."""
    zero = torch.zeros((CLASSES, clients[0][0].shape[1]), dtype=torch.float64)
    local, zeta, v = [zero] * N_CLIENTS, [zero] * N_CLIENTS, [zero] * N_CLIENTS
    theta, t, gradients = zero, 1.0, 0
    for n in range(ROUNDS):
        for j, (X, y) in enumerate(clients):
            local[j], count = torch_local_solution(
                torch, X, y, local[j], zeta[j], tolerance=tolerance, factor=factor if n else first
            )
            gradients += count
        theta = torch.stack(local).mean(dim=0)
        a = 1.0 - RHO * t * t
        t_next = 0.5 * (a + math.sqrt(a * a + 4.0 * t * t))
        beta = (t - 1.0) / t_next * (1.0 - t_next * RHO) / (1.0 - RHO)
        for j in range(N_CLIENTS):
            new = zeta[j] + theta - local[j]
            zeta[j], v[j] = (1.0 + beta) * new - beta * v[j], new
        t = t_next
    return theta.numpy(), float(gradients)


def our_dualfl(objective, stop):
    """Run the same rounds with dualopt."""
    snapshots = list(islice(iterate(DualFL(rho=RHO, nu=NU, stop=stop), objective), ROUNDS))
    gradients = sum(sum(snapshot.solution.gradients) for snapshot in snapshots if snapshot.solution)
    return snapshots[-1].server.theta, gradients


def set_up(objective):
    """Compute what dualopt keeps with the data: the smoothness constants and the preconditioners."""
    groups = tuple(replace(group, cache={}) for group in objective.rows.groups)
    fresh = replace(objective, rows=replace(objective.rows, groups=groups))
    fresh.preconditioner()(fresh.zeros())
    return fresh, fresh.L


@pytest.fixture
def torch():
    """PyTorch on one thread, where it is installed."""
    module = pytest.importorskip("torch")
    threads = module.get_num_threads()
    module.set_num_threads(1)
    yield module
    module.set_num_threads(threads)


def test_dualfl_vs_torch(benchmark, images, torch):
    """At the same energy, a quarter of the time or less."""
    X, y, source = images
    objective, _ = set_up(linear_model(X, y, loss=Multinomial(classes=CLASSES), mu=MU, clients=N_CLIENTS))
    clients = [(torch.from_numpy(A), torch.from_numpy(labels)) for A, labels, _ in objective.client_rows()]

    exact = objective.value(our_dualfl(objective, GradientNorm(tol=1e-8))[0]).mean()

    def error(theta):
        return abs(objective.value(theta).mean() - exact) / exact

    def loosest(numbers, model):
        return next((x for x in numbers if error(model(x)) <= ACCURACY), numbers[-1])

    factor = loosest(FACTORS, lambda x: our_dualfl(objective, GradientReduction(factor=x))[0])
    tolerance = loosest(TOLERANCES, lambda x: torch_dualfl(torch, clients, tolerance=x)[0])
    stop = GradientReduction(factor=factor)

    timed = race(
        benchmark,
        {
            "dualopt": lambda: our_dualfl(objective, stop),
            "dualopt set-up": lambda: set_up(objective),
            "torch, fixed tolerance": lambda: torch_dualfl(torch, clients, tolerance=tolerance),
            "torch, our rule": lambda: torch_dualfl(torch, clients, first=stop.first, factor=stop.factor),
        },
        repetitions=REPETITIONS,
        warmup=0,  # the search for the tolerances was one
    )

    seconds = timed.seconds
    runs = {name: result for name, result in timed.results.items() if name != "dualopt set-up"}
    errors = {name: error(theta) for name, (theta, _) in runs.items()}
    gradients = {name: count / N_CLIENTS for name, (_, count) in runs.items()}
    ratios = {name: seconds[name] / seconds["dualopt"] for name in runs}
    with_set_up = {name: seconds[name] / (seconds["dualopt"] + seconds["dualopt set-up"]) for name in runs}
    report(
        f"{ROUNDS} rounds of DualFL, {source}, N = {N_CLIENTS}; wall time, medians of {REPETITIONS}; "
        f"factor = {factor:g}, tolerance_grad = {tolerance:g}, set-up {seconds['dualopt set-up']:.2f} s",
        ["contestant", "s", "gradients / client", "error", "time / dualopt", "with set-up"],
        [
            [
                name,
                f"{seconds[name]:.2f}",
                f"{gradients[name]:.1f}",
                f"{errors[name]:.1e}",
                f"{ratios[name]:.2f}",
                f"{with_set_up[name]:.2f}",
            ]
            for name in runs
        ],
    )
    assert max(errors["dualopt"], errors["torch, fixed tolerance"]) <= ACCURACY
    assert ratios["torch, fixed tolerance"] >= 4.0
