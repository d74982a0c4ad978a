"""Table 6 of the FedDyn paper: rounds to a training loss on its synthetic problem, every method tuned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from dualopt.runs.trace import Trace
from dualopt.spec import described
from figures._feddyn import PARTICIPATION, SETTINGS, TITLES, grid, problem
from figures._panels import Panel, draw_panels
from figures._race import Contestant, race
from figures._settings import Settings

__all__ = ["caption", "compute", "draw", "tabulate"]

TIME = "about 10 minutes"


class Row(NamedTuple):
    """A row of Table 6, in rounds: the paper counts two models per round of SCAFFOLD."""

    loss: float
    feddyn: int
    scaffold: int
    fedavg: int
    fedprox: int


PAPER = {
    "homogeneous": Row(0.0603, 32, 35, 136, 49),
    "models": Row(1.5717, 17, 44, 20, 18),
    "features": Row(0.1205, 150, 82, 274, 275),
    "sizes": Row(0.0854, 34, 130, 79, 106),
}
LEGEND = {"feddyn": "FedDyn", "scaffold": "SCAFFOLD", "fedavg": "FedAvg", "fedprox": "FedProx"}
PATIENCE = 1.5  # methods may take so many times the rounds of FedAvg


def compute(settings: Settings) -> dict[str, Trace]:
    """Race the candidates of every method to the loss that tuned FedAvg reaches within the paper's number of rounds.

    The paper's losses belong to its own random data, of which neither seed nor spreads are known; FedAvg is the
    yardstick that carries them over. As in the authors' code the ``loss`` is that of the mean of the latest models of
    all clients, without weight decay.
    """
    traces = {}
    for setting in _settings(settings):
        rounds = max(1, PAPER[setting].fedavg * settings.rounds // 100)
        fedavg = _tuned(settings, setting, "fedavg", rounds, None)
        target = float(np.min(fedavg["loss"]))
        for method in LEGEND:
            slow = round(PATIENCE * rounds)
            traces[_name(setting, method)] = (
                fedavg if method == "fedavg" else _tuned(settings, setting, method, slow, target)
            )
    return traces


def draw(traces: Mapping[str, Trace], settings: Settings) -> Figure:
    """Draw the loss of the winners up to the target, a dashed line."""
    panels = []
    for setting in _settings(settings):
        chosen = {method: traces[_name(setting, method)] for method in LEGEND}
        panels.append(
            Panel(
                lines={method: (trace["round"], trace["loss"]) for method, trace in chosen.items()},
                title=TITLES[setting],
                xlabel="communication rounds",
                ylabel="training loss" if setting == SETTINGS[0] else "",
                level=float(np.min(chosen["fedavg"]["loss"])),
            )
        )
    title = "FedDyn's synthetic problem, 20 devices, 2 active, parameters tuned"
    return draw_panels(
        [panels], legend=LEGEND, title=title, width=settings.width, height=2.4, share_y=False, plain=True
    )


def caption(traces: Mapping[str, Trace], settings: Settings) -> str:
    """Say which loss is drawn, and what the target is."""
    return (
        "Loss of the mean of all clients' latest models, up to the target (dashed): the lowest loss of FedAvg within "
        "the rounds that it takes in the paper."
    )


def tabulate(traces: Mapping[str, Trace]) -> list[dict[str, str]]:
    """Return rounds to the target, ours beside the paper's, and the winning parameters.

    ``sent`` is the ratio of the numbers uploaded until then to those of FedDyn, the savings of the paper: a round of
    SCAFFOLD sends twice as many. ``at server`` are the rounds until the server's model has the target loss.
    """
    rows = []
    for setting in PAPER:
        for method in (m for m in LEGEND if _name(setting, m) in traces):
            trace, fastest = traces[_name(setting, method)], traces[_name(setting, "feddyn")]
            target = float(np.min(traces[_name(setting, "fedavg")]["loss"]))
            own, base = trace.first_below("loss", target), fastest.first_below("loss", target)
            server, theirs = trace.first_below("server", target), getattr(PAPER[setting], method)
            rows.append(
                {
                    "setting": setting,
                    "method": LEGEND[method],
                    "loss": f"{target:.4f}",
                    "rounds": f"{own}" if own is not None else f"> {trace.last['round']:.0f}",
                    "sent": f"{_sent(trace, own) / _sent(fastest, base):.1f}" if own and base else "-",
                    "paper's loss": f"{PAPER[setting].loss:.4f}",
                    "paper's rounds": f"{theirs}",
                    "paper's sent": f"{theirs * (1 + (method == 'scaffold')) / PAPER[setting].feddyn:.1f}",
                    "at server": f"{server}" if server is not None else "-",
                    "chosen": str(trace.parameters["chosen"]),
                }
            )
    return rows


def _sent(trace: Trace, rounds: int) -> float:
    return float(trace["floats_up"][rounds])


def _settings(settings: Settings) -> tuple[str, ...]:
    return SETTINGS[:2] if settings.quick else SETTINGS


def _name(setting: str, method: str) -> str:
    return f"{setting}: {method}"


def _tuned(settings: Settings, setting: str, method: str, rounds: int, target: float | None) -> Trace:
    """Return the run of the best parameters, to the target or through all rounds; stored."""
    candidates = grid(method, settings.quick)

    def compute() -> Trace:
        objective = problem(setting)
        contestants = {
            label: Contestant(algorithm, objective, PARTICIPATION) for label, algorithm in candidates.items()
        }
        winner = race(contestants, rounds=rounds, target=-np.inf if target is None else target)
        reached = target is not None and contestants[winner].best <= target
        return contestants[winner].trace(reached=reached, chosen=winner)

    description = {
        "figure": "feddyn_table6",
        "setting": setting,
        "candidates": {label: described(algorithm) for label, algorithm in candidates.items()},
        "participation": PARTICIPATION.size,
        "rounds": rounds,
        "target": target,
    }
    return settings.stored(f"the race of {method!r} on {setting!r} data", description, compute)
