"""Windows of a transposed convolution: their positions in the output."""

from __future__ import annotations

from itertools import starmap
from typing import TYPE_CHECKING, NamedTuple

from sabir.base import InferenceError
from sabir.ir import add, dim_max, mul, sub
from sabir.opsets.families.windows.windows import WindowAxis

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir import Dim
    from sabir.opsets.families.windows.windows import Window


class Transposed(NamedTuple):
    """The windows over the output of a transposed convolution, one for each element of the input.

    The padding determines the output size. With `output_shape`, or where `auto_pad` makes the output size
    the input size times the stride, the output size determines the padding. After the last window, the
    output is 0.
    """

    window: Window
    added: tuple[int, ...]  # elements that output_padding adds at the end of each axis
    output_shape: tuple[int, ...] | None
    upper: bool  # whether padding that follows from the size has its odd element at the end

    @classmethod
    def of(
        cls, window: Window, *, output_padding: Sequence[int] | None, output_shape: Sequence[int] | None,
        auto_pad: str,
    ) -> Transposed:  # fmt: skip
        """Read the attributes; raises InferenceError for a wrong number of values."""
        rank = len(window.kernel)
        for name, values in (("output_padding", output_padding), ("output_shape", output_shape)):
            if values and len(values) != rank:
                raise InferenceError(f"{name} {list(values)} must have {rank} values")
        shape = tuple(output_shape) if output_shape else None
        return cls(window, tuple(output_padding or (0,) * rank), shape, auto_pad == "SAME_UPPER")

    def outputs(self, lengths: Sequence[Dim]) -> tuple[Dim, ...]:
        """Return the spatial sizes of the output for those of the input."""
        if len(lengths) != len(self.window.kernel):
            raise InferenceError(
                f"a window over {len(self.window.kernel)} axes cannot slide along {len(lengths)}"
            )
        if not self.output_shape:
            return tuple(starmap(self._length, enumerate(lengths)))
        for i, (length, output) in enumerate(zip(lengths, self.output_shape, strict=True)):
            self._check_reach(i, self._whole(i, length), output)
        return self.output_shape

    def axes(self, lengths: Sequence[int]) -> tuple[WindowAxis, ...]:
        """Return the windows along each axis of the output for an input with these spatial sizes."""
        outputs = [o for o in self.outputs(lengths) if isinstance(o, int)]
        kernel = [k for k in self.window.kernel if isinstance(k, int)]
        if len(outputs) < len(lengths):  # a size above 64 bits is None
            steps = f"strides {list(self.window.strides)}, dilations {list(self.window.dilations)}"
            raise InferenceError(
                f"windows of {kernel}, {steps} over an input {list(lengths)} make more than 2^63 elements"
            )
        sides = zip(lengths, outputs, kernel, strict=True)
        return tuple(self._axis(i, *side) for i, side in enumerate(sides))

    def _length(self, i: int, length: Dim) -> Dim:
        stride, whole = self.window.strides[i], self._whole(i, length)
        # without padding the size can also be less than the stride requires, when the window is short
        cut = dim_max(0, sub(whole, mul(length, stride))) if self.window.same else sum(self.window.pads[i])
        output = sub(whole, cut)
        if isinstance(output, int) and output < 0:
            raise InferenceError(f"padding of {cut} exceeds the {whole} elements of the unpadded output")
        return output

    def _whole(self, i: int, length: Dim) -> Dim:
        """Return the length of an axis that all windows cover together, before padding is removed."""
        reach = add(mul(sub(self.window.kernel[i], 1), self.window.dilations[i]), 1)
        return add(mul(sub(length, 1), self.window.strides[i]), add(reach, self.added[i]))

    def _check_reach(self, i: int, whole: Dim, output: Dim) -> None:
        if not isinstance(whole, int) or not isinstance(output, int):
            return
        if output - whole >= max(self.window.strides[i], self.window.dilations[i]):
            raise InferenceError(
                f"output_shape requests {output} elements, and the windows cover only {whole}"
            )

    def _axis(self, i: int, length: int, output: int, kernel: int) -> WindowAxis:
        window, (begin, end) = self.window, self.window.pads[i]
        stride, dilation = window.strides[i], window.dilations[i]
        whole = (length - 1) * stride + (kernel - 1) * dilation + 1 + self.added[i]
        if self.output_shape or window.same:
            cut = max(0, whole - output)
            begin = cut // 2 if self.upper else cut - cut // 2
            end = cut - begin
        return WindowAxis(output, length, kernel, stride, dilation, begin, end)
