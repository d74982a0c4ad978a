r"""Averaging is biased: FedAvg ends where its local steps lead, which is not at the solution.

Claim: ``fedavg_bias``, the limit in closed form. It is the solution for one local step, or clients that agree.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from dualopt.methods import FedAvg
from dualopt.solvers import Gradient
from dualopt.solvers.stopping import Steps
from figures.lessons._charts import over_slider
from figures.lessons._parts import (
    AskPoint,
    Chapter,
    Derived,
    If,
    Line,
    Plane,
    Said,
    Slider,
    Spot,
    Theorem,
    Trail,
)
from figures.lessons._quantities import linear, squares
from figures.lessons._world import clients, dragged, on_clients, valleys_of
from theory._cases import Case
from theory.baselines.bias import enough, factor, fedavg_bias
from theory.limits import fedavg_limit

STEPS, ROUNDS = tuple(range(1, 49)), 10


@lru_cache(maxsize=256)
def _run(u: tuple[float, ...], K: int, rounds: int) -> Case:
    f = clients(np.array(u))
    method = FedAvg(solver=Gradient(step=1.0 / float(np.max(f.L))), stop=Steps(steps=K))
    return Case.of(method, f, rounds=rounds, name="FedAvg")


def fedavg(u: np.ndarray, *, K: int) -> Case:
    """Return FedAvg with K gradient steps of the length 1/L."""
    return _run(tuple(u), K, ROUNDS)


def until_it_rests(u: np.ndarray, *, K: int) -> Case:
    """Return it with as many rounds as the claim looks at."""
    f = clients(u)
    rounds = enough(factor(float(np.min(f.mu)) / float(np.max(f.L)), 1.0, K))
    return _run(tuple(u), K, rounds)


def models(u: np.ndarray, *, K: int) -> dict:
    """Measure where the model and those of the clients are, and where FedAvg ends."""
    case = fedavg(u, K=K)
    limit = fedavg_limit(case.objective, step=case.algorithm.solver.step, K=K)
    return {
        "model": linear(case.models(), rounds=True),
        "local": linear(case.local_models(), rounds=True),
        "limit": linear(limit),
        "square": squares(limit - case.theta),
    }


def solution(u: np.ndarray) -> dict:
    """Measure the minimiser of the mean."""
    return {"solution": linear(clients(u).minimiser())}


def approach(u: np.ndarray, *, K: int) -> dict:
    """Measure the squared distance of the model from its limit, and what the claim says of it."""
    case = fedavg(u, K=K)
    step = case.algorithm.solver.step
    limit = fedavg_limit(case.objective, step=step, K=K)
    shrinks = factor(step * case.mu, step * case.L, K) ** np.arange(1, ROUNDS + 1)
    return {"lhs": squares(case.models() - limit, rounds=True), "rhs": squares(shrinks[:, None] * limit, rounds=True)}


CHAPTER = Chapter(
    title="Averaging is biased",
    minutes=8,
    needs=(),
    drags=dragged(),
    sliders=(Slider(name="K", label="local steps K", values=STEPS, start=8),),
    rounds=ROUNDS,
    shown=ROUNDS,
    measures=(models, solution),
    derived={
        "bias": Derived(does="root", of=("square",)),
        "first": Derived(does="first", of=("bias", 1.0), over="K"),
    },
    plane=Plane(
        title="The plane of models, with two clients",
        marks=(
            *valleys_of(),
            Trail(of="model", label="FedAvg", ink="model", after=True),
            Spot(of="limit", label="its end", ink="model", shape="star", after=True),
            Spot(of="solution", label="solution θ*", shape="cross", after=True),
        ),
    ),
    chart=over_slider(
        "How far from the solution FedAvg ends, for every number of local steps",
        *("bias", "K"),
        label="distance",
        one="a distance of 1",
        x_label="local steps K",
        y_label="distance",
        top=2.0,
    ),
    ask=AskPoint(answer="limit", start=(1.0, 2.4)),
    box=(
        Line(who="server", does="send θ to both clients"),
        Line(who="client j", does="θⱼ ← θ, then K times θⱼ ← θⱼ − s ∇fⱼ(θⱼ)", now="θ₁ = {local.0}, θ₂ = {local.1}"),
        Line(who="server", does="θ ← ½ (θ₁ + θ₂)", now="θ = {model}"),
    ),
    said=(
        Said("Client 1 is best at {m1}, client 2 at {m2}. Your flag stands at {guess}.", after=False),
        Said(
            "With K = {K} local steps FedAvg ends at {limit}, {bias} away from the solution {solution}."
            " After round {n} its model is at {model}.",
            after=True,
        ),
        Said(
            "Of all numbers of steps from 1 to 48, {first} is the first one that ends at a distance of 1 or more.",
            (If("first", ">", 0),),
            after=True,
        ),
        Said("No number of steps up to 48 ends at a distance of 1.", (If("first", "none"),), after=True),
    ),
    theorems=(
        Theorem(
            label="the model approaches this end, and no other point",
            claim=fedavg_bias,
            case=until_it_rests,
            sides=approach,
            quantity="the squared distance from this end",
        ),
    ),
    beside=on_clients(rounds=ROUNDS),
)
