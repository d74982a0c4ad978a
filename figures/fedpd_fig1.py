"""Figure 1 and Table III of the FedPD paper: how many rounds clients that are alike may skip communication."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import root_scalar

from dualopt.runs import plotting
from dualopt.runs.trace import Trace
from figures._settings import Settings
from theory.fedpd.descent import appendix_constants
from theory.fedpd.skipping import TABLE_A, growth, largest_skip, penalty, table_penalty, table_skip

__all__ = ["compute", "draw", "tabulate"]

TIME = "3 seconds"
L, ETA = 1.0, TABLE_A  # L eta as in Table III; its last column does not depend on L for C5 = 1
CLIENTS = 100
RATIOS = np.geomspace(1e-6, 1e8, 421)
BORDER = (1.0 - 2.0 * L * ETA) / (1.0 + L * ETA)  # p with C3 = 1: the two rows of Table III
TABLE_ROWS = (0.1, 0.3, 0.5, 0.7, 0.8, 0.9)

EXACT, APPENDIX, TABLE, INVERTED = "remark 5", "remark 5, appendix", "table iii", "table iii, inverted"
LEGEND = {
    EXACT: r"largest $p$ with $C(p) \leq \frac{1}{3}\,\epsilon/G^2$ (Remark 5), $C_5 = 1$",
    APPENDIX: r"the same with $C_5 = 8 C_2$ of the appendix ($L = 1$)",
    INVERTED: r"Table III: $12\eta^2 p^2$ and $14\eta^2 C_3^{2/(1-p)}$ for $C(p)$",
    TABLE: r"Table III, last column as printed",
}
STYLES = {EXACT: ("#0072B2", "-"), APPENDIX: ("#D55E00", "-"), INVERTED: ("#009E73", "--"), TABLE: ("#000000", ":")}


def compute(settings: Settings) -> dict[str, Trace]:
    r"""Return the share ``p`` of rounds that may skip communication, over :math:`\epsilon/G^2` (column ``ratio``).

    For :math:`L = 1`, :math:`\eta = (\sqrt5 - 1)/8` and 100 clients (Table III: infinitely many). :math:`G` bounds
    :math:`|\nabla f_i - \nabla f_j|`, and :math:`\epsilon` is what :math:`|\nabla E|^2` shall fall to.
    """
    appendix = 8.0 * appendix_constants(L=L, eta=ETA)[0]
    choices: dict[str, Callable[[float], float]] = {
        EXACT: lambda ratio: largest_skip(ratio, L=L, eta=ETA, n_clients=CLIENTS),
        APPENDIX: lambda ratio: largest_skip(ratio, L=L, eta=ETA, n_clients=CLIENTS, C5=appendix),
        INVERTED: _inverted,
        TABLE: lambda ratio: table_skip(ratio, eta=ETA),
    }
    return {
        name: Trace(
            columns={"ratio": RATIOS, "p": [choice(float(ratio)) for ratio in RATIOS]},
            status="converged",
            theta=None,
            parameters={"L": L, "eta": ETA, "n_clients": CLIENTS},
        )
        for name, choice in choices.items()
    }


def draw(traces: Mapping[str, Trace], settings: Settings) -> Figure:
    r"""Draw ``p`` over :math:`\epsilon/G^2`, with the border of the two regimes of Table III."""
    figure, ((axes,),) = plotting.panels(height=4.0, width=settings.width)
    for name, trace in traces.items():
        colour, line = STYLES[name]
        axes.semilogx(trace["ratio"], 100.0 * trace["p"], color=colour, linestyle=line, label=LEGEND[name])
    axes.axhline(100.0 * BORDER, color="0.6", linewidth=0.8)
    axes.text(1.2 * RATIOS[0], 100.0 * BORDER + 1.0, "$C_3 = 1$", color="0.4")
    axes.set_ylim(0.0, 100.0)
    axes.set_xlim(RATIOS[0], RATIOS[-1])
    axes.set_xlabel(r"accuracy asked over dissimilarity of the clients, $\epsilon / G^2$")
    axes.set_ylabel(r"rounds without communication, $p$ in %")
    axes.set_title(rf"FedPD, $L = 1$, $\eta = (\sqrt{{5}}-1)/8$, {CLIENTS} clients")
    figure.unnamed.append([axes])
    return figure


def tabulate(traces: Mapping[str, Trace]) -> list[dict[str, str]]:
    """Return Table III with numbers: for some ``p``, what the table puts for ``C(p)``, and what ``C(p)`` is."""
    rows = []
    for p in TABLE_ROWS:
        true, table = penalty(p, L=L, eta=ETA), table_penalty(p, L=L, eta=ETA)
        needed = 3.0 * true
        rows.append(
            {
                "p": f"{p:g}",
                "C3": f"{growth(p, a=L * ETA):.3f}",
                "C(p)/eta^2": f"{true / ETA**2:.3g}",
                "Table III": f"{table / ETA**2:.3g}",
                "eps/G^2 needed": f"{needed:.3g}",
                "p of the last column": f"{table_skip(needed, eta=ETA):.3f}",
            }
        )
    return rows


def _inverted(ratio: float) -> float:
    """Return the largest ``p`` that the third column of Table III allows; its ``C(p)`` jumps at the border."""
    bracket = (0.0, 1.0 - 1e-12)
    return root_scalar(lambda p: max(ratio / 3.0 - table_penalty(p, L=L, eta=ETA), -ratio), bracket=bracket).root
