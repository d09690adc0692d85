"""Irfft: real signals of even length from the first half of their spectra."""

from collections.abc import Iterator

import numpy as np

from sabir.base import InferenceError
from sabir.ir import Builder, TensorType, Value
from sabir.loops import Expression
from sabir.opsets.families.shapes.axes import as_input
from sabir.opsets.families.shapes.ranks import hold
from sabir.opsets.families.spectra import real_spectra, spectra, spectrum_kernels
from sabir.opsets.families.spectra.real_spectra import check_dimensions, rank_of
from sabir.opsets.typing import Array
from sabir.schema import Attribute, Example, Input, Operator, Output, at_least

irfft = Operator(
    "Irfft",
    domain="com.microsoft",
    summary="The real signals along the last axes whose spectra have these first n // 2 + 1 frequencies.",
    body_opset=18,
)

v1 = irfft.first(
    1,
    inputs=[
        Input(
            "X",
            real_spectra.T,
            "Real and imaginary parts, [..., n // 2 + 1, 2]; n is even.",
            differentiable=True,
        )
    ],
    outputs=[Output("Y", real_spectra.T, "The signals, [..., n].", differentiable=True)],
    attributes=[
        *real_spectra.ATTRIBUTES,
        Attribute("signal_ndim", "int", "The number of axes of a signal.", required=True, values=at_least(1)),
    ],
)


@v1.infer
def infer(x: TensorType, /, *, signal_ndim: int) -> TensorType:
    if x.shape is None:
        return TensorType(x.element)
    check_dimensions(signal_ndim, len(x.shape) - 1)
    if isinstance(x.shape[-1], int) and x.shape[-1] != spectra.COMPLEX:
        raise InferenceError(f"the last dimension must be 2, and is {x.shape[-1]}")
    count = spectra.original_length(x.shape[-2])
    if (isinstance(count, int) and count < 1) or 0 in x.shape[-1 - signal_ndim : -2]:
        raise InferenceError("a spectrum must have two frequencies or more, and one along the other axes")
    return x.with_shape(*x.shape[:-2], count)


@v1.evaluate
def evaluate(x: Array, /, *, signal_ndim: int, **_: int) -> Array:
    hold(infer, x, signal_ndim=signal_ndim)
    y, last = spectra.signal(x), x.ndim - 2
    spectra.make_room(y, 2 * (y.shape[last] - 1), last)
    for axis in range(last + 1 - signal_ndim, last):
        y = np.fft.ifft(y, axis=axis)
    return np.fft.irfft(y, axis=last).astype(x.dtype)


@v1.lower
def lower(x: Expression, /, *, signal_ndim: int) -> Expression:
    last = x.rank - 2
    for axis in range(last + 1 - signal_ndim, last):
        x = spectrum_kernels.transformed(x, axis, None, inverse=True, onesided=False)
    y = spectrum_kernels.transformed(x, last, None, inverse=True, onesided=True)
    return real_spectra.without_parts(y)


@v1.body
def body(b: Builder, x: Value, /, *, signal_ndim: int) -> Value:
    """The other half of the spectrum is the first without its ends, reversed and conjugate."""
    rank = rank_of(x)
    last = rank - 2
    for axis in range(last + 1 - signal_ndim, last):
        x = real_spectra.transformed(b, x, axis, rank, inverse=1)
    inner = [as_input(b, "slice", [n]) for n in (-2, 0, last, -1)]
    sign = b.CastLike(b.initializer("conjugate", np.array([1, -1], np.float32)), x)
    whole = b.Concat(x, b.Mul(b.Slice(x, *inner), sign), axis=last)
    y = real_spectra.transformed(b, whole, last, rank, inverse=1)
    return b.Squeeze(b.Slice(y, *(as_input(b, "real", [n]) for n in (0, 1, -1))), real_spectra.last_axis(b))


@irfft.examples
def examples() -> Iterator[Example]:
    """By hand; planes by numpy's irfft2 and irfftn."""
    for kind in (np.float32, np.float64, np.float16):
        x = np.array([[[10, 0], [-2, 2], [-2, 0]], [[0, 0]] * 3], kind)
        yield Example(1, x, signal_ndim=1, expect=[np.array([[1, 2, 3, 4], [0, 0, 0, 0]], kind)])
    signals = np.arange(24, dtype=np.float64).reshape(2, 3, 4) ** 2
    for axes in (2, 3):
        y = np.fft.rfftn(signals, axes=range(3 - axes, 3))
        halves = np.stack([y.real, y.imag], -1).astype(np.float32)
        yield Example(1, halves, signal_ndim=axes, tolerance=1e-4, expect=[signals.astype(np.float32)])
    yield Example(
        1, np.array([[3, 0], [1, 0]], np.float32), signal_ndim=1, expect=[np.array([2, 1], np.float32)]
    )
    nothing = np.zeros((0, 2, 2), np.float32)
    yield Example(1, nothing, signal_ndim=1, normalized=0, onesided=1, expect=[nothing[:, :, 0]])
