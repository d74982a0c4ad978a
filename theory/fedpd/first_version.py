r"""FedPD whose local solver draws samples: Theorem 1 of the first version, with Lemmas 6 to 9 (its Appendix F).

The text of the first version that is available has lost its formulas: no constant of Theorem 1 or of these lemmas can
be read from it. Its numbered steps (80) to (100) are those of the journal's proof, where Lemmas 6 to 9 are Lemmas 1 to
4 and the two cases of Theorem 1 are Theorems 1 and 3. The constants below are derived from the steps, not read, so that
they cannot be compared with those that the journal prints and that ``descent`` and ``skipping`` correct. What is left
of Lemma 7 speaks of its matrix's rank and eigenvalues, as Lemma 2 does, where the matrix as corrected has them (P2).

Both versions prove everything for local solutions of a certain accuracy, (71), and say that under

.. math:: \mathbb E|e_j^r|^2 \le \varepsilon_1, \qquad e_j^r = \nabla_{x_j}\mathcal L_j, \tag{72}

which is what Option II of Oracle I is to reach ((9) in the journal), "the difference does not significantly change the
proofs and the results". Here they are under (72), with exact expectations over all draws.

Lemmas 6, 8 and 9 hold draw by draw, with the squares of the errors themselves, so that their means hold. So does the
proof of Theorem 1 (``descent``), which is linear in :math:`|e_j^r|^2` but for :math:`H_0`, where
:math:`\mathbb E(|\nabla f_j| + |e_j|)^2 \le (|\nabla f_j| + \sqrt{\varepsilon_1})^2`: its case I keeps its constants.

Lemma 7 does not. It bounds the largest of the distances between clients, and its step (83) puts
:math:`2\sqrt{\varepsilon_1}` for :math:`o_r = \max_{i \ne j}(|e_i^r| + |e_j^r|)`. Under (72) only

.. math:: \mathbb E\,o_r \le \bigl(\mathbb E\,o_r^2\bigr)^{1/2} \le \Bigl(2\,\mathbb E\sum_j|e_j^r|^2\Bigr)^{1/2}
          \le \sqrt{2N\varepsilon_1},

which is the same for two clients and more for three. With :math:`h = \eta(G + \sqrt{2N\varepsilon_1})` and norms
:math:`\sigma_r = (\mathbb E S_r^2)^{1/2}` in the place of the numbers ``S`` of ``skipping``,

.. math:: \sigma_{r+1}^2 \le (1-p)\Bigl(\frac{a\sigma_r+2ah}{1-a}\Bigr)^2
          + p\Bigl(\frac{(1+2a)\sigma_r+3(1+a)h}{1-a}\Bigr)^2, \qquad \mathbb E z_{r+1}^2 \le p\,\psi(\sigma_r)^2,
          \qquad \mathbb E z_{r+1}z_{r+1}^+ \le \sqrt p\,\psi(\sigma_r)\,
          \frac{(1+a)\sqrt p\,\frac{(1+2a)\sigma_r+3(1+a)h}{1-a} + (3+a)h}{1-a},

because a coin is independent of all rows that were drawn before it, in its own round as well. Case II is Theorem 3 with
these second moments.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.engine.rounds import State
from dualopt.lab.chance import Branch, do_round
from dualopt.lab.claims import Inequality, claim
from dualopt.objectives.local_problem import client_dot
from theory._cases import Case
from theory._claims import ExpectedVerdict, Form
from theory._rounds import Turn
from theory.fedpd._draws import (
    Drawn,
    Rows,
    drawn_path,
    rows,
    sampled,
    similar_rows,
    squares,
)
from theory.fedpd._runs import admitted, lagrangians, residuals, similar, spread
from theory.fedpd.descent import Mean, means_and_bounds
from theory.fedpd.skipping import Drift, bounds, distances, matrix, offset


def copies(branch: Branch) -> Array:
    r"""Return the copies :math:`x_{0,j}^{r+}` of a branch, which a round that communicates averages."""
    return branch.state.clients.x0 if branch.upload is None else branch.upload


def old_errors(case: Case, state: State) -> Array:
    r"""Return :math:`|e_j^r|^2` before a round; zero before the first one, where the duals are zero."""
    s = state.clients
    if not s.dual.any():
        return np.zeros(case.n_clients)
    error = s.dual + case.objective.gradient(s.theta)
    return client_dot(error, error)


def sampled_cases() -> Iterator[ExpectedVerdict]:
    """Yield rows with Hessians of their own, of two and three clients, one of them concave along a direction."""
    yield ExpectedVerdict(sampled("rows", rows(), a=0.2, local_steps=2))
    yield ExpectedVerdict(sampled("noisy rows", rows(noise=0.3), a=0.2, local_steps=2, skip=0.5))
    yield ExpectedVerdict(sampled("rows of three clients", rows(n=3), a=0.3, skip=0.3))


# Lemmas 6 to 9, given the past.


def lemma_6_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Two and three clients, with little noise and much."""
    yield from sampled_cases()


@claim(
    name="fedpd_lemma_6",
    source="Zhang et al., first version, Lemma 6, (75), in expectation over the draws; its constants derived",
    statement=r"With $\varepsilon_j = \mathbb E|e_j^{r+1}|^2$: $\mathbb E[\frac{1-2L\eta}{2\eta}|x_j^{r+1} - x_j^r|^2"
    r" + \frac{1}{2\eta}|x_{0,j}^{r+} - x_{0,j}^r|^2] \le \mathcal L_j^r - \mathbb E[\mathcal L_j^{r+} -"
    r" \eta|\lambda_j^{r+1} - \lambda_j^r|^2] + \frac{\varepsilon_j}{2L}$.",
    cases=lemma_6_cases,
)
def lemma_6(case: Case) -> Iterator[Inequality]:
    """Lemma 6 of the first version: the augmented Lagrangian of a client decreases in expectation.

    Compare, client by client, the exact means given the past.
    """
    eta, a = case.eta, case.a
    for turn in drawn_path(case):
        old = turn.before.clients
        start = lagrangians(case, old.theta, old.x0, old.dual)

        def squared_steps(branch: Branch, old=old) -> Array:
            model, copy = branch.state.clients.theta - old.theta, copies(branch) - old.x0
            return (1.0 - 2.0 * a) / (2.0 * eta) * client_dot(model, model) + client_dot(copy, copy) / (2.0 * eta)

        def available(branch: Branch, old=old, start=start) -> Array:
            new = branch.state.clients
            dual = new.dual - old.dual
            decrease = start - lagrangians(case, new.theta, copies(branch), new.dual)
            return decrease + eta * client_dot(dual, dual) + residuals(branch) / (2.0 * case.L)

        for j, (left, right) in enumerate(zip(turn.E[squared_steps], turn.E[available], strict=True)):
            yield Inequality(turn.n, float(left), float(right), f"squared steps of client {j}")


def lemma_7_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Two and three clients with one Hessian, seldom and often skipped; and Hessians of their own."""
    for p in (0.1, 0.9):
        yield ExpectedVerdict(sampled("similar rows", similar_rows(), a=0.2, skip=p))
        yield ExpectedVerdict(sampled("similar rows of three clients", similar_rows(n=3), a=0.1, skip=p))
    yield ExpectedVerdict(sampled("rows", rows(), a=0.2, skip=0.5), "outside assumptions")


@claim(
    name="fedpd_lemma_7",
    source="Zhang et al., first version, Lemma 7, (76), in expectation over the draws; its constants derived",
    statement=r"Under A5 with G, with $\triangle = (\max|x_{0,i} - x_{0,j}|, \max|x_i - x_j|)$, $a = L\eta < 1$ and"
    r" $\varepsilon_1 \ge |e_j^r|^2, \mathbb E|e_j^{r+1}|^2$: $\mathbb E\triangle^{r+1} \le"
    r" \frac{1}{1-a}(A\triangle^r + \eta B(G + \sqrt{2N\varepsilon_1}))$, $A = (p(1+a), 1)^\top(1, a)$,"
    r" $B = (p(3+a), 2)^\top$.",
    assumptions=similar,
    cases=lemma_7_cases,
)
def lemma_7(case: Case) -> Iterator[Inequality]:
    """Lemma 7 of the first version: how fast clients drift apart when rounds are skipped and rows are drawn.

    Compare the drift that is expected after one round, over both sides of the coin and all draws.
    """
    for turn in drawn_path(case):
        accuracy = float(np.max(np.maximum(old_errors(case, turn.before), turn.E[residuals])))
        expected, bound = turn.E[lambda branch: distances(branch.state)], drift_bound(case, turn, accuracy)
        for left, right, what in zip(expected, bound, ("copies", "models"), strict=True):
            yield Inequality(turn.n, float(left), float(right), f"expected distance between {what}")


def drift_bound(case: Case, turn: Turn, accuracy: float, *, as_printed: bool = False) -> Array:
    r"""Return the right-hand side of Lemma 7, with :math:`2\sqrt{\varepsilon_1}` for the errors when as printed."""
    a, p = case.a, case.skip
    errors = 2.0 if as_printed else math.sqrt(2.0 * case.n_clients)
    G = case.dissimilarity + errors * math.sqrt(accuracy)
    return (matrix(p, a) @ distances(turn.before) + case.eta * offset(p, a) * G) / (1.0 - a)


def p12_errors_of_samples_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield many clients, each of which is seldom far off."""
    case = many_clients()
    yield ExpectedVerdict(Form(case, printed=True), "violated")
    yield ExpectedVerdict(Form(case, printed=False))


def many_clients(n: int = 16) -> Case:
    r"""Return clients :math:`-\frac12x^2` with eight rows each, of which six are exact.

    With one step of length :math:`1/(1/\eta - 1)` a client ends at the exact solution or, with probability 1/8 each,
    where the gradient is 2 or -2: :math:`\mathbb E e^2 = 1`. The errors that they start from are 1 and -1.
    """
    b = np.tile(np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0, -2.0])[None, :, None], (n, 1, 1))
    a = 0.2
    case = sampled(f"{n} clients of 8 rows", Rows(-np.ones((n, 8, 1, 1)), b), a=a, length=1.0 / (1.0 / a - 1.0))
    first = case.but(theta0=np.zeros(1)).first()
    signs = np.where(np.arange(n) < n // 2, 1.0, -1.0)[:, None]
    return case.but(state=first._replace(clients=first.clients._replace(dual=signs)), rounds=1)


def expected_range(values: Array) -> float:
    """Return the expectation of the range of independent numbers, each uniform on its row of ``values``.

    Examples
    --------
    >>> expected_range(np.array([[0.0, 1.0], [0.0, 1.0]]))
    0.5
    """

    def expected_maximum(rows: Array) -> float:
        points = np.unique(rows)
        below = np.prod(np.mean(rows[:, :, None] <= points, axis=1), axis=0)
        return float(points @ np.diff(below, prepend=0.0))

    return expected_maximum(values) + expected_maximum(-values)


@lemma_7.as_printed(
    source="FedPD (49) and the end of Appendix B-B; first version (72) and (83)",
    statement=r"Lemma 2, for local solutions with $\mathbb E|e_j|^2 \le \varepsilon_1$, of which it is said that the"
    r" results hold in expectation: $\mathbb E\max|x_i' - x_j'| \le \frac{1}{1-a}(\max|x_{0,i} - x_{0,j}| +"
    r" a\max|x_i - x_j| + 2\eta(G + c\sqrt{\varepsilon_1}))$. Printed: c = 2, although the largest of N errors may"
    r" have a mean of order $\sqrt{N\varepsilon_1}$. Corrected: $c = \sqrt{2N}$.",
    cases=p12_errors_of_samples_cases,
)
def p12_errors_of_samples(form: Form) -> Iterator[Inequality]:
    """P12: Lemma 2 of the FedPD paper (Lemma 7 of the first version) when local solutions are accurate on average.

    A client's model depends on its own draw alone, so that all models come from one round per row; compare the
    expectation of their range with the lemma.
    """
    case: Case = form.case
    n, start = case.n_clients, case.first()
    known = {"n": 0, "n_clients": n, "clients": tuple(range(n)), "communicate": True, "seed": 0}
    found = [
        Branch(0.125, round, *do_round(case.algorithm, case.objective, start, round))
        for round in (Drawn(rows=((row,),) * n, **known) for row in range(8))
    ]
    models = np.concatenate([branch.state.clients.theta for branch in found], axis=1)
    turn = Turn(0, start, tuple(found), (0.125,) * 8, 0)
    accuracy = float(np.max(np.maximum(old_errors(case, start), turn.E[residuals])))
    bound = drift_bound(case, turn, accuracy, as_printed=form.printed)[1]
    yield Inequality(0, expected_range(models), float(bound), "expected distance between models")


def lemma_8_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Two clients, where the bound is attained, and three."""
    yield from sampled_cases()


@claim(
    name="fedpd_lemma_8",
    source="Zhang et al., first version, Lemma 8, in expectation over the draws; its constants derived",
    statement=r"$\mathbb E\frac1N\sum_j[\mathcal L_j(x_j, \bar x_0, \lambda_j) - \mathcal L_j(x_j, x_{0,j}^+,"
    r" \lambda_j)] \le \frac{N-1}{4N\eta}\mathbb E\max|x_{0,i}^+ - x_{0,j}^+|^2$, half of the journal's Lemma 3, with"
    r" equality for N = 2.",
    rtol=1e-10,
    cases=lemma_8_cases,
)
def lemma_8(case: Case) -> Iterator[Inequality]:
    r"""Lemma 8 of the first version: what averaging may cost, in expectation.

    The augmented Lagrangian is :math:`\frac{1}{2\eta}|\cdot - x_{0,j}^+|^2` plus a constant in :math:`x_0`, and the
    mean of :math:`|x_{0,j}^+ - \bar x_0|^2` is :math:`\frac{1}{2N^2}\sum_{i,j}|x_{0,i}^+ - x_{0,j}^+|^2`, where
    Jensen's inequality in (87) gives twice as much.

    Compare exact means given the past.
    """
    N = case.n_clients

    def increase(branch: Branch) -> float:
        s, own = branch.state.clients, copies(branch)
        average = np.broadcast_to(np.mean(own, axis=0), own.shape)
        return float(np.mean(lagrangians(case, s.theta, average, s.dual) - lagrangians(case, s.theta, own, s.dual)))

    for turn in drawn_path(case):
        bound = (N - 1) / (4.0 * N * case.eta) * turn.E[lambda branch: spread(copies(branch)) ** 2]
        yield Inequality(turn.n, turn.E[increase], bound, "increase of the mean Lagrangian")


def lemma_9_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Two and three clients, with little noise and much."""
    yield from sampled_cases()


@claim(
    name="fedpd_lemma_9",
    source="Zhang et al., first version, Lemma 9, in expectation over the draws; its constants derived",
    statement=r"With $\varepsilon = \frac1N\sum_j\mathbb E|e_j^r|^2$: $\frac{1-2L\eta}{2\eta}\,\mathbb E\frac1N\sum_j"
    r"|x_j^r - \bar x_0^r|^2 \le \mathbb E\bigl[\frac1N\sum_j\mathcal L_j(x_j^r, \bar x_0^r, \lambda_j^r) -"
    r" E(\bar x_0^r)\bigr] + \frac{\varepsilon}{2L}$.",
    cases=lemma_9_cases,
)
def lemma_9(case: Case) -> Iterator[Inequality]:
    """Lemma 9 of the first version: the energy lies below the augmented Lagrangian, in expectation.

    Compare exact means given the past.
    """

    def average(branch: Branch) -> Array:
        x0 = branch.state.clients.x0
        return np.broadcast_to(np.mean(x0, axis=0), x0.shape)

    def distance(branch: Branch) -> float:
        apart = branch.state.clients.theta - average(branch)
        return float(np.mean(client_dot(apart, apart)))

    def excess(branch: Branch) -> float:
        s, x0 = branch.state.clients, average(branch)
        return float(np.mean(lagrangians(case, s.theta, x0, s.dual) - case.objective.value(x0)))

    for turn in drawn_path(case):
        bound = turn.E[excess] + float(np.mean(turn.E[residuals])) / (2.0 * case.L)
        factor = (1.0 - 2.0 * case.a) / (2.0 * case.eta)
        yield Inequality(turn.n, factor * turn.E[distance], bound, "distance between models, squared")


# Theorem 1 of the first version.


def drift_of_means(p: float, *, a: float, h: float) -> Iterator[Drift]:
    """Yield bounds of second moments for ``r = 0, 1, ...``, where errors are bounded on average only, without end.

    Examples
    --------
    >>> from itertools import islice
    >>> from theory.fedpd.skipping import drift
    >>> [round(next(islice(of(0.5, a=0.1, h=1.0), 2, None)).copies, 3) for of in (drift, drift_of_means)]
    [19.157, 21.907]
    """
    norm = copies = crossed = 0.0
    while True:
        yield Drift(copies, crossed)
        sent = ((1.0 + a) * norm + (3.0 + a) * h) / (1.0 - a)
        skips = ((1.0 + 2.0 * a) * norm + 3.0 * (1.0 + a) * h) / (1.0 - a)
        communicates = (a * norm + 2.0 * a * h) / (1.0 - a)
        copies = p * sent**2
        following = ((1.0 + a) * math.sqrt(p) * skips + (3.0 + a) * h) / (1.0 - a)
        crossed = math.sqrt(p) * sent * following
        norm = math.sqrt((1.0 - p) * communicates**2 + p * skips**2)


def expected_means(case: Case) -> Iterator[Mean]:
    """Yield the exact expectations for T = 1, 2, ..."""
    total = accuracy = 0.0
    for T, (gradient, errors) in enumerate(squares(case), start=1):
        total += gradient
        accuracy = max(accuracy, float(np.max(errors)))
        yield Mean(T, total / T, accuracy)


def first_version_theorem_1_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Both cases of the theorem with enough rounds; too few; too much noise; and clients that are not similar."""
    rounds = 500 if quick else 6000
    known = {"a": 0.05, "local_steps": 2}
    yield ExpectedVerdict(sampled("case I, rows", rows(), rounds=rounds, **known))
    if not quick:
        yield ExpectedVerdict(sampled("case I, rows of three clients", rows(n=3), rounds=rounds, **known))
    alike = similar_rows(apart=0.01, noise=0.005)
    yield ExpectedVerdict(sampled("case II, similar rows", alike, rounds=rounds, skip=0.3, **known))
    yield ExpectedVerdict(sampled("case I, too few rounds", rows(), rounds=30, **known), "vacuous")
    yield ExpectedVerdict(sampled("case I, noisy rows", rows(noise=0.5), rounds=rounds, **known), "vacuous")
    yield ExpectedVerdict(sampled("case II, rows", rows(), rounds=5, skip=0.3, **known), "outside assumptions")


@claim(
    name="fedpd_first_version_theorem_1",
    source="Zhang et al., first version, Theorem 1, and Theorems 1 and 3 with Option II, (9); constants derived",
    statement=r"Local solutions from samples, $\mathbb E|e_j^r|^2 \le \varepsilon_1$, $0 < L\eta < (\sqrt5-1)/4$. Case"
    r" I, p = 0: the bound of Theorem 1 holds for $\frac1T\sum_{r<T}\mathbb E|\nabla E(x_0^r)|^2$. Case II, under A5:"
    r" so does that of Theorem 3 for $\frac1T\sum_{r<T}\mathbb E|\nabla E(\bar x_0^r)|^2$, with $h = \eta(G +"
    r" \sqrt{2N\varepsilon_1})$, $Z_{r+1} = p\psi(\sigma_r)^2$, $X_{r+1} = \sqrt p\,\psi(\sigma_r)"
    r"\frac{(1+a)\sqrt p\,s(\sigma_r) + (3+a)h}{1-a}$, $\sigma_{r+1}^2 = (1-p)\bigl(\frac{a\sigma_r + 2ah}{1-a}\bigr)^2"
    r" + p\,s(\sigma_r)^2$, $s(\sigma) = \frac{(1+2a)\sigma + 3(1+a)h}{1-a}$, $\sigma_0 = Z_0 = X_0 = 0$.",
    assumptions=lambda case: admitted(case) + (similar(case) if case.skip > 0 else []),
    trivial=lambda case: case.squared_gradient(case.theta0),
    cases=first_version_theorem_1_cases,
)
def first_version_theorem_1(case: Case) -> Iterator[Inequality]:
    """Theorem 1 of the first version: FedPD with stochastic gradient steps, which are accurate on average only.

    Compare exact expectations over all draws and coins of the means over the first T rounds.
    """
    means = list(expected_means(case))
    if case.skip == 0:
        yield from means_and_bounds(case, means)
        return
    accuracy = max((mean.accuracy for mean in means), default=0.0)
    h = case.eta * (case.dissimilarity + math.sqrt(2.0 * case.n_clients * accuracy))
    for mean, bound in zip(means, bounds(case, accuracy, drift_of_means(case.skip, a=case.a, h=h)), strict=False):
        yield Inequality(mean.T, mean.squared_gradient, bound, "E mean of |grad E|^2")
