"""The calls of a model, by what they call, and the imports that decide this."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sabir.base import Location, SchemaError
from sabir.ir import Function, Node, Place, bound_opsets, canonical_domain, places
from sabir.schema import Callees, Scope, Version, function_label

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.ir import FunctionKey, Model
    from sabir.schema import Registry


@dataclass(eq=False, slots=True)
class Calls:
    """The nodes of one importer that call the same; an error says why Sabir does not know what they call."""

    domain: str
    callee: Version | Function | SchemaError
    places: list[Place] = field(default_factory=list[Place])


@dataclass(eq=False, slots=True)
class Importer:
    """The model, or one of its functions: what its nodes call, under the operator sets that it imports."""

    scope: Scope
    where: Location
    function: Function | None
    explicit: dict[str, int]
    calls: dict[FunctionKey, Calls] = field(default_factory=dict["FunctionKey", Calls])

    @property
    def label(self) -> str:
        """The name of the importer in messages."""
        return "the model" if self.function is None else function_label(self.function)

    def imports(self) -> Iterator[tuple[str, int, list[Calls]]]:
        """Yield each domain with its version and its calls; the default one only if imported or called."""
        called: dict[str, list[Calls]] = {}
        for calls in self.calls.values():
            called.setdefault(calls.domain, []).append(calls)
        for domain, version in self.scope.opsets.items():
            if domain in self.explicit or domain in called:
                yield domain, version, called.get(domain, [])


def importers_of(model: Model, registry: Registry) -> list[Importer]:
    """Return the model and its functions with their calls, in subgraphs and training graphs too."""
    scope = Scope.of(model, registry, newer_opsets=True)
    importer = Importer(scope, Location(), None, bound_opsets(model.opsets))
    found, callees = [importer], Callees(Scope.runnable)
    for place in places(model, Function, Node):  # all nodes of a function come right after it
        if isinstance(place.object, Function):
            function = place.object
            explicit = bound_opsets(function.opsets)
            importer = Importer(scope.of_body(function), place.location, function, explicit)
            found.append(importer)
        else:
            _add(place, importer, callees)
    return found


def _add(place: Place, importer: Importer, callees: Callees) -> None:
    node: Node = place.object
    key = canonical_domain(node.domain), node.op, node.overload
    calls = importer.calls.get(key)
    if calls is None:
        calls = importer.calls[key] = Calls(key[0], callees.find(node, importer.scope))
    calls.places.append(place)
