"""Where the local solvers start: at the server's model, or where the client's own solver ended the last time."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice

import numpy as np
import pytest

import dualopt.methods
from dualopt.engine.rounds import iterate
from dualopt.methods.participation import Full, UniformSubset
from dualopt.solvers import Gradient
from dualopt.solvers.stopping import Steps
from dualopt.spec.discover import discover
from tests.problems import lopsided

ALGORITHMS = discover(dualopt.methods)
OWN = ("anderson-fedsplit", "apda-inexact", "consensus-fedsplit", "corrected-dualfl", "corrected-optimized-dualfl")
OWN += ("adaptive-dualfl", "dual-lbfgs", "dualfl", "feddr", "fedpd", "fedsplit", "gap-restarted-dualfl")
OWN += ("old-dual-fedpd", "optimized-dualfl", "restarted-dualfl", "restarted-optimized-dualfl")
SERVER = ("a-fedpd", "a-fedpdsam", "fedadmm", "feddyn", "feddynsam", "fedprox", "fedspeed", "fivegcs", "growing-feddyn")
SERVER += ("sampled-dualfl",)


@dataclass(frozen=True, kw_only=True)
class Recorded(Gradient):
    """Gradient steps that note where they start and end."""

    calls: list = field(default_factory=list, compare=False)

    def __call__(self, problem, start, stop, solver_state=(), round=None):
        result = super().__call__(problem, start, stop, solver_state, round)
        self.calls.append((np.array(start), np.array(result.theta)))
        return result


@pytest.mark.parametrize("name", [*OWN, *SERVER])
def test_local_solvers_start_where_the_method_says(name: str) -> None:
    f = lopsided()
    solver = Recorded()
    method = ALGORITHMS[name](solver=solver, stop=Steps(steps=2)).suggested(f)
    rule = UniformSubset(size=2) if "partial" in method.supports else Full()
    theta0 = np.array([1.0, -2.0, 3.0, 0.5])
    model = theta0
    if name == "fivegcs":  # what it sends is the proximal step of the ridge
        model = theta0 / (1.0 + method.gamma * method.mu)
    if name == "sampled-dualfl":  # all its states start at zero
        model = 0.0 * theta0
    own = np.tile(theta0, (4, 1))
    for s in islice(iterate(method, f, theta0=theta0, participation=rule), 8):
        start, end = solver.calls[-1]
        active = list(s.round.clients)
        expected = own[active] if name in OWN else np.broadcast_to(model, start.shape)
        np.testing.assert_array_equal(start, expected)
        own[active] = end
        sent = {"fivegcs": "xhat", "sampled-dualfl": "w"}
        model = getattr(s.server, sent.get(name, "theta"))
    assert len(solver.calls) == 8


@pytest.mark.parametrize("name", [name for name in ALGORITHMS if "dane" in name])
def test_solvers_of_dane_start_where_the_gradients_are(name: str) -> None:
    solver, theta0 = Recorded(), np.array([1.0, -2.0, 3.0, 0.5])
    point, seen = theta0, 0
    for s in islice(iterate(ALGORITHMS[name](solver=solver, stop=Steps(steps=2)), lopsided(), theta0=theta0), 12):
        if len(solver.calls) > seen:
            seen = len(solver.calls)
            np.testing.assert_array_equal(solver.calls[-1][0], np.broadcast_to(point, (4, 4)))
        point = s.server.point
    assert seen >= 4


@pytest.mark.parametrize("name", ALGORITHMS)
def test_models_start_at_theta0(name: str) -> None:
    """All but DualFL and its relatives, whose states start at zero."""
    f, theta0 = lopsided(), np.array([1.0, -2.0, 3.0, 0.5])
    server, _, _ = ALGORITHMS[name]().suggested(f).init(theta0, np.tile(theta0, (4, 1)))
    np.testing.assert_array_equal(server.theta, 0.0 * theta0 if "dualfl" in name or name == "dual-ascent" else theta0)
