"""Which axis of an output has the classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import UnsupportedError, quote
from sabir.ir import TensorType, canonical_domain

if TYPE_CHECKING:
    from sabir.ir import Shape, Value

_MATRIX = 2  # the rank of samples with scores
_SOFTMAXES = ("Softmax", "LogSoftmax")
_FIRST, _LAST = ("Conv", "ConvTranspose", "Resize", "BatchNormalization"), ("MatMul",)
_ELEMENTWISE = ("Add", "Sub", "Mul", "Div", "Cast", "Identity", "Relu", "Clip", "Tanh")


def class_axis(kind: TensorType, output: Value | None = None) -> int:
    """Return the axis of an output of a type that has the classes, from 1.

    A Softmax or LogSoftmax that computes the output has it as its axis. It is 1 in a matrix. A product of
    matrices has features last, a convolution has channels in axis 1. Else it is the only axis but the first
    with a constant size. Raises UnsupportedError where none of these tells it.
    """
    shape = kind.shape
    if shape is None or len(shape) < _MATRIX:
        raise UnsupportedError(f"classes need an output of rank 2 or more; the output is {kind}")
    found = None if output is None else axis_of_softmax(output, len(shape))
    if found is None and len(shape) == _MATRIX:
        found = 1
    if found is None and output is not None:
        found = _axis_by_operator(output, len(shape))
    found = _only_constant_size(shape) if found is None else found
    if found is None:
        name = "" if output is None else f" {quote(output.name)}"
        raise UnsupportedError(
            f"the output{name} is {kind}, in which any axis may have the classes; name it, "
            "as in CrossEntropy(axis=-1) for tokens [N,T,classes], and axis=1 for images [N,classes,H,W]"
        )
    return found


def axis_of_softmax(output: Value, rank: int) -> int | None:
    """Return the axis of the Softmax or LogSoftmax that computes an output, None where none does."""
    node = output.node
    if node is None or node.op not in _SOFTMAXES or canonical_domain(node.domain):
        return None
    axis = node.attributes.get("axis")
    return (axis.value if axis is not None and isinstance(axis.value, int) else -1) % rank


def _axis_by_operator(output: Value, rank: int) -> int | None:
    """Return the axis of features of the products, or convolutions, from which an output is elementwise."""
    waiting, seen, found = [output], {output}, set[int]()
    while waiting:
        node = waiting.pop().node
        if node is None or canonical_domain(node.domain):
            continue
        if node.op in _FIRST:
            found.add(1)
        elif node.op in _LAST:
            found.add(rank - 1)
        elif node.op in _ELEMENTWISE:
            new = [v for v in node.inputs if v is not None and v not in seen]
            waiting += new
            seen.update(new)
    return found.pop() if len(found) == 1 else None


def _only_constant_size(shape: Shape) -> int | None:
    constant = [axis for axis, dim in enumerate(shape) if axis and isinstance(dim, int)]
    return constant[0] if len(constant) == 1 else None


__all__ = ["axis_of_softmax", "class_axis"]
