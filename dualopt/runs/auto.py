"""A run that begins with the method that is recommended, and changes it when some rounds show that it must.

It goes from method to method, each from the model that the one before has left: the recommended one, its runner-up,
then L-BFGS at the server where it is admitted. A method is left

* when no model of its first rounds is better than the one that it began with,
* when the certified gap, where it is measured, has not fallen enough in the last rounds,
* when it diverges or stalls (:mod:`dualopt.runs.divergence`, :func:`dualopt.run`).

The last one goes on to the end. What a rule looks at are the rows of the trace, so that a run that is continued from a
checkpoint takes the same way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from dualopt.arrays._checks import require
from dualopt.arrays.xp import Array, asarray_like, width
from dualopt.engine.checkpoint import Checkpoint
from dualopt.engine.rounds import resolve, scaled
from dualopt.methods import Algorithm
from dualopt.methods.participation import as_participation, law_of
from dualopt.objectives import Objective
from dualopt.runs.costs import MINIMISED
from dualopt.runs.recommendation import Recommendation, recommend
from dualopt.runs.trace import SPENT, Trace
from dualopt.spec import Spec
from dualopt.spec.discover import unknown_name

__all__ = ["AUTO", "Auto", "Chosen", "check_auto", "last_method", "leaves", "methods_of", "path_in_words", "run_auto"]

AUTO = "auto"
LAST = "distributed-lbfgs"  # the method that is tried last: it needs neither parameters nor clients that are alike
WINDOW = 10  # rounds of all clients in which something must have become better
FALL = 4.0  # what the certified gap must fall by in them, where rates are linear
ANY = 1.0 + 1e-9  # and where they are not
ENDS = ("diverged", "stalled")  # statuses after which the next method may do better


@dataclass(frozen=True, kw_only=True)
class Auto:
    """The method that a problem asks for, and another one when a few rounds show that it must be changed.

    Parameters
    ----------
    minimise : str, default "vectors"
        What to keep small, as in :func:`dualopt.recommend`.

    Raises
    ------
    ValueError
        If ``minimise`` is not vectors, gradients or bits.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt import Quadratic, run
    >>> f = Quadratic(A=np.stack([np.diag([1.0, 4.0]), np.diag([2.0, 3.0])]), b=np.array([[3.0, 0.0], [0.0, 7.0]]))
    >>> trace = run("auto", f, rounds=60, atol=1e-9)
    >>> trace.status, trace.theta.round(3).tolist(), [part["algorithm"] for part in trace.parameters["path"]]
    ('converged', [1.0, 1.0], ['distributed-lbfgs'])
    """

    name: ClassVar[str] = AUTO
    minimise: str = MINIMISED[0]

    def __post_init__(self) -> None:
        if self.minimise not in MINIMISED[:-1]:  # seconds are those of a link, which is asked for with recommend
            raise unknown_name("minimise", self.minimise, MINIMISED[:-1])

    @classmethod
    def of(cls, algorithm: Any) -> Auto | None:
        """Return the choice that a method, its text or its spec stands for, None for one method.

        >>> Auto.of("auto: minimise=gradients"), Auto.of("dualfl")
        (Auto(minimise='gradients'), None)
        """
        if isinstance(algorithm, cls):
            return algorithm
        spec = Spec.parse(algorithm, "algorithm") if isinstance(algorithm, str) else algorithm
        if not isinstance(spec, Spec) or spec.name != AUTO:
            return None
        for name in spec.arguments:
            require(name == "minimise", "algorithm auto takes minimise alone, the methods have their own parameters")
        return cls(**{name: str(value) for name, value in spec.arguments.items()})


class Chosen(NamedTuple):
    """A method that is tried."""

    algorithm: Algorithm  # with no parameter open
    name: str
    scales: str


def leaves(rows: Sequence[Mapping[str, float]], *, rounds: float, patience: int = 0, fall: float = FALL) -> str | None:
    """Return why a method is left after these rows of its trace, None where it goes on.

    Parameters
    ----------
    rows : sequence of dict
        Those of the trace so far; the first is that of the start.
    rounds : float
        The number of rounds in which something must have become better.
    patience : int
        Rounds in which the model may stay where it began while the method works.
    fall : float
        What the certified gap must have fallen by.

    Examples
    --------
    >>> falls = [{"energy": 1.0 + 0.8**n, "certificate": 0.8**n} for n in range(30)]
    >>> leaves(falls, rounds=10), leaves(falls, rounds=5)
    (None, 'the certified gap fell by a factor of 3.05 in 5 rounds')
    >>> leaves([{"energy": 1.0 + n, "certificate": math.nan} for n in range(11)], rounds=10)
    'E was never below 1 in 10 rounds'
    """
    done, window = len(rows) - 1, math.ceil(rounds)
    start = rows[0]["energy"]
    found = [row["energy"] for row in rows[1:] if not math.isnan(row["energy"])]
    if found and done >= max(window, patience) and not min(found) < start:
        return f"E was never below {start:.6g} in {done} rounds"
    gaps = [row["certificate"] for row in rows]
    before, now = _least(gaps[:-window]), _least(gaps)
    if not before < math.inf or gaps[-1] != gaps[-1] or now <= before / fall:
        return None
    return f"the certified gap fell by a factor of {before / now:.3g} in {window} rounds"


def _least(gaps: Sequence[float]) -> float:
    """Return the least certified gap, NaN where none was measured."""
    return min((gap for gap in gaps if not math.isnan(gap)), default=math.nan)


def run_auto(
    run: Callable[..., Trace],
    algorithm: Auto,
    objective: Objective,
    *,
    rounds: int,
    theta0: Array | None,
    participation: Any,
    compressor: Any,
    scales: Any,
    prepare: Any,
    checkpoint: Checkpoint | None,
    callback: Callable[..., Any] | None,
    stop: Callable[..., bool] | None,
    **options: Any,
) -> tuple[Algorithm, Trace]:
    """Do what ``run`` is asked for with one method after the other; return the last one, and one trace of all.

    Raises
    ------
    ValueError
        If there is a preparation or scales, or nothing can be recommended.
    """
    check_auto(prepare, scales)
    who = as_participation(participation)
    found = recommend(objective, who, minimise=algorithm.minimise)
    methods, law = methods_of(found, objective, who, compressor), law_of(who, objective.n_clients)
    fall = FALL if found.facts.smooth and found.facts.mu > 0 else ANY
    window, path = WINDOW / max(law.fraction * law.communication, 1e-3), _Path(_asked(found, objective))
    for number, chosen in enumerate(methods):
        last = number == len(methods) - 1
        kept = None if checkpoint is None else _part(checkpoint, number)
        trace = None if kept is None else _left_before(kept, objective)
        if trace is None:
            trace = run(
                chosen.algorithm,
                objective,
                rounds=rounds - path.rounds,
                theta0=theta0,
                participation=participation,
                compressor=compressor,
                scales=chosen.scales,
                checkpoint=kept,
                callback=path.after_this(callback),
                stop=path.after_this(stop),
                watch=None if last else partial(leaves, rounds=window, patience=chosen.algorithm.patience, fall=fall),
                **options,
            )
        reason = trace.parameters.get("left") or (f"it {trace.status}" if trace.status in ENDS else None)
        on = reason is not None and not last and path.rounds + len(trace) - 1 < rounds
        path.add(chosen, trace, reason if on else None)
        if on and kept is not None:
            trace.to_npz(_file_of(kept))
        if not on or path.stopped:
            return chosen.algorithm, path.trace(rounds)
        theta0 = trace.theta if trace["energy"][-1] < trace["energy"][0] or trace.status == "diverged" else theta0
    raise AssertionError("the last method is not left")


def check_auto(prepare: Any, scales: Any) -> None:
    """Refuse what a run that chooses cannot be given.

    Raises
    ------
    ValueError
        If there is a preparation, or there are scales.
    """
    require(not prepare, "prepare must not be given with algorithm auto: nothing is recommended after a preparation")
    require(scales in (None, "none"), "scales must not be given with algorithm auto, which chooses them")


def methods_of(found: Recommendation, objective: Objective, who: Any, compressor: Any) -> list[Chosen]:
    """Return the methods that are tried one after the other: the recommended one, and others that the problem admits.

    None comes after ``distributed-lbfgs``.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt import Quadratic
    >>> f = Quadratic(A=np.stack([np.diag([1.0, 4.0]), np.diag([2.0, 3.0])]), b=np.array([[3.0, 0.0], [0.0, 7.0]]))
    >>> [chosen.name for chosen in methods_of(recommend(f), f, None, None)]
    ['distributed-lbfgs']
    """
    runner_up = found.rule.runner_up
    named = {found.method: found.scales, **({runner_up: "none"} if runner_up else {}), LAST: "none"}
    chosen: list[Chosen] = []
    for name, scales in named.items():
        try:
            method, clients = _completed(name, scales, objective, who, compressor)
            method.check(clients)
        except ValueError:
            continue
        chosen.append(Chosen(method, name, scales))
        if name == LAST:
            break
    require(bool(chosen), f"algorithm auto finds no method: {found.method} does not fit the problem or the compressor")
    return chosen


class _Path:
    """The traces of the methods so far, as one."""

    def __init__(self, asked: Mapping[str, float]) -> None:
        self.parts: list[dict[str, Any]] = []  # method, round from which, and why it was left
        self.rounds = 0
        self.stopped = False  # whether the callback has asked for the end
        self._spent = dict(asked)  # by what came before the present method
        self._columns: dict[str, list[float]] = {}
        self._last: Any = None

    def after_this(self, function: Callable[..., Any] | None) -> Callable[..., Any] | None:
        """Return the function of a snapshot and a row for a method that comes next, whose rows begin at zero."""
        spent, rounds = dict(self._spent), self.rounds

        def call(snapshot: Any, row: Mapping[str, float]) -> Any:
            assert function is not None
            whole = {**row, "round": row["round"] + rounds, **{name: row[name] + spent[name] for name in SPENT}}
            answer = function(snapshot, whole)
            self.stopped |= bool(answer)
            return answer

        return None if function is None else call

    def add(self, chosen: Chosen, trace: Trace, reason: str | None) -> None:
        """Add the rounds of a method, without the row of its start where others came before."""
        own = {} if chosen.scales == "none" else {"scales": chosen.scales}
        because = {"left_because": reason} if reason else {}
        self.parts.append({"algorithm": chosen.name, **own, "from_round": self.rounds, **because})
        before, first = {"round": self.rounds, **self._spent}, 1 if self._columns else 0
        for column, values in trace.columns.items():
            self._columns.setdefault(column, []).extend((values[first:] + before.get(column, 0.0)).tolist())
        self._spent = {name: self._columns[name][-1] for name in SPENT}
        self.rounds += len(trace) - 1
        self._last = trace

    def trace(self, rounds: int) -> Trace:
        """Return one trace of all methods."""
        kept = {name: value for name, value in self._last.parameters.items() if name != "left"}
        parameters = {**kept, "rounds": rounds, "path": self.parts}
        return Trace(columns=self._columns, status=self._last.status, theta=self._last.theta, parameters=parameters)


def last_method(trace: Trace, objective: Objective, participation: Any, compressor: Any) -> tuple[Algorithm, Objective]:
    """Return the method with which a run of ``"auto"`` ended, and the clients as it saw them."""
    last, who = trace.parameters["path"][-1], as_participation(participation)
    return _completed(last["algorithm"], last.get("scales"), objective, who, compressor)


def _completed(
    name: str, scales: str | None, objective: Objective, who: Any, compressor: Any
) -> tuple[Algorithm, Objective]:
    """Return a method with no parameter open, and the clients as it sees them."""
    method = Spec(name).build("algorithm")
    clients = scaled(method, objective, scales, who)
    return resolve(method, clients, who, compressor), clients


def path_in_words(trace: Trace) -> dict[str, str]:
    """Return a line that says which methods have run, from which round, and why; nothing where none was chosen."""
    parts = [
        f"{part['algorithm']} from round {part['from_round'] + 1}"
        + (f" (left: {part['left_because']})" if "left_because" in part else "")
        for part in trace.parameters.get("path", ())
    ]
    return {"methods": ", then ".join(parts)} if parts else {}


def _asked(found: Recommendation, objective: Objective) -> dict[str, float]:
    """Return what the recommendation has cost, in the columns of a trace."""
    spent: dict[str, float] = dict.fromkeys(SPENT, 0.0)
    if found.measured is None:
        return spent
    zero, N = objective.zeros(), objective.n_clients
    vectors = found.measured.vectors, found.measured.vectors_down
    up, down = (float(n * N * math.prod(objective.shape)) for n in vectors)
    bits = {"bits_up": up * width(zero), "bits_down": down * width(zero)}
    rounds = float(found.measured.communications)
    counted = {"communications": rounds, "floats_up": up, "floats_down": down, "gradients": found.measured.gradients}
    return spent | bits | counted


def _part(checkpoint: Checkpoint, number: int) -> Checkpoint:
    """Return the checkpoint of one method; that of the first one has the file of all."""
    path = Path(checkpoint.path)
    name = path.name if number == 0 else f"{path.stem}-{number + 1}{path.suffix}"
    settings = {name: getattr(checkpoint, name) for name in ("seconds", "resume", "keep_stale")}
    return Checkpoint(path.with_name(name), **settings)


def _file_of(checkpoint: Checkpoint) -> Path:
    """Return the file of the trace of a method that was left."""
    path = Path(checkpoint.path)
    return path.with_name(f"{path.stem}.left.npz")


def _left_before(checkpoint: Checkpoint, objective: Objective) -> Trace | None:
    """Return the trace of a method that was left before the run was interrupted."""
    path = _file_of(checkpoint)
    if not checkpoint.resume:
        path.unlink(missing_ok=True)
    if not path.exists():
        return None
    trace = Trace.from_npz(path)
    return replace(trace, theta=asarray_like(trace.theta, objective.zeros()))
