"""The two files of a model: damaged, hostile and newer ones are refused in one sentence that names the file."""

from __future__ import annotations

import hashlib
import io
import json
import os
import random
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dualopt import Logistic, Model, Multinomial, Squared, load_model
from dualopt.problem.data._scaling import Scaling
from dualopt.problem.models import Schema


def example() -> Model:
    """Return a model in which every field says something."""
    scaling = Scaling(how="standard", mean=np.zeros(2), peak=np.ones(2), factor=np.array([1.0, 0.0]))
    schema = Schema(
        n_features=2,
        feature_names=("age", "döse"),
        classes=("no", "yes"),
        scaling=scaling,
        reading={"label": "sick", "client": None},
    )
    certificate = {"certified": True, "gap": 1e-7, "energy": 0.5, "relative_error": 1e-7, "distance": 1e-3}
    record = {"status": "converged", "rounds": 3, "data": {"sha256": "ab"}}
    return Model(
        layers=((np.array([[1.0, -1.0]]), np.array([0.5])),),
        loss=Logistic(),
        schema=schema,
        certificate=certificate,
        record=record,
    )


def refusal(path: Path) -> str:
    """Return the one sentence with which a file is refused."""
    sentence = said_of(path)
    assert sentence is not None
    return sentence


def said_of(path: Path) -> str | None:
    """Return the one sentence with which a file is refused, None if it is not; what is taken can predict."""
    try:
        model = load_model(path)
        model.predict([[1.0, 2.0]])
    except ValueError as error:
        sentence = str(error)
    else:
        return None
    folder = re.escape(str(path if path.is_dir() else path.parent))
    named = rf"(model|path) '{folder}[^\n]*' [^\n]+[.?]|X must be finite [^\n]+"
    return sentence if re.fullmatch(named, sentence) else pytest.fail(sentence)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with the example."""
    example().save(tmp_path)
    return tmp_path


def test_it_comes_back(folder: Path) -> None:
    expected = example()
    for path in (folder, folder / "model.json", folder / "model.npz", str(folder)):
        found = load_model(path)
        assert found.schema.feature_names == expected.schema.feature_names
        assert (found.schema.classes, found.schema.reading) == (expected.schema.classes, expected.schema.reading)
        assert (found.loss, found.certificate, found.record) == (
            expected.loss,
            expected.certificate,
            expected.record,
        )
        assert np.array_equal(found.predictors([[1.0, 2.0]]), expected.predictors([[1.0, 2.0]]))


def test_names_of_files(tmp_path: Path) -> None:
    example().save(tmp_path / "deep" / "er" / "mine.json")
    assert sorted(path.name for path in (tmp_path / "deep" / "er").iterdir()) == ["mine.json", "mine.npz"]
    assert load_model(tmp_path / "deep" / "er" / "mine.npz").schema.classes == ("no", "yes")
    for name in ("a.model.json", "b.model.json"):
        example().save(tmp_path / name)
    assert "is a folder without model.json: it has a.model.json, b.model.json, give one of them" in refusal(tmp_path)
    assert "is neither a file nor a folder" in refusal(tmp_path / "nothing")
    assert load_model(tmp_path / "b.model.json").widths == (2, 1)


def test_a_model_is_written_whole_or_not_at_all(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be told leaves the earlier model; numbers that are not finite become null."""
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    odd = Model(layers=example().layers, loss=Logistic(), schema=Schema(n_features=2, classes=(b"no", b"yes")))
    with pytest.raises(ValueError, match="classes must be numbers, words or truth values in a file, not b'no'"):
        odd.save(folder)
    object_in = Model(layers=example().layers, loss=Logistic(), schema=Schema(n_features=2), record={"x": object()})
    with pytest.raises(TypeError):
        object_in.save(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    infinite = Model(layers=example().layers, loss=Logistic(), schema=Schema(n_features=2), record={"x": [np.inf]})
    infinite.save(folder)
    assert load_model(folder).record == {"x": [None]}
    replaced, replace = [], Path.replace

    def noted(self: Path, target: Any) -> Path:
        replaced.append((self.name, Path(target).name))
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", noted)
    example().save(folder)
    assert [target for _, target in replaced] == ["model.npz", "model.json"]  # the description last
    assert all(source.startswith(f".{target}.") for source, target in replaced)


def test_files_cut_short_anywhere(folder: Path) -> None:
    for name in ("model.json", "model.npz"):
        path = folder / name
        content = path.read_bytes()
        step = 1 if name == "model.json" else 7
        for end in range(0, len(content) - 1, step):  # the last byte of the description is the end of its line
            path.write_bytes(content[:end])
            refusal(folder / "model.json")
        path.write_bytes(content)
    load_model(folder)
    (folder / "model.npz").unlink()
    assert "has no arrays: 'model.npz' must be beside it" in refusal(folder / "model.json")


def test_arrays_of_another_model(folder: Path, tmp_path: Path) -> None:
    other = Model(layers=((np.array([[9.0, 9.0]]), np.zeros(1)),), loss=Squared(), schema=Schema(n_features=2))
    other.save(tmp_path / "other")
    (folder / "model.npz").write_bytes((tmp_path / "other" / "model.npz").read_bytes())
    assert "does not fit 'model.npz', damaged or of another one" in refusal(folder / "model.json")


def test_a_newer_version(folder: Path) -> None:
    change(folder, lambda head: head | {"version": 2})
    assert "is of version 2, and this dualopt knows 1: a newer dualopt reads it" in refusal(folder / "model.json")


def test_another_file(folder: Path) -> None:
    for text in ("", "[]", "{}", '{"format": "other"}', "\x00", '{"format": "dualopt model", "format": "x"}'):
        (folder / "model.json").write_text(text)
        assert re.search("is no model that dualopt has written|is damaged", refusal(folder / "model.json"))
    (folder / "model.json").write_bytes(b"\xff\xfe")
    refusal(folder / "model.json")
    (folder / "model.json").write_text("[" * 10**5)
    refusal(folder / "model.json")


def change(folder: Path, by: Any) -> None:
    """Write another description."""
    path = folder / "model.json"
    path.write_text(json.dumps(by(json.loads(path.read_text()))))


def fields(head: dict[str, Any], within: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the places of all fields that are read."""
    for name, value in head.items():
        yield (*within, name)
        if isinstance(value, dict) and name not in ("record", "reading", "loss"):
            yield from fields(value, (*within, name))


def put(head: dict[str, Any], place: tuple[str, ...], value: Any) -> dict[str, Any]:
    """Return a description with another value at a place; without it where the value is ...."""
    name, *rest = place
    if rest:
        return head | {name: put(head[name], tuple(rest), value)}
    return {key: x for key, x in head.items() if key != name} if value is ... else head | {name: value}


HOSTILE = [
    *(..., None, True, -1, 0, 10**400, 1e308, "", "x", [], {}, [1], [[]], {"a": []}, ["a", "a"], [1, "a"], [{}, {}]),
    *([2, 10**12], [10**12] * 9, {"logistic": {"x": 1}}, {"multinomial": {"classes": 10**30}}, {"hinge": None}),
    *({"os:system": {"command": "true"}}, {"my.py:Loss": {}}, [True, False], "float16", "unit-rows", 1e-320),
]


def test_no_field_is_trusted(folder: Path) -> None:
    """Whatever stands in its place: a model whose fields are right, or one sentence. Left out, always a sentence."""
    text = (folder / "model.json").read_text()
    head = json.loads(text)
    accepted = set()
    for place in fields(head):
        for value in HOSTILE:
            changed = put(head, place, value)
            (folder / "model.json").write_text(json.dumps(changed))
            if said_of(folder) is None:
                assert value is not ...
                accepted.add((*place, repr(value)))
    # What a file may say besides, and then it is another model that is right: everything else is refused.
    open_ones = {
        "columns",
        "feature_names",
        "classes",
        "scaling",
        "offset",
        "reading",
        "certificate",
        "record",
        "module",
    }
    assert {place[0] for place in accepted} == open_ones
    of_classes = {place[1] for place in accepted if place[0] == "classes"}
    assert of_classes == {"None", "[True, False]", "[2, 1000000000000]"}
    for name in ("offset", "module"):  # as it was
        assert {place[1:] for place in accepted if place[0] == name} == {("None",)}
    assert {place[1] for place in accepted if place[0] == "reading"} == {"{}", "{'hinge': None}"}  # words are no harm
    assert {place[1] for place in accepted if place[0] == "scaling"} == {"divisor"}


def rewritten(folder: Path, arrays: dict[str, Any]) -> None:
    """Write other arrays, with the hash that fits them."""
    packed = io.BytesIO()
    np.savez(packed, **arrays)
    honest(folder, packed.getvalue())


def honest(folder: Path, content: bytes) -> None:
    """Write bytes in place of the arrays, and their hash."""
    (folder / "model.npz").write_bytes(content)
    change(folder, lambda head: head | {"arrays": {"sha256": hashlib.sha256(content).hexdigest()}})


class Harmful:
    """What does harm when it is unpickled."""

    def __reduce__(self) -> Any:
        return os.mkdir, ("harm",)


def test_arrays_are_not_trusted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    good = dict(np.load(folder / "model.npz"))
    for changed in (
        {name: x for name, x in good.items() if name != "mean"},
        good | {"further": np.zeros(1)},
        good | {"coef": np.zeros((2, 1))},
        good | {"coef": np.zeros((1, 2), np.float32)},
        good | {"coef": np.full((1, 2), np.nan)},
        good | {"peak": np.array([1.0, 0.0])},
        good | {"factor": np.array([1.0, -1.0])},
        good | {"intercept": np.array([[0.5]])},
    ):
        rewritten(folder, changed)
        with pytest.raises(ValueError, match=r"model.(npz|json)' [^\n]*\.$"):
            load_model(folder)
    objects = np.empty((1, 2), dtype=object)
    objects[:] = Harmful()
    rewritten(folder, good | {"coef": objects})
    with pytest.raises(ValueError, match=r"Object arrays such as coef\.npy are never unpickled"):
        load_model(folder)
    assert not (folder / "harm").exists()


def test_a_header_that_says_more_than_there_is_takes_no_memory(folder: Path) -> None:
    """A file of some bytes cannot ask for terabytes, not even compressed."""
    change(folder, lambda head: head | {"layers": [10**12, 1], "feature_names": None})
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, shape in (("mean", 10**12), ("peak", 10**12), ("factor", 10**12)):
            header = io.BytesIO()
            np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (shape,)})
            archive.writestr(f"{name}.npy", header.getvalue())
        archive.writestr("coef.npy", b"")
        archive.writestr("intercept.npy", b"")
    honest(folder, packed.getvalue())
    with pytest.raises(ValueError, match=r"its member mean\.npy does not hold as much as its shape"):
        load_model(folder)


def test_random_bytes_with_a_hash_that_fits(folder: Path) -> None:
    """No other error comes out of arrays in which anything was changed; a file that is taken is the same model."""
    content, rng = (folder / "model.npz").read_bytes(), random.Random(0)
    rows = np.array([[1.0, 2.0], [-3.0, 0.5]])
    expected, taken = load_model(folder).decision_function(rows).tolist(), 0
    for _ in range(300):
        changed = bytearray(content)
        for _ in range(rng.choice((1, 1, 3, 20))):
            changed[rng.randrange(len(changed))] = rng.randrange(256)
        honest(folder, bytes(changed)[: rng.choice((len(changed), rng.randrange(len(changed))))])
        if said_of(folder) is None:
            assert load_model(folder).decision_function(rows).tolist() == expected
            taken += 1
    assert 0 < taken < 30


def test_many_classes(tmp_path: Path) -> None:
    loss = Multinomial(classes=3)
    layers = ((np.eye(3), np.zeros(3)),)
    model = Model(layers=layers, loss=loss, schema=Schema(n_features=3, classes=(2**70, 2**71, 2**72)))
    model.save(tmp_path)
    assert load_model(tmp_path).predict(np.eye(3)).tolist() == [2**70, 2**71, 2**72]
