"""What process 0 says of the facts of all, without processes; and of what hosts say that their clients have in common.

``test_agreement.py`` does it with threads.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import nullcontext
from importlib.metadata import PackageNotFoundError
from types import SimpleNamespace
from typing import Any

import array_api_strict
import numpy as np
import pytest

from dualopt.engine import _agreement
from dualopt.engine._agreement import agree, numbered, require_agreement
from tests.engine.test_answers import of as census


class Peers:
    """The other processes, as process 0 hears them; none, for the others."""

    def __init__(self, size: int, heard: Any = None) -> None:
        self.size, self.heard, self.together = size, heard, nullcontext
        self.said: Any = None

    def collected(self, x: Any) -> Any:
        self.said = x
        return None if self.heard is None else [x, *self.heard]


def sentence(*facts: Mapping[str, Any]) -> str:
    """With which process 0 ends, of the facts of each."""
    others = [Peers(len(facts)) for _ in facts[1:]]
    for peers, own in zip(others, facts[1:], strict=True):
        agree(peers, own)  # pyright: ignore[reportArgumentType]
    try:
        agree(Peers(len(facts), [peers.said for peers in others]), facts[0])  # pyright: ignore[reportArgumentType]
    except ValueError as error:
        return str(error)
    return ""


DATA = np.arange(6.0)
SAME: list[tuple[Any, ...]] = [
    (DATA, DATA.copy(), (DATA,), array_api_strict.asarray(DATA)),
    (DATA.reshape(2, 3), np.asfortranarray(DATA.reshape(2, 3))),
    (np.array(["a", None, 1.5], dtype=object),) * 2,
    (b"x", b"x"),
    ((DATA, DATA[:2]), (DATA, DATA[:2])),
    (np.zeros((0, 2)), np.zeros((0, 2))),
    ((), ()),
    (DATA[::2], DATA[::2].copy()),
    (np.array(2.0), np.array(2.0)),
    ((DATA[:0],), DATA[:0]),
]
OTHERS: list[tuple[Any, Any]] = [
    (DATA, DATA + 1e-15 * (DATA == 5)),
    (DATA, DATA.astype(np.float32)),
    (DATA.reshape(2, 3), DATA.reshape(3, 2)),
    (np.zeros((0, 2)), np.zeros((0, 3))),
    (DATA.reshape(2, 3), DATA.reshape(2, 3)[:, ::-1]),
    (np.array(["a", None], dtype=object), np.array(["a", "None"], dtype=object)),
    (np.array([["a", "b"]], dtype=object), np.array([["b", "a"]], dtype=object)),
    (b"x", b"y"),
    ((DATA, DATA[:2]), (DATA, DATA[:3])),
    ((DATA, DATA[:2]), (DATA[:2], DATA)),
]


@pytest.mark.parametrize("facts", SAME)
def test_what_is_the_same_in_all(facts: tuple[Any, ...]) -> None:
    assert sentence(*({"mu": 0.5, "rows": x} for x in facts)) == ""


@pytest.mark.parametrize(("here", "there"), OTHERS)
def test_data_that_are_others(here: Any, there: Any) -> None:
    """And nothing of them is quoted."""
    said = "processes must agree, but rows of process 1 are not those of process 0."
    assert sentence({"mu": 0.5, "rows": here}, {"mu": 0.5, "rows": there}) == said


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ([1, 1, 2, 1], "x is 1 in process 0 and 2 in process 2"),
        ([1, 2, 2, 1], "x is 1 in process 0 and 2 in processes 1, 2"),
        ([1, 3, 2, 3], "x is 1 in process 0 and 3 in processes 1, 3 and 2 in process 2"),
        ([None, 1], "x is None in process 0 and 1 in process 1"),
        ([(), (1,)], "x is [] in process 0 and [1] in process 1"),
        (["a", (DATA, 1)], f"x is 'a' in process 0 and {[str(DATA), 1]!r} in process 1"),
        ([0, *[1] * 8], "x is 0 in process 0 and 1 in processes 1, 2, 3, 4, 5, 6, 7, 8"),
        ([0, *[1] * 9], "x is 0 in process 0 and 1 in processes 1, 2, 3, 4, 5, 6, 7, 8, ..."),
        ([b"y", b"x", b"y", b"z", b"x"], "x of processes 1, 3, 4 are not those of process 0"),
        ([2, b"x"], "x is 2 in process 0 and None in process 1, and x of process 1 are not those of process 0"),
    ],
)
def test_whose_facts_are_others_and_what_they_are(facts: list[Any], said: str) -> None:
    assert sentence(*({"x": x, "y": 1} for x in facts)) == f"processes must agree, but {said}."


def test_facts_that_one_alone_has_are_named_after_the_others() -> None:
    said = "a is 1 in process 0 and 2 in process 1, and b is None in process 0 and 3 in process 1"
    assert sentence({"a": 1}, {"a": 2, "b": 3}) == f"processes must agree, but {said}."


def test_a_process_that_is_alone_asks_nobody() -> None:
    assert agree(SimpleNamespace(size=1), {"x": 1}) is None  # pyright: ignore[reportArgumentType]


def test_versions_are_among_the_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(name: str) -> str:
        raise PackageNotFoundError(name)

    def told() -> tuple[dict[str, str], dict[str, str]]:
        peers = Peers(2)
        agree(peers, {"mu": 0.5})  # pyright: ignore[reportArgumentType]
        return json.loads(bytes(peers.said))

    monkeypatch.setattr(_agreement.platform, "python_version_tuple", lambda: ("3", "99", "5"))
    monkeypatch.setattr(_agreement.np, "__version__", "9.8.7")
    monkeypatch.setattr(_agreement, "sources", lambda: "abc")
    for version, said in ((lambda name: f"{name} 1.2", "dualopt 1.2"), (none, "not installed")):
        monkeypatch.setattr(_agreement, "version", version)
        shown, hidden = told()
        versions = {"version of dualopt": said, "version of NumPy": "9.8.7", "version of Python": "3.99"}
        assert shown == {**versions, "mu": 0.5}
        assert hidden == {"sources of dualopt": "abc"}


# --- hosts ----------------------------------------------------------------------------------------------------------

HOSTS, CENSUS = ["ulm", "lyon", "basel"], census()
KIND: dict[str, Any] = {"zero": np.zeros((2, 3)), "is_sparse": True, "offers": ("samples",), "gradient_cost": 2.0}
KIND |= {"usual_weight": None, "n_features": 3, "linear_ridge": 0.25, "classes": "[1]", "free_intercept": True}
KIND |= {"shift_invariant": True, "nonnegative": True, "kink_at_label": True}


@pytest.mark.parametrize("name", [*KIND, "dtype"])
def test_clients_of_hosts_are_of_one_kind(name: str) -> None:
    dtypes = {"zero": np.zeros(CENSUS.zero.shape, np.float32)}
    changed = census(**(dtypes if name == "dtype" else {name: KIND[name]}))
    require_agreement([CENSUS] * 3, HOSTS, "")
    said = "shape" if name == "zero" else name
    values = [_agreement._common(x)[said] for x in (CENSUS, changed)]
    for found, h in (([CENSUS, CENSUS, changed], 2), ([CENSUS, changed, CENSUS], 1)):
        with pytest.raises(ValueError, match=f"^clients must agree on {said}, but it is ") as error:
            require_agreement(found, HOSTS, "")
        assert str(error.value).endswith(f"is {values[0]} on host ulm and {values[1]} on host {HOSTS[h]}.")


def test_another_project_is_named_before_what_comes_of_it() -> None:
    found = [CENSUS, census(n_features=9), census(project="abc")]
    said = "^project must be the same everywhere, but it is '' here and 'abc' on host basel\\.$"
    with pytest.raises(ValueError, match=said):
        require_agreement(found, HOSTS, "")
    with pytest.raises(ValueError, match=r"^project .* it is 'abc' here and '' on host lyon"):
        require_agreement(found[::-1], HOSTS[::-1], "abc")


@pytest.mark.parametrize(
    ("clients", "said"),
    [
        ([None, None, None], [(0,), (1, 2), (3,)]),
        ([(3,), (0, 2), (1,)], [(3,), (0, 2), (1,)]),
        ([(0,), (1, 2), None], "clients of host basel have no numbers, and those of others have."),
        ([None, (1, 2), (0,)], "clients of host ulm have no numbers, and those of others have."),
        ([(0,), (1,), (2,)], "clients of host lyon must be 2 numbers."),
        ([(0,), (1, 2), (2,)], "clients of all hosts together must have the numbers 0 to 3, each once."),
        ([(1,), (2, 3), (4,)], "clients of all hosts together must have the numbers 0 to 3, each once."),
        ([(-1,), (0, 1), (2,)], "clients of all hosts together must have the numbers 0 to 3, each once."),
    ],
)
def test_clients_are_numbered(clients: list[Any], said: Any) -> None:
    found = [census(clients=own, n_clients=n) for own, n in zip(clients, (1, 2, 1), strict=True)]
    if isinstance(said, list):
        assert numbered(found, HOSTS) == said
    else:
        with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
            numbered(found, HOSTS)
