"""Wrong variants of FedPD, of FedAvg, and of what is known about a run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from dualopt.lab.chance import Event
from dualopt.methods import FedAvg, FedPD, OldDualFedPD
from dualopt.methods.participation import CommunicateWithProbability, Round
from theory.fedpd.fedavg import LocalSteps
from theory.mutations._edits import OtherMethodError, Variant, becomes, change, edit, edited, instead, like

__all__ = ["LOCAL", "MUTATIONS"]

SOLVED = (FedPD, "local", "dual = c.dual + (theta - c.x0) / self.eta")
COPIES = (FedPD, "local", "return Client(theta, dual, x0), x0")
WEIGHT = (FedPD, "local", "weight=1.0 / self.eta")
UPHILL = "2.0 * message - oracle.solve(start=message).theta"  # the wrong side of the model
RECEIVED = (FedPD, "server", "Server(mean), mean")


@dataclass(frozen=True, kw_only=True)
class CoinsRound(Round):
    """A round with one coin per client."""

    coins: tuple[bool, ...]


@dataclass(frozen=True, kw_only=True)
class OwnCoins(CommunicateWithProbability):
    """Every client has a coin of its own; a round communicates if some client does."""

    def events(self, n_clients: int, *, n: int, seed: int) -> list[Event]:
        """Return all sides of all coins."""
        known = {"n": n, "n_clients": n_clients, "clients": tuple(range(n_clients)), "seed": seed}
        found = []
        for coins in product((True, False), repeat=n_clients):
            chance = float(np.prod([self.probability if coin else 1.0 - self.probability for coin in coins]))
            found.append(Event(chance, CoinsRound(communicate=any(coins), coins=coins, **known)))
        return found


def one_coin_per_client(case: Any) -> Any:
    """Let some clients replace their copies by the average, and the others not: two rounds of all outcomes."""
    if hasattr(case, "run") or type(getattr(case, "algorithm", None)) is not FedPD:
        raise OtherMethodError("one coin of FedPD.")
    wrong = edited(
        *(*RECEIVED, "Server(mean), (mean, np.array(round.coins)[:, None])"),
        *("receive", "x0=message", "x0=np.where(message[1], message[0], c.x0)"),
    )
    coin = OwnCoins(probability=1.0 - case.skip)
    return case.but(algorithm=like(wrong, case.algorithm), participation=coin, rounds=min(case.rounds, 2))


def wrong_steps(factor: float, kind: type[FedAvg], case: Any) -> LocalSteps:
    """Let a wrong FedAvg take steps of a wrong length."""
    if not isinstance(case, LocalSteps):
        raise OtherMethodError("local steps of FedAvg.")

    def algorithm(length: float, steps: int) -> FedAvg:
        return like(kind, case.algorithm(factor * length, steps))

    return replace(case, algorithm=algorithm)


def understated(case: Any) -> Any:
    """Let the bound G of A4 be a tenth of what it is."""
    return case.but(dissimilarity=0.1 * case.dissimilarity)


def far_too_long(method: Any, right: Any, *arguments: Any) -> Any:
    """Take a step of 12 times the ``eta`` in the bounds: far above its range."""
    return FedPD.local(replace(method, eta=12.0 * method.eta), *arguments)


def _of(*names: str) -> str:
    return " ".join(f"fedpd_{name}" for name in names)


LEMMAS = _of("equation_28", "lemma_4", "lemma_9")
RATES = _of("theorem_1", "theorem_3")
# The envelopes of the theorems are 20 times too wide for FedPD itself: slips that still converge are for the lemmas.
MUTATIONS: dict[str, Variant] = {
    "sign of the dual": edit(
        *(*SOLVED, "dual = c.dual - (theta - c.x0) / self.eta"),
        caught=f"{LEMMAS} {RATES} {_of('first_version_theorem_1', 'lemma_2', 'theorem_2')}",
    ),
    "dual step dropped": edit(*SOLVED, "dual = c.dual", caught=LEMMAS),
    "old dual when skipping": edit(
        *(*COPIES, "return Client(theta, dual, x0 if round.communicate else theta + self.eta * c.dual), x0"),
        caught=_of("equation_28", "lemma_1", "lemma_6", "lemma_8"),
    ),
    "local start at the copy": edit(FedPD, "local", "start=c.theta", "start=c.x0", caught="fedpd_remark_4"),
    "old for new dual": becomes(
        *(FedPD, lambda: OldDualFedPD),
        _of("equation_28", "lemma_1", "lemma_3", "lemma_6", "lemma_8"),
    ),
    "proximal term mis-scaled": edit(  # 1/(N eta) in the local problem, 1/eta in the dual step
        *(*WEIGHT, "weight=1.0 / (len(round.clients) * self.eta)"),
        caught=f"{LEMMAS} {_of('equation_26', 'lemma_1', 'lemma_2', 'lemma_6', 'theorem_1')}",
    ),
    "eta above its range": instead(
        *(FedPD, "local", far_too_long), _of("equation_26", "lemma_1", "lemma_2", "lemma_6", "lemma_7", "theorem_1")
    ),
    "twice the average": edit(
        *(*RECEIVED, "Server(2.0 * mean), 2.0 * mean"), caught=f"{RATES} {_of('equation_28', 'theorem_2')}"
    ),
    "one coin per client": change(one_coin_per_client, _of("equation_28", "lemma_2")),
    "G understated": change(understated, _of("lemma_2", "lemma_7")),
}
LOCAL: dict[str, Variant] = {
    "uphill": change(
        lambda case: wrong_steps(1.0, edited(FedAvg, "local", "oracle.solve(start=message).theta", UPHILL), case),
        _of("lemma_5", "claim_d_1"),
    ),
    "long local steps": change(partial(wrong_steps, 30.0, FedAvg), "fedpd_lemma_5"),
}
