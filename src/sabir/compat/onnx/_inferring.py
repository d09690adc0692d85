"""Inference with the operators that are registered, of models and of single calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sabir
from sabir.base import SabirError, SchemaError
from sabir.checking import findings
from sabir.compat.onnx._declaring import declare
from sabir.compat.onnx._defaults import with_constant_defaults
from sabir.compat.onnx._errors import CompatFailure, InferenceError, ValidationError
from sabir.compat.onnx.defs import _registering
from sabir.compat.onnx.onnx_ml_pb2 import ModelProto, TypeProto
from sabir.ir import TensorType
from sabir.serial import from_proto, to_proto

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sabir.ir import Model
    from sabir.schema import Registry


def infer(model: Model, *, check_type: bool, strict: bool) -> Model:
    """Return a model with the types of all values; see `shape_inference.infer_shapes`.

    The initializer of an input counts as its value. A declared type without an element type declares nothing.
    """
    registry = _registering.current()
    for info in model.graph.outputs:
        if info is not None and isinstance(info.type, TensorType) and info.type.element.number == 0:
            info.type = None
    if model.functions:
        _raise_findings(model, registry, ["FUNC003"], ValidationError)
    if check_type:
        _raise_findings(model, registry, ["TYPE001", "NODE002", "NODE003"], InferenceError)
    try:
        return with_constant_defaults(model, lambda m: sabir.infer(m, strict=strict, registry=registry))
    except sabir.InferenceError as error:
        kind = ValidationError if _calls_unknown(model, registry) else InferenceError
        raise kind(str(error)) from error


def _calls_unknown(model: Model, registry: Registry) -> bool:
    """Whether a model calls an operator that nothing defines."""
    return any(findings(model, select=["NODE001"], types=False, registry=registry))


def _raise_findings(model: Model, registry: Registry, rules: list[str], kind: type[CompatFailure]) -> None:
    problems = [f for f in findings(model, select=rules, registry=registry) if f.severity == "error"]
    if problems:
        raise kind("\n".join(map(str, problems)))


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
        _raise_findings(found, registry, ["NODE"], ValidationError)
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
