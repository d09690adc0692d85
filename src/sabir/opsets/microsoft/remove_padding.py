"""RemovePadding: the tokens of a batch of sequences without the padding at their ends."""

from collections.abc import Iterator

import numpy as np

from sabir.elements import INT32
from sabir.ir import Builder, TensorType, Value, add
from sabir.opsets.families.sequences.padded import rows_of, token_count
from sabir.opsets.families.shapes.axes import as_input
from sabir.opsets.families.shapes.ranks import check_rank, hold
from sabir.opsets.families.shapes.shapes import same_dim
from sabir.opsets.typing import Array
from sabir.schema import Constraint, Example, Input, Operator, Output, tensors

remove_padding = Operator(
    "RemovePadding",
    domain="com.microsoft",
    summary="The tokens of all sequences one after another, without padding, and their places.",
    body_opset=18,
)

T = Constraint("T", tensors("float", "float16"))
M = Constraint("M", tensors("int32"))

v1 = remove_padding.first(
    1,
    inputs=[
        Input(
            "input",
            T,
            "Sequences with padding at their ends, [batch, sequence, hidden].",
            differentiable=True,
        ),
        Input(
            "sequence_token_count",
            M,
            "The tokens of each sequence without padding, from 0 to the length, [batch].",
            differentiable=False,
        ),
    ],
    outputs=[
        Output("output", T, "The tokens, [total_tokens, hidden].", differentiable=True),
        Output(
            "token_offset",
            M,
            "The places in the batch of all tokens, and then those of the padding, [batch, sequence].",
        ),
        Output("cumulated_seq_len", M, "0 and the sums of the first numbers of tokens, [batch + 1]."),
        Output("max_seq_len", M, "The largest number of tokens, [1]."),
    ],
)

_SEQUENCES = 3  # the rank


@v1.infer
def infer(x: TensorType, counts: TensorType, /) -> tuple[TensorType, ...]:
    check_rank("input", x, _SEQUENCES)
    check_rank("sequence_token_count", counts, 1)
    batch, length, hidden = x.shape or (None,) * _SEQUENCES
    batch = same_dim([batch, *(counts.shape or ())], "the sequences and their numbers of tokens")
    return (
        TensorType(x.element, (None, hidden)),
        TensorType(counts.element, (batch, length)),
        TensorType(counts.element, (add(batch, 1),)),
        TensorType(counts.element, (1,)),
    )


@v1.evaluate
def evaluate(x: Array, counts: Array, /) -> tuple[Array, Array, Array, Array]:
    hold(infer, x, counts)
    batch, length = x.shape[:2]
    if ((counts < 0) | (counts > length)).any():
        raise ValueError(f"a sequence of {length} tokens cannot have {counts.tolist()} of them")
    used = np.less(np.arange(length, dtype=np.int64), counts[:, None])
    order = np.argsort(~used.ravel(), kind="stable").astype(np.int32)
    total = int(counts.sum())
    sums = np.concatenate([np.zeros(1, np.int32), np.cumsum(counts, dtype=np.int32)])
    most = np.full(1, counts.max(initial=0), np.int32)
    return x.reshape(order.size, x.shape[2])[order[:total]], order.reshape(batch, length), sums, most


v1.absent("lower", "how many tokens a sequence has is known at run time only, which may have to refuse it")


@v1.body
def body(b: Builder, x: Value, counts: Value, /) -> tuple[Value, Value, Value, Value]:
    zero, one = (b.initializer(f"number_{n}", np.array(n, np.int32)) for n in (0, 1))
    sizes = b.Shape(x, start=0, end=2)
    length, total = (
        b.Cast(b.Squeeze(size), to=INT32.number)
        for size in (b.Shape(x, start=1, end=2), token_count(b, sizes))
    )
    used = b.Less(b.Range(zero, length, one), b.Unsqueeze(counts, as_input(b, "axes", [1])))
    mask, places = b.Reshape(used, as_input(b, "flat", [-1])), b.Range(zero, total, one)
    tokens = b.Compress(places, mask)
    order = b.Concat(tokens, b.Compress(places, b.Not(mask)), axis=0)
    none = b.initializer("none", np.zeros(1, np.int32))
    padded = b.Concat(none, counts, axis=0)
    sums = b.CumSum(padded, b.initializer("axis", np.array(0, np.int64)))
    offsets = b.Reshape(order, sizes, allowzero=1)
    return b.Gather(rows_of(b, x), tokens), offsets, sums, b.ReduceMax(padded, as_input(b, "axes", [0]))


@remove_padding.examples
def examples() -> Iterator[Example]:
    """By hand; the first sequence has two tokens, the second three, the third none."""
    x = np.arange(18).reshape(3, 3, 2)
    for kind in (np.float32, np.float16):
        tokens = x.reshape(9, 2)[[0, 1, 3, 4, 5]].astype(kind)
        places = [[0, 1, 3], [4, 5, 2], [6, 7, 8]]
        yield Example(1, x.astype(kind), [2, 3, 0], outputs=4, expect=[tokens, places, [0, 2, 5, 5], [3]])
    f = np.float32
    one = np.array([[[1, 2, 3]]], f)
    yield Example(1, one, [1], outputs=4, expect=[one[0], [[0]], [0, 1], [1]])
    nothing = np.zeros((0, 2, 3), f)
    none, order = np.zeros(0, np.int32), np.zeros((0, 2), np.int32)
    yield Example(1, nothing, none, outputs=4, expect=[np.zeros((0, 3), f), order, [0], [0]])
    yield Example(
        1,
        np.ones((2, 2, 0), f),
        [1, 2],
        outputs=4,
        expect=[np.zeros((3, 0), f), [[0, 2], [3, 1]], [0, 1, 3], [2]],
    )
