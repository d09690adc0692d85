"""RandomUniform: random numbers of the uniform distribution."""

from collections.abc import Iterator

from sabir.elements import element
from sabir.loops import Expression, Lowering
from sabir.opsets.families.random import random_kernels, randomness
from sabir.opsets.typing import Array
from sabir.schema import BFLOAT16, FLOATS, Constraint, Example, Operator, Output

random_uniform = Operator(
    "RandomUniform",
    summary="Independent random numbers of the uniform distribution over `[low, high)`.",
    random=True,
)

T = Constraint("T", FLOATS)

v1 = random_uniform.first(
    1,
    outputs=[Output("output", T, "The random numbers, in the shape that `shape` specifies.")],
    attributes=[
        randomness.SHAPE,
        randomness.dtype("T", "float", default=1),
        randomness.SEED,
        *randomness.UNIFORM,
    ],
)
v22 = v1.widen(22, T=BFLOAT16)

v1.infer(randomness.infer)


@v1.evaluate
def evaluate(*, shape: tuple[int, ...], dtype: int, low: float, high: float, seed: float | None) -> Array:
    return randomness.uniform(shape, element(dtype), low, high, randomness.float_key(seed))


@v1.lower
def lower(*, low: float, high: float, seed: float | None, call: Lowering) -> Expression:
    return random_kernels.uniform(call, low, high, randomness.float_key(seed))


@random_uniform.examples
def examples() -> Iterator[Example]:
    yield from randomness.examples_of(1.5, 1, 22, bfloat16=22, low=1.5, high=1.5)
