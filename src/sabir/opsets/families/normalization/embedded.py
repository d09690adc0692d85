"""EmbedLayerNormalization and its quantized form: rows of embedding tables, summed and normalised."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np

from sabir import loops
from sabir.base import EvaluationError, InferenceError
from sabir.elements import INT32
from sabir.ir import TensorType
from sabir.opsets.families.normalization import normalization, normalization_kernels
from sabir.opsets.families.shapes.axes import as_input
from sabir.opsets.families.shapes.ranks import check_rank, check_shape
from sabir.opsets.families.shapes.shapes import same_dim
from sabir.schema import Constraint, Input, tensors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir import Builder, Dim, Value
    from sabir.loops import Expression
    from sabir.opsets.typing import Array

_Kind = TypeVar("_Kind")
Tables: TypeAlias = tuple[_Kind, _Kind, _Kind | None]  # of words, positions and segments
IDS = Constraint("T1", tensors("int32"))
INPUT_IDS = Input("input_ids", IDS, "The rows of the word table, (batch, sequence).")
SEGMENT_IDS = Input(
    "segment_ids",
    IDS,
    "The rows of the segment table, in the shape of `input_ids`; 0 by default.",
    optional=True,
)
MASK_DOC = "1 for each word, in the shape of `input_ids`."
MASK_INDEX_DOC = "The number of ones in the mask of each item, (batch); 0 without a mask."
_TABLE = 2  # the rank of a table


def infer(
    ids: TensorType,
    segment_ids: TensorType | None,
    position_ids: TensorType | None,
    mask: TensorType | None,
    tables: Tables[TensorType],
) -> tuple[tuple[Dim, ...] | None, TensorType, Dim]:
    """Return the shape of the result, the type of the mask index, and the hidden size.

    `tables` has those of words, positions and segments. Raises InferenceError for shapes that do not belong
    together, and for segments without a table.
    """
    if segment_ids is not None and tables[-1] is None:
        raise InferenceError("`segment_ids` need the input `segment_embedding`")
    check_rank("input_ids", ids, 2)
    for name, table in zip(
        ("word_embedding", "position_embedding", "segment_embedding"), tables, strict=True
    ):
        check_rank(name, table, _TABLE)
    batch, steps = (None, None) if ids.shape is None else ids.shape
    for name, x in (("segment_ids", segment_ids), ("mask", mask)):
        check_shape(name, x, batch, steps)
    if position_ids is not None and position_ids.shape is not None and position_ids.shape[:1] != (1,):
        check_shape("position_ids", position_ids, batch, steps)
    check_shape("position_ids", position_ids, None, steps)
    places = (("input_ids", ids), ("position_ids", position_ids), ("segment_ids", segment_ids))
    for (name, x), table in zip(places, tables, strict=True):
        _check_known(name, x, table)
    if position_ids is None:
        _check_positions(steps, tables[1])
    widths = [t.shape[1] for t in tables if t is not None and t.shape is not None]
    hidden = same_dim(widths, "hidden sizes") if widths else None
    shape = None if ids.shape is None else (batch, steps, hidden)
    return shape, TensorType(INT32, (batch,)), hidden


def _check_known(name: str, indices: TensorType | None, table: TensorType | None) -> None:
    """Raise InferenceError for a known index that is outside of a table."""
    count = table.shape[0] if table is not None and table.shape else None
    for index in (indices.known if indices is not None else None) or ():
        if isinstance(index, int) and (index < 0 or (isinstance(count, int) and index >= count)):
            raise InferenceError(f"`{name}` must be from 0 to {'?' if count is None else count - 1}")


def _check_positions(steps: Dim, table: TensorType | None) -> None:
    """Raise InferenceError where a sequence is longer than the table of positions."""
    count = table.shape[0] if table is not None and table.shape else None
    if isinstance(steps, int) and isinstance(count, int) and steps > count:
        raise InferenceError(f"`position_embedding` has {count} positions, and a sequence {steps}")


def rows(
    ids: Array, segment_ids: Array | None, position_ids: Array | None, tables: Tables[Array]
) -> list[Array]:
    """Return the rows of words, positions and segments, which broadcast to (batch, sequence, hidden).

    Raises EvaluationError for an index outside of a table.
    """
    words, positions, segments = tables
    places = np.arange(ids.shape[1], dtype=np.int64) if position_ids is None else position_ids
    found = [_taken("input_ids", words, ids), _taken("position_ids", positions, places)]
    if segments is not None:
        found.append(
            _taken("segment_ids", segments, np.zeros(1, int) if segment_ids is None else segment_ids)
        )
    return found


def _taken(name: str, table: Array, indices: Array) -> Array:
    if indices.size and not 0 <= indices.min() <= indices.max() < len(table):
        raise EvaluationError(f"`{name}` must be from 0 to {len(table) - 1}")
    return table[indices]


def summed(parts: Sequence[Array]) -> Array:
    """Return the sum of rows, which are (batch, sequence, hidden) or broadcast to it."""
    total = np.add(parts[0], parts[1])
    for part in parts[2:]:
        total += part
    return total


def normalized(total: Array, gamma: Array, beta: Array, epsilon: float) -> Array:
    """Return a sum (batch, sequence, hidden) of floats, normalised over the last axis, scaled and shifted."""
    y = normalization.normalized(total.reshape(math.prod(total.shape[:2]), total.shape[2]), epsilon).rows
    y *= gamma
    y += beta
    return y.reshape(total.shape)


def counted_words(ids: Array, mask: Array | None) -> Array:
    """Return the mask index: how many ones each row of the mask has."""
    return np.zeros(len(ids), np.int32) if mask is None else (mask == 1).sum(axis=1, dtype=np.int32)


# ---------------------------------------------------------------- kernels


def lowered_rows(
    ids: Expression,
    segment_ids: Expression | None,
    position_ids: Expression | None,
    tables: Tables[Expression],
) -> list[Expression]:
    """Return what `rows` does; a run with an index outside of a table fails."""
    words, positions, segments = tables
    found = [_lowered_taken(words, ids), _lowered_positions(positions, position_ids, ids.shape[1])]
    if segments is not None:
        first = loops.reshape(loops.number("int64", 0), (1, 1))
        found.append(_lowered_taken(segments, first if segment_ids is None else segment_ids))
    return found


def _lowered_positions(table: Expression, indices: Expression | None, steps: loops.Size) -> Expression:
    """Return the rows of positions; without indices the first ones, which need no table of indices."""
    if indices is not None:
        return _lowered_taken(table, indices)
    if loops.at_least(table.shape[0], steps):
        return loops.narrow(table, 0, 0, steps)
    return loops.take(table, loops.count((steps,), 0), 0)


def _lowered_taken(table: Expression, indices: Expression) -> Expression:
    """Return the rows of a table; a negative index is refused, and so leads outside."""
    outside = loops.sized("int64", table.shape[0])
    place = loops.cast(indices, "int64")
    return loops.take(table, loops.where(loops.apply("lt", place, 0), outside, place), 0)


def lowered_sum(parts: Sequence[Expression], shape: Sequence[loops.Size]) -> Expression:
    """Return the sum of rows in a shape."""
    total = parts[0]
    for part in parts[1:]:
        total = loops.apply("add", total, part)
    return loops.expand(total, shape)


def lowered_normalized(total: Expression, gamma: Expression, beta: Expression, epsilon: float) -> Expression:
    """Return what `normalized` does, in float."""
    normal = normalization_kernels.standardized(total, [total.rank - 1], epsilon)
    return loops.apply("add", loops.apply("mul", normal.y, gamma), beta)


def lowered_words(ids: Expression, mask: Expression | None) -> Expression:
    """Return what `counted_words` does."""
    if mask is None:
        return loops.expand(loops.number("int32", 0), ids.shape[:1])
    ones = loops.cast(loops.apply("eq", mask, 1), "int32")
    return loops.squeeze(loops.reduce("sum", ones, [1]), [1])


# ---------------------------------------------------------------- function bodies


def emitted_rows(
    b: Builder,
    ids: Value,
    segment_ids: Value | None,
    position_ids: Value | None,
    tables: Tables[Value],
) -> list[Value]:
    """Emit what `rows` returns; segments without indices have their first row."""
    words, positions, segments = tables
    if position_ids is None:
        steps = b.Squeeze(b.Shape(ids, start=1, end=2), as_input(b, "first", [0]))
        zero, one = (b.initializer(name, np.array(n, np.int64)) for name, n in (("zero", 0), ("one", 1)))
        position_ids = b.Range(zero, steps, one)
    found = [b.Gather(words, ids), b.Gather(positions, position_ids)]
    if segments is not None:
        found.append(b.Gather(segments, as_input(b, "segment", [0]) if segment_ids is None else segment_ids))
    return found


def emitted_sum(b: Builder, parts: Sequence[Value]) -> Value:
    """Emit the sum of rows."""
    total = parts[0]
    for part in parts[1:]:
        total = b.Add(total, part)
    return total


def emitted_words(b: Builder, ids: Value, mask: Value | None) -> Value:
    """Emit what `counted_words` returns."""
    if mask is None:
        return b.ConstantOfShape(b.Shape(ids, end=1), value=np.zeros(1, np.int32))
    ones = b.Cast(b.Equal(mask, b.initializer("one", np.array(1, np.int32))), to=INT32.number)
    return b.ReduceSum(ones, as_input(b, "axes", [1]), keepdims=0)
