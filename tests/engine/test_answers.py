"""What a server takes from hosts and what it does not, at the borders: one wrong number among right ones is enough."""

from __future__ import annotations

import math
from typing import Any

import array_api_strict
import numpy as np
import pytest

from dualopt.engine import _protocol as protocol
from dualopt.engine._answers import require_sound, unsound, usable_rows

INF, NAN, LEAST = math.inf, math.nan, 5e-324
CENSUS = protocol.ClientInfo(
    clients=None,
    n_clients=3,
    mu=np.array([0.5, -2.0, 0.0]),
    free_intercept=False,
    shift_invariant=False,
    mu_rounding=np.array([0.0, 0.5, 0.25]),
    L=np.array([0.75, 0.25, INF]),
    nonnegative=False,
    kink_at_label=False,
    weights=(1.0, 0.25, 8.0),
    zero=np.zeros((2, 4)),
    offers=(),
    gradient_cost=1.5,
    usual_weight=2.0,
    sizes=(2, 7, 1),
    max_rows=7,
    n_features=2,
    is_sparse=False,
    linear_ridge=0.5,
    classes='["no", "yes"]',
    project="",
)


def of(**changes: Any) -> protocol.ClientInfo:
    """The census with other fields; numbers in lists are those of an array."""
    return CENSUS._replace(**{name: np.array(x) if isinstance(x, list) else x for name, x in changes.items()})


RIGHT = {
    "as it is": {},
    "one client": {"n_clients": 1, "mu": [1.0], "mu_rounding": [0.0], "L": [1.0], "weights": (1,), "sizes": (7,)},
    "mu is not known": {"mu": [-INF, -2.0, 0.0], "mu_rounding": [INF, 0.5, 0.25], "L": [0.0, 0.25, INF]},
    "L is zero": {"mu": [0.0, -2.0, 0.0], "L": [0.0, 0.0, 0.0]},
    "L is below mu by rounding": {"L": [(1 - 1e-4) * 0.5, 0.25, INF]},
    "nothing need be known": dict.fromkeys(
        ["weights", "usual_weight", "sizes", "max_rows", "n_features", "linear_ridge"]
    ),
    "small numbers": {"weights": (LEAST,) * 3, "gradient_cost": LEAST, "usual_weight": LEAST, "linear_ridge": 0.0},
    "few rows and columns": {"sizes": (1, 1, 1), "max_rows": 1, "n_features": 1},
    "rows are not known": {"sizes": None, "max_rows": 1},
    "others have more rows": {"max_rows": 8},
    "no labels": {"classes": ""},
}
WRONG = {
    "n_clients": [0, -1],
    "mu": [[INF, -2.0, 0.0], [0.5, NAN, 0.0], [0.5, -2.0], [[0.5], [-2.0], [0.0]], [0, 0, 0]],
    "mu_rounding": [[0.0, 0.5, -LEAST], [0.0, NAN, 0.25], [0.0, 0.5, INF], [0.0, 0.5], [0, 0, 0]],
    "L": [
        [np.nextafter((1 - 1e-4) * 0.5, 0.0), 0.25, INF],
        [0.75, -LEAST, INF],
        [0.75, 0.25, NAN],
        [0.0, 0.25, INF],
        [0.75, 0.25],
        [1, 1, 1],
    ],
    "weights": [(1.0, 0.25), (1.0, 0.0, 8.0), (1.0, -1.0, 8.0), (INF, 1.0, 1.0), (1.0, NAN, 1.0), (1.0, 1.0, True)],
    "zero": [[0.0, 0.0, LEAST], [0.0, NAN], [0, 0]],
    "gradient_cost": [0.0, -1.0, INF, NAN],
    "usual_weight": [0.0, -1.0, INF, NAN],
    "linear_ridge": [-LEAST, INF, NAN],
    "sizes": [(2, 7), (2, 0, 1), (), (2, 7, 1, 1)],
    "max_rows": [6, -7],
    "n_features": [0, -1],
    "classes": ['{"a": 1}', "3", "[", "[" * 99999],
}


@pytest.mark.parametrize("changes", RIGHT.values(), ids=RIGHT)
def test_what_clients_can_be_is_taken_from_them(changes: dict[str, Any]) -> None:
    assert require_sound(of(**changes), "lyon") is None


@pytest.mark.parametrize(("name", "value"), [(name, x) for name, values in WRONG.items() for x in values])
def test_what_they_cannot_be_is_not(name: str, value: Any) -> None:
    said = f"^{'the zero model' if name == 'zero' else name} of host lyon must be .*"
    with pytest.raises(ValueError, match=said):
        require_sound(of(**{name: value}), "lyon")


def test_what_is_not_known_excuses_nobody_else() -> None:
    """Nor does a client without rows: its host's largest has at least one."""
    unknown = {"mu": [-INF, -2.0, 0.0], "mu_rounding": [INF, 0.5, INF]}
    with pytest.raises(ValueError, match=r"^mu_rounding of host lyon must be finite where mu is"):
        require_sound(of(**unknown), "lyon")
    with pytest.raises(ValueError, match=r"^max_rows of host lyon must be at least the 1 of its largest client"):
        require_sound(of(sizes=None, max_rows=0), "lyon")


# --- answers --------------------------------------------------------------------------------------------------------

N, SHAPE = 3, (2, 4)
ASKED = protocol.Evaluate("run", 0, np.zeros(SHAPE), True)
ROWS = {name: np.ones((N, *SHAPE)) for name in ("gradient", "dual")}
ROWS |= {name: np.zeros(N) for name in ("value", "value_error", "gradient_error", "conjugate", "dual_error")}
EVALUATED = protocol.Evaluated(**ROWS)
SUMS = protocol.PartialSums(np.zeros(9), np.zeros(SHAPE), np.zeros(SHAPE))
SOUND: dict[str, tuple[Any, Any]] = {
    "values": (protocol.Value("run", 0, np.zeros(SHAPE)), protocol.Valued(np.zeros(N))),
    "model": (protocol.Initial(3), protocol.Model(np.zeros(SHAPE))),
    "rows": (ASKED, EVALUATED),
    "rows without dual points": (ASKED, EVALUATED._replace(dual=None, conjugate=None, dual_error=None)),
    "sums": (ASKED._replace(partial_sums=True), SUMS),
    "sums without dual points": (ASKED._replace(partial_sums=True), protocol.PartialSums(np.zeros(5), SUMS[1], None)),
    "information": (
        protocol.Information("run", 0, np.zeros(SHAPE)),
        protocol.InformationFound(np.ones((N, *SHAPE)), np.ones((8, 8)), np.ones(SHAPE), np.ones((N, 8))),
    ),
}
ARRAYS = [(of, name) for of, (_, x) in SOUND.items() for name in x._fields if getattr(x, name) is not None]


@pytest.mark.parametrize(("of", "name"), ARRAYS)
def test_every_array_has_its_shape_and_type(of: str, name: str) -> None:
    request, answer = SOUND[of]
    assert unsound(request, answer, N, SHAPE) is None
    right = getattr(answer, name)
    for other in (right[1:], np.concatenate([right, right]), right[None], right[..., None]):
        said = unsound(request, answer._replace(**{name: other}), N, SHAPE)
        assert said == f"its {name} has the shape {other.shape}, not {right.shape}"
    assert unsound(request, answer._replace(**{name: right.astype(int)}), N, SHAPE) == f"its {name} has the type int64"
    assert unsound(request, answer._replace(**{name: right.astype(np.float32)}), N, SHAPE) is None


def test_rows_are_no_sums() -> None:
    for request, answer in ((ASKED, SUMS), (ASKED._replace(partial_sums=True), EVALUATED)):
        assert unsound(request, answer, N, SHAPE) == "it returns sums in place of rows, or rows in place of sums"


@pytest.mark.parametrize("name", ["dual", "conjugate", "dual_error"])
def test_a_part_of_dual_points_is_none(name: str) -> None:
    """A certificate would be made from the rest, which nothing could be compared with."""
    answer = EVALUATED._replace(**{name: None})
    assert unsound(ASKED, answer, N, SHAPE) == f"its {name} is missing"
    others = dict.fromkeys({"dual", "conjugate", "dual_error"} - {name})
    assert str(unsound(ASKED, EVALUATED._replace(**others), N, SHAPE)).endswith(" is missing")


@pytest.mark.parametrize("name", ["value_error", "gradient_error", "dual_error"])
def test_a_bound_is_not_below_zero(name: str) -> None:
    """One that is infinite, or no number, bounds nothing: no certificate rests on it."""
    for least, right in ((0.0, True), (-0.0, True), (LEAST, True), (INF, True), (NAN, True), (-LEAST, False)):
        said = unsound(ASKED, EVALUATED._replace(**{name: np.array([2.0, least, 0.0])}), N, SHAPE)
        assert said == (None if right else f"its {name} is a bound below 0")


@pytest.mark.parametrize("k", range(9))
def test_sums_of_sizes_and_bounds_are_not_below_zero(k: int) -> None:
    """Those of values, which come first, and of conjugates may be."""
    request, answer = SOUND["sums"]
    for least, right in ((0.0, True), (NAN, True), (INF, True), (-LEAST, k in (0, 5))):
        columns = np.where(np.arange(9) == k, least, 1.0)
        said = None if right else "it returns a sum of sizes that is below 0"
        assert unsound(request, answer._replace(columns=columns), N, SHAPE) == said
        if k < 5:
            assert unsound(request, protocol.PartialSums(columns[:5], SUMS[1], None), N, SHAPE) == said


GRADIENTS = [None, (), (0, 1.5, 3.0), (0.0,), np.array([0.0, 2.0]), np.array([1, 2])]
NO_GRADIENTS = [(1.0, -LEAST), (INF, 1.0), (1.0, NAN), (1.0, "1"), (True,), (None,), 3, "12", np.array(2.0), np.eye(2)]


@pytest.mark.parametrize(("counts", "right"), [*((x, True) for x in GRADIENTS), *((x, False) for x in NO_GRADIENTS)])
def test_gradients_are_counted_in_numbers(counts: Any, right: bool) -> None:
    said = unsound(None, protocol.Uploaded("run", 0, None, counts), N, SHAPE)
    assert said == (None if right else "it counts gradients in numbers that cannot be")


def test_no_more_is_compressed_than_is_there() -> None:
    upload = (np.ones(3), np.ones(3))
    for vectors, right in ((-1, False), (0, True), (2, True), (3, False)):
        said = unsound(None, protocol.Uploaded("run", 0, upload, None, vectors), N, SHAPE)
        assert said == (None if right else "it says of more vectors than it uploads that they were compressed")
    assert unsound(None, protocol.Uploaded("run", 0, None, None, 3), N, SHAPE) is None


def test_hosts_begin_at_a_round_and_agree_to_what_they_are_told() -> None:
    assert unsound(None, protocol.Started("run", 0), N, SHAPE) is None
    assert unsound(None, protocol.Started("run", -1), N, SHAPE) == "it has done a negative number of rounds"
    assert unsound(protocol.Align(7), protocol.Aligned(7), N, SHAPE) is None
    assert unsound(protocol.Align(7), protocol.Aligned(8), N, SHAPE) == "it agrees to something else"


ONE = np.array([1.0, INF, 2.0])
UPLOADS: dict[str, tuple[Any, tuple[int, ...], list[bool]]] = {
    "finite": (np.ones((3, 2)), (2,), [True] * 3),
    "sums may overflow": (np.full((3, 2), 1.5e308), (2,), [True] * 3),
    "one number of a model": (np.array([[1.0, INF], [0.0, 0.0], [-INF, 1.0]]), (2,), [False, True, False]),
    "numbers may be infinite": (ONE, (2,), [True] * 3),
    "but models of no axes are none": (ONE, (), [True, False, True]),
    "nor may they be minus infinity": (-ONE, (2,), [True, False, True]),
    "nor NaN": (ONE * [1.0, 1.0, NAN], (2,), [True, True, False]),
    "every part": ((ONE * [NAN, 1.0, 1.0], np.array([[1.0], [INF], [1.0]])), (2,), [False, False, True]),
    "integers": ((array_api_strict.ones(3, dtype=array_api_strict.int64), np.arange(3)), (2,), [True] * 3),
    "nothing": ((), (2,), [True] * 3),
}


@pytest.mark.parametrize("name", UPLOADS)
def test_uploads_count_that_are_finite(name: str) -> None:
    upload, shape, usable = UPLOADS[name]
    assert usable_rows(upload, 3, shape).tolist() == usable
