r"""How large the gradient of the whole chain stays, with the best constants.

Let :math:`g = \sum_k \Theta_k` and :math:`m_k = |x_k|`. All parts of :math:`-\partial_k g` are nonnegative:
:math:`|\partial_k g| = \Psi(m_{k-1})\Phi'(x_k) + \Psi'(m_k)\Phi(\pm x_{k+1})`, the second without :math:`k = d`.

**Some** :math:`m_k < 1`. For the first such ``k``, :math:`m_{k-1} \ge 1`, so that :math:`|\partial_k g| \ge
\Psi(1)\Phi'(x_k) > 2(1 - \frac1e) = 1.264`. This is the infimum: let :math:`x_1 \to 1`, :math:`x_2 \to -\infty`,
:math:`x_3 \to \infty`, ...

**The last entry is zero**, which is all that a lower bound needs. Then :math:`|\nabla g| \ge 4(1 - \frac1e) = 2.528`,
attained at zero. For suppose it were smaller, and let :math:`r = 0.3`. If :math:`m_{k+1} \le r` then also :math:`m_k
\le r`, as

.. math:: |\partial_{k+1} g|^2 + |\partial_k g|^2 \ge
          \bigl(\tfrac{4}{1+r^2}\Psi(m_k)\bigr)^2 + \bigl(\Phi(-r)\Psi'(m_k)\bigr)^2 \ge 2.8^2 \quad (m_k \ge r).

From :math:`m_d = 0` we get down to :math:`m_1 \le r`. But there :math:`|\partial_1 g| \ge \frac{4\Psi(1)}{1+m^2} +
\Phi(-r)\Psi'(m) \ge 4\Psi(1)(1 - m^2) + 9m \ge 4\Psi(1)`. The same holds for :math:`\sum_k w_k\Theta_k` with the bound
:math:`4(1 - \frac1e)\min_k w_k`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from dualopt.claims import Inequality, claim
from dualopt.objectives import ZeroChain
from dualopt.objectives.zero_chain import FLOOR
from theory._claims import ExpectedVerdict
from theory.lower_bounds._zero_chain import SPLITS


class Points(NamedTuple):
    """Points with one entry held, at zero or within the unit interval."""

    name: str
    objective: ZeroChain
    where: str
    starts: int


def zero_chain_gradient_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield short and long chains with one entry held."""
    for d in (1, 2, 3, 6, 12):
        f = ZeroChain(weights=SPLITS["halves"](2, d))
        for where in ("last entry zero", "an entry in the unit interval"):
            yield ExpectedVerdict(Points(f"d = {d}, {where}", f, where, 3 if quick else 20))


@claim(
    source="FedPD arXiv v1, Lemma 3, with the best constants",
    statement=r"$g = \sum_k\Theta_k$: if some $|x_k| < 1$, then $|\nabla g| > 2(1 - \frac1e) > 1$, the infimum; if"
    r" $x_d = 0$, then $|\nabla g| \ge 4(1 - \frac1e)$, attained at $x = 0$.",
    rtol=1e-12,
    cases=zero_chain_gradient_cases,
)
def zero_chain_gradient(case: Points) -> Iterator[Inequality]:
    """Compare the bound with gradients where it is attained, at random points, and where they are least."""
    f, (d,) = case.objective, case.objective.shape
    rng = np.random.default_rng(0)
    last = case.where == "last entry zero"
    floor = FLOOR if last else 0.5 * FLOOR

    def norm(x: np.ndarray) -> float:
        return float(np.linalg.norm(np.mean(f.gradient(x), axis=0)))

    def found(n: int, x: np.ndarray) -> Inequality:
        return Inequality(n, floor, norm(x), "the least gradient")

    best = _attaining(d, last)
    yield found(0, best)
    yield Inequality(0, norm(best), floor if last else floor * (1.0 + 1e-6), "the gradient that attains it")
    for n in range(1, case.starts + 1):
        held = d - 1 if last else int(rng.integers(d))
        x = rng.standard_normal(d) * 10.0 ** rng.uniform(-1.0, 1.0, d)
        x[held] = 0.0 if last else rng.uniform(-1.0, 1.0)
        yield found(n, x)
        box = np.full((d, 2), (-1e4, 1e4))
        box[held] = (0.0, 0.0) if last else (-1.0, 1.0)
        yield found(n, minimize(lambda z: norm(z) ** 2, x, bounds=box, method="L-BFGS-B").x)


def _attaining(d: int, last: bool) -> np.ndarray:
    """Return where the gradient is as small as it can be, or almost so."""
    if last:
        return np.zeros(d)
    x = 1e8 * (-1.0) ** np.arange(d)
    x[0] = 1.0 - 1e-9
    return x
