"""Table 1 of the DualFL paper as a measurement: communication rounds and local gradients against kappa."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from dualopt.lab.rates import Order, estimate_order
from dualopt.methods import (
    GIANT,
    AdaptiveAccSDANE,
    AFedPD,
    AFedPDSAM,
    AndersonDANE,
    AndersonFedSplit,
    APDAInexact,
    ConsensusFedSplit,
    DistributedLBFGS,
    DistributedNewtonCG,
    DualAscent,
    DualFL,
    DualLBFGS,
    FedADMM,
    FedAvg,
    FedCM,
    FedDR,
    FedDualAvg,
    FedDyn,
    FedPD,
    FedProx,
    FedSAM,
    FedSpeed,
    FedSplit,
    GradientDescent,
    OptimizedDualFL,
    SampledDualFL,
    Scaffold,
    ScaffoldI,
)
from dualopt.objectives import Quadratic
from dualopt.runs import plotting
from dualopt.runs.trace import Trace
from dualopt.solvers import Exact, Nesterov
from dualopt.solvers.stopping import GradientReduction, Steps
from dualopt.spec import described
from figures._powers import draw_powers, exponent_cells, grows
from figures._settings import Settings
from theory._cases import Case
from theory._problems import solved
from theory.baselines._communications import (
    ACCURACY,
    AtOnce,
    Count,
    Counter,
    exponent,
    in_matrices,
    kappas,
    limit_error,
    local_gradients,
    one_by_one,
    planes,
    with_coins,
)
from theory.baselines.table_1 import paper_5gcs, paper_scaffnew, short_step
from theory.dualfl.regularised import plain_case
from theory.dualfl.regularised import theorem_4_2_rounds as rounds_to_gradient
from theory.lower_bounds._convex_chain import power
from theory.lower_bounds._convex_methods import chain_case, distances

__all__ = ["caption", "compute", "draw", "tabulate"]

TIME = "80 seconds"
KAPPAS = {False: 32, True: 10}  # 10 n^2: to 10240, or to 1000
SEEDS = {False: 3, True: 1}
SHOWN = (1, 3, 10, 32)  # the n of the columns of the table
WEIGHTS = (0.5, 1.0, 2.0)  # times sqrt(L mu)
BIASED_ROUNDS = 300
CHAINS = {False: (3000, 300), True: (1000, 100)}  # dimension and rounds
FLAT = 1e4  # kappa of the planes that lose their strong convexity
ALPHA = 1e-3  # the ridge that DualFL gets there, over n^2 and in units of L
ACCURATE = {"solver": Nesterov(), "stop": GradientReduction(factor=1e-6, first=1e-6)}

Build = Callable[[Case], Any]


def closed_form(algorithm: Any, instance: Case) -> Count:
    """Return the error of the fixed point."""
    return Count(math.inf, math.nan, limit_error(algorithm, instance))


def ends_somewhere(algorithm: Any, instance: Case) -> Count:
    """Return the error after many rounds, for the least condition number alone."""
    least = instance.L / instance.mu < 1.001 * kappas(1)[0]
    return one_by_one(algorithm, instance, limit=BIASED_ROUNDS) if least else Count(math.inf, math.nan, math.nan)


def best_weight(algorithm: FedPD, instance: Case) -> Count:
    """Return the count with the best of several weights."""
    best = 1.0 / math.sqrt(instance.L * instance.mu)
    return min(in_matrices(FedPD(eta=best / times), instance) for times in WEIGHTS)


class Row(NamedTuple):
    """A method."""

    build: Build
    count: Counter = in_matrices
    paper: str = "-"  # what Table 1 says of its rounds
    local: Build | None = None  # the method with local problems solved by gradients, where those are counted
    look: str = ""  # the method whose style it has in the picture; none: it is not drawn


ROWS = {
    "DualFL": Row(lambda f: DualFL(), one_by_one, "yes", lambda f: DualFL(**ACCURATE), "dualfl"),
    "OptimizedDualFL": Row(lambda f: OptimizedDualFL(), one_by_one, look="optimized-dualfl"),
    "SampledDualFL": Row(lambda f: SampledDualFL(), one_by_one),
    "Scaffnew": Row(paper_scaffnew, with_coins, "yes", look="scaffnew"),
    "RandProx": Row(lambda f: paper_scaffnew(f, 1.0 / (1.0 + _omega(f))), with_coins, "yes"),
    "5GCS": Row(lambda f: paper_5gcs(f, solver=AtOnce()), in_matrices, "yes", look="fivegcs"),
    "APDA-Inexact, exact": Row(
        lambda f: APDAInexact(solver=Exact()), in_matrices, "yes", lambda f: APDAInexact(**ACCURATE), "apda-inexact"
    ),
    "APDA-Inexact, K = 10": Row(lambda f: APDAInexact(solver=AtOnce()), in_matrices, "yes", look="apda-inexact"),
    "FedSplit": Row(lambda f: ConsensusFedSplit(), local=lambda f: FedSplit(**ACCURATE), look="fedsplit"),
    "AndersonFedSplit": Row(lambda f: AndersonFedSplit(), one_by_one),
    "AndersonDANE": Row(lambda f: AndersonDANE(), one_by_one),
    "GIANT": Row(lambda f: GIANT(), one_by_one),
    "Acc-S-DANE": Row(lambda f: AdaptiveAccSDANE(), one_by_one),
    "L-BFGS on the dual": Row(lambda f: DualLBFGS(), one_by_one),
    "L-BFGS at the server": Row(lambda f: DistributedLBFGS(), one_by_one),
    "Newton-CG at the server": Row(lambda f: DistributedNewtonCG(), one_by_one),
    "gradient descent": Row(lambda f: GradientDescent()),
    "FedDR, a = 2": Row(lambda f: FedDR(relaxation=2.0)),
    "FedPD": Row(lambda f: FedPD(), local=lambda f: FedPD(**ACCURATE), look="fedpd"),
    "FedPD, best weight": Row(lambda f: FedPD(), best_weight),
    "FedPD, step of its theorem": Row(short_step, look="fedpd"),
    "FedDyn": Row(lambda f: FedDyn()),
    "A-FedPD": Row(lambda f: AFedPD()),
    "FedADMM": Row(lambda f: FedADMM()),
    "FedDR, a = 1": Row(lambda f: FedDR(relaxation=1.0)),
    "DualFL, rho = 0": Row(lambda f: DualFL(rho=0.0), one_by_one, look="dualfl"),
    "DualFL, no momentum": Row(lambda f: DualAscent(), look="dual-ascent"),
    "FedAvg, K = 1": Row(lambda f: FedAvg(stop=Steps(steps=1)), look="fedavg"),
    "FedDualAvg, K = 1": Row(lambda f: FedDualAvg(stop=Steps(steps=1))),
    "SCAFFOLD, option I": Row(lambda f: ScaffoldI(solver=AtOnce(step=0.1 / f.L))),
    "SCAFFOLD, option II": Row(lambda f: Scaffold(solver=AtOnce(step=0.1 / f.L)), look="scaffold"),
    "FedAvg, K = 10": Row(lambda f: FedAvg(solver=AtOnce()), closed_form),
    "FedDualAvg, K = 10": Row(lambda f: FedDualAvg(), closed_form),
    "FedProx": Row(lambda f: FedProx(), closed_form),
    "FedCM": Row(lambda f: FedCM(solver=AtOnce(step=1.0 / f.L)), closed_form),
    "FedSAM": Row(lambda f: FedSAM(), ends_somewhere),
    "FedSpeed": Row(lambda f: FedSpeed(), ends_somewhere),
    "A-FedPDSAM": Row(lambda f: AFedPDSAM(), ends_somewhere),
}
CHAIN, CONVEX = "DualFL, nonsmooth", "DualFL, not strongly convex"


def compute(settings: Settings) -> dict[str, Trace]:
    """Count rounds and local gradients of every method; one row per condition number, means over the problems.

    ``rounds`` are communication rounds to a squared distance of 1e-8, infinite where the method has a bias, and then
    ``error`` is where it ends. ``gradients`` are those of a client per communication round; they are not counted for
    exact local solutions; for some methods they are counted with Nesterov's method, stopped when local gradients are
    reduced by 1e6.

    DualFL on a nonsmooth chain has the ``error`` after ``rounds``, and on a smooth problem that is not strongly convex
    the ``rounds`` until the norm of the gradient is ``error``.
    """
    traces = {label: _stored(settings, label, _counts(settings, label, row)) for label, row in ROWS.items()}
    traces[CHAIN] = _stored(settings, CHAIN, lambda: _on_chain(*CHAINS[settings.quick]))
    traces[CONVEX] = _stored(settings, CONVEX, _until_gradients)
    return traces


def draw(traces: Mapping[str, Trace], settings: Settings) -> Figure:
    """Draw rounds and local gradients against the condition number, with the exponents."""
    figure, grid = plotting.panels(2, 1, height=3.2, width=settings.width)
    rounds, gradients = grid.flat
    drawn = [label for label, row in ROWS.items() if row.look]
    draw_powers(rounds, traces, drawn, "rounds", looks=_methods())
    growing = [label for label in drawn if grows(traces[label]["gradients"])]
    draw_powers(gradients, traces, growing, "gradients", looks=_methods())
    reduced = r"$|\theta - \theta^*|^2 \leq 10^{-8}\,|\theta_0 - \theta^*|^2$"
    rounds.set_title(f"communication rounds to {reduced}, with the exponents of $\\kappa$")
    gradients.set_title("local gradients of a client per communication round")
    figure.unnamed += [[rounds], [gradients]]
    return figure


def caption(traces: Mapping[str, Trace], settings: Settings) -> str:
    """Say which clients these are, and how exact methods count gradients."""
    return (
        "All clients have the same planes of curvature and different axes in them. Below: methods with exact local "
        "solutions count the gradients of Nesterov's method until the local gradient is reduced by 1e6."
    )


def tabulate(traces: Mapping[str, Trace]) -> list[dict[str, str]]:
    """Return one row per method: rounds at some condition numbers, exponents with their intervals, local gradients."""
    rows = []
    for label, trace in traces.items():
        fitted = _fit(label, trace)
        row = {"method": label, "Table 1": ROWS[label].paper if label in ROWS else "yes"}
        for n in SHOWN:
            known = label in ROWS and n <= len(trace) and math.isfinite(trace["rounds"][n - 1])
            row[f"{kappas(n)[-1]:g}"] = f"{trace['rounds'][n - 1]:.0f}" if known else "-"
        row |= exponent_cells(fitted)
        gradients = trace["gradients"]
        known = [f"{gradients[n - 1]:.3g}" for n in SHOWN if n <= len(trace) and math.isfinite(gradients[n - 1])]
        row["local gradients"] = ", ".join(known) or "-"
        row["local exponent"] = exponent_cells(exponent(gradients))["exponent"] if grows(gradients) else "-"
        rows.append(row | {"status": _status(label, trace)})
    return rows


def _counts(settings: Settings, label: str, row: Row) -> Callable[[], dict[str, Any]]:
    def columns() -> dict[str, Any]:
        found = [_count(row, kappa, SEEDS[settings.quick]) for kappa in kappas(KAPPAS[settings.quick])]
        names = ("rounds", "gradients", "error")
        return {"kappa": kappas(len(found))} | {name: [c[i] for c in found] for i, name in enumerate(names)}

    return columns


def _count(row: Row, kappa: float, seeds: int) -> Count:
    problems = [planes(kappa, seed) for seed in range(seeds)]
    rounds, gradients, error = np.mean([row.count(row.build(f), f) for f in problems], axis=0).tolist()
    if row.local is not None:
        gradients = local_gradients(row.local(problems[0]), problems[0])
    elif isinstance(row.build(problems[0]).suggested(problems[0].objective).solver, Exact):
        gradients = math.nan
    return Count(rounds, gradients, error)


def _omega(f: Case) -> float:
    """Return the variance of the Bernoulli operator of RandProx that matches the condition number."""
    return math.sqrt(f.L / f.mu) - 1.0


def _on_chain(dimension: int, rounds: int) -> dict[str, Any]:
    """Return the errors of DualFL on a nonsmooth chain that keeps every method to the order 2."""
    case = chain_case(power(dimension), DualFL(rho=0.0), rounds)
    errors = np.array([1.0, *(distance / float(np.sum(case.theta**2)) for distance in distances(case))])
    n = np.arange(errors.size)
    return {"kappa": np.inf + n, "rounds": n, "gradients": np.nan * n, "error": errors}


def _until_gradients() -> dict[str, Any]:
    """Return the rounds of Theorem 4.2 for accuracies that fall like the inverse square of integers."""
    curved = planes(FLAT).objective
    f = solved("flat planes", Quadratic(A=curved.A - np.eye(curved.shape[0]), b=curved.b))
    alphas = np.array([ALPHA * f.L / n**2 for n in range(1, 11)])
    rounds = [next(iter(rounds_to_gradient(plain_case(f, alpha, 1, accelerated=True)))).lhs for alpha in alphas]
    accuracies = 2.0 * float(np.linalg.norm(f.theta)) * alphas
    return {"kappa": np.inf * alphas, "rounds": rounds, "gradients": np.nan * alphas, "error": accuracies}


def _stored(settings: Settings, label: str, columns: Callable[[], dict[str, Any]]) -> Trace:
    description: dict[str, Any] = {
        "figure": "table1",
        "method": label,
        "accuracy": ACCURACY,
        "kappas": KAPPAS[settings.quick],
        "seeds": SEEDS[settings.quick],
        "weights": WEIGHTS,
        "biased_rounds": BIASED_ROUNDS,
        "chain": CHAINS[settings.quick],
        "flat": FLAT,
        "alpha": ALPHA,
        "local": described(ACCURATE["stop"]),
    }
    if label in ROWS:
        description["algorithm"] = described(ROWS[label].build(planes(10.0)))
    return settings.stored_columns(f"the row {label!r}", description, columns)


def _methods() -> dict[str, str]:
    """Return the method of every row that is drawn."""
    return {label: row.look for label, row in ROWS.items() if row.look}


def _fit(label: str, trace: Trace) -> Order | None:
    if label == CHAIN:
        return estimate_order(trace["error"], start=1)
    return exponent(trace["rounds"]) if np.isfinite(trace["rounds"]).all() else None


def _status(label: str, trace: Trace) -> str:
    if label == CHAIN:
        return "error after n rounds: like n^-p"
    if label == CONVEX:
        return "rounds to |grad E| <= eps: like eps^-p, and a logarithm"
    if np.isfinite(trace["rounds"]).all():
        return "reached"
    ends = trace["error"][np.isfinite(trace["error"])]
    limits = f"{ends[0]:.1e}" if len(ends) == 1 else f"{ends[0]:.1e} to {ends[-1]:.1e}"
    if ROWS[label].count not in (closed_form, ends_somewhere):
        return f"not reached: {limits}"
    how = "closed form" if ROWS[label].count is closed_form else "measured"
    return f"biased: stops at {limits} ({how})"
