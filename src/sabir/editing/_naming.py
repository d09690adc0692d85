"""New names of values, in the values and in all that refers to them by name."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sabir.rewriting import enclosing
from sabir.schema import Scope

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sabir.ir import Graph, Model, Node, NodeDevice, Value
    from sabir.schema import Registry


def named_graphs(model: Model) -> Iterator[Graph]:
    """Yield the graphs that share their names: the main graph, those of training, and all inside them.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> [graph.name for graph in named_graphs(model)]
    ['g']
    """
    bodies = {function.graph for function in model.functions}
    for root in model.graphs():
        if root not in bodies:
            yield from root.scopes()


def named_values(model: Model) -> Iterator[Value]:
    """Yield what these graphs define, and the values that only descriptions in the file name.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> [value.name for value in named_values(model)]
    ['x', 'y']
    """
    for graph in named_graphs(model):
        yield from graph.defined()
        yield from graph.orphan_value_info


class NamingAttributes:
    """The attributes of a model that name values, such as those of Gradient, with the values they mean.

    >>> from sabir.opsets import STANDARD
    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21, "ai.onnx.preview.training" : 1]>
    ... g (float x) => (float d) {
    ...     y = Mul (x, x)
    ...     d = ai.onnx.preview.training.Gradient <xs = ["x"], y = "y"> (x)
    ... }''')
    >>> naming = NamingAttributes(model, STANDARD)
    >>> model.graph[0].output.name = 'square'
    >>> naming.write()
    >>> model.graph[1].attributes['y'].value
    'square'
    """

    def __init__(self, model: Model, registry: Registry) -> None:
        """Find them, by the names that values have now."""
        scope, values = Scope.of(model, registry), _Values(model)
        self._found: list[tuple[Node, str, tuple[Value | str, ...]]] = []
        for node in (node for graph in named_graphs(model) for node in graph):
            if not any(a.type in {"string", "strings"} and a.value for a in node.attributes.values()):
                continue
            version = scope.version(node)
            for key in [a.name for a in version.attributes if a.names_values] if version else ():
                attribute = node.attributes.get(key)
                if attribute is not None and attribute.value:
                    names = attribute.value if attribute.type == "strings" else (attribute.value,)
                    self._found.append((node, key, tuple(values.find(name, node) for name in names)))

    def write(self, replaced: Mapping[Value, Value] | None = None) -> None:
        """Put the names of the values, or of those that replaced them, into the attributes."""
        for node, key, values in self._found:
            names = tuple(v if isinstance(v, str) else (replaced or {}).get(v, v).name for v in values)
            attribute = node.attributes[key]
            node.attributes[key] = replace(
                attribute, value=names if attribute.type == "strings" else names[0]
            )


class _Values:
    """The values of a model by name, as a node of one of its graphs sees them."""

    def __init__(self, model: Model) -> None:
        self._main = model.graph
        self._by_name: dict[Graph, dict[str, Value]] = {}

    def find(self, name: str, node: Node) -> Value | str:
        """Return the value of a name, or the name where there is none; training sees the main graph."""
        for graph in (*enclosing(node.graph), self._main):
            if graph not in self._by_name:
                self._by_name[graph] = {v.name: v for v in graph.defined()}
            value = self._by_name[graph].get(name)
            if value is not None:
                return value
        return name


def put_names(model: Model, names: Mapping[Value, str]) -> None:
    """Give values of `named_values` other names; descriptions and device layouts follow.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> put_names(model, {model.graph.inputs[0]: 'image'})
    >>> print(model.graph[0])
    y = Relu (image)
    """
    for value, name in names.items():
        value.name = name
    for graph in named_graphs(model):
        for value, info in graph.output_infos.values():
            info.name = value.name
        for node in graph:
            if node.devices:
                node.devices = tuple(_with_names(device) for device in node.devices)


def _with_names(device: NodeDevice) -> NodeDevice:
    """Return a device layout in which each value has its name; a save does the same in its bytes."""
    return device._replace(
        shardings=tuple(s if s.value is None else s._replace(name=s.value.name) for s in device.shardings)
    )
