"""Checks of models and of parts of models against the rules of the standard."""

from __future__ import annotations

import functools
import os
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import sabir
from sabir.base import ExternalDataError, SabirError
from sabir.checking import findings
from sabir.compat.onnx._contexts import CheckerContext, LexicalScopeContext
from sabir.compat.onnx._declaring import declare
from sabir.compat.onnx._errors import InferenceError, ValidationError, raising
from sabir.compat.onnx.defs import _registering, onnx_opset_version
from sabir.compat.onnx.onnx_ml_pb2 import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    SparseTensorProto,
    TensorProto,
    ValueInfoProto,
)
from sabir.opsets import STANDARD
from sabir.serial import from_proto

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sabir.base import Finding

MAXIMUM_PROTOBUF = 2**31 - 1
"""The largest size of a serialized message, in bytes."""

DEFAULT_CONTEXT = CheckerContext()
DEFAULT_CONTEXT.opset_imports = {"": onnx_opset_version()}
LEXICAL_SCOPE_CONTEXT = LexicalScopeContext()

# what belongs to a whole model: its imports, its file, its training
_OF_MODELS = ("MODEL", "META", "TRAIN", "DEV", "DATA004", "DATA005", "DATA006")
_OF_NODES = ("NODE", "ATTR", "TENSOR", "SPARSE")


def check_model(
    model: Any,
    full_check: bool = False,
    skip_opset_compatibility_check: bool = False,
    check_custom_domain: bool = False,
) -> None:
    """Check a ModelProto, its bytes, or the file at a path.

    `full_check` also infers all types. `check_custom_domain` refuses calls of other domains that are unknown.
    `skip_opset_compatibility_check` accepts operators in versions that do not match. Raises ValidationError
    with all findings, InferenceError for those of types, and ValueError for a message of more than 2 GiB.
    """
    ignored: list[str] = ["NODE005"] if skip_opset_compatibility_check else []
    if isinstance(model, (str, os.PathLike)):
        with raising(ValidationError):
            found = sabir.load(os.fspath(model))
        _report(found, types=full_check, ignore=ignored, custom=check_custom_domain)
        return
    data = model if isinstance(model, bytes) else _serialized(model, ModelProto)
    if len(data) > MAXIMUM_PROTOBUF:
        raise ValueError("the model has more than 2 GiB; save it with external data, and pass its path")
    try:
        found = sabir.loads(data, format="protobuf")
    except SabirError as error:
        if isinstance(model, bytes):
            raise ValueError(f"these bytes are no model: {error}") from error
        raise ValidationError(str(error)) from error
    _report(
        found,
        types=full_check,
        ignore=[*ignored, "DATA004", "DATA005", "DATA006"],
        custom=check_custom_domain,
    )


def check_graph(
    graph: Any,
    ctx: CheckerContext = DEFAULT_CONTEXT,
    lexical_scope_ctx: LexicalScopeContext = LEXICAL_SCOPE_CONTEXT,
) -> None:
    """Check a GraphProto of a model with the versions of `ctx`; raises ValidationError."""
    _require(graph, GraphProto)
    model = _model(ctx)
    model.graph.CopyFrom(graph)
    _check_part(model, ignore=_OF_MODELS)


def check_node(
    node: Any,
    ctx: CheckerContext = DEFAULT_CONTEXT,
    lexical_scope_ctx: LexicalScopeContext = LEXICAL_SCOPE_CONTEXT,
) -> None:
    """Check a NodeProto of a model with the versions of `ctx`; raises ValidationError."""
    _require(node, NodeProto)
    model = _model(ctx)
    _add_call(model, node)
    _check_part(model, select=_OF_NODES)


def check_attribute(
    attr: Any,
    ctx: CheckerContext = DEFAULT_CONTEXT,
    lexical_scope_ctx: LexicalScopeContext = LEXICAL_SCOPE_CONTEXT,
) -> None:
    """Check an AttributeProto, whatever operator has it; raises ValidationError."""
    _require(attr, AttributeProto)
    model = _model(ctx)
    node = NodeProto(op_type="Any", domain="sabir.compat", output=["result"])
    node.attribute.append(attr)
    _add_call(model, node)
    _check_part(model, select=("ATTR", "TENSOR", "SPARSE"))


def check_function(
    function: Any,
    ctx: CheckerContext | None = None,
    lexical_scope_ctx: LexicalScopeContext = LEXICAL_SCOPE_CONTEXT,
) -> None:
    """Check a FunctionProto; raises ValidationError."""
    _require(function, FunctionProto)
    model = _model(ctx or DEFAULT_CONTEXT)
    model.functions.append(function)
    known = {imported.domain for imported in model.opset_import}
    model.opset_import.extend(i for i in function.opset_import if i.domain not in known)
    # the other functions of its domain may be anywhere
    siblings = ("NODE001",) if any(node.domain == function.domain for node in function.node) else ()
    _check_part(model, ignore=(*_OF_MODELS, "FUNC006", "FUNC010", *siblings))


def check_tensor(tensor: Any, ctx: CheckerContext = DEFAULT_CONTEXT) -> None:
    """Check the type and the number of elements of a TensorProto; raises ValidationError."""
    _require(tensor, TensorProto)
    model = _model(ctx)
    node = NodeProto(op_type="Any", domain="sabir.compat", output=["result"])
    node.attribute.add(name="value", type=AttributeProto.TENSOR).t.CopyFrom(tensor)
    _add_call(model, node)
    _check_part(model, select=("TENSOR", "DATA001", "DATA002", "DATA003", "DATA010", "DATA012"))


def check_sparse_tensor(sparse: Any, ctx: CheckerContext = DEFAULT_CONTEXT) -> None:
    """Check a SparseTensorProto; raises ValidationError."""
    _require(sparse, SparseTensorProto)
    model = _model(ctx)
    node = NodeProto(op_type="Any", domain="sabir.compat", output=["result"])
    node.attribute.add(name="value", type=AttributeProto.SPARSE_TENSOR).sparse_tensor.CopyFrom(sparse)
    _add_call(model, node)
    _check_part(model, select=("TENSOR", "SPARSE"))


def check_value_info(value_info: Any, ctx: CheckerContext = DEFAULT_CONTEXT) -> None:
    """Check a ValueInfoProto as an input of a model; raises ValidationError."""
    _require(value_info, ValueInfoProto)
    if not value_info.name:
        raise ValidationError("the ValueInfoProto has no name; set `name`")
    model = _model(ctx)
    model.graph.input.append(value_info)
    _check_part(model, select=("TYPE", "GRAPH002"))


def _require(message: Any, kind: Any) -> None:
    if not isinstance(message, kind):
        raise TypeError(f"this function checks a {kind.DESCRIPTOR.name}, and not a {type(message).__name__}")


def _serialized(message: Any, kind: Any) -> bytes:
    _require(message, kind)
    try:
        return message.SerializeToString()
    except ValueError as error:
        raise ValueError(
            f"the message cannot be checked in memory ({error}); save the model with external data, and pass "
            "check_model its path"
        ) from error


def _model(context: CheckerContext) -> Any:
    model = ModelProto(ir_version=context.ir_version)
    for domain, version in (context.opset_imports or {"": onnx_opset_version()}).items():
        model.opset_import.add(domain=domain, version=version)
    model.graph.name = "part"
    return model


def _add_call(model: Any, node: Any) -> None:
    """Add a node, and declare as inputs what it reads."""
    model.graph.node.append(node)
    declare(model.graph.input, node.input)
    if node.domain and node.domain not in {i.domain for i in model.opset_import}:
        model.opset_import.add(domain=node.domain, version=1)


def _check_part(model: Any, *, select: Iterable[str] = (), ignore: Iterable[str] = ()) -> None:
    with raising(ValidationError):
        found = from_proto(model)
    _report(found, types=False, select=select, ignore=ignore, custom=False)


def _report(
    model: Any, *, types: bool, custom: bool, select: Iterable[str] = (), ignore: Iterable[str] = ()
) -> None:
    """Raise for the findings of a model that are errors."""
    try:
        found = list(
            findings(model, types=types, select=select, ignore=ignore, registry=_registering.current())
        )
    except ExternalDataError as error:
        raise ValidationError(str(error)) from error
    except SabirError as error:
        raise (InferenceError if types else ValidationError)(str(error)) from error
    errors = [f for f in found if _counts(f, custom=custom)]
    if not errors:
        return
    kind = InferenceError if all(f.rule == "TYPE001" for f in errors) else ValidationError
    raise kind("\n".join(map(str, errors)))


def _counts(finding: Finding, *, custom: bool) -> bool:
    """Whether onnx has an error there: not for experiments of early releases, nor for unknown ranks."""
    if finding.rule == "NODE005" and finding.message.partition(":")[0] in _experiments():
        return False
    if finding.rule == "GRAPH002" and "has no shape" in finding.message:
        return False
    return finding.severity == "error" or (custom and finding.rule == "NODE007")


@functools.cache
def _experiments() -> frozenset[str]:
    """Return the operators that early releases had as experiments, and whose calls onnx's checker accepts."""
    return frozenset(o.name for o in STANDARD.of_domain("") if o.versions[0].unpublished)


C = SimpleNamespace(
    CheckerContext=CheckerContext,
    LexicalScopeContext=LexicalScopeContext,
    ValidationError=ValidationError,
)
"""The classes under the name of onnx's C++ module, which some programs use."""

__all__ = [
    "DEFAULT_CONTEXT",
    "LEXICAL_SCOPE_CONTEXT",
    "MAXIMUM_PROTOBUF",
    "C",
    "ValidationError",
    "check_attribute",
    "check_function",
    "check_graph",
    "check_model",
    "check_node",
    "check_sparse_tensor",
    "check_tensor",
    "check_value_info",
]
