"""Modules of PyTorch on the command line and in files: from ``--model`` to predictions, and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from dualopt import FedAvg, Model, load_model, run, torch_module  # noqa: E402
from dualopt.problem.build import build_problem  # noqa: E402
from dualopt.problem.networks import network_of  # noqa: E402
from dualopt.problem.options import ProblemOptions  # noqa: E402
from dualopt.solvers import SGD  # noqa: E402
from dualopt.spec.plugins import find  # noqa: E402

NET = """
from dataclasses import dataclass
from torch import nn

class Net(nn.Module):
    def __init__(self, features: int, outputs: int, *, widths: tuple[int, ...] = (5,), bias=True):
        super().__init__()
        first = nn.Linear(features, widths[0], bias=bias)
        self.body = nn.Sequential(nn.BatchNorm1d(features), first, nn.Tanh(), nn.Linear(widths[0], outputs))

    def forward(self, rows):
        return self.body(rows)

def plain(outputs):
    return nn.LazyLinear(outputs)

def wide(features, outputs, width):
    return nn.Linear(features, outputs)

class NotOne:
    pass
"""
LINEAR = "torch.nn:Linear: in_features=64, out_features=10"


@pytest.fixture
def nets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "nets.py").write_text(NET)
    monkeypatch.chdir(tmp_path)
    return "nets.py"


def options(model: str, **changes: Any) -> ProblemOptions:
    return ProblemOptions(**{"data": "digits", "rows": 120, "clients": 3, "model": model, "mu": 1e-3} | changes)


def test_the_network_and_the_type_follow_from_the_name(nets: str) -> None:
    problem = build_problem(options("nets.py:Net: widths=[7], bias=false, frozen=true"))
    f = problem.network
    assert f is problem.objective
    assert [tuple(one.shape) for one in f.layout] == [(64,), (64,), (7, 64), (10, 7), (10,)]  # pyright: ignore
    assert (f.zeros().dtype, problem.schema.dtype) == (torch.float32, "float32")  # pyright: ignore
    assert problem.loss == f"multinomial, network nets.py:Net of {f.shape[0]} parameters"  # pyright: ignore
    assert not problem.is_convex
    assert build_problem(options("mlp=4")).schema.dtype == "float64"
    assert build_problem(options("linear")).schema.dtype == "float64"
    theta = f.initial(0)  # pyright: ignore
    right = problem.training_accuracy(theta)
    by_hand = np.concatenate([(f.predict(theta, X) == y).numpy() for X, y, _ in problem.rows.client_rows()])  # pyright: ignore
    assert right == by_hand.mean()


def test_other_losses_come_with_other_models(nets: str) -> None:
    problem = build_problem(options("torch.nn:Linear: in_features=30, out_features=1", data="breast_cancer"))
    assert problem.loss.startswith("logistic, network torch.nn:Linear")
    right: Any = problem.training_accuracy(problem.objective.initial(0))
    assert 0 <= right <= 1


BAD: list[tuple[str, dict[str, Any], str]] = [
    ("nets.py:Net", {}, "module must not have the layer 'body.0' (BatchNorm1d)"),
    ("nets.py:Net: widt=[3]", {}, "parameter of model nets.py:Net must be one of features, outputs, widths, bias"),
    ("nets.py:Net: widths=wide", {}, "model nets.py:Net: widths must be"),
    ("nets.py:plain", {}, "module must know its sizes"),
    ("nets.py:wide", {}, "model nets.py:wide needs width: write 'nets.py:wide: width=...'"),
    ("nets.py:NotOne", {}, "NotOne is no objective: it must be a dataclass"),
    ("nets.py:Missing", {}, "nets.py has no class Missing"),
    ("cnn: filters=8", {}, "a convolutional network needs larger images than of 64 features"),
    ("convnet", {}, "model must be linear, mlp=WIDTH,WIDTH,... such as mlp=200,100, cnn, lenet, or FILE.py:NAME;"),
    ("cnn", {"device": "gpu"}, "device must be cpu or cuda, not 'gpu'."),
    (LINEAR, {"class_weight": "balanced"}, "and exposure are for linear models, not for 'torch.nn:Linear"),
    (LINEAR, {"dtype": "float16"}, "dtype must be one of auto, float64, float32; not 'float16'."),
    (LINEAR, {"mu": -1.0}, "mu must be a finite number, at least 0"),
    ("torch.nn:Linear: in_features=64, out_features=9", {}, "module must return a tensor of shape (2, 10)"),
    ("torch.nn:Linear: in_features=64, out_features=10, augment=crop-flip, input_shape=[8, 9]", {}, "72 features"),
]


@pytest.mark.parametrize(("model", "changes", "said"), BAD, ids=[said[:40] for *_, said in BAD])
def test_what_is_refused(model: str, changes: dict[str, Any], said: str, nets: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)) as error:
        build_problem(options(model, **changes))
    assert "\n" not in str(error.value)


def test_a_name_is_a_network_an_objective_or_neither(nets: str) -> None:
    assert network_of("nets.py:NotOne") is None
    small: Any = network_of("cnn: filters=8, hidden=[7, 6], augment=crop-flip")
    assert (dict(small.arguments)["hidden"], small.options) == ((7, 6), {"augment": "crop-flip"})
    with pytest.raises(ValueError, match="NotOne is no network: it must be a subclass of"):
        find("networks", "nets.py:NotOne", "network")


# Files.


@pytest.fixture
def trained(nets: str, tmp_path: Path) -> Any:
    """Return a problem, its run, and the folder of the model."""
    problem = build_problem(options("nets.py:Net: frozen=true", scale="standard"))
    solver = SGD(step=0.1, batch=10, epochs=3)
    trace = run(FedAvg(solver=solver), problem.objective, rounds=3)
    problem.model(trace, {}).save(tmp_path / "out")
    return problem, trace, tmp_path / "out"


def test_a_model_predicts_what_the_module_predicts(trained: Any) -> None:
    problem, trace, out = trained
    Net = find("networks", "nets.py:Net", "network")
    model = load_model(out, types=[Net])
    from dualopt.problem.data import load

    raw = load("digits", scale="none").X
    scaled = load("digits", scale="standard", dtype="float32").X
    z = problem.network.outputs(trace.theta, torch.as_tensor(scaled)).numpy()
    np.testing.assert_allclose(model.predictors(raw), z, rtol=1e-4, atol=1e-4)
    assert np.mean(model.predict(raw) == z.argmax(axis=0)) > 0.999
    np.testing.assert_allclose(model.predict_proba(raw).sum(axis=1), 1.0, rtol=1e-5)
    assert model.widths == (64, 10)
    assert repr(model) == "<Model Net 64-10, loss multinomial: classes=10, float32>"
    assert model.certificate["certified"] is False
    with pytest.raises(AttributeError, match="coef and intercept are those of a linear model"):
        _ = model.coef
    model.save(out.parent / "again")
    again = load_model(out.parent / "again", types=[Net])
    np.testing.assert_array_equal(again.predictors(raw), model.predictors(raw))


def test_a_file_calls_nothing_that_is_not_handed_in(trained: Any) -> None:
    _, _, out = trained
    with pytest.raises(ValueError, match=r"is of a module 'Net', which is not known here: files hold no code, so give"):
        load_model(out)
    path = out / "model.json"
    head = json.loads(path.read_text())
    Net = find("networks", "nets.py:Net", "network")
    changes: list[tuple[str, Any, str]] = [
        ("name", "os:system", "is of a module 'os:system', which is not known here"),
        ("name", "cnn", "cannot be made by cnn: cnn() got an unexpected keyword argument 'widths'"),
        ("arguments", {"features": 64, "outputs": 10, "widths": [10**11]}, "Net makes a module of other tensors than"),
        ("arguments", {"features": 64, "outputs": 10, "more": 1}, "cannot be made by Net"),
        ("arguments", {"features": {"a": 1}}, "its entry module.arguments must be an object of plain values"),
        ("input_shape", [8, 9], "its entry module.input_shape must be of 64 numbers"),
        ("input_shape", [-64, -1], "its entry module.input_shape must be a list of numbers"),
        ("tensors", {}, "Net makes a module of other tensors than it holds"),
        ("tensors", {"a": [10**13]}, "its entry module.tensors must be an object of lists of numbers"),
    ]
    for name, value, said in changes:
        path.write_text(json.dumps(head | {"module": head["module"] | {name: value}}))
        with pytest.raises(ValueError, match=re.escape(said)) as error:
            load_model(out, types=[Net])
        assert "\n" not in str(error.value)
    path.write_text(json.dumps(head | {"module": 3}))
    with pytest.raises(ValueError, match="its entry module must be null or an object"):
        load_model(out, types=[Net])


def test_a_module_alone_cannot_be_made_again() -> None:
    X, y = np.eye(4, dtype=np.float32), np.array([0, 1, 0, 1])
    f = torch_module(torch.nn.Linear(4, 2), X, y)
    trace = run(FedAvg(solver=SGD(step=0.1, batch=2, epochs=1)), f, rounds=1)
    with pytest.raises(ValueError, match="objective must be built with the class of its module, or a function"):
        Model.of(f, trace)
