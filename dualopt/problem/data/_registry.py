"""Loading a data set by its name or its file."""

from __future__ import annotations

import difflib
import inspect
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from dualopt.arrays._checks import at_least
from dualopt.arrays.communicator import ALONE
from dualopt.arrays.xp import is_mapped, is_sparse
from dualopt.problem.data import _libsvm, _npz, _tables, scaling
from dualopt.problem.data._dataset import Dataset, RawData, check_features
from dualopt.problem.data._files import FILE_SUFFIXES, expanded, find_bare, free_memory, home, is_file
from dualopt.problem.data._modules import modules
from dualopt.problem.data._scaling import Scaling
from dualopt.problem.data._source import Source, all_rows, in_memory
from dualopt.problem.data.scaling import Part
from dualopt.spec.plugins import entry_points, find, is_spelled

__all__ = ["available", "converted", "load", "open_source", "opened", "read_rows"]

_COMMON = ("data_home", "dtype", "seed", "share")


def available() -> dict[str, str]:
    """Describe the data sets that have a name.

    Files in LIBSVM format and NumPy archives need no entry here: `load` takes their path, or their bare name
    in ``data_home``.

    Returns
    -------
    dict
        One line for each name, in alphabetical order.

    Examples
    --------
    >>> from dualopt.problem.data import available
    >>> available()["synthetic-regression"]
    'linear regression with Gaussian noise (options m, d, noise, decay)'
    """
    return {name: module.NAMES[name] for name, module in sorted(_named().items())}


def load(
    name: str | os.PathLike[str],
    *,
    data_home: str | os.PathLike[str] | None = None,
    scale: str | float = "auto",
    dtype: str = "float64",
    seed: int = 0,
    **options: Any,
) -> Dataset:
    """Load a data set by its name or its file.

    Parameters
    ----------
    name : str or path
        A name of `available`; the path of a LIBSVM file (plain, ``.gz`` or ``.bz2``), of a NumPy archive (``.npz``) or
        of a table (``.csv``, ``.tsv``, plain or compressed, ``.parquet``); or the bare name NAME of such a file in
        ``data_home``, ``data_home/libsvm`` or ``data_home/NAME``, where the suffix may be left out.
    data_home : str or path, optional
        The user's folder of data sets; None means the environment variable ``DUALOPT_DATA_HOME``.
    scale : str or float
        Scaling of the features, see `dualopt.problem.data.scale`; "auto" is the data set's own default: pixels to
        [0, 1], standardised ``breast_cancer``, all others as they are.
    dtype : str
        Type of the features, "float64" or "float32".
    seed : int
        Seed of synthetic data.
    **options
        Further options of the data set: ``split`` ("train", "test"); ``n_features``, ``storage`` ("auto", "sparse",
        "dense"), ``first_index`` (0 or 1, found in the file by default) and ``max_bytes`` (the largest dense matrix to
        make, half of the free memory by default) of LIBSVM files; ``label``, ``client``, ``sample_weight``, ``offset``
        and ``exposure``, columns of a table, ``drop``, those that are not used, and ``missing`` ("refuse", "mean",
        "median") and ``categories`` ("refuse", "indicators", or ``"sex=f,m; stage=1,2"``), what becomes of its gaps
        and words; those of synthetic data are listed by `available`.

    Returns
    -------
    Dataset
        Features of shape (m, d), in compressed rows (``scipy.sparse.csr_array``) where a LIBSVM file is sparse, raw
        labels of shape (m,) and, where the source has them, the clients of the rows. Features of 64 MB and more that
        are not compressed in a NumPy archive stay in the file, read-only, where they are neither converted nor scaled.

    Raises
    ------
    ValueError
        If the name or an option is unknown, a file is missing or damaged, the features hold NaN or infinite
        values, or an argument is out of its range. The message is one sentence that names the argument.
    ModuleNotFoundError
        If the data set needs scikit-learn, or a table PyArrow, and it is not installed.

    Examples
    --------
    >>> from dualopt.problem.data import load
    >>> data = load("synthetic-logistic", m=100, d=5, seed=1)
    >>> data.X.shape, data.y.shape
    ((100, 5), (100,))
    """
    source = open_source(name, data_home=data_home, scale=scale, dtype=dtype, seed=seed, **options)
    X, scaling = read_rows(source, Part(all_rows(source), ALONE), scale, dtype)
    return Dataset(
        X=X,
        y=source.y,
        name=source.name,
        description=source.description,
        clients=source.clients,
        client_names=source.client_names,
        feature_names=source.feature_names,
        sample_weight=source.sample_weight,
        offset=source.offset,
        reading=source.reading,
        columns=source.columns,
        scaling=scaling,
    )


def open_source(
    name: str | os.PathLike[str],
    *,
    data_home: str | os.PathLike[str] | None = None,
    scale: str | float = "auto",
    dtype: str = "float64",
    seed: int = 0,
    share: float = 1.0,
    **options: Any,
) -> Source:
    """Read the labels of a data set, and of its features what is wanted, when `read_rows` is called.

    Files in LIBSVM format, NumPy archives and tables are never in memory as a whole; other data sets are until then.
    Arguments and errors are those of `load`; ``share`` is the part of the rows that this machine is going to hold.
    """
    name, folder = _checked(name, data_home, scale, dtype, seed)
    found = opened(name, folder, dtype, seed, share, options)
    m = found.shape[:1]
    if len(found.shape) != 2 or 0 in found.shape:
        raise ValueError(f"X must be a matrix with at least one row and one column, but its shape is {found.shape}.")
    if found.y.shape != m:
        raise ValueError(f"y must hold one label for each of the {m[0]} rows of X, but its shape is {found.y.shape}.")
    owners = found.clients
    if owners is not None and (owners.shape != m or owners.dtype.kind not in "iu"):
        raise ValueError(
            f"clients must hold one integer for each of the {m[0]} rows of X, but it is an array of {owners.dtype} "
            f"with shape {owners.shape}."
        )
    return replace(found, name=name)


def opened(name: str, folder: Path | None, dtype: str, seed: int, share: float, options: dict[str, Any]) -> Source:
    """Return the source of a data set, whatever its reader returns."""
    reader, first = _reader(name, folder)
    found = reader(first, **_arguments(name, reader, folder, dtype, seed, share, options))
    return found if isinstance(found, Source) else in_memory(found)


def read_rows(source: Source, part: Part, scale: str | float, dtype: str, *, ones: bool = False) -> tuple[Any, Scaling]:
    """Return the features of some rows, converted and scaled as in the whole data set, and the scaling.

    Every row must be in the part of one of the processes where the scaling is one of all rows.
    Rows of a mapped file stay in it where they are neither converted nor scaled. With ``ones``, others that are dense
    are followed by a column of ones: a matrix that the caller owns.
    """
    how = source.scale if scale == "auto" else scale
    with part.peers.together():
        _require_room(source, source.room(part.rows), part)
    with part.peers.together():
        X = source.read(part.rows)
        check_features(X, part.rows)
        whole = None
        if ones and not is_sparse(X) and not is_mapped(X):
            _require_room(source, X.size * np.dtype(dtype).itemsize, part)
            whole = np.ones((X.shape[0], X.shape[1] + 1), dtype)
            with np.errstate(over="ignore"):
                whole[:, :-1] = X
            X = whole[:, :-1]
        else:
            X = converted(X, dtype, how, lambda size: _require_room(source, size, part))
    with part.peers.together():
        fitted = scaling.fit_in_place(X, how, part)
        if fitted.how != "none":
            check_features(X, part.rows)
    return X if whole is None else whole, fitted


def _require_room(source: Source, size: int, part: Part) -> None:
    """Refuse features that take more than half of the free memory, with those of the other processes here.

    Half, because a problem keeps them once more, in the order of its clients.
    """
    here = round(part.peers.size * part.peers.share)
    if here * size > free_memory() / 2:
        whose = f"{here * len(part.rows)} x {source.shape[1]}" + (f" for {here} processes" if here > 1 else "")
        raise ValueError(
            f"path {source.name!r} does not fit: its features, {whose}, take {here * size:.3g} bytes, more than half "
            "of the free memory: read fewer rows (--rows), in single precision (--dtype float32), or on several "
            "machines (--engine mpi)."
        )


def _checked(name: Any, data_home: Any, scale: Any, dtype: Any, seed: Any) -> tuple[str, Path | None]:
    """Return the name and the folder of the user's data sets; refuse arguments that are none."""
    if not isinstance(name, str | os.PathLike):
        raise ValueError(f"name must be that of a data set or a file, not {name!r}.")
    if not isinstance(dtype, str) or dtype not in ("float64", "float32"):
        raise ValueError(f'dtype must be "float64" or "float32", got {dtype!r}.')
    at_least(0, "seed", seed)
    if not isinstance(scale, str) or scale != "auto":
        scaling.check_scale(scale)
    folder = home(data_home)
    return os.fsdecode(name), folder


def _arguments(
    name: str,
    reader: Callable[..., Any],
    folder: Path | None,
    dtype: str,
    seed: int,
    share: float,
    options: dict[str, Any],
) -> dict[str, Any]:
    """Return what a reader is called with; refuse options that it does not have."""
    accepted = inspect.signature(reader).parameters
    known = [option for option in list(accepted)[1:] if option not in _COMMON]
    for option in options:
        if option not in known:
            raise ValueError(
                f"option {option!r} is not known for data {name!r}, which takes {', '.join(known) or 'none'}."
            )
    common = {"data_home": folder, "dtype": dtype, "seed": seed, "share": share}
    return {key: common[key] for key in _COMMON if key in accepted} | options


def converted(
    X: Any, dtype: str, how: str | float = "standard", require_room: Callable[[int], None] = lambda size: None
) -> Any:
    """Return features in their type, which can be written to if they are to be scaled."""
    with np.errstate(over="ignore"):  # a number too large for float32 becomes infinite, which is refused later
        if is_sparse(X):
            return X.astype(dtype)
        if X.dtype != dtype or not X.flags.c_contiguous or (how != "none" and not X.flags.writeable):
            require_room(X.size * np.dtype(dtype).itemsize)
            return np.array(X, dtype, order="C")
        return X


def _named() -> dict[str, ModuleType]:
    """Find the modules of this package that load named data sets: those that define ``NAMES``."""
    return {name: module for module in modules() for name in getattr(module, "NAMES", ())}


def _reader(name: str, folder: Path | None) -> tuple[Callable[..., RawData | Source], str | Path]:
    """Choose the function that opens a file or loads a data set, and its first argument: the path or the name."""
    named = _named()
    if name in named:
        return named[name].load, name
    if is_spelled(name) or name in entry_points("data"):
        return find("data", name, "data").load, name.rpartition(":")[2]
    path = expanded(Path(name))
    if not is_file(path):
        in_folder = find_bare(name, folder)
        if in_folder is None:
            raise ValueError(_not_found(name, folder, list(named)))
        path = in_folder
    if _tables.is_table_file(path):
        return _tables.source, path
    return (_npz.source if path.suffix == ".npz" else _libsvm.source), path


def _not_found(name: str, folder: Path | None, names: list[str]) -> str:
    """Say where a name or a file was looked for, and what to pass."""
    where = f"in data_home {str(folder)!r}" if folder else "in a data_home, since none was passed"
    if name.endswith(FILE_SUFFIXES) or os.path.dirname(name):
        return f"data {name!r} is not a file, neither as this path nor {where}."
    close = difflib.get_close_matches(name, names, 1)
    hint = f"; did you mean {close[0]!r}?" if close else "."
    return f"data {name!r} is neither one of {', '.join(sorted(names))} nor a file {where}{hint}"
