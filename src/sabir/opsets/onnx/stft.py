"""STFT: Fourier transforms of windows that slide along a signal.

A signal is "expected to have rank 3", the standard says. PyTorch exports a real one of rank 2,
`[batch, length]`, and onnxruntime runs it; the meaning is clear. So a signal of rank 2 is a real one, and the
checker warns.
"""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir import loops
from sabir.base import InferenceError
from sabir.ir import Shape, TensorType, Value, add, floor_div, known_equal, may_be_at_most, sub
from sabir.loops import Expression, Lowering, NotLowered
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.shapes.shapes import same_dim
from sabir.opsets.families.spectra import spectra, spectrum_kernels
from sabir.opsets.families.spectra.spectrum_gradients import of_stft
from sabir.opsets.typing import Array, Gradient
from sabir.schema import BFLOAT16, FLOATS, Attribute, Constraint, Example, Input, Operator, Output, tensors

stft = Operator(
    "STFT",
    summary="The spectra of the frames of a signal, times a window; frame f starts at `f * frame_step`.",
)

T1 = Constraint("T1", FLOATS, BFLOAT16)
T2 = Constraint("T2", tensors("int32", "int64"))

v17 = stft.first(
    17,
    inputs=[
        Input(
            "signal",
            T1,
            "Real (batch, length, 1), or complex (batch, length, 2); (batch, length) is accepted as real.",
            differentiable=False,
        ),
        Input("frame_step", T2, "The distance between the starts of frames.", differentiable=False),
        Input(
            "window",
            T1,
            "The factors of the elements of a frame; 1 by default.",
            optional=True,
            differentiable=False,
        ),
        Input(
            "frame_length",
            T2,
            "The length of a frame; by default that of the window, else of the signal.",
            optional=True,
            differentiable=False,
        ),
    ],
    outputs=[Output("output", T1, "(batch, frames, frequencies, 2).", differentiable=False)],
    attributes=[
        Attribute(
            "onesided",
            "int",
            "1: only the first `frame_length // 2 + 1` frequencies of each frame.",
            default=1,
        )
    ],
)

RANK = 3
BARE = 2  # the rank of a real signal without the dimension of parts

v17.absent("downgrade", "a product with a matrix of constants would differ from the transform in rounding")


@v17.infer
def infer(
    signal: TensorType,
    step: TensorType,
    window: TensorType | None = None,
    length: TensorType | None = None,
    /,
    *,
    onesided: int,
) -> TensorType:
    _check_shapes(signal.shape, step, window, length)
    batch, samples, *_ = signal.shape or (None, None)
    lengths = [w.shape[0] for w in (window,) if w is not None and w.shape]
    if length is not None:
        lengths.append(spectra.scalar(length))
    frame = same_dim(lengths, "`frame_length` and the window") if window or length else samples
    distance = spectra.scalar(step)
    if isinstance(distance, int) and distance < 1:
        raise InferenceError(f"`frame_step` is {distance}, and must be 1 or more")
    frames = 1 if known_equal(frame, samples) else add(floor_div(sub(samples, frame), distance), 1)
    if not may_be_at_most(frame, samples) or (isinstance(frames, int) and frames < 1):
        raise InferenceError(f"a frame of {frame} is longer than the signal of {samples}")
    return signal.with_shape(batch, frames, spectra.bins(frame, onesided=bool(onesided)), spectra.COMPLEX)


@v17.evaluate
def evaluate(
    signal: Array, step: Array, window: Array | None = None, length: Array | None = None, /, *, onesided: int
) -> Array:
    _check_shapes(signal.shape, step, window, length)
    x = spectra.signal(signal[..., None] if signal.ndim == BARE else signal)
    frame = x.shape[1]
    if window is not None or length is not None:
        frame = int(length.item()) if length is not None else len(window) if window is not None else 0
    if window is not None and window.shape != (frame,):
        raise ValueError(f"a window of shape {list(window.shape)} does not match frames of {frame}")
    distance = int(step.item())
    if distance < 1 or not 0 < frame <= x.shape[1]:
        raise ValueError(
            f"frames of {frame} every {distance} elements do not fit into a signal of {x.shape[1]}"
        )
    frames = np.lib.stride_tricks.sliding_window_view(x, frame, axis=1)[:, ::distance]
    weighted = frames if window is None else frames * widened(window)
    return spectra.parts(spectra.transform(weighted, frame, 2, onesided=bool(onesided)), signal.dtype)


def _check_shapes(
    signal: Shape | None,
    step: TensorType | Array,
    window: TensorType | Array | None,
    length: TensorType | Array | None,
) -> None:
    """Raise InferenceError for inputs whose known shapes are not those that the standard requires."""
    if signal is not None:
        if len(signal) not in {BARE, RANK}:
            raise InferenceError(f"`signal` must be of rank {RANK}, not of shape {list(signal)}")
        if signal[1] == 0:
            raise InferenceError("`signal` is empty, and a frame has 1 or more elements")
        if (
            len(signal) == RANK
            and isinstance(signal[2], int)
            and signal[2] not in {spectra.REAL, spectra.COMPLEX}
        ):
            raise InferenceError(
                f"the last dimension of `signal` must be 1 (real) or 2 (complex), and is {signal[2]}"
            )
    if window is not None and window.shape is not None and len(window.shape) != 1:
        raise InferenceError(f"`window` must be 1-D, not of shape {list(window.shape)}")
    if window is not None and window.shape == (0,):
        raise InferenceError("`window` is empty, and a frame has 1 or more elements")
    for name, x in (("frame_step", step), ("frame_length", length)):
        if x is not None and isinstance(x.size, int) and x.size != 1:
            raise InferenceError(f"`{name}` must be a scalar, not of shape {list(x.shape or ())}")


@v17.lower
def lower(
    signal: Expression, step: Expression, window: Expression | None = None, length: Expression | None = None,
    /, *, onesided: int, call: Lowering,
) -> Expression:  # fmt: skip
    x = loops.reshape(signal, (*signal.shape, 1)) if signal.rank == BARE else signal
    (distance,) = kernels.integers_of(step, "`frame_step`")
    frame = x.shape[1] if window is None else window.shape[0]
    if length is not None:
        (frame,) = kernels.integers_of(length, "`frame_length`")
    frame = loops.fixed(frame)
    if frame is None or distance < 1:
        raise NotLowered("the length of a frame is known at run time only")
    if window is not None and not loops.equal(window.shape[0], frame):
        raise NotLowered("whether the window matches the frames is known at run time only")
    known = kernels.floats_of(window)
    weights = np.array(known) if known else window
    return spectrum_kernels.framed(x, distance, frame, call.shape()[1], weights, onesided=bool(onesided))


@stft.check
def check(signal: TensorType, /, *_: TensorType | None) -> Iterator[str]:
    if signal.shape is not None and len(signal.shape) == BARE:
        needed = f"the standard requires rank {RANK}: add a dimension of 1"
        yield f"`signal` is {signal} and is taken as real; {needed}"


@v17.gradient
def gradient(
    g: Gradient,
    signal: Value,
    step: Value,
    window: Value | None = None,
    length: Value | None = None,
    /,
) -> tuple[Value | None, ...]:
    d_signal, d_window = of_stft(g, signal, step, window, length)
    return d_signal, None, d_window, None


@stft.examples
def examples() -> Iterator[Example]:
    """By hand: sums and differences in frames of two, quarter turns in frames of four."""
    f = np.float32
    x = np.array([[1, 2, 4, 7, 11]], f)[..., None]
    pairs = np.array([[[3, 0], [-1, 0]], [[6, 0], [-2, 0]], [[11, 0], [-3, 0]], [[18, 0], [-4, 0]]], f)[None]
    one, two = np.array(1, np.int32), np.array(2, np.int32)
    yield Example(17, x, one, None, two, expect=[pairs])
    yield Example(17, x, one, np.ones(2, f), expect=[pairs])
    yield Example(17, x, two, np.ones(2, f), two, expect=[pairs[:, ::2]])
    yield Example(17, x, two, None, two, onesided=0, expect=[pairs[:, ::2]])
    weighted = np.array([[[1, 0], [1, 0]], [[4, 0], [4, 0]]], f)[None]
    yield Example(17, x, two, [1, 0], expect=[weighted])
    four = np.array([[[14, 0], [-3, 5], [-4, 0], [-3, -5]]], f)[None]
    yield Example(17, x[:, :4], one, onesided=0, expect=[four])
    yield Example(17, x[:, :4], one, expect=[four[:, :, :3]])
    rotated = np.concatenate([0 * x, x], axis=-1)  # the signal times i
    turned = np.stack([-pairs[..., 1], pairs[..., 0]], axis=-1)
    yield Example(17, rotated, one, None, two, onesided=0, expect=[turned])
    yield Example(17, rotated[:, :4], one, expect=[[[[[0, 14], [-5, -3], [0, -4]]]]])
    for kind in (np.float16, np.float64, ml_dtypes.bfloat16):
        yield Example(17, x.astype(kind), one, np.ones(2, kind), expect=[pairs.astype(kind)])
    yield Example(17, x[:0], one, None, two, expect=[pairs[:0]])
    yield Example(17, x[..., 0], one, None, two, expect=[pairs])
