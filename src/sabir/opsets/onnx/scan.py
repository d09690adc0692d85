"""Scan: a subgraph applied to one slice of tensors after another, with carried states."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from sabir.base import EvaluationError
from sabir.ir import Graph, TensorType, Type, Value
from sabir.loops import Expression, IterateSlices, LoweredSubgraph, NotLowered, equal
from sabir.opsets.families.iteration import scan_kernels
from sabir.opsets.families.iteration.iteration_gradients import (
    Iteration,
    Slices,
    State,
    at,
    gradient_of_steps,
)
from sabir.opsets.families.iteration.iterations import stack, stacked, type_of
from sabir.opsets.families.iteration.scan_adapters import axes_from_front, batch_becomes_a_scan, batch_of_one
from sabir.opsets.families.iteration.scanning import (
    check_lengths,
    common,
    each,
    infer_steps,
    item_type,
    padded,
    parts,
    run_steps,
    unrun,
    without,
)
from sabir.opsets.families.shapes.shapes import axis_in
from sabir.opsets.typing import Array, Gradient, Ints, Subgraph
from sabir.schema import (
    BFLOAT16,
    CLASSIC,
    FLOAT8,
    SMALL_TYPES,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    at_least,
    one_of,
    tensors,
)

scan = Operator(
    "Scan",
    summary="Runs `body` on one slice of its inputs after another; carries states, and stacks other outputs.",
)

I = Constraint("I", tensors("int64"))  # ruff: ignore[ambiguous-variable-name]  the standard's name
V = Constraint("V", CLASSIC)

_INPUTS = Input(
    "initial_state_and_scan_inputs",
    V,
    "The initial states, then the `num_scan_inputs` tensors to iterate over, of one length.",
    variadic=True,
    heterogeneous=True,
    to_subgraph=True,
)
_OUTPUTS = Output(
    "final_state_and_scan_outputs",
    V,
    "The final states, then the body's other outputs stacked.",
    variadic=True,
    heterogeneous=True,
)
_BODY = (
    "Its inputs are the states and a slice of each scan input; its outputs are the next states and the "
    "outputs to stack."
)
_REVERSED = one_of(0, 1)


def _direction(name: str) -> Attribute:
    return Attribute(name, "ints", "For each scan input, 1 to iterate from its end.", values=_REVERSED)


v8 = scan.first(
    8,
    inputs=[Input("sequence_lens", I, "The length of each sequence of the batch.", optional=True), _INPUTS],
    outputs=[_OUTPUTS],
    attributes=[
        _direction("directions"),
        Attribute("num_scan_inputs", "int", "The number of scan inputs.", required=True, values=at_least(1)),
        Attribute("body", "graph", _BODY, required=True),
    ],
)
v9 = v8.evolve(
    9,
    "No batch and no lengths: iterates over any axis, and stacks outputs on any axis, in either direction.",
    inputs=[_INPUTS],
    drop=["directions"],
    add=[
        Attribute("scan_input_axes", "ints", "For each scan input, the axis to iterate over; 0 when absent."),
        Attribute("scan_output_axes", "ints", "For each stacked output, its new axis; 0 when absent."),
        Attribute("scan_output_directions", "ints", "For each, 1 to stack in reverse.", values=_REVERSED),
        _direction("scan_input_directions"),
    ],
)
v11 = v9.restate(11, "Negative axes count from the back.")
v16 = v11.widen(16, V=BFLOAT16)
v25 = v16.widen_stepwise({19: FLOAT8, **SMALL_TYPES}, "V")


@v8.infer
def infer_batch(
    lengths: TensorType | None,
    /,
    *inputs: TensorType,
    num_scan_inputs: int,
    body: Subgraph[Type | None],
    directions: Ints,
) -> tuple[Type | None, ...]:
    states, scanned = parts(inputs, num_scan_inputs)
    each("directions", {"directions": directions}, len(scanned))
    batched = inputs if lengths is None else (*inputs, lengths)
    batch = common(batched, [0] * len(batched), "the batch")
    count = common(scanned, [1] * len(scanned), "the length of the scan inputs")
    if lengths is not None and isinstance(count, int):
        check_lengths(lengths.known or (), count)
    slices = [without(without(x, 1), 0) for x in scanned]
    # with lengths, a sequence may have no steps at all
    finals, items = infer_steps(
        body, [without(s, 0) for s in states], slices, count if lengths is None else None
    )
    stacks = [stacked(item, count) for item in items]
    return tuple(stacked(one, batch) for one in (*finals, *stacks))


@v9.infer
def infer(
    *inputs: TensorType, num_scan_inputs: int, body: Subgraph[Type | None], **lists: Ints
) -> tuple[Type | None, ...]:
    states, scanned = parts(inputs, num_scan_inputs)
    axes = each("scan_input_axes", lists, len(scanned))
    each("scan_input_directions", lists, len(scanned))
    count = common(scanned, axes, "the length of the scan inputs")
    slices = list(map(without, scanned, axes))
    finals, items = infer_steps(body, states, slices, count)
    outer = each("scan_output_axes", lists, len(items))
    each("scan_output_directions", lists, len(items))
    return (*finals, *(stacked(item, count, a) for item, a in zip(items, outer, strict=True)))


@v8.evaluate
def evaluate_batch(
    lengths: Array | None, /, *inputs: Array, num_scan_inputs: int, body: Subgraph[Array], directions: Ints
) -> tuple[Array, ...]:
    states, scanned = parts(inputs, num_scan_inputs)
    backward = each("directions", {"directions": directions}, len(scanned))
    if any(x.ndim < len("BT") for x in scanned) or any(not s.ndim for s in states):
        raise EvaluationError(
            "the first dimension of all inputs is the batch, the second of scan inputs is time"
        )
    batch, longest = scanned[0].shape[:2]
    if any(len(x) != batch for x in inputs) or any(x.shape[1] != longest for x in scanned):
        raise EvaluationError("all inputs must have the same batch size, and the scan inputs the same length")
    counts: list[int] = [longest] * batch if lengths is None else lengths.ravel().tolist()
    if lengths is not None and lengths.shape != (batch,):
        raise EvaluationError(f"`sequence_lens` must have the shape [{batch}], not {list(lengths.shape)}")
    check_lengths(counts, longest)
    finals, stacks = list[tuple[Array, ...]](), list[list[list[Array]]]()
    for i, count in enumerate(counts):
        # in reverse, a sequence starts at its own end, not at that of the longest
        slices = [x[i, :count][:: -1 if back else 1] for x, back in zip(scanned, backward, strict=True)]
        final, stack_of_one = run_steps(body, tuple(s[i, ...] for s in states), slices, count)
        finals.append(final)
        stacks.append(stack_of_one)
    last = tuple(map(np.stack, zip(*finals, strict=True))) if batch else states
    types = body.outputs[len(states) :]
    if not any(counts):
        first = [without(item_type(x), 0) for x in inputs]
        types = unrun(body, first[: len(states)], [without(x, 0) for x in first[len(states) :]])
    return (*last, *(padded([s[k] for s in stacks], longest, type_) for k, type_ in enumerate(types)))


@v9.evaluate
def evaluate(*inputs: Array, num_scan_inputs: int, body: Subgraph[Array], **lists: Ints) -> tuple[Array, ...]:
    states, scanned = parts(inputs, num_scan_inputs)
    axes = each("scan_input_axes", lists, len(scanned))
    backward = each("scan_input_directions", lists, len(scanned))
    in_front = [np.moveaxis(x, axis_in(a, x.ndim), 0) for x, a in zip(scanned, axes, strict=True)]
    counts = {len(x) for x in in_front}
    if len(counts) > 1:
        lengths = " and ".join(map(str, sorted(counts)))
        raise EvaluationError(f"the scan inputs must have the same length, not {lengths}")
    slices, count = [x[::-1] if back else x for x, back in zip(in_front, backward, strict=True)], counts.pop()
    last, stacks = run_steps(body, states, slices, count)
    outer = each("scan_output_axes", lists, len(stacks))
    reverse = each("scan_output_directions", lists, len(stacks))
    ordered = [items[::-1] if back else items for items, back in zip(stacks, reverse, strict=True)]
    types = body.outputs[len(states) :]
    if not count:
        types = unrun(body, list(map(type_of, states)), [without(item_type(x), 0) for x in in_front])
    return (*last, *map(stack, ordered, types, outer))


v8.absent("lower", "each item of the batch has a number of steps of its own")


@v9.lower
def lower(
    *inputs: Expression, num_scan_inputs: int, body: LoweredSubgraph, **lists: Ints
) -> tuple[Expression, ...] | IterateSlices:
    try:
        return _recurrence(inputs, num_scan_inputs, body, lists)
    except NotLowered:
        repeated = _repeated(inputs, num_scan_inputs, body, lists)
        if repeated is None:
            raise
        return repeated


def _repeated(
    inputs: Sequence[Expression], num_scan_inputs: int, body: LoweredSubgraph, lists: Mapping[str, Ints]
) -> IterateSlices | None:
    """Return a loop over slices; None if results are stacked along other axes or in reverse."""
    states, sources = parts(inputs, num_scan_inputs)
    axes = each("scan_input_axes", lists, len(sources))
    reordered = (lists.get(name) or () for name in ("scan_output_axes", "scan_output_directions"))
    if any(map(any, reordered)) or any(axis_in(a, x.rank) for x, a in zip(sources, axes, strict=True)):
        return None
    count = sources[0].shape[0]
    if not all(equal(x.shape[0], count) for x in sources):
        return None
    backward = tuple(back != 0 for back in each("scan_input_directions", lists, len(sources)))
    return IterateSlices(body, tuple(states), tuple(sources), backward, count)


def _recurrence(
    inputs: Sequence[Expression], num_scan_inputs: int, body: LoweredSubgraph, lists: Mapping[str, Ints]
) -> tuple[Expression, ...]:
    """Return the results of a body that is the step of a recurrence; raises NotLowered for any other."""
    states, sources = parts(inputs, num_scan_inputs)
    axes = each("scan_input_axes", lists, len(sources))
    backward = each("scan_input_directions", lists, len(sources))
    turned = all(backward)  # then all steps run from the last one, and nothing is reordered
    slices = [
        scan_kernels.ordered(scan_kernels.moved(x, axis_in(a, x.rank), 0), backwards=back != 0 and not turned)
        for x, a, back in zip(sources, axes, backward, strict=True)
    ]
    found = scan_kernels.scanned(body, states, slices, backwards=turned)
    outer = each("scan_output_axes", lists, len(found.stacks))
    reverse = each("scan_output_directions", lists, len(found.stacks))
    stacks = (
        scan_kernels.moved(scan_kernels.ordered(x, backwards=(back != 0) != turned), 0, axis_in(a, x.rank))
        for x, a, back in zip(found.stacks, outer, reverse, strict=True)
    )
    return (*found.final, *stacks)


v9.upgrade(batch_becomes_a_scan)
v9.downgrade(batch_of_one)
v11.downgrade(axes_from_front)


RUNNING = """body (float[2] s, float[2] x) => (float[2] t, float[2] y) {
    t = Add (s, x)  y = Identity (t)
}"""
PAIRS = """body (float[2] a, int64 i) => (float[2] y, int64 j) {
    y = Identity (a)  j = Add (i, i)
}"""


@v16.gradient
def gradient(
    g: Gradient, /, *inputs: Value, num_scan_inputs: int, body: Graph, **lists: Ints
) -> tuple[Value | None, ...]:
    states, scanned = parts(inputs, num_scan_inputs)
    number, count = len(states), len(body.outputs)
    order = [each(f"scan_input_{name}", lists, len(scanned)) for name in ("axes", "directions")]
    stacking = [each(f"scan_output_{name}", lists, count - number) for name in ("axes", "directions")]
    ends: list[Any] = [*zip(body.inputs, body.outputs, states, strict=False)]
    sources: list[Any] = [*zip(body.inputs[number:], scanned, *order, strict=True)]
    items: list[Any] = [*zip(body.outputs[number:], g.dys[number:], *stacking, strict=False)]

    def carry(values: Sequence[Value]) -> tuple[Value, ...]:
        lengthened = {
            name: (*old, *(0 for _ in values))
            for name, old in zip(("scan_output_axes", "scan_output_directions"), stacking, strict=True)
            if lists[name] is not None
        }
        return g.carry([body], values, count, **lengthened)

    return gradient_of_steps(
        g,
        Iteration(
            body,
            [State(*end, dy=at(g.dys, i), wanted=g.wants(i)) for i, end in enumerate(ends)],
            [Slices(*one, wanted=g.wants(number + i)) for i, one in enumerate(sources)],
            [Slices(*item) for item in items if item[1] is not None],
            carry,
        ),
    )


@scan.examples
def examples() -> Iterator[Example]:
    yield from _of_batches()
    x = np.array([[1, 2], [10, 20], [100, 200]], np.float32)
    s, nothing = np.array([0.5, 0], np.float32), np.zeros((0, 2), np.float32)
    sums, sums_back = s + np.cumsum(x, 0), s + np.cumsum(x[::-1], 0)
    i = np.array([3, 4, 5])
    one: dict[str, Any] = {"num_scan_inputs": 1, "outputs": 2, "body": RUNNING}
    pairs: dict[str, Any] = {"num_scan_inputs": 2, "outputs": 2, "body": PAIRS}
    for opset in (9, 11, 16, 19, 21, 23, 24, 25):
        yield Example(opset, s, x, **one, expect=[sums[-1], sums])
        yield Example(opset, s, x, **one, scan_input_directions=[1], expect=[sums[-1], sums_back])
        yield Example(opset, s, x, **one, scan_output_directions=[1], expect=[sums[-1], sums[::-1]])
        yield Example(
            opset, s, x.T, **one, scan_input_axes=[1], scan_output_axes=[1], expect=[sums[-1], sums.T]
        )
        yield Example(opset, s, nothing, **one, expect=[s, nothing])
        yield Example(opset, x, i, **pairs, scan_input_directions=[0, 1], expect=[x, np.array([10, 8, 6])])
    for opset in (11, 25):
        last: dict[str, Any] = {**one, "scan_output_axes": [-1]}
        yield Example(opset, s, x.T, **last, scan_input_axes=[-1], expect=[sums[-1], sums.T])
        yield Example(opset, s, nothing.T, **last, scan_input_axes=[1], expect=[s, nothing.T])


def _of_batches() -> Iterator[Example]:
    x = np.array([[[1, 2], [10, 20]], [[3, 4], [30, 40]]], np.float32)
    s = np.array([[0.5, 0], [0, 0.5]], np.float32)
    sums, sums_back = s[:, None] + np.cumsum(x, 1), s[:, None] + np.cumsum(x[:, ::-1], 1)
    one: dict[str, Any] = {"num_scan_inputs": 1, "outputs": 2, "body": RUNNING}
    yield Example(8, None, s, x, **one, expect=[sums[:, 1], sums])
    yield Example(8, None, s, x, **one, directions=[1], expect=[sums[:, 1], sums_back])
    # after the end of a sequence zeros follow, as in onnxruntime; the standard leaves them open
    shorter = [[[1.5, 2], [0, 0]], [[3, 4.5], [33, 44.5]]]
    yield Example(8, [1, 2], s, x, **one, expect=[np.stack([sums[0, 0], sums[1, 1]]), shorter])
    shorter_back = [[[1.5, 2], [0, 0]], [[30, 40.5], [33, 44.5]]]
    last = [np.stack([sums[0, 0], sums[1, 1]]), shorter_back]
    yield Example(8, [1, 2], s, x, **one, directions=[1], expect=last)
    yield Example(8, [0, 0], s, x, **one, expect=[s, np.zeros((2, 2, 2), np.float32)])
    yield Example(8, None, s[:0], x[:0], **one, expect=[s[:0], x[:0]])
