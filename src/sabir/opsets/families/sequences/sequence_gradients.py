"""Gradients of operators on sequences: positions from the front, and a subgraph for each item."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import UnsupportedError, quote
from sabir.elements import BOOL, INT64
from sabir.ir import SequenceType, TensorType
from sabir.schema import as_results

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sabir.ir import Builder, Graph, Value
    from sabir.opsets.typing import BackwardBody, Gradient


def from_front(g: Gradient, sequence: Value, position: Value | None, *, more: int = 0) -> Value:
    """Return a position in a sequence, counted from the front; that of its last item where it is absent.

    `more` is how many items the sequence has more than those from which a negative position counts.
    """
    length = g.SequenceLength(sequence)
    if position is None:
        return g.Sub(length, 1)
    index = position
    if not isinstance(position.type, TensorType) or position.type.element != length.element:
        index = g.Cast(position, to=7)
    index = g.Reshape(index, g.Constant(value_ints=[]))  # some files have a position of the shape [1]
    count = g.Sub(length, more) if more else length
    return g.Where(g.Less(index, 0), g.Add(index, count), index)


def extended(b: Builder, sequence: Value, items: Value, start: Value | None, count: Value) -> Value:
    """Return a sequence with `count` items of another one at its end, those from position `start` on.

    The type of the first sequence must be known.
    """
    kind = sequence.type
    if kind is None:
        raise UnsupportedError(f"a gradient needs the type of {quote(sequence.name)}, which is unknown")

    def step(inner: Builder) -> tuple[Value, Value]:
        number, going = inner.input("number", INT64, []), inner.input("going", BOOL, [])
        before = inner.input("before", kind)
        place = number if start is None else inner.Add(number, start)
        return inner.Identity(going), inner.SequenceInsert(before, inner.SequenceAt(items, place))

    return b.Loop(count, None, sequence, body=b.subgraph(step, name="each_item"), outputs=1)


def gradient_of_items(g: Gradient, inputs: Sequence[Value], body: Graph) -> tuple[Value | None, ...]:
    """Return the gradients of the inputs of SequenceMap; those of captures are added to `g`.

    They come from a SequenceMap of the backward body, over the gradients and the residuals of each item. A
    tensor, or a captured value, has a gradient from each item; their sum starts with zeros, as the sequence
    may be empty.
    """
    captured, back = g.captured(body), g.backward(body)
    seeded = [(o, dy) for o, dy in zip(body.outputs, g.dys, strict=False) if dy is not None]
    d_items = {back.like("d_item", o): (o, dy) for o, dy in seeded if o is not None}
    wrt = [*(v for i, v in enumerate(body.inputs) if g.wants(i)), *captured]
    found = back.gradients([(o, d) for d, (o, _) in d_items.items()], wrt)
    reached = {v: d for v, d in zip(wrt, found, strict=True) if d is not None}
    if not reached:
        return (None,) * len(inputs)
    back.close(reached.values())
    operands = dict(zip(body.inputs, inputs, strict=False))
    read = {**{d: dy for d, (_, dy) in d_items.items()}, **_residuals(g, back, body, operands)}
    back.graph.inputs = read
    results = as_results(g.op("SequenceMap", *read.values(), body=back.graph, outputs=len(reached)))
    gradients = dict(zip(reached, results, strict=True))
    for value in captured:
        if value in gradients:
            g.add(value, _sum_of(g, gradients[value], value))
    return tuple(
        None if d is None else d if isinstance(x.type, SequenceType) else _sum_of(g, d, x)
        for x, d in ((x, gradients.get(v)) for v, x in operands.items())
    )


def _residuals(
    g: Gradient, back: BackwardBody, body: Graph, operands: Mapping[Value, Value]
) -> dict[Value, Value]:
    """Let the backward body read the residuals item by item; return its new inputs, each with its operand."""
    back.recompute(lambda v: v in operands or isinstance(v.type, TensorType))
    residuals = back.residuals()
    kept = [v for v in residuals if v not in operands]
    wholes = {**operands, **dict(zip(kept, g.carry([body], kept, len(body.outputs)), strict=True))}
    read: dict[Value, Value] = {}
    for value in residuals:
        item = back.like("residual", value)
        back.redirect(value, item)
        read[item] = wholes[value]
    return read


def _sum_of(g: Gradient, items: Value, like: Value) -> Value:
    """Return the sum of the items of a sequence, in the shape of a tensor; zeros where there are none."""
    first = g.SequenceInsert(items, g.zeros(like), 0)
    return g.ReduceSum(g.ConcatFromSequence(first, axis=0, new_axis=1), [0], keepdims=0)
