"""From curves to traces: what is not stored is run."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from dualopt.app.cli.progress import run_progress
from dualopt.methods import Algorithm
from dualopt.methods.participation import Full, Participation
from dualopt.runs import recording
from dualopt.runs.trace import Trace
from dualopt.solvers.stopping import GradientNorm
from dualopt.spec import described
from figures._cached import CachedObjective
from figures._reference import least_energy
from figures._settings import Settings

__all__ = ["Curve", "Problem", "data_problem", "deviation", "exactly", "stationarity", "trace_curves"]

CERTIFY_EVERY = 10
# Local gradients this small change no error above 1e-10 by more than a hundred-thousandth of it.
EXACT = GradientNorm(tol=1e-9)


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    r"""What curves are run on, and what is measured there.

    Parameters
    ----------
    description : dict
        Everything that defines both, in terms of JSON; it is stored with the traces.
    build : callable
        It returns the objective, when a curve is not stored.
    options : callable
        ``options(objective)`` returns further arguments of :func:`dualopt.runs.recording.run`, anew for every curve. An
        ``error`` among its measures is :math:`|\nabla E|^2`, which is also the first entry of the column.
    """

    description: Mapping[str, Any]
    build: Callable[[], Any]
    options: Callable[[Any], Mapping[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Curve:
    """One curve of a figure: a method with its parameters, on a problem, for so many rounds."""

    problem: Problem
    algorithm: Algorithm
    rounds: int
    participation: Participation = field(default_factory=Full)

    @property
    def description(self) -> dict[str, Any]:
        """Everything that defines the curve, in terms of JSON."""
        return {
            **self.problem.description,
            "algorithm": described(self.algorithm),
            "participation": described(self.participation),
            "rounds": self.rounds,
        }


def trace_curves(curves: Mapping[str, Curve], settings: Settings) -> dict[str, Trace]:
    """Return the trace of every curve, stored or run; its parameters tell what ``guarantee`` the method has.

    Parameters
    ----------
    curves : dict of str to Curve
        The label of each curve and what it shows. Neighbours with the same problem share its objective.
    settings : Settings
        Where results are stored, and where progress is shown.

    Raises
    ------
    ValueError
        If an objective cannot be built, or a result that is not stored must not be computed.
    """
    built = lru_cache(maxsize=1)(lambda problem: problem.build())

    def run(label: str, curve: Curve) -> Trace:
        objective = built(curve.problem)
        with run_progress(settings.console, label, curve.rounds) as progress:
            trace = recording.run(
                curve.algorithm,
                objective,
                rounds=curve.rounds,
                participation=curve.participation,
                callback=progress.advance,
                interruptible=False,
                parameters={"guarantee": curve.algorithm.guarantee(objective, curve.participation)},
                **curve.problem.options(objective),
            )
        errors = trace["error"].copy()
        if math.isnan(errors[0]):  # measured on snapshots, the first of which comes after a round
            errors[0] = stationarity(objective, objective.zeros())
        return replace(trace, columns={**trace.columns, "error": errors})

    return {
        label: settings.stored(f"the curve {label!r}", curve.description, lambda: run(label, curve))  # noqa: B023
        for label, curve in curves.items()
    }


def data_problem(settings: Settings, clients: int) -> Problem:
    r"""Return problem (7.1) for so many clients; the ``error`` is :math:`(E - E^*)/|E^*|`."""
    energy = _reference_energy(settings)
    return Problem(
        description=settings.described(clients) | {"reference": energy, "certify_every": CERTIFY_EVERY},
        build=lambda: CachedObjective(settings.problem(clients)),
        options=lambda objective: {"reference": energy, "certify_every": CERTIFY_EVERY},
    )


def stationarity(objective: Any, theta: Any) -> float:
    r"""Return :math:`|\nabla E(\theta)|^2`."""
    return float(np.sum(objective.mean(objective.gradient(theta)) ** 2))


def exactly(settings: Settings) -> Settings:
    """Return the settings of the same curves with local problems solved exactly."""
    return replace(settings, stop=EXACT)


def deviation(trace: Trace, exact: Trace, floor: float = 1e-10) -> float:
    r"""Return how far a curve is from the one with exact local solutions.

    It is :math:`\max_n |e_n - e_n'| / e_n'` over the rounds where the exact error :math:`e_n'` is at least ``floor``,
    and infinite when a round of the exact curve is missing or an error is not finite.

    Examples
    --------
    >>> def trace(*errors):
    ...     columns = {"round": range(len(errors)), "error": errors}
    ...     return Trace(columns=columns, status="max_rounds", theta=None)
    >>> round(deviation(trace(1.0, 0.11, 7e-11), trace(1.0, 0.10, 5e-11)), 12)
    0.1
    """
    expected = exact["error"]
    reached = min(len(trace), len(exact))
    found = np.full_like(expected, np.inf)
    found[:reached] = trace["error"][:reached]
    far = np.abs(found - expected) / np.abs(expected)
    return float(np.max(np.where(expected < floor, 0.0, np.where(np.isfinite(far), far, np.inf))))


def _reference_energy(settings: Settings) -> float:
    """Return ``E*``, which is the same for all partitions."""
    description = settings.described(1) | {"result": "reference energy"}
    energy = settings.stored_number("the reference energy", description, lambda: least_energy(settings.whole.objective))
    return float(energy)
