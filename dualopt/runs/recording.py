"""A whole run of a method, recorded round by round."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from threadpoolctl import threadpool_limits

from dualopt.arrays._checks import require
from dualopt.arrays.xp import Array, array_namespace, epsilon
from dualopt.engine._everywhere import everywhere
from dualopt.engine.checkpoint import Checkpoint
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
from dualopt.methods.preparation import Preparation, as_preparations, prepared_by
from dualopt.objectives import Objective
from dualopt.objectives.scales import scales_of
from dualopt.objectives.wrapper import class_labels
from dualopt.runs._checks import check_functions, check_names, check_rounds, check_run, check_start
from dualopt.runs._recorder import EXPLOSION, Recorder, communicated
from dualopt.runs.certificates import Certificate
from dualopt.runs.trace import Trace, versions
from dualopt.spec import described

if TYPE_CHECKING:
    from dualopt.runs.auto import Auto

__all__ = ["is_auto", "run"]

STALL_ROUNDS = 10
RISING = 10.0  # times as many rounds of everybody as of one that stalls: one that diverges is told from one that rises


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
        it at the end only, or when ``tol`` or ``atol`` is given in every round, and where clients are asked over a
        wire, from which each takes two vectors, in those rounds in which it may have become small enough: at the latest
        a fifth of the rounds after the last one (``runs/_due.py``). It is made from the latest local solution of every
        client, once each has had one, and from the gradient of the model.
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
    check_functions(measure, stop, callback, check_assumptions, parameters)
    fits = checkpoint is None or isinstance(checkpoint, Checkpoint)
    require(fits, "checkpoint must be a Checkpoint, such as Checkpoint('run.npz')", checkpoint)
    check_names(measure or {}, reference)
    objective, scales = unscaled(objective, scales)
    engine = check_engine(objective, engine, prepare)
    keeps = checkpoint is None or not getattr(engine, "secure", False)
    require(keeps, "checkpoint must not be given with secure-blocks, whose states are not kept")
    steps = as_preparations(prepare)
    check_start(theta0, objective)
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
    needed = (tol is not None or atol is not None) and certify_every == 0
    seldom, every = needed and not hosts.engine.in_process, 1 if needed else certify_every
    if measure_every is None:
        measure_every = 1 if hosts.engine.in_process else every or max(rounds, 1)
    recorder = Recorder(objective, hosts, reference, reference_gap, measure or {})
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
                check_rounds(rounds, since.rounds)
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
                due = not seldom or recorder.is_due(tol, atol)
                measured = (due and n % measure_every == 0) or n == rounds or not size <= largest
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
    recorder: Recorder,
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


def _origin(objective: Any, theta: Array) -> dict[str, Any]:
    """Return the type in which all was computed, and the labels that codes stand for."""
    classes = class_labels(objective)
    kind = {"dtype": str(theta.dtype).rpartition(".")[2]}
    return kind if classes is None else kind | {"classes": classes}


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
