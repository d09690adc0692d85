"""BatchNormalization: each channel normalised to zero mean and unit variance, then scaled and shifted."""

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from sabir import loops
from sabir.base import InferenceError
from sabir.ir import Builder, TensorType, Value
from sabir.loops import Expression, Lowering, NotLowered
from sabir.opsets.families.normalization import normalization_gradients, normalization_kernels
from sabir.opsets.families.normalization.normalization import (
    EPSILON,
    Moments,
    channels,
    normalized_type,
    scaled,
    statistics,
)
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.shapes.ranks import check_shape
from sabir.opsets.typing import Array, Gradient
from sabir.schema import (
    BFLOAT16,
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

batch_normalization = Operator(
    "BatchNormalization",
    summary="`(X - mean) / sqrt(var + epsilon) * scale + B`, by the statistics of inputs or of the batch.",
)

T = Constraint("T", FLOATS)

v1 = batch_normalization.first(
    1,
    inputs=[
        Input("X", T, differentiable=True),
        Input("scale", T, differentiable=True),
        Input("B", T, differentiable=True),
        Input("mean", T, differentiable=True),
        Input("var", T, differentiable=True),
    ],
    outputs=[
        Output("Y", T, differentiable=True),
        Output("mean", T, optional=True, differentiable=False),
        Output("var", T, optional=True, differentiable=False),
        Output("saved_mean", T, optional=True, differentiable=False),
        Output("saved_var", T, optional=True, differentiable=False),
    ],
    attributes=[
        Attribute("consumed_inputs", "ints", required=True, legacy=True),
        Attribute(
            "momentum",
            "float",
            "The share of the running statistics that remains after a batch.",
            default=0.9,
        ),
        EPSILON,
        Attribute(
            "is_test",
            "int",
            "1: uses the inputs `mean` and `var`; 0: the statistics of the batch.",
            default=0,
        ),
        Attribute(
            "spatial", "int", "0: statistics for each position of an item, not for each channel.", default=1
        ),
    ],
)
v6 = v1.evolve(
    6,
    "Drops the legacy attribute `consumed_inputs`; admits any number of spatial axes.",
    drop=["consumed_inputs"],
)
v7 = v6.evolve(
    7,
    "The outputs determine the mode: `Y` alone uses the inputs `mean` and `var`, more outputs the batch.",
    drop=["is_test"],
)
v9 = v7.evolve(
    9, "Drops `spatial`: statistics are always per channel. Admits an input of rank 1.", drop=["spatial"]
)
U = Constraint("U", FLOATS, BFLOAT16)
v14 = v9.evolve(
    14,
    "`training_mode` selects the mode; drops the saved statistics; the running ones have their own type.",
    inputs=[
        Input("X", T, differentiable=True),
        Input("scale", T, differentiable=True),
        Input("B", T, differentiable=True),
        Input("input_mean", U, differentiable=True),
        Input("input_var", U, differentiable=True),
    ],
    outputs=[
        Output("Y", T, differentiable=True),
        Output("running_mean", U, optional=True, differentiable=False),
        Output("running_var", U, optional=True, differentiable=False),
    ],
    add=[
        Attribute(
            "training_mode",
            "int",
            "1: uses the statistics of the batch, and updates the running ones.",
            default=0,
        )
    ],
    widen={"T": BFLOAT16},
)
TX = Constraint("T", FLOATS, BFLOAT16)
T1 = Constraint("T1", FLOATS, BFLOAT16)
T2 = Constraint("T2", FLOATS, BFLOAT16)
v15 = v14.evolve(
    15,
    "Scale and bias have their own type; the batch's statistics are computed in float32 or better.",
    inputs=[
        Input("X", TX, "The input, (N, C, D1, ..., Dn), or (N) with one channel.", differentiable=True),
        Input("scale", T1, "The factor of each channel, (C).", differentiable=True),
        Input("B", T1, "The bias of each channel, (C).", differentiable=True),
        Input(
            "input_mean",
            T2,
            "The mean of each channel, or the running mean in training, (C).",
            differentiable=True,
        ),
        Input(
            "input_var",
            T2,
            "The variance of each channel, or the running variance in training, (C).",
            differentiable=True,
        ),
    ],
    outputs=[
        Output("Y", TX, "The input's shape.", differentiable=True),
        Output(
            "running_mean",
            T2,
            "In training: the mean of `input_mean` and the batch's, weighted by `momentum`.",
            optional=True,
            differentiable=False,
        ),
        Output(
            "running_var",
            T2,
            "In training: the same of `input_var` and the population variance of the batch.",
            optional=True,
            differentiable=False,
        ),
    ],
)

_NO_STATISTICS = "without training, Y is the only output"


@v1.infer
def infer(
    x: TensorType, scale: TensorType, bias: TensorType, mean: TensorType, var: TensorType, /, *,
    spatial: int = 1,
) -> tuple[TensorType, ...]:  # fmt: skip
    if not spatial:
        _check_positions(x, scale, bias, mean, var)
        return TensorType(x.element, x.shape), *(TensorType(x.element, mean.shape),) * 4
    y = normalized_type(x, scale, bias, mean, var)
    return y, *(TensorType(x.element, (channels(x, scale, bias, mean, var),)),) * 4


def _check_positions(x: TensorType | Array, *parameters: TensorType | Array) -> None:
    """Raise InferenceError unless each parameter has one element for each position of an item."""
    for name, parameter in zip(("scale", "B", "mean", "var"), parameters, strict=True):
        if x.shape is not None:
            check_shape(name, parameter, *x.shape[1:])


@v14.infer
def infer_with_mode(
    x: TensorType, scale: TensorType, bias: TensorType, mean: TensorType, var: TensorType, /, *,
    training_mode: int, call: Call,
) -> tuple[TensorType, ...]:  # fmt: skip
    if not training_mode and any(call.outputs[1:]):
        raise InferenceError(_NO_STATISTICS)
    y, running, *_ = infer(x, scale, bias, mean, var)
    return y, TensorType(mean.element, running.shape), TensorType(var.element, running.shape)


@v1.evaluate
def evaluate(  # ruff: ignore[too-many-arguments]  the operator's signature
    x: Array, scale: Array, bias: Array, mean: Array, var: Array, /, *,
    is_test: int, spatial: int, epsilon: float, momentum: float, call: Call,
) -> tuple[Array, ...]:  # fmt: skip
    (channels if spatial else _check_positions)(x, scale, bias, mean, var)
    running = Moments(mean, var)
    if is_test and any(call.outputs[1:]):
        raise ValueError(_NO_STATISTICS)
    if is_test:
        return (scaled(x, running, scale, bias, epsilon),)
    batch = statistics(widened(x), (0, *range(2, x.ndim)) if spatial else (0,))
    saved = [s.reshape(mean.shape).astype(x.dtype) for s in batch]
    return scaled(x, batch, scale, bias, epsilon), *running.updated(batch, momentum), *saved


@v7.evaluate
def evaluate_by_outputs(
    *inputs: Array, epsilon: float, momentum: float, spatial: int = 1, call: Call
) -> tuple[Array, ...]:
    test = not any(call.outputs[1:])
    return evaluate(*inputs, is_test=test, spatial=spatial, epsilon=epsilon, momentum=momentum, call=call)


@v14.evaluate
def evaluate_with_mode(
    *inputs: Array, epsilon: float, momentum: float, training_mode: int, call: Call
) -> tuple[Array, ...]:
    test = not training_mode
    return evaluate(*inputs, is_test=test, spatial=1, epsilon=epsilon, momentum=momentum, call=call)[:3]


@v1.lower
def lower(  # ruff: ignore[too-many-arguments]  the operator's signature
    x: Expression, scale: Expression, bias: Expression, mean: Expression, var: Expression, /, *,
    is_test: int, spatial: int, epsilon: float, momentum: float, call: Lowering,
) -> tuple[Expression, ...]:  # fmt: skip
    if is_test and any(call.outputs[1:]):
        raise NotLowered(_NO_STATISTICS)
    sizes = (x.shape[1:2] or (1,)) if spatial else x.shape[1:]
    if not all(loops.same_shape(p.shape, sizes) for p in (scale, bias, mean, var)):
        raise NotLowered("whether the parameters fit the input is known at run time only")
    if is_test:
        return (normalization_kernels.scaled(x, (mean, var), scale, bias, epsilon),)
    batch = normalization_kernels.statistics(x, (0, *range(2, x.rank)) if spatial else (0,), sizes)
    running = (
        normalization_kernels.updated(old, new, momentum) for old, new in zip((mean, var), batch, strict=True)
    )
    saved = (loops.cast(new, x.element) for new in batch)
    return normalization_kernels.scaled(x, batch, scale, bias, epsilon), *running, *saved


@v7.lower
def lower_by_outputs(
    *inputs: Expression, epsilon: float, momentum: float, spatial: int = 1, call: Lowering
) -> tuple[Expression, ...]:
    test = not any(call.outputs[1:])
    return lower(*inputs, is_test=test, spatial=spatial, epsilon=epsilon, momentum=momentum, call=call)


@v14.lower
def lower_with_mode(
    *inputs: Expression, epsilon: float, momentum: float, training_mode: int, call: Lowering
) -> tuple[Expression, ...]:
    test = not training_mode
    return lower(*inputs, is_test=test, spatial=1, epsilon=epsilon, momentum=momentum, call=call)[:3]


@v9.downgrade
@v15.upgrade
def same_call(b: Builder, /, *inputs: Value, call: Call, **attributes: Any) -> Any:
    return b.op("BatchNormalization", *inputs, outputs=len(call.outputs), **attributes)


@v6.downgrade
def add_consumed_inputs(b: Builder, /, *inputs: Value, call: Call, **attributes: Any) -> Any:
    """The attribute is required before 6; it states that the running statistics are overwritten."""
    return same_call(b, *inputs, call=call, consumed_inputs=[0, 0, 0, 1, 1], **attributes)


@v7.upgrade
def outputs_for_is_test(b: Builder, /, *inputs: Value, is_test: int, call: Call, **attributes: Any) -> Any:
    if is_test and any(call.outputs[1:]):
        raise Unconvertible(_NO_STATISTICS)
    results = b.op("BatchNormalization", *inputs, outputs=1 if is_test else 5, **attributes)
    return results if is_test else results[: len(call.outputs)]


@v7.downgrade
def is_test_for_outputs(b: Builder, /, *inputs: Value, call: Call, **attributes: Any) -> Any:
    test = 0 if any(call.outputs[1:]) else 1
    return b.op("BatchNormalization", *inputs, outputs=len(call.outputs), is_test=test, **attributes)


@v9.upgrade
def positions_to_channels(
    b: Builder, x: Value, /, *parameters: Value, spatial: int, call: Call, **attributes: Any
) -> Any:
    """Make each position of an item a channel."""
    if spatial:
        return same_call(b, x, *parameters, call=call, **attributes)
    flat = b.initializer("flat", np.array([-1], np.int64))
    vectors = [b.Reshape(p, flat) for p in parameters]
    results = same_call(b, b.Flatten(x, axis=1), *vectors, call=call, **attributes)
    y, *running = results if len(call.outputs) > 1 else (results,)
    return b.Reshape(y, b.Shape(x)), *(b.Reshape(r, b.Shape(parameters[0])) for r in running)


@v14.upgrade
def training_mode_for_outputs(
    b: Builder, /, *inputs: Value, momentum: float, call: Call, **attributes: Any
) -> Any:
    """The saved statistics of the batch are the running ones with a momentum of 0."""
    if not any(call.outputs[1:]):
        return b.BatchNormalization(*inputs, momentum=momentum, **attributes)
    results = b.op("BatchNormalization", *inputs, outputs=3, training_mode=1, momentum=momentum, **attributes)
    if call.wants(3) or call.wants(4):
        batch = b.op("BatchNormalization", *inputs, outputs=3, training_mode=1, momentum=0.0, **attributes)
        results = (*results, *batch[1:])
    return results[: len(call.outputs)]


@v14.downgrade
def outputs_for_training_mode(
    b: Builder, /, *inputs: Value, training_mode: int, call: Call, **attributes: Any
) -> Any:
    _require_one_type(inputs, "BatchNormalization:9")
    results = b.op("BatchNormalization", *inputs, outputs=5 if training_mode else 1, **attributes)
    return results[: len(call.outputs)] if training_mode else results


@v15.downgrade
def one_type_for_scale(b: Builder, /, *inputs: Value, call: Call, **attributes: Any) -> Any:
    _require_one_type(inputs[:3], "BatchNormalization:14")
    return same_call(b, *inputs, call=call, **attributes)


def _require_one_type(values: tuple[Value, ...], target: str) -> None:
    elements = {v.type.element for v in values if isinstance(v.type, TensorType) and v.type.element.number}
    if len(elements) > 1:
        found = ", ".join(sorted(map(str, elements)))
        raise Unconvertible(f"{target} requires one element type, and the operands have {found}")


def _call() -> tuple[Array, ...]:
    x = np.array([[[1, 3], [10, 20]], [[5, 7], [30, 40]]], np.float32)  # means 4 and 25, variances 5 and 125
    return x, *np.array([[2, 1], [0, -1], [3, 20], [4, 25]], np.float32)


@v15.gradient
def gradient(
    g: Gradient, x: Value, scale: Value, bias: Value, mean: Value, var: Value, /, *,
    epsilon: float, training_mode: int,
) -> tuple[Value | None, ...]:  # fmt: skip
    """The running statistics pass no gradients on, as in PyTorch."""
    if g.dys[0] is None:
        return (None,) * 5
    if training_mode:
        found = normalization_gradients.by_batch(g, x, scale, bias, epsilon)
        return *found, g.zeros(mean), g.zeros(var)
    return normalization_gradients.by_statistics(g, x, (scale, bias, mean, var), epsilon)


@batch_normalization.examples
def examples() -> Iterator[Example]:
    f = np.float32
    x, scale, bias, mean, var = call = _call()
    y = [[[-2, 0], [-3, -1]], [[2, 4], [1, 3]]]  # 2 (x - 3) / 2, (x - 20) / 5 - 1
    yield Example(1, *call, is_test=1, epsilon=0.0, consumed_inputs=[0, 0], expect=[y])
    yield Example(6, *call, is_test=1, epsilon=0.0, expect=[y])
    for opset in (7, 9, 14, 15):
        yield Example(opset, *call, epsilon=0.0, expect=[y])
    positions = [[[1, 1], [1, 2]], [[0, 0], [0, 5]], [[1, 2], [3, 4]], [[1, 1], [4, 16]]]
    each = [[[0, 1], [3.5, 13]], [[4, 5], [13.5, 23]]]  # (x - mean) / deviation * scale + bias
    yield Example(6, x, *positions, spatial=0, is_test=1, epsilon=0.0, expect=[each])
    yield Example(7, x, *positions, spatial=0, epsilon=0.0, expect=[each])
    yield Example(9, np.array([3, 5, 7], f), *([p] for p in (2, 1, 3, 4)), epsilon=0.0, expect=[[1, 3, 5]])
    mixed = (x.astype(np.float16), scale, bias, mean.astype(float), var.astype(float))
    yield Example(15, *mixed, epsilon=0.0, expect=[y])
    brain = ml_dtypes.bfloat16
    yield Example(14, *(a.astype(brain) for a in call), epsilon=0.0, expect=[y])
    yield Example(9, np.zeros((0, 2, 3), f), scale, bias, mean, var, expect=[np.zeros((0, 2, 3), f)])


@batch_normalization.examples
def examples_of_training() -> Iterator[Example]:
    f = np.float32
    x, scale, bias, mean, var = call = _call()
    own = ((x - [[4], [25]]) / np.sqrt([[5], [125]]) * [[2], [1]] + [[0], [-1]]).astype(f)
    moved, saved = np.array([[3.5, 22.5], [4.5, 75]], f), [[4, 25], [5, 125]]
    train: dict[str, Any] = {"epsilon": 0.0, "momentum": 0.5}
    yield Example(1, *call, consumed_inputs=[0, 0], expect=[own], **train)
    yield Example(6, *call, outputs=5, expect=[own, *moved, *saved], **train)
    yield Example(7, *call, outputs=5, expect=[own, *moved, *saved], **train)
    yield Example(9, *call, outputs=5, expect=[own, *moved, *saved], **train)
    for opset in (14, 15):
        yield Example(opset, *call, outputs=3, training_mode=1, expect=[own, *moved], **train)
    each = [[[-1, -1], [-1, -1]], [[1, 1], [1, 1]]]  # two items, each one deviation from the mean
    vectors = np.ones((2, 2), f), np.zeros((2, 2), f), np.zeros((2, 2), f), np.ones((2, 2), f)
    halves = [np.array(h, f) for h in ([[1.5, 2.5], [10, 15]], [[2.5, 2.5], [50.5, 50.5]])]
    yield Example(7, x, *vectors, spatial=0, outputs=3, expect=[each, *halves], **train)
    call = (x.astype(np.float16), scale, bias, mean.astype(float), var.astype(float))
    expected = [own.astype(np.float16), *(m.astype(float) for m in moved)]
    yield Example(15, *call, outputs=3, training_mode=1, tolerance=2e-3, expect=expected, **train)
