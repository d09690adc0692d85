"""The examples of Resize."""

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from sabir.opsets.families.resampling.resampling import CROP
from sabir.opsets.onnx.resize._history import resize
from sabir.opsets.typing import Array
from sabir.schema import Example


@resize.examples
def examples() -> Iterator[Example]:
    f = np.float32
    none = np.zeros(0, f)
    x = np.array([[1, 2, 3, 4], [5, 6, 7, 8]], f)
    yield Example(10, x, [1, 2], expect=[x.repeat(2, axis=1)])
    yield Example(10, x, [0.6, 0.6], expect=[[[1, 3]]])  # the standard's test of that version
    yield Example(10, x, [0.6, 0.6], mode="linear", expect=[[[1, 8 / 3]]])
    yield Example(10, x, [1, 0.5], mode="linear", expect=[x[:, ::2]])
    for opset in (11, 13, 18, 19):
        grown = np.array(
            [[1, 1.25, 1.75, 2], [1.5, 1.75, 2.25, 2.5], [2.5, 2.75, 3.25, 3.5], [3, 3.25, 3.75, 4]], f
        )
        yield Example(opset, grown[::3, ::3], none, [2, 2], mode="linear", expect=[grown])
        yield Example(opset, x, none, none, [2, 2], mode="linear", expect=[[[1.5, 3.5], [5.5, 7.5]]])
        up: dict[str, Any] = {"nearest_mode": "ceil", "coordinate_transformation_mode": "asymmetric"}
        yield Example(opset, x, none, [1, 0.5], **up, expect=[x[:, ::2]])
    yield from _examples_of_coordinates(x[0])
    yield from _examples_of_kernels(x[0])
    yield from _examples_of_sizes(x)


def _linear(opset: int, coordinates: str, expected: list[float], *inputs: Any, **more: Any) -> Example:
    more = {"mode": "linear", "coordinate_transformation_mode": coordinates, **more}
    return Example(opset, *inputs, expect=[np.array(expected, np.float32)], **more)


def _examples_of_coordinates(x: Array) -> Iterator[Example]:
    """Linear interpolation of 1, 2, 3, 4 returns the coordinate plus 1."""
    none, two = np.zeros(0, np.float32), [2]
    cases: list[tuple[str, list[float]]] = [
        ("half_pixel", [1, 1.25, 1.75, 2.25, 2.75, 3.25, 3.75, 4]),
        ("asymmetric", [1, 1.5, 2, 2.5, 3, 3.5, 4, 4]),
        ("align_corners", [1 + i * 3 / 7 for i in range(8)]),
        ("pytorch_half_pixel", [1, 1.25, 1.75, 2.25, 2.75, 3.25, 3.75, 4]),
    ]
    for name, line in cases:
        for opset in (11, 13, 18, 19):
            yield _linear(opset, name, line, x, none, two)
    for_nn = "tf_half_pixel_for_nn"
    for opset in (11, 13):
        yield _linear(opset, for_nn, [1.25, 1.75, 2.25, 2.75, 3.25, 3.75, 4, 4], x, none, two)
        floor: dict[str, Any] = {"mode": "nearest", "nearest_mode": "floor"}
        yield _linear(opset, for_nn, [1, 1, 2, 2, 3, 3, 4, 4], x, none, two, **floor)
    for name, first in (("half_pixel", 2.5), ("pytorch_half_pixel", 1), ("align_corners", 1)):
        yield _linear(13, name, [first], x, None, None, [1])
    # floor(4 * 0.8) is 3; the unrounded size, 3.2, determines the corners and the centre
    scale = [0.8]
    yield _linear(13, "align_corners", [1, 1 + 3 / 2.2, 1 + 6 / 2.2], x, None, scale)
    yield _linear(19, "half_pixel_symmetric", [1.25, 2.5, 3.75], x, None, scale)
    part = [0.5, 1.5]
    for opset in (11, 18):
        yield _linear(opset, CROP, [2.5, 4, 9], x, part, none, [3], extrapolation_value=9.0)
        yield _linear(opset, CROP, [4], x, part, none, [1])
    roundings = {"round_prefer_floor": 0, "round_prefer_ceil": 1, "floor": 0, "ceil": 1}
    for name, up in roundings.items():  # coordinates 0.5 and 2.5
        yield Example(11, x, none, [0.5], nearest_mode=name, expect=[x[[up, 2 + up]]])


def _examples_of_kernels(x: Array) -> Iterator[Example]:
    """Numbers from onnxruntime 1.31."""
    cubic = [0.89453125, 1.19140625, 1.66796875, 2.296875, 2.703125, 3.33203125, 3.80859375, 4.10546875]
    inner = [0.91176468, 1.16788328, 1.70992362, 2.25, 2.75, 3.29007626, 3.83211684, 4.08823490]
    for opset in (11, 13, 18, 19):
        inputs = (x, np.zeros(0, np.float32), [2])
        yield Example(opset, *inputs, mode="cubic", expect=[cubic])
        options: dict[str, Any] = {"exclude_outside": 1, "cubic_coeff_a": -0.5}
        yield Example(opset, *inputs, mode="cubic", **options, expect=[inner])
    shrunk: list[tuple[str, int, list[float]]] = [
        ("cubic", 0, [1.490234375, 3.509765625]),
        ("linear", 0, [1.625, 3.375]),
        ("linear", 1, [1.71428585, 3.28571463]),
    ]
    for mode, outside, result in shrunk:
        for opset in (18, 19):
            options: dict[str, Any] = {"mode": mode, "antialias": 1, "exclude_outside": outside}
            yield Example(opset, x, None, [0.5], **options, expect=[result])


def _examples_of_sizes(x: Array) -> Iterator[Example]:
    f = np.float32
    for policy, shape in (("not_larger", (2, 4)), ("not_smaller", (4, 8)), ("stretch", (4, 4))):
        grown = x.repeat(shape[0] // 2, axis=0).repeat(shape[1] // 4, axis=1)
        yield Example(18, x, None, None, [4, 4], keep_aspect_ratio_policy=policy, expect=[grown])
    yield Example(18, x, None, [2], axes=[-1], expect=[x.repeat(2, axis=1)])
    yield Example(18, x, None, None, [4, 4], axes=[1, 0], expect=[x.repeat(2, axis=0)])
    words = np.array(["a", "b"], object)
    yield Example(13, words, None, [2], expect=[words.repeat(2)])
    line: dict[str, Any] = {"mode": "linear", "coordinate_transformation_mode": "align_corners"}
    for dtype in (np.int8, np.uint8, np.float16, ml_dtypes.bfloat16, np.float64, np.int64):
        y = [0, 60, 120, 65, 10]
        yield Example(13, np.array([0, 120, 10], dtype), None, None, [5], **line, expect=[y])
    yield Example(13, np.array([255, 0], np.uint8), None, [2], mode="cubic", expect=[[255, 197, 58, 0]])
    yield Example(13, np.array(7.0), None, np.zeros(0, f), expect=[7.0])
    yield Example(13, np.zeros((0, 2)), None, [2, 2], expect=[np.zeros((0, 4))])
