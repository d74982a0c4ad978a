"""Modules of PyTorch keep the contract of objectives, and are what one writes by hand."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from dualopt import AFedPD, Logistic, Multinomial, NonconvexPenalty, Squared, iterate, linear_model  # noqa: E402
from dualopt.arrays.xp import to_numpy  # noqa: E402
from dualopt.lab.contracts.test_objectives import *  # noqa: E402, F403  # pyright: ignore[reportAssignmentType]
from dualopt.objectives import torch_module  # noqa: E402
from dualopt.objectives.augmentation import PADDING, crop_flip  # noqa: E402
from dualopt.objectives.torch_networks import cnn as cnn_of_feddyn  # noqa: E402
from dualopt.objectives.torch_networks import image_shape, lenet  # noqa: E402
from dualopt.solvers import SGD  # noqa: E402
from tests.torch_instances import (  # noqa: E402
    CLASSES,
    CLIENTS,
    MODULES,
    RIDGE,
    SIDE,
    SIZES,
    X,
    Y,
    double,
    flat,
    gradient_of,
    linear,
    loss_of,
    module_of,
    objective,
)

INSTANCES = {
    **{name: partial(objective, name) for name in MODULES},
    "together": partial(objective, vectorised=True),
    "double": double,
    "mixed": partial(objective, "mlp", precision="mixed"),
    "weights": partial(objective, "mlp", client_weights=(1.0, 20.0, 0.3, 4.0, 4.0, 0.01, 2.0)),
    "penalty": lambda: NonconvexPenalty(objective=objective("mlp"), lam=0.7, alpha=2.5),
}
ROUNDED = "mixed"  # no differences: values are rounded to 2^-9 of them, more than a small step changes


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "objective" in metafunc.fixturenames and metafunc.function.__module__.startswith("dualopt."):
        differences = metafunc.function.__name__ == "test_gradient_is_the_derivative"
        fit = {name: make for name, make in INSTANCES.items() if not (differences and name == ROUNDED)}
        metafunc.parametrize("objective", [make() for make in fit.values()], ids=list(fit))


def points(f: Any, seed: int = 0) -> Any:
    return torch.as_tensor(np.random.default_rng(seed).standard_normal((f.n_clients, *f.shape))).to(f.zeros())


def assert_close(found: Any, expected: Any, rtol: float = 1e-5) -> None:
    size = float(np.max(np.abs(to_numpy(expected))))
    np.testing.assert_allclose(to_numpy(found), to_numpy(expected), rtol=rtol, atol=rtol * size)


@pytest.mark.parametrize("vectorised", [False, True], ids=["one by one", "together"])
@pytest.mark.parametrize("name", MODULES)
def test_values_and_gradients_are_those_of_backward(name: str, vectorised: bool) -> None:
    f, module = objective(name, vectorised=vectorised), module_of(name)
    theta = points(f)
    sample = tuple(np.random.default_rng(1).integers(0, m, size=b) for m, b in zip(SIZES, range(1, 8), strict=True))
    values, gradients, of_samples = f.value(theta), f.gradient(theta), f.sample_gradient(theta, sample)
    for j, rows in enumerate(CLIENTS):
        assert_close(gradients[j], gradient_of(module, theta[j], rows))
        assert_close(of_samples[j], gradient_of(module, theta[j], [rows[i] for i in sample[j]]))
        assert_close(values[j], loss_of(module, rows).detach())
    assert gradients.dtype == torch.float32


def test_the_layout_is_that_of_the_named_parameters() -> None:
    f, module = objective("cnn"), module_of("cnn", seed=5)
    assert [one.name for one in f.layout] == [name for name, _ in module.named_parameters()]
    theta = f.initial(seed=5)
    assert torch.equal(theta, flat(module))
    assert not torch.equal(theta, f.initial(seed=6))
    parts = f.parameters(theta)
    for name, tensor in module.named_parameters():
        assert torch.equal(parts[name], tensor)
    assert torch.equal(f.vector(f.module_at(2.0 * theta)), 2.0 * theta)
    assert torch.equal(f.vector(f.module), flat(module_of("cnn")))  # the module itself stays as it was


def test_a_module_that_is_given_is_where_runs_start() -> None:
    module = module_of("mlp", seed=4)
    f = torch_module(module, X, Y, clients=CLIENTS)
    for seed in (0, 1):
        assert torch.equal(f.initial(seed), flat(module))
    module[0].bias.requires_grad_(False)
    part = torch_module(module, X, Y, clients=CLIENTS)
    assert part.shape == (f.shape[0] - 8,)
    assert "0.bias" not in part.parameters(part.initial())
    assert_close(part.value(part.initial()), f.value(f.initial()))  # the frozen parameter is used, and is in no theta


def test_a_client_has_its_bits_whoever_is_in_the_call() -> None:
    for f in (objective("cnn"), objective("cnn", augment=lambda images, rng: images + float(rng.normal()))):
        theta = points(f)
        rngs = [np.random.default_rng(j) for j in range(f.n_clients)]
        sample = f.draw(rngs, 3)
        whole = f.gradient(theta), f.value(theta), f.sample_gradient(theta, sample)
        for ids in ([2], [6, 0], list(range(6, -1, -1))):
            part = f.select(ids)
            own = part.gradient(theta[ids]), part.value(theta[ids])
            own += (part.sample_gradient(theta[ids], tuple(sample[j] for j in ids)),)
            for found, expected in zip(own, whole, strict=True):
                assert torch.equal(found, expected[ids])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_linear_module_is_multinomial_regression(dtype: str) -> None:
    """The same numbers as dualopt's own linear model with an intercept, whose array is ``(k, d + 1)``."""
    ours = linear_model(X.astype(dtype), Y, loss=Multinomial(classes=CLASSES), mu=RIDGE, clients=CLIENTS)
    kind = getattr(torch, dtype)
    f = torch_module(lambda: linear().to(kind), X, Y, clients=CLIENTS, classes=CLASSES, ridge=RIDGE)
    theta = points(f)
    W, b = theta[:, :-CLASSES].reshape(-1, CLASSES, SIDE * SIDE), theta[:, -CLASSES:]
    same = to_numpy(torch.cat([W, b[:, :, None]], dim=2))
    eps = float(torch.finfo(kind).eps)
    assert_close(f.value(theta), ours.value(same), rtol=64 * eps)
    gradient = ours.gradient(same)
    expected = np.concatenate([gradient[:, :, :-1].reshape(len(gradient), -1), gradient[:, :, -1]], axis=1)
    assert_close(f.gradient(theta), expected, rtol=64 * eps)


def test_other_losses_and_their_predictions() -> None:
    signs, numbers = np.where(Y == 0, -1.0, 1.0), X[:, 0] * 2.0
    one = torch.nn.Linear(SIDE * SIDE, 1)
    f = torch_module(one, X, signs, loss=Logistic(), clients=CLIENTS)
    theta, rows = f.initial(), CLIENTS[0]
    z = one(torch.as_tensor(X[rows])).detach()[:, 0]
    assert_close(f.value(theta)[0], torch.log1p(torch.exp(-torch.as_tensor(signs[rows]).float() * z)).mean())
    assert f.predict(theta, torch.as_tensor(X)).unique().tolist() == [-1, 1]
    g = torch_module(torch.nn.Sequential(one, torch.nn.Flatten(0)), X, numbers, loss=Squared(), clients=CLIENTS)
    assert_close(g.value(theta)[0], 0.5 * ((z - torch.as_tensor(numbers[rows])) ** 2).mean())
    assert_close(g.predict(theta, torch.as_tensor(X)), one(torch.as_tensor(X)).detach()[:, 0])
    h = objective("mlp")
    labels = h.predict(h.initial(), torch.as_tensor(X))
    assert torch.equal(labels, module_of("mlp")(torch.as_tensor(X)).argmax(dim=1))


def test_weights_of_rows_count() -> None:
    weights = np.random.default_rng(3).uniform(0.1, 2.0, size=len(Y)).astype(np.float32)
    f, module = objective("mlp", weights=weights, ridge=0.0), module_of("mlp")
    theta = f.initial()
    for j, rows in enumerate(CLIENTS):
        expected = sum(weights[i] * loss_of(module, [i], 0.0).detach() for i in rows)
        assert_close(f.value(theta)[j], expected)


# Augmentation.


def test_changed_rows_are_those_of_the_sample_alone() -> None:
    """One sample has one gradient at each point; another sample others; and all rows are changed."""
    f = torch_module(
        lambda: torch.nn.Sequential(torch.nn.Flatten(), *MODULES["cnn"]()),
        X,
        Y,
        clients=CLIENTS,
        classes=CLASSES,
        ridge=RIDGE,
        input_shape=(1, SIDE, SIDE),
        augment="crop-flip",
    )
    theta = points(f)
    first, second = (f.draw([np.random.default_rng(seed + j) for j in range(7)], 3) for seed in (0, 100))
    once, again = f.sample_gradient(theta, first), f.sample_gradient(theta, first)
    assert torch.equal(once, again)
    unchanged = plain_gradient(f, theta, first)
    for j, m in enumerate(SIZES):
        assert not torch.allclose(once[j], unchanged[j])
        if m == 1:  # it has one sample of three rows
            assert torch.equal(once[j], f.sample_gradient(theta, second)[j])
            continue
        assert not torch.equal(once[j], f.sample_gradient(theta, second)[j])
    assert torch.equal(f.gradient(theta), plain_gradient(f, theta, None))


def plain_gradient(f: Any, theta: Any, sample: Any) -> Any:
    without = replace(f, augment=None)
    return without.gradient(theta) if sample is None else without.sample_gradient(theta, sample)


def test_crop_and_flip_move_and_mirror() -> None:
    """Every result is one of the 162 that its image has, and all of them occur about equally often."""
    image = torch.arange(1.0, 1 + 2 * 5 * 6).reshape(1, 2, 5, 6)
    found = crop_flip(image.expand(4000, -1, -1, -1), np.random.default_rng(0))
    possible = {}
    for mirrored in (False, True):
        padded = np.pad(image[0].numpy(), ((0, 0), (PADDING, PADDING), (PADDING, PADDING)))
        for down in range(2 * PADDING + 1):
            for right in range(2 * PADDING + 1):
                cut = padded[:, down : down + 5, right : right + 6]
                possible[(cut[:, :, ::-1] if mirrored else cut).tobytes()] = mirrored, down, right
    seen = [possible[one.numpy().tobytes()] for one in found.contiguous()]
    assert len({*seen}) == len({*possible.values()}) == 162
    counts = np.array([seen.count(one) for one in {*seen}])
    assert np.sum((counts - 4000 / 162) ** 2 / (4000 / 162)) < 161 + 4 * np.sqrt(2 * 161)  # chi-squared, 4 deviations


def test_crop_flip_moves_a_part_of_the_images_and_mirrors_half() -> None:
    image = torch.arange(30.0).reshape(1, 1, 5, 6)
    found = crop_flip(image.expand(4000, -1, -1, -1), np.random.default_rng(0), moved=0.25)
    mirrored = image.flip(3)
    as_it_was, only_mirrored = (int((found == one).all(dim=(1, 2, 3)).sum()) for one in (image, mirrored))
    plain, alike = np.random.default_rng(0), np.random.default_rng(0)
    assert torch.equal(crop_flip(image, plain), crop_flip(image, alike, moved=1.0))
    drawn = np.random.default_rng(0)
    drawn.integers(0, 9, size=(2, 1, 1))
    drawn.integers(0, 2, size=(1, 1))
    assert plain.random() == alike.random() == drawn.random()  # nothing else is drawn where all are moved
    still = 0.5 * (0.75 + 0.25 / 81)  # one of 81 places is where it was
    for count in (as_it_was, only_mirrored):
        assert abs(count - 4000 * still) <= 5.0 * (4000 * still * (1.0 - still)) ** 0.5


# Images whose channels lie side by side in memory.


def colour(view: bool) -> Any:
    """Return a network of images of three channels, which looks at how they lie, or not."""
    nn, shape = torch.nn, (3, 4, 3)

    class Net(nn.Module):
        input_shape = shape

        def __init__(self) -> None:
            super().__init__()
            self.convolution, self.last = nn.Conv2d(3, 4, 2), nn.Linear(24, CLASSES)

        def forward(self, images: Any) -> Any:
            seen.append(images.is_contiguous(memory_format=torch.channels_last))
            found = torch.tanh(self.convolution(images))
            return self.last(found.view(len(found), -1) if view else found.flatten(1))

    seen: list[bool] = []
    return Net, seen


@pytest.mark.parametrize("view", [False, True])
def test_channels_are_last_where_a_module_takes_them_so(view: bool) -> None:
    make, seen = colour(view)
    f = torch_module(make, X, Y, clients=CLIENTS, classes=CLASSES, ridge=RIDGE)
    assert f.channels_last is not view
    theta, other = points(f), replace(f, channels_last=False)
    seen.clear()
    found = f.value(theta), f.gradient(theta), f.outputs(theta[0], torch.as_tensor(X))
    assert set(seen) == {not view}
    seen.clear()
    expected = other.value(theta), other.gradient(theta), other.outputs(theta[0], torch.as_tensor(X))
    assert set(seen) == {False}
    for ours, theirs in zip(found, expected, strict=True):
        assert_close(ours, theirs, rtol=1e-5)
    assert not torch_module(make, X, Y, clients=CLIENTS, classes=CLASSES, vectorised=True).channels_last
    assert not objective("mlp").channels_last


def test_a_module_that_says_something_else_of_channels_last_is_given_them_first() -> None:
    class Lying(colour(False)[0]):
        def forward(self, images: Any) -> Any:
            return super().forward(images) + float(images.stride()[1])

    assert not torch_module(Lying, X, Y, clients=CLIENTS, classes=CLASSES).channels_last


# Mixed precision.


@pytest.mark.parametrize("vectorised", [False, True], ids=["one by one", "together"])
@pytest.mark.parametrize("name", ["mlp", "cnn"])
def test_mixed_precision_rounds_products_alone(name: str, vectorised: bool) -> None:
    """Outputs and gradients are those of PyTorch under autocast: off by the rounding of bfloat16, and in float32.

    The loss and its slopes are of outputs in float32, so that a gradient is the exact pullback of these slopes.
    """
    mixed, full = (objective(name, vectorised=vectorised, precision=kind) for kind in ("mixed", "full"))
    theta, module = points(full), module_of(name)
    value, gradient = mixed.value_and_gradient(theta)
    assert value.dtype == gradient.dtype == mixed.outputs(theta[0], torch.as_tensor(X)).dtype == torch.float32
    assert_close(mixed.value(theta), value, rtol=1e-6)
    for j, rows in enumerate(CLIENTS):
        torch.nn.utils.vector_to_parameters(theta[j].clone(), module.parameters())
        module.zero_grad()
        features, labels = torch.as_tensor(X[rows]), torch.as_tensor(Y[rows])
        with torch.autocast("cpu", dtype=torch.bfloat16):
            z = module(features)
        loss = torch.nn.functional.cross_entropy(z.float(), labels)
        loss.backward()
        own = torch.cat([p.grad.reshape(-1) for p in module.parameters()])
        decay = 0.5 * RIDGE * float((theta[j] ** 2).sum())
        if not vectorised:  # the same products, to the last digit but for the order of sums
            assert_close(gradient[j], own + RIDGE * theta[j], rtol=1e-5)
            assert_close(value[j], loss.detach() + decay, rtol=1e-5)
    unit = 2.0**-8  # half a unit in the last place of bfloat16 is 2^-9 of a number, in each of a handful of roundings
    off = gradient - full.gradient(theta)
    size = float(full.gradient(theta).abs().max())
    assert 2.0**-14 * size < float(off.abs().max()) < 8 * unit * size


def test_a_linear_module_in_mixed_precision_is_that_of_rounded_factors() -> None:
    """Of products alone: x and the weights are rounded to 8 binary digits, and so are the outputs, nothing else."""
    f = objective("linear", precision="mixed", ridge=0.0)
    theta, rows = points(f)[0], torch.as_tensor(X)
    weights = f.parameters(theta)
    rounded = [part.to(torch.bfloat16).to(torch.float64) for part in (rows, weights["weight"], weights["bias"])]
    exact = rounded[0] @ rounded[1].T + rounded[2]
    found = f.outputs(theta, rows).mT.to(torch.float64)
    assert torch.all((found - exact).abs() <= 2.0**-8 * exact.abs() + 1e-6)
    assert torch.equal(found.to(torch.bfloat16).to(torch.float64), found)
    plain = objective("linear", ridge=0.0).outputs(theta, rows).mT
    assert not torch.equal(plain.to(torch.bfloat16).float(), plain)


# The networks of the papers.


def test_the_network_of_feddyn() -> None:
    """Two convolutions of 64 filters of 5 x 5, pooling, 394 and 192 units: the numbers of parameters by hand."""
    module = cnn_of_feddyn(3072, 10)
    by_hand = [64 * 3 * 25, 64, 64 * 64 * 25, 64, 394 * 1600, 394, 192 * 394, 192, 10 * 192, 10]
    assert [p.numel() for p in module.parameters()] == by_hand
    assert sum(by_hand) == 815892
    assert module.input_shape == (3, 32, 32)
    kinds = [type(layer).__name__ for layer in module]
    block = ["Conv2d", "MaxPool2d", "ReLU"]
    assert kinds == [*block, *block, "Flatten", "Linear", "ReLU", "Linear", "ReLU", "Linear"]
    assert module(torch.zeros(2, 3, 32, 32)).shape == (2, 10)
    assert (
        sum(p.numel() for p in lenet(784, 10).parameters()) == 6 * 26 + 16 * (6 * 25 + 1) + 120 * 257 + 84 * 121 + 850
    )
    assert [
        layer.out_features for layer in cnn_of_feddyn(784, 4, filters=2, hidden=7) if hasattr(layer, "out_features")
    ] == [7, 4]
    with pytest.raises(ValueError, match="square images of one channel or three, not 50 features"):
        image_shape(50)
    with pytest.raises(ValueError, match="larger images than of 64 features"):
        cnn_of_feddyn(64, 10)
    least = cnn_of_feddyn(256, 10)  # 16 x 16: 6 x 6 after the first pooling, one number after the second
    assert least(torch.zeros((2, 1, 16, 16))).shape == (2, 10)


# Devices.


@pytest.mark.parametrize("vectorised", [False, True], ids=["one by one", "together"])
def test_nothing_is_made_where_the_rows_are_not(vectorised: bool) -> None:
    """With another default device each tensor that is made without naming one would meet the rows, and be refused."""
    images = np.random.default_rng(5).standard_normal((len(Y), 3 * 16 * 16)).astype(np.float32)
    make = partial(cnn_of_feddyn, 768, CLASSES, filters=2, layers=1, hidden=4)
    f = torch_module(
        make, images, Y, clients=CLIENTS, classes=CLASSES, ridge=RIDGE, augment="crop-flip", vectorised=vectorised
    )
    theta, X_test, start = points(f), torch.as_tensor(images), f.initial()
    sample = f.draw([np.random.default_rng(j) for j in range(f.n_clients)], 3)

    def found() -> list[Any]:
        shot = next(iter(iterate(AFedPD(rho=0.3, solver=SGD(step=0.1, batch=2, epochs=1)), f, theta0=start)))
        return [
            f.value(theta),
            f.gradient(theta),
            *f.value_and_gradient(theta),
            f.sample_gradient(theta, sample),
            f.predict(theta[0], X_test),
            f.select([2, 0]).gradient(theta[[2, 0]]),
            f.zeros(),
            f.L,
            f.mu,
            shot.server.theta,
        ]

    expected = found()
    with torch.device("meta"):
        assert torch.zeros(1).device.type == "meta"
        again = found()
    for one, other in zip(again, expected, strict=True):
        assert one.device.type == "cpu"
        assert torch.equal(one, other)


# What is refused.


class Noisy(torch.nn.Linear):
    def forward(self, input: Any) -> Any:
        return super().forward(input) + torch.rand(())


class Centred(torch.nn.Linear):
    def forward(self, input: Any) -> Any:
        return super().forward(input - input.mean(dim=0))


class Twice(torch.nn.Linear):
    def forward(self, input: Any) -> Any:
        return super().forward(input), super().forward(input)


def nets(*layers: Any) -> Any:
    return torch.nn.Sequential(*layers, torch.nn.Linear(SIDE * SIDE, CLASSES))


BATCH_NORM = "'0' (BatchNorm1d), whose statistics are of all rows of a batch and are no parameters: take nn.GroupNorm"
BAD: list[tuple[Any, dict[str, Any], str]] = [
    (lambda: 3, {}, "module must be a torch.nn.Module, or return one, not a int."),
    (lambda: nets(torch.nn.BatchNorm1d(36)), {}, BATCH_NORM),
    (lambda: nets(torch.nn.Dropout(0.1)), {}, "'0' (Dropout), which draws what it leaves out: take weight decay"),
    (lambda: nets(torch.nn.BatchNorm1d(36, track_running_stats=False)), {"frozen": True}, "module cannot be called"),
    (lambda: Noisy(36, CLASSES), {}, "it draws random numbers."),
    (lambda: Centred(36, CLASSES), {}, "but it looks at other rows."),
    (lambda: torch.nn.Linear(36, 4), {}, "module must return a tensor of shape (2, 3) for 2 rows, not shape (2, 4)."),
    (lambda: Twice(36, CLASSES), {}, "module must return a tensor of shape (2, 3) for 2 rows, not a tuple."),
    (lambda: torch.nn.Linear(35, 3), {}, "module cannot be called with rows of shape (36,): "),
    (torch.nn.Flatten, {}, "module must have trainable parameters."),
    (lambda: linear().half(), {}, "module must have parameters of float32 or of float64, not of torch.float16."),
    (lambda: nets(torch.nn.Linear(36, 36).double()), {}, "not of torch.float32, torch.float64."),
    (lambda: torch.nn.LazyLinear(3), {}, "module must know its sizes: call it once, for 'weight' is still"),
    (linear, {"input_shape": (5, 7)}, f"X must have rows of 35 features, for input_shape (5, 7), not {X.shape}."),
    (linear, {"ridge": -1.0}, "ridge must be a finite number, at least 0, not -1.0."),
    (linear, {"augment": "crop"}, "augment must be one of crop-flip, or a function; not 'crop'."),
    (linear, {"clients": 99}, "clients must be between 1 and the"),
    (linear, {"precision": "half"}, "precision must be one of full, mixed, not 'half'."),
    (
        lambda: linear().double(),
        {"precision": "mixed"},
        "mixed needs a module with parameters of float32, not",
    ),
]


@pytest.mark.parametrize(("make", "options", "said"), BAD, ids=[said[-40:] for *_, said in BAD])
def test_what_is_refused(make: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)) as error:
        torch_module(make, X, Y, **{"classes": CLASSES, "clients": CLIENTS} | options)
    assert "\n" not in str(error.value)


def test_frozen_layers_keep_their_statistics() -> None:
    module = nets(torch.nn.BatchNorm1d(36), torch.nn.Dropout(0.5))
    module(torch.as_tensor(X))  # has statistics now
    kept = {name: x.clone() for name, x in module.state_dict().items()}
    f = torch_module(module, X, Y, clients=CLIENTS, frozen=True)
    theta = f.initial()
    module.eval()
    assert_close(f.value(theta)[0], loss_of(module, CLIENTS[0], 0.0).detach())
    f.gradient(theta)
    assert all(torch.equal(x, kept[name]) for name, x in f.module.state_dict().items())


def test_an_augmentation_must_keep_the_form() -> None:
    f = objective("linear", augment=lambda images, rng: images[:, :5])
    with pytest.raises(ValueError, match=r"augment must return torch.float32 of shape \(3, 36\), as it was given, not"):
        f.sample_gradient(f.initial(), f.draw([np.random.default_rng(0)] * 7, 3))
    with pytest.raises(ValueError, match="crop-flip needs images of shape"):
        crop_flip(torch.zeros(2, 36), np.random.default_rng(0))


def test_rows_may_be_sparse_or_tensors() -> None:
    rows = torch.as_tensor(X)
    f = torch_module(linear, rows, torch.as_tensor(Y), clients=CLIENTS, classes=CLASSES, ridge=RIDGE)
    assert torch.equal(f.value(f.initial()), objective("linear").value(f.initial()))
    from scipy.sparse import csr_array

    with pytest.raises(ValueError, match="X must be dense for a module"):
        torch_module(linear, csr_array(X), Y, clients=CLIENTS)
