"""Tensors with branches: grouped, (..., C, H), or flattened, (..., C * H), and gates of their elements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import InferenceError
from sabir.ir import TensorType, exact_quotient, may_be_equal, mul
from sabir.opsets.families.shapes.axes import as_input
from sabir.opsets.families.shapes.ranks import check_least_rank, check_shape, shown
from sabir.schema import Attribute, Unconvertible, at_least

if TYPE_CHECKING:
    from sabir.ir import Builder, Shape, Value
    from sabir.opsets.typing import Array

NUM_BRANCHES = Attribute(
    "num_branches",
    "int",
    "C, the number of branches of a flattened tensor; 0 for a grouped one.",
    default=0,
    values=at_least(0),
)
GROUPED = 2  # the axes of branches and their elements


def grouped_shape(name: str, x: TensorType, num_branches: int) -> Shape | None:
    """Return (..., C, H), or None for an unknown rank; raises InferenceError where no such sizes exist."""
    check_least_rank(name, x, 1 if num_branches else GROUPED)
    if x.shape is None:
        return None
    shape = x.shape
    if num_branches:
        width = shape[-1]
        if isinstance(width, int) and width % num_branches:
            raise InferenceError(
                f"{width} elements of `{name}` cannot be divided into {num_branches} branches"
            )
        shape = (*shape[:-1], num_branches, exact_quotient(width, num_branches))
    if 0 in shape[-GROUPED:]:
        raise InferenceError(f"`{name}` of the shape {shown(x.shape)} has no branches, or empty ones")
    return shape


def check_gates(name: str, gates: TensorType, streams: Shape | None, *, flattened: bool) -> None:
    """Raise InferenceError unless gates are (..., C), (..., C, 1) or (..., C, H).

    With `flattened` they may be (..., C * H) too.
    """
    if gates.shape is None or streams is None:
        return
    *outer, count, size = streams
    if len(gates.shape) == len(streams):
        last = gates.shape[-1]
        check_shape(name, gates, *outer, count, 1 if last == 1 else size)
        return
    whole = mul(count, size)
    is_whole = flattened and len(gates.shape) == len(outer) + 1 and may_be_equal(gates.shape[-1], whole)
    check_shape(name, gates, *outer, whole if is_whole else count)


def grouped(x: Array, num_branches: int) -> Array:
    """Return a tensor as (..., C, H)."""
    return x.reshape(*x.shape[:-1], num_branches, x.shape[-1] // num_branches) if num_branches else x


def gates_of(gates: Array, streams: tuple[int, ...]) -> Array:
    """Return gates so that they broadcast to streams of the shape (..., C, H)."""
    if gates.ndim == len(streams):
        return gates
    return gates[..., None] if gates.shape[-1] == streams[-GROUPED] else gates.reshape(streams)


def emit_grouped(b: Builder, x: Value, num_branches: int) -> Value:
    """Emit a tensor as (..., C, H)."""
    if not num_branches:
        return x
    count = as_input(b, "branches", [num_branches])
    size = b.Div(b.Shape(x, start=-1), count)
    return b.Reshape(x, b.Concat(b.Shape(x, end=-1), count, size, axis=0), allowzero=1)


def emit_gates(b: Builder, gates: Value, x: Value, num_branches: int) -> Value:
    """Emit gates so that they broadcast to (..., C, H); raises Unconvertible where shapes are unknown."""
    shape = gates.type.shape if isinstance(gates.type, TensorType) else None
    rank = x.type.rank if isinstance(x.type, TensorType) else None
    if shape is None or rank is None:
        raise Unconvertible("the ranks of streams and gates are unknown")
    if len(shape) == rank + (1 if num_branches else 0):
        return gates
    if not num_branches or shape[-1] == num_branches:
        return b.Unsqueeze(gates, as_input(b, "axes", [-1]))
    if not isinstance(shape[-1], int):
        raise Unconvertible("the number of gates is unknown: one for each branch or for each element")
    return emit_grouped(b, gates, num_branches)
