"""Wrong variants of methods with one scale for each client, under sampling."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from dualopt.methods import FedDR, FedDyn, SampledDualFL
from dualopt.methods._scales import cohort_weights, multiplied, of_clients, weights
from dualopt.methods.feddyn import Upload
from dualopt.methods.participation import UniformSubset, WeightedSubset
from theory._cases import Case
from theory.mutations._edits import Variant, becomes, change

__all__ = ["CLAIM_OF", "MUTATIONS"]


# ---- FedDyn ----


class MeanOfSteps(FedDyn):
    """``theta = x - mean(gamma_j) mean u``: the arithmetic mean of the steps for the harmonic one."""

    def server(self, server, mean, round):
        new, _ = super().server(server, mean, round)
        scales = np.array(self.scales or ())
        theta = new.theta + new.h / (self.alpha * np.mean(scales)) - new.h * np.mean(1.0 / scales) / self.alpha
        return new._replace(theta=theta), theta


class PlainMemory(FedDyn):
    """``h`` from the plain sum of differences."""

    def local(self, c, message, oracle, round):
        new, upload = super().local(c, message, oracle, round)
        return new, upload._replace(moved=oracle.solution.theta - message)  # pyright: ignore[reportOptionalMemberAccess]


class CommonWeight(FedDyn):
    """One weight in the local problems, the clients' own ones in the memories and at the server."""

    def local(self, c, message, oracle, round):
        theta = oracle.solve(start=message, linear=-c.gradient, weight=self.alpha, center=message).theta
        scales = of_clients(self.scales, round, message)
        weights = cohort_weights(self.scales or (), self.inclusion, round, message)
        gradient = c.gradient - multiplied(self.alpha * scales, theta - message)
        return c._replace(gradient=gradient), Upload(multiplied(weights, theta), multiplied(scales, theta - message))


class WeightedMean(FedDyn):
    """The mean of the active models with the weights ``alpha_j``, as if all clients were active."""

    def local(self, c, message, oracle, round):
        everybody = replace(self, inclusion=(1.0,) * round.n_clients)
        return FedDyn.local(everybody, c, message, oracle, round)


class OtherMemory(FedDyn):
    """``u_j`` with the common weight."""

    def local(self, c, message, oracle, round):
        new, upload = super().local(c, message, oracle, round)
        theta = oracle.solution.theta  # pyright: ignore[reportOptionalMemberAccess]
        return new._replace(gradient=c.gradient - self.alpha * (theta - message)), upload


def drawn_uniformly(case: Case) -> Case:
    return case.but(participation=UniformSubset(size=round(case.fraction * case.n_clients)))


def drawn_by(power: float, case: Case) -> Case:
    """Cohorts with the weights to a power."""
    chance = case.participation
    if not isinstance(chance, WeightedSubset) or chance.weights is None:
        raise TypeError("only weighted cohorts have weights.")
    return case.but(participation=replace(chance, weights=tuple(a**power for a in chance.weights)))


def times_alpha(factor: float, case: Case) -> Case:
    return case.but(algorithm=replace(case.algorithm, alpha=factor * case.algorithm.alpha))


# ---- FedDR ----


class CommonProximalStep(FedDR):
    """``eta`` in the proximal map of the regulariser."""

    def server(self, server, mean, round):
        xtilde = server.mean + round.fraction * mean
        theta = self.regulariser.prox(xtilde, self.eta)
        return server._replace(theta=theta, mean=xtilde), theta


class PlainReflections(FedDR):
    """The plain mean of changes whose weights are unequal."""

    def local(self, c, message, oracle, round):
        new, _ = super().local(c, message, oracle, round)
        return new, new.reflected - c.reflected


class CommonStep(FedDR):
    """``eta`` in the local problems."""

    def local(self, c, message, oracle, round):
        y = c.y + self.relaxation * (message - c.x)
        x = oracle.solve(start=c.x, weight=1.0 / self.eta, center=y).theta
        change = 2.0 * x - y - c.reflected
        weighed = weights(tuple(1.0 / s for s in self.scales or (1.0,) * round.n_clients), round, change)
        return c._replace(y=y, x=x, reflected=2.0 * x - y), weighed * change


class ActiveOnly(FedDR):
    """The mean change of the active clients for that of all."""

    def server(self, server, mean, round):
        return super().server(server, mean / round.fraction, round)


# ---- SampledDualFL ----


class PlainDualSum(SampledDualFL):
    """``v`` from the plain sum of differences."""

    def local(self, c, message, oracle, round):
        new, upload = super().local(c, message, oracle, round)
        return new, upload._replace(moved=new.theta - message.w)


class ExpectedFraction(SampledDualFL):
    """Steps t for P/N, not for the least probability."""

    def least(self, n_clients):
        return self.fraction or 1.0


class CommonParameter(SampledDualFL):
    """One nu in the dual steps, the clients' own ones in the local problems."""

    def local(self, c, message, oracle, round):
        new, upload = super().local(c, message, oracle, round)
        return new._replace(z=c.z + self.nu / message.t * (message.w - new.theta)), upload


class DualWeightedMean(SampledDualFL):
    """The mean of the active models with the weights ``nu_j``, as if all clients were active."""

    def local(self, c, message, oracle, round):
        everybody = replace(self, inclusion=(1.0,) * round.n_clients)
        return SampledDualFL.local(everybody, c, message, oracle, round)


CLAIM_OF = {"FedDyn": "weighted_feddyn", "FedDR": "sampled_feddr", "SampledDualFL": "weighted_dualfl"}
MUTATIONS: dict[str, Variant] = {
    "FedDyn: the mean of the steps": becomes(FedDyn, lambda: MeanOfSteps, CLAIM_OF["FedDyn"]),
    "FedDyn: the plain sum in h": becomes(FedDyn, lambda: PlainMemory, CLAIM_OF["FedDyn"]),
    "FedDyn: one weight in the local problems": becomes(FedDyn, lambda: CommonWeight, CLAIM_OF["FedDyn"]),
    "FedDyn: weights as if all were active": becomes(FedDyn, lambda: WeightedMean, CLAIM_OF["FedDyn"]),
    "FedDyn: one weight in the memories": becomes(FedDyn, lambda: OtherMemory, CLAIM_OF["FedDyn"]),
    "FedDyn: uniform cohorts": change(drawn_uniformly, CLAIM_OF["FedDyn"]),
    "FedDyn: cohorts by the squares": change(partial(drawn_by, 2.0), CLAIM_OF["FedDyn"]),
    "FedDyn: cohorts by the inverses": change(partial(drawn_by, -1.0), CLAIM_OF["FedDyn"]),
    "FedDyn: half the weights": change(partial(times_alpha, 0.5), CLAIM_OF["FedDyn"]),
    "FedDR: eta in the map of the regulariser": becomes(FedDR, lambda: CommonProximalStep, CLAIM_OF["FedDR"]),
    "FedDR: weights forgotten": becomes(FedDR, lambda: PlainReflections, CLAIM_OF["FedDR"]),
    "FedDR: one step in the local problems": becomes(FedDR, lambda: CommonStep, CLAIM_OF["FedDR"]),
    "FedDR: 1/P for 1/N": becomes(FedDR, lambda: ActiveOnly, CLAIM_OF["FedDR"]),
    "SampledDualFL: the plain sum in v": becomes(SampledDualFL, lambda: PlainDualSum, CLAIM_OF["SampledDualFL"]),
    "SampledDualFL: t for P/N": becomes(SampledDualFL, lambda: ExpectedFraction, CLAIM_OF["SampledDualFL"]),
    "SampledDualFL: one nu in the dual steps": becomes(
        SampledDualFL, lambda: CommonParameter, CLAIM_OF["SampledDualFL"]
    ),
    "SampledDualFL: weights as if all were active": becomes(
        SampledDualFL, lambda: DualWeightedMean, CLAIM_OF["SampledDualFL"]
    ),
    "SampledDualFL: uniform cohorts": change(drawn_uniformly, CLAIM_OF["SampledDualFL"]),
    "SampledDualFL: cohorts by the inverses": change(partial(drawn_by, -1.0), CLAIM_OF["SampledDualFL"]),
}
