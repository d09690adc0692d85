"""What a repair tells, what it may touch, and names that are plain and not taken."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from sabir.base import quote
from sabir.checking import KEYWORDS, AttributeSite
from sabir.ir import FreshNames

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, MutableMapping

    from sabir.base import Location
    from sabir.checking import Survey
    from sabir.ir import Attribute, Function, Graph, Node

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_]")


class Repair(NamedTuple):
    """One thing that was put right: the rule it broke, what was done, and where.

    `location` has the names from before. Where `interface` is true, an input or output of the model has
    another name now, and whoever runs the model must know.

    >>> from sabir.base import Location
    >>> print(Repair('GRAPH006', 'sorted the nodes', Location().at('graph')))
    graph: GRAPH006: sorted the nodes
    """

    rule: str
    message: str
    location: Location
    interface: bool = False

    def __str__(self) -> str:
        return f"{self.location}: {self.rule}: {self.message}"


class Task(NamedTuple):
    """A model as surveyed, and the ids of the rules whose breaks are to be repaired.

    `unsafe` are those whose repairs may also do what can hurt.
    """

    survey: Survey
    wanted: frozenset[str]
    unsafe: frozenset[str] = frozenset()


class Identifiers:
    """Hands out C identifiers that nothing else has."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._names = FreshNames(taken)

    def fresh(self, name: str) -> str:
        """Return `name` with every odd character replaced, numbered where that is taken."""
        return self._names.fresh(plain_name(name))


def graphs_in_defaults(function: Function) -> Iterator[Graph]:
    """Yield the graphs in the defaults of a function's attributes: they stand in no node."""
    for default in function.attributes.values():
        for graph in default.graphs if default is not None else ():
            yield from graph.scopes()


def plain_name(name: str) -> str:
    """Return the C identifier that is most like a name: itself, where it is one."""
    plain = _NOT_IN_NAMES.sub("_", name)
    return f"_{plain}" if plain[:1].isdigit() or plain in KEYWORDS else plain


def renamed(what: str, old: str, new: str) -> str:
    """Return the message of a repair that gave something a name."""
    return f"renamed {what} {quote(old)} to {quote(new)}" if old else f"named {what} {quote(new)}"


class AttributePlace(NamedTuple):
    """An attribute in the mapping that holds it: of a node, or, with no node, of a function's defaults."""

    attribute: Attribute
    site: AttributeSite
    node: Node | None
    holder: MutableMapping[str, Any]

    def put(self, **changes: Any) -> Attribute:
        """Put the attribute back with other fields, and return it."""
        made = self.holder[self.attribute.name] = replace(self.attribute, **changes)
        return made


def attributes_of(survey: Survey) -> Iterator[AttributePlace]:
    """Yield every attribute; the defaults of functions first, as nodes may refer to them."""
    for made in survey.functions:
        declared = made.function.attributes
        for name, default in tuple(declared.items()):
            if default is not None:
                yield AttributePlace(default, AttributeSite(default, name, made.body, None), None, declared)
        for node in (n for graph in graphs_in_defaults(made.function) for n in graph):
            for name, attribute in tuple(node.attributes.items()):
                yield AttributePlace(
                    attribute, AttributeSite(attribute, name, made.body, None), node, node.attributes
                )
    for site in survey.graphs:
        for index in site.attributed:
            node = site.nodes[index]
            for name, attribute in tuple(node.attributes.items()):
                yield AttributePlace(
                    attribute, AttributeSite(attribute, name, site, index), node, node.attributes
                )
