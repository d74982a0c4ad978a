"""FedSplit with the model that its paper reports, the consensus (Pathak and Wainwright 2020; recalled)."""

from __future__ import annotations

from dataclasses import dataclass

from dualopt.arrays.xp import Array
from dualopt.methods.fedsplit import FedSplit, Server
from dualopt.methods.participation import Round

__all__ = ["ConsensusFedSplit"]


@dataclass(frozen=True, kw_only=True)
class ConsensusFedSplit(FedSplit):
    r"""FedSplit whose model is :math:`\bar z^+`, the mean of the :math:`z_j`; the clients' work is the same.

    In the worst case this model is better than that of :class:`dualopt.methods.FedSplit`, the mean of the :math:`x_j`,
    early on it is mostly worse. Parameters, theorems and start are those of FedSplit.

    Examples
    --------
    >>> ConsensusFedSplit(step=0.1).step
    0.1
    """

    theorems = FedSplit.theorems

    def server(self, server: Server, mean: Array, round: Round) -> tuple[Server, Array]:
        """Average as FedSplit does."""
        _, consensus = super().server(server, mean, round)
        return Server(consensus, consensus), consensus
