"""Wrong variants of SCAFFOLD, FedAvg, FedProx, gradient descent, L-BFGS and Newton-CG, which the papers compare."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from dualopt.methods import DistributedLBFGS, DistributedNewtonCG, FedAvg, FedProx, GradientDescent, Scaffold
from dualopt.solvers.stopping import Steps
from theory._cases import Case
from theory.mutations._becomes import becomes

__all__ = ["MUTATIONS"]


class ControlsSwapped(Scaffold):
    """``c_j - c`` for ``c - c_j``."""

    def local(self, clients, message, oracle, round):
        turned = clients._replace(control=2 * message.control - clients.control)
        new, upload = super().local(turned, message, oracle, round)
        return new, upload._replace(control=new.control - clients.control)


class ActiveForAll(Scaffold):
    """``1/P`` for ``1/N`` in the control of the server."""

    def server(self, server, mean, round):
        return super().server(server, mean._replace(control=mean.control / round.fraction), round)


class ServerControlForgotten(Scaffold):
    """``c_j + (theta - y_j)/(K s)``."""

    def local(self, clients, message, oracle, round):
        new, upload = super().local(clients, message, oracle, round)
        control = new.control + message.control
        return new._replace(control=control), upload._replace(control=control - clients.control)


class NoControls(Scaffold):
    """FedAvg."""

    def local(self, clients, message, oracle, round):
        nothing = message._replace(control=0 * message.control)
        new, upload = super().local(clients._replace(control=0 * clients.control), nothing, oracle, round)
        return new._replace(control=clients.control), upload._replace(control=0 * upload.control)


class StepMore(FedAvg):
    def local(self, clients, message, oracle, round):
        return clients, oracle.solve(start=message, stop=Steps(steps=self.stop.steps + 1)).theta  # pyright: ignore[reportAttributeAccessIssue]


class OverAll(FedAvg):
    """The sum over the active clients divided by N."""

    def server(self, server, mean, round):
        return super().server(server, round.fraction * mean, round)


class OverAllProx(FedProx):
    """The sum over the active clients divided by N."""

    def server(self, server, mean, round):
        return super().server(server, round.fraction * mean, round)


class HalfTheWeight(FedProx):
    """``(w/4)|.|^2``."""

    def local(self, clients, message, oracle, round):
        return clients, oracle.solve(start=message, weight=0.5 * self.mu_prox, center=message).theta


class NearZero(FedProx):
    """The proximal term around zero for that around the model."""

    def local(self, clients, message, oracle, round):
        return clients, oracle.solve(start=message, weight=self.mu_prox, center=0 * message).theta


class OverN(GradientDescent):
    """A mean over one client more than there are."""

    def server(self, server, mean, round):
        return super().server(server, mean * round.n_clients / (round.n_clients + 1), round)


class TwiceTheStep(GradientDescent):
    def server(self, server, mean, round):
        return super().server(server, 2.0 * mean, round)


class Ascent(GradientDescent):
    def server(self, server, mean, round):
        return super().server(server, -mean, round)


class NotShortened(DistributedLBFGS):
    """A refused step is accepted."""

    def server(self, server, mean, round):
        return super().server(server._replace(value=np.asarray(np.inf)), mean, round)


class GradientsSwapped(DistributedLBFGS):
    """``y`` with the wrong sign."""

    def server(self, server, mean, round):
        new, message = super().server(server._replace(y=tuple(-y for y in server.y)), mean, round)
        return new, message


class FirstClientsValue(DistributedLBFGS):
    """The value of the first client for the mean."""

    def local(self, clients, message, oracle, round):
        new, upload = super().local(clients, message, oracle, round)
        return new, upload._replace(value=0 * upload.value + upload.value[:1])


class FirstClientsHessian(DistributedNewtonCG):
    """The Hessian of the first client for the mean."""

    def local(self, clients, message, oracle, round):
        new, upload = super().local(clients, message, oracle, round)
        first = upload.gradient[:1] if message.product else upload.gradient
        return new, upload._replace(gradient=np.broadcast_to(first, upload.gradient.shape))


class ProductAtTheStart(DistributedNewtonCG):
    """Hessians at the point where the run started."""

    def local(self, clients, message, oracle, round):
        _, upload = super().local(clients, message, oracle, round)
        return clients, upload


MUTATIONS: dict[str, Callable[[Case], Case]] = {
    "SCAFFOLD: controls swapped": partial(becomes, ControlsSwapped, base=Scaffold),
    "SCAFFOLD: 1/P for 1/N": partial(becomes, ActiveForAll, base=Scaffold),
    "SCAFFOLD: c forgotten in c_j": partial(becomes, ServerControlForgotten, base=Scaffold),
    "SCAFFOLD: no controls": partial(becomes, NoControls, base=Scaffold),
    "FedAvg: a step more": partial(becomes, StepMore, base=FedAvg),
    "FedAvg: 1/N for 1/P": partial(becomes, OverAll, base=FedAvg),
    "FedProx: half the weight": partial(becomes, HalfTheWeight, base=FedProx),
    "FedProx: proximal term at zero": partial(becomes, NearZero, base=FedProx),
    "FedProx: 1/N for 1/P": partial(becomes, OverAllProx, base=FedProx),
    "gradient descent: a client too many": partial(becomes, OverN, base=GradientDescent),
    "gradient descent: uphill": partial(becomes, Ascent, base=GradientDescent),
    "gradient descent: twice the step": partial(becomes, TwiceTheStep, base=GradientDescent),
    "L-BFGS: nothing is refused": partial(becomes, NotShortened, base=DistributedLBFGS),
    "L-BFGS: wrong sign of y": partial(becomes, GradientsSwapped, base=DistributedLBFGS),
    "L-BFGS: values of one client": partial(becomes, FirstClientsValue, base=DistributedLBFGS),
    "Newton-CG: the Hessian of one client": partial(becomes, FirstClientsHessian, base=DistributedNewtonCG),
    "Newton-CG: old Hessians": partial(becomes, ProductAtTheStart, base=DistributedNewtonCG),
}
