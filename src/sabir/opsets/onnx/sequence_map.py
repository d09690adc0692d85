"""SequenceMap: a subgraph applied to each item of a sequence."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from sabir.base import EvaluationError, InferenceError
from sabir.elements import BOOL, FLOAT, INT64
from sabir.ir import Builder, Graph, SequenceType, TensorType, Type, Value
from sabir.opsets.families.building.inlining import inlined
from sabir.opsets.families.iteration import iterations
from sabir.opsets.families.sequences.sequence_gradients import gradient_of_items
from sabir.opsets.families.sequences.sequences import item_of
from sabir.opsets.typing import Gradient, Subgraph
from sabir.schema import (
    CLASSIC,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    Unconvertible,
    sequences,
)

sequence_map = Operator(
    "SequenceMap", summary="For each output of `body` the sequence of its results for the items, in order."
)

S = Constraint("S", sequences(CLASSIC))
V = Constraint("V", CLASSIC, sequences(CLASSIC))

v17 = sequence_map.first(
    17,
    inputs=[
        Input("input_sequence", S, "A sequence of n tensors.", to_subgraph=True),
        Input(
            "additional_inputs",
            V,
            "Further sequences of n tensors, of which items are passed, and tensors, passed each time.",
            variadic=True,
            minimum=0,
            heterogeneous=True,
            to_subgraph=True,
        ),
    ],
    outputs=[Output("out_sequence", S, "n items each.", variadic=True, heterogeneous=True)],
    attributes=[
        Attribute("body", "graph", "Takes an item or tensor of each input; returns tensors.", required=True)
    ],
)


v17.absent("lower", "kernels compute tensors, no sequences")


@v17.infer
def infer(*inputs: Type | None, body: Subgraph[Type | None]) -> tuple[Type | None, ...]:
    found = body(*(item_of(x) if isinstance(x, SequenceType) else _contentless(x) for x in inputs))
    return tuple(SequenceType(_contentless(kind)) for kind in found)


def _contentless(kind: Type | None) -> TensorType | None:
    if kind is not None and not isinstance(kind, TensorType):
        raise InferenceError(f"a sequence contains tensors, not {kind}")
    return None if kind is None else TensorType(kind.element, kind.shape)


@v17.evaluate
def evaluate(*inputs: Any, body: Subgraph[Any]) -> tuple[list[Any], ...]:
    sequences_in: list[list[Any]] = [x for x in inputs if isinstance(x, list)]
    lengths = [len(x) for x in sequences_in]
    if len(set(lengths)) > 1:
        raise EvaluationError(f"the sequences must have the same length, not {lengths}")
    gathered = iterations.Gathered(len(body.outputs))
    for i in range(len(inputs[0])):
        gathered.add(body(*(x[i] if isinstance(x, list) else x for x in inputs)))
    return tuple(gathered.taken())


@v17.body
def as_loop(b: Builder, *inputs: Value, body: Graph) -> Any:
    """Emit a loop over positions that appends the body's results to sequences, initially empty."""
    kinds = [_declared(v) for v in body.outputs]

    def build(inner: Builder) -> None:
        position, going = inner.input("position", INT64, []), inner.input("going", BOOL, [])
        before = [inner.input(f"before_{i}", SequenceType(kind)) for i, kind in enumerate(kinds)]
        items = [
            inner.SequenceAt(x, position) if isinstance(x.type, SequenceType) else inner.Identity(x)
            for x in inputs
        ]
        inner.output(inner.Identity(going), "goes_on", BOOL, [])
        for i, (sequence, item) in enumerate(zip(before, inlined(inner, body, items), strict=True)):
            inner.output(inner.SequenceInsert(sequence, item), f"after_{i}", SequenceType(kinds[i]))

    return b.Loop(
        b.SequenceLength(inputs[0]),
        None,
        *(b.SequenceEmpty(dtype=kind.element.number) for kind in kinds),
        outputs=len(kinds),
        body=b.subgraph(build, name="one_position"),
    )


def _declared(output: Value | None) -> TensorType:
    """Return the declared type of a body's output with an unknown shape: items may differ."""
    kind = None if output is None else output.type
    if not isinstance(kind, TensorType) or not kind.element.number:
        raise Unconvertible("the body does not declare the type of an output")
    return TensorType(kind.element)


SUMS = "body (float[n] x, float[m] y) => (float[k] z) { z = Add (x, y) }"
BOTH = "body (float[n] x) => (float[m] y, int64[1] s) { y = Concat <axis = 0> (x, x)  s = Shape (x) }"


@v17.gradient
def gradient(g: Gradient, sequence: Value, /, *more: Value, body: Graph) -> tuple[Value | None, ...]:
    return gradient_of_items(g, (sequence, *more), body)


@sequence_map.examples
def examples() -> Iterator[Example]:
    x, y = np.array([1, 2], np.float32), np.array([3], np.float32)
    yield Example(17, [x, y], [x, y], body=SUMS, expect=[[2 * x, 2 * y]])
    yield Example(17, [x, y], y, body=SUMS, expect=[[x + 3, y + 3]])
    doubled = [np.array([1, 2, 1, 2], np.float32), np.array([3, 3], np.float32)]
    yield Example(17, [x, y], outputs=2, body=BOTH, expect=[doubled, [np.array([2]), np.array([1])]])
    yield Example(
        17, [], outputs=2, body=BOTH, expect=[[], []], types=[SequenceType(TensorType(FLOAT, (None,)))]
    )
