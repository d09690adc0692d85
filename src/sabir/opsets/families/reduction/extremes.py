"""The index of the greatest or least element along an axis: versions, behaviours and examples."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sabir.base import InferenceError
from sabir.elements import INT64
from sabir.ir import TensorType
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.reduction.reduction_kernels import place_of_extreme
from sabir.opsets.families.shapes.shapes import axis_in
from sabir.opsets.families.shapes.sizes import passed_over
from sabir.schema import BFLOAT16, NUMBERS, Attribute, Constraint, Example, Input, Output

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sabir.opsets.typing import Array, BehaviourFunction
    from sabir.schema import Operator

_NOTHING = "axis {} has no elements, and none of them is an extreme"


def declare(operator: Operator, extreme: str, find: Callable[..., Array], op: str) -> None:
    """Declare the search for the `extreme` element, greatest or least, by numpy and by the reduction `op`."""
    v1 = operator.first(
        1,
        inputs=[Input("data", Constraint("T", NUMBERS), "A tensor of rank 1 or more.", differentiable=False)],
        outputs=[Output("reduced", "tensor(int64)", "The indices.", differentiable=False)],
        attributes=[
            Attribute("keepdims", "int", "1: the axis stays, with size 1; 0: it is removed.", default=1),
            Attribute("axis", "int", "The axis to search along.", default=0),
        ],
    )
    doc = f"Of several {extreme} elements, 0: the first, 1: the last."
    v12 = v1.restate(11, "A negative `axis` counts from the end.").extend(
        12,
        f"`select_last_index` chooses the last of several {extreme} elements.",
        attributes=[Attribute("select_last_index", "int", doc, default=0)],
    )
    v12.widen(13, T=BFLOAT16)
    v1.infer(_infer)
    v1.evaluate(_first(find))
    v12.evaluate(_first_or_last(find))
    v1.lower(place_of_extreme(op))


def _infer(data: TensorType, /, *, axis: int, keepdims: int) -> TensorType:
    """Infer indices in the shape of the input, where the axis has size 1 or is removed."""
    if data.shape is None:
        return TensorType(INT64)
    place = axis_in(axis, len(data.shape))
    rest = (*data.shape[:place], *data.shape[place + 1 :])
    if data.shape[place] == 0 and all(isinstance(d, int) and d for d in rest):
        raise InferenceError(_NOTHING.format(place))
    return TensorType(INT64, (*data.shape[:place], *((1,) if keepdims else ()), *data.shape[place + 1 :]))


def _first(find: Callable[..., Array]) -> BehaviourFunction:
    """Return the evaluation of the versions that always choose the first of several extremes."""

    def evaluate(data: Array, /, *, axis: int, keepdims: int) -> Array:
        return _found(find, data, axis_in(axis, data.ndim), keepdims)

    return evaluate


def _first_or_last(find: Callable[..., Array]) -> BehaviourFunction:
    """Return the evaluation of the versions that may choose the last of several extremes."""

    def evaluate(data: Array, /, *, axis: int, keepdims: int, select_last_index: int) -> Array:
        along = axis_in(axis, data.ndim)
        if not select_last_index:
            return _found(find, data, along, keepdims)
        return data.shape[along] - 1 - _found(find, np.flip(data, along), along, keepdims)

    return evaluate


def _found(find: Callable[..., Array], data: Array, axis: int, keepdims: int) -> Array:
    """Return indices by `find`, numpy's argmax or argmin, which count the first NaN as the extreme."""
    passed_over(data)
    if not data.shape[axis]:
        rest = (*data.shape[:axis], *((1,) if keepdims else ()), *data.shape[axis + 1 :])
        if math.prod(rest):
            raise InferenceError(_NOTHING.format(axis))
        return np.zeros(rest, np.int64)
    places = np.asarray(find(widened(data), axis=axis, keepdims=keepdims != 0))
    return places.astype(np.int64, copy=False)


def examples_of(pick: Callable[[Sequence[float]], float], *opsets: int, last_since: int) -> Iterator[Example]:
    """Yield calls of an operator that finds the extreme that `pick`, Python's max or min, returns.

    `last_since` is the first opset in which an attribute chooses the last of several extremes.
    """
    sign = 1 if pick is max else -1
    x = np.array([[2, 7, 7], [5, 1, 5]], np.float32) * sign
    rows: list[list[float]] = x.tolist()
    by_row, by_column = [row.index(pick(row)) for row in rows], [c.index(pick(c)) for c in x.T.tolist()]
    for opset in opsets:
        yield Example(opset, x, expect=[[by_column]])
        yield Example(opset, x, axis=1, keepdims=0, expect=[by_row])
        yield Example(opset, x.astype(np.int8), axis=1, expect=[[[i] for i in by_row]])
        yield Example(opset, np.zeros((0, 2), np.float16), axis=1, expect=[np.zeros((0, 1), np.int64)])
    for opset in opsets[1:]:  # the first version counts axes from the front
        yield Example(opset, x, axis=-2, keepdims=0, expect=[by_column])
    special = np.array([[-np.inf, -np.inf], [1, np.nan], [np.nan, np.inf]]) * sign
    for opset in (o for o in opsets if o >= last_since):
        yield Example(opset, x, axis=-1, keepdims=0, select_last_index=1, expect=[[2, 2]])
        yield Example(opset, x, axis=0, select_last_index=1, expect=[[by_column]])
        for dtype in (np.float16, np.float32, np.float64):
            y = special.astype(dtype)
            yield Example(opset, y, axis=1, keepdims=0, expect=[[0, 1, 0]])
            yield Example(opset, y, axis=1, keepdims=0, select_last_index=1, expect=[[1, 1, 0]])
