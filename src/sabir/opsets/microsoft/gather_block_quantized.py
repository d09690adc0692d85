"""GatherBlockQuantized: slices of a tensor of few bits at indices, dequantized by blocks."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from sabir.base import InferenceError
from sabir.elements import FLOAT, INT8, INT64, UINT8, ElementType, element
from sabir.ir import Builder, Dim, Shape, TensorType, Value, ceil_div
from sabir.opsets.families.building.calls import typed
from sabir.opsets.families.numbers.scalars import element_of
from sabir.opsets.families.quantization.packed_integers import BYTE, WIDTHS, unpacked, unpacked_value
from sabir.opsets.families.shapes.extents import shape_of, unsqueezed
from sabir.opsets.families.shapes.ranks import check_least_rank, check_shape, hold
from sabir.opsets.families.shapes.shapes import axis_in
from sabir.opsets.typing import Array
from sabir.schema import (
    FLOAT4,
    FLOAT8,
    INT4,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    Unconvertible,
    one_of,
    tensors,
)

gather_block_quantized = Operator(
    "GatherBlockQuantized",
    domain="com.microsoft",
    summary="Gather of `(data - zero_points) * scales`, whose blocks along `quantize_axis` share a scale. An "
    "index out of range gives zeros.",
    body_opset=18,
)

T1 = Constraint("T1", FLOAT4, FLOAT8, INT4, tensors("uint8"))
T2 = Constraint("T2", tensors("float", "float16", "bfloat16"))
Tind = Constraint("Tind", tensors("int32", "int64"))
_LEAST_BLOCK = 16
_CASTS = ((FLOAT8, 19), (INT4, 21), (FLOAT4, 23))  # the first opsets with casts from these types

v1 = gather_block_quantized.first(
    1,
    inputs=[
        Input("data", T1, "Integers, or small floats. uint8 packs `bits` of each along the last axis."),
        Input("indices", Tind, "Of any shape; -1 is the last along `gather_axis`."),
        Input("scales", T2, "One for each block: the shape of the unpacked data, in blocks."),
        Input(
            "zero_points",
            T1,
            "In the shape of the scales, packed as the data. By default 0, or `2 ** (bits - 1)` for uint8.",
            optional=True,
        ),
    ],
    outputs=[Output("output", T2, "The shape of the data, that of `indices` replacing `gather_axis`.")],
    attributes=[
        Attribute("gather_axis", "int", "The axis of the indices; 0 for uint8.", default=0),
        Attribute("quantize_axis", "int", "The axis of the blocks.", default=1),
        Attribute(
            "block_size",
            "int",
            "A power of 2, 16 or more; for floats 0 too, which is a block of the whole axis.",
            default=128,
        ),
        Attribute("bits", "int", "The bits of an integer in uint8.", default=4, values=one_of(*WIDTHS)),
    ],
)


class _Blocks(NamedTuple):
    """The axes of a call, counted from the front, and its blocks."""

    gather: int
    quantized: int
    size: int
    bits: int

    @classmethod
    def of(cls, element: ElementType, rank: int, attributes: Mapping[str, int]) -> "_Blocks":
        """Return the axes; raises InferenceError for axes and blocks that the element type does not have.

        A block of the size 0 is the whole axis.
        """
        size, least = attributes["block_size"], 0 if element.is_float else _LEAST_BLOCK
        if (size < _LEAST_BLOCK and size != least) or size & (size - 1):
            raise InferenceError(f"`block_size` must be a power of 2 from {_LEAST_BLOCK} on, and is {size}")
        found = cls(
            axis_in(attributes["gather_axis"], rank),
            axis_in(attributes["quantize_axis"], rank),
            size,
            attributes["bits"] if element is UINT8 else BYTE,
        )
        if element is UINT8 and (found.gather, found.quantized) != (0, max(rank - 1, 1)):
            raise InferenceError("uint8 is gathered along the first axis and has blocks along the last one")
        return found

    def unpacked(self, shape: Shape) -> Shape:
        """Return the shape of the integers of data of this shape."""
        return (*shape[:-1], None if shape[-1] is None else shape[-1] * (BYTE // self.bits))

    def blocks(self, dim: Dim) -> Dim:
        """Return the number of blocks along an axis of this size."""
        return ceil_div(dim, self.size) if self.size else 1

    def place(self, indices: int) -> int:
        """Return the axis of the blocks in the output, for indices of a rank."""
        return self.quantized + (indices - 1 if self.quantized > self.gather else 0)


@v1.infer
def infer(
    data: TensorType, indices: TensorType, scales: TensorType, zeros: TensorType | None = None, /,
    **attributes: int,
) -> TensorType:  # fmt: skip
    check_least_rank("data", data, 1)
    if zeros is not None and data.element.is_float:
        raise InferenceError(f"`zero_points` are of integers, and `data` is {data.element}")
    if data.shape is None:
        return TensorType(scales.element)
    blocks = _Blocks.of(data.element, len(data.shape), attributes)
    whole = blocks.unpacked(data.shape)
    shape = [blocks.blocks(d) if axis == blocks.quantized else d for axis, d in enumerate(whole)]
    _check_scales(scales, shape, blocks if data.element.is_float else None)
    if zeros is not None:
        last = shape[-1]
        packed = None if last is None else ceil_div(last * blocks.bits, BYTE)
        check_shape("zero_points", zeros, *shape[:-1], packed)
    if indices.shape is None:
        return TensorType(scales.element)
    return TensorType(scales.element, (*whole[: blocks.gather], *indices.shape, *whole[blocks.gather + 1 :]))


def _check_scales(scales: TensorType, shape: list[Dim], broadcast: _Blocks | None) -> None:
    """Raise InferenceError unless there is a scale for each block; those of floats may broadcast."""
    if broadcast is not None and scales.shape is not None and len(scales.shape) == len(shape):
        shape = [
            1 if found == 1 and axis != broadcast.quantized else needed
            for axis, (found, needed) in enumerate(zip(scales.shape, shape, strict=True))
        ]
    check_shape("scales", scales, *shape)


@v1.evaluate
def evaluate(
    data: Array, indices: Array, scales: Array, zeros: Array | None = None, /, **attributes: int
) -> Array:
    hold(infer, data, indices, scales, zeros, **attributes)
    blocks = _Blocks.of(element(data.dtype), data.ndim, attributes)
    size = data.shape[blocks.gather]
    places = np.where(indices < 0, indices + size, indices)
    inside = (places >= 0) & (places < size)
    whole = blocks.unpacked(data.shape)
    if not size:
        shape = *whole[: blocks.gather], *indices.shape, *whole[blocks.gather + 1 :]
        return np.zeros([n if isinstance(n, int) else 0 for n in shape], scales.dtype)
    places = np.where(inside, places, 0)
    y = unpacked(data.take(places, blocks.gather), blocks.bits).astype(np.float32)
    count = y.shape[blocks.place(indices.ndim)]
    if zeros is not None:
        y -= _spread(_unpacked_zeros(zeros, scales, blocks), places, blocks, count)
    elif data.dtype == np.uint8:
        y -= np.float32(1 << (blocks.bits - 1))
    y *= _spread(scales, places, blocks, count)
    around = (1,) * (y.ndim - blocks.gather - indices.ndim)
    y = np.where(inside.reshape(*inside.shape, *around), y, np.float32(0))
    return y.astype(scales.dtype, copy=False)


def _unpacked_zeros(zeros: Array, scales: Array, blocks: _Blocks) -> Array:
    return unpacked(zeros, blocks.bits)[..., : scales.shape[-1]]


def _spread(parameter: Array, places: Array, blocks: _Blocks, count: int) -> Array:
    """Return the scales or zero points of the gathered slices, which broadcast to them, in float32.

    `count` is the size of the axis of the blocks in the output.
    """
    if blocks.gather == blocks.quantized:
        chosen = places // blocks.size if blocks.size else places * 0
        return parameter.take(chosen, blocks.gather).astype(np.float32)
    chosen = places * 0 if parameter.shape[blocks.gather] == 1 else places
    taken = parameter.take(chosen, blocks.gather).astype(np.float32)
    if not blocks.size:
        return taken
    return taken.take(np.arange(count) // blocks.size, blocks.place(places.ndim))


@v1.body
def body(
    b: Builder, data: Value, indices: Value, scales: Value, zeros: Value | None = None, /, **attributes: int
) -> Value:
    kind, shape, rank = element_of(data), shape_of("data", data), len(shape_of("indices", indices))
    blocks = _Blocks.of(kind, len(shape), attributes)
    if not shape[blocks.gather]:
        raise Unconvertible("the size of the axis of the indices is 0 or unknown")
    readable = _as_readable(b, data)
    size = b.Gather(b.Shape(readable), _ints(b, blocks.gather), axis=0)
    wide = typed(b, indices, INT64)
    places = b.Where(b.Less(wide, _ints(b, 0)), b.Add(wide, size), wide)
    inside = b.And(b.GreaterOrEqual(places, _ints(b, 0)), b.Less(places, size))
    gathered = _Gathered(b, blocks, b.Where(inside, places, _ints(b, 0)), rank, len(shape) + rank - 1)
    y = gathered.slices(readable)
    count = blocks.unpacked(shape)[blocks.quantized]
    if zeros is not None:
        y = b.Sub(y, gathered.parameter(_as_readable(b, zeros), count, packed=True))
    elif kind is UINT8:
        y = b.Sub(y, b.initializer("zero", np.array(1 << (blocks.bits - 1), np.float32)))
    y = b.Mul(y, gathered.parameter(typed(b, scales, FLOAT), count, packed=False))
    around = range(rank, len(shape) + rank - 1 - blocks.gather)
    inside = unsqueezed(b, inside, around)
    y = b.Where(inside, y, b.initializer("zero", np.zeros((), np.float32)))
    return typed(b, y, element_of(scales))


def _ints(b: Builder, *numbers: int) -> Value:
    return b.initializer("ints", np.array(numbers[0] if len(numbers) == 1 else numbers, np.int64))


def _as_readable(b: Builder, x: Value) -> Value:
    """Return data in a type that Gather has; raises Unconvertible where no cast of the opset reads it."""
    kind = element_of(x)
    if kind is UINT8:
        return x
    needed = next(opset for types, opset in _CASTS if f"tensor({kind})" in types)
    if b.opset < needed:
        raise Unconvertible(f"opset {b.opset} has no casts from {kind}; {needed} has")
    return b.Cast(x, to=(FLOAT if kind.is_float else INT8).number)


class _Gathered(NamedTuple):
    """The slices of tensors at places, in a graph; `indices` is the rank of places, `rank` of the output."""

    b: Builder
    blocks: _Blocks
    places: Value
    indices: int
    rank: int

    def slices(self, data: Value) -> Value:
        """Emit the slices of the data, or of zero points, unpacked, in float."""
        taken = self.b.Gather(data, self.places, axis=self.blocks.gather)
        return typed(self.b, unpacked_value(self.b, taken, self.rank, self.blocks.bits), FLOAT)

    def parameter(self, x: Value, count: Dim, *, packed: bool) -> Value:
        """Emit the scales or zero points of the slices, which broadcast to them, in float.

        `count` is the size of the axis of the blocks. Raises Unconvertible where it is unknown.
        """
        b, blocks = self.b, self.blocks
        if blocks.gather == blocks.quantized:
            zero = _ints(b, 0)
            chosen = b.Div(self.places, _ints(b, blocks.size)) if blocks.size else b.Mul(self.places, zero)
            return typed(b, b.Gather(x, chosen, axis=blocks.gather), FLOAT)
        if shape_of("scales", x)[blocks.gather] == 1:
            chosen = b.Mul(self.places, _ints(b, 0))
            taken = b.Gather(x, chosen, axis=blocks.gather)
        elif packed:
            taken = self.slices(x)
        else:
            taken = b.Gather(x, self.places, axis=blocks.gather)
        if not blocks.size:
            return taken
        if not isinstance(count, int):
            raise Unconvertible("the size of the axis of the blocks is unknown")
        numbers = np.arange(count, dtype=np.int64) // blocks.size
        return typed(
            b, b.Gather(taken, b.initializer("blocks", numbers), axis=blocks.place(self.indices)), FLOAT
        )


@gather_block_quantized.examples
def by_hand() -> Iterator[Example]:
    """Two rows of 32 integers in two blocks; the index 2 is outside."""
    f, half, brain = np.float32, np.float16, ml_dtypes.bfloat16
    low = np.arange(32) % 16
    numbers = np.stack([low, low[::-1]])
    packed = (numbers[:, ::2] | numbers[:, 1::2] << 4).astype(np.uint8)
    scales = np.array([[1, 0.5], [2, 4]])
    wide = scales.repeat(16, axis=1)
    y = ((numbers - 8) * wide)[[1, 0, 1]]
    for dtype in (f, half, brain):
        out = y.astype(dtype)
        out[1] = 0
        yield Example(1, packed, [1, 2, -1], scales.astype(dtype), block_size=16, expect=[out])
    zeros = np.array([[0x21], [0x43]], np.uint8)
    less = np.array([[1, 2], [3, 4]]).repeat(16, axis=1)
    y = ((numbers - less) * wide)[[[1], [0]]].astype(f)
    indices = np.array([[1], [-2]], np.int32)
    yield Example(1, packed, indices, scales.astype(f), zeros, block_size=16, expect=[y])
    yield Example(1, packed, 1, scales.astype(f), zeros, block_size=16, expect=[y[0, 0]])
    yield Example(
        1, packed, np.zeros((0,), np.int64), scales.astype(f), block_size=16, expect=[np.zeros((0, 32), f)]
    )


@gather_block_quantized.examples
def against_onnxruntime() -> Iterator[Example]:
    random, f = np.random.default_rng(3), np.float32
    for bits in WIDTHS:
        data = random.integers(0, 256, (5, 20 * bits // 2)).astype(np.uint8)
        count = -(-data.shape[1] * BYTE // bits // 16)
        scales = random.uniform(0.25, 1, (5, count)).astype(f)
        zeros = random.integers(0, 256, (5, -(-count * bits // BYTE))).astype(np.uint8)
        places = np.array([[4, -1], [0, 5]])
        yield Example(1, data, places, scales, bits=bits, block_size=16, quantize_axis=-1)
        yield Example(1, data, places, scales, zeros, bits=bits, block_size=16)
    for dtype, least in ((ml_dtypes.int4, -8), (ml_dtypes.uint4, 0)):
        data = random.integers(least, least + 16, (3, 20, 2)).astype(dtype)
        for gather, axis in ((0, 1), (2, 1), (1, 0), (1, 1), (0, -1)):
            shape = [-(-n // 16) if i == axis % 3 else n for i, n in enumerate(data.shape)]
            scales = random.uniform(0.25, 1, shape).astype(f)
            zeros = random.integers(least, least + 16, shape).astype(dtype)
            axes: dict[str, Any] = {"gather_axis": gather, "quantize_axis": axis, "block_size": 16}
            yield Example(1, data, [1, 0], scales, **axes)
            yield Example(1, data, [1, 0], scales, zeros, **axes)
    for dtype in (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2):
        data = random.standard_normal((4, 32)).astype(f).astype(dtype)
        for shape, size in (((4, 2), 16), ((1, 2), 16), ((4, 1), 0), ((1, 1), 0)):
            scales = random.uniform(0.25, 1, shape).astype(f)
            yield Example(1, data, [1, 0, -1, 9], scales, block_size=size)
