"""Inference, evaluation and adapters of Resize."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sabir.base import InferenceError
from sabir.ir import Builder, TensorType, Value
from sabir.loops import Expression, Lowering, NotLowered, known_sizes
from sabir.opsets.families.building.calls import previous_opset
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.resampling.resampling import CROP, OUTWARD, Interpolation, resample
from sabir.opsets.families.resampling.resampling_kernels import by_scales, by_sizes
from sabir.opsets.families.resampling.resize_gradients import Resizing
from sabir.opsets.families.resampling.resizing import STRETCH, of_scales, of_sizes, scaled_axes, sized_axes
from sabir.opsets.families.shapes.ranks import check_shape
from sabir.opsets.families.shapes.shapes import axes_in
from sabir.opsets.onnx.resize._history import FOR_NN, v10, v11, v13, v18
from sabir.opsets.typing import Array, Gradient
from sabir.schema import BFLOAT16, Unconvertible

# ---------------------------------------------------------------- types


@v10.infer
def infer_scales(x: TensorType, scales: TensorType, /) -> TensorType:
    return of_scales(x, scales, None)


@v11.infer
def infer(
    x: TensorType,
    roi: TensorType | None = None,
    scales: TensorType | None = None,
    sizes: TensorType | None = None,
    /,
    *,
    mode: str,
    antialias: int = 0,
    axes: Sequence[int] | None = None,
    keep_aspect_ratio_policy: str = STRETCH,
    coordinate_transformation_mode: str,
) -> TensorType:
    _check_antialias(mode, antialias)
    _check_region(x, roi, axes, coordinate_transformation_mode)
    scales, sizes = (None if t is None or t.size == 0 else t for t in (scales, sizes))
    present = [t for t in (scales, sizes) if t is not None and (t is sizes or isinstance(t.size, int))]
    if x.shape and (not present if scales is None else len(present) > 1):
        raise InferenceError("either `scales` or `sizes` is needed, and not both")
    if sizes is not None:
        return of_sizes(x, sizes, axes, keep_aspect_ratio_policy)
    return of_scales(x, scales, axes) if scales is not None else x


def _check_antialias(mode: str, antialias: int) -> None:
    if antialias and mode == "nearest":
        raise InferenceError("`antialias` is for the modes linear and cubic")


def _check_region(
    x: TensorType | Array, roi: TensorType | Array | None, axes: Sequence[int] | None, transformation: str
) -> None:
    """Raise InferenceError unless the region to crop has a start and an end for each axis."""
    if transformation != CROP or roi is None or roi.size == 0 or x.shape is None:
        return
    check_shape("roi", roi, 2 * (len(x.shape) if axes is None else len(axes)))


# ---------------------------------------------------------------- values


@v10.evaluate
def evaluate_scales(x: Array, scales: Array, /, *, mode: str) -> Array:
    axes = scaled_axes(x.shape, tuple(range(x.ndim)), scales, None)
    return resample(x, axes, Interpolation(mode, "asymmetric", OUTWARD))


@v11.evaluate
def evaluate(
    x: Array,
    roi: Array | None = None,
    scales: Array | None = None,
    sizes: Array | None = None,
    /,
    **attributes: Any,
) -> Array:
    named = attributes.get("axes")
    numbers = tuple(range(x.ndim)) if named is None else axes_in(named, x.ndim)
    transformation = attributes["coordinate_transformation_mode"]
    part = roi if transformation == CROP and roi is not None and roi.size else None
    _check_region(x, part, named, transformation)
    scales, sizes = (None if a is None or a.size == 0 else a for a in (scales, sizes))
    if scales is not None and sizes is None:
        axes = scaled_axes(x.shape, numbers, scales, part)
    elif sizes is not None and scales is None:
        axes = sized_axes(x.shape, numbers, sizes, part, attributes.get("keep_aspect_ratio_policy", STRETCH))
    elif numbers:
        raise InferenceError("either `scales` or `sizes` is needed, and not both")
    else:
        axes = []
    return resample(x, axes, _interpolation(attributes))


def _interpolation(attributes: Mapping[str, Any]) -> Interpolation:
    antialias = attributes.get("antialias", 0)
    _check_antialias(attributes["mode"], antialias)
    return Interpolation(
        attributes["mode"],
        attributes["coordinate_transformation_mode"],
        attributes["nearest_mode"],
        attributes["cubic_coeff_a"],
        bool(antialias),
        bool(attributes["exclude_outside"]),
        attributes["extrapolation_value"],
    )


# ---------------------------------------------------------------- kernels


@v10.lower
def lower_scales(x: Expression, scales: Expression, /, *, mode: str, call: Lowering) -> Expression:
    how = Interpolation(mode, "asymmetric", OUTWARD)
    return by_scales(x, _known_scales(scales), range(x.rank), call.shape(), how)


@v11.lower
def lower(
    x: Expression,
    roi: Expression | None = None,
    scales: Expression | None = None,
    sizes: Expression | None = None,
    /,
    *,
    call: Lowering,
    **attributes: Any,
) -> Expression:
    named = attributes.get("axes")
    numbers = tuple(range(x.rank)) if named is None else axes_in(named, x.rank)
    how = _interpolation(attributes)
    part = _known_region(roi, 2 * len(numbers)) if how.coordinates == CROP else None
    if sizes is None or sizes.shape == (0,):
        return by_scales(x, _known_scales(scales), numbers, call.shape(), how, part)
    wanted = known_sizes(sizes)
    if wanted is None or (scales is not None and scales.shape != (0,)):
        raise NotLowered("the sizes are known at run time only")
    policy = attributes.get("keep_aspect_ratio_policy", STRETCH)
    return by_sizes(x, wanted, numbers, call.shape(), how, policy, part)


def _known_region(roi: Expression | None, count: int) -> Array | None:
    if roi is None or roi.shape == (0,):
        return None
    found = kernels.floats_of(roi)
    if found is None or len(found) != count:
        raise NotLowered("the region is computed at run time")
    return np.array(found)


def _known_scales(scales: Expression | None) -> list[float]:
    found = kernels.floats_of(scales)
    if not found:
        raise NotLowered("the scales are known at run time only")
    return found


# ---------------------------------------------------------------- gradient


@v18.gradient
def gradient(
    g: Gradient,
    x: Value,
    roi: Value | None = None,
    scales: Value | None = None,
    sizes: Value | None = None,
    /,
    **attributes: Any,
) -> tuple[Value, None, None, None]:
    return Resizing.of(g, x, (roi, scales, sizes), attributes).gradient(), None, None, None


# ---------------------------------------------------------------- adapters


def _is_empty(value: Value | None) -> bool:
    return value is None or (isinstance(value.type, TensorType) and value.type.size == 0)


def _numbers(scales: Value) -> list[float] | None:
    known = scales.type.known if isinstance(scales.type, TensorType) else None
    numbers = [s for s in known or () if isinstance(s, float)]
    return numbers if known is not None and len(numbers) == len(known) else None


@v10.downgrade
def upsample(b: Builder, x: Value, scales: Value, /, *, mode: str) -> Value:
    numbers = _numbers(scales)
    if numbers is None or any(s < 1 for s in numbers):
        raise Unconvertible("Upsample:9 only enlarges, and a scale is unknown or below 1")
    with previous_opset(b):
        return b.Upsample(x, scales, mode=mode)


@v11.upgrade
def state_coordinates(b: Builder, x: Value, scales: Value, /, *, mode: str) -> Value:
    rounding = "floor"
    if mode == "nearest":
        numbers = _numbers(scales)
        if numbers is None:
            raise Unconvertible("Resize:10 rounds by whether an axis shrinks, and `scales` is unknown")
        if any(s < 1 for s in numbers):
            rounding = "ceil"
            if any(s > 1 for s in numbers):
                raise Unconvertible(
                    "Resize:10 rounds up along axes that shrink, down along others; this call has both"
                )
    return b.Resize(
        x,
        b.initializer("roi", np.zeros(0, np.float32)),
        scales,
        mode=mode,
        nearest_mode=rounding,
        coordinate_transformation_mode="asymmetric",
    )


@v11.downgrade
def drop_coordinates(
    b: Builder, x: Value, roi: Value, scales: Value, sizes: Value | None = None, /, **attributes: Any
) -> Value:
    mode, rounding = attributes["mode"], attributes["nearest_mode"]
    if (
        attributes["coordinate_transformation_mode"] != "asymmetric"
        or mode == "cubic"
        or not _is_empty(sizes)
    ):
        raise Unconvertible(
            "Resize:10 has `scales`, the modes nearest and linear, and asymmetric coordinates"
        )
    if mode == "nearest":
        numbers = _numbers(scales)
        grows = numbers is not None and all(s >= 1 for s in numbers) and rounding == "floor"
        shrinks = numbers is not None and all(s <= 1 for s in numbers) and rounding == "ceil"
        if not (grows or shrinks):
            raise Unconvertible("Resize:10 rounds up along axes that shrink, and down along others")
    return b.Resize(x, scales, mode=mode)


@v13.upgrade
def drop_empty_inputs(
    b: Builder, x: Value, roi: Value, scales: Value, sizes: Value | None = None, /, **attributes: Any
) -> Value:
    if sizes is None:
        return b.Resize(x, None if _is_empty(roi) else roi, scales, **attributes)
    return b.Resize(x, None if _is_empty(roi) else roi, None, sizes, **attributes)


@v13.downgrade
def add_empty_inputs(
    b: Builder,
    x: Value,
    roi: Value | None = None,
    scales: Value | None = None,
    sizes: Value | None = None,
    /,
    **attributes: Any,
) -> Value:
    if isinstance(x.type, TensorType) and x.type.signature in BFLOAT16:
        raise Unconvertible("Resize:11 does not admit bfloat16")
    none = b.initializer("none", np.zeros(0, np.float32))
    return b.Resize(x, none if roi is None else roi, none if scales is None else scales, sizes, **attributes)


@v18.upgrade
def rename_for_nn(b: Builder, *inputs: Value | None, **attributes: Any) -> Value:
    """Half an index more, rounded down, equals rounding with ties up."""
    if attributes["coordinate_transformation_mode"] == FOR_NN:
        if attributes["mode"] != "nearest" or attributes["nearest_mode"] != "floor":
            raise Unconvertible(f"Resize:18 has no {FOR_NN}, but for nearest rounded down")
        renamed = {"coordinate_transformation_mode": "half_pixel", "nearest_mode": "round_prefer_ceil"}
        attributes = {**attributes, **renamed}
    return b.op("Resize", *inputs, **attributes)
