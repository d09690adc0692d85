"""Elementwise operators over several shapes: numpy's broadcasting, and the one-way kind of older versions.

One-way broadcasting changes the shape of the second operand only, where the attribute `broadcast` says so:
from the attribute `axis` on, its dimensions must equal those of the first operand, or be 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir import loops
from sabir.base import InferenceError
from sabir.ir import Builder, TensorType, Value, known_equal, may_be_equal
from sabir.loops import NotLowered
from sabir.opsets.families.shapes import contents
from sabir.opsets.families.shapes.shapes import axis_in, broadcast
from sabir.schema import Unconvertible

if TYPE_CHECKING:
    from collections.abc import Callable

    from sabir.elements import ElementType
    from sabir.ir import Dim, Item, Shape
    from sabir.loops import Expression
    from sabir.opsets.typing import Array, BehaviourFunction
    from sabir.schema import Version

# ---------------------------------------------------------------- numpy's broadcasting


def merged(*inputs: TensorType, element: ElementType | None = None) -> TensorType:
    """Return the inputs' common element type (or `element`) under the shape they broadcast to."""
    common = next((t.element for t in inputs if t.element.number), inputs[0].element)
    return TensorType(element or common, broadcast(*(t.shape for t in inputs)))


def computed(
    function: Callable[..., Item], *inputs: TensorType, element: ElementType | None = None
) -> TensorType:
    """Return the broadcast type, with `function` of the inputs' contents where one of them is symbolic.

    Where all contents are numbers, the engine evaluates the operator on them.
    """
    result = merged(*inputs, element=element)
    if any(t.known is None for t in inputs) or all(contents.is_numeric(t.known) for t in inputs):
        return result
    return contents.computed(result, function, *inputs)


# ---------------------------------------------------------------- one-way broadcasting


def one_way_before(newer: Version, *, element: ElementType | None = None, commutes: bool = False) -> None:
    """Attach one-way broadcasting to the versions before `newer`, and the adapters between the two kinds.

    The older versions evaluate and lower as `newer`, which must have both behaviours already. `element`
    is the element type of the output where it is not that of the operands; if the operator `commutes`,
    the downgrade may swap the operands.
    """
    first, name = newer.operator.versions[0], newer.operator.name
    first.infer(one_way(element))
    first.evaluate(_evaluated_one_way(newer.behaviours["evaluate"]))
    first.lower(_lowered_one_way(newer.behaviours["lower"]))
    newer.upgrade(upgraded(name))
    newer.downgrade(_downgraded(newer, commutes=commutes))


def fitted(a: Array, b: Array, broadcast: int, axis: int | None) -> Array:
    """Return `b` in a shape that numpy broadcasts to the shape of `a` as the attributes say."""
    if not broadcast:
        if a.shape != b.shape:
            raise ValueError(f"shapes {list(a.shape)} and {list(b.shape)} differ, and `broadcast` is not set")
        return b
    if b.size == 1:
        return b.reshape(())
    start = _start_of(a.ndim, b.ndim, axis)
    wide = b.reshape(b.shape + (1,) * (a.ndim - start - b.ndim))
    if np.broadcast_shapes(a.shape, wide.shape) != a.shape:
        raise ValueError(f"shape {list(b.shape)} at axis {start} does not broadcast to {list(a.shape)}")
    return wide


def fitted_expression(a: Expression, b: Expression, broadcast: int, axis: int | None) -> Expression:
    """Return `b` as `fitted` does; raises NotLowered where the symbols leave open whether it fits."""
    if not broadcast:
        if not loops.same_shape(a.shape, b.shape):
            raise NotLowered("whether the operands are of one shape is known at run time only")
        return b
    if all(d == 1 for d in b.shape):
        return loops.reshape(b, ())
    start = _start_of(a.rank, b.rank, axis)
    wide = loops.reshape(b, (*b.shape, *(1,) * (a.rank - start - b.rank)))
    if not loops.same_shape(loops.broadcast(a.shape, wide.shape), a.shape):
        raise NotLowered("the second operand broadcasts the first one too")
    return wide


def one_way(element: ElementType | None = None) -> BehaviourFunction:
    """Return the type inference of a binary operator that broadcasts its second operand to the first.

    `element` is the element type of the output where it is not that of the operands.
    """

    def infer(a: TensorType, b: TensorType, /, *, broadcast: int, axis: int | None) -> TensorType:
        if a.shape is not None and b.shape is not None and b.size != 1:
            _check_one_way(a.shape, b.shape, broadcast, axis)
        shape = b.shape if a.shape is None and not broadcast else a.shape
        return TensorType(element or (a.element if a.element.number else b.element), shape)

    return infer


def upgraded(name: str) -> BehaviourFunction:
    """Return the adapter from one-way broadcasting to numpy's, which appends the missing dimensions."""

    def upgrade(b: Builder, left: Value, right: Value, /, *, broadcast: int, axis: int | None) -> Value:
        if not broadcast or axis is None or _is_single(_shape(right)):
            return b.op(name, left, right)
        a, c = _shape(left), _shape(right)
        if a is None or c is None:
            raise Unconvertible(f"{name} broadcasts from axis {axis}, and the rank of an operand is unknown")
        missing = len(a) - _start_of(len(a), len(c), axis) - len(c)
        if missing:
            right = b.Unsqueeze(right, axes=list(range(len(c), len(c) + missing)))
        return b.op(name, left, right)

    return upgrade


def _start_of(rank: int, narrow: int, axis: int | None) -> int:
    """Return the axis of a tensor of `rank` at which the second operand's dimensions begin."""
    start = rank - narrow if axis is None else axis_in(axis, rank)
    if start < 0 or start + narrow > rank:
        raise InferenceError(
            f"{narrow} dimensions from axis {axis} do not fit a first operand of rank {rank}"
        )
    return start


def _check_one_way(a: Shape, b: Shape, broadcast: int, axis: int | None) -> None:
    if not broadcast and len(a) != len(b):
        raise InferenceError(f"ranks {len(a)} and {len(b)} differ, and `broadcast` is not set")
    start = _start_of(len(a), len(b), axis if broadcast else None)
    for wide, narrow in zip(a[start:], b, strict=False):
        if not may_be_equal(wide, narrow) and not (broadcast and narrow == 1):
            raise InferenceError(f"dimension {narrow} of the second operand does not fit {wide} of the first")


def _evaluated_one_way(evaluate: BehaviourFunction) -> BehaviourFunction:
    """Return the evaluation of a binary operator, preceded by one-way broadcasting."""

    def evaluate_one_way(a: Array, b: Array, /, *, broadcast: int, axis: int | None) -> Array:
        return evaluate(a, fitted(a, b, broadcast, axis))

    return evaluate_one_way


def _lowered_one_way(lower: BehaviourFunction) -> BehaviourFunction:
    """Return the lowering of a binary operator, preceded by one-way broadcasting."""

    def lower_one_way(a: Expression, b: Expression, /, *, broadcast: int, axis: int | None) -> Expression:
        return lower(a, fitted_expression(a, b, broadcast, axis))

    return lower_one_way


def _downgraded(newer: Version, *, commutes: bool) -> BehaviourFunction:
    """Return the adapter from numpy's broadcasting to the one-way kind, where that can express it."""
    name = newer.operator.name

    def downgrade(b: Builder, left: Value, right: Value, /) -> Value:
        a, c = _shape(left), _shape(right)
        if a is None or c is None:
            raise Unconvertible(
                f"the rank of an operand of {name} is unknown, and {newer.previous} broadcasts only one way"
            )
        if _same(a, c):
            return b.op(name, left, right)
        if _single_fits(a, c):
            return b.op(name, left, right, broadcast=1)
        if commutes and _single_fits(c, a):
            return b.op(name, right, left, broadcast=1)
        if commutes and _core(a, c) is None:
            left, right, a, c = right, left, c, a
        core = _core(a, c)
        if core is None:
            raise Unconvertible(
                f"{newer.previous} cannot broadcast its first operand, nor a 1 inside the shape of the second"
            )
        return b.op(name, left, _squeezed(b, right, c, core), broadcast=1, axis=core[0] + len(a) - len(c))

    return downgrade


def _core(a: Shape, b: Shape) -> tuple[int, int] | None:
    """Return the range of `b`'s axes that are a contiguous part of `a`'s, where the rest of them are 1."""
    offset = len(a) - len(b)
    if offset < 0:
        return None
    first = next((i for i, d in enumerate(b) if d != 1), len(b))
    last = next((i + 1 for i, d in reversed([*enumerate(b)]) if d != 1), first)
    return (first, last) if first < last and _same(a[offset + first : offset + last], b[first:last]) else None


def _squeezed(b: Builder, value: Value, shape: Shape, core: tuple[int, int]) -> Value:
    ones = [i for i in range(len(shape)) if not core[0] <= i < core[1]]
    return b.Squeeze(value, axes=ones) if ones else value


def _single_fits(a: Shape, b: Shape) -> bool:
    return _is_single(b) and len(b) <= len(a)


def _is_single(shape: Shape | None) -> bool:
    return shape is not None and all(d == 1 for d in shape)


def _same(a: tuple[Dim, ...], b: tuple[Dim, ...]) -> bool:
    return len(a) == len(b) and all(map(known_equal, a, b))


def _shape(value: Value) -> Shape | None:
    return value.type.shape if isinstance(value.type, TensorType) else None
