"""What an objective built on another one passes on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

from dualopt.xp import Array

__all__ = ["OnTop"]


class OnTop:
    """Base of the dataclasses that change an ``objective`` and leave its clients and rows as they are.

    Optional members are there when the objective has them, so that ``hasattr`` tells the truth.
    """

    passed_on: ClassVar[frozenset[str]] = frozenset({"sizes", "draw", "initial", "gradient_cost"})
    """Optional members that the change does not touch."""

    objective: Any

    def __getattr__(self, name: str) -> Any:
        if name not in self.passed_on:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.objective, name)

    @property
    def n_clients(self) -> int:
        """Number ``N`` of clients."""
        return self.objective.n_clients

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the model ``theta``."""
        return self.objective.shape

    def zeros(self) -> Array:
        """Return the zero model, shape ``shape``."""
        return self.objective.zeros()

    def select(self, ids: Sequence[int]) -> Self:
        """Return the objective of the clients ``ids``."""
        return replace(self, objective=self.objective.select(ids))  # pyright: ignore[reportArgumentType]
