"""Files of LEAF (Caldas et al. 2018, "LEAF: a benchmark for federated settings"): JSON with the samples of each user.

Each file is ``{"users": [name, ...], "num_samples": [m, ...], "user_data": {name: {"x": [...], "y": [...]}}}``, and a
split is a folder of such files.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

from dualopt.arrays._checks import at_least
from dualopt.problem.data._dataset import RawData
from dualopt.problem.data._files import is_folder

__all__ = ["User", "load_users", "pixels", "whole_numbers"]

SPLITS = ("train", "test")


class User(NamedTuple):
    """The samples of a user."""

    X: np.ndarray  # (m, d)
    y: np.ndarray  # (m,)


def load_users(
    name: str,
    data_home: Path | None,
    split: str,
    convert: Callable[[list[Any], list[Any]], User],
    *,
    title: str,
    users: int | None,
    most: int | None,
) -> RawData:
    """Read the users of a split, each of whom is a client; users without samples are left out.

    Parameters
    ----------
    name : str
        Name of the data set, and of its folder in ``data_home``.
    data_home : Path, optional
        The user's folder of data sets.
    split : str
        "train" or "test": the folder of LEAF's own split.
    convert : callable
        Turns the entries ``x`` and ``y`` of a user into arrays, or raises a ``ValueError`` that says what is wrong.
    title : str
        What the data are.
    users : int, optional
        Take the first so many users alone, in the order of the files.
    most : int, optional
        Take the first so many samples of a user alone.

    Raises
    ------
    ValueError
        If there are no such files, or one is damaged; the sentence names file and user.
    """
    if split not in SPLITS:
        raise ValueError(f'split must be "train" or "test", got {split!r}.')
    users = None if users is None else at_least(1, "users", users)
    most = None if most is None else at_least(1, "most", most)
    found: dict[str, User] = {}
    for path in _files(name, data_home, split):
        for user, (x, y) in _samples(path).items():
            if user in found:
                _refuse(path, f"the user {user!r} is in another file, too")
            if not y:
                continue
            try:
                found[user] = convert(x[:most], y[:most])
            except (TypeError, ValueError, OverflowError) as error:
                _refuse(path, f"the user {user!r} has {str(error).rstrip('.')}")
            if len(found) == users:
                break
        if len(found) == users:
            break
    if not found:
        raise ValueError(f"data {name!r} has no samples in its {split} split.")
    return RawData(
        X=np.concatenate([one.X for one in found.values()]),
        y=np.concatenate([one.y for one in found.values()]),
        scale="none",
        description=f"{title}, {split} split of LEAF",
        clients=np.repeat(np.arange(len(found)), [len(one.y) for one in found.values()]),
        client_names=tuple(found),
    )


def _files(name: str, data_home: Path | None, split: str) -> list[Path]:
    """Return the files of a split, in alphabetical order."""
    places = [f"{name}/{split}", f"{name}/data/{split}"]
    if data_home is None:
        raise ValueError(
            f"data_home is needed for data {name!r}: pass the folder that holds {places[0]} or set DUALOPT_DATA_HOME."
        )
    for place in places:
        if is_folder(data_home / place) and (files := sorted((data_home / place).glob("*.json"))):
            return files
    looked = " and ".join(f"{place}/*.json" for place in places)
    raise ValueError(f"data_home {str(data_home)!r} has no file for data {name!r}: looked for {looked}.")


def _samples(path: Path) -> dict[str, tuple[list[Any], list[Any]]]:
    """Return the entries of the users of one file, in its order."""
    try:
        found = json.loads(path.read_bytes())
    except OSError as error:
        raise ValueError(f"path {str(path)!r} cannot be read: {error.strerror or error}.") from error
    except (ValueError, RecursionError):
        _refuse(path, "it is cut short, or no JSON")
    if not isinstance(found, dict) or not isinstance(found.get("user_data"), dict):
        _refuse(path, "it has no entry user_data")
    names, data = found.get("users"), found["user_data"]
    if not isinstance(names, list) or not all(isinstance(one, str) for one in names):
        _refuse(path, "its entry users must be a list of names")
    if len({*names}) < len(names) or {*names} != {*data}:
        _refuse(path, "its entries users and user_data must name the same users, each once")
    samples = {}
    for user in names:
        own = data[user]
        x, y = (own.get("x"), own.get("y")) if isinstance(own, dict) else (None, None)
        if not isinstance(x, list) or not isinstance(y, list) or len(x) != len(y):
            _refuse(path, f"the user {user!r} must have as many entries x as y")
        samples[user] = x, y
    counts = found.get("num_samples", [len(y) for _, y in samples.values()])
    if counts != [len(y) for _, y in samples.values()]:
        _refuse(path, "its entry num_samples must be the numbers of samples of its users")
    return samples


def whole_numbers(values: list[Any], below: int, what: str) -> np.ndarray:
    """Return numbers from 0 on as integers.

    Raises
    ------
    ValueError
        If one is none, or is not below the limit.
    """
    if not all(isinstance(x, int) and not isinstance(x, bool) and 0 <= x < below for x in values):
        wrong = next(x for x in values if not isinstance(x, int) or isinstance(x, bool) or not 0 <= x < below)
        raise ValueError(f"{what} {wrong!r}, which must be a whole number from 0 to {below - 1}")
    return np.array(values, dtype=np.int64)


def pixels(rows: list[Any], width: int) -> np.ndarray:
    """Return images as rows of so many numbers.

    Raises
    ------
    ValueError
        If one has another length, or holds anything but finite numbers.
    """
    lengths = {len(row) if isinstance(row, list) else 0 for row in rows}
    if lengths != {width}:
        raise ValueError(f"an image of {min(lengths - {width})} numbers in place of {width}")
    if not all(type(x) in (int, float) for x in chain.from_iterable(rows)):
        raise ValueError("an image that holds what is no number")
    found = np.array(rows, dtype=np.float32)
    if not np.isfinite(found).all():
        raise ValueError("an image that holds what is no finite number")
    return found


def _refuse(path: Path, reason: str) -> NoReturn:
    raise ValueError(f"path {str(path)!r} is no file of LEAF: {reason}.") from None
