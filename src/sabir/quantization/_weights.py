"""The nodes of a model that multiply by constant weights or look rows of them up, and the axes of weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sabir.base import SabirError
from sabir.ir import Node, Tensor, canonical_domain, places
from sabir.quantization._report import NodeReport
from sabir.rewriting import constant_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.base import Location
    from sabir.ir import Array, Model, Use, Value
    from sabir.quantization._exclusion import Exclusion

WEIGHTED = ("MatMul", "Gemm", "Conv")  # operators whose input 1 may be weights
WEIGHT = 1  # the input that has the weights
LEAST = 8  # weights that share a scale of 4 bytes
_REAL = frozenset({"float", "float16", "bfloat16"})
_MATRIX = 2  # axes


@dataclass(frozen=True)
class Weighted:
    """A node that multiplies its input 0 by weights.

    `summed` is the axis of the weights along which products are summed, `channel` that of output channels.
    """

    node: Node
    location: Location
    weights: Value
    data: Tensor
    summed: int
    channel: int

    def array(self) -> Array:
        """Return the weights."""
        return self.data.array()

    def quantized(self, to: str, error: float) -> NodeReport:
        """Return the report of this node with weights of an element type."""
        return NodeReport(str(self.location), self.node.name, self.node.op, to, error=error)

    def wide(self, reason: str) -> NodeReport:
        """Return the report of this node as one that stays wide."""
        return Wide(self.node, self.location, reason).report()


@dataclass(frozen=True)
class Table:
    """A Gather of rows of a constant matrix, such as an embedding of tokens."""

    node: Node
    location: Location
    weights: Value
    data: Tensor
    indices: Value


@dataclass(frozen=True)
class Wide:
    """A node of an operator that may have weights, and the reason why it has none to quantize."""

    node: Node
    location: Location
    reason: str
    is_excluded: bool = False

    def report(self) -> NodeReport:
        """Return the report of the node."""
        return NodeReport(str(self.location), self.node.name, self.node.op, reason=self.reason)


def weighted_nodes(model: Model, excluded: Exclusion) -> Iterator[Weighted | Table | Wide]:
    """Yield the nodes with weights, and those of the same operators that have none or may not be changed.

    Of Gather these are only the nodes that read rows of a constant matrix. The data is read, so that weights
    which are infinite or no number are reported. Raises NotFoundError for an excluded name that no node has.
    """
    excluded.require_names(model)
    bodies = {function.graph for function in model.functions}
    state = model.state()
    for place in list(places(model, Node)):
        node: Node = place.object
        if canonical_domain(node.domain) or not (node.op in WEIGHTED or _table_of(node, state) is not None):
            continue
        if reason := excluded.reason(node, place.location):
            yield Wide(node, place.location, reason, is_excluded=True)
        elif _root(node) in bodies:
            yield Wide(
                node,
                place.location,
                "it is in a function; `sabir inline` replaces its calls",
                is_excluded=True,
            )
        elif node.op in WEIGHTED:
            yield _weighted(node, place.location, state)
        else:
            yield _table(node, place.location, state)


def _root(node: Node) -> object:
    graph = node.graph
    while graph is not None and graph.parent is not None:
        graph = graph.parent.graph
    return graph


def _weighted(node: Node, location: Location, state: frozenset[Value]) -> Weighted | Wide:
    weights = node.inputs[WEIGHT] if len(node.inputs) > WEIGHT else None
    data = None if weights is None else constant_of(weights, state)
    if weights is None or data is None:
        return Wide(node, location, f"input {WEIGHT} is no constant")
    if data.element.name not in _REAL:
        return Wide(node, location, f"its weights are {data.element}")
    if len(data.shape) < _MATRIX or not data.size:
        return Wide(node, location, f"its weights have the shape {list(data.shape)}")
    if reason := _unusable(data):
        return Wide(node, location, reason)
    return Weighted(node, location, weights, data, *_axes(node, len(data.shape)))


def _unusable(data: Tensor) -> str:
    """Return why weights cannot be quantized, or nothing."""
    try:
        return "" if np.isfinite(data.array()).all() else "some of its weights are infinite or no number"
    except SabirError as error:
        return str(error)


def _table_of(node: Node, state: frozenset[Value]) -> tuple[Value, Tensor, Value] | None:
    """Return the constant matrix whose rows a Gather reads, if they are long enough, and the indices."""
    if node.op != "Gather" or attribute(node, "axis", 0) or len(node.inputs) <= WEIGHT:
        return None
    weights, indices = node.inputs[0], node.inputs[1]
    data = None if weights is None else constant_of(weights, state)
    if weights is None or data is None or indices is None or data.element.name not in _REAL:
        return None
    is_table = len(data.shape) == _MATRIX and data.shape[0] > 1 and data.shape[1] >= LEAST
    return (weights, data, indices) if is_table else None


def _table(node: Node, location: Location, state: frozenset[Value]) -> Table | Wide:
    found = _table_of(node, state)
    if found is None:
        raise ValueError(f"{node!r} reads no table")
    weights, data, indices = found
    for use in weights.uses:
        if not isinstance(use.user, Node) or _table_of(use.user, state) is None:
            return Wide(node, location, f"something else reads {weights.name} too, and needs it wide")
    reason = _unusable(data)
    return Wide(node, location, reason) if reason else Table(node, location, weights, data, indices)


def _axes(node: Node, rank: int) -> tuple[int, int]:
    """Return the axis of the weights that is summed, and that of the output channels."""
    if node.op == "Conv" or (node.op == "Gemm" and attribute(node, "transB", 0)):
        return 1, 0
    return rank - 2, rank - 1


def only_use(node: Node) -> Use | None:
    """Return the use of the first result of a node; None where there is none, or more than one.

    >>> only_use(sabir.ir.Node('Relu')) is None
    True
    """
    result = next(iter(node.outputs), None)
    return result.uses[0] if result is not None and result.read_count == 1 else None


def attribute(node: Node, name: str, default: float) -> float:
    """Return a number among the attributes of a node.

    >>> attribute(sabir.ir.Node('Gemm', attributes={'alpha': 2.0}), 'alpha', 1.0)
    2.0
    """
    found = node.attributes.get(name)
    value = default if found is None else found.value
    return value if isinstance(value, (int, float)) else default
