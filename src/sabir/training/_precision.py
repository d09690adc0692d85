"""Mixed precision: which operators of a training step compute in 16 bits, and where values are cast.

Parameters, their moments and gradients are in single precision. Products, convolutions and attention compute
in 16 bits; normalizations, Softmax, reductions and losses in single precision; what only moves or combines
elements computes in the type that it is given, and in single precision where it is given both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sabir.base import UnsupportedError, quote
from sabir.elements import BFLOAT16, FLOAT, FLOAT16
from sabir.ir import ArrayTensor, Node, Tensor, TensorType, Value, canonical_domain
from sabir.rewriting import constant_of
from sabir.schema import port_at
from sabir.training._layers import STATISTICS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sabir.elements import ElementType
    from sabir.ir import Builder, Graph, Model
    from sabir.rewriting import DetachedBuilder, Rewriter

PRECISIONS: dict[str, ElementType] = {"bfloat16": BFLOAT16, "float16": FLOAT16}
MASTER = "sabir.training.master"  # in the metadata of a Cast: its operand is stored in 16 bits

_BFLOAT16_OPSET = 22  # from which convolutions and pools admit bfloat16
_SINGLE = frozenset({FLOAT, FLOAT16, BFLOAT16})
_HALVES = frozenset({FLOAT16, BFLOAT16})

_IN_HALF = frozenset({
    "Attention", "Conv", "ConvTranspose", "DeformConv", "Einsum", "GRU", "Gemm", "LSTM", "MatMul", "RNN",
})  # fmt: skip
_AS_GIVEN = frozenset({
    "Abs", "Add", "AveragePool", "Celu", "Clip", "Concat", "DepthToSpace", "Div", "Dropout", "Elu", "Equal",
    "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Gelu", "GlobalAveragePool", "GlobalMaxPool",
    "Greater", "GreaterOrEqual", "HardSigmoid", "HardSwish", "Identity", "IsInf", "IsNaN", "LeakyRelu",
    "Less", "LessOrEqual", "Max", "MaxPool", "Min", "Mish", "Mul", "Neg", "PRelu", "Pad", "Relu", "Reshape",
    "Selu", "Shape", "Sigmoid", "Sign", "Size", "Slice", "Softsign", "SpaceToDepth", "Split",
    "Squeeze", "Sub", "Swish", "Tanh", "ThresholdedRelu", "Tile", "Transpose", "Trilu", "Unsqueeze", "Where",
})  # fmt: skip
_NUMBERS = frozenset({("Dropout", 1)})  # inputs that are no part of the data


class Precision(NamedTuple):
    """The type of 16 bits of a training step; `is_asked` unless it is that of the stored weights."""

    low: ElementType
    is_asked: bool

    @property
    def scales_loss(self) -> bool:
        """Whether gradients may underflow, so that the loss is multiplied before they are computed."""
        return self.low is FLOAT16

    @property
    def opset(self) -> int:
        """The oldest operator set whose operators admit the type."""
        return _BFLOAT16_OPSET if self.low is BFLOAT16 else 1


def precision_of(model: Model, name: str | None) -> Precision | None:
    """Return the precision of a name; without one, that of the weights of a model, if they have 16 bits.

    Raises UnsupportedError for another name.
    """
    if name is None:
        stored = _stored(model)
        return None if stored is None else Precision(stored, is_asked=False)
    if name not in PRECISIONS:
        known = ", ".join(PRECISIONS)
        raise UnsupportedError(f"there is no precision {quote(name)}; there are {known}, or None")
    return Precision(PRECISIONS[name], is_asked=True)


def _stored(model: Model) -> ElementType | None:
    """Return the type of 16 bits that most floating-point elements of a model have, None if another."""
    sizes: dict[ElementType, int] = {}
    for data in model.graph.initializers.values():
        if isinstance(data, Tensor) and data.element.is_float:
            sizes[data.element] = sizes.get(data.element, 0) + data.size
    most = max(sizes, key=lambda element: sizes[element], default=None)
    return most if most in _HALVES else None


def keep_masters(graph: Graph, parameters: Iterable[str]) -> None:
    """Store the parameters that have 16 bits in single precision; the graph casts them.

    Running statistics are stored in it too, which BatchNormalization admits beside data of 16 bits.
    """
    chosen = set(parameters)
    for value, data in list(graph.initializers.items()):
        if not isinstance(data, Tensor) or data.element not in _HALVES:
            continue
        if _is_statistic(value):
            graph.set_initializer(value, ArrayTensor(data.array().astype(np.float32)))
        if value.name not in chosen:
            continue
        name, master = value.name, Value(value.name)
        graph.set_initializer(value, None)
        graph.set_initializer(master, ArrayTensor(data.array().astype(np.float32)))
        cast = Node("Cast", [master], [Value(f"{name}_{data.element.name}")], {"to": data.element.number})
        cast.metadata = {MASTER: data.element.name}
        graph.prepend(cast)
        value.replace_with(cast.output)


def _is_statistic(value: Value) -> bool:
    """Return whether a value is a running mean or variance, and nothing else."""
    places = range(STATISTICS.start, STATISTICS.stop)
    readers = [(user, slot) for user, slot in value.uses if isinstance(user, Node)]
    is_one = [user.op == "BatchNormalization" and slot in places for user, slot in readers]
    return len(readers) == value.read_count and bool(readers) and all(is_one)


def drop_masters(graph: Graph) -> None:
    """Store the parameters in the types again that they had before `keep_masters`."""
    for node in list(graph):
        if MASTER not in (node.metadata or {}) or node.op != "Cast" or not node.inputs:
            continue
        master, (copy,) = node.inputs[0], node.outputs
        data = None if master is None else master.constant
        element = PRECISIONS.get((node.metadata or {})[MASTER])
        if master is None or copy is None or element is None or master.is_input:
            continue
        if not isinstance(data, Tensor):
            continue
        own = Value(master.name)
        copy.replace_with(own)
        graph.erase(node)
        if not master.is_read:
            graph.set_initializer(master, None)
        graph.set_initializer(own, ArrayTensor(data.array().astype(element.dtype)))


def widened(b: Builder, value: Value) -> Value:
    """Return a value of 16 bits in single precision, any other as it is."""
    kind = b.type_of(value)
    is_half = isinstance(kind, TensorType) and kind.element in _HALVES
    return b.Cast(value, to=FLOAT.number) if is_half else value


def widened_type(kind: TensorType) -> TensorType:
    """Return a type of 16 bits in single precision, any other as it is."""
    return TensorType(FLOAT, kind.shape) if kind.element in _HALVES else kind


class Casting:
    """Chooses the types of the operands of copied nodes, and appends the casts."""

    def __init__(self, b: DetachedBuilder, rewriter: Rewriter, precision: Precision) -> None:
        """Take the builder of the copies."""
        self._b, self._rewriter = b, rewriter
        self._low, self._is_asked = precision.low, precision.is_asked
        self._casts: dict[tuple[Value, ElementType], Value] = {}
        self._is_used = False

    def require_use(self) -> None:
        """Raise UnsupportedError if no node computes in 16 bits, as was asked."""
        if self._is_asked and not self._is_used:
            raise UnsupportedError(
                "the model has no product, convolution or attention in single precision that could compute "
                f"in {self._low.name}; leave the precision out"
            )

    def operands(self, node: Node, copies: dict[Value, Value | None]) -> dict[Value, Value | None]:
        """Return what a copy of a node reads instead of each value of the main graph."""
        chosen = self._chosen(node, copies)
        if chosen is None:
            return dict(copies)
        found = dict(copies)
        for value in self._cast_slots(node, chosen):
            found[value] = self._as(copies.get(value) or value, chosen)
        return found

    def _chosen(self, node: Node, copies: dict[Value, Value | None]) -> ElementType | None:
        """Return the type that a node computes in; None where its operands stay as they are."""
        if node.graphs or canonical_domain(node.domain):
            return FLOAT
        if node.op in _IN_HALF:
            is_half = self._admits(node) and bool(self._floats(node))
            self._is_used |= is_half
            return self._low if is_half else FLOAT
        if node.op not in _AS_GIVEN:
            return FLOAT
        deciding = [self._element(copies.get(v) or v) for v in self._floats(node) if not self._adapts(v)]
        if not deciding:
            return None
        is_half = all(e in _HALVES for e in deciding) and self._admits(node)
        return self._low if is_half and all(map(self._fits, self._floats(node))) else FLOAT

    def _cast_slots(self, node: Node, chosen: ElementType) -> list[Value]:
        values = _data_operands(node)
        if node.op in _IN_HALF or node.op in _AS_GIVEN:
            admitted = self._ports(node, chosen)
            values = [v for v in values if v in admitted]
        return [v for v in (*values, *node.captures()) if self._element(v) in _SINGLE]

    def _floats(self, node: Node) -> list[Value]:
        """Return the data operands of a node that are in single precision or in 16 bits."""
        return [v for v in _data_operands(node) if self._element(v) in _SINGLE]

    def _adapts(self, value: Value) -> bool:
        """Return whether a value takes the type of the others: constants, and single numbers."""
        if constant_of(value) is not None or value.constant is not None:
            return True
        kind = self._rewriter.inference.type_of(value)
        return isinstance(kind, TensorType) and kind.shape == ()

    def _fits(self, value: Value) -> bool:
        """Return whether the elements of a constant are finite in 16 bits, or were not before."""
        data = constant_of(value)
        if data is None:
            return True
        array = data.array()
        with np.errstate(over="ignore"):
            narrow = array.astype(self._low.dtype)
        return bool((np.isfinite(narrow) | ~np.isfinite(array)).all())

    def _admits(self, node: Node) -> bool:
        """Return whether all data operands of a node may have 16 bits."""
        admitted = self._ports(node, self._low)
        return all(v in admitted for v in self._floats(node))

    def _ports(self, node: Node, element: ElementType) -> set[Value]:
        """Return the operands of a node whose inputs admit a type."""
        scope = self._rewriter.scope
        opset = scope.opset(canonical_domain(node.domain))
        version = scope.registry.find_version(node.domain, node.op, opset)
        if version is None or not version.inputs:
            return set()
        wanted = f"tensor({element.name})"
        places = [(v, port_at(version.inputs, i)) for i, v in enumerate(node.inputs)]
        return {v for v, port in places if v is not None and wanted in port.allowed}

    def _element(self, value: Value) -> ElementType | None:
        kind = self._rewriter.inference.type_of(value)
        return kind.element if isinstance(kind, TensorType) else value.element

    def _as(self, value: Value, element: ElementType) -> Value:
        """Return a value in a type; casts are shared."""
        if self._element(value) is element:
            return value
        found = self._casts.get((value, element))
        if found is None:
            found = self._casts[value, element] = self._b.Cast(value, to=element.number)
        return found


def _data_operands(node: Node) -> list[Value]:
    return [v for i, v in enumerate(node.inputs) if v is not None and (node.op, i) not in _NUMBERS]


__all__ = [
    "MASTER",
    "PRECISIONS",
    "Casting",
    "Precision",
    "drop_masters",
    "keep_masters",
    "precision_of",
    "widened",
    "widened_type",
]
