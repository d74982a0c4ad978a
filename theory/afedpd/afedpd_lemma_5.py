"""Lemma 5: the local updates of a client whose rows are the same in both data sets."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dualopt.claims import Inequality, claim
from dualopt.losses import Logistic
from theory._claims import ExpectedVerdict
from theory.afedpd._neighbours import Neighbours
from theory.afedpd._stability import assumptions, neighbours, small_trees
from theory.afedpd._tree import levels


def lemma_5_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """One and two local steps; steps that decay or do not; rho above and below L."""
    yield from map(ExpectedVerdict, small_trees(quick))
    low = neighbours(Logistic(), size=2, local_steps=1, rounds=2, step=0.5, rho=0.5, decayed=False)
    yield ExpectedVerdict(low, "outside assumptions")


@claim(
    name="afedpd_lemma_5",
    source="Sun, Shen and Tao, Lemma 5, (17)",
    statement=r"Client $i \ne i^*$, $\rho \ge L$, $\eta\rho \le 1$, K steps on single rows that both runs draw alike:"
    r" $\mathbb{E}|(\theta_i^{t+1} - \theta^t) - (\hat\theta_i^{t+1} - \hat\theta^t)| \le"
    r" c\,(L|\theta^t - \hat\theta^t| + |\lambda_i^t - \hat\lambda_i^t|)$ with $c = \eta K$, and with"
    r" $c = (1 - (1-\eta(\rho-L))^K)/(\rho-L)$; the expectation is over the draws of the round.",
    assumptions=assumptions,
    rounding=1e-12,
    cases=lemma_5_cases,
)
def lemma_5(case: Neighbours, *, differing: bool = False) -> Iterator[Inequality]:
    """Compare at every node of the tree, with the printed factor and with the one before Bernoulli's inequality."""
    K, bias = case.local_steps, case.rho - case.L
    for level in levels(case)[:-1]:
        eta = case.algorithm.solver.length(level.n)
        factor = (1.0 - (1.0 - eta * bias) ** K) / bias if bias > 0 else eta * K
        for node, moved in zip(level.nodes, level.moved, strict=True):
            models, duals = node.models(), node.duals()
            between = float(np.linalg.norm(models[0] - models[1]))
            for j in range(case.n_clients):
                if (j == case.differs[0]) != differing:
                    continue
                pull = case.L * between + float(np.linalg.norm(duals[0, j] - duals[1, j]))
                if differing:
                    pull += 2.0 * case.G / case.size
                yield Inequality(level.n, float(moved[j]), eta * K * pull, "as printed")
                yield Inequality(level.n, float(moved[j]), factor * pull, "before Bernoulli's inequality")
