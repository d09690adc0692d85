"""Transposed windows: where the outputs of a transposed convolution lie."""

from __future__ import annotations

from itertools import starmap
from typing import TYPE_CHECKING, NamedTuple

from sabir.base import InferenceError
from sabir.ir import add, dim_max, mul, sub
from sabir.opsets.families.windows import Axis

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir import Dim
    from sabir.opsets.families.windows import Window


class Transposed(NamedTuple):
    """A window whose every place is an element of the input; it makes an output that convolves back to it.

    The output's size follows from the padding, or the other way round where the size is given or to be
    the input's times the stride. What the output has beyond the last window stays 0.
    """

    window: Window
    added: tuple[int, ...]  # elements that lengthen the output at its end
    given: tuple[int, ...] | None  # the output's size
    upper: bool  # whether padding found by size puts its odd element at the end

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
        given = tuple(output_shape) if output_shape else None
        return cls(window, tuple(output_padding or (0,) * rank), given, auto_pad == "SAME_UPPER")

    def outputs(self, lengths: Sequence[Dim]) -> tuple[Dim, ...]:
        """Return the output's size for an input of this one."""
        if len(lengths) != len(self.window.kernel):
            raise InferenceError(
                f"a window over {len(self.window.kernel)} axes cannot slide along {len(lengths)}"
            )
        if not self.given:
            return tuple(starmap(self._length, enumerate(lengths)))
        for i, (length, output) in enumerate(zip(lengths, self.given, strict=True)):
            self._check_reach(i, self._whole(i, length), output)
        return self.given

    def axes(self, lengths: Sequence[int]) -> tuple[Axis, ...]:
        """Lay the windows over the output that an input of this size makes."""
        outputs = [o for o in self.outputs(lengths) if isinstance(o, int)]
        kernel = [k for k in self.window.kernel if isinstance(k, int)]
        if len(outputs) < len(lengths):  # sizes past 64 bits are none
            told = f"strides {list(self.window.strides)}, dilations {list(self.window.dilations)}"
            raise InferenceError(f"windows of {kernel}, {told} make more than 2^63 of {list(lengths)}")
        sides = zip(lengths, outputs, kernel, strict=True)
        return tuple(self._axis(i, *side) for i, side in enumerate(sides))

    def _length(self, i: int, length: Dim) -> Dim:
        stride, whole = self.window.strides[i], self._whole(i, length)
        # without padding the size can also be less than the stride asks for, when the window is short
        cut = dim_max(0, sub(whole, mul(length, stride))) if self.window.same else sum(self.window.pads[i])
        output = sub(whole, cut)
        if isinstance(output, int) and output < 0:
            raise InferenceError(f"padding of {cut} leaves nothing of {whole}")
        return output

    def _whole(self, i: int, length: Dim) -> Dim:
        """Return how far the windows reach along an axis before padding is cut off."""
        reach = add(mul(sub(self.window.kernel[i], 1), self.window.dilations[i]), 1)
        return add(mul(sub(length, 1), self.window.strides[i]), add(reach, self.added[i]))

    def _check_reach(self, i: int, whole: Dim, output: Dim) -> None:
        if not isinstance(whole, int) or not isinstance(output, int):
            return
        if output - whole >= max(self.window.strides[i], self.window.dilations[i]):
            raise InferenceError(f"output_shape asks for {output}, and the windows reach only to {whole}")

    def _axis(self, i: int, length: int, output: int, kernel: int) -> Axis:
        window, (begin, end) = self.window, self.window.pads[i]
        stride, dilation = window.strides[i], window.dilations[i]
        whole = (length - 1) * stride + (kernel - 1) * dilation + 1 + self.added[i]
        if self.given or window.same:
            cut = max(0, whole - output)
            begin = cut // 2 if self.upper else cut - cut // 2
            end = cut - begin
        return Axis(output, length, kernel, stride, dilation, begin, end)
