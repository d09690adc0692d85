"""Constants that contain an old size of an input, replaced by ones that follow the new size."""

from __future__ import annotations

from itertools import islice, product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sabir.elements import INT64
from sabir.ir import Expr, FreshNames, Node, TensorType, Value, places, resolve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sabir.base import Location
    from sabir.inference._diagnostics import Diagnostic
    from sabir.inference._engine import Inference
    from sabir.ir import Model

_MOST_CANDIDATES = 32  # for one problem
_MOST_ENTRIES = 16  # of a shape, or of the bounds of a slice
_MOST_ANCESTORS = 64  # nodes before a problem whose constants are tried
_RESHAPE, _ALLOWZERO = "Reshape", "allowzero"


class ChangedAxis(NamedTuple):
    """An axis of an input: the size that it had, 1 or more, and its new one."""

    value: Value
    axis: int
    old: int
    new: int | Expr


class Mended(NamedTuple):
    """A node that reads another shape now: its location, and the old and the new entries as text.

    Of the new entries, -1 and 0 are those of Reshape, and a text such as `x[0]` is the size of an input.
    """

    location: Location
    old: tuple[str, ...]
    new: tuple[str, ...]


class _Operand(NamedTuple):
    """A constant operand of a node."""

    node: Node
    slot: int
    entries: tuple[int, ...]


class _Change(NamedTuple):
    """The new entries of an operand as text, and how to put the old ones back."""

    entries: tuple[str, ...]
    undo: Callable[[], None]


_Assignment = tuple["ChangedAxis | None", ...]  # for each entry of a constant, the axis whose size it is
_Problems = dict[object, "Diagnostic"]  # by the node or other object that has the problem


class Mending:
    """Tries other constants for the nodes where inference reports a problem.

    A candidate is accepted if the problem disappears and none appears before it. Every candidate has the old
    entries where the input has its old size, so the model then computes what it did.
    """

    def __init__(
        self,
        model: Model,
        axes: Sequence[ChangedAxis],
        report: Callable[[], tuple[Inference, Sequence[Diagnostic]]],
    ) -> None:
        """Take a model with changed inputs, and what returns the problems that it still has."""
        self._model, self._report = model, report
        self._axes = list({(axis.old, axis.new): axis for axis in reversed(axes)}.values())
        graphs = [scope for graph in model.graphs() for scope in graph.scopes()]
        self._names = FreshNames(v.name for graph in graphs for v in graph.defined())
        self._made: list[Value] = []  # by this class: sizes of inputs, constants and what is computed of them
        self._sizes: dict[tuple[Value, int], Value] = {}
        self._mended: dict[Node, tuple[_Operand, _Change]] = {}

    def run(self) -> tuple[Mended, ...]:
        """Mend what can be mended, and return what was."""
        inference, found = self._mend_targets()
        given_up: set[object] = set()
        while (owner := next((o for o in found if o not in given_up), None)) is not None:
            result = self._mend(owner, inference, found)
            if result is None:
                given_up.add(owner)
            else:
                inference, found = result
        self._remove_unread()
        where = {place.object: place.location for place in places(self._model, Node)}
        return tuple(
            Mended(where[node], tuple(map(str, operand.entries)), change.entries)
            for node, (operand, change) in self._mended.items()
        )

    def _problems(self) -> tuple[Inference, _Problems]:
        """Return what inference reports, the first nodes first: later problems may be consequences."""
        inference, found = self._report()
        ordered = sorted(found, key=lambda problem: problem.location.order)
        return inference, {resolve(self._model, problem.location): problem for problem in ordered}

    def _mend_targets(self) -> tuple[Inference, _Problems]:
        """Mend the targets of Reshape that stay constants, many at once, as each layer has some."""
        tried: set[Node] = set()
        inference, found = self._problems()
        while True:
            changes: dict[Node, tuple[_Operand, _Change]] = {}
            for owner in found:
                target = None if owner in tried else self._target(owner, inference)
                if target is not None:
                    operand, assignment = target
                    changes[operand.node] = operand, self._apply(operand, assignment, inference)
            if not changes:
                return inference, found
            tried.update(changes)
            inference, found = self._problems()
            failed = [node for node in changes if node in found]
            for node in failed:
                changes.pop(node)[1].undo()
            if failed:
                inference, found = self._problems()
            self._mended.update(changes)

    def _target(self, owner: object, inference: Inference) -> tuple[_Operand, _Assignment] | None:
        """Return the likeliest assignment of a Reshape's target, if that stays a constant."""
        if not isinstance(owner, Node) or not self._is_reachable(owner):
            return None
        for operand in _constant_operands(owner, inference):
            assignment = next(self._assignments(operand.entries), None)
            if operand.node is not owner or assignment is None:
                return None
            if _of_reshape(operand, assignment, inference) is not None:
                return operand, assignment
        return None

    def _mend(
        self, owner: object, inference: Inference, found: _Problems
    ) -> tuple[Inference, _Problems] | None:
        """Return what inference reports after a change that solves a problem, or None where none does."""
        if not isinstance(owner, Node) or not self._is_reachable(owner):
            return None
        candidates = (
            (operand, assignment)
            for operand in _constant_operands(owner, inference)
            for assignment in self._assignments(operand.entries)
        )
        best: tuple[int, _Operand, _Assignment] | None = None  # that only moves the problem to later nodes
        for operand, assignment in islice(candidates, _MOST_CANDIDATES):
            change = self._apply(operand, assignment, inference)
            result, left = self._problems()
            if owner not in left and not self._are_before(owner, left.keys() - found.keys()):
                if len(left) < len(found):
                    self._mended[operand.node] = operand, change
                    return result, left
                if best is None or len(left) < best[0]:
                    best = len(left), operand, assignment
            change.undo()
        if best is None:
            return None
        _, operand, assignment = best
        self._mended[operand.node] = operand, self._apply(operand, assignment, inference)
        return self._problems()

    def _is_reachable(self, node: Node) -> bool:
        """Return whether a node is in the main graph or inside it, where it can read the inputs."""
        return self._outermost(node).graph is self._model.graph

    def _outermost(self, node: Node) -> Node:
        """Return the node of a root graph that a node is, or is inside of."""
        while node.graph is not None and node.graph.parent is not None:
            node = node.graph.parent
        return node

    def _are_before(self, node: Node, others: set[object]) -> bool:
        """Return whether one of other objects is a node before this one."""
        nodes = {self._outermost(other) for other in others if isinstance(other, Node)}
        before = iter(self._model.graph)
        last = self._outermost(node)
        return any(one in nodes for one in iter(lambda: next(before), last))

    def _assignments(self, entries: tuple[int, ...]) -> Iterator[_Assignment]:
        """Yield which entries may be which sizes: first all that are equal, multiples last."""
        options = [
            [*(i for i, e in enumerate(entries) if e == axis.old), None,
             *(i for i, e in enumerate(entries) if e > axis.old and not e % axis.old)]
            for axis in self._axes
        ]  # fmt: skip
        choices = [choice for choice in islice(product(*options), 1 << 12) if _is_useful(choice)]

        def rank(choice: Sequence[int | None]) -> tuple[int, int]:
            multiples = [
                i
                for i, axis in zip(choice, self._axes, strict=True)
                if i is not None and entries[i] != axis.old
            ]
            return len(multiples), sum(place is None for place in choice)

        for choice in sorted(choices, key=rank):
            chosen: list[ChangedAxis | None] = [None] * len(entries)
            for axis, place in zip(self._axes, choice, strict=True):
                if place is not None:
                    chosen[place] = axis
            yield tuple(chosen)

    # the changes

    def _apply(self, operand: _Operand, assignment: _Assignment, inference: Inference) -> _Change:
        """Let a node read other entries."""
        node, slot, entries = operand
        old = node.inputs[slot]
        numbers = _of_reshape(operand, assignment, inference)
        if numbers is None:
            node.inputs[slot] = self._computed(operand, assignment)
            texts = tuple(
                str(entry) if axis is None else _text(axis, entry)
                for entry, axis in zip(entries, assignment, strict=True)
            )
        else:
            node.inputs[slot] = self._constant(numbers)
            texts = tuple(map(str, numbers))
        allowzero = node.attributes.pop(_ALLOWZERO, None) if numbers is not None and 0 in numbers else None

        def undo() -> None:
            node.inputs[slot] = old
            if allowzero is not None:
                node.attributes[_ALLOWZERO] = allowzero

        return _Change(texts, undo)

    def _computed(self, operand: _Operand, assignment: _Assignment) -> Value:
        """Return the entries as a concatenation of constants and of sizes of inputs."""
        parts: list[Value] = []
        constants: list[int] = []
        for entry, axis in zip(operand.entries, assignment, strict=True):
            if axis is None or isinstance(axis.new, int):
                constants.append(entry if axis is None else _resized(entry, axis))
                continue
            if constants:
                parts.append(self._constant(constants))
                constants = []
            parts.append(self._scaled(axis, entry))
        if constants:
            parts.append(self._constant(constants))
        return parts[0] if len(parts) == 1 else self._added("Concat", parts, "shape", {"axis": 0})

    def _scaled(self, axis: ChangedAxis, entry: int) -> Value:
        """Return the size of an input's axis, as often as an entry contains the old size."""
        key = (axis.value, axis.axis)
        if key not in self._sizes:
            shape = self._added("Shape", [axis.value], f"{axis.value.name}_shape")
            index = self._constant([axis.axis])
            self._sizes[key] = self._added("Gather", [shape, index], f"{axis.value.name}_size", {"axis": 0})
        factor = entry // axis.old
        if factor == 1:
            return self._sizes[key]
        return self._added("Mul", [self._sizes[key], self._constant([factor])], "size")

    def _constant(self, entries: Sequence[int]) -> Value:
        value = self._model.graph.add_initializer(self._names.fresh("shape"), np.array(entries, np.int64))
        self._made.append(value)
        return value

    def _added(
        self, op: str, inputs: Sequence[Value], name: str, attributes: dict[str, object] | None = None
    ) -> Value:
        """Insert a node at the beginning of the main graph, after the other new nodes."""
        node = Node(op, inputs, 1, attributes)
        node.output.name = self._names.fresh(name)
        last = next((v.node for v in reversed(self._made) if v.node is not None), None)
        self._model.graph.insert(node, after=last)
        self._made.append(node.output)
        return node.output

    def _remove_unread(self) -> None:
        """Remove what the candidates that were not accepted have left."""
        graph = self._model.graph
        for value in reversed(self._made):
            if value.is_read:
                continue
            if value.node is None:
                graph.set_initializer(value, None)
            else:
                graph.erase(value.node)


def _constant_operands(node: Node, inference: Inference) -> Iterator[_Operand]:
    """Yield the lists of integers that a node reads, then those that the nodes before it read."""
    pending, seen = [node], {node}
    for one in islice(iter(lambda: pending.pop(0) if pending else None, None), _MOST_ANCESTORS):
        for slot, value in enumerate(one.inputs):
            type_ = None if value is None else inference.type_of(value)
            known = type_.known if isinstance(type_, TensorType) and type_.element is INT64 else None
            if isinstance(type_, TensorType) and known is not None and type_.rank == 1:
                entries = tuple(entry for entry in known if isinstance(entry, int))
                if len(entries) == len(known) <= _MOST_ENTRIES:
                    yield _Operand(one, slot, entries)
        for source in (value.node for value in one.inputs if value is not None):
            if source is not None and source not in seen:
                seen.add(source)
                pending.append(source)


def _of_reshape(operand: _Operand, assignment: _Assignment, inference: Inference) -> tuple[int, ...] | None:
    """Return a constant target of a Reshape that follows the sizes, with 0 and -1; None if there is none."""
    node, slot, entries = operand
    if node.op != _RESHAPE or slot != 1:
        return None
    allowzero = node.attributes.get(_ALLOWZERO)
    if allowzero is not None and allowzero.value and 0 in entries:  # without a 0 it means nothing
        return None
    data = node.inputs[0]
    type_ = None if data is None else inference.type_of(data)
    dims = type_.shape or () if isinstance(type_, TensorType) else ()
    found: list[int] = []
    for place, (entry, axis) in enumerate(zip(entries, assignment, strict=True)):
        if axis is None:
            found.append(entry)
        elif isinstance(axis.new, int):
            found.append(_resized(entry, axis))
        elif entry == axis.old and place < len(dims) and dims[place] == axis.new:
            found.append(0)
        elif -1 not in entries and -1 not in found:
            found.append(-1)
        else:
            return None
    return tuple(found)


def _resized(entry: int, axis: ChangedAxis) -> int:
    return entry // axis.old * axis.new if isinstance(axis.new, int) else entry


def _text(axis: ChangedAxis, entry: int) -> str:
    if isinstance(axis.new, int):
        return str(_resized(entry, axis))
    factor = entry // axis.old
    size = f"{axis.value.name}[{axis.axis}]"
    return size if factor == 1 else f"{factor}*{size}"


def _is_useful(places_of: Sequence[int | None]) -> bool:
    """Return whether at least one entry is chosen, and none for two sizes."""
    chosen = [place for place in places_of if place is not None]
    return bool(chosen) and len(chosen) == len(set(chosen))
