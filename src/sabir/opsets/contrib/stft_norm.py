"""StftNorm: the power of the frequencies in the frames of a sound."""

from collections.abc import Iterator

import numpy as np

from sabir.base import EvaluationError, InferenceError
from sabir.elements import FLOAT
from sabir.ir import Builder, Dim, TensorType, Value
from sabir.opsets.families.shapes import contents
from sabir.opsets.families.shapes.axes import as_input
from sabir.opsets.families.shapes.ranks import as_number, check_one, check_rank, check_shape
from sabir.opsets.families.shapes.sizes import allotted
from sabir.opsets.typing import Array
from sabir.schema import Example, Input, Operator, Output

stft_norm = Operator(
    "StftNorm",
    domain="ai.onnx.contrib",
    summary="The squared magnitudes of the short-time Fourier transform of a signal, between half a frame of "
    "zeros on either side.",
    body_opset=18,
)

_NUMBER = "tensor(int64)"

v1 = stft_norm.first(
    1,
    inputs=[
        Input("pcm_wave", "tensor(float)", "The signal, [1, samples]."),
        Input("n_fft", _NUMBER, "The length of a transform, one number."),
        Input("hop_length", _NUMBER, "From one frame to the next, one number."),
        Input("window", "tensor(float)", "The factors of a frame, [n_fft]."),
        Input("frame_size", _NUMBER, "The length of a frame, which must be `n_fft`."),
    ],
    outputs=[Output("stft_norm", "tensor(float)", "[1, n_fft / 2 + 1, frames].")],
)

v1.absent("gradient", "it is an operator of preprocessing")


@v1.infer
def infer(
    x: TensorType, length: TensorType, hop: TensorType, window: TensorType, size: TensorType, /
) -> TensorType:
    for name, number in (("n_fft", length), ("hop_length", hop), ("frame_size", size)):
        check_one(name, number)
    check_shape("pcm_wave", x, 1, None)
    check_rank("window", window, 1)
    known = [contents.ints(number.known) for number in (length, hop, size)]
    samples: Dim = x.shape[1] if x.shape else None
    bins: Dim = None
    frames: Dim = None
    if known[0]:
        bins = known[0][0] // 2 + 1
        check_shape("window", window, known[0][0])
    if known[0] and known[1] and known[2]:
        count, step = known[0][0], known[1][0]
        _check(count, step, known[2][0], samples)
        frames = (samples - count % 2) // step + 1 if isinstance(samples, int) else None
    return TensorType(FLOAT, (1, bins, frames))


def _check(length: int, hop: int, size: int, samples: Dim) -> None:
    """Raise InferenceError for sizes that no frame has."""
    if size != length:
        raise InferenceError(f"`frame_size` must be `n_fft`, {length}, and is {size}")
    if length < 1 or hop < 1:
        raise InferenceError(f"`n_fft` and `hop_length` must be 1 or more, and are {length} and {hop}")
    if isinstance(samples, int) and samples + length // 2 * 2 < length:
        raise InferenceError(f"a signal of {samples} samples has no frame of {length}")


@v1.evaluate
def evaluate(x: Array, length: Array, hop: Array, window: Array, size: Array, /) -> Array:
    check_shape("pcm_wave", x, 1, None)
    count, step, frame = (
        int(as_number(name, number))
        for name, number in (("n_fft", length), ("hop_length", hop), ("frame_size", size))
    )
    _check(count, step, frame, x.shape[1])
    if window.shape != (count,):
        raise EvaluationError(f"`window` must have {count} factors, and has the shape {list(window.shape)}")
    padded = np.pad(x[0], count // 2)
    starts = np.arange(0, len(padded) - count + 1, step)
    allotted((len(starts), count), np.dtype(np.float32), x.size)
    frames = np.lib.stride_tricks.sliding_window_view(padded, count)[starts] * window
    found = np.fft.rfft(frames, axis=1)
    power = found.real**2 + found.imag**2
    return power.T[None].astype(np.float32)


@v1.body
def body(b: Builder, x: Value, length: Value, hop: Value, window: Value, size: Value, /) -> Value:
    one = as_input(b, "one", [1])
    half = b.Reshape(b.Div(length, as_input(b, "two", [2])), one)
    zero = as_input(b, "zero", [0])
    padded = b.Pad(x, b.Concat(zero, half, zero, half, axis=0))
    step, frame = (b.Reshape(number, as_input(b, "scalar", [])) for number in (hop, size))
    found = b.STFT(padded, step, window, frame)
    power = b.ReduceSumSquare(found, as_input(b, "parts", [3]), keepdims=0)
    return b.Transpose(power, perm=[0, 2, 1])


@stft_norm.examples
def examples() -> Iterator[Example]:
    """By onnxruntime-extensions; the first one by hand."""
    f = np.float32
    sizes = 4, 2, [1.0] * 4, 4  # frames 0 0 1 2, 1 2 3 4, 3 4 0 0
    power = [[[9, 100, 49], [5, 8, 25], [1, 4, 1]]]
    yield Example(1, np.array([[1, 2, 3, 4]], f), *sizes, expect=[np.array(power, f)])
    signal = np.sin(np.arange(11) ** 2).astype(f)[None]
    window = np.array([0.25, 0.75, 1, 0.75, 0.25], f)
    yield Example(1, signal, 5, [3], window, [5])
    yield Example(1, signal[:, :1], 1, 1, [2.0], 1, expect=[4 * signal[:, :1, None] ** 2])
