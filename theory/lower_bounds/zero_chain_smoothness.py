r"""How smooth the clients are: the constant is 24 pi for the split by thirds, where the paper's bounds give 81 pi.

No client holds neighbouring terms, so its Hessian consists of the 2 x 2 blocks of single terms. For :math:`u = x_{k-1}
> 0` and :math:`v = x_k` the block of :math:`-\Theta_k` has the entries :math:`a = \Psi''(u)\Phi(v)`, :math:`b =
\Psi'(u)\Phi'(v)` (mixed), :math:`c = \Psi(u)\Phi''(v)`; for :math:`u < 0` it is minus that of :math:`(-u, -v)`. Its
norm is at most :math:`M = 8\pi` if :math:`(M \mp a)(M \mp c) \ge b^2` with positive factors. Now :math:`b^2 \le
\frac{32/e}{(1+v^2)^2} < 12`.

* Upper signs, :math:`v > 0`: :math:`M - a \ge M - 2\Phi(v) = 8\arctan\frac1v \ge 2\pi\min(1, \frac1v)` and :math:`M - c
  \ge M`, whose product exceeds :math:`157\min(1, 1/v) \ge 157/(1+v^2)^2`.
* Upper signs, :math:`v \le 0`: :math:`M - a \ge 8\pi - 4\pi`, :math:`M - c \ge 8\pi - \frac{3\sqrt3}2`; product above
  283.
* Lower signs: :math:`M + a \ge 8\pi - 16\pi e^{-3/2}`, :math:`M + c \ge 8\pi - \frac{3\sqrt3}2`; product above 313.

The bound is the least, since :math:`a \to 8\pi` and :math:`b, c \to 0` for :math:`u \to 0^+`, :math:`v \to \infty`. The
weight 3 of the thirds gives :math:`24\pi`, the weight 2 of the halves :math:`16\pi`. The term :math:`\Theta_1` is a
block of its own, :math:`|\Theta_1''| \le \Psi(1)\frac{3\sqrt3}2`, attained.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from dualopt.claims import Inequality, claim
from dualopt.objectives import ZeroChain
from theory._claims import ExpectedVerdict
from theory.lower_bounds._zero_chain import SPLITS, zero_chain

NEARLY = 1e-4  # how closely the points below approach the bound


class Clients(NamedTuple):
    """The clients of a chain, in units where it has height and width 1."""

    name: str
    objective: ZeroChain
    bound: float  # of the largest curvature, without units
    points: int


def zero_chain_smoothness_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield both splits, plain and scaled, and the shortest chain."""
    points = 100 if quick else 1000
    for split, weight in (("thirds", 3.0), ("halves", 2.0)):
        plain = ZeroChain(weights=SPLITS[split](6, 8))
        yield ExpectedVerdict(Clients(split, plain, 8.0 * np.pi * weight, points))
        scaled = zero_chain(6, 8, split=split, L=5.0, eps=0.01)
        bound = 5.0 * scaled.width**2 / scaled.height
        yield ExpectedVerdict(Clients(f"{split}, L = 5", scaled, bound, points))
    yield ExpectedVerdict(Clients("two entries", ZeroChain(weights=SPLITS["thirds"](3, 2)), 24.0 * np.pi, points))


@claim(
    source="FedPD arXiv v1, Lemma 1 (5) and Lemma 2 (3), with the least constants",
    statement=r"$\sup|\nabla^2\Theta_k| = 8\pi$ for $k \ge 2$, $\max|\Theta_1''| = \frac{3\sqrt3}2(1 - \frac1e)$; the"
    r" clients of the split by thirds are $24\pi$-smooth, those of the halves $16\pi$, and after scaling $L$-smooth,"
    r" with no smaller constant.",
    rtol=1e-12,
    cases=zero_chain_smoothness_cases,
)
def zero_chain_smoothness(case: Clients) -> Iterator[Inequality]:
    """Compare the largest curvature that is found with the constant, and each client's with what it declares."""
    f = case.objective
    found = curvatures(f, case.points)
    unit = f.height / f.width**2
    yield Inequality(0, float(np.max(found)), case.bound * unit, "largest curvature")
    yield Inequality(0, case.bound * unit, float(np.max(found)) * (1.0 + NEARLY), "the constant")
    for j, (largest, declared) in enumerate(zip(found, f.L, strict=True)):
        yield Inequality(j, float(largest), float(declared), f"curvature of client {j}")
        yield Inequality(j, float(declared), float(largest) * (1.0 + NEARLY), f"constant of client {j}")


def curvatures(f: ZeroChain, points: int) -> np.ndarray:
    r"""Return the largest norm of the Hessians that is found for each client, shape ``(N,)``.

    Among the points are those in whose neighbourhood the extremes lie: entries near zero before large ones, and
    :math:`1/\sqrt3` for the first term.
    """
    rng = np.random.default_rng(0)
    N, d = f.weights.shape
    small, large = np.full(d, 1e-6), np.full(d, 1e6)
    chosen = [np.where(np.arange(d) % 2 == parity, small, large) for parity in (0, 1)]
    chosen += [np.full(d, 1.0 / np.sqrt(3.0)), -chosen[0], -chosen[1]]
    chosen += [rng.standard_normal(d) * 10.0 ** rng.uniform(-3.0, 2.0, d) for _ in range(points)]
    norms = np.zeros(N)
    for x in chosen:
        product = f.hessian_operator(f.width * x)
        hessians = np.stack([product(column) for column in np.eye(d)], axis=-1)
        norms = np.maximum(norms, np.max(np.abs(np.linalg.eigvalsh(hessians)), axis=-1))
    return norms
