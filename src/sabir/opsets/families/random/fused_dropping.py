"""Dropout with a bias and a residual, and masks of bits: what three operators of onnxruntime share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.elements import BOOL, UINT32
from sabir.ir import TensorType, ceil_div
from sabir.opsets.families.numbers import halves
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.random import dropping
from sabir.opsets.families.shapes.axes import as_input
from sabir.opsets.families.shapes.ranks import check_alike, check_one, check_shape
from sabir.schema import BFLOAT16, FLOATS, Attribute, Constraint, Input, Output, tensors
from sabir.schema import BOOL as TRUTH

if TYPE_CHECKING:
    from sabir.ir import Builder, Value
    from sabir.opsets.typing import Array

T = Constraint("T", FLOATS, BFLOAT16)
T2 = Constraint("T2", TRUTH)
DATA = Input("data", T, "A tensor of any shape.", differentiable=True)
BIAS_AND_RESIDUAL = (
    Input("bias", T, "Added before: the shape of the data, or of its last dimension.", differentiable=True),
    Input(
        "residual", T, "Added after, in the shape of the data; 0 by default.", optional=True,
        differentiable=True,
    ),
)  # fmt: skip
MODE = (
    Input(
        "ratio",
        Constraint("T1", FLOATS, BFLOAT16),
        "The probability of dropping an element, in [0, 1); 0.5 by default.",
        optional=True,
        differentiable=False,
    ),
    Input("training_mode", T2, "True: elements are dropped.", optional=True, differentiable=False),
)
OUTPUT = Output("output", T, "The shape of the data.", differentiable=True)
MASK = Output("mask", T2, "Which elements are kept.", optional=True, differentiable=False)
BITS = Output(
    "mask",
    Constraint("T3", tensors("uint32")),
    "A bit for each element, 1 where it is kept: the first in the lowest bit of the first word. Without"
    " training all bits are 1; with it those after the last element are 0.",
    optional=True,
    differentiable=False,
)
SEED = Attribute("seed", "int", "The seed of the generator; without it, each run differs.")
_WORD = 32  # bits
_ALL = np.iinfo(np.uint32).max


def infer(
    data: TensorType, ratio: TensorType | None, training: TensorType | None, *, bits: bool
) -> tuple[TensorType, TensorType]:
    """Return the types of the output and of the mask."""
    check_one("ratio", ratio)
    check_one("training_mode", training)
    y = TensorType(data.element, data.shape)
    return y, TensorType(UINT32, (ceil_div(data.size, _WORD),)) if bits else TensorType(BOOL, data.shape)


def check_operands(data: TensorType, bias: TensorType, residual: TensorType | None) -> None:
    """Raise InferenceError for a bias or a residual of another shape."""
    if residual is not None:
        check_alike(["data", "residual"], [data, residual])
    if data.shape is None or bias.shape is None:
        return
    check_shape("bias", bias, *(data.shape[-1:] if len(bias.shape) == 1 else data.shape))


def evaluate(
    data: Array, bias: Array | None, residual: Array | None, mode: tuple[Array | None, Array | None],
    seed: int | None,
) -> tuple[Array, Array]:  # fmt: skip
    """Return the output, and which elements are kept; `mode` has the ratio and whether it trains."""
    total = widened(data) if bias is None else widened(data) + widened(bias)
    y, mask = dropping.evaluated(total, *mode, seed)
    if residual is not None:
        y = np.add(y, widened(residual))
    return y.astype(data.dtype, copy=False), mask


def packed(mask: Array, training: Array | None) -> Array:
    """Return a mask as bits."""
    count = -(-mask.size // _WORD)
    if training is None or not training.item():
        return np.full(count, _ALL, np.uint32)
    padded = np.zeros(count * _WORD, np.bool_)
    padded[: mask.size] = mask.ravel()
    return np.packbits(padded, bitorder="little").view("<u4").astype(np.uint32, copy=False)


def emitted(
    b: Builder, data: Value, bias: Value | None, residual: Value | None, mode: tuple[Value | None, ...],
    **attributes: Any,
) -> tuple[Value, Value]:  # fmt: skip
    """Emit the output, and which elements are kept."""
    total = halves.widened(b, data)
    if bias is not None:
        total = b.Add(total, halves.widened(b, bias))
    y, mask = b.op("Dropout", total, *mode, outputs=2, **attributes)
    if residual is not None:
        y = b.Add(y, halves.widened(b, residual))
    return halves.rounded(b, y, data), mask


def emitted_bits(b: Builder, mask: Value, training: Value | None) -> Value:
    """Emit a mask as bits."""
    flat = b.Reshape(b.Cast(mask, to=UINT32.number), as_input(b, "flat", [-1]))
    word = as_input(b, "word", [_WORD])
    missing = b.Mod(b.Neg(b.Shape(flat)), word)
    padded = b.Concat(flat, b.ConstantOfShape(missing, value=np.zeros(1, np.uint32)), axis=0)
    rows = b.Reshape(padded, b.Concat(b.Div(b.Shape(padded), word), word, axis=0), allowzero=1)
    places = b.initializer("places", np.arange(_WORD, dtype=np.uint32))
    bits = b.BitShift(rows, places, direction="LEFT")
    words = b.ReduceSum(bits, as_input(b, "axes", [1]), keepdims=0)
    ones = b.ConstantOfShape(b.Shape(words), value=np.full(1, _ALL, np.uint32))
    return ones if training is None else b.Where(b.Reshape(training, as_input(b, "scalar", [])), words, ones)
