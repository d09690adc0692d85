"""Learned scales: QuantizeLinear and DequantizeLinear in a form that a gradient reaches their scale through.

Inside an algorithm a value is divided by the scale, quantized by 1, and multiplied by the scale again:

    Dequantize(Quantize(x, s, z), s, z)  =  s * Dequantize(Quantize(x / s, 1, z), 1, z)

Rounding counts as the identity within the range, and as a constant outside it. So the derivative by the scale
is the error of rounding within the range, and the end of the range outside it, as in Learned Step Size
Quantization (Esser et al., 2020). It is divided by the root of the number of elements of a sample that one
scale quantizes, times the largest integer, as in that paper.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sabir.base import UnsupportedError
from sabir.elements import DOUBLE, FLOAT, UINT8
from sabir.ir import Node, Tensor, TensorType, canonical_domain
from sabir.training._parameters import matches

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.elements import ElementType
    from sabir.ir import Builder, Graph, Value
    from sabir.rewriting import Rewriter

_QUANTIZING = frozenset({"DequantizeLinear", "QuantizeLinear"})
_SMALLEST = 1e-8  # a scale is above 0
_ZERO_POINT = 2  # its place among the inputs


class _Scaled(NamedTuple):
    """How a scale meets the value that it scales: the shape that it is brought into, and a factor."""

    shape: tuple[int, ...] | None
    factor: float


class LearnedScales:
    """The scales of a graph that are learned, and the nodes that read them."""

    def __init__(self, rewriter: Rewriter, frozen: Sequence[str] = ()) -> None:
        """Find the scales of a model; raises UnsupportedError where there are none to learn."""
        self._rewriter = rewriter
        self._found: dict[Value, _Scaled] = {}
        for node in rewriter.model.graph:
            scale = _pair_scale(node)
            if scale is not None and not matches(scale.name, frozen):
                self._note(node, scale)
        if not self._found:
            raise UnsupportedError(
                "there is no scale to learn: no initializer is the scale of a QuantizeLinear, and of the "
                "DequantizeLinear that read its result"
            )

    @property
    def scales(self) -> list[Value]:
        """The initializers."""
        return list(self._found)

    def reads(self, node: Node) -> bool:
        """Return whether a node of the main graph quantizes by one of the scales, or dequantizes."""
        return _is_quantizing(node) and len(node.inputs) > 1 and node.inputs[1] in self._found

    def divide(self, b: Builder, copy: Node) -> None:
        """Let a copy of a node that quantizes or dequantizes do so by 1; it divides before it quantizes."""
        value, scale = copy.inputs[:2]
        if value is None or scale is None:
            return
        data = scale.constant
        ones = np.ones_like(data.array()) if isinstance(data, Tensor) else np.float32(1)
        if copy.op == "QuantizeLinear":
            copy.inputs[0] = b.Div(value, self._shaped(b, scale))
        copy.inputs[1] = b.initializer("one", ones)

    def multiply(self, b: Builder, node: Node, result: Value) -> Value:
        """Return what takes the place of the result of a node's copy."""
        scale = node.inputs[1]
        if node.op == "QuantizeLinear" or scale is None:
            return result
        return b.Mul(result, self._shaped(b, scale))

    def gradient(self, b: Builder, parameter: Value, gradient: Value) -> Value:
        """Return a gradient; that of a scale is made smaller."""
        found = self._found.get(parameter)
        return gradient if found is None else b.Mul(gradient, _number(parameter, found.factor))

    def stepped(self, b: Builder, parameter: Value, new: Value) -> Value:
        """Return the new value of a parameter; that of a scale stays above 0."""
        return b.Max(new, _number(parameter, _SMALLEST)) if parameter in self._found else new

    def _shaped(self, b: Builder, scale: Value) -> Value:
        shape = self._found[scale].shape
        return scale if shape is None else b.Reshape(scale, np.asarray(shape, np.int64))

    def _note(self, node: Node, scale: Value) -> None:
        """Note the shape and the factor of a scale, for the first of its readers."""
        value, data = node.inputs[0], scale.constant
        kind = None if value is None else self._rewriter.inference.type_of(value)
        if value is None or not isinstance(data, Tensor) or not isinstance(kind, TensorType):
            return
        shape: tuple[int, ...] | None = None
        if data.size > 1:
            if kind.shape is None:
                return
            attribute = node.attributes.get("axis")
            axis = (1 if attribute is None else int(attribute.value)) % len(kind.shape)
            shape = tuple(data.size if i == axis else 1 for i in range(len(kind.shape)))
        self._found.setdefault(scale, _Scaled(shape, self._factor(node, value, kind, data)))

    def _factor(self, node: Node, value: Value, kind: TensorType, data: Tensor) -> float:
        """Return 1 by the root of the largest integer times the elements of a sample that one scale has."""
        sizes = [s for s in kind.shape or () if isinstance(s, int)]
        if value.constant is None and kind.shape and isinstance(kind.shape[0], int):
            sizes = sizes[1:]  # without the batch
        count = max(1, math.prod(sizes) // data.size)
        return 1 / math.sqrt(count * _largest(self._integers(node)))

    def _integers(self, node: Node) -> ElementType:
        output = node.outputs[0]
        kind = None if output is None else self._rewriter.inference.type_of(output)
        return kind.element if isinstance(kind, TensorType) else UINT8


def _pair_scale(node: Node) -> Value | None:
    """Return the scale of a QuantizeLinear, if it is an initializer that all readers dequantize by."""
    if not _is_quantizing(node) or node.op != "QuantizeLinear" or node.outputs[0] is None:
        return None
    scale = node.inputs[1]
    data = None if scale is None else scale.constant
    if scale is None or scale.is_input or not isinstance(data, Tensor) or data.element not in {FLOAT, DOUBLE}:
        return None
    readers = node.outputs[0].uses
    return scale if readers and all(_undoes(user, node) for user, _ in readers) else None


def _undoes(user: Node | Graph, node: Node) -> bool:
    """Return whether a reader dequantizes what a node quantizes, by the same numbers."""
    if not isinstance(user, Node) or not _is_quantizing(user) or user.op != "DequantizeLinear":
        return False
    blocks = [n.attributes["block_size"].value for n in (user, node) if "block_size" in n.attributes]
    same_axis = [n.attributes["axis"].value if "axis" in n.attributes else 1 for n in (user, node)]
    numbers = [(*n.inputs[1:], None)[:_ZERO_POINT] for n in (user, node)]
    return not any(blocks) and same_axis[0] == same_axis[1] and numbers[0] == numbers[1]


def _is_quantizing(node: Node) -> bool:
    return node.op in _QUANTIZING and not canonical_domain(node.domain)


def _largest(element: ElementType) -> int:
    return 2 ** (element.bits - element.is_signed) - 1


def _number(value: Value, number: float) -> np.generic:
    data = value.constant
    return (data.element.dtype if isinstance(data, Tensor) else FLOAT.dtype).type(number)


__all__ = ["LearnedScales"]
