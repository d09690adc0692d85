"""Resize: a tensor sampled anew, by scales or to sizes."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from sabir.base import InferenceError
from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.axes import ints
from sabir.opsets.families.resampling import CROP, OUTWARD, Manner, resample
from sabir.opsets.families.resizing import STRETCH, of_scales, of_sizes, scaled_axes, sized_axes
from sabir.opsets.families.shapes import axes_in
from sabir.opsets.typing import Array, Rule
from sabir.schema import (
    BFLOAT16,
    CLASSIC,
    FLOATS,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    Unconvertible,
)

resize = Operator(
    "Resize",
    summary="`X` at other places, `floor(scale * size)` or a given number along each axis: the element"
    " nearest to a coordinate, or a weighted sum of those around it.",
)

T = Constraint("T", CLASSIC)
_SCALES = "New over old length, one for each axis (of `axes`); above 0."

v10 = resize.first(
    10,
    inputs=[
        Input("X", T, "A tensor of any shape.", differentiable=True),
        Input("scales", "tensor(float)", _SCALES, differentiable=False),
    ],
    outputs=[Output("Y", T, "The resized tensor.", differentiable=True)],
    attributes=[
        Attribute("mode", "string", "nearest, linear or cubic (from opset 11 on).", default="nearest")
    ],
)
T1 = Constraint("T1", CLASSIC)
T2 = Constraint("T2", FLOATS)
_ROI = "Starts, then ends, of the part to read on each axis, 0 and 1 being the first and the last place."
_SIZES = "The new lengths, in place of `scales`."
v11 = v10.evolve(
    11,
    "`sizes` in place of `scales`, cubic interpolation, and attributes that say where the new places lie.",
    inputs=[
        Input("X", T1, "A tensor of any shape.", differentiable=True),
        Input("roi", T2, _ROI, differentiable=False),
        Input("scales", "tensor(float)", _SCALES, differentiable=False),
        Input("sizes", "tensor(int64)", _SIZES, optional=True, differentiable=False),
    ],
    outputs=[Output("Y", T1, "The resized tensor.", differentiable=True)],
    add=[
        Attribute(
            "extrapolation_value",
            "float",
            "What tf_crop_and_resize finds outside the tensor.",
            default=0.0,
        ),
        Attribute("exclude_outside", "int", "1: places beyond the ends weigh nothing.", default=0),
        Attribute(
            "nearest_mode",
            "string",
            "How nearest rounds: round_prefer_floor, round_prefer_ceil, floor or ceil.",
            default="round_prefer_floor",
        ),
        Attribute(
            "coordinate_transformation_mode",
            "string",
            "Where new places lie: half_pixel, half_pixel_symmetric, pytorch_half_pixel, align_corners,"
            " asymmetric or tf_crop_and_resize.",
            default="half_pixel",
        ),
        Attribute("cubic_coeff_a", "float", "The slope of the cubic kernel at distance 1.", default=-0.75),
    ],
)
v13 = v11.evolve(
    13,
    "`roi` and `scales` may be left out.",
    inputs=[
        Input("X", T1, "A tensor of any shape.", differentiable=True),
        Input("roi", T2, f"{_ROI} Only tf_crop_and_resize reads it.", optional=True, differentiable=False),
        Input("scales", "tensor(float)", _SCALES, optional=True, differentiable=False),
        Input("sizes", "tensor(int64)", _SIZES, optional=True, differentiable=False),
    ],
    widen={"T1": BFLOAT16},
)
v18 = v13.extend(
    18,
    "`axes` to resize, antialiasing, and sizes that keep the aspect ratio; tf_half_pixel_for_nn is gone.",
    attributes=[
        Attribute(
            "keep_aspect_ratio_policy",
            "string",
            "stretch, or one scale for all axes, by which none gets larger (not_larger) or smaller"
            " (not_smaller) than in `sizes`.",
            default=STRETCH,
        ),
        Attribute("axes", "ints", "The axes to resize, from the back if negative; all of them when absent."),
        Attribute("antialias", "int", "1: linear and cubic kernels are stretched to shrink.", default=0),
    ],
)
v19 = v18.restate(19, "The coordinates half_pixel_symmetric.")

_CLASSIC = frozenset({"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", CROP})
_FOR_NN, _SYMMETRIC = "tf_half_pixel_for_nn", "half_pixel_symmetric"

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
    axes: Sequence[int] | None = None,
    keep_aspect_ratio_policy: str = STRETCH,
) -> TensorType:
    scales, sizes = (None if t is None or t.size == 0 else t for t in (scales, sizes))
    if scales is None and sizes is None and x.shape:
        raise InferenceError("either `scales` or `sizes` is needed")
    if sizes is not None:
        return of_sizes(x, sizes, axes, keep_aspect_ratio_policy)
    return of_scales(x, scales, axes) if scales is not None else x


# ---------------------------------------------------------------- values


@v10.evaluate
def evaluate_scales(x: Array, scales: Array, /, *, mode: str) -> Array:
    if mode == "cubic":
        raise ValueError("Resize-10 knows nearest and linear")
    axes = scaled_axes(x.shape, tuple(range(x.ndim)), scales, None)
    return resample(x, axes, Manner(mode, "asymmetric", OUTWARD))


def _evaluated(allowed: frozenset[str]) -> Rule:
    """Return the rule of a version by the coordinates that it knows."""

    def evaluate(
        x: Array,
        roi: Array | None = None,
        scales: Array | None = None,
        sizes: Array | None = None,
        /,
        **attributes: Any,
    ) -> Array:
        return _resized(x, roi, scales, sizes, attributes, allowed)

    return evaluate


v11.evaluate(_evaluated(_CLASSIC | {_FOR_NN}))
v18.evaluate(_evaluated(_CLASSIC))
v19.evaluate(_evaluated(_CLASSIC | {_SYMMETRIC}))


def _resized(
    x: Array,
    roi: Array | None,
    scales: Array | None,
    sizes: Array | None,
    attributes: Mapping[str, Any],
    allowed: frozenset[str],
) -> Array:
    transformation = attributes["coordinate_transformation_mode"]
    if transformation not in allowed:
        raise ValueError(f"`coordinate_transformation_mode` {transformation!r} is none of {sorted(allowed)}")
    named = attributes.get("axes")
    places = tuple(range(x.ndim)) if named is None else axes_in(named, x.ndim)
    part = roi if transformation == CROP and roi is not None and roi.size else None
    if part is not None and part.shape != (2 * len(places),):
        raise ValueError(f"`roi` {part.tolist()} must be a start and an end for each of {len(places)} axes")
    scales, sizes = (None if a is None or a.size == 0 else a for a in (scales, sizes))
    if scales is not None and sizes is None:
        axes = scaled_axes(x.shape, places, scales, part)
    elif sizes is not None and scales is None:
        axes = sized_axes(x.shape, places, sizes, part, attributes.get("keep_aspect_ratio_policy", STRETCH))
    elif places:
        raise ValueError("either `scales` or `sizes` is needed, and not both")
    else:
        axes = []
    return resample(x, axes, _manner(attributes))


def _manner(attributes: Mapping[str, Any]) -> Manner:
    antialias = bool(attributes.get("antialias"))
    if antialias and attributes["mode"] == "nearest":
        raise ValueError("`antialias` goes with the modes linear and cubic")
    return Manner(
        attributes["mode"],
        attributes["coordinate_transformation_mode"],
        attributes["nearest_mode"],
        attributes["cubic_coeff_a"],
        antialias,
        bool(attributes["exclude_outside"]),
        attributes["extrapolation_value"],
    )


# ---------------------------------------------------------------- adapters


def _is_empty(value: Value | None) -> bool:
    return value is None or (isinstance(value.type, TensorType) and value.type.size == 0)


def _numbers(scales: Value) -> list[float] | None:
    known = scales.type.known if isinstance(scales.type, TensorType) else None
    numbers = [s for s in known or () if isinstance(s, float)]
    return numbers if known is not None and len(numbers) == len(known) else None


@v11.upgrade
def say_how_it_was(b: Builder, x: Value, scales: Value, /, *, mode: str) -> Value:
    rounding = "floor"
    if mode == "nearest":
        numbers = _numbers(scales)
        if numbers is None:
            raise Unconvertible("Resize-10 rounds by whether an axis shrinks, and `scales` is unknown")
        if any(s < 1 for s in numbers):
            rounding = "ceil"
            if any(s > 1 for s in numbers):
                raise Unconvertible(
                    "Resize-10 rounds up along axes that shrink, down along others; here are both"
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
def only_as_it_was(
    b: Builder, x: Value, roi: Value, scales: Value, sizes: Value | None = None, /, **attributes: Any
) -> Value:
    mode, rounding = attributes["mode"], attributes["nearest_mode"]
    if (
        attributes["coordinate_transformation_mode"] != "asymmetric"
        or mode == "cubic"
        or not _is_empty(sizes)
    ):
        raise Unconvertible(
            "Resize-10 takes `scales`, and knows nearest and linear at asymmetric coordinates"
        )
    if mode == "nearest":
        numbers = _numbers(scales)
        grows = numbers is not None and all(s >= 1 for s in numbers) and rounding == "floor"
        shrinks = numbers is not None and all(s <= 1 for s in numbers) and rounding == "ceil"
        if not (grows or shrinks):
            raise Unconvertible("Resize-10 rounds up along axes that shrink, and down along others")
    return b.Resize(x, scales, mode=mode)


@v13.upgrade
def leave_out_the_empty(
    b: Builder, x: Value, roi: Value, scales: Value, sizes: Value | None = None, /, **attributes: Any
) -> Value:
    if sizes is None:
        return b.Resize(x, None if _is_empty(roi) else roi, scales, **attributes)
    return b.Resize(x, None if _is_empty(roi) else roi, None, sizes, **attributes)


@v13.downgrade
def put_in_the_empty(
    b: Builder,
    x: Value,
    roi: Value | None = None,
    scales: Value | None = None,
    sizes: Value | None = None,
    /,
    **attributes: Any,
) -> Value:
    if isinstance(x.type, TensorType) and x.type.signature in BFLOAT16:
        raise Unconvertible("Resize-11 does not admit bfloat16")
    none = b.initializer("none", np.zeros(0, np.float32))
    return b.Resize(x, none if roi is None else roi, none if scales is None else scales, sizes, **attributes)


@v18.upgrade
def another_name_for_nn(b: Builder, *inputs: Value | None, **attributes: Any) -> Value:
    """Half a place more, rounded down, is the same as rounding half up."""
    if attributes["coordinate_transformation_mode"] == _FOR_NN:
        if attributes["mode"] != "nearest" or attributes["nearest_mode"] != "floor":
            raise Unconvertible(f"Resize-18 has no {_FOR_NN}, but for nearest rounded down")
        renamed = {"coordinate_transformation_mode": "half_pixel", "nearest_mode": "round_prefer_ceil"}
        attributes = {**attributes, **renamed}
    return b.Resize(*inputs, **attributes)


@v19.downgrade
def without_symmetry(
    b: Builder, *inputs: Value | None, axes: Sequence[int] | None, **attributes: Any
) -> Value:
    if attributes["coordinate_transformation_mode"] == _SYMMETRIC:
        raise Unconvertible(f"Resize-18 has no {_SYMMETRIC}")
    named = None if axes is None else ints("axes", axes)
    return b.Resize(*inputs, axes=named, **attributes)


@resize.examples
def examples() -> Iterator[Example]:
    f = np.float32
    none = np.zeros(0, f)
    x = np.array([[1, 2, 3, 4], [5, 6, 7, 8]], f)
    yield Example(10, x, np.array([1, 2], f), expect=[x.repeat(2, axis=1)])
    yield Example(10, x, np.array([0.6, 0.6], f), expect=[np.array([[1, 3]], f)])  # the standard's test then
    yield Example(10, x, np.array([0.6, 0.6], f), mode="linear", expect=[np.array([[1, 8 / 3]], f)])
    yield Example(10, x, np.array([1, 0.5], f), mode="linear", expect=[x[:, ::2]])
    for opset in (11, 13, 18, 19):
        grown = np.array(
            [[1, 1.25, 1.75, 2], [1.5, 1.75, 2.25, 2.5], [2.5, 2.75, 3.25, 3.5], [3, 3.25, 3.75, 4]], f
        )
        yield Example(opset, grown[::3, ::3], none, np.array([2, 2], f), mode="linear", expect=[grown])
        yield Example(
            opset,
            x,
            none,
            none,
            np.array([2, 2]),
            mode="linear",
            expect=[np.array([[1.5, 3.5], [5.5, 7.5]], f)],
        )
        yield Example(opset, x, none, np.array([1, 0.5], f), nearest_mode="ceil",
                      coordinate_transformation_mode="asymmetric", expect=[x[:, ::2]])  # fmt: skip
    yield from _examples_of_coordinates(x[0])
    yield from _examples_of_kernels(x[0])
    yield from _examples_of_sizes(x)


def _placed(
    opset: int, coordinates: str, expected: list[float], *inputs: Array | None, **more: Any
) -> Example:
    more = {"mode": "linear", "coordinate_transformation_mode": coordinates, **more}
    return Example(opset, *inputs, expect=[np.array(expected, np.float32)], **more)


def _examples_of_coordinates(x: Array) -> Iterator[Example]:
    """Lines through 1, 2, 3, 4 show the coordinate itself, plus 1."""
    f, none = np.float32, np.zeros(0, np.float32)
    two = np.array([2], f)
    cases: list[tuple[str, list[float]]] = [
        ("half_pixel", [1, 1.25, 1.75, 2.25, 2.75, 3.25, 3.75, 4]),
        ("asymmetric", [1, 1.5, 2, 2.5, 3, 3.5, 4, 4]),
        ("align_corners", [1 + i * 3 / 7 for i in range(8)]),
        ("pytorch_half_pixel", [1, 1.25, 1.75, 2.25, 2.75, 3.25, 3.75, 4]),
    ]
    for name, line in cases:
        for opset in (11, 13, 18, 19):
            yield _placed(opset, name, line, x, none, two)
    for_nn = "tf_half_pixel_for_nn"
    for opset in (11, 13):
        yield _placed(opset, for_nn, [1.25, 1.75, 2.25, 2.75, 3.25, 3.75, 4, 4], x, none, two)
        yield _placed(
            opset, for_nn, [1, 1, 2, 2, 3, 3, 4, 4], x, none, two, mode="nearest", nearest_mode="floor"
        )
    for name, first in (("half_pixel", 2.5), ("pytorch_half_pixel", 1), ("align_corners", 1)):
        yield _placed(13, name, [first], x, None, None, np.array([1]))
    # floor(4 * 0.8) is 3: what the scale asks for, 3.2, says where the corners are, and where the middle is
    scale = np.array([0.8], f)
    yield _placed(13, "align_corners", [1, 1 + 3 / 2.2, 1 + 6 / 2.2], x, None, scale)
    yield _placed(19, "half_pixel_symmetric", [1.25, 2.5, 3.75], x, None, scale)
    part = np.array([0.5, 1.5], f)
    for opset in (11, 18):
        yield _placed(opset, CROP, [2.5, 4, 9], x, part, none, np.array([3]), extrapolation_value=9.0)
        yield _placed(opset, CROP, [4], x, part, none, np.array([1]))
    roundings = {"round_prefer_floor": 0, "round_prefer_ceil": 1, "floor": 0, "ceil": 1}
    for name, up in roundings.items():  # coordinates 0.5 and 2.5
        yield Example(11, x, none, np.array([0.5], f), nearest_mode=name, expect=[x[[up, 2 + up]]])


def _examples_of_kernels(x: Array) -> Iterator[Example]:
    """Numbers by onnxruntime 1.31."""
    f = np.float32
    two = np.array([2], f)
    cubic = [0.89453125, 1.19140625, 1.66796875, 2.296875, 2.703125, 3.33203125, 3.80859375, 4.10546875]
    inner = [0.91176468, 1.16788328, 1.70992362, 2.25, 2.75, 3.29007626, 3.83211684, 4.08823490]
    for opset in (11, 13, 18, 19):
        inputs = (x, np.zeros(0, f), two)
        yield Example(opset, *inputs, mode="cubic", expect=[np.array(cubic, f)])
        yield Example(opset, *inputs, mode="cubic", exclude_outside=1, cubic_coeff_a=-0.5,
                      expect=[np.array(inner, f)])  # fmt: skip
    shrunk: list[tuple[str, int, list[float]]] = [
        ("cubic", 0, [1.490234375, 3.509765625]), ("linear", 0, [1.625, 3.375]),
        ("linear", 1, [1.71428585, 3.28571463]),
    ]  # fmt: skip
    for mode, outside, result in shrunk:
        for opset in (18, 19):
            yield Example(opset, x, None, np.array([0.5], f), mode=mode, antialias=1, exclude_outside=outside,
                          expect=[np.array(result, f)])  # fmt: skip


def _examples_of_sizes(x: Array) -> Iterator[Example]:
    f = np.float32
    for policy, shape in (("not_larger", (2, 4)), ("not_smaller", (4, 8)), ("stretch", (4, 4))):
        grown = x.repeat(shape[0] // 2, axis=0).repeat(shape[1] // 4, axis=1)
        yield Example(18, x, None, None, np.array([4, 4]), keep_aspect_ratio_policy=policy, expect=[grown])
    yield Example(18, x, None, np.array([2], f), axes=[-1], expect=[x.repeat(2, axis=1)])
    yield Example(18, x, None, None, np.array([4, 4]), axes=[1, 0], expect=[x.repeat(2, axis=0)])
    words = np.array(["a", "b"], object)
    yield Example(13, words, None, np.array([2], f), expect=[words.repeat(2)])
    for kind in (np.int8, np.uint8, np.float16, ml_dtypes.bfloat16, np.float64, np.int64):
        small = np.array([0, 120, 10], kind)
        half = np.array([0, 60, 120, 65, 10], kind)
        yield Example(13, small, None, None, np.array([5]), mode="linear",
                      coordinate_transformation_mode="align_corners", expect=[half])  # fmt: skip
    yield Example(13, np.array([255, 0], np.uint8), None, np.array([2], f), mode="cubic",
                  expect=[np.array([255, 197, 58, 0], np.uint8)])  # fmt: skip
    yield Example(13, np.array(7.0), None, np.zeros(0, f), expect=[np.array(7.0)])
    yield Example(13, np.zeros((0, 2)), None, np.array([2, 2], f), expect=[np.zeros((0, 4))])
