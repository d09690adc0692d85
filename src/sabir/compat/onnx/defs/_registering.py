"""The schemas that a program registers, and the registry of operators that has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from sabir.base import InferenceError
from sabir.compat.onnx import _attributes
from sabir.compat.onnx._errors import SchemaError
from sabir.opsets import STANDARD
from sabir.schema import Attribute, Constraint, Input, Operator, Output

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sabir.compat.onnx.defs._schema import OpSchema
    from sabir.schema import Registry

_TYPE_NAMES: dict[str, Any] = {"TYPE_PROTO": "type", "TYPE_PROTOS": "types"}
_SCHEMAS: dict[tuple[str, str], dict[int, OpSchema]] = {}
_CURRENT: list[Registry] = [STANDARD]


def current() -> Registry:
    """Return the operators of the standard and those that are registered."""
    return _CURRENT[0]


def history(op_type: str, domain: str) -> list[OpSchema]:
    """Return the registered schemas of an operator, oldest first."""
    versions = _SCHEMAS.get((domain, op_type), {})
    return [versions[since] for since in sorted(versions)]


def histories() -> Iterator[list[OpSchema]]:
    """Yield the registered schemas of each operator."""
    for domain, name in _SCHEMAS:
        yield history(name, domain)


def register(schema: OpSchema) -> None:
    """Add a schema; see `defs.register_schema`."""
    label = f"version {schema.since_version} of {schema.name!r} of the domain {schema.domain!r}"
    if STANDARD.find(schema.domain, schema.name) is not None:
        raise SchemaError(
            f"{label} cannot be registered, as the operator belongs to the standard; choose another domain"
        )
    versions = _SCHEMAS.setdefault((schema.domain, schema.name), {})
    if schema.since_version in versions:
        raise SchemaError(f"{label} has a schema already; call deregister_schema first")
    versions[schema.since_version] = schema
    _rebuild()


def deregister(op_type: str, version: int, domain: str) -> None:
    """Remove a schema; see `defs.deregister_schema`."""
    versions = _SCHEMAS.get((domain, op_type), {})
    if version not in versions:
        known = STANDARD.find(domain, op_type)
        reason = "" if known is None else ": Sabir's engines always know the operators of the standard"
        raise SchemaError(
            f"no schema of version {version} of {op_type!r} of the domain {domain!r} was registered{reason}"
        )
    del versions[version]
    if not versions:
        del _SCHEMAS[domain, op_type]
    _rebuild()


def _rebuild() -> None:
    operators = [_operator(versions) for versions in histories()]
    _CURRENT[0] = STANDARD.with_operators(*operators) if operators else STANDARD


def _operator(versions: Sequence[OpSchema]) -> Operator:
    newest = versions[-1]
    operator = Operator(newest.name, newest.domain, summary=newest.doc)
    for schema in versions:
        constraints = {
            c.type_param_str: Constraint(c.type_param_str, c.allowed_type_strs)
            for c in schema.type_constraints
        }
        ports: list[tuple[Any, ...]] = [
            tuple(_port(cls, port, constraints) for port in formal)
            for cls, formal in ((Input, schema.inputs), (Output, schema.outputs))
        ]
        attributes = tuple(map(_formal_attribute, schema.attributes.values()))
        if not operator.versions:
            version = operator.first(
                schema.since_version, inputs=ports[0], outputs=ports[1], attributes=attributes
            )
        else:
            version = operator.versions[-1].evolve(
                schema.since_version,
                "Another version.",
                inputs=ports[0],
                outputs=ports[1],
                drop=[a.name for a in operator.versions[-1].attributes],
                add=attributes,
            )
        version.infer(_inference(schema))
    return operator


def _port(cls: Any, port: Any, constraints: dict[str, Constraint]) -> Any:
    return cls(
        port.name,
        constraints.get(port.type_str)
        or (port.type_str if "(" in port.type_str else f"tensor({port.type_str})"),
        port.description,
        optional=port.option.name == "Optional",
        variadic=port.option.name == "Variadic",
        minimum=port.min_arity,
        heterogeneous=not port.is_homogeneous,
    )


def _formal_attribute(attribute: Any) -> Attribute:
    has_default = attribute.default_value.type != 0
    default = _attributes.value_of(attribute.default_value) if has_default else None
    if isinstance(default, bytes):
        default = default.decode("utf-8")
    return Attribute(
        attribute.name,
        _TYPE_NAMES.get(attribute.type.name, attribute.type.name.lower()),
        attribute.description,
        default=tuple(cast("list[Any]", default)) if isinstance(default, list) else default,
        required=attribute.required and not has_default,
    )


def _inference(schema: OpSchema) -> Any:
    """Return the behaviour that calls the function of a schema; without one all types are unknown."""
    from sabir.compat.onnx._contexts import InferenceContext  # ruff: ignore[import-outside-top-level]  an inference needs it

    def infer(*types: Any, call: Any, **attributes: Any) -> Any:
        count = len(call.outputs)
        function = schema.get_type_and_shape_inference_function()
        if function is None:
            return (None,) * count if count != 1 else None
        context = InferenceContext(schema.name, types, attributes, count)
        try:
            function(context)
        except InferenceError:
            raise
        except Exception as error:
            raise InferenceError(f"the inference of {schema.name} failed: {error}") from error
        results = context.results()
        return results if count != 1 else results[0]

    return infer
