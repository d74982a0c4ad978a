"""Methods on modules of PyTorch: steps against those that one writes in PyTorch, and runs that go on after a stop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from dualopt import FedAvg, FedDyn, Schedule, UniformSubset, iterate, run  # noqa: E402
from dualopt.engine.checkpoint import Checkpoint  # noqa: E402
from dualopt.methods import Scaffold  # noqa: E402
from dualopt.solvers import SGD, Gradient  # noqa: E402
from dualopt.solvers.stopping import Steps  # noqa: E402
from tests.torch_instances import CLIENTS, MODULES, X, Y, flat, gradient_of, loss_of, module_of, objective  # noqa: E402

STEP, ALPHA, K = 0.05, 0.3, 3
ACTIVE = ((0, 3, 6), (1, 3), (0, 2, 5))


def assert_near(found: Any, expected: Any, rtol: float = 1e-6) -> None:
    """Compare vectors in single precision, relative to the largest entry."""
    assert float((found - expected).abs().max()) <= rtol * float(expected.abs().max())


@pytest.mark.parametrize("name", MODULES)
def test_one_client_with_all_its_rows_is_plain_training(name: str) -> None:
    """FedAvg with one client and full batches: the parameters after each step of ``torch.optim.SGD``."""
    everyone = list(range(len(Y)))
    f = objective(name, clients=1)
    module = module_of(name)
    optimiser = torch.optim.SGD(module.parameters(), lr=STEP)
    method = FedAvg(solver=Gradient(step=STEP), stop=Steps(steps=1))
    for _, snapshot in zip(range(12), iterate(method, f, theta0=f.initial(0)), strict=False):
        optimiser.zero_grad()
        loss_of(module, everyone).backward()
        optimiser.step()
        assert_near(snapshot.server.theta, flat(module))
    assert_near(f.value(snapshot.server.theta), loss_of(module, everyone).detach()[None])


@pytest.mark.parametrize("name", MODULES)
def test_batches_are_those_of_plain_training(name: str) -> None:
    """Epochs of SGD with weight decay and a clipped gradient, on the rows that the solver draws."""
    f, module = objective(name, clients=1, ridge=0.1), module_of(name)
    solver = SGD(step=STEP, batch=10, epochs=2, max_norm=0.8)
    snapshot = next(iter(iterate(FedAvg(solver=solver), f, theta0=f.initial(0), seed=3)))
    (rng,) = snapshot.round.rngs()
    for _ in range(2):
        order = rng.permutation(len(Y))
        for start in range(0, len(Y), 10):
            module.zero_grad()
            loss_of(module, order[start : start + 10], 0.1).backward()
            torch.nn.utils.clip_grad_norm_(module.parameters(), 0.8)
            with torch.no_grad():
                for p in module.parameters():
                    p -= STEP * p.grad
    assert_near(snapshot.server.theta, flat(module), 2e-6)


def local_steps(module: Any, start: Any, rows: Any, correction: Any, alpha: float = 0.0, center: Any = None) -> Any:
    """Return K full gradient steps on ``f_j + <correction, theta> + alpha/2 |theta - center|^2``."""
    theta = start.clone()
    for _ in range(K):
        slope = gradient_of(module, theta, rows) + correction
        theta = theta - STEP * (slope if center is None else slope + alpha * (theta - center))
    return theta


@pytest.mark.parametrize("name", MODULES)
def test_feddyn_is_the_update_of_its_paper(name: str) -> None:
    r"""Algorithm 1 of Acar et al. (2021) with a loop over clients, and K steps for its argmin.

    :math:`\theta_k^t` minimises :math:`L_k(\theta) - \langle\nabla L_k(\theta_k^{t-1}), \theta\rangle +
    \frac\alpha2|\theta - \theta^{t-1}|^2`, whose linear term is replaced by :math:`-\alpha(\theta_k^t -
    \theta^{t-1})` added up; :math:`h^t = h^{t-1} - \alpha \frac1m \sum_{k \in P_t}(\theta_k^t - \theta^{t-1})` and
    :math:`\theta^t = \frac1{|P_t|}\sum_{k \in P_t}\theta_k^t - h^t/\alpha`.
    """
    f, module = objective(name), module_of(name)
    method = FedDyn(alpha=ALPHA, solver=Gradient(step=STEP), stop=Steps(steps=K))
    theta = f.initial(0)
    h, duals = torch.zeros_like(theta), [torch.zeros_like(theta) for _ in CLIENTS]
    trace = iterate(method, f, participation=Schedule(clients=ACTIVE), theta0=theta)
    for active, snapshot in zip(ACTIVE, trace, strict=False):
        models = [local_steps(module, theta, CLIENTS[k], -duals[k], ALPHA, theta) for k in active]
        for k, model in zip(active, models, strict=True):
            duals[k] = duals[k] - ALPHA * (model - theta)
        h = h - ALPHA * sum(model - theta for model in models) / len(CLIENTS)
        theta = sum(models) / len(models) - h / ALPHA
        assert_near(snapshot.server.theta, theta, 2e-6)


def theirs(
    module: Any, cloud: Any, memory: Any, batches: Any, *, rate: float, alpha: float, decay: float
) -> tuple[Any, float]:
    r"""Return where the training code of FedDyn's authors ends, and the largest norm of a gradient before clipping.

    The loss of a step is the mean cross-entropy of a batch plus :math:`\alpha\langle\theta, H_k - \theta^{t-1}\rangle`,
    with the sum :math:`H_k` of the client's earlier moves; its gradient is clipped at 10, and the optimiser adds
    :math:`(\alpha + \text{decay})\theta` as its weight decay.
    """
    torch.nn.utils.vector_to_parameters(cloud.clone(), module.parameters())
    optimiser = torch.optim.SGD(module.parameters(), lr=rate, weight_decay=alpha + decay)
    longest = 0.0
    for rows in batches:
        parameters = torch.cat([p.reshape(-1) for p in module.parameters()])
        loss = loss_of(module, rows, 0.0) + alpha * torch.sum(parameters * (memory - cloud))
        optimiser.zero_grad()
        loss.backward()
        longest = max(longest, float(torch.nn.utils.clip_grad_norm_(module.parameters(), 10.0)))
        optimiser.step()
    return flat(module), longest


SAME_SIZE = [part.tolist() for part in np.split(np.argsort(Y, kind="stable"), 6)]  # by label, seven rows each
# Of the server's model after each of three rounds: its sum, its norm, and entries 0, 17 and the last; recorded in
# double precision by a loop of its own, with the formulas of the test, `torch.autograd.grad` and no optimiser.
RECORDED = [
    (1.01162742, 2.51892284, 0.02477246, -0.04238203, 0.55510906),
    (1.25202159, 2.44002525, 0.01076349, -0.01933479, 0.43464563),
    (1.37111205, 2.31769499, 0.00346692, -0.00314406, 0.45036408),
]


def test_feddyn_is_the_training_code_of_its_authors() -> None:
    r"""Three rounds with batches, of which the last is smaller, weight decay, a falling rate and clipping.

    :math:`H_k \leftarrow H_k + \theta_k - \theta^{t-1}` and :math:`\theta^t = \frac1{|P_t|}\sum_{P_t}\theta_k +
    \frac1m\sum_k H_k` over all clients; the rate is :math:`0.1 \cdot 0.9^t`.
    """
    alpha, decay, rate, fall, batch, epochs = 0.3, 0.05, 0.1, 0.9, 3, 2
    f, module = objective("cnn", clients=SAME_SIZE, ridge=decay), module_of("cnn")
    solver = SGD(step=rate, batch=batch, epochs=epochs, decay=fall, max_norm=10.0)
    cloud = torch.as_tensor(0.3 * np.random.default_rng(11).standard_normal(f.shape[0]), dtype=torch.float32)
    memories, active = [torch.zeros_like(cloud) for _ in SAME_SIZE], ((0, 3, 5), (1, 3), (0, 2, 5))
    rounds = iterate(
        FedDyn(alpha=alpha, solver=solver), f, participation=Schedule(clients=active), theta0=cloud, seed=4
    )
    for t, (cohort, snapshot, recorded) in enumerate(zip(active, rounds, RECORDED, strict=False)):
        models = []
        for k in cohort:
            rng = np.random.default_rng(np.random.SeedSequence(4, spawn_key=(1, t, k)))
            orders = [np.asarray(SAME_SIZE[k])[rng.permutation(7)] for _ in range(epochs)]
            batches = [order[i : i + batch] for order in orders for i in range(0, 7, batch)]
            model, longest = theirs(module, cloud, memories[k], batches, rate=rate * fall**t, alpha=alpha, decay=decay)
            assert 0.1 < longest < 10.0  # where clipping acts, theirs leaves out what ours counts: see SGD
            memories[k] = memories[k] + model - cloud
            models.append(model)
        cloud = sum(models) / len(models) + sum(memories) / len(memories)
        assert_near(snapshot.server.theta, cloud, 2e-6)
        found = snapshot.server.theta.double()
        numbers = [found.sum(), torch.linalg.vector_norm(found), found[0], found[17], found[-1]]
        np.testing.assert_allclose([float(x) for x in numbers], recorded, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("name", MODULES)
def test_scaffold_is_the_update_of_its_paper(name: str) -> None:
    r"""Algorithm 1 of Karimireddy et al. (2020), Option II, with a global step of 1.

    :math:`y_i \leftarrow y_i - \eta(g_i(y_i) - c_i + c)`, K times; :math:`c_i^+ = c_i - c + \frac1{K\eta}(x - y_i)`;
    :math:`x \leftarrow x + \frac1{|S|}\sum_{i \in S}(y_i - x)` and
    :math:`c \leftarrow c + \frac{1}{N}\sum_{i \in S}(c_i^+ - c_i)`.
    """
    f, module = objective(name), module_of(name)
    method = Scaffold(solver=Gradient(step=STEP), stop=Steps(steps=K))
    x = f.initial(0)
    c, own = torch.zeros_like(x), [torch.zeros_like(x) for _ in CLIENTS]
    trace = iterate(method, f, participation=Schedule(clients=ACTIVE), theta0=x)
    for active, snapshot in zip(ACTIVE, trace, strict=False):
        models = [local_steps(module, x, CLIENTS[i], c - own[i]) for i in active]
        changes = []
        for i, y in zip(active, models, strict=True):
            new = own[i] - c + (x - y) / (K * STEP)
            changes.append(new - own[i])
            own[i] = new
        x = x + sum(y - x for y in models) / len(models)
        c = c + sum(changes) / len(CLIENTS)
        assert_near(snapshot.server.theta, x, 2e-6)


METHODS = {
    "feddyn": FedDyn(alpha=ALPHA, solver=SGD(step=STEP, batch=3, epochs=1)),
    "scaffold": Scaffold(solver=SGD(step=STEP, batch=3), stop=Steps(steps=4)),
}


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_a_run_that_was_stopped_goes_on_bit_for_bit(method: Any, tmp_path: Path) -> None:
    """With batches, augmentation and clients that take turns; the accuracy is measured in every round."""
    f = objective("mlp", augment=noise, ridge=1e-3)
    test = torch.as_tensor(X), torch.as_tensor(Y)

    def accuracy(snapshot: Any) -> float:
        return float((f.predict(snapshot.server.theta, test[0]) == test[1]).float().mean())

    options: dict[str, Any] = {"participation": UniformSubset(size=3), "measure": {"accuracy": accuracy}, "seed": 5}
    whole = run(method, f, rounds=7, **options)
    path = str(tmp_path / "stopped.npz")
    stopped = run(method, f, rounds=7, checkpoint=Checkpoint(path, seconds=0), callback=after_four, **options)
    assert stopped.status == "stopped"
    assert len(stopped) == 5
    resumed = run(method, f, rounds=7, checkpoint=Checkpoint(path, resume=True), **options)
    assert resumed.theta.dtype == torch.float32
    assert torch.equal(resumed.theta, whole.theta)
    for column in ("energy", "accuracy", "gradient_norm", "gradients"):
        assert resumed[column].tobytes() == whole[column].tobytes()
    assert whole.last["certificate"] == np.inf
    assert whole.last["energy"] < whole["energy"][0]


def after_four(snapshot: Any, row: Any) -> bool:
    return row["round"] == 4


def noise(images: Any, rng: Any) -> Any:
    return images + 0.05 * torch.as_tensor(rng.standard_normal(images.shape), dtype=images.dtype)
