"""Dropout: random elements set to zero while training, a copy otherwise."""

from collections.abc import Iterator

import numpy as np

from sabir import loops
from sabir.elements import BOOL as BOOLEAN
from sabir.ir import Builder, TensorType, Value
from sabir.loops import Expression, Lowering
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.random import dropping
from sabir.opsets.families.random.dropping import DEFAULT_RATIO
from sabir.opsets.families.shapes.ranks import check_one
from sabir.opsets.typing import Array, Gradient
from sabir.schema import (
    BFLOAT16,
    BOOL,
    FLOAT8,
    FLOATS,
    Attribute,
    Call,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    Unconvertible,
)

dropout = Operator(
    "Dropout",
    summary="A copy of `data`; while training, 0 with probability `ratio`, else `data / (1 - ratio)`.",
    random=True,
)

T = Constraint("T", FLOATS)
T1 = Constraint("T1", FLOATS)
T2 = Constraint("T2", BOOL)

DATA = Input("data", T, "A tensor of any shape.", differentiable=True)


def outputs(mask: Constraint, doc: str) -> list[Output]:
    return [
        Output("output", T, "The input's shape.", differentiable=True),
        Output("mask", mask, doc, optional=True, differentiable=False),
    ]


v1 = dropout.first(
    1,
    inputs=[DATA],
    outputs=outputs(T, "1 where an element is kept, 0 elsewhere."),
    attributes=[
        Attribute("is_test", "int", "Nonzero: nothing is dropped.", default=0),
        Attribute("consumed_inputs", "ints", legacy=True),
        Attribute("ratio", "float", "The probability of dropping an element.", default=0.5),
    ],
)
v6 = v1.evolve(6, "Drops the legacy hint `consumed_inputs`.", drop=["consumed_inputs"])
v7 = v6.evolve(7, "Drops no elements: removes `is_test`, and behaves as if it were set.", drop=["is_test"])
v10 = v7.evolve(
    10, "The mask is boolean.", outputs=outputs(Constraint("T1", BOOL), "Which elements are kept.")
)
v12 = v10.evolve(
    12,
    "`ratio` becomes an input; `training_mode` turns dropping on, and `seed` makes it repeatable.",
    inputs=[
        DATA,
        Input("ratio", T1, "A scalar in [0, 1), 0.5 if absent.", optional=True, differentiable=False),
        Input("training_mode", T2, "A scalar: true to drop elements.", optional=True, differentiable=False),
    ],
    outputs=outputs(T2, "Which elements are kept."),
    drop=["ratio"],
    add=[Attribute("seed", "int", "The seed of the generator; without it, each run differs.")],
)
v13 = v12.widen(13, T=BFLOAT16)
v22 = v13.widen(22, T=FLOAT8, T1=FLOAT8 | BFLOAT16)


@v1.infer
def infer_with_mask_of_numbers(x: TensorType, /) -> tuple[TensorType, TensorType]:
    return TensorType(x.element, x.shape), TensorType(x.element, x.shape)


@v10.infer
def infer(
    x: TensorType, ratio: TensorType | None = None, training: TensorType | None = None, /
) -> tuple[TensorType, TensorType]:
    check_one("ratio", ratio)
    check_one("training_mode", training)
    return TensorType(x.element, x.shape), TensorType(BOOLEAN, x.shape)


@v1.evaluate
def evaluate_with_mode(x: Array, /, *, is_test: int, ratio: float) -> tuple[Array, Array]:
    kept, mask = (x, np.ones(x.shape, np.bool_)) if is_test else dropping.dropped(x, ratio, None)
    return kept, mask.astype(x.dtype)


@v7.evaluate
def evaluate_with_mask_of_numbers(x: Array, /, *, ratio: float) -> tuple[Array, Array]:
    return x, np.ones(x.shape, x.dtype)


@v10.evaluate
def evaluate_in_inference(x: Array, /, *, ratio: float) -> tuple[Array, Array]:
    return x, np.ones(x.shape, np.bool_)


@v12.evaluate
def evaluate(
    x: Array, ratio: Array | None = None, training: Array | None = None, /, *, seed: int | None
) -> tuple[Array, Array]:
    return dropping.evaluated(x, ratio, training, seed)


@v1.lower
def lower_with_mode(
    x: Expression, /, *, is_test: int, ratio: float, call: Lowering
) -> tuple[Expression, Expression]:
    if is_test:
        return x, kernels.filled(x.element, 1, x.shape)
    y, mask = dropping.lowered(x, loops.number("double", ratio), ratio, None, call)
    return y, loops.cast(mask, x.element)


@v7.lower
def lower_with_mask_of_numbers(x: Expression, /) -> tuple[Expression, Expression]:
    return x, kernels.filled(x.element, 1, x.shape)


@v10.lower
def lower_in_inference(x: Expression, /) -> tuple[Expression, Expression]:
    return x, kernels.filled("bool", 1, x.shape)


@v12.lower
def lower(
    x: Expression, ratio: Expression | None = None, training: Expression | None = None, /, *,
    seed: int | None, call: Lowering,
) -> tuple[Expression, Expression]:  # fmt: skip
    mode = None if training is None else kernels.content_of(training)
    if training is None or mode == 0:
        return x, kernels.filled("bool", 1, x.shape)
    share = loops.number("double", DEFAULT_RATIO) if ratio is None else loops.cast(_one(ratio), "double")
    known = DEFAULT_RATIO if ratio is None else kernels.content_of(ratio)
    y, mask = dropping.lowered(x, share, known, dropping.key(seed), call)
    if mode is not None:
        return y, mask
    trains = _one(training)
    return loops.where(trains, y, x), loops.apply("or", mask, loops.apply("not", trains))


def _one(operand: Expression) -> Expression:
    """Return the only element of an operand."""
    return loops.reshape(operand, ())


# ---------------------------------------------------------------- adapters


@v7.upgrade
def only_in_test(
    b: Builder, x: Value, /, *, is_test: int, ratio: float, call: Call
) -> Value | tuple[Value, ...]:
    if not is_test and ratio:
        raise Unconvertible("Dropout:7 does not drop, and `is_test` is not set")
    return b.op("Dropout", x, outputs=len(call.outputs), ratio=ratio)


@v7.downgrade
def as_in_test(b: Builder, x: Value, /, *, ratio: float, call: Call) -> Value | tuple[Value, ...]:
    return b.op("Dropout", x, outputs=len(call.outputs), ratio=ratio, is_test=1)


@v10.upgrade
def mask_to_numbers(b: Builder, x: Value, /, *, ratio: float, call: Call) -> Value | tuple[Value, Value]:
    if not call.wants(1):
        return b.Dropout(x, ratio=ratio)
    if not isinstance(x.type, TensorType) or not x.type.element.number:
        raise Unconvertible("the element type is unknown, and the mask must be converted to it")
    output, mask = b.op("Dropout", x, outputs=2, ratio=ratio)
    return output, b.Cast(mask, to=x.type.element.number)


@v10.downgrade
def mask_to_truth(b: Builder, x: Value, /, *, ratio: float, call: Call) -> Value | tuple[Value, Value]:
    if not call.wants(1):
        return b.Dropout(x, ratio=ratio)
    output, mask = b.op("Dropout", x, outputs=2, ratio=ratio)
    return output, b.Cast(mask, to=BOOLEAN.number)


@v12.upgrade
def ratio_becomes_an_input(b: Builder, x: Value, /, *, ratio: float, call: Call) -> Value | tuple[Value, ...]:
    return b.op("Dropout", x, b.initializer("ratio", np.float32(ratio)), outputs=len(call.outputs))


@v12.downgrade
def only_in_inference(
    b: Builder, x: Value, ratio: Value | None = None, training: Value | None = None, /, *, call: Call
) -> Value | tuple[Value, ...]:
    if training is not None and _scalar(training) is not False:
        raise Unconvertible("Dropout:10 does not train, and `training_mode` is not known to be false")
    known = None if ratio is None else _scalar(ratio)
    kept = known if isinstance(known, float) else DEFAULT_RATIO
    return b.op("Dropout", x, outputs=len(call.outputs), ratio=kept)


def _scalar(value: Value) -> object:
    known = value.type.known if isinstance(value.type, TensorType) else None
    return known[0] if known else None


@v13.gradient
def gradient(
    g: Gradient, x: Value, ratio: Value | None = None, training: Value | None = None, /
) -> tuple[Value, None, None]:
    """Elements are kept as the call keeps them: its mask tells."""
    if training is None or _scalar(training) is False:
        return g.dy, None, None
    share = DEFAULT_RATIO if ratio is None else g.CastLike(g.Reshape(ratio, []), x)
    scale = g.Where(g.Reshape(training, []), g.Div(g.dy, g.Sub(1, share)), g.dy)
    return g.Where(g.y(1), scale, 0), None, None


@dropout.examples
def examples() -> Iterator[Example]:
    x = [[1.0, -2.0], [np.inf, np.nan]]
    kept = np.ones((2, 2), bool)
    for opset in (1, 6):
        yield Example(opset, x, is_test=1, ratio=0.9, expect=[x])
        yield Example(opset, x, ratio=0.0, outputs=2, expect=[x, kept.astype(np.float32)])
    yield Example(7, x, outputs=2, expect=[x, kept.astype(np.float32)])
    yield Example(10, x, ratio=0.25, outputs=2, expect=[x, kept])
    for opset in (7, 10, 12, 13, 22):
        yield Example(opset, x, expect=[x])
        yield Example(opset, np.float16(3), expect=[3])
        yield Example(opset, np.zeros((0, 2)), expect=[np.zeros((0, 2))])
    for opset in (12, 13, 22):
        yield Example(opset, x, 0.75, 0, outputs=2, expect=[x, kept])
        yield Example(opset, x, np.float64(0), 1, seed=5, outputs=2, expect=[x, kept])
        zeros = np.zeros(3, np.float64)
        yield Example(opset, zeros, np.float16(0.5), 1, seed=-1, expect=[zeros])
