"""If: one of two subgraphs, by a scalar condition."""

from collections.abc import Iterator
from itertools import starmap

import numpy as np

from sabir.base import InferenceError
from sabir.ir import Graph, TensorType, Type, Value
from sabir.loops import Branch, Expression, LoweredSubgraph, NotLowered, Stored
from sabir.opsets.families.iteration import iterations
from sabir.opsets.typing import Array, Gradient, Subgraph
from sabir.schema import (
    BOOL,
    CLASSIC,
    FLOAT8,
    SMALL_TYPES,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    as_results,
)

conditional = Operator(
    "If", summary="The outputs of `then_branch` where `cond` is true, else those of `else_branch`."
)

V = Constraint("V", CLASSIC)
B = Constraint("B", BOOL)

v1 = conditional.first(
    1,
    inputs=[Input("cond", B, "One element: the condition.", decides=True)],
    outputs=[Output("outputs", V, "The outputs of the chosen branch.", variadic=True, heterogeneous=True)],
    attributes=[
        Attribute("else_branch", "graph", "Run where `cond` is false; has no inputs.", required=True),
        Attribute("then_branch", "graph", "Run where `cond` is true; has no inputs.", required=True),
    ],
)
v11 = v1.restate(11, "The shapes of the branches may differ; the output has what they share.")
v13 = v11.widen(13, V=iterations.SEQUENCES)
v16 = v13.widen(16, V=iterations.OPTIONALS_AND_BFLOAT16)
v25 = v16.widen_stepwise(iterations.with_containers({19: FLOAT8, **SMALL_TYPES}), "V")


@v1.infer
def infer(
    cond: TensorType, /, *, then_branch: Subgraph[Type | None], else_branch: Subgraph[Type | None]
) -> tuple[Type | None, ...]:
    iterations.check_one("`cond`", cond)
    counts = len(then_branch.outputs), len(else_branch.outputs)
    if counts[0] != counts[1]:
        raise InferenceError(f"then_branch has {counts[0]} outputs, else_branch {counts[1]}")
    if cond.known is not None and cond.known[0] is not None:
        # a branch that never runs need not fit these shapes
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
def evaluate(
    cond: Array, /, *, then_branch: Subgraph[Array], else_branch: Subgraph[Array]
) -> tuple[Array, ...]:
    return then_branch() if iterations.one_of("`cond`", cond).item() else else_branch()


@v1.lower
def lower(
    cond: Expression, /, *, then_branch: LoweredSubgraph, else_branch: LoweredSubgraph
) -> Branch | tuple[Expression, ...]:
    if any(size != 1 for size in cond.shape):
        raise NotLowered("whether the condition has one element is known at run time only")
    if isinstance(cond, Stored) and cond.known is not None:
        return then_branch() if cond.known[0] else else_branch()
    return Branch(cond, then_branch, else_branch)


@v16.gradient
def gradient(g: Gradient, cond: Value, /, *, then_branch: Graph, else_branch: Graph) -> None:
    """An If of the branches' backward bodies; what these read of the branches are further outputs."""
    branches = then_branch, else_branch
    captured, backward = g.captured(*branches), [g.backward(branch) for branch in branches]
    runs = _branches_that_run(cond)
    found = [
        back.gradients(zip(branch.outputs, g.dys, strict=False), captured) if run else [None] * len(captured)
        for back, branch, run in zip(backward, branches, runs, strict=True)
    ]
    reached = [i for i in range(len(captured)) if any(ds[i] is not None for ds in found)]
    for back, ds in zip(backward, found, strict=True):
        back.close(back.zeros(captured[i]) if (d := ds[i]) is None else d for i in reached)
    residuals = [(back, value) for back in backward for value in back.residuals()]
    carried = g.carry(branches, [value for _, value in residuals], len(then_branch.outputs))
    for (back, value), output in zip(residuals, carried, strict=True):
        back.redirect(value, output)
    if reached:
        then, other = (back.graph for back in backward)
        results = as_results(g.If(cond, then_branch=then, else_branch=other, outputs=len(reached)))
        for i, d in zip(reached, results, strict=True):
            g.add(captured[i], d)


def _branches_that_run(cond: Value) -> tuple[bool, bool]:
    """Return for each branch whether it may run; inference knows no types in one that never does."""
    known = cond.type.known if isinstance(cond.type, TensorType) else None
    return (True, True) if known is None or known[0] is None else (bool(known[0]), not known[0])


@conditional.examples
def examples() -> Iterator[Example]:
    then = "yes () => (float[2] y) { y = Constant <value = float[2] {1.0, 2.0}> () }"
    other = "no () => (float[2] z) { z = Constant <value = float[2] {3.0, 4.0}> () }"
    y, z = np.array([[1, 2], [3, 4]], np.float32)
    for opset in (9, 11, 13, 16, 19, 21, 23, 24, 25):
        for cond, chosen in ((True, y), (False, z)):
            yield Example(opset, cond, then_branch=then, else_branch=other, expect=[chosen])
