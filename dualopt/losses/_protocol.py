"""The interface of losses."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, runtime_checkable

from dualopt.arrays.xp import Array

__all__ = ["Loss"]


@runtime_checkable
class Loss(Protocol):
    r"""A convex function :math:`\phi(z; y)` of a linear predictor and a label, applied row by row.

    Rows lie on the last axis, and any axes may stand in front of it: ``z`` and ``y`` have shape ``(..., m)``.
    A loss with several outputs (``outputs = k > 1``) takes ``z`` of shape ``(..., k, m)``; its classes lie on
    axis -2, so that operations on all rows of a class run over contiguous memory. Labels stay ``(..., m)``.

    Every method is pure: it takes arrays of one library that follows the Array API standard, changes none of
    them, and returns arrays of the same library, floating-point type and device as ``z`` (or ``u``). Labels
    are trusted, because checking them in every call would cost more than the loss itself. Results are finite
    and right, without warnings, for predictors as large as 1e4 in single and double precision: for ``z`` as given,
    values and slopes (in the norm of the outputs) are within ``16 eps`` of their sizes, for ``"class"`` labels within
    ``(16 + k) eps (1 + size)``. Certificates rest on that, on :math:`\phi \ge 0` and on ``lipschitz``.

    Some losses have more. ``label_domain = "nonnegative"`` or ``"positive"`` says which real labels there are.
    ``differentiable = True`` says that a loss of infinite ``curvature`` has no kink: solvers that search along lines
    take it, those that need a constant do not. ``kink_at_label = True`` says that the loss is linear on both sides of
    its one kink, ``z = y``. ``rounding(z, y)`` returns bounds of the errors of computed values and slopes, two arrays
    ``(..., m)``, where they are larger than above because values or slopes are differences of larger terms; it is
    asked where neither ``curvature`` nor ``lipschitz`` is finite. ``mean(z)`` returns what is predicted, where that is
    not the predictor itself; ``link = "log"`` says that it is the exponential, so that rows may have exposures.
    ``of_differences = True`` says that the loss depends on ``z - y`` alone. ``hessian_sum(z, y, w)``, of a loss of
    several outputs, returns :math:`\sum_i w_i \nabla^2\phi(z_i; y_i)` over the rows, shape ``(..., k, k)``: local
    solvers learn from it which outputs are curved.

    Attributes
    ----------
    labels : {"real", "binary", "class"}
        What ``y`` holds: real numbers; ``-1.0`` and ``+1.0``; or integers ``0, ..., k - 1``. Real and binary
        labels have the floating-point type of ``z``.
    nonnegative : bool
        Whether :math:`\phi \ge 0` everywhere, so that zero is a lower bound of any sum of losses.
    example : dict
        Arguments that construct an instance, for programs that try every loss; empty if all have defaults.
    outputs : int
        Number of predictors per row: 1, or the number of classes.
    curvature : float
        The smallest ``c`` with :math:`0 \preceq \nabla^2\phi \preceq c I`, ``math.inf`` for a nonsmooth loss.
    lipschitz : float
        The largest norm of a subgradient, ``math.inf`` where there is none.

    A loss of several outputs may say ``shift_invariant = True``, that :math:`\phi(z + c\mathbf 1; y) = \phi(z; y)` for
    all numbers ``c``: then intercepts without penalty are certified up to such a number.

    Notes
    -----
    Two more members say how a trained model predicts (:class:`dualopt.Model`), and a loss need not have them.
    ``mean(z)``, of a loss that is a negative log-likelihood, returns the mean of the label at the predictor: of real
    labels that of the number; of binary ones the probability of +1; of classes all their probabilities, shape
    ``(..., k, m)``. Then :math:`\nabla_z\phi(z; y)` has the mean 0 over ``y``. Without it, real labels are predicted by
    ``z`` itself, and there are no probabilities. ``sklearn`` names the estimator of scikit-learn that predicts in the
    same way, such as ``"linear_model.Ridge"``.

    **Likelihoods.** A loss that is the negative log-likelihood of a label in units of a dispersion ``s``, up to what
    does not depend on ``z``, says so by further members, which `dualopt.inference` reads:

    .. math:: \log p(y \mid z) = \text{log\_base}(y) + \text{normaliser}(s)
              - \bigl(\phi(z; y) - \min_x \phi(x; y)\bigr) / s

    ``family``, a word such as "binomial"; ``log_base(y)``, shape ``(..., m)``; where ``exp(theta)`` has a name,
    ``ratio``, such as "odds ratio" or "rate ratio". Where the dispersion is known, it is 1 and the normaliser 0. Else
    ``normaliser(dispersion)``, a number for each row, and ``pearson(z, y)``, the squared residuals over the variance
    function, shape ``(..., m)``, whose mean has the expectation ``s``.

    **Bounds of third derivatives.** ``self_concordance``, the smallest ``M`` with
    :math:`|\nabla^3\phi(z)[v, h, h]| \le M |v| \, \nabla^2\phi(z)[h, h]` (Bach 2010, "Self-concordant analysis for
    logistic regression"), so that :math:`e^{-M|v|}\nabla^2\phi(z) \preceq \nabla^2\phi(z + v) \preceq
    e^{M|v|}\nabla^2\phi(z)`; a loss without such an ``M`` has no such member.

    Examples
    --------
    >>> from dualopt.losses import Hinge, Loss
    >>> isinstance(Hinge(), Loss)
    True
    """

    labels: ClassVar[str]
    nonnegative: ClassVar[bool]
    example: ClassVar[dict[str, Any]]

    @property
    def outputs(self) -> int:
        """Number of predictors per row."""
        ...

    @property
    def curvature(self) -> float:
        """Smallest upper bound of the second derivative."""
        ...

    @property
    def lipschitz(self) -> float:
        """Smallest upper bound of the norm of subgradients."""
        ...

    def value(self, z: Array, y: Array) -> Array:
        r"""Compute :math:`\phi(z; y)`, one number per row, shape ``(..., m)``."""
        ...

    def gradient(self, z: Array, y: Array) -> Array:
        r"""Compute :math:`\nabla_z \phi(z; y)`, shape of ``z``; at a kink, the subgradient that is named."""
        ...

    def value_and_gradient(self, z: Array, y: Array) -> tuple[Array, Array]:
        """Compute ``value`` and ``gradient`` in one pass, sharing what both need."""
        ...

    def hessian_product(self, z: Array, y: Array, v: Array) -> Array:
        r"""Compute :math:`\nabla^2_z \phi(z; y)\, v` for ``v`` of the shape of ``z``.

        Where the second derivative does not exist, the class names the value it takes; for a piecewise linear
        loss it is zero everywhere.
        """
        ...

    def conjugate(self, u: Array, y: Array) -> Array:
        r"""Compute :math:`\phi^*(u; y) = \sup_z \langle u, z \rangle - \phi(z; y)`, shape ``(..., m)``.

        The result is ``+inf`` where ``u`` lies outside the domain. A gradient that left the domain by
        rounding still counts as inside: within a few units of rounding, which each class states, the nearest
        point of the domain is taken.
        """
        ...

    def prox(self, z: Array, y: Array, step: float | Array) -> Array:
        r"""Compute :math:`\operatorname{argmin}_x \phi(x; y) + |x - z|^2/(2\,\mathrm{step})`, shape of ``z``.

        ``step`` is a positive number, or an array of them that broadcasts against the rows ``(..., m)``. In
        double precision the error is within a small multiple of ``1e-16 * (|z| + step)``.

        Raises
        ------
        ValueError
            If a step is not positive and finite.
        """
        ...

    def cvxpy(self, z: Any, y: Any) -> Any:
        """Return the loss of every row as a CVXPY expression, for independent reference solutions.

        ``z`` is a CVXPY expression of shape ``(m,)`` or ``(k, m)``, ``y`` a host array.
        """
        ...
