"""HannWindow: one period of a raised cosine."""

from collections.abc import Iterator

from sabir.ir import Builder, TensorType, Value
from sabir.loops import Expression, Lowering
from sabir.opsets.families.spectra import cosine_window_kernels, cosine_windows
from sabir.opsets.typing import Array
from sabir.schema import Example, Operator

hann_window = Operator("HannWindow", summary="`(1 - cos(t)) / 2`, with t from 0 to a full turn.")

v17 = hann_window.first(
    17,
    inputs=[cosine_windows.SIZE],
    outputs=[cosine_windows.OUTPUT],
    attributes=[cosine_windows.PERIODIC, cosine_windows.OUTPUT_DATATYPE],
)

TERMS = (0.5, 0.5)


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


@hann_window.examples
def examples() -> Iterator[Example]:
    quarters, sixths = [0, 0.5, 1, 0.5], [0, 0.25, 0.75, 1, 0.75, 0.25]
    yield from cosine_windows.examples(17, quarters, sixths)
