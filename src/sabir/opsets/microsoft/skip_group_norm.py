"""SkipGroupNorm: GroupNorm of the sum of images, a residual and a bias."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from sabir import loops
from sabir.ir import Builder, Dim, TensorType, Value
from sabir.loops import Expression
from sabir.opsets.families.normalization import grouped
from sabir.opsets.families.numbers import halves
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.shapes.axes import as_input
from sabir.opsets.families.shapes.ranks import check_broadcast, check_rank, check_shape, hold
from sabir.opsets.typing import Array
from sabir.schema import Call, Example, Input, Operator, Output, Unconvertible

skip_group_norm = Operator(
    "SkipGroupNorm",
    domain="com.microsoft",
    summary="`gamma * (s - mean) / sqrt(var + epsilon) + beta` of `s = X + skip + bias` over each group of"
    " channels, with an optional activation.",
    body_opset=18,
)

v1 = skip_group_norm.first(
    1,
    inputs=[
        *grouped.INPUTS,
        Input(
            "skip",
            grouped.T,
            "The residual, in the shape of X, or with a height and a width of 1, or (batch, channels).",
            differentiable=True,
        ),
        Input("bias", grouped.T, "One element for each channel; 0 by default.", optional=True,
              differentiable=True),
    ],
    outputs=[
        grouped.OUTPUT,
        Output("S", grouped.T, "The sum that is normalised.", optional=True, differentiable=True),
    ],
    attributes=grouped.ATTRIBUTES,
)  # fmt: skip

_VECTORS = 2  # the rank of a residual without height and width


@v1.infer
def infer(
    x: TensorType, gamma: TensorType, beta: TensorType, skip: TensorType, bias: TensorType | None = None, /,
    *, channels_last: int, groups: int,
) -> tuple[TensorType, TensorType]:  # fmt: skip
    y = grouped.infer(x, gamma, beta, channels_last, groups)
    check_rank("skip", skip, _VECTORS, grouped.RANK)
    count = grouped.channels(x, last=bool(channels_last))
    check_shape("bias", bias, count)
    if x.shape is not None and skip.shape is not None:
        batch: tuple[Dim, ...] = (x.shape[0],)
        if len(skip.shape) == _VECTORS:
            check_shape("skip", skip, *batch, count)
        else:
            _check_images(skip, x.shape, 1 if channels_last else 2)
    return y, y


def _check_images(skip: TensorType, shape: tuple[Dim, ...], first: int) -> None:
    """Raise InferenceError unless a residual has the shape of the images, or both sides of them are 1."""
    if skip.shape is None:
        return
    check_broadcast("skip", skip, shape)
    sides = slice(first, first + 2)
    if skip.shape[sides] == (1, 1):
        shape = (*shape[:first], 1, 1, *shape[first + 2 :])
    check_shape("skip", skip, *shape)


@v1.evaluate
def evaluate(
    x: Array, gamma: Array, beta: Array, skip: Array, bias: Array | None = None, /, *, activation: int,
    channels_last: int, epsilon: float, groups: int,
) -> tuple[Array, Array]:  # fmt: skip
    hold(infer, x, gamma, beta, skip, bias, channels_last=channels_last, groups=groups)
    residual = widened(skip)
    if residual.ndim == _VECTORS:
        residual = residual[:, None, None] if channels_last else residual[:, :, None, None]
    total = widened(x) + residual
    if bias is not None:
        total += widened(bias) if channels_last else widened(bias)[:, None, None]
    y = grouped.evaluate(
        total, gamma, beta, activation=activation, channels_last=channels_last, epsilon=epsilon, groups=groups
    )
    return y.astype(x.dtype, copy=False), total.astype(x.dtype, copy=False)


@v1.lower
def lower(
    x: Expression, gamma: Expression, beta: Expression, skip: Expression, bias: Expression | None = None, /,
    *, channels_last: int, **attributes: Any,
) -> tuple[Expression, Expression]:  # fmt: skip
    residual = loops.cast(skip, "float")
    if residual.rank == _VECTORS:
        batch, count = residual.shape
        residual = loops.reshape(residual, (batch, 1, 1, count) if channels_last else (batch, count, 1, 1))
    total = loops.apply("add", loops.cast(x, "float"), residual)
    if bias is not None:
        offset = loops.cast(bias, "float")
        if not channels_last:
            offset = loops.reshape(offset, (*offset.shape, 1, 1))
        total = loops.apply("add", total, offset)
    y = grouped.lowered(total, gamma, beta, channels_last=channels_last, **attributes)
    return loops.cast(y, x.element), loops.cast(total, x.element)


@v1.body
def body(
    b: Builder, x: Value, gamma: Value, beta: Value, skip: Value, bias: Value | None = None, /,
    *, channels_last: int, call: Call, **attributes: Any,
) -> tuple[Value, ...]:  # fmt: skip
    rank = skip.type.rank if isinstance(skip.type, TensorType) else None
    if rank is None:
        raise Unconvertible("the rank of `skip` is unknown, and the axes of its images depend on it")
    residual = halves.widened(b, skip)
    if rank == _VECTORS:
        residual = b.Unsqueeze(residual, as_input(b, "axes", [1, 2] if channels_last else [2, 3]))
    total = b.Add(halves.widened(b, x), residual)
    if bias is not None:
        offset = halves.widened(b, bias)
        total = b.Add(total, offset if channels_last else b.Unsqueeze(offset, as_input(b, "axes", [1, 2])))
    y = grouped.emitted(b, total, gamma, beta, channels_last=channels_last, **attributes)
    made = halves.rounded(b, y, x), halves.rounded(b, total, x)
    return made[: len(call.outputs)]


@skip_group_norm.examples
def examples() -> Iterator[Example]:  # ruff: ignore[too-many-locals]  the inputs of the operator
    f = np.float32
    # by hand: the sums have two groups of two channels with means 4 and 3, variances 5 and 1
    total = np.array([[[[1, 3]], [[5, 7]], [[2, 4]], [[4, 2]]]], f)
    unit = np.array([[[[-3, -1]], [[1, 3]], [[-1, 1]], [[1, -1]]]], f)
    unit /= np.sqrt(np.array([6, 6, 2, 2], f)).reshape(1, 4, 1, 1)  # with an epsilon of 1
    gamma, beta = np.array([2, 3, -1, 5], f), np.array([0, 1, 10, 20], f)
    y = unit * gamma[:, None, None] + beta[:, None, None]
    skip, bias = np.array([[2, -1, 0, 3]], f), np.array([1, 1, 0, -2], f)
    silu = y / (1 + np.exp(-y))
    for last in (0, 1):
        images, result, opened = (np.moveaxis(a, 1, -1) if last else a for a in (total, y, silu))
        spread = skip[:, None, None] if last else skip[:, :, None, None]
        offset = bias if last else bias[:, None, None]
        attributes: dict[str, Any] = {"groups": 2, "channels_last": last, "epsilon": 1.0, "outputs": 2}
        for kind, rough in ((f, 1e-5), (np.float16, 1e-2)):
            for residual in (skip, spread, np.broadcast_to(spread, images.shape).copy()):
                call = [a.astype(kind) for a in (images - spread - offset, gamma, beta, residual, bias)]
                expected = [result.astype(kind), images.astype(kind)]
                yield Example(1, *call, activation=0, **attributes, expect=expected, tolerance=rough)
        call = images - spread, gamma, beta, skip
        yield Example(1, *call, activation=1, **attributes, expect=[opened, images])
    empty = np.zeros((0, 2, 2, 4), f)
    yield Example(1, empty, gamma, beta, empty, groups=2, activation=1, expect=[empty])
