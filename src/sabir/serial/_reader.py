"""From messages to models and functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sabir.base import WireError, quote
from sabir.ir import (
    MAGIC,
    DeviceConfiguration,
    Function,
    Graph,
    Model,
    NameScope,
    OperatorEntry,
    OperatorSet,
    TrainingInfo,
    Value,
)
from sabir.proto import Bulk, DeviceConfigurationProto
from sabir.serial._graph_reader import GraphReader
from sabir.serial._residues import names, texts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sabir.ir import Buffer

_FUNCTION_TEXTS = ("name", "domain", "overload", "doc_string")
_MODEL_TEXTS = ("producer_name", "producer_version", "domain", "doc_string")
_MODEL_FIELDS = (*_MODEL_TEXTS, "ir_version", "model_version")
_SET_TEXTS = ("domain", "ir_version_prerelease", "ir_build_metadata", "doc_string")
_SET_FIELDS = (*_SET_TEXTS, "ir_version", "opset_version")
_ENTRY_TEXTS = ("op_type", "doc_string")
_ENTRY_FIELDS = (*_ENTRY_TEXTS, "since_version")


def read_model_message(proto: Any, bulk: Bulk, opener: Callable[[Mapping[str, str], int], Buffer]) -> Model:
    """Return the model of a `ModelProto`; `opener` finds the data of external tensors.

    Raises WireError for a message that no model object can represent.
    """
    reader = GraphReader(proto, bulk, opener)
    producer, producer_version, domain, doc = texts(proto, *_MODEL_TEXTS)
    collector = reader.residue_of(proto)
    metadata, opsets = collector.pairs("metadata_props"), collector.opsets()
    scope = NameScope()
    graph = reader.graph(proto.graph, scope) if proto.HasField("graph") else Graph()
    if not proto.HasField("graph"):
        collector.absent("graph")
    return Model(
        graph,
        opsets,
        proto.ir_version,
        [read_function(f, reader) for f in proto.functions],
        producer,
        producer_version,
        domain,
        proto.model_version,
        doc,
        metadata,
        [_training(t, scope, reader) for t in proto.training_info],
        [_device(d) for d in proto.configuration],
        collector.residue(_MODEL_FIELDS),
    )


def read_function(proto: Any, reader: GraphReader) -> Function:
    """Return the function of a `FunctionProto`, whose body `reader` reads."""
    name, domain, overload, doc = texts(proto, *_FUNCTION_TEXTS)
    collector = reader.residue_of(proto)
    graph, attributes = reader.body(proto, name, collector)
    graph.doc, graph.metadata = doc, collector.pairs("metadata_props")
    opsets = collector.opsets()
    return Function(name, domain, overload, graph, attributes, opsets, collector.residue(_FUNCTION_TEXTS))


def read_operator_set_message(
    proto: Any, bulk: Bulk, opener: Callable[[Mapping[str, str], int], Buffer]
) -> OperatorSet:
    """Return the operator set of an `OperatorSetProto`; `opener` finds the data of external tensors.

    Raises WireError for a message that is no operator set: with another magic, or with nothing of one.
    """
    (magic,) = texts(proto, "magic")
    if magic != MAGIC and proto.HasField("magic"):
        raise WireError(f"no operator set: its magic is {quote(magic)}, and must be {quote(MAGIC)}")
    if not (magic or proto.HasField("opset_version") or proto.operator or proto.functions):
        raise WireError(f"no operator set: it has no magic ({quote(MAGIC)}), no version and no operators")
    reader = GraphReader(proto, bulk, opener)
    domain, ir_prerelease, ir_build, doc = texts(proto, *_SET_TEXTS)
    collector = reader.residue_of(proto)
    if not magic:
        collector.absent("magic")
    return OperatorSet(
        domain,
        proto.opset_version,
        [_entry(operator, reader) for operator in proto.operator],
        [read_function(function, reader) for function in proto.functions],
        proto.ir_version,
        ir_prerelease,
        ir_build,
        doc,
        collector.residue(_SET_FIELDS),
    )


def _entry(proto: Any, reader: GraphReader) -> OperatorEntry:
    name, doc = texts(proto, *_ENTRY_TEXTS)
    collector = reader.residue_of(proto)
    if not proto.HasField("status"):
        collector.absent("status")
    status = "stable" if proto.status else "experimental"
    return OperatorEntry(name, proto.since_version, status, doc, collector.residue(_ENTRY_FIELDS))


def _training(proto: Any, main: NameScope, reader: GraphReader) -> TrainingInfo:
    def graph(field: str) -> tuple[Graph | None, NameScope]:
        scope = NameScope(main)
        return (reader.graph(getattr(proto, field), scope) if proto.HasField(field) else None), scope

    initialization, first = graph("initialization")
    algorithm, second = graph("algorithm")
    collector = reader.residue_of(proto)

    def pairs(field: str, source: NameScope) -> list[tuple[Value, Value]]:
        listed = collector.listed(field)
        return [(second.read(k) or Value(), source.read(v) or Value()) for k, v in listed]

    return TrainingInfo(
        initialization,
        algorithm,
        pairs("initialization_binding", first),
        pairs("update_binding", second),
        collector.residue(),
    )


def _device(proto: Any) -> DeviceConfiguration:
    (name,) = texts(proto, "name")
    devices = tuple(names(proto.device, "device"))
    plain = DeviceConfigurationProto(name=name, num_devices=proto.num_devices, device=devices)
    wire = proto.SerializeToString()
    return DeviceConfiguration(
        name, proto.num_devices, devices, b"" if plain.SerializeToString() == wire else wire
    )
