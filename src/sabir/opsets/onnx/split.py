"""Split: a tensor divided into parts along an axis."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from sabir.base import InferenceError
from sabir.ir import Builder, TensorType, Value, known_equal
from sabir.loops import Expression, Lowering, NotLowered
from sabir.opsets.families.indexing.splitting import (
    cut,
    equal,
    lower_parts,
    parts,
    parts_of,
    parts_of_unknown,
    uneven,
)
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.shapes.axes import as_input, as_ints, from_front
from sabir.opsets.families.shapes.ranks import as_list, check_shape
from sabir.opsets.families.shapes.shapes import axis_in
from sabir.opsets.typing import Array, Gradient, Ints
from sabir.schema import (
    BFLOAT16,
    CLASSIC,
    FLOATS,
    Attribute,
    Call,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    Unconvertible,
    as_results,
)

split = Operator(
    "Split", summary="The parts of `input` along `axis`, of the sizes in `split` or of equal ones."
)

T = Constraint("T", FLOATS)
_LENGTHS = "The size of each part along `axis`; their sum is the dimension."

v1 = split.first(
    1,
    inputs=[
        Input("input", T, "The tensor to divide.", differentiable=True),
        Input("split", T, "In place of the attribute.", optional=True, differentiable=False),
    ],
    outputs=[Output("outputs...", T, "The parts, in order.", variadic=True)],
    attributes=[
        Attribute("split", "ints", _LENGTHS),
        Attribute("axis", "int", "The dimension to divide; the first when absent."),
    ],
)
v2 = v1.evolve(
    2,
    "Sizes are an attribute only, `axis` is 0 by default, and every element type is admitted.",
    inputs=[Input("input", T, "The tensor to divide.", differentiable=True)],
    outputs=[Output("outputs", T, "The parts, in order.", variadic=True, differentiable=True)],
    defaults={"axis": 0},
    widen={"T": CLASSIC},
)
v11 = v2.restate(11, "A negative `axis` counts from the back.")
v13 = v11.evolve(
    13,
    "`split` moves from attribute to input.",
    inputs=[
        Input("input", T, "The tensor to divide.", differentiable=True),
        Input("split", "tensor(int64)", _LENGTHS, optional=True, differentiable=False),
    ],
    drop=["split"],
    add=[Attribute("axis", "int", "The dimension to divide, counted from the back if negative.", default=0)],
    widen={"T": CLASSIC | BFLOAT16},
)
v18 = v13.extend(
    18,
    "`num_outputs` requests equal parts, of which the last may be smaller.",
    attributes=[Attribute("num_outputs", "int", "The number of parts, in place of `split`.")],
)


@v1.infer
def infer_first(
    x: TensorType, lengths: TensorType | None = None, /, *, split: Ints, axis: int | None, call: Call
) -> tuple[TensorType, ...]:
    if lengths is not None:
        check_shape("split", lengths, len(call.outputs))
        return parts_of_unknown(x, axis or 0, call)  # their contents are floating-point numbers
    return infer_from_attribute(x, split=split, axis=axis or 0, call=call)


@v2.infer
def infer_from_attribute(x: TensorType, /, *, split: Ints, axis: int, call: Call) -> tuple[TensorType, ...]:
    return parts(x, axis, split, call)


@v13.infer
def infer(
    x: TensorType, lengths: TensorType | None = None, /, *, axis: int, call: Call
) -> tuple[TensorType, ...]:
    return parts(x, axis, None, call) if lengths is None else parts_of(x, axis, lengths, call)


@v18.infer
def infer_uneven(
    x: TensorType, lengths: TensorType | None = None, /, *, axis: int, num_outputs: int | None, call: Call
) -> tuple[TensorType, ...]:
    _check_choice(lengths, num_outputs, call)
    if lengths is not None:
        return parts_of(x, axis, lengths, call)
    if x.shape is None:
        return parts_of_unknown(x, axis, call)
    sizes = uneven(x.shape[axis_in(axis, len(x.shape))], num_outputs or 1)
    return parts(x, axis, sizes[: len(call.outputs)], call, whole=len(sizes) == len(call.outputs))


def _check_choice(lengths: object, num_outputs: int | None, call: Call) -> None:
    if (lengths is None) == (num_outputs is None):
        raise InferenceError("takes either `split` or `num_outputs`")
    if num_outputs is not None and num_outputs < len(call.outputs):
        raise InferenceError(f"`num_outputs` is {num_outputs}, but the node has {len(call.outputs)} outputs")


@v1.evaluate
def evaluate_first(
    x: Array, lengths: Array | None = None, /, *, split: Ints, axis: int | None, call: Call
) -> tuple[Array, ...]:
    sizes = split if lengths is None else as_list("split", lengths.astype(np.int64))
    return evaluate_from_attribute(x, split=sizes, axis=axis or 0, call=call)


@v2.evaluate
def evaluate_from_attribute(x: Array, /, *, split: Ints, axis: int, call: Call) -> tuple[Array, ...]:
    axis = axis_in(axis, x.ndim)
    return cut(x, split if split is not None else equal(x.shape[axis], len(call.outputs)), axis)


@v13.evaluate
def evaluate(x: Array, lengths: Array | None = None, /, *, axis: int, call: Call) -> tuple[Array, ...]:
    return evaluate_from_attribute(
        x, split=None if lengths is None else as_list("split", lengths), axis=axis, call=call
    )


@v18.evaluate
def evaluate_uneven(
    x: Array, lengths: Array | None = None, /, *, axis: int, num_outputs: int | None, call: Call
) -> tuple[Array, ...]:
    _check_choice(lengths, num_outputs, call)
    axis = axis_in(axis, x.ndim)
    return cut(
        x, uneven(x.shape[axis], num_outputs or 1) if lengths is None else as_list("split", lengths), axis
    )


@v1.lower
def lower_first(
    x: Expression, lengths: Expression | None = None, /, *, split: Ints, axis: int | None, call: Lowering
) -> tuple[Expression, ...]:
    if lengths is not None:
        raise NotLowered("the sizes are floating-point numbers, which kernels do not read as sizes")
    return lower_from_attribute(x, split=split, axis=axis or 0, call=call)


@v2.lower
def lower_from_attribute(
    x: Expression, /, *, split: Ints, axis: int, call: Lowering
) -> tuple[Expression, ...]:
    axis = axis_in(axis, x.rank)
    return lower_parts(x, equal(x.shape[axis], len(call.outputs)) if split is None else split, axis)


@v13.lower
def lower(
    x: Expression,
    lengths: Expression | None = None,
    /,
    *,
    axis: int,
    num_outputs: int | None = None,
    call: Lowering,
) -> tuple[Expression, ...]:
    axis = axis_in(axis, x.rank)
    if lengths is not None:
        return lower_parts(x, kernels.sizes_of(lengths, "`split`"), axis)
    size = x.shape[axis]
    return lower_parts(
        x, equal(size, len(call.outputs)) if num_outputs is None else uneven(size, num_outputs), axis
    )


def _emit(b: Builder, *inputs: Value, call: Call, **attributes: Any) -> tuple[Value, ...]:
    return as_results(b.op("Split", *inputs, outputs=len(call.outputs), **attributes))


@v2.upgrade
def sizes_become_an_attribute(
    b: Builder, x: Value, lengths: Value | None = None, /, *, split: Ints, axis: int | None, call: Call
) -> tuple[Value, ...]:
    if lengths is not None:
        raise Unconvertible("the input `split` is floating-point, and Split:2 needs it as an attribute")
    return _emit(b, x, split=split, axis=axis or 0, call=call)


@v2.downgrade
def same_sizes(b: Builder, x: Value, /, *, split: Ints, axis: int, call: Call) -> tuple[Value, ...]:
    return _emit(b, x, split=split, axis=axis, call=call)


@v11.downgrade
def axis_from_front(b: Builder, x: Value, /, *, split: Ints, axis: int, call: Call) -> tuple[Value, ...]:
    return _emit(b, x, split=split, axis=from_front([axis], x)[0], call=call)


@v13.upgrade
def split_becomes_an_input(
    b: Builder, x: Value, /, *, split: Ints, axis: int, call: Call
) -> tuple[Value, ...]:
    return _emit(b, x, *([] if split is None else [as_input(b, "split", split)]), axis=axis, call=call)


@v13.downgrade
def split_becomes_an_attribute(
    b: Builder, x: Value, lengths: Value | None = None, /, *, axis: int, call: Call
) -> tuple[Value, ...]:
    return _emit(b, x, split=None if lengths is None else as_ints("split", lengths), axis=axis, call=call)


@v18.upgrade
def request_equal_parts(
    b: Builder, x: Value, lengths: Value | None = None, /, *, axis: int, call: Call
) -> tuple[Value, ...]:
    if lengths is not None:
        return _emit(b, x, lengths, axis=axis, call=call)
    return _emit(b, x, axis=axis, num_outputs=len(call.outputs), call=call)


@v18.downgrade
def list_all_sizes(
    b: Builder, x: Value, lengths: Value | None = None, /, *, axis: int, num_outputs: int | None, call: Call
) -> tuple[Value, ...]:
    if lengths is not None:
        return _emit(b, x, lengths, axis=axis, call=call)
    shape = x.type.shape if isinstance(x.type, TensorType) else None
    sizes = uneven(shape[axis_in(axis, len(shape))], num_outputs or 1) if shape is not None else [None]
    if len(sizes) == len(call.outputs) and all(known_equal(s, sizes[0]) for s in sizes):
        return _emit(b, x, axis=axis, call=call)
    numbers = [s for s in sizes if isinstance(s, int)]
    if len(numbers) < max(len(sizes), len(call.outputs)):
        raise Unconvertible("the last part may be smaller, and the size of the dimension is unknown")
    results = b.op("Split", x, as_input(b, "split", numbers), outputs=len(numbers), axis=axis)
    return as_results(results)[: len(call.outputs)]


@v18.gradient
def gradient(g: Gradient, x: Value, lengths: Value | None = None, /, *, axis: int) -> tuple[Value, None]:
    parts = [g.zeros(g.y(i)) if dy is None else dy for i, dy in enumerate(g.dys)]
    return parts[0] if len(parts) == 1 else g.Concat(*parts, axis=axis), None


@split.examples
def examples() -> Iterator[Example]:
    x = np.arange(12, dtype=np.float32).reshape(2, 6)
    halves, thirds = [x[:1], x[1:]], [x[:, :2], x[:, 2:4], x[:, 4:]]
    uneven_parts = [x[:, :1], x[:, 1:1], x[:, 1:]]
    yield Example(1, x, outputs=2, expect=halves)
    yield Example(1, x, [1, 0, 5], outputs=3, axis=1, expect=uneven_parts)
    for opset in (1, 2, 11):
        yield Example(opset, x, outputs=3, axis=1, expect=thirds)
        yield Example(opset, x, outputs=3, axis=1, split=[1, 0, 5], expect=uneven_parts)
    yield Example(11, x, outputs=2, axis=-2, expect=halves)
    yield Example(13, x, outputs=3, axis=-1, expect=thirds)
    for opset in (13, 18):
        yield Example(opset, x, [1, 0, 5], outputs=3, axis=1, expect=uneven_parts)
        yield Example(opset, x[0], [6], expect=[x[0]])
    yield Example(18, x, outputs=3, axis=1, num_outputs=3, expect=thirds)
    yield Example(18, x, outputs=4, axis=1, num_outputs=4, expect=[*thirds, x[:, 6:]])
    words = ["a", "b", "c"]
    yield Example(18, words, outputs=2, num_outputs=2, expect=[words[:2], words[2:]])
    yield Example(18, [5, 6, 7], num_outputs=1, expect=[[5, 6, 7]])
    yield Example(13, x[:0], outputs=2, expect=[x[:0], x[:0]])
