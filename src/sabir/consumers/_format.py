"""The features of the format that a model uses, with their counts, and its element types."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.elements import STRING
from sabir.ir import (
    CONTAINERS,
    Attribute,
    ExternalTensor,
    Feature,
    Graph,
    MapType,
    Node,
    SequenceType,
    Tensor,
    Value,
    elements_of_type,
    parts_of_type,
    places,
    used_features,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.base import Location
    from sabir.elements import ElementType
    from sabir.ir import Model, Place, Type

# features that every IR version has, or that no IR version tells
_EXTERNAL, _SUBGRAPHS, _STRINGS = Feature("external data", 0), Feature("subgraphs", 0), Feature("strings", 0)
_ML_CONTAINERS = Feature(CONTAINERS.name, 0)  # the ML variant had them from the first


class FeatureUse(NamedTuple):
    """A feature of the format: the IR version that introduced it, how many objects use it, the first of them.

    `since` is 0 for a feature that no IR version introduced; `node` is the first user if it is a node.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (optional(float[N]) x) => (optional(float[N]) y) { y = Identity (x) }''')
    >>> use = requirements(model).features[0]
    >>> use.name, use.since, use.uses, str(use.location)
    ('optional types', 8, 2, "graph/input[0] 'x'")
    """

    name: str
    since: int
    uses: int
    location: Location
    node: Node | None = None


def format_of(model: Model) -> tuple[tuple[FeatureUse, ...], set[ElementType]]:
    """Return the features that a model uses, the newest first, and its element types."""
    first: dict[Feature, Place] = {}
    counts: dict[Feature, int] = {}
    elements: set[ElementType] = set()
    undated = (
        (f, p) for p in places(model) for f in _undated(p, elements, is_ml="ai.onnx.ml" in model.opsets)
    )
    for found in (used_features(model), undated):
        for feature, place in found:
            first.setdefault(feature, place)
            counts[feature] = counts.get(feature, 0) + 1
    uses = [_use(feature, counts[feature], place) for feature, place in first.items()]
    return tuple(sorted(uses, key=lambda use: (-use.since, use.name))), elements


def _use(feature: Feature, count: int, place: Place) -> FeatureUse:
    node = place.object if isinstance(place.object, Node) else None
    return FeatureUse(feature.name, feature.since, count, place.location, node)


def _undated(place: Place, elements: set[ElementType], *, is_ml: bool) -> Iterator[Feature]:
    """Yield the features of an object that need no IR version, and add its element types."""
    found = place.object
    if isinstance(found, Tensor):
        elements.add(found.element)
        if isinstance(found, ExternalTensor):
            yield _EXTERNAL
        if found.element is STRING:
            yield _STRINGS
    elif isinstance(found, Graph):
        if place.outer is not None and isinstance(place.outer.object, Attribute):
            yield _SUBGRAPHS
    elif isinstance(found, Value) and place.step != "value_info":
        yield from _of_type(found.type, elements, is_ml=is_ml)
    elif isinstance(found, Attribute) and found.type in {"type", "types"}:
        for kind in (found.value,) if found.type == "type" else found.value or ():
            yield from _of_type(kind, elements, is_ml=is_ml)


def _of_type(kind: Type | None, elements: set[ElementType], *, is_ml: bool) -> Iterator[Feature]:
    if kind is None:
        return
    inside = set(elements_of_type(kind))
    elements |= inside
    if STRING in inside:
        yield _STRINGS
    if is_ml and any(isinstance(part, (SequenceType, MapType)) for part in parts_of_type(kind)):
        yield _ML_CONTAINERS
