"""Caches as buffers: a decoder that joins a cache with new rows becomes one that writes the rows into it.

    present = Concat(past, new)                                              before
    present = ScatterElements(buffer, length + [0, 1, ...], new)             after
    joined  = Slice(present, 0, length + rows of new)                        what the decoder reads

The buffer has rows for more positions than there are, the capacity, and `length` says how many there are. So
a session that is told of the pairs writes only the new rows (`Session(caches=..., sizes=...)`), and the
shapes of the caches are the same in each step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sabir.base import SchemaError, UnsupportedError, quote
from sabir.inference import infer
from sabir.ir import Node, TensorType, Value, symbol, tensor_type

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sabir.ir import Dim, Graph, Model

CAPACITY = "cache_capacity"
"""The dimension of the rows of all buffers in the declared types."""
_MOVES = ("Transpose", "Cast", "Identity")  # what may be between a cache and the Concat
_ATTENTION_INPUTS = 7
_PAST, _FILLED = (4, 5), 6  # inputs of Attention: past_key and past_value, nonpad_kv_seqlen
_PACKED = 3  # the rank of queries with all heads on one axis
_PADDED = 24  # the operator set in which Attention has nonpad_kv_seqlen


class _Join(NamedTuple):
    """A Concat of a cache and new rows, with the nodes from the input to it, and from it to the output."""

    node: Node
    before: tuple[Node, ...]
    after: tuple[Node, ...]


def with_cache_buffers(model: Model, pairs: Mapping[str, str], *, length: str = "past_length") -> Model:
    """Return a decoder whose caches are buffers; `pairs` maps each output `present` to its input `past`.

    Each past input, [..., positions, ...], becomes a buffer with any number of positions, the capacity. Of
    these the first `length` are filled: a new input, int64[1]. The output is the buffer with the new rows
    from position `length` on; further positions keep their contents. The other outputs are those of the
    decoder with `length` positions.

    A cache may be joined by Concat, also between Transpose and Cast, or by Attention of the standard, which
    then is of operator set 24 or later. For GroupQueryAttention of onnxruntime buffers are the usual form:
    such nodes stay, and if there are no others `length` is no input. Behind a Cast to a wider type the
    decoder reads the new rows as rounded to the type of the cache, as later steps do.

    Raises SchemaError for a name that is no input or output, UnsupportedError for a cache that is used in
    another way.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[B,P,4] past, float[B,S,4] new) => (float[B,T,4] present, float[B,4] y) {
    ...   present = Concat <axis = 1> (past, new)
    ...   one = Constant <value = int64[1] {1}> ()
    ...   y = ReduceMean <keepdims = 0> (present, one) }''')
    >>> from sabir.generation import with_cache_buffers
    >>> buffered = with_cache_buffers(model, {'present': 'past'})
    >>> print(*(f'{value.name}: {value.type}' for value in buffered.graph.inputs), sep='; ')
    past: float[B,cache_capacity,4]; new: float[B,S,4]; past_length: int64[1]
    >>> rows = np.zeros((1, 8, 4), np.float32)
    >>> feeds = {'past': rows, 'new': np.ones((1, 2, 4), np.float32), 'past_length': np.int64([1])}
    >>> sabir.evaluate(buffered, feeds)['y']
    array([[0.6666667, 0.6666667, 0.6666667, 0.6666667]], dtype=float32)
    """
    model = _with_lengths(model, pairs)
    rewriting = _Buffers(model.graph, length)
    for present, past in pairs.items():
        rewriting.add(present, past)
    rewriting.finish()
    return infer(model, fresh=True)


def _with_lengths(model: Model, pairs: Mapping[str, str]) -> Model:
    """Return a copy of a model, in an operator set in which Attention can read a part of a buffer."""
    opset = model.opset("") or 0
    attends = any(node.op == "Attention" and not node.domain for node in model.graph)
    if not attends or opset >= _PADDED or not pairs:
        return model.clone()
    # ruff: ignore[import-outside-top-level]  few decoders are of that operator set
    from sabir.conversion import convert

    return convert(model, _PADDED)


class _Buffers:
    """The rewriting of one graph."""

    def __init__(self, graph: Graph, length: str) -> None:
        self._graph, self._name = graph, length
        self._length: Value | None = None
        self._outputs = {v.name: number for number, v in enumerate(graph.outputs) if v is not None}
        self._inputs = {value.name: value for value in graph.inputs}
        self._attentions: dict[Node, _AttentionBuffers] = {}

    def add(self, present: str, past: str) -> None:
        """Rewrite one pair."""
        for name, known, kind in ((present, self._outputs, "output"), (past, self._inputs, "input")):
            if name not in known:
                raise SchemaError(f"the model has no {kind} {quote(name)}")
        cache = self._inputs[past]
        result = _present(self._graph.outputs[self._outputs[present]])
        if not isinstance(cache.type, TensorType) or cache.type.shape is None:
            raise UnsupportedError(f"the cache {quote(past)} has no declared rank")
        node = result.node
        if node is not None and node.op == "GroupQueryAttention":
            self._declare(cache, result, 2)
            return
        if node is not None and node.op == "Attention" and not node.domain:
            self._attend(node, present, cache)
            return
        join = _join_of(cache, result)
        if join is None:
            raise UnsupportedError(
                f"the cache {quote(past)} is not joined with new rows by a Concat that gives {quote(present)}"
            )
        self._join(join, present, cache, cache.type)

    def finish(self) -> None:
        """Rewrite the calls of Attention, whose keys and values belong together."""
        for each in self._attentions.values():
            each.run()

    # ------------------------------------------------------------ Concat

    def _join(self, join: _Join, present: str, cache: Value, kind: TensorType) -> None:
        rank = len(kind.shape or ())
        axis = _axis_in_cache(join, rank)
        if axis is None:
            raise UnsupportedError(f"the cache {quote(cache.name)} has another order of axes than its output")
        place = _Place(self._graph, join.node)
        new = place.through(join.node.inputs[1], join.after)
        length = self.length()
        written, total = place.write(cache, new, length, axis, rank)
        read = place.through(place.first(written, total, axis), join.before)
        self._keep_old_readers(cache, [written.node, *join.before[:1]], length, axis, join.node)
        join.node.output.replace_with(read)
        for node in (join.node, *reversed(join.before)):
            if not node.output.uses:
                self._graph.erase(node)
        self._return(written, present, cache, axis)

    def _keep_old_readers(
        self, cache: Value, but: Sequence[Node | None], length: Value, axis: int, neighbour: Node
    ) -> None:
        """Let the other readers of a cache, such as Shape, read its filled rows."""
        others = [
            use for use in cache.uses if isinstance(use.user, Node) and use.user not in {*but, neighbour}
        ]
        if not others:
            return
        filled = _Place(self._graph, None).first(cache, length, axis)
        for use in others:
            if isinstance(use.user, Node) and use.user is not filled.node:
                use.user.inputs[use.slot] = filled

    def _return(self, written: Value, present: str, cache: Value, axis: int) -> None:
        number = self._outputs[present]
        old = _present(self._graph.outputs[number])
        if old.name == present:
            old.name = ""
        written.name = present
        self._graph.outputs[number] = written
        self._declare(cache, written, axis)

    def _declare(self, cache: Value, result: Value, axis: int) -> None:
        """Declare the rows of a buffer and of its output as the capacity."""
        if isinstance(cache.type, TensorType) and cache.type.shape is not None:
            shape: list[Dim] = list(cache.type.shape)
            shape[axis] = symbol(CAPACITY)
            cache.type = result.type = TensorType(cache.type.element, tuple(shape))

    def length(self) -> Value:
        """Return the input with the number of filled rows; it is added at its first use."""
        if self._length is None:
            self._length = self._graph.add_input(self._name, tensor_type("int64", [1]))
        return self._length

    # ------------------------------------------------------------ Attention

    def _attend(self, node: Node, present: str, cache: Value) -> None:
        slot = next((n for n in _PAST if n < len(node.inputs) and node.inputs[n] is cache), None)
        if slot is None:
            raise UnsupportedError(
                f"the cache {quote(cache.name)} is not the past of the Attention of its output"
            )
        found = self._attentions.setdefault(node, _AttentionBuffers(self, self._graph, node))
        found.caches[slot] = present, cache

    def attended(self, written: Value, present: str, cache: Value) -> None:
        """Take the buffer that an Attention reads."""
        self._keep_old_readers(cache, [written.node], self.length(), 2, _node_of(written))
        self._return(written, present, cache, 2)


class _AttentionBuffers:
    """A call of Attention whose past becomes buffers; `caches` has output name and input, by past input."""

    def __init__(self, owner: _Buffers, graph: Graph, node: Node) -> None:
        self._owner, self._graph, self._node = owner, graph, node
        self.caches: dict[int, tuple[str, Value]] = {}

    def run(self) -> None:
        node, place = self._node, _Place(self._graph, self._node)
        if self.caches.keys() != set(_PAST):
            raise UnsupportedError(f"of the past of {node} only one tensor is among the pairs")
        inputs: list[Value | None] = [*node.inputs, *[None] * (_ATTENTION_INPUTS - len(node.inputs))]
        attributes = {name: node.attributes[name].value for name in node.attributes}
        queries, keys = (attributes.pop(name, None) for name in ("q_num_heads", "kv_num_heads"))
        packed = _rank(inputs[0]) == _PACKED
        if packed:
            inputs[:3] = [
                place.split(x, int(n or 0))
                for x, n in zip(inputs[:3], (queries, keys, keys), strict=True)
                if x is not None
            ]
        total: Value | None = None
        for slot, (present, cache) in sorted(self.caches.items()):
            new = inputs[slot - 3]
            if new is None:
                raise SchemaError(f"{node} has no keys or values")
            written, total = place.write(cache, new, self._owner.length(), 2, 4)
            inputs[slot - 3], inputs[slot] = place.first(written, total, 2), None
            node.inputs[slot] = None
            self._owner.attended(written, present, cache)
        if total is None or inputs[0] is None:
            raise SchemaError(f"{node} has no queries")
        batch = place.add("Shape", [inputs[0]], start=0, end=1)
        inputs[_FILLED] = place.add("Expand", [total, batch])
        y = place.add("Attention", inputs, **attributes)
        scores = node.outputs[3] if len(node.outputs) > 3 else None  # ruff: ignore[magic-value-comparison]  the output after y and both caches
        if scores is not None and scores.uses:
            raise UnsupportedError(f"the scores of {node} are an output")
        old, y = _present(next(iter(node.outputs), None)), place.merged(y) if packed else y
        y.name, old.name = old.name, ""
        old.replace_with(y)
        self._graph.erase(node)


def _present(value: Value | None) -> Value:
    if value is None:
        raise SchemaError("an output of the decoder is missing")
    return value


def _node_of(value: Value) -> Node:
    if value.node is None:
        raise TypeError("the value is computed by a node")
    return value.node


def _rank(value: Value | None) -> int | None:
    kind = None if value is None else value.type
    return len(kind.shape) if isinstance(kind, TensorType) and kind.shape is not None else None


# ---------------------------------------------------------------- the search for a Concat


def _join_of(cache: Value, result: Value) -> _Join | None:
    """Return the Concat between a cache and an output."""
    after: list[Node] = []
    node = result.node
    while node is not None and node.op in _MOVES and not node.domain:
        after.insert(0, node)
        node = _node_behind(node)
    if node is None or node.op != "Concat" or node.domain or len(node.inputs) != 2:  # ruff: ignore[magic-value-comparison]  cache and rows
        return None
    before: list[Node] = []
    value = node.inputs[0]
    while value is not None and value is not cache:
        mover = value.node
        if mover is None or mover.op not in _MOVES or mover.domain:
            return None
        before.insert(0, mover)
        value = mover.inputs[0]
    return None if value is None else _Join(node, tuple(before), tuple(after))


def _node_behind(node: Node) -> Node | None:
    value = node.inputs[0]
    return None if value is None else value.node


def _axis_in_cache(join: _Join, rank: int) -> int | None:
    """Return the axis of the cache along which rows are joined.

    None if the nodes before and after the Concat do not cancel: the output then has another order of axes.
    """
    order = [*range(rank)]
    for node in join.before:
        order = [order[axis] for axis in _permutation(node, rank)]
    axis = order[int(join.node.attributes["axis"].value) % rank]
    for node in join.after:
        order = [order[axis] for axis in _permutation(node, rank)]
    return axis if order == [*range(rank)] else None


def _permutation(node: Node, rank: int) -> list[int]:
    if node.op != "Transpose":
        return [*range(rank)]
    perm = node.attributes.get("perm")
    return [*range(rank)][::-1] if perm is None else [int(axis) for axis in perm.value]


# ---------------------------------------------------------------- new nodes


class _Place:
    """Adds nodes before a neighbour, by default at the beginning of the graph."""

    def __init__(self, graph: Graph, neighbour: Node | None) -> None:
        self._graph, self._neighbour = graph, neighbour
        self._last: Node | None = None

    def add(self, op: str, inputs: Sequence[Value | None], **attributes: Any) -> Value:
        """Add a node and return its output."""
        node = Node(op, inputs, [Value()], attributes=attributes)
        if self._neighbour is not None:
            self._graph.insert(node, before=self._neighbour)
        else:
            self._graph.insert(node, after=self._last)
            self._last = node
        return node.output

    def numbers(self, *numbers: int) -> Value:
        """Return a constant, int64[n]."""
        return self.add("Constant", [], value=np.array(numbers, np.int64))

    def through(self, value: Value | None, nodes: Sequence[Node]) -> Value:
        """Return a value after copies of nodes of one input."""
        if value is None:
            raise SchemaError("an input of Concat is missing")
        for node in nodes:
            attributes = {name: node.attributes[name].value for name in node.attributes}
            value = self.add(node.op, [value], **attributes)
        return value

    def write(self, cache: Value, new: Value, length: Value, axis: int, rank: int) -> tuple[Value, Value]:
        """Return a buffer with new rows from `length` on, and the number of its filled rows: int64[1]."""
        shape = self.add("Shape", [new])
        rows = self.add("Slice", [shape, self.numbers(axis), self.numbers(axis + 1)])
        total = self.add("Add", [length, rows])
        no_axes = self.numbers()
        first, last = (self.add("Reshape", [x, no_axes]) for x in (length, total))
        one = self.add("Constant", [], value=np.array(1, np.int64))
        places = self.add("Range", [first, last, one])
        along = self.numbers(*(-1 if n == axis else 1 for n in range(rank)))
        places = self.add("Expand", [self.add("Reshape", [places, along]), shape])
        return self.add("ScatterElements", [cache, places, new], axis=axis), total

    def first(self, value: Value, count: Value, axis: int) -> Value:
        """Return the first rows of a tensor along an axis."""
        return self.add("Slice", [value, self.numbers(0), count, self.numbers(axis)])

    def split(self, x: Value, heads: int) -> Value:
        """Return [batch, heads, length, size] of [batch, length, heads * size]."""
        apart = self.add("Reshape", [x, self.numbers(0, 0, heads, -1)])
        return self.add("Transpose", [apart], perm=[0, 2, 1, 3])

    def merged(self, x: Value) -> Value:
        """Return [batch, length, heads * size] of [batch, heads, length, size]."""
        return self.add("Reshape", [self.add("Transpose", [x], perm=[0, 2, 1, 3]), self.numbers(0, 0, -1)])


__all__ = ["CAPACITY", "with_cache_buffers"]
