"""Local steps of FedDyn on its MNIST network: all active clients at once against a PyTorch loop over clients.

Run with ``pytest tests/benchmarks/test_network_steps.py --benchmark-only -s``. The loop is written as such experiments
are: one module per client, autograd for the loss, the linear and proximal terms on the flattened parameters.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from dualopt.methods.participation import first_round
from dualopt.objectives import LocalProblem, mlp
from dualopt.solvers import SGD
from dualopt.solvers.stopping import Steps

from .race import race, report

torch = pytest.importorskip("torch", reason="PyTorch is compared with")

CLIENTS, ROWS, BATCH, STEPS, STEP, ALPHA = 10, 600, 50, 20, 0.1, 0.01
LAYERS = (784, 200, 100, 10)
REPETITIONS = 7


def network(flat):
    """Return a module whose parameters are the entries of ``flat``, in our order."""
    layers = []
    for inputs, outputs in pairwise(LAYERS):
        layers += [torch.nn.Linear(inputs, outputs), torch.nn.ReLU()]
    module = torch.nn.Sequential(*layers[:-1])
    torch.nn.utils.vector_to_parameters(torch.from_numpy(flat.copy()), module.parameters())
    return module


def train(X, y, linear, center, batches):
    """One client's steps on loss + <linear, theta> + alpha/2 |theta - center|^2."""
    module = network(center)
    optimiser = torch.optim.SGD(module.parameters(), lr=STEP)
    linear, center = torch.from_numpy(linear), torch.from_numpy(center)
    for rows in batches:
        optimiser.zero_grad()
        flat = torch.cat([p.reshape(-1) for p in module.parameters()])
        loss = torch.nn.functional.cross_entropy(module(X[rows]), y[rows])
        (loss + torch.dot(flat, linear) + 0.5 * ALPHA * torch.sum((flat - center) ** 2)).backward()
        optimiser.step()
    return torch.nn.utils.parameters_to_vector(module.parameters()).detach().numpy()


def test_network_steps(benchmark):
    """The same models, in less time."""
    rng = np.random.default_rng(0)
    X = rng.random((CLIENTS * ROWS, LAYERS[0]), dtype=np.float32)
    y = rng.integers(0, LAYERS[-1], CLIENTS * ROWS)
    f = mlp(X, y, layers=LAYERS[1:-1], classes=LAYERS[-1], clients=CLIENTS)
    start = f.initial(seed=0)
    linear = (1e-3 * rng.standard_normal((CLIENTS, *f.shape))).astype(np.float32)
    problem = LocalProblem(objective=f, linear=linear, weight=ALPHA, center=start)
    starts = np.broadcast_to(start, linear.shape)
    solver, first = SGD(step=STEP, batch=BATCH), first_round(CLIENTS)
    rngs = first.rngs()
    plans = [f.draw(rngs, BATCH) for _ in range(STEPS)]  # what the solver will draw
    tensors = [
        (torch.from_numpy(X[j * ROWS : (j + 1) * ROWS]), torch.from_numpy(y[j * ROWS : (j + 1) * ROWS]))
        for j in range(CLIENTS)
    ]
    torch.set_num_threads(1)

    timed = race(
        benchmark,
        {
            "dualopt": lambda: solver(problem, starts, Steps(steps=STEPS), (), first).theta,
            "PyTorch, client by client": lambda: np.stack(
                [train(*tensors[j], linear[j], start, [plan[j] for plan in plans]) for j in range(CLIENTS)]
            ),
        },
        repetitions=REPETITIONS,
    )

    ours, theirs = timed.results.values()
    assert np.abs(ours - theirs).max() <= 1e-4 * np.abs(theirs).max()  # single precision, twenty steps
    report(
        f"{STEPS} SGD steps of {CLIENTS} clients on {'-'.join(map(str, LAYERS))}, float32, "
        f"wall time, medians of {REPETITIONS}",
        ["contestant", "ms per step of all", "time / dualopt"],
        [[name, f"{1e3 * s / STEPS:.2f}", f"{s / timed.seconds['dualopt']:.2f}"] for name, s in timed.seconds.items()],
    )
