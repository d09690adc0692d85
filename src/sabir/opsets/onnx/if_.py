"""If: one of two subgraphs, by a scalar condition."""

from collections.abc import Iterator
from itertools import starmap

import numpy as np

from sabir.base import InferenceError
from sabir.ir import TensorType, Type
from sabir.opsets.families.iterations import check_one, one_of
from sabir.opsets.typing import Array, Body
from sabir.schema import (
    BFLOAT16,
    BOOL,
    CLASSIC,
    FLOAT4,
    FLOAT8,
    FLOAT8E8M0,
    INT2,
    INT4,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    optionals,
    sequences,
)

conditional = Operator(
    "If", summary="The outputs of `then_branch` where `cond` holds, else those of `else_branch`."
)

V = Constraint("V", CLASSIC)
B = Constraint("B", BOOL)

v1 = conditional.first(
    1,
    inputs=[Input("cond", B, "One element that decides.", decides=True)],
    outputs=[Output("outputs", V, "What the chosen branch gives.", variadic=True, heterogeneous=True)],
    attributes=[
        Attribute("else_branch", "graph", "Run where `cond` is false; takes no inputs.", required=True),
        Attribute(
            "then_branch", "graph", "Run where `cond` is true; as many outputs as the other.", required=True
        ),
    ],
)
v11 = v1.restate(11, "The branches may give different shapes; the output's is what they share.")
v13 = v11.widen(13, V=sequences(CLASSIC))
v16 = v13.widen(
    16,
    V=BFLOAT16
    | sequences(BFLOAT16)
    | optionals(CLASSIC | sequences(CLASSIC) | BFLOAT16 | sequences(BFLOAT16)),
)
v19 = v16.widen(19, V=FLOAT8 | sequences(FLOAT8) | optionals(FLOAT8))
v21 = v19.widen(21, V=INT4 | sequences(INT4) | optionals(INT4))
v23 = v21.widen(23, V=FLOAT4 | sequences(FLOAT4) | optionals(FLOAT4))
v24 = v23.widen(24, V=FLOAT8E8M0 | sequences(FLOAT8E8M0) | optionals(FLOAT8E8M0))
v25 = v24.widen(25, V=INT2 | sequences(INT2) | optionals(INT2))


@v1.infer
def infer(
    cond: TensorType, /, *, then_branch: Body[Type | None], else_branch: Body[Type | None]
) -> tuple[Type | None, ...]:
    check_one("`cond`", cond)
    ways = len(then_branch.outputs), len(else_branch.outputs)
    if ways[0] != ways[1]:
        raise InferenceError(f"then_branch gives {ways[0]} outputs, else_branch {ways[1]}")
    if cond.known is not None and cond.known[0] is not None:
        # what is never run need not fit the shapes at hand
        return then_branch() if cond.known[0] else else_branch()
    then, other = then_branch(), else_branch()
    return tuple(starmap(_joined, zip(then, other, strict=True)))


def _joined(then: Type | None, other: Type | None) -> Type | None:
    if then is None or other is None:
        return None
    try:
        return then.join(other)
    except TypeError as mix:
        raise InferenceError(f"the branches disagree: {mix}") from mix


@v1.evaluate
def evaluate(cond: Array, /, *, then_branch: Body[Array], else_branch: Body[Array]) -> tuple[Array, ...]:
    return then_branch() if one_of("`cond`", cond).item() else else_branch()


@conditional.examples
def examples() -> Iterator[Example]:
    then = "yes () => (float[2] y) { y = Constant <value = float[2] {1.0, 2.0}> () }"
    other = "no () => (float[2] z) { z = Constant <value = float[2] {3.0, 4.0}> () }"
    for opset in (9, 11, 13, 16, 19, 21, 23, 24, 25):
        for cond, expect in ((True, [1, 2]), (False, [3, 4])):
            yield Example(
                opset,
                np.array(cond),
                then_branch=then,
                else_branch=other,
                expect=[np.array(expect, np.float32)],
            )
