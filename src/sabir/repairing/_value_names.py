"""Repairs of the names of values: unique identifiers, none of which hides a value of an enclosing graph."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sabir.repairing._attributes import graphs_in_defaults
from sabir.repairing._declaring import repair
from sabir.repairing._identifiers import Identifiers, plain_name, renamed
from sabir.repairing._references import update_references
from sabir.repairing._repair import Repair, Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sabir.base import Location
    from sabir.checking import GraphSite
    from sabir.ir import Graph, TrainingInfo, Value


@repair(
    "GRAPH004",
    "All values of the name but one are renamed. An output keeps the name; without an output, an input or"
    " initializer; without these, a value that is read.",
)
@repair(
    "GRAPH004",
    "An input or initializer of the model that shares its name is renamed; whoever runs the model"
    " or loads its weights must use the new name.",
    safe=False,
)
@repair("GRAPH007", "The inner value is renamed.")
@repair("GRAPH008", "The inner value is renamed.")
@repair(
    "NAME001",
    "Characters that identifiers cannot contain become `_`, and a number is added if the new name is in use."
    " Inputs, outputs and initializers are renamed too: whoever runs the model must use the new names, and"
    " weights lose the names by which a framework finds its parameters.",
    safe=False,
)
@repair("TENSOR011", "The initializer is named; nothing can read it.")
def rename_values(task: Task) -> Iterator[Repair]:
    """Rename values; what refers to the object of a value, as nodes and bindings do, needs no change."""
    survey = task.survey
    # training graphs read values of the main graph by name, so the two share their names
    main = [s for s in survey.roots if s.kind != "function"]
    for roots in (main, *([s] for s in survey.roots if s.kind == "function")):
        in_use = {name for root in roots for site in root.with_subgraphs() for name in _names_at(site.graph)}
        if roots is main:
            in_use.update(name for training in survey.model.training for name in _names_bound(training))
        function = roots[0].function
        if function is not None:
            in_use.update(name for graph in graphs_in_defaults(function) for name in _names_at(graph))
        renaming = _Renaming(Identifiers(in_use), task)
        for root in roots:
            renaming.graph(root, 0)
            update_references(root, renaming.new_names)
        yield from renaming.repairs


@dataclass(slots=True)
class _GraphNames:
    """One graph whose values are being named.

    `keepers` has the value that keeps each name, `new_names` the new names by old ones, and `visible` the
    names that this graph made visible.
    """

    site: GraphSite
    depth: int
    keepers: dict[str, Value]
    outputs: set[Value | None]
    new_names: dict[str, str]
    visible: list[str] = field(default_factory=list[str])


class _Renaming:
    """The renaming of the values of root graphs that share their names."""

    def __init__(self, names: Identifiers, task: Task) -> None:
        self.repairs: list[Repair] = []
        self.new_names: dict[Graph, dict[str, str]] = {}
        self._names, self._selected, self._unsafe = names, task.selected, task.unsafe
        self._depths: dict[str, int] = {}  # the depth of the graph that defines each visible name

    def graph(self, site: GraphSite, depth: int) -> None:
        """Rename the values of a graph, and those of its subgraphs."""
        graph, where = site.graph, site.where
        new_names = self.new_names.setdefault(graph, {})
        level = _GraphNames(site, depth, _keepers(graph), set(graph.outputs), new_names)
        inputs = set(graph.inputs)
        for index, value in enumerate(graph.inputs):
            self._value(
                level, value, "input", lambda i=index, v=value: where.at("input", index=i, name=v.name)
            )
        for value in graph.initializers:
            if value not in inputs:
                self._value(level, value, "initializer", lambda v=value: where.at("initializer", name=v.name))
        for index, node in enumerate(site.nodes):
            for inner in site.inner.get(node, ()) if site.inner else ():
                self.graph(inner, depth + 1)
            for slot, value in enumerate(node.outputs):
                if value is not None:
                    self._value(level, value, "value", lambda i=index, s=slot, v=value: (
                        site.at_node(i).at("output", index=s, name=v.name)
                    ))  # fmt: skip
        for name in level.visible:
            self._depths.pop(name, None)

    def _value(self, level: _GraphNames, value: Value, what: str, where: Callable[[], Location]) -> None:
        """Rename a value if it violates a rule, and make its name visible."""
        old, is_output = value.name, value in level.outputs
        rule = self._violated(level, value, what)
        if rule:
            place = where()  # with the old name
            value.name = self._names.fresh(old or what)
            if level.keepers.get(old) is value:
                level.new_names[old] = value.name
            interface = level.site.kind == "main" and (what == "input" or is_output)
            noun = "output" if is_output and what != "input" else what
            message = renamed(f"the model's {noun}" if interface else f"the {noun}", old, value.name)
            self.repairs.append(Repair(rule, message, place, interface))
        if value.name and self._depths.setdefault(value.name, level.depth) == level.depth:
            level.visible.append(value.name)

    def _violated(self, level: _GraphNames, value: Value, what: str) -> str:
        """Return the selected rule that a value's name violates, or ""."""
        name, kind = value.name, level.site.kind
        if not name:
            nameless = {("input", "main"): "GRAPH002", ("input", "subgraph"): "GRAPH003"}
            rules = ["TENSOR011" if what == "initializer" else nameless.get((what, kind), "")]
        else:
            hides = self._depths.get(name, level.depth) < level.depth
            rules = [
                "NAME001" if plain_name(name) != name else "",
                "GRAPH004" if level.keepers.get(name, value) is not value else "",
                ("GRAPH008" if value.node is None else "GRAPH007") if hides else "",
            ]
        known_outside = bool(name) and kind == "main" and (what != "value" or value in level.outputs)
        allowed = self._unsafe if known_outside else self._selected
        return next((rule for rule in rules if rule in allowed), "")


def _keepers(graph: Graph) -> dict[str, Value]:
    """Return which value keeps each name: an output, then an input or initializer, then one that is read."""
    keepers: dict[str, Value] = {}
    outputs = set(graph.outputs)

    def rank(value: Value) -> tuple[bool, bool, bool]:
        return value in outputs, value.node is None, bool(value.uses)

    for value in graph.defined():
        other = keepers.setdefault(value.name, value)
        if other is not value and rank(value) > rank(other):
            keepers[value.name] = value
    return keepers


def _names_at(graph: Graph) -> Iterator[str]:
    """Yield every name that a graph defines or refers to, including names that nothing defines."""
    for values in (graph.inputs, graph.initializers, graph.outputs, graph.orphan_value_info):
        yield from (v.name for v in values if v is not None)
    for node in graph:
        yield from (v.name for v in (*node.inputs, *node.outputs) if v is not None)
        yield from (s.name for d in node.devices for s in d.shardings)
    for annotation in graph.annotations:
        yield from (v.name for v in (annotation.value, *(v for _, v in annotation.parameters)))


def _names_bound(training: TrainingInfo) -> Iterator[str]:
    for pairs in (training.initialization_binding, training.update_binding):
        yield from (v.name for pair in pairs for v in pair)
