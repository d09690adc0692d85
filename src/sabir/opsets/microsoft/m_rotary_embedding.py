"""MRotaryEmbedding: rotary embedding by three positions, of time, height and width, each for some pairs."""

from collections.abc import Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from sabir.base import EvaluationError, InferenceError
from sabir.ir import Builder, TensorType, Value
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
    one_of,
    tensors,
)

m_rotary_embedding = Operator(
    "MRotaryEmbedding",
    domain="com.microsoft",
    summary="Pairs (a, b) of elements of each head, rotated by the angle of one of three positions: "
    "`(a cos - b sin, a sin + b cos)`.",
    body_opset=18,
)

T = Constraint("T", tensors("float", "float16"), BFLOAT16)
M = Constraint("M", tensors("int64"))

v1 = m_rotary_embedding.first(
    1,
    inputs=[
        Input(
            "input",
            T,
            "(batch, sequence, heads * size), or (batch, heads, sequence, size).",
            differentiable=True,
        ),
        Input(
            "position_ids",
            M,
            "(3, batch, sequence): positions in time, height and width.",
            differentiable=False,
        ),
        Input("cos_cache", T, "(positions, pairs): cosines.", differentiable=True),
        Input("sin_cache", T, "(positions, pairs): sines.", differentiable=True),
    ],
    outputs=[
        Output("output", T, "The shape of the input; other elements stay unchanged.", differentiable=True)
    ],
    attributes=[
        Attribute(
            "mrope_section",
            "ints",
            "The number of pairs of each of the three positions; their sum is the number of pairs.",
            required=True,
        ),
        Attribute(
            "mrope_layout",
            "int",
            "0: the pairs of a position follow each other; 1: every third pair is of the height, and the "
            "next one of the width, until their numbers are used up; others are of the time.",
            values=one_of(0, 1),
        ),
        Attribute("num_heads", "int", "The number of heads of an input of rank 3.", values=at_least(0)),
        *rotations.OPTIONS,
    ],
)

PACKED, APART = 3, 4  # the ranks of the input
STREAMS = 3  # positions of an element: time, height, width


@m_rotary_embedding.check
def check(*_: TensorType, scale: float | None) -> Iterator[str]:
    if scale not in {None, 1.0}:
        yield f"`scale` {scale:g} has no effect: no kernel of onnxruntime uses it"


def _streams(section: Sequence[int], layout: int | None) -> Array:
    """Return for each pair which of the three positions rotates it."""
    if not layout:
        return np.repeat(np.arange(STREAMS), section)
    streams = np.zeros(sum(section), np.int64)
    for stream in (1, 2):
        streams[stream : STREAMS * section[stream] : STREAMS] = stream
    return streams


@v1.infer
def infer(
    x: TensorType, positions: TensorType, cos: TensorType, sin: TensorType, /, *,
    mrope_section: Sequence[int], num_heads: int | None, rotary_embedding_dim: int | None,
) -> TensorType:  # fmt: skip
    if len(mrope_section) != STREAMS or min(mrope_section) < 0:
        raise InferenceError(f"`mrope_section` must be {STREAMS} numbers from 0, not {list(mrope_section)}")
    pairs = sum(mrope_section)
    check_rank("input", x, PACKED, APART)
    check_alike(["cos_cache", "sin_cache"], [cos, sin])
    for name, cache in (("cos_cache", cos), ("sin_cache", sin)):
        check_shape(name, cache, None, pairs)
    check_shape("position_ids", positions, STREAMS, None, None)
    if rotary_embedding_dim and rotary_embedding_dim != 2 * pairs:
        raise InferenceError(f"`mrope_section` has {pairs} pairs, and {rotary_embedding_dim} elements rotate")
    if x.shape is None:
        return TensorType(x.element)
    check_shape("position_ids", positions, STREAMS, x.shape[0], x.shape[-2 if len(x.shape) == APART else 1])
    size = x.shape[-1]
    if len(x.shape) == PACKED:
        if not num_heads:
            raise InferenceError("an input of rank 3 needs `num_heads`")
        if isinstance(size, int) and size % num_heads:
            raise InferenceError(f"{size} elements cannot be split into {num_heads} heads")
        size = size // num_heads if isinstance(size, int) else None
    if isinstance(size, int) and (2 * pairs > size if rotary_embedding_dim else 2 * pairs != size):
        raise InferenceError(f"`mrope_section` has {pairs} pairs, and a head has {size} elements")
    return TensorType(x.element, x.shape)


@v1.evaluate
def evaluate(
    x: Array, positions: Array, cos: Array, sin: Array, /, *, num_heads: int | None,
    interleaved: int | None, **attributes: Any,
) -> Array:  # fmt: skip
    section = attributes["mrope_section"]
    sizes = {"num_heads": num_heads, "rotary_embedding_dim": attributes["rotary_embedding_dim"]}
    hold(infer, x, positions, cos, sin, mrope_section=section, **sizes)
    if np.any((positions < 0) | (positions >= len(cos))):
        raise EvaluationError(f"positions must be from 0 to {len(cos) - 1}: the rows of the caches")
    streams = _streams(section, attributes["mrope_layout"])
    rows = positions[streams].transpose(1, 2, 0)  # (batch, sequence, pairs)
    across = 2 if x.ndim == PACKED else 1  # the axis of the heads
    cos, sin = (np.expand_dims(cache[rows, np.arange(len(streams))], across) for cache in (cos, sin))
    heads = x
    if num_heads and x.ndim == PACKED:
        heads = x.reshape(*x.shape[:2], num_heads, x.shape[2] // num_heads)
    y = rotations.rotated(heads, cos, sin, interleaved=interleaved or 0)
    return y.astype(x.dtype, copy=False).reshape(x.shape)


@v1.body
def body(
    b: Builder, x: Value, positions: Value, cos: Value, sin: Value, /, *, num_heads: int | None,
    rotary_embedding_dim: int | None, interleaved: int | None, **sections: Any,
) -> Value:  # fmt: skip
    rank = x.type.rank if isinstance(x.type, TensorType) else None
    if rank is None:
        raise Unconvertible("the rank of the input is unknown")
    streams = _streams(sections["mrope_section"], sections["mrope_layout"])
    # (1, batch, sequence, pairs), with the axis of the heads in its place
    order = [1, 2, 0, 3] if rank == PACKED else [1, 0, 2, 3]
    cos, sin = (b.Transpose(_mixed(b, b.Gather(t, positions), streams), perm=order) for t in (cos, sin))
    heads = b.Reshape(x, ints(b, 0, 0, num_heads or 1, -1)) if rank == PACKED else x
    y = rotations.emitted(b, heads, cos, sin, rotary_embedding_dim or None, interleaved=interleaved or 0)
    return b.Reshape(y, b.Shape(x)) if rank == PACKED else y


def _mixed(b: Builder, rows: Value, streams: Array) -> Value:
    """Return the row of the stream of each pair: from (3, batch, sequence, pairs), with 1 in place of 3."""
    time, *others = b.Split(rows, num_outputs=STREAMS, outputs=STREAMS, axis=0)
    for stream, row in enumerate(others, 1):
        time = b.Where(b.initializer("stream", streams == stream), row, time)
    return time


@m_rotary_embedding.examples
def examples() -> Iterator[Example]:
    """Rotations by 0, 90 and 180 degrees by hand; the others are computed by onnxruntime."""
    f = np.float32
    cos, sin = np.repeat([[1], [0], [-1]], 3, 1).astype(f), np.repeat([[0], [1], [0]], 3, 1).astype(f)
    at, x = np.array([[[0]], [[1]], [[2]]]), np.arange(1, 7, dtype=f).reshape(1, 1, 1, 6)
    for interleaved, turned in enumerate(([1, -5, -3, 4, 2, -6], [1, 2, -4, 3, -5, -6])):
        options: dict[str, Any] = {"mrope_section": [1, 1, 1], "interleaved": interleaved}
        y = np.array(turned, f).reshape(x.shape)
        for kind in (f, np.float16, ml_dtypes.bfloat16):
            typed = [t.astype(kind) for t in (x, cos, sin, y)]
            yield Example(1, typed[0], at, *typed[1:3], **options, expect=[typed[3]])
        yield Example(1, x[0], at, cos, sin, num_heads=1, **options, expect=[y[0]])
    draw = np.random.default_rng(0)
    x = draw.standard_normal((2, 3, 24)).astype(f)
    angles = draw.uniform(0, 6, (9, 6)).astype(f)
    cos, sin, at = np.cos(angles), np.sin(angles), draw.integers(0, 9, (3, 2, 3))
    for section in ([2, 2, 2], [3, 2, 1], [6, 0, 0], [0, 6, 0], [1, 1, 4], [1, 4, 1]):
        for layout in (0, 1):
            options = {"mrope_section": section, "mrope_layout": layout}
            yield Example(1, x, at, cos, sin, num_heads=2, **options)
            yield Example(1, x.reshape(2, 2, 3, 12), at, cos, sin, interleaved=layout, **options)
    part: dict[str, Any] = {"mrope_section": [2, 1, 1], "rotary_embedding_dim": 8, "num_heads": 2}
    caches = cos[:, :4], sin[:, :4]
    yield Example(1, x, at, *caches, **part, scale=1.0, is_packed_batching=1)
    yield Example(1, x.reshape(2, 2, 3, 12), at, *caches, **part, interleaved=1, mrope_layout=1)
    empty = np.zeros((2, 2, 0, 12), f)
    yield Example(1, empty, at[..., :0], cos, sin, mrope_section=[2, 2, 2], expect=[empty])
