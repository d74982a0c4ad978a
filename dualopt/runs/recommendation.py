r"""Which method to use on a problem: its facts, how alike the clients are, and the method that the rules choose.

The rules are those of :mod:`dualopt.runs.rules`. How alike the clients are is measured, in the mean and the worst. With
the gradients :math:`g_j = \nabla f_j(\theta^0)` at the start and the average :math:`\bar\theta` of the clients' own
minimisers it is, in the mean,

.. math:: s = \frac{|\nabla E(\bar\theta)|}{|\nabla E(\theta^0)|}.

For quadratics :math:`\nabla E(\bar\theta) = \frac1N\sum_j (I - \bar H H_j^{-1})\,g_j` with the mean Hessian
:math:`\bar H`: the measure vanishes where the Hessians are the same, whatever the gradients, and if the gradients are
the same it is how much one step of DANE with step 1 reduces the gradient. A mean does not see one odd client among
many. What the next step of DANE does to the gradient, from :math:`\bar\theta` to :math:`\theta^+`, tells of it:

.. math:: q = \frac{|\nabla E(\theta^+)|}{|\nabla E(\bar\theta)|}, \qquad
    \theta^+ = \frac1N\sum_j\arg\min_x f_j(x) + \langle\nabla E(\bar\theta) - \nabla f_j(\bar\theta), x\rangle.

Every client sends five vectors for both, two minimisers and three gradients, and solves two local problems.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import ClassVar

from dualopt.arrays.xp import Array, array_namespace, width
from dualopt.engine.rounds import iterate, resolve, scaled
from dualopt.methods import Algorithm, AndersonDANE
from dualopt.methods.anderson_dane import SOLUTION
from dualopt.methods.participation import Full, Participation
from dualopt.objectives import Objective
from dualopt.objectives.composite import without_regulariser
from dualopt.regularisers import Zero
from dualopt.runs.costs import MINIMISED, Link
from dualopt.runs.rules import Facts, Rule, choose
from dualopt.solvers._loop import is_smooth
from dualopt.spec import Spec
from dualopt.spec.discover import unknown_name

__all__ = ["Recommendation", "Similarity", "facts_of", "recommend", "similarity"]


NOTHING = 1e-8  # of the first gradient: what is below is rounding


@dataclass(frozen=True, kw_only=True)
class Similarity:
    """How alike clients are, and what it cost each of them to tell.

    Attributes
    ----------
    factor : float
        The gradient of ``E`` at the average of the clients' minimisers, relative to that at the start.
    dane_step : float
        The gradient of ``E`` after a step of DANE from there, relative to that before; 0 if nothing was left, infinite
        if ``E`` is larger at the average than at the start.
    vectors : int
        What a client sent.
    gradients : float
        Local gradients of a client, on average.
    """

    factor: float
    dane_step: float
    vectors: int
    gradients: float

    vectors_down: ClassVar[int] = 3  # the average, the gradient there, and where the step of DANE ends
    communications: ClassVar[int] = 4


def similarity(objective: Objective) -> Similarity:
    r"""Measure how alike smooth, strongly convex clients are.

    Returns
    -------
    Similarity
        Its factor is :math:`|\nabla E(\bar\theta)|/|\nabla E(\theta^0)|`, its step of DANE
        :math:`|\nabla E(\theta^+)|/|\nabla E(\bar\theta)|`; both 0 if the start is the minimiser.

    Raises
    ------
    ValueError
        If the clients are not smooth.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt import Quadratic
    >>> b = np.array([[3.0, 0.0], [0.0, 7.0]])
    >>> similarity(Quadratic(A=np.stack([np.eye(2), np.eye(2)]), b=b)).factor
    0.0
    >>> round(similarity(Quadratic(A=np.stack([np.eye(2), 4 * np.eye(2)]), b=b)).factor, 3)
    0.684
    """
    f = without_regulariser(objective)
    rounds = list(islice(iterate(AndersonDANE(), f), 3))  # the average of the minimisers, the gradients, a step of DANE
    begin = _norm(f.mean(f.gradient(f.initial())))
    if rounds[1].message.asks == SOLUTION:  # its message is the gradient at the average
        middle, end = _norm(rounds[1].message.vector), _norm(f.mean(f.gradient(rounds[2].message.vector)))
    else:  # the average is worse than the start, and no step was taken from it
        middle, end = _norm(f.mean(f.gradient(rounds[0].message.vector))), math.inf
    spent = sum(float(sum(s.solution.gradients)) for s in rounds if s.solution is not None) / f.n_clients
    return Similarity(
        factor=middle / begin if begin > 0 else 0.0,
        dane_step=end / middle if middle > NOTHING * begin else 0.0,
        vectors=5,
        gradients=spent + 2.0 * f.gradient_cost,  # those at the average are among the rounds
    )


def _norm(x: Array) -> float:
    xp = array_namespace(x)
    return float(xp.sqrt(xp.sum(x * x)))


def gradient_seconds(objective: Objective) -> float:
    """Return the time of a client's gradient here, the mean over the clients and the least of three."""
    theta, times = objective.initial(), []
    for _ in range(3):
        begun = time.perf_counter()
        objective.gradient(theta)
        times.append(time.perf_counter() - begun)
    return min(times) / (objective.n_clients * objective.gradient_cost)


@dataclass(frozen=True, kw_only=True)
class Recommendation:
    """The method to use on a problem, and why.

    Attributes
    ----------
    algorithm : Algorithm
        The method with no parameter open, ready for :func:`dualopt.run` with the same ``scales``.
    rule : Rule
        The rule that chose it, with the runner-up and the reasons.
    facts : Facts
        What is known of the problem.
    measured : Similarity, optional
        The measurement of the similarity and its cost; None if it was not needed.
    """

    algorithm: Algorithm
    rule: Rule
    facts: Facts
    measured: Similarity | None

    @property
    def method(self) -> str:
        """Name of the method in ``dualopt list algorithms``."""
        return self.rule.method

    @property
    def scales(self) -> str:
        """The scales of the clients, none or suggested."""
        return self.rule.scales

    @cached_property
    def reasons(self) -> str:
        """Why, in two or three sentences."""
        facts, words = self.facts, [self.rule.because]
        if self.measured is not None:
            likeness, step = "alike" if facts.alike else "not alike", self.measured.dane_step
            after = f"a step of DANE from there by {step:.2g}" if math.isfinite(step) else "raises E"
            words.append(
                f"Averaging the clients' own minimisers changes the gradient by the factor {self.measured.factor:.2g}, "
                f"and {after}: they are {likeness}."
            )
        if facts.mu > 0 and math.isfinite(facts.kappa):
            words.append(f"The condition number is {facts.kappa:.3g}.")
        return " ".join(words)


def recommend(
    objective: Objective,
    participation: Participation | None = None,
    *,
    minimise: str = "vectors",
    link: str | Link | None = None,
) -> Recommendation:
    """Recommend a method for a problem.

    Where the rules ask how alike the clients are, that is measured: five vectors from every client.

    Parameters
    ----------
    objective : Objective
        The clients, with their constants and the regulariser.
    participation : Participation, optional
        Who takes part; everybody when not given.
    minimise : str, default "vectors"
        What to keep small: ``"vectors"`` or ``"bits"`` that clients send, their local ``"gradients"``, or
        ``"seconds"``: those of a round's two messages, of what they carry, and of the local gradients, whose time is
        measured here.
    link : str or Link, optional
        The connection of a client with the server, such as ``"10Mbit,50ms"``: what seconds depend on, and they alone.

    Raises
    ------
    ValueError
        If ``minimise`` is none of them, ``link`` is wrong, missing or not needed, or nothing can be suggested without
        more knowledge of the clients.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt import Quadratic, UniformSubset, run
    >>> f = Quadratic(A=np.stack([np.diag([1.0, 4.0]), np.diag([2.0, 3.0])]), b=np.array([[3.0, 0.0], [0.0, 7.0]]))
    >>> found = recommend(f)
    >>> found.method, run(found.algorithm, f, scales=found.scales, rounds=36).theta.round(6).tolist()
    ('distributed-lbfgs', [1.0, 1.0])
    >>> recommend(f, UniformSubset(size=1)).method
    'fedsplit'
    """
    if minimise not in MINIMISED:
        raise unknown_name("minimise", minimise, MINIMISED)
    link = _link(minimise, link)
    participation = Full() if participation is None else participation
    facts = facts_of(objective, participation, minimise, link)
    if math.isinf(facts.mu):
        raise ValueError("objective must have a known mu for a recommendation: compare methods on networks instead.")
    measured = None
    if facts.similarity_matters:
        measured = similarity(objective)
        facts = replace(facts, similarity=measured.factor, dane_step=measured.dane_step)
    rule = choose(facts)
    method = Spec(rule.method).build("algorithm")
    algorithm = resolve(method, scaled(method, objective, rule.scales, participation), participation)
    return Recommendation(algorithm=algorithm, rule=rule, facts=facts, measured=measured)


def _link(minimise: str, link: str | Link | None) -> Link | None:
    if (link is None) == (minimise == "seconds"):
        raise ValueError(f"link must be given for minimise seconds, and only there, such as 10Mbit,50ms; not {link!r}.")
    return Link.parse(link) if isinstance(link, str) else link


def facts_of(
    objective: Objective, participation: Participation, minimise: str = "vectors", link: Link | None = None
) -> Facts:
    """Return what is known without asking the clients for more than their constants: all but the similarity."""
    xp, N = array_namespace(objective.mu), objective.n_clients
    return Facts(
        n_clients=N,
        size=math.prod(objective.shape),
        mu=float(xp.min(objective.mu)),
        L=float(xp.max(objective.L)),
        least_L=float(xp.min(objective.L)),
        fraction=participation.law(N).fraction,
        needs=participation.needs(N),
        smooth=is_smooth(objective),
        regularised=objective.regulariser != Zero(),
        minimise=minimise,
        bits=width(objective.initial()),
        link=link,
        gradient_seconds=None if link is None else gradient_seconds(objective),
    )
