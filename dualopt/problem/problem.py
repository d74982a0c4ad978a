"""A problem: an objective with the rows of its clients, and what is known of both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dualopt.arrays.communicator import Communicator
from dualopt.arrays.xp import Array, array_namespace, is_sparse
from dualopt.losses._offset import label_and_offset
from dualopt.objectives import FiniteSum
from dualopt.objectives._products import predictors
from dualopt.problem.models import Model, Schema
from dualopt.runs.trace import Trace

if TYPE_CHECKING:
    from dualopt.objectives import MLP, TorchModule

    Network = MLP | TorchModule

__all__ = ["Problem"]


@dataclass(frozen=True, kw_only=True)
class Problem:
    r"""An objective, the rows of its clients, and their descriptions.

    Attributes
    ----------
    objective : Objective
        The clients' :math:`f_1, \dots, f_N`, with penalty and regulariser.
    rows : FiniteSum
        The rows of the clients: of the linear model, or under the network.
    sizes : tuple of int
        How many rows each client has.
    network : MLP or TorchModule, optional
        The network, of a model that is not linear.
    name : str
        Name of the data.
    data, loss, partition : str
        Descriptions of the data, the loss and the clients.
    loss_was_chosen : bool
        Whether the loss was chosen for the labels, not by the user.
    added : dict of str to str
        Descriptions of what is added to the losses, ``penalty`` and ``regulariser``, and the ``device`` if not the CPU.
    test : tuple of two arrays, optional
        Rows, shape ``(m, p)``, and labels, shape ``(m,)``, that no client has.
    schema : Schema
        What rows are: names of columns, scaling, classes.
    sha256 : str, optional
        Hash of the data of all clients, where ``rows`` are those of this process alone.
    ask : callable, optional
        ``ask(name, argument)`` then returns what all processes compute together: "right", the number of rows whose
        label a model predicts, and "minimiser".

    Examples
    --------
    >>> from dualopt.problem.build import build_problem
    >>> problem = build_problem("problem: digits, rows=200, clients=4")
    >>> problem.objective.n_clients, problem.loss, problem.partition
    (4, 'multinomial', '4 (iid), 50 rows each')
    >>> problem.training_accuracy(problem.objective.zeros()) < 0.2
    True
    """

    objective: Any
    rows: FiniteSum
    sizes: tuple[int, ...]
    network: Network | None
    name: str
    data: str
    loss: str
    loss_was_chosen: bool
    partition: str
    added: Mapping[str, str]
    test: tuple[Array, Array] | None
    schema: Schema
    sha256: str | None = None
    ask: Callable[[str, Any], Any] | None = None

    @property
    def condition(self) -> float:
        """Return ``kappa = max L / min mu``, infinite for a nonsmooth loss or ``mu = 0``."""
        xp = array_namespace(self.objective.mu)
        mu = float(xp.min(self.objective.mu))
        return float(xp.max(self.objective.L)) / mu if mu > 0 else float("inf")

    @property
    def is_convex(self) -> bool:
        """Whether the constants prove that E is convex."""
        return self._total_mu >= 0

    @property
    def quality(self) -> str:
        """Name of the column that tells how good a model is: the gradient where E is not strongly convex."""
        return "certified_error" if self._total_mu > 0 else "gradient_norm"

    @property
    def _total_mu(self) -> float:
        mu = self.objective.partial_mu
        return float(array_namespace(mu).sum(mu))

    def minimum(self) -> tuple[float, float]:
        """Return ``E*``, by Newton's method to high accuracy, and its certified gap; 0 where it cannot be told from 0.

        Raises
        ------
        ValueError
            If the minimum cannot be certified.
        """
        from dualopt.runs.reference import NotOptimalError, checked, solve  # few ask for it

        try:
            together = None if self.ask is None else self.ask("minimiser", None)
            found = solve(self.objective) if together is None else checked(self.objective, *together)
        except NotOptimalError as error:
            raise ValueError(f"reference cannot be computed: {error}") from error
        return found.energy if found.is_positive else 0.0, found.gap

    def minimiser(self, peers: Communicator) -> tuple[Array, float]:
        """Return the minimiser of ``E`` and the norm of the gradient at zero, which all processes compute together.

        Raises
        ------
        ValueError
            If the loss or the regulariser has kinks.
        """
        from dualopt.runs.reference import is_smooth, minimiser

        if not is_smooth(self.objective):
            raise ValueError("reference needs a smooth loss and a smooth regulariser where clients are elsewhere.")
        return minimiser(self.objective, peers=peers)

    def model(self, trace: Trace, record: Mapping[str, Any]) -> Model:
        """Return the model of a run, for rows that come later.

        Parameters
        ----------
        trace : Trace
            The run.
        record : dict
            What else is to be known of it.

        Raises
        ------
        ValueError
            If the model is not one that predicts, such as that of a plug-in with parameters of its own.
        """
        return Model.of(self.objective, trace, rows=self.rows, schema=self.schema, record=record)

    def training_accuracy(self, theta: Array) -> float | None:
        """Return the fraction of the clients' rows whose label the model predicts, or None for real labels.

        Parameters
        ----------
        theta : array, shape ``shape``
            The model.
        """
        if self.rows.loss.labels == "real":
            return None
        return self.count_right(theta) / sum(self.sizes)

    def count_right(self, theta: Array) -> int:
        """Return how many of the rows of all clients have the label that the model predicts."""
        return self.count_right_here(theta) if self.ask is None else self.ask("right", theta)

    def count_right_here(self, theta: Array) -> int:
        """Return the same of the rows that are in this process."""
        return sum(self._count_right(theta, X, y) for X, y, _ in self.rows.client_rows())

    def accuracy(self, theta: Array, X: Array, y: Array) -> float:
        """Return the fraction of other rows whose label the model predicts.

        Parameters
        ----------
        theta : array, shape ``shape``
            The model.
        X : array or sparse matrix, shape (m, p)
            Rows, without the column of ones.
        y : array, shape (m,)
            Their labels, encoded like those of the clients.
        """
        if is_sparse(X):
            own = theta[..., : X.shape[1]]
            constant = 0.0 if X.shape[1] == self.rows.n_features else theta[..., -1:]
            return self._hits(predictors(X, own) + constant, y) / X.shape[0]
        if X.shape[1] < self.rows.n_features:
            xp = array_namespace(X)
            X = xp.concat([X, xp.ones_like(X[:, :1])], axis=1)
        return self._count_right(theta, X, y) / X.shape[0]

    def _count_right(self, theta: Array, X: Array, y: Array) -> int:
        if self.network is None:
            return self._hits(predictors(X, theta), y)
        xp = array_namespace(theta)
        return int(xp.sum(xp.astype(self.network.predict(theta, X) == xp.astype(y, xp.int64), xp.int64)))

    def _hits(self, z: Array, y: Array) -> int:
        """Count the rows whose label has the largest predictor, or its sign."""
        xp, (y, offset) = array_namespace(z), label_and_offset(y)
        z = z + offset
        multiclass = self.rows.loss.labels == "class"
        hits = xp.argmax(z, axis=0) == xp.astype(y, xp.int64) if multiclass else z * y > 0
        return int(xp.sum(xp.astype(hits, xp.int64)))
