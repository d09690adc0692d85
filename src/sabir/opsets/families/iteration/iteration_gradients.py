"""The gradient of an iteration: its steps again, from the last to the first.

The backward steps carry the gradients of the states, and the sums of the gradients of what the body captures.
They read the gradients of the stacked outputs, slices of the scan inputs, and the residuals of each step, and
output the gradients of the slices.

They are a Scan, which needs no indices, where there is a step, all that they read is stacked, and all that
they carry keeps its shape. Otherwise they are a Loop: what cannot be stacked is kept in sequences of one
item for each step, sequences in one sequence with the items of all steps, and what cannot be kept at all is
computed again.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sabir.base import UnsupportedError
from sabir.elements import BOOL, INT64
from sabir.ir import Expr, SequenceType, TensorType, known_equal
from sabir.opsets.families.sequences.sequence_gradients import extended
from sabir.schema import as_results

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import TypeAlias

    from sabir.ir import Dim, Graph, Type, Value
    from sabir.opsets.typing import BackwardBody, Gradient, ShapedBuilder

    Carry: TypeAlias = Callable[[Sequence[Value]], Sequence[Value]]
    Read: TypeAlias = Callable[[ShapedBuilder, Value], Value]


class State(NamedTuple):
    """A state: the body's input and output, the initial value, and the gradient of the final value.

    It is `wanted` if the gradient of the initial value is used.
    """

    before: Value
    after: Value
    initial: Value
    dy: Value | None
    wanted: bool


class Slices(NamedTuple):
    """A tensor that the steps read or write slice by slice: the slice in the body, the tensor, the order.

    For an output `whole` is the gradient of the tensor. An input is `wanted` if its gradient is used.
    """

    inner: Value
    whole: Value
    axis: int = 0
    direction: int = 0
    wanted: bool = False

    def backward(self, inner: Value) -> Slices:
        """Return the slices as backward steps read them, into another value."""
        return self._replace(inner=inner, direction=1 - self.direction)


class Iteration(NamedTuple):
    """What an iteration reads and computes, and how values of its body are kept.

    `outputs` are the stacked outputs that have a gradient. `carry` makes values of the body further outputs,
    stacked on axis 0, and returns these; `collect` makes them the items of sequences, where that is possible.
    `number` is the body's input that counts the steps, where it has one. `final` returns a final state.
    `runs` says that there is at least one step: onnxruntime refuses a Scan without steps.
    """

    body: Graph
    states: Sequence[State]
    inputs: Sequence[Slices]
    outputs: Sequence[Slices]
    carry: Carry
    collect: Carry | None = None
    number: Value | None = None
    final: Callable[[int], Value] | None = None
    runs: bool = True


class Carried(NamedTuple):
    """A state of the backward steps: the input and the output of their body, and the initial value."""

    before: Value
    after: Value
    initial: Value


class Steps(NamedTuple):
    """The backward steps: what they carry, read and output."""

    back: BackwardBody
    carried: Sequence[Carried]
    items: Sequence[Slices]
    outputs: Sequence[Slices]


def gradient_of_steps(g: Gradient, it: Iteration) -> tuple[Value | None, ...]:
    """Return the gradients of the initial states and of the scan inputs; `g` gets those of captures."""
    captured, wanted = g.captured(it.body), [s for s in it.inputs if s.wanted]
    active = _active_states(g, it, [*captured, *(s.inner for s in wanted)])
    back = g.backward(it.body)
    d_after = [back.like("d_state", s.before if _keeps_shape(s) else s.after) for s in active]
    d_items = [s.backward(back.like("d_item", s.inner)) for s in it.outputs]
    seeds = [(s.after, d) for s, d in zip(active, d_after, strict=True)]
    seeds += [(s.inner, d.inner) for s, d in zip(it.outputs, d_items, strict=True)]
    wrt = [*(s.before for s in active), *captured, *(s.inner for s in wanted)]
    found = dict(zip(wrt, back.gradients(seeds, wrt), strict=True))
    carried = [
        _carried_state(g, back, it, s, (d, found[s.before])) for s, d in zip(active, d_after, strict=True)
    ]
    summed = {v: _carried_sum(g, back, v, d) for v in captured if (d := found[v]) is not None}
    slices = {s.inner: s.backward(d) for s in wanted if (d := found[s.inner]) is not None}
    if not (carried or summed or slices):
        return (None,) * (len(it.states) + len(it.inputs))
    back.close([*(c.after for c in (*carried, *summed.values())), *(s.inner for s in slices.values())])
    steps = Steps(back, [*carried, *summed.values()], d_items, [*slices.values()])
    results = iter(_emit(g, it, steps, steady=all(map(_keeps_shape, active))))
    gradients = {s.before: next(results) for s in active}
    for value in summed:
        g.add(value, next(results))
    gradients.update((inner, next(results)) for inner in slices)
    return (*(gradients.get(s.before) for s in it.states), *(gradients.get(s.inner) for s in it.inputs))


def at(gradients: Sequence[Value | None], index: int) -> Value | None:
    """Return the gradient of an output of the call, None where the call leaves the output out."""
    return gradients[index] if index < len(gradients) else None


def _active_states(g: Gradient, it: Iteration, sources: Sequence[Value]) -> list[State]:
    """Return the states that depend on `sources` or on wanted initial values, in this step or a later one."""
    active = {s.before for s in it.states if s.wanted}
    while True:
        reached = g.reached(it.body, {*sources, *active})
        more = {s.before for s in it.states if s.after in reached} - active
        if not more:
            return [s for s in it.states if s.before in active]
        active |= more


def _carried_state(
    g: Gradient, back: BackwardBody, it: Iteration, state: State, gradients: tuple[Value, Value | None]
) -> Carried:
    """Return the gradient of a state, which is zero where the gradient of its final value is."""
    before, after = gradients
    initial = state.dy
    if initial is None:
        initial = g.zeros(state.initial if it.final is None else it.final(it.states.index(state)))
    return Carried(before, back.zeros(state.before) if after is None else after, initial)


def _carried_sum(g: Gradient, back: BackwardBody, captured: Value, gradient: Value) -> Carried:
    """Return the sum of the gradients of a captured value over the steps."""
    total = back.like("sum", captured)
    return Carried(total, back.total(total, gradient), g.zeros(captured))


def _emit(g: Gradient, it: Iteration, steps: Steps, *, steady: bool) -> tuple[Value, ...]:
    """Emit the backward steps, as a Scan where that is possible."""
    back, slices = steps.back, {s.inner for s in it.inputs}
    tensors = all(isinstance(c.before.type, TensorType) for c in steps.carried)
    if it.collect is None:
        if not tensors:
            raise UnsupportedError(
                "the gradient of a Scan cannot carry the gradient of a sequence or optional"
            )
        back.recompute(lambda v: v in slices or g.is_steady(v))
        return _backward_scan(g, it, steps)
    taken = {v for v in it.body.inputs if isinstance(v.type, SequenceType)}
    back.recompute(lambda v: isinstance(v.type, TensorType) or v in taken)
    fixed = _fixed_symbols(it)
    stacked = [v for v in back.residuals() if g.is_steady(v) and _has_sizes(v.type, fixed)]
    if it.runs and steady and tensors and len(stacked) == len(back.residuals()):
        return _backward_scan(g, it, steps)
    return _backward_loop(g, it, steps, frozenset(stacked))


def _keeps_shape(state: State) -> bool:
    """Return whether a state is known to have the same shape after each step."""
    before, after = state.before.type, state.after.type
    if not (isinstance(before, TensorType) and isinstance(after, TensorType)):
        return before == after
    if before.shape is None or after.shape is None or len(before.shape) != len(after.shape):
        return False
    return all(map(known_equal, before.shape, after.shape))


def _fixed_symbols(it: Iteration) -> frozenset[str]:
    """Return the symbols of sizes that are the same in all steps: of values around the body, and of states.

    Symbols that a state has along a dimension that changes are not.
    """
    around = [*it.body.captures(), *(s.initial for s in it.states), *(s.whole for s in it.inputs)]
    steady = [s.before for s in it.states if _keeps_shape(s)]
    changing = [v for s in it.states if not _keeps_shape(s) for v in (s.before, s.after)]
    fixed = {n for v in (*around, *steady) for d in _dims(v.type) for n in _names(d)}
    return frozenset(fixed - {n for v in changing for d in _dims(v.type) for n in _names(d)})


def _has_sizes(type_: Type | None, fixed: frozenset[str]) -> bool:
    """Return whether all sizes of a tensor are known and made of these symbols."""
    if not isinstance(type_, TensorType) or type_.shape is None:
        return False
    return all(d is not None and fixed.issuperset(_names(d)) for d in type_.shape)


def _dims(type_: Type | None) -> Iterable[Dim]:
    return (type_.shape or ()) if isinstance(type_, TensorType) else ()


def _names(dim: Dim) -> Iterable[str]:
    return dim.symbols if isinstance(dim, Expr) else ()


def _backward_scan(g: Gradient, it: Iteration, steps: Steps) -> tuple[Value, ...]:
    """Emit the steps as a Scan, which reads slices of the residuals: of scan inputs, and of stacks."""
    back, carried, outputs = steps.back, steps.carried, steps.outputs
    read = [*steps.items, *_residuals(back, it)]
    if not read:  # a Scan takes its number of steps from an input
        source = it.inputs[0] if it.number is None else Slices(it.number, it.carry([it.number])[0])
        read = [source.backward(back.like("step", source.inner))]
    back.graph.inputs = [*(c.before for c in carried), *(s.inner for s in read)]
    lists = {
        "scan_input_axes": [s.axis for s in read],
        "scan_input_directions": [s.direction for s in read],
        "scan_output_axes": [s.axis for s in outputs],
        "scan_output_directions": [s.direction for s in outputs],
    }
    set_lists: dict[str, Any] = {name: values for name, values in lists.items() if any(values)}
    results = g.op(
        "Scan",
        *(c.initial for c in carried),
        *(s.whole for s in read),
        body=back.graph,
        num_scan_inputs=len(read),
        outputs=len(carried) + len(outputs),
        **set_lists,
    )
    return as_results(results)


def _residuals(back: BackwardBody, it: Iteration) -> list[Slices]:
    """Let the backward body read the residuals slice by slice: scan inputs again, other values stacked."""
    residuals, slices = back.residuals(), {s.inner: s for s in it.inputs}
    stacks = iter(it.carry([v for v in residuals if v not in slices]))
    read: list[Slices] = []
    for value in residuals:
        source = slices[value] if value in slices else Slices(value, next(stacks))
        read.append(source.backward(back.like("residual", value)))
        back.redirect(value, read[-1].inner)
    return read


def _backward_loop(g: Gradient, it: Iteration, steps: Steps, stacked: frozenset[Value]) -> tuple[Value, ...]:
    """Emit the steps as a Loop, which takes from stacks and sequences what each step reads."""
    back, (count, reads) = steps.back, _reads(g, it, steps, stacked)
    last = g.Sub(count, g.Constant(value=np.array(1)))
    number, going = back.input("number", INT64, []), back.input("going", BOOL, [])

    def build(b: ShapedBuilder) -> list[Value]:
        place = b.Sub(last, number)
        return [b.Identity(going), *(read(b, place) for read in reads.values())]

    goes_on, *items = back.first(build)
    for value, item in zip(reads, items, strict=True):
        back.redirect(value, item)
    back.graph.inputs = [number, going, *(c.before for c in steps.carried)]
    back.graph.outputs.insert(0, goes_on)
    initial = [c.initial for c in steps.carried]
    return as_results(g.op("Loop", count, None, *initial, body=back.graph, outputs=len(initial)))


def _reads(
    g: Gradient, it: Iteration, steps: Steps, stacked: frozenset[Value]
) -> tuple[Value, Mapping[Value, Read]]:
    """Keep the residuals; return the number of steps, and how a step reads each value that it needs."""
    residuals = steps.back.residuals()
    stacks = [v for v in residuals if v in stacked]
    taken = [v for v in residuals if isinstance(v.type, SequenceType)]
    single = [v for v in residuals if v not in stacked and v not in taken]
    lengths = g.lengths(it.body, taken)
    kept = it.collect([*single, *taken]) if it.collect else ()
    carried = it.carry([*stacks, *lengths])
    wholes = {s.inner: s.whole for s in steps.items} | dict(zip(stacks, carried, strict=False))
    counts = carried[len(stacks) :]
    reads: dict[Value, Read] = {v: partial(_item, s) for v, s in zip(single, kept, strict=False)}
    reads |= {v: partial(_row, whole) for v, whole in wholes.items()}
    for value, items, count in zip(taken, kept[len(single) :], counts, strict=True):
        reads[value] = _Log(items, g, count).sequence
    return _number_of_steps(g, it, kept[: len(single)], [*wholes.values(), *counts]), reads


def _item(sequence: Value, b: ShapedBuilder, place: Value) -> Value:
    return b.SequenceAt(sequence, place)


def _row(whole: Value, b: ShapedBuilder, place: Value) -> Value:
    return b.Gather(whole, place, axis=0)


class _Log:
    """What a sequence contains in each step: the items of all steps in one sequence, and their counts."""

    def __init__(self, items: Value, g: Gradient, counts: Value) -> None:
        self._items, self._counts = items, counts
        self._starts = g.CumSum(counts, g.Constant(value=np.array(0)), exclusive=1)

    def sequence(self, b: ShapedBuilder, place: Value) -> Value:
        """Return what the sequence contains in one step."""
        start, count = (b.Gather(x, place, axis=0) for x in (self._starts, self._counts))
        kind = self._items.type
        item = kind.item if isinstance(kind, SequenceType) else None
        if not isinstance(item, TensorType):
            raise UnsupportedError("a gradient needs the type of the items of a sequence, which is unknown")
        empty = b.SequenceEmpty(dtype=item.element.number)
        empty.type = kind
        return extended(b, empty, self._items, start, count)


def _number_of_steps(
    g: Gradient, it: Iteration, sequences: Sequence[Value], stacks: Sequence[Value]
) -> Value:
    """Return how many steps there were: the length of what they read, or of what counts them."""
    if sequences:
        return g.SequenceLength(sequences[0])
    if not stacks and it.number is not None:
        stacks = it.carry([it.number])
    return g.Squeeze(g.Shape(stacks[0], start=0, end=1), [0])
