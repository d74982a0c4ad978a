"""Processes that read the rows of their own clients have together exactly the problem of one process."""

import numpy as np
import pytest

from dualopt.arrays.communicator import block
from dualopt.arrays.xp import is_sparse
from dualopt.objectives import linear_model
from dualopt.objectives._sparse import as_stored
from dualopt.objectives.rows import ClientRows
from dualopt.problem.build import build_problem
from dualopt.problem.data import scaling
from dualopt.problem.options import ProblemOptions
from dualopt.problem.preprocessing import _questions
from dualopt.runs._data_hash import data_hash
from tests.engine.thread_communicator import on_each


def libsvm(folder):
    rng = np.random.default_rng(0)
    lines = []
    for row in range(90):
        columns = np.flatnonzero(rng.random(60) < 0.1) + 1
        lines.append(f"{row % 2 * 2 - 1} " + " ".join(f"{c}:{rng.standard_normal():.17g}" for c in columns))
    (folder / "small.svm").write_text("# a comment\n\n" + "\n".join(lines) + "\n")
    return ["small.svm"]


def npz(folder):
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((70, 5)) * np.arange(1, 6), rng.integers(0, 4, 70)
    np.savez_compressed(folder / "small.npz", X=X, y=y, clients=np.sort(rng.integers(0, 7, 70)))
    return ["small.npz"]


def by_columns(folder):
    rng = np.random.default_rng(2)
    np.savez(folder / "columns.npz", X=np.asfortranarray(rng.standard_normal((50, 3))), y=rng.standard_normal(50))
    return ["columns.npz"]


def csv(folder):
    pytest.importorskip("pyarrow")
    rng = np.random.default_rng(3)
    lines = ["age,who,height,ill,weight,old,young,a,b,c,d,e"]
    for row in range(60):
        numbers = [f"{x:.6g}" for x in rng.standard_normal(9)]
        lines.append(
            f"{row % 17},clinic {row * row % 5},{numbers[0]},{['no', 'yes'][row % 3 == 0]}," + ",".join(numbers[1:])
        )
    (folder / "people.csv").write_text("\n".join(lines) + "\n")
    return ["people.csv", "ill", "who"]


def parquet(folder):
    csv(folder)
    from pyarrow import csv as reader
    from pyarrow import parquet as writer

    writer.write_table(reader.read_csv(folder / "people.csv"), folder / "people.parquet")
    return ["people.parquet", "ill", "who"]


CASES = {
    "LIBSVM, sparse": (libsvm, {"clients": 7, "partition": "lognormal"}),
    "LIBSVM, by label, unit rows": (libsvm, {"clients": 7, "partition": "by-label", "scale": "unit-rows"}),
    "LIBSVM, largest, some rows": (libsvm, {"clients": 5, "scale": "max", "rows": 50}),
    "LIBSVM, kept dense": (
        libsvm,
        {"clients": 5, "storage": "dense", "client_weights": "rows", "partition": "dirichlet"},
    ),
    "LIBSVM, read dense": (libsvm, {"clients": 5, "data_param": ["storage=dense"], "scale": "standard"}),
    "npz, standard": (npz, {"clients": 6, "scale": "standard", "client_weights": "rows", "partition": "dirichlet"}),
    "npz, standard, some rows": (npz, {"clients": 6, "scale": "standard", "rows": 41, "client_weights": "rows"}),
    "npz, single precision": (npz, {"clients": 6, "scale": "standard", "dtype": "float32", "partition": "lognormal"}),
    "npz, natural": (npz, {"clients": 7, "partition": "natural", "client_weights": "rows"}),
    "npz, network": (npz, {"clients": 5, "model": "mlp=7", "partition": "lognormal", "client_weights": "rows"}),
    "npz by columns": (by_columns, {"clients": 4, "scale": "max"}),
    "csv": (csv, {"scale": "standard", "client_weights": "rows"}),
    "csv, weights of rows": (csv, {"sample_weight": "age", "client_weights": "rows", "intercept": "free"}),
    "csv, offsets": (csv, {"offset": "height", "rows": 50, "client_weights": "rows"}),
    "LIBSVM, weights of classes": (
        libsvm,
        {"clients": 5, "class_weight": "balanced", "rows": 60, "client_weights": "rows", "intercept": "free"},
    ),
    "parquet": (parquet, {"scale": "standard", "client_weights": "rows"}),
    "digits": (None, {"data": "digits", "rows": 300, "clients": 9, "partition": "dirichlet", "mu": 1e-9}),
    "digits, brightness": (
        None,
        {"data": "digits", "rows": 90, "clients": 5, "partition": "dirichlet-replacement", "brightness": 0.4},
    ),
    "drawn": (None, {"data": "synthetic-logistic", "clients": 5, "penalty": 0.1, "regulariser": "l1=0.1"}),
}


def options_of(case, folder):
    make, options = CASES[case]
    if make is None:
        return ProblemOptions(**options)
    name, *columns = make(folder)
    given = dict(zip(("label", "client"), columns, strict=False))
    return ProblemOptions(data=str(folder / name), **given, **options)


def same(a, b):
    if is_sparse(a):
        return is_sparse(b) and a.shape == b.shape and np.array_equal(a.toarray(), b.toarray())
    return not is_sparse(b) and a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a, b)


@pytest.mark.parametrize("processes", [2, 3])
@pytest.mark.parametrize("case", CASES)
def test_together_they_have_the_problem_of_one_process(case, processes, tmp_path):
    """Rows, labels, weights, constants and words, to the last bit."""
    options = options_of(case, tmp_path)
    whole = build_problem(options)
    parts = on_each(processes, lambda peers: build_problem(options, peers=peers))
    found = [client for part in parts for client in part.rows.client_rows()]
    expected = list(whole.rows.client_rows())
    assert len(found) == len(expected)
    for client, (here, there) in enumerate(zip(found, expected, strict=True)):
        assert all(same(a, b) for a, b in zip(here, there, strict=True)), client
    for name in ("mu", "L"):
        assert same(np.concatenate([getattr(part.objective, name) for part in parts]), getattr(whole.objective, name))
    told = [part.objective.weights for part in parts]
    assert (None if None in told else sum(told, ())) == whole.objective.weights
    theta = whole.objective.initial(3) + 0.1
    value = np.concatenate([part.objective.value(theta) for part in parts])
    assert same(value, whole.objective.value(theta))
    assert (
        sum(part.count_right(theta) for part in parts) == whole.count_right(theta)
        if whole.rows.loss.labels != "real"
        else True
    )
    names = getattr(whole.rows, "client_names", None)
    if names is not None:
        assert sum((getattr(part.rows, "client_names", ()) for part in parts), ()) == names
    assert on_each(processes, lambda peers: data_hash(parts[peers.rank], peers))[0] == data_hash(whole)
    for part in parts:
        assert (part.data, part.loss, part.partition, dict(part.added)) == (
            whole.data,
            whole.loss,
            whole.partition,
            dict(whole.added),
        )
        assert part.sizes == whole.rows.sizes == whole.sizes
        assert part.rows.rows.max_rows == whole.rows.rows.max_rows
        assert part.rows.rows.is_sparse == whole.rows.rows.is_sparse
        assert type(part.rows.rows.groups[0]) is type(whole.rows.rows.groups[0])


def test_numbers_of_each_process_alone_are_noticed(tmp_path, monkeypatch):
    """The mutant: a process that takes the number of rows of the largest client from its own part."""
    build = ClientRows.build.__func__

    def alone(cls, *arguments, peers=None, **options):
        return build(cls, *arguments, **options)

    monkeypatch.setattr(ClientRows, "build", classmethod(alone))
    with pytest.raises(AssertionError):
        test_together_they_have_the_problem_of_one_process("npz, standard", 2, tmp_path)


def test_sums_that_depend_on_the_rows_of_a_process_are_noticed(tmp_path, monkeypatch):
    """The mutant: every process adds up its own rows with rounding, and then the sums are added."""

    def rounded(pieces, columns):
        return np.sum([x.sum(axis=0) for x in pieces], axis=0)[None, :]

    monkeypatch.setattr(_questions, "expansion", rounded)
    with pytest.raises(AssertionError):
        test_together_they_have_the_problem_of_one_process("csv", 3, tmp_path)


@pytest.mark.parametrize("how", ["standard", "robust", "minmax", "max"])
@pytest.mark.parametrize("columns", [1, 2, 7])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_scalings_are_those_of_one_process(columns, dtype, how, monkeypatch):
    """However rows are dealt out, and however many are looked at together."""
    rng = np.random.default_rng(columns)
    X = rng.standard_normal((500, columns)).astype(dtype) * 10.0 ** rng.integers(-3, 4, columns).astype(dtype)
    expected = scaling.scale(X, how)
    owner = rng.integers(0, 3, 500)
    monkeypatch.setattr(_questions, "PIECE", 50)
    monkeypatch.setattr(_questions, "WIDTH", 3)

    def scaled(peers):
        rows = np.flatnonzero(owner == peers.rank)
        return rows, scaling.scale_in_place(X[rows], how, scaling.Part(rows, peers))

    together = np.empty_like(X)
    for rows, part in on_each(3, scaled):
        together[rows] = part
    assert same(together, expected)


def test_a_number_that_is_too_large_in_one_process_ends_all():
    X = np.where(np.arange(6)[:, None] == 5, 1e305, np.ones((6, 2)))

    def scaled(peers):
        rows = np.arange(6)[peers.rank :: 2]
        with pytest.raises(ValueError, match="numbers of at most 2\\^1000"), peers.together():
            scaling.scale_in_place(X[rows], "standard", scaling.Part(rows, peers))
        return True

    assert on_each(2, scaled) == [True, True]


def test_one_damaged_row_ends_all_processes(tmp_path):
    """The sentence names the row of the data set, in every process."""
    np.savez(tmp_path / "bad.npz", X=np.where(np.arange(40)[:, None] == 33, np.nan, 1.0), y=np.arange(40) % 2)
    options = ProblemOptions(data=str(tmp_path / "bad.npz"), clients=4, partition="consecutive")

    def message(peers):
        with pytest.raises(ValueError, match="row 33") as found:
            build_problem(options, peers=peers)
        return str(found.value)

    assert on_each(2, message) == ["X must be finite, but row 33 (counted from 0) holds NaN or infinite values."] * 2


def test_weights_that_are_zero_count_over_all_processes():
    """One process may have nothing but rows of weight 0; all of them may not."""

    def build(weight):
        def own(peers):
            X, w = np.ones((2, 1)), np.full(2, weight(peers.rank))
            return linear_model(X, X[:, 0], loss="squared", mu=0.1, weights=w, peers=peers).n_clients

        return own

    assert on_each(2, build(float)) == [1, 1]
    with pytest.raises(ValueError, match=r"^weights must not be 0 for all rows\.$"):
        on_each(2, build(lambda rank: 0.0))


def test_more_processes_than_clients_are_refused():
    """A process without clients would have nothing to build."""

    def message(peers):
        with pytest.raises(ValueError, match="at least the 3 processes, not 2") as found:
            build_problem(ProblemOptions(rows=50, clients=2), peers=peers)
        return str(found.value)

    assert len(set(on_each(3, message))) == 1


def test_blocks_are_consecutive_and_cover_all():
    """Sizes differ by at most one."""
    parts = on_each(3, lambda peers: block(8, peers))
    assert [j for part in parts for j in part] == list(range(8))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize(("full", "rest", "sparse"), [(1, 20, True), (20, 4, False)])
def test_storage_is_that_of_the_rows_of_all_processes(full, rest, sparse):
    """One process has rows of 60 entries, the other one of a single entry: by its own rows each would do otherwise."""
    matrix = pytest.importorskip("scipy.sparse").csr_array
    parts = [matrix(np.ones((full, 60))), matrix(np.eye(rest, 60))]
    found = on_each(2, lambda peers: is_sparse(as_stored(parts[peers.rank], "auto", peers)))
    assert found == [sparse, sparse]
