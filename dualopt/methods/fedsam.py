"""FedSAM: federated averaging of sharpness-aware steps (Qu et al. 2022; recalled)."""

from __future__ import annotations

from dataclasses import dataclass

from dualopt.arrays._checks import Positive
from dualopt.methods._base import AUTO
from dualopt.methods._parameters import PlainSteps
from dualopt.methods._sharpness import Sharp
from dualopt.methods.fedavg import FedAvg

__all__ = ["FedSAM"]


@dataclass(frozen=True, kw_only=True)
class FedSAM(Sharp, FedAvg):
    r"""FedAvg whose clients follow the gradient at an adversarial neighbour of their model.

    .. math::
        y_j &\leftarrow y_j - s\,\nabla f_j\Bigl(y_j + r\,\frac{g}{|g| + \epsilon}\Bigr), \quad g = \nabla f_j(y_j),
        \quad K \text{ times from } \theta && j \text{ active} \\
        \theta^+ &= \tfrac1P \textstyle\sum_{\text{active}} y_j

    Both gradients use the same rows, so that a step costs two, as solvers count. One vector travels in each direction.
    This is no gradient of a function, so only solvers that take plain steps suit. Its fixed points are not the
    minimisers of ``E`` unless the clients agree, even with one step, and no theorem of this package covers it. The
    paper was not at hand: the step is as the A-FedPD paper, which compares with it, describes such methods.

    Parameters
    ----------
    solver : Gradient or SGD, optional
        The local steps; suggested: ``Gradient(step=1/max L)``.
    stop : Stop
        A number of steps, 10 when not given.
    radius : float, default 0.05
        ``r``; the default is the value tuned in Table 3 of the A-FedPD paper.
    epsilon : float, default 1e-2
        Keeps the neighbour defined where the gradient vanishes.

    Raises
    ------
    ValueError
        If ``radius`` or ``epsilon`` is not positive, or the solver takes other steps.

    Examples
    --------
    >>> FedSAM().radius
    0.05
    """

    solver: PlainSteps = AUTO
    radius: Positive = 0.05

    without_theorem = FedAvg.without_theorem
