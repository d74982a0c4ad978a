"""What a server asks of the hosts that hold the clients, and what they answer.

A host holds a block of clients: their data and all their states. The server holds the model and never sees data. All
that travels are the NamedTuples of this module, and in them plain numbers, text, None, arrays, and trees (tuples and
NamedTuples of all these): they can be written as a header in JSON with raw arrays behind it, and read by looking up
names among known fields. ``dualopt.arrays.codec`` does this.

**A round has two phases.** On `Propose` a host computes the new states of its active clients, and their uploads, but
keeps its old states. On `Commit`, which says whose uploads the server has counted, it makes those of them its states,
and its clients get the new message. A client whose upload was not counted thus goes on as if it had been absent.

**Requests may be sent again.** All of them name the run and the round. A host that has done what it is asked answers
the same once more, and what arrives late changes nothing. A host can go back by one round: a server that was killed
before it had kept the round says so with `Start`. The first request of round ``n + 1`` says that round ``n`` is kept.
Whatever else does not follow a host's state it refuses, and stays what it was.

**Numbers of clients** are those in the whole federation, 0 to N - 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from dualopt.arrays.xp import Array

__all__ = [
    "ANSWERS",
    "Align",
    "Aligned",
    "ClientInfo",
    "Commit",
    "Committed",
    "Describe",
    "Engine",
    "Evaluate",
    "Evaluated",
    "Failed",
    "Information",
    "InformationFound",
    "Initial",
    "Model",
    "PartialSums",
    "Prepare",
    "Propose",
    "Restore",
    "Start",
    "Started",
    "States",
    "StatesFound",
    "Summary",
    "Uploaded",
    "Value",
    "Valued",
]


class Describe(NamedTuple):
    """Ask what a host's clients are; answered by `ClientInfo`."""


class ClientInfo(NamedTuple):
    """What the server knows of the ``n`` clients of a host before the first round; the rows of arrays are clients."""

    clients: tuple[int, ...] | None  # their numbers; None: the server numbers them in the order of the hosts
    n_clients: int  # n
    mu: Array  # (n,)  strong convexity constants, in all but a free intercept
    free_intercept: bool  # whether models have one
    shift_invariant: bool  # whether only the differences of those of several outputs count
    mu_rounding: Array  # (n,)  what is to be taken off them for proven ones
    L: Array  # (n,)  smoothness constants
    nonnegative: bool  # whether no value is below 0
    kink_at_label: bool  # whether losses have one kink, by which solvers are chosen
    weights: tuple[float, ...] | None  # in the mean of all clients; None: 1 each
    zero: Array  # the zero model: its shape, type and array library are those of the data
    offers: tuple[str, ...]  # what the objective has beside the common members
    gradient_cost: float
    usual_weight: float | None  # a proximal weight that is known to suit
    sizes: tuple[int, ...] | None  # numbers of rows; None where there are no rows
    max_rows: int | None  # of the largest client
    n_features: int | None
    is_sparse: bool
    linear_ridge: float | None  # of a linear model; None for other objectives
    classes: str  # the labels that codes stand for, as a list in JSON; "" for none
    project: str  # what all must agree on, in the host's words; "" where nothing was agreed


KIND = (
    *("offers", "gradient_cost", "usual_weight", "n_features", "linear_ridge", "classes"),
    *("free_intercept", "shift_invariant", "nonnegative", "kink_at_label"),
)
"""What says of which kind the objective of a client is: the same for all clients."""


class Prepare(NamedTuple):
    """Ask for a summary of a site's rows, from which features are prepared before the first round.

    The questions follow from the project and from what all sites have answered before (`dualopt.federation.preparing`),
    so that they need not be sent: only what the latest answers come to. Answered by `Summary`.
    """

    project: str  # fingerprint of the project
    step: int  # how many questions have been answered
    numbers: Array | None  # what the answers to the latest come to, (K, d)
    words: str  # or that to a question of categories, in JSON; "" else


class Summary(NamedTuple):
    """What the rows of a site answer to the question that comes next; nothing when there is none any more."""

    step: int
    numbers: Array | None  # (K, d)
    words: str


class Align(NamedTuple):
    """Tell a host what its clients have in common with those of others; answered by `Aligned`."""

    max_rows: int  # of the largest client of the federation, by which solvers and bounds of rounding choose


class Aligned(NamedTuple):
    """The host takes it over."""

    max_rows: int


class Initial(NamedTuple):
    """Ask one host for the model from which runs with a seed start; answered by `Model`."""

    seed: int


class Model(NamedTuple):
    """A model."""

    theta: Array  # shape


class Start(NamedTuple):
    """Begin a run, or go on with one; answered by `Started`. A host that is in this run already changes nothing."""

    run: str  # names this run alone: another one of the same name would have another text
    rounds: int  # that the server has done: 0 at the beginning; a host that does not know the run then refuses others
    n_clients: int  # N
    clients: tuple[int, ...]  # the numbers of the host's clients
    method: str  # name and parameters, in JSON (`dualopt.spec`); in one process the method itself
    theta0: Array  # shape; None, never over a wire, where `Restore` brings the states
    max_rows: int | None  # of the largest client of the federation
    project: str  # refused where the host has another
    session: str  # names the server's process, of which another one may take a host back by one round; "": no other
    scales: tuple[float, ...] | None = None  # of the host's clients, as `dualopt.objectives.reweighted` has them
    compressor: str | None = None  # what uploads go through, like ``method``; None for nothing


class Started(NamedTuple):
    """The host is in the run."""

    run: str
    rounds: int  # that the host has settled


class Propose(NamedTuple):
    """Do the local part of round ``n``; answered by `Uploaded`. No state changes before `Commit`."""

    run: str
    n: int  # the round, from 0
    n_clients: int  # N
    seed: int  # of the run
    communicate: bool
    clients: tuple[int, ...] | None  # the active ones of this host; None for all
    made: int  # which message they start from: the number of messages made before it
    message: Any  # it, a tree; None where the host holds it
    partial_sums: bool = False  # whether to return the sum of the uploads in place of their rows
    weights: tuple[tuple[float, ...], ...] = ()  # of the clients, for each sum that is asked for; (): one plain sum


class Uploaded(NamedTuple):
    """What the ``P`` active clients of a host upload."""

    run: str
    n: int
    upload: Any  # a tree of arrays (P, ...), rows in the order of the clients, or their sums; None in a silent round
    gradients: Any  # (P,)  local gradients that were computed, an array or a tuple; None where nothing was
    vectors: int = 0  # how many vectors of a client's upload are what has arrived of compressed ones


class Commit(NamedTuple):
    """End round ``n``: make the proposed states of some clients theirs, with the message; answered by `Committed`."""

    run: str
    n: int
    communicate: bool
    clients: tuple[int, ...] | None  # those of this host whose uploads were counted; None for all that worked
    made: int  # which message the round ended with
    message: Any  # it, a tree; None where the host holds it or nobody gets it


class Committed(NamedTuple):
    """The round is over."""

    run: str
    n: int


class Value(NamedTuple):
    """Ask for ``f_j(theta)``; answered by `Valued`."""

    run: str
    n: int  # rounds done
    theta: Array  # shape


class Valued(NamedTuple):
    """Values."""

    value: Array  # (n,)


class Evaluate(NamedTuple):
    """Ask for all that a certificate of ``theta`` is made from; answered by `Evaluated`, or by `PartialSums`."""

    run: str
    n: int  # rounds done
    theta: Array  # shape; in double precision where E is strongly convex
    dual: bool  # whether to add the dual points of the latest local solutions
    partial_sums: bool = False  # whether to add over the clients of the host
    weighted: bool = False  # whether to add with their weights, as those of all clients are unequal
    max_rows: int | None = None  # of the largest client of the federation: bounds of rounding are made from it


class Evaluated(NamedTuple):
    """Values, gradients and dual points; rows are clients. The last three are None where a client has no solution."""

    value: Array  # (n,)
    gradient: Array  # (n, *shape)
    value_error: Array  # (n,)  bounds of the rounding of the values
    gradient_error: Array  # (n,)  and of the norms of that of the gradients
    dual: Array | None  # (n, *shape)  xi_j
    conjugate: Array | None  # (n,)  upper bounds of g_j*(xi_j)
    dual_error: Array | None  # (n,)  how far rounding may have moved xi_j


class PartialSums(NamedTuple):
    """The sums over the clients of a host of all that enters a certificate; all of it enters as means."""

    columns: Array  # (9,), or (5,) without dual points: see `dualopt.runs.certificates`
    gradient: Array  # shape
    dual: Array | None  # shape


class Information(NamedTuple):
    """Ask for what standard errors at a model are made from; answered by `InformationFound`."""

    run: str
    n: int  # rounds done
    theta: Array  # shape


class InformationFound(NamedTuple):
    """Gradients, Hessians and sums, as `dualopt.objectives._information` has them; rows are clients."""

    gradient: Array  # (n, *shape)
    hessian: Array  # (D, D)  the sum over the clients, with their weights
    penalty: Array  # shape
    sums: Array  # (n, 8)


class States(NamedTuple):
    """Ask for the states of the clients after ``n`` rounds; answered by `StatesFound`.

    They are asked for where somebody looks at them (``snapshot.clients``), and for the checkpoints of runs whose hosts
    live and die with the server.
    """

    run: str
    n: int


class StatesFound(NamedTuple):
    """States of the clients and of their solvers, and the latest local models; rows are clients."""

    clients: Any
    solver: Any
    local_models: Array | None  # (P, *shape) of the clients that were active in the latest round; None if nobody was
    latest: Any  # the latest local solutions, as `dualopt.runs.certificates.LatestSolutions` keeps them
    memory: Any = ()  # what the clients remember of compressed uploads


class Restore(NamedTuple):
    """Go on from states that the server has kept, right after `Start`; answered by `Committed`."""

    run: str
    n: int  # the last round that they have seen
    clients: Any  # rows are the host's clients, here and below
    solver: Any
    latest: Any
    memory: Any = ()


class Failed(NamedTuple):
    """In place of the answers: the host did not do what it was asked."""

    reason: str  # one sentence, without a full stop
    final: bool = False  # whether asking again is of no use: the run ends


ANSWERS = {
    Prepare: (Summary,),
    Describe: (ClientInfo,),
    Align: (Aligned,),
    Initial: (Model,),
    Start: (Started,),
    Propose: (Uploaded,),
    Commit: (Committed,),
    Restore: (Committed,),
    Value: (Valued,),
    Evaluate: (Evaluated, PartialSums),
    Information: (InformationFound,),
    States: (StatesFound,),
}
"""The answers that a request may have."""


class Engine(Protocol):
    """How requests reach hosts.

    ``call`` returns the answers of each host, in the order of its requests. A host from which nothing came in time is
    missing in the result, or stands there with an exception or `Failed`; what arrives later is thrown away. An engine
    may send requests again.
    """

    hosts: Sequence[Any]
    """What the hosts are called. Hosts that do not know the numbers of their clients have them in this order."""

    in_process: bool
    """Whether the hosts live and die with the server and calls cost little, as in one process and over MPI. Energies
    are then measured in every round, rounds are settled at once, and checkpoints hold the states of the clients. Other
    hosts keep their states in files of their own, are told how a round ended with their next request, and are asked for
    energies in certified rounds only."""

    partial_sums: bool
    """Whether hosts return sums over their clients ("fast") in place of rows, which are then added in the order of the
    hosts; another grouping rounds differently. An engine may add up the uploads of several hosts itself, and return the
    sums with the first and None with the others."""

    def call(self, requests: Mapping[Any, Sequence[Any]]) -> Mapping[Any, Any]:
        """Ask all hosts that are named at once, and return what came back by host."""
        ...
