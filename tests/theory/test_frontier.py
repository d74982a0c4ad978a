"""Every claim beyond the papers can fail: wrong methods, weights and constants are caught."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import fields, replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import pytest
from dualopt.methods._scales import weights
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from dualopt.engine.rounds import iterate
from dualopt.lab.claims import Claim, check
from dualopt.lab.testing import quadratics
from dualopt.methods import Algorithm, DualFL, FedDyn, FedSplit, OptimizedDualFL, SampledDualFL
from dualopt.methods._feddyn_rules import best_weight
from dualopt.methods.compressors import CoordinateCohorts, NaturalCompression, RandK, kept
from dualopt.methods.participation import UniformSubset
from dualopt.methods.sampled_dualfl import next_step
from dualopt.objectives import Quadratic
from dualopt.solvers import Exact
from tests.theory._telling import telling
from tests.theory.test_properties import UNEQUAL
from theory._cases import Case
from theory._claims import discover
from theory._problems import hard_quadratic, lopsided, quadratic, solved
from theory.dualfl._runs import dual_optimum
from theory.frontier import compressed, rounded
from theory.frontier import growing_feddyn as theorem_c
from theory.frontier import sampled_dualfl as theorem_f
from theory.frontier import sampled_feddyn as theorem_a
from theory.frontier import sampled_fedsplit as theorem_b
from theory.frontier import scaled_dualfl as scales
from theory.frontier._compressed import CompressedCase
from theory.frontier.rounded import Moments
from theory.mutations import feddyn

BELOW = "g_j bounded below"
MODULES = {module.__name__ for module in (theorem_a, theorem_b, theorem_c, theorem_f, scales, compressed, rounded)}
CHAPTERS = {name: chapter for name, chapter in discover().items() if chapter.module in MODULES}


def telling_cases(name: str) -> Iterator[Any]:
    """The cases on which the claim says something and holds, the cheapest first."""
    return telling(CHAPTERS[name])


def is_violated(claim: Claim, cases: Iterator[Any]) -> bool:
    with np.errstate(all="ignore"):  # a wrong method may diverge
        return any(check(claim, case, check_assumptions=False).verdict == "violated" for case in cases)


def becomes(kind: type, base: type, case: Case) -> Case:
    """The same parameters in a wrong method."""
    method = case.algorithm
    if type(method) is not base:
        raise TypeError(f"a mutation of {base.__name__} says nothing about {type(method).__name__}.")
    return case.but(algorithm=kind(**{f.name: getattr(method, f.name) for f in fields(method) if f.init}))


# ---- wrong methods ----


class GrowthOfTheServerAlone(FedDyn):
    """Clients that stay with the first weight."""

    def local(self, clients, message, oracle, round):
        return super().local(clients, message, oracle, replace(round, n=0))


class WeightOfTheLastRound(FedDyn):
    """``theta = x - h/alpha_n`` where the clients' next weight belongs."""

    def server(self, server, mean, round):
        new, _ = super().server(server, mean, round)
        theta = mean - new.h / self.alpha_of(round.n)
        return new._replace(theta=theta), theta


class Relaxed(FedSplit):
    """Half of the reflection."""

    def local(self, clients, message, oracle, round):
        new, change = super().local(clients, message, oracle, round)
        return new._replace(z=clients.z + 0.5 * change), 0.5 * change


class ActiveOnly(FedSplit):
    """The mean change of the active clients for that of all."""

    def server(self, server, mean, round):
        return super().server(server, mean / round.fraction, round)


class NoMomentum(SampledDualFL):
    """``w = theta``."""

    def server(self, server, mean, round):
        new, message = super().server(server, mean, round)
        return new._replace(w=new.theta), message._replace(w=new.theta)


class EverybodysStep(SampledDualFL):
    """t from 1, as if all clients were active."""

    def init(self, theta0, copies):
        server, message, clients = super().init(theta0, copies)
        return server._replace(t=1.0), message._replace(t=1.0), clients


class FractionForgotten(SampledDualFL):
    """``v - (w - theta)/t`` for ``v - (P/N)(w - theta)/t``."""

    def server(self, server, mean, round):
        new, message = super().server(server, mean, round)
        v = server.v + (mean - server.w) / server.t
        w = (1.0 - new.t) * new.theta + new.t * v
        return new._replace(v=v, w=w), message._replace(w=w)


class WeightUnchanged(SampledDualFL):
    """The proximal weight of the first round in all rounds."""

    def local(self, c, message, oracle, round):
        solution = oracle.solve(
            start=c.theta,
            linear=-(c.z + self.nu * message.w),
            weight=self.nu * (1.0 / (self.fraction or 1.0) - 1.0),
            center=message.w,
        )
        z = c.z + self.nu / message.t * (message.w - solution.theta)
        return c._replace(theta=solution.theta, z=z), solution.theta


class DualStepWithoutT(SampledDualFL):
    """``z_j + nu (w - theta_j)``."""

    def local(self, c, message, oracle, round):
        new, theta = super().local(c, message, oracle, round)
        return new._replace(z=c.z + self.nu * (message.w - theta)), theta


class CenterAtZero(SampledDualFL):
    """The proximal term around zero."""

    def local(self, c, message, oracle, round):
        weight = self.nu * (1.0 / message.t - 1.0)
        linear = -(c.z + self.nu * message.w)
        theta = oracle.solve(start=c.theta, linear=linear, weight=weight, center=0.0 * message.w).theta
        return c._replace(theta=theta, z=c.z + self.nu / message.t * (message.w - theta)), theta


class WeightsForgotten(FedSplit):
    """The plain mean of changes whose weights are unequal."""

    def local(self, clients, message, oracle, round):
        new, _ = super().local(clients, message, oracle, round)
        return new, new.z - clients.z


class OneStepInTheSolver(FedSplit):
    """The common step in the local problem, the clients' own ones in the mean."""

    def local(self, clients, message, oracle, round):
        x = oracle.solve(start=clients.x, weight=1.0 / self.step, center=2.0 * message - clients.z).theta
        z = clients.z + 2.0 * (x - message)
        return clients._replace(z=z, x=x), weights(
            tuple(1.0 / s for s in self.scales or (1.0,) * round.n_clients), round, z
        ) * (z - clients.z)


class PlainMean(OptimizedDualFL):
    """The plain mean for that with the weights nu_j."""

    def local(self, c, message, oracle, round):
        new, _ = super().local(c, message, oracle, round)
        return new, new.sent


class OneParameter(OptimizedDualFL):
    """The common nu in the local problems."""

    def local(self, c, message, oracle, round):
        nu = self.nu * np.array(self.scales or ())[list(round.clients), None]
        return super().local(c._replace(zeta=c.zeta * self.nu / nu), message, oracle, round)


class ScaledChange(FedSplit):
    """The unbiased change, without the factor 1/(1 + omega)."""

    def local(self, c, message, oracle, round):
        new, change = super().local(c, message, oracle, round)
        change = change / kept(self.compressor, message.shape, round)
        return new._replace(z=c.z + change), change


class ChangeOfTheClientAlone(FedSplit):
    """The server learns the damped compressed change, the client keeps the whole one."""

    def local(self, c, message, oracle, round):
        new, change = super().local(c, message, oracle, round)
        return new._replace(z=c.z + 2.0 * (new.x - message)), change


class WholeMemory(FedDyn):
    """The memory follows the whole solution, of which the server knows a part."""

    def local(self, c, message, oracle, round):
        new, upload = super().local(c, message, oracle, round)
        assert oracle.solution is not None
        return new._replace(gradient=c.gradient - self.alpha * (oracle.solution.theta - message)), upload


class MemoryScaled(FedDyn):
    """Memories follow the scaled coordinates: 1/(1 + omega) forgotten."""

    def _memory(self, model, round):
        return self.alpha_of(round.n)


class PlainServer(FedDyn):
    """The mean over all clients of what some of them sent."""

    def server(self, server, mean, round):
        new, _ = super().server(server, mean, round)
        part = kept(self.compressor, mean.shape, round)  # pyright: ignore
        theta = server.theta + part * (mean - server.theta) - new.h / self.alpha
        return new._replace(theta=theta), theta


class Nearest(NaturalCompression):
    """The nearest power of two, without chance."""

    def compress(self, x, round):
        return np.sign(x) * np.exp2(np.round(np.log2(np.abs(x) / 1.5) + 0.5))


class LogarithmicCoin(NaturalCompression):
    """A probability that is linear in the logarithm."""

    def compress(self, x, round):
        draws = np.stack([rng.random(x.shape[1:], dtype="float64") for rng in round.compression_rngs()])
        exponent = np.log2(np.where(x == 0, 1.0, np.abs(x)))
        return np.sign(x) * np.exp2(np.floor(exponent) + (draws < exponent - np.floor(exponent)))


class Shifted(RandK):
    """The first k coordinates, whatever is drawn."""

    def compress(self, x, round):
        return np.where(np.arange(x.shape[1]) < self.size, x * x.shape[1] / self.size, 0.0)


class Unscaled(CoordinateCohorts):
    """The coordinates as they are, called unbiased."""

    def compress(self, x, round):
        return super().compress(x, round) * kept(self, x.shape[1:], round)


def compressing(kind: type, base: type, case: Any) -> Any:
    """The same case with a wrong compressor."""
    if isinstance(case, Moments) and type(case.compressor) is base:
        return replace(case, compressor=_wrong(kind, case.compressor))
    if isinstance(case, CompressedCase) and type(case.ways[0][0]) is base:
        return case.but(ways=tuple((_wrong(kind, compressor), round) for compressor, round in case.ways))
    if isinstance(case, Case) and type(getattr(case.algorithm, "compressor", None)) is base:
        return case.but(algorithm=replace(case.algorithm, compressor=_wrong(kind, case.algorithm.compressor)))
    raise TypeError(f"a mutation of {base.__name__} says nothing about this case.")


def _wrong(kind: type, right: Any) -> Any:
    return kind(**{f.name: getattr(right, f.name) for f in fields(right)})


def applicable(mutation: Callable[[Any], Any], cases: Iterator[Any]) -> Iterator[Any]:
    """The mutated cases; those about which the mutation says nothing are left out."""
    for case in cases:
        with suppress(TypeError):
            yield mutation(case)


def times_alpha(factor: float, case: Case) -> Case:
    return case.but(algorithm=replace(case.algorithm, alpha=factor * case.algorithm.alpha))


FEDDYN = {
    name: variant
    for name, variant in feddyn.MUTATIONS.items()
    if name
    in {"no h", "wrong sign of h", "1/P for 1/N in h", "no memory", "half the memory", "one client for the mean"}
}
MUTATIONS: dict[str, Callable[[Any], Any]] = {
    **{f"FedDyn: {name}": partial(becomes, variant.args[0], FedDyn) for name, variant in FEDDYN.items()},  # pyright: ignore[reportFunctionMemberAccess]
    "FedDyn: half of alpha*": partial(times_alpha, 0.5),
    "FedDyn: growth of the server alone": partial(becomes, GrowthOfTheServerAlone, FedDyn),
    "FedDyn: weight of the last round": partial(becomes, WeightOfTheLastRound, FedDyn),
    "FedDyn: three times the growth": lambda case: case.but(
        algorithm=replace(case.algorithm, growth=3.0 * case.algorithm.growth)
    ),
    "SampledDualFL: no momentum": partial(becomes, NoMomentum, SampledDualFL),
    "SampledDualFL: t from 1": partial(becomes, EverybodysStep, SampledDualFL),
    "SampledDualFL: P/N forgotten in v": partial(becomes, FractionForgotten, SampledDualFL),
    "SampledDualFL: the first weight always": partial(becomes, WeightUnchanged, SampledDualFL),
    "SampledDualFL: no 1/t in the dual step": partial(becomes, DualStepWithoutT, SampledDualFL),
    "SampledDualFL: proximal term at zero": partial(becomes, CenterAtZero, SampledDualFL),
    "FedSplit: half the step": partial(becomes, Relaxed, FedSplit),
    "OptimizedDualFL: the plain mean": partial(becomes, PlainMean, OptimizedDualFL),
    "OptimizedDualFL: one nu in the local problems": partial(becomes, OneParameter, OptimizedDualFL),
    "Compressed FedSplit: 1/(1 + omega) forgotten": partial(becomes, ScaledChange, FedSplit),
    "Compressed FedSplit: the client keeps the whole change": partial(becomes, ChangeOfTheClientAlone, FedSplit),
    "Compressed FedDyn: the whole memory": partial(becomes, WholeMemory, FedDyn),
    "Compressed FedDyn: 1/(1 + omega) forgotten": partial(becomes, MemoryScaled, FedDyn),
    "Compressed FedDyn: N for c": partial(becomes, PlainServer, FedDyn),
    "Rounded FedSplit: 1/(1 + omega) forgotten": partial(becomes, ScaledChange, FedSplit),
    "Rounded FedSplit: the client keeps the whole change": partial(becomes, ChangeOfTheClientAlone, FedSplit),
    "Rounded FedSplit: the nearest power": partial(compressing, Nearest, NaturalCompression),
    "Rounded FedSplit: a coin in the logarithm": partial(compressing, LogarithmicCoin, NaturalCompression),
    "Compressor: the nearest power": partial(compressing, Nearest, NaturalCompression),
    "Compressor: a coin in the logarithm": partial(compressing, LogarithmicCoin, NaturalCompression),
    "Compressed FedSplit: always the same coordinates": partial(compressing, Shifted, RandK),
    "Compressed FedSplit: cohorts not scaled": partial(compressing, Unscaled, CoordinateCohorts),
    "Compressed FedDyn: cohorts not scaled": partial(compressing, Unscaled, CoordinateCohorts),
    "FedSplit: weights forgotten": partial(becomes, WeightsForgotten, FedSplit),
    "FedSplit: one step for all in the local problems": partial(becomes, OneStepInTheSolver, FedSplit),
    "FedSplit: 1/P for 1/N": partial(becomes, ActiveOnly, FedSplit),
}
CLAIM_OF = {
    "FedDyn": "sampled_feddyn",
    "FedSplit": "sampled_fedsplit",
    "SampledDualFL": "sampled_dualfl_potential",
    "OptimizedDualFL": "scaled_dualfl",
    "Compressed FedSplit": "compressed_fedsplit",
    "Compressed FedDyn": "compressed_feddyn",
    "Rounded FedSplit": "rounded_fedsplit",
    "Compressor": "compressor_moments",
}
GROWING = {name for name in MUTATIONS if "growth" in name or "last round" in name}
CATCHES = {name: {"growing_feddyn"} if name in GROWING else {CLAIM_OF[name.split(":")[0]]} for name in MUTATIONS}


@pytest.mark.parametrize(("mutation", "name"), [(m, name) for m, names in CATCHES.items() for name in sorted(names)])
def test_wrong_variants_are_caught(mutation: str, name: str) -> None:
    assert is_violated(CHAPTERS[name].claim, applicable(MUTATIONS[mutation], telling_cases(name)))


@pytest.mark.parametrize(
    "name",
    [
        "sampled_feddyn",
        "sampled_fedsplit",
        "growing_feddyn",
        "compressed_fedsplit",
        "rounded_fedsplit",
        "compressor_moments",
    ],
)
def test_attained_factors_cannot_be_less(name: str) -> None:
    claim = CHAPTERS[name].claim
    less = replace(claim, compare=lambda case: (c._replace(rhs=(1 - 1e-6) * c.rhs) for c in claim.compare(case)))
    assert is_violated(less, (case for case in telling_cases(name) if case.attained))


@pytest.mark.parametrize("wrong", [0.0, 0.5, 2.0])
def test_the_weight_of_the_memories_is_needed(wrong: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """1/p forgotten (0), half of C, twice C."""
    right = theorem_a.dual_weight

    def weight(case: Case) -> float:
        return (wrong or case.fraction) * right(case)

    monkeypatch.setattr(theorem_a, "dual_weight", weight)
    assert is_violated(CHAPTERS["sampled_feddyn"].claim, telling_cases("sampled_feddyn"))


def test_the_marginals_are_needed() -> None:
    """The plain sum of squares does not contract by the least of unequal probabilities in every round."""
    claim = CHAPTERS["sampled_fedsplit"].claim

    class Plain(theorem_b.SampledCase):
        @property
        def marginals(self):
            return np.full(self.n_clients, 0.5)

    def plainly(case: theorem_b.SampledCase) -> Plain:
        return Plain(**{f.name: getattr(case, f.name) for f in fields(case)})

    assert is_violated(claim, map(plainly, telling_cases("sampled_fedsplit")))


@pytest.mark.parametrize("name", ["sampled_feddyn", "growing_feddyn", "sampled_dualfl_potential", "scaled_dualfl"])
def test_what_the_assumptions_exclude_goes_wrong(name: str) -> None:
    """But for the dual energies that are infinite, which no inequality contradicts, and clients without a theorem."""
    excluded = [case for case, verdict in CHAPTERS[name].cases(True) if verdict == "outside assumptions"]
    telling = [case for case in excluded if case.mu > 0 and CHAPTERS[name].claim.assumptions(case) != [BELOW]]
    assert len(telling) >= 1
    assert all(is_violated(CHAPTERS[name].claim, iter([case])) for case in telling)


@pytest.mark.parametrize("parameters", [{"rho": 30.0}, {"rho": 30.0, "nu": 1.0}])
def test_a_momentum_that_is_too_small_breaks_theorem_f(parameters: dict[str, float]) -> None:
    """rho beyond nu/L: t settles at a step that is too long."""
    case = theorem_f.sampled(lopsided(), 4, 40, **parameters)  # pyright: ignore[reportArgumentType]
    assert check(CHAPTERS["sampled_dualfl"].claim, case).verdict == "outside assumptions"
    assert is_violated(CHAPTERS["sampled_dualfl"].claim, iter([case]))


@pytest.mark.parametrize("wrong", [{"weight": 0.5}, {"first_bound": 0.5}])
def test_theorem_f_needs_its_constants(wrong: dict[str, float], monkeypatch: pytest.MonkeyPatch) -> None:
    (name, factor), right = next(iter(wrong.items())), getattr(theorem_f, next(iter(wrong)))
    monkeypatch.setattr(theorem_f, name, lambda *arguments: factor * right(*arguments))
    claim = "sampled_dualfl_potential" if name == "weight" else "sampled_dualfl"
    assert is_violated(CHAPTERS[claim].claim, telling_cases(claim))


def test_the_reduction_to_a_momentum_method_is_not_dualfl() -> None:
    """All clients active and rho = 0: the bound of Theorem 3.2, by other points."""
    f = quadratic()
    case = theorem_f.sampled(f, 3, 30, rho=0.0, nu=1.0)
    initial = float(np.sum(dual_optimum(case) ** 2)) / (2.0 * case.algorithm.nu)
    assert theorem_f.first_bound(case) == pytest.approx(initial, rel=1e-12)
    dualfl = DualFL(rho=0.0, nu=case.algorithm.nu, solver=Exact())
    one, other = ([s.server.theta for s in islice(iterate(m, f.objective), 5)] for m in (case.algorithm, dualfl))
    np.testing.assert_allclose(one[0], other[0], rtol=1e-12)
    assert np.max(np.abs(one[4] - other[4])) > 1e-3 * np.max(np.abs(one[0]))


def test_twice_the_largest_step_does_not_contract_so_fast() -> None:
    """With gamma = 2 gamma* the worst growth is 1.05 to 1.06 times the factor of that gamma."""
    claim = CHAPTERS["sampled_feddyn"].claim
    case = theorem_a.sampled_case(hard_quadratic(), 1, times=0.5)
    (worst,) = (c for c in claim.compare(case) if c.what == "worst growth")
    assert 1.04 < worst.lhs / worst.rhs < 1.07


def test_every_claim_is_caught_by_some_mutation() -> None:
    others = {"sampled_feddyn_rounds", "sampled_dualfl_step", "sampled_dualfl"}  # below, and constants above
    assert set().union(*CATCHES.values()) | others == set(CHAPTERS)
    assert set(CATCHES) == set(MUTATIONS)


@pytest.mark.parametrize("factor", [0.99, 1.01])
def test_another_weight_does_not_solve_the_equation(factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(theorem_a, "best_weight", lambda *constants: factor * best_weight(*constants))
    assert is_violated(CHAPTERS["sampled_feddyn_rounds"].claim, telling_cases("sampled_feddyn_rounds"))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda t, rho, p: next_step(t, 0.9 * rho, p),
        lambda t, rho, p: next_step(t, 0.0, p),
        lambda t, rho, p: next_step(t, rho, 1.0),
        lambda t, rho, p: 0.999 * next_step(t, rho, p),
    ],
    ids=["smaller rho", "rho = 0", "p = 1", "smaller"],
)
def test_wrong_steps_are_caught(wrong) -> None:
    changed = (case._replace(next_step=wrong) for case in telling_cases("sampled_dualfl_step"))
    assert is_violated(CHAPTERS["sampled_dualfl_step"].claim, changed)


# ---- problems that are drawn ----

many = settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
QUADRATICS = st.one_of(
    quadratics(L=st.floats(1.5, 300.0), n_clients=st.integers(2, 4), heterogeneity=st.floats(0.1, 10.0)), UNEQUAL
)


def some(objective: Quadratic, share: float) -> int:
    """A number of active clients."""
    return 1 + int(share * objective.n_clients)


@many
@given(objective=QUADRATICS, share=st.floats(0.0, 0.99), times=st.floats(1.0, 10.0))
def test_theorem_a_on_drawn_problems(objective, share: float, times: float) -> None:
    f = solved("drawn", objective)
    assume(np.linalg.norm(f.theta) < 100)
    verdict = check(CHAPTERS["sampled_feddyn"].claim, theorem_a.sampled_case(f, some(objective, share), times=times))
    assert verdict.verdict == "holds", verdict.witness or verdict.failed


@many
@given(
    objective=QUADRATICS,
    chances=st.lists(st.floats(0.05, 1.0), min_size=5, max_size=5),
    times=st.floats(0.1, 10.0),
    scaled=st.booleans(),
)
def test_theorem_b_on_drawn_problems(objective, chances: list[float], times: float, scaled: bool) -> None:
    f = solved("drawn", objective)
    assume(np.linalg.norm(f.theta) < 100)
    law = theorem_b.coins(*chances[: objective.n_clients])
    case = theorem_b.sampled_case(f, law, "drawn", times=times, scaled=scaled)
    verdict = check(CHAPTERS["sampled_fedsplit"].claim, case)
    assert verdict.verdict == "holds", verdict.witness or verdict.failed


@many
@given(objective=QUADRATICS, share=st.floats(0.0, 0.99), alpha=st.floats(0.01, 30.0), times=st.floats(0.0, 1.0))
def test_theorem_c_on_drawn_problems(objective, share: float, alpha: float, times: float) -> None:
    f = solved("drawn", objective)
    assume(np.linalg.norm(f.theta) < 100)
    case = theorem_c.growing_case(f, some(objective, share), 2, alpha=alpha, times=times)
    verdict = check(CHAPTERS["growing_feddyn"].claim, case)
    assert verdict.verdict == "holds", verdict.witness or verdict.failed


@many
@given(objective=QUADRATICS, kind=st.sampled_from([DualFL, OptimizedDualFL]), part=st.floats(0.3, 0.99))
def test_one_parameter_for_each_client_on_drawn_problems(objective, kind: type, part: float) -> None:
    f = solved("drawn", objective)
    assume(np.linalg.norm(f.theta) < 10)
    case = scales.scaled_case(f, kind, 30, rho=0.0 if kind is DualFL else None, times=part)
    verdict = check(CHAPTERS["scaled_dualfl"].claim, case)
    assert verdict.verdict in ("holds", "vacuous"), verdict.witness or verdict.failed


@many
@given(objective=QUADRATICS, share=st.floats(0.0, 0.99), rho=st.floats(0.0, 1.0), nu=st.floats(0.1, 0.99))
def test_theorem_f_on_drawn_problems(objective, share: float, rho: float, nu: float) -> None:
    f = solved("drawn", objective)
    assume(np.linalg.norm(f.theta) < 100)
    for claim, rounds in (("sampled_dualfl_potential", 12), ("sampled_dualfl", 2)):
        verdict = check(CHAPTERS[claim].claim, theorem_f.sampled(f, some(objective, share), rounds, rho=rho, nu=nu))
        assert verdict.verdict == "holds", verdict.witness or verdict.failed


# ---- what the suggestion is worth ----


def rounds_of(method: Algorithm, f: Quadratic, active: int, target: float) -> int:
    """Rounds until the squared distance is this fraction of that of the start."""
    best, start = f.minimiser(), float(np.sum(f.minimiser() ** 2))
    for n, s in enumerate(islice(iterate(method, f, participation=UniformSubset(size=active)), 4000), start=1):
        if np.sum((s.server.theta - best) ** 2) <= target * start:
            return n
    return 4000


def test_the_suggested_weight_saves_more_than_half_of_the_rounds() -> None:
    """2 of 20 clients, kappa = 100: the theorem has 497 rounds to 1e-10; sqrt(L mu) takes more than twice as many."""
    rng = np.random.default_rng(0)
    matrices = []
    for _ in range(20):
        q, _ = np.linalg.qr(rng.standard_normal((10, 10)))
        spectrum = np.concatenate([[1.0, 100.0], np.exp(rng.uniform(0.0, np.log(100.0), 8))])
        matrices.append((q * spectrum) @ q.T)
    A = np.stack(matrices)
    f = Quadratic(A=0.5 * (A + A.transpose(0, 2, 1)), b=np.einsum("nij,nj->ni", A, rng.standard_normal((20, 10))))
    suggested = rounds_of(FedDyn(solver=Exact()), f, 2, 1e-10)
    lighter = rounds_of(FedDyn(alpha=10.0, solver=Exact()), f, 2, 1e-10)
    assert suggested < 497
    assert lighter > 2 * suggested


def test_one_step_for_each_client_saves_four_fifths_of_the_rounds() -> None:
    """kappa_j = 100 and scales from 1 to 100, all clients active: as if all had the condition number of one of them."""
    rng = np.random.default_rng(1)
    matrices = []
    for scale in np.geomspace(1.0, 100.0, 10):
        q, _ = np.linalg.qr(rng.standard_normal((6, 6)))
        matrices.append(scale * (q * np.array([1.0, 100.0, *np.exp(rng.uniform(0.0, np.log(100.0), 4))])) @ q.T)
    A = np.stack(matrices)
    f = Quadratic(A=0.5 * (A + A.transpose(0, 2, 1)), b=np.einsum("nij,nj->ni", A, rng.standard_normal((10, 6))))
    scaled, common = (rounds_of(FedSplit(scaled=scaled, solver=Exact()), f, 10, 1e-10) for scaled in (True, False))
    assert scaled < 1.0 + np.log(1e10) / 0.4  # 1 - 2/(sqrt(kappa_j) + 1) = 0.818 for the squares' roots
    assert common > 4 * scaled
    told = [FedSplit(scaled=scaled).guarantee(f) for scaled in (True, False)]
    assert told == [f"contraction by {1 - 2 / (root + 1):.4f} per round" for root in (10.0, 100.0)]
    optimized = [rounds_of(OptimizedDualFL(scaled=scaled, solver=Exact()), f, 10, 1e-10) for scaled in (True, False)]
    assert optimized[1] > 4 * optimized[0]
