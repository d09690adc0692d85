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
from sabir.syntax._write_notes import NoteFields, beside, note_text, type_fields

if TYPE_CHECKING:
    from sabir.elements import ElementType
    from sabir.ir import Dim, Shape, Type, TypeNote


def type_text(type_: Type | None) -> str:
    """Return a type as text, without its note; empty for an unknown one."""
    return "" if type_ is None else _bare_text(type_)


def noted_type_text(type_: Type | None) -> str:
    """Return a type as text after its note; a question mark for an unknown one."""
    return "?" if type_ is None else beside(note_text(type_fields(type_))) + _bare_text(type_)


def dims_text(shape: Shape, note: TypeNote | None = None) -> str:
    """Return the dimensions of a shape in brackets; empty for a scalar."""
    if not shape:
        return ""
    dims = map(_dim_text, shape)
    if note is not None and len(note.dims) == len(shape):
        notes = (beside(note_text(NoteFields(denotation=d))) for d in note.dims)
        dims = map("".join, zip(notes, dims, strict=True))
    return f"[{','.join(dims)}]"


def element_text(element: ElementType) -> str:
    """Return an element type: its name, or a question mark and a number that the standard does not define."""
    return element.name if element.name in ELEMENT_WORDS else f"?{element.number}"


def _bare_text(type_: Type) -> str:
    match type_:
        case TensorType():
            return _tensor_text(type_)
        case SparseTensorType():
            return f"sparse_tensor({_tensor_text(type_)})"
        case SequenceType():
            return f"seq({noted_type_text(type_.item)})"
        case OptionalType():
            return f"optional({noted_type_text(type_.item)})"
        case MapType():
            return f"map({element_text(type_.key)}, {noted_type_text(type_.value)})"
        case OpaqueType():
            return _opaque_text(type_)


def _tensor_text(type_: TensorType | SparseTensorType) -> str:
    dims = "[]" if type_.shape is None else dims_text(type_.shape, type_.note)
    return element_text(type_.element) + dims


def _dim_text(dim: Dim) -> str:
    if dim is None:
        return "?"
    text = str(dim)
    return text if isinstance(dim, int) or IDENTIFIER.fullmatch(text) else quoted(text)


def _opaque_text(type_: OpaqueType) -> str:
    if not type_.domain:
        return f"opaque({dotted_text(type_.name) if type_.name else ''})"
    # the standard syntax has one word for the name, so dots in it need quotes beside a domain
    name = type_.name if IDENTIFIER.fullmatch(type_.name) else quoted(type_.name)
    return f"opaque({dotted_text(type_.domain)},{name})"


def dotted_text(name: str) -> str:
    """Return a name of words joined by dots unchanged, any other one quoted."""
    return name if all(map(IDENTIFIER.fullmatch, name.split("."))) else quoted(name)
