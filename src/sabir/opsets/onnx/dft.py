"""DFT: discrete Fourier transforms along an axis."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.base import InferenceError
from sabir.ir import Builder, Dim, TensorType, Value
from sabir.loops import Expression
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.shapes import axes
from sabir.opsets.families.shapes.ranks import as_number, check_one
from sabir.opsets.families.shapes.shapes import shared_dim
from sabir.opsets.families.spectra import spectra, spectrum_gradients, spectrum_kernels
from sabir.opsets.typing import Array, Gradient
from sabir.schema import BFLOAT16, FLOATS, Attribute, Constraint, Example, Input, Operator, Output, tensors

dft = Operator(
    "DFT", summary="The spectrum `y[k] = sum of x[n] exp(-2 pi i k n / N)` along an axis, or the inverse."
)

T1 = Constraint("T1", FLOATS, BFLOAT16)
T2 = Constraint("T2", tensors("int32", "int64"))

v17 = dft.first(
    17,
    inputs=[
        Input(
            "input",
            T1,
            "Signals; the last dimension is the real part, or the real and imaginary parts.",
            differentiable=False,
        ),
        Input(
            "dft_length",
            T2,
            "N, to which the signal is truncated or padded with zeros; its length by default.",
            optional=True,
            differentiable=False,
        ),
    ],
    outputs=[
        Output(
            "output",
            T1,
            "Complex numbers as two parts in the last dimension; one real part for an inverse `onesided`.",
        )
    ],
    attributes=[
        Attribute("inverse", "int", "1: from a spectrum to its signal, with the factor 1 / N.", default=0),
        Attribute("axis", "int", "The axis of the signal; not the last.", default=1),
        Attribute(
            "onesided",
            "int",
            "1: the spectrum of a real signal has only the first N // 2 + 1 frequencies.",
            default=0,
        ),
    ],
)
v20 = v17.evolve(
    20,
    "`axis` becomes an input, by default the last axis of the signal.",
    inputs=[
        *v17.inputs,
        Input(
            "axis",
            "tensor(int64)",
            "The axis of the signal, not the last one; -2 by default.",
            optional=True,
            differentiable=False,
        ),
    ],
    drop=["axis"],
)

LAST = -2  # the last axis of the signal

v17.absent("downgrade", "a product with a matrix of constants would differ from the transform in rounding")


@v17.infer
def infer_from_attribute(
    x: TensorType, length: TensorType | None = None, /, *, axis: int, inverse: int, onesided: int
) -> TensorType:
    return _inferred(x, length, axis, inverse=bool(inverse), onesided=bool(onesided))


@v20.infer
def infer(
    x: TensorType,
    length: TensorType | None = None,
    axis: TensorType | None = None,
    /,
    *,
    inverse: int,
    onesided: int,
) -> TensorType:
    check_one("axis", axis)
    along = LAST if axis is None else spectra.scalar(axis)
    number = along if isinstance(along, int) else None
    return _inferred(x, length, number, inverse=bool(inverse), onesided=bool(onesided))


def _inferred(
    x: TensorType, length: TensorType | None, axis: int | None, *, inverse: bool, onesided: bool
) -> TensorType:
    check_one("dft_length", length)
    if x.shape is None:
        return TensorType(x.element)
    if x.shape and isinstance(x.shape[-1], int) and x.shape[-1] not in {spectra.REAL, spectra.COMPLEX}:
        raise InferenceError(f"the last dimension must be 1 (real) or 2 (complex), and is {x.shape[-1]}")
    real = inverse and onesided
    if onesided and x.shape and x.shape[-1] == (spectra.REAL if inverse else spectra.COMPLEX):
        raise InferenceError(
            f"`onesided` is for {'the spectrum of a' if inverse else 'a'} real signal, and the input is {x}"
        )
    dims: list[Dim] = [*x.shape[:-1], spectra.REAL if real else spectra.COMPLEX]
    if axis is None:
        candidates = range(len(dims) - 1)
        if real and length is None:
            candidates = [i for i in candidates if dims[i] != 1]  # one frequency is not a real signal
        if length is None:
            candidates = [i for i in candidates if dims[i] != 0]
        if not candidates:
            return TensorType(x.element)
        shapes = (_inferred(x, length, i, inverse=inverse, onesided=onesided).shape or () for i in candidates)
        return x.with_shape(*map(shared_dim, zip(*shapes, strict=True)))
    along = spectra.signal_axis(axis, len(dims))
    if length is None:
        count = spectra.original_length(dims[along]) if real else dims[along]
    else:
        count = spectra.scalar(length)
    if isinstance(count, int) and count < 1:
        raise InferenceError(f"the length of a transform must be 1 or more, and is {count}")
    dims[along] = spectra.bins(count, onesided=onesided and not inverse)
    return x.with_shape(*dims)


@v17.evaluate
def evaluate_from_attribute(
    x: Array, length: Array | None = None, /, *, axis: int, inverse: int, onesided: int
) -> Array:
    return _transformed(x, length, axis, inverse=bool(inverse), onesided=bool(onesided))


@v20.evaluate
def evaluate(
    x: Array, length: Array | None = None, axis: Array | None = None, /, *, inverse: int, onesided: int
) -> Array:
    along = LAST if axis is None else int(as_number("axis", axis))
    return _transformed(x, length, along, inverse=bool(inverse), onesided=bool(onesided))


def _transformed(x: Array, length: Array | None, axis: int, *, inverse: bool, onesided: bool) -> Array:
    along, numbers = spectra.signal_axis(axis, x.ndim), spectra.signal(x)
    if onesided and (numbers.dtype.kind == "c") != inverse:
        raise ValueError("`onesided` is for real signals and their spectra")
    if length is not None:
        count = int(as_number("dft_length", length))
    else:
        count = 2 * (x.shape[along] - 1) if inverse and onesided else x.shape[along]
    spectra.make_room(numbers, count, along)
    if inverse:
        y = np.fft.irfft(numbers, count, along) if onesided else np.fft.ifft(numbers, count, along)
    else:
        y = spectra.transform(numbers, count, along, onesided=onesided)
    return spectra.parts(y, x.dtype)


@v17.lower
def lower_attribute(
    x: Expression, length: Expression | None = None, /, *, axis: int, inverse: int, onesided: int
) -> Expression:
    return _lowered(x, length, axis, inverse=bool(inverse), onesided=bool(onesided))


@v20.lower
def lower(
    x: Expression, length: Expression | None = None, axis: Expression | None = None, /, *, inverse: int,
    onesided: int,
) -> Expression:  # fmt: skip
    along = LAST if axis is None else int(kernels.number_of(axis, "`axis`"))
    return _lowered(x, length, along, inverse=bool(inverse), onesided=bool(onesided))


def _lowered(
    x: Expression, length: Expression | None, axis: int, *, inverse: bool, onesided: bool
) -> Expression:
    count = None if length is None else kernels.integers_of(length, "`dft_length`")[0]
    return spectrum_kernels.transformed(x, axis, count, inverse=inverse, onesided=onesided)


@v20.upgrade
def axis_becomes_an_input(
    b: Builder, x: Value, length: Value | None = None, /, *, axis: int, inverse: int, onesided: int
) -> Value:
    along = b.initializer("axis", np.array(axis))
    return b.DFT(x, length, along, inverse=inverse, onesided=onesided)


@v20.downgrade
def axis_becomes_an_attribute(
    b: Builder,
    x: Value,
    length: Value | None = None,
    axis: Value | None = None,
    /,
    *,
    inverse: int,
    onesided: int,
) -> Value:
    along = LAST if axis is None else axes.as_ints("axis", axis)[0]
    return b.DFT(x, length, axis=along, inverse=inverse, onesided=onesided)


@v17.gradient
def gradient_by_attribute(
    g: Gradient, x: Value, length: Value | None = None, /, *, axis: int, inverse: int, onesided: int
) -> tuple[Value, None]:
    along = spectrum_gradients.axis_of(g, axis)
    return spectrum_gradients.of_dft(g, x, length, along, inverse=inverse, onesided=onesided), None


@v20.gradient
def gradient(
    g: Gradient,
    x: Value,
    length: Value | None = None,
    axis: Value | None = None,
    /,
    *,
    inverse: int,
    onesided: int,
) -> tuple[Value, None, None]:
    along = spectrum_gradients.axis_of(g, LAST if axis is None else axis)
    return spectrum_gradients.of_dft(g, x, length, along, inverse=inverse, onesided=onesided), None, None


@dft.examples
def examples() -> Iterator[Example]:
    """By hand: the angles of 4 samples are multiples of a quarter turn."""
    f = np.float32
    x = np.array([1, 2, 3, 4], f).reshape(1, 4, 1)
    y = np.array([[10, 0], [-2, 2], [-2, 0], [-2, -2]], f)[None]
    for opset in (17, 20):
        yield Example(opset, x, expect=[y])
        yield Example(opset, x, onesided=1, expect=[y[:, :3]])
        yield Example(opset, y, inverse=1, expect=[np.concatenate([x, 0 * x], axis=-1)])
        yield Example(opset, y[:, :3], inverse=1, onesided=1, expect=[x])
        # truncated to [1, 2], and padded to [1, 2, 3, 4, 0, 0, 0, 0], with a new frequency between each two
        yield Example(opset, x, 2, expect=[[[[3, 0], [-1, 0]]]])
        yield Example(opset, x, np.array(2, np.int32), onesided=1, expect=[[[[3, 0], [-1, 0]]]])
        yield Example(opset, x, 8, outputs=1)
        yield Example(opset, y[:, :2], 3, inverse=1, onesided=1, expect=[_three()])
    imaginary = np.concatenate([0 * x, x], axis=-1)
    turned = np.stack([-y[..., 1], y[..., 0]], axis=-1)
    yield Example(20, imaginary, expect=[turned])
    columns = np.array([[1, 2], [3, 5]], f)[..., None]
    down = np.array([[4, 7], [-2, -3]], f)
    down = np.stack([down, 0 * down], axis=-1)
    yield Example(17, columns, axis=0, expect=[down])
    yield Example(17, columns, axis=-3, expect=[down])
    yield Example(20, columns, None, 0, expect=[down])
    yield Example(20, columns, None, [-3], expect=[down])
    for kind in (np.float16, np.float64, ml_dtypes.bfloat16):
        yield Example(20, x.astype(kind), expect=[y.astype(kind)])
    yield Example(20, np.zeros((0, 4, 1), f), expect=[np.zeros((0, 4, 2), f)])


def _three() -> Array:
    """From the frequencies 10, -2 + 2i and its mirror image: `(10 + 2 Re((-2 + 2i) w^n)) / 3`."""
    turns = np.exp(2j * np.pi * np.arange(3) / 3)
    return ((10 + 2 * ((-2 + 2j) * turns).real) / 3).astype(np.float32).reshape(1, 3, 1)
