"""Cumulative sums and products along an axis: ports and behaviours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sabir import loops
from sabir.ir import TensorType, tensor_type
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers import halves
from sabir.opsets.families.numbers.arithmetic import as_dims, as_items, widened
from sabir.opsets.families.numbers.scalars import element_of
from sabir.opsets.families.shapes import contents
from sabir.opsets.families.shapes.extents import ints_of, shape_of, sizes
from sabir.opsets.families.shapes.ranks import as_number, check_one
from sabir.opsets.families.shapes.shapes import axis_in
from sabir.schema import Attribute, Constraint, Input, Unconvertible, tensors

if TYPE_CHECKING:
    from collections.abc import Callable

    from sabir.ir import Builder, Dim, Value
    from sabir.loops import Expression
    from sabir.opsets.typing import Array, BehaviourFunction


def inputs(of: Constraint) -> list[Input]:
    """Return the inputs."""
    axis = "The axis to accumulate along: one number in [-rank, rank-1]."
    return [
        Input("x", of, "A tensor of rank 1 or more.", differentiable=True),
        Input("axis", Constraint("T2", tensors("int32", "int64")), axis, differentiable=False),
    ]


def attributes(neutral: int) -> list[Attribute]:
    """Return the attributes; `neutral` is the first element of an exclusive result."""
    exclusive = f"1: exclude the element itself; the first result is {neutral}."
    return [
        Attribute("reverse", "int", "1: accumulate from the end of the axis.", default=0),
        Attribute("exclusive", "int", exclusive, default=0),
    ]


def inferred(combine: Callable[[Dim, Dim], Dim], neutral: int) -> BehaviourFunction:
    """Return the type inference; `combine` joins two dimensions, `neutral` is the first exclusive result."""
    combined = np.frompyfunc(combine, 2, 1)

    def infer(x: TensorType, axis: TensorType, /, *, reverse: int, exclusive: int) -> TensorType:
        y = TensorType(x.element, x.shape)
        check_one("axis", axis)
        place = contents.ints(axis.known)
        if x.shape is None or not place:
            return y
        along = axis_in(place[0], len(x.shape))

        def run(known: Array) -> Array:
            runs = _running(as_dims(known), along, reverse, exclusive, neutral, combined.accumulate)
            return as_items(runs, x.element)

        return contents.moved(y, run, x)

    return infer


def evaluated(combine: np.ufunc, neutral: int) -> BehaviourFunction:
    """Return the evaluation: integers wrap, halves accumulate in float32."""

    def evaluate(x: Array, axis: Array, /, *, reverse: int, exclusive: int) -> Array:
        along = axis_in(int(as_number("axis", axis)), x.ndim)
        runs = _running(widened(x), along, reverse, exclusive, neutral, combine.accumulate)
        return runs.astype(x.dtype, copy=False)

    return evaluate


def expressed(op: str) -> BehaviourFunction:
    """Return the lowering, for an axis that is known before a run; `op` is sum or prod."""

    def lower(x: Expression, axis: Expression, /, *, reverse: int, exclusive: int) -> Expression:
        along = kernels.number_of(axis, "axis")
        return loops.cumulate(
            op, x, axis_in(int(along), x.rank), exclusive=bool(exclusive), reverse=bool(reverse)
        )

    return lower


def scanned(name: str, neutral: int) -> BehaviourFunction:
    """Return the downgrade of a first version: a scan whose state is combined with each slice by `name`.

    The sums of halves are floats, rounded once, as evaluation computes them.
    """

    def downgrade(b: Builder, x: Value, axis: Value, /, *, reverse: int, exclusive: int) -> Value:
        kind, dims, known = element_of(x), shape_of("x", x), ints_of(b, axis)
        if known is None or len(known) != 1:
            raise Unconvertible("`axis` is computed at run time, and Scan needs it in the model")
        along = axis_in(known[0], len(dims))
        wide = halves.widened(b, x)
        others = [i for i in range(len(dims)) if i != along]
        one = np.array([neutral], element_of(wide).dtype)
        start = b.ConstantOfShape(sizes(b, x, others), value=one)
        row = tensor_type(one.dtype, [d if isinstance(d := dims[i], int) else None for i in others])

        def step(g: Builder) -> tuple[Value, Value]:
            before, item = g.input("before", row), g.input("item", row)
            after = g.op(name, before, item)
            return after, g.Identity(before if exclusive else after)

        directions, axes = [1] if reverse else None, [along] if along else None
        results: Any = b.op(
            "Scan", start, wide, outputs=2, num_scan_inputs=1, body=b.subgraph(step), scan_input_axes=axes,
            scan_output_axes=axes, scan_input_directions=directions, scan_output_directions=directions,
        )  # fmt: skip
        return results[1] if element_of(wide) is kind else b.Cast(results[1], to=kind.number)

    return downgrade


def _running(
    x: Array, axis: int, reverse: int, exclusive: int, neutral: int, accumulate: BehaviourFunction
) -> Array:
    """Accumulate along an axis; exclusive results are shifted, as an infinity cannot be subtracted again."""
    rows = np.moveaxis(x, axis, 0)
    rows = rows[::-1] if reverse else rows
    runs = accumulate(rows, axis=0)
    if exclusive:
        runs = np.concatenate([np.full_like(runs[:1], neutral), runs[:-1]])
    return np.moveaxis(runs[::-1] if reverse else runs, 0, axis)
