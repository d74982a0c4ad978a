"""Three modules of PyTorch on rows of seven clients, and the plain loops that they are compared with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from dualopt.objectives import TorchModule, torch_module  # noqa: E402

CLASSES, SIDE, RIDGE = 3, 6, 0.2
SIZES = (9, 4, 1, 7, 7, 2, 12)
RNG = np.random.default_rng(0)
X = RNG.standard_normal((sum(SIZES), SIDE * SIDE)).astype(np.float32)
Y = RNG.integers(0, CLASSES, sum(SIZES))
CLIENTS = [part.tolist() for part in np.split(RNG.permutation(sum(SIZES)), np.cumsum(SIZES)[:-1])]


def linear() -> Any:
    return torch.nn.Linear(SIDE * SIDE, CLASSES)


def mlp() -> Any:
    return torch.nn.Sequential(torch.nn.Linear(SIDE * SIDE, 8), torch.nn.Tanh(), torch.nn.Linear(8, CLASSES))


def cnn() -> Any:
    nn = torch.nn
    layers = [nn.Unflatten(1, (1, SIDE, SIDE)), nn.Conv2d(1, 4, 3), nn.Softplus(), nn.AvgPool2d(2), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(16, CLASSES))


MODULES = {"linear": linear, "mlp": mlp, "cnn": cnn}


def objective(name: str = "cnn", **options: Any) -> TorchModule:
    given = {"clients": CLIENTS, "classes": CLASSES, "ridge": RIDGE} | options
    return torch_module(MODULES[name], X, Y, **given)


def double_cnn() -> Any:
    return cnn().double()


def double() -> TorchModule:
    return torch_module(double_cnn, X, Y, clients=CLIENTS, classes=CLASSES, ridge=RIDGE)


def module_of(name: str, seed: int = 0) -> Any:
    """Return the module from which runs with this seed start."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return MODULES[name]()


def tensors(rows: Any) -> tuple[Any, Any]:
    return torch.as_tensor(X[rows]), torch.as_tensor(Y[rows])


def flat(module: Any) -> Any:
    return torch.nn.utils.parameters_to_vector(module.parameters()).detach()


def loss_of(module: Any, rows: Any, ridge: float = RIDGE) -> Any:
    """Return cross-entropy with weight decay, as one writes it in PyTorch."""
    features, labels = tensors(rows)
    decay = sum((p * p).sum() for p in module.parameters())
    return torch.nn.functional.cross_entropy(module(features), labels) + 0.5 * ridge * decay


def gradient_of(module: Any, theta: Any, rows: Any, ridge: float = RIDGE) -> Any:
    """Return the gradient at a flat vector, by ``backward``."""
    torch.nn.utils.vector_to_parameters(theta.clone(), module.parameters())
    module.zero_grad()
    loss_of(module, rows, ridge).backward()
    return torch.cat([p.grad.reshape(-1) for p in module.parameters()])
