r"""P6: the construction behind the lower bound in arXiv v1 of the FedPD paper.

As recorded from the supplement, everybody holds :math:`\Theta_1` and each other :math:`\Theta_k` is dealt out to one
client; the proof of Lemma 4 fits this: every client moves entry 1, and one of them entry 2, before anything is sent.
Three things are wrong.

* The mean of the clients, and so its gradient, has the factor ``1/N`` at all terms but the first.
* The clients are :math:`8\pi`-smooth (the proof gives :math:`27\pi`), but the units are those of the constant
  :math:`\pi`.
* Hence :math:`|\nabla E|^2 \le \epsilon` after a few rounds, where ``LN Delta/(10 pi^2 eps)`` of them are said to be
  needed.

With the units for :math:`|\nabla\bar g| \ge \gamma/N`, :math:`\gamma = 4(1 - \frac1e)`, which are :math:`\sigma =
CN\sqrt\epsilon/(L\gamma)` and :math:`\lambda = CN^2\epsilon/(L\gamma^2)`, the fall is :math:`\Delta = 4\pi\lambda(\frac
TN + \frac12(1 - \frac1e)) \le 5.27\pi\lambda\frac TN` for :math:`T \ge N`. Hence :math:`T \ge L\Delta\gamma^2/(5.27\pi
CN\epsilon)`, where :math:`C = 8\pi + \frac{3\sqrt3}2(1 - \frac1e)` is safe: ``N`` divides. The paper's constants
(:math:`27\pi`, 1 for :math:`\gamma`, 5 for 5.27) would give :math:`L\Delta/(135\pi^2N\epsilon)`. A split by thirds or
halves needs no ``N`` at all (``zero_chain_rounds``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from dualopt.algorithms import FedAvg
from dualopt.claims import Inequality
from dualopt.objectives import ZeroChain
from dualopt.solvers import Gradient
from dualopt.stopping import Steps
from theory._claims import ExpectedVerdict, Form
from theory.lower_bounds._race import Race
from theory.lower_bounds._zero_chain import as_printed
from theory.lower_bounds.zero_chain_rounds import squared_gradient, zero_chain_rounds
from theory.lower_bounds.zero_chain_smoothness import curvatures

STEPS = 20


class Part(NamedTuple):
    """What is looked at: "the mean", "the smoothness" or "the rounds", for N clients and T + 1 terms."""

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
    rounding=0.0,
    cases=p6_split_of_the_chain_cases,
)
def p6_split_of_the_chain(form: Form) -> Iterator[Inequality]:
    """Compare one part of the printed statement, or of the corrected one, with what is found."""
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
        mean, said = float(np.mean(f.value(theta))), float(replace(f, weights=weights).value(theta)[0])
        yield Inequality(n, abs(mean - said), 1e-12 * f.height * (form.case.T + 1), "error of the mean")


def _smoothness(form: Form) -> Iterator[Inequality]:
    found = curvatures(chain(form), points=10)
    for j, curvature in enumerate(found):
        yield Inequality(j, float(curvature), form.case.L, "curvature")


def _rounds(form: Form) -> Iterator[Inequality]:
    f, (_, N, T, L, eps) = chain(form), form.case
    fall = float(np.mean(f.value(f.zeros()) - f.infimum))
    needed = L * N * fall / (10.0 * np.pi**2 * eps) if form.printed else L * fall / (7.1 * np.pi**2 * N * eps)
    method = FedAvg(solver=Gradient(step=1.0 / float(np.max(f.L))), stop=Steps(steps=STEPS))
    race = Race(name="FedAvg", algorithm=method, objective=f)
    below = (n for n, shot in race.communications() if n == T or squared_gradient(f, shot.server.theta) < eps)
    yield Inequality(T, needed, next(below), "rounds that are said to be needed")
