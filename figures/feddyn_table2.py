"""Table 2 of the FedDyn paper for MNIST, its Table 5 for 1%: models sent until a network has a test accuracy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from matplotlib.figure import Figure

from dualopt.app.cli.progress import run_progress
from dualopt.methods.participation import Full
from dualopt.runs.trace import Trace
from dualopt.spec import described
from figures._accuracy import accuracy_trace, models_sent
from figures._feddyn_images import (
    CLIENTS,
    LAYERS,
    LEGEND,
    WEIGHT_DECAY,
    Images,
    Row,
    active,
    epochs_of,
    images,
    method,
    pooled,
)
from figures._panels import Panel, draw_panels
from figures._settings import Settings

__all__ = ["caption", "compute", "draw", "tabulate"]

TIME = "half an hour"

# Table 2 (100% and 10% active) and Table 5 (1%). Digits of FedDyn's 11 (100%, 0.6) and FedAvg's 79 (10%, 0.3) were
# unreadable in our copy: they follow from the ratios printed beside them, which leave 76 to 79 for the latter.
PAPER = {
    (100, "iid"): (Row(97.2, 9, 18, 31, 28), Row(98.2, 38, 72, 194, 445)),
    (100, "Dirichlet 0.6"): (Row(97.1, 11, 24, 38, 34), Row(98.1, 39, 108, 157, 416)),
    (100, "Dirichlet 0.3"): (Row(97.1, 10, 24, 49, 44), Row(98.1, 35, 76, 313, 458)),
    (10, "iid"): (Row(97.2, 31, 52, 49, 43), Row(98.2, 100, 142, 588, 362)),
    (10, "Dirichlet 0.6"): (Row(97.1, 37, 60, 57, 57), Row(98.1, 129, 194, 581, 361)),
    (10, "Dirichlet 0.3"): (Row(97.2, 37, 68, 79, 61), Row(98.2, 90, 208, 428, 858)),
    (1, "iid"): (Row(97.3, 145, 290, 151, 143), Row(98.3, 529, 956, 644, 451)),
    (1, "Dirichlet 0.6"): (Row(97.2, 180, 332, 199, 166), Row(98.2, 486, 1502, 863, 754)),
    (1, "Dirichlet 0.3"): (Row(97.2, 157, 318, 169, 177), Row(98.2, 521, 954, 951, 974)),
}
THEIRS = "mnist"  # of the paper's numbers
COLUMNS = {"mean of all": "accuracy", "server's": "server"}
EVERY = {100: 1, 10: 1, 1: 5}  # rounds between looks at the test rows, which at 1% take as long as a round
# Largest numbers of rounds with 50 epochs, and with fewer, by the percentage.
ROUNDS = {100: (10, 40), 10: (60, 120), 1: (300, 300)}
USUAL = 100  # of --rounds


def compute(settings: Settings) -> dict[str, Trace]:
    """Run every method in the cells of the table, the cheap ones first, until it has the lower of the two accuracies.

    ``settings.rounds`` is a percentage of ``ROUNDS``. Above 100 the runs go on to the higher accuracy, and there are
    also the cells of 100%, which take ten times as long as those of 10%. With ``--redraw`` the table has the cells
    that are stored, the cheapest at least.
    """
    cells = {}
    for percent, split in sorted(_cells(settings), key=lambda cell: cell[0]):
        try:
            cells[percent, split] = {name: _run(settings, percent, split, name) for name in LEGEND}
        except ValueError:
            if not (settings.stored_only and cells):  # what is stored is drawn, and be it a part of the table
                raise
    best = _pooled(settings)
    return {
        _name(*cell, name): replace(trace, parameters={**trace.parameters, "pooled": best})
        for cell in PAPER
        for name, trace in cells.get(cell, {}).items()
    }


def draw(traces: Mapping[str, Trace], settings: Settings) -> Figure:
    """Draw the share of mistaken test rows over the rounds, a row of panels per split, a column per percentage."""
    cells = [cell for cell in PAPER if _name(*cell, "feddyn") in traces]
    percents, splits = (list(dict.fromkeys(entries)) for entries in zip(*cells, strict=True))
    pooled_error = 1.0 - next(iter(traces.values())).parameters["pooled"]
    # A row of panels shares its vertical axis, a column its horizontal one: with one percentage all are in a row.
    layout = [[(percent, split) for percent in percents] for split in splits] if percents[1:] else [cells]
    rows = []
    for line in layout:
        panels = []
        for percent, split in line:
            own = {name: traces[_name(percent, split, name)] for name in LEGEND} if (percent, split) in cells else {}
            panels.append(
                Panel(
                    lines={name: (trace["round"], 1.0 - trace["accuracy"]) for name, trace in own.items()},
                    title=f"{split}, {percent}% active" + ("" if own else ": not run"),
                    xlabel="rounds" if line is layout[-1] else "",
                    ylabel="test rows mistaken" if (percent, split) == line[0] else "",
                    ylim=(0.6 * pooled_error, 1.0),
                    level=1.0 - _levels(settings, percent, split)[-1],
                )
            )
        rows.append(panels)
    n = len(_images(settings).y)
    title = f"{settings.data}: network {'-'.join(map(str, LAYERS))}, {n:,} rows at {CLIENTS} clients"
    legend = {name: f"{words}, {_epochs(name, percents)} epochs a round" for name, words in LEGEND.items()}
    figure = draw_panels(rows, legend=legend, title=title, width=settings.width, height=2.2, plain=True)
    for axes in figure.axes:
        axes.axhline(pooled_error, color="0.4", linestyle=":", linewidth=1.0, zorder=1)
    return figure


def caption(traces: Mapping[str, Trace], settings: Settings) -> str:
    """Say which model is measured, and what the lines are."""
    where = "" if settings.data == THEIRS else " on MNIST"
    return (
        "Mean of the latest models of all clients, parameters of the FedDyn paper. Dashed: the accuracy that the paper "
        f"reports{where}; dotted: the network trained on the rows of all clients together."
    )


def tabulate(traces: Mapping[str, Trace]) -> list[dict[str, str]]:
    """Return the models that are sent until the accuracy over those of a round of FedAvg, ours beside the paper's.

    The paper's numbers are of MNIST: beside those of other data they say nothing, and are left out.

    The paper looks at the mean of the latest models of all clients; so do runs that end at an accuracy. The server's
    model may have it earlier, later or, up to the end of the run, not at all. ``> n (x%)`` says that the accuracy was
    not reached with ``n`` models, and the highest that was.
    """
    rows = []
    for (percent, split), levels in PAPER.items():
        own = {name: traces[label] for name in LEGEND if (label := _name(percent, split, name)) in traces}
        asked = max((trace.parameters["key"]["target"] for trace in own.values()), default=0.0)
        same = all(trace.parameters["key"]["data"] == THEIRS for trace in own.values())
        for level in (level for level in levels if level.accuracy / 100.0 <= asked):
            cell = {"active": f"{percent}%", "split": split, "accuracy": f"{level.accuracy}%"}
            for model, column in COLUMNS.items():
                ours = {
                    words: models_sent(own[name], level.accuracy / 100.0, percent * CLIENTS // 100, column)
                    for name, words in LEGEND.items()
                }
                theirs = {
                    f"{words}, paper": f"{getattr(level, name)}" if column == "accuracy" else "-"
                    for name, words in LEGEND.items()
                    if same
                }
                rows.append(cell | {"model": model} | ours | theirs)
    return rows


def _epochs(name: str, percents: Sequence[int]) -> str:
    """Say how many epochs there are in a round, and how many with 100% where that differs."""
    found = [f"{epochs_of(name, percent)}" for percent in percents]
    return " or ".join(dict.fromkeys(found))


def _cells(settings: Settings) -> list[tuple[int, str]]:
    if settings.quick:
        return [(10, "iid"), (10, "Dirichlet 0.3")]
    return [cell for cell in PAPER if cell[0] < 100 or settings.rounds > USUAL]


def _levels(settings: Settings, percent: int, split: str) -> list[float]:
    """Return the accuracies of the paper, in [0, 1], the last of which ends a run."""
    return [row.accuracy / 100.0 for row in PAPER[percent, split]][: 2 if settings.rounds > USUAL else 1]


def _name(percent: int, split: str, name: str) -> str:
    return f"{percent}%, {split}: {name}"


def _images(settings: Settings) -> Images:
    return images(settings.data, settings.data_home, settings.rows)


def _described(settings: Settings) -> dict[str, object]:
    return settings.described(CLIENTS) | {"figure": "feddyn_table2", "layers": LAYERS, "mu": WEIGHT_DECAY}


def _run(settings: Settings, percent: int, split: str, name: str) -> Trace:
    algorithm = method(name, percent, split)
    rounds = max(1, ROUNDS[percent][epochs_of(name, percent) < 50] * settings.rounds // 100)
    target = _levels(settings, percent, split)[-1]
    label = _name(percent, split, name)

    def compute() -> Trace:
        data = _images(settings)
        with run_progress(settings.console, label, rounds) as progress:
            return accuracy_trace(
                algorithm,
                data.network(split),
                (data.X_test, data.y_test),
                participation=active(percent),
                rounds=rounds,
                every=EVERY[percent],
                target=target,
                advance=progress.advance,
            )

    description = _described(settings) | {
        "percent": percent,
        "partition": split,
        "participation": described(active(percent)),
        "algorithm": described(algorithm),
        "rounds": rounds,
        "every": EVERY[percent],
        "target": target,
    }
    return settings.stored(f"the run {label!r}", description, compute)


def _pooled(settings: Settings) -> float:
    """Return the test accuracy of the network that is trained on all rows at one place."""

    def compute() -> float:
        data = _images(settings)
        test = data.X_test, data.y_test
        return accuracy_trace(pooled(), data.together(), test, participation=Full(), rounds=3).last["accuracy"]

    description = _described(settings) | {"result": "pooled", "algorithm": described(pooled())}
    return settings.stored_number("the pooled training", description, compute)
