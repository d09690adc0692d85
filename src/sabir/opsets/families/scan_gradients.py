"""The gradient of an iteration: a Scan from the last step to the first.

The backward steps carry the gradients of the states, and the sums of the gradients of what the body captures.
They read the gradients of the stacked outputs, slices of the scan inputs, and the residuals of each step, and
output the gradients of the slices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from sabir.opsets.families.scanning import each, parts
from sabir.schema import as_results

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias

    from sabir.ir import Graph, Value
    from sabir.opsets.typing import BackwardBody, Gradient, Ints

    Carry: TypeAlias = Callable[[Sequence[Value]], Sequence[Value]]


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


class Carried(NamedTuple):
    """A state of the backward steps: the input and the output of their body, and the initial value."""

    before: Value
    after: Value
    initial: Value


def gradient_of_scan(
    g: Gradient, inputs: Sequence[Value], num_scan_inputs: int, body: Graph, lists: Mapping[str, Ints]
) -> tuple[Value | None, ...]:
    """Return the gradients of the inputs of Scan; `lists` has the attributes with axes and directions."""
    states, scanned = parts(inputs, num_scan_inputs)
    number, count = len(states), len(body.outputs)
    order = [each(f"scan_input_{name}", lists, len(scanned)) for name in ("axes", "directions")]
    stacking = [each(f"scan_output_{name}", lists, count - number) for name in ("axes", "directions")]
    ends: list[Any] = [*zip(body.inputs, body.outputs, states, strict=False)]
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
        body,
        [State(*end, dy=_at(g.dys, i), wanted=g.wants(i)) for i, end in enumerate(ends)],
        [
            Slices(*one, wanted=g.wants(number + i))
            for i, one in enumerate(zip(body.inputs[number:], scanned, *order, strict=True))
        ],
        [Slices(*item) for item in items if item[1] is not None],
        carry,
    )


def gradient_of_steps(
    g: Gradient,
    body: Graph,
    states: Sequence[State],
    inputs: Sequence[Slices],
    outputs: Sequence[Slices],
    carry: Carry,
) -> tuple[Value | None, ...]:
    """Return the gradients of the initial states and of the scan inputs; those of captures are added to `g`.

    `outputs` are the stacked outputs that have a gradient. `carry` makes values of the body further outputs
    of the iteration, and returns these, stacked on axis 0.
    """
    captured, wanted = g.captured(body), [s for s in inputs if s.wanted]
    active = _active_states(g, body, states, [*captured, *(s.inner for s in wanted)])
    back = g.backward(body)
    d_after = [back.like("d_state", s.before) for s in active]
    d_items = [s.backward(back.like("d_item", s.inner)) for s in outputs]
    seeds = [(s.after, d) for s, d in zip(active, d_after, strict=True)]
    seeds += [(s.inner, d.inner) for s, d in zip(outputs, d_items, strict=True)]
    wrt = [*(s.before for s in active), *captured, *(s.inner for s in wanted)]
    found = dict(zip(wrt, back.gradients(seeds, wrt), strict=True))
    carried = [_carried_state(g, back, s, d, found[s.before]) for s, d in zip(active, d_after, strict=True)]
    summed = {v: _carried_sum(g, back, v, d) for v in captured if (d := found[v]) is not None}
    slices = {s.inner: s.backward(d) for s in wanted if (d := found[s.inner]) is not None}
    if not (carried or summed or slices):
        return (None,) * (len(states) + len(inputs))
    results = iter(
        _backward_scan(g, back, [*carried, *summed.values()], d_items, [*slices.values()], inputs, carry)
    )
    gradients = {s.before: next(results) for s in active}
    for value in summed:
        g.add(value, next(results))
    gradients.update((inner, next(results)) for inner in slices)
    return (*(gradients.get(s.before) for s in states), *(gradients.get(s.inner) for s in inputs))


def _active_states(
    g: Gradient, body: Graph, states: Sequence[State], sources: Sequence[Value]
) -> list[State]:
    """Return the states that depend on `sources` or on wanted initial values, in this step or a later one."""
    active = {s.before for s in states if s.wanted}
    while True:
        reached = g.reached(body, {*sources, *active})
        more = {s.before for s in states if s.after in reached} - active
        if not more:
            return [s for s in states if s.before in active]
        active |= more


def _carried_state(
    g: Gradient, back: BackwardBody, state: State, before: Value, after: Value | None
) -> Carried:
    """Return the gradient of a state, which is zero where the gradient of its final value is."""
    initial = g.zeros(state.initial) if state.dy is None else state.dy
    return Carried(before, back.zeros(state.before) if after is None else after, initial)


def _carried_sum(g: Gradient, back: BackwardBody, captured: Value, gradient: Value) -> Carried:
    """Return the sum of the gradients of a captured value over the steps."""
    total = back.like("sum", captured)
    return Carried(total, back.Add(total, gradient), g.zeros(captured))


def _backward_scan(
    g: Gradient,
    back: BackwardBody,
    carried: Sequence[Carried],
    items: Sequence[Slices],
    outputs: Sequence[Slices],
    sources: Sequence[Slices],
    carry: Carry,
) -> tuple[Value, ...]:
    """Emit the Scan; `items` are what it reads beside the residuals, `sources` the forward scan inputs."""
    back.close([*(c.after for c in carried), *(s.inner for s in outputs)])
    read = [*items, *_residuals(back, sources, carry)]
    if not read:  # a Scan takes its number of steps from an input
        read = [sources[0].backward(back.like("step", sources[0].inner))]
    back.graph.inputs = [*(c.before for c in carried), *(s.inner for s in read)]
    lists = {
        "scan_input_axes": [s.axis for s in read],
        "scan_input_directions": [s.direction for s in read],
        "scan_output_axes": [s.axis for s in outputs],
        "scan_output_directions": [s.direction for s in outputs],
    }
    results = g.Scan(
        *(c.initial for c in carried),
        *(s.whole for s in read),
        body=back.graph,
        num_scan_inputs=len(read),
        outputs=len(carried) + len(outputs),
        **{name: values for name, values in lists.items() if any(values)},
    )
    return as_results(results)


def _residuals(back: BackwardBody, sources: Sequence[Slices], carry: Carry) -> list[Slices]:
    """Let the backward body read the residuals slice by slice: scan inputs again, other values stacked."""
    residuals, slices = back.residuals(), {s.inner: s for s in sources}
    stacks = iter(carry([v for v in residuals if v not in slices]))
    read: list[Slices] = []
    for value in residuals:
        source = slices[value] if value in slices else Slices(value, next(stacks))
        read.append(source.backward(back.like("residual", value)))
        back.redirect(value, read[-1].inner)
    return read


def _at(values: Sequence[Value | None], index: int) -> Value | None:
    return values[index] if index < len(values) else None
