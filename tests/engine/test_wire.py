"""What travels: as many numbers as the trace says, beside a stated overhead, and what a certificate is made from."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

import dualopt.methods
from dualopt.arrays.codec import pack
from dualopt.arrays.tree import leaves
from dualopt.arrays.xp import Array
from dualopt.engine import _protocol as protocol
from dualopt.engine import wire
from dualopt.engine.rounds import resolve
from dualopt.methods import CorrectedDualFL, DualFL, FedDyn, FedSplit, Scaffnew
from dualopt.methods.participation import UniformSubset
from dualopt.runs.certificates import DualPoint, certificate
from dualopt.runs.recording import run
from dualopt.solvers.stopping import GradientReduction
from dualopt.spec import Spec, types_in
from dualopt.spec.discover import discover
from tests.engine.problems import CHANCE, problems
from tests.engine.wired import Wired, elsewhere
from tests.problems import digits, quadratic
from theory.identities._virtual_updates import VirtualUpdates

ROUNDS = 7
PEOPLE: dict[str, tuple[Any, Any]] = {
    "everybody": (DualFL(), None),
    "some": (FedDyn(), UniformSubset(size=3)),
    "some, others listen": (VirtualUpdates(), UniformSubset(size=2)),
    "silent rounds": (Scaffnew(), CHANCE["skip"]),
    "one vector for each client": (FedSplit(), None),
}


def numbers(tree: Any) -> int:
    """How many numbers a tree of arrays and Python numbers holds."""
    return sum(math.prod(x.shape) if hasattr(x, "shape") else 1 for x in leaves(tree))


def travelled(engine: Wired) -> tuple[int, int, dict[str, int], dict[str, int]]:
    """Numbers in messages and uploads, and in everything else, down and up, by the name of the request."""
    down = up = 0
    more: dict[str, int] = {}
    answered: dict[str, int] = {}
    for _, batch, answers in engine.log:
        for request, answer in zip(batch, answers, strict=True):
            name = type(request).__name__
            if isinstance(request, protocol.Propose | protocol.Commit):
                down += numbers(request.message)
            if isinstance(request, protocol.Value | protocol.Evaluate | protocol.Start):
                model = request.theta0 if isinstance(request, protocol.Start) else request.theta
                more[name] = more.get(name, 0) + numbers(model)
            if isinstance(answer, protocol.Uploaded):
                up += numbers(answer.upload)
                answered[name] = answered.get(name, 0) + len(answer.gradients)
            elif isinstance(answer, protocol.Valued | protocol.Evaluated | protocol.PartialSums):
                answered[name] = answered.get(name, 0) + numbers(tuple(answer))
    return down, up, more, answered


@pytest.mark.parametrize("people", PEOPLE)
def test_numbers_that_travel_are_those_of_the_trace(people: str) -> None:
    """With one client on each host; beside them the start, one number a client and round, and what is evaluated."""
    method, who = PEOPLE[people]
    f = problems()["quadratic"]
    N, d = f.n_clients, math.prod(f.shape)
    clients = elsewhere(f, [(j,) for j in range(N)])
    trace = run(method, clients, rounds=ROUNDS, participation=who, certify_every=3)
    down, up, more, answered = travelled(clients.engine)
    assert up == trace["floats_up"][-1]
    assert down == trace["floats_down"][-1]
    assert np.flatnonzero(~np.isnan(trace["certificate"])).tolist() == [0, 3, 6, 7]
    points = 4  # of which the last has its energy first, as a row of its own
    assert more == {"Start": N * d, "Evaluate": points * N * d, "Value": N * d}
    worked = [batch[-1].clients for _, batch, _ in clients.engine.log if isinstance(batch[-1], protocol.Propose)]
    assert set(worked) == {None}  # all of the one client
    assert answered["Propose"] == len(worked)
    least, most = points * N * (d + 3), points * N * (2 * d + 5)
    assert least <= answered["Evaluate"] <= most


def test_energies_are_asked_for_in_certified_rounds_only() -> None:
    clients = elsewhere(problems()["quadratic"], [(0, 1, 2), (3, 4, 5)])
    trace = run(DualFL(), clients, rounds=ROUNDS, certify_every=3)
    measured = np.flatnonzero(~np.isnan(trace["energy"])).tolist()
    assert measured == [0, 3, 6, 7]
    every = run(DualFL(), clients, rounds=ROUNDS, certify_every=3, measure_every=1)
    assert not np.isnan(every["energy"]).any()
    assert np.array_equal(trace.theta, every.theta)


def test_nothing_but_plain_things_travels() -> None:
    """All requests and answers of a run are trees of arrays, numbers and text; a method is its name and parameters."""
    f = problems()["smooth"]
    clients = elsewhere(f, [(0, 1), (2, 3, 4)])
    run(DualFL(), clients, rounds=3, tol=1e-9)
    for _, batch, answers in clients.engine.log:
        for x in (*batch, *answers):
            header, arrays = pack([x])  # refuses anything else
            json.loads(header)
            assert all(array.dtype.kind in "biuf" for array in arrays)


@pytest.mark.parametrize("name", discover(dualopt.methods))
def test_methods_in_words(name: str) -> None:
    """What a method is completed to is read as the same method, each number with all its digits."""
    kind = discover(dualopt.methods)[name]
    method = resolve(kind(), quadratic())
    text = json.dumps(Spec.of(method, full=True).to_json())
    assert Spec.from_json(text).build("algorithm", ()) == method
    assert set(types_in(method)) >= {type(method)}


def test_what_is_no_method_is_refused() -> None:
    for text in (
        "7",
        '{"steps": {"steps": 3}}',
        '{"os:system": {}}',
        '{"dualopt.solvers.sgd:SGD": {}}',
        "no json",
        "[]",
    ):
        with pytest.raises(ValueError, match=r"^(method|algorithm) .*\.$"):
            Spec.from_json(text, "method").build("algorithm", ())


# --- a certificate from two scalars a client ---------------------------------------------------------------------


def scalars(corrected: bool, rounds: int) -> tuple[Any, float, float, Array, Array]:
    """A certificate of DualFL with nu = mu, E, the mean of the conjugates, the mean dual point, and the model."""
    f = digits(rows=300)
    mu = float(f.mu[0])
    assert (f.mu == mu).all()
    method = (CorrectedDualFL if corrected else DualFL)(nu=mu, stop=GradientReduction(factor=0.3))
    clients = elsewhere(f, [(0, 1, 2), (3, 4, 5, 6, 7)])
    trace = run(method, clients, rounds=rounds)
    answers = clients.server.ask_all(protocol.Evaluate(clients.server.run, rounds, trace.theta, True))
    point = DualPoint(*(np.concatenate([row[k] for row in answers]) for k in (4, 5, 6)))
    energy = float(np.concatenate([row[0] for row in answers]).mean())
    return (
        certificate(f, trace.theta, point),
        energy,
        float(point.conjugate.mean()),
        point.dual.mean(axis=0),
        trace.theta,
    )


def test_two_scalars_a_client_certify_dualfl_with_corrected_uploads() -> None:
    """With nu = mu and everybody active ``mean xi = -mu theta``, so that ``f_j`` and ``g_j*`` are all that is needed.

    Allowed are the room for rounding that the certificate itself adds, and 1e-11 of the energy for the mean dual point.
    """
    f = digits(rows=300)
    for rounds in (1, 4, 20):
        found, energy, conjugate, mean, theta = scalars(True, rounds)
        m = float(f.mu[0])
        np.testing.assert_allclose(mean, -m * theta, atol=1e-12)
        gap = energy + conjugate + 0.5 * m * float((theta * theta).sum())
        assert found.kind == "dual"
        assert abs(found.gap - gap) <= found.rounding + 1e-11 * energy


def test_for_plain_uploads_the_short_cut_is_wrong() -> None:
    found, energy, conjugate, mean, theta = scalars(False, 4)
    m = float(digits(rows=300).mu[0])
    assert np.linalg.norm(mean + m * theta) > 0.01 * np.linalg.norm(mean)
    gap = energy + conjugate + 0.5 * m * float((theta * theta).sum())
    assert abs(found.gap - gap) > 1e6 * (found.rounding + 1e-11 * energy)  # what corrected ones are allowed


@pytest.mark.parametrize(("value", "fits"), [(2**63 - 1, True), (1 - 2**63, True), (2**63, False), (-(2**63), False)])
def test_integers_of_the_protocol_have_64_bits(value: int, fits: bool) -> None:
    assert wire._fits(value, int) == fits
    assert not wire._fits(True, int)
