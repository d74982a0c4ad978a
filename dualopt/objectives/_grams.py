"""Gram matrices one client after the other, for groups whose clients cannot be stacked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dualopt.arrays.xp import Array, array_namespace
from dualopt.objectives._dense import LEAST_RIDGE, ClientBlock, shifted_inverse

__all__ = ["Grams"]


class Grams:
    """What a group does with the Gram matrices and entries of its clients, from what it does with those of one.

    ``position`` is that of a client in the group; what is computed is kept in ``cache``.
    """

    cache: dict[tuple[str, int, float], Any]

    def gram(self, position: int) -> Array:
        """Return ``A'A`` or ``A A'``, whichever is smaller."""
        raise NotImplementedError

    def norms(self, position: int) -> Array:
        """Return ``(sum_i w_i |x_i|^2)^(1/2)``, ``(sum_i w_i)^(1/2)`` and the greatest entry of ``X``, ``(3,)``."""
        raise NotImplementedError

    def label_moment(self, position: int) -> Array:
        """Return ``X' (w y)`` of one client, ``(p,)``."""
        raise NotImplementedError

    def apply_ridge_inverse(self, position: int, ridge: float, v: Array) -> Array:
        """Return ``v (A'A + ridge I)^{-1}`` for ``v`` of shape ``(k, p)``."""
        raise NotImplementedError

    def precondition(self, position: int, ridge: float, v: Array) -> Array:
        """Return ``v`` of shape ``(k, p)`` times an approximation of ``(A'A + ridge I)^{-1}``."""
        raise NotImplementedError

    def largest_eigenvalue(self, position: int) -> Array:
        """Return the largest eigenvalue of ``A'A``."""
        key = ("eigenvalue", position, 0.0)
        if key not in self.cache:
            gram = self.gram(position)
            xp = array_namespace(gram)
            self.cache[key] = xp.max(xp.linalg.eigvalsh(gram))
        return self.cache[key]

    def ridge_inverse(self, position: int, ridge: float) -> Array:
        """Return ``(A'A + ridge I)^{-1}``, or ``(A A' + ridge I)^{-1}`` when that is smaller."""
        key = ("inverse", position, ridge)
        if key not in self.cache:
            self.cache[key] = shifted_inverse(self.gram(position), ridge)
        return self.cache[key]

    def norms_of(self, position: int, entries: Array, weights: Array, w: Array) -> Array:
        """Return what ``norms`` returns, from entries, the weight of the row of each, and those of the rows."""
        key = ("norms", position, 0.0)
        if key not in self.cache:
            xp = array_namespace(w)
            largest = xp.max(xp.abs(entries)) if entries.shape[0] else xp.zeros_like(w[0])
            scaled = entries / xp.where(
                largest > 0, largest, xp.ones_like(largest)
            )  # squares do not over- or underflow
            squares = xp.sum(weights * scaled * scaled)
            self.cache[key] = xp.stack([largest * xp.sqrt(squares), xp.sqrt(xp.sum(w)), largest])
        return self.cache[key]

    # The same for the clients of a part, as `Group` has them.

    def largest_eigenvalues(self, part: ClientBlock) -> Array:
        """Return the largest eigenvalues of ``A'A``, ``(c,)``."""
        return _stacked([self.largest_eigenvalue(position) for position in part.positions])

    def client_norms(self, part: ClientBlock) -> Array:
        """Return the `norms` of the clients, ``(c, 3)``."""
        return _stacked([self.norms(position) for position in part.positions])

    def label_moments(self, part: ClientBlock) -> Array:
        """Return ``X' (w y)`` of the clients, ``(c, p)``."""
        return _stacked([self.label_moment(position) for position in part.positions])

    def ridge_inverse_product(self, part: ClientBlock, ridges: Array) -> Callable[[Array], Array]:
        """Return ``v -> v_j (A'A + ridge_j I)^{-1}`` for ``v`` of shape ``(c, k, p)`` or ``(1, k, p)``."""
        return _by_client(self.apply_ridge_inverse, list(zip(part.positions, ridges.tolist(), strict=True)))

    def preconditioner_product(self, part: ClientBlock, ridges: Array) -> Callable[[Array], Array]:
        """Return the products of `precondition`, with ridges raised as `Group` raises them."""
        least = [LEAST_RIDGE * float(self.largest_eigenvalue(position)) or 1.0 for position in part.positions]
        raised = [max(ridge, floor) for ridge, floor in zip(ridges.tolist(), least, strict=True)]
        return _by_client(self.precondition, list(zip(part.positions, raised, strict=True)))


def _stacked(arrays: list[Array]) -> Array:
    return array_namespace(arrays[0]).stack(arrays)


def _by_client(
    function: Callable[[int, float, Array], Array], clients: list[tuple[int, float]]
) -> Callable[[Array], Array]:
    """Return ``v -> function(position, ridge, v_j)`` of all clients; a single row of ``v`` is everybody's."""
    return lambda v: _stacked(
        [function(*client, v[j if v.shape[0] > 1 else 0, ...]) for j, client in enumerate(clients)]
    )
