"""What all parties of a federation agree on before the first round: one file, and its fingerprint."""

from __future__ import annotations

import hashlib
import json
import math
import re
import tomllib
from dataclasses import asdict, dataclass, field, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dualopt.arrays._checks import Typed, require, require_at_least
from dualopt.arrays._files import write_atomically
from dualopt.engine.secure_sums import FEWEST, LARGEST
from dualopt.losses import Loss
from dualopt.methods import Algorithm
from dualopt.methods._support import supported
from dualopt.methods.compressors import Compressor
from dualopt.methods.compressors._uplink import or_none
from dualopt.methods.participation import as_participation
from dualopt.objectives._weights import as_client_weights, parse_numbers, positive
from dualopt.objectives.linear import PRECISIONS, kind_of_intercept
from dualopt.problem.data.scaling import OF_ALL_ROWS, check_scale
from dualopt.problem.inputs import OffsetOrigin, parse_class_weight, require_takes
from dualopt.problem.preprocessing import INDICATORS, REFUSE, TableOptions
from dualopt.regularisers import Zero
from dualopt.runs._checks import check_run
from dualopt.runs.inference import check_loss
from dualopt.spec import Spec, toml

__all__ = ["Project"]

NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?")  # of a run or a site: also a name in a certificate
TITLE = """\
# A federation of dualopt. Every party holds the same file: a site that holds another one refuses to take part.
# Made by "dualopt federation new"; after a change the fingerprint no longer fits, so make a new one instead.
"""


@dataclass(frozen=True, kw_only=True)
class Project(Typed):
    r"""What the parties of a federation agree on.

    Each site is one client, whose cost is the mean over its own rows, and :math:`E = \sum_j w_j f_j / \sum_j w_j` with
    the weights that ``client_weights`` says: with ``"rows"`` every row of the federation counts alike.

    Parameters
    ----------
    name : str
        Name of the run, in letters, digits and hyphens; what is kept on disk is kept under it.
    sites : tuple of str
        Names of the sites, in the order of the clients; certificates are made out to them.
    rows : tuple of int
        Number of rows of each site; checked by each site where it is given.
    algorithm : str
        The method, such as "fedsplit: solver=lbfgs" (:mod:`dualopt.spec`); what is not given, it suggests.
    loss : str
        The loss, such as "huber: delta=0.5", without the number of classes.
    classes : tuple
        All labels, in the order of their codes; empty for a loss with real labels.
    mu : float
        Weight of the ridge.
    regulariser : str, optional
        A regulariser, such as l1=0.01, for methods that take one; it belongs to the server.
    features : int
        Number of columns of the data, without the column of ones; words are one column here.
    feature_names : tuple of str
        Their names, where tables have some; then each site's table has these columns in this order.
    intercept : str
        A column of ones: "penalised", "free" or "none".
    class_weight : str, optional
        What rows count by their label, such as yes=3,no=1: numbers, since no site can count the classes of all.
    missing : str
        What is put in a gap of the sites' tables: refuse, mean or median, those of all sites.
    categories : str
        Columns of words: refuse; indicators, for which each site tells its categories; or the words, as
        ``sex=f,m; stage=1,2``.
    offset, exposure : str, optional
        The column of each site's table whose numbers, or whose logarithms, are added to the predictors.
    scale : str
        none, unit-rows, or a number to divide by; or standard, minmax, robust or max, whose numbers are found in the
        rows of all sites before the first round (`dualopt.federation.preparing`).
    least_rows : int
        A site refuses to answer for fewer of its rows than this, where something is found in the rows of all.
    client_weights : str
        Weights of the sites in the mean: equal, rows, or numbers such as 3,1,2, in the order of the sites.
    dtype : str
        float64 or float32.
    precision : str
        Of the local work of the sites: double, or mixed (:func:`dualopt.linear_model`).
    storage : str
        How features are kept: dense, sparse or auto (for the faster; sites may differ).
    rounds, tol, atol, certify_every, participation, scales, compressor, seed
        As in :func:`dualopt.run`.
    secure : str
        none, or sum: the numbers of the sites meet in sums alone (:mod:`dualopt.engine.secure_sums`).
    secure_range : float
        With sum, the bound of all numbers of a site, which refuses to send larger ones.
    inference : bool
        Whether the server may ask each site for its Hessian, once: for standard errors, intervals and tests
        (`dualopt.inference`). A Hessian reveals more of the rows than gradients do; by default a site refuses.
    deadline : float
        Seconds that a site has for an answer. Methods that admit absence go on without a site that is late.
    package : str
        Version of dualopt, which must be the same at every party: others may round differently.

    Raises
    ------
    ValueError
        If something does not fit; the sentence names it.

    Examples
    --------
    >>> from dataclasses import replace
    >>> p = Project(name="two", sites=("lyon", "basel"), loss="logistic", classes=(0, 1), features=30)
    >>> p.n_clients, len(p.fingerprint), p == Project.from_text(p.to_text())
    (2, 64, True)
    >>> replace(p, loss="hinge").fingerprint == p.fingerprint
    False
    """

    name: str
    sites: tuple[str, ...]
    rows: tuple[int, ...] = ()
    algorithm: str = "dualfl"
    loss: str = "logistic"
    classes: tuple[Any, ...] = ()
    mu: float = 1e-2
    regulariser: str | None = None
    features: int = 0
    feature_names: tuple[str, ...] = ()
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
    rounds: int = 100
    tol: float = 1e-6
    atol: float = 0.0
    certify_every: int = 0
    participation: str = "full"
    scales: str = "none"
    compressor: str = "identity"
    seed: int = 0
    secure: str = "none"
    secure_range: float = LARGEST
    inference: bool = False
    deadline: float = 60.0
    package: str = field(default_factory=lambda: version("dualopt"))

    def __post_init__(self) -> None:
        self._check_names()
        self._check_problem()
        check_run(
            rounds=self.rounds,
            seed=self.seed,
            tol=self.tol,
            atol=self.atol,
            certify_every=self.certify_every,
            measure_every=1,
            threads=None,
        )
        require(0 < self.deadline < math.inf, "deadline must be a positive number of seconds", self.deadline)
        if self.regulariser is not None:
            _ = self.regulariser_object
        given = {"participation": self.participation, "compressor": self.compressor}
        named = self._method.name != "auto"
        require(named, "algorithm must not be auto in a project: sites answer to the one method that it names")
        supported(self._method, **given, regulariser=self.regulariser is not None, types=())
        self._check_secure()
        self._check_inference()
        try:
            next(as_participation(self.participation).rounds(self.n_clients, self.seed))
        except ValueError as error:  # more clients than there are
            raise ValueError(
                f"participation {self.participation} does not fit {self.n_clients} sites: {error}"
            ) from None

    @property
    def n_clients(self) -> int:
        """Number ``N`` of clients, one per site."""
        return len(self.sites)

    @property
    def _method(self) -> Spec:
        return Spec.parse(self.algorithm, "algorithm")

    @property
    def method(self) -> Algorithm:
        """The method, with what is not given left open."""
        return self._method.build("algorithm", ())

    @property
    def compressor_object(self) -> Compressor:
        """What uploads go through."""
        return Spec.parse(self.compressor, "compressor").build("compressor", ())

    @property
    def regulariser_object(self) -> Any:
        """The regulariser, if there is one; plug-ins are code that the parties would have to agree on, too."""
        text = self.regulariser
        return None if text is None else Spec.parse(text, "regulariser").build("regulariser", ())

    @property
    def loss_object(self) -> Loss:
        """The loss, with its number of classes."""
        spec = Spec.parse(self.loss, "loss")
        return (spec.given({"classes": len(self.classes)}) if self._counts else spec).build("loss", ())

    @property
    def _counts(self) -> bool:
        """Whether the loss has a number of classes."""
        return "classes" in {f.name for f in fields(Spec.parse(self.loss, "loss").target("loss", ()))}

    @property
    def table_options(self) -> TableOptions:
        """What becomes of gaps and words in the tables of the sites."""
        return TableOptions(missing=self.missing, categories=self.categories)

    @property
    def is_prepared(self) -> bool:
        """Whether something is found in the rows of all sites before the first round."""
        asks = self.missing != REFUSE or self.categories == INDICATORS
        return asks or self.divisor in OF_ALL_ROWS

    @property
    def fingerprint(self) -> str:
        """A hash of everything above, equal at two parties exactly where they agree on all of it."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()

    @property
    def run_name(self) -> str:
        """The name under which states are kept: those of another project never fit."""
        return f"{self.name}-{self.fingerprint[:12]}"

    def to_text(self) -> str:
        """Return the file: TOML, one line for each field."""
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        lines = [f"{name} = {toml(value)}" for name, value in given.items() if value is not None]
        return "\n".join([TITLE, *lines, "", f"fingerprint = {toml(self.fingerprint)}", ""])

    @classmethod
    def from_text(cls, text: str, where: str = "project") -> Project:
        """Read what :meth:`to_text` wrote.

        Raises
        ------
        ValueError
            If it is no such text, or was changed since.
        """
        try:
            given = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise ValueError(f"{where} is no project file: {error}.") from None
        stored = given.pop("fingerprint", None)
        known = {f.name for f in fields(cls)}
        for name in given:
            require(name in known, f"{where} is no project file of this version: it has the unknown entry {name!r}")
        for name in ("name", "sites", "package"):
            require(name in given, f"{where} is no project file: it has no entry {name}")
        project = Spec("project", given).made(cls, where)
        if stored != project.fingerprint:
            raise ValueError(
                f"{where} was changed after it was made: its fingerprint does not fit; make a new one with "
                "dualopt federation new."
            )
        return project

    def write(self, path: str | Path) -> None:
        """Write the file, whole or not at all."""
        write_atomically(path, lambda file: file.write(self.to_text()))

    @classmethod
    def read(cls, path: str | Path) -> Project:
        """Read the file.

        Raises
        ------
        ValueError
            If it is no project file, or was changed since it was made.
        """
        try:
            text = Path(path).read_bytes().decode()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is no text"
            raise ValueError(f"project {str(path)!r} cannot be read: {reason}.") from None
        return cls.from_text(text, f"project {str(path)!r}")

    def _check_names(self) -> None:
        for what, name in [("name", self.name), *(("sites", site) for site in self.sites)]:
            good = isinstance(name, str) and NAME.fullmatch(name)
            require(good, f"{what} must consist of letters, digits and hyphens, at most 63 of them", name)
        require(
            len({*map(str.lower, self.sites), "server"}) == len(self.sites) + 1, "sites must differ, also from server"
        )
        require(self.sites, "sites must be given, at least one")
        if self.rows:
            require(len(self.rows) == self.n_clients, f"rows must be given for each of the {self.n_clients} sites")
            for count in self.rows:
                require_at_least(1, rows=count)

    def _check_secure(self) -> None:
        require(self.secure in ("none", "sum"), "secure must be none or sum", self.secure)
        wide = 0.0 < self.secure_range <= 2.0**40
        require(wide, "secure_range must be a positive number, at most 2^40", self.secure_range)
        if self.secure == "none":
            return
        alone = "must not be found in the rows of the sites with secure sums, which hide sums of a run alone"
        require(not self.is_prepared, f"scale, missing and categories {alone}", self.scale)
        require(self.n_clients >= FEWEST, f"sites must be at least {FEWEST} for secure sums", self.n_clients)
        plain = or_none(self.compressor_object) is None
        require(plain, "compressor must be identity with secure sums: a masked number has 64 bits", self.compressor)
        size = getattr(as_participation(self.participation), "size", FEWEST)
        enough = f"participation must be of at least {FEWEST} sites with secure sums"
        require(size >= FEWEST, enough, self.participation)

    def _check_inference(self) -> None:
        if not self.inference:
            return
        require(self.secure == "none", "inference must be false with secure sums: it needs the Hessian of each site")
        loss = self.loss_object
        size = loss.outputs * (self.features + (kind_of_intercept(self.intercept) != "none"))
        check_loss(loss, size, Zero() if self.regulariser is None else self.regulariser_object)

    def _check_problem(self) -> None:
        for name, words in (
            ("dtype", ("float64", "float32")),
            ("precision", PRECISIONS),
            ("storage", ("auto", "dense", "sparse")),
        ):
            require(getattr(self, name) in words, f"{name} must be one of {', '.join(words)}", getattr(self, name))
        kind_of_intercept(self.intercept)
        if OffsetOrigin.of(self.offset, self.exposure) is not None:
            require_takes(self.loss_object, exposure=self.exposure is not None)
        require(
            self.class_weight is None or isinstance(parse_class_weight(self.class_weight), dict),
            "class_weight must be numbers by class in a federation, where nobody counts the classes of all sites",
            self.class_weight,
        )
        weights = as_client_weights(parse_numbers(self.client_weights))
        positive("client_weights", weights, None if weights is None else self.n_clients)
        scales = parse_numbers(self.scales)
        known = not isinstance(scales, str) or scales in ("none", "suggested")
        require(known, "scales must be none, suggested or a number for each site", self.scales)
        positive("scales", None if isinstance(scales, str) else scales, self.n_clients)
        require(math.isfinite(self.mu) and self.mu >= 0, "mu must be a finite number, at least 0", self.mu)
        require_at_least(1, features=self.features)
        if self.feature_names:
            count = len(self.feature_names)
            require(count == self.features, f"feature_names must be {self.features} names", count)
        check_scale(self.divisor)
        named = self.table_options.refuse_all or bool(self.feature_names)
        require(named, "feature_names must be given for missing and categories, which are of tables: take --like FILE")
        require_at_least(1, least_rows=self.least_rows)
        given = Spec.parse(self.loss, "loss").arguments
        require("classes" not in given, "loss must not have classes, which have an entry of their own")
        kind = Spec.parse(self.loss, "loss").target("loss", ()).labels
        if kind == "real":
            require(not self.classes, f"classes must not be given for loss {self.loss}, whose labels are numbers")
        else:
            count = len(set(self.classes))
            need = "two" if kind == "binary" else "at least two"
            right = count == 2 if kind == "binary" else count > 1
            require(
                right and count == len(self.classes), f"classes must be {need} different labels for loss {self.loss}"
            )
            alike = {isinstance(label, str) for label in self.classes}
            require(len(alike) == 1, "classes must be all numbers or all words")
            require(list(self.classes) == sorted(self.classes), "classes must be in ascending order", self.classes)
        _ = self.loss_object

    @property
    def divisor(self) -> str | float:
        """The scaling as :func:`dualopt.problem.data.load` takes it."""
        try:
            return float(self.scale)
        except ValueError:
            return self.scale
