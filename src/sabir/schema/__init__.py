"""Declarations of operators and their versions, calls checked against them, and registries."""

from typing import TYPE_CHECKING

from sabir.base import importing_later, listing_public

if TYPE_CHECKING:
    from sabir.schema._adapters import Unconvertible, check_ports, is_default, is_derived, kept_attributes
    from sabir.schema._admission import admits, operand_mismatch
    from sabir.schema._binding import (
        Arguments,
        Binding,
        Call,
        Condition,
        Signature,
        as_results,
        bound_once,
        is_moving,
        moving,
    )
    from sabir.schema._builder_calls import BuilderCalls
    from sabir.schema._documents import Declaration
    from sabir.schema._examples import Example
    from sabir.schema._expansion import check_expansion, expansion
    from sabir.schema._implicit import ImplicitImport, implicit_imports
    from sabir.schema._operator import Operator
    from sabir.schema._ports import (
        Attribute,
        Constraint,
        Input,
        Output,
        Port,
        Status,
        port_at,
        supplied_inputs,
    )
    from sabir.schema._python import docstring, shown_default
    from sabir.schema._registry import INTERNAL, Registry, Rooms
    from sabir.schema._results import check_results, is_settled
    from sabir.schema._scope import Callees, Scope, check_call, function_label, newer_opset
    from sabir.schema._types import (
        BFLOAT16,
        BOOL,
        CLASSIC,
        COMPLEX,
        FLOAT4,
        FLOAT6,
        FLOAT8,
        FLOAT8E8M0,
        FLOATS,
        INT2,
        INT4,
        INTEGERS,
        NUMBERS,
        SIGNED,
        SMALL_TYPES,
        SMALL_TYPES_AND_FLOAT8,
        STRING,
        UNSIGNED,
        optionals,
        sequences,
        sparse_tensors,
        tensors,
    )
    from sabir.schema._values import (
        ElementTypes,
        OneOf,
        Range,
        Values,
        above,
        at_least,
        element_types,
        one_of,
    )
    from sabir.schema._version import ADAPTERS, BEHAVIOURS, Behaviour, Version

# imported on first use, so that a program loads what it uses
_LATER = {
    "Unconvertible": "_adapters", "check_ports": "_adapters", "is_default": "_adapters",
    "is_derived": "_adapters", "kept_attributes": "_adapters", "admits": "_admission",
    "operand_mismatch": "_admission", "Arguments": "_binding", "Binding": "_binding", "Call": "_binding",
    "Condition": "_binding",
    "Signature": "_binding", "as_results": "_binding", "bound_once": "_binding",
    "is_moving": "_binding", "moving": "_binding", "BuilderCalls": "_builder_calls",
    "Declaration": "_documents", "Example": "_examples", "check_expansion": "_expansion",
    "expansion": "_expansion",
    "ImplicitImport": "_implicit", "implicit_imports": "_implicit", "Operator": "_operator",
    "Attribute": "_ports", "Constraint": "_ports", "Input": "_ports", "Output": "_ports", "Port": "_ports",
    "Status": "_ports", "port_at": "_ports", "supplied_inputs": "_ports",
    "docstring": "_python", "shown_default": "_python", "INTERNAL": "_registry", "Registry": "_registry",
    "Rooms": "_registry", "check_results": "_results", "is_settled": "_results",
    "Callees": "_scope", "Scope": "_scope", "check_call": "_scope", "function_label": "_scope",
    "newer_opset": "_scope", "BFLOAT16": "_types", "BOOL": "_types", "CLASSIC": "_types",
    "COMPLEX": "_types", "FLOAT4": "_types", "FLOAT6": "_types", "FLOAT8": "_types", "FLOAT8E8M0": "_types",
    "FLOATS": "_types", "INT2": "_types", "INT4": "_types", "INTEGERS": "_types", "NUMBERS": "_types",
    "SIGNED": "_types", "SMALL_TYPES": "_types", "SMALL_TYPES_AND_FLOAT8": "_types", "STRING": "_types",
    "UNSIGNED": "_types", "optionals": "_types", "sequences": "_types", "sparse_tensors": "_types",
    "tensors": "_types",
    "ElementTypes": "_values", "OneOf": "_values", "Range": "_values", "Values": "_values",
    "above": "_values", "at_least": "_values", "element_types": "_values", "one_of": "_values",
    "ADAPTERS": "_version", "BEHAVIOURS": "_version", "Behaviour": "_version", "Version": "_version",
}  # fmt: skip

__getattr__ = importing_later(__name__, _LATER)
__dir__ = listing_public(__name__)

__all__ = [
    "ADAPTERS",
    "BEHAVIOURS",
    "BFLOAT16",
    "BOOL",
    "CLASSIC",
    "COMPLEX",
    "FLOAT4",
    "FLOAT6",
    "FLOAT8",
    "FLOAT8E8M0",
    "FLOATS",
    "INT2",
    "INT4",
    "INTEGERS",
    "INTERNAL",
    "NUMBERS",
    "SIGNED",
    "SMALL_TYPES",
    "SMALL_TYPES_AND_FLOAT8",
    "STRING",
    "UNSIGNED",
    "Arguments",
    "Attribute",
    "Behaviour",
    "Binding",
    "BuilderCalls",
    "Call",
    "Callees",
    "Condition",
    "Constraint",
    "Declaration",
    "ElementTypes",
    "Example",
    "ImplicitImport",
    "Input",
    "OneOf",
    "Operator",
    "Output",
    "Port",
    "Range",
    "Registry",
    "Rooms",
    "Scope",
    "Signature",
    "Status",
    "Unconvertible",
    "Values",
    "Version",
    "above",
    "admits",
    "as_results",
    "at_least",
    "bound_once",
    "check_call",
    "check_expansion",
    "check_ports",
    "check_results",
    "docstring",
    "element_types",
    "expansion",
    "function_label",
    "implicit_imports",
    "is_default",
    "is_derived",
    "is_moving",
    "is_settled",
    "kept_attributes",
    "moving",
    "newer_opset",
    "one_of",
    "operand_mismatch",
    "optionals",
    "port_at",
    "sequences",
    "shown_default",
    "sparse_tensors",
    "supplied_inputs",
    "tensors",
]
