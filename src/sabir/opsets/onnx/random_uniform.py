"""RandomUniform: random numbers of the uniform distribution."""

from collections.abc import Iterator

from sabir.opsets.families.random import distributions, randomness
from sabir.schema import Example, Operator

random_uniform = Operator(
    "RandomUniform",
    summary="Independent random numbers of the uniform distribution over `[low, high)`.",
    random=True,
)

distributions.declare(random_uniform, distributions.UNIFORM)


@random_uniform.examples
def examples() -> Iterator[Example]:
    yield from randomness.examples_of(1.5, 1, 22, bfloat16=22, low=1.5, high=1.5)
