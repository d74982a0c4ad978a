"""The base class: what a method of one's own gets from it, and what it is refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Optional

import numpy as np
import pytest

import dualopt.methods
from dualopt.engine.rounds import advance, initial_state, iterate
from dualopt.methods import AUTO, UNKNOWN, Algorithm, DualFL, FedDyn, FedPD, Scaffnew, Theorem
from dualopt.methods._base import parameters, require_complete
from dualopt.methods.participation import Full, UniformSubset, first_round
from dualopt.regularisers import L1
from dualopt.runs.recording import run
from dualopt.runs.reference import newton
from dualopt.solvers import Exact
from dualopt.spec.discover import discover
from tests.problems import logistic, quadratic


class Server(NamedTuple):
    theta: Any


class Client(NamedTuple):
    dual: Any


@dataclass(frozen=True, kw_only=True)
class Mine(Algorithm):
    """Method of multipliers with a common weight, in three functions."""

    weight: float = 1.0

    def init(self, theta0, copies):
        return Server(theta0), theta0, Client(0.0 * copies)

    def local(self, clients, message, oracle, round):
        theta = oracle.solve(start=message, linear=clients.dual, weight=self.weight, center=message).theta
        dual = clients.dual + self.weight * (theta - message)
        return Client(dual), theta + dual / self.weight

    def server(self, server, mean, round):
        return Server(mean), mean


def test_three_functions_are_a_method() -> None:
    f = logistic()
    trace = run(Mine(weight=0.1), f, rounds=200, tol=1e-9)
    best = newton(f).energy
    assert trace.status == "converged"
    assert np.all(trace["certificate"] >= trace["energy"] - best)
    assert trace["energy"][-1] - best <= 1e-9 * best


def test_what_a_method_does_not_define_is_said_or_does_nothing() -> None:
    f = quadratic()
    method = Mine().suggested(f)
    assert isinstance(method.solver, Exact)
    assert Mine(solver=Exact()).suggested(f) == Mine(solver=Exact())
    assert method.guarantee(f) == "none: no theorem of this package covers it"
    assert method.fixed_point(f, f.minimiser()) is UNKNOWN
    assert method.local_objective(f) is f
    method.check(f)
    assert (method.supports, method.receivers) == (frozenset(), frozenset())
    clients = object()
    assert method.receive(clients, None) is method.receive_inactive(clients, None) is clients
    with pytest.raises(ValueError, match="Mine does not support partial participation"):
        next(iterate(method, f, participation=UniformSubset(size=2)))


@pytest.mark.parametrize("step", ["init", "local", "server"])
def test_a_missing_step_is_named(step: str) -> None:
    members = {name: vars(Mine)[name] for name in ("init", "local", "server") if name != step}
    broken = type("Broken", (Algorithm,), members | {"weight": 1.0})
    with pytest.raises(NotImplementedError, match=rf"^Broken must define {step}\.$"):
        next(iterate(broken(), quadratic()))


def test_every_method_of_the_package_says_where_it_rests() -> None:
    f = quadratic()
    for kind in discover(dualopt.methods).values():
        assert kind().suggested(f).fixed_point(f, f.minimiser()) is not UNKNOWN


# Guarantees


def test_a_changed_step_loses_the_guarantee() -> None:
    f = quadratic()
    assert not DualFL().guarantee(f).startswith("none")

    class Changed(DualFL):
        def server(self, server, mean, round):
            return super().server(server, mean, round)

    class Further(Changed):
        """Nothing is changed here, but there was nothing to inherit."""

    assert Changed().guarantee(f) == "none: no theorem of this package covers it"
    assert Further().guarantee(f).startswith("none")
    assert not DualFL().guarantee(f).startswith("none")


@pytest.mark.parametrize("step", ["init", "local", "server", "receive", "receive_inactive", "local_objective"])
def test_every_step_counts(step: str) -> None:
    kind = type("Changed", (DualFL,), {step: getattr(DualFL, step)})
    assert kind().guarantee(quadratic()).startswith("none")


def test_own_theorems_and_an_unchanged_method_keep_theirs() -> None:
    f = quadratic()

    class Proved(DualFL):
        def server(self, server, mean, round):
            return super().server(server, mean, round)

        theorems = (Theorem(source="Mine", rate="at once"),)

    class Suggested(DualFL):
        """Other parameters are no other method."""

        def suggested(self, objective):
            return super().suggested(objective)

        def check(self, objective): ...

    assert Proved().guarantee(f) == "Mine: at once"
    assert Suggested().guarantee(f) == DualFL().guarantee(f)


# Who receives


@pytest.mark.parametrize(("step", "who"), [("receive", "active"), ("receive_inactive", "inactive")])
def test_whoever_does_something_with_the_message_receives_it(step: str, who: str) -> None:
    kind = type("Listening", (Mine,), {step: lambda self, clients, message: clients})
    assert kind.receivers == {who}
    assert type("Heir", (kind,), {}).receivers == {who}
    assert type("Mixed", (type("Other", (Mine,), {}), kind), {}).receivers == {who}
    assert type("Both", (kind,), {"receive": None, "receive_inactive": None}).receivers == {"active", "inactive"}
    assert type("Deaf", (kind,), {"receivers": frozenset()}).receivers == frozenset()


# Open parameters


@dataclass(frozen=True, kw_only=True)
class Open(Mine):
    """A parameter that nobody fills in, and one that may stay None."""

    length: float = AUTO
    bound: L1 | None = None


def test_an_open_parameter_is_refused_by_name() -> None:
    f = quadratic()
    sentence = r"^length must be given, or filled in by suggested\(objective\): it is open\.$"
    state = initial_state(Open(length=1.0, solver=Exact()), f)
    with pytest.raises(ValueError, match=sentence):
        advance(Open(solver=Exact()), f, state, first_round(5))
    with pytest.raises(ValueError, match=sentence):
        iterate(Open(), f)  # at once, not in the first round
    with pytest.raises(ValueError, match=sentence):
        run(Open(), f, rounds=1)
    assert len(run(Open(length=1.0), f, rounds=1)) == 2


@pytest.mark.parametrize(("method", "name"), [(FedPD(eta=0.1), "solver"), (FedDyn(solver=Exact()), "alpha")])
def test_open_parameters_of_the_package_are_refused_by_name(method, name: str) -> None:
    f = quadratic()
    state = initial_state(method.suggested(f), f)
    with pytest.raises(ValueError, match=rf"^{name} must be given"):
        advance(method, f, state, next(Full().rounds(5, seed=0)))


def test_an_optional_parameter_may_stay_open() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Limited(Mine):
        above: Optional[float] = None  # noqa: UP045
        below: float | None = None

    require_complete(Limited(solver=Exact()))
    with pytest.raises(ValueError, match=r"^solver must be given"):
        require_complete(Limited())


def test_parameters_of_the_method_come_before_its_solver_and_rule() -> None:
    assert list(parameters(DualFL)) == ["rho", "nu", "solver", "stop"]
    assert list(parameters(Scaffnew)) == ["probability", "solver"]
    assert list(parameters(Mine)) == ["weight", "solver", "stop"]


def test_words_that_no_class_knows_are_refused() -> None:
    with pytest.raises(TypeError, match="takes no keyword arguments"):

        class Odd(Mine, odd=True):
            pass
