"""Kinds of input that people have: each gives the objective that plain NumPy arrays give, to the last bit.

A case is data, labels and clients in some form, and the plain arrays that they mean. The two objectives are compared by
the values and gradients of all clients at a random model, their sizes, and the names that are kept.
"""

from __future__ import annotations

import array
import datetime
import fractions
import importlib.util
from decimal import Decimal
from typing import Any

import array_api_strict
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from dualopt import Hinge, Logistic, Multinomial, Squared, linear_model
from dualopt.arrays.xp import asarray_like, to_numpy
from dualopt.objectives import mlp

M, N = 24, 3
RNG = np.random.default_rng(7)
X = RNG.integers(-8, 9, (M, 4)) / 8.0  # exact in float16 too
WHOLE = RNG.integers(-5, 6, (M, 4))
SIGNS = np.where(RNG.random(M) < 0.5, -1.0, 1.0)
CODES = np.arange(M) % 3
NUMBERS = RNG.integers(-20, 21, M) / 4.0
OWNERS = (np.arange(M) * 5) % N
PARTS = [np.flatnonzero(j == OWNERS) for j in range(N)]
MASKS: list[Any] = [j == OWNERS for j in range(N)]
COLUMNS = ["a", "b", "größe", "d"]
SPARSE = np.where(np.abs(X) > 0.5, X, 0.0)


class Exporter:
    """What exports its memory by DLPack and is of no library that is known."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __dlpack__(self, **options: Any) -> Any:
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[Any, Any]:
        return self.values.__dlpack_device__()


class Readable:
    """What NumPy can read."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.values.astype(dtype) if dtype is not None else self.values


def frame(library: Any, values: np.ndarray = X, **more: Any) -> Any:
    return library.DataFrame({name: values[:, i] for i, name in enumerate(COLUMNS)} | more)


def fragmented() -> pd.DataFrame:
    table = frame(pd)
    return pd.concat([table.iloc[:10], table.iloc[10:]]).set_index(np.arange(M)[::-1] * 7)


FEATURES: dict[str, tuple[Any, np.ndarray]] = {
    "list of lists": (X.tolist(), X),
    "list of arrays": (list(X), X),
    "list of mixed numbers": ([[*row[:2], int(row[2] * 8), row[3]] for row in X.tolist()], X * [1, 1, 8, 1]),
    "list of truth values": ((X > 0).tolist(), X > 0),
    "list of fractions": ([[fractions.Fraction(v) for v in row] for row in X.tolist()], X),
    "integers beyond 64 bits": ([[2**70 * int(v) for v in row] for row in WHOLE.tolist()], 2.0**70 * WHOLE),
    "int64": (WHOLE, WHOLE),
    "uint64": (np.abs(WHOLE).astype(np.uint64), np.abs(WHOLE)),
    "bool": (X > 0, X > 0),
    "float16": (X.astype(np.float16), X.astype(np.float32)),
    "float32": (X.astype(np.float32), X.astype(np.float32)),
    "long double": (X.astype(np.longdouble), X),
    "objects": (X.astype(object), X),
    "big-endian": (X.astype(">f8"), X),
    "Fortran order": (np.asfortranarray(X), X),
    "strided view": (np.repeat(X, 2, axis=0)[::2], X),
    "negative strides": (X[::-1].copy()[::-1], X),
    "read-only": (np.frombuffer(X.tobytes()).reshape(X.shape), X),
    "np.matrix": (sparse.csr_matrix(X).todense(), X),
    "masked, nothing masked": (np.ma.masked_array(X, np.zeros(X.shape, bool)), X),
    "memoryview": (np.ascontiguousarray(X).data, X),
    "readable by NumPy": (Readable(X), X),
    "DLPack": (Exporter(X), X),
    "array-api-strict": (array_api_strict.asarray(X), X),
    "integers of array-api-strict": (array_api_strict.asarray(WHOLE), WHOLE),
    "csr_matrix": (sparse.csr_matrix(SPARSE), SPARSE),
    "csc_array": (sparse.csc_array(SPARSE), SPARSE),
    "coo_array": (sparse.coo_array(SPARSE), SPARSE),
    "lil_matrix": (sparse.lil_matrix(SPARSE), SPARSE),
    "dok_array": (sparse.dok_array(SPARSE), SPARSE),
    "bsr_array": (sparse.bsr_array(SPARSE), SPARSE),
    "sparse truth values": (sparse.csr_array(X > 0), X > 0),
    "pandas": (frame(pd), X),
    "pandas, odd index": (fragmented(), X),
    "pandas Int64": (frame(pd, WHOLE).astype("Int64"), WHOLE),
    "pandas Float32": (frame(pd).astype("Float32"), X.astype(np.float32)),
    "pandas float32 and float64": (frame(pd).astype({"a": "float32", "b": "float32"}), X),
    "pandas float32 and int8": (
        frame(pd, WHOLE).astype({"a": "float32", "b": "int8", "größe": "float32", "d": "bool"}),
        np.column_stack([WHOLE[:, :3], WHOLE[:, 3] != 0]).astype(np.float32),
    ),
    "pandas of PyArrow": (frame(pd).astype("float64[pyarrow]"), X),
    "pandas objects": (frame(pd).astype(object), X),
    "pandas sparse": (frame(pd, SPARSE).astype(pd.SparseDtype("float64", 0.0)), SPARSE),
    "pandas, numbers as names": (pd.DataFrame(X), X),
    "pandas, two levels of names": (pd.DataFrame(X, columns=pd.MultiIndex.from_product([["u", "v"], ["x", "y"]])), X),
    "polars": (frame(pl), X),
    "polars, lazy": (frame(pl).lazy(), X),
    "polars decimals": (pl.DataFrame({n: [Decimal(str(v)) for v in X[:, i]] for i, n in enumerate(COLUMNS)}), X),
    "PyArrow table": (pa.table({name: X[:, i] for i, name in enumerate(COLUMNS)}), X),
    "PyArrow record batch": (pa.record_batch({name: X[:, i] for i, name in enumerate(COLUMNS)}), X),
}

BINARY: dict[str, tuple[Any, tuple[Any, ...] | None]] = {
    "floats": (SIGNS, None),
    "integers": (SIGNS.astype(np.int64), None),
    "int8": (SIGNS.astype(np.int8), None),
    "float32": (SIGNS.astype(np.float32), None),
    "0 and 1": ((SIGNS > 0).astype(np.int64), (0, 1)),
    "0.0 and 1.0": ((SIGNS > 0).astype(float), (0, 1)),
    "unsigned bytes": ((SIGNS > 0).astype(np.uint8), (0, 1)),
    "1 and 2": (((SIGNS + 3) / 2).astype(int).tolist(), (1, 2)),
    "truth values": (SIGNS > 0, (False, True)),
    "list of truth values": ((SIGNS > 0).tolist(), (False, True)),
    "words": (np.where(SIGNS > 0, "sick", "healthy"), ("healthy", "sick")),
    "list of words": (["ja" if s > 0 else "a" for s in SIGNS], ("a", "ja")),
    "bytes": (np.where(SIGNS > 0, b"b", b"a"), (b"a", b"b")),
    "objects": (np.where(SIGNS > 0, "b", "a").astype(object), ("a", "b")),
    "huge integers": ([2**80 + int(s > 0) for s in SIGNS], (2**80, 2**80 + 1)),
    "near integers": ([2**62 + int(s > 0) for s in SIGNS], (2**62, 2**62 + 1)),
    "fractions": (np.where(SIGNS > 0, 1.5, 0.5), (0.5, 1.5)),
    "array of Python": (array.array("i", [int(s > 0) for s in SIGNS]), (0, 1)),
    "DLPack": (Exporter(SIGNS), None),
    "array-api-strict": (array_api_strict.asarray(SIGNS), None),
    "pandas Series": (pd.Series(np.where(SIGNS > 0, "b", "a"), index=np.arange(M)[::-1]), ("a", "b")),
    "pandas category": (pd.Series(np.where(SIGNS > 0, "b", "a"), dtype="category"), ("a", "b")),
    "pandas Categorical": (pd.Categorical(np.where(SIGNS > 0, "b", "a"), categories=["a", "b", "never"]), ("a", "b")),
    "pandas Int64": (pd.Series(SIGNS > 0).astype("Int64"), (0, 1)),
    "pandas boolean": (pd.array(SIGNS > 0, dtype="boolean"), (False, True)),
    "pandas Index": (pd.Index(SIGNS), None),
    "integers and truth values": ([True if s < 0 else 2 for s in SIGNS], (1, 2)),
    "large floats": (np.where(SIGNS > 0, 1e300, 0.0), (0, int(1e300))),
    "a column of pandas": (pd.DataFrame({"y": SIGNS}), None),
    "polars Series": (pl.Series(np.where(SIGNS > 0, "b", "a").tolist()), ("a", "b")),
    "polars categorical": (pl.Series(np.where(SIGNS > 0, "b", "a").tolist(), dtype=pl.Categorical), ("a", "b")),
    "PyArrow array": (pa.array(SIGNS > 0), (False, True)),
    "PyArrow chunks": (pa.chunked_array([SIGNS[:5], SIGNS[5:]]), None),
}

CLASSES: dict[str, tuple[Any, Any, tuple[Any, ...] | None]] = {
    "codes": (CODES, Multinomial(classes=3), None),
    "codes, by name": (CODES, "multinomial", None),
    "1 to 3, by name": (CODES + 1, "multinomial", (1, 2, 3)),
    "floats": (CODES.astype(float), Multinomial(classes=3), None),
    "bytes": (CODES.astype(np.uint8), Multinomial(classes=3), None),
    "one class is missing": (CODES, Multinomial(classes=5), None),
    "words": (np.array(["Birnen", "Zimt", "Äpfel"])[CODES], Multinomial(classes=3), ("Birnen", "Zimt", "Äpfel")),
    "negative": (CODES - 7, "multinomial", (-7, -6, -5)),
    "gaps": (CODES * 100, "multinomial", (0, 100, 200)),
    "huge": ([10**30 + int(c) for c in CODES], "multinomial", (10**30, 10**30 + 1, 10**30 + 2)),
}

WORDS = ["Basel", "Lyon", "Zürich"]
DAYS = [datetime.date(2020, 1, 1 + j) for j in range(N)]
BITS = ((False, False), (False, True), (True, True))
CLIENTS: dict[str, tuple[Any, tuple[Any, ...] | None]] = {
    "lists of rows": ([part.tolist() for part in PARTS], None),
    "arrays of rows": (PARTS, None),
    "tuples of rows": (tuple(tuple(part.tolist()) for part in PARTS), None),
    "a matrix of rows": (np.stack(PARTS), None),
    "rows by name": (dict(zip(WORDS, PARTS, strict=True)), tuple(WORDS)),
    "Series of rows": ([pd.Series(PARTS[0]), pl.Series(PARTS[1]), pa.array(PARTS[2])], None),
    "rows as whole floats": ([part.astype(float) for part in PARTS], None),
    "rows of a library": ([array_api_strict.asarray(part) for part in PARTS], None),
    "masks": (MASKS, None),
    "a tuple of masks": (tuple(MASKS), None),
    "masks in lists": ([mask.tolist() for mask in MASKS], None),
    "masks in tuples": ([tuple(mask.tolist()) for mask in MASKS], None),
    "masks in tuples of NumPy's": (tuple(map(tuple, MASKS)), None),
    "masks by name": (dict(zip(WORDS, MASKS, strict=True)), tuple(WORDS)),
    "lists of truth values by name": (dict(zip(WORDS, (m.tolist() for m in MASKS), strict=True)), tuple(WORDS)),
    "a matrix of masks": (np.stack(MASKS), None),
    "a matrix of masks of a library": (array_api_strict.asarray(np.stack(MASKS)), None),
    "masks of a library": ([array_api_strict.asarray(mask) for mask in MASKS], None),
    "masks of objects": ([mask.astype(object) for mask in MASKS], None),
    "masks of pandas": ([pd.Series(mask, index=np.arange(M)[::-1]) for mask in MASKS], None),
    "masks of pandas that may miss": ([pd.array(mask, dtype="boolean") for mask in MASKS], None),
    "masks of polars": ([pl.Series(mask) for mask in MASKS], None),
    "masks of PyArrow": ([pa.array(mask) for mask in MASKS], None),
    "masks of pandas by name": (dict(zip(WORDS, map(pd.Series, MASKS), strict=True)), tuple(WORDS)),
    "masks and rows": ([MASKS[0], PARTS[1], MASKS[2].tolist()], None),
    "a mask without a masked value": ([np.ma.masked_array(mask) for mask in MASKS], None),
    "integers": (OWNERS, (0, 1, 2)),
    "a column of integers": (OWNERS[:, None], (0, 1, 2)),
    "a column of words": (np.array(WORDS)[OWNERS][:, None], tuple(WORDS)),
    "a column of objects": (np.array(WORDS, dtype=object)[OWNERS][:, None], tuple(WORDS)),
    "a column of a library": (array_api_strict.asarray(OWNERS[:, None]), (0, 1, 2)),
    "a column of pandas": (pd.DataFrame({"site": np.array(WORDS)[OWNERS]}), tuple(WORDS)),
    "tuples of truth values": ([BITS[j] for j in OWNERS], BITS),
    "huge integers": ([10**30 + int(j) for j in OWNERS], (10**30, 10**30 + 1, 10**30 + 2)),
    "floats": (OWNERS / 2, (0.0, 0.5, 1.0)),
    "truth values": ((OWNERS > 0).tolist(), (False, True)),
    "words": ([WORDS[j] for j in OWNERS], tuple(WORDS)),
    "tuples of words": ([("site", WORDS[j]) for j in OWNERS], tuple(("site", word) for word in WORDS)),
    "frozen sets": ([frozenset({int(j)}) for j in OWNERS], None),  # in the order in which they occur, below
    "days": ([DAYS[j] for j in OWNERS], tuple(DAYS)),
    "mixed": ([("one", 2, 3.5)[j] for j in OWNERS], ("one", 3.5, 2)),
    "pandas": (pd.Series(np.array(WORDS)[OWNERS]), tuple(WORDS)),
    "pandas category, one unused": (pd.Series(pd.Categorical(np.array(WORDS)[OWNERS], [*WORDS, "Genf"])), tuple(WORDS)),
    "pandas times with a zone": (
        pd.Series(pd.to_datetime(np.array(DAYS)[OWNERS]).tz_localize("Europe/Zurich")),
        tuple(pd.Timestamp(day, tz="Europe/Zurich") for day in DAYS),
    ),
    "polars": (pl.Series(np.array(WORDS)[OWNERS].tolist()), tuple(WORDS)),
    "PyArrow": (pa.array(np.array(WORDS)[OWNERS].tolist()), tuple(WORDS)),
    "NumPy nanoseconds": (
        np.array(DAYS, dtype="datetime64[ns]")[OWNERS],
        tuple(np.array(DAYS, dtype="datetime64[ns]")),
    ),
    "objects that are words": (np.array(WORDS, dtype=object)[OWNERS], tuple(WORDS)),
    "NumPy days": (np.array(DAYS, dtype="datetime64[D]")[OWNERS], tuple(np.array(DAYS, dtype="datetime64[D]"))),
    "everybody for itself": (list(range(M)), tuple(range(M))),
    "all in one": (["x"] * M, ("x",)),
}


def plain(X: np.ndarray) -> np.ndarray:
    """Return features as a plain array of float64, or float32 where they are."""
    return np.array(X, dtype=X.dtype if X.dtype in (np.float32, np.float64) else np.float64, order="C")


def assert_equal_models(f: Any, g: Any) -> None:
    """Compare to the last bit, in the type of the plain arrays."""
    assert (f.n_clients, f.shape, f.sizes) == (g.n_clients, g.shape, g.sizes)
    theta = np.random.default_rng(1).standard_normal(g.shape).astype(g.zeros().dtype)
    own = asarray_like(theta, f.zeros())
    assert to_numpy(f.zeros()).dtype == g.zeros().dtype
    for one, other in zip(f.value_and_gradient(own), g.value_and_gradient(theta), strict=True):
        np.testing.assert_array_equal(to_numpy(one), other)


@pytest.mark.parametrize("name", FEATURES)
def test_features(name: str) -> None:
    given, meant = FEATURES[name]
    meant = plain(np.asarray(meant))
    reference = linear_model(meant, NUMBERS.astype(meant.dtype), loss=Squared(), mu=0.1, clients=PARTS)
    found = linear_model(given, NUMBERS, loss=Squared(), mu=0.1, clients=PARTS)
    assert_equal_models(found, reference)
    named = name.startswith(("pandas", "polars", "PyArrow")) and "numbers as names" not in name and "levels" not in name
    assert found.feature_names == (tuple(COLUMNS) if named else found.feature_names)
    assert (found.feature_names is None) == (not name.startswith(("pandas", "polars", "PyArrow")))


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("loss", [Logistic(), "hinge"])
def test_labels_of_two_classes(name: str, loss: Any) -> None:
    given, classes = BINARY[name]
    reference = linear_model(X, SIGNS, loss=Logistic() if loss != "hinge" else Hinge(), mu=0.1, clients=PARTS)
    found = linear_model(X, given, loss=loss, mu=0.1, clients=PARTS)
    assert_equal_models(found, reference)
    assert found.classes == classes
    assert type(found.classes) is type(classes)
    if classes is not None:
        assert [type(c) for c in found.classes or ()] == [type(c) for c in classes]


@pytest.mark.parametrize("name", CLASSES)
def test_labels_of_several_classes(name: str) -> None:
    given, loss, classes = CLASSES[name]
    outputs = 3 if isinstance(loss, str) else loss.classes
    reference = linear_model(X, CODES, loss=Multinomial(classes=outputs), mu=0.1, clients=PARTS)
    found = linear_model(X, given, loss=loss, mu=0.1, clients=PARTS)
    assert_equal_models(found, reference)
    assert found.classes == classes


def test_a_few_more_labels() -> None:
    two = linear_model(X, SIGNS > 0, loss="multinomial", mu=0.1)
    assert (two.loss, two.classes) == (Multinomial(classes=2), (False, True))
    assert linear_model(X, SIGNS > 0, loss=Multinomial(classes=2), mu=0.1).classes == (False, True)
    assert linear_model(X, [1] * M, loss="hinge", mu=0.1).classes is None  # all of one known class
    assert linear_model(X, (SIGNS > 0).astype(int), loss="multinomial", mu=0.1).classes is None


def test_clients_of_different_sizes_in_an_array_of_objects() -> None:
    parts = np.empty(2, dtype=object)
    parts[:] = [list(range(5)), list(range(5, M))]
    assert linear_model(X, SIGNS, loss="hinge", mu=0.1, clients=parts).sizes == (5, M - 5)


@pytest.mark.parametrize("name", ["float32", "int", "list", "Decimal", "pandas", "polars", "bool"])
def test_labels_that_are_numbers(name: str) -> None:
    whole = np.round(NUMBERS)
    given, meant = {
        "float32": (NUMBERS.astype(np.float32), NUMBERS),
        "int": (whole.astype(np.int32), whole),
        "list": (NUMBERS.tolist(), NUMBERS),
        "Decimal": ([Decimal(str(v)) for v in NUMBERS], NUMBERS),
        "pandas": (pd.Series(whole).astype("Int64"), whole),
        "polars": (pl.Series(NUMBERS), NUMBERS),
        "bool": (NUMBERS > 0, (NUMBERS > 0).astype(float)),
    }[name]
    reference = linear_model(X, meant, loss=Squared(), mu=0.1, clients=PARTS)
    assert_equal_models(linear_model(X, given, loss="squared", mu=0.1, clients=PARTS), reference)


@pytest.mark.parametrize("name", CLIENTS)
def test_clients(name: str) -> None:
    given, names = CLIENTS[name]
    parts: list[Any] = PARTS
    if name == "truth values":
        parts = [np.flatnonzero(OWNERS == 0), np.flatnonzero(OWNERS > 0)]
    elif name == "everybody for itself":
        parts = [[i] for i in range(M)]
    elif name == "all in one":
        parts = [range(M)]
    elif name in ("mixed", "frozen sets"):  # without an order: as they occur, clients 0, 2, 1
        parts = [PARTS[j] for j in (0, 2, 1)]
        names = names or tuple(frozenset({j}) for j in (0, 2, 1))
    reference = linear_model(X, NUMBERS, loss=Squared(), mu=0.1, clients=parts)
    found = linear_model(X, NUMBERS, loss="squared", mu=0.1, clients=given)
    assert_equal_models(found, reference)
    assert found.client_names == names
    assert list(map(type, found.client_names or ())) == list(map(type, names or ()))
    if names is not None:
        assert found.select([0]).client_names == names[:1]


@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_masks_may_overlap_and_leave_rows_out_as_rows_may(storage: str) -> None:
    masks = [np.arange(M) < 10, (np.arange(M) > 6) & (np.arange(M) < 20)]
    options: dict[str, Any] = {"loss": "squared", "mu": 0.1, "storage": storage, "weights": np.linspace(0.5, 1.5, M)}
    found = linear_model(SPARSE, NUMBERS, clients=masks, **options)
    assert_equal_models(found, linear_model(SPARSE, NUMBERS, clients=[range(10), range(7, 20)], **options))


def test_networks_take_the_same_clients() -> None:
    reference = mlp(X, CODES, layers=(3,), clients=PARTS)
    for given in (MASKS, dict(zip(WORDS, MASKS, strict=True)), np.stack(MASKS), OWNERS, OWNERS[:, None]):
        assert_equal_models(mlp(X, CODES, layers=(3,), clients=given), reference)


@pytest.mark.parametrize("library", [pd, pl])
def test_labels_and_clients_are_columns(library: Any) -> None:
    words = np.array(WORDS)[OWNERS]
    table = frame(library, hospital=words, sick=np.where(SIGNS > 0, "yes", "no"))
    reference = linear_model(X, SIGNS, loss=Logistic(), mu=0.1, clients=PARTS)
    found = linear_model(table, "sick", loss="logistic", mu=0.1, clients="hospital")
    assert_equal_models(found, reference)
    assert found.feature_names == tuple(COLUMNS)
    assert found.client_names == tuple(WORDS)
    assert found.classes == ("no", "yes")


def test_weights_of_any_kind() -> None:
    w = np.linspace(0.5, 1.5, M)
    reference = linear_model(X, NUMBERS, loss=Squared(), mu=0.1, clients=PARTS, weights=w)
    for given in (w.tolist(), pd.Series(w), pl.Series(w), pa.array(w), array_api_strict.asarray(w)):
        assert_equal_models(linear_model(X, NUMBERS, loss=Squared(), mu=0.1, clients=PARTS, weights=given), reference)


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
def test_tensors_of_torch_stay_tensors() -> None:
    import torch  # pyright: ignore[reportMissingImports]

    for given in (torch.asarray(X), torch.asarray(X, requires_grad=True), torch.asarray(X).to(torch.float32)):
        found = linear_model(given, torch.asarray((SIGNS > 0).astype(int)), loss="logistic", mu=0.1, clients=OWNERS)
        assert isinstance(found.zeros(), torch.Tensor)
        assert found.classes == (0, 1)
    reference = linear_model(X, SIGNS, loss="logistic", mu=0.1, clients=PARTS)
    assert_equal_models(linear_model(X, torch.asarray(SIGNS), loss="logistic", mu=0.1, clients=PARTS), reference)


def test_arrays_of_a_library_stay_in_it_on_their_device() -> None:
    device = array_api_strict.Device("device1")
    given = array_api_strict.asarray(WHOLE, device=device)
    found = linear_model(given, np.where(SIGNS > 0, "b", "a").tolist(), loss="logistic", mu=0.1, clients=OWNERS)
    assert found.zeros().device == device
    reference = linear_model(WHOLE.astype(float), SIGNS, loss="logistic", mu=0.1, clients=PARTS)
    np.testing.assert_array_equal(to_numpy(found.value(found.zeros())), reference.value(reference.zeros()))
