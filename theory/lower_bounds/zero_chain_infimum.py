r"""How far a chain falls: :math:`\Delta = E(0) - \inf E`.

Every :math:`\Theta_k` is at least :math:`-4\pi\Psi(x_{k-1})`, hence above :math:`-4\pi\Psi(1)` for ``k = 1`` and
:math:`-4\pi` else; all approach these together as all entries tend to infinity. At zero the first is
:math:`-2\pi\Psi(1)`, the others vanish. With ``T = d - 1``, in units of the height: :math:`\Delta = 4\pi(T +
\frac12\Psi(1))`, which is at most the :math:`5.3\pi T` that rounding up gives for :math:`T \ge 1`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from dualopt.claims import Inequality, claim
from dualopt.objectives import ZeroChain
from dualopt.objectives.zero_chain import PSI_1
from theory._claims import ExpectedVerdict
from theory.lower_bounds._zero_chain import zero_chain


class Fall(NamedTuple):
    """A chain and how many random points to look at."""

    name: str
    objective: ZeroChain
    points: int


def zero_chain_infimum_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield chains of several lengths and both splits."""
    for d in (1, 2, 10, 40):
        for split in ("thirds", "halves"):
            f = zero_chain(6, d, split=split, L=2.0, eps=0.1)
            yield ExpectedVerdict(Fall(f"{split}, d = {d}", f, 50 if quick else 500))


@claim(
    source="FedPD arXiv v1, Lemma 1 (4) and Lemma 2 (1), with equality",
    statement=r"$E(0) - \inf E = 4\pi\,\mathrm{height}\,(T + \frac12(1 - \frac1e))$ for the chain of $T + 1$ terms.",
    rtol=1e-12,
    cases=zero_chain_infimum_cases,
)
def zero_chain_infimum(case: Fall) -> Iterator[Inequality]:
    """Compare the declared fall with the formula, and with the values at random and at far points."""
    f, (d,) = case.objective, case.objective.shape
    rng = np.random.default_rng(0)
    formula = 4.0 * np.pi * f.height * (d - 1 + 0.5 * PSI_1)
    declared = float(np.mean(f.value(f.zeros()) - f.infimum))
    yield Inequality(d, abs(declared - formula), 1e-12 * formula, "error of the formula")
    far = fall(f, np.full(d, 1e8))
    yield Inequality(d, far, formula, "the fall to a far point")
    yield Inequality(d, formula, far * (1.0 + 1e-6), "the formula and the fall to a far point")
    for n in range(case.points):
        x = rng.standard_normal(d) * 10.0 ** rng.uniform(-1.0, 3.0, d)
        yield Inequality(n, fall(f, np.abs(x) if n % 2 else x), formula, "the fall to a random point")


def fall(f: ZeroChain, x: np.ndarray) -> float:
    """Return ``E(0) - E(width x)``."""
    return float(np.mean(f.value(f.zeros()) - f.value(f.width * x)))
