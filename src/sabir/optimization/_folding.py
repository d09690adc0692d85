"""Constant folding: values that are known become initializers, however large the model around them is."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from sabir.base import check_time
from sabir.inference import Inference
from sabir.ir import ArrayTensor, Expr, FreshNames, Graph, Node, Tensor, TensorType, canonical_domain
from sabir.opsets.families.shapes import contents
from sabir.rewriting import constant_node, data_of_node, erase_node, evaluated
from sabir.schema import Callees, Scope, Version
from sabir.simplification import expand_target, reshape_target

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from sabir.ir import Constant, Known, Model, Shape, Value
    from sabir.schema import Registry

_FREE_BYTES = 256  # a constant of as many bytes costs no more than the node that computes it
_MOST_UNKNOWN = 1 << 16  # elements of the operands of a call whose result has an unknown size
_SOURCE = "Constant"
_TARGETS = {"Reshape": reshape_target, "Expand": expand_target}
_OPERANDS = 2  # of these
_MARKS = frozenset({"DequantizeLinear", "QuantizeLinear"})  # they say how weights are stored, and stay


class Fold(NamedTuple):
    """The pass that replaces nodes on constants, and nodes whose results inference knows, by initializers.

    `room` is the number of bytes by which constants may grow in all. Values of `kept` stay as they are.
    A function's body and training graphs stay: they have no constants of their own.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N,2] x) => (float[N,2] y) { one = Constant <value = float {1}> ()  two = Add (one, one)
    ... y = Mul (x, two) }''')
    >>> Fold(sabir.opsets.STANDARD).run(model), [node.op for node in model.graph]
    (True, ['Mul'])
    """

    registry: Registry
    room: int = 1 << 16
    kept: Collection[Value] = ()
    name: str = "fold constants"

    def run(self, model: Model) -> bool:
        """Fold the constants of a model, and return whether there were any."""
        changed, _ = self.infer(model)
        return changed

    def infer(self, model: Model, inference: Inference | None = None) -> tuple[bool, Inference]:
        """Fold the constants of a model; return whether there were any, and the types of its values.

        `inference` has the types, if they are known.
        """
        folding = _Folding(model, self, inference)
        return folding.run(), folding.inference


class _Folding:
    """One run of the pass."""

    def __init__(self, model: Model, job: Fold, inference: Inference | None) -> None:
        self._model, self._kept, self._room = model, job.kept, job.room
        self._scope = Scope.of(model, job.registry, newer_opsets=True)
        self._callees = Callees()
        self._state = model.state()
        if inference is None:
            inference = Inference(model, registry=job.registry, fresh=True)
            inference.run()
        self.inference = inference
        self._changed = False
        self._shapes: dict[tuple[Graph, tuple[int, ...]], Value] = {}

    def run(self) -> bool:
        self._fold(self._model.graph, {}, is_run_once=True)
        return self._changed

    def _fold(self, graph: Graph, around: Mapping[object, Value], *, is_run_once: bool) -> None:
        """Fold the nodes of a graph; `around` has the values of known contents of the graphs around it.

        What inference says of a body that several iterations share is not used.
        """
        known = dict(around)
        for node in graph.sorted_nodes():
            check_time()
            for inner in node.graphs:
                self._fold(inner, known, is_run_once=is_run_once and not inner.inputs)
            results = self._results(node, is_run_once=is_run_once)
            if results is not None:
                self._become_constants(node, graph, results)
            elif is_run_once:
                self._share_known(node, known)
                self._fold_target(node, graph)

    def _results(self, node: Node, *, is_run_once: bool) -> Sequence[Constant] | None:
        """Return the results of a node as constants, None where they are not known or too large."""
        if node.graphs or any(v in self._kept for v in node.outputs):
            return None
        known = self._known(node) if is_run_once else None
        if known is None and not self._reads_constants(node):
            return None
        callee = self._callees.find(node, self._scope)
        if not isinstance(callee, Version) or callee.operator.random or callee.find("evaluate") is None:
            return None
        if _is_source(node):
            data = data_of_node(node)
            return None if data is None else [data]
        if node.op in _MARKS:
            return None
        return known if known is not None else self._evaluated(node, callee)

    def _known(self, node: Node) -> Sequence[Constant] | None:
        found: list[Constant] = []
        for value in node.outputs:
            kind = None if value is None else self.inference.types.get(value)
            if not isinstance(kind, TensorType) or kind.known is None:
                return None
            array = contents.array_of(kind)
            if array is None or array.nbytes > _FREE_BYTES + self._room:
                return None
            found.append(ArrayTensor(array))
        return found or None

    def _reads_constants(self, node: Node) -> bool:
        return all(v is None or self._constant(v) is not None for v in node.inputs)

    def _evaluated(self, node: Node, version: Version) -> Sequence[Constant] | None:
        operands = [None if v is None else self._constant(v) for v in node.inputs]
        if not self._has_room(node, operands):
            return None
        found = evaluated(node, version, self._scope, operands)
        if found is None:
            return None
        grown = sum(x.nbytes for x in found) - self._released(node)
        if grown > _FREE_BYTES + self._room:
            return None
        return [ArrayTensor(x) for x in found]

    def _constant(self, value: Value) -> Tensor | None:
        data = value.constant
        if not isinstance(data, Tensor) or value.is_input or value in self._state:
            return None
        return data

    def _has_room(self, node: Node, operands: Sequence[Tensor | None]) -> bool:
        """Return whether the results of a node may be computed: their sizes are known before they are."""
        size = 0
        for value in node.outputs:
            kind = None if value is None else self.inference.types.get(value)
            if not isinstance(kind, TensorType) or not kind.is_static:
                return sum(t.size for t in operands if t is not None) <= _MOST_UNKNOWN
            width = max(1, kind.element.dtype.itemsize)
            size += math.prod(d for d in kind.shape or () if isinstance(d, int)) * width
        return size - self._released(node) <= _FREE_BYTES + self._room

    def _released(self, node: Node) -> int:
        """Return the bytes of constants that nothing but this node reads."""
        found = 0
        for value in {v for v in node.inputs if v is not None}:
            data = self._constant(value)
            if data is not None and all(use.user is node for use in value.uses):
                found += data.nbytes
        return found

    def _become_constants(self, node: Node, graph: Graph, results: Sequence[Constant]) -> None:
        """Let the outputs of a node be initializers; what a graph outputs stays the result of a node."""
        outputs = list(node.outputs)
        if _is_source(node) and any(v is not None and v.is_output for v in outputs):
            return
        self._changed = True
        data_of = [d for v, d in zip(outputs, results, strict=False) if v is not None]
        self._room -= max(0, sum(map(_bytes_of, data_of)) - self._released(node) - _FREE_BYTES)
        node.outputs = ()
        for value, data in zip(outputs, results, strict=False):
            if value is None or not value.is_read:
                continue
            if value.is_output:
                graph.insert(constant_node(value, data), after=graph.previous(node))
                continue
            graph.set_initializer(value, data)
        erase_node(node)

    def _fold_target(self, node: Node, graph: Graph) -> None:
        """Give a Reshape or an Expand a constant shape, where only sizes that it keeps are not numbers."""
        target = _TARGETS.get(node.op)
        if target is None or canonical_domain(node.domain) or len(node.inputs) != _OPERANDS:
            return
        data, shape, result = *node.inputs, node.outputs[0]
        if data is None or shape is None or result is None or shape.node is None:
            return
        found = target(self._shape(data), self._shape(result))
        if found is None:
            return
        key = graph, tuple(found.tolist())
        if key not in self._shapes:
            self._shapes[key] = graph.add_initializer(self._names.fresh("shape"), found)
        node.inputs[1] = self._shapes[key]
        node.attributes.pop("allowzero", None)
        self._changed = True

    def _shape(self, value: Value) -> Shape | None:
        kind = self.inference.types.get(value)
        return kind.shape if isinstance(kind, TensorType) else None

    @cached_property
    def _names(self) -> FreshNames:
        return FreshNames.beside(self._model.graphs())

    def _share_known(self, node: Node, known: dict[object, Value]) -> None:
        """Let the readers of a value read an earlier one of the same contents, such as a size of an input."""
        for value in node.outputs:
            kind = None if value is None else self.inference.types.get(value)
            if value is None or not isinstance(kind, TensorType) or not _is_symbolic(kind.known):
                continue
            first = known.setdefault((kind.element.number, kind.shape, kind.known), value)
            if first is not value and not value.is_output and value not in self._kept and value.is_read:
                value.replace_with(first)
                self._changed = True


def _is_source(node: Node) -> bool:
    return node.op == _SOURCE and not canonical_domain(node.domain)


def _is_symbolic(known: Known | None) -> bool:
    """Return whether all contents are known, and some are sizes that only a run decides."""
    return bool(known) and None not in (known or ()) and any(isinstance(k, Expr) for k in known or ())


def _bytes_of(data: Constant) -> int:
    return data.nbytes if isinstance(data, Tensor) else 0
