"""Training mode: a copy of the part of a graph that computes other values while a model is trained."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir.differentiation import copied
from sabir.ir import Attribute, Value
from sabir.training._layers import STATISTICS, changes_in_training
from sabir.training._parameters import matches
from sabir.training._precision import Casting, widened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir import Builder, Graph, Model, Node
    from sabir.rewriting import DetachedBuilder, Rewriter
    from sabir.training._learned_scales import LearnedScales
    from sabir.training._precision import Precision


# the inputs that copies pass on; Where keeps a statistic that would not be finite
_PASSING = {"Identity": 0, "Where": 2}


class TrainingMode:
    """A copy of a graph in training mode, from the first Dropout or BatchNormalization on.

    `statistics` maps running means and variances to their new values. What no such node comes before is not
    copied, unless the copy computes in another precision.
    """

    def __init__(
        self,
        graph: Graph,
        frozen: Sequence[str],
        precision: Precision | None = None,
        learned: LearnedScales | None = None,
    ) -> None:
        """Take the main graph of a model; statistics that patterns of `frozen` match stay as they are."""
        self._graph, self._frozen, self._precision = graph, frozen, precision
        self._learned = learned
        self._copies: dict[Value, Value | None] = {}
        self.statistics: dict[Value, Value] = {}

    def build(self, b: DetachedBuilder, rewriter: Rewriter) -> None:
        """Append the copy to the graph of a builder.

        Raises UnsupportedError for another precision that no node computes in.
        """
        casting = None if self._precision is None else Casting(b, rewriter, self._precision)
        for node in self._graph.sorted_nodes():
            changed = any(self._changes(n) for n in (node, *(n for g in node.graphs for n in g.all_nodes())))
            if changed or casting is not None or any(v in self._copies for v in node.reads()):
                self._copy(node, b, rewriter, casting)
        if casting is not None:
            casting.require_use()

    def value(self, original: Value, b: Builder) -> Value:
        """Return the value that takes the place of one of the main graph, in single precision or more."""
        return widened(b, self._copies.get(original) or original)

    def origins(self) -> dict[str, str]:
        """Return the name of the node that each value of the copy is computed by in the main graph."""
        pairs = [(copy, original.node) for original, copy in self._copies.items()]
        return {copy.name: node.name for copy, node in pairs if copy is not None and node is not None}

    def _copy(self, node: Node, b: DetachedBuilder, rewriter: Rewriter, casting: Casting | None) -> None:
        known = dict(self._copies) if casting is None else casting.operands(node, self._copies)
        copy = copied(node, rewriter.names, known)
        nested = [n for graph in copy.graphs for n in graph.all_nodes()]
        for inner in (copy, *nested):
            if inner.op == "Dropout" and changes_in_training(inner):
                _drop(inner, b)
        if node.op == "BatchNormalization" and self._changes(node):
            self._normalize(copy, rewriter)
        learned = self._learned if self._learned is not None and self._learned.reads(node) else None
        if learned is not None:
            learned.divide(b, copy)
        if casting is not None:
            for output in copy.outputs:
                if output is not None:
                    output.type = None  # what is declared for the main graph
        b.graph.append(copy)
        rewriter.inference.visit(copy, scope=rewriter.scope)
        outputs = [(v, c) for v, c in zip(node.outputs, copy.outputs, strict=False) if v is not None]
        if learned is not None:
            outputs = [(v, c and learned.multiply(b, node, c)) for v, c in outputs]
        self._copies.update(outputs)

    def _changes(self, node: Node) -> bool:
        """Return whether a node of the graph computes something else in training mode."""
        if self._learned is not None and self._learned.reads(node):
            return True
        if not changes_in_training(node):
            return False
        if node.op == "Dropout":
            return True
        running = node.inputs[STATISTICS]
        names = [v.name for v in running if v is not None and v.constant is not None]
        return len(names) > 1 and not any(matches(name, self._frozen) for name in names)

    def _normalize(self, node: Node, rewriter: Rewriter) -> None:
        """Let a BatchNormalization use the statistics of the batch, and return the new running ones.

        A second node with the same running statistics continues from those of the first.
        """
        originals = [v for v in node.inputs[STATISTICS] if v is not None]
        for index, value in enumerate(originals, start=STATISTICS.start):
            node.inputs[index] = self.statistics.get(value, value)
        node.attributes["training_mode"] = Attribute.of("training_mode", 1)
        new = [Value(rewriter.names.fresh(f"next_{v.name}")) for v in originals]
        node.outputs = [node.outputs[0], *new]
        self.statistics.update(zip(originals, new, strict=True))


def trained_weights(model: Model) -> list[str]:
    """Return the names of the state variables that the main graph reads and steps train, in its order.

    The running statistics of a BatchNormalization are not among them: no gradient changes them.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N,2] x) => (float[N,1] y) <float[2,1] w = {1.0, -1.0}> { y = MatMul (x, w) }''')
    >>> trained_weights(prepare(model, 'mse'))
    ['w']
    """
    bindings = [pair for training in model.training for pair in training.update_binding]
    trained = {key for key, value in bindings if not _is_statistic(value)}
    read = {v for graph in model.graph.scopes() for node in graph for v in node.inputs}
    return [v.name for v in model.graph.initializers if v in trained and v in read]


def _is_statistic(value: Value) -> bool:
    """Return whether a value is a new running mean or variance, or a copy of one."""
    node = value.node
    while node is not None and node.op in _PASSING:
        passed = node.inputs[_PASSING[node.op]]
        if passed is None:
            break
        value, node = passed, passed.node
    return node is not None and node.op == "BatchNormalization" and value is not node.outputs[0]


def _drop(node: Node, b: DetachedBuilder) -> None:
    """Let a Dropout drop elements."""
    ratio = node.inputs[1] if len(node.inputs) > 1 else None
    mode = b.initializer("training_mode", np.ones((), np.bool_))
    node.inputs = [node.inputs[0], ratio, mode]


__all__ = ["TrainingMode", "trained_weights"]
