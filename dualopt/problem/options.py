"""Data, clients, loss, penalty and regulariser under the names of the command line."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dualopt.objectives import Objective
from dualopt.objectives._weights import as_client_weights, parse_numbers
from dualopt.objectives.linear import PRECISIONS, kind_of_intercept
from dualopt.problem.data.partitions import partition_rule
from dualopt.problem.inputs import parse_class_weight, require_one_offset
from dualopt.problem.preprocessing import REFUSE, TableOptions
from dualopt.spec import Spec, built, pairs

if TYPE_CHECKING:
    from dualopt.problem.networks import Layers, Module

__all__ = [
    "MODELS",
    "OPTIONS",
    "PLACES",
    "ProblemOptions",
    "check_options",
    "load_options",
    "network_of",
    "number",
    "own_model",
    "rule_of_partition",
]

PLACES = ("data", "data_home")  # options that say where the data are, which need not be the same for all processes
COLUMNS = ("label", "client", "sample_weight", "offset", "exposure")  # of a table, which are no features


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
    offset : str, optional
        Column of a table whose numbers are added to the predictors.
    exposure : str, optional
        Column of a table whose logarithms are added to the predictors, such as days: for losses poisson and gamma.
    drop : list of str
        Column of a table that is not used, such as a number of the row; repeatable.
    data_param : list of str
        Option of the data set, such as m=5000; repeatable.
    split : str, optional
        Part of the data set: train or test.
    missing : str
        What is put in a gap of a table: refuse, or the mean or median of the column.
    categories : str
        Columns of words in a table: refuse; indicators, 0 and 1 for each word; or the words, as sex=f,m; stage=1,2.
    scale : str
        auto, none, max, unit-rows, standard, minmax, robust or a number to divide by.
    rows : int, optional
        Use so many rows, drawn at random with the seed.
    dtype : str
        float64 or float32; auto: float32 for modules of PyTorch, else float64.
    precision : str
        Of the local work: double; or mixed, where solvers work in single precision on data of float64 where they can,
        and models, states and certificates are in double precision.
    storage : str
        How features are kept: sparse, dense, or auto for the faster where the data are sparse.
    device : str
        Where rows and models are: cpu, or cuda for a GPU (needs CuPy, or PyTorch for its modules). Everything random is
        drawn on the CPU.
    clients : int
        Number of clients.
    partition : str
        How rows are dealt out (see: dualopt list partitions), or FILE.py:NAME; auto: natural with --client, else iid.
    alpha : float
        Concentration of the Dirichlet partitions.
    sigma : float, optional
        Spread of the log-normal sizes; default: 1, and 0 with dirichlet-clients.
    brightness : float
        Deviation of random changes of a client's images, of their brightness and of one colour channel, in units of
        their average brightness; 0: none.
    client_weights : str
        Weights of the clients in the mean: equal, rows (each row counts alike), or numbers such as 3,1,2.
    class_weight : str, optional
        What rows count by their label: balanced (each class alike), or numbers such as yes=3,no=1.
    loss : str
        A loss, such as huber or huber:delta=0.5 (see: dualopt list losses); auto lets the labels decide.
    loss_param : list of str
        Parameter of the loss, such as delta=0.5; repeatable.
    model : str
        linear; mlp=200,100 for a network with hidden layers of these widths; cnn or lenet (need PyTorch); or
        FILE.py:NAME, a module of PyTorch, or clients of yours made of the linear ones.
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
    offset: str | None = None
    exposure: str | None = None
    drop: list[str] = field(default_factory=list)
    data_param: list[str] = field(default_factory=list)
    split: str | None = None
    missing: str = "refuse"
    categories: str = "refuse"
    scale: str = "auto"
    rows: int | None = None
    dtype: str = "auto"
    precision: str = "double"
    storage: str = "auto"
    device: str = "cpu"
    clients: int = 8
    partition: str = "auto"
    alpha: float = 0.3
    sigma: float | None = None
    brightness: float = 0.0
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


def check_options(options: ProblemOptions) -> None:
    """Refuse options that are wrong whatever the data are, before data are loaded."""
    for name, value in (("clients", options.clients), ("rows", options.rows)):
        if value is not None and value < 1:
            limits = "between 1 and the number of rows" if name == "clients" else "at least 1"
            raise ValueError(f"{name} must be {limits}, not {value}.")
    if options.seed < 0:
        raise ValueError(f"seed must be at least 0, got {options.seed}.")
    kind_of_intercept(options.intercept)
    parse_class_weight(options.class_weight)
    require_one_offset(options.offset, options.exposure)
    of_linear = ("class_weight", "sample_weight", "offset", "exposure")
    if any(getattr(options, name) for name in of_linear) and network_of(options.model) is not None:
        raise ValueError(f"{', '.join(of_linear[:-1])} and exposure are for linear models, not for {options.model!r}.")
    if options.dtype not in (words := ("auto", "float64", "float32")):
        raise ValueError(f"dtype must be one of {', '.join(words)}; not {options.dtype!r}.")
    if options.precision not in PRECISIONS:
        raise ValueError(f"precision must be one of {', '.join(PRECISIONS)}; not {options.precision!r}.")
    if options.precision != "double" and (network_of(options.model) is not None or options.penalty):
        raise ValueError("precision must be double for networks and with a penalty, whose local work is in one type.")
    for name, value in (("mu", options.mu), ("sigma", options.sigma), ("brightness", options.brightness)):
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


def rule_of_partition(options: ProblemOptions) -> str:
    """Return the rule that deals out the rows: the clients that a column names, unless there is none."""
    if options.client is None:
        return "iid" if options.partition == "auto" else options.partition
    if options.partition not in ("auto", "natural"):
        raise ValueError(f"partition must be natural where client names a column, not {options.partition!r}.")
    return "natural"


def network_of(text: str) -> Layers | Module | None:
    """Return the network that a model is (:func:`dualopt.problem.networks.network_of`); None for a linear one."""
    if text == "linear":
        return None
    from dualopt.problem.networks import network_of as found  # few ask for it

    return found(text)


def own_model(text: str) -> Spec | None:
    """Return the plug-in that makes clients of the linear ones; None for a model of this package, and for networks."""
    if text == "linear" or network_of(text) is not None:
        return None
    spec = Spec.parse(text, "objective")
    if "objective" not in {f.name for f in fields(spec.target("objective"))}:
        raise ValueError(f"model {spec.name!r} must have a field objective, for the linear clients that it is made of.")
    return spec


def load_options(options: ProblemOptions) -> dict[str, Any]:
    """Return the arguments of ``dualopt.problem.data.load``, the options of the data set among them."""
    own = {name: number(text) for name, text in pairs(options.data_param, "data_param").items()}
    of_tables = {*COLUMNS, "drop", "missing", "categories"}
    for name in sorted({"name", "data_home", "scale", "dtype", "seed", *of_tables} & set(own)):
        raise ValueError(f"data_param must not be {name}, which has an option of its own.")
    columns = {name: getattr(options, name) for name in ("split", *COLUMNS)}
    own |= {name: given for name, given in columns.items() if given is not None}
    if options.drop:
        own["drop"] = tuple(options.drop)
    rules = {"missing": options.missing, "categories": options.categories}
    TableOptions(**rules)
    own |= {name: rule for name, rule in rules.items() if rule != REFUSE}
    scale = number(options.scale)
    return {"data_home": options.data_home, "scale": scale, "dtype": options.dtype, "seed": options.seed} | own


def number(text: str) -> Any:
    """Return the number that a text is, or the text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
