"""The types of values: immutable, comparable and hashable."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from sabir.base import hinted, hints, legible
from sabir.elements import ElementType, element
from sabir.ir._dims import Dim, Expr, known_equal, product, symbol

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Shape: TypeAlias = tuple[Dim, ...]
Item: TypeAlias = int | Expr | float | bool | str | None  # one known element; None where it is not known
ElementKey: TypeAlias = int | str | np.dtype[Any] | type[Any] | ElementType  # identifies an element type
Known: TypeAlias = tuple[Item, ...]  # the contents of a tensor, row by row

_KEYS = frozenset({"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "string"})
UNDEFINED = ElementType(0, "undefined", 0, np.dtype(object), "int32_data", "bool", is_signed=False)


def unknown_element(number: int) -> ElementType:
    """Return an element type for a number that the standard does not define."""
    return replace(UNDEFINED, number=number, name=f"element{number}") if number else UNDEFINED


class TypeNote(NamedTuple):
    """Parts of a type in a file that its meaning lacks: denotations, and the bytes if they are unusual."""

    denotation: str = ""
    dims: tuple[str, ...] = ()
    wire: bytes = b""


_EXAMPLE = "tensor_type('float', ['N', 3])"
_ADVICE = f"sabir.ir.{_EXAMPLE} converts text, lists and dtypes"


def _has_text(shape: tuple[object, ...]) -> bool:
    return str in map(type, shape)


class _Shown:
    """A type whose repr is its class around its text; class names tell types from dimensions."""

    __slots__ = ()

    def __repr__(self) -> str:
        return legible(f"{type(self).__name__}({self})")


_TENSOR_HINTS = {
    "elem_type": hinted("element"),
    "dtype": "the element type is `element`, and its numpy dtype `element.dtype`",
    "dims": hinted("shape"),
}


@hints(**_TENSOR_HINTS)
@dataclass(frozen=True, slots=True, repr=False)
class TensorType(_Shown):
    """A tensor: its element type, its shape, and its contents where they are known.

    `shape` is None when even the rank is unknown. `known` has the elements row by row, only together with a
    static shape. Raises TypeError for an element type or a dimension that is text, and for a shape that is
    not a tuple: `tensor_type` converts these.

    >>> print(tensor_type('float', ['N', 3]), tensor_type('float', [2, 3]).size)
    float[N,3] 6
    """

    element: ElementType
    shape: Shape | None = None
    known: Known | None = None
    note: TypeNote | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        shape = self.shape
        if shape is not None and (type(shape) is not tuple or _has_text(shape)):
            raise TypeError(f"a shape is a tuple of int, Expr and None, not {shape!r}; {_ADVICE}")
        if type(self.element) is not ElementType:
            raise TypeError(f"an element type is an ElementType, not {self.element!r}; {_ADVICE}")

    @property
    def rank(self) -> int | None:
        """The number of dimensions, or None."""
        return None if self.shape is None else len(self.shape)

    @property
    def size(self) -> Dim:
        """The number of elements, as far as it is known."""
        return None if self.shape is None else product(self.shape)

    @property
    def is_static(self) -> bool:
        """Whether every dimension is a number."""
        return self.shape is not None and all(isinstance(d, int) for d in self.shape)

    def with_shape(self, *dims: Dim | str) -> TensorType:
        """Return this element type with another shape; text becomes a symbol: `t.with_shape("N", 3)`."""
        return TensorType(self.element, dims_of(dims))

    def with_known(self, known: Iterable[Item] | None) -> TensorType:
        """Return this type with (or without) known contents."""
        return TensorType(self.element, self.shape, None if known is None else tuple(known), self.note)

    def join(self, other: Type) -> Type:
        """Return the most specific type that includes both; raises TypeError where none does."""
        if not isinstance(other, TensorType) or self.element != other.element:
            raise TypeError(f"{self} and {other} have no type in common")
        if self.shape is None or other.shape is None or len(self.shape) != len(other.shape):
            return TensorType(self.element)
        dims = tuple(a if known_equal(a, b) else None for a, b in zip(self.shape, other.shape, strict=True))
        return TensorType(self.element, dims, self.known if self.known == other.known else None)

    def __repr__(self) -> str:
        known = "" if self.known is None else f", known={self.known}"
        return legible(f"TensorType({self}{known})")

    @property
    def signature(self) -> str:
        """The type in the notation of operator schemas: `tensor(float)`."""
        return f"tensor({self.element})"

    def __str__(self) -> str:
        if self.shape is None:
            return f"{self.element}[]"
        dims = ",".join("?" if d is None else str(d) for d in self.shape)
        return f"{self.element}[{dims}]" if self.shape else str(self.element)


@hints(**_TENSOR_HINTS)
@dataclass(frozen=True, slots=True, repr=False)
class SparseTensorType(_Shown):
    """A sparse tensor: its element type and the shape of its dense form.

    >>> from sabir.elements import FLOAT
    >>> print(SparseTensorType(FLOAT, (3, 4)))
    sparse_tensor(float[3,4])
    """

    element: ElementType
    shape: Shape | None = None
    note: TypeNote | None = field(default=None, compare=False, repr=False)

    @property
    def signature(self) -> str:
        """The type in the notation of operator schemas."""
        return f"sparse_tensor({self.element})"

    def join(self, other: Type) -> Type:
        """Return the most specific type that includes both; raises TypeError where none does."""
        if not isinstance(other, SparseTensorType) or self.element != other.element:
            raise TypeError(f"{self} and {other} have no type in common")
        return self if self.shape == other.shape else SparseTensorType(self.element)

    def __str__(self) -> str:
        return f"sparse_tensor({TensorType(self.element, self.shape)})"


@dataclass(frozen=True, slots=True, repr=False)
class SequenceType(_Shown):
    """An ordered collection of values of one type.

    >>> print(SequenceType(tensor_type('float', [2])))
    seq(float[2])
    """

    item: Type | None
    note: TypeNote | None = field(default=None, compare=False, repr=False)

    @property
    def signature(self) -> str:
        """The type in the notation of operator schemas."""
        return f"seq({self.item.signature if self.item else '?'})"

    def join(self, other: Type) -> Type:
        """Return the most specific type that includes both; raises TypeError where none does."""
        if not isinstance(other, SequenceType):
            raise TypeError(f"{self} and {other} have no type in common")
        if self.item is None or other.item is None:
            return self if other.item is None else other
        return SequenceType(self.item.join(other.item))

    def __str__(self) -> str:
        return f"seq({self.item or '?'})"


@dataclass(frozen=True, slots=True, repr=False)
class OptionalType(_Shown):
    """A value of a type, or nothing.

    >>> print(OptionalType(tensor_type('float', [2])))
    optional(float[2])
    """

    item: Type | None
    note: TypeNote | None = field(default=None, compare=False, repr=False)

    @property
    def signature(self) -> str:
        """The type in the notation of operator schemas."""
        return f"optional({self.item.signature if self.item else '?'})"

    def join(self, other: Type) -> Type:
        """Return the most specific type that includes both; raises TypeError where none does."""
        if not isinstance(other, OptionalType):
            raise TypeError(f"{self} and {other} have no type in common")
        if self.item is None or other.item is None:
            return self if other.item is None else other
        return OptionalType(self.item.join(other.item))

    def __str__(self) -> str:
        return f"optional({self.item or '?'})"


@dataclass(frozen=True, slots=True, repr=False)
class MapType(_Shown):
    """An associative table from integers or strings to values of one type.

    >>> from sabir.elements import element
    >>> print(MapType(element('string'), tensor_type('float')))
    map(string,float[])
    """

    key: ElementType
    value: Type | None
    note: TypeNote | None = field(default=None, compare=False, repr=False)

    @property
    def has_valid_keys(self) -> bool:
        """Whether keys are integers or strings, or of a type that the file does not state."""
        return not self.key.number or self.key.name in _KEYS

    @property
    def signature(self) -> str:
        """The type in the notation of operator schemas."""
        if isinstance(self.value, TensorType):
            return (
                f"map({self.key}, {self.value.element})"  # schemas name the element type of the values alone
            )
        return f"map({self.key}, {self.value.signature if self.value else '?'})"

    def join(self, other: Type) -> Type:
        """Return the most specific type that includes both; raises TypeError where none does."""
        if not isinstance(other, MapType) or self.key != other.key:
            raise TypeError(f"{self} and {other} have no type in common")
        if self.value is None or other.value is None:
            return self if other.value is None else other
        return MapType(self.key, self.value.join(other.value))

    def __str__(self) -> str:
        return f"map({self.key},{self.value or '?'})"


@dataclass(frozen=True, slots=True, repr=False)
class OpaqueType(_Shown):
    """A type that only its domain knows.

    >>> print(OpaqueType('org.acme', 'Handle'))
    opaque(org.acme,Handle)
    """

    domain: str = ""
    name: str = ""
    note: TypeNote | None = field(default=None, compare=False, repr=False)

    @property
    def signature(self) -> str:
        """The type in the notation of operator schemas."""
        return f"opaque({self.domain},{self.name})"

    def join(self, other: Type) -> Type:
        """Return this type when the other is the same."""
        if self != other:
            raise TypeError(f"{self} and {other} have no type in common")
        return self

    def __str__(self) -> str:
        return f"opaque({self.domain},{self.name})" if self.domain else f"opaque({self.name})"


Type: TypeAlias = TensorType | SparseTensorType | SequenceType | OptionalType | MapType | OpaqueType


def tensor_type(kind: ElementKey, shape: Sequence[int | str | Dim] | None = None) -> TensorType:
    """Return a tensor type for an element type, its name, its number, or a numpy dtype.

    Text in `shape` becomes a symbol. Raises UnsupportedError for a dtype that ONNX does not have.

    >>> print(tensor_type(np.float16, ['N', None, 3]))
    float16[N,?,3]
    """
    return TensorType(element(kind), None if shape is None else dims_of(shape))


def dims_of(shape: Iterable[int | str | Dim]) -> Shape:
    """Return the dimensions of a shape; text becomes a symbol."""
    return tuple(symbol(d) if isinstance(d, str) else d for d in shape)


_TYPES = frozenset({TensorType, SparseTensorType, SequenceType, OptionalType, MapType, OpaqueType})


def require_type(type_: Type) -> Type:
    """Return a type; raises TypeError for anything that is not a type object."""
    if type_.__class__ not in _TYPES:
        raise TypeError(f"a type is an object such as sabir.ir.{_EXAMPLE}, not {type_!r}")
    return type_
