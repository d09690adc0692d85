"""RandomNormal: random numbers of the normal distribution."""

from collections.abc import Iterator

from sabir.elements import element
from sabir.loops import Expression, Lowering
from sabir.opsets.families.random import random_kernels, randomness
from sabir.opsets.typing import Array
from sabir.schema import BFLOAT16, FLOATS, Constraint, Example, Operator, Output

random_normal = Operator(
    "RandomNormal", summary="Independent random numbers of a normal distribution.", random=True
)

T = Constraint("T", FLOATS)

v1 = random_normal.first(
    1,
    outputs=[Output("output", T, "The random numbers, in the shape that `shape` specifies.")],
    attributes=[
        randomness.SHAPE,
        randomness.dtype("T", "float", default=1),
        randomness.SEED,
        *randomness.NORMAL,
    ],
)
v22 = v1.widen(22, T=BFLOAT16)

v1.infer(randomness.infer)


@v1.evaluate
def evaluate(*, shape: tuple[int, ...], dtype: int, mean: float, scale: float, seed: float | None) -> Array:
    return randomness.normal(shape, element(dtype), mean, scale, randomness.float_key(seed))


@v1.lower
def lower(*, mean: float, scale: float, seed: float | None, call: Lowering) -> Expression:
    return random_kernels.normal(call, mean, scale, randomness.float_key(seed))


@random_normal.examples
def examples() -> Iterator[Example]:
    yield from randomness.examples_of(1.5, 1, 22, bfloat16=22, mean=1.5, scale=0.0)
