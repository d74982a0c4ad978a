"""The options of a new federation, and the project that they describe."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dualopt.app.cli.options import MethodOptions
from dualopt.arrays._checks import require
from dualopt.federation import Project
from dualopt.problem.build import automatic_loss
from dualopt.problem.data import load
from dualopt.problem.preprocessing import REFUSE
from dualopt.spec import Spec, pairs

__all__ = ["ProjectOptions", "RunOptions", "ServerOptions", "described_project"]


@dataclass(frozen=True, kw_only=True)
class ProjectOptions:
    """What the sites agree on.

    Parameters
    ----------
    site : list of str
        Name of a site, or NAME=ROWS with the number of its rows, which it then checks; repeatable.
    name : str, optional
        Name of the run; default: that of the folder.
    like : Path, optional
        A file from which features, labels and loss are taken where they are not given; it stays where it is.
    label : str, optional
        Column of the labels, where that file is a table.
    features : int, optional
        Number of features.
    classes : str, optional
        All labels that there are, such as 0,1.
    loss : str
        A loss (see: dualopt list losses); auto lets the labels decide.
    loss_param : list of str
        Parameter of the loss, such as delta=0.5; repeatable.
    mu : float
        Weight of the ridge.
    regulariser : str, optional
        Regulariser, such as l1=0.01, for methods that take one.
    intercept : str
        A column of ones: penalised, its weights are in the ridge like the others; free, they are not; or none.
    class_weight : str, optional
        What rows count by their label: numbers such as yes=3,no=1.
    missing : str
        What is put in a gap of a table: refuse, or the mean or median of the column at all sites.
    categories : str
        Columns of words in a table: refuse; indicators, 0 and 1 for each word; or the words, as sex=f,m; stage=1,2.
    offset : str, optional
        Column of each site's table whose numbers are added to the predictors.
    exposure : str, optional
        Column of each site's table whose logarithms are added, such as days: for losses poisson and gamma.
    scale : str
        none, unit-rows or a number to divide by; standard, minmax, robust or max by numbers of all sites.
    least_rows : int
        A site tells no number for which fewer of its rows than this stand, where it tells means and categories.
    client_weights : str
        Weights of the sites in the mean: equal, rows (each row counts alike), or numbers such as 3,1,2.
    dtype : str
        float64 or float32.
    precision : str
        Of the local work of the sites: double, or mixed, where solvers work in single precision where they can.
    storage : str
        How features are kept: sparse, dense, or auto for the faster.
    """

    site: list[str] = field(default_factory=list)
    name: str | None = None
    like: Path | None = None
    label: str | None = None
    features: int | None = None
    classes: str | None = None
    loss: str = "auto"
    loss_param: list[str] = field(default_factory=list)
    mu: float = 1e-2
    regulariser: str | None = None
    intercept: str = "penalised"
    class_weight: str | None = None
    missing: str = "refuse"
    categories: str = "refuse"
    offset: str | None = None
    exposure: str | None = None
    scale: str = "none"
    least_rows: int = 5
    client_weights: str = "equal"
    dtype: str = "float64"
    precision: str = "double"
    storage: str = "auto"


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The method, and how long it runs.

    Parameters
    ----------
    algorithm : str
        A method, such as fedsplit:step=0.1 (see: dualopt list algorithms).
    param : list of str
        Parameter of the algorithm, such as rho=1e-3; repeatable.
    rounds : int
        Largest number of communication rounds.
    participation : str
        Who takes part: full, subset=10, bernoulli=0.3; or communicate=0.5, everybody half the time.
    scales : str
        One scale for each site: none, suggested (as suits the method), or numbers such as 1,5,2.
    compressor : str
        What uploads go through: identity, natural, rounding=8, rand-k=10 (see: dualopt list compressors).
    tol : float
        Stop at this certified relative error; 0 runs all rounds.
    atol : float
        Stop at this certified E - E*; 0: only tol counts.
    certify_every : int
        Certify every so many rounds: a model down and two vectors up per site; 0: as seldom as tol and atol allow.
    seed : int
        Seed of everything random.
    secure : str
        none, or sum: the server knows uploads and certificates of the sites in sums alone.
    secure_range : float
        With sum, the largest number that a site sends; sums are the less exact the larger it is.
    inference : bool
        Let the server ask each site for its Hessian, once, for standard errors; it reveals more than gradients.
    deadline : float
        Seconds that a site has for an answer.
    """

    algorithm: str = "dualfl"
    param: list[str] = field(default_factory=list)
    rounds: int = 100
    participation: str = "full"
    scales: str = "none"
    compressor: str = "identity"
    tol: float = 1e-6
    atol: float = 0.0
    certify_every: int = 0
    seed: int = 0
    secure: str = "none"
    secure_range: float = 2.0**20
    inference: bool = False
    deadline: float = 60.0


@dataclass(frozen=True, kw_only=True)
class ServerOptions:
    """Where the server is.

    Parameters
    ----------
    host : str
        Name or address under which the sites reach the server.
    port : int
        The port that it listens at, for sites and administrator.
    """

    host: str = "localhost"
    port: int = 8002


def described_project(folder: Path, problem: ProjectOptions, loop: RunOptions, method: MethodOptions) -> Project:
    """Return the project, with what a file of one of the sites tells filled in."""
    sites = [text.partition("=") for text in problem.site]
    counts = [rows for _, equals, rows in sites if equals]
    for count in counts:
        require(count.isdecimal(), "site must be NAME or NAME=ROWS with a whole number", count)
    require(not counts or len(counts) == len(sites), "site must name the number of rows for all sites, or for none")
    known = _like(problem)
    classes = known.get("classes", ()) if problem.classes is None else _labels(problem.classes)
    loss = problem.loss if problem.loss != "auto" else known.get("loss", "logistic" if len(classes) == 2 else None)
    loss = loss or ("multinomial" if classes else "squared")
    real = known.get("kind") == "real" or Spec.parse(loss, "loss").target("loss", ()).labels == "real"
    features = known.get("features") if problem.features is None else problem.features
    require(features is not None, "features must be given, or --like FILE")
    given: dict[str, Any] = asdict(loop)
    spec = Spec.parse(loop.algorithm, "algorithm").given(pairs(given.pop("param"), "param"), "param")
    given["algorithm"] = str(method.given_to(spec))
    stated = Spec.parse(loss, "loss")
    return Project(
        **given,
        name=problem.name or folder.resolve().name,
        sites=tuple(name for name, _, _ in sites),
        rows=tuple(int(count) for count in counts),
        loss=str(stated.given(pairs(problem.loss_param, "loss_param"), "loss_param")),
        classes=() if real else classes,
        mu=problem.mu,
        regulariser=problem.regulariser,
        features=int(features or 0),
        feature_names=known.get("feature_names", ()),
        intercept=problem.intercept,
        class_weight=problem.class_weight,
        missing=problem.missing,
        categories=problem.categories,
        offset=problem.offset,
        exposure=problem.exposure,
        scale=problem.scale,
        least_rows=problem.least_rows,
        client_weights=problem.client_weights,
        dtype=problem.dtype,
        precision=problem.precision,
        storage=problem.storage,
    )


def _like(problem: ProjectOptions) -> dict[str, Any]:
    """Return what a file says of features, labels and the loss that suits them."""
    if problem.like is None:
        return {}
    named = {"label": problem.label, "offset": problem.offset, "exposure": problem.exposure}
    options: dict[str, Any] = {name: column for name, column in named.items() if column is not None}
    rules = {"missing": problem.missing, "categories": problem.categories}
    options |= {name: rule for name, rule in rules.items() if rule != REFUSE}
    data = load(problem.like, **options)
    loss = automatic_loss(data.y)
    labels = () if loss == "squared" else tuple(sorted({_plain(label) for label in data.y.tolist()}))
    names = tuple(map(str, data.feature_names or ())) if data.columns is None else data.columns.names
    kind = "real" if loss == "squared" else "class"
    features = data.X.shape[1] if data.columns is None else len(names)
    return {"features": features, "feature_names": names, "classes": labels, "loss": loss, "kind": kind}


def _labels(text: str) -> tuple[Any, ...]:
    """Read ``0,1`` or ``no,yes``, in ascending order."""
    words = [word.strip() for word in text.split(",")]
    try:
        return tuple(sorted(_plain(float(word)) for word in words))
    except ValueError:
        return tuple(sorted(words))


def _plain(label: Any) -> Any:
    return int(label) if isinstance(label, float) and label.is_integer() else label
