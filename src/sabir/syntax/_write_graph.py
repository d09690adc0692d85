"""Nodes and graphs as text."""

from __future__ import annotations

import math
from itertools import starmap
from typing import TYPE_CHECKING, Any

from sabir.ir import Graph
from sabir.syntax._words import ATTRIBUTE_WORDS, IDENTIFIER, ITEM_OF, is_float_word, quoted, spelled
from sabir.syntax._write_notes import (
    Fields,
    above,
    base64_text,
    device_fields,
    note_text,
    residue_fields,
    value_note,
)
from sabir.syntax._write_tensors import float_text, floats_text, shown
from sabir.syntax._write_types import dotted_text, noted_type_text, type_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sabir.ir import Annotation, Attribute, Constant, Function, Node, Type, Value
    from sabir.syntax._names import Names

_STEP = "   "


class GraphWriter:
    """Writes a graph and all inside it, with names from `names`."""

    __slots__ = ("_names", "_values")

    def __init__(self, names: Names) -> None:
        self._names = names
        self._values: dict[str, Callable[[Any, str], str]] = {
            "int": lambda value, _: str(int(value)),
            "float": lambda value, _: float_text(value),
            "string": lambda value, _: _string_text(value),
            "tensor": _constant_text,
            "sparse_tensor": _constant_text,
            "type": _type_value_text,
        }

    def graph(self, graph: Graph, indent: str = "", default: str = "") -> str:
        """Return a graph and the note above it; `default` names one that has no name."""
        names, inner = self._names, indent + _STEP
        inputs = _listed(list(map(self._input, graph.inputs)), inner)
        outputs = _listed([self._output(place, v, graph) for place, v in enumerate(graph.outputs)], inner)
        entries: list[str] = []
        for value, data in graph.initializers.items():
            constant = shown(data, unnamed=_is_unnamed(value))
            entries.append(above(constant.note, f"{inner} ") + constant.initializer(names.of(value)))
        entries += self._infos(graph, inner)
        name = _graph_name(graph.name or default, nested=bool(default))
        note = self._graph_note(graph, renamed=bool(default) and not graph.name)
        told = above(note, inner if default else indent)
        return f"{told}{name} ({inputs}) => ({outputs}){self._rest(graph, entries, indent)}"

    def body(self, function: Function) -> str:
        """Return a function, from its name on."""
        names, graph = self._names, function.graph
        parameters = _listed(list(starmap(self._parameter, function.attributes.items())), _STEP)
        inline = _told_inline(graph)
        inputs = ", ".join(self._declared(v) if inline else names.of(v) for v in graph.inputs)
        outputs = ", ".join(names.of(v) for v in graph.outputs)
        told = f"<{parameters}> " if parameters else ""
        head = f"{spelled(function.name)} {told}({inputs}) => ({outputs})"
        return head + self._rest(graph, self._function_infos(graph, _STEP, inline=inline), "")

    def node(self, node: Node, indent: str = "") -> str:
        """Return a node, without the indent of its first line."""
        of = self._names.of
        label = f"[{spelled(node.name)}] " if node.name or _has_empty_name(node) else ""
        outputs = ", ".join([of(v) for v in node.outputs])
        domain = f"{dotted_text(node.domain)}." if node.domain else ""
        op = node.op if IDENTIFIER.fullmatch(node.op) else quoted(node.op)
        overload = f":{_attribute_name(node.overload)}" if node.overload else ""
        inputs = ", ".join([of(v) for v in node.inputs])
        before = after = ""
        if node.attributes:
            inner = indent + _STEP
            told = _listed([self._attribute(n, a, indent) for n, a in node.attributes.items()], inner)
            # attributes with bodies read better last
            before, after = ("", f" <{told}>") if node.graphs else (f" <{told}>", "")
        return f"{label}{outputs} = {domain}{op}{overload}{before} ({inputs}){after}"

    def node_note(self, node: Node, common: frozenset[str] = frozenset()) -> str:
        """Return what is told of a node beside its call; `common` is told of all nodes at once."""
        residue = node.residue
        if residue is not None:
            told = common | {"name"}  # an empty name stands before the node, as in the standard syntax
            residue = residue._replace(empty=tuple(f for f in residue.empty if f not in told))
        if not (node.doc or node.metadata or node.devices or residue):
            return ""
        return note_text(Fields(
            doc_string=node.doc,
            metadata_props=node.metadata,
            device_configurations=[device_fields(d, self._names) for d in node.devices],
            residue=residue_fields(residue),
        ))  # fmt: skip

    def _graph_note(self, graph: Graph, *, renamed: bool) -> str:
        fields = Fields(
            doc_string=graph.doc,
            metadata_props=graph.metadata,
            quantization_annotation=[self._annotation(a) for a in graph.annotations],
            residue=residue_fields(graph.residue),
            empty_in_nodes=sorted(common_empty(graph)),
        )
        if renamed:
            fields.entries["name"] = ""
        return note_text(fields)

    def _annotation(self, annotation: Annotation) -> Fields:
        label = self._names.label
        pairs = [Fields(key=key, value=label(value)) for key, value in annotation.parameters]
        return Fields(
            tensor_name=label(annotation.value),
            quant_parameter_tensor_names=pairs,
            residue=residue_fields(annotation.residue),
        )

    def _rest(self, graph: Graph, entries: list[str], indent: str) -> str:
        """Return the entries and nodes of a graph."""
        inner, common = indent + _STEP, common_empty(graph)
        lines: list[str] = []
        for node in graph:
            note = self.node_note(node, common)
            lines.append(f"{inner}{above(note, inner) if note else ''}{self.node(node, inner)}\n")
        told = f"\n{inner}<{f',{chr(10)}{inner} '.join(entries)}>\n{indent}" if entries else " "
        return f"{told}{{\n{''.join(lines)}{indent}}}"

    # values

    def _input(self, value: Value) -> tuple[str, str]:
        """Return the note and the text of an input; what stands among the entries is not told here too."""
        if value.value_info_index is not None:
            return "", self._names.of(value)
        return value_note(value, unnamed=_is_unnamed(value)), self._declared(value)

    def _output(self, place: int, value: Value | None, graph: Graph) -> tuple[str, str]:
        kept = graph.output_infos.get(place)
        if kept is not None and kept[0] is value:
            return value_note(kept[1]), self._named(value, kept[1].type)
        if value is None or value.value_info_index is not None:
            return "", self._names.of(value)
        return value_note(value), self._declared(value)

    def _declared(self, value: Value) -> str:
        return self._named(value, value.type)

    def _named(self, value: Value | None, kind: Type | None) -> str:
        name, told = self._names.of(value), type_text(kind)
        return f"{told} {name}" if told else name

    def _infos(self, graph: Graph, indent: str) -> list[str]:
        """Return what is told of values that are neither inputs nor outputs, in the file's order."""
        outputs = set(graph.outputs)
        told = [
            v
            for v in _computed(graph)
            if v.value_info_index is not None or (v.type is not None and v not in outputs)
        ]
        told += [v for v in (*graph.inputs, *graph.initializers) if v.value_info_index is not None]
        return self._entries(graph, told, indent)

    def _function_infos(self, graph: Graph, indent: str, *, inline: bool) -> list[str]:
        told = [v for v in _computed(graph) if v.value_info_index is not None or v.type is not None]
        if not inline:
            told += [v for v in graph.inputs if v.value_info_index is not None or v.type is not None]
        return self._entries(graph, told, indent)

    def _entries(self, graph: Graph, told: list[Value], indent: str) -> list[str]:
        stale = set(graph.orphan_value_info)
        listed = [*dict.fromkeys(told), *graph.orphan_value_info]
        listed.sort(key=_place)
        of = self._names.of
        return [self._entry(v, spelled(v.name) if v in stale else of(v), indent) for v in listed]

    def _entry(self, value: Value, name: str, indent: str) -> str:
        kind = type_text(value.type)
        return above(value_note(value), f"{indent} ") + (f"{kind} {name}" if kind else name)

    # attributes

    def _parameter(self, name: str, default: Attribute | None) -> tuple[str, str]:
        return ("", _attribute_name(name)) if default is None else self._attribute(name, default, "")

    def _attribute(self, key: str, attribute: Attribute, indent: str) -> tuple[str, str]:
        """Return the note and the text of an attribute."""
        name, kind, value = _attribute_name(key), attribute.type, attribute.value
        note = self._attribute_note(attribute)
        annotation = f": {ATTRIBUTE_WORDS[kind]}" if kind != "undefined" else ""
        if value is None:
            if attribute.ref:
                return note, f"{name}{annotation} = @{spelled(attribute.ref)}"
            return note, f"{name}: {ATTRIBUTE_WORDS[kind]} = ?"
        if kind in ITEM_OF:
            told = f"[{', '.join(self._many(ITEM_OF[kind], attribute, indent))}]"
        else:
            told = self._one(kind, value, indent, key)
        return note, f"{name}{annotation} = {told}"

    def _attribute_note(self, attribute: Attribute) -> str:
        if not (attribute.doc or attribute.ref or attribute.residue):
            return ""
        ref = attribute.ref if attribute.value is not None else ""
        residue = residue_fields(attribute.residue)
        return note_text(Fields(doc_string=attribute.doc, ref_attr_name=ref, residue=residue))

    def _many(self, item: str, attribute: Attribute, indent: str) -> Iterable[str]:
        if item == "int":
            return map(str, attribute.value)
        if item == "float":
            return [floats_text(attribute.value)]
        return (self._one(item, v, indent, attribute.name) for v in attribute.value)

    def _one(self, kind: str, value: Any, indent: str, default: str) -> str:
        if isinstance(value, Graph):
            return self.graph(value, indent, default or "graph")
        return self._values[kind](value, indent)


def common_empty(graph: Graph) -> frozenset[str]:
    """Return which fields are there though empty in every node of a graph."""
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
    """Return what has notes or not, separated by commas, in lines of their own where one has a note."""
    if not any(note for note, _ in items):
        return ", ".join([text for _, text in items])
    return ",".join([f"\n{indent}{above(note, indent)}{text}" for note, text in items])


def _computed(graph: Graph) -> Iterable[Value]:
    return (v for node in graph for v in node.outputs if v is not None)


def _is_unnamed(value: Value) -> bool:
    """Return whether a value has no name, and none to be read by is needed."""
    return not value.name and not value.uses


def _told_inline(graph: Graph) -> bool:
    """Return whether what is told of the inputs of a function can stand where they are listed."""
    told = [v for v in graph.inputs if v.value_info_index is not None]
    if any(v.type is None or value_note(v) for v in told):
        return False
    others = [
        v.value_info_index
        for v in (*_computed(graph), *graph.orphan_value_info)
        if v.value_info_index is not None
    ]
    places = [v.value_info_index for v in told if v.value_info_index is not None]
    return places == sorted(places) and max(places, default=-1) < min(others, default=math.inf)


def _place(value: Value) -> float:
    return math.inf if value.value_info_index is None else value.value_info_index


def _constant_text(constant: Constant, indent: str) -> str:
    told = shown(constant)
    return above(told.note, indent + _STEP) + told.value()


def _type_value_text(kind: Type | None, _: str) -> str:
    return noted_type_text(kind)


def _string_text(value: str | bytes) -> str:
    """Return a string, in quotes if that is what it is: bytes that are no UTF-8 stand as such."""
    if isinstance(value, str):
        return quoted(value)
    try:
        return quoted(value.decode())
    except UnicodeDecodeError:
        return base64_text(value)


def _attribute_name(name: str) -> str:
    """Return a name where the standard syntax knows no quotes: with them only where nothing else works."""
    return name if IDENTIFIER.fullmatch(name) else quoted(name)


def _graph_name(name: str, *, nested: bool) -> str:
    return quoted(name) if nested and is_float_word(name) else spelled(name)
