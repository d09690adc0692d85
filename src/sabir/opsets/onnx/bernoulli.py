"""Bernoulli: random zeros and ones."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir import loops
from sabir.elements import DOUBLE, FLOAT, element
from sabir.ir import Builder, TensorType, Value
from sabir.loops import Expression, Lowering
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers import casting
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.random import random_kernels, randomness
from sabir.opsets.typing import Array
from sabir.schema import (
    BFLOAT16,
    BOOL,
    FLOATS,
    NUMBERS,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    Unconvertible,
)

bernoulli = Operator("Bernoulli", summary="1 with the probability in the input, 0 otherwise.", random=True)

T1 = Constraint("T1", FLOATS)
T2 = Constraint("T2", NUMBERS, BFLOAT16, BOOL)

v15 = bernoulli.first(
    15,
    inputs=[Input("input", T1, "Probabilities, each in [0, 1].")],
    outputs=[Output("output", T2, "Zeros and ones, in the input's shape.")],
    attributes=[randomness.dtype("T2", "that of the input"), randomness.SEED],
)
v22 = v15.widen(22, T1=BFLOAT16)


v15.infer(randomness.infer_like)


@v15.evaluate
def evaluate(x: Array, /, *, dtype: int | None, seed: float | None) -> Array:
    p = widened(x)
    if not ((p >= 0) & (p <= 1)).all():
        raise ValueError("a probability is outside [0, 1]")
    drawn = randomness.unit(x.shape, element(p.dtype), randomness.float_key(seed))
    return casting.converted(drawn < p, element(x.dtype if dtype is None else dtype))


@v15.lower
def lower(x: Expression, /, *, seed: float | None, call: Lowering) -> Expression:
    loops.check_computed(x.element)
    inside = loops.apply("and", loops.apply("ge", x, 0), loops.apply("le", x, 1))
    drawn = random_kernels.unit(call, x.shape, x.element, randomness.float_key(seed))
    least = loops.cast(kernels.zero_if(inside), x.element)
    return loops.cast(
        loops.apply("lt", loops.apply("add", drawn, least), x), random_kernels.result_element(call)
    )


@v15.body
def body(b: Builder, x: Value, /, *, dtype: int | None, seed: float | None) -> Value:
    """Draw in float or double; a half might round a number below 1 to 1."""
    kind = x.type.element if isinstance(x.type, TensorType) else None
    if kind is None or not kind.number:
        raise Unconvertible(
            "the element type of the probabilities is unknown, and decides the type to draw in"
        )
    precision = DOUBLE if kind is DOUBLE else FLOAT
    drawn = b.RandomUniformLike(x, dtype=precision.number, seed=seed)
    return b.Cast(b.Less(drawn, b.Cast(x, to=precision.number)), to=kind.number if dtype is None else dtype)


@bernoulli.examples
def examples() -> Iterator[Example]:
    sure = np.array([[0, 1], [1, 0]], np.float32)
    for opset in (15, 22):
        for kind in (np.float16, np.float32, np.float64):
            yield Example(opset, sure.astype(kind), seed=3.0, expect=[sure.astype(kind)])
            yield Example(opset, np.full((3, 2), 0.5, kind), dtype=7)
        for name in ("bool", "int8", "uint64", "double", "bfloat16"):
            to = element(name)
            yield Example(opset, sure, dtype=to.number, expect=[sure.astype(to.dtype)])
        yield Example(opset, np.zeros((0, 2), np.float32), expect=[np.zeros((0, 2), np.float32)])
        yield Example(opset, np.float64(1), expect=[np.float64(1)])
    yield Example(22, sure.astype(ml_dtypes.bfloat16), expect=[sure.astype(ml_dtypes.bfloat16)])
