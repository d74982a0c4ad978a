r"""Duals that drift: FedADMM with a server step of its own choice on two clients that take turns, beside A-FedPD.

Claims: ``fedadmm_two_clients`` (where FedADMM ends, or that it diverges, in closed form) and ``afedpd_in_turn``
(A-FedPD stays).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from dualopt.methods import AFedPD, FedADMM
from dualopt.methods.participation import Schedule
from dualopt.objectives import Quadratic
from dualopt.solvers import Exact
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
from figures.lessons._quantities import constant, linear, squares
from figures.lessons._world import dragged, minimisers, valleys_of
from theory._cases import Case
from theory.afedpd._turns import afedpd_in_turn
from theory.counterexamples._recursion import on_quadratics
from theory.counterexamples.primal_dual import fedadmm_two_clients
from theory.limits import fedadmm_drift, fedadmm_limit

SERVER = (0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.75, 1.0)
WEIGHTS = (0.25, 0.35, 0.5, 0.7, 0.9, 1.2, 1.5, 1.9, 2.2, 2.7, 4.0, 7.0, 12.0, 20.0)
ROUNDS, TURNS = 24, Schedule(clients=((0,), (1,)))


def round_clients(u: np.ndarray) -> Quadratic:
    """Return two clients of curvature 1 in all directions."""
    own = minimisers(u)
    return Quadratic(A=np.stack([np.eye(2)] * 2), b=own, c=0.5 * np.sum(own**2, axis=1))


@lru_cache(maxsize=256)
def _run(u: tuple[float, ...], method: Any) -> Case:
    common: dict[str, Any] = {"rounds": ROUNDS, "participation": TURNS, "theta0": np.zeros(2)}
    return Case.of(method, round_clients(np.array(u)), **common)


def across(u: np.ndarray, *, server: float, rho: float) -> Case:
    """Return FedADMM for the first coordinate alone, which the other one does not touch."""
    own, c = minimisers(u)[:, :1], fedadmm_drift(rho, server)
    solution = float(np.mean(own))
    return on_quadratics(
        "FedADMM",
        FedADMM(rho=rho, server_step=server, solver=Exact()),
        Quadratic(A=np.ones((2, 1, 1)), b=own),
        converges=c < 1.0,
        limit=fedadmm_limit(c, solution=solution),
        theta0=0.0,
        participation=TURNS,
    )


def fedadmm(u: np.ndarray, *, server: float, rho: float) -> dict:
    """Measure FedADMM, and the point where it ends or which it leaves behind."""
    case = _run(tuple(u), FedADMM(rho=rho, server_step=server, solver=Exact()))
    limit = case.theta / (1.0 - fedadmm_drift(rho, server))
    return {
        "model": linear(case.models(), rounds=True),
        "limit": linear(limit),
        "away": squares(limit - case.theta),
        "converges": constant(float(fedadmm_drift(rho, server) < 1.0)),
    }


def afedpd(u: np.ndarray, *, rho: float) -> dict:
    """Measure A-FedPD, and the solution."""
    case = _run(tuple(u), AFedPD(rho=rho, solver=Exact()))
    return {"other": linear(case.models(), rounds=True), "solution": linear(case.theta)}


def other_across(u: np.ndarray, *, rho: float) -> Case:
    """Return A-FedPD for the first coordinate alone."""
    common: dict[str, Any] = {"rounds": ROUNDS, "participation": TURNS, "theta0": np.zeros(1)}
    f = Quadratic(A=np.ones((2, 1, 1)), b=minimisers(u)[:, :1])
    return Case.of(AFedPD(rho=rho, solver=Exact()), f, **common)


def in_turn(u: np.ndarray, *, rho: float) -> dict:
    """Measure by how much every second difference of A-FedPD misses its factor, and what rounding may be."""
    theta = other_across(u, rho=rho).models()
    apart = theta[2:] - theta[:-2]
    missed = apart[1:] - rho / (1.0 + rho) * apart[:-1]
    return {"lhs": squares(missed, rounds=True), "rhs": squares([1e-9 * theta.ravel()] * len(missed), rounds=True)}


def factor_of_a_round(u: np.ndarray, *, server: float, rho: float) -> dict:
    """Measure what the claim compares first: the factor of a round, and 1."""
    first = next(iter(fedadmm_two_clients(across(u, server=server, rho=rho))))
    return {"n": constant([0]), "lhs": constant([first.lhs]), "rhs": constant([first.rhs])}


def factor(u: np.ndarray, *, server: float, rho: float) -> dict:
    """Measure the factor of a round, on whichever side of 1."""
    case = across(u, server=server, rho=rho)
    first = next(iter(fedadmm_two_clients(case)))
    return {"factor": constant(first.lhs if case.converges else first.rhs)}


CHAPTER = Chapter(
    title="Duals that drift",
    minutes=9,
    needs=("names",),
    drags=dragged(),
    sliders=(
        Slider(name="server", label="server step ηₛ", values=SERVER, start=1.0, after=True),
        Slider(name="rho", label="weight ρ of the proximal term", values=WEIGHTS, start=0.5, after=True),
    ),
    rounds=ROUNDS,
    shown=ROUNDS,
    measures=(fedadmm, afedpd, factor),
    derived={"distance": Derived(does="root", of=("away",))},
    plane=Plane(
        title="Two round clients that take turns",
        marks=(
            *valleys_of(2, 1.0),
            Trail(of="model", label="FedADMM", ink="model", after=True),
            Trail(of="other", label="A-FedPD", ink="other", dash="dotted", shape="square", after=True),
            Spot(of="limit", label="its end", ink="model", shape="star", after=True),
            Spot(of="solution", label="solution θ*", shape="cross"),
        ),
    ),
    chart=over_slider(
        "By what a round multiplies the distance of FedADMM from its end",
        *("factor", "rho"),
        label="FedADMM",
        one="no progress",
        x_label="weight ρ",
        y_label="factor of a round",
        top=1.6,
    ),
    ask=AskPoint(answer="limit", start=(0.6, 2.2)),
    box=(
        Line(who="whose turn it is", does="θⱼ ← lowest point of fⱼ + ⟨λⱼ, ·⟩ + ½ ρ |· − θ|²"),
        Line(who="whose turn it is", does="λⱼ ← λⱼ + ρ (θⱼ − θ), and sends how θⱼ + λⱼ/ρ changed"),
        Line(who="server", does="θ ← θ + ηₛ · this change", now="θ = {model}"),
        Line(who="A-FedPD instead", does="moves the duals of those who rest as well", now="θ = {other}"),
    ),
    said=(
        Said("The solution {solution} lies in the middle of the clients. FedADMM begins at the origin.", after=False),
        Said(
            "With ηₛ = {server} and ρ = {rho} FedADMM ends at {limit}, {distance} away from the solution {solution}.",
            (If("converges", "=", 1.0),),
            after=True,
        ),
        Said(
            "With ηₛ = {server} and ρ = {rho} FedADMM never rests: it leaves the point {limit} behind, and after round"
            " {n} it is at"
            " {model}.",
            (If("converges", "=", 0.0),),
            after=True,
        ),
        Said("A-FedPD is at {other}; it ends in two models in turn, with the solution in the middle.", after=True),
    ),
    theorems=(
        Theorem(
            label="where FedADMM ends, or that it does not",
            claim=fedadmm_two_clients,
            case=across,
            sides=factor_of_a_round,
            quantity="what the theorem says is smaller, of 1 and the factor of a round,",
        ),
        Theorem(
            label="A-FedPD comes nearer to its two points by ρ/(1 + ρ)",
            claim=afedpd_in_turn,
            case=other_across,
            sides=in_turn,
            quantity="the square of what is missed",
        ),
    ),
)
