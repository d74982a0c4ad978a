"""What is provable of the wrong variants: ``python -m tests.theory.mutation_rates`` prints the end of MUTATIONS.md.

A variant that does not lose the rate is none of the prover's: claims about the steps in between, or about other clients
and laws, have to catch it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from dualopt.app.markdown import table_lines
from dualopt.lab.proofs import prove
from dualopt.methods import (
    AFedPD,
    Algorithm,
    CorrectedDualFL,
    FedADMM,
    FedDR,
    FedDyn,
    FedPD,
    FedSplit,
    FiveGCS,
    GradientDescent,
    SampledDualFL,
    Scaffnew,
    Scaffold,
)
from dualopt.methods.participation import CommunicateWithProbability, UniformSubset
from dualopt.objectives import Quadratic
from dualopt.solvers import Gradient
from dualopt.solvers.stopping import Steps
from tests.theory.mutation_table import BREAKS_DOWN, TABLES
from theory._cases import Case
from theory.mutations import scales
from theory.mutations._edits import OtherMethodError

HEADER = """## What is provable of them

Written by `python -m tests.theory.mutation_rates`: the factor per round that [the prover](../docs/proofs.md) finds of
every variant that changes a run of a method whose rate it proves, for four clients with mu = 1 and L = 10, to 0.0001;
beside it the factor of the mean square of the states on some quadratic clients. The rate is lost where a variant is
**slower**, has **no proof**, **diverges** or **stands still** (no proof, and a factor above 1, or of 1, on such
clients), or has **no fixed point** at the minimiser. kept: it is not, and the claims that are named catch the variant.
"""
MU, L, N = 1.0, 10.0, 4
SAME = 2e-4
"""Twenty times the tolerance of the bisection."""
ROUNDS = 12
"""In which a variant must show."""


class Right(NamedTuple):
    """A method whose rate is proved, who takes part, and whether the proof needs values of functions."""

    method: Algorithm
    participation: Any = None
    memory: bool = False

    @property
    def title(self) -> str:
        """What is asked about."""
        words = {UniformSubset: "2 of 4 clients", CommunicateWithProbability: "a coin"}
        return f"{type(self.method).__name__.removeprefix('Corrected')}, {words.get(type(self.participation), 'all')}"


TWO = UniformSubset(size=2)
COIN = 1.0 / math.sqrt(L / MU)
STEP = {"solver": Gradient(step=0.05), "stop": Steps(steps=1)}
RIGHT = [
    Right(CorrectedDualFL(rho=0.1, nu=1.0), memory=True),
    Right(SampledDualFL(rho=0.1, nu=1.0, fraction=0.5, least=0.5), TWO, memory=True),
    Right(FedPD(eta=0.3)),
    Right(FedDyn(alpha=5.0), TWO),
    Right(AFedPD(rho=3.0), TWO),
    Right(FedADMM(rho=3.0), TWO),
    Right(FedSplit(step=0.3)),
    Right(FedSplit(step=0.3), TWO),
    Right(FedDR(eta=0.3, relaxation=2.0), TWO),
    Right(FiveGCS(gamma=0.15, tau=1 / 0.6, mu=1.0, fraction=0.5), TWO),
    Right(Scaffnew(probability=COIN, solver=Gradient(step=0.1)), CommunicateWithProbability(probability=COIN)),
    Right(Scaffold(**STEP), TWO),
    Right(GradientDescent(step=0.15)),
]


class Answer(NamedTuple):
    """What the prover says of a method."""

    verdict: str
    factor: float
    happens: float


def answer(right: Right, least: float | None = None) -> Answer:
    """Ask the prover about a method; ``least`` is the factor of the right one, where another is judged."""
    method, participation, memory = right
    asked = {"mu": MU, "L": L, "clients": N, "participation": participation, "tolerance": 1e-5}
    try:
        found = prove(method, memory=memory, **asked)
    except ValueError as error:
        if "fixed point" not in str(error):
            raise
        return Answer("no fixed point", math.nan, math.nan)
    happens = math.nan if found.lower_bound is None else found.lower_bound
    if found.proved:
        verdict = "proved" if least is None else "slower" if found.factor > least + SAME else "kept"
        return Answer(verdict, found.factor, happens)
    if happens < 1.0 - 1e-9:
        return Answer("no proof", math.inf, happens) if memory else answer(right._replace(memory=True), least)
    return Answer("diverges" if happens > 1.0 + 1e-9 else "stands still", math.inf, happens)


def case_of(right: Right) -> Case:
    """Return a case to which variants apply: quadratic clients, and a few rounds."""
    h = np.geomspace(MU, L, N)
    f = Quadratic(A=h[:, None, None], b=np.arange(1.0, N + 1)[:, None])
    return Case.of(right.method, f, rounds=ROUNDS, participation=right.participation)


def variants(right: Right) -> Iterator[tuple[str, Right, frozenset[str]]]:
    """Yield the variants of a method that change its run, each once, but for those about cohorts or scales.

    With each the claims that must notice it.
    """
    before = case_of(right)
    seen = [np.array(before.models())]
    tables = (table.variants for table in TABLES.values() if table.variants is not scales.MUTATIONS)
    for name, variant in (row for table in tables for row in table.items()):
        with suppress(OtherMethodError, *BREAKS_DOWN):
            after = variant(before)
            if isinstance(before.participation, UniformSubset) and after.participation != before.participation:
                continue
            models = np.array(after.models())
            if not any(np.allclose(models, known, rtol=1e-9) for known in seen):
                seen.append(models)
                wrong = right._replace(method=after.algorithm, participation=after.participation)
                yield name, wrong, variant.caught


def lines(right: Right) -> Iterator[str]:
    """Return the lines of a Markdown table, each when it is asked for."""
    return table_lines([right.title, "rate", "proved", "happens"], _rows(right))


def _rows(right: Right) -> Iterator[list[str]]:
    own = answer(right)
    yield ["the method", own.verdict, f"{own.factor:.4f}", f"{own.happens:.4f}"]
    for name, wrong, caught in variants(right):
        noticed = " ".join(f"`{claim}`" for claim in sorted(caught))
        try:
            found = answer(wrong, own.factor)
        except ValueError as error:
            yield [name, f"no answer: {str(error).rstrip('.')}; {noticed}", "", ""]
            continue
        except RuntimeError:
            yield [name, f"no answer: some states fall slower than what is proved; {noticed}", "", ""]
            continue
        mark = f"kept; {noticed}" if found.verdict == "kept" else f"**{found.verdict}**"
        numbers = (f"{x:.4f}" if math.isfinite(x) else "" for x in (found.factor, found.happens))
        yield [name, mark, *numbers]


if __name__ == "__main__":
    print(HEADER)
    for right in RIGHT:
        for line in lines(right):
            print(line, flush=True)
        print()
