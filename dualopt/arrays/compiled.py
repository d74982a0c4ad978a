"""Compiling whole functions of trees, loops in them, and what is known only when they run: for JAX alone.

A library that runs one operation after the other takes longer to launch them than most of them take. What JAX traces
is the ordinary code of this package: decisions that it makes on the host must be made of what is known then (the
structure of a tree, integers, truth values and texts in it), and loops and branches that depend on numbers are written
with `repeat` and `either`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from dualopt.arrays.tree import tree_map
from dualopt.arrays.xp import Array, asarray_like, compiles, is_numpy, is_traced, set_rows, shares_memory, to_numpy

__all__ = ["MERGE", "MOST", "Compiled", "Programs", "compiled"]

MOST = 64  # programs of one function, and functions of one objective: integers that change would compile forever

LARGE = 2**17  # numbers of arrays that are arguments; others are written into a program, and its compiler knows them


class Programs(dict[Any, "Compiled"]):
    """Compiled functions by what they are made from; they are not pickled, and are compiled again."""

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return Programs, ()


class Compiled:
    """A function of trees, compiled where JAX can trace it.

    Arrays and floating-point numbers are what a program depends on. All other leaves, the structure and the shapes are
    known when it is compiled: others take another program. A function that cannot be traced, because it looks at
    numbers to decide what to do, is called as it is.

    Parameters
    ----------
    function : callable
        Takes trees and returns a tree: of tuples, named ones too, whose leaves are anything.

    Attributes
    ----------
    reason : Exception or None
        Why the latest call could not be traced.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.reason: Exception | None = None
        self._function = function
        self._programs: dict[Any, Any] = {}

    def __call__(self, *trees: Any) -> Any:
        """Call the function."""
        found = self.attempt(*trees)
        return self._function(*trees) if found is None else found

    def attempt(self, *trees: Any) -> Any:
        """Return what the program of such trees returns, or None where there is none."""
        import jax  # pyright: ignore[reportMissingImports]

        leaves, structure = jax.tree.flatten(trees)
        key = structure, tuple(_kind(x) for x in leaves)
        if key not in self._programs:
            self._programs[key] = self._program(structure, leaves) if len(self._programs) < MOST else None
        program = self._programs[key]
        return None if program is None else program([x for x in leaves if _is_number(x)])

    @property
    def is_compiled(self) -> bool:
        """Whether every call had a program."""
        return None not in self._programs.values()

    def _program(self, structure: Any, leaves: list[Any]) -> Any:
        """Return the function of the numbers among such leaves, or None."""
        import jax  # pyright: ignore[reportMissingImports]

        known = [None if _is_number(x) else x for x in leaves]
        places = [i for i, x in enumerate(leaves) if _is_number(x)]
        result: list[Any] = []

        def traced(numbers: list[Array]) -> list[Array]:
            given = list(known)
            for place, x in zip(places, numbers, strict=True):
                given[place] = x
            found, shape = jax.tree.flatten(self._function(*jax.tree.unflatten(structure, given)))
            result[:] = shape, [None if compiles(x) else (x,) for x in found]
            return [x for x in found if compiles(x)]

        try:
            found = jax.make_jaxpr(traced)([leaves[i] for i in places])
        except Exception as error:  # what else is wrong with the function, the ordinary call says
            self.reason = error
            return None
        shape, others = result
        small = [x if x.size < LARGE else None for x in found.consts]
        data = [x for x in found.consts if x.size >= LARGE]

        def written(data: list[Array], numbers: list[Array]) -> list[Array]:
            others = iter(data)
            return jax.core.eval_jaxpr(found.jaxpr, [next(others) if x is None else x for x in small], *numbers)

        program = jax.jit(written)

        def run(numbers: list[Array]) -> Any:
            made = iter(program(data, numbers))
            return jax.tree.unflatten(shape, [next(made) if x is None else x[0] for x in others])

        return run


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a pure function of trees of arrays that is a program for JAX, and NumPy's where PyTorch shares its memory.

    The last leaf tells whose arrays they are.

    Examples
    --------
    >>> import numpy as np
    >>> compiled(lambda rows, x: sum(rows, start=x))((np.ones(2), np.ones(2)), np.zeros(2)).tolist()
    [2.0, 2.0]
    """
    program = Compiled(function)

    @wraps(function)
    def call(*trees: Any) -> Any:
        like = trees[-1]
        while isinstance(like, tuple):
            like = like[-1]
        if is_numpy(like) or is_traced(like):
            return function(*trees)
        if shares_memory(like):
            return tree_map(lambda x: asarray_like(x, like), function(*tree_map(to_numpy, trees)))
        return program(*trees) if compiles(like) else function(*trees)

    return call


def _is_number(x: Any) -> bool:
    return isinstance(x, float) or hasattr(x, "dtype")


def _kind(x: Any) -> Any:
    """Return what a program knows of a leaf."""
    if hasattr(x, "dtype"):
        return x.shape, x.dtype
    return float if isinstance(x, float) else (type(x), x)


MERGE = Compiled(lambda tree, ids, rows: tree_map(lambda x, new: set_rows(x, ids, new), tree, rows))
"""Trees with rows of some clients replaced, as one program."""
