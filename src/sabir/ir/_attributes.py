"""Attributes: named constants of a node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping, ValuesView
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

import numpy as np

from sabir.base import UnsupportedError
from sabir.ir._tensors import ArrayTensor, SparseTensor, Tensor
from sabir.ir._types import MapType, OpaqueType, OptionalType, SequenceType, SparseTensorType, TensorType

if TYPE_CHECKING:
    from sabir.ir._graph import Graph, Node
    from sabir.ir._residue import Residue

AttributeType = Literal[
    "undefined", "float", "int", "string", "tensor", "graph", "floats", "ints", "strings", "tensors",
    "graphs", "sparse_tensor", "sparse_tensors", "type", "types",
]  # fmt: skip
ATTRIBUTE_TYPES: tuple[AttributeType, ...] = get_args(AttributeType)  # the place is the standard's number
AttributeValue: TypeAlias = Any


class Nested:
    """What an attribute of type graph holds: a graph that knows the node it belongs to."""

    __slots__ = ("parent",)

    parent: Node | None


@dataclass(frozen=True, slots=True)
class Attribute:
    """One named constant.

    `value` is a `float`, `int`, `str` (or `bytes` when it is no UTF-8), `Tensor`, `SparseTensor`, `Graph`,
    a type, or a tuple of one of them, as `type` says. In a function body, `ref` may name the function's
    attribute to take the value from; `value` is then None.
    """

    name: str
    type: AttributeType
    value: AttributeValue
    doc: str = ""
    ref: str = ""
    residue: Residue | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, name: str, value: object) -> Attribute:
        """Return the attribute for a Python value; its type follows the value's.

        An empty list has no type of its own: pass an `Attribute` that says which. Raises UnsupportedError
        for a value that no attribute can hold.
        """
        if isinstance(value, Attribute):
            return value if value.name == name else cls(name, value.type, value.value, value.doc, value.ref)
        if isinstance(value, (list, tuple)):
            return cls(name, *_several(name, tuple(cast("Iterable[object]", value))))
        kind, plain = _single(name, value)
        return cls(name, kind, plain)

    @property
    def graphs(self) -> tuple[Graph, ...]:
        """The subgraphs in this attribute."""
        if self.ref or self.value is None:
            return ()
        return (self.value,) if self.type == "graph" else self.value if self.type == "graphs" else ()


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
            raise UnsupportedError(f"attribute {name!r}: no attribute type holds a {type(value).__name__}")


def _several(name: str, values: tuple[object, ...]) -> tuple[AttributeType, AttributeValue]:
    if not values:
        raise UnsupportedError(
            f"attribute {name!r}: an empty list has no type; pass Attribute(name, 'ints', ())"
        )
    pairs = [_single(name, v) for v in values]
    kinds = {kind for kind, _ in pairs}
    if kinds == {"int", "float"}:
        return "floats", tuple(float(np.float32(v)) for _, v in pairs)
    if len(kinds) > 1:
        raise UnsupportedError(
            f"attribute {name!r} mixes {' and '.join(sorted(kinds))}; a list holds one type"
        )
    return _PLURAL[pairs[0][0]], tuple(v for _, v in pairs)


class Attributes(MutableMapping[str, Attribute]):
    """The attributes of a node, in order; keeps the parent of every subgraph in step."""

    __slots__ = ("_items", "_node")

    def __init__(self, node: Node, items: Mapping[str, Attribute] | None = None) -> None:
        self._node = node
        self._items: dict[str, Attribute] = {}
        for name, attribute in (items or {}).items():
            self._items[name] = attribute
            for graph in attribute.graphs:
                graph.parent = node

    def __getitem__(self, name: str) -> Attribute:
        return self._items[name]

    def __setitem__(self, name: str, attribute: Attribute) -> None:
        self._unlink(name)
        self._items[name] = attribute
        for graph in attribute.graphs:
            graph.parent = self._node

    def __delitem__(self, name: str) -> None:
        self._unlink(name)
        del self._items[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def values(self) -> ValuesView[Attribute]:
        """The attributes, in order."""
        return self._items.values()

    def __repr__(self) -> str:
        return f"Attributes({self._items!r})"

    def value(self, name: str, default: AttributeValue = None) -> AttributeValue:
        """Return the value of an attribute, or `default` where it is not given."""
        attribute = self._items.get(name)
        return default if attribute is None else attribute.value

    def _unlink(self, name: str) -> None:
        old = self._items.get(name)
        for graph in old.graphs if old else ():
            graph.parent = None
