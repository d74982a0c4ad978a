"""First-order remainders of linear models, in single precision: what local solvers minimise in mixed precision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Self

from dualopt.arrays.tree import is_everybody, take_clients
from dualopt.arrays.xp import Array, array_namespace, device, epsilon, reshape
from dualopt.objectives._rounding import client_norm
from dualopt.objectives._weights import of_clients
from dualopt.objectives.linear import LinearModel
from dualopt.objectives.rows import Block, PaddedNumbers, RowNumbers

__all__ = ["Remainder", "remainder"]

KEPT = 64
"""Times the columns: up to so many rows of the largest client predictors are kept, less than the pairs of L-BFGS."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Remainder(LinearModel):
    r"""The remainders of linear models at points :math:`\theta_j`, functions of displacements in single precision.

    .. math:: D_j(d) = f_j(\theta_j + d) - f_j(\theta_j) - \langle \nabla f_j(\theta_j), d\rangle
                     = \sum_i w_{ji} \bigl(\phi(z_{ji} + x_{ji}d) - \phi(z_{ji}) - \phi'(z_{ji})\,x_{ji}d\bigr)
                       + \tfrac{\text{ridge}}2|d|^2, \qquad z_{ji} = \theta_jx_{ji}.

    Products with features take single precision, and what is done row by row, where terms cancel, double precision.
    So values and gradients are right to single precision **of themselves**, however small ``d`` is: with the unit
    roundoff u of single precision and a constant c that grows with the number of terms of a sum, the computed gradient
    differs from :math:`\nabla D_j(d)` by at most :math:`c\,u\,\sum_i w_{ji}|x_{ji}|\,\phi''|x_{ji}||d|`, which goes to
    zero with d. The :math:`z_{ji}` themselves are right to single precision alone: they are where the curvature is
    taken, and the gradient vanishes at ``d = 0`` whatever they are.

    Parameters
    ----------
    whole : LinearModel
        The ``f_j``, in double precision.
    theta : array, shape (N, *shape)
        The points, in double precision.
    z : array, shape (N, k, max_rows), optional
        The predictors of the rows there, in single precision, with zeros behind those of each client, as
        :meth:`predictors` and :meth:`with_predictors` return them; computed where they are not given.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.objectives.linear import linear_model
    >>> f = linear_model(np.eye(2), np.array([-1.0, 1.0]), loss="logistic", mu=0.1, precision="mixed")
    >>> D, d = remainder(f, np.ones((1, 3))), np.array([[1e-9, 0.0, 0.0]])
    >>> gradient = D.gradient(d.astype(np.float32))
    >>> gradient.dtype, round(float(gradient[0, 0]) * 1e9, 6)
    (dtype('float32'), 0.152497)
    >>> difference = f.gradient(np.ones(3) + 1e-3 * d) - f.gradient(np.ones(3))
    >>> round(float(difference[0, 0]) * 1e12, 3)  # of two numbers that agree to 12 digits
    0.153
    """

    whole: LinearModel
    theta: Array
    z: Array | None = None

    @property
    def offers(self) -> frozenset[str]:
        """What solvers ask for that need no samples and no exact solutions."""
        return self.whole.offers & {"hessian", "preconditioner", "curvatures"}

    @cached_property
    def L(self) -> Array:
        """Smoothness constants, those of the ``f_j``, shape ``(N,)``."""
        xp = array_namespace(self.whole.L)
        return xp.astype(self.whole.L, xp.float32)

    def value_and_gradient(self, theta: Array) -> tuple[Array, Array]:
        """Return both; where nothing is displaced, as where solvers begin, they are zero and cost nothing."""
        xp, like = array_namespace(theta), self.rows.like
        if bool(xp.any(theta != 0)):
            return self._passed(theta)
        nothing = xp.zeros((self.n_clients, *self.shape), dtype=like.dtype, device=device(like))
        return self._everywhere(0.0), nothing

    def hessian_operator(self, theta: Array) -> Callable[[Array], Array]:
        """Return ``v -> hess f_j(theta_j + d_j) v_j``; the predictors are computed once."""

        def there(block: Block, points: Array, known: Array) -> Array:
            return known[:, : self.loss.outputs, :] + self._moved(block, points)

        predictors = self.rows.numbers(there, self._points(theta), self._at)

        def one(block: Block, points: Array, z: Array) -> tuple[Array]:
            moved = self._moved(block, points)
            bent = self.loss.hessian_product(self._of_loss(z), block.y, self._of_loss(moved))
            return (self._pulled(block, bent),)

        def product(v: Array) -> Array:
            found = self.rows.sum(one, self._points(v), finish=self._finish, numbers=predictors)
            return self._shaped(found[0])

        return product

    def curvatures(self, theta: Array | None = None) -> tuple[Array, Array]:
        """Return those of the ``f_j`` at the displaced points, in single precision."""
        moved = None
        if theta is not None:
            moved = self.theta + array_namespace(theta).astype(theta, self.theta.dtype)
        values, vectors = self.whole.curvatures(moved)
        xp = array_namespace(values)
        return xp.astype(values, xp.float32), xp.astype(vectors, xp.float32)

    @cached_property
    def _at(self) -> RowNumbers:
        """Of each row its predictors, the slopes of the loss there, and its value, ``2 k + 1`` double numbers."""

        def known(block: Block, points: Array, given: Array | None = None) -> Array:
            z = self._moved(block, points) if given is None else array_namespace(given).astype(given, self.theta.dtype)
            value, slopes = self.loss.value_and_gradient(self._of_loss(z), block.y)
            xp = array_namespace(z)
            return xp.concat([z, reshape(slopes, z.shape), value[:, None, :]], axis=1)

        xp = array_namespace(self.theta)
        points = self._points(xp.astype(self.theta, xp.float32))
        given = None if self.z is None or not self.z.shape[-1] else PaddedNumbers(self.z)
        return self.rows.numbers(known, points, given)

    @property
    def _kept(self) -> int:
        """For how many rows of each client predictors are kept: not where clients may be of very different sizes."""
        return self.rows.max_rows if self.rows.max_rows <= KEPT * self.n_features else 0

    def no_predictors(self) -> Array:
        """Return zeros in the place of the predictors that are kept, shape ``(N, k, max_rows)``."""
        like = self.rows.like
        shape = (self.n_clients, self.loss.outputs, self._kept)
        return array_namespace(like).zeros(shape, dtype=like.dtype, device=device(like))

    def predictors(self) -> Array:
        """Return the predictors at the points, computed in single precision, shape ``(N, k, max_rows)``, or none."""
        if not self._kept:
            return self.no_predictors()
        xp = array_namespace(self.theta)
        points = self._points(xp.astype(self.theta, xp.float32))
        return self.rows.numbers(lambda block, own: block.predict(own), points).padded(self._kept)

    def _summed(self, *arguments: Any, **options: Any) -> tuple[Array, ...]:
        return self.rows.sum(*arguments, **options, numbers=self._at)

    def _block_value(self, block: Block, points: Array, known: Array) -> tuple[Array]:  # pyright: ignore
        return (self._differences(block, points, known)[0],)

    def _block_gradient(self, block: Block, points: Array, known: Array) -> tuple[Array]:  # pyright: ignore
        return (self._pulled(block, self._differences(block, points, known)[1]),)

    def _block_value_and_gradient(self, block: Block, points: Array, known: Array) -> tuple[Array, Array]:  # pyright: ignore
        value, slopes = self._differences(block, points, known)
        return value, self._pulled(block, slopes)

    def _differences(self, block: Block, points: Array, known: Array) -> tuple[Array, Array]:
        """Return what the rows of a block add to values, ``(c,)``, and by how much slopes change, as losses have them.

        Both are differences of numbers that nearly agree: they are taken in double precision.
        """
        k, moved = self.loss.outputs, self._moved(block, points)
        z, slopes, values = known[:, :k, :], known[:, k : 2 * k, :], known[:, 2 * k, :]
        value, slope = self.loss.value_and_gradient(self._of_loss(z + moved), block.y)
        xp = array_namespace(z)
        rest = value - values - xp.sum(slopes * moved, axis=1)
        change = slope - self._of_loss(slopes)
        return xp.vecdot(block.w, xp.astype(rest, block.w.dtype)), change

    def _moved(self, block: Block, points: Array) -> Array:
        """Return the predictors of displacements ``(c, k, b)``, in double precision."""
        found = block.predict(points)
        return array_namespace(found).astype(found, self.theta.dtype)

    def _of_loss(self, x: Array) -> Array:
        """Bring ``(c, k, b)`` to the layout of the loss."""
        return x[:, 0, :] if self.loss.outputs == 1 else x

    def _pulled(self, block: Block, slopes: Array) -> Array:
        """Return ``sum_i w_ji s_ji x_ji'`` for slopes as the loss has them, in single precision."""
        slopes = self._weighted(array_namespace(slopes).astype(slopes, block.w.dtype), block)
        return block.pull_back(slopes)

    def with_predictors(self, d: Array) -> tuple[Array, Array, Array]:
        r"""Return :math:`f_j(\theta_j + d_j)` and gradients in double precision, and the predictors in single.

        One pass over the rows in double precision; predictors have shape ``(N, k, max_rows)``.
        """
        f, kept, xp = self.whole, [], array_namespace(self.theta)
        points = f._points(self.theta + xp.astype(d, self.theta.dtype))  # pyright: ignore[reportPrivateUsage]

        def one(block: Block, points: Array) -> tuple[Array, Array]:
            kept.append(block.predict(points))
            z = self._of_loss(kept[-1])
            value, slope = self.loss.value_and_gradient(z, block.y)
            slopes = self._weighted(slope, block)
            return xp.vecdot(block.w, value), block.pull_back(slopes)

        def finish(points: Array, value: Array, gradient: Array) -> tuple[Array, Array]:
            return self._value_with_ridge(value, points), self._with_ridge(gradient, points)

        value, gradient = f.rows.sum(one, points, finish=finish)
        if not self._kept:
            return value, self._shaped(gradient), self.no_predictors()
        order = iter(kept)
        rows = f.rows.numbers(lambda block, own: xp.astype(next(order), xp.float32), points)
        return value, self._shaped(gradient), rows.padded(self._kept)

    def rounding_of_products(self, d: Array) -> Array:
        r"""Return what rounding of the predictors may do to gradients, shape ``(N,)``.

        By the rule of thumb of numerical analysis, which has a proof for independent errors of mean zero (Higham and
        Mary 2019, "A new approach to probabilistic rounding error analysis"), a sum of p products is off by
        :math:`\sqrt p\,u` times the lengths of its factors, and errors add up by their squares. Slopes move by the
        ``curvature`` c of the loss times that, so that gradients are off by

        .. math:: c \sqrt p\,u\,|d_j| \Bigl(\sum_i w_{ji}^2 |x_{ji}|^4\Bigr)^{1/2}
                  \le c \sqrt p\,u\,|d_j|\,\max_i |x_{ji}| \Bigl(\max_i w_{ji} \sum_i w_{ji}|x_{ji}|^2\Bigr)^{1/2}.
        """
        scale = self.whole._product_roundings  # pyright: ignore[reportPrivateUsage]
        return epsilon(d) * array_namespace(d).astype(scale, d.dtype) * client_norm(d)

    def select(self, ids: Sequence[int]) -> Self:
        """Return the remainders of the clients ``ids``; data and what is known of the rows are shared."""
        if is_everybody(ids, self.n_clients):
            return self
        chosen = replace(
            self,
            rows=self.rows.select(ids),
            weights=of_clients(self.weights, ids),
            whole=self.whole.select(ids),
            theta=take_clients(self.theta, ids),
            z=take_clients(self.z, ids),
        )
        vars(chosen)["_at"] = self._at.select(ids)
        return chosen


def remainder(f: Any, theta: Array, z: Array | None = None) -> Remainder:
    """Return the remainders of linear models at the points ``(N, *shape)``; `Remainder` says what ``z`` is."""
    names = (field.name for field in fields(LinearModel) if field.name != "rows")
    own: dict[str, Any] = {name: getattr(f, name) for name in names}
    found = Remainder(rows=f.rows.in_single, whole=f, theta=theta, z=z, **own)
    vars(found)["_preconditioners"] = f._preconditioners_in_single  # pyright: ignore[reportPrivateUsage]
    return found
