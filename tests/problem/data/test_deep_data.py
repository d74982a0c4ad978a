"""CIFAR-100, EMNIST, and FEMNIST and Shakespeare of LEAF, from small files in the formats of the sources."""

from __future__ import annotations

import gzip
import json
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dualopt.problem.data import load, natural
from dualopt.problem.data.shakespeare import CHARACTERS, LENGTH

RNG = np.random.default_rng(0)


# LEAF.

WRITERS = {"f0011_02": 3, "f3170_00": 1, "empty": 0, "f0999_41": 2}
ROLES = {"THE_TRAGEDY_OF_HAMLET_OSRIC": 2, "KING_LEAR_EDGAR": 4}
LINE = "  Now, fair Hippolyta, our nuptial hour draws on apace; four happy days bring in another moon"


def leaf(kind: str, users: dict[str, int]) -> dict[str, Any]:
    """Return what a file of LEAF holds, as its own scripts write it."""

    def samples(m: int) -> dict[str, Any]:
        if kind == "femnist":
            return {"x": RNG.random((m, 784)).round(3).tolist(), "y": RNG.integers(0, 62, m).tolist()}
        return {"x": [LINE[i : i + LENGTH] for i in range(m)], "y": [LINE[i + LENGTH] for i in range(m)]}

    data = {user: samples(m) for user, m in users.items()}
    return {"users": list(users), "num_samples": list(users.values()), "user_data": data}


def write(folder: Path, name: str, found: Any, split: str = "train", file: str = "all_data_0.json") -> Path:
    path = folder / name / split / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(found if isinstance(found, str) else json.dumps(found))
    return path


def test_femnist_has_a_client_for_each_writer(tmp_path: Path) -> None:
    first, second = leaf("femnist", WRITERS), leaf("femnist", {"f1": 2})
    write(tmp_path, "femnist", second, file="all_data_1.json")
    write(tmp_path, "femnist", first)
    write(tmp_path, "femnist", leaf("femnist", {"f0011_02": 1}), split="test")
    data = load("femnist", data_home=tmp_path, dtype="float32")
    assert data.client_names == ("f0011_02", "f3170_00", "f0999_41", "f1")
    assert [len(rows) for rows in natural(data.clients)] == [3, 1, 2, 2]
    rows = [*first["user_data"]["f0011_02"]["x"], *first["user_data"]["f3170_00"]["x"]]
    np.testing.assert_array_equal(data.X[:4], np.array(rows, dtype=np.float32))
    assert data.y[:3].tolist() == first["user_data"]["f0011_02"]["y"]
    assert data.X.shape == (8, 784)
    few = load("femnist", data_home=tmp_path, users=3, most=2)
    assert [len(rows) for rows in natural(few.clients)] == [2, 1, 2]
    np.testing.assert_array_equal(few.y[:2], data.y[:2])
    assert load("femnist", data_home=tmp_path, split="test").X.shape == (1, 784)
    assert "by writer, train split of LEAF" in data.description


def test_shakespeare_has_a_client_for_each_role(tmp_path: Path) -> None:
    write(tmp_path / "shakespeare", "data", leaf("shakespeare", ROLES))  # where LEAF's scripts put it
    data = load("shakespeare", data_home=tmp_path)
    assert data.client_names == tuple(ROLES)
    assert data.X.shape == (6, 80)
    text = "".join(CHARACTERS[int(code)] for code in data.X[1])
    assert text == LINE[1:81]
    assert "".join(CHARACTERS[code] for code in data.y[2:]) == LINE[80:84]
    assert len({*CHARACTERS}) == len(CHARACTERS) == 80


def broken(kind: str, change: Any) -> Any:
    found = leaf(kind, WRITERS if kind == "femnist" else ROLES)
    change(found)
    return found


def entry(user: str, key: str, value: Any) -> Any:
    return lambda found: found["user_data"][user][key].__setitem__(0, value)


PICTURE = [0.5] * 784
LEAF_ERRORS: list[tuple[str, Any, str]] = [
    ("femnist", "{", "it is cut short, or no JSON."),
    ("femnist", "[" * 10**5, "it is cut short, or no JSON."),
    ("femnist", [], "it has no entry user_data."),
    ("femnist", {"user_data": {}}, "its entry users must be a list of names."),
    ("femnist", lambda f: f["users"].append("f3170_00"), "must name the same users, each once."),
    ("femnist", lambda f: f["users"].pop(), "must name the same users, each once."),
    (
        "femnist",
        lambda f: f["num_samples"].__setitem__(1, 5),
        "num_samples must be the numbers of samples of its users.",
    ),
    ("femnist", lambda f: f["user_data"]["f3170_00"]["x"].clear(), "'f3170_00' must have as many entries x as y."),
    ("femnist", lambda f: f["user_data"].__setitem__("f3170_00", 3), "'f3170_00' must have as many entries x as y."),
    ("femnist", entry("f3170_00", "x", PICTURE[:-1]), "'f3170_00' has an image of 783 numbers in place of 784."),
    ("femnist", entry("f3170_00", "x", ["a"] * 784), "'f3170_00' has an image that holds what is no number."),
    ("femnist", entry("f3170_00", "x", [1e39] * 784), "'f3170_00' has an image that holds what is no finite number."),
    ("femnist", entry("f3170_00", "y", 62), "has the label 62, which must be a whole number from 0 to 61."),
    ("femnist", entry("f3170_00", "y", True), "has the label True, which must be a whole number from 0 to 61."),
    ("shakespeare", entry("KING_LEAR_EDGAR", "x", "short"), "has a text 'short' that is not of 80 characters."),
    ("shakespeare", entry("KING_LEAR_EDGAR", "y", "ab"), "has a text 'ab' that is not of 1 character."),
    ("shakespeare", entry("KING_LEAR_EDGAR", "y", "é"), "the character 'é', which LEAF's alphabet does not have."),
]


@pytest.mark.filterwarnings("ignore:overflow encountered in cast:RuntimeWarning")
@pytest.mark.parametrize(("kind", "found", "said"), LEAF_ERRORS, ids=[said[-45:] for *_, said in LEAF_ERRORS])
def test_a_damaged_file_of_leaf_is_one_sentence(kind: str, found: Any, said: str, tmp_path: Path) -> None:
    path = write(tmp_path, kind, broken(kind, found) if callable(found) else found)
    with pytest.raises(ValueError, match=re.escape(said)) as error:
        load(kind, data_home=tmp_path)
    assert str(error.value).startswith(f"path {str(path)!r} is no file of LEAF: ")


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"looked for femnist/train/\*.json and femnist/data/train/\*.json"):
        load("femnist", data_home=tmp_path)
    write(tmp_path, "femnist", leaf("femnist", {"a": 0}))
    with pytest.raises(ValueError, match="data 'femnist' has no samples in its train split"):
        load("femnist", data_home=tmp_path)
    write(tmp_path, "femnist", leaf("femnist", {"b": 1}))
    write(tmp_path, "femnist", leaf("femnist", {"b": 1}), file="again.json")
    with pytest.raises(ValueError, match="the user 'b' is in another file, too"):
        load("femnist", data_home=tmp_path)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"users": 0}, "users must be at least 1"),
        ({"split": "x"}, "split must be"),
    ]
    for options, said in wrong:
        with pytest.raises(ValueError, match=said):
            load("femnist", data_home=tmp_path, **options)


# CIFAR-100.


def test_cifar_100(tmp_path: Path) -> None:
    """A record: the coarse label, the fine one, then 1024 red, green and blue pixels each."""
    pictures = RNG.integers(0, 256, (4, 3072), dtype=np.uint8)
    coarse, fine = [3, 19, 0, 7], [99, 0, 41, 7]
    records = b"".join(bytes((c, f)) + x.tobytes() for c, f, x in zip(coarse, fine, pictures, strict=True))
    folder = tmp_path / "cifar-100-binary"
    folder.mkdir()
    (folder / "train.bin").write_bytes(records)
    (folder / "test.bin.gz").write_bytes(gzip.compress(records[:3074]))
    data = load("cifar100", data_home=tmp_path, scale="none")
    np.testing.assert_array_equal(data.X, pictures)
    assert data.y.tolist() == fine
    assert load("cifar100", data_home=tmp_path, labels="coarse").y.tolist() == coarse
    assert load("cifar100", data_home=tmp_path).X.max() <= 1.0
    assert load("cifar100", data_home=tmp_path, split="test").y.tolist() == [99]
    for content, said in ((records[:-1], "12295 bytes are not 3074 an image"), (b"", "0 bytes are not")):
        (folder / "train.bin").write_bytes(content)
        with pytest.raises(ValueError, match=f"is no CIFAR-100 in binary: {said}"):
            load("cifar100", data_home=tmp_path)
    (folder / "train.bin").write_bytes(records[:3074] + b"\x14" + records[3075:])
    with pytest.raises(ValueError, match="image 1 has the coarse label 20"):
        load("cifar100", data_home=tmp_path)
    with pytest.raises(ValueError, match="labels must be one of coarse, fine, got 'finest'"):
        load("cifar100", data_home=tmp_path, labels="finest")


# EMNIST.


def write_emnist(folder: Path, images: np.ndarray, labels: list[int], section: str = "letters") -> None:
    m, height, width = images.shape
    start = folder / f"emnist-{section}-train"
    image_bytes = struct.pack(">4B3I", 0, 0, 8, 3, m, height, width) + images.tobytes()
    Path(f"{start}-images-idx3-ubyte.gz").write_bytes(gzip.compress(image_bytes))
    Path(f"{start}-labels-idx1-ubyte").write_bytes(struct.pack(">4BI", 0, 0, 8, 1, len(labels)) + bytes(labels))


def test_emnist_is_upright_and_counted_from_0(tmp_path: Path) -> None:
    upright = RNG.integers(0, 256, (5, 28, 28), dtype=np.uint8)
    write_emnist(tmp_path, upright.transpose(0, 2, 1).copy(), [1, 26, 10, 11, 3])
    data = load("emnist", data_home=tmp_path, scale="none")
    assert data.y.tolist() == [0, 25, 9, 10, 2]
    np.testing.assert_array_equal(data.X, upright.reshape(5, 784))
    first = load("emnist-l", data_home=tmp_path, scale="none")
    assert first.y.tolist() == [0, 9, 2]
    np.testing.assert_array_equal(first.X, upright.reshape(5, 784)[[0, 2, 4]])
    write_emnist(tmp_path, upright, [0, 61, 3, 4, 5], "byclass")
    assert load("emnist", data_home=tmp_path, section="byclass").y.tolist() == [0, 61, 3, 4, 5]
    write_emnist(tmp_path, upright, [1, 26, 27, 11, 3])
    with pytest.raises(ValueError, match="has the label 27, which letters does not"):
        load("emnist", data_home=tmp_path)
    write_emnist(tmp_path, upright, [1, 2])
    with pytest.raises(ValueError, match=r"has 5 images, but .* has 2 labels"):
        load("emnist", data_home=tmp_path)
    for name, section, said in (("emnist", "all", "one of balanced, "), ("emnist-l", "mnist", "letters")):
        with pytest.raises(ValueError, match=f"section must be {said}"):
            load(name, data_home=tmp_path, section=section)
