"""RandomUniformLike: random numbers of the uniform distribution, in the shape of another tensor."""

from collections.abc import Iterator

from sabir.opsets.families.random import distributions, randomness
from sabir.schema import Example, Operator

random_uniform_like = Operator(
    "RandomUniformLike",
    summary="Independent random numbers over `[low, high)`, in the shape of another tensor.",
    random=True,
)

distributions.declare_like(random_uniform_like, distributions.UNIFORM)


@random_uniform_like.examples
def examples() -> Iterator[Example]:
    yield from randomness.examples_like(1.5, 1, 22, bfloat16=22, low=1.5, high=1.5)
