"""From options to the objective: data are read, dealt out to clients, and made an objective."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from typing import TYPE_CHECKING, Any

from dualopt.arrays._checks import require
from dualopt.arrays.communicator import ALONE, Communicator, block
from dualopt.arrays.xp import Array, array_namespace, is_sparse, to_numpy, uploader
from dualopt.losses import Loss
from dualopt.objectives import Composite, FiniteSum, NonconvexPenalty, linear_model
from dualopt.objectives._compiled import numba_version
from dualopt.objectives._weights import parse_numbers, positive
from dualopt.objectives.linear import kind_of_intercept
from dualopt.problem.data import (
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
from dualopt.problem.inputs import OffsetOrigin, parse_class_weight, require_takes, row_weights
from dualopt.problem.models import Schema
from dualopt.problem.options import (
    PLACES,
    ProblemOptions,
    check_options,
    load_options,
    network_of,
    own_model,
    rule_of_partition,
)
from dualopt.problem.problem import Problem
from dualopt.spec import Spec, built, pairs

if TYPE_CHECKING:
    from dualopt.problem.networks import Layers, Module
    from dualopt.problem.problem import Network

__all__ = ["automatic_loss", "build_problem"]

LARGE_CONDITION = 1e6  # from here on a hint says how to make it smaller


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
    model = network_of(options.model)
    if model is not None and model.losses and options.loss not in ("auto", *model.losses):
        raise ValueError(f"loss must be {' or '.join(model.losses)} for model {options.model}, not {options.loss!r}.")
    if options.loss != "auto":
        Spec.parse(options.loss, "loss").target("loss")  # before the data, which may take long to load
    options = replace(options, partition=rule_of_partition(options))
    check_options(options)
    upload = uploader(options.device) if model is None else model.uploader(options.device)
    if options.dtype == "auto":
        options = replace(options, dtype="float64" if model is None else model.dtype)
    if test and options.split is not None:
        raise ValueError("split must not be given with --test-accuracy, which needs train and test.")
    reading = load_options(options)
    with peers.together():
        data = open_source(options.data, share=peers.share, **reading)
        known = _facts(data) if peers.size > 1 else {}
    peers.agree(known)
    loss_was_chosen = options.loss == "auto" and model is None
    chosen_loss = automatic_loss(data.y) if model is None or not model.losses else model.losses[0]
    name = chosen_loss if options.loss == "auto" else options.loss
    loss = _loss(name, options.loss_param, data.y)
    if data.offset is not None:
        require_takes(loss, exposure=options.exposure is not None)
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
    offset = data.offset if data.offset is None else data.offset.astype(options.dtype)
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
    of_rows, scale = (y, counts, offset), reading["scale"]
    wanted = model is None and options.device == "cpu" and kind_of_intercept(options.intercept) != "none"
    X, of_rows, clients, scaling = rows_of_block(
        data, of_rows, chosen, clients, scale, options.dtype, peers, ones=wanted and not options.brightness
    )
    if options.brightness:
        from dualopt.problem.data.brightness import brightened  # few ask for it

        divided = scaling.how in ("none", "divide")
        require(divided, "scale must be none, auto for images, max or a number with brightness", options.scale)
        X, changed, clients = brightened(X, clients, spread=options.brightness, seed=options.seed, first=mine.start)
        of_rows = [known if known is None else known[changed] for known in of_rows]
    y, counts, offset = of_rows
    n_features = data.shape[1]
    objective, rows, network = _objective(
        options,
        model,
        weights,
        upload(X),
        upload(y),
        counts if counts is None else upload(counts),
        offset if offset is None else upload(offset),
        loss,
        [part.tolist() for part in clients],
        X.shape[1] > n_features,
        names,
        peers,
    )
    held_out = None
    if test and peers.rank == 0:
        other = load(options.data, **reading, split="test")
        classes = None if loss.labels == "real" else data.y
        held_out = upload(other.X), upload(encode_labels(other.y, loss.labels, classes=classes))
    hint = _scale_hint(rows, options.mu, peers) if network is None else {}
    spread = f"{min(sizes)} rows" if min(sizes) == max(sizes) else f"{min(sizes)} to {max(sizes)} rows"
    return Problem(
        objective=objective,
        rows=rows,
        sizes=sizes,
        network=network,
        name=data.name,
        data=f"{data.name} ({sum(sizes)} x {n_features}, {X.dtype}{_computed(X, rows, peers)}): {data.description}",
        loss=name if model is None else f"{name}, {model.words(network)}",
        loss_was_chosen=loss_was_chosen,
        partition=f"{len(sizes)} ({options.partition}), {spread} each",
        added=_added(options) | hint | ({} if options.device == "cpu" else {"device": options.device}),
        test=held_out,
        schema=Schema(
            n_features=n_features,
            feature_names=data.feature_names,
            classes=names["classes"],
            scaling=scaling,
            dtype=options.dtype,
            reading=data.reading,
            columns=data.columns,
            offset=OffsetOrigin.of(options.offset, options.exposure),
        ),
    )


def _facts(data: Source) -> dict[str, Any]:
    """Return what the processes that read parts of a data set must all find in it; a copy of a file may be old."""
    return {
        "shape of the features": data.shape,
        "names of the columns": data.feature_names and repr(data.feature_names).encode(),
        "labels": data.y,
        "clients of the rows": data.clients,
        "weights of the rows": data.sample_weight,
        "offsets of the rows": data.offset,
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


def _row_weights(options: ProblemOptions, data: Source, chosen: Array | None, y: Array, loss: Loss) -> Array | None:
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
    model: Layers | Module | None,
    weights: str | list[float],
    X: Array,
    y: Array,
    counts: Array | None,
    offset: Array | None,
    loss: Loss,
    clients: Sequence[Sequence[int]],
    ones: bool,
    names: Mapping[str, Any],
    peers: Communicator,
) -> tuple[Any, FiniteSum, Network | None]:
    """Return the objective, the rows of the clients, and the network if there is one; weights are of these clients.

    Features that end with a column of ``ones`` are of this function, and not copied.
    """
    network: Network | None = None
    if model is None:
        linear = linear_model(
            X,
            y,
            loss=loss,
            mu=options.mu,
            intercept="none" if ones else options.intercept,
            clients=clients,
            sample_weight=counts,
            offset=offset,
            client_weights=weights,
            storage=options.storage,
            precision=options.precision,
            copy=not ones,
            peers=peers,
        )
        if ones:
            linear = replace(linear, intercept=True, free_intercept=kind_of_intercept(options.intercept) == "free")
        objective: Any = replace(linear, **names)
        rows: FiniteSum = objective
        if (own := own_model(options.model)) is not None:
            objective = own.given({"objective": objective}).build("objective")
    else:
        shared = {"ridge": options.mu, "clients": clients, "client_weights": weights, "peers": peers}
        network = model.build(X, y, loss=loss, **shared)
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
    sizes = peers.largest(_column_sizes(rows)).tolist() if mu > 0 else [0.0]
    largest, smallest = max(sizes), min((size for size in sizes if size > 0), default=0.0)
    if largest <= math.sqrt(LARGE_CONDITION) * smallest:
        return {}  # before anything is asked for L, an eigenvalue of a matrix of all columns
    if not mu * LARGE_CONDITION < peers.largest(float(xp.max(rows.L))) < math.inf:
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
    bright = (
        {"brightness": f"changed at every client by {options.brightness:g} of its mean"} if options.brightness else {}
    )
    return penalty | bright | ({} if options.regulariser is None else {"regulariser": options.regulariser})
