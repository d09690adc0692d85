"""Dimensions: names that are no identifiers, and sizes below 0."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sabir.ir import (
    Expr,
    MapType,
    NodeDevice,
    OptionalType,
    SequenceType,
    SparseTensorType,
    TensorType,
    read_dim,
    symbol,
)
from sabir.proto import NodeDeviceConfigurationProto
from sabir.repairing._declaring import repair
from sabir.repairing._repair import (
    AttributePlace,
    Identifiers,
    Repair,
    Task,
    attributes_of,
    graphs_in_defaults,
    plain_name,
    renamed,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from sabir.base import Location
    from sabir.checking import Survey
    from sabir.ir import Dim, Graph, Type, Value


@repair(
    "NAME004",
    "Odd characters become `_`, and a number is added where that is taken, wherever the name"
    " stands. A dimension such as `2*N` no longer states how it depends on others.",
    safe=False,
)
def rename_dimensions(task: Task) -> Iterator[Repair]:
    """Make the names of dimensions identifiers: one and the same wherever the old one stood."""
    if "NAME004" not in task.wanted:
        return
    survey = task.survey
    kinds = {id(v.type): v.type for v, _ in _typed_values(survey)}
    found = _Dimensions(name for kind in kinds.values() if kind is not None for name in _names_in(kind))
    _change_types(survey, found.in_type)
    for site in survey.graphs:
        for node in site.nodes:
            if node.devices:
                node.devices = tuple(found.in_layout(d, site.where) for d in node.devices)
    yield from found.repairs


@repair("TYPE003", "The size is removed: the dimension becomes unknown.")
def clear_negatives(task: Task) -> Iterator[Repair]:
    """Leave dimensions below 0 open, as whoever wrote them means: no tensor has such a size."""
    if "TYPE003" not in task.wanted:
        return
    repairs: list[Repair] = []

    def cleared(kind: Type, where: Location) -> Type:
        made = with_dims(kind, lambda dim: None if isinstance(dim, int) and dim < 0 else dim)
        if made is not kind:
            repairs.append(Repair("TYPE003", f"removed the negative size of a dimension of {kind}", where))
        return made

    _change_types(task.survey, cleared)
    yield from repairs


def _typed_values(survey: Survey) -> list[tuple[Value, Location]]:
    """Return whatever declares a type, with its place."""
    graphs = [(site.graph, site.where) for site in survey.graphs]
    graphs += [(g, f.where) for f in survey.functions for g in graphs_in_defaults(f.function)]
    values = (described for graph, where in graphs for described in _described(graph, where))
    return [(value, where) for value, where in values if value.type is not None]


def _change_types(survey: Survey, change: Callable[[Type, Location], Type]) -> None:
    """Change every type that a model declares, those in attributes too."""
    for value, where in _typed_values(survey):
        if value.type is not None:
            value.type = change(value.type, where)
    for held in attributes_of(survey):
        if held.attribute.type in {"type", "types"} and held.attribute.value:
            _in_attribute(held, change)


def _described(graph: Graph, where: Location) -> Iterator[tuple[Value, Location]]:
    """Yield every value whose type a graph may declare, with the location of the declaration."""
    for index, value in enumerate(graph.inputs):
        yield value, where.at("input", index=index, name=value.name)
    for index, value in enumerate(graph.outputs):
        if value is not None:
            yield value, where.at("output", index=index, name=value.name)
    for index, (_, info) in graph.output_infos.items():
        yield info, where.at("output", index=index, name=info.name)
    for value in (*graph.defined(), *graph.orphan_value_info):
        yield value, where.at("value_info", index=value.value_info_index, name=value.name)


def _in_attribute(held: AttributePlace, change: Callable[[Type, Location], Type]) -> None:
    many = held.attribute.type == "types"
    old: tuple[Type, ...] = held.attribute.value if many else (held.attribute.value,)
    new = tuple(change(kind, held.site.where) for kind in old)
    if any(a is not b for a, b in zip(old, new, strict=True)):
        held.put(value=new if many else new[0])


class _Dimensions:
    """The new names of dimensions, and every type in which they were put."""

    def __init__(self, taken: Iterable[str]) -> None:
        self.repairs: list[Repair] = []
        self._names = Identifiers(taken)
        self._found: dict[Expr, Expr] = {}
        self._types: dict[int, tuple[Type, Type]] = {}  # by identity; the old one is held, so that it stays

    def in_type(self, kind: Type, where: Location) -> Type:
        """Return a type under the new names; the same object where it has none of the old."""
        known = self._types.get(id(kind))
        if known is None:
            known = self._types[id(kind)] = kind, with_dims(kind, lambda d: self._in_dim(d, where))
        return known[1]

    def in_layout(self, device: NodeDevice, where: Location) -> NodeDevice:
        """Return a node's layout under the new names."""
        shardings = tuple(
            s._replace(axes=tuple(
                a._replace(pieces=tuple((self._in_dim(length, where), n) for length, n in a.pieces))
                for a in s.axes
            ))
            for s in device.shardings
        )  # fmt: skip
        if shardings == device.shardings:
            return device
        wire = device.wire
        if wire:
            proto = NodeDeviceConfigurationProto.FromString(wire)
            for piece in (p for s in proto.sharding_spec for a in s.sharded_dim for p in a.simple_sharding):
                if piece.dim_param:
                    piece.dim_param = str(self._in_dim(read_dim(piece.dim_param), where))
            wire = proto.SerializeToString()
        return device._replace(shardings=shardings, wire=wire)

    def _in_dim(self, dim: Dim, where: Location) -> Dim:
        if not isinstance(dim, Expr) or is_plain(dim):
            return dim
        new = self._found.get(dim)
        if new is None:
            old, name = str(dim), self._names.fresh(str(dim))
            new = self._found[dim] = symbol(name)
            lost = "" if old in dim.symbols else ", which no longer states how it depends on others"
            self.repairs.append(Repair("NAME004", renamed("the dimension", old, name) + lost, where))
        return new


def is_plain(dim: Dim) -> bool:
    """Return whether a dimension is open, a number, or has a C identifier for a name."""
    return not isinstance(dim, Expr) or plain_name(str(dim)) == str(dim)


def with_dims(kind: Type, change: Callable[[Dim], Dim]) -> Type:
    """Return a type with each dimension changed; the same object where none is."""
    match kind:
        case TensorType() | SparseTensorType() if kind.shape:
            shape = tuple(map(change, kind.shape))
            return kind if shape == kind.shape else replace(kind, shape=shape)
        case SequenceType() | OptionalType() if kind.item is not None:
            item = with_dims(kind.item, change)
            return kind if item is kind.item else replace(kind, item=item)
        case MapType() if kind.value is not None:
            value = with_dims(kind.value, change)
            return kind if value is kind.value else replace(kind, value=value)
        case _:
            return kind


def _names_in(kind: Type) -> set[str]:
    """Return every name in the dimensions of a type."""
    found = set[str]()

    def note(dim: Dim) -> Dim:
        if isinstance(dim, Expr):
            found.update(dim.symbols, [str(dim)])
        return dim

    with_dims(kind, note)
    return found
