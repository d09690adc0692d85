"""The multiply-adds of each operator that sums products, as functions of the types of one call.

An operator of the standard without an entry computes no sums of products. The numbers are those of the
plain algorithm: a convolution by Winograd's algorithm needs fewer.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from sabir.ir import TensorType, add, canonical_domain, mul, product, total

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sabir.ir import Dim, Node, Type

_MICROSOFT = "com.microsoft"
_PAST = 4  # the operand of Attention that has the keys of earlier tokens, in both domains
_TERM = re.compile(r"[A-Za-z]")
_MATRIX = 2
_HEADS_FIRST = 4  # axes of keys with an axis of heads before the tokens


class SizedCall(NamedTuple):
    """One call of an operator: its attributes, and the shapes of its operands and results.

    The shape of a value that is left out, unknown, or no tensor is None.

    >>> from sabir.ir import Attribute, Node, Value
    >>> node = Node('Gemm', [Value('a'), Value('b')], [Value('y')], {'transA': Attribute.of('transA', 1)})
    >>> call = SizedCall.of(node, [sabir.ir.tensor_type('float', ['K', 4]), None], [None])
    >>> call.operand(0), call.operand(1), call.integer('transA')
    ((Expr('K'), 4), None, 1)
    """

    node: Node
    inputs: tuple[tuple[Dim, ...] | None, ...]
    outputs: tuple[tuple[Dim, ...] | None, ...]

    @classmethod
    def of(cls, node: Node, inputs: Sequence[Type | None], outputs: Sequence[Type | None]) -> SizedCall:
        """Return a call with operands and results of these types."""
        return cls(node, tuple(map(_shape, inputs)), tuple(map(_shape, outputs)))

    def operand(self, index: int) -> tuple[Dim, ...] | None:
        """Return the shape of an operand, None for one that the call does not have."""
        return self.inputs[index] if index < len(self.inputs) else None

    def has(self, index: int) -> bool:
        """Return whether the call has an operand."""
        return index < len(self.node.inputs) and self.node.inputs[index] is not None

    @property
    def elements(self) -> Dim:
        """The number of elements of the first result."""
        return _size(self.outputs[0] if self.outputs else None)

    def integer(self, name: str, default: int = 0) -> int:
        """Return an integer attribute."""
        value = self.node.attributes.value(name, default)
        return value if isinstance(value, int) else default


def multiply_adds(call: SizedCall) -> Dim:
    """Return how many products a call adds up; None where that depends on an unknown size.

    >>> from sabir.ir import Node, Value, tensor_type
    >>> node = Node('MatMul', [Value('a'), Value('b')], [Value('y')])
    >>> a, b, y = (tensor_type('float', shape) for shape in (['N', 2], [2, 3], ['N', 3]))
    >>> print(multiply_adds(SizedCall.of(node, [a, b], [y])))
    6*N
    """
    count = _TABLE.get((canonical_domain(call.node.domain), call.node.op))
    return 0 if count is None else count(call)


def is_counted(node: Node) -> bool:
    """Return whether the number for a node is known: it is not for operators outside of the standard.

    >>> from sabir.ir import Node, Value
    >>> is_counted(Node('MatMul', [Value('a'), Value('b')], [Value('y')]))
    True
    """
    domain = canonical_domain(node.domain)
    return domain.partition(".")[0] in {"", "ai"} or (domain, node.op) in _TABLE


def _shape(kind: Type | None) -> tuple[Dim, ...] | None:
    return kind.shape if isinstance(kind, TensorType) else None


def _size(shape: Sequence[Dim] | None) -> Dim:
    return None if shape is None else product(shape)


def _axis(shape: Sequence[Dim] | None, axis: int) -> Dim:
    """Return one dimension of a shape; None where it is unknown or the shape has no such axis."""
    return shape[axis] if shape is not None and -len(shape) <= axis < len(shape) else None


# products of matrices


def _matrix_product(call: SizedCall) -> Dim:
    """Each element of the result is a sum over the last axis of the first operand."""
    return mul(call.elements, _axis(call.operand(0), -1))


def _transposable_product(name: str) -> Callable[[SizedCall], Dim]:
    def count(call: SizedCall) -> Dim:
        return mul(call.elements, _axis(call.operand(0), -_MATRIX if call.integer(name) else -1))

    return count


def _packed_product(call: SizedCall) -> Dim:
    return mul(call.elements, call.integer("K"))


def _einsum(call: SizedCall) -> Dim:
    """The product of the sizes of all indices, once for each operand after the first."""
    equation = call.node.attributes.value("equation")
    text = equation.decode() if isinstance(equation, bytes) else str(equation)
    terms = text.partition("->")[0].split(",")
    if len(terms) == 1:
        return 0
    if "." in text or len(terms) != len(call.inputs):
        return None
    sizes: dict[str, Dim] = {}
    for term, shape in zip(terms, call.inputs, strict=True):
        for axis, index in enumerate(_TERM.findall(term)):
            size = _axis(shape, axis)
            sizes[index] = size if sizes.get(index, 1) == 1 else sizes[index]
    return mul(product(sizes.values()), len(terms) - 1)


# convolutions


def _convolution(weights: int) -> Callable[[SizedCall], Dim]:
    """Each element of the result is a sum over a filter, `weights[M, C/group, ...]`."""

    def count(call: SizedCall) -> Dim:
        filters = call.operand(weights)
        return None if filters is None else mul(call.elements, product(filters[1:]))

    return count


def _transposed_convolution(call: SizedCall) -> Dim:
    """Each element of the operand is multiplied with a filter of `weights[C, M/group, ...]`."""
    filters = call.operand(1)
    return None if filters is None else mul(_size(call.operand(0)), product(filters[1:]))


# recurrent networks


def _recurrence(call: SizedCall) -> Dim:
    """All weights, once for each step and each sequence of the batch; in `X` these are the first two axes."""
    steps = _size(None if call.operand(0) is None else (call.operand(0) or ())[:2])
    return mul(steps, add(_size(call.operand(1)), _size(call.operand(2))))


# attention: the products of queries with keys, and of weights with values


def _standard_attention(call: SizedCall) -> Dim:
    keys = add(_axis(call.operand(1), -2), _earlier(call, _PAST, 2))
    return total((mul(_size(call.operand(0)), keys), mul(call.elements, keys)))


def _earlier(call: SizedCall, index: int, axis: int) -> Dim:
    """Return the number of earlier keys that an optional operand has."""
    return _axis(call.operand(index), axis) if call.has(index) else 0


def _self_attention(call: SizedCall) -> Dim:
    """Attention of onnxruntime: one product gives queries, keys and values of `input[B, S, I]`."""
    x = call.operand(0)
    tokens = None if x is None else product(x[:2])
    projection = mul(tokens, _size(call.operand(1)))
    keys = add(_axis(x, 1), _earlier(call, _PAST, 3))
    sizes = call.node.attributes.value("qkv_hidden_sizes")
    queries = (
        mul(tokens, sizes[0]) if isinstance(sizes, tuple) and isinstance(sizes[0], int) else call.elements
    )
    return total((projection, mul(queries, keys), mul(call.elements, keys)))


def _multi_head_attention(call: SizedCall) -> Dim:
    key = call.operand(1)
    packed = not call.has(1)
    new = _axis(call.operand(0), 1) if packed else _axis(key, _tokens_axis(key))
    keys = add(new, _earlier(call, 6, 2))
    queries = call.elements if packed else _size(call.operand(0))
    return total((mul(queries, keys), mul(call.elements, keys)))


def _tokens_axis(key: Sequence[Dim] | None) -> int:
    """Return the axis of the tokens: keys are `[B, T, N*D]`, `[B, N, T, D]`, or packed `[B, T, N, 2, D]`."""
    return 2 if key is not None and len(key) == _HEADS_FIRST else 1


def _grouped_attention(call: SizedCall) -> Dim:
    """The keys are those of the cache that the call returns, or else the past ones and one for each query."""
    present = call.outputs[1] if len(call.outputs) > 1 else None
    keys = _axis(present, 2)
    if keys is None:
        keys = add(_axis(call.operand(0), 1), _earlier(call, 3, 2))
    return mul(mul(call.elements, keys), 2)


_STANDARD: Mapping[str, Callable[[SizedCall], Dim]] = {
    "MatMul": _matrix_product,
    "MatMulInteger": _matrix_product,
    "QLinearMatMul": _matrix_product,
    "Gemm": _transposable_product("transA"),
    "Einsum": _einsum,
    "Conv": _convolution(1),
    "ConvInteger": _convolution(1),
    "QLinearConv": _convolution(3),
    "DeformConv": _convolution(1),
    "ConvTranspose": _transposed_convolution,
    "LSTM": _recurrence,
    "GRU": _recurrence,
    "RNN": _recurrence,
    "Attention": _standard_attention,
}
_OF_ONNXRUNTIME: Mapping[str, Callable[[SizedCall], Dim]] = {
    "FusedMatMul": _transposable_product("transA"),
    "FusedGemm": _transposable_product("transA"),
    "GemmFastGelu": _matrix_product,
    "QGemm": _transposable_product("transA"),
    "MatMulNBits": _packed_product,
    "MatMulIntegerToFloat": _matrix_product,
    "DynamicQuantizeMatMul": _matrix_product,
    "FusedConv": _convolution(1),
    "Attention": _self_attention,
    "MultiHeadAttention": _multi_head_attention,
    "GroupQueryAttention": _grouped_attention,
}
_TABLE = {
    **{("", op): count for op, count in _STANDARD.items()},
    **{(_MICROSOFT, op): count for op, count in _OF_ONNXRUNTIME.items()},
}
