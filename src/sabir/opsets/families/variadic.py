"""Elementwise operators of any number of inputs, which had to be of one shape before opset 8."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import InferenceError
from sabir.ir import TensorType, known_equal
from sabir.opsets.families.shapes import same_dim

if TYPE_CHECKING:
    from sabir.ir import Value
    from sabir.opsets.typing import Array, BehaviourFunction


def infer_one_shape(*inputs: TensorType) -> TensorType:
    """The output has the inputs' common type and shape."""
    element = next((t.element for t in inputs if t.element.number), inputs[0].element)
    shapes = [t.shape for t in inputs if t.shape is not None]
    if not shapes:
        return TensorType(element)
    if len({len(s) for s in shapes}) > 1:
        raise InferenceError(
            f"inputs have the ranks {', '.join(str(len(s)) for s in shapes)}, and must be of one shape"
        )
    return TensorType(
        element, tuple(same_dim(column, "inputs of one shape") for column in zip(*shapes, strict=True))
    )


def of_one_shape(rule: BehaviourFunction) -> BehaviourFunction:
    """Return a variadic rule that demands one shape of its inputs."""

    def evaluate(*inputs: Array) -> Array:
        if len({x.shape for x in inputs}) > 1:
            raise ValueError(
                f"inputs must be of one shape, and are {', '.join(str(list(x.shape)) for x in inputs)}"
            )
        return rule(*inputs)

    return evaluate


def are_of_one_shape(*inputs: Value) -> bool:
    """Whether all values are known to have one shape."""
    shapes = [v.type.shape if isinstance(v.type, TensorType) else None for v in inputs]
    first = shapes[0]
    if len(shapes) == 1:
        return True
    return first is not None and all(
        s is not None and len(s) == len(first) and all(map(known_equal, first, s)) for s in shapes
    )
