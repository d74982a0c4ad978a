"""The base class of the algorithms: one round in client/server form."""

from __future__ import annotations

from dataclasses import Field, dataclass, fields, replace
from functools import cache
from typing import Any, ClassVar, Final, NamedTuple, Self

from dualopt.arrays._checks import Typed, declared
from dualopt.arrays.xp import Array, broadcast
from dualopt.methods._parameters import (
    USUAL,
    Checked,
    GivenSolver,
    Suggested,
    require_hessians,
    require_smooth_clients,
)
from dualopt.methods._theorem import Known, Theorem, guarantee
from dualopt.methods.compressors import Compressor, kept_part
from dualopt.methods.compressors._uplink import or_none
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import EVERYBODY, SKIPPED, Participation, Round, law_of
from dualopt.objectives import Objective
from dualopt.objectives.scales import common_scales
from dualopt.solvers import default_solver
from dualopt.solvers.lbfgs import SELDOM
from dualopt.solvers.stopping import GradientReduction, Stop

__all__ = ["AUTO", "UNKNOWN", "Algorithm", "Means", "parameters", "require_complete", "with_participation"]

AUTO: Any = None
"""Default of a parameter that ``suggested`` fills in. Its type admits no None: a method may rely on a number."""

UNKNOWN: Final = "unknown"
"""What ``fixed_point`` returns when a method does not say where it rests."""


class Means(NamedTuple):
    r"""The two means of the uploads of a cohort that a server with ``draws`` is given; one where both are the same."""

    mean: Any  # with the weights w_j
    draw: Any  # with weights proportional to w_j/pi_j, where client j is active with probability pi_j


STEPS = ("init", "local", "server", "receive", "receive_inactive", "local_objective")


@dataclass(frozen=True, kw_only=True)
class Algorithm(Typed):
    """A federated method: a subclass writes ``init``, ``local`` and ``server``, and what else applies to it.

    States are NamedTuples; ``server.theta`` is the model. Those of clients, and uploads, carry the client axis first;
    an array without it, such as a message, is broadcast by the engine where it becomes part of a client's state.
    Everything is pure: state in, state out.

    Parameters
    ----------
    solver : LocalSolver, optional
        The local solver; suggested by :func:`dualopt.solvers.default_solver`. A method that never solves declares
        ``solver: None = None``.
    stop : Stop
        When a client stops its local solver.

    Examples
    --------
    A proximal point method in which the model moves half of the way:

    >>> from typing import NamedTuple
    >>> class Server(NamedTuple):
    ...     theta: Array
    >>> @dataclass(frozen=True, kw_only=True)
    ... class Halfway(Algorithm):
    ...     weight: float = 1.0
    ...
    ...     def init(self, theta0, copies):
    ...         return Server(theta0), theta0, ()
    ...
    ...     def local(self, clients, message, oracle, round):
    ...         return clients, oracle.solve(start=message, weight=self.weight, center=message).theta
    ...
    ...     def server(self, server, mean, round):
    ...         theta = 0.5 * (server.theta + mean)
    ...         return Server(theta), theta
    >>> import numpy as np
    >>> from dualopt import Quadratic, run
    >>> f = Quadratic(A=np.ones((2, 1, 1)), b=np.array([[1.0], [3.0]]))
    >>> run(Halfway(), f, rounds=60).theta.round(6).tolist()
    [2.0]
    """

    supports: ClassVar[frozenset[str]] = frozenset()
    """Which of "partial" (participation), "unequal" (some clients more often than others), "skip" (communication) and
    "regulariser" the method admits."""

    upload_reference: ClassVar[str] = "memory"
    """What compressed uploads are measured from: "nothing", where they go to zero; the "message", where they tend to
    it; a "memory" of what arrived last, which client and server both keep: one vector more for each client, at both
    ends. Uploads that the server adds up go with "errors": what did not arrive is sent with the next one, and the
    client alone keeps it. See ``Oracle.sent``."""

    receivers: ClassVar[frozenset[str]] = frozenset()
    """Which clients receive the new message as soon as it is there: "active" and "inactive" ones of the round. A class
    that writes ``receive`` or ``receive_inactive`` has those in it, and what it inherits."""

    draws: ClassVar[bool] = False
    """Whether ``server`` is given the two ``Means`` of the uploads in place of one."""

    patience: ClassVar[int] = 0
    """For how many rounds the model may stay where it is while the method works; 10 are never called a stall."""

    needs: ClassVar[frozenset[str]] = frozenset()
    """What the clients must have, "smooth" losses or products with a "hessian": ``suggested`` refuses others."""

    theorems: ClassVar[tuple[Theorem, ...]] = ()
    """What is proved of the method, for exact local solutions."""

    without_theorem: ClassVar[str] = "no theorem of this package covers it"
    """Why there is no theorem, where none is about the method in its form."""

    solver: GivenSolver = AUTO
    stop: Stop = GradientReduction()

    def __post_init__(self) -> None:
        """Refuse parameters that do not go together; here nothing."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Take theorems back from a subclass that overrides a step and says nothing of them; complete ``receivers``."""
        super().__init_subclass__(**kwargs)
        if any(step in vars(cls) for step in STEPS):
            for name in ("theorems", "without_theorem"):
                if name not in vars(cls):
                    setattr(cls, name, getattr(Algorithm, name))
        own = {who for who, step in (("active", "receive"), ("inactive", "receive_inactive")) if step in vars(cls)}
        inherited = (getattr(base, "receivers", frozenset()) for base in cls.__bases__)
        cls.receivers = vars(cls).get("receivers", frozenset().union(*inherited)) | own

    def init(self, theta0: Array, copies: Array) -> tuple[Any, Any, Any]:
        """Return (server state, message 0, client states).

        Parameters
        ----------
        theta0 : array, shape ``shape``
            Where to start.
        copies : array, shape ``(N, *shape)``
            The same for every client.
        """
        raise NotImplementedError(f"{type(self).__name__} must define init.")

    def local(self, clients: Any, message: Any, oracle: Oracle, round: Round) -> tuple[Any, Any]:
        """Return (client states, upload) of the active clients."""
        raise NotImplementedError(f"{type(self).__name__} must define local.")

    def server(self, server: Any, mean: Any, round: Round) -> tuple[Any, Any]:
        """Return (server state, message) from the mean of the uploads over the active clients, with their weights.

        ``round.fraction * mean`` is their part of the mean over all clients. A method with ``draws`` is given
        ``Means(mean, draw)``.
        """
        raise NotImplementedError(f"{type(self).__name__} must define server.")

    def receive(self, clients: Any, message: Any) -> Any:
        """Return the states of the participants when the new message arrives."""
        return clients

    def receive_inactive(self, clients: Any, message: Any) -> Any:
        """Return the states of the others when the new message arrives."""
        return clients

    def delivered(self, server: Any, message: Any) -> Any:
        """Return the state of the server where ``message`` is what arrives of its new message, through a compressor.

        So it knows at which points gradients are, and where local problems have their centers. A method that does not
        write this method is refused a compressed way down: what it has proved or stored would be of other messages.
        """
        return server

    def local_objective(self, objective: Objective) -> Objective:
        """Return what the clients work on instead of ``objective``, such as sharpness-aware gradients."""
        return objective

    def suggested(self, objective: Objective) -> Self:
        """Return the method with every parameter left open filled in from ``mu``, ``L`` and ``N``.

        Here those whose types say what is suggested, in their order, the solver last.
        """
        if "smooth" in self.needs:
            require_smooth_clients(objective, type(self).__name__)
        if "hessian" in self.needs:
            require_hessians(objective, type(self).__name__)
        method = self
        for name in parameters(type(self)):
            for rule in reversed(declared(type(self)).get(name, ())):
                if isinstance(rule, Suggested) and rule.open(getattr(method, name)):
                    method = replace(method, **{name: rule.value(method, objective, name)})
        return method

    def suggested_scales(self, objective: Objective) -> tuple[float, ...]:
        r"""Return the scales with which ``reweighted`` clients suit the method best, up to a common factor.

        With :math:`s_j = \sqrt{L_j\mu_j}` all :math:`L_j/s_j` and :math:`\mu_j/s_j` lie in an interval whose ends have
        the ratio :math:`\max_jL_j/\mu_j`, the least that scales can do, in place of :math:`\max L_j/\min\mu_j`. Clients
        that are not smooth have :math:`\mu_j`, those that are not strongly convex :math:`L_j`.

        Raises
        ------
        ValueError
            If neither all :math:`\mu_j` nor all :math:`L_j` are positive and finite.
        """
        return common_scales(objective)

    def check_participation(self, objective: Objective, participation: Participation | None) -> None:
        """Refuse by a ValueError of one sentence cohorts with which the method has no limit; here nothing."""

    def check(self, objective: Objective) -> None:
        """Refuse by a ValueError of one sentence what an assumption excludes; here what the types of parameters say."""
        for name in parameters(type(self)):
            for rule in declared(type(self)).get(name, ()):
                if isinstance(rule, Checked):
                    rule.refuse(self, objective, name)

    def guarantee(
        self,
        objective: Objective,
        participation: Participation | None = None,
        compressor: Compressor | None = None,
    ) -> str:
        """Say what is proved for these parameters, these clients and those who take part; everybody when not given.

        And for what uploads go through, if they go through something.

        All theorems that apply, for exact local solutions; otherwise "none", and what each of them needs. A theorem
        says nothing of laws of participation that its proof does not cover. Factors are rounded up.

        Examples
        --------
        >>> import numpy as np
        >>> from dualopt import Bernoulli, FedDyn, Quadratic, UniformSubset
        >>> f = Quadratic(A=np.array([[[1.0]], [[4.0]]]), b=np.array([[1.0], [-1.0]]))
        >>> FedDyn().guarantee(f, UniformSubset(size=1))
        'Theorem A: E Psi falls by a factor of 0.700341 per round'
        >>> FedDyn().guarantee(f, Bernoulli(probability=0.5)).split("; ")[1]
        'Theorem A needs cohorts of one size, not independent activity'
        """
        packs = or_none(compressor)
        method = with_participation(self, objective, participation, packs).suggested(objective)
        return guarantee(self.theorems, method, Known.of(objective, participation, packs), self.without_theorem)

    def fixed_point(self, objective: Objective, theta: Array) -> Any:
        """Return (server state, message, client states) at ``theta``, a minimiser, that communicating rounds keep.

        None says that the minimiser is no fixed point, ``UNKNOWN`` that the method does not say.
        """
        return UNKNOWN

    def start_with(self, theta: Array, **parts: Array) -> Any:
        """Return what ``init`` says of ``theta``, with these parts, shape ``(N, *shape)``, in the clients' states.

        What ``fixed_point`` is mostly made of: only the gradients that clients remember are not zero at a minimiser.

        Examples
        --------
        >>> import numpy as np
        >>> from dualopt import FedPD
        >>> FedPD().start_with(np.zeros(1), dual=np.array([[1.0], [-1.0]]))[2].dual.tolist()
        [[1.0], [-1.0]]
        """
        shape = next(iter(parts.values())).shape
        server, message, clients = self.init(theta, broadcast(theta, shape))
        return server, message, clients._replace(**parts)


def with_participation(
    algorithm: Algorithm,
    objective: Objective,
    participation: Participation | None,
    compressor: Compressor | None = None,
) -> Algorithm:
    """Return the method with ``fraction`` and ``probability``, where it has them open, as the participation has them.

    So it is with the local solver where clients take part seldom. A compressor leaves the part 1/(1 + omega) of the
    fraction; the probability is that of a round to communicate.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt import FedDyn, Quadratic
    >>> from dualopt.methods.participation import UniformSubset
    >>> f = Quadratic(A=np.ones((4, 1, 1)), b=np.zeros((4, 1)))
    >>> with_participation(FedDyn(), f, UniformSubset(size=1)).fraction
    0.25
    """
    open_ = {name for name in parameters(type(algorithm)) if getattr(algorithm, name, None) is None}
    if not open_:
        return algorithm
    known: dict[str, Any] = {}
    law = law_of(participation, objective.n_clients)
    if "fraction" in open_ and (participation is not None or compressor is not None):
        part = kept_part(compressor, objective.shape, objective.n_clients)
        known["fraction"] = law.fraction * part or None  # nobody, ever: nothing depends on it
    if "probability" in open_ and law.name in (EVERYBODY, SKIPPED):
        known["probability"] = law.communication
    if "solver" in open_ and USUAL in declared(type(algorithm)).get("solver", ()) and 0 < law.fraction < SELDOM:
        known["solver"] = default_solver(objective, law.fraction)
    return replace(algorithm, **known) if known else algorithm


def parameters(kind: type[Algorithm]) -> dict[str, Field[Any]]:
    """Return the fields that a caller may give by name, those of the method first, its solver and rule last.

    Examples
    --------
    >>> list(parameters(Algorithm))
    ['solver', 'stop']
    """
    given = {f.name: f for f in fields(kind) if f.init}
    local = {name: given.pop(name) for name in ("solver", "stop") if name in given}
    return given | local


@cache
def _needed(kind: type[Algorithm]) -> tuple[str, ...]:
    """Return the fields whose type does not admit None."""
    return tuple(f.name for f in fields(kind) if "None" not in str(f.type) and "Optional" not in str(f.type))


def require_complete(algorithm: Algorithm) -> None:
    """Refuse a method with a parameter that is still open."""
    for name in _needed(type(algorithm)):
        if getattr(algorithm, name) is None:
            raise ValueError(f"{name} must be given, or filled in by suggested(objective): it is open.")
