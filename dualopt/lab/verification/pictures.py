"""The picture of a verdict: on every instance the error, the claimed rate and the fitted one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from dualopt.lab.rates import Factor
from dualopt.lab.verification.verdict import ROUNDING, Finding, Report
from dualopt.runs import plotting

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["picture"]

COLUMNS = 3
LEAST = 2.0  # inches that a panel takes
MEASURES = {"distance": r"$|\theta^n - \theta^*|^2$", "energy": r"$E(\theta^n) - E^*$"}


@plotting.styled()
def picture(report: Report, *, title: str, width: str = "page") -> Figure:
    """Draw one panel for each instance that was run.

    The claimed rate starts at the error of the first tenth of the rounds, from which on rates are estimated; the fitted
    one goes through the mean of the logarithms.

    Examples
    --------
    >>> from dualopt import GradientDescent
    >>> from dualopt.lab.verification.claimed_rate import parse_rate
    >>> from dualopt.lab.verification.instances import linear_instances
    >>> from dualopt.lab.verification.verdict import verify
    >>> report = verify(GradientDescent(), parse_rate("(1-1/kappa)^n"), instances=list(linear_instances())[:1])
    >>> [line.get_label() for line in picture(report, title="gradient descent").axes[0].lines]
    ['error', 'claimed rate', 'fitted rate']
    """
    run = [finding for finding in report.findings if len(finding.errors)]
    columns = max(1, min(COLUMNS, len(run)))
    rows = max(1, math.ceil(len(run) / columns))
    figure, grid = plotting.panels(rows, columns, height=2.1, width=width, least=LEAST)
    plotting.titled(figure, title.replace("$", r"\$"))
    for axes, finding in zip(grid.flat, run, strict=False):
        _panel(axes, finding)
    for axes in grid.flat[len(run) :]:
        axes.set_visible(False)
    if run:
        figure.unnamed.append(list(grid.flat[: len(run)]))
    return figure


def _panel(axes: Axes, finding: Finding) -> None:
    errors, logs = np.asarray(finding.errors, dtype=float), np.asarray(finding.logs, dtype=float)
    linear = finding.claimed is not None and finding.claimed.law == "linear"
    n = np.arange(len(errors))
    floor = ROUNDING * errors[0]
    drawn = np.logical_and.accumulate((errors > floor) & np.isfinite(errors)) & ((n > 0) | linear)
    axes.set_yscale("log")
    if not linear:
        axes.set_xscale("log")
    axes.plot(n[drawn], errors[drawn], color=plotting.COLOURS[0], label="error")
    last = int(n[drawn][-1]) if drawn.any() else 0
    start = max(last // 10, 1)
    if last > start:
        k = n[start : last + 1]
        claimed = errors[start] * np.exp(logs[k] - logs[start])
        shown = claimed > floor
        axes.plot(k[shown], claimed[shown], "--", color="0.3", label="claimed rate")
        if finding.estimate is not None:
            value, is_factor = finding.estimate.value, isinstance(finding.estimate, Factor)
            slope, along = (math.log(value), k) if is_factor else (-value, np.log(k))
            fitted = np.exp(np.mean(np.log(errors[k])) + slope * (along - along.mean()))
            axes.plot(k, fitted, ":", color=plotting.COLOURS[3], linewidth=1.8, label="fitted rate")
    axes.set_title(plotting.wrapped(f"{finding.instance.name}: {finding.verdict}", LEAST))
    axes.set_xlabel("round")
    axes.set_ylabel(MEASURES[finding.instance.measure])
