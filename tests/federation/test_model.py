"""The model of a federation is that of one process with all the data, in the same file."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dualopt import Model, load_model
from dualopt.federation.model import model_of
from tests.federation.problems import in_one_process, project_of, rows, whole
from tests.federation.test_in_memory import memory

PROJECTS: dict[str, dict[str, Any]] = {
    "two classes": {},
    "a divisor": {"scale": "4.0"},
    "unit rows, without an intercept": {"scale": "unit-rows", "intercept": "none"},
    "single precision": {"dtype": "float32"},
    "numbers": {"loss": "huber: delta=0.5", "classes": ()},
    "several classes": {"loss": "multinomial", "classes": (0, 1, 7)},
    "a regulariser": {"algorithm": "feddr", "regulariser": "l1=0.01"},
    "compressed, weighted": {"algorithm": "fedsplit", "compressor": "natural", "client_weights": "3,1,2"},
}


@pytest.mark.parametrize("name", PROJECTS)
def test_a_federation_ends_with_the_model_of_its_trace(name: str, tmp_path: Path) -> None:
    """Of the trace that the server leaves: layers, scaling and classes are what the project says."""
    changes = dict(PROJECTS[name])
    project = project_of(changes.pop("algorithm", "dualfl"), rounds=5, **changes)
    X, _, _ = rows()
    with memory(tmp_path, project) as m:
        assert m.serve()["refused"] is None
        trace = m.trace
    model_of(project, trace).save(tmp_path / "out")
    model = load_model(tmp_path / "out")
    own = X.astype(project.dtype)
    own = own / np.linalg.norm(own, axis=1, keepdims=True) if project.scale == "unit-rows" else own
    own = own / 4.0 if project.scale == "4.0" else own
    own = np.hstack([own, np.ones((len(own), 1), own.dtype)]) if project.intercept != "none" else own
    z = np.atleast_2d(trace.theta) @ own.T
    eps = float(np.finfo(own.dtype).eps)
    np.testing.assert_allclose(model.predictors(X), z, rtol=0, atol=16 * eps * np.abs(z).max())
    if project.classes:
        codes = np.argmax(z, axis=0) if len(z) > 1 else (z[0] > 0).astype(int)
        assert np.array_equal(model.predict(X), np.array(project.classes)[codes])
    gap, mu = trace.last["certificate"], project.mu
    assert model.certificate["gap"] == gap
    np.testing.assert_allclose(model.certificate["distance"], np.sqrt(2 * gap / mu), rtol=8 * eps)  # mu is rounded
    assert model.record["options"] == {"project": project.fingerprint}


def test_it_is_the_file_of_one_process(tmp_path: Path) -> None:
    """Arrays bit for bit; of the description only what says how it was made differs, and roundings of the distance."""
    project = project_of("dualfl", rounds=8)
    with memory(tmp_path, project) as m:
        assert m.serve()["refused"] is None
        model_of(project, m.trace).save(tmp_path / "federation")
    trace = in_one_process(project)
    alone = Model.of(whole(project), trace)
    replace(alone, schema=replace(alone.schema, classes=project.classes)).save(tmp_path / "alone")
    one, other = (json.loads((tmp_path / name / "model.json").read_text()) for name in ("federation", "alone"))
    assert (tmp_path / "federation/model.npz").read_bytes() == (tmp_path / "alone/model.npz").read_bytes()
    distances = [head["certificate"].pop("distance") for head in (one, other)]
    np.testing.assert_allclose(*distances, rtol=1e-14)
    assert {name for name in one if one[name] != other[name]} == {"record"}
    for field in ("status", "rounds", "algorithm", "hyperparameters", "n_clients", "seed"):
        assert one["record"][field] == other["record"][field]


def test_names_of_columns_and_words(tmp_path: Path) -> None:
    names = tuple(f"x{i}" for i in range(20))
    project = project_of("dualfl", rounds=2, feature_names=names, classes=("no", "yes"), rows=(30, 70, 80))
    model = model_of(project, in_one_process(project))
    assert model.schema.feature_names == names
    assert model.record["data"] == {"rows": 180}
    frame = pytest.importorskip("pandas").DataFrame(dict(zip(names[::-1], np.eye(20)[::-1], strict=True)))
    np.testing.assert_allclose(model.predictors(frame), model.predictors(np.eye(20)))
    assert set(model.predict(frame)) <= {"no", "yes"}
