"""What clients with linear models tell of their rows at a model, for standard errors: Hessians, gradients, sums."""

from __future__ import annotations

from typing import Any, NamedTuple

from dualopt.arrays.xp import Array, array_namespace, device, is_sparse, summed
from dualopt.objectives._products import predictors, row_norms
from dualopt.objectives.linear import LinearModel

__all__ = ["SUMS", "ClientInformation", "client_information", "ridge_of"]

SUMS = ("rows", "weight", "least_weight", "largest_weight", "deviance", "pearson", "log_base", "largest_row")
"""The columns of `ClientInformation.sums`."""

PIECE = 2**20  # numbers of a weighted copy of rows


class ClientInformation(NamedTuple):
    r"""What the clients of a linear model tell of their rows at :math:`\theta`, ``D`` numbers.

    With the weights :math:`w_{ji}` of the rows inside :math:`f_j` and :math:`w_j` of the clients.
    """

    gradient: Array  # (N, *shape)  of f_j, the ridge included
    hessian: Array  # (D, D)  sum_j w_j sum_i w_ji of the Hessians of the losses, without the ridge
    penalty: Array  # shape  the diagonal of the Hessian of the ridge, the same for all clients
    sums: Array  # (N, 8)  in the order of SUMS; those of the likelihood are 0 for a loss that is none


def client_information(f: LinearModel, theta: Array) -> ClientInformation:
    r"""Return what the clients of ``f`` tell at ``theta``.

    Hessians are :math:`\sum_i w_{ji}\, \nabla^2\phi(\theta x_{ji}; y_{ji}) \otimes x_{ji} x_{ji}'`, models flattened
    with the columns last. Of the rows with a positive weight the sums count the number, add the weights, and hold the
    least and the largest of these and the largest :math:`|x_{ji}|`; and they add, each times :math:`w_{ji}`, the
    deviances :math:`2(\phi(z; y) - \min_x\phi(x; y)) = 2(\phi(z; y) + \phi^*(0; y))`, the ``pearson`` and the
    ``log_base`` of a loss that is a likelihood (:class:`dualopt.losses.Loss`).

    Parameters
    ----------
    f : LinearModel
        The clients.
    theta : array, shape ``shape``
        The model.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt import linear_model
    >>> f = linear_model([[1.0], [2.0], [3.0]], [0.0, 2.0, 5.0], loss="squared", mu=0.5, clients=1, intercept=False)
    >>> found = client_information(f, np.array([1.0]))
    >>> found.gradient.round(6).tolist(), found.hessian.round(6).tolist(), found.penalty.tolist()
    ([[-1.166667]], [[4.666667]], [0.5])
    >>> dict(zip(SUMS, found.sums[0].round(3).tolist()))["deviance"]
    1.667
    """
    xp, k, p = array_namespace(theta), f.loss.outputs, f.n_features
    weights, hessian, rows = f.weights or (1.0,) * f.n_clients, None, []
    for w_j, (X, y, w) in zip(weights, f.client_rows(), strict=True):
        z = predictors(X, theta)
        own = w_j * _hessian(f.loss, X, y, w, z)
        hessian = own if hessian is None else hessian + own
        rows.append(_sums(f.loss, X, y, w, z))
    assert hessian is not None
    hessian = xp.reshape(hessian, (k * p, k * p))
    return ClientInformation(f.gradient(theta), hessian, ridge_of(f), xp.stack(rows))


def ridge_of(f: LinearModel) -> Array:
    """Return the diagonal of the Hessian of the ridge of each client, shape ``shape``."""
    return f.ridge * f.held(f.zeros() + 1.0)


def _hessian(loss: Any, X: Any, y: Array, w: Array, z: Array) -> Array:
    """Return the weighted sum over the rows of one client, shape ``(k p, k p)``."""
    xp, k = array_namespace(z), loss.outputs
    if k == 1:
        return _gram(X, w * loss.hessian_product(z, y, xp.ones_like(z)))
    units = xp.eye(k, dtype=z.dtype, device=device(z))
    columns = [loss.hessian_product(z, y, units[:, a, None] * xp.ones_like(z)) for a in range(k)]  # (k, m) each
    blocks = {(a, b): _gram(X, w * columns[b][a, :]) for a in range(k) for b in range(a, k)}
    strips = [xp.concat([blocks[min(a, b), max(a, b)] for b in range(k)], axis=1) for a in range(k)]
    return xp.concat(strips, axis=0)


def _gram(X: Any, d: Array) -> Array:
    """Return ``X' diag(d) X`` for dense or sparse rows."""
    if is_sparse(X):
        return (X.T @ X.multiply(d[:, None]).tocsr()).toarray()
    step = max(1, PIECE // X.shape[1])
    found = None
    for start in range(0, X.shape[0], step):
        piece = slice(start, min(start + step, X.shape[0]))
        part = X[piece, :]
        own = array_namespace(X).matrix_transpose(part) @ (d[piece, None] * part)
        found = own if found is None else found + own
    return found


def _sums(loss: Any, X: Any, y: Array, w: Array, z: Array) -> Array:
    """Return the sums of one client, in the order of ``SUMS``."""
    xp = array_namespace(z)
    counts, zero = w > 0.0, xp.zeros_like(w)
    deviance = pearson = log_base = zero
    if hasattr(loss, "family"):
        deviance = 2.0 * (loss.value(z, y) + loss.conjugate(xp.zeros_like(z), y))
        log_base = xp.astype(loss.log_base(y), z.dtype)
        pearson = loss.pearson(z, y) if hasattr(loss, "pearson") else zero
    numbers = [
        summed(xp.astype(counts, z.dtype), 0),
        summed(w, 0),
        xp.min(xp.where(counts, w, xp.inf)),
        xp.max(w),
        *(summed(xp.where(counts, w * x, zero), 0) for x in (deviance, pearson, log_base)),
        xp.max(xp.where(counts, row_norms(X), zero)),
    ]
    return xp.stack(numbers)
