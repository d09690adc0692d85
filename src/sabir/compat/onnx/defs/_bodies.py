"""The functions by which the standard defines operators, as messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sabir.compat.onnx._declaring import declare
from sabir.compat.onnx._errors import SchemaError, raising
from sabir.compat.onnx.onnx_ml_pb2 import FunctionProto, ModelProto, NodeProto, TypeProto
from sabir.inlining import inline
from sabir.ir import least_ir_of_imports
from sabir.serial import from_proto, to_proto

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.compat.onnx.defs._schema import OpSchema


def body_of(schema: OpSchema) -> Any:
    """Return the function of an operator without attributes, an empty message for another one."""
    if not schema.has_function:
        return FunctionProto()
    node = NodeProto(op_type=schema.name, domain=schema.domain)
    node.input.extend(port.name for port in schema.inputs)
    node.output.extend(port.name for port in schema.outputs)
    return _function(schema, node, [None] * len(schema.inputs))


def body_of_call(schema: OpSchema, node: bytes, input_types: Sequence[bytes]) -> Any:
    """Return the function that defines one call; see `OpSchema.get_context_dependent_function`."""
    types = [TypeProto.FromString(data) for data in input_types]
    return _function(schema, NodeProto.FromString(node), types)


def _function(schema: OpSchema, node: Any, types: Sequence[Any]) -> Any:
    model = ModelProto()
    imports = {schema.domain: schema.since_version}
    if schema.domain and schema.version:
        imports[""] = schema.version.operator.body_opset
    for domain, version in imports.items():
        model.opset_import.add(domain=domain, version=version)
    model.ir_version = least_ir_of_imports(imports)
    model.graph.name = schema.name
    for place, name in enumerate(node.input):
        if name:
            value = model.graph.input.add(name=name)
            if place < len(types) and types[place] is not None:
                value.type.CopyFrom(types[place])
    declare(model.graph.output, node.output)
    model.graph.node.append(node)
    with raising(SchemaError):
        inlined = to_proto(inline(from_proto(model), operators=[node.op_type]))
    if [n.op_type for n in inlined.graph.node] == [node.op_type]:
        raise SchemaError(f"{schema.name}:{schema.since_version} has no function for this call")
    function = FunctionProto(name=schema.name, domain=schema.domain)
    function.input.extend(node.input)
    function.output.extend(node.output)
    function.node.extend(inlined.graph.node)
    function.opset_import.extend(inlined.opset_import)
    return function
