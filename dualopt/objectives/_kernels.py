r"""The two products with features, compiled by Numba; imported at their first use (`dualopt.objectives._compiled`).

Predictors :math:`\Theta_j X_j'` and pulled-back slopes :math:`S_j X_j` are products with one side of two to twenty
rows. BLAS is made for large matrices: it copies both factors before it multiplies, which here costs as much as the
product. Both are written as :math:`C = A B` with rows of ``B`` that are contiguous, where a tile of ``C`` (``HEIGHT``
rows, ``WIDTH`` vector registers wide) stays in registers while the program runs once along the sum,

.. math:: C_{rv} \leftarrow C_{rv} + A_{rt} B_{tv}, \qquad t = 0, 1, 2, \ldots

one number of ``A`` times a register of ``B`` (Goto and van de Geijn 2008, "Anatomy of high-performance matrix
multiplication"). For predictors ``A`` is features and ``B`` the transposed model, which is copied; for slopes ``A`` is
slopes and ``B`` features.

Every entry of ``C`` is a sum in the order of ``t``, by multiply-adds where the processor has them. It does not depend
on the tile it is in, on the block, nor on other clients, and differs from the exact one by at most :math:`\gamma_n`
times the sum of the sizes of its ``n`` terms, as any sum does (Higham 2002, Section 3.1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from dualopt.arrays.xp import Array, array_namespace, broadcast

numba: Any = None
FEATURES: Mapping[str, bool] = {}
try:
    import numba  # pyright: ignore[reportMissingImports]
    import numba.extending  # pyright: ignore[reportMissingImports]
    from llvmlite import ir  # pyright: ignore[reportMissingImports]
    from llvmlite.binding import get_host_cpu_features  # pyright: ignore[reportMissingImports]
    from numba.core import cgutils  # pyright: ignore[reportMissingImports]

    FEATURES = get_host_cpu_features()
except (ImportError, RuntimeError):  # not installed, not made for this NumPy, or not for this processor
    numba = None

__all__ = ["fits", "numba", "predict", "pull_back"]

# Processors have 32 registers of 64 bytes, or 16 of 32 bytes: a tile, a row of B and a number of A must fit, or sums
# would go to memory and back in every step.
WIDE = bool(FEATURES.get("avx512f"))
REGISTER = 64 if WIDE else 32  # bytes
HEIGHT, WIDTH = (12, 2) if WIDE else (6, 2)

# No processor foresees what comes after the parts of some rows that a tile runs along, so a tile asks for it: the rows
# of A behind its own, and the columns of B after next. In float64, MNIST's predictors take 14.9 ms instead of 18.6 from
# memory, and pulled-back slopes 14 instead of 36.
AHEAD = 2
LINE = 64  # bytes that are read at once


def fits(outputs: int, columns: int, itemsize: int) -> bool:
    """Tell whether products of this shape are faster here than in BLAS.

    Ratios of both products together, 512 rows, float64 and float32: at 785 columns 0.27 and 0.54 for 2 outputs, 0.26
    and 0.35 for 10, 0.34 and 0.52 for 20; at 33 columns and 10 outputs 0.58 and 0.73. With registers of 32 bytes 20
    outputs take 0.68 and 0.97, 64 outputs 1.13 and 1.02. One output takes 1.03 and 2.3: BLAS then reads the features
    as fast as memory gives them. Processors without AVX2 were not measured.
    """
    known = bool(FEATURES.get("avx2")) and itemsize in (4, 8)
    return known and 2 <= outputs <= 20 and columns * itemsize >= WIDTH * REGISTER


def _intrinsic(function: Any) -> Callable[..., Any]:
    """Let compiled code call what a function generates; without Numba nothing calls it."""
    return function if numba is None else numba.extending.intrinsic(function)


@_intrinsic
def _tile(
    typing: Any, C: Any, c_at: Any, c_row: Any, A: Any, a_at: Any, a_row: Any, a_step: Any, B: Any, b_at: Any,
    b_step: Any, steps: Any, height: Any, width: Any,
) -> Any:  # fmt: skip
    """Compute a tile of ``C = A B``: ``height`` rows, ``width`` registers wide, summed over ``steps``.

    Arrays are given with the number of the first entry; entry ``(r, t)`` of ``A`` is ``r a_row + t a_step`` behind it,
    entry ``(t, v)`` of ``B`` is ``t b_step + v``, and entry ``(r, v)`` of ``C`` is ``r c_row + v``. Numba has no vector
    registers: this writes LLVM's instructions, one loop for every height and width.
    """
    types = numba.types
    signature = types.void(C, *[types.intp] * 2, A, *[types.intp] * 3, B, *[types.intp] * 5)
    integer, lane = ir.IntType(64), ir.IntType(32)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        number = context.get_value_type(C.dtype)
        size = context.get_abi_sizeof(number)
        lanes = REGISTER // size
        register = ir.VectorType(number, lanes)
        nothing = ir.Constant(register, ir.Undefined)
        every_lane = ir.Constant(ir.VectorType(lane, lanes), [0] * lanes)
        byte = ir.IntType(8).as_pointer()
        prefetch = builder.module.declare_intrinsic(
            "llvm.prefetch", (byte,), ir.FunctionType(ir.VoidType(), [byte, lane, lane, lane])
        )

        def ask_for(place: Any) -> None:  # it may lie beyond the data: that does no harm
            builder.call(prefetch, [builder.bitcast(place, byte), lane(0), lane(3), lane(1)])

        _, c_at, c_row, _, a_at, a_row, a_step, _, b_at, b_step, steps, height, width = args

        def entry(array: int, at: Any) -> Any:
            data = cgutils.create_struct_proxy(signature.args[array])(context, builder, args[array]).data
            return builder.gep(data, [at])

        def registers(pointer: Any, first: int, count: int) -> list[Any]:
            places = [builder.gep(pointer, [integer(v * lanes)]) for v in range(first, first + count)]
            return [builder.bitcast(place, register.as_pointer()) for place in places]

        def loop(h: int, w: int) -> None:
            zero = ir.Constant(register, None)
            sums = [[cgutils.alloca_once_value(builder, zero) for _ in range(w)] for _ in range(h)]
            rows = [builder.gep(a, [builder.mul(a_row, integer(r))]) for r in range(h)]
            with cgutils.for_range(builder, steps) as at:
                pointer = builder.gep(b, [builder.mul(at.index, b_step)])
                for place in registers(pointer, AHEAD * w, w):
                    ask_for(place)
                behind = builder.mul(integer(h), builder.add(a_row, at.index))  # h numbers in each step, h rows in all
                for n in range(0, h, LINE // size):
                    ask_for(builder.gep(a, [builder.add(behind, integer(n))]))
                row = [builder.load(place, align=size) for place in registers(pointer, 0, w)]
                for r in range(h):
                    x = builder.load(builder.gep(rows[r], [builder.mul(at.index, a_step)]))
                    x = builder.shuffle_vector(builder.insert_element(nothing, x, lane(0)), nothing, every_lane)
                    for v in range(w):
                        product = builder.fmul(x, row[v], flags=("contract",))
                        total = builder.fadd(builder.load(sums[r][v]), product, flags=("contract",))
                        builder.store(total, sums[r][v])
            for r in range(h):
                places = registers(builder.gep(c, [builder.mul(c_row, integer(r))]), 0, w)
                for place, total in zip(places, sums[r], strict=True):
                    builder.store(builder.load(total), place, align=size)

        a, b, c = entry(3, a_at), entry(7, b_at), entry(0, c_at)
        end = builder.append_basic_block("end")
        shape = builder.add(builder.mul(height, integer(WIDTH + 1)), width)
        switch = builder.switch(shape, end)
        for h in range(1, HEIGHT + 1):
            for w in range(1, WIDTH + 1):
                block = builder.append_basic_block(f"tile_{h}_{w}")
                switch.add_case(integer(h * (WIDTH + 1) + w), block)
                builder.position_at_end(block)
                loop(h, w)
                builder.branch(end)
        builder.position_at_end(end)
        return context.get_dummy_value()

    return signature, generate


def _predict(X: Any, matrices: Any, z: Any, model: Any, sums: Any) -> None:
    """Write ``M_j x_ji`` to ``z`` ``(c, k, b)``.

    ``model`` ``(p, K)``, zero, takes the transposed matrix, ``sums`` ``(HEIGHT, K)`` a tile; ``K`` is ``k`` rounded up
    to whole registers.
    """
    (c, b, p), k, wide, size = X.shape, matrices.shape[1], model.shape[1], X.itemsize
    lanes = REGISTER // size
    client, row, column = X.strides[0] // size, X.strides[1] // size, X.strides[2] // size
    for j in range(c):
        if j == 0 or matrices.strides[0] != 0:  # otherwise it is one matrix for all clients
            for o in range(k):
                for t in range(p):
                    model[t, o] = matrices[j, o, t]
        for i in range(0, b, HEIGHT):
            height = min(HEIGHT, b - i)
            for o in range(0, wide, WIDTH * lanes):
                width = min(WIDTH, (wide - o) // lanes)
                _tile(sums, o, wide, X, j * client + i * row, row, column, model, o, wide, p, height, width)
            for o in range(k):
                for r in range(height):
                    z[j, o, i + r] = sums[r, o]


def _pull_back(slopes: Any, X: Any, out: Any) -> None:
    """Write ``sum_i s_ji x_ji'`` to ``out`` ``(c, k, p)``; rows of ``X`` are contiguous.

    The last tile ends with the last column: it computes some columns a second time, to the same bits.
    """
    (c, k, p), b, size = out.shape, X.shape[1], X.itemsize
    columns = WIDTH * REGISTER // size
    if p < columns or X.strides[2] != size:
        raise ValueError("features must fill a tile, and those of a row must lie side by side")
    client, row = X.strides[0] // size, X.strides[1] // size
    owner, output, step = slopes.strides[0] // size, slopes.strides[1] // size, slopes.strides[2] // size
    tiles = (k + HEIGHT - 1) // HEIGHT
    height = (k + tiles - 1) // tiles
    for j in range(c):
        for t in range(0, p, columns):
            first = min(t, p - columns)
            for o in range(0, k, height):
                C, A, B = (j * k + o) * p + first, j * owner + o * output, j * client + first
                _tile(out, C, p, slopes, A, output, step, X, B, row, b, min(height, k - o), WIDTH)


@cache
def _compiled(dtype: Any) -> tuple[Any, Any]:
    """Return the two products for ``float32`` or ``float64``.

    Numba keeps them on disk, beside this file or in the user's cache, where it may write; NUMBA_CACHE_DIR names another
    folder. Compilation takes 1.5 s, loading what is kept 0.1 s, the import of Numba 0.5 s.
    """
    types, options = numba.types, {"error_model": "numpy", "nogil": True}
    number = numba.from_dtype(dtype)
    given = types.Array(number, 3, "A", readonly=True)
    table, stack = (types.Array(number, dimensions, "C") for dimensions in (2, 3))

    def compiled(function: Any, *arguments: Any) -> Any:
        try:
            return numba.njit(types.void(*arguments), cache=True, **options)(function)
        except RuntimeError:  # there is no folder to write to
            return numba.njit(types.void(*arguments), **options)(function)

    return compiled(_predict, given, given, stack, table, table), compiled(_pull_back, given, given, stack)


def predict(X: Array, matrices: Array) -> Array:
    """Return ``M_j x_ji``, ``(c, k, b)``, for features ``(c, b, p)`` and matrices ``(c, k, p)`` or ``(1, k, p)``."""
    xp = array_namespace(X)
    (c, b, p), k, lanes = X.shape, matrices.shape[1], REGISTER // X.itemsize
    wide = -(-k // lanes) * lanes
    z = xp.empty((c, k, b), dtype=X.dtype)
    model, sums = xp.zeros((p, wide), dtype=X.dtype), xp.empty((HEIGHT, wide), dtype=X.dtype)
    _compiled(X.dtype)[0](X, broadcast(matrices, (c, k, p)), z, model, sums)
    return z


def pull_back(slopes: Array, X: Array) -> Array:
    """Return ``sum_i s_ji x_ji'``, ``(c, k, p)``, for slopes ``(c, k, b)`` and features ``(c, b, p)`` that fit."""
    out = array_namespace(X).empty((X.shape[0], slopes.shape[1], X.shape[2]), dtype=X.dtype)
    _compiled(X.dtype)[1](slopes, X, out)
    return out
