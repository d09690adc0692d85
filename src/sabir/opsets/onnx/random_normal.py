"""RandomNormal: random numbers of the normal distribution."""

from collections.abc import Iterator

from sabir.opsets.families.random import distributions, randomness
from sabir.schema import Example, Operator

random_normal = Operator(
    "RandomNormal", summary="Independent random numbers of a normal distribution.", random=True
)

distributions.declare(random_normal, distributions.NORMAL)


@random_normal.examples
def examples() -> Iterator[Example]:
    yield from randomness.examples_of(1.5, 1, 22, bfloat16=22, mean=1.5, scale=0.0)
