"""AudioDecoder: the samples of a sound in the format WAV."""

import io
import wave
from collections.abc import Iterator

import numpy as np

from sabir.base import EvaluationError, UnsupportedError
from sabir.elements import FLOAT
from sabir.ir import TensorType
from sabir.opsets.families.shapes.ranks import as_number, check_one, check_rank, check_shape
from sabir.opsets.families.spectra import rates
from sabir.opsets.families.text import strings
from sabir.opsets.typing import Array
from sabir.schema import Attribute, Example, Input, Operator, Output, at_least

audio_decoder = Operator(
    "AudioDecoder",
    domain="ai.onnx.contrib",
    summary="The samples of a sound in the format WAV, those of several channels in turn.",
    lacks=("Files other than WAV of integers. The filter of a lower rate is another one, without a delay.",),
)

v1 = audio_decoder.first(
    1,
    inputs=[
        Input("audio_stream", "tensor(uint8)", "The bytes of the file, [n] or [1, n]."),
        Input("format", strings.TEXT, "One text, `wav`; by default the file says so itself.", optional=True),
    ],
    outputs=[Output("floatPCM", "tensor(float)", "The samples from -1 to 1, [1, samples].")],
    attributes=[
        Attribute(
            "downsampling_rate",
            "int",
            "The samples a second, at most those of the file; 0: those of the file.",
            default=0,
            values=at_least(0),
        ),
        Attribute("stereo_to_mono", "int", "1: the mean of the channels.", default=0),
    ],
)

v1.absent("lower", "kernels decode no sounds")
v1.absent("gradient", "the bytes are integers, which have no gradients")

_BYTE, _TRIPLE = 1, 3  # bytes of a sample that are unsigned, and that no integer of numpy has


def _check_stream(data: TensorType | Array) -> None:
    """Raise InferenceError unless there is one row of bytes."""
    check_rank("audio_stream", data, 1, 2)
    if data.shape is not None and len(data.shape) > 1:
        check_shape("audio_stream", data, 1, None)


@v1.infer
def infer(data: TensorType, kind: TensorType | None = None, /) -> TensorType:
    _check_stream(data)
    check_one("format", kind)
    return TensorType(FLOAT, (1, None))


@v1.evaluate
def evaluate(
    data: Array, kind: Array | None = None, /, *, downsampling_rate: int, stereo_to_mono: int
) -> Array:
    _check_stream(data)
    if kind is not None and strings.as_str(as_number("format", kind)).lower() not in {"", "wav"}:
        raise UnsupportedError(f"AudioDecoder reads the format wav, and no {as_number('format', kind)}")
    try:
        with wave.open(io.BytesIO(data.tobytes())) as file:
            channels, width, rate = file.getnchannels(), file.getsampwidth(), file.getframerate()
            stored = file.readframes(file.getnframes())
    except (wave.Error, EOFError) as error:
        raise UnsupportedError(f"AudioDecoder reads the format WAV alone, of integers: {error}") from error
    if downsampling_rate > rate:
        raise EvaluationError(
            f"`downsampling_rate` must be at most the rate of the sound, {rate}, and is {downsampling_rate}"
        )
    whole = len(stored) // (width * channels) * width * channels  # a file may end within a sample
    samples = _samples(stored[:whole], width).reshape(-1, channels)
    if stereo_to_mono:
        samples = samples.mean(axis=1, dtype=np.float32)[:, None]
    if downsampling_rate not in {0, rate}:
        columns = [rates.resampled(column, rate, downsampling_rate) for column in samples.T]
        samples = np.stack(columns, axis=1)
    return samples.reshape(1, -1).astype(np.float32, copy=False)


def _samples(stored: bytes, width: int) -> Array:
    """Return samples of so many bytes, the greatest of which is almost 1."""
    if width == _BYTE:
        return (np.frombuffer(stored, np.uint8).astype(np.float32) - 128) / 128
    if width == _TRIPLE:  # the bytes of a sample are the upper ones of four
        parts = np.frombuffer(stored, np.uint8).reshape(-1, _TRIPLE)
        wide = np.zeros((len(parts), 4), np.uint8)
        wide[:, 1:] = parts
        stored, width = wide.tobytes(), 4
    numbers = np.frombuffer(stored, f"<i{width}").astype(np.float64)
    return (numbers / 2.0 ** (8 * width - 1)).astype(np.float32)


def _file(samples: bytes, width: int, channels: int = 1) -> Array:
    """Return a file of 16 000 samples a second."""
    memory = io.BytesIO()
    with wave.open(memory, "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(16000)
        file.writeframes(samples)
    return np.frombuffer(memory.getvalue(), np.uint8)


@audio_decoder.examples
def examples() -> Iterator[Example]:
    """As onnxruntime-extensions computes them, but for the last bits of 8, 24 and 32 bits."""
    f = np.float32
    whole = np.array([[0.5, -0.25, 0, 0.125]], f)
    numbers = np.array([16384, -8192, 0, 4096], np.int16)
    plain = _file(numbers.astype("<i2").tobytes(), 2)
    yield Example(1, plain, expect=[whole])
    yield Example(1, plain[None], ["WAV"], downsampling_rate=16000, expect=[whole])
    stereo = _file(numbers.astype("<i2").tobytes(), 2, 2)
    yield Example(1, stereo, expect=[whole])
    yield Example(1, stereo, stereo_to_mono=1, expect=[np.array([[0.125, 0.0625]], f)])
    yield Example(1, _file(bytes([0, 128, 192]), 1), expect=[np.array([[-1, 0, 0.5]], f)])
    yield Example(1, _file(bytes([0, 0, 0x40, 0, 0, 0x80]), 3), expect=[np.array([[0.5, -1]], f)])
    yield Example(1, _file(bytes([0, 0, 0, 0xE0]), 4), expect=[np.array([[-0.25]], f)])
