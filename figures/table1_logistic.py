r"""Table 1 of the DualFL paper on logistic regression of real data: rounds and local gradients against kappa.

The ridge of the problem (7.1) sets the condition number of the most curved client, :math:`\kappa = L/\mu`. Three
columns of the table are about smooth clients:

* strongly convex: rounds to an accuracy, which theorems bound by :math:`O(\sqrt\kappa\log(1/\epsilon))`;
* not strongly convex: the ridge is the regularisation of (4.1) with :math:`\alpha = \mu`, and rounds are counted until
  the gradient of the problem without it is at most :math:`\epsilon = 1.1\,\alpha|\theta^\alpha|`, a tenth more than at
  the solution with it; Theorem 4.2 has :math:`O(\epsilon^{-1/2}\log(1/\epsilon))`;
* local iterations in a round, :math:`\tilde O(\sqrt\kappa)`.

The theorems behind :func:`guaranteed` have explicit constants: they say after how many rounds the accuracy is reached.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from dualopt.engine.rounds import iterate
from dualopt.methods import APDAInexact, DualFL, FedPD, FedSplit, GradientDescent, OptimizedDualFL
from dualopt.methods.participation import CommunicateWithProbability, Full, Participation
from dualopt.problem.build import build_problem
from dualopt.problem.options import ProblemOptions
from dualopt.runs import plotting
from dualopt.runs._recorder import communicated
from dualopt.runs.trace import Trace
from dualopt.solvers import LBFGS, Gradient, Nesterov
from dualopt.solvers.stopping import GradientReduction
from dualopt.spec import described
from figures._powers import draw_powers, exponent_cells, grows
from figures._settings import Settings
from theory._cases import Case
from theory._problems import solved
from theory.baselines._communications import ACCURACY, exponent, kappas, local_gradients, planes
from theory.baselines.contraction import reflection
from theory.baselines.table_1 import paper_5gcs, paper_scaffnew
from theory.dualfl._runs import initial_bound

__all__ = ["caption", "compute", "draw", "guaranteed", "tabulate"]

TIME = "about 3 minutes"
CLIENTS = 8
KAPPAS = 10  # 10 n^2: to 1000
SHOWN = (1, 3, 10)  # the n of the columns of the table
HALFWAY = math.sqrt(ACCURACY)
MARGIN = 1.1  # how much larger the gradient may be than at the solution of the problem with a ridge
EXPLODED = 1e6
COINS = {False: 2, True: 1}  # seeds of the methods that toss them
ROWS_OF_DATA = {False: 400, True: 100}  # drawn at random, unless --rows says otherwise
STOP = GradientReduction(factor=1e-6, first=1e-6)
EXACTLY: dict[str, Any] = {"solver": LBFGS(), "stop": STOP}
BY_NESTEROV: dict[str, Any] = {"solver": Nesterov(), "stop": STOP}


class Row(NamedTuple):
    """A method."""

    build: Callable[[Case], Any]
    look: str  # the method in whose style it is drawn
    paper: str = "-"  # what Table 1 says of its rounds
    local: Callable[[Case], Any] | None = None  # the method with local problems solved by gradients, which are counted
    tosses: bool = False


ROWS = {
    "DualFL": Row(lambda f: DualFL(**EXACTLY), "dualfl", "yes", lambda f: DualFL(**BY_NESTEROV)),
    "OptimizedDualFL": Row(
        lambda f: OptimizedDualFL(**EXACTLY), "optimized-dualfl", local=lambda f: OptimizedDualFL(**BY_NESTEROV)
    ),
    "Scaffnew": Row(paper_scaffnew, "scaffnew", "yes", tosses=True),
    "5GCS": Row(
        lambda f: replace(paper_5gcs(f), **EXACTLY), "fivegcs", "yes", lambda f: paper_5gcs(f, solver=Gradient())
    ),
    "APDA-Inexact": Row(lambda f: APDAInexact(), "apda-inexact", "yes"),
    "FedSplit": Row(lambda f: FedSplit(**EXACTLY), "fedsplit", local=lambda f: FedSplit(**BY_NESTEROV)),
    "FedPD": Row(lambda f: FedPD(**EXACTLY), "fedpd", local=lambda f: FedPD(**BY_NESTEROV)),
    "gradient descent": Row(lambda f: GradientDescent(step=1.0 / f.L), "gradient-descent"),
}


class Count(NamedTuple):
    """Communication rounds until something holds, and what they take; infinite where it never did."""

    rounds: float  # until |theta - theta*|^2 is at most ACCURACY times what it was
    halfway: float  # until it is at most the root of that
    plain: float  # until the gradient without the ridge is at most `plain_accuracy`
    gradients: float  # local gradients of a client per communication round


def compute(settings: Settings) -> dict[str, Trace]:
    """Count rounds and local gradients of every method; one row per condition number.

    The columns are those of :class:`Count`, with ``bound``, the rounds of :func:`guaranteed`, and ``epsilon``, the
    accuracy of ``plain``. Methods with a solver for local problems solve them with L-BFGS, and their local gradients
    are those of Nesterov's method in the first three rounds, both until local gradients are reduced by 1e6; those of
    5GCS are the steps of gradient descent that its paper prescribes.
    """

    @cache
    def problems() -> list[Case]:
        return _problems(settings)

    def columns(row: Row) -> dict[str, Any]:
        found = [_count(row, f, COINS[settings.quick]) for f in problems()]
        return {
            "kappa": kappas(KAPPAS),
            **{name: [getattr(count, name) for count in found] for name in Count._fields},
            "bound": [guaranteed(row.build(f), f) for f in problems()],
            "epsilon": [plain_accuracy(f) for f in problems()],
        }

    traces = {}
    for label, row in ROWS.items():
        description = {
            "figure": "table1_logistic",
            "method": label,
            "problem": _described(settings),
            "algorithm": described(row.build(planes(10.0))),
            "local": None if row.local is None else described(row.local(planes(10.0))),
            "accuracy": ACCURACY,
            "kappas": KAPPAS,
            "coins": COINS[settings.quick],
        }
        traces[label] = settings.stored_columns(f"the row {label!r}", description, lambda row=row: columns(row))
    return traces


def draw(traces: Mapping[str, Trace], settings: Settings) -> Figure:
    """Draw the three columns of Table 1 against the condition number, with the exponents."""
    figure, grid = plotting.panels(3, 1, height=2.9, width=settings.width)
    looks = {label: row.look for label, row in ROWS.items()}
    titles = {
        "rounds": r"strongly convex: rounds to $|\theta - \theta^*|^2 \leq 10^{-8}\,|\theta_0 - \theta^*|^2$",
        "plain": r"not strongly convex: rounds to $|\nabla E_0(\theta)| \leq 1.1\,\mu\,|\theta^*|$",
        "gradients": "local gradients of a client per communication round",
    }
    for axes, (column, title) in zip(grid.flat, titles.items(), strict=True):
        drawn = [label for label, trace in traces.items() if grows(trace[column])]
        draw_powers(axes, traces, drawn, column, looks=looks, exponents=column != "plain")
        axes.set_title(title)
    bound = traces["DualFL"]["bound"] if "DualFL" in traces else np.array([])
    if bound.size:
        grid[0, 0].plot(kappas(KAPPAS), bound, color="0.35", linewidth=0.9, linestyle="--", label="Theorem 3.3, DualFL")
    figure.unnamed += [[axes] for axes in grid.flat]
    return figure


def caption(traces: Mapping[str, Trace], settings: Settings) -> str:
    """Say what the problem is, and what the table adds to the picture."""
    data, rows = settings.title.partition(":")[0], settings.rows or ROWS_OF_DATA[settings.quick]
    return (
        f"{data}, {rows} rows by label at {CLIENTS} clients, (multinomial) logistic regression; the ridge mu makes "
        "kappa = L/mu. Parameters as suggested, those of 5GCS and Scaffnew (which is RandProx with 1 + omega = 1/p) as "
        "their papers have them. E_0 is E without its ridge. In the table, bound: rounds after which a theorem with "
        "explicit constants guarantees the accuracy, for Scaffnew in expectation; second half: rounds from 1e-4 to "
        "1e-8 over those to 1e-4; plain: the rounds in the second panel. The nonsmooth column of Table 1 is in figure "
        "table1."
    )


def tabulate(traces: Mapping[str, Trace]) -> list[dict[str, str]]:
    """Return one row per method: rounds at some condition numbers, exponents, what theorems guarantee, local work."""
    rows = []
    for label, trace in traces.items():
        rounds, gradients = trace["rounds"], trace["gradients"]
        row = {"method": label, "Table 1": ROWS[label].paper}
        row |= {f"{kappas(n)[-1]:g}": _number(rounds[n - 1]) for n in SHOWN}
        row |= exponent_cells(exponent(rounds) if grows(rounds) else None)
        row["bound"] = _number(trace["bound"][-1])
        row["second half"] = f"{rounds[-1] / trace['halfway'][-1] - 1.0:.2f}" if math.isfinite(rounds[-1]) else "-"
        row["plain"] = ", ".join(_number(trace["plain"][n - 1]) for n in SHOWN)
        row["local gradients"] = ", ".join(f"{gradients[n - 1]:.3g}" for n in SHOWN)
        row["local exponent"] = exponent_cells(exponent(gradients))["exponent"] if grows(gradients) else "-"
        rows.append(row)
    return rows


def plain_accuracy(f: Case) -> float:
    r"""Return 1.1 times :math:`\mu|\theta^*|`, the gradient of the problem without a ridge where it has one."""
    return MARGIN * f.mu * float(np.linalg.norm(f.theta))


def guaranteed(algorithm: Any, f: Case) -> float:
    r"""Return the rounds that a theorem with explicit constants allows until the accuracy is reached; NaN without one.

    From :math:`\theta^0 = 0`, for exact local solutions, with :math:`s_j = \nabla f_j(\theta^*)`:

    * DualFL, Theorem 3.3: :math:`|\theta^n - \theta^*|^2 \le (1 - \sqrt\rho)^{n-1} |\xi^*|^2/(N\nu^2)`;
    * FedSplit and FedPD, which are FedDR with :math:`a = 2` and 1 (the claim feddr_contraction): the points
      :math:`y_j` contract by ``q`` towards :math:`\theta^* + \eta s_j`, and the model is the mean of their reflections,
      which contract by :math:`\delta`, so that :math:`|\theta^n - \theta^*|^2 \le \delta^2 q^{2n-2} (|\theta^*|^2 +
      \frac{\eta^2}N\sum_j|s_j|^2)`, as the :math:`s_j` sum to zero;
    * gradient descent with the step 1/L: :math:`|\theta^n - \theta^*|^2 \le (1 - 1/\kappa)^{2n} |\theta^*|^2`;
    * Scaffnew with the step 1/L, Theorem 3.6 of its paper: after ``t`` local steps the expected squared distance is at
      most :math:`(1 - \min(1/\kappa, p^2))^t (|\theta^*|^2 + \frac1N\sum_j|s_j|^2/(pL)^2)`, and ``pt`` rounds are
      expected to be over by then.
    """
    method, squared = algorithm.suggested(f.objective), float(np.sum(f.theta**2))
    slopes = float(np.mean([np.sum(s**2) for s in f.subgradients]))
    target = ACCURACY * squared
    name = type(method).__name__
    if name == "DualFL":
        start = 2.0 * initial_bound(f.case(method, 1)) / (f.n_clients * method.nu)
        return 1.0 + _needed(start / target, 1.0 - math.sqrt(method.rho))
    if name in ("FedSplit", "FedPD"):
        eta = method.step if name == "FedSplit" else method.eta
        delta = reflection(eta, f.mu, f.L)
        q = delta if name == "FedSplit" else 0.5 * (1.0 + delta)
        start = squared + eta**2 * slopes
        return 1.0 + _needed(delta**2 * start / target, q * q)
    if name == "GradientDescent":
        return _needed(squared / target, (1.0 - f.mu * method.step) ** 2)
    if name == "Scaffnew":
        p = method.probability
        start = squared + slopes / (p * f.L) ** 2
        return p * _needed(start / target, 1.0 - min(f.mu / f.L, p * p))
    return math.nan


def _needed(ratio: float, factor: float) -> float:
    """Return the least whole number of factors that bring a ratio down to one."""
    return float(max(0, math.ceil(math.log(ratio) / -math.log(factor))))


def _count(row: Row, f: Case, seeds: int) -> Count:
    found = [_counted(row.build(f), f, seed) for seed in range(seeds if row.tosses else 1)]
    count = Count(*np.mean(found, axis=0).tolist())
    return count if row.local is None else count._replace(gradients=local_gradients(row.local(f), f))


def _counted(algorithm: Any, f: Case, seed: int) -> Count:
    """Count by running the method."""
    squared, accuracy = float(np.sum(f.theta**2)), plain_accuracy(f)
    halfway = plain = math.inf
    n, gradients = 0, 0.0
    for s in iterate(algorithm, f.objective, participation=_participation(algorithm), seed=seed):
        assert s.solution is not None
        gradients += float(np.mean(s.solution.gradients))
        if not communicated(s):
            continue
        n, theta = n + 1, s.server.theta
        error = float(np.sum((theta - f.theta) ** 2)) / squared
        if error <= HALFWAY:
            halfway = min(halfway, n)
        # it is small before the loop ends: |grad E_0 + mu theta*| < L |theta - theta*| <= kappa 1e-4 mu |theta*|
        if plain == math.inf and _plain_gradient(f, theta) <= accuracy:
            plain = n
        if error <= ACCURACY or not error < EXPLODED:
            break
    return Count(n if error <= ACCURACY else math.inf, halfway, plain, gradients / n)


def _participation(algorithm: Any) -> Participation:
    p = getattr(algorithm, "probability", None)
    return Full() if p is None else CommunicateWithProbability(probability=p)


def _plain_gradient(f: Case, theta: np.ndarray) -> float:
    r"""Return :math:`|\nabla E_0(\theta)|`."""
    return float(np.linalg.norm(f.objective.mean(f.objective.gradient(theta)) - f.mu * theta))


def _options(settings: Settings) -> ProblemOptions:
    """Return the options of the problem, but for its ridge."""
    rows = settings.rows or ROWS_OF_DATA[settings.quick]
    whole = settings.options(CLIENTS)
    return replace(whole, rows=rows, partition="by-label", client_weights="equal", mu=1.0)


def _described(settings: Settings) -> dict[str, Any]:
    """Return everything that defines the problem, but for its ridge."""
    return settings.described(CLIENTS) | {"partition": "by-label", "client_weights": "equal", "mu": None}


def _problems(settings: Settings) -> list[Case]:
    """Return the problem with a ridge for every condition number."""
    f = build_problem(_options(settings)).objective
    curvature = float(np.max(f.L)) - f.ridge
    ridges = {kappa: curvature / (kappa - 1.0) for kappa in kappas(KAPPAS)}
    return [solved(f"kappa = {kappa:g}", replace(f, ridge=ridge)) for kappa, ridge in ridges.items()]


def _number(x: float) -> str:
    return f"{x:.0f}" if math.isfinite(x) else "-"
