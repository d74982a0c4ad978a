r"""Standard errors, intervals and tests for a linear model, from one round in which each client tells its Hessian.

A certificate says how near a model is to the minimiser of ``E``. These numbers say how near the minimiser is to what
more rows of the same kind would give.

**Sums over rows.** ``E`` is a mean. With the weights :math:`c_{ji} = w_j w_{ji}` of the rows in it, all
that follows is of

.. math:: n_E\,E(\theta) = \sum_{ji} \phi(\theta x_{ji}; y_{ji}) + \tfrac12 \theta' P \theta, \qquad
          H = \sum_{ji} \nabla^2\phi(\theta x_{ji}; y_{ji}) \otimes x_{ji} x_{ji}', \quad A = H + P,

where all :math:`c_{ji}` are equal: every row counts alike, :math:`n_E = n` is the number of rows and :math:`P = n\mu`
the ridge in these units. With ``frequency=True`` the :math:`c_{ji}` are how often a row was seen: it stands for so
many, and ``n`` is their sum. Other weights say how much a row is to count (importance weights): then there is no
likelihood, and only the covariance by the clients below has a meaning, with sums that have the weights :math:`c_{ji}`.

**Covariance by the likelihood.** The minimiser of the penalised likelihood is, to first order in the scores
:math:`\sum_{ji}\nabla\phi(\theta^0x_{ji}; y_{ji})` at the true model, whose covariance is ``s H`` with the dispersion
``s`` if the likelihood is right, a linear function of them, with the covariance

.. math:: s\, A^{-1} H A^{-1},

which for ``P = 0`` is the inverse of the observed information. For the squared loss this is exact (Hoerl and Kennard
1970, "Ridge regression", Section 3); for the logistic loss see le Cessie and van Houwelingen (1992, "Ridge estimators
in logistic regression", Section 2). It has the ridge once as a cause of less variance, and says nothing of the bias
that the ridge brings: :math:`-A^{-1}P\theta^0` to first order, which ``ridge_shift`` estimates with :math:`\theta`. The
intervals are intervals for the mean of the minimiser.

The dispersion is 1 for classes; else the sum of the squared Pearson residuals over :math:`n - 2\,\mathrm{tr}S +
\mathrm{tr}S^2` with :math:`S = A^{-1}H`, which for the squared loss is the expectation of that sum over ``s``, but for
the bias (Hastie and Tibshirani 1990, "Generalized additive models", Section 3.5), and ``n - D`` for ``P = 0``. Tests
are then those of Student's t with these degrees of freedom.

**Covariance by the clients.** Where rows of a client are alike (patients of a hospital), or the loss is no likelihood,

.. math:: \frac{N}{N-1}\,\frac{n-1}{n-\mathrm{tr}S}\; A^{-1} \Bigl(\sum_j \psi_j \psi_j'\Bigr) A^{-1}, \qquad
          \psi_j = n_E\, \frac{w_j}{\sum_k w_k} \nabla f_j(\theta),

is that of the minimiser if clients are independent, whatever the rows inside them are (Liang and Zeger 1986; White
1982; with the two factors for few clients Cameron and Miller 2015, "A practitioner's guide to cluster-robust
inference", Section II, and Student's t with ``N - 1`` degrees of freedom; ``small_sample=False`` leaves both away). The
outer products are formed from the gradients of the clients; their ridge belongs to :math:`\psi_j`, whose expectation
would otherwise not be 0. The rank of the sum is less than ``N``: with fewer clients than parameters single standard
errors are estimates, joint tests are not possible.

**Fit.** ``deviance`` is :math:`2\sum(\phi - \min\phi)`. ``log_likelihood`` is that of the data, at the dispersion that
makes it largest (for the squared loss the deviance over ``n``), and ``aic`` is
:math:`-2\,\text{log-likelihood} + 2\,\mathrm{tr}S`: the dispersion is not counted, and a parameter counts as little as
the ridge leaves of it.

**What is not known of the minimiser.** All of this is evaluated at :math:`\theta`, and belongs to the minimiser
:math:`\theta^*`. Let :math:`|\nabla^3\phi(z)[v, h, h]| \le M|v|\nabla^2\phi(z)[h, h]` (``self_concordance`` of the
loss), :math:`R` the largest :math:`|x_{ji}|`, and :math:`s \ge M R |d|` with :math:`d = \theta - \theta^*`. Then the
Hessian of the losses at :math:`\theta - td` is at least :math:`e^{-ts} H` and at most :math:`e^{ts} H`, so that with
:math:`g = n_E\nabla E(\theta)`

.. math:: |d|_A^2\, \frac{1-e^{-s}}{s} \le \langle g, d\rangle \le |g|_{A^{-1}} |d|_A \quad\Rightarrow\quad
          |d_r| \le \sqrt{(A^{-1})_{rr}}\; |d|_A \le \sqrt{(A^{-1})_{rr}}\; |g|_{A^{-1}}\, \frac{s}{1-e^{-s}}

(the inequalities of Bach 2010, Section 2). With :math:`\bar A`, the mean of ``A`` between the two, is
:math:`\bar A d = g`, and so :math:`|d_r - (A^{-1}g)_r| \le \sqrt{(A^{-1})_{rr}}\,\bigl(\frac{e^s-1}{s}-1\bigr)|d|_A`
for the Newton step :math:`A^{-1}g`. Such an ``s`` is :math:`M R \sqrt{2\,\text{gap}/\mu}` of a certificate, since
:math:`E(\theta) - E^* \ge \frac\mu2|d|^2`; and, as :math:`|d| \le |d|_A/\sqrt{\lambda_{\min}(A)}` in the above,
:math:`-\log(1 - q)` with :math:`q = M R\,|g|_{A^{-1}}/\sqrt{\lambda_{\min}(A)}` where that is less than 1.

For the standard errors by a likelihood of known dispersion let :math:`u = A^{-1}e_r`, so that :math:`\text{se}_r =
|u|_H`, and :math:`u^*` the same at :math:`\theta^*`. From :math:`A(u^* - u) = (H - H^*)u^*` follows
:math:`|u^* - u|_H \le |u^* - u|_A \le (e^s - 1)|u^*|_H`, and :math:`\text{se}_r^* = |u^*|_{H^*}` is between
:math:`e^{\pm s/2}|u^*|_H` and at most the root of :math:`(A^{*-1})_{rr} \le e^s (A^{-1})_{rr}`:

.. math:: e^{-3s/2}\,\text{se}_r \le \text{se}_r^* \le
          \min\Bigl(\frac{e^{s/2}}{2 - e^s}\,\text{se}_r,\; e^{s/2} \sqrt{(A^{-1})_{rr}}\Bigr),

the first of the two where :math:`e^s < 2`. Rounding is counted in the gap of a certificate, and not in the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from dualopt.arrays._checks import require
from dualopt.arrays.xp import Array, array_namespace, epsilon, to_numpy
from dualopt.objectives import LinearModel
from dualopt.objectives._information import SUMS, ClientInformation, client_information, ridge_of
from dualopt.objectives.composite import without_regulariser
from dualopt.objectives.scales import own_clients
from dualopt.regularisers import L2, Zero
from dualopt.runs._covariances import Covariances
from dualopt.runs._inference import KINDS, Inference

__all__ = ["Inference", "check_inference", "check_loss", "inference"]

ROUNDING = 1e-8  # degrees of freedom for each row that may be rounding, which the inverse of the information amplifies
LARGEST = 10_000  # parameters: a matrix of 800 MB
EQUAL = 256.0  # units in the last place by which weights may differ that are meant to be equal: quotients of numbers


def inference(
    objective: Any,
    theta: Array,
    *,
    gap: float | None = None,
    kind: str = "auto",
    level: float = 0.95,
    frequency: bool = False,
    small_sample: bool = True,
    like: LinearModel | None = None,
    names: Sequence[str] | None = None,
) -> Inference:
    """Return standard errors, intervals and tests at a model, from one round of all clients.

    Every client sends, once, the Hessian of its losses, ``(D, D)`` for the ``D`` numbers of the model (``k p`` of ``k``
    classes), its gradient, its ridge, and eight sums (`dualopt.objectives._information`). A Hessian reveals more than a
    gradient: for the squared loss it has all products of two columns, summed over the client's rows. Sites of a
    federation answer only if their project says so.

    Parameters
    ----------
    objective : Objective
        A linear model, or the clients of one that are elsewhere (in blocks, over MPI, at sites); with the regulariser
        ``L2`` or none.
    theta : array, shape ``shape``
        The model: the minimiser of ``E``, or near it.
    gap : float, optional
        Its certified ``E(theta) - E*``, such as ``trace["certificate"][-1]``: with it ``distance`` is known.
    kind : str, default "auto"
        The covariance that is shown first: "likelihood", "clients", or auto for the first of both that there is.
    level : float, default 0.95
        Probability with which intervals cover.
    frequency : bool, default False
        Whether weights of rows that are not all equal say how often a row was seen (a row of weight 2 is the row
        twice), and those of clients are sums of these (``client_weights="rows"``). By default they are importance
        weights.
    small_sample : bool, default True
        Whether the covariance by the clients has the two factors for few clients, and its tests Student's t.
    like : LinearModel, optional
        Where the clients are elsewhere, a linear model with their loss, columns and names, such as that of some.
    names : sequence of str, optional
        Names of the columns; those of the model when not given, else x1, x2, ...

    Raises
    ------
    ValueError
        If the objective is no linear model, the loss has neither a likelihood nor a second derivative, the regulariser
        has kinks, a covariance is asked for that there is not, or the information is singular.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt import inference, linear_model, newton
    >>> X = np.array([[0.5], [1.5], [2.0], [2.5], [3.5], [4.0]])
    >>> f = linear_model(X, [0, 0, 1, 0, 1, 1], loss="logistic", mu=0.0, clients=2, client_weights="rows")
    >>> found = inference(f, newton(f).theta, names=["dose"])
    >>> for row in found.table():
    ...     print(row["parameter"], row["estimate"], row["std. error"], row["P>|z|"])
    dose 2.0569 1.623 0.205
    intercept -4.7724 3.8594 0.216
    >>> round(found.aic, 4), found.numbers_sent
    (8.5594, 16)
    >>> found.by("clients").degrees
    1.0
    """
    own = own_clients(objective)
    f = without_regulariser(own)
    model = check_inference(objective, like, kind)
    require(0.0 < level < 1.0, "level must be between 0 and 1", level)
    require(gap is None or gap >= 0.0, "gap must be at least 0, a certified bound of E(theta) - E*", gap)
    fits = tuple(theta.shape) == model.shape
    require(fits, f"theta must have the shape {model.shape} of the model", tuple(theta.shape))
    asked: Callable[[Array], ClientInformation] | None = getattr(f, "information", None)
    found = client_information(f, theta) if asked is None else asked(theta)
    same = bool(array_namespace(theta).all(found.penalty == ridge_of(model)))
    require(same, "like must have the ridge of the clients")
    weights = f.weights or (1.0,) * f.n_clients
    loss: Any = model.loss
    regulariser, N = own.regulariser, f.n_clients
    zero = array_namespace(theta).zeros_like(theta)
    more = regulariser.minimal_subgradient(zero + 1.0, zero)  # of L2 its weight, everywhere
    units = _units(found, weights, frequency)
    shift_invariant = getattr(loss, "shift_invariant", False)
    at = Covariances.at(found, theta, weights, more, units.scale, shift_invariant=shift_invariant)
    n, fit = units.rows, None
    covariances, degrees = {}, {}
    if units.is_likelihood and hasattr(loss, "family"):
        fit = _fit(loss, found, weights, units, at)
        covariances["likelihood"], degrees["likelihood"] = fit.dispersion * at.by_likelihood(), fit.degrees
    if N > 1:
        factor = N / (N - 1.0) * (n - 1.0) / (n - at.parameters) if small_sample else 1.0
        covariances["clients"], degrees["clients"] = factor * at.by_clients(), N - 1.0 if small_sample else math.inf
    kind = next(iter(covariances), "auto") if kind == "auto" else kind
    _require_kind(kind, covariances, units)
    mu = own.mean_mu + regulariser.mu
    distance = None
    if gap is not None and math.isfinite(gap) and mu > 0.0 and not own.free_intercept:  # whose mu is of the others
        distance = math.sqrt(2.0 * gap / mu)
    concordance = getattr(loss, "self_concordance", math.inf)
    moved, errors = at.bounds(concordance, max(_column(found, "largest_row")), distance)
    return Inference(
        estimate=at.theta,
        names=_names(model, names),
        kind=kind,
        covariances=covariances,
        all_degrees=degrees,
        level=float(level),
        ratio=getattr(loss, "ratio", None),
        rows=n,
        clients=N,
        parameters=at.parameters,
        small_sample=small_sample,
        ridge=at.ridge,
        family=None if fit is None else loss.family,
        dispersion=None if fit is None else fit.dispersion,
        deviance=None if fit is None else fit.deviance,
        log_likelihood=None if fit is None else fit.log_likelihood,
        aic=None if fit is None else 2.0 * (at.parameters - fit.log_likelihood),
        ridge_shift=at.shaped(at.ridge_shift),
        newton_step=at.shaped(at.newton_step),
        distance=distance,
        estimate_bounds=moved,
        likelihood_error_bounds=errors if fit is not None and fit.is_known else None,
        model_size=math.prod(model.shape),
    )


def check_inference(objective: Any, like: LinearModel | None = None, kind: str = "auto") -> LinearModel:
    """Return the linear model, after refusing what standard errors cannot be had of, before anything is asked.

    Parameters
    ----------
    objective, like, kind
        As in :func:`inference`.

    Raises
    ------
    ValueError
        If there is something; one sentence.

    Examples
    --------
    >>> from dualopt import linear_model
    >>> _ = check_inference(linear_model([[1.0], [2.0]], [-1.0, 1.0], loss="hinge", mu=0.1))
    Traceback (most recent call last):
    ValueError: loss must have second derivatives for standard errors: Hinge has kinks, and is no likelihood.
    """
    own = own_clients(objective)
    f = without_regulariser(own)
    linear = isinstance(f, LinearModel) or getattr(f, "is_linear", False)
    require(linear, f"objective must be a linear model for standard errors, not a {type(f).__name__}")
    model: Any = f if like is None else like
    is_model = isinstance(model, LinearModel)
    require(is_model, "like must be given for clients that are elsewhere: a linear model with their loss and columns")
    check_loss(model.loss, math.prod(model.shape), own.regulariser, kind)
    return model


def check_loss(loss: Any, size: int, regulariser: Any = Zero(), kind: str = "auto") -> None:
    """Refuse a loss, a number of parameters and a regulariser that have no standard errors.

    Raises
    ------
    ValueError
        If there is something; one sentence.
    """
    of_weights = getattr(regulariser, "regulariser", regulariser)  # of all but a free intercept
    smooth, name = isinstance(of_weights, L2 | Zero), type(of_weights).__name__
    require(smooth, f"regulariser must be L2 or none for standard errors: what {name} selects has none")
    name = type(loss).__name__
    differentiable = hasattr(loss, "family") or math.isfinite(loss.curvature)
    sentence = "loss must have second derivatives for standard errors"
    require(differentiable, f"{sentence}: {name} has kinks, and is no likelihood")
    require(kind in ("auto", *KINDS), "kind must be likelihood, clients or auto", kind)
    no = kind == "likelihood" and not hasattr(loss, "family")
    require(not no, f"kind must be clients: the loss {name} is no likelihood")
    require(
        size <= LARGEST, f"model must have at most {LARGEST:,} numbers: clients send a matrix of their square", size
    )


# --- weights ----------------------------------------------------------------------------------------------------------


class _Units(NamedTuple):
    """What one unit of ``sum_j w_j f_j`` is in rows."""

    scale: float  # by which sums with the weights of E are multiplied
    rows: float  # n
    is_likelihood: bool


def _units(found: ClientInformation, weights: Sequence[float], frequency: bool) -> _Units:
    """Return the scale of the sums, from the weights ``w_j w_ji`` of all rows in ``E``."""
    rows, weight = sum(_column(found, "rows")), _weighted(found, "weight", weights)
    least = min(w * x for w, x in zip(weights, _column(found, "least_weight"), strict=True))
    largest = max(w * x for w, x in zip(weights, _column(found, "largest_weight"), strict=True))
    equal = largest - least <= EQUAL * epsilon(found.sums) * largest
    if frequency and not equal:
        return _Units(1.0, weight, True)
    return _Units(rows / weight, rows, equal)


def _require_kind(kind: str, covariances: Mapping[str, Any], units: _Units) -> None:
    if kind == "likelihood" and kind not in covariances:
        raise ValueError(
            "kind must be clients where rows have unequal weights in E, which is no likelihood then: with "
            "client_weights='rows' all rows count alike, and with frequency=True weights are counts."
        )
    if kind not in covariances:
        why = "" if units.is_likelihood else ", and rows of unequal weights have no likelihood"
        raise ValueError(f"inference needs at least two clients for the covariance by the clients{why}.")


def _column(found: ClientInformation, name: str) -> list[float]:
    return to_numpy(found.sums[:, SUMS.index(name)]).tolist()


def _weighted(found: ClientInformation, name: str, weights: Sequence[float]) -> float:
    return math.fsum(w * x for w, x in zip(weights, _column(found, name), strict=True))


class _Fit(NamedTuple):
    """How well the likelihood fits."""

    dispersion: float
    deviance: float
    log_likelihood: float
    degrees: float  # of freedom, of Student's t
    is_known: bool  # the dispersion, without an estimate


def _fit(loss: Any, found: ClientInformation, weights: Sequence[float], units: _Units, at: Covariances) -> _Fit:
    """Return what the sums of the clients say of a loss that is a likelihood."""
    names = ("deviance", "pearson", "log_base")
    deviance, pearson, base = (units.scale * _weighted(found, name, weights) for name in names)
    if not hasattr(loss, "pearson"):
        return _Fit(1.0, deviance, base - 0.5 * deviance, math.inf, True)
    residual = units.rows - 2.0 * at.parameters + at.parameters_squared
    few = f"objective has {units.rows:g} rows, too few for a dispersion beside {at.parameters:.4g} parameters"
    require(residual > ROUNDING * units.rows, few)
    largest = base + _largest_log_likelihood(loss, units.rows, deviance)
    return _Fit(pearson / residual, deviance, largest, residual, False)


def _largest_log_likelihood(loss: Any, n: float, deviance: float) -> float:
    """Return the largest ``n normaliser(s) - deviance / (2 s)`` over the dispersion ``s``.

    The search is by the golden section in ``log s`` about the deviance over ``n``, which is the answer for the normal
    distribution. It finds ``s`` to the root of the rounding, and so the value to the rounding.
    """
    if not deviance > 0.0:
        return math.inf

    def at(log_s: float) -> float:
        s = math.exp(log_s)
        return n * loss.normaliser(s) - 0.5 * deviance / s

    ratio = 0.5 * (math.sqrt(5.0) - 1.0)
    centre = math.log(deviance / n)
    low, high = centre - 5.0, centre + 5.0
    while high - low > 1e-9:
        a, b = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (a, high) if at(a) < at(b) else (low, b)
    return at(0.5 * (low + high))


def _names(model: LinearModel, names: Sequence[str] | None) -> tuple[str, ...]:
    """Return a name for each number of the model."""
    k, p = model.loss.outputs, model.n_features
    given = names if names is not None else model.feature_names
    columns = [f"x{i + 1}" for i in range(p)] if given is None else list(map(str, given))
    fits = len(columns) in (p, p - 1)
    require(fits, f"names must be those of the {p} columns, or of all but the last one", len(columns))
    columns += ["intercept"] * (p - len(columns))
    if k == 1:
        return tuple(columns)
    classes = model.classes or range(k)
    return tuple(f"{label}: {column}" for label in classes for column in columns)
