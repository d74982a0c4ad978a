"""Uploads of which the class of compressors is known: formulas, enumerated draws, slow clients, PEPit, refusals."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product
from operator import add
from typing import Any, ClassVar

import numpy as np
import pytest

from dualopt.arrays.tree import leaves, tree_map
from dualopt.engine.rounds import advance, initial_state
from dualopt.lab.proofs import check_proof, prove, worst_case
from dualopt.lab.proofs._compressors import Contractive, Unbiased, known_class
from dualopt.lab.proofs._quadratics import mean_square_factor
from dualopt.lab.proofs._setting import Setting
from dualopt.lab.proofs.checker import RefusedError, check
from dualopt.methods import FedSplit, GradientDescent
from dualopt.methods.compressors import NaturalCompression, RandK, Rounding, TopK
from dualopt.methods.fedsplit import Client
from dualopt.methods.participation import Bernoulli, UniformSubset, first_round
from dualopt.objectives import Quadratic
from dualopt.solvers import Exact

CLASS: dict[str, Any] = {"mu": 1, "L": 10}
LOPSIDED: dict[str, Any] = {"mu": (1, 1, 2), "L": (10, 10, 5), "weights": (1, 1, 3)}
TOLERANCE = 2e-5  # twice that of the bisection


@dataclass(frozen=True, kw_only=True)
class Whole(GradientDescent):
    """C(grad f_j) itself arrives: gradients are measured from nothing, and unbiased."""

    upload_reference: ClassVar[str] = "nothing"

    def local(self, c, message, oracle, round):
        return c, oracle.sent(oracle.evaluate(message).grad_f, unbiased=True)


@dataclass(frozen=True, kw_only=True)
class Diana(GradientDescent):
    """h_j + C(grad f_j - h_j) arrives, and h_j moves by the part 1/(1 + omega) of that."""

    def local(self, c, message, oracle, round):
        return c, oracle.sent(oracle.evaluate(message).grad_f, unbiased=True)


# ---- what is known of a compressor ----


def test_compressors_say_what_is_known_of_them() -> None:
    assert known_class(RandK(size=2), 3, 8) == Unbiased(omega=3.0)
    assert known_class(TopK(size=2), 3, 8) == Contractive(delta=0.25)
    assert known_class(NaturalCompression(), 3) == Unbiased(omega=0.125)
    assert known_class("cohorts=2", 3) == Unbiased(omega=0.5, independent=False)
    assert known_class("quantisation=2", 3, 100) == Unbiased(omega=5.0)
    assert known_class("contractive=0.25", 3) == Contractive(delta=0.25)
    for nothing in (None, "identity", "unbiased=0", "contractive=1", RandK(size=8)):
        assert known_class(nothing, 3, 8) is None


def test_delta_of_rounding_is_attained() -> None:
    """By the largest number and d - 1 halves of a level."""
    d, m = 9, 7.0
    x = np.array([[1.0] + [0.5 / m] * (d - 1)])
    error = Rounding(digits=4).compress(x, first_round(1)) - x
    delta = Rounding(digits=4).delta((d,), 1)
    assert np.sum(error**2) == pytest.approx((1 - delta) * np.sum(x**2))
    x = np.ones((1, 8))
    error = TopK(size=2).compress(x, first_round(1)) - x
    assert np.sum(error**2) == pytest.approx((1 - TopK(size=2).delta((8,), 1)) * np.sum(x**2))


@dataclass(frozen=True, kw_only=True)
class Silent:
    """Biased, and says no more."""

    unbiased: ClassVar[bool] = False

    def omega(self, shape, n_clients):
        return 0.0


@pytest.mark.parametrize(
    ("compressor", "sentence"),
    [
        ("rand-k=2", "dimension must be given: what is known of the compressor depends on it."),
        ("rounding=4", "dimension must be given: what is known of the compressor depends on it."),
        (Silent(), "compressor must say by delta how it contracts, where it is biased."),
        ("unbiased=-1", "omega must be a finite number of at least 0, not -1"),
        ("contractive=0", "delta must lie in (0, 1], not 0"),
        ("contractive", "needs delta"),
        ("unbaised=1", "compressor must be one of"),
    ],
)
def test_what_is_no_class_is_refused(compressor, sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        prove("fedsplit", clients=2, compressor=compressor, **CLASS)
    with pytest.raises(ValueError, match="size of the compressor must be at most the number of coordinates, 2, not 3"):
        prove("fedsplit", clients=2, compressor="rand-k=3", dimension=2, **CLASS)


@dataclass(frozen=True, kw_only=True)
class Nested(GradientDescent):
    """What arrives is compressed once more, by the same draws."""

    upload_reference: ClassVar[str] = "nothing"

    def local(self, c, message, oracle, round):
        return c, oracle.sent(oracle.sent(oracle.evaluate(message).grad_f))


def test_what_does_not_apply_is_refused() -> None:
    with pytest.raises(ValueError, match="keep its fixed point in everything that may happen"):
        prove(Whole(step=0.01), clients=2, compressor="unbiased=1", **CLASS)
    with pytest.raises(ValueError, match="algorithm must not compress what depends on what else arrived"):
        prove(Nested(step=0.01), clients=1, compressor="unbiased=1", **CLASS)
    what: dict[str, Any] = {"clients": 2, "regulariser": 0.0, **CLASS}
    with pytest.raises(ValueError, match="compressor must be contractive where somebody is asked in the same round"):
        prove("feddr", compressor="unbiased=1", **what)
    with pytest.raises(ValueError, match=r"measure must be distance or value with .* or a compressor"):
        worst_case("dualfl", clients=2, measure="dual", compressor="natural", **CLASS)
    assert prove("feddr: relaxation=1", compressor="contractive=0.999", memory=False, tolerance=1e-2, **what).proved


# ---- formulas ----


@pytest.mark.parametrize("step", [0.03, 0.08, 0.12])
def test_compressed_gradients_of_one_client(step: float) -> None:
    """With s = 1 + omega times the square of a gradient, curvature h has (1 - step h)^2 + omega step^2 h^2, which is
    convex in h: the larger of its values at mu and L, and no more for any function, by <g - mu x, L x - g> >= 0."""
    omega, (mu, L) = 0.5, (1.0, 10.0)
    of = max((1 - step * h) ** 2 + omega * (step * h) ** 2 for h in (mu, L))
    found = prove(Whole(step=step), mu=mu, L=L, clients=1, compressor=Unbiased(omega=omega))
    assert found.factor == pytest.approx(of, abs=TOLERANCE)
    assert found.lower_bound == pytest.approx(of, abs=1e-8)
    what: dict[str, Any] = {"mu": mu, "L": L, "clients": 1, "compressor": "unbiased=0.5"}
    values = [worst_case(Whole(step=step), rounds=n, **what) for n in (1, 3)]
    assert [x.value for x in values] == pytest.approx([of, of**3], rel=1e-6)
    assert [x.example is None for x in values] == [False, True]  # later gradients depend on what has arrived


def test_too_long_steps_diverge_where_they_do() -> None:
    """(1 - step L)^2 + omega (step L)^2 = 1 at step = 2/((1 + omega) L) = 0.1."""
    found = prove(Whole(step=0.101), clients=1, compressor="unbiased=1", **CLASS)
    assert not found.proved
    assert str(found) == "diverges on quadratic clients of curvatures 10"


@pytest.mark.parametrize(("omega", "N"), [(1.0, 1), (1.0, 4), (3.0, 2)])
def test_diana_is_better_than_its_theorem(omega: float, N: int) -> None:
    r"""For a <= 1/(1 + omega) and step <= 1/(L(1 + 6 omega/N)), 1 - min(step mu, a/2).

    The mean square of what arrives less its mean is at most omega/N^2 sum |g_j - h_j|^2, where |g_j - h_j|^2 <=
    2|g_j - g_j^*|^2 + 2|h_j - g_j^*|^2; and E|h_j^+ - g_j^*|^2 <= (1 - a)|h_j - g_j^*|^2 + a|g_j - g_j^*|^2. With
    V = |x - x^*|^2 + (4 omega step^2/(a N)) mean |h_j - g_j^*|^2 the sum of the squares of the g_j - g_j^* has the
    factor step^2(1 + 2 omega/N + 4 omega/N), which co-coercivity pays.
    """
    step = 1.0 / (10.0 * (1.0 + 6.0 * omega / N))
    found = prove(Diana(step=step), clients=N, compressor=f"unbiased={omega}", memory=False, **CLASS)
    assert found.lower_bound is not None
    assert found.lower_bound - 1e-8 <= found.factor <= found.lower_bound + TOLERANCE
    assert found.factor < 1.0 - min(step, 0.5 / (1.0 + omega)) - 1e-3
    assert any("memory.0" in name for names, _ in found.lyapunov for name in names)


def test_errors_that_clients_have_in_common_do_not_average_out() -> None:
    """With independent draws the mean of four errors is a quarter as large; one draw for all is as one client is."""
    what: dict[str, Any] = {"memory": False, "tolerance": 1e-4, **CLASS}
    for step in (0.04, 0.05):
        one = prove(Diana(step=step), clients=1, compressor="unbiased=1", **what)
        own, common = (
            prove(Diana(step=step), clients=4, compressor=Unbiased(omega=1.0, independent=independent), **what)
            for independent in (True, False)
        )
        assert own.factor < 0.93
        assert common.lower_bound == pytest.approx(one.lower_bound, abs=1e-8)
        assert common.factor == pytest.approx(one.factor, abs=2e-4)
    assert not common.proved


@pytest.mark.parametrize("compressor", ["unbiased=1", "cohorts=2", "rand-k=1"])
@pytest.mark.parametrize("who", [None, UniformSubset(size=1), Bernoulli(probability=0.5)])
def test_fedsplit_has_the_factor_of_theorem_d(compressor: str, who) -> None:
    what: dict[str, Any] = {"clients": 3, "participation": who, "memory": False, **CLASS}
    found = prove("fedsplit", compressor=compressor, dimension=4, **what)
    kind = known_class(compressor, 3, 4)
    assert isinstance(kind, Unbiased)
    p = {None: 1.0}.get(who, 1 / 3 if isinstance(who, UniformSubset) else 0.5)
    delta = (math.sqrt(10) - 1) / (math.sqrt(10) + 1)
    of = 1 - p * (1 - delta**2) / (1 + kind.omega)
    assert found.claimed == pytest.approx(of)
    assert found.factor == pytest.approx(of, abs=TOLERANCE)
    assert found.lower_bound == pytest.approx(of, abs=1e-8)


def test_error_feedback_is_as_fast_as_its_theorem() -> None:
    """EF21 (Richtarik, Sokolov and Fatkhullin 2021, Theorem 2; recalled): 1 - step mu, if L step is small enough."""
    mu, L, delta = 1.0, 10.0, 0.9
    t = 1 - math.sqrt(1 - delta)
    step = 1 / (L * (1 + math.sqrt(2 * (1 - delta) / t / t)))
    found = prove(GradientDescent(step=step), mu=mu, L=L, clients=3, compressor=Contractive(delta=delta))
    assert found.lower_bound is not None
    assert found.lower_bound - 1e-8 <= found.factor <= found.lower_bound + TOLERANCE
    assert found.factor < 1 - step * mu - 1e-2
    assert found.heights  # with the values where the clients were asked last


def test_less_that_arrives_costs_rounds() -> None:
    what: dict[str, Any] = {"memory": False, "tolerance": 1e-4, **LOPSIDED}
    plain = prove("feddyn: alpha=4", **what).factor
    rates = [prove("feddyn: alpha=4", compressor=f"unbiased={omega}", **what) for omega in (1e-4, 0.1, 0.3)]
    factors = [plain, *(rate.factor for rate in rates)]
    assert factors == sorted(factors)
    assert factors[1] < plain + 1e-3
    assert factors[3] > plain + 0.05
    assert all(rate.lower_bound is not None and rate.lower_bound < rate.factor + 1e-8 for rate in rates)


# ---- literal and by classes ----


@pytest.mark.parametrize("compressor", ["unbiased=0.5", "cohorts=2", "contractive=0.97"])
def test_classes_are_as_good_as_each_client_by_itself(compressor: str) -> None:
    step = 0.04
    one, all_ = (
        prove(Diana(step=step), compressor=compressor, memory=False, tolerance=1e-4, literal=literal, **LOPSIDED)
        for literal in (False, True)
    )
    assert one.factor == pytest.approx(all_.factor, abs=2e-4)
    start: dict[str, Any] = {"start": (1.0, 0.01), "rounds": 2, "compressor": compressor, "clients": 2, **CLASS}
    one, all_ = (worst_case(Diana(step=step), literal=literal, **start) for literal in (False, True))
    assert one.value == pytest.approx(all_.value, rel=1e-5)


# ---- draws that are enumerated ----


class Masked:
    """Rand-k with one of two coordinates for every client, as given."""

    unbiased = True

    def __init__(self, mask: Any) -> None:
        self.mask = np.array(mask)

    def omega(self, shape, n_clients):
        return 1.0

    def compress(self, x, round):
        return 2.0 * self.mask[list(round.clients)] * x


def of_draws(method, f) -> float:
    """Return the factor of second moments of what is reached, the mean over all draws; the minimiser is zero."""
    N, d = f.n_clients, 2
    everything: Any = Masked(np.full((N, d), 0.5))
    begin = advance(method, f, initial_state(method, f, np.zeros(d)), first_round(N), everything)[0]
    sizes = [np.size(x) for x in leaves(begin)]

    def state(v):
        parts = iter(np.split(v, np.cumsum(sizes)[:-1]))
        return tree_map(lambda x: next(parts).reshape(np.shape(x)), begin)

    def flat(s):
        return np.concatenate([np.ravel(x) for x in leaves(s)])

    maps = []
    for mask in product(((1.0, 0.0), (0.0, 1.0)), repeat=N):
        packs: Any = Masked(mask)
        maps.append([flat(advance(method, f, state(v), first_round(N), packs)[0]) for v in np.eye(sum(sizes))])
    A = np.moveaxis(np.array(maps), 1, 2)
    starts = (initial_state(method, f, theta0)._replace(memory=begin.memory) for theta0 in np.eye(d))
    X = np.stack([flat(s) for s in starts])
    B = np.linalg.qr(X.T)[0]
    for _ in range(len(A[0])):
        U, widths, _ = np.linalg.svd(np.concatenate([B, *(M @ B for M in A)], axis=1), full_matrices=False)
        B = U[:, widths > 1e-9]
    return float(np.abs(np.linalg.eigvals(np.mean([np.kron(B.T @ M @ B, B.T @ M @ B) for M in A], axis=0))).max())


@pytest.mark.parametrize("method", [Diana(step=0.05), GradientDescent(step=0.05), FedSplit(step=0.25, solver=Exact())])
def test_draws_of_a_compressor_are_not_slower(method) -> None:
    """Coordinates that are drawn, on functions of two variables; half of omega would be wrong for some of them."""
    proved = prove(method, clients=2, compressor=RandK(size=1), dimension=2, tolerance=1e-4, **CLASS).factor
    rng, slowest = np.random.default_rng(3), 0.0
    for k in range(8):
        Q = [np.linalg.qr(rng.normal(size=(2, 2)))[0] for _ in range(2)]
        ends = [(1.0, 1.0), (10.0, 10.0)][k] if k < 2 else rng.choice([1.0, 3.0, 10.0], size=2)
        f = Quadratic(A=np.stack([q @ np.diag(ends) @ q.T for q in Q]), b=np.zeros((2, 2)))
        slowest = max(slowest, of_draws(method, f))
    assert slowest <= proved + 1e-9
    if isinstance(method, FedSplit):
        assert slowest > prove(method, clients=2, compressor="unbiased=0.5", tolerance=1e-4, **CLASS).factor + 1e-2


def test_signs_that_are_played_are_below_the_worst_case() -> None:
    """Two rounds with errors of random signs, on the slowest of a few clients, nearly attain it."""
    omega, N, method = 1.0, 2, Diana(step=0.05)
    start = (1.0, 0.01)
    value = worst_case(method, clients=N, rounds=2, compressor=Unbiased(omega=omega), start=start, **CLASS).value
    worst = max(signs_played(method, h, omega, start) for h in product((1.0, 10.0), repeat=N))
    assert 0.97 * value < worst <= value * (1 + 1e-6)
    smaller = worst_case(method, clients=N, rounds=2, compressor=Unbiased(omega=0.5), start=start, **CLASS).value
    assert worst > 1.001 * smaller


class Signed:
    """A part of what is sent is added to it or subtracted."""

    unbiased = True

    def __init__(self, omega: float, signs: Any) -> None:
        self.variance, self.signs = omega, signs

    def omega(self, shape, n_clients):
        return self.variance

    def compress(self, x, round):
        return x * (1.0 + math.sqrt(self.variance) * np.array(self.signs))[:, None]


def signs_played(method, h, omega: float, start) -> float:
    """Return the largest mean error after two rounds for starts of size one, the minimiser being zero."""
    N = len(h)
    columns = []
    for theta0, b in ((1.0, 0.0), (0.0, 1.0)):  # the gradients at the minimiser are b and -b
        f = Quadratic(A=np.array(h)[:, None, None], b=np.array([[b], [-b]]))
        ends = []
        for signs in product(product((1.0, -1.0), repeat=N), repeat=2):
            state = initial_state(method, f, np.array([theta0]))
            for n, own in enumerate(signs):
                packs: Any = Signed(omega, own)
                state = advance(method, f, state, replace(first_round(N), n=n), packs)[0]
            ends.append(float(state.server.theta[0]))
        columns.append(ends)
    X = np.array(columns)
    units = np.array([start[0] ** -0.5, (2 * start[1]) ** -0.5])[:, None]
    return float(np.linalg.eigvalsh((units * X) @ (units * X).T / X.shape[1])[-1])


# ---- errors in the code ----


@dataclass(frozen=True, kw_only=True)
class FullSteps(FedSplit):
    """FedSplit that takes all of a compressed step."""

    def local(self, clients, message, oracle, round):
        x = oracle.solve(start=clients.x, weight=1 / self.step, center=2 * message - clients.z).theta
        change = oracle.sent(2.0 * (x - message), unbiased=True)
        return Client(clients.z + change, x), change


def test_an_error_in_the_code_costs_the_rate() -> None:
    what: dict[str, Any] = {"clients": 2, "compressor": "unbiased=1", "memory": False, "tolerance": 1e-3, **CLASS}
    good, bad = (prove(kind(step=0.3), **what) for kind in (FedSplit, FullSteps))
    assert good.factor < 0.66
    assert not bad.proved
    assert bad.lower_bound is not None
    assert bad.lower_bound > 1.0


# ---- what some clients need ----


def test_errors_of_one_sign_and_of_random_signs_are_searched() -> None:
    """FedSplit with an error opposite to what is sent: (1 + d)(1 + q) = 2, so that z turns to -z for kappa = 10."""
    setting = Setting.of("fedsplit", 1, 10, 2, compressor="contractive=0.9")
    assert mean_square_factor(setting, (1.0, 1.0)) == pytest.approx(1.0)
    exchanged, apart = (
        mean_square_factor(
            Setting.of(Diana(step=0.05), 1, 10, 4, compressor="unbiased=1", literal=literal), (1.0, 10.0, 10.0, 10.0)
        )
        for literal in (False, True)
    )
    assert exchanged == pytest.approx(apart, abs=1e-10)


# ---- a second program ----


def by_pepit(step: float, n: int, N: int, kind: Any, start: tuple[float, float]) -> float:
    """Return the worst case of compressed gradient descent with memories, in PEPit's words.

    With unbiased compressors as DIANA has them, otherwise as EF21.
    """
    pepit = pytest.importorskip("PEPit")
    functions = pytest.importorskip("PEPit.functions")
    problem = pepit.PEP()
    fs = [problem.declare_function(functions.SmoothStronglyConvexFunction, mu=1.0, L=10.0) for _ in range(N)]
    star, theta = pepit.Point(), problem.set_initial_point()
    slopes = [pepit.Point() for _ in range(N - 1)]
    slopes.append(-1.0 * reduce(add, slopes) if slopes else 0 * star)
    for f, g in zip(fs, slopes, strict=True):
        f.add_point((star, g, pepit.Expression()))
    size = reduce(add, (g**2 for g in slopes))
    problem.set_initial_condition(start[0] * (theta - star) ** 2 + start[1] * size <= 1)
    unbiased = isinstance(kind, Unbiased)
    before: list[Any] = [star, theta, *slopes[:-1]]
    h: list[Any] = [0 * theta] * N
    for _ in range(n):
        gradients = [f.gradient(theta) for f in fs]
        before += gradients
        errors = [pepit.Point() for _ in fs]
        for j, (g, e) in enumerate(zip(gradients, errors, strict=True)):
            v = g - h[j]
            problem.add_constraint(e**2 <= (kind.omega if unbiased else 1 - kind.delta) * v**2)
            others = errors[:j] if unbiased and kind.independent else []
            for other in (*before, *others) if unbiased else ():
                problem.add_constraint(e * other == 0)
        arrived = [old + (g - old + e) for g, e, old in zip(gradients, errors, h, strict=True)]
        part = 1 / (1 + kind.omega) if unbiased else 1.0
        h = [old + part * (g - old + e) for g, e, old in zip(gradients, errors, h, strict=True)]
        before += errors
        theta = theta - step / N * reduce(add, arrived)
    problem.set_performance_metric((theta - star) ** 2)
    return problem.solve(wrapper="cvxpy", solver="CLARABEL", verbose=0)


@pytest.mark.parametrize(
    ("n", "N", "kind"),
    [
        (1, 2, Unbiased(omega=1.0)),
        (2, 2, Unbiased(omega=1.0)),
        (2, 2, Unbiased(omega=1.0, independent=False)),
        (3, 1, Unbiased(omega=0.5)),
        (2, 2, Contractive(delta=0.8)),
        (3, 1, Contractive(delta=0.6)),
    ],
)
def test_worst_cases_are_those_of_pepit(n: int, N: int, kind) -> None:
    step, start = 0.05, (1.0, 0.01)
    found = worst_case(Diana(step=step), clients=N, rounds=n, compressor=kind, start=start, **CLASS)
    assert found.value == pytest.approx(by_pepit(step, n, N, kind, start), rel=1e-5)


# ---- proofs in rational numbers ----

PROVED = {
    "unbiased": ("fedsplit: step=0.3", 2, "unbiased=1", None),
    "together": ("fedsplit: step=0.3", 3, "cohorts=2", UniformSubset(size=2)),
    "contractive": ("gradient-descent: step=0.05", 2, "contractive=0.9", None),
}


@pytest.fixture(scope="module", params=PROVED)
def proof(request) -> dict[str, Any]:
    method, N, compressor, who = PROVED[request.param]
    rate = prove(method, clients=N, compressor=compressor, participation=who, **CLASS)
    found = rate.proof()
    assert rate.factor < check_proof(found) < rate.factor + 3e-5
    return found


def test_what_was_changed_is_refused(proof) -> None:
    told = proof["statement"]["compressor"]
    other = {**told, next(iter(told)): "1/3"}
    with pytest.raises(RefusedError, match=r"the code of the method gives another .(after|bounds). than"):
        check_proof({**proof, "statement": {**proof["statement"], "compressor": other}})
    bounds = [[[v, u, "1/100"] for v, u, _ in own] for own in proof["bounds"]]
    with pytest.raises(RefusedError):
        check_proof({**proof, "bounds": bounds})
    for wrong in (["-1"] * len(proof["bounds"][0]), ["0"] * len(proof["bounds"][0])):
        with pytest.raises(RefusedError):
            check({**proof, "bounded": [wrong, *proof["bounded"][1:]]})
    if "chance" in proof:
        with pytest.raises(RefusedError, match="V is not shown to fall"):
            check({**proof, "chance": []})
        with pytest.raises(RefusedError, match="chance must not be in the state before the round"):
            check({**proof, "chance": [[0]]})
        with pytest.raises(RefusedError, match="chance must name a vector once"):
            check({**proof, "chance": [*proof["chance"], proof["chance"][0]]})


def test_a_bound_that_the_code_does_not_have_is_refused() -> None:
    """Such a bound would prove anything: all of the state is at most a millionth of itself."""
    proof = prove("gradient-descent: step=0.05", clients=2, **CLASS).proof()
    vector = proof["model"]
    false = {"bounds": [[[vector, vector, "1/1000000"]], []], "bounded": [["100"], []], "factor": "1/100"}
    assert check({**proof, **false}) == check({**proof, "factor": "1/100", **false})
    with pytest.raises(RefusedError, match="the code of the method gives another 'bounds' than the proof has"):
        check_proof({**proof, **false})
    with pytest.raises(RefusedError, match="the code of the method gives another 'chance' than the proof has"):
        check_proof({**proof, "dimension": proof["dimension"], "chance": [[]]})
