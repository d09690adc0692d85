"""Names of values: identifiers, each given once, and inside a graph unlike what is visible from outside."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sabir.repairing._declaring import repair
from sabir.repairing._followers import follow
from sabir.repairing._repair import Identifiers, Repair, Task, graphs_in_defaults, plain_name, renamed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sabir.base import Location
    from sabir.checking import GraphSite
    from sabir.ir import Graph, TrainingInfo, Value


@repair(
    "GRAPH004",
    "All but one are renamed: an output keeps the name, else an input or initializer, else what is"
    " read by it.",
)
@repair(
    "GRAPH004",
    "An input or initializer of the model that shares its name is renamed; whoever runs the model"
    " or loads its weights must know.",
    safe=False,
)
@repair("GRAPH007", "The inner value is renamed.")
@repair("GRAPH008", "The inner value is renamed.")
@repair(
    "NAME001",
    "Odd characters become `_`, and a number is added where that is taken. Inputs, outputs and"
    " initializers are renamed too: whoever runs the model must know, and weights lose the names"
    " by which a framework finds its parameters.",
    safe=False,
)
@repair("TENSOR011", "The initializer is named; nothing can read it.")
def rename_values(task: Task) -> Iterator[Repair]:
    """Rename values; what reads, annotates or binds one refers to the value itself, and so follows."""
    survey = task.survey
    # training graphs see the names of the main graph, and share them
    main = [s for s in survey.roots if s.kind != "function"]
    for roots in (main, *([s] for s in survey.roots if s.kind == "function")):
        taken = {name for root in roots for site in root.within() for name in _names_at(site.graph)}
        if roots is main:
            taken.update(name for training in survey.model.training for name in _names_bound(training))
        function = roots[0].function
        if function is not None:
            taken.update(name for graph in graphs_in_defaults(function) for name in _names_at(graph))
        naming = _Naming(Identifiers(taken), task)
        for root in roots:
            naming.graph(root, 0)
            follow(root, naming.renamed)
        yield from naming.repairs


@dataclass(slots=True)
class _GraphNames:
    """One graph whose values are being named; `keepers` are those that keep the name that they share."""

    site: GraphSite
    depth: int
    keepers: dict[str, Value]
    outputs: set[Value | None]
    changed: dict[str, str]
    own: list[str] = field(default_factory=list[str])


class _Naming:
    """One pass over root graphs that share their names."""

    def __init__(self, names: Identifiers, task: Task) -> None:
        self.repairs: list[Repair] = []
        self.renamed: dict[Graph, dict[str, str]] = {}
        self._names, self._wanted, self._unsafe = names, task.wanted, task.unsafe
        self._visible: dict[
            str, int
        ] = {}  # each name that can be seen: how deep the graph stands that gives it

    def graph(self, site: GraphSite, depth: int) -> None:
        """Name what a graph defines, and what those inside it do."""
        graph, where = site.graph, site.where
        changed = self.renamed.setdefault(graph, {})
        level = _GraphNames(site, depth, _keepers(graph), set(graph.outputs), changed)
        inputs = set(graph.inputs)
        for index, value in enumerate(graph.inputs):
            self._settle(
                level, value, "input", lambda i=index, v=value: where.at("input", index=i, name=v.name)
            )
        for value in graph.initializers:
            if value not in inputs:
                self._settle(
                    level, value, "initializer", lambda v=value: where.at("initializer", name=v.name)
                )
        for index, node in enumerate(site.nodes):
            for inner in site.inner.get(node, ()) if site.inner else ():
                self.graph(inner, depth + 1)
            for slot, value in enumerate(node.outputs):
                if value is not None:
                    self._settle(level, value, "value", lambda i=index, s=slot, v=value: (
                        site.at_node(i).at("output", index=s, name=v.name)
                    ))  # fmt: skip
        for name in level.own:
            self._visible.pop(name, None)

    def _settle(self, level: _GraphNames, value: Value, what: str, where: Callable[[], Location]) -> None:
        old, is_output = value.name, value in level.outputs
        rule = self._broken(level, value, what)
        if rule:
            place = where()
            value.name = self._names.fresh(old or what)
            if level.keepers.get(old) is value:
                level.changed[old] = value.name
            interface = level.site.kind == "main" and (what == "input" or is_output)
            shown = "output" if is_output and what != "input" else what
            message = renamed(f"the model's {shown}" if interface else f"the {shown}", old, value.name)
            self.repairs.append(Repair(rule, message, place, interface))
        if value.name and self._visible.setdefault(value.name, level.depth) == level.depth:
            level.own.append(value.name)

    def _broken(self, level: _GraphNames, value: Value, what: str) -> str:
        """Return the rule for whose sake a value needs another name, or nothing."""
        name, kind = value.name, level.site.kind
        if not name:
            nameless = {("input", "main"): "GRAPH002", ("input", "subgraph"): "GRAPH003"}
            rules = ["TENSOR011" if what == "initializer" else nameless.get((what, kind), "")]
        else:
            hides = self._visible.get(name, level.depth) < level.depth
            rules = [
                "NAME001" if plain_name(name) != name else "",
                "GRAPH004" if level.keepers.get(name, value) is not value else "",
                ("GRAPH008" if value.node is None else "GRAPH007") if hides else "",
            ]
        known_outside = bool(name) and kind == "main" and (what != "value" or value in level.outputs)
        allowed = self._unsafe if known_outside else self._wanted
        return next((rule for rule in rules if rule in allowed), "")


def _keepers(graph: Graph) -> dict[str, Value]:
    """Return which value keeps each name: an output, then an input or initializer, then one that is read."""
    found: dict[str, Value] = {}
    outputs = set(graph.outputs)

    def rank(value: Value) -> tuple[bool, bool, bool]:
        return value in outputs, value.node is None, bool(value.uses)

    for value in graph.defined():
        other = found.setdefault(value.name, value)
        if other is not value and rank(value) > rank(other):
            found[value.name] = value
    return found


def _names_at(graph: Graph) -> Iterator[str]:
    """Yield every name that a graph gives to a value or refers to, that of what nothing defines too."""
    for values in (graph.inputs, graph.initializers, graph.outputs, graph.orphan_value_info):
        yield from (v.name for v in values if v is not None)
    for node in graph:
        yield from (v.name for v in (*node.inputs, *node.outputs) if v is not None)
        yield from (s.name for d in node.devices for s in d.shardings)
    for note in graph.annotations:
        yield from (v.name for v in (note.value, *(v for _, v in note.parameters)))


def _names_bound(training: TrainingInfo) -> Iterator[str]:
    for pairs in (training.initialization_binding, training.update_binding):
        yield from (v.name for pair in pairs for v in pair)
