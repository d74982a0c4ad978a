"""A-FedPDSAM: A-FedPD with sharpness-aware local steps (Algorithm 2 of its paper)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from dualopt.methods._base import AUTO
from dualopt.methods._parameters import require_plain_steps, steps_with
from dualopt.methods._sharpness import Sharp
from dualopt.methods.a_fedpd import AFedPD
from dualopt.solvers import SGD, Gradient

__all__ = ["AFedPDSAM"]


@dataclass(frozen=True, kw_only=True)
class AFedPDSAM(Sharp, AFedPD):
    r"""A-FedPD whose clients follow the gradient at an adversarial neighbour of their model.

    The gradient of the loss, not of the dual and proximal terms, is taken at
    :math:`\theta_j + r\, g/(|g| + \epsilon)` with :math:`g = \nabla f_j(\theta_j)`, on the same rows. This is no
    gradient of a function, so only solvers that take plain steps suit: ``Gradient`` or ``SGD``, a number of steps.
    The fixed point is not the minimiser of ``E``.

    Parameters
    ----------
    rho, solver, stop
        As in :class:`dualopt.methods.AFedPD`; ``stop`` is a number of steps, 10 when not given.
    radius : float, default 0.1
        ``r``.
    epsilon : float, default 1e-2
        Keeps the neighbour defined where the gradient vanishes.

    Raises
    ------
    ValueError
        If a parameter is not positive, or the solver takes other steps.

    Examples
    --------
    >>> AFedPDSAM(rho=0.1).radius
    0.1
    """

    solver: Annotated[Gradient | SGD, require_plain_steps, steps_with("rho")] = AUTO
