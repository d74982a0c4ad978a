"""The constants of the zero chain, from its two functions: 24 pi for the split by thirds, and 2 (1 - 1/e) = 1.264."""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy as sp

from dualopt.objectives import zero_chain as chain
from tests.theory._symbolic import agree, same
from theory.lower_bounds import zero_chain as claims

t, v = sp.symbols("t v", real=True)
PSI: Any = 1 - sp.exp(-(t**2))
PHI: Any = 4 * sp.atan(v) + 2 * sp.pi


def extremes(expression: Any, symbol: Any) -> list[Any]:
    """Return the values where the derivative vanishes."""
    return [sp.simplify(expression.subs(symbol, point)) for point in sp.solve(sp.diff(expression, symbol), symbol)]


def limit(expression: Any, symbol: Any, end: Any) -> Any:
    """Return the limit, at zero from the right."""
    return sp.limit(expression, symbol, end, "-" if end == sp.oo else "+")


def test_bounds_of_the_functions() -> None:
    known = {case.case.name: case.case.bound for case in claims.zero_chain_scalars_cases(True)}
    same(known["Psi'"], max(extremes(sp.diff(PSI, t), t), key=sp.N))
    curvature = sp.diff(PSI, t, 2)
    same(known["Psi''"], limit(curvature, t, 0))
    same(known["-Psi''"], -min(extremes(curvature, t), key=sp.N))
    same(known["Phi"], limit(PHI, v, sp.oo))
    same(known["Phi'"], max(extremes(sp.diff(PHI, v), v), key=sp.N))
    same(known["Phi''"], max(extremes(sp.diff(PHI, v, 2), v), key=sp.N))
    same(known["1/(Psi Phi')"], 1 / (PSI.subs(t, 1) * PHI.diff(v).subs(v, 1)))


def test_curvatures_and_the_least_gradient() -> None:
    """The Hessian of a coupling tends to Psi''(0+) Phi(oo) in one entry; its slope at 0 is Psi(1) Phi'(0)."""
    bend, top = limit(sp.diff(PSI, t, 2), t, 0), limit(PHI, v, sp.oo)
    same(chain.CURVATURE, bend * top)
    same(chain.CURVATURE_1, PSI.subs(t, 1) * max(extremes(sp.diff(PHI, v, 2), v), key=sp.N))
    same(chain.FLOOR, PSI.subs(t, 1) * PHI.diff(v).subs(v, 0))
    same(chain.PSI_1, PSI.subs(t, 1))


def test_smoothness_of_the_clients() -> None:
    """Thirds weigh their couplings by 3, halves by 2; no client has two couplings of one entry."""
    for split, weight in (("thirds", 3), ("halves", 2)):
        f = chain.ZeroChain(split=claims.SPLITS[split](6, 7))
        same(float(np.max(f.L)), 8 * sp.pi * weight)
    assert not agree(float(np.max(f.L)), 81 * sp.pi)
