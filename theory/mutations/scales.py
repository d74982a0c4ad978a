"""Wrong variants of methods on clients of unequal weight, with one scale for each client, under sampling."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from dualopt.arrays.tree import tree_map
from dualopt.arrays.xp import Array
from dualopt.methods import FedDR, FedDyn, SampledDualFL
from dualopt.methods.participation import UniformSubset, WeightedSubset
from dualopt.objectives import Quadratic
from dualopt.objectives.local_problem import per_client
from theory._cases import Case
from theory.mutations._edits import OtherMethodError, Variant, change, edit, instead, parameters

__all__ = ["CLAIM_OF", "MUTATIONS", "forgotten", "scales_of"]


def scales_of(oracle: Any) -> Array:
    """Return the scales of the active clients, shape (P,)."""
    return np.array(getattr(oracle.objective, "scales", (1.0,) * oracle.objective.n_clients))


def forgotten(method: Any, right: Any, c: Any, message: Any, oracle: Any, round: Any) -> Any:
    """Upload what makes the mean with weights the plain one."""
    new, upload = right(c, message, oracle, round)
    weights = np.array(oracle.objective.weights or (1.0,) * oracle.objective.n_clients)
    return new, tree_map(lambda x: per_client(np.mean(weights) / weights, x) * x, upload)


# ---- FedDyn ----


def common_weight(method: Any, right: Any, c: Any, message: Any, oracle: Any, round: Any) -> Any:
    """Solve local problems with one weight for the clients of the user."""
    weight = method.alpha / scales_of(oracle)
    theta = oracle.solve(start=message, linear=-c.gradient, weight=weight, center=message).theta
    return c._replace(gradient=c.gradient - method.alpha * (theta - message)), theta


def other_memory(method: Any, right: Any, c: Any, message: Any, oracle: Any, round: Any) -> Any:
    """Remember with one weight for the clients of the user."""
    new, theta = right(c, message, oracle, round)
    weight = per_client(method.alpha / scales_of(oracle), theta)
    return new._replace(gradient=c.gradient - weight * (theta - message)), theta


def drawn_uniformly(case: Case) -> Case:
    return case.but(participation=UniformSubset(size=round(case.fraction * case.n_clients)))


def drawn_by(power: float, case: Case) -> Case:
    """Cohorts with the weights to a power."""
    chance = case.participation
    if not isinstance(chance, WeightedSubset) or chance.weights is None:
        raise OtherMethodError("only cohorts that are drawn with weights have other ones.")
    return case.but(participation=replace(chance, weights=tuple(a**power for a in chance.weights)))


def of_equal_weight(case: Case) -> Case:
    """Give the clients one weight."""
    if not isinstance(case.objective, Quadratic):
        raise OtherMethodError("only quadratics.")
    f = replace(case.objective, weights=None)
    return case.but(objective=f, theta=f.minimiser(), subgradients=f.gradient(f.minimiser()))


def times_alpha(factor: float, case: Case) -> Case:
    return case.but(algorithm=replace(case.algorithm, alpha=factor * case.algorithm.alpha))


# ---- FedDR ----


def common_step(method: Any, right: Any, c: Any, message: Any, oracle: Any, round: Any) -> Any:
    """Take proximal steps of one length for the clients of the user."""
    y = c.y + method.relaxation * (message - c.x)
    x = oracle.solve(start=c.x, weight=1.0 / (method.eta * scales_of(oracle)), center=y).theta
    reflected = 2.0 * x - y
    return c._replace(y=y, x=x, reflected=reflected), reflected - c.reflected


# ---- SampledDualFL ----


def common_parameter(method: Any, right: Any, c: Any, message: Any, oracle: Any, round: Any) -> Any:
    """Take dual steps with one nu for the clients of the user."""
    new, theta = right(c, message, oracle, round)
    nu = per_client(method.nu / scales_of(oracle), theta)
    return new._replace(z=c.z + nu / message.t * (message.w - theta)), theta


CLAIM_OF = {"FedDyn": "weighted_feddyn", "FedDR": "sampled_feddr", "SampledDualFL": "weighted_dualfl"}
A, B, F = CLAIM_OF.values()
MEANS = "two_means"
MUTATIONS: dict[str, Variant] = {
    "FedDyn: weights forgotten": instead(FedDyn, "local", forgotten, f"{A} {MEANS}"),
    "FedDyn: h from the draw": edit(
        FedDyn, "server", "means.mean - server", "means.draw - server", caught=f"{A} {MEANS}"
    ),
    "FedDyn: x from the mean": edit(
        FedDyn, "server", "x, moved = means.draw", "x, moved = means.mean", caught=f"{A} {MEANS}"
    ),
    "FedDyn: P/N in h": edit(FedDyn, "server", "round.fraction", "round.turnout", caught=f"{A} {MEANS}"),
    "FedDyn: one weight in the local problems": instead(FedDyn, "local", common_weight, A),
    "FedDyn: one weight in the memories": instead(FedDyn, "local", other_memory, A),
    "FedDyn: uniform cohorts": change(drawn_uniformly, A),
    "FedDyn: cohorts by the squares": change(partial(drawn_by, 2.0), A),
    "FedDyn: cohorts by the inverses": change(partial(drawn_by, -1.0), A),
    "FedDyn: half the weights": change(partial(times_alpha, 0.5), A),
    "FedDR: half of eta in the map of the regulariser": edit(
        *(FedDR, "server", "prox(xtilde, self.eta)", "prox(xtilde, 0.5 * self.eta)"), caught=B
    ),
    "FedDR: weights forgotten": instead(FedDR, "local", forgotten, B),
    "FedDR: one step in the local problems": instead(FedDR, "local", common_step, B),
    "FedDR: 1/P for 1/N": edit(FedDR, "server", "round.fraction * mean", "mean", caught=B),
    "FedDR: P/N for the weight of the cohort": edit(FedDR, "server", "round.fraction", "round.turnout", caught=B),
    "SampledDualFL: weights forgotten": instead(*(SampledDualFL, "local", forgotten, f"{F} {MEANS}")),
    "SampledDualFL: v from the draw": edit(
        *(SampledDualFL, "server", "(means.mean - server.w)", "(means.draw - server.w)"), caught=f"{F} {MEANS}"
    ),
    "SampledDualFL: theta from the mean": edit(
        *(SampledDualFL, "server", "else means.draw", "else means.mean"), caught=f"{F} {MEANS}"
    ),
    "SampledDualFL: P/N in v": edit(
        *(SampledDualFL, "server", "round.fraction", "round.turnout"), caught=f"{F} {MEANS}"
    ),
    "SampledDualFL: t for P/N": parameters(SampledDualFL, lambda method, case: {"least": case.fraction}, F),
    "SampledDualFL: one nu in the dual steps": instead(SampledDualFL, "local", common_parameter, F),
    "SampledDualFL: uniform cohorts": change(drawn_uniformly, F),
    "SampledDualFL: cohorts by the inverses": change(partial(drawn_by, -1.0), F),
    "uniform cohorts, equal weights": change(of_equal_weight, "uniform_cohorts uniform_sampled_dualfl"),
}
