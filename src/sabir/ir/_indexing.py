"""`x[…]` on values, as numpy has it: Slice, Gather and Unsqueeze nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, cast

import numpy as np

from sabir.base import SchemaError
from sabir.ir._expressions import ValueOperators
from sabir.ir._types import TensorType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir._types import Type
    from sabir.ir._value import Value

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
_LAST, _FIRST = np.iinfo(np.int64).max, np.iinfo(np.int64).min
_SLICE_HAS_INPUTS, _UNSQUEEZE_HAS_INPUTS, _GATHER_COUNTS_BACK = 10, 13, 11  # opsets


class _Builder(Protocol):
    """The part of a builder that indexing needs."""

    @property
    def opset(self) -> int: ...
    def op(self, op: str, /, *inputs: Any, **attributes: Any) -> Any: ...
    def type_of(self, value: Value) -> Type | None: ...


class _Item(NamedTuple):
    """One item of an index: `axis` is that of the operand, `place` that of the result without integers.

    Those after an ellipsis count from the end. A new axis has no `axis`.
    """

    key: Any
    axis: int
    place: int


def indexed(b: _Builder, value: Value, key: object) -> Value:
    """Append the nodes of `value[key]`; raises SchemaError for what no node expresses.

    The key has integers, slices, None, an ellipsis, and at most one list, array or value of integers. The
    bounds of slices may be values too, scalars of int64.
    """
    keys = [_plain(b, k) for k in (cast("Sequence[object]", key) if isinstance(key, tuple) else (key,))]
    _check_operand(b, value, keys)
    _check_tensors(keys)
    items = _items(keys)
    result = _sliced(b, value, [i for i in items if _cuts(i.key)])
    # an axis that goes changes the numbers of those after it, or before it if they count from the end
    integers = [i for i in items if isinstance(i.key, int)]
    counted = [i for i in reversed(integers) if i.axis >= 0] + [i for i in integers if i.axis < 0]
    for item in counted:
        result = b.op("Gather", result, _position(b, item.key), axis=item.axis)
    result = _unsqueezed(b, result, [i.place for i in items if i.key is None])
    for item in items:
        if _is_tensor(item.key):
            result = b.op("Gather", result, item.key, axis=item.place)
    return result if result is not value else b.op("Identity", value)


def _plain(b: _Builder, key: Any) -> object:
    """Return one item of a key as an int, a slice, None, Ellipsis, an array of int64 or a value."""
    if key is None or key is Ellipsis:
        return key
    if isinstance(key, slice):
        bounds = cast("slice[Any, Any, Any]", key)
        return slice(_bound(bounds.start), _bound(bounds.stop), _bound(bounds.step))
    if isinstance(key, ValueOperators):
        type_ = b.type_of(cast("Value", key))
        if isinstance(type_, TensorType) and type_.element.kind == "bool":
            raise SchemaError(
                "a mask of booleans is no index; use `b.Compress`, or `b.Where` to replace elements"
            )
        return key
    if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
        return int(cast("Any", key))
    if isinstance(key, (list, np.ndarray)):
        array = np.asarray(cast("Any", key))
        if array.dtype.kind in "iu" or not array.size:
            return array.astype(np.int64) if array.ndim else int(array)
    raise SchemaError(f"{key!r} is no index; use integers, slices, None, `...`, or a list of integers")


def _bound(bound: Any) -> Any:
    if bound is None or isinstance(bound, ValueOperators):
        return bound
    if isinstance(bound, (int, np.integer)):
        return int(cast("Any", bound))
    raise SchemaError(f"{bound!r} is no bound of a slice; use an integer or a value")


def _check_operand(b: _Builder, value: Value, keys: Sequence[object]) -> None:
    type_ = b.type_of(value)
    if type_ is not None and not isinstance(type_, TensorType):
        raise SchemaError(f"{value!r} is no tensor; `b.SequenceAt` reads an item of a sequence")
    if sum(k is Ellipsis for k in keys) > 1:
        raise SchemaError("an index has at most one `...`")
    axes = sum(k is not None and k is not Ellipsis for k in keys)
    if type_ is not None and type_.rank is not None and axes > type_.rank:
        raise SchemaError(f"the index has {axes} items, and {value!r} has rank {type_.rank}")


def _check_tensors(keys: Sequence[object]) -> None:
    """Raise SchemaError where numpy combines several indices into one, or moves their axis to the front."""
    tensors = [place for place, key in enumerate(keys) if _is_tensor(key)]
    if len(tensors) > 1:
        raise SchemaError("an index has at most one list, array or value; use `b.GatherND` for several")
    if tensors:
        joined = [place for place, key in enumerate(keys) if _is_tensor(key) or isinstance(key, int)]
        if joined[-1] - joined[0] >= len(joined):
            raise SchemaError(
                "an integer apart from the list, array or value of an index moves its axis to the front in"
                " numpy; index in two steps"
            )


def _items(keys: Sequence[object]) -> list[_Item]:
    """Return the items with their axes."""
    if Ellipsis not in [k for k in keys if not _is_tensor(k)]:
        return _counted(keys)
    dots = next(place for place, key in enumerate(keys) if key is Ellipsis)
    after = _counted(keys[dots + 1 :])
    axes = sum(k is not None for k in keys[dots + 1 :])
    places = sum(not isinstance(k, int) for k in keys[dots + 1 :])
    return _counted(keys[:dots]) + [_Item(i.key, i.axis - axes, i.place - places) for i in after]


def _counted(keys: Sequence[object]) -> list[_Item]:
    items: list[_Item] = []
    axis = place = 0
    for key in keys:
        items.append(_Item(key, axis, place))
        axis += key is not None
        place += not isinstance(key, int)
    return items


def _is_tensor(key: object) -> bool:
    return isinstance(key, (np.ndarray, ValueOperators))


def _cuts(key: Any) -> bool:
    """Whether one item of a key is a slice that may leave something out."""
    return isinstance(key, slice) and cast("slice[Any, Any, Any]", key) != slice(None)


def _position(b: _Builder, position: int) -> Array:
    if position < 0 and b.opset < _GATHER_COUNTS_BACK:
        raise SchemaError(f"the index {position} counts from the end, which Gather does from opset 11 on")
    return np.array(position, np.int64)


def _sliced(b: _Builder, value: Value, items: Sequence[_Item]) -> Value:
    if not items:
        return value
    steps = [1 if i.key.step is None else i.key.step for i in items]
    if 0 in [s for s in steps if isinstance(s, int)]:
        raise SchemaError("the step of a slice is not 0")
    starts = [_default(i.key.start, s, forward=0, backward=-1) for i, s in zip(items, steps, strict=True)]
    ends = [
        _default(i.key.stop, s, forward=_LAST, backward=_FIRST) for i, s in zip(items, steps, strict=True)
    ]
    axes = [i.axis for i in items]
    plain = not any(isinstance(n, ValueOperators) for n in (*starts, *ends, *steps))
    if b.opset >= _SLICE_HAS_INPUTS:
        more = () if plain and {*steps} == {1} else (_list(b, steps),)
        return b.op("Slice", value, _list(b, starts), _list(b, ends), _list(b, axes), *more)
    if not plain or {*steps} != {1}:
        raise SchemaError("slices have steps, and values as bounds, from opset 10 on")
    return b.op("Slice", value, starts=starts, ends=ends, axes=axes)


def _default(bound: Any, step: Any, *, forward: int, backward: int) -> Any:
    if bound is not None:
        return bound
    if isinstance(step, ValueOperators):
        raise SchemaError("a slice whose step is a value needs both bounds: its direction is not known")
    return forward if step > 0 else backward


def _list(b: _Builder, numbers: Sequence[Any]) -> Any:
    """Return int64 numbers, some of them values, as one input: a list, or a Concat of them."""
    if not any(isinstance(n, ValueOperators) for n in numbers):
        return np.array(numbers, np.int64)
    whole: list[Any] = [
        _one(b, n) if isinstance(n, ValueOperators) else np.array([n], np.int64) for n in numbers
    ]
    return whole[0] if len(whole) == 1 else b.op("Concat", *whole, axis=0)


def _one(b: _Builder, value: Any) -> Value:
    type_ = b.type_of(value)
    if isinstance(type_, TensorType) and type_.element.number and type_.element.name != "int64":
        value = b.op("Cast", value, to="int64")
    return b.op("Reshape", value, np.array([1], np.int64))


def _unsqueezed(b: _Builder, value: Value, places: list[int]) -> Value:
    if not places:
        return value
    if b.opset >= _UNSQUEEZE_HAS_INPUTS:
        return b.op("Unsqueeze", value, np.array(places, np.int64))
    return b.op("Unsqueeze", value, axes=places)
