"""QLinearAdd and QLinearMul: their declaration and examples, which differ in the arithmetic alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sabir.opsets.families.numbers import broadcasting
from sabir.opsets.families.quantization import scaled
from sabir.opsets.families.shapes.ranks import hold
from sabir.schema import Constraint, Example, Input, Output, tensors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sabir.ir import TensorType
    from sabir.opsets.typing import Array
    from sabir.schema import Operator, Version


def declare(operator: Operator) -> Version:
    """Declare the first version of a binary operator, with its inference."""
    of = Constraint("T", tensors("int8", "uint8"))
    v1 = operator.first(
        1,
        inputs=[
            Input("A", of, "The first operand."),
            *scaled.parameters("A_scale", "A_zero_point", of, "A"),
            Input("B", of, "The second operand, of a shape that broadcasts with that of `A`."),
            *scaled.parameters("B_scale", "B_zero_point", of, "B"),
            *scaled.parameters("C_scale", "C_zero_point", of, "C"),
        ],
        outputs=[Output("C", of, "The shape to which `A` and `B` broadcast.")],
    )
    v1.infer(infer)
    v1.absent("gradient", "the results are rounded to integers, which have no gradients")
    return v1


class Operands(NamedTuple):
    """The inputs of a call, with shapes that have been checked."""

    a: Array
    a_scale: Array
    a_zero: Array | None
    b: Array
    b_scale: Array
    b_zero: Array | None
    c_scale: Array
    c_zero: Array | None = None


def evaluate_by(v1: Version, compute: Callable[[Operands], Array]) -> None:
    """Attach the evaluation by a function of checked operands."""

    @v1.evaluate
    def evaluate(*operands: Array | None) -> Array:
        hold(infer, *operands)
        return compute(Operands(*operands))  # pyright: ignore[reportArgumentType]  the binder has checked them


def infer(  # ruff: ignore[too-many-positional-arguments]  the operator's signature
    a: TensorType, a_scale: TensorType, a_zero: TensorType | None, b: TensorType, b_scale: TensorType,
    b_zero: TensorType | None, c_scale: TensorType, c_zero: TensorType | None = None, /,
) -> TensorType:  # fmt: skip
    """Return the type of the result; raises InferenceError for operands that do not broadcast."""
    scaled.check(A=(a_scale, a_zero), B=(b_scale, b_zero), C=(c_scale, c_zero))
    return broadcasting.merged(a, b)


def over_bytes(scales: Sequence[tuple[float, float, float]]) -> Iterator[Example]:
    """Yield calls of all pairs of some bytes, of either type, and of shapes that broadcast."""
    f = np.float32
    for dtype in (np.uint8, np.int8):
        limits = np.iinfo(dtype)
        every = np.arange(limits.min, limits.max + 1).astype(dtype)
        zeros = [dtype(z) for z in (7, 100, 33)]
        for a, b, c in scales:
            yield Example(1, every[:, None], f(a), zeros[0], every[None, ::5], f(b), zeros[1], f(c), zeros[2])
            yield Example(1, every[::7], f(a), zeros[2], every[5], f(b), dtype(0), f(c))
        yield Example(1, every[:3], f(1), None, every[3:6], f(1), None, f(1))
        yield Example(
            1, every[:0], f(1), dtype(1), every[:1], f(1), dtype(0), f(1), dtype(0), expect=[every[:0]]
        )
