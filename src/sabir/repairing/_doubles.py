"""What stands in a model twice or for nothing: second imports, keys, attributes, descriptions, functions."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from sabir.base import Location, quote
from sabir.ir import Annotation, Model, WireTensor, bound_opsets, canonical_domain
from sabir.proto import FunctionProto, GraphProto, ModelProto, NodeProto, ValueInfoProto
from sabir.repairing._declaring import repair
from sabir.repairing._infos import tidy_infos
from sabir.repairing._repair import Repair, Task
from sabir.schema import function_label
from sabir.serial import dumps

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sabir.checking import FunctionSite, GraphSite
    from sabir.ir import Function, Graph, Node, Residue, Value


@repair("META001", "The second entry is dropped.")
@repair("META002", "The second entry is dropped.")
@repair("MODEL004", "The import of the highest version stays, as that one binds; the others are dropped.")
@repair("NODE004", "The second attribute of the name is dropped.")
@repair("QUANT003", "An annotation that is the same as another is dropped.")
@repair(
    "FUNC001",
    "One of two functions that are the same is dropped; two that differ stay, as nothing says"
    " which is meant.",
)
@repair("FUNC004", "An attribute that is listed twice is listed once; an output that is listed twice stays.")
@repair("FUNC005", "The declaration without a default is dropped.")
def drop_doubles(task: Task) -> Iterator[Repair]:
    """Drop what comes again; what came first is what counts, and it stays."""
    survey, wanted = task.survey, task.wanted
    model = survey.model
    left = _Leftovers(model.residue, ModelProto, Location(), wanted)
    yield from left.imports(model.opsets)
    yield from left.metadata(model.metadata, "META001")
    model.residue = left.residue
    for site in survey.graphs:
        yield from _in_graph(site, wanted)
    for tensor in survey.tensors:
        if isinstance(tensor.tensor, WireTensor) and "META002" in wanted:
            yield from _again(tensor.tensor.proto.metadata_props, set(), "META002", tensor.where)
    for function in survey.functions:
        yield from _in_function(function, wanted)
    if "FUNC001" in wanted:
        yield from _functions(survey.functions, model)


def _in_graph(site: GraphSite, wanted: frozenset[str]) -> Iterator[Repair]:
    graph, where = site.graph, site.where
    if graph.residue is not None:
        left = _Leftovers(graph.residue, GraphProto, where, wanted)
        yield from left.metadata(graph.metadata, "META002")
        graph.residue = left.residue
    for index, node in enumerate(site.nodes):
        if node.residue is not None and node.residue.wire:
            yield from _in_node(node, site.at_node(index), wanted)
    if graph.orphan_value_info:
        yield from tidy_infos(graph, where, wanted)
    for value in (
        *graph.defined(),
        *graph.orphan_value_info,
        *(info for _, info in graph.output_infos.values()),
    ):
        if value.residue is not None and value.residue.wire:
            yield from _in_value(value, where, wanted)
    if graph.annotations and "QUANT003" in wanted:
        yield from _annotations(graph, where)


def _in_node(node: Node, where: Location, wanted: frozenset[str]) -> Iterator[Repair]:
    left = _Leftovers(node.residue, NodeProto, where, wanted)
    if "NODE004" in wanted:
        for again in left.message.attribute:
            yield Repair("NODE004", f"dropped the second attribute {quote(again.name)}", where)
        del left.message.attribute[:]
    yield from left.metadata(node.metadata, "META002")
    node.residue = left.residue


def _in_value(value: Value, where: Location, wanted: frozenset[str]) -> Iterator[Repair]:
    left = _Leftovers(value.residue, ValueInfoProto, where.at("value_info", name=value.name), wanted)
    yield from left.metadata(value.metadata, "META002")
    value.residue = left.residue


def _in_function(site: FunctionSite, wanted: frozenset[str]) -> Iterator[Repair]:
    function = site.function
    left = _Leftovers(function.residue, FunctionProto, site.where, wanted)
    yield from left.imports(function.opsets)
    yield from left.metadata(function.metadata, "META002")
    yield from left.attributes(function)
    function.residue = left.residue


class _Leftovers:
    """What a message says beyond its meaning, opened so that entries can be taken out."""

    def __init__(
        self, residue: Residue | None, message: Any, where: Location, wanted: frozenset[str]
    ) -> None:
        self._residue, self._where, self._wanted = residue, where, wanted
        self.message = message.FromString(b"" if residue is None else residue.wire)

    @property
    def residue(self) -> Residue | None:
        """What is left now."""
        if self._residue is None:
            return None
        wire = self.message.SerializeToString()
        if wire == self._residue.wire:
            return self._residue
        placed = Counter(field for field, _ in self._residue.places)
        whole = {field for field, count in placed.items() if len(getattr(self.message, field)) == count}
        places = tuple(p for p in self._residue.places if p[0] in whole)  # of other lists they have moved
        made = self._residue._replace(wire=wire, repeated=(), places=places)
        return made if any(made) else None

    def metadata(self, first: dict[str, str] | None, rule: str) -> Iterator[Repair]:
        """Drop metadata whose key came before."""
        if rule in self._wanted:
            yield from _again(self.message.metadata_props, set(first or ()), rule, self._where)

    def imports(self, opsets: dict[str, int]) -> Iterator[Repair]:
        """Drop the imports of a domain but the one that binds, where their versions differ."""
        if "MODEL004" not in self._wanted:
            return
        bound, field = bound_opsets(opsets), self.message.opset_import
        every = [*opsets.items(), *((entry.domain, entry.version) for entry in field)]
        differing = {name for d, v in every if (name := canonical_domain(d)) in bound and bound[name] != v}
        if not differing:
            return
        dropped = [e for e in field if canonical_domain(e.domain) in differing]
        kept = [e for e in field if canonical_domain(e.domain) not in differing]
        again = [(e.domain, e.version) for e in dropped]
        del field[:]
        field.extend(kept)
        for domain, version in tuple(opsets.items()):
            name = canonical_domain(domain)
            first = next(d for d, v in opsets.items() if canonical_domain(d) == name and v == bound[name])
            if name in differing and domain != first:
                again.append((domain, version))
                del opsets[domain]
        if self._residue is not None:  # they go by place, and the places have moved
            entries = tuple(e for e in self._residue.entries if e[0] != "opset_import")
            self._residue = self._residue._replace(entries=entries)
        for domain, version in again:
            message = f"dropped the import of {quote(domain or 'ai.onnx')} in version {version}"
            where = self._where.at("opset_import", name=domain or "ai.onnx")
            yield Repair("MODEL004", f"{message}; version {bound[canonical_domain(domain)]} remains", where)

    def attributes(self, function: Function) -> Iterator[Repair]:
        """Drop a function's attributes that are declared already; one with a default is what counts."""
        for held in (self.message.attribute, self.message.attribute_proto):
            for place in reversed(range(len(held))):
                name = held[place] if isinstance(held[place], str) else held[place].name
                has_default = function.attributes.get(name) is not None
                rule = "FUNC005" if has_default else "FUNC004"
                if rule in self._wanted and name in function.attributes:
                    del held[place]
                    message = f"dropped the second declaration of the attribute {quote(name)}"
                    stays = "; the one with a default stays" if has_default else ""
                    yield Repair(rule, message + stays, self._where.at("attribute", name=name))


def _again(pairs: Any, seen: set[str], rule: str, where: Location) -> Iterator[Repair]:
    """Drop the pairs of a message whose keys were seen before."""
    again: list[int] = []
    for place, pair in enumerate(pairs):
        if pair.key in seen:
            again.append(place)
            message = f"dropped the second value of {quote(pair.key)}, {quote(pair.value)}"
            yield Repair(rule, message, where.at("metadata", name=pair.key))
        seen.add(pair.key)
    for place in reversed(again):
        del pairs[place]


def _annotations(graph: Graph, where: Location) -> Iterator[Repair]:
    kept: list[Annotation] = []
    for index, note in enumerate(graph.annotations):
        if any(_alike(note, k) for k in kept):
            at = where.at("quantization_annotation", index=index, name=note.value.name)
            yield Repair("QUANT003", f"dropped the second annotation of {quote(note.value.name)}", at)
        else:
            kept.append(note)
    graph.annotations = tuple(kept)


def _alike(a: Annotation, b: Annotation) -> bool:
    return a.value is b.value and a.parameters == b.parameters


def _functions(sites: Iterable[FunctionSite], model: Model) -> Iterator[Repair]:
    """Drop functions that are the same as another of their name; of two that differ, either may be meant."""
    first: dict[tuple[str, str, str], bytes] = {}
    alike: dict[tuple[str, str, str], list[FunctionSite]] = {}
    for site in sites:
        alike.setdefault(site.function.key, []).append(site)
    dropped: set[int] = set()
    for key, several in alike.items():
        for site in several if len(several) > 1 else ():
            written = dumps(Model(ir_version=model.ir_version, functions=[site.function]))
            if first.setdefault(key, written) == written and site is not several[0]:
                dropped.add(id(site.function))
                yield Repair(
                    "FUNC001",
                    f"dropped {function_label(site.function)}, which repeats an earlier one",
                    site.where,
                )
    model.functions = [f for f in model.functions if id(f) not in dropped]
