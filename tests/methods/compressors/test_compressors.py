"""Compressors of ours beside their contract, ``dualopt/lab/contracts/test_compressors.py``."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from dualopt.lab.contracts.test_compressors import *  # noqa: F403
from dualopt.lab.contracts.test_compressors import (
    SHAPE,
    N,
    X,
    of,
    test_what_a_client_sends_does_not_depend_on_who_else_does,
)
from dualopt.methods.compressors import (
    CoordinateCohorts,
    Identity,
    NaturalCompression,
    RandK,
    RandomQuantisation,
    Rounding,
    TopK,
    Uplink,
    kept_part,
)
from dualopt.methods.participation import Round, first_round
from dualopt.spec import built
from theory.frontier._draws import orders_for_all, orders_for_each, scripted


def test_one_stream_for_all_clients_would_be_noticed() -> None:
    class OneStream(RandK):
        def compress(self, x, round):
            rng = round.compression_rng()
            return np.where(np.stack([rng.permutation(6).reshape(SHAPE) for _ in x]) < self.size, x, 0.0)

    with pytest.raises(AssertionError):
        test_what_a_client_sends_does_not_depend_on_who_else_does(OneStream(size=2))


def test_chance_is_that_of_the_seed_and_the_round(compressor) -> None:
    """Other rounds, other seeds: other values for those with chance; the same ones for the same."""
    first = compressor.compress(X, of((0, 1, 2, 3)))
    np.testing.assert_array_equal(compressor.compress(X, of((0, 1, 2, 3))), first)
    others = [compressor.compress(X, of((0, 1, 2, 3), n=n, seed=seed)) for n, seed in ((6, 3), (5, 4))]
    chance = not isinstance(compressor, Identity | Rounding | TopK)
    assert all(bool(np.any(other != first)) == chance for other in others)


def test_a_sign_is_never_changed(compressor) -> None:
    assert (compressor.compress(X, of((0, 1, 2, 3))) * X >= 0).all()


def test_numbers_are_counted(compressor) -> None:
    """No more numbers arrive than are told, norms included; where zeros are sent too, as many as there are."""
    for clients in ((0, 1, 2, 3), (1, 3)):
        round = of(clients)
        arrived = int(np.count_nonzero(compressor.compress(X[list(clients)], round)))
        told = compressor.numbers(SHAPE, round)
        if isinstance(compressor, RandomQuantisation | Rounding):
            assert told == len(clients) * 7
        else:
            assert told == arrived


@pytest.mark.parametrize(
    ("compressor", "per_client"),
    [
        (Identity(), 6 * 32),
        (NaturalCompression(), 6 * 9),
        (RandK(size=2), 2 * 32),
        (TopK(size=2), 2 * (32 + 3)),
        (RandomQuantisation(levels=1), 32 + 6 * 2),
        (RandomQuantisation(levels=7), 32 + 6 * 4),
        (RandomQuantisation(levels=8), 32 + 6 * 5),
        (Rounding(digits=2), 32 + 6 * 2),
        (Rounding(digits=8), 32 + 6 * 8),
    ],
)
def test_bits_are_those_of_the_code(compressor, per_client: int) -> None:
    assert compressor.bits(SHAPE, 32, of((0, 1, 2))) == 3 * per_client


@pytest.mark.parametrize(("d", "position"), [(1, 0), (2, 1), (4, 2), (5, 3), (8, 3), (9, 4)])
def test_a_position_takes_as_many_bits_as_tell_them_apart(d: int, position: int) -> None:
    assert TopK(size=1).bits((d,), 64, first_round(1)) == 64 + position


def test_a_code_of_that_many_bits_holds_every_value() -> None:
    """Natural compression in nine bits: the first nine of an IEEE float32 tell the number."""
    x = np.random.default_rng(0).standard_normal((1, 4000)) * 10.0 ** np.random.default_rng(1).uniform(-37, 37, 4000)
    sent = NaturalCompression().compress(x, first_round(1))
    words = sent.astype(np.float32).view(np.uint32)
    code = words >> 23  # sign and exponent
    assert int(code.max()) < 2**9
    np.testing.assert_array_equal((code << 23).astype(np.uint32).view(np.float32).astype(float), sent)


def test_quantisation_has_that_many_levels() -> None:
    x = np.random.default_rng(0).standard_normal((2, 500)) ** 3
    sent = RandomQuantisation(levels=3).compress(x, first_round(2))
    levels = 3 * sent / np.linalg.norm(x, axis=1, keepdims=True)
    np.testing.assert_allclose(levels, np.round(levels), atol=1e-12)
    assert len(np.unique(np.round(levels))) <= 7
    assert 2 ** (RandomQuantisation(levels=3).bits((1,), 0, first_round(1))) >= 7


@pytest.mark.parametrize(("d", "s"), [(4, 3), (16, 2), (16, 6), (64, 12), (9, 1), (9, 3), (25, 100), (10_000, 2)])
def test_the_variance_of_quantisation_is_at_most_that_of_its_constant(d: int, s: int) -> None:
    """Both draws of every coordinate.

    Where all of them are halfway between two levels, or far below the first one, no smaller omega is true.
    """
    omega = RandomQuantisation(levels=s).omega((d,), 1)
    for x in (np.ones(d), np.arange(1.0, d + 1.0), np.where(np.arange(d) < d // 4, 3.0, -1.0)):
        a = s * np.abs(x) / np.linalg.norm(x)
        up = a - np.floor(a)  # the probability
        low, high = (
            RandomQuantisation(levels=s).compress(x[None], scripted(1, np.full((1, d), draw)))[0]
            for draw in (1.0 - 2.0**-53, 0.0)
        )
        np.testing.assert_allclose((1.0 - up) * low + up * high, x, rtol=1e-13)
        np.testing.assert_array_equal(low[up == 0], high[up == 0])  # whatever is drawn
        assert RandomQuantisation.unbiased
        variance = float(np.sum((1.0 - up) * (low - x) ** 2 + up * (high - x) ** 2) / np.sum(x**2))
        assert variance <= omega * (1.0 + 1e-13)
        if np.all(up == 0.5):
            assert variance == pytest.approx(omega, rel=1e-13)
            assert omega == d / (4 * s * s)
        if np.all(a == a[0]) and 4 * s < math.sqrt(d):
            assert variance >= 0.98 * omega * (1.0 - 1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_natural_compression_at_the_ends_of_its_exponents(dtype: type) -> None:
    x = np.array([[2.0**-130, -(2.0**-126), 2.0**127, np.inf]], dtype=dtype)
    up, down = (
        NaturalCompression().compress(x, scripted(1, np.full((1, 4), draw)))[0].tolist() for draw in (0.0, 0.99)
    )
    assert up == [2.0**-126, -(2.0**-126), 2.0**127, np.inf]
    assert down == [0.0, -(2.0**-126), 2.0**127, np.inf]
    if dtype is np.float64:
        far = NaturalCompression().compress(np.array([[-(2.0**127.5)]]), scripted(1, [[0.5]]))
        assert far.tolist() == [[-np.inf]]


def test_chosen_coordinates_have_their_law() -> None:
    """All orders: the exact mean, and the exact second moment of a client."""
    x = X[:2].reshape(2, 6)[:, :3]
    sent = [RandK(size=2).compress(x, round) for round in orders_for_each(2, 3)]
    np.testing.assert_allclose(np.mean(sent, axis=0), x, rtol=1e-14)
    np.testing.assert_allclose(np.mean(np.square(sent), axis=0), 1.5 * x**2, rtol=1e-14)
    assert RandK(size=2).omega((3,), 2) == 0.5
    for c in (1, 2, 3, 4):
        sent = [CoordinateCohorts(size=c).compress(X, round) for round in orders_for_all(N)]
        np.testing.assert_allclose(np.mean(sent, axis=0), X, rtol=1e-14)
        np.testing.assert_allclose(np.mean(np.square(sent), axis=0), N / c * X**2, rtol=1e-14)


def test_every_coordinate_has_its_cohort() -> None:
    """c clients in every round; all cohorts of a coordinate equally often over all permutations; counted exactly."""
    for c in (1, 2, 3):
        counts: dict[tuple[bool, ...], int] = {}
        for round in orders_for_all(N):
            chosen = CoordinateCohorts(size=c).compress(np.ones((N, 7)), round) != 0
            assert (chosen.sum(axis=0) == c).all()
            assert int(np.ptp(chosen.sum(axis=1))) <= 1
            counts[tuple(chosen[:, 4])] = counts.get(tuple(chosen[:, 4]), 0) + 1
            for clients in ((0,), (1, 2), (0, 1, 2, 3)):
                part = replace(round, clients=clients)
                for d in range(1, 8):
                    told = CoordinateCohorts(size=c).numbers((d,), part)
                    assert told == int(chosen[list(clients), :d].sum())
        assert len(counts) == math.comb(N, c)
        assert len(set(counts.values())) == 1


def uplink(compressor, reference: str, memory=(), round: Round | None = None) -> Uplink:
    return Uplink(compressor, reference, (X[0], 1.0), SHAPE, round or of((0, 1, 2, 3)), memory)


def test_what_arrives_is_measured_from_what_both_ends_know() -> None:
    """From zero, the message, a memory, what did not arrive, or what the method says; the part 1/(1 + omega) of it."""
    c, round = RandK(size=3), of((0, 1, 2, 3))
    assert kept_part(c, SHAPE, N) == 0.5

    def step(x):
        return c.compress(x, round)

    M = np.random.default_rng(5).standard_normal(X.shape)
    for reference, short, whole, memory in (
        ("nothing", 0.5 * step(X), step(X), ()),
        ("message", X[0] + 0.5 * step(X - X[0]), X[0] + step(X - X[0]), ()),
        ("memory", M + 0.5 * step(X - M), M + step(X - M), (M + 0.5 * step(X - M),)),
        ("errors", 0.5 * step(X + M), step(X + M), (X + M - 0.5 * step(X + M),)),
    ):
        known = (M,) if memory else ()
        up = uplink(c, reference, known)
        np.testing.assert_allclose(up.sent(X), short, rtol=1e-14)
        for found, expected in zip(up.memory, memory, strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-14)
        np.testing.assert_allclose(uplink(c, reference, known).sent(X, unbiased=True), whole, rtol=1e-14)
        up = uplink(c, reference, known)
        np.testing.assert_allclose(up.sent(X, since=2.0 * M), 2.0 * M + 0.5 * step(X - 2.0 * M), rtol=1e-14)
        assert up.memory is known  # the method has its own


def test_the_part_that_arrives_of_cohorts_of_coordinates_is_that_of_all_clients() -> None:
    c, round = CoordinateCohorts(size=2), of((1, 3))
    assert kept_part(c, SHAPE, N) != kept_part(c, SHAPE, 2)
    arrived = kept_part(c, SHAPE, N) * c.compress(X[[1, 3]], round)
    np.testing.assert_allclose(uplink(c, "nothing", round=round).sent(X[[1, 3]]), arrived, rtol=1e-14)


def test_scalars_and_silent_rounds_are_left_alone() -> None:
    up = uplink(TopK(size=1), "nothing")
    x, value, products = up.sent((X, X[:, 0, 0], X[:, 0]))
    assert np.count_nonzero(x) == N
    np.testing.assert_array_equal(value, X[:, 0, 0])
    np.testing.assert_array_equal(products, X[:, 0])
    assert up.vectors == 1
    assert up.rest(X) is X  # never twice
    up = uplink(TopK(size=1), "memory", round=replace(of((0, 1, 2, 3)), communicate=False))
    assert up.sent(X) is X
    assert (up.memory, up.vectors) == ((), 0)
    up = uplink(TopK(size=1), "memory")
    assert up.in_single(X).dtype == np.float32
    assert up.rest(X) is X  # though it has the shape of the model


def test_every_vector_has_its_own_memory() -> None:
    c, known = TopK(size=2), tuple(np.random.default_rng(6).standard_normal((3, *X.shape)))
    up = uplink(c, "memory", known)
    found = up.sent((X, 2.0 * X, -X))
    for x, before, arrived, after in zip((X, 2.0 * X, -X), known, found, up.memory, strict=True):
        np.testing.assert_array_equal(arrived, before + c.compress(x - before, of((0, 1, 2, 3))))
        np.testing.assert_array_equal(after, arrived)


def test_the_part_of_a_step_is_that_of_all_clients() -> None:
    """Whoever is active: with cohorts it depends on how many clients there are."""
    c, round = CoordinateCohorts(size=2), of((1, 3))
    found = uplink(c, "nothing", round=round).sent(X[[1, 3]])
    np.testing.assert_array_equal(found, 2.0 / N * c.compress(X[[1, 3]], round))


def test_which_are_biased(compressor) -> None:
    """And nothing is lost where all is sent: of everything both ends take the whole."""
    assert compressor.unbiased == (not isinstance(compressor, TopK | Rounding))
    drawn = [getattr(compressor, "independent", None)] if compressor.unbiased else []
    assert drawn in ([], [not isinstance(compressor, CoordinateCohorts)])  # whose clients share one draw
    assert not isinstance(compressor, Identity) or compressor.omega(SHAPE, N) == 0.0


def test_a_memory_tends_to_what_comes_to_rest(compressor) -> None:
    memory: tuple = ()
    for n in range(200):
        up = uplink(compressor, "memory", memory, of((0, 1, 2, 3), n=n))
        up.sent(X)
        memory = up.memory
    np.testing.assert_allclose(memory[0], X, atol=1e-12)


def contraction(digits: int, d: int) -> float:
    c = (d - 1) / (4.0 * (2 ** (digits - 1) - 1) ** 2)
    return c / (1.0 + c)


@pytest.mark.parametrize("digits", [2, 3, 8, 32])
def test_rounding_contracts(digits: int) -> None:
    """On numbers of all sizes; and as badly as that where one is s and the others are half a level."""
    rng = np.random.default_rng(0)
    for d in (1, 2, 7, 400):
        x = rng.standard_normal((200, d)) * 10.0 ** rng.uniform(-9, 9, (200, d))
        x[:100] = rng.standard_normal((100, d))
        error = Rounding(digits=digits).compress(x, first_round(200)) - x
        limit = contraction(digits, d)
        assert (np.sum(error**2, axis=1) <= (limit + 1e-15) * np.sum(x**2, axis=1)).all()
        worst = np.full((1, d), (0.5 - 1e-9) / (2 ** (digits - 1) - 1))
        worst[0, -1] = -1.0
        error = Rounding(digits=digits).compress(worst, first_round(1)) - worst
        assert np.sum(error**2) >= (1.0 - 1e-8) * limit * np.sum(worst**2)


def test_rounding_has_that_many_levels() -> None:
    x = np.random.default_rng(0).standard_normal((2, 5000)) ** 3
    sent = Rounding(digits=4).compress(x, first_round(2))
    levels = 7 * sent / np.abs(x).max(axis=1, keepdims=True)
    np.testing.assert_allclose(levels, np.round(levels), atol=1e-12)
    assert set(np.round(levels).ravel()) <= set(range(-7, 8))


def test_biased_ones_contract_as_they_are(compressor) -> None:
    """What both ends take of a step is nearer than nothing, in the mean; unbiased ones by 1/(1 + omega)."""
    omega, x = compressor.omega(SHAPE, N), X / np.linalg.norm(X.reshape(N, -1), axis=1)[:, None, None]
    steps = [compressor.compress(x, of((0, 1, 2, 3), n=n)) / (1.0 + omega) for n in range(400)]
    left = np.mean([np.sum((s - x) ** 2, axis=(1, 2)) for s in steps], axis=0)
    if compressor.unbiased:
        assert (left <= 1.0 - 1.0 / (1.0 + omega) + 0.1).all()
    else:
        assert omega == 0.0
        assert (left < 1.0 - 1.0 / 6.0 + 1e-12).all()


def test_the_largest_coordinates_are_kept() -> None:
    for order in permutations((3.0, -2.0, 1.0, 0.5)):
        sent = TopK(size=2).compress(np.array([order]), first_round(1))
        assert sorted(sent[0].tolist()) == [-2.0, 0.0, 0.0, 3.0]
    ties = TopK(size=1).compress(np.array([[1.0, -1.0]]), first_round(1))
    assert ties.tolist() == [[1.0, 0.0]]
    for d in (17, 100, 1000):  # so many that sorting exchanges equal ones, unless it is told not to
        x = np.where(np.arange(d) % 3 == 1, -2.0, np.where(np.arange(d) % 3 == 2, 2.0, 1.0))
        sent = TopK(size=5).compress(np.stack([x, -x]), first_round(2))
        assert [np.flatnonzero(row).tolist() for row in sent] == [[1, 2, 4, 5, 7]] * 2


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("rand-k", "compressor rand-k needs size: write 'rand-k: size=...'"),
        ("natural=3", "compressor natural has no parameters: 3 is unknown"),
        ("rand-k=0", "size must be at least 1, not 0"),
        ("top-k=0", "size must be at least 1, not 0"),
        ("cohorts=0", "size must be at least 1, not 0"),
        ("quantisation=0", "levels must be at least 1, not 0"),
        ("rounding=1", "digits must be from 2 to 32, not 1"),
        ("rounding=33", "digits must be from 2 to 32, not 33"),
    ],
)
def test_mistakes_of_a_user(text: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        built(text, "compressor")


@pytest.mark.parametrize(
    ("compressor", "what"),
    [
        (RandK(size=7), "coordinates, 6, not 7"),
        (TopK(size=7), "coordinates, 6, not 7"),
        (CoordinateCohorts(size=5), "clients, 4, not 5"),
    ],
)
def test_what_does_not_fit_is_refused(compressor, what: str) -> None:
    for use in (lambda: compressor.omega(SHAPE, N), lambda: compressor.compress(X, of((0, 1, 2, 3)))):
        with pytest.raises(ValueError, match=f"size of the compressor must be at most the number of {what}"):
            use()
