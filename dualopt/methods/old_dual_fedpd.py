"""FedPD as its authors' published code has it: with the dual of before the round in what is uploaded."""

from __future__ import annotations

from dataclasses import dataclass

from dualopt.arrays.xp import Array
from dualopt.methods.fedpd import Client, FedPD
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import Round

__all__ = ["OldDualFedPD"]


@dataclass(frozen=True, kw_only=True)
class OldDualFedPD(FedPD):
    r"""FedPD with :math:`x_{0,j}^+ = \theta_j + \eta\lambda_j` for :math:`\theta_j + \eta\lambda_j^+`.

    The fixed points are those of FedPD, the iterates are not. Parameters and start are those of
    :class:`dualopt.methods.FedPD`.

    Examples
    --------
    >>> OldDualFedPD(eta=0.1).eta
    0.1
    """

    without_theorem = "Theorem 1 needs the new dual in what is uploaded"

    def local(self, c: Client, message: Array, oracle: Oracle, round: Round) -> tuple[Client, Array]:
        """Do what FedPD does; go on from, and upload, the copy that the old dual makes."""
        new, _ = super().local(c, message, oracle, round)
        x0 = new.theta + self.eta * c.dual
        return new._replace(x0=x0), x0
