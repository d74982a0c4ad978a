"""FedDyn is a splitting method: Point-SAGA with one active client, Douglas-Rachford with all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.engine.rounds import iterate
from dualopt.lab.claims import Inequality, claim
from dualopt.methods import FedDyn
from dualopt.methods.participation import Full, Participation, UniformSubset
from dualopt.objectives import Quadratic
from dualopt.solvers import Exact
from theory._cases import Case
from theory._claims import ExpectedVerdict, deviation
from theory._problems import lopsided, one_concave_client, one_flat_client, quadratic
from theory.identities._runs import EXACT, ROUNDS, starting_point


@dataclass(frozen=True, kw_only=True, eq=False)
class Splitting:
    """FedDyn and a method of splitting on one problem.

    Attributes
    ----------
    name : str
        For tables.
    objective : Quadratic
        The clients, whose proximal maps are linear systems.
    gamma : float
        Step of the proximal maps.
    participation : Participation
        Who takes part.
    """

    name: str
    objective: Quadratic
    gamma: float
    participation: Participation

    def prox(self, j: int, v: Array) -> Array:
        r"""Return the proximal map of :math:`\gamma f_j`."""
        f, gamma = self.objective, self.gamma
        return np.linalg.solve(np.eye(len(v)) + gamma * f.A[j], v + gamma * f.b[j])

    def chosen(self) -> Iterator[tuple[int, ...]]:
        """Yield who is active."""
        return (round.clients for round in islice(self.participation.rounds(self.objective.n_clients, 0), ROUNDS))


def _splittings(participation: Participation) -> Iterator[ExpectedVerdict]:
    for f in (quadratic(), lopsided(), one_flat_client(), one_concave_client()):
        for gamma in (0.01, 0.25):
            yield ExpectedVerdict(splitting(f, gamma, participation))


def splitting(f: Case, gamma: float, participation: Participation) -> Splitting:
    """Return the two with one step."""
    return Splitting(name=f"{f.name}, gamma {gamma:g}", objective=f.objective, gamma=gamma, participation=participation)


def _feddyn(case: Splitting) -> Iterator[tuple[Array, Array]]:
    """Yield the model of the server and the mean of the active clients' models."""
    method = FedDyn(alpha=1.0 / case.gamma, solver=Exact())
    start = starting_point(case.objective)
    run = iterate(method, case.objective, theta0=start, participation=case.participation)
    for s in islice(run, ROUNDS):
        yield s.server.theta, s.server.theta + case.gamma * s.server.h


def point_saga(case: Splitting) -> Iterator[Array]:
    r"""Yield the points of Point-SAGA.

    .. math:: z = x + \gamma\bigl(g_j - \tfrac1N\textstyle\sum_i g_i\bigr), \quad x^+ = \mathrm{prox}_{\gamma f_j}(z),
              \quad g_j^+ = (z - x^+)/\gamma
    """
    x, g = starting_point(case.objective), np.zeros_like(case.objective.b)
    for (j,) in case.chosen():
        z = x + case.gamma * (g[j] - np.mean(g, axis=0))
        x = case.prox(j, z)
        g[j] = (z - x) / case.gamma
        yield x


def douglas_rachford(case: Splitting) -> Iterator[Array]:
    r"""Yield the points of Douglas-Rachford splitting for :math:`\sum_j f_j(x_j)` and the consensus of the x_j.

    .. math:: x_j = \mathrm{prox}_{\gamma f_j}(s_j), \quad c = \tfrac1N\textstyle\sum_j(2x_j - s_j), \quad
              s_j^+ = s_j + c - x_j
    """
    s = np.tile(starting_point(case.objective), (case.objective.n_clients, 1))
    for everybody in case.chosen():
        x = np.stack([case.prox(j, s[j]) for j in everybody])
        c = np.mean(2.0 * x - s, axis=0)
        s = s + c - x
        yield c


def identity_point_saga_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Short and long steps, convex clients and others."""
    yield from _splittings(UniformSubset(size=1))


@claim(
    source="Defazio 2016 (recalled), and the FedDyn paper",
    statement=r"One active client, exact local solutions, $\gamma = 1/\alpha$, memories that start at zero: the models"
    r" of the active clients in FedDyn are the points of Point-SAGA,"
    r" $x^+ = \mathrm{prox}_{\gamma f_j}(x + \gamma(g_j - \frac1N\sum_i g_i))$.",
    cases=identity_point_saga_cases,
)
def identity_point_saga(case: Splitting) -> Iterator[Inequality]:
    """FedDyn with one active client is Point-SAGA.

    Compare the model of the active client with the point.
    """
    for n, (x, (_, mean)) in enumerate(zip(point_saga(case), _feddyn(case), strict=True), start=1):
        yield Inequality(n, deviation(x, mean), EXACT, "points")


def identity_douglas_rachford_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Short and long steps, convex clients and others."""
    yield from _splittings(Full())


@claim(
    source="Lions and Mercier 1979 (recalled), and the FedDyn paper",
    statement=r"All clients active, exact local solutions, $\gamma = 1/\alpha$, memories that start at zero: the models"
    r" of FedDyn's server are the $c = \frac1N\sum_j(2x_j - s_j)$ of Douglas-Rachford splitting, $x_j ="
    r" \mathrm{prox}_{\gamma f_j}(s_j)$, $s_j^+ = s_j + c - x_j$, from $s_j = \theta^0$.",
    cases=identity_douglas_rachford_cases,
)
def identity_douglas_rachford(case: Splitting) -> Iterator[Inequality]:
    """FedDyn with all clients is Douglas-Rachford splitting.

    Compare the model with the point at the consensus.
    """
    for n, (c, (theta, _)) in enumerate(zip(douglas_rachford(case), _feddyn(case), strict=True), start=1):
        yield Inequality(n, deviation(c, theta), EXACT, "points")
