"""The class of each operator, made when it is first asked for: `load_op("", "Clip", 11)`, or `Clip_11`."""

from __future__ import annotations

import functools
from typing import Any

from sabir.base import suggest
from sabir.compat.onnx.defs import _registering, onnx_opset_version
from sabir.compat.onnx.reference.op_run import RuntimeImplementationError, StandardOp
from sabir.opsets import STANDARD


def load_op(
    domain: str,
    op_type: str,
    version: int | None = None,
    custom: Any = None,
    node: Any = None,
    input_types: Any = None,
    expand: bool = False,
) -> Any:
    """Return the class of an operator in a version of its domain, by default the newest, or `custom`.

    Raises RuntimeImplementationError for an unknown operator.
    """
    if custom is not None:
        return custom
    registry = _registering.current()
    newest = registry.newest_opset(domain) or onnx_opset_version()
    found = registry.find_version(domain, op_type, newest if version is None else version)
    if found is None or found.find("evaluate") is None:
        hint = suggest(op_type, registry.names(domain))
        raise RuntimeImplementationError(
            f"the operator {op_type!r} of the domain {domain!r} has no implementation{hint}"
        )
    return _class_of(domain, op_type, found.since, found is STANDARD.find_version(domain, op_type, newest))


@functools.cache
def _class_of(domain: str, op_type: str, since: int, is_newest: bool) -> type[StandardOp]:
    versions = STANDARD.find(domain, op_type)
    single = is_newest and versions is not None and len(versions.versions) == 1
    name = op_type if single else f"{op_type}_{since}"
    return type(
        name,
        (StandardOp,),
        {"op_domain": domain, "version": since, "infer_name": classmethod(lambda _: (op_type, since))},
    )


def __getattr__(name: str) -> Any:
    base, _, version = name.rpartition("_")
    if base and version.isdigit() and STANDARD.find("", base):
        return load_op("", base, int(version))
    if not name.startswith("_") and STANDARD.find("", name):
        return load_op("", name)
    raise AttributeError(f"Sabir's onnx.reference.ops has no operator {name!r}")


__all__ = ["load_op"]
