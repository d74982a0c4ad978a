r"""Zero chains in the units of the theorem, and methods on them: how many entries each communication opens.

A chain of ``d`` couplings :math:`\Theta_1, \ldots, \Theta_d` is dealt out to ``N`` clients by a matrix of weights of
shape (N, d), whose columns have the mean one. The methods are those of the library, a random member of the class of
linear-span methods, and one that is no member.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from dualopt.arrays.tree import leaves
from dualopt.arrays.xp import Array
from dualopt.methods import AFedPD, Algorithm, FedADMM, FedAvg, FedDyn, FedPD, FedProx, Scaffnew, Scaffold
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import CommunicateWithProbability, Round, UniformSubset
from dualopt.objectives import Objective, ObjectiveWrapper, ZeroChain
from dualopt.solvers import LBFGS, Gradient
from dualopt.solvers.stopping import Steps
from theory._cases import Case

__all__ = [
    "SPLITS",
    "STEPS",
    "CentralisedFedAvg",
    "LinearSpan",
    "as_printed",
    "on_chain",
    "races",
    "reach",
    "zero_chain",
]

STEPS = 20  # local steps between two communications: enough to bring a new entry from near zero to the order of width
LONG = 100.0  # times 1/L: no step is too long, as all partial derivatives of a chain are negative or zero
WEAK = 0.1  # the proximal weight over L, small enough for these steps to go as far

# Who holds which couplings.


def thirds(n: int, d: int) -> np.ndarray:
    r"""Return the weights of the split by thirds: the even couplings, half of the first, the rest.

    They are :math:`3\sum_{k \text{ even}} \Theta_k`, :math:`\frac32 \Theta_1` and
    :math:`\frac32 \Theta_1 + 3\sum_{k \ge 3 \text{ odd}} \Theta_k`.

    Examples
    --------
    >>> thirds(3, 4).tolist()
    [[0.0, 3.0, 0.0, 3.0], [1.5, 0.0, 0.0, 0.0], [1.5, 0.0, 3.0, 0.0]]
    """
    if n % 3:
        raise ValueError(f"n must be divisible by 3, not {n}.")
    weights = np.zeros((3, d))
    weights[0, 1::2] = weights[2, 2::2] = 3.0
    weights[1:, 0] = 1.5
    return np.repeat(weights, n // 3, axis=0)


def halves(n: int, d: int) -> np.ndarray:
    """Return the weights of the split in halves, which needs the least smoothness: odd couplings, even couplings.

    Examples
    --------
    >>> halves(2, 4).tolist()
    [[2.0, 0.0, 2.0, 0.0], [0.0, 2.0, 0.0, 2.0]]
    """
    if n % 2:
        raise ValueError(f"n must be even, not {n}.")
    weights = np.zeros((2, d))
    weights[0, 0::2] = weights[1, 1::2] = 2.0
    return np.repeat(weights, n // 2, axis=0)


def printed(n: int, d: int) -> np.ndarray:
    r"""Return the printed weights: every client has :math:`\Theta_1`, and client ``i`` each ``n``-th of the others.

    Client 0 holds the neighbours :math:`\Theta_1, \Theta_2`, so that the server starts with two entries.

    Examples
    --------
    >>> printed(3, 5).tolist()
    [[1.0, 1.0, 0.0, 0.0, 1.0], [1.0, 0.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 1.0, 0.0]]
    """
    weights = np.zeros((n, d))
    weights[np.arange(1, d) % n - 1, np.arange(1, d)] = 1.0
    weights[:, 0] = 1.0
    return weights


SPLITS: dict[str, Callable[[int, int], np.ndarray]] = {"thirds": thirds, "halves": halves}


def zero_chain(n: int, d: int, *, split: str = "thirds", L: float = 1.0, eps: float = 1.0) -> ZeroChain:
    """Return ``n`` clients with a chain of ``d`` couplings (the paper's T + 1), ``L``-smooth, above ``eps`` to the end.

    Examples
    --------
    >>> f = zero_chain(6, 10, L=4.0, eps=0.01)
    >>> f.shape, float(f.L.max().round(12)), f.split.mean(axis=0).tolist() == [1.0] * 10
    ((10,), 4.0, True)
    """
    return ZeroChain(split=SPLITS[split](n, d)).scaled(L=L, eps=eps)


def as_printed(n: int, d: int, *, L: float = 1.0, eps: float = 1.0) -> ZeroChain:
    r"""Return the printed construction, :math:`f_i(x) = \frac{2\pi\epsilon}L h_i(\frac{xL}{\pi\sqrt{2\epsilon}})`."""
    return ZeroChain(split=printed(n, d), height=2.0 * math.pi * eps / L, width=math.pi * math.sqrt(2.0 * eps) / L)


# Methods.


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
    receivers: ClassVar[frozenset[str]] = frozenset({"active"})

    solver: None = None
    steps: tuple[int, ...] = (3,)
    length: float = 1.0
    memory: int = 20
    seed: int = 0

    def suggested(self, objective: Objective) -> Self:
        """Leave nothing open."""
        return self

    def init(self, theta0: Array, copies: Array) -> tuple[Server, Array, Client]:
        """Start from the first model, which all clients know."""
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
class CentralisedFedAvg(FedAvg):
    """FedAvg whose clients take gradients of ``E`` itself, and so descend on it between two communications."""

    def local_objective(self, objective: Objective) -> Any:
        """Put ``E`` where each client's own function belongs."""
        return MeanOfClients(objective)


@dataclass(frozen=True)
class MeanOfClients(ObjectiveWrapper):
    """An objective in which every client has the value of ``E``, and the mean of all clients' gradients."""

    objective: Any

    def select(self, ids: Any) -> MeanOfClients:
        """Return all clients: they are never apart."""
        return self

    def value_and_gradient(self, theta: Array) -> tuple[Array, Array]:
        """Return the means of both over the clients, for each client."""
        value, gradient = self.objective.value_and_gradient(theta)
        return np.full_like(value, np.mean(value)), np.broadcast_to(np.mean(gradient, axis=0), gradient.shape)


# Methods on a chain.


def on_chain(
    name: str, algorithm: Any, objective: ZeroChain, *, opens_one: bool = True, eps: float = 1.0, **more: Any
) -> Case:
    """Return a method on a zero chain, for as many communications as it has couplings.

    Parameters
    ----------
    name : str
        For tables.
    algorithm : Algorithm
        The method.
    objective : ZeroChain
        The chain.
    opens_one : bool, default True
        Whether all clients take part and go along their gradients, so that each communication does open an entry.
    eps : float, default 1
        The accuracy for which the chain is scaled.
    **more
        Further attributes of the case.

    Examples
    --------
    >>> [reach(s.server.theta) for s in on_chain("random", LinearSpan(), zero_chain(6, 4)).snapshots()]
    [1, 2, 3, 4]
    """
    known = {"opens_one": opens_one, "eps": eps}
    rounds = objective.shape[0]
    return Case(
        **{"name": name, "algorithm": algorithm, "objective": objective, "rounds": rounds, "silent": False, **more},
        known=known,
    )


def races(n: int = 6, d: int = 12, *, split: str = "thirds") -> Iterator[Case]:
    """Yield methods with gradient steps that all clients share, then others."""
    f = zero_chain(n, d, split=split)
    step, weight, stop = 1.0 / float(f.L.max()), WEAK * float(f.L.max()), Steps(steps=STEPS)
    same, own, rarely, some = Gradient(step=step), Gradient(), 1.0 / STEPS, UniformSubset(size=n // 2)

    yield on_chain("FedAvg", FedAvg(solver=same, stop=stop), f)
    yield on_chain("SCAFFOLD", Scaffold(solver=same, stop=stop), f)
    yield on_chain(
        "Scaffnew",
        Scaffnew(probability=rarely, solver=same),
        f,
        participation=CommunicateWithProbability(probability=rarely),
    )
    yield on_chain("FedPD", FedPD(eta=1.0 / weight, solver=own, stop=stop), f)
    yield on_chain("FedDyn", FedDyn(alpha=weight, solver=own, stop=stop), f)
    yield on_chain("FedProx", FedProx(mu_prox=weight, solver=own, stop=stop), f)
    yield on_chain("FedAvg, long steps", FedAvg(solver=Gradient(step=LONG * step), stop=stop), f)
    yield on_chain("FedAvg, L-BFGS", FedAvg(solver=LBFGS(), stop=Steps(steps=3)), f)
    yield on_chain("FedAvg, one step", FedAvg(solver=same, stop=Steps(steps=1)), f, opens_one=False)
    yield on_chain("FedADMM, half", FedADMM(rho=weight, solver=own, stop=stop), f, participation=some, opens_one=False)
    yield on_chain("A-FedPD, half", AFedPD(rho=weight, solver=own, stop=stop), f, participation=some, opens_one=False)
    yield on_chain("linear span", LinearSpan(steps=(1, 4), length=STEPS * step), f, opens_one=False)
