"""Attributes from Python values, as their declared types need them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from sabir.base import SabirError, SchemaError, quote
from sabir.elements import element
from sabir.ir._attributes import ATTRIBUTE_TYPES, Attribute, AttributeType, Nested
from sabir.ir._constants import natural_tensor
from sabir.ir._tensors import SparseTensor, Tensor
from sabir.ir._types import MapType, OpaqueType, OptionalType, SequenceType, SparseTensorType, TensorType

if TYPE_CHECKING:
    from sabir.ir._hooks import Site

_TYPES = (TensorType, SparseTensorType, SequenceType, OptionalType, MapType, OpaqueType)
_PLURALS = {f"{one}s": one for one in ATTRIBUTE_TYPES if f"{one}s" in ATTRIBUTE_TYPES}


def coerced(
    owner: str, name: str, type_: AttributeType, value: Any, site: Site, *, is_element: bool = False
) -> Attribute:
    """Return the attribute `name` of a declared type from a Python value.

    `is_element` allows whatever names an element type. A function builds a subgraph at `site`. Raises
    SchemaError for a value of another type; `owner` is the operator in the message.
    """
    if isinstance(value, Attribute):
        return Attribute.of(name, value)
    if is_element and not isinstance(value, (int, np.integer)):
        value = _element(owner, name, type_, value)
    single = _PLURALS.get(type_)
    try:
        convert = _PLAIN.get(single or type_) or _converter(owner, name, single or type_, site)
        return Attribute(
            name, type_, convert(value) if single is None else tuple(map(convert, _items(value)))
        )
    except (TypeError, ValueError, KeyError) as error:
        raise SchemaError(
            f"{owner}: attribute {name!r} must be {type_}, and {_shown(cast('object', value))} is not"
        ) from error


def free_attribute(name: str, value: Any, site: Site) -> Attribute:
    """Return an attribute whose type follows from the Python value; a function builds a subgraph."""
    if callable(value) and not isinstance(value, type):
        return Attribute(name, "graph", site.subgraph(value, name=name))
    return Attribute.of(name, value)


def _converter(owner: str, name: str, type_: str, site: Site) -> Callable[[Any], object]:
    if type_ == "graph":
        return lambda value: _graph(value, name, site)
    if type_ != "tensor":
        raise KeyError(type_)
    return lambda value: value if isinstance(value, Tensor) else natural_tensor(value, f"{owner}: {name!r}")


def _element(owner: str, name: str, type_: AttributeType, value: Any) -> object:
    """Return an element type as its number, or as its name where the attribute is a string (Cast:1)."""
    try:
        found = element(value)
    except (SabirError, TypeError) as error:
        raise SchemaError(f"{owner}: attribute {name!r} must name an element type: {error}") from error
    return found.number if type_ == "int" else found.name.upper()


def _items(value: Any) -> Iterable[object]:
    if isinstance(value, np.ndarray):
        array = cast("np.ndarray[Any, Any]", value)
        if array.ndim != 1:
            raise TypeError("an attribute's list has one dimension")
        return array
    if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
        raise TypeError("not a list")
    return cast("Sequence[object]", value)


def _shown(value: object) -> str:
    return "a function" if callable(value) else quote(value)


def _int(value: Any) -> int:
    return int(cast("Any", value)) if isinstance(value, np.bool_) else operator.index(value)


def _float(value: Any) -> float:
    if isinstance(value, (str, bytes, bool, np.bool_)):
        raise TypeError("not a number")
    return float(np.float32(value))


def _string(value: object) -> str | bytes:
    if not isinstance(value, (str, bytes)):
        raise TypeError("not a text")
    return str(value) if isinstance(value, str) else bytes(value)


def _sparse(value: object) -> SparseTensor:
    if not isinstance(value, SparseTensor):
        raise TypeError("not a sparse tensor")
    return value


def _type(value: object) -> object:
    if not isinstance(value, _TYPES):
        raise TypeError("not a type")
    return value


def _graph(value: Any, name: str, site: Site) -> object:
    if isinstance(value, Nested):
        return value
    if not callable(value):
        raise TypeError("not a graph")
    return site.subgraph(value, name=name)


_PLAIN: dict[str, Callable[[Any], object]] = {
    "int": _int, "float": _float, "string": _string, "sparse_tensor": _sparse, "type": _type,
}  # fmt: skip
