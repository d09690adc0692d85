"""Nodes and graphs as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sabir.ir import Graph, SparseTensor, Tensor
from sabir.text._words import ATTRIBUTE_WORDS, IDENTIFIER, ITEM_OF, is_float_word, quoted, spelled
from sabir.text._write_tensors import data_text, float_text, head_text
from sabir.text._write_types import dotted_text, type_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sabir.ir import Attribute, Function, Node, Value
    from sabir.text._names import Names

_STEP = "   "


class GraphWriter:
    """Writes a graph and all inside it, with names from `names`."""

    __slots__ = ("_names", "_values")

    def __init__(self, names: Names) -> None:
        self._names = names
        self._values: dict[str, Callable[[Any, str], str]] = {
            "int": lambda value, _: str(int(value)),
            "float": lambda value, _: float_text(value),
            "string": lambda value, _: quoted(_unescaped(value)),
            "tensor": lambda value, _: _constant(value),
            "sparse_tensor": lambda value, _: _constant(value),
            "type": lambda value, _: type_text(value) or "?",
        }

    def graph(self, graph: Graph, indent: str = "", default: str = "") -> str:
        """Return a graph; `default` names one that has no name."""
        names = self._names
        names.open(graph)
        inputs = ", ".join(map(self._boundary, graph.inputs))
        outputs = ", ".join(map(self._boundary, graph.outputs))
        entries = [f"{head_text(c)} {names.of(v)} = {data_text(c)}" for v, c in graph.initializers.items()]
        entries += self._infos(graph)
        head = f"{_graph_name(graph.name or default, nested=bool(default))} ({inputs}) => ({outputs})"
        return head + self._rest(graph, entries, indent)

    def body(self, function: Function) -> str:
        """Return a function, from its name on."""
        names, graph = self._names, function.graph
        names.open(graph)
        parameters = [
            _attribute_name(n) if a is None else self._attribute(n, a, "")
            for n, a in function.attributes.items()
        ]
        inputs = ", ".join(self._declared(v) for v in graph.inputs)
        outputs = ", ".join(names.of(v) for v in graph.outputs)
        shown = f"<{', '.join(parameters)}> " if parameters else ""
        head = f"{spelled(function.name)} {shown}({inputs}) => ({outputs})"
        return head + self._rest(graph, self._infos(graph, function=True), "")

    def node(self, node: Node, indent: str = "") -> str:
        """Return a node, without the indent of its first line."""
        of = self._names.of
        label = f"[{spelled(node.name)}] " if node.name else ""
        outputs = ", ".join([of(v) for v in node.outputs])
        domain = f"{dotted_text(node.domain)}." if node.domain else ""
        op = node.op if IDENTIFIER.fullmatch(node.op) else quoted(node.op)
        overload = f":{_attribute_name(node.overload)}" if node.overload else ""
        inputs = ", ".join([of(v) for v in node.inputs])
        before = after = ""
        if node.attributes:
            shown = ", ".join([self._attribute(n, a, indent) for n, a in node.attributes.items()])
            # attributes with bodies read better last
            before, after = ("", f" <{shown}>") if node.graphs else (f" <{shown}>", "")
        return f"{label}{outputs} = {domain}{op}{overload}{before} ({inputs}){after}"

    def _rest(self, graph: Graph, entries: list[str], indent: str) -> str:
        """Return the entries and nodes of the graph that was opened, and close it."""
        names, inner = self._names, indent + _STEP
        names.show(graph.inputs)
        names.show(graph.initializers)
        lines: list[str] = []
        for node in graph:
            lines.append(f"{inner}{self.node(node, inner)}\n")
            names.show(node.outputs)
        names.close()
        told = f"\n{inner}<{f',{chr(10)}{inner} '.join(entries)}>\n{indent}" if entries else " "
        return f"{told}{{\n{''.join(lines)}{indent}}}"

    def _boundary(self, value: Value | None) -> str:
        """Return an input or output of a graph, with its type unless that stands among the entries."""
        return self._names.of(value) if value is None or value.info is not None else self._declared(value)

    def _declared(self, value: Value) -> str:
        name, kind = self._names.of(value), type_text(value.type)
        return f"{kind} {name}" if kind else name

    def _infos(self, graph: Graph, *, function: bool = False) -> list[str]:
        """Return what is told of values that are neither inputs nor outputs, in the file's order."""
        outputs: set[Value | None] = set() if function else set(graph.outputs)
        computed = (v for node in graph for v in node.outputs)
        told = [v for v in computed if v is not None and _is_told(v, is_output=v in outputs)]
        if not function:
            told += [v for v in (*graph.inputs, *graph.initializers) if v.info is not None]
        told = list(dict.fromkeys(told)) + list(graph.stale)
        told.sort(key=_place)
        stale = set(graph.stale)
        return [self._stale(v) if v in stale else self._declared(v) for v in told]

    def _stale(self, value: Value) -> str:
        kind = type_text(value.type)
        return f"{kind} {spelled(value.name)}" if kind else spelled(value.name)

    def _attribute(self, key: str, attribute: Attribute, indent: str) -> str:
        name, kind = _attribute_name(key), attribute.type
        annotation = f": {ATTRIBUTE_WORDS[kind]}" if kind != "undefined" else ""
        if attribute.ref:
            return f"{name}{annotation} = @{spelled(attribute.ref)}"
        if kind in ITEM_OF:
            item = ITEM_OF[kind]
            shown = f"[{', '.join(self._many(item, attribute, indent))}]"
        else:
            shown = self._one(kind, attribute.value, indent, key)
        return f"{name}{annotation} = {shown}"

    def _many(self, item: str, attribute: Attribute, indent: str) -> Iterable[str]:
        if item == "int":
            return map(str, attribute.value)
        return (self._one(item, v, indent, attribute.name) for v in attribute.value)

    def _one(self, kind: str, value: Any, indent: str, default: str) -> str:
        if isinstance(value, Graph):
            return self.graph(value, indent, default or "graph")
        return self._values[kind](value, indent)


def _is_told(value: Value, *, is_output: bool) -> bool:
    return value.info is not None or (
        value.type is not None and not is_output and bool(type_text(value.type))
    )


def _place(value: Value) -> float:
    return float("inf") if value.info is None else value.info


def _constant(constant: Tensor | SparseTensor) -> str:
    head, data = head_text(constant), data_text(constant)
    # without a name, only an equals sign tells the standard syntax that data in brackets follows
    return f"{head} = {data}" if data.startswith("[") else f"{head} {data}"


def _unescaped(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("utf-8", "surrogateescape")


def _attribute_name(name: str) -> str:
    """Return a name where the standard syntax knows no quotes: with them only where nothing else works."""
    return name if IDENTIFIER.fullmatch(name) else quoted(name)


def _graph_name(name: str, *, nested: bool) -> str:
    return quoted(name) if nested and is_float_word(name) else spelled(name)
