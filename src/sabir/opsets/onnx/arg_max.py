"""ArgMax: the index of the greatest element along an axis."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.opsets.families.reduction import extremes, reduction_kernels
from sabir.schema import BFLOAT16, NUMBERS, Constraint, Example, Operator

arg_max = Operator(
    "ArgMax", summary="The index of the greatest element along `axis`; NaN counts as the greatest."
)

T = Constraint("T", NUMBERS)

v1 = arg_max.first(1, inputs=extremes.inputs(T), outputs=extremes.outputs(), attributes=extremes.ATTRIBUTES)
v11 = v1.restate(11, "A negative `axis` counts from the end.")
v12 = v11.extend(
    12,
    "`select_last_index` chooses the last of several greatest elements.",
    attributes=[extremes.last_index("greatest")],
)
v13 = v12.widen(13, T=BFLOAT16)

v1.infer(extremes.infer)
v1.evaluate(extremes.first(np.argmax))
v12.evaluate(extremes.first_or_last(np.argmax))
v1.lower(reduction_kernels.place_of_extreme("argmax"))


@arg_max.examples
def examples() -> Iterator[Example]:
    yield from extremes.examples_of(max, 1, 11, 12, 13, last_since=12)
    yield Example(13, np.array([2**64 - 2, 2**64 - 1], np.uint64), expect=[[1]])
    special = np.array([[-np.inf, -np.inf], [1, np.nan], [np.nan, np.inf]], ml_dtypes.bfloat16)
    yield Example(13, special, axis=1, keepdims=0, expect=[[0, 1, 0]])
    yield Example(13, special, axis=1, keepdims=0, select_last_index=1, expect=[[1, 1, 0]])
