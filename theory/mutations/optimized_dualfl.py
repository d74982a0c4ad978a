"""Wrong variants of OptimizedDualFL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from dualopt.methods import OptimizedDualFL
from dualopt.methods.optimized_dualfl import coefficients
from theory._cases import Case
from theory.mutations._becomes import becomes

__all__ = ["MUTATIONS"]


class Shifted(OptimizedDualFL):
    """The coefficients of the next round."""

    shift = 1

    def server(self, server, mean, round):
        new, message = super().server(server, mean, round)
        A, b, c = 0.0, 0.0, 0.0
        for _ in range(max(round.n + self.shift, 0) + 1):
            A, b, c = coefficients(A, self.rho)
        return new, message._replace(b=b, c=c)


class Late(Shifted):
    shift = -1


class NoMomentum(OptimizedDualFL):
    def server(self, server, mean, round):
        new, message = super().server(server, mean, round)
        return new, message._replace(b=0.0, c=0.0)


class LostTerm(OptimizedDualFL):
    """c = 0, as in DualFL."""

    def server(self, server, mean, round):
        new, message = super().server(server, mean, round)
        return new, message._replace(c=0.0)


class WrongSign(OptimizedDualFL):
    """c subtracted."""

    def server(self, server, mean, round):
        new, message = super().server(server, mean, round)
        return new, message._replace(c=-message.c)


class Exchanged(OptimizedDualFL):
    """b and c in each other's place."""

    def server(self, server, mean, round):
        new, message = super().server(server, mean, round)
        return new, message._replace(b=message.c, c=message.b)


class OneClient(OptimizedDualFL):
    """The first client's point where the average belongs."""

    def local(self, c, message, oracle, round):
        clients, sent = super().local(c, message, oracle, round)
        return clients, np.broadcast_to(sent[:1], sent.shape)


class WrongSignOfStep(OptimizedDualFL):
    """theta_j - theta in the place of theta - theta_j."""

    def receive(self, c, message):
        v = c.zeta - message.theta + c.sent
        return c._replace(zeta=v + message.b * (v - c.v) + message.c * (v - c.zeta), v=v)


def greatest_mu(case: Case) -> Case:
    return replace(case, algorithm=replace(case.algorithm, nu=float(np.max(case.objective.mu))))


def least_smoothness(case: Case) -> Case:
    rho = case.algorithm.nu / float(np.min(case.objective.L))
    return replace(case, algorithm=replace(case.algorithm, rho=rho))


MUTATIONS: dict[str, Callable[[Case], Case]] = {
    "coefficients of the next round": partial(becomes, Shifted),
    "coefficients of the last round": partial(becomes, Late),
    "momentum dropped": partial(becomes, NoMomentum),
    "c dropped": partial(becomes, LostTerm),
    "sign of c": partial(becomes, WrongSign),
    "b and c exchanged": partial(becomes, Exchanged),
    "one client for the average": partial(becomes, OneClient),
    "sign of the step": partial(becomes, WrongSignOfStep),
    "nu = max mu_j": greatest_mu,
    "rho = nu/min L_j": least_smoothness,
}
