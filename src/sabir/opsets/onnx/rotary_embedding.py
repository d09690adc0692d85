"""RotaryEmbedding: the position of each element as a rotation of pairs of elements."""

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from sabir import loops
from sabir.base import EvaluationError, InferenceError, UnsupportedError
from sabir.ir import Builder, TensorType, Value, exact_quotient, floor_div
from sabir.loops import Expression, NotLowered
from sabir.opsets.families.attention import attention_kernels, rotations
from sabir.opsets.families.attention.attention_graphs import ints
from sabir.opsets.families.shapes.ranks import check_alike, check_shape, hold
from sabir.opsets.typing import Array, Gradient
from sabir.schema import (
    BFLOAT16,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    Unconvertible,
    tensors,
)

rotary_embedding = Operator(
    "RotaryEmbedding",
    summary="Pairs (a, b) of elements of each head, rotated by the angle of their position: "
    "`(a cos - b sin, a sin + b cos)`.",
)

T = Constraint("T", BFLOAT16, tensors("float", "float16"))
M = Constraint("M", tensors("int64"))

v23 = rotary_embedding.first(
    23,
    inputs=[
        Input("X", T, "(batch, heads, sequence, size), or (batch, sequence, heads * size)."),
        Input("cos_cache", T, "Cosines for each pair, (positions, pairs), or (batch, sequence, pairs)."),
        Input("sin_cache", T, "Sines, in the shape of the cosines."),
        Input(
            "position_ids",
            M,
            "(batch, sequence): rows of caches of the shape (positions, pairs).",
            optional=True,
        ),
    ],
    outputs=[Output("Y", T, "The shape of X; other elements stay unchanged.")],
    attributes=[
        Attribute("num_heads", "int", "The number of heads of X of rank 3."),
        Attribute(
            "rotary_embedding_dim", "int", "The number of elements of a head to rotate; 0: all.", default=0
        ),
        Attribute(
            "interleaved", "int", "1: neighbours are pairs; 0: elements of the two halves are.", default=0
        ),
    ],
)

PACKED, APART = 3, 4  # the ranks of X
BY_POSITION = 2  # the rank of caches that position_ids index


@v23.infer
def infer(
    x: TensorType,
    cos: TensorType,
    sin: TensorType,
    positions: TensorType | None = None,
    /,
    *,
    num_heads: int | None,
    rotary_embedding_dim: int,
) -> TensorType:
    if x.shape is None:
        return TensorType(x.element)
    size = x.shape[-1] if x.shape else None
    if len(x.shape) == PACKED:
        if not num_heads or (isinstance(size, int) and size % num_heads):
            raise InferenceError(
                f"an input of rank 3 needs `num_heads` that divide {size}; it is {num_heads}"
            )
        size = exact_quotient(size, num_heads)
    elif len(x.shape) != APART:
        raise InferenceError(f"X must have rank 3 or 4, and is {x}")
    rotated = rotary_embedding_dim or size
    if isinstance(rotated, int) and (rotated % 2 or (isinstance(size, int) and rotated > size)):
        raise InferenceError(f"{rotated} of {size} elements cannot be rotated in pairs")
    batch, steps = x.shape[0], x.shape[1 if len(x.shape) == PACKED else 2]
    check_alike(["cos_cache", "sin_cache"], [cos, sin])
    if positions is not None:
        check_shape("position_ids", positions, batch, steps)
    angles = (None,) if positions is not None else (batch, steps)
    for name, cache in (("cos_cache", cos), ("sin_cache", sin)):
        check_shape(name, cache, *angles, floor_div(rotated, 2))
    return TensorType(x.element, x.shape)


@v23.evaluate
def evaluate(
    x: Array,
    cos: Array,
    sin: Array,
    positions: Array | None = None,
    /,
    *,
    num_heads: int | None,
    rotary_embedding_dim: int,
    interleaved: int,
) -> Array:
    hold(infer, x, cos, sin, positions, num_heads=num_heads, rotary_embedding_dim=rotary_embedding_dim)
    heads = x.reshape(*x.shape[:2], num_heads or 0, x.shape[2] // (num_heads or 1)) if x.ndim == PACKED else x
    if positions is not None:
        if positions.size and not 0 <= positions.min() <= positions.max() < len(cos):
            raise EvaluationError(f"`position_ids` must be from 0 to {len(cos) - 1}")
        cos, sin = cos[positions], sin[positions]
    across = 2 if x.ndim == PACKED else 1  # the axis of the heads
    cos, sin = (np.expand_dims(t, across) for t in (cos, sin))
    y = rotations.rotated(heads, cos, sin, interleaved=interleaved)
    return y.astype(x.dtype, copy=False).reshape(x.shape)


@v23.lower
def lower(
    x: Expression, cos: Expression, sin: Expression, positions: Expression | None = None, /,
    *, num_heads: int | None, rotary_embedding_dim: int, interleaved: int,
) -> Expression:  # fmt: skip
    """Join the rotated pairs with the elements that stay."""
    packed = x.rank == PACKED
    heads = attention_kernels.with_heads(x, num_heads or 0) if packed else x
    size = rotary_embedding_dim or loops.fixed(heads.shape[-1])
    if size is None:
        raise NotLowered(
            f"whether a head of {heads.shape[-1]} elements divides into pairs is known at run time only"
        )
    if positions is not None:
        cos, sin = (rotations.rows_at(cache, positions) for cache in (cos, sin))
    across = 2 if packed else 1  # the axis of the heads
    angles = (x.shape[0], x.shape[1 if packed else 2], size // 2)
    if not loops.same_shape(cos.shape, angles) or not loops.same_shape(sin.shape, angles):
        raise NotLowered("whether the caches have an angle for each pair is known at run time only")
    cos, sin = (loops.reshape(t, (*t.shape[:across], 1, *t.shape[across:])) for t in (cos, sin))
    return loops.reshape(rotations.lowered(heads, cos, sin, size, interleaved=interleaved), x.shape)


@v23.body
def body(
    b: Builder, x: Value, cos: Value, sin: Value, positions: Value | None = None, /, *, num_heads: int | None,
    rotary_embedding_dim: int, interleaved: int,
) -> Value:  # fmt: skip
    rank = x.type.rank if isinstance(x.type, TensorType) else None
    if rank is None:
        raise Unconvertible("the rank of X is unknown, and the axis of its heads depends on it")
    packed = rank == PACKED
    heads = b.Reshape(x, ints(b, 0, 0, num_heads or 1, -1)) if packed else x
    if positions is not None:
        cos, sin = b.Gather(cos, positions), b.Gather(sin, positions)
    cos, sin = (b.Unsqueeze(t, ints(b, 2 if packed else 1)) for t in (cos, sin))
    y = rotations.emitted(b, heads, cos, sin, rotary_embedding_dim or None, interleaved=interleaved)
    return b.Reshape(y, b.Shape(x)) if packed else y


@v23.gradient
def gradient(
    g: Gradient, x: Value, cos: Value, sin: Value, positions: Value | None = None, /, **attributes: Any
) -> tuple[Value, None, None, None]:
    """The rotation by the negative angles; the caches are constants."""
    if g.wants(1) or g.wants(2):
        raise UnsupportedError(
            "RotaryEmbedding passes no gradients to its caches; compute them from constants"
        )
    return g.RotaryEmbedding(g.dy, cos, g.Neg(sin), positions, **attributes), None, None, None


@rotary_embedding.examples
def examples() -> Iterator[Example]:
    """One head rotated by 0, 90 and 180 degrees; by hand."""
    f = np.float32
    cos, sin = np.array([[1, 0], [0, -1], [-1, 1]], f), np.array([[0, 1], [1, 0], [0, 0]], f)
    x = np.array([[[[1, 2, 3, 4], [5, 6, 7, 8]]]], f)
    at = [[1, 0]]
    halves = np.array([[[[-3, -2, 1, -4], [5, -8, 7, 6]]]], f)
    neighbours = np.array([[[[-2, 1, -3, -4], [5, 6, -8, 7]]]], f)
    for interleaved, y in enumerate((halves, neighbours)):
        yield Example(23, x, cos, sin, at, interleaved=interleaved, expect=[y])
        yield Example(23, x, cos[at], sin[at], interleaved=interleaved, expect=[y])
        # the same elements as one item of sequence 2, with one head; and as two heads at one position
        yield Example(23, x[0], cos, sin, at, num_heads=1, interleaved=interleaved, expect=[y[0]])
        packed = x.reshape(1, 1, 8), [[2]]
        by_half = [[[-1, 2, -3, 4, -5, 6, -7, 8]]]
        by_pair = [[[-1, -2, 3, 4, -5, -6, 7, 8]]]
        rotated = by_pair if interleaved else by_half
        yield Example(
            23, packed[0], cos, sin, packed[1], num_heads=2, interleaved=interleaved, expect=[rotated]
        )
        for kind in (np.float16, ml_dtypes.bfloat16):
            inputs = [t.astype(kind) for t in (x, cos, sin)]
            yield Example(23, *inputs, at, interleaved=interleaved, expect=[y.astype(kind)])
        # only the first two elements are rotated, as one pair
        part = [[[[-2, 1, 3, 4], [5, 6, 7, 8]]]]
        yield Example(
            23, x, cos[:, :1], sin[:, :1], at, rotary_embedding_dim=2, interleaved=interleaved, expect=[part]
        )
    empty = np.zeros((2, 1, 0, 4), f)
    yield Example(23, empty, cos, sin, np.zeros((2, 0), np.int64), expect=[empty])
