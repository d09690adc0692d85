"""MatMulNBits: a matrix product with weights of 2, 4 or 8 bits, whose blocks have a scale each."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from sabir import loops
from sabir.base import EvaluationError, InferenceError, UnsupportedError
from sabir.elements import FLOAT, UINT8
from sabir.ir import Builder, TensorType, Value, may_be_equal
from sabir.loops import Expression, NotLowered, Widened
from sabir.opsets.families.building.calls import typed
from sabir.opsets.families.numbers.scalars import element_of
from sabir.opsets.families.products.products import matmul
from sabir.opsets.families.quantization.packed_integers import BYTE, WIDTHS, unpacked, unpacked_value
from sabir.opsets.families.shapes.extents import unsqueezed
from sabir.opsets.families.shapes.ranks import check_least_rank, check_rank, check_shape, hold
from sabir.opsets.families.shapes.shapes import same_dim
from sabir.opsets.typing import Array
from sabir.schema import (
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    Unconvertible,
    at_least,
    one_of,
    tensors,
)

_PREPACKED = "weights in a layout of CUDA kernels (`weight_prepacked` other than 0), which is not documented"

mat_mul_n_bits = Operator(
    "MatMulNBits",
    domain="com.microsoft",
    summary="`A @ W.T + bias`, where the blocks of each row of `W` are `(integers - zero point) * scale`.",
    body_opset=18,
    lacks=(_PREPACKED,),
)

T1 = Constraint("T1", tensors("float", "float16", "bfloat16"))
T2 = Constraint("T2", tensors("uint8"))
T3 = Constraint("T3", tensors("uint8", "float16", "float", "bfloat16"))
T4 = Constraint("T4", tensors("int32"))
_LEAST_BLOCK = 16
_LEVEL_OF_BYTES, _STEPS, _ROUNDED_WIDTHS = 4, 127, (4, 8)
_MOST_BLOCK = 512  # a kernel adds up the products of a block in one part

v1 = mat_mul_n_bits.first(
    1,
    inputs=[
        Input("A", T1, "(..., K)."),
        Input("B", T2, "Packed integers, (N, blocks, block_size * bits / 8); `blocks` is K / block_size."),
        Input("scales", T1, "(N, blocks), or all in one axis."),
        Input(
            "zero_points",
            T3,
            "uint8: packed as B, (N, blocks * bits / 8); else (N, blocks). By default `2 ** (bits - 1)`.",
            optional=True,
        ),
        Input("g_idx", T4, "The block of each of the K columns of W, out of order.", optional=True),
        Input("bias", T1, "(N).", optional=True),
    ],
    outputs=[Output("Y", T1, "(..., N).")],
    attributes=[
        Attribute("K", "int", "The number of columns of W.", required=True, values=at_least(1)),
        Attribute("N", "int", "The number of rows of W.", required=True, values=at_least(1)),
        Attribute("bits", "int", "The bits of an integer.", default=4, values=one_of(*WIDTHS)),
        Attribute("block_size", "int", "A power of 2, 16 or more.", required=True),
        Attribute(
            "accuracy_level",
            "int",
            "How precise products are at least. At 4, blocks of A are rounded to 127 steps each way.",
            default=0,
        ),
        Attribute("weight_prepacked", "int", "The layout of B; 0: the one described here.", default=0),
    ],
)


class _Layout(NamedTuple):
    """The sizes that the attributes declare."""

    k: int
    n: int
    bits: int
    size: int

    @classmethod
    def of(cls, attributes: Mapping[str, int]) -> "_Layout":
        """Return the sizes; raises InferenceError for blocks of another size than the operator has."""
        size = attributes["block_size"]
        if size < _LEAST_BLOCK or size & (size - 1):
            raise InferenceError(f"`block_size` must be a power of 2 from {_LEAST_BLOCK} on, and is {size}")
        return cls(attributes["K"], attributes["N"], attributes["bits"], size)

    @property
    def blocks(self) -> int:
        """The blocks of a row."""
        return -(-self.k // self.size)

    @property
    def zero_bytes(self) -> int:
        """The bytes of the packed zero points of a row."""
        return -(-self.blocks * self.bits // BYTE)


@v1.infer
def infer(
    a: TensorType, b: TensorType, scales: TensorType, zeros: TensorType | None = None,
    g_idx: TensorType | None = None, bias: TensorType | None = None, /, **attributes: int,
) -> TensorType:  # fmt: skip
    if attributes["weight_prepacked"]:
        raise UnsupportedError(f"MatMulNBits lacks {_PREPACKED}")
    layout = _Layout.of(attributes)
    n = layout.n
    check_shape("B", b, n, layout.blocks, layout.size * layout.bits // BYTE)
    _check_rows("scales", scales, n, layout.blocks)
    packed = zeros is not None and zeros.element.name == "uint8"
    _check_rows("zero_points", zeros, n, layout.zero_bytes if packed else layout.blocks)
    _check_places(g_idx, layout)
    check_shape("bias", bias, n)
    check_least_rank("A", a, 1)
    if a.shape is None:
        return TensorType(a.element)
    same_dim([a.shape[-1], layout.k], "the inner dimensions of a matrix product")
    return TensorType(a.element, (*a.shape[:-1], n))


def _check_places(g_idx: TensorType | None, layout: _Layout) -> None:
    """Raise InferenceError unless there is a block for each column, or for each element of the blocks."""
    whole = layout.blocks * layout.size
    check_rank("g_idx", g_idx, 1)
    if g_idx is not None and g_idx.shape is not None and not may_be_equal(g_idx.shape[0], whole):
        check_shape("g_idx", g_idx, layout.k)


def _check_rows(name: str, x: TensorType | None, rows: int, columns: int) -> None:
    """Raise InferenceError unless a parameter has this shape, or all its elements along one axis."""
    if x is not None and x.shape is not None and len(x.shape) == 1:
        check_shape(name, x, rows * columns)
    else:
        check_shape(name, x, rows, columns)


@v1.evaluate
def evaluate(
    a: Array, b: Array, scales: Array, zeros: Array | None = None, g_idx: Array | None = None,
    bias: Array | None = None, /, **attributes: int,
) -> Array:  # fmt: skip
    hold(infer, a, b, scales, zeros, g_idx, bias, **attributes)
    layout, rows = _Layout.of(attributes), a.astype(np.float32, copy=False)
    if g_idx is None and _is_rounded(layout, attributes):
        rows = _rounded(rows, layout)
    y = matmul(rows, _weights(layout, b, scales, zeros, g_idx).T)
    if bias is not None:
        y += bias.astype(np.float32)
    return y.astype(a.dtype, copy=False)


def _is_rounded(layout: _Layout, attributes: Mapping[str, int]) -> bool:
    """Whether blocks of A are rounded to 127 steps, so that products are those of integers."""
    is_low = attributes["accuracy_level"] == _LEVEL_OF_BYTES
    return is_low and layout.bits in _ROUNDED_WIDTHS and layout.size <= _MOST_BLOCK


def _rounded(a: Array, layout: _Layout) -> Array:
    """Return the nearest multiples of a 127th of the largest element of each block."""
    whole = layout.blocks * layout.size
    padded = np.pad(a, [(0, 0)] * (a.ndim - 1) + [(0, whole - layout.k)])
    blocks = padded.reshape(*a.shape[:-1], layout.blocks, layout.size)
    scale = np.abs(blocks).max(axis=-1, keepdims=True) / np.float32(_STEPS)
    with np.errstate(divide="ignore", invalid="ignore"):
        inverse = np.where(scale > 0, 1 / scale, 0)
        steps = np.rint(blocks * inverse) * scale
    return np.asarray(steps.reshape(*a.shape[:-1], whole)[..., : layout.k])


def _weights(layout: _Layout, b: Array, scales: Array, zeros: Array | None, g_idx: Array | None) -> Array:
    """Return the matrix W, (N, K), in float32."""
    weights = unpacked(b, layout.bits).astype(np.float32)
    scale = scales.reshape(layout.n, layout.blocks, 1).astype(np.float32)
    zero = _zero_points(layout, zeros)
    if g_idx is None:
        weights -= zero
        weights *= scale
        return weights.reshape(layout.n, -1)[:, : layout.k]
    if g_idx.size and not 0 <= g_idx.min() <= g_idx.max() < layout.blocks:
        raise EvaluationError(f"`g_idx` must be from 0 to {layout.blocks - 1}")
    places = g_idx[: layout.k]
    weights = weights.reshape(layout.n, -1)[:, : layout.k]
    zero = np.broadcast_to(zero, scale.shape)
    return (weights - zero[:, places, 0]) * scale[:, places, 0]


def _zero_points(layout: _Layout, zeros: Array | None) -> Array:
    """Return the zero points, which broadcast to (N, blocks, 1), in float32."""
    if zeros is None:
        return np.full((1, 1, 1), 1 << (layout.bits - 1), np.float32)
    if zeros.dtype != np.uint8:
        return zeros.reshape(layout.n, layout.blocks, 1).astype(np.float32)
    found = unpacked(zeros.reshape(layout.n, layout.zero_bytes), layout.bits)[:, : layout.blocks]
    return found.reshape(layout.n, layout.blocks, 1).astype(np.float32)


@v1.body
def body(
    b: Builder, a: Value, packed: Value, scales: Value, zeros: Value | None = None,
    g_idx: Value | None = None, bias: Value | None = None, /, **attributes: int,
) -> Value:  # fmt: skip
    if attributes["weight_prepacked"]:
        raise Unconvertible("the layout of prepacked weights is not documented")
    weights = _Graph(b).weights(_Layout.of(attributes), packed, scales, zeros, g_idx)
    y = b.MatMul(typed(b, a, FLOAT), b.Transpose(weights, perm=[1, 0]))
    if bias is not None:
        y = b.Add(y, typed(b, bias, FLOAT))
    return typed(b, y, element_of(a))


@v1.parts
def parts(
    b: Builder, a: Value, packed: Value, scales: Value, zeros: Value | None = None,
    g_idx: Value | None = None, bias: Value | None = None, /, **attributes: int,
) -> Value:  # fmt: skip
    """Unpack the zero points, which are constants; weights out of order, and large blocks, have no kernel."""
    layout = _Layout.of(attributes)
    if g_idx is not None or layout.size > _MOST_BLOCK:
        return body(b, a, packed, scales, zeros, g_idx, bias, **attributes)
    if zeros is None or layout.bits == BYTE or element_of(zeros) is not UINT8:
        raise Unconvertible("there are no zero points to unpack")
    floats = _Graph(b).zero_points(layout, zeros)
    given: dict[str, Any] = attributes
    return b.op("MatMulNBits", a, packed, scales, floats, None, bias, domain="com.microsoft", **given)


@v1.lower
def lower(
    a: Expression, packed: Expression, scales: Expression, zeros: Expression | None = None,
    g_idx: Expression | None = None, bias: Expression | None = None, /, **attributes: int,
) -> Expression:  # fmt: skip
    layout = _Layout.of(attributes)
    if g_idx is not None or layout.size > _MOST_BLOCK:
        raise NotLowered("weights out of order, and large blocks, have no kernel")
    if not isinstance(packed, loops.Stored):
        raise NotLowered("the weights are computed, and kernels read them in memory")
    if not all(isinstance(size, int) for size in packed.shape):
        raise NotLowered("the sizes of the weights are known at run time only")
    if a.element != "float":
        raise Widened(f"kernels compute with {a.element} as float")
    rows = loops.reshape(a, (1, layout.k)) if a.rank == 1 else a
    missing = layout.blocks * layout.size - layout.k
    if missing:
        rows = loops.pad(rows, [0] * rows.rank, [*(0,) * (rows.rank - 1), missing], 0)
    rows = loops.reshape(rows, (_count(rows.shape[:-1]), layout.blocks, layout.size))
    steps = _in_steps(rows, layout) if _is_rounded(layout, attributes) else _Steps(rows)
    y = loops.Contract(
        "float", (rows.shape[0], layout.n), steps.numbers, loops.permute(packed, (1, 2, 0)), 1, 2,
        scale=_by_columns(layout, _as_stored(scales)), b_zero=_zero_points_of(layout, zeros),
        packs=BYTE // layout.bits, a_scale=steps.scale, a_sums=steps.sums,
    )  # fmt: skip
    y = loops.reshape(y, (*a.shape[:-1], layout.n))
    return y if bias is None else loops.apply("add", y, bias)


class _Steps(NamedTuple):
    """Blocks of rows as int8, in the order of `loops.Contract`, with their scales and sums; or as floats."""

    numbers: Expression
    scale: Expression | None = None
    sums: Expression | None = None


def _in_steps(rows: Expression, layout: _Layout) -> _Steps:
    count, blocks = rows.shape[:2]
    shape = (count, blocks, layout.size // 8, 4, 2) if layout.bits < BYTE else (*rows.shape, 1, 1)
    parts, axes = loops.permute(loops.reshape(rows, shape), (0, 1, 2, 4, 3)), (2, 3, 4)
    top = loops.reduce("max", loops.apply("abs", parts), axes)
    scale = loops.apply("div", top, _STEPS)
    inverse = loops.where(loops.apply("gt", scale, 0), loops.apply("reciprocal", scale), 0)
    whole = loops.nearest(loops.apply("mul", parts, inverse))
    sums = loops.cast(loops.reduce("sum", whole, axes), "float")
    numbers = loops.reshape(loops.cast(whole, "int8"), rows.shape)
    return _Steps(numbers, *(loops.reshape(x, (count, blocks, 1)) for x in (scale, sums)))


def _count(sizes: loops.Sizes) -> loops.Size:
    total: loops.Size = 1
    for size in sizes:
        total *= size
    return total


def _as_stored(x: Expression) -> Expression:
    """Return the halves that are cast to floats; kernels read constants as they are stored."""
    match x:
        case loops.Map(op="cast", operands=(half,)) if half.element in loops.HALVES:
            return half
        case _:
            return x


def _by_columns(layout: _Layout, x: Expression) -> Expression:
    """Return a parameter of each block as (blocks, 1, N)."""
    return loops.permute(loops.reshape(x, (layout.n, layout.blocks, 1)), (1, 2, 0))


def _zero_points_of(layout: _Layout, zeros: Expression | None) -> Expression:
    """Return the zero points as (blocks, 1, N), uint8 for 8 bits and else float, or one for all."""
    if zeros is None:
        return loops.number("uint8", 1 << (layout.bits - 1))
    if (zeros.element == "uint8") != (layout.bits == BYTE):
        raise NotLowered(f"integers of {layout.bits} bits with zero points of {zeros.element} have no kernel")
    return _by_columns(layout, _as_stored(zeros))


class _Graph(NamedTuple):
    """The weights in a graph."""

    b: Builder

    def weights(
        self, layout: _Layout, packed: Value, scales: Value, zeros: Value | None, g_idx: Value | None
    ) -> Value:
        """Emit the matrix W, (N, K), in float."""
        b = self.b
        integers = b.Cast(unpacked_value(b, packed, 3, layout.bits), to=FLOAT.number)
        scale, zero = self._of_blocks(layout, scales), self.zero_points(layout, zeros)
        if g_idx is None:
            if zeros is not None:
                zero = unsqueezed(b, zero, [2])
            each = b.Mul(b.Sub(integers, zero), unsqueezed(b, scale, [2]))
            return self._columns(layout, self._reshaped(each, layout.n, -1))
        integers = self._columns(layout, self._reshaped(integers, layout.n, -1))
        places = b.Slice(g_idx, self._ints(0), self._ints(layout.k), self._ints(0))
        if zeros is not None:
            zero = b.Gather(zero, places, axis=1)
        return b.Mul(b.Sub(integers, zero), b.Gather(scale, places, axis=1))

    def _of_blocks(self, layout: _Layout, x: Value) -> Value:
        return self._reshaped(typed(self.b, x, FLOAT), layout.n, layout.blocks)

    def zero_points(self, layout: _Layout, zeros: Value | None) -> Value:
        """Emit the zero points, (N, blocks), or one for all."""
        b = self.b
        if zeros is None:
            return b.initializer("zero", np.array(1 << (layout.bits - 1), np.float32))
        if element_of(zeros) is not UINT8:
            return self._of_blocks(layout, zeros)
        fields = unpacked_value(b, self._reshaped(zeros, layout.n, layout.zero_bytes), 2, layout.bits)
        fields = b.Slice(fields, self._ints(0), self._ints(layout.blocks), self._ints(1))
        return b.Cast(fields, to=FLOAT.number)

    def _columns(self, layout: _Layout, x: Value) -> Value:
        """Emit the first K columns; the last block may have more."""
        if layout.blocks * layout.size == layout.k:
            return x
        return self.b.Slice(x, self._ints(0), self._ints(layout.k), self._ints(1))

    def _reshaped(self, x: Value, *shape: int) -> Value:
        return self.b.Reshape(x, self._ints(*shape))

    def _ints(self, *numbers: int) -> Value:
        return self.b.initializer("ints", np.array(numbers, np.int64))


@mat_mul_n_bits.examples
def by_hand() -> Iterator[Example]:
    """Of one row of weights, from the blocks 0, 1, ... 15 and 15, ... 0, with scales 1 and 10."""
    f = np.float32
    rising = np.array([n | (n + 1) << 4 for n in range(0, 16, 2)], np.uint8)
    falling = np.array([n | (n - 1) << 4 for n in range(15, 0, -2)], np.uint8)
    packed = np.stack([rising, falling])[None]
    sizes: dict[str, Any] = {"N": 1, "block_size": 16}
    a = np.zeros((2, 32), f)
    a[0, [0, 31]], a[1, [1, 16]] = (1, 1), (2, 1)
    scales = np.array([[1, 10]], f)
    yield Example(1, a, packed, scales, K=32, **sizes, expect=[np.array([[-88], [56]], f)])
    zeros = np.array([[0x52]], np.uint8)  # 2 and 5
    yield Example(1, a, packed, scales, zeros, K=32, **sizes, expect=[np.array([[-52], [98]], f)])
    parts = np.array([[0.5, 7]], f)
    yield Example(1, a, packed, scales, parts, K=32, **sizes, expect=[np.array([[-70.5], [81]], f)])
    bias = np.array([100], f)
    yield Example(1, a, packed, scales, None, None, bias, K=32, **sizes, expect=[np.array([[12], [156]], f)])
    order = np.repeat(np.array([1, 0], np.int32), 16)
    y = np.array([[-88], [-133]], f)
    yield Example(1, a, packed, scales, None, order, K=32, **sizes, expect=[y])
    yield Example(1, a[1], packed, scales, K=32, **sizes, expect=[np.array([56], f)])


@mat_mul_n_bits.examples
def against_onnxruntime() -> Iterator[Example]:
    """Every width, size of blocks and kind of zero point, with a last block that is partial or not."""
    for bits, size, k in ((4, 16, 32), (4, 32, 40), (2, 16, 20), (2, 32, 64), (8, 16, 24), (8, 64, 64)):
        yield from _of_layout(_Layout(k, 5, bits, size))


def _of_layout(layout: _Layout) -> Iterator[Example]:  # ruff: ignore[too-many-locals]  operands of calls
    random, f = np.random.default_rng(7), np.float32
    n, k, blocks = layout.n, layout.k, layout.blocks
    packed = random.integers(0, 256, (n, blocks, layout.size * layout.bits // BYTE)).astype(np.uint8)
    scales = random.uniform(0.25, 1, (n, blocks)).astype(f)
    a, bias = (random.standard_normal(shape).astype(f) for shape in ((3, k), (n,)))
    zeros = random.integers(0, 256, (n, layout.zero_bytes)).astype(np.uint8)
    attributes: dict[str, Any] = {"K": k, "N": n, "bits": layout.bits, "block_size": layout.size}
    yield Example(1, a, packed, scales, **attributes)
    yield Example(1, a[None], packed, scales, zeros, None, bias, **attributes)
    yield Example(1, a[:0], packed, scales.reshape(-1), zeros.reshape(-1), **attributes)
    # onnxruntime rounds the operands of this level to 127 steps, which these have exactly
    steps = random.integers(-127, 128, (3, k)).astype(f)
    steps[:, :: layout.size] = 127
    yield Example(1, steps, packed, scales, zeros, accuracy_level=4, **attributes)
    places = random.integers(0, blocks, k).astype(np.int32)
    of_places = _in_double(a, packed, scales, zeros, places, layout)
    yield Example(1, a, packed, scales, zeros, places, expect=[of_places.astype(f)], **attributes)
    if layout.bits < BYTE:
        floats = random.uniform(0, 3, (n, blocks)).astype(f)
        yield Example(1, a, packed, scales, floats, places, **attributes)
        yield Example(1, a, packed, scales, floats, **attributes)
    half = [x.astype(np.float16) for x in (a, scales)]
    yield Example(1, half[0], packed, half[1], zeros, tolerance=0.02, **attributes)
    wide = [x.astype(ml_dtypes.bfloat16) for x in (a, scales, bias)]
    y = _in_double(wide[0], packed, wide[1], zeros, np.arange(k) // layout.size, layout)
    y = (y + wide[2].astype(float)).astype(ml_dtypes.bfloat16)
    yield Example(1, wide[0], packed, wide[1], zeros, None, wide[2], expect=[y], tolerance=0.02, **attributes)


def _in_double(a: Array, packed: Array, scales: Array, zeros: Array, places: Array, layout: _Layout) -> Array:
    """Return the product in double, from the bits of the bytes as numpy unpacks them."""
    bits, n = layout.bits, layout.n
    powers = 2.0 ** np.arange(bits)
    numbers, zero = (
        np.unpackbits(x.reshape(n, -1), axis=-1, bitorder="little").reshape(n, -1, bits) @ powers
        for x in (packed, zeros)
    )
    weights = (numbers[:, : layout.k] - zero[:, places]) * scales.astype(float)[:, places]
    return np.asarray(a.astype(float) @ weights.T)
