"""And: logical conjunction, elementwise."""

from collections.abc import Iterator

import numpy as np

from sabir.elements import BOOL as BOOLEAN
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers import binary, broadcasting, logic
from sabir.schema import BOOL, Constraint, Example, Operator

conjunction = Operator("And", summary="Whether both elements are true.")

T = Constraint("T", BOOL)
T1 = Constraint("T1", BOOL)

v1 = conjunction.first(
    1,
    inputs=binary.inputs(T, differentiable=False),
    outputs=binary.outputs(T1, differentiable=False),
    attributes=binary.one_way(),
)
v7 = v1.evolve(7, "Broadcasts both inputs, as numpy does.", drop=["axis", "broadcast"])

v7.infer(logic.known_both)
v7.evaluate(binary.elementwise(np.logical_and))
v7.lower(kernels.elementwise("and"))
broadcasting.one_way_before(v7, element=BOOLEAN, commutes=True)
v1.absent("gradient", "the results are truth values")


@conjunction.examples
def examples() -> Iterator[Example]:
    yield from logic.examples_of("and_", one_way=(1,), both_ways=(7,))
