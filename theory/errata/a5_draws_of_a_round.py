"""A5: the chance of meeting the row that differs, in the proof of Lemma 4 of the A-FedPD paper."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from dualopt.claims import Inequality
from theory._chance import subsets
from theory._claims import ExpectedVerdict, Form
from theory.afedpd.afedpd_lemma_4 import lemma_4


class Sampling(NamedTuple):
    """P of N clients a round, each draws K of its S rows, one a local step."""

    name: str
    active: int
    n_clients: int
    size: int
    local_steps: int


def a5_draws_of_a_round_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Two local steps, and five."""
    for K in (2, 5):
        case = Sampling(f"K = {K}", 2, 5, 4, K)
        yield ExpectedVerdict(Form(case, printed=True), "violated")
        yield ExpectedVerdict(Form(case, printed=False))


@lemma_4.as_printed(
    source="A-FedPD Lemma 4 and (11)",
    statement=r"The row that differs is met within $\tau$ rounds with probability at most the bound. Printed:"
    r" $P\tau/(NS)$. Corrected: $PK\tau/(NS)$, since a round draws K rows; (11) then has $(HPKT)^{\mu L/(1+\mu L)}$,"
    r" and is not independent of the number of local steps.",
    cases=a5_draws_of_a_round_cases,
)
def a5_draws_of_a_round(form: Form) -> Iterator[Inequality]:
    """Compare the exact probability, by enumeration of a round, with either bound."""
    case = form.case
    K = 1 if form.printed else case.local_steps
    for rounds in range(1, 11):
        bound = case.active * K * rounds / (case.n_clients * case.size)
        yield Inequality(rounds, 1.0 - (1.0 - chance(case)) ** rounds, bound, "P(the row is met)")


def chance(case: Sampling) -> float:
    """Return the probability that client 0 is active in a round and draws its row 0.

    Examples
    --------
    >>> chance(Sampling("", 1, 2, 2, 2))
    0.375
    """
    active = sum(o.probability for o in subsets(case.n_clients, case.active) if 0 in o.round.clients)
    drawn = list(product(range(case.size), repeat=case.local_steps))
    return active * sum(0 in rows for rows in drawn) / len(drawn)
