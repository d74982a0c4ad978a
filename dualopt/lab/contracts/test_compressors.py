"""What every compressor promises.

A compressor is built with its own ``example``, which must fit four clients with six numbers each.
"""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest

from dualopt.arrays.xp import device, to_numpy
from dualopt.lab.contracts.backends import each_backend
from dualopt.lab.contracts.options import classes, made, open_argument
from dualopt.methods.participation import Round

N, SHAPE = 4, (2, 3)
EVERYBODY = (0, 1, 2, 3)
X = np.random.default_rng(1).standard_normal((N, *SHAPE))
ROUNDS = 2000
FAR = 6.0  # standard errors: less than one correct mean of 1e8 is farther away


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test the compressors."""
    if open_argument(metafunc, "compressor"):
        found = {name: made(kind) for name, kind in classes(metafunc.config, "compressor").items()}
        metafunc.parametrize("compressor", found.values(), ids=list(found))


def of(clients: tuple[int, ...], *, n: int = 5, seed: int = 3) -> Round:
    """Return a round in which these clients are active."""
    return Round(n=n, n_clients=N, clients=clients, communicate=True, seed=seed)


@each_backend
def test_all_backends_agree(compressor: Any, backend: Any) -> None:
    """Only the standard is used, nothing is written to, and library, type and device are kept."""
    x = backend(X)
    found = compressor.compress(x, of(EVERYBODY))
    assert (type(found), found.dtype, device(found)) == (type(x), x.dtype, device(x))
    np.testing.assert_allclose(to_numpy(found), compressor.compress(X, of(EVERYBODY)), rtol=1e-15)


def test_single_precision_stays_single(compressor: Any) -> None:
    """Single precision stays single."""
    assert compressor.compress(X.astype(np.float32), of(EVERYBODY)).dtype == np.float32


def test_what_a_client_sends_does_not_depend_on_who_else_does(compressor: Any) -> None:
    """What a client sends does not depend on who else takes part: chance has a stream for each client."""
    everybody = compressor.compress(X, of(EVERYBODY))
    for clients in ((2,), (0, 3), (1, 2, 3)):
        np.testing.assert_array_equal(compressor.compress(X[list(clients)], of(clients)), everybody[list(clients)])


def test_chance_is_that_of_the_round(compressor: Any) -> None:
    """The same round gives the same values: no generator of its own decides."""
    first = compressor.compress(X, of(EVERYBODY))
    np.testing.assert_array_equal(compressor.compress(X, of(EVERYBODY)), first)


def test_what_arrives_has_the_mean_that_it_says(compressor: Any) -> None:
    """If it says that it is unbiased, the mean of what arrives over many rounds is what was to be sent."""
    if not compressor.unbiased:
        return
    sent = np.stack([compressor.compress(X, of(EVERYBODY, n=n)) for n in range(ROUNDS)])
    error = np.abs(sent.mean(axis=0) - X)
    assert np.all(error <= FAR * sent.std(axis=0) / math.sqrt(ROUNDS) + 1e-12 * np.abs(X)), "the mean is another one."


def test_omega_bounds_what_arrives(compressor: Any) -> None:
    """The second moment of what arrives is at most ``1 + omega`` times the square of what was sent, if it is unbiased.

    Of one that is biased the part ``1/(1 + omega)`` is nearer to what was to be sent than zero is.
    """
    omega = compressor.omega(SHAPE, N)
    assert 0 <= omega < math.inf
    for x in (X, np.eye(1, 6).reshape(SHAPE) + 0.0 * X, np.ones_like(X)):
        sent = np.stack([compressor.compress(x, of(EVERYBODY, n=n)) for n in range(ROUNDS)])
        moved = sent if compressor.unbiased else sent / (1.0 + omega) - x
        ratio = (moved**2).sum(axis=(2, 3)) / (x**2).sum(axis=(1, 2))
        most = 1.0 + omega + 1e-12 if compressor.unbiased else 1.0 - 1e-3
        assert np.all(ratio.mean(axis=0) <= most + FAR * ratio.std(axis=0) / math.sqrt(ROUNDS))


def test_delta_bounds_what_does_not_arrive(compressor: Any) -> None:
    """If a biased one says by ``delta`` how it contracts, the square of its error is that much smaller in the mean."""
    if compressor.unbiased or not hasattr(compressor, "delta"):
        return
    delta = compressor.delta(SHAPE, N)
    assert 0 < delta <= 1
    for x in (X, np.eye(1, 6).reshape(SHAPE) + 0.0 * X, np.ones_like(X)):
        errors = np.stack([compressor.compress(x, of(EVERYBODY, n=n)) - x for n in range(ROUNDS)])
        ratio = (errors**2).sum(axis=(2, 3)) / (x**2).sum(axis=(1, 2))
        assert np.all(ratio.mean(axis=0) <= 1.0 - delta + 1e-12 + FAR * ratio.std(axis=0) / math.sqrt(ROUNDS))


def test_zero_is_sent_as_zero_and_nan_is_seen(compressor: Any) -> None:
    """Zero arrives as zero, where methods rest, and what is no number is not hidden."""
    np.testing.assert_array_equal(compressor.compress(0.0 * X, of(EVERYBODY)), 0.0 * X)
    with np.errstate(invalid="ignore"):
        assert any(np.isnan(compressor.compress(np.nan * X, of(EVERYBODY, n=n))).any() for n in range(20))


def test_as_much_is_counted_as_arrives(compressor: Any) -> None:
    """No more numbers arrive than are counted, and their bits tell apart whatever arrives."""
    for clients in (EVERYBODY, (1, 3)):
        round = of(clients)
        arrived = int(np.count_nonzero(compressor.compress(X[list(clients)], round)))
        told = compressor.numbers(SHAPE, round)
        assert isinstance(told, int)
        assert told >= arrived
    round = of((2,))
    many = np.random.default_rng(2).standard_normal((4096, *SHAPE))
    different = {compressor.compress(x[None], round).tobytes() for x in many}
    bits = compressor.bits(SHAPE, 64, round)
    assert isinstance(bits, int)
    assert len(different) <= 2.0**bits, f"{bits} bits cannot tell {len(different)} messages apart."


def test_is_a_compressor(compressor: Any) -> None:
    """It pickles, and what it is handed stays as it was."""
    x = X.copy()
    compressor.compress(x, of(EVERYBODY))
    np.testing.assert_array_equal(x, X)
    assert pickle.loads(pickle.dumps(compressor)) == compressor
