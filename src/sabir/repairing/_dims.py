"""Repairs of dimensions: names that are not identifiers, and negative sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.ir import Expr, layout_with_dims, symbol, with_dims
from sabir.repairing._attributes import EditableAttribute, editable_attributes, graphs_in_defaults
from sabir.repairing._declaring import repair
from sabir.repairing._identifiers import Identifiers, plain_name, renamed
from sabir.repairing._repair import Repair, Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from sabir.base import Location
    from sabir.checking import Survey
    from sabir.ir import Dim, Graph, NodeDevice, Type, Value


@repair(
    "NAME004",
    "Characters that identifiers cannot contain become `_`, and a number is added if the new name is in use;"
    " the dimension gets the same name everywhere. A dimension such as `2*N` no longer says how it follows"
    " from others.",
    safe=False,
)
def rename_dimensions(task: Task) -> Iterator[Repair]:
    """Replace the names of dimensions that are not identifiers, each by the same name everywhere."""
    if "NAME004" not in task.selected:
        return
    survey = task.survey
    types = {id(v.type): v.type for v, _ in _typed_values(survey)}
    renaming = _Renaming(name for type_ in types.values() if type_ is not None for name in _names_in(type_))
    _change_types(survey, renaming.of_type)
    for site in survey.graphs:
        for node in site.nodes:
            if node.devices:
                node.devices = tuple(renaming.of_layout(d, site.where) for d in node.devices)
    yield from renaming.repairs


@repair("TYPE003", "The size is removed: the dimension becomes unknown.")
def clear_negative_sizes(task: Task) -> Iterator[Repair]:
    """Leave negative dimensions open: no tensor has such a size, and writers mean an unknown one."""
    if "TYPE003" not in task.selected:
        return
    repairs: list[Repair] = []

    def cleared(type_: Type, where: Location) -> Type:
        changed = with_dims(type_, lambda dim: None if isinstance(dim, int) and dim < 0 else dim)
        if changed is not type_:
            repairs.append(Repair("TYPE003", f"removed the negative size of a dimension of {type_}", where))
        return changed

    _change_types(task.survey, cleared)
    yield from repairs


def _typed_values(survey: Survey) -> list[tuple[Value, Location]]:
    """Return every value with a declared type, and the location of the declaration."""
    graphs = [(site.graph, site.where) for site in survey.graphs]
    graphs += [(g, f.where) for f in survey.functions for g in graphs_in_defaults(f.function)]
    values = (described for graph, where in graphs for described in _declarations(graph, where))
    return [(value, where) for value, where in values if value.type is not None]


def _change_types(survey: Survey, change: Callable[[Type, Location], Type]) -> None:
    """Change every type that a model declares, of values and in attributes."""
    for value, where in _typed_values(survey):
        if value.type is not None:
            value.type = change(value.type, where)
    for editable in editable_attributes(survey):
        if editable.attribute.type in {"type", "types"} and editable.attribute.value:
            _change_types_in(editable, change)


def _declarations(graph: Graph, where: Location) -> Iterator[tuple[Value, Location]]:
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


def _change_types_in(editable: EditableAttribute, change: Callable[[Type, Location], Type]) -> None:
    is_list = editable.attribute.type == "types"
    old: tuple[Type, ...] = editable.attribute.value if is_list else (editable.attribute.value,)
    new = tuple(change(type_, editable.site.where) for type_ in old)
    if any(a is not b for a, b in zip(old, new, strict=True)):
        editable.change(value=new if is_list else new[0])


class _Renaming:
    """New names for dimensions, applied to types and device layouts; collects the repairs."""

    def __init__(self, names_in_use: Iterable[str]) -> None:
        self.repairs: list[Repair] = []
        self._names = Identifiers(names_in_use)
        self._new_dims: dict[Expr, Expr] = {}
        # old and new type by the id of the old one, which must stay alive as long as its id is a key
        self._new_types: dict[int, tuple[Type, Type]] = {}

    def of_type(self, type_: Type, where: Location) -> Type:
        """Return a type with the new names; the same object if no name in it changes."""
        known = self._new_types.get(id(type_))
        if known is None:
            known = self._new_types[id(type_)] = type_, with_dims(type_, lambda d: self._of_dim(d, where))
        return known[1]

    def of_layout(self, device: NodeDevice, where: Location) -> NodeDevice:
        """Return the device layout of a node with the new names; the same object if no name in it changes."""
        return layout_with_dims(device, lambda length: self._of_dim(length, where))

    def _of_dim(self, dim: Dim, where: Location) -> Dim:
        if not isinstance(dim, Expr) or is_plain(dim):
            return dim
        new = self._new_dims.get(dim)
        if new is None:
            old, name = str(dim), self._names.fresh(str(dim))
            new = self._new_dims[dim] = symbol(name)
            lost = "" if old in dim.symbols else ", which no longer states how it depends on others"
            self.repairs.append(Repair("NAME004", renamed("the dimension", old, name) + lost, where))
        return new


def is_plain(dim: Dim) -> bool:
    """Return whether a dimension is open, a number, or named by a C identifier."""
    return not isinstance(dim, Expr) or plain_name(str(dim)) == str(dim)


def _names_in(type_: Type) -> set[str]:
    """Return every dimension of a type that is an expression, as text, and the symbols in it."""
    names = set[str]()

    def collect(dim: Dim) -> Dim:
        if isinstance(dim, Expr):
            names.update(dim.symbols, [str(dim)])
        return dim

    with_dims(type_, collect)
    return names
