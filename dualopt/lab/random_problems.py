"""Random problems of prescribed curvature, heterogeneity and size."""

from __future__ import annotations

import math

import numpy as np

from dualopt.arrays._checks import require
from dualopt.losses import Loss
from dualopt.objectives import LinearModel, Quadratic, linear_model

__all__ = ["random_linear_model", "random_quadratic"]


def random_quadratic(
    *, seed: int, n_clients: int, dimension: int, mu: float, L: float, heterogeneity: float, unequal: bool = False
) -> Quadratic:
    r"""Build quadratics with prescribed curvature and heterogeneity, and an optimum of norm 1 and value 1.

    Every :math:`A_j` has random eigenvectors and eigenvalues in ``[mu, L]``. Both ends are attained, by every client
    or, if ``unequal``, ``mu`` by the first and ``L`` by the last alone: on clients that are alike a method or a bound
    that takes the greatest :math:`\mu_j` for the least, or for the mean, passes. Then the first client may be flat or
    concave, too: for :math:`\mu \le 0` the others are so convex that :math:`\sum_j \mu_j > 0`. For a random
    :math:`|\theta^*| = 1` and random :math:`\delta_j` with :math:`\sum_j \delta_j = 0` and
    :math:`\frac1N \sum_j |\delta_j|^2 = \mathrm{heterogeneity}^2`,

    .. math:: f_j(\theta) = 1 + \langle \delta_j, \theta - \theta^* \rangle
              + \tfrac12 (\theta - \theta^*)^\top A_j (\theta - \theta^*),

    so that :math:`\nabla f_j(\theta^*) = \delta_j` and :math:`E^* = 1`. All of this up to rounding.

    Raises
    ------
    ValueError
        If an argument is out of range; ``mu < L`` needs two dimensions, heterogeneity two clients, and ``mu`` may be
        negative, above ``-L/4``, only for two unequal clients or more.

    Examples
    --------
    >>> f = random_quadratic(seed=0, n_clients=3, dimension=4, mu=1.0, L=50.0, heterogeneity=2.0)
    >>> theta = f.minimiser()
    >>> round(float(np.sqrt(np.mean(np.sum(f.gradient(theta) ** 2, axis=-1)))), 9)
    2.0
    >>> round(float(np.mean(f.value(theta))), 9)
    1.0
    >>> f = random_quadratic(seed=0, n_clients=3, dimension=4, mu=-1.0, L=50.0, heterogeneity=2.0, unequal=True)
    >>> f.mu.round(1).tolist(), f.L.round(1).tolist()
    ([-1.0, 1.5, 1.2], [30.7, 19.4, 50.0])
    """
    require(n_clients >= 1, "n_clients must be at least 1", n_clients)
    if unequal and n_clients > 1:
        require(-L / 4.0 < mu < math.inf, f"mu must be finite and above -L/4 = {-L / 4.0}", mu)
    else:
        require(0 <= mu < math.inf, "mu must be finite and at least 0", mu)
    require(max(mu, 1e-300) <= L < math.inf, f"L must be positive, finite and at least mu = {mu}", L)
    least = 1 if mu == L else 2
    require(dimension >= least, f"dimension must be at least {least} for mu = {mu} and L = {L}", dimension)
    require(0 <= heterogeneity < math.inf, "heterogeneity must be finite and at least 0", heterogeneity)
    require(n_clients > 1 or heterogeneity == 0, "heterogeneity must be 0 for a single client", heterogeneity)
    rng = np.random.default_rng(seed)
    vectors = np.linalg.qr(rng.standard_normal((n_clients, dimension, dimension)))[0]
    lowest, highest = np.full((n_clients, 1), mu), np.full((n_clients, 1), L)
    inner = rng.uniform(mu, L, (n_clients, dimension))
    if unequal and n_clients > 1:
        lowest, highest = _unequal_ends(rng, n_clients, mu, L)
        inner = lowest + (highest - lowest) * rng.uniform(0.0, 1.0, (n_clients, dimension))
    eigenvalues = np.concatenate([lowest, inner[:, 2:], highest], axis=1)
    A = (vectors * eigenvalues[:, None, -dimension:]) @ vectors.mT
    A = 0.5 * (A + A.mT)
    theta = rng.standard_normal(dimension)
    theta = theta / np.linalg.norm(theta)
    delta = rng.standard_normal((n_clients, dimension))
    delta = delta - delta.mean(axis=0)
    if heterogeneity > 0:
        delta = delta * (heterogeneity * math.sqrt(n_clients) / np.linalg.norm(delta))
    else:
        delta = np.zeros_like(delta)
    b = A @ theta - delta
    return Quadratic(A=A, b=b, c=1.0 + 0.5 * (b - delta) @ theta)


def _unequal_ends(rng: np.random.Generator, n_clients: int, mu: float, L: float) -> tuple[np.ndarray, np.ndarray]:
    """Draw least and greatest eigenvalues, each (N, 1): ``mu`` of the first client and ``L`` of the last alone."""
    # the others are convex enough for a positive sum: each has at least twice what is missing, shared among them
    floor = max(mu, 1e-4 * L, -2.0 * mu / (n_clients - 1))
    lowest = floor * (L / floor) ** rng.uniform(0.0, 0.5, (n_clients, 1))
    lowest[0] = mu
    highest = lowest + (L - lowest) * rng.uniform(0.1, 1.0, (n_clients, 1))
    highest[-1] = L
    return lowest, highest


def random_linear_model(*, seed: int, loss: Loss, n_clients: int, rows: int, features: int, mu: float) -> LinearModel:
    """Build a linear model with an intercept on rows that clients of random sizes hold.

    Features are Gaussian around a mean of each client's own, labels follow a random linear model with noise, in the
    form that the loss takes. Every client has at least one of the ``rows``; their shares are cut at random.

    Raises
    ------
    ValueError
        If an argument is out of range; there are at least as many rows as clients.

    Examples
    --------
    >>> from dualopt.losses import Hinge
    >>> f = random_linear_model(seed=0, loss=Hinge(), n_clients=3, rows=30, features=2, mu=0.1)
    >>> f.sizes, f.shape
    ((19, 5, 6), (3,))
    """
    require(n_clients >= 1, "n_clients must be at least 1", n_clients)
    require(rows >= n_clients, f"rows must be at least n_clients = {n_clients}", rows)
    require(features >= 1, "features must be at least 1", features)
    rng = np.random.default_rng(seed)
    cuts = np.sort(1 + rng.choice(rows - 1, size=n_clients - 1, replace=False)) if n_clients > 1 else []
    clients = [part.tolist() for part in np.split(np.arange(rows), cuts)]
    owner = np.repeat(np.arange(n_clients), [len(part) for part in clients])
    X = rng.standard_normal((rows, features)) + rng.standard_normal((n_clients, features))[owner]
    scores = X @ rng.standard_normal((features, loss.outputs)) + rng.standard_normal((rows, loss.outputs))
    if loss.labels == "class":
        y = np.argmax(scores, axis=1)
    else:
        y = np.where(scores[:, 0] > 0, 1.0, -1.0) if loss.labels == "binary" else scores[:, 0]
        y = np.abs(y) if hasattr(loss, "label_domain") else y
    return linear_model(X, y, loss=loss, mu=mu, clients=clients)
