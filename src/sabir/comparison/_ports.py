"""Changes of the interface: the inputs and outputs of a graph, matched by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.base import Location, quote
from sabir.comparison._changes import Change
from sabir.comparison._dims import Dimensions
from sabir.comparison._types import TypeDifference, compare_types
from sabir.ir import OptionalType

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sabir.comparison._dims import Effect
    from sabir.comparison._types import Axis
    from sabir.ir import Constant, Graph, Type, Value

DEFAULTS_SINCE = 4
"""The first IR version in which an initializer need not be an input; before it, such an input is a weight."""


class Port(NamedTuple):
    """An input or output: its value, its declared type, its location, and the default of an input."""

    value: Value
    type: Type | None
    where: Location
    default: Constant | None = None

    @property
    def is_optional(self) -> bool:
        """Whether a consumer may leave the input out."""
        return self.default is not None or isinstance(self.type, OptionalType)


class _Pair(NamedTuple):
    old: Port
    new: Port
    difference: TypeDifference


Ports = dict[str, Port]


def inputs_of(graph: Graph, where: Location, ir_version: int) -> Ports:
    """Return the inputs by name; before IR 4 an input with an initializer is a weight."""
    found: Ports = {}
    for index, value in enumerate(graph.inputs):
        default = graph.initializers.get(value)
        if default is None or ir_version >= DEFAULTS_SINCE:
            place = where.at("input", index=index, name=value.name)
            found.setdefault(value.name, Port(value, value.type, place, default))
    return found


def outputs_of(graph: Graph, where: Location) -> Ports:
    """Return the outputs by name, with the types that they have as outputs."""
    found: Ports = {}
    for index, value in enumerate(graph.outputs):
        if value is None:
            continue
        described = graph.output_infos.get(index)
        type_ = described[1].type if described is not None and described[0] is value else value.type
        found.setdefault(value.name, Port(value, type_, where.at("output", index=index, name=value.name)))
    return found


def compare_ports(inputs: tuple[Ports, Ports], outputs: tuple[Ports, Ports]) -> Iterator[Change]:
    """Yield the changes of old and new inputs and outputs; raises for a default that cannot be read."""
    input_pairs, output_pairs = _pairs(*inputs), _pairs(*outputs)
    dimensions = Dimensions(axis for pair in input_pairs for axis in pair.difference.axes)
    effects = iter(dimensions.of_inputs())
    yield from _removed(*inputs, "input")
    for pair in input_pairs:
        yield from _of_default(pair)
        yield from _of_facets(pair, "input")
        yield from _of_axes(pair, [next(effects) for _ in pair.difference.axes], "input")
        yield from _documentation(pair, "input")
    yield from _added_inputs(*inputs)
    yield from _moved(*inputs, "input")
    yield from _removed(*outputs, "output")
    for pair in output_pairs:
        yield from _of_facets(pair, "output")
        yield from _of_axes(pair, [dimensions.of_output(a) for a in pair.difference.axes], "output")
        yield from _documentation(pair, "output")
    for name, port in outputs[1].items():
        if name not in outputs[0]:
            yield Change("output-added", f"the output {quote(name)} is new", None, port.where)
    yield from _moved(*outputs, "output")


def _pairs(old: Ports, new: Ports) -> list[_Pair]:
    return [
        _Pair(port, new[name], compare_types(port.type, new[name].type))
        for name, port in old.items()
        if name in new
    ]


def _removed(old: Ports, new: Ports, kind: str) -> Iterator[Change]:
    for name, port in old.items():
        if name not in new:
            yield Change(f"{kind}-removed", f"the {kind} {quote(name)} is gone", port.where, None)


def _added_inputs(old: Ports, new: Ports) -> Iterator[Change]:
    for name, port in new.items():
        if name not in old and port.is_optional:
            has = "a default" if port.default is not None else "an optional type"
            message = f"the input {quote(name)} is new, with {has}"
            yield Change("optional-input-added", message, None, port.where)
        elif name not in old:
            message = f"the input {quote(name)} is new, and has no default"
            yield Change("input-added", message, None, port.where)


def _moved(old: Ports, new: Ports, kind: str) -> Iterator[Change]:
    """Yield the change of ports whose position is no longer the old one, apart from removed ports."""
    kept = [name for name in old if name in new]
    for name, other in zip(kept, new, strict=False):
        if name != other:
            message = f"the position of {kind} {quote(name)} now has {quote(other)}"
            if other not in old:
                message += f"; add new {kind}s after the old ones"
            yield Change(f"{kind}s-reordered", message, old[name].where, new[name].where)
            return


def _of_default(pair: _Pair) -> Iterator[Change]:
    old, new = pair.old, pair.new
    if old.default is None and new.default is not None:
        yield _change("default-added", "the input has a default now", pair)
    elif old.default is not None and new.default is None:
        yield _change("default-removed", "the input has no default any more", pair)
    elif old.default != new.default:
        yield _change("default-changed", "the input has another default", pair)


def _of_facets(pair: _Pair, kind: str) -> Iterator[Change]:
    for facet, message in pair.difference.facets:
        name = facet if facet.startswith("meaning") else f"{kind}-{_named_for(facet, kind)}"
        yield _change(name, message, pair)


_KINDS: dict[tuple[str, str], str] = {
    # an input must take what it took, and an output must not have what it did not have
    ("input", "shape-narrowed"): "shape-changed",
    ("output", "shape-widened"): "shape-changed",
}


def _named_for(facet: str, kind: str) -> str:
    return _KINDS.get((kind, facet), facet)


def _of_axes(pair: _Pair, effects: Sequence[Effect], kind: str) -> Iterator[Change]:
    """Yield one change for each effect on the dimensions of a port, with all axes that have it."""
    by_effect: dict[str, list[Axis]] = {}
    for axis, effect in zip(pair.difference.axes, effects, strict=True):
        if effect != "same":
            by_effect.setdefault(effect, []).append(axis)
    for effect, axes in by_effect.items():
        shown = ", ".join(f"{a.place} was {_text(a.old)} and is {_text(a.new)}" for a in axes)
        named = (
            "dimension-renamed" if effect == "renamed" else f"{kind}-{_named_for(f'shape-{effect}', kind)}"
        )
        yield _change(named, shown, pair)


def _text(dim: object) -> str:
    return "open" if dim is None else str(dim)


def _documentation(pair: _Pair, kind: str) -> Iterator[Change]:
    old, new = pair.old.value, pair.new.value
    if old.doc != new.doc:
        yield _change("documentation-changed", f"the {kind} has another doc string", pair)
    if (old.metadata or {}) != (new.metadata or {}):
        yield _change("metadata-changed", f"the {kind} has other metadata", pair)


def _change(name: str, message: str, pair: _Pair) -> Change:
    return Change(name, message, pair.old.where, pair.new.where)
