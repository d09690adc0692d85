"""Adapters of Scan: a batch as a scan whose body is a scan, one sequence as a batch of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sabir.ir import Builder, TensorType
from sabir.opsets.families.iteration.iterations import stacked
from sabir.opsets.families.iteration.scanning import each, parts, without
from sabir.opsets.families.shapes.axes import from_front
from sabir.schema import Unconvertible, as_results

if TYPE_CHECKING:
    from sabir.ir import Graph, Value
    from sabir.opsets.typing import Ints
    from sabir.schema import Call


def batch_becomes_a_scan(
    b: Builder,
    lengths: Value | None,
    /,
    *inputs: Value,
    num_scan_inputs: int,
    body: Graph,
    directions: Ints,
    call: Call,
) -> Any:
    """Emit a scan over the batch, whose body is the scan of one sequence."""
    if lengths is not None:
        raise Unconvertible("Scan:9 has no lengths, and iterates over complete sequences")

    def build(inner: Builder) -> None:
        operands = [inner.input(f"one_{i}", _unbatched(x)) for i, x in enumerate(inputs)]
        results = as_results(
            inner.op(
                "Scan",
                *operands,
                outputs=len(body.outputs),
                num_scan_inputs=num_scan_inputs,
                scan_input_directions=directions,
                body=body,
            )
        )
        states, _ = parts(operands, num_scan_inputs)
        items = [stacked(None if v is None else v.type, None) for v in body.outputs[len(states) :]]
        for value, type_ in zip(results, [*(s.type for s in states), *items], strict=True):
            value.type = type_
            inner.output(value)

    one_sequence = b.subgraph(build, name="one_sequence")
    return b.op("Scan", *inputs, outputs=len(call.outputs), num_scan_inputs=len(inputs), body=one_sequence)


def _unbatched(x: Value) -> TensorType:
    """Return the type of one sequence of a batch, for an input of the body."""
    if not isinstance(x.type, TensorType):
        raise Unconvertible("the element type of an input is unknown, and a body must declare it")
    one = without(x.type, 0)
    return (
        one if one.shape is None else one.with_shape(*(d if isinstance(d, int) else None for d in one.shape))
    )


def batch_of_one(
    b: Builder, *inputs: Value, num_scan_inputs: int, body: Graph, call: Call, **lists: Ints
) -> tuple[Value, ...]:
    """Emit a scan of a batch of one, with the axes moved to their places in Scan:8."""
    if any(lists["scan_output_directions"] or ()):
        raise Unconvertible("Scan:8 cannot stack in reverse")
    states, scanned = parts(inputs, num_scan_inputs)
    axes = each("scan_input_axes", lists, len(scanned))
    outer = each("scan_output_axes", lists, len(body.outputs) - len(states))
    moved = [_moved(b, x, a, 0, _rank(x)) for x, a in zip(scanned, axes, strict=True)]
    results = as_results(
        b.op(
            "Scan",
            None,
            *(b.Unsqueeze(x, axes=(0,)) for x in (*states, *moved)),
            outputs=len(call.outputs),
            num_scan_inputs=num_scan_inputs,
            directions=lists["scan_input_directions"],
            body=body,
        )
    )
    squeezed = [b.Squeeze(y, axes=(0,)) for y in results]
    targets = zip(squeezed[len(states) :], outer, body.outputs[len(states) :], strict=False)
    return (*squeezed[: len(states)], *(_moved(b, y, 0, a, _rank(item, more=1)) for y, a, item in targets))


def _rank(x: Value | None, *, more: int = 0) -> int | None:
    rank = x.type.rank if x is not None and isinstance(x.type, TensorType) else None
    return None if rank is None else rank + more


def _moved(b: Builder, x: Value, source: int, target: int, rank: int | None) -> Value:
    """Emit a transposition that moves one axis."""
    if source == target:
        return x
    if rank is None:
        raise Unconvertible("Scan:8 has fixed axes, and a tensor of unknown rank cannot be transposed")
    order = [axis for axis in range(rank) if axis != source]
    order.insert(target, source)
    return b.Transpose(x, perm=order)


def axes_from_front(
    b: Builder, *inputs: Value, body: Graph, num_scan_inputs: int, call: Call, **lists: Ints
) -> Any:
    """Emit the same scan with its axes counted from the front."""
    states, scanned = parts(inputs, num_scan_inputs)
    changed: dict[str, Any] = {**lists}
    if (axes := lists["scan_input_axes"]) is not None:
        pairs = zip(axes, scanned, strict=True)
        changed["scan_input_axes"] = [from_front([axis], x)[0] for axis, x in pairs]
    if (axes := lists["scan_output_axes"]) is not None:
        items = zip(axes, body.outputs[len(states) :], strict=True)
        changed["scan_output_axes"] = [from_front([axis], y, more=1)[0] for axis, y in items if y is not None]
    outputs = len(call.outputs)
    return b.op("Scan", *inputs, outputs=outputs, body=body, num_scan_inputs=num_scan_inputs, **changed)
