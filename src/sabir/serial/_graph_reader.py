"""From messages to graphs, nodes and tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.protobuf.message import Message

from sabir.base import TextError, check_depth, check_time, limits_in_force
from sabir.ir import (
    Annotation,
    Attribute,
    ExternalTensor,
    Graph,
    NameScope,
    Node,
    SparseTensor,
    Tensor,
    Value,
    WireTensor,
    read_outputs,
    read_value_info,
)
from sabir.proto import SHALLOW, Bulk, TensorProto, has_shallow_unknown
from sabir.serial._attributes import AttributeReader
from sabir.serial._devices import read_node_devices
from sabir.serial._residues import ResidueCollector, TextFields, names, texts
from sabir.serial._types import TypeReader

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sabir.ir import Buffer

_EXTERNAL: int = TensorProto.EXTERNAL
_NODE_TEXTS = TextFields("name", "op_type", "domain", "overload", "doc_string")
_INFO_TEXTS = TextFields("name", "doc_string")


# a graph inside another one is three levels of messages below it; half of the levels are left for the rest
_SHALLOW_GRAPHS = SHALLOW // 2 // 3


class GraphReader:
    """Builds graphs from the messages in `root`; `opener` finds the data of external tensors."""

    def __init__(self, root: Any, bulk: Bulk, opener: Callable[[Mapping[str, str], int], Buffer]) -> None:
        self._bulk, self._opener = bulk, opener
        self._unknown = has_shallow_unknown(root)  # whether to look for unknown fields in each message
        self._types = TypeReader()
        self._scope: NameScope | None = None
        self._depth = 0
        self._timed = limits_in_force().seconds is not None
        self._attributes = AttributeReader(
            tensor=self.tensor, sparse=self.sparse, graph=self._subgraph, type_=self._types.read,
            copy=self.copy_with_data, residue_of=self.residue_of,
        )  # fmt: skip

    def residue_of(self, proto: Any) -> ResidueCollector:
        """Return what collects the residue of a message."""
        return ResidueCollector(proto, unknown=self._unknown)

    # graphs

    def graph(self, proto: Any, scope: NameScope) -> Graph:
        """Return a graph whose names are defined in `scope`."""
        outer, self._scope = self._scope, scope
        self._depth += 1
        check_depth(self._depth)
        self._unknown = self._unknown or self._depth > _SHALLOW_GRAPHS
        name, doc = texts(proto, "name", "doc_string")
        graph = Graph(name)
        graph.doc = doc
        for info in proto.input:
            graph.inputs.append(self._described(scope.define(info.name), info))
        self._initializers(proto, graph, scope)
        for node in proto.node:
            graph.append(self.node(node, scope))
        read_outputs(graph, proto.output, scope, self._described)
        read_value_info(graph, proto.value_info, scope, self._described, inputs=graph.inputs)
        self._annotate(proto, graph, scope)
        scope.close()
        graph.clashes = scope.clashes
        self._scope = outer
        self._depth -= 1
        return graph

    def body(
        self, proto: Any, name: str, collector: ResidueCollector
    ) -> tuple[Graph, dict[str, Attribute | None]]:
        """Return the body and the attributes of a `FunctionProto`; graphs in these can read its values."""
        scope = NameScope()
        outer, self._scope = self._scope, scope
        graph = Graph(name)
        for n in names(proto.input, "input"):
            graph.inputs.append(scope.define(n))
        for node in proto.node:
            graph.append(self.node(node, scope))
        read_value_info(graph, proto.value_info, scope, self._described)
        for n in names(proto.output, "output"):
            graph.outputs.append(scope.read(n))
        attributes = self._parameters(proto, collector)
        graph.clashes = scope.clashes
        self._scope = outer
        return graph, attributes

    def _parameters(self, proto: Any, collector: ResidueCollector) -> dict[str, Attribute | None]:
        """Return the attributes of a function; one in both lists has its default."""
        defaults = self.attributes(proto, "attribute_proto", collector)
        required: dict[str, Attribute | None] = {}
        duplicates: dict[int, tuple[str, Any]] = {}
        for place, name in enumerate(names(proto.attribute, "attribute")):
            if name in required or name in defaults:
                duplicates[place] = name, name
            else:
                required[name] = None
        collector.keep_duplicates("attribute", duplicates)
        return {**required, **defaults}

    def _subgraph(self, proto: Any) -> Graph:
        return self.graph(proto, NameScope(self._scope))

    def _initializers(self, proto: Any, graph: Graph, scope: NameScope) -> None:
        for tensor in proto.initializer:
            self._initialize(graph, scope, tensor.name, self.tensor(tensor))
        for sparse in proto.sparse_initializer:
            self._initialize(graph, scope, sparse.values.name, self.sparse(sparse))

    def _initialize(self, graph: Graph, scope: NameScope, name: Any, tensor: Tensor | SparseTensor) -> None:
        if type(name) is not str:
            raise TextError("an initializer's name is not UTF-8")
        value = scope.own(name)
        if value is None or value in graph.initializers:
            value = scope.define(name)
        graph.set_initializer(value, tensor)

    def _annotate(self, proto: Any, graph: Graph, scope: NameScope) -> None:
        collector = self.residue_of(proto)
        graph.metadata = collector.pairs("metadata_props")
        graph.residue = collector.residue(("name", "doc_string"))
        if proto.quantization_annotation:
            graph.annotations = tuple(self._annotation(a, scope) for a in proto.quantization_annotation)

    def _annotation(self, proto: Any, scope: NameScope) -> Annotation:
        value = scope.read(*texts(proto, "tensor_name")) or Value()
        collector = self.residue_of(proto)
        pairs = collector.listed("quant_parameter_tensor_names")
        parameters = tuple((key, scope.read(name) or Value()) for key, name in pairs)
        return Annotation(value, parameters, collector.residue(("tensor_name",)))

    def _described(self, value: Value, info: Any) -> Value:
        """Give a value the name, type, doc string and metadata of a `ValueInfoProto`."""
        value.name, value.doc = _INFO_TEXTS.of(info)
        is_typed = info.HasField("type")
        value.type = self._types.read(info.type) if is_typed else None
        collector = self.residue_of(info)
        value.metadata = collector.pairs("metadata_props")
        if is_typed and value.type is None:
            collector.keep(_only_type(info))
        value.residue = collector.residue(_INFO_TEXTS.names)
        return value

    # nodes

    def node(self, proto: Any, scope: NameScope) -> Node:
        """Return a node that is in no graph yet, over the values of `scope`."""
        if self._timed:
            check_time()
        name, op, domain, overload, doc = _NODE_TEXTS.of(proto)
        inputs = scope.read_all(proto.input[:])
        collector = self.residue_of(proto)
        attributes = self.attributes(proto, "attribute", collector) if proto.attribute else None
        outputs = tuple([scope.define(n) if n else None for n in proto.output[:]])
        node = Node.linked(op, inputs, outputs, attributes, domain=domain, name=name, overload=overload)
        node.doc = doc
        if proto.metadata_props:
            node.metadata = collector.pairs("metadata_props")
        if proto.device_configurations:
            node.devices = read_node_devices(proto, node)
        node.residue = collector.residue(_NODE_TEXTS.names)
        return node

    def attributes(self, proto: Any, field: str, collector: ResidueCollector) -> dict[str, Attribute]:
        """Return the attributes in a field by name; duplicates go to the residue."""
        found: dict[str, Attribute] = {}
        duplicates: dict[int, tuple[str, Any]] = {}
        for place, a in enumerate(getattr(proto, field)):
            attribute = self._attributes.read(a)
            if attribute.name in found:
                duplicates[place] = attribute.name, self.copy_with_data(a)
            else:
                found[attribute.name] = attribute
        collector.keep_duplicates(field, duplicates)
        return found

    def attribute(self, proto: Any) -> Attribute:
        """Return an attribute."""
        return self._attributes.read(proto)

    # tensors

    def tensor(self, proto: Any) -> Tensor:
        """Return a tensor over its message; nothing is decoded or copied."""
        if proto.data_location == _EXTERNAL:
            complete = self.copy_with_data(proto) if proto.HasField("raw_data") else proto
            return ExternalTensor(complete, self._opener)
        if not len(self._bulk):
            return WireTensor(proto)
        raw = proto.raw_data
        view = self._bulk.get(raw)
        return WireTensor(proto, None if view is raw else view)

    def sparse(self, proto: Any) -> SparseTensor:
        """Return a sparse tensor over the messages of its parts."""
        is_plain = not self._unknown and proto.values.ByteSize() and proto.indices.ByteSize()
        wire = b"" if is_plain else _without_tensors(proto)
        return SparseTensor(self.tensor(proto.values), self.tensor(proto.indices), tuple(proto.dims), wire)

    def copy_with_data(self, message: Any) -> Any:
        """Return a copy of a message that contains its bulk data, not placeholders for it."""
        copy = type(message)()
        copy.CopyFrom(message)
        pending = [copy] if len(self._bulk) else []
        while pending:
            one = pending.pop()
            if isinstance(one, TensorProto):
                if one.HasField("raw_data"):
                    one.raw_data = bytes(self._bulk.get(one.raw_data))
                continue
            for field, value in one.ListFields():
                if field.message_type is not None:
                    pending.extend([value] if isinstance(value, Message) else value)
        return copy


def _without_tensors(proto: Any) -> bytes:
    """Return a `SparseTensorProto` without the content of its tensors, as bytes."""
    rest = type(proto)()
    rest.CopyFrom(proto)
    for field in ("values", "indices"):
        if proto.HasField(field):
            rest.ClearField(field)
            getattr(rest, field).SetInParent()
    rest.ClearField("dims")
    return rest.SerializeToString()


def _only_type(info: Any) -> Any:
    """Return a `ValueInfoProto` with nothing but the type."""
    rest = type(info)()
    rest.type.CopyFrom(info.type)
    return rest
