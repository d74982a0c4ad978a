"""The chapters of the course: their texts, their words, their exercises, the program; browsers are asked elsewhere."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import mpmath
import numpy as np
import pytest

import figures.lessons
from dualopt.lab.claims import check
from dualopt.methods import AFedPD, Algorithm, DualAscent
from dualopt.objectives import Quadratic
from dualopt.solvers import Exact
from figures.lessons import (
    CHAPTERS,
    averaging,
    bound,
    chain,
    coin,
    drift,
    load,
    momentum,
    names,
    phases,
    show,
    stopping,
    worst,
    wrong,
    your_own,
)
from figures.lessons._beside import with_method
from figures.lessons._export import exported
from figures.lessons._parts import Chart, Plane, Slider, to_json
from figures.lessons._program import main
from figures.lessons._quantities import constant, evaluate, form, linear, names_of, squares, tabulate
from figures.lessons._tables import start
from figures.lessons._text import PARTS, definitions, glossary, parts, text_of
from figures.lessons._world import clients, curvature
from tests.programs import called
from theory._cases import Case
from theory.limits import afedpd_least_rho, fedadmm_drift, fedadmm_limit, fedavg_limit

ROOT = Path(__file__).resolve().parents[2]
every_chapter = pytest.mark.parametrize("name", CHAPTERS)
HERE = start(load("averaging"))  # where both minimisers are at first


# Texts.


def test_every_module_without_an_underscore_is_a_chapter() -> None:
    folder = Path(figures.lessons.__path__[0])
    assert sorted(p.stem for p in folder.glob("[!_]*.py")) == sorted(CHAPTERS)
    assert sorted(p.stem for p in folder.glob("*.md")) == sorted([*CHAPTERS, "course", "glossary"])
    assert len(CHAPTERS) == 12


@every_chapter
def test_a_text_has_its_parts_and_leads_somewhere(name: str) -> None:
    text, chapter = text_of(name), load(name)
    assert text.startswith(f"# {chapter.title}\n")
    assert tuple(parts(text)) == PARTS
    new = parts(text)["What is new"]
    assert 2 <= len(re.findall(r"[.?!](?=\s|$)", new)) <= 3  # sentences
    assert len(new.split()) <= 120
    exercises, solutions = (re.findall(r"^\d+\. ", parts(text)[part], re.MULTILINE) for part in PARTS[4:6])
    assert len(exercises) == len(solutions) == 3
    teachers = parts(text)["For teachers"]
    assert "Misconceptions:" in teachers
    assert "Marks, of 6:" in teachers
    for theorem in chapter.theorems:
        file = f"{theorem.claim.compare.__module__.replace('.', '/')}.py"
        assert f"[`{theorem.claim.name}`](../../{file})" in teachers
    for link in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        assert (ROOT / "figures" / "lessons" / link).exists(), link
    assert set(chapter.needs) <= set(CHAPTERS[: CHAPTERS.index(name)])
    assert 5 <= chapter.minutes <= 15
    assert "{" not in text


NO_WORDS = {  # what a page reads and does not write
    *("answer", "at", "dash", "derived", "ink", "inks", "kind", "left", "links", "mark", "name", "needs", "of", "over"),
    *("right", "shape", "sign", "x", "y"),
}


def words_of(value: Any) -> list[str]:
    """Return everything that a page says of a chapter beside its text."""
    if isinstance(value, dict):
        return [w for k, v in value.items() if k not in NO_WORDS for w in words_of(v)]
    if isinstance(value, list):
        return [w for v in value for w in words_of(v)]
    return [value] if isinstance(value, str) else []


def forms_of(term: str) -> str:
    """Return a pattern that finds a term, in the singular, the plural and other forms of a verb.

    Examples
    --------
    >>> bool(re.search(forms_of("converges"), "it Converged")), bool(re.search(forms_of("dual"), "duality"))
    (True, False)
    """
    return rf"(?i)(?<![\w-]){re.escape(term.removesuffix('s').removesuffix('e'))}(?:e?s|e?d|e|ing)?(?![\w-])"


def test_every_term_is_defined_in_bold_before_it_is_used() -> None:
    """A chapter may use the terms of the glossary that it, or one before it, defines; teachers know all of them."""
    assert {term: where for term, (where, _) in glossary().items()} == {
        term: name for name in CHAPTERS for term in definitions(text_of(name))
    }
    early = []
    for k, name in enumerate(CHAPTERS):
        said = {part: body for part, body in parts(text_of(name)).items() if part not in ("What next", "For teachers")}
        judged = [word for t in load(name).theorems for word in (t.label, t.quantity)]
        text = " ".join([*said.values(), *words_of(to_json(load(name))), *judged])
        known = [term for term, (where, _) in glossary().items() if CHAPTERS.index(where) <= k]
        for term in sorted(known, key=len, reverse=True):  # a longer term may hold a shorter one
            text = re.sub(forms_of(term), "", text)
        early += [(name, term) for term in glossary() if term not in known and re.search(forms_of(term), text)]
    assert early == []


def test_the_glossary_says_each_term_in_a_sentence() -> None:
    for term, (_, said) in glossary().items():
        assert re.fullmatch(r"[^.?!]+[.]", said), term
        assert len(said.split()) <= 30, term


def test_sizes_of_sliders_leave_no_whole_number_out() -> None:
    """A first or smallest number is one of all numbers, and what is compared is what is drawn."""
    for name, key in (("averaging", "K"), ("stopping", "K"), ("names", "active")):
        (slider,) = (s for s in load(name).sliders if s.name == key)
        assert list(slider.values) == list(range(1, len(slider.values) + 1))
    hundredths = [round(100 * p) for p in coin.SKIPS]
    assert hundredths == list(range(1, len(hundredths) + 1))
    for name in ("momentum", "wrong", "stopping"):
        chart = load(name).chart
        assert isinstance(chart, Chart)
        assert chart.theorem == 0
        assert {"lhs0", "rhs0"} <= {curve.of for curve in chart.curves}


def test_sliders_and_drags_refuse_what_they_do_not_have() -> None:
    with pytest.raises(ValueError, match=r"^slider a: 3 is none of its values"):
        Slider(name="a", label="a", values=(1, 2), start=3)
    with pytest.raises(
        ValueError, match=r"^chapter must be one of averaging, .*; not 'chian' \(did you mean chain\?\)"
    ):
        load("chian")


# Tables: what they hold is what was measured.


def test_tables_give_affine_and_quadratic_functions_everywhere() -> None:
    rng = np.random.default_rng(0)
    M, q = rng.standard_normal((2, 3)), rng.standard_normal((3, 3))

    def measure(u: np.ndarray, *, k: int) -> dict[str, Any]:
        return {
            "affine": linear(k * M @ u + [1.0, 2.0]),
            "length": squares(M @ u - k, rounds=False),
            "form": form([u @ q @ u + k * u[0] + 5.0]),
            "homogeneous": form(u @ q @ u),
            "constant": constant(k),
        }

    found, u = tabulate(measure, 3, {"k": (1, 7)}), rng.standard_normal(3)
    for i, k in enumerate((1, 7)):
        truth = measure(u, k=k)
        for name, (kind, values, _) in truth.items():
            wanted = np.sum(values**2) if kind == "squares" else values
            assert np.allclose(evaluate(found[name], u)[i], wanted, rtol=1e-12, atol=1e-12), name
    assert found["homogeneous"].table.shape == (2, 6)
    assert found["form"].table.shape == (2, 1, 10)


def test_a_table_of_what_is_not_quadratic_is_noticed() -> None:
    found, u = tabulate(lambda u: {"cube": form(u[0] ** 3)}, 1, {}), np.array([2.0])
    assert abs(evaluate(found["cube"], u) - 8.0) > 1.0


# Exercises, and the answers of the pages. What a text says stands in it.


def solution(name: str) -> str:
    return parts(text_of(name))["Solutions"]


def exact_distances(most: int) -> list[Any]:
    """Return the distances of the ends of FedAvg from the solution for K = 1, 2, ..., for the matrices as stored."""
    A = [mpmath.matrix(a.tolist()) for a in curvature()]
    m = [mpmath.matrix(x.tolist()) for x in HERE.reshape(2, 2)]
    s, one = 1 / mpmath.mpf(float(np.max(clients(HERE).L))), mpmath.eye(2)
    best = mpmath.lu_solve(A[0] + A[1], A[0] * m[0] + A[1] * m[1])
    powers, Q, found = [one, one], [mpmath.zeros(2), mpmath.zeros(2)], []
    for _ in range(most):
        Q = [q + power for q, power in zip(Q, powers, strict=True)]
        powers = [power * (one - s * a) for power, a in zip(powers, A, strict=True)]
        end = mpmath.lu_solve(Q[0] * A[0] + Q[1] * A[1], Q[0] * A[0] * m[0] + Q[1] * A[1] * m[1])
        found.append(mpmath.norm(end - best))
    return found


def test_averaging() -> None:
    f = Quadratic(A=np.array([[[1.0]], [[4.0]]]), b=np.array([[0.0], [4.0]]))
    ends = [float(fedavg_limit(f, step=0.25, K=K)[0]) for K in (1, 2, 1000)]
    assert np.allclose(ends, [4 / 5, 16 / 23, 1 / 2])
    with mpmath.workdps(50):
        away = exact_distances(len(averaging.STEPS))
    first = next(K for K, d in zip(averaging.STEPS, away, strict=True) if d >= 1)
    assert first == 40
    assert round(float(away[first - 2]), 3) == 0.998
    assert "K = 40; for 39 the distance is 0.998" in solution("averaging")
    table = tabulate(averaging.models, 4, {"K": (1, 39, 40)})["square"]
    wanted = [float(away[K - 1]) for K in (1, 39, 40)]
    assert np.allclose(np.sqrt(evaluate(table, HERE)), wanted, rtol=1e-12, atol=1e-14)


def test_bound() -> None:
    x = np.linspace(-6.0, 2.0, 8001)
    below = 2.0 + 4.0 * (x - 1.0) + 0.5 * (x - 1.0) ** 2
    assert (round(float(below.min()), 6), float(x[below.argmin()])) == (-6.0, pytest.approx(-3.0))
    u = np.array([*HERE, 2.6, 2.2, 2.6, 2.2])
    f, found = clients(HERE), bound.certified(u)
    slope = f.mean(f.gradient(u[4:6]))
    assert found["certificate"].values == pytest.approx(float(slope @ slope) / (2.0 * f.mean_mu))
    best = np.array([*HERE, 2.6, 2.2, *f.minimiser()])
    found = bound.certified(best)
    assert found["certificate"].values == pytest.approx(np.sum(found["error"].values ** 2))


def test_momentum() -> None:
    assert [math.ceil(math.log(1000) / -math.log(1 - 1 / k)) for k in (100, 10)] == [688, 66]
    times = dict.fromkeys(momentum.TIMES, "")
    for rho in times:
        times[rho] = check(momentum.theorem_3_3, momentum.dualfl(HERE, rho=rho), check_assumptions=False).verdict
    assert [rho for rho, verdict in times.items() if verdict == "violated"] == [8.0]
    witness = check(momentum.theorem_3_3, momentum.dualfl(HERE, rho=8.0), check_assumptions=False).witness
    assert witness is not None
    assert (witness.n, witness.what) == (23, "dual error")
    assert "Between 6.3 and 8" in solution("momentum")
    assert "from round 23 on" in solution("momentum")
    compared = [q for q in momentum.theorem_3_3(momentum.dualfl(HERE, rho=8.0)) if q.what == "dual error"]
    assert [q.n for q in compared if q.lhs > q.rhs] == list(range(23, momentum.ROUNDS + 1))
    together = momentum.with_momentum(np.array([1.0, 2.0, 1.0, 2.0]), rho=1.0)
    assert np.max(np.abs(together["dual"].values)) < 1e-12


def test_stopping() -> None:
    assert pytest.approx(0.04) == 0.2**2 / (2 * (1 - 0.5))
    assert next(K for K in range(100) if (7 / 8) ** (2 * K) <= 1 / 100) == 18
    admitted = stopping.admitted(HERE)["admitted"].values
    share = {K: stopping.both_sides(HERE, K=K)["rhs"].values / admitted for K in stopping.STEPS}
    smallest = next(K for K in stopping.STEPS if np.max(share[K]) <= 1.0)
    assert smallest == 5
    late = np.argwhere(share[4] > 1.0)
    assert (late + 1).tolist() == [[2, 2]]  # round 2, client 2
    assert np.min(np.abs(share[4] - 1.0)) > 1e-6  # no rounding decides
    assert "K = 5. With 4 steps client 2 stops too early in round 2, and in no other." in solution("stopping")


def test_gaps_grow_like_squares_and_what_is_admitted_does_not() -> None:
    one, two = (stopping.both_sides(k * HERE, K=3)["lhs"].values for k in (1.0, 2.0))
    assert np.allclose(two, 4.0 * one, rtol=1e-9)
    assert np.array_equal(stopping.admitted(HERE)["admitted"].values, stopping.admitted(2.0 * HERE)["admitted"].values)


def test_names() -> None:
    f = Quadratic(A=np.ones((1, 1, 1)), b=np.array([[4.0]]))
    after = next(Case.of(AFedPD(rho=1.0, solver=Exact()), f, rounds=1, theta0=np.zeros(1)).snapshots())
    assert after.local_models is not None
    assert float(after.local_models[0, 0]) == pytest.approx(2.0)
    assert float(abs(after.clients.dual[0, 0] + after.server.dual[0])) == pytest.approx(2.0)
    assert float(after.server.theta[0]) == pytest.approx(4.0)
    u = start(load("names"))
    models = names.models(u, active=3)
    apart = np.linalg.norm(models["FedDyn"].values - models["A-FedPD"].values, axis=1)
    assert int(np.argmax(apart > 1e-9)) + 1 == 1
    assert "In round 1." in solution("names")
    for active, (a, b) in product((1, 2, 3), product(names.METHODS, repeat=2)):
        found = names.models(u, active=active)
        same = np.max(np.abs(found[a].values - found[b].values)) < 1e-9
        assert same == (a == b or {a, b} == {"FedADMM", "FedDR"})


def test_drift() -> None:
    assert fedadmm_drift(0.5, 1.0) == 0.25
    assert [fedadmm_limit(0.25, solution=x) for x in (2.0, 1.0)] == pytest.approx([8 / 3, 4 / 3])
    assert fedadmm_drift(3.0, 0.75) == pytest.approx(1.0)
    assert [fedadmm_drift(rho, 0.5) for rho in drift.WEIGHTS] == [0.0] * len(drift.WEIGHTS)
    assert fedadmm_drift(1.0, 3 / 10) < 0  # of ten clients that is P/N, whose drift is measured by another formula
    u = start(load("drift"))
    far = drift.fedadmm(u, server=1.0, rho=0.5)
    assert np.linalg.norm(far["model"].values[-1] - far["limit"].values) < 0.01 * np.linalg.norm(far["limit"].values)


def test_coin() -> None:
    breaks = [((1 - a) ** 2 - a * a) / ((1 + 2 * a) ** 2 - a * a) for a in (0.1, 0.05)]
    assert [round(p, 3) for p in breaks] == [0.559, 0.745]
    says = {}
    for p in coin.SKIPS:
        found = coin.both_sides(HERE, p=p)
        says[p] = float(found["rhs"].values[-1] / found["trivial"].values)
    largest = max(p for p, share in says.items() if share < 1.0)
    assert largest == 0.46
    assert says[0.46] < 1.0 - 1e-6 < 1.0 + 1e-6 < says[0.47]
    assert "p = 0.46; one hundredth more" in solution("coin")
    u = np.array([2.0, 0.3, 1.1, 2.4])  # the exact expectation, which pages make of two
    from theory._rounds import expected_squares

    measured = expected_squares(coin.fedpd(u, p=0.3), lambda s: s.clients.x0[0] - s.clients.x0[1])[-1]
    assert np.sum(coin.copies(u, p=0.3)["square"].values ** 2) == pytest.approx(measured, rel=1e-9)


def test_phases() -> None:
    assert afedpd_least_rho(3.0, -1.0) == pytest.approx((math.sqrt(13) - 1) / 2)
    kinds = phases.cells()[1]
    assert set(kinds[phases.APART.index(0.9)]) == {0}
    row = [phases.KINDS[k] for k in kinds[phases.APART.index(2.2)]]
    diverging = [step for step, kind in zip(phases.STEPS, row, strict=True) if kind == "diverges"]
    assert diverging == [2.27, 2.53]
    assert "2.27 and 2.53 of the slider: every step between 2.10 and 2.67" in solution("phases")
    assert (round(phases.longest(2.2), 2), round(3.2 / 1.2, 2)) == (2.1, 2.67)
    for s, line in zip(phases.APART, kinds, strict=True):
        for step, kind in zip(phases.STEPS, line, strict=True):
            assert (kind == 3) == (not phases.solvable(step, s))
            assert kind == 3 or (kind == 0) == (step < phases.longest(s))


def test_chain() -> None:
    q = [(math.sqrt(kappa) - 1) / (math.sqrt(kappa) + 1) for kappa in (9, 100)]
    assert q == pytest.approx([1 / 2, 9 / 11])
    assert next(n for n in range(100) if q[1] ** (2 * n) <= 1e-6) == 35
    for method, kappa in product(chain.METHODS, chain.KAPPAS):
        verdict = check(chain.convex_strong_attained, chain.race(np.zeros(0), method=method, kappa=kappa)).verdict
        assert (verdict == "holds") == (method == "FedSplit")


def worst_share(h1: float, h2: float) -> np.ndarray:
    """Return the largest share of the worst case that round clients of these curvatures reach in each round."""
    found = [worst.both_sides(np.array([e[0], 0.0, e[1], 0.0]), h1=h1, h2=h2) for e in np.eye(2)]
    error = np.stack([f["lhs"].values[:, 0] for f in found])  # (2, rounds), along one axis
    unit = np.stack([f["rhs"].values[0] / math.sqrt(worst.largest(1)) for f in found])
    G = unit @ unit.T
    shares = [error[:, n] @ np.linalg.lstsq(G, error[:, n], rcond=1e-12)[0] / worst.largest(n + 1) for n in range(8)]
    return np.array(shares)


def test_worst() -> None:
    u = np.array([1.6, 0.0, -0.1, 0.0])
    case = worst._run(tuple(u), 1.0, 16.0)
    assert case.theta == pytest.approx([0.0, 0.0], abs=1e-12)
    assert case.models()[0] == pytest.approx([0.75, 0.0])
    assert np.sum(worst._dual_points(case) ** 2) == pytest.approx(5.12)
    assert worst.errors(u, h1=1.0, h2=16.0)[0] == pytest.approx(0.5625 / 5.12, rel=1e-12)
    assert round(0.5625 / 5.12, 5) == 0.10986
    assert worst.largest(1) == pytest.approx(0.5625 / 5.12, rel=worst.CERTIFIED)
    most = np.max([worst_share(a, b) for a, b in product(worst.CURVATURES, repeat=2)], axis=0)
    assert most[0] == pytest.approx(1.0, abs=1e-4)
    assert np.all(most[1:] < 0.5)  # so the answer is: in the first round only
    assert most[1] > 0.45


@pytest.mark.parametrize("n", [1, 3])
def test_stored_worst_cases_are_those_of_the_program(n: int) -> None:
    pytest.importorskip("cvxpy")
    assert worst.solve(n) == pytest.approx(worst.largest(n), rel=10 * worst.CERTIFIED)


def test_wrong() -> None:
    def verdicts(line: str) -> list[tuple[str, int]]:
        case, claims = wrong.dualfl(HERE, line=line), (wrong.theorem_3_3, wrong.sum_zeta, wrong.lemma_6_5)
        found = [check(c, case, check_assumptions=False) for c in claims]
        return [(v.verdict, v.witness.n if v.witness else 0) for v in found]

    holds = ("holds", 0)
    assert verdicts(wrong.RIGHT) == [holds] * 3
    assert verdicts("momentum early")[:2] == [holds, holds]
    assert verdicts("momentum early")[2][0] == "violated"
    none, rate = verdicts("no average"), verdicts("ρ of the flattest")
    assert [n for _, n in none[1:]] == [1, 2]
    assert none[0][1] > 2
    assert rate[1:] == [holds, holds]
    assert rate[0][0] == "violated"
    assert [v for v, _ in verdicts("a sign")] == ["violated", "holds", "violated"]


def test_your_own() -> None:
    assert [your_own.claimed(2.0, active) for active in (4, 2)] == [0.25, 0.625]
    found = your_own.machine()[2.2, 2]
    assert (round(found.factor or 0.0, 3), round(your_own.claimed(2.2, 2), 3)) == (0.669, 0.711)
    assert max(a for a in your_own.RELAXATIONS if your_own.machine()[a, 2].factor is not None) == 2.8
    assert your_own.machine()[3.0, 2].factor is None
    assert round(your_own.machine()[3.0, 2].needed, 4) == 0.9905
    for (a, active), said in your_own.machine().items():
        assert said.factor is None or said.needed <= said.factor + 1e-9, (a, active)


@pytest.mark.parametrize(("a", "active"), [(2.8, 2), (-2.0, 4)])
def test_stored_proofs_are_those_of_the_machine(a: float, active: int) -> None:
    pytest.importorskip("cvxpy")
    asked, stored = your_own.asked(a, active), your_own.machine()[a, active]
    assert (asked.factor is None) == (stored.factor is None)
    assert asked.factor == stored.factor or asked.factor == pytest.approx(stored.factor, abs=2 * your_own.TOLERANCE)
    assert asked.needed == pytest.approx(stored.needed, rel=1e-6)


# A method of the reader's.


class Server(NamedTuple):
    theta: Any


class Client(NamedTuple):
    theta: Any


@dataclass(frozen=True, kw_only=True)
class Bent(Algorithm):
    """A method whose models are no affine functions of anything."""

    def init(self, theta0: Any, copies: Any) -> tuple[Server, Any, Client]:
        return Server(theta0), theta0, Client(copies)

    def local(self, c: Client, message: Any, oracle: Any, round: Any) -> tuple[Client, Any]:
        theta = oracle.solve(start=c.theta).theta
        return Client(theta), theta

    def server(self, server: Server, mean: Any, round: Any) -> tuple[Server, Any]:
        return Server(mean * abs(mean)), mean * abs(mean)


BESIDE = ("averaging", "momentum", "stopping", "names", "chain", "wrong", "your_own")


def test_the_readers_method_has_its_way_and_its_errors_in_chapters() -> None:
    assert tuple(name for name in CHAPTERS if load(name).beside is not None) == BESIDE
    mine = DualAscent(nu=0.7, solver=Exact())
    for name in BESIDE:
        chapter, plain = with_method(load(name), mine, "Mine"), load(name)
        assert chapter.said[-1].text.count("Mine") == 1
        u, chosen = start(plain) + 0.1, {s.name: s.values[0] for s in plain.sliders}
        found = {}
        for measure in chapter.measures:
            found |= measure(u, **{p: chosen[p] for p in names_of(measure)})
        beside = plain.beside
        assert beside is not None
        case = beside(mine, u, **{p: chosen[p] for p in names_of(beside)})
        if name == "chain":
            assert isinstance(chapter.chart, Chart)
            assert chapter.chart.curves[-1].of == "yours"
            assert np.allclose(found["yours"].values, [case.distance(theta) for theta in case.models()], rtol=1e-12)
            assert np.all(found["yours"].values >= chain.least(u, kappa=chosen["kappa"])["least"].values * (1 - 1e-9))
            continue
        assert isinstance(chapter.plane, Plane)
        assert isinstance(chapter.errors, Chart)
        first = case.value(case.objective.zeros()) - case.value(case.theta)
        trail, *_ = (mark for mark in chapter.plane.marks if getattr(mark, "of", "") == "yours")
        dashes = [curve.dash for curve in chapter.errors.curves]
        assert trail.label == chapter.errors.curves[-1].label == "Mine"
        assert len(set(dashes)) == len(dashes) >= 2
        for curve in chapter.errors.curves:  # as E says of these very models
            models = found[curve.of.removesuffix("_height")].values
            heights = [case.value(theta) - case.value(case.theta) for theta in models]
            assert np.allclose(np.sum(found[curve.of].values ** 2, axis=1), heights, rtol=1e-9, atol=1e-11 * first)


def test_the_readers_method_rests_where_the_chapter_lets_clients_rest() -> None:
    u, chosen = start(load("your_own")), {"a": 2.0, "active": 2, "line": next(iter(your_own.SIGNS))}
    mine = your_own.YourOwn(a=2.0, solver=Exact())
    own = your_own.on_the_slowest(mine, u, **chosen).models()
    assert np.array_equal(own, your_own.slowest(u, **chosen).models())
    for method, active in ((mine, 2), (DualAscent(nu=0.7), 4)):
        assert your_own.on_the_slowest(method, u, **chosen).events()[0].round.n_active == active


def test_a_method_that_no_page_can_draw_is_refused() -> None:
    assert with_method(load("bound"), DualAscent(nu=1.0), "Mine") is load("bound")
    with pytest.raises(
        ValueError, match=r"^Bent cannot be drawn beside the others: its models are no affine functions"
    ):
        with_method(load("averaging"), Bent(), "Bent")


# The pages and the program.


def test_a_page_is_one_file_without_addresses() -> None:
    text = exported("bound")
    assert re.findall(r"""(?:src|href)=["'](?!data:)[^"']+""", text) == []
    assert "https://" not in text
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert text.count("</script>") == 3
    assert "srcdoc=" in show("bound")._repr_html_()
    assert "MB" in repr(show("bound"))
    assert "{{" not in text


def test_the_program(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    run: Callable[..., tuple[int, str, str]] = partial(called, capsys, main)
    code, out, _ = run("--list")
    assert (code, all(name in out for name in CHAPTERS)) == (0, True)
    code, out, _ = run("bound", "chain", "--export", str(tmp_path / "out"))
    assert code == 0
    files = sorted((tmp_path / "out").iterdir())
    assert [p.name for p in files] == ["bound.html", "bound.ipynb", "chain.html", "chain.ipynb", "index.html"]
    for file in (p for p in files if p.suffix == ".html"):  # links lead to what was exported
        text = file.read_text(encoding="utf-8")
        assert set(re.findall(r'href="(\w+\.(?:html|ipynb))"', text)) <= {p.name for p in files}
        assert file.stem == "index" or f'href="{file.stem}.ipynb"' in text
        assert all(f'id="{anchor}"' in text for anchor in re.findall(r'href="#(\w+)"', text))
    (tmp_path / "taken").write_text("a file")
    code, _, err = run("chain", "--export", str(tmp_path / "taken"))
    assert code == 2
    assert re.search(r"export '.*' is not a folder that can be written", " ".join(err.split()))
    code, _, err = run("chian")
    assert code == 2
    assert "did you mean chain?" in " ".join(err.split())
    (tmp_path / "my.py").write_text(
        "from dataclasses import dataclass\nfrom dualopt.methods import DualAscent\n"
        "@dataclass(frozen=True, kw_only=True)\nclass Mine(DualAscent):\n    '''Dual ascent.'''\n"
    )
    monkeypatch.chdir(tmp_path)
    code, out, err = run("momentum", "--export", "own", "--method", "my.py:Mine: nu=1, solver=exact")
    assert (code, err) == (0, "")
    page = (tmp_path / "own" / "momentum.html").read_text(encoding="utf-8")
    assert "Mine" in page
    assert 'data-part="errors"' in page


def test_the_course_is_kept_until_the_code_changes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from figures.lessons import _program

    made = []

    def export(folder: Path, names: Any, method: Any, called: str) -> Any:
        made.append(folder)
        (folder / "index.html").write_text("the course")
        yield folder / "index.html"

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(_program, "export", export)
    for _ in range(2):
        code, out, _ = called(capsys, main, "--no-browser")
        assert code == 0
        assert out.splitlines()[-1].startswith("file://")
    assert len(made) == 1
    called(capsys, main, "--no-browser", "--method", "dualfl")
    assert made[1] == made[0] / "own"
    monkeypatch.setattr(_program, "fingerprint", lambda: "other")
    called(capsys, main, "--no-browser")
    assert [p.name for p in (tmp_path / "dualopt" / "lessons").iterdir()] == ["other"]
