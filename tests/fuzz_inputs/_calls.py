"""Odd arguments of the library: values of another type, beyond the range, or that only look right."""

from __future__ import annotations

import functools
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

import dualopt
import dualopt.losses
import dualopt.methods
import dualopt.methods.participation
import dualopt.regularisers
import dualopt.solvers
from dualopt.arrays._checks import _plain
from dualopt.problem import data
from dualopt.runs import tuning
from dualopt.runs.trace import Trace
from dualopt.solvers import stopping
from dualopt.spec.discover import discover
from tests.fuzz_inputs._case import Case, Expected

__all__ = ["FAMILIES"]

Rng = np.random.Generator

NAN, INF = float("nan"), float("inf")
NO_NUMBER = [
    "a",
    "",
    "1",
    b"1",
    [],
    [1.0],
    {},
    (1,),
    object(),
    1j,
    NAN,
    np.array([1.0, 2.0]),
    np.nan,
    str,
    np.ma.masked,
]
NO_INTEGER = [*NO_NUMBER, 1.5, INF, -INF, True, Fraction(3, 2), np.float64(1.5), 2.0, np.datetime64("2020")]
NO_FLOAT = [*NO_NUMBER, True, np.datetime64("2020"), np.array([[1.0]])]
NO_FLAG = ["no", "", 0.5, None, [], NAN, 2, "False"]
NO_FUNCTION = [1, "energy", [], True]
NO_OBJECT = ["", 1, 1.5, [], {}, object(), NAN, b"x", True]


def run_argument(rng: Rng) -> Case:
    """An argument of ``run`` that is none."""
    name, value = _one(
        rng,
        [
            *_each("rounds", [*NO_INTEGER, None, -1, -(10**30)]),
            *_each("seed", [*NO_INTEGER, None, -1]),
            *_each("tol", [*NO_FLOAT, 0, -1.0, INF, -INF]),
            *_each("atol", [*NO_FLOAT, 0, -1.0, INF, -INF]),
            *_each("certify_every", [*NO_INTEGER, None, -1]),
            *_each("measure_every", [*NO_INTEGER, None, 0, -1]),
            *_each("threads", [*NO_INTEGER, 0, -1, 10**30]),
            *_each("reference", [*NO_FLOAT, INF, -INF]),
            *_each("check_assumptions", NO_FLAG),
            *_each("callback", NO_FUNCTION),
            *_each("stop", NO_FUNCTION),
            *_each("measure", [1, "energy", {"energy": len}, {"round": len}, {"x": 1}, {1: len}, {"": len}, [len]]),
            *_each(
                "measure", [{name: len} for name in ("seconds", "certificate", "error", "gradients", "certified_error")]
            ),
            *_each("participation", [*NO_OBJECT, dualopt.methods.participation.Full, "subset=99"]),
            *_each(
                "theta0", [1.0, "a", [0.0], np.zeros(7), np.full(4, NAN), np.zeros(4, dtype=int), np.array("a"), {}]
            ),
            *_each(
                "theta0", [np.zeros(4, dtype=np.float32), np.zeros((1, 4)), np.zeros(4) * 1j, np.zeros(4, dtype=object)]
            ),
            *_each("parameters", [1, "a", [1], {"x": object()}, {"status": "x"}]),
            *_each("prepare", [1, "one-shot", [1], object()]),
        ],
    )
    return _refused(f"run({name}={_shown(value)})", (name, "status"), functools.partial(_run, {name: value}))


def run_object(rng: Rng) -> Case:
    """An algorithm or an objective that is none."""
    name, value = _one(
        rng,
        [
            *_each("algorithm", [*NO_OBJECT, None, dualopt.Hinge(), "dulafl", "DualFL ", "\udcff"]),
            *_each("objective", [*NO_OBJECT, None, "dualfl", np.eye(3), dualopt.Hinge(), dualopt.Quadratic]),
        ],
    )
    return _refused(f"run with {name} {_shown(value)}", (name,), functools.partial(_run, {name: value}))


def good_argument(rng: Rng) -> Case:
    """An unusual value that is as good as a plain one."""
    name, value, plain = _one(
        rng,
        [
            ("rounds", np.int64(2), 2),
            ("rounds", np.uint8(2), 2),
            ("seed", np.int32(3), 3),
            ("seed", 2**100, 2**100),
            ("tol", np.float32(0.5), 0.5),
            ("tol", Fraction(1, 2), 0.5),
            ("tol", 1, 1.0),
            ("reference", np.float64(0.1), 0.1),
            ("certify_every", np.int8(1), 1),
            ("check_assumptions", np.True_, True),
            ("measure", {}, None),
        ],
    )
    return Case(
        what=f"run({name}={value!r})",
        program="python",
        expected=Expected.SAME,
        call=functools.partial(_run, {name: value}),
        clean=Case(what="clean", program="python", call=functools.partial(_run, {name: plain})),
    )


def part(rng: Rng) -> Case:
    """A parameter of a method, a solver, a loss, a rule that is no number."""
    cls, name, kind = _one(rng, _parts())
    bad = {int: NO_INTEGER, float: [*NO_FLOAT, -INF], bool: ["no", "", 0.5, [], 2], str: ["", "\udcff", 1, [], b"x"]}[
        kind
    ]
    value = _one(rng, bad)
    return _refused(
        f"{cls.__name__}({name}={_shown(value)})", (name, "solver"), functools.partial(_made, cls, {name: value})
    )


def built(rng: Rng) -> Case:
    """Arguments of what builds problems and loads data."""
    function, arguments, name = _one(
        rng,
        [
            *_calls(_linear, "mu", [*NO_FLOAT, None, -1.0, INF]),
            *_calls(_linear, "weights", ["", "x", 1, [], np.full(24, NAN), {}]),
            *_calls(_linear, "client_weights", ["", "x", 1, [], [NAN], [0.0], ["a"], {"b": 1}]),
            *_calls(_linear, "intercept", NO_FLAG),
            *_calls(_linear, "storage", ["", "x", 1, [], None]),
            *_calls(_linear, "loss", ["", "x", 1, [], None, dualopt.Logistic, object()]),
            *_calls(_load, "seed", [*NO_INTEGER, None, -1]),
            *_calls(_load, "dtype", ["", "float16", None, np.float64, 1]),
            *_calls(_load, "scale", ["", "x", None, -1, 0, NAN, INF, [], True, 1j]),
            *_calls(_load, "name", [None, 1, "", b"", b"\xff", [], object(), "a\0b"]),
            *_calls(_load, "data_home", [1, "", [], "a\0b", b"\xff"]),
            *_calls(_load, "m", [*NO_INTEGER, None, 0, -1]),
            *_calls(_load, "d", [*NO_INTEGER, None, 0, -1]),
            *_calls(_partition, "kind", ["", None, 1, "x", []]),
            *_calls(_partition, "n_clients", [*NO_INTEGER, None, 0, -1, 25]),
            *_calls(_partition, "seed", [*NO_INTEGER, None, -1]),
            *_calls(_partition, "alpha", [*NO_FLOAT, None, 0.0, -1.0, INF]),
            *_calls(_shares, "sigma", [*NO_FLOAT, -1.0, INF]),
            *_calls(_encode, "kind", ["", None, 1, "x", []]),
            *_calls(_encode, "classes", ["", 1.5, -1, NAN, [[1]], {}]),
            *_calls(_encode, "y", [None, 1, "a", [], [NAN], [None], [[1.0]], [1j], [object()], {}]),
            *_calls(
                _quadratic,
                "A",
                [None, 1, "a", np.eye(2), np.full((2, 2, 2), NAN), np.zeros((2, 2, 3)), np.zeros((0, 2, 2))],
            ),
            *_calls(
                _quadratic, "b", [None, 1, "a", np.zeros(2), np.full((2, 2), INF), np.zeros((3, 2)), np.zeros((2, 3))]
            ),
            *_calls(_scale, "how", ["", "x", None, -1, 0, NAN, INF, [], True, 1j]),
            *_calls(_subsample, "rows", [*NO_INTEGER, None, 0, -1, 25]),
        ],
    )
    naming = {
        "name": ("name", "data"),
        "n_clients": ("n_clients", "clients"),
        "how": ("scale",),
        "kind": ("kind", "partition"),
    }.get(name, (name,))
    value = _shown(arguments[name])
    return _refused(f"{function.__name__}({name}={value})", naming, functools.partial(_numbers, function, arguments))


def searched(rng: Rng) -> Case:
    """Arguments of ``tune``."""
    name, value = _one(
        rng,
        [
            *_each("metric", ["", "energy", None, 1, "seconds"]),
            *_each("target", [*NO_FLOAT, 0.0, -1.0, INF]),
            *_each("rounds", [*NO_INTEGER, -1, None]),
            *_each("seed", [*NO_INTEGER, -1, None]),
            *_each("jobs", [*NO_INTEGER, 0, -1, None]),
            *_each("reference", [*NO_FLOAT, INF]),
            *_each("check_assumptions", NO_FLAG),
            *_each("early_stopping", NO_FLAG),
            *_each("candidates", [1, "x", None, [1], ["dualfl"], {}]),
        ],
    )
    return _refused(f"tune({name}={_shown(value)})", (name,), functools.partial(_tune, {name: value}))


def read(rng: Rng) -> Case:
    """Files of traces that are none."""
    suffix = _one(rng, ["csv", "npz"])
    content = _one(
        rng,
        [b"", b"abc", b"\xff\xfe", b"# status: \n", b"# status: 1\nround\n1\n", b"round\n0\n", b"PK\x03\x04", b"# x"],
    )
    name = f"trace.{suffix}"
    reader = Trace.from_csv if suffix == "csv" else Trace.from_npz
    return Case(
        what=f"Trace.from_{suffix} of {content!r}",
        program="python",
        naming=("path",),
        arrange=lambda folder: (folder / name).write_bytes(content),
        call=lambda: repr(reader(name)),
    )


FAMILIES: tuple[Callable[[Rng], Case], ...] = (
    run_argument,
    run_argument,
    run_argument,
    run_object,
    good_argument,
    part,
    part,
    part,
    built,
    built,
    searched,
    read,
)


def _one(rng: Rng, of: list[Any]) -> Any:
    return of[int(rng.integers(len(of)))]


def _each(name: str, values: list[Any]) -> list[tuple[str, Any]]:
    return [(name, value) for value in values]


def _calls(
    function: Callable[..., Any], name: str, values: list[Any]
) -> list[tuple[Callable[..., Any], dict[str, Any], str]]:
    return [(function, {name: value}, name) for value in values]


def _shown(value: Any) -> str:
    return repr(value)[:60].partition(" at 0x")[0]


def _refused(what: str, naming: tuple[str, ...], call: Callable[[], Any]) -> Case:
    return Case(what=what, program="python", naming=naming, call=call)


def _objective() -> Any:
    found = data.load("synthetic-logistic", m=24, d=3)
    return dualopt.linear_model(
        found.X, data.encode_labels(found.y, "binary"), loss=dualopt.Logistic(), mu=0.1, clients=3
    )


def _run(changes: dict[str, Any]) -> Any:
    given = {"algorithm": dualopt.DualFL(), "objective": _objective(), "rounds": 2, **changes}
    trace = dualopt.run(given.pop("algorithm"), given.pop("objective"), **given)
    return {name: trace[name] for name in trace.columns if name != "seconds"} | {"theta": trace.theta}


def _tune(changes: dict[str, Any]) -> Any:
    candidates = [tuning.Candidate(algorithm=dualopt.DualFL(rho=rho)) for rho in (0.0, 0.1)]
    given = {"candidates": candidates, "rounds": 3, **changes}
    found = tuning.tune(given.pop("candidates"), _objective(), **given)
    return {n: outcome.costs for n, outcome in found.items()}


def _made(cls: type, arguments: dict[str, Any]) -> str:
    return repr(
        cls(**_needed(cls), **arguments) if not set(_needed(cls)) & set(arguments) else cls(**_needed(cls) | arguments)
    )


def _needed(cls: type) -> dict[str, Any]:
    """Return values of the parameters that have no default."""
    from dataclasses import MISSING, fields

    open_ = [f for f in fields(cls) if f.default is MISSING and f.default_factory is MISSING and f.init]
    values = {"int": 2, "float": 0.1, "bool": False}
    return {f.name: values[str(f.type)] for f in open_ if str(f.type) in values}


@cache
def _parts() -> list[tuple[type, str, type]]:
    """Return the classes with parameters that are plain, their names and types."""
    rules = [rule for rule in stopping.RULES.values() if rule is not stopping.Gap]
    rules += [stopping.SublinearSchedule, stopping.LinearSchedule]
    rules += [dualopt.methods.participation.UniformSubset, dualopt.methods.participation.Bernoulli]
    rules += [dualopt.methods.participation.CommunicateWithProbability]
    packages = (dualopt.methods, dualopt.solvers, dualopt.losses, dualopt.regularisers)
    classes = [cls for package in packages for cls in discover(package).values()] + rules
    return [(cls, name, kind) for cls in classes for name, kind in _plain(cls).items()]


def _numbers(function: Callable[..., Any], arguments: dict[str, Any]) -> str:
    return repr(function(**arguments))


def _linear(**changes: Any) -> Any:
    found = data.load("synthetic-logistic", m=24, d=3)
    given = {"loss": dualopt.Logistic(), "mu": 0.1, "clients": 3, **changes}
    return dualopt.linear_model(found.X, data.encode_labels(found.y, "binary"), **given)


def _load(**changes: Any) -> Any:
    given = {"name": "synthetic-logistic", "m": 24, "d": 3, **changes}
    return data.load(given.pop("name"), **given)


def _partition(**changes: Any) -> Any:
    given = {"kind": "dirichlet", "n_clients": 3, **changes}
    return data.partition(given.pop("kind"), np.arange(24) % 3, given.pop("n_clients"), **given)


def _shares(**changes: Any) -> Any:
    return data.partition("lognormal", np.arange(24) % 3, 3, **changes)


def _encode(**changes: Any) -> Any:
    given = {"y": np.arange(24) % 3, "kind": "class", **changes}
    return data.encode_labels(given.pop("y"), given.pop("kind"), **given)


def _quadratic(**changes: Any) -> Any:
    return dualopt.Quadratic(**{"A": np.stack([np.eye(2)] * 2), "b": np.ones((2, 2)), **changes})


def _scale(**changes: Any) -> Any:
    return data.scale(np.eye(3), **changes)


def _subsample(**changes: Any) -> Any:
    return data.subsample(np.zeros(24), **{"seed": 0, **changes})
