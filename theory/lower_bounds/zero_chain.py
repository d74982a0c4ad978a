r"""Nonconvex clients: the lower bound on communication of the FedPD paper (first version, Theorem 2), with constants.

Each client holds some terms of :math:`\sum_k \Theta_k(x)`, no two of them neighbours (``dualopt.objectives.ZeroChain``
has the formulas). So a communication opens one entry of the model at most, and while the last one is zero the gradient
is not small.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from dualopt.lab.claims import Inequality, claim
from dualopt.methods import FedAvg
from dualopt.methods.participation import Full, UniformSubset
from dualopt.objectives import ZeroChain
from dualopt.objectives import zero_chain as functions
from dualopt.objectives.zero_chain import FLOOR, PSI_1
from dualopt.solvers import Gradient
from dualopt.solvers.stopping import Steps
from theory._cases import Case
from theory._claims import ExpectedVerdict, Form, deviation
from theory.lower_bounds._races import (
    SPLITS,
    STEPS,
    CentralisedFedAvg,
    as_printed,
    on_chain,
    races,
    reach,
    zero_chain,
)


class Extremum(NamedTuple):
    """The least upper bound of a function on the points of a grid."""

    name: str
    function: Callable[[np.ndarray], np.ndarray]
    points: np.ndarray
    bound: float
    attained: bool  # at a point of the grid; else it is approached

    @property
    def slack(self) -> float:
        """How much less the largest value on the grid may be."""
        return 1e-12 if self.attained else 1e-6


def zero_chain_scalars_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield every bound, on a grid that holds the extremal points."""
    fine = np.geomspace(1e-8, 1e8, 2001 if quick else 200_001)
    special = np.sqrt([0.5, 1.5, 1.0 / 3.0, 1.0])
    right = np.concatenate([fine, special])
    line = np.concatenate([-right, [0.0], right])
    psi, slope, curvature = functions.psi, functions.psi_slope, functions.psi_curvature
    phi, phi_slope, phi_curvature = functions.phi, functions.phi_slope, functions.phi_curvature
    inside = np.concatenate([np.linspace(-1.0, 1.0, 1001)[1:-1], [1.0 - 1e-9]])
    for case in (
        Extremum("-Psi", lambda w: 1.0 - psi(w), line, 1.0, True),  # 0 on the left
        Extremum("Psi", psi, line, 1.0, True),  # 1 up to rounding from w = 6 on
        Extremum("Psi'", slope, line, math.sqrt(2.0 / math.e), True),
        Extremum("1 - Psi'", lambda w: 1.0 - slope(w), line, 1.0, True),
        Extremum("Psi''", curvature, line, 2.0, False),
        Extremum("-Psi''", lambda w: -curvature(w), line, 4.0 * math.exp(-1.5), True),
        Extremum("Phi", phi, line, 4.0 * math.pi, False),
        Extremum("4 pi - Phi", lambda v: 4.0 * math.pi - phi(v), line, 4.0 * math.pi, False),
        Extremum("Phi'", phi_slope, line, 4.0, True),
        Extremum("4 - Phi'", lambda v: 4.0 - phi_slope(v), line, 4.0, False),
        Extremum("Phi''", phi_curvature, line, 1.5 * math.sqrt(3.0), True),
        Extremum("-Phi''", lambda v: -phi_curvature(v), line, 1.5 * math.sqrt(3.0), True),
        Extremum(
            "1/(Psi Phi')",
            lambda v: 1.0 / (psi(np.array([1.0, 1.5, 9.0]))[:, None] * phi_slope(v)),
            inside,
            0.5 / -math.expm1(-1.0),
            False,
        ),
    ):
        yield ExpectedVerdict(case)


@claim(
    source="FedPD arXiv v1, Lemma 1",
    statement=r"$0 \le \Psi < 1$, $0 \le \Psi' \le \sqrt{2/e}$, $-4e^{-3/2} \le \Psi'' \le 2$, $0 < \Phi < 4\pi$,"
    r" $0 < \Phi' \le 4$, $|\Phi''| \le \frac{3\sqrt3}2$, each the least bound; and $\Psi(w)\Phi'(v) > 2(1 - 1/e) >"
    r" 1$ for $w \ge 1 > |v|$.",
    cases=zero_chain_scalars_cases,
)
def zero_chain_scalars(case: Extremum) -> Iterator[Inequality]:
    r"""Bounds of Psi, Phi and their derivatives, from which everything else follows.

    With :math:`\Psi(w) = 1 - e^{-w^2}` for positive ``w``: :math:`\Psi' = 2we^{-w^2}` has its maximum where
    :math:`\Psi'' = (2 - 4w^2)e^{-w^2}` vanishes, at :math:`1/\sqrt2`; :math:`\Psi''' = (8w^3 - 12w)e^{-w^2}`, so that
    :math:`\Psi''` falls from 2 at :math:`0^+` to its minimum at :math:`\sqrt{3/2}` and rises to 0. With :math:`\Phi =
    4\arctan + 2\pi`: :math:`\Phi'' = -8v/(1 + v^2)^2` is extreme where :math:`1 = 3v^2`.

    Compare the largest value with the bound, and the bound with the largest value.
    """
    largest = float(np.max(case.function(case.points)))
    yield Inequality(0, largest, case.bound * (1.0 + 1e-12), "the largest value")
    yield Inequality(0, case.bound, largest * (1.0 + case.slack), "the bound")


class Fall(NamedTuple):
    """A chain and how many random points to look at."""

    name: str
    objective: ZeroChain
    points: int


def zero_chain_infimum_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield chains of several lengths and both splits."""
    for d in (1, 2, 10, 40):
        for split in ("thirds", "halves"):
            f = zero_chain(6, d, split=split, L=2.0, eps=0.1)
            yield ExpectedVerdict(Fall(f"{split}, d = {d}", f, 50 if quick else 500))


@claim(
    source="FedPD arXiv v1, Lemma 1 (4) and Lemma 2 (1), with equality",
    statement=r"$E(0) - \inf E = 4\pi\,\mathrm{height}\,(T + \frac12(1 - \frac1e))$ for the chain of $T + 1$ terms.",
    rtol=1e-12,
    cases=zero_chain_infimum_cases,
)
def zero_chain_infimum(case: Fall) -> Iterator[Inequality]:
    r"""How far a chain falls, :math:`\Delta = E(0) - \inf E`.

    Every :math:`\Theta_k` is at least :math:`-4\pi\Psi(x_{k-1})`, hence above :math:`-4\pi\Psi(1)` for ``k = 1`` and
    :math:`-4\pi` else; all approach these together as all entries tend to infinity. At zero the first is
    :math:`-2\pi\Psi(1)`, the others vanish. With ``T = d - 1``, in units of the height: :math:`\Delta = 4\pi(T +
    \frac12\Psi(1))`, which is at most the :math:`5.3\pi T` that rounding up gives for :math:`T \ge 1`.

    Compare the declared fall with the formula, and with the values at random and at far points.
    """
    f, (d,) = case.objective, case.objective.shape
    rng = np.random.default_rng(0)
    formula = 4.0 * np.pi * f.height * (d - 1 + 0.5 * PSI_1)
    declared = float(np.mean(f.value(f.zeros()) - f.infimum))
    yield Inequality(d, deviation(declared, formula, scale=formula), 1e-12, "error of the formula")
    far = fall(f, np.full(d, 1e8))
    yield Inequality(d, far, formula, "the fall to a far point")
    yield Inequality(d, formula, far * (1.0 + 1e-6), "the formula and the fall to a far point")
    for n in range(case.points):
        x = rng.standard_normal(d) * 10.0 ** rng.uniform(-1.0, 3.0, d)
        yield Inequality(n, fall(f, np.abs(x) if n % 2 else x), formula, "the fall to a random point")


def fall(f: ZeroChain, x: np.ndarray) -> float:
    """Return ``E(0) - E(width x)``."""
    return float(np.mean(f.value(f.zeros()) - f.value(f.width * x)))


class Clients(NamedTuple):
    """The clients of a chain, in units where it has height and width 1."""

    name: str
    objective: ZeroChain
    bound: float  # of the largest curvature, without units
    points: int


def zero_chain_smoothness_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield both splits, plain and scaled, and the shortest chain."""
    points = 100 if quick else 1000
    for split, weight in (("thirds", 3.0), ("halves", 2.0)):
        plain = ZeroChain(split=SPLITS[split](6, 8))
        yield ExpectedVerdict(Clients(split, plain, 8.0 * np.pi * weight, points))
        scaled = zero_chain(6, 8, split=split, L=5.0, eps=0.01)
        bound = 5.0 * scaled.width**2 / scaled.height
        yield ExpectedVerdict(Clients(f"{split}, L = 5", scaled, bound, points))
    yield ExpectedVerdict(Clients("two entries", ZeroChain(split=SPLITS["thirds"](3, 2)), 24.0 * np.pi, points))


@claim(
    source="FedPD arXiv v1, Lemma 1 (5) and Lemma 2 (3), with the least constants",
    statement=r"$\sup|\nabla^2\Theta_k| = 8\pi$ for $k \ge 2$, $\max|\Theta_1''| = \frac{3\sqrt3}2(1 - \frac1e)$; the"
    r" clients of the split by thirds are $24\pi$-smooth, those of the halves $16\pi$, and after scaling $L$-smooth,"
    r" with no smaller constant.",
    rtol=1e-12,
    cases=zero_chain_smoothness_cases,
)
def zero_chain_smoothness(case: Clients) -> Iterator[Inequality]:
    r"""How smooth the clients are: the constant is 24 pi for the split by thirds, where the paper's bounds give 81 pi.

    No client holds neighbouring terms, so its Hessian consists of the 2 x 2 blocks of single terms. For :math:`u =
    x_{k-1} > 0` and :math:`v = x_k` the block of :math:`-\Theta_k` has the entries :math:`a = \Psi''(u)\Phi(v)`,
    :math:`b = \Psi'(u)\Phi'(v)` (mixed), :math:`c = \Psi(u)\Phi''(v)`; for :math:`u < 0` it is minus that of
    :math:`(-u, -v)`. Its norm is at most :math:`M = 8\pi` if :math:`(M \mp a)(M \mp c) \ge b^2` with positive factors.
    Now :math:`b^2 \le \frac{32/e}{(1+v^2)^2} < 12`.

    * Upper signs, :math:`v > 0`: :math:`M - a \ge M - 2\Phi(v) = 8\arctan\frac1v \ge 2\pi\min(1, \frac1v)` and :math:`M
      - c \ge M`, whose product exceeds :math:`157\min(1, 1/v) \ge 157/(1+v^2)^2`.
    * Upper signs, :math:`v \le 0`: :math:`M - a \ge 8\pi - 4\pi`, :math:`M - c \ge 8\pi - \frac{3\sqrt3}2`; product
      above 283.
    * Lower signs: :math:`M + a \ge 8\pi - 16\pi e^{-3/2}`, :math:`M + c \ge 8\pi - \frac{3\sqrt3}2`; product above 313.

    The bound is the least, since :math:`a \to 8\pi` and :math:`b, c \to 0` for :math:`u \to 0^+`, :math:`v \to \infty`.
    The weight 3 of the thirds gives :math:`24\pi`, the weight 2 of the halves :math:`16\pi`. The term :math:`\Theta_1`
    is a block of its own, :math:`|\Theta_1''| \le \Psi(1)\frac{3\sqrt3}2`, attained.

    Compare the largest curvature that is found with the constant, and each client's with what it declares.
    """
    f = case.objective
    found = curvatures(f, case.points)
    largest, constant = float(np.max(found)), case.bound * f.height / f.width**2
    nearly = 1.0 + 1e-4  # the points come so close to the extremes
    yield Inequality(0, largest, constant, "largest curvature")
    yield Inequality(0, constant, nearly * largest, "the constant")
    for j, (largest, declared) in enumerate(zip(found, f.L, strict=True)):
        yield Inequality(j, float(largest), float(declared), f"curvature of client {j}")
        yield Inequality(j, float(declared), nearly * float(largest), f"constant of client {j}")


def curvatures(f: ZeroChain, points: int) -> np.ndarray:
    r"""Return the largest norm of the Hessians that is found for each client, shape ``(N,)``.

    Among the points are those in whose neighbourhood the extremes lie: entries near zero before large ones, and
    :math:`1/\sqrt3` for the first term.
    """
    rng = np.random.default_rng(0)
    N, d = f.split.shape
    small, large = np.full(d, 1e-6), np.full(d, 1e6)
    chosen = [np.where(np.arange(d) % 2 == parity, small, large) for parity in (0, 1)]
    chosen += [np.full(d, 1.0 / np.sqrt(3.0)), -chosen[0], -chosen[1]]
    chosen += [rng.standard_normal(d) * 10.0 ** rng.uniform(-3.0, 2.0, d) for _ in range(points)]
    norms = np.zeros(N)
    for x in chosen:
        product = f.hessian_operator(f.width * x)
        hessians = np.stack([product(column) for column in np.eye(d)], axis=-1)
        norms = np.maximum(norms, np.max(np.abs(np.linalg.eigvalsh(hessians)), axis=-1))
    return norms


class Points(NamedTuple):
    """Points with one entry held, at zero or within the unit interval."""

    name: str
    objective: ZeroChain
    where: str
    starts: int


def zero_chain_gradient_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield short and long chains with one entry held."""
    for d in (1, 2, 3, 6, 12):
        f = ZeroChain(split=SPLITS["halves"](2, d))
        for where in ("last entry zero", "an entry in the unit interval"):
            yield ExpectedVerdict(Points(f"d = {d}, {where}", f, where, 3 if quick else 20))


@claim(
    source="FedPD arXiv v1, Lemma 3, with the best constants",
    statement=r"$g = \sum_k\Theta_k$: if some $|x_k| < 1$, then $|\nabla g| > 2(1 - \frac1e) > 1$, the infimum; if"
    r" $x_d = 0$, then $|\nabla g| \ge 4(1 - \frac1e)$, attained at $x = 0$.",
    rtol=1e-12,
    cases=zero_chain_gradient_cases,
)
def zero_chain_gradient(case: Points) -> Iterator[Inequality]:
    r"""How large the gradient of the whole chain stays, with the best constants.

    Let :math:`g = \sum_k \Theta_k` and :math:`m_k = |x_k|`. All parts of :math:`-\partial_k g` are nonnegative:
    :math:`|\partial_k g| = \Psi(m_{k-1})\Phi'(x_k) + \Psi'(m_k)\Phi(\pm x_{k+1})`, the second without :math:`k = d`.

    **Some** :math:`m_k < 1`. For the first such ``k``, :math:`m_{k-1} \ge 1`, so that :math:`|\partial_k g| \ge
    \Psi(1)\Phi'(x_k) > 2(1 - \frac1e) = 1.264`. This is the infimum: let :math:`x_1 \to 1`, :math:`x_2 \to -\infty`,
    :math:`x_3 \to \infty`, ...

    **The last entry is zero**, which is all that a lower bound needs. Then :math:`|\nabla g| \ge 4(1 - \frac1e) =
    2.528`, attained at zero. For suppose it were smaller, and let :math:`r = 0.3`. If :math:`m_{k+1} \le r` then also
    :math:`m_k \le r`, as

    .. math:: |\partial_{k+1} g|^2 + |\partial_k g|^2 \ge
              \bigl(\tfrac{4}{1+r^2}\Psi(m_k)\bigr)^2 + \bigl(\Phi(-r)\Psi'(m_k)\bigr)^2 \ge 2.8^2 \quad (m_k \ge r).

    From :math:`m_d = 0` we get down to :math:`m_1 \le r`. But there :math:`|\partial_1 g| \ge \frac{4\Psi(1)}{1+m^2} +
    \Phi(-r)\Psi'(m) \ge 4\Psi(1)(1 - m^2) + 9m \ge 4\Psi(1)`. The same holds for :math:`\sum_k w_k\Theta_k` with the
    bound :math:`4(1 - \frac1e)\min_k w_k`.

    Compare the bound with gradients where it is attained, at random points, and where they are least.
    """
    f, (d,) = case.objective, case.objective.shape
    rng = np.random.default_rng(0)
    last = case.where == "last entry zero"
    floor = FLOOR if last else 0.5 * FLOOR

    def norm(x: np.ndarray) -> float:
        return float(np.linalg.norm(np.mean(f.gradient(x), axis=0)))

    def found(n: int, x: np.ndarray) -> Inequality:
        return Inequality(n, floor, norm(x), "the least gradient")

    best = _attaining(d, last)
    yield found(0, best)
    yield Inequality(0, norm(best), floor if last else floor * (1.0 + 1e-6), "the gradient that attains it")
    for n in range(1, case.starts + 1):
        held = d - 1 if last else int(rng.integers(d))
        x = rng.standard_normal(d) * 10.0 ** rng.uniform(-1.0, 1.0, d)
        x[held] = 0.0 if last else rng.uniform(-1.0, 1.0)
        yield found(n, x)
        box = np.full((d, 2), (-1e4, 1e4))
        box[held] = (0.0, 0.0) if last else (-1.0, 1.0)
        yield found(n, minimize(lambda z: norm(z) ** 2, x, bounds=box, method="L-BFGS-B").x)


def _attaining(d: int, last: bool) -> np.ndarray:
    """Return where the gradient is as small as it can be, or almost so."""
    if last:
        return np.zeros(d)
    x = 1e8 * (-1.0) ** np.arange(d)
    x[0] = 1.0 - 1e-9
    return x


def zero_respecting(race: Case) -> list[str]:
    """Ask that no client computes with what others hold."""
    return ["clients read each other's gradients"] if isinstance(race.algorithm, CentralisedFedAvg) else []


def zero_chain_support_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield methods on both splits, some clients, and a method whose clients take gradients of E."""
    for split in ("thirds",) if quick else ("thirds", "halves"):
        for race in races(6, 8 if quick else 20, split=split):
            yield ExpectedVerdict(race.but(name=f"{race.name}, {split}"))
    fedavg = next(races(6, 8))
    some = fedavg.but(name="FedAvg, 4 of 6", participation=UniformSubset(size=4), opens_one=False)
    yield ExpectedVerdict(some)
    method = CentralisedFedAvg(solver=fedavg.algorithm.solver, stop=fedavg.algorithm.stop)
    outside = fedavg.but(name="FedAvg on read gradients", algorithm=method, participation=Full())
    yield ExpectedVerdict(outside, "outside assumptions")


@claim(
    source="FedPD arXiv v1, Lemma 4, for clients without neighbouring terms",
    statement=r"Whatever linear-span method runs, after $n$ communications the server's model vanishes behind entry"
    r" $n$; it does not vanish at entry $n$ if all clients take part and go far enough along their gradients.",
    assumptions=zero_respecting,
    cases=zero_chain_support_cases,
)
def zero_chain_support(race: Case) -> Iterator[Inequality]:
    r"""Whatever the method, the server gains at most one entry per communication.

    Suppose that all models and gradients known to the server and sent so far vanish behind entry ``n``; at the start
    ``n = 0``. A client takes gradients at points of the span of what it received and computed. At a point that vanishes
    behind entry ``m``, :math:`\Theta_k` has a gradient only if :math:`x_{k-1} \ne 0`, thus for :math:`k \le m + 1`, and
    it lies in the entries up to ``k``. If the client holds :math:`\Theta_{n+1}`, its points come to vanish behind entry
    ``n + 1``, and there it stays: it does not hold :math:`\Theta_{n+2}`. If it does not, it stays at ``n``. So all
    uploads, and all their combinations, vanish behind entry ``n + 1``. This uses no property of the steps, their
    number, the weights of the average, or who takes part.

    Linear span is more than is needed: a method may find its points in any way, such as by a line search or a
    quasi-Newton matrix, as long as they vanish where all that it knows does.

    Compare the entries opened with the communications, and the reverse where no gradient is left out.
    """
    for n, shot in enumerate(race.snapshots(), start=1):
        yield Inequality(n, reach((shot.server.theta, shot.message)), n, "entries opened")
        if race.opens_one:
            yield Inequality(n, n, reach(shot.server.theta), "communications")


ATTAINS = "FedAvg, long steps"  # the method that is below eps as soon as the last entry has opened


def zero_chain_rounds_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield methods on both splits, and FedAvg in other units."""
    for split in ("thirds",) if quick else ("thirds", "halves"):
        for race in races(6, 8 if quick else 20, split=split):
            yield ExpectedVerdict(race.but(name=f"{race.name}, {split}"))
    for L, eps in ((1e-3, 1.0), (40.0, 1e-4)):
        f = zero_chain(6, 8, L=L, eps=eps)
        method = FedAvg(solver=Gradient(step=1.0 / L), stop=Steps(steps=STEPS))
        yield ExpectedVerdict(on_chain(f"FedAvg, L = {L:g}, eps = {eps:g}", method, f, eps=eps))


@claim(
    source="FedPD arXiv v1, Theorem 2 (50), with the constants corrected and the best of this proof",
    statement=r"For all $L, \epsilon$ and $T$ there are $L$-smooth clients with $\Delta = E(0) - \inf E$ such that"
    r" every linear-span method has $|\nabla E|^2 \ge \epsilon$ up to communication $T$, where $T + 1 >"
    r" \frac{L\Delta\gamma^2}{4\pi C\epsilon} = \frac{L\Delta}{15.02\pi^2\epsilon}$ for $C = 24\pi$ (thirds) and"
    r" $\frac{L\Delta}{10.02\pi^2\epsilon}$ for $C = 16\pi$ (halves), $\gamma = 4(1 - \frac1e)$.",
    rtol=1e-12,
    cases=zero_chain_rounds_cases,
)
def zero_chain_rounds(race: Case) -> Iterator[Inequality]:
    r"""Lower bound on communication, with constants.

    Let :math:`f_j = \lambda g_j(\cdot/\sigma)`, where the :math:`g_j` are ``C``-smooth (:math:`C = 24\pi` for thirds,
    :math:`16\pi` for halves), and let :math:`\gamma = 4(1 - \frac1e)`. After ``n <= T`` communications the last of the
    ``T + 1`` entries is zero (``zero_chain_support``), so that :math:`|\nabla E| \ge \gamma\lambda/\sigma`
    (``zero_chain_gradient``). With

    .. math:: \sigma = \frac{C\sqrt\epsilon}{L\gamma}, \qquad \lambda = \frac{C\epsilon}{L\gamma^2}

    the clients are ``L``-smooth, as :math:`C\lambda/\sigma^2 = L`, and :math:`|\nabla E|^2 \ge \epsilon` for all these
    rounds. By ``zero_chain_infimum`` :math:`\Delta = 4\pi\lambda(T + \frac12(1 - \frac1e))`, and therefore to get below
    :math:`\epsilon` takes

    .. math:: T + 1 > \frac{L\Delta\gamma^2}{4\pi C\epsilon}
              = \frac{L\Delta}{15.02\,\pi^2\epsilon} \text{ (thirds)}, \quad
              \frac{L\Delta}{10.02\,\pi^2\epsilon} \text{ (halves)}

    communications. For any given :math:`L, \Delta, \epsilon` take the largest ``T`` whose fall is at most
    :math:`\Delta`; the bound is then less by at most :math:`\frac12(1 - \frac1e)`. The paper's bounds :math:`C =
    81\pi`, :math:`|\nabla g| > 1`, :math:`\Delta \le 5.3\pi\lambda T` and its :math:`2\epsilon` for :math:`\epsilon`
    give 859 for 15.02. The bound is attained: FedAvg with long local steps is below :math:`\epsilon` after ``T + 1``
    communications.

    Compare eps with the squared gradient up to T communications, and the bound with T + 1.
    """
    f, T = race.objective, race.objective.shape[0] - 1
    squares = [race.squared_gradient(f.zeros()), *(race.squared_gradient(s.server.theta) for s in race.snapshots())]
    for n, square in enumerate(squares[: T + 1]):
        yield Inequality(n, race.eps, square, "squared gradient")
    yield Inequality(T, rounds_needed(f, race.eps), T + 1, "T + 1")
    if race.name.startswith(ATTAINS):
        taken = next((n for n, square in enumerate(squares) if square < race.eps), math.inf)
        yield Inequality(T, taken, T + 1, "communications of the method that attains the bound")


def rounds_needed(f: ZeroChain, eps: float) -> float:
    r"""Return :math:`L\Delta\gamma^2/(4\pi C\epsilon)` for a chain, from the constants that it declares.

    Examples
    --------
    >>> f = zero_chain(6, 11, L=2.0, eps=1e-3)  # T = 10
    >>> round(rounds_needed(f, 1e-3), 3)
    10.316
    """
    L, fall = float(np.max(f.L)), float(np.mean(f.value(f.zeros()) - f.infimum))
    C = L * f.width**2 / f.height
    return L * fall * FLOOR**2 / (4.0 * np.pi * C * eps)


class Part(NamedTuple):
    """A part of the printed statement, "the mean", "the smoothness" or "the rounds", for N clients and T + 1 terms."""

    name: str
    n: int
    T: int
    L: float = 2.0
    eps: float = 0.1


def p6_split_of_the_chain_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield the three statements."""
    for part in (Part("the mean", 6, 12), Part("the smoothness", 6, 12), Part("the rounds", 30, 30)):
        yield ExpectedVerdict(Form(part, printed=True), "violated")
        yield ExpectedVerdict(Form(part, printed=False))


@zero_chain_rounds.as_printed(
    source="FedPD arXiv v1, (24), Lemma 2 (3) and Theorem 2",
    statement=r"Clients $h_i = \Theta_1 + \sum_j \Theta_{(j-1)N+i+1}$, $T \ge N$. Printed: their mean is $\Theta_1 +"
    r" \sum_{k\ge2}\Theta_k$; $f_i = \frac{2\pi\epsilon}L h_i(\frac{xL}{\pi\sqrt{2\epsilon}})$ is $L$-smooth; it takes"
    r" $\frac{LN\Delta}{10\pi^2\epsilon}$ rounds to reach $|\nabla E|^2 \le \epsilon$. Corrected: the mean is"
    r" $\Theta_1 + \frac1N\sum_{k\ge2}\Theta_k$; $f_i$ is $8L$-smooth, so other units are needed, in which it takes"
    r" $\frac{L\Delta}{7.1\pi^2N\epsilon}$ rounds.",
    cases=p6_split_of_the_chain_cases,
)
def p6_split_of_the_chain(form: Form) -> Iterator[Inequality]:
    r"""P6: the construction behind the lower bound in arXiv v1 of the FedPD paper.

    As recorded from the supplement, every client holds :math:`\Theta_1` and each other :math:`\Theta_k` is dealt out to
    one client; the proof of Lemma 4 fits this: every client moves entry 1, and one of them entry 2, before anything is
    sent. Three things are wrong.

    * The mean of the clients, and so its gradient, has the factor ``1/N`` at all terms but the first.
    * The clients are :math:`8\pi`-smooth (the proof gives :math:`27\pi`), but the units are those of the constant
      :math:`\pi`.
    * Hence :math:`|\nabla E|^2 \le \epsilon` after a few rounds, where ``LN Delta/(10 pi^2 eps)`` of them are said to
      be needed.

    With the units for :math:`|\nabla\bar g| \ge \gamma/N`, :math:`\gamma = 4(1 - \frac1e)`, which are :math:`\sigma =
    CN\sqrt\epsilon/(L\gamma)` and :math:`\lambda = CN^2\epsilon/(L\gamma^2)`, the fall is :math:`\Delta =
    4\pi\lambda(\frac TN + \frac12(1 - \frac1e)) \le 5.27\pi\lambda\frac TN` for :math:`T \ge N`. Hence :math:`T \ge
    L\Delta\gamma^2/(5.27\pi CN\epsilon)`, where :math:`C = 8\pi + \frac{3\sqrt3}2(1 - \frac1e)` is safe: ``N`` divides.
    The paper's constants (:math:`27\pi`, 1 for :math:`\gamma`, 5 for 5.27) would give
    :math:`L\Delta/(135\pi^2N\epsilon)`. A split by thirds or halves needs no ``N`` at all (``zero_chain_rounds``).

    Compare one part of the printed statement, or of the corrected one, with what is found.
    """
    yield from {"the mean": _mean, "the smoothness": _smoothness, "the rounds": _rounds}[form.case.name](form)


def chain(form: Form) -> ZeroChain:
    """Return the printed split in the printed units or in those that make the statements true."""
    part = form.case
    f = as_printed(part.n, part.T + 1, L=part.L, eps=part.eps)
    return f if form.printed else f.scaled(L=part.L, eps=part.eps)


def _mean(form: Form) -> Iterator[Inequality]:
    f, N = chain(form), form.case.n
    weights = np.ones((1, form.case.T + 1))
    if not form.printed:
        weights[:, 1:] /= N
    rng = np.random.default_rng(0)
    for n in range(5):
        theta = f.width * rng.standard_normal(f.shape)
        mean, stated = float(np.mean(f.value(theta))), float(replace(f, split=weights).value(theta)[0])
        yield Inequality(n, abs(mean - stated), 1e-12 * f.height * (form.case.T + 1), "error of the mean")


def _smoothness(form: Form) -> Iterator[Inequality]:
    found = curvatures(chain(form), points=10)
    for j, curvature in enumerate(found):
        yield Inequality(j, float(curvature), form.case.L, "curvature")


def _rounds(form: Form) -> Iterator[Inequality]:
    f, (_, N, T, L, eps) = chain(form), form.case
    fall = float(np.mean(f.value(f.zeros()) - f.infimum))
    needed = L * N * fall / (10.0 * np.pi**2 * eps) if form.printed else L * fall / (7.1 * np.pi**2 * N * eps)
    method = FedAvg(solver=Gradient(step=1.0 / float(np.max(f.L))), stop=Steps(steps=STEPS))
    case = on_chain("FedAvg", method, f)
    below = (n for n, s in enumerate(case.snapshots(), start=1) if case.squared_gradient(s.server.theta) < eps)
    yield Inequality(T, needed, next(below, T), "rounds of FedAvg from below")
