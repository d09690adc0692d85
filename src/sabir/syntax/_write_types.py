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
from sabir.syntax._words import ELEMENT_WORDS, IDENTIFIER, quoted
from sabir.syntax._write_notes import Fields, beside, note_text, type_fields

if TYPE_CHECKING:
    from sabir.elements import ElementType
    from sabir.ir import Dim, Shape, Type, TypeNote


def type_text(kind: Type | None) -> str:
    """Return a type as text, without what it says beside its meaning; empty where nothing is known of it."""
    return "" if kind is None else _bare_text(kind)


def noted_type_text(kind: Type | None) -> str:
    """Return a type as text with the note that stands before it; a question mark for none at all."""
    return "?" if kind is None else beside(note_text(type_fields(kind))) + _bare_text(kind)


def dims_text(shape: Shape, note: TypeNote | None = None) -> str:
    """Return the dimensions of a type that has some, in brackets; empty for a scalar."""
    if not shape:
        return ""
    dims = map(_dim_text, shape)
    if note is not None and len(note.dims) == len(shape):
        notes = (beside(note_text(Fields(denotation=d))) for d in note.dims)
        dims = (told + dim for told, dim in zip(notes, dims, strict=True))
    return f"[{','.join(dims)}]"


def element_text(element: ElementType) -> str:
    """Return an element type: its name, or a question mark and a number that the standard does not define."""
    return element.name if element.name in ELEMENT_WORDS else f"?{element.number}"


def _bare_text(kind: Type) -> str:
    match kind:
        case TensorType():
            return _tensor_text(kind)
        case SparseTensorType():
            return f"sparse_tensor({_tensor_text(kind)})"
        case SequenceType():
            return f"seq({noted_type_text(kind.item)})"
        case OptionalType():
            return f"optional({noted_type_text(kind.item)})"
        case MapType():
            return f"map({element_text(kind.key)}, {noted_type_text(kind.value)})"
        case OpaqueType():
            return _opaque_text(kind)


def _tensor_text(kind: TensorType | SparseTensorType) -> str:
    dims = "[]" if kind.shape is None else dims_text(kind.shape, kind.note)
    return element_text(kind.element) + dims


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
