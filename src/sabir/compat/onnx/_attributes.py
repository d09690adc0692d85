"""Attributes from Python values, and back."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from sabir.compat.onnx.onnx_ml_pb2 import (
    AttributeProto,
    GraphProto,
    SparseTensorProto,
    TensorProto,
    TypeProto,
)

if TYPE_CHECKING:
    from collections.abc import Callable

_A = AttributeProto
_FIELDS: dict[int, str] = {
    _A.FLOAT: "f", _A.INT: "i", _A.STRING: "s", _A.TENSOR: "t", _A.SPARSE_TENSOR: "sparse_tensor",
    _A.GRAPH: "g", _A.TYPE_PROTO: "tp", _A.FLOATS: "floats", _A.INTS: "ints", _A.STRINGS: "strings",
    _A.TENSORS: "tensors", _A.SPARSE_TENSORS: "sparse_tensors", _A.GRAPHS: "graphs",
    _A.TYPE_PROTOS: "type_protos",
}  # fmt: skip
_LISTS: dict[int, int] = {
    _A.FLOAT: _A.FLOATS, _A.INT: _A.INTS, _A.STRING: _A.STRINGS, _A.TENSOR: _A.TENSORS,
    _A.SPARSE_TENSOR: _A.SPARSE_TENSORS, _A.GRAPH: _A.GRAPHS, _A.TYPE_PROTO: _A.TYPE_PROTOS,
}  # fmt: skip
_MESSAGES: tuple[tuple[Any, int], ...] = (
    (TensorProto, _A.TENSOR),
    (SparseTensorProto, _A.SPARSE_TENSOR),
    (GraphProto, _A.GRAPH),
    (TypeProto, _A.TYPE_PROTO),
)
# most values, which need no search
_COMMON: dict[Any, int] = {int: _A.INT, float: _A.FLOAT, str: _A.STRING, bytes: _A.STRING, bool: _A.INT}
_ITEMS = {of_list: item for item, of_list in _LISTS.items()}
_IS_LIST = frozenset(_ITEMS)


def make(key: str, value: Any, doc_string: str | None, attr_type: int | None) -> Any:
    """Return an AttributeProto; see `helper.make_attribute`."""
    attribute = AttributeProto(name=key)
    if doc_string:
        attribute.doc_string = doc_string
    if _is_list(value):
        _fill_list(attribute, list(cast("Iterable[Any]", value)), attr_type)
    else:
        _fill_scalar(attribute, value, attr_type)
    return attribute


def _is_list(value: Any) -> bool:
    if type(value) in _COMMON:
        return False
    if type(value) in {list, tuple}:
        return True
    return (
        isinstance(value, Iterable)
        and not isinstance(value, (str, bytes, Mapping))
        and _scalar(value) is None
    )


def value_of(attribute: Any) -> Any:
    """Return the value of an AttributeProto; see `helper.get_attribute_value`."""
    if attribute.ref_attr_name:
        raise ValueError(f"Cannot get value of reference attribute: {attribute.name!r} has none of its own")
    field = _FIELDS.get(attribute.type)
    if field is None:
        raise ValueError(f"Unsupported ONNX attribute: {attribute.name!r} has type {attribute.type}")
    value = getattr(attribute, field)
    return list(value) if attribute.type in _IS_LIST else value


def _scalar(value: Any) -> int | None:
    """Return the attribute type of one value, or None for another object."""
    common = _COMMON.get(cast("Any", type(value)))
    if common is not None:
        return common
    for cls, kind in _MESSAGES:
        if isinstance(value, cls):
            return kind
    if isinstance(value, (str, bytes)):
        return _A.STRING
    if isinstance(value, (numbers.Integral, np.bool_)):
        return _A.INT
    return _A.FLOAT if isinstance(value, numbers.Real) else None


def _fill_scalar(attribute: Any, value: Any, wanted: int | None) -> None:
    kind = _scalar(value)
    if kind is None:
        raise TypeError(f"'{value}' is not an accepted attribute value.")
    if wanted in _IS_LIST or (wanted is not None and wanted != kind and (kind, wanted) != (_A.INT, _A.FLOAT)):
        raise TypeError(
            f"Inferred attribute type '{_name(kind)}'({kind}) mismatched with specified type "
            f"'{_name(wanted)}'({wanted})"
        )
    kind = kind if wanted is None else wanted
    if kind in {_A.FLOAT, _A.INT, _A.STRING}:
        setattr(attribute, _FIELDS[kind], _CONVERT[kind](value))
    else:
        getattr(attribute, _FIELDS[kind]).CopyFrom(value)
    attribute.type = kind


def _fill_list(attribute: Any, values: list[Any], wanted: int | None) -> None:
    inferred = _list_type(attribute.name, values, wanted)
    if wanted is not None and inferred not in {None, wanted}:
        if (inferred, wanted) != (_A.INTS, _A.FLOATS):
            raise TypeError(
                f"Inferred attribute type '{_name(inferred)}'({inferred}) mismatched with specified type "
                f"'{_name(wanted)}'({wanted})"
            )
        inferred = wanted
    kind: Any = wanted if inferred is None else inferred
    convert = _CONVERT.get(_item_type(kind))
    getattr(attribute, _FIELDS[kind]).extend(map(convert, values) if convert else values)
    attribute.type = kind


def _list_type(name: str, values: list[Any], wanted: int | None) -> int | None:
    if not values:
        if wanted is None:
            raise ValueError(f"Could not infer attribute `{name}` type from empty iterator")
        if wanted not in _IS_LIST:
            raise TypeError(f"an empty list is no value of type '{_name(wanted)}'({wanted})")
        return None
    kinds = {_scalar(value) for value in values}
    if kinds == {_A.INT, _A.FLOAT}:
        return _A.FLOATS
    kind = kinds.pop()
    if kind is None or kinds:
        raise ValueError("Could not infer the attribute type from the elements of the passed Iterable value.")
    return _LISTS[kind]


def _item_type(kind: int) -> int:
    return _ITEMS[kind]


def _name(kind: int | None) -> str:
    known = AttributeProto.AttributeType
    return known.Name(kind) if kind in known.values() else known.Name(AttributeProto.UNDEFINED)


def _encoded(value: str | bytes) -> bytes:
    return value.encode("utf-8") if isinstance(value, str) else value


_CONVERT: dict[int, Callable[[Any], Any]] = {_A.FLOAT: float, _A.INT: int, _A.STRING: _encoded}
