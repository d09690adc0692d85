"""From messages to the model objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.protobuf.message import Message

from sabir.base import TextError, check_depth, check_time, limits_in_force
from sabir.ir import (
    Annotation,
    Attribute,
    DeviceConfiguration,
    ExternalTensor,
    Function,
    Graph,
    Model,
    NameScope,
    Node,
    SparseTensor,
    Tensor,
    TrainingInfo,
    Value,
    WireTensor,
)
from sabir.proto import Bulk, DeviceConfigurationProto, TensorProto, has_unknown
from sabir.serial._attributes import AttributeReader
from sabir.serial._devices import read_node_devices
from sabir.serial._residues import Leftovers, names, texts
from sabir.serial._types import TypeReader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from sabir.ir import Buffer

_EXTERNAL: int = TensorProto.EXTERNAL
_FUNCTION_TEXTS = ("name", "domain", "overload", "doc_string")
_NODE_TEXTS = ("name", "op_type", "domain", "overload", "doc_string")
_MODEL_TEXTS = ("producer_name", "producer_version", "domain", "doc_string")
_MODEL_FIELDS = (*_MODEL_TEXTS, "ir_version", "model_version")


class Reader:
    """Builds one model from its message; `opener` finds the data of external tensors."""

    def __init__(self, proto: Any, bulk: Bulk, opener: Callable[[Mapping[str, str], int], Buffer]) -> None:
        self._proto, self._bulk, self._opener = proto, bulk, opener
        self._unknown = has_unknown(proto)
        self._types = TypeReader()
        self._scope: NameScope | None = None
        self._depth = 0
        self._timed = limits_in_force().seconds is not None
        self._attributes = AttributeReader(
            tensor=self.tensor, sparse=self._sparse, graph=self._subgraph, type_=self._types.read,
            solid=self._solid, unknown=self._unknown,
        )  # fmt: skip

    def model(self) -> Model:
        """Return the model; raises WireError for what no model object can hold."""
        proto = self._proto
        producer, producer_version, domain, doc = texts(proto, *_MODEL_TEXTS)
        left = self._leftovers(proto)
        metadata, opsets = left.pairs("metadata_props"), left.opsets()
        scope = NameScope()
        graph = self._graph(proto.graph, scope) if proto.HasField("graph") else Graph()
        if not proto.HasField("graph"):
            left.absent("graph")
        return Model(
            graph,
            opsets,
            proto.ir_version,
            [self._function(f) for f in proto.functions],
            producer,
            producer_version,
            domain,
            proto.model_version,
            doc,
            metadata,
            [self._training(t, scope) for t in proto.training_info],
            [self._device(d) for d in proto.configuration],
            left.residue(_MODEL_FIELDS),
        )

    def _leftovers(self, proto: Any) -> Leftovers:
        return Leftovers(proto, unknown=self._unknown)

    # graphs

    def _subgraph(self, proto: Any) -> Graph:
        return self._graph(proto, NameScope(self._scope))

    def _graph(self, proto: Any, scope: NameScope) -> Graph:
        outer, self._scope = self._scope, scope
        self._depth += 1
        check_depth(self._depth)
        name, doc = texts(proto, "name", "doc_string")
        graph = Graph(name)
        graph.doc = doc
        for info in proto.input:
            graph.inputs.append(self._described(info, scope.define(info.name)))
        self._initializers(proto, graph, scope)
        for node in proto.node:
            graph.append(self._node(node, scope))
        self._outputs(proto.output, graph, scope)
        self._value_info(proto.value_info, graph, scope, graph.inputs)
        self._annotate(proto, graph, scope)
        scope.close()
        graph.clashes = scope.clashes
        self._scope = outer
        self._depth -= 1
        return graph

    def _initializers(self, proto: Any, graph: Graph, scope: NameScope) -> None:
        for tensor in proto.initializer:
            self._initialize(graph, scope, tensor.name, self.tensor(tensor))
        for sparse in proto.sparse_initializer:
            self._initialize(graph, scope, sparse.values.name, self._sparse(sparse))

    def _initialize(self, graph: Graph, scope: NameScope, name: Any, tensor: Tensor | SparseTensor) -> None:
        if type(name) is not str:
            raise TextError("an initializer's name is not UTF-8")
        value = scope.own(name)
        if value is None or value in graph.initializers:
            value = scope.define(name)
        graph.set_initializer(value, tensor)

    def _outputs(self, infos: Iterable[Any], graph: Graph, scope: NameScope) -> None:
        """Read the outputs; what is said of a value that is described already is kept beside it."""
        described = set(graph.inputs)
        for info in infos:
            value = scope.read(info.name) or Value()
            if value in described or scope.own(info.name) is not value:
                graph.output_infos[len(graph.outputs)] = (value, self._described(info, Value()))
            else:
                described.add(self._described(info, value))
            graph.outputs.append(value)

    def _value_info(
        self, infos: Iterable[Any], graph: Graph, scope: NameScope, inputs: Iterable[Value] = ()
    ) -> None:
        """Read what is told of values; what is told of the `inputs`, and of typed outputs, is only kept."""
        infos_apart = graph.output_infos
        outputs = {v: i for i, v in enumerate(graph.outputs) if v is not None and i not in infos_apart}
        taken = {*inputs, *(v for v in outputs if v.type is not None)}
        stale: list[Value] = []
        for place, info in enumerate(infos):
            value = scope.own(info.name)
            if value is None or value.value_info_index is not None or value in taken:
                value = Value()
                stale.append(value)
            elif value in outputs:
                graph.output_infos[outputs[value]] = (value, _description(value))
            value.value_info_index = place
            self._described(info, value)
        graph.orphan_value_info = tuple(stale)

    def _annotate(self, proto: Any, graph: Graph, scope: NameScope) -> None:
        left = self._leftovers(proto)
        graph.metadata = left.pairs("metadata_props")
        graph.residue = left.residue(("name", "doc_string"))
        if proto.quantization_annotation:
            graph.annotations = tuple(self._annotation(a, scope) for a in proto.quantization_annotation)

    def _annotation(self, proto: Any, scope: NameScope) -> Annotation:
        value = scope.read(*texts(proto, "tensor_name")) or Value()
        left = self._leftovers(proto)
        pairs = left.listed("quant_parameter_tensor_names")
        parameters = tuple((key, scope.read(name) or Value()) for key, name in pairs)
        return Annotation(value, parameters, left.residue(("tensor_name",)))

    def _described(self, info: Any, value: Value) -> Value:
        """Give a value the type, doc string and metadata of a `ValueInfoProto`."""
        value.name, value.doc = texts(info, "name", "doc_string")
        value.type = self._types.read(info.type) if info.HasField("type") else None
        left = self._leftovers(info)
        value.metadata = left.pairs("metadata_props")
        if value.type is None and info.HasField("type"):
            left.keep(_only_type(info))
        value.residue = left.residue(("name", "doc_string"))
        return value

    # nodes

    def _node(self, proto: Any, scope: NameScope) -> Node:
        if self._timed:
            check_time()
        name, op, domain, overload, doc = texts(proto, *_NODE_TEXTS)
        inputs = [scope.read(n) for n in proto.input]
        left = self._leftovers(proto)
        attributes = self._read_attributes(proto, left) if proto.attribute else None
        outputs = [scope.define(n) if n else None for n in proto.output]
        node = Node(op, inputs, outputs, attributes, domain=domain, name=name, overload=overload)
        node.doc = doc
        if proto.metadata_props:
            node.metadata = left.pairs("metadata_props")
        if proto.device_configurations:
            node.devices = read_node_devices(proto, node)
        node.residue = left.residue(_NODE_TEXTS)
        return node

    def _read_attributes(self, proto: Any, left: Leftovers) -> dict[str, Attribute]:
        found: dict[str, Attribute] = {}
        again: dict[int, tuple[str, Any]] = {}
        for place, a in enumerate(proto.attribute):
            attribute = self._attributes.read(a)
            if attribute.name in found:
                again[place] = attribute.name, self._solid(a)
            else:
                found[attribute.name] = attribute
        left.keep_again("attribute", again)
        return found

    # tensors

    def tensor(self, proto: Any) -> Tensor:
        """Return a tensor over its message; nothing is decoded or copied."""
        if proto.data_location == _EXTERNAL:
            return ExternalTensor(self._solid(proto) if proto.HasField("raw_data") else proto, self._opener)
        if not len(self._bulk):
            return WireTensor(proto)
        raw = proto.raw_data
        view = self._bulk.get(raw)
        return WireTensor(proto, None if view is raw else view)

    def _sparse(self, proto: Any) -> SparseTensor:
        whole = not self._unknown and proto.values.ByteSize() and proto.indices.ByteSize()
        wire = b"" if whole else _sparse_frame(proto)
        return SparseTensor(self.tensor(proto.values), self.tensor(proto.indices), tuple(proto.dims), wire)

    def _solid(self, message: Any) -> Any:
        """Return a copy of a message that holds its bulk data itself, as bytes that are kept must."""
        made = type(message)()
        made.CopyFrom(message)
        pending = [made] if len(self._bulk) else []
        while pending:
            one = pending.pop()
            if isinstance(one, TensorProto):
                if one.HasField("raw_data"):
                    one.raw_data = bytes(self._bulk.get(one.raw_data))
                continue
            for field, value in one.ListFields():
                if field.message_type is not None:
                    pending.extend([value] if isinstance(value, Message) else value)
        return made

    # the rest of a model

    def _function(self, proto: Any) -> Function:
        name, domain, overload, doc = texts(proto, "name", "domain", "overload", "doc_string")
        scope = NameScope()
        outer, self._scope = self._scope, scope
        graph = Graph(name)
        graph.doc = doc
        for n in names(proto.input, "input"):
            graph.inputs.append(scope.define(n))
        for node in proto.node:
            graph.append(self._node(node, scope))
        self._value_info(proto.value_info, graph, scope)
        for n in names(proto.output, "output"):
            graph.outputs.append(scope.read(n))
        left = self._leftovers(proto)
        graph.metadata = left.pairs("metadata_props")
        opsets = left.opsets()
        attributes = self._parameters(proto, left)
        graph.clashes = scope.clashes
        self._scope = outer
        return Function(name, domain, overload, graph, attributes, opsets, left.residue(_FUNCTION_TEXTS))

    def _parameters(self, proto: Any, left: Leftovers) -> dict[str, Attribute | None]:
        """Return the attributes of a function; one that has a default and is listed without has it."""
        defaults: dict[str, Attribute] = {}
        again: dict[int, tuple[str, Any]] = {}
        for place, a in enumerate(proto.attribute_proto):
            attribute = self._attributes.read(a)
            if attribute.name in defaults:
                again[place] = attribute.name, self._solid(a)
            else:
                defaults[attribute.name] = attribute
        found: dict[str, Attribute | None] = {}
        listed: dict[int, tuple[str, Any]] = {}
        for place, name in enumerate(names(proto.attribute, "attribute")):
            if name in found or name in defaults:
                listed[place] = name, name
            else:
                found[name] = None
        left.keep_again("attribute", listed)
        left.keep_again("attribute_proto", again)
        return {**found, **defaults}

    def _training(self, proto: Any, main: NameScope) -> TrainingInfo:
        def graph(field: str) -> tuple[Graph | None, NameScope]:
            scope = NameScope(main)
            return (self._graph(getattr(proto, field), scope) if proto.HasField(field) else None), scope

        initialization, first = graph("initialization")
        algorithm, second = graph("algorithm")

        left = self._leftovers(proto)

        def pairs(field: str, source: NameScope) -> list[tuple[Value, Value]]:
            read = left.listed(field)
            return [(second.read(k) or Value(), source.read(v) or Value()) for k, v in read]

        return TrainingInfo(
            initialization,
            algorithm,
            pairs("initialization_binding", first),
            pairs("update_binding", second),
            left.residue(),
        )

    def _device(self, proto: Any) -> DeviceConfiguration:
        (name,) = texts(proto, "name")
        devices = tuple(names(proto.device, "device"))
        plain = DeviceConfigurationProto(name=name, num_devices=proto.num_devices, device=devices)
        wire = proto.SerializeToString()
        return DeviceConfiguration(
            name, proto.num_devices, devices, b"" if plain.SerializeToString() == wire else wire
        )


def _description(value: Value) -> Value:
    """What an output says of its value, apart from it."""
    made = Value(value.name, value.type)
    made.doc, made.metadata, made.residue = value.doc, value.metadata, value.residue
    return made


def _sparse_frame(proto: Any) -> bytes:
    """The wire bytes of a `SparseTensorProto` without its tensors: which it has, and unknown fields."""
    frame = type(proto)()
    frame.CopyFrom(proto)
    for field in ("values", "indices"):
        if proto.HasField(field):
            frame.ClearField(field)
            getattr(frame, field).SetInParent()
    frame.ClearField("dims")
    return frame.SerializeToString()


def _only_type(info: Any) -> Any:
    """A `ValueInfoProto` of nothing but a type, one which says nothing."""
    alone = type(info)()
    alone.type.CopyFrom(info.type)
    return alone
