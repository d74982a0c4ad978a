"""From options to the objective: data, clients, loss, penalty and regulariser, under the names of the command line."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from dualopt.arrays.communicator import ALONE, Communicator, block
from dualopt.arrays.xp import Array, array_namespace, is_sparse, to_numpy, uploader
from dualopt.losses import Loss
from dualopt.objectives import MLP, Composite, FiniteSum, NonconvexPenalty, Objective, linear_model, mlp
from dualopt.objectives._compiled import numba_version
from dualopt.objectives._weights import as_client_weights, parse_numbers, positive
from dualopt.objectives.linear import kind_of_intercept
from dualopt.objectives.rows import predictors
from dualopt.problem.data import (
    Dataset,
    class_count,
    class_names,
    encode_labels,
    load,
    natural,
    partition,
    subsample,
)
from dualopt.problem.data._blocks import rows_of_block
from dualopt.problem.data._registry import open_source
from dualopt.problem.data._source import Source
from dualopt.problem.data.partitions import partition_rule
from dualopt.problem.inputs import parse_class_weight, row_weights
from dualopt.problem.models import Model, Schema
from dualopt.runs.trace import Trace
from dualopt.spec import Spec, built, pairs
from dualopt.spec.plugins import entry_points, is_spelled

__all__ = ["MODELS", "OPTIONS", "PLACES", "Problem", "ProblemOptions", "automatic_loss", "build_problem"]

LARGE_CONDITION = 1e6  # from here on a hint says how to make it smaller
PLACES = ("data", "data_home")  # options that say where the data are, which need not be the same for all processes
MOST_WIDTH = 10**6  # units of a layer: beyond, no memory holds the weights


@dataclass(frozen=True, kw_only=True)
class ProblemOptions:
    """Data, clients and loss.

    Parameters
    ----------
    data : str
        Name of a data set (see: dualopt list data) or path of a file.
    data_home : Path, optional
        Folder that holds your data sets.
    label : str, optional
        Column of the labels of a table (csv, parquet).
    client : str, optional
        Column of a table that says whose a row is: the clients.
    sample_weight : str, optional
        Column of a table that says what a row counts among those of its client.
    data_param : list of str
        Option of the data set, such as m=5000; repeatable.
    split : str, optional
        Part of the data set: train or test.
    scale : str
        auto, none, max, unit-rows, standard or a number to divide by.
    rows : int, optional
        Use so many rows, drawn at random with the seed.
    dtype : str
        float64 or float32.
    storage : str
        How features are kept: sparse, dense, or auto for the faster where the data are sparse.
    device : str
        Where rows and models are: cpu, or cuda for a GPU (needs CuPy). Everything random is drawn on the CPU.
    clients : int
        Number of clients.
    partition : str
        How rows are dealt out (see: dualopt list partitions), or FILE.py:NAME; auto: natural with --client, else iid.
    alpha : float
        Concentration of the Dirichlet partitions.
    sigma : float, optional
        Spread of the log-normal sizes; default: 1, and 0 with dirichlet-clients.
    client_weights : str
        Weights of the clients in the mean: equal, rows (each row counts alike), or numbers such as 3,1,2.
    class_weight : str, optional
        What rows count by their label: balanced (each class alike), or numbers such as yes=3,no=1.
    loss : str
        A loss, such as huber or huber:delta=0.5 (see: dualopt list losses); auto lets the labels decide.
    loss_param : list of str
        Parameter of the loss, such as delta=0.5; repeatable.
    model : str
        linear; mlp=200,100 for a network with hidden layers of these widths; or FILE.py:NAME, clients of yours made
        of the linear ones.
    mu : float
        Weight of the ridge.
    penalty : float
        Height of a bounded nonconvex penalty of every weight; 0: none.
    regulariser : str, optional
        Regulariser, such as l1=0.01, for methods that take one.
    intercept : str
        A column of ones: penalised, its weights are in the ridge like the others; free, they are not; or none.
    seed : int
        Seed of everything random.

    Examples
    --------
    >>> options = ProblemOptions(data="digits", clients=4, partition="by-label")
    >>> options.mu, options.loss
    (0.01, 'auto')
    """

    data: str = "digits"
    data_home: Path | None = None
    label: str | None = None
    client: str | None = None
    sample_weight: str | None = None
    data_param: list[str] = field(default_factory=list)
    split: str | None = None
    scale: str = "auto"
    rows: int | None = None
    dtype: str = "float64"
    storage: str = "auto"
    device: str = "cpu"
    clients: int = 8
    partition: str = "auto"
    alpha: float = 0.3
    sigma: float | None = None
    client_weights: str = "equal"
    class_weight: str | None = None
    loss: str = "auto"
    loss_param: list[str] = field(default_factory=list)
    model: str = "linear"
    mu: float = 1e-2
    penalty: float = 0.0
    regulariser: str | None = None
    intercept: str = "penalised"
    seed: int = 0


OPTIONS = {"problem": ProblemOptions}
"""Problems by name, for text such as ``problem: digits, clients=4`` (:mod:`dualopt.spec`)."""

MODELS: dict[str, type[Objective]] = {}
"""Objectives that ``model`` takes by name, beside those of its own: only plug-ins."""


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
    network : MLP, optional
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
    >>> problem = build_problem(ProblemOptions(data="digits", rows=200, clients=4))
    >>> problem.objective.n_clients, problem.loss, problem.partition
    (4, 'multinomial', '4 (iid), 50 rows each')
    >>> problem.training_accuracy(problem.objective.zeros()) < 0.2
    True
    """

    objective: Any
    rows: FiniteSum
    sizes: tuple[int, ...]
    network: MLP | None
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
        xp = array_namespace(theta)
        if self.network is not None:
            hits = self.network.predict(theta, X) == xp.astype(y, xp.int64)
        else:
            return self._hits(predictors(X, theta) if is_sparse(X) else xp.matmul(theta, xp.matrix_transpose(X)), y)
        return int(xp.sum(xp.astype(hits, xp.int64)))

    def _hits(self, z: Array, y: Array) -> int:
        """Count the rows whose label has the largest predictor, or its sign."""
        xp = array_namespace(z)
        multiclass = self.rows.loss.labels == "class"
        hits = xp.argmax(z, axis=0) == xp.astype(y, xp.int64) if multiclass else z * y > 0
        return int(xp.sum(xp.astype(hits, xp.int64)))


def build_problem(options: ProblemOptions | str, *, test: bool = False, peers: Communicator = ALONE) -> Problem:
    """Load the data, deal it out to the clients, and build the objective.

    Parameters
    ----------
    options : ProblemOptions or str
        What is asked for, also as text, such as ``"problem: digits, clients=4"``.
    test : bool, default False
        Whether to load the test part of the data set as well.
    peers : Communicator, optional
        Processes that all build the same problem and read the rows of some clients each: objective and rows are then
        those of a block of clients (`dualopt.arrays.communicator.block`), and all else is of the whole problem.

    Raises
    ------
    ValueError
        If an option is wrong; the sentence names it.
    OSError
        If a file cannot be read.
    ModuleNotFoundError
        If a data set needs a package that is missing.

    Examples
    --------
    >>> options = ProblemOptions(data="synthetic-regression", data_param=["m=60", "d=4"], clients=3, loss="huber")
    >>> build_problem(options).objective.shape
    (5,)
    """
    options = built(options, "problem")
    if not isinstance(options, ProblemOptions):
        raise ValueError(f"options must be ProblemOptions or text such as 'problem: digits', not {options!r}.")
    peers.agree({name: value for name, value in asdict(options).items() if name not in PLACES})
    layers = _hidden_layers(options.model)
    if layers is not None and options.loss not in ("auto", "multinomial"):
        raise ValueError(f"loss must be multinomial for model mlp, not {options.loss!r}.")
    if options.loss != "auto":
        Spec.parse(options.loss, "loss").target("loss")  # before the data, which may take long to load
    options = replace(options, partition=_partition_rule(options))
    _check_options(options)
    upload = uploader(options.device)
    if test and options.split is not None:
        raise ValueError("split must not be given with --test-accuracy, which needs train and test.")
    load_options = _load_options(options)
    with peers.together():
        data = _opened(options, load_options, peers)
        known = _facts(data) if isinstance(data, Source) else {}
    peers.agree(known)
    loss_was_chosen = options.loss == "auto" and layers is None
    name = automatic_loss(data.y) if loss_was_chosen else "multinomial" if layers is not None else options.loss
    loss = _loss(name, options.loss_param, data.y)
    y = encode_labels(data.y, loss.labels)  # before rows are drawn: a part is encoded like the whole
    y = y if loss.labels == "class" else y.astype(options.dtype)
    chosen, labels, owners = None, data.y, data.clients
    if options.rows is not None:
        chosen = subsample(labels, options.rows, options.seed)
        labels, owners = labels[chosen], None if owners is None else owners[chosen]
    clients = partition(
        options.partition,
        labels,
        _client_number(options, len(labels), data.clients, owners),
        alpha=options.alpha,
        sigma=options.sigma,
        seed=options.seed,
        clients=owners,
    )
    counts = _row_weights(options, data, chosen, y, loss)
    sizes = tuple(map(len, clients))
    mine = block(len(clients), peers)
    weights = parse_numbers(options.client_weights)
    if isinstance(weights, list):
        positive("client_weights", weights, len(clients))
        weights = weights[mine.start : mine.stop]
    client_names = data.client_names if options.partition == "natural" else None
    names = {
        "classes": class_names(data.y, loss.labels),
        "feature_names": data.feature_names,
        "client_names": None if client_names is None else client_names[mine.start : mine.stop],
    }
    if isinstance(data, Dataset):
        X = data.X if chosen is None else data.X[chosen]
        scaling = data.scaling
        y, counts = (x if x is None or chosen is None else x[chosen] for x in (y, counts))
    else:
        of_rows, scale = (y, counts), load_options["scale"]
        X, (y, counts), clients, scaling = rows_of_block(data, of_rows, chosen, clients, scale, options.dtype, peers)
    objective, rows, network = _objective(
        options,
        layers,
        weights,
        upload(X),
        upload(y),
        counts if counts is None else upload(counts),
        loss,
        [part.tolist() for part in clients],
        names,
        peers,
    )
    held_out = None
    if test and peers.rank == 0:
        other = load(options.data, **load_options, split="test")
        classes = None if loss.labels == "real" else data.y
        held_out = upload(other.X), upload(encode_labels(other.y, loss.labels, classes=classes))
    hint = _scale_hint(rows, options.mu, peers) if layers is None else {}
    spread = f"{min(sizes)} rows" if min(sizes) == max(sizes) else f"{min(sizes)} to {max(sizes)} rows"
    return Problem(
        objective=objective,
        rows=rows,
        sizes=sizes,
        network=network,
        name=data.name,
        data=f"{data.name} ({sum(sizes)} x {X.shape[1]}, {X.dtype}{_computed(X, rows, peers)}): {data.description}",
        loss=name if layers is None else f"{name}, network {'-'.join(map(str, layers))}",
        loss_was_chosen=loss_was_chosen,
        partition=f"{len(sizes)} ({options.partition}), {spread} each",
        added=_added(options) | hint | ({} if options.device == "cpu" else {"device": options.device}),
        test=held_out,
        schema=Schema(
            n_features=X.shape[1],
            feature_names=data.feature_names,
            classes=names["classes"],
            scaling=scaling,
            dtype=options.dtype,
            reading=data.reading,
        ),
    )


def _opened(options: ProblemOptions, load_options: dict[str, Any], peers: Communicator) -> Dataset | Source:
    """Return the data, or, where several processes share them, their labels and a way to read some rows."""
    if peers.size == 1:
        return load(options.data, **load_options)
    return open_source(options.data, share=peers.share, **load_options)


def _facts(data: Source) -> dict[str, Any]:
    """Return what the processes that read parts of a data set must all find in it; a copy of a file may be old."""
    return {
        "shape of the features": data.shape,
        "names of the columns": data.feature_names and repr(data.feature_names).encode(),
        "labels": data.y,
        "clients of the rows": data.clients,
        "weights of the rows": data.sample_weight,
        "names of the clients": data.client_names and repr(data.client_names).encode(),
        **data.contents(),
    }


def _computed(X: Any, rows: FiniteSum, peers: Communicator) -> str:
    """Describe how sparse features are stored and whether products are compiled; "" for dense ones that are not."""
    words = ""
    if is_sparse(X):
        chosen = "sparse" if rows.rows.is_sparse else "stored dense"
        entries, places = peers.total(X.data.shape[0]), peers.total(X.shape[0]) * X.shape[1]
        words = f", {chosen}, {100 * entries / places:.2g}% not zero"
    return words + (f", products compiled by Numba {numba_version()}" if rows.rows.is_compiled else "")


def automatic_loss(labels: Any) -> str:
    """Choose the loss that raw labels call for.

    Fractions call for ``squared``, two distinct labels for ``logistic``, other whole numbers or words for
    ``multinomial``.

    Parameters
    ----------
    labels : array, shape (m,)
        Numbers or words.

    Examples
    --------
    >>> import numpy as np
    >>> [automatic_loss(np.array(y)) for y in ([0.5, 1.0], [1, 2, 1], ["a", "b", "c"])]
    ['squared', 'logistic', 'multinomial']
    """
    if labels.dtype.kind == "f" and bool((labels % 1 != 0).any()):
        return "squared"
    return "logistic" if class_count(labels) == 2 else "multinomial"


def _load_options(options: ProblemOptions) -> dict[str, Any]:
    """Return the arguments of ``dualopt.problem.data.load``, the options of the data set among them."""
    own = {name: number(text) for name, text in pairs(options.data_param, "data_param").items()}
    for name in sorted({"name", "data_home", "scale", "dtype", "seed", "label", "client", "sample_weight"} & set(own)):
        raise ValueError(f"data_param must not be {name}, which has an option of its own.")
    columns = {name: getattr(options, name) for name in ("split", "label", "client", "sample_weight")}
    own |= {name: given for name, given in columns.items() if given is not None}
    scale = number(options.scale)
    return {"data_home": options.data_home, "scale": scale, "dtype": options.dtype, "seed": options.seed} | own


def _partition_rule(options: ProblemOptions) -> str:
    """Return the rule that deals out the rows: the clients that a column names, unless there is none."""
    if options.client is None:
        return "iid" if options.partition == "auto" else options.partition
    if options.partition not in ("auto", "natural"):
        raise ValueError(f"partition must be natural where client names a column, not {options.partition!r}.")
    return "natural"


def _client_number(options: ProblemOptions, rows: int, everyone: Any, present: Any) -> int:
    """Return how many clients there are to be: what the user says, or what the data say when they decide."""
    if options.partition != "natural" or everyone is None:
        if not 1 <= options.clients <= rows:  # the partitions call it n_clients
            raise ValueError(f"clients must be between 1 and the {rows} rows of the data, not {options.clients}.")
        return options.clients
    number, left = len(natural(everyone)), len(natural(present))
    if options.clients not in (number, ProblemOptions.clients):
        raise ValueError(f"clients must be the {number} clients of the data, not {options.clients}.")
    if left < number:
        raise ValueError(f"rows = {options.rows} leaves {number - left} of the {number} clients without rows.")
    return number


def _check_options(options: ProblemOptions) -> None:
    """Refuse options that are wrong whatever the data are, before data are loaded."""
    for name, value in (("clients", options.clients), ("rows", options.rows)):
        if value is not None and value < 1:
            limits = "between 1 and the number of rows" if name == "clients" else "at least 1"
            raise ValueError(f"{name} must be {limits}, not {value}.")
    if options.seed < 0:
        raise ValueError(f"seed must be at least 0, got {options.seed}.")
    kind_of_intercept(options.intercept)
    parse_class_weight(options.class_weight)
    if options.model.startswith("mlp") and (options.class_weight or options.sample_weight):
        raise ValueError("class_weight and sample_weight are for linear models, not for model mlp.")
    for name, value in (("mu", options.mu), ("sigma", options.sigma)):
        if value is not None and not 0 <= value < math.inf:
            raise ValueError(f"{name} must be a finite number, at least 0, not {value}.")
    if not 0 < options.alpha < math.inf:
        raise ValueError(f"alpha must be positive and finite, got {options.alpha}.")
    partition_rule(options.partition)
    if options.storage not in (words := ("auto", "sparse", "dense")):
        raise ValueError(f"storage must be one of {', '.join(words)}; not {options.storage!r}.")
    as_client_weights(parse_numbers(options.client_weights))
    if options.regulariser is not None:
        built(options.regulariser, "regulariser")


def _own_model(text: str) -> Spec | None:
    """Return the plug-in that makes clients of the linear ones; None for a model of this package."""
    spec = Spec.parse(text, "objective")
    if not (is_spelled(spec.name) or spec.name in entry_points("objectives")):
        return None
    if "objective" not in {f.name for f in fields(spec.target("objective"))}:
        raise ValueError(f"model {spec.name!r} must have a field objective, for the linear clients that it is made of.")
    return spec


def _hidden_layers(text: str) -> tuple[int, ...] | None:
    """Read ``"mlp=200,100"``, the widths of the hidden layers; None for ``"linear"`` and for a plug-in."""
    if text == "linear" or _own_model(text) is not None:
        return None
    kind, _, widths = text.partition("=")
    try:
        found = tuple(int(width) for width in widths.split(","))
    except ValueError:
        found = ()
    if kind != "mlp" or not found or min(found) < 1:
        raise ValueError(
            f"model must be linear, mlp=WIDTH,WIDTH,... such as mlp=200,100, or FILE.py:NAME; not {text!r}."
        )
    if max(found) > MOST_WIDTH:
        raise ValueError(f"model must have layers of at most {MOST_WIDTH} units, not {max(found)}.")
    return found


def _loss(text: str, texts: list[str], labels: Any) -> Any:
    spec = Spec.parse(text, "loss").given(pairs(texts, "loss_param"), "loss_param")
    if "classes" in {f.name for f in fields(spec.target("loss"))} and "classes" not in spec.arguments:
        if (count := class_count(labels)) < 2:
            raise ValueError(f"loss {text} needs labels of at least two classes, but those of the data are all alike.")
        spec = spec.given({"classes": count})
    loss = spec.build("loss")
    if loss.labels == "class" and loss.outputs < (count := class_count(labels)):
        raise ValueError(f"classes of the loss must be at least the {count} classes of the data, not {loss.outputs}.")
    return loss


def _row_weights(
    options: ProblemOptions, data: Dataset | Source, chosen: Array | None, y: Array, loss: Loss
) -> Array | None:
    """Return what each row counts, of the whole data set; balanced over the rows that take part. None: all alike."""
    weights = parse_class_weight(options.class_weight)
    if weights is None and data.sample_weight is None:
        return None
    codes = (-1, 1) if loss.labels == "binary" else range(loss.outputs)
    names = class_names(data.y, loss.labels) or codes
    like = y if loss.labels != "class" else y.astype(options.dtype)
    given = data.sample_weight if data.sample_weight is None else data.sample_weight.astype(options.dtype)
    part = slice(None) if chosen is None else chosen
    found = 0.0 * like
    found[part] = row_weights(
        given if given is None else given[part],
        weights,
        y[part],
        like,
        loss,
        tuple(map(str, names)),
    )
    return found


def _objective(
    options: ProblemOptions,
    layers: tuple[int, ...] | None,
    weights: str | list[float],
    X: Array,
    y: Array,
    counts: Array | None,
    loss: Loss,
    clients: Sequence[Sequence[int]],
    names: Mapping[str, Any],
    peers: Communicator,
) -> tuple[Any, FiniteSum, MLP | None]:
    """Return the objective, the rows of the clients, and the network if there is one; weights are of these clients."""
    network: MLP | None = None
    if layers is None:
        model = linear_model(
            X,
            y,
            loss=loss,
            mu=options.mu,
            intercept=options.intercept,
            clients=clients,
            sample_weight=counts,
            client_weights=weights,
            storage=options.storage,
            peers=peers,
        )
        objective: Any = replace(model, **names)
        rows: FiniteSum = objective
        if (own := _own_model(options.model)) is not None:
            objective = own.given({"objective": objective}).build("objective")
    else:
        network = mlp(
            X,
            y,
            layers=layers,
            classes=loss.outputs,
            ridge=options.mu,
            clients=clients,
            client_weights=weights,
            peers=peers,
        )
        objective, rows = network, network
    if options.penalty:
        objective = NonconvexPenalty(objective=objective, lam=options.penalty)
    if options.regulariser is not None:
        objective = Composite(objective=objective, regulariser=options.regulariser)
    return objective, rows, network


def _scale_hint(rows: FiniteSum, mu: float, peers: Communicator) -> dict[str, str]:
    """Say that features, with the column of ones, need scaling where their sizes differ and ``kappa`` is large.

    It grows with the square of their ratio: 1e3 explains 1e6.
    """
    xp = array_namespace(rows.zeros())
    if not 0 < mu * LARGE_CONDITION < peers.largest(float(xp.max(rows.L))) < math.inf:
        return {}
    sizes = peers.largest(_column_sizes(rows)).tolist()
    largest, smallest = max(sizes), min((size for size in sizes if size > 0), default=0.0)
    if largest <= math.sqrt(LARGE_CONDITION) * smallest:
        return {}
    how = "--scale unit-rows or --scale max" if rows.rows.is_sparse else "--scale standard"
    return {"hint": f"columns have sizes from {smallest:.1g} to {largest:.1g}, which makes kappa large: try {how}"}


def _column_sizes(rows: FiniteSum) -> Array:
    """Return the largest absolute value of every column over the rows of all clients."""
    largest: Any = None
    for X, _, _ in rows.client_rows():
        if is_sparse(X):
            own = to_numpy(abs(X).max(axis=0).toarray()).reshape(-1)
        else:
            own = to_numpy(array_namespace(X).max(array_namespace(X).abs(X), axis=0))
        largest = own if largest is None else array_namespace(own).maximum(largest, own)
    return largest


def _added(options: ProblemOptions) -> dict[str, str]:
    penalty = {"penalty": f"{options.penalty:g} sum t^2/(1 + t^2), nonconvex"} if options.penalty else {}
    return penalty | ({} if options.regulariser is None else {"regulariser": options.regulariser})


def number(text: str) -> Any:
    """Return the number that a text is, or the text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
