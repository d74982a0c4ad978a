"""How rows are kept: what is refused, in which blocks they are handed out, and what checks and copies need."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from model_instances import assert_close, model, points, rows

from dualopt.losses import Gamma, Logistic, Multinomial, Poisson, Squared
from dualopt.objectives import _row_inputs
from dualopt.objectives import rows as rows_module
from dualopt.objectives.rows import ClientRows

X = np.array([[1.0, 2.0, 0.0], [0.0, 4.0, 0.0], [5.0, 0.0, 6.0]])


def test_rows_are_those_of_one_client_unless_it_is_said() -> None:
    built = ClientRows.build(X, np.ones(3), loss=Squared())
    assert built.sizes == (3,)
    ((_, _, w),) = built.by_client()
    assert w.tolist() == [1 / 3] * 3


@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize("clients", [1, 2])
def test_rows_know_how_they_are_stored(storage: str, clients: int) -> None:
    built = ClientRows.build(X, np.ones(3), loss=Squared(), clients=clients, storage=storage)
    assert len(built.groups) == clients
    assert built.is_sparse == (storage == "sparse")
    assert built.n_features == 3


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"y": np.array([0, 1, 2])}, "y must hold integers 0 to 1 for the loss"),
        ({"y": np.array([0, -1, 1])}, "y must hold integers 0 to 1 for the loss"),
        ({"y": np.array([0.0, 1.0, 1.0])}, "y must hold integers 0 to 1 for the loss"),
        ({"loss": Squared(), "y": np.array([0.0, np.inf, 1.0])}, "y must hold finite numbers of the type float64 of X"),
        ({"loss": Squared(), "y": np.ones(3, np.float32)}, "y must hold finite numbers of the type float64 of X"),
        ({"loss": Logistic(), "y": np.array([1.0, -1.0, 0.5])}, r"y must hold only -1 and \+1 for the loss"),
        ({"weights": np.array([1.0, np.inf, 1.0])}, "weights must be 3 finite nonnegative numbers of the type float64"),
        ({"weights": np.ones(3, np.float32)}, "weights must be 3 finite nonnegative numbers of the type float64"),
        ({"weights": np.ones(2)}, "weights must be 3 finite nonnegative numbers of the type float64"),
        ({"weights": np.array([1.0, -1.0, 1.0])}, "weights must be 3 finite nonnegative numbers of the type float64"),
        ({"weights": np.zeros(3)}, r"weights must not be 0 for all rows\."),
    ],
)
def test_one_wrong_label_or_weight_is_refused(changes: dict[str, Any], said: str) -> None:
    good: dict[str, Any] = {"y": np.array([0, 1, 1]), "loss": Multinomial(classes=2)}
    assert ClientRows.build(X, **good).n_clients == 1
    with pytest.raises(ValueError, match=f"^{said}"):
        ClientRows.build(X, **{**good, **changes})


def test_blocks_are_whole_groups_of_sparse_rows_and_on_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Elsewhere they are of few rows: here of two at most."""
    monkeypatch.setattr(rows_module, "block_rows", lambda columns: 2)
    data = rows(Squared(), (3, 3, 3, 1, 1, 1))
    theta = points(model(Squared(), data))

    def blocks(**options: Any) -> list[tuple[int, ...]]:
        f = model(Squared(), data, **options)
        assert_close(f.gradient(theta), model(Squared(), data).gradient(theta), units=64.0)
        return [tuple(block.y.shape) for block in f.rows.blocks]

    assert blocks() == [(1, 2), (1, 1)] * 3 + [(2, 1), (1, 1)]
    assert blocks(storage="sparse") == [(3, 3), (3, 1)]
    monkeypatch.setattr(rows_module, "is_host", lambda x: False)
    assert blocks() == [(3, 3), (3, 1)]


def _peak(function: Callable[[], Any]) -> int:
    tracemalloc.start()
    function()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_checks_and_copies_need_little_more_than_one_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    piece = 2**15
    monkeypatch.setattr(_row_inputs, "PIECE", piece)
    many, y = np.ones((500, 2**10)), np.ones(500)  # 16 pieces
    assert _peak(lambda: _row_inputs.check_data(many, many, y, Squared())) <= 1.3 * 8 * piece
    numbers = np.arange(500)[::-1].copy()
    copied = 8 * 500 * (2**10 + 1)
    assert _peak(lambda: _row_inputs.gathered(many, numbers, intercept=True, copy=True)) <= copied + 1.3 * 8 * piece


def test_rows_wider_than_a_piece_are_checked_and_copied_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_row_inputs, "PIECE", 1)
    built = ClientRows.build(X, np.ones(3), loss=Squared(), clients=[[2, 0], [1]], intercept=True)
    np.testing.assert_array_equal(built.groups[0].X[0], np.c_[X[[2, 0]], np.ones(2)])
    with pytest.raises(ValueError, match=r"^X must not contain NaN"):
        ClientRows.build(np.where(X == 6.0, np.nan, X), np.ones(3), loss=Squared())


def test_rows_of_a_library_that_is_not_written_to_have_one_column_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_row_inputs, "is_writable", lambda x: False)
    built = ClientRows.build(X, np.ones(3), loss=Squared(), clients=[[2, 0], [1]], intercept=True)
    np.testing.assert_array_equal(built.groups[0].X[0], np.c_[X[[2, 0]], np.ones(2)])


def test_rows_of_a_file_stay_in_it_wherever_they_begin(tmp_path: Path) -> None:
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    built = ClientRows.build(mapped, np.ones(3), loss=Squared(), clients=[[0], [1, 2]])
    assert [np.shares_memory(group.X, mapped) for group in built.groups] == [True, True]
    np.testing.assert_array_equal(built.groups[1].X[0], X[1:])


def test_masks_of_clients_are_as_long_as_there_are_rows() -> None:
    for number in (0, 1):
        parts: list[Any] = [[True, False, True], [False, True, False]]
        parts[number] = [True, False]
        with pytest.raises(
            ValueError, match=rf"^clients: client {number} must have a truth value for each of the 3 rows"
        ):
            ClientRows.build(X, np.ones(3), loss=Squared(), clients=parts)


@pytest.mark.parametrize(
    ("loss", "least"), [(Gamma(), "positive"), (Poisson(), "nonnegative")], ids=["gamma", "poisson"]
)
def test_labels_outside_of_the_domain_are_refused(loss: Any, least: str) -> None:
    smallest = 0.0 if least == "nonnegative" else 5e-324
    assert ClientRows.build(X, np.array([1.0, smallest, 2.0]), loss=loss).sizes == (3,)
    with pytest.raises(ValueError, match=f"^y must hold only {least} numbers for the loss"):
        ClientRows.build(X, np.array([1.0, smallest - 5e-324, 2.0]), loss=loss)


def test_the_largest_entry_whose_squares_can_be_summed_is_taken() -> None:
    most = _row_inputs._largest_entry(X, X)
    ClientRows.build(np.where(X == 6.0, most, X), np.ones(3), loss=Squared())
    with pytest.raises(ValueError, match=r"^X must have entries up to 7\.7e\+153"):
        ClientRows.build(np.where(X == 6.0, 1.01 * most, X), np.ones(3), loss=Squared())
