"""QAttention: attention whose input and weights are quantised, and whose scores and outputs are floats."""

from collections.abc import Iterator
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from sabir.base import InferenceError, UnsupportedError
from sabir.elements import FLOAT
from sabir.ir import Builder, TensorType, Value, add, exact_quotient, may_be_equal
from sabir.opsets.families.attention import attention_graphs as graphs
from sabir.opsets.families.attention import attentions, padded_attention, padding_masks, ports, projections
from sabir.opsets.families.attention.padded_attention import ScoreOptions
from sabir.opsets.families.building import calls
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.numbers.scalars import element_of
from sabir.opsets.families.shapes.ranks import check_one, check_rank, check_shape, hold
from sabir.opsets.typing import Array
from sabir.schema import Attribute, Call, Constraint, Example, Input, Operator, Output, tensors

qattention = Operator(
    "QAttention",
    domain="com.microsoft",
    summary="A quantised input is projected to queries, keys and values by quantised weights; in each head "
    "`softmax(Q K^T scale + mask) V` of floats.",
    body_opset=18,
    lacks=(
        "A rotation of queries and keys (`do_rotary`) is refused; onnxruntime's CPU kernel ignores it.",
        "`past_present_share_buffer` with a past: onnxruntime's CPU provider refuses it too.",
    ),
)

T1, T2 = Constraint("T1", tensors("int8", "uint8")), Constraint("T2", tensors("int8", "uint8"))
T3, T4 = Constraint("T3", tensors("float", "float16")), Constraint("T4", tensors("int32"))

v1 = qattention.first(
    1,
    inputs=[
        Input("input", T1, "(batch, queries, width)."),
        Input("weight", T2, "(width, 3 * columns)."),
        Input("bias", T3, "(3 * columns): added to the projections."),
        Input("input_scale", T3, "The step of the input, a scalar."),
        Input("weight_scale", T3, "The step of the weights, a scalar or one for each column."),
        Input("mask_index", T4, "Which keys are no padding, as for Attention.", optional=True),
        Input("input_zero_point", T1, "The zero of the input, a scalar; 0 if absent.", optional=True),
        Input(
            "weight_zero_point",
            T2,
            "The zero of the weights, a scalar or one for each column.",
            optional=True,
        ),
        Input("past", T3, "(2, batch, heads, past keys, size): keys and values before.", optional=True),
    ],
    outputs=[
        Output("output", T3, "(batch, queries, columns)."),
        Output("present", T3, "(2, batch, heads, total, size): all keys and values.", optional=True),
    ],
    attributes=[
        ports.scale(),
        ports.mask_filter_value(),
        Attribute("past_present_share_buffer", "int", "1: past and present are one buffer."),
        Attribute("do_rotary", "int", "1: queries and keys are rotated by their positions."),
        ports.unidirectional(),
        ports.num_heads(),
    ],
)

X = TypeVar("X")


class Operands(NamedTuple, Generic[X]):
    """The operands of a call: types, arrays or values."""

    x: X
    weights: X
    bias: X
    scale: X
    weight_scale: X
    mask: X | None = None
    zero: X | None = None
    weight_zero: X | None = None
    past: X | None = None


@v1.infer
def infer(
    *inputs: TensorType, num_heads: int, do_rotary: int | None, past_present_share_buffer: int | None
) -> tuple[TensorType, TensorType]:
    x = Operands(*inputs)
    if do_rotary or (past_present_share_buffer and x.past is not None):
        raise UnsupportedError("`do_rotary`, and `past_present_share_buffer` with a past, are not supported")
    check_rank("input", x.x, 3)
    check_rank("weight", x.weights, 2)
    batch, queries, width = x.x.shape or (None,) * 3
    check_shape("weight", x.weights, width, None)
    columns = x.weights.shape[1] if x.weights.shape is not None else None
    check_shape("bias", x.bias, columns)
    check_one("input_scale", x.scale)
    check_one("input_zero_point", x.zero)
    for name, each in (("weight_scale", x.weight_scale), ("weight_zero_point", x.weight_zero)):
        check_rank(name, each, 0, 1)
        if each is not None and not may_be_equal(each.size, 1) and not may_be_equal(each.size, columns):
            raise InferenceError(f"`{name}` must have one element or {columns}, and is {each}")
    q, _, _ = projections.widths(columns, None, num_heads)
    size = exact_quotient(q, num_heads)
    check_shape("past", x.past, 2, batch, num_heads, None, size)
    past = 0 if x.past is None else x.past.shape[3] if x.past.shape is not None else None
    total = add(past, queries)
    padding_masks.check("mask_index", x.mask, batch, queries, total)
    return x.bias.with_shape(batch, queries, q), x.bias.with_shape(2, batch, num_heads, total, size)


@v1.evaluate
def evaluate(
    *inputs: Array, num_heads: int, do_rotary: int | None, past_present_share_buffer: int | None,
    scale: float | None, mask_filter_value: float | None, unidirectional: int, call: Call,
) -> tuple[Array, ...]:  # fmt: skip
    """The sums of the projections are exact."""
    refused = {"do_rotary": do_rotary, "past_present_share_buffer": past_present_share_buffer}
    hold(infer, *inputs, num_heads=num_heads, **refused)
    x, options = Operands(*inputs), ScoreOptions.of(scale, mask_filter_value, unidirectional)
    rows, columns = (
        t.astype(np.float64) - (0 if zero is None else zero.astype(np.float64))
        for t, zero in ((x.x, x.zero), (x.weights, x.weight_zero))
    )
    steps = widened(x.scale).reshape(()) * widened(x.weight_scale)
    products = np.matmul(rows, columns).astype(np.float32) * steps + widened(x.bias)
    q, k, v = projections.parts(products, None, num_heads)
    k, v, presents = padded_attention.appended_both(x.past, (k, v), None, x.bias.dtype)
    kept = None if x.mask is None else padding_masks.allowed(x.mask, len(q), q.shape[2], k.shape[2])
    y, _ = padded_attention.attend(q, k, v, kept, None, options, before=k.shape[2] - q.shape[2])
    y = attentions.joined(y).astype(x.bias.dtype, copy=False)
    return (y, np.stack(presents)) if call.wants(1) else (y,)


@v1.body
def body(
    b: Builder, *inputs: Value, num_heads: int, scale: float | None, mask_filter_value: float | None,
    unidirectional: int, call: Call,
) -> tuple[Value, ...]:  # fmt: skip
    x, options = Operands(*inputs), ScoreOptions.of(scale, mask_filter_value, unidirectional)
    kind = element_of(x.bias)
    sums = b.Cast(b.MatMulInteger(x.x, x.weights, x.zero, x.weight_zero), to=FLOAT.number)
    steps = b.Mul(*(calls.typed(b, t, FLOAT) for t in (x.scale, x.weight_scale)))
    products = b.Add(b.Mul(sums, steps), calls.typed(b, x.bias, FLOAT))
    q, k, v = projections.emitted_parts(b, products, None, num_heads)
    before = None if x.past is None else graphs.size(b, x.past, 3)
    k, v, presents = padded_attention.emitted_both(b, x.past, (k, v), None, kind)
    kept = None if x.mask is None else padding_masks.emitted(b, x.mask, q, graphs.size(b, k, 2))
    y, _ = padded_attention.emitted(b, q, k, v, kept, None, options, before=before)
    y = calls.typed(b, graphs.joined(b, y, x.x, num_heads), kind)
    return (y, padded_attention.stacked(b, presents)) if call.wants(1) else (y,)


v1.absent("gradient", "the input and the weights are integers")


@qattention.examples
def examples() -> Iterator[Example]:
    """Every form of steps, zeros and masks; onnxruntime is the oracle."""
    draw = np.random.default_rng(0)
    f, named = np.float32, dict[str, Any](num_heads=2, unidirectional=1)
    x = draw.integers(0, 256, (2, 3, 6)).astype(np.uint8)
    bias = draw.standard_normal(24).astype(f)
    past = draw.standard_normal((2, 2, 2, 2, 4)).astype(f)
    step, zero = np.array(0.02, f), np.array(120, np.uint8)
    for kind in (np.int8, np.uint8):
        weights = draw.integers(0, 127, (6, 24)).astype(kind)
        one = [np.array(0.01, f), np.array(3, kind)]
        each = [draw.uniform(0.005, 0.01, 24).astype(f), draw.integers(0, 5, 24).astype(kind)]
        yield Example(1, x, weights, bias, step, one[0], **named, tolerance=1e-4)
        for steps, zeros in (one, each):
            call = [x, weights, bias, step, steps]
            for mask in (None, [2, 3], [2, 3, 1, 0], [[1, 1, 0], [0, 1, 1]]):
                yield Example(1, *call, mask, zero, zeros, **named, tolerance=1e-4)
            yield Example(1, *call, None, zero, zeros, past, **named, outputs=2, tolerance=1e-4)
        yield Example(1, *call, None, zero, zeros, num_heads=1, scale=0.1, outputs=2, tolerance=1e-4)
        yield Example(1, *call, [2, 3], zero, zeros, num_heads=4, mask_filter_value=-1.0, tolerance=1e-4)


@qattention.examples
def by_hand() -> Iterator[Example]:
    """The columns of the weights copy an element each: equal scores give the average of the values."""
    x = np.array([[[0, 1, 4], [0, 1, 2]]], np.int8)
    y, present = np.array([[[3], [3]]]), np.array([[[[[1], [1]]]], [[[[4], [2]]]]])
    for kind in (np.float32, np.float16):
        one = np.array(1, kind)
        call = [x, np.eye(3, dtype=np.int8), np.zeros(3, kind), one, one]
        expected = [y.astype(kind), present.astype(kind)]
        yield Example(1, *call, num_heads=1, outputs=2, tolerance=1e-3, expect=expected)
