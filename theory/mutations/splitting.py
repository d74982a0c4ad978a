"""Wrong variants of Scaffnew, FedSplit, FedDR and 5GCS, which the papers compare."""

from __future__ import annotations

from typing import Any

from dualopt.methods import FedDR, FedSplit, FiveGCS, Scaffnew
from dualopt.methods.participation import CommunicateWithProbability, UniformSubset
from dualopt.solvers import Gradient
from dualopt.solvers.stopping import Steps
from theory.mutations._edits import OtherMethodError, Variant, change, edit, parameters

__all__ = ["MUTATIONS"]

STEP = (Scaffnew, "receive", "c.control + self.probability / step_of(self.solver) * (message - c.theta)")
CHANGE = (FiveGCS, "local", "self.tau * (message - y)")


def another_coin(case: Any) -> Any:
    """Communicate half as often as the update believes."""
    if type(case.algorithm) is not Scaffnew:
        raise OtherMethodError("a coin of Scaffnew.")
    return case.but(participation=CommunicateWithProbability(probability=0.5 * case.algorithm.probability))


def one_fewer(case: Any) -> Any:
    """Let a client be missing."""
    if type(case.algorithm) is not FedSplit:
        raise OtherMethodError("a client of FedSplit.")
    return case.but(participation=UniformSubset(size=case.n_clients - 1))


MUTATIONS: dict[str, Variant] = {
    "Scaffnew: control added": edit(
        Scaffnew, "local", "linear=-c.control", "linear=c.control", caught="scaffnew_one_step"
    ),
    "Scaffnew: control step turned": edit(
        Scaffnew, "receive", "c.control + self", "c.control - self", caught="scaffnew_one_step"
    ),
    "Scaffnew: 1/s for p/s": edit(
        Scaffnew, "receive", "self.probability / step_of", "1.0 / step_of", caught="scaffnew_one_step"
    ),
    "Scaffnew: no control step": edit(*STEP, "c.control", caught="scaffnew_one_step"),
    "Scaffnew: another coin": change(another_coin, "scaffnew_one_step"),
    "FedSplit: half the step": edit(
        FedSplit, "local", "2.0 * (x - message)", "(x - message)", caught="fedsplit_contraction"
    ),
    "FedSplit: no reflection": edit(
        FedSplit, "local", "center=2.0 * message - c.z", "center=message", caught="fedsplit_contraction"
    ),
    "FedSplit: three times the step": parameters(
        FedSplit, lambda method, case: {"step": 3.0 * method.step}, "fedsplit_contraction"
    ),
    "FedSplit: a client missing": change(one_fewer, "fedsplit_contraction"),
    "FedDR: 1.2 times the relaxation": edit(
        FedDR, "local", "self.relaxation * (message", "1.2 * self.relaxation * (message", caught="feddr_contraction"
    ),
    "FedDR: points not reflected": edit(
        FedDR, "local", "reflected = 2.0 * x - y", "reflected = x", caught="feddr_contraction"
    ),
    "FedDR: 1/P for 1/N": edit(FedDR, "server", "round.fraction * mean", "mean", caught="feddr_contraction"),
    "5GCS: N/C forgotten": edit(
        *(FiveGCS, "server", "self.gamma * round.n_clients", "self.gamma * round.n_active"), caught="fivegcs_one_step"
    ),
    "5GCS: model not corrected": edit(
        *(FiveGCS, "server", "self.gamma * round.n_clients", "0.0"), caught="fivegcs_one_step"
    ),
    "5GCS: dual N times too large": edit(*(*CHANGE, "N * self.tau * (message - y)"), caught="fivegcs_one_step"),
    "5GCS: wrong sign of the dual": edit(FiveGCS, "local", "- N * c.dual", "+ N * c.dual", caught="fivegcs_one_step"),
    "5GCS: far from local solutions": parameters(
        FiveGCS, lambda method, case: {"solver": Gradient(step=1e-4), "stop": Steps(steps=1)}, "fivegcs_one_step"
    ),
}
