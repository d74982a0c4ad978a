"""An objective with a regulariser: the composite problem ``min E + g``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from dualopt.arrays.xp import Array
from dualopt.objectives.objective import OPTIONAL_MEMBERS
from dualopt.objectives.wrapper import ObjectiveWrapper
from dualopt.regularisers import WithoutIntercept, Zero
from dualopt.spec import built

__all__ = ["Composite", "without_regulariser"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Composite(ObjectiveWrapper):
    r"""The clients' ``f_j`` together with a convex regulariser ``g`` of the model.

    .. math:: \min_\theta \; E(\theta) + g(\theta), \qquad E(\theta) = \frac1N \sum_j f_j(\theta)

    Values, gradients and constants are those of the ``f_j``, and so is everything else that they offer: ``g`` belongs
    to the server. Methods whose ``supports`` has "regulariser" treat it by its proximal map; energies and certificates
    include it.

    Parameters
    ----------
    objective : Objective
        The ``f_j``.
    regulariser : Regulariser or str
        ``g``, or its name and weight, such as "l1=0.01". Of clients with a free intercept it is that of the other
        weights, :class:`dualopt.regularisers.WithoutIntercept`.

    Raises
    ------
    ValueError
        If the objective has a regulariser already.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.methods import FedDR
    >>> from dualopt.runs.recording import run
    >>> from dualopt.objectives.quadratic import Quadratic
    >>> from dualopt.regularisers import L1
    >>> f = Quadratic(A=np.stack([np.eye(2), 3 * np.eye(2)]), b=np.array([[5.0, 1.0], [3.0, 0.0]]))
    >>> trace = run(FedDR(), Composite(objective=f, regulariser=L1(weight=1.0)), rounds=60)
    >>> trace.theta.round(6).tolist(), round(float(trace["energy"][-1]), 6)
    ([1.5, 0.0], -2.25)
    """

    forwarded: ClassVar[frozenset[str]] = frozenset(OPTIONAL_MEMBERS)

    objective: Any
    regulariser: Any = field()  # without field() the default of the base class would be taken

    @property
    def nonnegative(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether every ``f_j`` is at least 0."""
        return self.objective.nonnegative

    @property
    def partial_mu(self) -> Array:
        """Strong convexity constants of the ``f_j`` in all but a free intercept, shape ``(N,)``."""
        return self.objective.partial_mu

    def __post_init__(self) -> None:
        object.__setattr__(self, "regulariser", built(self.regulariser, "regulariser"))
        if self.objective.regulariser != Zero():
            raise ValueError("objective has a regulariser already.")
        if self.objective.free_intercept and not isinstance(self.regulariser, WithoutIntercept):
            object.__setattr__(self, "regulariser", WithoutIntercept(regulariser=self.regulariser))


def without_regulariser(objective: Any) -> Any:
    """Return the ``f_j`` alone: the objective of the clients.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.objectives.quadratic import Quadratic
    >>> from dualopt.regularisers import L1
    >>> f = Quadratic(A=np.ones((1, 1, 1)), b=np.zeros((1, 1)))
    >>> without_regulariser(Composite(objective=f, regulariser=L1(weight=1.0))) is f is without_regulariser(f)
    True
    """
    return objective.objective if isinstance(objective, Composite) else objective
