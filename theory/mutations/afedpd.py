"""Wrong variants of A-FedPD and FedADMM, and of the methods of an identity."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dualopt.methods import AFedPD, ConsensusFedSplit, FedADMM, FedDR, FedPD, OldDualFedPD
from theory.afedpd._pairs import Neighbours, Rows
from theory.mutations import feddyn
from theory.mutations._edits import OtherMethodError, Variant, becomes, change, edit, parameters

__all__ = ["MUTATIONS"]

DUAL = (AFedPD, "local", "dual + self.rho * (theta - message.theta)")
WHOLE = ("local", "c.dual + message.dual", "c.dual", "receive", "c.dual - message.dual", "c.dual")  # duals that stay


class LongRows(Rows):
    """Steps thirty times as long as the theory assumes."""

    def __call__(self, problem, start, stop, solver_state=(), round=None):
        """Take the steps."""
        longer = Rows(step=30.0 * self.step, decayed=self.decayed, draws=self.draws)
        return longer(problem, start, stop, solver_state, round)


def neighbours(case: Any) -> Neighbours:
    """Return the case, if it is about neighbouring data sets."""
    if not isinstance(case, Neighbours):
        raise OtherMethodError("neighbouring data sets.")
    return case


def all_rows_differ(case: Any) -> Neighbours:
    """Give the second data set the opposite labels throughout."""
    one, other = neighbours(case).objectives
    groups = tuple(replace(group, y=-group.y, cache={}) for group in other.rows.groups)
    return replace(case, objectives=(one, replace(other, rows=replace(other.rows, groups=groups))))


def longer_steps(case: Any) -> Neighbours:
    """Let the local solvers take steps that are too long."""
    solver = neighbours(case).algorithm.solver
    return replace(case, algorithm=replace(case.algorithm, solver=LongRows(step=solver.step, decayed=solver.decayed)))


def _of(*names: str) -> str:
    return " ".join(f"afedpd_{name}" for name in names)


DESCENT = _of("descent", "theorem_1", "theorem_1_partial")
EXACT = f"{DESCENT} {_of('descent_inexact', 'remark_1_1', 'theorem_1_inexact', 'range_of_rho')}"
MUTATIONS: dict[str, Variant] = {
    "virtual update dropped": edit(
        *(AFedPD, *WHOLE),
        caught=f"{_of('lemma_3', 'recursion')} identity_mean_dual identity_virtual_updates",
    ),
    "sign of the dual": edit(
        *(AFedPD, "local", "dual + self.rho", "dual - self.rho"), caught=f"{EXACT} {_of('lemma_1', 'lemma_3')}"
    ),
    "dual step dropped": edit(*DUAL, "dual", caught=f"{DESCENT} {_of('descent_inexact', 'range_of_rho', 'recursion')}"),
    "proximal term halved": edit(
        *(AFedPD, "local", "weight=self.rho", "weight=0.5 * self.rho"),
        caught=f"{DESCENT} {_of('descent_inexact', 'lemma_2', 'theorem_1_inexact')}",
    ),
    "1/N for 1/P": edit(
        *(AFedPD, "server", "dual = server.dual", "mean = round.fraction * mean; dual = server.dual"),
        caught=_of("lemma_1", "lemma_3", "range_of_rho", "theorem_1_partial"),
    ),
    "no dual on the server": edit(
        *(AFedPD, "server", "theta = mean + dual / self.rho", "theta = mean"), caught=f"{EXACT} afedpd_lemma_3"
    ),
    "rho below its range": parameters(AFedPD, lambda method, case: {"rho": 0.14 * method.rho}, EXACT),
    "every row differs": change(all_rows_differ, _of("lemma_5", "recursion", "remark_2_1")),
    "steps too long": change(longer_steps, _of("lemma_5", "lemma_6", "recursion", "remark_2_1")),
    "every row differs, in long steps": change(lambda case: all_rows_differ(longer_steps(case)), "afedpd_theorem_2"),
    "slopes understated": change(
        lambda case: replace(neighbours(case), slope=0.1 * case.slope), _of("lemma_4", "lemma_6", "remark_2_1")
    ),
    "sign of the dual in FedADMM": edit(
        FedADMM, "local", "c.dual + self.rho", "c.dual - self.rho", caught="fedadmm_dual_drift"
    ),
    "FedADMM uploads no duals": edit(
        FedADMM, "local", " + (dual - c.dual) / self.rho", "", caught="fedadmm_dual_drift"
    ),
    "parenthesis of h dropped": feddyn.MUTATIONS["parenthesis of h dropped"].but("identity_full_participation"),
    "old dual": becomes(FedPD, lambda: OldDualFedPD, "identity_full_participation"),
    "eta off by one percent": parameters(
        *(FedDR, lambda method, case: {"eta": 1.01 * method.eta}),
        "identity_full_participation identity_fedadmm_feddr identity_fedsplit_feddr",
    ),
    "relaxation 1": parameters(FedDR, lambda method, case: {"relaxation": 1.0}, "identity_fedsplit_feddr"),
    "server step off": parameters(
        FedADMM, lambda method, case: {"server_step": 0.9}, "identity_full_participation identity_fedadmm_feddr"
    ),
    "mean dual not added": edit(
        AFedPD, "local", "c.dual + message.dual", "c.dual", caught="identity_mean_dual identity_virtual_updates"
    ),
    "mean dual not subtracted": edit(
        AFedPD, "receive", "c.dual - message.dual", "c.dual", caught="identity_mean_dual identity_virtual_updates"
    ),
    "steps of FedSplit doubled": parameters(
        ConsensusFedSplit, lambda method, case: {"step": 2.0 * method.step}, "identity_fedsplit_feddr"
    ),
}
