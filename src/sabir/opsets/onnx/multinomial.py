"""Multinomial: random outcomes by their probabilities."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir import loops
from sabir.base import EvaluationError
from sabir.elements import DOUBLE, element
from sabir.ir import TensorType
from sabir.loops import Expression, Lowering, NotLowered
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.random import random_kernels, randomness
from sabir.opsets.families.shapes.ranks import check_rank
from sabir.opsets.families.shapes.sizes import allotted
from sabir.opsets.typing import Array
from sabir.schema import (
    BFLOAT16,
    FLOATS,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    at_least,
    tensors,
)

multinomial = Operator(
    "Multinomial",
    summary="Outcomes drawn independently with the probabilities `Softmax(input)` of each row.",
    random=True,
)

T1 = Constraint("T1", FLOATS)
T2 = Constraint("T2", tensors("int32", "int64"))

v7 = multinomial.first(
    7,
    inputs=[Input("input", T1, "Unnormalised logarithms of the probabilities, (batch, outcomes).")],
    outputs=[Output("output", T2, "The numbers of the outcomes, (batch, sample_size).")],
    attributes=[
        randomness.dtype("T2", "int32", default=6),
        randomness.SEED,
        Attribute("sample_size", "int", "The number of outcomes per row.", default=1, values=at_least(0)),
    ],
)
v22 = v7.widen(22, T1=BFLOAT16)

RANK = 2
_MOST_SAMPLES = 256  # for each of which a kernel reads all sums of its row
_BELOW_ONE = 1 - 2.0**-52  # a product with a number below 1 may be rounded to the other factor

v7.absent("downgrade", "no older operator draws from given probabilities")


@v7.infer
def infer(x: TensorType, /, *, dtype: int, sample_size: int) -> TensorType:
    check_rank("input", x, RANK)
    return TensorType(element(dtype), (None if x.shape is None else x.shape[0], sample_size))


@v7.evaluate
def evaluate(x: Array, /, *, dtype: int, sample_size: int, seed: float | None) -> Array:
    check_rank("input", x, RANK)
    sums = x.astype(np.float64)  # cumulative sums of the probabilities, computed in place
    sums -= sums.max(axis=1, keepdims=True, initial=-np.inf)
    np.exp(sums, out=sums)
    np.add.accumulate(sums, axis=1, out=sums)
    rows = (x.shape[0], sample_size)
    allotted(rows, np.dtype(np.complex128), x.size)  # several arrays of float64
    if 0 in rows:
        return np.zeros(rows, element(dtype).dtype)
    if not x.shape[1] or not (sums[:, -1] > 0).all():
        raise EvaluationError("a row has no outcome of positive probability, or NaN among its logarithms")
    whole = sums[:, -1:]
    drawn = randomness.unit(rows, DOUBLE, randomness.float_key(seed))
    drawn = np.minimum(drawn * whole, whole * _BELOW_ONE)
    return _first_above(sums, drawn).astype(element(dtype).dtype)


def _first_above(sums: Array, drawn: Array) -> Array:
    """Return for each drawn number the index of the first greater one in its row of sums, by bisection."""
    low = np.zeros(drawn.shape, np.intp)
    high = np.full(drawn.shape, sums.shape[1] - 1)
    for _ in range(sums.shape[1].bit_length()):
        middle = (low + high) // 2
        above = np.take_along_axis(sums, middle, axis=1) > drawn
        low, high = np.where(above, low, np.minimum(middle + 1, high)), np.where(above, middle, high)
    return low


@v7.lower
def lower(x: Expression, /, *, sample_size: int, seed: float | None, call: Lowering) -> Expression:
    """Count in each row the sums of probabilities that are not above what is drawn."""
    batch, outcomes = x.shape
    if 0 in {batch, outcomes, sample_size}:
        raise NotLowered("there are no rows, or nothing to draw from or to draw")
    if sample_size > _MOST_SAMPLES:
        raise NotLowered(f"bisection finds more than {_MOST_SAMPLES} outcomes of a row faster")
    wide = loops.cast(x, "double")
    powers = loops.apply("exp", loops.apply("sub", wide, loops.reduce("max", wide, [1])))
    sums = loops.cumulate("sum", powers, 1)
    whole = loops.narrow(sums, 1, outcomes - 1, 1)
    drawn = random_kernels.unit(call, (batch, sample_size), "double", randomness.float_key(seed))
    least = loops.cast(kernels.zero_if(loops.apply("gt", whole, 0)), "double")
    place = loops.apply("add", loops.apply("mul", drawn, whole), least)
    place = loops.apply("min", place, loops.apply("mul", whole, _BELOW_ONE))
    below = loops.apply(
        "le", loops.reshape(sums, (batch, 1, outcomes)), loops.reshape(place, (batch, sample_size, 1))
    )
    counts = loops.reduce("sum", loops.cast(below, "int64"), [2])
    return loops.cast(loops.squeeze(counts, [2]), random_kernels.result_element(call))


@multinomial.examples
def examples() -> Iterator[Example]:
    never = -np.inf  # of each row one outcome has all the probability
    x = np.array([[never, 5, never, never], [-9, never, never, never], [never, never, never, 0]])
    for opset in (7, 22):
        for kind in (np.float16, np.float32, np.float64):
            outcomes = [[1, 1], [0, 0], [3, 3]]
            yield Example(opset, x.astype(kind), sample_size=2, dtype=7, expect=[outcomes])
        yield Example(opset, x, expect=[np.array([[1], [0], [3]], np.int32)])
        yield Example(opset, [[1000.0, 0], [0, 1000]], seed=2.0, expect=[np.array([[0], [1]], np.int32)])
        yield Example(opset, np.zeros((2, 5), np.float32), sample_size=7, seed=1.5)
        yield Example(opset, np.zeros((0, 3), np.float32), sample_size=2, expect=[np.zeros((0, 2), np.int32)])
        yield Example(opset, x, sample_size=0, expect=[np.zeros((3, 0), np.int32)])
    yield Example(22, x.astype(ml_dtypes.bfloat16), expect=[np.array([[1], [0], [3]], np.int32)])
