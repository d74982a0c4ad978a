"""FedDynSAM: FedDyn with sharpness-aware local steps (the code of FedSpeed's authors)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from dualopt.methods._base import AUTO
from dualopt.methods._parameters import require_plain_steps, steps_with
from dualopt.methods._sharpness import Sharp
from dualopt.methods.feddyn import FedDyn
from dualopt.solvers import SGD, Gradient

__all__ = ["FedDynSAM"]


@dataclass(frozen=True, kw_only=True)
class FedDynSAM(Sharp, FedDyn):
    r"""FedDyn whose clients follow the gradient at an adversarial neighbour of their model.

    The gradient of the loss, not of the memory and proximal terms, is taken at
    :math:`\theta_j + r\, g/(|g| + \epsilon)` with :math:`g = \nabla f_j(\theta_j)`, on the same rows. This is no
    gradient of a function, so only solvers that take plain steps suit: ``Gradient`` or ``SGD``, a number of steps.
    The fixed point is not the minimiser of ``E``.

    This is what the published code of FedSpeed's authors runs, who compare with it in the A-FedPD paper: their server
    adds the mean of all duals to that of the active models. The box of their paper takes the active duals alone:
    :class:`dualopt.methods.FedSpeed`.

    Parameters
    ----------
    alpha, fraction, solver, stop
        As in :class:`dualopt.methods.FedDyn`; ``stop`` is a number of steps, 10 when not given.
    radius : float, default 0.1
        ``r``.
    epsilon : float, default 1e-2
        Keeps the neighbour defined where the gradient vanishes; 1e-7 in the authors' code.

    Raises
    ------
    ValueError
        If a parameter is out of range, or the solver takes other steps.

    Examples
    --------
    >>> FedDynSAM(alpha=0.1).radius
    0.1
    """

    solver: Annotated[Gradient | SGD, require_plain_steps, steps_with("alpha")] = AUTO
