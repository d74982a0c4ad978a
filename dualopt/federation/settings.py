"""What a site alone decides: where its data and its state are. Nothing of it leaves the site."""

from __future__ import annotations

import json
import tomllib
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dualopt.arrays._checks import require, require_at_least, require_integers
from dualopt.arrays._files import write_atomically
from dualopt.engine import RefusedError
from dualopt.federation.preparing import Prepared, Preparing
from dualopt.federation.project import Project
from dualopt.federation.questions import QUESTIONS
from dualopt.federation.refusals import refusing
from dualopt.objectives import LinearModel, linear_model
from dualopt.objectives._weights import parse_numbers
from dualopt.problem.data import encode_labels, load
from dualopt.problem.data._dataset import check_features
from dualopt.problem.data._libsvm import source as _libsvm
from dualopt.problem.data._registry import _reader
from dualopt.problem.data._scaling import SHIFTS
from dualopt.problem.data._tables import read_table
from dualopt.problem.data._tables import source as table_source
from dualopt.problem.inputs import parse_class_weight
from dualopt.spec import toml

__all__ = [
    "SiteRows",
    "SiteSettings",
    "example_of",
    "objective_of",
    "prepared_objective",
    "site_name",
    "site_objective",
    "site_rows",
]

FILE = Path("local", "dualopt.toml")  # in the folder that the site got from "nvflare provision"
TITLE = '# Written by "dualopt federation site". Paths on this machine; they stay here.\n'


@dataclass(frozen=True, kw_only=True)
class SiteSettings:
    """Where a site has its data and keeps its state.

    Parameters
    ----------
    project : str
        Path of the project file.
    data : str
        Path of the data: LIBSVM, csv, tsv, parquet or npz, plain or compressed.
    state : str
        Folder for the state of the client (its dual variables), which must survive restarts.
    label : str, optional
        Column of the labels, of a table.
    questions : int
        How many different models the server may ask the site at in one round (`dualopt.federation.questions`).

    Raises
    ------
    ValueError
        If ``questions`` is no whole number, or less than 1.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as kit:
    ...     Path(kit, "local").mkdir()
    ...     _ = SiteSettings(project="p.toml", data="lyon.svm", state="state").write(kit)
    ...     SiteSettings.read(kit).data
    'lyon.svm'
    """

    project: str
    data: str
    state: str
    label: str | None = None
    questions: int = QUESTIONS

    def __post_init__(self) -> None:
        require_integers(questions=self.questions)
        require_at_least(1, questions=self.questions)

    def write(self, kit: str | Path) -> Path:
        """Write the settings into the folder of the site; return the path of the file."""
        lines = [f"{name} = {toml(value)}" for name, value in asdict(self).items() if value is not None]
        path = Path(kit, FILE)
        require(path.parent.is_dir(), f"kit {str(kit)!r} is not a folder that nvflare provision made: it has no local")
        write_atomically(path, lambda file: file.write("\n".join([TITLE, *lines, ""])))
        return path

    @classmethod
    def read(cls, kit: str | Path) -> SiteSettings:
        """Read the settings in the folder of a site.

        Raises
        ------
        ValueError
            If there are none, or they are damaged.
        """
        path = Path(kit, FILE)
        try:
            given = tomllib.loads(path.read_bytes().decode())
        except FileNotFoundError:
            raise ValueError(f"site settings {str(path)!r} do not exist: run dualopt federation site first.") from None
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise ValueError(f"site settings {str(path)!r} cannot be read: {error}.") from None
        known = {f.name for f in fields(cls)}
        right = set(given) <= known and {"project", "data", "state"} <= set(given)
        words = (x for name, x in given.items() if name != "questions")
        require(right and all(isinstance(x, str) for x in words), f"site settings {str(path)!r} are damaged")
        return cls(**given)

    def state_file(self, project: Project) -> Path:
        """Return the file of the client's state in this run."""
        return Path(self.state, f"{project.run_name}.journal")

    def prepared_file(self, project: Project) -> Path:
        """Return the file of how the rows are prepared in this run."""
        return self.state_file(project).with_suffix(".prepared")

    def questions_file(self, project: Project) -> Path:
        """Return the file of the questions that the server has asked in this run."""
        return self.state_file(project).with_suffix(".questions")


def site_name(kit: str | Path) -> str:
    """Return the name to which the certificate in the folder of a site is made out.

    Raises
    ------
    ValueError
        If it is no such folder.
    """
    try:
        return json.loads(Path(kit, "startup", "fed_client.json").read_text())["client"]["fqsn"]
    except (OSError, ValueError, LookupError, TypeError):
        raise ValueError(f"kit {str(kit)!r} is not the folder of a site that nvflare provision made.") from None


class SiteRows(NamedTuple):
    """A site's data: a table, of which features are made, or features that are not scaled, and codes of labels."""

    X: Any
    y: np.ndarray
    offset: np.ndarray | None = None

    @property
    def size(self) -> int:
        """The number of rows."""
        return len(self.y)


def site_objective(
    project: Project, site: str, data: str | Path, *, label: str | None = None, prepared: Prepared | None = None
) -> LinearModel:
    r"""Build :math:`f_j` of a site from its own data and what the project says.

    Parameters
    ----------
    project : Project
        What the parties agree on.
    site : str
        Name of the site.
    data : str or Path
        Its data.
    label : str, optional
        Column of the labels, of a table.
    prepared : Prepared, optional
        What was found in the rows of all sites, where the project has something found there.

    Raises
    ------
    RefusedError
        If the site is not of the project, or the data do not fit it: other columns, labels or numbers of rows. The
        message may quote them; its code does not.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "lyon.svm")
    ...     _ = path.write_text("1 1:0.5 2:1\n0 2:2\n")
    ...     p = Project(name="two", sites=("lyon", "basel"), loss="logistic", classes=(0, 1), features=3)
    ...     site_objective(p, "lyon", path).shape
    (4,)
    """
    return prepared_objective(project, site, site_rows(project, site, data, label=label), prepared)


def prepared_objective(project: Project, site: str, rows: SiteRows, prepared: Prepared | None = None) -> LinearModel:
    """Return the cost of a site with its data, which it may overwrite.

    Raises
    ------
    RefusedError
        If features cannot be made of them, or do not fit the problem.
    """
    found = Preparing(project).found if prepared is None else prepared
    with refusing("prepare"):
        require(found is not None, "rows are scaled by numbers that are found in those of all sites: these come first")
        assert found is not None
        X = found.features(rows.X, project.dtype)
        check_features(X)
    y = rows.y if project.loss_object.labels == "class" else rows.y.astype(X.dtype)
    with refusing("problem"):
        offset = None if rows.offset is None else rows.offset.astype(X.dtype)
        return objective_of(project, X, y, project.sites.index(site), offset)


def site_rows(project: Project, site: str, data: str | Path, *, label: str | None = None) -> SiteRows:
    """Load the data of a site, and compare them with what the project says; arguments are those of `site_objective`.

    Raises
    ------
    RefusedError
        If they do not fit.
    """
    with refusing("site"):
        require(site in project.sites, f"site must be one of {', '.join(project.sites)}", site)
    found = _rows(project, data, label)
    if project.rows:
        expected = project.rows[project.sites.index(site)]
        with refusing("rows"):
            require(
                found.size == expected,
                f"data {str(data)!r} must have the {expected} rows that the project says of {site}",
                found.size,
            )
    return found


def objective_of(project: Project, X: Any, y: Any, number: int = 0, offset: Any = None) -> LinearModel:
    """Return the cost of the site with this number if it has these rows."""
    weights = parse_numbers(project.client_weights)
    if isinstance(weights, list):
        weights = weights[number : number + 1]
    return linear_model(
        X,
        y,
        loss=project.loss_object,
        mu=project.mu,
        clients=1,
        intercept=project.intercept,
        class_weight=_class_weight(project),
        offset=offset,
        client_weights=weights,
        storage=project.storage,
        precision=project.precision,
    )


def _class_weight(project: Project) -> dict[int, float] | None:
    """Return what rows count by the codes of their labels."""
    if project.class_weight is None:
        return None
    loss = project.loss_object
    codes = (-1, 1) if loss.labels == "binary" else tuple(range(loss.outputs))
    code_of = dict(zip(map(str, project.classes or codes), codes, strict=True))
    given = parse_class_weight(project.class_weight)
    assert isinstance(given, dict)
    for name in given:
        require(name in code_of, f"class_weight must name classes, some of {', '.join(code_of)}", name)
    return {code_of[name]: number for name, number in given.items()}


def example_of(project: Project, number: int = 0, prepared: Prepared | None = None) -> LinearModel:
    """Return the cost of the site with this number if it has two rows of zeros: what follows from the project alone.

    Where the project has categories found, it follows from what was found, too.
    """
    loss, columns = project.loss_object, None if prepared is None else prepared.columns
    X = np.zeros((2, project.features if columns is None else len(columns.feature_names)), dtype=project.dtype)
    y = {"binary": np.array([-1.0, 1.0]), "class": np.array([0, 1])}.get(loss.labels, np.ones(2))
    offset = None if project.offset is None and project.exposure is None else np.zeros(2, dtype=project.dtype)
    return objective_of(project, X, y if loss.labels == "class" else y.astype(X.dtype), number, offset)


def _rows(project: Project, data: str | Path, label: str | None) -> SiteRows:
    """Load data, labels and offsets as the project wants them."""
    named = {"label": label, "offset": project.offset, "exposure": project.exposure}
    options: dict[str, Any] = {name: column for name, column in named.items() if column is not None}
    with refusing("data"):
        reader, first = _reader(str(data), None)
    if reader is _libsvm:  # the last columns may be zero in all rows of this site
        options |= {"n_features": project.features}
        options |= {"storage": "dense"} if project.divisor in SHIFTS else {}
    X: Any
    with refusing("data"):
        if project.table_options.refuse_all:
            found = load(data, scale="none", dtype=project.dtype, **options)
            X, labels, offset, names = found.X, found.y, found.offset, found.feature_names
        else:
            require(reader is table_source, f"data {str(data)!r} must be a table, of whose columns features are made")
            X, labels, offset = read_table(Path(first), project.table_options, **options)
            names = X.names
    columns = X.shape[1] if names is None else len(names)
    with refusing("columns"):
        wanted = f"data {str(data)!r} must have {project.features} columns of features"
        require(columns == project.features, wanted, columns)
        if project.feature_names and names is not None:
            for n, (mine, agreed) in enumerate(zip(names, project.feature_names, strict=True)):
                require(mine == agreed, f"data {str(data)!r} must have the feature {agreed!r} as number {n + 1}", mine)
    try:
        y = encode_labels(labels, project.loss_object.labels, classes=list(project.classes) or None)
    except ValueError as error:
        raise RefusedError(f"data {str(data)!r}: {error}", code="labels") from None
    return SiteRows(X, y, offset)
