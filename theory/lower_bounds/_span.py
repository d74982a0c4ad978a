"""Linear-span methods in general, a method that is none, and how far a model has come along the chain."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from dualopt.algorithms import Algorithm, FedAvg
from dualopt.objectives import Objective, ObjectiveWrapper
from dualopt.oracle import Oracle
from dualopt.participation import Round
from dualopt.tree import leaves
from dualopt.xp import Array

__all__ = ["Eavesdropper", "LinearSpan", "reach"]


def reach(tree: Any) -> int:
    """Return the number of the last entry that is not zero in any model of a tree, 0 if all are zero.

    Examples
    --------
    >>> reach(np.array([0.0, 1e-200, 0.0])), reach(np.zeros(3))
    (2, 0)
    """
    opened = [np.flatnonzero(np.any(np.reshape(x, (-1, x.shape[-1])) != 0, axis=0)) for x in leaves(tree)]
    return max((int(found[-1]) + 1 for found in opened if found.size), default=0)


class Server(NamedTuple):
    """State of the server."""

    theta: Array  # the model, a combination of all that was ever received
    received: Array  # (r, d) the uploads of all rounds


class Client(NamedTuple):
    """States of the clients."""

    known: Array  # (N, memory, d) the models received and the gradients computed, the latest last


@dataclass(frozen=True, kw_only=True)
class LinearSpan(Algorithm):
    r"""A random member of the class of the theorem, (10) of the paper.

    Everything linear is drawn anew: a client takes gradients at random combinations of the models that it has received
    and the gradients that it has computed, uploads such a combination, with a random weight among the clients, and the
    server's model is a random combination of all uploads so far.

    Parameters
    ----------
    steps : tuple of int
        Gradients per round, round by round and from the beginning again.
    length : float
        What gradients are multiplied by before they are combined, as by a step.
    memory : int
        How many vectors a client remembers.
    seed : int
        Which member.
    """

    supports: ClassVar[frozenset[str]] = frozenset({"partial", "skip"})
    listens: ClassVar[frozenset[str]] = frozenset({"active"})

    solver: None = None
    steps: tuple[int, ...] = (3,)
    length: float = 1.0
    memory: int = 20
    seed: int = 0

    def suggested(self, objective: Objective) -> Self:
        """Leave nothing open."""
        return self

    def init(self, theta0: Array, copies: Array) -> tuple[Server, Array, Client]:
        """Start from what everybody knows."""
        return Server(theta0, theta0[None]), theta0, Client(np.repeat(copies[:, None], self.memory, axis=1))

    def local(self, c: Client, message: Array, oracle: Oracle, round: Round) -> tuple[Client, Array]:
        """Extend the span by gradients at points of the span."""
        rngs, known = self._own(round).rngs(), c.known
        for _ in range(self.steps[round.n % len(self.steps)]):
            known = learn(known, self.length * oracle.evaluate(combine(known, rngs)).grad_f)
        return Client(known), combine(known, rngs)

    def server(self, server: Server, mean: Array, round: Round) -> tuple[Server, Array]:
        """Combine the uploads of all rounds."""
        received = np.concatenate([server.received, mean[None]])
        theta = combine(received[None], [self._own(round).rng()])[0]
        return Server(theta, received), theta

    def receive(self, clients: Client, message: Array) -> Client:
        """Add the model to what is known."""
        return Client(learn(clients.known, np.broadcast_to(message, clients.known[:, 0].shape)))

    def fixed_point(self, objective: Objective, theta: Array) -> None:
        """Return None: it has none."""

    def _own(self, round: Round) -> Round:
        return replace(round, seed=self.seed)


def learn(known: Array, vectors: Array) -> Array:
    """Put one vector of each client behind what is known, and forget the first."""
    return np.concatenate([known[:, 1:], vectors[:, None]], axis=1)


def combine(known: Array, rngs: list[np.random.Generator]) -> Array:
    """Return one random combination for each client, ``(N, d)``, which prefers what was learnt last."""
    n, m, _ = known.shape
    fading = 2.0 ** -np.arange(m)[::-1]
    weights = np.stack([rng.uniform(-2.0, 2.0, m) * fading for rng in rngs])
    return np.matmul(weights.reshape(n, 1, m), known)[:, 0]


@dataclass(frozen=True, kw_only=True)
class Eavesdropper(FedAvg):
    """FedAvg whose clients read each other's gradients, and so descend on ``E`` between two communications."""

    def local_objective(self, objective: Objective) -> Any:
        """Put the mean of the clients where each client's own function belongs."""
        return Pooled(objective)


@dataclass(frozen=True)
class Pooled(ObjectiveWrapper):
    """An objective in which every client has the gradient and the value of the mean."""

    objective: Any

    def select(self, ids: Any) -> Pooled:
        """Return all clients: they are never apart."""
        return self

    def value_and_gradient(self, theta: Array) -> tuple[Array, Array]:
        """Return the means of both over the clients, for each client."""
        value, gradient = self.objective.value_and_gradient(theta)
        return np.full_like(value, np.mean(value)), np.broadcast_to(np.mean(gradient, axis=0), gradient.shape)
