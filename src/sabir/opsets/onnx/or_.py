"""Or: logical disjunction, elementwise."""

from collections.abc import Iterator

import numpy as np

from sabir.elements import BOOL as BOOLEAN
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers import binary, broadcasting, logic
from sabir.schema import BOOL, Constraint, Example, Operator

disjunction = Operator("Or", summary="Whether at least one of the two elements is true.")

T = Constraint("T", BOOL)
T1 = Constraint("T1", BOOL)

v1 = disjunction.first(
    1,
    inputs=binary.inputs(T, differentiable=False),
    outputs=binary.outputs(T1, differentiable=False),
    attributes=binary.one_way(),
)
v7 = v1.evolve(7, "Broadcasts both inputs, as numpy does.", drop=["axis", "broadcast"])

v7.infer(logic.known_either)
v7.evaluate(binary.elementwise(np.logical_or))
v7.lower(kernels.elementwise("or"))
broadcasting.one_way_before(v7, element=BOOLEAN, commutes=True)
v1.absent("gradient", "the results are truth values")


@disjunction.examples
def examples() -> Iterator[Example]:
    yield from logic.examples_of("or_", one_way=(1,), both_ways=(7,))
