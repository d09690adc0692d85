"""Inference with the operators that are registered, of models and of single calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sabir
from sabir.base import SabirError, SchemaError
from sabir.checking import findings
from sabir.compat.onnx._declaring import declare
from sabir.compat.onnx._errors import InferenceError, ValidationError
from sabir.compat.onnx.defs import _registering
from sabir.compat.onnx.onnx_ml_pb2 import ModelProto, TypeProto
from sabir.ir import TensorType
from sabir.serial import from_proto, to_proto

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sabir.ir import Model


def infer(model: Model, *, check_type: bool, strict: bool) -> Model:
    """Return a model with the types of all values; see `shape_inference.infer_shapes`.

    The initializer of an input counts as its value. A declared type without an element type declares nothing.
    """
    registry = _registering.current()
    graph = model.graph
    for info in graph.outputs:
        if isinstance(info.type, TensorType) and info.type.element.number == 0:
            info.type = None
    if check_type and not strict:
        problems = [str(f) for f in findings(model, select=["TYPE001"], registry=registry)]
        if problems:
            raise InferenceError("\n".join(problems))
    defaults = [value for value in graph.inputs if value.constant is not None]
    places = {value.name: place for place, value in enumerate(graph.inputs)}
    for value in defaults:
        graph.inputs.remove(value)
    try:
        result = sabir.infer(model, strict=strict, registry=registry)
    except sabir.InferenceError as error:
        unknown = isinstance(error.__cause__, SchemaError)
        raise (ValidationError if unknown else InferenceError)(str(error)) from error
    for value in defaults:
        found = result.graph.value(value.name)
        result.graph.inputs.insert(places[value.name], found)
    return result


def infer_outputs(
    node: Any,
    types: Mapping[str, Any],
    constants: Sequence[tuple[Mapping[str, Any], str]],
    imports: Mapping[str, int],
    ir_version: int,
    functions: Sequence[Any] = (),
) -> dict[str, Any]:
    """Return the types of the outputs of one call, by name.

    `constants` are pairs of tensors by name and the field of GraphProto that they belong into. Raises
    ValidationError for an invalid call, InferenceError for types that contradict.
    """
    model = ModelProto(ir_version=ir_version)
    for domain, version in imports.items():
        model.opset_import.add(domain=domain, version=version)
    model.functions.extend(functions)
    graph = model.graph
    graph.name = "call"
    for name, kind in types.items():
        graph.input.add(name=name).type.CopyFrom(kind)
    for tensors, field in constants:
        for name, tensor in tensors.items():
            added = getattr(graph, field).add()
            added.CopyFrom(tensor)
            (added if field == "initializer" else added.values).name = name
            _remove_input(graph, name)  # a constant input is known, a default may be replaced
    graph.node.append(node)
    declare(graph.output, node.output)
    return _inferred(model, node)


def _inferred(model: Any, node: Any) -> dict[str, Any]:
    registry = _registering.current()
    try:
        found = from_proto(model)
        problems = [f for f in findings(found, select=["NODE", "TYPE001"], registry=registry) if f.severity == "error"]
        for problem in problems:
            kind = InferenceError if problem.rule == "TYPE001" else ValidationError
            raise kind(str(problem))
        inferred = to_proto(infer(found, check_type=False, strict=True))
    except SchemaError as error:
        raise ValidationError(str(error)) from error
    except SabirError as error:
        if isinstance(error, (InferenceError, ValidationError)):
            raise
        raise InferenceError(str(error)) from error
    types = {value.name: value.type for value in inferred.graph.output}
    return {name: types.get(name, TypeProto()) for name in node.output if name}


def _remove_input(graph: Any, name: str) -> None:
    for place, value in enumerate(graph.input):
        if value.name == name:
            del graph.input[place]
            return
