"""OptimizedDualFL that uploads dual-corrected points."""

from __future__ import annotations

from dataclasses import dataclass

from dualopt.methods._dual_corrected import Corrected
from dualopt.methods.optimized_dualfl import OptimizedDualFL

__all__ = ["CorrectedOptimizedDualFL"]


@dataclass(frozen=True, kw_only=True)
class CorrectedOptimizedDualFL(Corrected, OptimizedDualFL):
    r"""OptimizedDualFL with the points of :class:`dualopt.methods.CorrectedDualFL` for the :math:`\theta_j`.

    Parameters
    ----------
    rho, nu, solver, stop
        As in :class:`dualopt.methods.DualFL`.

    Raises
    ------
    ValueError
        As from :class:`dualopt.methods.CorrectedDualFL`.

    Examples
    --------
    >>> CorrectedOptimizedDualFL(rho=0.1, nu=0.5).rho
    0.1
    """

    theorems = OptimizedDualFL.theorems
