"""The nodes of a model that multiply by constant weights, and the axes of these weights."""

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
class Wide:
    """A node of an operator that may have weights, and the reason why it has none to quantize."""

    node: Node
    location: Location
    reason: str
    is_excluded: bool = False

    def report(self) -> NodeReport:
        """Return the report of the node."""
        return NodeReport(str(self.location), self.node.name, self.node.op, reason=self.reason)


def weighted_nodes(model: Model, excluded: Exclusion) -> Iterator[Weighted | Wide]:
    """Yield the nodes with weights, and those of the same operators that have none or may not be changed.

    The data is read, so that weights which are infinite or no number are reported. Raises NotFoundError for
    an excluded name that no node has.
    """
    excluded.require_names(model)
    bodies = {function.graph for function in model.functions}
    state = model.state()
    for place in list(places(model, Node)):
        node: Node = place.object
        if node.op not in WEIGHTED or canonical_domain(node.domain):
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
        else:
            yield _weighted(node, place.location, state)


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
    if data.element.name not in {"float", "float16", "bfloat16"}:
        return Wide(node, location, f"its weights are {data.element}")
    if len(data.shape) < _MATRIX or not data.size:
        return Wide(node, location, f"its weights have the shape {list(data.shape)}")
    try:
        if not np.isfinite(data.array()).all():
            return Wide(node, location, "some of its weights are infinite or no number")
    except SabirError as error:
        return Wide(node, location, str(error))
    return Weighted(node, location, weights, data, *_axes(node, len(data.shape)))


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
    return result.uses[0] if result is not None and len(result.uses) == 1 else None


def attribute(node: Node, name: str, default: float) -> float:
    """Return a number among the attributes of a node.

    >>> attribute(sabir.ir.Node('Gemm', attributes={'alpha': 2.0}), 'alpha', 1.0)
    2.0
    """
    found = node.attributes.get(name)
    value = default if found is None else found.value
    return value if isinstance(value, (int, float)) else default
