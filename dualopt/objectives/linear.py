"""Regularised linear models: any loss of a linear predictor, rows held by clients of any sizes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

from dualopt.arrays._checks import is_flag, is_number, require
from dualopt.arrays.communicator import ALONE, Communicator
from dualopt.arrays.xp import (
    Array,
    array_namespace,
    at_once,
    device,
    epsilon,
    is_sparse,
    is_traced,
    largest,
    reshape,
    to_numpy,
)
from dualopt.losses import Loss, Squared
from dualopt.losses._offset import WithOffset, label_and_offset, with_offset
from dualopt.objectives._rounding import Rounding, client_norm, gamma, tiny
from dualopt.objectives._row_inputs import row_sums
from dualopt.objectives._weights import as_client_weights, kind_of_weights
from dualopt.objectives.finite_sum import FiniteSum
from dualopt.objectives.local_problem import LocalProblem
from dualopt.objectives.objective import pass_on
from dualopt.objectives.rows import Block, ClientBlock, ClientRows
from dualopt.problem.inputs import Inputs, OffsetOrigin, as_offset, prepare, require_takes, row_weights, without_column
from dualopt.spec import Spec, built, described, required

__all__ = ["PRECISIONS", "LinearModel", "kind_of_intercept", "linear_model"]

TYPICAL_ROWS = 256  # of a client, whose mean curvature stands for that of all
LEAST_BEND = 1e-3  # times the typical curvature: no output counts as flatter
LARGEST_SIDE = 2**10  # of Gram matrices whose eigenvectors are kept: they take twice the time of an inverse
SHOWN = 3  # names in the text that stands for a model
PRECISIONS = ("double", "mixed")  # of local solvers
COMPUTED = ("L", "_norms", "_offset_norms")  # once per client, and kept by ``select``

KEPT = ("mu", "partial_mu", "proven_mu", "mean_mu", "shares", "rows.blocks")  # what else is computed of the data once


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearModel(FiniteSum):
    r"""Regularised linear models of ``N`` clients.

    .. math:: f_j(\theta) = \sum_{i=1}^{m_j} w_{ji}\, \phi(\theta x_{ji};\, y_{ji}) + \tfrac{\text{ridge}}{2} |\theta|^2

    The ridge acts on all weights, the intercept included unless it is free. Use :func:`linear_model` to build one from
    rows.

    Attributes
    ----------
    loss : Loss
        ``phi``.
    ridge : float
        Weight of the squared norm; the strong convexity constant ``mu`` of every ``f_j`` without a free intercept.
    rows : ClientRows
        Features ``x_ji``, labels ``y_ji`` and weights ``w_ji``.
    weights : tuple of float, optional
        The weights ``w_j`` of the clients in ``E``; all are 1 when not given.
    free_intercept : bool
        Whether the weights of the last column, of ones, are not in the norm.
    offset : OffsetOrigin, optional
        Where the offsets come from that the labels hold.
    classes : tuple, optional
        The labels that were encoded, in the order of their codes (for a binary loss those of -1 and +1); None where
        labels were codes already.
    feature_names, client_names : tuple, optional
        The names of columns and clients, where data had some.
    intercept : bool
        Whether the last column is the constant one that :func:`linear_model` appends.
    precision : "double" or "mixed"
        Whether local solvers work in single precision where they can (`dualopt.solvers._mixed`).

    Examples
    --------
    >>> import numpy as np
    >>> f = linear_model(np.eye(3), np.array([1.0, 2.0, 3.0]), loss=Squared(), mu=0.1, intercept=False)
    >>> f.sample_gradient(np.zeros(3), (np.array([2, 2]),)).tolist()
    [[0.0, 0.0, -3.0]]
    """

    computed_once = (*COMPUTED, *KEPT)

    loss: Loss
    ridge: float
    rows: ClientRows
    weights: tuple[float, ...] | None = None
    free_intercept: bool = False
    offset: OffsetOrigin | None = None
    classes: tuple[Any, ...] | None = None
    feature_names: tuple[str, ...] | None = None
    client_names: tuple[Any, ...] | None = None
    intercept: bool = False
    precision: str = "double"

    def __repr__(self) -> str:
        """Say what there is; names are counted from the fourth on."""
        found = [f"loss={self.loss!r}", f"ridge={self.ridge!r}", f"rows={self.rows!r}"]
        for name in ("classes", "feature_names", "client_names"):
            if (values := getattr(self, name)) is not None:
                more = f", ... {len(values)} in all" if len(values) > SHOWN else ""
                found.append(f"{name}=({', '.join(map(repr, values[:SHOWN]))}{more})")
        return f"{type(self).__name__}({', '.join(found)})"

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Shape of ``theta``: ``(p,)``, or ``(k, p)`` for a loss of ``k`` outputs."""
        return self._form[1:] if self._form[0] == 1 else self._form

    @cached_property
    def _form(self) -> tuple[int, int]:
        """Outputs of the loss and columns."""
        return self.loss.outputs, self.n_features

    @cached_property
    def mu(self) -> Array:
        """Strong convexity constants, all equal to ``ridge``, or 0 with a free intercept, shape ``(N,)``."""
        return self._everywhere(0.0 if self.free_intercept else self.ridge)

    @cached_property
    def partial_mu(self) -> Array:
        """Those in all but a free intercept, all equal to ``ridge``, shape ``(N,)``."""
        return self._everywhere(self.ridge)

    @property
    def kink_at_label(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether the loss has one kink, at the label."""
        return getattr(self.loss, "kink_at_label", False)

    @property
    def nonnegative(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether the loss is at least 0."""
        return self.loss.nonnegative

    @property
    def shift_invariant(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether the loss is one of the differences of its outputs."""
        return getattr(self.loss, "shift_invariant", False)

    @cached_property
    def L(self) -> Array:
        r"""Smoothness constants ``curvature * lambda_max(X_j' W_j X_j) + ridge``, shape ``(N,)``."""
        if not math.isfinite(self.loss.curvature):
            return self._everywhere(math.inf)
        parts = ((part.block.clients, (group.largest_eigenvalues(part),)) for group, part in self.rows.parts)
        return self.loss.curvature * self.rows.assemble(parts)[0] + self.ridge

    @property
    def moment_traces(self) -> Array:
        """The traces of ``X_j' W_j X_j``, shape ``(N,)``."""
        return self._norms[:, 0] ** 2

    @property
    def longest_rows(self) -> Array:
        """Upper bounds of the ``|x_ji|`` of each client, shape ``(N,)``."""
        return math.sqrt(self.n_features) * self._norms[:, 2]

    def rounding(self, theta: Array, value: Array, gradient: Array, excess: Array | None = None) -> Rounding:
        r"""Bound the errors of values and gradients by those of the predictors, the losses and the sums.

        A predictor :math:`\hat z` differs from :math:`z = \theta x` by at most :math:`\gamma_p |\theta| |x|`, and with
        an offset ``o`` by :math:`\gamma_{p+2} |\theta| |x| + \gamma_2 |o|`. With
        slopes ``s`` of the losses at :math:`\hat z`, convexity bounds what that does to the value and to the linear
        lower bound by :math:`\sum_i w_i |s_i| |\hat z_i - z_i|` each, and the curvature ``c`` of the losses adds
        :math:`\frac c2 \sum_i w_i |\hat z_i - z_i|^2` at most. By the inequality of Cauchy and Schwarz,

        .. math:: \sum_i w_i |s_i| |x_i| \le S X, \quad X^2 = \sum_i w_i |x_i|^2, \quad
                  S^2 = \sum_i w_i |s_i|^2 \le \min(\text{lipschitz}^2 W,\; 2 c f_j), \quad W = \sum_i w_i,

        where :math:`|\phi'|^2 \le 2 c \phi` because losses are not negative. The sums over the rows are right to
        :math:`\gamma_m` of the terms, and the losses as :class:`dualopt.losses.Loss` promises. A dual solver's slopes
        ``u`` have :math:`|u_i - s_i|^2 \le 2 c` times the share of row ``i`` in the ``excess``.

        Where neither ``c`` nor the slopes are bounded one more pass over the rows takes the place of all that: slopes
        grow with the predictor, so that those at both ends of the interval in which it may lie bound the change of the
        value. Subgradients of dual solvers have no bound then.
        """
        if math.isinf(self.loss.lipschitz) and math.isinf(self.loss.curvature):
            return self._rounding_of_rows(theta, value, excess)
        xp, loss, eps = array_namespace(value), self.loss, epsilon(value)
        X, weight, largest = (self._norms[:, i] for i in range(3))
        size, k, p, m = client_norm(self._points(theta)), loss.outputs, self.n_features, self.rows.max_rows
        least, entries = tiny(value), k * p
        unit = (16 + k) * eps if loss.labels == "class" else 0.0  # see Loss
        f = xp.abs(value) + (unit + least) * weight * weight
        f = f if loss.nonnegative else math.inf * xp.ones_like(f)  # then nothing bounds the terms
        slope = loss.lipschitz * weight
        if math.isfinite(loss.curvature):
            root = xp.sqrt(f) if excess is None else xp.sqrt(f) + xp.sqrt(excess)
            slope = xp.minimum(slope, math.sqrt(2.0 * loss.curvature) * root)
        shift = gamma(p + 2, value) * X * size + gamma(2, value) * self._offset_norms + p * least * weight
        values = slope * shift + gamma(m + k + 40, value) * f + unit * weight * weight
        values = values + 0.5 * gamma(entries + 2, value) * self.ridge * size * size
        if math.isfinite(loss.curvature):
            values = values + 0.5 * loss.curvature * shift * shift
        slopes = gamma(m + k + 20, value) * slope * X + unit * weight * X + 4.0 * eps * self.ridge * size
        lost = least * (m + entries) * (1.0 + self.ridge) * (1.0 + weight * X + largest)
        return Rounding(values + lost * (1.0 + weight * weight), slopes + lost)

    def _rounding_of_rows(self, theta: Array, value: Array, excess: Array | None) -> Rounding:
        """Bound the same by slopes at the ends of the intervals of the predictors, row by row."""
        xp, loss, p, m = array_namespace(value), self.loss, self.n_features, self.rows.max_rows
        eps, least = epsilon(value), tiny(value)
        points, weight, longest = self._points(theta), self._norms[:, 1], self.longest_rows
        size = client_norm(points)
        shifts = gamma(p + 2, value) * longest * size + p * least

        def one(block: Block, points: Array) -> tuple[Array, Array, Array, Array]:
            z, _ = self._predictors(points, block)
            offset = xp.abs(label_and_offset(block.y)[1] + 0.0 * z)
            shift = block.points(shifts)[:, None] + gamma(2, value) * offset
            steep = xp.maximum(*(xp.abs(loss.gradient(end, block.y)) for end in (z - shift, z + shift)))
            phi, slope = loss.value_and_gradient(z, block.y)
            own = getattr(loss, "rounding", lambda z, y: (16.0 * eps * phi, 16.0 * eps * xp.abs(slope)))
            sizes = xp.abs(slope), steep * shift, *own(z, block.y)
            slopes, moved, value_error, slope_error = (xp.vecdot(block.w, x) for x in sizes)
            return slopes, moved, value_error, slope_error

        slopes, moved, value_error, slope_error = self.rows.sum(one, points)
        values = moved + value_error + gamma(m + 40, value) * xp.abs(value)
        values = values + 0.5 * gamma(p + 2, value) * self.ridge * size * size
        gradients = longest * (slope_error + gamma(m + 20, value) * slopes) + 4.0 * eps * self.ridge * size
        lost = least * (m + p) * (1.0 + self.ridge) * (1.0 + weight * longest + longest)
        known = math.inf if excess is not None or not loss.nonnegative else 1.0
        return Rounding(known * (values + lost * (1.0 + weight * weight)), known * (gradients + lost))

    @property
    def offers(self) -> frozenset[str]:
        """Samples and approximate inverses; Hessians of losses without kinks, exact solutions for the squared loss."""
        loss, more = self.loss, set()
        if math.isfinite(loss.curvature) or getattr(loss, "differentiable", False):
            more.add("hessian")
        if isinstance(loss, Squared) and not self.free_intercept:
            more.add("exact")
        if hasattr(loss, "hessian_sum") and self._side <= LARGEST_SIDE:
            more.add("curvatures")
        if self.precision == "mixed" and math.isfinite(loss.curvature):
            more.add("remainder")
        return frozenset({"samples", "preconditioner"} | more)

    @property
    def _side(self) -> int:
        """The side of the largest Gram matrix of the federation."""
        return min(self.rows.max_rows, self.n_features)

    def hessian_product(self, theta: Array, v: Array) -> Array:
        """Return ``hess f_j(theta_j) v_j``, shape ``(N, *shape)``."""
        return self.hessian_operator(theta)(v)

    def hessian_operator(self, theta: Array) -> Callable[[Array], Array]:
        """Return ``v -> hess f_j(theta_j) v_j``; the predictors of ``theta`` are computed once."""
        theta = self._points(theta)
        blocks = self.rows.blocks
        predictors = [self._predictors(block.points(theta), block)[0] for block in blocks]

        def product(v: Array) -> Array:
            v = self._points(v)
            at_theta = iter(predictors)  # in the order of the blocks, in which they are added

            def one(block: Block, points: Array) -> tuple[Array]:
                z, _ = self._predictors(points, block)
                slope = self.loss.hessian_product(next(at_theta), block.y, z)
                return (block.pull_back(self._weighted(slope, block)),)

            return self._shaped(self.rows.sum(one, v, finish=self._finish)[0])

        return product

    def curvatures(self, theta: Array | None = None) -> tuple[Array, Array]:
        r"""Return eigenvalues ``(N, k)`` and eigenvectors ``(N, k, k)`` of what stands for Hessians of the loss.

        They are of :math:`(cH_j)^{1/2}`, the geometric mean of ``c``, a fifth of the largest curvature, and
        :math:`H_j = \sum_iw_{ji} \nabla^2\phi(z_{ji}) / \sum_iw_{ji}` at the predictors of ``theta_j``, over
        ``TYPICAL_ROWS`` rows of each client at most, in equal distances; eigenvalues of ``H_j`` below
        ``LEAST_BEND c`` are raised to that. Without a point ``c`` stands for all.

        Most classes are almost flat for a client that has few of them. ``H_j`` alone is better still where a proximal
        term is large, and worse than ``c`` where ridges are small, because rows differ: gradients in so many rounds,
        power 0 (``c``), 1/2 and 1 (``1.4 H_j``), MNIST with 6000 rows but for digits:

        ================================  ====  ====  ====
        method, clients, rounds           0     1/2   1
        ================================  ====  ====  ====
        AndersonFedSplit, by label, 20    185   120   110
        DualFL, by label, 25              161    92   103
        DualFL, Dirichlet, 26             676   732   781
        DualFL, digits, mu = 1e-3, 50     431   185   276
        ================================  ====  ====  ====
        """
        k, like = self.loss.outputs, self.rows.like
        xp = array_namespace(like)
        if theta is None:
            identity = xp.eye(k, dtype=like.dtype, device=device(like))
            every = (xp.full((k,), self._typical, dtype=like.dtype, device=device(like)), identity)
            return tuple(xp.tile(x[None, ...], (self.n_clients,) + (1,) * x.ndim) for x in every)  # pyright: ignore
        theta, loss = self._points(theta), self.loss

        def typical(block: Block) -> tuple[Array, Array]:
            some = slice(None, None, self._stride(block.y.shape[1]))
            if self.rows.is_sparse:  # rows are not picked out of blocks of these
                z, y, w = self._predictors(block.points(theta), block)[0][..., some], block.y[:, some], block.w[:, some]
            else:
                block = block.rows(some)
                z, y, w = self._predictors(block.points(theta), block)[0], block.y, block.w
            total = xp.sum(w, axis=-1)[:, None, None]
            found = loss.hessian_sum(z, y, w)  # pyright: ignore[reportAttributeAccessIssue]
            values, vectors = xp.linalg.eigh(found / xp.where(total > 0, total, 1.0))
            least = LEAST_BEND * self._typical * xp.ones_like(values)
            return xp.sqrt(self._typical * xp.maximum(values, least)), vectors

        found = self.rows.assemble((part.block.clients, typical(part.block)) for _, part in self.rows.parts)
        return found[0], found[1]

    @property
    def curvature_costs(self) -> tuple[float, ...]:
        """The gradients that curvatures take: half of one for all rows, and less for some dense ones."""
        return tuple(0.5 if self.rows.is_sparse else 0.5 * -(-m // self._stride(m)) / m for m in self.sizes)

    @cached_property
    def _preconditioners_in_single(self) -> dict[bytes, list[tuple[ClientBlock, Callable[[Array], Array]]]]:
        """Those of the remainders, whose points do not matter for them."""
        return {}

    @cached_property
    def _product_roundings(self) -> Array:
        """The numbers of `Remainder.rounding_of_products` that are the same at all points, shape ``(N,)``."""
        parts = ((part.block.clients, (largest(part.block.w, axis=-1),)) for _, part in self.rows.parts)
        heaviest, xp = self.rows.assemble(parts)[0], array_namespace(self.mu)
        return self.loss.curvature * self.longest_rows * xp.sqrt(self.n_features * heaviest * self.moment_traces)

    @staticmethod
    def _stride(rows: int) -> int:
        return -(-rows // TYPICAL_ROWS)

    def preconditioner(
        self, weight: float | Array = 0.0, curvatures: tuple[Array, Array] | None = None
    ) -> Callable[[Array], Array]:
        r"""Return ``v -> (0.2 curvature X_j' W_j X_j + (ridge + weight_j) I)^{-1} v_j``.

        With `curvatures`, matrices ``C_j`` of the outputs, it is :math:`(C_j \otimes X_j'W_jX_j + (\text{ridge} +
        \text{weight}_j)I)^{-1}` instead, by the eigenvectors of ``X_j' W_j X_j``, which are kept.

        A fifth of the largest curvature is a typical one along a path: on MNIST, 0.1 X'WX needs fewer gradients
        than half or twice as much. The inverse is computed at first use and kept with the data of the client; it is
        ``p x p`` when the client has at least ``p`` rows and ``m_j x m_j`` otherwise, so that it never needs
        more memory than the data. A ridge below 1e-6 times the largest eigenvalue of ``X_j' W_j X_j`` is raised to that
        number, because without strong convexity the matrix may be singular.
        """
        if curvatures is not None:
            return self._curved(self._ridges(weight), *curvatures)
        if is_traced(weight):  # no inverse can be kept
            return self._curved(self._ridges(weight), *self.curvatures())
        fraction = self._typical
        ridges = self._ridges(weight) / fraction
        if (key := ridges.tobytes()) not in self._preconditioners:
            while len(self._preconditioners) > 1:  # the latest two
                del self._preconditioners[next(iter(self._preconditioners))]
            self._preconditioners[key] = at_once(
                lambda: [
                    (part, group.preconditioner_product(part, ridges[part.block.clients.ids]))
                    for group, part in self.rows.parts
                ]
            )
        products = self._preconditioners[key]
        return lambda v: self._by_parts(products, v, lambda found: found / fraction)

    def _curved(self, ridges: Array, bends: Array, outputs: Array) -> Callable[[Array], Array]:
        products = []
        for group, part in self.rows.parts:
            own = part.block.clients
            product = group.curved_product(part, own.take(bends), own.take(outputs), ridges[own.ids])  # pyright: ignore
            products.append((part, product))
        return lambda v: self._by_parts(products, v, lambda found: found)

    def _by_parts(
        self, products: Sequence[tuple[ClientBlock, Any]], v: Array, final: Callable[[Array], Array]
    ) -> Array:
        v = self._points(v)
        results = ((part.block.clients, (final(product(part.block.points(v))),)) for part, product in products)
        return self._shaped(self.rows.assemble(results)[0])

    @property
    def _typical(self) -> float:
        """A curvature of the loss that is typical of a path."""
        return 0.2 * (self.loss.curvature if math.isfinite(self.loss.curvature) else 1.0)

    def exact_minimiser(self, problem: LocalProblem) -> Array:
        """Solve the normal equations of local problems with the squared loss, shape ``(N, *shape)``.

        Raises
        ------
        ValueError
            If the loss is another one, or ``mu + weight`` is not positive.
        """
        if not isinstance(self.loss, Squared):
            raise ValueError(f"solver 'exact' needs quadratic local problems, and the loss {self.loss} is not squared.")
        if self.free_intercept:
            raise ValueError("solver 'exact' needs a ridge on all columns, an intercept among them.")
        ridges = self._ridges(problem.weight)
        if not ridges.min() > 0:
            raise ValueError(f"solver 'exact' needs mu + weight > 0 for a linear model, not {ridges.min()}.")
        linear = self._points(problem.linear_term())

        def solved(group: Any, part: ClientBlock) -> Array:
            right = group.label_moments(part)[:, None, :] - part.block.points(linear)
            return group.ridge_inverse_product(part, ridges[part.block.clients.ids])(right)

        parts = ((part.block.clients, (solved(group, part),)) for group, part in self.rows.parts)
        return self._shaped(self.rows.assemble(parts)[0])

    def select(self, ids: Sequence[int]) -> Self:
        """Return the objective of the clients ``ids``; data, cached factors and known constants are shared."""
        chosen = super().select(ids)
        if chosen is not self:
            if self.client_names is not None:
                chosen = replace(chosen, client_names=tuple(self.client_names[i] for i in ids))
            pass_on(COMPUTED, self, chosen, ids)
        return chosen

    @cached_property
    def _preconditioners(self) -> dict[bytes, list[tuple[ClientBlock, Callable[[Array], Array]]]]:
        """The products of the parts, by the ridges."""
        return {}

    @cached_property
    def _norms(self) -> Array:
        parts = ((part.block.clients, (group.client_norms(part),)) for group, part in self.rows.parts)
        return self.rows.assemble(parts)[0]

    @cached_property
    def _offset_norms(self) -> Array:
        """The roots of the sums of ``w_ji o_ji^2``, shape ``(N,)``."""
        if not isinstance(self.loss, WithOffset):
            return self._everywhere(0.0)

        def norms(block: Block) -> Array:
            offset: Any = label_and_offset(block.y)[1]
            return array_namespace(offset).sqrt(array_namespace(offset).vecdot(block.w, offset * offset))

        parts = ((part.block.clients, (norms(part.block),)) for _, part in self.rows.parts)
        return self.rows.assemble(parts)[0]

    def _ridges(self, weight: float | Array) -> Array:
        """Return ``ridge + weight_j`` of every client, a host array."""
        if is_traced(weight):
            return self.ridge + weight
        host = array_namespace(self.rows.group)
        number = isinstance(weight, float | int)
        return self.ridge + (
            host.full(self.n_clients, float(weight)) if number else host.astype(to_numpy(weight), host.float64)
        )

    def _everywhere(self, number: float) -> Array:
        like = self.rows.like
        return array_namespace(like).full((self.n_clients,), number, dtype=like.dtype, device=device(like))

    def _points(self, theta: Array) -> Array:
        """Bring ``(N, *shape)`` or ``shape`` to ``(N, k, p)`` or ``(1, k, p)``."""
        theta = self._stacked(theta)
        return reshape(theta, (theta.shape[0], *self._form))

    def _forward(self, points: Array, block: Block) -> tuple[Array, None]:
        return block.predict(points), None

    def _backward(self, points: Array, block: Block, way: None, slopes: Array) -> Array:
        return block.pull_back(slopes)


def linear_model(
    X: Any,
    y: Any,
    *,
    loss: Loss | str,
    mu: float,
    clients: Any = 1,
    intercept: bool | str = True,
    weights: Any = None,
    sample_weight: Any = None,
    class_weight: Any = None,
    offset: Any = None,
    exposure: Any = None,
    client_weights: Any = "equal",
    storage: str = "auto",
    copy: bool = True,
    precision: str = "double",
    peers: Communicator = ALONE,
) -> LinearModel:
    r"""Build a :class:`LinearModel` from rows and a partition.

    Everything is computed in one type, that of ``X``: float32 stays float32, float16 becomes float32, whatever else
    float64; labels and weights follow, whatever their type. Arrays stay in their library and on their device.

    Parameters
    ----------
    X : matrix, shape (m, d)
        Features: lists, an array of any library, a sparse matrix of SciPy or CuPy, a DataFrame of any library that
        narwhals knows (``pip install "dualopt[frames]"``), or anything that NumPy can read or that exports DLPack. Rows
        are copied, but for those of a file that is mapped, ``numpy.load(path, mmap_mode="r")``, where the rows of
        clients of one size lie one after the other and there is no ``intercept``: the file has no column of ones.
    y : vector, shape (m,), or str
        Labels; of a DataFrame, the name of a column. What is encoded stays: -1 and +1 for a binary loss, integers from
        0 to k - 1 for one of k classes. Other labels, such as 0 and 1, truth values or words, are numbered in their
        order, and kept as ``classes``.
    loss : Loss or str
        ``phi``, or its name, such as "logistic"; "multinomial" counts the labels.
    mu : float
        Weight of the ridge, at least 0.
    clients : int, sequence of integer sequences or of masks, dict, vector of shape (m,), or str
        A number ``N`` cuts the rows into ``N`` consecutive clients. Or the rows of each client, in a dict with its
        name: their indices, or a truth value for each of the ``m`` rows. Or the name of the client of each row,
        anything hashable: clients are in the order of their names where they have one, else as they occur. Of a
        DataFrame, also the name of a column.
    intercept : bool or {"penalised", "free", "none"}, default True
        Whether to append a constant column of ones. Its weight is in the ridge too, as in the paper ("penalised",
        True), or not ("free"): then no client is strongly convex, so that theorems which need it do not apply, and
        methods whose parameters rest on it refuse.
    weights : vector of shape (m,), optional
        The weights ``w_ji`` of the rows inside their client; ``1/m_j`` when not given, the mean over its rows.
    sample_weight : vector of shape (m,) or str, optional
        What each row counts, :math:`s_{ji} \ge 0`: the ``w_ji`` are :math:`s_{ji} / \sum_i s_{ji}`, so that a row of
        weight 2 is the same as the row twice. Of a DataFrame, also the name of a column.
    class_weight : "balanced" or dict, optional
        What the rows of each class count, by the label, beside ``sample_weight``; ``"balanced"``: as much as those of
        every other class (`dualopt.problem.inputs.row_weights`).
    offset : vector of shape (m,), or str, optional
        Numbers ``o_i`` that are added to the predictors, ``phi(theta x_i + o_i; y_i)``; of a DataFrame, the name of a
        column. For losses of ``z - y`` labels become ``y_i - o_i``; for others they are complex numbers
        ``y_i + i o_i`` from here on, and the loss is `WithOffset`. Losses with a predictor for each class refuse it.
    exposure : vector of shape (m,), or str, optional
        Positive numbers ``t_i``, such as days under observation, for "poisson" and "gamma", whose means are
        ``t_i exp(theta x_i)`` then: the offset ``log(t_i)``.
    client_weights : "equal", "rows", numbers or dict, default "equal"
        The weights ``w_j`` of the clients in ``E = sum_j w_j f_j / sum_j w_j``, one number for each client, or for each
        of their names. ``"rows"`` is ``m_j``, or the sum of what its rows count: the data part of ``E`` is the mean
        over all rows then. Every ``f_j`` has the whole ridge whatever its weight, and so has ``E``.
    storage : "auto", "sparse" or "dense"
        How features are kept; by default dense ones as they are, and sparse ones in the way in which gradients are
        faster. Every method works with both. Products with dense NumPy features of four million numbers and more are
        compiled where Numba is installed (``pip install "dualopt[fast]"``) and the loss has 2 to 20 outputs: the same
        to rounding, in a third to a half of the time. The environment variable ``DUALOPT_FAST=0`` switches that off,
        1 does it for small data, too.
    copy : bool, default True
        Whether rows are copied. If not, dense ones without an ``intercept`` are used where they are, as long as those
        of the clients of one size lie one after the other: ``X`` must not change any more.
    precision : "double" or "mixed", default "double"
        Of the local work: "mixed" keeps a copy of the rows in single precision, in which local solvers minimise where
        they can tell by it whether their stopping rule holds. Models, values, states and certificates are in double
        precision all the same. For large dense data (`docs/benchmarks.md` says when it pays).
    peers : Communicator, optional
        The processes that hold the other clients, such as ``dualopt.engine.MPI()``; all of them call this function,
        each with its own rows and clients. What depends on all rows, such as the storage, is agreed among them.
        The loss has its number of classes then, and ``y`` is encoded.

    Raises
    ------
    ValueError
        If an argument does not fit, with one sentence that names it.
    ModuleNotFoundError
        If a DataFrame needs a package that is missing.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.losses import Squared
    >>> f = linear_model(np.eye(3), np.array([1.0, 2.0, 3.0]), loss=Squared(), mu=0.1, clients=[[0, 1], [2]])
    >>> f.n_clients, f.shape, f.value(f.zeros()).tolist()
    (2, (4,), [1.25, 4.5])
    >>> h = linear_model(np.zeros((3, 1)), [4, 0, 2], loss="poisson", mu=0.1, exposure=[2.0, 1.0, 4.0])
    >>> h.gradient(h.zeros())[0, -1].round(6).tolist()  # the mean of exposures less counts
    0.333333
    >>> X, y = [[1, 0], [0, 1], [1, 1]], ["no", "yes", "yes"]
    >>> g = linear_model(X, y, loss="logistic", mu=0.1, clients=["b", "a", "b"])
    >>> g.classes, g.client_names, g.sizes
    (('no', 'yes'), ('a', 'b'), (1, 2))
    """
    if not (is_number(mu) and math.isfinite(mu) and mu >= 0):
        raise ValueError(f"mu must be a finite number, at least 0, not {mu}.")
    intercept = kind_of_intercept(intercept)
    require(precision in PRECISIONS, f"precision must be one of {', '.join(PRECISIONS)}", precision)
    if weights is not None and (sample_weight is not None or class_weight is not None):
        raise ValueError("weights must not be given beside sample_weight or class_weight, which they would undo.")
    origin = OffsetOrigin.of(offset, exposure)
    with peers.together():
        if isinstance(offset, str):
            X, offset = without_column(X, offset, "offset")
        if isinstance(exposure, str):
            X, exposure = without_column(X, exposure, "exposure")
        data = prepare(X, y, loss=_loss(loss), clients=clients, weights=weights, sample_weight=sample_weight)
        offset = _offset(data, offset, exposure)
        as_client_weights(client_weights)  # before rows are copied
        if peers.size > 1 and (data.classes is not None or isinstance(_loss(loss), type)):
            raise ValueError(
                "y must be encoded, and the loss have its number of classes, where other processes have other rows: "
                "dualopt.problem.data.encode_labels(y, kind, classes=all_labels)."
            )
    peers.agree(
        {
            "loss": described(data.loss, lambda x: type(x).__name__),
            "mu": float(mu),
            "intercept": intercept,
            "sample_weight": "given" if data.sample_weight is not None else "none",
            "class_weight": repr(class_weight),
            "client_weights": kind_of_weights(client_weights),
            "offset": "none" if origin is None else origin.kind,
            "storage": storage,
            "precision": precision,
            "type of X": str(data.X.dtype),
            "number of columns of X": data.X.shape[1],
        }
    )
    like = data.X.data if is_sparse(data.X) else data.X
    with peers.together():
        counts = row_weights(data.sample_weight, class_weight, data.y, like, data.loss, data.classes, peers)
        sums = None if counts is None else row_sums(counts, data.clients)
    rows = ClientRows.build(
        data.X,
        data.y,
        loss=data.loss,
        clients=data.clients,
        offset=offset,
        intercept=intercept != "none",
        weights=data.weights if counts is None else counts,
        shares=counts is not None,
        storage=storage,
        copy=copy,
        peers=peers,
    )
    if precision == "mixed":
        with peers.together():
            rows.require_single()
    return LinearModel(
        loss=data.loss if offset is None else with_offset(data.loss),
        ridge=float(mu),
        rows=rows,
        weights=as_client_weights(client_weights, sums or rows.sizes, data.client_names),
        free_intercept=intercept == "free",
        offset=origin,
        classes=data.classes,
        feature_names=data.feature_names,
        client_names=data.client_names,
        intercept=intercept != "none",
        precision=precision,
    )


def kind_of_intercept(intercept: Any) -> str:
    """Return "penalised", "free" or "none" for what is said of an intercept; True is the first, False the last.

    >>> kind_of_intercept(True), kind_of_intercept("free")
    ('penalised', 'free')
    """
    if is_flag(intercept):
        return "penalised" if intercept else "none"
    known = isinstance(intercept, str) and intercept in ("penalised", "free", "none")
    require(known, "intercept must be True, False, 'penalised', 'free' or 'none'", intercept)
    return intercept


def _offset(data: Inputs, offset: Any, exposure: Any) -> Array | None:
    """Return the offsets of the rows, None without; refuse what the loss does not take."""
    like = data.X.data if is_sparse(data.X) else data.X
    found = as_offset(offset, exposure, like, data.X.shape[0])
    if found is None:
        return None
    require_takes(data.loss, exposure=exposure is not None)
    if getattr(data.loss, "link", None) == "log":
        largest = math.log(float(array_namespace(found).finfo(found.dtype).max))
        within = float(array_namespace(found).max(array_namespace(found).abs(found))) < largest
        require(within, "offset must have numbers whose exponentials are within the range of the type of X")
    return found


def _loss(loss: Any) -> Any:
    """Return the loss, or for a name that needs the number of classes alone its class."""
    spec = Spec.parse(loss, "loss") if isinstance(loss, str) else loss
    if isinstance(spec, Spec) and not spec.arguments and required(kind := spec.target("loss")) == ["classes"]:
        return kind
    found = built(spec, "loss")
    if not hasattr(found, "labels"):
        raise ValueError(f"loss must be a Loss or its name, such as 'logistic', not a {type(found).__name__}.")
    return found
