"""ReduceMax: the greatest element over some axes."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.ir import dim_max
from sabir.opsets.families.reduction import reducing, reduction_gradients, reduction_kernels, reductions
from sabir.schema import BFLOAT16, BOOL, Example, Operator, tensors

reduce_max = Operator("ReduceMax", summary="The greatest element over `axes`; NaN where one of them is NaN.")

v1, v18 = reducing.declare(
    reduce_max,
    "The maxima; the least value of the type for no elements.",
    {12: tensors("int8", "uint8"), 13: BFLOAT16},
)
v20 = v18.widen(20, T=BOOL)

reductions.attach(v1, v18, reductions.extreme(np.maximum), dim_max)
reduction_kernels.attach(v1, v18, reduction_kernels.extreme("max"))
v18.gradient(reduction_gradients.extreme)


@reduce_max.examples
def examples() -> Iterator[Example]:
    yield from reducing.examples_of(
        lambda x: max(x, default=-np.inf), by_attribute=(1, 11, 12, 13), by_input=(18, 20)
    )
    rows = np.array([[1, 2, np.nan], [np.nan, 1, 2], [-np.inf, -1, np.inf]], np.float32)
    found = np.array([np.nan, np.nan, np.inf], np.float32)
    for dtype in (np.float16, np.float32, np.float64, ml_dtypes.bfloat16):  # NaN may be at any place
        yield Example(13, rows.astype(dtype), axes=[1], keepdims=0, expect=[found.astype(dtype)])
        yield Example(20, rows.astype(dtype), [1], keepdims=0, expect=[found.astype(dtype)])
    yield Example(12, np.array([-128, 127, 5], np.int8), expect=[[127]])
    yield Example(18, np.array([2**64 - 1, 3], np.uint64), keepdims=0, expect=[2**64 - 1])
    for dtype in (np.int8, np.uint8, np.int32, np.uint64):
        end = np.full(2, np.iinfo(dtype).min, dtype)
        yield Example(20, np.zeros((2, 0), dtype), [1], keepdims=0, expect=[end])
    truth = [[True, False], [True, True], [False, False]]
    yield Example(20, truth, [1], keepdims=0, expect=[[True, True, False]])
    yield Example(20, np.zeros((1, 0), bool), [1], expect=[[[False]]])
