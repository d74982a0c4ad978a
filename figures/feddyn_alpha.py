"""FedDyn's robustness to alpha, as Figure 1 of its paper (there CIFAR-10), on its synthetic convex problem."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from dualopt.methods import FedDyn
from dualopt.runs import plotting
from dualopt.runs.trace import Trace
from dualopt.spec import described
from figures._feddyn import PARTICIPATION, SETTINGS, TITLES, local_solver, problem
from figures._panels import plain_ticks
from figures._race import Contestant
from figures._settings import Settings

__all__ = ["compute", "draw", "tabulate"]

TIME = "about 3 minutes"
ALPHAS = {False: (1e-4, 1e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0), True: (1e-3, 1e-1)}
RATE, EPOCHS = 0.1, 10  # those of the authors' example


def compute(settings: Settings) -> dict[str, Trace]:
    """Run FedDyn with every ``alpha`` in every setting, all other parameters as in the authors' example."""
    return {
        _name(setting, alpha): _trace(settings, setting, alpha)
        for setting in _settings(settings)
        for alpha in ALPHAS[settings.quick]
    }


def draw(traces: Mapping[str, Trace], settings: Settings) -> Figure:
    """Draw the loss over the rounds for homogeneous data, and lowest and last losses against ``alpha``."""
    alphas = ALPHAS[settings.quick]
    figure, grid = plotting.panels(1, 2, height=3.0, width=settings.width, least=3.0)
    left, right = grid.flat
    names = {alpha: rf"$\alpha$ = {alpha:g}" for alpha in alphas}
    look = plotting.styles(names.values())
    for position, (alpha, name) in enumerate(names.items()):
        trace = traces[_name(SETTINGS[0], alpha)]
        plotting.curve(left, trace["round"], trace["loss"], look[name], name, offset=position, marks=8)
    left.set_xlabel("communication rounds")
    left.set_title(f"{SETTINGS[0]} data")
    look = plotting.styles(_settings(settings))
    for setting in _settings(settings):
        colour, marker, _ = look[setting]
        shown = [traces[_name(setting, alpha)] for alpha in alphas]
        lowest, server = [np.min(trace["loss"]) for trace in shown], [trace.last["server"] for trace in shown]
        right.plot(alphas, lowest, color=colour, marker=marker, label=TITLES[setting])
        right.plot(alphas, server, color=colour, linestyle=(0, (4, 2)), linewidth=1.0, label="_server")
    right.set_xscale("log")
    right.set_xlabel(r"$\alpha$")
    right.set_title(f"lowest of {settings.rounds} rounds; dashed: the last server's model")
    for axes in (left, right):
        axes.set_yscale("log")
        plain_ticks(axes)
    left.set_ylabel("training loss of the mean of all latest models")
    title = f"FedDyn on its synthetic problem, 20 devices, 2 active; SGD with rate {RATE:g}, {EPOCHS} epochs"
    plotting.titled(figure, title)
    figure.unnamed += [[left], [right]]
    return figure


def tabulate(traces: Mapping[str, Trace]) -> list[dict[str, str]]:
    """Return the losses of every run."""
    rows = []
    for label, trace in traces.items():
        last = trace.last
        lowest = f"{np.min(trace['loss']):.4f}"
        row = {"run": label, "rounds": f"{last['round']:.0f}", "lowest loss": lowest, "last": f"{last['loss']:.4f}"}
        rows.append(row | {"last, server's model": f"{last['server']:.4f}"})
    return rows


def _settings(settings: Settings) -> tuple[str, ...]:
    return SETTINGS[:2] if settings.quick else SETTINGS


def _name(setting: str, alpha: float) -> str:
    return f"{setting}, alpha = {alpha:g}"


def _trace(settings: Settings, setting: str, alpha: float) -> Trace:
    algorithm = FedDyn(alpha=alpha, solver=local_solver(RATE, EPOCHS))

    def compute() -> Trace:
        contestant = Contestant(algorithm, problem(setting), PARTICIPATION)
        for _ in range(settings.rounds):
            contestant.advance()
        return contestant.trace(reached=False)

    description = {
        "figure": "feddyn_alpha",
        "setting": setting,
        "algorithm": described(algorithm),
        "participation": PARTICIPATION.size,
        "rounds": settings.rounds,
    }
    return settings.stored(f"the run of {_name(setting, alpha)!r}", description, compute)
