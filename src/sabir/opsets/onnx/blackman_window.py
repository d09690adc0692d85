"""BlackmanWindow: a sum of two cosines."""

from collections.abc import Iterator

from sabir.ir import Builder, TensorType, Value
from sabir.loops import Expression, Lowering
from sabir.opsets.families.spectra import cosine_window_kernels, cosine_windows
from sabir.opsets.typing import Array
from sabir.schema import Example, Operator

blackman_window = Operator(
    "BlackmanWindow", summary="`0.42 - 0.5 cos(t) + 0.08 cos(2t)`, with t from 0 to a full turn."
)

v17 = blackman_window.first(
    17,
    inputs=[cosine_windows.SIZE],
    outputs=[cosine_windows.OUTPUT],
    attributes=[cosine_windows.PERIODIC, cosine_windows.OUTPUT_DATATYPE],
)

TERMS = (0.42, 0.5, 0.08)


@v17.infer
def infer(size: TensorType, /, *, output_datatype: int) -> TensorType:
    return cosine_windows.infer(size, output_datatype)


@v17.evaluate
def evaluate(size: Array, /, *, periodic: int, output_datatype: int) -> Array:
    return cosine_windows.sample(size, TERMS, output_datatype, periodic=bool(periodic))


@v17.lower
def lower(size: Expression, /, *, periodic: int, output_datatype: int, call: Lowering) -> Expression:
    return cosine_window_kernels.sampled(size, TERMS, output_datatype, call, periodic=bool(periodic))


@v17.body
def body(b: Builder, size: Value, /, *, periodic: int, output_datatype: int) -> Value:
    return cosine_windows.graph(b, size, TERMS, output_datatype, periodic=bool(periodic))


@blackman_window.examples
def examples() -> Iterator[Example]:
    quarters, sixths = [0, 0.34, 1, 0.34], [0, 0.13, 0.63, 1, 0.63, 0.13]
    yield from cosine_windows.examples(17, quarters, sixths)
