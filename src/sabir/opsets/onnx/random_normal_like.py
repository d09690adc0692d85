"""RandomNormalLike: random numbers of the normal distribution, in the shape of another tensor."""

from collections.abc import Iterator

from sabir.opsets.families.random import distributions, randomness
from sabir.schema import Example, Operator

random_normal_like = Operator(
    "RandomNormalLike",
    summary="Independent random numbers of a normal distribution, in the shape of a tensor.",
    random=True,
)

distributions.declare_like(random_normal_like, distributions.NORMAL)


@random_normal_like.examples
def examples() -> Iterator[Example]:
    yield from randomness.examples_like(1.5, 1, 22, bfloat16=22, mean=1.5, scale=0.0)
