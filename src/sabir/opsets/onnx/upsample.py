"""Upsample: an enlarged tensor; Resize replaces it since opset 10."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from sabir.base import InferenceError
from sabir.ir import Attribute as Fact
from sabir.ir import Builder, Item, TensorType, Value
from sabir.loops import Expression, Lowering, NotLowered
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.resampling.resampling import Interpolation, ResampledAxis, mode, resample, scaled
from sabir.opsets.families.resampling.resampling_kernels import by_scales
from sabir.opsets.families.shapes import contents
from sabir.opsets.families.shapes.ranks import as_list, check_rank
from sabir.opsets.typing import Array
from sabir.schema import (
    BOOL,
    CLASSIC,
    FLOATS,
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

upsample = Operator(
    "Upsample",
    summary="`X` with `floor(scale * size)` elements along each axis: the element before the coordinate"
    " `index / scale`, or a linear interpolation of the two around it.",
)

T = Constraint("T", FLOATS, BOOL, tensors("int32", "int64"))
_IMAGE = 4

v1 = upsample.first(
    1,
    inputs=[Input("X", T, "Images, [N, C, H, W].")],
    outputs=[Output("Y", T, "The enlarged tensor.")],
    attributes=[
        mode("nearest", "bilinear", linear="bilinear", cubic="cubic"),
        Attribute(
            "height_scale",
            "float",
            "The new height divided by the old; 1 or more.",
            required=True,
            values=at_least(1),
        ),
        Attribute(
            "width_scale",
            "float",
            "The new width divided by the old; 1 or more.",
            required=True,
            values=at_least(1),
        ),
    ],
    status="experimental",
)
v7 = v1.evolve(
    7,
    "Admits tensors of any shape and element type, with a scale for each axis; renames bilinear to linear.",
    inputs=[Input("X", T, "A tensor of any shape.")],
    drop=["height_scale", "width_scale"],
    add=[
        mode("nearest", "linear", bilinear="linear", cubic="cubic"),
        Attribute(
            "scales",
            "floats",
            "The new size of each axis divided by the old; 1 or more.",
            required=True,
            values=at_least(1),
        ),
    ],
    widen={"T": CLASSIC},
    status="stable",
)
v9 = v7.evolve(
    9,
    "`scales` becomes an input.",
    inputs=[
        Input("X", T, "A tensor of any shape."),
        Input("scales", "tensor(float)", "The new size of each axis divided by the old; 1 or more."),
    ],
    drop=["scales"],
    widen={"T": CLASSIC},
)
v10 = v9.retire(10, "Replaced by Resize, which also shrinks.")

_LINEAR = frozenset({"linear", "bilinear"})


@v1.infer
def infer_image(x: TensorType, /, *, height_scale: float, width_scale: float) -> TensorType:
    if x.shape is not None and len(x.shape) != _IMAGE:
        raise InferenceError(f"`X` must be of rank {_IMAGE}, and has rank {len(x.shape)}")
    return _enlarged_type(x, (1.0, 1.0, height_scale, width_scale))


@v7.infer
def infer_attribute(x: TensorType, /, *, scales: Sequence[float]) -> TensorType:
    return _enlarged_type(x, scales)


@v9.infer
def infer(x: TensorType, scales: TensorType, /) -> TensorType:
    check_rank("scales", scales, 1)
    count = scales.size
    rank = count if isinstance(count, int) and count <= contents.MOST else x.rank
    return TensorType(x.element) if rank is None else _enlarged_type(x, scales.known or (None,) * rank)


def _enlarged_type(x: TensorType, scales: Sequence[Item]) -> TensorType:
    shape = (None,) * len(scales) if x.shape is None else x.shape
    if len(scales) != len(shape):
        raise InferenceError(f"{len(scales)} scales for a tensor of rank {len(shape)}")
    if any(isinstance(s, float) and s < 1 for s in scales):
        raise InferenceError(f"scales cannot be below 1: {list(scales)}")
    return TensorType(
        x.element,
        tuple(scaled(d, s) if isinstance(s, float) else None for d, s in zip(shape, scales, strict=True)),
    )


@v1.evaluate
def evaluate_image(x: Array, /, *, mode: str, height_scale: float, width_scale: float) -> Array:
    return _enlarged(x, (1.0, 1.0, height_scale, width_scale), mode)


@v7.evaluate
def evaluate_attribute(x: Array, /, *, mode: str, scales: Sequence[float]) -> Array:
    return _enlarged(x, scales, mode)


@v9.evaluate
def evaluate(x: Array, scales: Array, /, *, mode: str) -> Array:
    return _enlarged(x, as_list("scales", scales), mode)


@v1.lower
def lower_image(
    x: Expression, /, *, mode: str, height_scale: float, width_scale: float, call: Lowering
) -> Expression:
    return _lowered(x, (1.0, 1.0, height_scale, width_scale), mode, call)


@v7.lower
def lower_attribute(x: Expression, /, *, mode: str, scales: Sequence[float], call: Lowering) -> Expression:
    return _lowered(x, scales, mode, call)


@v9.lower
def lower(x: Expression, scales: Expression, /, *, mode: str, call: Lowering) -> Expression:
    found = kernels.floats_of(scales)
    if found is None:
        raise NotLowered("the scales are known at run time only")
    return _lowered(x, found, mode, call)


def _lowered(x: Expression, scales: Sequence[float], mode: str, call: Lowering) -> Expression:
    if len(scales) != x.rank or any(s < 1 for s in scales):
        raise NotLowered("the scales are not at least 1, one for each axis")
    how = Interpolation("linear" if mode in _LINEAR else mode, "asymmetric", "floor")
    return by_scales(x, scales, range(x.rank), call.shape(), how)


def _enlarged(x: Array, scales: Sequence[float], mode: str) -> Array:
    if len(scales) != x.ndim or not all(1 <= s < np.inf for s in scales):
        raise ValueError(f"scales {list(scales)} must be {x.ndim} numbers of at least 1, one per axis")
    exact = [Fraction(s) for s in scales]
    axes = [ResampledAxis(n, int(s * n), s) for n, s in zip(x.shape, exact, strict=True)]
    return resample(x, axes, Interpolation("linear" if mode in _LINEAR else mode, "asymmetric", "floor"))


@v7.upgrade
def scale_every_axis(b: Builder, x: Value, /, *, mode: str, height_scale: float, width_scale: float) -> Value:
    scales = (1.0, 1.0, height_scale, width_scale)
    return b.Upsample(x, mode="linear" if mode in _LINEAR else mode, scales=Fact("scales", "floats", scales))


@v7.downgrade
def scale_images(b: Builder, x: Value, /, *, mode: str, scales: Sequence[float]) -> Value:
    kind = x.type
    if not isinstance(kind, TensorType) or kind.signature not in T.allowed or len(scales) != _IMAGE:
        raise Unconvertible("Upsample:1 admits images of few element types")
    if any(np.not_equal(s, 1) for s in scales[:2]):
        raise Unconvertible("Upsample:1 scales height and width only")
    renamed = "bilinear" if mode in _LINEAR else mode
    return b.Upsample(x, mode=renamed, height_scale=float(scales[2]), width_scale=float(scales[3]))


@v9.upgrade
def scales_become_an_input(b: Builder, x: Value, /, *, mode: str, scales: Sequence[float]) -> Value:
    return b.Upsample(x, b.initializer("scales", np.array(scales, np.float32)), mode=mode)


@v9.downgrade
def scales_become_an_attribute(b: Builder, x: Value, scales: Value, /, *, mode: str) -> Value:
    known = scales.type.known if isinstance(scales.type, TensorType) else None
    if known is None:
        raise Unconvertible("`scales` is computed at run time, and Upsample:7 needs it in the model")
    return b.Upsample(x, mode=mode, scales=Fact("scales", "floats", tuple(known)))


@v10.upgrade
def rename(b: Builder, x: Value, scales: Value, /, *, mode: str) -> Value:
    return b.Resize(x, scales, mode="linear" if mode in _LINEAR else mode)


@v10.downgrade
def same_call(b: Builder, x: Value, scales: Value, /, **attributes: Any) -> Value:
    return b.Upsample(x, scales, **attributes)


@upsample.examples
def examples() -> Iterator[Example]:
    f = np.float32
    x = np.array([[[[1, 2], [3, 4]]]], f)
    near = [[[[1, 1, 1, 2, 2, 2]] * 2 + [[3, 3, 3, 4, 4, 4]] * 2]]
    line = [[[[1, 1.5, 2, 2], [2, 2.5, 3, 3], [3, 3.5, 4, 4], [3, 3.5, 4, 4]]]]
    yield Example(1, x, height_scale=2.0, width_scale=3.0, expect=[near])
    yield Example(1, x, mode="bilinear", height_scale=2.0, width_scale=2.0, expect=[line])
    yield Example(7, x, scales=[1.0, 1.0, 2.0, 3.0], expect=[near])
    yield Example(7, x, mode="linear", scales=[1.0, 1.0, 2.0, 2.0], expect=[line])
    for opset in (9, 10):
        yield Example(opset, x, [1, 1, 2, 3], expect=[near])
        yield Example(opset, x, [1, 1, 2, 2], mode="linear", expect=[line])
    yield Example(9, [1, 2, 3], [1.5], expect=[[1, 1, 2, 3]])
    yield Example(9, ["a", "b"], [2], expect=[["a", "a", "b", "b"]])
    yield Example(9, np.zeros((0, 1), bool), [2, 2], expect=[np.zeros((0, 2), bool)])
