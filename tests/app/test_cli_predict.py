"""``dualopt predict``, and the models that ``run`` and ``compare`` leave."""

from __future__ import annotations

import csv
import gzip
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_breast_cancer, load_digits

from dualopt import Trace, load_model
from dualopt.app.cli import main
from dualopt.app.estimators import FederatedClassifier, FederatedRegressor
from dualopt.problem.build import build_problem
from dualopt.problem.options import ProblemOptions
from tests.programs import called, refusal

FAST = ("--rounds", 3, "--algorithm", "dualfl")


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> Callable[..., str]:
    """Return what runs a command in an empty folder, and returns what it prints."""
    monkeypatch.chdir(tmp_path)

    def run(*words: Any) -> str:
        code, out, err = called(capsys, main, *words)
        assert (code, err) == (0, "")
        return out

    return run


def table(path: str, columns: dict[str, Any]) -> None:
    """Write a table."""
    with Path(path).open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def patients(m: int = 60, seed: int = 0) -> dict[str, Any]:
    """Return a table whose labels are words."""
    rng = np.random.default_rng(seed)
    age, dose = rng.integers(20, 90, m), rng.uniform(0, 3, m).round(3)
    sick = np.where(age / 40 + dose + rng.normal(0, 0.3, m) > 3, "yes", "no")
    return {"age": age, "dose": dose, "ward": rng.choice(["A", "B", "C"], m), "sick": sick}


def read(path: str = "predictions.csv") -> dict[str, list[str]]:
    """Return the columns of a table."""
    with Path(path).open(newline="") as file:
        names, *rows = csv.reader(file)
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def test_another_table_with_columns_in_another_order(program: Callable[..., str]) -> None:
    """Predictions are those of the run's own model on its own scaling, whatever else the table holds."""
    old, new = patients(), patients(40, seed=1)
    table("old.csv", old)
    table("new.csv", {"id": np.arange(40), "dose": new["dose"], "note": ["?"] * 40, "age": new["age"]})
    words = ("run", "--data", "old.csv", "--label", "sick", "--client", "ward", "--scale", "standard", "--rounds", 9)
    said = program(*words)
    assert "model.json, model.npz" in " ".join(said.replace("│", " ").split())
    said = " ".join(program("predict", "--data", "new.csv").replace("│", " ").split())
    assert "columns not used id, note" in said
    assert "accuracy" not in said
    theta = Trace.from_npz("out/trace.npz").theta
    X = np.stack([old["age"], old["dose"]], axis=1).astype(float)
    rows = np.stack([new["age"], new["dose"]], axis=1).astype(float)
    z = (rows - X.mean(axis=0)) / X.std(axis=0) @ theta[:2] + theta[2]
    found = read()
    assert found["prediction"] == np.where(z > 0, "yes", "no").tolist()
    assert list(found) == ["prediction", "probability no", "probability yes"]
    np.testing.assert_allclose([float(p) for p in found["probability yes"]], 1 / (1 + np.exp(-z)), rtol=1e-12)


def test_the_labels_of_the_new_rows_are_compared(program: Callable[..., str]) -> None:
    table("old.csv", patients())
    program("run", "--data", "old.csv", "--label", "sick", "--client", "ward", "--scale", "standard", *FAST)
    new = patients(40, seed=1)
    table("new.csv", new)
    said = program("predict", "--data", "new.csv")
    right = np.mean(np.array(read()["prediction"]) == new["sick"])
    assert f"{right:.2%} of the labels in the data" in said
    assert "not used" not in said
    new["sick"] = ["", *new["sick"][1:]]  # one is not known yet
    table("new.csv", new)
    assert "accuracy" not in program("predict", "--data", "new.csv", "--overwrite")


def test_numbers(program: Callable[..., str]) -> None:
    old = patients()
    old["weight"] = old["age"] * 0.5 + old["dose"]
    table("old.csv", {name: x for name, x in old.items() if name != "ward"} | {"sick": old["sick"] == "yes"})
    program("run", "--data", "old.csv", "--label", "weight", "--scale", "standard", "--loss", "squared", *FAST)
    said = program("predict", "--data", "old.csv")
    error = np.sqrt(np.mean((np.array(read()["prediction"], float) - old["weight"]) ** 2))
    assert f"{error:.6g}, by the labels in the data" in said
    assert list(read()) == ["prediction"]


def test_decisions_of_a_loss_without_probabilities(program: Callable[..., str]) -> None:
    program("run", "--data", "breast_cancer", "--loss", "hinge", "--mu", "0.1", *FAST)
    program("predict", "--data", "breast_cancer")
    found = read()
    assert list(found) == ["prediction", "decision"]
    assert [label == "1" for label in found["prediction"]] == [float(z) > 0 for z in found["decision"]]


def test_sparse_files(program: Callable[..., str]) -> None:
    """Features that never occur in the new file keep their places, and so does the first one, whose index is 0."""
    X, y = load_digits(return_X_y=True)
    X[:, -1] = 1.0
    X[:, 0] = np.arange(len(y)) % 2
    dump_svmlight_file(X[:300], y[:300], "old.svm", zero_based=True)
    new = X[300:400].copy()
    new[:, [0, -1]] = 0.0
    dump_svmlight_file(new, y[300:400], "new.svm", zero_based=True)  # nothing in it says where indices begin
    program("run", "--data", "old.svm", "--scale", "max", *FAST)
    program("predict", "--data", "new.svm")
    theta = Trace.from_npz("out/trace.npz").theta
    z = theta[:, :64] @ (new / 16.0).T + theta[:, 64:]
    assert [int(label) for label in read()["prediction"]] == np.argmax(z, axis=0).tolist()
    np.savez("dense.npz", X=new)
    program("predict", "--data", "dense.npz", "--out", "dense.csv")
    assert read("dense.csv")["prediction"] == read()["prediction"]
    dump_svmlight_file(np.ones((2, 66)), [0, 1], "wide.svm", zero_based=True)


def test_the_test_part_of_sparse_data_counts_as_the_training_part(program: Callable[..., str]) -> None:
    """A test file that never uses the index 0 was read one column to the left of the training file that does."""
    Path("d.svm").write_text("0 0:1 1:2 2:3\n1 0:3 1:1 2:1\n" * 3)
    Path("d.t.svm").write_text("0 1:2 2:3\n1 1:1 2:1\n")
    problem = build_problem(ProblemOptions(data="d.svm", clients=1), test=True)
    assert problem.test is not None
    assert np.asarray(problem.test[0]).tolist() == [[0.0, 2.0, 3.0], [0.0, 1.0, 1.0]]
    Path("e.svm").write_text("0 1:1 2:2\n1 1:3 2:1\n")
    Path("e.t.svm").write_text("0 0:2 1:3\n1 0:1 1:1\n")
    with pytest.raises(ValueError, match="uses the index 0, where the first feature has the index 1"):
        build_problem(ProblemOptions(data="e.svm", clients=1), test=True)


def test_images_without_labels(program: Callable[..., str]) -> None:
    X, y = load_digits(return_X_y=True)
    images = X.reshape(-1, 8, 8).astype(np.uint8)
    np.savez("images.npz", X_train=images[:300], y_train=y[:300], X_test=images[300:350])
    program("run", "--data", "images.npz", *FAST)
    program("predict", "--data", "images.npz", "--split", "test")
    theta = Trace.from_npz("out/trace.npz").theta
    z = theta[:, :64] @ (X[300:350] / 255.0).T + theta[:, 64:]
    assert [int(label) for label in read()["prediction"]] == np.argmax(z, axis=0).tolist()


def test_images_in_idx_files(program: Callable[..., str]) -> None:
    rng = np.random.default_rng(0)
    folder = Path("home", "mnist")
    folder.mkdir(parents=True)
    for part, m in (("train", 60), ("t10k", 20)):
        pixels, y = rng.integers(0, 256, (m, 28, 28), dtype=np.uint8), rng.integers(0, 10, m).astype(np.uint8)
        y[:10] = np.arange(10)
        for kind, x in (("images-idx3", pixels), ("labels-idx1", y)):
            header = struct.pack(f">BBBB{x.ndim}I", 0, 0, 8, x.ndim, *x.shape)
            (folder / f"{part}-{kind}-ubyte.gz").write_bytes(gzip.compress(header + x.tobytes()))
    home = ("--data", "mnist", "--data-home", "home")
    program("run", *home, "--clients", 2, *FAST)
    assert "of the labels in the data" in program("predict", *home, "--split", "test")
    assert len(read()["prediction"]) == 20


def test_a_network(program: Callable[..., str]) -> None:
    options = ("--model", "mlp=6", "--mu", "0", "--algorithm", "fedavg", "--solver", "lbfgs", "--rounds", 3, "--tol", 0)
    program("run", "--data", "digits", "--rows", 200, "--certify-every", 0, *options)
    assert "not certified" in program("predict", "--data", "digits")
    assert load_model("out").widths == (64, 6, 10)
    classes = np.array(["ant", "bee", "cat"])
    np.savez("words.npz", X=np.eye(3).repeat(4, axis=0), y=classes.repeat(4))
    program("run", "--data", "words.npz", "--out", "words", "--clients", 2, *options)
    assert set(load_model("words").predict(np.eye(3))) <= {*classes}


def test_one_model_for_each_method(program: Callable[..., str]) -> None:
    program(
        "compare", "--data", "digits", "--rows", 200, "--rounds", 2, "--algorithm", "dualfl", "--algorithm", "b@fedpd"
    )
    record = json.loads(Path("out/compare.json").read_text())
    assert {"b.model.json", "b.model.npz", "dualfl.model.json", "dualfl.model.npz"} <= {*record["files"]}
    one, other = load_model("out/b.model.json"), load_model("out/dualfl.model.json")
    assert (one.record["algorithm"], other.record["algorithm"]) == ("FedPD", "DualFL")
    assert not np.array_equal(one.coef, other.coef)


def test_what_the_file_tells(program: Callable[..., str]) -> None:
    """Options, versions and the hash of the data are those of the record; where files are is nobody's business."""
    Path("place").mkdir()
    table("place/old.csv", patients())
    program(
        "run", "--data", Path("place/old.csv").resolve(), "--label", "sick", "--client", "ward", "--out", "o", *FAST
    )
    record, model = json.loads(Path("o/run.json").read_text()), load_model("o")
    assert model.record["data"] == {"sha256": record["problem"]["sha256"], "rows": 60}
    assert model.record["versions"] == record["versions"]
    assert model.record["options"]["mu"] == record["options"]["mu"]
    assert model.certificate["gap"] == record["final"]["certificate"]
    assert "place" not in Path("o/model.json").read_text()
    assert record["files"] == sorted(record["files"], key=record["files"].index)
    assert {path.name for path in Path("o").iterdir()} == {*record["files"]}


LOSS = """
from dataclasses import dataclass
from dualopt.losses import Squared

@dataclass(frozen=True, kw_only=True)
class Mine(Squared):
    def mean(self, z):
        return 2.0 * z
"""


def test_a_loss_of_your_own(program: Callable[..., str], capsys: pytest.CaptureFixture) -> None:
    """Its name is in the file, and its code is not: it is loaded where the user names it."""
    Path("mine.py").write_text(LOSS)
    program("run", "--data", "synthetic-regression", "--loss", Path("mine.py:Mine").resolve(), *FAST)
    assert str(Path.cwd()) not in Path("out/model.json").read_text()
    assert "loss names 'mine.py:Mine'" in refusal(capsys, main, "predict", "--data", "synthetic-regression")
    program("predict", "--data", "synthetic-regression", "--loss", "mine.py:Mine")
    theta = Trace.from_npz("out/trace.npz").theta
    X = build_problem(ProblemOptions(data="synthetic-regression", clients=1)).rows.rows.groups[0].X[0]
    np.testing.assert_allclose(np.array(read()["prediction"], float), 2.0 * X @ theta, rtol=1e-12)


def test_no_model_of_classes_that_have_no_name(program: Callable[..., str]) -> None:
    """The run ends well, says why, and leaves no file of an earlier one; to resume it is to find it complete."""
    np.savez("two.npz", X=np.eye(8), y=np.array(["a", "b"] * 4))
    program("run", "--data", "two.npz", "--loss", "multinomial", "--clients", 2, *FAST)
    assert Path("out/model.json").exists()
    words = ("run", "--data", "two.npz", "--loss", "multinomial: classes=3", "--clients", 2, *FAST)
    said = " ".join(program(*words, "--overwrite").replace("│", " ").split())
    assert "model file none: classes of the data are 2, and the loss has 3: some have no name." in said
    assert not list(Path("out").glob("model.*"))
    assert program(*words, "--resume").startswith("out: complete")


def test_mistakes_give_one_sentence(
    program: Callable[..., str], capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DUALOPT_DATA_HOME", raising=False)
    table("old.csv", patients())
    program("run", "--data", "old.csv", "--label", "sick", "--client", "ward", *FAST)
    table("few.csv", {"age": [1], "sick": ["no"]})
    table("words.csv", {"age": ["old"], "dose": [1]})
    Path("twice.csv").write_text("age,dose,age\n1,2,3\n")
    Path("empty.csv").write_text("age,dose\n")
    Path("here.csv").write_text("kept")
    np.savez("wide.npz", X=np.eye(3))
    np.savez("none.npz", y=np.eye(3))
    for words, sentence in (
        (("--data", "few.csv"), "data 'few.csv' must have the columns of the model, but 'dose' is missing."),
        (("--data", "words.csv"), "X: column 'age' must hold numbers, but row 0 (counted from 0) holds 'old': make"),
        (("--data", "twice.csv"), "data 'twice.csv' has two columns named 'age': rename or drop one."),
        (("--data", "empty.csv"), "X must be a matrix with at least one row and one column, not of shape (0, 2)."),
        (("--data", "wide.npz"), "data 'wide.npz' must have the 2 features of the model, not 3."),
        (("--data", "none.npz"), "path 'none.npz' cannot be read as a NumPy archive: it needs the array X_train"),
        (("--data", "old.csv", "--split", "test"), "option 'split' is not known for data 'old.csv', which takes none."),
        (("--data", "nothing.csv"), "data 'nothing.csv' is not a file, neither as this path nor in a data_home"),
        (("--data", "old.csv", "--model", "nowhere"), "model 'nowhere' is neither a file nor a folder."),
        (("--data", "old.csv", "--out", "p.parquet"), "out must be a file whose name ends in .csv, not 'p.parquet'."),
        (("--data", "old.csv", "--out", "here.csv"), "out 'here.csv' is there already: give another --out, or"),
        (("--data", "old.csv", "--out", "no/p.csv"), "out 'no/p.csv' is not in a folder that exists."),
        (
            ("--data", "old.csv", "--model", "old.csv"),
            "model 'old.csv' is damaged: it is cut short, or no text in JSON.",
        ),
    ):
        assert refusal(capsys, main, "predict", *words).startswith(sentence)
    assert Path("here.csv").read_text() == "kept"
    assert not Path("predictions.csv").exists()


def test_estimators_write_the_same_file(tmp_path: Path, program: Callable[..., str]) -> None:
    pandas = pytest.importorskip("pandas")
    loaded: Any = load_breast_cancer(return_X_y=True, as_frame=True)
    X, y = loaded
    fitted = FederatedClassifier(clients=4, tol=1e-3, mu=1.0).fit(X / X.max(), np.where(y == 1, "benign", "malignant"))
    fitted.save_model("model")
    model = load_model("model")
    scaled = X / X.max()
    assert np.array_equal(model.predict(scaled[scaled.columns[::-1]]), fitted.predict(scaled))
    np.testing.assert_allclose(model.predict_proba(scaled), fitted.predict_proba(scaled), rtol=1e-12)
    np.testing.assert_allclose(model.decision_function(scaled), fitted.decision_function(scaled), rtol=1e-12)
    np.testing.assert_allclose(model.certificate["distance"], fitted.certified_distance_, rtol=1e-12)
    scaled.to_csv("new.csv", index=False)
    program("predict", "--model", "model", "--data", "new.csv")
    assert read()["prediction"] == fitted.predict(scaled).tolist()
    frame = pandas.DataFrame({"a": [0.0, 1.0, 2.0, 3.0], "b": [1.0, 0.0, 1.0, 0.0]})
    other = FederatedRegressor(clients=2, mu=0.1).fit(frame, [0.0, 1.0, 2.0, 3.5])
    other.save_model("other")
    np.testing.assert_allclose(load_model("other").predict(frame), other.predict(frame), rtol=1e-12)
    assert other.model_.to_sklearn().predict(frame).tolist() == load_model("other").predict(frame).tolist()


def test_a_model_with_exposures_needs_them_again(program: Callable[..., str], capsys: pytest.CaptureFixture) -> None:
    rng = np.random.default_rng(0)
    age, days = rng.integers(20, 90, 200), rng.integers(1, 60, 200)
    visits = rng.poisson(days * np.exp(age / 40 - 4))
    table("visits.csv", {"age": age, "days": days, "visits": visits})
    data = ("--data", "visits.csv", "--label", "visits", "--scale", "standard", "--loss", "poisson", "--clients", 3)
    program("run", *data, "--exposure", "days", "--algorithm", "distributed-lbfgs", "--intercept", "free")
    table("new.csv", {"days": [1, 30], "age": [50, 50]})
    out = program("predict", "--data", "new.csv")
    day, month = map(float, read()["prediction"])
    assert month == pytest.approx(30 * day, rel=1e-12)
    assert "not used" not in out
    table("old.csv", {"age": [50]})
    assert refusal(capsys, main, "predict", "--data", "old.csv", "--out", "other.csv") == (
        "data 'old.csv' must have a column 'days', with which the model was trained: --without-offset predicts for an "
        "exposure of 1."
    )
    program("predict", "--data", "old.csv", "--without-offset", "--overwrite")
    assert float(read()["prediction"][0]) == pytest.approx(day, rel=1e-12)
    model = load_model("out")
    np.testing.assert_allclose(model.predict([[50], [50]], offset=np.log([1, 30])), [day, month], rtol=1e-12)
    with pytest.raises(ValueError, match=r"^X must have a column 'days', with which .*: offset=0 predicts for an exp"):
        model.predict([[50]])
    with pytest.raises(ValueError, match="to_sklearn has no model with offsets"):
        model.to_sklearn()
