"""Array libraries: one namespace for NumPy, CuPy, PyTorch, JAX, dpnp and array-api-strict.

Functions elsewhere call ``array_namespace(x)`` once and use the Array API standard. Whatever the standard lacks, and
whatever differs between a CPU and a GPU, is written here and nowhere else.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import lru_cache
from mmap import mmap
from typing import Any

import array_api_compat as compat
import numpy as np

from dualopt.arrays._extras import optional

__all__ = [
    "Array",
    "array_namespace",
    "asarray_like",
    "at_once",
    "broadcast",
    "chosen",
    "compiles",
    "csr_matrix",
    "detached",
    "device",
    "either",
    "epsilon",
    "host_array",
    "host_places",
    "host_zeros",
    "indices",
    "is_array",
    "is_host",
    "is_mapped",
    "is_numpy",
    "is_sparse",
    "is_traced",
    "is_writable",
    "largest",
    "limits",
    "logsumexp",
    "numbers_like",
    "repeat",
    "reshape",
    "set_rows",
    "shares_memory",
    "silent",
    "summed",
    "surely",
    "take",
    "to_numpy",
    "transposed",
    "uploader",
    "vecdot",
    "width",
    "zeros_like",
]

Array = Any
"""Any array of a library that follows the Array API standard (there is no common base class)."""

_DLPACK_CPU = 1  # kDLCPU in dlpack.h


_namespaces: dict[type, Any] = {}


def array_namespace(x: Array, *others: Array) -> Any:
    """Return the Array API namespace shared by the given arrays; that of NumPy's is NumPy.

    The answer depends on the type alone and is remembered: the look-up takes longer than a product of short
    vectors, and some solvers do one for every row of the data. The namespace that array-api-compat has for NumPy, which
    needs none any more, takes as long to import as NumPy.
    """
    kind = type(x)
    for other in others:
        if type(other) is not kind:
            return compat.array_namespace(x, *others)
    namespace = _namespaces.get(kind)
    if namespace is None:
        namespace = np if issubclass(kind, np.ndarray) else compat.array_namespace(x)
        _namespaces[kind] = namespace
    return namespace


def broadcast(x: Array, shape: tuple[int, ...]) -> Array:
    """Return ``x`` in this shape: itself where it has it, which is the common case, else a view; not to be written to.

    Examples
    --------
    >>> x = np.ones((2, 3))
    >>> broadcast(x, (2, 3)) is x, broadcast(x[0], (2, 3)).shape
    (True, (2, 3))
    """
    return x if x.shape == shape else array_namespace(x).broadcast_to(x, shape)


def reshape(x: Array, shape: tuple[int, ...]) -> Array:
    """Return ``x`` in another shape, as the standard's function does.

    Examples
    --------
    >>> reshape(np.zeros((2, 3)), (3, -1)).shape
    (3, 2)
    """
    return x.reshape(shape) if type(x) is np.ndarray else array_namespace(x).reshape(x, shape)


def take(x: Array, index: Array) -> Array:
    """Return copies of the rows ``index``, an integer array of the library of ``x``.

    Examples
    --------
    >>> take(np.array([[1.0], [2.0]]), np.array([1, 1])).tolist()
    [[2.0], [2.0]]
    """
    return x.take(index, axis=0) if type(x) is np.ndarray else array_namespace(x).take(x, index, axis=0)


def summed(x: Array, axis: int, *, keepdims: bool = False) -> Array:
    """Return the sums of floating-point numbers along an axis, as the standard's function does.

    Examples
    --------
    >>> summed(np.ones((2, 3)), -1).tolist()
    [3.0, 3.0]
    """
    if type(x) is np.ndarray:
        return np.add.reduce(x, axis=axis, keepdims=keepdims)
    return array_namespace(x).sum(x, axis=axis, keepdims=keepdims)


def largest(x: Array, axis: int, *, keepdims: bool = False) -> Array:
    """Return the largest numbers along an axis, as the standard's function ``max`` does.

    Examples
    --------
    >>> largest(np.asarray([[1.0, 2.0], [4.0, 3.0]]), -1, keepdims=True).tolist()
    [[2.0], [4.0]]
    """
    if type(x) is np.ndarray:
        return np.maximum.reduce(x, axis=axis, keepdims=keepdims)
    return array_namespace(x).max(x, axis=axis, keepdims=keepdims)


def vecdot(x: Array, y: Array) -> Array:
    """Return the inner products along the last axis, as the standard's function does.

    Examples
    --------
    >>> vecdot(np.ones((2, 3)), np.ones(3)).tolist()
    [3.0, 3.0]
    """
    if type(x) is np.ndarray:
        return np.vecdot(x, y)
    xp = array_namespace(x, y)
    return (xp.linalg if compat.is_torch_array(x) else xp).vecdot(x, y)  # the other one of PyTorch is many products


def transposed(x: Array) -> Array:
    """Return ``x`` with its last two axes exchanged, a view.

    Examples
    --------
    >>> transposed(np.ones((4, 2, 3))).shape
    (4, 3, 2)
    """
    return x.mT if type(x) is np.ndarray else array_namespace(x).matrix_transpose(x)


def zeros_like(x: Array) -> Array:
    """Return zeros of the shape, type and device of ``x``, client after client in memory.

    ``zeros_like`` of NumPy follows the strides of ``x``: zeros like a broadcast model would have its clients side by
    side, and so would everything that is made of them, at twice the time for every client's own work.

    Examples
    --------
    >>> copies = broadcast(np.ones((3, 4)), (2, 3, 4))
    >>> np.zeros_like(copies).strides, zeros_like(copies).strides
    ((8, 64, 16), (96, 32, 8))
    """
    return array_namespace(x).zeros(x.shape, dtype=x.dtype, device=device(x))


def numbers_like(n: int, like: Array) -> Array:
    """Return ``0, ..., n - 1`` in the type and on the device of ``like``; not to be written to.

    Examples
    --------
    >>> numbers_like(3, np.ones(2)).tolist()
    [0.0, 1.0, 2.0]
    """
    if type(like) is np.ndarray:
        return _numbers(n, like.dtype)
    return array_namespace(like).arange(n, dtype=like.dtype, device=device(like))


@lru_cache(maxsize=16)
def _numbers(n: int, dtype: Any) -> np.ndarray:
    numbers = np.arange(n, dtype=dtype)
    numbers.flags.writeable = False
    return numbers


def device(x: Array) -> Any:
    """Return the device on which ``x`` lives, in the form that creation functions take as ``device=``."""
    return "cpu" if type(x) is np.ndarray else compat.device(x)


def asarray_like(values: Any, like: Array, *, dtype: Any = None) -> Array:
    """Move host values (NumPy array, list, number) to the namespace, device and dtype of ``like``.

    ``dtype`` overrides the type of the result; ``like.dtype`` is used when it is None.
    """
    dtype = like.dtype if dtype is None else dtype
    if type(like) is np.ndarray:
        return np.asarray(values, dtype=dtype)
    return array_namespace(like).asarray(values, dtype=dtype, device=device(like))


def to_numpy(x: Array) -> np.ndarray:
    """Return ``x`` as a NumPy array, copying it from its device when it lives on another one.

    While a function is compiled there are no numbers to copy: what is traced is returned as it is.
    """
    if type(x) is np.ndarray or compat.is_numpy_array(x) or is_traced(x):
        return x
    if compat.is_cupy_array(x):
        return x.get()
    if compat.is_torch_array(x):
        return x.detach().cpu().numpy()
    if hasattr(x, "asnumpy"):  # dpnp, which refuses any implicit copy
        return x.asnumpy()
    if compat.is_array_api_strict_namespace(xp := array_namespace(x)):  # it exports from its CPU alone
        x = x.to_device(xp.Device("CPU_DEVICE"))
    return np.asarray(x)


def is_array(x: Any) -> bool:
    """Tell whether ``x`` is an array of a library that follows the Array API standard; masked ones do not.

    Examples
    --------
    >>> is_array(np.ones(2)), is_array([1.0, 2.0])
    (True, False)
    """
    return compat.is_array_api_obj(x) and not isinstance(x, np.ma.MaskedArray)


def detached(x: Array) -> Array:
    """Return a tensor of PyTorch without the history of its gradients, any other array as it is.

    Examples
    --------
    >>> x = np.ones(2)
    >>> detached(x) is x
    True
    """
    return x.detach() if compat.is_torch_array(x) else x


def host_array(x: Any) -> np.ndarray:
    """Return what is no array of a known library as a NumPy array: by DLPack where it exports that, else as NumPy does.

    Raises
    ------
    TypeError, ValueError, BufferError, RuntimeError
        If NumPy cannot read it.

    Examples
    --------
    >>> host_array([1.0, 2.0])
    array([1., 2.])
    """
    if is_array(x):
        return to_numpy(x)
    if hasattr(x, "__dlpack__") and not hasattr(x, "__array__"):
        return np.from_dlpack(x)
    return np.asarray(x)


def uploader(name: str) -> Callable[[Any], Any]:
    """Return the function that brings NumPy arrays and SciPy's sparse matrices to the device of this name.

    ``"cpu"`` leaves them as they are, ``"cuda"`` makes CuPy's arrays and sparse matrices of them, on its current GPU.

    Raises
    ------
    ValueError
        If the name is another one, or there is no such device.

    Examples
    --------
    >>> x = np.ones(2)
    >>> uploader("cpu")(x) is x
    True
    """
    if name == "cpu":
        return lambda x: x
    if name != "cuda":
        raise ValueError(f"device must be cpu or cuda, not {name!r}.")
    try:
        import cupy  # pyright: ignore[reportMissingImports]

        found = cupy.cuda.is_available()
    except ImportError:
        found = False
    if not found:
        raise ValueError('device cuda needs CuPy and a CUDA GPU: pip install "dualopt[gpu]".')
    from cupyx.scipy.sparse import csr_matrix as sparse  # pyright: ignore[reportMissingImports]

    return lambda x: sparse(x) if is_sparse(x) else cupy.asarray(x)


def indices(values: Any) -> np.ndarray:
    """Return integers as a NumPy array of int64: positions of clients and of rows are kept in host memory.

    Examples
    --------
    >>> indices(range(3))
    array([0, 1, 2])
    """
    host = isinstance(values, np.ndarray | list | tuple | range)
    return np.asarray(values if host else to_numpy(values), dtype=np.int64)


_traced: dict[type, bool] = {}


def is_traced(x: Array) -> bool:
    """Tell whether ``x`` stands for an array in a function that JAX is about to compile, and has no numbers yet.

    Examples
    --------
    >>> is_traced(np.ones(2))
    False
    """
    kind = type(x)
    if kind is np.ndarray:
        return False
    found = _traced.get(kind)
    if found is None:
        jax = sys.modules.get("jax")
        found = _traced[kind] = jax is not None and issubclass(kind, jax.core.Tracer)
    return found


def compiles(x: Array) -> bool:
    """Tell whether the library of ``x`` compiles functions of its arrays.

    Examples
    --------
    >>> compiles(np.ones(2))
    False
    """
    return compat.is_jax_array(x)


def shares_memory(x: Array) -> bool:
    """Tell whether ``x`` is a tensor of PyTorch in host memory, which can be seen as an array of NumPy.

    Examples
    --------
    >>> shares_memory(np.ones(2))
    False
    """
    return compat.is_torch_array(x) and is_host(x)


def repeat(condition: Callable[[Any], Array], body: Callable[[Any], Any], state: Any) -> Any:
    """Return ``state`` after ``body`` as often as ``condition`` says so; only where both are traced."""
    import jax  # pyright: ignore[reportMissingImports]

    return jax.lax.while_loop(condition, body, state)


def chosen(condition: Any, then: Any, otherwise: Any) -> Any:
    """Return one of two numbers by a truth value, which may be traced.

    Examples
    --------
    >>> chosen(True, 0.1, 0.2)
    0.1
    """
    if type(condition) is bool or not is_traced(condition):
        return then if condition else otherwise
    return array_namespace(condition).where(condition, then, otherwise)


def at_once(function: Callable[[], Any]) -> Any:
    """Return what a function of data returns, which is to be kept: numbers, although another function may be traced.

    Examples
    --------
    >>> at_once(lambda: 1.0)
    1.0
    """
    jax = sys.modules.get("jax")
    if jax is None:
        return function()
    with jax.ensure_compile_time_eval():
        return function()


def either(condition: Array, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    """Return what one of two functions returns, and compute it alone; only where both are traced."""
    import jax  # pyright: ignore[reportMissingImports]

    return jax.lax.cond(condition, then, otherwise)


def surely(mask: Array) -> bool:
    """Tell whether a mask in host memory is known to be true everywhere; of one that is traced nothing is known.

    Examples
    --------
    >>> surely(np.array([True, True])), surely(np.array([True, False]))
    (True, False)
    """
    return not is_traced(mask) and bool(mask.all())


_hosts: dict[tuple[type, Any], bool] = {}


def is_host(x: Array) -> bool:
    """Tell whether ``x`` lives in host memory, where a loop over clients is as fast as a batched product.

    It does if its library calls the device a CPU and DLPack, by which libraries exchange arrays, calls its memory that
    of the CPU. The first alone would count dpnp on a CPU, where every function is a kernel in a queue as on its GPUs;
    the second alone the other devices of array-api-strict, with which tests run what is written for GPUs. The answer is
    remembered for each type and device. What is traced lives nowhere yet, and is treated as what is elsewhere.

    Examples
    --------
    >>> is_host(np.ones(2))
    True
    """
    kind = type(x)
    if kind is np.ndarray:
        return True
    if is_traced(x):
        return False
    place = (kind, device(x))
    host = _hosts.get(place)
    if host is None:
        host = _hosts[place] = "cpu" in str(place[1]).lower() and int(x.__dlpack_device__()[0]) == _DLPACK_CPU
    return host


def host_places(mask: np.ndarray) -> list[int]:
    """Return the positions of a mask in host memory that are true.

    >>> host_places(np.array([True, False, True]))
    [0, 2]
    """
    return mask.nonzero()[0].tolist()


def host_zeros(n: int) -> np.ndarray:
    """Return ``n`` zeros in host memory: what loops count and decide is there, wherever the data are."""
    return np.zeros(n)


def is_numpy(x: Array) -> bool:
    """Tell whether ``x`` is an array of NumPy."""
    return type(x) is np.ndarray or compat.is_numpy_array(x)


def epsilon(x: Array) -> float:
    """Return the spacing of floating-point numbers at 1 for the type of ``x``."""
    return (_limits.get((type(x), x.dtype)) or limits(x))[0]


_limits: dict[tuple[type, Any], tuple[float, float, float]] = {}


def limits(x: Array) -> tuple[float, float, float]:
    """Return the spacing at 1, the smallest normal and the largest number of the type of ``x``, remembered for each.

    Examples
    --------
    >>> limits(np.zeros(1)) == (2.0**-52, 2.0**-1022, (2.0 - 2.0**-52) * 2.0**1023)
    True
    """
    kind = type(x), x.dtype
    found = _limits.get(kind)
    if found is None:
        info = array_namespace(x).finfo(x.dtype)
        found = _limits[kind] = float(info.eps), float(info.smallest_normal), float(info.max)
    return found


_widths: dict[tuple[type, Any], int] = {}


def width(x: Array) -> int:
    """Return the bits of a number of the type of ``x``, remembered for each type.

    Examples
    --------
    >>> width(np.zeros(1)), width(np.zeros(1, dtype=np.float32)), width(np.zeros(1, dtype=np.int16))
    (64, 32, 16)
    """
    kind = type(x), x.dtype
    found = _widths.get(kind)
    if found is None:
        xp = array_namespace(x)
        info = xp.iinfo if xp.isdtype(x.dtype, "integral") else xp.finfo
        found = _widths[kind] = int(info(x.dtype).bits)
    return found


def logsumexp(x: Array, *, axis: int) -> Array:
    """Compute ``log(sum(exp(x)))`` along one axis without overflow.

    The largest entry is subtracted first; where it is infinite it is replaced by zero, so that a slice of
    ``-inf`` gives ``-inf`` and a slice that contains ``+inf`` gives ``+inf``, never NaN.
    """
    xp = array_namespace(x)
    largest = xp.max(x, axis=axis, keepdims=True)
    shift = xp.where(xp.isfinite(largest), largest, xp.zeros_like(largest))
    with np.errstate(divide="ignore"):  # the logarithm of an empty sum is -inf, and meant
        result = xp.log(xp.sum(xp.exp(x - shift), axis=axis, keepdims=True)) + shift
    return xp.squeeze(result, axis=axis)


def is_sparse(x: Any) -> bool:
    """Tell whether ``x`` is a sparse matrix or array of SciPy, or of CuPy; neither is imported.

    Examples
    --------
    >>> is_sparse(np.eye(2))
    False
    """
    return type(x).__module__.startswith(("scipy.sparse", "cupyx.scipy.sparse"))


def is_mapped(x: Array) -> bool:
    """Tell whether ``x`` lies in a file that is mapped to be read, so that no program writes to it by accident.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     np.save(file, np.ones(3))
    ...     file.flush()
    ...     [is_mapped(np.load(file.name, mmap_mode=mode)) for mode in ("r", "r+", None)]
    [True, False, False]
    """
    if not isinstance(x, np.ndarray) or x.flags.writeable:
        return False
    base: Any = x
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(base, mmap)


def is_writable(x: Array) -> bool:
    """Tell whether the library of ``x`` can write into its arrays; that of JAX cannot.

    Examples
    --------
    >>> is_writable(np.ones(2))
    True
    """
    return type(x) is np.ndarray or not compat.is_jax_array(x)


def csr_matrix(data: Array, indices: Array, indptr: Array, shape: tuple[int, int]) -> Any:
    """Return a matrix in compressed sparse rows of the library of ``data``; its arrays are not copied.

    Raises
    ------
    ModuleNotFoundError
        If SciPy is not installed.
    ValueError
        If the library has no sparse matrices.

    Examples
    --------
    >>> csr_matrix(np.array([5.0]), np.array([1]), np.array([0, 0, 1]), (2, 3)).toarray().tolist()
    [[0.0, 0.0, 0.0], [0.0, 5.0, 0.0]]
    """
    if compat.is_cupy_array(data):
        from cupyx.scipy.sparse import csr_matrix as build  # pyright: ignore[reportMissingImports]
    elif compat.is_numpy_array(data):
        build = optional("scipy.sparse", "a sparse matrix").csr_array
    else:
        raise ValueError(f"X must be a sparse matrix of SciPy or CuPy, not one of {type(data).__name__}.")
    return build((data, indices, indptr), shape=shape)


def set_rows(x: Array, ids: np.ndarray, rows: Array) -> Array:
    """Write ``rows`` into the rows ``ids`` (host integers) of ``x`` and return it; a new array where none is writable.

    Raises
    ------
    TypeError
        If the types of the numbers differ: they would be converted in silence.

    Examples
    --------
    >>> set_rows(np.zeros((3, 1)), np.array([2, 0]), np.array([[5.0], [7.0]])).tolist()
    [[7.0], [0.0], [5.0]]
    """
    if x.dtype != rows.dtype:
        raise TypeError(f"rows of {rows.dtype} cannot be written into an array of {x.dtype}.")
    if type(x) is np.ndarray:
        x[ids] = rows
        return x
    if compat.is_jax_array(x):
        return x.at[ids].set(rows)
    if compat.is_array_api_strict_namespace(array_namespace(x)):  # the standard writes rows one by one
        for position, i in enumerate(ids.tolist()):
            x[i, ...] = rows[position, ...]
        return x
    x[ids if compat.is_numpy_array(x) else asarray_like(ids, x, dtype=array_namespace(x).int64)] = rows
    return x


def silent() -> AbstractContextManager[Any]:
    """Keep NumPy from warning of overflow, where infinite results are meant and looked for."""
    return np.errstate(all="ignore")
