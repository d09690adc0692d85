"""BitwiseXor: bits set in exactly one of two, elementwise."""

from collections.abc import Iterator

import numpy as np

from sabir.opsets.families.equivalents import bit_graphs
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers import binary, broadcasting
from sabir.schema import INTEGERS, Constraint, Example, Operator

bitwise_xor = Operator("BitwiseXor", summary="The bits that are set in exactly one of the two elements.")

T = Constraint("T", INTEGERS)

v18 = bitwise_xor.first(
    18, inputs=binary.inputs(T, differentiable=False), outputs=binary.outputs(T, differentiable=False)
)

v18.infer(broadcasting.merged)
v18.evaluate(binary.elementwise(np.bitwise_xor))
v18.lower(kernels.elementwise("bitwise_xor"))
v18.downgrade(bit_graphs.by_bits(bit_graphs.one))
v18.absent("gradient", "the results are integers")


@bitwise_xor.examples
def examples() -> Iterator[Example]:
    for dtype in (np.uint8, np.uint16, np.uint32, np.uint64, np.int8, np.int16, np.int32, np.int64):
        a, b = np.array([0b1100, 0b0111], dtype), [[0b1010], [0]]
        yield Example(18, a, b, expect=[[[0b0110, 0b1101], [0b1100, 0b0111]]])
    yield Example(18, np.array([-1, -128, 6], np.int8), -2, expect=[[1, 126, -8]])
    yield Example(18, np.uint64(2**64 - 1), 2**63, expect=[2**63 - 1])
    yield Example(18, np.zeros((0, 2), np.int8), 1, expect=[np.zeros((0, 2), np.int8)])
