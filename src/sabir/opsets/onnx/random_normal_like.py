"""RandomNormalLike: random numbers of the normal distribution, in the shape of another tensor."""

from collections.abc import Iterator

from sabir.elements import element
from sabir.loops import Expression, Lowering
from sabir.opsets.families.random import random_kernels, randomness
from sabir.opsets.typing import Array
from sabir.schema import BFLOAT16, CLASSIC, FLOATS, Constraint, Example, Input, Operator, Output

random_normal_like = Operator(
    "RandomNormalLike",
    summary="Independent random numbers of a normal distribution, in the shape of a tensor.",
    random=True,
)

T1 = Constraint("T1", CLASSIC)
T2 = Constraint("T2", FLOATS)

v1 = random_normal_like.first(
    1,
    inputs=[Input("input", T1, "A tensor, for its shape and its element type where `dtype` is absent.")],
    outputs=[Output("output", T2, "The random numbers, in the shape of the input.")],
    attributes=[randomness.dtype("T2", "that of the input"), randomness.SEED, *randomness.NORMAL],
)
v22 = v1.widen(22, T1=BFLOAT16, T2=BFLOAT16)

v1.infer(randomness.infer_like)


@v1.evaluate
def evaluate(x: Array, /, *, dtype: int | None, mean: float, scale: float, seed: float | None) -> Array:
    return randomness.normal(
        x.shape, element(x.dtype if dtype is None else dtype), mean, scale, randomness.float_key(seed)
    )


@v1.lower
def lower(x: Expression, /, *, mean: float, scale: float, seed: float | None, call: Lowering) -> Expression:
    return random_kernels.normal(call, mean, scale, randomness.float_key(seed))


@random_normal_like.examples
def examples() -> Iterator[Example]:
    yield from randomness.examples_like(1.5, 1, 22, bfloat16=22, mean=1.5, scale=0.0)
