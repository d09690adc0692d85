"""The schemas of operators: those of the standard, and those that a program registers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

from sabir.base import suggest
from sabir.compat.onnx._errors import SchemaError
from sabir.compat.onnx.defs import _registering
from sabir.compat.onnx.defs._schema import OpSchema
from sabir.opsets import STANDARD

if TYPE_CHECKING:
    from collections.abc import Iterator

ONNX_DOMAIN = ""
ONNX_ML_DOMAIN = "ai.onnx.ml"
AI_ONNX_PREVIEW_DOMAIN = "ai.onnx.preview"
AI_ONNX_PREVIEW_TRAINING_DOMAIN = "ai.onnx.preview.training"

_DOMAINS = (ONNX_DOMAIN, ONNX_ML_DOMAIN, AI_ONNX_PREVIEW_DOMAIN, AI_ONNX_PREVIEW_TRAINING_DOMAIN)


def get_schema(
    op_type: str, max_inclusive_version: int | str | None = None, domain: str = ONNX_DOMAIN
) -> OpSchema:
    """Return the schema of an operator in force in a version of its domain, by default the newest.

    `get_schema(name, domain)` is the form without a version. Raises SchemaError where there is none.
    """
    if isinstance(max_inclusive_version, str):
        max_inclusive_version, domain = None, max_inclusive_version
    versions = _history(op_type, domain)
    limit = max_inclusive_version
    found = [s for s in versions if limit is None or s.since_version <= limit]
    if not found:
        place = f"the domain {domain!r}" if limit is None else f"version {limit} of the domain {domain!r}"
        known = {s.name for s in get_all_schemas() if s.domain == domain}
        hint = f"; its first version is {versions[0].since_version}" if versions else suggest(op_type, known)
        raise SchemaError(f"{place} has no operator {op_type!r}{hint}")
    return found[-1]


def has(op_type: str, max_inclusive_version: int | str | None = None, domain: str = ONNX_DOMAIN) -> bool:
    """Whether an operator has a schema in a version of its domain, by default in any.

    `has(name, domain)` is the form without a version.
    """
    if isinstance(max_inclusive_version, str):
        max_inclusive_version, domain = None, max_inclusive_version
    limit = max_inclusive_version
    return any(limit is None or s.since_version <= limit for s in _history(op_type, domain))


def get_all_schemas() -> list[OpSchema]:
    """Return the newest schema of each operator."""
    return [versions[-1] for versions in _all()]


def get_all_schemas_with_history() -> list[OpSchema]:
    """Return all schemas of all operators."""
    return [schema for versions in _all() for schema in versions]


def get_function_ops() -> list[OpSchema]:
    """Return the newest schemas of the operators that have a body."""
    return [s for s in get_all_schemas() if s.has_function or s.has_context_dependent_function]


def onnx_opset_version() -> int:
    """Return the newest version of the default domain."""
    return _newest(ONNX_DOMAIN)


def onnx_ml_opset_version() -> int:
    """Return the newest version of the domain ai.onnx.ml."""
    return _newest(ONNX_ML_DOMAIN)


def register_schema(schema: OpSchema) -> None:
    """Make an operator known to the checker, to inference and to `get_schema`.

    Raises SchemaError for a schema that is registered already, and for another version of an operator of the
    standard.
    """
    _registering.register(schema)


def deregister_schema(op_type: str, version: int, domain: str) -> None:
    """Make a registered schema unknown again.

    Raises SchemaError for one that is not registered, and for one of the standard, which Sabir's engines
    always know.
    """
    _registering.deregister(op_type, version, domain)


def schema_version_map() -> dict[str, tuple[int, int]]:
    """Return the oldest and the newest version of each domain, also of those of registered schemas."""
    found = {"ai.onnx.training": (1, 1), **{domain: (1, _newest(domain)) for domain in _DOMAINS}}
    for versions in _registering.histories():
        least, most = versions[0].since_version, versions[-1].since_version
        low, high = found.get(versions[0].domain, (least, most))
        found[versions[0].domain] = (min(low, least), max(high, most))
    return found


def _newest(domain: str) -> int:
    newest = STANDARD.newest_opset(domain)
    if newest is None:
        raise SchemaError(f"the domain {domain!r} has no versions")
    return newest


def _history(op_type: str, domain: str) -> list[OpSchema]:
    custom = _registering.history(op_type, domain)
    if custom:
        return custom
    operator = STANDARD.find(domain, op_type) if domain in _DOMAINS or domain == "ai.onnx" else None
    return [OpSchema.of(v) for v in operator.versions if not v.unpublished] if operator else []


def _all() -> Iterator[list[OpSchema]]:
    for domain in _DOMAINS:
        for operator in STANDARD.of_domain(domain):
            schemas = [OpSchema.of(v) for v in operator.versions if not v.unpublished]
            if schemas:
                yield schemas
    yield from _registering.histories()


C = SimpleNamespace(
    OpSchema=OpSchema,
    SchemaError=SchemaError,
    get_all_schemas=get_all_schemas,
    get_all_schemas_with_history=get_all_schemas_with_history,
    get_schema=get_schema,
    has_schema=has,
    register_schema=register_schema,
    schema_version_map=schema_version_map,
    deregister_schema=deregister_schema,
)
"""The functions under the names of onnx's C++ module, which some programs use."""

__all__ = [
    "AI_ONNX_PREVIEW_DOMAIN",
    "AI_ONNX_PREVIEW_TRAINING_DOMAIN",
    "ONNX_DOMAIN",
    "ONNX_ML_DOMAIN",
    "C",
    "OpSchema",
    "SchemaError",
    "deregister_schema",
    "get_all_schemas",
    "get_all_schemas_with_history",
    "get_function_ops",
    "get_schema",
    "has",
    "onnx_ml_opset_version",
    "onnx_opset_version",
    "register_schema",
]
