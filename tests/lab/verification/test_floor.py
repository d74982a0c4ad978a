"""Where errors stay: what converges, however slowly, is not called a stall; biases are, with their exact levels."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

from dualopt import FedAvg, FedSplit, GradientDescent, Quadratic, linear_model
from dualopt.lab.verification import verdict as module
from dualopt.lab.verification.claimed_rate import parse_rate
from dualopt.lab.verification.floor import floor
from dualopt.lab.verification.instances import Instance, linear_instances
from dualopt.lab.verification.own import as_instance, load_instance
from dualopt.lab.verification.verdict import verify
from dualopt.methods.participation import UniformSubset
from dualopt.objectives import Composite
from dualopt.problem.data import load
from dualopt.regularisers import L1
from dualopt.runs.reference import cvxpy
from dualopt.solvers import Gradient
from dualopt.solvers.stopping import GradientNorm, Steps
from tests.app import test_cli
from tests.app.test_cli import refusal

program = test_cli.program
PAGE = (Path(__file__).parents[3] / "docs" / "plug_ins.md").read_text()
PLAIN = parse_rate("(1-1/kappa)^n")


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


CONVERGE = {
    **{f"{q}^n": lambda n, q=q: q**n for q in (0.9, 0.99, 0.9999, 1 - 1e-6)},
    **{f"n^-{p}": lambda n, p=p: (n + 1.0) ** -p for p in (2.0, 0.5, 0.1, 0.01)},
    "1/log n": lambda n: 1.0 / np.log(n + 2.0),
    "log(n)^-0.2": lambda n: np.log(n + 2.0) ** -0.2,
    "fast, then slow": lambda n: 0.9**n + 1e-3 * 0.99999**n,
    "fast, then a low order": lambda n: 0.8**n + 1e-3 * (n + 1.0) ** -0.2,
    "with ripples": lambda n: 0.999**n * (1.0 + 0.3 * np.cos(n)),
    "by chance": lambda n: (1.0 + 0.1 * rng().standard_normal(n.size)) / (n + 1.0),
}
STAY = {
    "from above": lambda n: 0.2 + 5.0 * 0.9**n,
    "from below": lambda n: 0.2 - 0.19 * 0.9**n,
    "like 1/n^2": lambda n: 0.2 + 1.0 / (n + 1.0) ** 2,
    "at once": lambda n: np.where(n == 0, 1.0, 0.2),
    "with ripples": lambda n: 0.2 * np.exp(0.3 * np.cos(n)) + 0.9**n,
    "by chance": lambda n: 0.2 * np.exp(0.1 * rng().standard_normal(n.size)) + 0.9**n,
}


@pytest.mark.parametrize("rounds", [60, 300, 1000, 5000])
@pytest.mark.parametrize("law", CONVERGE)
def test_what_converges_does_not_stall(law: str, rounds: int) -> None:
    if rounds < 300 and ("ripples" in law or "fast" in law):
        return  # half of the rounds are one ripple, or what fell fast is not gone
    assert floor(CONVERGE[law](np.arange(rounds + 1.0))) is None


@pytest.mark.parametrize("rounds", [300, 1000])
@pytest.mark.parametrize("law", STAY)
def test_what_stays_does(law: str, rounds: int) -> None:
    errors = STAY[law](np.arange(rounds + 1.0))
    found = floor(errors)
    assert found is not None
    assert found.level == pytest.approx(0.2, rel=0.05)
    assert found.start <= rounds // 2
    if "from" in law:  # the first round within a tenth of it
        assert found.level == pytest.approx(0.2, rel=1e-3)
        assert abs(errors[found.start] - 0.2) <= 0.1 * 0.2 < abs(errors[found.start - 1] - 0.2)


def test_the_level_is_what_aitken_extrapolates() -> None:
    """Of 60 rounds the last thirty, in three windows of ten."""
    errors = 1e-3 * (1 + 0.85 ** np.arange(61))
    a, b, c = np.log(errors[31:]).reshape(3, 10).mean(axis=1)
    ahead = (b - c) * (shrinks := (c - b) / (b - a)) / (1 - shrinks)
    found = floor(errors)
    assert found is not None
    assert found.level == pytest.approx(np.exp(c - ahead), rel=1e-12)


def test_the_bias_of_fedavg_is_its_exact_fixed_point() -> None:
    """Of two quadratics of one variable: five steps of length s leave (1 - s a)^5 of the way to the client's own."""
    a, b, s = np.array([1.0, 4.0]), np.array([1.0, -2.0]), 0.1
    f = Quadratic(A=a[:, None, None], b=b[:, None])
    kept = (1.0 - s * a) ** 5
    rests = np.mean((1.0 - kept) * b / a) / np.mean(1.0 - kept)
    best = b.mean() / a.mean()
    report = verify(FedAvg(solver=Gradient(step=s), stop=Steps(steps=5)), PLAIN, instances=[], own=[f])
    (finding,) = report.findings
    assert finding.floor is not None
    assert finding.floor.level == pytest.approx((rests - best) ** 2, rel=1e-9)
    share = (rests - best) ** 2 / best**2
    assert finding.reason.startswith(f"stalls at a floor of {share:.2g} (relative squared distance) from round ")
    distance = np.abs(finding.errors / (rests - best) ** 2 - 1.0) > 0.1
    assert finding.floor.start == np.flatnonzero(distance)[-1] + 1


def test_local_problems_that_are_not_solved_stall_and_solved_ones_do_not() -> None:
    data = load("breast_cancer")
    problem = as_instance(linear_model(data.X, data.y, loss="logistic", mu=0.1, clients=3))
    (coarse,) = verify(FedSplit(stop=GradientNorm(tol=1e-3)), PLAIN, instances=[], own=[problem]).findings
    assert "stalls at a floor of 2.2e-07 (relative squared distance) from round " in coarse.reason
    assert verify(FedSplit(stop=GradientNorm(tol=1e-10)), PLAIN, instances=[], own=[problem]).verdict == "holds"


@dataclass(frozen=True, kw_only=True)
class Lazy(GradientDescent):
    """A tenth of the step: convergent and slow."""

    def server(self, server, mean, round):
        new, _ = super().server(server, mean, round)
        theta = server.theta + 0.1 * (new.theta - server.theta)
        return new._replace(theta=theta), theta


def test_a_slow_method_is_slow_and_does_not_stall() -> None:
    for finding in verify(Lazy(), parse_rate("(1-1/kappa)^(2*n)"), instances=list(linear_instances())[:2]).findings:
        assert (finding.reason, finding.floor) == ("slower than claimed", None)


def test_the_mean_over_seeds_stalls(monkeypatch) -> None:
    """Each run by chance; where the mean of the others has no floor without one of them, there is none."""

    def found(spread: float, of_one: float) -> bool:
        def errors(*given):
            n, draws = np.arange(given[-1] + 1.0), np.random.default_rng(given[-2])
            return np.exp(spread * draws.standard_normal(n.size)) * (0.04 + of_one * (given[-2] == 0)) + 0.9**n

        monkeypatch.setattr(module, "_errors", errors)
        few = list(linear_instances())[:1]
        (finding,) = verify(FedAvg(), PLAIN, instances=few, participation=UniformSubset(size=2), seeds=5).findings
        return "stalls at a floor of " in finding.reason

    assert found(0.1, 0.0)
    assert not found(0.9, 0.0)  # too much chance for 286 rounds


def test_chance_does_not_make_a_stall_of_what_converges() -> None:
    draws, stalls = rng(), 0
    for rounds in (88, 300, 852):
        n = np.arange(rounds + 1.0)
        for law in ((n + 1.0) ** -1.0, (n + 1.0) ** -0.3, 0.99**n, 0.999**n):
            for spread in (0.03, 0.1, 0.9):
                stalls += sum(
                    floor(law * np.exp(spread * draws.standard_normal(n.size))) is not None for _ in range(20)
                )
    assert stalls <= 1  # of 720


# Problems of one's own.


def rows(**options):
    X = rng().standard_normal((60, 3))
    return linear_model(X, np.sign(X[:, 0] + 0.5 * rng().standard_normal(60)), clients=3, **options)


def test_an_objective_brings_its_minimiser_and_how_well_it_is_known() -> None:
    smooth, kinked = rows(loss="logistic", mu=0.1), rows(loss="hinge", mu=0.1)
    exact, rough = as_instance(smooth), as_instance(kinked, "svm")
    assert (exact.name, rough.name, exact.measure) == ("LinearModel", "svm", "distance")
    assert np.sum((exact.theta - cvxpy(smooth).theta) ** 2) < 1e-10
    assert 0 < exact.resolution < 1e-18
    assert 1e-18 < rough.resolution < 1e-5
    sparse = as_instance(Composite(objective=smooth, regulariser=L1(weight=0.1)))
    assert sparse.resolution < 1e-5
    assert (sparse.theta == 0).any()


class Off(Quadratic):
    """A quadratic whose minimiser is said to be elsewhere."""

    def minimiser(self):
        return super().minimiser() + 1e-3


def test_the_resolution_is_the_distance_that_the_gradient_allows() -> None:
    f = Off(A=np.full((2, 1, 1), 3.0), b=np.array([[1.0], [3.0]]))
    assert as_instance(f).resolution == pytest.approx(1e-6, rel=1e-9)


def test_errors_of_what_is_not_strongly_convex_are_those_of_energies() -> None:
    X = rng().standard_normal((12, 3))
    X = np.concatenate([X, X[:, :1]], axis=1)  # a column twice: the minimiser is not unique
    f = linear_model(X, X[:, 1] + 0.1 * rng().standard_normal(12), loss="squared", mu=0.0, clients=2)
    found = as_instance(f)
    assert found.measure == "energy"
    theta = found.theta + np.array([1.0, 0.0, 0.0, -1.0, 0.0])
    assert found.error(theta) <= found.resolution
    assert found.error(found.theta + 0.1) > 1e-4
    (finding,) = verify(GradientDescent(), parse_rate("1/n"), instances=[], own=[found]).findings
    assert finding.verdict == "holds"


def test_a_claim_is_judged_above_what_is_known_of_the_minimiser() -> None:
    """The distance to a minimiser that is off by 1e-4 stays there; that is no fault of the method."""
    chain = next(linear_instances())
    off = {"name": "off", "objective": chain.objective, "theta": chain.theta + 1e-4 / np.sqrt(chain.theta.size)}
    (blamed,) = verify(GradientDescent(), PLAIN, instances=[], own=[Instance(**off)]).findings
    (known,) = verify(GradientDescent(), PLAIN, instances=[], own=[Instance(**off, resolution=1e-7)]).findings
    assert (blamed.verdict, known.verdict) == ("contradicted", "holds")


OWN = """
import numpy as np
from dualopt import Quadratic

def clinics():
    return Quadratic(A=np.array([[[1.0]], [[4.0]]]), b=np.array([[1.0], [-2.0]]))

def empty():
    return 3

def centred():
    return Quadratic(A=np.array([[[1.0]], [[4.0]]]), b=np.array([[1.0], [-1.0]]))

def needy(m):
    return clinics()

def broken():
    raise KeyError("rows")
"""


@pytest.mark.usefixtures("undrawn")
def test_the_command_takes_instances_and_says_where_they_are_from(program, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(OWN)
    words = [
        "--algorithm",
        "fedavg",
        "--solver",
        "gradient",
        "--solver-param",
        "step=0.1",
        "-p",
        "stop=steps:5",
        "--rate",
        PLAIN.text,
    ]
    code, out, _ = program("verify", *words, "--instance", "mine.py:clinics")
    assert code == 1
    record = json.loads((tmp_path / "out/verify.json").read_text())
    found = record["instances"][-1]
    assert (found["instance"], found["verdict"]) == ("clinics", "contradicted")
    assert found["floor"]["level"] == pytest.approx(found["errors"][-1])
    assert len(record["instances"]) == 9
    assert list(record["plug_ins"]) == record["options"]["instance"] == ["mine.py:clinics"]
    assert "clinics" in out


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("empty", "instance 'mine.py:empty': it must return an objective, not int."),
        ("centred", "instance 'centred' must not have its minimiser at the start, zero."),
        (
            "needy",
            "instance 'mine.py:needy': needy makes no instance: it must be a function without arguments, not of m.",
        ),
        ("broken", "instance 'mine.py:broken': making it raises KeyError: 'rows'."),
        ("nobody", "instance 'mine.py:nobody': mine.py has no function or class nobody"),
    ],
)
def test_mistakes_are_one_sentence(program, tmp_path, monkeypatch, name: str, sentence: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(OWN)
    said = refusal(program, "verify", "--algorithm", "fedavg", "--rate", "1/n", "--instance", f"mine.py:{name}")
    assert said.startswith(sentence)


def test_a_class_of_objectives_is_built_with_its_example(tmp_path, monkeypatch) -> None:
    """Around logistic regression where it has a field for another one."""
    monkeypatch.chdir(tmp_path)
    (page,) = re.findall(r"```python\n(# anchored\.py\n.*?)```", PAGE, re.DOTALL)
    (tmp_path / "anchored.py").write_text(page)
    found = load_instance("anchored.py:Anchored")
    inner = found.objective.objective
    assert (found.name, found.objective.weight, found.objective.anchor) == ("Anchored", 0.5, 0.2)
    assert sum(len({*y.tolist()}) > 1 for _, y, _ in inner.client_rows()) <= 1  # one holds the last and the first
    expected = minimize(
        lambda x: inner.value(x).mean() + 0.25 * np.sum((x - 0.2) ** 2), np.zeros(inner.shape), tol=1e-12
    )
    assert found.theta == pytest.approx(expected.x, abs=1e-6)
