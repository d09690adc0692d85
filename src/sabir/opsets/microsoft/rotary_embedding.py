"""RotaryEmbedding of onnxruntime: pairs of elements of each head, rotated by the angle of their position."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from sabir import loops
from sabir.base import EvaluationError, InferenceError
from sabir.ir import Builder, Dim, TensorType, Value, exact_quotient, floor_div, mul
from sabir.loops import Expression, NotLowered
from sabir.opsets.families.attention import attention_graphs as graphs
from sabir.opsets.families.attention import rotations
from sabir.opsets.families.attention.attention_graphs import ints
from sabir.opsets.families.shapes.ranks import check_alike, check_rank, check_shape, hold
from sabir.opsets.typing import Array
from sabir.schema import (
    BFLOAT16,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    Unconvertible,
    at_least,
    tensors,
)

rotary_embedding = Operator(
    "RotaryEmbedding",
    domain="com.microsoft",
    summary="Pairs (a, b) of elements of each head, rotated by the angle of their position: "
    "`(a cos - b sin, a sin + b cos)`.",
    body_opset=18,
)

T = Constraint("T", tensors("float", "float16"), BFLOAT16)
M = Constraint("M", tensors("int64"))

v1 = rotary_embedding.first(
    1,
    inputs=[
        Input("input", T, "(batch, sequence, heads * size), or (batch, heads, sequence, size)."),
        Input("position_ids", M, "(batch, sequence), or the position of the first element, one for all."),
        Input("cos_cache", T, "(positions, pairs): cosines."),
        Input("sin_cache", T, "(positions, pairs): sines."),
    ],
    outputs=[Output("output", T, "The shape of the input; other elements stay unchanged.")],
    attributes=[
        Attribute(
            "num_heads",
            "int",
            "The number of heads of an input of rank 3; by default each has two elements for each pair.",
            values=at_least(0),
        ),
        *rotations.OPTIONS,
    ],
)

PACKED, APART = 3, 4  # the ranks of the input
BY_ITEM = 2  # the rank of positions that each item of the batch has its own of


@rotary_embedding.check
def check(
    x: TensorType, positions: TensorType, cos: TensorType, sin: TensorType, /, *, scale: float | None
) -> Iterator[str]:
    del x, positions, cos, sin
    if scale not in {None, 1.0}:
        yield f"`scale` {scale:g} has no effect: no kernel of onnxruntime uses it"


class _Heads(NamedTuple):
    """The number of heads of an input of rank 3, and how many elements of each are rotated."""

    number: Dim
    rotated: Dim

    @classmethod
    def of(cls, width: Dim, rank: int, num_heads: int | None, requested: int | None, pairs: Dim) -> "_Heads":
        """Read a call; raises InferenceError where the width has no such heads."""
        if rank == APART:
            return cls(None, requested or width)
        if requested and not num_heads:
            raise InferenceError("`rotary_embedding_dim` of an input of rank 3 needs `num_heads`")
        heads = num_heads or (exact_quotient(width, mul(pairs, 2)) if pairs != 0 else None)
        size = mul(pairs, 2) if not num_heads else exact_quotient(width, num_heads)
        divisor = num_heads or size
        if isinstance(width, int) and isinstance(divisor, int) and (not divisor or width % divisor):
            raise InferenceError(f"{width} elements cannot be split into heads: {divisor} is no divisor")
        return cls(heads, requested or size)


@v1.infer
def infer(
    x: TensorType, positions: TensorType, cos: TensorType, sin: TensorType, /, *,
    num_heads: int | None, rotary_embedding_dim: int | None,
) -> TensorType:  # fmt: skip
    check_rank("input", x, PACKED, APART)
    for name, cache in (("cos_cache", cos), ("sin_cache", sin)):
        check_rank(name, cache, 2)
    check_alike(["cos_cache", "sin_cache"], [cos, sin])
    check_rank("position_ids", positions, 0, 1, BY_ITEM)
    if x.shape is None:
        return TensorType(x.element)
    if positions.rank == BY_ITEM:
        check_shape("position_ids", positions, x.shape[0], x.shape[1 if len(x.shape) == PACKED else 2])
    elif positions.rank == 1:
        check_shape("position_ids", positions, 1)
    pairs = cos.shape[1] if cos.shape is not None else None
    heads = _Heads.of(x.shape[-1], len(x.shape), num_heads, rotary_embedding_dim, pairs)
    size = x.shape[-1] if len(x.shape) == APART else exact_quotient(x.shape[-1], heads.number)
    rotated = heads.rotated
    if isinstance(rotated, int) and (rotated % 2 or (isinstance(size, int) and rotated > size)):
        raise InferenceError(f"{rotated} of {size} elements cannot be rotated in pairs")
    for name, cache in (("cos_cache", cos), ("sin_cache", sin)):
        check_shape(name, cache, None, floor_div(rotated, 2))
    return TensorType(x.element, x.shape)


@v1.evaluate
def evaluate(
    x: Array, positions: Array, cos: Array, sin: Array, /, *, num_heads: int | None,
    rotary_embedding_dim: int | None, interleaved: int | None, is_packed_batching: int | None,
    scale: float | None,
) -> Array:  # fmt: skip
    del is_packed_batching, scale
    types = {"num_heads": num_heads, "rotary_embedding_dim": rotary_embedding_dim}
    hold(infer, x, positions, cos, sin, **types)
    steps = x.shape[1 if x.ndim == PACKED else 2]
    if positions.ndim != BY_ITEM:
        first = int(positions.item())
        positions = np.arange(first, first + steps, dtype=np.int64)[None]
    if np.any((positions < 0) | (positions >= len(cos))):
        raise EvaluationError(f"positions must be from 0 to {len(cos) - 1}: the rows of the caches")
    across = 2 if x.ndim == PACKED else 1  # the axis of the heads
    cos, sin = (np.expand_dims(t[positions], across) for t in (cos, sin))
    size = x.shape[2] // num_heads if num_heads else 2 * cos.shape[-1]
    heads = x if x.ndim == APART else x.reshape(*x.shape[:2], x.shape[2] // size if size else 0, size)
    y = rotations.rotated(heads, cos, sin, interleaved=interleaved or 0)
    return y.astype(x.dtype, copy=False).reshape(x.shape)


@v1.body
def body(
    b: Builder, x: Value, positions: Value, cos: Value, sin: Value, /, *, num_heads: int | None,
    rotary_embedding_dim: int | None, interleaved: int | None,
) -> Value:  # fmt: skip
    kinds = [v.type if isinstance(v.type, TensorType) else None for v in (x, positions, cos)]
    rank, of_positions, pairs = (
        None if kind is None else kind.rank if i < BY_ITEM else kind.shape and kind.shape[1]
        for i, kind in enumerate(kinds)
    )
    if rank is None or of_positions is None:
        raise Unconvertible("the rank of the input or of its positions is unknown")
    if rank == PACKED and not num_heads and not isinstance(pairs, int):
        raise Unconvertible("the number of pairs is unknown, and the heads depend on it")
    heads = x
    if rank == PACKED:
        split = (0, 0, num_heads, -1) if num_heads else (0, 0, -1, 2 * int(str(pairs)))
        heads = b.Reshape(x, ints(b, *split))
    if of_positions != BY_ITEM:
        steps = graphs.indices(b, graphs.size(b, x, 1 if rank == PACKED else 2))
        positions = b.Unsqueeze(b.Add(b.Reshape(positions, ints(b, 1)), steps), ints(b, 0))
    across = ints(b, 2 if rank == PACKED else 1)
    cos, sin = (b.Unsqueeze(b.Gather(t, positions), across) for t in (cos, sin))
    y = rotations.emitted(b, heads, cos, sin, rotary_embedding_dim or None, interleaved=interleaved or 0)
    return b.Reshape(y, b.Shape(x)) if rank == PACKED else y


@v1.lower
def lower(
    x: Expression, positions: Expression, cos: Expression, sin: Expression, /, *, num_heads: int | None,
    rotary_embedding_dim: int | None, interleaved: int | None,
) -> Expression:  # fmt: skip
    packed, pairs = x.rank == PACKED, loops.fixed(cos.shape[1])
    if pairs is None or not loops.same_shape(cos.shape, sin.shape):
        raise NotLowered("the number of pairs of the caches is known at run time only")
    heads = x
    if packed:
        count = num_heads or loops.divided(x.shape[2], 2 * pairs)
        if count is None:
            raise NotLowered(f"whether {x.shape[2]} elements divide into heads is known at run time only")
        width = loops.divided(x.shape[2], count)
        if width is None:
            raise NotLowered(f"whether {x.shape[2]} elements divide into heads is known at run time only")
        heads = loops.reshape(x, (*x.shape[:2], count, width))
    if not rotary_embedding_dim and not loops.equal(heads.shape[-1], 2 * pairs):
        raise NotLowered("whether the caches have an angle for each pair is known at run time only")
    steps = x.shape[1 if packed else 2]
    if positions.rank != BY_ITEM:
        first = loops.reshape(positions, (1, 1))
        positions = loops.apply("add", first, loops.cast(loops.count((1, steps), 1), first.element))
    elif not loops.same_shape(positions.shape, (x.shape[0], steps)):
        raise NotLowered("whether each element has a position is known at run time only")
    across = 2 if packed else 1  # the axis of the heads
    rows = [rotations.rows_at(cache, positions) for cache in (cos, sin)]
    cos, sin = (loops.reshape(t, (*t.shape[:across], 1, *t.shape[across:])) for t in rows)
    y = rotations.lowered(heads, cos, sin, 2 * pairs, interleaved=interleaved or 0)
    return loops.reshape(y, x.shape)


@rotary_embedding.examples
def examples() -> Iterator[Example]:
    """One head rotated by 0, 90 and 180 degrees; by hand."""
    f = np.float32
    cos = np.array([[1, 0], [0, -1], [-1, 1]], f)
    sin = np.array([[0, 1], [1, 0], [0, 0]], f)
    at, x = np.array([[1, 0]]), np.arange(1, 9, dtype=f).reshape(1, 1, 2, 4)
    halves = np.array([[[[-3, -2, 1, -4], [5, -8, 7, 6]]]], f)
    neighbours = np.array([[[[-2, 1, -3, -4], [5, 6, -8, 7]]]], f)
    for interleaved, y in enumerate((halves, neighbours)):
        yield Example(1, x, at, cos, sin, interleaved=interleaved, expect=[y])
        yield Example(1, x[0], at, cos, sin, interleaved=interleaved, expect=[y[0]])
        yield Example(1, x[0], at, cos, sin, num_heads=1, interleaved=interleaved, expect=[y[0]])
        for kind in (np.float16, ml_dtypes.bfloat16):
            typed = [t.astype(kind) for t in (x, cos, sin, y)]
            yield Example(1, typed[0], at, *typed[1:3], interleaved=interleaved, expect=[typed[3]])
        options: dict[str, Any] = {"interleaved": interleaved, "rotary_embedding_dim": 2, "num_heads": 1}
        part = np.array([[[[-2, 1, 3, 4], [5, 6, 7, 8]]]], f)
        yield Example(1, x, at, cos[:, :1], sin[:, :1], **options, expect=[part])
        yield Example(1, x[0], at, cos[:, :1], sin[:, :1], **options, expect=[part[0]])
    draw = np.random.default_rng(0)
    x = draw.standard_normal((2, 3, 16)).astype(f)
    angles = draw.uniform(0, 6, (9, 4)).astype(f)
    cos, sin = np.cos(angles), np.sin(angles)
    for first in ([4], 5, [[1, 2, 3], [8, 0, 7]]):
        positions = np.array(first)
        yield Example(1, x, positions, cos, sin)
        yield Example(1, x, positions, cos, sin, is_packed_batching=1, scale=1.0, num_heads=2)
        yield Example(1, x.reshape(2, 2, 3, 8), positions, cos, sin, interleaved=1)
    yield Example(1, x[:, :0], np.zeros((2, 0), np.int64), cos, sin, expect=[x[:, :0]])
