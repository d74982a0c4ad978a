"""Hosts that say what no clients can have: the server sees shapes, types and signs, and says who it was."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dualopt.engine import Failed, LostError
from dualopt.engine import _protocol as protocol
from dualopt.engine.rounds import resolve
from dualopt.methods import DualFL, FedDyn, GapRestartedDualFL, GradientDescent
from dualopt.methods.participation import Full
from dualopt.objectives import NonconvexPenalty
from dualopt.runs.recording import run
from dualopt.solvers import Exact
from tests.engine.problems import problems
from tests.engine.test_equal import differences
from tests.engine.test_two_phases import BLOCKS, WHEN, changed, uploading, without
from tests.engine.wired import elsewhere

Change = Callable[[Any], Any]
LOST = np.nan


def told(kind: type, change: Change, host: int = 1) -> Callable[..., Any]:
    """Trouble with all answers of a kind that a host gives."""

    def trouble(call: int, h: int, batch: Any, answers: Any) -> Any:
        if h != host or isinstance(answers, Failed):
            return answers
        return [change(x) if isinstance(x, kind) else x for x in answers]

    return trouble


def put(name: str, value: Any) -> Change:
    """Put a number into the second place of an array, or another value in place of a field."""

    def change(answer: Any) -> Any:
        old = getattr(answer, name)
        if not isinstance(old, np.ndarray) or isinstance(value, np.ndarray):
            return answer._replace(**{name: value})
        new = old.copy()
        new.flat[1 if new.size > 1 else 0] = value
        return answer._replace(**{name: new})

    return change


LIES = {
    "mu is NaN": ("mu", LOST),
    "mu is infinite": ("mu", math.inf),
    "mu has another shape": ("mu", np.ones(2)),
    "mu has another type": ("mu", np.ones(3, dtype=np.int64)),
    "mu_rounding is negative": ("mu_rounding", -1e6),
    "mu_rounding is NaN": ("mu_rounding", LOST),
    "mu_rounding is infinite": ("mu_rounding", math.inf),
    "mu_rounding has another shape": ("mu_rounding", np.ones((3, 1))),
    "L is below mu": ("L", 0.02),
    "L is negative": ("L", -1.0),
    "L is zero": ("L", 0.0),
    "L is NaN": ("L", LOST),
    "L has another shape": ("L", np.ones(4)),
    "the zero model is another": ("zero", 1.0),
    "gradient_cost is negative": ("gradient_cost", -1.0),
    "gradient_cost is NaN": ("gradient_cost", LOST),
    "usual_weight is zero": ("usual_weight", 0.0),
    "linear_ridge is negative": ("linear_ridge", -0.1),
    "linear_ridge is infinite": ("linear_ridge", math.inf),
    "sizes are negative": ("sizes", (3, -1, 4)),
    "sizes are too few": ("sizes", (3, 4)),
    "max_rows is negative": ("max_rows", -5),
    "max_rows is below the largest": ("max_rows", 3),
    "n_features is zero": ("n_features", 0),
    "classes are no list": ("classes", '{"a": 1}'),
    "classes are no JSON": ("classes", "[" * 99999),
    "clients are too many": ("clients", (2, 3, 4, 5)),
    "there are no clients": ("n_clients", 0),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_census_that_no_clients_have_is_refused(lie: str) -> None:
    name, value = LIES[lie]
    f, blocks = problems()["smooth"], [(0,), (1, 2, 3), (4,)]
    with pytest.raises(ValueError, match=f"{name}.*(host 1|must agree)"):
        elsewhere(f, blocks, told(protocol.ClientInfo, put(name, value)))
    assert elsewhere(f, blocks).n_clients == 5


def test_what_is_not_known_may_be_said() -> None:
    """A convexity that is not known is minus infinity, a smoothness that there is not is infinity."""
    f = problems()["nonsmooth"]
    assert elsewhere(f, [(0, 1), (2, 3, 4)]).L.tolist() == [math.inf] * 5
    curved = NonconvexPenalty(objective=problems()["smooth"], lam=0.5)
    assert (elsewhere(curved, [(0, 1), (2, 3, 4)]).mu < 0).all()
    unknown = told(
        protocol.ClientInfo, lambda x: x._replace(mu=x.mu - math.inf, mu_rounding=x.mu + math.inf, L=x.L + math.inf)
    )
    assert elsewhere(f, [(0, 1), (2, 3, 4)], unknown).mu[2:].tolist() == [-math.inf] * 3


FALSE = {
    "value": (protocol.Evaluated, lambda x: x._replace(value=x.value[:-1]), "value has the shape"),
    "gradient": (protocol.Evaluated, lambda x: x._replace(gradient=x.gradient[:, :-1]), "gradient has the shape"),
    "transposed": (protocol.Evaluated, lambda x: x._replace(gradient=x.gradient.T), "gradient has the shape"),
    "integers": (protocol.Evaluated, lambda x: x._replace(value=x.value.astype(np.int64)), "value has the type int64"),
    "dual": (protocol.Evaluated, lambda x: x._replace(dual=np.zeros((3, 3))), "dual has the shape"),
    "bound": (
        protocol.Evaluated,
        lambda x: x._replace(value_error=-x.value_error - 1.0),
        "value_error is a bound below 0",
    ),
    "another": (
        protocol.Evaluated,
        lambda x: x._replace(gradient_error=0 * x.value - 1),
        "gradient_error is a bound below",
    ),
    "counts": (
        protocol.Uploaded,
        lambda x: x._replace(gradients=(-1.0,) * 3),
        "counts gradients in numbers that cannot be",
    ),
    "NaN": (
        protocol.Uploaded,
        lambda x: x._replace(gradients=(LOST,) * 3),
        "counts gradients in numbers that cannot be",
    ),
    "words": (
        protocol.Uploaded,
        lambda x: x._replace(gradients=("many",) * 3),
        "counts gradients in numbers that cannot be",
    ),
    "part of dual points": (protocol.Evaluated, lambda x: x._replace(dual_error=None), "dual_error is missing"),
    "vectors": (protocol.Uploaded, lambda x: x._replace(vectors=2), "more vectors than it uploads"),
    "no number": (protocol.Uploaded, lambda x: x._replace(vectors=LOST), "more vectors than it uploads"),
    "one of them": (protocol.Uploaded, lambda x: x._replace(vectors=1), "its upload has the wrong shapes or types"),
    "rounds": (protocol.Started, lambda x: x._replace(rounds=-1), "negative number of rounds"),
}


@pytest.mark.parametrize("lie", FALSE)
def test_an_answer_of_another_shape_or_sign_ends_in_a_sentence_that_names_the_host(lie: str) -> None:
    kind, change, said = FALSE[lie]
    f = problems()["quadratic"]
    with pytest.raises(LostError, match=f"host 1 did not .*round [01]: .*{said}"):
        run(DualFL(), elsewhere(f, BLOCKS, told(kind, change)), rounds=4, tol=1e-9)


@pytest.mark.parametrize("numbers", [(math.inf,), (-math.inf,), (math.nan,), (math.inf, -math.inf)])
def test_an_upload_that_is_not_finite_is_an_absence(numbers: tuple[float, ...]) -> None:
    """One site that sends infinity once would end FedDyn."""

    def not_finite(x: np.ndarray) -> np.ndarray:
        x = x.copy()
        x[1, ...].flat[: len(numbers)] = numbers
        return x

    f = problems()["quadratic"]
    method = resolve(FedDyn(solver=Exact()), f, Full())
    absent = run(method, f, rounds=8, participation=without({3}, 8))
    found = run(method, elsewhere(f, BLOCKS, changed(uploading(not_finite))), rounds=8, measure_every=1)
    assert differences(absent, found) == []
    (said,) = found.parameters["lost"]
    assert said == f"round {WHEN}: host 1 (clients 3) did not count: the upload of client 3 is not finite"


def test_who_has_exploded_is_named_where_the_run_diverges() -> None:
    """Not in a run that goes on, nor where all grow round by round because steps are too long."""

    def huge(x: np.ndarray) -> np.ndarray:
        x = x.copy()
        x[1, ...].flat[0] = 1e150
        return x

    f = problems()["quadratic"]
    options: dict[str, Any] = {"rounds": 30, "check_assumptions": False, "measure_every": 1}
    run_of_feddyn = run(FedDyn(solver=Exact()), elsewhere(f, BLOCKS, changed(uploading(huge))), **options)
    assert run_of_feddyn.status == "diverged"
    (said,) = run_of_feddyn.parameters["explosions"]
    assert said.startswith(f"in round {WHEN} host 1 uploaded 1e+150, where nothing had been above ")
    steps = GradientDescent(step=50.0)
    grows = run(steps, elsewhere(f, BLOCKS), rounds=200, check_assumptions=False, measure_every=1)
    assert grows.status == "diverged"
    assert "explosions" not in grows.parameters
    first = run(steps, elsewhere(f, BLOCKS, changed(uploading(huge), when=0)), **options)
    assert [said.split(",")[0] for said in first.parameters["explosions"]] == ["in round 0 host 1 uploaded 1e+150"]


def test_a_gap_that_is_not_known_is_infinite() -> None:
    """The restart by the gap has an energy and a conjugate up, in one number, which is infinite outside of a domain."""

    def unknown(answers: Any) -> Any:
        *model, gap = upload = answers[-1].upload
        return [*answers[:-1], answers[-1]._replace(upload=type(upload)(*model, np.full_like(gap, math.inf)))]

    def negative(answers: Any) -> Any:
        *model, gap = upload = answers[-1].upload
        return [*answers[:-1], answers[-1]._replace(upload=type(upload)(*model, np.full_like(gap, -math.inf)))]

    f = problems()["quadratic"]
    method = resolve(GapRestartedDualFL(), f, Full())
    exact = run(method, f, rounds=400, tol=1e-9)
    trace = run(method, elsewhere(f, BLOCKS, changed(unknown)), rounds=400, tol=1e-9)
    assert trace.status == exact.status == "converged"
    with pytest.raises(LostError, match="is not finite"):
        run(method, elsewhere(f, BLOCKS, changed(negative)), rounds=9)
