"""From the model objects to messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sabir.base import WireError, quote
from sabir.ir import MAGIC, NEWEST_IR, Graph, Labels, SparseTensor, Value
from sabir.proto import FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetProto, OperatorStatus
from sabir.serial._attributes import write_attribute
from sabir.serial._devices import write_node_device
from sabir.serial._residues import OPSETS, drop_outdated_imports, restore, write_entries
from sabir.serial._types import TypeWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sabir.ir import (
        Attribute,
        Constant,
        Function,
        Model,
        Node,
        OperatorEntry,
        OperatorSet,
        Residue,
        Tensor,
        TrainingInfo,
    )

_FIRST_IR_OF_FUNCTION_TYPES = 10


class ModelWriter:
    """Writes a model, or a part of one, as a message; `tensor` writes the tensors.

    The public methods raise WireError for what no message can contain.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) <float[1] w = {2}> { y = Mul (x, w) }''')
    >>> shapes = []
    >>> proto = ModelWriter(lambda tensor, proto: shapes.append(tensor.shape)).model(model)
    >>> proto.graph.node[0].op_type, shapes
    ('Mul', [(1,)])
    """

    def __init__(self, tensor: Callable[[Tensor, Any], None]) -> None:
        self._tensor, self._fill_type = tensor, TypeWriter().fill
        self._label: Callable[[Value], str] = lambda value: value.name
        self._ir_version = NEWEST_IR

    def model(self, model: Model) -> Any:
        """Return the message of a model."""
        proto, self._ir_version = ModelProto(), model.ir_version
        _set_numbers(proto, ir_version=model.ir_version, model_version=model.version)
        _set_texts(
            proto,
            producer_name=model.producer_name,
            producer_version=model.producer_version,
            domain=model.domain,
            doc_string=model.doc,
        )
        labels = Labels(model.graph, outside=model.training_reads(), closed=True)
        self._label = labels
        self._graph(model.graph, proto.graph)
        if model.residue is not None and "graph" in model.residue.absent and not proto.graph.ByteSize():
            proto.ClearField("graph")
        _write_opsets(model.opsets, proto, model.residue)
        write_entries(model.metadata, proto.metadata_props)
        for training in model.training:
            self._training(training, proto.training_info.add(), labels)
        for function in model.functions:
            self._label = Labels(function.graph, closed=True)
            self._function(function, proto.functions.add())
        for device in model.devices:
            configuration = proto.configuration.add()
            if device.wire:
                configuration.ParseFromString(device.wire)
            else:
                configuration.name, configuration.num_devices = device.name, device.num_devices
                configuration.device.extend(device.devices)
        restore(model.residue, proto)
        drop_outdated_imports(model.opsets, proto.opset_import)
        return proto

    def operator_set(self, operator_set: OperatorSet) -> Any:
        """Return the message of an operator set."""
        proto, self._ir_version = OperatorSetProto(), operator_set.ir_version
        if operator_set.residue is None or "magic" not in operator_set.residue.absent:
            proto.magic = MAGIC
        _set_numbers(proto, ir_version=operator_set.ir_version, opset_version=operator_set.version)
        _set_texts(
            proto,
            ir_version_prerelease=operator_set.ir_prerelease,
            ir_build_metadata=operator_set.ir_build,
            domain=operator_set.domain,
            doc_string=operator_set.doc,
        )
        for entry in operator_set.operators:
            _write_entry(entry, proto.operator.add())
        for function in operator_set.functions:
            self._label = Labels(function.graph, closed=True)
            self._function(function, proto.functions.add())
        restore(operator_set.residue, proto)
        return proto

    def graph(self, graph: Graph) -> Any:
        """Return the message of a graph alone; values of an enclosing graph keep their names."""
        proto, self._label = GraphProto(), Labels(graph)
        self._graph(graph, proto)
        return proto

    def function(self, function: Function) -> Any:
        """Return the message of a function."""
        proto, self._label = FunctionProto(), Labels(function.graph)
        self._function(function, proto)
        return proto

    def node(self, node: Node) -> Any:
        """Return the message of a node."""
        proto, self._label = NodeProto(), Labels(*node.graphs, around=(*node.inputs, *node.outputs))
        self._node(node, proto)
        return proto

    def attribute(self, attribute: Attribute, proto: Any) -> None:
        """Write an attribute into an empty `AttributeProto`."""
        write_attribute(attribute, proto, tensor=self._tensor, sparse=self.sparse, graph=self._graph)

    def sparse(self, tensor: SparseTensor, proto: Any) -> None:
        """Write a sparse tensor into an empty `SparseTensorProto`."""
        if tensor.wire:
            proto.ParseFromString(tensor.wire)
        missing = [f for f in ("values", "indices") if not proto.HasField(f)]
        self._tensor(tensor.values, proto.values)
        self._tensor(tensor.indices, proto.indices)
        proto.dims.extend(tensor.shape)
        for field in missing:
            if not getattr(proto, field).ByteSize():
                proto.ClearField(field)

    # graphs

    def _graph(self, graph: Graph, proto: Any) -> None:
        proto.SetInParent()
        _set_texts(proto, name=graph.name, doc_string=graph.doc)
        for node in graph:
            self._node(node, proto.node.add())
        for value, data in graph.initializers.items():
            self._initializer(value, data, proto)
        for value in graph.inputs:
            self._info(value, proto.input.add())
        for place, value in enumerate(graph.outputs):
            self._output(place, value, graph, proto.output.add())
        self._value_info(graph, proto.value_info)
        for annotation in graph.annotations:
            entry = proto.quantization_annotation.add()
            _set_texts(entry, tensor_name=self._label(annotation.value))
            for key, value in annotation.parameters:
                entry.quant_parameter_tensor_names.add(key=key, value=self._label(value))
            restore(annotation.residue, entry)
        write_entries(graph.metadata, proto.metadata_props)
        restore(graph.residue, proto)

    def _initializer(self, value: Value, data: Constant, proto: Any) -> None:
        if isinstance(data, SparseTensor):
            sparse = proto.sparse_initializer.add()
            self.sparse(data, sparse)
            if value.name or sparse.values.name or value.uses:
                sparse.values.name = self._label(value)
            return
        dense = proto.initializer.add()
        self._tensor(data, dense)
        if value.name or dense.name or value.uses:
            dense.name = self._label(value)

    def _output(self, place: int, value: Value | None, graph: Graph, proto: Any) -> None:
        separate = graph.output_infos.get(place)
        if separate is not None and separate[0] is value:
            self._info(separate[1], proto)
            if proto.name != self._label(separate[0]):
                proto.name = self._label(separate[0])
        elif value is not None:
            self._info(value, proto)

    def _value_info(self, graph: Graph, field: Any) -> None:
        """Write the types of values that are neither inputs nor outputs, in the file's order first."""
        ports = {*graph.inputs, *graph.outputs}
        computed = (v for node in graph for v in node.outputs if v is not None)
        values = (*graph.initializers, *computed, *graph.orphan_value_info, *graph.inputs)
        listed = {v: v.value_info_index for v in values if v.value_info_index is not None}
        for value in sorted(listed, key=lambda v: v.value_info_index or 0):
            self._info(value, field.add())
        for node in graph:
            for value in node.outputs:
                if (
                    value is not None
                    and value.value_info_index is None
                    and value.type is not None
                    and value not in ports
                ):
                    self._info(value, field.add())

    def _info(self, value: Value, proto: Any) -> None:
        name = self._label(value)
        if name:
            proto.name = name
        if value.type is not None:
            self._fill_type(value.type, proto.type)
        if value.doc:
            proto.doc_string = value.doc
        if value.metadata:
            write_entries(value.metadata, proto.metadata_props)
        restore(value.residue, proto)

    # nodes

    def _node(self, node: Node, proto: Any) -> None:
        label = self._label
        proto.input.extend(["" if v is None else label(v) for v in node.inputs])
        proto.output.extend(["" if v is None else label(v) for v in node.outputs])
        _set_texts(
            proto,
            name=node.name,
            op_type=node.op,
            domain=node.domain,
            overload=node.overload,
            doc_string=node.doc,
        )
        for attribute in node.attributes.values():
            self.attribute(attribute, proto.attribute.add())
        if node.metadata:
            write_entries(node.metadata, proto.metadata_props)
        for device in node.devices:
            write_node_device(device, proto.device_configurations.add(), label)
        if node.residue is not None:
            restore(node.residue, proto)

    # functions and training

    def _function(self, function: Function, proto: Any) -> None:
        graph, label = function.graph, self._label
        for value in graph.initializers:  # the format has no field for them
            problem = f"{function!r} has the initializer {quote(value.name)}"
            raise WireError(f"{problem}, and a function can have none; use a Constant node")
        _set_texts(
            proto,
            name=function.name,
            domain=function.domain,
            overload=function.overload,
            doc_string=graph.doc,
        )
        proto.input.extend([label(v) for v in graph.inputs])
        proto.output.extend(["" if v is None else label(v) for v in graph.outputs])
        for name, default in function.attributes.items():
            if default is None:
                proto.attribute.append(name)
            else:
                self.attribute(default, proto.attribute_proto.add())
        for node in graph:
            self._node(node, proto.node.add())
        _write_opsets(function.opsets, proto, function.residue)
        if self._ir_version >= _FIRST_IR_OF_FUNCTION_TYPES or any(
            v.value_info_index is not None for v in _describable(graph)
        ):
            self._value_info(graph, proto.value_info)
        write_entries(graph.metadata, proto.metadata_props)
        restore(function.residue, proto)
        drop_outdated_imports(function.opsets, proto.opset_import)

    def _training(self, training: TrainingInfo, proto: Any, labels: Labels) -> None:
        for graph, field in ((training.initialization, "initialization"), (training.algorithm, "algorithm")):
            if graph is not None:
                labels.add(graph)
                self._graph(graph, getattr(proto, field))
        for pairs, field in (
            (training.initialization_binding, proto.initialization_binding),
            (training.update_binding, proto.update_binding),
        ):
            for key, value in pairs:
                field.add(key=self._label(key), value=self._label(value))
        restore(training.residue, proto)


def _describable(graph: Graph) -> Iterator[Value]:
    """Yield the values of a function body that a value_info entry can describe."""
    yield from graph.inputs
    yield from graph.orphan_value_info
    yield from (v for node in graph for v in node.outputs if v is not None)


def _set_texts(proto: Any, **texts: str) -> None:
    for field, text in texts.items():
        if text:
            try:
                setattr(proto, field, text)
            except (UnicodeEncodeError, ValueError, TypeError) as error:
                raise WireError(f"{proto.DESCRIPTOR.name}.{field} cannot hold {text!r}: {error}") from error


def _set_numbers(proto: Any, **numbers: int) -> None:
    for field, number in numbers.items():
        if number:
            try:
                setattr(proto, field, number)
            except (ValueError, TypeError) as error:
                raise WireError(f"{proto.DESCRIPTOR.name}.{field} cannot hold {number!r}: {error}") from error


def _write_entry(entry: OperatorEntry, proto: Any) -> None:
    _set_texts(proto, op_type=entry.name, doc_string=entry.doc)
    _set_numbers(proto, since_version=entry.since)
    is_stated = entry.residue is None or "status" not in entry.residue.absent
    if is_stated or entry.status == "stable":
        proto.status = OperatorStatus.Value(entry.status.upper())
    restore(entry.residue, proto)


def _write_opsets(opsets: dict[str, int], proto: Any, residue: Residue | None) -> None:
    is_spelled = residue is None or OPSETS not in residue.absent
    for domain, version in opsets.items():
        entry = proto.opset_import.add(version=version)
        if domain or is_spelled:
            entry.domain = domain
