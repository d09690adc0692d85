"""ImageScaler: images times a number, plus a number for each channel."""

from collections.abc import Iterator, Sequence

import numpy as np

from sabir import loops
from sabir.base import InferenceError
from sabir.ir import Builder, TensorType, Value, may_be_equal
from sabir.loops import Expression, NotLowered
from sabir.opsets.families.building.removals import removed
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.numbers.scalars import Numbers, element_of
from sabir.opsets.families.shapes.ranks import check_rank, hold
from sabir.opsets.typing import Array, Floats
from sabir.schema import FLOATS, Attribute, Constraint, Example, Input, Operator, Output

image_scaler = Operator(
    "ImageScaler", summary="`scale * input + bias`, with a bias for each channel.", body_opset=7
)

T = Constraint("T", FLOATS)

v1 = image_scaler.first(
    1,
    inputs=[Input("input", T, "(N, C, H, W).")],
    outputs=[Output("output", T, "The input's shape.")],
    attributes=[
        Attribute("bias", "floats", "One number for each channel; none are 0."),
        Attribute("scale", "float", "The factor.", default=1.0),
    ],
    unpublished=True,
)
v10 = removed(v1, "Mul and Add compute it.")


@v1.infer
def infer(x: TensorType, /, *, bias: Floats) -> TensorType:
    check_rank("input", x, 4)
    count = x.shape[1] if x.shape else None
    if bias is not None and not may_be_equal(count, len(bias)):
        raise InferenceError(f"`bias` has {len(bias)} numbers, and the input {count} channels")
    return TensorType(x.element, x.shape)


@v1.evaluate
def evaluate(x: Array, /, *, bias: Floats, scale: float) -> Array:
    hold(infer, x, bias=bias)
    y = widened(x) * np.float32(scale)
    if bias is not None:
        y += np.array(bias, y.dtype)[:, None, None]
    return y.astype(x.dtype, copy=False)


@v1.lower
def lower(x: Expression, /, *, bias: Floats, scale: float) -> Expression:
    y = loops.apply("mul", x, scale)
    if bias is None:
        return y
    if not loops.equal(x.shape[1], len(bias)):
        raise NotLowered("whether each channel has a bias is known at run time only")
    return loops.apply("add", y, loops.cast(loops.tensor(_column(bias)), x.element))


def _column(bias: Sequence[float]) -> Array:
    return np.array(bias, np.float32)[:, None, None]


@v10.upgrade
@v1.body
def write_out(b: Builder, x: Value, /, *, bias: Floats, scale: float) -> Value:
    y = Numbers.like(b, x).op("Mul", x, scale)
    if bias is None:
        return y
    return b.Add(y, b.initializer("bias", _column(bias).astype(element_of(x).dtype)))


@image_scaler.examples
def examples() -> Iterator[Example]:
    x, y = np.array([[[[1, 2]], [[3, 4]]]]), np.array([[[[2.5, 4.5]], [[5, 7]]]])
    for kind in (np.float32, np.float64, np.float16):
        for opset in (1, 9):
            yield Example(opset, x.astype(kind), scale=2.0, bias=[0.5, -1.0], expect=[y.astype(kind)])
        yield Example(9, x.astype(kind), scale=0.5, expect=[(x / 2).astype(kind)])
    yield Example(
        9, np.zeros((0, 2, 1, 1), np.float32), bias=[1.0, 2.0], expect=[np.zeros((0, 2, 1, 1), np.float32)]
    )
