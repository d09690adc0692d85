"""The names of schemas."""

from sabir.compat.onnx._errors import SchemaError
from sabir.compat.onnx.defs import (
    OpSchema,
    deregister_schema,
    get_all_schemas,
    get_all_schemas_with_history,
    get_schema,
    register_schema,
    schema_version_map,
)
from sabir.compat.onnx.defs import (
    has as has_schema,
)

__all__ = [
    "OpSchema",
    "SchemaError",
    "deregister_schema",
    "get_all_schemas",
    "get_all_schemas_with_history",
    "get_schema",
    "has_schema",
    "register_schema",
    "schema_version_map",
]
