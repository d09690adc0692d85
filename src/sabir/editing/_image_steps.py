"""The small model that makes the input of a network from the pixels of an image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np

from sabir.base import SchemaError, UnsupportedError, quote
from sabir.elements import FLOAT
from sabir.ir import Builder, FreshNames, TensorType, tensor_type

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sabir.ir import Array, Dim, Value

Layout: TypeAlias = Literal["NHWC", "NCHW", "HWC", "CHW"]
PixelFormat: TypeAlias = Literal["RGB", "BGR", "Grayscale"]
LAYOUTS: tuple[Layout, ...] = get_args(Layout)
PIXEL_FORMATS: tuple[PixelFormat, ...] = get_args(PixelFormat)
_FIRST_OPSET_WITH_ANTIALIAS, _FIRST_OPSET_WITH_DECODER = 18, 20


@dataclass(frozen=True)
class ImageSteps:
    """What is done with pixels before a network: decoded, laid out, resized, scaled, normalized.

    `layout` is that of the pixels, `network_layout` that of the network's input. `size` is the height and
    width that any image is resized to. A value becomes `(value * scale - mean) / std`, with a mean and a
    standard deviation for each channel. With `decode` the input is a file in memory.
    """

    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    scale: float = 1 / 255
    size: tuple[int, int] | None = None
    layout: Layout = "NHWC"
    network_layout: Layout = "NCHW"
    decode: bool = False
    pixel_format: PixelFormat = "RGB"

    def __post_init__(self) -> None:
        """Raise UnsupportedError for an unknown layout or pixel format, or numbers out of range."""
        for name, value, known in (
            ("layout", self.layout, LAYOUTS),
            ("network_layout", self.network_layout, LAYOUTS),
            ("pixel_format", self.pixel_format, PIXEL_FORMATS),
        ):
            if value not in known:
                raise UnsupportedError(f"`{name}` is one of {', '.join(known)}, and not {quote(value)}")
        if any(side < 1 for side in self.size or ()):
            raise UnsupportedError(f"`size` is a height and a width of 1 or more, and not {self.size}")
        if any(not deviation for deviation in self.std):
            raise UnsupportedError("`std` has a 0, and values are divided by it")

    @property
    def opset(self) -> int:
        """The oldest opset that has the operators of these steps."""
        if self.decode:
            return _FIRST_OPSET_WITH_DECODER
        return _FIRST_OPSET_WITH_ANTIALIAS if self.size else 13

    def build(
        self, wanted: TensorType, name: str, names: FreshNames, dims: FreshNames, opset: int
    ) -> Builder:
        """Return a builder of the steps to a tensor of type `wanted`: one input and one output.

        `names` and `dims` hand out names of values and dimension variables. Raises SchemaError where the type
        is not that of an image, or does not fit the steps.
        """
        sizes = self._sizes(wanted)
        self._check_channels(sizes["C"])
        b = Builder(opset, names=names)
        pixels = self._decoded(b, sizes) if self.decode else self._input(b, sizes, dims)
        pixels.name = name
        layout: str = self.layout
        value = pixels
        if self.decode:
            value, layout = b.ImageDecoder(pixels, pixel_format=self.pixel_format), "HWC"
        value = b.Cast(value, to="float")
        if "N" not in layout:
            value, layout = b.Unsqueeze(value, [0]), f"N{layout}"
        value = _transposed(b, value, layout, "NCHW")
        size = self._target(sizes)
        if size is not None:
            value = b.Resize(
                value, None, None, list(size),
                axes=[2, 3], mode="linear", antialias=1, coordinate_transformation_mode="half_pixel",
                exclude_outside=1,  # as Pillow and torchvision do at the edges
            )  # fmt: skip
        value = self._normalized(b, value)
        network: str = self.network_layout
        value = _transposed(b, value, "NCHW", network if "N" in network else f"N{network}")
        if "N" not in network:
            value = b.Squeeze(value, [0])
        if wanted.element is not FLOAT:
            value = b.Cast(value, to=wanted.element.name)
        b.output(value, names.fresh("normalized"))
        return b

    def _sizes(self, wanted: TensorType) -> Mapping[str, Dim]:
        """Return the sizes of the network's input by the letters of its layout."""
        letters = self.network_layout
        if wanted.element.kind != "float":
            raise SchemaError(f"the input is {wanted}, and normalized pixels are floats")
        if wanted.shape is not None and len(wanted.shape) != len(letters):
            raise SchemaError(f"the input is {wanted}, which is no image of layout {letters}")
        shape: Sequence[Dim] = wanted.shape or (None,) * len(letters)
        return {"N": 1, **dict(zip(letters, shape, strict=True))}

    def _check_channels(self, channels: Dim) -> None:
        for name, numbers in (("mean", self.mean), ("std", self.std)):
            if len(numbers) > 1 and isinstance(channels, int) and len(numbers) != channels:
                raise SchemaError(f"`{name}` has {len(numbers)} numbers, and the image {channels} channels")

    def _input(self, b: Builder, sizes: Mapping[str, Dim], dims: FreshNames) -> Value:
        free = {"H": dims.fresh("height"), "W": dims.fresh("width")} if self.size else {}
        shape = [free.get(letter, sizes[letter]) for letter in self.layout]
        return b.input("pixels", tensor_type("uint8", shape))

    def _decoded(self, b: Builder, sizes: Mapping[str, Dim]) -> Value:
        if self._target(sizes) is None:
            raise SchemaError("decoded images have any size; pass the `size` that they are resized to")
        return b.input("pixels", tensor_type("uint8", ["bytes"]))

    def _target(self, sizes: Mapping[str, Dim]) -> tuple[int, int] | None:
        """Return the height and width that images are resized to, if they are."""
        height, width = sizes["H"], sizes["W"]
        if self.size is None and self.decode and isinstance(height, int) and isinstance(width, int):
            return height, width
        return self.size

    def _normalized(self, b: Builder, value: Value) -> Value:
        """Return `(value * scale - mean) / std` as one product and one difference for each channel."""
        std = np.array(self.std or (1.0,))
        factor, offset = self.scale / std, np.array(self.mean or (0.0,)) / std
        value = b.Mul(value, _for_channels(factor)) if np.any(factor != 1) else value
        return b.Sub(value, _for_channels(offset)) if np.any(offset != 0) else value


def _for_channels(numbers: Array) -> Array:
    return numbers.astype(np.float32).reshape(1, -1, 1, 1)


def _transposed(b: Builder, value: Value, old: str, new: str) -> Value:
    return value if old == new else b.Transpose(value, perm=[old.index(letter) for letter in new])
