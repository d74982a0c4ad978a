"""Losses of predictors with offsets: an offset is the imaginary part of the label of its row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dualopt.arrays.xp import Array, array_namespace, device
from dualopt.losses._protocol import Loss

__all__ = ["WithOffset", "label_and_offset", "labels_with_offset", "with_offset", "without_offset"]

SAME = ("differentiable", "family", "label_domain", "normaliser", "ratio", "self_concordance")
"""Members of a loss that an offset leaves as they are, where the loss has them."""

OF_PREDICTORS = ("pearson", "rounding")
"""Functions of predictors and labels that a loss may have."""


@dataclass(frozen=True)
class WithOffset:
    r"""The loss :math:`\phi(z + o; y)` of rows with offsets ``o``, for labels :math:`y + \mathrm i\, o`.

    So an offset goes wherever the label of its row goes: to groups of clients, blocks, samples and other processes.
    The conjugate is :math:`\phi^*(u; y) - u o`. What is bounded for :math:`\phi` is bounded alike. Arrays have shape
    ``(..., m)``; the methods are those of `Loss`.

    Attributes
    ----------
    loss : Loss
        :math:`\phi`, of one output.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.losses import Poisson
    >>> z, y, o = np.asarray([0.0, 1.0]), np.asarray([2.0, 0.0]), np.asarray([0.5, -1.0])
    >>> f = WithOffset(Poisson())
    >>> bool(np.all(f.value(z, labels_with_offset(Poisson(), y, o)) == Poisson().value(z + o, y))), f.family
    (True, 'poisson')
    """

    loss: Loss

    def __getattr__(self, name: str) -> Any:
        """Return a member that the loss may have."""
        if name in SAME:
            return getattr(self.loss, name)
        if name in OF_PREDICTORS:
            return self._shifted(getattr(self.loss, name))
        raise AttributeError(name)

    def _shifted(self, function: Any) -> Any:
        def at(z: Array, y: Array, *more: Any) -> Any:
            label, offset = label_and_offset(y)
            return function(z + offset, label, *more)

        return at

    @property
    def labels(self) -> str:
        """The kind of labels."""
        return self.loss.labels

    @property
    def nonnegative(self) -> bool:
        """Whether the loss is at least 0."""
        return self.loss.nonnegative

    @property
    def example(self) -> dict[str, Any]:
        """Arguments of an instance: none has defaults."""
        return {"loss": self.loss}

    @property
    def outputs(self) -> int:
        """Number of predictors per row."""
        return self.loss.outputs

    @property
    def curvature(self) -> float:
        """Smallest upper bound of the second derivative."""
        return self.loss.curvature

    @property
    def lipschitz(self) -> float:
        """Smallest upper bound of the norm of subgradients."""
        return self.loss.lipschitz

    def log_base(self, y: Array) -> Array:
        """Return that of the labels."""
        return self.loss.log_base(label_and_offset(y)[0])  # pyright: ignore[reportAttributeAccessIssue]

    def value(self, z: Array, y: Array) -> Array:
        """Compute the loss of every row."""
        return self._shifted(self.loss.value)(z, y)

    def gradient(self, z: Array, y: Array) -> Array:
        """Compute its derivative."""
        return self._shifted(self.loss.gradient)(z, y)

    def value_and_gradient(self, z: Array, y: Array) -> tuple[Array, Array]:
        """Compute both in one pass."""
        return self._shifted(self.loss.value_and_gradient)(z, y)

    def hessian_product(self, z: Array, y: Array, v: Array) -> Array:
        """Compute the second derivative times ``v``."""
        return self._shifted(self.loss.hessian_product)(z, y, v)

    def conjugate(self, u: Array, y: Array) -> Array:
        """Compute that of the loss less ``u o``."""
        label, offset = label_and_offset(y)
        return self.loss.conjugate(u, label) - u * offset

    def prox(self, z: Array, y: Array, step: float | Array) -> Array:
        """Compute that of the loss at ``z + o``, less ``o``."""
        label, offset = label_and_offset(y)
        return self.loss.prox(z + offset, label, step) - offset

    def cvxpy(self, z: Any, y: Any) -> Any:
        """Return the CVXPY expression of the loss of every row, for reference solutions."""
        return self._shifted(self.loss.cvxpy)(z, y)


def with_offset(loss: Loss) -> Loss:
    """Return the loss of `labels_with_offset`: the same where an offset may be taken from the labels."""
    shifted: Any = WithOffset(loss)
    return loss if _is_of_differences(loss) else shifted


def without_offset(loss: Any) -> Loss:
    """Return the loss of predictors that hold the offset already."""
    return loss.loss if isinstance(loss, WithOffset) else loss


def labels_with_offset(loss: Loss, y: Array, offset: Array) -> Array:
    """Return labels less offsets for a loss of differences, else labels whose imaginary parts are offsets."""
    if _is_of_differences(loss):
        return y - offset
    xp = array_namespace(y)
    kind = xp.complex64 if y.dtype == xp.float32 else xp.complex128
    return xp.astype(y, kind) + xp.astype(offset, kind) * xp.asarray(1j, dtype=kind, device=device(y))


def label_and_offset(y: Array) -> tuple[Array, Array | float]:
    """Return the labels of rows and their offsets, 0 where there are none.

    >>> import numpy as np
    >>> from dualopt.losses import Hinge
    >>> label_and_offset(labels_with_offset(Hinge(), np.ones(2), np.asarray([0.5, 2.0])))
    (array([1., 1.]), array([0.5, 2. ]))
    >>> label_and_offset(np.ones(2))
    (array([1., 1.]), 0.0)
    """
    xp = array_namespace(y)
    return (xp.real(y), xp.imag(y)) if xp.isdtype(y.dtype, "complex floating") else (y, 0.0)


def _is_of_differences(loss: Loss) -> bool:
    return getattr(loss, "of_differences", False)
