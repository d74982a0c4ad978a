"""What every method does on six problems, bit for bit: recorded by one version of the code, compared by another.

``python -m tests.trajectories record FILE`` writes a hash of every trajectory, ``python -m tests.trajectories compare
FILE`` computes them again and names those that differ; exit 1 if one does. Bits depend on the processor and on the
libraries of linear algebra, so both are done on one machine. It takes some minutes of one core.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import array_api_strict
import numpy as np
from threadpoolctl import threadpool_limits

import dualopt
from dualopt import (
    L1,
    Bernoulli,
    CommunicateWithProbability,
    Composite,
    Full,
    Hinge,
    Logistic,
    Multinomial,
    Quadratic,
    Squared,
    UniformSubset,
    linear_model,
)
from dualopt.arrays.xp import to_numpy
from dualopt.engine import Blocks

ROUNDS = 12
LIBRARIES = {"numpy": np.asarray, "strict": array_api_strict.asarray}
CHANCE = {
    "full": Full(),
    "subset": UniformSubset(size=2),
    "bernoulli": Bernoulli(probability=0.4),
    "skip": CommunicateWithProbability(probability=0.6),
}
ENGINES = {"one": None, "blocks": Blocks(number=3)}
METHODS = {
    name: kind
    for name in sorted(dualopt.__all__)
    if isinstance(kind := getattr(dualopt, name), type)
    and issubclass(kind, dualopt.Algorithm)
    and kind is not dualopt.Algorithm
}


def rows(seed: int, sizes: list[int], scales: list[float]) -> tuple[np.ndarray, np.ndarray, list[list[int]]]:
    """Rows of clients of these sizes, whose features have these scales."""
    rng = np.random.default_rng(seed)
    X = np.concatenate([scale * rng.standard_normal((m, 4)) for m, scale in zip(sizes, scales, strict=True)])
    z = X @ np.array([1.0, -0.5, 0.2, 0.1]) + 0.7 * rng.standard_normal(len(X))
    return X, z, [part.tolist() for part in np.split(np.arange(len(X)), np.cumsum(sizes)[:-1])]


def problems(array: Any) -> dict[str, Any]:
    """Six problems; in two of them clients differ in mu, L and size."""
    rng = np.random.default_rng(3)
    basis = [np.linalg.qr(rng.standard_normal((4, 4)))[0] for _ in range(5)]
    bounds = [(0.2, 4.0), (0.5, 30.0), (1.0, 8.0), (0.3, 2.0), (2.0, 12.0)]
    A = np.stack([Q @ np.diag(np.linspace(mu, L, 4)) @ Q.T for Q, (mu, L) in zip(basis, bounds, strict=True)])
    quadratic = Quadratic(A=array((A + A.transpose(0, 2, 1)) / 2), b=array(rng.standard_normal((5, 4))))
    X, z, clients = rows(5, [3, 40, 7, 22, 11], [0.3, 1.0, 3.0, 0.7, 2.0])
    X1, z1, equal = rows(6, [12] * 5, [1.0] * 5)
    signs, signs1, classes = np.sign(z), np.sign(z1), (z1 > 0).astype(np.int64) + (z1 > 1)
    lopsided = linear_model(array(X), array(signs), loss=Logistic(), mu=0.03, clients=clients)
    return {
        "quadratic-lopsided": quadratic,
        "logistic-lopsided": lopsided,
        "logistic": linear_model(array(X1), array(signs1), loss=Logistic(), mu=0.05, clients=equal),
        "multinomial": linear_model(array(X1), array(classes), loss=Multinomial(classes=3), mu=0.05, clients=equal),
        "hinge": linear_model(array(X1), array(signs1), loss=Hinge(), mu=0.5, clients=equal),
        "squared-l1": Composite(
            objective=linear_model(array(X1), array(z1), loss=Squared(), mu=0.1, clients=equal),
            regulariser=L1(weight=0.02),
        ),
    }


def trajectory(kind: type, objective: Any, chance: str, engine: str) -> str:
    """The hash of models, local models, states and counts of some rounds; or what a refusal says."""
    digest = hashlib.sha256()
    try:
        snapshots = dualopt.iterate(kind(), objective, participation=CHANCE[chance], seed=1, engine=ENGINES[engine])
        for s in itertools.islice(snapshots, ROUNDS):
            parts = [s.server.theta, *leaves(s.server), *leaves(s.message), *leaves(s.clients)]
            gradients = () if s.solution is None or s.solution.gradients is None else s.solution.gradients
            counts = (s.round.clients, s.round.communicate, s.floats_up, s.floats_down, s.bits_up, s.bits_down)
            digest.update(
                repr((tuple(map(int, s.round.clients)), *counts[1:], np.asarray(gradients).tolist())).encode()
            )
            for part in parts:
                host = np.ascontiguousarray(to_numpy(part) if hasattr(part, "shape") else np.asarray(part))
                digest.update(str((host.shape, str(host.dtype))).encode() + host.tobytes())
    except (ValueError, NotImplementedError, AttributeError, TypeError) as error:
        return f"{type(error).__name__}: {error}"
    return digest.hexdigest()


def leaves(tree: Any) -> list[Any]:
    """The arrays and numbers of a tree of tuples."""
    if isinstance(tree, tuple):
        return [leaf for part in tree for leaf in leaves(part)]
    return [] if tree is None else [tree]


def trajectories() -> dict[str, str]:
    """All of them, by library, problem, method, participation and engine."""
    found = {}
    for library, array in LIBRARIES.items():
        for problem, objective in problems(array).items():
            for name, kind in METHODS.items():
                for chance in CHANCE:
                    engines = ENGINES if library == "numpy" else {"one": None}
                    for engine in engines:
                        key = f"{library} {problem} {name} {chance} {engine}"
                        found[key] = trajectory(kind, objective, chance, engine)
    return found


def main() -> int:
    """Record or compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["record", "compare"])
    parser.add_argument("file", type=Path)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    with threadpool_limits(limits=1):
        found = trajectories()
    if given.what == "record":
        given.file.write_text(json.dumps(found, indent=0))
        print(f"{len(found)} trajectories, {sum(len(value) != 64 for value in found.values())} refusals")
        return 0
    known = json.loads(given.file.read_text())
    differing = [key for key in known if found.get(key) != known[key]]
    for key in differing:
        print(key, "|", known[key][:90], "|", found.get(key, "missing")[:90])
    print(
        f"{len(known) - len(differing)} of {len(known)} are equal in every bit, {len(found.keys() - known.keys())} new"
    )
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
