r"""Zero chains as finite sums, so that local solvers that sample, such as FedPD's Oracle II, run on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.objectives import ZeroChain

__all__ = ["Couplings"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Couplings(ZeroChain):
    r"""A zero chain whose clients may draw some of their couplings in place of all.

    Client j holds :math:`m_j` couplings :math:`w_{jk}\Theta_k`. A sample of B of them, uniformly with replacement,
    estimates its gradient by :math:`\frac{m_j}{B}\sum_{b} w_{jk_b}\nabla\Theta_{k_b}`, whose mean is the gradient.

    Examples
    --------
    >>> f = Couplings.of(ZeroChain(split=np.array([[2.0, 0.0, 2.0], [0.0, 2.0, 0.0]])))
    >>> x, every = np.ones((2, 3)), f.draw([np.random.default_rng(j) for j in range(2)], None)
    >>> [k.tolist() for k in every], bool(np.allclose(f.sample_gradient(x, every), f.gradient(x)))
    ([[0, 1], [0]], True)
    """

    @classmethod
    def of(cls, chain: ZeroChain) -> Self:
        """Return the same chain with samples."""
        return cls(**{field.name: getattr(chain, field.name) for field in fields(chain)})

    @property
    def offers(self) -> frozenset[str]:
        """Samples, beside what every chain offers."""
        return super().offers | {"samples"}

    @property
    def sizes(self) -> list[int]:
        """Number of couplings of every client."""
        return [len(held) for held in self._held()]

    def draw(self, rngs: Sequence[Any], batch: int | None) -> tuple[np.ndarray, ...]:
        """Draw ``batch`` couplings of every client, counted within the client; ``None`` takes each once."""
        if batch is None:
            return tuple(np.arange(m) for m in self.sizes)
        return tuple(rng.integers(m, size=batch) for rng, m in zip(rngs, self.sizes, strict=True))

    def sample_gradient(self, theta: Array, sample: Sequence[np.ndarray]) -> Array:
        """Return the gradients estimated from a sample of :meth:`draw`, shape ``(N, d)``."""
        weights = np.zeros_like(self.split)
        for j, (held, drawn) in enumerate(zip(self._held(), sample, strict=True)):
            counts = np.bincount(drawn, minlength=len(held)) * (len(held) / len(drawn))
            weights[j, held] = counts * self.split[j, held]
        return replace(self, split=weights).gradient(theta)

    def _held(self) -> list[np.ndarray]:
        return [np.flatnonzero(row) for row in self.split]
