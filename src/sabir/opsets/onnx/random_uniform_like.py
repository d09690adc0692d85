"""RandomUniformLike: random numbers of the uniform distribution, in the shape of another tensor."""

from collections.abc import Iterator

from sabir.elements import element
from sabir.loops import Expression, Lowering
from sabir.opsets.families.random import random_kernels, randomness
from sabir.opsets.typing import Array
from sabir.schema import BFLOAT16, CLASSIC, FLOATS, Constraint, Example, Input, Operator, Output

random_uniform_like = Operator(
    "RandomUniformLike",
    summary="Independent random numbers over `[low, high)`, in the shape of another tensor.",
    random=True,
)

T1 = Constraint("T1", CLASSIC)
T2 = Constraint("T2", FLOATS)

v1 = random_uniform_like.first(
    1,
    inputs=[Input("input", T1, "A tensor, for its shape and its element type where `dtype` is absent.")],
    outputs=[Output("output", T2, "The random numbers, in the shape of the input.")],
    attributes=[randomness.dtype("T2", "that of the input"), randomness.SEED, *randomness.UNIFORM],
)
v22 = v1.widen(22, T1=BFLOAT16, T2=BFLOAT16)

v1.infer(randomness.infer_like)


@v1.evaluate
def evaluate(x: Array, /, *, dtype: int | None, low: float, high: float, seed: float | None) -> Array:
    return randomness.uniform(
        x.shape, element(x.dtype if dtype is None else dtype), low, high, randomness.float_key(seed)
    )


@v1.lower
def lower(x: Expression, /, *, low: float, high: float, seed: float | None, call: Lowering) -> Expression:
    return random_kernels.uniform(call, low, high, randomness.float_key(seed))


@random_uniform_like.examples
def examples() -> Iterator[Example]:
    yield from randomness.examples_like(1.5, 1, 22, bfloat16=22, low=1.5, high=1.5)
