"""What the parties agree on: one file, one fingerprint, and the same costs as in one process."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

from dualopt.federation import Project, SiteSettings
from dualopt.federation.provision import provision_text
from dualopt.federation.settings import site_objective
from dualopt.losses import Logistic, Multinomial
from dualopt.objectives import linear_model
from tests.federation.problems import rows, write_shards

PROJECT = Project(name="trio", sites=("a", "b", "c"), loss="logistic", classes=(0, 1), features=5, mu=0.1)


CHANGES: dict[str, Any] = {
    "name": "other",
    "sites": ("a", "b", "d"),
    "rows": (30, 70, 81),
    "algorithm": "fedpd",
    "loss": "hinge",
    "classes": (1, 2),
    "mu": 0.2,
    "regulariser": "l1=0.01",
    "features": 6,
    "feature_names": tuple("abcde"),
    "intercept": "free",
    "class_weight": "1=3.0",
    "offset": "age",
    "exposure": "age",
    "missing": "mean",
    "categories": "a=1,2",
    "scale": "255",
    "least_rows": 9,
    "client_weights": "rows",
    "scales": "1,2,0.5",
    "compressor": "natural",
    "dtype": "float32",
    "precision": "mixed",
    "storage": "dense",
    "rounds": 7,
    "tol": 1e-3,
    "atol": 1e-3,
    "certify_every": 2,
    "participation": "subset=2",
    "seed": 1,
    "secure": "sum",
    "secure_range": 1e3,
    "inference": True,
    "deadline": 5.0,
    "package": "0.0.1",
}
WITH: dict[str, dict[str, Any]] = {
    "exposure": {"loss": "poisson", "classes": ()},
    "missing": {"feature_names": tuple("abcde")},
    "categories": {"feature_names": tuple("abcde")},
    "regulariser": {"algorithm": "feddr"},
    "participation": {"algorithm": "feddyn"},
}


def test_every_field_is_in_the_fingerprint_and_in_the_file() -> None:
    assert set(CHANGES) == {f.name for f in fields(Project)}
    for name, value in CHANGES.items():
        before = replace(PROJECT, **WITH.get(name, {}))
        after = replace(before, **{name: value})
        assert after.fingerprint != before.fingerprint, name
        assert Project.from_text(after.to_text()) == after, name


def test_a_file_that_was_changed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "project.toml"
    PROJECT.write(path)
    assert Project.read(path) == PROJECT
    path.write_text(path.read_text().replace("mu = 0.1", "mu = 0.2"))
    with pytest.raises(ValueError, match="was changed after it was made: its fingerprint does not fit"):
        Project.read(path)
    path.write_bytes(b"\xff")
    with pytest.raises(ValueError, match="cannot be read: it is no text"):
        Project.read(path)
    path.write_text("[")
    with pytest.raises(ValueError, match="is no project file"):
        Project.read(path)
    path.write_text('name = "x"\nsites = ["a"]\npackage = "0"\ncode = "os.system"')
    with pytest.raises(ValueError, match="unknown entry 'code'"):
        Project.read(path)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"name": "../x"}, "name must consist of letters, digits and hyphens"),
        ({"sites": ("a", "A")}, "sites must differ"),
        ({"sites": ("a", "server")}, "sites must differ"),
        ({"sites": ()}, "sites must be given"),
        ({"algorithm": "my_method.py:Mine"}, "algorithm names 'my_method.py:Mine', which is not known here"),
        ({"algorithm": "fedpd: solver=mine.py:Mine"}, "solver names 'mine.py:Mine', which is not known here"),
        ({"loss": "dualfl"}, "loss names 'dualfl', which is not known here"),
        ({"loss": "multinomial: classes=2"}, "loss must not have classes"),
        ({"client_weights": "sizes"}, "client_weights must be 'equal', 'rows' or numbers, not sizes"),
        ({"client_weights": "1,2"}, "client_weights must be 3 numbers, one for each client, not 2"),
        ({"client_weights": "1,2,-1"}, "client_weights must be positive finite numbers"),
        ({"scales": "own"}, "scales must be none, suggested or a number for each site, not own"),
        ({"scales": "1,2"}, "scales must be 3 numbers, one for each client, not 2"),
        ({"rows": (1, 2)}, "rows must be given for each of the 3 sites"),
        ({"scale": "std"}, "scale must be one of none, max, unit-rows, standard, minmax, robust or a positive number"),
        ({"scale": "standard", "secure": "sum"}, "scale, missing and categories must not be found in the rows of the"),
        ({"missing": "zero"}, "missing must be one of refuse, mean, median, not zero"),
        ({"categories": "indicators"}, "feature_names must be given for missing and categories, which are of tables"),
        ({"categories": "stage=1,2"}, "feature_names must be given"),
        ({"least_rows": 0}, "least_rows must be at least 1"),
        ({"scale": "-1"}, "scale must be"),
        ({"classes": (0, 1, 2)}, "classes must be two different labels for loss logistic"),
        ({"classes": (1, 0)}, "classes must be in ascending order"),
        ({"classes": (0, "1")}, "classes must be all numbers or all words"),
        ({"loss": "squared"}, "classes must not be given for loss squared"),
        ({"algorithm": "feddyn", "participation": "subset=4"}, "participation subset=4 does not fit 3 sites"),
        ({"participation": "subset=2"}, "algorithm dualfl does not support participation subset=2"),
        ({"algorithm": "auto"}, "algorithm must not be auto in a project"),
        ({"deadline": 0.0}, "deadline must be a positive number of seconds"),
        ({"regulariser": "l1=0.1"}, "algorithm dualfl does not support a regulariser"),
        ({"regulariser": "mine.py:Mine=1"}, "regulariser names 'mine.py:Mine', which"),
        ({"algorithm": "feddr", "regulariser": "l1"}, "regulariser l1 needs weight"),
        ({"mu": -1.0}, "mu must be a finite number"),
        ({"features": 0}, "features must be at least 1"),
        ({"feature_names": ("a",)}, "feature_names must be 5 names"),
        ({"algorithm": "dualfl: rho=x"}, "algorithm dualfl: rho must be a number"),
        ({"rounds": -1}, "rounds must be at least 0"),
        ({"dtype": "float16"}, "dtype must be one of float64, float32"),
    ],
)
def test_what_does_not_fit_gives_one_sentence(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint) as error:
        replace(PROJECT, **changes)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("weights", ["equal", "rows", "3,1,2"])
def test_sites_alone_have_the_costs_of_one_process(tmp_path: Path, weights: str) -> None:
    X, y, cuts = rows(5)
    paths = write_shards(tmp_path, 5).values()
    project = replace(PROJECT, client_weights=weights)
    given = (3, 1, 2) if "," in weights else weights
    clients = [cut.tolist() for cut in cuts]
    whole = linear_model(X, 2.0 * y - 1.0, loss=Logistic(), mu=0.1, clients=clients, client_weights=given)
    theta = np.linspace(-1, 1, 6)
    for j, (site, path) in enumerate(zip(project.sites, paths, strict=True)):
        own = site_objective(project, site, path)
        part = whole.select((j,))
        assert own.value(theta).tolist() == part.value(theta).tolist()
        assert own.gradient(theta).tolist() == part.gradient(theta).tolist()
        assert own.L.tolist() == part.L.tolist()
        assert own.weights == part.weights


def test_a_site_that_lacks_classes_and_last_columns_has_the_shape_of_all(tmp_path: Path) -> None:
    path = tmp_path / "a.svm"
    dump_svmlight_file(np.eye(3, 5), np.array([2, 2, 3]), str(path), zero_based=False)
    project = replace(PROJECT, loss="multinomial", classes=(1, 2, 3), storage="dense")
    f = site_objective(project, "a", path)
    assert f.shape == (3, 6)
    assert isinstance(f.loss, Multinomial)
    assert f.loss.classes == 3


def test_a_site_with_one_label_only_keeps_its_sign(tmp_path: Path) -> None:
    path = tmp_path / "a.svm"
    dump_svmlight_file(np.eye(3, 5), np.ones(3), str(path), zero_based=False)
    f = site_objective(PROJECT, "a", path)
    assert (f.gradient(np.zeros(6))[0, :3] < 0).all()  # labels +1 push up


def test_data_that_do_not_fit_the_project_give_one_sentence(tmp_path: Path) -> None:
    path = write_shards(tmp_path, 5)["lyon"]
    with pytest.raises(ValueError, match="site must be one of a, b, c, not d"):
        site_objective(PROJECT, "d", path)
    with pytest.raises(ValueError, match="must have 6 columns of features, not 5"):
        site_objective(replace(PROJECT, features=6), "a", path)
    with pytest.raises(ValueError, match="must have the 31 rows that the project says of a, not 30"):
        site_objective(replace(PROJECT, rows=(31, 1, 1)), "a", path)
    with pytest.raises(ValueError, match="y has the label 0, which is not one of the 2 classes"):
        site_objective(replace(PROJECT, classes=(1, 2)), "a", path)
    table = tmp_path / "a.csv"
    table.write_text("u,v,y\n1,2,0\n3,4,1\n")
    named = replace(PROJECT, features=2, feature_names=("v", "u"))
    with pytest.raises(ValueError, match="must have the feature 'v' as number 1, not u"):
        site_objective(named, "a", table, label="y")
    assert site_objective(replace(named, feature_names=("u", "v")), "a", table, label="y").shape == (3,)


def test_settings_of_a_site(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is not a folder that nvflare provision made"):
        SiteSettings(project="p", data="d", state="s").write(tmp_path)
    (tmp_path / "local").mkdir()
    with pytest.raises(ValueError, match="do not exist: run dualopt federation site first"):
        SiteSettings.read(tmp_path)
    given = SiteSettings(project='p"\\', data="d ü", state="s", label="y")
    path = given.write(tmp_path)
    assert SiteSettings.read(tmp_path) == given
    for text in ("[", 'project = "p"', 'project = "p"\ndata = "d"\nstate = 3', 'project = "p"\ndata = "d"\nx = "s"'):
        path.write_text(text)
        with pytest.raises(ValueError, match="site settings"):
            SiteSettings.read(tmp_path)


def test_participants_are_those_of_the_project() -> None:
    text = provision_text(PROJECT, "fl.example.org", 8002)
    assert all(f'"name": "{name}"' in text for name in ("server", *PROJECT.sites, "admin@dualopt.org"))
    for host, port, complaint in (("a b", 1, "host must be"), ("a", 0, "port must be"), ("a", "1", "port must be")):
        with pytest.raises(ValueError, match=complaint):
            provision_text(PROJECT, host, port)  # pyright: ignore[reportArgumentType]
