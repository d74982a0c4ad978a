"""Proofs in rational numbers: from a solution of the semidefinite program, and from the code of a method anew.

The program is solved with classes of clients; what is written down is literal, and ``checker.py`` assumes none of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import permutations
from pathlib import PurePath
from typing import Any

import numpy as np

from dualopt.arrays._checks import require
from dualopt.arrays.tree import leaves
from dualopt.lab.proofs import checker
from dualopt.lab.proofs._compressors import Contractive, Unbiased
from dualopt.lab.proofs._formal import Answer, Ledger, is_vector, with_room
from dualopt.lab.proofs._forms import Form
from dualopt.lab.proofs._linear import echelon
from dualopt.lab.proofs._lyapunov import Lyapunov
from dualopt.lab.proofs._round import OneRound
from dualopt.lab.proofs._setting import Setting
from dualopt.lab.proofs._states import Block, FormalState, Outcome, first_state, general_state, observable
from dualopt.methods import Algorithm
from dualopt.methods.participation import Bernoulli
from dualopt.spec import Spec

__all__ = ["as_proof", "check_proof", "regenerated"]

DIGITS = (6, 8, 10, 12)
"""After the point, of the numbers of a proof: the fewest that will do."""
MOST_VECTORS = 256
"""Formal vectors for a proof; the checker refuses more than half of that."""
MOST_COHORTS = 100
"""Cohorts that may be listed before anybody knows whether all of them are drawn."""
CODE = "method", "code"
KNOWN = "bounds", "chance"
"""What a proof has only where there is something of the kind."""


def regenerated(setting: Setting, *, memory: bool) -> dict[str, Any]:
    """Return what a proof says of a method and a class of problems, from the code in exact arithmetic.

    Everything is literal: all clients, all that may happen, and the invariants of the most general state hold for each
    of them.

    Raises
    ------
    ValueError
        If the method does not compute in rational numbers.
    """
    setting.require_linear(dimension=MOST_VECTORS)
    exact = setting.in_rationals()
    return with_room(lambda dimension: _regenerated(exact, dimension, memory=memory), MOST_VECTORS)


def _regenerated(setting: Setting, dimension: int, *, memory: bool) -> dict[str, Any]:
    general, outcomes = general_state(setting, dimension, memory=memory)
    weighed = observable(general, outcomes)
    everybody = [dict.fromkeys(own.clients, 1) for own in setting.classes]
    for _, round in setting.events():
        _vectors(first_state(setting, dimension, memory=memory).after(round, everybody).blocks, weighed, general)
    ends = [(p, round, general.after(round, everybody)) for p, round in setting.events()]
    constant = all(_numbers(end, general) == setting.limits.numbers for *_, end in ends)
    require(constant, "algorithm must keep the numbers in its states exactly: choose parameters with simple limits")
    before = _vectors(general.blocks(everybody), weighed, general)
    after = [_vectors(end.blocks, weighed, general) for *_, end in ends]
    points = [_points_of(j, general) for j in range(setting.n_clients)]
    model, ledger = general.state.server.theta - general.theta, general.f.ledger
    bounded = [(b.vector, b.of) for j in range(setting.n_clients) for b in ledger.bounds(j)]
    used = np.flatnonzero(np.any([v != 0 for v in _all([model, before, after, points, bounded])], axis=0))

    def text(part: Any) -> Any:
        return _texts(part[used]) if isinstance(part, np.ndarray) and part.ndim == 1 else [text(x) for x in part]

    def latest(end: Outcome) -> dict[str, Any]:
        numbers = {j: a.number for j, a in end.asked.items()}
        return {"latest": [numbers.get(j, 1) for j in range(setting.n_clients)]} if memory else {}

    return {
        "statement": _statement(setting),
        "dimension": len(used),
        "model": text(model),
        "before": text(before),
        **({"latest": [1] * setting.n_clients} if memory else {}),
        "after": [
            {
                "probability": str(p),
                "clients": list(round.clients),
                "communicate": round.communicate,
                "state": text(state),
                **latest(end),
            }
            for (p, round, end), state in zip(ends, after, strict=True)
        ],
        "points": text(points),
        **_bounds(setting, ledger, text),
        **_chance(setting, ledger, used),
    }


def _bounds(setting: Setting, ledger: Ledger, text: Callable[[Any], Any]) -> dict[str, Any]:
    """Return what is known of vectors beside interpolation, for each client."""
    own = [[[text(b.vector), text(b.of), str(b.part)] for b in ledger.bounds(j)] for j in range(setting.n_clients)]
    return {"bounds": own} if any(own) else {}


def _chance(setting: Setting, ledger: Ledger, used: np.ndarray) -> dict[str, Any]:
    """Return which free vectors have the mean zero, in groups that do not depend on each other."""
    if not isinstance(setting.compressor, Unbiased):
        return {}
    place = {int(i): k for k, i in enumerate(used)}
    groups: dict[Any, list[int]] = {}
    for e in ledger.errors:
        groups.setdefault(e.client if setting.compressor.independent else None, []).append(place[e.place])
    return {"chance": sorted(map(sorted, groups.values()))}


def _vectors(blocks: Sequence[Block], weighed: Sequence[np.ndarray], general: FormalState) -> list[list[np.ndarray]]:
    """Return what V weighs, for all clients.

    Raises
    ------
    ValueError
        If the invariants do not hold for all of them.
    """
    try:
        found = [block.of(Y, basis) for block, Y, basis in zip(blocks, weighed, general.bases, strict=True)]
    except ValueError:
        raise ValueError("algorithm must treat clients with equal constants alike.") from None
    return [[rows[:, j] for j in range(rows.shape[1])] for rows in found]


def _numbers(end: Outcome, general: FormalState) -> list[Any]:
    return [x for x in leaves(end.state) if not is_vector(x, general.f)]


def _points_of(client: int, general: FormalState) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the points of a client, the minimiser first."""
    own = sorted((a for a in general.f.ledger.answers if a.client == client), key=lambda a: a.number)
    first = Answer(client, 0, general.theta, general.gradients[client])
    return [(a.x - general.theta, a.gradient) for a in (first, *own)]


def _all(parts: Any) -> Iterable[np.ndarray]:
    """Yield all vectors in nested lists."""
    if isinstance(parts, np.ndarray) and parts.ndim == 1:
        yield parts
    else:
        for part in parts:
            yield from _all(part)


def _texts(numbers: Iterable[Any]) -> list[str]:
    return [str(Fraction(x)) for x in numbers]


def _statement(setting: Setting) -> dict[str, Any]:
    """Return what is proved, and where the code is."""
    kind = type(setting.algorithm)
    assert setting.rounded is not None
    method, who = setting.rounded.algorithm, setting.rounded.participation
    spec = Spec.of(method, full=True)
    if ":" in spec.name:  # a file of somebody's: its folder concerns nobody
        spec = replace(spec, name=PurePath(spec.name).name)
    weights = setting.weights or (1,) * setting.n_clients
    return {
        "method": spec.to_json(),
        "code": spec.name if ":" in spec.name else f"{kind.__module__}:{kind.__qualname__}",
        "parameters": dict(_parameters(setting.algorithm)),
        "participation": None if who is None else Spec.of(who).to_json(),
        "clients": [
            {"mu": str(m), "L": str(M) if math.isfinite(M) else None, "weight": str(w)}
            for m, M, w in zip(setting.mu, setting.L, weights, strict=True)
        ],
        "literal": setting.literal,
        "late": setting.limits.late,
        "numbers": list(map(str, setting.limits.numbers)),
        **({"inexact": True} if setting.inexact else {}),
        **({"compressor": _compressor_to_json(setting.compressor)} if setting.compressor is not None else {}),
    }


def _compressor_to_json(kind: Unbiased | Contractive) -> dict[str, Any]:
    """Return what is known of a compressor."""
    if isinstance(kind, Unbiased):
        return {"omega": str(kind.omega), "independent": kind.independent}
    return {"delta": str(kind.delta)}


def _compressor_from_json(record: Any) -> Unbiased | Contractive:
    """Return what a statement says of a compressor."""
    if isinstance(record, dict) and "delta" in record:
        return Contractive(delta=float(checker.number(record["delta"], "delta")))
    omega = float(checker.number(checker.entry(record, "omega", "compressor"), "omega"))
    return Unbiased(omega=omega, independent=checker.entry(record, "independent", "compressor") is True)


def _parameters(value: Any, name: str = "") -> Iterable[tuple[str, str]]:
    """Yield the rational parameters of a method, and of the objects that it has."""
    if isinstance(value, Fraction):
        yield name, str(value)
    for key, own in sorted(getattr(value, "__dict__", {}).items()) if not isinstance(value, Fraction) else ():
        yield from _parameters(own, f"{name}.{key}".lstrip("."))


def as_proof(setting: Setting, system: OneRound, factor: Fraction, found: Lyapunov) -> dict[str, Any]:
    """Return the proof of a factor from a solution of the semidefinite program, which has room for rounding.

    Raises
    ------
    RuntimeError
        If no rounding of it is a proof.
    """
    parts = regenerated(setting, memory=bool(system.heights))
    times = math.ceil(1.01 * _square_of_model(parts))
    for digits in DIGITS:

        def rounded(numbers: Any, unit: int = 10**digits) -> np.ndarray:
            flat = [Fraction(round(x * unit), unit) for x in np.ravel(numbers).tolist()]
            return np.array(flat, dtype=object).reshape(np.shape(numbers))

        h = rounded(found.heights)
        changes = [(factor * a.values - b.values, a.values) for a, b in system.heights]
        falls, stays = np.tensordot(h, changes, 1) if changes else (0, 0)
        m = _balanced(system.inequalities, rounded(np.maximum(found.multipliers, 0.0)), falls)
        n = _balanced(system.of_latest, rounded(np.maximum(found.positive, 0.0)), stays)
        if m is None or n is None:
            continue
        P = [times * rounded((W + W.T) / 2) for W in found.weights]
        proof = _written(setting, parts, factor, P, times * h, times * m, times * n, system.n_bounds)
        try:
            checker.check(proof)
        except checker.RefusedError:
            continue
        return proof
    raise RuntimeError("the solution of the semidefinite program leaves no room for rounding; try a larger slack.")


def _square_of_model(parts: dict[str, Any]) -> float:
    """Return by how much the squared norm of the model is at most that of what V weighs."""
    (weighed,), model = parts["before"][0], parts["model"]
    rows, model = (np.array([[float(Fraction(x)) for x in v] for v in vs]) for vs in (weighed, [model]))
    return float(np.sum(np.linalg.lstsq(rows.T, model[0], rcond=None)[0] ** 2))


def _balanced(forms: Sequence[Form], given: np.ndarray, right: Any) -> np.ndarray | None:
    """Return multipliers near given ones with which the values of functions are as they should be; None if negative.

    What is missing is added to the largest of them.
    """
    if not forms:
        return given
    A = np.array([f.values for f in forms], dtype=object).T
    order = np.array(sorted(range(len(given)), key=lambda k: -given[k]))
    R, pivots = echelon(np.concatenate([A[:, order], (right - A @ given)[:, None]], axis=1))
    if len(given) in pivots:
        return None
    found = given.copy()
    found[order[pivots]] += R[:, -1]
    return found if min(found) >= 0 else None


def _written(
    setting: Setting,
    parts: dict[str, Any],
    factor: Fraction,
    weights: Sequence[np.ndarray],
    heights: np.ndarray,
    multipliers: np.ndarray,
    positive: np.ndarray,
    counts: Sequence[int],
) -> dict[str, Any]:
    """Return a proof: each client of a class has its part of weights and multipliers."""
    multipliers, rest = np.split(multipliers, [len(multipliers) - sum(counts)])
    of_bounds = np.split(rest, np.cumsum(counts)[:-1])
    classes, n_points = setting.classes, len(parts["points"][0])
    of_client = {j: c for c, own in enumerate(classes) for j in own.clients}

    def shared(numbers: np.ndarray, n: int) -> list[Any]:
        """Return the multipliers of each client, for pairs of its first n points."""
        rows = numbers.reshape(len(classes), -1) if len(numbers) else np.zeros((len(classes), 0))
        pairs = list(permutations(range(n), 2))
        return [
            [[a, b, str(m / len(classes[c]))] for (a, b), m in zip(pairs, rows[c], strict=False) if m]
            for _, c in sorted(of_client.items())
        ]

    matrices = [weights[0], *(W / len(own) for W, own in zip(weights[1:], classes, strict=True))]
    own_heights = [str(heights[c] / len(classes[c])) for _, c in sorted(of_client.items())] if len(heights) else None
    return {
        "factor": str(factor),
        **parts,
        "weights": [[_texts(row) for row in W] for W in matrices],
        "heights": own_heights,
        "multipliers": shared(multipliers, n_points),
        "positive": shared(positive, 2),
        **(
            {"bounded": [_texts(of_bounds[c] / len(classes[c])) for _, c in sorted(of_client.items())]}
            if rest.size
            else {}
        ),
    }


def check_proof(proof: Any, algorithm: type[Algorithm] | None = None) -> Fraction:
    r"""Return the factor that a proof proves of the code of a method.

    First the proof is checked as it stands, in exact arithmetic (``dualopt/lab/proofs/checker.py``, a file that needs
    the standard library alone). Then the code runs on formal vectors with rational coefficients, and must give the
    vectors of the proof: the state, what a round makes of it in all that may happen, and what clients were asked.

    Parameters
    ----------
    proof : dict
        What :meth:`Rate.proof` returns, or JSON that somebody claims to be that; nothing is imported for it.
    algorithm : type, optional
        The class of the method, where this is none of the package.

    Raises
    ------
    ValueError
        If it is no proof, or one of other code; the sentence says why.

    Examples
    --------
    >>> from dualopt.lab.proofs import prove
    >>> proof = prove("gradient-descent: step=0.5", mu=1, L=2).proof()
    >>> float(check_proof(proof))
    0.25002
    >>> proof["factor"] = "1/5"
    >>> check_proof(proof)
    Traceback (most recent call last):
    dualopt.lab.proofs.checker.RefusedError: V is not shown to fall by the factor: what remains is no sum of squares.
    """
    factor = checker.check(proof)
    statement = checker.entry(proof, "statement")
    try:
        setting = _setting(statement, proof["dimension"], len(proof["after"]), algorithm)
        found = regenerated(setting, memory=bool(proof["heights"]))
    except (ValueError, TypeError, ArithmeticError, AttributeError, RecursionError) as error:
        said = str(error)
        ours = isinstance(error, ValueError) and said.endswith(".") and len(said.splitlines()) == 1
        raise checker.RefusedError(said if ours else "statement must be about a method that runs.") from error
    if algorithm is not None:  # it may lie elsewhere than when it was proved
        found["statement"] |= {key: statement[key] for key in CODE}
    for key in dict.fromkeys([*found, *KNOWN]):
        if proof.get(key) != found.get(key):
            raise checker.RefusedError(f"the code of the method gives another {key!r} than the proof has.")
    return factor


def _setting(statement: Any, dimension: int, n_events: int, algorithm: type[Algorithm] | None) -> Setting:
    """Return what a statement is about."""
    method, who = (checker.entry(statement, key, "statement") for key in ("method", "participation"))
    spec = Spec.from_json(method, "method")
    known = () if algorithm is None else (algorithm,)
    given = ":" not in spec.name or algorithm is not None
    require(given, f"algorithm must be given, for {spec.name!r} is none of this package")
    participation = None if who is None else Spec.from_json(who, "participation").build("participation", types=())
    clients = statement["clients"]
    require(len(clients) <= dimension + 1, "clients must be no more than the vectors of the proof and one")
    size, N = getattr(participation, "size", len(clients)), len(clients)
    count = 2**N if isinstance(participation, Bernoulli) else math.comb(N, size)
    few = count <= max(n_events, MOST_COHORTS)
    require(few, "participation must have no more cohorts than the proof")
    mu, L, weights = (
        [math.inf if c.get(key, "1") is None else float(checker.number(c.get(key, "1"), key)) for c in clients]
        for key in ("mu", "L", "weight")
    )
    own = None if len(set(weights)) == 1 else weights
    method, literal = spec.build("algorithm", types=known), statement.get("literal") is True
    record = statement.get("compressor")
    compressor = None if record is None else _compressor_from_json(record)
    known = {"inexact": statement.get("inexact") is True, "compressor": compressor}
    return Setting.of(method, mu, L, None, participation, own, literal=literal, **known)
