"""Rfft: the first half of the spectrum of real signals."""

from collections.abc import Iterator

import numpy as np

from sabir.base import InferenceError
from sabir.ir import Builder, TensorType, Value
from sabir.loops import Expression
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.spectra import real_spectra, spectra, spectrum_kernels
from sabir.opsets.families.spectra.real_spectra import check_dimensions, rank_of
from sabir.opsets.typing import Array
from sabir.schema import Attribute, Example, Input, Operator, Output, at_least

rfft = Operator(
    "Rfft",
    domain="com.microsoft",
    summary="The spectra of real signals along the last axes; the last has only n // 2 + 1 frequencies.",
    body_opset=18,
)

v1 = rfft.first(
    1,
    inputs=[Input("X", real_spectra.T, "Signals, [..., n].", differentiable=True)],
    outputs=[
        Output("Y", real_spectra.T, "Real and imaginary parts, [..., n // 2 + 1, 2].", differentiable=True)
    ],
    attributes=[
        *real_spectra.ATTRIBUTES,
        Attribute("signal_ndim", "int", "The number of axes of a signal.", default=1, values=at_least(1)),
    ],
)


@v1.infer
def infer(x: TensorType, /, *, signal_ndim: int) -> TensorType:
    if x.shape is None:
        return TensorType(x.element)
    check_dimensions(signal_ndim, len(x.shape))
    if 0 in x.shape[-signal_ndim:]:
        raise InferenceError("a signal must have samples along each of its axes")
    return x.with_shape(*x.shape[:-1], spectra.bins(x.shape[-1], onesided=True), spectra.COMPLEX)


@v1.evaluate
def evaluate(x: Array, /, *, signal_ndim: int, **_: int) -> Array:
    check_dimensions(signal_ndim, x.ndim)
    y = spectra.transform(widened(x), x.shape[-1], x.ndim - 1, onesided=True)
    for axis in range(x.ndim - signal_ndim, x.ndim - 1):
        y = spectra.transform(y, x.shape[axis], axis, onesided=False)
    return spectra.parts(y, x.dtype)


@v1.lower
def lower(x: Expression, /, *, signal_ndim: int) -> Expression:
    y = spectrum_kernels.transformed(real_spectra.as_parts(x), x.rank - 1, None, inverse=False, onesided=True)
    for axis in range(x.rank - signal_ndim, x.rank - 1):
        y = spectrum_kernels.transformed(y, axis, None, inverse=False, onesided=False)
    return y


@v1.body
def body(b: Builder, x: Value, /, *, signal_ndim: int) -> Value:
    rank = rank_of(x)
    y = real_spectra.transformed(b, b.Unsqueeze(x, real_spectra.last_axis(b)), rank - 1, rank + 1, onesided=1)
    for axis in range(rank - signal_ndim, rank - 1):
        y = real_spectra.transformed(b, y, axis, rank + 1)
    return y


@rfft.examples
def examples() -> Iterator[Example]:
    """By hand: the angles of 4 samples are multiples of a quarter turn; planes by numpy's rfft2 and rfftn."""
    for kind in (np.float32, np.float64, np.float16):
        x = np.array([[1, 2, 3, 4], [0, 0, 0, 0]], kind)
        y = np.array([[[10, 0], [-2, 2], [-2, 0]], [[0, 0]] * 3], kind)
        yield Example(1, x, expect=[y])
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4) ** 2
    for axes in (2, 3):
        y = np.fft.rfftn(x.astype(np.float64), axes=range(3 - axes, 3))
        yield Example(1, x, signal_ndim=axes, expect=[np.stack([y.real, y.imag], -1).astype(np.float32)])
    for signal, spectrum in (([1, 2, 4], [[7, 0], [-2, np.sqrt(3)]]), ([5], [[5, 0]])):
        yield Example(1, np.array(signal, np.float32), expect=[np.array(spectrum, np.float32)])
    yield Example(1, x[:0], normalized=0, onesided=1, expect=[np.zeros((0, 3, 3, 2), np.float32)])
