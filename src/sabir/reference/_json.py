"""The facts of one operator version as plain data, for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sabir.reference._page import signature

if TYPE_CHECKING:
    from sabir.schema import Attribute, Port, Version


def facts_of(version: Version) -> dict[str, Any]:
    """Return name, domain, signature, types and history of a version, as JSON can represent them.

    >>> facts_of(find_version('Relu'))['versions']
    [1, 6, 13, 14]
    """
    operator = version.operator
    return {
        "name": operator.name,
        "domain": operator.domain or "ai.onnx",
        "since_version": version.since,
        "versions": [v.since for v in operator.versions],
        "deprecated": version.deprecated,
        "status": version.status,
        "summary": operator.summary,
        "signature": signature(version),
        "inputs": [_port(p) for p in version.inputs],
        "outputs": [_port(p) for p in version.outputs],
        "attributes": [_attribute(version, a) for a in version.attributes if not a.legacy],
        "types": {name: sorted(c.allowed) for name, c in version.constraints.items()},
        "changes": version.changes,
    }


def _port(port: Port) -> dict[str, Any]:
    return {
        "name": port.name,
        "type": port.type if isinstance(port.type, str) else port.type.name,
        "doc": port.doc,
        "optional": port.optional,
        "variadic": port.variadic,
        "differentiable": port.differentiable,
    }


def _attribute(version: Version, attribute: Attribute) -> dict[str, Any]:
    values = version.formal.values.get(attribute.name)
    return {
        "name": attribute.name,
        "type": attribute.type,
        "doc": attribute.doc,
        "required": attribute.required,
        "default": attribute.default,
        "values": None if values is None else values.listed(),
    }
