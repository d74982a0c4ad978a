"""From curves to traces: run what is not stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from dualopt import federation
from dualopt._cli_output import progress_bar
from dualopt.algorithms import Algorithm
from dualopt.participation import Full, Participation
from dualopt.reference import solve
from dualopt.stopping import GradientNorm
from dualopt.trace import Trace
from dualopt.xp import array_namespace
from figures._remember import Remembering
from figures._settings import Settings
from figures._store import stored_number, stored_trace

__all__ = ["Curve", "deviation", "exactly", "trace_curves"]

CERTIFY_EVERY = 10
# Local gradients this small change no error above 1e-10 by more than a hundred-thousandth of it.
EXACT = GradientNorm(tol=1e-9)


@dataclass(frozen=True, kw_only=True)
class Curve:
    """One curve of a figure: a method with its parameters, the number of clients, and what is not as usual.

    ``rounds`` are those of the settings when not given.
    """

    algorithm: Algorithm
    clients: int
    participation: Participation = field(default_factory=Full)
    rounds: int | None = None


def trace_curves(curves: Mapping[str, Curve], settings: Settings) -> dict[str, Trace]:
    """Return the trace of every curve, with the column ``error`` and the largest ``L_j`` among its parameters.

    Parameters
    ----------
    curves : dict of str to Curve
        The label of each curve and what it shows.
    settings : Settings
        Data, rounds, and where results are stored.

    Raises
    ------
    ValueError
        If there are more clients than rows, or a result that is not stored must not be computed.
    """
    energy = _reference_energy(settings)

    @lru_cache(maxsize=1)  # neighbouring curves often share their clients
    def problem(clients: int) -> Any:
        return Remembering(settings.problem(clients))

    traces = {}
    for label, curve in curves.items():

        def compute(key: Mapping[str, Any], label: str = label, curve: Curve = curve) -> Trace:
            objective = problem(curve.clients)
            rounds = _rounds(curve, settings)
            largest = float(array_namespace(objective.L).max(objective.L))
            with progress_bar(settings.console, label, rounds) as advance:
                return federation.run(
                    curve.algorithm,
                    objective,
                    rounds=rounds,
                    participation=curve.participation,
                    reference=energy,
                    certify_every=CERTIFY_EVERY,
                    callback=advance,
                    parameters={"key": key, "largest_L": largest},
                )

        description = settings.described(curve.clients) | {
            "algorithm": federation.describe(curve.algorithm),
            "participation": federation.describe(curve.participation),
            "rounds": _rounds(curve, settings),
            "reference": energy,
            "certify_every": CERTIFY_EVERY,
        }
        what = f"the curve {label!r}"
        traces[label] = stored_trace(settings.cache, what, description, None if settings.stored_only else compute)
    return traces


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
    compute = None if settings.stored_only else lambda: float(solve(settings.whole.objective).energy)
    return stored_number(settings.cache, "the reference energy", description, compute)


def _rounds(curve: Curve, settings: Settings) -> int:
    return settings.rounds if curve.rounds is None else curve.rounds
