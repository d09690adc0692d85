"""Which node of a new graph is which node of the old one, where contents alone do not say it.

Equal nodes are matched first. Below a changed weight or node all identities differ, so the others are
matched by their neighbours: downwards by the operator, the attributes and the matched operands; upwards by
the operands of matched readers; and what remains between two changes by attributes and constants. Every step
looks nodes up in a table, so that the time is proportional to the number of nodes.
"""

from __future__ import annotations

from collections import defaultdict, deque
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias

from sabir.ir import Value, canonical_domain

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

    from sabir.comparison._identity import Identities
    from sabir.ir import Graph, Node

Level: TypeAlias = Literal["equal", "similar", "operator"]
"""What must agree: all attributes and constants; those that are no tensors or graphs; the operator alone."""
_LEVELS: tuple[Level, ...] = ("equal", "similar", "operator")
_LARGE = frozenset({"tensor", "tensors", "sparse_tensor", "sparse_tensors", "graph", "graphs"})


class Alignment:
    """The nodes and values of two models that correspond to each other, new ones to old ones.

    Graphs are aligned one after the other, outer ones first, because inner ones read values of outer ones.
    """

    def __init__(self, old: Identities, new: Identities) -> None:
        self.old, self.new = old, new
        self.old_nodes: dict[Node, Node] = {}
        self.new_nodes: dict[Node, Node] = {}
        self.old_values: dict[Value, Value] = {}

    def align(
        self,
        old: Graph,
        new: Graph,
        inputs: Iterable[tuple[Value, Value]],
        outputs: Iterable[tuple[Value | None, Value | None]] = (),
    ) -> None:
        """Match the nodes of two graphs, whose inputs and outputs correspond as listed."""
        self.old_values.update((there, here) for here, there in inputs)
        pending = _Pending(self.old.order[old], self.new.order[new], tuple(outputs))
        self._by_table(pending, self.old.nodes.get, self.new.nodes.get)
        self._spread(pending, ("equal", "similar"))
        self._spread(pending, _LEVELS)
        self._by_table(pending, partial(self._own, self.old), partial(self._own, self.new))
        self._spread(pending, _LEVELS)
        alike = [partial(self._head, model, level="equal") for model in (self.old, self.new)]
        self._by_table(pending, *alike)
        self._spread(pending, _LEVELS)
        self._update(pending)

    def key_of_old(self, value: Value | None) -> Hashable:
        """Return what equals `key_of_new` of the corresponding value; of constants, those of equal bits."""
        return _key(value, self.old, {})

    def key_of_new(self, value: Value | None) -> Hashable:
        """Return the corresponding old value; of a constant, its identity."""
        return _key(value, self.new, self.old_values)

    def _update(self, pending: _Pending) -> bool:
        """Drop the matched nodes from the pending ones; return whether both sides have some left."""
        pending.old = [node for node in pending.old if node not in self.new_nodes]
        pending.new = [node for node in pending.new if node not in self.old_nodes]
        return bool(pending.old and pending.new)

    def _match(self, old: Node, new: Node) -> None:
        self.old_nodes[new], self.new_nodes[old] = old, new
        for here, there in zip(old.outputs, new.outputs, strict=False):
            if here is not None and there is not None:
                self.old_values[there] = here

    def _by_table(
        self, pending: _Pending, old_key: Callable[[Node], Hashable], new_key: Callable[[Node], Hashable]
    ) -> None:
        """Match nodes with the same key, in order; a key of None matches nothing."""
        if not self._update(pending):
            return
        table = _table(pending.old, old_key)
        for node in pending.new:
            key = new_key(node)
            candidates = table.get(key) if key is not None else None
            if candidates:
                self._match(candidates.popleft(), node)

    def _spread(self, pending: _Pending, levels: Sequence[Level]) -> None:
        """Match nodes by their neighbours: down, up, and down again."""
        for step in (self._down, self._up, self._down):
            if not self._update(pending):
                return
            step(pending, levels)

    def _down(self, pending: _Pending, levels: Sequence[Level]) -> None:
        """Match nodes whose operands are matched, in topological order."""
        tables = [_table(pending.old, partial(self._old_call, level=level)) for level in levels]
        for node in pending.new:
            for level, table in zip(levels, tables, strict=True):
                call = self._new_call(node, level)
                candidates = table.get(call) if call is not None else None
                while candidates and candidates[0] in self.new_nodes:
                    candidates.popleft()  # another level has matched it
                if candidates:
                    self._match(candidates.popleft(), node)
                    break

    def _up(self, pending: _Pending, levels: Sequence[Level]) -> None:
        """Match nodes that compute the same operand of matched nodes, or the same output, upwards."""
        old, new = set(pending.old), set(pending.new)
        results = (value for node in pending.new for value in node.outputs if value is not None)
        users = dict.fromkeys(use.user for value in results for use in value.uses)
        readers = [user for user in users if user in self.old_nodes]
        todo = [*pending.outputs, *(pair for r in readers for pair in _operands(self.old_nodes[r], r))]
        while todo:
            here, there = todo.pop()
            one, other = here and here.node, there and there.node
            if one not in old or other not in new or one.outputs.index(here) != other.outputs.index(there):
                continue
            if any(self._head(self.old, one, x) == self._head(self.new, other, x) for x in levels):
                self._match(one, other)
                old.discard(one)
                new.discard(other)
                todo += _operands(one, other)

    def _own(self, model: Identities, node: Node) -> Hashable:
        """Return the attributes and constants of a node, None for one without constants."""
        constants = tuple([model.values[v] for v in node.inputs if v in model.constants])
        return (self._head(model, node, "equal"), constants) if constants else None

    def _old_call(self, node: Node, level: Level) -> Hashable:
        """Return what a node is by its operands; None where no operand says which of its kind it is."""
        operands = [self._constant(v, self.old, level) or v for v in node.inputs]
        named = any(isinstance(operand, Value) for operand in operands)
        return (self._head(self.old, node, level), *operands) if named else None

    def _new_call(self, node: Node, level: Level) -> Hashable:
        """Return what `_old_call` returns of the old node; None where an operand is not matched."""
        operands: list[Hashable] = []
        named = False
        for value in node.inputs:
            constant = self._constant(value, self.new, level)
            if value is None or constant is not None:
                operands.append(constant)
                continue
            if value not in self.old_values:
                return None
            operands.append(self.old_values[value])
            named = True
        return (self._head(self.new, node, level), *operands) if named else None

    @staticmethod
    def _constant(value: Value | None, model: Identities, level: Level) -> Hashable:
        if value not in model.constants:
            return None
        return ("constant", model.values[value] if level == "equal" else None)

    def _head(self, model: Identities, node: Node, level: Level) -> Hashable:
        """Return the operator and the attributes of a node, as far as a level compares them."""
        name = canonical_domain(node.domain), node.op
        if level == "operator":
            return name
        attributes = model.attributes[node]
        if level == "equal" or not attributes:
            return (*name, node.overload, tuple(attributes.items()))
        kept = {n: None if node.attributes[n].type in _LARGE else k for n, k in attributes.items()}
        return (*name, node.overload, tuple(kept.items()))


class _Pending:
    """The nodes of two graphs that are not matched yet, in topological order, and the pairs of outputs."""

    def __init__(
        self,
        old: Iterable[Node],
        new: Iterable[Node],
        outputs: tuple[tuple[Value | None, Value | None], ...],
    ) -> None:
        self.old, self.new, self.outputs = list(old), list(new), outputs


def _key(value: Value | None, model: Identities, others: Mapping[Value, Value]) -> Hashable:
    if value is None or value in model.constants or value not in model.values:
        return model.of_value(value)
    return others.get(value, value)


def _table(nodes: Iterable[Node], key: Callable[[Node], Hashable]) -> dict[Hashable, deque[Node]]:
    found: dict[Hashable, deque[Node]] = defaultdict(deque)
    for node in nodes:
        found[key(node)].append(node)
    return found


def _operands(old: Node, new: Node) -> Iterable[tuple[Value | None, Value | None]]:
    return zip(old.inputs, new.inputs, strict=False)
