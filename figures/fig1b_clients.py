"""Figure 1 (b, e) of the DualFL paper: DualFL with more and more clients."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from dualopt.methods import DualFL
from dualopt.runs.trace import Trace
from figures._curves import Curve, data_problem, trace_curves
from figures._drawing import draw_errors, in_range
from figures._settings import Settings

__all__ = ["caption", "compute", "draw"]

TIME = "8 seconds"
LEVEL = 1e-6


def compute(settings: Settings) -> dict[str, Trace]:
    """Run DualFL with the tuned ``rho`` of Table 2 and ``nu = mu`` on 8 to 128 clients."""
    method = DualFL(rho=settings.tuned_rho, nu=settings.mu, stop=settings.stop)
    counts = (8, 32) if settings.quick else (8, 16, 32, 64, 128)
    curves = {
        f"N = {n}": Curve(problem=data_problem(settings, n), algorithm=method, rounds=settings.rounds) for n in counts
    }
    return trace_curves(curves, settings)


def draw(traces: Mapping[str, Trace], settings: Settings) -> Figure:
    """Draw the error over the rounds for each number of clients."""
    legend = {label: f"${label}$" for label in traces}
    covered = [in_range(trace) for trace in traces.values()]
    where = "in" if all(covered) else "dashed: outside" if any(covered) else "outside"
    said = rf"$\rho$ = {settings.tuned_rho:g}, $\nu = \mu$" + rf" ({where} $(0,\nu/L\,]$)"
    if settings.tuned_rho == 0:
        said = r"$\rho$ = 0, $\nu = \mu$ (Theorem 3.2)"
    return draw_errors(traces, title=f"{settings.title}\n{said}", legend=legend, width=settings.width)


def caption(traces: Mapping[str, Trace], settings: Settings) -> str:
    """Say how many rounds each number of clients takes."""
    counts = {label: trace.first_below("error", LEVEL) for label, trace in traces.items()}
    known = [count for count in counts.values() if count is not None]
    said = ", ".join(f"{label}: {'-' if count is None else count}" for label, count in counts.items())
    words = f"Rounds to a relative error of {LEVEL:.0e}: {said}."
    if len(known) == len(counts):
        words += f" The slowest takes {max(known) / min(known):.2f} times the rounds of the fastest."
    return words
