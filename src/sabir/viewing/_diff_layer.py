"""A layer of what differs between the model of a page and the one beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.comparison import aligned_results, compare
from sabir.ir import Node, Value
from sabir.opsets import STANDARD
from sabir.viewing._layers import Layer
from sabir.viewing._locations import nearest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.base import Limits
    from sabir.comparison import Change
    from sabir.ir import Model
    from sabir.schema import Registry
    from sabir.viewing._document import ModelPage

_EQUAL, _CHANGED, _ONLY = range(3)


def difference_layer(
    page: ModelPage, old: Model, new: Model, *, registry: Registry = STANDARD, limits: Limits | None = None
) -> Layer:
    """Return the layer of a page that shows two models: nodes of one of them, changed and equal ones.

    Nodes are aligned as `sabir.compare` aligns them. Raises what `compare` raises.

    >>> header = '<ir_version: 10, opset_import: ["" : 21]> g (float[N] x) => (float[N] y)'
    >>> old = sabir.parse(header + '{ a = Neg (x)  y = Relu (a) }')
    >>> new = sabir.parse(header + '{ y = Relu (x) }')
    >>> page = page_of(old, beside=new)
    >>> layer = difference_layer(page, old, new)
    >>> layer.classes[layer.values[page.numbers[old.graph[0]]]]
    'only in this model'
    """
    layer = Layer("difference", "Difference", classes=("equal", "changed", "only in this model"))
    for model in (old, new):
        for node in model.graph:
            layer.values[page.numbers[node]] = _ONLY
    for here, there in aligned_results(old, new, registry=registry, limits=limits):
        for value in (here, there):
            if value.node is not None and value.node in page.numbers:
                layer.values[page.numbers[value.node]] = _EQUAL
    for change in compare(old, new, registry=registry, limits=limits).changes:
        layer.lines.append(str(change))
        for node in _nodes_of(change, old, new):
            if node in page.numbers:
                number = page.numbers[node]
                layer.note(number, change.message)
                if layer.values.get(number) == _EQUAL:
                    layer.values[number] = _CHANGED
    return layer


def _nodes_of(change: Change, old: Model, new: Model) -> Iterator[Node]:
    """Yield the nodes at the locations of a change, and those that read a value there."""
    for model, location in ((old, change.old), (new, change.new)):
        found = None if location is None else nearest(model, location, Node, Value)
        if isinstance(found, Node):
            yield found
        elif found is not None:
            yield from (use.user for use in found.uses if isinstance(use.user, Node))
