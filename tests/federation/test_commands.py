"""``dualopt federation``: what can be typed, and what is written, without a package of others."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dualopt.app.cli import main
from dualopt.federation import Project, SiteSettings
from tests.programs import called


def typed(capsys: pytest.CaptureFixture, *words: Any) -> tuple[int, str, str]:
    """Return exit code, standard output and standard error of a command."""
    return called(capsys, main, "federation", *words)


@pytest.fixture
def shard(tmp_path: Path) -> Path:
    path = tmp_path / "lyon.npz"
    rng = np.random.default_rng(0)
    np.savez(path, X=rng.standard_normal((20, 3)), y=rng.integers(0, 2, 20))
    return path


def test_a_new_project(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    folder = tmp_path / "study"
    words = ["new", folder, "--site", "lyon=20", "--site", "basel=30", "--features", 3, "--classes", "0,1"]
    words += ["--client-weights", "rows"]
    words += ["--param", "rho=0.1", "--host", "fl.example.org", "--port", 9000]
    code, said, wrong = typed(capsys, *words)
    assert (code, wrong) == (0, "")
    project = Project.read(folder / "project.toml")
    assert (project.name, project.sites, project.rows) == ("study", ("lyon", "basel"), (20, 30))
    assert (project.loss, project.classes, project.algorithm, project.client_weights) == (
        "logistic",
        (0, 1),
        "dualfl: rho=0.1",
        "rows",
    )
    assert project.fingerprint[:12] in said
    assert '"host_names": ["fl.example.org"]' in (folder / "provision.yml").read_text()
    code, _, wrong = typed(capsys, *words)  # sites may rely on the first one
    assert code == 2
    assert "has a project.toml already" in wrong


def test_a_file_tells_what_is_not_given(tmp_path: Path, capsys: pytest.CaptureFixture, shard: Path) -> None:
    assert typed(capsys, "new", tmp_path / "a", "--site", "lyon", "--like", shard)[0] == 0
    project = Project.read(tmp_path / "a" / "project.toml")
    assert (project.features, project.loss, project.classes) == (3, "logistic", (0, 1))
    table = tmp_path / "t.csv"
    table.write_text("u,v,y\n1,2,no\n3,4,yes\n5,6,perhaps\n")
    assert typed(capsys, "new", tmp_path / "b", "--site", "lyon", "--like", table, "--label", "y")[0] == 0
    project = Project.read(tmp_path / "b" / "project.toml")
    assert (project.feature_names, project.loss, project.classes) == (
        ("u", "v"),
        "multinomial",
        ("no", "perhaps", "yes"),
    )
    real = tmp_path / "real.npz"
    np.savez(real, X=np.eye(3), y=np.array([0.5, 1.25, 2.0]))
    assert typed(capsys, "new", tmp_path / "c", "--site", "lyon", "--like", real)[0] == 0
    assert Project.read(tmp_path / "c" / "project.toml").loss == "squared"


def test_columns_are_counted_where_words_become_several_features(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    table = tmp_path / "t.csv"
    table.write_text("age,stage,y\n1,I,no\n3,II,yes\n5,III,yes\n")
    words = ["--site", "lyon", "--like", table, "--label", "y", "--categories", "indicators", "--least-rows", 3]
    code, said, wrong = typed(capsys, "new", tmp_path / "p", *words)
    assert (code, wrong) == (0, "")
    assert "logistic, mu = 0.01, 2 columns of features" in " ".join(said.split())
    _, said, _ = typed(capsys, "check", tmp_path / "p" / "project.toml", "lyon", table, "--label", "y")
    assert "3 rows, 2 columns of features, fit the project" in " ".join(said.split())


def test_a_site_is_set_up(tmp_path: Path, capsys: pytest.CaptureFixture, shard: Path) -> None:
    assert typed(capsys, "new", tmp_path / "p", "--site", "lyon", "--site", "basel", "--like", shard)[0] == 0
    project, kit = tmp_path / "p" / "project.toml", tmp_path / "kit"
    code, said, _ = typed(capsys, "check", project, "lyon", shard)
    assert code == 0
    assert "20 rows, 3 columns of features, fit the project" in " ".join(said.split())
    code, _, wrong = typed(capsys, "site", kit, "--project", project, "--data", shard)
    assert code == 2
    assert "is not the folder of a site that nvflare provision made" in wrong
    (kit / "startup").mkdir(parents=True)
    (kit / "local").mkdir()
    (kit / "startup" / "fed_client.json").write_text(json.dumps({"client": {"fqsn": "basel"}}))
    assert typed(capsys, "site", kit, "--project", project, "--data", shard)[0] == 0
    settings = SiteSettings.read(kit)
    assert settings.data == str(shard)
    assert settings.state == str(kit / "state")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["new", "F"], "site must be given"),
        (["new", "F", "--site", "a"], "features must be given, or --like FILE"),
        (["new", "F", "--site", "a=x", "--features", "3", "--classes", "0,1"], "NAME=ROWS with a whole number, not x"),
        (
            ["new", "F", "--site", "a=1", "--site", "b", "--features", "3", "--classes", "0,1"],
            "for all sites, or for none",
        ),
        (["new", "F", "--site", "a b", "--features", "3", "--classes", "0,1"], "letters, digits and hyphens"),
        (["new", "F", "--site", "a", "--features", "3", "--classes", "0,1", "--scale", "mean"], "scale must be one of"),
        (["new", "F", "--site", "a", "--features", "3", "--classes", "0,1", "--host", "a/b"], "host must be the name"),
        (["new", "F", "--site", "a", "--features", "x", "--classes", "0,1"], "--features must be a whole number"),
        (["check", "F", "lyon", "data"], "cannot be read: No such file or directory"),
        (["run", "F", "--admin", "G"], "cannot be read: No such file or directory"),
        (["dance"], "No such command 'dance'"),
    ],
)
def test_mistakes_give_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: Any, words: list[str], complaint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, wrong = typed(capsys, *words)
    assert code == 2
    assert complaint in wrong
    assert wrong.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_an_administrator_without_the_package_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: Any, shard: Path
) -> None:
    assert typed(capsys, "new", tmp_path / "p", "--site", "lyon", "--like", shard)[0] == 0
    words = ["run", tmp_path / "p" / "project.toml", "--admin", tmp_path / "admin", "--out", tmp_path / "out"]
    code, _, wrong = typed(capsys, *words)
    assert code == 2
    assert "is not an administrator's folder" in wrong
    (tmp_path / "admin" / "startup").mkdir(parents=True)
    (tmp_path / "admin" / "startup" / "fed_admin.json").write_text("{}")
    for name in [name for name in sys.modules if name.startswith(("nvflare", "dualopt.federation.flare"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "nvflare", None)
    code, _, wrong = typed(capsys, *words)
    assert code == 2
    assert wrong == 'dualopt: package nvflare is missing: pip install "dualopt[federation]".\n'
    assert not (tmp_path / "out").exists()


def test_nothing_else_imports_nvflare() -> None:
    import subprocess

    program = "import sys, dualopt, dualopt.federation, dualopt.app.cli.federation, dualopt.federation.serving\n"
    program += "sys.exit(any(name.partition('.')[0] == 'nvflare' for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
    assert find_spec("dualopt.federation.flare.site") is not None
