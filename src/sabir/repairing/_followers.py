"""What holds the name of a value and not the value itself, and so must follow when it is renamed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sabir.proto import NodeDeviceConfigurationProto

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from sabir.checking import GraphSite
    from sabir.ir import Graph, Node, NodeDevice

Renamed = dict["Graph", dict[str, str]]  # new names by old ones, of the values of each graph


def follow(root: GraphSite, renamed: Renamed) -> None:
    """Put the new names into leftover descriptions, layouts of nodes, and attributes that name values."""
    for site in root.within():
        graph, names = site.graph, renamed[site.graph]
        for value in graph.orphan_value_info:
            value.name = names.get(value.name, value.name)
        for value, info in graph.output_infos.values():
            info.name = value.name
        for node in site.nodes:
            if node.devices:
                node.devices = tuple(_layout(d, names) for d in node.devices)
            if node.attributes:
                version = site.scope.version(node)
                naming = [a.name for a in version.attributes if a.names_values] if version else ()
                _attributes(node, naming, lambda name, s=site: _looked_up(name, s, renamed))


def _layout(device: NodeDevice, names: dict[str, str]) -> NodeDevice:
    shardings = tuple(
        s._replace(name=names.get(s.name, s.name) if s.value is None else s.value.name)
        for s in device.shardings
    )
    wire = device.wire
    if wire:
        proto = NodeDeviceConfigurationProto.FromString(wire)
        for sharding, held in zip(shardings, proto.sharding_spec, strict=True):
            if held.tensor_name != sharding.name:
                held.tensor_name = sharding.name
        wire = proto.SerializeToString()
    return device._replace(shardings=shardings, wire=wire)


def _attributes(node: Node, naming: Iterable[str], new_name: Callable[[str], str]) -> None:
    for key in naming:
        attribute = node.attributes.get(key)
        if attribute is None or not attribute.value:
            continue
        many = isinstance(attribute.value, tuple)
        listed: tuple[Any, ...] = attribute.value if many else (attribute.value,)
        names = tuple(new_name(n) if isinstance(n, str) else n for n in listed)
        node.attributes[key] = replace(attribute, value=names if many else names[0])


def _looked_up(name: str, site: GraphSite, renamed: Renamed) -> str:
    """Return what a name that is seen from a graph is now: that of the innermost graph which gives it."""
    for graph in _around(site, renamed):
        new = renamed[graph].get(name)
        if new is not None:
            return new
        if any(v.name == name for v in graph.defined()):
            return name
    return name


def _around(site: GraphSite, renamed: Renamed) -> Iterator[Graph]:
    """Yield a graph and those around it; around a training graph stands the main graph, which came first."""
    yield site.graph
    outer, outermost = site.outer, site
    while outer is not None:
        yield outer.graph
        outer, outermost = outer.outer, outer
    if outermost.kind in {"initialization", "algorithm"}:
        yield next(iter(renamed))
