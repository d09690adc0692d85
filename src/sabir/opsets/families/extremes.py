"""Where along an axis the extremes lie."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sabir.base import InferenceError
from sabir.elements import INT64
from sabir.ir import TensorType
from sabir.opsets.families.arithmetic import widened
from sabir.opsets.families.shapes import axis_in
from sabir.opsets.families.sizes import passed_over

if TYPE_CHECKING:
    from sabir.opsets.typing import Array, BehaviourFunction


_NOTHING = "axis {} has no elements, and none of them is an extreme"


def infer(data: TensorType, /, *, axis: int, keepdims: int) -> TensorType:
    """The output has indices in the input's shape, where the axis is 1 or gone."""
    if data.shape is None:
        return TensorType(INT64)
    place = axis_in(axis, len(data.shape))
    rest = (*data.shape[:place], *data.shape[place + 1 :])
    if data.shape[place] == 0 and all(isinstance(d, int) and d for d in rest):
        raise InferenceError(_NOTHING.format(place))
    return TensorType(INT64, (*data.shape[:place], *((1,) if keepdims else ()), *data.shape[place + 1 :]))


def first(find: BehaviourFunction) -> BehaviourFunction:
    """Return the evaluation of the versions that always take the first of several extremes."""

    def evaluate(data: Array, /, *, axis: int, keepdims: int) -> Array:
        return _found(find, data, axis_in(axis, data.ndim), keepdims)

    return evaluate


def first_or_last(find: BehaviourFunction) -> BehaviourFunction:
    """Return the evaluation of the versions that may take the last of several extremes."""

    def evaluate(data: Array, /, *, axis: int, keepdims: int, select_last_index: int) -> Array:
        along = axis_in(axis, data.ndim)
        if not select_last_index:
            return _found(find, data, along, keepdims)
        return data.shape[along] - 1 - _found(find, np.flip(data, along), along, keepdims)

    return evaluate


def _found(find: BehaviourFunction, data: Array, axis: int, keepdims: int) -> Array:
    """Return indices by numpy's argmax or argmin, to which the first NaN is an extreme, as to its max."""
    passed_over(data)
    if not data.shape[axis]:
        rest = (*data.shape[:axis], *((1,) if keepdims else ()), *data.shape[axis + 1 :])
        if math.prod(rest):
            raise InferenceError(_NOTHING.format(axis))
        return np.zeros(rest, np.int64)
    places = np.asarray(find(widened(data), axis=axis, keepdims=keepdims != 0))
    return places.astype(np.int64, copy=False)
