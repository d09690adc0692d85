"""TensorScatter: new steps written into a cache of sequences."""

from collections.abc import Iterator
from itertools import starmap

import ml_dtypes
import numpy as np

from sabir import loops
from sabir.base import EvaluationError, InferenceError
from sabir.ir import Builder, Shape, TensorType, Value, may_be_at_most
from sabir.loops import Expression, NotLowered
from sabir.opsets.families.shapes.extents import indices, shape_of, sizes, unsqueezed
from sabir.opsets.families.shapes.ranks import check_shape
from sabir.opsets.families.shapes.shapes import axis_in, same_dim
from sabir.opsets.typing import Array, Gradient
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
            "past_cache", T, "The cache: the batch first, and its steps along `axis`.", differentiable=True
        ),
        Input("update", T, "The new steps; the shape of the cache except along `axis`.", differentiable=True),
        Input(
            "write_indices",
            "tensor(int64)",
            "For each item of the batch the index of its first new step; 0 by default.",
            optional=True,
            differentiable=False,
        ),
    ],
    outputs=[Output("present_cache", T, "The cache with the new steps in it.", differentiable=True)],
    attributes=[
        Attribute(
            "mode",
            "string",
            "linear: all steps must fit into the cache; circular: they continue at the front.",
            default="linear",
            values=one_of("linear", "circular"),
        ),
        Attribute("axis", "int", "The axis of the steps, not the first.", default=-2),
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
    """Raise InferenceError if `update` has another shape than the cache, or more steps."""
    check_shape("update", update, *(None if i == axis else d for i, d in enumerate(past)))
    length, steps = past[axis], update.shape[axis] if update.shape else None
    if not may_be_at_most(steps, length):
        raise InferenceError(f"{steps} steps do not fit into a cache of {length}")


def _sequence_axis(axis: int, past: Shape, update: Shape) -> int:
    if len(past) != len(update):
        raise InferenceError(f"`past_cache` has rank {len(past)}, `update` {len(update)}; they must be equal")
    axis = axis_in(axis, len(past))
    if axis == 0:
        raise InferenceError("`axis` cannot be the first axis, which is the batch")
    return axis


@v24.evaluate
def evaluate(past: Array, update: Array, first: Array | None = None, /, *, mode: str, axis: int) -> Array:
    axis = _sequence_axis(axis, past.shape, update.shape)
    length, steps = past.shape[axis], update.shape[axis]
    starts = np.zeros(past.shape[0], np.int64) if first is None else first
    check_shape("write_indices", starts, past.shape[0])
    _check_steps(past.shape, update, axis)
    if mode == "linear" and ((starts < 0) | (starts + steps > length)).any():
        raise EvaluationError(f"{steps} steps from {starts.tolist()} do not fit into a cache of {length}")
    written: Array = (starts[:, None] + np.arange(steps, dtype=np.int64)) % max(length, 1)
    present = past.copy()
    np.moveaxis(present, axis, 1)[np.arange(len(starts))[:, None], written] = np.moveaxis(update, axis, 1)
    return present


@v24.lower
def lower(
    past: Expression, update: Expression, first: Expression | None = None, /, *, mode: str, axis: int
) -> Expression:
    axis = _sequence_axis(axis, past.shape, update.shape)
    others = [(p, u) for i, (p, u) in enumerate(zip(past.shape, update.shape, strict=True)) if i != axis]
    if update.shape[axis] == 0:
        raise NotLowered("an update without steps is evaluated")
    if not all(starmap(loops.equal, others)) or not loops.at_least(past.shape[axis], update.shape[axis]):
        raise NotLowered("whether the update fits the cache is known at run time only")
    column = [d if i == axis else 1 for i, d in enumerate(update.shape)]
    length, steps = (loops.sized("int64", x.shape[axis]) for x in (past, update))
    places: Expression = loops.count(column, axis)
    if first is not None:
        if not loops.equal(first.shape[0], past.shape[0]):
            raise NotLowered("whether there is a first step for each item is known at run time only")
        start = loops.reshape(first, (past.shape[0], *(1,) * (past.rank - 1)))
        places = loops.apply("add", places, start)
        if mode == "linear":  # what does not fit is an error of the run
            fits = loops.apply("le", loops.apply("add", start, steps), length)
            fits = loops.apply("and", fits, loops.apply("ge", start, 0))
            places = loops.where(fits, places, length)
    if mode == "circular":
        places = loops.apply("mod", places, length)
    return loops.scatter(past, loops.expand(places, update.shape), update, axis)


@v24.downgrade
def scatter_elements(
    b: Builder, past: Value, update: Value, first: Value | None = None, /, *, mode: str, axis: int
) -> Value:
    along = axis_in(axis, len(shape_of("past_cache", past)))
    return b.ScatterElements(past, _places(b, past, update, first, mode, along), update, axis=along)


def _places(b: Builder, past: Value, update: Value, first: Value | None, mode: str, along: int) -> Value:
    """Return the index in the cache of each element of the new steps."""
    rank = len(shape_of("update", update))
    places = unsqueezed(b, indices(b, sizes(b, update, [along])), range(1, rank - along))
    if first is not None:
        places = b.Add(unsqueezed(b, first, range(1, rank)), places)
    if mode == "circular":
        places = b.Mod(places, sizes(b, past, [along]))
    return b.Expand(places, b.Shape(update))


@v24.gradient
def gradient(
    g: Gradient, past: Value, update: Value, first: Value | None = None, /, *, mode: str, axis: int
) -> tuple[Value, Value, None]:
    places = _places(g, past, update, first, mode, axis_in(axis, g.rank(update)))
    kept = g.TensorScatter(g.dy, g.zeros(update), first, mode=mode, axis=axis)
    return kept, g.GatherElements(g.dy, places, axis=axis), None


@tensor_scatter.examples
def examples() -> Iterator[Example]:
    f = np.float32
    past = np.arange(16, dtype=f).reshape(2, 4, 2)
    update = -np.arange(1, 9, dtype=f).reshape(2, 2, 2)
    first = [[[-1, -2], [-3, -4], [4, 5], [6, 7]], [[-5, -6], [-7, -8], [12, 13], [14, 15]]]
    apart = np.array([[[0, 1], [-1, -2], [-3, -4], [6, 7]], [[8, 9], [10, 11], [-5, -6], [-7, -8]]], f)
    around = [[[-3, -4], [2, 3], [4, 5], [-1, -2]], [[8, 9], [-5, -6], [-7, -8], [14, 15]]]
    yield Example(24, past, update, expect=[first])
    yield Example(24, past, update, [1, 2], expect=[apart])
    yield Example(24, past, update, [3, 5], mode="circular", axis=1, expect=[around])
    turned = [np.ascontiguousarray(a.swapaxes(1, 2)) for a in (past, update, apart)]
    yield Example(24, *turned[:2], [1, 2], axis=-1, expect=[turned[2]])
    for kind in (ml_dtypes.int4, ml_dtypes.float8_e4m3fn, ml_dtypes.bfloat16, object):
        cache, new = np.array([[1, 2, 3]], np.int8).astype(kind), np.array([[4]], np.int8).astype(kind)
        if kind is object:
            cache, new = cache.astype(str).astype(object), new.astype(str).astype(object)
        y = np.concatenate([cache[:, :1], new, cache[:, 2:]], axis=1)
        yield Example(24, cache, new, [1], axis=1, expect=[y])
    yield Example(24, past, update[:, :0], expect=[past])
