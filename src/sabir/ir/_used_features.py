"""The features of the format that a model uses, and the oldest IR version and release that have them."""

from __future__ import annotations

from itertools import starmap
from typing import TYPE_CHECKING

from sabir.ir._attributes import Attribute
from sabir.ir._features import (
    CONSTANTS,
    DEVICES,
    SPARSE,
    TRAINING,
    VALUE_INFO,
    Feature,
    elements_of_type,
    features_of_function,
    features_of_graph,
    features_of_node,
    features_of_tensor,
    features_of_type,
    features_of_value,
    first_ir_of_element,
)
from sabir.ir._graph import Graph
from sabir.ir._imports import bound_opsets
from sabir.ir._model import Function, Model
from sabir.ir._node import Node
from sabir.ir._places import Place, places
from sabir.ir._releases import NEWEST_IR, OLDEST_IR_OF_IMPORTS, first_ir_of, first_release_with, newest_opset
from sabir.ir._tensors import SparseTensor, Tensor
from sabir.ir._value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from sabir.elements import ElementType
    from sabir.ir._releases import Release
    from sabir.ir._types import Type


def used_features(model: Model) -> Iterator[tuple[Feature, Place]]:
    """Yield each use of a feature of the format in a model, with its place, in reading order.

    Only features that came after IR 3 are listed. The element types among them have their own names.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float8e5m2[N] x) => (float8e5m2[N] y) { y = Identity (x) }''')
    >>> [(feature, str(place.location)) for feature, place in used_features(model)][0]
    (Feature(name='float8e5m2', since=9), "graph/input[0] 'x'")
    """
    types = _Types(is_ml="ai.onnx.ml" in model.opsets)
    for place in places(model):
        content: object = place.object
        reader = _READERS.get(type(content), _of_tensor)
        for feature in reader(place, types):
            yield feature, place


def least_ir(model: Model) -> int:
    """Return the oldest IR version that has all that a model imports and uses, at least 3.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> least_ir(model)
    10
    """
    imports = starmap(_first_ir_of_import, model.opsets.items())
    features = (feature.since for feature, _ in used_features(model))
    return max([OLDEST_IR_OF_IMPORTS, *imports, *features])


def features_above(model: Model, ir_version: int) -> Iterator[Feature]:
    """Yield what a model imports and uses that an IR version does not have, with repetitions.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> [feature.name for feature in features_above(model, 8)]
    ['opset 21 of ai.onnx']
    """
    for domain, version in model.opsets.items():
        first = _first_ir_of_import(domain, version)
        if first > ir_version:
            yield Feature(f"opset {version} of {domain or 'ai.onnx'}", first)
    yield from (feature for feature, _ in used_features(model) if feature.since > ir_version)


def first_release(model: Model) -> Release:
    """Return the first release of the standard that has all that a model declares and uses.

    That is its IR version, the operator sets that the model and its functions import, and the features of the
    format; domains outside the standard do not count. Raises UnsupportedError for an IR version or a version
    of a standard domain that no known release has.

    >>> model = sabir.parse('''<ir_version: 8, opset_import: ["" : 17]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> first_release(model).name
    '1.12.0'
    """
    opsets = bound_opsets(model.opsets)
    for function in model.functions:
        for domain, version in bound_opsets(function.opsets).items():
            opsets[domain] = max(version, opsets.get(domain, version))
    return first_release_with(opsets, max(model.ir_version, least_ir(model)))


def _first_ir_of_import(domain: str, version: int) -> int:
    """Return the IR version for an import: the newest for one that no release of a standard domain had."""
    if newest_opset(domain) is None:
        return OLDEST_IR_OF_IMPORTS
    return first_ir_of(domain, version) or NEWEST_IR


class _Types:
    """The features of types, each computed once: a model has the same few types in many places."""

    def __init__(self, *, is_ml: bool) -> None:
        self._is_ml = is_ml
        self._found: dict[Type, tuple[Feature, ...]] = {}

    def features(self, kind: Type | None) -> tuple[Feature, ...]:
        if kind is None:
            return ()
        found = self._found.get(kind)
        if found is None:
            elements = (feature for e in elements_of_type(kind) for feature in _of_element(e))
            found = self._found[kind] = (*features_of_type(kind, is_ml=self._is_ml), *elements)
        return found


def _of_element(element: ElementType) -> Iterable[Feature]:
    since = first_ir_of_element(element)
    return (Feature(element.name, since),) if since else ()


def _of_model(place: Place, _: _Types) -> Iterator[Feature]:
    if place.object.training:
        yield TRAINING
    if place.object.devices:
        yield DEVICES


def _of_function(place: Place, _: _Types) -> Iterator[Feature]:
    yield from features_of_function(place.object)
    if any(value.value_info_index is not None for value in place.object.graph.defined()):
        yield VALUE_INFO


def _of_graph(place: Place, _: _Types) -> Iterator[Feature]:
    graph: Graph = place.object
    yield from features_of_graph(graph)
    is_body = place.outer is not None and isinstance(place.outer.object, Function)
    if graph.initializers and not is_body:
        inputs = set(graph.inputs)
        if any(value not in inputs for value in graph.initializers):
            yield CONSTANTS


def _of_value(place: Place, types: _Types) -> Iterator[Feature]:
    value: Value = place.object
    if place.step == "value_info":  # of no value of the graph: no reader needs it
        return
    if value.metadata:
        yield from features_of_value(value)
    yield from types.features(value.type)
    if place.step == "initializer" and isinstance(value.constant, SparseTensor):
        yield SPARSE


def _of_node(place: Place, _: _Types) -> Iterable[Feature]:
    node: Node = place.object
    return features_of_node(node) if node.overload or node.metadata or node.devices else ()


def _of_attribute(place: Place, types: _Types) -> Iterator[Feature]:
    attribute: Attribute = place.object
    match attribute.type:
        case "sparse_tensor" | "sparse_tensors":
            yield SPARSE
        case "type":
            yield from types.features(attribute.value)
        case "types":
            for kind in attribute.value or ():
                yield from types.features(kind)
        case _:
            pass


def _of_tensor(place: Place, _: _Types) -> Iterator[Feature]:
    if isinstance(place.object, Tensor):
        yield from features_of_tensor(place.object)
        yield from _of_element(place.object.element)


_READERS: dict[type, Callable[[Place, Any], Iterable[Feature]]] = {
    Model: _of_model,
    Function: _of_function,
    Graph: _of_graph,
    Value: _of_value,
    Node: _of_node,
    Attribute: _of_attribute,
}
