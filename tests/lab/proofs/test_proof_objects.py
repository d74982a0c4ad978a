"""Proofs in rational numbers: they are true, what was changed in them is refused, and so is other code."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from copy import deepcopy
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dualopt.lab.proofs import _exact, check_proof, checker, prove
from dualopt.lab.proofs.checker import RefusedError
from dualopt.methods import FedDyn, FedSplit
from dualopt.methods.fedsplit import Client
from dualopt.methods.participation import UniformSubset

SMALL = {"gradient-descent": ("gradient-descent: step=0.1", 10, 2), "dualfl": ("dualfl: rho=0.04, nu=1", 25, 2)}


@pytest.fixture(scope="module")
def proofs() -> dict[str, Any]:
    """A proof without and one with values of functions."""
    found = {}
    for name, (method, L, N) in SMALL.items():
        rate = prove(method, mu=1, L=L, clients=N, memory=name == "dualfl", tolerance=1e-4)
        found[name] = json.loads(rate.proof_text())
        assert rate.factor < Fraction(found[name]["factor"]) < rate.factor + 3e-5
    return found


def places(part: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all that a proof consists of."""
    inside = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
    return [path, *(found for key, own in inside for found in places(own, (*path, key)))]


def at(proof: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        proof = proof[key]
    return proof


def changed(proof: Any, path: tuple[Any, ...], x: Any) -> Any:
    """Return the proof with something else at a place."""
    found = deepcopy(proof)
    at(found, path[:-1])[path[-1]] = x
    return found


def others(x: Any) -> list[Any]:
    """Return other numbers: of another sign, a step or a little away."""
    if isinstance(x, bool):
        return [not x]
    if isinstance(x, int):
        return [x + 1, x - 1]
    q = Fraction(x)
    return [str(y) for y in {-q, q + 1, q * Fraction(1001, 1000), q * Fraction(999, 1000)} if y != q]


def least_room(proof: Any) -> tuple[float, float]:
    """Return the least eigenvalue of what must be a sum of squares, and the largest value of a function that stays.

    Written anew, in floating-point numbers and dense matrices.
    """
    number = np.vectorize(lambda x: float(Fraction(x)), otypes=[float])
    clients, D = proof["statement"]["clients"], proof["dimension"]
    heights = number(proof["heights"] or ["0"] * len(clients))
    points = [number(own) for own in proof["points"]]  # (points, 2, D)
    n_points = len(points[0])

    def lyapunov(state: Any, latest: Any) -> tuple[np.ndarray, np.ndarray]:
        M, values = np.zeros((D, D)), np.zeros((len(clients), n_points))
        for W, groups in zip(proof["weights"], state, strict=True):
            for rows in map(number, groups):
                if len(rows):
                    M += rows.T @ number(W) @ rows
        for j, p in enumerate(latest or ()):
            values[j, p] += heights[j]
            M -= heights[j] * np.outer(points[j][0, 1], points[j][p, 0])
        return M, values

    def inequalities(given: Any) -> tuple[np.ndarray, np.ndarray]:
        M, values = np.zeros((D, D)), np.zeros((len(clients), n_points))
        for j, own in enumerate(given):
            mu, L = (float(Fraction(clients[j][key])) for key in ("mu", "L"))
            for a, b, m in own:
                (x, g), (y, h), m = points[j][a], points[j][b], float(Fraction(m))
                bent = g - h - mu * (x - y)
                M -= m * (np.outer(h, x - y) + mu / 2 * np.outer(x - y, x - y) + np.outer(bent, bent) / 2 / (L - mu))
                values[j, a] += m
                values[j, b] -= m
        return M, values

    now, rho = lyapunov(proof["before"], proof.get("latest")), float(Fraction(proof["factor"]))
    ends = [(float(Fraction(e["probability"])), *lyapunov(e["state"], e.get("latest"))) for e in proof["after"]]
    falls, stays = inequalities(proof["multipliers"]), inequalities(proof["positive"])
    model = number(proof["model"])
    then = sum(p * M for p, M, _ in ends), sum(p * v for p, _, v in ends)
    both = [
        (rho * now[0] - then[0] - falls[0], rho * now[1] - then[1] - falls[1]),
        (now[0] - np.outer(model, model) - stays[0], now[1] - stays[1]),
    ]
    scale = np.abs(now[0]).max()
    least = min(np.linalg.eigvalsh((M + M.T) / 2)[0] for M, _ in both) / scale
    return least, max(np.abs(v[:, 1:]).max(initial=0.0) for _, v in both) / scale


@pytest.mark.parametrize("name", SMALL)
def test_a_proof_that_was_changed_is_refused_or_still_true(name: str, proofs, monkeypatch) -> None:
    """Every number in turn, in several ways.

    What is accepted has the vectors of the code, other weights or multipliers, a larger factor, or a smaller class of
    functions; and it is true by other arithmetic: what must be sums of squares is, up to rounding.
    """
    monkeypatch.setattr(_exact, "regenerated", lru_cache(maxsize=None)(_exact.regenerated))
    proof = proofs[name]
    assert check_proof(proof) == Fraction(proof["factor"])
    assert least_room(proof)[0] > -1e-15
    numbers = [p for p in places(proof) if p[:2] != ("statement", "method") and isinstance(at(proof, p), int | str)]
    numbers = [p for p in numbers if checker.NUMBER.fullmatch(str(at(proof, p))) or isinstance(at(proof, p), bool)]
    refused, accepted = 0, []
    for k, path in enumerate(numbers):
        every = others(at(proof, path))
        for x in every if name == "gradient-descent" else every[k % len(every) :][:1]:
            other = changed(proof, path, x)
            if refusal(other) is not None:
                refused += 1
                continue
            accepted.append(path)
            least, value = least_room(other)
            assert least > -1e-12, path
            assert value < 1e-12, path
            certificate = path[0] in ("factor", "weights", "heights", "multipliers", "positive")
            easier = path[-1] in ("mu", "L") and (Fraction(x) > Fraction(at(proof, path))) == (path[-1] == "mu")
            assert certificate or easier, path
            assert path != ("factor",) or Fraction(x) > Fraction(proof["factor"])
    assert refused > 100
    assert len(accepted) < refused / 4


def refusal(proof: Any) -> str | None:
    """Return why a proof is refused, if it is."""
    try:
        check_proof(proof)
    except RefusedError as error:
        return str(error)
    return None


def test_a_matrix_is_a_sum_of_squares_or_not() -> None:
    """Of all symmetric matrices with small entries, by elimination and by eigenvalues."""
    for a, b, c, d, e in product((-1, 0, 1, 2), repeat=5):
        form = checker.Form(3)
        form.matrix = [[Fraction(x, 3) for x in row] for row in ((a, b, d), (b, c, e), (d, e, 1))]
        least = np.linalg.eigvalsh(np.array([[a, b, d], [b, c, e], [d, e, 1.0]]))[0]
        assert form.is_sum_of_squares() == (least > -1e-12)
    form = checker.Form(1)
    form.value(Fraction(1), 0, 1)
    assert not form.is_sum_of_squares()
    form.value(Fraction(-1), 0, 1)
    assert form.is_sum_of_squares()


def times(part: Any, factor: Fraction) -> Any:
    """Return all fractions of a part of a proof times a number."""
    if isinstance(part, list):
        return [times(own, factor) for own in part]
    return str(factor * Fraction(part)) if isinstance(part, str) else part


OTHER_CODE = "the code of the method gives another 'after' than the proof has."


def test_lies_that_need_more_than_one_number(proofs) -> None:
    """A smaller V falls as fast, and says nothing; so does one that is negative, with negative multipliers."""
    proof = proofs["dualfl"]
    certificate = ("weights", "heights", "multipliers", "positive")
    twice = proof | {key: times(proof[key], Fraction(2)) for key in certificate}
    assert check_proof(twice) == Fraction(proof["factor"])
    small = proof | {key: times(proof[key], Fraction(1, 10**6)) for key in certificate}
    assert refusal(small) == "V is not shown to be at least |theta - theta*|^2."
    negative = proof | {key: times(proof[key], Fraction(-1)) for key in certificate}
    assert refusal(negative) == "multipliers must be at least 0."
    one = proof["after"][0]
    half = {"probability": "1/2", **{key: part for key, part in one.items() if key != "probability"}}
    assert refusal(proof | {"after": [half]}) == "probabilities must add up to 1."
    assert refusal(proof | {"after": [half, half]}) == OTHER_CODE
    sure = one | {"probability": "2"}, half | {"probability": "-1"}
    assert refusal(proof | {"after": list(sure)}) == "probabilities must be at least 0."


@pytest.mark.parametrize(
    ("path", "x", "sentence"),
    [
        (("statement", "clients"), [], "clients must not be empty."),
        (("statement", "clients", 1, "mu"), "-1", "mu must be at least 0."),
        (("statement", "clients", 1, "mu"), "1/2", "V is not shown to fall by the factor"),  # a number that may be
        (("statement", "clients", 1, "L"), "1", "L must be greater than mu, for every client."),
        (("statement", "clients", 0, "L"), "1/2", "L must be greater than mu, for every client."),
        (("points", 1), [], "points must begin with the minimiser, whose place is zero."),
        (("points", 0, 0, 0, 0), "1", "points must begin with the minimiser, whose place is zero."),
        (("multipliers", 0, 0, 2), "-1", "multipliers must be at least 0."),
        (("multipliers", 1, 0, 2), "-1", "multipliers must be at least 0."),
        (("multipliers", 0, 0), [0, 1, "1", "1"], "multipliers must have 3 entries."),
        (("factor",), "1", "factor must be at least 0 and less than 1."),
        (("dimension",), 10**6, "dimension must be a whole number of at least 0 and below"),
    ],
)
def test_what_a_part_must_be_is_said(path: tuple[Any, ...], x: Any, sentence: str, proofs) -> None:
    with pytest.raises(RefusedError, match=f"^{re.escape(sentence)}"):
        checker.check(changed(proofs["gradient-descent"], path, x))


WRONG = [None, [], {}, "", "x", "1/0", "1e999999999", "9" * 5000, 10**40, -1, 1.5, True, [[[]]], {"x": 1}]


@pytest.mark.parametrize("name", SMALL)
def test_what_is_no_proof_is_refused_in_a_sentence(name: str, proofs, monkeypatch) -> None:
    monkeypatch.setattr(_exact, "regenerated", lru_cache(maxsize=None)(_exact.regenerated))
    proof = proofs[name]
    for path in places(proof)[1:]:
        part = path[0]
        if part in ("before", "after", "points") and path[5:] and path[-1] != 0:
            continue  # entries of vectors are alike
        if name == "dualfl" and part not in ("latest", "heights", "positive"):
            continue  # as in the other proof
        for x in WRONG:
            if x == at(proof, path):
                continue
            said = refusal(changed(proof, path, x))
            assert said is None or (said.endswith(".") and "\n" not in said), said
    for missing in proof:
        with pytest.raises(RefusedError):
            check_proof({key: part for key, part in proof.items() if key != missing})
    for x in WRONG:
        with pytest.raises(RefusedError):
            check_proof(x)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[" * 100_000, "proof must be a file of JSON."),
        ("{", "proof must be a file of JSON."),
        ("\udcff", "proof must be a file of JSON."),
        ('{"a": 1, "a": 2}', "proof must not have a key twice."),
        ('{"a": ' + "9" * 5000 + "}", "proof must be a file of JSON."),
        (" " * 1_000_001, "proof must be a file of at most 1000000 bytes."),
    ],
)
def test_files_that_are_no_proofs(text: str, sentence: str, tmp_path: Path) -> None:
    file = tmp_path / "proof.json"
    file.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(RefusedError) as error:
        checker.read(str(file))
    assert str(error.value) == sentence


def test_the_checker_needs_the_standard_library_alone(tmp_path: Path, proofs) -> None:
    right, wrong = tmp_path / "right.json", tmp_path / "wrong.json"
    right.write_text(json.dumps(proofs["dualfl"]))
    wrong.write_text(json.dumps(changed(proofs["dualfl"], ("factor",), "1/2")))
    command = [sys.executable, "-I", "-S", checker.__file__]
    done = subprocess.run([*command, right, wrong, tmp_path / "none.json"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "")
    first, second, third = done.stdout.splitlines()
    assert first.startswith(f"{right}: proved: the mean of V falls by {proofs['dualfl']['factor']} = 0.")
    assert second.startswith(f"{wrong}: refused: V is not shown to fall")
    assert third == f"{tmp_path / 'none.json'}: refused: proof cannot be read: No such file or directory."


def test_other_code_is_refused(monkeypatch) -> None:
    """The same parameters, and one step of the method edited."""
    proof = prove("feddyn: alpha=5", mu=1, L=10, clients=3, participation=UniformSubset(size=2), memory=False).proof()
    assert 0.67 < check_proof(proof) < 0.74
    local, server = FedDyn.local, FedDyn.server

    def other_local(self, c, message, oracle, round):
        c, upload = local(self, c, message, oracle, round)
        return c._replace(gradient=1.001 * c.gradient), upload

    def other_server(self, server_state, means, round):
        return server(self, server_state, means._replace(draw=1.001 * means.draw), round)

    for step, edited in (("local", other_local), ("server", other_server)):
        with monkeypatch.context() as patch:
            patch.setattr(FedDyn, step, edited)
            assert re.search(r"the code of the method gives another|alike|fixed point", refusal(proof) or "")
    twice = {"uniform-subset": {"size": 1}}
    for participation in (None, twice, {"bernoulli": {"probability": 0.5}}):
        with pytest.raises(RefusedError):
            check_proof(changed(proof, ("statement", "participation"), participation))


def test_more_cohorts_than_a_proof_lists_are_not_looked_at() -> None:
    proof = prove("gradient-descent: step=0.1", mu=1, L=10, clients=12, memory=False, tolerance=1e-3).proof()
    for who in ({"bernoulli": {"probability": 0.5}}, {"subset": {"size": 6}}):
        with pytest.raises(RefusedError, match="participation must have no more cohorts than the proof"):
            check_proof(changed(proof, ("statement", "participation"), who))


@dataclass(frozen=True, kw_only=True)
class Unequal(FedSplit):
    """The first client moves by another factor: clients are not alike, though their constants are."""

    def local(self, clients, message, oracle, round):
        x = oracle.solve(start=clients.x, weight=1 / self.step, center=2 * message - clients.z).theta
        factors = np.array([[1.5 if j == 0 else 2.0] for j in round.clients])
        change = factors * (x - message)
        return Client(clients.z + change, x), change


def test_clients_that_are_not_alike_are_no_class() -> None:
    what: Any = {"mu": 1, "L": 10, "clients": 3, "memory": False}
    with pytest.raises((ValueError, RuntimeError), match=r"alike|no room for rounding|a run is as slow"):
        prove(Unequal(step=0.3), **what).proof()
    proof = prove(Unequal(step=0.3), literal=True, **what).proof()
    assert 0.3 < check_proof(proof, Unequal) < 1


def test_clients_of_several_classes_are_proved_under_cohorts_by_weight() -> None:
    what: Any = {"mu": (1, 1, 2), "L": (10, 10, 20), "weights": (1, 1, 2), "participation": "importance=2"}
    rate = prove("feddyn: alpha=8", memory=False, **what)
    proof = rate.proof()
    assert rate.factor <= check_proof(proof) < rate.factor + 3e-5
    assert rate.claimed is not None
    assert rate.factor < rate.claimed
    assert [(end["probability"], end["clients"]) for end in proof["after"]] == [("1/2", [0, 2]), ("1/2", [1, 2])]
    vectors = [
        row
        for path in places(proof)
        if path[:1] in (("model",), ("before",), ("after",), ("points",))
        if isinstance(row := at(proof, path), list) and row and all(isinstance(x, str) for x in row)
    ]
    assert {len(row) for row in vectors} == {proof["dimension"]}
    assert all(any(x != "0" for x in column) for column in zip(*vectors, strict=True))  # no coordinate is idle


def test_numbers_that_have_no_simple_limit_are_refused() -> None:
    with pytest.raises(ValueError, match="algorithm must keep the numbers in its states exactly"):
        prove("dualfl", mu=1, L=10, clients=2, memory=True, tolerance=1e-2).proof()
