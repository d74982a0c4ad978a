"""Wrong variants of SCAFFOLD, FedAvg, FedProx, gradient descent, L-BFGS and Newton-CG, which the papers compare."""

from __future__ import annotations

from dualopt.methods import DistributedLBFGS, DistributedNewtonCG, FedAvg, FedProx, GradientDescent, Scaffold
from theory.mutations._edits import Variant, edit

__all__ = ["MUTATIONS"]

SCAFFOLD, FEDAVG, FEDPROX = "scaffold_fixed_point", "fedavg_bias", "fedprox_bias"
DESCENT, LBFGS, NEWTON = "gradient_descent_contraction", "lbfgs_is_central", "newton_cg_is_central"
OVER_ALL = ("Server(mean), mean", "Server(round.fraction * mean), round.fraction * mean")
CONTROLS = (Scaffold, "local", "linear=message.control - c.control")
MUTATIONS: dict[str, Variant] = {
    "SCAFFOLD: controls swapped": edit(*CONTROLS, "linear=c.control - message.control", caught=SCAFFOLD),
    "SCAFFOLD: 1/P for 1/N": edit(Scaffold, "server", "round.fraction * mean", "mean", caught=SCAFFOLD),
    "SCAFFOLD: c forgotten in c_j": edit(
        Scaffold, "local", "c.control - message.control - moved", "c.control - moved", caught=SCAFFOLD
    ),
    "SCAFFOLD: no controls": edit(
        *(*CONTROLS, "linear=0.0 * c.control"),
        *("local", "Client(control), Upload(moved, control - c.control)", "c, Upload(moved, 0.0 * control)"),
        caught=SCAFFOLD,
    ),
    "FedAvg: a step more": edit(
        FedAvg,
        "local",
        "start=message",
        "start=message, stop=type(self.stop)(steps=self.stop.steps + 1)",
        caught=FEDAVG,
    ),
    "FedAvg: 1/N for 1/P": edit(FedAvg, "server", *OVER_ALL, caught=FEDAVG),
    "FedProx: half the weight": edit(FedProx, "local", "weight=self", "weight=0.5 * self", caught=FEDPROX),
    "FedProx: proximal term at zero": edit(FedProx, "local", "center=message", "center=0.0 * message", caught=FEDPROX),
    "FedProx: 1/N for 1/P": edit(FedProx, "server", *OVER_ALL, caught=FEDPROX),
    "gradient descent: a client too many": edit(
        *(GradientDescent, "server", "* mean", "* mean * round.n_clients / (round.n_clients + 1)"), caught=DESCENT
    ),
    "gradient descent: uphill": edit(
        GradientDescent, "server", "theta - self.step", "theta + self.step", caught=DESCENT
    ),
    "gradient descent: twice the step": edit(GradientDescent, "server", "* mean", "* 2.0 * mean", caught=DESCENT),
    "L-BFGS: nothing is refused": edit(
        DistributedLBFGS,
        "server",
        "not accepts(server.value, server.gradient, server.step, mean)",
        "False",
        caught=LBFGS,
    ),
    "L-BFGS: wrong sign of y": edit(
        *(DistributedLBFGS, "server", "mean.gradient - server.gradient", "server.gradient - mean.gradient"),
        caught=LBFGS,
    ),
    "L-BFGS: values of one client": edit(
        *(DistributedLBFGS, "local", "Upload(found.f,", "Upload(0.0 * found.f + found.f[:1],"), caught=LBFGS
    ),
    "Newton-CG: the Hessian of one client": edit(
        *(DistributedNewtonCG, "local", "oracle.mu), product)", "oracle.mu), 0.0 * product + product[:1])"),
        caught=NEWTON,
    ),
    "Newton-CG: old Hessians": edit(
        *(DistributedNewtonCG, "local", "return Client(message.vector), oracle.sent", "return c, oracle.sent"),
        caught=NEWTON,
    ),
}
