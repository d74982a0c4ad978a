"""A whole run of a method, recorded round by round."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from threadpoolctl import threadpool_limits

from dualopt.arrays._checks import is_number, require, require_at_least, require_flags, require_integers
from dualopt.arrays.xp import Array, array_namespace, device, epsilon, limits, width
from dualopt.engine._errors import LostError
from dualopt.engine._everywhere import everywhere
from dualopt.engine._server import Server
from dualopt.engine.checkpoint import Checkpoint, RunProgress, table
from dualopt.engine.rounds import (
    Clustered,
    Snapshot,
    as_compressor,
    as_downlink,
    check_engine,
    in_user_coordinates,
    initial_state,
    on_engine,
    resolve,
    rounds_of,
    scaled,
    unscaled,
    with_objects,
)
from dualopt.methods import Algorithm
from dualopt.methods.compressors import Compressor
from dualopt.methods.participation import Participation, as_participation, law_of
from dualopt.methods.preparation import Preparation, Prepared, as_preparations, prepared_by
from dualopt.objectives import Objective
from dualopt.objectives._compiled import numba_version
from dualopt.objectives.scales import scales_of
from dualopt.objectives.wrapper import class_labels
from dualopt.runs.certificates import Certificate, Sums, certificate_from
from dualopt.runs.divergence import above, diverges
from dualopt.runs.trace import MEASURING, SENT, SPENT, Trace
from dualopt.spec import described

if TYPE_CHECKING:
    from dualopt.runs.auto import Auto

__all__ = ["communicated", "is_auto", "run", "versions"]

STALL_ROUNDS = 10
EXPLOSION = 1e8  # above the start: a model of that size is measured, and a run that diverges need not go on
RISING = 10.0  # times as many rounds of everybody as of one that stalls: one that diverges is told from one that rises
COLUMNS = ("round", *SPENT, "energy", "certificate", "certified_error", "gradient_norm", "error")


@everywhere
def run(
    algorithm: Algorithm | Auto | str,
    objective: Objective,
    *,
    rounds: int = 100,
    theta0: Array | None = None,
    participation: Participation | str | None = None,
    seed: int = 0,
    tol: float | None = None,
    atol: float | None = None,
    certify_every: int = 0,
    measure_every: int | None = None,
    reference: float | None = None,
    reference_gap: float = 0.0,
    measure: Mapping[str, Callable[[Snapshot], float]] | None = None,
    stop: Callable[[Snapshot, Mapping[str, float]], bool] | None = None,
    callback: Callable[[Snapshot, Mapping[str, float]], Any] | None = None,
    check_assumptions: bool = True,
    threads: int | None = None,
    parameters: Mapping[str, Any] | None = None,
    prepare: Preparation | str | Sequence[Preparation | str] | None = None,
    compressor: Compressor | str | None = None,
    downlink: Compressor | str | None = None,
    scales: Sequence[float] | Array | str | None = None,
    checkpoint: Checkpoint | None = None,
    interruptible: bool = True,
    engine: Clustered | str | None = None,
    watch: Callable[[Sequence[Mapping[str, float]]], str | None] | None = None,
) -> Trace:
    """Run a method and record every round.

    With the algorithm ``"auto"`` it is the recommended one, and another one from the model that was reached where its
    rounds show that it must be changed (:class:`dualopt.runs.auto.Auto`); ``Trace.parameters["path"]`` says which.

    Parameters
    ----------
    algorithm, objective, theta0, participation, seed, prepare, compressor, downlink, scales, engine
        As in :func:`dualopt.iterate`.
    rounds : int, default 100
        Largest number of rounds.
    tol : float, optional
        Stop when the certified relative error, ``gap / (E - gap)``, is at most this. The bound needs no reference. The
        relative error is undefined for ``E* = 0`` (and certified for positive ``E*`` alone): use ``atol`` there.
    atol : float, optional
        Stop when the certified ``gap``, a bound of ``E - E*``, is at most this; with ``tol``, when either holds. A
        tolerance of 0 is none, here and on the command line: the run does all rounds.
    certify_every : int, default 0
        Compute the certificate every so many rounds (it costs one gradient per client and is not timed); 0 computes
        it at the end only, or in every round when ``tol`` or ``atol`` is given. It is made from the latest local
        solution of every client, once each has had one, and from the gradient of the model.
    measure_every : int, optional
        Measure the energy and the columns of ``measure``, and certify, in every so many rounds, in the last one, and
        when the model explodes; the columns of the other rounds hold NaN. Where few of many clients take part, one
        energy costs more than a round. When not given: 1, and where clients are asked over a wire, ``certify_every``.
    reference : float, optional
        ``E*``; adds the column ``error``, ``(E - E*)/|E*|``, and ``E - E*`` where ``E*`` is 0. A run that finds its
        certificate below this error, by more than rounding, ends there with status ``contradicted``.
    reference_gap : float, default 0.0
        How far ``reference`` may be from ``E*``, such as ``solve(objective).gap``.
    measure : dict of str to callable, optional
        Further columns, each a function of the :class:`Snapshot`.
    stop : callable, optional
        ``stop(snapshot, row) -> bool``; True ends the run with status ``converged``.
    callback : callable, optional
        ``callback(snapshot, row)``, after each round; a true answer ends the run with status ``stopped``.
    check_assumptions : bool, default True
        Whether to refuse what :meth:`Algorithm.check` refuses: parameters that break an assumption of the method, such
        as a step that is too long for it. Parameters that break none, and that no theorem covers, are not refused:
        :meth:`Algorithm.guarantee` tells which theorem covers a run, or "none".
    threads : int, optional
        Number of threads of the linear algebra libraries during the run.
    parameters : dict, optional
        Further entries for ``Trace.parameters``.
    checkpoint : Checkpoint, optional
        Where the run is kept while it lasts, and from where it is continued (:mod:`dualopt.engine.checkpoint`).
    interruptible : bool, default True
        Whether Ctrl-C (``KeyboardInterrupt``) ends the run with what was recorded so far and status ``stopped``;
        otherwise it is passed on.
    watch : callable, optional
        ``watch(rows)``, after each round, of all rows so far, those before a checkpoint too; a sentence ends the run
        with status ``stopped``, and stands in ``Trace.parameters["left"]``.

    Returns
    -------
    Trace
        Row 0 is the start, after ``prepare``, with what that took. ``communications`` counts the rounds so far in which
        something was sent, ``floats_up`` and ``floats_down`` the numbers, ``bits_up`` and ``bits_down`` their bits,
        ``bits_measuring_up`` and ``bits_measuring_down`` what clients elsewhere are sent and send, in full width, to
        measure energies and to certify, which no method needs and no other column counts,
        ``gradients`` the local gradients (mean over the clients), ``seconds`` the time of the method alone.

    Raises
    ------
    ValueError
        If an argument is out of range, or an assumption of the method fails.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.methods import DualFL
    >>> from dualopt.objectives import Quadratic
    >>> from dualopt.solvers import Exact
    >>> f = Quadratic(A=np.stack([np.eye(1), 2 * np.eye(1)]), b=np.array([[2.0], [1.0]]), c=np.array([2.0, 2.0]))
    >>> trace = run(DualFL(solver=Exact()), f, tol=1e-6)
    >>> trace.status, trace.theta.round(3).tolist(), bool(trace["certificate"][-1] <= 1e-6 * trace["energy"][-1])
    ('converged', [1.0], True)
    """
    options, left = dict(locals()), None
    if is_auto(algorithm):
        return _run_auto(options)[1]
    algorithm = with_objects(algorithm, objective)
    check_run(
        rounds=rounds,
        seed=seed,
        tol=tol,
        atol=atol,
        certify_every=certify_every,
        measure_every=1 if measure_every is None else measure_every,
        threads=threads,
        reference=reference,
        reference_gap=reference_gap,
    )
    tol, atol = tol or None, atol or None
    _check_functions(measure, stop, callback, check_assumptions, parameters)
    fits = checkpoint is None or isinstance(checkpoint, Checkpoint)
    require(fits, "checkpoint must be a Checkpoint, such as Checkpoint('run.npz')", checkpoint)
    _check_names(measure or {}, reference)
    objective, scales = unscaled(objective, scales)
    engine = check_engine(objective, engine, prepare)
    keeps = checkpoint is None or not getattr(engine, "secure", False)
    require(keeps, "checkpoint must not be given with secure-blocks, whose states are not kept")
    steps = as_preparations(prepare)
    _check_start(theta0, objective)
    who = as_participation(participation)
    theta = objective.initial(seed) if theta0 is None else theta0
    started = time.perf_counter()
    with threadpool_limits(limits=threads) if threads else nullcontext():
        prepared = prepared_by(steps, objective, theta)
    seconds = time.perf_counter() - started if steps else 0.0
    clients = scaled(algorithm, prepared.objective, scales, who)
    packs = as_compressor(compressor, clients)
    algorithm = resolve(algorithm, clients, who, packs)
    down = as_downlink(downlink, algorithm, clients, who)
    if check_assumptions:
        algorithm.check(clients)
    own = scales_of(clients)
    objective, hosts = on_engine(objective, engine, prepared, clients)
    every = 1 if (tol is not None or atol is not None) and certify_every == 0 else certify_every
    if measure_every is None:
        measure_every = 1 if hosts.engine.in_process else every or max(rounds, 1)
    recorder = _Recorder(objective, hosts, reference, reference_gap, measure or {})
    with threadpool_limits(limits=threads) if threads else nullcontext():
        theta = prepared.in_user_coordinates(prepared.theta0)
        recorder.start(theta, prepared, seconds, certify=bool(every))
        status, still, last, since, solutions = "max_rounds", 0, theta, None, None
        largest = EXPLOSION * (1.0 + _largest(theta))
        law = law_of(who, objective.n_clients)
        active = max(law.fraction * law.communication, epsilon(theta))
        shortest = RISING * max(STALL_ROUNDS, algorithm.patience) / active
        if checkpoint is not None:
            kept = checkpoint.begin(
                _described(algorithm, objective, recorder, who, steps, parameters)
                | {
                    "scales": own,
                    "compressor": described(packs),
                    "downlink": described(down),
                    "seed": seed,
                    "tol": tol,
                    "atol": atol,
                    "every": every,
                    "measure_every": measure_every,
                },
                (algorithm, objective, who, packs, down),
                initial_state(algorithm, clients, prepared.theta0) if checkpoint.resume else (),
                theta,
            )
            if kept is not None:
                recorder.resume(kept, checkpoint)
                still, last, theta = kept.still, kept.theta, kept.theta
                since, solutions = kept.resume_point, kept.latest
                _check_rounds(rounds, since.rounds)
        snapshots = rounds_of(algorithm, hosts, prepared.theta0, who, seed, since, solutions, packs, down)
        snapshots = in_user_coordinates(snapshots, prepared)
        try:
            while len(recorder.rows) <= rounds and not recorder.contradicted:
                before = time.perf_counter()
                snapshot = next(snapshots)
                seconds = time.perf_counter() - before
                theta = snapshot.server.theta
                n = len(recorder.rows)
                size = _largest(theta)
                measured = n % measure_every == 0 or n == rounds or not size <= largest
                certify = measured and bool(every) and n % every == 0
                row, bound = recorder.add(snapshot, seconds, measured=measured, certify=certify)
                if communicated(snapshot):
                    still = 0 if _moved(theta, last, size) else still + 1
                last = theta
                answer = None if callback is None else callback(snapshot, row)
                if measured and recorder.exploded(shortest):
                    status = "diverged"
                elif _accurate(bound, tol, atol) or (stop is not None and stop(snapshot, row)):
                    status = "converged"
                elif still >= max(STALL_ROUNDS, algorithm.patience):
                    status = "stalled"
                elif watch is not None and n < rounds and (left := watch(recorder.rows)):
                    status = "stopped"
                else:
                    status = "stopped" if answer else status
                    if checkpoint is not None and (n < rounds or answer):
                        # hosts with files of their own go on with them only from the round before
                        now = status == "stopped" or not hosts.engine.in_process
                        checkpoint.keep(partial(recorder.progress, still), now=now)
                if status != "max_rounds":
                    break
        except KeyboardInterrupt:
            if not interruptible:
                raise
            status, theta = "stopped", recorder.interrupted()
        recorder.finish(theta)
        if recorder.contradicted:
            status = "contradicted"
        elif recorder.diverged(shortest):
            status, theta = "diverged", recorder.best
    record = {
        "algorithm": type(algorithm).__name__,
        "hyperparameters": described(algorithm),
        "n_clients": objective.n_clients,
        **_origin(objective, theta),
        "rounds": rounds,
        "seed": seed,
        "tol": tol,
        "atol": atol,
        "measure_every": measure_every,
        "reference": reference,
        **({"reference_gap": reference_gap} if reference_gap else {}),
        **({"left": left} if left else {}),
        **({"scales": own} if own else {}),
        **({} if packs is None else {"compressor": described(packs)}),
        **({} if down is None else {"downlink": described(down)}),
        **({"prepare": [described(step) for step in steps]} if steps else {}),
        **hosts.described,
        **({"explosions": said} if status == "diverged" and (said := hosts.explosions.sentences) else {}),
        "versions": dict(versions()),
        **(parameters or {}),
    }
    return Trace(columns=recorder.columns(), status=status, theta=theta, parameters=record)


def is_auto(algorithm: Any) -> bool:
    """Tell whether a method, or its text, leaves the choice to the run."""
    name = algorithm.partition(":")[0].strip() if isinstance(algorithm, str) else getattr(algorithm, "name", "")
    return name == "auto"


def _run_auto(options: Mapping[str, Any]) -> tuple[Algorithm, Trace]:
    """Return the last method of a run that chooses, and its trace."""
    from dualopt.runs.auto import Auto, run_auto  # few runs choose

    require(options["watch"] is None, "watch must not be given with algorithm auto, which watches itself")
    given = {name: value for name, value in options.items() if name not in ("algorithm", "objective", "watch")}
    chosen = Auto.of(options["algorithm"])
    assert chosen is not None
    return run_auto(run, chosen, options["objective"], **given)


def _described(
    algorithm: Algorithm,
    objective: Objective,
    recorder: _Recorder,
    participation: Participation | None,
    prepare: Sequence[Preparation],
    parameters: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Return what tells one run from another, but for the data, of which the first row of the trace tells."""
    hosts = recorder.hosts
    return {
        "algorithm": described(algorithm),
        "n_clients": objective.n_clients,
        "shape": list(objective.shape),
        "dtype": str(recorder.theta.dtype),
        **({"precision": "mixed"} if "remainder" in objective.offers else {}),
        "participation": described(participation),
        "prepare": [described(step) for step in prepare],
        "reference": recorder.reference,
        "columns": list(recorder.rows[0]),
        **({} if hosts.engine.in_process else {"hosts": len(hosts.hosts)}),
        "parameters": dict(parameters or {}),
        "versions": {name: number for name, number in versions().items() if name != "numba"},  # loaded when it is used
    }


def _check_rounds(rounds: int, done: int) -> None:
    if rounds < done:
        raise ValueError(f"rounds must be at least the {done} that the checkpoint holds, not {rounds}.")


def communicated(snapshot: Snapshot) -> bool:
    """Tell whether anything was sent in the round: it communicates, and somebody was active."""
    return snapshot.round.communicate and snapshot.solution is not None


def _origin(objective: Any, theta: Array) -> dict[str, Any]:
    """Return the type in which all was computed, and the labels that codes stand for."""
    classes = class_labels(objective)
    kind = {"dtype": str(theta.dtype).rpartition(".")[2]}
    return kind if classes is None else kind | {"classes": classes}


class _Recorder:
    """Collects the rows of a trace."""

    def __init__(
        self,
        objective: Objective,
        hosts: Server,
        reference: float | None,
        reference_gap: float,
        measure: Mapping[str, Callable],
    ) -> None:
        self.objective, self.hosts = objective, hosts
        self.reference, self.reference_gap = reference, reference_gap
        self.contradicted = False  # whether a certificate was below the error that the reference shows
        self.measure = measure
        self.rows: list[dict[str, float]] = []
        self.gradients = 0.0  # of all clients together
        self.snapshot: Snapshot | None = None
        self.theta: Any = None  # the model of the latest row
        self.best: Any = None  # the one of the least energy that was measured
        self.least = math.inf
        self._complete: tuple[int, Any, Any] = (0, None, None)  # rows that are, the model and snapshot of the last
        self.seen = True  # whether the latest row has an energy
        self.measuring: dict[str, float] = dict.fromkeys(MEASURING, 0.0)  # bits so far

    def start(self, theta: Array, prepared: Prepared, seconds: float, *, certify: bool) -> None:
        self.gradients, self.theta = sum(prepared.gradients), theta
        spent = {
            "round": 0.0,
            "communications": float(prepared.exchanges),
            "floats_up": float(prepared.floats_up),
            "floats_down": float(prepared.floats_down),
            "bits_up": float(prepared.floats_up * width(theta)),
            "bits_down": float(prepared.floats_down * width(theta)),
            "gradients": self.gradients / self.objective.n_clients,
            "seconds": seconds,
        }
        bound = self._certified(theta) if certify else None
        quality = self._quality(theta, bound)
        self.rows.append(spent | self.measuring | quality | dict.fromkeys(self.measure, math.nan))
        self._complete = 1, theta, None
        self._judge(theta)

    def add(
        self, snapshot: Snapshot, seconds: float, *, measured: bool, certify: bool
    ) -> tuple[dict[str, float], Certificate | None]:
        last, theta = self.rows[-1], snapshot.server.theta
        self.snapshot = snapshot
        bound, quality = None, None
        if measured:
            try:
                bound = self._certified(theta) if certify else None
                quality = self._quality(theta, bound) | self._further()
            except LostError as error:
                self._without_energy(error)
        if snapshot.solution is not None:
            self.gradients += sum(snapshot.solution.gradients)
        row = {
            "round": float(len(self.rows)),
            "communications": last["communications"] + float(communicated(snapshot)),
            **{name: last[name] + getattr(snapshot, name) for name in SENT},
            **self.measuring,
            "gradients": self.gradients / self.objective.n_clients,
            "seconds": last["seconds"] + seconds,
        }
        names = [name for name in self.rows[0] if name not in row]
        row |= dict.fromkeys(names, math.nan) if quality is None else quality
        self.rows.append(row)
        self._judge(theta)
        self.seen = quality is not None
        self.theta = theta
        self._complete = len(self.rows), theta, snapshot
        return row, bound

    def _judge(self, theta: Array) -> None:
        """Keep the model if there is no better one."""
        energy = self.rows[-1]["energy"]
        if self.best is None or energy < self.least:
            self.best, self.least = theta, energy if energy == energy else math.inf

    def progress(self, still: int) -> RunProgress:
        """Return what a checkpoint holds of the run after the latest row."""
        snapshot, names = self.snapshot, tuple(self.rows[0])
        assert snapshot is not None
        rows = table([[row[name] for name in names] for row in self.rows])
        return RunProgress(
            names, rows, self.gradients, self.hosts.solutions, still, self.theta, self.best, snapshot.resume_point
        )

    def resume(self, kept: RunProgress, checkpoint: Checkpoint) -> None:
        """Go on from a checkpoint, whose first row must be that of this run: data are not in the file."""
        first, start = dict(zip(kept.columns, kept.rows[0].tolist(), strict=True)), self.rows[0]
        for name in start:
            close = math.isclose(first[name], start[name], rel_tol=epsilon(self.theta) ** 0.5)
            if name != "seconds" and not close and not (math.isnan(first[name]) and math.isnan(start[name])):
                raise ValueError(
                    f"{checkpoint} is of other data: "
                    f"{name} is {first[name]:.8g} at the start there and {start[name]:.8g} here."
                )
        self.rows = [dict(zip(kept.columns, row, strict=True)) for row in kept.rows.tolist()]
        self.gradients, self.theta, self.best = kept.gradients, kept.theta, kept.best
        self.measuring = {name: self.rows[-1][name] for name in MEASURING}
        self.least = min((row["energy"] for row in self.rows if row["energy"] == row["energy"]), default=math.inf)
        self._complete = len(self.rows), kept.theta, None

    def interrupted(self) -> Array:
        """Return the model of the last row that is complete, and forget what an interrupt may have left half done."""
        count, model, self.snapshot = self._complete
        del self.rows[count:]
        self.hosts.drop(count - 1)
        self.gradients = self.rows[-1]["gradients"] * self.objective.n_clients
        self.measuring = {name: self.rows[-1][name] for name in MEASURING}
        return model

    def finish(self, theta: Array) -> None:
        """Measure and certify the final model if that is not done yet."""
        try:
            self._finish(theta)
        except LostError as error:
            self._without_energy(error)

    def _finish(self, theta: Array) -> None:
        row = self.rows[-1]
        if math.isnan(row["energy"]) and self.snapshot is not None:
            row.update(self._quality(theta, None) | self._further())
        if math.isnan(row["certificate"]) and math.isfinite(row["energy"]):
            row.update(self._quality(theta, self._certified(theta)))
        row.update(self.measuring)
        self.seen = True

    def diverged(self, shortest: float) -> bool:
        """Tell whether the run diverges: at once if squares of its energy overflow, otherwise not in few rounds."""
        overflows = not abs(self.rows[-1]["energy"]) <= math.sqrt(limits(self.theta)[2])
        return self.seen and (overflows or diverges([row["energy"] for row in self.rows], shortest))

    def exploded(self, shortest: float) -> bool:
        """Tell whether it does, and need not go on."""
        return not self.rows[-1]["energy"] <= above(self.rows[0]["energy"], EXPLOSION) and self.diverged(shortest)

    def columns(self) -> dict[str, list[float]]:
        return {name: [row[name] for row in self.rows] for name in self.rows[0]}

    def _certified(self, theta: Array) -> Certificate:
        """Return the certificate from what the hosts know, their latest local solutions too."""
        return certificate_from(self.objective, theta, self._sums)

    def _sums(self, theta: Array) -> Sums:
        """Return what a certificate takes from the clients: of each a gradient and three numbers, or two and five."""
        found, d = self.hosts.certificate_sums(theta), math.prod(self.objective.shape)
        self._measured(theta, d + 3 if found.dual is None else 2 * d + 5)
        return found

    def _measured(self, theta: Array, numbers: int) -> None:
        """Count a model to all clients, and so many numbers from each."""
        one = self.objective.n_clients * width(theta)
        for name, sent in zip(MEASURING, (numbers, math.prod(self.objective.shape)), strict=True):
            self.measuring[name] += float(one * sent)

    def _without_energy(self, error: LostError) -> None:
        """Go on without an energy where clients that do not answer may be absent."""
        if not self.hosts.tolerant:
            raise error
        self.hosts.lost.append(f"round {len(self.rows)}: no energy: {error}")

    def _further(self) -> dict[str, float]:
        return {name: _result(name, function, self.snapshot) for name, function in self.measure.items()}

    def _quality(self, theta: Array, bound: Certificate | None) -> dict[str, float]:
        if bound is None:
            if self.hosts.is_secure:
                energy = self.hosts.mean_value(theta)
            else:
                energy = float(self.objective.mean(self.objective.value(theta)))
            energy += self.objective.regulariser.value(theta)
            self._measured(theta, 1)
            gap, relative, norm = math.nan, math.nan, math.nan
        else:
            energy, gap, relative, norm = bound.energy, bound.gap, bound.relative, bound.gradient_norm
        quality = {"energy": energy, "certificate": gap, "certified_error": relative, "gradient_norm": norm}
        if self.reference is not None:
            quality["error"] = (energy - self.reference) / (abs(self.reference) or 1.0)
            least = energy - self.reference - self.reference_gap  # of E - E*, but for the rounding of both energies
            self.contradicted |= bound is not None and least > bound.gap + bound.rounding
        return quality


def _result(name: str, function: Callable, snapshot: Snapshot | None) -> float:
    """Return the number of a function of the user's, or say which function has none."""
    try:
        return float(function(snapshot))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"measure {name!r} must return a number for a Snapshot, but raises {type(error).__name__}."
        ) from error


def versions() -> Mapping[str, str]:
    """Return the versions of what a result depends on; of Numba where it has been used."""
    numba = numba_version()
    return _installed() if numba is None else {**_installed(), "numba": numba}


@cache
def _installed() -> Mapping[str, str]:
    found = {}
    for name in ("dualopt", "numpy", "scipy", "array-api-compat"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _accurate(bound: Certificate | None, tol: float | None, atol: float | None) -> bool:
    """Tell whether a certificate meets one of the tolerances."""
    if bound is None:
        return False
    return (tol is not None and bound.relative <= tol) or (atol is not None and bound.gap <= atol)


def _moved(theta: Array, last: Array, size: float) -> bool:
    return _largest(theta - last) > 4.0 * epsilon(theta) * size


def _largest(theta: Array) -> float:
    xp = array_namespace(theta)
    return float(xp.max(xp.abs(theta)))


def check_threads(threads: Any) -> None:
    """Refuse a number of threads that libraries of linear algebra cannot take: they count in C.

    >>> check_threads(0)
    Traceback (most recent call last):
    ValueError: threads must be at least 1, not 0.
    """
    if threads is not None:
        require_integers(threads=threads)
        require_at_least(1, threads=threads)
        require(threads < 2**31, "threads must be at most 2147483647", threads)


def check_run(
    *,
    rounds: Any,
    seed: Any,
    tol: Any,
    atol: Any,
    certify_every: Any,
    measure_every: Any,
    threads: Any,
    reference: Any = None,
    reference_gap: Any = 0.0,
) -> None:
    """Refuse numbers that :func:`run` cannot take, before there is an objective.

    Raises
    ------
    ValueError
        If one is of another type or out of range.

    Examples
    --------
    >>> check_run(rounds=1.5, seed=0, tol=None, atol=None, certify_every=0, measure_every=1, threads=None)
    Traceback (most recent call last):
    ValueError: rounds must be a whole number, not 1.5.
    """
    require_integers(rounds=rounds, seed=seed, certify_every=certify_every, measure_every=measure_every)
    require_at_least(0, rounds=rounds, seed=seed, certify_every=certify_every)
    require_at_least(1, measure_every=measure_every)
    check_threads(threads)
    for name, value in (("tol", tol), ("atol", atol)):
        require(value is None or (is_number(value) and value >= 0), f"{name} must be at least 0", value)
        require(value is None or value < math.inf, f"{name} must be finite", value)
    holds = reference is None or (is_number(reference) and math.isfinite(reference))
    require(holds, "reference must be a finite number", reference)
    require(is_number(reference_gap) and reference_gap >= 0, "reference_gap must be at least 0", reference_gap)


def _check_names(measure: Mapping[str, Any], reference: float | None) -> None:
    """Refuse names of columns that the run measures itself; it has no error without a reference."""
    taken = COLUMNS if reference is not None else tuple(name for name in COLUMNS if name != "error")
    for name in measure:
        require(name not in taken, f"measure must not have the name {name}, which is a column of every trace")


def _check_functions(measure: Any, stop: Any, callback: Any, check_assumptions: Any, parameters: Any) -> None:
    require_flags(check_assumptions=check_assumptions)
    for name, function in (("stop", stop), ("callback", callback)):
        require(function is None or callable(function), f"{name} must be a function", function)
    require(measure is None or isinstance(measure, Mapping), "measure must map names to functions", measure)
    for name, function in (measure or {}).items():
        require(isinstance(name, str) and bool(name), "measure must have words as names", name)
        require(callable(function), f"measure {name} must be a function", function)
    require(parameters is None or isinstance(parameters, Mapping), "parameters must map names to values", parameters)
    require("status" not in (parameters or {}), "parameters must not have the name status, which a trace has itself")
    try:
        json.dumps(dict(parameters or {}))
    except (TypeError, ValueError):
        raise ValueError("parameters must hold what JSON can: words, numbers, truth values, lists of them.") from None


def _check_start(theta0: Any, objective: Objective) -> None:
    if theta0 is None:
        return
    require(hasattr(theta0, "shape") and hasattr(theta0, "dtype"), "theta0 must be an array", theta0)
    zero = objective.zeros()
    if tuple(theta0.shape) != tuple(objective.shape):
        raise ValueError(f"theta0 must have shape {tuple(objective.shape)}, not {tuple(theta0.shape)}.")
    if theta0.dtype != zero.dtype or device(theta0) != device(zero):
        raise ValueError("theta0 must have the array type and device of the data.")
    if not bool(array_namespace(theta0).all(array_namespace(theta0).isfinite(theta0))):
        raise ValueError("theta0 must not contain NaN or infinite entries.")
