"""Local steps of FedDyn on the CNN of its paper: a module as an objective against a plain loop in PyTorch.

Run with ``pytest tests/benchmarks/test_torch_module.py --benchmark-only -s``. The loop is written as such experiments
are: one module, client by client, autograd for the loss, the linear and proximal terms on the flattened parameters.
Times are CPU times of one thread; memory is the peak of a process of its own, less that after the data were made.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dualopt.methods.participation import first_round
from dualopt.objectives import LocalProblem, torch_module
from dualopt.objectives.torch_networks import cnn
from dualopt.solvers import SGD
from dualopt.solvers.stopping import Steps

from .race import in_turns, peak_memory, report

torch = pytest.importorskip("torch", reason="PyTorch is compared with")

CLIENTS, ROWS, BATCH, STEPS, STEP, ALPHA = 10, 500, 50, 2, 0.1, 0.01
FEATURES, CLASSES = 3072, 10
REPETITIONS = 3
LIMIT = 1.3  # of the plain loop, in time and in memory


class Setting:
    """Ten clients, a model, duals of the size that they have after some rounds, and what each client draws."""

    def __init__(self) -> None:
        torch.set_num_threads(1)
        rng = np.random.default_rng(0)
        self.X = rng.random((CLIENTS * ROWS, FEATURES), dtype=np.float32)
        self.y = rng.integers(0, CLASSES, CLIENTS * ROWS)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.module = cnn(FEATURES, CLASSES)
        self.start = torch.nn.utils.parameters_to_vector(self.module.parameters()).detach()
        self.linear = 1e-3 * torch.as_tensor(rng.standard_normal((CLIENTS, len(self.start)), dtype=np.float32))
        self.first = first_round(CLIENTS)
        rngs = self.first.rngs()
        self.plans = [[rng.integers(0, ROWS, size=BATCH) for rng in rngs] for _ in range(STEPS)]

    def ours(self, **options: Any) -> Any:
        """Return what makes the steps of all clients."""
        f = torch_module(self.module, self.X, self.y, classes=CLASSES, clients=CLIENTS, **options)
        problem = LocalProblem(objective=f, linear=self.linear, weight=ALPHA, center=self.start)
        starts, solver = self.start.expand(CLIENTS, -1), SGD(step=STEP, batch=BATCH)
        return lambda: solver(problem, starts, Steps(steps=STEPS), (), self.first).theta

    def plain(self) -> Any:
        """Return the loop."""
        images = torch.as_tensor(self.X).reshape(CLIENTS, ROWS, *self.module.input_shape)
        y = torch.as_tensor(self.y).reshape(CLIENTS, ROWS)

        def train(j: int) -> Any:
            module = self.module
            torch.nn.utils.vector_to_parameters(self.start.clone(), module.parameters())
            optimiser = torch.optim.SGD(module.parameters(), lr=STEP)
            for plan in self.plans:
                optimiser.zero_grad()
                flat = torch.cat([p.reshape(-1) for p in module.parameters()])
                loss = torch.nn.functional.cross_entropy(module(images[j, plan[j]]), y[j, plan[j]])
                added = torch.dot(flat, self.linear[j]) + 0.5 * ALPHA * torch.sum((flat - self.start) ** 2)
                (loss + added).backward()
                optimiser.step()
            return torch.nn.utils.parameters_to_vector(module.parameters()).detach()

        return lambda: torch.stack([train(j) for j in range(CLIENTS)])


MEMORY = """
import sys
from tests.benchmarks.test_torch_module import Setting

setting = Setting()
step = setting.plain() if sys.argv[1] == "plain" else setting.ours()
note("before")
step()
note("after")
"""


def test_steps_of_the_cnn(benchmark: Any) -> None:
    """The same models, in at most 1.3 times the time and the memory."""
    setting = Setting()
    contestants = {
        "dualopt, client by client": setting.ours(),
        "dualopt, vmap": setting.ours(vectorised=True),
        "dualopt, precision=mixed": setting.ours(precision="mixed"),
        "PyTorch, a plain loop": setting.plain(),
    }
    seconds, results = in_turns(contestants, REPETITIONS)
    memory = {name: peak_memory(MEMORY, name) for name in ("ours", "plain")}
    benchmark.pedantic(contestants["dualopt, client by client"], rounds=1)

    ours, together, mixed, theirs = results.values()
    change = float(torch.linalg.vector_norm(theirs - setting.start))
    for found in (ours, together):  # single precision; where two entries of a pooled square are near, either is largest
        assert float(torch.linalg.vector_norm(found - theirs)) <= 1e-2 * change
    assert float(torch.linalg.vector_norm(mixed - theirs)) <= 0.1 * change  # two steps of rounded gradients
    base = seconds["PyTorch, a plain loop"]
    peaks = {"dualopt, client by client": memory["ours"], "PyTorch, a plain loop": memory["plain"]}
    report(
        f"{STEPS} SGD steps of {CLIENTS} clients, {BATCH} rows each, on the CNN of FedDyn ({len(setting.start)} "
        f"parameters), float32, CPU time of one thread, medians of {REPETITIONS}",
        ["contestant", "ms per client's step", "time / plain loop", "peak of the process, MB"],
        [
            [name, f"{1e3 * s / STEPS / CLIENTS:.1f}", f"{s / base:.2f}", f"{peaks[name]['after']:.0f}"]
            if name in peaks
            else [name, f"{1e3 * s / STEPS / CLIENTS:.1f}", f"{s / base:.2f}", "-"]
            for name, s in seconds.items()
        ],
    )
    assert seconds["dualopt, client by client"] <= LIMIT * base
    assert memory["ours"]["after"] <= LIMIT * memory["plain"]["after"]
