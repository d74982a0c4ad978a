r"""Classes of compressors: what is known of them in place of what they do, and what they make of formal vectors.

What arrives of a vector v is :math:`v + e`, with a new vector e for every client in every round. Of it there is known

* of **unbiased** ones, :math:`\mathbb E\,e = 0` and :math:`\mathbb E|e|^2 \le \omega|v|^2`, whatever happened before
  and whatever else chance decides in the round; those of different clients are independent, or not even that;
* of **contractive** ones, :math:`|e|^2 \le (1 - \delta)|v|^2`, always or in the mean.

Vectors that one client sends in one round share the draws of chance, so that nothing is assumed of these errors
together.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dualopt.arrays._checks import Typed, require
from dualopt.lab.proofs._formal import Ledger
from dualopt.methods.compressors import Identity
from dualopt.methods.participation import Round
from dualopt.spec import Spec, built

__all__ = ["AnyCompressor", "Contractive", "Plain", "Unbiased", "known_class"]

FEW, MANY = 1, 10**6
"""Numbers of coordinates: a compressor of which the same is known for both does not depend on them."""


@dataclass(frozen=True, kw_only=True)
class Unbiased(Typed):
    r"""All compressors with :math:`\mathbb E\,C(v) = v` and :math:`\mathbb E|C(v) - v|^2 \le \omega|v|^2`.

    Parameters
    ----------
    omega : float
        :math:`\omega`.
    independent : bool, default True
        Whether different clients draw independently.

    Raises
    ------
    ValueError
        If ``omega`` is negative or infinite.
    """

    omega: float
    independent: bool = True

    def __post_init__(self) -> None:
        require(0 <= self.omega < math.inf, "omega must be a finite number of at least 0", self.omega)

    @property
    def part(self) -> Any:
        """The largest ``E|C(v) - v|^2`` over ``|v|^2``."""
        return self.omega


@dataclass(frozen=True, kw_only=True)
class Contractive(Typed):
    r"""All compressors with :math:`|C(v) - v|^2 \le (1 - \delta)|v|^2`, always or in the mean.

    Parameters
    ----------
    delta : float
        :math:`\delta`.

    Raises
    ------
    ValueError
        If ``delta`` is not in (0, 1].
    """

    delta: float

    def __post_init__(self) -> None:
        require(0 < self.delta <= 1, "delta must lie in (0, 1]", self.delta)

    @property
    def part(self) -> Any:
        """The largest ``|C(v) - v|^2`` over ``|v|^2``."""
        return 1 - self.delta


CLASSES: dict[str, Any] = {"unbiased": Unbiased, "contractive": Contractive}
"""The classes by name."""


def known_class(compressor: Any, n_clients: int, dimension: int | None = None) -> Unbiased | Contractive | None:
    """Return what is known of a compressor that is given as such, as text or as a class; None for no compression.

    Raises
    ------
    ValueError
        If the text is wrong; if what is known depends on the number of coordinates and that is not given, or does not
        fit it; if a biased compressor does not say how it contracts.

    Examples
    --------
    >>> known_class("rand-k=2", 3, dimension=8), known_class("unbiased=0.5", 3), known_class("identity", 3)
    (Unbiased(omega=3.0, independent=True), Unbiased(omega=0.5, independent=True), None)
    >>> known_class("rounding=2", 3, dimension=5), known_class("cohorts=1", 3)
    (Contractive(delta=0.5), Unbiased(omega=2.0, independent=False))
    """
    if isinstance(compressor, str):
        spec = Spec.parse(compressor, "compressor")
        own = CLASSES.get(spec.name)
        compressor = built(spec, "compressor") if own is None else spec.made(own, f"compressor {spec.name}")
    if compressor is None or isinstance(compressor, Identity):
        return None
    if not isinstance(compressor, Unbiased | Contractive):
        compressor = _known(compressor, n_clients, dimension)
    return compressor if compressor.part > 0 else None


def _known(compressor: Any, n_clients: int, dimension: int | None) -> Unbiased | Contractive:
    """Return what a compressor says of itself."""
    says: Callable[..., float] | None = compressor.omega if compressor.unbiased else getattr(compressor, "delta", None)
    if says is None:
        raise ValueError("compressor must say by delta how it contracts, where it is biased.")
    if dimension is None:
        try:
            same = len({says((d,), n_clients) for d in (FEW, MANY)}) == 1
        except ValueError:  # it does not fit so few
            same = False
        require(same, "dimension must be given: what is known of the compressor depends on it")
        dimension = FEW
    number = says((dimension,), n_clients)
    if not compressor.unbiased:
        return Contractive(delta=number)
    return Unbiased(omega=number, independent=getattr(compressor, "independent", False))


@dataclass(frozen=True)
class AnyCompressor:
    """All compressors of a class, of which new vectors arrive."""

    kind: Unbiased | Contractive
    ledger: Ledger | None = field(default=None, compare=False, repr=False)
    time: int = 0  # which round it is, where several are played

    @property
    def unbiased(self) -> bool:
        """Whether the mean of what arrives is what was to be sent."""
        return isinstance(self.kind, Unbiased)

    def omega(self, shape: tuple[int, ...], n_clients: int) -> Any:
        """Return ``omega``; 0 of those that contract."""
        return self.kind.omega if isinstance(self.kind, Unbiased) else 0.0

    def compress(self, x: np.ndarray, round: Round) -> np.ndarray:
        """Return what arrives: new vectors, but of zero."""
        ledger = self.ledger
        assert ledger is not None
        rows = zip(round.clients, x, strict=True)
        return np.stack([v + ledger.error(j, v, self.kind.part, self.time) for j, v in rows])


@dataclass(frozen=True)
class Plain:
    """Everything arrives, or so many times of it; both ends take ``1/(1 + omega)``, and memories are kept."""

    variance: Any = 0.0
    times: tuple[float, ...] = ()  # for each client; once when empty

    def omega(self, shape: tuple[int, ...], n_clients: int) -> Any:
        """Return the number that was given."""
        return self.variance

    def compress(self, x: np.ndarray, round: Round) -> np.ndarray:
        """Return ``x``, or multiples of its rows."""
        if not self.times:
            return x
        return np.array([self.times[j] for j in round.clients])[:, None] * x
