"""Wrong variants of A-FedPD and FedADMM, and of the methods of an identity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from dualopt.methods import AFedPD, FedADMM, FedDR, FedDyn, FedPD, FedSplit, LazyAFedPD
from dualopt.methods.participation import UniformSubset
from theory.afedpd._pairs import Neighbours, Rows
from theory.mutations._becomes import becomes, like

__all__ = ["MUTATIONS"]


class NoVirtualUpdate(AFedPD):
    def receive_inactive(self, clients, message):
        return clients


class WrongSign(AFedPD):
    """The dual of an active client falls where it should rise."""

    def local(self, clients, message, oracle, round):
        new, theta = super().local(clients, message, oracle, round)
        return new._replace(dual=2 * clients.dual - new.dual), theta


class NoDualStep(AFedPD):
    def local(self, clients, message, oracle, round):
        new, theta = super().local(clients, message, oracle, round)
        return new._replace(dual=clients.dual), theta


class WeakProximalTerm(AFedPD):
    """Half of rho in the local problem, all of it in the dual step."""

    def local(self, clients, message, oracle, round):
        center = message.theta
        theta = oracle.solve(start=center, linear=clients.dual, weight=0.5 * self.rho, center=center).theta
        return clients._replace(dual=clients.dual + self.rho * (theta - center)), theta


class AverageOverAll(AFedPD):
    """The sum over the active clients divided by N."""

    def server(self, server, mean, round):
        return super().server(server, round.fraction * mean, round)


class NoDualOnServer(AFedPD):
    """The model is the mean of the active ones, without the mean dual."""

    def server(self, server, mean, round):
        new, message = super().server(server, mean, round)
        return new._replace(theta=mean), message._replace(theta=mean)


class LongRows(Rows):
    """Steps thirty times as long as the theory assumes."""

    def __call__(self, problem, start, stop, solver_state=(), round=None):
        longer = Rows(step=30.0 * self.step, decayed=self.decayed, draws=self.draws)
        return longer(problem, start, stop, solver_state, round)


class WrongSignADMM(FedADMM):
    def local(self, clients, message, oracle, round):
        new, change = super().local(clients, message, oracle, round)
        return new._replace(dual=2 * clients.dual - new.dual), change


class NoDualUploaded(FedADMM):
    """Changes of the models alone."""

    def local(self, clients, message, oracle, round):
        new, _ = super().local(clients, message, oracle, round)
        return new, new.theta - clients.theta


class NoParenthesis(FedDyn):
    """h - (alpha/N) sum theta_j + theta, the commonest slip."""

    def server(self, server, mean, round):
        h = server.h - self.alpha * round.fraction * mean + server.theta  # pyright: ignore
        theta = mean - h / self.alpha
        return type(server)(theta, h), theta


class NoCatchingUp(LazyAFedPD):
    def local(self, clients, message, oracle, round):
        return super().local(clients._replace(seen=clients.seen * 0 + message.dual), message, oracle, round)


def with_rho(factor: float, case: Any) -> Any:
    return replace(case, algorithm=replace(case.algorithm, rho=factor * case.rho))


def all_rows_differ(case: Neighbours) -> Neighbours:
    """Give the second data set the opposite labels throughout."""
    one, other = case.objectives
    groups = tuple(replace(group, y=-group.y, cache={}) for group in other.rows.groups)
    return replace(case, objectives=(one, replace(other, rows=replace(other.rows, groups=groups))))


def longer_steps(case: Neighbours) -> Neighbours:
    solver = case.algorithm.solver
    return replace(case, algorithm=replace(case.algorithm, solver=LongRows(step=solver.step, decayed=solver.decayed)))


def swap(old: type, new: Callable[[Any], Any], case: Any) -> Any:
    """One of the methods of an identity changed."""
    return replace(case, methods={k: new(m) if type(m) is old else m for k, m in case.methods.items()})


def some_active(case: Any) -> Any:
    """Two active clients in an identity."""
    return replace(case, methods=case.methods, participation=UniformSubset(size=2))


MUTATIONS: dict[str, Callable[[Any], Any]] = {
    "virtual update dropped": partial(becomes, NoVirtualUpdate),
    "sign of the dual": partial(becomes, WrongSign),
    "dual step dropped": partial(becomes, NoDualStep),
    "proximal term halved": partial(becomes, WeakProximalTerm),
    "1/N for 1/P": partial(becomes, AverageOverAll),
    "no dual on the server": partial(becomes, NoDualOnServer),
    "rho below its range": partial(with_rho, 0.14),
    "every row differs": all_rows_differ,
    "steps too long": longer_steps,
    "every row differs, in long steps": lambda case: all_rows_differ(longer_steps(case)),
    "slopes understated": lambda case: replace(case, slope=0.1 * case.slope),
    "sign of the dual in FedADMM": partial(becomes, WrongSignADMM),
    "FedADMM uploads no duals": partial(becomes, NoDualUploaded),
    "parenthesis of h dropped": partial(swap, FedDyn, partial(like, NoParenthesis)),
    "old dual": partial(swap, FedPD, lambda m: replace(m, old_dual=True)),
    "eta off by one percent": partial(swap, FedDR, lambda m: replace(m, eta=1.01 * m.eta)),
    "relaxation 1": partial(swap, FedDR, lambda m: replace(m, relaxation=1.0)),
    "server step off": partial(swap, FedADMM, lambda m: replace(m, server_step=0.9)),
    "no catching up": partial(swap, LazyAFedPD, partial(like, NoCatchingUp)),
    "no virtual update to be lazy about": partial(swap, AFedPD, partial(like, NoVirtualUpdate)),
    "averages of some": some_active,
    "steps of FedSplit doubled": partial(swap, FedSplit, lambda m: replace(m, step=2.0 * m.step)),
}
