"""All attributes of a model, each with the mapping in which a repair can replace it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from sabir.checking import AttributeSite

if TYPE_CHECKING:
    from collections.abc import Iterator, MutableMapping

    from sabir.checking import FunctionSite, GraphSite, Survey
    from sabir.ir import Attribute, Function, Graph, Node


class EditableAttribute(NamedTuple):
    """An attribute of a node, or the default of a function's attribute, in which case `node` is None."""

    attribute: Attribute
    site: AttributeSite
    node: Node | None
    attributes: MutableMapping[str, Any]

    def change(self, **fields: Any) -> Attribute:
        """Replace the attribute by one with other values of these fields, and return that one."""
        changed = self.attributes[self.attribute.name] = replace(self.attribute, **fields)
        return changed


def editable_attributes(survey: Survey) -> Iterator[EditableAttribute]:
    """Yield every attribute of a model; the defaults of functions first, as nodes may refer to them."""
    for function in survey.functions:
        yield from _defaults(function)
        for node in (n for graph in graphs_in_defaults(function.function) for n in graph):
            yield from _of_node(node, function.body, None)
    for site in survey.graphs:
        for index in site.attributed:
            yield from _of_node(site.nodes[index], site, index)


def graphs_in_defaults(function: Function) -> Iterator[Graph]:
    """Yield the graphs in the defaults of a function's attributes, which belong to no node."""
    for default in function.attributes.values():
        for graph in default.graphs if default is not None else ():
            yield from graph.scopes()


def _defaults(function: FunctionSite) -> Iterator[EditableAttribute]:
    attributes = function.function.attributes
    for name, default in tuple(attributes.items()):
        if default is not None:
            site = AttributeSite(default, name, function.body, None)
            yield EditableAttribute(default, site, None, attributes)


def _of_node(node: Node, graph: GraphSite, index: int | None) -> Iterator[EditableAttribute]:
    for name, attribute in tuple(node.attributes.items()):
        site = AttributeSite(attribute, name, graph, index)
        yield EditableAttribute(attribute, site, node, node.attributes)
