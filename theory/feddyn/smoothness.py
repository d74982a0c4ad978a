r"""What the proofs of the FedDyn paper use of smooth and convex clients: (4), (5), (6), (11) and Lemma 6.

(6) for convex clients is (11) with :math:`\mu = 0`: :math:`f(y) \ge f(x) + \langle\nabla f(x), y - x\rangle +
\frac\mu2|x - y|^2` and (4) from x to z, :math:`f(z) \le f(x) + \langle\nabla f(x), z - x\rangle + \frac L2|z - x|^2`,
subtracted. (5) is the mean over the clients of :math:`|\nabla f(x) - \nabla f(\theta^*)|^2 \le 2L(f(x) - f(\theta^*)
- \langle\nabla f(\theta^*), x - \theta^*\rangle)`, in which the last terms sum to zero.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dualopt.lab.claims import Inequality, claim
from theory._cases import Case
from theory._claims import ExpectedVerdict
from theory._problems import (
    flat_quadratic,
    indefinite,
    logistic,
    lopsided,
    one_concave_client,
    one_flat_client,
    quadratic,
)
from theory.feddyn._runs import curvatures

POINTS = 20  # triples, some of them close together and some far apart


def convex(instance: Case) -> list[str]:
    """Return what fails: every client is convex and smooth."""
    return [] if instance.mu >= -1e-12 * instance.L and np.isfinite(instance.L) else ["convex and smooth clients"]


def smoothness_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Convex clients, unequal and flat ones among them; and nonconvex ones."""
    for instance in (quadratic(), flat_quadratic(), logistic(), curvatures(0.5, 1.0, 2.0)):
        yield ExpectedVerdict(instance)
    yield ExpectedVerdict(lopsided())
    yield ExpectedVerdict(one_flat_client())
    for instance in (one_concave_client(), indefinite()):
        yield ExpectedVerdict(instance, "outside assumptions")


@claim(
    name="feddyn_smoothness",
    source="Acar et al., Definition 1 with (4), (5), (6) and (11)",
    statement=r"For convex clients and all x, y, z: $f_k(z) \le f_k(x) + \langle\nabla f_k(x), z - x\rangle + \frac L2"
    r"|z - x|^2$; $\frac{1}{2LN}\sum_k|\nabla f_k(x) - \nabla f_k(\theta^*)|^2 \le E(x) - E(\theta^*)$;"
    r" $-\langle\nabla f_k(x), z - y\rangle \le f_k(y) - f_k(z) + \frac L2|z - x|^2 - \frac\mu2|x - y|^2$, with"
    r" $\mu \ge 0$.",
    assumptions=convex,
    rtol=1e-9,
    cases=smoothness_cases,
)
def smoothness(instance: Case) -> Iterator[Inequality]:
    """Definition 1 and inequalities (4), (5), (6) and (11): smooth and strongly convex clients.

    Compare at triples of points, client by client, each client with its own constants, which imply the paper's. Terms
    are arranged so that both sides of (4) and (11) are not negative.
    """
    f, rng = instance.objective, np.random.default_rng(0)
    for k in range(POINTS):
        x, y, z = (10.0 ** rng.uniform(-1.0, 1.0) * rng.standard_normal(f.shape) for _ in range(3))
        slope, squares = f.gradient(x), [float(np.sum((a - b) ** 2)) for a, b in ((z, x), (x, y))]
        for j in range(f.n_clients):
            mu, L = max(float(f.mu[j]), 0.0), float(f.L[j])
            above = float(f.value(z)[j] - f.value(x)[j] - np.sum(slope[j] * (z - x)))
            yield Inequality(k, above, 0.5 * L * squares[0], f"(4), client {j}")
            below = float(f.value(y)[j] - f.value(x)[j] - np.sum(slope[j] * (y - x)))
            excess = 0.5 * L * squares[0] - above
            yield Inequality(k, 0.5 * mu * squares[1], excess + below, f"(11), client {j}")
        apart = float(np.mean(np.sum((slope - instance.subgradients) ** 2, axis=tuple(range(1, slope.ndim)))))
        gap = float(np.mean(f.value(x)) - np.mean(f.value(instance.theta)))
        yield Inequality(k, apart / (2.0 * instance.L), gap, "(5)")


def lemma_6_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield the memories of clients that pull together, which attain it, and of others."""
    yield ExpectedVerdict(lopsided())
    yield ExpectedVerdict(curvatures(1.0, 1.0, 1.0))


@claim(
    name="feddyn_lemma_6",
    source="Acar et al., Lemma 6",
    statement=r"$|\sum_{j \le n}v_j|^2 \le n\sum_{j \le n}|v_j|^2$, with equality where all $v_j$ agree.",
    rtol=1e-12,
    cases=lemma_6_cases,
)
def lemma_6(instance: Case) -> Iterator[Inequality]:
    """Lemma 6: the square of a sum.

    Compare for gradients of the clients, of which the first one is also taken n times.
    """
    f, rng = instance.objective, np.random.default_rng(0)
    for k in range(POINTS):
        found = f.gradient(rng.standard_normal(f.shape))
        for vectors in (found, np.repeat(found[:1], len(found), axis=0)):
            squares = len(vectors) * float(np.sum(vectors**2))
            yield Inequality(k, float(np.sum(np.sum(vectors, axis=0) ** 2)), squares, "square of the sum")
