"""Sequences that are split from a tensor, or constructed of tensors: their readers read the tensors.

    s = SplitToSequence (x)  y = SequenceAt (s, i)      is      y = a slice of x
    s = SequenceConstruct (a, b)  y = ConcatFromSequence (s)    is      y = Concat (a, b)

So kernels compute what follows, and nothing makes the sequence.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sabir.ir import Node, SequenceType, TensorType, canonical_domain
from sabir.rewriting._replacing import erase_node
from sabir.rewriting._rewriter import Rewriter
from sabir.schema import INTERNAL, Unconvertible, Version

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sabir.ir import Builder, Model, Value
    from sabir.schema import Registry

    Build = Callable[[Builder], Value]

_END = np.array([np.iinfo(np.int64).max])
_READERS = ("ConcatFromSequence", "SequenceAt", "SequenceLength")


def read_sources(model: Model, registry: Registry) -> bool:
    """Let the readers of sequences read the tensors that these are made of, where they can.

    SequenceMap over such sequences becomes a loop first. Return whether anything has changed.
    """
    nodes = [node for graph in model.graphs() for node in graph.all_nodes()]
    if not any(is_call(node, "SplitToSequence", "SequenceConstruct") for node in nodes):
        return False
    model.opsets[INTERNAL] = 1
    rewriter = Rewriter(model, registry=registry)
    mapped = [_write_out(node, rewriter) for node in nodes if is_call(node, "SequenceMap")]
    if any(mapped):
        rewriter = Rewriter(model, registry=registry)
        nodes = [node for graph in model.graphs() for node in graph.all_nodes()]
    read = [_read(node, rewriter) for node in nodes if is_call(node, *_READERS)]
    return any(mapped) or any(read)


def is_call(node: Node | None, *ops: str) -> bool:
    """Return whether a node calls one of some operators of the default domain."""
    return node is not None and node.op in ops and not canonical_domain(node.domain)


def axis_of(node: Node, rank: int, default: int | None = None) -> int | None:
    """Return the axis of a node for operands of a rank; None if there is no such axis, or it is not known."""
    axis = integer_of(node, "axis", default)
    return axis % rank if axis is not None and -rank <= axis < rank else None


def integer_of(node: Node, name: str, default: int | None = None) -> int | None:
    """Return an attribute of a node; None where the call of a function decides it."""
    found = node.attributes.get(name)
    value = default if found is None else found.value
    return value if isinstance(value, int) else None


def _write_out(node: Node, rewriter: Rewriter) -> bool:
    """Replace a call of SequenceMap by a loop, if its sequences are split from tensors item by item."""
    for value in node.inputs:
        kind = None if value is None else rewriter.inference.type_of(value)
        if kind is None or value is None:
            return False
        if isinstance(kind, SequenceType) and not (
            is_call(value.node, "SplitToSequence") and _is_whole(value.node)
        ):
            return False
    version = rewriter.callee(node)
    if not isinstance(version, Version):
        return False
    try:
        rewriter.expand(node, version, "body")
    except Unconvertible:
        return False
    return True


def _is_whole(split: Node | None) -> bool:
    """Return whether a tensor is split into all of its slices."""
    return split is not None and (len(split.inputs) == 1 or split.inputs[1] is None)


def _read(node: Node, rewriter: Rewriter) -> bool:
    """Replace a reader of a sequence by one of what the sequence is made of; return whether it can be."""
    sequence = node.inputs[0]
    source = None if sequence is None else sequence.node
    if sequence is None or source is None or rewriter.inference.type_of(sequence) is None:
        return False
    build: Build | None = None
    if is_call(source, "SplitToSequence"):
        build = _of_split(node, source, rewriter)
    elif is_call(source, "SequenceConstruct"):
        build = _of_construct(node, [v for v in source.inputs if v is not None], rewriter)
    if build is None:
        return False
    rewriter.replace(node, build)
    if not sequence.is_read and not sequence.is_output:
        erase_node(source)
    return True


# ---------------------------------------------------------------- a tensor that is split


class _Stack(NamedTuple):
    """A tensor of which the items of a sequence are slices; `rank` is that of the items."""

    x: Value
    axis: int
    keeps_axis: bool
    rank: int

    def build(self, b: Builder) -> Value:
        """Add the tensor that has the items along its first axis."""
        others = [n for n in range(self.rank + (not self.keeps_axis)) if n != self.axis]
        moved = self.x if self.axis == 0 else b.Transpose(self.x, perm=[self.axis, *others])
        return (
            b.Unsqueeze(moved, b.initializer("axis", np.array([self.axis + 1]))) if self.keeps_axis else moved
        )


def _of_split(node: Node, split: Node, rewriter: Rewriter) -> Build | None:
    x = split.inputs[0]
    kind = None if x is None else rewriter.inference.type_of(x)
    if x is None or not isinstance(kind, TensorType) or kind.shape is None:
        return None
    rank = len(kind.shape)
    axis, keeps = axis_of(split, rank, 0), integer_of(split, "keepdims", 1)
    if axis is None or keeps is None:
        return None
    if not _is_whole(split):
        return _of_parts(node, split, x, axis, rewriter)
    stack = _Stack(x, axis, bool(keeps), rank if keeps else rank - 1)
    return _reading(node, stack) if _reads_stack(node, stack.rank, rewriter) else None


def _reads_stack(reader: Node, rank: int, rewriter: Rewriter) -> bool:
    if is_call(reader, "ConcatFromSequence"):
        new = integer_of(reader, "new_axis", 0)
        return new is not None and axis_of(reader, rank + new) is not None
    if not is_call(reader, "SequenceAt"):
        return True
    index = reader.inputs[1]
    kind = None if index is None else rewriter.inference.type_of(index)
    return isinstance(kind, TensorType) and kind.shape == ()


def _reading(reader: Node, stack: _Stack) -> Build:
    """Return what builds the result of a reader of a sequence from the stack of its items."""

    def build(b: Builder) -> Value:
        items = stack.build(b)
        index = reader.inputs[1] if reader.op == "SequenceAt" else None
        if index is not None:
            return b.Gather(items, index, axis=0)
        if reader.op == "SequenceLength":
            return b.Gather(b.Shape(items), b.initializer("first", np.array(0)))
        some, new = b.op("NotEmpty", items, domain=INTERNAL), integer_of(reader, "new_axis", 0) or 0
        axis = axis_of(reader, stack.rank + new) or 0
        return _moved(b, some, axis, stack.rank) if new else side_by_side(b, some, axis, stack.rank)

    return build


def _of_parts(reader: Node, split: Node, x: Value, axis: int, rewriter: Rewriter) -> Build | None:
    """Return what reads one part, at a known index, of a tensor that is split into parts of known sizes."""
    sizes = _known(split.inputs[1], rewriter)
    index = _known(reader.inputs[1], rewriter) if is_call(reader, "SequenceAt") else None
    kind = None if split.inputs[1] is None else rewriter.inference.type_of(split.inputs[1])
    if sizes is None or index is None or not isinstance(kind, TensorType) or kind.shape == ():
        return None
    (number,) = index
    if not -len(sizes) <= number < len(sizes):
        return None
    ends = [0, *accumulate(sizes)]
    start, end = ends[number % len(sizes)], ends[number % len(sizes) + 1]

    def build(b: Builder) -> Value:
        bounds = {"start": start, "end": end, "axis": axis}
        return b.Slice(x, *(b.initializer(name, np.array([n])) for name, n in bounds.items()))

    return build


def _known(value: Value | None, rewriter: Rewriter) -> Sequence[int] | None:
    """Return the contents of a tensor of integers; None if they are not known."""
    kind = None if value is None else rewriter.inference.type_of(value)
    if not isinstance(kind, TensorType) or kind.known is None:
        return None
    found = [item for item in kind.known if isinstance(item, int)]
    return found if len(found) == len(kind.known) else None


# ---------------------------------------------------------------- tensors of which a sequence is constructed


def _of_construct(reader: Node, items: Sequence[Value], rewriter: Rewriter) -> Build | None:
    if is_call(reader, "SequenceLength"):
        return lambda b: b.initializer("length", np.array(len(items)))
    if is_call(reader, "SequenceAt"):
        index = _known(reader.inputs[1], rewriter)
        if index is None or len(index) != 1 or not -len(items) <= index[0] < len(items):
            return None
        (number,) = index
        return lambda b: b.Identity(items[number])
    kinds = [rewriter.inference.type_of(item) for item in items]
    ranks = {len(k.shape) if isinstance(k, TensorType) and k.shape is not None else -1 for k in kinds}
    new = integer_of(reader, "new_axis", 0)
    (rank,) = ranks if len(ranks) == 1 else (-1,)
    axis = None if new is None or rank < 0 else axis_of(reader, rank + new)
    if axis is None:
        return None

    def build(b: Builder) -> Value:
        place = b.initializer("axis", np.array([axis])) if new else None
        parts = items if place is None else [b.Unsqueeze(item, place) for item in items]
        return b.Concat(*parts, axis=axis)

    return build


# ---------------------------------------------------------------- stacked items


def side_by_side(b: Builder, stack: Value, axis: int, rank: int) -> Value:
    """Return stacked items of some rank as they are concatenated along an axis."""
    moved = _moved(b, stack, axis, rank)
    shape = b.Shape(moved)
    count = b.Mul(*(b.Gather(shape, b.initializer("axis", np.array([n]))) for n in (axis, axis + 1)))
    zero, first = (b.initializer("first", np.array([n])) for n in (0, axis))
    before = [b.Slice(shape, zero, first)] if axis else []
    after = [b.Slice(shape, b.initializer("next", np.array([axis + 2])), b.initializer("end", _END))]
    whole = b.Concat(*before, count, *(after if axis + 1 < rank else []), axis=0)
    return b.Reshape(moved, whole, allowzero=1)


def _moved(b: Builder, stack: Value, axis: int, rank: int) -> Value:
    """Return stacked items of some rank with the axis of the items at another place."""
    if axis == 0:
        return stack
    return b.Transpose(stack, perm=[*range(1, axis + 1), 0, *range(axis + 1, rank + 1)])
