"""Sums of losses over the rows of each client: the common part of linear models and networks."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from functools import cached_property
from typing import Any, ClassVar, Self

from dualopt.arrays.xp import Array, array_namespace, broadcast, device, is_numpy, reshape, vecdot
from dualopt.losses import Loss
from dualopt.objectives._weights import of_clients
from dualopt.objectives.local_problem import client_dot
from dualopt.objectives.objective import Objective
from dualopt.objectives.rows import Block, ClientRows, Sample

__all__ = ["FiniteSum"]

LARGE = 2**17  # numbers of data, of which a pass takes a hundred times as long as to compare two points


class FiniteSum(Objective):
    r"""Base of the dataclasses that add losses of predictors over the rows of each client.

    .. math:: f_j(\theta) = \sum_{i=1}^{m_j} w_{ji}\, \phi(z(\theta; x_{ji});\, y_{ji})
              + \tfrac{\text{ridge}}{2} |\theta|^2,

    without a free intercept in the norm.

    A subclass defines the predictors ``z`` by ``_forward`` and their derivatives by ``_backward``.

    Attributes
    ----------
    loss : Loss
        ``phi``.
    ridge : float
        Weight of the squared norm.
    rows : ClientRows
        Features ``x_ji``, labels ``y_ji`` and weights ``w_ji``.
    weights : tuple of float, optional
        The weights ``w_j`` of the clients in ``E``.
    """

    loss: Loss
    ridge: float
    rows: ClientRows
    weights: tuple[float, ...] | None = None

    def _stacked(self, theta: Array) -> Array:
        """Bring ``shape`` to ``(1, *shape)``, one point for all, and whatever else can be to ``(N, *shape)``."""
        shape = self.shape
        if theta.shape == shape:
            return theta[None, ...]
        return theta if theta.shape == (1, *shape) else broadcast(theta, (self.n_clients, *shape))

    @abstractmethod
    def _points(self, theta: Array) -> Array:
        """Bring ``(N, *shape)`` or ``shape`` to the form in which blocks take points, ``(N, ...)`` or ``(1, ...)``."""

    @abstractmethod
    def _forward(self, points: Array, block: Block) -> tuple[Array, Any]:
        """Return predictors ``(c, k, b)`` of a block and what ``_backward`` needs of the way to them."""

    @abstractmethod
    def _backward(self, points: Array, block: Block, way: Any, slopes: Array) -> Array:
        """Return gradients in the form of ``points`` from derivatives ``(c, k, b)`` with respect to the predictors."""

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # pyright: ignore[reportArgumentType]

    @property
    def n_clients(self) -> int:
        """Number ``N`` of clients."""
        return self.rows.group.shape[0]

    @property
    def n_features(self) -> int:
        """Number ``p`` of columns, the intercept included."""
        return self.rows.n_features

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of rows ``m_j`` of each client."""
        return self.rows.sizes

    @property
    def offers(self) -> frozenset[str]:
        """Samples of rows."""
        return frozenset({"samples"})

    def client_rows(self) -> Iterator[tuple[Array, Array, Array]]:
        """Yield features ``(m_j, p)``, labels ``(m_j,)`` and weights ``(m_j,)`` of each client, as views."""
        return self.rows.by_client()

    def zeros(self) -> Array:
        """Return the zero model, shape ``shape``."""
        like = self.rows.like
        return array_namespace(like).zeros(self.shape, dtype=like.dtype, device=device(like))

    def value(self, theta: Array) -> Array:
        """Return ``f_j(theta_j)``, shape ``(N,)``."""

        def finish(points: Array, value: Array) -> tuple[Array]:
            return (self._value_with_ridge(value, points),)

        return self._summed(self._block_value, self._points(theta), finish=finish)[0]

    def gradient(self, theta: Array) -> Array:
        """Return the gradients (subgradients where nonsmooth), shape ``(N, *shape)``; no values are computed."""
        return self._gradient(theta, None)

    def value_and_gradient(self, theta: Array) -> tuple[Array, Array]:
        """Return values ``(N,)`` and gradients ``(N, *shape)`` in one pass over the rows.

        Of large data those at one point for all clients are kept until another one comes: what certifies a model is
        what many methods ask for at the beginning of the next round. They are not to be written to.
        """
        point = self._one_point(theta)
        if point is None:
            return self._passed(theta)
        xp, latest = array_namespace(point), self._latest
        if latest is None or latest[0].dtype != point.dtype or not bool(xp.all(point == latest[0])):
            latest = xp.asarray(point, copy=True), self._passed(theta)
            object.__setattr__(self, "_latest", latest)  # it can be computed again
        return latest[1]

    _latest: ClassVar[tuple[Array, tuple[Array, Array]] | None] = None

    def _one_point(self, theta: Array) -> Array | None:
        """Return the point ``shape`` that is meant for all clients, where what is found there is worth keeping."""
        if not is_numpy(theta) or not self._keeps:
            return None
        if theta.shape == self.shape:
            return theta
        return theta[0, ...] if theta.shape[0] == 1 or theta.strides[0] == 0 else None

    @cached_property
    def _keeps(self) -> bool:
        """Whether a pass over the rows takes far longer than to compare points, and more memory than what is found."""
        numbers = self.n_features * sum(self.sizes)
        return numbers > LARGE + 16 * self.n_clients * math.prod(self.shape)

    def _passed(self, theta: Array) -> tuple[Array, Array]:
        def finish(points: Array, value: Array, gradient: Array) -> tuple[Array, Array]:
            return self._value_with_ridge(value, points), self._with_ridge(gradient, points)

        value, gradient = self._summed(self._block_value_and_gradient, self._points(theta), finish=finish)
        return value, self._shaped(gradient)

    def _block_value(self, block: Block, points: Array) -> tuple[Array]:
        """Return what the rows of a block add to values, ``(c,)``."""
        z, _ = self._predictors(points, block)
        return (vecdot(block.w, self.loss.value(z, block.y)),)

    def _block_gradient(self, block: Block, points: Array) -> tuple[Array]:
        """Return what they add to gradients, in the form of ``points``."""
        z, way = self._predictors(points, block)
        return (self._backward(points, block, way, self._weighted(self.loss.gradient(z, block.y), block)),)

    def _block_value_and_gradient(self, block: Block, points: Array) -> tuple[Array, Array]:
        """Return both."""
        z, way = self._predictors(points, block)
        value, slope = self.loss.value_and_gradient(z, block.y)
        value = vecdot(block.w, value)
        return value, self._backward(points, block, way, self._weighted(slope, block))

    def draw(self, rngs: Sequence[Any], batch: int | None) -> Sample:
        """Draw ``batch`` rows per client, uniformly with replacement; ``None`` takes every row once.

        Parameters
        ----------
        rngs : sequence of numpy.random.Generator
            One generator per client, such as ``round.rngs()``.
        batch : int or None
            Number of rows of each client; more than it has is allowed.

        Returns
        -------
        tuple of N host integer arrays
            Row numbers within the client.

        Raises
        ------
        ValueError
            If ``batch`` is less than 1, or there is not one generator per client.
        """
        return self.rows.draw(rngs, batch)

    def sample_gradient(self, theta: Array, sample: Sample) -> Array:
        r"""Return the gradients estimated from a sample of rows, shape ``(N, *shape)``.

        .. math:: \frac{1}{B_j} \sum_{b=1}^{B_j} m_j w_{j i_b} \nabla_\theta
                  \phi(z(\theta_j; x_{j i_b});\, y_{j i_b}) + \text{ridge}\, \theta_j

        The expectation over uniform rows ``i_b`` is the gradient, and so is the value for a sample of every row once.
        The lengths ``B_j`` may differ; a sample may be used at several points.

        Raises
        ------
        ValueError
            If the sample is not one nonempty array of row numbers per client.
        """
        self.rows.check_sample(sample)
        return self._gradient(theta, sample)

    def _gradient(self, theta: Array, sample: Sample | None) -> Array:
        return self._shaped(self._summed(self._block_gradient, self._points(theta), sample, self._finish)[0])

    def _summed(self, *arguments: Any, **options: Any) -> tuple[Array, ...]:
        """Add over the rows, as `ClientRows.sum` does."""
        return self.rows.sum(*arguments, **options)

    def select(self, ids: Sequence[int]) -> Self:
        """Return the objective of the clients ``ids``; data and cached factors are shared, not copied."""
        rows = self.rows.select(ids)
        weights = of_clients(self.weights, ids)
        return self if rows is self.rows else replace(self, rows=rows, weights=weights)  # pyright: ignore

    def _predictors(self, points: Array, block: Block) -> tuple[Array, Any]:
        """Return predictors in the layout of the loss, ``(c, k, b)`` or ``(c, b)``, and what ``_backward`` needs."""
        z, way = self._forward(points, block)
        return (z[:, 0, :] if self.loss.outputs == 1 else z), way

    def _weighted(self, slope: Array, block: Block) -> Array:
        """Return derivatives in the layout of the loss times the weights of the rows, ``(c, k, b)``."""
        return (slope * block.w)[:, None, :] if self.loss.outputs == 1 else slope * block.w[:, None, :]

    def _finish(self, points: Array, gradient: Array) -> tuple[Array]:
        """Add the gradient of the ridge to the sum over the rows, for `ClientRows.sum`."""
        return (self._with_ridge(gradient, points),)

    def _value_with_ridge(self, value: Array, points: Array) -> Array:
        """Return values ``(c,)`` with those of the ridge; one point for all has one norm."""
        return value + 0.5 * self.ridge * client_dot(points, self.held(points))

    def _with_ridge(self, gradient: Array, points: Array) -> Array:
        """Add the gradient of the ridge to ``gradient``, an array made here."""
        gradient += self.ridge * self.held(points)
        return gradient

    def _shaped(self, gradient: Array) -> Array:
        """Bring gradients from the form of the points to ``(N, *shape)``."""
        return reshape(gradient, (self.n_clients, *self.shape))
