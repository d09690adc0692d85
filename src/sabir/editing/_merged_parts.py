"""What two models have besides graphs, joined: device configurations, documentation, metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import SchemaError, quote
from sabir.editing._merged_names import Renaming
from sabir.ir import FreshNames, Node, places
from sabir.proto import NodeDeviceConfigurationProto

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sabir.ir import Model, NodeDevice


def join_devices(first: Model, second: Model) -> Iterator[Renaming]:
    """Add the device configurations of the second model; one that differs under its name is renamed."""
    own = {device.name: device for device in first.devices}
    fresh = FreshNames([*own, *(device.name for device in second.devices)])
    names: dict[str, str] = {}
    for device in second.devices:
        same = own.get(device.name)
        if same == device:
            continue
        if same is not None:
            names[device.name] = fresh.numbered(device.name)
            yield Renaming(1, "device configuration", device.name, names[device.name])
            if device.wire:
                raise SchemaError(
                    f"the device configuration {quote(device.name)} differs in the two models, and has "
                    "fields that Sabir does not know; rename it before"
                )
        first.devices.append(device._replace(name=names.get(device.name, device.name)))
    if names:
        for place in places(second, Node):
            place.object.devices = tuple(_with_configuration(d, names) for d in place.object.devices)


def _with_configuration(device: NodeDevice, names: Mapping[str, str]) -> NodeDevice:
    name = names.get(device.configuration)
    if name is None:
        return device
    wire = device.wire
    if wire:
        proto = NodeDeviceConfigurationProto.FromString(wire)
        proto.configuration_id = name
        wire = proto.SerializeToString()
    return device._replace(configuration=name, wire=wire)


def join_texts(first: Model, second: Model) -> None:
    """Join documentation and metadata; what describes one model alone is dropped where the two differ."""
    first.doc = _joined_doc(first.doc, second.doc)
    first.graph.doc = _joined_doc(first.graph.doc, second.graph.doc)
    first.graph.name = "_".join(dict.fromkeys(filter(None, (first.graph.name, second.graph.name))))
    first.metadata = _joined_metadata(first.metadata, second.metadata)
    first.graph.metadata = _joined_metadata(first.graph.metadata, second.graph.metadata)
    first.domain = first.domain if second.domain in {"", first.domain} else second.domain * (not first.domain)
    if first.version != second.version:
        first.version = 0
    if (first.producer_name, first.producer_version) != (second.producer_name, second.producer_version):
        first.producer_name = first.producer_version = ""
    first.residue = first.graph.residue = None


def _joined_doc(first: str, second: str) -> str:
    return "\n\n".join(dict.fromkeys(filter(None, (first, second))))


def _joined_metadata(
    first: Mapping[str, str] | None, second: Mapping[str, str] | None
) -> dict[str, str] | None:
    """Return the entries of both; a key with two values is numbered for the second."""
    if first is None or second is None:
        return dict(first or second or {}) or None
    fresh = FreshNames([*first, *second])
    joined = dict(first)
    for key, value in second.items():
        joined[key if joined.get(key, value) == value else fresh.numbered(key)] = value
    return joined
