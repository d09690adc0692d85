"""Softmax, LogSoftmax and Hardmax: their axes, before and after the change from matrix rows to one axis."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sabir import loops
from sabir.ir import TensorType, product
from sabir.opsets.families.shapes.shapes import axis_in
from sabir.schema import Attribute, Unconvertible

if TYPE_CHECKING:
    from sabir.ir import Builder, Value
    from sabir.loops import Expression
    from sabir.opsets.typing import Array, BehaviourFunction
    from sabir.schema import Version

SPLIT = Attribute("axis", "int", "The axis before which the shape is split into rows and columns.", default=1)


def split_before(newer: Version) -> None:
    """Attach the behaviours of the versions before `newer`, which normalise the rows of a matrix.

    They evaluate and lower each row as `newer` does, which must have both behaviours already. Attaches the
    inference of both and the adapters between them too.
    """
    older, name = newer.operator.versions[0], newer.operator.name
    evaluate, lower = newer.behaviours["evaluate"], newer.behaviours["lower"]
    older.infer(infer_split)
    newer.infer(infer_axis)
    newer.upgrade(split_to_axis(name))
    newer.downgrade(axis_to_split(name))

    @older.evaluate
    def evaluate_rows(x: Array, /, *, axis: int) -> Array:
        return over_rows(evaluate, x, axis)

    @older.lower
    def lower_rows(x: Expression, /, *, axis: int) -> Expression:
        return _lowered_over_rows(lower, x, axis)


def infer_split(x: TensorType, /, *, axis: int) -> TensorType:
    """The output has the input's type; `axis` splits the shape, and may be the rank itself."""
    if x.shape is not None and axis != len(x.shape):
        axis_in(axis, len(x.shape))
    return TensorType(x.element, x.shape)


def infer_axis(x: TensorType, /, *, axis: int) -> TensorType:
    """The output has the input's type; `axis` names one of its dimensions."""
    if x.shape is not None:
        axis_in(axis, len(x.shape))
    return TensorType(x.element, x.shape)


def over_rows(rule: BehaviourFunction, x: Array, axis: int) -> Array:
    """Apply `rule(matrix, axis=-1)` to `x`, split into rows and columns before `axis`."""
    split = x.ndim if axis == x.ndim else axis_in(axis, x.ndim)
    matrix = x.reshape(math.prod(x.shape[:split]), math.prod(x.shape[split:]))
    return rule(matrix, axis=-1).reshape(x.shape)


def _lowered_over_rows(rule: BehaviourFunction, x: Expression, axis: int) -> Expression:
    """Apply `rule` as `over_rows` does, without a change of shape where the split leaves one dimension."""
    split = x.rank if axis == x.rank else axis_in(axis, x.rank)
    if split == x.rank - 1:
        return rule(x, axis=split)
    sizes = product(x.shape[:split]), product(x.shape[split:])
    matrix = loops.reshape(x, [size for size in sizes if size is not None])
    return loops.reshape(rule(matrix, axis=-1), x.shape)


def split_to_axis(name: str) -> BehaviourFunction:
    """Return the upgrade from rows to an axis: flattens explicitly, unless the split leaves one dimension."""

    def upgrade(b: Builder, x: Value, /, *, axis: int) -> Value:
        shape = x.type.shape if isinstance(x.type, TensorType) else None
        if axis == -1 or (shape is not None and len(shape) == axis + 1):
            return b.op(name, x, axis=-1)
        if shape is not None and axis != len(shape):
            split = axis_in(axis, len(shape))
            wide = [place for place in range(split, len(shape)) if shape[place] != 1]
            if len(wide) <= 1:  # as after a global pooling: the other columns are dimensions of 1
                return b.op(name, x, axis=wide[0] if wide else split)
        return b.Reshape(b.op(name, b.Flatten(x, axis=axis), axis=-1), b.Shape(x))

    return upgrade


def axis_to_split(name: str) -> BehaviourFunction:
    """Return the downgrade from an axis to rows: moves the axis last, unless only 1s follow it."""

    def downgrade(b: Builder, x: Value, /, *, axis: int) -> Value:
        shape = x.type.shape if isinstance(x.type, TensorType) else None
        if shape is None:
            if axis == -1:
                return b.op(name, x, axis=-1)
            raise Unconvertible(f"the rank of the input is unknown, and {name}:11 needs the axis moved last")
        rank = len(shape)
        axis, last = axis_in(axis, rank), rank - 1
        if all(d == 1 for d in shape[axis + 1 :]):
            return b.op(name, x, axis=axis)
        swap = [*range(rank)]
        swap[axis], swap[last] = last, axis
        return b.Transpose(b.op(name, b.Transpose(x, perm=swap), axis=last), perm=swap)

    return downgrade
