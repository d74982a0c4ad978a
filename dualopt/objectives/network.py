"""Fully connected networks: the nonconvex objective of the experiments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

from dualopt.arrays.communicator import ALONE, Communicator
from dualopt.arrays.streams import generator
from dualopt.arrays.xp import Array, array_namespace, asarray_like, is_sparse
from dualopt.losses import Multinomial
from dualopt.objectives._weights import as_client_weights, kind_of_weights
from dualopt.objectives.finite_sum import FiniteSum
from dualopt.objectives.rows import Block, ClientRows
from dualopt.problem.inputs import as_clients

__all__ = ["MLP", "class_number", "mlp", "require_ridge"]

INITIAL_STREAM = (5,)


class Layer(NamedTuple):
    """The entries of a layer in the vector of parameters: the weights row by row, then the biases."""

    inputs: int
    outputs: int
    start: int

    @property
    def middle(self) -> int:
        """Where the biases begin."""
        return self.start + self.inputs * self.outputs

    @property
    def stop(self) -> int:
        """Where the next layer begins."""
        return self.middle + self.outputs


@dataclass(frozen=True, kw_only=True, eq=False)
class MLP(FiniteSum):
    r"""Fully connected ReLU networks of ``N`` clients with softmax cross-entropy and weight decay.

    .. math::
        f_j(\theta) &= \sum_{i=1}^{m_j} w_{ji}\, \phi(a_K(x_{ji});\, y_{ji}) + \tfrac{\text{ridge}}{2} |\theta|^2,
        \qquad a_0 = x, \\
        a_l &= \max(0,\, W_l a_{l-1} + b_l) \quad (l < K), \qquad a_K = W_K a_{K-1} + b_K

    ``theta`` is one vector of ``p`` entries, ``(W_1, b_1, ..., W_K, b_K)`` with ``W_l`` of shape ``(outputs, inputs)``
    row by row. Use :func:`mlp` to build one from rows.

    The derivative of ReLU at 0 is taken to be 0. Gradients jump where a unit changes its sign, so no constants are
    declared, and a line search may stall at a kink before it reaches a tolerance.

    Attributes
    ----------
    loss : Multinomial
        ``phi``, softmax cross-entropy.
    ridge : float
        Weight decay of all parameters.
    rows : ClientRows
        Features ``x_ji``, labels ``y_ji`` and weights ``w_ji``; no intercept column.
    layers : tuple of int
        Widths, from the number of features to the number of classes: ``(784, 200, 100, 10)`` has ``p = 178110``.
    weights : tuple of float, optional
        The weights ``w_j`` of the clients in ``E``; all are 1 when not given.
    """

    loss: Multinomial
    ridge: float
    rows: ClientRows
    layers: tuple[int, ...]
    weights: tuple[float, ...] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape ``(p,)`` of ``theta``."""
        return (self._layers[-1].stop,)

    @property
    def mu(self) -> Array:
        """``-inf``: no lower bound of the curvature is known, shape ``(N,)``."""
        return -self.L

    @property
    def L(self) -> Array:
        """``inf``: no bound of the curvature is known, shape ``(N,)``."""
        return asarray_like([math.inf] * self.n_clients, self.rows.like)

    def zeros(self) -> Array:
        """Return the zero model, shape ``(p,)``: all but the last biases are stationary there, so start elsewhere."""
        return super().zeros()

    def initial(self, seed: int = 0) -> Array:
        r"""Return a random model, every entry of a layer uniform in :math:`\pm 1/\sqrt{\text{inputs}}`, shape ``(p,)``.

        Weights and biases alike: the default of PyTorch's linear layers, from which the experiments of FedDyn start.

        Parameters
        ----------
        seed : int, default 0
            Seed of the draw, the same on every array library.
        """
        rng = generator(seed, INITIAL_STREAM)
        parts = [
            asarray_like(
                rng.uniform(-1.0, 1.0, size=layer.stop - layer.start) / math.sqrt(layer.inputs), self.rows.like
            )
            for layer in self._layers
        ]
        return array_namespace(self.rows.like).concat(parts)

    def matrices(self, theta: Array) -> list[tuple[Array, Array]]:
        """Return ``(W_l, b_l)`` of every layer of one model, of shapes ``(outputs, inputs)`` and ``(outputs,)``."""
        points = theta[None, :]
        return [(self._weights(points, layer)[0, :, :], theta[layer.middle : layer.stop]) for layer in self._layers]

    def predict(self, theta: Array, X: Array) -> Array:
        """Return the labels that one model gives to rows, shape ``(m,)``.

        Parameters
        ----------
        theta : array, shape (p,)
            The model.
        X : array, shape (m, d)
            Features.
        """
        points, xp = theta[None, :], array_namespace(X)
        first = xp.matmul(self._weights(points, self._layers[0]), xp.matrix_transpose(X)[None, :, :])
        return xp.argmax(self._outputs(points, first)[-1][0, :, :], axis=0)

    def accuracy(self, theta: Array, X: Array, y: Array) -> float:
        """Return the fraction of the rows ``X``, shape ``(m, d)``, to which ``theta`` gives their label ``y``."""
        xp = array_namespace(X)
        return float(xp.mean(xp.astype(self.predict(theta, X) == y, X.dtype)))

    @cached_property
    def _layers(self) -> tuple[Layer, ...]:
        layers: list[Layer] = []
        for inputs, outputs in pairwise(self.layers):
            layers.append(Layer(inputs, outputs, layers[-1].stop if layers else 0))
        return tuple(layers)

    def _points(self, theta: Array) -> Array:
        return self._stacked(theta)

    def _with_ridge(self, gradient: Array, points: Array) -> Array:
        # Without weight decay nothing is added: large models spend their time on passes over the parameters.
        return super()._with_ridge(gradient, points) if self.ridge else gradient

    # Activations have the layout of the loss, rows last: (c, width, b). Neither weights nor features are ever copied.

    def _weights(self, points: Array, layer: Layer) -> Array:
        """Return ``W_l`` of every client, a view of shape ``(c, outputs, inputs)``."""
        block = points[:, layer.start : layer.middle]
        return array_namespace(points).reshape(block, (-1, layer.outputs, layer.inputs))

    def _outputs(self, points: Array, product: Array) -> list[Array]:
        """Return ``a_1, ..., a_K``, the outputs of all layers, from ``product = W_1 x``."""
        xp = array_namespace(product)
        zero = asarray_like(0.0, product)
        outputs: list[Array] = []
        for layer in self._layers:
            if outputs:
                product = xp.matmul(self._weights(points, layer), outputs[-1])
            z = product + points[:, layer.middle : layer.stop, None]
            outputs.append(z if layer is self._layers[-1] else xp.maximum(z, zero))
        return outputs

    def _forward(self, points: Array, block: Block) -> tuple[Array, list[Array]]:
        outputs = self._outputs(points, block.predict(self._weights(points, self._layers[0])))
        return outputs[-1], outputs

    def _backward(self, points: Array, block: Block, way: list[Array], slopes: Array) -> Array:
        """Return the gradients ``(c, p)`` by backpropagation."""
        xp = array_namespace(slopes)
        zero = asarray_like(0.0, slopes)
        parts: list[Array] = []
        for layer, below in zip(self._layers[:0:-1], way[-2::-1], strict=True):
            parts = [*self._entries(xp.matmul(slopes, xp.matrix_transpose(below)), slopes), *parts]
            back = xp.matmul(xp.matrix_transpose(self._weights(points, layer)), slopes)
            slopes = xp.where(below > 0, back, zero)
        return xp.concat([*self._entries(block.pull_back(slopes), slopes), *parts], axis=1)

    @staticmethod
    def _entries(weights: Array, slopes: Array) -> tuple[Array, Array]:
        """Return the derivatives with respect to the weights and the biases of a layer, ``(c, ...)`` each."""
        xp = array_namespace(slopes)
        return xp.reshape(weights, (slopes.shape[0], -1)), xp.sum(slopes, axis=-1)


def mlp(
    X: Array,
    y: Array,
    *,
    layers: Sequence[int] = (200, 100),
    classes: int | None = None,
    clients: Any = 1,
    ridge: float = 0.0,
    weights: Array | None = None,
    client_weights: Any = "equal",
    peers: Communicator = ALONE,
) -> MLP:
    """Build an :class:`MLP` from rows and a partition.

    Parameters
    ----------
    X : array, shape (m, d)
        Features; their type is that of ``theta``.
    y : array, shape (m,)
        Labels ``0, ..., classes - 1``, integers.
    layers : sequence of int, default (200, 100)
        Widths of the hidden layers.
    classes : int, optional
        Number of classes; one more than the largest label when not given.
    clients : int, sequence of integer sequences or of masks, dict, or vector of shape (m,)
        As in :func:`dualopt.objectives.linear_model`; the names of clients are not kept.
    ridge : float, default 0
        Weight decay of all parameters, at least 0.
    weights : array of shape (m,), optional
    client_weights : "equal", "rows" or numbers, default "equal"
        Both as in :func:`dualopt.objectives.linear_model`.
    peers : Communicator, optional
        The processes that hold the other clients; ``classes`` must be given then.

    Raises
    ------
    ValueError
        If an argument does not fit, with one sentence that names it.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), np.array([0, 1, 1, 0])
    >>> f = mlp(X, y, layers=(8,), clients=2, ridge=1e-3)
    >>> f.layers, f.shape, f.value(f.initial(seed=0)).shape
    ((2, 8, 2), (42,), (2,))
    """
    if is_sparse(X):
        raise ValueError("X must be dense for a network, which the option storage=dense of LIBSVM data makes it.")
    if any(width < 1 for width in layers):
        raise ValueError(f"layers must be widths of at least 1, not {tuple(layers)}.")
    require_ridge(ridge)
    classes = class_number(y, classes, peers)
    loss = Multinomial(classes=classes)
    widths = (*(int(width) for width in layers), classes)
    with peers.together():
        clients, _ = as_clients(clients, X.shape[0])
    own = {"layers": widths, "ridge": float(ridge), "client_weights": kind_of_weights(client_weights)}
    peers.agree(own | {"type of X": str(X.dtype), "number of columns of X": X.shape[1]})
    rows = ClientRows.build(X, y, loss=loss, clients=clients, weights=weights, outputs=widths[0], peers=peers)
    weights_of_clients = as_client_weights(client_weights, rows.sizes)
    return MLP(loss=loss, ridge=float(ridge), rows=rows, layers=(X.shape[1], *widths), weights=weights_of_clients)


def class_number(y: Array, classes: int | None, peers: Communicator) -> int:
    """Return how many classes there are: as given, or one more than the largest label.

    >>> import numpy as np
    >>> class_number(np.array([0, 2, 1]), None, ALONE), class_number(np.array([0]), 4, ALONE)
    (3, 4)
    """
    if classes is not None:
        return classes
    if peers.size > 1:
        raise ValueError("classes must be given where other processes have other rows.")
    xp = array_namespace(y)
    return max(2, int(xp.max(y)) + 1) if xp.isdtype(y.dtype, "integral") and y.shape[0] else 2


def require_ridge(ridge: float) -> None:
    """Refuse a weight decay that is no finite number of at least 0."""
    if not (math.isfinite(ridge) and ridge >= 0):
        raise ValueError(f"ridge must be a finite number, at least 0, not {ridge}.")
