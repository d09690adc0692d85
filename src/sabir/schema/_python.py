"""Operators as Python functions: the signature and the docstring of the method that calls one."""

from __future__ import annotations

import inspect
import re
import textwrap
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sabir.schema._ports import Attribute, Port
    from sabir.schema._version import Version

_WIDTH = 96
_PYTHON: dict[str, Any] = {
    "int": int, "float": float, "string": str, "ints": list[int], "floats": list[float], "strings": list[str],
}  # fmt: skip


def python_signature(version: Version) -> inspect.Signature:
    """Return the signature of the method that calls a version: inputs by position, attributes by keyword."""
    attributes = [
        inspect.Parameter(
            a.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if a.required else shown_default(a.default),
            annotation=_PYTHON.get(a.type, a.type),
        )
        for a in version.attributes
        if not a.legacy
    ]
    return inspect.Signature([*_inputs(version), *attributes])


def shown_default(default: object) -> object:
    """Return the default of an attribute as Python writes it: 32-bit floats in their short form, lists."""
    if isinstance(default, tuple):
        return [shown_default(item) for item in cast("Sequence[object]", default)]
    if isinstance(default, float):
        return float(f"{default:.7g}")
    return default


def docstring(version: Version, *, older: Iterable[tuple[Attribute, str]] = (), title: str = "") -> str:
    """Return what a version computes, with its inputs, attributes and outputs.

    `older` are attributes of other versions, each with a note; `title` replaces the name of the version.
    """
    lines = [f"{title or version}: {version.operator.summary}"]
    lines += _section("Inputs", ((_port(p), p.doc) for p in version.inputs))
    attributes = [(_attribute(a), _meaning(version, a)) for a in version.attributes if not a.legacy]
    lines += _section("Attributes", [*attributes, *((f"{a.name} ({a.type}, {n})", a.doc) for a, n in older)])
    lines += _section("Outputs", ((_port(p), p.doc) for p in version.outputs))
    return "\n".join(line for part in lines for line in _wrapped(part))


def _inputs(version: Version) -> Iterator[inspect.Parameter]:
    optional = True  # a parameter without a default is never after one with a default
    parameters: list[inspect.Parameter] = []
    for port in reversed(version.inputs):
        if port.variadic:
            parameters.append(inspect.Parameter(port.name, inspect.Parameter.VAR_POSITIONAL))
            optional = port.minimum == 0
            continue
        optional = optional and port.optional
        default = None if optional else inspect.Parameter.empty
        parameters.append(inspect.Parameter(port.name, inspect.Parameter.POSITIONAL_ONLY, default=default))
    yield from reversed(parameters)


def _port(port: Port) -> str:
    notes = [note for note, holds in (("optional", port.optional), ("variadic", port.variadic)) if holds]
    return f"{port.name} ({', '.join(notes)})" if notes else port.name


def _attribute(attribute: Attribute) -> str:
    if attribute.required:
        return f"{attribute.name} ({attribute.type}, required)"
    if attribute.default is None:
        return f"{attribute.name} ({attribute.type}, optional)"
    return f"{attribute.name} ({attribute.type}, default {shown_default(attribute.default)!r})"


def _meaning(version: Version, attribute: Attribute) -> str:
    values = version.formal.values.get(attribute.name)
    listed = "" if values is None else values.listed()
    return " ".join(filter(None, (attribute.doc, listed and f"Values: {listed}.")))


def _section(title: str, rows: Iterable[tuple[str, str]]) -> list[str]:
    found = [f"    {name}: {text}" if text else f"    {name}" for name, text in rows]
    return ["", f"{title}:", *found] if found else []


def _wrapped(line: str) -> list[str]:
    indent = re.match(r" *", line)
    further = f"{indent[0]}    " if indent and indent[0] else ""
    return textwrap.wrap(line, _WIDTH, subsequent_indent=further, break_on_hyphens=False) or [""]
