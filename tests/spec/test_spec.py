"""One grammar: object = text = JSON = TOML for everything that has a name, and one sentence for what is none."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, fields
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualopt.methods import DualFL, FedAvg
from dualopt.problem.data import available, partition_rules
from dualopt.problem.options import ProblemOptions
from dualopt.solvers import LBFGS, SGD
from dualopt.solvers.stopping import Gap, GradientReduction
from dualopt.spec import KINDS, Spec, built, described, names, plugins, required, resolved, types_in
from dualopt.spec._kinds import interface, name_of
from dualopt.spec._spec import _choices, _hints, _kind

EVERYTHING = [(kind, name) for kind in KINDS for name, known in names(kind).items() if isinstance(known, type)]
SHORT = [(kind, name) for kind in KINDS for name, known in names(kind).items() if isinstance(known, str)]
WORDS = st.text(max_size=8) | st.sampled_from(
    ["none", "true", "suggested", "inf", "1e3", "a b", "x, y=(1)", '"', "a:b"]
)
NUMBERS = st.floats(0.001, 0.999) | st.floats(allow_nan=False) | st.sampled_from([0.0, 1.0, 2, 1e-300, 12345678901234])
STARTS: dict[str, dict[str, Any]] = {
    "SecureBlocks": {"number": 3},  # where nothing is accepted without
    "Steps": {"steps": 2},
    "GradientNorm": {"tol": 0.5},
    "UniformSubset": {"size": 2},
    "WeightedSubset": {"size": 2},
    "Bernoulli": {"probability": 0.5},
    "CommunicateWithProbability": {"probability": 0.5},
    "Schedule": {"clients": ((0, 1), ())},
    "Blocks": {"number": 2},
    "SublinearSchedule": {"nu": 0.5},
    "LinearSchedule": {"rho": 0.5},
    "SGD": {"step": 0.5},
    "Sarah": {"gamma": 0.5},
}
PLUG_IN = '''
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dualopt import FedPD
from dualopt.regularisers import Regulariser, Zero
from dualopt.solvers import SGD, Gradient, LocalSolver
from dualopt.solvers.stopping import Stop


@dataclass(frozen=True, kw_only=True)
class Inner:
    length: float = 1.0
    label: str = "a"


@dataclass(frozen=True, kw_only=True)
class Mine(FedPD):
    """A method with a field of every kind."""

    flag: bool = True
    often: bool | None = True
    count: int | None = 3
    share: float | None = 0.5
    word: str = "w"
    maybe: str | None = "x"
    path: Path = Path("a")
    numbers: tuple[float, ...] | None = None
    whole: tuple[tuple[int, ...], ...] = ((1,), ())
    words: tuple[str | None, ...] = ()
    pair: tuple[int, str] = (1, "b")
    free: Any = None
    inner: Inner | None = Inner()
    several: tuple[Stop, ...] = ()
    steps: Gradient | SGD | None = None
    other: LocalSolver | None = None
    g: Regulariser = Zero()
'''


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A method of a file whose path needs quotes."""
    path = tmp_path_factory.mktemp("odd, (place)") / "my file.py"
    path.write_text(PLUG_IN)
    return plugins.load("methods", f"{path}:Mine", "algorithm")


def drawn(data: st.DataObject, target: Any, depth: int = 0) -> Any:
    """Return an object of a class whose parameters are drawn from the types of its fields, as far as it takes them."""
    hints, chosen = _hints(target), dict(getattr(target, "example", STARTS.get(target.__name__, {})))
    own = [f for f in fields(target) if f.init]
    for f in own:
        if f.name in required(target) or data.draw(st.booleans()):
            for _ in range(5):
                changed = chosen | {f.name: value(data, hints[f.name], depth)}
                if accepted(target, changed):
                    chosen = changed
                    break
    return target(**chosen)


def accepted(target: Any, arguments: dict[str, Any]) -> bool:
    try:
        target(**arguments)
    except (ValueError, TypeError):  # a Path where there is none
        return False
    return True


def value(data: st.DataObject, hint: Any, depth: int) -> Any:
    """Return a value that an annotation admits."""
    choice = data.draw(st.sampled_from(_choices(hint)))
    if get_origin(choice) is tuple:
        entry, *others = get_args(choice)
        if others and others[-1] is not ...:
            return tuple(value(data, one, depth + 1) for one in (entry, *others))
        return tuple(value(data, entry, depth + 1) for _ in range(data.draw(st.integers(0, 3))))
    if get_origin(choice) is list:
        return [value(data, get_args(choice)[0], depth) for _ in range(data.draw(st.integers(0, 3)))]
    kind = _kind(choice)
    if kind is not None:
        known = [one for one in names(kind).values() if isinstance(one, type)] if kind else [choice]
        return drawn(data, data.draw(st.sampled_from([choice] if choice in known else known)), depth + 1)
    plain = {
        NoneType: st.none(),
        bool: st.booleans(),
        int: st.integers(-1, 10**6),
        float: NUMBERS,
        str: WORDS,
        Path: st.sampled_from([Path("a"), Path("b c/d,e"), Path("/")]),
        Any: st.none() | st.booleans() | st.integers() | st.floats(-1e9, 1e9) | WORDS,
    }
    return data.draw(plain[choice])


def assert_round_trips(x: Any, kind: str, types: tuple[type, ...]) -> None:
    for full in (False, True):
        spec = Spec.of(x, full=full)
        text, source = str(spec), json.dumps(spec.to_json(), allow_nan=False)
        assert "\n" not in text
        assert str(Spec.parse(text)) == text
        for found in (
            Spec.parse(text),
            Spec.from_json(source),
            Spec.from_toml(spec.to_toml()),
            Spec.from_json(spec.to_json()),
        ):
            assert found.build(kind) == x
            assert found.build(kind, types) == x
    assert type(x) in types_in(x)


def test_kinds_have_an_interface_and_classes_know_their_names() -> None:
    assert {kind: interface(kind).__name__ for kind in KINDS} == {kind: one.interface for kind, one in KINDS.items()}
    known = [(kind, name_of(names(kind)[name], kind)) for kind, name in EVERYTHING]
    assert known == EVERYTHING


@pytest.mark.parametrize(("kind", "name"), EVERYTHING)
@settings(max_examples=25)
@given(data=st.data())
def test_everything_with_a_name_is_its_text_its_json_and_its_toml(kind: str, name: str, data: st.DataObject) -> None:
    x = drawn(data, names(kind)[name])
    assert Spec.of(x).name == name
    assert_round_trips(x, kind, ())


@settings(max_examples=100)
@given(data=st.data())
def test_so_is_a_plug_in_with_fields_of_every_type(mine: Any, data: st.DataObject) -> None:
    x = drawn(data, mine)
    assert Spec.of(x).name.endswith("my file.py:Mine")
    assert_round_trips(x, "algorithm", types_in(x))


@given(st.sampled_from(sorted(available())), st.sampled_from(sorted(partition_rules())), NUMBERS)
def test_so_are_data_and_partitions(data: str, partition: str, alpha: float) -> None:
    assert_round_trips(ProblemOptions(data=data, partition=partition, alpha=alpha), "problem", ())


@pytest.mark.parametrize(("kind", "name"), SHORT)
def test_what_is_short_for_more(kind: str, name: str) -> None:
    assert built(name, kind) == built(names(kind)[name], kind)


# What users type.


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("dualfl:rho=0,stop=gradient=1e-8", "dualfl: stop=(gradient: tol=1e-8), rho=0"),
        ("dualfl:solver=lbfgs,solver.history=5", "dualfl: solver=lbfgs: history=5"),
        ("dualfl: solver.history=5, solver=lbfgs", "dualfl: solver=(lbfgs: 5)"),
        ("fedsplit:stop.first=0.01", "fedsplit: stop=(reduction: first=0.01)"),
        ("fedsplit: stop=steps=3", "fedsplit: stop=(steps: steps=3)"),
        ("dualfl: rho=suggested, nu = 1", "dualfl: nu=1.0"),
        ("dualfl: stop=gap:schedule=linear:rho=0.5", "dualfl: stop=(gap: schedule=(linear: rho=0.5))"),
        ("giant: steps=[1, 0.5,]", "giant: steps=[1.0, 0.5]"),
        ("a-fedpd : solver = none", "a-fedpd"),
    ],
)
def test_texts_that_say_the_same(text: str, same: str) -> None:
    assert built(text, "algorithm") == built(same, "algorithm")


def test_values_without_a_name() -> None:
    assert built("schedule: [0, 1], [2]", "participation") == built("schedule: clients=[[0, 1], [2]]", "participation")
    assert built("blocks=3", "engine") == built("blocks: number=3", "engine")
    assert built("problem:digits", "problem") == ProblemOptions(data="digits")
    assert built("problem: digits, loss=huber:delta=0.5", "problem").loss == "huber: delta=0.5"


def test_parameters_that_are_added() -> None:
    spec = Spec.parse("dualfl: solver=sgd: step=1").given({"solver.step": "0.5", "rho": "0.25", "nu": 0.5})
    assert spec.build("algorithm") == DualFL(rho=0.25, nu=0.5, solver=SGD(step=0.5))
    assert resolved(FedAvg(stop="reduction=0.5")).stop == GradientReduction(factor=0.5)  # type: ignore[arg-type]


def test_numbers_keep_their_digits_and_numpy_leaves_no_trace() -> None:
    method = DualFL(rho=np.float64(0.1), nu=1.0 / 3.0, solver=LBFGS(history=np.int64(3)))  # type: ignore[arg-type]
    assert str(Spec.of(method)) == f"dualfl: solver=(lbfgs: history=3), rho=0.1, nu={1.0 / 3.0!r}"
    assert described(method)["dualfl"]["nu"] == 1.0 / 3.0
    assert described(method)["dualfl"].keys() == {f.name for f in fields(DualFL)}


def test_a_record_shows_what_no_spec_can_say() -> None:
    method = FedAvg(stop=Gap(schedule=lambda round: 1.0))
    with pytest.raises(ValueError, match=r"^parameters must be words, numbers and objects .* not <function .*>\.$"):
        Spec.of(method)
    assert described(method)["fedavg"]["stop"]["gap"]["schedule"].startswith("<function ")


# What is refused.


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("dualfl: rho=x", "algorithm dualfl: rho must be a number, not 'x'."),
        ("dualfl: rho=none, nu=nan", "algorithm dualfl: nu must be a number, not 'nan'."),
        ("dualfl: rhoo=0", "parameter of algorithm dualfl must be one of solver, stop, rho, "),
        ("dualfl: rho=0, rho=1", "algorithm rho is given twice."),
        ("dualfl: 0, rho=1", "algorithm dualfl: rho is given twice."),
        ("dualfl: rho=", "algorithm must be of the form NAME: name=value, name=value; not 'dualfl: rho='."),
        ("dualfl: (rho=0", "algorithm must be of the form"),
        ('dualfl: "rho', "algorithm must be of the form"),
        ("dualfll", "algorithm must be one of a-fedpd, "),
        ("dualfl: solver=lbfgs: precondition=maybe", "solver lbfgs: precondition must be true or false, not 'maybe'."),
        ("dualfl: solver=lbfgs: history=two", "solver lbfgs: history must be a whole number, not 'two'."),
        ("dualfl: solver=lbfgs: history=2.5", "solver lbfgs: history must be a whole number, not '2.5'."),
        ("dualfl: solver=exact: history=2", "solver exact has no parameters: history is unknown."),
        ("dualfl: solver=sgd", "solver sgd needs step: write 'sgd: step=...'."),
        ("dualfl: solver.history=2", "solver must be named for solver.history: without a name the objective decides"),
        ("giant: solver=lbfgs", "solver cannot be given because algorithm giant has none."),
        ("dualfl: stop=never=1", "stop must be one of steps, gradient, reduction, energy, gap; not 'never'."),
        ("dualfl: stop=steps:0", "stop steps: steps must be at least 1, not 0."),
        ("dualfl: rho=[1]", "algorithm dualfl: rho must be a number, not ['1']."),
        ("dualfl: rho=(lbfgs: 3)", "algorithm dualfl: rho must be a number, not 'lbfgs: 3'."),
        ("dualfl: rho=1.5", "algorithm dualfl: rho must lie in [0, 1), not 1.5."),
        ("fedsplit: solver=my.py:Missing:1", "solver 'my.py:Missing': there is no file 'my.py'."),
        ("dualfl: solver=dualopt.losses.hinge:Hinge", "solver 'dualopt.losses.hinge:Hinge': Hinge is no local solver"),
        ("dualfl: " + "solver=(" * 10**4 + "x" + ")" * 10**4, "algorithm must not be nested more than 20 times."),
        ("dualfl: " + "stop=gap:" * 10**4 + "1", "algorithm must not be nested more than 20 times."),
        ("dualfl: scales=" + "[" * 10**4, "algorithm must not be nested more than 20 times."),
    ],
)
def test_a_wrong_text_is_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=r"^[^\n]*\.$") as error:
        built(text, "algorithm")
    assert str(error.value).startswith(sentence)


@pytest.mark.parametrize(
    "source",
    [
        "7",
        "[]",
        "null",
        "no json",
        '"dualfl"',
        "{}",
        '{"dualfl": 3}',
        '{"dualfl": {}, "fedpd": {}}',
        '{"dualfl": {"rho": 0, "rho": 1}}',
        '{"dualfl": {"rho": true}}',
        '{"dualfl": {"rho": NaN}}',
        '{"dualfl": {"solver": {"lbfgs": {"precondition": 1}}}}',
        '{"dualfl": {"scales": {"a": {}}}}',
        '{"dualfl": {"solver": 3}}',
        '{"dualfl": {"solver": {"lbfgs": {"history": 2.0}}}}',
        '{"dualfl": {"solver": {"dualfl": {}}}}',
        '{"dualfl": {"solver": "os:system"}}',
        '{"dualfl": {"rhoo": 0}}',
        '{"fedsplit": {"solver": {"sgd": {}}}}',
        '{"os:system": {}}',
        '{"dualopt.lab.testing:Evil": {}}',
        '{"tests.spec.test_spec:Loaded": {}}',
        '{"lbfgs": {}}',
        "[" * 10**5,
        '{"dualfl": {"solver": ' * 50 + "1" + "}}" * 50,
    ],
)
def test_what_came_over_a_wire_is_refused_and_nothing_is_looked_up_for_it(
    source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("find", "load", "load_module", "entry_points"):
        monkeypatch.setattr(plugins, name, lambda *_: pytest.fail("looked up"))
    with pytest.raises(ValueError, match=r"^[^\n]*\.$"):
        Spec.from_json(source).build("algorithm", [Loaded])


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """A class that the site has loaded, and that is no method."""


@pytest.mark.parametrize(
    "text", ["[", "a = 1", "[dualfl]\n[fedpd]", "[dualfl]\nrho = 1\nrho = 2", "x = " + "[" * 10**4]
)
def test_a_wrong_table_is_one_sentence(text: str) -> None:
    with pytest.raises(ValueError, match=r"^spec [^\n]*\.$"):
        Spec.from_toml(text)


def test_a_class_of_the_users_own_is_found_where_it_was_loaded_whatever_its_path(mine: Any) -> None:
    source = Spec.of(mine(share=0.25)).to_json()
    (arguments,) = source.values()
    elsewhere = {"/another/place.py:Mine": arguments}
    assert Spec.from_json(elsewhere).build("algorithm", [mine]) == mine(share=0.25)
    with pytest.raises(ValueError, match=r"which is not known here"):
        Spec.from_json(source).build("algorithm", [])


@settings(max_examples=500)
@given(st.text(alphabet='ab1.-:=,()[]" \\\n', max_size=12))
def test_any_text_is_a_spec_or_a_sentence(text: str) -> None:
    try:
        spec: Spec | None = Spec.parse(text)
    except ValueError:
        spec = None
    if spec is not None:
        assert Spec.parse(str(spec)) == spec
        return
    with pytest.raises(ValueError, match=r"^spec [^\n]*\.$"):
        Spec.parse(text)


def test_infinite_numbers_have_a_text_and_json() -> None:
    spec = Spec("dualfl", {"rho": math.inf, "nu": -math.inf})
    assert str(spec) == "dualfl: rho=inf, nu=-inf"
    assert spec.to_json() == {"dualfl": {"rho": "inf", "nu": "-inf"}}
