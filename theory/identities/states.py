"""What clients and server store: duals and their mean in A-FedPD, memories of unequal clients in FedDyn."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.engine.rounds import iterate
from dualopt.lab.claims import Inequality, claim
from dualopt.losses import Squared
from dualopt.methods import AFedPD, FedDyn
from dualopt.methods.participation import Bernoulli, Participation, UniformSubset
from dualopt.objectives import linear_model
from dualopt.objectives.scales import reweighted
from dualopt.solvers import Exact
from theory._cases import Case, accurately
from theory._claims import ExpectedVerdict, deviation
from theory._problems import logistic, one_concave_client, quadratic
from theory.identities._runs import EXACT, NEWTON, ROUNDS, Runs, agree, runs, starting_point
from theory.identities._virtual_updates import VirtualUpdates

# A-FedPD: the mean of the duals, and duals less their mean.


def a_fedpd(f: Case, rho: float, active: int) -> Case:
    """Return A-FedPD with ``active`` clients."""
    method, start = AFedPD(rho=rho, **accurately(f.objective)), starting_point(f.objective)
    return f.case(method, ROUNDS, f"{active} active", theta0=start, participation=UniformSubset(size=active))


def identity_mean_dual_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """One active client, some, and all of them."""
    for active in (1, 2, 3):
        yield ExpectedVerdict(a_fedpd(quadratic(), 60.0, active))
        yield ExpectedVerdict(a_fedpd(one_concave_client(), 12.0, active))
    yield ExpectedVerdict(a_fedpd(logistic(), 1.0, 2))


@claim(
    source="Sun, Shen and Tao, Section 3.3 and Appendix B.3.2",
    statement=r"$\bar\lambda^{t+1} = \bar\lambda^t + \rho(\bar\theta^{t+1} - \theta^t)$ in A-FedPD, exact or not,"
    r" whoever is active (checked to 1e-12 of the largest dual).",
    cases=identity_mean_dual_cases,
)
def identity_mean_dual(case: Case) -> Iterator[Inequality]:
    """A-FedPD moves the mean dual as if every client had ended at the mean of the active ones.

    Compare both sides; the mean of the active models is taken from the solutions themselves.
    """
    assert case.theta0 is not None
    theta, mean = case.theta0, np.zeros_like(case.theta0)
    for n, s in enumerate(case.snapshots(), start=1):
        assert s.solution is not None
        moved = mean + case.algorithm.rho * (np.mean(s.solution.theta, axis=0) - theta)
        duals = s.clients.dual + s.server.dual
        now, scale = np.mean(duals, axis=0), float(np.max(np.abs(duals)))
        yield Inequality(n, deviation(now, moved, scale=scale), EXACT, "mean of the duals")
        yield Inequality(n, deviation(now, s.server.dual, scale=scale), EXACT, "what the server keeps")
        theta, mean = s.server.theta, now


def virtually(f: Case, rho: float, participation: Participation, tolerance: float) -> Runs:
    """Return A-FedPD, and the box of its paper with virtual updates of the inactive clients."""
    exactly = accurately(f.objective)
    methods = {"A-FedPD": AFedPD(rho=rho, **exactly), "virtual updates": VirtualUpdates(rho=rho, **exactly)}
    return runs(f, methods, f"{participation}, rho {rho:g}", participation=participation, tolerance=tolerance)


def identity_virtual_updates_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Subsets of fixed and of random size, which may be empty."""
    f = quadratic(6)
    for participation in (UniformSubset(size=2), UniformSubset(size=5), Bernoulli(probability=0.4)):
        yield ExpectedVerdict(virtually(f, 40.0, participation, EXACT))
    yield ExpectedVerdict(virtually(one_concave_client(), 12.0, UniformSubset(size=3), EXACT))
    yield ExpectedVerdict(virtually(logistic(), 1.0, UniformSubset(size=2), NEWTON))


@claim(
    source="Sun, Shen and Tao, Algorithm 1 and the limitation of storing duals",
    statement=r"Clients that keep $\lambda_j - \bar\lambda$ and are told $\bar\lambda$ when they are active have the"
    r" same $\theta^n$ and $\lambda_j^n$ as those whose duals are updated virtually in every round. In a round,"
    r" $P(2 - P/N)$ clients are told two vectors instead of $N - P + P^2/N$, on average: fewer exactly if $P < N/2$.",
    cases=identity_virtual_updates_cases,
)
def identity_virtual_updates(case: Runs) -> Iterator[Inequality]:
    """A-FedPD without a store of duals on the server, and without messages to inactive clients.

    Compare the models, the duals and, where less than half take part, the numbers sent in all rounds together.
    """
    yield from agree(case)
    own, box = (list(case.snapshots(name)) for name in case.methods)
    for n, (s, b) in enumerate(zip(own, box, strict=True), start=1):
        yield Inequality(n, deviation(s.clients.dual + s.server.dual, b.clients.dual), case.tolerance, "duals")
    if sum(s.round.fraction for s in own) < 0.5 * case.rounds:
        less, more = (float(sum(s.floats_up + s.floats_down for s in run)) for run in (own, box))
        yield Inequality(case.rounds, less, more, "floats sent")


# FedDyn: clients of unequal size.

SIZES = (3, 5, 12)


class Unequal(NamedTuple):
    """Least squares on clients of unequal size."""

    name: str
    alpha: float
    participation: UniformSubset
    rounds: int

    def rows(self) -> tuple[Array, Array, list[list[int]]]:
        """Return features, labels and the rows of each client."""
        rng = np.random.default_rng(2)
        X, y = rng.standard_normal((sum(SIZES), 3)), rng.standard_normal(sum(SIZES))
        return X, y, [part.tolist() for part in np.split(np.arange(sum(SIZES)), np.cumsum(SIZES)[:-1])]


def authors(case: Unequal) -> Iterator[Array]:
    r"""Yield the cloud models of the authors' update.

    The local loss is :math:`\frac1{n_j}\sum_i \phi_i(\theta) + \alpha_j\bigl(\frac12|\theta|^2 +
    \langle\theta, p_j - \text{cloud}\rangle\bigr)` with :math:`\alpha_j = \alpha/w_j`, :math:`w_j = Nn_j/\sum n`; then
    :math:`p_j \mathrel{+}= \theta_j - \text{cloud}`, cloud = mean of the active :math:`\theta_j` + mean of all p.
    """
    X, y, parts = case.rows()
    local = np.zeros((len(parts), X.shape[1]))
    cloud = np.zeros(X.shape[1])
    for round in islice(case.participation.rounds(len(parts), seed=0), case.rounds):
        models = []
        for j in round.clients:
            rows, n = parts[j], len(parts[j])
            alpha = case.alpha / (len(parts) * n / len(y))
            matrix = X[rows].T @ X[rows] / n + alpha * np.eye(X.shape[1])
            model = np.linalg.solve(matrix, X[rows].T @ y[rows] / n - alpha * (local[j] - cloud))
            local[j] += model - cloud
            models.append(model)
        cloud = np.mean(models, axis=0) + np.mean(local, axis=0)
        yield cloud


def identity_feddyn_rows_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """One client active, two, and all three."""
    for size in (1, 2, 3):
        yield ExpectedVerdict(Unequal(f"{size} of 3 clients active", 4.0, UniformSubset(size=size), 20))


@claim(
    source="FedDyn, the authors' published code for unbalanced data",
    statement=r"With $w_j = Nn_j/\sum_i n_i$: FedDyn on $w_j f_j$ (rows weigh alike) has the cloud models of the"
    r" authors' update with $\alpha_j = \alpha/w_j$ on the clients' own means.",
    cases=identity_feddyn_rows_cases,
)
def identity_feddyn_rows(case: Unequal) -> Iterator[Inequality]:
    r"""FedDyn for clients of unequal size: weights inside the losses, or :math:`\alpha/w_j` as in the authors' code.

    Compare with FedDyn on losses that carry their weights.
    """
    X, y, parts = case.rows()
    means = linear_model(X, y, loss=Squared(), mu=0.0, clients=parts, intercept=False, client_weights="rows")
    f = reweighted(means, [1.0 / len(part) for part in parts])  # the clients w_j f_j, of equal weight
    run = iterate(FedDyn(alpha=case.alpha, solver=Exact()), f, participation=case.participation)
    for n, (cloud, s) in enumerate(zip(authors(case), run, strict=False), start=1):
        yield Inequality(n, deviation(cloud, s.server.theta), EXACT, "models")
