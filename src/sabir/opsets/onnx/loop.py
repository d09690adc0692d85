"""Loop: a subgraph repeated a number of times or while a condition is true.

The standard says that the iteration number and the condition are scalars. Some exporters declare them
`int64[1]` and `bool[1]`, and compute with that shape in the body. This room passes the declared shape, as
onnxruntime does; a body that declares none gets scalars.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sabir.base import EvaluationError, InferenceError
from sabir.elements import BOOL as BOOLEAN
from sabir.elements import INT64
from sabir.ir import Builder, Dim, Expr, Graph, OptionalType, TensorType, Type, Value, dim_max, lower_bound
from sabir.loops import Expression, Iterate, LoweredSubgraph, NotLowered
from sabir.opsets.families.iteration import iterations
from sabir.opsets.families.iteration.iteration_gradients import (
    Iteration,
    Slices,
    State,
    at,
    gradient_of_steps,
)
from sabir.opsets.typing import Array, Gradient, Repeatable, Subgraph
from sabir.schema import (
    BOOL,
    CLASSIC,
    FLOAT8,
    SMALL_TYPES,
    Attribute,
    Call,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    Unconvertible,
    tensors,
)

loop = Operator(
    "Loop",
    summary="Runs `body` up to M times while its condition is true; carries values, stacks other outputs.",
)

_MANY = 16  # iterations for which an engine may prepare the body

V = Constraint("V", CLASSIC)
I = Constraint("I", tensors("int64"))  # ruff: ignore[ambiguous-variable-name]  the standard's name
B = Constraint("B", BOOL)

M = Input(
    "M",
    I,
    "The maximum of iterations; without it only the condition ends the loop.",
    optional=True,
    to_subgraph=True,
)
COND = Input(
    "cond",
    B,
    "Whether the loop starts; without it the body's conditions are ignored.",
    optional=True,
    to_subgraph=True,
)

v1 = loop.first(
    1,
    inputs=[
        M,
        COND,
        Input(
            "v_initial", V, "The initial carried values.", variadic=True, heterogeneous=True, to_subgraph=True
        ),
    ],
    outputs=[
        Output(
            "v_final_and_scan_outputs",
            V,
            "The final carried values, then the body's other outputs stacked over the iterations.",
            variadic=True,
            heterogeneous=True,
        )
    ],
    attributes=[
        Attribute(
            "body",
            "graph",
            "Its inputs are the iteration number, the condition and the carried values; its outputs are the "
            "next condition, the next carried values and the outputs to stack.",
            required=True,
        )
    ],
)
v11 = v1.evolve(
    11,
    "A loop may have no carried values.",
    inputs=[
        M,
        COND,
        Input(
            "v_initial",
            V,
            "The initial carried values.",
            variadic=True,
            minimum=0,
            heterogeneous=True,
            to_subgraph=True,
        ),
    ],
)
v13 = v11.widen(13, V=iterations.SEQUENCES)
v16 = v13.widen(16, V=iterations.OPTIONALS_AND_BFLOAT16)
v25 = v16.widen_stepwise(iterations.with_containers({19: FLOAT8, **SMALL_TYPES}), "V")


@v1.infer
def infer(
    most: TensorType | None = None,
    cond: TensorType | None = None,
    /,
    *initial: Type | None,
    body: Subgraph[Type | None],
    call: Call,
) -> tuple[Type | None, ...]:
    iterations.check_one("`M`", most)
    iterations.check_one("`cond`", cond)
    number = TensorType(INT64, iterations.shape_of_one(body.inputs, 0))
    going = TensorType(BOOLEAN, iterations.shape_of_one(body.inputs, 1))

    def step(*carried: Type | None) -> tuple[Type | None, ...]:
        again, rest = (results := body(number, *carried))[:1], results[1:]
        return (*(_again(kind, going) for kind in again), *rest)

    begins = going.with_known((True,) if cond is None else cond.known)
    carried, results = iterations.settle(step, [begins, *initial])
    if len(results) <= len(call.outputs):
        raise InferenceError(f"the body has {len(results)} outputs, and must have {len(call.outputs) + 1}")
    # a condition that is true initially, and after every iteration in which it is true, is always true
    goes_on = cond is None or _first(carried[0]) is True
    count = _trip_count(most, never=begins.known == (False,), goes_on=goes_on)
    final: tuple[Type | None, ...] = tuple(map(_either, carried[1:], results[1:]))
    if count == 0:
        final = initial
    elif (lower_bound(count) or 0) > 0:
        final = results[1 : len(carried)]
    return (*final, *(iterations.stacked(r, count) for r in results[len(carried) :]))


def _again(kind: Type | None, going: TensorType) -> Type | None:
    """Return the type of the body's condition as an input of the next iteration."""
    iterations.check_one("the body's condition", kind)
    if not isinstance(kind, TensorType):
        return kind
    return TensorType(kind.element, going.shape, kind.known)


def _either(carried: Type | None, result: Type | None) -> Type | None:
    """Return the type of a final value, whether or not an iteration runs."""
    changes = (
        isinstance(carried, OptionalType) and result is not None and not isinstance(result, OptionalType)
    )
    return None if changes else carried


def _trip_count(most: TensorType | None, *, never: bool, goes_on: bool) -> Dim:
    limit = _first(most)
    count = dim_max(limit, 0) if isinstance(limit, (int, Expr)) else None
    if never or count == 0:
        return 0
    return count if goes_on else None


def _first(kind: Type | None) -> object:
    return kind.known[0] if isinstance(kind, TensorType) and kind.known else None


@loop.check
def check(
    most: TensorType | None = None, cond: TensorType | None = None, /, *_: Type | None
) -> Iterator[str]:
    if most is None and cond is None:
        yield "without M and without cond the loop never ends"


@v1.evaluate
def evaluate(
    most: Array | None = None, cond: Array | None = None, /, *initial: Any, body: Subgraph[Any]
) -> tuple[Any, ...]:
    if most is None and cond is None:
        raise EvaluationError("without M and without cond the loop would never end")
    carried = len(initial)
    if len(body.outputs) <= carried:
        raise EvaluationError(f"the body has {len(body.outputs)} outputs for {carried} carried values")
    limit = None if most is None else iterations.one_of("`M`", most).item()
    going = np.ones((), np.bool_) if cond is None else iterations.one_of("`cond`", cond)
    shape_of_number, shape_of_going = (iterations.shape_of_one(body.inputs, place) for place in (0, 1))
    starts = cond is None or bool(going)
    if starts and (limit is None or limit >= _MANY) and isinstance(body, Repeatable):
        number = np.zeros(shape_of_number, np.int64)
        inputs = (number, going.reshape(shape_of_going), *initial)
        loops = body.repeat(inputs, limit, conditional=cond is not None)
        if loops is not None:
            return (*loops.state[1:], *loops.stacks)
    state, count, gathered = initial, 0, iterations.Gathered(len(body.outputs) - 1 - carried)
    while (cond is None or going) and (limit is None or count < limit):
        number = np.full(shape_of_number, count, np.int64)
        again, *results = body(number, going.reshape(shape_of_going), *state)
        going = iterations.one_of("the body's condition", again)
        state = tuple(results[:carried])
        gathered.add(results[carried:])
        count += 1
    kinds = body.outputs[1 + carried :] if count else _unrun(body, going, initial)
    return (*state, *map(iterations.stack, gathered.taken(), kinds))


def _unrun(body: Subgraph[Any], going: Array, initial: Sequence[Any]) -> tuple[Type | None, ...]:
    """Return the types of the stacked outputs where no iteration runs."""
    if len(body.outputs) == 1 + len(initial):
        return ()
    number = np.zeros(iterations.shape_of_one(body.inputs, 0), np.int64)
    going = going.reshape(iterations.shape_of_one(body.inputs, 1))
    return body.typed(*map(iterations.type_of, (number, going, *initial)))[1 + len(initial) :]


@v1.lower
def lower(
    most: Expression | None = None,
    cond: Expression | None = None,
    /,
    *initial: Expression,
    body: LoweredSubgraph,
) -> Iterate:
    if most is None and cond is None:
        raise NotLowered("without M and without cond the loop never ends")
    if any(size != 1 for x in (most, cond) if x is not None for size in x.shape):
        raise NotLowered("whether M and the condition have one element is known at run time only")
    number, going = (iterations.shape_of_one(body.inputs, place) for place in (0, 1))
    return Iterate(body, most, cond, initial, number, going)


@v16.gradient
def gradient(
    g: Gradient, most: Value | None = None, cond: Value | None = None, /, *initial: Value, body: Graph
) -> tuple[Value | None, ...]:
    carried = len(initial)
    ends: list[Any] = [*zip(body.inputs[2:], body.outputs[1:], initial, strict=False)]
    items: list[Any] = [*zip(body.outputs[1 + carried :], g.dys[carried:], strict=False)]

    def carry(values: Sequence[Value]) -> tuple[Value, ...]:
        return g.carry([body], values, len(body.outputs) - 1)

    def collect(values: Sequence[Value]) -> tuple[Value, ...]:
        return g.collect(body, values, carried)

    found = gradient_of_steps(
        g,
        Iteration(
            body,
            [State(*end, dy=at(g.dys, i), wanted=g.wants(2 + i)) for i, end in enumerate(ends)],
            [],
            [Slices(*item) for item in items if item[1] is not None],
            carry,
            collect,
            body.inputs[0],
            g.y,
            _runs(most, cond),
        ),
    )
    return (None, None, *found)


def _runs(most: Value | None, cond: Value | None) -> bool:
    """Return whether a loop is known to run at least once."""
    limit, begins = (_first(None if x is None else x.type) for x in (most, cond))
    enough = most is None or (isinstance(limit, int) and limit > 0)
    return enough and (cond is None or begins is True)


@v11.upgrade
def may_carry_nothing(b: Builder, *inputs: Value | None, call: Call, body: Graph) -> Any:
    return b.op("Loop", *inputs, body=body, outputs=len(call.outputs))


@v11.downgrade
def must_carry_something(b: Builder, *inputs: Value | None, call: Call, body: Graph) -> Any:
    if len(inputs) < len(v1.inputs):
        raise Unconvertible("Loop:1 needs at least one carried value, and this loop has none")
    return b.op("Loop", *inputs, body=body, outputs=len(call.outputs))


DOUBLES = """body (int64 i, bool c, float[2] s) => (bool again, float[2] t, float[2] before) {
    again = Identity (c)  t = Add (s, s)  before = Identity (s)
}"""
UNTIL_8 = """body (int64 i, bool c, int64 n) => (bool again, int64 m, int64 count) {
    m = Add (n, n)  count = Identity (i)
    end = Constant <value = int64 {8}> ()  last = Equal (m, end)  again = Not (last)
}"""
COUNTS = """body (int64 i, bool c) => (bool again, int64 count) {
    again = Identity (c)  count = Identity (i)
}"""
GROWS = """body (int64 i, bool c, float[n] s) => (bool again, float[m] t) {
    again = Identity (c)  t = Concat <axis = 0> (s, s)
}"""
KEEPS = """body (int64 i, bool c, seq(float[2]) s) => (bool again, seq(float[2]) t) {
    again = Identity (c)  t = Identity (s)
}"""


@loop.examples
def examples() -> Iterator[Example]:
    (yes, no), s = [[True], [False]], np.array([1, 2], np.float32)
    three, nothing = 3, np.zeros((0, 2), np.float32)
    stack = np.array([[1, 2], [2, 4], [4, 8]], np.float32)
    for opset in (1, 11, 13, 16, 19, 21, 23, 24, 25):
        yield Example(opset, three, yes, s, body=DOUBLES, outputs=2, expect=[8 * s, stack])
        yield Example(opset, 0, yes, s, body=DOUBLES, outputs=2, expect=[s, nothing])
        yield Example(opset, three, no, s, body=DOUBLES, outputs=2, expect=[s, nothing])
    for opset in (7, 11, 25):
        counted = np.array([0, 1, 2])
        yield Example(opset, None, yes, np.array(1), body=UNTIL_8, outputs=2, expect=[np.array(8), counted])
        yield Example(opset, 9, yes, np.array(1), body=UNTIL_8, outputs=2, expect=[np.array(8), counted])
        yield Example(opset, 2, yes, np.array(1), body=UNTIL_8, outputs=2, expect=[np.array(4), counted[:2]])
        # without cond the body's conditions are ignored
        yield Example(opset, 4, None, np.array(1), body=UNTIL_8, expect=[np.array(16)])
        yield Example(opset, [2], None, s, body=GROWS, expect=[np.array([1, 2] * 4, np.float32)])
    yield Example(11, three, yes, body=COUNTS, expect=[np.arange(3)])
    yield Example(16, three, None, [s, s], body=KEEPS, expect=[[s, s]])
