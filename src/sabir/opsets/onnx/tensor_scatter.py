"""TensorScatter: new steps written into a cache of sequences."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.base import EvaluationError, InferenceError
from sabir.ir import Shape, TensorType
from sabir.opsets.families.ranks import check_shape
from sabir.opsets.families.shapes import axis_in, same_dim
from sabir.opsets.typing import Array
from sabir.schema import (
    BFLOAT16,
    CLASSIC,
    FLOAT4,
    FLOAT8,
    FLOAT8E8M0,
    INT4,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    one_of,
)

tensor_scatter = Operator(
    "TensorScatter",
    summary="`past_cache` with `update` written along `axis`, in each sequence i from `write_indices[i]` on.",
)

T = Constraint("T", CLASSIC, FLOAT8, INT4, BFLOAT16, FLOAT4, FLOAT8E8M0)

v24 = tensor_scatter.first(
    24,
    inputs=[
        Input(
            "past_cache", T, "The batch first, and the places of the cache along `axis`.", differentiable=True
        ),
        Input("update", T, "The new steps, in the shape of the cache but for `axis`.", differentiable=True),
        Input(
            "write_indices",
            "tensor(int64)",
            "For each item of the batch the place of its first new step; 0 when absent.",
            optional=True,
            differentiable=False,
        ),
    ],
    outputs=[Output("present_cache", T, "The cache with the new steps in it.", differentiable=True)],
    attributes=[
        Attribute(
            "mode",
            "string",
            "linear, where all steps fit behind the first one, or circular, where they go on at the front.",
            default="linear",
            values=one_of("linear", "circular"),
        ),
        Attribute("axis", "int", "The dimension of the steps, never the first one.", default=-2),
    ],
)


@v24.infer
def infer(
    past: TensorType, update: TensorType, first: TensorType | None = None, /, *, mode: str, axis: int
) -> TensorType:
    if past.shape is not None:
        check_shape("write_indices", first, past.shape[0])
    if past.shape is None or update.shape is None:
        return TensorType(past.element, past.shape)
    axis = _sequence_axis(axis, past.shape, update.shape)
    pairs = [*zip(past.shape, update.shape, strict=True)]
    _check_steps(past.shape, update, axis)
    shape = tuple(
        p if i == axis else same_dim(p_u, "caches")
        for i, (p, p_u) in enumerate(zip(past.shape, pairs, strict=True))
    )
    return TensorType(past.element, shape)


def _check_steps(past: Shape, update: TensorType | Array, axis: int) -> None:
    """Raise InferenceError where what is written has another shape than the cache, or more steps."""
    check_shape("update", update, *(None if i == axis else d for i, d in enumerate(past)))
    places, steps = past[axis], update.shape[axis] if update.shape else None
    if isinstance(places, int) and isinstance(steps, int) and steps > places:
        raise InferenceError(f"{steps} steps do not fit a cache of {places} places")


def _sequence_axis(axis: int, past: Shape, update: Shape) -> int:
    if len(past) != len(update):
        raise InferenceError(f"`past_cache` has rank {len(past)}, `update` {len(update)}; they must agree")
    axis = axis_in(axis, len(past))
    if axis == 0:
        raise InferenceError("`axis` cannot be the first one, which is the batch")
    return axis


@v24.evaluate
def evaluate(past: Array, update: Array, first: Array | None = None, /, *, mode: str, axis: int) -> Array:
    axis = _sequence_axis(axis, past.shape, update.shape)
    places, steps = past.shape[axis], update.shape[axis]
    starts = np.zeros(past.shape[0], np.int64) if first is None else first
    check_shape("write_indices", starts, past.shape[0])
    _check_steps(past.shape, update, axis)
    if mode == "linear" and ((starts < 0) | (starts + steps > places)).any():
        raise EvaluationError(f"{steps} steps from {starts.tolist()} do not fit a cache of {places} places")
    written: Array = (starts[:, None] + np.arange(steps, dtype=np.int64)) % max(places, 1)
    present = past.copy()
    np.moveaxis(present, axis, 1)[np.arange(len(starts))[:, None], written] = np.moveaxis(update, axis, 1)
    return present


@tensor_scatter.examples
def examples() -> Iterator[Example]:
    f = np.float32
    past = np.arange(16, dtype=f).reshape(2, 4, 2)
    update = -np.arange(1, 9, dtype=f).reshape(2, 2, 2)
    at_front = [[[-1, -2], [-3, -4], [4, 5], [6, 7]], [[-5, -6], [-7, -8], [12, 13], [14, 15]]]
    apart = np.array([[[0, 1], [-1, -2], [-3, -4], [6, 7]], [[8, 9], [10, 11], [-5, -6], [-7, -8]]], f)
    around = [[[-3, -4], [2, 3], [4, 5], [-1, -2]], [[8, 9], [-5, -6], [-7, -8], [14, 15]]]
    yield Example(24, past, update, expect=[at_front])
    yield Example(24, past, update, [1, 2], expect=[apart])
    yield Example(24, past, update, [3, 5], mode="circular", axis=1, expect=[around])
    turned = [np.ascontiguousarray(a.swapaxes(1, 2)) for a in (past, update, apart)]
    yield Example(24, *turned[:2], [1, 2], axis=-1, expect=[turned[2]])
    for kind in (ml_dtypes.int4, ml_dtypes.float8_e4m3fn, ml_dtypes.bfloat16, object):
        cache, new = np.array([[1, 2, 3]], np.int8).astype(kind), np.array([[4]], np.int8).astype(kind)
        if kind is object:
            cache, new = cache.astype(str).astype(object), new.astype(str).astype(object)
        yield Example(
            24, cache, new, [1], axis=1, expect=[np.concatenate([cache[:, :1], new, cache[:, 2:]], axis=1)]
        )
    yield Example(24, past, update[:, :0], expect=[past])
