"""A deep check: certificates against arithmetic of 60 digits, on small problems of every kind.

Every case is drawn from its seed: an objective (all losses, quadratics with clients of any curvature, a penalty, a
regulariser), a model, and local points. The truth is ``E(theta) - E(x)`` for an ``x`` that Newton's method finds in
60 digits; whatever ``x`` is, that is at most ``E(theta) - E*``, so that the certificate must not be below it. No
tolerance is involved. Inputs are taken to be exactly the floating-point numbers that are given.

Run it with::

    python -m tests.fuzz_certificates --cases 20000 --seed 0

It prints the cases that fail, each with the command that repeats it, and ends with exit code 1 if there are any.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import array_api_strict
import numpy as np
from mpmath import mp, mpf

from dualopt.arrays.xp import asarray_like, silent, to_numpy
from dualopt.losses import (
    AbsoluteDeviation,
    Gamma,
    Hinge,
    Huber,
    Logistic,
    Multinomial,
    Poisson,
    Quantile,
    SmoothedHinge,
    Squared,
    SquaredHinge,
)
from dualopt.objectives import (
    Composite,
    LinearModel,
    LocalProblem,
    NonconvexPenalty,
    Objective,
    Quadratic,
    linear_model,
)
from dualopt.regularisers import L1, L2, WithoutIntercept
from dualopt.runs.certificates import Certificate, LatestSolutions, certificate
from dualopt.solvers import DualCoordinate, LocalSolution
from dualopt.solvers._loop import solution
from dualopt.solvers.stopping import Steps
from tests.programs import check_cases

__all__ = ["Case", "Failure", "check", "draw", "failures", "main"]

DIGITS = 60
NEWTON_STEPS, SECANTS = 30, 8
FAR = 1e100  # a step that leads nowhere: there is no minimiser
CLOSE = 1e-45  # a relative step at which Newton's method has converged
SMOOTHINGS = (1e-1, 1e-3, 1e-8, 1e-16, 1e-30)  # of kinks, relative to the scale of the data

Vector = list[Any]  # of mpf


@dataclass(frozen=True)
class Case:
    """One case: what is certified."""

    seed: int
    words: str
    objective: Any
    theta: Any
    points: LocalSolution | None
    truth: Truth


@dataclass(frozen=True)
class Failure:
    """A certificate below the truth, or one that is no number."""

    case: Case
    bound: Certificate
    reason: str

    def __str__(self) -> str:
        case = self.case
        return f"seed {case.seed}: {self.reason} ({case.words}; {self.bound})"


# ---- the truth in 60 digits ----


@dataclass(frozen=True)
class Term:
    """A function of one inner product, or of several for class labels, with first and second derivatives.

    ``smoothing`` is the width of the parabola that takes the place of a kink: only the search for ``x`` uses it.
    """

    value: Callable[[Vector], Any]
    slopes: Callable[[Vector, float], tuple[Vector, list[Vector]]]


def quadratic_pieces(shift: Any, sign: Any, low: Any, high: Any, width: Any) -> Term:
    """``int_0^t clip(s/width, low, high) ds`` at ``t = sign z + shift``: squared, Huber, absolute and hinge losses."""

    def value(z: Vector) -> Any:
        t = sign * z[0] + shift
        if not width:
            return high * t if t > 0 else low * t
        slope = min(max(t / width, low), high)
        return slope * (t - width * slope / 2)

    def slopes(z: Vector, smoothing: float) -> tuple[Vector, list[Vector]]:
        t, w = sign * z[0] + shift, width or mpf(smoothing)
        slope = min(max(t / w, low), high)
        return [sign * slope], [[1 / w if low < t / w < high else mpf(0)]]

    return Term(value, slopes)


def logistic_term(y: Any) -> Term:
    def value(z: Vector) -> Any:
        t = -y * z[0]
        return t + mp.log1p(mp.exp(-t)) if t > 0 else mp.log1p(mp.exp(t))

    def slopes(z: Vector, _: float) -> tuple[Vector, list[Vector]]:
        t = -y * z[0]
        decay = mp.exp(-abs(t))
        p = 1 / (1 + decay) if t > 0 else decay / (1 + decay)
        return [-y * p], [[decay / (1 + decay) ** 2]]

    return Term(value, slopes)


def deviance_term(y: Any, gamma: bool) -> Term:
    """Half the unit deviance of a gamma or a Poisson variable."""
    log_y = mp.log(y) if y else mpf(0)

    def value(z: Vector) -> Any:
        return y * mp.exp(-z[0]) + z[0] - log_y - 1 if gamma else mp.exp(z[0]) - y * z[0] + y * log_y - y

    def slopes(z: Vector, _: float) -> tuple[Vector, list[Vector]]:
        growth = y * mp.exp(-z[0]) if gamma else mp.exp(z[0])
        return [1 - growth if gamma else growth - y], [[growth]]

    return Term(value, slopes)


def multinomial_term(y: int) -> Term:
    def shares(z: Vector) -> tuple[Any, Vector, Any]:
        largest = max(z)
        powers = [mp.exp(t - largest) for t in z]
        return largest, powers, mp.fsum(powers)

    def value(z: Vector) -> Any:
        largest, _, total = shares(z)
        return largest + mp.log(total) - z[y]

    def slopes(z: Vector, _: float) -> tuple[Vector, list[Vector]]:
        _, powers, total = shares(z)
        p = [t / total for t in powers]
        curvature = [[(p[a] if a == b else mpf(0)) - p[a] * p[b] for b in range(len(p))] for a in range(len(p))]
        return [p[a] - (a == y) for a in range(len(p))], curvature

    return Term(value, slopes)


def loss_term(loss: Any, y: Any) -> Term:
    """The loss of a row with the label ``y``, written down anew."""
    one, infinity = mpf(1), mpf(10) ** 5000
    if isinstance(loss, Squared):
        return quadratic_pieces(-mpf(y), one, -infinity, infinity, one)
    if isinstance(loss, Huber):
        return quadratic_pieces(-mpf(y), one, -mpf(loss.delta), mpf(loss.delta), one)
    if isinstance(loss, AbsoluteDeviation):
        return quadratic_pieces(-mpf(y), one, -one, one, mpf(0))
    if isinstance(loss, Hinge):
        return quadratic_pieces(one, -mpf(y), mpf(0), one, mpf(0))
    if isinstance(loss, SmoothedHinge):
        return quadratic_pieces(one, -mpf(y), mpf(0), one, mpf(loss.gamma))
    if isinstance(loss, SquaredHinge):
        return quadratic_pieces(one, -mpf(y), mpf(0), infinity, one / 2)
    if isinstance(loss, Quantile):
        return quadratic_pieces(-mpf(y), one, -mpf(loss.level), one - mpf(loss.level), mpf(0))
    if isinstance(loss, Poisson | Gamma):
        return deviance_term(mpf(y), isinstance(loss, Gamma))
    return logistic_term(mpf(y)) if isinstance(loss, Logistic) else multinomial_term(int(y))


@dataclass(frozen=True)
class Row:
    """``weight`` times a term of the inner products of ``x`` with parts of the model."""

    weight: Any
    x: Vector
    term: Term


@dataclass
class Truth:
    """``E = x'Ax/2 - b'x + c + sum of rows + sum of functions of single entries``."""

    outputs: int
    A: list[Vector]
    b: Vector
    c: Any
    rows: list[Row]
    entries: list[Term]
    kinks: bool
    apart: frozenset[int] = frozenset()  # entries that these functions leave out
    best: Any = None

    def predictors(self, x: Vector, theta: Vector) -> Vector:
        p = len(x)
        return [mp.fdot(x, theta[o * p : (o + 1) * p]) for o in range(self.outputs)]

    def energy(self, theta: Vector) -> Any:
        n = len(theta)
        quadratic = mp.fsum(theta[i] * mp.fdot(self.A[i], theta) for i in range(n)) / 2
        losses = mp.fsum(r.weight * r.term.value(self.predictors(r.x, theta)) for r in self.rows)
        separate = mp.fsum(term.value([theta[i]]) for term in self.entries for i in range(n) if i not in self.apart)
        return quadratic - mp.fdot(self.b, theta) + self.c + losses + separate

    def derivatives(self, theta: Vector, smoothing: float) -> tuple[Vector, list[Vector]]:
        n = len(theta)
        g = [mp.fdot(self.A[i], theta) - self.b[i] for i in range(n)]
        H = [list(row) for row in self.A]
        for r in self.rows:
            slope, curvature = r.term.slopes(self.predictors(r.x, theta), smoothing)
            p = len(r.x)
            for o in range(self.outputs):
                if factor := r.weight * slope[o]:
                    for i in range(p):
                        g[o * p + i] += factor * r.x[i]
                for q in range(self.outputs):
                    if factor := r.weight * curvature[o][q]:
                        for i in range(p):
                            part = factor * r.x[i]
                            for j in range(p):
                                H[o * p + i][q * p + j] += part * r.x[j]
        for term in self.entries:
            for i in (i for i in range(n) if i not in self.apart):
                slope, curvature = term.slopes([theta[i]], smoothing)
                g[i] += slope[0]
                H[i][i] += curvature[0][0]
        return g, H

    def minimise(self, scale: float) -> Vector:
        """Return the best point that Newton's method finds; kinks are rounded off less and less."""
        theta = [mpf(0)] * len(self.b)
        found, self.best = theta, self.energy(theta)
        for smoothing in [scale * s for s in SMOOTHINGS] if self.kinks else [1.0]:
            vain = 0
            for _ in range(NEWTON_STEPS):
                g, H = self.derivatives(theta, smoothing)
                step = eliminate(H, [-t for t in g])
                if step is None or max(map(abs, step)) > FAR or (slope := mp.fdot(g, step)) >= 0:
                    break
                theta = self.advance(theta, step, slope, smoothing)
                if (energy := self.energy(theta)) < self.best:
                    found, self.best, vain = theta, energy, 0
                else:
                    vain += 1
                if vain == 3 or max(map(abs, step)) <= CLOSE * max(map(abs, theta)):
                    break
        return found

    def advance(self, theta: Vector, step: Vector, slope: Any, smoothing: float) -> Vector:
        """Go along a step until the slope is less steep than it was, by secants."""
        length, trial = mpf(1), theta
        for _ in range(SECANTS):
            trial = [t + length * s for t, s in zip(theta, step, strict=True)]
            new = mp.fdot(self.derivatives(trial, smoothing)[0], step)
            if new <= abs(slope) / 2:  # not past the minimum, or not far
                break
            length *= slope / (slope - new)
        return trial

    def downhill(self, theta: Vector) -> Any:
        """Return the energy far along the flattest direction of a quadratic: very low if it is unbounded below."""
        if self.rows or not any(any(row) for row in self.A):
            return self.best
        values, V = mp.eigsy(mp.matrix(self.A))
        if values[0] > 0:
            return self.best
        lowest, v = self.best, [V[i, 0] for i in range(len(theta))]
        for exponent in (0, 10, 100, 1000):
            for sign in (1, -1):
                far = [t + sign * mpf(10) ** exponent * s for t, s in zip(theta, v, strict=True)]
                lowest = min(lowest, self.energy(far))
        return lowest


def numbers(x: Any) -> np.ndarray:
    return np.asarray(to_numpy(x))


def exactly(x: Any) -> Vector:
    """Floating-point numbers as they are."""
    return [mpf(float(t)) for t in numbers(x).ravel()]


def truth_of(objective: Any) -> Truth:
    """The same function, from the numbers that the objective holds."""
    h, lam, alpha = objective.regulariser, mpf(0), mpf(1)
    if isinstance(objective, Composite):
        objective = objective.objective
    if isinstance(objective, NonconvexPenalty):
        lam, alpha, objective = mpf(objective.lam), mpf(objective.alpha), objective.objective
    n, N = math.prod(objective.shape), objective.n_clients
    given = [mpf(w) for w in objective.weights or (1.0,) * N]
    shares = [w / mp.fsum(given) for w in given]
    ridge, rows, b, c, outputs = mpf(0), [], [mpf(0)] * n, mpf(0), 1
    A = [[mpf(0)] * n for _ in range(n)]
    if isinstance(objective, Quadratic):
        for j in range(N):
            matrix = [exactly(row) for row in numbers(objective.A)[j]]
            A = [[A[i][k] + shares[j] * (matrix[i][k] + matrix[k][i]) / 2 for k in range(n)] for i in range(n)]
        b = [mp.fdot(zip(shares, exactly(numbers(objective.b)[:, i]), strict=True)) for i in range(n)]
        c = mpf(0) if objective.c is None else mp.fdot(zip(shares, exactly(objective.c), strict=True))
    else:
        assert isinstance(objective, LinearModel)
        ridge, outputs = mpf(objective.ridge), objective.loss.outputs
        for share, (X, y, w) in zip(shares, objective.client_rows(), strict=True):
            for x, label, weight in zip(numbers(X), numbers(y), numbers(w), strict=True):
                rows.append(Row(share * mpf(float(weight)), exactly(x), loss_term(objective.loss, float(label))))
    entries, p = [], objective.shape[-1]
    apart = frozenset(range(p - 1, n, p)) if objective.free_intercept else frozenset()
    h = h.regulariser if isinstance(h, WithoutIntercept) else h
    if isinstance(h, L2):
        ridge += mpf(h.weight)
    if isinstance(h, L1) and h.weight:
        weight = mpf(h.weight)
        entries.append(quadratic_pieces(mpf(0), mpf(1), -weight, weight, mpf(0)))
    if lam:
        entries.append(penalty_term(lam, alpha))
    for i in set(range(n)) - apart:
        A[i][i] += ridge
    loss = getattr(objective, "loss", None)
    kinks = isinstance(loss, Hinge | AbsoluteDeviation | Quantile) or isinstance(h, L1)
    return Truth(outputs, A, b, c, rows, entries, kinks, apart)


def penalty_term(lam: Any, alpha: Any) -> Term:
    def value(z: Vector) -> Any:
        u = alpha * z[0] ** 2
        return lam * u / (1 + u)

    def slopes(z: Vector, _: float) -> tuple[Vector, list[Vector]]:
        u = alpha * z[0] ** 2
        return [2 * lam * alpha * z[0] / (1 + u) ** 2], [[2 * lam * alpha * (1 - 3 * u) / (1 + u) ** 3]]

    return Term(value, slopes)


def eliminate(A: list[Vector], b: Vector) -> Vector | None:
    """Solve ``A x = b`` by elimination with pivots; None for a singular matrix."""
    n, rows = len(b), [[*row, right] for row, right in zip(A, b, strict=True)]
    for i in range(n):
        pivot = max(range(i, n), key=lambda k: abs(rows[k][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        if not rows[i][i]:
            return None
        for k in range(i + 1, n):
            if factor := rows[k][i] / rows[i][i]:
                rows[k] = [x - factor * y for x, y in zip(rows[k], rows[i], strict=True)]
    x = [mpf(0)] * n
    for i in reversed(range(n)):
        x[i] = (rows[i][n] - mp.fdot(rows[i][i + 1 : n], x[i + 1 :])) / rows[i][i]
    return x


# ---- drawing ----


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return float(10.0 ** rng.uniform(math.log10(low), math.log10(high)))


def choose(rng: np.random.Generator, **weights: float) -> str:
    shares = np.array(list(weights.values()))
    return str(rng.choice(list(weights), p=shares / shares.sum()))


def draw_scale(rng: np.random.Generator, single: bool) -> float:
    """Mostly 1; a fifth of the draws span the range of the type, as far as squares stay in it or just beyond."""
    how = choose(rng, one=0.6, moderate=0.2, extreme=0.2)
    if how == "one":
        return 1.0
    bound = 1e3 if how == "moderate" else 1e18 if single else 1e150
    return log_uniform(rng, 1.0 / bound, bound)


def draw_quadratic(rng: np.random.Generator, dtype: Any) -> tuple[Quadratic, str, float]:
    N, d = int(rng.integers(1, 5)), int(rng.integers(1, 5)) if rng.random() < 0.6 else 1
    scale = draw_scale(rng, dtype == np.float32)
    kind = choose(rng, plain=3, ill=3, rank_one=1, concave=2, diagonal=1, zero=0.3)
    A = np.zeros((N, d, d))
    for j in range(N):
        q, _ = np.linalg.qr(rng.standard_normal((d, d)))
        spectrum = 10.0 ** rng.uniform(-1, 1, d)
        if kind == "ill":
            spectrum = 10.0 ** rng.uniform(-rng.integers(1, 18), 0, d)
        if kind == "rank_one":
            spectrum = np.array([1.0] + [0.0] * (d - 1))
        if kind == "concave" and j == 0:
            spectrum[0] = -0.5 * N * 0.1 if rng.random() < 0.8 else -1.0
        A[j] = np.diag(spectrum) if kind == "diagonal" else q @ np.diag(spectrum) @ q.T
    A *= 0.0 if kind == "zero" else scale
    if rng.random() < 0.9:
        A = 0.5 * (A + A.swapaxes(1, 2))
    b = scale * log_uniform(rng, 1e-3, 1e3) * rng.standard_normal((N, d))
    c = None
    offsets = choose(rng, none=2, small=2, cancel=2, zero=2, flat=2)
    if offsets == "zero":  # E* is nearly 0, although its terms are not
        x = np.linalg.eigh(A.mean(axis=0))[1][:, 0] if rng.random() < 0.5 else rng.standard_normal(d)
        x = log_uniform(rng, 1e-2, 1e6) * x
        b = np.einsum("jkl,l->jk", A, x)
        c = 0.5 * b @ x
    elif offsets == "flat":  # the minimiser lies far off, along the flattest direction of the only client
        A, b = A[:1], scale * np.linalg.eigh(A[0])[1][None, :, 0]
    elif offsets != "none":
        c = rng.uniform(-1, 1, N) * (1.0 if offsets == "small" else log_uniform(rng, 1e3, 1e15))
    if c is not None and offsets == "cancel" and N > 1:
        c[-1] -= c.sum()
        b[-1] -= b.sum(axis=0) * (rng.random() < 0.5)
    with silent():
        f = Quadratic(A=A.astype(dtype), b=b.astype(dtype), c=None if c is None else c.astype(dtype))
        f = replace(f, weights=draw_weights(rng, f.n_clients))
    return f, f"quadratic {kind}, constants {offsets}, N = {f.n_clients}, d = {d}, scale {scale:.0e}", 1.0


def draw_loss(rng: np.random.Generator, scale: float) -> Any:
    return [
        Squared(),
        Huber(delta=scale * log_uniform(rng, 1e-2, 1e2)),
        AbsoluteDeviation(),
        Logistic(),
        Hinge(),
        SmoothedHinge(gamma=log_uniform(rng, 1e-2, 1e2)),
        Multinomial(classes=int(rng.integers(2, 4))),
        Quantile(level=rng.uniform(0.01, 0.99)),
        SquaredHinge(),
        Poisson(),
        Gamma(),
    ][int(rng.integers(11))]


def draw_weights(rng: np.random.Generator, N: int) -> tuple[float, ...] | None:
    """In a third of the cases weights of clients that differ by up to ten orders, from a stream of their own."""
    (own,) = rng.spawn(1)
    return tuple(log_uniform(own, 1e-5, 1e5) for _ in range(N)) if own.random() < 1 / 3 else None


def draw_linear(rng: np.random.Generator, dtype: Any) -> tuple[LinearModel, str, float]:
    single = dtype == np.float32
    N, per_client, d = int(rng.integers(1, 4)), int(rng.integers(1, 4)), max(1, int(rng.integers(-1, 4)))
    m = N * per_client if rng.random() < 0.6 else N + int(rng.integers(0, 4))
    scale, label_scale = draw_scale(rng, single), draw_scale(rng, single)
    loss = draw_loss(rng, label_scale)
    X = scale * rng.standard_normal((m, d)) * 10.0 ** rng.uniform(-2, 2, d)
    offset = choose(rng, none=3, large=1)
    if offset == "large":
        X += scale * log_uniform(rng, 1e1, 1e6)
    if loss.labels == "real":
        y = label_scale * (rng.standard_normal(m) + (log_uniform(rng, 1e1, 1e8) if rng.random() < 0.3 else 0.0))
        if rng.random() < 0.2:  # all rows are met by one model
            y = label_scale * (X / scale) @ rng.standard_normal(d)
        y = (0.0 * y if rng.random() < 0.1 else y).astype(dtype)
        if isinstance(loss, Poisson | Gamma):  # counts and amounts of moderate sizes, zeros among the counts
            y = np.abs(y / label_scale) * log_uniform(rng, 1e-3, 1e3) + 1e-6
            y = (np.floor(y) if isinstance(loss, Poisson) else y).astype(dtype)
    else:
        y = rng.integers(0, loss.outputs, m) if loss.labels == "class" else rng.choice([-1.0, 1.0], m).astype(dtype)
    if rng.random() < 0.05:
        X = 0.0 * X
    most = math.sqrt(float(np.finfo(dtype).max) / d) / max(np.abs(X).max(), 1e-300)
    X *= min(1.0, 0.5 * most)  # beyond, the data are refused
    weights, how = None, choose(rng, clients=2, rows=1, own=1)
    if how == "own":
        weights = (log_uniform(rng, 1e-5, 1e5) * rng.uniform(0, 1, m) * (rng.random(m) < 0.9)).astype(dtype)
        weights = weights if weights.any() else np.ones(m, dtype=dtype)
    of_clients: Any = "rows" if how == "rows" else draw_weights(rng, N) or "equal"
    how = choose(rng, any=1, like_data=3)
    mu = log_uniform(rng, 1e-8, 1e2)
    if how == "like_data":
        mu = float(np.clip(log_uniform(rng, 1e-4, 10.0) * scale**2, 1e-250, 1e250))
    mu = 0.0 if rng.random() < 0.1 else mu if not single else float(np.clip(mu, 1e-30, 1e30))
    options: dict[str, Any] = {"clients": N, "client_weights": of_clients}
    options["intercept"] = choose(rng, none=6, penalised=2, free=4)
    f = linear_model(X.astype(dtype), y, loss=loss, mu=mu, weights=weights, **options)
    words = f"{loss}, N = {N}, rows {f.sizes}, shape {f.shape}, mu {mu:.1e}, scales {scale:.0e} {label_scale:.0e}"
    words += f", intercept {options['intercept']}"
    return f, f"{words}, offset {offset}", label_scale if loss.labels == "real" else 1.0


def draw_points(rng: np.random.Generator, f: Any, best: np.ndarray) -> tuple[str, LocalSolution | None]:
    """Local solutions: any points do."""
    how = choose(rng, none=3, near=4, far=1, apart=0.5, collected=1, dual=2)
    if how == "none":
        return how, None
    own = f.objective if isinstance(f, Composite) else f
    shape = (f.n_clients, *f.shape)
    size = float(np.abs(best).max()) or 1.0
    if how == "dual":
        if not isinstance(own, LinearModel) or own.loss.outputs > 1 or not own.ridge > 0 or own.free_intercept:
            return "none", None
        problem = LocalProblem(objective=own, linear=-own.gradient(asarray_like(best, own.zeros())))
        try:
            return how, DualCoordinate()(problem, 0.0 * problem.linear_term(), Steps(steps=3))
        except ValueError:  # its steps over- or underflow
            return "none", None
    near = log_uniform(rng, 1e-16, 1.0) * (rng.random() < 0.6)
    spread = {"near": near, "far": log_uniform(rng, 1e2, 1e8)}.get(how, 1.0)

    def solve(where: Objective, spread: float, shape: tuple[int, ...]) -> LocalSolution:
        points = asarray_like(best + spread * size * rng.standard_normal(shape), f.zeros())
        problem = LocalProblem(objective=where)
        ones, status = np.ones(where.n_clients), ("converged",) * where.n_clients
        return solution(problem, points, problem.evaluate(points), gradients=ones, status=status)

    if how != "collected":
        return how, solve(own, spread, shape)
    latest = LatestSolutions(own)
    for j in range(f.n_clients):
        latest.update([j], solve(own.select([j]), log_uniform(rng, 1e-10, 1.0), (1, *f.shape)))
    return how, latest.solution


def draw(seed: int) -> Case:
    """Return the case of a seed."""
    rng = np.random.default_rng([5, seed])
    dtype = np.float32 if rng.random() < 0.3 else np.float64
    make = draw_quadratic if rng.random() < 0.35 else draw_linear
    with silent():
        f, words, scale = make(rng, dtype)
        if isinstance(f, Quadratic) and rng.random() < 0.15:  # the other library
            c = None if f.c is None else array_api_strict.asarray(f.c)
            f = Quadratic(A=array_api_strict.asarray(f.A), b=array_api_strict.asarray(f.b), c=c, weights=f.weights)
            words += ", array-api-strict"
        if rng.random() < 0.1:
            lam = min(log_uniform(rng, 1e-6, 1.0), max(float(np.mean(numbers(f.mu))), 1e-9))
            f, words = NonconvexPenalty(objective=f, lam=lam, alpha=log_uniform(rng, 1e-2, 1.0)), words + ", penalty"
        if rng.random() < 0.2:
            h = (L1 if rng.random() < 0.6 else L2)(weight=log_uniform(rng, 1e-6, 1e2))
            f, words = Composite(objective=f, regulariser=h), f"{words}, {h}"
        mp.dps = DIGITS
        truth = truth_of(f)
        best = truth.minimise(scale)
        shape, limit = f.shape, float(np.finfo(dtype).max)
        nearest = np.array([float(min(max(t, -limit), limit)) for t in best]).reshape(shape)
        how = choose(rng, best=3, near=4, flat=2, random=1, zero=20 if "constants flat" in words else 1)
        size = float(np.abs(nearest).max()) or 1.0
        # along the flattest direction of a quadratic the gradient form is the error, if mu is the curvature there
        flat = np.linalg.eigh(numbers(f.A).mean(axis=0))[1][:, 0] if isinstance(f, Quadratic) else rng.random(shape)
        theta = {
            "best": nearest,
            "near": nearest + size * log_uniform(rng, 1e-17, 1.0) * rng.standard_normal(shape),
            "flat": nearest + size * log_uniform(rng, 1.0, 1e8) * flat,
            "random": draw_scale(rng, dtype == np.float32) * rng.standard_normal(shape),
            "zero": np.zeros(shape),
        }[how]
        theta = np.clip(np.nan_to_num(theta, nan=0.0, posinf=limit, neginf=-limit), -limit, limit)
        kind, points = draw_points(rng, f, np.clip(nearest, -limit, limit))
    words = f"{np.dtype(dtype).name}, {words}; model {how}; points {kind}"
    return Case(seed, words, f, asarray_like(theta, f.zeros()), points, truth)


# ---- the check ----


Certify = Callable[[Any, Any, Any], Certificate]


def check(case: Case, certify: Certify = certificate) -> tuple[Certificate, Failure | None]:
    """Compare one certificate with the truth."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        bound = certify(case.objective, case.theta, case.points)
    if not bound.gap >= 0 or not bound.relative >= 0:
        return bound, Failure(case, bound, "the gap is no number")
    if math.isinf(bound.gap):
        return bound, None
    mp.dps = DIGITS
    theta = exactly(case.theta)
    lowest = case.truth.downhill(theta)
    lowest = min(lowest, case.truth.energy(theta))
    error = case.truth.energy(theta) - lowest
    if bound.gap < error:
        return bound, Failure(case, bound, f"gap below the error {mp.nstr(error, 17)}")
    if bound.gap < mpf(bound.energy) - lowest:
        return bound, Failure(case, bound, f"gap below the energy minus E* = {mp.nstr(mpf(bound.energy) - lowest, 17)}")
    if math.isfinite(bound.relative) and not error <= mpf(bound.relative) * lowest:
        return bound, Failure(case, bound, f"relative error below the true one, E* <= {mp.nstr(lowest, 17)}")
    return bound, None


def failures(seeds: Iterable[int], certify: Certify = certificate) -> Iterator[Failure]:
    """Yield the cases of these seeds that fail."""
    for seed in seeds:
        _, failure = check(draw(seed), certify)
        if failure is not None:
            yield failure


def main(arguments: list[str] | None = None) -> int:
    """Check many cases; return the exit code."""

    def one(seed: int) -> tuple[str, str]:
        bound, failure = check(draw(seed))
        return "none" if math.isinf(bound.gap) else bound.kind, str(failure or "")

    return check_cases("tests.fuzz_certificates", __doc__, one, arguments, cases=20_000)


if __name__ == "__main__":
    sys.exit(main())
