r"""The server gains at most one entry per communication.

Suppose that all models and gradients known to the server and sent so far vanish behind entry ``n``; at the start ``n =
0``. A client takes gradients at points of the span of what it received and computed. At a point that vanishes behind
entry ``m``, :math:`\Theta_k` has a gradient only if :math:`x_{k-1} \ne 0`, thus for :math:`k \le m + 1`, and it lies in
the entries up to ``k``. If the client holds :math:`\Theta_{n+1}`, its points come to vanish behind entry ``n + 1``, and
there it stays: it does not hold :math:`\Theta_{n+2}`. If it does not, it stays at ``n``. So all uploads, and all their
combinations, vanish behind entry ``n + 1``. This uses no property of the steps, their number, the weights of the
average, or who takes part.

Linear span is more than is needed: a method may find its points in any way, such as by a line search or a quasi-Newton
matrix, as long as they vanish where all that it knows does.
"""

from __future__ import annotations

from collections.abc import Iterator

from dualopt.claims import Inequality, claim
from dualopt.participation import Full, UniformSubset
from theory._claims import ExpectedVerdict
from theory.lower_bounds._race import Race, races
from theory.lower_bounds._span import Eavesdropper, reach


def zero_respecting(race: Race) -> list[str]:
    """Ask that no client computes with what others hold."""
    return ["clients read each other's gradients"] if isinstance(race.algorithm, Eavesdropper) else []


def zero_chain_support_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield methods on both splits, then one that reads what it must not."""
    for split in ("thirds",) if quick else ("thirds", "halves"):
        for race in races(6, 8 if quick else 20, split=split):
            yield ExpectedVerdict(race.but(name=f"{race.name}, {split}"))
    fedavg = next(races(6, 8))
    some = fedavg.but(name="FedAvg, 4 of 6", participation=UniformSubset(size=4), everybody=False)
    yield ExpectedVerdict(some)
    method = Eavesdropper(solver=fedavg.algorithm.solver, stop=fedavg.algorithm.stop)
    outside = fedavg.but(name="FedAvg on read gradients", algorithm=method, participation=Full())
    yield ExpectedVerdict(outside, "outside assumptions")


@claim(
    source="FedPD arXiv v1, Lemma 4, for clients without neighbouring terms",
    statement=r"Whatever linear-span method runs, after $n$ communications the server's model vanishes behind entry"
    r" $n$; it does not vanish at entry $n$ if all clients take part and go far enough along their gradients.",
    assumptions=zero_respecting,
    rounding=0.0,
    cases=zero_chain_support_cases,
)
def zero_chain_support(race: Race) -> Iterator[Inequality]:
    """Compare the entries opened with the communications, and the reverse where no gradient is left out."""
    for n, shot in race.communications():
        if n > race.d:
            return
        yield Inequality(n, reach((shot.server.theta, shot.message)), n, "entries opened")
        if race.everybody:
            yield Inequality(n, n, reach(shot.server.theta), "communications")
