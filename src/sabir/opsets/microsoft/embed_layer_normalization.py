"""EmbedLayerNormalization: the embeddings of words, positions and segments, summed and normalised."""

from collections.abc import Iterator

import numpy as np

from sabir import loops
from sabir.ir import Builder, TensorType, Value
from sabir.loops import Expression
from sabir.opsets.families.normalization import embedded
from sabir.opsets.families.normalization.normalization_graphs import layer_normalized
from sabir.opsets.families.numbers import halves
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.shapes.ranks import check_shape, hold
from sabir.opsets.typing import Array
from sabir.schema import Attribute, Call, Constraint, Example, Input, Operator, Output, one_of, tensors

embed_layer_normalization = Operator(
    "EmbedLayerNormalization",
    domain="com.microsoft",
    summary="The rows of three tables at words, positions and segments, summed and normalised over the last"
    " dimension, and the number of words in the mask of each item.",
    body_opset=18,
)

T1 = embedded.IDS
T = Constraint("T", tensors("float", "float16"))

v1 = embed_layer_normalization.first(
    1,
    inputs=[
        embedded.INPUT_IDS,
        embedded.SEGMENT_IDS,
        Input("word_embedding", T, "The table of words, (words, hidden).", differentiable=True),
        Input("position_embedding", T, "The table of positions, (positions, hidden).", differentiable=True),
        Input(
            "segment_embedding",
            T,
            "The table of segments, (segments, hidden).",
            optional=True,
            differentiable=True,
        ),
        Input("gamma", T, "The scale, (hidden).", differentiable=True),
        Input("beta", T, "The shift, (hidden).", differentiable=True),
        Input("mask", T1, embedded.MASK_DOC, optional=True),
        Input(
            "position_ids",
            T1,
            "The rows of the position table, (batch, sequence) or (1, sequence); 0, 1, ... by default.",
            optional=True,
        ),
    ],
    outputs=[
        Output("output", T, "(batch, sequence, hidden).", differentiable=True),
        Output("mask_index", T1, embedded.MASK_INDEX_DOC, optional=True),
        Output("embedding_sum", T, "The sum that is normalised.", optional=True, differentiable=True),
    ],
    attributes=[
        Attribute("epsilon", "float", "Added to the variance, so that it is not 0.", default=1e-12),
        Attribute("mask_index_type", "int", "1 if `mask_index` is used, 0 if not.", values=one_of(0, 1)),
    ],
)


@v1.infer
def infer(  # ruff: ignore[too-many-positional-arguments]  the operator's signature
    ids: TensorType, segment_ids: TensorType | None, words: TensorType, positions: TensorType,
    segments: TensorType | None, gamma: TensorType, beta: TensorType, mask: TensorType | None = None,
    position_ids: TensorType | None = None, /,
) -> tuple[TensorType, TensorType, TensorType]:  # fmt: skip
    tables = (words, positions, segments)
    shape, index, hidden = embedded.infer(ids, segment_ids, position_ids, mask, tables)
    check_shape("gamma", gamma, hidden)
    check_shape("beta", beta, hidden)
    y = TensorType(words.element, shape)
    return y, index, y


@v1.evaluate
def evaluate(  # ruff: ignore[too-many-arguments, too-many-positional-arguments]  the operator's signature
    ids: Array, segment_ids: Array | None, words: Array, positions: Array, segments: Array | None,
    gamma: Array, beta: Array, mask: Array | None = None, position_ids: Array | None = None, /,
    *, epsilon: float, mask_index_type: int | None,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Whether `mask_index_type` says that the mask index is used or not, it is computed."""
    hold(infer, ids, segment_ids, words, positions, segments, gamma, beta, mask, position_ids)
    rows = embedded.rows(ids, segment_ids, position_ids, (words, positions, segments))
    total = embedded.summed([widened(part) for part in rows])
    y = embedded.normalized(total, widened(gamma), widened(beta), epsilon)
    kind = words.dtype
    return y.astype(kind, copy=False), embedded.counted_words(ids, mask), total.astype(kind, copy=False)


@v1.lower
def lower(  # ruff: ignore[too-many-arguments, too-many-positional-arguments]  the operator's signature
    ids: Expression, segment_ids: Expression | None, words: Expression, positions: Expression,
    segments: Expression | None, gamma: Expression, beta: Expression, mask: Expression | None = None,
    position_ids: Expression | None = None, /, *, epsilon: float,
) -> tuple[Expression, Expression, Expression]:  # fmt: skip
    parts = embedded.lowered_rows(ids, segment_ids, position_ids, (words, positions, segments))
    wide = [loops.cast(part, "float") for part in parts]
    total = embedded.lowered_sum(wide, (*ids.shape, words.shape[1]))
    scale, shift = (loops.cast(p, "float") for p in (gamma, beta))
    y = embedded.lowered_normalized(total, scale, shift, epsilon)
    kind = words.element
    return loops.cast(y, kind), embedded.lowered_words(ids, mask), loops.cast(total, kind)


@v1.body
def body(  # ruff: ignore[too-many-arguments, too-many-positional-arguments]  the operator's signature
    b: Builder, ids: Value, segment_ids: Value | None, words: Value, positions: Value,
    segments: Value | None, gamma: Value, beta: Value, mask: Value | None = None,
    position_ids: Value | None = None, /, *, epsilon: float, call: Call,
) -> tuple[Value, ...]:  # fmt: skip
    rows = embedded.emitted_rows(b, ids, segment_ids, position_ids, (words, positions, segments))
    total = embedded.emitted_sum(b, [halves.widened(b, part) for part in rows])
    (y,) = layer_normalized(b, total, gamma, beta, epsilon, 1)
    index = embedded.emitted_words(b, ids, mask) if call.wants(1) else y
    made = halves.rounded(b, y, words), index, halves.rounded(b, total, words)
    return made[: len(call.outputs)]


@embed_layer_normalization.examples
def examples() -> Iterator[Example]:  # ruff: ignore[too-many-locals]  the inputs of the operator
    i, f = np.int32, np.float32
    ids, segment_ids = np.array([[0, 2], [1, 1]], i), np.array([[0, 1], [1, 0]], i)
    words = np.array([[1, 3], [2, 4], [0, 0]], f)
    positions, segments = np.array([[0, 2], [1, 7], [5, 5]], f), np.array([[1, 1], [3, 3]], f)
    gamma, beta = np.array([2, 1], f), np.array([0, 1], f)
    total = np.array([[[2, 6], [4, 10]], [[5, 9], [4, 12]]], f)  # by hand, as all that follows
    y = np.array([[[-2, 2]] * 2] * 2, f)
    tables = words, positions, segments, gamma, beta
    for kind in (f, np.float16):
        call = [ids, segment_ids, *(t.astype(kind) for t in tables)]
        results = [y.astype(kind), [0, 0], total.astype(kind)]
        yield Example(1, *call, outputs=3, expect=results, tolerance=2e-3, mask_index_type=0)
    masked = ids, segment_ids, *tables, [[1, 1], [1, 0]]
    yield Example(1, *masked, outputs=2, mask_index_type=1, expect=[y, [2, 1]])
    yield Example(1, *masked[:-1], [[2, 0], [0, 1]], outputs=2, epsilon=1e-6, expect=[y, [0, 1]])
    turned = total + positions[[[1, 0]]] - positions[[[0, 1]]]
    for position_ids in ([[1, 0]], [[1, 0], [1, 0]]):
        call = ids, segment_ids, *tables, None, np.array(position_ids, i)
        yield Example(1, *call, outputs=3, expect=[y, [0, 0], turned])
    first = total - np.array([[[0], [2]], [[2], [0]]], f)  # without indices, the first segment
    yield Example(1, ids, None, *tables, outputs=3, expect=[y, [0, 0], first])
    yield Example(1, ids, None, words, positions, None, gamma, beta, outputs=3, expect=[y, [0, 0], first - 1])
    yield Example(1, ids, segment_ids, *tables, expect=[y])
    none = np.zeros((0, 2), i)
    yield Example(1, none, none, *tables, none, outputs=2, expect=[np.zeros((0, 2, 2), f), np.zeros(0, i)])
    yield Example(1, none.T, none.T, *tables, outputs=2, expect=[np.zeros((2, 0, 2), f), [0, 0]])
