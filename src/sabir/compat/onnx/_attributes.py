"""Attributes from Python values, and back."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from sabir.compat.onnx._tensors import encoded
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
        raise ValueError(
            f"the attribute {attribute.name!r} refers to {attribute.ref_attr_name!r} of the function and has "
            "no value of its own; read that of the node which calls the function"
        )
    field = _FIELDS.get(attribute.type)
    if field is None:
        raise ValueError(
            f"the attribute {attribute.name!r} has the type {attribute.type}, for which there is no value; "
            "set one of AttributeProto.AttributeType"
        )
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
        raise TypeError(
            f"the attribute {attribute.name!r} cannot be {value!r}; give a number, text, a tensor, a graph, "
            "a type, or a list of one of these"
        )
    if wanted in _IS_LIST or (wanted is not None and wanted != kind and (kind, wanted) != (_A.INT, _A.FLOAT)):
        raise _contradiction(attribute.name, kind, wanted)
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
            raise _contradiction(attribute.name, inferred, wanted)
        inferred = wanted
    kind: Any = wanted if inferred is None else inferred
    convert = _CONVERT.get(_item_type(kind))
    getattr(attribute, _FIELDS[kind]).extend(map(convert, values) if convert else values)
    attribute.type = kind


def _list_type(name: str, values: list[Any], wanted: int | None) -> int | None:
    if not values:
        if wanted is None:
            raise ValueError(f"the attribute {name!r} is an empty list, which has no type; pass attr_type")
        if wanted not in _IS_LIST:
            raise TypeError(
                f"the attribute {name!r} is an empty list, and attr_type is {type_name(wanted)}; pass the "
                "type of a list, such as INTS"
            )
        return None
    kinds = {_scalar(value) for value in values}
    if kinds == {_A.INT, _A.FLOAT}:
        return _A.FLOATS
    kind = kinds.pop()
    if kind is None or kinds:
        raise ValueError(
            f"the elements of the attribute {name!r} have no type in common; give only numbers, only text, "
            "or messages of one class"
        )
    return _LISTS[kind]


def _item_type(kind: int) -> int:
    return _ITEMS[kind]


def _contradiction(name: str, kind: int | None, wanted: int | None) -> TypeError:
    return TypeError(
        f"the value of the attribute {name!r} has the type {type_name(kind)}, and attr_type is "
        f"{type_name(wanted)}; change one of them"
    )


def type_name(kind: int | None) -> str:
    """Return the name of an attribute type, `UNDEFINED` for an unknown number."""
    known = AttributeProto.AttributeType
    return known.Name(kind) if kind in known.values() else known.Name(AttributeProto.UNDEFINED)


_CONVERT: dict[int, Callable[[Any], Any]] = {_A.FLOAT: float, _A.INT: int, _A.STRING: encoded}
