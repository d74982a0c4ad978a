"""One scale for each client: rounds against how far the clients' curvatures spread, for methods with sampled clients.

Half of the problems are quadratics of condition number 100 in random directions, with the scale of client j between 1
and the spread. In the other half the data are dealt out at random, and the features of client j are multiplied by the
root of a scale between 1 over the spread and 1; the ridge, and with it the least curvature, is common to all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import islice, product
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from dualopt.arrays.xp import Array, to_numpy
from dualopt.engine.rounds import iterate
from dualopt.methods import Algorithm, FedDR, FedDyn, FedSplit, SampledDualFL
from dualopt.methods.participation import Participation, UniformSubset, WeightedSubset
from dualopt.objectives import Objective, Quadratic, linear_model
from dualopt.runs import plotting
from dualopt.runs.reference import newton
from dualopt.runs.trace import Trace
from dualopt.solvers import Exact
from figures._panels import plain_ticks
from figures._settings import SEED, Settings

__all__ = ["compute", "draw", "tabulate"]

TIME = "about 5 minutes"

N = 20
ACTIVE = (2, 5)
SPREADS = {False: (1.0, 10.0, 100.0, 1000.0), True: (1.0, 100.0)}
MOST = {False: 20_000, True: 3000}  # rounds of a run
SEEDS = 2  # of cohorts of the quadratics, whose rounds are averaged; the data have one
LEGEND = {"fedsplit": "FedSplit", "feddr": "FedDR", "feddyn": "FedDyn", "sampled-dualfl": "SampledDualFL"}
METHODS: dict[str, Any] = {
    "fedsplit": FedSplit(),
    "feddr": FedDR(relaxation=1.0),
    "feddyn": FedDyn(),
    "sampled-dualfl": SampledDualFL(),
}
DRAWN = (FedDyn, SampledDualFL)  # whose cohorts are drawn with the weights of the reweighted clients
DIMENSION, KAPPA = 10, 100.0
FORMS = {"none": "one scale", "suggested": "one per client"}


class Clients(NamedTuple):
    """A problem, and how far a model is from its solution, 1e-10 and 1e-6 being what is asked for."""

    objective: Objective
    error: Callable[[Array], float]
    accuracy: float


def compute(settings: Settings) -> dict[str, Trace]:
    """Return for every problem, number of active clients, method and form the rounds at every spread."""
    spreads, most = SPREADS[settings.quick], MOST[settings.quick]

    @cache
    def data(spread: float) -> Clients:
        return scaled_rows(settings, spread)

    problems: dict[str, tuple[Callable[[float], Clients], int]] = {
        "quadratics": (quadratics, 1 if settings.quick else SEEDS),
        "data": (data, 1),
    }
    found = {}
    for kind, (problem, seeds) in problems.items():
        described = settings.described(N) if kind == "data" else {"kappa": KAPPA, "dimension": DIMENSION}
        for active, name, scales in product(ACTIVE, METHODS, FORMS):
            label = f"{kind}, {active} of {N}: {name}, {FORMS[scales]}"
            run = partial(rounds, method=METHODS[name], scales=scales, active=active, most=most)
            columns = partial(_columns, [partial(problem, spread) for spread in spreads], run, seeds)
            common = {"figure": "scales", "curve": label, "spreads": spreads, "most": most, "seeds": seeds}
            found[label] = settings.stored_columns(
                f"the curve {label!r}",
                common | described,
                lambda columns=columns: {"spread": list(spreads), "rounds": columns()},
            )
    return found


def _columns(problems: Sequence[Callable[[], Clients]], run: Callable[..., float], seeds: int) -> list[float]:
    """Return the rounds on each problem, means over the seeds."""
    return [float(np.mean([run(problem(), seed=seed) for seed in range(seeds)])) for problem in problems]


@cache
def quadratics(spread: float) -> Clients:
    """Return quadratics whose scales are between 1 and ``spread``, in random directions."""
    rng = np.random.default_rng(SEED)
    scales = np.geomspace(1.0, spread, N)[rng.permutation(N)]
    bases = [np.linalg.qr(rng.standard_normal((DIMENSION, DIMENSION)))[0] for _ in range(N)]
    spectrum = np.geomspace(1.0 / KAPPA, 1.0, DIMENSION)
    A = np.stack([s * (q * spectrum) @ q.T for s, q in zip(scales, bases, strict=True)])
    b = np.einsum("nij,nj->ni", A, rng.standard_normal((N, DIMENSION)))
    f = Quadratic(A=0.5 * (A + A.transpose(0, 2, 1)), b=b)
    solution = f.minimiser()
    square = float(solution @ solution)
    return Clients(f, lambda theta: float(np.sum((theta - solution) ** 2)) / square, 1e-10)


def scaled_rows(settings: Settings, spread: float) -> Clients:
    """Return clients with shares of the rows, whose features have scales between ``spread ** -0.5`` and 1."""
    whole = settings.whole.objective
    X, y, _ = (to_numpy(part) for part in next(whole.client_rows()))
    rng = np.random.default_rng(SEED)
    order, scales = rng.permutation(len(X)), np.geomspace(1.0 / spread, 1.0, N)[rng.permutation(N)]
    X, y = X[order].copy(), y[order]
    for scale, rows in zip(scales, np.array_split(np.arange(len(X)), N), strict=True):
        X[rows] *= math.sqrt(scale)
    f = linear_model(X, y, loss=whole.loss, mu=settings.mu, clients=N, intercept=False)
    least = float(f.mean(f.value(newton(f).theta)))
    return Clients(f, lambda theta: float(f.mean(f.value(theta))) / least - 1.0, 1e-6)


def rounds(clients: Clients, method: Algorithm, scales: str, active: int, most: int, seed: int) -> float:
    """Return the rounds to the accuracy, NaN if there are more than ``most``."""
    exactly = replace(method, solver=Exact()) if isinstance(clients.objective, Quadratic) else method
    drawn = isinstance(method, DRAWN) and scales != "none"
    chance: Participation = WeightedSubset(size=active) if drawn else UniformSubset(size=active)
    run = islice(iterate(exactly, clients.objective, participation=chance, scales=scales, seed=seed), most)
    for n, snapshot in enumerate(run, start=1):
        if clients.error(snapshot.server.theta) <= clients.accuracy:
            return float(n)
    return math.nan


def draw(traces: Mapping[str, Trace], settings: Settings) -> Figure:
    """Draw one scale for all dashed with open markers, one for each client solid with filled ones."""
    kinds = {
        "quadratics": rf"quadratics, $\kappa_j$ = {KAPPA:g}, to $10^{{-10}}$",
        "data": f"{settings.whole.name}, scaled features, to $10^{{-6}}$",
    }
    figure, grid = plotting.panels(len(kinds), len(ACTIVE), height=2.3, width=settings.width, sharey=True)
    look = plotting.styles(LEGEND)
    for (kind, active), axes in zip(product(kinds, ACTIVE), grid.flat, strict=True):
        for name, form in product(LEGEND, FORMS.values()):
            trace, own = traces[f"{kind}, {active} of {N}: {name}, {form}"], form == FORMS["suggested"]
            colour, marker, _ = look[name]
            axes.plot(
                trace["spread"],
                trace["rounds"],
                color=colour,
                marker=marker,
                markerfacecolor=colour if own else "white",
                linestyle="-" if own else (0, (4, 2)),
                label=f"{LEGEND[name]}, {form}",
            )
        axes.set_title(f"{kinds[kind]}\n{active} of {N} active")
        axes.set(xscale="log", yscale="log", xlabel="spread of the scales")
        plain_ticks(axes)
    for row in grid:
        row[0].set_ylabel("communication rounds")
    figure.unnamed += list(grid)
    return figure


def tabulate(traces: Mapping[str, Trace]) -> list[dict[str, str]]:
    """Return the rounds of both forms at every spread; a dash where they are too many."""
    rows = []
    for label in (label for label in traces if label.endswith(FORMS["none"])):
        where, name, _ = (part.strip() for part in label.replace(":", ",").rsplit(",", 2))
        own = traces[label.removesuffix(FORMS["none"]) + FORMS["suggested"]]
        for spread, *counts in zip(traces[label]["spread"], traces[label]["rounds"], own["rounds"], strict=True):
            row = {"problem": where, "method": LEGEND[name], "spread": f"{spread:g}"}
            words = [f"{count:.0f}" if math.isfinite(count) else "-" for count in counts]
            rows.append(row | dict(zip(FORMS.values(), words, strict=True)))
    return rows
