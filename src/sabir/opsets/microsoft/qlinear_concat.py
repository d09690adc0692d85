"""QLinearConcat: quantized tensors, each with its own scale, one after another with one scale."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

import numpy as np

from sabir.base import InferenceError
from sabir.elements import element
from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.quantization import scaled
from sabir.opsets.families.shapes.ranks import hold
from sabir.opsets.families.shapes.shapes import joined_shape
from sabir.opsets.typing import Array
from sabir.schema import Attribute, Constraint, Example, Input, Operator, Output, tensors

qlinear_concat = Operator(
    "QLinearConcat",
    domain="com.microsoft",
    summary="`quantize(dequantize(x))` of each input `x`, one after another along `axis`.",
    body_opset=18,
)

T8 = Constraint("T8", tensors("int8", "uint8"))
TF = Constraint("TF", tensors("float"))
TV = Constraint("TV", tensors("float", "int8", "uint8"))
V = TypeVar("V")

v1 = qlinear_concat.first(
    1,
    inputs=[
        *scaled.parameters("Y_scale", "Y_zero_point", T8, "Y", optional=False, scale_type=TF),
        Input(
            "inputs",
            TV,
            "For each tensor three inputs: the tensor, its scale, and its zero point, both scalars.",
            variadic=True,
            heterogeneous=True,
        ),
    ],
    outputs=[Output("Y", T8, "Along `axis`, the sum of the tensors' sizes.")],
    attributes=[Attribute("axis", "int", "The dimension to concatenate along.", required=True)],
)


@v1.infer
def infer(y_scale: TensorType, y_zero: TensorType, /, *inputs: TensorType, axis: int) -> TensorType:
    if len(inputs) % 3:
        raise InferenceError(f"{len(inputs)} inputs are no triples of a tensor, a scale and a zero point")
    scaled.check(Y=(y_scale, y_zero))
    triples = _triples(inputs)
    for number, (x, scale, zero) in enumerate(triples):
        scaled.check(**{f"tensor {number}": (scale, zero)})
        _check_types(number, x, scale, zero)
    return TensorType(y_zero.element, joined_shape([x.shape for x, _, _ in triples], axis))


def _triples(inputs: Sequence[V]) -> list[tuple[V, V, V]]:
    return list(zip(inputs[::3], inputs[1::3], inputs[2::3], strict=True))


def _check_types(number: int, x: TensorType, scale: TensorType, zero: TensorType) -> None:
    """Raise InferenceError where the types of a triple contradict each other."""
    if not x.element.number or not scale.element.number or not zero.element.number:
        return
    if x.element is not zero.element or x.element.is_float or not scale.element.is_float:
        raise InferenceError(
            f"tensor {number} is {x}, its scale {scale}, its zero point {zero}: 8-bit integers, a float, and "
            "an integer of the tensor's type are needed"
        )


@v1.evaluate
def evaluate(y_scale: Array, y_zero: Array, /, *inputs: Array, axis: int) -> Array:
    hold(infer, y_scale, y_zero, *inputs, axis=axis)
    to = element(y_zero.dtype)
    parts = (scaled.as_bytes(scaled.as_floats(*triple), y_scale, y_zero, to) for triple in _triples(inputs))
    return np.concatenate([*parts], axis)


@v1.body
def body(b: Builder, y_scale: Value, y_zero: Value, /, *inputs: Value, axis: int) -> Value:
    parts = [
        scaled.quantize(b, scaled.dequantize(b, *triple), y_scale, y_zero, y_zero)
        for triple in _triples(inputs)
    ]
    return b.op("Concat", *parts, axis=axis)


v1.absent("gradient", "the results are rounded to integers, which have no gradients")


@qlinear_concat.examples
def examples() -> Iterator[Example]:
    f = np.float32
    for dtype in (np.uint8, np.int8):
        limits = np.iinfo(dtype)
        x = np.arange(limits.min, limits.max + 1).astype(dtype).reshape(2, 4, 32)
        same, other = (x, f(0.1), dtype(5)), (x[:, :3], f(0.07), dtype(100))
        yield Example(1, f(0.1), dtype(5), *same, *other, *same, axis=1)
        yield Example(1, f(0.3), dtype(0), *other, axis=-1)
        yield Example(1, f(0.1), dtype(5), *same, axis=0, expect=[x])
    # by hand: 2 * (3 - 1) and 1 * (9 - 0) in steps of 3 from 10
    pair = np.array([[3]], dtype), f(2), dtype(1), np.array([[9]], dtype), f(1), dtype(0)
    yield Example(1, f(3), dtype(10), *pair, axis=1, expect=[np.array([[11, 13]], dtype)])
    yield Example(1, f(1), dtype(0), x[:0], f(1), dtype(0), x, f(1), dtype(0), axis=0, expect=[x])
