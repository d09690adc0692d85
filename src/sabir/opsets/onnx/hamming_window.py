"""HammingWindow: a raised cosine that stays above 0."""

from collections.abc import Iterator

from sabir.ir import Builder, TensorType, Value
from sabir.loops import Expression, Lowering
from sabir.opsets.families.spectra import cosine_window_kernels, cosine_windows
from sabir.opsets.typing import Array
from sabir.schema import Example, Operator

hamming_window = Operator("HammingWindow", summary="`25/46 - 21/46 cos(t)`, with t from 0 to a full turn.")

v17 = hamming_window.first(
    17,
    inputs=[cosine_windows.SIZE],
    outputs=[cosine_windows.OUTPUT],
    attributes=[cosine_windows.PERIODIC, cosine_windows.OUTPUT_DATATYPE],
)

TERMS = (25 / 46, 21 / 46)


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


@hamming_window.examples
def examples() -> Iterator[Example]:
    quarters, sixths = [4 / 46, 25 / 46, 1, 25 / 46], [4 / 46, 29 / 92, 71 / 92, 1, 71 / 92, 29 / 92]
    yield from cosine_windows.examples(17, quarters, sixths)
