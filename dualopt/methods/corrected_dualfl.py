"""DualFL that uploads dual-corrected points (Park and Xu, Section 6 with inexact local solutions)."""

from __future__ import annotations

from dataclasses import dataclass

from dualopt.methods._dual_corrected import Corrected
from dualopt.methods.dualfl import DualFL
from dualopt.solvers.stopping import GradientReduction, Stop

__all__ = ["CorrectedDualFL"]


@dataclass(frozen=True, kw_only=True)
class CorrectedDualFL(Corrected, DualFL):
    r"""DualFL with the dual-corrected points in place of the local solutions :math:`\theta_j`.

    They are :math:`\theta_j - r_j/\nu` with the residuals :math:`r_j = \nabla f_j(\theta_j) - \nu\zeta_j`. For them the
    inexact theorems hold at every accuracy (the gap (3.6) of a plain point is usually infinite). Local solvers start
    from the plain one: the correction is a step :math:`1/\nu`, far too long to start from. With exact local solutions
    both are the same; with others the plain point converges faster in practice.

    Parameters
    ----------
    rho, nu, solver
        As in :class:`dualopt.methods.DualFL`.
    stop : Stop
        As in :class:`dualopt.methods.Algorithm`.

    Raises
    ------
    ValueError
        As from :class:`dualopt.methods.DualFL`, and if the solver does not know the local gradient where it ends.

    Examples
    --------
    >>> CorrectedDualFL(rho=0.1, nu=0.5).rho
    0.1
    """

    theorems = DualFL.theorems

    stop: Stop = GradientReduction()  # a correction multiplies what is left by 1/nu
