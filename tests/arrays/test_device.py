"""``--device``: where rows and models are.

No test here needs a GPU. The second device of array-api-strict stands for one: like CuPy it refuses to mix its arrays
with those of the host, and to turn them into NumPy arrays unasked.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

import dualopt.problem.build as problem_module
import dualopt.problem.networks as networks_module
from dualopt.app.cli import main
from dualopt.arrays.xp import is_host, uploader
from dualopt.problem.build import build_problem
from dualopt.problem.options import ProblemOptions
from dualopt.runs.trace import Trace
from tests.conftest import BACKENDS

FEW = ["--rows", "120", "--clients", "3", "--rounds", "4", "--tol", "0"]
UNAVAILABLE = 'device cuda needs CuPy and a CUDA GPU: pip install "dualopt[gpu]".'


def cupy_like(*, gpu: bool) -> dict[str, ModuleType]:
    """Modules under CuPy's names, with what `uploader` asks of them; arrays are tagged rather than moved."""
    names = ("cupy", "cupyx", "cupyx.scipy", "cupyx.scipy.sparse")
    modules = {name: ModuleType(name) for name in names}
    modules["cupy"].__dict__.update(
        cuda=SimpleNamespace(is_available=lambda: gpu), asarray=lambda x: ("cupy", np.asarray(x))
    )
    modules["cupyx.scipy.sparse"].__dict__.update(csr_matrix=lambda x: ("cupyx", x))
    return modules


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let "cuda" be the second device of array-api-strict."""

    def uploader(name: str):
        return {"cpu": lambda x: x, "cuda": BACKENDS["strict-device1"]}[name]

    for module in (problem_module, networks_module):
        monkeypatch.setattr(module, "uploader", uploader)


def succeeds(*arguments: str) -> None:
    with pytest.raises(SystemExit) as end:
        main(list(arguments))
    assert not end.value.code


def test_arrays_go_through_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, module in cupy_like(gpu=True).items():
        monkeypatch.setitem(sys.modules, name, module)
    x, rows = np.ones(3), sparse.csr_array(np.eye(2))
    there = uploader("cuda")
    assert there(x)[0] == "cupy"
    assert there(rows) == ("cupyx", rows)


def test_cuda_is_refused_without_cupy(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(SystemExit) as end:
        main(["run", "--device", "cuda", "--data", "no such data"])  # before data are read
    assert end.value.code == 2
    assert capsys.readouterr().err == f"dualopt: {UNAVAILABLE}\n"


def test_cuda_is_refused_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, module in cupy_like(gpu=False).items():
        monkeypatch.setitem(sys.modules, name, module)
    with pytest.raises(ValueError, match="needs CuPy and a CUDA GPU"):
        uploader("cuda")


def test_other_devices_are_refused() -> None:
    with pytest.raises(ValueError, match="device must be cpu or cuda, not 'tpu'"):
        build_problem(ProblemOptions(device="tpu"))


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize("model", ["linear", "mlp=4"])
def test_rows_and_models_are_there(model: str) -> None:
    problem = build_problem(ProblemOptions(device="cuda", rows=120, clients=3, model=model), test=False)
    assert not is_host(problem.objective.zeros())
    assert all(not is_host(x) for client in problem.rows.client_rows() for x in client)
    assert problem.added == {"device": "cuda"}
    host = build_problem(ProblemOptions(rows=120, clients=3, model=model))
    assert (problem.partition, problem.loss, host.added) == (host.partition, host.loss, {})


@pytest.mark.usefixtures("stand_in")
def test_rows_that_no_client_has_are_there_too(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), np.arange(30) % 3
    np.savez(tmp_path / "mine.npz", X=X, y=y, X_test=X[:9], y_test=y[:9])
    options = {"data": str(tmp_path / "mine.npz"), "scale": "none", "clients": 2}
    there, here = (build_problem(ProblemOptions(**options, device=device), test=True) for device in ("cuda", "cpu"))
    assert there.test is not None
    assert here.test is not None
    theta = rng.normal(size=here.objective.shape)
    moved = BACKENDS["strict-device1"](theta)
    assert there.accuracy(moved, *there.test) == here.accuracy(theta, *here.test)
    assert there.training_accuracy(moved) == here.training_accuracy(theta)


@pytest.mark.usefixtures("stand_in", "undrawn")
@pytest.mark.parametrize(
    "method",
    [
        ["--algorithm", "dualfl", "--reference"],
        [
            "--algorithm",
            "fedavg",
            "--solver",
            "sgd",
            "--solver-param",
            "step=0.01",
            "--stop",
            "steps=5",
            "--participation",
            "subset=2",
        ],
    ],
    ids=["certified", "random"],
)
def test_a_run_is_the_one_on_the_host(method: list[str], tmp_path: Path) -> None:
    """The same rows, clients and random draws: the numbers differ by rounding alone."""
    for device in ("cpu", "cuda"):
        succeeds("run", *FEW, *method, "--device", device, "--out", str(tmp_path / device))
        assert json.loads((tmp_path / device / "run.json").read_text())["options"]["device"] == device
    here, there = (Trace.from_npz(tmp_path / device / "trace.npz") for device in ("cpu", "cuda"))
    np.testing.assert_allclose(there.theta, here.theta, rtol=0, atol=1e-9 * np.max(np.abs(here.theta)))
    np.testing.assert_allclose(there["energy"], here["energy"], rtol=1e-12)
    assert there["gradients"] == pytest.approx(here["gradients"])


@pytest.mark.usefixtures("stand_in", "undrawn")
def test_the_other_commands_take_it(tmp_path: Path) -> None:
    both = ["--algorithm", "dualfl", "--algorithm", "fedavg"]
    succeeds("compare", *FEW, *both, "--device", "cuda", "--out", str(tmp_path / "both"))
    found = json.loads((tmp_path / "both" / "compare.json").read_text())
    assert found["problem"]["device"] == "cuda"
    searched = ["tune", "--algorithm", "fedadmm", "--grid", "rho=0.1,1", "--rows", "120", "--clients", "3"]
    succeeds(*searched, "--rounds", "5", "--device", "cuda", "--out", str(tmp_path / "search"))
    assert json.loads((tmp_path / "search" / "tune.json").read_text())["search"]["device"] == "cuda"
