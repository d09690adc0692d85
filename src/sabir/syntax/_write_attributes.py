"""Attributes as text: `axis: int = 1`."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from sabir.ir import Graph
from sabir.syntax._words import ATTRIBUTE_WORDS, IDENTIFIER, INDENT, ITEM_OF, elision, quoted, spelled
from sabir.syntax._write_elements import base64_text, float_text, floats_text
from sabir.syntax._write_notes import NoteFields, above, note_text, residue_fields
from sabir.syntax._write_tensors import constant_text, quoted_or_cut
from sabir.syntax._write_types import noted_type_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from sabir.ir import Attribute, Constant
    from sabir.syntax._detail import Detail

    WriteGraph = Callable[[Graph, str, str], Iterator[str]]

_ELIDED_LISTS = frozenset({"ints", "floats", "strings"})


class AttributeWriter:
    """Writes attributes, subgraphs with `graph`; `detail` says what is left out."""

    __slots__ = ("_detail", "_graph")

    def __init__(self, graph: WriteGraph, detail: Detail) -> None:
        self._graph, self._detail = graph, detail

    def write(self, key: str, attribute: Attribute, indent: str) -> tuple[str, Iterable[str]]:
        """Return the note of an attribute, and its text in chunks."""
        name, type_, value = attribute_name(key), attribute.type, attribute.value
        note = _note(attribute, self._detail)
        annotation = f": {ATTRIBUTE_WORDS[type_]}" if type_ != "undefined" else ""
        if value is None:
            if attribute.ref:
                return note, (f"{name}{annotation} = @{spelled(attribute.ref)}",)
            return note, (f"{name}: {ATTRIBUTE_WORDS[type_]} = ?",)
        if type_ in ITEM_OF:
            return note, chain((f"{name}{annotation} = [",), self._items(attribute, indent), "]")
        return note, chain((f"{name}{annotation} = ",), self._value(type_, value, indent, key))

    def _items(self, attribute: Attribute, indent: str) -> Iterable[str]:
        """Return the items of a list, separated by commas, in chunks."""
        type_, values = attribute.type, attribute.value
        most = self._detail.elements
        if most is not None and type_ in _ELIDED_LISTS and len(values) > most:
            return (elision(len(values), type_),)
        if type_ == "ints":
            return (", ".join(map(str, values)),)
        if type_ == "floats":
            return (floats_text(values),)
        return self._values(ITEM_OF[type_], attribute, indent)

    def _values(self, type_: str, attribute: Attribute, indent: str) -> Iterator[str]:
        separator = ""
        for value in attribute.value:
            yield separator
            yield from self._value(type_, value, indent, attribute.name)
            separator = ", "

    def _value(self, type_: str, value: Any, indent: str, default: str) -> Iterable[str]:
        if isinstance(value, Graph):
            return self._graph(value, indent, default or "graph")
        match type_:
            case "int":
                return (str(int(value)),)
            case "float":
                return (float_text(value),)
            case "string":
                return (_string_text(value, self._detail),)
            case "type":
                return (noted_type_text(value),)
            case _:
                return self._constant(value, indent)

    def _constant(self, constant: Constant, indent: str) -> Iterator[str]:
        shown = constant_text(constant, self._detail)
        yield above(shown.note, indent + INDENT)
        yield from shown.value()


def attribute_name(name: str) -> str:
    """Return a name where the standard syntax has no quotes: quoted only where it must be."""
    return name if IDENTIFIER.fullmatch(name) else quoted(name)


def _note(attribute: Attribute, detail: Detail) -> str:
    if not (attribute.doc or attribute.ref or attribute.residue):
        return ""
    ref = attribute.ref if attribute.value is not None else ""
    residue = residue_fields(attribute.residue)
    return note_text(NoteFields(doc_string=detail.text(attribute.doc), ref_attr_name=ref, residue=residue))


def _string_text(value: str | bytes, detail: Detail) -> str:
    """Return a string in quotes, or as bytes where it is not UTF-8."""
    if isinstance(value, str):
        return quoted_or_cut(value, detail)
    try:
        return quoted_or_cut(value.decode(), detail)
    except UnicodeDecodeError:
        return base64_text(value)
