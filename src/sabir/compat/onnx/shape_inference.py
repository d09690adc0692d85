"""Types and shapes of all values of models, of functions and of nodes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import sabir
from sabir.compat.onnx._contexts import InferenceContext
from sabir.compat.onnx._errors import InferenceError, ValidationError, raising
from sabir.compat.onnx._inferring import infer, infer_outputs
from sabir.compat.onnx.onnx_ml_pb2 import IR_VERSION, FunctionProto, ModelProto, NodeProto
from sabir.serial import from_proto, to_proto

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from sabir.compat.onnx.defs import OpSchema


def infer_shapes(
    model: Any, check_type: bool = False, strict_mode: bool = False, data_prop: bool = False
) -> Any:
    """Return a copy of a ModelProto, or of the bytes of one, with the types of all values.

    `strict_mode` raises InferenceError for a node that fails and for a declaration that contradicts,
    `check_type` for types alone; without them such a value keeps its declared type. Known contents are always
    propagated, whatever `data_prop` says, and dimensions that are computed have expressions as names.
    """
    if not isinstance(model, (ModelProto, bytes)):
        raise TypeError(
            f"infer_shapes takes a ModelProto or its bytes, and not {type(model).__name__}; call "
            "infer_shapes_path for a file"
        )
    with raising(InferenceError):
        found = sabir.loads(model, format="protobuf") if isinstance(model, bytes) else from_proto(model)
        return to_proto(infer(found, check_type=check_type, strict=strict_mode))


def infer_shapes_path(
    model_path: str | os.PathLike[str],
    output_path: str | os.PathLike[str] = "",
    check_type: bool = False,
    strict_mode: bool = False,
    data_prop: bool = False,
) -> None:
    """Write the model of a file with the types of all values to `output_path`, by default to the same file.

    External data stays where it is. The arguments are those of `infer_shapes`. Raises ValidationError for a
    file that cannot be read or written.
    """
    if isinstance(model_path, (ModelProto, bytes)):
        raise TypeError("infer_shapes_path takes the path of a file; infer_shapes takes a model and bytes")
    with raising(ValidationError):
        model = sabir.load(model_path)
    with raising(InferenceError):
        inferred = infer(model, check_type=check_type, strict=strict_mode)
    with raising(ValidationError):
        sabir.save(inferred, output_path or model_path)


def infer_node_outputs(
    schema: OpSchema,
    node: Any,
    input_types: dict[str, Any],
    input_data: dict[str, Any] | None = None,
    input_sparse_data: dict[str, Any] | None = None,
    opset_imports: list[Any] | None = None,
    ir_version: int = IR_VERSION,
) -> dict[str, Any]:
    """Return the TypeProtos of the outputs of a NodeProto that calls a schema, by name.

    `input_types` has the type of each input, `input_data` and `input_sparse_data` tensors of those that are
    known. `opset_imports` is for the nodes of subgraphs. Raises KeyError for an input without a type,
    ValidationError for a call that breaks the schema, InferenceError for types that contradict.
    """
    missing = [name for name in node.input if name and name not in input_types]
    if missing:
        raise KeyError(missing[0])
    imports = {imported.domain: imported.version for imported in opset_imports or ()}
    imports.setdefault(schema.domain, schema.since_version)
    call = NodeProto()
    call.CopyFrom(node)
    constants = [(input_data or {}, "initializer"), (input_sparse_data or {}, "sparse_initializer")]
    return infer_outputs(call, input_types, constants, imports, ir_version)


def infer_function_output_types(
    function: Any, input_types: Sequence[Any], attributes: Sequence[Any]
) -> list[Any]:
    """Return the TypeProtos of the outputs of a FunctionProto for types of inputs; raises InferenceError."""
    if not isinstance(function, FunctionProto):
        raise TypeError(f"infer_function_output_types takes a FunctionProto, not a {type(function).__name__}")
    given = zip(function.input, input_types, strict=False)
    types = {name: kind for name, kind in given if kind.WhichOneof("value")}
    call = NodeProto(op_type=function.name, domain=function.domain, overload=function.overload)
    call.input.extend(name if name in types else "" for name in function.input)
    call.output.extend(function.output)
    call.attribute.extend(attributes)
    imports = {imported.domain: imported.version for imported in function.opset_import}
    imports.setdefault(function.domain, 1)
    found = infer_outputs(call, types, [], imports, IR_VERSION, functions=[function])
    return [found[name] for name in function.output]


C = SimpleNamespace(InferenceContext=InferenceContext, InferenceError=InferenceError)
"""The classes under the name of onnx's C++ module, which some programs use."""

__all__ = [
    "C",
    "InferenceContext",
    "InferenceError",
    "infer_function_output_types",
    "infer_node_outputs",
    "infer_shapes",
    "infer_shapes_path",
]
