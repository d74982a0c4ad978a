r"""Theorem D: FedSplit and FedDyn that upload a part of the numbers, with exact limits.

All clients take part and solve exactly; chance decides what each of them uploads.

**Theorem D (i), FedSplit.** Let :math:`C_j` be random maps with :math:`\mathbb E\,C_j(v) = v` and
:math:`\mathbb E|C_j(v)|^2 \le (1 + \omega)|v|^2`, and let :math:`z_j^+ = z_j + \frac1{1 + \omega}C_j\bigl((Tz)_j -
z_j\bigr)` for the operator T of a full round (:mod:`theory.frontier.sampled_fedsplit`), which contracts by
:math:`\delta`. Then

.. math:: \mathbb E\sum_j|z_j^+ - z_j^*|^2 \le \Bigl(1 - \frac{1 - \delta^2}{1 + \omega}\Bigr)\sum_j|z_j - z_j^*|^2.

*Proof.* With :math:`D = Tz - z`, :math:`\mathbb E|z^+ - z^*|^2 \le |z - z^*|^2 + \frac1{1 + \omega}(2\langle z - z^*,
D\rangle + |D|^2)`, and the parenthesis is :math:`|Tz - z^*|^2 - |z - z^*|^2`. ∎ The limit is exact because D vanishes
there: the :math:`z_j`, which client and server both know, are the shifts that other methods learn. For a random set of
k of d coordinates, scaled by d/k, :math:`\omega = \frac dk - 1`, and the step takes these coordinates of D as they are:
the first inequality is an equality, and Hessians that attain :math:`\delta` attain the factor. Rounding at random to
the powers of two on either side has :math:`\omega = \frac18` and sends 9 bits for a number.

**Theorem D (ii), FedDyn.** Each coordinate is uploaded by c of the N clients, every such cohort being equally likely,
and different coordinates may have any joint law; the server takes the means of what it gets, and the memories change in
the coordinates that were sent. Then Theorem A holds with p = c/N.

*Proof.* (2) of :mod:`theory.frontier._feddyn` knows nothing of cohorts, and (3) holds coordinate by coordinate. ∎ With
:math:`\frac cNd` numbers up in a round and about :math:`\frac12\sqrt{\kappa N/c}` rounds per factor e, the numbers fall
by :math:`\sqrt{N/c}` against c = N.

Both are FedSplit and FedDyn of the package with a compressor (:mod:`dualopt.methods.compressors`). Cases give the
methods every set of coordinates that chance may choose, as a mask or through the draws of the package's own
compressors; those that round are in :mod:`theory.frontier.rounded`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache

import numpy as np

from dualopt.lab.chance import Expect
from dualopt.lab.claims import Inequality, claim
from dualopt.methods import FedSplit
from dualopt.methods.compressors import Compressor, CoordinateCohorts, RandK
from dualopt.methods.participation import Round
from dualopt.objectives import Quadratic
from theory._cases import Case, accurately
from theory._claims import ROUNDING, ExpectedVerdict
from theory._problems import solved
from theory._rounds import Turn, equally, path
from theory.baselines._runs import baseline_case, reflection
from theory.baselines.contraction import Errors, fedsplit_errors, one_step, three_directions
from theory.frontier import sampled_feddyn
from theory.frontier._compressed import Masks, cohorts, compressed, independent, masked
from theory.frontier._draws import orders_for_all, orders_for_each
from theory.frontier._feddyn import feddyn_errors


def fedsplit_case(f: Case, compressor: Compressor, rounds: Iterable[Round], note: str) -> Case:
    """Return FedSplit with the best step."""
    method = FedSplit(step=1.0 / math.sqrt(f.L * f.mu), **accurately(f.objective))
    return compressed(baseline_case(f, method, 12, attained=True), compressor, rounds, note)


def feddyn_case(f: Case, c: int, *, times: float = 1.0, together: bool = False) -> Case:
    """Return FedDyn with c clients for each coordinate and ``times`` the best weight."""
    n, d = f.objective.b.shape
    method = replace(sampled_feddyn.sampled_case(f, c, times=times).algorithm, fraction=None)
    note = f"{c} of {n} a coordinate, {times:g} alpha*" + (", cohorts shifted" if together else "")
    rounds = masked(cohorts(n, d, c, together=together))
    return compressed(baseline_case(f, method, 12), Masks(part=c / n), rounds, note)


def from_anywhere(case: Case, errors: Errors) -> Iterator[Turn]:
    """Follow the case from a random error."""
    rng = np.random.default_rng(0)
    return path(case.but(state=errors.state(rng.standard_normal(errors.size))), equally(rng))


def unbiased(case: Case) -> list[str]:
    """Return what fails: the mean of what arrives is what was to be sent."""
    ones = np.ones((case.n_clients, *case.objective.shape))
    mean = Expect(case.events())[lambda event: case.compressor.compress(ones, event.round)]
    return [] if np.max(np.abs(mean - ones)) <= ROUNDING else ["unbiased uploads"]


@cache
def directions() -> Case:
    """Return the clients of :func:`three_directions` with their solution at (1, -2)."""
    f = three_directions().objective
    return solved("three directions from (1, -2)", Quadratic(A=f.A, b=f.b + f.A @ np.array([1.0, -2.0])))


def compressed_fedsplit_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """One coordinate of two and both, the package's compressors; a coordinate that nobody ever sends."""
    f = directions()
    n, d = f.objective.b.shape
    for k in (1, 2):
        rounds = masked(independent(n, d, k))
        yield ExpectedVerdict(fedsplit_case(f, Masks(part=k / d), rounds, f"{k} of {d} coordinates"))
    yield ExpectedVerdict(fedsplit_case(f, RandK(size=1), orders_for_each(n, d), "RandK(size=1)"))
    for c in (1, 2):
        compressor = CoordinateCohorts(size=c)
        yield ExpectedVerdict(fedsplit_case(f, compressor, orders_for_all(n), f"CoordinateCohorts(size={c})"))
    never = masked((((1.0, 0.0),) * n,))
    yield ExpectedVerdict(
        fedsplit_case(f, Masks(part=0.5), never, "1 of 2 coordinates, always the first"), "outside assumptions"
    )


@claim(
    source="Theorem D (i)",
    statement=r"For $\mu$-strongly convex, $L$-smooth clients, all of them active with exact proximal steps, and"
    r" uploads of k of d coordinates chosen at random ($1 + \omega = \frac dk$): $\mathbb E\sum_j|z_j^+ - z_j^*|^2 \le"
    r" \bigl(1 - \frac{1 - \delta^2}{1 + \omega}\bigr)\sum_j|z_j - z_j^*|^2$, attained by quadratics.",
    assumptions=unbiased,
    rtol=ROUNDING,
    cases=compressed_fedsplit_cases,
)
def compressed_fedsplit(case: Case) -> Iterator[Inequality]:
    """FedSplit that uploads some coordinates: it contracts, to the solution itself.

    Compare the exact expectation over what is uploaded, at the states of a path and at the worst of all states.
    """
    delta = reflection(case.algorithm.step, case.mu, case.L)
    errors = fedsplit_errors(case)
    yield from one_step(case, errors, 1.0 - case.kept * (1.0 - delta**2), from_anywhere(case, errors))


def admitted(case: Case) -> list[str]:
    """Return what fails of the uploads, and of the assumptions of Theorem A."""
    return unbiased(case) + sampled_feddyn.admitted(case)


def compressed_feddyn_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Cohorts of all sizes for each coordinate, independent of each other or not; a weight that is too small."""
    for c in (1, 2, 3):
        yield ExpectedVerdict(feddyn_case(directions(), c))
    yield ExpectedVerdict(feddyn_case(directions(), 1, together=True))
    yield ExpectedVerdict(feddyn_case(directions(), 1, times=4.0))
    for c in (1, 2):
        case, compressor = feddyn_case(directions(), c), CoordinateCohorts(size=c)
        note = f"CoordinateCohorts(size={c})"
        yield ExpectedVerdict(compressed(case, compressor, orders_for_all(3), note))
    yield ExpectedVerdict(feddyn_case(directions(), 1, times=0.5), "outside assumptions")


@claim(
    source="Theorem D (ii)",
    statement=r"FedDyn, all clients active, each coordinate uploaded by c of N clients, all such cohorts equally"
    r" likely: Theorem A with p = c/N, whatever the joint law of different coordinates.",
    assumptions=admitted,
    rtol=ROUNDING,
    cases=compressed_feddyn_cases,
)
def compressed_feddyn(case: Case) -> Iterator[Inequality]:
    """FedDyn with a cohort for each coordinate: it contracts as Theorem A says.

    Compare the exact expectation over what is uploaded, at the states of a path and at the worst of all states.
    """
    errors = feddyn_errors(case, sampled_feddyn.dual_weight(case))
    yield from one_step(case, errors, sampled_feddyn.factor(case), from_anywhere(case, errors))
