"""Wrong variants of FedDyn."""

from __future__ import annotations

from dualopt.methods import FedDyn
from theory.mutations._edits import Variant, edit, first_client, instead

__all__ = ["MUTATIONS"]

H = (FedDyn, "server", "self._memory(round) * round.fraction * moved")
MODEL = (FedDyn, "server", "theta = x - h / self.alpha")
MEMORY = (FedDyn, "local", "c.gradient - self._memory(round) * (")


def _of(*names: str) -> str:
    return " ".join(f"feddyn_{name}" for name in names)


# Lemmas 3, 5, 9 and 12 take the state as it is: a wrong h does not show in them, wrong local solutions do. In (9) and
# Lemma 2 it shows at once.
THEOREMS = _of(*(f"theorem_{n}" for n in (1, 2, 3, 4)))
STATELESS = _of(*(f"lemma_{n}" for n in (3, 5, 9, 12)))
LYAPUNOV = _of(*(f"lemma_{n}" for n in (1, 8, 10)))
OF_STATES = f"{_of('equation_9', 'lemma_2', 'lemma_4', 'lemma_11')} {LYAPUNOV} {THEOREMS}"
AT_ONCE = _of("equation_9", "lemma_2")
MUTATIONS: dict[str, Variant] = {
    "parenthesis of h dropped": edit(
        *(*H, "(self._memory(round) * round.fraction * x - server.theta)"), caught=f"{OF_STATES} feddyn_lemma_7"
    ),
    "theta once in h": edit(
        *(*H, "self._memory(round) * (round.fraction * x - server.theta / round.n_clients)"),
        caught=f"{OF_STATES} feddyn_lemma_7",
    ),
    "1/P for 1/N in h": edit(
        *(*H, "self._memory(round) * moved"), caught=f"{AT_ONCE} {_of('lemma_7', 'lemma_11', 'theorem_3')}"
    ),
    "no h": edit(*H, "0.0 * moved", caught=f"{AT_ONCE} {LYAPUNOV} {THEOREMS}"),
    "wrong sign of h": edit(
        *(FedDyn, "server", "theta = x - h /", "theta = x + h /"), caught=f"{AT_ONCE} {LYAPUNOV} {THEOREMS}"
    ),
    "h for h/alpha": edit(*MODEL, "theta = x - h", caught=OF_STATES),
    "old h": edit(
        *(FedDyn, "server", "theta = x - h /", "theta = x - server.h /"),
        caught=f"{AT_ONCE} {_of('lemma_1', 'lemma_8')}",
    ),
    "wrong sign of the memory": edit(
        *(FedDyn, "local", "linear=-c.gradient", "linear=c.gradient"), caught=f"{OF_STATES} {STATELESS} feddyn_lemma_7"
    ),
    "no memory": edit(
        *(*MEMORY, "c.gradient - 0.0 * ("),
        caught=f"{OF_STATES.replace('feddyn_lemma_10', '')} {STATELESS} feddyn_lemma_7",
    ),
    "half the memory": edit(
        *(*MEMORY, "c.gradient - 0.5 * self._memory(round) * ("),
        caught=f"{AT_ONCE} {_of('lemma_3', 'lemma_7', 'lemma_9', 'lemma_12', 'theorem_3')}",
    ),
    "a tenth of the proximal term": edit(
        *(FedDyn, "local", "weight=self.alpha", "weight=0.1 * self.alpha"),
        caught=f"{OF_STATES} {STATELESS} feddyn_lemma_7",
    ),
    "one client for the mean": instead(FedDyn, "local", first_client, _of(*(f"lemma_{n}" for n in (1, 2, 3, 7, 8, 9)))),
}
