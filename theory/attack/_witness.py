"""A worst case as text that runs."""

from __future__ import annotations

from typing import Any

import numpy as np

from dualopt.lab.attack import Attack, Parameters
from dualopt.methods import parameters
from dualopt.objectives import Quadratic
from dualopt.spec.plugins import is_spelled
from theory._claims import Form
from theory.attack._targets import Target

__all__ = ["described", "witness"]


def witness(name: str, target: Target, found: Attack) -> str:
    """Return a program that checks the claim on the worst case, with the case in comments.

    Examples
    --------
    >>> from theory.attack._targets import targets
    >>> target = targets()["p1_scale_of_constants"]
    >>> print(witness("p1_scale_of_constants", target, Attack(claim="p1", point=(-1.6, -0.5, 0.3))))
    # FedPD(eta=0.443756, solver=Exact(), stop=GradientNorm(tol=1e-13))
    # A = [[[0.0100197]], [[0.0100197]]]
    # b = [[0.0], [0.0]]
    # theta0 = [0.3]
    from dualopt.lab.attack import Parameters
    from dualopt.lab.claims import check
    from theory.attack import targets
    <BLANKLINE>
    claim, generators = targets()["p1_scale_of_constants"]
    verdict = check(claim, generators[0](Parameters([-1.6, -0.5, 0.3])))
    print(verdict)
    """
    case = target.generators[found.generator](Parameters(found.point))
    place, definition = "from theory.attack import targets", f'claim, generators = targets()["{name}"]'
    if is_spelled(name):
        place = "from dualopt.spec.plugins import load"
        definition = f'claim = load("claims", {name!r}, "claim")\ngenerators = claim.generators'
    lines = [f"# {line}" for line in described(case)]
    lines += [
        "from dualopt.lab.attack import Parameters",
        "from dualopt.lab.claims import check",
        place,
        "",
        definition,
        f"verdict = check(claim, generators[{found.generator}](Parameters({list(found.point)})))",
        "print(verdict)",
    ]
    return "\n".join(lines)


def described(case: Any) -> list[str]:
    """Say in a few lines what a case is: the method, the clients, the start."""
    case = case.case if isinstance(case, Form) else case
    if not (hasattr(case, "objective") and hasattr(case, "algorithm")):
        return str(case).splitlines()
    f = case.objective
    parts = {"A": f.A, "b": f.b} if isinstance(f, Quadratic) else {}
    theta0 = getattr(case, "theta0", None)
    if theta0 is not None:
        parts["theta0"] = theta0
    return [_short(case.algorithm), *(f"{name} = {_rounded(array)}" for name, array in parts.items())]


def _short(algorithm: Any) -> str:
    values = {name: getattr(algorithm, name) for name in parameters(type(algorithm))}
    shown = (f"{name}={f'{x:.6g}' if isinstance(x, float) else x}" for name, x in values.items())
    return f"{type(algorithm).__name__}({', '.join(shown)})"


def _rounded(array: Any) -> list:
    return np.vectorize(lambda x: float(f"{x:.6g}"))(array).tolist()
