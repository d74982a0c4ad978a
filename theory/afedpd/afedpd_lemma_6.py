"""Lemma 6: the local updates of the client that holds the row that differs."""

from __future__ import annotations

from collections.abc import Iterable

from dualopt.claims import Inequality, claim
from theory.afedpd._neighbours import Neighbours
from theory.afedpd._stability import assumptions
from theory.afedpd.afedpd_lemma_5 import lemma_5


@claim(
    name="afedpd_lemma_6",
    source="Sun, Shen and Tao, Lemma 6, (18)",
    statement=r"Client $i^*$, of whose S rows one differs, gradients of a row at most G, otherwise as in Lemma 5:"
    r" $\mathbb{E}|(\theta_i^{t+1} - \theta^t) - (\hat\theta_i^{t+1} - \hat\theta^t)| \le"
    r" c\,(L|\theta^t - \hat\theta^t| + |\lambda_i^t - \hat\lambda_i^t| + 2G/S)$ with the same c.",
    assumptions=assumptions,
    rounding=1e-12,
    cases=lemma_5.cases,
)
def lemma_6(case: Neighbours) -> Iterable[Inequality]:
    """Compare as in Lemma 5, for the client whose rows differ."""
    return lemma_5(case, differing=True)
