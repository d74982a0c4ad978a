"""The zero chain: the literal sums, derivatives, the constants, and array types."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualopt.objectives import ZeroChain

RNG = np.random.default_rng(0)
WEIGHTS = RNG.uniform(0.0, 3.0, (4, 6)) * (RNG.random((4, 6)) < 0.7)
WEIGHTS[3, 0] = 0.0
THETA = RNG.standard_normal((4, 6))
THETA[1, 2:] = 0.0
V = RNG.standard_normal((4, 6))
HEIGHT, WIDTH = 0.3, 1.7


def chain(kind=np.array, dtype: type = np.float64, **changes):
    return ZeroChain(**({"split": kind(WEIGHTS.astype(dtype)), "height": HEIGHT, "width": WIDTH} | changes))


def psi(t):
    return -math.expm1(-t * t) if t > 0 else 0.0


def phi(t):
    return 4.0 * math.atan(t) + 2.0 * math.pi


def term(k, x):
    """Theta_k for k = 1, 2, ... as the paper writes it."""
    if k == 1:
        return -psi(1.0) * phi(x[0])
    u, v = x[k - 2], x[k - 1]
    return psi(-u) * phi(-v) - psi(u) * phi(v)


def literal(j, theta):
    return HEIGHT * sum(WEIGHTS[j, k - 1] * term(k, theta / WIDTH) for k in range(1, 7))


def test_the_values_are_the_literal_sums():
    expected = [literal(j, theta) for j, theta in enumerate(THETA)]
    np.testing.assert_allclose(chain().value(THETA), expected, rtol=1e-13, atol=1e-15)
    one = [literal(j, THETA[0]) for j in range(4)]
    np.testing.assert_allclose(chain().value(THETA[0]), one, rtol=1e-13, atol=1e-15)


@given(seed=st.integers(0, 10**6), scale=st.sampled_from([1e-3, 1.0, 30.0]))
def test_declared_constants_hold(seed, scale):
    rng = np.random.default_rng(seed)
    f, theta = chain(), scale * rng.standard_normal((4, 6))
    hessians = np.stack([f.hessian_operator(theta)(np.tile(e, (4, 1))) for e in np.eye(6)], axis=-1)
    np.testing.assert_allclose(hessians, np.swapaxes(hessians, 1, 2), atol=1e-13)
    spectra = np.linalg.eigvalsh(hessians)
    assert np.all(spectra[:, -1] <= f.L)
    assert np.all(spectra[:, 0] >= f.mu)
    assert np.all(f.value(theta) >= f.infimum)


def test_the_constant_of_each_term_is_the_least():
    """Of the first one at 1/sqrt(3); of the others where the entry before is hardly positive and their own is large."""
    for k, theta in [(0, [3**-0.5, 0.0, 0.0]), (1, [1e-9, 1e12, 0.0]), (2, [0.0, 1e-9, 1e12])]:
        f = ZeroChain(split=np.eye(3)[k : k + 1] * 0.7, height=HEIGHT, width=WIDTH)
        hessian = np.stack([f.hessian_operator(WIDTH * np.array(theta))(e)[0] for e in np.eye(3)])
        assert np.abs(np.linalg.eigvalsh(hessian)).max() == pytest.approx(float(f.L[0]), rel=1e-8)
        assert f.L[0] == pytest.approx(0.7 * HEIGHT / WIDTH**2 * (3**1.5 / 2 * psi(1.0) if k == 0 else 8.0 * math.pi))


def test_the_constants_of_a_client_are_those_of_two_neighbouring_terms():
    terms = WEIGHTS * np.array([3**1.5 / 2 * psi(1.0), *[8.0 * math.pi] * 5])
    pairs = terms + np.concatenate([terms[:, 1:], np.zeros((4, 1))], axis=1)
    np.testing.assert_allclose(chain().L, HEIGHT / WIDTH**2 * pairs.max(axis=1), rtol=1e-14)
    np.testing.assert_array_equal(chain().mu, -chain().L)


def test_the_infimum_is_approached():
    np.testing.assert_allclose(chain().value(np.full(6, 1e9)), chain().infimum, rtol=1e-7)


@given(L=st.floats(1e-3, 1e3), eps=st.floats(1e-6, 1e3), seed=st.integers(0, 10**6))
def test_scaling_sets_smoothness_and_accuracy(L, eps, seed):
    """With every term at some client; the floor is attained where the means of all weights are equal."""
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.1, 1.0, (3, 5))
    f = ZeroChain(split=weights).scaled(L=L, eps=eps)
    level = ZeroChain(split=weights / weights.mean(axis=0)).scaled(L=L, eps=eps)
    assert float(np.max(f.L)) == pytest.approx(L)
    theta = f.width * rng.standard_normal(5)
    theta[-1] = 0.0
    assert np.sum(f.gradient(theta).mean(axis=0) ** 2) >= eps
    assert np.sum(level.gradient(level.zeros()).mean(axis=0) ** 2) == pytest.approx(eps)


@pytest.mark.parametrize("size", [1e-9, 1e-60, 1e-150])
def test_the_smallest_entry_opens_the_next(size):
    """``1 - exp(-t^2)`` would be zero."""
    f = ZeroChain(split=np.ones((1, 3)))
    opened = f.gradient(np.array([size, 0.0, 0.0]))[0]
    np.testing.assert_allclose(opened[1], -4.0 * size**2, rtol=1e-12)
    assert opened[2] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"split": np.ones(3)}, r"split must have shape \(N, d\), not \(3,\)\."),
        ({"split": np.ones((2, 0))}, r"split must have shape \(N, d\), not \(2, 0\)\."),
        ({"split": -np.ones((1, 2))}, r"split must be finite and not negative\."),
        ({"split": np.full((1, 2), np.nan)}, r"split must be finite and not negative\."),
        ({"height": 0.0}, r"height must be a positive finite number, not 0\.0\."),
        ({"width": math.inf}, r"width must be a positive finite number, not inf\."),
    ],
)
def test_bad_input_is_named_in_one_sentence(arguments, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        chain(**arguments)


def test_scaling_refuses_what_it_cannot_do():
    with pytest.raises(ValueError, match=r"^L and eps must be positive, not 1\.0 and 0\.0\.$"):
        chain().scaled(L=1.0, eps=0.0)
    with pytest.raises(ValueError, match=r"^L and eps must be positive, not 0\.0 and 1\.0\.$"):
        chain().scaled(L=0.0, eps=1.0)
    with pytest.raises(ValueError, match=r"^split must give every term to some client\.$"):
        ZeroChain(split=np.eye(2, 3)).scaled(L=1.0, eps=1.0)
