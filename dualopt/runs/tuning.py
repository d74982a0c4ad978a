"""Search for the parameters that reach a target at the least cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

from dualopt.arrays._checks import is_number, require, require_at_least, require_flags, require_integers
from dualopt.methods import Algorithm
from dualopt.methods.compressors import Compressor
from dualopt.methods.participation import Full, Participation
from dualopt.methods.preparation import Preparation
from dualopt.objectives import Objective
from dualopt.runs._workers import Limit, Workers
from dualopt.runs.recording import run
from dualopt.spec.discover import unknown_name

__all__ = ["METRICS", "Candidate", "Trial", "check", "pruned", "tune", "winner"]

METRICS = {
    "rounds": ("round",),
    "communications": ("communications",),
    "floats": ("floats_up", "floats_down"),
    "bits": ("bits_up", "bits_down"),
    "gradients": ("gradients",),
}
"""The columns of a trace that add up to each cost; none of them ever falls."""
DOMINATED = "dominated"
CONTRADICTED = "contradicted"
MOST_JOBS = 4096


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A method with all its parameters, and who takes part.

    Parameters
    ----------
    algorithm : Algorithm
        The method.
    participation : Participation
        Everybody when not given.
    scales : sequence of float or str, optional
        One scale for each client, as :func:`dualopt.run` takes them.
    compressor : Compressor or str, optional
        What uploads go through.
    rounds : int, optional
        Largest number of rounds, if it is not that of the search: a method that rarely communicates needs more.

    Examples
    --------
    >>> from dualopt.methods import FedPD
    >>> Candidate(algorithm=FedPD(eta=0.1)).participation
    Full()
    """

    algorithm: Algorithm
    participation: Participation = field(default_factory=Full)
    scales: Sequence[float] | str | None = None
    compressor: Compressor | str | None = None
    rounds: int | None = None


@dataclass(frozen=True, kw_only=True)
class Trial:
    """How the run of a candidate went.

    Attributes
    ----------
    status : str
        ``converged`` (the target was reached), ``dominated`` (it had cost more than another candidate needed),
        ``max_rounds``, ``diverged``, ``stalled``, or ``contradicted`` (a certificate was below the true error).
    costs, errors : tuple of float
        What had been spent, and the relative error (NaN where it is not finite), after each round.
    seconds : float
        Computing time of the method.

    Examples
    --------
    >>> o = Trial(status="converged", costs=(1.0, 2.0, 3.0), errors=(0.1, 0.01, 0.001), seconds=0.5)
    >>> o.cost, o.within(1.0).status, o.within(1.0).error
    (3.0, 'dominated', 0.01)
    """

    status: str
    costs: tuple[float, ...]
    errors: tuple[float, ...]
    seconds: float

    @property
    def cost(self) -> float:
        """What was spent in all."""
        return self.costs[-1]

    @property
    def error(self) -> float:
        """The relative error at the end."""
        return self.errors[-1]

    def within(self, budget: float) -> Trial:
        """Return the outcome if the run had been stopped in the first round that exceeds ``budget``.

        A run that ends in that very round, other than for want of rounds, keeps its status, and one with a false
        certificate in any case.
        """
        if self.status == CONTRADICTED:
            return self
        spent = next((n for n, cost in enumerate(self.costs, start=1) if cost > budget), None)
        if spent is None or (spent == len(self.costs) and self.status != "max_rounds"):
            return self
        return replace(self, status=DOMINATED, costs=self.costs[:spent], errors=self.errors[:spent])


def winner(outcomes: Mapping[int, Trial]) -> int | None:
    """Return the number of the cheapest candidate that reached the target, the first of several; None if none did.

    Examples
    --------
    >>> reached = Trial(status="converged", costs=(1.0,), errors=(0.0,), seconds=0.0)
    >>> winner({2: reached, 1: reached, 0: replace(reached, status="stalled")})
    1
    """
    reached = [(outcome.cost, n) for n, outcome in outcomes.items() if outcome.status == "converged"]
    return min(reached)[1] if reached else None


def pruned(outcomes: Mapping[int, Trial]) -> dict[int, Trial]:
    """Return the outcomes, by number, as if every run had stopped once it had cost more than the winner.

    So they do not depend on which run happened to end first; only ``seconds`` still does.

    Examples
    --------
    >>> fast = Trial(status="converged", costs=(1.0,), errors=(0.0,), seconds=0.0)
    >>> slow = Trial(status="converged", costs=(1.0, 2.0, 3.0), errors=(0.2, 0.1, 0.0), seconds=0.0)
    >>> [(outcome.status, outcome.cost) for outcome in pruned({1: fast, 0: slow}).values()]
    [('dominated', 2.0), ('converged', 1.0)]
    """
    return {n: outcomes[n].within(_budget(outcomes)) for n in sorted(outcomes)}


def tune(
    candidates: Sequence[Candidate],
    objective: Objective,
    *,
    metric: str = "rounds",
    target: float = 1e-6,
    rounds: int = 100,
    seed: int = 0,
    reference: float | None = None,
    reference_gap: float = 0.0,
    check_assumptions: bool = True,
    prepare: Preparation | Sequence[Preparation] | None = None,
    early_stopping: bool = True,
    jobs: int = 1,
    known: Mapping[int, Trial] | None = None,
    report: Callable[[Mapping[int, Trial]], Any] | None = None,
    interrupted: Callable[[], bool] | None = None,
) -> dict[int, Trial]:
    """Run candidates until each has reached the target or is dominated by another.

    A run stops once it has cost more than the cheapest one that reached the target. Costs never fall, so the winner is
    the one that complete runs would give. The linear algebra of each run uses one thread, so that the outcome does not
    depend on ``jobs``.

    Parameters
    ----------
    candidates : sequence of Candidate
        What to try; where costs are equal the first wins.
    objective : Objective
        The clients.
    metric : str, default "rounds"
        What a run costs: ``rounds``, ``communications`` (rounds that send something), ``floats`` (numbers sent, up
        and down), ``bits`` (of these) or ``gradients`` (local ones, mean over the clients).
    target : float, default 1e-6
        The relative error to reach: the certified one, or with ``reference`` the true one.
    rounds : int, default 100
        Largest number of rounds of each run, unless its candidate says otherwise.
    seed : int, default 0
        Seed of every run.
    reference : float, optional
        ``E*``.
    reference_gap : float, default 0.0
        How far it may be from that, as in :func:`dualopt.run`.
    check_assumptions : bool, default True
        Whether to refuse what :meth:`Algorithm.check` refuses, as in :func:`dualopt.run`: parameters that break an
        assumption of the method. Those that merely no theorem covers are not refused.
    prepare : Preparation or sequence of Preparation, optional
        What happens before the first round of every run, as in :func:`dualopt.run`.
    early_stopping : bool, default True
        Whether runs that cannot win any more are stopped; without it all are complete.
    jobs : int, default 1
        Number of processes; 1 computes in this one. More need a main module that can be imported.
    known : dict of int to Trial, optional
        Outcomes of an earlier search with these arguments, by number of the candidate; they are not run again.
    report : callable, optional
        Called after each run with what is known so far.
    interrupted : callable, optional
        Tells whether to stop after the present round; runs that this cuts short are left out.

    Returns
    -------
    dict of int to Trial
        By number of the candidate, in that order.

    Raises
    ------
    ValueError
        If an argument is out of range, or an assumption of a method fails.
    MemoryError
        If a process is killed, which systems do that run out of memory; ``report`` has had what was known.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt import FedPD, Quadratic
    >>> from dualopt.solvers import Exact
    >>> f = Quadratic(A=np.stack([np.eye(1), 2 * np.eye(1)]), b=np.array([[2.0], [1.0]]), c=np.array([2.0, 2.0]))
    >>> grid = [Candidate(algorithm=FedPD(eta=eta, solver=Exact())) for eta in (0.1, 1.0, 10.0)]
    >>> found = tune(grid, f)
    >>> winner(found), [outcome.status for outcome in found.values()]
    (1, ['dominated', 'converged', 'dominated'])
    """
    check(metric=metric, target=target, rounds=rounds, jobs=jobs)
    require_integers(seed=seed)
    require_at_least(0, seed=seed)
    require_flags(check_assumptions=check_assumptions, early_stopping=early_stopping)
    holds = isinstance(candidates, Sequence) and all(isinstance(c, Candidate) for c in candidates)
    require(holds, "candidates must be a list of Candidate", candidates)
    search = _Search(objective, metric, target, rounds, seed, reference, reference_gap, check_assumptions, prepare)
    arrange = pruned if early_stopping else lambda found: dict(sorted(found.items()))
    outcomes = dict(known or {})
    left = [(n, candidate) for n, candidate in enumerate(candidates) if n not in outcomes]
    tasks = iter(left)
    workers = Workers(search.run, max(1, min(jobs, len(left))))
    if early_stopping:
        workers.lower(_budget(outcomes))
    with closing(workers.results(lambda: next(tasks, None), interrupted or (lambda: False))) as results:
        for (n, _), outcome in results:
            if workers.ended and outcome.status == DOMINATED:  # by the user, who has interrupted it
                continue
            outcomes[n] = outcome
            if early_stopping:
                workers.lower(_budget(outcomes))
            if report is not None:
                report(arrange(outcomes))
    return arrange(outcomes)


@dataclass(frozen=True)
class _Search:
    """What all runs have in common."""

    objective: Objective
    metric: str
    target: float
    rounds: int
    seed: int
    reference: float | None
    reference_gap: float
    check_assumptions: bool
    prepare: Preparation | Sequence[Preparation] | None

    def run(self, numbered: tuple[int, Candidate], budget: Limit) -> Trial:
        """Run one candidate as long as its cost does not exceed the budget, which may fall meanwhile."""
        _, candidate = numbered
        certified = self.reference is None
        trace = run(
            candidate.algorithm,
            self.objective,
            rounds=self.rounds if candidate.rounds is None else candidate.rounds,
            participation=candidate.participation,
            scales=candidate.scales,
            compressor=candidate.compressor,
            seed=self.seed,
            tol=self.target if certified else None,
            reference=self.reference,
            reference_gap=self.reference_gap,
            stop=None if certified else lambda _, row: row["error"] <= self.target,
            callback=lambda _, row: _cost(row, self.metric) > budget(),
            check_assumptions=self.check_assumptions,
            prepare=self.prepare,
            threads=1,
            interruptible=False,
        )
        errors = trace["certified_error" if certified else "error"][1:].tolist()
        return Trial(
            status=DOMINATED if trace.status == "stopped" else trace.status,
            costs=tuple(_cost(trace.columns, self.metric)[1:].tolist()),
            errors=tuple(e if math.isfinite(e) else math.nan for e in errors),
            seconds=trace.last["seconds"],
        )


def _budget(outcomes: Mapping[int, Trial]) -> float:
    best = winner(outcomes)
    return math.inf if best is None else outcomes[best].cost


def _cost(row: Mapping[str, Any], metric: str) -> Any:
    return sum(row[name] for name in METRICS[metric])


def check(*, metric: str, target: float, rounds: int, jobs: int) -> None:
    """Refuse arguments of :func:`tune` that are out of range.

    Raises
    ------
    ValueError
        If one is.

    Examples
    --------
    >>> check(metric="rounds", target=1e-6, rounds=100, jobs=1)
    """
    if not isinstance(metric, str) or metric not in METRICS:
        raise unknown_name("metric", metric, METRICS)
    require(is_number(target) and target > 0, "target must be positive", target)
    require(target < math.inf, "target must be finite", target)
    require_integers(rounds=rounds, jobs=jobs)
    require_at_least(1, rounds=rounds, jobs=jobs)
    require(jobs <= MOST_JOBS, f"jobs must be at most {MOST_JOBS}", jobs)
