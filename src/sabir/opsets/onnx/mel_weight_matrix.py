"""MelWeightMatrix: weights that sum a spectrum over bands of equal width on the mel scale."""

from collections.abc import Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from sabir.elements import element
from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.numbers.casting import converted
from sabir.opsets.families.shapes import contents
from sabir.opsets.families.shapes.ranks import as_number, check_one
from sabir.opsets.families.shapes.sizes import allotted
from sabir.opsets.families.spectra import spectra
from sabir.opsets.typing import Array
from sabir.schema import (
    BFLOAT16,
    FLOATS,
    NUMBERS,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    Unconvertible,
    element_types,
    tensors,
)

mel_weight_matrix = Operator(
    "MelWeightMatrix",
    summary="For each band a triangle over the frequencies of a spectrum; the edges of the bands are at "
    "equal steps of `2595 log10(1 + f / 700)`.",
)

T1 = Constraint("T1", tensors("int32", "int64"))
T2 = Constraint("T2", FLOATS, BFLOAT16)
T3 = Constraint("T3", NUMBERS, BFLOAT16)

v17 = mel_weight_matrix.first(
    17,
    inputs=[
        Input("num_mel_bins", T1, "The number of bands.", differentiable=False),
        Input("dft_length", T1, "The length of the frames whose spectra are summed.", differentiable=False),
        Input("sample_rate", T1, "Samples per second of the signal.", differentiable=False),
        Input("lower_edge_hertz", T2, "The start of the lowest band.", differentiable=False),
        Input("upper_edge_hertz", T2, "The end of the highest band.", differentiable=False),
    ],
    outputs=[Output("output", T3, "(dft_length // 2 + 1, num_mel_bins).", differentiable=False)],
    attributes=[
        Attribute(
            "output_datatype", "int", "The element type of the output.", default=1, values=element_types("T3")
        )
    ],
)


v17.absent("lower", "the shape of the result depends on the contents of the operands")
v17.absent("gradient", "the limits are rounded to frequencies, so small changes of them do nothing")


@v17.infer
def infer(
    bands: TensorType, length: TensorType, rate: TensorType, lower: TensorType, upper: TensorType, /,
    *, output_datatype: int,
) -> TensorType:  # fmt: skip
    for port, operand in zip(v17.inputs, (bands, length, rate, lower, upper), strict=True):
        check_one(port.name, operand)
    rows = spectra.bins(spectra.scalar(length), onesided=True)
    return TensorType(element(output_datatype), (rows, spectra.scalar(bands)))


@v17.evaluate
def evaluate(
    bands: Array, length: Array, rate: Array, lower: Array, upper: Array, /, *, output_datatype: int
) -> Array:
    """Round `bands + 2` edges to frequencies; each three consecutive ones form a triangle."""
    kind = element(output_datatype)
    count, frame, samples, *hertz = _numbers(bands, length, rate, lower, upper)
    return converted(_triangles(int(count) + 2, int(frame), int(samples), hertz), kind)


def _numbers(*inputs: Array) -> list[Any]:
    return [as_number(port.name, x) for port, x in zip(v17.inputs, inputs, strict=True)]


def _triangles(count: int, frame: int, samples: int, limits: Sequence[float]) -> Array:
    """Return the triangles over `count` edges, the first and the last at the limits."""
    low, high = (2595 * np.log10(1 + np.float64(x) / 700) for x in limits)
    allotted([frame // 2 + 1, count], np.dtype(np.complex128))  # several temporaries in float64
    hertz = 700 * (10 ** ((np.arange(count) * ((high - low) / count) + low) / 2595) - 1)
    edges = np.floor((frame + 1) * hertz / samples).astype(np.int64)
    start, peak, end = edges[:-2], edges[1:-1], edges[2:]
    rows = np.arange(frame // 2 + 1)[:, None]
    rising = np.divide(rows - start, peak - start, where=peak > start, out=np.ones((len(rows), len(start))))
    falling = np.divide(end - rows, end - peak, where=end > peak, out=np.zeros_like(rising))
    y = np.where((rows >= start) & (rows <= peak), rising, 0)
    np.copyto(y, falling, where=(rows >= peak) & (rows < end))
    return y


@v17.downgrade
def constant(b: Builder, /, *inputs: Value, output_datatype: int) -> Value:
    kinds = [v.type for v in inputs]
    known = [a for k in kinds if isinstance(k, TensorType) and (a := contents.array_of(k)) is not None]
    if len(known) < len(kinds):
        raise Unconvertible("an input is computed at run time, and the weights must be in the model")
    return b.initializer("weights", evaluate(*known, output_datatype=output_datatype))


@mel_weight_matrix.examples
def examples() -> Iterator[Example]:
    """By hand: up to 10500 Hz two bands have edges at 700 (2^i - 1) Hz, of 21 frequencies 1, 4 and 10."""
    f = np.float32
    inputs = [2, 20, 10_000, f(0), 10_500]
    two = np.array([[0, 6, 4, 2, 0, 0, 0, 0, 0, 0, 0], [0, 0, 2, 4, 6, 5, 4, 3, 2, 1, 0]]).T / 6
    yield Example(17, *inputs, expect=[two.astype(f)])
    for number, kind in ((11, np.float64), (10, np.float16), (16, ml_dtypes.bfloat16), (6, np.int32)):
        yield Example(17, *inputs, output_datatype=number, tolerance=1e-3, expect=[two.astype(kind)])
    # up to 4900 Hz one band, from 0 over 7 to 22, beyond the last frequency, 10
    inputs = [np.array(n, np.int32) for n in (1, 20, 2000)]
    one = [*(np.arange(7) / 7), 1, 14 / 15, 13 / 15, 12 / 15]
    for kind in (np.float16, np.float64, ml_dtypes.bfloat16):
        yield Example(17, *inputs, kind(0), kind(4900), expect=[np.array(one, f)[:, None]])
    # equal edges leave one frequency
    yield Example(17, *inputs[:2], 10**6, f(0), 100, expect=[np.eye(11, 1, dtype=f)])
    yield Example(17, 0, 6, 8, f(0), 4, expect=[np.zeros((4, 0), f)])
