"""MatMulFpQ4: a matrix product with weights of 4 bits, whose blocks are scales and integers in one tensor."""

from collections.abc import Iterator, Sequence

import numpy as np

from sabir.base import InferenceError, UnsupportedError
from sabir.ir import Dim, TensorType
from sabir.opsets.families.products.products import matmul
from sabir.opsets.families.shapes import contents
from sabir.opsets.families.shapes.ranks import check_least_rank, check_shape, hold
from sabir.opsets.families.shapes.shapes import same_dim
from sabir.opsets.typing import Array
from sabir.schema import Attribute, Constraint, Example, Input, Operator, Output, tensors

_BLOCKS_OF_64 = "blocks of 64 (`blk_quant_type` 2), whose layout is not documented"

mat_mul_fp_q4 = Operator(
    "MatMulFpQ4",
    domain="com.microsoft",
    summary="`A @ W`; the columns of `W` are blocks of 32 elements, `(integers - zero point) * scale`.",
    lacks=(_BLOCKS_OF_64,),
)

T1 = Constraint("T1", tensors("float"))
T2 = Constraint("T2", tensors("uint8"))
T3 = Constraint("T3", tensors("int64"))
_BLOCK, _HALF, _SCALE = 32, 16, 4  # elements of a block and of its half; bytes of a scale
_MIDDLE = 8

v1 = mat_mul_fp_q4.first(
    1,
    inputs=[
        Input("A", T1, "(..., K)."),
        Input(
            "B",
            T2,
            "Column by column, each block: its scale, a float; its zero point, a byte; 16 bytes, whose low "
            "bits are its first 16 integers, and whose high bits are the last 16.",
        ),
        Input("B_shape", T3, "K and N."),
    ],
    outputs=[Output("Y", T1, "(..., N).")],
    attributes=[
        Attribute(
            "blk_quant_type", "int", "0: the zero point is 8 and not stored; 1: it is stored.", default=1
        )
    ],
)


def _block_bytes(kind: int) -> int:
    """Return the bytes of a block; raises UnsupportedError for blocks of 64."""
    if kind not in {0, 1}:
        raise UnsupportedError(f"MatMulFpQ4 lacks {_BLOCKS_OF_64}")
    return _SCALE + kind + _HALF


@v1.infer
def infer(a: TensorType, b: TensorType, shape: TensorType, /, *, blk_quant_type: int) -> TensorType:
    size = _block_bytes(blk_quant_type)
    check_shape("B_shape", shape, 2)
    check_least_rank("A", a, 1)
    known = contents.ints(shape.known)
    depth, columns = _sizes(known) if known else (None, None)
    total = None if depth is None or columns is None else -(-depth // _BLOCK) * size * columns
    check_shape("B", b, total)
    if a.shape is None:
        return TensorType(a.element)
    same_dim([a.shape[-1], depth], "the inner dimensions of a matrix product")
    found: tuple[Dim, ...] = (*a.shape[:-1], columns)
    return TensorType(a.element, found)


def _sizes(numbers: Sequence[int]) -> tuple[int, int]:
    depth, columns = numbers
    if depth < 1 or columns < 1:
        raise InferenceError(f"`B_shape` must be positive, and is {[depth, columns]}")
    return depth, columns


@v1.evaluate
def evaluate(a: Array, b: Array, shape: Array, /, *, blk_quant_type: int) -> Array:
    hold(infer, a, b, shape, blk_quant_type=blk_quant_type)
    depth, columns = _sizes(shape.tolist())
    same_dim([a.shape[-1], depth], "the inner dimensions of a matrix product")
    size, count = _block_bytes(blk_quant_type), -(-depth // _BLOCK)
    check_shape("B", b, count * size * columns)
    blocks = b.reshape(columns, count, size)
    scales = np.ascontiguousarray(blocks[..., :_SCALE]).view("<f4")
    zeros = blocks[..., _SCALE : _SCALE + 1].astype(np.float32) if blk_quant_type else np.float32(_MIDDLE)
    packed = blocks[..., -_HALF:]
    integers = np.concatenate([packed & 15, packed >> 4], axis=-1).astype(np.float32)
    weights = ((integers - zeros) * scales).reshape(columns, -1)[:, :depth]
    return matmul(a, weights.T)


v1.absent("lower", "scales are bytes among the integers, which kernels do not read as floats")
v1.absent("body", "no operator of the standard makes a float of four bytes in every opset")
v1.absent("gradient", "the weights are integers, and the operator is for inference")


@mat_mul_fp_q4.examples
def examples() -> Iterator[Example]:
    random, f = np.random.default_rng(4), np.float32
    for kind, depth, columns in ((0, 32, 3), (1, 32, 1), (0, 40, 2), (1, 70, 5), (1, 5, 2)):
        count = -(-depth // _BLOCK)
        scales = random.uniform(0.25, 1, (columns, count, 1)).astype(f).view(np.uint8)
        numbers = random.integers(0, 256, (columns, count, _HALF)).astype(np.uint8)
        zeros = random.integers(0, 16, (columns, count, kind)).astype(np.uint8)
        blob = np.concatenate([scales, zeros, numbers], axis=-1).reshape(-1)
        shape = np.array([depth, columns])
        a = random.standard_normal((3, depth)).astype(f)
        yield Example(1, a, blob, shape, blk_quant_type=kind)
        yield Example(1, a[None], blob, shape, blk_quant_type=kind)
        yield Example(1, np.ones((1, depth), f), blob, shape, blk_quant_type=kind)
    one = bytes([1, 0, 0, 0])  # the smallest subnormal number
    blob = np.frombuffer(one + bytes([3]) + bytes([0x15] * _HALF), np.uint8)
    y = np.array([[np.float32(2 * 2**-149)]], f)
    yield Example(1, np.eye(1, 32, dtype=f), blob, [32, 1], expect=[y])
