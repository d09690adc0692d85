"""States of loops that only grow: what the iterations append is stacked by the loop, and joined after it.

What reads a sequence that is split from a tensor reads the tensor (`_sequences`).

A state that each iteration concatenates something to changes its shape, and a sequence is no tensor, so no
kernel has such a state. A stacked output has the items in one tensor that is written once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.ir import Expr, Graph, Node, SequenceType, TensorType
from sabir.rewriting._point import graph_of
from sabir.rewriting._replacing import erase_node
from sabir.rewriting._rewriter import Rewriter
from sabir.rewriting._sequences import axis_of, is_call, read_sources, side_by_side
from sabir.schema import INTERNAL, as_results

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sabir.ir import Builder, Model, Value
    from sabir.schema import Registry

_STATES = 2  # inputs of a Loop, and of its body, before the states
_ITEM = 2  # inputs of a SequenceInsert that appends
_ZEROS = 14  # the opset from which on a Reshape may make axes without elements
_MOST_ROUNDS = 8


class StackAccumulators(NamedTuple):
    """The pass that replaces states of Loops which only grow by stacked outputs.

    Such a state is a tensor to which each iteration concatenates tensors that always have the same shape, or
    a sequence that is empty at first, and to which each iteration appends such a tensor. Nothing else in the
    body reads it. Calls of SequenceMap on sequences that are split from tensors become such loops. The nodes
    use operators of the domain `sabir.internal`, which `registry` must have.

    >>> from sabir.opsets import STANDARD, with_internal
    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (int64 n, float[1, 4] x) => (y) { y = Loop (n, , x) <body = b (int64 i, bool c, float[m, 4] s)
    ... => (c, t) { u = Exp (x)  t = Concat <axis = 0> (s, u) }> }''')
    >>> StackAccumulators(with_internal(STANDARD)).run(model), model.graph.value('y').node.op
    (True, 'Concat')
    """

    registry: Registry
    name: str = "stack accumulators"

    def run(self, model: Model) -> bool:
        """Replace the states, in all graphs; return whether there was any."""
        if (model.opset("") or 0) < _ZEROS:
            return False
        changed = False
        for _ in range(_MOST_ROUNDS):  # a sequence that a loop fills may be read by the next loop
            has_read = read_sources(model, self.registry)
            if not self._stack(model) and not has_read:
                break
            changed = True
        return changed

    def _stack(self, model: Model) -> bool:
        """Replace the states of the loops; return whether there was any."""
        loops = [node for graph in model.graphs() for node in graph.all_nodes() if is_call(node, "Loop")]
        if not loops:
            return False
        model.opsets[INTERNAL] = 1
        rewriter, changed = Rewriter(model, registry=self.registry), False
        sizes = _sizes_of_inputs(model)
        for node in loops:
            found = list(_accumulators(node, rewriter, sizes))
            if found:
                _stack(node, found, rewriter)
                changed = True
        return changed


class _Accumulator(NamedTuple):
    """A state that only grows: its number, the node that appends to it, and the type of what it appends."""

    number: int
    append: Node
    items: Sequence[TensorType]

    @property
    def is_sequence(self) -> bool:
        return self.append.op == "SequenceInsert"


def _sizes_of_inputs(model: Model) -> frozenset[str]:
    """Return the symbols of the sizes of the inputs: no iteration changes them."""
    kinds = [v.type for v in model.graph.inputs]
    shapes = [kind.shape or () for kind in kinds if isinstance(kind, TensorType)]
    return frozenset(s for shape in shapes for d in shape if isinstance(d, Expr) for s in d.symbols)


# ---------------------------------------------------------------- recognition


def _accumulators(node: Node, rewriter: Rewriter, sizes: frozenset[str]) -> Iterator[_Accumulator]:
    (body,) = node.graphs
    initial = node.inputs[_STATES:]
    if len(body.inputs) != _STATES + len(initial) or len(body.outputs) <= len(initial):
        return
    for number, (first, state) in enumerate(zip(initial, body.inputs[_STATES:], strict=True)):
        append = _appending(state, body.outputs[1 + number], body)
        if first is None or append is None:
            continue
        if not all(_may_grow(v, append, sizes) for v in (state, body.outputs[1 + number])):
            continue
        kinds = [None if v is None else rewriter.inference.type_of(v) for v in append.inputs[1:]]
        items = [k for k in kinds if isinstance(k, TensorType) and _is_fixed(k, sizes)]
        if len(items) == len(kinds) and _fits(append, first, items, rewriter):
            yield _Accumulator(number, append, items)


def _appending(state: Value, result: Value | None, body: Graph) -> Node | None:
    """Return the node that appends to a state, if nothing else in the body reads the state or the result."""
    append = None if result is None else result.node
    if result is None or append is None or graph_of(append) is not body:
        return None
    if not is_call(append, "Concat", "SequenceInsert") or append.inputs[0] is not state:
        return None
    only_state = [use.user for use in state.uses] == [append]
    only_result = [use.user for use in result.uses] == [body]
    return append if only_state and only_result else None


def _may_grow(value: Value | None, append: Node, sizes: frozenset[str]) -> bool:
    """Return whether the declared type of a state leaves the size open that grows; else a run reports it."""
    kind = None if value is None else value.type
    if not isinstance(kind, TensorType) or kind.shape is None:
        return True
    axis = axis_of(append, len(kind.shape))
    size = None if axis is None else kind.shape[axis]
    return size is None or (isinstance(size, Expr) and not size.symbols <= sizes)


def _is_fixed(kind: TensorType, sizes: frozenset[str]) -> bool:
    """Return whether a tensor has the same shape in each iteration."""
    dims = kind.shape
    return dims is not None and all(
        isinstance(d, int) or (isinstance(d, Expr) and d.symbols <= sizes) for d in dims
    )


def _fits(append: Node, first: Value, items: Sequence[TensorType], rewriter: Rewriter) -> bool:
    """Return whether a node appends items of one rank, to an empty sequence or to a tensor of this rank."""
    if not items:
        return False
    kind, item = rewriter.inference.type_of(first), items[0]
    rank = len(item.shape or ())
    if append.op == "SequenceInsert":
        is_empty = is_call(first.node, "SequenceEmpty") and len(append.inputs) == _ITEM
        return is_empty and isinstance(kind, SequenceType) and kind.item == TensorType(item.element)
    if any(len(other.shape or ()) != rank for other in items):
        return False
    has_rank = isinstance(kind, TensorType) and kind.shape is not None and len(kind.shape) == rank
    return has_rank and axis_of(append, rank) is not None


# ---------------------------------------------------------------- replacement


def _stack(node: Node, found: Sequence[_Accumulator], rewriter: Rewriter) -> None:
    (body,) = node.graphs
    numbers = {each.number for each in found}
    limits, initial = node.inputs[:_STATES], node.inputs[_STATES:]
    kept = [n for n in range(len(initial)) if n not in numbers]
    others = len(body.outputs) - 1 - len(initial)

    def build(b: Builder) -> tuple[Value, ...]:
        _change_body(body, found, kept, rewriter)
        count = len(kept) + others + len(found)
        states = [initial[n] for n in kept]
        results: list[Value] = [*as_results(b.op("Loop", *limits, *states, body=body, outputs=count))]
        ends = dict(zip(kept, results, strict=False))
        stacks = results[len(kept) + others :]
        for each, stack in zip(found, stacks, strict=True):
            first = initial[each.number]
            ends[each.number] = stack if first is None else _joined(b, each, first, stack)
        return *(ends[n] for n in range(len(initial))), *results[len(kept) : len(kept) + others]

    rewriter.replace(node, build)


def _change_body(body: Graph, found: Sequence[_Accumulator], kept: Sequence[int], rewriter: Rewriter) -> None:
    """Let the body return what it appends; the states are gone."""
    states, outputs = list(body.inputs[_STATES:]), list(body.outputs)
    items = [_item(each, rewriter) for each in found]
    body.outputs = [outputs[0], *(outputs[1 + n] for n in kept), *outputs[1 + len(states) :], *items]
    for each in found:
        if each.is_sequence or len(each.items) == 1:
            erase_node(each.append)
    body.inputs = [*body.inputs[:_STATES], *(states[n] for n in kept)]


def _item(each: _Accumulator, rewriter: Rewriter) -> Value:
    """Return what a body appends as one value: several tensors are concatenated first."""
    append = each.append
    item = append.inputs[1]
    if item is None:
        raise TypeError("what is appended has a type")
    if len(each.items) == 1:
        return item
    result = append.outputs[0]
    append.inputs = append.inputs[1:]
    if result is None:
        raise TypeError("the state is an output of the body")
    result.type = None
    rewriter.inference.types.pop(result, None)
    return result


def _joined(b: Builder, each: _Accumulator, first: Value, stack: Value) -> Value:
    """Return the last value of a state, from its first one and the stacked items."""
    if each.is_sequence:
        return b.SplitToSequence(stack, axis=0, keepdims=0)
    rank = len(each.items[0].shape or ())
    axis = axis_of(each.append, rank) or 0
    return b.Concat(first, side_by_side(b, stack, axis, rank), axis=axis)
