"""Repairs of duplicates: second imports, metadata, attributes, descriptions, annotations and functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sabir.base import Location, quote
from sabir.ir import Annotation, Model, WireTensor, places
from sabir.proto import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto
from sabir.repairing._declaring import repair
from sabir.repairing._repair import Repair, Task
from sabir.repairing._residues import ResidueEditor, drop_pairs
from sabir.repairing._tensors import replace_tensor, with_message
from sabir.repairing._value_info import repair_value_info
from sabir.schema import function_label
from sabir.serial import dumps

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sabir.checking import FunctionSite, GraphSite
    from sabir.ir import Graph, Node, Value


@repair("META001", "The second entry is dropped.")
@repair("META002", "The second entry is dropped.")
@repair("MODEL004", "The import of the highest version is kept, as it applies; the others are dropped.")
@repair("NODE004", "The second attribute of the name is dropped.")
@repair("QUANT003", "An annotation that equals another one is dropped.")
@repair(
    "FUNC001",
    "If two functions are equal, the second is dropped. Two functions that differ are kept, as nothing says"
    " which is meant.",
)
@repair(
    "FUNC004", "An attribute that is listed twice is listed once; an output that is listed twice is kept."
)
@repair("FUNC005", "The declaration without a default is dropped.")
def drop_duplicates(task: Task) -> Iterator[Repair]:
    """Drop second entries; the first one is the one that readers use."""
    survey, selected = task.survey, task.selected
    model = survey.model
    editor = ResidueEditor(model.residue, ModelProto, Location(), selected)
    yield from editor.drop_imports(model.opsets)
    yield from editor.drop_metadata(model.metadata, "META001")
    model.residue = editor.residue
    for site in survey.graphs:
        yield from _in_graph(site, selected)
    if "META002" in selected:
        yield from _in_tensors(model)
    for function in survey.functions:
        yield from _in_function(function, selected)
    if "FUNC001" in selected:
        yield from _drop_functions(survey.functions, model)


def _in_graph(site: GraphSite, selected: frozenset[str]) -> Iterator[Repair]:
    graph, where = site.graph, site.where
    if graph.residue is not None:
        editor = ResidueEditor(graph.residue, GraphProto, where, selected)
        yield from editor.drop_metadata(graph.metadata, "META002")
        graph.residue = editor.residue
    for index, node in enumerate(site.nodes):
        if node.residue is not None and node.residue.wire:
            yield from _in_node(node, site.at_node(index), selected)
    if graph.orphan_value_info:
        yield from repair_value_info(graph, where, selected)
    output_infos = (info for _, info in graph.output_infos.values())
    for value in (*graph.defined(), *graph.orphan_value_info, *output_infos):
        if value.residue is not None and value.residue.wire:
            yield from _in_value(value, where, selected)
    if graph.annotations and "QUANT003" in selected:
        yield from _drop_annotations(graph, where)


def _in_node(node: Node, where: Location, selected: frozenset[str]) -> Iterator[Repair]:
    editor = ResidueEditor(node.residue, NodeProto, where, selected)
    if "NODE004" in selected:
        for attribute in editor.message.attribute:
            yield Repair("NODE004", f"dropped the second attribute {quote(attribute.name)}", where)
        del editor.message.attribute[:]
    yield from editor.drop_metadata(node.metadata, "META002")
    node.residue = editor.residue


def _in_value(value: Value, where: Location, selected: frozenset[str]) -> Iterator[Repair]:
    at = where.at("value_info", name=value.name)
    editor = ResidueEditor(value.residue, ValueInfoProto, at, selected)
    yield from editor.drop_metadata(value.metadata, "META002")
    value.residue = editor.residue


def _in_tensors(model: Model) -> Iterator[Repair]:
    """Drop second entries of tensors: other tensors replace them, as models may share a tensor."""
    repeating = [p for p in places(model, WireTensor) if _repeats(p.object.proto.metadata_props)]
    for place in repeating:
        proto = TensorProto.FromString(place.object.proto.SerializeToString())
        yield from drop_pairs(proto.metadata_props, set(), "META002", place.inside)
        replace_tensor(place, with_message(place.object, proto))


def _repeats(pairs: Iterable[Any]) -> bool:
    keys = [pair.key for pair in pairs]
    return len(set(keys)) < len(keys)


def _in_function(site: FunctionSite, selected: frozenset[str]) -> Iterator[Repair]:
    function = site.function
    editor = ResidueEditor(function.residue, FunctionProto, site.where, selected)
    yield from editor.drop_imports(function.opsets)
    yield from editor.drop_metadata(function.metadata, "META002")
    yield from editor.drop_function_attributes(function)
    function.residue = editor.residue


def _drop_annotations(graph: Graph, where: Location) -> Iterator[Repair]:
    kept: list[Annotation] = []
    for index, annotation in enumerate(graph.annotations):
        if any(_are_equal(annotation, other) for other in kept):
            name = annotation.value.name
            at = where.at("quantization_annotation", index=index, name=name)
            yield Repair("QUANT003", f"dropped the second annotation of {quote(name)}", at)
        else:
            kept.append(annotation)
    graph.annotations = tuple(kept)


def _are_equal(a: Annotation, b: Annotation) -> bool:
    return a.value is b.value and a.parameters == b.parameters


def _drop_functions(sites: Iterable[FunctionSite], model: Model) -> Iterator[Repair]:
    """Drop functions that equal the first of their name; of functions that differ, any may be meant."""
    by_key: dict[tuple[str, str, str], list[FunctionSite]] = {}
    for site in sites:
        by_key.setdefault(site.function.key, []).append(site)
    dropped: set[int] = set()
    for first, *others in by_key.values():
        expected = _bytes_of(first, model) if others else b""
        for site in others:
            if _bytes_of(site, model) == expected:
                dropped.add(id(site.function))
                message = f"dropped {function_label(site.function)}, which repeats an earlier one"
                yield Repair("FUNC001", message, site.where)
    model.functions = [f for f in model.functions if id(f) not in dropped]


def _bytes_of(site: FunctionSite, model: Model) -> bytes:
    return dumps(Model(ir_version=model.ir_version, functions=[site.function]))
