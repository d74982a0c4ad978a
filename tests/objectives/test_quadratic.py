"""Contract of quadratic objectives."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from model_instances import EPS, assert_close

from dualopt.objectives import Quadratic
from dualopt.objectives import quadratic as quadratics
from dualopt.objectives._rounding import gamma

RNG = np.random.default_rng(0)
FACTORS = RNG.normal(size=(4, 3, 3))
A = FACTORS @ FACTORS.swapaxes(1, 2) + 0.1 * np.eye(3)
A = 0.5 * (A + A.swapaxes(1, 2))
B = RNG.normal(size=(4, 3))
C = RNG.normal(size=4)
THETA = RNG.normal(size=(4, 3))
V = RNG.normal(size=(4, 3))

CALLS = {
    "value": lambda f, theta, v: f.value(theta),
    "gradient": lambda f, theta, v: f.gradient(theta),
    "value_and_gradient[0]": lambda f, theta, v: f.value_and_gradient(theta)[0],
    "value_and_gradient[1]": lambda f, theta, v: f.value_and_gradient(theta)[1],
    "hessian_operator": lambda f, theta, v: f.hessian_operator(theta)(v),
    "preconditioner": lambda f, theta, v: f.preconditioner(0.7)(v),
    "preconditioner, a weight per client": lambda f, theta, v: f.preconditioner(0.5 + f.mu)(v),
    "mu": lambda f, theta, v: f.mu,
    "L": lambda f, theta, v: f.L,
}


def quadratic(move: Any = np.asarray, dtype: Any = np.float64) -> Quadratic:
    return Quadratic(A=move(A.astype(dtype)), b=move(B.astype(dtype)), c=move(C.astype(dtype)))


def expected(name):
    """Compute each call with a loop over clients."""
    spectra = [np.linalg.eigvalsh(a) for a in A]
    weights = [0.5 + s[0] for s in spectra]
    base = name.split("[")[0]
    if base == "value_and_gradient":
        base = "value" if name.endswith("[0]") else "gradient"
    return {
        "value": np.stack([0.5 * t @ a @ t - b @ t + c for a, b, c, t in zip(A, B, C, THETA, strict=True)]),
        "gradient": np.stack([a @ t - b for a, b, t in zip(A, B, THETA, strict=True)]),
        "hessian_operator": np.stack([a @ v for a, v in zip(A, V, strict=True)]),
        "preconditioner": np.stack([np.linalg.inv(a + 0.7 * np.eye(3)) @ v for a, v in zip(A, V, strict=True)]),
        "preconditioner, a weight per client": np.stack(
            [np.linalg.inv(a + w * np.eye(3)) @ v for a, w, v in zip(A, weights, V, strict=True)]
        ),
        "mu": np.stack([s[0] for s in spectra]),
        "L": np.stack([s[-1] for s in spectra]),
    }[base]


@pytest.mark.parametrize("name", CALLS)
def test_numbers(name):
    assert_close(CALLS[name](quadratic(), THETA, V), expected(name))


def test_select_without_constants():
    f = Quadratic(A=A, b=B)
    assert f.select(range(4)) is f
    assert f.select((1, 3)).value(THETA[[1, 3]]).tobytes() == f.value(THETA)[[1, 3]].tobytes()
    assert_close(f.value(THETA), expected("value") - C)


def test_what_is_computed_of_clients_is_kept_for_some_of_them():
    f = Quadratic(A=A, b=B)
    mu, L, _, _ = f.mu, f.L, f.mu_rounding, f.rounding(THETA, f.value(THETA), f.gradient(THETA))
    some = f.select((1, 3))
    assert set(quadratics.COMPUTED) <= set(vars(some))
    assert (some.mu.tolist(), some.L.tolist()) == (mu[[1, 3]].tolist(), L[[1, 3]].tolist())


def test_constants_are_attained():
    f = quadratic()
    _, vectors = np.linalg.eigh(A)
    for constant, column in ((f.L, -1), (f.mu, 0)):
        step = vectors[:, :, column]
        change = np.linalg.norm(f.gradient(THETA + step) - f.gradient(THETA), axis=-1)
        assert np.max(np.abs(change - constant)) <= 1e-13 * np.max(f.L)


def test_constants_of_an_indefinite_matrix():
    f = Quadratic(A=np.asarray([np.diag([-3.0, 1.0])]), b=np.zeros((1, 2)))
    assert (f.mu.tolist(), f.L.tolist()) == ([-3.0], [3.0])


@pytest.mark.parametrize("stretch", [0.9, 1.0 - 2.0**-20, 1.0, 1.25])
def test_mu_is_proved_whatever_the_routine_says_is_orthogonal(stretch, monkeypatch):
    """Eigenvectors of another length, with eigenvalues that go with it: their product is A, and the least is not mu."""
    A = np.array([[1609.0, -1188.0], [-1188.0, 916.0]])  # 25 and 2500, along (3, 4)/5 and (-4, 3)/5
    V = np.array([[0.6, -0.8], [0.8, 0.6]])

    class Stretched:
        def __getattr__(self, name):
            return getattr(np.linalg, name)

        def eigh(self, S):
            values = np.array([25.0, 2500.0]) / 1609.0 / stretch**2
            return values[None], stretch * V[None]

        def eigvalsh(self, S):
            return np.array([[25.0, 2500.0]]) / stretch**2

    monkeypatch.setattr(quadratics, "array_namespace", lambda *_: SimpleNamespace(**vars(np) | {"linalg": Stretched()}))
    f = Quadratic(A=A[None], b=np.zeros((1, 2)))
    assert f.mu[0] == 25.0 / stretch**2
    assert f.proven_mu[0] <= 25.0
    if stretch == 1.0:
        assert f.mu_rounding[0] <= 1e-10


@pytest.mark.parametrize("exact", [np.array([1.0, 2.0, 5.0, 8.0]), np.array([-1.0, 2.0, 3.0, 12.0])], ids=["1", "-1"])
@pytest.mark.parametrize("off", [0.0, 0.125])
def test_what_mu_may_be_too_large_by_term_by_term(off, exact, monkeypatch):
    """Everything but the bounds of rounding is exact: the numbers are dyadic, and the greatest entry of A is 4."""
    V = 0.5 * np.array([[1.0, 1.0, 1.0, 1.0], [1.0, -1.0, 1.0, -1.0], [1.0, 1.0, -1.0, -1.0], [1.0, -1.0, -1.0, 1.0]])
    least, largest = exact[0], exact[-1]

    class Known:
        def __getattr__(self, name):
            return getattr(np.linalg, name)

        def eigh(self, S):
            return (exact / 4.0 + [0.0, off, 0.0, 0.0])[None], V[None]

        def eigvalsh(self, S):
            return exact[None]

    monkeypatch.setattr(quadratics, "array_namespace", lambda *_: SimpleNamespace(**vars(np) | {"linalg": Known()}))
    f = Quadratic(A=(V * exact @ V.T)[None], b=np.zeros((1, 4)))
    norm, each = np.linalg.norm(exact) / 4.0, 0.5 * 4 * gamma(8, V)
    excess = 4.0 * (0.25 * each + off + each * largest / 4.0 + 2.0 * 2.0**-52 * norm)
    expected = excess + 4.0 * 2.0**-52 * (1.0 + abs(least - excess))
    assert f.mu.tolist() == [least]
    # two subtractions round to half a unit in the last place of 1 each
    assert f.mu_rounding[0] == pytest.approx(expected, rel=1e-14, abs=2.0**-52)


def test_minimiser_of_the_mean():
    theta = quadratic().minimiser()
    assert np.max(np.abs(np.mean(quadratic().gradient(theta), axis=0))) <= 64 * EPS * np.max(np.abs(B))


def spoiled(array, value):
    array = array.copy()
    array.flat[1] = value
    return array


BAD = {
    "b is missing": ({"b": None}, r"b must be an array, not None"),
    "b is a list": ({"b": [[1.0]]}, r"b must be an array, not a list"),
    "A is a matrix": ({"A": A[0]}, r"A must have shape \(N, d, d\), not \(3, 3\)"),
    "A is not square": ({"A": A[:, :2]}, r"A must have shape \(N, d, d\), not \(4, 2, 3\)"),
    "b has too few clients": ({"b": B[:3]}, r"b must have shape \(4, 3\) to fit A, not \(3, 3\)"),
    "c has too few clients": ({"c": C[:3]}, r"c must have shape \(4,\) to fit A, not \(3,\)"),
    "A is not symmetric": ({"A": spoiled(A, 7.0)}, "A must be symmetric"),
    "A is hardly symmetric": ({"A": spoiled(A, A[0, 0, 1] + 1e-8 * np.abs(A).max())}, "A must be symmetric"),
    "A has NaN": ({"A": spoiled(A, np.nan)}, "A and b must not contain NaN"),
    "b has inf": ({"b": spoiled(B, np.inf)}, "A and b must not contain NaN or infinite"),
    "c has NaN": ({"c": spoiled(C, np.nan)}, "c must not contain NaN"),
}


@pytest.mark.parametrize(("arguments", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_named_in_one_sentence(arguments, message):
    with pytest.raises(ValueError, match="^" + message) as info:
        Quadratic(**{"A": A, "b": B, "c": C, **arguments})
    assert str(info.value).endswith(".")


def test_rounding_in_single_precision_is_not_asymmetry():
    single = (FACTORS.astype(np.float32) @ FACTORS.astype(np.float32).swapaxes(1, 2)).astype(np.float32)
    single[:, 0, 1] = np.nextafter(single[:, 0, 1], np.float32(np.inf))
    assert Quadratic(A=single, b=B.astype(np.float32)).L.dtype == np.float32


def test_discs_of_gershgorin() -> None:
    """The least center less its radius, rounded down; centers themselves where the matrix is diagonal."""
    matrices = np.array([[[4.0, 0.5], [0.5, 3.0]], [[1.0, -3.0], [-3.0, 2.0]], [[5.0, 0.0], [0.0, -7.0]]])
    f = Quadratic(A=matrices, b=np.zeros((3, 2)))
    np.testing.assert_allclose(f._discs, [2.5, -2.0, -7.0], rtol=2e-15)
    assert f._discs[0] < 2.5
    assert f._discs[1] < -2.0
    assert f._discs[2] == -7.0
    assert f.mu_rounding[2] == 0.0


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_a_least_eigenvalue_is_known_beyond_rounding_at_any_scale(scale: float) -> None:
    """-1 beside 5 is; what is computed for 0 beside 3 is rounding, and taken for 0."""
    f = Quadratic(A=scale * np.array([[[2.0, 3.0], [3.0, 2.0]], [[1.5, 1.5], [1.5, 1.5]]]), b=np.ones((2, 2)))
    assert f.mu[0] == pytest.approx(-scale, rel=1e-14)
    assert f.mu[1] == 0.0
