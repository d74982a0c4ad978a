"""What figures know of their data: the hash under which results are stored."""

from __future__ import annotations

from pathlib import Path

from dualopt.arrays.xp import is_sparse
from figures._program import main
from figures._settings import Settings
from tests.programs import ended

SPARSE = ["1 7:0.5", "-1 3:2 60:1", "1 11:1", "-1 25:1"] * 10


def settings_of(folder: Path, lines: list[str]) -> Settings:
    (path := folder / "rows.svm").write_text("\n".join(lines) + "\n")
    return Settings(data=str(path), out=folder, quick=True)


def test_sparse_rows_have_a_hash(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, SPARSE)
    assert is_sparse(settings.whole.rows.rows.groups[0].X)
    known = settings.fingerprint
    assert settings_of(tmp_path, SPARSE).fingerprint == known
    for changed in ("1 7:0.25", "1 8:0.5", "-1 7:0.5"):
        assert settings_of(tmp_path, [changed, *SPARSE[1:]]).fingerprint != known


def test_a_figure_of_sparse_rows_is_drawn(tmp_path: Path, undrawn: None) -> None:
    settings = settings_of(tmp_path, SPARSE)
    command = ("fig1b_clients", "--data", settings.data, "--rounds", "3", "--quick", "--threads", "1")
    assert ended(main, *command, "--out", str(tmp_path / "out")) == 0
