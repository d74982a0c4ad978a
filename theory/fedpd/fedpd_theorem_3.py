"""Theorem 3: what skipping costs when the clients' gradients differ by a bounded amount."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import accumulate

import numpy as np

from dualopt.claims import Inequality, claim
from dualopt.objectives import Quadratic
from theory._claims import ExpectedVerdict
from theory.fedpd._assumptions import admitted, similar
from theory.fedpd._constants import accuracy_factor, decrease_factor, start_factor
from theory.fedpd._drift import drift
from theory.fedpd._instances import equal_hessians, logistic, penalised, run_on
from theory.fedpd._run import Branch, Run
from theory.fedpd.fedpd_theorem_1 import excess, mean_gradients, pull, squared_gradient


def theorem_3_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield similar clients, for which the bound says something; others, or too much skipping, where it does not."""
    rounds = 300 if quick else 3000
    alike = equal_hessians(G=0.01)
    yield ExpectedVerdict(run_on("similar clients", alike, skip=0.3, rounds=rounds))
    yield ExpectedVerdict(run_on("similar clients", alike, a=0.05, skip=0.7, rounds=2 * rounds))
    yield ExpectedVerdict(run_on("similar clients", alike, skip=0.3, rounds=rounds, tol=1e-3))
    yield ExpectedVerdict(run_on("equal Hessians", equal_hessians(), skip=0.3, rounds=100), "vacuous")
    yield ExpectedVerdict(run_on("similar clients", alike, skip=0.8, rounds=100), "vacuous")
    leaves = 5 if quick else 9
    yield ExpectedVerdict(run_on("logistic", logistic(), skip=0.5, rounds=leaves), "vacuous")
    yield ExpectedVerdict(run_on("penalised logistic", penalised(), skip=0.2, rounds=leaves), "vacuous")


@claim(
    name="fedpd_theorem_3",
    source="Zhang et al., Theorem 3, with the second moments of Lemma 2",
    statement=r"Under A4, if rounds skip communication with probability p, the bound of Theorem 1 holds for"
    r" $\frac1T\sum_{r<T}\mathbb E|\nabla E(\bar x_0^r)|^2$ with $\frac{N-1}{2NT}\bigl(\frac{C}{2\eta}Z_T +"
    r" \sum_{r<T}(\frac{C(1-p)}{\eta}X_r + 4L^2Z_r)\bigr)$ added. Here $Z_r \ge \mathbb E z_r^2$ and $X_r \ge"
    r" \mathbb Ez_rz_r^+$ are second moments of the chain $S_0 = 0$, $z^+ = \psi(S) ="
    r" \frac{(1+a)S+(3+a)h}{1-a}$, $h = \eta(G+2\sqrt{\varepsilon_1})$, $S' = \frac{aS+2ah}{1-a}$ plus, with"
    r" probability p, $\psi(S)$. They are bounded if $(1-p)a^2 + p(1+2a)^2 < (1-a)^2$.",
    assumptions=lambda run: admitted(run) + similar(run),
    trivial=lambda run: squared_gradient(run, run.theta0),
    rounding=0.0,
    cases=theorem_3_cases,
)
def theorem_3(run: Run) -> Iterator[Inequality]:
    """Compare exact expectations of the means over the first T rounds."""
    means = list(expected_gradients(run))
    accuracy = max((accuracy for _, accuracy in means), default=0.0)
    for T, ((mean, _), bound) in enumerate(zip(means, bounds(run, accuracy), strict=False), start=1):
        yield Inequality(T, mean, bound, "E mean of |grad E|^2")


def bounds(run: Run, accuracy: float) -> Iterator[float]:
    r"""Yield the bound for T = 1, 2, ...: Theorem 1's, and the drift that Lemma 2 allows.

    With the pairwise distances ``z`` of Lemma 2, :math:`D_r \le \frac{N-1}{2N} z_r^2`, and the cost of averaging is at
    most :math:`\frac{1-p}{2\eta} \frac{N-1}{N} z_r z_r^+`.
    """
    L, eta, p, N = run.L, run.eta, run.skip, run.objective.n_clients
    C, pairs = decrease_factor(L=L, eta=eta), (N - 1) / (2.0 * N)
    constant = C * excess(run) + start_factor(L=L, eta=eta) * pull(run, accuracy)
    h = eta * (run.dissimilarity + 2.0 * math.sqrt(accuracy))
    moments = drift(p, a=run.a, h=h)
    before = next(moments)
    averaging = apart = 0.0
    for T, after in enumerate(moments, start=1):
        averaging += (1.0 - p) / eta * pairs * before.crossed
        apart += pairs * before.copies
        total = constant + C * (averaging + pairs * after.copies / (2.0 * eta)) + 4.0 * L**2 * apart
        yield total / T + accuracy_factor(L=L, eta=eta, rounds=T) * accuracy
        before = after


def expected_gradients(run: Run) -> Iterator[tuple[float, float]]:
    r"""Yield the expected mean over r < T of :math:`|\nabla E(\bar x_0^r)|^2`, and the accuracy, for T = 1, 2, ...

    On quadratics with one Hessian the mean of the clients obeys a recursion of its own, in which the coin does not
    occur: one path is the expectation. Otherwise all ``2^T`` paths are followed.
    """
    if isinstance(run.objective, Quadratic) and not np.ptp(run.objective.A, axis=0).any():
        return ((mean, accuracy) for _, mean, accuracy in mean_gradients(run))
    sums = accumulate(_tree(run))
    return ((total / T, max(step.accuracy for step in run.steps())) for T, total in enumerate(sums, start=1))


def _tree(run: Run) -> Iterator[float]:
    level = [Branch(1.0, run.first())]
    for n in range(run.rounds):
        copies = ((leaf.probability, np.mean(leaf.state.clients.x0, axis=0)) for leaf in level)
        yield sum(probability * squared_gradient(run, mean) for probability, mean in copies)
        if n + 1 < run.rounds:
            level = [
                Branch(leaf.probability * branch.probability, branch.state)
                for leaf in level
                for branch in run.branches(leaf.state, n)
            ]
