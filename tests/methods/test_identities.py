"""Each algorithm against a literal loop of its paper's box; theory/identities says which of them are the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np
import pytest

from dualopt.engine.rounds import State, advance, iterate
from dualopt.methods import (
    AFedPD,
    ConsensusFedSplit,
    FedADMM,
    FedAvg,
    FedDR,
    FedDyn,
    FedPD,
    FedProx,
    FedSpeed,
    FedSplit,
    OldDualFedPD,
)
from dualopt.methods.participation import CommunicateWithProbability, Full, Participation, Round, UniformSubset
from dualopt.objectives import Quadratic
from dualopt.regularisers import L1
from dualopt.solvers import Exact, Gradient
from dualopt.solvers.stopping import Steps
from tests.problems import quadratic
from theory.identities._virtual_updates import VirtualUpdates

N, D, ROUNDS = 5, 4, 25
WEIGHT = 30.0
ETA = 1.0 / WEIGHT
F = quadratic(N, D)
START = np.random.default_rng(3).standard_normal(D)
SOME = UniformSubset(size=2)
TOLERANCE = 1e-12

Rounds = list[Round]


def prox(j: int, center: np.ndarray, weight: float, linear: np.ndarray | float = 0.0) -> np.ndarray:
    """The minimiser of f_j + <linear, .> + weight/2 |. - center|^2, with NumPy alone."""
    return np.linalg.solve(F.A[j] + weight * np.eye(D), F.b[j] - linear + weight * center)


def fedpd(rounds: Rounds, old_dual: bool = False) -> Iterator[np.ndarray]:
    """FedPD, Algorithm 2 with exact local solutions; ``old_dual`` is what the published code uploads."""
    x0, dual, theta = [START] * N, [np.zeros(D)] * N, START
    for round in rounds:
        plus = []
        for i in range(N):
            x = prox(i, x0[i], 1.0 / ETA, dual[i])
            new = dual[i] + (x - x0[i]) / ETA
            plus.append(x + ETA * (dual[i] if old_dual else new))
            dual[i] = new
        if round.communicate:
            theta = np.mean(plus, axis=0)
            x0 = [theta] * N
        else:
            x0 = plus
        yield theta


def feddyn(rounds: Rounds) -> Iterator[np.ndarray]:
    """FedDyn, Algorithm 1."""
    theta, h, gradient = START, np.zeros(D), [np.zeros(D)] * N
    for round in rounds:
        total, moved = np.zeros(D), np.zeros(D)
        for k in round.clients:
            new = prox(k, theta, WEIGHT, -gradient[k])
            gradient[k] = gradient[k] - WEIGHT * (new - theta)
            total, moved = total + new, moved + (new - theta)
        h = h - WEIGHT / N * moved
        theta = total / len(round.clients) - h / WEIGHT
        yield theta


def fedadmm(rounds: Rounds, server_step: float | None = None) -> Iterator[np.ndarray]:
    """FedADMM: tracked changes of the augmented models; server step P/N when not given."""
    theta, local, dual = START, [START] * N, [np.zeros(D)] * N
    for round in rounds:
        change = np.zeros(D)
        for i in round.clients:
            new = prox(i, theta, WEIGHT, dual[i])
            raised = dual[i] + WEIGHT * (new - theta)
            change = change + (new + raised / WEIGHT) - (local[i] + dual[i] / WEIGHT)
            local[i], dual[i] = new, raised
        P = len(round.clients)
        theta = theta + (P / N if server_step is None else server_step) / P * change
        yield theta


def soft(x: np.ndarray, level: float) -> np.ndarray:
    return np.sign(x) * np.maximum(np.abs(x) - level, 0.0)


def feddr(rounds: Rounds, relaxation: float = 1.0, level: float = 0.0) -> Iterator[np.ndarray]:
    """FedDR, Algorithm 1, from x_i = y_i = theta0; g = level |.|_1."""
    bar, y, x, hat = START, [START] * N, [START] * N, [START] * N
    for round in rounds:
        for i in round.clients:
            y[i] = y[i] + relaxation * (bar - x[i])
            x[i] = prox(i, y[i], 1.0 / ETA)
            hat[i] = 2 * x[i] - y[i]
        bar = soft(np.mean(hat, axis=0), ETA * level)
        yield bar


def fedsplit(rounds: Rounds, solutions: bool = False) -> Iterator[np.ndarray]:
    """FedSplit, with the consensus for the model, or the mean of the solutions of all clients."""
    theta, z = START, [START] * N
    for round in rounds:
        x = {j: prox(j, 2 * theta - z[j], 1.0 / ETA) for j in round.clients}
        for j in round.clients:
            z[j] = z[j] + 2 * (x[j] - theta)
        theta = np.mean(z, axis=0)
        yield np.mean(list(x.values()), axis=0) if solutions else theta


def a_fedpd(rounds: Rounds) -> Iterator[np.ndarray]:
    """A-FedPD, Algorithm 1, with its D-Update; the server holds all duals."""
    theta, dual = START, np.zeros((N, D))
    for round in rounds:
        new = {i: prox(i, theta, WEIGHT, dual[i]) for i in round.clients}
        bar = np.mean(list(new.values()), axis=0)
        for i in range(N):
            dual[i] = dual[i] + WEIGHT * ((new[i] if i in round.clients else bar) - theta)
        theta = bar + dual.mean(axis=0) / WEIGHT
        yield theta


def fedspeed(rounds: Rounds) -> Iterator[np.ndarray]:
    """FedSpeed without its ascent step: the mean of the active augmented models."""
    theta, dual = START, [np.zeros(D)] * N
    for round in rounds:
        sent = []
        for i in round.clients:
            new = prox(i, theta, WEIGHT, dual[i])
            dual[i] = dual[i] + WEIGHT * (new - theta)
            sent.append(new + dual[i] / WEIGHT)
        theta = np.mean(sent, axis=0)
        yield theta


def fedavg(rounds: Rounds) -> Iterator[np.ndarray]:
    """Five gradient steps of length 0.03 on every active client."""
    theta = START
    for round in rounds:
        ends = []
        for j in round.clients:
            x = theta
            for _ in range(5):
                x = x - 0.03 * (F.A[j] @ x - F.b[j])
            ends.append(x)
        theta = np.mean(ends, axis=0)
        yield theta


def fedprox(rounds: Rounds) -> Iterator[np.ndarray]:
    """Exact proximal steps."""
    theta = START
    for round in rounds:
        theta = np.mean([prox(j, theta, WEIGHT) for j in round.clients], axis=0)
        yield theta


EXACT = Exact()
SKIP = CommunicateWithProbability(probability=0.4)
BOXES: dict[str, tuple[object, Callable[[Rounds], Iterator[np.ndarray]], Participation]] = {
    "FedPD": (FedPD(eta=ETA, solver=EXACT), fedpd, Full()),
    "FedPD, skipping": (FedPD(eta=ETA, solver=EXACT), fedpd, SKIP),
    "FedPD, old dual": (OldDualFedPD(eta=ETA, solver=EXACT), lambda r: fedpd(r, True), Full()),
    "FedPD, old dual, skipping": (OldDualFedPD(eta=ETA, solver=EXACT), lambda r: fedpd(r, True), SKIP),
    "FedDyn": (FedDyn(alpha=WEIGHT, solver=EXACT), feddyn, SOME),
    "FedADMM": (FedADMM(rho=WEIGHT, solver=EXACT), fedadmm, SOME),
    "FedADMM, step 0.7": (FedADMM(rho=WEIGHT, server_step=0.7, solver=EXACT), lambda r: fedadmm(r, 0.7), SOME),
    "FedDR": (FedDR(eta=ETA, relaxation=1.0, solver=EXACT), feddr, SOME),
    "FedDR, a = 1.5": (FedDR(eta=ETA, relaxation=1.5, solver=EXACT), lambda r: feddr(r, 1.5), SOME),
    "FedDR, l1": (
        FedDR(eta=ETA, relaxation=1.0, regulariser=L1(weight=0.3), solver=EXACT),
        lambda r: feddr(r, level=0.3),
        SOME,
    ),
    "FedSplit, consensus": (ConsensusFedSplit(step=ETA, solver=EXACT), fedsplit, SOME),
    "FedSplit": (FedSplit(step=ETA, solver=EXACT), lambda r: fedsplit(r, solutions=True), Full()),
    "A-FedPD": (AFedPD(rho=WEIGHT, solver=EXACT), a_fedpd, SOME),
    "A-FedPD, virtual updates": (VirtualUpdates(rho=WEIGHT, solver=EXACT), a_fedpd, SOME),
    "FedSpeed": (FedSpeed(rho=WEIGHT, radius=0.0, solver=EXACT), fedspeed, SOME),
    "FedAvg": (FedAvg(solver=Gradient(step=0.03), stop=Steps(steps=5)), fedavg, SOME),
    "FedProx": (FedProx(mu_prox=WEIGHT, solver=EXACT), fedprox, SOME),
}


def models(algorithm, participation: Participation, objective=F, start=START) -> np.ndarray:
    run = iterate(algorithm, objective, theta0=start, participation=participation)
    return np.stack([s.server.theta for s in islice(run, ROUNDS)])


def literal(box: Callable[[Rounds], Iterator[np.ndarray]], participation: Participation) -> np.ndarray:
    return np.stack(list(box(list(islice(participation.rounds(N, seed=0), ROUNDS)))))


@pytest.mark.parametrize("name", BOXES)
def test_algorithms_are_their_boxes(name: str) -> None:
    algorithm, box, participation = BOXES[name]
    expected = literal(box, participation)
    assert np.abs(models(algorithm, participation) - expected).max() <= TOLERANCE * np.abs(expected).max()


def test_boxes_differ() -> None:
    """No two loops of the table agree under partial participation, but for two pairs of the same method."""
    twins = ("A-FedPD, virtual updates", "FedDR")  # A-FedPD and FedADMM with the step P/N
    runs = {name: literal(box, SOME) for name, (_, box, where) in BOXES.items() if where is SOME and name not in twins}
    names = list(runs)
    for i, a in enumerate(names):
        for b in names[i + 1 :]:
            assert np.abs(runs[a] - runs[b]).max() > 1e-3, (a, b)


@pytest.mark.parametrize("relaxation", [1.0, 2.0])
def test_feddr_started_from_proximal_points_is_one_round_ahead(relaxation: float) -> None:
    """The start of FedDR's own paper, x_i = prox(y_i): its round n is round n + 1 of the start of this package."""
    method = FedDR(eta=ETA, relaxation=relaxation, solver=EXACT).suggested(F)
    server, _, clients = method.init(START, np.broadcast_to(START, (N, D)))
    x = np.stack([prox(j, START, 1.0 / ETA) for j in range(N)])
    reflected = 2 * x - START
    mean = reflected.mean(axis=0)
    state = State(type(server)(mean, mean), mean, clients._replace(x=x, reflected=reflected))
    ahead = []
    for round in islice(Full().rounds(N, seed=0), ROUNDS):
        ahead.append(state.server.theta)
        state, _, _ = advance(method, F, state, round)
    np.testing.assert_allclose(np.stack(ahead), models(method, Full()), rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize(("size", "fewer"), [(1, True), (2, True), (3, False), (4, False)])
def test_no_virtual_updates_save_floats_when_less_than_half_take_part(size: int, fewer: bool) -> None:
    """P (2 - P/N) against N - P + P^2/N messages a round on average."""
    told = []
    for method in (AFedPD(rho=300.0, solver=EXACT), VirtualUpdates(rho=300.0, solver=EXACT)):
        run = islice(iterate(method, F, participation=UniformSubset(size=size)), 400)
        told.append(sum(s.floats_down for s in run) / (2 * D) / 400)
    expected = size * (2 - size / N), N - size + size**2 / N
    assert told == pytest.approx(expected, rel=0.03)
    assert (told[0] < told[1]) == fewer == (expected[0] < expected[1])


def test_quadratics_are_what_the_loops_take_them_for() -> None:
    assert isinstance(F, Quadratic)
    x = np.stack([prox(j, START, 2.0, np.ones(D)) for j in range(N)])
    np.testing.assert_allclose(F.gradient(x) + 1.0 + 2.0 * (x - START), 0.0, atol=1e-13)
