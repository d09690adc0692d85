"""Constants from Python: numbers, texts, lists and arrays, as arrays of an ONNX element type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import ml_dtypes
import numpy as np

from sabir.base import SchemaError, UnsupportedError, quote
from sabir.elements import BOOL, COMPLEX64, FLOAT, INT64, STRING, element
from sabir.ir._expressions import ValueOperators
from sabir.ir._tensors import ArrayTensor

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sabir.elements import ElementType

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
_NATURAL = {"f": FLOAT, "i": INT64, "u": INT64, "b": BOOL, "U": STRING, "S": STRING, "c": COMPLEX64}
_NUMBERS = "biufc"


class Literal(NamedTuple):
    """A constant before its element type is decided.

    `element` is the element type of an array or a numpy scalar, None for Python numbers, texts and lists.
    `natural` is then the element type that a Python value has without any context.
    """

    array: Array
    element: ElementType | None
    natural: ElementType | None


def literal(data: object, owner: str) -> Literal:
    """Return a constant from a number, a text, a nested list or an array; raises SchemaError for others."""
    if isinstance(data, (np.ndarray, np.generic)):
        array = np.asarray(cast("Array", data))
        try:
            return Literal(array, element(array.dtype), None)
        except UnsupportedError as error:
            raise SchemaError(f"{owner}: {error}") from error
    if not isinstance(data, (bool, int, float, complex, str, bytes, list, tuple)):
        raise SchemaError(f"{owner} must be a value, a number, a text, a list or an array{_not(data)}")
    plain: Any = cast("Any", data)
    try:
        array = np.asarray(plain)
    except (ValueError, OverflowError) as error:
        raise SchemaError(f"{owner}: {quote(plain)} is no array: {error}") from error
    if array.dtype.kind not in _NATURAL:
        raise SchemaError(f"{owner}: {_mixed(plain)}")
    return Literal(array, None, _NATURAL[array.dtype.kind] if array.size else None)


def natural_tensor(data: object, owner: str) -> ArrayTensor:
    """Return a tensor of the element type that the data has without any context.

    That is the type of an array, and of Python values float, int64, bool or string. Raises SchemaError for an
    empty list, which has none.
    """
    found = literal(data, owner)
    natural = found.element or found.natural
    if natural is None:
        raise SchemaError(f"{owner}: an empty list has no element type; pass an array")
    return converted(found, natural, owner)


def converted(constant: Literal, target: ElementType, owner: str) -> ArrayTensor:
    """Return a tensor of an element type; raises SchemaError where a value would change.

    A real number may be rounded to the nearest one of a floating-point type that has it in its range.
    """
    array = constant.array
    if array.dtype == target.dtype and target.kind != "string":
        return ArrayTensor(array)
    if not _has_kind(array, target):
        raise SchemaError(f"{owner} must be {target}, and {_shown(array)} is not")
    if target.kind == "string":
        return ArrayTensor(_texts(array, owner))
    with np.errstate(over="ignore", invalid="ignore"):
        result = array.astype(target.dtype)
    changed = _changed(array, result, target)
    if changed.any():
        raise SchemaError(f"{owner} must be {target}, and {_shown(array[changed])} is no such number")
    return ArrayTensor(result)


def _texts(array: Array, owner: str) -> Array:
    texts = [text.decode() if isinstance(text, bytes) else text for text in array.ravel().tolist()]
    for text in texts:
        if not isinstance(text, str):
            raise SchemaError(f"{owner} must be string, and {quote(text)} is not")
    return np.array(texts, object).reshape(array.shape)


def _has_kind(array: Array, target: ElementType) -> bool:
    """Whether texts meet a string type, and numbers another."""
    kind = element(array.dtype).kind if array.size else target.kind
    if target.kind == "string" or kind == "string":
        return target.kind == kind
    return kind != "complex" or target.is_complex


def _changed(array: Array, result: Array, target: ElementType) -> Array:
    """Return which elements a conversion has changed."""
    if not array.size or target.is_complex:
        return np.zeros(array.shape, bool)
    is_float = element(array.dtype).is_float
    if target.is_float:
        wide = result.astype(np.float64)
        with np.errstate(invalid="ignore"):
            exact = is_float or wide.astype(array.dtype) == array
        return ~(np.isfinite(wide) & exact) & np.isfinite(array)
    whole = np.isfinite(array) & (np.trunc(array) == array) if is_float else np.ones(array.shape, bool)
    lowest, highest = _range(target)
    return ~whole | (array < lowest) | (array > highest)


def _range(target: ElementType) -> tuple[int, int]:
    if target.kind == "bool":
        return 0, 1
    limits = ml_dtypes.iinfo(target.dtype)
    return int(limits.min), int(limits.max)


def _mixed(data: Any) -> str:
    """Return what is wrong with a Python value that numpy makes no array of numbers of."""
    if any(isinstance(item, ValueOperators) for item in _flat([data])):
        return "a list of values is no constant; pass the values one by one"
    return f"{quote(data)} has no element type"


def _flat(items: Iterable[Any]) -> Iterable[object]:
    for item in items:
        if isinstance(item, (list, tuple)):
            yield from _flat(cast("Any", item))
        else:
            yield item


def _not(data: object) -> str:
    if type(data).__name__ == "Attribute":
        return ", not an attribute; `Constant(value_float=…)` makes a value of one"
    return f", not a {type(data).__name__}"


def _shown(array: Array) -> str:
    return quote(array.ravel()[:1].tolist()[0])
