"""Table 2 of the A-FedPD paper, reduced: test accuracies of its methods and FedADMM with a small CNN on CIFAR-10."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from dualopt.app.cli.progress import run_progress
from dualopt.arrays.xp import asarray_like, to_numpy
from dualopt.engine.checkpoint import Checkpoint
from dualopt.methods import (
    AFedPD,
    AFedPDSAM,
    Algorithm,
    FedADMM,
    FedAvg,
    FedCM,
    FedDyn,
    FedDynSAM,
    FedSAM,
    FedSpeed,
    Scaffold,
)
from dualopt.methods.participation import UniformSubset
from dualopt.problem.data import partition
from dualopt.runs.recording import run
from dualopt.runs.trace import Trace
from dualopt.solvers import SGD
from dualopt.solvers.stopping import Steps
from dualopt.spec import described
from figures._by_cell import NOT_RUN, by_cell, said_not_run
from figures._feddyn_images import Images
from figures._image_networks import network, pictures
from figures._panels import Panel, draw_panels
from figures._settings import SEED, Settings

__all__ = ["caption", "compute", "draw", "tabulate"]

TIME = "10 hours"
BY_NAME = True  # it needs PyTorch, too

CLIENTS, ACTIVE, STEPS = 100, 10, 50  # "C = 100 and P = 10 under training local 50 iterations"
SPLITS = {"IID": None, "Dir-0.1": 0.1, "Dir-0.1 bright": 0.1}
BRIGHTNESS = {"Dir-0.1 bright": 0.3}  # the paper does not say how much, nor in which of its tables: fixed beforehand
# Table 3 of the paper. Its network is LeNet, its rounds are 800: both are smaller here, or it would take weeks.
RATE, DECAY, WEIGHT_DECAY, BATCH = 0.1, 0.998, 1e-3, 50
PROXY, MOMENTUM, SAM, SPEED = 0.1, 0.1, 0.05, 0.1  # rho of all primal-dual methods; FedCM; FedSAM; the others
NETWORK: dict[str, Any] = {"filters": 16, "hidden": [64]}
ROUNDS, EVERY = 200, 10
LEGEND = {
    "fedavg": "FedAvg",
    "fedcm": "FedCM",
    "scaffold": "SCAFFOLD",
    "fedsam": "FedSAM",
    "fedadmm": "FedADMM",
    "feddyn": "FedDyn",
    "fedspeed": "FedSpeed, its box",
    "feddynsam": "FedSpeed, its code",
    "a-fedpd": "A-FedPD",
    "a-fedpdsam": "A-FedPDSAM",
}
# Percent, of LeNet after 800 rounds; FedADMM is not in that table, and FedSpeed is what the authors' code has.
PAPER = {
    "IID": (81.87, 80.34, 84.25, 83.22, None, 84.49, None, 86.01, 85.31, 86.47),
    "Dir-0.1": (75.57, 72.89, 78.66, 77.41, None, 79.51, None, 80.86, 80.28, 81.96),
}


def compute(settings: Settings) -> dict[str, Trace]:
    """Run every method on every split.

    ``settings.rounds`` is a percentage of 200 rounds. Each run is a cell ``split: method`` that ``only`` may choose, is
    stored when it ends, and goes on where its last checkpoint is when it was interrupted. In quick mode there is the
    split "Dir-0.1" alone. In "Dir-0.1 bright" the images of every client are changed in brightness and in one channel,
    too (Appendix A.3, Brightness Heterogeneity).
    """
    return by_cell(settings, _labels(settings), _run)


def draw(traces: Mapping[str, Trace], settings: Settings) -> Figure:
    """Draw the share of mistaken test rows and the energy over the rounds, a column for each split that was run."""
    own = {split: {n: t for n in LEGEND if (t := traces.get(f"{split}: {n}")) is not None} for split in SPLITS}
    own = {split: found for split, found in own.items() if found}
    rows = []
    for column, words in (("test_accuracy", "test rows mistaken"), ("energy", "$E$")):
        panels = []
        for split, found in own.items():
            lines = {}
            for name, trace in found.items():
                known = np.isfinite(trace[column])
                value = 1.0 - trace[column] if column == "test_accuracy" else trace[column]
                lines[name] = trace["round"][known], value[known]
            panels.append(
                Panel(
                    lines=lines,
                    title=split if column == "test_accuracy" else "",
                    xlabel="rounds" if column == "energy" else "",
                    ylabel=words if split == next(iter(own)) else "",
                    ylim=None if column == "test_accuracy" else _usual(traces),
                )
            )
        rows.append(panels)
    title = f"{settings.data}: a small CNN, {ACTIVE} of {CLIENTS} clients a round, {STEPS} steps"
    return draw_panels(rows, legend=LEGEND, title=title, width=settings.width, height=2.0, plain=True)


def _usual(traces: Mapping[str, Trace]) -> tuple[float, float]:
    """Return the range of energies up to the largest start, twice; what explodes leaves the panel."""
    energies = [trace["energy"][np.isfinite(trace["energy"])] for trace in traces.values()]
    return 0.9 * min(own.min() for own in energies), 2.0 * max(own[0] for own in energies)


def caption(traces: Mapping[str, Trace], settings: Settings) -> str:
    """Say what is measured."""
    said = (
        "The server's model; parameters of the paper's Table 3, a smaller network and fewer rounds, one seed. Dir-0.1 "
        "samples with replacement; bright: the images of every client are changed in brightness and in one channel. "
        "Images are moved and mirrored at random. E: training loss with weight decay; a run where it explodes ends."
    )
    return said + said_not_run(_labels(settings), traces)


def tabulate(traces: Mapping[str, Trace]) -> list[dict[str, str]]:
    """Return the last and the best test accuracy of each method, and the paper's, of LeNet after 800 rounds."""
    rows = []
    theirs_too = all(trace.parameters["key"]["data"] == "cifar10" for trace in traces.values())
    for split in SPLITS:
        theirs = PAPER.get(split, (None,) * len(LEGEND))
        for (name, words), paper in zip(LEGEND.items(), theirs, strict=True):
            row = {"split": split, "method": words, "rounds": "-", "status": NOT_RUN, "last": "-", "best": "-"}
            if (trace := traces.get(f"{split}: {name}")) is not None:
                accuracy = trace["test_accuracy"][np.isfinite(trace["test_accuracy"])]
                row |= {"rounds": f"{trace.last['round']:.0f}", "status": trace.status}
                row |= {"last": f"{100 * accuracy[-1]:.2f}%", "best": f"{100 * accuracy.max():.2f}%"}
            if theirs_too:
                row["paper"] = "-" if paper is None else f"{paper:.2f}%"
            rows.append(row)
    return rows


def method(name: str) -> Algorithm:
    """Return a method with the parameters of the paper's Table 3.

    >>> method("a-fedpd").rho, method("feddyn").alpha, method("fedsam").radius
    (0.1, 0.1, 0.05)
    """
    solver, stop = SGD(step=RATE, batch=BATCH, decay=DECAY), Steps(steps=STEPS)
    shared: dict[str, Any] = {"solver": solver, "stop": stop}
    return {
        "fedavg": lambda: FedAvg(**shared),
        "fedcm": lambda: FedCM(alpha=MOMENTUM, **shared),
        "scaffold": lambda: Scaffold(**shared),
        "fedsam": lambda: FedSAM(radius=SAM, **shared),
        "fedadmm": lambda: FedADMM(rho=PROXY, server_step=1.0, **shared),
        "feddyn": lambda: FedDyn(alpha=PROXY, **shared),
        "fedspeed": lambda: FedSpeed(rho=PROXY, radius=SPEED, **shared),
        "feddynsam": lambda: FedDynSAM(alpha=PROXY, radius=SPEED, **shared),
        "a-fedpd": lambda: AFedPD(rho=PROXY, **shared),
        "a-fedpdsam": lambda: AFedPDSAM(rho=PROXY, radius=SPEED, **shared),
    }[name]()


def _splits(settings: Settings) -> list[str]:
    return [split for split in SPLITS if not settings.quick or split == "Dir-0.1"]


def _labels(settings: Settings) -> list[str]:
    return [f"{split}: {name}" for split in _splits(settings) for name in LEGEND]


def _run(settings: Settings, label: str) -> Trace:
    split, name = label.split(": ")
    algorithm = method(name)
    rounds = max(1, ROUNDS * settings.rounds // 100)
    description = settings.described(CLIENTS) | {
        "figure": "afedpd_table2",
        "mu": WEIGHT_DECAY,
        "network": NETWORK,
        "partition": split,
        "algorithm": described(algorithm),
        "rounds": rounds,
        "every": EVERY,
        **({"brightness": BRIGHTNESS[split]} if split in BRIGHTNESS else {}),
    }

    def compute(checkpoint: Checkpoint) -> Trace:
        data, alpha = pictures(settings.data, settings.data_home, settings.rows), SPLITS[split]
        rule, options = ("iid", {}) if alpha is None else ("dirichlet-replacement", {"alpha": alpha})
        clients = partition(rule, data.y, CLIENTS, seed=SEED, **options)
        bright = BRIGHTNESS.get(split, 0.0)
        f = network(data, clients, ridge=WEIGHT_DECAY, augment="crop-flip", brightness=bright, **NETWORK)
        with run_progress(settings.console, label, rounds) as progress:
            return run(
                algorithm,
                f,
                rounds=rounds,
                participation=UniformSubset(size=ACTIVE),
                measure={"test_accuracy": _test_accuracy(f, data)},
                measure_every=EVERY,
                seed=SEED,
                checkpoint=checkpoint,
                callback=progress.advance,
            )

    return settings.stored_run(f"the run {label!r}", description, compute)


def _test_accuracy(f: Any, data: Images) -> Any:
    X = asarray_like(data.X_test, f.zeros())
    return lambda snapshot: float(np.mean(to_numpy(f.predict(snapshot.server.theta, X)) == data.y_test))
