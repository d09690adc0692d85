"""The functions by which the standard defines operators, as messages."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from sabir.compat.onnx import helper
from sabir.compat.onnx._declaring import declare
from sabir.compat.onnx._errors import SchemaError, raising
from sabir.compat.onnx.onnx_ml_pb2 import FunctionProto, ModelProto, NodeProto, TypeProto
from sabir.elements import element
from sabir.inlining import inline
from sabir.ir import least_ir_of_imports
from sabir.serial import from_proto, to_proto

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.compat.onnx.defs._schema import OpSchema


_TYPES = ("float", "double", "float16", "int64")


@functools.cache
def body_of(schema: OpSchema) -> Any:
    """Return the function of an operator whose body is the same in every call, else an empty message.

    The body is written for several element types, with unknown shapes; calls have different attributes.
    """
    empty = FunctionProto()
    version = schema.version
    if version is None or version.find("body") is None or schema.attributes:
        return empty
    node = NodeProto(op_type=schema.name, domain=schema.domain)
    node.input.extend(port.name for port in schema.inputs)
    node.output.extend(port.name for port in schema.outputs)
    found: list[Any] = []
    for name in _TYPES:
        types = [_type_among(port.types, name) for port in schema.inputs]
        if None in types:
            continue
        try:
            found.append(_function(schema, node, types))
        except SchemaError:
            return empty
    return found[0] if found and all(body == found[0] for body in found) else empty


def _type_among(allowed: set[str], name: str) -> Any:
    """Return a tensor type of this element type, or the only one that is allowed; None where neither is."""
    wanted = f"tensor({name})"
    chosen = wanted if wanted in allowed else next(iter(allowed)) if len(allowed) == 1 else None
    if chosen is None or not chosen.startswith("tensor("):
        return None
    return helper.make_tensor_type_proto(element(chosen[7:-1]).number, None)


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
    for tensor in inlined.graph.initializer:
        function.node.append(helper.make_node("Constant", [], [tensor.name], value=tensor))
    function.node.extend(inlined.graph.node)
    function.opset_import.extend(inlined.opset_import)
    return function
