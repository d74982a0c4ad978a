"""Lemma 4: stability of the losses by the distance of the models and the chance of having met the row that differs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dualopt.claims import Inequality, claim
from theory._claims import ExpectedVerdict
from theory.afedpd._neighbours import Neighbours
from theory.afedpd._stability import largest_loss, small_trees
from theory.afedpd._tree import levels


def lemma_4_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """One and two local steps."""
    yield from map(ExpectedVerdict, small_trees(quick))


@claim(
    name="afedpd_lemma_4",
    source="Sun, Shen and Tao, Lemma 4, (16) (corrected)",
    statement=r"$\sup_\xi\mathbb{E}|f(\theta^T,\xi) - f(\hat\theta^T,\xi)| \le"
    r" G\,\mathbb{E}[|\theta^T - \hat\theta^T|; \tau \ge \tau_0] + HPK\tau_0/(NS)$, because the row that differs is met"
    r" before round $\tau_0$ with probability at most $PK\tau_0/(NS)$: K rows are drawn in a round, a factor that the"
    r" print omits. $0 \le f \le H$ at the models.",
    rtol=1e-12,
    cases=lemma_4_cases,
)
def lemma_4(case: Neighbours) -> Iterator[Inequality]:
    """Compare for every split of the rounds, with exact expectations over clients and draws."""
    ends = levels(case)[-1].nodes
    measured, H = loss_difference(case), largest_loss(case, [theta for node in ends for theta in node.models()])
    for split in range(case.rounds + 1):
        late = [node for node in ends if node.met >= split]
        between = sum(node.probability * float(np.linalg.norm(np.subtract(*node.models()))) for node in late)
        met = case.active * case.local_steps * split / (case.n_clients * case.size)
        yield Inequality(split, measured, case.G * between + H * met, f"tau_0 = {split}")
        early = sum(node.probability for node in ends if node.met < split)
        yield Inequality(split, early, met, "chance of a meeting")


def loss_difference(case: Neighbours) -> float:
    """Return the largest expected difference of the losses of a row at the final models."""
    ends = levels(case)[-1].nodes
    differences = [node.probability * np.abs(np.subtract(*map(case.losses, node.models()))) for node in ends]
    return float(np.max(np.sum(differences, axis=0)))
