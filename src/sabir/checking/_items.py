"""Sequences that are declared to have items of one shape, and get items of different shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import Finding, quote
from sabir.ir import SequenceType, TensorType, known_equal
from sabir.schema import Version, port_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sabir.checking._survey import GraphSite, Survey
    from sabir.ir import Node, Shape, Type, Value

UNEVEN = "TYPE010"


def uneven_items(survey: Survey, types: Mapping[Value, Type]) -> Iterator[Finding]:
    """Yield a finding for each sequence that declares one shape and gets items of different shapes."""
    for site in survey.graphs:
        if site.function is not None:  # its values have other types in each call
            continue
        for callee, places in site.calls.items():
            if isinstance(callee, Version) and any(port.items for port in callee.inputs):
                for index in places:
                    yield from _of_node(site, index, callee, types)


def _of_node(site: GraphSite, index: int, version: Version, types: Mapping[Value, Type]) -> Iterator[Finding]:
    node = site.nodes[index]
    value = node.outputs[0] if node.outputs else None
    declared = _item_shape(value.type) if value is not None else None
    if value is None or declared is None:
        return
    shapes = _shapes(node, version, types)
    problem = hint = ""
    if len({len(shape) for shape in shapes}) > 1:
        problem = "its items have different ranks"
        hint = "declare its items without a shape"
    else:
        axis = next((a for a, dim in enumerate(declared) if dim is not None and _differ(shapes, a)), None)
        if axis is not None:
            problem = f"its items differ in dimension {axis}"
            hint = "leave that dimension of the items unset"
    if problem:
        where = site.at_node(index).at("output", index=0, name=value.name)
        message = f"{quote(value.name)} is declared as {value.type}, but {problem}"
        yield Finding(UNEVEN, message, where, hint, "warning")


def _shapes(node: Node, version: Version, types: Mapping[Value, Type]) -> list[Shape]:
    """Return the known shapes of the items that a node reads: of tensors, and of the items of sequences."""
    items = [v for i, v in enumerate(node.inputs) if v is not None and port_at(version.inputs, i).items]
    kinds = [types.get(value) for value in items]
    shapes = [kind.shape if isinstance(kind, TensorType) else _item_shape(kind) for kind in kinds]
    return [shape for shape in shapes if shape is not None]


def _item_shape(kind: Type | None) -> Shape | None:
    item = kind.item if isinstance(kind, SequenceType) else None
    return item.shape if isinstance(item, TensorType) else None


def _differ(shapes: list[Shape], axis: int) -> bool:
    dims = [shape[axis] for shape in shapes if axis < len(shape) and shape[axis] is not None]
    if len({d for d in dims if isinstance(d, int)}) > 1:
        return True
    return any(known_equal(dims[0], other) is False for other in dims[1:])
