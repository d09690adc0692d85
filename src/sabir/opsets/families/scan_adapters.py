"""Scan in other versions: a batch as a scan around scans, one sequence as a batch of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sabir.ir import Builder, TensorType
from sabir.opsets.families.axes import from_front
from sabir.opsets.families.iterations import stacked
from sabir.opsets.families.scanning import each, parts, without
from sabir.schema import Unconvertible, as_results

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir import Graph, Value
    from sabir.schema import Call


def batch_becomes_a_scan(
    b: Builder,
    lengths: Value | None,
    /,
    *inputs: Value,
    num_scan_inputs: int,
    body: Graph,
    directions: Sequence[int] | None,
    call: Call,
) -> Any:
    """Emit a scan over the batch, whose body is the scan of one sequence."""
    if lengths is not None:
        raise Unconvertible("Scan-9 has no lengths, and goes through each sequence to the end")
    inner = Builder(b.opset, name="of_one_sequence", opsets=b.opsets)
    held = [inner.input(f"of_one_{i}", _of_one(x)) for i, x in enumerate(inputs)]
    made = as_results(
        inner.op(
            "Scan",
            *held,
            outputs=len(body.outputs),
            num_scan_inputs=num_scan_inputs,
            scan_input_directions=directions,
            body=body,
        )
    )
    states, _ = parts(held, num_scan_inputs)
    items = [stacked(None if v is None else v.type, None) for v in body.outputs[len(states) :]]
    for value, kind in zip(made, [*(s.type for s in states), *items], strict=True):
        value.type = kind
        inner.output(value)
    return b.op("Scan", *inputs, outputs=len(call.outputs), num_scan_inputs=len(inputs), body=inner.graph)


def _of_one(x: Value) -> TensorType:
    """Return the type of one sequence of a batch, as the input of a body declares it."""
    if not isinstance(x.type, TensorType):
        raise Unconvertible("the element type of an input is unknown, and a body must declare it")
    one = without(x.type, 0)
    return (
        one if one.shape is None else one.with_shape(*(d if isinstance(d, int) else None for d in one.shape))
    )


def batch_of_one(
    b: Builder,
    *inputs: Value,
    num_scan_inputs: int,
    body: Graph,
    scan_input_axes: Sequence[int] | None,
    scan_output_axes: Sequence[int] | None,
    scan_output_directions: Sequence[int] | None,
    scan_input_directions: Sequence[int] | None,
    call: Call,
) -> tuple[Value, ...]:
    """Emit a scan of a batch of one, the axes to go through moved to where Scan-8 has them."""
    if any(scan_output_directions or ()):
        raise Unconvertible("Scan-8 cannot stack backwards")
    states, scanned = parts(inputs, num_scan_inputs)
    axes = each("scan_input_axes", scan_input_axes, len(scanned))
    outer = each("scan_output_axes", scan_output_axes, len(body.outputs) - len(states))
    moved = [_moved(b, x, a, 0, _rank(x)) for x, a in zip(scanned, axes, strict=True)]
    made = as_results(
        b.op(
            "Scan",
            None,
            *(b.Unsqueeze(x, axes=(0,)) for x in (*states, *moved)),
            outputs=len(call.outputs),
            num_scan_inputs=num_scan_inputs,
            directions=scan_input_directions,
            body=body,
        )
    )
    results = [b.Squeeze(y, axes=(0,)) for y in made]
    targets = zip(results[len(states) :], outer, body.outputs[len(states) :], strict=False)
    return (*results[: len(states)], *(_moved(b, y, 0, a, _rank(item, more=1)) for y, a, item in targets))


def _rank(x: Value | None, *, more: int = 0) -> int | None:
    rank = x.type.rank if x is not None and isinstance(x.type, TensorType) else None
    return None if rank is None else rank + more


def _moved(b: Builder, x: Value, source: int, target: int, rank: int | None) -> Value:
    """Emit a transposition that takes one axis to another place."""
    if source == target:
        return x
    if rank is None:
        raise Unconvertible("Scan-8 has its own axes, and a tensor of unknown rank cannot be transposed")
    order = [axis for axis in range(rank) if axis != source]
    order.insert(target, source)
    return b.Transpose(x, perm=order)


def axes_from_front(
    b: Builder,
    *inputs: Value,
    body: Graph,
    num_scan_inputs: int,
    scan_input_axes: Sequence[int] | None,
    scan_output_axes: Sequence[int] | None,
    call: Call,
    **others: Any,
) -> Any:
    """Emit the same scan, its axes counted from the front."""
    states, scanned = parts(inputs, num_scan_inputs)
    if scan_input_axes is not None:
        pairs = zip(scan_input_axes, scanned, strict=True)
        scan_input_axes = [from_front([axis], x)[0] for axis, x in pairs]
    if scan_output_axes is not None:
        items = zip(scan_output_axes, body.outputs[len(states) :], strict=True)
        scan_output_axes = [from_front([axis], y, more=1)[0] for axis, y in items if y is not None]
    return b.op(
        "Scan",
        *inputs,
        outputs=len(call.outputs),
        body=body,
        num_scan_inputs=num_scan_inputs,
        scan_input_axes=scan_input_axes,
        scan_output_axes=scan_output_axes,
        **others,
    )
