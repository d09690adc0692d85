"""References to values by name, which must change when the values are renamed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sabir.proto import NodeDeviceConfigurationProto

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from sabir.checking import GraphSite
    from sabir.ir import Graph, Node, NodeDevice

NewNames = dict["Graph", dict[str, str]]  # of the values of each graph, by old name


def update_references(root: GraphSite, new_names: NewNames) -> None:
    """Put new names of values into orphan value_info, device layouts, and attributes that name values."""
    for site in root.with_subgraphs():
        graph, names = site.graph, new_names[site.graph]
        for value in graph.orphan_value_info:
            value.name = names.get(value.name, value.name)
        for value, info in graph.output_infos.values():
            info.name = value.name
        for node in site.nodes:
            if node.devices:
                node.devices = tuple(_layout(d, names) for d in node.devices)
            if node.attributes:
                version = site.scope.version(node)
                keys = [a.name for a in version.attributes if a.names_values] if version else ()
                _update_attributes(node, keys, lambda name, s=site: _new_name(name, s, new_names))


def _layout(device: NodeDevice, names: dict[str, str]) -> NodeDevice:
    shardings = tuple(
        s._replace(name=names.get(s.name, s.name) if s.value is None else s.value.name)
        for s in device.shardings
    )
    wire = device.wire
    if wire:
        proto = NodeDeviceConfigurationProto.FromString(wire)
        for sharding, entry in zip(shardings, proto.sharding_spec, strict=True):
            if entry.tensor_name != sharding.name:
                entry.tensor_name = sharding.name
        wire = proto.SerializeToString()
    return device._replace(shardings=shardings, wire=wire)


def _update_attributes(node: Node, keys: Iterable[str], new_name: Callable[[str], str]) -> None:
    for key in keys:
        attribute = node.attributes.get(key)
        if attribute is None or not attribute.value:
            continue
        is_list = isinstance(attribute.value, tuple)
        old: tuple[Any, ...] = attribute.value if is_list else (attribute.value,)
        new = tuple(new_name(n) if isinstance(n, str) else n for n in old)
        node.attributes[key] = replace(attribute, value=new if is_list else new[0])


def _new_name(name: str, site: GraphSite, new_names: NewNames) -> str:
    """Return the new name of the value that a name means in a graph: that of the innermost graph with it."""
    for graph in _visible_graphs(site, new_names):
        new = new_names[graph].get(name)
        if new is not None:
            return new
        if any(v.name == name for v in graph.defined()):
            return name
    return name


def _visible_graphs(site: GraphSite, new_names: NewNames) -> Iterator[Graph]:
    """Yield a graph and those around it; the main graph is around a training graph, and is the first key."""
    yield site.graph
    outer, outermost = site.outer, site
    while outer is not None:
        yield outer.graph
        outer, outermost = outer.outer, outer
    if outermost.kind in {"initialization", "algorithm"}:
        yield next(iter(new_names))
