r"""Problems with known minimisers on which claimed rates are put to the test.

A linear rate is tested where ``kappa`` is finite, at several values of it, so that ``1 - 1/kappa`` and
``1 - 1/sqrt(kappa)`` are told apart: on chains, on which no method is faster than
:math:`((\sqrt\kappa-1)/(\sqrt\kappa+1))^{2n}`, on quadratics whose clients are unequal, and on logistic regression with
clients that are alike, sorted by label, and of unequal sizes and scales. The error is :math:`|\theta^n - \theta^*|^2`.

A sublinear rate is tested where it can fail: a strongly convex problem would make it linear. On the chain
with kinks, which is not smooth, no method is faster than :math:`1/n^2` in :math:`|\theta^n - \theta^*|^2`. Flat
quadratics, with an eigenvalue 0, are smooth and not strongly convex. Their other eigenvalues are spread evenly over
eight decades, so that for every ``n`` the part of ``E`` that gradient descent has not reached is about :math:`1/n`, and
for accelerated methods :math:`1/n^2`; the error is :math:`E(\theta^n) - E^*`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dualopt.lab.verification import chains
from dualopt.losses import Logistic
from dualopt.objectives import LinearModel, Objective, Quadratic, linear_model
from dualopt.runs.reference import cvxpy, newton
from dualopt.spec.discover import unknown_name

__all__ = ["CLIENTS", "REFERENCES", "Instance", "flat", "linear_instances", "sublinear_instances"]

KAPPAS = (16.0, 64.0, 256.0)
PAIRS = 2  # of clients on chains: four clients everywhere
CLIENTS = 4
REFERENCES: dict[str, Callable[[Objective], Any]] = {"newton": newton, "cvxpy": cvxpy}


@dataclass(frozen=True, kw_only=True, eq=False)
class Instance:
    """A problem with its minimiser.

    Attributes
    ----------
    name : str
        For tables.
    objective : Objective
        The clients.
    theta : array, shape ``shape``
        The minimiser.
    measure : str
        What the error is: ``distance``, in squares, or ``energy``.
    is_chain : bool
        Whether it is one of the chains that differ in ``kappa`` alone.
    resolution : float
        Errors below this say nothing, because the minimiser is not known better; 0 where it is known to rounding.
    """

    name: str
    objective: Any
    theta: np.ndarray
    measure: str = "distance"
    is_chain: bool = False
    resolution: float = 0.0

    def error(self, theta: np.ndarray) -> float:
        r"""Return :math:`|\theta - \theta^*|^2`, or :math:`E(\theta) - E^*`.

        >>> flat = next(instance for instance in sublinear_instances() if instance.measure == "energy")
        >>> flat.error(flat.theta)
        0.0
        """
        difference = theta - self.theta
        if self.measure == "distance":
            return float(np.sum(difference**2))
        if isinstance(self.objective, Quadratic):  # about its minimiser nothing cancels: right down to 1e-300
            return float(0.5 * difference @ (self.objective.mean(self.objective.A) @ difference))
        return max(energy(self.objective, theta) - energy(self.objective, self.theta), 0.0)

    def values(self, fraction: float = 1.0) -> dict[str, float]:
        """Return the numbers that a rate may depend on; ``fraction`` of the clients is active.

        Examples
        --------
        >>> next(linear_instances()).values(0.5)
        {'kappa': 16.0, 'mu': 1.0, 'L': 16.0, 'N': 4.0, 'P': 2.0}
        """
        f = self.objective
        mu, L = float(np.min(f.mu)), float(np.max(f.L))
        kappa = L / mu if mu > 0 else math.inf
        return {"kappa": kappa, "mu": mu, "L": L, "N": float(f.n_clients), "P": fraction * f.n_clients}


def energy(objective: Objective, theta: np.ndarray) -> float:
    """Return ``E(theta)``, the regulariser included."""
    return float(objective.mean(objective.value(theta))) + float(objective.regulariser.value(theta))


def linear_instances(reference: str = "newton") -> Iterator[Instance]:
    """Yield smooth and strongly convex problems.

    Parameters
    ----------
    reference : str, default "newton"
        What solves logistic regression: ``newton`` or ``cvxpy``.

    Raises
    ------
    ValueError
        If there is no such reference.

    Examples
    --------
    >>> [instance.name for instance in linear_instances()][:2]
    ['chain, kappa = 16', 'chain, kappa = 64']
    """
    if reference not in REFERENCES:
        raise unknown_name("reference", reference, REFERENCES)
    for kappa in KAPPAS:
        f, theta = chains.geometric(kappa, 60, pairs=PAIRS)
        yield Instance(name=f"chain, kappa = {kappa:g}", objective=f, theta=theta, is_chain=True)
    for name, ends in (
        ("quadratics, clients alike in curvature", [(1.0, 64.0)] * CLIENTS),
        ("lopsided quadratics", [(0.5, 4.0), (1.0, 20.0), (6.0, 12.0), (0.8, 10.0)]),
    ):
        f = _quadratic(ends)
        yield Instance(name=name, objective=f, theta=f.minimiser())
    for name, f in _logistic():
        yield Instance(name=f"logistic regression, {name}", objective=f, theta=REFERENCES[reference](f).theta)


def sublinear_instances() -> Iterator[Instance]:
    """Yield problems that are not smooth, and problems that are not strongly convex.

    Examples
    --------
    >>> [instance.name for instance in sublinear_instances()]
    ['kinked chain', 'flat quadratics, clients alike', 'flat quadratics, lopsided clients']
    """
    f, theta = chains.power(2000, pairs=PAIRS)
    yield Instance(name="kinked chain", objective=f, theta=theta)
    for name, spread in (("clients alike", 0.0), ("lopsided clients", 0.9)):
        f = flat(spread)
        theta = np.append(np.ones(f.shape[0] - 1), 0.0)
        yield Instance(name=f"flat quadratics, {name}", objective=f, theta=theta, measure="energy")


def _quadratic(ends: list[tuple[float, float]], d: int = 6) -> Quadratic:
    """Return quadratics with these least and greatest eigenvalues, attained, in random directions."""
    rng = np.random.default_rng(0)
    A = []
    for low, high in ends:
        q, _ = np.linalg.qr(rng.standard_normal((d, d)))
        matrix = q @ np.diag(np.geomspace(low, high, d)) @ q.T
        A.append(0.5 * (matrix + matrix.T))
    return Quadratic(A=np.stack(A), b=rng.standard_normal((len(ends), d)))


def _logistic() -> Iterator[tuple[str, LinearModel]]:
    """Yield logistic regression on the same rows, dealt out in three ways."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 5))
    y = np.sign(X @ rng.standard_normal(5) + 0.5 * rng.standard_normal(80))
    by_label = np.argsort(y, kind="stable")
    sizes = np.split(np.arange(80), [4, 14, 34])
    scales = np.repeat([0.5, 1.0, 2.0, 1.5], [4, 10, 20, 46])
    yield "clients alike", linear_model(X, y, loss=Logistic(), mu=0.02, clients=CLIENTS)
    yield "by label", linear_model(X[by_label], y[by_label], loss=Logistic(), mu=0.02, clients=CLIENTS)
    lopsided = [part.tolist() for part in sizes]
    yield "lopsided clients", linear_model(X * scales[:, None], y, loss=Logistic(), mu=0.05, clients=lopsided)


def flat(
    spread: float, *, pull: float = 1.0, angles: tuple[float, float] = (math.pi / 2.0, 1.0), d: int = 48
) -> Quadratic:
    """Return diagonal quadratics with one eigenvalue 0; clients share the other eigenvalues evenly, or not.

    Parameters
    ----------
    spread : float
        By what share of the mean the curvatures of clients differ, less than 1.
    pull : float
        Size of the linear terms, whose mean is 0.
    angles : tuple of float
        The difference follows a wave, which turns by so much from client to client, and from coordinate to coordinate.
    d : int
        Number of eigenvalues that are not 0.
    """
    curvatures = np.append(np.geomspace(1.0, 1e-8, d), 0.0)
    turns = np.arange(CLIENTS)[:, None] * angles[0] + np.arange(d + 1.0) * angles[1]
    shares = 1.0 + spread * np.sin(turns)
    diagonals = shares / shares.mean(axis=0) * curvatures
    pulls = np.random.default_rng(0).standard_normal((CLIENTS, d + 1)) * curvatures * pull
    A = np.stack([np.diag(diagonal) for diagonal in diagonals])
    return Quadratic(A=A, b=diagonals * np.append(np.ones(d), 0.0) + pulls - pulls.mean(axis=0))
