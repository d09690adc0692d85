"""Types as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.ir import (
    MapType,
    OpaqueType,
    OptionalType,
    SequenceType,
    SparseTensorType,
    TensorType,
)
from sabir.text._words import ELEMENT_WORDS, IDENTIFIER, quoted

if TYPE_CHECKING:
    from sabir.elements import ElementType
    from sabir.ir import Dim, Shape, Type


def type_text(kind: Type | None) -> str:
    """Return a type as text; empty where nothing, or no element type, is known of it."""
    text = _text(kind)
    return "" if text == "?" else text


def dims_text(shape: Shape) -> str:
    """Return the dimensions of a type that has some, in brackets; empty for a scalar."""
    return f"[{','.join(map(_dim_text, shape))}]" if shape else ""


def _text(kind: Type | None) -> str:
    match kind:
        case TensorType():
            return _tensor_text(kind.element, kind.shape)
        case SparseTensorType():
            inner = _tensor_text(kind.element, kind.shape)
            return "?" if inner == "?" else f"sparse_tensor({inner})"
        case SequenceType():
            return f"seq({_text(kind.item)})"
        case OptionalType():
            return f"optional({_text(kind.item)})"
        case MapType():
            return f"map({_tensor_text(kind.key, ())}, {_text(kind.value)})"
        case OpaqueType():
            return _opaque_text(kind)
        case None:
            return "?"


def _tensor_text(element: ElementType, shape: Shape | None) -> str:
    if element.name not in ELEMENT_WORDS:
        return "?"
    return f"{element.name}[]" if shape is None else f"{element.name}{dims_text(shape)}"


def _dim_text(dim: Dim) -> str:
    if dim is None:
        return "?"
    text = str(dim)
    return text if isinstance(dim, int) or IDENTIFIER.fullmatch(text) else quoted(text)


def _opaque_text(kind: OpaqueType) -> str:
    if not kind.domain:
        return f"opaque({dotted_text(kind.name) if kind.name else ''})"
    # the standard syntax has one word for the name, so dots in it need quotes beside a domain
    name = kind.name if IDENTIFIER.fullmatch(kind.name) else quoted(kind.name)
    return f"opaque({dotted_text(kind.domain)},{name})"


def dotted_text(name: str) -> str:
    """Return a name of words joined by dots as it is, any other one quoted."""
    return name if all(map(IDENTIFIER.fullmatch, name.split("."))) else quoted(name)
