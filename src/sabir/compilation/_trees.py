"""The entries of decision trees."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from sabir.compilation._plan import BufferNumber, Computed, Entry, Mismatch, Offset
from sabir.compilation.kernels import Descent, element_bytes
from sabir.loops import Descend

if TYPE_CHECKING:
    from sabir.compilation._building import PlanBuilder
    from sabir.compilation._groups import Group
    from sabir.compilation._plan import Argument
    from sabir.loops import Expression

_VECTORS = 2  # that take a step together
_BLOCK_BYTES = 1 << 17  # of the features of the rows of a job: they stay in the cache
_MOST_ROWS = 512  # of a job
_MOST_FEATURES = 1 << 24  # so that 32 bits count the features of some rows


def add_trees(builder: PlanBuilder, group: Group) -> None:
    """Add the entry of trees."""
    (x,) = group.members
    if not isinstance(x, Descend):
        raise TypeError("the group is one descent")
    operand, _ = builder.grouping.operands[x]
    located = builder.grouping.views.locate(operand)
    width = element_bytes(x.nodes.element)
    spec = Descent(
        x.nodes.element, x.weights.element, x.op, x.first is not None,
        builder.host.vector_bits // 8 // width, _VECTORS,
    )  # fmt: skip
    entry = Entry([], nodes=builder.origins.labels([x]))
    rows, features = operand.shape
    block = Computed(partial(_rows_of_a_job, together=spec.together, width=width), (features,))
    trees, padded = x.trees, x.roots.shape[-1]
    arguments: list[Argument] = [rows, x.shape[1], trees, block, located.strides[0], x.bits, 4 * padded]
    arguments += builder.pointer(located, operand.element, entry)
    extents = [(rows, located.strides[0]), (x.widest + 1, 1)]
    entry.reaches.append(builder.reach(located, operand.element, extents))
    for table in (x.nodes, x.roots, x.weights):
        arguments += _whole(builder, table, entry)
    arguments += _whole(builder, x, entry)
    for table in (x.first, x.targets):
        arguments += [] if table is None else _whole(builder, table, entry)
    entry.choices.append((None, 0, spec, arguments))
    entry.writes, entry.axes = [builder.buffer(x)], 1
    entry.flops = rows * (trees * x.steps)
    builder.entries.append(entry)


def _whole(builder: PlanBuilder, x: Expression, entry: Entry) -> list[Argument]:
    """Return the arguments of a whole tensor. It is read in places: its bytes do not say what a run costs."""
    buffer = builder.buffer(x)
    buffer.use(len(builder.entries))
    return [BufferNumber(buffer), Offset(buffer, 0)]


def _rows_of_a_job(features: int, *, together: int, width: int) -> int:
    if features > _MOST_FEATURES:
        raise Mismatch(f"rows have {features} features")
    fitting = _BLOCK_BYTES // max(1, features * width)
    return max(1, min(fitting, _MOST_ROWS) // together) * together
