"""Table 2 of the DualFL paper: the eight methods that it compares, their grids, and the values that won there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from dualopt.methods import parameters
from dualopt.methods.participation import Participation, as_participation
from dualopt.runs.tuning import Candidate
from dualopt.solvers.stopping import Stop
from dualopt.spec import Spec, built
from figures._table2_grids import GRIDS, paper_grid

__all__ = [
    "METHODS",
    "OURS",
    "PRIMAL",
    "TUNED",
    "Method",
    "Point",
    "as_number",
    "gradients_needed",
    "grid",
    "in_words",
    "paper_values",
    "per_row",
    "to_candidate",
]

Point = Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Method:
    """A method of the comparison.

    Parameters
    ----------
    title : str
        Its name in legends and tables.
    symbols : dict of str to str
        The paper's symbol of every tuned parameter.
    mnist, cifar10 : tuple of float
        The paper's values of these parameters, for sums over rows; none if it does not have the method.
    solver : str, optional
        The local solver, where the method's own would be gradient steps.
    """

    title: str
    symbols: Mapping[str, str]
    mnist: tuple[float, ...] = ()
    cifar10: tuple[float, ...] = ()
    solver: str | None = None


METHODS = {
    "fedpd": Method(title="FedPD", symbols={"eta": "eta"}, mnist=(1e-4,), cifar10=(1e-4,)),
    "feddr": Method(
        title="FedDR", symbols={"eta": "eta", "relaxation": "alpha"}, mnist=(1e-4, 1.0), cifar10=(1e-4, 1.0)
    ),
    "feddualavg": Method(
        title="FedDualAvg",
        symbols={"solver.step": "eta_c", "server_step": "eta_s", "stop": "K"},
        mnist=(1e-3, 1.0, 10.0),
        cifar10=(1e-4, 1.0, 100.0),
    ),
    "feddyn": Method(title="FedDyn", symbols={"alpha": "alpha"}, mnist=(1e3,), cifar10=(1e3,)),
    "scaffnew": Method(
        title="Scaffnew", symbols={"solver.step": "gamma", "probability": "p"}, mnist=(1e-5, 0.1), cifar10=(1e-7, 1e-3)
    ),
    # The paper solves all local problems alike: proximal maps to high accuracy, not by a number of gradient steps.
    "apda-inexact": Method(
        title="APDA-Inexact",
        symbols={"eta_x": "eta_x", "beta_y": "beta_y"},
        mnist=(1e-3, 1e-2),
        cifar10=(1e-4, 1e-3),
        solver="lbfgs",
    ),
    "fivegcs": Method(title="5GCS", symbols={"gamma": "gamma"}, mnist=(1e-4,), cifar10=(1e-4,), solver="lbfgs"),
    "dualfl": Method(title="DualFL", symbols={"rho": "rho"}, mnist=(3e-3,), cifar10=(0.0,)),
    "optimized-dualfl": Method(title="OptimizedDualFL", symbols={"rho": "rho"}),
}
PRIMAL = {  # Remark 7.1: "We also conducted experiments with several primal federated learning algorithms"
    "fedavg": Method(title="FedAvg", symbols={"solver.step": "s", "stop": "K"}),
    "fedcm": Method(title="FedCM", symbols={"solver.step": "s", "alpha": "alpha", "stop": "K"}),
    "fedsam": Method(title="FedSAM", symbols={"solver.step": "s", "radius": "r", "stop": "K"}),
}
TUNED = METHODS | PRIMAL
OURS = "optimized-dualfl"  # not in the paper; it shares the grid of DualFL


def grid(name: str, *, rows_per_client: float) -> Sequence[Point]:
    """Return the paper's grid of a method, converted from sums over rows to means.

    Parameters
    ----------
    name : str
        A name of ``METHODS``.
    rows_per_client : float
        What steps are multiplied and weights divided by.

    Examples
    --------
    >>> [point["alpha"] for point in grid("feddyn", rows_per_client=100.0)]
    ['0.01', '0.1', '1', '10', '100', '1000']
    """
    return paper_grid(_namesake(name), rows=rows_per_client)


def as_number(text: str) -> float:
    """Return the value of a parameter of a point.

    Examples
    --------
    >>> as_number("0.1"), as_number("steps=10")
    (0.1, 10.0)
    """
    return float(text.removeprefix("steps="))


def per_row(name: str, parameter: str, value: float, *, rows_per_client: float) -> float:
    """Turn a value that belongs to means over rows into that of sums; the reciprocal of the rows does the reverse.

    Examples
    --------
    >>> per_row("fedpd", "eta", 0.75, rows_per_client=7500.0), per_row("feddr", "relaxation", 2.0, rows_per_client=9.0)
    (0.0001, 2.0)
    """
    powers = {axis.name: axis.power for axis in GRIDS[_namesake(name)]}
    return value / rows_per_client ** powers[parameter]


def in_words(name: str, point: Point) -> str:
    """Say what the parameters of a point are.

    Examples
    --------
    >>> in_words("feddr", {"eta": "0.75", "relaxation": "1"})
    'eta = 0.75, alpha = 1'
    """
    return ", ".join(f"{symbol} = {as_number(point[entry]):.3g}" for entry, symbol in TUNED[name].symbols.items())


def paper_values(name: str, data: str) -> dict[str, float]:
    """Return the values of Table 2 for CIFAR-10, or for MNIST, which stands in for all other data.

    Examples
    --------
    >>> paper_values("scaffnew", "cifar10"), paper_values("optimized-dualfl", "mnist")
    ({'solver.step': 1e-07, 'probability': 0.001}, {})
    """
    method = METHODS[name]
    return dict(zip(method.symbols, method.cifar10 if data == "cifar10" else method.mnist, strict=False))


def gradients_needed(point: Point, communications: int) -> float:
    """Return the local gradients that a point prescribes for so many communications, on average; 0 if it does not.

    Examples
    --------
    >>> gradients_needed({"stop": "steps=10"}, 100), gradients_needed({"probability": "0.01"}, 100)
    (1000.0, 10000.0)
    """
    if "stop" in point:
        return communications * float(point["stop"].removeprefix("steps="))
    return communications / float(point["probability"]) if "probability" in point else 0.0


def to_candidate(name: str, point: Point, *, stop: Stop, communications: int) -> Candidate:
    """Return what is run: the method at a point of its grid, for so many communications.

    Examples
    --------
    >>> from dualopt.solvers.stopping import Steps
    >>> point = {"solver": "gradient", "solver.step": "0.1", "probability": "0.5", "participation": "communicate=0.5"}
    >>> candidate = to_candidate("scaffnew", point, stop=Steps(steps=1), communications=3)
    >>> candidate.participation, candidate.rounds
    (CommunicateWithProbability(probability=0.5), 5)
    """
    steps = {} if "stop" not in point else {"stop": built(point["stop"], "stop")}
    given = {key: value for key, value in point.items() if key not in ("participation", "stop")}
    if (solver := TUNED[name].solver) is not None:
        given["solver"] = solver
    algorithm: Any = Spec(name).given(given).build("algorithm")
    if "stop" in parameters(type(algorithm)):
        algorithm = replace(algorithm, **({"stop": stop} | steps))
    participation = as_participation(point.get("participation", "full"))
    return Candidate(algorithm=algorithm, participation=participation, rounds=rounds_for(participation, communications))


def rounds_for(participation: Participation, communications: int, seed: int = 0) -> int:
    """Return the number of rounds up to the one with so many communications.

    Examples
    --------
    >>> from dualopt.methods.participation import CommunicateWithProbability
    >>> rounds_for(CommunicateWithProbability(probability=0.5), 3)
    5
    """
    sent = accumulate(round.communicate for round in participation.rounds(1, seed))
    return next(n for n, count in enumerate(sent, start=1) if count == communications)


def _namesake(name: str) -> str:
    return "dualfl" if name == OURS else name
