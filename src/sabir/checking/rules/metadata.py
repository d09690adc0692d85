"""Metadata: texts by key, each key once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sabir.base import Location, quote
from sabir.checking._examples import RELU, X, Y, in_graph, in_model
from sabir.checking._rule import Problem, rule
from sabir.proto import FunctionProto, GraphProto, ModelProto, NodeProto, ValueInfoProto

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sabir.checking._survey import GraphSite, Survey
    from sabir.ir import Residue, Value

_LAW = "Named metadata values; keys should be distinct."
_ONE = 'metadata_props { key: "k" value: "v" }'
_TWO = 'metadata_props { key: "k" value: "v" } metadata_props { key: "k" value: "w" }'
_GRAPH = f'name: "g" {X} {Y}'


def _twice(keys: Iterable[str], where: Location) -> Iterator[Problem]:
    seen: set[str] = set()
    for key in keys:
        if key in seen:
            message = f"the metadata key {quote(key)} occurs twice"
            yield Problem(message, where.at("metadata", name=key), "keep one of the two")
        seen.add(key)


def _keys(metadata: dict[str, str] | None, residue: Residue | None, message: Any) -> list[str]:
    """Return the keys of metadata, with those of duplicate entries, which the residue has as bytes."""
    if residue is None or not residue.wire:
        return []
    return [*(metadata or ()), *(entry.key for entry in message.FromString(residue.wire).metadata_props)]


@rule(
    "META001",
    _LAW,
    source="ir.txt",
    over="model",
    note="readers keep different ones of the two; onnx refuses such a model",
    bad=in_model(f"graph {{ {_GRAPH} {RELU} }} {_TWO}"),
    good=in_model(f"graph {{ {_GRAPH} {RELU} }} {_ONE}"),
)
def keys_of_the_model(survey: Survey) -> Iterator[Problem]:
    """The keys of the model's metadata are distinct."""
    model = survey.model
    yield from _twice(_keys(model.metadata, model.residue, ModelProto), Location())


@rule(
    "META002",
    _LAW,
    source="ir.txt",
    over="model",
    note="as META001",
    bad=(
        in_graph(f"{_GRAPH} {RELU} {_TWO}", ir_version=10),
        in_graph(f'{_GRAPH} node {{ op_type: "Relu" input: "x" output: "y" {_TWO} }}', ir_version=10),
        in_graph(
            f'{_GRAPH} {RELU} initializer {{ name: "w" data_type: 1 float_data: 1 {_TWO} }}', ir_version=10
        ),
        in_graph(
            f'name: "g" {X} node {{ op_type: "Relu" input: "x" output: "t" }}'
            ' node { op_type: "Relu" input: "t" output: "y" }'
            f' value_info {{ name: "t" type {{ tensor_type {{ elem_type: 1 }} }} {_TWO} }} {Y}',
            ir_version=10,
        ),
        in_model(
            f'graph {{ {_GRAPH} {RELU} }} functions {{ name: "f" domain: "d" input: "a" output: "b"'
            f' opset_import {{ version: 17 }} node {{ op_type: "Relu" input: "a" output: "b" }} {_TWO} }}',
            ir_version=10,
        ),
    ),
    good=in_graph(f'{_GRAPH} node {{ op_type: "Relu" input: "x" output: "y" {_ONE} }} {_ONE}', ir_version=10),
)
def keys_inside(survey: Survey) -> Iterator[Problem]:
    """The keys of the metadata of a graph, function, node, value or tensor are distinct."""
    for site in survey.functions:
        yield from _twice(_keys(site.function.metadata, site.function.residue, FunctionProto), site.where)
    for site in survey.graphs:
        yield from _in_graph(site)
    for site in survey.tensors:
        proto = site.proto
        if proto is not None and len(proto.metadata_props):
            yield from _twice((e.key for e in proto.metadata_props if type(e.key) is str), site.where)


def _in_graph(site: GraphSite) -> Iterator[Problem]:
    graph = site.graph
    yield from _twice(_keys(graph.metadata, graph.residue, GraphProto), site.where)
    for index, node in enumerate(site.nodes):
        if node.residue is not None:
            yield from _twice(_keys(node.metadata, node.residue, NodeProto), site.at_node(index))
    for value in site.values:
        if value.residue is not None:
            yield from _of_value(value, site.at_value(value))
    for value in graph.orphan_value_info:
        yield from _of_value(
            value, site.where.at("value_info", index=value.value_info_index, name=value.name)
        )
    for index, (_, described) in graph.output_infos.items():
        yield from _of_value(described, site.where.at("output", index=index, name=described.name))


def _of_value(value: Value, where: Location) -> Iterator[Problem]:
    yield from _twice(_keys(value.metadata, value.residue, ValueInfoProto), where)
