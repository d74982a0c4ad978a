"""Claims where only rounding, or the cost of counting, stands between the two sides: no false violations."""

from __future__ import annotations

import numpy as np
import pytest

from dualopt.lab.claims import check
from dualopt.methods import FedADMM
from dualopt.methods.participation import Schedule
from dualopt.objectives import Quadratic
from dualopt.solvers import Exact, Gradient
from dualopt.solvers.stopping import Steps
from theory._problems import absolute_deviation, quadratic, solved
from theory.counterexamples._recursion import on_quadratics, scalars
from theory.counterexamples.primal_dual import fedadmm_two_clients
from theory.dualfl import local_steps as subgradients
from theory.dualfl._runs import exact, inexact, local_energies
from theory.dualfl._runs import path as dual_path
from theory.dualfl.inexact_solutions import gap_3_6


def test_gap_3_6_where_both_energies_are_near_zero() -> None:
    """A constant in f_j moves the primal energy to zero, and the dual energy with it; the gap stays."""
    instance = quadratic()
    method = inexact(instance, Steps(steps=3000), rho=0.0, nu=0.5 * instance.mu, solver=Gradient())
    case = instance.case(method, 10)
    last = [local_energies(case, step.zeta, step.snapshot.clients.theta)[0] for step in dual_path(case)][-1]
    f = instance.objective
    moved = solved("moved", Quadratic(A=f.A, b=f.b, c=f.c - last)).case(method, 10)
    energies = [np.abs(local_energies(moved, s.zeta, s.snapshot.clients.theta)).max() for s in dual_path(moved)]
    assert energies[-1] < 1e-12 < energies[0]
    assert check(gap_3_6, moved).verdict == "holds"


def test_a_count_that_was_not_finished_refutes_no_larger_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = absolute_deviation(mu=0.5)
    case = instance.case(exact(instance, rho=0.0), 3)
    counted = list(subgradients.theorem_3_4(case))
    assert max(q.lhs for q in counted if q.what == "M_n") > 20.0
    monkeypatch.setattr(subgradients, "LIMIT", 20)
    assert check(subgradients.theorem_3_4, case).verdict == "holds"
    honest = subgradients.averaged_subgradient_steps

    def few(*args):  # as if all subgradients were short: the bound lies below the limit
        return honest(*args)._replace(largest=np.full(case.n_clients, 1e-3))

    monkeypatch.setattr(subgradients, "averaged_subgradient_steps", few)
    assert check(subgradients.theorem_3_4, case).verdict == "violated"


def test_a_run_that_is_at_its_limit_from_the_start_stays_there() -> None:
    """With rho = a nothing is uploaded, and after one turn of each client only rounding is left."""
    a, minima = 3.3, (-1.3, 2.9)
    run = on_quadratics(
        "rho = a",
        FedADMM(rho=a, server_step=0.5, solver=Exact()),
        scalars([a, a], minima),
        theta0=0.37,
        participation=Schedule(clients=((0,), (1,))),
    )
    ends = [q for q in fedadmm_two_clients(run) if q.what == "error in the end"]
    assert [0.0 < q.rhs < q.lhs < 1e-14 for q in ends] == [True]  # rounding that does not shrink
    assert check(fedadmm_two_clients, run).witness is None
    off = run.but(limit=run.limit + 1e-6)
    assert check(fedadmm_two_clients, off).verdict == "violated"
