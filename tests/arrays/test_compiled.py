"""Functions of trees that are compiled where JAX can trace them."""

from __future__ import annotations

import pickle
from typing import Any, NamedTuple

import numpy as np
import pytest

from dualopt.arrays import compiled as module
from dualopt.arrays.client_states import ClientStates
from dualopt.arrays.compiled import Compiled, Programs, compiled
from dualopt.arrays.xp import at_once, chosen, is_traced, surely, to_numpy

jax = pytest.importorskip("jax", reason="JAX is not installed")
jnp = jax.numpy
jax.config.update("jax_enable_x64", True)


class Pair(NamedTuple):
    x: Any
    y: Any


def test_a_tree_comes_back_as_it_is() -> None:
    calls = []

    def function(pair: Pair, t: float, name: str) -> Any:
        calls.append(name)
        return Pair((pair.x + t, None, name, 3), np.ones(2)), (), True

    program = Compiled(function)
    for t in (1.0, 2.0, 3.0):
        (found, made), empty, flag = program(Pair(jnp.ones(2), None), t, "a")
        assert found[0].tolist() == [1 + t] * 2
        assert (found[1:], empty, flag) == ((None, "a", 3), (), True)
        assert made.tolist() == [1.0, 1.0]
    assert calls == ["a"]  # compiled once
    assert program.is_compiled


def test_what_is_known_makes_another_program() -> None:
    calls = []

    def function(x: Any, k: int) -> Any:
        calls.append(k)
        return x * k if k < 3 else x

    program = Compiled(function)
    for k in (1, 2, 1, 3, 2):
        assert program(jnp.ones(2), k).tolist() == ([k, k] if k < 3 else [1, 1])
    assert calls == [1, 2, 3]
    program(jnp.ones(3), 1)
    assert calls == [1, 2, 3, 1]
    program(jnp.ones(3), True)  # is 1, and not the same
    assert calls == [1, 2, 3, 1, True]
    assert calls[-1] is True


def test_large_data_are_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a function has beside its arguments is used as it is, in the order in which it was found."""
    monkeypatch.setattr(module, "LARGE", 4)
    small, first, last = jnp.asarray([2.0, 3.0]), jnp.arange(6.0), 10 * jnp.arange(5.0)
    program = Compiled(lambda x: (x * small + first[:2] + last[1:3], x * last[-1]))
    for t in (1.0, 2.0):
        assert [x.tolist() for x in program(t * jnp.ones(2))] == [[2 * t + 10, 3 * t + 21], [40 * t] * 2]
    assert program.is_compiled


def test_what_looks_at_numbers_is_called_as_it_is() -> None:
    program = Compiled(lambda x: "large" if x[0] > 2 else "small")
    assert [program(jnp.asarray([t])) for t in (1.0, 3.0)] == ["small", "large"]
    assert not program.is_compiled
    assert isinstance(program.reason, TypeError)
    assert program.attempt(jnp.asarray([1.0])) is None


def test_an_error_of_the_function_is_its_own() -> None:
    def function(x: Any) -> Any:
        raise ValueError("x must be something else.")

    with pytest.raises(ValueError, match="something else"):
        Compiled(function)(jnp.ones(1))


def test_programs_have_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 2)
    program = Compiled(lambda x, k: x + k)
    assert [float(program(jnp.zeros(()), k)) for k in range(4)] == [0, 1, 2, 3]
    assert program.attempt(jnp.zeros(()), 1) is not None
    assert [program.attempt(jnp.zeros(()), k) for k in (2, 3)] == [None, None]


def test_a_function_is_compiled_for_its_library() -> None:
    traced = []

    @compiled
    def twice(x: Any) -> Any:
        traced.append(is_traced(x))
        return 2 * x

    assert twice(np.ones(1)).tolist() == twice(jnp.ones(1)).tolist() == twice(jnp.ones(1)).tolist() == [2.0]
    assert traced == [False, True]
    assert jax.jit(twice)(jnp.ones(1)).tolist() == [2.0]


def test_programs_are_not_pickled() -> None:
    assert pickle.loads(pickle.dumps(Programs(a=Compiled(lambda x: x)))) == {}


def test_what_is_traced_has_no_numbers() -> None:
    seen = []

    def function(x: Any) -> Any:
        seen.append((is_traced(x), is_traced(to_numpy(x)), surely(x > 0), is_traced(at_once(lambda: jnp.ones(1) + 1))))
        return chosen(x[0] > 0, x, -x)

    assert jax.jit(function)(jnp.asarray([-2.0])).tolist() == [2.0]
    assert seen == [(True, True, False, False)]
    assert not is_traced(jnp.ones(1))
    assert surely(jnp.ones(1) > 0)
    assert not surely(jnp.ones(1) > 1)


def test_states_of_clients_are_whole_after_every_round() -> None:
    before = ClientStates((jnp.zeros((4, 2)), jnp.zeros(4)), 4)
    after = before.put([1, 3], (jnp.ones((2, 2)), jnp.asarray([5.0, 7.0])))
    assert after.tree[1].tolist() == [0.0, 5.0, 0.0, 7.0]
    assert after.take([3, 0])[0].tolist() == [[1.0, 1.0], [0.0, 0.0]]
    assert before.tree[1].tolist() == [0.0] * 4
