"""Kernels, synchronisations and uploads that a GPU would see, counted without one.

``python -m tests.benchmarks.count`` prints a table for the shape of MNIST: 8 clients of equal size, 785 columns and 10
classes. Each client has 800 rows instead of 7,500: with as many rows as columns or more the control flow is the
same, and no count depends on the number of rows otherwise.

Arrays are `Counted`: NumPy arrays behind the Array API standard, on a device that is not the host's, so that the code
takes the paths that it takes on a GPU. Counted are

* kernels: every function and operator that computes or copies; views, and shapes that need no copy, are free, and so
  is memory that is not filled. A decomposition counts one, though libraries launch several;
* synchronisations: whatever brings numbers to the host, such as ``float(x)``, ``bool(x)`` or ``to_numpy(x)``;
* uploads: arrays made of host values. Numbers that are arguments of a kernel are none.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

FREE = frozenset(
    {"broadcast_arrays", "broadcast_to", "empty", "empty_like", "expand_dims", "finfo", "iinfo", "isdtype"}
    | {"matrix_transpose", "moveaxis", "permute_dims", "result_type", "squeeze", "unstack", "can_cast"}
)
IF_COPIED = frozenset({"reshape", "astype"})
"""Functions that cost a kernel only where the result has memory of its own."""


class Counts(NamedTuple):
    """What was counted: the names of the kernels, how often each, and two numbers."""

    kernels: Counter[str]
    synchronisations: int
    uploads: int

    @property
    def launches(self) -> int:
        """Number of kernels."""
        return self.kernels.total()

    @property
    def transfers(self) -> int:
        """Number of synchronisations and uploads."""
        return self.synchronisations + self.uploads


class _Tally:
    """The counts of the innermost ``counting`` block."""

    def __init__(self) -> None:
        self.kernels: Counter[str] = Counter()
        self.synchronisations = self.uploads = 0

    def counts(self) -> Counts:
        return Counts(Counter(self.kernels), self.synchronisations, self.uploads)


_tally = _Tally()


@contextmanager
def counting() -> Iterator[Callable[[], Counts]]:
    """Count from here on; the function that it gives returns what was counted so far, and the rest at the end.

    Examples
    --------
    >>> x = counted(np.arange(6.0))
    >>> with counting() as counts:
    ...     total = float(xp.sum(xp.reshape(x, (2, 3)) * 2.0))
    >>> total, dict(counts().kernels), counts().synchronisations, counts().uploads
    (30.0, {'multiply': 1, 'sum': 1}, 1, 0)
    """
    global _tally
    outer, _tally = _tally, _Tally()
    own = _tally
    try:
        yield own.counts
    finally:
        _tally = outer


class Device:
    """The only device of counted arrays."""

    def __repr__(self) -> str:
        return "counted"


DEVICE = Device()


class Counted:
    """A NumPy array that counts what is done with it."""

    __array_ufunc__ = None  # NumPy arrays do not work with it either

    def __init__(self, x: np.ndarray) -> None:
        self.x = x

    def __array_namespace__(self, api_version: str | None = None) -> Any:
        return xp

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0  # kDLCUDA

    def __repr__(self) -> str:
        return f"counted({self.x!r})"

    shape = property(lambda self: self.x.shape)
    dtype = property(lambda self: self.x.dtype)
    ndim = property(lambda self: self.x.ndim)
    size = property(lambda self: self.x.size)
    device = property(lambda self: DEVICE)
    nbytes = property(lambda self: self.x.nbytes)
    T = property(lambda self: Counted(self.x.T))
    mT = property(lambda self: Counted(self.x.mT))

    def __len__(self) -> int:
        return len(self.x)

    def asnumpy(self) -> np.ndarray:
        """Return a copy on the host."""
        _tally.synchronisations += 1
        return self.x.copy()

    def __bool__(self) -> bool:
        return bool(self.asnumpy())

    def __float__(self) -> float:
        return float(self.asnumpy())

    def __int__(self) -> int:
        return int(self.asnumpy())

    def __index__(self) -> int:
        return operator.index(self.asnumpy())

    def __getitem__(self, key: Any) -> Counted:
        key = _index(key)
        result = self.x[key]
        if not np.may_share_memory(result, self.x):
            _tally.kernels["getitem"] += 1
        return Counted(np.asarray(result))

    def __setitem__(self, key: Any, value: Any) -> None:
        _tally.kernels["setitem"] += 1
        self.x[_index(key)] = _bare(value)

    def to_device(self, device: Any, /, *, stream: Any = None) -> Counted:
        """Return the array itself: there is one device."""
        assert device is DEVICE
        return self


def _index(key: Any) -> Any:
    """Return a key for the NumPy array; an index from the host is uploaded."""
    parts = key if isinstance(key, tuple) else (key,)
    _tally.uploads += sum(isinstance(part, np.ndarray | list) for part in parts)
    bare = tuple(part.x if isinstance(part, Counted) else part for part in parts)
    return bare if isinstance(key, tuple) else bare[0]


def _operators() -> None:
    """Give ``Counted`` the operators of the standard."""

    def binary(name: str, function: Callable[..., Any], *, swapped: bool = False) -> Callable[..., Any]:
        def method(self: Counted, other: Any) -> Any:
            if isinstance(other, np.ndarray | list | tuple):
                return NotImplemented  # as CuPy does: a host array is not uploaded in silence
            _tally.kernels[name] += 1
            a, b = (_bare(other), self.x) if swapped else (self.x, _bare(other))
            return Counted(np.asarray(function(a, b)))

        return method

    def in_place(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def method(self: Counted, other: Any) -> Counted:
            _tally.kernels[name] += 1
            self.x = function(self.x, _bare(other))
            return self

        return method

    def unary(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def method(self: Counted) -> Counted:
            _tally.kernels[name] += 1
            return Counted(np.asarray(function(self.x)))

        return method

    arithmetic = {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "pow": "pow"}
    arithmetic |= {"matmul": "matmul", "floordiv": "floor_divide", "mod": "remainder"}
    logical = {"and": "and_", "or": "or_", "xor": "xor"}
    for short, name in (arithmetic | logical).items():
        function = getattr(operator, f"__{short}__")
        setattr(Counted, f"__{short}__", binary(name, function))
        setattr(Counted, f"__r{short}__", binary(name, function, swapped=True))
        setattr(Counted, f"__i{short}__", in_place(name, getattr(operator, f"__i{short}__")))
    for short in ("lt", "le", "gt", "ge", "eq", "ne"):
        setattr(Counted, f"__{short}__", binary(short, getattr(operator, short)))
    for short in ("neg", "abs", "invert", "pos"):
        setattr(Counted, f"__{short}__", unary(short, getattr(operator, short)))
    Counted.__hash__ = object.__hash__  # pyright: ignore[reportAttributeAccessIssue]


_operators()


def _bare(tree: Any) -> Any:
    """Return arguments with NumPy arrays in place of counted ones."""
    if isinstance(tree, Counted):
        return tree.x
    if isinstance(tree, list | tuple):
        return type(tree)(_bare(part) for part in tree)
    assert not isinstance(tree, np.ndarray), "a host array reached a function of a device"
    return tree


def _wrapped(result: Any) -> Any:
    if isinstance(result, np.ndarray | np.generic):
        return Counted(np.asarray(result))
    if isinstance(result, list | tuple):
        parts = [_wrapped(part) for part in result]
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    return result


class Namespace:
    """The functions of the Array API standard on counted arrays."""

    def __init__(self, module: Any, name: str) -> None:
        self._module, self.__name__ = module, name

    def __repr__(self) -> str:
        return self.__name__

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        if name == "linalg":
            value: Any = Namespace(found, "linalg")
        else:
            value = self._counted(name, found) if callable(found) and not isinstance(found, type) else found
        setattr(self, name, value)
        return value

    def asarray(self, obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Counted:
        """Return a counted array; host values are uploaded."""
        if isinstance(obj, Counted):
            array = obj.x.astype(dtype or obj.dtype, copy=bool(copy))
            _tally.kernels["asarray"] += array is not obj.x
            return Counted(array)
        _tally.uploads += 1
        return Counted(np.array(obj, dtype=dtype))

    @staticmethod
    def _counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            kwargs.pop("device", None)
            args, kwargs = _bare(args), {key: _bare(value) for key, value in kwargs.items()}
            result = function(*args, **kwargs)
            shared = name in IF_COPIED and np.may_share_memory(result, args[0])
            if name not in FREE and not shared:
                _tally.kernels[name] += 1
            return _wrapped(result)

        return call


xp: Any = Namespace(np, "counted")


def counted(x: np.ndarray) -> Any:
    """Return a counted array of the same numbers; nothing is counted for it."""
    return Counted(np.array(x))


def shape_of_mnist(rows: int = 800, columns: int = 785, classes: int = 10, clients: int = 8) -> Any:
    """Return a multinomial model of clients of equal size on the counting device.

    Features lie in [0, 1] and are correlated, like pixels, and clients see some classes more often than others: with
    independent features a round would end after a step or two.
    """
    from dualopt.losses import Multinomial
    from dualopt.objectives import linear_model

    rng, m = np.random.default_rng(0), rows * clients
    X = rng.standard_normal((m, 12)) @ rng.standard_normal((12, columns - 1)) / 3.0 - 0.7
    X = np.concatenate([np.clip(X, 0.0, 1.0), np.ones((m, 1))], axis=1)
    scores = X @ rng.standard_normal((columns, classes))
    scores = 6.0 * (scores - scores.mean(axis=0)) / scores.std(axis=0)
    y = np.argmax(scores + rng.gumbel(size=scores.shape), axis=1)
    order = np.argsort(y + 3.0 * rng.random(m))
    model = Multinomial(classes=classes)
    return linear_model(counted(X[order]), counted(y[order]), loss=model, mu=1e-2, clients=clients, intercept=False)


def rounds(objective: Any, algorithm: Any, *, n: int = 6) -> Iterator[tuple[Counts, float]]:
    """Yield what each of the first rounds takes, and its gradients per client (the mean)."""
    from dualopt import iterate

    snapshots = islice(iterate(algorithm, objective), n)
    while True:
        with counting() as counts:
            snapshot = next(snapshots, None)
        if snapshot is None:
            return
        assert snapshot.solution is not None  # everybody takes part
        yield counts(), sum(snapshot.solution.gradients) / objective.n_clients


def table(objective: Any) -> list[tuple[str, Counts, float]]:
    """Count gradients, a local solve, and the sixth round of some methods; on MNIST DualFL takes 3.6 steps a round."""
    from dualopt.methods import DualFL, FedAvg, FedDyn
    from dualopt.objectives import LocalProblem
    from dualopt.solvers import LBFGS
    from dualopt.solvers.stopping import GradientReduction, Steps

    theta = xp.zeros((objective.n_clients, *objective.shape))
    objective.value_and_gradient(theta)  # what is computed once is not counted
    found = []
    for what, work in (("gradient", objective.gradient), ("value and gradient", objective.value_and_gradient)):
        with counting() as counts:
            work(theta)
        found.append((what, counts(), 1.0))
    problem, solver = LocalProblem(objective=objective), LBFGS()
    solver(problem, theta, GradientReduction(first=0.5))
    with counting() as counts:
        solution = solver(problem, theta, GradientReduction(first=1e-2))
    found.append(("local solve, L-BFGS, 1e-2", counts(), sum(solution.gradients) / len(solution.gradients)))
    for what, algorithm in [
        ("DualFL", DualFL()),
        *((f"DualFL, {steps} steps", DualFL(stop=Steps(steps=steps))) for steps in (3, 4, 5)),
        ("FedDyn", FedDyn()),
        ("FedAvg", FedAvg()),
    ]:
        *_, (taken, gradients) = rounds(objective, algorithm)
        found.append((f"round of {what}", taken, gradients))
    return found


def main() -> dict[str, Counts]:
    """Print the table; return the counts by what was counted."""
    from .race import report

    found = table(shape_of_mnist())
    rows = [
        (what, f"{gradients:.1f}", str(c.launches), str(c.synchronisations), str(c.uploads))
        for what, c, gradients in found
    ]
    title = "8 clients, 785 columns, 10 classes on a device: what a GPU would see"
    report(title, ["work", "gradients", "kernels", "synchronisations", "uploads"], rows)
    return {what: counts for what, counts, _ in found}


if __name__ == "__main__":
    main()
