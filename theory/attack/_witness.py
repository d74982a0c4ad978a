"""A worst case as text that runs."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from dualopt.attack import Attack, Numbers
from dualopt.objectives import Quadratic
from theory.attack._targets import Target
from theory.errata._form import Form

__all__ = ["described", "witness"]


def witness(name: str, target: Target, found: Attack) -> str:
    """Return a program that checks the claim on the worst case, with the case in comments.

    Examples
    --------
    >>> from theory.attack._targets import targets
    >>> target = targets()["p1_scale_of_constants"]
    >>> print(witness("p1_scale_of_constants", target, Attack(claim="p1", vector=(-1.6, -0.5, 0.3))))
    # FedPD(eta=0.443756, solver=Exact(), stop=GradientNorm(tol=1e-13), old_dual=False)
    # A = [[[0.0100197]], [[0.0100197]]]
    # b = [[0.0], [0.0]]
    # theta0 = [0.3]
    from dualopt.attack import Numbers
    from dualopt.claims import check
    from theory.attack import targets
    <BLANKLINE>
    claim, families = targets()["p1_scale_of_constants"]
    verdict = check(claim, families[0](Numbers([-1.6, -0.5, 0.3])))
    print(verdict)
    """
    case = target.families[found.family](Numbers(found.vector))
    lines = [f"# {line}" for line in described(case)]
    lines += [
        "from dualopt.attack import Numbers",
        "from dualopt.claims import check",
        "from theory.attack import targets",
        "",
        f'claim, families = targets()["{name}"]',
        f"verdict = check(claim, families[{found.family}](Numbers({list(found.vector)})))",
        "print(verdict)",
    ]
    return "\n".join(lines)


def described(case: Any) -> list[str]:
    """Say in a few lines what a case is: the method, the clients, the start."""
    case = case.case if isinstance(case, Form) else case
    f = case.objective
    parts = {"A": f.A, "b": f.b} if isinstance(f, Quadratic) else {}
    if hasattr(case, "theta0"):
        parts["theta0"] = case.theta0
    return [_short(case.algorithm), *(f"{name} = {_rounded(array)}" for name, array in parts.items())]


def _short(algorithm: Any) -> str:
    values = {field.name: getattr(algorithm, field.name) for field in fields(algorithm)}
    told = (f"{name}={f'{x:.6g}' if isinstance(x, float) else x}" for name, x in values.items())
    return f"{type(algorithm).__name__}({', '.join(told)})"


def _rounded(array: Any) -> list:
    return np.vectorize(lambda x: float(f"{x:.6g}"))(array).tolist()
