"""From messages to the model objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sabir.base import WireError
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
from sabir.proto import Bulk, TensorProto, has_unknown
from sabir.serial._attributes import AttributeReader
from sabir.serial._devices import read_node_devices
from sabir.serial._residues import OPSETS, names, read_entries, residue_of, texts
from sabir.serial._types import TypeReader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from sabir.ir import Buffer

_DEEPEST_GRAPH = 32
_EXTERNAL: int = TensorProto.EXTERNAL
_FUNCTION_FIELDS = ("name", "domain", "overload", "doc_string", OPSETS)
_BINDINGS = ("initialization_binding", "update_binding")
_NODE_TEXTS = ("name", "op_type", "domain", "overload", "doc_string")
_MODEL_TEXTS = ("producer_name", "producer_version", "domain", "doc_string")
_MODEL_FIELDS = (*_MODEL_TEXTS, "ir_version", "model_version", OPSETS)


class Reader:
    """Builds one model from its message; `opener` finds the data of external tensors."""

    def __init__(self, proto: Any, bulk: Bulk, opener: Callable[[Mapping[str, str], int], Buffer]) -> None:
        self._proto, self._bulk, self._opener = proto, bulk, opener
        self._unknown = has_unknown(proto)
        self._types = TypeReader()
        self._scope: NameScope | None = None
        self._depth = 0
        self._attributes = AttributeReader(
            tensor=self.tensor, sparse=self._sparse, graph=self._subgraph, type_=self._types.read,
            unknown=self._unknown,
        )  # fmt: skip

    def model(self) -> Model:
        """Return the model; raises WireError for what no model object can hold."""
        proto = self._proto
        producer, producer_version, domain, doc = texts(proto, *_MODEL_TEXTS)
        metadata, wire, repeated = read_entries(proto, "metadata_props")
        opsets, more_wire, more_repeated = _read_opsets(proto)
        scope = NameScope()
        graph = self._graph(proto.graph, scope) if proto.HasField("graph") else Graph()
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
            residue_of(
                proto,
                _MODEL_FIELDS,
                unknown=self._unknown,
                wire=wire + more_wire,
                repeated=(*repeated, *more_repeated),
                lists=(OPSETS,),
            ),
        )

    # graphs

    def _subgraph(self, proto: Any) -> Graph:
        return self._graph(proto, NameScope(self._scope))

    def _graph(self, proto: Any, scope: NameScope) -> Graph:
        outer, self._scope = self._scope, scope
        self._depth += 1
        if self._depth > _DEEPEST_GRAPH:
            raise WireError(f"graphs are nested deeper than {_DEEPEST_GRAPH}")
        name, doc = texts(proto, "name", "doc_string")
        graph = Graph(name)
        graph.doc = doc
        for info in proto.input:
            graph.inputs.append(self._described(info, scope.define(info.name)))
        self._initializers(proto, graph, scope)
        for node in proto.node:
            graph.append(self._node(node, scope))
        self._outputs(proto.output, graph, scope)
        self._value_info(proto.value_info, graph, scope)
        self._annotate(proto, graph, scope)
        scope.close()
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
            raise WireError("an initializer's name is not UTF-8")
        value = scope.own(name)
        if value is None or value in graph.initializers:
            value = scope.define(name)
        graph.set_initializer(value, tensor)

    def _outputs(self, infos: Iterable[Any], graph: Graph, scope: NameScope) -> None:
        """Read the outputs; where one says other than its value does, what it says stays in the residue."""
        for info in infos:
            value = scope.read(info.name) or Value()
            told = value.type is not None or bool(value.doc) or value.residue is not None
            if told or scope.own(info.name) is not value:
                graph.output_infos[len(graph.outputs)] = (value, info.SerializeToString())
            else:
                self._described(info, value)
            graph.outputs.append(value)

    def _value_info(self, infos: Iterable[Any], graph: Graph, scope: NameScope) -> None:
        stale: list[Value] = []
        for place, info in enumerate(infos):
            value = scope.own(info.name)
            if value is None or value.info is not None or value.type is not None:
                value = Value()
                stale.append(value)
            value.info = place
            self._described(info, value)
        graph.stale = tuple(stale)

    def _annotate(self, proto: Any, graph: Graph, scope: NameScope) -> None:
        graph.metadata, wire, repeated = read_entries(proto, "metadata_props")
        graph.residue = residue_of(
            proto, ("name", "doc_string"), unknown=self._unknown, wire=wire, repeated=repeated
        )  # fmt: skip
        if proto.quantization_annotation:
            graph.annotations = tuple(self._annotation(a, scope) for a in proto.quantization_annotation)

    def _annotation(self, proto: Any, scope: NameScope) -> Annotation:
        value = scope.read(*texts(proto, "tensor_name")) or Value()
        pairs = [texts(p, "key", "value") for p in proto.quant_parameter_tensor_names]
        parameters = tuple((key, scope.read(name) or Value()) for key, name in pairs)
        residue = residue_of(
            proto, ("tensor_name",), unknown=self._unknown, lists=("quant_parameter_tensor_names",)
        )
        return Annotation(value, parameters, residue)

    def _described(self, info: Any, value: Value) -> Value:
        """Give a value the type, doc string and metadata of a `ValueInfoProto`."""
        value.name, value.doc = texts(info, "name", "doc_string")
        if info.HasField("type"):
            value.type = self._types.read(info.type)
        value.metadata, wire, repeated = read_entries(info, "metadata_props")
        odd = value.type is None and info.HasField("type")
        value.residue = residue_of(
            info, ("name", "doc_string"), unknown=self._unknown, repeated=repeated,
            wire=wire + (_only_type(info) if odd else b""),
        )  # fmt: skip
        return value

    # nodes

    def _node(self, proto: Any, scope: NameScope) -> Node:
        name, op, domain, overload, doc = texts(proto, *_NODE_TEXTS)
        inputs = [scope.read(n) for n in proto.input]
        attributes, wire, repeated = self._read_attributes(proto)
        outputs = [scope.define(n) if n else None for n in proto.output]
        node = Node(op, inputs, outputs, attributes, domain=domain, name=name, overload=overload)
        node.doc = doc
        if proto.metadata_props:
            node.metadata, more, again = read_entries(proto, "metadata_props")
            wire, repeated = wire + more, (*repeated, *again)
        if proto.device_configurations:
            node.devices = read_node_devices(proto, node)
        if self._unknown or wire or repeated or _any_empty(proto, name, domain, overload, doc):
            node.residue = residue_of(proto, _NODE_TEXTS, unknown=self._unknown, wire=wire, repeated=repeated)
        return node

    def _read_attributes(self, proto: Any) -> tuple[dict[str, Attribute] | None, bytes, tuple[str, ...]]:
        held = proto.attribute
        if not held:
            return None, b"", ()
        found: dict[str, Attribute] = {}
        again, repeated = type(proto)(), list[str]()
        for a in held:
            attribute = self._attributes.read(a)
            if attribute.name in found:
                again.attribute.add().CopyFrom(a)
                repeated.append(attribute.name)
            else:
                found[attribute.name] = attribute
        return found, again.SerializeToString() if repeated else b"", tuple(repeated)

    # tensors

    def tensor(self, proto: Any) -> Tensor:
        """Return a tensor over its message; nothing is decoded or copied."""
        if proto.data_location == _EXTERNAL:
            return ExternalTensor(proto, self._opener)
        if not len(self._bulk):
            return WireTensor(proto)
        raw = proto.raw_data
        view = self._bulk.get(raw)
        return WireTensor(proto, None if view is raw else view)

    def _sparse(self, proto: Any) -> SparseTensor:
        wire = proto.SerializeToString() if self._unknown else b""
        return SparseTensor(self.tensor(proto.values), self.tensor(proto.indices), tuple(proto.dims), wire)

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
        for n in names(proto.output, "output"):
            graph.outputs.append(scope.read(n))
        self._value_info(proto.value_info, graph, scope)
        graph.metadata, wire, repeated = read_entries(proto, "metadata_props")
        opsets, more, again = _read_opsets(proto)
        attributes: dict[str, Attribute | None] = dict.fromkeys(names(proto.attribute, "attribute"))
        attributes.update({a.name: a for a in map(self._attributes.read, proto.attribute_proto)})
        self._scope = outer
        residue = residue_of(
            proto, _FUNCTION_FIELDS, unknown=self._unknown, wire=wire + more, repeated=(*repeated, *again),
            lists=(OPSETS,),
        )  # fmt: skip
        return Function(name, domain, overload, graph, attributes, opsets, residue)

    def _training(self, proto: Any, main: NameScope) -> TrainingInfo:
        def graph(field: str) -> tuple[Graph | None, NameScope]:
            scope = NameScope(main)
            return (self._graph(getattr(proto, field), scope) if proto.HasField(field) else None), scope

        initialization, first = graph("initialization")
        algorithm, second = graph("algorithm")

        def pairs(field: str, source: NameScope) -> list[tuple[Value, Value]]:
            read = [texts(p, "key", "value") for p in getattr(proto, field)]
            return [(second.read(k) or Value(), source.read(v) or Value()) for k, v in read]

        return TrainingInfo(
            initialization,
            algorithm,
            pairs("initialization_binding", first),
            pairs("update_binding", second),
            residue_of(proto, unknown=self._unknown, lists=_BINDINGS),
        )

    def _device(self, proto: Any) -> DeviceConfiguration:
        (name,) = texts(proto, "name")
        return DeviceConfiguration(
            name, proto.num_devices, tuple(names(proto.device, "device")), proto.SerializeToString()
        )


def _any_empty(proto: Any, name: str, domain: str, overload: str, doc: str) -> bool:
    """Whether a node has a text that is there and empty; spelled out, as this runs for every node."""
    return bool(
        (not name and proto.HasField("name"))
        or (not domain and proto.HasField("domain"))
        or (not doc and proto.HasField("doc_string"))
        or (not overload and proto.HasField("overload"))
    )


def _read_opsets(proto: Any) -> tuple[dict[str, int], bytes, tuple[str, ...]]:
    """Return the imports by domain; what imports a domain again is returned as wire bytes and by name."""
    found: dict[str, int] = {}
    again, repeated = type(proto)(), list[str]()
    for entry in proto.opset_import:
        (domain,) = texts(entry, "domain")
        if domain in found:
            again.opset_import.add().CopyFrom(entry)
            repeated.append(domain)
        else:
            found[domain] = entry.version
    return found, again.SerializeToString() if repeated else b"", tuple(repeated)


def _only_type(info: Any) -> bytes:
    """The wire bytes of a `ValueInfoProto` that has a type which says nothing."""
    alone = type(info)()
    alone.type.CopyFrom(info.type)
    return alone.SerializeToString()
