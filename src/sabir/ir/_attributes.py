"""Attributes: named constants of a node."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, Mapping, MutableMapping, ValuesView
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

import numpy as np

from sabir.base import UnsupportedError, hints, legible, quote
from sabir.ir._tensors import ArrayTensor, SparseTensor, Tensor
from sabir.ir._types import MapType, OpaqueType, OptionalType, SequenceType, SparseTensorType, TensorType

if TYPE_CHECKING:
    from sabir.ir._graph import Graph
    from sabir.ir._node import Node
    from sabir.ir._residue import Residue

AttributeType = Literal[
    "undefined", "float", "int", "string", "tensor", "graph", "floats", "ints", "strings", "tensors",
    "graphs", "sparse_tensor", "sparse_tensors", "type", "types",
]  # fmt: skip
ATTRIBUTE_TYPES: tuple[AttributeType, ...] = get_args(AttributeType)  # the place is the standard's number
GRAPH_TYPES = frozenset({"graph", "graphs"})
AttributeValue: TypeAlias = Any


_ONNX_FIELDS = (
    "f", "i", "s", "t", "g", "floats", "ints", "strings", "tensors", "as_int", "as_ints", "as_float",
    "as_floats", "as_string", "as_strings", "as_tensor", "as_graph",
)  # fmt: skip


class Nested:
    """The base of graphs: an object that an attribute contains, and that knows the node of the attribute."""

    __slots__ = ("parent",)

    parent: Node | None


@hints(**dict.fromkeys(_ONNX_FIELDS, "whatever the type, the content is the `value`"))
@dataclass(frozen=True, slots=True, repr=False)
class Attribute:
    """One compile-time argument of a node, immutable.

    `value` is a `float`, `int`, `str` (or `bytes` when it is not UTF-8), `Tensor`, `SparseTensor`, `Graph`,
    a type, or a tuple of one of them, as `type` says. In a function body, `ref` may name the attribute of the
    function that has the value; `value` is then None.

    >>> Attribute.of('axis', 1).type, Attribute.of('pads', [0, 1]).value
    ('int', (0, 1))
    """

    name: str
    type: AttributeType
    value: AttributeValue
    doc: str = ""
    ref: str = ""
    residue: Residue | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, name: str, value: object) -> Attribute:
        """Return the attribute for a Python value; its type follows from that of the value.

        An empty list has no type: pass an `Attribute`, which has one. Raises UnsupportedError for a value
        that no attribute type fits.
        """
        if isinstance(value, Attribute):
            return value if value.name == name else replace(value, name=name)
        if isinstance(value, (list, tuple)):
            return cls(name, *_several(name, tuple(cast("Iterable[object]", value))))
        type_, plain = _single(name, value)
        return cls(name, type_, plain)

    @property
    def graphs(self) -> tuple[Graph, ...]:
        """The subgraphs in this attribute."""
        if self.ref or self.value is None:
            return ()
        return (self.value,) if self.type == "graph" else self.value if self.type == "graphs" else ()

    @property
    def content(self) -> str:
        """The value, or the reference, as a short text: long lists are cut, and tensors are not read."""
        return f"@{self.ref}" if self.ref else _shown(self.value)

    def __repr__(self) -> str:
        return legible(f"Attribute({self.name}: {self.type} = {self.content})")


_LONGEST = 8  # items of a list that are shown


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        items = cast("tuple[object, ...]", value)
        more = [f"... {len(items)} in all"] if len(items) > _LONGEST else []
        return f"[{', '.join([*map(_shown, items[:_LONGEST]), *more])}]"
    return quote(value) if isinstance(value, (str, bytes)) else repr(value)


_PLURAL: dict[AttributeType, AttributeType] = {
    "float": "floats", "int": "ints", "string": "strings", "tensor": "tensors", "graph": "graphs",
    "sparse_tensor": "sparse_tensors", "type": "types",
}  # fmt: skip
_TYPES = (TensorType, SparseTensorType, SequenceType, OptionalType, MapType, OpaqueType)


def _single(name: str, value: object) -> tuple[AttributeType, AttributeValue]:
    match value:
        case bool() | int() | np.integer() | np.bool_():
            return "int", int(value)
        case float() | np.floating():
            return "float", float(np.float32(value))
        case str() | bytes():
            return "string", value
        case np.ndarray():
            return "tensor", ArrayTensor(cast("np.ndarray[Any, Any]", value))
        case Tensor():
            return "tensor", value
        case SparseTensor():
            return "sparse_tensor", value
        case _ if isinstance(value, _TYPES):
            return "type", value
        case Nested():
            return "graph", value
        case _:
            raise UnsupportedError(f"attribute {name!r}: no attribute type fits a {type(value).__name__}")


def _several(name: str, values: tuple[object, ...]) -> tuple[AttributeType, AttributeValue]:
    if not values:
        raise UnsupportedError(
            f"attribute {name!r}: an empty list has no type; pass Attribute(name, 'ints', ())"
        )
    pairs = [_single(name, v) for v in values]
    types = {type_ for type_, _ in pairs}
    if types == {"int", "float"}:
        return "floats", tuple(float(np.float32(v)) for _, v in pairs)
    if len(types) > 1:
        raise UnsupportedError(
            f"attribute {name!r} mixes {' and '.join(sorted(types))}; a list has items of one type"
        )
    return _PLURAL[pairs[0][0]], tuple(v for _, v in pairs)


class Attributes(MutableMapping[str, Attribute]):
    """The attributes of a node by name, in order; the node becomes the parent of every subgraph.

    What is assigned is converted as by `Attribute.of`: `node.attributes["axis"] = 1`.
    """

    __slots__ = ("_items", "_node", "may_have_graphs")

    def __init__(self, node: Node, items: Mapping[str, Attribute | object] | None = None) -> None:
        """Raises UnsupportedError for a value that no attribute type fits; then nothing is linked."""
        self._node = node
        self.may_have_graphs = False  # whether one of them was ever a graph: few are, and all walks ask
        self._items: dict[str, Attribute] = {}
        if items:
            self._items = {
                name: value
                if isinstance(value, Attribute) and value.name == name
                else Attribute.of(name, value)
                for name, value in items.items()
            }
            self._adopt()

    def take_over(self, items: dict[str, Attribute]) -> None:
        """Have these attributes, without checks: for `Node.linked`. They have their own names."""
        self._items = items
        self._adopt()

    def _adopt(self) -> None:
        for attribute in self._items.values():
            if attribute.type in GRAPH_TYPES:
                self._link(attribute)

    def _link(self, attribute: Attribute) -> None:
        for graph in attribute.graphs:
            self.may_have_graphs = True
            if self._node.graph is not None:
                self._node.graph.may_nest = True
            graph.parent = self._node

    def __getitem__(self, name: str) -> Attribute:
        return self._items[name]

    def __setitem__(self, name: str, value: Attribute | object) -> None:
        attribute = Attribute.of(name, value)
        self._unlink(name)
        self._items[name] = attribute
        self._link(attribute)

    def __delitem__(self, name: str) -> None:
        self._unlink(name)
        del self._items[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, name: object) -> bool:
        return name in self._items

    def items(self) -> ItemsView[str, Attribute]:
        """The names with the attributes, in order."""
        return self._items.items()

    def values(self) -> ValuesView[Attribute]:
        """The attributes, in order."""
        return self._items.values()

    def __repr__(self) -> str:
        return f"Attributes({self._items!r})"

    def value(self, name: str, default: AttributeValue = None) -> AttributeValue:
        """Return the value of an attribute, or `default` where the node does not have it."""
        attribute = self._items.get(name)
        return default if attribute is None else attribute.value

    def _unlink(self, name: str) -> None:
        old = self._items.get(name)
        for graph in old.graphs if old else ():
            if graph.parent is self._node:
                graph.parent = None

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (self._items,)  # without its node a copy has no links to keep
