"""What a GPU would see, by counting arrays: they count what they should, and local solves stay below their limits."""

from __future__ import annotations

from typing import Any, NamedTuple

import array_api_strict as strict
import numpy as np
import pytest

from dualopt.arrays.xp import asarray_like, is_host, to_numpy
from dualopt.methods import DualFL, FedAvg, FedDyn
from dualopt.methods.participation import Round
from dualopt.objectives import LocalProblem, Quadratic
from dualopt.solvers import LBFGS, Gradient, NewtonCG
from dualopt.solvers._loop import drive
from dualopt.solvers.stopping import GradientNorm, GradientReduction, Steps

from .calls import certified_rounds, tiny_rounds
from .count import DEVICE, Counts, counted, counting, main, rounds, shape_of_mnist, xp


def count(work: Any) -> Counts:
    with counting() as counts:
        work()
    return counts()


def test_every_function_is_counted_once() -> None:
    x, y = counted(np.arange(6.0)), counted(np.ones((2, 3)))
    for work, kernels in [
        (lambda: x + 1.0, {"add": 1}),
        (lambda: 1.0 - x, {"subtract": 1}),
        (lambda: -x < x, {"neg": 1, "lt": 1}),
        (lambda: xp.sum(x * x), {"multiply": 1, "sum": 1}),
        (lambda: xp.matmul(y, xp.matrix_transpose(y)), {"matmul": 1}),
        (lambda: xp.linalg.inv(xp.eye(2)), {"eye": 1, "inv": 1}),
        (lambda: xp.reshape(x, (2, 3))[:, 1:, None], {}),
        (lambda: xp.reshape(xp.matrix_transpose(y), (6,)), {"reshape": 1}),
        (lambda: xp.broadcast_to(x, (4, 6)), {}),
        (lambda: xp.take(x, counted(np.array([1, 0]))), {"take": 1}),
        (lambda: xp.astype(x, xp.float32), {"astype": 1}),
        (lambda: xp.concat([x, x]), {"concat": 1}),
    ]:
        found = count(work)
        assert dict(found.kernels) == kernels
        assert found.transfers == 0


def test_transfers_are_counted() -> None:
    x = counted(np.arange(3.0))
    assert count(lambda: float(x[0])).synchronisations == 1
    assert count(lambda: bool(x[0] > 1)).synchronisations == 1
    assert count(lambda: to_numpy(x)).synchronisations == 1
    assert count(lambda: asarray_like([1.0, 2.0], x)).uploads == 1
    assert count(lambda: asarray_like(x, x)) == count(lambda: None)
    assert not is_host(x)
    with pytest.raises(TypeError):  # a host array is not uploaded in silence
        _ = x + np.ones(3)
    with pytest.raises(AssertionError):
        xp.add(x, np.ones(3))


def test_in_place_work_is_seen_by_who_holds_the_array() -> None:
    x = counted(np.zeros(2))
    same = x
    x += 1.0
    x[0] = 5.0
    assert to_numpy(same).tolist() == [5.0, 1.0]
    assert x.device is DEVICE


@pytest.fixture(scope="module")
def model() -> Any:
    """Fewer columns and rows than MNIST's; what is computed once is there."""
    f = shape_of_mnist(rows=60, columns=21)
    f.value_and_gradient(xp.zeros((8, *f.shape)))
    f.preconditioner()(xp.zeros((8, *f.shape)))
    return f


def test_a_step_of_lbfgs(model: Any) -> None:
    """Beside the gradient and the preconditioner 24 kernels, for any history, and one synchronisation."""
    zero = xp.zeros((8, *model.shape))
    problem = LocalProblem(objective=model, linear=zero + 0.01)
    inverse = model.preconditioner(problem.weight, model.curvatures())
    gradient, preconditioner = (
        count(lambda: model.value_and_gradient(zero)),
        count(lambda: inverse(zero)),
    )
    for history in (4, 9):
        solver = LBFGS(history=history)
        known = solver(problem, zero, GradientReduction(first=0.5), solver.initial_state(model))
        calls, gradients = [], []
        for k in (2, 3):
            with counting() as counts:
                found = solver(problem, known.theta, Steps(steps=k), known.solver_state)
            calls.append(counts())
            gradients.append(found.gradients)
        assert [b - a for a, b in zip(*gradients, strict=True)] == [1.0] * 8  # no trial of the last step is refused
        step = calls[1].launches - calls[0].launches
        assert step == gradient.launches + preconditioner.launches + 24
        assert calls[1].synchronisations - calls[0].synchronisations == 1
        assert calls[1].uploads == calls[0].uploads


def test_transfers_of_a_round_of_five_gradients(model: Any) -> None:
    *_, (found, gradients) = rounds(model, DualFL(rho=3e-3, stop=Steps(steps=5)), n=4)
    assert 5 <= gradients <= 6
    assert found.transfers <= 10


def test_a_gradient_takes_fifteen_kernels_at_most(model: Any) -> None:
    assert count(lambda: model.gradient(xp.zeros((8, *model.shape)))).launches <= 15


def test_a_round_with_the_mean_steps_of_mnist_takes_200_kernels_at_most(model: Any) -> None:
    """DualFL takes 269 gradients in 98 rounds to 1e-10 there (tests/benchmarks/test_runs.py)."""
    counts = []
    for steps in (2, 3):
        *_, (found, gradients) = rounds(model, DualFL(rho=3e-3, stop=Steps(steps=steps)), n=6)
        assert gradients == steps
        counts.append(found.launches)
    assert counts[0] + (269 / 98 - 2) * (counts[1] - counts[0]) <= 200


@pytest.mark.parametrize("algorithm", [DualFL(), FedDyn(), FedAvg()], ids=lambda a: type(a).__name__)
def test_counts_do_not_depend_on_the_number_of_clients(algorithm: Any) -> None:
    found = [list(rounds(shape_of_mnist(40, 9, 3, n), algorithm_of_steps(algorithm), n=2))[-1][0] for n in (4, 16)]
    assert found[0] == found[1]


def algorithm_of_steps(algorithm: Any) -> Any:
    """Return the method with one step of gradient descent, of which there are equally many everywhere."""
    return type(algorithm)(solver=Gradient(), stop=Steps(steps=2))


SOLVERS = {"lbfgs": LBFGS(), "newton": NewtonCG(), "gradient": Gradient()}


@pytest.mark.parametrize("name", SOLVERS)
def test_masks_give_what_selection_gives(name: str) -> None:
    """On a device finished clients are kept by masks, on the host they are put aside: the same clients, steps, points.

    The linear terms differ by factors of ten, so that the clients finish one after the other.
    """
    f = shape_of_mnist(rows=30, columns=9, classes=3, clients=5)
    factors = 10.0 ** -np.arange(5.0)
    linear = factors[:, None, None] * np.random.default_rng(1).normal(size=(5, *f.shape))
    round = Round(n=1, n_clients=5, clients=tuple(range(5)), communicate=True, seed=0)
    found = []
    for make in (counted, np.asarray):
        g = moved(f, make)
        start = make(np.zeros((5, *f.shape)))
        problem = LocalProblem(objective=g, linear=make(linear))
        solver = SOLVERS[name]
        loose = solver(problem, start, GradientReduction(first=0.3), solver.initial_state(g))
        found.append(solver(problem, loose.theta, GradientReduction(factor=1e-3), loose.solver_state, round))
    device, host = found
    assert not is_host(device.theta)
    assert device.status == host.status == ("converged",) * 5
    assert device.gradients == host.gradients
    assert len(set(host.gradients)) > 1
    np.testing.assert_allclose(to_numpy(device.theta), host.theta, rtol=0, atol=1e-11)


class State(NamedTuple):
    """Counters of three clients on a device."""

    theta: Any
    stalled: Any


def count_up(step: Any, stop: Any, ends: Any) -> tuple[list[float], tuple[str, ...]]:
    """Return how far a loop has come in which a gradient is the distance from an end."""
    problem = LocalProblem(objective=Quadratic(A=counted(np.ones((3, 1, 1))), b=counted(np.zeros((3, 1)))))
    start = State(counted(np.zeros(3)), counted(np.zeros(3, dtype=bool)))
    state, status = drive(
        step, problem, start, stop, None, max_iter=9, measure=lambda _, s: (s.theta, counted(ends) - s.theta)
    )
    return to_numpy(state.theta).tolist(), status


def test_masks_let_whoever_is_finished_rest() -> None:
    """On a device a step is told who is finished, so that searches go on for the others alone."""
    seen, ends = [], np.array([2.0, 0.0, 3.0])

    def step(problem: LocalProblem, state: State) -> State:
        seen.append(to_numpy(state.stalled).tolist())
        return state._replace(theta=state.theta + 1.0)

    assert count_up(step, GradientNorm(tol=0.5), ends) == (ends.tolist(), ("converged",) * 3)
    assert seen == [[False, True, False], [False, True, False], [True, True, False]]


def test_masks_show_a_stall_after_a_fixed_number_of_steps() -> None:
    """On a device nobody looks for stalls on the way; whoever stands still at the end has not converged."""

    def step(problem: LocalProblem, state: State) -> State:
        return state._replace(theta=state.theta + 1.0, stalled=state.theta > counted(np.array([9.0, 0.0, 9.0])))

    found = count_up(step, Steps(steps=3), np.full(3, 9.0))
    assert found == ([3.0] * 3, ("converged", "stalled", "converged"))


def moved(f: Any, make: Any) -> Any:
    """Return the model with its rows in another library."""
    from dualopt.objectives import linear_model

    X, y, _ = (np.concatenate([to_numpy(part) for part in column]) for column in zip(*f.client_rows(), strict=True))
    return linear_model(make(X), make(y), loss=f.loss, mu=f.ridge, clients=f.n_clients, intercept=False)


def test_strict_arrays_on_another_device_are_no_host_arrays() -> None:
    assert not is_host(strict.asarray([1.0], device=strict.Device("device1")))


def test_python_calls_of_a_round() -> None:
    """A certified round on the digits took 5,380 (2,279 now), and one of a tiny quadratic 205 (214 now)."""
    assert certified_rounds().mean <= 2500
    assert tiny_rounds().mean <= 225


def test_table(benchmark: Any) -> None:
    """The table of ``python -m tests.benchmarks.count``, for the page of all benchmarks."""
    found = benchmark.pedantic(main, rounds=1)
    assert found["gradient"].launches <= 15
    assert all(counts.uploads == 0 for what, counts in found.items() if what.endswith("steps"))
