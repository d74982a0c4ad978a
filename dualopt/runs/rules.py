"""What decides which method to use: the facts of a problem, and one table of rules, the first of which applies.

Where none applies, what methods may be expected to cost is compared, :mod:`dualopt.runs.costs`. The tables of
docs/which_method.md are made from both; it says how they fared on data that they were not chosen on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dualopt.runs.costs import EXPECTED, FAR, JUDGED, Expected, Link, Prices

__all__ = ["RULES", "Facts", "Rule", "choose"]

ALIKE = 0.1  # similarity up to which clients are alike
RISES = 3.0  # what a step of DANE from the average multiplies the gradient by, up to which they are
SMALL = 200  # numbers of a model, below which L-BFGS at the server needs few rounds
FEW = 0.25  # share of the clients from which on FedSplit is ahead of FedDyn (theory/frontier/sampled_fedsplit.py)


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
        How alike the clients are in the mean (see :func:`similarity`); None if that was not measured.
    dane_step : float, optional
        What a step of DANE from the average of the minimisers does to the gradient; None if that was not measured.
    minimise : str
        What to keep small, one of ``costs.MINIMISED``.
    bits : int
        Bits of a number that is sent.
    link : Link, optional
        The connection of a client, where seconds are to be kept small.
    gradient_seconds : float, optional
        The time of a local gradient, where seconds are.
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
    dane_step: float | None = None
    minimise: str = "vectors"
    bits: int = 64
    link: Link | None = None
    gradient_seconds: float | None = None

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
        return plain and self.minimise != "gradients"

    @property
    def alike(self) -> bool:
        """Whether the clients were measured and are alike, none of them odd as far as that was measured."""
        odd = self.dane_step is not None and self.dane_step > RISES
        return self.similarity is not None and self.similarity <= ALIKE and not odd

    @property
    def kind(self) -> str:
        """The class of a smooth, strongly convex problem, a key of ``costs.EXPECTED``."""
        if self.alike:
            return "alike"
        return f"not alike, fewer than {SMALL} numbers" if self.size < SMALL else f"not alike, {SMALL} numbers or more"

    @property
    def prices(self) -> Prices:
        """What to keep small, as prices."""
        return Prices.of(
            self.minimise, self.size, bits=self.bits, link=self.link, gradient_seconds=self.gradient_seconds
        )


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
)
"""The decision tree: the first rule that applies decides, and the least expected cost where none does."""

BASE = "distributed-lbfgs"
WORDS = {
    "vectors": "send the fewest vectors",
    "gradients": "take the fewest local gradients",
    "bits": "send the fewest bits",
    "seconds": "take the least time",
}


def choose(facts: Facts, expected: Mapping[str, Mapping[str, Expected]] = EXPECTED) -> Rule:
    """Return the first rule that applies, else that of the least cost by what is expected of methods.

    Examples
    --------
    >>> facts = Facts(n_clients=8, size=650, mu=1e-2, L=6.5, least_L=5.9, similarity=1.1, dane_step=0.9)
    >>> choose(facts).method
    'anderson-fedsplit'
    """
    return next((rule for rule in RULES if rule.applies(facts)), None) or cheapest(facts, expected)


def cheapest(facts: Facts, expected: Mapping[str, Mapping[str, Expected]] = EXPECTED) -> Rule:
    """Return the rule of the method that may be expected to cost the least, with the second as its runner-up.

    Examples
    --------
    >>> facts = Facts(n_clients=8, size=650, mu=1e-2, L=6.5, least_L=5.9, similarity=1.1)
    >>> cheapest(facts).when
    'not alike, 200 numbers or more'
    """
    known = expected[facts.kind]
    prices = {name: costs.price(name, facts.size, facts.prices) for name, costs in known.items()}
    method, runner_up, *_ = sorted(prices, key=prices.__getitem__)
    ratio = prices[method] / prices[BASE]
    beside = "" if method == BASE else f", {ratio:.2g} times what L-BFGS at the server does"
    near, cases = JUDGED[facts.minimise]
    return Rule(
        when=facts.kind,
        applies=lambda facts: True,
        method=method,
        runner_up=runner_up,
        because=(
            f"By the means over measured problems of its class ({facts.kind}) it may be expected to "
            f"{WORDS[facts.minimise]}{beside}. On data that these were not made from, such a choice was within {FAR} "
            f"times the best of {len(known)} methods in {near} of {cases} cases."
        ),
    )
