"""Upsample: an enlarged image, stored in blocks of channels."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from sabir.base import InferenceError
from sabir.ir import Builder, TensorType, Value
from sabir.ir import mul as times
from sabir.opsets.families.resampling.resampling import Interpolation, ResampledAxis, mode, resample
from sabir.opsets.families.windows import blocked_channels as blocks
from sabir.opsets.typing import Array
from sabir.schema import Attribute, Example, Operator, one_of

upsample = Operator(
    "Upsample",
    domain=blocks.DOMAIN,
    summary="The image with `scale` times as many rows and columns.",
    body_opset=blocks.BODY_OPSET,
    lacks=blocks.LACKS,
)

v1 = blocks.declare(
    upsample,
    "The enlarged image, (N, C, scales[2] * H, scales[3] * W)",
    [
        Attribute(
            "scales", "ints", "1, 1, and the factors of the height and the width; they must be given.",
        ),
        mode("nearest", "linear"),
        Attribute(
            "coordinate_transformation_mode",
            "string",
            "The coordinate in the image of an index of the result; `nearest` admits `asymmetric` alone, and "
            "takes the element before.",
            default="asymmetric",
            values=one_of("asymmetric", "align_corners", "half_pixel"),
        ),
    ],
)  # fmt: skip


def _factors(scales: Sequence[int] | None, mode: str, coordinates: str) -> tuple[int, int]:
    """Return the factors of height and width; raises InferenceError for others than the operator admits."""
    found = tuple(scales or ())
    if len(found) != blocks.RANK or found[:2] != (1, 1) or min(found) < 1:
        raise InferenceError(f"`scales` are {list(found)}, and must be 1, 1, and two factors of 1 or more")
    if mode == "nearest" and coordinates != "asymmetric":
        raise InferenceError(f"the mode nearest admits asymmetric coordinates, not {coordinates}")
    return found[2], found[3]


v1.absent("lower", blocks.NOT_LOWERED)


@v1.infer
def infer(
    x: TensorType, /, *, scales: Sequence[int] | None, mode: str, coordinate_transformation_mode: str
) -> TensorType:
    rows, columns = _factors(scales, mode, coordinate_transformation_mode)
    blocks.check_image("X", x)
    n, channels, height, width = x.shape or (None,) * blocks.RANK
    return TensorType(x.element, (n, channels, times(height, rows), times(width, columns)))


@v1.evaluate
def evaluate(
    x: Array, /, *, scales: Sequence[int] | None, mode: str, coordinate_transformation_mode: str
) -> Array:
    how = Interpolation(mode, coordinate_transformation_mode, "floor")
    factors = 1, 1, *_factors(scales, mode, coordinate_transformation_mode)

    def enlarged(image: Array) -> Array:
        sides = zip(image.shape, factors, strict=True)
        return resample(image, [ResampledAxis(n, n * s, Fraction(s)) for n, s in sides], how)

    return blocks.evaluate_unblocked(x, enlarged)


@v1.body
def body(
    b: Builder, x: Value, /, *, scales: Sequence[int] | None, mode: str, coordinate_transformation_mode: str
) -> Value:
    factors = 1, 1, *_factors(scales, mode, coordinate_transformation_mode)
    sizes = b.initializer("scales", np.array(factors, np.float32))

    def enlarged(image: Value) -> Value:
        return b.Resize(
            image, None, sizes, mode=mode, coordinate_transformation_mode=coordinate_transformation_mode,
            nearest_mode="floor",
        )  # fmt: skip

    return blocks.emit_on_unblocked(b, x, enlarged)


@upsample.examples
def examples() -> Iterator[Example]:
    pixels = np.array([[0, 2, 4, 6, 8, 10, 12, 14], [4, 4, 0, 0, 16, 2, 4, 6]], np.float32)
    x = pixels.reshape(1, 8, 1, 2)  # two pixels of 8 channels, one beside the other
    twice = np.concatenate([pixels.repeat(2, 0)] * 2).reshape(1, 8, 2, 4)
    yield Example(1, x, scales=[1, 1, 2, 2], expect=[twice])
    between = np.array([pixels[0], pixels.mean(0), pixels[1], pixels[1]]).reshape(1, 8, 1, 4)
    yield Example(1, x, scales=[1, 1, 1, 2], mode="linear", expect=[between])
    near = np.array([3 * pixels[0] + pixels[1], pixels[0] + 3 * pixels[1]]) / 4
    centred = np.array([pixels[0], *near, pixels[1]]).reshape(1, 8, 1, 4)
    call: dict[str, Any] = {"scales": [1, 1, 1, 2], "mode": "linear"}
    yield Example(1, x, **call, coordinate_transformation_mode="half_pixel", expect=[centred])
    thirds = np.array([pixels[0] + (pixels[1] - pixels[0]) * i / 3 for i in range(4)]).reshape(1, 8, 1, 4)
    yield Example(
        1, x, **call, coordinate_transformation_mode="align_corners", expect=[thirds], tolerance=1e-5
    )
    yield Example(1, np.zeros((0, 24, 2, 2), np.float32), scales=[1, 1, 3, 1])
