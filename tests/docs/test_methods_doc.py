"""What docs/methods.md says of the methods is true."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import fields, replace
from fractions import Fraction
from itertools import combinations, islice, product
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualopt.methods
from dualopt.engine.rounds import Snapshot, State, advance, iterate
from dualopt.methods._theorem import ANY_LAW, COIN
from dualopt.methods.participation import COHORTS, EVERYBODY, SKIPPED, UNIFORM, CommunicateWithProbability, Schedule
from dualopt.solvers import Gradient
from dualopt.solvers.stopping import GradientReduction, Steps
from dualopt.spec.discover import discover
from tests.problems import quadratic
from theory import _claims

DOCUMENT = Path(__file__).parents[2] / "docs" / "methods.md"
TEXT = DOCUMENT.read_text()
ALGORITHMS = discover(dualopt.methods)
NOTHING = "–"  # noqa: RUF001

every_method = pytest.mark.parametrize("name", ALGORITHMS)


def cells(line: str) -> list[str]:
    """What stands in a row of a table, without references to notes."""
    return [re.sub(r" ?<sup>.*?</sup>", "", cell).strip() for cell in line.strip("|").split("|")]


def tables() -> list[list[dict[str, str]]]:
    """The rows of every table that has one for each method."""
    blocks = [block.splitlines() for block in re.findall(r"(?:^\|.*\n)+", TEXT, flags=re.MULTILINE)]
    named = [(cells(head), rows) for head, _, *rows in blocks if head.startswith("| method |")]
    return [[dict(zip(head, cells(row), strict=True)) for row in rows] for head, rows in named]


def row(name: str) -> dict[str, str]:
    """All that is said of a method."""
    return {
        column: cell for table in tables() for r in table if r["method"] == f"[`{name}`]" for column, cell in r.items()
    }


def value(formula: str, **names: Any) -> Any:
    """Evaluate a formula of the document; a product may be written with a space, as in ``2 (N - P)``."""
    product_sign = re.sub(r"(\d) (?=[(a-z])", r"\1*", formula.strip("`"))
    return eval(product_sign, {"sqrt": math.sqrt, "log": math.log, "ceil": math.ceil, **names})


def constants(method: Any, f: Any) -> dict[str, Any]:
    """The parameters of a method and the constants of the problem that formulas may use."""
    K = method.stop.steps if isinstance(getattr(method, "stop", None), Steps) else None
    known = {"mu": f.mu.min(), "mu_j": f.mu, "L": f.L.max(), "L_j": f.L, "N": f.n_clients, "K": K}
    return {**vars(method), **known, "fraction": 1.0}  # nobody said that some do not take part


def test_every_method_has_one_row_in_each_table() -> None:
    assert len(tables()) == 3
    for table in tables():
        assert Counter(r["method"] for r in table) == Counter(f"[`{name}`]" for name in ALGORITHMS)


def second_rounds(name: str, active: int) -> list[Snapshot]:
    """The second round for every pair of cohorts in the first and the second, from enough numbers to tell scalars."""
    f = quadratic(n=3, d=20)
    if "partial" not in ALGORITHMS[name].supports:
        return [next(islice(iterate(ALGORITHMS[name](), f), 1, None))]
    cohorts = combinations(range(f.n_clients), active)
    chances = [Schedule(clients=pair) for pair in product(cohorts, repeat=2)]
    return [next(islice(iterate(ALGORITHMS[name](), f, participation=chance), 1, None)) for chance in chances]


@every_method
def test_what_is_sent_is_measured(name: str) -> None:
    for active in (1, 2, 3) if "partial" in ALGORITHMS[name].supports else (3,):
        rounds = second_rounds(name, active)
        told = {"N": Fraction(3), "P": Fraction(active), "scalar": Fraction(1, 20), "scalars": Fraction(1, 20)}
        for column, sent in (("up", "floats_up"), ("down", "floats_down")):
            models = Fraction(sum(getattr(s, sent) for s in rounds), 20 * active * len(rounds))
            assert value(row(name)[column], **told) == models


@pytest.mark.parametrize("name", [name for name, kind in ALGORITHMS.items() if "skip" in kind.supports])
def test_rounds_that_skip_communication_send_nothing(name: str) -> None:
    f, coin = quadratic(n=3, d=20), CommunicateWithProbability(probability=0.5)
    _, *rounds = islice(iterate(ALGORITHMS[name](), f, participation=coin), 12)
    assert {s.round.communicate for s in rounds} == {False, True}
    for s in rounds:
        models = (Fraction(s.floats_up, 60), Fraction(s.floats_down, 60))
        assert models == ((value(row(name)["up"]), value(row(name)["down"])) if s.round.communicate else (0, 0))


@every_method
def test_what_a_method_admits(name: str) -> None:
    admits = row(name)["admits"]
    assert (set() if admits == NOTHING else set(admits.split(", "))) == ALGORITHMS[name].supports


def is_biased(name: str) -> bool:
    """Whether a method has no fixed point at the minimiser, as it says itself."""
    f = quadratic()
    return ALGORITHMS[name]().suggested(f).fixed_point(f, f.minimiser()) is None


@every_method
def test_whether_the_fixed_point_is_exact(name: str) -> None:
    assert row(name)["fixed point"] == ("biased" if is_biased(name) else "exact")


@pytest.mark.parametrize(
    ("name", "exact"), [("fedcm", True), ("fedavg", True), ("feddualavg", True), ("fedsam", False)]
)
def test_one_step_and_all_clients_make_some_of_them_exact(name: str, exact: bool) -> None:
    f = quadratic()
    once = iterate(ALGORITHMS[name](stop=Steps(steps=1)), f, theta0=f.minimiser())
    moved = np.linalg.norm(next(islice(once, 4, None)).server.theta - f.minimiser())
    assert moved < 1e-13 if exact else moved > 1e-3


def test_rounds_without_communication_move_the_fixed_point_of_fedpd() -> None:
    """Of Scaffnew they do not, which therefore has no such note."""
    f, moved = quadratic(), {}
    for name in ("fedpd", "scaffnew"):
        method = ALGORITHMS[name]().suggested(f)
        state = State(*method.fixed_point(f, f.minimiser()))
        silent = next(s.round for s in iterate(method, f, participation=CommunicateWithProbability(probability=1e-9)))
        for _ in range(2):
            state, _, _ = advance(method, f, state, silent)
        moved[name] = np.linalg.norm(state.clients.theta - f.minimiser())
    assert moved["scaffnew"] < 1e-13
    assert moved["fedpd"] > 1e-3


class Watched(Gradient):
    """Gradient steps that show what they were asked to solve."""

    seen: list[Any] = []  # noqa: RUF012

    def __call__(self, problem, *others):
        self.seen.append(problem)
        return super().__call__(problem, *others)


@every_method
def test_the_local_problem(name: str) -> None:
    """The weight by its formula; whether there are a linear term and a center, after eight rounds from zero states."""
    f, told = quadratic(), row(name)
    method = ALGORITHMS[name]().suggested(f)
    if method.solver is not None:
        method = replace(method, solver=Watched(step=getattr(method.solver, "step", None)))
    Watched.seen.clear()
    *_, last, _ = islice(iterate(method, f), 8)
    sent = {"t": getattr(last.message, "t", None), "w": getattr(last.message, "weight", None)}
    if name == "feddualavg" or method.solver is None:  # these follow the gradients of the losses themselves
        assert not Watched.seen
        assert (told["linear"], told["weight"], told["center"]) == ("0", "0", NOTHING)
        return
    problem = Watched.seen[-1]
    assert problem.weight == pytest.approx(value(told["weight"], **sent, **constants(method, f)))
    assert (told["linear"] != "0") == (problem.linear is not None and bool(np.any(problem.linear)))
    assert (told["center"] != NOTHING) == (problem.weight != 0)
    assert (told["center"] == "0") == (problem.center is not None and not np.any(problem.center))


@every_method
def test_the_default_local_work(name: str) -> None:
    told, kind = row(name)["local work"], ALGORITHMS[name]()
    stop = getattr(kind, "stop", Steps(steps=1))  # without the choice, it is one step
    if isinstance(stop, GradientReduction):
        assert told == "solve"
    elif stop is None:
        assert told == "as suggested"
    elif "solver" in {field.name for field in fields(kind) if not field.init}:
        counts = re.fullmatch(r"1(?: or (\d))? gradients?", told)
        assert counts is not None
        seen = [set(s.solution.gradients) for s in islice(iterate(kind, quadratic()), 4)]  # pyright: ignore[reportOptionalMemberAccess]
        assert set.union(*seen) == {1.0, float(counts[1] or 1)}
    else:
        told = re.fullmatch(r"(\d+) steps?(?:, (\d) gradients each)?(?: and (\d) gradient)?", told)
        snapshot = next(iterate(kind, quadratic()))
        assert told is not None
        assert snapshot.solution is not None
        assert int(told[1]) == stop.steps
        assert set(snapshot.solution.gradients) == {float(told[1]) * float(told[2] or 1) + float(told[3] or 0)}


@every_method
def test_suggested_parameters(name: str) -> None:
    """The formulas are what is filled in, and nothing else is but solvers and stopping rules that take no number."""
    f = quadratic()
    open_method = ALGORITHMS[name]()
    method = open_method.suggested(f)
    formulas = dict(re.findall(r"`([\w.]+) = ([^`]+)`", row(name)["suggested"]))
    for parameter, formula in formulas.items():
        assert attrgetter(parameter)(method) == pytest.approx(
            value(formula, **constants(method, f), min=min, max=max, mean=np.mean)
        )
    filled = {
        field.name
        for field in fields(method)
        if getattr(open_method, field.name) is None and getattr(method, field.name) is not None
    }
    if getattr(method.solver, "step", None) is None:
        filled -= {"solver"}
    if "regulariser" in filled:  # no number either: that of the problem
        assert method.regulariser == f.regulariser
        filled -= {"regulariser"}
    assert {parameter.partition(".")[0] for parameter in formulas} == filled


@pytest.mark.parametrize("name", [name for name in ALGORITHMS if not is_biased(name)])
def test_suggestions_outside_the_proved_range_are_called_so(name: str) -> None:
    f, told = quadratic(), row(name)
    method = ALGORITHMS[name]().suggested(f)
    if ALGORITHMS[name].theorems:
        said = method.guarantee(f, assumed(method))
        assert told["range that is proved"] != NOTHING
        assert ("outside" in told["suggested"]) == said.startswith("none")


SHORT = {
    EVERYBODY: "all",
    UNIFORM: "uniform cohorts",
    COHORTS: "cohorts of one size",
    ANY_LAW.words: "any law",
    COIN.words: "all, a coin",
    SKIPPED: "skipped rounds",
}


@every_method
def test_who_takes_part_is_what_the_theorems_cover(name: str) -> None:
    told, theorems = row(name)["who takes part"], ALGORITHMS[name].theorems
    assert (told == NOTHING) == (row(name)["range that is proved"] == NOTHING)
    if theorems:
        assert told.split("; ") == list(dict.fromkeys(SHORT[theorem.laws.words] for theorem in theorems))


def assumed(method: Any) -> Any:
    """Who takes part where it is not told: everybody, with communication as often as the method has it."""
    probability = getattr(method, "probability", None)
    return None if probability is None else CommunicateWithProbability(probability=probability)


def test_every_link_leads_to_what_it_names() -> None:
    """To a method, a claim, or the tests of a method; every reference has a link, and every link a reference."""
    links = dict(re.findall(r"^\[`([\w-]+)`\]: (\S+)$", TEXT, flags=re.MULTILINE))
    assert set(re.findall(r"\[`([\w-]+)`\](?!:)", TEXT)) == set(links)
    claims = {name: f"../{chapter.module.replace('.', '/')}.py" for name, chapter in _claims.discover().items()}
    methods = {name: f"../dualopt/methods/{name.replace('-', '_')}.py" for name in ALGORITHMS}
    for name, link in links.items():
        assert link == {**claims, **methods}.get(name, f"../tests/methods/{name}.py")
        assert (DOCUMENT.parent / link).is_file()


def test_every_bare_claim_is_linked() -> None:
    for name in set(_claims.discover()) & set(re.findall(r"`(\w+)`", TEXT)):
        assert not re.search(rf"(?<!\[)`{name}`(?!\])", TEXT)


SAYS = {"recalled": r"recalled|not\s+at\s+hand", "reconstructed": r"reconstruction"}


@every_method
def test_what_was_not_read_says_so_itself(name: str) -> None:
    basis, kind = row(name)["basis"], ALGORITHMS[name]
    assert basis in {"read", "read in FedPD", "recalled", "reconstructed", "own"}
    documented = f"{__import__(kind.__module__, fromlist=['x']).__doc__}\n{kind.__doc__}"
    if basis in SAYS:
        assert re.search(SAYS[basis], documented)
    else:
        assert not re.search("|".join(SAYS.values()), documented)
