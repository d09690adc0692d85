"""Functions of one 8-bit tensor that are computed in float: `quantize(f(dequantize(x)))`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sabir.elements import element
from sabir.ir import TensorType
from sabir.opsets.families.quantization import scaled
from sabir.opsets.families.shapes.ranks import hold
from sabir.schema import Constraint, Input, Output, tensors

if TYPE_CHECKING:
    from collections.abc import Callable

    from sabir.ir import Builder, Value
    from sabir.opsets.typing import Array
    from sabir.schema import Attribute, Operator, Version


def declare(
    operator: Operator, function: Callable[..., Array], write: Callable[..., Value], *attributes: Attribute
) -> Version:
    """Declare the first version of a function of floats with its behaviours.

    `function` computes it from a float32 array, `write` emits it in a builder from a float value; both take
    the attributes as keywords.
    """
    of = Constraint("T", tensors("int8", "uint8"))
    v1 = operator.first(
        1,
        inputs=[
            Input("X", of, "A tensor of any shape."),
            *scaled.parameters("X_scale", "X_zero_point", of, "X"),
            *scaled.parameters("Y_scale", "Y_zero_point", of, "Y"),
        ],
        outputs=[Output("Y", of, "The input's shape.")],
        attributes=attributes,
    )
    v1.infer(_infer)

    @v1.evaluate
    def evaluate(
        x: Array, x_scale: Array, x_zero: Array | None, y_scale: Array, y_zero: Array | None = None, /,
        **attributes: Any,
    ) -> Array:  # fmt: skip
        hold(_infer, x, x_scale, x_zero, y_scale, y_zero)
        y = function(scaled.as_floats(x, x_scale, x_zero), **attributes)
        return scaled.as_bytes(y, y_scale, y_zero, element(x.dtype))

    @v1.body
    def body(
        b: Builder, x: Value, x_scale: Value, x_zero: Value | None, y_scale: Value,
        y_zero: Value | None = None, /, **attributes: Any,
    ) -> Value:  # fmt: skip
        y = write(b, scaled.dequantize(b, x, x_scale, x_zero), **attributes)
        return scaled.quantize(b, y, y_scale, y_zero, x)

    v1.absent("gradient", "the results are rounded to integers, which have no gradients")
    return v1


def _infer(
    x: TensorType, x_scale: TensorType, x_zero: TensorType | None, y_scale: TensorType,
    y_zero: TensorType | None = None, /, **_: Any,
) -> TensorType:  # fmt: skip
    scaled.check(X=(x_scale, x_zero), Y=(y_scale, y_zero))
    return TensorType(x.element, x.shape)
