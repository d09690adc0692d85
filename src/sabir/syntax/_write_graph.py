"""Nodes and graphs as text, in chunks."""

from __future__ import annotations

import math
from itertools import chain, starmap
from typing import TYPE_CHECKING, TypeVar

from sabir.syntax._detail import WHOLE
from sabir.syntax._words import IDENTIFIER, INDENT, is_float_word, quoted, spelled
from sabir.syntax._write_attributes import AttributeWriter, attribute_name
from sabir.syntax._write_notes import NoteFields, above, device_fields, note_text, residue_fields, value_note
from sabir.syntax._write_tensors import constant_text
from sabir.syntax._write_types import dotted_text, type_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sabir.ir import Annotation, Attribute, Constant, Function, Graph, Node, Type, Value
    from sabir.syntax._detail import Detail
    from sabir.syntax._spelled_names import SpelledNames

_Item = TypeVar("_Item")
_SHORT_TYPES = frozenset({"float", "int", "string", "floats", "ints"})  # each is a chunk of an attribute


class GraphWriter:
    """Writes a graph and all inside it, with names from `names`; `detail` says what is left out."""

    __slots__ = ("_attributes", "_detail", "_names")

    def __init__(self, names: SpelledNames, detail: Detail = WHOLE) -> None:
        self._names, self._detail = names, detail
        self._attributes = AttributeWriter(self.graph, detail)

    def graph(self, graph: Graph, indent: str = "", default: str = "") -> Iterator[str]:
        """Yield a graph and the note above it; `default` names one that has no name."""
        inner = indent + INDENT
        inputs = _listed(list(map(self._input, graph.inputs)), inner)
        outputs = _listed([self._output(place, v, graph) for place, v in enumerate(graph.outputs)], inner)
        name = _graph_name(graph.name or default, nested=bool(default))
        note = self._graph_note(graph, renamed=bool(default) and not graph.name)
        yield f"{above(note, inner if default else indent)}{name} ({inputs}) => ({outputs})"
        entries = chain(
            (self._initializer(value, data, inner) for value, data in graph.initializers.items()),
            ((entry,) for entry in self._value_infos(graph, inner)),
        )
        yield from self._rest(graph, entries, indent)

    def body(self, function: Function) -> Iterator[str]:
        """Yield a function, from its name on."""
        names, graph = self._names, function.graph
        parameters = list(starmap(self._parameter, function.attributes.items()))
        inline = _types_fit_inline(graph, self._detail)
        inputs = ", ".join(self._declared(v) if inline else names.of(v) for v in graph.inputs)
        outputs = ", ".join(names.of(v) for v in graph.outputs)
        yield f"{spelled(function.name)} "
        if parameters:
            yield from chain("<", _joined(parameters, INDENT), "> ")
        yield f"({inputs}) => ({outputs})"
        entries = self._function_value_infos(graph, INDENT, inline=inline)
        yield from self._rest(graph, ((entry,) for entry in entries), "")

    def node(self, node: Node, indent: str = "") -> Iterator[str]:
        """Yield a node, without the indent of its first line."""
        of = self._names.of
        label = f"[{spelled(node.name)}] " if node.name or _has_empty_name(node) else ""
        outputs = ", ".join([of(v) for v in node.outputs])
        domain = f"{dotted_text(node.domain)}." if node.domain else ""
        op = node.op if IDENTIFIER.fullmatch(node.op) else quoted(node.op)
        overload = f":{attribute_name(node.overload)}" if node.overload else ""
        inputs = ", ".join([of(v) for v in node.inputs])
        call = f"{label}{outputs} = {domain}{op}{overload}"
        if not node.attributes:
            yield f"{call} ({inputs})"
            return
        attributes = [self._attributes.write(n, a, indent) for n, a in node.attributes.items()]
        # attributes with subgraphs read better last
        before, after = (f"{call} ({inputs}) <", ">") if node.graphs else (f"{call} <", f"> ({inputs})")
        yield before
        yield from _joined(attributes, indent + INDENT)
        yield after

    def node_note(self, node: Node, common: frozenset[str] = frozenset()) -> str:
        """Return the note of a node, without the empty fields `common` to all nodes of its graph."""
        residue = node.residue
        if residue is not None:
            written = common | {"name"}  # the standard syntax has an empty name before the node
            residue = residue._replace(empty=tuple(f for f in residue.empty if f not in written))
        metadata = self._detail.entries(node.metadata)
        if not (node.doc or metadata or node.devices or residue):
            return ""
        return note_text(NoteFields(
            doc_string=self._detail.text(node.doc),
            metadata_props=metadata,
            device_configurations=[device_fields(d, self._names) for d in node.devices],
            residue=residue_fields(residue),
        ))  # fmt: skip

    def _graph_note(self, graph: Graph, *, renamed: bool) -> str:
        fields = NoteFields(
            doc_string=self._detail.text(graph.doc),
            metadata_props=self._detail.entries(graph.metadata),
            quantization_annotation=[self._annotation(a) for a in graph.annotations],
            residue=residue_fields(graph.residue),
            empty_in_nodes=sorted(common_empty(graph)),
        )
        if renamed:
            fields.entries["name"] = ""
        return note_text(fields)

    def _annotation(self, annotation: Annotation) -> NoteFields:
        label = self._names.label
        pairs = [NoteFields(key=key, value=label(value)) for key, value in annotation.parameters]
        return NoteFields(
            tensor_name=label(annotation.value),
            quant_parameter_tensor_names=pairs,
            residue=residue_fields(annotation.residue),
        )

    def _rest(self, graph: Graph, entries: Iterable[Iterable[str]], indent: str) -> Iterator[str]:
        """Yield the entries and nodes of a graph."""
        inner, common = indent + INDENT, common_empty(graph)
        first = before = f"\n{inner}<"
        for entry in entries:
            yield before
            yield from entry
            before = f",\n{inner} "
        yield " {\n" if before is first else f">\n{indent}{{\n"
        for node in graph:
            note = self.node_note(node, common)
            before = f"{inner}{above(note, inner)}" if note else inner
            if all([a.type in _SHORT_TYPES for a in node.attributes.values()]):  # ruff: ignore[unnecessary-comprehension-in-call]  half the time
                yield f"{before}{''.join(self.node(node, inner))}\n"  # as one chunk, for the sake of speed
                continue
            yield before
            yield from self.node(node, inner)
            yield "\n"
        yield f"{indent}}}"

    # values

    def _input(self, value: Value) -> tuple[str, str]:
        """Return the note and the text of an input; the type of one with a value_info entry is there."""
        if value.value_info_index is not None:
            return "", self._names.of(value)
        return value_note(value, self._detail, unnamed=_is_unnamed(value)), self._declared(value)

    def _output(self, place: int, value: Value | None, graph: Graph) -> tuple[str, str]:
        separate = graph.output_infos.get(place)
        if separate is not None and separate[0] is value:
            return value_note(separate[1], self._detail), self._named(value, separate[1].type)
        if value is None or value.value_info_index is not None:
            return "", self._names.of(value)
        return value_note(value, self._detail), self._declared(value)

    def _declared(self, value: Value) -> str:
        return self._named(value, value.type)

    def _named(self, value: Value | None, type_: Type | None) -> str:
        name, shown = self._names.of(value), type_text(type_)
        return f"{shown} {name}" if shown else name

    def _initializer(self, value: Value, data: Constant, indent: str) -> Iterable[str]:
        constant = constant_text(data, self._detail, unnamed=_is_unnamed(value))
        head = above(constant.note, f"{indent} ") + constant.initializer_head(self._names.of(value))
        chunks = constant.data.chunks
        return (head + chunks[0],) if isinstance(chunks, tuple) else chain((head,), chunks)

    def _value_infos(self, graph: Graph, indent: str) -> Iterator[str]:
        """Yield the types of values that are neither inputs nor outputs, in the file's order."""
        outputs = set(graph.outputs)
        described = [
            v
            for v in _computed(graph)
            if v.value_info_index is not None or (v.type is not None and v not in outputs)
        ]
        described += [v for v in (*graph.inputs, *graph.initializers) if v.value_info_index is not None]
        return self._value_info_entries(graph, described, indent)

    def _function_value_infos(self, graph: Graph, indent: str, *, inline: bool) -> Iterator[str]:
        described = [v for v in _computed(graph) if v.value_info_index is not None or v.type is not None]
        if not inline:
            described += [v for v in graph.inputs if v.value_info_index is not None or v.type is not None]
        return self._value_info_entries(graph, described, indent)

    def _value_info_entries(self, graph: Graph, described: list[Value], indent: str) -> Iterator[str]:
        orphans = set(graph.orphan_value_info)
        listed = [*dict.fromkeys(described), *graph.orphan_value_info]
        listed.sort(key=_place)
        of = self._names.of
        return (self._value_info(v, spelled(v.name) if v in orphans else of(v), indent) for v in listed)

    def _value_info(self, value: Value, name: str, indent: str) -> str:
        shown = type_text(value.type)
        return above(value_note(value, self._detail), f"{indent} ") + (f"{shown} {name}" if shown else name)

    def _parameter(self, name: str, default: Attribute | None) -> tuple[str, Iterable[str]]:
        return ("", (attribute_name(name),)) if default is None else self._attributes.write(name, default, "")


def common_empty(graph: Graph) -> frozenset[str]:
    """Return which fields are present but empty in every node of a graph."""
    common: frozenset[str] | None = None
    for node in graph:
        empty = node.residue.empty if node.residue is not None else ()
        common = frozenset(empty) if common is None else common.intersection(empty)
        if not common:
            break
    return (common or frozenset()) - {"name"}


def _has_empty_name(node: Node) -> bool:
    return node.residue is not None and "name" in node.residue.empty


def _listed(items: list[tuple[str, str]], indent: str) -> str:
    """Return texts with their notes, separated by commas; on separate lines where one has a note."""
    return "".join([before + text for before, text in _separated(items, indent)])


def _joined(items: list[tuple[str, Iterable[str]]], indent: str) -> Iterator[str]:
    """Yield what `_listed` returns, of texts in chunks."""
    for before, chunks in _separated(items, indent):
        yield before
        yield from chunks


def _separated(items: list[tuple[str, _Item]], indent: str) -> Iterator[tuple[str, _Item]]:
    """Yield each text after its separator and note."""
    on_lines = any(note for note, _ in items)
    separator = ""
    for note, item in items:
        yield f"{separator}\n{indent}{above(note, indent)}" if on_lines else separator, item
        separator = "," if on_lines else ", "


def _computed(graph: Graph) -> Iterable[Value]:
    return (v for node in graph for v in node.outputs if v is not None)


def _is_unnamed(value: Value) -> bool:
    """Return whether a value has no name and needs none, as no node reads it."""
    return not value.name and not value.uses


def _types_fit_inline(graph: Graph, detail: Detail) -> bool:
    """Return whether the list of a function's inputs can show their types, and the order is kept."""
    described = [v for v in graph.inputs if v.value_info_index is not None]
    if any(v.type is None or value_note(v, detail) for v in described):
        return False
    others = [
        v.value_info_index
        for v in (*_computed(graph), *graph.orphan_value_info)
        if v.value_info_index is not None
    ]
    places = [v.value_info_index for v in described if v.value_info_index is not None]
    return places == sorted(places) and max(places, default=-1) < min(others, default=math.inf)


def _place(value: Value) -> float:
    return math.inf if value.value_info_index is None else value.value_info_index


def _graph_name(name: str, *, nested: bool) -> str:
    return quoted(name) if nested and is_float_word(name) else spelled(name)
