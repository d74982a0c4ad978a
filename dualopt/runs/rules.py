"""What decides which method to use: the facts of a problem, and one table of rules, the first of which applies.

The rules are the decision tree of docs/which_method.md, which is generated from them, and were found by measuring: the
tests hold them against every problem that the page measures.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["MINIMISED", "RULES", "Facts", "Rule", "choose"]

MINIMISED = ("vectors", "gradients")
"""What may be expensive: what clients send, or their local gradients."""

ALIKE = 0.1  # similarity up to which clients are alike
FEW = 0.25  # share of the clients from which on FedSplit is ahead of FedDyn (theory/frontier/sampled_fedsplit.py)
SMALL = 200  # numbers of a model, below which eleven products more than a vector are expensive


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What the rules look at.

    Parameters
    ----------
    n_clients : int
        Number of clients.
    size : int
        Numbers of a model.
    mu : float
        The smallest strong convexity constant of a client.
    L : float
        The largest smoothness constant of a client, infinite for a loss with kinks.
    least_L : float
        The smallest smoothness constant of a client.
    fraction : float
        Expected share of the clients that take part in a round.
    needs : frozenset of str
        What the participation asks of a method: ``"partial"``, ``"skip"``.
    smooth : bool
        Whether the losses are smooth.
    regularised : bool
        Whether there is a regulariser.
    similarity : float, optional
        How alike the clients are (see :func:`similarity`); None if that was not measured.
    minimise : str
        What to keep small, one of ``MINIMISED``.
    """

    n_clients: int
    size: int
    mu: float
    L: float
    least_L: float
    fraction: float = 1.0
    needs: frozenset[str] = frozenset()
    smooth: bool = True
    regularised: bool = False
    similarity: float | None = None
    minimise: str = "vectors"

    @property
    def kappa(self) -> float:
        """The condition number ``L/mu``, infinite where one of them says nothing."""
        return self.L / self.mu if self.mu > 0 else math.inf

    @property
    def partial(self) -> bool:
        """Whether some clients stay away."""
        return "partial" in self.needs

    @property
    def similarity_matters(self) -> bool:
        """Whether a rule may ask how alike the clients are."""
        plain = self.mu > 0 and self.smooth and not (self.needs or self.regularised)
        return plain and self.minimise == "vectors"

    @property
    def alike(self) -> bool:
        """Whether the clients were measured and are alike."""
        return self.similarity is not None and self.similarity <= ALIKE


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A row of the table: the first whose condition holds decides.

    Parameters
    ----------
    when : str
        The condition in words.
    applies : callable
        The condition.
    method : str
        The method that is recommended, by its name in ``dualopt list algorithms``.
    runner_up : str, optional
        The next best.
    because : str
        The reasons, in whole sentences.
    scales : str
        The scales of the clients, none or suggested.
    """

    when: str
    applies: Callable[[Facts], bool]
    method: str
    runner_up: str | None
    because: str
    scales: str = "none"

    @property
    def label(self) -> str:
        """The method with its scales, as tables name it."""
        return self.method if self.scales == "none" else f"{self.method}, scales={self.scales}"


RULES: tuple[Rule, ...] = (
    Rule(
        when="rounds skip communication by chance",
        applies=lambda facts: "skip" in facts.needs,
        method="scaffnew",
        runner_up="fedpd",
        because="Scaffnew is made for it: one gradient in every round, and the limit is exact. FedPD keeps a floor.",
    ),
    Rule(
        when="there is a regulariser, such as l1",
        applies=lambda facts: facts.regularised,
        method="feddr",
        runner_up=None,
        because="FedDR is exact with a regulariser and keeps its rate, whoever takes part.",
    ),
    Rule(
        when="smooth but not strongly convex, a few clients in each round",
        applies=lambda facts: facts.mu <= 0 and facts.smooth and facts.partial,
        method="feddyn",
        runner_up="a-fedpd",
        because="FedDyn's theorems cover convex and nonconvex clients with any share of them active.",
    ),
    Rule(
        when="not convex, everybody takes part",
        applies=lambda facts: facts.mu < 0,
        method="fedpd",
        runner_up="a-fedpd",
        because="FedPD has a rate with constants that hold for nonconvex clients, and its order cannot be better.",
    ),
    Rule(
        when="smooth and convex, not strongly (mu = 0)",
        applies=lambda facts: facts.mu == 0 and facts.smooth,
        method="distributed-lbfgs",
        runner_up="distributed-newton-cg",
        because="L-BFGS at the server needs no mu, and all methods whose rates need one are far slower here.",
    ),
    Rule(
        when="the loss has kinks, a few clients in each round",
        applies=lambda facts: not facts.smooth and facts.partial,
        method="sampled-dualfl",
        runner_up="growing-feddyn",
        because="SampledDualFL needs no smoothness and has the best order, 1/n^2, however few clients are active.",
    ),
    Rule(
        when="the loss has kinks, everybody takes part",
        applies=lambda facts: not facts.smooth,
        method="optimized-dualfl",
        runner_up="dualfl",
        because="OptimizedDualFL with rho = 0 has the order 1/n^2, which no method of its class beats.",
    ),
    Rule(
        when="a quarter of the clients or more in each round",
        applies=lambda facts: facts.partial and facts.fraction >= FEW,
        method="fedsplit",
        scales="suggested",
        runner_up="sampled-dualfl",
        because="FedSplit's rounds grow with N/P, not with its root, but their constant is half of FedDyn's.",
    ),
    Rule(
        when="a smaller share of the clients in each round",
        applies=lambda facts: facts.partial,
        method="sampled-dualfl",
        runner_up="feddyn",
        because="Rounds grow like sqrt(kappa N/P) for SampledDualFL and FedDyn, like N/P sqrt(kappa) for the others.",
    ),
    Rule(
        when="a local gradient costs as much as a vector",
        applies=lambda facts: facts.minimise == "gradients",
        method="distributed-lbfgs",
        runner_up="anderson-fedsplit",
        because="L-BFGS at the server takes one local gradient for each vector and has no parameter.",
    ),
    Rule(
        when="the clients are alike (similarity at most 0.1)",
        applies=lambda facts: facts.alike,
        method="anderson-dane",
        runner_up="anderson-fedsplit",
        because=(
            "The average of the clients' own minimisers is nearly the solution here, and AndersonDANE begins with it; "
            "then every step costs two vectors."
        ),
    ),
    Rule(
        when=f"the model has fewer than {SMALL} numbers",
        applies=lambda facts: facts.size < SMALL,
        method="giant",
        runner_up="distributed-lbfgs",
        because=(
            "GIANT's Newton steps need the fewest vectors here; the eleven products that AndersonFedSplit sends beside "
            "a vector cost more than they save."
        ),
    ),
    Rule(
        when="anything else",
        applies=lambda facts: True,
        method="anderson-fedsplit",
        runner_up="distributed-lbfgs",
        because=(
            "AndersonFedSplit takes about 0.4 of FedSplit's vectors however different clients are, and is safe always."
        ),
    ),
)
"""The decision tree: the first rule that applies decides."""


def choose(facts: Facts) -> Rule:
    """Return the first rule that applies.

    Examples
    --------
    >>> facts = Facts(n_clients=8, size=650, mu=1e-2, L=6.5, least_L=5.9, similarity=1.1)
    >>> choose(facts).method, choose(facts).runner_up
    ('anderson-fedsplit', 'distributed-lbfgs')
    """
    return next(rule for rule in RULES if rule.applies(facts))
