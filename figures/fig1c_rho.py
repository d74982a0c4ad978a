"""Figure 1 (c, f) of the DualFL paper: DualFL is robust to the choice of rho."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from dualopt.methods import AUTO, DualFL
from dualopt.runs.trace import Trace
from figures._curves import Curve, data_problem, trace_curves
from figures._drawing import draw_errors, parameter
from figures._settings import Settings

__all__ = ["compute", "draw"]

TIME = "4 seconds"
CLIENTS = 8
SUGGESTED = "rho = 1/kappa"


def compute(settings: Settings) -> dict[str, Trace]:
    """Run DualFL with ``nu = mu`` on 8 clients, with ``rho`` from 0 to 1e-2 and with that of Theorem 3.3."""
    values = (0.0, 3e-3) if settings.quick else (0.0, 1e-3, 3e-3, 5e-3, 1e-2)
    choices: dict[str, float] = {f"rho = {rho:g}": rho for rho in values} | {SUGGESTED: AUTO}
    problem = data_problem(settings, CLIENTS)
    methods = {label: DualFL(rho=rho, nu=settings.mu, stop=settings.stop) for label, rho in choices.items()}
    curves = {label: Curve(problem=problem, algorithm=m, rounds=settings.rounds) for label, m in methods.items()}
    return trace_curves(curves, settings)


def draw(traces: Mapping[str, Trace], settings: Settings) -> Figure:
    """Draw the error over the rounds for each ``rho``."""
    legend = {label: _words(label, trace) for label, trace in traces.items()}
    said = rf"{CLIENTS} clients, $\nu = \mu$; dashed: $\rho$ outside $(0, \nu/L\,]$"
    return draw_errors(traces, title=f"{settings.title}\n{said}", legend=legend, width=settings.width)


def _words(label: str, trace: Trace) -> str:
    rho = parameter(trace, "rho")
    if label == SUGGESTED:
        return rf"$\rho = 1/\kappa$ = {rho:.2g} (Theorem 3.3)"
    return rf"$\rho$ = {rho:g}" + (" (Theorem 3.2)" if rho == 0 else "")
