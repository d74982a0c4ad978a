r"""Lemma 5 of the first version: FedAvg decreases the energy when gradients are bounded.

The text that is available has lost the formulas of the lemma; this is the statement that its proof leads to. The mean
:math:`\bar x^q` of the clients after ``q`` local steps moves by :math:`-\eta\bar g^q`, the mean gradient at their own
points. By A1 and :math:`2\langle\nabla E, \bar g\rangle = |\nabla E|^2 + |\bar g|^2 - |\nabla E - \bar g|^2`,

.. math:: E(\bar x^{q+1}) \le E(\bar x^q) - \tfrac\eta2|\nabla E(\bar x^q)|^2 - \tfrac\eta2(1 - L\eta)|\bar g^q|^2
          + \tfrac{\eta L^2}{2}\,\mathrm{mean}\,|x_j^q - \bar x^q|^2,

and :math:`x_j^q - \bar x^q` is a sum of ``q`` steps, whose squares are at most :math:`\eta^2G^2` on average (A3).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dualopt.claims import Inequality, claim
from theory._claims import ExpectedVerdict
from theory.fedpd._instances import logistic
from theory.fedpd._local_steps import LocalSteps, Vanishing, bounded_gradient, squares


def lemma_5_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """One local step, where only smoothness is in the way, several, and a step that is too long."""
    f = logistic(mu=0.0)
    G, L = bounded_gradient(f), float(np.max(f.L))
    for steps in (1, 2, 8):
        for multiple in (0.02, 1.0):
            name = f"logistic, Q = {steps}, eta = {multiple:g}/L"
            yield ExpectedVerdict(
                LocalSteps(name=name, objective=f, schedule=Vanishing(multiple / L), steps=steps, rounds=20, G=G)
            )
    long = LocalSteps(name="eta = 3/L", objective=f, schedule=Vanishing(3.0 / L), steps=2, rounds=20, G=G)
    yield ExpectedVerdict(long, "outside assumptions")


@claim(
    name="fedpd_lemma_5",
    source="Zhang et al., first version, Lemma 5",
    statement=r"FedAvg with Q steps $\eta \le 1/L$ and $\frac1N\sum_j|\nabla f_j|^2 \le G^2$ everywhere:"
    r" $\frac\eta2\sum_{q<Q}|\nabla E(\bar x^q)|^2 \le E(\bar x^0) - E(\bar x^Q) + \frac{\eta^3L^2G^2}{2}"
    r" \frac{(Q-1)Q(2Q-1)}{6}$.",
    assumptions=lambda case: [] if case.schedule(0) <= 1.0 / case.L else ["eta <= 1/L"],
    rounding=1e-9,
    cases=lemma_5_cases,
)
def lemma_5(case: LocalSteps) -> Iterator[Inequality]:
    """Compare the squared gradients of every round with the decrease that must pay for them."""
    f = case.objective
    for n, step, means in case.run():
        paid = 0.5 * step * sum(float(np.sum(np.mean(f.gradient(x), axis=0) ** 2)) for x in means[:-1])
        decrease = float(np.mean(f.value(means[0])) - np.mean(f.value(means[-1])))
        drift = 0.5 * step**3 * case.L**2 * squares(case.steps) * case.G**2
        yield Inequality(n, paid, decrease + drift, "eta/2 sum_q |grad E|^2")
