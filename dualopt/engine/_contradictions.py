r"""Whether what a host says of a client can be true of one function: its values, gradients and conjugates together.

``f_j`` is :math:`\mu_j`-strongly convex (negative constants allowed) and, where :math:`L_j` is finite,
:math:`L_j`-smooth. With :math:`\ell_x(z) = f_j(x) + \langle\nabla f_j(x), z - x\rangle + \frac{\mu_j}2|z - x|^2` and
:math:`u_y` the same with :math:`L_j`, every such function has

.. math:: \ell_x(z) \le f_j(z) \le u_y(z) \quad \text{for all } x, y, z,

and with the dual points of ``g_j`` (:class:`dualopt.runs.certificates.DualPoint`), where
:math:`g_j = f_j - \frac{\mu_j}2|\cdot|^2`, the inequality of Fenchel and Young, which is one of the same form with
:math:`x = 0`:

.. math:: \langle\xi_j, z\rangle - g_j^*(\xi_j) + \frac{\mu_j}2 |z|^2 \le f_j(z) \le u_y(z) \quad \text{for all } z.

At the best ``z``, where the two sides are parallel, the first is the interpolation inequality of the class: finitely
many values and gradients are those of one of its functions exactly if all pairs satisfy it (Taylor, Hendrickx and
Glineur 2017, "Smooth strongly convex interpolation", Theorem 4). Where :math:`L_j` is infinite, ``z`` is ``y``.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from dualopt.arrays.xp import Array, array_namespace, silent
from dualopt.engine import _protocol as protocol
from dualopt.objectives._rounding import client_norm, gamma, tiny
from dualopt.objectives.local_problem import client_dot, per_client

__all__ = ["Contradictions"]

KEPT = 3  # evaluations, and dual points, that are compared with later ones: the first, and the latest
SMOOTHER = (
    1e-3  # L_j are computed eigenvalues, no bounds: what is proven here are functions that are L_j(1 + 1e-3)-smooth
)


class Statement(NamedTuple):
    """A value and a slope of every client at a point, with bounds of their errors."""

    n: int  # rounds done
    at: Array  # (1, *shape)
    value: Array  # (n,)
    slope: Array  # (n, *shape)
    value_error: Array  # (n,)
    slope_error: Array  # (n,)


class Contradictions:
    r"""Compares the statements of a host at several models, and finds clients of which they cannot be true.

    An evaluation at ``y`` is compared with the first and the latest ones, in both directions, and with the dual points
    of that time. The errors that the host states (:class:`dualopt.objectives._rounding.Rounding`) are granted:
    certificates are charged the whole of them, so that larger ones than there are hide a lie and make up for it. From
    above, the gradient of a smooth function is known to :math:`s + 2\sqrt{(L - \mu)v}`, with the errors ``v`` of its
    value and ``s`` of its slope: a larger difference would break the lower bound with these errors nearby. On top comes
    what rounding does here.

    Each comparison costs a few products of the size of the gradients; nothing is asked for it.

    Parameters
    ----------
    mu : array, shape (n,)
        Proven strong convexity constants of the clients; minus infinity where nothing is known, and nothing compared.
    L : array, shape (n,)
        Their smoothness constants.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt import Quadratic
    >>> from dualopt.engine import Host
    >>> f = Quadratic(A=np.ones((2, 1, 1)), b=np.zeros((2, 1)))
    >>> found = Contradictions(f.proven_mu, f.L)
    >>> for n in range(3):
    ...     (answer,) = Host(f).answer([protocol.Evaluate("", n, np.array([n - 1.0]), False)])
    ...     print(found.by(n, np.array([n - 1.0]), answer))
    None
    None
    None
    >>> found.by(3, np.array([2.0]), answer._replace(value=np.array([2.0, 2.0]), gradient=np.array([[2.0], [-2.0]])))
    (1, 'its values and gradients after rounds 0 and 3 are not those of one function with its mu and L')
    """

    def __init__(self, mu: Array, L: Array) -> None:
        xp = array_namespace(mu)
        mu, L = (xp.astype(x, xp.float64, copy=False) for x in (mu, L))
        self._mu, self._L = mu, (1.0 + SMOOTHER) * L
        self._smooth = bool(xp.any(xp.isfinite(L)))
        self._evaluations: list[Statement] = []
        self._duals: list[Statement] = []

    def by(self, n: int, theta: Array, answer: protocol.Evaluated) -> tuple[int, str] | None:
        """Return the position of a client that has contradicted itself, and how; None if none has."""
        with silent():
            return self._by(n, theta, answer)

    def _by(self, n: int, theta: Array, answer: protocol.Evaluated) -> tuple[int, str] | None:
        xp = array_namespace(answer.value)
        told = [xp.astype(x, xp.float64, copy=False) for x in (theta[None, ...], *answer) if x is not None]
        new, duals = Statement(n, *told[:5]), list(self._duals)
        if answer.dual is not None:
            dual, conjugate, error = told[5:]
            duals.append(Statement(n, xp.zeros_like(new.at), -conjugate, dual, xp.zeros_like(conjugate), error))
        for old in self._evaluations:
            if (j := _first(self._above(old, new) | self._above(new, old))) is not None:
                what = f"its values and gradients after rounds {old.n} and {n}"
                return j, f"{what} are not those of one function with its mu and L"
        for lower in duals:
            for upper in (new, *(self._evaluations if lower.n == n else ())):
                if (j := _first(self._above(lower, upper))) is not None:
                    what = f"its conjugate after round {lower.n} is less"
                    return j, f"{what} than its value after round {upper.n} allows"
        self._evaluations = _kept([*self._evaluations, new])
        self._duals = _kept(duals)
        return None

    def _above(self, lower: Statement, upper: Statement) -> Array:
        """Tell of each client whether a lower bound is above an upper one by more than rounding."""
        step = upper.at - lower.at
        found = self._excess(lower, upper, step, None) > 0.0
        if self._smooth:
            mu, wide = per_client(self._mu, step), per_client(self._L - self._mu, step)
            shift = (mu * step - (upper.slope - lower.slope)) / wide
            found = found | (self._excess(lower, upper, step, shift) > 0.0)
        return found

    def _excess(self, lower: Statement, upper: Statement, step: Array, shift: Array | None) -> Array:
        """Return how far the lower bound is above the upper one at ``upper.at + shift``, less what rounding may do.

        For rounding ``gamma`` times the sizes of all terms is taken off, squares without their halves and with
        ``reach`` for the distance to ``lower.at``, of which it is a bound; and what products lose that underflow. Where
        ``mu`` or ``L`` is infinite, so that there is no such bound, this is NaN or minus infinity.
        """
        xp, mu, L = array_namespace(step), self._mu, self._L
        to = step if shift is None else step + shift
        a, reach = client_norm(to), client_norm(step)
        low = lower.value + client_dot(lower.slope, to) + 0.5 * mu * a * a
        low = low - lower.value_error - lower.slope_error * a
        high, sizes = upper.value + upper.value_error, xp.abs(upper.value) + upper.value_error
        if shift is not None:
            b = client_norm(shift)
            error = upper.slope_error + 2.0 * xp.sqrt(L - mu) * xp.sqrt(upper.value_error)
            high = high + client_dot(upper.slope, shift) + 0.5 * L * b * b + error * b
            sizes, reach = sizes + (client_norm(upper.slope) + L * b + error) * b, reach + b
        sizes = sizes + xp.abs(lower.value) + lower.value_error
        sizes = sizes + (client_norm(lower.slope) + xp.abs(mu) * reach + lower.slope_error) * reach
        n = math.prod(step.shape) + 16
        return low - high - gamma(n, low) * sizes - n * tiny(low) * (2.0 + reach)


def _first(found: Array) -> int | None:
    """Return the first place that is true; None for none."""
    xp = array_namespace(found)
    return int(xp.argmax(xp.astype(found, xp.int8))) if bool(xp.any(found)) else None


def _kept(statements: list[Statement]) -> list[Statement]:
    """Return the first, from which the others are far away, and the latest."""
    return statements[:1] + statements[1:][1 - KEPT :]
