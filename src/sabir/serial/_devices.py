"""Device layouts of nodes between their protobuf form and ours."""

from __future__ import annotations

from typing import Any

from sabir.ir import Dim, Node, NodeDevice, ShardedAxis, Sharding, Value, read_dim
from sabir.proto import NodeDeviceConfigurationProto
from sabir.serial._residues import texts


def read_node_devices(proto: Any, node: Node) -> tuple[NodeDevice, ...]:
    """Return the device layouts of a node."""
    values = {v.name: v for v in (*node.outputs, *node.inputs) if v is not None}
    return tuple(_read(p, values) for p in proto.device_configurations)


def _read(proto: Any, values: dict[str, Value]) -> NodeDevice:
    (configuration,) = texts(proto, "configuration_id")
    device = NodeDevice(
        configuration,
        tuple(_read_sharding(s, values) for s in proto.sharding_spec),
        proto.pipeline_stage if proto.HasField("pipeline_stage") else None,
    )
    plain = NodeDeviceConfigurationProto()
    _write(device, plain)
    # what a NodeDevice cannot represent is kept beside it as bytes
    wire = proto.SerializeToString()
    return device if plain.SerializeToString() == wire else device._replace(wire=wire)


def _read_sharding(proto: Any, values: dict[str, Value]) -> Sharding:
    (name,) = texts(proto, "tensor_name")
    return Sharding(
        values.get(name),
        name,
        tuple(proto.device),
        tuple((g.key, tuple(g.value)) for g in proto.index_to_device_group_map),
        tuple(
            ShardedAxis(a.axis, tuple((_length(p), p.num_shards) for p in a.simple_sharding))
            for a in proto.sharded_dim
        ),
    )


def _length(proto: Any) -> Dim:
    match proto.WhichOneof("dim"):
        case "dim_value":
            return proto.dim_value
        case "dim_param":
            (name,) = texts(proto, "dim_param")
            return read_dim(name) if name else None
        case _:
            return None


def write_node_device(device: NodeDevice, proto: Any, label: Any) -> None:
    """Write a device layout; `label` returns the name under which a value is saved."""
    if device.wire:
        proto.CopyFrom(NodeDeviceConfigurationProto.FromString(device.wire))
    else:
        _write(device, proto)
    for sharding, spec in zip(device.shardings, proto.sharding_spec, strict=True):
        if sharding.value is not None:
            spec.tensor_name = label(sharding.value)


def _write(device: NodeDevice, proto: Any) -> None:
    proto.configuration_id = device.configuration
    if device.pipeline_stage is not None:
        proto.pipeline_stage = device.pipeline_stage
    for sharding in device.shardings:
        spec = proto.sharding_spec.add(tensor_name=sharding.name, device=sharding.devices)
        for key, group in sharding.groups:
            spec.index_to_device_group_map.add(key=key, value=group)
        for axis in sharding.axes:
            sharded = spec.sharded_dim.add(axis=axis.axis)
            for length, shards in axis.pieces:
                piece = sharded.simple_sharding.add(num_shards=shards)
                if isinstance(length, int):
                    piece.dim_value = length
                elif length is not None:
                    piece.dim_param = str(length)
