"""Samples of rows, and the gradients that are estimated from them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from model_instances import LOSSES, assert_close, model, on, points, rows

from dualopt.arrays.xp import device, to_numpy
from dualopt.losses import Logistic, Multinomial, Squared
from dualopt.objectives import LocalProblem, linear_model
from dualopt.objectives import rows as rows_module

every_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)
LENGTHS = {"equal": (4,) * 7, "unequal": (4, 2, 4, 5, 1, 2, 4), "long": (40,) * 7}


def generators(n, seed=0):
    return [np.random.default_rng((seed, j)) for j in range(n)]


def sample_of(f, lengths, seed=5):
    rng = np.random.default_rng(seed)
    return tuple(rng.integers(0, m, size=b) for m, b in zip(f.sizes, lengths, strict=True))


def literal(f, theta, sample):
    """Estimate gradients one client and one row at a time."""
    found = []
    for j, (X, y, w) in enumerate(f.client_rows()):
        gradient = f.ridge * theta[j]
        for i in sample[j]:
            z = np.atleast_1d(theta[j] @ X[i])
            slope = f.loss.gradient(z if f.loss.outputs == 1 else z[:, None], y[i : i + 1])
            share = len(y) * w[i] / len(sample[j])
            gradient = gradient + share * (slope[0] * X[i] if f.loss.outputs == 1 else slope * X[i])
        found.append(gradient)
    return np.stack(found)


@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)
@pytest.mark.parametrize("weighted", [False, True], ids=["mean", "weighted"])
@every_loss
def test_it_is_the_literal_loop(loss, weighted, lengths, backend):
    data = rows(loss)
    weights = np.random.default_rng(3).uniform(0.1, 2.0, size=len(data.y))
    reference = model(loss, data, weights=weights) if weighted else model(loss, data)
    moved = on(backend, data)
    f = model(loss, moved, weights=backend(weights)) if weighted else model(loss, moved)
    theta, sample = points(f), sample_of(f, lengths)
    like = backend(theta)
    result = f.sample_gradient(like, sample)
    assert (type(result), result.dtype, device(result)) == (type(like), like.dtype, device(like))
    assert_close(to_numpy(result), literal(reference, theta, sample))
    shared = f.sample_gradient(like[0, ...], sample)
    repeated = f.sample_gradient(backend(np.repeat(theta[:1], 7, axis=0)), sample)
    assert to_numpy(shared).tobytes() == to_numpy(repeated).tobytes()


@every_loss
def test_every_row_once_gives_the_gradient(loss):
    f = model(loss)
    theta = points(f)
    rng = np.random.default_rng(0)
    shuffled = tuple(rng.permutation(m) for m in f.sizes)
    assert_close(f.sample_gradient(theta, f.draw(generators(7), None)), f.gradient(theta))
    assert_close(f.sample_gradient(theta, shuffled), f.gradient(theta))


@pytest.mark.parametrize("batch", [1, 2])
@every_loss
def test_the_mean_over_all_samples_is_the_gradient(loss, batch):
    """Every sample of ``batch`` rows has the same chance: the expectation is a finite sum."""
    data = rows(loss, (3, 2, 3))
    weights = np.random.default_rng(3).uniform(0.1, 2.0, size=8)
    f = model(loss, data, weights=weights)
    theta = points(f)
    for j, m in enumerate(f.sizes):
        alone = f.select((j,))
        draws = [np.array(draw) for draw in itertools.product(range(m), repeat=batch)]
        mean = np.mean([alone.sample_gradient(theta[j : j + 1], (draw,)) for draw in draws], axis=0)
        assert_close(mean[0], f.gradient(theta)[j])


@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)
@pytest.mark.parametrize("ids", [(3,), (2, 5), (4, 0, 1), (6, 5, 4, 3, 2, 1, 0)], ids=repr)
@every_loss
def test_select_gives_the_bits_of_the_rows(loss, ids, lengths):
    f = model(loss)
    theta, sample = points(f), sample_of(f, lengths)
    whole = f.sample_gradient(theta, sample)
    part = f.select(ids).sample_gradient(theta[list(ids)], tuple(sample[j] for j in ids))
    assert part.tobytes() == whole[list(ids)].tobytes()


@pytest.mark.parametrize("limit", [1, 3, 8, 1000, None])
@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)
def test_blocks_cover_the_sample_within_the_limit(lengths, limit, monkeypatch):
    f = model(Multinomial(classes=3))
    sample = sample_of(f, lengths)
    seen = [0] * 7
    if limit is None:
        monkeypatch.setattr(rows_module, "is_host", lambda x: False)
    else:
        monkeypatch.setattr(rows_module, "block_rows", lambda columns: limit)
    for clients, X, y, w in (block for _, blocks in f.rows._sampled_units(sample) for block in blocks):
        assert X.shape[:2] == y.shape == w.shape
        assert X.shape[0] == len(clients)
        assert limit is None or X.shape[1] <= limit
        assert limit is None or X.shape[0] == 1 or X.shape[0] * X.shape[1] <= limit
        for position, j in enumerate(clients):
            own, labels, weights = list(f.client_rows())[j]
            drawn = sample[j][seen[j] : seen[j] + X.shape[1]]
            assert np.array_equal(X[position], own[drawn])
            assert np.array_equal(y[position], labels[drawn])
            assert_close(w[position], weights[drawn] * f.sizes[j] / len(sample[j]))
            seen[j] += X.shape[1]
    assert seen == list(lengths)


def test_draws_are_uniform_and_each_client_has_its_own_stream():
    f = model(Logistic())
    sample = f.draw(generators(7), 5)
    assert [rows.shape for rows in sample] == [(5,)] * 7
    part = f.select((2, 4)).draw([generators(7)[2], generators(7)[4]], 5)
    assert np.array_equal(part[0], sample[2])
    assert np.array_equal(part[1], sample[4])
    large = f.draw(generators(7, seed=1), 12_000)
    for rows_of_one, m in zip(large, f.sizes, strict=True):
        counts = np.bincount(rows_of_one, minlength=m)
        assert len(counts) == m
        assert np.all(np.abs(counts - 12_000 / m) <= 5 * np.sqrt(12_000 / m))  # five standard deviations
    assert [rows.tolist() for rows in f.draw(generators(7), None)] == [list(range(m)) for m in f.sizes]


def test_bad_samples_are_refused():
    f = linear_model(np.ones((5, 1)), np.ones(5), loss=Squared(), mu=0.1, clients=[[0, 1], [2, 3], [4]])
    one = np.array([0])
    cases = [
        ((one, one), "sample must hold the rows of 3 clients, not of 2"),
        ((one, one[:0], one), "sample: client 1 draws no row"),
        ((one, np.array([2]), one), "sample: client 1 has rows 0 to 1 only"),
        ((np.array([-1]), one, one), "sample: client 0 has rows 0 to 1 only"),
    ]
    for sample, message in cases:
        with pytest.raises(ValueError, match=f"^{message}\\.$"):
            f.sample_gradient(f.zeros(), sample)
    equal = linear_model(np.ones((4, 1)), np.ones(4), loss=Squared(), mu=0.1, clients=2)  # no client has fewer rows
    with pytest.raises(ValueError, match=r"^sample: client 1 has rows 0 to 1 only\.$"):
        equal.sample_gradient(equal.zeros(), (one, np.array([1, 2])))
    with pytest.raises(ValueError, match=r"^batch must be at least 1, not 0\.$"):
        f.draw(generators(3), 0)
    with pytest.raises(ValueError, match=r"^rngs must hold one generator for each of the 3 clients, not 2\.$"):
        f.draw(generators(2), 1)


@pytest.mark.parametrize("terms", ["none", "linear", "weight", "all", "shared"])
def test_local_problems_add_their_terms(terms, backend):
    data = rows(Multinomial(classes=3))
    f, plain = model(Multinomial(classes=3), on(backend, data)), model(Multinomial(classes=3), data)
    rng = np.random.default_rng(8)
    linear, center = rng.normal(size=(2, 7, *f.shape))
    weight = rng.uniform(0.1, 2.0, size=7)
    shape = (-1, 1, 1)
    theta, sample = points(plain), sample_of(plain, LENGTHS["unequal"])
    expected = plain.sample_gradient(theta, sample)
    arguments = {}
    if terms in ("linear", "all"):
        arguments["linear"] = backend(linear)
        expected = expected + linear
    if terms in ("weight", "all"):
        arguments |= {"weight": backend(weight), "center": backend(center)}
        expected = expected + weight.reshape(shape) * (theta - center)
    if terms == "shared":
        arguments |= {"weight": 0.7, "center": backend(center[0])}
        expected = expected + 0.7 * (theta - center[0])
    problem = LocalProblem(objective=f, **arguments)
    result = to_numpy(problem.sample_gradient(backend(theta), sample))
    assert_close(result, expected)
    ids = (4, 1)
    part = problem.select(ids).sample_gradient(backend(theta[list(ids)]), tuple(sample[j] for j in ids))
    assert to_numpy(part).tobytes() == result[list(ids)].tobytes()
    one = to_numpy(problem.sample_gradient(backend(theta[0]), sample))
    assert_close(one, to_numpy(problem.sample_gradient(backend(np.repeat(theta[:1], 7, axis=0)), sample)))
