"""MatMulBnb4: a matrix product with weights that are codes of 4 bits, whose blocks have a scale each."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from sabir.base import InferenceError
from sabir.elements import FLOAT, INT32
from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.building.calls import typed
from sabir.opsets.families.numbers.scalars import element_of
from sabir.opsets.families.products.products import matmul
from sabir.opsets.families.shapes.extents import unsqueezed
from sabir.opsets.families.shapes.ranks import check_least_rank, check_shape, hold
from sabir.opsets.families.shapes.shapes import same_dim
from sabir.opsets.typing import Array
from sabir.schema import Attribute, Constraint, Example, Input, Operator, Output, at_least, one_of, tensors

mat_mul_bnb4 = Operator(
    "MatMulBnb4",
    domain="com.microsoft",
    summary="`A @ W.T`, or `A @ W`, where the elements of `W` are codes of 4-bit numbers times the scales of "
    "their blocks.",
    body_opset=18,
)

T1 = Constraint("T1", tensors("float", "float16", "bfloat16"))
T2 = Constraint("T2", tensors("uint8"))

v1 = mat_mul_bnb4.first(
    1,
    inputs=[
        Input("A", T1, "(..., K), or (..., N) if `transB` is 0."),
        Input("B", T2, "The codes of W, row by row, two in a byte; the first one has the high bits."),
        Input("absmax", T1, "The scale of each block of W, row by row."),
    ],
    outputs=[Output("Y", T1, "(..., N), or (..., K) if `transB` is 0.")],
    attributes=[
        Attribute("K", "int", "The number of columns of W.", required=True, values=at_least(1)),
        Attribute("N", "int", "The number of rows of W.", required=True, values=at_least(1)),
        Attribute("block_size", "int", "A power of 2, 16 or more.", required=True),
        Attribute(
            "quant_type",
            "int",
            "The numbers of the codes; 0: FP4, 1: NF4.",
            required=True,
            values=one_of(0, 1),
        ),
        Attribute("training_mode", "int", "A hint, which changes no result.", default=0),
        Attribute("transB", "int", "Whether W is transposed.", default=1, values=one_of(0, 1)),
    ],
)

_LEAST_BLOCK = 16
_HIGH = 4  # bits
_LOW = 15
_FP4 = [0.0, 0.005208333333, 0.66666667, 1.0, 0.33333333, 0.5, 0.16666667, 0.25]
_NF4 = [  # quantiles of the normal distribution, as in "QLoRA: Efficient Finetuning of Quantized LLMs"
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
    -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
    0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023,
    1.0,
]  # fmt: skip
_TABLES = (np.array([*_FP4, *(-x for x in _FP4)], np.float32), np.array(_NF4, np.float32))


class _Matrix(NamedTuple):
    """The sizes of W and its blocks, the table of its codes, and whether it is transposed."""

    k: int
    n: int
    size: int
    table: Array
    transposed: bool

    @classmethod
    def of(cls, attributes: Mapping[str, int]) -> "_Matrix":
        """Return the matrix; raises InferenceError for blocks of another size than the operator has."""
        size = attributes["block_size"]
        if size < _LEAST_BLOCK or size & (size - 1):
            raise InferenceError(f"`block_size` must be a power of 2 from {_LEAST_BLOCK} on, and is {size}")
        table = _TABLES[attributes["quant_type"]]
        return cls(attributes["K"], attributes["N"], size, table, bool(attributes["transB"]))

    @property
    def elements(self) -> int:
        """The number of elements."""
        return self.k * self.n

    @property
    def blocks(self) -> int:
        """The number of blocks."""
        return -(-self.elements // self.size)


@v1.infer
def infer(a: TensorType, b: TensorType, scales: TensorType, /, **attributes: int) -> TensorType:
    matrix = _Matrix.of(attributes)
    check_shape("B", b, -(-matrix.elements // 2))
    check_shape("absmax", scales, matrix.blocks)
    check_least_rank("A", a, 1)
    depth, columns = (matrix.k, matrix.n) if matrix.transposed else (matrix.n, matrix.k)
    if a.shape is None:
        return TensorType(a.element)
    same_dim([a.shape[-1], depth], "the inner dimensions of a matrix product")
    return TensorType(a.element, (*a.shape[:-1], columns))


@v1.evaluate
def evaluate(a: Array, b: Array, scales: Array, /, **attributes: int) -> Array:
    hold(infer, a, b, scales, **attributes)
    matrix = _Matrix.of(attributes)
    codes = np.stack([b >> _HIGH, b & _LOW], axis=-1).reshape(-1)[: matrix.elements]
    each = scales.astype(np.float32)[np.arange(matrix.elements) // matrix.size]
    weights = (matrix.table[codes] * each).reshape(matrix.n, matrix.k)
    y = matmul(a.astype(np.float32, copy=False), weights.T if matrix.transposed else weights)
    return y.astype(a.dtype, copy=False)


@v1.body
def body(b: Builder, a: Value, packed: Value, scales: Value, /, **attributes: int) -> Value:
    matrix = _Matrix.of(attributes)
    high = b.BitShift(packed, b.initializer("bits", np.array(_HIGH, np.uint8)), direction="RIGHT")
    low = b.BitwiseAnd(packed, b.initializer("low", np.array(_LOW, np.uint8)))
    pairs = b.Concat(unsqueezed(b, high, [1]), unsqueezed(b, low, [1]), axis=1)
    codes = b.Cast(b.Reshape(pairs, _ints(b, -1)), to=INT32.number)
    numbers = b.Gather(b.initializer("table", matrix.table), codes, axis=0)
    missing = matrix.blocks * matrix.size - (matrix.elements + matrix.elements % 2)
    if missing > 0:
        numbers = b.Pad(numbers, _ints(b, 0, missing))
    blocks = b.Reshape(numbers, _ints(b, matrix.blocks, matrix.size))
    weights = b.Mul(blocks, unsqueezed(b, typed(b, scales, FLOAT), [1]))
    weights = b.Slice(b.Reshape(weights, _ints(b, -1)), _ints(b, 0), _ints(b, matrix.elements), _ints(b, 0))
    weights = b.Reshape(weights, _ints(b, matrix.n, matrix.k))
    if matrix.transposed:
        weights = b.Transpose(weights, perm=[1, 0])
    return typed(b, b.MatMul(typed(b, a, FLOAT), weights), element_of(a))


def _ints(b: Builder, *numbers: int) -> Value:
    return b.initializer("ints", np.array(numbers, np.int64))


@mat_mul_bnb4.examples
def every_code() -> Iterator[Example]:
    f = np.float32
    every = np.array([2 * i << 4 | 2 * i + 1 for i in range(8)], np.uint8)  # all codes in order
    two = np.array([2], f)
    attributes: dict[str, Any] = {"K": 16, "N": 1, "block_size": 16}
    for kind in (0, 1):
        yield Example(1, np.eye(16, dtype=f), every, two, quant_type=kind, **attributes)
    thirds = np.array([[0, 1 / 96, 4 / 3, 2, 2 / 3, 1, 1 / 3, 0.5]], f)
    y = np.concatenate([thirds, -thirds], axis=1)
    one = np.ones((1, 1), f)
    yield Example(1, one, every, two, transB=0, quant_type=0, **attributes, expect=[y])


@mat_mul_bnb4.examples
def whole_and_partial_blocks() -> Iterator[Example]:
    random, f = np.random.default_rng(5), np.float32
    for k, n, size in ((32, 3, 16), (5, 3, 16), (24, 2, 32), (7, 5, 16)):
        codes = random.integers(0, 256, -(-k * n // 2)).astype(np.uint8)
        scales = random.uniform(0.25, 1, -(-k * n // size)).astype(f)
        a = random.standard_normal((3, k)).astype(f)
        sizes: dict[str, Any] = {"K": k, "N": n, "block_size": size, "quant_type": 1}
        yield Example(1, a, codes, scales, **sizes)
        yield Example(1, a[None], codes, scales, training_mode=1, **sizes)
        yield Example(1, a[:0], codes, scales, **sizes)
        numbers = [_NF4[code] for byte in codes for code in divmod(int(byte), 16)][: k * n]
        weights = [x * float(scales[place // size]) for place, x in enumerate(numbers)]
        rows, matrix = random.standard_normal((2, n)), np.reshape(weights, (n, k))
        for dtype, tolerance in ((f, 1e-5), (np.float16, 0.01), (ml_dtypes.bfloat16, 0.1)):
            y = rows.astype(dtype).astype(float) @ matrix
            yield Example(
                1, rows.astype(dtype), codes, scales.astype(dtype), transB=0, tolerance=tolerance,
                expect=[y.astype(dtype)], **sizes,
            )  # fmt: skip
