"""Calls of functions replaced by their bodies."""

from __future__ import annotations

from typing import Any

import sabir
from sabir.compat.onnx._declaring import declare
from sabir.compat.onnx._errors import ValidationError, raising
from sabir.compat.onnx.defs import _registering
from sabir.compat.onnx.onnx_ml_pb2 import ModelProto
from sabir.serial import from_proto, to_proto


def inline_local_functions(model: Any, convert_version: bool = False) -> Any:
    """Return a ModelProto in which calls of its functions are replaced by their bodies.

    A body for other operator sets than the model's is converted, whatever `convert_version` says. Raises
    ValidationError for a function that calls itself and for a body that cannot be converted.
    """
    with raising(ValidationError):
        return to_proto(sabir.inline(from_proto(model), registry=_registering.current()))


def inline_selected_functions(
    model: Any,
    function_ids: list[tuple[str, str]],
    exclude: bool = False,
    inline_schema_functions: bool = False,
) -> Any:
    """Return a ModelProto in which calls of some functions are replaced by their bodies.

    `function_ids` are pairs of a domain and a name; with `exclude` all others are inlined. The bodies of
    functions that stay are inlined too. `inline_schema_functions` includes operators that the standard
    defines by a function. Raises ValidationError as `inline_local_functions` does.
    """
    listed = set(function_ids)

    def is_chosen(domain: str, name: str) -> bool:
        return ((domain, name) in listed) is not exclude

    chosen = [f for f in model.functions if is_chosen(f.domain, f.name)]
    kept = [f for f in model.functions if not is_chosen(f.domain, f.name)]
    operators = _operators(model, is_chosen) if inline_schema_functions else ()
    result = _inlined(model, chosen, operators)
    for function in kept:
        result.functions.append(function)
        del result.functions[-1].node[:]
        result.functions[-1].node.extend(_body(function, model, chosen, operators))
    known = {imported.domain for imported in result.opset_import}
    result.opset_import.extend(i for i in model.opset_import if i.domain not in known and kept)
    return result


def _operators(model: Any, is_chosen: Any) -> tuple[str, ...]:
    """Return the operators that a model calls and whose bodies are to be inlined."""
    bodies = [model.graph, *model.functions]
    called = {(node.domain, node.op_type) for body in bodies for node in body.node}
    local = {(f.domain, f.name) for f in model.functions}
    return tuple(name for domain, name in called if (domain, name) not in local and is_chosen(domain, name))


def _inlined(model: Any, functions: list[Any], operators: tuple[str, ...]) -> Any:
    """Return a model without functions, with calls of these and of operators replaced."""
    part = ModelProto()
    part.CopyFrom(model)
    del part.functions[:]
    part.functions.extend(functions)
    with raising(ValidationError):
        return to_proto(sabir.inline(from_proto(part), operators=operators, registry=_registering.current()))


def _body(function: Any, model: Any, functions: list[Any], operators: tuple[str, ...]) -> Any:
    """Return the nodes of a function in which calls are replaced."""
    part = ModelProto(ir_version=model.ir_version)
    part.opset_import.extend(function.opset_import)
    known = {imported.domain for imported in part.opset_import}
    part.opset_import.extend(i for i in model.opset_import if i.domain not in known)
    part.graph.name = function.name
    declare(part.graph.input, function.input)
    declare(part.graph.output, function.output)
    part.graph.node.extend(function.node)
    return _inlined(part, functions, operators).graph.node


__all__ = ["inline_local_functions", "inline_selected_functions"]
